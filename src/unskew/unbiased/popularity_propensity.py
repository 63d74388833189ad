"""Propensities from the popularity of an item, or from the rating itself (naive Bayes)."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from unskew.arrays import F64, I32
from unskew.data.ratings import Ids, Ratings
from unskew.data.relevance import Relevance
from unskew.errors import DataError, SettingError
from unskew.report.text import counted
from unskew.runs import read_run
from unskew.unbiased.chance_models import STEPS, ChanceModel, RatingEvidence, from_0_up

MOST_EXPONENT = 30
"""Of popularity; in data it lies near 1, and far larger ones are beyond all numbers."""


def popularity_model(
    evidence: RatingEvidence, exponent: float | None, shown: object, rule: Relevance | None
) -> ChanceModel:
    """Model p(rated | i) = c n(i)^exponent."""
    counts = evidence.counts()
    facts: dict[str, Any] = {}
    notes: list[str] = []
    if exponent is not None:
        power = from_0_up("exponent", exponent)
        if power > MOST_EXPONENT:
            raise SettingError(f"exponent must be at most {MOST_EXPONENT}, got {exponent:g}")
    elif shown is not None:
        gamma = _shown_gamma(evidence, shown, counts)
        power = (gamma + 1) / 2
        facts["gamma"] = gamma
    elif rule is not None:
        return _fitted_popularity(evidence, counts, rule)
    else:
        power = 1.0
        notes.append(
            "exponent 1: correct if, given the item, being rated does not depend on being "
            "liked; random=… or shown=… fits the exponent"
        )
    facts["exponent"] = power
    shape = _power(counts, power)
    # As many ratings in all as there are; with exponent 1 the share of users who rated i.
    scale = float(counts.sum()) / (evidence.users * float(shape.sum()))
    p = _at_most_1(scale * shape, notes)
    # n(i) is what all ratings of an item add up to, so chances of all of them are in proportion to
    # it. Another exponent can hold for a part of the ratings only: the liked ones (Yang et al.).
    known = power == 1.0
    if not known:
        notes.append(
            "the propensities are of liked ratings, up to a factor: P, DCG, RBP and anti-metrics "
            "cannot be estimated from them"
        )

    def of(user: I32, item: I32, value: F64) -> F64:  # noqa: ARG001 - all models are asked alike
        return p[item]

    return ChanceModel("popularity", of, facts, known, tuple(notes), liked_only=not known)


def _fitted_popularity(evidence: RatingEvidence, counts: F64, rule: Relevance) -> ChanceModel:
    """Model p(rated | liked or not, i) = c n(i)^exponent, both fitted for each of the two."""
    notes = ["exponent and scale fitted from randomly chosen items: p(rated | liked or not, item)"]
    liked, facts = _fit_power(evidence, counts, rule, True)
    disliked, more = _fit_power(evidence, counts, rule, False)
    by_side = np.array([_at_most_1(disliked, notes), _at_most_1(liked, notes)])

    def of(user: I32, item: I32, value: F64) -> F64:  # noqa: ARG001
        return by_side[rule.is_liked(value).astype(np.int64), item]

    return ChanceModel("popularity", of, {**facts, **more}, True, tuple(notes))


def _power(counts: F64, exponent: float) -> F64:
    return np.where(counts > 0, np.maximum(counts, 1.0) ** exponent, 0.0)


def _at_most_1(p: F64, notes: list[str]) -> F64:
    over = int(np.count_nonzero(p > 1))
    if over:
        notes.append(f"{counted(over, 'item')} would have a propensity above 1: set to 1")
    return np.minimum(p, 1.0)


def _shown_gamma(evidence: RatingEvidence, shown: object, counts: F64) -> float:
    """Fit how often items are shown as a power of how often they are rated, by least squares."""
    run = read_run(shown)
    items, (ours, theirs) = Ids.union(evidence.test.items, run.items)
    times = np.zeros(len(items))
    listed = run.item[run.item >= 0]
    times[theirs] = np.bincount(listed, minlength=len(run.items))
    shown_times = times[ours]
    both = (shown_times > 0) & (counts > 0)
    x, y = np.log(counts[both]), np.log(shown_times[both])
    if x.size < 2 or np.ptp(x) == 0:
        raise DataError(
            f"shown: {counted(x.size, 'item is', 'items are')} both shown and rated, not enough "
            "to fit an exponent; give exponent=…"
        )
    x = x - x.mean()
    return float(x @ (y - y.mean()) / (x @ x))


def _fit_power(
    evidence: RatingEvidence, counts: F64, rule: Relevance, liked: bool
) -> tuple[F64, dict[str, float]]:
    """Fit c and the exponent from the liked (or disliked) ratings and random ratings of each item.

    Of an item that λ users like, λp liked ratings are expected and λs random ones, s being the
    share of pairs that were chosen at random. Given their total, the former are binomial with
    odds p/s: a logistic regression on log n(i) from which λ has gone. The same holds for ratings
    that are not liked. Returns p of each item, and the exponent.
    """
    side = "liked" if liked else "disliked"
    observed = [_counts(part, rule, liked) for part in (evidence.train, evidence.test)]
    rated = observed[0] + observed[1]
    drawn = _counts(evidence.random, rule, liked)
    used = (rated + drawn > 0) & (counts > 0)
    name = "exponent" if liked else "exponent, disliked"
    if not liked and not rated.any():
        return np.ones(counts.size), {}  # there is nothing to weigh
    if not drawn[used].any() or not rated.any():
        where = "random ratings of rated items" if rated.any() else "ratings"
        raise DataError(
            f"random: no {side} rating to fit the exponent from, as the {where} hold none; give "
            f"more random ratings, or an exponent of 1"
        )
    x = np.log(counts[used])
    design = np.column_stack([np.ones(x.size), x])
    beta = np.zeros(2)
    top, total = rated[used], (rated + drawn)[used]
    for _ in range(STEPS):
        odds = 1.0 / (1.0 + np.exp(-np.clip(design @ beta, -700.0, 700.0)))
        slope = design.T @ (top - total * odds)
        curve = (design * (total * odds * (1 - odds))[:, None]).T @ design
        if np.linalg.matrix_rank(curve) < 2:  # all items alike: no exponent in the data
            beta = np.array([math.log(top.sum() / max(total.sum() - top.sum(), 1.0)), 0.0])
            break
        step = np.linalg.solve(curve, slope)
        beta = beta + step
        if np.abs(step).max() < 1e-10:
            break
    share = len(evidence.random) / (evidence.users * evidence.items)
    return math.exp(beta[0]) * share * _power(counts, float(beta[1])), {name: float(beta[1])}


def _counts(ratings: Ratings, rule: Relevance, liked: bool) -> F64:
    """Return how many liked (or disliked) ratings each item has."""
    mine = rule.is_liked(ratings.value) == liked
    return np.bincount(ratings.item[mine], minlength=len(ratings.items)).astype(np.float64)


def naive_bayes_model(evidence: RatingEvidence, alpha: float) -> ChanceModel:
    """Model p(rated | rating r) = p(r | rated) p(rated) / p(r)."""
    if not len(evidence.random):
        raise SettingError(
            "naive-bayes needs random=…: ratings of randomly chosen items, to know how often each "
            "rating occurs"
        )
    alpha = from_0_up("alpha", alpha)
    values = np.concatenate([evidence.train.value, evidence.test.value])
    levels, times = np.unique(values, return_counts=True)
    at = np.searchsorted(levels, evidence.random.value)
    inside = (at < levels.size) & (levels[np.minimum(at, levels.size - 1)] == evidence.random.value)
    outside = int(np.count_nonzero(~inside))
    drawn = np.bincount(at[inside], minlength=levels.size) + float(alpha)
    if (drawn == 0).any():
        level = levels[int(np.argmin(drawn))]
        raise DataError(
            f"random: the rating {level:g} does not occur, so its propensity is not known; give "
            f"alpha above 0"
        )
    often = drawn / (drawn.sum() + outside)
    rated = values.size / (evidence.users * evidence.items)
    p = times / values.size * rated / often
    notes = []
    if outside:
        notes.append(
            f"{counted(outside, 'random rating has', 'random ratings have')} a value that does "
            "not occur in the data"
        )
    if (p > 1).any():
        notes.append(
            f"{counted(int((p > 1).sum()), 'rating')} would have a propensity above 1: set to 1"
        )
    p = np.minimum(p, 1.0)

    def of(user: I32, item: I32, value: F64) -> F64:  # noqa: ARG001
        place = np.minimum(np.searchsorted(levels, value), levels.size - 1)
        return np.where(levels[place] == value, p[place], np.nan)

    facts = {f"p({level:g})": float(chance) for level, chance in zip(levels, p, strict=True)}
    return ChanceModel("naive-bayes", of, facts, True, tuple(notes))
