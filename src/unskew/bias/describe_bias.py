"""`describe_bias`: how popularity, ratings and relevance go together in some data."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import polars as pl

from unskew.arrays import F64, I64
from unskew.bias.pairs.item_pairs import FOLLOWED, pairs_of
from unskew.bias.popularity.item_counts import ItemCounts, counts_of
from unskew.bias.reliability import Reliability
from unskew.checks import checked, choose
from unskew.data.summary import by_popularity, gini
from unskew.errors import DataError, SettingError
from unskew.report.estimate_tables import as_table
from unskew.report.estimates import Estimates
from unskew.report.result import Result
from unskew.report.tables import Table
from unskew.report.text import counted, finite, number
from unskew.splits.diagnosis.feature_checks import ranks
from unskew.stats.intervals.shares import wilson

if TYPE_CHECKING:
    from unskew.report.charts import Figure


@dataclass(frozen=True, eq=False)
class Dependence:
    """What being rated depends on, item by item.

    Two extremes. Relevance independence, p(train|rel,i) = p(train|i): who rates an item does not
    depend on liking it; then Lemma 3 tells which metrics are right. Item independence,
    p(train|rel,i) = p(train|rel): only liking matters; then all metrics are right (Lemma 2, which
    asks for the same of those who do not like the item).
    """

    p_train: F64
    p_train_rel: F64
    """Of each item that was looked at."""
    overall: float
    """p(train|rel): over all items with known relevance, rated or not."""
    overall_nonrel: float
    """p(train|¬rel)."""
    share_above: float
    """Share of items with p(train|rel,i) > p(train|i): liked items are rated more."""
    to_relevance_independence: float
    """Mean over items of \\|p(train|rel,i) - p(train|i)\\|."""
    to_item_independence: float
    """Mean over items of \\|p(train|rel,i) - p(train|rel)\\|."""
    to_item_independence_nonrel: float
    """Mean over items of \\|p(train|¬rel,i) - p(train|¬rel)\\|."""
    judgments: float
    """Random judgments per item, on average: with few, p(train|rel,i) of an item is a rough
    estimate, and both distances are larger than they would be with many."""
    left_out: int
    """Rated items with random judgments that nobody is known to like: p(train|rel,i) undefined."""

    @property
    def items(self) -> int:
        """How many items were looked at."""
        return self.p_train.size

    @property
    def nearer(self) -> str:
        """`relevance independence` (Lemma 3) or `item independence` (Lemma 2)."""
        item = self.to_relevance_independence < self.to_item_independence
        return "relevance independence" if item else "item independence"

    def to_dict(self) -> dict[str, Any]:
        """Return plain values, for JSON."""
        values: dict[str, Any] = finite({name: getattr(self, name) for name in _DEPENDENCE})
        return values

    def figure(self) -> Figure:
        """Draw p(train|rel,i) against p(train|i) and both hypotheses (mena2021 figure 10)."""
        from unskew.bias import charts

        notes = [
            f"{counted(self.items, 'item')}; above the first line for {self.share_above:.1%} of "
            "them",
            f"mean distance to the lines: {self.to_relevance_independence:.3f} and "
            f"{self.to_item_independence:.3f}",
        ]
        return charts.dependence(self.p_train, self.p_train_rel, self.overall, notes)

    def __str__(self) -> str:
        return (
            "whether being rated depends on liking: p(train|rel,i) > p(train|i) for "
            f"{self.share_above:.1%} of {counted(self.items, 'item')}; mean distance to relevance "
            f"independence {self.to_relevance_independence:.3f}, to item independence "
            f"{self.to_item_independence:.3f}: nearer to {self.nearer} ({self.judgments:.0f} "
            "random judgments per item)"
        )


_DEPENDENCE = (
    *("items", "left_out", "judgments", "overall", "overall_nonrel", "share_above"),
    *("to_relevance_independence", "to_item_independence", "to_item_independence_nonrel", "nearer"),
)


def dependence_of(counts: ItemCounts) -> Dependence:
    """Measure what being rated depends on, from counts with random judgments.

    p(train|rel,i) = p(rel|train,i) p(train|i) / p(rel|i), by Bayes, which in a survey is the share
    of the users who like the item that knew it, as in the paper.

    Examples
    --------
    >>> from unskew.bias.describe_bias import dependence_of
    >>> from unskew.bias.popularity.item_counts import ItemCounts
    >>> toy = ItemCounts.known(rated=[4, 2], liked=[3, 1], relevant=[6, 4], users=10)
    >>> print(dependence_of(toy))  # doctest: +ELLIPSIS
    whether being rated depends on liking: p(train|rel,i) > p(train|i) for 100.0% of 2 items; ...
    """
    if counts.asked is None or counts.asked_liked is None:
        raise DataError("give random judgments (random=…) to see what ratings depend on")
    identified = (counts.asked > 0) | (counts.rated == counts.users)
    truth = counts.p_rel[identified]
    users, liked = counts.users[identified], counts.liked[identified]
    disliked = counts.rated[identified] - liked
    overall = _ratio(liked, truth * users)
    overall_nonrel = _ratio(disliked, (1 - truth) * users)
    rows = counts.identified
    defined = rows & (counts.p_rel > 0)
    if not defined.any():
        raise DataError("no rated item with random judgments is liked by anyone")
    part = counts.take(defined)
    # p(train|rel,i) > p(train|i) exactly if p(rel|train,i) > p(rel|¬train,i): whole numbers.
    assert part.asked is not None
    assert part.asked_liked is not None
    above = part.liked * part.asked > part.asked_liked * part.rated
    disliking = (1 - part.p_rel) * part.users
    with np.errstate(divide="ignore", invalid="ignore"):
        nonrel = np.where(disliking > 0, (part.rated - part.liked) / disliking, np.nan)
    apart = np.abs(nonrel - overall_nonrel)
    apart = apart[~np.isnan(apart)]
    return Dependence(
        p_train=part.p_train,
        p_train_rel=part.p_train_rel,
        overall=overall,
        overall_nonrel=overall_nonrel,
        share_above=float(above.mean()),
        to_relevance_independence=float(np.abs(part.p_train_rel - part.p_train).mean()),
        to_item_independence=float(np.abs(part.p_train_rel - overall).mean()),
        to_item_independence_nonrel=float(apart.mean()) if apart.size else math.nan,
        judgments=float(part.asked.mean()),
        left_out=int(np.count_nonzero(rows & ~defined)),
    )


def _ratio(top: I64, bottom: F64) -> float:
    total = math.fsum(bottom.tolist())
    return float(top.sum()) / total if total > 0 else math.nan


FIGURES = ("popularity", "positive-ratio", "optimal", "cases", "dependence")
BINS = 10
LEVEL = 0.95


@dataclass(frozen=True, eq=False)
class BiasReport(Result):
    """How popularity, average rating and relevance are spread over items, and what follows.

    Made by `describe_bias`.
    """

    figure_is_open: ClassVar[bool] = True

    counts: ItemCounts
    pairs: Estimates
    """What `item_pairs` gives."""
    dependence: Dependence | None
    """What being rated depends on; None without random judgments of items that anyone likes."""

    @property
    def verdict(self) -> Reliability:
        """Which family of metrics is likely the more reliable here, and why."""
        return Reliability(**self.pairs.card["verdict"])

    def items(self) -> pl.DataFrame:
        """Return a row per item: counts, probabilities, odds and optimal rankings."""
        return self.counts.table()

    def curve(self) -> pl.DataFrame:
        """Return the popularity curve: items from the most rated on, and their share of ratings."""
        order = by_popularity(self.counts.rated)
        rated = self.counts.rated[order]
        return pl.DataFrame(
            {
                "rank": np.arange(1, order.size + 1),
                "item": self.counts.items.raw(order.tolist()),
                "rated": rated,
                "share_of_items": np.arange(1, order.size + 1) / order.size,
                "share_of_ratings": np.cumsum(rated) / rated.sum(),
            }
        )

    @property
    def gini(self) -> float:
        """Gini index of ratings over all items: 0 when all have the same, towards 1 when not."""
        return gini(self.counts.rated)

    def head(self, share: float) -> float:
        """Return the share of ratings that this share of items, the most rated ones, have."""
        if not 0 < share <= 1:
            raise SettingError(f"share={share}: a share of items above 0 and up to 1 is needed")
        items = max(round(share * len(self.counts.items)), 1)
        return float(self.curve()["share_of_ratings"][items - 1])

    def bins(self, count: int = BINS) -> pl.DataFrame:
        """Return the positive ratio by popularity: groups of items from the least rated on.

        Groups are of equal numbers of rated items. `ratio` is liked ratings over ratings, `low`
        and `high` its 95 % interval (Wilson), ratings taken as independent.

        Parameters
        ----------
        count
            How many groups; fewer where there are fewer items.
        """
        if count < 1:
            raise SettingError(f"count={count}: at least one group is needed")
        part = self.counts.take(self.counts.rated > 0)
        order = by_popularity(part.rated)[::-1]
        size = min(count, order.size)
        edges = np.arange(size + 1) * order.size // size
        rated = np.add.reduceat(part.rated[order], edges[:-1])
        liked = np.add.reduceat(part.liked[order], edges[:-1])
        items = np.diff(edges)
        low, high = wilson(liked, rated, LEVEL)
        return pl.DataFrame(
            {
                "items": items,
                "from": part.rated[order][edges[:-1]],
                "to": part.rated[order][edges[1:] - 1],
                "mean_rated": rated / items,
                "ratings": rated,
                "ratio": liked / rated,
                "low": low,
                "high": high,
            }
        )

    @cached_property
    def correlations(self) -> pl.DataFrame:
        """Correlations of the observed optimal rankings with what they are made of (figure 7).

        A row each for φ_P̂ and φ_antiP̂ with popularity and with the average rating: Pearson,
        Spearman, and Kendall's τ_b.
        """
        part, overall = self.counts.take(self.counts.usable), self.pairs.parts["overall"]
        rankings = {"phi_P": ("P", part.phi_p), "phi_antiP": ("anti-P", part.phi_anti)}
        columns = dict(zip(FOLLOWED, (part.p_train, part.p_rel_train), strict=True))
        rows = [
            {
                "ranking": ranking,
                "with": name,
                "pearson": pearson(values, column),
                "spearman": pearson(ranks(values), ranks(column)),
                "kendall": overall.row(quantity=f"tau_{metric}_{name}").estimate[0],
            }
            for ranking, (metric, values) in rankings.items()
            for name, column in columns.items()
        ]
        return pl.DataFrame(rows)

    def table(self) -> pl.DataFrame:
        """Return a row per number: what it is, and its value."""
        facts = self.to_dict()
        rows = [(name, float(facts[name])) for name in _FACTS if facts[name] is not None]
        return pl.DataFrame(rows, schema={"what": pl.String, "value": pl.Float64}, orient="row")

    def _content(self) -> dict[str, object]:
        rated = int(self.counts.rated.sum())
        return {
            "items": len(self.counts.items),
            "unrated": int(self.counts.unrated.sum()),
            "rated_by_everyone": int(self.counts.everyone.sum()),
            "ratings": rated,
            "liked": int(self.counts.liked.sum()) / rated,
            "gini": self.gini,
            "top_1_percent": self.head(0.01),
            "top_10_percent": self.head(0.1),
            "bins": self.bins(),
            "correlations": self.correlations,
            "dependence": self.dependence,
            "pairs": self.pairs,
            "verdict": self.verdict,
            "notes": self.counts.notes,
        }

    def figure(self, name: str = "popularity") -> Figure:
        """Draw it.

        Parameters
        ----------
        name
            `popularity` (the curves), `positive-ratio` (by popularity), `optimal` (what the
            optimal rankings follow), `cases` (of item pairs) or `dependence` (with random
            judgments).
        """
        from unskew.bias import charts

        choose("figure", name, FIGURES)
        if name == "cases":
            return self.pairs.figure()
        if name == "dependence":
            if self.dependence is None:
                raise SettingError("figure 'dependence' needs random judgments (random=…)")
            return self.dependence.figure()
        if name == "popularity":
            return charts.popularity(self.counts, self.gini)
        if name == "positive-ratio":
            return charts.positive_ratio(self.bins())
        return charts.optimal(self.counts, self.correlations)

    def figures(self) -> list[str]:
        """Return the names of the figures that can be drawn."""
        return [name for name in FIGURES if name != "dependence" or self.dependence is not None]

    def display_tables(self, digits: int | None = None) -> list[Table]:  # noqa: ARG002 - shares
        """Return the bins, the correlations and the pairs of items."""
        bins = [
            [
                f"{row['from']:,}-{row['to']:,}",
                f"{row['items']:,}",
                f"{row['ratings']:,}",
                number(row["ratio"], 3),
                f"{number(row['low'], 3)}-{number(row['high'], 3)}",
            ]
            for row in self.bins().iter_rows(named=True)
        ]
        correlations = [
            [
                f"{row['ranking']} with {row['with']}",
                *(number(row[name], 2) for name in ("pearson", "spearman", "kendall")),
            ]
            for row in self.correlations.iter_rows(named=True)
        ]
        return [
            Table.of_rows(
                ["ratings per item", "items", "ratings", "liked", "95 % interval"], bins, left=(0,)
            ),
            Table.of_rows(
                ["optimal ranking", "Pearson", "Spearman", "Kendall"], correlations, left=(0,)
            ),
            as_table(self.pairs, self.pairs.question.name),
        ]

    def header(self) -> list[str]:
        """Return the lines that say what the data are."""
        facts = self.to_dict()
        lines = [
            f"{counted(facts['ratings'], 'rating')} of {counted(facts['items'], 'item')}, "
            f"{facts['liked']:.1%} liked",
            f"Gini {facts['gini']:.2f}; the most rated 1 % of items have "
            f"{facts['top_1_percent']:.1%} of the ratings, 10 % have {facts['top_10_percent']:.1%}",
        ]
        if facts["unrated"] or facts["rated_by_everyone"]:
            lines.append(
                f"left out below: {counted(facts['unrated'], 'item')} without ratings, "
                f"{counted(facts['rated_by_everyone'], 'item')} that all users rated"
            )
        return lines

    def _explanation(self) -> list[str]:
        dependence = [] if self.dependence is None else [str(self.dependence)]
        return [*self.pairs.explanation, *self.pairs.notes, *dependence]

    def _conclusion(self) -> Sequence[str]:
        return self.pairs.conclusion

    def _summary(self) -> str:
        return f"{counted(len(self.counts.items), 'item')}, Gini {self.gini:.2f}"


_FACTS = (
    *("items", "unrated", "rated_by_everyone", "ratings", "liked", "gini"),
    *("top_1_percent", "top_10_percent"),
)


@checked
def describe_bias(
    ratings: object,
    *,
    liked: float | None = None,
    random: object | None = None,
    users: int | None = None,
    sample: int | None = None,
    seed: int = 0,
    threads: int | None = None,
) -> BiasReport:
    """Describe how popularity, ratings and relevance go together, and which metrics that favours.

    Parameters
    ----------
    ratings, liked, random, users, sample, seed, threads
        As in `item_pairs`.

    References
    ----------
    mena2021 sections 4 to 7, figures 5 to 7, 9 and 10.

    Examples
    --------
    >>> from unskew.bias.describe_bias import describe_bias
    >>> from unskew.bias.popularity.item_counts import ItemCounts
    >>> counts = ItemCounts.known(rated=[60, 30, 10, 5], liked=[45, 20, 5, 1], users=100)
    >>> report = describe_bias(counts)
    >>> round(report.gini, 2), report.verdict.family
    (0.44, 'not identified')
    """
    counts = counts_of(ratings, liked, random, users)
    pairs = pairs_of(counts, sample=sample, seed=seed, threads=threads)
    likes = bool((counts.identified & (counts.p_rel > 0)).any())
    return BiasReport(counts, pairs, dependence_of(counts) if likes else None)


def pearson(a: F64, b: F64) -> float:
    """Return Pearson's correlation; NaN where one side is constant."""
    x, y = a - a.mean(), b - b.mean()
    bottom = math.sqrt(float((x * x).sum()) * float((y * y).sum()))
    return float((x * y).sum()) / bottom if bottom > 0 else math.nan
