"""carraro2020: its experiment on data with a random part, and numbers about its outcome."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import polars as pl

from unskew.auditing.interventions import (
    METRICS,
    Grid,
    InterventionStudy,
    carraro2020_interventions,
    carraro2020_systems,
    intervention_study,
)
from unskew.data.dataset import Dataset
from unskew.data.overview import summary
from unskew.data.ratings import Ratings, under_one_numbering
from unskew.data.readers import read_ratings
from unskew.data.relevance import Relevance
from unskew.engine.rng import key_of as seed_of
from unskew.recommend.model import Algorithm
from unskew.splits.randomness import looks_random
from unskew.splits.split import without_overlap
from unskew.splits.subsample import random_parts
from unskew.stats.correlation import kendall
from unskew.stats.distributions import student_t_quantile
from unskew.studies.carraro2020.printed import INTELLIGENT, NOISE, SETS, SYSTEMS, TRUE, Means
from unskew.studies.lab import Lab, Measurement, NotAtHandError, UndefinedError, measurement

LIKED = 4.0
LEVEL = 0.95
SHARES, RANDOM_SHARES = (0.6, 0.4), (0.15, 0.15, 0.7)
OTHERS = METRICS[1:]
"""Precision, average precision and nDCG."""

Parts = tuple[Ratings, Ratings]
Errors = dict[tuple[str, str], float]
Found = tuple[float, float | None, float | None]


# Data


def parts_of(lab: Lab, on: str) -> Parts:
    """Return chosen and random ratings over the users and items that are in both (section 5.1)."""
    return lab.once("parts", on, lambda: _common(lab.data(on)))


def _common(data: Dataset) -> Parts:
    if data.random is None:
        raise NotAtHandError("needs ratings of randomly chosen items (random=…, --random)")
    columns = ["user", "item"]
    parts = [part.to_polars().select(*columns, "rating") for part in (data.ratings, data.random)]
    for column in columns:
        common = parts[0].select(column).unique().join(parts[1], on=column, how="semi")
        parts = [part.join(common, on=column, how="semi") for part in parts]
        if any(part.is_empty() for part in parts):
            raise UndefinedError(f"{data.name}: both parts have no {column} in common")
    chosen, random = under_one_numbering(*map(read_ratings, parts))
    return chosen, random


def in_both(lab: Lab, on: str) -> int:
    """Return how many pairs are in both parts."""
    chosen, random = parts_of(lab, on)
    return without_overlap(chosen, random, "to-training")[2]


@measurement("ratings of both parts in numbers")
def statistics(lab: Lab, on: str) -> pl.DataFrame:
    """Measure table 1: a row per part."""
    chosen, random = parts_of(lab, on)
    both = summary(Dataset(on, chosen, random)).table()
    return both.select(
        "part",
        "ratings",
        "users",
        "items",
        (pl.col("ratings") / pl.col("users")).alias("per user"),
        (pl.col("ratings") / pl.col("items")).alias("per item"),
        "mean",
        (1 - pl.col("density")).alias("sparsity"),
    )


@measurement("whether users and items are equally frequent")
def posteriors(lab: Lab, on: str) -> pl.DataFrame:
    """Test both parts for what randomly chosen items would give: three chi-squares each."""
    chosen, random = parts_of(lab, on)
    tests = {"random": looks_random(random), "observed": looks_random(chosen)}
    return pl.concat(
        one.table().select(pl.lit(part).alias("part"), "of", "chi2", "df", "p")
        for part, one in tests.items()
    )


# The experiment


@measurement("the experiment, pairs in both parts counting as missed")
def experiment(lab: Lab, on: str) -> pl.DataFrame:
    """Measure every metric of every system on every test set, in every repetition.

    Nothing is taken out of the random ratings, as the paper speaks of nothing of the kind: what
    is in training too cannot be found.
    """
    return _repeated(lab, on, "keep")


@measurement("the experiment, pairs in both parts left out of the truth")
def without_pairs_in_training(lab: Lab, on: str) -> pl.DataFrame:
    """Measure the same where random ratings of pairs in training are left out."""
    if not in_both(lab, on):
        return lab.table(experiment, on)
    return _repeated(lab, on, "to-training")


def _repeated(lab: Lab, on: str, overlap: str) -> pl.DataFrame:
    done = []
    for number in range(lab.amount("repetitions")):
        one = _repetition(number, overlap)
        done.append(lab.table(one, on))
        lab.tables.pop((one.name, on))  # what is exported is the whole
    return pl.concat(done)


def _repetition(number: int, overlap: str) -> Measurement:
    """Make one repetition a measurement: what was stopped goes on after the last one."""

    @measurement(f"repetition {number + 1} of the experiment, overlap={overlap}")
    def repetition(lab: Lab, on: str) -> pl.DataFrame:
        liked = lab.threshold(on, paper=LIKED)
        found = intervention_study(
            *parts_of(lab, on),
            _systems(lab, liked),
            relevance=Relevance(liked=liked, gain="exponential"),
            repetitions=1,
            overlap=overlap,
            seed=seed_of(lab.seed, "carraro2020", number) % (1 << 31),
        )
        told = {
            row["system"]: ", ".join(
                f"{name}={value:g}"
                for name, value in row.items()
                if name not in ("repetition", "system", "validation") and value is not None
            )
            for row in found.chosen.iter_rows(named=True)
        }
        return found.rows.select(
            pl.lit(number).alias("repetition"),
            "set",
            "system",
            pl.col("system").replace_strict(told, default="").alias("settings"),
            "metric",
            pl.col("value").cast(pl.Float64).fill_null(math.nan),
        )

    return replace(repetition, name=f"repetition_{number}_{overlap}")


def _systems(lab: Lab, liked: float) -> dict[str, tuple[Algorithm, Grid]]:
    """Return the paper's systems, with as many settings to choose from as asked for."""
    amounts = {"k": "neighbours", "factors": "factors", "regularisation": "penalties"}

    def some(setting: str, values: Sequence[Any]) -> list[Any]:
        number = min(lab.amount(amounts[setting]), len(values))
        return [values[at] for at in np.linspace(0, len(values) - 1, number).round().astype(int)]

    return {
        name: (one, {setting: some(setting, values) for setting, values in grid.items()})
        for name, (one, grid) in carraro2020_systems(liked).items()
    }


