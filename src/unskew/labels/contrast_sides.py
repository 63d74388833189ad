r"""A contrast as one or two shares: the pairs that count for it, and those that count against it.

The value of a system is :math:`C \bar y`, with C what all its places add up to and :math:`\bar y`
the share of them, weighted by what they add, that people like. The difference of two systems is
:math:`C_+ \bar y_+ - C_- \bar y_-` over the pairs that add something to it and those that take
something from it. C is known from the lists; a share is estimated by the weighted mean of sampled
labels (Hájek), corrected by the labels of an annotator (`power_tuning`).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from unskew.arrays import F64, I64, Mask
from unskew.data.summary import size_of_sums
from unskew.labels.human_samples import SIMPLE, UNEQUAL, HumanSample
from unskew.labels.recommended_pairs import positions
from unskew.stats.clusters import covariance_of
from unskew.stats.intervals.shares import (
    clopper_pearson,
    hypergeometric,
    score_interval,
    sum_interval,
)
from unskew.stats.special import student_t_quantile

_NOTHING = 1e-12


def leave_one_out_slopes(weight: F64, y: F64, label: F64, stratum: I64, unsampled: F64) -> F64:
    r"""Return for each sampled pair the slope of y on the annotator's label among all others.

    It minimises the variance within strata of :math:`\sum w (y - \bar y - \lambda (f - \bar f))`,
    with weighted means.

    Parameters
    ----------
    weight
        Of each sampled pair: what it adds, over its probability.
    y
        People's labels.
    label
        Labels of the annotator, less their mean over all pairs.
    stratum
        0, 1, … for each sampled pair; strata without any may be there.
    unsampled
        By stratum: the share of its pairs that is not sampled. One that is sampled as a whole
        varies no more.

    Examples
    --------
    >>> import numpy as np
    >>> from unskew.labels.contrast_sides import leave_one_out_slopes
    >>> y, label = np.array([1.0, 1, 0, 0, 1]), np.array([0.5, 0.5, -0.5, -0.5, -0.5])
    >>> stratum = np.zeros(5, np.int64)
    >>> leave_one_out_slopes(np.ones(5), y, label, stratum, np.ones(1)).round(3).tolist()
    [0.667, 0.667, 0.5, 0.5, 1.0]
    """
    number = np.bincount(stratum, minlength=unsampled.size).astype(np.float64)
    columns = {"y": weight * y, "f": weight * label, "w": weight}
    without = {name: float(column.sum()) - column for name, column in columns.items()}

    def products(first: F64, second: F64) -> F64:
        """Return Σ unsampled (first - mean) (second - mean) within strata, without each pair."""
        a, b, cross = (
            np.bincount(stratum, column, unsampled.size).astype(np.float64)
            for column in (first, second, first * second)
        )
        total, h = unsampled * _inside(number, a, b, cross), stratum
        others = _inside(number[h] - 1.0, a[h] - first, b[h] - second, cross[h] - first * second)
        return float(total.sum()) - total[h] + unsampled[h] * others

    with np.errstate(invalid="ignore", divide="ignore"):
        y_mean, f_mean = (without[name] / without["w"] for name in "yf")
        product = {
            name: products(columns[name[0]], columns[name[1]])
            for name in ("yf", "yw", "fw", "ff", "ww")
        }
        top = product["yf"] - y_mean * product["fw"] - f_mean * product["yw"]
        top = top + y_mean * f_mean * product["ww"]
        bottom = product["ff"] - 2 * f_mean * product["fw"] + f_mean**2 * product["ww"]
        slope = top / bottom
    # Where all labels are alike, rounding leaves a little of what should be 0.
    usable = (bottom > _NOTHING * float((columns["f"] ** 2).sum())) & np.isfinite(slope)
    return np.where(usable, slope, 0.0)


def _inside(number: F64, a: F64, b: F64, product: F64) -> F64:
    """Return Σ (a - mean) (b - mean) from the sums of a, of b and of both."""
    return np.where(number > 0, product - a * b / np.maximum(number, 1.0), 0.0)


HUMAN, PPI, TUNED = "human", "PPI", "PPI++"
ESTIMATORS = (HUMAN, PPI, TUNED)

LISTS, USERS = "lists", "users"
POPULATIONS = (LISTS, USERS)

MANY = {HUMAN: 17, PPI: 15, TUNED: 15}
"""From so many liked and so many disliked labels on (effective numbers) the score interval is used.

