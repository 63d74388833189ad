"""What each user does to the mean of a split: the numbers from which errors are worked out."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import NormalDist
from typing import Any

import numpy as np
import polars as pl

from unskew.arrays import F64, I64, Mask
from unskew.data.ratings import Ids
from unskew.engine.rng import draw, generator
from unskew.engine.threads import one_blas_thread
from unskew.errors import DataError, SettingError
from unskew.evaluation.scores import Scores
from unskew.stats.pairing import Pairs, list_weights
from unskew.stats.special import student_t_quantile, student_t_sf


@dataclass(frozen=True, eq=False)
class SplitInfluence:
    """The means of one split, and what each user adds to them."""

    means: F64
    """Of each system."""
    influence: F64
    """Users x systems: what the user's lists add to the mean beyond their weight in it. A column
    adds up to 0, and its sum of squares is the variance of the mean over users."""
    counted: Mask
    """The users whose lists are averaged."""

    def same_values(self, other: SplitInfluence) -> bool:
        """Tell whether two splits agree in every value of every user."""
        return (
            np.array_equal(self.counted, other.counted)
            and np.array_equal(self.means, other.means)
            and np.array_equal(self.influence, other.influence)
        )


def split_influence(
    part: Scores, label: str, systems: Sequence[str], users: Ids, keep: Mask
) -> SplitInfluence:
    """Return the means of the lists in `keep` and each user's influence on them."""
    row = part.labels.index(label)
    values = np.stack([part.systems[name].values[row] for name in systems], axis=1)[keep]
    missing = np.isnan(values).any(axis=1)
    values = np.where(np.isnan(values), 0.0, values)
    defined = ~missing if part.undefined == "skip" else np.ones(missing.size, np.bool_)
    weight = list_weights(part, keep, defined)
    user = users.codes(part.user_ids.values)[part.lists["user"].to_numpy()[keep]]
    weighted = values * weight[:, None]
    residual = weighted - weight[:, None] * _centres(part, keep, weighted, weight)
    influence = np.zeros((len(users), len(systems)))
    for column in range(len(systems)):
        influence[:, column] = np.bincount(user, residual[:, column], len(users))
    counted = np.bincount(user, defined, len(users)) > 0
    return SplitInfluence(means=weighted.sum(axis=0), influence=influence, counted=counted)


def _centres(part: Scores, keep: Mask, weighted: F64, weight: F64) -> F64:
    """Return the mean that each list is compared with: of all lists, or of its stratum."""
    if part.over != "strata":
        return np.broadcast_to(weighted.sum(axis=0), weighted.shape)
    group = part.lists["stratum"].to_numpy()[keep]
    total = np.maximum(np.bincount(group, weight), np.finfo(np.float64).tiny)
    means = np.stack([np.bincount(group, column) / total for column in weighted.T], axis=1)
    centres: F64 = means[group]
    return centres


def averaged_lists(part: Scores, systems: Sequence[str], chosen: Any, where: str) -> Mask:
    """Mark the lists that all these systems are averaged over, of the users that are chosen."""
    keep: Mask = np.logical_and.reduce([part.averaged(name) for name in systems])
    if chosen is None:
        return keep
    mask = np.asarray(chosen)
    if mask.dtype != np.bool_ or mask.shape != (len(part.user_ids),):
        raise SettingError(
            f"users must mark the {len(part.user_ids):,} users of the scores of {where} by True "
            f"and False, got an array of {mask.dtype} with shape {mask.shape}"
        )
    averaged: Mask = keep & mask[part.lists["user"].to_numpy()]
    return averaged


def common_users(parts: Sequence[Scores], masks: Sequence[Mask]) -> Ids:
    """Number the users that are averaged in some split of some design."""
    raw = [
        part.user_ids.raw(np.unique(part.lists["user"].to_numpy()[keep]))
        for part, keep in zip(parts, masks, strict=True)
    ]
    kinds = {series.dtype for series in raw}
    if len(kinds) > 1:
        raise DataError("users are numbers in some scores and text in others: give one kind of ids")
    return Ids.number(pl.concat(raw).unique())[0]


def distinct_splits(splits: Sequence[SplitInfluence]) -> list[SplitInfluence]:
    """Return the splits without those that repeat an earlier one value for value."""
    distinct: list[SplitInfluence] = []
    for split in splits:
        if not any(split.same_values(earlier) for earlier in distinct):
            distinct.append(split)
    return distinct


