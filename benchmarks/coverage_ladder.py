"""How often intervals of the steps of the ladder hold their target.

    python benchmarks/coverage_ladder.py [--draws 1000] [--seed 1]

Data sets come from the generator of `coverage_liked.py`, which is none of unskew's worlds, with new
users in each; recommenders are fixed functions and never trained. The target of a step is its mean
over all data sets: these lists on new users. Intervals of 95 % should hold it in 93 to 97 % of the
data sets.
"""

from __future__ import annotations

import argparse
from collections import defaultdict

import numpy as np
import polars as pl

from coverage_liked import PAIRS, RULE, Generator, K, Size
from unskew.bias.decomposition.ladder import ladder_of
from unskew.bias.decomposition.ladder_part import ladder_part
from unskew.report.columns import Row
from unskew.report.estimates import Estimates

SIZES = {
    "small": Size(120, 100, 0.15, 0.06),
    "medium": Size(250, 150, 0.1, 0.03),
    "splits": Size(150, 120, 0.15, 0.04, 3),
}
STEPS = ("match", "opinion", "lead")


def ladder_of_draw(world: Generator, rng: np.random.Generator) -> Estimates:
    """Draw a data set, split it, and return the ladder of all its recommenders."""
    data, parts = world.draw(rng), []
    for _ in range(world.size.splits):
        test = data.rated & (rng.random(data.rated.shape) < 0.2)
        train = data.rated & ~test
        runs = {name: data.run(data.lists(scores, train)) for name, scores in data.scores.items()}
        parts.append(ladder_part(data.ratings(train), data.ratings(test), runs, RULE, K))
    return ladder_of(parts)


def measure(size: Size, draws: int, seed: int) -> dict[tuple[str, str], list[Row]]:
    """Draw data sets and collect the steps of systems and of pairs."""
    world, rng = Generator(size, seed), np.random.default_rng([seed, 98])
    steps: dict[tuple[str, str], list[Row]] = defaultdict(list)
    for _ in range(draws):
        ladder = ladder_of_draw(world, rng)
        for name in STEPS:
            for pair in PAIRS:
                steps[name, " - ".join(pair)].append(ladder.pair(*pair, step=name))
            for system in ("taste", "popularity"):
                steps[name, system].append(ladder.row(step=name, system=system))
    return steps


def row(size: str, name: str, of: str, steps: list[Row]) -> dict[str, object]:
    """Return the coverage of one step."""
    values = np.array([one.value for one in steps])
    low, high = np.array([one.low for one in steps]), np.array([one.high for one in steps])
    target = values.mean()
    covered = float(((low <= target) & (target <= high)).mean())
    return {
        "size": size,
        "step": name,
        "of": of,
        "target": round(float(target), 4),
        "sd": round(float(values.std()), 4),
        "half width": round(float((high - low).mean() / 2), 4),
        "data sets": values.size,
        "coverage": round(covered, 3),
    }


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--draws", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=1)
    chosen = parser.parse_args()
    rows = [
        row(size, name, of, steps)
        for size, one in SIZES.items()
        for (name, of), steps in measure(one, chosen.draws, chosen.seed).items()
    ]
    with pl.Config(tbl_rows=-1):
        print(pl.DataFrame(rows))


if __name__ == "__main__":
    main()