@measurement("what interventions do to users and items", version=2)
def drawn(lab: Lab, on: str) -> pl.DataFrame:
    """Measure the sizes of intervened sets, and how far from equally frequent users and items are.

    A row per repetition and test set: divergence from uniform (nats) and Gini index, in the
    held-out ratings (`before`) and in the set (`after`); and the distance (total variation) of the
    set's items from those of the random ratings that WTD learns from (`items_to_random`).
    """
    chosen, random = parts_of(lab, on)
    rows = []
    for number in range(lab.amount("repetitions")):
        seed = seed_of(lab.seed, "carraro2020/drawn", number) % (1 << 31)
        train, held_out = random_parts(chosen, SHARES, seed)
        learnt = random_parts(random, RANDOM_SHARES, seed)[0]
        for design in carraro2020_interventions():
            made = design.sample(held_out, train, learnt, seed=seed)
            facts = made.facts
            rows.append(
                {
                    "repetition": number,
                    "set": design.kind,
                    "held_out": facts["held_out"],
                    "kept": facts["kept"],
                    "items_to_random": _between_items(made.ratings, learnt),
                }
                | {
                    f"{of}_{measure}_{when}": facts[f"{of}_{measure}_{when}"]
                    for of in ("users", "items")
                    for measure in ("kl", "gini")
                    for when in ("before", "after")
                }
            )
    return pl.DataFrame(rows)


def _between_items(first: Ratings, second: Ratings) -> float:
    """Return the total variation between the shares of items in two sets of ratings."""
    number = len(first.items)
    shares = [np.bincount(one.item, minlength=number) / len(one) for one in (first, second)]
    return float(np.abs(shares[0] - shares[1]).sum() / 2)


# What is said about it


