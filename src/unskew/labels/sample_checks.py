"""Whether a sample of recommended pairs could be the random one that it is taken for."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace
from statistics import NormalDist
from typing import Any

import numpy as np

from unskew.arrays import F64, I32, I64, Mask
from unskew.labels.contrast_sides import CARRIERS, drawn_covariance, effective_number
from unskew.labels.human_samples import SIMPLE, STRATIFIED, HumanSample
from unskew.labels.recommended_pairs import RecommendedPairs
from unskew.report.columns import (
    GROUP,
    HIGH,
    LOW,
    NOTE,
    SIGNIFICANT,
    Column,
    Method,
    P,
    Question,
)
from unskew.report.estimates import Estimates
from unskew.splits.looks_random import chi_square_tail
from unskew.stats.clusters import variance_of
from unskew.stats.intervals.means import student_ends
from unskew.stats.intervals.shares import clopper_pearson

LEVEL = 0.01
"""How often at most a random sample is called not random, over all tests together."""
SAMPLE = Question(
    name="does the sample look random?",
    columns=(Column("test", "key"), P, SIGNIFICANT, NOTE),
    method=Method(
        estimand="whether the pairs that people labelled were drawn as stated",
        unit="pairs",
        test="of sampled pairs against all pairs",
    ),
    figures=(),
)
"""`significant`: the test rejects at `LEVEL`, shared by all (Bonferroni); `note`: what is seen."""
AGREEMENT = Question(
    name="agreement of annotator and people",
    columns=(
        *(Column("of", "key", hidden=True), GROUP, Column("labels", "count")),
        *(Column("agree", "share"), Column("value", "value", "kappa"), LOW, HIGH),
        *(Column(f"liked_by_{who}", "share", hidden=True) for who in ("people", "annotator")),
    ),
    method=Method(
        estimand="Cohen's kappa, weighted by 1 / probability", unit="pairs", interval="t"
    ),
    digits=2,
)
"""A row per group of pairs; `of` is what it is one of: `all`, `stratum`, `rank`, `popularity`.

