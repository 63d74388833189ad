"""Kernels of training and scoring."""
