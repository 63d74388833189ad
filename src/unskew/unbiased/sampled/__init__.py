"""Metrics over sampled candidate items."""
