"""`compare`: all pairs of systems on all metrics at once."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import polars as pl

from unskew.checks import checked
from unskew.engine.progress import Progress, notebook_progress
from unskew.errors import SettingError
from unskew.evaluation.evaluate import METRICS, evaluate
from unskew.judging.judged import Judged
from unskew.report.columns import (
    DIFFERENCE,
    METRIC,
    PAIR,
    TEST,
    USERS,
    Column,
    Drawing,
    Method,
    Question,
)
from unskew.report.estimates import Estimates
from unskew.report.text import counted
from unskew.stats.compare.compare_segments import compare_segments
from unskew.stats.compare.ranking import ranking_of
from unskew.stats.corrections import CORRECTIONS, correct
from unskew.stats.pairing import (
    Paired,
    PairedSample,
    Pairs,
    Source,
    paired,
    pairs_with,
    sample,
    users_left_out,
)
from unskew.stats.resampling import chosen_metrics
from unskew.stats.segments import segments_of
from unskew.stats.special import log_gamma_ratio
from unskew.stats.tests.classic import skewed_differences
from unskew.stats.tests.p_values import (
    BY_PERMUTATION,
    PermutationCount,
    TestSettings,
    difference_interval,
    p_values,
)
from unskew.stats.tests.posterior import bayesian_t
from unskew.stats.user_groups import (
    duplicates_notes,
    groups_of_users,
    rating_parts,
    stated_by_group,
)

OF_SUMS = ("randomisation", "wilcoxon", "sign")
"""Tests that need no variance: of groups of users they take the sums."""
_HELD = 1 << 28  # bytes of values compared at a time


PAIRS = Question(
    name="pairs",
    columns=(
        *(METRIC, *PAIR, USERS, Column("mean", "fact", "mean a")),
        *(Column("mean_against", "fact", "mean b"), *DIFFERENCE, *TEST),
        *(Column(name, "fact", form="+", hidden=True) for name in ("cohen_d", "hedges_g")),
        *(Column("better", "share", "a better", form="%", hidden=True),),
        *(Column("better_against", "share", "b better", form="%", hidden=True),),
        *(Column("equal", "share", form="%", hidden=True),),
    ),
    method=Method(estimand="the mean difference a − b"),
    display=("ranking",),
    figures=(Drawing("differences", "forest", "ranking"), Drawing("pairs", "matrix")),
)
"""What `compare` answers: a row per metric and pair.

