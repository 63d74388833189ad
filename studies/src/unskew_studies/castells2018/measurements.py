"""castells2018 on data: the null experiment of Fig. 2, design by design, and what splits do."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from typing import cast

import numpy as np
import polars as pl

from unskew.arrays import F64, I64, frozen
from unskew.auditing.null.null_designs import published_designs, simple_systems
from unskew.auditing.null.null_experiment import null_experiment_by
from unskew.auditing.null.repeats import RepeatRule
from unskew.data.ratings import Ratings
from unskew.data.relevance import Relevance
from unskew.data.summary import by_popularity, item_counts
from unskew.errors import DataError
from unskew.evaluation.chance import fairness
from unskew.evaluation.scores import Scores
from unskew.experiment.execution import run_plan_by
from unskew.experiment.plan import Plan
from unskew.recommend.factors import WRMF
from unskew.recommend.model import Algorithm
from unskew.recommend.neighbours import UserKNN
from unskew.recommend.simple import PositivePopularity, SmoothedAverage
from unskew.report.estimates import Estimates
from unskew.splits.given import FamiliarTraining
from unskew.splits.popularity import Flat
from unskew.splits.random import Random
from unskew.splits.strata import Strata, judgment_bins, percentiles
from unskew.splits.time.temporal import Temporal
from unskew.targets.designs import AllItems, TestTargets, UserFlat
from unskew.worlds.nulls import forced_judgments, redraw
from unskew_studies.lab import Lab, MissingDataError, UndefinedError, measurement
from unskew_studies.presets import preset

LIKED = 4.0
SHARE = 0.57
"""p(R) of Fig. 2: the share of liked ratings in the null data of the paper."""
DENSITY = 0.5
"""p(J) of Fig. 2: the density of forced judgments."""
BINS = 10
CUTOFF = 10
METRICS = (f"P@{CUTOFF}", f"Recall@{CUTOFF}")
TARGETS = (100, 300, 1000)
"""Sampled targets per user in user-flat designs."""
FREE = ("popularity", "positive popularity", "kNN", "iMF")
"""The systems that free judgments are said to favour."""
AVERAGE, AVERAGE_OF_ONE = "average rating", "average rating, μ = 1"
KNN, ALL_NEIGHBOURS, IMF = "kNN", "kNN, all neighbours", "iMF"


def systems(liked: float, factors: int = 50) -> dict[str, Algorithm]:
    """Return the systems of Fig. 2 for a threshold of liked ratings.

    Parameters
    ----------
    liked
        The smallest rating that is liked.
    factors
        Of matrix factorisation.
    """
    algorithms = {name: one.algorithm for name, one in preset("castells2018").items()}
    return algorithms | {
        "positive popularity": PositivePopularity(liked),
        AVERAGE: SmoothedAverage("mean", "liked", liked),
        IMF: replace(cast("WRMF", algorithms[IMF]), factors=factors),
    }


def _systems(lab: Lab, dataset_name: str) -> dict[str, Algorithm]:
    return systems(_liked(lab, dataset_name), lab.amount("factors"))


def _lift(lab: Lab, dataset_name: str) -> float:
    """Return what is added to ratings below 0: matrix factorisation takes ratings as weights."""
    least = float(lab.data(dataset_name).ratings.value.min(initial=0.0))
    return 1.0 - least if least < 0 else 0.0


def _liked(lab: Lab, dataset_name: str) -> float:
    return lab.threshold(dataset_name, paper=LIKED) + _lift(lab, dataset_name)


def _ratings(lab: Lab, dataset_name: str) -> Ratings:
    """Return the ratings, lifted above 0 where some are negative."""
    ratings, lift = lab.data(dataset_name).ratings, _lift(lab, dataset_name)
    return replace(ratings, value=frozen(ratings.value + lift)) if lift else ratings


def _plan(
    lab: Lab,
    dataset_name: str,
    design: str,
    algorithms: Mapping[str, Algorithm],
    folds: int | None = None,
) -> Plan:
    """Return a design of Fig. 2, with one random fifth as test unless folds are given."""
    plans = published_designs(
        algorithms,
        [design],
        liked=_liked(lab, dataset_name),
        metrics=METRICS,
        folds=folds,
        seed=lab.seed,
    )
    return plans[design]


def _simple(lab: Lab, dataset_name: str) -> Plan:
    """Return one random fifth and the systems without taste: for designs beside Fig. 2."""
    names = ("random", "popularity", "positive popularity", AVERAGE)
    algorithms = dict(zip(names, simple_systems(_liked(lab, dataset_name)), strict=True))
    return _plan(lab, dataset_name, "random", algorithms)


def _null(lab: Lab, dataset_name: str, plans: Mapping[str, Plan], splits: int) -> pl.DataFrame:
    """Run plans on the data as they are and with relevance drawn at random.

    `lists` is how many lists are behind each value on null data.
    """
    ratings, repeats = _ratings(lab, dataset_name), lab.amount("repeats")
    result = null_experiment_by(
        lab.executor,
        ratings,
        plans,
        ("iid",),
        RepeatRule.fixed(repeats),
        share=None if lab.is_other_data else SHARE,
        store=lab.store,
        progress=lambda done, total: lab.progress(
            f"{', '.join(plans)} ({dataset_name}): {done} of {total}"
        ),
    )
    lists = len(ratings.users) * splits * repeats
    return null_table(result, lists)


NULL_COLUMNS = {
    "real": "value_real",
    "real_random": "value_real_random",
    "null_value": "value_null_value",
    "low": "low_null_value",
    "high": "high_null_value",
    "null_random": "value_null_random",
    "ratio": "value_ratio",
    "ratio_low": "low_ratio",
    "ratio_high": "high_ratio",
    "null_share": "value_null_share",
    "share_low": "low_null_share",
    "share_high": "high_null_share",
}
"""What is stored of a null experiment, and where it stands in its wide table."""


def null_table(result: Estimates, lists: int) -> pl.DataFrame:
    """Return a row per design, system and metric, and how many lists are behind each value."""
    columns = (pl.col(column).alias(name) for name, column in NULL_COLUMNS.items())
    keys = ("design", "system", "metric")
    return result.table("quantity").select(*keys, *columns, pl.lit(lists).alias("lists"))


@measurement("null experiment, random split with full and with test targets")
def null_random(lab: Lab, dataset_name: str) -> pl.DataFrame:
    """Random split, all items and test targets, ranked by all systems.

    Both share their training. kNN with all users as neighbours takes the place of kNN under test
    targets, and the smoothed average with μ = 1 stands beside that of the authors' code.
    """
    full = _random_plan(lab, dataset_name)
    plans = {"random": full, "test-targets": replace(full, targets=TestTargets("fill"))}
    table = _null(lab, dataset_name, plans, lab.amount("folds"))
    other = {"random": ALL_NEIGHBOURS, "test-targets": KNN}
    kept = table.filter(pl.col("system") != pl.col("design").replace_strict(other))
    return kept.with_columns(pl.col("system").replace({ALL_NEIGHBOURS: KNN}))


def _random_plan(lab: Lab, dataset_name: str) -> Plan:
    algorithms = _systems(lab, dataset_name) | {
        ALL_NEIGHBOURS: UserKNN(k=None),
        AVERAGE_OF_ONE: SmoothedAverage(1.0, "liked", _liked(lab, dataset_name)),
    }
    return _plan(lab, dataset_name, "random", algorithms, lab.amount("folds"))


@measurement("lead of the average rating with test targets, on the data as they are")
def average_lead(lab: Lab, dataset_name: str) -> pl.DataFrame:
    """Return the lead of the average rating over each other system, with its interval."""
    full = _random_plan(lab, dataset_name)
    # As the null experiment runs them, together: so that nothing is trained again.
    plan = replace(full, targets=(*full.designs, TestTargets("fill")))
    ratings = _ratings(lab, dataset_name)
    results = run_plan_by(lab.executor, ratings, plan, store=lab.store.home)
    folds = results.scores(repr(plan.designs[-1]))
    mean = {
        name: np.mean(
            [_values(fold, name, len(lab.data(dataset_name).ratings.users)) for fold in folds], 0
        )
        for name in (AVERAGE, "popularity", ALL_NEIGHBOURS, IMF)
    }
    rows = []
    for name, values in mean.items():
        gap = mean[AVERAGE] - values
        half = 1.96 * float(gap.std(ddof=1)) / math.sqrt(gap.size)
        lead = float(gap.mean())
        rows.append((name, lead, lead - half, lead + half))
    kinds = {"system": pl.String} | dict.fromkeys(("lead", "low", "high"), pl.Float64)
    return pl.DataFrame(rows[1:], schema=kinds, orient="row").with_columns(
        pl.col("system").replace({ALL_NEIGHBOURS: KNN})
    )


def _values(fold: Scores, name: str, users: int) -> F64:
    """Return precision by user; 0 for those without a list, as in the mean over all."""
    values = np.zeros(users)
    values[fold.lists["user"].to_numpy()] = np.nan_to_num(fold.values(name, METRICS[0]))
    return values


@measurement("null experiment, flat test")
def null_flat(lab: Lab, dataset_name: str) -> pl.DataFrame:
    """Ten test ratings of each item, all items ranked."""
    return _null(
        lab,
        dataset_name,
        {"flat": _plan(lab, dataset_name, "flat", _systems(lab, dataset_name))},
        1,
    )


@measurement("null experiment, popularity bins")
def null_slices(lab: Lab, dataset_name: str) -> pl.DataFrame:
    """Bins of equal numbers of liked judgments, each training and testing on its own.

    One random fifth tests: with folds every system would be trained fifty times.
    """
    return _null(
        lab,
        dataset_name,
        {"slices": _plan(lab, dataset_name, "slices", _systems(lab, dataset_name))},
        BINS,
    )


@measurement("null experiment, forced judgments")
def null_forced(lab: Lab, dataset_name: str) -> pl.DataFrame:
    """Judgments forced on random pairs: thinned as in section 5.2.2, and as they come."""
    algorithms = _systems(lab, dataset_name)
    return _null(
        lab,
        dataset_name,
        {name: _plan(lab, dataset_name, name, algorithms) for name in ("forced", "forced-raw")},
        1,
    )


@measurement("null experiment, bins that train on everything")
def null_bins(lab: Lab, dataset_name: str) -> pl.DataFrame:
    """Lists within bins of items and of judgments, of systems that train on all ratings."""
    plan = _simple(lab, dataset_name)
    ways = {"percentiles": "items", "judgment-bins": "judgments"}
    plans = {
        name: replace(plan, targets=AllItems(strata=BINS, strata_by=by))
        for name, by in ways.items()
    }
    return _null(lab, dataset_name, plans, BINS)


@measurement("null experiment, user-flat targets")
def null_user_flat(lab: Lab, dataset_name: str) -> pl.DataFrame:
    """The user's test items and a number of others, and all others."""
    ratings = lab.data(dataset_name).ratings
    free = len(ratings.items) - int(np.diff(ratings.start).max(initial=0))
    if free < CUTOFF:
        raise UndefinedError(f"some users leave only {free} items unrated: none can be sampled")
    sizes = [size for size in TARGETS if size <= free] or [free]
    plan = _simple(lab, dataset_name)
    plans = {"others 0": replace(plan, targets=TestTargets("fill"))}
    plans |= {f"others {size}": replace(plan, targets=UserFlat(size)) for size in sizes}
    return _null(lab, dataset_name, plans | {"others all": plan}, 1)


