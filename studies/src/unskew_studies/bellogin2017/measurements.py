"""bellogin2017: the splits, systems and designs that its measurements share."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import islice
from typing import Any

import numpy as np

from unskew.data.events import read_events
from unskew.data.ratings import Ratings
from unskew.data.relevance import Relevance
from unskew.engine.rng import generator
from unskew.errors import quietly
from unskew.evaluation.evaluate import evaluate
from unskew.evaluation.scores import Scores
from unskew.recommend.model import Model
from unskew.splits.popularity import HeadRemoved, Uniform
from unskew.splits.random import Random as RandomSplit
from unskew.splits.split import Split
from unskew.splits.time.temporal import TemporalEvents
from unskew.targets.designs import AllItems, OneRelevant, Targets, TestItems
from unskew.targets.lists import TargetLists
from unskew_studies.lab import Lab
from unskew_studies.presets import preset

Row = dict[str, Any]

LASTFM, NETFLIX, MOVIELENS = "lastfm-1k", "netflix", "ml-1m"
LIKED = {LASTFM: 3.0}
"""From which rating on the paper counts as liked: more than two plays; 5 on other data."""
SYSTEMS = tuple(preset("bellogin2017"))
LEARNING = tuple(name for name in SYSTEMS if name != "random")

AR, AR_ALL, ONE = "AR", "AR, all items", "1R"
AR_FIXED, PERCENTILES, HEADLESS = "AR, 1,700 others", "P1R", "1R, no head"
UAR, UAR_ALL, U1R, U1R_ALL = "UAR", "UAR, all items", "U1R", "U1R, all items"

P, RECALL, NDCG, NDCG_WHOLE, AP, RR = "P@10", "Recall@10", "nDCG@10", "nDCG", "AP", "RR"
BPREF, INFAP, INFAP_TREC = "bpref", "infAP(pool=all)", "infAP(pool=judged)"
STRATIFIED, STRATIFIED_0 = "SR(gamma=1)@10", "SR(gamma=0)@10"
TOTAL = "P"
COMMON = (P, RECALL, NDCG, NDCG_WHOLE, AP, RR)
METRICS = (*COMMON, TOTAL, BPREF, INFAP, INFAP_TREC, STRATIFIED, STRATIFIED_0)

LIKED_ONLY = "liked only"
"""1R as section 7 has it: what is disliked is no judgment any more."""

SIGMA = EPSILON = 0.2
FOLDS = 5
OTHERS = 99
"""Non-relevant items of a 1R target set: |T| = 100."""
SHARES = (0.1, 0.2, 0.4, 0.6, 0.8, 1.0)
"""Shares of the test part along the curves over sparsity."""
SMALLEST, LARGEST = 100, 1000
"""Sizes of target sets along the curves."""
STEEPEST = 2.0
"""The largest α of simulated popularity."""
SEGMENTS = 100
BOUNDED = ("pLSA", "kNN")
"""The systems of Fig. 3."""


# Splits, systems and scores


def relevance(lab: Lab, dataset_name: str) -> Relevance:
    """Return what is liked; the gain is the rating, as in section 6.3."""
    return Relevance(
        liked=lab.threshold(dataset_name, paper=LIKED.get(dataset_name, 5.0)), gain="liked-only"
    )


def folds(lab: Lab, dataset_name: str) -> list[Split]:
    """Return the random splits; of a log of events, the one split by time."""

    def make() -> list[Split]:
        data = lab.data(dataset_name)
        if "events" in data.features:
            # The paper reads few plays as "not liked": an opinion, not only a use.
            events = replace(read_events(data.features["events"]), implicit=False)
            return TemporalEvents(test=SIGMA).split(events)
        each = RandomSplit(folds=FOLDS).each(data.ratings, lab.seed)
        return list(islice(each, lab.amount("folds")))

    return lab.cached("random splits", dataset_name, make)


def uniform_splits(lab: Lab, dataset_name: str) -> list[Split]:
    """Return the splits with equally many test ratings per item, rounded as in the paper."""

    def make() -> list[Split]:
        ratings = lab.data(dataset_name).ratings
        if dataset_name == LASTFM:  # there, what is rated at all is liked
            ratings = replace(ratings.take(ratings.value >= LIKED[LASTFM]), implicit=False)
        return uniform_test(lab).split(ratings, lab.seed)

    return lab.cached("uniform splits", dataset_name, make)


def uniform_test(lab: Lab) -> Uniform:
    """Return the uniform test of section 6.2, with as many repetitions as there are folds."""
    return Uniform(SIGMA, EPSILON, "nearest", lab.amount("folds"))


def headless_splits(lab: Lab, dataset_name: str) -> list[Split]:
    """Return the random splits without the most popular tenth in the test part."""
    each = HeadRemoved(RandomSplit(folds=FOLDS), 0.1).each(lab.data(dataset_name).ratings, lab.seed)
    return list(islice(each, lab.amount("folds")))


def models(lab: Lab, dataset_name: str, kind: str, number: int, train: Ratings) -> dict[str, Model]:
    """Train the five systems on one split, once."""

    def make() -> dict[str, Model]:
        lab.progress(f"training {len(SYSTEMS)} systems ({dataset_name}, {kind} split {number + 1})")
        return fit_systems(lab.seed, train, kind, number)

    return lab.cached(f"models of {kind} split {number}", dataset_name, make)


def fit_systems(seed: int, train: Ratings, *place: object) -> dict[str, Model]:
    """Train the five systems."""
    return {
        name: one.fit(train, generator(seed, "bellogin2017", *place, name))
        for name, one in preset("bellogin2017").items()
    }


def target_lists(design: Targets, split: Split, liked: Relevance, seed: int) -> TargetLists:
    """Return the lists of a design on a split; its facts count short and missing ones."""
    with quietly():
        return design.lists(split, liked, seed=seed)


def score_systems(
    lists: TargetLists,
    systems: Mapping[str, object],
    metrics: Sequence[str] = (P,),
    undefined: str = "zero",
) -> Scores:
    """Judge systems over all users, as the paper does."""
    with quietly():
        return evaluate(lists, systems, metrics, users="all", undefined=undefined, draws=1)


def rows_of(scores: Scores, **place: object) -> Iterator[Row]:
    """Yield a row per system and metric: its mean, the expectation of chance, its best list."""
    chance = scores.random()
    targets = int(scores.lists["targets"].sum())
    for system, means in scores.averages().items():
        covered = int(scores.systems[system].depth.sum()) / max(targets, 1)
        for metric, mean in means.items():
            most = float(np.nanmax(scores.values(system, metric), initial=0.0))
            yield {
                **place,
                "system": system,
                "metric": metric,
                "value": mean.value,
                "random": chance[metric],
                "most": most,
                "lists": mean.users,
                "covered": covered,
            }


def fig_2_designs(dataset_name: str) -> dict[str, Targets]:
    """Return the configurations of Fig. 2."""
    if dataset_name == LASTFM:
        return {AR: TestItems(others=2500), ONE: OneRelevant(OTHERS)}
    return {AR: TestItems(), AR_ALL: AllItems(), ONE: OneRelevant(OTHERS)}
