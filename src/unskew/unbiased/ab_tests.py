"""A/B tests in a world whose truth is known: each user sees the list of one system.

castells2018 section 5.3: users are shown what systems recommend, and what they click (free
feedback) or are asked to judge (forced feedback) says which system is better. Clicks depend on more
than relevance: on the position, on what else was clicked, on what is in fashion. Here users are
simulated in a `World`, so that the result of a test can be compared with the truth.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import polars as pl

from unskew.arrays import F64, I64, U8
from unskew.checks import as_count, check_share, checked
from unskew.data.ratings import Ratings
from unskew.engine.rng import key_of
from unskew.engine.threads import map_blocks
from unskew.report.charts import Figure, as_figure
from unskew.report.result import Result
from unskew.stats.distributions import half_widths
from unskew.unbiased.click_models import Behaviour, Clicks, Feedback, behaviour_of
from unskew.unbiased.pair_effects import (
    PairEffects,
    check_correction,
    effects_of_counts,
    effects_of_users,
    mean_clicks,
    pair_table,
    winner_rule,
)
from unskew.unbiased.top_items import (
    IMPRESSIONS,
    LEVEL,
    Systems,
    TopLists,
    check_systems,
    top_lists,
)
from unskew.worlds.worlds import World

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
        half = half_widths(np.maximum(n - 1, 1), self.level) * error
        return pl.DataFrame(
            {
                "system": list(self.lists.systems),
                "lists": self.counts[:, 0],
                "rate": rate,
                "low": np.maximum(rate - half, 0),
                "high": np.minimum(rate + half, 1),
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
        shown = (
            "every user was shown the list of every system"
            if self.census
            else (f"{int(self.counts[:, 0].sum()):,} impressions, each of a random user and system")
        )
        winners = winner_rule(len(self.lists.systems), self.level, self.correction)
        return [f"{shown}; {self.feedback}; {self.level:.0%} intervals", winners, *self.lists.notes]

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
    >>> from unskew.unbiased.ab_tests import ab_test
    >>> from unskew.unbiased.click_models import ForcedExposure
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


def ab_counts(shown: TopLists, behaviour: Behaviour, seed: int, lo: int, hi: int) -> I64:
    """Return lists, clicks and squared clicks of each system in impressions lo to hi."""
    from unskew.unbiased import online_kernels

    key = np.uint64(key_of(seed, "online/ab", *shown.draw_names))

    def one(bounds: tuple[int, int]) -> I64:
        out = np.zeros((len(shown.systems), 3), np.int64)
        first, last = bounds
        online_kernels.ab_block(
            first, last, key, shown.item, shown.liked, behaviour.arguments(), out
        )
        return out

    return sum_blocks(one, lo, hi, shown.k)


def log_of(shown: TopLists, behaviour: Behaviour, seed: int, impressions: int | None) -> U8:
    """Return what an A/B test showed, systems x users x k: 0 never, 1 shown, 2 and clicked."""
    from unskew.unbiased import online_kernels

    key = np.uint64(key_of(seed, "online/ab", *shown.draw_names))
    mark = np.zeros(shown.item.shape, np.uint8)
    census = impressions is None
    count = shown.item.shape[0] * shown.item.shape[1] if impressions is None else impressions
    online_kernels.log_block(
        count, key, census, shown.item, shown.liked, behaviour.arguments(), mark
    )
    return mark


def sum_blocks(one: Callable[[tuple[int, int]], I64], lo: int, hi: int, k: int) -> I64:
    """Add up the counts of blocks of impressions."""
    blocks = [(at, min(at + _BLOCK, hi)) for at in range(lo, hi, _BLOCK)]
    total: I64 = np.sum(map_blocks(one, blocks, size=(hi - lo) * k), axis=0)
    return total