def study_of(rows: pl.DataFrame) -> InterventionStudy:
    """Return what was measured as the result that it was before it was a table."""
    nothing = pl.DataFrame()
    return InterventionStudy(rows.drop("settings"), nothing, nothing, SYSTEMS, SETS, LEVEL)


def by_repetition(rows: pl.DataFrame, metric: str = METRICS[0]) -> list[Means]:
    """Return a mean by test set and system for every repetition."""
    own = rows.filter(metric=metric).partition_by("repetition", maintain_order=True)
    return [
        {(row["set"], row["system"]): row["value"] for row in one.iter_rows(named=True)}
        for one in own
    ]


def over_repetitions(statistic: Callable[..., float], *each: Sequence[Means]) -> Found:
    """Return a statistic of means over repetitions, and its interval by the jackknife.

    Parameters
    ----------
    statistic
        A function of as many tables of means as there are `each`.
    each
        Means by repetition, the repetitions being the same in all.
    """
    number = len(each[0])
    value = statistic(*(mean_of(one) for one in each))
    if number == 1:
        return value, None, None
    try:
        left = np.array(
            [
                statistic(*(mean_of([*one[:k], *one[k + 1 :]]) for one in each))
                for k in range(number)
            ]
        )
    except UndefinedError:  # defined for all repetitions together only
        return value, None, None
    spread = math.sqrt((number - 1) / number * float(np.sum((left - left.mean()) ** 2)))
    half = student_t_quantile((1 + LEVEL) / 2, number - 1) * spread
    return (value, value - half, value + half) if math.isfinite(half) else (value, None, None)


def mean_of(each: Sequence[Means]) -> Means:
    """Return the means over repetitions."""
    return {key: math.fsum(one[key] for one in each) / len(each) for key in each[0]}


def errors(means: Means) -> Errors:
    """Return (mean on the set - true mean) / true mean, in percent, by test set and system."""
    if not all(math.isfinite(one) for one in means.values()):
        raise UndefinedError("a test set has no liked rating: these data are too few")
    for system in SYSTEMS:
        if not means[TRUE, system]:
            raise UndefinedError(
                f"{system} finds no liked random rating: its errors are not defined"
            )
    return {
        (name, system): 100 * (means[name, system] / means[TRUE, system] - 1)
        for system in SYSTEMS
        for name in SETS
    }


def size_of_error(means: Means, name: str) -> float:
    """Return the mean size of a test set's errors over systems, in points."""
    found = errors(means)
    return math.fsum(abs(found[name, system]) for system in SYSTEMS) / len(SYSTEMS)


def lead(means: Means, system: str, name: str, others: Sequence[str]) -> float:
    """Return by how many points a test set is nearer to a system's truth than all others."""
    size = {key: abs(value) for key, value in errors(means).items()}
    return min(size[other, system] for other in others) - size[name, system]


def least_lead(means: Means, name: str, systems: Sequence[str]) -> float:
    """Return the least lead of a test set over all others, among some systems."""
    others = [one for one in SETS if one != name]
    return min(lead(means, system, name, others) for system in systems)


def reg_to_full(means: Means) -> float:
    """Return the largest difference of the errors on REG and FULL."""
    found = errors(means)
    return max(abs(found["reg", system] - found["full", system]) for system in SYSTEMS)


def largest_error(means: Means, system: str) -> float:
    """Return the largest error of a system on any test set, under-estimates being below 0."""
    found = errors(means)
    return max(found[name, system] for name in SETS)


def balance(means: Means) -> float:
    """Return the largest size of WTD_H's errors on the systems other than MF."""
    found = errors(means)
    return max(abs(found["wtd-h", system]) for system in SYSTEMS[:-1])


def spread_of_sizes(means: Means) -> float:
    """Return how far apart the sizes of AvgRating's errors on SKEW, WTD and WTD_H are."""
    found = [abs(errors(means)[name, "AvgRating"]) for name in INTELLIGENT]
    return max(found) - min(found)


def lead_over_baselines(means: Means) -> float:
    """Return the least lead of SKEW, WTD and WTD_H over FULL and REG, for AvgRating."""
    return min(lead(means, "AvgRating", name, SETS[:2]) for name in INTELLIGENT)


