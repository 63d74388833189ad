"""Estimates of a system's value, or of a difference, from labels of people and of an annotator."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from statistics import NormalDist

import numpy as np

from unskew.arrays import F64, I64
from unskew.labels.contrast_sides import (
    CARRIERS,
    ESTIMATORS,
    FEW_ERRORS,
    HUMAN,
    LISTS,
    MANY,
    TUNED,
    USERS,
    LabelledPairs,
    Side,
    SideEstimate,
    by_user_covariance,
    effective_number,
    sampling_covariance,
)
from unskew.stats.clusters import variance_of
from unskew.stats.intervals.means import student_ends
from unskew.stats.intervals.shares import sum_interval
from unskew.stats.resampling import bca_ends, drawn_sums, wide_rows, with_replacement
from unskew.stats.special import student_t_quantile


@dataclass(frozen=True, eq=False, kw_only=True)
class ContrastEstimate:
    """One estimate of a contrast, in units in which a liked place counts 1."""

    estimator: str
    sides: tuple[SideEstimate, ...]
    covariance: F64
    """Of the sides, with their signs."""
    sampling: float
    """The variance that comes from the draw of the pairs."""
    moves: F64
    """How far each sampled pair, or each user where new users are the target, moves it."""

    @property
    def value(self) -> float:
        """The estimate, within what the contrast can be."""
        low, high = self.range
        return min(max(self.plain_value, low), high)

    @property
    def plain_value(self) -> float:
        """The estimate as it is: corrections by labels can carry it out of its range."""
        return math.fsum(side.side.sign * side.side.total * side.share for side in self.sides)

    @property
    def range(self) -> tuple[float, float]:
        """The least and the largest value that the contrast can have."""
        totals = [side.side.sign * side.side.total for side in self.sides]
        return sum(min(total, 0.0) for total in totals), sum(max(total, 0.0) for total in totals)

    @property
    def variance(self) -> float:
        """Of the estimate."""
        return max(float(self.covariance.sum()), 0.0)

    @property
    def method(self) -> str:
        """How the interval is made: `all judged`, `score` or `exact` (where a side has few)."""
        kinds = {side.kind for side in self.sides}
        if kinds == {"all judged"}:
            return "all judged"
        methods = {side.human.kind if side.kind == "human" and side.human else side.kind
                for side in self.sides}  # fmt: skip
        return "exact" if "exact" in methods else "score"

    def interval(self, level: float) -> tuple[float, float]:
        """Return the interval."""
        weight = [side.side.sign * side.side.total for side in self.sides]
        low, high = zip(*(side.interval(level) for side in self.sides), strict=True)
        share = [side.share for side in self.sides]
        value, lowest, highest = sum_interval(weight, share, low, high, self.correlation)
        extra = self._spread_of_users(level)
        bottom, top = self.range
        return (
            max(value - math.hypot(value - lowest, extra), bottom),
            min(value + math.hypot(highest - value, extra), top),
        )

    @property
    def correlation(self) -> float:
        """Of the two sides, with their signs; 0 where the interval of one is exact."""
        if len(self.sides) < 2 or any(side.kind != "score" for side in self.sides):
            return 0.0
        product = math.sqrt(float(self.covariance[0, 0]) * float(self.covariance[1, 1]))
        return float(self.covariance[0, 1]) / product if product > 0 else 0.0

    def _spread_of_users(self, level: float) -> float:
        """Return what new users add to exact intervals, which know the draw of pairs alone."""
        exact = [side for side in self.sides if side.kind in ("exact", "human")]
        data = self.sides[0].side.data
        if data.population == LISTS or not exact:
            return 0.0
        added = np.sum([side.by_user for side in exact], axis=0)
        variance = float(variance_of(added - added.mean(), data.users))
        return student_ends(0.0, math.sqrt(variance), data.users - 1, level)[1]


@dataclass(frozen=True, eq=False, kw_only=True)
class LabelContrast:
    """A system's value, or that of one less that of another, over recommended pairs."""

    data: LabelledPairs
    sides: tuple[Side, ...]
    drift: tuple[F64 | None, ...] = (None,)
    """By side, where users are drawn: see `by_user_covariance`."""

    @classmethod
    def of(
        cls, data: LabelledPairs, row: I64, add: F64, drift: Sequence[F64 | None] = (None, None)
    ) -> LabelContrast:
        """Part the pairs of a contrast by the sign of what they add.

        Parameters
        ----------
        data
            Labels.
        row, add
            The pairs that count, and what each adds: see `RecommendedPairs.contrast`.
        drift
            For the pairs that add, and for those that take away.
        """
        sides, drifts = [], []
        left: F64 | None = None
        for sign, part in zip((1.0, -1.0), drift, strict=True):
            mine = np.flatnonzero(add > 0 if sign > 0 else add < 0)
            if mine.size:
                sides.append(Side.of(data, row[mine], sign * add[mine], sign))
                drifts.append(part)
            else:
                left = part
        if len(sides) == 1 and left is not None:  # it varies all the same
            drifts[0] = left if drifts[0] is None else drifts[0] + left
        return cls(data=data, sides=tuple(sides), drift=tuple(drifts))

    @property
    def number(self) -> int:
        """How many labels of people count for it."""
        return sum(side.number for side in self.sides)

    @property
    def pairs(self) -> int:
        """How many pairs count for it."""
        return sum(int(side.row.size) for side in self.sides)

    @property
    def without_labels(self) -> Side | None:
        """A side of which people labelled no pair; None where there is none."""
        return next((side for side in self.sides if not side.number), None)

    @property
    def labels_alone(self) -> float:
        """The value by the annotator's labels alone."""
        return math.fsum(side.sign * side.total * side.label_mean for side in self.sides)

    @cached_property
    def estimates(self) -> dict[str, ContrastEstimate]:
        """By estimator; there must be a label of people on each side."""
        human = self._estimate(HUMAN, None)
        others = [self._estimate(name, human) for name in ESTIMATORS if name != HUMAN]
        return {estimate.estimator: estimate for estimate in (human, *others)}

    def _estimate(self, estimator: str, human: ContrastEstimate | None) -> ContrastEstimate:
        bare = [SideEstimate.of(side, estimator) for side in self.sides]
        sampling = sampling_covariance(self.data, bare)
        covariance, moves, units = sampling, [estimate.moves for estimate in bare], self.number
        if self.data.population == USERS:
            covariance, moves = by_user_covariance(self.data, bare, sampling, self.drift)
            units = self.data.users
        net: F64 = np.sum(moves, axis=0)
        # Without an error of the annotator, rounding leaves a little of what should be 0.
        nothing = 1e-20 * sum(float(((side.scale * side.weight) ** 2).sum()) for side in self.sides)
        carriers = effective_number(net**2) if float((net**2).sum()) > nothing else 0.0
        regime = self._regime(estimator, carriers)
        degrees = [min(side.degrees, _degrees_of_freedom(carriers, units)) for side in self.sides]
        others = [None] * len(bare) if human is None else human.sides
        sides = tuple(
            replace(
                estimate,
                variance=max(float(covariance[index, index]), 0.0) / estimate.side.total**2,
                degrees=degrees[index],
                regime=regime,
                human=others[index],
            )
            for index, estimate in enumerate(bare)
        )
        return ContrastEstimate(
            estimator=estimator,
            sides=sides,
            covariance=covariance,
            sampling=max(float(sampling.sum()), 0.0),
            moves=net,
        )

    def _regime(self, estimator: str, carriers: float) -> str:
        """Say how intervals are made, by how many labels and errors they rest on."""
        if min(self.liked, self.disliked) >= MANY[estimator] and carriers >= CARRIERS:
            return "score"
        if estimator == HUMAN:
            return "exact"
        liked, disliked, errors = (float(amount.sum()) for amount in self._amounts)
        return "exact" if errors <= FEW_ERRORS * min(liked, disliked) else "human"

    @property
    def liked(self) -> float:
        """The effective number of liked labels of people; those of a user are one for new users."""
        return effective_number(self._by_unit(self._amounts[0]))

    @property
    def disliked(self) -> float:
        """The effective number of disliked labels of people."""
        return effective_number(self._by_unit(self._amounts[1]))

    @cached_property
    def _amounts(self) -> tuple[F64, F64, F64]:
        """By sampled pair of each side: what is liked, disliked, and labelled wrongly."""
        parts = []
        for side in self.sides:
            weight, y = side.scale * side.weight, side.y
            parts.append((weight * y, weight * (1.0 - y), weight * np.abs(y - side.label)))
        liked, disliked, errors = (np.concatenate(columns) for columns in zip(*parts, strict=True))
        return liked, disliked, errors

    def _by_unit(self, amount: F64) -> F64:
        if self.data.population == LISTS:
            return amount
        owner = np.concatenate([side.owner for side in self.sides])
        return np.bincount(owner, amount).astype(np.float64)

    @property
    def gain(self) -> float:
        """How many times as many human labels, without an annotator, would be as precise.

        With g times as many the variance of human labels is A / g - B: B is what the finite number
        of pairs takes off. Hence g = A / (variance of PPI++ + B), at most all pairs.
        """
        human, tuned = (self.estimates[name].sampling for name in (HUMAN, TUNED))
        if tuned <= 0:
            return math.nan
        total = float(sampling_covariance(self.data, self.estimates[HUMAN].sides, False).sum())
        return total / (tuned + max(total - human, 0.0))

    @property
    def correlation(self) -> float:
        """Of people's and the annotator's labels, as they count for the contrast."""
        y, f = [], []
        for estimate in self.estimates[HUMAN].sides:
            side = estimate.side
            scale = side.sign * side.total / float(side.weight.sum()) * side.weight
            y.append(scale * (side.y - estimate.share))
            mean = float((side.weight * side.label).sum()) / float(side.weight.sum())
            f.append(scale * (side.label - mean))
        a, b = np.concatenate(y), np.concatenate(f)
        product = math.sqrt(float((a**2).sum()) * float((b**2).sum()))
        return float((a * b).sum()) / product if product > 0 else math.nan


