"""Bias, spread and coverage of the estimators of sampled metrics, against brute force.

    python benchmarks/sampled_estimators.py simulate --setting middle      # ranks of no world
    python benchmarks/sampled_estimators.py movielens --data FILE          # lists of real data
    python benchmarks/sampled_estimators.py tables FOLDER                  # all as Markdown

`simulate` draws true ranks by kinds of distributions (plain numpy, none of the library's worlds),
with users whose lists resemble each other, and lets a sample of others show them. The rule that
chooses an estimator was fixed on the kinds in SEEN with seeds below 1,000. A first run with new
seeds and the kinds in NEXT showed it to be up to ten times worse than the trade-off for Recall@1
and AP, where a lump of ranks stands near the top but not in first place; LEAST_SHOWN came of
that. The kinds in FRESH and the seeds here were not looked at before. `movielens` draws
lists anew for each seed and compares with the ranks among all items. Each run writes one JSON file;
`tables` prints them.
"""

from __future__ import annotations

import argparse
import functools
import json
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from statistics import NormalDist
from typing import Any

import numpy as np
from numpy.typing import NDArray

import unskew as us
import unskew_studies
from unskew.engine.threads import one_blas_thread
from unskew.evaluation.one_relevant import value_at
from unskew.metrics.names import parse
from unskew.unbiased.sampled import sampled_means
from unskew.unbiased.sampled.sampled_means import LEAST_HELD, ranks_looked_at
from unskew.unbiased.sampled.sampled_metrics import sampled_metrics

Array = NDArray[Any]
METRICS = ("Recall@1", "Recall@10", "nDCG@10", "AP", "Recall@50")
ALL = ("plain", "trade-off", "mle")
FIRST_SEED = 20_000
ALIKE = 0.3
"""Correlation, as normal scores, of two lists of a user."""
LEVEL = 0.95


@dataclass(frozen=True)
class Setting:
    """How large the data are."""

    items: int
    n: int
    users: int
    lists: int
    """Of each user."""
    repetitions: int = 100


SETTINGS = {
    "tiny": Setting(300, 50, 100, 3),
    "small": Setting(1_000, 100, 250, 4),
    "coarse": Setting(1_000, 20, 250, 8),
    "middle": Setting(3_700, 100, 1_000, 5),
    "blind": Setting(3_700, 20, 1_000, 5),
    "large": Setting(20_000, 100, 500, 4),
    "fine": Setting(20_000, 500, 500, 4, 60),
}


def _power(exponent: float) -> Callable[[Array, int], Array]:
    return lambda u, items: 1 + np.floor(items * u**exponent)


def _log_uniform(u: Array, items: int) -> Array:
    return np.floor(np.exp(u * np.log(items + 1)))


def _two_groups(u: Array, items: int) -> Array:
    """Three in ten geometric with mean 5, the others anywhere."""
    top = np.ceil(np.log1p(-np.minimum(u / 0.3, 1 - 1e-12)) / np.log(0.8))
    return np.where(u < 0.3, np.maximum(top, 1), 1 + np.floor(items * (u - 0.3) / 0.7))


def _spike(u: Array, items: int) -> Array:
    """One in five first, the others by a square."""
    rest = np.maximum(u - 0.2, 0) / 0.8
    return np.where(u < 0.2, 1, 1 + np.floor(items * rest**2))


def _blocked(u: Array, items: int) -> Array:
    """Nothing relevant among the first 20."""
    return 21 + np.floor(items * u**3)


def _hump(u: Array, items: int) -> Array:
    """Log-normal around a twentieth of the items."""
    return np.rint(items / 20 * np.exp(_normal(u)))


def _middle(u: Array, items: int) -> Array:
    """Symmetric around the middle."""
    return 1 + np.floor(items * NORMAL_SHARE(0.8 * _normal(u)))


def _bad(u: Array, items: int) -> Array:
    """Rather last than first."""
    return 1 + np.floor(items * (1 - u**2))