Fixed on exact binomial coverage: with 17, human labels alone cover at least .95 wherever fewer than
10 liked labels are expected. What is corrected by labels is less skewed."""
CARRIERS = 10
"""And so many pairs must carry the variance: (Σ x²)² / Σ x⁴, about the errors of the annotator."""
FEW_ERRORS = 0.5
"""Below these counts labels of the annotator narrow the interval only if its errors are at most
this part of the liked, and of the disliked, labels; else it is that of human labels alone."""
BUCKET = 4.0
"""Pairs whose weights differ by less than this factor are one cell of the exact interval."""


@dataclass(frozen=True, eq=False, kw_only=True)
class LabelledPairs:
    """What contrasts are estimated from, for one metric: labels of all pairs, people's of some."""

    label: F64
    """The annotator's label of each recommended pair, from 0 to 1."""
    sample: HumanSample
    y: F64
    """People's label of each sampled pair, from 0 to 1."""
    user: I64
    """The user of each recommended pair, among those with a list: 0, 1, …"""
    users: int
    population: str = LISTS

    @cached_property
    def sampled_user(self) -> I64:
        """The user of each sampled pair."""
        return self.user[self.sample.row]


@dataclass(frozen=True, eq=False, kw_only=True)
class Side:
    """Pairs that count for a contrast (sign 1), or against it (sign -1), and the sampled ones."""

    data: LabelledPairs
    sign: float
    row: I64
    """Which recommended pairs."""
    add: F64
    """What each adds, above 0."""
    inside: Mask
    """Which pairs of the sample are among them."""
    weight: F64
    """Of the sampled ones: what it adds, over its probability."""
    y: F64
    """People's labels of the sampled pairs."""
    label: F64
    """The annotator's labels of the sampled pairs."""
    stratum: I64
    """The strata of the sampled pairs."""
    owner: I64
    """The users of the sampled pairs."""
    labels: F64
    """The annotator's labels of all pairs."""

    @classmethod
    def of(cls, data: LabelledPairs, row: I64, add: F64, sign: float) -> Side:
        """Find the sampled pairs among those of a side."""
        sampled = data.sample.row
        index = positions(row, sampled)
        inside = index >= 0
        return cls(
            data=data,
            sign=sign,
            row=row,
            add=add,
            inside=inside,
            weight=add[index[inside]] / data.sample.probability[inside],
            y=data.y[inside],
            label=data.label[sampled[inside]],
            stratum=data.sample.stratum[inside],
            owner=data.sampled_user[inside],
            labels=data.label[row],
        )

    @property
    def number(self) -> int:
        """How many of its pairs are sampled."""
        return int(self.weight.size)

    @cached_property
    def total(self) -> float:
        """What all pairs add up to."""
        return float(self.add.sum())

    @cached_property
    def label_mean(self) -> float:
        """The weighted mean of the annotator's labels over all pairs."""
        return float((self.add * self.labels).sum()) / self.total

    @property
    def is_whole(self) -> bool:
        """Whether people labelled all pairs."""
        return self.number == self.row.size

    @cached_property
    def degrees(self) -> int:
        """Degrees of freedom of the variance: sampled pairs less strata."""
        return max(self.number - int(np.unique(self.stratum).size), 1)

    def slopes(self, estimator: str) -> F64:
        """Return by how much of the annotator's label each label of people is corrected."""
        if estimator != TUNED:
            return np.full(self.number, 1.0 if estimator == PPI else 0.0)
        centred = self.label - self.label_mean
        unsampled = self.data.sample.unsampled
        return leave_one_out_slopes(self.weight, self.y, centred, self.stratum, unsampled)

    @cached_property
    def scale(self) -> float:
        """What the sampled pairs stand for, over what they add up to."""
        return self.total / float(self.weight.sum())


