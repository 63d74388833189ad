"""`power`: how well each metric tells the systems apart, and what the users at hand allow."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from itertools import combinations
from statistics import NormalDist
from typing import Any

import numpy as np
import polars as pl

from unskew.arrays import F64
from unskew.checks import check_share, checked, choose, is_number
from unskew.data.read.tables import read_table
from unskew.engine.progress import Progress, notebook_progress
from unskew.errors import DataError, SettingError
from unskew.report.columns import (
    DIFFERENCE,
    METRIC,
    PAIR,
    USERS,
    Column,
    Drawing,
    Method,
    Question,
)
from unskew.report.estimates import Estimates
from unskew.report.text import counted
from unskew.stats.pairing import PairedSample, Source, is_evaluated, paired
from unskew.stats.resampling import check_two_systems, chosen_metrics
from unskew.stats.value_tables import holds_values

ALPHA, SURE = 0.05, 0.8
"""The usual level of tests, and the usual power."""
SEPARATION = Question(
    name="discriminative power",
    columns=(
        *(METRIC, Column("value", "value", "DP"), Column("median_p", "p", "median p")),
        *(Column("significant", "count", "significant pairs"), Column("ratio", "share")),
        Column("pairs", "count"),
    ),
    method=Method(estimand="the sum of the p-values of all pairs of systems", unit="pairs"),
    figures=(Drawing("power", "lines", "curve"),),
)
"""A row per metric: the sum of the p-values, their median, how many are significant."""
CURVE = Question(
    name="p-value curves",
    columns=(
        *(METRIC, Column("rank", "axis", "pairs of systems, the largest p first")),
        Column("value", "value", "p"),
    ),
    method=Method(estimand="the p-values of all pairs of systems, from the largest down"),
    figures=(Drawing("power", "lines"),),
)
PAIR_SIZES = Question(
    name="users needed for each pair",
    columns=(
        *(METRIC, *PAIR, USERS, DIFFERENCE[0], Column("sd", "fact")),
        *(Column("effect", "fact", form="+"), Column("detectable", "fact")),
        *(Column("power", "share"), Column("needed", "count")),
    ),
    method=Method(estimand="the mean difference a − b, and how many users show it"),
)
"""A row per metric and pair.

The difference, the standard deviation of the users' differences, `effect` (difference / sd), the
smallest difference that is `detectable`, the `power` to find one as large as observed, and the
users `needed` (null where no number would do).
"""
SIZES = Question(
    name="sample size",
    columns=(
        *(METRIC, USERS, Column("sd", "fact"), Column("value", "value", "detectable")),
        *(Column("hardest", "fact"), Column("powered", "share"), Column("needed", "count")),
    ),
    method=Method(estimand="the smallest difference that these users show, median over pairs"),
)
"""A row per metric, over all pairs of systems.

The medians of the standard deviation, of the detectable difference and of the users `needed` (null
where no number would do); the largest detectable difference (`hardest`); the share of pairs whose
observed difference is at least what is detectable (`powered`).
"""
_DETECTABLE = {"value": "detectable"}
_HIDDEN = ("significant", "pairs", "sd", "hardest", "powered")
_COLUMNS = (
    *SEPARATION.columns,
    *(replace(c, name=_DETECTABLE.get(c.name, c.name)) for c in SIZES.columns[1:]),
)
POWER = replace(
    SEPARATION,
    name="power",
    columns=tuple(replace(c, hidden=c.name in _HIDDEN) for c in _COLUMNS),
)
"""A row per metric: what `discriminative_power` and `sample_size` say of it."""


@checked
def discriminative_power(
    pvalues: object, *, alpha: float = ALPHA, ordered: bool = False
) -> Estimates:
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

    Returns
    -------
    Estimates
        A row per metric: DP as `value` (the lower, the better a metric tells systems apart), the
        median p, the number and the share (`ratio`) of pairs with p < alpha, and how many pairs
        count. Of unordered pairs that stand in both orders the mean of both p counts. The part
        `curve` has the p-values from the largest down (`rank` 1); `figure()` draws it.

    References
    ----------
    valcarce2018 section 4 (DP, p-value curves); Sakai 2006 (ratio of significant pairs).

    Examples
    --------
    >>> import polars as pl
    >>> from unskew.stats.agreement.power import discriminative_power
    >>> p = pl.DataFrame({"a": ["x", "x", "y"], "b": ["y", "z", "z"], "P": [0.5, 0.0, 0.01]})
    >>> print(discriminative_power(p))
    metric      DP  median p  significant pairs   ratio  pairs
    P       0.5100    0.0100                  2  0.6667      3
    DP: sum of p over 3 unordered pairs; ratio: share with p < 0.05
    """
    check_share("alpha", alpha)
    table, test = _p_values(pvalues)
    long = _long(table)
    names = long["metric"].unique(maintain_order=True).to_list()
    p = _by_pair(long, names)
    counting = p.reshape(-1, len(names)) if ordered else p.mean(axis=0)
    falling = np.sort(counting, axis=0)[::-1]
    significant = (counting < alpha).sum(axis=0)
    count = len(counting)
    rows = pl.DataFrame(
        {
            "metric": names,
            "value": [math.fsum(column) for column in counting.T],
            "median_p": np.median(counting, axis=0),
            "significant": significant,
            "ratio": significant / count,
            "pairs": np.full(len(names), count),
        }
    )
    curve = pl.DataFrame(
        {
            "metric": np.repeat(names, count),
            "rank": np.tile(np.arange(1, count + 1), len(names)),
            "value": falling.T.ravel(),
        }
    )
    kind = "ordered" if ordered else "unordered"
    return Estimates.of_rows(
        SEPARATION,
        rows,
        method=replace(SEPARATION.method, test=test),
        explanation=(
            f"DP: sum of p over {counted(count, f'{kind} pair')}; ratio: share with p < {alpha:g}",
        ),
        parts={"curve": Estimates.of_rows(CURVE, curve)},
        card={"alpha": alpha, "ordered": ordered, "better": dict.fromkeys(names, "lower")},
    )