def _slab(u: Array, items: int) -> Array:
    """Anywhere in the first tenth."""
    return 1 + np.floor(items / 10 * u)


def _late_atom(u: Array, items: int) -> Array:
    """Three in ten exactly seventh, the others anywhere."""
    return np.where(u < 0.3, 7, 1 + np.floor(items * np.maximum(u - 0.3, 0) / 0.7))


def _two_humps(u: Array, items: int) -> Array:
    """Half of the lists around rank 4, half around a third of the items."""
    near = np.rint(4 * np.exp(0.7 * _normal(np.clip(2 * u, 1e-9, 1 - 1e-9))))
    far = np.rint(items / 3 * np.exp(0.5 * _normal(np.clip(2 * u - 1, 1e-9, 1 - 1e-9))))
    return np.where(u < 0.5, near, far)


def _third(u: Array, items: int) -> Array:
    """One in four exactly third, the others by a square."""
    return np.where(u < 0.25, 3, 1 + np.floor(items * (np.maximum(u - 0.25, 0) / 0.75) ** 2))


def _fifteen(u: Array, items: int) -> Array:  # noqa: ARG001
    """Log-normal around rank 15."""
    return np.rint(15 * np.exp(_normal(u)))


def _broken(u: Array, items: int) -> Array:
    """Half of the lists anywhere in the first fiftieth, half by a square."""
    near = 1 + np.floor(items / 50 * np.minimum(2 * u, 1 - 1e-12))
    return np.where(u < 0.5, near, 1 + np.floor(items * np.maximum(2 * u - 1, 0) ** 2))


def _gap(u: Array, items: int) -> Array:
    """One in five first or second, nothing up to a hundredth of the items, then by a power."""
    far = items / 100 + np.floor(0.99 * items * (np.maximum(u - 0.2, 0) / 0.8) ** 1.5)
    return np.where(u < 0.2, 1 + np.floor(10 * u), far)


def _triangle(u: Array, items: int) -> Array:
    """Fewer and fewer towards the end, by a straight line."""
    return 1 + np.floor(items * (1 - np.sqrt(1 - u)))


NORMAL_SHARE = np.vectorize(NormalDist().cdf, otypes=[float])
_normal = np.vectorize(NormalDist().inv_cdf, otypes=[float])
SEEN: dict[str, Callable[[Array, int], Array]] = {
    "random": _power(1.0),
    "weak": _power(1.5),
    "popular": _power(3.0),
    "strong": _power(5.0),
    "log-uniform": _log_uniform,
    "two groups": _two_groups,
    "spike": _spike,
    "blocked": _blocked,
    "hump": _hump,
    "middle": _middle,
    "bad": _bad,
}
NEXT = {
    "stronger": _power(8.0),
    "slab": _slab,
    "late atom": _late_atom,
    "two humps": _two_humps,
}
FRESH = {
    "third": _third,
    "fifteen": _fifteen,
    "broken": _broken,
    "gap": _gap,
    "triangle": _triangle,
}
KINDS = {**SEEN, **NEXT, **FRESH}


def true_ranks(kind: str, setting: Setting, rng: np.random.Generator) -> tuple[Array, Array]:
    """Draw the true rank of each list, and say whose list it is."""
    shape = (setting.users, setting.lists)
    mixed = np.sqrt(ALIKE) * rng.normal(size=(setting.users, 1))
    place = NORMAL_SHARE(mixed + np.sqrt(1 - ALIKE) * rng.normal(size=shape))
    ranks = KINDS[kind](place, setting.items)
    user = np.repeat(np.arange(setting.users), setting.lists)
    return np.clip(ranks, 1, setting.items).astype(np.int64).ravel(), user


def population(kind: str, items: int) -> Array:
    """Return the metrics of all users that could have been drawn."""
    place = (np.arange(2_000_000) + 0.5) / 2_000_000
    if kind in ("hump", "middle", "two humps", "fifteen"):  # slow by numpy's vectorize
        place = (np.arange(200_000) + 0.5) / 200_000
    ranks = np.clip(KINDS[kind](place, items), 1, items)
    return np.array([value_at(label, ranks, items).mean() for label in METRICS])


