"""How often the intervals of `us.labels.assisted` hold their target, on data drawn anew.

    python benchmarks/assisted_coverage.py                          # 5,000 repetitions of each
    python benchmarks/assisted_coverage.py --repetitions 500 good   # one setting, quicker
    python benchmarks/assisted_coverage.py --part statements        # or another part

The data are not worlds of the library: plain numpy. Every user has 24 items to choose from, with a
quality that depends on user and item; two systems list ten of them, by noisy quality and by
popularity. Where lists are the target one population is drawn, and a new sample in every
repetition; where new users are, everything is drawn anew, and the target is the mean over 200,000
users. The rules (`contrast_sides.MANY`, `CARRIERS`, `FEW_ERRORS`) were fixed on binomial counts and
on seeds from 1,000,000 on; the numbers in docs/assisted.md are of seed 0.
"""

from __future__ import annotations

import argparse
import json
import math
import time
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from unskew.data.ratings import Ids
from unskew.labels.assisted_contrasts import LabelContrast, bootstrap_ends
from unskew.labels.contrast_sides import ESTIMATORS, HUMAN, LISTS, TUNED, USERS, LabelledPairs
from unskew.labels.human_samples import HumanSample
from unskew.labels.recommended_pairs import Listed, RecommendedPairs, place_sums
from unskew.labels.sample_checks import agreements, check_sample, looks_random

Array = NDArray[np.float64]
ITEMS, K = 24, 10
MANY_USERS = 200_000
CHUNK = 20_000
LEVEL = 0.95
CONTRASTS = {"level": ("a", None), "difference": ("a", "b")}


@dataclass(frozen=True)
class Setting:
    """How a population, its annotator and its sample are drawn."""

    labels: int = 300
    """Of people."""
    users: int = 250
    base: float = -0.4
    """Log-odds of being liked, in the mean."""
    spread: float = 0.7
    """Standard deviation of the log-odds over users: what makes labels of a user alike."""
    annotator: str = "good"
    hits: float = 0.85
    """Of what people like, the share that the annotator likes."""
    false: float = 0.15
    """Of what people dislike, the share that the annotator likes."""
    design: str = "simple"
    metric: str = "P@10"
    short: bool = False
    """Whether lists have 3 to 10 items."""
    equal: int = 0
    """Instead of two systems, so many that are equally good."""


SETTINGS = {
    "good": Setting(),
    "biased": Setting(annotator="biased", hits=0.95, false=0.45),
    "popular": Setting(annotator="popular"),
    "useless": Setting(annotator="good", hits=0.4, false=0.4),
    "useless, 100 labels": Setting(annotator="good", hits=0.4, false=0.4, labels=100, users=120),
    "strata": Setting(design="strata"),
    "probabilities": Setting(design="probabilities"),
    "scores": Setting(annotator="scores"),
    "DCG": Setting(metric="DCG@10"),
    "RBP": Setting(metric="RBP(p=0.8)@10"),
    "short lists": Setting(metric="P(per=list)@10", short=True),
    "half judged": Setting(labels=600, users=60),
    "users alike": Setting(spread=2.0),
    "ten positives": Setting(labels=200, base=-3.2),
    "rare": Setting(labels=50, base=-4.6, spread=0.3, hits=0.8, false=0.02),
    "rare, useless": Setting(labels=50, base=-4.6, spread=0.3, hits=0.3, false=0.3),
    "rare, strata": Setting(
        labels=60, base=-4.6, spread=0.3, design="strata", hits=0.8, false=0.02
    ),
    "rare, DCG": Setting(labels=50, base=-4.6, spread=0.3, metric="DCG@10", hits=0.8, false=0.02),
    "nearly perfect": Setting(hits=0.99, false=0.01),
    "perfect": Setting(hits=1.0, false=0.0),
}


@dataclass(frozen=True)
class Drawn:
    """Users with all their items: what they like, what the annotator says, what systems list."""

    pairs: RecommendedPairs
    y: Array
    label: Array
    metric: str

    @cached_property
    def counting(self) -> dict[str, tuple[NDArray[np.int64], Array]]:
        """By contrast: the pairs that count for it, and what each adds."""
        (one,) = place_sums(self.metric).values()
        coefficients = self.pairs.coefficients(one)
        return {name: coefficients.contrast(*systems) for name, systems in CONTRASTS.items()}


