"""`margins`: every margin between two systems split into *judged more* and *liked more*."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from itertools import combinations
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl

from unskew.arrays import I64
from unskew.bias.pairs.steepness import dense_ranks
from unskew.bias.popularity.item_counts import ItemCounts, counts_of
from unskew.checks import checked, choose
from unskew.errors import DataError, SettingError
from unskew.evaluation.scores import Scores
from unskew.report.result import Result
from unskew.report.text import counted, finite
from unskew.stats.correlation import kendall

if TYPE_CHECKING:
    from unskew.report.charts import Figure


Values = Mapping[str, tuple[float, float]]
"""Observed precision and anti-precision of each system."""


@dataclass(frozen=True)
class Margin:
    r"""Why one system has more observed precision than another.

    With J the share of recommended items that are judged and c the share of those that are liked,
    :math:`\hat P = J c` and :math:`anti\hat P = J (1 - c)`, so that :math:`\hat P_a / \hat P_b =
    (J_a/J_b)(c_a/c_b)`.

    Examples
    --------
    >>> from unskew.bias.margins import Margin
    >>> popular = Margin("popular", "careful", (0.15, 0.05), (0.09, 0.01))
    >>> print(popular)
    popular has 1.67 times the precision of careful: judged 2.00 times as often x liked 0.83 times
    >>> popular.disagree, round(popular.judged_share, 2)
    (True, 0.79)
    """

    a: str
    b: str
    of_a: tuple[float, float]
    """P̂ and antiP̂ of a."""
    of_b: tuple[float, float]

    @property
    def judged(self) -> float:
        """J_a / J_b; NaN where b has no judged items."""
        return _ratio(sum(self.of_a), sum(self.of_b))

    @property
    def liked(self) -> float:
        """c_a / c_b."""
        return _ratio(_liked(self.of_a), _liked(self.of_b))

    @property
    def disliked(self) -> float:
        """(1 - c_a) / (1 - c_b)."""
        return _ratio(_liked(self.of_a[::-1]), _liked(self.of_b[::-1]))

    @property
    def precision(self) -> float:
        """P̂_a / P̂_b, which is `judged` x `liked`."""
        return _ratio(self.of_a[0], self.of_b[0])

    @property
    def anti_precision(self) -> float:
        """The same of anti-precision, which is `judged` x `disliked`."""
        return _ratio(self.of_a[1], self.of_b[1])

    @property
    def judged_share(self) -> float:
        r"""How much of the margin comes of being judged more.

        :math:`|\ln J_a/J_b| / (|\ln J_a/J_b| + |\ln c_a/c_b|)`; NaN where a part is not finite, or
        both are 0.
        """
        return _part(self.judged, self.liked)

    @property
    def disagree(self) -> bool:
        """Whether P̂ and antiP̂ call different systems the better one; ties do not."""
        return _sign(self.of_a[0] - self.of_b[0]) * _sign(self.of_a[1] - self.of_b[1]) > 0

    @property
    def foretold(self) -> bool:
        """Whether the lemma says so: with J_a > J_b, if J_a/J_b > max(c_b/c_a, (1-c_b)/(1-c_a)).

        That is, one system's items are judged so much more often that its liking can neither make
        up for it nor be made up for.
        """
        # In fractions, which do not round: equal precision must not look like more of it.
        (p_a, n_a), (p_b, n_b) = (
            [Fraction(x) for x in shares] for shares in (self.of_a, self.of_b)
        )
        if p_a + n_a < p_b + n_b:
            (p_a, n_a), (p_b, n_b) = (p_b, n_b), (p_a, n_a)
        j_a, j_b = p_a + n_a, p_b + n_b
        if j_a == j_b or p_a == 0 or n_a == 0:  # nothing is above an infinite limit
            return False
        if j_b == 0:
            return True
        return j_a / j_b > max(p_b / j_b / (p_a / j_a), n_b / j_b / (n_a / j_a))

    def to_dict(self) -> dict[str, Any]:
        """Return plain values, for JSON."""
        ratios = ("precision", "anti_precision", "judged", "liked", "disliked", "judged_share")
        names = ("a", "b", *ratios, "disagree", "foretold")
        values: dict[str, Any] = finite({name: getattr(self, name) for name in names})
        return values

    def __str__(self) -> str:
        return (
            f"{self.a} has {self.precision:.2f} times the precision of {self.b}: judged "
            f"{self.judged:.2f} times as often x liked {self.liked:.2f} times"
        )


@dataclass(frozen=True, eq=False)
class Margins(Result):
    """Every margin of observed precision, split. Made by `margins`."""

    values: Values
    k: int | None = None
    notes: tuple[str, ...] = ()

    @property
    def systems(self) -> pl.DataFrame:
        """A row per system: P, anti-P, J (`judged`) and c (`liked`), the best precision first."""
        rows = [
            (name, *shares, sum(shares), finite(_liked(shares)))
            for name, shares in self.values.items()
        ]
        numbers = dict.fromkeys(("P", "anti-P", "judged", "liked"), pl.Float64)
        table = pl.DataFrame(rows, {"system": pl.String, **numbers}, orient="row")
        return table.sort("P", descending=True, maintain_order=True)

    def pair(self, a: str, b: str) -> Margin:
        """Return the margin of one pair."""
        for name in (a, b):
            choose("system", name, self.values)
        return Margin(a, b, self.values[a], self.values[b])

    @property
    def pairs(self) -> list[Margin]:
        """All pairs, the system of higher precision first."""
        names = self.systems["system"].to_list()
        return [self.pair(a, b) for a, b in combinations(names, 2)]

    def table(self) -> pl.DataFrame:
        """Return a row per pair: the ratios, the share of being judged, and the lemma."""
        return pl.DataFrame([pair.to_dict() for pair in self.pairs], infer_schema_length=None)

    @property
    def disagree(self) -> float:
        """Share of pairs on which P̂ and antiP̂ call different systems better."""
        return float(np.mean([pair.disagree for pair in self.pairs]))

    @property
    def judged_share(self) -> float:
        """The median share of a margin that comes of being judged more."""
        shares = [pair.judged_share for pair in self.pairs]
        finite = [share for share in shares if not math.isnan(share)]
        return float(np.median(finite)) if finite else math.nan

    def tau(self, a: str, b: str) -> float:
        """Return Kendall's τ_b of two columns of `systems`, such as `P` and `judged`."""
        columns = self.systems.columns[1:]
        table = self.systems.drop_nulls(
            [choose("column", a, columns), choose("column", b, columns)]
        )
        return kendall(table[a].to_numpy(), table[b].to_numpy()) if table.height > 1 else math.nan

    def _content(self) -> dict[str, object]:
        return {
            "k": self.k,
            "systems": self.systems,
            "pairs": self.pairs,
            "disagree": self.disagree,
            "judged_share": self.judged_share,
            "tau_judged": self.tau("P", "judged"),
            "tau_liked": self.tau("P", "liked"),
            "notes": self.notes,
        }

    def figure(self) -> Figure:
        """Draw every margin as two bars: judged more, and liked more."""
        from unskew.bias import charts

        finite = [pair for pair in self.pairs if pair.judged > 0 and pair.liked > 0]
        parts = [(f"{pair.a} / {pair.b}", pair.judged, pair.liked) for pair in finite]
        return charts.margins(parts, self.footer()[1:2])

    def display_table(self) -> pl.DataFrame:
        """Return the systems."""
        return self.systems

    def _explanation(self) -> list[str]:
        return [
            "P = judged x liked, anti-P = judged x (1 - liked)",
            f"τ_b of P with judged {self.tau('P', 'judged'):.2f}, with liked "
            f"{self.tau('P', 'liked'):.2f}; the median share of a margin that comes from being "
            f"judged is {self.judged_share:.0%}",
            f"P and anti-P disagree on {self.disagree:.0%} of {len(self.pairs):,} pairs of systems",
        ]

    def _summary(self) -> str:
        return f"{counted(len(self.values), 'system')}"


