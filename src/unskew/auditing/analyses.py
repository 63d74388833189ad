"""What follows from scores and from lists, without training anything."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, TypeVar

import numpy as np
import polars as pl

from unskew.auditing.designs import CROSSED, Level
from unskew.auditing.request import Progress
from unskew.bias.margins import margins
from unskew.data.ratings import Ratings
from unskew.data.user_groups import UserGroups
from unskew.engine.process_pool import WorkersError
from unskew.engine.store import StoreError
from unskew.errors import UnskewError
from unskew.evaluation.scores import Scores, System
from unskew.judging.judged import Judged
from unskew.metrics.names import parse
from unskew.report.estimates import Estimates
from unskew.stats.agreement.agreement import agreement, score_table
from unskew.stats.agreement.power import discriminative_power
from unskew.stats.agreement.robustness import METRICS as ROBUST
from unskew.stats.agreement.robustness import robustness
from unskew.stats.agreement.stability import stability
from unskew.stats.compare.compare import compare
from unskew.unbiased.estimate import estimate
from unskew.unbiased.strata import strata

T = TypeVar("T")

LEVEL = 0.95
"""Of all intervals."""
BY_USER = "only by user, and group_users=… makes groups of users the unit"
"""Why an analysis that cannot work by group is left out."""
SHARES = (0.75, 0.5, 0.25, 0.1)
CUTS = (0.99, 0.95, 0.9, 0.8)


@dataclass(frozen=True)
class Attempts:
    """What was tried, where data may not allow it: reasons stand here, results are returned."""

    failures: dict[str, str] = field(default_factory=dict)
    """What was not done, and why."""

    def attempt(self, name: str, function: Callable[[], T]) -> T | None:
        """Return what a function gives; where the data do not allow it, None, and note why."""
        try:
            return function()
        except (StoreError, WorkersError):  # the data are not to blame
            raise
        except UnskewError as problem:
            # The report of a failed task ends with what went wrong, after the name of the error.
            last = [line for line in str(problem).splitlines() if line.strip()][-1]
            self.failures[name] = re.sub(r"^[\w.]+(Error|Name): ", "", last.strip())
            return None


@dataclass(frozen=True, eq=False)
class Analysis:
    """How results are analysed: by which metric, how thoroughly, and who is told of progress."""

    metric: str
    level: Level
    seed: int
    attempts: Attempts
    progress: Progress
    depth: int | None = None
    """How many items lists hold; metrics that look deeper are not ranked by robustness."""
    implicit: bool = False
    """Whether no rating is a dislike: then liked and disliked are not told apart."""
    groups: UserGroups | None = None
    """Users that count as one, where the user states such groups."""

    @property
    def robust_metrics(self) -> tuple[str, ...]:
        """The metrics whose robustness is measured."""
        depth = self.depth
        return tuple(
            label for label in ROBUST if depth is None or (parse(label).cutoff or 0) <= depth
        )

    @cached_property
    def cutoff(self) -> int:
        """Where lists are cut."""
        return parse(self.metric).cutoff or 10


@dataclass(frozen=True, eq=False, kw_only=True)
class ScoreAnalyses:
    """What follows from the scores of all designs. None: not possible on these data."""

    comparison: Estimates | None
    """All pairs of systems under the common design, all metrics."""
    agreement: Estimates | None
    """Of the orders under all designs."""
    flips: Estimates | None
    """Pairs of systems over designs."""
    choices: Estimates | None
    """What moves the order: design, metric or cutoff."""
    power: Estimates | None
    """The discriminative power of the metrics."""
    margins: Estimates | None
    """What margins of precision are made of."""


@dataclass(frozen=True, eq=False, kw_only=True)
class ListAnalyses:
    """What follows from the lists of all systems on one split. None: not possible."""

    sparsity: Estimates | None
    popularity: Estimates | None
    """Robustness of the metrics to fewer test ratings, and to fewer popular items."""
    estimates: Estimates | None
    strata: Estimates | None


def analyse_scores(analysis: Analysis, scores: Mapping[str, tuple[Scores, ...]]) -> ScoreAnalyses:
    """Compare the systems under every design, and the designs with each other.

    Parameters
    ----------
    analysis
        Metric, level and seed.
    scores
        By design: the scores of each split. The first design is the common one.
    """
    attempt, metric = analysis.attempts.attempt, analysis.metric
    settings: dict[str, Any] = {
        "permutations": analysis.level.permutations,
        "seed": analysis.seed,
    }
    parts = next(iter(scores.values()))
    analysis.progress("conclusions", 0, 3)
    comparison = attempt("significance", lambda: compare(parts, **settings))
    analysis.progress("conclusions", 1, 3)
    by_design = {design: list(of_design) for design, of_design in scores.items()}
    agreed = flips = choices = None
    if len(scores) > 1:
        agreed = attempt(
            "agreement",
            lambda: agreement(
                by_design,
                metric,
                resamples=analysis.level.bootstrap,
                level=LEVEL,
                seed=analysis.seed,
            ),
        )
        flips = attempt("stability", lambda: _flips(metric, by_design))
        analysis.progress("conclusions", 2, 3)
        if all(name in parts[0].order for name in CROSSED):
            choices = attempt("choices", lambda: stability(score_table(by_design, list(CROSSED))))
    power = None
    if comparison is not None:
        power = attempt("discriminative power", lambda: discriminative_power(comparison))
    split = None
    if not analysis.implicit:
        split = attempt("margins", lambda: _margins(parts, analysis.cutoff))
    analysis.progress("conclusions", 3, 3)
    return ScoreAnalyses(
        comparison=comparison,
        agreement=agreed,
        flips=flips,
        choices=choices,
        power=power,
        margins=split,
    )


def _flips(metric: str, scores: Mapping[str, list[Scores]]) -> Estimates:
    table = score_table(scores, metric).drop("metric", "cutoff")
    if parse(metric).better == "lower":
        table = table.with_columns(-pl.col("score"))
    return stability(table)


def analyse_lists(analysis: Analysis, judged: Judged, random: Ratings | None) -> ListAnalyses:
    """Return robustness, unbiased estimates and strata.

    Parameters
    ----------
    analysis
        Metric, level and seed.
    judged
        The lists of all systems over their judgments.
    random
        Ratings of randomly chosen items, where there are any.
    """
    seed, samples, bootstrap = analysis.seed, analysis.level.samples, analysis.level.bootstrap
    precision, gain = f"P@{analysis.cutoff}", f"DCG@{analysis.cutoff}"
    # The same intervals everywhere, so that all call the same estimates usable.
    weighted: dict[str, Any] = {
        "random": random,
        "seed": seed,
        "level": LEVEL,
        "resamples": bootstrap,
    }
    done = 0

    def step(name: str, function: Callable[[], T]) -> T | None:
        nonlocal done
        result = analysis.attempts.attempt(name, function)
        done += 1
        analysis.progress("diagnostics", done, len(ListAnalyses.__dataclass_fields__))
        return result

    return ListAnalyses(
        sparsity=step(
            "robustness to sparsity",
            lambda: robustness(
                judged,
                analysis.robust_metrics,
                to="sparsity",
                shares=SHARES,
                samples=samples,
                seed=seed,
            ),
        ),
        popularity=step(
            "robustness to popularity",
            lambda: robustness(
                judged, analysis.robust_metrics, to="popularity", shares=CUTS, seed=seed
            ),
        ),
        estimates=step(
            "unbiased estimates",
            lambda: estimate(judged, [precision, gain], group_users=analysis.groups, **weighted),
        ),
        strata=step("popularity deciles", lambda: _strata(analysis, judged, precision)),
    )


def _strata(analysis: Analysis, judged: Judged, metric: str) -> Estimates:
    """Return scores by popularity of items; their bootstrap draws users, not groups of users."""
    resamples = analysis.level.bootstrap
    if analysis.groups is not None:
        resamples = 0
        analysis.attempts.failures["intervals of popularity deciles"] = BY_USER
    return strata(judged, [metric], resamples=resamples, level=LEVEL, seed=analysis.seed)


def with_metrics(scores: Scores, metrics: Sequence[str]) -> Scores:
    """Return scores of some metrics only."""
    labels = tuple(dict.fromkeys(metrics))
    rows = [scores.labels.index(label) for label in labels]

    def part(system: System) -> System:
        den = {index: system.den[row] for index, row in enumerate(rows) if row in system.den}
        return System(system.values[rows], den, system.depth)

    return replace(
        scores,
        labels=labels,
        order=labels,
        systems={name: part(system) for name, system in scores.systems.items()},
        chance=None if scores.chance is None else part(scores.chance),
    )


def _margins(parts: Sequence[Scores], cutoff: int) -> Estimates:
    """Split the margins of the mean precision over splits."""
    by_split = [margins(part, cutoff) for part in parts]
    if len(parts) == 1:
        return by_split[0]

    def mean(system: str, metric: str) -> float:
        rows = [split.row(system=system, quantity=metric) for split in by_split]
        return float(np.mean([row.estimate[0] for row in rows]))

    result = margins({name: (mean(name, "P"), mean(name, "anti-P")) for name in parts[0].systems})
    return replace(result, card={"k": cutoff})
