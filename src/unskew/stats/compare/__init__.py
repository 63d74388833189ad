"""Comparisons of systems, and of one system between groups."""