@checked
def margins(scores: Scores | Values, k: int | None = None) -> Margins:
    """Split every margin of observed precision into *judged more* and *liked more*.

    Exact: P̂@k = J·c and antiP̂@k = J·(1-c), with J the share of the k places that hold a judged
    item and c the share of those that are liked, pooled over all lists. It is mena2021's Lemma 1
    for systems instead of items: the two metrics disagree about two systems exactly if one is
    judged so much more often that liking cannot make up for it.

    Parameters
    ----------
    scores
        Scores with `P@k` and `anti-P@k` (or `Judged@k`), or a mapping from each system to its
        observed precision and anti-precision.
    k
        The cutoff; needed only where scores have several.

    Examples
    --------
    >>> from unskew.bias.margins import margins
    >>> split = margins({"popular": (0.15, 0.05), "careful": (0.09, 0.01)})
    >>> round(split.pair("popular", "careful").judged, 6), split.disagree
    (2.0, 1.0)
    """
    notes: tuple[str, ...] = ()
    if isinstance(scores, Scores):
        values, k = _from_scores(scores, k)
        notes = (f"P@{k}, means over {_users(scores)} ({scores.users})",)
    else:
        if k is not None:
            raise SettingError("k is for scores with several cutoffs: leave it out here")
        values = dict(scores)
    if len(values) < 2:
        raise DataError(f"margins need at least two systems, got {len(values)}")
    for name, shares in values.items():
        _check_shares(name, shares)
    return Margins(values, k, notes)