def _by_pair(long: pl.DataFrame, names: Sequence[str]) -> F64:
    """Return p of (a, b) and of (b, a), 2 x pairs x metrics; alike where only one was given."""
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
    return p


def _p_values(pvalues: object) -> tuple[pl.DataFrame, str]:
    """Return a table of p-values, and by which test they are, where that is known."""
    from unskew.stats.compare.compare import compare

    if is_evaluated(pvalues):
        pvalues = compare(pvalues, correction=None)
    if isinstance(pvalues, Estimates):
        return pvalues.rows.rename({"system": "a", "against": "b"}), pvalues.method.test
    if isinstance(pvalues, Sequence) and not isinstance(pvalues, str):
        raise SettingError(
            f"pvalues must be a table of pairs, a comparison of all, or scores; got "
            f"{type(pvalues).__name__}"
        )
    read = read_table(pvalues)
    return _p_values(compare(read, correction=None)) if holds_values(read) else (read.frame, "")


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


@checked
def sample_size(
    scores: Source,
    metrics: str | Sequence[str] | None = None,
    *,
    difference: float | None = None,
    power: float = SURE,
    alpha: float = ALPHA,
    correction: str = "none",
    threads: int | None = None,
) -> Estimates:
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

    Returns
    -------
    Estimates
        A row per metric, over all pairs: the median detectable difference as `value`, its largest
        (`hardest`), the median users `needed`, the share of pairs whose observed difference is at
        least what is detectable (`powered`). The part `pairs` has a row per metric and pair; its
        `power` is that of finding a difference as large as the observed one.

    References
    ----------
    Sakai 2016 (topic set size design); Guenther 1981.

    Examples
    --------
    >>> from unskew.stats.agreement.power import sample_size
    >>> values = {"user": range(6), "x": [3, 1, 4, 2, 5, 3], "y": [2, 1, 2, 2, 3, 2]}
    >>> sizes = sample_size(values, difference=0.5)
    >>> print(sizes)
    metric  users      sd  detectable  hardest  powered  needed
    value       6  0.8944      1.2407   1.2407   0.0000      28
    paired t test, two-sided, alpha 0.05, power 0.8; users needed for 0.5
    >>> sizes.pair("x", "y").value
    1.0
    """
    from unskew.stats.pairing import all_pairs, sample

    pairing = paired(scores)
    check_two_systems(pairing.systems)
    labels = chosen_metrics(pairing, metrics)
    check_power(power, alpha)
    choose("correction", correction, ("none", "bonferroni"))
    if difference is not None and not (is_number(difference) and 0 < difference < math.inf):
        raise SettingError(f"difference must be a finite number above 0, got {difference!r}")
    pairs = list(combinations(pairing.systems, 2))
    tests = len(pairs) if correction == "bonferroni" else 1
    quantile = NormalDist().inv_cdf(1 - alpha / tests / 2)
    minimum = math.floor(quantile**2 / 2) + 2
    rows, tables = [], []
    for label in labels:
        values = pairing.complete(label)
        if len(values) < minimum:
            raise DataError(
                f"{label}: {counted(len(values), 'user is', 'users are')} too few for "
                f"alpha={alpha:g}: at least {minimum}"
            )
        of_pairs = sample(values, all_pairs(len(pairing.systems)), label, threads)
        numbers = _pair_sizes(of_pairs, difference, quantile, NormalDist().inv_cdf(power))
        gap, detectable, needed = (numbers[name] for name in ("value", "detectable", "needed"))
        powered = float(((np.abs(gap) >= detectable) & (gap != 0)).mean())
        medians = (np.median(numbers["sd"]), np.median(detectable), detectable.max())
        rows.append((label, len(values), *medians, powered, _count(float(np.median(needed)))))
        numbers |= {"metric": [label] * len(pairs), "n": [len(values)] * len(pairs)}
        numbers |= dict(zip(("system", "against"), zip(*pairs, strict=True), strict=True))
        numbers["needed"] = [_count(number) for number in needed.tolist()]
        tables.append(pl.DataFrame(numbers, schema_overrides={"needed": pl.Int64}))
    target = "the observed differences" if difference is None else f"{difference:g}"
    shared = f" / {tests} (Bonferroni)" if tests > 1 else ""
    test = f"paired t test, two-sided, alpha {alpha:g}{shared}, power {power:g}"
    lines = (f"{test}; users needed for {target}",)
    better = {"better": {label: pairing.better[label] for label in labels}}
    by_pair = Estimates.of_rows(PAIR_SIZES, pl.concat(tables), explanation=lines, card=better)
    return Estimates.of_rows(
        SIZES,
        rows,
        explanation=lines,
        parts={"pairs": by_pair},
        card={"alpha": alpha, "power": power, "difference": difference, "tests": tests},
    )


def _pair_sizes(
    sample: PairedSample, difference: float | None, alpha_quantile: float, power_quantile: float
) -> dict[str, Any]:
    """Return by pair what its users can show, and how many users are needed."""
    gap, sd, quantile = sample.difference, sample.sd, alpha_quantile
    quantiles = alpha_quantile + power_quantile
    effective = sample.users - quantile**2 / 2
    target = np.abs(gap) if difference is None else np.full_like(gap, difference)
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio = np.where(target > 0, sd / target, np.inf)
        effect = np.where(gap == 0, 0.0, gap / sd)
        shift = np.where(gap == 0, 0.0, np.abs(gap) / sd * np.sqrt(effective))
    normal = NormalDist()
    return {
        "value": gap,
        "sd": sd,
        "effect": effect,
        "detectable": quantiles * sd / np.sqrt(effective),
        "power": [normal.cdf(x - quantile) + normal.cdf(-x - quantile) for x in shift.tolist()],
        # Less a hair, so that a whole number found in floating point is not rounded up.
        "needed": np.maximum(np.ceil((quantiles * ratio) ** 2 + quantile**2 / 2 - 1e-9), 2.0),
    }


MOST_USERS = 1 << 53
"""A difference that needs more users than this is one of rounding: no number would do."""


def _count(users: float) -> int | None:
    """Return a number of users, rounded up; None where no number would do."""
    return math.ceil(users) if users < MOST_USERS else None


def check_power(power: float, alpha: float) -> None:
    """Raise an error for a power that no number of users can give."""
    check_share("power", power)
    check_share("alpha", alpha)
    if power <= alpha:
        raise SettingError(
            f"power must be above alpha ({alpha:g}), got {power:g}: a test of this level finds a "
            f"difference in {100 * alpha:g} % of the cases even where there is none"
        )


PERMUTATIONS = 100_000


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
    power: float = SURE,
    alpha: float = ALPHA,
    seed: int = 0,
    threads: int | None = None,
    progress: Progress | None = None,
) -> Estimates:
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

    Returns
    -------
    Estimates
        A row per metric, the most discriminative first: DP as `value`, `median_p` and `ratio` as
        `discriminative_power` gives them; `detectable`, `needed` and what else `sample_size` says.
        Parts: `curve` of the first, `pairs` of the second.

    Examples
    --------
    >>> from unskew.stats.agreement.power import power
    >>> values = {"user": range(6), "x": [3, 1, 4, 2, 5, 3], "y": [2, 1, 2, 2, 3, 2]}
    >>> print(power(values, test="t"))
    metric      DP  median p   ratio  users  detectable  needed
    value   0.0409    0.0409  1.0000      6      1.2407       9
    p: paired t test, not corrected
    DP: sum of p over 1 unordered pair; ratio: share with p < 0.05
    paired t test, two-sided, alpha 0.05, power 0.8; users needed for the observed differences
    """
    from unskew.stats.compare.compare import compare

    sizes = sample_size(
        scores, metrics, difference=difference, power=power, alpha=alpha, threads=threads
    )
    comparison = compare(
        scores,
        sizes.values_of("metric"),
        test=test,
        permutations=permutations,
        plus_one=plus_one,
        correction=None,
        interval="t",
        seed=seed,
        threads=threads,
        progress=progress,
    )
    separation = discriminative_power(comparison, alpha=alpha, ordered=ordered)
    by_metric = sizes.rows.rename(_DETECTABLE)
    rows = separation.rows.join(by_metric, on="metric", how="left", maintain_order="left")
    return Estimates.of_rows(
        POWER,
        rows.sort("value", maintain_order=True),
        method=separation.method,
        explanation=(*separation.explanation, *sizes.explanation),
        notes=comparison.notes,
        parts={**separation.parts, **sizes.parts},
        card={**sizes.card, **separation.card},
    )