Effect sizes are `cohen_d`, the mean of the differences by their standard deviation, and `hedges_g`,
the same corrected for few users. `better` is the share of users for whom a is better, as the metric
says; `better_against` that of b.
"""
ROPE = tuple(Column(name, "share") for name in ("p_better", "p_equivalent", "p_better_against"))


@notebook_progress("comparison")
@checked
def compare(
    scores: Source,
    metrics: str | Sequence[str] | None = None,
    *,
    by: object = None,
    groups: int | None = None,
    least_users: int | None = None,
    test: str = "randomisation",
    alternative: str = "two-sided",
    permutations: int = 100_000,
    plus_one: bool = True,
    correction: str | None = "holm",
    family: str = "metric",
    level: float = 0.95,
    interval: str = "t",
    resamples: int = 10_000,
    against: str | None = None,
    rope: float | None = None,
    group_users: object = None,
    seed: int = 0,
    threads: int | None = None,
    progress: Progress | None = None,
) -> Estimates:
    """Compare systems user by user: who is better, by how much, how sure.

    The user is the unit: lists of one user, and the same user in several folds, are one value
    (see `paired`). All tests are paired.

    Parameters
    ----------
    scores
        Judged data (`judge`), which are evaluated here; what `evaluate` gave; a list of such for
        several folds or splits of the same systems; or values per user from elsewhere, a polars or
        pandas frame, a file or a mapping of column names to arrays: `user` and a column per system,
        or `user`, `system` and a column per metric (see `paired`).
    metrics
        One or several labels; every metric that has a value per user unless given (of judged
        data: those that `evaluate` takes by itself).
    by
        Compare within segments of users instead: `activity` (number of training ratings; of test
        ratings where training is not known), `popularity` (mean popularity of the items that the
        user liked in training, else in test; of those rated where none is liked), `time` (of the
        user's last test judgment), `FILE:COLUMN` of a file of users, or a table with a column of
        users and one other column. Numbers are cut into quantile groups, texts are groups. With
        training ratings, users without any are a segment of their own, `cold`, unless a column is
        given. A row per pair and segment then: intervals of all of them hold together, p-values are
        corrected over them, and the part `interactions` tells whether the difference differs
        between segments.
    groups
        With `by`: into how many quantile groups numbers are cut, 4 unless given. Users with
        equal numbers stay together.
    least_users
        With `by`: groups of a text column with fewer users, and those beyond the 20 most frequent,
        are merged into `other`; 20 unless given.
    test
        The test: `randomisation`, `t`, `wilcoxon`, `sign`, `bootstrap` or `bootstrap-t`.

        `randomisation`: Fisher's test by flipping the sign of each user's difference, on the
        difference in means, the same signs for all pairs and metrics. All sign patterns are looked
        at, and p is exact, where these are no more than `permutations`; users for whom all systems
        have the same value do not count. `bootstrap`: of means, shifted to the null hypothesis;
        `bootstrap-t`: of t statistics (Sakai 2006).
    alternative
        `two-sided`, or one-sided for the first system of a pair: `greater`, `less` or `better`.

        With `against`: for the other system, not that one. `better`: it has the better
        values, as the metric says.
    permutations
        Permutations of the randomisation test, or resamples of the bootstrap.
    plus_one
        Compute p as (extreme + 1) / (permutations + 1), which is never 0, or as the plain share.

        The papers take the share.
    correction
        Correction for several pairs: `holm`, `bonferroni`, `bh`, `by`, `maxT`, `tukey` or none.

        `maxT`: Westfall and Young's step-down, from the same permutations: it knows how pairs
        depend on each other. `tukey`: randomised Tukey HSD, of permutations of its own in which all
        systems change places.
    family
        P-values to correct together: those of each metric (`metric`), or all (`all`).
    level
        Confidence level of the intervals.

        1 - level is the level of significance.
    interval
        Method of the intervals: `t`, or `bca` (bootstrap).

        Of the mean difference, each at its own level. `t`: Student's; where few users carry a
        difference, as with all-or-nothing values against steady ones (from 30 users on, the
        skewness of the mean difference beyond 0.2), wider by Hall's transformation, and so is
        `test="t"`; a note says so. `bca`: bias-corrected and accelerated, of `resamples` resamples.
    against
        Compare this system with every other one, instead of all pairs.
    rope
        Differences up to this size do not matter; adds the probability of such a difference.

        In units of the metric. The probabilities are that a is better, that both are equivalent,
        that b is better (Bayesian t).
    group_users
        Users that are not independent (households, test accounts) count as one: `detected` for
        near-duplicate accounts, or FILE:COLUMN of a file of users.

        Or a mapping from user to group, a table with a column of users and one other column, or
        what `splits.duplicate_users` gave. Intervals, tests and permutations are by group, and
        users that are in none are groups of their own. Near-duplicates are detected in the test
        and training ratings of judged data; where they are many and groups are not given, a note
        says so.
    seed
        Of permutations and resamples.
    threads
        Never changes a number.
    progress
        Called with how many permutations are done, of how many.

    Returns
    -------
    Estimates
        A row per metric and pair: the difference as `value`, `low`, `high`, p-values, effect sizes,
        shares of users. The part `ranking` has the systems in order, with letters; it is printed.

    References
    ----------
    Smucker, Allan and Carterette (CIKM 2007): randomisation against t, Wilcoxon and sign.
    Westfall and Young (1993), algorithm 4.1. Carterette (TOIS 2012): randomised Tukey HSD.
    Phipson and Smyth (2010): p-values should never be zero. Sakai (SIGIR 2006): bootstrap.
    Benavoli, Corani, Demšar and Zaffalon (JMLR 2017): Bayesian comparison.

    Examples
    --------
    >>> import unskew as us
    >>> from unskew.stats.compare.compare import compare
    >>> test = {"user": [1, 2, 3, 4, 5], "item": [7] * 5, "rating": [5] * 5}
    >>> runs = {"a": {u: [7] for u in range(1, 6)}, "b": {u: [8, 7] for u in range(1, 6)}}
    >>> print(compare(us.evaluate(test, runs, "RR", liked=4)))
    RR (higher is better), 5 users
    #  system    mean  difference              95% CI       p  letters
    1  a       1.0000           –                   –       –  a
    2  b       0.5000     −0.5000  [−0.5000, −0.5000]  0.0625  a
    <BLANKLINE>
    95% CI: t, by user
    p: randomisation test (sign flips per user), all 32 sign patterns, corrected by Holm over 1 pair
    differences to the best; systems that share a letter do not differ significantly (α = 0.05)
    liked: rating >= 4; gain liked-only; loss levels
    undefined values count as 0
    arrays: arrays, 5 rows; user = user, item = item, rating = rating
    lists: mapping, 5 rows; user = user, item = item, rank = rank
    lists: mapping, 10 rows; user = user, item = item, rank = rank
    """
    settings = TestSettings(
        test=test,
        alternative=alternative,
        permutations=permutations,
        plus_one=plus_one,
        correction=correction,
        family=family,
        level=level,
        interval=interval,
        resamples=resamples,
        rope=rope,
        seed=seed,
        threads=threads,
        progress=progress,
    )
    settings.check()
    judged = scores if isinstance(scores, Judged) else None
    stated = groups_of_users(group_users, rating_parts(judged))
    if judged is not None:
        requested = METRICS if metrics is None else metrics
        scores = evaluate(judged, requested, threads=threads)
    pairing = paired(scores) if stated is None else paired(scores).by_group(stated)
    if len(pairing.systems) < 2:
        raise SettingError(
            f"there is one system only, {pairing.systems[0]!r}: nothing to compare it with"
        )
    labels, pairs = chosen_metrics(pairing, metrics), pairs_with(against, pairing.systems)
    if by is not None and pairing.groups is not None:
        raise SettingError(
            "group_users=… does not go with by=…: users of one group may be in several segments; "
            "leave one of them out"
        )
    if by is not None:
        cut = {"groups": groups, "least_users": least_users}
        segments = segments_of(pairing.users, by, judged=judged, scores=pairing.parts, **cut)
        return compare_segments(pairing, labels, pairs, segments, settings)
    if groups is not None or least_users is not None:
        name = "least_users" if groups is None else "groups"
        raise SettingError(f"{name}=… is for by=…: leave it out, or give by=…")
    result = _pairs_of(pairing, labels, pairs, settings, against)
    result = replace(result, notes=(*result.notes, *duplicates_notes(judged, group_users)))
    return stated_by_group(result, pairing.groups, pairing.people)


def _pairs_of(
    pairing: Paired,
    labels: list[str],
    pairs: Pairs,
    settings: TestSettings,
    against: str | None,
) -> Estimates:
    """Return the pairs and the ranking."""
    tables, means, left_out, count, skewed = _compare_all(pairing, labels, pairs, settings)
    base = f"{against!r}" if against else "the best"
    shared = f"; systems that share a letter do not differ significantly (α = {settings.alpha:g})"
    rows = _table(tables, settings)
    result = Estimates.of_rows(
        PAIRS if settings.rope is None else replace(PAIRS, columns=(*PAIRS.columns, *ROPE)),
        rows,
        method=settings.method(count, over=_family(len(pairs), labels, settings)),
        explanation=(f"differences to {base}{'' if against else shared}",),
        notes=(*pairing.rules, *pairing.notes, *users_left_out(left_out), *skewed),
        card={
            **settings.card(),
            "against": against,
            "better": {label: pairing.better[label] for label in labels},
            "users": {table["metric"][0]: table["n"][0] for table in tables},
            "permutations": count.permutations,
            "enumerated": count.enumerated,
        },
    )
    return replace(result, parts={"ranking": ranking_of(result, means)})


def _family(pairs: int, labels: Sequence[str], settings: TestSettings) -> str:
    """Return over how many comparisons p-values are corrected, in words."""
    if settings.family == "all" and len(labels) > 1:
        return f"{counted(pairs * len(labels), 'pair')} of all metrics"
    return counted(pairs, "pair")


def _compare_all(
    pairing: Paired, labels: list[str], pairs: Pairs, settings: TestSettings
) -> tuple[
    list[pl.DataFrame], dict[str, dict[str, float]], dict[str, int], PermutationCount, list[str]
]:
    """Compare the pairs on every metric, as many metrics at a time as fit in memory.

    Returns a table per metric; by metric the mean of each system, and how many users are left out
    as a value is undefined; the permutations; and notes on skewed differences.
    """
    tables, means, left_out, skewed = [], {}, {}, []
    count = PermutationCount(0, False)
    for group in _groups(labels, pairing, settings):
        samples, linear = _samples(pairing, group, pairs, settings.threads)
        sides = [settings.side(pairing.better[sample.label]) for sample in samples]
        is_of_sums = settings.test in OF_SUMS
        p, corrected, count = p_values(samples if is_of_sums else linear, sides, settings)
        for row, (tested, spread) in enumerate(zip(samples, linear, strict=True)):
            better = pairing.better[tested.label]
            numbers = _numbers(tested, spread, better, pairing.systems, settings)
            numbers |= {"p": p[row], "p_corrected": corrected[row]}
            tables.append(pl.DataFrame(numbers))
            means[tested.label] = dict(zip(pairing.systems, tested.means.tolist(), strict=True))
            left_out[tested.label] = tested.included.size - tested.users
            skewed += _skewed_notes(spread, settings)
    return tables, means, left_out, count, skewed


def _skewed_notes(tested: PairedSample, settings: TestSettings) -> list[str]:
    """Say how many differences few users carry, where that changes a number."""
    number = int(np.count_nonzero(skewed_differences(tested)[0])) if tested.users > 1 else 0
    changed = [
        *(["95% CI" if settings.level == 0.95 else "interval"] if settings.interval == "t" else []),
        *(["p"] if settings.test == "t" else []),
    ]
    if not number or not changed:
        return []
    what = counted(number, "difference rests", "differences rest")
    return [
        f"{tested.label}: {what} on few users (strongly skewed): {' and '.join(changed)} by "
        "Hall's transformation where that is more cautious than t"
    ]


def _samples(
    pairing: Paired, labels: list[str], pairs: Pairs, threads: int | None
) -> tuple[list[PairedSample], list[PairedSample]]:
    """Return what is permuted, and what has the variance of means; the same where users count."""
    samples, linear = [], []
    for label in labels:
        grouped = pairing.grouped(label)
        values = pairing.scaled(label)[0] if grouped is None else grouped.sums.copy()
        samples.append(sample(values, pairs, label, threads))
        linear.append(samples[-1])
        if grouped is not None and grouped.linear is not grouped.sums:
            linear[-1] = sample(grouped.linear, pairs, label, threads)
    return samples, linear


def _table(tables: list[pl.DataFrame], settings: TestSettings) -> pl.DataFrame:
    """Return a row per metric and pair; p-values of all metrics are corrected here."""
    table = pl.concat(tables)
    if settings.family == "all" and settings.correction in CORRECTIONS:
        corrected = correct(table["p"].to_numpy(), settings.correction)
        table = table.with_columns(p_corrected=pl.Series(corrected))
    return table.with_columns(significant=pl.col("p_corrected") <= settings.alpha + 1e-12)


def _groups(labels: list[str], pairing: Paired, settings: TestSettings) -> list[list[str]]:
    """Cut the metrics into groups that fit in memory; what is corrected together stays together."""
    if settings.family == "all" and settings.correction in BY_PERMUTATION:
        return [labels]
    per_group = max(1, _HELD // (8 * len(pairing) * len(pairing.systems)))
    return [labels[start : start + per_group] for start in range(0, len(labels), per_group)]


def _numbers(
    paired_sample: PairedSample,
    spread: PairedSample,
    better: str,
    systems: tuple[str, ...],
    settings: TestSettings,
) -> dict[str, object]:
    """Return the columns of a metric; errors and intervals are those of `spread`."""
    pairs, users = paired_sample.pairs, paired_sample.users
    low, high = difference_interval(spread, settings)
    with np.errstate(divide="ignore", invalid="ignore"):
        d = np.where(
            (paired_sample.better == 0) & (paired_sample.worse == 0),
            0.0,
            paired_sample.difference / spread.sd,
        )
    greater, smaller = paired_sample.better / users, paired_sample.worse / users
    if better == "lower":
        greater, smaller = smaller, greater
    numbers: dict[str, object] = {
        "metric": [paired_sample.label] * len(pairs),
        "system": [systems[i] for i in pairs.first],
        "against": [systems[i] for i in pairs.second],
        "n": [users] * len(pairs),
        "mean": paired_sample.means[pairs.first],
        "mean_against": paired_sample.means[pairs.second],
        "value": paired_sample.difference,
        "low": low,
        "high": high,
        "cohen_d": d,
        "hedges_g": d * _hedges(users),
        "better": greater,
        "better_against": smaller,
        "equal": 1 - (paired_sample.better + paired_sample.worse) / users,
    }
    if settings.rope is not None:
        above, same, below = bayesian_t(spread, settings.rope)
        if better == "lower":
            above, below = below, above
        numbers |= {"p_better": above, "p_equivalent": same, "p_better_against": below}
    return numbers


def _hedges(users: int) -> float:
    """Return Hedges' correction for few users: G(m/2) / (sqrt(m/2) G((m-1)/2)), m = users - 1."""
    m = users - 1
    if m < 2:
        return math.nan
    return math.exp(log_gamma_ratio((m - 1) / 2, 0.5)) / math.sqrt(m / 2)
