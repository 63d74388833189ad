"""castells2018 in simulated worlds whose truth is known."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace

import numpy as np
import polars as pl

from unskew.auditing.null.null_designs import published_designs, simple_systems
from unskew.auditing.null.null_experiment import null_experiment_by
from unskew.auditing.null.repeats import RepeatRule
from unskew.auditing.truth.truth import truth_by
from unskew.data.relevance import Relevance
from unskew.data.summary import item_counts
from unskew.evaluation.chance import fairness
from unskew.evaluation.evaluate import evaluate
from unskew.experiment.plan import Plan
from unskew.online.ab_tests import ab_test
from unskew.online.click_models import Clicks, ForcedExposure
from unskew.online.online_tests import online_tests
from unskew.online.top_lists import top_lists
from unskew.recommend.factors import PureSVD
from unskew.recommend.model import Algorithm
from unskew.recommend.neighbours import UserKNN
from unskew.recommend.simple import AverageRating, Popularity, Random
from unskew.report.estimates import Estimates
from unskew.splits.given import Forced as ForcedTest
from unskew.splits.popularity import Flat
from unskew.splits.random import PerUser
from unskew.splits.random import Random as RandomSplit
from unskew.splits.split import Split, shared_rows
from unskew.splits.time.temporal import Temporal
from unskew.stats.clusters import share_interval
from unskew.stats.correlation import kendall
from unskew.targets.designs import AllItems, TestTargets
from unskew.worlds.worlds import World, world
from unskew_studies.castells2018.measurements import null_table, thin_judgments
from unskew_studies.lab import Lab, measurement

CM100K = (1_054, 1_084, 103_584, 11_594)
"""Users, items, judgments and familiar judgments of CM100k."""
FAMILIAR_WORLDS = (
    "shop",
    "null",
    "relevance-only",
    "item-only",
    "popular-good",
    "inverted",
)
"""Worlds in which users know some items: by chance, by liking, by item."""
SPARSE = (0.2, 0.02, 0.005)
"""Densities of forced tests."""
TRENDY = 0.5


def _simple_systems(liked: float) -> dict[str, Algorithm]:
    names = ("random", "popularity", "positive popularity", "average rating")
    return dict(zip(names, simple_systems(liked), strict=True))


@measurement("a flat test in two worlds", version=2)
def flat_worlds(lab: Lab, _dataset_name: str) -> pl.DataFrame:
    """Kendall's τ of popularity and the chance of liked targets to be judged, item by item.

    Where judging depends on liking only, and where it depends on the item only. Each item has only
    ten test ratings, so it takes many items to see the second, which is weak.
    """
    rows = []
    for name in ("relevance-only", "item-only"):
        simulated = world(
            name, users=lab.amount("users") // 10, items=1_000, seed=lab.seed, density=0.1
        )
        split = Flat(10, min_ratings=20).split(simulated.ratings, lab.seed)[0]
        result = fairness(
            split, truth=simulated.truth(), relevance=Relevance(liked=simulated.liked)
        )
        # Items with too few ratings to be tested have no part in a flat test.
        kept = (item_counts(split.test) > 0) & ~np.isnan(result.factor)
        n = int(np.count_nonzero(kept))
        tau = kendall(item_counts(simulated.ratings)[kept], result.factor[kept])
        error = math.sqrt(2 * (2 * n + 5) / (9 * n * (n - 1)))
        rows.append({"world": name, "items": n, "tau": tau, "z": tau / error})
    return pl.DataFrame(rows)


@measurement("forced tests, where the overlap goes")
def overlap(lab: Lab, _dataset_name: str) -> pl.DataFrame:
    """Popularity against chance in a null world with a forced test, by density and overlap."""
    simulated = world("null", users=lab.amount("users"), items=200, seed=lab.seed)
    rows = []
    for density in SPARSE:
        random = simulated.random(density, seed=lab.seed)
        for where in ("to-test", "to-training"):
            split = ForcedTest(random, where).split(simulated.ratings, lab.seed)[0]
            lists = AllItems().lists(split, liked=simulated.liked)
            model = Popularity().fit(split.train)
            scores = evaluate(lists, {"popularity": model}, "P@10", users="all")
            chance = float(scores.random()["P@10"] or math.nan)
            value = scores.values("popularity", "P@10")
            error = float(value.std()) / math.sqrt(value.size) / chance
            rows.append(
                {
                    "test density": density,
                    "overlap": where,
                    "chance": chance,
                    "popularity": float(value.mean()),
                    "ratio": float(value.mean()) / chance,
                    "error": error,
                }
            )
    return pl.DataFrame(rows)


@measurement("test targets under four splits")
def splits_with_test_targets(lab: Lab, _dataset_name: str) -> pl.DataFrame:
    """Null values of systems without taste, by split, over test targets."""
    simulated = world(
        "ageing", users=lab.amount("users") // 20, items=200, seed=lab.seed, density=0.25
    )
    splitters = {
        "random": RandomSplit(test=0.2),
        "flat": Flat(10, min_ratings=20),
        "per user": PerUser(test=0.2),
        "temporal": Temporal(),
    }
    plan = published_designs(
        _simple_systems(simulated.liked), ["random"], liked=simulated.liked, seed=lab.seed
    )
    one = replace(plan["random"], targets=TestTargets("fill"))
    repeats = lab.amount("repeats")
    result = null_experiment_by(
        lab.executor,
        simulated.ratings,
        {name: replace(one, split=splitter) for name, splitter in splitters.items()},
        ("iid",),
        RepeatRule.fixed(repeats),
        store=lab.store,
    )
    lists = len(simulated.users) * repeats
    return null_table(result, lists)


@measurement("precision and recall with random judgments")
def recall_in_a_world(lab: Lab, _dataset_name: str) -> pl.DataFrame:
    """Estimates over true values, of systems trained alike: a uniform test and a random split.

    Pooled over users, as the paper writes both metrics. z is the distance of a ratio from that of
    chance's own, the share of liked targets that are judged.
    """
    simulated = world(
        "shop", users=lab.amount("users") // 10, items=200, seed=lab.seed, density=0.1
    )
    held = RandomSplit(test=0.2).split(simulated.ratings, lab.seed)[0]
    whole = ForcedTest(simulated.truth()).split(held.train, lab.seed)[0]
    tests = {
        "uniform": ForcedTest(simulated.random(0.3, seed=lab.seed)).split(held.train, lab.seed)[0],
        "random split": held,
    }
    models = {name: one.fit(held.train) for name, one in _simple_systems(simulated.liked).items()}
    hits, liked = _pooled(whole, models, simulated)
    rows = []
    for name, split in tests.items():
        judged_hits, judged = _pooled(split, models, simulated)
        share = judged / liked
        for system in models:
            ratio = judged_hits[system] / hits[system]
            error = math.sqrt(share * (1 - share) / hits[system])
            rows.append(
                {
                    "test": name,
                    "system": system,
                    "true recall": hits[system] / liked,
                    "recall": judged_hits[system] / judged,
                    "precision ratio": ratio,
                    "recall ratio": ratio / share,
                    "z": (ratio - share) / error,
                }
            )
    return pl.DataFrame(rows)


def _pooled(
    split: Split, models: Mapping[str, object], simulated: World
) -> tuple[dict[str, float], int]:
    """Return the liked items in the top 10 of all users by system, and all liked judgments."""
    lists = AllItems().lists(split, liked=simulated.liked)
    scores = evaluate(lists, models, "P@10", users="all")
    hits = {name: float(10 * scores.values(name, "P@10").sum()) for name in models}
    return hits, int(np.count_nonzero(split.test.value >= simulated.liked))


@measurement("clustered judgments")
def clustered(lab: Lab, _dataset_name: str) -> pl.DataFrame:
    """Observed and true precision where items are judged alike, pairs of user and item not."""
    simulated = world("clustered", users=lab.amount("users") // 20, items=400, seed=lab.seed)
    algorithms = {"random": Random(), "popularity": Popularity(), "kNN": UserKNN(k=50)}
    splitter = RandomSplit(test=0.2)
    rule = Relevance(liked=simulated.liked)
    plan = Plan(splitter, AllItems(), algorithms, rule, ("P@10",), users="all", seed=lab.seed)
    rows = truth_by(lab.executor, simulated, plan, resamples=0).rows
    table = rows.pivot("quantity", index="system", values="value")
    spread = fairness(
        splitter.split(simulated.ratings, lab.seed)[0], propensity=simulated.observation
    )
    return table.select("system", "observed", "true", "error").with_columns(
        pl.lit(len(simulated.users)).alias("users"),
        pl.lit(spread.spread).alias("spread over items"),
        pl.lit(spread.pair_spread).alias("spread over pairs"),
    )


@measurement("test targets and the truth")
def targets_and_truth(lab: Lab, _dataset_name: str) -> pl.DataFrame:
    """Kendall's τ of designs to the truth over all items outside training, in two worlds."""
    rows = []
    for name in ("shop", "inverted"):
        simulated = world(
            name, users=lab.amount("users") // 40, items=200, seed=lab.seed, density=0.2
        )
        algorithms = _simple_systems(simulated.liked) | {"kNN": UserKNN(k=50)}
        plan = Plan(
            RandomSplit(test=0.2),
            [AllItems(), TestTargets("fill")],
            algorithms,
            Relevance(liked=simulated.liked),
            ("P@5",),
            users="all",
            seed=lab.seed,
        )
        agreement = truth_by(lab.executor, simulated, plan, resamples=200).parts["agreement"].rows
        for row, targets in zip(agreement.iter_rows(named=True), ("full", "test"), strict=True):
            picked = {key: row[key] for key in ("low", "high", "swaps")}
            rows.append({"world": name, "targets": targets, "tau": row["value"], **picked})
    return pl.DataFrame(rows)


