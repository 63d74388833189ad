"""`list_popularity`: how popular lists are, against what their users rated and against chance."""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
import polars as pl

from unskew.arrays import F64, I32, I64, Mask
from unskew.bias.popularity.list_measures import (
    DIVISIONS,
    HEAD,
    LEAST_FOR_LEVEL,
    LEAST_HITS,
    LEAST_USERS,
    NONE,
    PER_USER,
    WHOLE,
    RunCounts,
    UserValues,
    gap_ends,
    lorenz_points,
    taste_nulls,
)
from unskew.checks import as_count, as_share, checked
from unskew.data.ratings import Ids
from unskew.errors import DataError, SettingError
from unskew.evaluation.chance import chance_scores
from unskew.evaluation.evaluate import labelled
from unskew.evaluation.scores import System
from unskew.evaluation.scoring import prepare, remarks, score
from unskew.judging.judge import as_judged, lists_of_design
from unskew.judging.judged import Judged
from unskew.judging.shape import Matched
from unskew.metrics.items import profile_means, tail_items
from unskew.recommend.simple import Random
from unskew.report.result import Result
from unskew.report.tables import Table
from unskew.report.text import counted, finite
from unskew.stats.segments import TASTES, segments_of
from unskew.targets.lists import TargetLists

ALL = "all users"
RANDOM_RUNS = 5
"""So many random runs are averaged for the chance value of the measures of a whole run."""
BY_GROUP = ("PopLift", "PercentileShift", "TailShift", "ExcessUPD")
"""What the printed table of groups shows."""


@dataclass(frozen=True, eq=False)
class ListPopularity(Result):
    """How popular the lists of systems are, for all users and by group. Made by `list_popularity`.

    Each value stands beside what chance gives and beside its null value: what lists would show that
    match the profiles of their users.
    """

    k: int
    systems: tuple[str, ...]
    groups: tuple[str, ...]
    """Groups of users; empty without `by`."""
    rule: str
    """How the groups are formed."""
    level: float
    rows: pl.DataFrame = field(repr=False)
    """See `table`."""
    differences: pl.DataFrame = field(repr=False)
    """See `gaps`."""
    curves: pl.DataFrame = field(repr=False)
    """See `lorenz`."""
    notes: tuple[str, ...] = ()

    def table(self) -> pl.DataFrame:
        """Return a row per system, measure and group.

        `users` with a value, `value`, its interval `low` to `high` over users like these (null
        where there is none), `chance` and `null`.
        """
        return self.rows

    def gaps(self) -> pl.DataFrame:
        """Return a row per system, per-user measure and pair of groups: `one` less `other`.

        The intervals of all pairs of a measure and system hold together (Bonferroni). `null` is
        the difference of the null values of groups by taste, which the profiles themselves form:
        it is not 0. Null for other groups, whose null difference is 0 (by popularity: not known).
        """
        return self.differences

    def lorenz(self) -> pl.DataFrame:
        """Return the Lorenz curve of exposure of every system and group.

        `items`: share of the catalogue, least shown items first; `exposure`: their share of all
        places in the lists.
        """
        return self.curves

    def display_tables(self, digits: int | None = None) -> list[Table]:
        """Return all measures of each system, and a few of them by group."""
        digits = self.digits if digits is None else digits
        tables = [self._overall(system, digits) for system in self.systems]
        return tables + [self._by_group(system, digits) for system in self.systems if self.groups]

    def _overall(self, system: str, digits: int) -> Table:
        part = self.rows.filter(system=system, group=ALL)
        header = ["measure", "users", "value", f"{self.level:.0%} interval".replace("%", " %"),
                  "chance", "null"]  # fmt: skip
        rows = [
            [
                f"{row['measure']}@{self.k}",
                row["users"],
                row["value"],
                _interval(row["low"], row["high"], digits),
                row["chance"],
                row["null"],
            ]
            for row in part.iter_rows(named=True)
        ]
        return Table.of_rows(header, rows, left=(0,), title=system, digits=digits)

    def _by_group(self, system: str, digits: int) -> Table:
        part = self.rows.filter(system=system)
        rows = []
        for group in (*self.groups, ALL):
            by_measure = {
                row["measure"]: row for row in part.filter(group=group).iter_rows(named=True)
            }
            cells = [by_measure[name][end] for name in BY_GROUP for end in ("value", "null")]
            rows.append([group, by_measure["PopLift"]["users"], *cells])
        header = ["group", "users"]
        header += [name for measure in BY_GROUP for name in (f"{measure}@{self.k}", "null")]
        title = f"{system} by group"
        return Table.of_rows(header, rows, left=(0,), title=title, digits=digits)

    def _summary(self) -> str:
        return f"{counted(len(self.systems), 'system')}, lists of {self.k}"

    def _explanation(self) -> list[str]:
        lines = [
            "interval: of the mean over users like these, with their lists and profiles as given; "
            f"none of the Gini index, of fewer than {LEAST_USERS} users (PopPercentile: "
            f"{LEAST_FOR_LEVEL}), and of PopRSP and PopREO "
            f"with fewer than {LEAST_HITS} users who get an item of the head, or of the tail",
            "null: what lists show that are random samples of their users' taste; of PopREO, that "
            "hit as many liked items of head and tail at random; of PopRSP, that list as much of "
            "the tail as the profiles hold",
        ]
        if set(self.groups) & set(TASTES):
            lines.append(
                "null of groups by taste: list and profile put together, divided and grouped "
                f"again at random, mean of {DIVISIONS} divisions; it is not 0, because the groups "
                "are formed by the same profiles"
            )
        return [*lines, *([self.rule] if self.rule else [])]

    def _content(self) -> Mapping[str, object]:
        return {
            "k": self.k,
            "level": self.level,
            "measures": self.rows.to_dicts(),
            "gaps": self.differences.to_dicts(),
        }


