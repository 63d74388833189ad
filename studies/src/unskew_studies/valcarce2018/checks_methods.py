"""valcarce2018: checks of claims about its data, split, systems and tests."""

from __future__ import annotations

import math

import numpy as np
import polars as pl

from unskew.evaluation.evaluate import evaluate
from unskew.stats.agreement.power import discriminative_power
from unskew.targets.designs import AllItems, Targets, TestItems
from unskew.targets.lists import TargetLists
from unskew_studies.lab import Lab
from unskew_studies.paper import MeasuredValue
from unskew_studies.valcarce2018.checks import on_results
from unskew_studies.valcarce2018.measurements import (
    DEPTH,
    OurResults,
    ReleasedResults,
    Results,
    authors_split,
    relevance,
    run_of,
    sizes,
)
from unskew_studies.valcarce2018.printed import COLUMNS, SEVEN, TABLE_2

ERRORS = {0.05: 0.001, 0.01: 0.00045}
"""The error that the paper gives for p-values of 100,000 permutations."""


def table_2(lab: Lab, dataset_name: str) -> MeasuredValue:
    """Return whether users, items, ratings and density are as printed."""
    row = lab.table(sizes, dataset_name).row(0, named=True)
    users, items, ratings, density, _ = TABLE_2[dataset_name]
    counts = (row["users"], row["items"], row["ratings"])
    right = counts == (users, items, ratings) and abs(row["density"] - density) <= 0.0005
    text = f"{counts[0]:,} x {counts[1]:,}, {counts[2]:,} ratings, {row['density']:.3f} %"
    return MeasuredValue(right, text=text)


def gini_of_items(lab: Lab, dataset_name: str) -> MeasuredValue:
    """Return how far the Gini index of ratings over items is from the printed one."""
    gini = lab.table(sizes, dataset_name)["gini"][0]
    return MeasuredValue(abs(gini - TABLE_2[dataset_name][-1]), text=f"{gini:.4f}")