@dataclass(frozen=True, eq=False, kw_only=True)
class SideEstimate:
    """The share of a side that is liked, and what its interval is made of."""

    side: Side
    estimator: str
    share: float
    slope: float
    """The mean of the slopes."""
    moves: F64
    """By sampled pair, 0 outside the side: how far it moves the contrast, with its sign."""
    variance: float = math.nan
    """Of the share."""
    degrees: int = 1
    regime: str = "exact"
    """How intervals of the contrast are made: `score`, `exact`, or `human`: as of these alone."""
    human: SideEstimate | None = None
    """That of human labels alone, whose interval stands in where labels would not narrow it."""

    @classmethod
    def of(cls, side: Side, estimator: str) -> SideEstimate:
        """Estimate the share by the weighted mean of corrected labels."""
        slope = side.slopes(estimator)
        corrected = side.y - slope * (side.label - side.label_mean)
        weight, all_weights = side.weight, float(side.weight.sum())
        share = float((weight * corrected).sum()) / all_weights
        moves = np.zeros(len(side.data.sample))
        moves[side.inside] = side.sign * side.scale * weight * (corrected - share)
        mean = float((weight * slope).sum()) / all_weights
        return cls(side=side, estimator=estimator, share=share, slope=mean, moves=moves)

    @cached_property
    def by_user(self) -> F64:
        """What each user is expected to add, from all pairs, before the sample corrects it."""
        side = self.side
        expected = self.share + self.slope * (side.labels - side.label_mean)
        owner, users = side.data.user[side.row], side.data.users
        return np.bincount(owner, side.sign * side.add * expected, users).astype(np.float64)

    @property
    def kind(self) -> str:
        """How the interval is made: `all judged`, `score`, `exact` or `human` (of these alone)."""
        if self.side.data.population == LISTS and self.side.is_whole:
            return "all judged"
        if self.regime == "score" and (self.variance <= 0 or not 0 < self.share < 1):
            return "exact" if self.estimator == HUMAN else "human"
        return self.regime

    def interval(self, level: float) -> tuple[float, float]:
        """Return the interval of the share; it holds the share itself."""
        if self.kind == "all judged":
            return self.share, self.share
        if self.kind == "score":
            t = student_t_quantile((1 + level) / 2, self.degrees)
            return score_interval(self.share, self.variance, t)
        if self.kind == "human":
            assert self.human is not None
            low, high = self.human.interval(level)
        else:
            low, high = self._exact(level)
        return min(low, self.share), max(high, self.share)

    def _exact(self, level: float) -> tuple[float, float]:
        """Add up exact intervals of cells: by the annotator's label, and by similar weights.

        Of a class without a label of people nothing is known: it widens the sum by all it can be.
        """
        side, classes = self.side, self._classes()
        parts = [_cells(side, mask, members, level) for mask, members in classes if mask.any()]
        weight, share, low, high = (np.concatenate(columns) for columns in zip(*parts, strict=True))
        _, lowest, highest = sum_interval(weight, share, low, high)
        unknown = sum(float(side.add[members].sum()) for mask, members in classes if not mask.any())
        return max(lowest, 0.0), min(highest + unknown / side.total, 1.0)

    def _classes(self) -> list[tuple[Mask, Mask]]:
        """Return which sampled pairs, and which of all pairs, are in each class of labels."""
        side = self.side
        if self.estimator == HUMAN:
            return [(np.ones(side.number, np.bool_), np.ones(side.row.size, np.bool_))]
        mine, everyone = side.label > side.label_mean, side.labels > side.label_mean
        classes = [(mine, everyone), (~mine, ~everyone)]
        return [(sampled, members) for sampled, members in classes if members.any()]


def _cells(side: Side, mask: Mask, members: Mask, level: float) -> tuple[F64, F64, F64, F64]:
    """Return weight, share, low and high of the cells of a class of labels."""
    part = float(side.add[members].sum()) / side.total
    weight, y = side.weight[mask], side.y[mask]
    data = side.data
    is_simple = data.population == LISTS and data.sample.kind == SIMPLE
    smallest, largest = float(side.add.min()), float(side.add.max())
    is_equal, is_binary = largest - smallest <= 1e-9 * largest, np.isin(data.y, (0.0, 1.0)).all()
    if is_simple and is_equal and is_binary:
        lowest, highest = hypergeometric(int(y.sum()), y.size, int(members.sum()), level)
        return np.array([part]), np.array([y.mean()]), np.array([lowest]), np.array([highest])
    bucket = np.floor(np.log(weight / weight.max()) / math.log(BUCKET) + 1e-9).astype(np.int64)
    cell = np.unique(bucket, return_inverse=True)[1]
    sums, liked = np.bincount(cell, weight), np.bincount(cell, weight * y)
    squares = np.bincount(cell, weight**2)
    if data.population == USERS:
        groups = np.unique(np.stack([cell, side.owner[mask]]), axis=1, return_inverse=True)
        amount = np.bincount(groups[1].ravel(), weight)
        squares = np.bincount(groups[0][0], amount**2)
    number = np.array(list(map(size_of_sums, sums.tolist(), squares.tolist())))
    share = liked / sums
    low, high = clopper_pearson(share * number, number, level)
    return part * sums / sums.sum(), share, low, high


