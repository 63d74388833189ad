"""Intervals: of means, of few or skewed values, of shares, and from draws."""
