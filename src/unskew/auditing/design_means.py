"""The means of systems under one design, with intervals over users, and what chance scores."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from unskew.arrays import F64, I64
from unskew.auditing.analyses import LEVEL
from unskew.evaluation.scores import Scores
from unskew.metrics.names import parse
from unskew.stats.distributions import student_t_quantile
from unskew.stats.pairing import Paired, paired
from unskew.stats.samples import Pairs, sample

ROUNDING = 1e-12
"""Means of a user that differ by less are the same."""


@dataclass(frozen=True, eq=False, kw_only=True)
class Means:
    """The mean of each system; NaN where there is none."""

    value: F64
    low: F64
    """95 % t interval over users; NaN where a metric has no value per user, or there is one user
    only."""
    high: F64
    place: I64
    """1 is best; systems without a mean come after all others."""


@dataclass(frozen=True, eq=False, kw_only=True)
class Differences:
    """The first system less the second one, of each pair, user by user."""

    difference: F64
    low: F64
    """95 % t interval over users of this pair alone; NaN with one user."""
    high: F64
    better: I64
    """Users who are better off with the first system; with a greater value, if no side is better.
    A user's value is the mean over lists, then over the splits that average the user."""
    worse: I64
    same: I64


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
        each = [part.averages() for part in self.parts]
        return {
            label: np.array(
                [np.mean([one[system][label].value for one in each]) for system in self.systems]
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
        known = [one[label] for one in self._chance if label in one]
        return float(np.mean(known)) if known and len(known) == len(self.parts) else None

    def values(self, metric: str) -> F64:
        """Return users x systems, without users that a system has no value for."""
        both = self._paired
        columns = [both.systems.index(system) for system in self.systems]
        return both.complete(metric)[:, columns]

    def means(self, metric: str, values: F64 | None = None) -> Means:
        """Return the means of a metric.

        Parameters
        ----------
        metric
            Its label.
        values
            Its `values`, if they are at hand; None = no value per user.
        """
        mean = self._means[self._paired.any_label(metric)]
        half = np.full(mean.size, np.nan)
        if values is not None and len(values) > 1:
            # A row per system: the sum over users is the same, bit for bit, as of one system alone.
            spread = np.ascontiguousarray(values.T).std(axis=1, ddof=1) / len(values) ** 0.5
            half = student_t_quantile((1 + LEVEL) / 2, len(values) - 1) * spread
        place = places(mean, parse(metric).better)
        return Means(value=mean, low=mean - half, high=mean + half, place=place)

    def differences(self, metric: str, values: F64, pairs: Pairs) -> Differences | None:
        """Return the differences of pairs of systems; None where no user has a value.

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
        columns, place = np.unique(np.concatenate((pairs.one, pairs.other)), return_inverse=True)
        within = Pairs(*np.split(place.astype(np.int64), 2))
        one = sample(values[:, columns], within, metric, threads=1)
        half = np.full(len(pairs), np.nan)
        if one.users > 1:
            half = student_t_quantile((1 + LEVEL) / 2, one.users - 1) * one.standard_error
        each = self._user_means(metric, [self.systems[at] for at in columns])
        sign = -1.0 if parse(metric).better == "lower" else 1.0
        apart = sign * (each[within.one] - each[within.other])
        better, worse = ((side > ROUNDING).sum(axis=1) for side in (apart, -apart))
        return Differences(
            difference=one.difference,
            low=one.difference - half,
            high=one.difference + half,
            better=better,
            worse=worse,
            same=apart.shape[1] - better - worse,
        )

    def _user_means(self, metric: str, systems: list[str]) -> F64:
        """Return systems x users: the mean over lists, then over splits that average the user."""
        users = len(self._paired)
        total, splits = np.zeros((len(systems), users)), np.zeros(users)
        for part, place in zip(self.parts, self._paired.places, strict=True):
            values = np.stack([part.values(one, metric)[place.keep] for one in systems])
            known = ~np.isnan(values).any(axis=0) | (part.undefined != "skip")
            values = np.where(np.isnan(values) | ~known, 0.0, values)
            lists = np.bincount(place.owner[known], minlength=users)
            sums = np.stack([np.bincount(place.owner, one, users) for one in values])
            total += sums / np.maximum(lists, 1)
            splits += lists > 0
        return total[:, splits > 0] / splits[splits > 0]


def places(values: F64, better: str) -> I64:
    """Return the place of each value, 1 for the best; equal ones share it, NaN come last."""
    ordered = np.where(np.isnan(values), -np.inf, -values if better == "lower" else values)
    best = np.sort(-ordered)
    return np.searchsorted(best, -ordered).astype(np.int64) + 1
