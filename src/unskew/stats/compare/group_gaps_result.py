"""`GroupGaps`: means of groups of users, how far they are apart, how unequal users are."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np
import polars as pl

from unskew.arrays import F64, I64, Mask
from unskew.checks import choose
from unskew.errors import SettingError
from unskew.report.charts import Figure
from unskew.report.tables import Table
from unskew.report.text import counted, interval, number, p_value
from unskew.stats.compare.comparison import IN_WORDS
from unskew.stats.inequality import LEAST_OTHERS as INDEX_OTHERS
from unskew.stats.inequality import LEAST_USERS as INDEX_USERS
from unskew.stats.inequality import others
from unskew.stats.intervals.skewed import (
    Means,
    differences,
    intervals,
    means_of_sums,
    ratio_interval,
    sums_by_group,
)
from unskew.stats.metric_result import MetricResult
from unskew.stats.tests.group_shuffles import ShuffledGroups, shuffle_groups

LEAST_USERS = 20
"""A group with fewer users has no interval and no p."""
LEAST_OTHERS = 5
"""Neither an interval, if fewer of its users have a value that is not the most common one."""
REST = -1
"""In place of the second group: all users outside the first."""
RATIO = "ratio"
UNIDENTIFIED = "not identified"
NEGATIVE = "values below 0"
SMALL = "too few users"


@dataclass(frozen=True)
class GroupPair:
    """A group and what it is compared with."""

    one: int
    other: int = REST

    @property
    def turned(self) -> GroupPair:
        """The same two groups, seen from the other side."""
        return GroupPair(self.other, self.one)


@dataclass(frozen=True, eq=False)
class Sides:
    """Both sides of every comparison: systems x comparisons."""

    one: Means
    other: Means
    enough: F64
    """1 where both sides have enough users and values for an interval."""


@dataclass(frozen=True, eq=False)
class GroupData:
    """The values of one metric, users x systems, and the group of each user."""

    values: F64
    code: I64
    groups: int

    @property
    def sizes(self) -> F64:
        """Users of each group."""
        return np.bincount(self.code, minlength=self.groups).astype(np.float64)

    def others(self, member: Mask) -> list[int]:
        """Return, of each system, how many of these users' values are not the most common one."""
        values = self.values[member]
        return [others(column) for column in values.T]


def pairs_of(groups: int, against: str, reference: int | None) -> list[GroupPair]:
    """Return the comparisons of a request: with the rest, with one group, or of all pairs."""
    if reference is not None:
        return [GroupPair(group, reference) for group in range(groups) if group != reference]
    if against == "rest":
        return [GroupPair(group) for group in range(groups)]
    return [
        GroupPair(group, second) for group in range(groups) for second in range(group + 1, groups)
    ]


def against_best(data: GroupData, better: str, label: str) -> list[GroupPair]:
    """Return each group against the one with the best mean of a single system."""
    sign = {"higher": 1.0, "lower": -1.0}.get(better)
    if sign is None:
        raise SettingError(f"against='best': neither direction of {label} is better")
    means = np.bincount(data.code, data.values[:, 0], data.groups) / data.sizes
    best = int(np.argmax(sign * means))
    return [GroupPair(group, best) for group in range(data.groups) if group != best]


def independent(data: GroupData, pairs: Sequence[GroupPair]) -> int:
    """Return how many comparisons with enough users differ from each other."""
    enough = sum(min(_users(data, pair)) >= LEAST_USERS for pair in pairs)
    # Two groups against the rest are the same comparison twice.
    return min(enough, 1) if data.groups == 2 else enough


def _users(data: GroupData, pair: GroupPair) -> tuple[float, float]:
    """Return the number of users on both sides."""
    sizes = data.sizes
    here = float(sizes[pair.one])
    return here, float(sizes.sum()) - here if pair.other == REST else float(sizes[pair.other])


