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
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from unskew.arrays import F64, I32, frozen
from unskew.checks import checked, choose, is_number
from unskew.data.ratings import Ratings, under_one_numbering
from unskew.data.read.ratings_files import read_ratings
from unskew.data.relevance import Relevance, relevance_for
from unskew.data.summary import item_counts
from unskew.errors import DataError, SettingError, is_address
from unskew.report.charts import BLUE, GREY, Figure, as_figure
from unskew.report.result import Result
from unskew.report.text import counted
from unskew.splits.split import shared_rows
from unskew.stats.intervals.shares import wilson
from unskew.unbiased.propensity_models import (
    ChanceModel,
    RatingEvidence,
    given_model,
    logistic_model,
    naive_bayes_model,
    popularity_model,
)

METHODS = ("popularity", "naive-bayes", "logistic")


GIVEN = "given"
"""The method where propensities are given, in any form."""
OF = ("observed", "test")


BINS = 10


LEAST = 1e-12
"""The smallest propensity that is accepted: below, one judgment would stand for more than 10^12."""


@dataclass(frozen=True, eq=False)
class Propensity(Result):
    """The chance of each test judgment to be there. Made by `propensity`.

    Examples
    --------
    >>> import unskew as us
    >>> train = {"user": [1, 2, 3], "item": ["a", "a", "b"], "rating": [5, 4, 1]}
    >>> test = {"user": [1, 3, 4], "item": ["b", "a", "b"], "rating": [4, 2, 5]}
    >>> chances = us.unbiased.propensity(train, test, {"a": 0.5, "b": 0.25})
    >>> chances.weight.tolist()
    [4.0, 2.0, 4.0]
    """

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
        canvas = alt.Chart(alt.NamedData(name="rows"), width=320, height=320)
        x = alt.X("predicted:Q", title="predicted chance of being rated").scale(scale)
        y = alt.Y("found:Q", title="share that was rated").scale(scale)
        points = canvas.mark_point(filled=True, size=70, opacity=1, color=BLUE).encode(x=x, y=y)
        bars = canvas.mark_rule(strokeWidth=1.5, color=BLUE).encode(
            x=x, y=alt.Y("low:Q", title="share that was rated").scale(scale), y2="high:Q"
        )
        right = canvas.mark_rule(strokeDash=[4, 3], color=GREY).encode(
            x=alt.datum(0.0), y=alt.datum(0.0), x2=alt.datum(top), y2=alt.datum(top)
        )
        return as_figure(alt.layer(right, bars, points), "Calibration", self.footer(), rows)

    def _explanation(self) -> list[str]:
        facts = ", ".join(f"{name} {_shown(value)}" for name, value in self.facts.items())
        low, high = float(self.value.min()), float(self.value.max())
        line = f"propensity of {counted(len(self.test), 'judgment')} by {self.method}"
        return [f"{line}: {low:.3g} to {high:.3g}" + (f" ({facts})" if facts else "")]

    def display_table(self) -> pl.DataFrame:
        """Return how the propensities are spread; `table` has them all."""
        low, quarter, half, three, high = np.quantile(self.value, [0, 0.25, 0.5, 0.75, 1]).tolist()
        return pl.DataFrame(
            {
                "judgments": [len(self.test)],
                "lowest": [low],
                "25 %": [quarter],
                "median": [half],
                "75 %": [three],
                "highest": [high],
            }
        )

    def _content(self) -> dict[str, object]:
        return {
            "method": self.method,
            "known": self.known,
            "liked_only": self.liked_only,
            "facts": self.facts,
            "rows": self.table(),
            "notes": self.notes,
        }

    def _summary(self) -> str:
        return f"{self.method}, {counted(len(self.test), 'judgment')}"


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
    >>> from unskew.unbiased.propensity import propensity
    >>> train = {"user": [1, 2], "item": ["a", "a"], "rating": [5, 4]}
    >>> test = {"user": [3, 4], "item": ["a", "b"], "rating": [5, 2]}
    >>> p = propensity(train, test).table()["propensity"]  # σ = 1/2; p(rated) = 3/4 and 1/4
    >>> p.round(4).to_list()
    [0.6, 0.1429]
    """
    evidence = _evidence(train, test, random)
    share = _share(test_share, evidence)
    name = _method_name(method)
    _check_unused(
        name,
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
    model: ChanceModel
    if name == GIVEN:
        model = given_model(method, evidence)
    elif name == "popularity":
        rule = None if random is None else _rule(evidence, liked, relevance)
        model = popularity_model(evidence, exponent, shown, rule)
    elif name == "naive-bayes":
        model = naive_bayes_model(evidence, 1.0 if alpha is None else alpha)
    else:
        model = logistic_model(evidence, features, 1.0 if ridge is None else ridge, seed)
    as_is = name == GIVEN and choose("of", of or "test", OF) == "test"
    return _weighed(model, evidence, share, as_is)


def _evidence(train: object, test: object, random: object) -> RatingEvidence:
    """Read all ratings, under one numbering."""
    tests = read_ratings(test)
    if not len(tests):
        raise DataError("there are no test judgments to weigh")
    nothing = tests.take(np.zeros(0, np.int64))
    trained = nothing if train is None else read_ratings(train)
    chosen = nothing if random is None else read_ratings(random)
    return RatingEvidence(*under_one_numbering(tests, trained, chosen))


def _method_name(method: object) -> str:
    """Return one of `METHODS`, or `given` for propensities in any other form."""
    if not isinstance(method, str):
        return GIVEN
    if method not in METHODS and (is_address(method) or Path(method).exists()):
        return GIVEN
    return choose("method", method, METHODS)  # says what is nearest


def _weighed(
    model: ChanceModel, evidence: RatingEvidence, share: float | F64, as_is: bool
) -> Propensity:
    """Return the chance of each test judgment: outside training, or as the model gives it."""
    tests = evidence.test
    notes = list(model.notes)
    observed = model.of(tests.user, tests.item, tests.value)
    _check(observed, tests, model)
    value = observed if as_is else _outside_training(observed, tests, share)
    _check(value, tests, model)
    facts, calibration = dict(model.facts), None
    if len(evidence.random):
        facts["random ratings"] = len(evidence.random)
        calibration = None if as_is else _calibrate(model, evidence, notes)
    if not as_is:
        facts["test share"] = "by item" if isinstance(share, np.ndarray) else share
    return Propensity(
        value=frozen(value),
        test=tests,
        method=model.name,
        observed=frozen(observed),
        share="items" if isinstance(share, np.ndarray) else share,
        known=model.known,
        liked_only=model.liked_only,
        facts=facts,
        calibration=calibration,
        notes=tuple(notes),
    )


def _share(share: float | str | None, evidence: RatingEvidence) -> float | F64:
    """Return σ: one number, or one per item."""
    if share == "items":
        tested, total = item_counts(evidence.test), evidence.counts()
        return np.divide(tested, total, out=np.ones(total.size), where=total > 0)
    if share is None:
        return len(evidence.test) / (len(evidence.test) + len(evidence.train))
    if not is_number(share) or not 0 < float(share) <= 1:
        raise SettingError(f"test_share must be a share above 0 up to 1, or 'items'; got {share!r}")
    return float(share)


def _outside_training(p: F64, tests: Ratings, share: float | F64) -> F64:
    """Return σp / (1 - (1 - σ) p): the chance of the test part for a pair outside training."""
    sigma = share[tests.item] if isinstance(share, np.ndarray) else share
    value: F64 = np.minimum(sigma * p / (1.0 - (1.0 - sigma) * p), 1.0)  # p = 1 may round above 1
    return value


def _check_unused(method: str, arguments: Mapping[str, object]) -> None:
    """Raise an error for settings that the method does not use."""
    uses = {
        "popularity": ("random", "shown", "exponent", "liked", "relevance"),
        "naive-bayes": ("random", "alpha"),
        "logistic": ("random", "features", "ridge"),
        "given": ("random", "of"),
    }[method]
    for name, value in arguments.items():
        if value is not None and name not in uses:
            raise SettingError(f"{name}=… does not go with {method}; it takes {', '.join(uses)}")
    if arguments["exponent"] is not None and arguments["shown"] is not None:
        raise SettingError("give either exponent or shown, which fits it; not both")
    for name in ("liked", "relevance"):
        if arguments[name] is not None and arguments["random"] is None:
            raise SettingError(f"{name}=… is for the fit from random ratings: give random=… too")


def _check(p: F64, tests: Ratings, model: ChanceModel) -> None:
    """Raise an error for propensities that are missing, above 1, or too small."""
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
            "every judged pair had some probability of being judged: give it one, or leave "
            "these judgments out; raise very small propensities to the smallest that you trust"
        )
    else:
        remedy = f"the model {model.name} does not fit these data: take another one"
    raise DataError(
        f"{int(bad.sum()):,} of {p.size:,} judgments have no propensity from {LEAST:g} to 1, the "
        f"first: {pair} has {value}; {remedy}"
    )


def _rule(
    evidence: RatingEvidence, liked: float | None, relevance: Relevance | str | None
) -> Relevance:
    return relevance_for(evidence.test, liked, relevance=relevance)[0]


def _calibrate(
    model: ChanceModel, evidence: RatingEvidence, notes: list[str]
) -> pl.DataFrame | None:
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
    group = np.searchsorted(edges[1:-1], predicted, side="right")
    rows = []
    for number in np.unique(group):
        mine = group == number
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
