"""How often the intervals that `us.estimate` calls usable hold what they estimate.

    python benchmarks/estimate_coverage.py                      # 1,000 data sets per setting
    python benchmarks/estimate_coverage.py --data-sets 100 wide # one setting, quicker

The data are plain numpy: users new in every data set, items fixed, judgments drawn by chances that
are stated to `estimate`. Every user gets five of 60 items, good ones more often. Numbers of users
are such that about so many effective hits are expected as the table says.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

import unskew as us
from unskew.stats.intervals.shares import wilson

ITEMS, K = 60, 5
EFFECTIVE = (10, 30, 60, 100, 200)
FEWEST = 20
"""Of usable estimates; of fewer no share is given."""
KINDS = ("ips", "snips")
Array = NDArray[np.float64]


@dataclass(frozen=True)
class Setting:
    """How likely items are judged and liked."""

    chance: Array
    liked: Array
    activity: float = 0.0
    """Standard deviation of the logarithm of users' own chances."""


def settings() -> dict[str, Setting]:
    """Return the settings by name; items are the same in all data sets."""
    rng = np.random.default_rng(2000)
    liked = np.clip(rng.beta(2, 2, ITEMS), 0.05, 0.95)
    wide = np.clip(np.exp(rng.normal(np.log(0.1), 0.9, ITEMS)), 0.01, 0.9)
    popular = rng.permutation(np.clip(0.7 * (1.0 + np.arange(ITEMS)) ** -0.7, 0.02, 0.9))
    rare = np.where(rng.random(ITEMS) < 0.15, 0.03, 0.2)
    return {
        "equal": Setting(np.full(ITEMS, 0.15), liked),
        "two chances": Setting(np.where(np.arange(ITEMS) % 10 == 0, 0.5, 0.08), liked),
        "wide": Setting(wide, liked),
        "popularity": Setting(popular, liked),
        "rare good items": Setting(rare, np.where(rare < 0.1, 0.8, 0.4)),
        "active users": Setting(np.full(ITEMS, 0.12), liked, activity=0.6),
        "few likes": Setting(popular, 0.4 * liked),
    }


def lists_of(setting: Setting, users: int, rng: np.random.Generator) -> NDArray[np.int64]:
    """Return the items of each user's list: good items more often."""
    score = setting.liked / setting.liked.std() + rng.gumbel(size=(users, ITEMS))
    return np.argsort(-score, axis=1)[:, :K]


def truth(setting: Setting) -> tuple[float, float]:
    """Return the share of liked slots, and the effective hits of one user."""
    shown = lists_of(setting, 100_000, np.random.default_rng(1))
    liked, chance = setting.liked[shown], setting.chance[shown]
    uneven = np.exp(setting.activity**2)
    share = float(liked.mean())
    return share, K * share**2 / float((liked / chance).mean()) / float(uneven)


def data_sets(
    setting: Setting, users: int, count: int, seed: int
) -> Iterator[tuple[dict[str, tuple[float, float, float]], float, str]]:
    """Give the estimates of each data set and their intervals, the effective hits, the note."""
    for number in range(count):
        rng = np.random.default_rng([seed, users, number])
        shown = lists_of(setting, users, rng)
        spread = setting.activity
        own = np.exp(rng.normal(-(spread**2) / 2, spread, (users, 1)))
        chance = np.clip(setting.chance * own, 0.002, 0.95)
        user, item = np.nonzero(rng.random((users, ITEMS)) < chance)
        rating = np.where(rng.random(user.size) < setting.liked[item], 5, 1)
        result = us.estimate(
            {"user": user, "item": item, "rating": rating},
            {"a": us.Run.from_arrays(np.arange(users), shown)},
            f"P@{K}",
            propensity={"user": user, "item": item, "propensity": chance[user, item]},
            liked=4,
            users="all",
            items=range(ITEMS),
            resamples=100,
            threads=1,
        )
        rows = {kind: result.row(quantity=kind) for kind in KINDS}
        numbers = {kind: (row.value, row.low, row.high) for kind, row in rows.items()}
        yield numbers, rows["ips"].facts["effective"], rows["ips"].note


def report(name: str, effective: int, count: int, seed: int) -> str:
    """Return a row: how many are usable, and how often their intervals hold."""
    setting = settings()[name]
    share, by_user = truth(setting)
    users = int(np.ceil(effective / by_user))
    held: dict[str, list[bool]] = {kind: [] for kind in KINDS}
    rested = []
    for numbers, hits, note in data_sets(setting, users, count, seed):
        rested.append(hits)
        if not note:
            for kind, (_, low, high) in numbers.items():
                held[kind].append(low <= share <= high)
    usable = len(held["ips"])
    cells = []
    for kind in KINDS:
        if usable < FEWEST:
            cells.append("–")
            continue
        low, high = map(float, wilson(sum(held[kind]), usable))
        cells.append(f"{sum(held[kind]) / usable:.1%} [{low:.1%}, {high:.1%}]")
    return (
        f"| {name} | {np.median(rested):.0f} | {users} | {usable} of {count} | "
        + " | ".join(cells)
        + " |"
    )


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser()
    parser.add_argument("settings", nargs="*", default=list(settings()))
    parser.add_argument("--data-sets", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args()
    print("| setting | effective hits | users | usable | IPS holds | SNIPS holds |")
    print("|---|---|---|---|---|---|")
    for name in given.settings:
        for effective in EFFECTIVE:
            start = time.perf_counter()
            print(report(name, effective, given.data_sets, given.seed), flush=True)
            seconds = (time.perf_counter() - start) / given.data_sets
            print(f"    {1000 * seconds:.0f} ms per data set", file=sys.stderr, flush=True)


if __name__ == "__main__":
    main()
