"""`Paired`: one number per user and system, whatever the lists, strata and folds behind it.

The user is the unit of every comparison: lists of one user, and the same user in several folds, are
not independent. What is reported as a mean is the mean of these numbers.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import polars as pl
from numpy.typing import NDArray

from unskew.data.ratings import Ids
from unskew.errors import DataError, SettingError
from unskew.scores import Scores

I32 = NDArray[np.int32]
F64 = NDArray[np.float64]
Mask = NDArray[np.bool_]

Source = Scores | Sequence[Scores]


@dataclass(frozen=True, eq=False)
class Paired:
    """The values of every system for the same users, metric by metric.

    Made by `paired`.
    """

    systems: tuple[str, ...]
    metrics: tuple[str, ...]
    """Labels of the metrics that have a value per user."""
    better: Mapping[str, str]
    """`higher`, `lower` or `neither`, by metric."""
    users: Ids
    parts: tuple[Scores, ...]
    notes: tuple[str, ...] = ()

    def __len__(self) -> int:
        return len(self.users)

    def matrix(self, metric: str) -> F64:
        """Return users x systems: the mean over users is the mean that the scores report.

        Over folds it is the mean of the folds' means. Undefined values count as 0 or, where the
        scores skip them, leave their user out: a row of NaN.
        """
        label = self.label(metric)
        total = np.zeros((len(self.users), len(self.systems)))
        skipped = np.zeros(len(self.users), np.bool_)
        for part in self.parts:
            values, missing = _contributions(part, label, self.systems, self.users)
            total += values
            skipped |= missing
        total /= len(self.parts)
        total[skipped] = np.nan
        return total

    def complete(self, metric: str) -> F64:
        """Return `matrix` without the users that are left out."""
        values = self.matrix(metric)
        kept = values[~np.isnan(values).any(axis=1)]
        # Means over fewer users: what was scaled to all of them is scaled to these.
        return kept * (len(kept) / len(values)) if len(kept) < len(values) else kept

    def label(self, metric: str) -> str:
        """Return the label under which a metric was evaluated."""
        label = self.parts[0]._label(metric)
        if label not in self.metrics:
            raise SettingError(
                f"{label} has no value per user that averages to its mean: it cannot be compared "
                f"user by user"
            )
        return label


def paired(scores: Source) -> Paired:
    """Pair systems user by user.

    Parameters
    ----------
    scores
        What `evaluate` gave, or a list of such for several folds or splits of the same systems.
        Users are those that the scores average (`users`); where systems differ in them, those
        that all have.

    Examples
    --------
    >>> import unskew as us
    >>> from unskew.comparing.paired import paired
    >>> test = {"user": [1, 1, 2], "item": [10, 20, 30], "rating": [5, 2, 4]}
    >>> runs = {"a": {1: [20, 10], 2: [30]}, "b": {1: [10], 2: [20, 30]}}
    >>> paired(us.evaluate(test, runs, "RR", liked=4)).matrix("RR").tolist()
    [[0.5, 1.0], [1.0, 0.5]]
    """
    parts = (scores,) if isinstance(scores, Scores) else tuple(scores)
    if not parts:
        raise SettingError("no scores to compare")
    systems = tuple(parts[0].systems)
    for part in parts[1:]:
        if set(part.systems) != set(systems) or part.order != parts[0].order:
            raise DataError(
                "the scores of several folds must be of the same systems and metrics: "
                f"{', '.join(systems)} against {', '.join(part.systems)}"
            )
    metrics = tuple(
        label
        for row, label in enumerate(parts[0].labels)
        if not any(row in system.den for system in parts[0].systems.values())
    )
    seen, notes = [], []
    for part in parts:
        keep = _kept(part)
        lost = max(int(part.averaged(name).sum()) for name in systems) - int(keep.sum())
        if lost:
            notes.append(f"{lost:,} lists that not all systems have are left out")
        seen.append(part.user_ids.raw(np.unique(part.lists["user"].to_numpy()[keep])))
    users = Ids.number(pl.concat(seen).unique())[0] if len(seen) > 1 else Ids(seen[0].sort())
    if not len(users):
        raise DataError("there is no user whom all systems have a value for")
    better = {label: parts[0].metrics[label].better for label in metrics}
    return Paired(systems, metrics, better, users, parts, tuple(dict.fromkeys(notes)))


def _kept(part: Scores) -> Mask:
    """Mark the lists that every system is averaged over."""
    keep: Mask = np.logical_and.reduce([part.averaged(name) for name in part.systems])
    return keep


def _contributions(
    part: Scores, label: str, systems: tuple[str, ...], users: Ids
) -> tuple[F64, Mask]:
    """Return what each user adds to each system's mean, times the number of users."""
    keep = _kept(part)
    row = part.labels.index(label)
    values = np.stack([part.systems[name].values[row] for name in systems], axis=1)[keep]
    missing = np.isnan(values).any(axis=1)
    values = np.where(np.isnan(values), 0.0, values)
    if part.undefined == "skip":
        values[missing] = 0.0
    else:
        missing[:] = False
    weight = _weights(part, keep, ~missing)
    owner = users.codes(part.user_ids.values)[part.lists["user"].to_numpy()[keep]]
    total = np.zeros((len(users), len(systems)))
    for column in range(len(systems)):
        total[:, column] = np.bincount(owner, values[:, column] * weight, len(users))
    without = np.bincount(owner, ~missing, len(users)) == 0
    known = np.bincount(owner, minlength=len(users)) > 0
    return total * len(users), without & known


def _weights(part: Scores, keep: Mask, defined: Mask) -> F64:
    """Return the weight of each kept list in the reported mean; they add up to 1."""
    count: F64 = defined.astype(np.float64)
    if part.over == "lists":
        total = max(float(count.sum()), 1.0)
        return count / total
    group = part.lists["user" if part.over == "users" else "stratum"].to_numpy()[keep]
    each: F64 = np.bincount(group, count).astype(np.float64)
    of_list: F64 = np.maximum(each[group], 1)
    return count / of_list / max(int(np.count_nonzero(each)), 1)