def drawn_adaptively(
    true: Array, items: int, n: int, rng: np.random.Generator
) -> tuple[Array, Array]:
    """Draw more others while the relevant item stands first, by the rule of `adaptive_ranks`.

    Twice as many each time, or all where that would be a quarter of them; up to 32 n.
    """
    size = np.full(true.size, n)
    better = rng.hypergeometric(true - 1, items - true, n)
    while True:
        twice = np.minimum(2 * size, 32 * n)
        more = np.where(items - 1 <= 32 * n, items - 1, size)
        wanted = np.where(4 * twice <= items - 1, twice, more)
        rows = np.flatnonzero((better == 0) & (wanted > size))
        if not rows.size:
            return 1 + better, size
        # None of those drawn was better: draw from what is left.
        better[rows] = rng.hypergeometric(
            true[rows] - 1, items - true[rows] - size[rows], wanted[rows] - size[rows]
        )
        size[rows] = wanted[rows]


def simulate(setting: Setting, kind: str) -> dict[str, Any]:
    """Estimate, repetition by repetition, and sum up."""
    truth = population(kind, setting.items)
    rows: dict[str, list[Array]] = {}
    picks = np.zeros(len(METRICS))
    nearer, cost = [], []
    for repetition in range(setting.repetitions):
        rng = np.random.default_rng([FIRST_SEED + repetition, sorted(KINDS).index(kind)])
        true, user = true_ranks(kind, setting, rng)
        seen = 1 + rng.hypergeometric(true - 1, setting.items - true, setting.n)
        more, sizes = drawn_adaptively(true, setting.items, setting.n, rng)
        common = {"items": setting.items, "users": user, "true_ranks": true, "resamples": 300}
        result = sampled_metrics(seen, METRICS, n=setting.n, **common)
        adaptive = sampled_metrics(more, METRICS, n=sizes, adaptive=True, **common)
        cost.append(sizes.mean())
        full = result.rows["full"].to_numpy()
        chosen = list(result.card["estimator"].values())
        values = {name: _numbers(result, [name] * len(METRICS)) for name in ALL}
        values["estimate"] = _numbers(result, chosen)
        values["adaptive"] = _numbers(adaptive, ["mle"] * len(METRICS))
        for name, parts in values.items():
            rows.setdefault(name, []).append(np.stack([*parts, full]))
        is_mle = np.array([name == "mle" for name in chosen])
        picks += is_mle
        gaps = {name: np.abs(values[name][0] - full) for name in ("mle", "trade-off")}
        nearer += [bool(x) for x in (gaps["mle"] < gaps["trade-off"])[is_mle]]
    out: dict[str, Any] = {"picked_mle": (picks / setting.repetitions).tolist()}
    out |= {"nearer": nearer, "cost": float(np.mean(cost)), "population": truth.tolist()}
    out["estimators"] = {name: _summary(np.array(values), truth) for name, values in rows.items()}
    return out


def _numbers(result: Any, estimators: list[str]) -> Array:
    """Return value, low and high of each metric, by an estimator of its own."""
    part = result.parts["estimators"]
    rows = [
        part.row(metric=metric, estimator=name)
        for metric, name in zip(part.values_of("metric"), estimators, strict=True)
    ]
    return np.array([(row.value, row.low, row.high) for row in rows]).T


def _summary(values: Array, truth: Array) -> dict[str, list[float]]:
    """Return bias, spread and error against the full value, and how often intervals hold it."""
    value, low, high, full = (values[:, at] for at in range(4))
    gap = value - full
    return {
        "full": full.mean(axis=0).tolist(),
        "bias": gap.mean(axis=0).tolist(),
        "spread": gap.std(axis=0).tolist(),
        "error": np.sqrt((gap**2).mean(axis=0)).tolist(),
        "holds_full": ((low <= full) & (full <= high)).mean(axis=0).tolist(),
        "holds_population": ((low <= truth) & (truth <= high)).mean(axis=0).tolist(),
        "width": (high - low).mean(axis=0).tolist(),
    }