def _from_scores(scores: Scores, k: int | None) -> tuple[dict[str, tuple[float, float]], int]:
    labels = {str(metric): label for label, metric in scores.metrics.items()}
    cutoffs = [int(m[1]) for name in labels if (m := re.fullmatch(r"P@(\d+)", name))]
    usable = [k for k in cutoffs if f"anti-P@{k}" in labels or f"Judged@{k}" in labels]
    if k is None and len(usable) > 1:
        raise SettingError(f"scores have several cutoffs ({_list(usable)}): choose one with k=…")
    if k is None and usable:
        k = usable[0]
    if k is None or k not in usable:
        cutoff = "k" if k is None else k
        raise SettingError(
            f"margins need P@{cutoff} and anti-P@{cutoff} (or Judged@{cutoff}); the scores have "
            f"{_list(scores.order)}: evaluate with these metrics too"
        )
    means = scores.averages(undefined="zero", over="lists")
    values = {}
    for system, row in means.items():
        precision = row[labels[f"P@{k}"]].value
        if f"anti-P@{k}" in labels:
            anti = row[labels[f"anti-P@{k}"]].value
        else:  # rounding must not make it negative
            anti = max(row[labels[f"Judged@{k}"]].value - precision, 0.0)
        values[system] = (precision, anti)
    return values, k


def _users(scores: Scores) -> str:
    counts = sorted(
        {m.users for row in scores.averages(over="lists").values() for m in row.values()}
    )
    return f"{' or '.join(f'{count:,}' for count in counts)} lists"


def _check_shares(name: str, shares: tuple[float, float]) -> None:
    if len(shares) != 2 or not all(math.isfinite(value) and value >= 0 for value in shares):
        raise DataError(f"{name}: precision and anti-precision must be at least 0, got {shares}")
    if sum(shares) > 1 + 1e-9:
        raise DataError(
            f"{name}: precision {shares[0]:g} and anti-precision {shares[1]:g} add up to more "
            "than 1"
        )


def _list(names: Any) -> str:
    return ", ".join(str(name) for name in names) or "none"


def _liked(shares: tuple[float, ...]) -> float:
    """Return c, the share of judged items that are liked; NaN where none is judged."""
    return shares[0] / sum(shares) if sum(shares) > 0 else math.nan


def _ratio(a: float, b: float) -> float:
    return a / b if b > 0 else math.nan


def _part(judged: float, liked: float) -> float:
    if not (judged > 0 and liked > 0):
        return math.nan
    first, second = abs(math.log(judged)), abs(math.log(liked))
    return first / (first + second) if first + second > 0 else math.nan


def _sign(x: float) -> int:
    return (x > 0) - (x < 0)


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
            identified = counts.asked > 0
            true = np.zeros(n.size, np.int64)
            true[identified] = _ranks(counts.asked_liked[identified], counts.asked[identified])
            ranks["true"] = true
        return ranks

    def tau(self, a: str, b: str) -> float:
        """Return Kendall's τ_b of two of the orders, over the items that both rank."""
        first, second = self.ranks[a], self.ranks[b]
        ranked = (first > 0) & (second > 0)
        return kendall(-first[ranked], -second[ranked]) if ranked.sum() > 1 else math.nan

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
    >>> from unskew.bias.margins import optimal_rankings
    >>> from unskew.bias.popularity.item_counts import ItemCounts
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