def sides_of(data: GroupData, pairs: Sequence[GroupPair]) -> Sides:
    """Return the means of both sides."""
    centre = np.ascontiguousarray(data.values.T).mean(axis=1)
    count, *sums = sums_by_group(data.values - centre, data.code, data.groups)
    powers = [count, *sums]
    first = [power[:, [pair.one for pair in pairs]] for power in powers]
    second = [
        np.stack(
            [
                power.sum(axis=1) - power[:, pair.one]
                if pair.other == REST
                else power[:, pair.other]
                for pair in pairs
            ],
            axis=1,
        )
        for power in powers
    ]
    enough = np.ones(first[0].shape)
    for column, pair in enumerate(pairs):
        here = data.code == pair.one
        there = ~here if pair.other == REST else data.code == pair.other
        for member in (here, there):
            too_few = member.sum() < LEAST_USERS
            enough[:, column] *= [not too_few and n >= LEAST_OTHERS for n in data.others(member)]
    one, other = (means_of_sums(*powers).plus(centre[:, None]) for powers in (first, second))
    return Sides(one, other, enough)


def gap_columns(sides: Sides, level: float, *, is_negative: bool) -> dict[str, object]:
    """Return differences and ratios of one system with their intervals, each at this level.

    Columns of a table, a row per comparison; NaN where there is no interval.
    """
    one, other = sides.one.pick(0), sides.other.pick(0)
    enough, gaps = sides.enough[0] > 0, differences(one, other)
    low, high = (np.where(enough, end, np.nan) for end in intervals(gaps, level))
    ratios, kinds = np.full((3, enough.size), np.nan), []
    for pair in range(enough.size):
        kind = NEGATIVE if is_negative else SMALL
        if enough[pair] and not is_negative:
            first, second = one.pick(pair), other.pick(pair)
            limits = ratio_interval(first, second, level)
            kind = UNIDENTIFIED if np.isinf(limits[1]) else RATIO
            if kind == RATIO:
                ratios[:, pair] = (float(first.mean / second.mean), *limits)
        kinds.append(kind)
    return {
        "users": one.count.astype(np.int64),
        "users_against": other.count.astype(np.int64),
        "mean": one.mean,
        "mean_against": other.mean,
        "difference": gaps.value,
        "low": low,
        "high": high,
        **dict(zip(("ratio", "ratio_low", "ratio_high"), ratios, strict=True)),
        "ratio_kind": kinds,
    }


def p_of_pairs(
    data: GroupData,
    pairs: Sequence[GroupPair],
    shuffled: ShuffledGroups,
    seed: int,
    threads: int | None,
) -> F64:
    """Return p of each comparison, systems x comparisons; NaN where a side has too few users.

    Users of two groups that are compared change places among themselves.
    """
    p = np.full((data.values.shape[1], len(pairs)), np.nan)
    for column, pair in enumerate(pairs):
        if min(_users(data, pair)) < LEAST_USERS:
            continue
        if pair.other == REST:
            p[:, column] = shuffled.p[:, pair.one]
            continue
        member = (data.code == pair.one) | (data.code == pair.other)
        code = (data.code[member] == pair.other).astype(np.int64)
        key = ("pair", min(pair.one, pair.other), max(pair.one, pair.other))
        pair_test = shuffle_groups(
            data.values[member], code, 2, key=key, seed=seed, threads=threads
        )
        p[:, column] = pair_test.p[:, 0]
    return p


FIGURES = ("groups",)