def draw(setting: Setting, users: int, rng: np.random.Generator) -> Drawn:
    """Draw users, their labels and the lists of two systems."""
    shape = (users, ITEMS)
    popularity = np.linspace(1.5, -1.5, ITEMS)[None, :] + rng.normal(0, 0.5, shape)
    odds = setting.base + rng.normal(0, setting.spread, (users, 1))
    odds = odds + 0.5 * popularity + rng.normal(0, 0.8, shape)
    chance = 1 / (1 + np.exp(-odds))
    y = rng.random(shape) < chance
    label = _annotate(setting, y, chance, popularity, rng)
    scores = {"a": odds + rng.normal(0, 1.0, shape), "b": popularity + rng.normal(0, 0.7, shape)}
    if setting.equal:
        names = [f"s{number}" for number in range(setting.equal)]
        scores = {name: odds + rng.normal(0, 1.5, shape) for name in names}
    rank = {}
    for name, score in scores.items():
        order = np.argsort(-score, axis=1)
        rank[name] = np.empty(shape, np.int64)
        np.put_along_axis(rank[name], order, np.arange(1, ITEMS + 1)[None, :], axis=1)
    depth = np.full(users, K) if not setting.short else rng.integers(3, K + 1, users)
    inside = {name: one <= depth[:, None] for name, one in rank.items()}
    union = np.logical_or.reduce(list(inside.values()))
    number = np.cumsum(union.ravel()) - 1
    user, item = np.nonzero(union)
    lists = {
        name: Listed(number[one.ravel()], rank[name][one], depth.astype(np.int64))
        for name, one in inside.items()
    }
    ids = [Ids(pl.Series(np.arange(size))) for size in shape]
    pairs = RecommendedPairs(
        users=ids[0],
        items=ids[1],
        user=user.astype(np.int32),
        item=item.astype(np.int32),
        lists=lists,
        cutoff=K,
        judgment=np.full(user.size, -1),
    )
    return Drawn(pairs, y[union].astype(float), label[union], setting.metric)


def _annotate(
    setting: Setting,
    y: NDArray[np.bool_],
    chance: Array,
    popularity: Array,
    rng: np.random.Generator,
) -> Array:
    """Return the labels of the annotator."""
    if setting.annotator == "scores":
        noisy = np.log(chance / (1 - chance)) + 1.2 * (y - 0.5) + rng.normal(0, 0.7, y.shape)
        return 1 / (1 + np.exp(-noisy))
    hits, false = np.full(y.shape, setting.hits), np.full(y.shape, setting.false)
    if setting.annotator == "popular":
        popular = popularity > 0.5
        hits[popular], false[popular] = 0.97, 0.7
        hits[~popular] = 0.5
    return (rng.random(y.shape) < np.where(y, hits, false)).astype(float)