Kappa is (agree - chance) / (1 - chance), null where both give one and the same label throughout. It
has no interval where fewer than 10 labels of people, or of the annotator, are liked, or disliked.
"""
_Test = tuple[str, float, str]
"""What is compared, p, and what is seen where it rejects."""


def check_sample(
    pairs: RecommendedPairs, sample: HumanSample, label: F64, frame: I64 | None = None
) -> Estimates:
    """Test whether sampled pairs look drawn as stated among the recommended ones.

    Means of ranks, popularity, labels of the annotator and systems, weighted by 1 / probability,
    against those of all pairs; the sum of these weights against the number of pairs; and, of a
    simple sample, whether it holds more pairs of the same user, or of the same item, than chance
    gives. A sample of whole users fails that, and its intervals would be too narrow.

    Parameters
    ----------
    pairs, sample
        The recommended pairs, and those that people labelled.
    label
        The annotator's label of each recommended pair.
    frame
        The recommended pairs that could be drawn, where these are not all, ascending.
    """
    drawn_from = np.arange(len(pairs)) if frame is None else frame
    inside = replace(sample, row=np.searchsorted(drawn_from, sample.row))
    tests = [
        _mean_test(of, column[drawn_from], inside, words)
        for of, column, words in _columns(pairs, label)
    ]
    if sample.kind == SIMPLE:
        for of, code in (("users", pairs.user), ("items", pairs.item)):
            tests += _alike(of, code[drawn_from], inside.row)
    else:
        tests.append(_size(sample, drawn_from.size))
    rows = [
        (of, p, is_rejected, sentence if is_rejected else "")
        for of, p, sentence in tests
        for is_rejected in [p < LEVEL / len(tests)]
    ]
    count = sum(row[2] for row in rows)
    verdict = "does not look random" if count else "looks random"
    line = f"the sample {verdict} (level {LEVEL:g}, {len(tests)} tests)"
    return Estimates.of_rows(SAMPLE, rows, explanation=(line,), card={"level": LEVEL})


def looks_random(check: Estimates) -> bool:
    """Tell whether no test of `check_sample` rejects."""
    return not check.rows["significant"].any()


def _columns(pairs: RecommendedPairs, label: F64) -> Iterator[tuple[str, F64, tuple[str, str]]]:
    """Give what pairs are compared by, and how they are said to differ: upwards and downwards."""
    rank = np.log2(pairs.best_rank.astype(np.float64))
    words = ("stand lower in the lists", "stand higher in the lists")
    yield "rank", rank, words
    order = _middle_ranks(pairs.popularity)
    words = ("are of more popular items", "are of less popular items")
    yield "popularity", order, words
    words = ("are liked by the annotator more often", "are liked by the annotator less often")
    yield "annotator's label", label, words
    for name, listed in pairs.lists.items():
        mine = np.zeros(len(pairs))
        mine[listed.pair] = 1.0
        words = (f"are recommended by {name} more often", f"are recommended by {name} less often")
        yield f"system {name}", mine, words


def _mean_test(of: str, column: F64, sample: HumanSample, words: tuple[str, str]) -> _Test:
    """Compare the weighted mean over the sample with that over all pairs."""
    centred = column - column.mean()
    values = centred[sample.row]
    n, size = values.size, centred.size
    if sample.kind == SIMPLE:
        spread = float((centred**2).sum()) / max(size - 1, 1)
        value, variance = float(values.mean()), (1 - n / size) * spread / n
    else:
        added = values / sample.probability
        value = float(added.sum())
        variance = drawn_covariance(sample, added, added)
    z = value / math.sqrt(variance) if variance > 1e-15 * max(value * value, 1e-300) else 0.0
    p = _two_sided(z)
    return of, p, f"sampled pairs {words[0] if z > 0 else words[1]} than all pairs (p = {p:.2g})"


def _two_sided(z: float) -> float:
    return min(2 * NormalDist().cdf(-abs(z)), 1.0)


def _middle_ranks(values: I64) -> F64:
    """Return ranks from 0 to 1, equal values sharing the middle of theirs."""
    ascending = np.sort(values)
    low = np.searchsorted(ascending, values, "left")
    high = np.searchsorted(ascending, values, "right")
    return (low + high) / (2.0 * values.size)


def _size(sample: HumanSample, number: int) -> _Test:
    """Compare what the probabilities add up to with the number of recommended pairs."""
    weight = 1 / sample.probability
    total = float(weight.sum())
    variance = float(((1 - sample.probability) * weight**2).sum()) + 1.0
    z = (total - number) / math.sqrt(variance)
    p = _two_sided(z)
    sentence = (
        f"the probabilities stand for {total:,.0f} pairs, but {number:,} are recommended "
        f"(p = {p:.2g})"
    )
    return "probabilities", p, sentence


def _alike(of: str, code: I32, row: I64) -> Iterator[_Test]:
    """Test whether a simple sample holds more couples of pairs with the same code than expected.

    Expectation and variance of their number are exact; its distribution is taken as a gamma
    distribution, whose tail is a little longer than that of so few counts.
    """
    size = np.bincount(code).astype(np.float64)
    total, n = float(code.size), float(row.size)
    couples = float((size * (size - 1)).sum()) / 2
    if couples == 0 or n < 2:
        return
    threes = float((size * (size - 1) * (size - 2)).sum()) / 2
    two, three, four = (_falling(n, total, count) for count in (2, 3, 4))
    mean = couples * two
    variance = mean + 2 * threes * three + (couples**2 - couples - 2 * threes) * four - mean**2
    if variance <= 1e-9 * mean:
        return
    counts = np.bincount(code[row]).astype(np.float64)
    value = float((counts * (counts - 1)).sum()) / 2
    shape, scale = mean**2 / variance, variance / mean
    p = chi_square_tail(2 * max(value - 0.5, 0.0) / scale, 2 * shape)
    sentence = f"sampled pairs share their {of} more often than chance would give (p = {p:.2g})"
    yield of, p, sentence


def _falling(n: float, total: float, count: int) -> float:
    """Return the probability that `count` given pairs are all drawn."""
    result = 1.0
    for step in range(count):
        result *= max(n - step, 0.0) / max(total - step, 1.0)
    return result


def agreements(
    pairs: RecommendedPairs, sample: HumanSample, people: Mask, annotator: Mask, level: float
) -> Estimates:
    """Return the agreement over all pairs, then by stratum; without strata by rank and popularity.

    Parameters
    ----------
    pairs, sample
        The recommended pairs, and those that people labelled.
    people, annotator
        By sampled pair: whether each likes it.
    level
        Of the intervals, over draws of the sample.
    """
    rows = [
        {"of": of, "group": group, **_agreement(sample, inside, people, annotator, level)}
        for of, group, inside in _groups(pairs, sample)
        if inside.any()
    ]
    return Estimates.of_rows(AGREEMENT, rows, level=level)


def _groups(pairs: RecommendedPairs, sample: HumanSample) -> Iterator[tuple[str, str, Mask]]:
    """Yield what groups of the sampled pairs are of, their names and members."""
    yield "all", "all pairs", np.ones(len(sample), np.bool_)
    divisions: list[tuple[str, tuple[str, ...], I32 | I64]] = [
        ("stratum", sample.names, sample.stratum)
    ]
    if sample.kind != STRATIFIED:
        strata = {of: pairs.strata(of) for of in ("rank", "popularity")}
        divisions = [
            (of, parts.names, parts.code[sample.row])
            for of, parts in strata.items()
            if len(parts.names) > 1
        ]
    for of, names, code in divisions:
        yield from ((of, name, code == number) for number, name in enumerate(names))


def _agreement(
    sample: HumanSample, inside: Mask, people: Mask, annotator: Mask, level: float
) -> dict[str, Any]:
    """Return the numbers of a row for the sampled pairs of a group."""
    weight = 1.0 / sample.probability[inside]
    total = float(weight.sum())
    y, f = people[inside].astype(np.float64), annotator[inside].astype(np.float64)
    p, q = (float((weight * column).sum()) / total for column in (y, f))
    apart = np.abs(y - f)
    errors = float((weight * apart).sum()) / total
    chance = p * (1 - q) + q * (1 - p)
    row = {
        "labels": int(inside.sum()),
        "agree": 1.0 - errors,
        "liked_by_people": p,
        "liked_by_annotator": q,
    }
    if chance <= 0:
        return row
    row["value"] = kappa = 1.0 - errors / chance
    number = effective_number(weight)
    if min(p, 1 - p, q, 1 - q) * number < CARRIERS:
        return row
    # With few errors, or few agreements, what chance would give is taken as certain: it is far less
    # uncertain than the share of errors.
    if min(errors, 1 - errors) * number < CARRIERS or weight.size < 3:
        lowest, highest = clopper_pearson(errors * number, number, level)
        low, high = 1.0 - float(highest) / chance, 1.0 - float(lowest) / chance
    else:
        slope = (1 - 2 * q) * (y - p) + (1 - 2 * p) * (f - q)
        influence = weight / total * (errors / chance**2 * slope - (apart - errors) / chance)
        unsampled = 1.0 - sample.probability[inside]
        if sample.kind == SIMPLE:
            unsampled = np.full(weight.size, 1.0 - float(sample.probability.mean()))
        size = weight.size
        variance = float(variance_of(np.sqrt(unsampled) * influence, size))
        low, high = student_ends(kappa, math.sqrt(variance), size - 1, level)
    return row | {"low": max(low, -1.0), "high": min(high, 1.0)}
