"""`Reliability`: which family of metrics is likely the more reliable on some data, and why."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

TRUE_POSITIVE = "true-positive metrics"
FALSE_POSITIVE = "false-positive metrics"
EITHER = "either"
NOT_IDENTIFIED = "not identified"

CLOSE = 0.05
"""Shares of pairs that differ by less than this are taken as alike."""
ERRORS = 2.0
"""So are those that differ by less than this many standard errors."""


@dataclass(frozen=True)
class Reliability:
    """Which family of metrics is likely the more reliable here, and why.

    True-positive metrics are precision, recall, nDCG and their like; false-positive metrics are
    anti-precision, fallout, nDCL. Reliable means: in the order that full knowledge would give.
    """

    family: str
    """`true-positive metrics`, `false-positive metrics`, `either` or `not identified`."""
    why: str
    branches: tuple[str, ...] = ()
    """Where relevance is not identified: what follows if it goes with popularity, and if not."""

    def to_dict(self) -> dict[str, Any]:
        """Return plain values, for JSON."""
        return {"family": self.family, "why": self.why, "branches": list(self.branches)}

    def __str__(self) -> str:
        return "\n".join(
            [f"more reliable: {self.family}", self.why, *(f"- {line}" for line in self.branches)]
        )

    def _repr_html_(self) -> str:
        from unskew.report.notebook_view import view

        lines = [self.why, *(f"- {line}" for line in self.branches)]
        return view("Reliability", "", header=[f"more reliable: {self.family}"], lines=lines)


def from_truth(
    precision: float, anti: float, relevant: float, error: float = math.nan
) -> Reliability:
    """Judge by the truth.

    Parameters
    ----------
    precision, anti
        Share of item pairs on which the observed optimal ranking for precision, and that for
        anti-precision, agrees with the true one.
    relevant
        Share on which popularity and relevance agree.
    error
        Standard error of precision - anti, where it is known.

    Examples
    --------
    >>> from unskew.bias.reliability import from_truth
    >>> from_truth(0.64, 0.45, 0.69).family
    'true-positive metrics'
    """
    why = (
        f"The order that is best for observed precision agrees with the true one on "
        f"{precision:.1%} of item pairs, the order best for observed anti-precision on {anti:.1%}."
        f" Popularity and relevance agree on {relevant:.1%}."
    )
    apart = abs(precision - anti)
    if not math.isnan(error):
        why += f" The difference of {apart:.1%} has a standard error of {error:.1%} over items."
    if apart >= CLOSE and not apart < ERRORS * error:  # an unknown error does not count
        return Reliability(TRUE_POSITIVE if precision > anti else FALSE_POSITIVE, why)
    if apart >= CLOSE:
        return Reliability(NOT_IDENTIFIED, f"{why} That is too few items, or judgments, to tell.")
    if min(precision, anti) >= 0.5:
        return Reliability(EITHER, f"{why} Both follow the truth, and about as often.")
    return Reliability(
        NOT_IDENTIFIED, f"{why} Neither follows the truth on most pairs more often than the other."
    )


def without_truth(disagree: float, cases: Sequence[float], rated: float) -> Reliability:
    """Judge by mena2021 Lemma 3, which has two branches.

    Parameters
    ----------
    disagree
        Share of item pairs on which the optimal rankings for observed precision and
        anti-precision disagree.
    cases
        Shares of the four cases of Lemma 1.
    rated
        Share of pairs on which popularity and the average rating agree.

    Examples
    --------
    >>> from unskew.bias.reliability import without_truth
    >>> without_truth(0.82, [0.53, 0.08, 0.3, 0.09], 0.61).family
    'not identified'
    """
    if disagree < CLOSE:
        return Reliability(
            EITHER,
            f"The orders best for observed precision and anti-precision disagree on only "
            f"{disagree:.1%} of item pairs: popularity is too flat to set them apart.",
        )
    why = (
        f"The orders best for observed precision and anti-precision disagree on "
        f"{disagree:.1%} of item pairs, so at most one of them can be right there. Which one "
        f"depends on what users like among the items they did not rate, which ratings of items "
        f"that users chose cannot tell. "
        f"If the choice to rate depends on the item more than on liking it (mena2021 Lemma 3):"
    )
    return Reliability(
        NOT_IDENTIFIED,
        why,
        (
            f"if popular items are the ones that more users like: true-positive metrics are right. "
            f"{_steep(cases[0], cases[1], 'disliking', 'false')}",
            f"if popular items are the ones that fewer users like: false-positive metrics are "
            f"right. {_steep(cases[2], cases[3], 'liking', 'true')}",
            f"a hint, no proof: popularity and the average rating agree on "
            f"{rated:.1%} of pairs. If the choice to rate an item did not depend on liking it, as "
            f"where the items to rate were chosen at random, the average rating is the truth. "
            f"Otherwise judgments of random items (random=…) can tell.",
        ),
    )


def _steep(steeper: float, not_steeper: float, what: str, sign: str) -> str:
    """Say how often the exception of Lemma 3 is met, as far as ratings show."""
    total = steeper + not_steeper
    if total == 0:
        return f"No pair of items shows how often {sign}-positive metrics would be right too."
    return (
        f"On {steeper / total:.1%} of such pairs popularity is steeper than {what}, as rated, and "
        f"{sign}-positive metrics are wrong there."
    )