def sample(setting: Setting, drawn: Drawn, rng: np.random.Generator) -> HumanSample:
    """Draw the pairs that people label."""
    pairs, n = drawn.pairs, setting.labels
    size = len(pairs)
    names, stratum = ("all",), np.zeros(size, np.int64)
    if setting.design == "simple":
        row = np.sort(rng.choice(size, n, replace=False))
        probability = np.full(n, n / size)
    elif setting.design == "strata":
        known = pairs.strata("rank")
        names, stratum = known.names, known.code.astype(np.int64)
        each = np.minimum(n // len(names), known.sizes)
        row = np.sort(
            np.concatenate(
                [
                    rng.choice(np.flatnonzero(stratum == code), number, replace=False)
                    for code, number in enumerate(each)
                ]
            )
        )
        probability = (each / known.sizes)[stratum[row]]
    else:
        weight = 0.3 + drawn.label + rng.random(size)
        chance = np.minimum(n * weight / weight.sum(), 1.0)
        row = np.flatnonzero(rng.random(size) < chance)
        probability = chance[row]
    return HumanSample(
        row=row,
        value=drawn.y[row],
        probability=probability,
        stratum=stratum[row],
        names=names,
        kind=setting.design,
    )


def labelled(drawn: Drawn, people: HumanSample, population: str) -> LabelledPairs:
    """Return what contrasts are estimated from."""
    return LabelledPairs(
        label=drawn.label,
        sample=people,
        y=drawn.y[people.row],
        user=drawn.pairs.user.astype(np.int64),
        users=drawn.pairs.number_of_users,
        population=population,
    )


def contrasts(drawn: Drawn, people: HumanSample, population: str) -> dict[str, LabelContrast]:
    """Return the contrasts of one repetition."""
    data = labelled(drawn, people, population)
    return {name: LabelContrast.of(data, *counting) for name, counting in drawn.counting.items()}


def truth(drawn: Drawn) -> dict[str, float]:
    """Return what the contrasts are with everything labelled."""
    return {name: float((add * drawn.y[row]).sum()) for name, (row, add) in drawn.counting.items()}


def squared_correlation(drawn: Drawn) -> dict[str, float]:
    """Return ρ² of people and annotator on each contrast, over all pairs."""
    result = {}
    for name, (row, add) in drawn.counting.items():
        parts: list[list[Array]] = [[], []]
        for sign in (1.0, -1.0):
            mine = add * sign > 0
            if mine.any():
                weight = np.abs(add[mine])
                for part, column in zip(parts, (drawn.y, drawn.label), strict=True):
                    value = column[row[mine]]
                    part.append(weight * (value - (weight * value).sum() / weight.sum()))
        y, f = (np.concatenate(part) for part in parts)
        both = (y**2).sum() * (f**2).sum()
        result[name] = float((y * f).sum() ** 2 / both) if both else 0.0
    return result


@dataclass
class Tally:
    """What the repetitions of one contrast and estimator gave."""

    sampling: list[float]
    inside: list[bool]
    width: list[float]
    error: list[float]
    exact: list[bool]


def repetitions(
    setting: Setting, population: str, seed: int, number: int
) -> Iterator[tuple[dict[str, LabelContrast], dict[str, float]]]:
    """Give the contrasts of each repetition, and their targets."""
    start = np.random.default_rng([seed, 1])
    fixed = draw(setting, setting.users, start)
    target = truth(fixed)
    if population == USERS:
        parts = [truth(draw(setting, CHUNK, start)) for _ in range(MANY_USERS // CHUNK)]
        target = {name: float(np.mean([part[name] for part in parts])) for name in CONTRASTS}
    for at in range(number):
        rng = np.random.default_rng([seed, 2, at])
        drawn = fixed if population == LISTS else draw(setting, setting.users, rng)
        people = sample(setting, drawn, rng)
        yield contrasts(drawn, people, population), target


def measure(setting: Setting, population: str, seed: int, number: int) -> dict[str, object]:
    """Return coverage and widths of each contrast and estimator."""
    tally = {(c, e): Tally([], [], [], [], []) for c in CONTRASTS for e in ESTIMATORS}
    refused = 0
    for several, target in repetitions(setting, population, seed, number):
        for name, contrast in several.items():
            if contrast.without_labels is not None:
                refused += 1
                continue
            for estimator, one in contrast.estimates.items():
                low, high = one.interval(LEVEL)
                mine = tally[name, estimator]
                mine.sampling.append(one.sampling)
                mine.inside.append(low - 1e-12 <= target[name] <= high + 1e-12)
                mine.width.append(high - low)
                mine.error.append(one.value - target[name])
                mine.exact.append(one.method == "exact")
    rows = {}
    users = setting.users if population == LISTS else 4_000
    rho2 = squared_correlation(draw(setting, users, np.random.default_rng([seed, 1])))
    for (name, estimator), one in tally.items():
        human = float(np.mean(tally[name, HUMAN].width))
        alone = float(np.mean(tally[name, HUMAN].sampling))
        width = float(np.mean(one.width))
        rows[f"{name}, {estimator}"] = {
            "coverage": float(np.mean(one.inside)),
            "width": width,
            "width of human": width / human,
            "least width": float(np.min(one.width)),
            "bias in standard errors": float(np.mean(one.error) / np.std(one.error)),
            "exact": float(np.mean(one.exact)),
            "rho2": rho2[name],
            "saving at equal width": 1 - (width / human) ** 2,
            "saving": 1 - float(np.mean(one.sampling)) / alone if alone else 0.0,
        }
    return {"refused": refused, "rows": rows}


def measure_statements(setting: Setting, population: str, seed: int, number: int) -> str:
    """Count samples in which a system is called better that is not, over all differences."""
    (one,) = place_sums(setting.metric).values()
    fixed = draw(setting, setting.users, np.random.default_rng([seed, 1]))
    false = said = 0
    for at in range(number):
        rng = np.random.default_rng([seed, 4, at])
        drawn = fixed if population == LISTS else draw(setting, setting.users, rng)
        data = labelled(drawn, sample(setting, drawn, rng), population)
        couples = list(combinations(drawn.pairs.systems, 2))
        level = 1 - (1 - LEVEL) / len(couples)
        coefficients = drawn.pairs.coefficients(one)
        wrong = False
        for a, b in couples:
            row, add = coefficients.contrast(a, b)
            target = float((add * drawn.y[row]).sum()) if population == LISTS else 0.0
            low, high = LabelContrast.of(data, row, add).estimates[TUNED].interval(level)
            said += low > 0 or high < 0
            wrong |= (low > 0 and target <= 0) or (high < 0 and target >= 0)
        false += wrong
    return f"a false statement in {false:,} of {number:,} samples ({said:,} statements in all)"


def measure_bootstrap(setting: Setting, population: str, seed: int, number: int) -> str:
    """Return the coverage of bootstrap intervals."""
    held = {(c, e): 0 for c in CONTRASTS for e in ESTIMATORS}
    for at, (several, target) in enumerate(repetitions(setting, population, seed, number)):
        for name, contrast in several.items():
            estimates = [contrast.estimates[e] for e in ESTIMATORS]
            stratum = contrast.data.sample.stratum
            if population == USERS:
                stratum = np.zeros(contrast.data.users, np.int64)
            drawn = bootstrap_ends(estimates, stratum, [LEVEL], 1000, at, 1)
            for estimator, ((low, high),) in zip(ESTIMATORS, drawn, strict=True):
                held[name, estimator] += low <= target[name] <= high
    return ", ".join(f"{c} {e} {count / number:.4f}" for (c, e), count in held.items())


def measure_kappa(setting: Setting, population: str, seed: int, number: int) -> str:
    """Return the coverage of the interval of kappa over all pairs; lists are the target."""
    del population
    drawn = draw(setting, setting.users, np.random.default_rng([seed, 1]))
    y, f = drawn.y, drawn.label > 0.5
    p, q = y.mean(), f.mean()
    kappa = 1 - (y != f).mean() / (p * (1 - q) + q * (1 - p))
    held = refused = 0
    for at in range(number):
        people = sample(setting, drawn, np.random.default_rng([seed, 5, at]))
        one = agreements(drawn.pairs, people, people.value > 0, f[people.row], LEVEL).row()
        refused += math.isnan(one.low)
        held += one.low - 1e-12 <= kappa <= one.high + 1e-12
    given = max(number - refused, 1)
    return f"kappa {kappa:.3f}: coverage {held / given:.4f} of {given:,} with an interval"


def measure_checks(setting: Setting, population: str, seed: int, number: int) -> str:
    """Count random samples that are called not random."""
    del population
    drawn = draw(setting, setting.users, np.random.default_rng([seed, 1]))
    called = 0
    for at in range(number):
        people = sample(setting, drawn, np.random.default_rng([seed, 6, at]))
        called += not looks_random(check_sample(drawn.pairs, people, drawn.label))
    return f"called not random: {called:,} of {number:,}"


def measure_saving(setting: Setting, population: str, seed: int, number: int) -> str:
    """Compare widths: PPI++ with n labels, people alone with n / (1 - .9 ρ²) labels."""
    rows: Any = measure(setting, population, seed, number)["rows"]
    parts = []
    for name in CONTRASTS:
        tuned = rows[f"{name}, {TUNED}"]
        more = math.ceil(setting.labels / (1 - 0.9 * tuned["rho2"]))
        others: Any = measure(replace(setting, labels=more), population, seed, number)["rows"]
        alone = others[f"{name}, {HUMAN}"]["width"]
        parts.append(
            f"{name}: PPI++ with {setting.labels} labels {tuned['width']:.4f}, people alone with "
            f"{more} {alone:.4f} (rho2 {tuned['rho2']:.3f})"
        )
    return "; ".join(parts)


PARTS = {
    "saving": (
        measure_saving,
        {name: replace(SETTINGS[name], users=600) for name in ("good", "biased", "popular")},
        (LISTS, USERS),
    ),
    "statements": (
        measure_statements,
        {
            "five equal systems": Setting(equal=5),
            "five equal systems, few likes": Setting(equal=5, base=-3.0),
            "five equal systems, strata": Setting(equal=5, design="strata"),
        },
        (LISTS, USERS),
    ),
    "bootstrap": (
        measure_bootstrap,
        {name: SETTINGS[name] for name in ("good", "useless", "strata", "ten positives")},
        (LISTS, USERS),
    ),
    "kappa": (
        measure_kappa,
        {name: SETTINGS[name] for name in ("good", "useless", "strata", "nearly perfect", "rare")},
        (LISTS,),
    ),
    "checks": (
        measure_checks,
        {
            name: SETTINGS[name]
            for name in ("good", "strata", "probabilities", "half judged", "rare")
        },
        (LISTS,),
    ),
}


def table(results: dict[str, Any]) -> str:
    """Return the measurements as the table of docs/assisted.md: levels / differences."""
    lines = [
        "| world | target | human | PPI | PPI++ | width | least width | saving | ρ² |",
        "|---|---|---|---|---|---|---|---|---|",
    ]
    for name, measured in results.items():
        world, population = name.rsplit("; ", 1)
        rows = measured["rows"]

        def both(estimator: str, key: str, digits: int, rows: Any = rows) -> str:
            values = [rows[f"{contrast}, {estimator}"][key] for contrast in CONTRASTS]
            return " / ".join(f"{value:.{digits}f}".lstrip("0") for value in values)

        cells = [
            *(both(estimator, "coverage", 3) for estimator in ESTIMATORS),
            both(TUNED, "width of human", 3),
            both(TUNED, "least width", 3),
            both(TUNED, "saving", 2),
            both(TUNED, "rho2", 2),
        ]
        lines.append(f"| {world} | {population} | {' | '.join(cells)} |")
    return "\n".join(lines)


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("settings", nargs="*", help=f"of {', '.join(SETTINGS)}")
    parser.add_argument("--repetitions", type=int, default=5_000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--populations", default=f"{LISTS},{USERS}")
    parser.add_argument("--part", choices=PARTS, help="instead of the coverage of intervals")
    parser.add_argument(
        "--output", type=Path, help="JSON, written after every setting; what it holds is kept"
    )
    parser.add_argument("--table", action="store_true", help="print what --output holds, and stop")
    arguments = parser.parse_args()
    if arguments.table:
        print(table(json.loads(arguments.output.read_text())))
        return
    if arguments.part:
        function, settings, populations = PARTS[arguments.part]
        for name, setting in settings.items():
            for population in populations:
                text = function(setting, population, arguments.seed, arguments.repetitions)
                print(f"{name}; {population}: {text}", flush=True)
        return
    results: dict[str, object] = {}
    if arguments.output is not None and arguments.output.exists():
        results = json.loads(arguments.output.read_text())
    for name in arguments.settings or SETTINGS:
        for population in arguments.populations.split(","):
            if f"{name}; {population}" in results:
                continue
            start = time.perf_counter()
            measured = measure(SETTINGS[name], population, arguments.seed, arguments.repetitions)
            results[f"{name}; {population}"] = measured
            print(f"{name}; {population} ({time.perf_counter() - start:.0f} s)")
            for label, row in measured["rows"].items():  # type: ignore[attr-defined]
                tuned = (
                    f" saving {row['saving']:.3f} of {row['rho2']:.3f}" if TUNED in label else ""
                )
                print(
                    f"  {label:18} coverage {row['coverage']:.4f} width {row['width']:.4f} "
                    f"({row['width of human']:.3f}, least {row['least width']:.4f}) bias "
                    f"{row['bias in standard errors']:+.3f} exact {row['exact']:.2f}{tuned}",
                    flush=True,
                )
            if arguments.output is not None:
                arguments.output.write_text(json.dumps(results, indent=1) + "\n")


if __name__ == "__main__":
    main()
