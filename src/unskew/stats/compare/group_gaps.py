"""`group_gaps`: how far groups of users are apart, which is worst, how unequal users are."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from unskew.arrays import F64, I64, Mask
from unskew.checks import check_share, checked, choose
from unskew.engine.progress import Progress, Steps, notebook_progress
from unskew.errors import DataError, SettingError, unknown_name
from unskew.report.columns import (
    GROUP,
    HIGH,
    LOW,
    METRIC,
    NOTE,
    SYSTEM,
    TEST,
    USERS,
    VALUE,
    Column,
    Drawing,
    Method,
    Question,
)
from unskew.report.estimates import Estimates
from unskew.report.text import counted
from unskew.stats.compare.gaps import (
    HALL,
    LEAST_USERS,
    NO_INTERVAL,
    TOO_FEW,
    has_interval,
    limits_of,
    question_of_groups,
    range_of,
    shared_level,
    with_p_values,
)
from unskew.stats.corrections import CORRECTIONS, correct, corrected_by
from unskew.stats.inequality import LEAST_USERS as INDEX_USERS
from unskew.stats.inequality import atkinson, gini, group_atkinson, group_gini, others
from unskew.stats.intervals.skewed import (
    Means,
    differences,
    intervals,
    means_of_sums,
    of_means,
    ratio_interval,
    sums_by_group,
)
from unskew.stats.pairing import (
    Paired,
    Source,
    paired_values,
    users_left_out,
    values_of_users,
)
from unskew.stats.resampling import chosen_metrics
from unskew.stats.segments import Segmentation, segments_of
from unskew.stats.tests.group_shuffles import (
    MOST_SHUFFLED,
    ShuffledGroups,
    interaction,
    shuffle_groups,
)

AGAINST = ("rest", "best", "pairs")
REST = -1
"""In place of the second group: all users outside the first."""
UNIDENTIFIED = "not identified"
NEGATIVE = "values below 0"

_METHOD = Method(
    estimand="the mean of the users of a group, and how far groups are apart",
    interval=f"{HALL}, of ratios Fieller's",
    together="Bonferroni over means, over differences and over ratios of a metric",
)
GROUP_GAPS = question_of_groups(
    *(METRIC, SYSTEM, GROUP, Column("against_group", "key", "against")),
    unit=replace(USERS, hidden=True),
    facts=(
        *(Column("n_against", "count", hidden=True), Column("mean", "fact", hidden=True)),
        Column("mean_against", "fact", hidden=True),
    ),
    tests=TEST,
    name="gaps between groups",
    quantities=(Column("difference", "value", form="+"), Column("ratio", "value")),
    method=_METHOD,
    display=("means", "", "summary", "indices"),
    figures=(Drawing("groups", "points", "means"), Drawing("gaps", quantities=("difference",))),
)
GROUP_MEANS = Question(
    name="means of groups",
    columns=(
        *(METRIC, SYSTEM, GROUP, USERS, Column("varied", "count", hidden=True)),
        *(replace(VALUE, label="mean"), LOW, HIGH, NOTE),
    ),
    method=_METHOD,
)
"""`varied` counts the users whose value is not the most common one."""
WORST_GROUP = Question(
    name="the worst group",
    columns=(
        *(METRIC, SYSTEM, replace(USERS, hidden=True), Column("mean", "fact", hidden=True)),
        *(TEST[0], replace(TEST[1], label="all groups equal: p"), TEST[2]),
        *(Column("worst_group", "note", "worst group"), replace(VALUE, label="its mean")),
        *(LOW, HIGH, Column("may_be_worst", "names", "may be the worst")),
    ),
    method=replace(_METHOD, estimand="the worst of all true means of groups"),
)
INEQUALITY = Question(
    name="inequality",
    columns=(
        *(METRIC, SYSTEM, Column("index", "key"), replace(VALUE, label="across users"), LOW, HIGH),
        *(Column("across_groups", "fact", "across groups"), Column("chance", "fact", "by chance")),
    ),
    method=replace(_METHOD, estimand="how unequal the values of users are", interval="jackknife"),
)
"""`chance`: across groups, in the mean, when users change groups at random."""


@notebook_progress("group gaps")
@checked
def group_gaps(
    scores: Source,
    by: object,
    metrics: str | Sequence[str] | None = None,
    *,
    against: str = "rest",
    groups: int | None = None,
    least_users: int | None = None,
    correction: str | None = "holm",
    level: float = 0.95,
    epsilon: float = 0.5,
    seed: int = 0,
    threads: int | None = None,
    progress: Progress | None = None,
) -> Estimates:
    """Compare groups of users on every metric, system by system.

    Means of groups with intervals that hold together, differences and ratios between groups with
    intervals and permutation tests, the worst group, and how unequal users and groups are.

    Parameters
    ----------
    scores
        Judged data (`judge`), which are evaluated here; what `evaluate` gave, or a list of such
        for several folds; or values per user from elsewhere (see `paired`).
    by
        What divides users: as in `compare`, `activity`, `popularity`, `time`, `FILE:COLUMN` of a
        file of users, or a table with a column of users and one other column.
    metrics
        One or several labels; every metric that has a value per user unless given.
    against
        What each group is compared with: `rest`, the users outside it; `best`, the group with the
        best mean, which the data choose, so that everything is corrected for all pairs; `pairs`,
        every other group; or the name of a group.
    groups
        Into how many quantile groups numbers are cut, 4 unless given.
    least_users
        Groups of a text column with fewer users are merged into `other`; 20 unless given. Groups
        below 20 users are shown without interval and p.
    correction
        Correction for several groups and systems: `holm`, `bonferroni`, `bh`, `by` or none.

        Of p-values over all comparisons and systems of a metric.
    level
        Confidence level of the intervals.

        Of all intervals of a kind and metric together (Bonferroni), and of Gini and Atkinson each.
    epsilon
        Aversion to inequality of Atkinson's index, above 0 and below 1.
    seed
        Of the shuffles.
    threads
        Never changes a number.
    progress
        Called with how many metrics are done, of how many.

    Returns
    -------
    Estimates
        Rows by metric, system, group, the group it is compared with, and quantity: `difference` and
        `ratio`, with p of the difference. The parts: `means` of groups; `summary`, a row per
        system with p of equal means in all groups, the worst group, the interval of the worst true
        mean and the groups that may be the worst; `indices`, Gini and Atkinson across users.

    References
    ----------
    Hall (JRSS B 54, 1992): skewness of t. Zhou and Dinh (Biostatistics 6, 2005): of differences.
    Fieller (JRSS B 16, 1954): ratios. Janssen (Statistics & Probability Letters 36, 1997):
    studentised permutation. Atkinson (Journal of Economic Theory 2, 1970).

    Examples
    --------
    >>> import numpy as np
    >>> import polars as pl
    >>> import unskew as us
    >>> user = np.arange(200)
    >>> values = {"user": user, "mine": np.where(user % 2, 0.2, 0.5) + 0.1 * np.sin(user)}
    >>> side = {"user": user, "side": np.where(user % 2, "odd", "even")}
    >>> gaps = us.stats.group_gaps(values, side)
    >>> row = gaps.row(group="even", quantity="difference")
    >>> row.keys["against_group"], round(row.value, 4)
    ('rest', 0.3003)
    >>> gaps.parts["summary"].row(system="mine").facts["worst_group"]
    'odd'
    """
    if correction is not None:
        choose("correction", correction, CORRECTIONS)
    check_share("level", level)
    check_share("epsilon", epsilon)
    pairing, judged = paired_values(scores, metrics, threads)
    cut = {"groups": groups, "least_users": least_users}
    segments = segments_of(pairing.users, by, judged=judged, scores=pairing.parts, **cut)
    if against not in (*AGAINST, *segments.names):
        raise unknown_name("against", against, (*AGAINST, *segments.names))
    settings: dict[str, Any] = {
        "against": against,
        "correction": correction,
        "level": level,
        "epsilon": epsilon,
        "seed": seed,
    }
    labels = chosen_metrics(pairing, metrics)
    steps, cases, rows = Steps(len(labels), progress), [], list[dict[str, Any]]()
    parts: dict[str, list[dict[str, Any]]] = {"means": [], "summary": [], "indices": []}
    for label in labels:
        case = _GroupedMetric.of(pairing, label, segments, threads=threads, **settings)
        cases.append(case)
        keys, means = {"metric": label}, list(case.means())
        rows += [keys | row for row in case.gaps()]
        parts["means"] += [keys | row for row in means]
        parts["summary"] += [keys | row for row in case.summary(means)]
        parts["indices"] += [keys | row for row in case.indices()]
        steps.advance()
    lost = {grouped.label: len(pairing) - len(grouped.values) for grouped in cases}
    card = {
        "by": segments.by,
        "rule": segments.rule,
        "groups": segments.names,
        **settings,
        "better": {label: pairing.better[label] for label in labels},
    }
    questions = {"means": GROUP_MEANS, "summary": WORST_GROUP, "indices": INEQUALITY}
    return Estimates.of_rows(
        GROUP_GAPS,
        rows,
        method=_method(cases),
        explanation=(segments.rule, *_explanation(rows, epsilon)),
        notes=(*pairing.rules, *pairing.notes, *segments.notes, *users_left_out(lost)),
        parts={
            name: Estimates.of_rows(question, parts[name], level=level, card=card)
            for name, question in questions.items()
        },
        card=card,
    )


@dataclass(frozen=True, eq=False)
class _GroupedMetric:
    """The values of one metric, users x systems, and the group of each user."""

    label: str
    better: str
    systems: tuple[str, ...]
    names: list[str]
    """Of the groups."""
    values: F64
    code: I64
    against: str
    correction: str | None
    level: float
    epsilon: float
    seed: int
    threads: int | None

    @classmethod
    def of(
        cls, pairing: Paired, label: str, segments: Segmentation, against: str, **settings: Any
    ) -> _GroupedMetric:
        values = values_of_users(pairing, label)
        is_complete = ~np.isnan(values).any(axis=1)
        if not np.isfinite(values[is_complete]).all():
            raise DataError(f"{label}: infinite values cannot be compared")
        # Groups all of whose users are left out have nothing to show.
        used, code = np.unique(segments.code[is_complete], return_inverse=True)
        if used.size < 2:
            raise DataError(f"{label}: fewer than two groups have users with a value")
        names = [segments.names[group] for group in used.tolist()]
        if against not in (*AGAINST, *names):
            raise SettingError(f"against={against!r}: no user of it has a value of {label}")
        return cls(
            label=label,
            better=pairing.better[label],
            systems=pairing.systems,
            names=names,
            values=np.ascontiguousarray(values[is_complete]),
            code=code.astype(np.int64),
            against=against,
            **settings,
        )

    @cached_property
    def sizes(self) -> F64:
        """Users of each group."""
        return np.bincount(self.code, minlength=len(self.names)).astype(np.float64)

    @cached_property
    def _sums(self) -> tuple[F64, tuple[F64, ...]]:
        """The centre of each system's values; counts and power sums around it, by group."""
        centre = np.ascontiguousarray(self.values.T).mean(axis=1)
        return centre, sums_by_group(self.values - centre, self.code, len(self.names))

    @cached_property
    def group_means(self) -> Means:
        """Systems x groups."""
        centre, sums = self._sums
        return means_of_sums(*sums).plus(centre[:, None])

    @cached_property
    def shuffled(self) -> ShuffledGroups:
        """Each group against the rest when users change groups at random."""
        return self._shuffle(self.values, self.code, len(self.names), "rest")

    def _shuffle(self, values: F64, code: I64, groups: int, *key: object) -> ShuffledGroups:
        chance: Any = {"seed": self.seed, "epsilon": self.epsilon, "threads": self.threads}
        return shuffle_groups(values, code, groups, key=key, **chance)

    # Means

    def means(self) -> Iterator[dict[str, Any]]:
        """Give a row per system and group; intervals of all of them hold together."""
        number = int((self.sizes >= LEAST_USERS).sum()) * len(self.systems)
        low, high = intervals(of_means(self.group_means), shared_level(self.level, number))
        for index, group in np.ndindex(low.shape):
            values = self.values[self.code == group, index]
            limits = limits_of(low[index, group], high[index, group], *range_of(self.label))
            yield {
                "system": self.systems[index],
                "group": self.names[group],
                "n": values.size,
                "varied": others(values),
                "value": float(self.group_means.mean[index, group]),
                **(limits if has_interval(values) else {"note": TOO_FEW}),
            }

    # Gaps

    @cached_property
    def pairs(self) -> list[tuple[int, int]]:
        """The comparisons that are asked for: with the rest, with one group, or of all pairs."""
        groups = range(len(self.names))
        if self.against == "rest":
            return [(group, REST) for group in groups]
        if self.against in ("best", "pairs"):
            return [(group, second) for group in groups for second in groups[group + 1 :]]
        return self._with(self.names.index(self.against))

    def _with(self, reference: int) -> list[tuple[int, int]]:
        groups = range(len(self.names))
        return [(group, reference) for group in groups if group != reference]

    def _pairs_of(self, index: int) -> list[tuple[int, int]]:
        """Return the comparisons of a system: `best` is another group for each."""
        if self.against != "best":
            return self.pairs
        sign = {"higher": 1.0, "lower": -1.0}.get(self.better)
        if sign is None:
            raise SettingError(f"against='best': neither direction of {self.label} is better")
        means = np.bincount(self.code, self.values[:, index], len(self.names)) / self.sizes
        return self._with(int(np.argmax(sign * means)))

    def _members(self, pair: tuple[int, int]) -> tuple[Mask, Mask]:
        """Return the users on both sides."""
        first, second = pair
        here: Mask = self.code == first
        return here, ~here if second == REST else self.code == second

    @cached_property
    def enough(self) -> list[bool]:
        """Whether both sides of each comparison have enough users for a p."""
        users = [min(int(side.sum()) for side in self._members(pair)) for pair in self.pairs]
        return [count >= LEAST_USERS for count in users]

    @property
    def comparisons(self) -> int:
        """How many comparisons with enough users differ: two groups are one, not two."""
        return min(sum(self.enough), 1 if len(self.names) == 2 else len(self.pairs))

    def _p(self) -> F64:
        """Return p of each comparison, systems x comparisons; NaN where users are too few.

        Users of two groups that are compared change places among themselves.
        """
        p = np.full((len(self.systems), len(self.pairs)), np.nan)
        for column, (first, second) in enumerate(self.pairs):
            if not self.enough[column]:
                continue
            if second == REST:
                p[:, column] = self.shuffled.p[:, first]
                continue
            here, there = self._members((first, second))
            code = there[here | there].astype(np.int64)
            key = "pair", min(first, second), max(first, second)
            p[:, column] = self._shuffle(self.values[here | there], code, 2, *key).p[:, 0]
        # Two groups are one comparison, seen from both sides: one p, to the last digit.
        return np.broadcast_to(p[:, :1], p.shape) if len(self.names) == 2 else p

    def gaps(self) -> Iterator[dict[str, Any]]:
        """Give the difference and the ratio of each comparison, corrected over all of them."""
        number = len(self.pairs)
        tests = with_p_values(
            [{"quantity": "difference"}] * (len(self.systems) * number),
            self._p(),
            self.correction,
            self.level,
            groups=len(self.names),
        )
        column_of = {pair: column for column, pair in enumerate(self.pairs)}
        column_of |= {pair[::-1]: column for pair, column in column_of.items()}
        for index, system in enumerate(self.systems):
            pairs = self._pairs_of(index)
            for pair, rows in zip(pairs, self._gaps_of(index, pairs), strict=True):
                first, second = pair
                keys = {"system": system, "group": self.names[first]}
                keys["against_group"] = "rest" if second == REST else self.names[second]
                yield keys | rows[0] | tests[index * number + column_of[pair]]
                yield keys | rows[1]

    def _gaps_of(
        self, index: int, pairs: Sequence[tuple[int, int]]
    ) -> Iterator[tuple[dict[str, Any], dict[str, Any]]]:
        """Give the rows of each comparison of one system: difference and ratio."""
        level = shared_level(self.level, self.comparisons * len(self.systems))
        values = self.values[:, index]
        here, there = self._sides(index, pairs)
        gaps = differences(here, there)
        low, high = intervals(gaps, level)
        for column, pair in enumerate(pairs):
            first, second = here.pick(column), there.pick(column)
            facts = {
                "n": int(first.count),
                "n_against": int(second.count),
                "mean": float(first.mean),
                "mean_against": float(second.mean),
            }
            difference = {**facts, "value": float(gaps.value[column])}
            reason = NEGATIVE if values.min() < 0 else TOO_FEW
            ratio = {**facts, "quantity": "ratio", "note": reason}
            if not all(has_interval(values[side]) for side in self._members(pair)):
                yield {**difference, "note": TOO_FEW}, ratio
                continue
            difference |= limits_of(low[column], high[column])
            if reason != NEGATIVE:
                limits = ratio_interval(first, second, level)
                ratio["note"] = UNIDENTIFIED
                if not np.isinf(limits[1]):
                    numbers = {"value": float(first.mean / second.mean), **limits_of(*limits)}
                    ratio |= {**numbers, "note": ""}
            yield difference, ratio

    def _sides(self, index: int, pairs: Sequence[tuple[int, int]]) -> tuple[Means, Means]:
        """Return the means of both sides of each comparison."""
        centre, sums = self._sums
        powers = [power[index] for power in sums]
        here = [power[[first for first, _ in pairs]] for power in powers]
        there = [
            np.array([power.sum() - power[a] if b == REST else power[b] for a, b in pairs])
            for power in powers
        ]
        means = [means_of_sums(*sides).plus(centre[index]) for sides in (here, there)]
        return means[0], means[1]

    # All groups together

    def summary(self, means: Sequence[dict[str, Any]]) -> Iterator[dict[str, Any]]:
        """Give a row per system: the test of all groups, and the worst one."""
        test = interaction(self.values, self.code, seed=self.seed, threads=self.threads)
        p = test.p if self.correction is None else correct(test.p, self.correction)
        for index, system in enumerate(self.systems):
            yield {
                "system": system,
                "n": len(self.values),
                "mean": float(np.ascontiguousarray(self.values[:, index]).mean()),
                "p": float(test.p[index]),
                "p_corrected": float(p[index]),
                "significant": bool(p[index] <= 1 - self.level + 1e-12),
                **_worst([row for row in means if row["system"] == system], self.better),
            }

    def indices(self) -> Iterator[dict[str, Any]]:
        """Give Gini and Atkinson of each system."""
        level, epsilon, sizes = self.level, self.epsilon, self.sizes
        for index, system in enumerate(self.systems):
            column = np.ascontiguousarray(self.values[:, index])
            means, chance = self.group_means.mean[index], self.shuffled
            across = group_gini(means, sizes), group_atkinson(means, sizes, epsilon)
            gini_row = gini(column, level), across[0], chance.chance_gini[index]
            users = atkinson(column, epsilon, level)
            atkinson_row = users, across[1], chance.chance_atkinson[index]
            for name, (of_users, *numbers) in {"Gini": gini_row, "Atkinson": atkinson_row}.items():
                row = {"system": system, "index": name, **vars(of_users)}
                if float(self.values.min()) >= 0 and float(column.sum()) > 0:
                    row |= dict(zip(("across_groups", "chance"), map(float, numbers), strict=True))
                yield row


