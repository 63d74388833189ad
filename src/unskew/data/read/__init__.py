"""Readers: files, frames and nested values become columns."""