@measurement("null experiment, temporal split")
def null_temporal(lab: Lab, dataset_name: str) -> pl.DataFrame:
    """The last fifth of the ratings tests, beside a random fifth."""
    if lab.data(dataset_name).ratings.time is None:
        raise MissingDataError(f"{dataset_name} comes without time stamps")
    plan = _simple(lab, dataset_name)
    return _null(
        lab, dataset_name, {"random": plan, "temporal": replace(plan, split=Temporal())}, 1
    )


def cell(
    table: pl.DataFrame, design: str, system: str, metric: str = METRICS[0]
) -> dict[str, float | None]:
    """Return the row of a design, system and metric.

    Parameters
    ----------
    table
        Of a null experiment.
    design, system, metric
        Which row.
    """
    row: dict[str, float | None] = table.row(
        by_predicate=(pl.col("design") == design)
        & (pl.col("system") == system)
        & (pl.col("metric") == metric),
        named=True,
    )
    return row


def times_chance(table: pl.DataFrame, design: str, system: str, metric: str = METRICS[0]) -> float:
    """Return how many times chance a system scores on null data; NaN where chance scores nothing.

    Parameters
    ----------
    table, design, system, metric
        As in `cell`.
    """
    ratio = cell(table, design, system, metric)["ratio"]
    return math.nan if ratio is None else float(ratio)


