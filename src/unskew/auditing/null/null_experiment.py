"""`null_experiment`: what a protocol says of systems when there is nothing, or less, to say."""

from __future__ import annotations

import math
import os
from collections.abc import Mapping, Sequence
from operator import itemgetter
from statistics import stdev
from typing import TYPE_CHECKING, Any

import polars as pl

from unskew.auditing.null.repeats import LEAST, MOST, REAL, RepeatBudget, RepeatRule
from unskew.auditing.null.tasks import NullJob, NullRun, plan_groups
from unskew.checks import checked, choose
from unskew.data.dataset import data_key
from unskew.data.ratings import Ratings
from unskew.data.read.ratings_files import read_ratings
from unskew.engine.executor import Executor, executor
from unskew.engine.progress import Progress, notebook_progress
from unskew.engine.store import Store
from unskew.errors import SettingError
from unskew.evaluation.scores import Scores
from unskew.experiment.plan import Plan
from unskew.report.columns import (
    DESIGN,
    HIGH,
    LOW,
    METRIC,
    QUANTITY,
    SYSTEM,
    VALUE,
    Column,
    Drawing,
    Method,
    Question,
)
from unskew.report.estimates import Estimates
from unskew.report.text import counted
from unskew.stats.intervals.means import mean_interval
from unskew.worlds.nulls import DIRECTIONS, NULLS

if TYPE_CHECKING:
    from distributed import Client

LEVEL = 0.95
REPEATS = 5
"""Repeats, unless given, where precision does not decide."""
CLEAR = 3.0
"""How many standard deviations (of a null value over repeats) above chance a system must be on the
data as they are for a null share to have a meaning: else it is noise over noise."""
KEYS = ("design", "system", "metric")
NULL = Question(
    name="null experiment",
    columns=(Column("null", "key"), DESIGN, SYSTEM, METRIC, QUANTITY, VALUE, LOW, HIGH),
    method=Method(
        estimand="the value where relevance is redrawn, the mean over repeats",
        unit="repeats",
        interval="t",
        level=LEVEL,
    ),
    quantities=(
        *(Column("real", "value"), Column("real_random", "value", "real chance", hidden=True)),
        *(Column("null_value", "value", "null value"), Column("null_random", "value", "chance")),
        *(Column("real_ratio", "value", "real / chance", form="×", hidden=True),),
        *(Column("ratio", "value", form="×"), Column("null_share", "value", "null share")),
    ),
    figures=(
        Drawing("ratio", "forest", "", ("ratio", "real_ratio")),
        Drawing("values", "forest", "", ("real", "null_value", "null_random")),
    ),
)
"""A row per null, design, system, metric and quantity."""
NULL_REPEATS = Question(
    name="values of each repeat",
    columns=(
        *(Column("data", "key"), Column("repeat", "axis"), DESIGN, SYSTEM, METRIC, VALUE),
        Column("random", "fact", "chance"),
    ),
    method=Method(estimand="the mean over users and over the splits of a design"),
    figures=(),
)
"""A row per data (`real`, or the null), repeat, design, system and metric."""


