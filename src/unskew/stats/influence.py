"""What each user does to the mean of a split: the numbers from which errors are worked out."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl

from unskew.arrays import F64, I64, Mask
from unskew.data.ratings import Ids
from unskew.errors import DataError, SettingError
from unskew.evaluation.scores import Scores
from unskew.stats.clusters import by_group
from unskew.stats.pairing import list_weights


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
