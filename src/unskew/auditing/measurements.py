"""`Measurements`: all that an audit measured, before it is put into words."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np
import polars as pl

from unskew.arrays import F64, I64
from unskew.auditing.analyses import LEVEL, ListAnalyses, ScoreAnalyses
from unskew.auditing.core.core import Core
from unskew.auditing.designs import LeftOut
from unskew.auditing.statements.evidence import Evidence
from unskew.auditing.statements.first_screen import (
    FirstScreen,
    first_screen,
    statements_of,
)
from unskew.auditing.statements.statement import Statement
from unskew.bias.describe_bias import BiasReport
from unskew.checks import choose
from unskew.data.ratings import Ratings
from unskew.data.relevance import Relevance
from unskew.data.summary import Summary
from unskew.evaluation.notes import notes_of
from unskew.evaluation.scores import Scores
from unskew.experiment.plan import Plan
from unskew.metrics.names import parse
from unskew.report.estimates import Estimates
from unskew.report.result import Result
from unskew.splits.counts import count_parts
from unskew.splits.diagnosis.diagnosis import Diagnosis, diagnose
from unskew.splits.diagnosis.parts import MIXED, mean_later
from unskew.splits.split import Split, Splitter
from unskew.splits.time.temporal import Temporal
from unskew.stats.intervals.means import standard_errors, student_ends
from unskew.stats.pairing import Paired, Pairs, paired, sample

ROUNDING = 1e-12
"""Means of a user that differ by less are the same."""


@dataclass(frozen=True, eq=False)
class DesignMeans:
    """All metrics of a design's splits; what they share is worked out once."""

    parts: tuple[Scores, ...]
    """A split each."""
    systems: tuple[str, ...]

    @cached_property
    def _paired(self) -> Paired:
        return paired(self.parts)

    @cached_property
    def _means(self) -> dict[str, F64]:
        """By label: the mean of the splits' means, of each system."""
        averages = [part.averages() for part in self.parts]
        return {
            label: np.array(
                [
                    np.mean([average[system][label].value for average in averages])
                    for system in self.systems
                ]
            )
            for label in self.parts[0].order
        }

    @cached_property
    def _chance(self) -> list[dict[str, float]]:
        return [part.random() for part in self.parts]

    @property
    def metrics(self) -> tuple[str, ...]:
        """The labels of all metrics, those of a whole run too."""
        return self.parts[0].order

    def is_per_user(self, metric: str) -> bool:
        """Tell whether a metric has a value per user."""
        return self._paired.any_label(metric) in self._paired.metrics

    def chance(self, metric: str) -> float | None:
        """Return what a random order is expected to score; None where a split cannot tell."""
        label = self._paired.any_label(metric)
        values = [expected[label] for expected in self._chance if label in expected]
        return float(np.mean(values)) if values and len(values) == len(self.parts) else None

    def values(self, metric: str) -> F64:
        """Return users x systems, without users that a system has no value for."""
        of_users = self._paired
        columns = [of_users.systems.index(system) for system in self.systems]
        return of_users.complete(metric)[:, columns]

    def means(self, metric: str, values: F64 | None = None) -> dict[str, F64 | I64]:
        """Return the means of a metric, of each system.

        `value`, NaN where there is none, with its 95 % t interval over users (`low`, `high`; NaN
        where a metric has no value per user, or there is one user only), and the `place`, 1 for the
        best; systems without a mean come after all others.

        Parameters
        ----------
        metric
            Its label.
        values
            Its `values`, if they are at hand; None = no value per user.
        """
        mean = self._means[self._paired.any_label(metric)]
        low = high = np.full(mean.size, np.nan)
        if values is not None and len(values) > 1:
            # A row per system: the sum over users is the same, bit for bit, as of one system alone.
            se = standard_errors(np.ascontiguousarray(values.T), axis=1)
            low, high = student_ends(mean, se, len(values) - 1, LEVEL)
        place = places(mean, parse(metric).better)
        return {"value": mean, "low": low, "high": high, "place": place}

    def differences(self, metric: str, values: F64, pairs: Pairs) -> dict[str, F64 | I64] | None:
        """Return the differences of pairs of systems, user by user; None where no user has a value.

        `difference` of the first system less the second one, with its 95 % t interval over users of
        this pair alone (`low`, `high`; NaN with one user), and how many users are `better` off with
        the first system, `worse`, and the `same`.

        Parameters
        ----------
        metric
            Its label.
        values
            Its `values`.
        pairs
            By the numbers of `systems`.
        """
        if not len(values) or not np.isfinite(values).all():
            return None
        columns, column_pairs = _within(pairs)
        result = sample(values[:, columns], column_pairs, metric, threads=1)
        low = high = np.full(len(pairs), np.nan)
        if result.users > 1:
            freedom = result.users - 1
            low, high = student_ends(result.difference, result.standard_error, freedom, LEVEL)
        better, worse, same = self.users_ahead(metric, pairs)
        return {
            "difference": result.difference,
            "low": low,
            "high": high,
            "better": better,
            "worse": worse,
            "same": same,
        }

    def users_ahead(self, metric: str, pairs: Pairs) -> tuple[I64, I64, I64]:
        """Count users who are better off with the first system of a pair, worse off, and neither.

        Better off is a greater value where no side of the metric is better. A user's value is the
        mean over lists, then over the splits that average the user.
        """
        columns, column_pairs = _within(pairs)
        means = self._user_means(metric, [self.systems[column] for column in columns])
        sign = -1.0 if parse(metric).better == "lower" else 1.0
        apart = sign * (means[column_pairs.first] - means[column_pairs.second])
        better, worse = ((side > ROUNDING).sum(axis=1) for side in (apart, -apart))
        return better, worse, apart.shape[1] - better - worse

    def _user_means(self, metric: str, systems: list[str]) -> F64:
        """Return systems x users: the mean over lists, then over splits that average the user."""
        users = len(self._paired)
        total, splits = np.zeros((len(systems), users)), np.zeros(users)
        for part, unit in zip(self.parts, self._paired.places, strict=True):
            values = np.stack([part.values(system, metric)[unit.keep] for system in systems])
            is_defined = ~np.isnan(values).any(axis=0) | (part.undefined != "skip")
            values = np.where(np.isnan(values) | ~is_defined, 0.0, values)
            lists = np.bincount(unit.owner[is_defined], minlength=users)
            sums = np.stack([np.bincount(unit.owner, value, users) for value in values])
            total += sums / np.maximum(lists, 1)
            splits += lists > 0
        return total[:, splits > 0] / splits[splits > 0]