def _worst(means: Sequence[dict[str, Any]], better: str) -> dict[str, Any]:
    """Return the group with the worst mean, and the interval of the worst of all true means.

    Of the groups with enough users; nothing where one of these has no interval, because it may be
    the worst. From intervals that hold together: the lowest true mean lies between the lowest of
    their lower and the lowest of their upper ends, and a group whose interval is wholly above that
    is not the worst.
    """
    estimated = [row for row in means if row["n"] >= LEAST_USERS]
    sign = {"higher": 1.0, "lower": -1.0}.get(better)
    ends = [(row.get("low", np.nan), row.get("high", np.nan)) for row in estimated]
    if sign is None or not ends or np.isnan(ends).any():
        return {}
    low, high = (sign * np.array(ends)).T[:: int(sign)]
    worst = min(estimated, key=lambda row: sign * row["value"])
    limits = sorted((sign * float(low.min()), sign * float(high.min())))
    names = [row["group"] for row, end in zip(estimated, low, strict=True) if end <= high.min()]
    return {
        "worst_group": worst["group"],
        "value": worst["value"],
        "low": limits[0],
        "high": limits[1],
        "may_be_worst": names,
    }


def _method(metrics: Sequence[_GroupedMetric]) -> Method:
    """Return how groups are compared, in words."""
    first, test, shuffles = metrics[0], "Student's t without skewness", 0
    if max(len(grouped.values) for grouped in metrics) <= MOST_SHUFFLED:
        shuffles = first.shuffled.shuffles
        test = (
            f"permutation test of the studentised difference, {shuffles:,} shuffles of users, or "
            f"{test} where its p is larger"
        )
    family = "all pairs of groups of a metric"
    if first.against != "best":
        number = first.comparisons * len(first.systems)
        family = f"{counted(number, 'comparison')} of a metric"
    return replace(
        _METHOD,
        level=first.level,
        test=test,
        correction=corrected_by(first.correction, family),
        draws=shuffles,
        seed=first.seed,
    )


def _explanation(rows: Sequence[dict[str, Any]], epsilon: float) -> Iterator[str]:
    yield f"{NO_INTERVAL}; no p: fewer than {LEAST_USERS} users"
    count = sum(row.get("note") in (UNIDENTIFIED, NEGATIVE) for row in rows)
    if count:
        yield (
            f"{counted(count, 'ratio is', 'ratios are')} left out: the mean that divides may be 0 "
            "(not identified), or values are below 0"
        )
    yield (
        f"worst group: of those with at least {LEAST_USERS} users; not named where one of these "
        "has no interval. The interval is that of the worst true mean"
    )
    yield (
        f"Gini, Atkinson({epsilon:g}): of the values of users, jackknife intervals from "
        f"{INDEX_USERS} users on; across groups, beside their mean when users change groups at "
        "random"
    )