def sampling_covariance(
    data: LabelledPairs, estimates: Sequence[SideEstimate], finite: bool = True
) -> F64:
    """Return the covariances of the sides that come from the draw of the sample.

    With the finite-population correction: a stratum that is sampled as a whole adds nothing. A
    simple sample is taken given how many pairs of each side it holds.

    Parameters
    ----------
    data, estimates
        What is estimated, and its sides.
    finite
        False: as if there were as many pairs again and again of what is not sampled as a whole.
    """
    sample = data.sample
    number = np.array([estimate.side.number for estimate in estimates], np.float64)
    inflation = np.sqrt(number / np.maximum(number - 1, 1))
    moves = [estimate.moves for estimate in estimates]
    result = np.zeros((len(moves), len(moves)))
    if sample.kind == SIMPLE:
        for i, estimate in enumerate(estimates):
            fraction = 1.0 - estimate.side.number / estimate.side.row.size
            fraction = fraction if finite else float(fraction > 0)
            result[i, i] = fraction * float((estimate.moves**2).sum())
    else:
        for i, first in enumerate(moves):
            for j, second in enumerate(moves[: i + 1]):
                result[i, j] = result[j, i] = drawn_covariance(sample, first, second, finite)
    covariance: F64 = result * inflation[:, None] * inflation[None, :]
    return covariance


def drawn_covariance(sample: HumanSample, first: F64, second: F64, finite: bool = True) -> float:
    """Return Σ over strata of unsampled x n / (n - 1) x Σ (first - mean) (second - mean).

    Of sums over the sample of what pairs add; of pairs drawn one by one without means.
    """
    unsampled = 1.0 - sample.probability if sample.kind == UNEQUAL else sample.unsampled
    unsampled = unsampled if finite else (unsampled > 0).astype(np.float64)
    if sample.kind == UNEQUAL:
        return float((unsampled * first * second).sum())
    size = len(sample.names)
    a, b, cross = (np.bincount(sample.stratum, x, size) for x in (first, second, first * second))
    number = np.maximum(sample.number, 1.0)
    spread = (cross - a * b / number) * number / np.maximum(number - 1.0, 1.0)
    return float((unsampled * spread).sum())


def by_user_covariance(
    data: LabelledPairs,
    estimates: Sequence[SideEstimate],
    sampling: F64,
    drifts: Sequence[F64 | None],
) -> tuple[F64, list[F64]]:
    """Return the covariances where users are drawn too, and what each user adds, centred.

    Users are independent; what the sample of pairs varies by is part of what users add. It counts
    there as if pairs were drawn one by one, so the difference to how they were drawn is added.

    Parameters
    ----------
    data, estimates
        What is estimated, and its sides.
    sampling
        Their covariances that come from the draw of the sample.
    drifts
        By side: what users change through the divisor, where that depends on them.
    """
    owner, users = data.sampled_user, data.users
    parts = []
    for estimate, drift in zip(estimates, drifts, strict=True):
        part = estimate.by_user + np.bincount(owner, estimate.moves, users)
        part = part if drift is None else part - drift
        parts.append(part - part.mean())
    result = sampling.copy()
    keep = 1.0 - data.sample.probability
    for i, estimate in enumerate(estimates):
        for j, second in enumerate(estimates):
            alone = float((keep * estimate.moves * second.moves).sum())
            result[i, j] += float(covariance_of(parts[i], parts[j], users)) - alone
    return result, parts


def effective_number(amount: F64) -> float:
    """Return (Σ a)² / Σ a²: how many equal amounts would be as uneven in sum."""
    return size_of_sums(float(amount.sum()), float((amount**2).sum()))