def sigma(table: pl.DataFrame, design: str, system: str) -> float:
    """Return the standard error of `times_chance` for precision if the design is fair.

    Places of the lists are then hits with the probability of chance, independently: relevance was
    drawn so.

    Parameters
    ----------
    table, design, system
        As in `cell`.
    """
    row = cell(table, design, system)
    chance, lists = float(row["null_random"] or 0.0), float(row["lists"] or 0.0)
    return math.sqrt((1 - chance) / (chance * CUTOFF * lists)) if chance > 0 else math.nan


def largest_z(table: pl.DataFrame, design: str) -> tuple[float, str]:
    """Return how far the system farthest from chance is from it, in standard errors, and its name.

    Parameters
    ----------
    table, design
        As in `cell`.
    """
    names = table.filter(pl.col("design") == design)["system"].unique(maintain_order=True)
    distances = [(_z(table, design, name), str(name)) for name in names if name != AVERAGE_OF_ONE]
    return max(distances, key=lambda one: abs(one[0]) if not math.isnan(one[0]) else math.inf)


def _z(table: pl.DataFrame, design: str, system: str) -> float:
    error = sigma(table, design, system)
    return (times_chance(table, design, system) - 1) / error if error > 0 else math.nan


@measurement("popularity within bins")
def bin_spread(lab: Lab, dataset_name: str) -> pl.DataFrame:
    """Return the variation of liked training ratings, within each bin and over all items."""
    rule = Relevance(liked=_liked(lab, dataset_name))
    split = Random(folds=lab.amount("folds")).split(_ratings(lab, dataset_name), lab.seed)[0]
    liked = item_counts(split.train.take(rule.is_liked(split.train.value)))
    ways = {
        "judgments": judgment_bins(split.train, rule, BINS),
        "items": percentiles(item_counts(split.train) + item_counts(split.test), BINS),
    }
    rows = [_spread("all items", 0, liked)]
    for name, strata in ways.items():
        rows += [_spread(name, 1 + number, part) for number, part in _bins_of(strata, liked)]
    return pl.DataFrame(rows)


