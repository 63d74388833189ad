"""Popularity of items, and of the items in lists."""
