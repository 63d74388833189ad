"""Designs that count: neither the same numbers as another one, nor numbers that tell nothing."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from unskew.evaluation.scores import Scores

ROUNDING = 5e-5
"""Means that differ by less look the same with four digits."""
LEAST_USERS = 2
"""Systems are compared by the values of at least so many users."""
MOST = 0.5
"""A share of lists above this one is most of them."""


@dataclass(frozen=True, eq=False, kw_only=True)
class LeftOut:
    """A design that was run and is not counted."""

    reason: str
    """`identical`, `degenerate` or, of given lists, `reach`."""
    why: str
    """The reason as a sentence."""
    same_as: str | None = None
    """The design with the same numbers."""
    scores: tuple[Scores, ...] = ()
    """Of each split."""


def left_out_designs(
    scores: Mapping[str, tuple[Scores, ...]], metric: str, k: int
) -> dict[str, LeftOut]:
    """Return the designs that do not count, by name.

    The first design is the common one: it is left out only where it is degenerate, and another
    one, which is not, has as many splits.

    Parameters
    ----------
    scores
        By design: of each split.
    metric
        The metric that orders the systems.
    k
        Its cutoff.
    """
    left: dict[str, LeftOut] = {}
    counted: list[str] = []
    for name, parts in scores.items():
        why = _degenerate(parts, metric, k)
        if why is not None:
            left[name] = LeftOut(reason="degenerate", why=why, scores=parts)
            continue
        twin = next((one for one in counted if _same(scores[one], parts, metric)), None)
        if twin is None:
            counted.append(name)
            continue
        why = (
            f"it gives every system the same {metric} as {twin} on every list, so the two count "
            "as one design"
        )
        left[name] = LeftOut(reason="identical", why=why, same_as=twin, scores=parts)
    common = next(iter(scores))
    if common in left and not any(len(scores[one]) == len(scores[common]) for one in counted):
        del left[common]
    return left


def _same(one: Sequence[Scores], other: Sequence[Scores], metric: str) -> bool:
    """Tell whether two designs give every list of every system the same value."""
    if len(one) != len(other):
        return False
    return all(
        a.lists["user"].equals(b.lists["user"])
        and all(
            np.array_equal(a.values(name, metric), b.values(name, metric), equal_nan=True)
            for name in a.systems
        )
        for a, b in zip(one, other, strict=True)
    )


def _degenerate(parts: Sequence[Scores], metric: str, k: int) -> str | None:
    """Return why a design tells little or nothing of the systems; None if it can tell more."""
    forced = lists = 0
    for number, part in enumerate(parts, start=1):
        if "train" not in part.lists.columns:
            break
        warm = (part.lists["train"].to_numpy() > 0) & (part.lists["test"].to_numpy() > 0)
        if np.count_nonzero(warm) < LEAST_USERS:
            return (
                f"in split {number}, fewer than {LEAST_USERS} users have both a training and a "
                "test rating"
            )
    for part in parts:
        if "targets" not in part.lists.columns:
            return None
        tested = part.lists["test"].to_numpy() > 0
        short = part.lists["targets"].to_numpy() <= k
        values = np.stack([part.values(name, metric) for name in part.systems])
        alike = ((values == values[0]) | (np.isnan(values) & np.isnan(values[0]))).all(axis=0)
        forced += int(np.count_nonzero(tested & short & alike))
        lists += int(np.count_nonzero(tested))
    if lists and forced / lists > MOST:
        return (
            f"{forced:,} of {lists:,} lists have at most {k} targets, so any order gives them "
            f"the same {metric}; only the other lists can tell systems apart"
        )
    chance = [part.random().get(metric, math.nan) for part in parts]
    means = [part.mean(metric) for part in parts]
    gaps = [
        abs(float(np.mean([mean[name] for mean in means])) - float(np.mean(chance)))
        for name in parts[0].systems
    ]
    if max(gaps) < ROUNDING:
        return f"every system scores the same as a random order ({float(np.mean(chance)):.4f})"
    return None
