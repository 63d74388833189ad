"""Orders within groups of rows, such as the ratings of each user."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from unskew.arrays import I32, I64, frozen
from unskew.engine.compiled import are_kernels_loaded
from unskew.engine.threads import map_blocks

GROUPS_PER_TASK = 4096
"""Groups per task: enough to hide the call, few enough to share the work."""
NUMPY_SORTS = 1_000_000
"""Up to so many rows, numpy has sorted before a kernel is loaded."""


def does_numpy_sort(rows: int) -> bool:
    """Tell whether numpy should sort so many rows: no kernel is loaded, and loading takes longer.

    The order is the same.
    """
    return rows <= NUMPY_SORTS and not are_kernels_loaded()


def grouped_order(group: I32, start: I64) -> I64:
    """Return the rows group by group, in their input order inside each."""
    if does_numpy_sort(group.size):
        return np.argsort(group, kind="stable")
    from unskew.data import kernels

    order = np.empty(group.size, np.int64)
    kernels.group_order(frozen(group), frozen(start), order)
    return order


def run_starts(*columns: NDArray[Any]) -> I64:
    """Return where each run of rows that are equal in all columns starts, and the end.

    Examples
    --------
    >>> import numpy as np
    >>> from unskew.data.groups import run_starts
    >>> run_starts(np.array([7, 7, 7, 8]), np.array([1, 1, 2, 2])).tolist()
    [0, 2, 3, 4]
    """
    is_start = np.zeros(columns[0].size + 1, np.bool_)
    is_start[[0, -1]] = True
    for column in columns:
        is_start[1:-1] |= column[1:] != column[:-1]
    return np.flatnonzero(is_start)


NO_TIES: I64 = frozen(np.zeros(0, np.int64))


def sort_groups(start: I64, key: NDArray[Any], tie: I64 = NO_TIES) -> tuple[I64, int]:
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
    if does_numpy_sort(key.size):
        group = np.repeat(np.arange(start.size - 1), np.diff(start))
        order = np.lexsort((tie, key, group) if tie.size else (key, group))
        changed = group[order != np.arange(order.size)]
        return order, np.unique(changed).size
    from unskew.data import kernels

    groups = start.size - 1
    order = np.empty(key.size, np.int64)
    blocks = range(0, groups, GROUPS_PER_TASK)

    def sort(low: int) -> int:
        high = min(low + GROUPS_PER_TASK, groups)
        return kernels.sort_within(frozen(start), key, tie, low, high, order)

    return order, sum(map_blocks(sort, blocks, size=key.size))