def floor_rule(lab: Lab, dataset_name: str) -> MeasuredValue:
    """Return the share of users of whom floor(0.2 n) ratings are in the authors' test set."""
    split, people = authors_split(lab, dataset_name), len(lab.data(dataset_name).ratings.users)
    train, test = (np.bincount(part.user, minlength=people) for part in (split.train, split.test))
    share = float(np.mean(test == (train + test) // 5))
    return MeasuredValue(share, text=f"{share:.2%} of {people:,} users")


def popularity_values(lab: Lab, dataset_name: str) -> MeasuredValue:
    """Return the largest difference between our popularity run and the released one."""
    test = authors_split(lab, dataset_name).test
    theirs = ReleasedResults(lab, dataset_name).means.filter(pl.col("system") == "Pop")
    shared = [column for column in COLUMNS if column in theirs.columns]
    run = {"Pop": run_of(lab, dataset_name, "Pop")}
    ours = evaluate(test, run, shared, relevance=relevance(lab, dataset_name)).means()["Pop"]
    gaps = {column: abs(ours[column] - theirs[column][0]) for column in shared}
    worst = max(gaps, key=lambda column: gaps[column])
    text = f"{len(shared)} metrics, largest difference {gaps[worst]:.6f} ({worst})"
    note = f"On {len(test):,} test ratings; the released values have four decimals."
    return MeasuredValue(gaps[worst], text=text, note=note)


@on_results
def twins(results: Results) -> MeasuredValue:
    """Return the larger difference in nDCG of UIR and Pop, and of RSV and RW."""
    ndcg = dict(results.means.select("system", "ndcg").iter_rows())
    pairs = (("UIR", "Pop"), ("RSV", "RW"))
    text = ", ".join(f"{a} {ndcg[a]:.4f} – {b} {ndcg[b]:.4f}" for a, b in pairs)
    return MeasuredValue(max(abs(ndcg[a] - ndcg[b]) for a, b in pairs), text=text)


def places_moved(lab: Lab, dataset_name: str) -> MeasuredValue:
    """Return by how many places our systems are off the released order by nDCG, at most."""
    theirs, ours = (
        _order(one.means)
        for one in (ReleasedResults(lab, dataset_name), OurResults(lab, dataset_name))
    )
    moved = {name: ours.index(name) - place for place, name in enumerate(theirs)}
    most = max(abs(places) for places in moved.values())
    away = [f"{name} {places:+d}" for name, places in moved.items() if places]
    note = "Ours: " + ", ".join(ours) + "."
    return MeasuredValue(
        most, text=f"at most {most} ({', '.join(away) or 'the same order'})", note=note
    )


def best_by_ndcg(lab: Lab, _dataset_name: str, *, system: str, name: str) -> MeasuredValue:
    """Return whether a system has the best nDCG in released results."""
    means = ReleasedResults(lab, name).means.sort("ndcg", descending=True)
    first, value = means.select("system", "ndcg").row(0)
    return MeasuredValue(first == system, text=f"{first} {value:.4f}")


@on_results
def significant_pairs(results: Results) -> MeasuredValue:
    """Return how far the shares of significant pairs by nDCG and MRR are from .983 and .919."""
    wanted = {"nDCG": 0.983, "MRR": 0.919}
    chosen = results.pvalues.select("a", "b", *(SEVEN[name] for name in wanted))
    rows = discriminative_power(chosen, ordered=True).rows
    shares = dict(zip(wanted, rows["ratio"], strict=True))
    gap = max(abs(round(shares[name], 3) - share) for name, share in wanted.items())
    return MeasuredValue(
        gap, text=", ".join(f"{name} {share:.4f}" for name, share in shares.items())
    )


@on_results
def permutations_used(results: Results) -> MeasuredValue:
    """Estimate the number of permutations from the spread of the p-values.

    Every pair was tested twice, as (a, b) and as (b, a), with other permutations: of B of them the
    two shares differ by a variance of 2 p (1 - p) / B. Metrics of one pair may share permutations,
    so the interval counts pairs.
    """
    table = results.pvalues
    values = [name for name, kind in table.schema.items() if kind == pl.Float64]
    turned = table.select(pl.col("b").alias("a"), pl.col("a").alias("b"), *values)
    both = table.join(turned, on=["a", "b"], suffix="_turned").filter(pl.col("a") < pl.col("b"))
    first = both.select(values).to_numpy()
    second = both.select(f"{name}_turned" for name in values).to_numpy()
    p = (first + second) / 2
    expected = (2 * p * (1 - p)).sum(axis=1)
    squares = ((first - second) ** 2).sum(axis=1)
    number = float(expected.sum() / squares.sum())
    error = float(np.sqrt(((expected - number * squares) ** 2).sum()) / squares.sum())
    low, high = number - 1.96 * error, number + 1.96 * error
    note = (
        f"From the differences of p(a, b) and p(b, a) of {both.height} pairs by {len(values)} "
        "metrics."
    )
    if np.allclose(first * 10_000, np.round(first * 10_000), rtol=0, atol=1e-6):
        note += " All released p-values are multiples of 1/10,000 too."
    return MeasuredValue(number, low, high, text=f"{number:,.0f}", note=note)


def monte_carlo_error(_lab: Lab, _dataset_name: str) -> MeasuredValue:
    """Return the standard error of a Monte-Carlo p-value, relative to what the paper gives."""
    errors = {p: math.sqrt(p * (1 - p) / 100_000) for p in ERRORS}
    ratio = max(errors[p] / given for p, given in ERRORS.items())
    text = ", ".join(f"{error:.5f} at p = {p:g}" for p, error in errors.items())
    note = f"The paper's errors are {1 / ratio:.1f} standard errors, less than a 95 % interval."
    return MeasuredValue(ratio, text=text, note=note)


def inferred_is_average(lab: Lab, _dataset_name: str) -> MeasuredValue:
    """Return the largest difference between infAP and AP where every item is judged."""
    rng = np.random.default_rng(lab.seed)
    users, items = 200, 40
    grid = {"user": np.repeat(np.arange(users), items), "item": np.tile(np.arange(items), users)}
    judged = pl.DataFrame({**grid, "rating": rng.integers(1, 6, users * items)})
    run = {user: rng.permutation(items).tolist() for user in range(users)}
    scores = evaluate(judged, {"run": run}, ["infAP2", "AP"], liked=4)
    inferred, average = scores.systems["run"].values
    gap = float(np.nanmax(np.abs(inferred - average)))
    return MeasuredValue(gap, text=f"at most {gap:.1e} apart")


def random_of_all_items(lab: Lab, dataset_name: str) -> MeasuredValue:
    """Return how many standard errors the released Random run is from ranking all items.

    P@100 of a random order of N targets, K of them liked, has the variance of a hypergeometric
    draw. What rounding to four decimals could do is taken off.
    """
    split = authors_split(lab, dataset_name)
    released = ReleasedResults(lab, dataset_name).means.filter(pl.col("system") == "Random")[
        "P_100"
    ][0]
    away, rule = {}, relevance(lab, dataset_name)
    designs: dict[str, Targets] = {"all items": AllItems(), "items of the test set": TestItems()}
    for name, design in designs.items():
        expected, error = _chance(design.lists(split, relevance=rule))
        away[name] = max(abs(released - expected) - 5e-5, 0) / error, expected, error
    text = "; ".join(
        f"{name}: {expected:.5f} ± {error:.5f}" for name, (_, expected, error) in away.items()
    )
    best = min(away, key=lambda name: away[name][0])
    note = f"The released run has P@100 {released:.4f}: candidates were the {best}."
    return MeasuredValue(away["all items"][0], text=text, note=note)


def _chance(lists: TargetLists) -> tuple[float, float]:
    """Return mean and standard error of P@100 of a random order of the targets."""
    test = lists.tests
    liked = np.bincount(test.user[lists.relevance.is_liked(test.value)], minlength=len(test.users))
    size, good = lists.size.astype(float), liked[lists.user].astype(float)
    drawn = np.minimum(DEPTH, size)
    share = good / size
    spread = drawn * share * (1 - share) * (size - drawn) / (size - 1)
    return float(np.mean(drawn * share)) / DEPTH, math.sqrt(spread.sum()) / DEPTH / len(size)


def _order(means: pl.DataFrame) -> list[str]:
    return means.sort("ndcg", descending=True, maintain_order=True)["system"].to_list()
