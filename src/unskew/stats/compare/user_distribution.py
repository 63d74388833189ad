"""`user_distribution`: the values of all users, not only their mean; who gains and who loses."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np
import polars as pl

from unskew.arrays import F64
from unskew.checks import check_share, checked
from unskew.engine.rng import generator
from unskew.errors import DataError, SettingError
from unskew.report.text import number
from unskew.stats.compare.user_distribution_result import UserDistribution
from unskew.stats.corrections import correct
from unskew.stats.inequality import others
from unskew.stats.intervals.shares import net_share, paired_shares, share_of, sign_p
from unskew.stats.intervals.skewed import (
    MeanEstimates,
    group_means,
    intervals,
    of_means,
    without_skewness,
)
from unskew.stats.pairing import (
    Paired,
    Source,
    known_metric,
    paired_values,
    pairs_with,
    values_of_users,
)
from unskew.stats.resampling import chosen_metrics
from unskew.stats.special import binomial_half_cdf, student_t_sf

POINTS = tuple(round(0.05 * step, 2) for step in range(1, 20))
"""The shares of users at which curves are worked out."""
_DRAWS = 10_000


@dataclass(frozen=True, eq=False)
class QuantileBand:
    """Quantiles at `POINTS` and both ends of their band; infinite where the data have no end."""

    value: F64
    low: F64
    high: F64


def quantile_band(values: F64, level: float = 0.95) -> QuantileBand:
    """Return the quantile curve with its simultaneous band.

    The quantile at p is the least value that at least a share p of users do not exceed. The ends
    are values of users: those at ranks n p -/+ c sqrt(n p (1 - p)), with c such that the numbers
    of users below all quantiles lie within them together with the given probability. That holds
    whatever the distribution (more often where values are tied); c is worked out from 10,000 draws
    of uniform samples of this size, the same in every call.

    Examples
    --------
    >>> import numpy as np
    >>> from unskew.stats.compare.user_distribution import quantile_band
    >>> band = quantile_band(np.arange(1.0, 101.0))
    >>> [float(end[9]) for end in (band.low, band.value, band.high)]
    [36.0, 50.0, 65.0]
    """
    x = np.sort(values)
    n = x.size
    p = np.array(POINTS)
    middle, half = n * p, critical_width(n, level) * np.sqrt(n * p * (1 - p))
    rank = np.ceil(middle - 1e-9).astype(np.int64)
    low = np.ceil(middle - half - 1e-9).astype(np.int64)
    high = np.floor(middle + half + 1e-9).astype(np.int64) + 1
    bounds = np.concatenate([[-np.inf], x, [np.inf]])
    return QuantileBand(
        bounds[np.clip(rank, 1, n)], bounds[np.clip(low, 0, n)], bounds[np.clip(high, 1, n + 1)]
    )


@lru_cache(maxsize=256)
def critical_width(n: int, level: float) -> float:
    """Return c: the level's quantile of the largest standardised deviation of counts."""
    p = np.array(POINTS)
    cells = np.diff(np.concatenate([[0.0], p, [1.0]]))
    counts = generator(0, "quantile bands", n).multinomial(n, cells, _DRAWS)[:, :-1].cumsum(axis=1)
    deviation = np.abs(counts - n * p) / np.sqrt(n * p * (1 - p))
    return float(np.quantile(deviation.max(axis=1), level, method="higher"))


LEAST_OTHERS = 5
"""Users whose value is not the most common one: with fewer, there is no test."""


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
    of = of_means(group_means(gain[:, None], np.zeros(gain.size, np.int64), 1).pick((0, 0)))
    t = of.value / of.error
    return float(student_t_sf(np.minimum(t, without_skewness(t, of.skewness)), of.df))


LEAST_USERS = 20
"""With fewer users there are no bands and no tests."""
_EQUAL = 1e-12
"""In parts of the largest value: values that differ by less are tied."""


@dataclass(frozen=True, eq=False)
class _SystemPair:
    """Two systems on one metric."""

    a: str
    b: str
    users: int
    better: int
    """Users better off with a; `worse`: with b."""
    worse: int
    gain: MeanEstimates | None
    """Mean of a less b, greater being better; None: too few users for an interval."""
    forward: Dominance
    backward: Dominance
    row: dict[str, object]


