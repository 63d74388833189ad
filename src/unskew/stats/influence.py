"""What each user does to the mean of a split: the numbers from which errors are worked out."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import NormalDist
from typing import Any

import numpy as np
import polars as pl

from unskew.arrays import F64, I64, Mask
from unskew.data.ratings import Ids
from unskew.errors import DataError, SettingError
from unskew.evaluation.scores import Scores
from unskew.stats.clusters import by_group
from unskew.stats.pairing import Pairs, list_weights
from unskew.stats.special import student_t_quantile


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

    def by_group(self, code: I64) -> SplitInfluence:
        """Return the same with groups of users as units: what their users add is added up."""
        counted = np.bincount(code, self.counted) > 0
        return SplitInfluence(self.means, by_group(self.influence, code), counted)

    def same_values(self, second: SplitInfluence) -> bool:
        """Tell whether two splits agree in every value of every user."""
        return (
            np.array_equal(self.counted, second.counted)
            and np.array_equal(self.means, second.means)
            and np.array_equal(self.influence, second.influence)
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
_USERS_AT_ONCE = 4_096
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
    first, second = pairs.first, pairs.second
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
            split.influence[part][:, pairs.first] - split.influence[part][:, pairs.second]
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
