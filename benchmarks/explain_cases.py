"""How often `explain` is right, on generated cases whose truth is known.

    python benchmarks/explain_cases.py --cases 400 --outside 100 --held-out 8 --seed 1000

A case: a data set (one of several generators, by its seed), a library, one of its metrics with an
option, a cutoff; the value that the library gives, printed to four digits, is explained. The truth
is the class of conventions that give the same value on these data.

Outside cases: values of other lists than those that are given, moved by at least five last digits.
Held out: each library in turn is not among the known ones.
"""

from __future__ import annotations

import argparse
import random
import statistics
import sys
import time
import warnings
from collections import Counter
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent / "conventions"))
from fixtures import drawn

from unskew.conventions.explaining.explain import nearest, verdict_of
from unskew.conventions.explaining.explanation import rank_of, simplest
from unskew.conventions.explaining.printed import (
    COLLOQUIAL,
    Printed,
    PrintedQuantity,
    Target,
    colloquial,
)
from unskew.conventions.explaining.search import search
from unskew.conventions.laying import lay
from unskew.conventions.libraries import all_libraries
from unskew.conventions.values import ConventionValues
from unskew.evaluation.compat import mean_of_row

CUTOFFS = (3, 5, 10, 20)
LIKED = 4
GENERATORS = ("stars", "whole", "clean", "tied", "twice", "world")


# Data


def columns(rows, names):
    return dict(zip(names, map(list, zip(*rows, strict=True)), strict=True))