def movielens(data: str, systems: str, draws: int, others: list[int]) -> dict[str, Any]:
    """Compare with the ranks among all items, on lists drawn anew for each seed."""
    split = us.splits.Random(test=0.2).split(us.read_ratings(data), seed=7)[0]
    if systems == "valcarce2018":
        preset = unskew_studies.preset("valcarce2018")
        algorithms = {name: one.algorithm for name, one in preset.items()}
    else:
        one = us.recommend
        algorithms = {
            "Pop": one.Popularity(),
            "Random": one.Random(),
            "UserKNN": one.UserKNN(k=50),
            "ItemKNN": one.ItemKNN(),
            "PureSVD": one.PureSVD(factors=30),
            "WRMF": one.WRMF(factors=50),
            "EASE": one.EASE(),
            "SLIM": one.SLIM(),
        }
    models = {name: algorithm.fit(split.train, 0) for name, algorithm in algorithms.items()}
    out: dict[str, Any] = {}
    for n in others:
        design = us.targets.OneRelevant(others=n, candidates="all")
        out[str(n)] = []
        for draw in range(draws):
            # The page's table has one draw, with the seed that it always had.
            lists = design.lists(split, liked=4, seed=7 if draws == 1 else FIRST_SEED + draw)
            labels = ["Recall@10", "nDCG@10", "AP"]
            result = us.unbiased.correct_sampled(lists, models, labels)
            more = us.unbiased.correct_sampled(lists, models, labels, adaptive=32 * n)
            out[str(n)].append(
                {
                    "sampled": result.to_dict(),
                    "adaptive": more.to_dict(),
                }
            )
            print(result, more, sep="\n", flush=True)
    return out


def tables(folder: Path) -> None:
    """Print errors relative to the trade-off, and coverage, as Markdown."""
    shown = ("trade-off", "mle", "estimate", "adaptive")
    for name, setting in SETTINGS.items():
        found = {
            kind: json.loads(path.read_text())
            for kind in KINDS
            if (path := folder / f"{name}-{kind.replace(' ', '-')}.json").exists()
        }
        if not found:
            continue
        print(
            f"\n### {name}: N = {setting.items:,}, n = {setting.n}, "
            f"{setting.users * setting.lists:,} lists, {setting.repetitions} repetitions\n"
        )
        print("| kind | metric | full | " + " | ".join(shown) + " | mle picked | coverage |")
        print("|---|---|---:|" + "---:|" * (len(shown) + 2))
        for kind, result in found.items():
            for m, metric in enumerate(METRICS):
                parts = result["estimators"]
                cells = [
                    f"{parts[one]['bias'][m]:+.4f} ({parts[one]['error'][m]:.4f})" for one in shown
                ]
                holds = parts["estimate"]["holds_full"][m]
                print(
                    f"| {kind} | {metric} | {parts['mle']['full'][m]:.4f} | "
                    + " | ".join(cells)
                    + f" | {result['picked_mle'][m]:.2f} | {holds:.2f} |"
                )
        _summarise(found)


