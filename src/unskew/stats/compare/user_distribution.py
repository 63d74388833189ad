"""`user_distribution`: the values of all users, not only their mean; who gains and who loses."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

import numpy as np

from unskew.arrays import F64
from unskew.checks import check_share, checked
from unskew.engine.rng import generator
from unskew.errors import DataError, SettingError
from unskew.report.columns import (
    HIGH,
    LOW,
    METRIC,
    PAIR,
    QUANTITY,
    SYSTEM,
    USERS,
    VALUE,
    Column,
    Drawing,
    Method,
    P,
    Question,
)
from unskew.report.estimates import Estimates
from unskew.report.text import counted, number
from unskew.stats.compare.gaps import LEAST_OTHERS, LEAST_USERS, has_interval, range_of
from unskew.stats.compare.lexirecall import SHARES, share_rows
from unskew.stats.corrections import correct, corrected_by
from unskew.stats.inequality import others
from unskew.stats.intervals.shares import net_share, share_of, sign_p
from unskew.stats.intervals.skewed import (
    MeanEstimates,
    intervals,
    mean_of,
    of_means,
    without_skewness,
)
from unskew.stats.pairing import (
    Paired,
    Source,
    paired_values,
    pairs_with,
    users_left_out,
    values_of_users,
)
from unskew.stats.resampling import chosen_metrics
from unskew.stats.special import binomial_half_cdf, student_t_sf

USER_DISTRIBUTION = Question(
    name="values of users",
    columns=(
        *(METRIC, SYSTEM, QUANTITY, Column("lowest_value", "fact", hidden=True)),
        *(USERS, VALUE, LOW, HIGH),
    ),
    quantities=(
        Column("mean", "value"),
        Column("at_lowest", "value", "at the lowest value", form="%"),
    ),
    method=Method(
        estimand="how the values of users are spread",
        interval="t without skewness (Hall), of shares mid-p, of a − b Tango's score",
        test="tests of dominance, the largest p of up to 19 values",
    ),
    display=("", "curve", "pairs"),
    figures=(Drawing("quantiles", "steps", "curve"),),
)
CURVE = Question(
    name="the value that a share of users does not exceed",
    columns=(METRIC, SYSTEM, Column("share", "axis", "share of users", "%"), VALUE, LOW, HIGH),
    method=Method(estimand="quantiles of the values of users", interval="band"),
    across="share",
)
"""Bands hold at all points of a curve together; null where the data give no end."""
GAINS = Question(
    name="users who gain and lose",
    columns=(
        *(METRIC, *PAIR, QUANTITY, USERS, VALUE, LOW, HIGH, replace(P, hidden=True)),
        *(Column("dominance", "note"), Column("p_first", "p", "p, first order")),
        Column("p_second", "p", "p, second order"),
    ),
    quantities=(*SHARES, Column("gain", "value", "mean gain of a", form="+")),
    method=USER_DISTRIBUTION.method,
)
"""`p` is that of the sign test, uncorrected. On the rows of `gain`: who dominates, and p of
dominance to first and to second order, corrected for the number of pairs.
"""
POINTS = tuple(round(0.05 * step, 2) for step in range(1, 20))
"""The shares of users at which curves are worked out."""
_DRAWS = 10_000


def quantile_band(values: F64, level: float = 0.95) -> tuple[F64, F64, F64]:
    """Return the quantiles at `POINTS` and both ends of their simultaneous band.

    The ends are infinite where the data have no end.

    The quantile at p is the least value that at least a share p of users do not exceed. The ends
    are values of users: those at ranks n p -/+ c sqrt(n p (1 - p)), with c such that the numbers
    of users below all quantiles lie within them together with the given probability. That holds
    whatever the distribution (more often where values are tied); c is worked out from 10,000 draws
    of uniform samples of this size, the same in every call.

    Examples
    --------
    >>> import numpy as np
    >>> from unskew.stats.compare.user_distribution import quantile_band
    >>> [float(numbers[9]) for numbers in quantile_band(np.arange(1.0, 101.0))]
    [50.0, 36.0, 65.0]
    """
    x = np.sort(values)
    n = x.size
    p = np.array(POINTS)
    middle, half = n * p, critical_width(n, level) * np.sqrt(n * p * (1 - p))
    rank = np.ceil(middle - 1e-9).astype(np.int64)
    low = np.ceil(middle - half - 1e-9).astype(np.int64)
    high = np.floor(middle + half + 1e-9).astype(np.int64) + 1
    bounds = np.concatenate([[-np.inf], x, [np.inf]])
    clipped = np.clip(rank, 1, n), np.clip(low, 0, n), np.clip(high, 1, n + 1)
    quantile, low_end, high_end = (bounds[index] for index in clipped)
    return quantile, low_end, high_end


@lru_cache(maxsize=256)
def critical_width(n: int, level: float) -> float:
    """Return c: the level's quantile of the largest standardised deviation of counts."""
    p = np.array(POINTS)
    cells = np.diff(np.concatenate([[0.0], p, [1.0]]))
    counts = generator(0, "quantile bands", n).multinomial(n, cells, _DRAWS)[:, :-1].cumsum(axis=1)
    deviation = np.abs(counts - n * p) / np.sqrt(n * p * (1 - p))
    return float(np.quantile(deviation.max(axis=1), level, method="higher"))


