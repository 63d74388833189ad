"""`compare_data_sets`: the same systems on several data sets, side by side."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from statistics import NormalDist
from typing import Any

import numpy as np
import polars as pl

from unskew.arrays import F64
from unskew.checks import as_count, as_number, check_share, checked, choose
from unskew.engine.progress import Progress, notebook_progress
from unskew.engine.rng import generator
from unskew.errors import DataError, SettingError
from unskew.report.text import counted
from unskew.stats.compare.data_set_comparison import LEAST_DATA_SETS, TESTS, DataSetComparison
from unskew.stats.corrections import correct
from unskew.stats.intervals.means import student_ends, welch_df
from unskew.stats.pairing import (
    Paired,
    PairedSample,
    PairedValues,
    Pairs,
    paired,
    pairs_with,
    sample,
)
from unskew.stats.resampling import percentile_interval, reweighted, with_replacement
from unskew.stats.special import (
    binomial_half_cdf,
    half_widths,
    student_t_quantile,
    student_t_sf,
)
from unskew.stats.tests.classic import friedman_test, nemenyi_p, ranks_of, sign_counts, signed_ranks
from unskew.stats.tests.posterior import heterogeneity, posterior


def rank_intervals(
    samples: Sequence[PairedValues],
    ranks: F64,
    *,
    metric: str,
    better: str,
    resamples: int,
    confidence: float,
    seed: int = 0,
    threads: int | None = None,
    progress: Progress | None = None,
) -> tuple[F64, F64]:
    """Return the ends of the interval of each system's mean rank over data sets like these.

    Two levels: N data sets are drawn with replacement and, each time one is drawn, its users. The
    percentiles are those of the expanded percentile interval (Hesterberg 2015, section 5.4), which
    makes up for the few values that a small sample repeats: Phi(-t sqrt(N / (N - 1))), t the
    quantile of Student's t with N - 1 degrees of freedom.

    A system with the same rank r on all N data sets may have another one elsewhere, which no draw
    shows: the interval then also holds r + (k - r) q and r - (r - 1) q, where q is the exact upper
    bound of a share that was 0 of N.

    Parameters
    ----------
    samples
        The values of each data set, for the same systems in the same order.
    ranks
        Data sets x systems.
    metric
        The label of the values.
    better
        Which direction is better.
    resamples
        How often data sets are drawn.
    confidence, seed, threads, progress
        As in `compare_data_sets`.
    """
    of_each = np.stack(
        [
            _drawn_ranks(sample, metric, better, resamples, (seed, number), threads, progress)
            for number, sample in enumerate(samples)
        ]
    )
    count = len(samples)
    chosen = generator(seed, "data sets").integers(count, size=(resamples, count))
    # A data set that is drawn twice in one resample has its users drawn twice.
    slot = np.arange(count) * max(resamples // count, 1)
    draw = (np.arange(resamples)[:, None] + slot) % resamples
    draw_means: F64 = of_each[chosen, draw].mean(axis=1)
    low, high = percentile_interval(draw_means, expanded_level(confidence, count))
    is_constant = (ranks == ranks[0]).all(axis=0)
    unseen = 1 - ((1 - confidence) / 2) ** (1 / count)
    lowest = ranks[0] - (ranks[0] - 1) * unseen
    highest = ranks[0] + (ranks.shape[1] - ranks[0]) * unseen
    low = np.where(is_constant, np.minimum(low, lowest), low)
    return low, np.where(is_constant, np.maximum(high, highest), high)


def _drawn_ranks(
    sample: PairedValues,
    metric: str,
    better: str,
    resamples: int,
    key: tuple[int, int],
    threads: int | None,
    progress: Progress | None,
) -> F64:
    """Return resamples x systems: the ranks on one data set, its users drawn with replacement."""
    weigh = with_replacement(key[0], "users of data set", key[1])
    means = reweighted(sample, [metric], weigh, resamples, threads, progress)[:, 0]
    return ranks_of(means, better)


def expanded_level(confidence: float, count: int) -> float:
    """Return the level of percentiles whose interval is as wide as Student's t asks for.

    Examples
    --------
    >>> from unskew.stats.compare.compare_data_sets import expanded_level
    >>> round(expanded_level(0.95, 10), 3), round(expanded_level(0.95, 1000), 3)
    (0.983, 0.95)
    """
    if count < 2:
        return 1.0
    t = student_t_quantile((1 + confidence) / 2, count - 1)
    return 2 * NormalDist().cdf(t * math.sqrt(count / (count - 1))) - 1


MISSING = ("refuse", "systems", "data-sets")
"""What to do about a system that a data set lacks; see `compare_data_sets`."""


@notebook_progress("data sets")
@checked
def compare_data_sets(
    scores: Mapping[str, Any],
    metric: str | None = None,
    *,
    test: str = "wilcoxon",
    reference: str | None = None,
    missing: str = "refuse",
    rope: float | None = None,
    confidence: float = 0.95,
    permutations: int = 100_000,
    resamples: int = 2_000,
    seed: int = 0,
    threads: int | None = None,
    progress: Progress | None = None,
) -> DataSetComparison:
    """Compare systems over several data sets: means, ranks, tests of ranks, differences.

    Every data set counts once, however many users it has. Two questions are kept apart: what holds
    *on these data sets* (users drawn anew), and what holds *on data sets like these* (data sets
    drawn anew as well), for which a handful of data sets tells little.

    Parameters
    ----------
    scores
        By the name of the data set: what `evaluate` gave, a list of such for its folds, the
        results of a plan, or values per user (see `paired`).
    metric
        The metric. Not needed where the data sets share one only.
    test
        The test of pairs: `wilcoxon`, `sign`, `t` or `nemenyi`.

        Over data sets: `wilcoxon` (signed ranks of the differences, exact, corrected by Holm),
        `sign` (exact, Holm), `t` (of the mean difference, Holm), or `nemenyi` (mean ranks; it
        corrects for all pairs, and depends on which systems are in the pool).
    reference
        Compare this system with every other one, instead of all pairs.
    missing
        A system that a data set lacks: `refuse`, or leave out such systems (`systems`) or the data
        sets that lack one (`data-sets`).

        What is left out is named in the notes.
    rope
        Differences up to this size do not matter; adds the probability of such a difference.

        In units of the metric.
    confidence
        Confidence of the intervals.

        1 - confidence is the level of the tests.
    permutations
        Permutations of ranks for Friedman's test, where all are too many to count.
    resamples
        Resamples of data sets and users for intervals of mean ranks; 0 for no intervals.

        These intervals need 5 data sets.
    seed, threads
        The same seed gives the same numbers, on any number of threads.
    progress
        Called with (done, total) as the users of a data set are drawn.

    References
    ----------
    Demšar (JMLR 2006): Friedman, Nemenyi, the critical-difference chart. Benavoli, Corani and
    Mangili (JMLR 2016): mean ranks depend on the pool. Röver (JSS 2020): the hierarchical model.
    Ibragimov and Müller (JBES 2010): t of groups whose errors differ.

    Examples
    --------
    >>> import numpy as np
    >>> import unskew as us
    >>> rng = np.random.default_rng(4)
    >>> def values(users):
    ...     level = rng.normal(0.3, 0.1)
    ...     a, b = (rng.normal(level + lead, 0.1, users) for lead in (0.05, 0.0))
    ...     return {"user": np.arange(users), "a": a, "b": b}
    >>> films = {name: values(200) for name in ("books", "films", "games", "music", "news", "toys")}
    >>> result = us.stats.compare_data_sets(films)
    >>> result.table().select("a", "b", "a_ahead", "b_ahead", "p").rows()
    [('a', 'b', 6, 0, 0.03125)]
    """
    choose("test", test, TESTS)
    choose("missing", missing, MISSING)
    check_share("confidence", confidence)
    as_count("permutations", permutations)
    as_count("resamples", resamples, 0)
    if rope is not None:
        rope = as_number("rope", rope)
    data = read_data_sets(scores, metric, missing)
    pairs = pairs_with(reference, data.systems, "reference")
    if reference is not None and test == "nemenyi":
        raise SettingError("test='nemenyi' is for all pairs: leave out reference=…")
    samples = [sample(value.copy(), pairs, data.label, threads) for value in data.values]
    means = np.stack([sample.means for sample in samples])
    ranks = ranks_of(means, data.better)
    low = high = np.full(len(data.systems), np.nan)
    if resamples and len(samples) >= LEAST_DATA_SETS:
        low, high = rank_intervals(
            [_as_paired(data, value) for value in data.values],
            ranks,
            metric=data.label,
            better=data.better,
            resamples=resamples,
            confidence=confidence,
            seed=seed,
            threads=threads,
            progress=progress,
        )
    return DataSetComparison(
        systems=data.systems,
        data_sets=data.names,
        metric=data.label,
        better=data.better,
        users=tuple(sample.users for sample in samples),
        means=means,
        ranks=ranks,
        rank_low=low,
        rank_high=high,
        friedman=friedman_test(ranks, permutations, seed),
        pairs=_pair_table(data, samples, ranks, test, rope, confidence),
        errors=np.stack([sample.standard_error for sample in samples]),
        test=test,
        reference=reference,
        rope=rope,
        confidence=confidence,
        resamples=resamples,
        seed=seed,
        notes=data.notes,
    )


# Reading


@dataclass(frozen=True, eq=False)
class DataSetValues:
    """The values of one metric on each data set, users x systems, systems in the same order."""

    names: tuple[str, ...]
    systems: tuple[str, ...]
    label: str
    better: str
    values: tuple[F64, ...]
    notes: tuple[str, ...]


def read_data_sets(scores: Mapping[str, Any], metric: str | None, missing: str) -> DataSetValues:
    """Read the values of one metric on every data set; settle which systems are compared."""
    if len(scores) < 2:
        raise DataError(
            f"at least 2 data sets are needed, got {len(scores)}; systems on one data set are "
            "compared by compare"
        )
    read = {str(name): _read(str(name), values) for name, values in scores.items()}
    label = _metric(read, metric)
    labels = {}
    for name, values_read in read.items():
        with _naming(name):
            labels[name] = values_read.label(label)
    sides = {name: values.better[labels[name]] for name, values in read.items()}
    better = next(iter(sides.values()))
    if len(set(sides.values())) > 1:
        words = ", ".join(f"{name}: {side}" for name, side in sides.items())
        raise DataError(f"{label}: which direction is better differs between data sets ({words})")
    if better == "neither":
        raise SettingError(
            f"{label} has no better direction, so systems have no ranks: choose another metric, "
            "or say better='higher' or 'lower' in paired"
        )
    names, systems, notes = _shared(read, missing)
    notes += _rule_notes({name: read[name] for name in names})
    values = []
    for name in names:
        columns = [read[name].systems.index(system) for system in systems]
        values.append(np.ascontiguousarray(_complete(name, read[name], labels[name])[:, columns]))
    return DataSetValues(names, systems, label, better, tuple(values), tuple(notes))


def _read(name: str, source: Any) -> Paired:
    folds = getattr(source, "scores", None)
    if callable(folds) and hasattr(source, "by_fold"):  # the results of a plan
        source = folds()
    with _naming(name):
        return paired(source)


@contextmanager
def _naming(name: str) -> Iterator[None]:
    """Name the data set in an error."""
    try:
        yield
    except (DataError, SettingError) as problem:
        raise type(problem)(f"data set {name!r}: {problem}") from None


def _metric(read: Mapping[str, Paired], metric: str | None) -> str:
    if metric is not None:
        return metric
    first = next(iter(read.values())).metrics
    common = [label for label in first if all(label in values.metrics for values in read.values())]
    if len(common) == 1:
        return common[0]
    if not common:
        there = "; ".join(f"{name}: {', '.join(values.metrics)}" for name, values in read.items())
        raise DataError(f"the data sets share no metric with a value per user ({there})")
    raise SettingError(f"choose one metric=… of those that all have: {', '.join(common)}")


def _shared(
    read: Mapping[str, Paired], missing: str
) -> tuple[tuple[str, ...], tuple[str, ...], list[str]]:
    """Return the data sets and systems that are compared, and what was left out."""
    named = tuple(dict.fromkeys(system for values in read.values() for system in values.systems))
    lacks = {
        name: [system for system in named if system not in values.systems]
        for name, values in read.items()
    }
    lacking = {name: absent for name, absent in lacks.items() if absent}
    names, systems, notes = tuple(read), named, []
    if lacking and missing == "refuse":
        words = "; ".join(f"{name} lacks {', '.join(absent)}" for name, absent in lacking.items())
        raise DataError(
            f"not every data set has every system: {words}. Leave out such systems with "
            "missing='systems', or such data sets with missing='data-sets'"
        )
    if lacking and missing == "systems":
        gone = {system for absent in lacking.values() for system in absent}
        systems = tuple(system for system in named if system not in gone)
        left = ", ".join(system for system in named if system in gone)
        notes.append(f"{counted(len(gone), 'system')} that a data set lacks left out: {left}")
    if lacking and missing == "data-sets":
        names = tuple(name for name in read if name not in lacking)
        left = ", ".join(lacking)
        lacking_text = counted(len(lacking), "data set that lacks", "data sets that lack")
        notes.append(f"{lacking_text} a system left out: {left}")
    if len(systems) < 2:
        raise DataError(f"at least 2 systems on every data set are needed, got {len(systems)}")
    if len(names) < 2:
        raise DataError(f"at least 2 data sets with every system are needed, got {len(names)}")
    return names, systems, notes


def _rule_notes(read: Mapping[str, Paired]) -> list[str]:
    """Return what data sets do not share: which items are liked, how undefined values count."""
    rules = {name: "; ".join(values.rules) for name, values in read.items()}
    if len(set(rules.values())) == 1:
        return []
    return [
        f"data sets are evaluated by different rules: {name}: {rule or 'not known'}"
        for name, rule in rules.items()
    ]


def _complete(name: str, values: Paired, label: str) -> F64:
    rows = values.complete(label)
    if not len(rows):
        raise DataError(f"data set {name!r}: no user has a value of {label} for every system")
    return rows


def _as_paired(data: DataSetValues, values: F64) -> PairedValues:
    """Return values as what users are drawn from."""
    from unskew.data.ratings import Ids

    return PairedValues(
        systems=data.systems,
        metrics=(data.label,),
        better={data.label: data.better},
        users=Ids(pl.Series(np.arange(len(values)))),
        parts=(),
        values={data.label: values},
    )


# Pairs


def _pair_table(
    data: DataSetValues,
    samples: list[PairedSample],
    ranks: F64,
    test: str,
    rope: float | None,
    confidence: float,
) -> pl.DataFrame:
    """Return a row per pair; see `DataSetComparison.table`."""
    pairs = samples[0].pairs
    side = -1.0 if data.better == "lower" else 1.0
    difference = np.stack([_differences(sample) for sample in samples])
    error = np.stack([sample.standard_error for sample in samples])
    users = np.array([sample.users for sample in samples], np.float64)
    above, below = sign_counts(side * difference)
    p_sign = np.minimum(2 * binomial_half_cdf(np.minimum(above, below), above + below), 1.0)
    p_sign = np.where(above + below == 0, 1.0, p_sign)
    p = _p_values(test, difference, ranks, pairs, p_sign)
    limits, p_these = _on_these(difference, error, users, confidence)
    p_corrected = p if test == "nemenyi" else correct(p, "holm")
    columns = {
        "low_these": limits[0],
        "high_these": limits[1],
        "a_ahead": above,
        "b_ahead": below,
        "p": p,
        "p_corrected": p_corrected,
        "p_sign": correct(p_sign, "holm"),
        "p_these": correct(p_these, "holm"),
        "significant": p_corrected <= round(1 - confidence, 12),
    }
    rows = [
        {
            "a": data.systems[a],
            "b": data.systems[b],
            **_mean_interval(d, confidence),
            **_hierarchical(d, s, side, rope, confidence),
        }
        for a, b, d, s in zip(pairs.one, pairs.other, difference.T, error.T, strict=True)
    ]
    table = pl.DataFrame(rows, infer_schema_length=None).with_columns(
        pl.Series(name, values) for name, values in columns.items()
    )
    return table.select(pl.col(name).cast(kind) for name, kind in _SCHEMA.items()).with_columns(
        pl.selectors.float().fill_nan(None)
    )


_NUMBERS = (
    "difference", "low", "high", "low_these", "high_these", "p", "p_corrected", "p_sign", "p_these",
    "tau", "low_next", "high_next", "p_a_better", "p_equivalent", "p_b_better", "p_next_a_better",
    "p_next_equivalent", "p_next_b_better",
)  # fmt: skip
_SCHEMA: dict[str, Any] = {
    "a": pl.String,
    "b": pl.String,
    **dict.fromkeys(_NUMBERS[:5], pl.Float64),
    "a_ahead": pl.Int64,
    "b_ahead": pl.Int64,
    **dict.fromkeys(_NUMBERS[5:9], pl.Float64),
    "significant": pl.Boolean,
    **dict.fromkeys(_NUMBERS[9:], pl.Float64),
}


def _differences(paired_sample: PairedSample) -> F64:
    """Return the mean differences, 0 where no user differs: rounding is no difference."""
    same = (paired_sample.better == 0) & (paired_sample.worse == 0)
    return np.where(same, 0.0, paired_sample.difference)


def _p_values(test: str, difference: F64, ranks: F64, pairs: Pairs, p_sign: F64) -> F64:
    """Return the p of each pair, over data sets."""
    count = difference.shape[0]
    if test == "sign":
        return p_sign
    if test == "nemenyi":
        mean = ranks.mean(axis=0)
        gaps = mean[pairs.one] - mean[pairs.other]
        return np.array([nemenyi_p(float(gap), ranks.shape[1], count) for gap in gaps])
    if test == "wilcoxon":
        scale = np.abs(difference).max(axis=0)
        # Equal up to rounding is equal, as the exact test needs to know.
        level = np.round(difference / np.where(scale > 0, scale, 1.0), 12)
        return np.array([signed_ranks(column, 0) for column in level.T])
    error = difference.std(axis=0, ddof=1) / math.sqrt(count)
    with np.errstate(divide="ignore", invalid="ignore"):
        t = np.where(difference.any(axis=0), difference.mean(axis=0) / error, 0.0)
    return np.minimum(2 * student_t_sf(np.abs(t), count - 1), 1.0)


def _mean_interval(d: F64, confidence: float) -> dict[str, float]:
    """Return the mean over data sets, each counting once, and its t interval.

    Where data sets have different errors the interval holds at least as often as it says
    (Ibragimov and Müller 2010), if their differences are symmetric about the mean.
    """
    mean, n = math.fsum(d.tolist()) / d.size, d.size
    low, high = student_ends(mean, float(d.std(ddof=1)), n - 1, confidence, math.sqrt(n))
    return {"difference": mean, "low": low, "high": high}


def _on_these(
    difference: F64, error: F64, users: F64, confidence: float
) -> tuple[tuple[F64, F64], F64]:
    """Return the intervals and p of the mean difference on these very data sets.

    Users alone are drawn anew: the variance of the mean is the sum of the squared errors over N²,
    with the degrees of freedom of Welch and Satterthwaite.
    """
    count = difference.shape[0]
    mean, square = difference.mean(axis=0), error**2
    total = square.sum(axis=0)
    freedom = welch_df(square, (users - 1)[:, None])
    with np.errstate(divide="ignore", invalid="ignore"):
        t = np.where(mean == 0, 0.0, mean * count / np.sqrt(total))
    freedom = np.where(total > 0, freedom, 1.0)
    quantile = half_widths(np.where(np.isnan(freedom), 1.0, freedom), confidence)
    half = np.where(np.isnan(freedom), np.nan, quantile) * np.sqrt(total) / count
    p = np.minimum(2 * student_t_sf(np.abs(t), np.where(np.isnan(freedom), 1.0, freedom)), 1.0)
    # Without any spread over users nothing tells how sure the mean is, unless none differs.
    unknown = np.isnan(total) | ((total == 0) & (mean != 0))
    return (mean - half, mean + half), np.where(unknown, np.nan, p)


def _hierarchical(
    d: F64, s: F64, side: float, rope: float | None, confidence: float
) -> dict[str, float | None]:
    """Return tau, the interval for a new data set, and the probabilities of the two-level model."""
    belief = posterior(d, s)
    if belief is None:
        return dict.fromkeys(_NUMBERS[9:])
    result: dict[str, float | None] = {
        "tau": heterogeneity(d, s),
        "low_next": belief.quantile((1 - confidence) / 2, new=True),
        "high_next": belief.quantile((1 + confidence) / 2, new=True),
    }
    limit = rope or 0.0
    for start, new in (("p_", False), ("p_next_", True)):
        above = belief.above(limit, new=new)
        below = 1 - belief.above(-limit, new=new)
        a, b = (above, below) if side > 0 else (below, above)
        result[f"{start}a_better"], result[f"{start}b_better"] = a, b
        result[f"{start}equivalent"] = None if rope is None else max(0.0, 1 - a - b)
    return result