def page(folder: Path) -> None:
    """Print the table of docs/sampled.md: over all kinds, root mean squares of bias and spread.

    In brackets: how often an interval that is not shown would hold the full value.
    """
    shown = ("plain", "trade-off", "mle", "estimate", "adaptive")
    print("| N, n | metric | " + " | ".join(shown) + " | held by estimate | by adaptive |")
    print("|---|---|" + "---:|" * (len(shown) + 2))
    for name, setting in SETTINGS.items():
        paths = [folder / f"{name}-{kind.replace(' ', '-')}.json" for kind in KINDS]
        found = [json.loads(path.read_text())["estimators"] for path in paths if path.exists()]
        if len(found) < len(KINDS):
            continue
        # What is drawn where the relevant item is first among all.
        first, rng = np.ones(1, np.int64), np.random.default_rng(0)
        most = int(drawn_adaptively(first, setting.items, setting.n, rng)[1][0])
        for m, metric in enumerate(METRICS):
            cells = []
            for one in shown:
                size = [
                    np.sqrt(np.mean([r[one][what][m] ** 2 for r in found]))
                    for what in ("bias", "spread")
                ]
                cells.append(f"{size[0]:.3f}, {size[1]:.3f}")
            ranks = ranks_looked_at(parse(metric), setting.items)
            holds = []
            for one, n in (("estimate", setting.n), ("adaptive", most)):
                rate = f"{100 * np.mean([r[one]['holds_full'][m] for r in found]):.0f} %"
                shown_here = ranks * n / (setting.items - 1) >= LEAST_HELD
                holds.append(rate if shown_here else f"({rate})")
            print(
                f"| {setting.items:,}, {setting.n} | {metric} | " + " | ".join(cells + holds) + " |"
            )


def _summarise(found: dict[str, Any]) -> None:
    """Print the largest ratio of errors, and how they compare on the whole."""
    for one in ("mle", "estimate", "adaptive", "plain"):
        ratios = {
            (kind, metric): result["estimators"][one]["error"][m]
            / max(result["estimators"]["trade-off"]["error"][m], 1e-12)
            for kind, result in found.items()
            for m, metric in enumerate(METRICS)
            if result["estimators"]["trade-off"]["error"][m] > 0
        }
        worst = sorted(ratios.items(), key=lambda pair: -pair[1])[:4]
        mean = np.exp(np.mean(np.log([max(x, 1e-3) for x in ratios.values()])))
        print(
            f"\n{one}: mean ratio {mean:.2f}; largest "
            + ", ".join(f"{x:.2f} ({kind}, {metric})" for (kind, metric), x in worst)
        )
    nearer = [x for result in found.values() for x in result["nearer"]]
    if nearer:
        print(f"\nwhere mle was picked it was nearer in {np.mean(nearer):.3f} of {len(nearer):,}")
    for kind_of in ("estimate", "trade-off", "adaptive"):
        holds = np.array([r["estimators"][kind_of]["holds_full"] for r in found.values()])
        print(
            f"\ncoverage of the full value, {kind_of}: "
            + ", ".join(f"{m} {x:.2f}" for m, x in zip(METRICS, holds.mean(axis=0), strict=True))
        )


def main() -> None:
    """Run one part, and write what came out."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("part", choices=["simulate", "movielens", "tables"])
    parser.add_argument("folder", nargs="?", default="build/sampled")
    parser.add_argument("--setting", choices=list(SETTINGS))
    parser.add_argument("--data", default="ml-1m/ratings.parquet")
    parser.add_argument("--others", type=int, nargs="+", default=[20, 100])
    parser.add_argument("--systems", default="eight")
    parser.add_argument("--draws", type=int, default=1)
    settings = parser.parse_args()
    folder = Path(settings.folder)
    if settings.part == "tables":
        tables(folder)
        page(folder)
        return
    folder.mkdir(parents=True, exist_ok=True)
    if settings.part == "movielens":
        out = movielens(settings.data, settings.systems, settings.draws, settings.others)
        name = f"movielens-{Path(settings.data).parent.name}-{settings.systems}"
        (folder / f"{name}.json").write_text(json.dumps(out))
        return
    # What each sampled rank counts depends on the numbers of items and others alone.
    worked_out = functools.cache(sampled_means.trade_off)
    sampled_means.trade_off = lambda metrics, *sample: worked_out(tuple(metrics), *sample)
    for kind in KINDS:
        path = folder / f"{settings.setting}-{kind.replace(' ', '-')}.json"
        if path.exists():
            continue
        started = time.perf_counter()
        with one_blas_thread():
            out = simulate(SETTINGS[settings.setting], kind)
        path.write_text(json.dumps(out))
        print(f"{settings.setting} {kind}: {time.perf_counter() - started:.0f} s", flush=True)


if __name__ == "__main__":
    main()
