"""`Paired`: one number per user and system, whatever the lists, strata and folds behind it.

The user is the unit of every comparison: lists of one user, and the same user in several folds, are
not independent. What is reported as a mean is the mean of these numbers.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, Protocol, runtime_checkable

import numpy as np
import polars as pl

from unskew.arrays import F64, I64, Mask
from unskew.checks import checked, choose
from unskew.data.ratings import Ids
from unskew.data.read.tables import DataTable, read_table
from unskew.data.user_groups import UserGroups
from unskew.engine.threads import map_blocks, resolve
from unskew.errors import DataError, SettingError, UnskewError, unknown_name
from unskew.evaluation.evaluate import METRICS, evaluate
from unskew.evaluation.notes import notes_of
from unskew.evaluation.scores import Scores
from unskew.judging.judged import Judged
from unskew.metrics.names import Metric, parse
from unskew.report.text import counted
from unskew.stats.clusters import GroupedValues
from unskew.stats.tests.randomisation import grid_of
from unskew.stats.value_tables import UNNAMED, read_values

Source = Any
"""What `paired` takes: scores, scores of several folds, or a table of values per user."""
BETTER = ("higher", "lower", "neither")


@runtime_checkable
class PlanResults(Protocol):
    """What a plan gave: the scores of each split of its one design."""

    def scores(self) -> list[Scores]:
        """Return the scores of each split."""

    def by_fold(self) -> Mapping[str, Scores]:
        """Return them by the label of the split."""

    def design_text(self) -> str:
        """Return the design in words."""


def scores_of(source: object) -> Any:
    """Return the scores of each split, of what a plan gave; anything else as it is."""
    return source.scores() if isinstance(source, PlanResults) else source


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
    groups: UserGroups | None = None
    """Groups of users that count as one: then `users` are groups, named after their first user."""
    people: Ids | None = None
    """The users of these groups."""
    code: I64 | None = None
    """The group of each of them."""

    def by_group(self, groups: UserGroups) -> Paired:
        """Return the same with groups of users in the place of users."""
        names, code = groups.of(self.users)
        return replace(self, users=names, people=self.users, groups=groups, code=code)

    def __len__(self) -> int:
        return len(self.users)

    def matrix(self, metric: str) -> F64:
        """Return users x systems: the mean over users is the mean that the scores report.

        Over folds it is the mean of the folds' means. Undefined values count as 0 or, where the
        scores skip them, leave their user out: a row of NaN. Of groups see `GroupedValues`.
        """
        grouped = self.grouped(metric)
        return self._by_user(self.label(metric)) if grouped is None else grouped.matrix

    def grouped(self, metric: str) -> GroupedValues | None:
        """Return the values of groups of users; None where users count."""
        if self.code is None:
            return None
        label = self.label(metric)
        return GroupedValues.of(self._by_user(label), self.code, label)

    def _by_user(self, label: str) -> F64:
        users = self.users if self.people is None else self.people
        total = np.zeros((len(users), len(self.systems)))
        skipped = np.zeros(len(users), np.bool_)
        for part, owners in zip(self.parts, self._places, strict=True):
            values, missing = _contributions(part, label, self.systems, owners, len(users))
            total += values
            skipped |= missing
        total /= len(self.parts)
        total[skipped] = np.nan
        return total

    def scaled(self, metric: str) -> tuple[F64, Mask]:
        """Return `matrix` with means over the users that are not left out, and who these are."""
        values = self.matrix(metric)
        is_complete: Mask = np.logical_not(np.isnan(values).any(axis=1))
        users = int(is_complete.sum())
        # Means over fewer users: what was scaled to all of them is scaled to these.
        if 0 < users < len(values):
            values *= users / len(values)
        return values, is_complete

    def complete(self, metric: str) -> F64:
        """Return the values of the users that are not left out."""
        values, is_complete = self.scaled(metric)
        return values if is_complete.all() else values[is_complete]

    @property
    def rules(self) -> list[str]:
        """What counts as liked, and what an undefined value counts, where the scores know it."""
        undefined = {"zero": "count as 0", "skip": "leave their user out"}
        lines = [part.relevance for part in self.parts if part.relevance]
        lines += [f"undefined values {undefined[part.undefined]}" for part in self.parts]
        return list(dict.fromkeys(lines))

    @cached_property
    def _places(self) -> list[ListOwners]:
        users = self.users if self.people is None else self.people
        return [_owners(part, users) for part in self.parts]

    @cached_property
    def places(self) -> list[ListOwners]:
        """Where the lists of each part belong: the same for all metrics."""
        code = self.code
        if code is None:
            return self._places
        return [replace(p, owner=code[p.owner], is_single=False) for p in self._places]

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
        return [math.fsum([mean[name] for mean in parts]) / len(parts) for name in self.systems]

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

    def _by_user(self, label: str) -> F64:
        return self.values[label].copy()

    def any_label(self, metric: str) -> str:
        """Return the label of a metric: its name as given, or another way to write it."""
        if metric in self.metrics:
            return metric
        parsed = known_metric(metric)
        label = next(
            (name for name in self.metrics if parsed and known_metric(name) == parsed), None
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
    pooled = {row for system in parts[0].systems.values() for row in system.den}
    metrics = tuple(label for row, label in enumerate(parts[0].labels) if row not in pooled)
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
    pairing = Paired(systems, metrics, sides, users, parts, tuple(dict.fromkeys(notes)))
    groups = parts[0].groups
    return pairing if groups is None else pairing.by_group(groups)


def is_evaluated(scores: object) -> bool:
    """Return whether these are scores, scores of several folds, or paired values."""
    if isinstance(scores, Scores | Paired):
        return True
    return isinstance(scores, Sequence) and all(isinstance(score, Scores) for score in scores)


def as_table(source: object) -> DataTable:
    """Read a table that may be of any kind; say what else is taken where it is none."""
    if isinstance(source, DataTable):
        return source
    if isinstance(source, Sequence) and not isinstance(source, str):
        odd = next(part for part in source if not isinstance(part, Scores))
        raise DataError(
            f"a list is taken as the scores of several folds, and {type(odd).__name__} is none: "
            f"give what evaluate gave, or one table of values per user"
        )
    return read_table(source)


def _from_values(table: DataTable, metric: str | None, better: str | None) -> PairedValues:
    table_values = read_values(table)
    of = dict(table_values.of)
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
        systems=table_values.systems,
        metrics=tuple(of),
        better=sides,
        users=table_values.users,
        parts=(),
        notes=table_values.notes,
        values=of,
    )


def known_metric(name: str) -> Metric | None:
    """Return the metric of this name, None if there is none."""
    try:
        return parse(name)
    except UnskewError:
        return None


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
    part: Scores, label: str, systems: tuple[str, ...], owners: ListOwners, users: int
) -> tuple[F64, Mask]:
    """Return what each user adds to each system's mean, times the number of users."""
    keep, owner = owners.keep, owners.owner
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
    if owners.is_single:
        total[owner] = values.T
    else:
        for column, of_system in enumerate(values):
            total[:, column] = np.bincount(owner, of_system, users)
    without = np.bincount(owner, ~missing, users) == 0
    has_lists = np.bincount(owner, minlength=users) > 0
    return total * users, without & has_lists


