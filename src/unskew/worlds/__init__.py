"""Simulated data whose truth is known."""
