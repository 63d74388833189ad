"""Interleaving and multileaving: users see one list, merged from those of several systems."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import polars as pl

from unskew.arrays import I64
from unskew.checks import as_count, check_share, checked, choose
from unskew.data.ratings import Ratings
from unskew.engine.rng import key_of
from unskew.online.ab_tests import (
    PairEffects,
    check_correction,
    effects_of_wins,
    pair_table,
    pairs_of,
    sum_blocks,
    winner_rule,
)
from unskew.online.click_models import Behaviour, Clicks, Feedback, behaviour_of
from unskew.online.top_lists import IMPRESSIONS, LEVEL, Systems, TopLists, check_systems, top_lists
from unskew.report.charts import Figure, as_figure
from unskew.report.result import Result
from unskew.report.text import p_value
from unskew.worlds.worlds import World

INTERLEAVING = ("team-draft", "balanced")


@dataclass(frozen=True, eq=False)
class Interleaving(Result):
    """Which system wins how many impressions. Made by `interleave` and `multileave`."""

    lists: TopLists
    feedback: Feedback
    method: str
    wins: I64
    """Systems x systems: in how many impressions the first gets more clicks than the second."""
    impressions: int
    effects: PairEffects
    level: float = LEVEL
    correction: str | None = "holm"

    def table(self) -> pl.DataFrame:
        """Return a row per pair of systems.

        Columns: a, b, won and lost (impressions), difference (the share won less the share lost)
        with its interval low to high, p (exact sign test), p_corrected for the number of pairs,
        winner (null where p_corrected is not below 1 - level), true (the true difference of P@k),
        better.
        """
        table = pair_table(self.lists, self.effects, self.level, self.correction)
        pairs = pairs_of(len(self.lists.systems))
        won = pl.Series("won", [int(self.wins[a, b]) for a, b in pairs])
        lost = pl.Series("lost", [int(self.wins[b, a]) for a, b in pairs])
        return table.select("a", "b", won, lost, pl.exclude("a", "b"))

    def display_table(self) -> pl.DataFrame:
        """Return the table as people read it: a small p is less than the last decimal."""
        table = self.table()
        names = ("p", "p_corrected")
        return table.with_columns(
            pl.Series(name, [p_value(value) for value in table[name]]) for name in names
        )

    def pairs(self) -> pl.DataFrame:
        """Return the table, as `ABTest.pairs`."""
        return self.table()

    def figure(self) -> Figure:
        """Draw the share won less the share lost of each pair, with its interval."""
        import altair as alt

        rows = [{**row, "pair": f"{row['a']} – {row['b']}"} for row in self.table().to_dicts()]
        base = alt.Chart(alt.NamedData(name="rows"), width=360)
        y = alt.Y("pair:N", title=None, sort=None)
        x = alt.X("low:Q", title="share won - share lost by the first")
        bars = base.mark_rule().encode(x=x, x2="high:Q", y=y)
        points = base.mark_point(filled=True, size=70).encode(x="difference:Q", y=y)
        return as_figure(alt.layer(bars, points), self._title, self.footer(), rows)

    @property
    def _title(self) -> str:
        return "Multileaving" if self.method == "multileave" else f"Interleaving, {self.method}"

    def _explanation(self) -> list[str]:
        return [
            f"{self._title}: {self.impressions:,} impressions of random users; {self.feedback}; "
            f"{self.level:.0%} intervals",
            winner_rule(len(self.lists.systems), self.level, self.correction),
            *self.lists.notes,
        ]

    def _content(self) -> dict[str, object]:
        return {
            "method": self.method,
            "impressions": self.impressions,
            "level": self.level,
            "correction": self.correction,
            "pairs": self.table(),
            "notes": self.footer(),
        }


@checked
def interleave(
    world: World,
    systems: Systems | TopLists,
    impressions: int = IMPRESSIONS,
    feedback: Feedback = Clicks(),  # noqa: B008 - frozen
    *,
    method: str = "team-draft",
    k: int | None = None,
    train: Ratings | None = None,
    level: float = LEVEL,
    seed: int = 0,
) -> Interleaving:
    """Merge the lists of two systems into one, and see whose items are clicked.

    Both are then exposed to the same users and positions (castells2018 section 5.3.1).

    Parameters
    ----------
    world, systems, k, train
        As in `top_lists`; two systems.
    impressions
        How many merged lists are shown, each to a user drawn at random.
    feedback
        What users do: `Clicks(…)` or `ForcedExposure()`.
    method
        `team-draft` (Radlinski, Kurup & Joachims 2008): in each round both systems, in random
        order, add their best item that is not there yet, and get the clicks on what they added.
        `balanced` (Joachims 2003): the lists are merged so that any top of it holds as many of the
        best items of both; clicks count for every list that has the item, down to the depth at
        which the lowest click is found. It can prefer one of two lists under random clicks.
    level
        Of the intervals; a system wins if p < 1 - level (exact sign test over impressions).
    seed
        Of users, merging and clicks; and of training.

    Examples
    --------
    >>> import unskew as us
    >>> from unskew.online.interleaving import interleave
    >>> shop = us.world("shop", users=200, items=80, seed=1)
    >>> test = interleave(shop, [us.recommend.Random(), us.recommend.Popularity()], 5_000)
    >>> test.table()["winner"].to_list(), test.table()["better"].to_list()
    (['popularity'], ['popularity'])
    """
    choose("method", method, INTERLEAVING)
    _check(level, impressions)
    lists = top_lists(world, systems, k=k, train=train, seed=seed)
    check_systems(lists, 2, maximum=2)
    return _merged(world, lists, impressions, feedback, method, level=level, seed=seed)


@checked
def multileave(
    world: World,
    systems: Systems | TopLists,
    impressions: int = IMPRESSIONS,
    feedback: Feedback = Clicks(),  # noqa: B008 - frozen
    *,
    k: int | None = None,
    train: Ratings | None = None,
    level: float = LEVEL,
    correction: str | None = "holm",
    seed: int = 0,
) -> Interleaving:
    """Merge the lists of several systems into one: team-draft multileaving.

    Schuth et al. 2014. In each round all systems, in random order, add their best item that is not
    there yet; an impression compares the clicks of every two teams.

    Parameters
    ----------
    world, systems, impressions, feedback, k, train, seed
        As in `interleave`; two systems or more.
    level, correction
        As in `ab_test`, by the exact sign test over impressions.

    Examples
    --------
    >>> import unskew as us
    >>> from unskew.online.interleaving import multileave
    >>> shop = us.world("shop", users=200, items=80, seed=1)
    >>> systems = [us.recommend.Random(), us.recommend.Popularity(), us.recommend.AverageRating()]
    >>> multileave(shop, systems, 2_000).table().height
    3
    """
    check_correction(correction)
    _check(level, impressions)
    lists = top_lists(world, systems, k=k, train=train, seed=seed)
    check_systems(lists, 2)
    test = _merged(world, lists, impressions, feedback, "multileave", level=level, seed=seed)
    return replace(test, correction=correction)


def _check(level: float, impressions: int) -> None:
    check_share("level", level)
    as_count("impressions", impressions)


def _merged(
    world: World,
    lists: TopLists,
    impressions: int,
    feedback: Feedback,
    method: str,
    *,
    level: float,
    seed: int,
) -> Interleaving:
    behaviour = behaviour_of(feedback, world, lists.k)
    wins = wins_of(lists, behaviour, method, seed, 0, impressions)
    return Interleaving(
        lists=lists,
        feedback=feedback,
        method=method,
        wins=wins,
        impressions=impressions,
        effects=effects_of_wins(wins, impressions),
        level=level,
        correction=None,
    )


def wins_of(lists: TopLists, behaviour: Behaviour, method: str, seed: int, lo: int, hi: int) -> I64:
    """Return in how many of impressions lo to hi each system beats each other."""
    from unskew.online import kernels

    key = np.uint64(key_of(seed, f"online/{method}", *lists.draw_names))
    balanced = method == "balanced"
    kernel = kernels.balanced_block if balanced else kernels.team_block

    def block(bounds: tuple[int, int]) -> I64:
        wins = np.zeros((len(lists.systems), len(lists.systems)), np.int64)
        first, last = bounds
        kernel(first, last, key, lists.item, lists.liked, behaviour.arguments(), wins)
        return wins

    return sum_blocks(block, lo, hi, lists.k)