def fixture_like(kind, seed):
    """Return judgments and lists (user, item, score), drawn as the fixtures of measurements are."""
    rng = random.Random(seed)
    ratings = [step / 2 for step in range(1, 11)] if kind == "stars" else [1, 2, 3, 4, 5]
    users, special = rng.randint(40, 200), kind not in ("clean", "twice")
    low = rng.randint(3, 20)
    lengths = (low, low) if kind in ("clean", "twice") else (low, low + rng.randint(1, 15))
    judgments, lists = drawn(seed, users, ratings, lengths, special)
    rows = []
    for number, (user, items) in enumerate(lists.items()):
        size = len(items)
        scores = [float(size - place) for place in range(size)]
        if kind == "tied":
            scores = [float((size - place + 2) // 3) for place in range(size)]
        if kind == "twice" and number % 3 == 0 and size > 6:
            items[number % 4 + 2] = items[number % 2]
        rows += [(user, item, score) for item, score in zip(items, scores, strict=True)]
    judged = [(user, item, value) for user, row in judgments.items() for item, value in row.items()]
    return {"judged": judged, "listed": rows, "train": None}


def world_like(seed):
    """Return test ratings of a simulated shop, lists of popular items, and training ratings."""
    import unskew as us

    rng = random.Random(seed)
    world = us.world("shop", users=rng.randint(60, 200), items=rng.randint(40, 120), seed=seed)
    split = next(iter(us.splits.Random(test=0.3).each(world.ratings, seed)))
    model = us.recommend.Popularity().fit(split.train, seed)
    targets = us.targets.AllItems().lists(split, us.Relevance(liked=LIKED), seed=seed)
    run = us.rank(model, targets, rng.choice([10, 20, 30]))
    test, train = split.test.to_polars(), split.train.to_polars()
    return {
        "judged": list(zip(test["user"], test["item"], test["rating"], strict=True)),
        "listed": list(run.to_polars().select("user", "item", "score").iter_rows()),
        "train": list(zip(train["user"], train["item"], train["rating"], strict=True)),
    }


def data_of(seed):
    kind = GENERATORS[seed % len(GENERATORS)]
    return world_like(seed) if kind == "world" else fixture_like(kind, seed)


def laid_of(data):
    train = data["train"] and columns(data["train"], ("user", "item", "rating"))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return lay(
            columns(data["judged"], ("user", "item", "rating")),
            {"run": columns(data["listed"], ("user", "item", "score"))},
            liked=LIKED,
            train=train or None,
        )


def perturbed(data, rng):
    """Return the same data with some places of some lists exchanged."""
    share = rng.choice([0.05, 0.2, 0.6])
    lists = {}
    for user, item, score in data["listed"]:
        lists.setdefault(user, []).append((item, score))
    rows = []
    for user, places in lists.items():
        items = [item for item, _ in places]
        for _ in range(len(items)):
            if rng.random() < share and len(items) > 1:
                a, b = rng.sample(range(len(items)), 2)
                items[a], items[b] = items[b], items[a]
        if rng.random() < share:  # another item than before, at a place far up
            items[rng.randrange(min(5, len(items)))] = rng.choice(data["listed"])[1]
        rows += [(user, item, score) for item, (_, score) in zip(items, places, strict=True)]
    return {**data, "listed": rows}


# Cases


def draw_row(rng, libraries, library=None):
    """Return a library's metric and a cutoff."""
    source = libraries[library or rng.choice(sorted(libraries))]
    row = rng.choice(source.metrics)
    return row, rng.choice(CUTOFFS) if row.has_cutoff else None


def asked(row, k):
    """Return how a paper would call it: by the name that the library gives it."""
    if row.ours:
        return PrintedQuantity(row.family(k), "", k, row.family(k))
    metric = COLLOQUIAL.get(colloquial(row.name)[0], row.metric)
    return PrintedQuantity(f"{metric}@{k}" if row.has_cutoff else metric, metric, k)


def printed_case(laid, row, k):
    """Return the target of a case and the true value; None where there is none to explain."""
    from unskew.errors import UnskewError

    try:
        value = mean_of_row(ConventionValues(laid, "run"), row, k)
    except UnskewError:
        return None
    if not 0.0005 < value < 1e6:
        return None
    return Target("run", asked(row, k), Printed.of(f"{value:.4f}")), value


def answer(laid, targets, truth, libraries):
    """Return verdict, number of classes answered, place of the truth (mid-rank or None), stage."""
    result = search(laid, targets, libraries)
    fitting = sorted(result.fitting, key=rank_of)
    first = next((simplest(one) for one in [*fitting, *nearest(result)]), None)
    expected = result.expected(first)
    verdict = verdict_of(len(fitting), expected)
    place = None
    for one in fitting:
        if max(abs(a - b) for a, b in zip(one.values, truth, strict=True)) < 1e-10:
            keys = [rank_of(other) for other in fitting]
            before = sum(key < rank_of(one) for key in keys)
            same = sum(key == rank_of(one) for key in keys)
            place = before + (same + 1) / 2
    return verdict, len(fitting), place, (result.stage, expected)


def inside(cases, seed, libraries, library=None, known=None):
    """Explain values of known libraries; or of one `library` that is not among the `known`."""
    results, number = [], seed
    while len(results) < cases:
        number += 1
        rng = random.Random(number)
        laid = laid_of(data_of(number))
        row, k = draw_row(rng, libraries, library)
        case = printed_case(laid, row, k)
        if case is None:
            continue
        target, value = case
        results.append((row, *answer(laid, (target,), (value,), known or libraries)))
    return results


def outside(cases, seed, libraries, values=1):
    """Explain values of other lists, of which none is right."""
    verdicts, number = [], seed
    while len(verdicts) < cases:
        number += 1
        rng = random.Random(number)
        data = data_of(number)
        laid, other = laid_of(data), laid_of(perturbed(data, rng))
        source = rng.choice(sorted(libraries))
        targets = {}
        for _ in range(values):
            row, k = draw_row(rng, libraries, source)
            before, after = (printed_case(one, row, k) for one in (laid, other))
            if before and after and abs(before[1] - after[1]) >= 5e-4:
                targets[before[0].quantity] = before[0]
        if len(targets) < values:
            continue
        verdict, fits, _, stage = answer(other, tuple(targets.values()), (9.0,) * values, libraries)
        verdicts.append((verdict, fits, stage))
        if verdict == "explains":
            print("    explains:", number, source, *map(str, targets.values()), fits, stage)
    return verdicts


def summary(results):
    """Return the shares that the bars are about."""
    places = [place for _, _, _, place, _ in results]
    return {
        "cases": len(results),
        "among": statistics.mean(place is not None for place in places),
        "first": statistics.mean(place is not None and place <= 1.0 for place in places),
        "mid-rank first": statistics.mean(
            0.0 if place is None else max(0.0, min(1.0, 2 - place)) for place in places
        ),
        "median classes": statistics.median(fits for _, _, fits, _, _ in results),
        "verdicts": dict(Counter(verdict for _, verdict, _, _, _ in results)),
    }


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cases", type=int, default=400)
    parser.add_argument("--outside", type=int, default=100)
    parser.add_argument("--several", type=int, default=0, help="outside cases of three values")
    parser.add_argument("--held-out", type=int, default=0, help="cases per library")
    parser.add_argument("--seed", type=int, default=1000)
    options = parser.parse_args()
    libraries = all_libraries()
    start = time.perf_counter()
    results = inside(options.cases, options.seed, libraries)
    print(f"inside ({time.perf_counter() - start:.0f} s):", summary(results))
    for row, verdict, fits, place, stage in results:
        if place is None or place > 1:
            print(
                "   ",
                row.library,
                row.label("k", full=True),
                row.given,
                verdict,
                fits,
                place,
                stage,
            )
    for values, cases in ((1, options.outside), (3, options.several)):
        if cases:
            verdicts = outside(cases, options.seed + 500_000, libraries, values)
            print(
                f"outside, {values} values:",
                dict(Counter(verdict for verdict, _, _ in verdicts)),
                "changed choices",
                dict(Counter(stage for *_, (stage, _) in verdicts)),
            )
            at_once = [fits > 0 and stage == 0 for _, fits, (stage, _) in verdicts]
            print(
                f"    libraries as they are fit in {statistics.mean(at_once):.3f} of these; "
                f"median expected fits {statistics.median(e for *_, (_, e) in verdicts):.3f}"
            )
    if options.held_out:
        everything = []
        for key in libraries:
            rest = {name: one for name, one in libraries.items() if name != key}
            several = inside(options.held_out, options.seed + 900_000, libraries, key, rest)
            everything += several
            print(f"held out {key}: {summary(several)}", flush=True)
        print("held out, all:", summary(everything))


if __name__ == "__main__":
    main()