def _bins_of(strata: Strata, counts: I64) -> list[tuple[int, I64]]:
    return [
        (number, counts[strata.stratum == number])
        for number in range(strata.m)
        if (strata.stratum == number).any()
    ]


def _spread(bins: str, number: int, counts: I64) -> dict[str, float | str | int]:
    mean, deviation = float(counts.mean()), float(counts.std())
    return {
        "bins": bins,
        "bin": number,
        "items": counts.size,
        "judgments": int(counts.sum()),
        "mean": mean,
        "deviation": deviation,
        "coefficient": deviation / mean if mean > 0 else 0.0,
    }


@measurement("density of forced judgments")
def forced_density(lab: Lab, dataset_name: str) -> pl.DataFrame:
    """Return for each item the density of its forced judgments, and its distance from p(J) in σ."""
    liked, ratings = _liked(lab, dataset_name), _ratings(lab, dataset_name)
    share = None if lab.is_other_data else SHARE
    drawn = redraw(ratings, "iid", lab.seed, liked=None if share is None else liked, share=share)
    judged = forced_judgments(drawn, DENSITY, lab.seed)
    users = len(ratings.users)
    familiar = judged.tags["familiar"].to_numpy()
    trained = np.bincount(judged.item[familiar], minlength=len(ratings.items)) / users
    density = item_counts(judged) / users
    chance = np.clip((DENSITY - trained) / np.maximum(1 - trained, 1e-12), 0, 1)
    error = np.sqrt(np.maximum((1 - trained) * chance * (1 - chance) / users, 1e-12))
    return pl.DataFrame(
        {
            "item": np.arange(len(ratings.items)),
            "trained": trained,
            "density": density,
            "z": (density - DENSITY) / error,
        }
    )


