"""Propensities: how likely a target was to be judged, so that each judgment can stand for several.

A judgment of a pair that had the chance p of being judged stands for 1/p pairs like it. Here p is
modelled by the popularity of the item, by the rating (naive Bayes), by features of user and item
(logistic regression), or given.

Targets are the items outside the user's training ratings, so what counts is the chance of being
in the test part *given that the pair is not in training*. A pair that is rated with probability p,
a rating of which goes to the test part with probability σ, has the chance σp / (1 - (1 - σ) p).
"""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from html import escape
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from unskew.arrays import F64, I32, I64, frozen
from unskew.checks import checked, choose, is_number
from unskew.data.ratings import Ids, Ratings, under_one_numbering
from unskew.data.readers import ITEM, USER, read_ratings, read_table
from unskew.data.relevance import Relevance
from unskew.engine.rng import draw
from unskew.errors import DataError, SettingError
from unskew.evaluation.evaluate import relevance_for
from unskew.judging.rank import tile_users
from unskew.report.charts import BLUE, GREY, Figure, as_figure
from unskew.runs import read_run
from unskew.splits.popularity import item_counts
from unskew.splits.split import shared_rows
from unskew.stats.distributions import wilson

METHODS = ("popularity", "naive-bayes", "logistic")
OF = ("observed", "test")
BINS = 10
MOST_PAIRS = 100_000_000
"""Pairs of users and items that a logistic regression looks at; beyond, some of the users."""
MOST_EXPONENT = 30
"""Of popularity; in data it lies near 1, and far larger ones are beyond all numbers."""
LEAST = 1e-12
"""The smallest propensity that is accepted: below, one judgment would stand for more than 10^12."""
STEPS = 50


@dataclass(frozen=True, eq=False)
class Propensity:
    """The chance of each test judgment to be there. Made by `propensity`."""

    value: F64
    """Of each row of `test`: p(judged | target)."""
    test: Ratings
    method: str
    observed: F64
    """The same before the split: p(rated at all). Equal to `value` where that was given."""
    share: float | str
    """σ, the share of the ratings in the test part; `items`: each item's own."""
    known: bool = True
    """Whether the chances are known, or only up to a common factor."""
    liked_only: bool = False
    """Whether the chances hold for liked judgments only, and not for disliked ones."""
    facts: Mapping[str, Any] = field(default_factory=dict)
    calibration: pl.DataFrame | None = None
    """Predicted and found shares of rated pairs among randomly chosen ones, by bins."""
    notes: tuple[str, ...] = ()

    @property
    def weight(self) -> F64:
        """How many pairs each judgment stands for: 1 / value."""
        return frozen(1.0 / self.value)

    def table(self) -> pl.DataFrame:
        """Return a row per test judgment: user, item, rating, propensity."""
        frame = self.test.to_polars().select("user", "item", "rating")
        return frame.with_columns(propensity=pl.Series(self.value))

    def figure(self) -> Figure:
        """Draw how well the model is calibrated: found over predicted shares, in bins."""
        import altair as alt

        if self.calibration is None:
            raise SettingError(
                "a calibration plot needs ratings of randomly chosen items, some of which were "
                "rated anyway: give random=… to propensity"
            )
        rows = self.calibration.to_dicts()
        top = max(max(row["high"], row["predicted"]) for row in rows)
        scale = alt.Scale(domain=[0, top], nice=False)
        whole = alt.Chart(alt.NamedData(name="rows"), width=320, height=320)
        x = alt.X("predicted:Q", title="predicted chance of being rated").scale(scale)
        y = alt.Y("found:Q", title="share that was rated").scale(scale)
        points = whole.mark_point(filled=True, size=70, opacity=1, color=BLUE).encode(x=x, y=y)
        bars = whole.mark_rule(strokeWidth=1.5, color=BLUE).encode(
            x=x, y=alt.Y("low:Q", title="share that was rated").scale(scale), y2="high:Q"
        )
        right = whole.mark_rule(strokeDash=[4, 3], color=GREY).encode(
            x=alt.datum(0.0), y=alt.datum(0.0), x2=alt.datum(top), y2=alt.datum(top)
        )
        return as_figure(alt.layer(right, bars, points), "Calibration", self.footer(), rows)

    def footer(self) -> list[str]:
        """Return the lines that say how the numbers came about."""
        given = ", ".join(f"{name} {_shown(value)}" for name, value in self.facts.items())
        low, high = float(self.value.min()), float(self.value.max())
        line = f"propensity of {len(self.test):,} judgments by {self.method}"
        lines = [f"{line}: {low:.3g} to {high:.3g}" + (f" ({given})" if given else "")]
        return [*lines, *self.notes]

    def __str__(self) -> str:
        return "\n".join(self.footer())

    def __repr__(self) -> str:
        return f"Propensity({self.method}, {len(self.test):,} judgments)"

    def _repr_html_(self) -> str:
        return f"<p>{'<br>'.join(escape(line) for line in self.footer())}</p>"


