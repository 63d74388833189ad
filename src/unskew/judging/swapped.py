"""Test ratings and ranked lists that stand in each other's place."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from unskew.arrays import I64, Mask
from unskew.data.ratings import Ratings
from unskew.errors import DataError
from unskew.runs import Run

_FEWEST_USERS = 5
_FEWEST_RANKS = 3


def check_not_swapped(tests: Ratings, runs: Mapping[str, Run], unknown: Mapping[str, Mask]) -> None:
    """Refuse ranked lists that are given as test ratings.

    Parameters
    ----------
    tests
        What is given as test ratings.
    runs
        What is given as ranked lists.
    unknown
        By system, which of its items occur neither in the test ratings nor elsewhere.
    """
    length = np.diff(tests.start)
    length = length[length > 0]
    if length.size < _FEWEST_USERS or "pooled" in tests.tags:
        return
    reason = ""
    if _are_ranks(tests, length):
        reason = "the values of each user are the ranks 1, 2, 3, …"
    elif length.min() == length.max() >= _FEWEST_RANKS:
        reason = _stranger(int(length[0]), runs, unknown)
    if reason:
        raise DataError(
            f"the test ratings look like ranked lists: {reason}. Are test ratings and lists "
            "swapped?"
        )


def _are_ranks(tests: Ratings, length: I64) -> bool:
    """Tell whether the values of each user are the numbers from 1 up, each once."""
    if length.min() < _FEWEST_RANKS or tests.implicit:
        return False
    order = np.lexsort((tests.value, tests.user))
    first = np.repeat(np.cumsum(length) - length, length)
    return bool((tests.value[order] == np.arange(len(tests)) - first + 1).all())


def _stranger(length: int, runs: Mapping[str, Run], unknown: Mapping[str, Mask]) -> str:
    """Name a run of lists of many lengths, of which most items are unknown to the test ratings."""
    for name, run in runs.items():
        depth = run.depth[run.depth > 0]
        share = float(unknown[name][run.item[run.item >= 0]].mean()) if run.item.size else 0.0
        if share > 0.5 and depth.size >= _FEWEST_USERS and depth.min() < depth.max():
            return (
                f"every user has {length} of them, while the lists of {name} have from "
                f"{depth.min()} to {depth.max()} items, {share:.0%} of which are not among the "
                "test items"
            )
    return ""
