"""`discriminative_power`: how well metrics tell systems apart, from the p-values of all pairs."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np
import polars as pl

from unskew.arrays import F64
from unskew.checks import check_share, checked, choose
from unskew.data.tables import read_table
from unskew.errors import DataError, SettingError
from unskew.report.charts import Figure, as_figure
from unskew.report.result import Result
from unskew.report.text import counted
from unskew.stats.pairing import is_evaluated
from unskew.stats.user_draws import check_two_systems
from unskew.stats.value_tables import holds_values

ALPHA, POWER = 0.05, 0.8


POINTS = 4_000  # of a figure's rows


@dataclass(frozen=True, eq=False)
class DiscriminativePower(Result):
    """The p-values of all pairs of systems, metric by metric, and what they add up to.

    Made by `discriminative_power`.
    """

    metrics: tuple[str, ...]
    pairs: tuple[tuple[str, str], ...]
    p: F64
    """2 x pairs x metrics: p of (a, b) and of (b, a); alike where only one was given."""
    alpha: float = ALPHA
    ordered: bool = False

    def values(self) -> F64:
        """Return the p-values that count, a column per metric.

        Of unordered pairs the mean of both directions (two estimates of the same), of ordered ones
        both.
        """
        both: F64 = self.p.reshape(-1, len(self.metrics)) if self.ordered else self.p.mean(axis=0)
        return both

    def table(self) -> pl.DataFrame:
        """Return a row per metric: DP, median p, significant pairs, their ratio, pairs.

        DP is the sum of the p-values: the lower, the better a metric tells systems apart. The
        ratio is the share of pairs with p < alpha (Sakai 2006).
        """
        p = self.values()
        significant = (p < self.alpha).sum(axis=0)
        return pl.DataFrame(
            {
                "metric": self.metrics,
                "DP": [math.fsum(column) for column in p.T],
                "median_p": np.median(p, axis=0),
                "significant": significant,
                "ratio": significant / len(p),
                "pairs": np.full(len(self.metrics), len(p)),
            }
        )

    def curves(self) -> pl.DataFrame:
        """Return the p-value curves: for each metric its p-values from the largest down."""
        falling = np.sort(self.values(), axis=0)[::-1]
        count = len(falling)
        return pl.DataFrame(
            {
                "metric": np.repeat(self.metrics, count),
                "rank": np.tile(np.arange(1, count + 1), len(self.metrics)),
                "p": falling.T.ravel(),
            }
        )

    def figure(self, metrics: Iterable[str] | None = None) -> Figure:
        """Draw the p-value curves (valcarce2018 figure 8): the closer to the origin the better."""
        import altair as alt

        wanted = list(self.metrics) if metrics is None else list(metrics)
        for metric in wanted:
            choose("metric", metric, self.metrics)
        falling = np.sort(self.values(), axis=0)[::-1]
        most = max(POINTS // len(wanted), 2)
        ranks = np.unique(np.linspace(0, len(falling) - 1, min(most, len(falling))).round())
        rows = [
            {"metric": name, "rank": int(at) + 1, "p": float(falling[int(at), column])}
            for name in wanted
            for column in [self.metrics.index(name)]
            for at in ranks
        ]
        x = alt.X("rank:Q", title="pairs of systems, the largest p first").scale(nice=False)
        y = alt.Y("p:Q", title="p").scale(domain=[0, 1])
        chart = alt.Chart(alt.NamedData(name="rows"), width=520, height=280)
        color = alt.Color("metric:N").scale(domain=wanted)
        line: alt.Chart = chart.mark_line().encode(x=x, y=y, color=color)
        return as_figure(line, "p-value curves", self.footer(), rows)

    def _explanation(self) -> list[str]:
        count = len(self.values())
        kind = "ordered" if self.ordered else "unordered"
        return [f"DP: sum of p over {count:,} {kind} pairs; ratio: share with p < {self.alpha:g}"]

    def _summary(self) -> str:
        return f"{counted(len(self.metrics), 'metric')}, {counted(len(self.pairs), 'pair')}"


@checked
def discriminative_power(
    pvalues: object, *, alpha: float = ALPHA, ordered: bool = False
) -> DiscriminativePower:
    """Add up the p-values of all pairs of systems: discriminative power DP.

    Parameters
    ----------
    pvalues
        A comparison of all pairs, or a table of any kind (polars, pandas, a file, a mapping of
        column names to arrays …): either a row per pair and metric with columns metric, a, b and p,
        or a row per pair with the two systems in the first two columns and a column of p-values per
        metric. Pairs may stand in one order or in both. Or scores, or values per user (see
        `paired`): then `compare` gives the p-values, uncorrected, with its defaults.
    alpha
        A pair with p below this is significant.
    ordered
        Count every pair twice, as valcarce2018's table 3 does; else once.

    References
    ----------
    valcarce2018 section 4 (DP, p-value curves); Sakai 2006 (ratio of significant pairs).

    Examples
    --------
    >>> import polars as pl
    >>> from unskew.stats.discrimination import discriminative_power
    >>> p = pl.DataFrame({"a": ["x", "x", "y"], "b": ["y", "z", "z"], "P": [0.5, 0.0, 0.01]})
    >>> discriminative_power(p).table().select("DP", "median_p", "ratio").rows()
    [(0.51, 0.01, 0.6666666666666666)]
    """
    check_share("alpha", alpha)
    long = _long(_as_table(pvalues))
    names = tuple(long["metric"].unique(maintain_order=True).to_list())
    systems = pl.concat([long["a"], long["b"]]).unique(maintain_order=True).to_list()
    check_two_systems(systems)
    pairs = {pair: at for at, pair in enumerate(combinations(systems, 2))}
    place = {name: at for at, name in enumerate(names)}
    p = np.full((2, len(pairs), len(names)), np.nan)
    for name, a, b, value in long.iter_rows():
        if a == b:
            raise DataError(f"{name}: a pair of {a!r} with itself")
        turned = (a, b) not in pairs
        at = pairs[(b, a) if turned else (a, b)]
        if not np.isnan(p[int(turned), at, place[name]]):
            raise DataError(f"{name}: the pair {a}, {b} occurs twice")
        if value is None or not 0 <= value <= 1:
            raise DataError(f"{name}: the p of {a} and {b} is not between 0 and 1: {value!r}")
        p[int(turned), at, place[name]] = value
    for one, other in ((0, 1), (1, 0)):
        p[one] = np.where(np.isnan(p[one]), p[other], p[one])
    if np.isnan(p).any():
        _, at, column = (int(index[0]) for index in np.nonzero(np.isnan(p)))
        a, b = list(pairs)[at]
        raise DataError(f"{names[column]}: there is no p for {a} and {b}: all pairs are needed")
    return DiscriminativePower(names, tuple(pairs), p, alpha, ordered)


def _as_table(pvalues: object) -> pl.DataFrame:
    from unskew.stats.significance import compare

    make = getattr(pvalues, "table", None)  # a `Comparison`
    table = make() if callable(make) and not is_evaluated(pvalues) else None
    if isinstance(table, pl.DataFrame) and {"a", "b", "p"} <= set(table.columns):
        return table
    if is_evaluated(pvalues):
        return compare(pvalues, correction=None).table()
    if isinstance(pvalues, Sequence) and not isinstance(pvalues, str):
        raise SettingError(
            f"pvalues must be a table of pairs, a comparison of all, or scores; got "
            f"{type(pvalues).__name__}"
        )
    read = read_table(pvalues)
    if holds_values(read):
        return compare(read, correction=None).table()
    return read.frame


def _long(table: pl.DataFrame) -> pl.DataFrame:
    """Return the columns metric, a, b, p of either form of table."""
    if {"metric", "a", "b", "p"} <= set(table.columns):
        long = table.select("metric", "a", "b", "p")
    elif {"a", "b", "p"} <= set(table.columns):
        long = table.select(pl.lit("p").alias("metric"), "a", "b", "p")
    else:
        if table.width < 3:
            raise DataError("a table of p-values needs two columns of systems and one per metric")
        first, second, *metrics = table.columns
        odd = [name for name in metrics if not table[name].dtype.is_numeric()]
        if odd:
            raise DataError(
                f"column {odd[0]!r}: p-values must be numbers, got {table[odd[0]].dtype}"
            )
        long = table.unpivot(metrics, index=[first, second], variable_name="metric", value_name="p")
        long = long.select("metric", pl.col(first).alias("a"), pl.col(second).alias("b"), "p")
    if not long.height:
        raise DataError("there are no p-values")
    text = pl.col("metric", "a", "b").cast(pl.String)
    return long.with_columns(text, pl.col("p").cast(pl.Float64))
