"""Sparse matrices of ratings, their products and similarities."""
