"""LibRec's neighbourhood methods and its SLIM, as mena2021 ran them."""

from __future__ import annotations

from dataclasses import dataclass
from math import isqrt
from typing import ClassVar

import numpy as np

from unskew.arrays import F64, I32, I64, U16, frozen
from unskew.data.ratings import Ratings
from unskew.engine.threads import map_blocks
from unskew.recommend.matrices.sparse import (
    ROWS,
    SparseRows,
    SparseWeights,
    capacity,
    check_size,
    in_blocks,
    item_gram,
    rated_items,
    user_rows,
)
from unskew.recommend.model import Algorithm, Axes, Grid, Model
from unskew.settings import count, number

FEW = 32
"""Users or items per task, where each has a row as long as all of them."""
MANY = 128
"""Users per task, where they share what is known of an item."""


@dataclass(frozen=True, eq=False)
class Corated:
    """The similarity of every row with every other: the cosine over what both have, shrunk.

    sim(a, b) = Σ x_a x_b / √(Σ x_a² Σ x_b²) · n/(n + shrink), where all sums run over the n columns
    that both rows have. Two rows of one common column are as similar as can be but for the
    factor. Where there are no common columns, or no positive product, it is 0.
    """

    rows: SparseRows
    inverted: SparseRows
    shrink: float

    def block(self, which: I32) -> F64:
        """Return the similarities of some rows with all rows."""
        from unskew_studies import librec_kernels as kernels

        rows, inverted = self.rows, self.inverted
        result = np.empty((which.size, len(rows)))
        kernels.corated_rows(
            frozen(which),
            *rows.arrays,
            *inverted.arrays,
            self.shrink,
            result,
        )
        return result

    def all(self, purpose: str) -> F64:
        """Return the similarities of all rows with all rows."""
        n = len(self.rows)
        check_size(
            n * n * 8,
            f"{purpose}: its {n:,} x {n:,} similarities of items",
            f"it can have {isqrt(capacity(8)):,} items: keep the most rated ones, or use item-knn",
        )
        result = np.empty((n, n))

        def fill(low: int) -> None:
            rows = np.arange(low, min(low + FEW, n), dtype=np.int32)
            result[low : low + FEW] = self.block(rows)

        map_blocks(fill, range(0, n, FEW), size=self.rows.value.size)
        return result


def corated_items(train: Ratings, shrink: float) -> Corated:
    """Prepare the similarities of items."""
    rows = user_rows(train)
    return Corated(rows.transposed(), rows, float(shrink))


@dataclass(frozen=True, eq=False)
class NearestRaters:
    """Per item the k users that are most similar, out of those that rated it."""

    similarities: Corated
    k: int
    axes: ClassVar[Axes] = {
        "similarities.rows": ("users", "items"),
        "similarities.inverted": ("items", "users"),
    }

    def score(self, users: I32) -> F64:
        """Add up the similarities of each item's nearest raters."""
        from unskew_studies import librec_kernels as kernels

        rows, inverted = self.similarities.rows, self.similarities.inverted
        result = np.empty((users.size, rows.columns))

        def fill(some: I32, place: slice) -> None:
            kernels.sums_of_nearest_raters(
                self.similarities.block(some),
                rows.start,
                rows.column,
                inverted.start,
                inverted.column,
                self.k,
                result[place],
            )

        in_blocks(users, fill, rows.value.size * users.size, FEW)
        return result


@dataclass(frozen=True, eq=False)
class NearestRated:
    """Per item the k items that are most similar, out of those that the user rated."""

    ratings: SparseRows
    similarity: F64
    rank: U16
    """Per item, where the others stand among those most similar to it."""
    k: int
    axes: ClassVar[Axes] = {
        "ratings": ("users", "items"),
        "similarity": ("items", "items"),
        "rank": ("items", "items"),
    }

    def check(self) -> None:
        """Raise ValueError unless every row of `rank` holds each place once."""
        places = np.arange(len(self.rank))
        if not all(np.array_equal(np.sort(row), places) for row in self.rank):
            raise ValueError("rank holds values that are not ranks")

    def score(self, users: I32) -> F64:
        """Add up the similarities with each item's nearest among the user's."""
        from unskew_studies import librec_kernels as kernels

        result = np.empty((users.size, self.ratings.columns))

        def fill(some: I32, place: slice) -> None:
            kernels.sums_of_nearest_rated(
                some,
                self.ratings.start,
                self.ratings.column,
                self.similarity,
                self.rank,
                self.k,
                result[place],
            )

        in_blocks(users, fill, self.ratings.value.size * users.size, MANY)
        return result


