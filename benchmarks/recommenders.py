"""The systems of the papers on MovieLens 1M: quality and time.

    python benchmarks/recommenders.py            the 21 of valcarce2018 on its own split
    python benchmarks/recommenders.py SLIM Pop   some of them
    python benchmarks/recommenders.py --all      every method of all five papers on one split

Needs UNSKEW_DATA with ml-1m/ratings.parquet and published/valcarce2018_ml-1m_results.csv.
Compilation is not timed: every system first learns from a few users.
"""

from __future__ import annotations

import os
import resource
import sys
import time
from pathlib import Path

import polars as pl

import unskew as us
import unskew_studies
from unskew.recommend.model import Algorithm

RULE = us.Relevance(liked=4, gain="rating")
"""That of trec_eval, whose numbers were published: what is disliked has a gain too."""


def published(home: Path) -> dict[str, tuple[float, float]]:
    """Read nDCG and P@10 of each system on the whole test set."""
    table = pl.read_csv(home / "published/valcarce2018_ml-1m_results.csv")
    rows = table.filter(pl.col("Percentage") == 1.0).select("Recommender", "ndcg", "P_10").rows()
    return {
        name.removeprefix("run-").removesuffix("-ml-1M"): (ndcg, p10) for name, ndcg, p10 in rows
    }


def methods() -> dict[str, tuple[Algorithm, bool]]:
    """Return every method of the papers once, and whether it learns from levels (mena2021)."""
    every: dict[str, tuple[Algorithm, bool]] = {}
    for paper in ("valcarce2018", "mena2021", "castells2018", "carraro2020", "bellogin2017"):
        for chosen in unskew_studies.preset(paper).values():
            every.setdefault(chosen.algorithm.name, (chosen.algorithm, paper == "mena2021"))
    for algorithm in (
        us.recommend.OptimalPrecision(),
        us.recommend.OptimalAntiPrecision(),
        us.recommend.GaussianPLSA(),
        us.recommend.EASE(),
    ):
        every.setdefault(algorithm.name, (algorithm, False))
    return every


def train_all(split: us.Split, few: us.Ratings) -> None:
    """Train and rank every method on one split; print strength, time and memory."""
    lists = us.targets.AllItems().lists(split, RULE)
    levels = us.data.levels(split.train, liked=4)
    total = 0.0
    print("| method | settings | P@10 | nDCG@10 | train s | rank s |")
    print("|---|---|---:|---:|---:|---:|")
    for name, (one, on_levels) in methods().items():
        train = levels if on_levels else split.train
        one.fit(us.data.levels(few, liked=4) if on_levels else few)
        begun = time.perf_counter()
        model = one.fit(train)
        fitted = time.perf_counter()
        mean = us.evaluate(lists, {name: us.rank(model, lists, 100)}, ["P@10", "nDCG@10"]).means()
        done = time.perf_counter()
        total += fitted - begun
        print(
            f"| {name} | `{one!r}`{', levels' * on_levels} | {mean[name]['P@10']:.4f} | "
            f"{mean[name]['nDCG@10']:.4f} | {fitted - begun:.1f} | {done - fitted:.1f} |",
            flush=True,
        )
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    print(f"\n{len(methods())} methods trained in {total:.0f} s; {peak:.1f} GiB at the peak")


def main() -> None:
    home = Path(os.environ["UNSKEW_DATA"])
    ratings = us.read_ratings(home / "ml-1m/ratings.parquet", tags=["valcarce_test"])
    test = ratings.tags["valcarce_test"].to_numpy()
    split = us.Split(ratings.take(~test), ratings.take(test))
    lists = us.targets.TestItems().lists(split, liked=4)
    few = ratings.take(~test & (ratings.user < 300))
    if sys.argv[1:] == ["--all"]:
        train_all(us.splits.Random(test=0.2).split(ratings, seed=1)[0], few)
        return
    theirs = published(home)
    wanted = sys.argv[1:] or list(theirs)
    total, ours = 0.0, {}
    print("| system | settings | nDCG | published | P@10 | published | train s | rank s |")
    print("|---|---|---:|---:|---:|---:|---:|---:|")
    for name, chosen in unskew_studies.preset("valcarce2018").items():
        if name not in wanted:
            continue
        warm = us.Split(few, split.test.take(split.test.user < 0))
        us.rank(chosen.fit(few), us.targets.AllItems().lists(warm, liked=4), 100)
        begun = time.perf_counter()
        model = chosen.fit(split.train)
        fitted = time.perf_counter()
        run = us.rank(model, lists, 100)
        done = time.perf_counter()
        total += done - begun
        scores = us.evaluate(split.test, {name: run}, ["nDCG", "P@10"], relevance=RULE)
        mean = scores.means()[name]
        ours[name] = mean["nDCG"], mean["P@10"]
        print(
            f"| {name} | `{chosen.algorithm!r}` {chosen.settings} | {mean['nDCG']:.4f} | "
            f"{theirs[name][0]:.4f} | {mean['P@10']:.4f} | {theirs[name][1]:.4f} | "
            f"{fitted - begun:.1f} | {done - fitted:.1f} |",
            flush=True,
        )
    enough = [
        n for n in ours if all(o >= 0.97 * t for o, t in zip(ours[n], theirs[n], strict=True))
    ]
    close = [n for n in ours if abs(ours[n][0] / theirs[n][0] - 1) <= 0.15]
    tau = us.stats.kendall([ours[n][0] for n in close], [theirs[n][0] for n in close])
    print(f"\n{total:.0f} s in all; {len(enough)} of {len(ours)} reach 97 % of both values")
    print(f"tau_b over the {len(close)} systems within 15 % of their published nDCG: {tau:.3f}")


if __name__ == "__main__":
    main()
