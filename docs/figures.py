"""Draw the pictures of the documentation into docs/figures: python docs/figures.py."""

import sys
from pathlib import Path

import polars as pl

import unskew as us
from unskew.report.charts import Figure, target_space

DOCS = Path(__file__).resolve().parent
FOLDER = DOCS / "figures"
sys.path.insert(0, str(DOCS.parent / "tests"))
from shared.sample import sample  # noqa: E402


def figures() -> dict[str, Figure]:
    """Return the pictures by name; of built-in samples and a toy example, never of real data."""
    return {"target-space": target_space(), **_splits(), **_tour()}


def _splits() -> dict[str, Figure]:
    """Return what two ways to split do to the built-in sample."""
    world = sample()
    ratings = us.read_ratings(pl.concat([world.train, world.test]))
    ways = {"random": us.splits.Random(test=0.25), "uniform": us.splits.Uniform(test=0.25)}
    splits = {name: us.splits.diagnose(way.split(ratings, seed=7)[0]) for name, way in ways.items()}
    return {f"split-{name}": one.figure("items", scale="log") for name, one in splits.items()}


def _tour() -> dict[str, Figure]:
    """Return the pictures of the tour, of the same shop and with the same seeds."""
    ratings = us.world("shop", users=200, items=100, ratings=2500, seed=7).ratings
    (split,) = us.splits.Random(test=0.2).split(ratings, seed=7)
    lists = us.targets.AllItems().lists(split, liked=4)
    systems = {
        "popularity": us.recommend.Popularity(),
        "user-knn": us.recommend.UserKNN(k=20),
        "ease": us.recommend.EASE(l2=50),
        "random": us.recommend.Random(),
    }
    runs = {name: us.rank(one.fit(split.train), lists, depth=20) for name, one in systems.items()}
    comparison = us.compare(us.evaluate(lists, runs, "nDCG@10"), "nDCG@10", permutations=10_000)
    return {
        "tour-popularity": us.data.summary(ratings).figure(),
        "tour-split": us.splits.diagnose(split).figure("items", scale="log"),
        "tour-differences": comparison.figure("differences"),
    }


if __name__ == "__main__":
    for name, figure in figures().items():
        figure.save(FOLDER / f"{name}.svg")