@dataclass(frozen=True)
class LibRecUserKNN(Algorithm):
    """LibRec's user-based nearest neighbours: how similar the item's nearest raters are.

    s(u, i) = Σ sim(u, v) over the k users with the largest sim(u, v) out of those that rated i.
    Each item has neighbours of its own, and what they rated it with does not matter. The
    similarity is the cosine over the n items that both rated, times n/(n + shrink); users whose
    common ratings have no positive product are never neighbours. An item none of whose raters is
    similar has no score (LibRec gives it 0).

    References
    ----------
    mena2021 section 8 (kNN user-based), where ratings 1 to 5 enter as 0, 0, 0, 1, 2; LibRec 2.0.0.

    Examples
    --------
    >>> import numpy as np
    >>> import polars as pl
    >>> from unskew import read_ratings
    >>> from unskew_studies.librec import LibRecUserKNN
    >>> rows = {"user": [1, 1, 2, 2], "item": [1, 2, 1, 3], "rating": [2.0, 1.0, 2.0, 1.0]}
    >>> model = LibRecUserKNN(k=1, shrink=1.0).fit(read_ratings(pl.DataFrame(rows)))
    >>> model.score(np.array([0], dtype=np.int32)).tolist()
    [[0.5, nan, 0.5]]
    """

    k: int = count(20, "Neighbours per user and item.")
    shrink: float = number(10.0, "Pulls similarities that rest on few common items towards 0.")

    name: ClassVar[str] = "librec-user-knn"
    draw_name: ClassVar[str] = "librec-user-knn"
    tuning: ClassVar[Grid] = {"k": (5, 10, 20, 50, 100, 200)}

    def learn(self, train: Ratings, rng: np.random.Generator) -> Model:
        rows = user_rows(train)
        return NearestRaters(Corated(rows, rows.transposed(), float(self.shrink)), self.k)


@dataclass(frozen=True)
class LibRecItemKNN(Algorithm):
    """LibRec's item-based nearest neighbours: how similar the user's nearest items are.

    s(u, i) = Σ sim(i, j) over the k items with the largest sim(i, j) out of those that u rated,
    whatever she rated them with. The similarity is the cosine over the n users that rated both,
    times n/(n + shrink); items whose common ratings have no positive product are never
    neighbours. An item that is similar to none of the user's has no score (LibRec gives it 0).
    All similarities are kept: memory grows with the square of the items.

    References
    ----------
    mena2021 section 8 (kNN item-based), where ratings 1 to 5 enter as 0, 0, 0, 1, 2; LibRec 2.0.0.
    """

    k: int = count(50, "Neighbours per user and item.")
    shrink: float = number(10.0, "Pulls similarities that rest on few common users towards 0.")

    name: ClassVar[str] = "librec-item-knn"
    draw_name: ClassVar[str] = "librec-item-knn"
    tuning: ClassVar[Grid] = {"k": (5, 10, 20, 50, 100, 200)}

    def learn(self, train: Ratings, rng: np.random.Generator) -> Model:
        similarity = frozen(corated_items(train, self.shrink).all(self.name))
        return NearestRated(user_rows(train), similarity, frozen(ranks(similarity)), self.k)


def ranks(similarity: F64) -> U16:
    """Return where each column stands in its row, the largest first; there are few enough."""
    from unskew_studies import librec_kernels as kernels

    result = np.empty(similarity.shape, np.uint16)

    def fill(low: int) -> None:
        rows = slice(low, low + FEW)
        kernels.ranks_of_rows(similarity[rows], result[rows])

    map_blocks(fill, range(0, len(similarity), FEW), size=similarity.size)
    return result


