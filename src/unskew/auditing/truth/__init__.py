"""Observed scores against the ground truth."""