@measurement("sampling of section 5.2.2 on data of the size of CM100k")
def thinning_by_world(lab: Lab, _dataset_name: str) -> pl.DataFrame:
    """Thin random judgments, of which as many are familiar as in CM100k, in several worlds."""
    users, items, judged, familiar = CM100K
    parts = []
    for name in FAMILIAR_WORLDS:
        simulated = world(name, users=users, items=items, seed=lab.seed, density=familiar / judged)
        drawn = simulated.random(judged / (users * items), seed=lab.seed)
        known = pl.Series(shared_rows(drawn, simulated.ratings))
        shares = thin_judgments(replace(drawn, tags={"familiar": known}), simulated.liked, lab.seed)
        parts.append(shares.select(pl.lit(name).alias("world"), pl.all()))
    return pl.concat(parts)


_ONLINE: dict[str, Algorithm] = {
    "random": Random(),
    "popularity": Popularity(),
    "average rating": AverageRating(),
    "kNN": UserKNN(k=50),
    "PureSVD": PureSVD(factors=10),
}


def _shop(lab: Lab) -> World:
    users = lab.amount("users") // 40
    return world("shop", users=users, items=users * 2 // 5, seed=lab.seed, density=0.15)


@measurement("forced judgments of all that is shown")
def forced_online(lab: Lab, _dataset_name: str) -> pl.DataFrame:
    """Estimated and true precision where every user judges every system's list."""
    simulated = _shop(lab)
    test = ab_test(
        simulated, top_lists(simulated, _ONLINE, k=5, seed=lab.seed), None, ForcedExposure()
    )
    return test.rows.select("system", pl.col("value").alias("rate"), "true")


def _tests(lab: Lab) -> Estimates:
    """Run online tests with free clicks: by liking only, and by liking and fashion."""
    feedback = {"plain": Clicks(), "trendy": Clicks(engagement=TRENDY)}

    def done() -> Estimates:
        return online_tests(
            _shop(lab),
            _ONLINE,
            30_000,
            feedback,
            methods=("ab", "team-draft", "multileave"),
            designs={},
            k=5,
            repeats=lab.amount("worlds"),
            seed=lab.seed,
        )

    return lab.cached("online tests", "", done)


def _side_by_side(shares: Estimates) -> pl.DataFrame:
    """Return quantities beside each other, as `right`, `right_low` and `right_high`."""
    frame = shares.table(wide="quantity")
    names = {"value": "{}", "low": "{}_low", "high": "{}_high"}
    keys = [key for key in shares.keys if key != "quantity"]
    return frame.select(
        *keys,
        *(
            pl.col(f"{column}_{quantity}").alias(name.format(quantity))
            for quantity in shares.values_of("quantity")
            for column, name in names.items()
        ),
    )


@measurement("online tests with free clicks")
def online(lab: Lab, _dataset_name: str) -> pl.DataFrame:
    """Return the number of pairs that each kind of test orders rightly and wrongly."""
    tests = _tests(lab)
    pairs = tests.where(quantity="right").rows.select("world", "feedback", "test", "pairs")
    return pairs.join(_side_by_side(tests), on=["world", "feedback", "test"], maintain_order="left")


@measurement("online tests with free clicks that popularity wins wrongly")
def wrong_wins(lab: Lab, _dataset_name: str) -> pl.DataFrame:
    """Return how often popularity wins significantly against a truly better system."""
    trials = _tests(lab).parts["trials"].rows
    level = _tests(lab).method.level or math.nan
    first, second = (pl.col(side) == "popularity" for side in ("system", "against"))
    true = pl.col("true_difference")
    rows = []
    worse = trials.filter((first & (true < 0)) | (second & (true > 0)))
    for (users,), part in worse.group_by("feedback", maintain_order=True):
        wrong = (part["value"] * part["true_difference"] < 0) & (part["p"] < 1 - level)
        interval = share_interval(wrong.to_numpy(), part["repeat"].to_numpy(), level)
        rows.append((users, part.height, *interval))
    kinds = {"feedback": pl.String, "pairs": pl.Int64}
    kinds |= dict.fromkeys(("wrong", "low", "high"), pl.Float64)
    return pl.DataFrame(rows, schema=kinds, orient="row")


@measurement("judgments of online tests used again")
def reused(lab: Lab, _dataset_name: str) -> pl.DataFrame:
    """A system left out of an A/B test, judged by what the test gathered."""
    return _side_by_side(_tests(lab).parts["reuse"])
