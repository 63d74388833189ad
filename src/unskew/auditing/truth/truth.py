"""`truth`: what protocols observe, beside what is true.

The truth is that of a world, or a sample of randomly chosen pairs (missing at random). Systems are
trained once per split and judged twice: as the protocol does it, and by the truth.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import cache
from itertools import product
from typing import TYPE_CHECKING, Any

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
from unskew.report.columns import (
    DESIGN,
    HIGH,
    LOW,
    METRIC,
    QUANTITY,
    SYSTEM,
    USERS,
    VALUE,
    Column,
    Drawing,
    Method,
    P,
    Question,
)
from unskew.report.estimates import Estimates
from unskew.stats.agreement.agreement import BOOTSTRAP, agreement
from unskew.targets.designs import Targets

if TYPE_CHECKING:
    from distributed import Client

LEVEL = 0.95
TRUTH = Question(
    name="observed and true",
    columns=(DESIGN, SYSTEM, METRIC, QUANTITY, USERS, VALUE),
    method=Method(estimand="the mean over users, as a design observes it, and by the truth"),
    quantities=(
        *(Column("observed", "value"), Column("true", "value")),
        Column("error", "value", "error, %", form="+"),
        *(Column("observed_zero", "value"), Column("true_zero", "value")),
        Column("error_zero", "value", "error_zero, %", form="+"),
    ),
    display=("", "agreement"),
    figures=(
        Drawing("observed and true", "scatter", "", ("observed", "true")),
        Drawing("agreement", "forest", "agreement"),
    ),
)
"""A row per design, system, metric and quantity; `error` = 100 (observed - true) / true. What ends
in `_zero` counts undefined values as 0: as test sets hold fewer liked items than the truth, users
without one then pull what is observed down."""
AGREEMENT = Question(
    name="agreement with the true order",
    columns=(
        *(DESIGN, METRIC, Column("value", "value", "τ_b"), LOW, HIGH, P),
        *(Column("without_low", "fact", hidden=True), Column("without_high", "fact", hidden=True)),
        *(Column("swaps", "count", "swapped pairs"), Column("mean_error", "fact", "mean error, %")),
    ),
    method=Method(estimand="Kendall's τ_b between the order under a design and the true one"),
    digits=2,
)
"""A row per design and metric, none for a single system; `mean_error` is the mean size of the
errors in percent, `without_low` to `without_high` the range when one system is left out."""
ORDERS = Question(
    name="ranks of systems",
    columns=(METRIC, SYSTEM, DESIGN, Column("value", "count", "rank")),
    method=Method(estimand="the rank of a system by its mean, 1 for the best"),
    figures=(),
    across="design",
    digits=0,
)
"""The rank of each system by the truth (`true`) and under each design; the truly best comes first.
Where designs have splits of their own, the truth is that of the first one."""

Parts = Mapping[str, Sequence[Scores]]
"""By design: the scores of each split."""
Averages = Callable[[Scores, str], dict[str, dict[str, Mean]]]
"""Of the scores of a split, and of what undefined values count: by system and metric the mean."""


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
    undefined: str = "skip",
    resamples: int = BOOTSTRAP,
    level: float = LEVEL,
    workers: int = 1,
    cluster: str | Client | None = None,
    progress: Progress | None = None,
) -> Estimates:
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
    undefined
        By which means the agreement compares orders: over the users for whom a metric is defined
        (`skip`), or with undefined values counting as 0 (`zero`).
    resamples, level
        Of the interval of τ: draws of users, and its level.
    workers, cluster
        Processes side by side, or a Dask cluster, as in `run_plan`; never changes a number.
    progress
        Called with (done, total) after each split.

    Returns
    -------
    Estimates
        A row per design, system, metric and quantity (`observed`, `true`, `error` in percent of the
        truth; those ending in `_zero`: undefined values count as 0), means over splits; `n` counts
        users over all splits. The part `agreement` compares the order of systems under each design
        with the true one, `orders` has the rank of each system.

    Examples
    --------
    >>> import unskew as us
    >>> from unskew.auditing.truth.truth import truth
    >>> shop = us.world("shop", users=120, items=60, seed=1)
    >>> systems = [us.recommend.Random(), us.recommend.Popularity()]
    >>> plan = us.Plan(algorithms=systems, metrics=["P@5", "anti-P@5"])
    >>> result = truth(shop, plan, resamples=0)
    >>> seen, true = (
    ...     result.row(system="popularity", quantity=name).value for name in ("observed", "true")
    ... )
    >>> seen < true, result.parts["agreement"].row(metric="P@5").value
    (True, 1.0)
    """
    choose("undefined", undefined, UNDEFINED)
    with executor(workers, cluster) as runner:
        return truth_by(
            runner,
            data,
            plan,
            random=random,
            weights=weights,
            targets=targets,
            overlap=overlap,
            undefined=undefined,
            resamples=resamples,
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
    undefined: str = "skip",
    resamples: int = BOOTSTRAP,
    level: float = LEVEL,
    progress: Progress | None = None,
) -> Estimates:
    """Set what a plan observes beside what is true, as `truth` does, by a given executor."""
    source = sources.source_of(data, random, weights, targets, overlap, plan)
    observed, true, facts = scores_and_truth(executor, source, plan, progress)
    # Where what is judged at random depends on what is observed.
    overlap_counts = sources.overlap_of(source)
    doubts = [overlap_counts.note] if overlap_counts is not None else []
    return beside_truth(
        source.name,
        observed,
        true,
        undefined=undefined,
        resamples=resamples,
        level=level,
        seed=plan.seed,
        facts=facts,
        notes=list(filter(None, doubts)),
    )


