"""A/B tests in a world whose truth is known: each user sees the list of one system.

castells2018 section 5.3: users are shown what systems recommend, and what they click (free
feedback) or are asked to judge (forced feedback) says which system is better. Clicks depend on more
than relevance: on the position, on what else was clicked, on what is in fashion. Here users are
simulated in a `World`, so that the result of a test can be compared with the truth.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from itertools import combinations
from typing import NamedTuple

import numpy as np
import polars as pl

from unskew.arrays import F64, I64, U8
from unskew.checks import as_count, check_share, checked, choose
from unskew.data.ratings import Ratings
from unskew.engine.rng import key_of
from unskew.engine.threads import map_blocks
from unskew.online.click_models import Behaviour, Clicks, Feedback, behaviour_of
from unskew.online.top_lists import IMPRESSIONS, LEVEL, Systems, TopLists, check_systems, top_lists
from unskew.report.columns import (
    DIFFERENCE,
    HIGH,
    LOW,
    PAIR,
    SYSTEM,
    TEST,
    Column,
    Method,
    Question,
)
from unskew.report.estimates import Estimates
from unskew.report.text import counted
from unskew.stats.corrections import CORRECTIONS, correct, corrected_by
from unskew.stats.intervals.means import mean_intervals, student_ends, welch_df
from unskew.stats.intervals.shares import sign_p
from unskew.stats.special import student_t_sf
from unskew.worlds.worlds import World

VERDICT = (
    *DIFFERENCE,
    *TEST,
    Column("winner", "note"),
    Column("true_difference", "fact", "true P@k, a − b", form="+"),
)
"""How two systems differ in a test, which of them wins, and how they truly differ in P@k."""
RATES = Question(
    name="A/B test",
    columns=(
        *(SYSTEM, Column("lists", "count"), Column("clicks", "count")),
        *(Column("value", "value", "rate"), LOW, HIGH, Column("true", "fact", "true P@k")),
    ),
    method=Method(
        estimand="clicks (forced: liked items) per shown place", unit="lists", interval="t"
    ),
    display=("", "pairs"),
)
DIFFERENCES = Question(
    name="differences of rates",
    columns=(*PAIR, *VERDICT),
    method=replace(RATES.method, estimand="clicks per shown place: of a less those of b"),
)


class PairEffects(NamedTuple):
    """How much each pair of systems differs in a test; above 0 if the first is ahead."""

    difference: F64
    error: F64
    """Its standard error."""
    df: F64
    """Degrees of freedom of Student's t; infinite for the normal distribution."""
    p: F64

    def interval(self, level: float) -> tuple[F64, F64]:
        """Return both ends of the interval of the difference, which lies between -1 and 1."""
        low, high = student_ends(self.difference, self.error, self.df, level)
        return np.maximum(low, -1.0), np.minimum(high, 1.0)


def pairs_of(count: int) -> list[tuple[int, int]]:
    """Return all pairs of so many systems."""
    return list(combinations(range(count), 2))


def effects_of_counts(counts: I64, k: int) -> PairEffects:
    """Compare clicks per shown item by Welch's t-test; `counts` has lists, clicks, squares."""
    lists, mean, error = mean_clicks(counts, k)
    a, b = np.array(pairs_of(len(counts))).T
    variances = error[[a, b]] ** 2
    df = welch_df(variances, lists[[a, b]] - 1)
    # Without any variance no degrees of freedom are defined; the interval is a point then.
    df = np.where(np.isfinite(df), df, 1.0)
    return _by_t(mean[a] - mean[b], np.sqrt(variances.sum(axis=0)), df)


def mean_clicks(counts: I64, k: int) -> tuple[F64, F64, F64]:
    """Return of each system the lists shown, clicks per place, and its standard error."""
    lists, total = counts[:, 0].astype(np.float64), counts[:, 1].astype(np.float64)
    with np.errstate(divide="ignore", invalid="ignore"):
        # One division, as in the true P@k: where all are judged both have the same bits.
        rate = total / (lists * k)
        # n Σc² - (Σc)² in whole numbers: nothing is lost, and without spread it is exactly 0.
        exact = np.array([int(n) * int(q) - int(c) ** 2 for n, c, q in counts.tolist()], np.float64)
        error = np.sqrt(exact / (lists**2 * (lists - 1)))
    return lists, rate, error / k


