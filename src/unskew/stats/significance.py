"""`compare`: all pairs of systems on all metrics at once."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import polars as pl

from unskew.arrays import F64, I64, Mask
from unskew.checks import as_count, checked, choose
from unskew.engine.threads import resolve
from unskew.errors import SettingError, unknown_name
from unskew.stats import bootstrap, classic
from unskew.stats.bayes import bayesian_t
from unskew.stats.comparison import Comparison
from unskew.stats.corrections import CORRECTIONS, correct
from unskew.stats.distributions import log_gamma_ratio, student_t_quantile
from unskew.stats.pairing import Paired, Source, paired
from unskew.stats.randomisation import (
    Counts,
    Hypotheses,
    Progress,
    flip_signs,
    shuffled_ranges,
    step_down,
)
from unskew.stats.samples import Pairs, Sample, against, all_pairs, sample
from unskew.stats.user_draws import chosen_metrics

TESTS = ("randomisation", "t", "wilcoxon", "sign", "bootstrap", "bootstrap-t")
ALTERNATIVES = ("two-sided", "greater", "less", "better")
FAMILIES = ("metric", "all")
INTERVALS = ("t", "bca")
BY_PERMUTATION = ("maxT", "tukey")
"""Corrections that need the permutations themselves, and so the randomisation test."""

_HELD = 1 << 28  # bytes of values compared at a time


@checked
def compare(
    scores: Source,
    metric: str | Sequence[str] | None = None,
    *,
    test: str = "randomisation",
    alternative: str = "two-sided",
    permutations: int = 100_000,
    plus_one: bool = True,
    correction: str | None = "holm",
    family: str = "metric",
    confidence: float = 0.95,
    interval: str = "t",
    resamples: int = 10_000,
    reference: str | None = None,
    rope: float | None = None,
    seed: int = 0,
    threads: int | None = None,
    progress: Progress | None = None,
) -> Comparison:
    """Compare systems user by user: who is better, by how much, how sure.

    The user is the unit: lists of one user, and the same user in several folds, are one value
    (see `paired`). All tests are paired.

    Parameters
    ----------
    scores
        What `evaluate` gave; a list of such for several folds or splits of the same systems; or
        values per user from elsewhere, a polars or pandas frame, a file or a mapping of column
        names to arrays: `user` and a column per system, or `user`, `system` and a column per
        metric (see `paired`).
    metric
        One or several labels; every metric that has a value per user unless given.
    test
        `randomisation`: Fisher's test by flipping the sign of each user's difference, on the
        difference in means, the same signs for all pairs and metrics. All sign patterns are
        looked at, and p is exact, where these are no more than `permutations`; users for whom
        all systems have the same value do not count. `t`; `wilcoxon`; `sign`; `bootstrap` (of
        means, shifted to the null hypothesis); `bootstrap-t` (of t statistics, Sakai 2006).
    alternative
        `two-sided`; `greater` or `less`: the first system of a pair (with a reference: the other
        system, not the reference) has the greater or smaller values; `better`: it has the better
        values, as the metric says.
    permutations
        Random sign patterns, or resamples of the bootstrap tests.
    plus_one
        p = (extreme + 1) / (permutations + 1), which is never 0. False: the share, as in the
        papers.
    correction
        For comparing many pairs: `holm`, `bonferroni`, `bh`, `by`; `maxT` (Westfall and Young's
        step-down, from the same permutations: it knows how pairs depend on each other); `tukey`
        (randomised Tukey HSD, of permutations of its own in which all systems change places);
        None.
    family
        What is corrected together: the pairs of one `metric`, or `all` pairs of all metrics.
    confidence
        Of the intervals; 1 - confidence is the level of significance.
    interval
        Of the mean difference, each at its own level: `t`, or `bca` (bootstrap of `resamples`
        resamples, bias-corrected and accelerated).
    reference
        Compare all systems with this one only; all pairs unless given.
    rope
        The largest difference, in units of the metric, that does not matter in practice. Adds the
        probabilities that a is better, that both are equivalent, that b is better (Bayesian t).
    seed
        Of permutations and resamples.
    threads
        Never changes a number.
    progress
        Called with how many permutations are done, of how many.

    References
    ----------
    Smucker, Allan and Carterette (CIKM 2007): randomisation against t, Wilcoxon and sign.
    Westfall and Young (1993), algorithm 4.1. Carterette (TOIS 2012): randomised Tukey HSD.
    Phipson and Smyth (2010): p-values should never be zero. Sakai (SIGIR 2006): bootstrap.
    Benavoli, Corani, Demšar and Zaffalon (JMLR 2017): Bayesian comparison.

    Examples
    --------
    >>> import unskew as us
    >>> from unskew.stats.significance import compare
    >>> test = {"user": [1, 2, 3, 4, 5], "item": [7] * 5, "rating": [5] * 5}
    >>> runs = {"a": {u: [7] for u in range(1, 6)}, "b": {u: [8, 7] for u in range(1, 6)}}
    >>> print(compare(us.evaluate(test, runs, "RR", liked=4)))
    RR (higher is better), 5 users
       system    mean  difference       95 % interval       p  letters
    1  a       1.0000                                          a
    2  b       0.5000     −0.5000  [−0.5000, −0.5000]  0.0625  a
    <BLANKLINE>
    difference to the best, t interval
    randomisation test (sign flips per user), all 32 sign patterns; p corrected by Holm over 1 pair
    systems that share a letter do not differ at 0.05
    arrays: arrays, 5 rows; user = user, item = item, rating = rating
    lists: mapping, 5 rows; user = user, item = item, rank = rank
    lists: mapping, 10 rows; user = user, item = item, rank = rank
    """
    how = _Settings(
        test,
        alternative,
        permutations,
        plus_one,
        correction,
        family,
        confidence,
        interval,
        resamples,
        rope,
        seed,
        threads,
        progress,
    )
    how.check()
    pairing = paired(scores)
    if len(pairing.systems) < 2:
        raise SettingError(
            f"there is one system only, {pairing.systems[0]!r}: nothing to compare it with"
        )
    labels = chosen_metrics(pairing, metric)
    pairs = _pairs(pairing.systems, reference)
    samples, frames, counted = [], [], Drawn(0, False)
    for group in _groups(labels, pairing, how):
        held = [_sample(pairing, label, pairs, threads) for label in group]
        p, corrected, counted = _p_values(held, pairing, how)
        for row, one in enumerate(held):
            better = pairing.better[one.label]
            numbers = _numbers(one, better, pairing.systems, how)
            frames.append(numbers | {"p": p[row], "p_corrected": corrected[row]})
            samples.append(_Told(one.label, one.users, one.means, one.kept.size - one.users))
    table = pl.concat([pl.DataFrame(frame) for frame in frames])
    if how.family == "all" and how.correction in CORRECTIONS:
        table = table.with_columns(
            p_corrected=pl.Series(correct(table["p"].to_numpy(), how.correction))
        )
    table = table.with_columns(significant=pl.col("p_corrected") <= 1 - confidence + 1e-12)
    return Comparison(
        pairing.systems,
        tuple(labels),
        {label: pairing.better[label] for label in labels},
        {told.label: told.users for told in samples},
        {
            told.label: dict(zip(pairing.systems, told.means.tolist(), strict=True))
            for told in samples
        },
        table.select(_columns(rope is not None)),
        test,
        alternative,
        correction,
        family,
        confidence,
        interval,
        reference,
        rope,
        counted.permutations,
        counted.enumerated,
        seed,
        (*pairing.notes, *_left_out(samples)),
    )


@dataclass(frozen=True)
class _Settings:
    test: str
    alternative: str
    permutations: int
    plus_one: bool
    correction: str | None
    family: str
    confidence: float
    interval: str
    resamples: int
    rope: float | None
    seed: int
    threads: int | None
    progress: Progress | None

    def check(self) -> None:
        choose("test", self.test, TESTS)
        choose("alternative", self.alternative, ALTERNATIVES)
        choose("family", self.family, FAMILIES)
        choose("interval", self.interval, INTERVALS)
        if self.correction is not None:
            choose("correction", self.correction, (*CORRECTIONS, *BY_PERMUTATION))
        if self.correction in BY_PERMUTATION and self.test != "randomisation":
            raise SettingError(
                f"correction={self.correction!r} needs permutations: it goes with "
                f"test='randomisation', not with test={self.test!r}"
            )
        if self.correction == "tukey" and self.alternative != "two-sided":
            raise SettingError("correction='tukey' is two-sided: it tests the range of all systems")
        as_count("permutations", self.permutations)
        as_count("resamples", self.resamples)
        if not 0 < self.confidence < 1:
            raise SettingError(f"confidence must be between 0 and 1, got {self.confidence}")
        if self.rope is not None and not (math.isfinite(self.rope) and self.rope >= 0):
            raise SettingError(f"rope must be a number of at least 0, got {self.rope}")
        resolve(self.threads)

    def side(self, better: str) -> int:
        """Return 0 for two-sided, 1 for greater, -1 for less."""
        if self.alternative == "better":
            return -1 if better == "lower" else 1
        return {"two-sided": 0, "greater": 1, "less": -1}[self.alternative]


@dataclass(frozen=True)
class Drawn:
    """How many permutations there were, and whether they were all there are."""

    permutations: int
    enumerated: bool


@dataclass(frozen=True, eq=False)
class _Told:
    label: str
    users: int
    means: F64
    left_out: int


def _pairs(systems: tuple[str, ...], reference: str | None) -> Pairs:
    if reference is None:
        return all_pairs(len(systems))
    if reference not in systems:
        raise unknown_name("reference system", reference, systems)
    return against(systems.index(reference), len(systems))


def _groups(labels: list[str], pairing: Paired, how: _Settings) -> list[list[str]]:
    """Cut the metrics into groups that fit in memory; what is corrected together stays together."""
    if how.family == "all" and how.correction in BY_PERMUTATION:
        return [labels]
    many = max(1, _HELD // (8 * len(pairing) * len(pairing.systems)))
    return [labels[start : start + many] for start in range(0, len(labels), many)]


def _sample(pairing: Paired, label: str, pairs: Pairs, threads: int | None) -> Sample:
    matrix = pairing.matrix(label)
    left = np.count_nonzero(np.isnan(matrix).any(axis=1))
    if left and left < len(matrix):
        matrix *= (len(matrix) - left) / len(matrix)  # as in `Paired.complete`
    return sample(matrix, pairs, label, threads)


# p-values


def _p_values(samples: list[Sample], pairing: Paired, how: _Settings) -> tuple[F64, F64, Drawn]:
    """Return p and corrected p, metrics x pairs, and how many permutations there were."""
    sides = [how.side(pairing.better[one.label]) for one in samples]
    if how.test == "randomisation":
        return _randomised(samples, sides, how)
    again = {"seed": how.seed, "threads": how.threads, "progress": how.progress}
    drawn = Drawn(how.permutations if how.test.startswith("bootstrap") else 0, False)

    def one(of: Sample, side: int) -> F64:
        if how.test == "t":
            return classic.t_test(of, side)
        if how.test == "sign":
            return classic.sign_test(of, side)
        if how.test == "wilcoxon":
            return classic.wilcoxon_test(of, side, how.threads)
        test = bootstrap.shifted_p if how.test == "bootstrap" else bootstrap.studentised_p
        return test(of, side, how.permutations, how.plus_one, **again)  # type: ignore[arg-type]

    p = np.stack([one(of, side) for of, side in zip(samples, sides, strict=True)])
    return p, _corrected(p, how), drawn


def _corrected(p: F64, how: _Settings) -> F64:
    if how.correction is None or how.family == "all":
        return p.copy()  # of all metrics: corrected when all are there
    return np.stack([correct(row, how.correction) for row in p])


def _randomised(samples: list[Sample], sides: list[int], how: _Settings) -> tuple[F64, F64, Drawn]:
    systems, pairs = samples[0].values.shape[1], samples[0].pairs
    shape = (len(samples), len(pairs))
    values = samples[0].values
    if len(samples) > 1:
        values = np.concatenate([one.values for one in samples], axis=1)
    side = np.repeat(np.array(sides, np.int8), len(pairs))
    observed = np.concatenate([one.observed for one in samples])
    statistic = np.where(side == 0, np.abs(observed), side * observed)
    tolerance = np.repeat([one.tolerance for one in samples], len(pairs))
    shift = np.repeat(np.arange(len(samples)) * systems, len(pairs))
    families: tuple[I64, ...] = ()
    scale = None
    if how.correction == "maxT":
        scale = _standard(samples)
        families = _families(statistic * scale, shape, how.family)
    tests = Hypotheses(
        np.tile(pairs.one, len(samples)) + shift,
        np.tile(pairs.other, len(samples)) + shift,
        side,
        statistic - tolerance,
        families,
        scale,
    )
    counts = flip_signs(
        values,
        tests,
        how.permutations,
        systems=systems,
        informative=_informative(samples),
        seed=how.seed,
        threads=how.threads,
        progress=how.progress,
    )
    p = counts.p(counts.each, how.plus_one)
    drawn = Drawn(counts.permutations, counts.enumerated)
    if how.correction == "maxT":
        adjusted = step_down(counts.p(counts.largest, how.plus_one), families).reshape(shape)
    elif how.correction == "tukey":
        adjusted = _tukey(values, samples, statistic - tolerance, how)
    else:
        adjusted = _corrected(p.reshape(shape), how)
    return p.reshape(shape), adjusted, drawn


def _standard(samples: list[Sample]) -> F64:
    """Return 1 / sqrt(sum d²) of each hypothesis, 0 where no user differs.

    The sum of squares does not change with signs, and t is a monotone function of
    sum d / sqrt(sum d²): the largest of these is the largest t.
    """
    parts = []
    for one in samples:
        total = one.squares / one.unit**2 + one.observed**2 / one.users
        parts.append(np.where(total > 0, 1 / np.sqrt(np.where(total > 0, total, 1.0)), 0.0))
    return np.concatenate(parts)


def _families(statistic: F64, shape: tuple[int, int], family: str) -> tuple[I64, ...]:
    """Return the hypotheses of each family, the most significant first."""
    numbers = np.arange(statistic.size, dtype=np.int64)
    parts = [numbers] if family == "all" else list(numbers.reshape(shape))
    return tuple(part[np.argsort(-statistic[part], kind="stable")] for part in parts)


def _informative(samples: list[Sample]) -> Mask | None:
    """Mark the users for whom systems differ; not looked at where there are clearly too many."""
    if samples[0].values.shape[0] > 100_000:
        return None
    differ = [(one.values != one.values[:, :1]).any(axis=1) for one in samples]
    result: Mask = np.logical_or.reduce(differ)
    return result


def _tukey(values: F64, samples: list[Sample], threshold: F64, how: _Settings) -> F64:
    """Return the share of shuffles whose range over all systems reaches each difference."""
    systems = samples[0].values.shape[1]
    shape = (len(samples), len(samples[0].pairs))
    ranges = shuffled_ranges(
        values,
        systems,
        how.permutations,
        seed=how.seed,
        threads=how.threads,
        progress=how.progress,
    )
    limits = threshold.reshape(shape)
    if how.family == "all":
        # Of all metrics: the largest range, each metric's in its own standard deviations.
        spread = np.array([1 / (ranges[:, row].std() or 1.0) for row in range(len(samples))])
        ranges = (ranges * spread).max(axis=1, keepdims=True).repeat(len(samples), axis=1)
        limits = limits * spread[:, None]
    ordered = np.sort(ranges, axis=0)
    counts = np.stack(
        [
            how.permutations - np.searchsorted(ordered[:, row], limits[row], "left")
            for row in range(len(samples))
        ]
    )
    return Counts(counts, counts, how.permutations, False).p(counts, how.plus_one)


# Everything else that is known of a pair


def _numbers(
    one: Sample, better: str, systems: tuple[str, ...], how: _Settings
) -> dict[str, object]:
    pairs, users = one.pairs, one.users
    low, high = _interval(one, how)
    with np.errstate(divide="ignore", invalid="ignore"):
        d = np.where((one.better == 0) & (one.worse == 0), 0.0, one.difference / one.sd)
    greater, smaller = one.better / users, one.worse / users
    if better == "lower":
        greater, smaller = smaller, greater
    numbers: dict[str, object] = {
        "metric": [one.label] * len(pairs),
        "a": [systems[i] for i in pairs.one],
        "b": [systems[i] for i in pairs.other],
        "mean_a": one.means[pairs.one],
        "mean_b": one.means[pairs.other],
        "difference": one.difference,
        "low": low,
        "high": high,
        "cohen_d": d,
        "hedges_g": d * _hedges(users),
        "better": greater,
        "worse": smaller,
        "equal": 1 - (one.better + one.worse) / users,
    }
    if how.rope is not None:
        above, same, below = bayesian_t(one, how.rope)
        if better == "lower":
            above, below = below, above
        numbers |= {"p_a_better": above, "p_equivalent": same, "p_b_better": below}
    return numbers


def _interval(one: Sample, how: _Settings) -> tuple[F64, F64]:
    if one.users < 2:
        nothing = np.full(len(one.pairs), np.nan)
        return nothing, nothing.copy()
    if how.interval == "bca":
        return bootstrap.bca_intervals(
            one, how.confidence, how.resamples, seed=how.seed, threads=how.threads
        )
    half = student_t_quantile((1 + how.confidence) / 2, one.users - 1) * one.standard_error
    return one.difference - half, one.difference + half


def _hedges(users: int) -> float:
    """Return Hedges' correction for few users: G(m/2) / (sqrt(m/2) G((m-1)/2)), m = users - 1."""
    m = users - 1
    if m < 2:
        return math.nan
    return math.exp(log_gamma_ratio((m - 1) / 2, 0.5)) / math.sqrt(m / 2)


def _columns(with_rope: bool) -> list[str]:
    more = ["p_a_better", "p_equivalent", "p_b_better"] if with_rope else []
    return [
        "metric",
        "a",
        "b",
        "mean_a",
        "mean_b",
        "difference",
        "low",
        "high",
        "p",
        "p_corrected",
        "significant",
        "cohen_d",
        "hedges_g",
        "better",
        "worse",
        "equal",
        *more,
    ]


def _left_out(samples: list[_Told]) -> list[str]:
    lost = {one.label: one.left_out for one in samples if one.left_out}
    if not lost:
        return []
    names = ", ".join(f"{count:,} of {label}" for label, count in lost.items())
    return [f"users left out because a value is undefined: {names}"]