def scores_and_truth(
    executor: Executor, source: sources.Source, plan: Plan, progress: Progress | None = None
) -> tuple[Parts, Parts, Mapping[str, Mapping[str, Any]]]:
    """Carry a plan out; return by design its scores, those by the truth, and what judged."""
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
    return observed, true, facts


def beside_truth(
    truth_name: str,
    observed: Parts,
    true: Parts,
    *,
    undefined: str = "skip",
    resamples: int,
    level: float,
    seed: int,
    facts: Mapping[str, Mapping[str, Any]] | None = None,
    notes: Sequence[str] = (),
) -> Estimates:
    """Return what designs observe of systems beside what is true, from the scores of both.

    Parameters
    ----------
    truth_name
        What the truth is, in words.
    observed, true
        By design: the scores of each split, as the design judges, and by the truth.
    undefined, resamples, level, seed
        Of the agreement of orders, as in `truth`.
    facts
        By design: how many ratings judged.
    notes
        What else was noted.
    """
    first = next(iter(observed.values()))[0]
    systems, metrics = list(first.systems), first.order

    @cache  # the truth of one split stands beside several designs
    def averages(part: Scores, policy: str) -> dict[str, dict[str, Mean]]:
        return part.averages(undefined=policy)

    rows = [
        (*key, f"{name}{suffix}", users, value)
        for key in product(observed, systems, metrics)
        for suffix, policy in (("", "skip"), ("_zero", "zero"))
        for name, users, value in _beside(observed, true, key, policy, averages)
    ]
    by_key = {tuple(row[:4]): row[-1] for row in rows}
    is_defined, gaps = _undefined(observed, true, averages)
    splits = " or ".join(map(str, sorted({len(parts) for parts in observed.values()})))
    explanation = [
        f"truth: {truth_name}",
        f"means over {splits} splits; {first.users}; {first.relevance}; error in percent of the "
        "truth",
    ]
    if not is_defined:
        explanation.append(
            "observed, true and error: means over the users for whom the metric is defined; "
            "columns ending in _zero: undefined values count as 0"
        )
    compared = _agreement(observed, true, by_key, undefined, resamples, level, seed)
    return Estimates.of_rows(
        # Without undefined values, columns ending in _zero repeat the others.
        replace(TRUTH, quantities=TRUTH.quantities[:3]) if is_defined else TRUTH,
        rows,
        explanation=(*explanation, *compared.method.lines()),
        notes=(*gaps, *notes),
        parts={"agreement": compared, "orders": _orders(by_key, list(observed), systems, metrics)},
        card={
            "truth": truth_name,
            "level": level,
            "undefined": undefined,
            "facts": {design: dict(of_design) for design, of_design in (facts or {}).items()},
            "better": {metric: parse(metric).better for metric in metrics},
        },
    )