@checked
def user_distribution(
    scores: Source,
    metric: str | Sequence[str] | None = None,
    *,
    reference: str | None = None,
    confidence: float = 0.95,
    threads: int | None = None,
) -> UserDistribution:
    """Show how values are spread over users, and compare systems by more than their means.

    Of each system the quantile curve with a band that holds at all points together; of each pair
    the shares of users better, worse and equally off, and whether one system dominates the other.

    Parameters
    ----------
    scores
        Judged data, which are evaluated here; what `evaluate` gave, or a list of such for several
        folds; or values per user from elsewhere (see `paired`).
    metric
        One or several labels; unless given every metric with a value per user and a direction.
    reference
        Compare this system with every other one, instead of all pairs.
    confidence
        Confidence of the intervals.

        Of each band and interval; 1 - confidence is the level of all sentences on one metric.
    threads
        Of the evaluation; never changes a number.

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
    >>> result = us.stats.user_distribution(values)
    >>> result.pairs().select("a", "b", "better", "worse", "dominance").row(0)
    ('a', 'b', 1.0, 0.0, 'a, first order')
    """
    check_share("confidence", confidence)
    pairing, _ = paired_values(scores, metric, threads)
    systems, selected = pairing.systems, pairs_with(reference, pairing.systems)
    labels = chosen_metrics(pairing, metric)
    without = [label for label in labels if pairing.better[label] == "neither"]
    if without and metric is not None:
        raise SettingError(
            f"{without[0]}: neither direction is better, so that users are not better or worse off"
        )
    labels = [label for label in labels if label not in without]
    if not labels:
        raise SettingError("none of these metrics has a direction that is better")
    notes = [f"left out, as neither direction is better: {', '.join(without)}"] if without else []
    curves, means, pairs, lines = [], [], [], []
    for label in labels:
        values, sign, lost = _values(pairing, label)
        notes += [f"{label}: {lost:,} users left out because a value is undefined"] * (lost > 0)
        curves.append(_curves(pairing, label, values, confidence))
        means.append(_means(pairing, label, values, confidence))
        columns = sign * values
        compared = [
            _pair(label, systems[i], systems[j], columns[:, i], columns[:, j], confidence)
            for i, j in zip(selected.one, selected.other, strict=True)
        ]
        pairs.append(_table(compared, confidence))
        lines += _sentences(compared, pairs[-1], label, sign, confidence)
    return UserDistribution(
        systems=pairing.systems,
        metrics=tuple(labels),
        better={label: pairing.better[label] for label in labels},
        rows=pl.concat(curves),
        means=pl.concat(means),
        compared=pl.concat(pairs),
        confidence=confidence,
        sentences=tuple(lines),
        notes=(*pairing.rules, *pairing.notes, *notes),
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


def _curves(pairing: Paired, label: str, values: F64, level: float) -> pl.DataFrame:
    """Return a row per system and share of users."""
    metric = known_metric(label)
    minimum, maximum = -np.inf, np.inf
    if metric is not None:
        minimum, maximum = metric.definition.low, metric.definition.high
    tables = []
    for column, system in enumerate(pairing.systems):
        band = quantile_band(values[:, column], level)
        limits = np.maximum(band.low, minimum), np.minimum(band.high, maximum)
        low, high = (
            np.where(np.isfinite(end) & (len(values) >= LEAST_USERS), end, np.nan) for end in limits
        )
        columns = {"share": list(POINTS), "value": band.value, "low": low, "high": high}
        tables.append(pl.DataFrame({"metric": label, "system": system, **columns}))
    return pl.concat(tables).with_columns(pl.selectors.float().fill_nan(None))


def _means(pairing: Paired, label: str, values: F64, level: float) -> pl.DataFrame:
    """Return a row per system: the mean, and the users with the lowest value of all."""
    n = len(values)
    of = of_means(group_means(values, np.zeros(n, np.int64), 1))
    low, high = intervals(of, level)
    lowest = float(values.min())
    enough = np.array([n >= LEAST_USERS and others(x) >= LEAST_OTHERS for x in values.T])
    lows = np.count_nonzero(values == lowest, axis=0).tolist()
    shares = np.array([share_of(count, n, level) for count in lows]).T
    names = ("at_lowest", "at_lowest_low", "at_lowest_high")
    columns = {
        "metric": label,
        "system": pairing.systems,
        "users": np.full(len(lows), n),
        "mean": of.value[:, 0],
        "low": np.where(enough, low[:, 0], np.nan),
        "high": np.where(enough, high[:, 0], np.nan),
        "lowest_value": lowest,
        **dict(zip(names, shares, strict=True)),
    }
    return pl.DataFrame(columns).with_columns(pl.col("low", "high").fill_nan(None))


def _pair(label: str, a: str, b: str, first: F64, second: F64, level: float) -> _SystemPair:
    n = first.size
    better, worse = int(np.count_nonzero(first > second)), int(np.count_nonzero(first < second))
    row: dict[str, object] = {"metric": label, "a": a, "b": b, "users": n}
    row |= {**paired_shares(better, worse, n, level), "sign_p": sign_p(better, worse)}
    difference = first - second
    of = mean_gain(difference)
    enough = n >= LEAST_USERS and others(difference) >= LEAST_OTHERS
    limits = [float(end) for end in intervals(of, level)] if enough else [None, None]
    row |= {"gain": float(of.value), "gain_low": limits[0], "gain_high": limits[1]}
    return _SystemPair(
        a=a,
        b=b,
        users=n,
        better=better,
        worse=worse,
        gain=of if enough else None,
        forward=dominance(first, second),
        backward=dominance(second, first),
        row=row,
    )


def mean_gain(difference: F64) -> MeanEstimates:
    """Return the mean of differences of users, of which intervals are made."""
    one_group = np.zeros(difference.size, np.int64)
    of = of_means(group_means(difference[:, None], one_group, 1).pick((0, 0)))
    # Welch's interval counts too: differences of two systems may have hardly any skewness.
    return replace(of, is_difference=True)


def _table(pairs: Sequence[_SystemPair], level: float) -> pl.DataFrame:
    """Return a row per pair; p-values of dominance are corrected for the number of pairs (Holm).

    Of both directions the smaller p counts: a false sentence about one direction needs the other
    system to be better nearly everywhere, where the same sentence about the other is hopeless.
    """
    rows = [dict(pair.row) for pair in pairs]
    columns: dict[str, list[float]] = {}
    for order in ("first", "second"):
        p = [min(getattr(pair.forward, order), getattr(pair.backward, order)) for pair in pairs]
        p = [
            1.0 if pair.users < LEAST_USERS else value for pair, value in zip(pairs, p, strict=True)
        ]
        columns[order] = correct(p, "holm").tolist()
    for row_index, (pair, row) in enumerate(zip(pairs, rows, strict=True)):
        row |= {"first_p": columns["first"][row_index], "second_p": columns["second"][row_index]}
        row["dominance"] = None
        for order in ("second", "first"):
            if columns[order][row_index] <= 1 - level + 1e-12:
                ahead = getattr(pair.forward, order) <= getattr(pair.backward, order)
                row["dominance"] = f"{pair.a if ahead else pair.b}, {order} order"
    texts = {"dominance": pl.String, "gain_low": pl.Float64, "gain_high": pl.Float64}
    if not rows:
        return pl.DataFrame(schema={"metric": pl.String, "a": pl.String, "b": pl.String})
    return pl.DataFrame(rows, schema_overrides=texts)


def _sentences(
    pairs: Sequence[_SystemPair], table: pl.DataFrame, label: str, sign: float, level: float
) -> list[str]:
    """Say what the means do not: dominance, curves that cross, more users against the mean."""
    lines = []
    alpha = (1 - level) / max(len(pairs), 1)
    side = "above" if sign > 0 else "below"
    for pair, row in zip(pairs, table.iter_rows(named=True), strict=True):
        a, b = pair.a, pair.b
        if row["dominance"] is not None:
            ahead, order = row["dominance"].rsplit(", ", 1)
            behind = b if ahead == a else a
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
            lines.append(f"{label}: {ahead} dominates {behind} ({order}): at {where}, {what}")
        lines += _crossing(pair, label, sign, side, alpha)
        lines += _hidden(pair, label, alpha)
    return lines


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
    if pair.gain is None:
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
