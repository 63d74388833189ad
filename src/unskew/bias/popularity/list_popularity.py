"""`list_popularity`: how popular lists are, against what their users rated and against chance."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from unskew.arrays import F64, I32, I64, Mask
from unskew.bias.popularity.list_measures import (
    DIVISIONS,
    HEAD,
    LEAST_FOR_LEVEL,
    LEAST_HITS,
    LEAST_USERS,
    PER_USER,
    WHOLE,
    RunCounts,
    UserValues,
    gap_interval,
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
from unskew.metrics.names import Metric
from unskew.recommend.simple import Random
from unskew.report.columns import (
    DIFFERENCE,
    GROUP,
    HIGH,
    LOW,
    METRIC,
    SYSTEM,
    USERS,
    VALUE,
    Column,
    Drawing,
    Method,
    Question,
)
from unskew.report.estimates import Estimates
from unskew.report.text import counted
from unskew.stats.intervals.ratios import NONE
from unskew.stats.segments import TASTES, segments_of
from unskew.targets.lists import TargetLists

ALL = "all users"
RANDOM_RUNS = 5
"""So many random runs are averaged for the chance value of the measures of a whole run."""
_NULL = Column("null", "fact")
_METHOD = Method(
    estimand="how popular lists are, against the training ratings of their users",
    interval="t without skewness (Hall), of ratios by inversion of the same test",
)
LIST_POPULARITY = Question(
    name="popularity of lists",
    columns=(METRIC, SYSTEM, GROUP, USERS, VALUE, LOW, HIGH, Column("chance", "fact"), _NULL),
    method=_METHOD,
    figures=(
        *(Drawing(), Drawing("gaps", "forest", "gaps"), Drawing("lorenz", "lines", "lorenz")),
    ),
)
"""`chance`: what random orders of the targets give. `null`: what lists would show that match the
profiles of their users."""
GAPS = Question(
    name="gaps between groups",
    columns=(METRIC, SYSTEM, GROUP, Column("against_group", "key", "against"), *DIFFERENCE, _NULL),
    method=replace(
        _METHOD,
        estimand="a measure of one group of users less that of another one",
        together="Bonferroni over the pairs of groups of a measure and system",
    ),
)
"""`null` is the difference of the null values of groups by taste, which the profiles themselves
form: it is not 0. Null for other groups, whose null difference is 0 (by popularity: not known)."""
LORENZ = Question(
    name="Lorenz curves",
    columns=(
        *(SYSTEM, GROUP, Column("items", "axis", "share of the catalogue", "%")),
        Column("value", "value", "share of exposure"),
    ),
    method=Method(
        estimand="which share of all places in the lists the least shown items hold together"
    ),
)


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
) -> Estimates:
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

    Returns
    -------
    Estimates
        Rows by metric, system and group (the last is `all users`), with `chance` and `null`. The
        parts: `gaps` between all pairs of groups, of the measures that each user has; `lorenz`, the
        curves of exposure.

    Examples
    --------
    >>> import unskew as us
    >>> train = {"user": [1, 1, 2, 2, 3, 3], "item": ["a", "b", "a", "c", "a", "d"]}
    >>> test = {"user": [1, 2], "item": ["c", "b"]}
    >>> result = us.bias.list_popularity(
    ...     test, {"mine": {1: ["c"], 2: ["b"]}}, train=train, k=1, by=None
    ... )
    >>> row = result["PopLift@1"].row()
    >>> row.n, row.value, row.facts["null"]
    (2, -0.5, 0.0)
    """
    data = as_judged(judgments, runs, seed=seed, liked=liked, train=train, items=items)
    depth, level = as_count("k", k), float(as_share("level", level))
    if data.train is None:
        raise DataError("the popularity of lists needs the training ratings: give train=…")
    if data.targets is not None and len(np.unique(data.owner)) < len(data.owner):
        raise SettingError(
            "the popularity of lists needs one list per user, and these target lists have several"
        )
    labels = {measure: f"{measure}@{depth}" for measure in (*PER_USER, *WHOLE)}
    metrics = labelled(labels.values())
    data = prepare(data, metrics)
    notes = [*data.read, *remarks(data, {"PopLift": metrics[labels["PopLift"]]}, "with-list")]
    people = Ids(data.users.raw(np.unique(data.owner[data.with_list])))
    if not len(people):
        raise DataError("no user has a list: there is nothing to measure")
    code, names, rule = _groups(people, by, data)
    masks = _masks(people.codes(data.users.values)[data.owner], code, names)
    per_user = {measure: metrics[labels[measure]] for measure in PER_USER}
    scored = score(data.basis, data.matched, per_user, threads=1, budget=1 << 28)
    chance, remark = _chance_values(data, metrics, depth, seed, people, code, names)
    tail = profile_means(data.basis, tail_items(data.basis.popularity, HEAD).astype(np.float64))
    rows, gaps, curves = list[dict[str, Any]](), list[dict[str, Any]](), list[dict[str, Any]]()
    for name, matched in data.matched.items():
        values, counts = _user_values(scored[name]), RunCounts(data.basis, matched, depth)
        nulls = _group_nulls(by, names, data, matched, depth, masks[ALL], seed)
        for group, lists in masks.items():
            keys = {"system": name, "group": group}
            for measure, row in _rows(values, counts, lists, tail, level, nulls.get(group, {})):
                facts = {"metric": labels[measure], "chance": chance[group][measure]}
                rows.append(keys | facts | row)
            points = lorenz_points(counts.exposure(lists))
            curves += [keys | {"items": share, "value": exposure} for share, exposure in points]
        for measure, row in _gaps(values, {key: masks[key] for key in names}, level, nulls):
            gaps.append({"system": name, "metric": labels[measure]} | row)
        notes += _left_out(name, values, masks[ALL])
    better = {label: metric.better for label, metric in metrics.items()}
    return Estimates.of_rows(
        LIST_POPULARITY,
        rows,
        level=level,
        explanation=(*_explanation(names), *([rule] if rule else [])),
        notes=tuple(dict.fromkeys([*notes, remark])),
        parts={
            "gaps": Estimates.of_rows(GAPS, gaps, level=level),
            "lorenz": Estimates.of_rows(LORENZ, curves),
        },
        card={"k": depth, "groups": list(names), "rule": rule, "better": better},
    )