def _interval(low: float | None, high: float | None, digits: int) -> str:
    if low is None or high is None:
        return "–"
    return f"{low:.{digits}f} to {high:.{digits}f}".replace("-", "−")


@checked
def list_popularity(
    judgments: object,
    runs: object = None,
    *,
    k: int = 10,
    by: object = "taste",
    level: float = 0.95,
    liked: float | None = None,
    train: object = None,
    items: object = None,
    seed: int = 0,
) -> ListPopularity:
    """Measure how popular lists are, against the profiles of their users and against chance.

    Parameters
    ----------
    judgments, runs
        Judged data (`judge`) alone, or test ratings and ranked lists by system. Training ratings
        are needed: they are the profiles.
    k
        Lists are cut here.
    by
        Groups of users, as `compare` takes them: `taste` (niche, diverse, blockbuster),
        `activity`, `popularity`, `time`, `FILE:COLUMN` or a table; None for all users alone.
    level
        Of the intervals.
    liked, train, items
        Of raw data, see `judge`.
    seed
        Of the random runs behind the chance values of PopRSP, PopREO, Gini and ExcessUPD.

    Examples
    --------
    >>> import unskew as us
    >>> train = {"user": [1, 1, 2, 2, 3, 3], "item": ["a", "b", "a", "c", "a", "d"]}
    >>> test = {"user": [1, 2], "item": ["c", "b"]}
    >>> result = us.bias.list_popularity(
    ...     test, {"mine": {1: ["c"], 2: ["b"]}}, train=train, k=1, by=None
    ... )
    >>> row = result.table().row(0, named=True)
    >>> row["measure"], row["users"], row["value"], row["null"]
    ('PopLift', 2, -0.5, 0.0)
    """
    data = as_judged(judgments, runs, seed=seed, liked=liked, train=train, items=items)
    depth, share = as_count("k", k), float(as_share("level", level))
    if data.train is None:
        raise DataError("the popularity of lists needs the training ratings: give train=…")
    if data.targets is not None and len(np.unique(data.owner)) < len(data.owner):
        raise SettingError(
            "the popularity of lists needs one list per user, and these target lists have several"
        )
    per_user = {
        measure: labelled(f"{measure}@{depth}")[f"{measure}@{depth}"] for measure in PER_USER
    }
    metrics = {**per_user, **labelled([f"{measure}@{depth}" for measure in WHOLE])}
    data = prepare(data, metrics)
    notes = [*data.read, *remarks(data, {"PopLift": per_user["PopLift"]}, "with-list")]
    people = Ids(data.users.raw(np.unique(data.owner[data.with_list])))
    if not len(people):
        raise DataError("no user has a list: there is nothing to measure")
    code, names, rule = _groups(people, by, data)
    of_list = people.codes(data.users.values)[data.owner]
    masks = _masks(of_list, code, names)
    scored = score(data.basis, data.matched, per_user, threads=1, budget=1 << 28)
    chance = _ChanceValues.of(data, per_user, depth, seed, people, code, names)
    tail = profile_means(data.basis, tail_items(data.basis.popularity, HEAD).astype(np.float64))
    parts: list[pl.DataFrame] = []
    gaps: list[dict[str, object]] = []
    curves: list[dict[str, object]] = []
    for name, matched in data.matched.items():
        values = _user_values(scored[name])
        counts = RunCounts(data.basis, matched, depth)
        nulls = _group_nulls(by, names, data, matched, depth, masks[ALL], seed)
        for group, lists in masks.items():
            rows = _rows(values, counts, lists, tail, share, nulls.get(group, {}))
            parts.append(_frame(name, group, rows, chance.values[group]))
            points = lorenz_points(counts.exposure(lists))
            curves += [
                {"system": name, "group": group, "items": x, "exposure": y} for x, y in points
            ]
        gaps += _gaps(name, values, {key: masks[key] for key in names}, share, nulls)
        notes += _left_out(name, values, masks[ALL])
    return ListPopularity(
        k=depth,
        systems=tuple(data.matched),
        groups=names,
        rule=rule,
        level=share,
        rows=pl.concat(parts),
        differences=pl.DataFrame(gaps, schema=_GAPS),
        curves=pl.DataFrame(curves),
        notes=tuple(dict.fromkeys([*notes, chance.note])),
    )