def list_weights(part: Scores, keep: Mask, defined: Mask) -> F64:
    """Return the weight of each kept list in the reported mean; they add up to 1."""
    count: F64 = defined.astype(np.float64)
    if part.over == "lists":
        total = max(float(count.sum()), 1.0)
        return count / total
    group = part.lists["user" if part.over == "users" else "stratum"].to_numpy()[keep]
    group_sizes: F64 = np.bincount(group, count).astype(np.float64)
    of_list: F64 = np.maximum(group_sizes[group], 1)
    return count / of_list / max(int(np.count_nonzero(group_sizes)), 1)


def paired_values(
    scores: Source, metric: str | Sequence[str] | None, threads: int | None
) -> tuple[Paired, Judged | None]:
    """Pair values by user; judged data are evaluated first, and returned."""
    judged = scores if isinstance(scores, Judged) else None
    if judged is not None:
        scores = evaluate(judged, METRICS if metric is None else metric, threads=threads)
    pairing = paired(scores)
    has_several = not all(owners.is_single for owners in pairing.places)
    unit = next((part.over for part in pairing.parts if part.over != "users"), None)
    if has_several and unit is not None:
        raise SettingError(
            f"some users have several lists, and these scores average over {unit}: groups of "
            "users need a value per user; evaluate with over='users'"
        )
    return pairing, judged


def values_of_users(pairing: Paired, label: str) -> F64:
    """Return users x systems; of several folds the mean of those in which the user has a value.

    NaN: the user has none.
    """
    if len(pairing.parts) < 2:
        return pairing.scaled(label)[0]
    total = np.zeros((len(pairing), len(pairing.systems)))
    count = np.zeros(len(pairing))
    for part in pairing.parts:
        alone = paired(part)
        values, is_complete = alone.scaled(label)
        values = values[:, [alone.systems.index(name) for name in pairing.systems]]
        codes = pairing.users.codes(alone.users.values)
        is_known = (codes >= 0) & is_complete
        total[codes[is_known]] += values[is_known]
        count[codes[is_known]] += 1
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.where(count[:, None] > 0, total / count[:, None], np.nan)


@dataclass(frozen=True, eq=False)
class Pairs:
    """Which systems are compared with which: numbers of the first and of the second."""

    first: I64
    second: I64

    def __len__(self) -> int:
        return self.first.size


