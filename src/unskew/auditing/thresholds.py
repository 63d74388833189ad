"""The numbers in the rules of statements, in one place: frozen before their error rates are run."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class Thresholds:
    """From which values on a statement is made."""

    level: float = 0.95
    """Of all intervals; those over designs and pairs hold together at this level."""
    match_z: float = 3.5
    """Least z of the step from averages to observed, against its null."""
    match_t: float = 3.0
    """Least t of the same step over users."""
    opinion_z: float = 3.5
    opinion_t: float = 3.0
    popular_share: float = 0.2
    """Most of a lead that the match may be, where the lead is called one of numbers."""
    popular_bound: float = 0.5
    """Where the upper end of that share must lie."""
    liked_error: float = 0.01
    """Chance of an error over all pairs, of the plain comparison of liked shares."""
    levelled_error: float = 0.05
    """The same of the levelled comparison."""
    shown_error: float = 0.05
    """The same of the comparison on randomly shown items."""


THRESHOLDS = Thresholds()
