"""A/B tests in a world whose truth is known: each user sees the list of one system.

castells2018 section 5.3: users are shown what systems recommend, and what they click (free
feedback) or are asked to judge (forced feedback) says which system is better. Clicks depend on more
than relevance: on the position, on what else was clicked, on what is in fashion. Here users are
simulated in a `World`, so that the result of a test can be compared with the truth.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import combinations

import numpy as np
import polars as pl

from unskew.arrays import F64, I64, U8
from unskew.checks import as_count, check_share, checked, choose
from unskew.data.ratings import Ratings
from unskew.engine.rng import key_of
from unskew.engine.threads import map_blocks
from unskew.online.click_models import Behaviour, Clicks, Feedback, behaviour_of
from unskew.online.top_lists import IMPRESSIONS, LEVEL, Systems, TopLists, check_systems, top_lists
from unskew.report.charts import Figure, as_figure
from unskew.report.result import Result
from unskew.stats.corrections import CORRECTIONS, correct
from unskew.stats.intervals.means import mean_intervals, student_ends
from unskew.stats.special import binomial_half_cdf, student_t_sf
from unskew.worlds.worlds import World


@dataclass(frozen=True, eq=False)
class PairEffects:
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
    difference = mean[a] - mean[b]
    spread = np.sqrt(error[a] ** 2 + error[b] ** 2)
    with np.errstate(divide="ignore", invalid="ignore"):
        df = spread**4 / (error[a] ** 4 / (lists[a] - 1) + error[b] ** 4 / (lists[b] - 1))
    # Without any variance no degrees of freedom are defined; the interval is a point then.
    return _by_t(difference, spread, np.where(np.isfinite(df), df, 1.0))


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
    p = np.minimum(2 * binomial_half_cdf(np.minimum(won, lost), won + lost), 1.0)
    error = np.sqrt(((won + lost) / n - difference**2) / n)
    return PairEffects(difference, error, np.full(a.size, np.inf), p)


def _by_t(difference: F64, error: F64, df: F64) -> PairEffects:
    with np.errstate(divide="ignore", invalid="ignore"):
        t = np.abs(difference) / error
    # No spread at all: equal means are no difference, others a certain one. Too few lists: nothing
    # can be said.
    p = np.where(difference == 0, 1.0, 2 * student_t_sf(t, df))
    return PairEffects(difference, error, df, np.where(np.isnan(p), 1.0, p))


def pair_table(
    lists: TopLists, effects: PairEffects, level: float, correction: str | None
) -> pl.DataFrame:
    """Return a row per pair: the difference in the test, and the true one."""
    true, names, rows = lists.true(), lists.systems, []
    low, high = effects.interval(level)
    # A test of six systems makes 15 comparisons: without correction a third of such tests of equal
    # systems would name a winner.
    corrected = effects.p if correction is None else correct(effects.p, correction)
    for index, (a, b) in enumerate(pairs_of(len(names))):
        difference = float(effects.difference[index])
        clear = bool(corrected[index] < 1 - level)
        rows.append(
            {
                "a": names[a],
                "b": names[b],
                "difference": difference,
                "low": float(low[index]),
                "high": float(high[index]),
                "p": float(effects.p[index]),
                "p_corrected": float(corrected[index]),
                "winner": (names[a] if difference > 0 else names[b]) if clear else None,
                "true": float(true[a] - true[b]),
                "better": None if true[a] == true[b] else names[a if true[a] > true[b] else b],
            }
        )
    return pl.DataFrame(rows, schema=_PAIRS)


_PAIRS = {
    "a": pl.String,
    "b": pl.String,
    "difference": pl.Float64,
    "low": pl.Float64,
    "high": pl.Float64,
    "p": pl.Float64,
    "p_corrected": pl.Float64,
    "winner": pl.String,
    "true": pl.Float64,
    "better": pl.String,
}


def check_correction(correction: str | None) -> None:
    """Raise an error for an unknown correction."""
    if correction is not None:
        choose("correction", correction, CORRECTIONS)


def winner_rule(count: int, level: float, correction: str | None) -> str:
    """Return the rule by which a winner is named, in words."""
    pairs = len(pairs_of(count))
    if pairs == 1:
        return f"winner: p < {1 - level:.3g}"
    p = "p, not corrected" if correction is None else f"p, corrected by {correction}"
    return f"winner: {p} for {pairs} pairs, < {1 - level:.3g}; intervals are of single pairs"


_BLOCK = 1 << 14  # impressions of one task


@dataclass(frozen=True, eq=False)
class ABTest(Result):
    """Clicks per shown item of each system, each shown to other users. Made by `ab_test`."""

    lists: TopLists
    feedback: Feedback
    counts: I64
    """Systems x 3: lists shown, clicks, and the sum of squared clicks per list."""
    effects: PairEffects
    census: bool
    """Whether every user was shown every system's list."""
    level: float = LEVEL
    correction: str | None = "holm"

    def rates(self) -> F64:
        """Return the clicks (or, with forced feedback, liked items) per shown place: P̂@k."""
        return mean_clicks(self.counts, self.lists.k)[1]

    def table(self) -> pl.DataFrame:
        """Return a row per system: lists shown, clicks per place with interval, the true P@k."""
        n, rate, error = mean_clicks(self.counts, self.lists.k)
        low, high = student_ends(rate, error, np.maximum(n - 1, 1), self.level)
        return pl.DataFrame(
            {
                "system": list(self.lists.systems),
                "lists": self.counts[:, 0],
                "rate": rate,
                "low": np.maximum(low, 0),
                "high": np.minimum(high, 1),
                "true": self.lists.true(),
            }
        )

    def pairs(self) -> pl.DataFrame:
        """Return a row per pair of systems.

        Columns: a, b, difference (of the rates) with its interval low to high, p, p_corrected for
        the number of pairs, winner (null where p_corrected is not below 1 - level), true (the true
        difference of P@k), better.
        """
        return pair_table(self.lists, self.effects, self.level, self.correction)

    def figure(self) -> Figure:
        """Draw the rate of each system with its interval, and the true P@k beside it."""
        import altair as alt

        base = alt.Chart(alt.NamedData(name="rows"), width=360)
        y = alt.Y("system:N", title=None, sort=None)
        bars = base.mark_rule().encode(x=alt.X("low:Q", title="per shown item"), x2="high:Q", y=y)
        points = base.mark_point(filled=True, size=70).encode(x="rate:Q", y=y)
        truth = base.mark_tick(color="#999999", thickness=3).encode(x="true:Q", y=y)
        return as_figure(
            alt.layer(bars, points, truth),
            "A/B test",
            [*self.footer(), "grey: the true P@k"],
            self.table().to_dicts(),
        )

    def _explanation(self) -> list[str]:
        design = (
            "every user was shown the list of every system"
            if self.census
            else (f"{int(self.counts[:, 0].sum()):,} impressions, each of a random user and system")
        )
        winners = winner_rule(len(self.lists.systems), self.level, self.correction)
        return [
            f"{design}; {self.feedback}; {self.level:.0%} intervals",
            winners,
            *self.lists.notes,
        ]

    def _content(self) -> dict[str, object]:
        return {
            "level": self.level,
            "correction": self.correction,
            "systems": self.table(),
            "pairs": self.pairs(),
            "notes": self.footer(),
        }


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
) -> ABTest:
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

    Examples
    --------
    >>> import unskew as us
    >>> from unskew.online.ab_tests import ab_test
    >>> from unskew.online.click_models import ForcedExposure
    >>> shop = us.world("shop", users=200, items=80, seed=1)
    >>> systems = [us.recommend.Random(), us.recommend.Popularity()]
    >>> test = ab_test(shop, systems, None, ForcedExposure(), k=5)
    >>> test.rates().tolist() == test.table()["true"].to_list()
    True
    """
    check_share("level", level)
    check_correction(correction)
    lists = top_lists(world, systems, k=k, train=train, seed=seed)
    check_systems(lists, 2)
    behaviour = behaviour_of(feedback, world, lists.k)
    if impressions is not None:
        counts = ab_counts(lists, behaviour, seed, 0, as_count("impressions", impressions))
        effects = effects_of_counts(counts, lists.k)
    else:
        clicks = (log_of(lists, behaviour, seed, None) == 2).sum(axis=2, dtype=np.int64)
        users = clicks.shape[1]
        counts = np.stack([np.full(len(clicks), users), clicks.sum(1), (clicks**2).sum(1)], axis=1)
        effects = effects_of_users(clicks / lists.k)
    return ABTest(
        lists=lists,
        feedback=feedback,
        counts=counts,
        effects=effects,
        census=impressions is None,
        level=level,
        correction=correction,
    )


def ab_counts(lists: TopLists, behaviour: Behaviour, seed: int, lo: int, hi: int) -> I64:
    """Return lists, clicks and squared clicks of each system in impressions lo to hi."""
    from unskew.online import kernels

    key = np.uint64(key_of(seed, "online/ab", *lists.draw_names))

    def block(bounds: tuple[int, int]) -> I64:
        out = np.zeros((len(lists.systems), 3), np.int64)
        first, last = bounds
        kernels.ab_block(first, last, key, lists.item, lists.liked, behaviour.arguments(), out)
        return out

    return sum_blocks(block, lo, hi, lists.k)


def log_of(lists: TopLists, behaviour: Behaviour, seed: int, impressions: int | None) -> U8:
    """Return what an A/B test showed, systems x users x k: 0 never, 1 shown, 2 and clicked."""
    from unskew.online import kernels

    key = np.uint64(key_of(seed, "online/ab", *lists.draw_names))
    mark = np.zeros(lists.item.shape, np.uint8)
    census = impressions is None
    count = lists.item.shape[0] * lists.item.shape[1] if impressions is None else impressions
    kernels.log_block(count, key, census, lists.item, lists.liked, behaviour.arguments(), mark)
    return mark


def sum_blocks(function: Callable[[tuple[int, int]], I64], lo: int, hi: int, k: int) -> I64:
    """Add up the counts of blocks of impressions."""
    blocks = [(start, min(start + _BLOCK, hi)) for start in range(lo, hi, _BLOCK)]
    total: I64 = np.sum(map_blocks(function, blocks, size=(hi - lo) * k), axis=0)
    return total
