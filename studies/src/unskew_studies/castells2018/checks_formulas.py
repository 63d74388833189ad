"""castells2018: its formulas checked exactly, on small tables of probabilities and a toy world."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from fractions import Fraction
from itertools import pairwise

import numpy as np

from unskew.arrays import F64, I32
from unskew.data.ratings import Ratings
from unskew.data.read.ratings_files import read_ratings
from unskew.evaluation.evaluate import evaluate
from unskew.splits.given import Given
from unskew.targets.designs import AllItems, Targets, TestTargets

_GRID = [Fraction(k, 12) for k in range(1, 12)]


def chance_of_test(tested: Fraction, trained: Fraction) -> Fraction:
    """Return p(test | liked, target, i) of Eq. 2 from p(test | liked, i) and p(train | liked, i).

    Parameters
    ----------
    tested, trained
        Both probabilities; they exclude each other.
    """
    return tested / (1 - trained)


def rises(values: Iterable[Fraction]) -> bool:
    """Return whether each value is larger than the one before.

    Parameters
    ----------
    values
        In order.
    """
    return all(a < b for a, b in pairwise(values))


def random_split_rises() -> bool:
    """Return whether Eq. 3 is what Eq. 2 gives, and rises with p(judged | liked, i)."""
    for share in _GRID:
        exact = [chance_of_test(share * p, (1 - share) * p) for p in _GRID]
        printed = [share * p / (1 - (1 - share) * p) for p in _GRID]
        if exact != printed or not rises(exact):
            return False
    return True


def flat_test(judged: Fraction, judged_if_liked: Fraction, tested: Fraction) -> Fraction:
    """Return p(test | liked, target, i) of a flat test: Eq. 2 with the split of Eq. 4.

    Parameters
    ----------
    judged, judged_if_liked
        p(judged | i) and p(judged | liked, i).
    tested
        p(test | i), the same for all items.
    """
    share = tested / judged
    return chance_of_test(judged_if_liked * share, judged_if_liked * (1 - share))


def flat_test_both_ways() -> bool:
    """Return whether Eq. 4 orders items as printed, and turns round as the paper says."""
    tested = Fraction(1, 24)
    pairs = [(q, p) for q in _GRID for p in _GRID]
    exact = {one: flat_test(*one, tested) for one in pairs}
    printed = {(q, p): 1 / (q * (1 / p - 1)) for q, p in pairs}
    same = rises_alike([exact[one] for one in pairs], [printed[one] for one in pairs])
    down = all(rises(exact[q, p] for q in reversed(_GRID)) for p in _GRID)
    return same and down and rises(exact[p, p] for p in _GRID)


def rises_alike(one: list[Fraction], other: list[Fraction]) -> bool:
    """Return whether two lists of values have the same order, ties included.

    Parameters
    ----------
    one, other
        Values of the same things.
    """
    return all(
        (a < c) == (b < d)
        for a, b in zip(one, other, strict=True)
        for c, d in zip(one, other, strict=True)
    )


def thinning_is_even() -> bool:
    """Return whether the sampling of section 5.2.2 is fair, and no larger one is.

    For every set of training shares: p(test | liked, not in training, i) is p (1-T) / (1-T p) for
    all items, no probability exceeds 1, and the item with the largest share keeps everything, so
    that it bounds the constant.
    """
    for p in _GRID:
        for most in range(1, len(_GRID) + 1):
            shares = _GRID[:most]
            top = shares[-1]
            keep = [(1 - top) / (1 - top * p) * (1 - t * p) / (1 - t) for t in shares]
            chances = [
                chance_of_test(p * (1 - t) * k, p * t) for t, k in zip(shares, keep, strict=True)
            ]
            wanted = p * (1 - top) / (1 - top * p)
            if set(chances) != {wanted} or max(keep) != 1 or keep[-1] != 1:
                return False
    return True


def printed_precision() -> tuple[Fraction, Fraction]:
    """Return p(liked | recommended) and what section 3.1 prints for it, on three pairs."""
    recommended, liked = {("u", "a"), ("u", "b")}, {("u", "a"), ("u", "c"), ("u", "d")}
    both = len(recommended & liked)
    return Fraction(both, len(recommended)), Fraction(both, len(liked))


def order_of_test_targets() -> dict[str, tuple[float, float]]:
    """Return P@1 over test targets, and over all items, of two systems in a world of six users.

    Item a is liked by users 1 to 4 and rated by all; b is liked by users 5 and 6, the only ones
    who rate it. All have c in training.
    """
    liked = [(user, "a" if user <= 4 else "b") for user in range(1, 7)]
    pairs = [(user, item) for user in range(1, 7) for item in "ab"]
    rated = [pair for pair in pairs if pair[1] == "a" or pair in liked]
    train = _ratings([(user, "c") for user in range(1, 7)], liked)

    def precision(tests: list[tuple[int, str]], targets: Targets) -> dict[str, float]:
        split = Given(test=_ratings(tests, liked)).split(train)[0]
        first = {"a": [1.0, 0.0, 0.0], "b": [0.0, 1.0, 0.0]}
        runs = {name: _same_for_all(scores) for name, scores in first.items()}
        scores = evaluate(targets.lists(split, liked=1.0), runs, "P@1", users="all")
        return {name: float(scores.values(name, "P@1").mean()) for name in runs}

    tested, true = precision(rated, TestTargets("fill")), precision(pairs, AllItems())
    return {name: (tested[name], true[name]) for name in tested}


def _ratings(pairs: list[tuple[int, str]], liked: list[tuple[int, str]]) -> Ratings:
    user, item = zip(*pairs, strict=True)
    return read_ratings(
        {"user": user, "item": item, "rating": [int(one in liked) for one in pairs]}
    )


def _same_for_all(scores: list[float]) -> Callable[[I32], F64]:
    return lambda users: np.tile(scores, (users.size, 1))
