"""`null_experiment`: what a protocol says of systems when there is nothing, or less, to say."""

from __future__ import annotations

import math
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import stdev
from typing import TYPE_CHECKING, Any, ClassVar

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
from unskew.report.charts import Figure, as_figure
from unskew.report.result import Result
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
NUMBERS = (
    "real",
    "real_random",
    "null_value",
    "low",
    "high",
    "null_random",
    "ratio",
    "ratio_low",
    "ratio_high",
    "null_share",
    "share_low",
    "share_high",
)


@dataclass(frozen=True, eq=False)
class NullExperiment(Result):
    """What every design says of every system on the data as they are and with relevance redrawn.

    Made by `null_experiment`.
    """

    figure_is_open: ClassVar[bool] = True

    rows: pl.DataFrame
    """A row per data (`real`, or the null), repeat, design, system and metric: `value` and what
    chance scores there (`random`), means over the splits of the design."""
    nulls: tuple[str, ...]
    repeats: int
    level: float = LEVEL
    notes: tuple[str, ...] = ()
    retrained: bool = True
    """Whether systems are trained on each draw; else their lists stay as they are."""
    budget: RepeatBudget | None = None
    """How many repeats there are, and why; None = their number was given."""

    @property
    def first(self) -> int:
        """How many repeats intervals take their spread from: the first ones."""
        return self.repeats if self.budget is None else self.budget.minimum

    def table(self, null: str | None = None) -> pl.DataFrame:
        """Return a row per null, design, system and metric.

        Columns: `real` and `real_random`, the value on the data as they are and what chance scores
        there; `null_value` with `low` and `high` (Student's t over repeats), and `null_random`;
        `ratio` of the value to chance on null data, with its interval: 1 for every system if the
        design is fair and the null leaves nothing to learn; `null_share` = (null - null random) /
        (real - real random), the part of what a system has above chance that null data gives it
        too, with its interval; missing where the system is not clearly away from chance.

        Parameters
        ----------
        null
            One of the nulls; all unless given.
        """
        chosen = self.nulls if null is None else (choose("null", null, self.nulls),)
        real = {
            tuple(row[key] for key in KEYS): row
            for row in self.rows.filter(pl.col("data") == REAL).iter_rows(named=True)
        }
        rows = []
        for kind in chosen:
            of_kind = self.rows.filter(pl.col("data") == kind)
            for key, part in of_kind.group_by(KEYS, maintain_order=True):
                rows.append(
                    {
                        "null": kind,
                        **dict(zip(KEYS, key, strict=True)),
                        **_one(part, real.get(key), self.level, self.first),
                    }
                )
        schema = dict.fromkeys(("null", *KEYS), pl.String) | dict.fromkeys(NUMBERS, pl.Float64)
        return pl.DataFrame(rows, schema=schema)

    def figure(self, metric: str | None = None) -> Figure:
        """Draw how many times above chance each system is: on null data, and as the data are.

        Parameters
        ----------
        metric
            The first one unless given.
        """
        import altair as alt

        names = self.rows["metric"].unique(maintain_order=True).to_list()
        label = choose("metric", metric or names[0], names)
        rows = []
        for row in self.table().filter(pl.col("metric") == label).iter_rows(named=True):
            labels = {"design": _titled(row, self.nulls), "system": row["system"]}
            if row["ratio"] is not None:
                rows.append(
                    {
                        **labels,
                        "data": "null",
                        "ratio": row["ratio"],
                        "low": row["ratio_low"],
                        "high": row["ratio_high"],
                    }
                )
            if row["real"] is not None and row["real_random"]:
                rows.append(
                    {
                        **labels,
                        "data": "real",
                        "ratio": row["real"] / row["real_random"],
                        "low": None,
                        "high": None,
                    }
                )
        rows = [row for row in rows if row["ratio"] and row["ratio"] > 0]
        chart = alt.Chart().encode(
            y=alt.Y("system:N", title=None, sort=None),
        )
        x = alt.X("ratio:Q", title=f"{label} / chance").scale(type="log")
        points = chart.mark_point(filled=True, size=70).encode(x=x, color=alt.Color("data:N"))
        whiskers = (
            chart.mark_rule()
            .encode(x=alt.X("low:Q").scale(type="log"), x2="high:Q", color="data:N")
            .transform_filter("datum.low > 0")
        )
        rule = alt.Chart().mark_rule(strokeDash=[4, 3], color="#999999")
        line = rule.encode(x=alt.datum(1))
        rows_data = alt.NamedData(name="rows")
        layers = alt.layer(line, whiskers, points, data=rows_data).properties(width=340)
        faceted = layers.facet(row=alt.Row("design:N", title=None, sort=None))
        note = f"{counted(self.repeats, 'repeat')}; a fair design leaves null data at 1 (dashed)"
        return as_figure(faceted, "The null experiment", [note], rows)

    def _explanation(self) -> list[str]:
        lines = [f"{null}: {NULLS[null]}" for null in self.nulls]
        systems = (
            "every system is trained again"
            if self.retrained
            else "the lists stay as they are, only the judgments are redrawn"
        )
        lines.append(
            f"{counted(self.repeats, 'repeat')}, {systems}; {100 * self.level:g} % intervals "
            "over repeats; ratio = null value / chance; null share = the part of a system's "
            "score above chance that it also has on null data"
        )
        why = "" if self.budget is None else self.budget.sentence()
        return [*lines, *([why] if why else [])]

    def _content(self) -> dict[str, object]:
        return {
            "nulls": self.nulls,
            "repeats": self.repeats,
            "budget": None if self.budget is None else self.budget.card(),
            "level": self.level,
            "rows": self.table(),
            "notes": self.notes,
        }

    def display_table(self) -> pl.DataFrame:
        """Return the columns that matter most."""
        table = self.table().select(
            "null",
            *KEYS,
            "real",
            "null_value",
            "null_random",
            "ratio",
            "ratio_low",
            "ratio_high",
            "null_share",
        )
        return table.drop([key for key in ("null", "metric") if table[key].n_unique() == 1])

    def _summary(self) -> str:
        designs = self.rows["design"].n_unique()
        return (
            f"{', '.join(self.nulls)}; {counted(designs, 'design')}, "
            f"{counted(self.repeats, 'repeat')}"
        )