@dataclass(frozen=True, eq=False)
class Dominance:
    """What is known of one system against another; greater values are better."""

    thresholds: F64
    """The values that are tested."""
    first: float
    """p of dominance to first order."""
    second: float
    """p of dominance to second order; 1 where it cannot be tested."""
    above: F64
    """Of each threshold: one-sided p that more users lie above it."""


def thresholds_of(first: F64, second: F64) -> F64:
    """Return the values at which two systems are compared: quantiles of the values of both.

    Without the largest value, which nobody lies above.
    """
    pooled = np.sort(np.concatenate([first, second]))
    rank = np.ceil(np.array(POINTS) * pooled.size).astype(np.int64) - 1
    values = np.unique(pooled[rank])
    below: F64 = values[values < pooled[-1]]
    return below


def dominance(values_a: F64, values_b: F64) -> Dominance:
    """Test whether the first system dominates the second, on the same users.

    Examples
    --------
    >>> import numpy as np
    >>> from unskew.stats.compare.user_distribution import dominance
    >>> worse = np.linspace(0, 1, 200)
    >>> result = dominance(worse + 0.2, worse)
    >>> result.first < 1e-6, dominance(worse, worse + 0.2).first
    (True, 1.0)
    """
    values = thresholds_of(values_a, values_b)
    if not values.size:
        return Dominance(values, 1.0, 1.0, values)
    up = np.array([np.count_nonzero((values_a > x) & (values_b <= x)) for x in values])
    down = np.array([np.count_nonzero((values_b > x) & (values_a <= x)) for x in values])
    # P(at least `up` of the users who lie above with one system only).
    above = np.where(up + down > 0, binomial_half_cdf(down, up + down), 1.0)
    # Nobody falls short of the least value; at the largest the mean shortfall is it less the mean.
    lowest, highest = (function([values_a, values_b]) for function in (np.min, np.max))
    top = np.append(values[values > lowest], highest)
    second = max(_shortfall_p(values_a, values_b, float(x)) for x in top)
    return Dominance(values, float(above.max()), second, above)


def _shortfall_p(first: F64, second: F64, x: float) -> float:
    """Return the one-sided p that the mean shortfall below x is smaller with the first system."""
    gain = np.maximum(x - second, 0.0) - np.maximum(x - first, 0.0)
    if others(gain) < LEAST_OTHERS:
        return 1.0
    of = of_means(mean_of(gain))
    t = of.value / of.error
    return float(student_t_sf(np.minimum(t, without_skewness(t, of.skewness)), of.df))


_EQUAL = 1e-12
"""In parts of the largest value: values that differ by less are tied."""


