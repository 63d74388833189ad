"""Whether a sample of recommended pairs could be the random one that it is taken for."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from statistics import NormalDist

import numpy as np
import polars as pl

from unskew.arrays import F64, I32, I64, Mask
from unskew.labels.contrast_sides import CARRIERS, effective_number
from unskew.labels.human_samples import SIMPLE, STRATIFIED, UNEQUAL, HumanSample
from unskew.labels.recommended_pairs import PairStrata, RecommendedPairs
from unskew.report.result import Result
from unskew.splits.looks_random import chi_square_tail
from unskew.stats.intervals.shares import clopper_pearson
from unskew.stats.special import student_t_quantile

LEVEL = 0.01
"""How often at most a random sample is called not random, over all tests together."""


@dataclass(frozen=True, kw_only=True)
class SampleTest:
    """One test: whether sampled pairs differ from all pairs in some respect."""

    of: str
    p: float
    sentence: str
    """What is seen where it rejects."""


@dataclass(frozen=True, kw_only=True)
class SampleCheck(Result):
    """Tests of whether the pairs that people labelled were drawn as stated. Part of `Assisted`."""

    tests: tuple[SampleTest, ...]
    level: float = LEVEL

    @property
    def random(self) -> bool:
        """Whether no test rejects at the level, shared by all (Bonferroni)."""
        return not self.rejected

    @property
    def rejected(self) -> tuple[SampleTest, ...]:
        """The tests that reject."""
        return tuple(test for test in self.tests if test.p < self.level / len(self.tests))

    def table(self) -> pl.DataFrame:
        """Return a row per test: of, p."""
        rows = [{"of": test.of, "p": test.p} for test in self.tests]
        return pl.DataFrame(rows, {"of": pl.String, "p": pl.Float64})

    def _summary(self) -> str:
        verdict = "looks random" if self.random else "does not look random"
        return f"{verdict} (level {self.level:g}, {len(self.tests)} tests)"

    def _explanation(self) -> list[str]:
        return [self._summary(), *(test.sentence for test in self.rejected)]

    def _content(self) -> dict[str, object]:
        return {"random": self.random, "level": self.level, "tests": self.table()}


def check_sample(
    pairs: RecommendedPairs, sample: HumanSample, label: F64, frame: I64 | None = None
) -> SampleCheck:
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
    rows = np.arange(len(pairs)) if frame is None else frame
    inside = replace(sample, row=np.searchsorted(rows, sample.row))
    tests = [
        _mean_test(of, column[rows], inside, words) for of, column, words in _columns(pairs, label)
    ]
    if sample.kind == SIMPLE:
        for of, code in (("users", pairs.user), ("items", pairs.item)):
            tests += _alike(of, code[rows], inside.row)
    else:
        tests.append(_size(sample, rows.size))
    return SampleCheck(tests=tuple(tests))


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


def _mean_test(of: str, column: F64, sample: HumanSample, words: tuple[str, str]) -> SampleTest:
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
        variance = _spread(sample, added)
    z = value / math.sqrt(variance) if variance > 1e-15 * max(value * value, 1e-300) else 0.0
    p = min(2 * NormalDist().cdf(-abs(z)), 1.0)
    sentence = f"sampled pairs {words[0] if z > 0 else words[1]} than all pairs (p = {p:.2g})"
    return SampleTest(of=of, p=p, sentence=sentence)


def _spread(sample: HumanSample, added: F64) -> float:
    """Return the variance of Σ added over draws of the sample."""
    if sample.kind == UNEQUAL:
        return float(((1 - sample.probability) * added**2).sum())
    size = len(sample.names)
    sums = np.bincount(sample.stratum, added, size)
    squares = np.bincount(sample.stratum, added**2, size)
    number = np.maximum(sample.number, 1.0)
    inside = (squares - sums**2 / number) * number / np.maximum(number - 1.0, 1.0)
    return float((sample.unsampled * inside).sum())


def _middle_ranks(values: I64) -> F64:
    """Return ranks from 0 to 1, equal values sharing the middle of theirs."""
    ascending = np.sort(values)
    low = np.searchsorted(ascending, values, "left")
    high = np.searchsorted(ascending, values, "right")
    return (low + high) / (2.0 * values.size)


def _size(sample: HumanSample, number: int) -> SampleTest:
    """Compare what the probabilities add up to with the number of recommended pairs."""
    weight = 1 / sample.probability
    total = float(weight.sum())
    variance = float(((1 - sample.probability) * weight**2).sum()) + 1.0
    z = (total - number) / math.sqrt(variance)
    p = min(2 * NormalDist().cdf(-abs(z)), 1.0)
    sentence = (
        f"the probabilities stand for {total:,.0f} pairs, but {number:,} are recommended "
        f"(p = {p:.2g})"
    )
    return SampleTest(of="probabilities", p=p, sentence=sentence)


def _alike(of: str, code: I32, row: I64) -> Iterator[SampleTest]:
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
    yield SampleTest(of=of, p=p, sentence=sentence)


def _falling(n: float, total: float, count: int) -> float:
    """Return the probability that `count` given pairs are all drawn."""
    result = 1.0
    for step in range(count):
        result *= max(n - step, 0.0) / max(total - step, 1.0)
    return result


@dataclass(frozen=True, kw_only=True)
class AnnotatorAgreement:
    """The agreement of annotator and people on a group of recommended pairs."""

    group: str
    of: str
    """What the group is one of: `all`, `stratum`, `rank` or `popularity`."""
    labels: int
    """How many pairs both labelled."""
    agree: float
    """The share of the pairs on which they agree."""
    kappa: float
    """(agree - chance) / (1 - chance); NaN where both give one and the same label throughout."""
    low: float
    """NaN where fewer than 10 labels of people, or of the annotator, are liked, or disliked."""
    high: float
    liked_by_people: float
    liked_by_annotator: float


_SCHEMA = {
    "of": pl.String,
    "group": pl.String,
    "labels": pl.Int64,
    "agree": pl.Float64,
    "kappa": pl.Float64,
    "low": pl.Float64,
    "high": pl.Float64,
    "liked_by_people": pl.Float64,
    "liked_by_annotator": pl.Float64,
}


def agreements(
    pairs: RecommendedPairs, sample: HumanSample, people: Mask, annotator: Mask, level: float
) -> tuple[AnnotatorAgreement, ...]:
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
    everything = np.ones(len(sample), np.bool_)
    rows = [_agreement("all", "all pairs", sample, people, annotator, everything, level)]
    for of, strata, code in _groups(pairs, sample):
        for number, name in enumerate(strata):
            inside = code == number
            if inside.any():
                rows.append(_agreement(of, name, sample, people, annotator, inside, level))
    return tuple(rows)


def _groups(
    pairs: RecommendedPairs, sample: HumanSample
) -> Iterator[tuple[str, tuple[str, ...], I64]]:
    if sample.kind == STRATIFIED:
        yield "stratum", sample.names, sample.stratum
        return
    for of in ("rank", "popularity"):
        strata: PairStrata = pairs.strata(of)
        if len(strata.names) > 1:
            yield of, strata.names, strata.code[sample.row].astype(np.int64)


def _agreement(
    of: str,
    group: str,
    sample: HumanSample,
    people: Mask,
    annotator: Mask,
    inside: Mask,
    level: float,
) -> AnnotatorAgreement:
    weight = 1.0 / sample.probability[inside]
    total = float(weight.sum())
    y, f = people[inside].astype(np.float64), annotator[inside].astype(np.float64)
    p, q = (float((weight * column).sum()) / total for column in (y, f))
    apart = np.abs(y - f)
    errors = float((weight * apart).sum()) / total
    chance = p * (1 - q) + q * (1 - p)
    kappa, low, high = math.nan, math.nan, math.nan
    if chance > 0:
        kappa = 1.0 - errors / chance
    if chance > 0 and min(p, 1 - p, q, 1 - q) * effective_number(weight) >= CARRIERS:
        slope = (1 - 2 * q) * (y - p) + (1 - 2 * p) * (f - q)
        influence = weight / total * (errors / chance**2 * slope - (apart - errors) / chance)
        low, high = _interval(sample, inside, weight, apart, influence, kappa, chance, level)
    return AnnotatorAgreement(
        of=of,
        group=group,
        labels=int(inside.sum()),
        agree=1.0 - errors,
        kappa=kappa,
        low=low,
        high=high,
        liked_by_people=p,
        liked_by_annotator=q,
    )


def _interval(
    sample: HumanSample,
    inside: Mask,
    weight: F64,
    apart: F64,
    influence: F64,
    kappa: float,
    chance: float,
    level: float,
) -> tuple[float, float]:
    """Return the interval of kappa: by its influences; with few errors by those of their share.

    With few errors, or few agreements, what chance would give is taken as known: it is far less
    uncertain than the share of errors.
    """
    number = effective_number(weight)
    errors = float((weight * apart).sum()) / float(weight.sum())
    is_sparse = min(errors, 1 - errors) * number < CARRIERS
    if is_sparse or weight.size < 3:
        lowest, highest = clopper_pearson(errors * number, number, level)
        return max(1.0 - float(highest) / chance, -1.0), min(1.0 - float(lowest) / chance, 1.0)
    keep = 1.0 - sample.probability[inside]
    if sample.kind == SIMPLE:
        keep = np.full(weight.size, 1.0 - float(sample.probability.mean()))
    size = weight.size
    variance = float((keep * influence**2).sum()) * size / (size - 1)
    half = student_t_quantile((1 + level) / 2, size - 1) * math.sqrt(variance)
    return max(kappa - half, -1.0), min(kappa + half, 1.0)


def agreement_table(rows: tuple[AnnotatorAgreement, ...]) -> pl.DataFrame:
    """Return a row per group."""
    return pl.DataFrame([vars(row) for row in rows], _SCHEMA).with_columns(
        pl.col(pl.Float64).fill_nan(None)
    )
