"""`power`: how well metrics tell systems apart, and how many users that takes."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from statistics import NormalDist

import numpy as np
import polars as pl

from unskew.arrays import F64, I64, frozen
from unskew.checks import as_count, check_share, checked, choose, is_number
from unskew.data.readers import read_table
from unskew.engine.rng import key_of
from unskew.engine.threads import map_blocks
from unskew.errors import DataError, SettingError
from unskew.report.charts import Figure, as_figure
from unskew.report.result import Printed
from unskew.stats.correlation import rounded
from unskew.stats.distributions import wilson
from unskew.stats.pairing import Source, is_evaluated, paired
from unskew.stats.resamples import at_least_two, chosen_metrics, reweighted
from unskew.stats.user_values import holds_values

Progress = Callable[[int, int], None]
Test = Callable[[F64], F64]
"""From paired differences (users x columns) to a two-sided p for each column."""

ALPHA, POWER = 0.05, 0.8
PERMUTATIONS = 100_000
SAMPLES = 1_000
BINS = 20
POINTS = 4_000  # of a figure's rows
MOST_USERS = 1 << 53
"""A difference that needs more users than this is one of rounding: no number would do."""

# Discriminative power


@dataclass(frozen=True, eq=False)
class DiscriminativePower(Printed):
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
        found = (p < self.alpha).sum(axis=0)
        return pl.DataFrame(
            {
                "metric": self.metrics,
                "DP": [math.fsum(column) for column in p.T],
                "median_p": np.median(p, axis=0),
                "significant": found,
                "ratio": found / len(p),
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

    def footer(self) -> list[str]:
        """Return the lines that say what was added up."""
        count = len(self.values())
        kind = "ordered" if self.ordered else "unordered"
        return [f"DP: sum of p over {count:,} {kind} pairs; ratio: share with p < {self.alpha:g}"]

    def __repr__(self) -> str:
        return f"DiscriminativePower({len(self.metrics)} metrics, {len(self.pairs)} pairs)"


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
    at_least_two(systems)
    pairs = {pair: at for at, pair in enumerate(combinations(systems, 2))}
    place = {name: at for at, name in enumerate(names)}
    p = np.full((2, len(pairs), len(names)), np.nan)
    for name, a, b, value in long.iter_rows():
        if a == b:
            raise DataError(f"{name}: a pair of {a!r} with itself")
        turned = (a, b) not in pairs
        at = pairs[(b, a) if turned else (a, b)]
        if not np.isnan(p[int(turned), at, place[name]]):
            raise DataError(f"{name}: the pair {a}, {b} stands twice")
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


# Swap rate


@dataclass(frozen=True, eq=False)
class SwapRate(Printed):
    """How often two halves of the users disagree about which of two systems is better.

    Made by `swap_rate`.
    """

    metrics: tuple[str, ...]
    systems: tuple[str, ...]
    edges: F64
    """Metrics x bins: where each bin of differences begins."""
    comparisons: I64
    """Metrics x bins: pairs and samples whose first half shows such a difference."""
    swaps: I64
    """Metrics x bins: of these, where the second half says the opposite."""
    ties: I64
    """Metrics: pairs and samples in which the first half shows no difference at all."""
    gaps: F64
    """Metrics x pairs: the difference over all users."""
    users: int
    samples: int
    limit: float = 0.05

    def table(self) -> pl.DataFrame:
        """Return a row per metric: swap rate, the difference that is safe, pairs that reach it.

        Columns: metric, swap_rate (swaps / comparisons with a difference), ties (share of the
        comparisons without one), difference (the least at which, and above which, no bin swaps
        more often than `limit`), relative (the same as a share of the largest difference between
        two systems), decided (share of the pairs of systems that differ by at least this much).
        """
        rows = []
        for at, metric in enumerate(self.metrics):
            count = int(self.comparisons[at].sum())
            safe = self._safe(at)
            largest = float(self.gaps[at].max(initial=0.0))
            rows.append(
                {
                    "metric": metric,
                    "swap_rate": int(self.swaps[at].sum()) / count if count else None,
                    "ties": int(self.ties[at]) / max(count + int(self.ties[at]), 1),
                    "difference": safe,
                    "relative": safe / largest if safe is not None and largest > 0 else None,
                    "decided": None if safe is None else float((self.gaps[at] >= safe).mean()),
                }
            )
        numbers = ("swap_rate", "ties", "difference", "relative", "decided")
        return pl.DataFrame(rows, {"metric": pl.String, **dict.fromkeys(numbers, pl.Float64)})

    def _safe(self, at: int) -> float | None:
        safe = None
        for one in range(self.edges.shape[1] - 1, -1, -1):
            if self.comparisons[at, one]:
                if self.swaps[at, one] > self.limit * self.comparisons[at, one]:
                    break
                safe = float(self.edges[at, one])
        return safe

    def curves(self) -> pl.DataFrame:
        """Return the swap rate by difference: where bins begin, comparisons, swaps, rate."""
        bins = self.edges.shape[1]
        with np.errstate(invalid="ignore"):
            rate = self.swaps / self.comparisons
        table = pl.DataFrame(
            {
                "metric": np.repeat(self.metrics, bins),
                "difference": self.edges.ravel(),
                "comparisons": self.comparisons.ravel(),
                "swaps": self.swaps.ravel(),
                "rate": rate.ravel(),
            }
        )
        return table.with_columns(pl.col("rate").fill_nan(None))

    def figure(self, metrics: Iterable[str] | None = None) -> Figure:
        """Draw the swap rate over the difference, relative to the largest, a line per metric."""
        import altair as alt

        wanted = list(self.metrics) if metrics is None else list(metrics)
        rows = []
        for name in wanted:
            at = self.metrics.index(choose("metric", name, self.metrics))
            for one in np.flatnonzero(self.comparisons[at]).tolist():
                rate = float(self.swaps[at, one] / self.comparisons[at, one])
                place = one / self.edges.shape[1]
                rows.append({"metric": name, "difference": place, "rate": rate})
        x = alt.X("difference:Q", title="difference between two systems, of the largest")
        y = alt.Y("rate:Q", title="swap rate").axis(format="%")
        chart = alt.Chart(alt.NamedData(name="rows"), width=520, height=280)
        color = alt.Color("metric:N").scale(domain=wanted)
        line: alt.Chart = chart.mark_line(point=True).encode(x=x.axis(format="%"), y=y, color=color)
        return as_figure(line, "Swap rate", self.footer(), rows)

    def footer(self) -> list[str]:
        """Return the lines that say how the numbers came about."""
        return [
            f"{self.samples:,} random halves of {self.users:,} users; of two systems the better "
            f"one by {self.users // 2:,} users is compared with what the others say"
        ]

    def __repr__(self) -> str:
        return f"SwapRate({len(self.metrics)} metrics, {len(self.systems)} systems)"


@checked
def swap_rate(
    scores: Source,
    metrics: str | Sequence[str] | None = None,
    *,
    samples: int = SAMPLES,
    bins: int = BINS,
    limit: float = 0.05,
    seed: int = 0,
    threads: int | None = None,
    progress: Progress | None = None,
) -> SwapRate:
    """Split users into random halves and count how often these disagree about two systems.

    Parameters
    ----------
    scores
        What `evaluate` gave, a list of such for several folds, or values per user (see `paired`).
    metrics
        Labels of these scores; all that have a value per user unless named.
    samples
        Random halves; with an odd number of users the second is larger by one.
    bins
        Differences in the first half are binned between 0 and the largest that occurs between two
        systems over all users; the last bin takes what is larger.
    limit
        The swap rate that is still acceptable, 5 % in the paper.
    seed, threads
        The same seed gives the same numbers, on any number of threads.

    References
    ----------
    Voorhees & Buckley 2002; Buckley & Voorhees 2000. They split sets of topics and extrapolate to
    all of them; here the rate is that of half the users, which overstates it for all.
    """
    from unskew.stats import rank_kernels as kernels

    both = paired(scores)
    at_least_two(both.systems)
    labels = chosen_metrics(both, metrics)
    draws = as_count("samples", samples)
    as_count("bins", bins)
    check_share("limit", limit)
    if len(both) < 4:
        raise DataError(f"halves need at least 4 users, got {len(both)}")
    key = np.uint64(key_of(seed, "halves"))

    def first(low: int, out: F64) -> None:
        number = low + np.arange(len(out))
        kernels.part(key, frozen(number), frozen(np.full(len(out), len(both) // 2)), out)

    def second(low: int, out: F64) -> None:
        first(low, out)
        np.subtract(1.0, out, out=out)

    everyone = reweighted(both, labels, lambda _, out: out.fill(1.0), 1, threads)[0]
    halves = [
        reweighted(both, labels, weigh, draws, threads, progress) for weigh in (first, second)
    ]
    i, j = np.triu_indices(len(both.systems), 1)
    gaps = np.abs(everyone[:, i] - everyone[:, j])
    shape = (len(labels), bins)
    comparisons, swaps = np.zeros(shape, np.int64), np.zeros(shape, np.int64)
    ties = np.zeros(len(labels), np.int64)
    edges = np.zeros(shape)
    for at in range(len(labels)):
        # Means that are equal but for rounding are ties.
        scale = [np.abs(half[:, at]).max(axis=1, keepdims=True, initial=0) for half in halves]
        exact = [rounded(half[:, at]) * top for half, top in zip(halves, scale, strict=True)]
        one, other = (half[:, i] - half[:, j] for half in exact)
        width = max(float(gaps[at].max()), 1e-300) / bins
        edges[at] = np.arange(bins) * width
        apart = one != 0
        ties[at] = int((~apart).sum())
        bin_of = np.minimum((np.abs(one[apart]) / width).astype(np.int64), bins - 1)
        swapped = np.sign(one[apart]) * np.sign(other[apart]) < 0
        comparisons[at] = np.bincount(bin_of, minlength=bins)
        swaps[at] = np.bincount(bin_of[swapped], minlength=bins)
    return SwapRate(
        tuple(labels), both.systems, edges, comparisons, swaps, ties, gaps, len(both), draws, limit
    )


# Minimal detectable difference


@dataclass(frozen=True, eq=False)
class SampleSize(Printed):
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
        free = self.users[:, None] - self._quantile() ** 2 / 2
        found: F64 = (self._quantile() + NormalDist().inv_cdf(self.power)) * self.sd / np.sqrt(free)
        return found

    def needed(self) -> F64:
        """Return metrics x pairs: the users needed; infinite for a difference of 0."""
        gap = (
            np.abs(self.gap) if self.difference is None else np.full_like(self.gap, self.difference)
        )
        both = self._quantile() + NormalDist().inv_cdf(self.power)
        with np.errstate(divide="ignore", invalid="ignore"):
            ratio = np.where(gap > 0, self.sd / gap, np.inf)
        # Less a hair, so that a whole number found in floating point is not rounded up.
        users: F64 = np.ceil((both * ratio) ** 2 + self._quantile() ** 2 / 2 - 1e-9)
        return np.maximum(users, 2.0)

    def achieved(self) -> F64:
        """Return metrics x pairs: the power with which a difference as observed is found."""
        with np.errstate(divide="ignore", invalid="ignore"):
            free = np.sqrt(self.users[:, None] - self._quantile() ** 2 / 2)
            shift = np.where(self.gap == 0, 0.0, np.abs(self.gap) / self.sd * free)
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
        found = self.detectable()
        needed = np.median(self.needed(), axis=1)
        return pl.DataFrame(
            {
                "metric": self.metrics,
                "users": self.users,
                "sd": np.median(self.sd, axis=1),
                "detectable": np.median(found, axis=1),
                "hardest": found.max(axis=1),
                "powered": ((np.abs(self.gap) >= found) & (self.gap != 0)).mean(axis=1),
                "needed": [math.ceil(n) if n < MOST_USERS else None for n in needed.tolist()],
            },
            schema_overrides={"needed": pl.Int64},
        )

    def _quantile(self) -> float:
        return NormalDist().inv_cdf(1 - self.alpha / self.tests / 2)

    def footer(self) -> list[str]:
        """Return the lines that say how the numbers came about."""
        wanted = "the observed differences" if self.difference is None else f"{self.difference:g}"
        shared = f" / {self.tests} (Bonferroni)" if self.tests > 1 else ""
        return [
            f"paired t test, two-sided, alpha {self.alpha:g}{shared}, power {self.power:g} "
            f"(normal approximation with Guenther's correction); users needed for {wanted}"
        ]

    def __repr__(self) -> str:
        return f"SampleSize({len(self.metrics)} metrics, {len(self.pairs)} pairs)"


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
    r"""Tell what difference these users can show, and how many users a difference needs.

    From the standard deviation s of the users' paired differences:

    .. math::
        \delta_{min} = \frac{(z_{1-\alpha/2} + z_{power})\,s}{\sqrt{n - z_{1-\alpha/2}^2/2}}
        \qquad
        n = \frac{(z_{1-\alpha/2} + z_{power})^2 s^2}{\delta^2} + \frac{z_{1-\alpha/2}^2}{2}

    the normal approximation of the paired t test with Guenther's (1981) correction for the
    estimated s; from some twenty users up it is right to a fraction of a per cent.

    Parameters
    ----------
    scores, metrics
        As in `swap_rate`.
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
    from unskew.stats.samples import all_pairs, sample

    both = paired(scores)
    at_least_two(both.systems)
    labels = chosen_metrics(both, metrics)
    check_power(power, alpha)
    choose("correction", correction, ("none", "bonferroni"))
    if difference is not None:
        check_difference(difference)
    names = both.systems
    pairs = tuple(combinations(names, 2))
    tests = len(pairs) if correction == "bonferroni" else 1
    least = math.floor(NormalDist().inv_cdf(1 - alpha / tests / 2) ** 2 / 2) + 2

    def one(label: str) -> tuple[F64, F64, int]:
        values = both.complete(label)
        if len(values) < least:
            raise DataError(
                f"{label}: {len(values)} users are too few for alpha={alpha:g}: at least {least}"
            )
        given = sample(values, all_pairs(len(names)), label, threads)
        return given.difference, given.sd, given.users

    rows = [one(label) for label in labels]
    gap, sd, users = (np.array(column) for column in zip(*rows, strict=True))
    return SampleSize(tuple(labels), pairs, gap, sd, users, difference, alpha, power, tests)