RETRAINED = "retrained"
LISTS = "lists"
TARGETS = (RETRAINED, LISTS)
TRAINING_SHARE = 0.75
"""What a user adds by being trained on, in parts of the variance between users."""
ONE_SPLIT_SHARE = 0.25
"""The same with one split, in parts of the variance over users: test noise cannot be told apart."""
COMMON_SHARE = 0.5
"""What the training ratings add beyond these splits, in parts of the common variance."""
TAIL_DF, TAIL_SPLITS = 18.0, 1.2
"""The degrees of freedom of simultaneous intervals are TAIL_DF (1 - TAIL_SPLITS / splits)."""
MOST_BLOCKS = 2_000
"""More users than this are drawn in random blocks, so that time and memory stay bounded."""
_USERS_AT_ONCE = 4_096
_DRAWS_AT_ONCE = 250
_ROUNDING = 1e-13


@dataclass(frozen=True, eq=False)
class PairErrors:
    """The differences of all pairs of one design, their standard errors and their influences."""

    difference: F64
    se: F64
    """Times the ratio of Student's to the normal quantile: to be used with normal quantiles."""
    influence: F64
    """Blocks of users x pairs: means over the splits."""
    users: int
    splits: int


def pair_errors(
    splits: Sequence[SplitInfluence], pairs: Pairs, blocks: I64, *, target: str, level: float
) -> PairErrors:
    """Return the mean difference of each pair over distinct splits, with its error.

    Parameters
    ----------
    splits
        The distinct splits.
    pairs
        The columns of the systems.
    blocks
        The block of each user; see `user_blocks`.
    target
        `retrained` or `lists`.
    level
        Of the single intervals: sets Student's quantile.
    """
    first, second = pairs.one, pairs.other
    count = len(splits)
    means = np.stack([split.means for split in splits])
    by_split = means[:, first] - means[:, second]
    difference = by_split.mean(axis=0)
    size = np.maximum(np.abs(means[:, first]), np.abs(means[:, second])).max(axis=0)
    influence, squares, within_splits = _influences(splits, pairs, blocks)
    users = int(np.logical_or.reduce([split.counted for split in splits]).sum())
    correction = users / (users - 1)
    over_users = correction * squares
    trained = common = np.zeros_like(over_users)
    if target == RETRAINED and count == 1:
        trained = ONE_SPLIT_SHARE * over_users
    if target == RETRAINED and count > 1:
        trained = TRAINING_SHARE * np.maximum(over_users - correction * within_splits / count, 0.0)
        spread = np.maximum(by_split.var(axis=0, ddof=1) - within_splits, 0.0)
        common = (COMMON_SHARE + 1 / count) * spread
    variance = over_users + trained + common
    # A difference that is the same for every user leaves rounding errors, which are no variance.
    variance[variance <= (_ROUNDING * size) ** 2] = 0.0
    difference[np.abs(difference) <= _ROUNDING * size] = 0.0
    factor = _student_factor(variance, common, users, count, level)
    se = np.sqrt(variance) * factor
    return PairErrors(difference, se, influence, users, count)


def _influences(
    splits: Sequence[SplitInfluence], pairs: Pairs, blocks: I64
) -> tuple[F64, F64, F64]:
    """Return the influences, means over splits: of blocks of users, and their sums of squares.

    Last, the test noise of one split's difference: each user's variance over splits.
    """
    count, users = len(splits), splits[0].influence.shape[0]
    influence = np.zeros((int(blocks.max(initial=-1)) + 1, len(pairs)))
    squares, within_splits = np.zeros(len(pairs)), np.zeros(len(pairs))
    for low in range(0, users, _USERS_AT_ONCE):
        part = slice(low, low + _USERS_AT_ONCE)
        by_split = [
            split.influence[part][:, pairs.one] - split.influence[part][:, pairs.other]
            for split in splits
        ]
        mean = sum(by_split[1:], start=by_split[0]) / count
        squares += (mean**2).sum(axis=0)
        np.add.at(influence, blocks[part], mean)
        if count > 1:
            for values in by_split:
                within_splits += ((values - mean) ** 2).sum(axis=0) / (count - 1)
    return influence, squares, within_splits