@checked
def propensity(
    train: object,
    test: object,
    method: str
    | os.PathLike[str]
    | Mapping[Any, float]
    | Callable[[I32], F64]
    | object = "popularity",
    *,
    random: object = None,
    shown: object = None,
    exponent: float | None = None,
    features: Mapping[str, object] | None = None,
    ridge: float | None = None,
    alpha: float | None = None,
    test_share: float | str | None = None,
    of: str | None = None,
    liked: float | None = None,
    relevance: Relevance | str | None = None,
    seed: int = 0,
) -> Propensity:
    """Estimate how likely each test judgment was to be made.

    Parameters
    ----------
    train
        Training ratings; None where there are none.
    test
        Test ratings: the judgments to weigh.
    method
        `popularity`: p(rated | i) = c n(i)^exponent, with n(i) the ratings of the item.
        `naive-bayes` (needs `random`): p(rated | rating) by Bayes' rule, from how often each rating
        occurs in the data and in `random`. `logistic`: logistic regression on features of user and
        item. Or given ones: a mapping from item to probability, a table or file with columns item
        (and user) and propensity, or a function of user numbers that returns users x items.
        Propensities of judgments below 1e-12 are refused.
    random
        Ratings of randomly chosen items (missing at random). Fits exponent and scale of the
        popularity, of liked and of disliked ratings each, and shows the calibration.
    shown
        Lists that the system behind the data showed to users (anything that `read_run` takes):
        fits the exponent as Yang et al. 2018 section 4.3.
    exponent
        Of the popularity. Default: fitted from `random` or `shown`, else 1: then p(rated | i) is
        the share of users who rated the item, right where being rated does not depend on being
        liked. Yang et al.'s γ is 2 x exponent - 1. Any other exponent, given or fitted from
        `shown`, can hold for liked ratings only, and up to a factor: `estimate` then has no value
        of P, DCG, RBP and anti-metrics.
    features
        For `logistic`: tables `users` and `items`, an id column first; numbers are standardised,
        text becomes one column per value. Default: the logarithm of the number of ratings of each
        user and item.
    ridge
        For `logistic`: the penalty of the coefficients (the intercept has none), 1 unless given.
    alpha
        For `naive-bayes`: added to each rating's count in `random`, 1 unless given.
    test_share
        σ, the chance of a rating to be in the test part. Default: the share of `test` in the data.
        `items`: of each item on its own, for splits that are not random (flat test, popular items
        removed).
    of
        What given probabilities are of: of a pair to be in the `test` part where it is not in
        training (default), or to be `observed` at all, in training or test.
    liked, relevance
        Which ratings are liked; for `popularity` fitted from `random`.
    seed
        Of the users that a logistic regression looks at, where there are too many.

    References
    ----------
    Yang et al. 2018 (popularity, Eq. 15); Schnabel et al. 2016 section 5 (naive Bayes, logistic
    regression); castells2018 section 4 (chances given that a pair is not in training).

    Examples
    --------
    >>> from unskew.unbiased.propensities import propensity
    >>> train = {"user": [1, 2], "item": ["a", "a"], "rating": [5, 4]}
    >>> test = {"user": [3, 4], "item": ["a", "b"], "rating": [5, 2]}
    >>> p = propensity(train, test).table()["propensity"]  # σ = 1/2; p(rated) = 3/4 and 1/4
    >>> p.round(4).to_list()
    [0.6, 0.1429]
    """
    tests = read_ratings(test)
    if not len(tests):
        raise DataError("there are no test judgments to weigh")
    nothing = tests.take(np.zeros(0, np.int64))
    trained = nothing if train is None else read_ratings(train)
    chosen = nothing if random is None else read_ratings(random)
    tests, trained, chosen = under_one_numbering(tests, trained, chosen)
    evidence = _Evidence(tests, trained, chosen)
    share = _share(test_share, evidence)
    notes: list[str] = []
    given = not isinstance(method, str) or method not in METHODS
    if given and isinstance(method, str) and not Path(method).exists():
        choose("method", method, METHODS)  # says what is nearest
    _refuse_idle(
        str(method) if not given else "given",
        {
            "random": random,
            "shown": shown,
            "exponent": exponent,
            "features": features,
            "ridge": ridge,
            "alpha": alpha,
            "of": of,
            "liked": liked,
            "relevance": relevance,
        },
    )
    model: _Model
    if given:
        model = _given(method, evidence)
    elif method == "popularity":
        rule = None if random is None else _rule(evidence, liked, relevance)
        model = _popularity(evidence, exponent, shown, rule)
    elif method == "naive-bayes":
        model = _naive_bayes(evidence, 1.0 if alpha is None else alpha)
    else:
        model = _logistic(evidence, features, 1.0 if ridge is None else ridge, seed)
    notes += model.notes
    observed = model.of(tests.user, tests.item, tests.value)
    _check(observed, tests, model)
    as_is = given and choose("of", of or "test", OF) == "test"
    value = observed if as_is else _outside_training(observed, tests, share)
    _check(value, tests, model)
    calibration = None if as_is or not len(chosen) else _calibrate(model, evidence, notes)
    facts = dict(model.facts)
    if len(chosen):
        facts["random ratings"] = len(chosen)
    if not as_is:
        facts["test share"] = "by item" if isinstance(share, np.ndarray) else float(share)
    told = "items" if isinstance(share, np.ndarray) else float(share)
    return Propensity(
        frozen(value),
        tests,
        model.name,
        frozen(observed),
        told,
        model.known,
        model.liked_only,
        facts,
        calibration,
        tuple(notes),
    )


