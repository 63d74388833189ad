"""`Measurements`: all that an audit measured, before it is put into words."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, fields, replace
from functools import cached_property
from typing import Self

import polars as pl

from unskew.auditing.analyses import ListAnalyses, ScoreAnalyses
from unskew.auditing.core import Core
from unskew.auditing.design_checks import LeftOut
from unskew.auditing.design_means import DesignMeans, Means
from unskew.auditing.evidence import Evidence
from unskew.auditing.filter_effects import FilterEffect
from unskew.auditing.first_screen import FirstScreen, first_screen, undecided_between_given
from unskew.auditing.null import NullExperiment
from unskew.auditing.split_lights import SplitLights
from unskew.auditing.statement import Statement
from unskew.auditing.statements import statements_of
from unskew.auditing.true_scores import Truth
from unskew.bias.describe import BiasReport
from unskew.checks import choose
from unskew.data.overview import Summary
from unskew.data.relevance import Relevance
from unskew.evaluation.notes import notes_of
from unskew.evaluation.scores import Scores
from unskew.experiment.plan import Plan
from unskew.report.result import Result
from unskew.splits.counts import SplitCounts
from unskew.stats.segment_comparison import SegmentComparison

NUMBERS = ("value", "low", "high", "random")


@dataclass(frozen=True, eq=False, kw_only=True)
class AuditFacts:
    """What was audited and how, and what was measured of the data themselves."""

    name: str
    """What the data are called."""
    metric: str
    """The metric that orders the systems."""
    systems: tuple[str, ...]
    designs: Mapping[str, str]
    """By name: what is done. The first one is the common design."""
    scores: Mapping[str, tuple[Scores, ...]]
    """By design: the scores of each split; of users with training ratings where some have none."""
    relevance: Relevance
    evidence: Evidence
    """What statements rest on."""
    data: Summary | None = None
    bias: BiasReport | None = None
    lights: SplitLights = field(default_factory=SplitLights)
    """The first split of each protocol: what it did, and what leaks or drifts."""
    null: NullExperiment | None = None
    truth: Truth | None = None
    reach: pl.DataFrame | None = None
    """Of given lists, by design and system: how much of the test ratings the lists hold."""
    filter_effect: FilterEffect | None = None
    """Where filters were applied: how far they moved scores and order."""
    segments: SegmentComparison | None = None
    """Of two or more given systems: their differences within segments of users, by activity."""
    skipped: Mapping[str, str] = field(default_factory=dict)
    """What was not done, and why."""
    assumed: tuple[str, ...] = ()
    """What was assumed because nobody said it."""
    notes: tuple[str, ...] = ()
    """What was noted when the data were read; see also `Measurements.remarks`."""
    card: Mapping[str, object] = field(default_factory=dict)
    """Everything from which the numbers can be derived again."""
    command: str = ""
    """The command or the Python code that makes the report again from the same data."""
    plans: tuple[Plan, ...] = ()


@dataclass(frozen=True, eq=False, kw_only=True)
class Measurements(Result, AuditFacts, ScoreAnalyses, ListAnalyses):
    """All that an audit measured; what could not be measured is None, and stands in `skipped`."""

    @classmethod
    def of(cls, facts: AuditFacts, of_scores: ScoreAnalyses, of_lists: ListAnalyses) -> Self:
        """Put the parts together, whose fields this class inherits."""
        parts = (facts, of_scores, of_lists)
        return cls(**{one.name: getattr(part, one.name) for part in parts for one in fields(part)})

    @property
    def splits(self) -> Mapping[str, SplitCounts]:
        """By protocol: what its first split did."""
        return self.lights.counts

    @property
    def common(self) -> str:
        """The design that most evaluations take: the first one."""
        return next(iter(self.designs))

    @property
    def core(self) -> Core:
        """The systems under every design and split, and their lists."""
        return self.evidence.core

    @property
    def references(self) -> tuple[str, ...]:
        """Systems that were trained to stand beside given lists."""
        return self.evidence.references

    @property
    def left_out(self) -> Mapping[str, LeftOut]:
        """Designs that were run and do not count, and why."""
        return self.core.left_out

    @cached_property
    def statements(self) -> tuple[Statement, ...]:
        """All that may be stated: each one of a kind whose error rate is measured."""
        stated = statements_of(self.evidence)
        return (*stated, *undecided_between_given(self.evidence, stated))

    @cached_property
    def first_screen(self) -> FirstScreen:
        """The verdict, the finding, a reason for it, and the next step."""
        return first_screen(self.evidence, self.statements)

    @property
    def verdict(self) -> str:
        """What is settled, in the fewest words."""
        return self.first_screen.verdict

    def unstated_designs(self) -> dict[str, str]:
        """Return the designs that do not count and of which no statement speaks, and why."""
        stated = {design for one in self.statements for design in one.designs}
        left_out = self.left_out
        return {name: one.why for name, one in left_out.items() if name not in stated}

    @cached_property
    def remarks(self) -> tuple[str, ...]:
        """What was counted while systems were judged: what `evaluate` notes or warns of.

        Users without lists, training items in lists, cutoffs deeper than lists, … Each one
        stands once, with the systems and designs it is true of.
        """
        known = {*self.notes, *self.assumed}
        return tuple(
            notes_of(
                {
                    design: [
                        replace(part, notes=tuple(note for note in part.notes if note not in known))
                        for part in parts
                    ]
                    for design, parts in self.scores.items()
                }
            )
        )

    @cached_property
    def _table(self) -> pl.DataFrame:
        rows = []
        for design, parts in self.core.warm_scores.items():
            of_design = DesignMeans(parts, self.systems)
            means = of_design.means(self.metric, of_design.values(self.metric))
            random = of_design.chance(self.metric)
            rows += [
                (design, system, value, *interval, random, place)
                for system, value, interval, place in zip(
                    self.systems,
                    means.value.tolist(),
                    _intervals(means),
                    means.place.tolist(),
                    strict=True,
                )
            ]
        schema = {
            "design": pl.String,
            "system": pl.String,
            **dict.fromkeys(NUMBERS, pl.Float64),
            "place": pl.Int64,
        }
        return pl.DataFrame(rows, schema=schema, orient="row")

    def table(self) -> pl.DataFrame:
        """Return a row per design and system.

        Columns: `value` of the metric with `low` and `high` (t interval over users, 95 %), what a
        `random` order is expected to score in that design, and the `place` of the system. Users
        without a training rating are left out: `evidence.core.cold_table()` has them.
        """
        return self._table

    def order(self, design: str | None = None) -> list[str]:
        """Return the systems, best first: under a design, or under the common one."""
        name = choose("design", design or self.common, self.designs)
        part = self.table().filter(pl.col("design") == name).sort("place", maintain_order=True)
        return part["system"].to_list()

    def consensus(self) -> pl.DataFrame:
        """Return a row per system, by its mean place over designs; `first`: how often it leads.

        Designs that give all systems the same score count for nothing.
        """
        table = self.table()
        telling = table.filter((pl.col("place") > 1).any().over("design"))
        return (
            (telling if telling.height else table)
            .group_by("system", maintain_order=True)
            .agg(
                pl.col("place").mean().alias("mean_place"),
                pl.col("place").min().alias("best"),
                pl.col("place").max().alias("worst"),
                (pl.col("place") == 1).sum().cast(pl.Int64).alias("first"),
            )
            .sort("mean_place", maintain_order=True)
        )


def _intervals(means: Means) -> Iterator[tuple[float | None, float | None]]:
    """Yield low and high of each system; None where there is no interval."""
    for low, high in zip(means.low.tolist(), means.high.tolist(), strict=True):
        yield (None, None) if math.isnan(low) else (low, high)
