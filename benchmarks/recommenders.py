"""The 21 systems of valcarce2018 on its own MovieLens 1M split: quality and time.

Needs UNSKEW_DATA with ml-1m/ratings.parquet and published/valcarce2018_ml-1m_results.csv.
Compilation is not timed: every system first learns from a few users.
"""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path

import numpy as np
import polars as pl

import unskew as us


def published(home: Path) -> dict[str, tuple[float, float]]:
    """Read nDCG and P@10 of each system on the whole test set."""
    table = pl.read_csv(home / "published/valcarce2018_ml-1m_results.csv")
    rows = table.filter(pl.col("Percentage") == 1.0).select("Recommender", "ndcg", "P_10").rows()
    return {
        name.removeprefix("run-").removesuffix("-ml-1M"): (ndcg, p10) for name, ndcg, p10 in rows
    }


def tau_b(a: list[float], b: list[float]) -> float:
    """Kendall's τ_b."""
    x, y = np.array(a), np.array(b)
    dx, dy = np.sign(x[:, None] - x), np.sign(y[:, None] - y)
    return float((dx * dy).sum() / np.sqrt((dx**2).sum() * (dy**2).sum()))


def main() -> None:
    home = Path(os.environ["UNSKEW_DATA"])
    ratings = us.read_ratings(home / "ml-1m/ratings.parquet", tags=["valcarce_test"])
    test = ratings.tags["valcarce_test"].to_numpy()
    split = us.Split(ratings.take(~test), ratings.take(test))
    lists = us.TestItems().lists(split, liked=4)
    few = ratings.take(~test & (ratings.user < 300))
    theirs = published(home)
    wanted = sys.argv[1:] or list(theirs)
    total, ours = 0.0, {}
    print("| system | settings | nDCG | published | P@10 | published | train s | rank s |")
    print("|---|---|---:|---:|---:|---:|---:|---:|")
    for name, chosen in us.valcarce2018().items():
        if name not in wanted:
            continue
        warm = us.Split(few, split.test.take(split.test.user < 0))
        us.rank(chosen.fit(few), us.AllItems().lists(warm, liked=4), 100)
        begun = time.perf_counter()
        model = chosen.fit(split.train)
        fitted = time.perf_counter()
        run = us.rank(model, lists, 100)
        done = time.perf_counter()
        total += done - begun
        mean = us.evaluate(split.test, {name: run}, ["nDCG", "P@10"], liked=4).mean()[name]
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
    tau = tau_b([ours[n][0] for n in close], [theirs[n][0] for n in close])
    print(f"\n{total:.0f} s in all; {len(enough)} of {len(ours)} reach 97 % of both values")
    print(f"tau_b over the {len(close)} systems within 15 % of their published nDCG: {tau:.3f}")


if __name__ == "__main__":
    main()
