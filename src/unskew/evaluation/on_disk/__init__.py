"""Evaluation of files that need not fit into memory."""
