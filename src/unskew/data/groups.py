"""Orders within groups of rows, such as the ratings of each user."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from unskew.arrays import I32, I64, frozen
from unskew.engine.threads import map_blocks

GROUPS_PER_TASK = 4096
"""Groups per task: enough to hide the call, few enough to share the work."""


def grouped_order(group: I32, start: I64) -> I64:
    """Return the rows group by group, in their input order inside each."""
    from unskew.data import kernels

    order = np.empty(group.size, np.int64)
    kernels.group_order(frozen(group), frozen(start), order)
    return order


def sort_groups(start: I64, key: NDArray[Any], tie: I64) -> tuple[I64, int]:
    """Return the order that sorts every group by (key, tie), and how many groups it changes.

    Parameters
    ----------
    start
        Where each group starts in `key`.
    key
        The sort key, group by group.
    tie
        What decides between equal keys; empty = their order as given.
    """
    from unskew.data import kernels

    groups = start.size - 1
    order = np.empty(key.size, np.int64)
    blocks = range(0, groups, GROUPS_PER_TASK)

    def sort(low: int) -> int:
        high = min(low + GROUPS_PER_TASK, groups)
        return kernels.sort_within(frozen(start), key, tie, low, high, order)

    return order, sum(map_blocks(sort, blocks, size=key.size))
