"""`power`: how well each metric tells the systems apart, and what the users at hand allow."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import combinations
from statistics import NormalDist

import numpy as np
import polars as pl

from unskew.arrays import F64, I64
from unskew.checks import check_share, checked, choose, is_number
from unskew.data.read.tables import read_table
from unskew.engine.progress import Progress, notebook_progress
from unskew.errors import DataError, SettingError
from unskew.report.charts import Figure, as_figure
from unskew.report.result import Result
from unskew.report.text import counted
from unskew.stats.pairing import Source, is_evaluated, paired
from unskew.stats.resampling import check_two_systems, chosen_metrics
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
        values: F64 = self.p.reshape(-1, len(self.metrics)) if self.ordered else self.p.mean(axis=0)
        return values

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

        chosen = list(self.metrics) if metrics is None else list(metrics)
        for metric in chosen:
            choose("metric", metric, self.metrics)
        falling = np.sort(self.values(), axis=0)[::-1]
        points = max(POINTS // len(chosen), 2)
        ranks = np.unique(np.linspace(0, len(falling) - 1, min(points, len(falling))).round())
        rows = [
            {"metric": name, "rank": int(rank) + 1, "p": float(falling[int(rank), column])}
            for name in chosen
            for column in [self.metrics.index(name)]
            for rank in ranks
        ]
        x = alt.X("rank:Q", title="pairs of systems, the largest p first").scale(nice=False)
        y = alt.Y("p:Q", title="p").scale(domain=[0, 1])
        chart = alt.Chart(alt.NamedData(name="rows"), width=520, height=280)
        color = alt.Color("metric:N").scale(domain=chosen)
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
    >>> from unskew.stats.agreement.power import discriminative_power
    >>> p = pl.DataFrame({"a": ["x", "x", "y"], "b": ["y", "z", "z"], "P": [0.5, 0.0, 0.01]})
    >>> discriminative_power(p).table().select("DP", "median_p", "ratio").rows()
    [(0.51, 0.01, 0.6666666666666666)]
    """
    check_share("alpha", alpha)
    long = _long(_as_table(pvalues))
    names = tuple(long["metric"].unique(maintain_order=True).to_list())
    systems = pl.concat([long["a"], long["b"]]).unique(maintain_order=True).to_list()
    check_two_systems(systems)
    pairs = {pair: row for row, pair in enumerate(combinations(systems, 2))}
    columns = {name: column for column, name in enumerate(names)}
    p = np.full((2, len(pairs), len(names)), np.nan)
    for name, a, b, value in long.iter_rows():
        if a == b:
            raise DataError(f"{name}: a pair of {a!r} with itself")
        is_reversed = (a, b) not in pairs
        row = pairs[(b, a) if is_reversed else (a, b)]
        if not np.isnan(p[int(is_reversed), row, columns[name]]):
            raise DataError(f"{name}: the pair {a}, {b} occurs twice")
        if value is None or not 0 <= value <= 1:
            raise DataError(f"{name}: the p of {a} and {b} is not between 0 and 1: {value!r}")
        p[int(is_reversed), row, columns[name]] = value
    for side, opposite in ((0, 1), (1, 0)):
        p[side] = np.where(np.isnan(p[side]), p[opposite], p[side])
    if np.isnan(p).any():
        _, row, column = (int(index[0]) for index in np.nonzero(np.isnan(p)))
        a, b = list(pairs)[row]
        raise DataError(f"{names[column]}: there is no p for {a} and {b}: all pairs are needed")
    return DiscriminativePower(names, tuple(pairs), p, alpha, ordered)


def _as_table(pvalues: object) -> pl.DataFrame:
    from unskew.stats.compare.compare import compare

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


MOST_USERS = 1 << 53
"""A difference that needs more users than this is one of rounding: no number would do."""


