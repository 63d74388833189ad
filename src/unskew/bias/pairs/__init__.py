"""Pairs of items: whether popularity and liking agree."""