@checked
def user_distribution(
    scores: Source,
    metrics: str | Sequence[str] | None = None,
    *,
    against: str | None = None,
    level: float = 0.95,
    threads: int | None = None,
) -> Estimates:
    """Show how values are spread over users, and compare systems by more than their means.

    Of each system the quantile curve with a band that holds at all points together; of each pair
    the shares of users better, worse and equally off, and whether one system dominates the other.

    Parameters
    ----------
    scores
        Judged data, which are evaluated here; what `evaluate` gave, or a list of such for several
        folds; or values per user from elsewhere (see `paired`).
    metrics
        One or several labels; unless given every metric with a value per user and a direction.
    against
        Compare this system with every other one, instead of all pairs.
    level
        Confidence level of the intervals.

        Of each band and interval; 1 - level is the level of all sentences on one metric.
    threads
        Of the evaluation; never changes a number.

    Returns
    -------
    Estimates
        Rows by metric, system and quantity: `mean`, and `at_lowest`, the share of users at the
        lowest value of all. The part `curve`: quantiles by `share` of users. The part `pairs`:
        shares of users better off with a (`better`) or b (`better_against`), equally off (`tied`),
        `net`, the first less the second, and `gain`, the mean advantage of a (positive is better).
        What the means do not say, where it is significant, are sentences of the conclusion.

    References
    ----------
    Ekstrand, Carterette and Diaz (arXiv 2309.05892): distributionally-informed evaluation.
    Davidson and Duclos (Econometric Reviews 32, 2013): tests that show dominance. Tango (Statistics
    in Medicine 17, 1998): differences of paired shares.

    Examples
    --------
    >>> import numpy as np
    >>> import unskew as us
    >>> user = np.arange(100)
    >>> values = {"user": user, "a": user / 100 + 0.1, "b": user / 100}
    >>> pairs = us.stats.user_distribution(values).parts["pairs"]
    >>> gain = pairs.pair("a", "b", quantity="gain")
    >>> pairs.pair("a", "b", quantity="better").value, round(gain.value, 4), gain.facts["dominance"]
    (1.0, 0.1, 'a, first order')
    """
    check_share("level", level)
    pairing, _ = paired_values(scores, metrics, threads)
    selected = pairs_with(against, pairing.systems)
    labels = chosen_metrics(pairing, metrics)
    without = [label for label in labels if pairing.better[label] == "neither"]
    if without and metrics is not None:
        raise SettingError(
            f"{without[0]}: neither direction is better, so that users are not better or worse off"
        )
    labels = [label for label in labels if label not in without]
    if not labels:
        raise SettingError("none of these metrics has a direction that is better")
    notes = [f"left out, as neither direction is better: {', '.join(without)}"] if without else []
    rows, curves, gains, lines = [], [], [], list[str]()
    for label in labels:
        values, sign, lost = _values(pairing, label)
        notes += users_left_out({label: lost})
        keys = [{"metric": label, "system": system} for system in pairing.systems]
        for key, column in zip(keys, values.T, strict=True):
            rows += [key | row for row in _spread(column, float(values.min()), level)]
            curves += [key | row for row in _curve(column, label, level)]
        pairs = [
            _SystemPair.of(pairing.systems[i], pairing.systems[j], *(sign * values[:, [i, j]].T))
            for i, j in zip(selected.first, selected.second, strict=True)
        ]
        dominances = _dominances(pairs, level)
        for pair, dominated in zip(pairs, dominances, strict=True):
            gains += [{"metric": label, **row} for row in pair.rows(dominated, level)]
        lines += _sentences(pairs, dominances, label, sign, level)
    method = replace(
        USER_DISTRIBUTION.method,
        level=level,
        correction=corrected_by("holm", counted(len(selected), "pair")),
    )
    card = {"against": against, "better": {label: pairing.better[label] for label in labels}}
    return Estimates.of_rows(
        USER_DISTRIBUTION,
        rows,
        method=method if len(selected) else replace(method, test=""),
        explanation=(
            "quantile curves: bands hold at all shares of users from 5 to 95% together, for each "
            "system (order statistics)",
            "dominance, first order: McNemar's exact test at each value; second order: t tests of "
            "shortfalls below these values; mean gain by t with and without skewness",
        ),
        notes=(*pairing.rules, *pairing.notes, *notes),
        conclusion=tuple(lines),
        parts={
            "curve": Estimates.of_rows(CURVE, curves, level=level, card=card),
            "pairs": Estimates.of_rows(GAINS, gains, method=method, card=card),
        },
        card=card,
    )