def all_pairs(systems: int) -> Pairs:
    """Return every pair once, in the order of the systems."""
    first, second = np.triu_indices(systems, 1)
    return Pairs(first.astype(np.int64), second.astype(np.int64))


def pairs_with(against: str | None, systems: Sequence[str]) -> Pairs:
    """Return every other system compared with this one; every pair without one."""
    if against is None:
        return all_pairs(len(systems))
    if against not in systems:
        raise unknown_name("against", against, systems)
    index = list(systems).index(against)
    first = np.delete(np.arange(len(systems), dtype=np.int64), index)
    return Pairs(first, np.full(first.size, index, np.int64))


def users_left_out(counts: Mapping[str, int]) -> list[str]:
    """Say how many users are left out of each metric; nothing where none is."""
    names = ", ".join(f"{count:,} of {label}" for label, count in counts.items() if count)
    return [f"users left out because a value is undefined: {names}"] if names else []


@dataclass(frozen=True, eq=False)
class PairedSample:
    """Values of one metric: users x systems, in whole numbers of `unit`."""

    label: str
    values: F64
    """On the grid of `randomisation`; a row of zeros for a user that is left out."""
    unit: float
    tolerance: float
    """By how many units equal sums may differ."""
    included: Mask
    users: int
    means: F64
    """Of each system, over the kept users."""
    pairs: Pairs
    difference: F64
    """Mean of the first less mean of the second, of each pair, as what follows."""
    squares: F64
    """Sum of (d - mean d)²."""
    cubes: F64
    """Sum of (d - mean d)³."""
    constant: Mask
    """Whether the difference is the same for every user."""
    better: I64
    """Users whose value of the first system is greater; `worse`: smaller."""
    worse: I64

    @property
    def observed(self) -> F64:
        """The differences' sums over users, in units; exact."""
        total: F64 = self.values.sum(axis=0)
        result: F64 = total[self.pairs.first] - total[self.pairs.second]
        return result

    @property
    def sd(self) -> F64:
        """Standard deviation of the differences (n - 1); NaN with one user."""
        if self.users < 2:
            return np.full(len(self.pairs), np.nan)
        result: F64 = np.where(self.constant, 0.0, np.sqrt(self.squares / (self.users - 1)))
        return result

    @property
    def standard_error(self) -> F64:
        """Standard error of the mean difference."""
        return self.sd / math.sqrt(self.users)

    def differences(self, pair: int) -> F64:
        """Return the kept users' differences of a pair, in units."""
        first, second = int(self.pairs.first[pair]), int(self.pairs.second[pair])
        result: F64 = self.values[self.included, first] - self.values[self.included, second]
        return result

    def complete(self) -> F64:
        """Return the kept users' values, in units."""
        return self.values if self.users == self.included.size else self.values[self.included]


def sample(
    matrix: F64, pairs: Pairs, label: str = "values", threads: int | None = None
) -> PairedSample:
    """Make a sample of users x systems; rows with NaN are users that are left out.

    The matrix is taken over: it becomes the grid.
    """
    from unskew.stats import kernels

    matrix = np.ascontiguousarray(matrix, np.float64)
    is_complete: Mask = np.logical_not(np.isnan(matrix).any(axis=1))
    users = int(is_complete.sum())
    if not users:
        raise DataError(f"{label}: no user has a value of every system")
    matrix[~is_complete] = 0.0
    if not np.isfinite(matrix).all():
        raise DataError(f"{label}: infinite values cannot be compared")
    flags = is_complete.astype(np.uint8)
    means = np.empty(matrix.shape[1])
    kernels.means_of(matrix, flags, means)
    difference = means[pairs.first] - means[pairs.second]
    grid = grid_of(matrix)
    none = 0.5 * grid.unit  # a difference below half a step of the grid is none
    step = max(1, min(256, -(-len(pairs) // resolve(threads))))

    def moments_from(start: int) -> F64:
        part = slice(start, start + step)
        first, second = pairs.first[part], pairs.second[part]
        numbers = np.zeros((6, first.size))
        kernels.moments(matrix, flags, first, second, difference[part], none, numbers)
        return numbers

    size = len(pairs) * matrix.shape[0]
    parts = map_blocks(moments_from, range(0, len(pairs), step), threads, size)
    squares, cubes, lowest, highest, better, worse = np.concatenate(parts, axis=1)
    return PairedSample(
        label=label,
        values=grid.place(matrix),
        unit=grid.unit,
        tolerance=grid.tolerance(users),
        included=is_complete,
        users=users,
        means=means,
        pairs=pairs,
        difference=difference,
        squares=squares,
        cubes=cubes,
        constant=highest - lowest <= none,
        better=better.astype(np.int64),
        worse=worse.astype(np.int64),
    )