def _beside(
    observed: Parts, true: Parts, key: tuple[str, str, str], policy: str, averages: Averages
) -> list[tuple[str, int | None, float]]:
    """Return what is observed, what is true, and the error: means over splits, and their users."""
    design, system, metric = key
    sides: list[tuple[float, int]] = []
    for parts in (observed[design], true[design]):
        means = [averages(part, policy)[system][metric] for part in parts]
        value = math.fsum(mean.value for mean in means) / len(means)
        sides.append((value, sum(mean.users for mean in means)))
    (seen, users), (actual, true_users) = sides
    error = 100 * (seen - actual) / actual if actual else math.nan
    return [("observed", users, seen), ("true", true_users, actual), ("error", None, error)]


def _undefined(observed: Parts, true: Parts, averages: Averages) -> tuple[bool, list[str]]:
    """Tell whether all is defined; say of each design for how many users what is not, and why."""
    lines = []
    metrics = next(iter(observed.values()))[0].order
    for design in observed:
        groups: dict[tuple[str, str], list[str]] = {}
        for metric in metrics:
            sides = [_without(of[design], metric, averages) for of in (observed, true)]
            if any(count for count, _ in sides):
                groups.setdefault((sides[0][1], sides[1][1]), []).append(metric)
        lines += [
            f"{design}: {', '.join(names)} undefined for {seen}; by the truth for {actual}"
            for (seen, actual), names in groups.items()
        ]
    return not lines, lines


def _without(parts: Sequence[Scores], metric: str, averages: Averages) -> tuple[int, str]:
    """Return how many users a metric is undefined for; in words, why where numbers show it."""
    name = next(iter(parts[0].systems))
    means = [averages(part, "zero")[name][metric] for part in parts]
    undefined, users = (sum(getattr(mean, of) for mean in means) for of in ("undefined", "users"))
    cause = ""
    for what in ("disliked", "liked") if undefined else ():
        lacking = sum(
            int(np.count_nonzero(part.lists[what].to_numpy()[part.averaged(name)] == 0))
            for part in parts
        )
        if lacking == undefined:
            cause = f", who have no {what} test item"
    return undefined, f"{undefined:,} of {users:,} users{cause}"


def _agreement(
    observed: Parts,
    true: Parts,
    values: Mapping[tuple[str, ...], float],
    undefined: str,
    resamples: int,
    level: float,
    seed: int,
) -> Estimates:
    """Return how alike the order of systems under each design is to the true one."""
    first = next(iter(observed.values()))[0]
    systems, suffix = list(first.systems), "" if undefined == "skip" else "_zero"
    rows, method = list[dict[str, Any]](), AGREEMENT.method
    for design in observed if len(systems) > 1 else ():
        sides = {
            name: [replace(part, undefined=undefined) for part in of[design]]
            for name, of in (("observed", observed), ("true", true))
        }
        for metric in first.order:
            seen, actual, errors = (
                [values[design, system, metric, f"{name}{suffix}"] for system in systems]
                for name in ("observed", "true", "error")
            )
            row: dict[str, Any] = {"design": design, "metric": metric}
            if not np.isnan([seen, actual]).any():
                result = agreement(sides, [metric], resamples=resamples, level=level, seed=seed)
                row |= result.rows.drop("design").row(0, named=True)
                method = replace(result.method, estimand=method.estimand)
            mean_error = pl.Series(errors).fill_nan(None).abs().mean()
            rows.append({**row, "mean_error": mean_error})
    return Estimates.of_rows(AGREEMENT, rows, method=method)


def _orders(
    values: Mapping[tuple[str, ...], float],
    designs: Sequence[str],
    systems: Sequence[str],
    metrics: Sequence[str],
) -> Estimates:
    """Return the rank of each system by the truth and under each design."""
    rows = list[tuple[str, str, str, int]]()
    for metric in metrics:
        sign = 1.0 if parse(metric).better == "lower" else -1.0
        columns = {"true": (designs[0], "true")}
        columns |= {design: (design, "observed") for design in designs}
        ranks = dict[str, dict[str, int]]()
        for name, (design, quantity) in columns.items():
            signed = [sign * values[design, system, metric, quantity] for system in systems]
            ranks[name] = {
                system: 1 + sum(rival < value for rival in signed)
                for system, value in zip(systems, signed, strict=True)
            }
        rows += [
            (metric, system, name, of_column[system])
            for system in sorted(systems, key=ranks["true"].__getitem__)
            for name, of_column in ranks.items()
        ]
    return Estimates.of_rows(ORDERS, rows)
