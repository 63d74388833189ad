"""What follows from scores and from lists, without training anything."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, TypeVar

import numpy as np
import polars as pl

from unskew.auditing.designs import CROSSED, Level
from unskew.auditing.measurements import LEVEL
from unskew.bias.decomposition import Margins, margins
from unskew.data.ratings import Ratings
from unskew.data.relevance import Relevance, Rule
from unskew.errors import SettingError, UnskewError
from unskew.evaluation.scores import Scores, System
from unskew.judging.judged import Judged
from unskew.judging.reading import relevance_for
from unskew.judging.shape import View
from unskew.metrics.names import parse
from unskew.stats.comparison import Comparison
from unskew.stats.discrimination import discriminative_power
from unskew.stats.incompleteness import robustness
from unskew.stats.order_agreement import agreement
from unskew.stats.order_stability import Stability, stability
from unskew.stats.sample_sizes import sample_size
from unskew.stats.score_tables import score_table
from unskew.stats.significance import compare
from unskew.unbiased.hidden_bias import sensitivity
from unskew.unbiased.ips import estimate
from unskew.unbiased.judgment_budget import judgments_needed
from unskew.unbiased.stratified import strata

T = TypeVar("T")
Progress = Callable[[str, int, int], None]
"""Called with the stage, and how much of it is done, of how much."""

SHARES = (0.75, 0.5, 0.25, 0.1)
CUTS = (0.99, 0.95, 0.9, 0.8)


@dataclass(frozen=True, eq=False)
class Findings:
    """What follows from scores, and from lists."""

    metric: str
    level: Level
    seed: int
    skipped: dict[str, str]
    told: Progress

    def tried(self, name: str, make: Callable[[], T]) -> T | None:
        """Return what a function gives, or None and the reason in `skipped`."""
        return tried(self.skipped, name, make)

    def of_scores(self, scores: Mapping[str, tuple[Scores, ...]]) -> dict[str, Any]:
        """Return comparisons, agreement, stability, power and margins."""
        parts = next(iter(scores.values()))
        how: dict[str, Any] = {"permutations": self.level.permutations, "seed": self.seed}
        total = len(scores) + 3
        self.told("conclusions", 0, total)
        comparison = self.tried("significance", lambda: compare(parts, **how))
        comparisons: dict[str, Comparison] = {}
        for number, (design, own) in enumerate(scores.items(), start=1):
            alone = partial(compare, own, self.metric, **how)
            made = self.tried(f"significance under {design}", alone)
            if made is not None:
                comparisons[design] = made
            self.told("conclusions", number, total)
        several = {design: list(own) for design, own in scores.items()}
        agreed = flips = choices = None
        if len(scores) > 1:
            agreed = self.tried(
                "agreement",
                lambda: agreement(
                    several,
                    self.metric,
                    bootstrap=self.level.bootstrap,
                    level=LEVEL,
                    seed=self.seed,
                ),
            )
            flips = self.tried("stability", lambda: self._flips(several, comparisons))
            self.told("conclusions", len(scores) + 1, total)
            if all(name in parts[0].order for name in CROSSED):
                choices = self.tried(
                    "choices", lambda: stability(score_table(several, list(CROSSED)))
                )
        power = None
        if comparison is not None:
            power = self.tried("discriminative power", lambda: discriminative_power(comparison))
        needed = self.tried("users needed", lambda: sample_size(list(parts), self.metric))
        cutoff = parse(self.metric).cutoff or 10
        split = self.tried("margins", lambda: _margins(parts, cutoff))
        self.told("conclusions", total, total)
        return {
            "comparison": comparison,
            "comparisons": comparisons,
            "agreement": agreed,
            "flips": flips,
            "choices": choices,
            "power": power,
            "users_needed": needed,
            "margins": split,
        }

    def _flips(
        self, scores: Mapping[str, list[Scores]], comparisons: Mapping[str, Comparison]
    ) -> Stability:
        table = score_table(scores, self.metric).drop("metric", "cutoff")
        if parse(self.metric).better == "lower":
            table = table.with_columns(-pl.col("score"))
        rows = [
            one.table()
            .select("a", "b", pl.col("p_corrected").alias("p"))
            .with_columns(design=pl.lit(design))
            for design, one in comparisons.items()
        ]
        return stability(table, pvalues=pl.concat(rows) if rows else None)

    def of_lists(self, judged: Judged, random: Ratings | None) -> dict[str, Any]:
        """Return robustness, estimates, what would change them, and strata."""
        cutoff = parse(self.metric).cutoff or 10
        precision, seed, bootstrap = f"P@{cutoff}", self.seed, self.level.bootstrap
        # The same intervals everywhere, so that all call the same estimates usable.
        drawn: dict[str, Any] = {
            "random": random,
            "seed": seed,
            "level": LEVEL,
            "resamples": bootstrap,
        }
        steps: dict[str, tuple[str, Callable[[], Any]]] = {
            "sparsity": (
                "robustness to sparsity",
                lambda: robustness(
                    judged, to="sparsity", shares=SHARES, samples=self.level.samples, seed=seed
                ),
            ),
            "popularity": (
                "robustness to popularity",
                lambda: robustness(judged, to="popularity", shares=CUTS, seed=seed),
            ),
            "estimates": (
                "unbiased estimates",
                lambda: estimate(judged, [precision, f"DCG@{cutoff}"], **drawn),
            ),
            "sensitivity": (
                "sensitivity",
                lambda: sensitivity(judged, precision, **drawn),
            ),
            "judgments_needed": (
                "judgments needed",
                lambda: judgments_needed(judged, precision, **drawn),
            ),
            "strata": (
                "popularity deciles",
                lambda: strata(judged, [precision], bootstrap=bootstrap, level=LEVEL, seed=seed),
            ),
        }
        results: dict[str, Any] = {}
        for number, (key, (name, make)) in enumerate(steps.items(), start=1):
            results[key] = self.tried(name, make)
            self.told("diagnostics", number, len(steps))
        return results


def tried(skipped: dict[str, str], name: str, make: Callable[[], T]) -> T | None:
    """Return what a function gives; where the data do not allow it, None, and why in `skipped`."""
    try:
        return make()
    except UnskewError as problem:
        # The report of a failed task ends with what went wrong, after the name of the error.
        last = [line for line in str(problem).splitlines() if line.strip()][-1]
        skipped[name] = re.sub(r"^[\w.]+(Error|Name): ", "", last.strip())
        return None


def only(scores: Scores, wanted: Sequence[str]) -> Scores:
    """Return scores of some metrics only."""
    labels = tuple(dict.fromkeys(wanted))
    rows = [scores.labels.index(label) for label in labels]

    def part(system: System) -> System:
        den = {at: system.den[row] for at, row in enumerate(rows) if row in system.den}
        return System(system.values[rows], den, system.depth)

    return replace(
        scores,
        labels=labels,
        order=labels,
        systems={name: part(one) for name, one in scores.systems.items()},
        chance=None if scores.chance is None else part(scores.chance),
    )


def _margins(parts: Sequence[Scores], cutoff: int) -> Margins:
    """Split the margins of the mean precision over splits."""
    if len(parts) == 1:
        return margins(parts[0], cutoff)
    each = [margins(part, cutoff).values for part in parts]
    mean = {
        system: tuple(float(np.mean([one[system][at] for one in each])) for at in (0, 1))
        for system in each[0]
    }
    return replace(margins(mean), k=cutoff)  # type: ignore[arg-type]


def at_least(relevance: Relevance, ratings: Ratings) -> float:
    """Return the smallest liked rating: what a rule that takes ratings above something means."""
    if relevance.liked is not None:
        return float(relevance.liked)
    above = ratings.value[relevance.is_liked(ratings.value)]
    return float(above.min()) if above.size else float(np.nextafter(relevance.threshold, np.inf))


# What was asked


@dataclass(frozen=True)
class Rules:
    """What the user says of relevance, as `evaluate` takes it."""

    liked: float | None = None
    above: float | None = None
    gain: Rule = "rating"
    loss: Rule = "levels"
    relevance: Relevance | str | None = None

    @property
    def stated(self) -> bool:
        """Whether anything is said."""
        return self != Rules()

    def of(self, ratings: Ratings, usual: float | None = None) -> tuple[Relevance, list[str]]:
        """Return the rule for these ratings, and what was assumed for it."""
        return relevance_for(
            ratings, self.liked, self.above, self.gain, self.loss, self.relevance, usual
        )


def check_worth(ratings: Ratings, rule: Relevance) -> None:
    """Refuse ratings to which the rule gives no gain or no loss, before anything is run."""
    view = View.of(ratings, rule)
    for name in ("gain", "loss"):
        getattr(view, name)  # worked out, and checked, when it is asked for


def orders_systems(label: str) -> str:
    """Return a metric that can order systems, or refuse it."""
    if parse(label).definition.of == "run" or parse(label).better == "neither":
        raise SettingError(f"{label} orders no systems: choose a metric such as P@10")
    return label


def refuse(given: Mapping[str, object], why: str) -> None:
    """Refuse what does not belong here."""
    for name, value in given.items():
        if value is not None:
            raise SettingError(f"{name} {why}")