# Errors of a test where there is nothing to find


TESTS = ("randomisation", "t", "wilcoxon", "sign")
NULLS = {
    "signs": "a random pair of systems, the sign of each user's difference drawn by a coin",
    "labels": "for each user the values of two random systems",
    "centred": "a random pair of systems, differences less their mean; users drawn with repetition",
}
"""How systems are made equal. Differences are symmetric about 0 under the first two; under the last
they have mean 0 and the shape that the data have."""
OF_SYMMETRY = ("wilcoxon", "sign")
"""Tests of whether differences are symmetric about 0: a mean of 0 is not enough for them."""
SIMULATIONS = 1_000
_STEP = 50  # simulations at a time: of fixed size, each block with its own key

EXCEEDS, IN_LINE, BELOW = "does not hold its level", "in line with its level", "below its level"


@dataclass(frozen=True, eq=False)
class TypeOneError(Printed):
    """How often tests find a difference between systems that were made equal.

    Made by `type_one_error`.
    """

    metric: str
    users: int
    p: Mapping[str, Mapping[str, F64]]
    """For each null and test the p-values of all simulations."""
    alpha: float = ALPHA

    def table(self, alpha: float | None = None) -> pl.DataFrame:
        """Return a row per null and test: how often p <= alpha, with Wilson's interval.

        Columns: null, test, alpha, simulations, rejected, rate, low, high, verdict: `does not hold
        its level` where the interval lies above alpha, `below its level` where it lies below (a
        test that is only careful), else `in line with its level`. The intervals of all rows hold
        together at 95 % (Bonferroni): of tests that hold their level none is called otherwise in
        95 % of the tables.
        """
        limit = self.alpha if alpha is None else alpha
        check_share("alpha", limit)
        rows = []
        level = 1 - 0.05 / sum(map(len, self.p.values()))
        for null, tests in self.p.items():
            for test, p in tests.items():
                rejected = int((p <= limit).sum())
                low, high = map(float, wilson(rejected, p.size, level))
                verdict = EXCEEDS if low > limit else BELOW if high < limit else IN_LINE
                rate = rejected / p.size
                rows.append((null, test, limit, p.size, rejected, rate, low, high, verdict))
        names = ["null", "test", "alpha", "simulations", "rejected", "rate", "low", "high"]
        return pl.DataFrame(rows, schema=[*names, "verdict"], orient="row")

    def figure(self) -> Figure:
        """Draw how often p falls below each level: on the diagonal where a test keeps its level."""
        import altair as alt

        levels = np.linspace(0, 1, 101)
        rows = [
            {"null": null, "test": test, "level": float(level), "rate": float((p <= level).mean())}
            for null, tests in self.p.items()
            for test, p in tests.items()
            for level in levels
        ]
        tests = list(dict.fromkeys(test for several in self.p.values() for test in several))
        chart = alt.Chart(alt.NamedData(name="rows"), width=240, height=240)
        x = alt.X("level:Q", title="alpha").scale(domain=[0, 1])
        y = alt.Y("rate:Q", title="share of p at or below alpha").scale(domain=[0, 1])
        color = alt.Color("test:N").scale(domain=tests)
        nulls = alt.Column("null:N", title=None).sort(list(self.p))
        line: alt.Chart = chart.mark_line().encode(x=x, y=y, color=color, column=nulls)
        return as_figure(line, "Errors where systems are equal", self.footer(), rows)

    def footer(self) -> list[str]:
        """Return the lines that say how the numbers came about."""
        lines = [f"{self.metric}, {self.users:,} users; systems made equal:"]
        lines += [f"{null}: {NULLS[null]}" for null in self.p]
        lines.append("low and high: 95 % for all rows together")
        if set(self.p.get("centred", ())) & set(OF_SYMMETRY):
            lines.append(
                "under centred the mean difference is 0, but differences need not be symmetric "
                "about 0: wilcoxon and sign test symmetry (sign: the median), not the mean"
            )
        return lines

    def __repr__(self) -> str:
        tests = dict.fromkeys(test for tests in self.p.values() for test in tests)
        return f"TypeOneError({self.metric!r}, nulls {', '.join(self.p)}, tests {', '.join(tests)})"