def _student_factor(variance: F64, common: F64, users: int, splits: int, level: float) -> F64:
    """Return Student's quantile by the normal one, with Satterthwaite's degrees of freedom."""
    remainder = variance - common
    with np.errstate(divide="ignore", invalid="ignore"):
        df = variance**2 / (remainder**2 / (users - 1) + common**2 / max(splits - 1, 1))
    freedom = np.floor(np.where(variance > 0, df, users - 1) + 1e-9)
    normal = NormalDist().inv_cdf((1 + level) / 2)
    factors = [
        student_t_quantile((1 + level) / 2, max(degrees, 1.0)) / normal
        for degrees in freedom.tolist()
    ]
    return np.array(factors)


def largest_t(influences: Sequence[F64], draws: int, seed: int) -> F64:
    """Return draws of the largest |t| of the family, sorted: what equal systems would give.

    The Gaussian multiplier bootstrap (Chernozhukov, Chetverikov and Kato 2013): each user's
    influence times a normal draw that is the same in all contrasts. Rows are users, or blocks of
    users, in the same order in every design.
    """
    rows = np.concatenate(influences, axis=1)
    norm = np.sqrt((rows**2).sum(axis=0))
    rows = rows[:, norm > 0] / norm[norm > 0]
    largest = np.zeros(draws)
    rng = generator(seed, "contrasts")
    with one_blas_thread():
        for low in range(0, draws, _DRAWS_AT_ONCE):
            shape = (min(_DRAWS_AT_ONCE, draws - low), rows.shape[0])
            normals = rng.standard_normal(shape)
            if rows.shape[1]:
                largest[low : low + shape[0]] = np.abs(normals @ rows).max(axis=1)
    return np.sort(largest)


def user_blocks(users: int, seed: int) -> I64:
    """Return the block of each user: each its own one, or `MOST_BLOCKS` random ones."""
    if users <= MOST_BLOCKS:
        return np.arange(users, dtype=np.int64)
    blocks = draw(seed, "contrast blocks", np.arange(users)) % np.uint64(MOST_BLOCKS)
    return blocks.astype(np.int64)


def critical_value(largest: F64, level: float) -> float:
    """Return the t above which the adjusted p-value is at most 1 - `level`, of a normal tail."""
    single = NormalDist().inv_cdf((1 + level) / 2)
    above = math.floor(round(1 - level, 12) * (largest.size + 1) + 1e-9) - 1
    if above < 0:
        return math.inf
    return max(float(largest[largest.size - 1 - above]), single)


@dataclass(frozen=True)
class Tail:
    """How quantiles of the largest |t| become those of estimated errors, and back.

    Nothing changes up to the quantile of a single interval; beyond it Student's tail stands for
    the normal one.
    """

    df: float
    """Infinite: the normal tail."""
    level: float
    """Of single intervals."""

    @classmethod
    def of(cls, splits: int, target: str, level: float) -> Tail:
        """Return the tail for a number of distinct splits."""
        df = TAIL_DF * (1 - TAIL_SPLITS / max(splits, 2)) if target == RETRAINED else math.inf
        return cls(df, level)

    @property
    def _single(self) -> float:
        return NormalDist().inv_cdf((1 + self.level) / 2)

    @property
    def _scale(self) -> float:
        return self._single / student_t_quantile((1 + self.level) / 2, self.df)

    def widened(self, t: float) -> float:
        """Return the t of estimated errors for the t of a normal tail."""
        if math.isinf(self.df) or t <= self._single:
            return t
        return max(student_t_quantile(NormalDist().cdf(t), self.df) * self._scale, t)

    def narrowed(self, t: F64) -> F64:
        """Return |t| of a normal tail for t of estimated errors."""
        size = np.abs(t)
        if math.isinf(self.df):
            return size
        beyond = student_t_sf(size / self._scale, self.df)
        normal = [-NormalDist().inv_cdf(p) if p > 0 else math.inf for p in beyond.tolist()]
        return np.where(size <= self._single, size, np.minimum(normal, size))


def adjusted_p(t: F64, largest: F64, tail: Tail) -> tuple[F64, F64]:
    """Return the single and the adjusted two-sided p-values of t."""
    single = np.array([2 * NormalDist().cdf(-abs(statistic)) for statistic in t.tolist()])
    reached = largest.size - np.searchsorted(largest, tail.narrowed(t), side="left")
    adjusted = (1 + reached) / (largest.size + 1)
    return single, np.minimum(np.maximum(adjusted, single), 1.0)