def _degrees_of_freedom(carriers: float, units: int) -> int:
    """Return those of a variance that so many of the units carry (Satterthwaite)."""
    if carriers <= 0 or units < 2:
        return 1
    spread = max(1.0 / carriers - 1.0 / units, 1e-9)
    return min(max(math.floor(2.0 / spread), 1), units - 1)


_ESTIMATES = 64  # estimates whose moves are there at a time


def bootstrap_ends(
    estimates: Sequence[ContrastEstimate],
    stratum: I64,
    levels: Sequence[float],
    resamples: int,
    seed: int,
    threads: int | None,
) -> list[list[tuple[float, float]]]:
    """Return the interval of each estimate at each level.

    Parameters
    ----------
    estimates
        Of which `moves` are resampled, the same draws for all.
    stratum
        Of each sampled pair, or user.
    levels, resamples, seed, threads
        Of the bootstrap.
    """
    result = []
    for low in range(0, len(estimates), _ESTIMATES):
        part = estimates[low : low + _ESTIMATES]
        moves = np.column_stack([_centred(estimate.moves, stratum) for estimate in part])
        draws = _draws(moves, stratum, resamples, seed, threads)
        for index, estimate in enumerate(part):
            result.append(
                [_ends(estimate, moves[:, index], draws[:, index], level) for level in levels]
            )
    return result