def lead_over_skew(means: Means) -> float:
    """Return the least lead of WTD and WTD_H over SKEW, for personalised systems."""
    return min(
        lead(means, system, name, ["skew"]) for system in SYSTEMS[2:] for name in ("wtd", "wtd-h")
    )


def wtd_or_hypothesised(means: Means) -> float:
    """Return the least lead of WTD over WTD_H for PosPop, UB_KNN, IB_KNN; reversed for others."""
    ours = [lead(means, one, "wtd", ["wtd-h"]) for one in ("PosPop", "UB_KNN", "IB_KNN")]
    theirs = [lead(means, one, "wtd-h", ["wtd"]) for one in ("MF", "AvgRating")]
    return min(ours + theirs)


def ranks_of_mf(means: Means) -> dict[str, int]:
    """Return the rank of MF among the systems by truth and on every test set; 1 is the best."""
    return {
        name: sum(means[name, other] >= means[name, "MF"] for other in SYSTEMS)
        for name in (TRUE, *SETS)
    }


def fall_of_mf(means: Means) -> float:
    """Return how many ranks MF is lower by truth than on the test set that ranks it lowest."""
    ranks = ranks_of_mf(means)
    return ranks[TRUE] - max(ranks[name] for name in SETS)


def gain_in_error(means: Means) -> float:
    """Return by how much the worst of SKEW, WTD and WTD_H is better than FULL on average."""
    return size_of_error(means, "full") - max(size_of_error(means, one) for one in INTELLIGENT)


def tau(means: Means, name: str, systems: Sequence[str] = SYSTEMS) -> float:
    """Return Kendall's τ between the order of systems on a test set and the true one."""
    own, true = ([means[one, system] for system in systems] for one in (name, TRUE))
    return kendall(own, true)


def gain_in_tau(means: Means) -> float:
    """Return by how much the least τ of SKEW, WTD and WTD_H exceeds that of FULL."""
    return min(tau(means, name) for name in INTELLIGENT) - tau(means, "full")


def same_signs(recall: Means, *others: Means) -> float:
    """Return how many percent of other metrics' errors have the sign of recall's, noise apart."""
    first = {key: one for key, one in errors(recall).items() if abs(one) >= NOISE}
    same = [errors(other)[key] * one > 0 for other in others for key, one in first.items()]
    return 100 * sum(same) / len(same) if same else math.nan


def between_metrics(recall: Means, other: Means) -> float:
    """Return the mean distance of another metric's errors from recall's, in points."""
    first, second = errors(recall), errors(other)
    return math.fsum(abs(second[key] - one) for key, one in first.items()) / len(first)


def between_rules(first: Means, second: Means) -> float:
    """Return the largest difference between the errors of two experiments."""
    ours, theirs = errors(first), errors(second)
    return max(abs(ours[key] - theirs[key]) for key in ours)


def flattening(lab: Lab, on: str, name: str, of: str = "items") -> Found:
    """Return the divergence from uniform of a test set as a multiple of the held-out ratings'."""
    rows = lab.table(drawn, on).filter(set=name)
    return _multiple(rows.select(f"{of}_kl_after", f"{of}_kl_before").rows())


def nearness_to_random(lab: Lab, on: str, name: str) -> Found:
    """Return a test set's distance from the random ratings' items, as a multiple of REG's.

    REG is as large, so that what a small set adds to a distance is in both.
    """
    rows = lab.table(drawn, on).sort("repetition")
    distances = [rows.filter(set=one)["items_to_random"] for one in (name, "reg")]
    return _multiple(list(zip(*distances, strict=True)))


def _multiple(pairs: Sequence[tuple[float, float]]) -> Found:
    """Return the ratio of two means over repetitions, with its interval."""
    each: list[Means] = [
        {("value", "items"): value, ("base", "items"): base} for value, base in pairs
    ]

    def ratio(means: Means) -> float:
        base = means["base", "items"]
        return means["value", "items"] / base if base else math.nan

    return over_repetitions(ratio, each)
