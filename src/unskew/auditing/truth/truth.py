"""`truth`: what protocols observe, beside what is true.

The truth is that of a world, or a sample of randomly chosen pairs (missing at random). Systems are
trained once per split and judged twice: as the protocol does it, and by the truth.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import product
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import polars as pl

from unskew.auditing.truth import sources
from unskew.auditing.truth.tasks import TruthJob, judged_splits
from unskew.checks import checked, choose
from unskew.engine.executor import Executor, executor
from unskew.engine.progress import Progress, notebook_progress
from unskew.evaluation.scores import UNDEFINED, Mean, Scores
from unskew.experiment.plan import Plan
from unskew.metrics.names import parse
from unskew.report.charts import MOST_ROWS, Figure, as_figure
from unskew.report.result import Result
from unskew.report.text import counted
from unskew.stats.agreement.agreement import BOOTSTRAP, agreement
from unskew.targets.designs import Targets

if TYPE_CHECKING:
    from distributed import Client

LEVEL = 0.95
TAUS = ("tau", "p", "low", "high", "without_low", "without_high")


@dataclass(frozen=True, eq=False)
class Truth(Result):
    """What every protocol and intervention observes of every system, beside what is true.

    Made by `truth`.
    """

    figure_is_open: ClassVar[bool] = True

    source_name: str
    """What the truth is, in words."""
    observed: Mapping[str, tuple[Scores, ...]]
    """By design: scores of each split."""
    true: Mapping[str, tuple[Scores, ...]]
    """Likewise: the same models, judged by the truth."""
    bootstrap: int = BOOTSTRAP
    level: float = LEVEL
    seed: int = 0
    facts: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    """By design: how many ratings judged."""
    notes: tuple[str, ...] = ()

    @property
    def designs(self) -> tuple[str, ...]:
        """Protocols and interventions."""
        return tuple(self.observed)

    @property
    def metrics(self) -> tuple[str, ...]:
        """All metrics, anti-metrics among them."""
        return next(iter(self.observed.values()))[0].order

    @property
    def systems(self) -> tuple[str, ...]:
        """All systems."""
        return tuple(next(iter(self.observed.values()))[0].systems)

    def table(self) -> pl.DataFrame:
        """Return a row per design, system and metric: observed, true and the error in percent.

        `error` = 100 (observed - true) / true, of means over splits. Means are over the users for
        whom the metric is defined: recall of a user without a liked test item is not. How many
        users these are, over all splits: `users`, and by the truth `true_users`. Columns ending in
        `_zero` are the same with undefined values counting as 0: as test sets hold fewer liked
        items than the truth, users without one then pull what is observed down.
        """
        rows = []
        for key in product(self.designs, self.systems, self.metrics):
            row: dict[str, Any] = dict(zip(("design", "system", "metric"), key, strict=True))
            for end, undefined in (("_zero", "zero"), ("", "skip")):
                value, users = self._mean(self.observed, *key, undefined)
                true, true_users = self._mean(self.true, *key, undefined)
                error = 100 * (value - true) / true if true else math.nan
                row |= {f"observed{end}": value, f"true{end}": true}
                row |= {f"error{end}": None if math.isnan(error) else error}
            rows.append({**row, "users": users, "true_users": true_users})  # of what is defined
        texts = dict.fromkeys(("design", "system", "metric"), pl.String)
        first = dict.fromkeys(("observed", "true", "error"), pl.Float64)
        counts = dict.fromkeys(("users", "true_users"), pl.Int64)
        zeros = dict.fromkeys(("observed_zero", "true_zero", "error_zero"), pl.Float64)
        return pl.DataFrame(rows, schema={**texts, **first, **counts, **zeros})

    def display_table(self) -> pl.DataFrame:
        """Return the table; without undefined values only the columns that do not repeat others."""
        table = self.table()
        if self._undefined():
            return table.drop("true_users")
        return table.drop("users", "true_users", "observed_zero", "true_zero", "error_zero")

    @cached_property
    def _averages(self) -> dict[tuple[int, str], dict[str, dict[str, Mean]]]:
        return {}

    def _means_of(self, part: Scores, undefined: str) -> dict[str, dict[str, Mean]]:
        key = id(part), undefined  # the truth of one split stands beside several designs
        if key not in self._averages:
            self._averages[key] = part.averages(undefined=undefined)
        return self._averages[key]

    def _mean(
        self,
        of: Mapping[str, tuple[Scores, ...]],
        design: str,
        system: str,
        metric: str,
        undefined: str,
    ) -> tuple[float, int]:
        """Return the mean over splits, and how many users it is of in all."""
        means = [self._means_of(part, undefined)[system][metric] for part in of[design]]
        return math.fsum(mean.value for mean in means) / len(means), sum(
            mean.users for mean in means
        )

    def _undefined(self) -> list[str]:
        """Say for each design of how many users metrics are undefined, and why."""
        lines = []
        for design in self.designs:
            groups: dict[tuple[str, str], list[str]] = {}
            for metric in self.metrics:
                sides = [self._without(of[design], metric) for of in (self.observed, self.true)]
                if any(undefined for undefined, _ in sides):
                    groups.setdefault((sides[0][1], sides[1][1]), []).append(metric)
            lines += [
                f"{design}: {', '.join(names)} undefined for {seen}; by the truth for {true}"
                for (seen, true), names in groups.items()
            ]
        return lines

    def _without(self, parts: tuple[Scores, ...], metric: str) -> tuple[int, str]:
        """Return how many users a metric is undefined for; in words, why where numbers show it."""
        name = self.systems[0]
        means = [self._means_of(part, "zero")[name][metric] for part in parts]
        undefined, users = (
            sum(getattr(mean, of) for mean in means) for of in ("undefined", "users")
        )
        cause = ""
        for what in ("disliked", "liked") if undefined else ():
            lacking = sum(
                int(np.count_nonzero(part.lists[what].to_numpy()[part.averaged(name)] == 0))
                for part in parts
            )
            if lacking == undefined:
                cause = f", who have no {what} test item"
        return undefined, f"{undefined:,} of {users:,} users{cause}"

    @cached_property
    def _agreements(self) -> dict[str, pl.DataFrame]:
        return {}

    def agreement(self, undefined: str = "skip") -> pl.DataFrame:
        """Return a row per design and metric: how alike the order of systems is to the true one.

        Columns: Kendall's `tau` (τ_b) with its `p`, the bootstrap interval over users (`low`,
        `high`), the range when one system is left out, `swaps` (pairs of systems in the wrong
        order) and `mean_error`, the mean size of the errors in percent. Empty for one system.

        Parameters
        ----------
        undefined
            `skip`: means over the users for whom a metric is defined; `zero`: undefined values
            count as 0.
        """
        choose("undefined", undefined, UNDEFINED)
        if undefined not in self._agreements:
            self._agreements[undefined] = self._agreement(undefined)
        return self._agreements[undefined]

    def _agreement(self, undefined: str) -> pl.DataFrame:
        rows: list[dict[str, Any]] = []
        end = "" if undefined == "skip" else "_zero"

        def taken(parts: tuple[Scores, ...]) -> tuple[Scores, ...]:
            return tuple(replace(part, undefined=undefined) for part in parts)

        for design in self.designs if len(self.systems) > 1 else ():
            sides = {"observed": taken(self.observed[design]), "true": taken(self.true[design])}
            for metric in self.metrics:
                selection = self.table().filter(design=design, metric=metric)
                row: dict[str, Any] = {"design": design, "metric": metric}
                means = selection.select(f"observed{end}", f"true{end}").to_numpy()
                if not np.isnan(means).any():
                    result = agreement(
                        sides,
                        [metric],
                        resamples=self.bootstrap,
                        level=self.level,
                        seed=self.seed,
                    )
                    taus = result.rows.rename({"value": "tau"}).select(*TAUS, "swaps")
                    row |= taus.row(0, named=True)
                rows.append({**row, "mean_error": selection[f"error{end}"].abs().mean()})
        texts = dict.fromkeys(("design", "metric"), pl.String)
        numbers = dict.fromkeys((*TAUS, "swaps", "mean_error"), pl.Float64)
        return pl.DataFrame(rows, schema={**texts, **numbers, "swaps": pl.Int64})

    def orders(self, metric: str | None = None) -> pl.DataFrame:
        """Return the place of each system, best first: a column for the truth and each design.

        Where designs have splits of their own, the truth is that of the first one.

        Parameters
        ----------
        metric
            The first one unless given.
        """
        label = choose("metric", metric or self.metrics[0], self.metrics)
        sign = 1.0 if parse(label).better == "lower" else -1.0

        def places(of: Mapping[str, tuple[Scores, ...]], design: str) -> list[int]:
            means = [self._mean(of, design, system, label, "skip")[0] for system in self.systems]
            values = [sign * mean for mean in means]
            return [1 + sum(rival < value for rival in values) for value in values]

        columns = {"true": places(self.true, self.designs[0])}
        columns |= {design: places(self.observed, design) for design in self.designs}
        table = pl.DataFrame({"system": self.systems, **columns})
        return table.sort("true", maintain_order=True)

    def figure(self, metric: str | None = None) -> Figure:
        """Draw what is observed over what is true, a point per system and design.

        Parameters
        ----------
        metric
            The first one unless given.
        """
        import altair as alt

        label = choose("metric", metric or self.metrics[0], self.metrics)
        rows = self.table().filter(pl.col("metric") == label).head(MOST_ROWS).to_dicts()
        top = max([0.0, *(row[key] or 0.0 for row in rows for key in ("observed", "true"))])
        base = alt.Chart(alt.NamedData(name="rows")).encode(
            x=alt.X("true:Q", title=f"true {label}"),
            y=alt.Y("observed:Q", title=f"observed {label}"),
        )
        points = base.mark_point(filled=True, size=80).encode(
            color=alt.Color("system:N"),
            shape=alt.Shape("design:N"),
            tooltip=["design:N", "system:N", "observed:Q", "true:Q"],
        )
        corners = {"x": alt.datum(0), "y": alt.datum(0), "x2": alt.datum(top), "y2": alt.datum(top)}
        diagonal = (
            alt.Chart(alt.NamedData(name="rows"))
            .mark_rule(strokeDash=[4, 3], color="#999999")
            .encode(**corners)
        )
        chart = alt.layer(diagonal, points).properties(width=360, height=360)
        return as_figure(chart, "Observed and true", [f"truth: {self.source_name}"], rows)

    def _explanation(self) -> list[str]:
        splits = {design: len(parts) for design, parts in self.observed.items()}
        counts = sorted(set(splits.values()))
        first = next(iter(self.observed.values()))[0]
        lines = [
            f"truth: {self.source_name}",
            f"means over {' or '.join(map(str, counts))} splits; {first.users}; "
            f"{first.relevance}; error in percent of the truth",
        ]
        undefined = self._undefined()
        if undefined:
            lines += [
                "observed, true and error: means over the users for whom the metric is defined; "
                "columns ending in _zero: undefined values count as 0",
                *undefined,
            ]
        for row in self.agreement().iter_rows(named=True):
            if row["tau"] is None:
                continue
            line = f"{row['design']}, {row['metric']}: τ_b to the truth {row['tau']:.2f}"
            if row["low"] is not None:
                line += (
                    f" ({100 * self.level:g} % over users: {row['low']:.2f} to {row['high']:.2f})"
                )
            lines.append(f"{line}, p = {row['p']:.2g}, {counted(row['swaps'], 'pair')} swapped")
        return lines

    def _content(self) -> dict[str, object]:
        return {
            "truth": self.source_name,
            "level": self.level,
            "rows": self.table(),
            "agreement": self.agreement(),
            "facts": {design: dict(facts) for design, facts in self.facts.items()},
            "notes": [*self._undefined(), *self.notes],
        }

    def _summary(self) -> str:
        return (
            f"{counted(len(self.designs), 'design')}, {counted(len(self.systems), 'system')}; "
            f"{self.source_name}"
        )


@notebook_progress("truth")
@checked
def truth(
    data: object,
    plan: Plan,
    *,
    random: object = None,
    weights: float | None = None,
    targets: Targets | None = None,
    overlap: str = "to-training",
    bootstrap: int = BOOTSTRAP,
    level: float = LEVEL,
    workers: int = 1,
    cluster: str | Client | None = None,
    progress: Progress | None = None,
) -> Truth:
    """Carry a plan out and set what it observes beside what is true.

    Observed and true values are of the same models, trained on the same ratings. Both are shown
    twice: as means over the users for whom a metric is defined, and with undefined values counting
    as 0, whatever the plan's `undefined` says.

    Parameters
    ----------
    data
        A `World`, whose every pair is known; or a `Dataset` with random ratings; or ratings, with
        `random`.
    plan
        Splits, targets, interventions, systems and metrics.
    random
        Ratings of randomly chosen items. Values of metrics that do not divide by what is judged,
        such as P, are then on the scale of that sample; their order means the same.
    weights
        The share of the random ratings (of a world: of all its pairs) from which interventions
        that need them (WTD) learn; these do not judge. 0.15 (0.01) unless given.
    targets
        What the truth ranks: all items outside training unless given. A design that ranks other
        targets, such as test targets, is fair for the truth over its own targets; here it is held
        against this one.
    overlap
        Random ratings of pairs that are in training are left out of the truth (`to-training`), or
        count as missed (`keep`).
    bootstrap, level
        Of the interval of τ: draws of users, and its level.
    workers, cluster
        Processes side by side, or a Dask cluster, as in `run_plan`; never changes a number.
    progress
        Called with (done, total) after each split.

    Examples
    --------
    >>> import unskew as us
    >>> from unskew.auditing.truth.truth import truth
    >>> shop = us.world("shop", users=120, items=60, seed=1)
    >>> systems = [us.recommend.Random(), us.recommend.Popularity()]
    >>> plan = us.Plan(algorithms=systems, metrics=["P@5", "anti-P@5"])
    >>> found = truth(shop, plan, bootstrap=0)
    >>> found.table().columns[:6]
    ['design', 'system', 'metric', 'observed', 'true', 'error']
    """
    with executor(workers, cluster) as runner:
        return truth_by(
            runner,
            data,
            plan,
            random=random,
            weights=weights,
            targets=targets,
            overlap=overlap,
            bootstrap=bootstrap,
            level=level,
            progress=progress,
        )


def truth_by(
    executor: Executor,
    data: object,
    plan: Plan,
    *,
    random: object = None,
    weights: float | None = None,
    targets: Targets | None = None,
    overlap: str = "to-training",
    bootstrap: int = BOOTSTRAP,
    level: float = LEVEL,
    progress: Progress | None = None,
) -> Truth:
    """Set what a plan observes beside what is true, as `truth` does, by a given executor."""
    source = sources.source_of(data, random, weights, targets, overlap, plan)
    observed: dict[str, list[Scores]] = {}
    true: dict[str, list[Scores]] = {}
    facts: dict[str, Mapping[str, Any]] = {}
    total = len(plan.folds(source.ratings))
    for done, part in enumerate(judged_splits(executor, TruthJob(source, plan)), 1):
        for name, scores in part.observed.items():
            observed.setdefault(name, []).append(scores)
            true.setdefault(name, []).append(part.true)
            facts.setdefault(name, part.facts[name])
        if progress is not None:
            progress(done, total)
    # Where what is judged at random depends on what is observed.
    overlap_counts = sources.overlap_of(source)
    doubts = tuple(filter(None, [overlap_counts.note])) if overlap_counts is not None else ()
    return Truth(
        source.name,
        {name: tuple(parts) for name, parts in observed.items()},
        {name: tuple(parts) for name, parts in true.items()},
        bootstrap,
        level,
        plan.seed,
        facts,
        doubts,
    )