def _within(pairs: Pairs) -> tuple[I64, Pairs]:
    """Return the systems of pairs, and the pairs by their numbers among these."""
    systems, inverse = np.unique(np.concatenate((pairs.first, pairs.second)), return_inverse=True)
    return systems, Pairs(*np.split(inverse.astype(np.int64), 2))


def places(values: F64, better: str) -> I64:
    """Return the place of each value, 1 for the best; equal ones share it, NaN come last."""
    ordered = np.where(np.isnan(values), -np.inf, -values if better == "lower" else values)
    best = np.sort(-ordered)
    return np.searchsorted(best, -ordered).astype(np.int64) + 1


WITHIN_TIME = ("future", "user-order", "unborn-items", "torn-sessions")
"""Checks that are red wherever training and test cover the same time."""


@dataclass(frozen=True, eq=False)
class SplitLights:
    """The first split of each protocol: what it did, and what was found in it."""

    counts: Mapping[str, Summary] = field(default_factory=dict)
    """By protocol: users, items and ratings of its parts."""
    diagnoses: Mapping[str, Diagnosis] = field(default_factory=dict)
    """By protocol, of the first one and of splits by time: the lights."""

    mixed: tuple[str, ...] = ()
    """The protocols whose training and test cover the same time: without one cut for all."""