@dataclass(frozen=True, eq=False)
class _Evidence:
    """What there is, under one numbering; parts that were not given are empty."""

    test: Ratings
    train: Ratings
    random: Ratings

    @property
    def users(self) -> int:
        return len(self.test.users)

    @property
    def items(self) -> int:
        return len(self.test.items)

    def counts(self) -> F64:
        """Ratings of each item in training and test together."""
        both = item_counts(self.train) + item_counts(self.test)
        return both.astype(np.float64)


@dataclass(frozen=True, eq=False)
class _Model:
    """What gives the chance of being rated for any pair of user and item with its rating."""

    name: str
    of: Callable[[I32, I32, F64], F64]
    facts: Mapping[str, Any] = field(default_factory=dict)
    known: bool = True
    notes: tuple[str, ...] = ()
    liked_only: bool = False
    cell: Callable[[int, int], str] | None = None
    """Where the chance of a pair was read, as text for an error; None where it was computed."""


def _share(given: float | str | None, evidence: _Evidence) -> float | F64:
    """Return σ: one number, or one per item."""
    if given == "items":
        tested, both = item_counts(evidence.test), evidence.counts()
        return np.divide(tested, both, out=np.ones(both.size), where=both > 0)
    if given is None:
        return len(evidence.test) / (len(evidence.test) + len(evidence.train))
    if not is_number(given) or not 0 < float(given) <= 1:
        raise SettingError(f"test_share must be a share above 0 up to 1, or 'items'; got {given!r}")
    return float(given)


def _outside_training(p: F64, tests: Ratings, share: float | F64) -> F64:
    """Return σp / (1 - (1 - σ) p): the chance of the test part for a pair outside training."""
    sigma = share[tests.item] if isinstance(share, np.ndarray) else share
    value: F64 = np.minimum(sigma * p / (1.0 - (1.0 - sigma) * p), 1.0)  # p = 1 may round above 1
    return value


def _refuse_idle(method: str, given: Mapping[str, object]) -> None:
    """Refuse settings that the method would not look at."""
    uses = {
        "popularity": ("random", "shown", "exponent", "liked", "relevance"),
        "naive-bayes": ("random", "alpha"),
        "logistic": ("random", "features", "ridge"),
        "given": ("random", "of"),
    }[method]
    for name, value in given.items():
        if value is not None and name not in uses:
            raise SettingError(f"{name}=… does not go with {method}; it takes {', '.join(uses)}")
    if given["exponent"] is not None and given["shown"] is not None:
        raise SettingError("give either exponent or shown, which fits it; not both")
    for name in ("liked", "relevance"):
        if given[name] is not None and given["random"] is None:
            raise SettingError(f"{name}=… is for the fit from random ratings: give random=… too")


