"""carraro2020: its experiment on data with a random part, and what interventions do."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import polars as pl

from unskew.auditing.truth.intervention_study import (
    METRICS,
    Grid,
    carraro2020_interventions,
    carraro2020_systems,
    intervention_study,
)
from unskew.data.dataset import Dataset
from unskew.data.ratings import Ratings, under_one_numbering
from unskew.data.read.ratings_files import read_ratings
from unskew.data.relevance import Relevance
from unskew.data.summary import summary
from unskew.engine.rng import key_of as seed_of
from unskew.recommend.model import Algorithm
from unskew.splits.looks_random import looks_random
from unskew.splits.split import without_overlap
from unskew.splits.subsample import random_parts
from unskew_studies.lab import Lab, Measurement, MissingDataError, UndefinedError, measurement

LIKED = 4.0
LEVEL = 0.95
SHARES, RANDOM_SHARES = (0.6, 0.4), (0.15, 0.15, 0.7)
OTHERS = METRICS[1:]
"""Precision, average precision and nDCG."""

Parts = tuple[Ratings, Ratings]


# Data


def parts_of(lab: Lab, dataset_name: str) -> Parts:
    """Return chosen and random ratings over the users and items that are in both (section 5.1)."""
    return lab.cached("parts", dataset_name, lambda: _common(lab.data(dataset_name)))


def _common(data: Dataset) -> Parts:
    if data.random is None:
        raise MissingDataError("needs ratings of randomly chosen items (random=…, --random)")
    columns = ["user", "item"]
    parts = [part.to_polars().select(*columns, "rating") for part in (data.ratings, data.random)]
    for column in columns:
        common = parts[0].select(column).unique().join(parts[1], on=column, how="semi")
        parts = [part.join(common, on=column, how="semi") for part in parts]
        if any(part.is_empty() for part in parts):
            raise UndefinedError(f"{data.name}: both parts have no {column} in common")
    chosen, random = under_one_numbering(*map(read_ratings, parts))
    return chosen, random


def in_both(lab: Lab, dataset_name: str) -> int:
    """Return how many pairs are in both parts."""
    chosen, random = parts_of(lab, dataset_name)
    return without_overlap(chosen, random, "to-training")[2]


@measurement("ratings of both parts in numbers")
def statistics(lab: Lab, dataset_name: str) -> pl.DataFrame:
    """Measure table 1: a row per part."""
    chosen, random = parts_of(lab, dataset_name)
    both = summary(Dataset(dataset_name, chosen, random)).table()
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
def posteriors(lab: Lab, dataset_name: str) -> pl.DataFrame:
    """Test both parts for what randomly chosen items would give: three chi-squares each."""
    chosen, random = parts_of(lab, dataset_name)
    tests = {"random": looks_random(random), "observed": looks_random(chosen)}
    return pl.concat(
        one.table().select(
            pl.lit(part).alias("part"),
            pl.col("test").alias("of"),
            pl.col("value").alias("chi2"),
            "df",
            "p",
        )
        for part, one in tests.items()
    )


# The experiment


@measurement("the experiment, pairs in both parts counting as missed")
def experiment(lab: Lab, dataset_name: str) -> pl.DataFrame:
    """Measure every metric of every system on every test set, in every repetition.

    Nothing is taken out of the random ratings, as the paper speaks of nothing of the kind: what
    is in training too cannot be found.
    """
    return _repeated(lab, dataset_name, "keep")


@measurement("the experiment, pairs in both parts left out of the truth")
def without_pairs_in_training(lab: Lab, dataset_name: str) -> pl.DataFrame:
    """Measure the same where random ratings of pairs in training are left out."""
    if not in_both(lab, dataset_name):
        return lab.table(experiment, dataset_name)
    return _repeated(lab, dataset_name, "to-training")


def _repeated(lab: Lab, dataset_name: str, overlap: str) -> pl.DataFrame:
    done = []
    for number in range(lab.amount("repetitions")):
        one = _repetition(number, overlap)
        done.append(lab.table(one, dataset_name))
        lab.tables.pop((one.name, dataset_name))  # what is exported is the whole
    return pl.concat(done)


def _repetition(number: int, overlap: str) -> Measurement:
    """Return one repetition as a measurement: a stopped study goes on after the last one."""

    @measurement(f"repetition {number + 1} of the experiment, overlap={overlap}")
    def repetition(lab: Lab, dataset_name: str) -> pl.DataFrame:
        liked = lab.threshold(dataset_name, paper=LIKED)
        result = intervention_study(
            *parts_of(lab, dataset_name),
            _systems(lab, liked),
            relevance=Relevance(liked=liked, gain="exponential"),
            repetitions=1,
            overlap=overlap,
            seed=seed_of(lab.seed, "carraro2020", number) % (1 << 31),
        )
        settings = {
            row["system"]: ", ".join(
                f"{name}={value:g}"
                for name, value in row.items()
                if name not in ("repetition", "system", "validation") and value is not None
            )
            for row in result.card["chosen"]
        }
        return result.parts["repetitions"].rows.select(
            pl.lit(number).alias("repetition"),
            pl.col("design").alias("set"),
            "system",
            pl.col("system").replace_strict(settings, default="").alias("settings"),
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
def sampled_sets(lab: Lab, dataset_name: str) -> pl.DataFrame:
    """Measure the sizes of intervened sets, and how far from equally frequent users and items are.

    A row per repetition and test set: divergence from uniform (nats) and Gini index, in the
    held-out ratings (`before`) and in the set (`after`); and the distance (total variation) of the
    set's items from those of the random ratings that WTD learns from (`items_to_random`).
    """
    chosen, random = parts_of(lab, dataset_name)
    rows = []
    for number in range(lab.amount("repetitions")):
        seed = seed_of(lab.seed, "carraro2020/drawn", number) % (1 << 31)
        train, held_out = random_parts(chosen, SHARES, seed)
        learnt = random_parts(random, RANDOM_SHARES, seed)[0]
        for design in carraro2020_interventions():
            sample = design.sample(held_out, train, learnt, seed=seed)
            facts = sample.facts
            rows.append(
                {
                    "repetition": number,
                    "set": design.kind,
                    "held_out": facts["held_out"],
                    "kept": facts["kept"],
                    "items_to_random": _between_items(sample.ratings, learnt),
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