@measurement("chance to be judged, by popularity")
def factors(lab: Lab, dataset_name: str) -> pl.DataFrame:
    """Return p(test | not in training, i) by tenths of the items: random split and flat test."""
    ratings = lab.data(dataset_name).ratings
    splitters = {"random split": Random(test=0.2), "flat test": Flat(10, min_ratings=20)}
    rows = []
    for name, splitter in splitters.items():
        result = fairness(splitter.split(ratings, lab.seed)[0])
        known = np.flatnonzero(~np.isnan(result.factor) & (result.factor > 0))
        order = known[by_popularity(result.popularity[known])]
        mean = float(result.factor[known].mean()) if known.size else math.nan
        for number, part in enumerate(np.array_split(order, BINS), 1):
            if part.size:
                factor = float(result.factor[part].mean())
                rows.append(
                    {"split": name, "tenth": number, "factor": factor, "over mean": factor / mean}
                )
    return pl.DataFrame(rows)


@measurement("overlap of free and random judgments taken from training")
def overlap_factor(lab: Lab, dataset_name: str) -> pl.DataFrame:
    """Return p(test | liked, not in training, i) where the overlap leaves training.

    Section 5.2.1: q / (1 - p_i (1 - q)), with q the density of random judgments and p_i the share
    of users who rated the item, liked or not.
    """
    data = lab.data(dataset_name)
    if data.random is None or not len(data.random):
        raise MissingDataError(f"{dataset_name} has no ratings of randomly chosen items (--random)")
    users, items = len(data.ratings.users), len(data.ratings.items)
    q = len(data.random) / (users * items)
    rated = item_counts(data.ratings)
    return pl.DataFrame(
        {
            "item": np.arange(items),
            "rated": rated / users,
            "density": np.full(items, q),
            "factor": q / (1 - rated / users * (1 - q)),
        }
    ).sort("rated", descending=True, maintain_order=True)


def thin_judgments(judgments: Ratings, liked: float, seed: int) -> pl.DataFrame:
    """Thin judgments as in section 5.2.2, with shares as counted and with smoothed ones.

    Parameters
    ----------
    judgments
        Of random pairs, with a tag for the familiar ones.
    liked
        The smallest rating that is liked.
    seed
        Which judgments stay.
    """
    rows = []
    for name, smoothing in (("as counted", 0.0), ("smoothed", None)):
        splitter = FamiliarTraining(folds=None, fair=True, liked=liked, smoothing=smoothing)
        try:
            facts = splitter.split(judgments, seed)[0].facts
            rows.append({"shares": name, "T": facts["T"], "kept": facts["kept_share"]})
        except DataError as problem:
            if "T = " not in str(problem):
                raise
            rows.append({"shares": name, "T": 1.0, "kept": 0.0})
    return pl.DataFrame(rows, schema={"shares": pl.String, "T": pl.Float64, "kept": pl.Float64})


@measurement("test judgments left by the sampling of section 5.2.2")
def thinning(lab: Lab, dataset_name: str) -> pl.DataFrame:
    """Return how much of the data's own random judgments the sampling leaves."""
    if "familiar" not in lab.data(dataset_name).ratings.tags:
        raise MissingDataError(f"{dataset_name}: needs a survey that says which items users knew")
    liked = lab.threshold(dataset_name, paper=LIKED if lab.is_other_data else None)
    return thin_judgments(lab.data(dataset_name).ratings, liked, lab.seed)
