"""What unskew costs by itself: make bench. Bars in seconds hold on an idle machine only.

Ratios against a plain numpy twin are measured in the same process; peers are in peers.py.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np

import ours
import sizes
import timing
import unskew as us


def numpy_twin(size: sizes.Size) -> float:
    """P@10 of all systems as a careful numpy user would write it: one searchsorted per system."""
    items = int(size.lists.max()) + 1
    liked = np.sort((size.user * items + size.item)[size.rating >= 4])
    rows = np.arange(size.lists.shape[1])[:, None] * items
    total = 0.0
    for lists in size.lists:
        keys = rows + lists[:, :10]
        at = np.minimum(np.searchsorted(liked, keys), liked.size - 1)
        total += float((liked[at] == keys).mean())
    return total


def evaluate_p10(size: sizes.Size):
    """The same from unskew, from arrays."""
    judgments = us.read_ratings({"user": size.user, "item": size.item, "rating": size.rating})
    users = np.arange(size.lists.shape[1])
    runs = {f"s{n}": us.Run.from_arrays(users, lists) for n, lists in enumerate(size.lists)}
    return lambda: us.evaluate(judgments, runs, "P@10", liked=4)


def top_k_numpy(scores: np.ndarray, k: int) -> np.ndarray:
    """Rank as a careful numpy user would: argpartition, then sort the best."""
    out = np.empty((len(scores), k), np.int64)
    for low in range(0, len(scores), 256):
        tile = scores[low : low + 256]
        best = np.argpartition(-tile, k, axis=1)[:, :k]
        order = np.argsort(-np.take_along_axis(tile, best, 1), axis=1, kind="stable")
        out[low : low + 256] = np.take_along_axis(best, order, 1)
    return out


def top_k_ratio(scores: np.ndarray, k: int = 100) -> float:
    """Return numpy's time over ours, one thread each, alternating."""
    users, items = scores.shape
    nothing = us.read_ratings({"user": np.arange(users), "item": np.arange(users) % items})
    split = us.Split(nothing.take(nothing.user < 0), nothing)
    lists = us.targets.AllItems().lists(split, liked=1)
    ours, theirs = [], []
    us.rank(scores, lists, k, threads=1)
    for _ in range(5):
        ours.append(timing.seconds(lambda: us.rank(scores, lists, k, threads=1), 1)["best"])
        theirs.append(timing.seconds(lambda: top_k_numpy(scores, k), 1)["best"])
    return min(theirs) / min(ours)


def command(arguments: list[str], repeat: int, cold: bool = False) -> float:
    """Time a command in a process of its own; cold = with an empty kernel cache."""

    def run() -> None:
        with tempfile.TemporaryDirectory() as cache:
            env = {**os.environ, **({"NUMBA_CACHE_DIR": cache} if cold else {})}
            subprocess.run([sys.executable, *arguments], check=True, capture_output=True, env=env)

    return timing.seconds(run, repeat)["median"]


def main() -> None:
    """Measure and print one table; exit 1 when a bar is missed."""
    rows = []
    rng = np.random.default_rng(1)
    shape = (6040, 3706)
    for kind, scores in (("untied", rng.normal(size=shape)),
                         ("tied", rng.integers(0, 200, shape).astype(np.float64))):  # fmt: skip
        gain = top_k_ratio(scores)
        rows.append((f"top-100 of 6,040 x 3,706, {kind}, against argpartition and sort",
                     f"{gain:.1f}x", "3x", gain >= 3))  # fmt: skip
    with tempfile.TemporaryDirectory() as folder:
        home = Path(folder)
        a = home / "a.npz"
        size = sizes.size_a()
        sizes.save(size, a)
        fast = timing.seconds(evaluate_p10(size))["best"]
        twin = timing.seconds(lambda: numpy_twin(size))["best"]
        rows.append(
            ("P@10 of 21 systems against plain numpy", f"{twin / fast:.1f}x", "1x", twin > fast)
        )
        full = ours.arrays(a, means=False)["median"]
        rows.append(
            ("21 systems x 77 columns, arrays to per-user values", f"{full:.3f} s", "", True)
        )
        small = sizes.make(1000, 1, 100, 2000, 30)
        test, run = home / "test.csv", home / "run.csv"
        judgments, runs = ours.make_frames(small, "integer", False, "polars")
        judgments.write_csv(test)
        runs["s0"].write_csv(run)
        names = "P@10,Recall@10,AP@10,nDCG@10,RR@10,bpref,infAP"
        arguments = ["-m", "unskew", "evaluate", "-j", str(test), "-r", str(run), "-m", names,
                     "--liked", "4", "-q"]  # fmt: skip
        command(arguments, 1)
        warm, cold = command(arguments, 5), command(arguments, 1, cold=True)
        light = command(["-c", "import unskew"], 5) - command(["-c", "pass"], 5)
        rows.append(
            ("unskew evaluate, 7 metrics, 1,000 users, warm", f"{warm:.2f} s", "1.5 s", warm < 1.5)
        )
        rows.append(("the same with an empty kernel cache", f"{cold:.1f} s", "12 s", cold < 12))
        rows.append(("import unskew", f"{light:.3f} s", "0.4 s", light < 0.4))
    print("| what | measured | bar |\n|---|---:|---:|")
    for what, measured, bar, _ in rows:
        print(f"| {what} | {measured} | {bar} |")
    if not all(good for *_, good in rows):
        sys.exit("a bar was missed (is the machine idle?)")


if __name__ == "__main__":
    main()
