"""`Paired`: one number per user and system, whatever the lists, strata and folds behind it.

The user is the unit of every comparison: lists of one user, and the same user in several folds, are
not independent. What is reported as a mean is the mean of these numbers.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
import polars as pl

from unskew.arrays import F64, I64, Mask
from unskew.checks import checked, choose
from unskew.data.ratings import Ids
from unskew.data.tables import Table, read_table
from unskew.errors import DataError, SettingError, UnskewError, unknown_name
from unskew.evaluation.notes import notes_of
from unskew.evaluation.scores import Scores
from unskew.metrics.names import Metric, parse
from unskew.report.text import counted
from unskew.stats.value_tables import UNNAMED, read_values

Source = Any
"""What `paired` takes: scores, scores of several folds, or a table of values per user."""
BETTER = ("higher", "lower", "neither")


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
        for part, place in zip(self.parts, self.places, strict=True):
            values, missing = _contributions(part, label, self.systems, place, len(self.users))
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

    @property
    def rules(self) -> list[str]:
        """What counts as liked, and what an undefined value counts, where the scores know it."""
        undefined = {"zero": "count as 0", "skip": "leave their user out"}
        lines = [one.relevance for one in self.parts if one.relevance]
        lines += [f"undefined values {undefined[one.undefined]}" for one in self.parts]
        return list(dict.fromkeys(lines))

    @cached_property
    def places(self) -> list[ListOwners]:
        """Where the lists of each part belong: the same for all metrics."""
        return [_owners(part, self.users) for part in self.parts]

    @property
    def order(self) -> tuple[str, ...]:
        """All labels, also of metrics that describe a whole run."""
        return self.parts[0].order

    def any_label(self, metric: str) -> str:
        """Return the label under which a metric was evaluated, also of a whole run's."""
        return self.parts[0]._label(metric)

    def direction(self, label: str) -> str:
        """Return `higher`, `lower` or `neither`."""
        return self.parts[0].metrics[label].better

    def means(self, label: str) -> list[float]:
        """Return the mean of every system; over folds the mean of their means."""
        parts = [part.mean(label) for part in self.parts]
        return [math.fsum(mean[name] for mean in parts) / len(parts) for name in self.systems]

    def label(self, metric: str) -> str:
        """Return the label under which a metric was evaluated."""
        label = self.any_label(metric)
        if label not in self.metrics:
            raise SettingError(
                f"{label} has no value per user that averages to its mean: it cannot be compared "
                f"user by user"
            )
        return label


@dataclass(frozen=True, eq=False)
class PairedValues(Paired):
    """Values per user that were not evaluated here."""

    values: Mapping[str, F64] = field(default_factory=dict)
    """Users x systems, by metric."""

    @property
    def order(self) -> tuple[str, ...]:
        """All labels."""
        return self.metrics

    def matrix(self, metric: str) -> F64:
        """Return users x systems."""
        return self.values[self.label(metric)].copy()

    def any_label(self, metric: str) -> str:
        """Return the label of a metric: its name as given, or another way to write it."""
        if metric in self.metrics:
            return metric
        wanted = known_metric(metric)
        label = next(
            (name for name in self.metrics if wanted and known_metric(name) == wanted), None
        )
        if label is None and self.metrics == (UNNAMED,):
            raise SettingError(
                f"these values have no metric name, so {metric!r} cannot be chosen; name them "
                f"with paired(values, metric={metric!r})"
            )
        if label is None:
            raise unknown_name("metric of these values", metric, self.metrics)
        return label

    def direction(self, label: str) -> str:
        """Return `higher`, `lower` or `neither`."""
        return self.better[label]

    def means(self, label: str) -> list[float]:
        """Return the mean of every system."""
        return [math.fsum(column) / len(column) for column in self.values[label].T.tolist()]


@checked
def paired(scores: Source, *, metric: str | None = None, better: str | None = None) -> Paired:
    """Pair systems user by user.

    Parameters
    ----------
    scores
        What `evaluate` gave, or a list of such for several folds or splits of the same systems.
        Users are those that the scores average (`users`); where systems differ in them, those
        that all have. Or values per user from elsewhere, in a data frame of any kind, a
        file or a mapping of column names to arrays: wide, a column `user` and a column per
        system; or long, columns `user` and `system` and a column per metric (as
        `Scores.per_user` gives them, whose users without test judgments are left out), or `user`,
        `system`, `metric` and `value`. Every user needs a value of every system.
    metric
        What the values of a wide table are values of, `value` unless said.
    better
        For values from elsewhere: whether `higher` or `lower` is better, or `neither`. Unless said,
        what is known of a metric of this name, else `higher`.

    Examples
    --------
    >>> import unskew as us
    >>> test = {"user": [1, 1, 2], "item": [10, 20, 30], "rating": [5, 2, 4]}
    >>> runs = {"a": {1: [20, 10], 2: [30]}, "b": {1: [10], 2: [20, 30]}}
    >>> us.stats.paired(us.evaluate(test, runs, "RR", liked=4)).matrix("RR").tolist()
    [[0.5, 1.0], [1.0, 0.5]]
    >>> us.stats.paired({"user": [2, 1], "a": [1.0, 0.5], "b": [0.5, 1.0]}).matrix("value").tolist()
    [[0.5, 1.0], [1.0, 0.5]]
    """
    evaluated = is_evaluated(scores)
    if evaluated and (metric is not None or better is not None):
        raise SettingError(
            "metric and better are for values from outside; scores already have them"
        )
    if isinstance(scores, Paired):
        return scores
    if not evaluated:
        return _from_values(as_table(scores), metric, better)
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
    seen, notes = [], notes_of({"": parts})
    for part in parts:
        keep = _kept(part)
        lost = max(int(part.averaged(name).sum()) for name in systems) - int(keep.sum())
        if lost:
            notes.append(f"{counted(lost, 'list')} that not all systems have left out")
        seen.append(part.user_ids.raw(np.unique(part.lists["user"].to_numpy()[keep])))
    users = Ids.number(pl.concat(seen).unique())[0] if len(seen) > 1 else Ids(seen[0].sort())
    if not len(users):
        raise DataError("no user has a value of every system")
    sides = {label: parts[0].metrics[label].better for label in metrics}
    return Paired(systems, metrics, sides, users, parts, tuple(dict.fromkeys(notes)))


