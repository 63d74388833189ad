"""Draw the pictures of the documentation into docs/figures: python docs/figures.py."""

from pathlib import Path

import polars as pl

import unskew as us
from unskew.data.sample import sample
from unskew.report.charts import Figure, target_space


def figures() -> dict[str, Figure]:
    """Return the pictures by name; of the built-in sample and a toy example, never of real data."""
    world = sample()
    ratings = us.read_ratings(pl.concat([world.train, world.test]))
    ways = {"random": us.splits.Random(test=0.25), "uniform": us.splits.Uniform(test=0.25)}
    splits = {
        name: us.splits.diagnose_split(way.split(ratings, seed=7)[0]) for name, way in ways.items()
    }
    counts = {f"split-{name}": audit.figure(scale="log") for name, audit in splits.items()}
    return {"target-space": target_space(), **counts}


if __name__ == "__main__":
    for name, figure in figures().items():
        figure.save(Path(__file__).parent / "figures" / f"{name}.svg")