MeasureRow = tuple[str, int, float, float, float, float]
_GAPS = {
    "system": pl.String,
    "measure": pl.String,
    "one": pl.String,
    "other": pl.String,
    "difference": pl.Float64,
    "low": pl.Float64,
    "high": pl.Float64,
    "null": pl.Float64,
}


def _group_nulls(
    by: object,
    names: tuple[str, ...],
    data: Judged,
    matched: Matched,
    k: int,
    lists: Mask,
    seed: int,
) -> dict[str, dict[str, float]]:
    """Return the null values of groups that the profiles themselves form; else of no group."""
    if by == "popularity":
        return {name: dict.fromkeys(PER_USER, math.nan) for name in names}
    if by != "taste":
        return {}
    train = data.basis.train
    assert train is not None
    trained = lists & (matched.depth > 0) & (np.diff(train.start)[data.owner] > 0)
    nulls = taste_nulls(data.basis, matched, k, HEAD, trained, seed)
    return {name: nulls[TASTES.index(name)] for name in names if name in TASTES}


def _groups(people: Ids, by: object, data: Judged) -> tuple[I64, tuple[str, ...], str]:
    """Return the group of each user, the names of groups and the rule."""
    if by is None:
        return np.zeros(len(people), np.int64), (), ""
    segments = segments_of(people, by, judged=data)
    return segments.code, segments.names, segments.rule


def _masks(of_list: I32 | I64, code: I64, names: tuple[str, ...]) -> dict[str, Mask]:
    """Return which lists belong to each group, and to anybody."""
    group = np.where(of_list >= 0, np.append(code, -1)[of_list], -1)
    return {**{name: group == number for number, name in enumerate(names)}, ALL: of_list >= 0}


def _user_values(system: System) -> UserValues:
    """Take apart what was scored: the measures, and what divides PopLift."""
    values = dict(zip(PER_USER, system.values, strict=True))
    return UserValues(values, system.den[PER_USER.index("PopLift")])


def _rows(
    values: UserValues,
    counts: RunCounts,
    lists: Mask,
    tail: F64,
    level: float,
    nulls: Mapping[str, float],
) -> list[MeasureRow]:
    """Return measure, users, value, interval and null value of a group of users."""
    rows: list[MeasureRow] = []
    for measure in PER_USER:
        users = int(values.known(measure, lists).sum())
        null = nulls[measure] if measure in nulls else values.null(measure, lists)
        ends = values.ends(measure, lists, level)
        rows.append((measure, users, values.mean(measure, lists), *ends, null))
    users = int((lists & counts.listed).sum())
    for measure in WHOLE:
        ends, null = counts.ends(measure, lists, level), counts.null(measure, lists, tail)
        rows.append((measure, users, counts.value(measure, lists), *ends, null))
    return rows


