"""`optimal_rankings`: the orders of items that are best for each metric, the same for all users."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl

from unskew.arrays import I64
from unskew.bias.popularity import ItemCounts, counts_of
from unskew.bias.steepness import dense_ranks
from unskew.checks import checked
from unskew.report.result import Result
from unskew.report.text import counted
from unskew.stats.correlation import kendall

if TYPE_CHECKING:
    from unskew.report.charts import Figure


ORDERS = {"P": "phi_P", "anti-P": "phi_antiP", "true": "p_rel_unrated"}


@dataclass(frozen=True, eq=False)
class OptimalRankings(Result):
    """The non-personalised orders that are best for observed precision, anti-precision, the truth.

    Made by `optimal_rankings`. `OptimalPrecision`, `OptimalAntiPrecision` and `OptimalTrue` are
    recommenders that rank by the same scores. Items nobody or everybody rated are left out.
    """

    counts: ItemCounts
    """Of the items that are ranked."""
    left_out: int

    def table(self) -> pl.DataFrame:
        """Return a row per item: its scores and ranks (1 is best, equals share the best rank)."""
        columns: dict[str, Any] = {"item": self.counts.items.values}
        scores = self.counts.table()
        for order, score in ORDERS.items():
            if order in self.ranks:
                ranked = self.ranks[order]
                columns |= {score: scores[score], f"rank_{order}": _null_below(ranked)}
        return pl.DataFrame(columns)

    @property
    def ranks(self) -> dict[str, I64]:
        """The rank of each item in each order; 0 for items without a score."""
        counts = self.counts
        n, r, unrated = counts.rated, counts.liked, counts.users - counts.rated
        ranks = {"P": _ranks(r, unrated), "anti-P": _ranks(n - r, unrated, falling=False)}
        if counts.asked is not None and counts.asked_liked is not None:
            known = counts.asked > 0
            true = np.zeros(n.size, np.int64)
            true[known] = _ranks(counts.asked_liked[known], counts.asked[known])
            ranks["true"] = true
        return ranks

    def tau(self, a: str, b: str) -> float:
        """Return Kendall's τ_b of two of the orders, over the items that both rank."""
        first, second = self.ranks[a], self.ranks[b]
        both = (first > 0) & (second > 0)
        return kendall(-first[both], -second[both]) if both.sum() > 1 else math.nan

    def _explanation(self) -> list[str]:
        ranks = self.ranks
        lines = [f"τ_b of the orders for P and anti-P: {self.tau('P', 'anti-P'):.2f}"]
        if "true" in ranks:
            lines.append(
                f"τ_b with the true order: P {self.tau('P', 'true'):.2f}, anti-P "
                f"{self.tau('anti-P', 'true'):.2f}"
            )
        if self.left_out:
            lines.append(
                f"{counted(self.left_out, 'item')} without ratings, or rated by all users, left out"
            )
        return lines

    def display_table(self) -> pl.DataFrame:
        """Return the ten best items for precision."""
        return self.table().sort("rank_P", "item").head(10)

    def figure(self) -> Figure:
        """Draw each item's rank for anti-precision against that for precision (figure 6)."""
        from unskew.bias import charts

        return charts.ranks(self.ranks["P"], self.ranks["anti-P"], self.footer()[:1])

    def _summary(self) -> str:
        return f"{counted(len(self.counts.items), 'item')}"


@checked
def optimal_rankings(
    ratings: object,
    *,
    liked: float | None = None,
    random: object | None = None,
    users: int | None = None,
) -> OptimalRankings:
    r"""Return the optimal rankings of items for observed and real precision and anti-precision.

    :math:`\varphi_{\hat P} = rel_i / (|U| - n_i)`, :math:`\varphi_{anti\hat P} = -nonrel_i /
    (|U| - n_i)` and, with random judgments, :math:`\varphi_P = \varphi_{antiP} =
    p(rel|\neg train, i)`.

    Parameters
    ----------
    ratings, liked, random, users
        As in `item_pairs`.

    References
    ----------
    mena2021 section 5, Eqs. 6, 8, 9 and 10.

    Examples
    --------
    >>> from unskew.bias.optimal import optimal_rankings
    >>> from unskew.bias.popularity import ItemCounts
    >>> toy = optimal_rankings(ItemCounts.known(rated=[5, 2], liked=[3, 1], users=10))
    >>> toy.table().select("phi_P", "rank_P", "phi_antiP", "rank_anti-P").rows()
    [(0.6, 1, -0.4, 2), (0.125, 2, -0.125, 1)]
    """
    counts = counts_of(ratings, liked, random, users)
    usable = counts.usable
    return OptimalRankings(counts.take(usable), int(np.count_nonzero(~usable)))


def _ranks(top: I64, bottom: I64, falling: bool = True) -> I64:
    """Return ranks from 1, by falling or rising fractions; equals share the best."""
    dense = dense_ranks(top.astype(object), bottom.astype(object)).astype(np.int64)
    key = -dense if falling else dense
    return np.searchsorted(np.sort(key), key, side="left") + 1


def _null_below(ranks: I64) -> pl.Series:
    return pl.Series([rank if rank > 0 else None for rank in ranks.tolist()], dtype=pl.Int64)