def _values(pairing: Paired, label: str) -> tuple[F64, float, int]:
    """Return users x systems without users that have no value, and 1, or -1 where less is better.

    Values that differ by rounding become equal, so that users are tied.
    """
    values = values_of_users(pairing, label)
    is_complete = ~np.isnan(values).any(axis=1)
    values = values[is_complete]
    if not len(values):
        raise DataError(f"{label}: no user has a value of every system")
    if not np.isfinite(values).all():
        raise DataError(f"{label}: infinite values cannot be compared")
    step = _EQUAL * max(float(np.abs(values).max()), np.finfo(np.float64).tiny)
    distinct, position = np.unique(values, return_inverse=True)
    first = np.concatenate([[True], np.diff(distinct) > step])
    merged = distinct[first][np.cumsum(first) - 1]
    sign = -1.0 if pairing.better[label] == "lower" else 1.0
    return merged[position].reshape(values.shape), sign, int(np.count_nonzero(~is_complete))


def _spread(values: F64, lowest: float, level: float) -> Iterator[dict[str, Any]]:
    """Give the rows of a system: its mean, and the users with the lowest value of all."""
    mean = of_means(mean_of(values))
    facts = {"n": values.size, "lowest_value": lowest}
    low, high = map(float, intervals(mean, level))
    row = {**facts, "quantity": "mean", "value": float(mean.value)}
    yield row | {"low": low, "high": high} if has_interval(values) else row
    share, low, high = share_of(int(np.count_nonzero(values == lowest)), values.size, level)
    yield {**facts, "quantity": "at_lowest", "value": share, "low": low, "high": high}


def _curve(values: F64, label: str, level: float) -> Iterator[dict[str, Any]]:
    """Give a row per share of users."""
    minimum, maximum = range_of(label)
    quantile, low, high = quantile_band(values, level)
    limits = np.maximum(low, minimum), np.minimum(high, maximum)
    low, high = (
        np.where(np.isfinite(end) & (values.size >= LEAST_USERS), end, np.nan) for end in limits
    )
    names = "share", "value", "low", "high"
    for numbers in zip(POINTS, quantile, low, high, strict=True):
        yield dict(zip(names, map(float, numbers), strict=True))


@dataclass(frozen=True, eq=False)
class _SystemPair:
    """Two systems on one metric; greater values are better."""

    a: str
    b: str
    users: int
    better: int
    """Users better off with a; `worse`: with b."""
    worse: int
    gain: MeanEstimates
    """Mean of a less b."""
    has_interval: bool
    forward: Dominance
    backward: Dominance

    @classmethod
    def of(cls, a: str, b: str, first: F64, second: F64) -> _SystemPair:
        difference = first - second
        return cls(
            a=a,
            b=b,
            users=first.size,
            better=int(np.count_nonzero(first > second)),
            worse=int(np.count_nonzero(first < second)),
            gain=mean_gain(difference),
            has_interval=has_interval(difference),
            forward=dominance(first, second),
            backward=dominance(second, first),
        )

    def rows(self, dominated: dict[str, Any], level: float) -> Iterator[dict[str, Any]]:
        """Give a row per quantity."""
        keys: dict[str, Any] = {"system": self.a, "against": self.b, "n": self.users}
        for row in share_rows(self.better, self.worse, self.users, level):
            is_net = row["quantity"] == "net"
            yield {**keys, **row, "p": sign_p(self.better, self.worse) if is_net else None}
        row = {**keys, "quantity": "gain", "value": float(self.gain.value), **dominated}
        if self.has_interval:
            row |= dict(zip(("low", "high"), map(float, intervals(self.gain, level)), strict=True))
        yield row


