"""bellogin2017, what is measured: systems under designs, curves, simulated data, items."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import islice
from typing import Any

import numpy as np
import polars as pl

from unskew.arrays import F64, I64
from unskew.data.ratings import Ratings
from unskew.data.relevance import Relevance
from unskew.engine.rng import generator
from unskew.errors import quietly
from unskew.evaluation.chance import expected_precision, one_relevant_bounds, sparsity
from unskew.evaluation.evaluate import evaluate
from unskew.evaluation.scores import Scores
from unskew.judging.rank import ranks_of
from unskew.recommend.model import Model
from unskew.recommend.presets import preset
from unskew.recommend.simple import Popularity, PositivePopularity, Random
from unskew.splits.events import TemporalEvents
from unskew.splits.popularity import HeadRemoved, Uniform, by_popularity, item_counts
from unskew.splits.random import Random as RandomSplit
from unskew.splits.split import Split
from unskew.splits.strata import popularity_percentiles
from unskew.splits.subsample import sparsity_sample
from unskew.stats.significance import compare
from unskew.studies.lab import Lab, UndefinedError, measurement
from unskew.targets.designs import AllItems, OneRelevant, Percentiles, Targets, TestItems
from unskew.targets.lists import TargetLists
from unskew.worlds.observation import Always, PopularityLaw, fit_popularity_law
from unskew.worlds.worlds import World

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
BPREF, INFAP, INFAP_TREC = "bpref", "infAP(pool=all)", "infAP"
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
"""How much of the test part is kept, along the curves over sparsity."""
SMALLEST, LARGEST = 100, 1000
"""Sizes of target sets along the curves."""
STEEPEST = 2.0
"""The largest α of simulated popularity."""
SEGMENTS = 100
BOUNDED = ("pLSA", "kNN")
"""The systems of Fig. 3."""


# What everything else is made of


def rule(lab: Lab, on: str) -> Relevance:
    """Return what is liked; the gain is the rating, as in section 6.3."""
    return Relevance(liked=lab.threshold(on, paper=LIKED.get(on, 5.0)), gain="liked-only")


def folds(lab: Lab, on: str) -> list[Split]:
    """Return the random splits; of a log of events, the one split by time."""

    def make() -> list[Split]:
        data = lab.data(on)
        if "events" in data.features:
            return TemporalEvents(test=SIGMA).split(data.features["events"])  # type: ignore[arg-type]
        each = RandomSplit(folds=FOLDS).each(data.ratings, lab.seed)
        return list(islice(each, lab.amount("folds")))

    return lab.once("random splits", on, make)


def uniform(lab: Lab, on: str) -> list[Split]:
    """Return the splits with equally many test ratings per item, rounded as in the paper."""

    def make() -> list[Split]:
        ratings = lab.data(on).ratings
        if on == LASTFM:  # there, what is rated at all is liked
            ratings = ratings.take(ratings.value >= LIKED[LASTFM])
        return uniform_test(lab).split(ratings, lab.seed)

    return lab.once("uniform splits", on, make)


def uniform_test(lab: Lab) -> Uniform:
    """Return the uniform test of section 6.2, with as many repetitions as there are folds."""
    return Uniform(SIGMA, EPSILON, "nearest", lab.amount("folds"))


def headless(lab: Lab, on: str) -> list[Split]:
    """Return the random splits without the most popular tenth in the test part."""
    each = HeadRemoved(RandomSplit(folds=FOLDS), 0.1).each(lab.data(on).ratings, lab.seed)
    return list(islice(each, lab.amount("folds")))


def models(lab: Lab, on: str, kind: str, number: int, train: Ratings) -> dict[str, Model]:
    """Train the five systems on one split, once."""

    def make() -> dict[str, Model]:
        lab.told(f"training {len(SYSTEMS)} systems ({on}, {kind} split {number + 1})")
        return fitted(lab.seed, train, kind, number)

    return lab.once(f"models of {kind} split {number}", on, make)


def fitted(seed: int, train: Ratings, *place: object) -> dict[str, Model]:
    """Train the five systems."""
    return {
        name: one.fit(train, generator(seed, "bellogin2017", *place, name))
        for name, one in preset("bellogin2017").items()
    }


def laid(design: Targets, split: Split, liked: Relevance, seed: int) -> TargetLists:
    """Lay a design over a split; what is short or missing stands in its facts."""
    with quietly():
        return design.lists(split, liked, seed=seed)


def judged(
    lists: TargetLists,
    systems: Mapping[str, object],
    metrics: Sequence[str] = (P,),
    undefined: str = "zero",
) -> Scores:
    """Judge systems over all users, as the paper does."""
    with quietly():
        return evaluate(lists, systems, metrics, users="all", undefined=undefined, draws=1)


def rows_of(scores: Scores, **place: object) -> Iterator[Row]:
    """Give a row per system and metric: its mean, what chance expects, the best single list."""
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


# Systems under designs: Figs. 2, 8 and 9


def shown(on: str) -> dict[str, Targets]:
    """Return the configurations of Fig. 2."""
    if on == LASTFM:
        return {AR: TestItems(others=2500), ONE: OneRelevant(OTHERS)}
    return {AR: TestItems(), AR_ALL: AllItems(), ONE: OneRelevant(OTHERS)}


def scores_of(lab: Lab, on: str, design: str, number: int) -> Scores:
    """Judge the systems under one configuration of Fig. 2 on one fold, once."""

    def make() -> Scores:
        split = folds(lab, on)[number]
        lists = laid(shown(on)[design], split, rule(lab, on), lab.seed)
        return judged(lists, models(lab, on, "random", number, split.train), METRICS)

    return lab.once(f"scores {design} {number}", on, make)


@measurement("systems under AR and 1R, by every metric")
def configurations(lab: Lab, on: str) -> pl.DataFrame:
    """Measure Figs. 2 and 9: a row per design, fold, system and metric."""
    rows: list[Row] = []
    for number in range(len(folds(lab, on))):
        for design in shown(on):
            scores = scores_of(lab, on, design, number)
            rows += rows_of(scores, design=design, fold=number + 1)
    return pl.DataFrame(rows)


@measurement("which systems differ, by Wilcoxon's test")
def significance(lab: Lab, on: str) -> pl.DataFrame:
    """Compare all pairs of systems under each configuration of Fig. 2."""
    parts = []
    for design in shown(on):
        each = [scores_of(lab, on, design, number) for number in range(len(folds(lab, on)))]
        table = compare(each, P, test="wilcoxon", correction=None).table()
        columns = ("a", "b", "mean_a", "mean_b", "difference", "low", "high", "p")
        parts.append(table.select(pl.lit(design).alias("design"), *columns))
    return pl.concat(parts)


@measurement("systems under percentiles, without the head, and with a fixed number of others")
def remedies(lab: Lab, on: str) -> pl.DataFrame:
    """Measure the random splits of Fig. 8: a row per design, fold, system and metric."""
    rows: list[Row] = []
    cut = headless(lab, on)
    for number, split in enumerate(folds(lab, on)):
        systems = models(lab, on, "random", number, split.train)
        for design, targets, part in (
            (AR_FIXED, TestItems(others=1700), split),
            (PERCENTILES, Percentiles(OTHERS), split),
            (HEADLESS, OneRelevant(OTHERS), cut[number]),
        ):
            lists = laid(targets, part, rule(lab, on), lab.seed)
            short = int(lists.facts.get("short_lists", 0))
            scores = judged(lists, systems, COMMON)
            rows += rows_of(scores, design=design, fold=number + 1, short=short)
    return pl.DataFrame(rows)


@measurement("systems with equally many test ratings per item")
def uniform_designs(lab: Lab, on: str) -> pl.DataFrame:
    """Measure the uniform splits of Fig. 8: a row per design, repetition, system and metric."""
    designs = {
        UAR: TestItems(),
        UAR_ALL: AllItems(),
        U1R: OneRelevant(OTHERS),
        U1R_ALL: OneRelevant(OTHERS, candidates="all"),
    }
    if on == LASTFM:
        designs = {U1R: OneRelevant(OTHERS)}
    rows: list[Row] = []
    for number, split in enumerate(uniform(lab, on)):
        systems = models(lab, on, "uniform", number, split.train)
        for design, targets in designs.items():
            lists = laid(targets, split, rule(lab, on), lab.seed)
            rows += rows_of(judged(lists, systems, COMMON), design=design, fold=number + 1)
    return pl.DataFrame(rows)


@measurement("systems with other thresholds of liking")
def thresholds(lab: Lab, on: str) -> pl.DataFrame:
    """Measure Fig. 2 with the two nearest other ratings as the smallest liked one."""
    own = rule(lab, on).threshold
    known = np.unique(lab.data(on).ratings.value)[1:]
    others = sorted((one for one in known.tolist() if one != own), key=lambda x: abs(x - own))[:2]
    rows: list[Row] = []
    split = folds(lab, on)[0]
    systems = models(lab, on, "random", 0, split.train)
    for liked in (own, *others):
        for design in (AR, ONE):
            lists = laid(shown(on)[design], split, Relevance(liked=liked), lab.seed)
            rows += rows_of(judged(lists, systems), design=design, liked=liked)
    return pl.DataFrame(rows)


@measurement("what a target set with one relevant item makes of metrics")
def one_item(lab: Lab, on: str) -> pl.DataFrame:
    """Measure 1R with graded and binary gains; and bpref and infAP without what is disliked.

    With grades, the rating below the paper's is liked too: else there is one grade. `least` is the
    lowest bpref of a list whose item could be ranked.
    """
    split = folds(lab, on)[0]
    systems = models(lab, on, "random", 0, split.train)
    values = np.unique(split.test.value)
    own = rule(lab, on).threshold
    below = values[values < own]
    liked = float(below[-1]) if below.size > 1 else own
    rows: list[Row] = []
    for gain in ("liked-only", "binary"):
        lists = laid(OneRelevant(OTHERS), split, Relevance(liked=liked, gain=gain), lab.seed)
        scores = judged(lists, systems, (NDCG, NDCG_WHOLE, AP, RR))
        rows += rows_of(scores, judgments=gain, least=None)
    positive = replace(split, test=split.test.take(split.test.value >= own))
    lists = laid(OneRelevant(OTHERS), positive, rule(lab, on), lab.seed)
    for name, model in systems.items():
        scores = judged(lists, {name: model}, (P, BPREF, INFAP))
        found = np.diff(ranks_of(model, lists).start) > 0
        least = float(scores.values(name, BPREF)[found].min(initial=1.0))
        rows += rows_of(scores, judgments=LIKED_ONLY, least=least)
    return pl.DataFrame(rows, schema_overrides={"least": pl.Float64})


# Curves: Figs. 3 and 4


def thinned(split: Split, share: float, seed: int) -> Split:
    """Return a split with a random share of its test ratings."""
    if share == 1:
        return split
    return replace(split, test=sparsity_sample(split.test, share, seed, per="all"))


def sizes(split: Split) -> list[int]:
    """Return the sizes of target sets along a curve: 100 to 1,000, less with fewer items."""
    tested = int(np.count_nonzero(item_counts(split.test)))
    largest = min(LARGEST, tested // 2)
    if largest < 80:
        raise UndefinedError(
            f"{tested} items have test ratings: too few for target sets of many sizes"
        )
    steps = np.geomspace(min(SMALLEST, largest / 4), largest, 5)
    return [int(size) for size in steps.round()]


def curve_folds(lab: Lab, on: str) -> list[Split]:
    """Return the splits that curves are measured on."""
    return folds(lab, on)[: lab.amount("curves")]


@measurement("systems with fewer test ratings")
def sparser(lab: Lab, on: str) -> pl.DataFrame:
    """Measure Fig. 4, left and centre: a row per share kept, design, fold, system and metric."""
    rows: list[Row] = []
    for number, split in enumerate(curve_folds(lab, on)):
        systems = models(lab, on, "random", number, split.train)
        for share in SHARES:
            part = thinned(split, share, lab.seed)
            for design in (AR, ONE):
                lists = laid(shown(on)[design], part, rule(lab, on), lab.seed)
                # Without liked items a normalised metric is undefined: such users drop out.
                scores = judged(lists, systems, COMMON, undefined="skip")
                rows += rows_of(scores, design=design, kept=share, fold=number + 1)
    return pl.DataFrame(rows)


@measurement("systems with fewer test ratings among the same candidates", version=2)
def sparser_fixed(lab: Lab, on: str) -> pl.DataFrame:
    """Measure 1R with a tenth of the test ratings and the items of all of them as candidates.

    No others are drawn: values are expectations over all draws. `value` is over the lists of the
    tenth, `whole` over all lists. Liked ratings that were removed are others that are not relevant
    (`removed` = `others`), or no targets, as before they were removed (`left out`). `error` is the
    standard error of the tenth, a sample of all lists without replacement.
    """
    rows: list[Row] = []
    for number, split in enumerate(curve_folds(lab, on)):
        systems = models(lab, on, "random", number, split.train)
        tested = np.flatnonzero(item_counts(split.test)).astype(np.int32)
        names = split.test.items.raw(tested).to_list()
        design = OneRelevant(OTHERS, candidates=names, exact=True)
        part = thinned(split, SHARES[0], lab.seed)
        whole, few = (laid(design, one, rule(lab, on), lab.seed) for one in (split, part))
        kept = np.isin(_keys(whole), _keys(few))
        every, some = judged(whole, systems), judged(few, systems)
        for system in systems:
            values = every.values(system, P)
            left = math.sqrt((1 - kept.mean()) / kept.sum()) * float(values[kept].std(ddof=1))
            for removed, own in (("others", some.values(system, P)), ("left out", values[kept])):
                rows.append(
                    {
                        "removed": removed,
                        "fold": number + 1,
                        "system": system,
                        "value": float(own.mean()),
                        "whole": float(values.mean()),
                        "error": left,
                        "lists": int(kept.sum()),
                    }
                )
    return pl.DataFrame(rows)


def _keys(lists: TargetLists) -> I64:
    """Number the user and the relevant item of each list."""
    return lists.user * np.int64(len(lists.tests.items)) + lists.anchor


@measurement("systems with larger target sets")
def larger(lab: Lab, on: str) -> pl.DataFrame:
    """Measure Fig. 4, right: a row per size of target sets, fold and system."""
    rows: list[Row] = []
    for number, split in enumerate(curve_folds(lab, on)):
        systems = models(lab, on, "random", number, split.train)
        for size in sizes(split):
            lists = laid(OneRelevant(size - 1), split, rule(lab, on), lab.seed)
            rows += rows_of(judged(lists, systems), targets=size, fold=number + 1)
    return pl.DataFrame(rows)


@measurement("1R precision and its bounds")
def bounds(lab: Lab, on: str) -> pl.DataFrame:
    """Measure Fig. 3: 1RP@10 with the same others for all lists of a user, and its bounds.

    `one each` has one liked test item per user.
    """
    rows: list[Row] = []
    liked = rule(lab, on)
    for number, split in enumerate(curve_folds(lab, on)):
        systems = models(lab, on, "random", number, split.train)
        points = [("kept", share, OTHERS, thinned(split, share, lab.seed)) for share in SHARES]
        points += [("targets", size, size - 1, split) for size in sizes(split)]
        points.append(("one each", 1, OTHERS, single(split, liked)))
        for along, at, others, part in points:
            whole = laid(TestItems(others), part, liked, lab.seed)
            same = laid(OneRelevant(others, fresh=False), part, liked, lab.seed)
            for name in BOUNDED:
                low, high = one_relevant_bounds(whole, ranks_of(systems[name], whole))
                value = judged(same, {name: systems[name]}).averages()[name][P]
                rows.append(
                    {
                        "along": along,
                        "at": float(at),
                        "fold": number + 1,
                        "system": name,
                        "low": low,
                        "value": value.value,
                        "high": high,
                        "lists": value.users,
                    }
                )
    return pl.DataFrame(rows)


def single(split: Split, liked: Relevance) -> Split:
    """Return a split whose test part has at most one liked rating per user."""
    good = np.flatnonzero(liked.is_liked(split.test.value))
    _, first = np.unique(split.test.user[good], return_index=True)
    keep = ~liked.is_liked(split.test.value)
    keep[good[first]] = True
    return replace(split, test=split.test.take(keep))


# Simulated data: Fig. 5 and section 6.2


def skews(lab: Lab) -> list[float]:
    """Return the exponents α of simulated popularity, from 0 to 2."""
    return [round(float(alpha), 3) for alpha in np.linspace(0, STEEPEST, lab.amount("skews"))]


def simulated_law(ratings: Ratings, alpha: float) -> PopularityLaw:
    """Return the law of popularity with another α: c1 and c2 as fitted to the data."""
    fit = fit_popularity_law(ratings)
    return PopularityLaw(alpha, fit.c1, fit.c2, exact=True)


@measurement("systems on data with simulated popularity")
def simulated(lab: Lab, on: str) -> pl.DataFrame:
    """Measure Fig. 5, centre: as many users, items and ratings, values drawn independently."""
    ratings, liked = lab.data(on).ratings, rule(lab, on)
    rows: list[Row] = []
    for alpha in skews(lab):
        law = simulated_law(ratings, alpha)
        made = World.like(ratings, liked.threshold, observation=[law, Always()], seed=lab.seed)
        (split,) = RandomSplit(test=SIGMA).split(made.ratings, lab.seed)
        lab.told(f"training {len(SYSTEMS)} systems ({on}, α = {alpha:g})")
        systems = fitted(lab.seed, split.train, "simulated", alpha)
        for design in (ONE, AR):
            lists = laid(shown(on)[design], split, liked, lab.seed)
            rows += rows_of(judged(lists, systems, COMMON), design=design, alpha=alpha)
    return pl.DataFrame(rows)


@measurement("uniform tests where every item is liked alike")
def constant_ratio(lab: Lab, on: str) -> pl.DataFrame:
    """Measure UAR and U1R on the pairs of the data, each liked by the same coin (section 6.2)."""
    liked = rule(lab, on)
    made = World.like(lab.data(on).ratings, liked.threshold, observation="given", seed=lab.seed)
    systems = (Popularity(), PositivePopularity(liked.threshold), Random())
    rows: list[Row] = []
    for number, split in enumerate(uniform_test(lab).split(made.ratings, lab.seed)):
        fit = {one.name: one.fit(split.train, lab.seed + number) for one in systems}
        for design, targets in ((UAR, TestItems()), (U1R, OneRelevant(OTHERS))):
            lists = laid(targets, split, liked, lab.seed)
            rows += rows_of(judged(lists, fit), design=design, fold=number + 1)
    return pl.DataFrame(rows)


# Items and fixed rankings


def positives(ratings: Ratings, liked: Relevance) -> I64:
    """Return |PR(i)|: how many users like each item."""
    return item_counts(ratings.take(liked.is_liked(ratings.value)))


def listed(facts: Iterable[tuple[str, float]]) -> pl.DataFrame:
    """Return facts as a table: what, value."""
    return pl.DataFrame(list(facts), schema={"what": pl.String, "value": pl.Float64}, orient="row")


@measurement("counts of ratings, users and items")
def counted(lab: Lab, on: str) -> pl.DataFrame:
    """Count what the paper says of its data: a row per number."""
    ratings, liked = lab.data(on).ratings, rule(lab, on)
    popular, good = item_counts(ratings), positives(ratings, liked)
    rated = popular > 0
    frame = pl.DataFrame({"popular": popular[rated], "ratio": good[rated] / popular[rated]})
    return listed(
        [
            ("ratings", len(ratings)),
            ("users", len(ratings.users)),
            ("items", len(ratings.items)),
            ("liked ratings", int(good.sum())),
            ("liked share of the most liked item", good.max() / len(ratings.users)),
            (
                "Spearman of popularity and positive ratio",
                frame.select(pl.corr("popular", "ratio", method="spearman")).item(),
            ),
            (
                "Pearson of popularity and positive ratio",
                frame.select(pl.corr("popular", "ratio")).item(),
            ),
        ]
    )


@measurement("how many items a percentile has")
def percentiles(lab: Lab, on: str) -> pl.DataFrame:
    """Count the items of each of ten percentiles of popularity."""
    sizes = np.bincount(popularity_percentiles(lab.data(on).ratings, 10).stratum)
    return listed((f"items of percentile {k + 1}", int(size)) for k, size in enumerate(sizes))


@measurement("the law of popularity, fitted")
def law(lab: Lab, on: str) -> pl.DataFrame:
    """Fit c1 + β (c2 + k)^-α to the ratings of items."""
    fit = fit_popularity_law(lab.data(on).ratings)
    return listed([("c1", fit.c1), ("c2", fit.c2), ("alpha", fit.alpha), ("beta", fit.beta)])


@measurement("how many items and test ratings a uniform test takes")
def uniform_facts(lab: Lab, on: str) -> pl.DataFrame:
    """Count |T| and η of section 6.2, with both ways to round, and folds that do not overlap."""
    ratings = lab.data(on).ratings
    each = {
        rounding: Uniform(SIGMA, EPSILON, rounding).split(ratings, lab.seed)[0].facts
        for rounding in ("nearest", "floor")
    }
    nearest, floor = each["nearest"], each["floor"]
    least = int(nearest["zeta_ratings"])
    return listed(
        [
            ("test items", nearest["items"]),
            ("test ratings per item", nearest["per_item"]),
            ("test ratings per item, rounded down", floor["per_item"]),
            ("ratings of the least rated test item", least),
            ("test share", nearest["test_share"]),
            ("disjoint test sets", least // max(int(floor["per_item"]), 1)),
        ]
    )


@measurement("expected and observed precision of fixed rankings")
def fixed_rankings(lab: Lab, on: str) -> pl.DataFrame:
    """Measure P@10 of rankings that are the same for all: expected exactly, by Eq. 3, observed."""
    ratings, liked = lab.data(on).ratings, rule(lab, on)
    popular, good = item_counts(ratings).astype(np.float64), positives(ratings, liked)
    unrated = np.maximum(len(ratings.users) - popular, 1)
    rankings: dict[str, F64] = {
        "popularity": popular,
        "liked ratings": good.astype(np.float64),
        "liked ratings per user who did not rate": good / unrated,
        "average liking": good / np.maximum(popular, 1),
    }
    observed: dict[str, list[float]] = {name: [] for name in rankings}
    for split in folds(lab, on):
        lists = laid(TestItems(), split, liked, lab.seed)
        for name, means in judged(lists, rankings).averages().items():
            observed[name].append(means[P].value)
    rows = []
    for name, score in rankings.items():
        exact, paper = (
            expected_precision(ratings, score, relevance=liked, test=SIGMA, paper=paper)
            for paper in (False, True)
        )
        seen = observed[name]
        rows.append(
            {
                "ranking": name,
                "expected": exact,
                "by Eq. 3": paper,
                "observed": float(np.mean(seen)),
                "folds": len(seen),
            }
        )
    return pl.DataFrame(rows)


@measurement("what a random order is expected to score")
def chance(lab: Lab, on: str) -> pl.DataFrame:
    """Measure ρ, σδ and 1/t of the random splits: a row per design and fold."""
    rows: list[Row] = []
    for number, split in enumerate(folds(lab, on)):
        for design in (AR, ONE):
            found = sparsity(laid(shown(on)[design], split, rule(lab, on), lab.seed))
            rows.append(
                {
                    "design": design,
                    "fold": number + 1,
                    "rho": found.rho,
                    "sigma": found.sigma,
                    "delta": found.delta,
                    "sigma_delta": found.sigma_delta,
                    "inverse_t": found.inverse_t,
                }
            )
    return pl.DataFrame(rows)


@measurement("how liked items are, by popularity")
def ratio_by_popularity(lab: Lab, on: str) -> pl.DataFrame:
    """Measure Fig. 7: |PR(i)| / |R(i)|, averaged over segments of items, most popular first."""
    ratings = lab.data(on).ratings
    popular, good = item_counts(ratings), positives(ratings, rule(lab, on))
    order = by_popularity(popular)[: int(np.count_nonzero(popular))]
    segment = np.arange(order.size) * min(SEGMENTS, order.size) // max(order.size, 1) + 1
    frame = pl.DataFrame(
        {"segment": segment, "ratings": popular[order], "ratio": good[order] / popular[order]}
    )
    return frame.group_by("segment", maintain_order=True).agg(
        pl.len().alias("items"), pl.col("ratings").mean(), pl.col("ratio").mean()
    )


@measurement("how few items hold most ratings")
def cumulated(lab: Lab, on: str) -> pl.DataFrame:
    """Measure Fig. 5, left and right: the share of ratings that the first items hold."""
    ratings = lab.data(on).ratings
    held = {"liked ratings": positives(ratings, rule(lab, on)).astype(np.float64)}
    for alpha in skews(lab):
        curve = simulated_law(ratings, alpha).curve(len(ratings.items), len(ratings))
        held[f"α = {alpha:g}"] = np.asarray(curve)
    places = np.unique(np.linspace(1, len(ratings.items), 60).round().astype(np.int64))
    parts = []
    for name, counts in held.items():
        falling = np.cumsum(np.sort(counts)[::-1])
        share = falling[places - 1] / max(float(falling[-1]), 1.0)
        parts.append(
            pl.DataFrame(
                {"of": [name] * places.size, "items": places / len(ratings.items), "share": share}
            )
        )
    return pl.concat(parts)


@measurement("weights of stratified recall")
def weights(lab: Lab, on: str) -> pl.DataFrame:
    """Count the liked test items that nobody likes in training, and at all."""
    liked = rule(lab, on)
    rows: list[Row] = []
    for number, split in enumerate(folds(lab, on)):
        trained, tested = positives(split.train, liked), positives(split.test, liked)
        relevant = tested > 0
        rows.append(
            {
                "fold": number + 1,
                "liked test items": int(relevant.sum()),
                "without a liked training rating": int((relevant & (trained == 0)).sum()),
                "without any": int((relevant & (trained + tested == 0)).sum()),
            }
        )
    return pl.DataFrame(rows)
