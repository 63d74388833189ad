"""`optimal_rankings`: the orders of items that are best for each metric."""

from __future__ import annotations

import numpy as np
import polars as pl

from unskew.arrays import I64
from unskew.bias.pairs.steepness import dense_ranks
from unskew.bias.popularity.item_counts import counts_of
from unskew.checks import checked


@checked
def optimal_rankings(
    ratings: object,
    *,
    liked: float | None = None,
    random: object | None = None,
    users: int | None = None,
) -> pl.DataFrame:
    r"""Return the non-personalised orders of items that are best for each metric.

    :math:`\varphi_{\hat P} = rel_i / (|U| - n_i)`, :math:`\varphi_{anti\hat P} = -nonrel_i /
    (|U| - n_i)` and, with random judgments, :math:`\varphi_P = \varphi_{antiP} =
    p(rel|\neg train, i)`. `OptimalPrecision`, `OptimalAntiPrecision` and `OptimalTrue` are
    recommenders that rank by the same scores.

    Parameters
    ----------
    ratings, liked, random, users
        As in `item_pairs`.

    Returns
    -------
    pl.DataFrame
        A row per item that some but not all users rated: its scores, and its rank by each (1 is
        best, equal scores share the best rank; null without a score).

    References
    ----------
    mena2021 section 5, Eqs. 6, 8, 9 and 10.

    Examples
    --------
    >>> import unskew as us
    >>> toy = us.bias.ItemCounts.known(rated=[5, 2], liked=[3, 1], users=10)
    >>> us.bias.optimal_rankings(toy).drop("item").rows()
    [(0.6, 1, -0.4, 2), (0.125, 2, -0.125, 1)]
    """
    everything = counts_of(ratings, liked, random, users)
    counts = everything.take(everything.usable)
    n, r, unrated = counts.rated, counts.liked, counts.users - counts.rated
    scores = counts.table()
    columns = {
        "item": counts.items.values,
        "phi_P": scores["phi_P"],
        "rank_P": _ranks(r, unrated),
        "phi_antiP": scores["phi_antiP"],
        "rank_anti-P": _ranks(n - r, unrated, falling=False),
    }
    if counts.asked is not None and counts.asked_liked is not None:
        is_identified = counts.asked > 0
        ranks = np.full(n.size, np.nan)
        ranks[is_identified] = _ranks(
            counts.asked_liked[is_identified], counts.asked[is_identified]
        )
        columns["p_rel_unrated"] = scores["p_rel_unrated"]
        columns["rank_true"] = pl.Series(ranks, nan_to_null=True).cast(pl.Int64)
    return pl.DataFrame(columns)


def _ranks(top: I64, bottom: I64, falling: bool = True) -> I64:
    """Return ranks from 1, by falling or rising fractions; equals share the best."""
    dense = dense_ranks(top.astype(object), bottom.astype(object)).astype(np.int64)
    key = -dense if falling else dense
    return np.searchsorted(np.sort(key), key, side="left") + 1
