"""Recommenders that see the order of events: what follows what, and what was met lately."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Protocol, runtime_checkable

import numpy as np

from unskew.arrays import F64, I32, I64, Tile, frozen
from unskew.data.events import Histories, user_histories
from unskew.data.ratings import Ratings
from unskew.recommend.matrices.similarity import Cosines
from unskew.recommend.matrices.sparse import SparseRows, sums, user_rows
from unskew.recommend.model import Algorithm, Axes, Grid, Model
from unskew.settings import count, number


@runtime_checkable
class NextModel(Protocol):
    """Anything that scores all items given what was met before: a model that sees the history.

    Examples
    --------
    A model that recommends the last item again; items that were met must be allowed then.

    >>> import numpy as np
    >>> import unskew as us
    >>> class LastAgain:
    ...     def score_next(self, histories):
    ...         scores = np.zeros((len(histories), 3))
    ...         scores[np.arange(len(histories)), histories.last().item] = 1
    ...         return scores
    >>> train = {"user": [1, 2, 2], "item": [7, 8, 9], "time": [1, 2, 3]}
    >>> test = {"user": [1, 1], "item": [7, 8], "time": [5, 6]}
    >>> steps = us.targets.next_items(train, test, seen="keep")
    >>> us.judging.rank_steps(LastAgain(), steps).rank.tolist()
    [1, 2]
    """

    def score_next(self, histories: Histories) -> Tile:
        """Return a new array with a row per history and a column per item; NaN = cannot score.

        Items are numbers of the training ratings' ids. A higher score ranks first. The row of a
        history must not depend on the histories beside it.
        """


@dataclass(frozen=True, eq=False)
class Transitions:
    """How likely each item follows the last one."""

    following: SparseRows
    """By item: what followed it, c_ij / (c_i + smoothing)."""
    rest: F64
    """By item: what is left for popularity, smoothing / (c_i + smoothing)."""
    popularity: F64
    """The share of each item in training; NaN without ratings."""
    latest: I32
    """The last training item of each user, -1 without any."""
    axes: ClassVar[Axes] = {
        "following": ("items", "items"),
        "rest": ("items",),
        "popularity": ("items",),
        "latest": ("users",),
    }

    def check(self) -> None:
        """Raise ValueError unless every last item is an item."""
        if self.latest.size and not -1 <= self.latest.min() <= self.latest.max() < self.rest.size:
            raise ValueError(f"latest leads beyond the {self.rest.size:,} items")

    def score(self, users: I32) -> F64:
        """Return the probabilities after each user's last training item."""
        return self._after(self.latest[users])

    def score_next(self, histories: Histories) -> F64:
        """Return the probabilities after the last item of each history."""
        item = np.full(len(histories), -1, np.int32)
        nonempty = histories.length > 0
        item[nonempty] = histories.item[histories.start[1:][nonempty] - 1]
        return self._after(item)

    def _after(self, item: I32) -> F64:
        valid = item >= 0
        tile = np.full((item.size, self.popularity.size), np.nan)
        last = item[valid]
        part = self.rest[last][:, None] * self.popularity
        rows, entries = _entries(self.following, last)
        part[rows, self.following.column[entries]] += self.following.value[entries]
        tile[valid] = part
        return tile


def _entries(rows: SparseRows, which: I32) -> tuple[I64, I64]:
    """Return the entries of some rows: the number of the row among these, and their places."""
    sizes = (rows.start[which + 1] - rows.start[which]).astype(np.int64)
    stops = np.cumsum(sizes)
    entries = np.arange(int(stops[-1]) if stops.size else 0)
    entries = entries + np.repeat(rows.start[which] - (stops - sizes), sizes)
    return np.repeat(np.arange(which.size), sizes), entries


