"""How often the intervals of `us.stats.contrasts` hold their target, on data sets drawn anew.

    python benchmarks/coverage_of_intervals.py                         # 1,000 data sets per setting
    python benchmarks/coverage_of_intervals.py --data-sets 100 sparse  # one setting, quicker
    python benchmarks/coverage_of_intervals.py --noise                 # unsteady trainings

The data are not worlds of the library: plain numpy, users new in every data set, items fixed. Six
systems are trained on every split, and two designs judge them (all items; all but the most popular
tenth): 30 differences per data set. The rule of `contrast_errors` was fixed on the settings in
DEVELOPMENT; those in CHECKED were run after that. The tail of simultaneous intervals was fixed on
DEVELOPMENT too, after "factors" and "tiny" had been seen without it.

With `--noise` nothing is trained: values are a user's part that all splits share, test noise of
each split, and training noise that all users of a split share, alike for all systems or not. There
the width is counted too: by how much it differs by chance between ten data sets.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from unskew.engine.threads import one_blas_thread
from unskew.stats.compare.pair_errors import pair_errors
from unskew.stats.influence import SplitInfluence
from unskew.stats.intervals.shares import wilson
from unskew.stats.pairing import all_pairs
from unskew.stats.simultaneous import Tail, critical_value, largest_t, user_blocks

CUTOFF = 10
TEST = 0.2
LEVEL = 0.95
DRAWS = 1_000
"""Of the largest |t|; new ones for every data set."""
SYSTEMS = ("popularity", "ease", "svd", "item-knn", "random", "ease with a noisy training")
PAIRS = all_pairs(len(SYSTEMS))
POPULATION = 20_000
"""Users of the population for the target `lists`."""


@dataclass(frozen=True)
class Setting:
    """How data sets are drawn."""

    users: int = 300
    items: int = 150
    ratings: float = 15
    """Per user, in the mean."""
    clusters: int = 6
    """Of users and items; 0: latent factors instead."""
    boost: float = 6.0
    """How much likelier an item of the user's cluster is rated."""
    skew: float = 0.7
    """Exponent of the items' popularity."""
    activity: float = 0.5
    """Standard deviation of the logarithm of users' numbers of ratings."""
    splits: int = 5


DEVELOPMENT = {
    "dense": Setting(ratings=30),
    "sparse": Setting(ratings=8),
    "weak": Setting(boost=1.5),
    "skewed": Setting(clusters=4, boost=8, skew=1.2),
    "few users": Setting(users=120),
    "no taste": Setting(boost=1),
}
CHECKED = {
    "factors": Setting(users=400, clusters=0, skew=0.8),
    "many clusters": Setting(users=600, items=120, ratings=12, clusters=10, boost=10, skew=0.5),
    "tiny": Setting(users=80, items=100, ratings=12, clusters=4, boost=5, skew=1.0),
    "uneven users": Setting(skew=0.9, activity=1.2),
    "ten splits": Setting(ratings=20, clusters=5, boost=12, splits=10),
}
SETTINGS = {**DEVELOPMENT, **CHECKED}
NOISE = {
    "none": (0.0,) * 6,
    "small": (0.5,) * 6,
    "moderate": (2.0,) * 6,
    "large": (20.0,) * 6,
    "one, little": (3.0, 0, 0, 0, 0, 0),
    "one": (10.0, 0, 0, 0, 0, 0),
    "one, huge": (100.0, 0, 0, 0, 0, 0),
    "two": (8.0, 8.0, 0, 0, 0, 0),
    "graded": (0.0, 0.3, 1.0, 2.0, 4.0, 8.0),
}
"""Variance of the training noise of each of six systems, in parts of the test noise of its mean."""
ONE_DESIGN = "one design"
"""The setting in which all systems are unsteady under one of several designs (20 parts)."""
NOISY_USERS = 200