@dataclass(frozen=True, eq=False)
class SampleSize(Result):
    """What difference the users at hand can show, and how many users a difference needs.

    Made by `sample_size`.
    """

    metrics: tuple[str, ...]
    pairs: tuple[tuple[str, str], ...]
    gap: F64
    """Metrics x pairs: the mean difference a - b."""
    sd: F64
    """Metrics x pairs: the standard deviation of the users' differences."""
    users: I64
    """Metrics: users compared."""
    difference: float | None
    """The difference that `needed` is of; None: the observed one."""
    alpha: float = ALPHA
    power: float = POWER
    tests: int = 1
    """Comparisons that share alpha (Bonferroni)."""

    def detectable(self) -> F64:
        """Return metrics x pairs: the least difference that is found with the power asked for."""
        effective = self.users[:, None] - self._quantile() ** 2 / 2
        smallest: F64 = self._quantiles() * self.sd / np.sqrt(effective)
        return smallest

    def needed(self) -> F64:
        """Return metrics x pairs: the users needed; infinite for a difference of 0."""
        gap = (
            np.abs(self.gap) if self.difference is None else np.full_like(self.gap, self.difference)
        )
        with np.errstate(divide="ignore", invalid="ignore"):
            ratio = np.where(gap > 0, self.sd / gap, np.inf)
        # Less a hair, so that a whole number found in floating point is not rounded up.
        users: F64 = np.ceil((self._quantiles() * ratio) ** 2 + self._quantile() ** 2 / 2 - 1e-9)
        return np.maximum(users, 2.0)

    def achieved(self) -> F64:
        """Return metrics x pairs: the power with which a difference as observed is found."""
        with np.errstate(divide="ignore", invalid="ignore"):
            effective = np.sqrt(self.users[:, None] - self._quantile() ** 2 / 2)
            shift = np.where(self.gap == 0, 0.0, np.abs(self.gap) / self.sd * effective)
        normal = NormalDist()
        return np.array(
            [
                [normal.cdf(x - self._quantile()) + normal.cdf(-x - self._quantile()) for x in row]
                for row in shift.tolist()
            ]
        )

    def pair_table(self) -> pl.DataFrame:
        """Return a row per metric and pair of systems.

        Columns: metric, a, b, users, difference (a - b), sd, effect (difference / sd), detectable,
        power (to find a difference as large as the observed one), needed (users; null where no
        number would do).
        """
        count = len(self.pairs)
        with np.errstate(divide="ignore", invalid="ignore"):
            effect = np.where(self.gap == 0, 0.0, self.gap / self.sd)
        needed = self.needed().ravel()
        return pl.DataFrame(
            {
                "metric": np.repeat(self.metrics, count),
                "a": [a for a, _ in self.pairs] * len(self.metrics),
                "b": [b for _, b in self.pairs] * len(self.metrics),
                "users": np.repeat(self.users, count),
                "difference": self.gap.ravel(),
                "sd": self.sd.ravel(),
                "effect": effect.ravel(),
                "detectable": self.detectable().ravel(),
                "power": self.achieved().ravel(),
                "needed": [int(n) if n < MOST_USERS else None for n in needed.tolist()],
            },
            schema_overrides={"needed": pl.Int64},
        )

    def table(self) -> pl.DataFrame:
        """Return a row per metric, over all pairs of systems.

        Columns: metric, users, sd (median), detectable (median and, as `hardest`, the largest),
        powered (the share of pairs whose observed difference is at least what is detectable),
        needed (median users; null where no number would do).
        """
        smallest = self.detectable()
        needed = np.median(self.needed(), axis=1)
        return pl.DataFrame(
            {
                "metric": self.metrics,
                "users": self.users,
                "sd": np.median(self.sd, axis=1),
                "detectable": np.median(smallest, axis=1),
                "hardest": smallest.max(axis=1),
                "powered": ((np.abs(self.gap) >= smallest) & (self.gap != 0)).mean(axis=1),
                "needed": [math.ceil(n) if n < MOST_USERS else None for n in needed.tolist()],
            },
            schema_overrides={"needed": pl.Int64},
        )

    def _quantiles(self) -> float:
        return self._quantile() + NormalDist().inv_cdf(self.power)

    def _quantile(self) -> float:
        return NormalDist().inv_cdf(1 - self.alpha / self.tests / 2)

    def _explanation(self) -> list[str]:
        target = "the observed differences" if self.difference is None else f"{self.difference:g}"
        shared = f" / {self.tests} (Bonferroni)" if self.tests > 1 else ""
        return [
            f"paired t test, two-sided, alpha {self.alpha:g}{shared}, power {self.power:g} "
            f"(normal approximation with Guenther's correction); users needed for {target}"
        ]

    def _summary(self) -> str:
        return f"{counted(len(self.metrics), 'metric')}, {counted(len(self.pairs), 'pair')}"


