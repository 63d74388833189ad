"""How well an annotator agrees with people on the pairs that both labelled: Cohen's kappa."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import polars as pl

from unskew.arrays import F64, I64, Mask
from unskew.stats.distributions import student_t_quantile
from unskew.unbiased.contrast_sides import CARRIERS, effective_number
from unskew.unbiased.human_samples import SIMPLE, STRATIFIED, HumanSample
from unskew.unbiased.recommended_pairs import PairStrata, RecommendedPairs
from unskew.unbiased.share_intervals import clopper_pearson


@dataclass(frozen=True, kw_only=True)
class Agreement:
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
) -> tuple[Agreement, ...]:
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
        known: PairStrata = pairs.strata(of)
        if len(known.names) > 1:
            yield of, known.names, known.code[sample.row].astype(np.int64)


def _agreement(
    of: str,
    group: str,
    sample: HumanSample,
    people: Mask,
    annotator: Mask,
    inside: Mask,
    level: float,
) -> Agreement:
    weight = 1.0 / sample.probability[inside]
    total = float(weight.sum())
    y, f = people[inside].astype(np.float64), annotator[inside].astype(np.float64)
    p, q = (float((weight * one).sum()) / total for one in (y, f))
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
    return Agreement(
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
    few = min(errors, 1 - errors) * number < CARRIERS
    if few or weight.size < 3:
        least, most = clopper_pearson(errors * number, number, level)
        return max(1.0 - float(most) / chance, -1.0), min(1.0 - float(least) / chance, 1.0)
    keep = 1.0 - sample.probability[inside]
    if sample.kind == SIMPLE:
        keep = np.full(weight.size, 1.0 - float(sample.probability.mean()))
    size = weight.size
    variance = float((keep * influence**2).sum()) * size / (size - 1)
    half = student_t_quantile((1 + level) / 2, size - 1) * math.sqrt(variance)
    return max(kappa - half, -1.0), min(kappa + half, 1.0)


def agreement_table(rows: tuple[Agreement, ...]) -> pl.DataFrame:
    """Return a row per group."""
    return pl.DataFrame([vars(one) for one in rows], _SCHEMA).with_columns(
        pl.col(pl.Float64).fill_nan(None)
    )