def _from_0_up(name: str, value: float) -> float:
    if not is_number(value) or not 0 <= value < math.inf:
        raise SettingError(f"{name} must be a number from 0 up, got {value!r}")
    return float(value)


def _check(p: F64, tests: Ratings, model: _Model) -> None:
    """Refuse chances that are none, or so small that one judgment would outweigh all others."""
    bad = ~((p >= LEAST) & (p <= 1))
    if not bad.any():
        return
    row = int(np.argmax(bad))
    user, item = int(tests.user[row]), int(tests.item[row])
    pair = f"user {tests.users.values[user]!r}, item {tests.items.values[item]!r}"
    value = "none" if math.isnan(p[row]) else f"{p[row]:g}"
    if model.cell is not None:
        pair += model.cell(user, item)
        remedy = (
            "what was judged had a chance to be: give it one, or leave these judgments out; raise "
            "very small ones to the smallest that you trust"
        )
    else:
        remedy = f"the model {model.name} does not fit these data: take another one"
    raise DataError(
        f"{int(bad.sum()):,} of {p.size:,} judgments have no propensity from {LEAST:g} to 1, the "
        f"first: {pair} has {value}; {remedy}"
    )


def _rule(evidence: _Evidence, liked: float | None, relevance: Relevance | str | None) -> Relevance:
    return relevance_for(evidence.test, liked, None, "rating", "levels", relevance)[0]


# Popularity


def _popularity(
    evidence: _Evidence, exponent: float | None, shown: object, rule: Relevance | None
) -> _Model:
    """Model p(rated | i) = c n(i)^exponent."""
    counts = evidence.counts()
    facts: dict[str, Any] = {}
    notes: list[str] = []
    if exponent is not None:
        power = _from_0_up("exponent", exponent)
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
            "exponent 1: right where being rated does not depend on being liked, given the item; "
            "random=… or shown=… fits it"
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

    return _Model("popularity", of, facts, known, tuple(notes), liked_only=not known)


def _fitted_popularity(evidence: _Evidence, counts: F64, rule: Relevance) -> _Model:
    """Model p(rated | liked or not, i) = c n(i)^exponent, both fitted for each of the two."""
    notes = ["exponent and scale fitted from randomly chosen items: p(rated | liked or not, item)"]
    liked, facts = _fit_power(evidence, counts, rule, True)
    disliked, more = _fit_power(evidence, counts, rule, False)
    by_side = np.array([_at_most_1(disliked, notes), _at_most_1(liked, notes)])

    def of(user: I32, item: I32, value: F64) -> F64:  # noqa: ARG001
        return by_side[rule.is_liked(value).astype(np.int64), item]

    return _Model("popularity", of, {**facts, **more}, True, tuple(notes))


def _power(counts: F64, exponent: float) -> F64:
    return np.where(counts > 0, np.maximum(counts, 1.0) ** exponent, 0.0)


def _at_most_1(p: F64, notes: list[str]) -> F64:
    over = int(np.count_nonzero(p > 1))
    if over:
        notes.append(f"{over:,} items would have a propensity above 1: set to 1")
    return np.minimum(p, 1.0)


def _shown_gamma(evidence: _Evidence, shown: object, counts: F64) -> float:
    """Fit how often items are shown as a power of how often they are rated, by least squares."""
    run = read_run(shown)
    items, (ours, theirs) = Ids.union(evidence.test.items, run.items)
    times = np.zeros(len(items))
    listed = run.item[run.item >= 0]
    times[theirs] = np.bincount(listed, minlength=len(run.items))
    own = times[ours]
    both = (own > 0) & (counts > 0)
    x, y = np.log(counts[both]), np.log(own[both])
    if x.size < 2 or np.ptp(x) == 0:
        raise DataError(
            f"shown: {x.size} items are both shown and rated, not enough to fit an exponent; give "
            f"exponent=…"
        )
    x = x - x.mean()
    return float(x @ (y - y.mean()) / (x @ x))


