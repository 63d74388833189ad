"""What lists show to whom: coverage, Gini and popularity, as a value per user.

Coverage and Gini are of a whole run. Taking one user out tells how much that user moves them (the
jackknife): a run's value plus n times what the user adds to it, less the mean of that, is a value
per user whose mean is the run's value and whose standard error is the jackknife's.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from unskew.arrays import F64, I32, Mask


@dataclass(frozen=True, eq=False)
class Slots:
    """The filled places of the first k of some users' lists."""

    users: int
    owner: I32
    """Of each place: the user, by a number below `users`."""
    item: I32

    def of_users(self, chosen: Mask) -> Slots:
        """Return the places of some users, numbered anew."""
        if chosen.all():
            return self
        keep = chosen[self.owner]
        number = np.cumsum(chosen, dtype=np.int32) - 1
        return Slots(int(chosen.sum()), number[self.owner[keep]], self.item[keep])


def coverage_values(slots: Slots, catalogue: Mask) -> F64:
    """Return the share of the catalogue that is shown to anyone, as a value per user.

    Taking a user out loses the items that nobody else is shown.

    Examples
    --------
    >>> import numpy as np
    >>> from unskew.auditing.gate_exposure import Slots, coverage_values
    >>> slots = Slots(3, np.array([0, 0, 1, 2]), np.array([0, 1, 1, 1]))
    >>> coverage_values(slots, np.ones(4, np.bool_)).tolist()
    [1.0, 0.25, 0.25]
    """
    counts = _shown(slots, catalogue)
    size = max(int(catalogue.sum()), 1)
    alone = ((counts == 1) & catalogue).astype(np.float64)
    added = _by_user(slots, alone) / size
    return _centred(np.count_nonzero(counts) / size, added, slots.users)


def gini_values(slots: Slots, catalogue: Mask) -> F64:
    """Return the Gini coefficient of how often items are shown, as a value per user.

    An item that is shown once less falls to the lowest place among those shown as often; of a
    user's items these places are taken as they are before any of them falls.
    """
    counts = _shown(slots, catalogue)[catalogue]
    size, total = max(counts.size, 1), int(counts.sum())
    if not total:
        return np.zeros(slots.users)
    ascending = np.sort(counts)
    weights = 2 * np.arange(1, size + 1, dtype=np.int64) - size - 1
    top = int(np.dot(weights, ascending))
    first = np.bincount(counts).cumsum()  # how many items are shown at most so often
    lowest = np.where(counts > 0, first[np.maximum(counts - 1, 0)], 0)  # places below its group
    weight = np.zeros(catalogue.size)
    weight[catalogue] = 2.0 * (lowest + 1) - size - 1
    lost = _by_user(slots, weight)
    mine = _by_user(slots, catalogue.astype(np.float64))
    rest = np.maximum(total - mine, 1.0)
    value = top / (size * total)
    return _centred(value, value - (top - lost) / (size * rest), slots.users)


def popularity_values(slots: Slots, popularity: F64) -> F64:
    """Return the mean popularity of each user's items; 0 for an empty list."""
    filled = np.bincount(slots.owner, minlength=slots.users)
    return _by_user(slots, popularity) / np.maximum(filled, 1)


def _shown(slots: Slots, catalogue: Mask) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    counts = np.bincount(slots.item, minlength=catalogue.size)
    counts[~catalogue] = 0
    return counts


def _by_user(slots: Slots, of_item: F64) -> F64:
    sums: F64 = np.bincount(slots.owner, of_item[slots.item], slots.users).astype(np.float64)
    return sums


def _centred(value: float, added: F64, users: int) -> F64:
    return value + users * (added - added.mean()) if users else added