@checked
def type_one_error(
    scores: Source,
    metric: str,
    *,
    tests: str | Sequence[str] | Mapping[str, Test] = TESTS,
    null: str | Sequence[str] = tuple(NULLS),
    users: int | None = None,
    simulations: int = SIMULATIONS,
    permutations: int = 1_000,
    alpha: float = ALPHA,
    seed: int = 0,
    threads: int | None = None,
    progress: Progress | None = None,
) -> TypeOneError:
    """Simulate how often a test errs on data like these when no two systems differ.

    Parameters
    ----------
    scores
        What `evaluate` gave, a list of such for several folds, or values per user (see `paired`).
    metric
        Its label.
    tests
        Of `randomisation`, `t`, `wilcoxon`, `sign`; or functions of your own, by name, from
        differences (users x columns) to two-sided p-values.
    null
        How systems are made equal, one or several: `signs` takes a random pair of systems and gives
        each user's difference the sign of a coin; `labels` takes for each user the values of two
        systems at random; `centred` takes a random pair of systems, subtracts the mean from the
        users' differences and draws users with replacement. Differences are symmetric about 0 under
        the first two, where the sign, Wilcoxon and randomisation tests hold their level by
        construction. Under `centred` only the mean is 0: where differences are skewed, Wilcoxon and
        sign, which test symmetry and the median, reject although the means are equal.
    users
        Draw so many users with replacement for each simulation: what happens with fewer (or more)
        users than there are. None: as many as there are.
    simulations, permutations
        How many under each null; the second of the randomisation test in each simulation.
    alpha
        The level.
    seed, threads
        The same seed gives the same numbers, on any number of threads.

    References
    ----------
    Smucker et al. 2007; Urbano et al. 2019; Parapar et al. 2020; Ihemelandu & Ekstrand 2021.
    """
    both = paired(scores)
    at_least_two(both.systems)
    label = both.label(metric)
    nulls = [null] if isinstance(null, str) else list(dict.fromkeys(null))
    if not nulls:
        raise SettingError(f"no null is named: one or several of {', '.join(NULLS)}")
    for name in nulls:
        choose("null", name, NULLS)
    check_share("alpha", alpha)
    count = as_count("simulations", simulations)
    as_count("permutations", permutations)
    values = both.complete(label)
    if len(values) < 2:
        raise DataError(f"{label}: a test needs at least 2 users, there are {len(values)}")
    size = len(values) if users is None else as_count("users", users, least=2)
    named = _named_tests(tests, permutations, seed)
    steps = [(name, low) for name in nulls for low in range(0, count, _STEP)]
    done = 0

    def simulate(step: tuple[str, int]) -> dict[str, F64]:
        nonlocal done
        name, low = step
        rng = np.random.default_rng(key_of(seed, "type one", low // _STEP))
        gaps = _null_gaps(values, min(_STEP, count - low), name, users, rng)
        found = {test: np.asarray(run(gaps.copy()), np.float64) for test, run in named.items()}
        done += 1
        if progress is not None:
            progress(done, len(steps))
        return found

    parts = map_blocks(simulate, steps, threads, size=len(nulls) * count * size)
    p = {
        name: {
            test: np.concatenate(
                [part[test] for part, step in zip(parts, steps, strict=True) if step[0] == name]
            )
            for test in named
        }
        for name in nulls
    }
    return TypeOneError(label, size, p, alpha)


def _null_gaps(
    values: F64, count: int, null: str, users: int | None, rng: np.random.Generator
) -> F64:
    """Return users x simulations: differences between systems that are equal."""
    people, systems = values.shape
    size = people if users is None else users
    out = np.empty((size, count))
    for column in range(count):
        redrawn = users is not None or null == "centred"
        rows = rng.integers(people, size=size) if redrawn else np.arange(people)
        if null == "labels":
            first = rng.integers(systems, size=size)
            second = (first + rng.integers(1, systems, size=size)) % systems
            out[:, column] = values[rows, first] - values[rows, second]
            continue
        a, b = rng.choice(systems, 2, replace=False)
        if null == "signs":
            out[:, column] = (values[rows, a] - values[rows, b]) * rng.choice((-1.0, 1.0), size)
        else:
            out[:, column] = _centred(values[:, a] - values[:, b])[rows]
    return out


def _centred(gaps: F64) -> F64:
    """Return differences less their mean; what is left of rounding alone is 0."""
    out: F64 = gaps - math.fsum(gaps) / len(gaps)
    out[np.abs(out) < 1e-12 * np.abs(gaps).max(initial=0.0)] = 0.0
    return out


def _named_tests(
    tests: str | Sequence[str] | Mapping[str, Test], permutations: int, seed: int
) -> dict[str, Test]:
    if isinstance(tests, Mapping):
        if not tests:
            raise SettingError("no tests are named")
        return dict(tests)
    several = [tests] if isinstance(tests, str) else list(tests)
    if not several:
        raise SettingError("no tests are named")
    return {choose("test", name, TESTS): _test(name, permutations, seed) for name in several}


def _test(name: str, permutations: int, seed: int) -> Test:
    """Return a test of columns of differences against a column of zeros."""
    from unskew.stats import classic
    from unskew.stats.randomisation import Hypotheses, flip_signs
    from unskew.stats.samples import Pairs, Sample, sample

    def randomisation(given: Sample) -> F64:
        observed = np.abs(given.observed)
        one, other = given.pairs.one, given.pairs.other
        side = np.zeros(one.size, np.int8)
        tests = Hypotheses(one, other, side, observed - given.tolerance)
        counts = flip_signs(given.values, tests, permutations, seed=seed)
        return counts.p(counts.each, True)

    def run(gaps: F64) -> F64:
        columns = gaps.shape[1]
        matrix = np.column_stack([gaps, np.zeros(len(gaps))])
        pairs = Pairs(np.arange(columns), np.full(columns, columns))
        given = sample(matrix, pairs, threads=1)
        if name == "randomisation":
            return randomisation(given)
        tests = {"t": classic.t_test, "wilcoxon": classic.wilcoxon_test, "sign": classic.sign_test}
        return tests[name](given, 0)

    return run


# All of it


@dataclass(frozen=True, eq=False)
class Power(Printed):
    """How well each metric tells the systems apart.

    Made by `power`.
    """

    discriminative: DiscriminativePower
    swaps: SwapRate | None
    sizes: SampleSize
    notes: tuple[str, ...] = ()

    def table(self) -> pl.DataFrame:
        """Return a row per metric, the most discriminative first.

        Columns: metric; DP, median_p and ratio of `DiscriminativePower.table`; swap_rate and
        safe_difference of `SwapRate.table`; users, detectable and needed of `SampleSize.table`.
        """
        table = self.discriminative.table().select("metric", "DP", "median_p", "ratio")
        if self.swaps is not None:
            swaps = self.swaps.table().select(
                "metric", "swap_rate", pl.col("difference").alias("safe_difference")
            )
            table = table.join(swaps, on="metric", how="left", maintain_order="left")
        sizes = self.sizes.table().select("metric", "users", "detectable", "needed")
        table = table.join(sizes, on="metric", how="left", maintain_order="left")
        return table.sort("DP", maintain_order=True)

    def figure(self, metrics: Iterable[str] | None = None) -> Figure:
        """Draw the p-value curves."""
        return self.discriminative.figure(metrics)

    def footer(self) -> list[str]:
        """Return the lines that say how the numbers came about."""
        swaps = self.swaps.footer() if self.swaps is not None else []
        return [*self.discriminative.footer(), *swaps, *self.sizes.footer(), *self.notes]

    def __repr__(self) -> str:
        return f"Power({len(self.sizes.metrics)} metrics, {len(self.sizes.pairs)} pairs)"


@checked
def power(
    scores: Source,
    metrics: str | Sequence[str] | None = None,
    *,
    test: str = "randomisation",
    permutations: int = PERMUTATIONS,
    plus_one: bool = True,
    ordered: bool = False,
    samples: int = SAMPLES,
    difference: float | None = None,
    power: float = POWER,
    alpha: float = ALPHA,
    seed: int = 0,
    threads: int | None = None,
    progress: Progress | None = None,
) -> Power:
    """Tell how well each metric tells the systems apart, and what the users at hand allow.

    Parameters
    ----------
    scores
        What `evaluate` gave, a list of such for several folds, or values per user (see `paired`).
    metrics
        Labels of these scores; all that have a value per user unless named.
    test, permutations, plus_one
        How the p-values of all pairs are found, see `compare`; they are not corrected. The paper's
        have no +1.
    ordered
        Count each pair twice in DP, see `discriminative_power`.
    samples
        Random halves of the users for the swap rate, see `swap_rate`; 0 for none.
    difference, power, alpha
        See `sample_size`.
    seed, threads
        The same seed gives the same numbers, on any number of threads.
    progress
        Called with (done, total) as work goes on.
    """
    from unskew.stats.significance import compare

    as_count("samples", samples, least=0)
    sizes = sample_size(
        scores, metrics, difference=difference, power=power, alpha=alpha, threads=threads
    )
    found = compare(
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
    pairs = discriminative_power(found, alpha=alpha, ordered=ordered)
    swaps = None
    if samples:
        swaps = swap_rate(scores, metrics, samples=samples, seed=seed, threads=threads)
    return Power(pairs, swaps, sizes, found.notes)


def check_power(power: float, alpha: float) -> None:
    """Refuse what no difference and no number of users can have."""
    check_share("power", power)
    check_share("alpha", alpha)
    if power <= alpha:
        raise SettingError(
            f"power must be above alpha ({alpha:g}), got {power:g}: a test of this level finds a "
            f"difference in {100 * alpha:g} % of the cases even where there is none"
        )


def check_difference(value: float) -> None:
    """Refuse a difference that users cannot be counted for."""
    if not is_number(value) or not 0 < value < math.inf:
        raise SettingError(f"difference must be a finite number above 0, got {value!r}")