def is_evaluated(scores: object) -> bool:
    """Return whether these are scores, scores of several folds, or paired values."""
    if isinstance(scores, Scores | Paired):
        return True
    return isinstance(scores, Sequence) and all(isinstance(one, Scores) for one in scores)


def as_table(source: object) -> Table:
    """Read a table that may be of any kind; say what else is taken where it is none."""
    if isinstance(source, Table):
        return source
    if isinstance(source, Sequence) and not isinstance(source, str):
        odd = next(one for one in source if not isinstance(one, Scores))
        raise DataError(
            f"a list is taken as the scores of several folds, and {type(odd).__name__} is none: "
            f"give what evaluate gave, or one table of values per user"
        )
    return read_table(source)


def _from_values(table: Table, metric: str | None, better: str | None) -> PairedValues:
    given = read_values(table)
    of = dict(given.of)
    if metric is not None:
        if list(of) != [UNNAMED]:
            raise SettingError(
                f"metric=… names values without a name; these are named: {', '.join(of)}"
            )
        of = {str(metric): of[UNNAMED]}
    if better is not None:
        choose("better", better, BETTER)
    sides = {name: better or _side(name) for name in of}
    return PairedValues(
        systems=given.systems,
        metrics=tuple(of),
        better=sides,
        users=given.users,
        parts=(),
        notes=given.notes,
        values=of,
    )


def known_metric(name: str) -> Metric | None:
    """Return the metric of this name, None if there is none."""
    try:
        return parse(name)
    except UnskewError:
        return None


def label_of(metric: str | None, labels: Sequence[str], what: str) -> str:
    """Return the label of a metric, however it is spelt; the first one unless given.

    Parameters
    ----------
    metric
        What was asked for.
    labels
        Those that there are.
    what
        How an error calls them, such as "metric of this result".
    """
    if metric is None:
        return labels[0]
    wanted = known_metric(metric)
    for label in labels:
        if label == metric or (wanted is not None and known_metric(label) == wanted):
            return label
    raise unknown_name(what, metric, labels)


def _side(name: str) -> str:
    metric = known_metric(name)
    return "higher" if metric is None else metric.better


def _kept(part: Scores) -> Mask:
    """Mark the lists that every system is averaged over."""
    keep: Mask = np.logical_and.reduce([part.averaged(name) for name in part.systems])
    return keep


@dataclass(frozen=True, eq=False)
class ListOwners:
    """The lists that every system is averaged over, and the number of each one's user."""

    keep: Mask
    owner: I64
    is_single: bool
    """Whether no user has two of them."""


def _owners(part: Scores, users: Ids) -> ListOwners:
    keep = _kept(part)
    owner = users.codes(part.user_ids.values)[part.lists["user"].to_numpy()[keep]]
    single = not owner.size or int(np.bincount(owner).max()) == 1
    return ListOwners(keep, owner.astype(np.int64), single)


def _contributions(
    part: Scores, label: str, systems: tuple[str, ...], place: ListOwners, users: int
) -> tuple[F64, Mask]:
    """Return what each user adds to each system's mean, times the number of users."""
    keep, owner = place.keep, place.owner
    row = part.labels.index(label)
    values = np.stack([part.systems[name].values[row][keep] for name in systems])
    undefined = np.isnan(values)
    missing = undefined.any(axis=0)
    values[undefined] = 0.0
    if part.undefined == "skip":
        values[:, missing] = 0.0
    else:
        missing[:] = False
    values *= list_weights(part, keep, ~missing)
    total = np.zeros((users, len(systems)))
    if place.is_single:
        total[owner] = values.T
    else:
        for column, of_system in enumerate(values):
            total[:, column] = np.bincount(owner, of_system, users)
    without = np.bincount(owner, ~missing, users) == 0
    known = np.bincount(owner, minlength=users) > 0
    return total * users, without & known


def list_weights(part: Scores, keep: Mask, defined: Mask) -> F64:
    """Return the weight of each kept list in the reported mean; they add up to 1."""
    count: F64 = defined.astype(np.float64)
    if part.over == "lists":
        total = max(float(count.sum()), 1.0)
        return count / total
    group = part.lists["user" if part.over == "users" else "stratum"].to_numpy()[keep]
    each: F64 = np.bincount(group, count).astype(np.float64)
    of_list: F64 = np.maximum(each[group], 1)
    return count / of_list / max(int(np.count_nonzero(each)), 1)
