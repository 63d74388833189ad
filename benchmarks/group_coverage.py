"""How often the intervals and sentences of group gaps and of user distributions are right.

    python benchmarks/group_coverage.py                      # all parts, 2,000 repetitions
    python benchmarks/group_coverage.py --repeats 500 ratios # one part, quicker

Values of users are drawn by plain numpy (shares of hits, zeros with lognormal values, beta), which
are not worlds of the library, and, in `world`, from the values of 4,000 users of a world on which
two recommenders were trained and judged. What is true is known: expectations in closed form, from
quantiles of the distribution, or the population's own values. Results go to
build/group-coverage.json. The standard error of a coverage of 95 % is 0.5 points with 2,000
repetitions, 0.7 with 1,000.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

import unskew as us
from unskew.stats.compare.gaps import LEAST_OTHERS, LEAST_USERS
from unskew.stats.compare.user_distribution import POINTS, dominance, mean_gain, quantile_band
from unskew.stats.inequality import atkinson, gini, others
from unskew.stats.intervals.shares import net_share, share_of
from unskew.stats.intervals.skewed import (
    Means,
    differences,
    intervals,
    means_of_sums,
    of_means,
    p_values_of,
    sums_by_group,
)
from unskew.stats.tests import group_shuffles
from unskew.stats.tests.group_shuffles import shuffle_groups

Values = NDArray[np.float64]
Draw = Callable[[np.random.Generator, int, int], Values]
SEED = 2700


def _hits(share: float) -> Draw:
    return lambda rng, n, r: (rng.random((n, r)) < share).astype(np.float64)


def _precision(shape: float, scale: float) -> Draw:
    return lambda rng, n, r: rng.binomial(10, np.minimum(rng.gamma(shape, scale, (n, r)), 1)) / 10


def _zeros(share: float) -> Draw:
    return lambda rng, n, r: np.minimum(
        (rng.random((n, r)) < share) * np.exp(rng.normal(-2, 0.8, (n, r))), 1
    )


KINDS: dict[str, Draw] = {
    "hits 10 %": _hits(0.1),
    "hits 30 %": _hits(0.3),
    "P@10": _precision(0.5, 0.2),
    "P@10 low": _precision(0.3, 0.1),
    "nDCG, 60 % zeros": _zeros(0.4),
    "nDCG, 85 % zeros": _zeros(0.15),
    "beta(0.3, 2)": lambda rng, n, r: rng.beta(0.3, 2, (n, r)),
    "beta(2, 3)": lambda rng, n, r: rng.beta(2, 3, (n, r)),
    "uniform": lambda rng, n, r: rng.random((n, r)),
}
PAIRS = [
    ("P@10", "P@10"),
    ("nDCG, 60 % zeros", "nDCG, 60 % zeros"),
    ("nDCG, 85 % zeros", "nDCG, 85 % zeros"),
    ("hits 10 %", "hits 10 %"),
    ("hits 10 %", "hits 30 %"),
    ("P@10", "P@10 low"),
    ("nDCG, 60 % zeros", "P@10 low"),
    ("P@10 low", "nDCG, 85 % zeros"),
    ("beta(0.3, 2)", "uniform"),
    ("beta(2, 3)", "beta(0.3, 2)"),
]
SIZES = [(20, 200), (50, 200), (20, 20), (50, 50), (200, 200), (30, 2000)]


def truth(kind: str) -> float:
    """Return the mean of a kind of values, to about 1e-4 of its size."""
    rng = np.random.default_rng(1)
    return float(np.mean([KINDS[kind](rng, 1000, 4000).mean() for _ in range(10)]))


def _others(values: Values) -> NDArray[np.int64]:
    """Return, of each column, how many values are not the most common one."""
    ordered = np.sort(values, axis=0)
    run, best = np.ones(values.shape[1], np.int64), np.ones(values.shape[1], np.int64)
    for before, here in pairwise(ordered):
        run = np.where(here == before, run + 1, 1)
        best = np.maximum(best, run)
    return len(values) - best


def _means(values: Values) -> Means:
    sums = sums_by_group(values - values.mean(axis=0), np.zeros(len(values), np.int64), 1)
    return means_of_sums(*sums).plus(values.mean(axis=0)[:, None]).pick((slice(None), 0))


def gaps(repeats: int) -> list[dict[str, object]]:
    """Coverage of means, differences and ratios at 95 %, and of differences at 99.4 %."""
    rows = []
    means = {kind: truth(kind) for kind in KINDS}
    for small, large in SIZES:
        for one, other in PAIRS:
            rng = np.random.default_rng([SEED, small, large])
            x, y = KINDS[one](rng, small, repeats), KINDS[other](rng, large, repeats)
            shown = (_others(x) >= LEAST_OTHERS) & (_others(y) >= LEAST_OTHERS)
            assert min(small, large) >= LEAST_USERS
            a, b = _means(x), _means(y)
            at_truth = Means(a.count, a.mean - means[one], a.variance, a.third)
            mean_p = p_values_of(of_means(at_truth))
            shifted = Means(a.count, a.mean - (means[one] - means[other]), a.variance, a.third)
            gap_p = p_values_of(differences(shifted, b))
            ratio_p = p_values_of(differences(a, b.times(means[one] / means[other])))
            known = p_values_of(differences(b.times(0.0), b)) <= 0.05
            rows.append(
                {
                    "users": f"{small}, {large}",
                    "values": f"{one} | {other}",
                    "shown": float(shown.mean()),
                    "mean": _share(mean_p > 0.05, _others(x) >= LEAST_OTHERS),
                    "difference": _share(gap_p > 0.05, shown),
                    "difference_994": _share(gap_p > 0.006, shown),
                    "shown_and_wrong": float(((gap_p <= 0.05) & shown).mean()),
                    "ratio": _share(ratio_p > 0.05, shown & known),
                    "identified": _share(known, shown),
                }
            )
    return rows


def _share(marks: NDArray[np.bool_], among: NDArray[np.bool_]) -> float | None:
    return float(marks[among].mean()) if among.sum() >= 50 else None


def ratios(repeats: int) -> list[dict[str, object]]:
    """Ratios whose denominator is near 0: how often identified, and covered where it is."""
    rows = []
    for share in (0.02, 0.04, 0.06, 0.1, 0.2):
        for large in (100, 400):
            rng = np.random.default_rng([SEED, 2, large])
            x, y = _hits(0.3)(rng, 100, repeats), _zeros(share)(rng, large, repeats)
            rng = np.random.default_rng(1)
            below = float(np.mean([_zeros(share)(rng, 1000, 4000).mean() for _ in range(10)]))
            shown = (_others(x) >= LEAST_OTHERS) & (_others(y) >= LEAST_OTHERS)
            a, b = _means(x), _means(y)
            known = p_values_of(differences(b.times(0.0), b)) <= 0.05
            inside = p_values_of(differences(a, b.times(0.3 / below))) > 0.05
            rows.append(
                {
                    "users with a value": f"{share:.0%} of {large}",
                    "shown": float(shown.mean()),
                    "identified": _share(known, shown),
                    "ratio": _share(inside, shown & known),
                    "shown_and_wrong": float((shown & known & ~inside).mean()),
                }
            )
    return rows


def level(repeats: int) -> list[dict[str, object]]:
    """The permutation test where means are equal: rejections at 5 %, by 999 shuffles."""
    group_shuffles.SHUFFLES = 999
    rows = []
    repeats = min(repeats, 1000)
    means = {kind: truth(kind) for kind in KINDS}
    worlds = [
        ("P@10", "P@10"),
        ("nDCG, 60 % zeros", "nDCG, 60 % zeros"),
        ("nDCG, 85 % zeros", "nDCG, 85 % zeros"),
        ("hits 10 %", "hits 10 %"),
        ("P@10", "beta(2, 3)"),
        ("beta(2, 3)", "P@10"),
        ("nDCG, 60 % zeros", "uniform"),
        ("nDCG, 85 % zeros", "uniform"),
        ("uniform", "nDCG, 85 % zeros"),
    ]
    for small, large in ((20, 100), (20, 200), (50, 50), (100, 20)):
        for one, other in worlds:
            rng = np.random.default_rng([SEED, 3, small, large])
            values = np.concatenate(
                [
                    KINDS[one](rng, small, repeats) / means[one],
                    KINDS[other](rng, large, repeats) / means[other],
                ]
            )
            code = np.repeat([0, 1], [small, large])
            rejected = np.empty(repeats)
            for start in range(0, repeats, 100):  # other shuffles for each hundred
                part = values[:, start : start + 100]
                test = shuffle_groups(part, code, 2, key=("bench",), seed=start)
                rejected[start : start + 100] = test.p[:, 0] <= 0.05
            enough = _others(values[:small]) >= LEAST_OTHERS
            rows.append(
                {
                    "users": f"{small}, {large}",
                    "values, same mean": f"{one} | {other}",
                    "rejected": float(rejected.mean()),
                    "rejected_where_interval": _share(rejected > 0, enough),
                }
            )
    return rows


def indices(repeats: int) -> list[dict[str, object]]:
    """Coverage and bias of Gini and Atkinson across users."""
    rows = []
    for kind, draw in KINDS.items():
        big = draw(np.random.default_rng(1), 400_000, 1)[:, 0]
        exact = {"gini": _gini(big), "atkinson": 1 - np.mean(np.sqrt(big)) ** 2 / big.mean()}
        for users in (50, 100, 400):
            values = draw(np.random.default_rng([SEED, 4, users]), users, min(repeats, 1000))
            row: dict[str, object] = {"values": kind, "users": users}
            for name, function in (("gini", gini), ("atkinson", atkinson)):
                several = [function(np.ascontiguousarray(one)) for one in values.T if one.any()]
                known = [one for one in several if not np.isnan(one.low)]
                right = exact[name]
                row |= {
                    f"{name} shown": len(known) / values.shape[1],
                    f"{name} bias": float(np.mean([one.value for one in several]) - right),
                    f"{name} covers": float(np.mean([o.low <= right <= o.high for o in known]))
                    if len(known) >= 50
                    else None,
                }
            rows.append(row)
    return rows


def _gini(values: Values) -> float:
    x = np.sort(values)
    n = x.size
    return float((2 * np.arange(1, n + 1) - n - 1) @ x / (n * x.sum()))


def bands(repeats: int) -> list[dict[str, object]]:
    """Simultaneous coverage of quantile bands."""
    rows = []
    for kind in ("beta(0.3, 2)", "P@10", "nDCG, 60 % zeros"):
        big = np.sort(KINDS[kind](np.random.default_rng(1), 2_000_000, 1)[:, 0])
        right = big[np.ceil(np.array(POINTS) * big.size).astype(np.int64) - 1]
        for users in (20, 100, 1000):
            values = KINDS[kind](np.random.default_rng([SEED, 5, users]), users, repeats)
            several = [quantile_band(one) for one in values.T]
            held = [bool(((low <= right) & (right <= high)).all()) for _, low, high in several]
            rows.append({"values": kind, "users": users, "covers": float(np.mean(held))})
    return rows


def shares(repeats: int) -> list[dict[str, object]]:
    """Coverage of shares of users and of their difference."""
    rows = []
    for users in (20, 50, 300):
        for better, worse in (
            (0.0, 0.0),
            (0.02, 0.02),
            (0.1, 0.02),
            (0.3, 0.3),
            (0.6, 0.2),
            (1, 0),
        ):
            rng = np.random.default_rng([SEED, 6, users])
            counts = rng.multinomial(users, [better, worse, 1 - better - worse], repeats)
            keep: dict[tuple[int, int], tuple[bool, bool]] = {}
            for up, down, _ in counts.tolist():
                if (up, down) not in keep:
                    _, low, high = share_of(up, users)
                    _, net_low, net_high = net_share(up, down, users)
                    right = better - worse
                    keep[up, down] = (
                        low <= better <= high,
                        net_low - 1e-12 <= right <= net_high + 1e-12,
                    )
            held = np.array([keep[up, down] for up, down, _ in counts.tolist()])
            rows.append(
                {
                    "users": users,
                    "better, worse": f"{better:.0%}, {worse:.0%}",
                    "better covers": float(held[:, 0].mean()),
                    "difference covers": float(held[:, 1].mean()),
                }
            )
    return rows


def _touching(rng: np.random.Generator, users: int) -> tuple[Values, Values]:
    """A far better above the median, equal below: A does not dominate strictly."""
    low = rng.random(users) < 0.5
    one = np.where(low, 0.5 * rng.random(users), 0.5 + 0.5 * rng.random(users) ** 0.3)
    return one, rng.random(users)


def _crossing(rng: np.random.Generator, users: int) -> tuple[Values, Values]:
    """A better above 0.3, a little worse below."""
    one = rng.random(users) ** 0.5
    return np.where(rng.random(users) < 0.1, 0.1 * rng.random(users), one), rng.random(users)


def _same(rng: np.random.Generator, users: int) -> tuple[Values, Values]:
    return rng.random(users), rng.random(users)


def _same_hits(rng: np.random.Generator, users: int) -> tuple[Values, Values]:
    p = rng.beta(1, 4, users)
    return rng.binomial(10, p) / 10, rng.binomial(10, p) / 10


def _same_mean(rng: np.random.Generator, users: int) -> tuple[Values, Values]:
    """A less spread, the same mean: no strict dominance to second order, at the top it touches."""
    base = rng.normal(0, 1, users)
    return 0.5 + 0.05 * base, 0.5 + 0.15 * rng.normal(0, 1, users)


def _skewed_mean(rng: np.random.Generator, users: int) -> tuple[Values, Values]:
    """The same mean, A constant but for noise, B skewed: second order touches at the top."""
    b = rng.gamma(0.5, 0.4, users)
    return 0.2 + 0.02 * rng.normal(0, 1, users), b


def sentences(repeats: int) -> list[dict[str, object]]:
    """False sentences: dominance where there is none, crossing where curves do not cross."""
    rows = []
    worlds = {
        "same values": (_same, True, True, True),
        "same shares of hits": (_same_hits, True, True, True),
        "touch below the median": (_touching, True, True, True),
        "cross near 0": (_crossing, True, True, False),
        "same mean, less spread": (_same_mean, True, True, False),
        "same mean, skewed": (_skewed_mean, True, True, False),
    }
    for name, (draw, first, second, crossing) in worlds.items():
        for users in (60, 300):
            rng = np.random.default_rng([SEED, 7, users])
            count = np.zeros(3)
            for _ in range(repeats):
                one, other = draw(rng, users)
                a, b = dominance(one, other), dominance(other, one)
                limit = 0.05 / (2 * max(a.thresholds.size, 1))
                count += [
                    min(a.first, b.first) <= 0.05,
                    min(a.second, b.second) <= 0.05,
                    a.thresholds.size > 0 and max(a.above.min(), b.above.min()) <= limit,
                ]
            of = (count / repeats).tolist()
            rows.append(
                {
                    "world": name,
                    "users": users,
                    "first order": of[0] if first else None,
                    "second order": of[1] if second else None,
                    "cross": of[2] if crossing else None,
                }
            )
    return rows


def against_the_mean(repeats: int) -> list[dict[str, object]]:
    """False sentences "a has the better mean, but more users are better off with b".

    Differences of users are drawn as they are: either the mean is 0, or as many gain as lose.
    """

    def rare_gains(rng: np.random.Generator, n: int) -> Values:
        return np.where(rng.random(n) < 0.2, 0.2, -0.05)

    def rarer_gains(rng: np.random.Generator, n: int) -> Values:
        return np.where(rng.random(n) < 0.05, 0.95, -0.05)

    def long_tail(rng: np.random.Generator, n: int) -> Values:
        return np.asarray(rng.exponential(0.1, n) - 0.1)

    def as_many(rng: np.random.Generator, n: int) -> Values:
        kind = rng.choice(3, n, p=[0.3, 0.4, 0.3])
        return np.array([-0.05, 0.0, 0.5])[kind]

    def half(rng: np.random.Generator, n: int) -> Values:
        return np.where(rng.random(n) < 0.5, rng.exponential(0.5, n), -0.05)

    rows = []
    kinds = (rare_gains, rarer_gains, long_tail, as_many, half)
    for draw in kinds:
        for users in (20, 60, 300):
            rng = np.random.default_rng([SEED, 8, users])
            false = 0
            for _ in range(repeats):
                difference = draw(rng, users)
                of = mean_gain(difference)
                better, worse = int((difference > 0).sum()), int((difference < 0).sum())
                low, high = intervals(of, 0.95)
                _, net_low, net_high = net_share(better, worse, users, 0.95)
                told = (low > 0 and net_high < 0) or (high < 0 and net_low > 0)
                false += told and others(difference) >= LEAST_OTHERS
            rows.append({"differences": draw.__name__, "users": users, "false": false / repeats})
    return rows


def _population() -> tuple[dict[str, Values], NDArray[np.int64]]:
    """Return values of the users of a world, and their groups by activity."""
    shop = us.world("shop", users=4000, items=400, seed=5)
    (split,) = us.splits.Random(test=0.3).split(shop.ratings, seed=1)
    lists = us.targets.AllItems().lists(split, liked=4)
    systems = {"popularity": us.recommend.Popularity(), "item-knn": us.recommend.ItemKNN(k=20)}
    runs = {name: us.rank(one.fit(split.train), lists, 10) for name, one in systems.items()}
    scores = us.evaluate(split.test, runs, "P@10", liked=4)
    pairing = us.stats.paired(scores)
    count = np.diff(split.train.start)[split.train.users.codes(pairing.users.values)]
    group = np.searchsorted(np.quantile(count, [0.25, 0.5, 0.9]), count)
    matrix = pairing.matrix("P@10")
    return {name: matrix[:, at] for at, name in enumerate(pairing.systems)}, group


def world(repeats: int) -> list[dict[str, object]]:
    """`group_gaps` as called, on users drawn from a world: all intervals of a kind together."""
    values, group = _population()
    names = list(values)
    size = group.size
    rows = []
    for users in (200, 600):
        rng = np.random.default_rng([SEED, 8, users])
        held = {"means": 0, "differences": 0, "ratios": 0, "worst": 0, "may be worst": 0}
        seen, bias, picked = 0, 0.0, 0
        right = {name: [values[name][group == g].mean() for g in range(4)] for name in names}
        for _ in range(min(repeats, 500)):
            chosen = rng.integers(0, size, users)
            table = {"user": np.arange(users)} | {n: values[n][chosen] for n in names}
            by = {"user": np.arange(users), "group": [f"g{g}" for g in group[chosen]]}
            result = us.stats.group_gaps(table, by, least_users=1)
            ok = _judged(result, right, values, group)
            for name in held:
                held[name] += ok[name]
            worst = result.parts["summary"].row(system=names[0])
            if worst.value is not None:
                bias += worst.value - min(right[names[0]])
                picked += 1
            seen += 1
        row: dict[str, object] = {"users": users}
        row |= {name: count / seen for name, count in held.items()}
        rows.append(row | {"bias of the worst mean": bias / max(picked, 1)})
    return rows


def _judged(
    result: us.report.Estimates,
    right: dict[str, list[float]],
    values: dict[str, Values],
    group: NDArray[np.int64],
) -> dict[str, bool]:
    """Tell whether all intervals of each kind hold the truth."""
    ok = dict.fromkeys(("means", "differences", "ratios", "worst", "may be worst"), True)
    rest = {n: [float(v[group != g].mean()) for g in range(4)] for n, v in values.items()}
    for row in result.parts["means"].rows.drop_nulls("low").iter_rows(named=True):
        ok["means"] &= row["low"] <= right[row["system"]][int(row["group"][1])] <= row["high"]
    for row in result.rows.drop_nulls("low").iter_rows(named=True):
        mean, other = (of[row["system"]][int(row["group"][1])] for of in (right, rest))
        true = mean - other if row["quantity"] == "difference" else mean / other
        ok[f"{row['quantity']}s"] &= row["low"] <= true <= row["high"]
    for row in result.parts["summary"].rows.iter_rows(named=True):
        means = right[row["system"]]
        shown = result.parts["means"].where(system=row["system"]).rows.drop_nulls("low")
        known = [int(name[1]) for name in shown["group"]]
        if known and row["low"] is not None:
            least = min(known, key=lambda g: means[g])
            ok["worst"] &= row["low"] <= means[least] <= row["high"]
            ok["may be worst"] &= f"g{least}" in row["may_be_worst"]
    return ok


PARTS = {
    "gaps": gaps,
    "ratios": ratios,
    "level": level,
    "indices": indices,
    "bands": bands,
    "shares": shares,
    "sentences": sentences,
    "against the mean": against_the_mean,
    "world": world,
}


def main() -> None:
    """Run the parts that are named, or all."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("parts", nargs="*", default=list(PARTS))
    parser.add_argument("--repeats", type=int, default=2000)
    parser.add_argument("--output", type=Path, default=Path("build/group-coverage.json"))
    settings = parser.parse_args()
    settings.output.parent.mkdir(parents=True, exist_ok=True)
    done = json.loads(settings.output.read_text()) if settings.output.exists() else {}
    for name in settings.parts:
        start = time.perf_counter()
        done[name] = PARTS[name](settings.repeats)
        settings.output.write_text(json.dumps(done, indent=1))
        print(f"\n{name} ({time.perf_counter() - start:.0f} s)")
        print(" | ".join(done[name][0]))
        for row in done[name]:
            cells = (f"{v:.3f}" if isinstance(v, float) else str(v) for v in row.values())
            print(" | ".join(cells), flush=True)


if __name__ == "__main__":
    main()
