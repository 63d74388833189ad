"""Interleaving and multileaving: users see one list, merged from those of several systems."""

from __future__ import annotations

import numpy as np
import polars as pl

from unskew.arrays import I64
from unskew.checks import as_count, check_share, checked, choose
from unskew.data.ratings import Ratings
from unskew.engine.rng import key_of
from unskew.online.ab_tests import (
    VERDICT,
    check_correction,
    effects_of_wins,
    pair_rows,
    pairs_of,
    sum_blocks,
    tested,
    winner_rule,
)
from unskew.online.click_models import Behaviour, Clicks, Feedback, behaviour_of
from unskew.online.top_lists import IMPRESSIONS, LEVEL, Systems, TopLists, check_systems, top_lists
from unskew.report.columns import PAIR, Column, Method, Question
from unskew.report.estimates import Estimates
from unskew.worlds.worlds import World

INTERLEAVING = ("team-draft", "balanced")
WINS = Question(
    name="share of impressions won",
    columns=(
        *(*PAIR, Column("won", "count", "won a"), Column("won_against", "count", "won b")),
        *VERDICT,
    ),
    method=Method(
        estimand="the share of impressions in which a gets more clicks less that of b",
        unit="impressions",
        interval="normal",
        test="exact sign test",
    ),
)


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
) -> Estimates:
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

    Returns
    -------
    Estimates
        The pair of systems: impressions `won` by the first and by the second (`won_against`), the
        share won less the share lost, with p, the `winner` (none where p is not below 1 - level)
        and `true_difference`, of P@k.

    Examples
    --------
    >>> import unskew as us
    >>> from unskew.online.interleaving import interleave
    >>> shop = us.world("shop", users=200, items=80, seed=1)
    >>> test = interleave(shop, [us.recommend.Random(), us.recommend.Popularity()], 5_000)
    >>> row = test.pair("popularity", "random")
    >>> row.facts["winner"], row.facts["true_difference"] > 0
    ('popularity', True)
    """
    choose("method", method, INTERLEAVING)
    check_share("level", level)
    as_count("impressions", impressions)
    lists = top_lists(world, systems, k=k, train=train, seed=seed)
    check_systems(lists, 2, maximum=2)
    behaviour = behaviour_of(feedback, world, lists.k)
    wins = wins_of(lists, behaviour, method, seed, 0, impressions)
    what = f"Interleaving, {method}: {impressions:,} impressions of random users; {feedback}"
    return _answer(lists, wins, impressions, what, level, correction=None)


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
) -> Estimates:
    """Merge the lists of several systems into one: team-draft multileaving.

    Schuth et al. 2014. In each round all systems, in random order, add their best item that is not
    there yet; an impression compares the clicks of every two teams.

    Parameters
    ----------
    world, systems, impressions, feedback, k, train, seed
        As in `interleave`; two systems or more.
    level, correction
        As in `ab_test`, by the exact sign test over impressions.

    Returns
    -------
    Estimates
        A row per pair of systems, as `interleave` has them.

    Examples
    --------
    >>> import unskew as us
    >>> from unskew.online.interleaving import multileave
    >>> shop = us.world("shop", users=200, items=80, seed=1)
    >>> systems = [us.recommend.Random(), us.recommend.Popularity(), us.recommend.AverageRating()]
    >>> multileave(shop, systems, 2_000).rows["winner"].to_list()
    ['popularity', 'average-rating', '']
    """
    check_correction(correction)
    check_share("level", level)
    as_count("impressions", impressions)
    lists = top_lists(world, systems, k=k, train=train, seed=seed)
    check_systems(lists, 2)
    behaviour = behaviour_of(feedback, world, lists.k)
    wins = wins_of(lists, behaviour, "multileave", seed, 0, impressions)
    what = f"Multileaving: {impressions:,} impressions of random users; {feedback}"
    return _answer(lists, wins, impressions, what, level, correction)


def _answer(
    lists: TopLists, wins: I64, impressions: int, what: str, level: float, correction: str | None
) -> Estimates:
    """Return who wins how many impressions; `what` says how lists were merged and shown."""
    count = len(lists.systems)
    a, b = np.array(pairs_of(count)).T
    rows = pair_rows(lists, effects_of_wins(wins, impressions), level, correction)
    return Estimates.of_rows(
        WINS,
        rows.with_columns(won=pl.Series(wins[a, b]), won_against=pl.Series(wins[b, a])),
        method=tested(WINS.method, count, level, correction),
        explanation=(what, winner_rule(count, level)),
        notes=lists.notes,
        card={"correction": correction, "k": lists.k, "impressions": impressions},
    )


def wins_of(lists: TopLists, behaviour: Behaviour, method: str, seed: int, lo: int, hi: int) -> I64:
    """Return in how many of impressions lo to hi each system beats each other."""
    from unskew.online import kernels

    key = np.uint64(key_of(seed, f"online/{method}", *lists.draw_names))
    is_balanced = method == "balanced"

    def block(bounds: tuple[int, int]) -> I64:
        wins = np.zeros((len(lists.systems), len(lists.systems)), np.int64)
        kernels.merge_block(*bounds, key, is_balanced, lists.item, lists.liked, behaviour, wins)
        return wins

    return sum_blocks(block, lo, hi, lists.k)