@notebook_progress("null experiment")
@checked
def null_experiment(
    ratings: object,
    plan: Plan | Mapping[str, Plan],
    nulls: str | Sequence[str] = ("iid",),
    repeats: int | None = None,
    *,
    precision: float | None = None,
    most: int | None = None,
    metric: str | None = None,
    liked: float | None = None,
    share: float | None = None,
    directions: int = DIRECTIONS,
    level: float = LEVEL,
    real: Mapping[str, Sequence[Scores]] | None = None,
    store: str | os.PathLike[str] | None = None,
    workers: int = 1,
    cluster: str | Client | None = None,
    progress: Progress | None = None,
) -> Estimates:
    """Run plans on data whose relevance is drawn anew: the self-test of a protocol.

    Who rated what stays as it is; what they thought of it is redrawn (`redraw`), every system is
    trained on that, and every design judges. Under `iid` all systems are equally good, so whatever
    a design shows beyond chance is made by the design (castells2018 section 7). A random order
    (`us.recommend.Random`) is not drawn on null data: its value is the expected one, chance.

    Parameters
    ----------
    ratings
        The data.
    plan
        A plan, or several by name, such as those of `us.auditing.published_designs`.
    nulls
        `iid`, `within-user`, `within-item`, `clusters`; see `redraw`.
    repeats
        Number of times that relevance is redrawn; with a precision, the smallest number. Default:
        5; with a precision: 3.

        Each repeat has splits of its own.
    precision
        Redraw until every interval of the first metric has at most this half-width, as a share of
        the largest lead over chance, such as 0.05. Default: a fixed number.

        The lead is that of a system of the design on the data as they are (chance itself, where
        that is larger). The spread of the first `repeats` values alone decides, and intervals take
        their spread from these (Stein 1945).
    most
        With a precision: the largest number of repeats. Default: 20.
    metric
        With `precision`: the metric that is looked at, the plans' first unless given.
    liked
        The smallest rating that is liked, in all plans, instead of what their `relevance` says
        (gain and loss stay as they are there). Algorithms and splits with a threshold of their own
        keep it.
    share
        iid: the share of liked ratings. Default: as in the data.
    directions
        For `clusters`.
    level
        Of the intervals over repeats.
    real
        The scores of the plans on the data as they are, where they are known: by the name of the
        plan, those of each split. Without them plans are run on these data, too.
    store, workers, cluster
        As in `run_plan`: with a store, what was finished is not done again.
    progress
        Called with (done, total) after each task.

    Returns
    -------
    Estimates
        A row per null, design, system, metric and quantity. `real` is the value on the data as they
        are, `real_random` what chance scores there; `null_value`, with its interval (Student's t
        over repeats), the value on null data, `null_random` chance there. `ratio` is null value /
        chance: 1 for every system if the design is fair and the null leaves nothing to learn.
        `null_share` = (null - null random) / (real - real random), the part of what a system has
        above chance that null data gives it too; missing where the system is not clearly away from
        chance. The part `repeats` has the values of each repeat.

    Examples
    --------
    >>> import unskew as us
    >>> from unskew.auditing.null.null_experiment import null_experiment
    >>> rows = [(u, i, 1 + (u * i) % 5) for u in range(60) for i in range(40) if (u + i) % 40 >= i]
    >>> user, item, rating = zip(*rows)
    >>> data = us.read_ratings({"user": user, "item": item, "rating": rating})
    >>> plan = us.Plan(algorithms=[us.recommend.Popularity()], metrics=["P@5"], users="all")
    >>> result = null_experiment(data, plan, repeats=3)
    >>> result.row(quantity="ratio").value > 1.5  # it favours popular items where nobody has taste
    True
    """
    data = ratings if isinstance(ratings, Ratings) else read_ratings(ratings)
    if precision is None:
        if most is not None or metric is not None:
            raise SettingError("most and metric are for precision=…")
        rule = RepeatRule.fixed(REPEATS if repeats is None else repeats)
    else:
        rule = RepeatRule(
            minimum=LEAST if repeats is None else repeats,
            maximum=MOST if most is None else most,
            precision=precision,
            metric=metric,
        )
    with executor(workers, cluster) as runner:
        return null_experiment_by(
            runner,
            data,
            plan,
            nulls,
            rule,
            liked=liked,
            share=share,
            directions=directions,
            level=level,
            real=real,
            store=None if store is None else Store.open(store),
            progress=progress,
        )


def null_experiment_by(
    executor: Executor,
    data: Ratings,
    plan: Plan | Mapping[str, Plan],
    nulls: str | Sequence[str],
    rule: RepeatRule,
    *,
    liked: float | None = None,
    share: float | None = None,
    directions: int = DIRECTIONS,
    level: float = LEVEL,
    real: Mapping[str, Sequence[Scores]] | None = None,
    fallback: bool = False,
    store: Store | None = None,
    progress: Progress | None = None,
) -> Estimates:
    """Run plans on redrawn data, as `null_experiment` does, by an executor that may do more.

    With `fallback`, cold users are recommended popular items, as in an audit.
    """
    kinds = (nulls,) if isinstance(nulls, str) else tuple(dict.fromkeys(nulls))
    for kind in kinds:
        choose("null", kind, NULLS)
    if not kinds:
        raise SettingError(f"name at least one null: {', '.join(NULLS)}")
    if not 0 < level < 1:
        raise SettingError(f"level must lie between 0 and 1, got {level!r}")
    groups = plan_groups(plan, liked)
    if rule.metric is not None:
        choose("metric", rule.metric, groups[0].plan.metrics)
    if share is not None and "iid" not in kinds:
        raise SettingError("share is for the null iid")
    if share is not None and any(group.plan.relevance.liked is None for group in groups):
        raise SettingError("share needs liked=…, or a plan with relevance=us.Relevance(liked=…)")
    job = NullJob(
        ratings=data,
        plans=tuple(group.plan for group in groups),
        share=share,
        directions=directions,
        fallback=fallback,
        store=store,
        data="" if store is None else data_key(data),
    )
    run = NullRun(
        job=job,
        groups=groups,
        kinds=kinds,
        level=level,
        rule=rule,
        executor=executor,
        progress=progress or (lambda _done, _total: None),
    )
    rows, budget = run.carry_out(real)
    return null_estimates(rows, kinds, budget, level, notes=run.notes())