def _fit_power(
    evidence: _Evidence, counts: F64, rule: Relevance, liked: bool
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


# Naive Bayes


def _naive_bayes(evidence: _Evidence, alpha: float) -> _Model:
    """Model p(rated | rating r) = p(r | rated) p(rated) / p(r)."""
    if not len(evidence.random):
        raise SettingError(
            "naive-bayes needs random=…: ratings of randomly chosen items, to know how often each "
            "rating occurs"
        )
    alpha = _from_0_up("alpha", alpha)
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
        notes.append(f"{outside:,} random ratings have a value that the data has not")
    if (p > 1).any():
        notes.append(f"{int((p > 1).sum())} ratings would have a propensity above 1: set to 1")
    p = np.minimum(p, 1.0)

    def of(user: I32, item: I32, value: F64) -> F64:  # noqa: ARG001
        place = np.minimum(np.searchsorted(levels, value), levels.size - 1)
        return np.where(levels[place] == value, p[place], np.nan)

    facts = {f"p({level:g})": float(chance) for level, chance in zip(levels, p, strict=True)}
    return _Model("naive-bayes", of, facts, True, tuple(notes))


# Logistic regression


def _logistic(
    evidence: _Evidence, features: Mapping[str, object] | None, ridge: float, seed: int
) -> _Model:
    """Model logit p(rated | u, i) = b + x_u·β + x_i·γ, fitted by Newton's steps over all pairs."""
    ridge = _from_0_up("ridge", ridge)
    known = {"users": evidence.test.users, "items": evidence.test.items}
    tables = dict(features or {})
    for name in tables:
        choose("features", name, known)
    both = [evidence.train, evidence.test]
    sides = {"users": [part.user for part in both], "items": [part.item for part in both]}
    x: dict[str, F64] = {}
    for name, ids in known.items():
        counts = sum(np.bincount(codes, minlength=len(ids)) for codes in sides[name])
        if features is None:
            x[name] = _standard(np.log1p(np.asarray(counts, np.float64))[:, None])
        else:
            x[name] = _features(name, tables.get(name), ids)
    chosen = _some_users(evidence, seed)
    beta = _newton(x["users"], x["items"], evidence, chosen, ridge)
    width = x["users"].shape[1]
    a = beta[0] + x["users"] @ beta[1 : 1 + width]
    b = x["items"] @ beta[1 + width :]
    notes = []
    if chosen.size < evidence.users:
        notes.append(f"fitted on {chosen.size:,} of {evidence.users:,} users, drawn at random")

    def of(user: I32, item: I32, value: F64) -> F64:  # noqa: ARG001
        p: F64 = 1.0 / (1.0 + np.exp(-(a[user] + b[item])))
        return p

    facts = {"user features": width, "item features": x["items"].shape[1], "ridge": ridge}
    return _Model("logistic", of, facts, True, tuple(notes))


def _some_users(evidence: _Evidence, seed: int) -> I32:
    """Return the users to fit on: all, unless there are too many pairs."""
    most = max(MOST_PAIRS // max(evidence.items, 1), 1)
    everyone = np.arange(evidence.users, dtype=np.int32)
    if most >= evidence.users:
        return everyone
    order = np.argsort(draw(seed, "estimate/users", everyone.astype(np.int64)))
    return np.sort(everyone[order[:most]])


def _newton(users: F64, items: F64, evidence: _Evidence, chosen: I32, ridge: float) -> F64:
    """Return the coefficients: sums over users x items, a tile of users at a time."""
    rated = [part.take(np.isin(part.user, chosen)) for part in (evidence.train, evidence.test)]
    by_user = sum(np.bincount(part.user, minlength=len(users)) for part in rated)
    by_item = sum(np.bincount(part.item, minlength=len(items)) for part in rated)
    a, b = users.shape[1], items.shape[1]
    penalty = np.full(1 + a + b, float(ridge))
    penalty[0] = 0.0
    total = float(np.sum(by_user))
    sums = np.concatenate([[total], users.T @ by_user, items.T @ by_item])
    beta = np.zeros(1 + a + b)
    rate = total / (chosen.size * len(items))
    beta[0] = math.log(rate / (1 - rate)) if 0 < rate < 1 else 0.0
    step = tile_users(len(items))
    for _ in range(STEPS):
        slope, curve = sums - penalty * beta, np.diag(penalty)
        column, own = items @ beta[1 + a :], beta[0] + users @ beta[1 : 1 + a]
        for low in range(0, chosen.size, step):
            mine = chosen[low : low + step]
            p = 1.0 / (1.0 + np.exp(-(own[mine][:, None] + column[None, :])))
            w = p * (1 - p)
            x, row, down = users[mine], w.sum(axis=1), w.sum(axis=0)
            slope -= np.concatenate([[p.sum()], x.T @ p.sum(axis=1), items.T @ p.sum(axis=0)])
            mixed = np.zeros_like(curve)
            mixed[0, 0] = w.sum()
            mixed[0, 1 : 1 + a], mixed[0, 1 + a :] = x.T @ row, items.T @ down
            mixed[1 : 1 + a, 1 : 1 + a] = (x * row[:, None]).T @ x
            mixed[1 : 1 + a, 1 + a :] = x.T @ (w @ items)
            mixed[1 + a :, 1 + a :] = (items * down[:, None]).T @ items
            curve += np.triu(mixed) + np.triu(mixed, 1).T
        move = np.linalg.lstsq(curve, slope, rcond=None)[0]
        beta = beta + move
        if np.abs(move).max() < 1e-8:
            break
    return beta


def _features(name: str, table: object, ids: Ids) -> F64:
    """Return features of all users or items, a row each; what is missing gets the mean."""
    if table is None:
        return np.zeros((len(ids), 0))
    frame = read_table(table).frame
    if frame.width < 2 or not frame.height:
        raise DataError(f"features of {name}: an id column and at least one feature are needed")
    codes = ids.codes(frame.to_series(0))
    found = codes >= 0
    if not found.any():
        raise DataError(f"features of {name}: none of the ids in {frame.columns[0]!r} is rated")
    columns: list[F64] = []
    for series in frame.iter_columns():
        if series.name == frame.columns[0]:
            continue
        if series.dtype.is_numeric() or series.dtype == pl.Boolean:
            parts = [series.cast(pl.Float64).fill_null(math.nan).to_numpy()]
        else:
            texts = series.cast(pl.String)
            parts = [
                (texts == level).fill_null(False).cast(pl.Float64).to_numpy()
                for level in texts.drop_nulls().unique().sort().to_list()[1:]
            ]
        for part in parts:
            column = np.full(len(ids), np.nan)
            column[codes[found]] = part[found]
            columns.append(np.where(np.isnan(column), np.nanmean(part), column))
    return _standard(np.column_stack(columns)) if columns else np.zeros((len(ids), 0))


def _standard(columns: F64) -> F64:
    """Centre columns and divide by their standard deviation; one that never varies is 0."""
    away = columns - columns.mean(axis=0)
    spread = away.std(axis=0)
    scaled: F64 = away / np.where(spread > 0, spread, 1.0)
    return scaled


# Given


def _given(source: object, evidence: _Evidence) -> _Model:
    """Take probabilities as they are: by item, by pair, or from a function of users."""
    if callable(source) and not isinstance(source, Mapping):
        of = _by_tile(source, evidence)
        return _Model("given", of, {"by": "pair"}, cell=lambda user, item: "")  # noqa: ARG005
    columns = source
    if isinstance(source, Mapping) and not any(_is_column(value) for value in source.values()):
        columns = {"item": list(source), "propensity": [_as_chance(*one) for one in source.items()]}
    table = read_table(columns)
    item, user = table.need("item", ITEM, None), table.pick("user", USER, None)
    name = next((c for c in table.frame.columns if c.lower() in ("propensity", "p")), None)
    if name is None:
        raise DataError(
            f"{table.source}: no column `propensity`; there are {', '.join(table.frame.columns)}"
        )
    items = evidence.test.items.codes(table.frame[item]).astype(np.int64)
    inside = items >= 0
    key = items
    if user is not None:
        users = evidence.test.users.codes(table.frame[user]).astype(np.int64)
        inside &= users >= 0
        key = users * evidence.items + items
    rows = np.flatnonzero(inside)
    rows = rows[np.argsort(key[rows], kind="stable")]
    column = table.frame[name]
    value = column.cast(pl.Float64, strict=False).fill_null(math.nan).to_numpy()
    source_name = "propensity" if table.source in ("arrays", "frame") else table.source
    lookup = _Lookup(key[rows], value[rows], rows, None if user is None else evidence.items)
    lookup.refuse_two_values(source_name, table.frame.select(*([user] if user else []), item))

    def cell(user: int, item: int) -> str:
        at = int(lookup.places(np.array([user]), np.array([item]))[0])
        if at < 0:
            return f" (not in {source_name})"
        row = int(rows[at])
        return f" (row {row + 1} of {source_name}: {column[row]!r})"

    by = "item" if user is None else "pair"
    return _Model("given", lambda u, i, v: lookup.of(u, i), {"by": by}, cell=cell)  # noqa: ARG005


@dataclass(frozen=True, eq=False)
class _Lookup:
    """Values by item, or by user and item, of a table with a row each; keys ascend."""

    key: I64
    value: F64
    row: I64
    items: int | None
    """How many items there are, where keys are pairs."""

    def places(self, user: NDArray[Any], item: NDArray[Any]) -> I64:
        """Return where each pair is, -1 = nowhere."""
        wanted = item.astype(np.int64)
        if self.items is not None:
            wanted = user.astype(np.int64) * self.items + item
        if not self.key.size:
            return np.full(wanted.size, -1)
        place = np.minimum(np.searchsorted(self.key, wanted), self.key.size - 1)
        return np.where(self.key[place] == wanted, place, -1)

    def of(self, user: NDArray[Any], item: NDArray[Any]) -> F64:
        """Return the value of each pair, NaN = none."""
        place = self.places(user, item)
        return np.where(place >= 0, self.value[place] if self.value.size else np.nan, np.nan)

    def refuse_two_values(self, source: str, ids: pl.DataFrame) -> None:
        """Refuse two rows that give one item, or one pair, different values."""
        again = self.key[1:] == self.key[:-1]
        same = np.isclose(self.value[1:], self.value[:-1], rtol=0, atol=0, equal_nan=True)
        clash = np.flatnonzero(again & ~same)
        if clash.size:
            at = int(clash[0])
            first, second = int(self.row[at]), int(self.row[at + 1])
            name = ", ".join(map(repr, ids.row(first)))
            raise DataError(
                f"{source}: {name} has two propensities, {self.value[at]:g} in row {first + 1} and "
                f"{self.value[at + 1]:g} in row {second + 1}; keep one"
            )


def _as_chance(item: object, value: object) -> float:
    """Return a number of a mapping; what is missing is NaN, which is refused where it is needed."""
    if value is None:
        return math.nan
    if not is_number(value):
        raise DataError(f"propensity: item {item!r} has {value!r}, which is not a number")
    return float(value)  # type: ignore[arg-type]


def _is_column(value: object) -> bool:
    return hasattr(value, "__len__") and not isinstance(value, str)


def _by_tile(function: Callable[[I32], F64], evidence: _Evidence) -> Callable[[I32, I32, F64], F64]:
    """Look pairs up in what a function of user numbers returns, a tile of users at a time."""

    def of(user: I32, item: I32, value: F64) -> F64:  # noqa: ARG001
        out = np.full(user.size, np.nan)
        step = tile_users(evidence.items)
        people = np.unique(user)
        for low in range(0, people.size, step):
            some = people[low : low + step]
            tile = np.asarray(function(some.astype(np.int32)))
            if tile.shape != (some.size, evidence.items):
                raise DataError(
                    f"the propensity function returned {tile.shape} for {some.size} users; users x "
                    f"items ({evidence.items}) are needed"
                )
            mine = (user >= some[0]) & (user <= some[-1])
            out[mine] = tile[np.searchsorted(some, user[mine]), item[mine]]
        return out

    return of


# Calibration


def _calibrate(model: _Model, evidence: _Evidence, notes: list[str]) -> pl.DataFrame | None:
    """Compare predicted chances with the share that was rated, among randomly chosen pairs."""
    chosen = evidence.random
    rated = shared_rows(chosen, evidence.train) | shared_rows(chosen, evidence.test)
    predicted = model.of(chosen.user, chosen.item, chosen.value)
    usable = ~np.isnan(predicted)
    if not rated.any() or not usable.any():
        notes.append("calibration not shown: no randomly chosen pair was rated anyway")
        return None
    predicted, rated = predicted[usable], rated[usable]
    edges = np.unique(np.quantile(predicted, np.linspace(0, 1, BINS + 1)))
    place = np.searchsorted(edges[1:-1], predicted, side="right")
    rows = []
    for number in np.unique(place):
        mine = place == number
        n, share = int(mine.sum()), float(rated[mine].mean())
        low, high = map(float, wilson(int(rated[mine].sum()), n))
        rows.append(
            {
                "pairs": n,
                "predicted": float(predicted[mine].mean()),
                "found": share,
                "low": low,
                "high": high,
            }
        )
    return pl.DataFrame(rows)


def _shown(value: object) -> str:
    return f"{value:.3g}" if isinstance(value, float) else str(value)
