"""bellogin2017, sections 5 and 6: simulated popularity, fixed rankings, counts of items."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import polars as pl

from unskew.arrays import F64, I64
from unskew.data.ratings import Ratings
from unskew.data.relevance import Relevance
from unskew.data.summary import by_popularity, item_counts
from unskew.evaluation.chance import expected_precision, sparsity
from unskew.recommend.simple import Popularity, PositivePopularity, Random
from unskew.splits.popularity import Uniform
from unskew.splits.random import Random as RandomSplit
from unskew.splits.strata import popularity_percentiles
from unskew.targets.designs import (
    OneRelevant,
    TestItems,
)
from unskew.worlds.observation import Always, PopularityLaw, fit_popularity_law
from unskew.worlds.worlds import World
from unskew_studies.bellogin2017.measurements import (
    AR,
    COMMON,
    EPSILON,
    ONE,
    OTHERS,
    SEGMENTS,
    SIGMA,
    STEEPEST,
    SYSTEMS,
    U1R,
    UAR,
    P,
    Row,
    fig_2_designs,
    fit_systems,
    folds,
    relevance,
    rows_of,
    score_systems,
    target_lists,
    uniform_test,
)
from unskew_studies.lab import Lab, measurement

# Simulated data: Fig. 5 and section 6.2


def skews(lab: Lab) -> list[float]:
    """Return the exponents α of simulated popularity, from 0 to 2."""
    return [round(float(alpha), 3) for alpha in np.linspace(0, STEEPEST, lab.amount("skews"))]


def simulated_law(ratings: Ratings, alpha: float) -> PopularityLaw:
    """Return the law of popularity with another α: c1 and c2 as fitted to the data."""
    fit = fit_popularity_law(ratings)
    return PopularityLaw(alpha, fit.c1, fit.c2, exact=True)


@measurement("systems on data with simulated popularity")
def simulated(lab: Lab, dataset_name: str) -> pl.DataFrame:
    """Measure Fig. 5, centre: as many users, items and ratings, values drawn independently."""
    ratings, liked = lab.data(dataset_name).ratings, relevance(lab, dataset_name)
    rows: list[Row] = []
    for alpha in skews(lab):
        law = simulated_law(ratings, alpha)
        world = World.like(ratings, liked.threshold, observation=[law, Always()], seed=lab.seed)
        (split,) = RandomSplit(test=SIGMA).split(world.ratings, lab.seed)
        lab.progress(f"training {len(SYSTEMS)} systems ({dataset_name}, α = {alpha:g})")
        systems = fit_systems(lab.seed, split.train, "simulated", alpha)
        for design in (ONE, AR):
            lists = target_lists(fig_2_designs(dataset_name)[design], split, liked, lab.seed)
            rows += rows_of(score_systems(lists, systems, COMMON), design=design, alpha=alpha)
    return pl.DataFrame(rows)


@measurement("uniform tests where every item is liked alike")
def constant_ratio(lab: Lab, dataset_name: str) -> pl.DataFrame:
    """Measure UAR and U1R on the pairs of the data, each liked by the same coin (section 6.2)."""
    liked = relevance(lab, dataset_name)
    world = World.like(
        lab.data(dataset_name).ratings, liked.threshold, observation="given", seed=lab.seed
    )
    systems = (Popularity(), PositivePopularity(liked.threshold), Random())
    rows: list[Row] = []
    for number, split in enumerate(uniform_test(lab).split(world.ratings, lab.seed)):
        fit = {one.name: one.fit(split.train, lab.seed + number) for one in systems}
        for design, targets in ((UAR, TestItems()), (U1R, OneRelevant(OTHERS))):
            lists = target_lists(targets, split, liked, lab.seed)
            rows += rows_of(score_systems(lists, fit), design=design, fold=number + 1)
    return pl.DataFrame(rows)


# Items and fixed rankings


def positives(ratings: Ratings, liked: Relevance) -> I64:
    """Return |PR(i)|: how many users like each item."""
    return item_counts(ratings.take(liked.is_liked(ratings.value)))


def fact_table(facts: Iterable[tuple[str, float]]) -> pl.DataFrame:
    """Return facts as a table: what, value."""
    return pl.DataFrame(list(facts), schema={"what": pl.String, "value": pl.Float64}, orient="row")


@measurement("counts of ratings, users and items")
def counts(lab: Lab, dataset_name: str) -> pl.DataFrame:
    """Count what the paper says of its data: a row per number."""
    ratings, liked = lab.data(dataset_name).ratings, relevance(lab, dataset_name)
    popular, good = item_counts(ratings), positives(ratings, liked)
    rated = popular > 0
    frame = pl.DataFrame({"popular": popular[rated], "ratio": good[rated] / popular[rated]})
    return fact_table(
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
def percentiles(lab: Lab, dataset_name: str) -> pl.DataFrame:
    """Count the items of each of ten percentiles of popularity."""
    sizes = np.bincount(popularity_percentiles(lab.data(dataset_name).ratings, 10).stratum)
    return fact_table((f"items of percentile {k + 1}", int(size)) for k, size in enumerate(sizes))


@measurement("the law of popularity, fitted")
def law(lab: Lab, dataset_name: str) -> pl.DataFrame:
    """Fit c1 + β (c2 + k)^-α to the ratings of items."""
    fit = fit_popularity_law(lab.data(dataset_name).ratings)
    return fact_table([("c1", fit.c1), ("c2", fit.c2), ("alpha", fit.alpha), ("beta", fit.beta)])


@measurement("how many items and test ratings a uniform test takes")
def uniform_facts(lab: Lab, dataset_name: str) -> pl.DataFrame:
    """Count |T| and η of section 6.2, with both ways to round, and folds that do not overlap."""
    ratings = lab.data(dataset_name).ratings
    each = {
        rounding: Uniform(SIGMA, EPSILON, rounding).split(ratings, lab.seed)[0].facts
        for rounding in ("nearest", "floor")
    }
    nearest, floor = each["nearest"], each["floor"]
    least = int(nearest["zeta_ratings"])
    return fact_table(
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
def fixed_rankings(lab: Lab, dataset_name: str) -> pl.DataFrame:
    """Measure P@10 of rankings that are the same for all: expected exactly, by Eq. 3, observed."""
    ratings, liked = lab.data(dataset_name).ratings, relevance(lab, dataset_name)
    popular, good = item_counts(ratings).astype(np.float64), positives(ratings, liked)
    unrated = np.maximum(len(ratings.users) - popular, 1)
    rankings: dict[str, F64] = {
        "popularity": popular,
        "liked ratings": good.astype(np.float64),
        "liked ratings per user who did not rate": good / unrated,
        "average liking": good / np.maximum(popular, 1),
    }
    observed: dict[str, list[float]] = {name: [] for name in rankings}
    for split in folds(lab, dataset_name):
        lists = target_lists(TestItems(), split, liked, lab.seed)
        for name, means in score_systems(lists, rankings).averages().items():
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
def chance(lab: Lab, dataset_name: str) -> pl.DataFrame:
    """Measure ρ, σδ and 1/t of the random splits: a row per design and fold."""
    rows: list[Row] = []
    for number, split in enumerate(folds(lab, dataset_name)):
        for design in (AR, ONE):
            expected = sparsity(
                target_lists(
                    fig_2_designs(dataset_name)[design],
                    split,
                    relevance(lab, dataset_name),
                    lab.seed,
                )
            )
            rows.append(
                {
                    "design": design,
                    "fold": number + 1,
                    "rho": expected.rho,
                    "sigma": expected.sigma,
                    "delta": expected.delta,
                    "sigma_delta": expected.sigma_delta,
                    "inverse_t": expected.inverse_t,
                }
            )
    return pl.DataFrame(rows)


@measurement("how liked items are, by popularity")
def ratio_by_popularity(lab: Lab, dataset_name: str) -> pl.DataFrame:
    """Measure Fig. 7: |PR(i)| / |R(i)|, averaged over segments of items, most popular first."""
    ratings = lab.data(dataset_name).ratings
    popular, good = item_counts(ratings), positives(ratings, relevance(lab, dataset_name))
    order = by_popularity(popular)[: int(np.count_nonzero(popular))]
    segment = np.arange(order.size) * min(SEGMENTS, order.size) // max(order.size, 1) + 1
    frame = pl.DataFrame(
        {"segment": segment, "ratings": popular[order], "ratio": good[order] / popular[order]}
    )
    return frame.group_by("segment", maintain_order=True).agg(
        pl.len().alias("items"), pl.col("ratings").mean(), pl.col("ratio").mean()
    )


@measurement("how few items hold most ratings")
def cumulated_shares(lab: Lab, dataset_name: str) -> pl.DataFrame:
    """Measure Fig. 5, left and right: the share of ratings that the first items hold."""
    ratings = lab.data(dataset_name).ratings
    held = {"liked ratings": positives(ratings, relevance(lab, dataset_name)).astype(np.float64)}
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
def weights(lab: Lab, dataset_name: str) -> pl.DataFrame:
    """Count the liked test items that nobody likes in training, and at all."""
    liked = relevance(lab, dataset_name)
    rows: list[Row] = []
    for number, split in enumerate(folds(lab, dataset_name)):
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
