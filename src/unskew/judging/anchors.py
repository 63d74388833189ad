"""Where a model ranks the one relevant item of each list, its anchor."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from unskew.arrays import F64, I64, frozen
from unskew.judging.rank import Ranks, ranks_of
from unskew.recommend.model import Model
from unskew.splits.split import Split
from unskew.targets.designs import Targets
from unskew.targets.lists import TargetLists


def full_ranks(
    lists: TargetLists, model: Model, ties: str, seed: int, threads: int | None
) -> tuple[F64, I64]:
    """Return where each list's relevant item would stand among all its candidates.

    Each user is ranked once, with all test items: less those that are in no list together with the
    relevant one and stand above it, that is its rank. NaN where it could not be scored; beside it,
    how many candidates of the user (in strata: of the list) could be.
    """
    settings = {key: value for key, value in lists.design.items() if key not in ("seed", "exact")}
    if lists.strata:  # small lists: ranked as they are
        source: Any = lists.source
        card = {**settings, "others": "all"}
        size = frozen(lists.free + 1)
        whole = replace(lists, source=replace(source, n=None), size=size, design=card)
        everything = ranks_of(model, whole, ties=ties, seed=seed, threads=threads)
        return anchor_ranks(whole, everything), everything.scored
    design = Targets(**{**settings, "relevant": "all", "others": "all"})
    tests = lists.tests
    once = design.lists(Split(lists.train, tests), lists.relevance, seed=lists.seed)
    ranks = ranks_of(model, once, ties=ties, seed=seed, threads=threads)
    fixed = np.ones(len(tests), np.bool_)
    if design.fixed == "liked":
        fixed = lists.relevance.is_liked(tests.value)
    before: I64 = np.append(0, np.cumsum(fixed[ranks.judgment]))
    above = before[:-1] - np.repeat(before[ranks.start[:-1]], np.diff(ranks.start))
    rank = np.full(len(tests), np.nan)
    rank[ranks.judgment] = ranks.rank - above
    many = np.int64(len(tests.items))
    rows = np.searchsorted(tests.user * many + tests.item, lists.user * many + lists.anchor)
    return rank[rows], ranks.scored[lists.user]


def anchor_ranks(lists: TargetLists, ranks: Ranks) -> F64:
    """Return where each list ranks its one relevant item; NaN where it could not be scored."""
    out = np.full(len(lists), np.nan)
    owner = np.repeat(np.arange(len(lists)), np.diff(ranks.start))
    is_anchor = lists.judgments.item[ranks.judgment] == lists.anchor[owner]
    out[owner[is_anchor]] = ranks.rank[is_anchor]
    return out