def mean_gain(difference: F64) -> MeanEstimates:
    """Return the mean of differences of users, of which intervals are made."""
    of = of_means(mean_of(difference))
    # Welch's interval counts too: differences of two systems may have hardly any skewness.
    return replace(of, is_difference=True)


def _dominances(pairs: Sequence[_SystemPair], level: float) -> list[dict[str, Any]]:
    """Return of each pair who dominates, and p of dominance, corrected over pairs (Holm).

    Of both directions the smaller p counts: a false sentence about one direction needs the other
    system to be better nearly everywhere, where the same sentence about the other is hopeless.
    """
    rows: list[dict[str, Any]] = [{"dominance": ""} for _ in pairs]
    for order in ("second", "first"):
        p = [
            (getattr(pair.forward, order), getattr(pair.backward, order))
            if pair.users >= LEAST_USERS
            else (1.0, 1.0)
            for pair in pairs
        ]
        smaller = correct([min(directions) for directions in p], "holm").tolist() if pairs else []
        for pair, row, directions, corrected in zip(pairs, rows, p, smaller, strict=True):
            row[f"p_{order}"] = corrected
            if corrected <= 1 - level + 1e-12:
                row["dominance"] = (
                    f"{pair.a if directions[0] <= directions[1] else pair.b}, {order} order"
                )
    return rows


def _sentences(
    pairs: Sequence[_SystemPair],
    dominances: Sequence[dict[str, Any]],
    label: str,
    sign: float,
    level: float,
) -> Iterator[str]:
    """Say what the means do not: dominance, curves that cross, more users against the mean."""
    alpha = (1 - level) / max(len(pairs), 1)
    side = "above" if sign > 0 else "below"
    for pair, dominated in zip(pairs, dominances, strict=True):
        if dominated["dominance"]:
            ahead, order = dominated["dominance"].rsplit(", ", 1)
            behind = pair.b if ahead == pair.a else pair.a
            count = pair.forward.thresholds.size
            limits = [number(sign * float(x), 4) for x in pair.forward.thresholds[[0, -1]]]
            limits = limits if sign > 0 else limits[::-1]
            what = (
                f"more users lie {side} it with {ahead}"
                if order == "first order"
                else f"users fall short of it by less with {ahead}, in the mean"
            )
            where = (
                f"each of {count} values from {limits[0]} to {limits[1]}"
                if count > 1
                else limits[0]
            )
            yield f"{label}: {ahead} dominates {behind} ({order}): at {where}, {what}"
        yield from _crossing(pair, label, sign, side, alpha)
        yield from _hidden(pair, label, alpha)


def _crossing(pair: _SystemPair, label: str, sign: float, side: str, alpha: float) -> list[str]:
    forward, backward = pair.forward, pair.backward
    if not forward.thresholds.size or pair.users < LEAST_USERS:
        return []
    # Both directions at all values together (Bonferroni).
    limit = alpha / (2 * forward.thresholds.size)
    ahead, behind = int(np.argmin(forward.above)), int(np.argmin(backward.above))
    if max(forward.above[ahead], backward.above[behind]) > limit:
        return []
    here, there = (number(sign * float(forward.thresholds[index]), 4) for index in (ahead, behind))
    return [
        f"{label}: the curves of {pair.a} and {pair.b} cross: more users lie {side} {here} with "
        f"{pair.a}, and {side} {there} with {pair.b}"
    ]


def _hidden(pair: _SystemPair, label: str, alpha: float) -> list[str]:
    """Say where the mean favours one system and most users the other."""
    if not pair.has_interval:
        return []
    low, high = intervals(pair.gain, 1 - alpha)
    _, net_low, net_high = net_share(pair.better, pair.worse, pair.users, 1 - alpha)
    for ahead, behind, against in (
        (pair.a, pair.b, low > 0 and net_high < 0),
        (pair.b, pair.a, high < 0 and net_low > 0),
    ):
        if against:
            return [
                f"{label}: {ahead} has the better mean, but more users are better off with {behind}"
            ]
    return []