def null_card(null: NullExperiment | None) -> dict[str, object] | None:
    """Return as plain values how opinions were redrawn, and how often; None = they were not."""
    if null is None:
        return None
    budget = {"repeats": null.repeats} if null.budget is None else null.budget.card()
    return {"null": ", ".join(null.nulls), **budget}


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
) -> NullExperiment:
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

    Examples
    --------
    >>> import unskew as us
    >>> from unskew.auditing.null.null_experiment import null_experiment
    >>> rows = [(u, i, 1 + (u * i) % 5) for u in range(60) for i in range(40) if (u + i) % 40 >= i]
    >>> user, item, rating = zip(*rows)
    >>> data = us.read_ratings({"user": user, "item": item, "rating": rating})
    >>> plan = us.Plan(algorithms=[us.recommend.Popularity()], metrics=["P@5"], users="all")
    >>> found = null_experiment(data, plan, repeats=3)
    >>> found.table()["ratio"][0] > 1.5  # the design favours popular items where nobody has taste
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
) -> NullExperiment:
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
    return NullExperiment(rows, kinds, budget.repeats, level, run.notes(), budget=budget)


def _one(
    part: pl.DataFrame, real: Mapping[str, Any] | None, level: float, first: int
) -> dict[str, Any]:
    """Return the numbers of one design, system and metric."""
    value, random = part["value"].to_list(), part["random"].to_list()
    mean, low, high = mean_interval(value, level, first)
    expected = [entry for entry in random if entry is not None]
    chance = math.fsum(expected) / len(expected) if len(expected) == len(random) else None
    row: dict[str, Any] = dict.fromkeys(NUMBERS)
    row |= {"null_value": mean, "low": low, "high": high, "null_random": chance}
    if chance:
        ratios = [v / r for v, r in zip(value, random, strict=True) if r]
        row |= dict(
            zip(
                ("ratio", "ratio_low", "ratio_high"),
                mean_interval(ratios, level, first),
                strict=True,
            )
        )
    if real is None:
        return row
    row |= {"real": real["value"], "real_random": real["random"]}
    if chance is None or real["random"] is None:
        return row
    above = real["value"] - real["random"]
    excess = [v - r for v, r in zip(value, random, strict=True)]
    noise = stdev(excess) if len(excess) > 1 else 0.0
    if any(excess) and abs(above) > CLEAR * noise:  # none = chance itself
        shares = [difference / above for difference in excess]
        names = ("null_share", "share_low", "share_high")
        row |= dict(zip(names, mean_interval(shares, level, first), strict=True))
    return row


def _titled(row: Mapping[str, Any], nulls: Sequence[str]) -> str:
    return str(row["design"]) if len(nulls) == 1 else f"{row['design']}, {row['null']}"