def null_estimates(
    rows: pl.DataFrame,
    nulls: Sequence[str],
    budget: RepeatBudget,
    level: float,
    *,
    notes: Sequence[str] = (),
    is_retrained: bool = True,
) -> Estimates:
    """Return what every design says of every system, from the values of each repeat.

    Parameters
    ----------
    rows
        As `NULL_SCHEMA` says, means over the splits of a design.
    nulls, budget, level
        What was redrawn, how often and why, and the level of intervals.
    notes
        Of single designs and systems.
    is_retrained
        Whether systems are trained on each draw; else their lists stay as they are.
    """
    key_of = itemgetter(*KEYS)
    real = {key_of(row): row for row in rows.filter(pl.col("data") == REAL).iter_rows(named=True)}
    estimates = [
        (kind, *key, quantity, *of_quantity)
        for kind in nulls
        for key, part in rows.filter(pl.col("data") == kind).group_by(KEYS, maintain_order=True)
        for quantity, of_quantity in _quantities(part, real.get(key), level, budget.minimum).items()
    ]
    systems = (
        "every system is trained again"
        if is_retrained
        else "the lists stay as they are, only the judgments are redrawn"
    )
    how = (
        f"{counted(budget.repeats, 'repeat')}, {systems}; ratio = null value / chance; null share "
        "= the part of a system's score above chance that it also has on null data"
    )
    return Estimates.of_rows(
        NULL,
        estimates,
        level=level,
        explanation=(*(f"{null}: {NULLS[null]}" for null in nulls), how),
        notes=tuple(filter(None, (budget.sentence(), *notes))),
        parts={"repeats": Estimates.of_rows(NULL_REPEATS, rows)},
        card={"null": ", ".join(nulls), **budget.card()},
    )


Interval = tuple[float | None, float | None, float | None]
UNKNOWN: Interval = (None, None, None)
QUANTITIES = tuple(quantity.name for quantity in NULL.quantities)
"""A value and both ends of its interval."""


def _quantities(
    part: pl.DataFrame, real: Mapping[str, Any] | None, level: float, first: int
) -> dict[str, Interval]:
    """Return the quantities of one design, system and metric; the first repeats give the spread."""
    value, random = part["value"].to_list(), part["random"].to_list()
    expected = [entry for entry in random if entry is not None]
    chance = math.fsum(expected) / len(expected) if len(expected) == len(random) else None
    result = dict.fromkeys(QUANTITIES, UNKNOWN)
    result["null_value"] = mean_interval(value, level, first)
    result["null_random"] = (chance, None, None)
    if chance:
        ratios = [v / r for v, r in zip(value, random, strict=True) if r]
        result["ratio"] = mean_interval(ratios, level, first)
    if real is None:
        return result
    result["real"], result["real_random"] = (
        (real[name], None, None) for name in ("value", "random")
    )
    if real["random"]:
        result["real_ratio"] = (real["value"] / real["random"], None, None)
    if chance is None or real["random"] is None:
        return result
    above = real["value"] - real["random"]
    excess = [v - r for v, r in zip(value, random, strict=True)]
    noise = stdev(excess) if len(excess) > 1 else 0.0
    if any(excess) and abs(above) > CLEAR * noise:  # none = chance itself
        result["null_share"] = mean_interval(
            [difference / above for difference in excess], level, first
        )
    return result
