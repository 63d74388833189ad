"""The least and the largest value that a metric can have, whatever the unjudged items are."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from unskew.arrays import F64
from unskew.metrics.block import flat_discount
from unskew.metrics.settings import Params

Limits = tuple[F64, F64, F64]
"""Observed, least and largest value of each list."""


@dataclass(frozen=True, eq=False)
class Slots:
    """What stands in the places of each list above the cutoff."""

    cutoff: int
    discounted_liked: F64
    """Sum of the discounts of the places with a liked item."""
    discounted_unjudged: F64
    liked: F64
    """Number of places with a liked item."""
    unjudged: F64
    first_liked: F64
    """Rank of the first liked item, 0 for none."""
    first_possible: F64
    """Rank of the first item that is liked or not judged, 0 for none."""
    gains: F64
    """Discounted gains of the judged items."""
    largest_gain: float
    """Of all judgments."""
    liked_judgments: F64
    """Liked judgments of the user, in the list or not."""
    outside: F64 | None
    """Target items that are neither judged nor above the cutoff, where targets are known."""


@dataclass(frozen=True)
class MetricBounds:
    """How a metric is bounded."""

    limits: Callable[[Slots], Limits]
    discount: Callable[[Params, int], F64] = flat_discount
    """What a place counts: (settings, longest list) to a table by rank."""
    settings: frozenset[str] = frozenset()
    """Settings that the bounds know."""
    needs_targets: bool = False
    """Whether the items outside the list matter."""


def per_cutoff(slots: Slots) -> Limits:
    """Bound the share of places with a liked item."""
    low = slots.discounted_liked / slots.cutoff
    return low, low, (slots.discounted_liked + slots.discounted_unjudged) / slots.cutoff


def discounted(slots: Slots) -> Limits:
    """Bound a discounted sum over liked items."""
    low = slots.discounted_liked
    return low, low, low + slots.discounted_unjudged


def discounted_gains(slots: Slots) -> Limits:
    """Bound a discounted sum of gains: an unjudged item may have the largest gain."""
    return slots.gains, slots.gains, slots.gains + slots.largest_gain * slots.discounted_unjudged


def any_liked(slots: Slots) -> Limits:
    """Bound whether any item is liked."""
    hit = (slots.liked > 0).astype(np.float64)
    return hit, hit, ((slots.liked + slots.unjudged) > 0).astype(np.float64)


def reciprocal_first(slots: Slots) -> Limits:
    """Bound the reciprocal rank of the first liked item."""
    low, high = (
        np.divide(1.0, rank, out=np.zeros(rank.size), where=rank > 0)
        for rank in (slots.first_liked, slots.first_possible)
    )
    return low, low, high


def _over_liked(slots: Slots, times: float, base: float) -> Limits:
    """Bound times x liked items of the list / (base + liked items)."""

    def value(hits: F64, relevant: F64) -> F64:
        with np.errstate(invalid="ignore", divide="ignore"):
            result: F64 = np.where(relevant > 0, times * hits / (base + relevant), np.nan)
        return result

    assert slots.outside is not None
    relevant = slots.liked_judgments
    low = value(slots.liked, relevant + slots.outside)
    high = value(slots.liked + slots.unjudged, relevant + slots.unjudged)
    observed = value(slots.liked, relevant)
    return observed, np.where(np.isnan(low), high, low), np.where(np.isnan(high), low, high)


def share_of_liked(slots: Slots) -> Limits:
    """Bound the share of the liked items that the list holds."""
    return _over_liked(slots, 1.0, 0.0)


def harmonic_mean(slots: Slots) -> Limits:
    """Bound 2 x liked items of the list / (cutoff + liked items)."""
    return _over_liked(slots, 2.0, float(slots.cutoff))
