"""How often `us.auditing.standing` claims a change of place that there is not.

    python benchmarks/standing_rates.py                        # 300 data sets per setting
    python benchmarks/standing_rates.py --data-sets 50 nested  # one setting, quicker

The data are not worlds of the library: plain numpy, users new in every data set, items fixed. Five
systems are trained on five splits of each. What is true of a setting is the order of the means over
all its data sets, by observed and by true judgments. A claim that a change of place exceeds chance
is false where both orders give the system the same place, or move it the other way; a reversal of
two systems is false where either order has them as the other has. Finished data sets are kept in
build/standing-rates. The rule, places from simultaneous intervals of `us.stats.contrasts`, was
fixed before the first run; five splits in place of three after a first look, for power.
"""

from __future__ import annotations

import argparse
import json
import time
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

import unskew as us

SYSTEMS = {
    "random": us.recommend.Random(),
    "popularity": us.recommend.Popularity(),
    "smoothed-average": us.recommend.SmoothedAverage(liked=4),
    "item-knn": us.recommend.ItemKNN(k=20),
    "puresvd": us.recommend.PureSVD(factors=4),
}


@dataclass(frozen=True)
class Setting:
    """How data sets are drawn."""

    users: int = 200
    items: int = 80
    by_popularity: float = 0.0
    """How much likelier popular items are observed; 0: what is observed depends on liking alone, so
    that both kinds of judgments have the same order."""
    quality: float = 0.8
    """How much items differ in how much they are liked."""
    taste: float = 1.2
    """How much liking depends on the group of the user."""
    kind: str = "random"
    """`random`, `nested`, `exhaustive` or `pooled`."""
    density: float = 0.15
    """The share of pairs that true judgments hold."""
    is_tied: bool = False
    """Whether all systems are truly alike, so that any claim is false."""


SETTINGS = {
    "same order": Setting(),
    "same order, 60 users": Setting(users=60),
    "same order, exhaustive": Setting(kind="exhaustive"),
    "all alike in truth": Setting(by_popularity=1.2, quality=0, taste=0, is_tied=True),
    "popularity bias": Setting(by_popularity=1.2),
    "popularity bias, exhaustive": Setting(by_popularity=1.2, kind="exhaustive"),
    "popularity bias, nested": Setting(by_popularity=1.0, kind="nested", density=0.3),
    "popularity bias, pooled": Setting(by_popularity=1.0, kind="pooled"),
}
KEPT = Path(__file__).parents[1] / "build" / "standing-rates"


