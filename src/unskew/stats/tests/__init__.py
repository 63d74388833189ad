"""Significance tests."""