def _centred(moves: F64, stratum: I64) -> F64:
    number = np.maximum(np.bincount(stratum), 1)
    mean = np.bincount(stratum, moves) / number
    return moves - mean[stratum]


def _draws(moves: F64, stratum: I64, resamples: int, seed: int, threads: int | None) -> F64:
    """Return Σ of the moves over units drawn with replacement, a row per resample."""
    rows, out = wide_rows(stratum.size), np.zeros((resamples, moves.shape[1]))
    for number, code in enumerate(np.unique(stratum)):
        weigh = with_replacement(seed, "assisted/resamples", number)
        out += drawn_sums(moves[stratum == code], weigh, resamples, rows=rows, threads=threads)
    return out


def _students_level(estimate: ContrastEstimate, level: float) -> float:
    """Return the level of normal ends that reach as far as Student's, where users are drawn.

    Draws with replacement take the variance between users as known; of few users it is not.
    """
    if estimate.sides[0].side.data.population == LISTS:
        return level
    degrees = min(side.degrees for side in estimate.sides)
    return 2 * NormalDist().cdf(student_t_quantile((1 + level) / 2, degrees)) - 1


def _ends(estimate: ContrastEstimate, moves: F64, draws: F64, level: float) -> tuple[float, float]:
    """Return the bias-corrected and accelerated ends, within what the contrast can be."""
    if estimate.method != "score":
        return estimate.interval(level)
    squares = float((moves**2).sum())
    scale = math.sqrt(estimate.variance / squares) if squares > 0 else 0.0
    ascending = np.sort(draws) * scale
    below = float(np.mean(ascending < 0) + np.mean(ascending <= 0)) / 2
    acceleration = float((moves**3).sum()) / (6 * squares**1.5)
    low, high = bca_ends(ascending, below, acceleration, _students_level(estimate, level))
    bottom, top = estimate.range
    return max(estimate.plain_value + low, bottom), min(estimate.plain_value + high, top)
