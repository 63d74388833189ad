"""Splits in time: cuts, windows, model ages and sessions."""