@checked
def sample_size(
    scores: Source,
    metrics: str | Sequence[str] | None = None,
    *,
    difference: float | None = None,
    power: float = POWER,
    alpha: float = ALPHA,
    correction: str = "none",
    threads: int | None = None,
) -> SampleSize:
    r"""Return the smallest difference these users can show, and the users a difference needs.

    From the standard deviation s of the users' paired differences:

    .. math::
        \delta_{min} = \frac{(z_{1-\alpha/2} + z_{power})\,s}{\sqrt{n - z_{1-\alpha/2}^2/2}}
        \qquad
        n = \frac{(z_{1-\alpha/2} + z_{power})^2 s^2}{\delta^2} + \frac{z_{1-\alpha/2}^2}{2}

    the normal approximation of the paired t test with Guenther's (1981) correction for the
    estimated s; from some twenty users up it is right to a fraction of a per cent.

    Parameters
    ----------
    scores
        What `evaluate` gave, a list of such for several folds, or values per user (see `paired`).
    metrics
        Labels of these scores; all that have a value per user unless named.
    difference
        The difference that users are needed for; None for the observed one of each pair.
    power
        How surely a true difference should be found; above `alpha`, which even no difference
        reaches.
    alpha
        How often a difference is found where there is none.
    correction
        `none`, or `bonferroni`: alpha divided by the number of pairs.
    threads
        Never change a result.

    References
    ----------
    Sakai 2016 (topic set size design); Guenther 1981.
    """
    from unskew.stats.pairing import all_pairs, sample

    pairing = paired(scores)
    check_two_systems(pairing.systems)
    labels = chosen_metrics(pairing, metrics)
    check_power(power, alpha)
    choose("correction", correction, ("none", "bonferroni"))
    if difference is not None:
        check_difference(difference)
    names = pairing.systems
    pairs = tuple(combinations(names, 2))
    tests = len(pairs) if correction == "bonferroni" else 1
    minimum = math.floor(NormalDist().inv_cdf(1 - alpha / tests / 2) ** 2 / 2) + 2

    def pair_numbers(label: str) -> tuple[F64, F64, int]:
        values = pairing.complete(label)
        if len(values) < minimum:
            raise DataError(
                f"{label}: {counted(len(values), 'user is', 'users are')} too few for "
                f"alpha={alpha:g}: at least {minimum}"
            )
        pair_sample = sample(values, all_pairs(len(names)), label, threads)
        return pair_sample.difference, pair_sample.sd, pair_sample.users

    rows = [pair_numbers(label) for label in labels]
    gap, sd, users = (np.array(column) for column in zip(*rows, strict=True))
    return SampleSize(
        metrics=tuple(labels),
        pairs=pairs,
        gap=gap,
        sd=sd,
        users=users,
        difference=difference,
        alpha=alpha,
        power=power,
        tests=tests,
    )


def check_power(power: float, alpha: float) -> None:
    """Raise an error for a power that no number of users can give."""
    check_share("power", power)
    check_share("alpha", alpha)
    if power <= alpha:
        raise SettingError(
            f"power must be above alpha ({alpha:g}), got {power:g}: a test of this level finds a "
            f"difference in {100 * alpha:g} % of the cases even where there is none"
        )


def check_difference(value: float) -> None:
    """Raise an error for a difference that is not a finite number above 0."""
    if not is_number(value) or not 0 < value < math.inf:
        raise SettingError(f"difference must be a finite number above 0, got {value!r}")


PERMUTATIONS = 100_000


@dataclass(frozen=True, eq=False)
class Power(Result):
    """How well each metric tells the systems apart.

    Made by `power`.
    """

    discriminative: DiscriminativePower
    sizes: SampleSize
    notes: tuple[str, ...] = ()

    def table(self) -> pl.DataFrame:
        """Return a row per metric, the most discriminative first.

        Columns: metric; DP, median_p and ratio of `DiscriminativePower.table`; users,
        detectable and needed of `SampleSize.table`.
        """
        table = self.discriminative.table().select("metric", "DP", "median_p", "ratio")
        sizes = self.sizes.table().select("metric", "users", "detectable", "needed")
        table = table.join(sizes, on="metric", how="left", maintain_order="left")
        return table.sort("DP", maintain_order=True)

    def figure(self, metrics: Iterable[str] | None = None) -> Figure:
        """Draw the p-value curves."""
        return self.discriminative.figure(metrics)

    def _explanation(self) -> list[str]:
        return [*self.discriminative.footer(), *self.sizes.footer()]

    def _summary(self) -> str:
        return self.sizes._summary()


@notebook_progress("power")
@checked
def power(
    scores: Source,
    metrics: str | Sequence[str] | None = None,
    *,
    test: str = "randomisation",
    permutations: int = PERMUTATIONS,
    plus_one: bool = True,
    ordered: bool = False,
    difference: float | None = None,
    power: float = POWER,
    alpha: float = ALPHA,
    seed: int = 0,
    threads: int | None = None,
    progress: Progress | None = None,
) -> Power:
    """Measure how well each metric tells the systems apart, and what the users at hand allow.

    Parameters
    ----------
    scores
        What `evaluate` gave, a list of such for several folds, or values per user (see `paired`).
    metrics
        Labels of these scores; all that have a value per user unless named.
    test
        The test: `randomisation`, `t`, `wilcoxon`, `sign`, `bootstrap`.

        See `compare`; p-values are not corrected. The paper's have no +1.
    permutations
        Permutations of the randomisation test, or resamples of the bootstrap.
    plus_one
        See `compare`.
    ordered
        Count each pair twice in DP, as valcarce2018 does.
    difference
        The difference that should be detected.
    power
        The probability with which the test should detect it.
    alpha
        The significance level of the test.
    seed, threads
        The same seed gives the same numbers, on any number of threads.
    progress
        Called with (done, total) as work goes on.
    """
    from unskew.stats.compare.compare import compare

    sizes = sample_size(
        scores, metrics, difference=difference, power=power, alpha=alpha, threads=threads
    )
    comparison = compare(
        scores,
        list(sizes.metrics),
        test=test,
        permutations=permutations,
        plus_one=plus_one,
        correction=None,
        interval="t",
        seed=seed,
        threads=threads,
        progress=progress,
    )
    pairs = discriminative_power(comparison, alpha=alpha, ordered=ordered)
    return Power(pairs, sizes, comparison.notes)