def draw(setting: Setting, seed: int) -> us.Dataset:
    """Draw a data set: observed ratings, and true judgments."""
    fixed = np.random.default_rng(77)
    quality = setting.quality * fixed.normal(size=setting.items)
    group_of_item = fixed.integers(0, 4, setting.items)
    exposure = (1.0 + fixed.permutation(setting.items)) ** -setting.by_popularity
    rng = np.random.default_rng([seed, 5])
    group = rng.integers(0, 4, setting.users)
    match = group[:, None] == group_of_item
    chance = 1 / (1 + np.exp(0.7 - quality - setting.taste * match))
    shape = (setting.users, setting.items)
    liked = rng.random(shape) < chance
    seen = np.where(liked, 1.0, 0.5) * exposure / exposure.mean() * 0.2
    known = rng.random(shape) < np.minimum(seen * (1 if setting.kind != "nested" else 3), 0.95)
    judged = rng.random(shape) < setting.density
    if setting.kind == "exhaustive":
        judged = np.zeros(shape, bool)
        judged[: setting.users // 2, : setting.items * 3 // 4] = True
    if setting.kind == "nested":
        known &= judged
    if setting.kind == "pooled":
        judged = _pool(liked, known, rng) & ~known
    rating = np.where(liked, 5, 2)
    truth = us.data.TrueJudgments(
        _ratings(judged, rating), setting.kind if setting.kind != "nested" else "random"
    )
    return us.Dataset("drawn", _ratings(known, rating), liked=4, truth=truth)


def _pool(
    liked: NDArray[np.bool_], known: NDArray[np.bool_], rng: np.random.Generator
) -> NDArray[np.bool_]:
    """Mark what four made-up systems list: two know the taste, with noise; two know popularity."""
    count = known.sum(axis=0)
    pool = np.zeros(liked.shape, bool)
    for taste, crowd in ((1, 0), (2, 0), (0, 1), (1, 1)):
        score = taste * liked + crowd * count / count.mean() + rng.normal(size=liked.shape)
        score[known] = -np.inf
        top = np.argsort(-score, axis=1)[:, :15]
        np.put_along_axis(pool, top, True, axis=1)
    return pool


def _ratings(mask: NDArray[np.bool_], rating: NDArray[np.int64]) -> us.Ratings:
    user, item = np.nonzero(mask)
    return us.read_ratings({"user": user, "item": item, "rating": rating[mask]})


def places(means: NDArray[np.float64]) -> NDArray[np.int64]:
    """Return the place of each system."""
    return 1 + (means[None, :] > means[:, None]).sum(axis=1)


def record(setting: Setting, seed: int) -> dict[str, object]:
    """Return what is said of one data set."""
    data = draw(setting, seed)
    result = us.auditing.standing(data, algorithms=SYSTEMS, metric="P@10", bootstrap=0, seed=seed)
    rows = [result.of(name) for name in SYSTEMS]
    return {
        "means": [[row.observed.score, row.true.score] for row in rows],
        "spans": [[(one.best, one.worst) for one in (row.observed, row.true)] for row in rows],
        "changes": {
            row.system: int(np.sign(row.true.best - row.observed.best))
            for row in rows
            if row.exceeds_chance
        },
        "reversals": {name: result.reversals(name) for name in SYSTEMS},
    }


def records(name: str, data_sets: int) -> list[dict[str, object]]:
    """Return the records of a setting; those that are not kept yet are made."""
    path = KEPT / f"{name.replace(' ', '-').replace(',', '')}.jsonl"
    path.parent.mkdir(parents=True, exist_ok=True)
    done = [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []
    for seed in range(len(done), data_sets):
        done.append(json.loads(json.dumps(record(SETTINGS[name], seed))))
        with path.open("a") as file:
            file.write(json.dumps(done[-1]) + "\n")
    return done[:data_sets]


def summary(claims: list[dict[str, object]], *, is_tied: bool) -> dict[str, object]:
    """Compare claims with the order of the means over all data sets."""
    names = list(SYSTEMS)
    means, spans = (np.array([one[key] for one in claims]) for key in ("means", "spans"))
    centre = means.mean(axis=0)
    if is_tied:
        centre[:, 1] = centre[:, 1].mean()
    true = np.stack([places(centre[:, kind]) for kind in (0, 1)], axis=1)
    move = {name: int(np.sign(true[at, 1] - true[at, 0])) for at, name in enumerate(names)}
    if is_tied:
        move = dict.fromkeys(names, 0)
    counts: Counter[str] = Counter()
    for one in claims:
        wrong = [name for name, sign in one["changes"].items() if move[name] != sign]
        mine = [other for other, _, _ in one["reversals"]["popularity"]]
        false = sum(_is_false(row, names, centre) for row in one["reversals"].items())
        counts["with a change"] += bool(one["changes"])
        counts["with a false change"] += bool(wrong)
        counts["popularity changes"] += "popularity" in one["changes"]
        counts["with a reversal of popularity"] += bool(mine)
        counts["with a false reversal"] += bool(false)
    inside = (spans[..., 0] <= true) & (true <= spans[..., 1])
    if is_tied:  # no place is the true one: an interval that leaves one out is wrong
        inside[..., 1] = (spans[..., 1, 0] == 1) & (spans[..., 1, 1] == len(names))
    return {
        "data sets": len(claims),
        "observed places": dict(zip(names, true[:, 0].tolist(), strict=True)),
        "true places": dict(zip(names, true[:, 1].tolist(), strict=True)),
        "means": np.round(centre, 4).tolist(),
        "all places inside": float(inside.all(axis=(1, 2)).mean()),
        **counts,
    }


def _is_false(
    row: tuple[str, list[tuple[str, str, str]]], names: list[str], centre: NDArray[np.float64]
) -> int:
    """Count the reversals of a system that the means over all data sets refute."""
    name, reversals = row
    count = 0
    for other, ahead, _ in reversals:
        gap = centre[names.index(name)] - centre[names.index(other)]
        first, second = gap if ahead == "observed" else gap[::-1]
        count += not first > 0 > second
    return count


def main() -> None:
    """Print what was measured."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("settings", nargs="*", default=list(SETTINGS))
    parser.add_argument("--data-sets", type=int, default=300)
    asked = parser.parse_args()
    for name in asked.settings:
        start = time.perf_counter()
        told = summary(records(name, asked.data_sets), is_tied=SETTINGS[name].is_tied)
        print(name, json.dumps(told), f"{time.perf_counter() - start:.0f} s", flush=True)


if __name__ == "__main__":
    main()