@dataclass(frozen=True)
class LibRecSLIM(Algorithm):
    """LibRec's sparse linear method: items predicted by their neighbours, weights of any sign.

    Column i of W minimises ½‖r_i - R w‖² + Σ_j n_j (l2/2 w_j² + l1 |w_j|) over the weights of the
    k items j that are most similar to i, n_j being how many users rated j; the score of a user is
    R_u W. That is what LibRec's updates lead to: it divides the sums of a coordinate by n_j, which
    makes the penalties grow with it, and leaves out SLIM's w >= 0. Similarities are those of
    `LibRecItemKNN`. Most weights are 0, and so are most scores, as in LibRec: items that score 0
    come after those with positive scores, by item number. Users and items without training
    ratings cannot be scored.

    LibRec starts at random, makes 40 sweeps and stops earlier when a loss of its own, which is
    not what it minimises, no longer falls. Since l2 > 0 there is only one solution; here it is
    computed, by sweeps until no weight moves by more than `tolerance`, whatever the start.

    References
    ----------
    mena2021 section 8 (SLIM), where ratings 1 to 5 enter as 0, 0, 0, 1, 2; LibRec 2.0.0; Ning and
    Karypis, SLIM: sparse linear methods for top-N recommender systems, ICDM 2011.
    """

    k: int = count(50, "Neighbours per item, out of which its predictors come.")
    l1: float = number(1.0, "Weight of n_j |w_j|: higher makes W sparser.")
    l2: float = number(5.0, "Weight of n_j ½ w_j²; above 0.", above=0)
    shrink: float = number(10.0, "Pulls similarities that rest on few common users towards 0.")
    tolerance: float = number(1e-9, "The largest move of a weight in the last sweep.", 1e-12, 1.0)

    name: ClassVar[str] = "librec-slim"
    draw_name: ClassVar[str] = "librec-slim"
    tuning: ClassVar[Grid] = {"l1": (0.1, 1.0), "l2": (1.0, 5.0, 20.0)}

    def learn(self, train: Ratings, rng: np.random.Generator) -> Model:
        from unskew_studies import librec_kernels as kernels

        R = user_rows(train)
        G = frozen(item_gram(R, self.name))
        near = self._predictors(corated_items(train, self.shrink))
        count = frozen(np.bincount(train.item, minlength=R.columns).astype(np.float64))

        def solve(low: int) -> F64:
            high = min(low + ROWS, R.columns)
            weight = np.empty(near.start[high] - near.start[low])
            kernels.penalised_columns(
                G=G,
                count=count,
                start=near.start,
                predictor=near.column,
                l1=float(self.l1),
                l2=float(self.l2),
                tolerance=float(self.tolerance),
                low=low,
                high=high,
                weight=weight,
            )
            return weight

        parts = map_blocks(solve, range(0, R.columns, ROWS), size=G.size)
        solved = near.with_values(np.concatenate(parts))
        item_offset = frozen(np.where(rated_items(train), 0.0, np.nan))
        return SparseWeights(R, without_zeros(solved).transposed(), item_offset)

    def _predictors(self, similarities: Corated) -> SparseRows:
        """Return the k most similar items of each item; equal ones by ascending number."""
        n = len(similarities.rows)

        def choose(low: int) -> tuple[I64, I32]:
            some = np.arange(low, min(low + FEW, n), dtype=np.int32)
            block = similarities.block(some)
            order = np.argsort(-block, axis=1, kind="stable")[:, : self.k]
            kept = np.take_along_axis(block, order, axis=1) > 0
            return kept.sum(axis=1), order[kept].astype(np.int32)

        parts = map_blocks(choose, range(0, n, FEW), size=similarities.rows.value.size)
        start = np.concatenate([[0], np.cumsum(np.concatenate([size for size, _ in parts]))])
        column = np.concatenate([items for _, items in parts])
        return SparseRows(frozen(start.astype(np.int64)), frozen(column), frozen(column * 0.0), n)


def without_zeros(rows: SparseRows) -> SparseRows:
    """Drop the entries whose value is 0."""
    kept = rows.value != 0
    start = np.concatenate([[0], np.cumsum(kept)])[rows.start]
    return SparseRows(
        frozen(start.astype(np.int64)),
        frozen(rows.column[kept]),
        frozen(rows.value[kept]),
        rows.columns,
    )


ALGORITHMS: dict[str, type[Algorithm]] = {
    kind.name: kind for kind in (LibRecUserKNN, LibRecItemKNN, LibRecSLIM)
}
"""The systems of this file by name, as plans and commands name them."""
