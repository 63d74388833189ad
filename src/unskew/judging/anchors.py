"""The ranks that relevant items have among all candidates, where lists hold a sample of these."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from unskew.arrays import F64, I64, frozen
from unskew.judging.rank import Ranking, Ranks, rank_designs
from unskew.judging.rank_tiles import RankJob
from unskew.recommend.model import Model
from unskew.splits.split import Split
from unskew.targets.designs import Targets
from unskew.targets.lists import TargetLists


def full_job(lists: TargetLists) -> RankJob:
    """Return what a model is asked for, so that `anchors_of` knows the ranks among all candidates.

    Each user is ranked once, with all test items; strata are small, and ranked as they are.
    """
    settings = {key: value for key, value in lists.design.items() if key not in ("seed", "exact")}
    if lists.strata:
        source: Any = lists.source
        card = {**settings, "others": "all"}
        size = frozen(lists.free + 1)
        return RankJob(replace(lists, source=replace(source, n=None), size=size, design=card))
    design = Targets(**{**settings, "relevant": "all", "others": "all"})
    tags = {} if lists.known is None else {"test": lists.known}
    split = Split(lists.train, lists.tests, known=tags)
    return RankJob(design.lists(split, lists.relevance, seed=lists.seed))


def anchors_of(lists: TargetLists, ranking: Ranking) -> tuple[F64, I64]:
    """Return where each list's relevant item would stand among all its candidates.

    Less the test items that are in no list together with it and stand above it, that is its rank
    among all. NaN where it could not be scored; beside it, how many candidates of the user (in
    strata: of the list) could be.

    Parameters
    ----------
    lists
        One relevant item each.
    ranking
        What the model gave on the lists of `full_job`.
    """
    full_lists, ranks = ranking.job.lists, ranking.ranks
    if lists.strata:
        return anchor_ranks(full_lists, ranks), ranks.scored
    tests = lists.tests
    fixed = np.ones(len(tests), np.bool_)
    if full_lists.design["fixed"] == "liked":
        fixed = lists.relevance.is_liked(tests.value)
    before: I64 = np.append(0, np.cumsum(fixed[ranks.judgment]))
    above = before[:-1] - np.repeat(before[ranks.start[:-1]], np.diff(ranks.start))
    rank = np.full(len(tests), np.nan)
    rank[ranks.judgment] = ranks.rank - above
    factor = np.int64(len(tests.items))
    rows = np.searchsorted(tests.user * factor + tests.item, lists.user * factor + lists.anchor)
    return rank[rows], ranks.scored[np.searchsorted(full_lists.user, lists.user)]


def full_ranks(
    lists: TargetLists, model: Model, ties: str, seed: int, threads: int | None
) -> tuple[F64, I64]:
    """Let a model rank, and return what `anchors_of` tells."""
    job = full_job(lists)
    ranking = rank_designs(model, [job], ties=ties, seed=seed, threads=threads)[0]
    return anchors_of(lists, ranking)


def anchor_ranks(lists: TargetLists, ranks: Ranks) -> F64:
    """Return where each list ranks its one relevant item; NaN where it could not be scored."""
    out = np.full(len(lists), np.nan)
    owner = np.repeat(np.arange(len(lists)), np.diff(ranks.start))
    is_anchor = lists.judgments.item[ranks.judgment] == lists.anchor[owner]
    out[owner[is_anchor]] = ranks.rank[is_anchor]
    return out