def _frame(
    system: str, group: str, rows: list[MeasureRow], chance: Mapping[str, float]
) -> pl.DataFrame:
    content = [
        (system, measure, group, users, *numbers, chance[measure], null)
        for measure, users, *numbers, null in rows
    ]
    floats = ("value", "low", "high", "chance", "null")
    schema = {"system": pl.String, "measure": pl.String, "group": pl.String, "users": pl.Int64}
    frame = pl.DataFrame(content, {**schema, **dict.fromkeys(floats, pl.Float64)}, orient="row")
    return frame.with_columns(pl.col(floats).fill_nan(None))


def _gaps(
    system: str,
    values: UserValues,
    masks: Mapping[str, Mask],
    level: float,
    nulls: Mapping[str, Mapping[str, float]],
) -> list[dict[str, object]]:
    """Return the differences between all pairs of groups that have values."""
    gaps: list[dict[str, object]] = []
    for measure in PER_USER:
        linear = {name: values.linear(measure, lists) for name, lists in masks.items()
                 if values.known(measure, lists).any()}  # fmt: skip
        pairs = list(itertools.combinations(linear, 2))
        for first, second in pairs:
            is_small = min(linear[first].size, linear[second].size) < LEAST_FOR_LEVEL
            interval = NONE
            if not (is_small and measure == "PopPercentile"):
                interval = gap_ends(linear[first], linear[second], 1 - (1 - level) / len(pairs))
            difference = values.mean(measure, masks[first]) - values.mean(measure, masks[second])
            null = None
            if first in nulls and second in nulls:
                null = nulls[first][measure] - nulls[second][measure]
            numbers = finite([difference, *interval, null])
            row = (system, measure, first, second, *numbers)
            gaps.append(dict(zip(_GAPS, row, strict=True)))
    return gaps


def _left_out(system: str, values: UserValues, lists: Mask) -> list[str]:
    lost = int(lists.sum()) - int(values.known("UPD", lists).sum())
    if not lost:
        return []
    users = counted(lost, "user has", "users have")
    return [f"{system}: {users} no list or no training ratings, and no value of a user's measures"]


@dataclass(frozen=True, eq=False)
class _ChanceValues:
    """What random orders of the targets give, by group and measure."""

    values: dict[str, dict[str, float]]
    note: str

    @classmethod
    def of(
        cls,
        data: Judged,
        per_user: Mapping[str, object],
        k: int,
        seed: int,
        people: Ids,
        code: I64,
        names: tuple[str, ...],
    ) -> _ChanceValues:
        """Put the targets of each list in random order; all items where targets are not known."""
        lists = data.targets
        note = "chance: a random order of the same targets"
        if lists is None:
            lists = lists_of_design("all-items", data.tests, data.train, data.relevance, seed)
            note = "chance: a random order of all items that the user did not rate in training"
        masks = _masks(people.codes(lists.tests.users.values)[lists.user], code, names)
        labels = {measure: labelled(f"{measure}@{k}")[f"{measure}@{k}"] for measure in per_user}
        system, _ = chance_scores(Judged.of_lists(lists, {}), labels, depth=k, seed=seed)
        users = _user_values(system)
        runs = _random_runs(lists, k, seed)
        values = {
            group: {measure: users.mean(measure, mask) for measure in PER_USER}
            | {
                measure: float(np.mean([run.value(measure, mask) for run in runs]))
                for measure in WHOLE
            }
            for group, mask in masks.items()
        }
        return cls(values, f"{note}; of PopRSP, PopREO and Gini the mean of {RANDOM_RUNS} orders")


def _random_runs(lists: TargetLists, k: int, seed: int) -> list[RunCounts]:
    models = {str(n): Random().fit(lists.train, seed + n) for n in range(RANDOM_RUNS)}
    metrics = labelled([f"{measure}@{k}" for measure in WHOLE])
    data = prepare(Judged.of_lists(lists, models, depth=k), metrics)
    return [RunCounts(data.basis, matched, k) for matched in data.matched.values()]
