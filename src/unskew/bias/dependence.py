"""`Dependence`: whether being rated depends on the item or on being liked (mena2021 fig. 10)."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from unskew.arrays import F64, I64
from unskew.bias.popularity import ItemCounts
from unskew.errors import DataError
from unskew.report.text import counted, finite

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
        names = (
            "items",
            "left_out",
            "judgments",
            "overall",
            "overall_nonrel",
            "share_above",
            "to_relevance_independence",
            "to_item_independence",
            "to_item_independence_nonrel",
            "nearer",
        )
        values: dict[str, Any] = finite({name: getattr(self, name) for name in names})
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


def dependence_of(counts: ItemCounts) -> Dependence:
    """Measure what being rated depends on, from counts with random judgments.

    p(train|rel,i) = p(rel|train,i) p(train|i) / p(rel|i), by Bayes, which in a survey is the share
    of the users who like the item that knew it, as in the paper.

    Examples
    --------
    >>> from unskew.bias.dependence import dependence_of
    >>> from unskew.bias.popularity import ItemCounts
    >>> toy = ItemCounts.known(rated=[4, 2], liked=[3, 1], relevant=[6, 4], users=10)
    >>> print(dependence_of(toy))  # doctest: +ELLIPSIS
    whether being rated depends on liking: p(train|rel,i) > p(train|i) for 100.0% of 2 items; ...
    """
    if counts.asked is None or counts.asked_liked is None:
        raise DataError("give random judgments (random=…) to see what ratings depend on")
    known = (counts.asked > 0) | (counts.rated == counts.users)
    truth = counts.p_rel[known]
    users, liked = counts.users[known], counts.liked[known]
    disliked = counts.rated[known] - liked
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