class Items:
    """The items of a setting: the same in all data sets."""

    def __init__(self, setting: Setting) -> None:
        rng = np.random.default_rng(1000)
        self.setting = setting
        self.popularity = (1.0 + np.arange(setting.items)) ** -setting.skew
        rng.shuffle(self.popularity)
        self.cluster = rng.integers(0, max(setting.clusters, 1), setting.items)
        self.factors = rng.normal(size=(8, setting.items))
        self.head = np.argsort(-self.popularity)[: setting.items // 10]

    def rated(self, rng: np.random.Generator, users: int) -> NDArray[np.bool_]:
        """Draw who rates what: users x items."""
        setting = self.setting
        if setting.clusters:
            mine = rng.integers(0, setting.clusters, users)[:, None] == self.cluster
            weight = np.where(mine, setting.boost, 1.0) * self.popularity
        else:
            weight = np.exp(0.45 * rng.normal(size=(users, 8)) @ self.factors) * self.popularity
        spread = setting.activity
        count = setting.ratings * np.exp(spread * rng.normal(size=users) - spread**2 / 2)
        rate = weight / weight.sum(axis=1, keepdims=True) * count[:, None]
        return rng.random(weight.shape) < -np.expm1(-rate)


def train(rated: NDArray[np.bool_], rng: np.random.Generator) -> list:
    """Train every system; return functions from training rows to scores."""
    x = rated.astype(np.float32)
    items = x.shape[1]
    gram, count = x.T @ x, x.sum(axis=0)
    popular = count + 1e-3 * rng.random(items, dtype=np.float32)
    inverse = np.linalg.inv(gram + 20 * np.eye(items, dtype=np.float32))
    ease = -inverse / np.diag(inverse)
    np.fill_diagonal(ease, 0)
    basis = np.linalg.qr(np.random.default_rng(5).normal(size=(items, 14)).astype(np.float32))[0]
    for _ in range(4):
        basis = np.linalg.qr(gram @ basis)[0]
    axes = basis @ np.linalg.eigh(basis.T @ (gram @ basis))[1][:, -8:]
    root = np.sqrt(count) + 1e-6
    near = gram / root[:, None] / (root + 3)
    np.fill_diagonal(near, 0)
    least = np.partition(near, items - 20, axis=1)[:, items - 20]
    near = np.where(near >= least[:, None], near, 0).T
    noise = 0.15 * rng.normal(size=items).astype(np.float32)
    return [
        lambda rows: np.broadcast_to(popular, rows.shape),
        lambda rows: rows @ ease,
        lambda rows: (rows @ axes) @ axes.T,
        lambda rows: rows @ near,
        lambda rows: rng.random(rows.shape, dtype=np.float32),
        lambda rows: rows @ ease + noise,
    ]


def precision(models: list, train_part, test_part, head) -> tuple[NDArray, NDArray]:
    """Return designs x users x systems, and designs x users: who has something to test on."""
    rows = train_part.astype(np.float32)
    tail = test_part.copy()
    tail[:, head] = False
    values = np.zeros((2, len(rows), len(models)))
    for column, model in enumerate(models):
        scores = np.where(train_part, np.float32(-1e9), model(rows))
        for design, test in enumerate((test_part, tail)):
            if design:
                scores[:, head] = -2e9
            best = np.argpartition(scores, scores.shape[1] - CUTOFF, axis=1)[:, -CUTOFF:]
            values[design, :, column] = np.take_along_axis(test, best, 1).mean(axis=1)
    return values, np.stack([test_part.any(axis=1), tail.any(axis=1)])


def influence(values: NDArray, counted: NDArray[np.bool_]) -> SplitInfluence:
    """Return the means of the users that are counted, and their influence."""
    means = values[counted].mean(axis=0)
    rest = np.where(counted[:, None], values - means, 0.0) / counted.sum()
    return SplitInfluence(means=means, influence=rest, counted=counted)


def half_widths(designs: list, target: str, seed: int) -> tuple[NDArray, NDArray, float]:
    """Return differences and standard errors of all designs and pairs, and the critical value."""
    blocks = user_blocks(designs[0][0].influence.shape[0], 0)
    named = {str(number): splits for number, splits in enumerate(designs)}
    errors = list(pair_errors(named, PAIRS, blocks, target=target, level=LEVEL).values())
    largest = largest_t([one.influence for one in errors], DRAWS, seed)
    difference = np.concatenate([one.difference for one in errors])
    se = np.concatenate([one.se for one in errors])
    tail = Tail.of(len(designs[0]), target, LEVEL)
    return difference, se, tail.widened(critical_value(largest, LEVEL))


def retrained(setting: Setting, count: int, splits: tuple[int, ...], seed: int) -> dict:
    """Return per number of splits the differences, standard errors and critical values."""
    items = Items(setting)
    results: dict = {number: ([], [], []) for number in splits}
    for number in range(count):
        rng = np.random.default_rng([seed, number])
        rated = items.rated(rng, setting.users)
        designs: list = [[], []]
        for _ in range(max(splits)):
            test = rated & (rng.random(rated.shape) < TEST)
            values, counted = precision(train(rated & ~test, rng), rated & ~test, test, items.head)
            for design in (0, 1):
                designs[design].append(influence(values[design], counted[design]))
        for first in splits:
            parts = half_widths([one[:first] for one in designs], "retrained", number)
            for kept, part in zip(results[first], parts, strict=True):
                kept.append(part)
    return {number: tuple(np.array(part) for part in parts) for number, parts in results.items()}


def same_lists(setting: Setting, count: int, seed: int) -> tuple:
    """Return the same for lists that stay: samples of users of one large population."""
    items, rng = Items(setting), np.random.default_rng([seed, 2**31])
    models = train(items.rated(rng, setting.users), rng)
    rated = items.rated(rng, POPULATION)
    test = rated & (rng.random(rated.shape) < TEST)
    values, counted = precision(models, rated & ~test, test, items.head)
    whole = [influence(values[d], counted[d]).means for d in (0, 1)]
    truth = np.concatenate([one[PAIRS.first] - one[PAIRS.second] for one in whole])
    rows = []
    for number in range(count):
        users = rng.choice(POPULATION, setting.users, replace=False)
        designs = [[influence(values[d][users], counted[d][users])] for d in (0, 1)]
        rows.append(half_widths(designs, "lists", number))
    return truth, *(np.array(part) for part in zip(*rows, strict=True))


def report(kind: str, name: str, splits: int, parts: tuple, truth: NDArray) -> str:
    """Return a line: the coverage of single intervals, and of all of a data set at once."""
    difference, se, critical = parts
    error = np.abs(difference - truth)
    single = error <= 1.959964 * se
    family = (error <= critical[:, None] * se).all(axis=1)
    each, by_pair = single.mean(axis=1), single.mean(axis=0)
    wide = 1.96 * each.std(ddof=1) / np.sqrt(len(each))
    low, high = wilson(family.sum(), len(family))
    return (
        f"{kind:<10} {name:<14} {splits:>2}  {100 * each.mean():5.1f} "
        f"[{100 * (each.mean() - wide):.1f}, {100 * (each.mean() + wide):.1f}]   "
        f"{100 * by_pair.min():5.1f} {100 * by_pair.max():5.1f}   "
        f"{100 * family.mean():5.1f} [{100 * float(low):.1f}, {100 * float(high):.1f}]"
    )


def noisy_splits(
    rng: np.random.Generator, splits: int, noise: NDArray, mixed: float
) -> Iterator[list[SplitInfluence]]:
    """Draw the splits of every design; `noise` is designs x systems, true differences are 0.

    `mixed` is the share of the variance of every part that designs have in common.
    """
    users, systems, test_noise = NOISY_USERS, noise.shape[1], 1.44
    shapes = ((users, systems), (splits, users, systems), (splits, systems), (systems,))
    common = [rng.normal(size=shape) for shape in shapes]
    for variance in noise * test_noise / users:
        stays, test, split, data = (
            np.sqrt(mixed) * part + np.sqrt(1 - mixed) * rng.normal(size=part.shape)
            for part in common
        )
        # What new ratings and new users in the training change in all splits of a data set.
        moved = np.sqrt(0.5 * variance + 0.75 / users) * data
        values = stays + moved + (np.sqrt(variance) * split)[:, None] + np.sqrt(test_noise) * test
        yield [influence(part, np.ones(users, np.bool_)) for part in values]


def noise_report(name: str, splits: int, designs: int, mixed: float, count: int, seed: int) -> str:
    """Return a line: coverage, and how much wider the widest of ten intervals is by chance."""
    rows = np.array([[20.0] * 6, *[[0.0] * 6] * 3]) if name == ONE_DESIGN else NOISE[name]
    noise = np.broadcast_to(np.asarray(rows), (designs, 6))
    parts = []
    for number in range(count):
        rng = np.random.default_rng([seed, splits, designs, number])
        drawn = list(noisy_splits(rng, splits, noise, mixed))
        parts.append(half_widths(drawn, "retrained", number))
    difference, se, critical = (np.array(part) for part in zip(*parts, strict=True))
    line = report("retrained", name, splits, (difference, se, critical), np.zeros(1))
    half = (critical[:, None] * se)[: count // 10 * 10].reshape(-1, 10, se.shape[1])
    widest = half.max(axis=1) / half.min(axis=1)
    return (
        f"{line}   {designs} {mixed:.1f}   {np.median(half):.3f}   {np.median(widest):.1f} "
        f"{np.quantile(widest, 0.95):.1f}"
    )


def noise_table(count: int, seed: int) -> None:
    """Print the table of unsteady trainings: settings of noise, splits, designs."""
    print(
        "target     setting    splits   single [95 %]     least, most pair   all at once [95 %]"
        "   designs, mixed   half-width   widest of ten: median, 95 %"
    )
    for designs, mixed in ((4, 0.5), (4, 0.9), (1, 0.5)):
        for splits in (3, 5, 10):
            for name in (*NOISE, *([ONE_DESIGN] if designs == 4 else [])):
                print(noise_report(name, splits, designs, mixed, count, seed), flush=True)


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser()
    parser.add_argument("settings", nargs="*", default=list(SETTINGS))
    parser.add_argument("--data-sets", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--noise", action="store_true")
    given = parser.parse_args()
    if given.noise:
        with one_blas_thread():
            noise_table(given.data_sets, given.seed)
        return
    print("target     setting    splits   single [95 %]     least, most pair   all at once [95 %]")
    with one_blas_thread():
        for name in given.settings:
            setting, start = SETTINGS[name], time.perf_counter()
            splits = (1, 3, setting.splits)
            drawn = retrained(setting, given.data_sets, splits, given.seed)
            # The mean over all data sets is the target; its error is a thousandth of a variance.
            truth = drawn[max(splits)][0].mean(axis=0)
            for number in splits:
                print(report("retrained", name, number, drawn[number], truth), flush=True)
            truth, *parts = same_lists(setting, given.data_sets, given.seed)
            print(report("lists", name, 1, tuple(parts), truth), flush=True)
            seconds = time.perf_counter() - start
            print(f"    {1000 * seconds / given.data_sets:.0f} ms per data set", flush=True)


if __name__ == "__main__":
    main()
