"""`ladder_part`: the rungs of the ladder on one split, with the trained lists fixed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from unskew.arrays import F64, I32, I64, Mask, frozen
from unskew.bias.decomposition.rasch import (
    PairWeights,
    Rasch,
    Sparse,
    additive,
    fit_outside,
    fit_pairs,
)
from unskew.checks import as_count, checked
from unskew.data.ratings import Ids, Ratings
from unskew.data.relevance import Relevance
from unskew.engine.threads import one_blas_thread
from unskew.errors import DataError, SettingError
from unskew.runs import Run
from unskew.splits.split import without_overlap

RUNGS = ("chance", "counts", "averages", "choice", "observed")
"""What each rung is called, from what keeps the least of the test part to all of it."""
NULLS = ("match", "choice", "opinion")
"""The steps that have a null hypothesis, in the order of `LadderPart.covariance`."""
CELLS = 1 << 20
"""Listed cells that are worked on at a time."""


@dataclass(frozen=True, eq=False, kw_only=True)
class LadderPart:
    """The ladder on one split. Made by `ladder_part`."""

    systems: tuple[str, ...]
    k: int
    ids: Ids
    """The ids of the users."""
    users: I32
    """Numbers of the users averaged over: those with training and with test ratings."""
    rungs: F64
    """Rungs x systems x users: what each user adds to P@k; the mean over users is the score."""
    covariance: F64
    """Steps x systems x systems, of match, choice and opinion under their null hypotheses."""
    cold: int
    """Users left out: test ratings, but none in training."""
    overlap: int
    """Test ratings left out because the pair is in training too."""
    without_list: tuple[int, ...]
    """By system: users averaged over without a list; they count 0."""
    rated_before: tuple[int, ...]
    """By system: listed items that the user rated in training; they count as misses."""
    unknown: tuple[int, ...]
    """By system: listed items without any rating; they count as misses."""

    @property
    def scores(self) -> F64:
        """Rungs x systems: the mean over users."""
        means: F64 = self.rungs.mean(axis=2)
        return means

    @property
    def events(self) -> F64:
        """The covariance in units of listed likes: its diagonal is a number of informative pairs.

        The variance of a count of rare events is the expected number of events.
        """
        return self.covariance * (self.k * self.users.size) ** 2


class _PairTable(NamedTuple):
    """Training and test pairs of the users averaged over, who are numbered anew."""

    users: I32
    trained: Sparse
    rated: Sparse
    liked: Mask
    """Whether each rated pair is liked."""
    likes: Sparse
    """The pairs that are."""


class _RaschFits(NamedTuple):
    """The null models of one split. They do not depend on the systems."""

    counts: Rasch
    """Of the rated pairs."""
    share: float
    """Of rated pairs that are liked."""
    averages: Rasch
    """Of the liked pairs."""
    choice: F64
    """The chance of each rated pair to be liked, given the rated pairs."""
    choice_variance: F64
    disliked: F64
    """Of each item the share of its ratings that are not likes."""


@checked
def ladder_part(
    train: Ratings, test: Ratings, runs: Mapping[str, Run], relevance: Relevance, k: int
) -> LadderPart:
    """Return the rungs of fixed lists on one split: what P@k is made of.

    Each rung is the expected P@k of these lists if the test part were drawn again and kept, of
    itself: each user's number of likes (`chance`); each user's and item's number of ratings, with
    likes at random (`counts`); each user's and item's number of likes (`averages`); the rated
    pairs, and each user's and item's number of likes (`choice`); everything (`observed`). Training
    pairs are no candidates.

    Parameters
    ----------
    train, test
        Under the same ids, as in a `Split`.
    runs
        Ranked lists by system, over all items that the user did not rate in training.
    relevance
        Which ratings are likes.
    k
        How many items of each list count.

    Examples
    --------
    >>> import unskew as us
    >>> data = us.read_ratings({"user": [1, 1, 2, 2], "item": [1, 2, 1, 3], "rating": [3, 5, 3, 5]})
    >>> train, test = (data.take(data.value == value) for value in (3, 5))
    >>> lists = us.read_run({1: [2], 2: [2]})
    >>> part = us.bias.ladder_part(train, test, {"mine": lists}, us.Relevance(liked=4), 1)
    >>> part.scores[:, 0].round(3).tolist()
    [0.5, 0.5, 0.5, 0.5, 0.5]
    """
    as_count("k", k)
    if not runs:
        raise SettingError("runs is empty: give the ranked lists of at least one system")
    if not (train.users.equals(test.users) and train.items.equals(test.items)):
        raise DataError("train and test have different ids; make them with ratings.take(mask)")
    train, test, overlap = without_overlap(train, test, "to-training")
    table = _table(train, test, relevance)
    cold = int(np.count_nonzero(np.diff(test.start))) - table.users.size
    lists, without, unknown = _lists(runs, train, table.users, k)
    with one_blas_thread():
        fits = _fit(table)
        rungs, covariance, before = _climb(table, fits, lists)
    return LadderPart(
        systems=tuple(runs),
        k=k,
        ids=train.users,
        users=table.users,
        rungs=rungs,
        covariance=covariance / (k * table.users.size) ** 2,
        cold=cold,
        overlap=overlap,
        without_list=without,
        rated_before=before,
        unknown=unknown,
    )


def _table(train: Ratings, test: Ratings, relevance: Relevance) -> _PairTable:
    warm = (np.diff(train.start) > 0) & (np.diff(test.start) > 0)
    if not warm.any():
        raise DataError("no user has both training and test ratings: the ladder needs such users")
    everything = np.ones(len(train.items), np.bool_)
    (trained, _), (rated, is_warm) = (
        Sparse(part.start, part.item, len(part.items)).take(warm, everything)
        for part in (train, test)
    )
    liked = relevance.is_liked(test.value)[is_warm]
    start = np.append(0, np.cumsum(liked))[rated.start]
    likes = Sparse(frozen(start), frozen(rated.item[liked]), rated.items)
    users = frozen(np.flatnonzero(warm).astype(np.int32))
    return _PairTable(users, trained, rated, liked, likes)


def _lists(
    runs: Mapping[str, Run], ratings: Ratings, users: I32, k: int
) -> tuple[I32, tuple[int, ...], tuple[int, ...]]:
    """Return users x systems x ranks of items, -1 for none; users without list; unknown items."""
    row = np.full(len(ratings.users) + 1, -1, np.int64)  # the last entry is for users not known
    row[users] = np.arange(users.size)
    lists = np.full((users.size, len(runs), k), -1, np.int32)
    without, unknown = [], []
    for number, run in enumerate(runs.values()):
        rank = np.arange(run.item.size) - np.repeat(run.start[:-1], run.depth)
        owner = np.repeat(row[_numbers(run.users, ratings.users)], run.depth)
        valid = (rank < k) & (owner >= 0) & (run.item >= 0)
        item = np.append(_numbers(run.items, ratings.items), np.int32(-1))[run.item[valid]]
        lists[owner[valid], number, rank[valid]] = item
        unknown.append(int(np.count_nonzero(item < 0)))
        without.append(users.size - np.unique(owner[valid]).size)
    return lists, tuple(without), tuple(unknown)


def _numbers(ids: Ids, numbering: Ids) -> I32:
    """Return the numbers of ids among those known; -1 for others."""
    return (
        np.arange(len(ids), dtype=np.int32)
        if ids.equals(numbering)
        else numbering.codes(ids.values)
    )


def _fit(table: _PairTable) -> _RaschFits:
    rated, likes = table.rated, table.likes
    counts = fit_outside(table.trained, rated)
    averages = fit_outside(table.trained, likes)
    number = [np.bincount(pairs.item, minlength=pairs.items) for pairs in (rated, likes)]
    choice, variance = fit_pairs(rated, table.liked)
    return _RaschFits(
        counts=counts,
        share=float(np.mean(table.liked)),
        averages=averages,
        choice=choice,
        choice_variance=variance,
        disliked=1 - number[1] / np.maximum(number[0], 1),
    )


def _climb(table: _PairTable, fits: _RaschFits, lists: I32) -> tuple[F64, F64, tuple[int, ...]]:
    """Return the rungs, the covariances of the steps in likes, and listed training pairs."""
    from unskew.bias.decomposition import kernels

    users, systems, k = lists.shape
    rungs = np.empty((len(RUNGS), systems, users))
    candidates = table.trained.items - np.diff(table.trained.start)
    rungs[0] = np.diff(table.likes.start) / np.maximum(candidates, 1)
    rows = np.empty((len(NULLS), users, systems))
    columns = np.zeros((len(NULLS), table.rated.items, systems))
    overlap = np.zeros((len(NULLS), systems, systems))
    before = np.zeros(systems, np.int64)
    size = max(CELLS // (systems * k), 1)
    for low in range(0, users, size):
        block = slice(low, low + size)
        listed, chance, weight = _cells(table, fits, lists[block], low)
        before += np.count_nonzero((lists[block] >= 0) & (listed < 0), axis=(0, 2))
        rungs[1:, :, block] = chance.sum(axis=3).transpose(0, 2, 1) / k
        rows[:, block] = weight.sum(axis=3)
        kernels.add_lists(frozen(listed), frozen(weight), columns, overlap)
    overlap += np.triu(overlap, 1).transpose(0, 2, 1)
    return rungs, _covariances(table, fits, rows, columns, overlap), tuple(before.tolist())


def _cells(table: _PairTable, fits: _RaschFits, lists: I32, low: int) -> tuple[I32, F64, F64]:
    """Return the listed candidates, their chances on rungs 1 to 4, and variances of the steps."""
    shape = lists.shape
    listed = lists.reshape(shape[0], -1).copy()
    listed[_locate(table.trained, listed, low) >= 0] = -1
    row = _locate(table.rated, listed, low)
    is_rated = row >= 0
    chance = np.zeros((4, *listed.shape))
    chance[0] = fits.share * fits.counts.chances(low, listed)
    chance[1] = fits.averages.chances(low, listed)
    chance[2][is_rated] = fits.choice[row[is_rated]]
    chance[3][is_rated] = table.liked[row[is_rated]]
    weight = np.zeros((3, *listed.shape))
    weight[0] = chance[1] * (1 - chance[1])
    weight[1] = weight[0] * fits.disliked[listed]  # an empty slot has no weight
    weight[2][is_rated] = fits.choice_variance[row[is_rated]]
    return listed.reshape(shape), chance.reshape(4, *shape), weight.reshape(3, *shape)


def _locate(pairs: Sparse, listed: I32, low: int) -> I64:
    from unskew.bias.decomposition import kernels

    out = np.empty(listed.shape, np.int64)
    kernels.locate(low, pairs.start, pairs.item, frozen(listed), out)
    return out


def _covariances(table: _PairTable, fits: _RaschFits, rows: F64, columns: F64, overlap: F64) -> F64:
    """Return the covariances of match, choice and opinion: sums of V w̃_A w̃_B.

    w is 1 for listed cells, w̃ is w less its V-weighted projection on what is additive in user and
    item, whose sums the null model keeps. The likes of a null table vary by which pairs are rated
    and by which of these are liked. Given who rated what, an item's share of likes tells how much
    of the variance of a cell is left; what is not left is that of choice.
    """
    model = fits.averages
    estimable = model.free_users, model.free_items
    likes = model.weights()
    kinds = (likes, likes.by_item(fits.disliked[estimable[1]]))
    sums = [
        _residual(sparse, rows[kind][estimable[0]], columns[kind][estimable[1]], overlap[kind])
        for kind, sparse in enumerate(kinds)
    ]
    thin = np.zeros((table.rated.users, 0)), np.zeros((0, table.rated.items))
    pairs = PairWeights(*thin, table.rated, fits.choice_variance)
    opinion = _residual(pairs, rows[2], columns[2], overlap[2])
    return np.stack([sums[0], sums[0] - sums[1], opinion])


def _residual(weights: PairWeights, rows: F64, columns: F64, overlap: F64) -> F64:
    """Return sums of V w̃_A w̃_B; a residual is orthogonal to all that is additive."""
    if not rows.size or not columns.size:
        return overlap
    a, b = additive(weights, rows, columns)
    sums = overlap - rows.T @ a - columns.T @ b
    return (sums + sums.T) / 2