def effects_of_users(values: F64) -> PairEffects:
    """Compare values of the same users, systems x users, by the paired t-test."""
    a, b = np.array(pairs_of(len(values))).T
    gap = values[a] - values[b]
    n = gap.shape[1]
    difference, spread, _, _ = mean_intervals(gap, LEVEL, axis=1)
    return _by_t(difference, spread, np.full(a.size, max(n - 1, 1.0)))


def effects_of_wins(wins: I64, n: int) -> PairEffects:
    """Compare impressions won by the sign test; the difference is share won less share lost.

    Impressions that neither wins say nothing about p (exact, two-sided).
    """
    a, b = np.array(pairs_of(len(wins))).T
    won, lost = wins[a, b], wins[b, a]
    difference = (won - lost) / n
    p = np.array([sign_p(*pair) for pair in zip(won.tolist(), lost.tolist(), strict=True)])
    error = np.sqrt(((won + lost) / n - difference**2) / n)
    return PairEffects(difference, error, np.full(a.size, np.inf), p)


def _by_t(difference: F64, error: F64, df: F64) -> PairEffects:
    with np.errstate(divide="ignore", invalid="ignore"):
        t = np.abs(difference) / error
    # No spread at all: equal means are no difference, others a certain one. Too few lists: nothing
    # can be said.
    p = np.where(difference == 0, 1.0, 2 * student_t_sf(t, df))
    return PairEffects(difference, error, df, np.where(np.isnan(p), 1.0, p))


def pair_rows(
    lists: TopLists, effects: PairEffects, level: float, correction: str | None
) -> pl.DataFrame:
    """Return a row per pair of systems: the difference in the test, its winner, the true one.

    Parameters
    ----------
    lists
        What systems show.
    effects
        Of the pairs.
    level
        Of the intervals; 1 - level is the level of significance.
    correction
        Of the p-values of all pairs. A test of six systems makes 15 comparisons: without it a
        third of such tests of equal systems would name a winner.
    """
    a, b = np.array(pairs_of(len(lists.systems))).T
    names, true = pl.Series(lists.systems), lists.true()
    low, high = effects.interval(level)
    corrected = effects.p if correction is None else correct(effects.p, correction)
    ahead = names.gather(np.where(effects.difference > 0, a, b))
    return pl.DataFrame(
        {
            "system": names.gather(a),
            "against": names.gather(b),
            "value": effects.difference,
            "low": low,
            "high": high,
            "p": effects.p,
            "p_corrected": corrected,
            "significant": corrected < 1 - level,
            "true_difference": true[a] - true[b],
        }
    ).with_columns(winner=pl.when("significant").then(ahead))


def tested(method: Method, count: int, level: float, correction: str | None) -> Method:
    """Return the method of a test of so many systems, with its level and correction."""
    family = counted(len(pairs_of(count)), "pair")
    return replace(method, level=level, correction=corrected_by(correction, family))


def winner_rule(count: int, level: float) -> str:
    """Return the rule by which a winner is named, in words."""
    suffix = "; intervals are of single pairs" * (count > 2)
    return f"winner: p < {1 - level:.3g}{suffix}"


def check_correction(correction: str | None) -> None:
    """Raise an error for an unknown correction."""
    if correction is not None:
        choose("correction", correction, CORRECTIONS)


_BLOCK = 1 << 14  # impressions of one task


