"""The pairs that a sample was drawn from, where these are not all recommended pairs.

A sample that is planned for the difference of two systems leaves out the pairs that count alike for
both (`plan_annotation` draws none of them). It shows that difference, but no level. The table of
labels does not say so; its probabilities do: 1 / probability adds up to the pairs it was drawn
from.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import combinations

import numpy as np

from unskew.arrays import I64
from unskew.unbiased.human_samples import UNEQUAL, HumanSample
from unskew.unbiased.place_sums import PlaceSum, place_sums
from unskew.unbiased.recommended_pairs import RecommendedPairs

CLOSE = 2e-3
"""Probabilities in a file are rounded: so far may their sum be from the number of pairs."""


@dataclass(frozen=True, eq=False)
class SampleFrame:
    """The pairs that do not count alike for two systems, from which a sample was drawn."""

    a: str
    b: str
    row: I64
    """Which recommended pairs, ascending."""

    @property
    def reason(self) -> str:
        """Say why other contrasts cannot be estimated."""
        return (
            f"pairs that count alike for {self.a} and {self.b} were never drawn; the labels show "
            f"the difference of these two alone (a plan for levels draws from all pairs)"
        )

    def holds(self, row: I64) -> bool:
        """Tell whether all these pairs could be drawn."""
        return bool(np.isin(row, self.row, assume_unique=True).all())


def sample_frame(
    pairs: RecommendedPairs, sample: HumanSample, wanted: Mapping[str, PlaceSum]
) -> SampleFrame | None:
    """Return the pairs that a sample was drawn from; None for all, and where it is not known.

    They are those of the difference of two systems if all sampled pairs are among these, and if
    the probabilities stand for as many.

    Parameters
    ----------
    pairs, sample
        The recommended pairs, and those that people labelled.
    wanted
        The metrics; by DCG pairs count alike only at the same place.
    """
    if sample.kind == UNEQUAL or _fits(sample, len(pairs)):
        return None
    for a, b, row in _differences(pairs, wanted):
        if _fits(sample, row.size) and np.isin(sample.row, row, assume_unique=True).all():
            return SampleFrame(a, b, row)
    return None


def _differences(
    pairs: RecommendedPairs, wanted: Mapping[str, PlaceSum]
) -> Iterator[tuple[str, str, I64]]:
    metrics = [*wanted.values(), *place_sums("DCG").values()]
    for one in metrics:
        coefficients = pairs.coefficients(one)
        for a, b in combinations(pairs.systems, 2):
            yield a, b, coefficients.contrast(a, b)[0]


def _fits(sample: HumanSample, size: int) -> bool:
    """Tell whether the probabilities stand for about so many pairs."""
    weight = 1.0 / sample.probability
    room = max(0.5, CLOSE * size)
    if sample.outside:  # how many of the pairs drawn are recommended is up to chance
        room = max(room, 3.0 * math.sqrt(float(((1.0 - sample.probability) * weight**2).sum())))
    return abs(float(weight.sum()) - size) <= room