@dataclass(frozen=True, eq=False)
class GroupGaps(MetricResult):
    """Groups of users on every metric, system by system. Made by `group_gaps`."""

    kind: ClassVar[str] = "these gaps"

    by: str
    """What users are divided by, in words."""
    rule: str
    """How the groups are formed."""
    groups: tuple[str, ...]
    against: str
    """What each group is compared with: `rest`, `best`, `pairs` or the name of a group."""
    correction: str | None
    confidence: float
    """Of all intervals of a kind and metric together."""
    epsilon: float
    """Of Atkinson's index."""
    shuffles: int
    is_shuffled: bool
    """Whether p-values allow for the shuffles; else they are those of Student's t."""
    seed: int
    means: pl.DataFrame = field(repr=False)
    """See `group_means`."""
    rows: pl.DataFrame = field(repr=False)
    """See `table`."""
    indices: pl.DataFrame = field(repr=False)
    """See `summary`."""
    notes: tuple[str, ...] = ()

    def table(self, metric: str | None = None) -> pl.DataFrame:
        """Return a row per metric, system and comparison of two groups.

        `group` and `against` with `users`, `users_against`, `mean`, `mean_against`; `difference`
        with its interval `low`, `high`; `ratio` with `ratio_low`, `ratio_high`, and `ratio_kind`,
        which says why there is none; `p`, `p_corrected`, `significant`. Null: see `ratio_kind`.
        """
        return self._of(self.rows, metric)

    def group_means(self, metric: str | None = None) -> pl.DataFrame:
        """Return a row per metric, system and group: `users`, `mean`, interval `low`, `high`.

        `varied_users` counts the users whose value is not the most common one.
        """
        return self._of(self.means, metric)

    def summary(self, metric: str | None = None) -> pl.DataFrame:
        """Return a row per metric and system.

        `p` of the hypothesis that all groups have the same mean; `worst_group`, its mean
        `worst_mean`, the interval `worst_low`, `worst_high` of the worst of all true means, and
        the groups that `may_be_worst`; `gini` and `atkinson` across users with intervals, across
        groups beside their mean value when users are shuffled (`…_chance`).
        """
        return self._of(self.indices, metric)

    # Text

    def display_tables(self, digits: int | None = None) -> list[Table]:
        """Return, of each metric, means, gaps, and what is said of all groups together."""
        digits = self.digits if digits is None else digits
        displays = (
            self._display_means,
            self._display_gaps,
            self._display_summary,
            self._display_indices,
        )
        return [display(label, digits) for label in self.metrics for display in displays]

    def _display_means(self, label: str, digits: int) -> Table:
        header = ["system", "group", "users", "mean", self._together]
        rows = [
            [
                row["system"],
                row["group"],
                f"{row['users']:,}",
                number(row["mean"], digits),
                interval(row["low"], row["high"], digits),
            ]
            for row in self.group_means(label).iter_rows(named=True)
        ]
        users = counted(int(self.summary(label)["users"][0]), "user")
        title = f"{self._heading(label)}, {users} by {self.by}"
        return Table.of_rows(header, rows, left=(0, 1), title=title, once=True)

    @property
    def _together(self) -> str:
        return f"{100 * self.confidence:g} % intervals"

    def _display_gaps(self, label: str, digits: int) -> Table:
        header = ["system", "group", "against", "difference", self._together]
        header += ["ratio", self._together, "p"]
        rows = []
        for row in self.table(label).iter_rows(named=True):
            ratio = ["–", row["ratio_kind"]]
            if row["ratio_kind"] == RATIO:
                limits = interval(row["ratio_low"], row["ratio_high"], digits)
                ratio = [number(row["ratio"], digits), limits]
            rows.append(
                [
                    *(row[name] for name in ("system", "group", "against")),
                    number(row["difference"], digits, signed=True),
                    interval(row["low"], row["high"], digits, signed=True),
                    *ratio,
                    p_value(row["p_corrected"]),
                ]
            )
        title = f"{label}: gaps between groups"
        return Table.of_rows(header, rows, left=(0, 1, 2), title=title, once=True)

    def _display_summary(self, label: str, digits: int) -> Table:
        header = ["system", "all groups equal: p", "worst group", "its mean"]
        header += [f"worst true mean, {100 * self.confidence:g} %", "may be the worst"]
        rows = [
            [
                row["system"],
                p_value(row["p_corrected"]),
                row["worst_group"] or "–",
                number(row["worst_mean"], digits),
                interval(row["worst_low"], row["worst_high"], digits),
                ", ".join(row["may_be_worst"] or ["–"]),
            ]
            for row in self.summary(label).iter_rows(named=True)
        ]
        return Table.of_rows(header, rows, left=(0, 2, 5), title=f"{label}: the worst group")

    def _display_indices(self, label: str, digits: int) -> Table:
        header = ["system", "index", "across users", f"{100 * self.confidence:g} % interval"]
        header += ["across groups", "by chance"]
        titles = {"gini": "Gini", "atkinson": f"Atkinson({self.epsilon:g})"}
        rows = [
            [
                row["system"],
                title,
                number(row[name], digits),
                interval(row[f"{name}_low"], row[f"{name}_high"], digits),
                number(row[f"group_{name}"], digits),
                number(row[f"group_{name}_chance"], digits),
            ]
            for row in self.summary(label).iter_rows(named=True)
            for name, title in titles.items()
        ]
        return Table.of_rows(header, rows, left=(0, 1), title=f"{label}: inequality", once=True)

    def _explanation(self) -> list[str]:
        return [
            self.rule,
            f"intervals: of the mean over the users from whom these are drawn; means, differences "
            f"and ratios of a metric each hold together at {100 * self.confidence:g} % "
            "(Bonferroni); t without skewness (Hall), ratios by Fieller",
            self._test_note(),
            f"no interval: fewer than {LEAST_USERS} users, or fewer than {LEAST_OTHERS} whose "
            f"value is not the most common one; no p: fewer than {LEAST_USERS} users",
            *self._ratio_notes(),
            f"worst group: of those with at least {LEAST_USERS} users; not told where one of these "
            "has no interval. The lowest of several estimates is too low on average (where lower "
            "is better, the highest too high); the interval of the worst true mean allows for it",
            f"Gini, Atkinson: of the values of users, in which chance of the single user counts as "
            f"inequality; each interval at {100 * self.confidence:g} % (jackknife), none with "
            f"fewer than {INDEX_USERS} users or {INDEX_OTHERS} whose value is not the most common "
            "one; across groups without interval, beside their mean when users change groups at "
            "random",
        ]

    def _ratio_notes(self) -> list[str]:
        kinds = self.rows["ratio_kind"]
        count = int((~kinds.is_in([RATIO, SMALL])).sum())
        if not count:
            return []
        return [
            f"{counted(count, 'ratio is', 'ratios are')} left out: the mean that divides cannot be "
            "told from 0 (not identified), or values are below 0"
        ]

    def _test_note(self) -> str:
        note = "p: Student's t without skewness"
        if self.is_shuffled:
            note = (
                f"p: permutation test, {self.shuffles:,} shuffles of users, of the studentised "
                "difference without skewness, or Student's t where its p is larger"
            )
        if self.correction is None:
            return f"{note}; not corrected"
        pairs = int(self.table(self.metrics[0])["p"].count())
        if len(self.groups) == 2 and self.against == "rest":
            pairs //= 2
        if self.against == "best":
            return f"{note}; corrected by {IN_WORDS[self.correction]} over all pairs of a metric"
        what = counted(pairs, "comparison")
        return f"{note}; corrected by {IN_WORDS[self.correction]} over {what} of a metric"

    def _numbers(self) -> Iterator[str]:
        yield from super()._numbers()
        yield counted(len(self.groups), "group")

    def _content(self) -> dict[str, object]:
        return self._fields(
            "better",
            "is_shuffled",
            "rows",
            "indices",
            "notes",
            metrics=self._facts(),
            shuffles=self.shuffles if self.is_shuffled else 0,
            gaps=self.rows,
            summary=self.indices,
            notes=self.notes,
        )

    def figure(self, kind: str = "groups", metric: str | None = None) -> Figure:
        """Draw the mean of each system in each group, with intervals that hold together.

        Parameters
        ----------
        kind
            `groups`.
        metric
            The first one unless given.
        """
        from unskew.report.charts import curves

        choose("figure", kind, FIGURES)
        label = self._label(metric)
        note = f"{100 * self.confidence:g} % intervals of all means together; users by {self.by}"
        return curves(self.group_means(label), "group", label, [note])