@checked
def ab_test(
    world: World,
    systems: Systems | TopLists,
    impressions: int | None = IMPRESSIONS,
    feedback: Feedback = Clicks(),  # noqa: B008 - frozen
    *,
    k: int | None = None,
    train: Ratings | None = None,
    level: float = LEVEL,
    correction: str | None = "holm",
    seed: int = 0,
) -> Estimates:
    """Show each user the list of one system at random, and compare the clicks.

    Parameters
    ----------
    world, systems, k, train
        As in `top_lists`. Two systems make an A/B test, more a test of several variants.
    impressions
        How many lists are shown, each to a user and by a system drawn at random. None = every user
        is shown the list of every system once: with `ForcedExposure()` the rates are then the true
        P@k (castells2018 section 5.3.2).
    feedback
        What users do: `Clicks(…)` or `ForcedExposure()`.
    level
        Of the intervals; a system wins a pair if its corrected p is below 1 - level (Welch's t-test
        over lists; over users, paired, where all see everything).
    correction
        Of the p-values of all pairs: `holm`, `bonferroni`, `bh`, `by`, or None.
    seed
        Of users, systems and clicks; and of training.

    Returns
    -------
    Estimates
        A row per system: lists shown, clicks, and clicks (or, with forced feedback, liked items)
        per shown place; `true` is its P@k. Part `pairs`: differences of these rates, with p,
        `winner` (none where p_corrected is not below 1 - level) and `true_difference` (of P@k).

    Examples
    --------
    >>> import unskew as us
    >>> from unskew.online.ab_tests import ab_test
    >>> from unskew.online.click_models import ForcedExposure
    >>> shop = us.world("shop", users=200, items=80, seed=1)
    >>> systems = [us.recommend.Random(), us.recommend.Popularity()]
    >>> test = ab_test(shop, systems, None, ForcedExposure(), k=5)
    >>> test.rows["value"].equals(test.rows["true"])
    True
    >>> test.pair("popularity", "random").facts["winner"]
    'popularity'
    """
    check_share("level", level)
    check_correction(correction)
    lists = top_lists(world, systems, k=k, train=train, seed=seed)
    check_systems(lists, 2)
    behaviour = behaviour_of(feedback, world, lists.k)
    if impressions is not None:
        counts = ab_counts(lists, behaviour, seed, 0, as_count("impressions", impressions))
        effects = effects_of_counts(counts, lists.k)
        design = f"{int(counts[:, 0].sum()):,} impressions, each of a random user and system"
    else:
        clicks = (log_of(lists, behaviour, seed, None) == 2).sum(axis=2, dtype=np.int64)
        users = clicks.shape[1]
        counts = np.stack([np.full(len(clicks), users), clicks.sum(1), (clicks**2).sum(1)], axis=1)
        effects = effects_of_users(clicks / lists.k)
        design = "every user was shown the list of every system"
    n, rate, error = mean_clicks(counts, lists.k)
    low, high = student_ends(rate, error, np.maximum(n - 1, 1), level)
    rows = pl.DataFrame(
        {
            "system": lists.systems,
            "lists": counts[:, 0],
            "clicks": counts[:, 1],
            "value": rate,
            "low": np.maximum(low, 0),
            "high": np.minimum(high, 1),
            "true": lists.true(),
        }
    )
    test = "paired t test" if impressions is None else "Welch's t test"
    method = tested(replace(RATES.method, test=test), len(lists.systems), level, correction)
    pairs = pair_rows(lists, effects, level, correction)
    return Estimates.of_rows(
        RATES,
        rows,
        method=method,
        explanation=(f"{design}; {feedback}", winner_rule(len(lists.systems), level)),
        notes=lists.notes,
        parts={"pairs": Estimates.of_rows(DIFFERENCES, pairs, method=method)},
        card={"correction": correction, "k": lists.k, "impressions": impressions},
    )


def ab_counts(lists: TopLists, behaviour: Behaviour, seed: int, lo: int, hi: int) -> I64:
    """Return lists, clicks and squared clicks of each system in impressions lo to hi."""
    from unskew.online import kernels

    key = np.uint64(key_of(seed, "online/ab", *lists.draw_names))

    def block(bounds: tuple[int, int]) -> I64:
        out = np.zeros((len(lists.systems), 3), np.int64)
        kernels.ab_block(*bounds, key, lists.item, lists.liked, behaviour, out)
        return out

    return sum_blocks(block, lo, hi, lists.k)


def log_of(lists: TopLists, behaviour: Behaviour, seed: int, impressions: int | None) -> U8:
    """Return what an A/B test showed, systems x users x k: 0 never, 1 shown, 2 and clicked."""
    from unskew.online import kernels

    key = np.uint64(key_of(seed, "online/ab", *lists.draw_names))
    mark = np.zeros(lists.item.shape, np.uint8)
    census = impressions is None
    count = lists.item.shape[0] * lists.item.shape[1] if impressions is None else impressions
    kernels.log_block(count, key, census, lists.item, lists.liked, behaviour, mark)
    return mark


def sum_blocks(function: Callable[[tuple[int, int]], I64], lo: int, hi: int, k: int) -> I64:
    """Add up the counts of blocks of impressions."""
    blocks = [(start, min(start + _BLOCK, hi)) for start in range(lo, hi, _BLOCK)]
    total: I64 = np.sum(map_blocks(function, blocks, size=(hi - lo) * k), axis=0)
    return total