def _explanation(groups: tuple[str, ...]) -> Iterator[str]:
    yield (
        "interval: of the mean over users like these, with their lists and profiles as given; none "
        f"of the Gini index, of fewer than {LEAST_USERS} users (PopPercentile: "
        f"{LEAST_FOR_LEVEL}), and of PopRSP and PopREO "
        f"with fewer than {LEAST_HITS} users who get an item of the head, or of the tail"
    )
    yield (
        "null: what lists show that are random samples of their users' taste; of PopREO, that hit "
        "as many liked items of head and tail at random; of PopRSP, that list as much of the tail "
        "as the profiles hold"
    )
    if set(groups) & set(TASTES):
        yield (
            "null of groups by taste: list and profile put together, divided and grouped again at "
            f"random, mean of {DIVISIONS} divisions; it is not 0, because the groups are formed by "
            "the same profiles"
        )


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
) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield each measure of a group of users."""
    names = "n", "value", "low", "high", "null"
    for measure in PER_USER:
        users = int(values.known(measure, lists).sum())
        null = nulls[measure] if measure in nulls else values.null(measure, lists)
        interval = values.interval(measure, lists, level)
        numbers = users, values.mean(measure, lists), *interval, null
        yield measure, dict(zip(names, numbers, strict=True))
    users = int((lists & counts.listed).sum())
    for measure in WHOLE:
        interval, null = counts.interval(measure, lists, level), counts.null(measure, lists, tail)
        numbers = users, counts.value(measure, lists), *interval, null
        yield measure, dict(zip(names, numbers, strict=True))


def _gaps(
    values: UserValues,
    masks: Mapping[str, Mask],
    level: float,
    nulls: Mapping[str, Mapping[str, float]],
) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield the differences between all pairs of groups that have values."""
    for measure in PER_USER:
        linear = {
            name: values.linear(measure, lists)
            for name, lists in masks.items()
            if values.known(measure, lists).any()
        }
        pairs = list(itertools.combinations(linear, 2))
        for first, second in pairs:
            is_small = min(linear[first].size, linear[second].size) < LEAST_FOR_LEVEL
            low, high = NONE
            if not (is_small and measure == "PopPercentile"):
                low, high = gap_interval(
                    linear[first], linear[second], 1 - (1 - level) / len(pairs)
                )
            row = {
                "group": first,
                "against_group": second,
                "value": values.mean(measure, masks[first]) - values.mean(measure, masks[second]),
                "low": low,
                "high": high,
            }
            if first in nulls and second in nulls:
                row["null"] = nulls[first][measure] - nulls[second][measure]
            yield measure, row


def _left_out(system: str, values: UserValues, lists: Mask) -> list[str]:
    lost = int(lists.sum()) - int(values.known("UPD", lists).sum())
    if not lost:
        return []
    users = counted(lost, "user has", "users have")
    return [f"{system}: {users} no list or no training ratings, and no value of a user's measures"]


def _chance_values(
    data: Judged,
    metrics: Mapping[str, Metric],
    k: int,
    seed: int,
    people: Ids,
    code: I64,
    names: tuple[str, ...],
) -> tuple[dict[str, dict[str, float]], str]:
    """Return what random orders of the targets give, by group and measure, and how.

    Of all items where targets are not known.
    """
    lists = data.targets
    note = "chance: a random order of the same targets"
    if lists is None:
        lists = lists_of_design("all-items", data.tests, data.train, data.relevance, seed)
        note = "chance: a random order of all items that the user did not rate in training"
    masks = _masks(people.codes(lists.tests.users.values)[lists.user], code, names)
    labels = {measure: metrics[f"{measure}@{k}"] for measure in PER_USER}
    system, _ = chance_scores(Judged.of_lists(lists, {}), labels, depth=k, seed=seed)
    users, runs = _user_values(system), _random_runs(lists, k, seed)
    values = {
        group: {measure: users.mean(measure, mask) for measure in PER_USER}
        | {measure: float(np.mean([run.value(measure, mask) for run in runs])) for measure in WHOLE}
        for group, mask in masks.items()
    }
    return values, f"{note}; of PopRSP, PopREO and Gini the mean of {RANDOM_RUNS} orders"


def _random_runs(lists: TargetLists, k: int, seed: int) -> list[RunCounts]:
    models = {str(n): Random().fit(lists.train, seed + n) for n in range(RANDOM_RUNS)}
    metrics = labelled([f"{measure}@{k}" for measure in WHOLE])
    data = prepare(Judged.of_lists(lists, models, depth=k), metrics)
    return [RunCounts(data.basis, matched, k) for matched in data.matched.values()]