def lights_of_splits(splitters: Iterable[Splitter], ratings: Ratings, seed: int) -> SplitLights:
    """Make the first split of each protocol, and look at it.

    Parameters
    ----------
    splitters
        One of each protocol; the first one is that of the common design.
    ratings
        What is split.
    seed
        Same seed, same splits.
    """
    kinds = list(splitters)
    names = [kind.name for kind in kinds]
    counts, diagnoses, mixed = {}, {}, []
    for number, kind in enumerate(kinds):
        name = kind.name if names.count(kind.name) == 1 else repr(kind)
        split = next(iter(kind.each(ratings, seed)))
        counts[name] = count_parts(split)
        if number == 0 or isinstance(kind, Temporal):
            diagnoses[name] = diagnose(split, log=ratings)
        if _is_mixed(split):
            mixed.append(name)
    return SplitLights(counts, diagnoses, tuple(mixed))


def _is_mixed(split: Split) -> bool:
    """Tell whether training and test cover the same time."""
    train, test = split.train.time, split.test.time
    return train is not None and test is not None and mean_later(train, np.sort(test)) >= MIXED


def lights_of_given(train: Ratings | None, test: Ratings) -> SplitLights:
    """Look at training and test ratings as they were given."""
    if train is None or not len(train) or not len(test):
        return SplitLights()
    split = Split(train, test, "given")
    mixed = ("given",) if _is_mixed(split) else ()
    return SplitLights({"given": count_parts(split)}, {"given": diagnose(split)}, mixed)


@dataclass(frozen=True, eq=False, kw_only=True)
class Measurements(Result, ScoreAnalyses, ListAnalyses):
    """All that an audit measured; what could not be measured is None, and stands in `skipped`."""

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
    null: Estimates | None = None
    truth: Estimates | None = None
    reach: pl.DataFrame | None = None
    """Of given lists, by design and system: how much of the test ratings the lists hold."""
    filter_effect: Estimates | None = None
    """Where filters were applied: how far they moved scores and order."""
    segments: Estimates | None = None
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

    @property
    def splits(self) -> Mapping[str, Summary]:
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
        return statements_of(self.evidence)

    @cached_property
    def first_screen(self) -> FirstScreen:
        """The verdict, the finding, what bears on it, and the next step."""
        return first_screen(self.evidence, self.statements)

    @property
    def verdict(self) -> str:
        """What is settled, in the fewest words."""
        return self.first_screen.verdict

    def unstated_designs(self) -> dict[str, str]:
        """Return the designs that do not count and of which no statement speaks, and why."""
        stated = {design for statement in self.statements for design in statement.designs}
        left_out = self.left_out
        return {name: design.why for name, design in left_out.items() if name not in stated}

    @cached_property
    def remarks(self) -> tuple[str, ...]:
        """What was counted while systems were judged: what `evaluate` notes or warns of.

        Users without lists, training items in lists, cutoffs deeper than lists, … Each one
        stands once, with the systems and designs it is true of.
        """
        other_notes = {*self.notes, *self.assumed}
        return tuple(
            notes_of(
                {
                    design: [
                        replace(
                            part,
                            notes=tuple(note for note in part.notes if note not in other_notes),
                        )
                        for part in parts
                    ]
                    for design, parts in self.scores.items()
                }
            )
        )

    @cached_property
    def _table(self) -> pl.DataFrame:
        schema = {
            "design": pl.String,
            "system": pl.String,
            **dict.fromkeys(("value", "low", "high", "random"), pl.Float64),
            "place": pl.Int64,
        }
        tables = []
        for design, parts in self.core.warm_scores.items():
            of_design = DesignMeans(parts, self.systems)
            columns = {
                "design": [design] * len(self.systems),
                "system": list(self.systems),
                "random": [of_design.chance(self.metric)] * len(self.systems),
                **of_design.means(self.metric, of_design.values(self.metric)),
            }
            frame = pl.DataFrame({name: columns[name] for name in schema}, schema=schema)
            tables.append(frame.with_columns(pl.col("low", "high").fill_nan(None)))
        return pl.concat(tables)

    def table(self) -> pl.DataFrame:
        """Return a row per design and system.

        Columns: `value` of the metric with `low` and `high` (t interval over users, 95 %), what a
        `random` order is expected to score in that design, and the `place` of the system. Users
        without a training rating are left out: `evidence.core.cold_table` has them.
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