@dataclass(frozen=True)
class MarkovChain(Algorithm):
    """First-order Markov chain: what follows the last item, smoothed by popularity.

    s(i, j) = (c_ij + λ p_j) / (c_i + λ), where c_ij counts the users of whom j came right after i
    in training, c_i = Σ_j c_ij, and p_j is the share of j among the training ratings. Events of one
    moment are in the order of item numbers. The model sees the history (`score_next`); `score`
    takes each user's last training item. Without any history there is no score.

    References
    ----------
    Rendle, Freudenthaler and Schmidt-Thieme, Factorizing personalized Markov chains for next-basket
    recommendation, WWW 2010, section 3 (the chain that is not factorised); smoothing by the
    distribution of the whole collection: Zhai and Lafferty, TOIS 22, 2004 (Dirichlet).

    Examples
    --------
    After item 7, whose number is 0, users went on to item 8.

    >>> import numpy as np
    >>> import unskew as us
    >>> rows = {"user": [1, 1, 2, 2, 3], "item": [7, 8, 7, 8, 9], "time": [1, 2, 1, 2, 1]}
    >>> model = us.recommend.MarkovChain().fit(us.read_ratings(rows))
    >>> met = us.data.Histories(np.array([0, 1]), np.array([0], np.int32), np.array([3]))
    >>> model.score_next(met).round(2)
    array([[0.13, 0.8 , 0.07]])
    """

    name: ClassVar[str] = "markov-chain"
    draw_name: ClassVar[str] = "markov-chain"
    needs_time: ClassVar[bool] = True
    tuning: ClassVar[Grid] = {"smoothing": (0.1, 1.0, 10.0, 100.0, 1_000.0, 10_000.0)}

    smoothing: float = number(1.0, "λ: the weight of popularity, in transitions.", above=0.0)

    def learn(self, train: Ratings, rng: np.random.Generator) -> Model:
        history = user_histories(train, self.name)
        items = len(train.items)
        first = np.ones(history.item.size, np.bool_)
        first[history.start[:-1][history.length > 0]] = False  # nothing comes before
        entries = np.flatnonzero(first)
        before, after = history.item[entries - 1], history.item[entries]
        pair, times = np.unique(before.astype(np.int64) * items + after, return_counts=True)
        row, column = pair // items, (pair % items).astype(np.int32)
        total = np.bincount(row, times, items)
        start = np.append(0, np.cumsum(np.bincount(row, minlength=items))).astype(np.int64)
        share = times / (total + self.smoothing)[row]
        counts = np.bincount(train.item, minlength=items).astype(np.float64)
        popularity = np.where(counts > 0, counts / counts.sum(), np.nan)
        latest = np.full(len(train.users), -1, np.int32)
        nonempty = history.length > 0
        latest[nonempty] = history.item[history.start[1:][nonempty] - 1]
        return Transitions(
            SparseRows(frozen(start), frozen(column), frozen(share), items),
            frozen(self.smoothing / (total + self.smoothing)),
            frozen(popularity),
            frozen(latest),
        )


@dataclass(frozen=True, eq=False)
class RecentNeighbours:
    """Neighbours of the items met lately, the latest of which count most."""

    near: SparseRows
    """By item: its nearest items and their similarity."""
    training: SparseRows
    """By user: the last training items and their weights."""
    half_life: float
    recent: int
    axes: ClassVar[Axes] = {"near": ("items", "items"), "training": ("users", "items")}

    def score(self, users: I32) -> F64:
        """Add up similarities to each user's last training items."""
        return self._sums(users, self.training)

    def score_next(self, histories: Histories) -> F64:
        """Add up similarities to the last items of each history."""
        rows = recency_rows(histories, self.half_life, self.recent, self.near.columns)
        return self._sums(np.arange(len(histories), dtype=np.int32), rows)

    def _sums(self, which: I32, rows: SparseRows) -> F64:
        total, support = sums(which, rows, self.near)
        total[support == 0] = np.nan
        return total


def recency_rows(histories: Histories, half_life: float, recent: int, items: int) -> SparseRows:
    """Return the last items of each history, weighted by how many came after."""
    last = histories.last(recent)
    behind = np.repeat(last.start[1:], last.length) - 1 - np.arange(last.item.size)
    return SparseRows(last.start, last.item, frozen(0.5 ** (behind / half_life)), items)


@dataclass(frozen=True)
class RecentItemKNN(Algorithm):
    """Item-based nearest neighbours of the items that a user met lately.

    s(h, i) = Σ_n 2^(-n / half_life) cos(i, j_n), where j_0 is the last item of the history, j_1 the
    one before it and so on, over those j_n among whose k nearest items i is. The cosine is that of
    who rated the items, whatever the ratings. Events of one moment are in the order of item
    numbers. The model sees the history (`score_next`); `score` takes each user's last training
    items. An item that is near none of them has no score.

    References
    ----------
    Ludewig and Jannach, Evaluation of session-based recommendation algorithms, UMUAI 28, 2018,
    section 3 (item-kNN and weights that decay with the place in the session).

    Examples
    --------
    User 1 met item 7 and then item 8. What is near item 8 (item 10) counts twice as much as what is
    near item 7 (item 9).

    >>> import unskew as us
    >>> rows = {"user": [1, 1, 2, 2, 3, 3], "item": [7, 8, 7, 9, 8, 10], "time": [1, 2] * 3}
    >>> train = us.read_ratings(rows)
    >>> us.recommend.RecentItemKNN(half_life=1).fit(train).score(train.user[:1]).round(2)
    array([[0.5 , 0.25, 0.35, 0.71]])
    """

    name: ClassVar[str] = "recent-item-knn"
    draw_name: ClassVar[str] = "recent-item-knn"
    needs_time: ClassVar[bool] = True
    tuning: ClassVar[Grid] = (
        {"half_life": 5.0},
        {"half_life": 20.0},
        {"half_life": 1.0},
        {"half_life": 5.0, "k": 300},
        {"half_life": 5.0, "k": 30},
        {"half_life": 50.0, "recent": 200},
    )

    k: int = count(100, "Neighbours per item.")
    half_life: float = number(
        5.0, "After so many later items, an item counts half as much.", above=0.0
    )
    recent: int = count(50, "At most so many of the last items count.")

    def learn(self, train: Ratings, rng: np.random.Generator) -> Model:
        history = user_histories(train, self.name)
        rows = user_rows(train, frozen(np.ones(len(train))))
        near = Cosines.of(rows.transposed(), rows).nearest(self.k)
        training = recency_rows(history, self.half_life, self.recent, len(train.items))
        return RecentNeighbours(near, training, self.half_life, self.recent)
