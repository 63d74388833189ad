"""Ratings, relevance and reading."""
