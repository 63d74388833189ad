"""The Rasch model of a 0/1 table: chances that depend on each user's and item's number of ones.

Chances are :math:`p_{ui} = x_u y_i / (1 + x_u y_i)`, with x and y such that expected sums over
users and items are the observed ones. Two sets of cells: all but some sparse pairs (`fit_outside`),
and sparse pairs only (`fit_pairs`).

Never users x items: the sum of a user's chances is a smooth function of log x, so that its values
at the nodes of Chebyshev's polynomials determine it. The error falls geometrically with their
number, since the nearest pole of 1 / (1 + exp(-t)) is π away from the real line; nodes are as many
as make it about 1e-13.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from unskew.arrays import F64, I32, I64, Mask, frozen

FREE = np.int32(2**31 - 1)
"""The turn of users and items that are not bound to one value."""
CLOSE = 1e-9
"""Relative error of expected margins at which a fit ends."""
STEPS = 200
"""The most steps of Newton's method; a fit takes about ten."""
ROUNDS = 2_000
"""The most rounds of conjugate gradients; a solution takes about twenty."""
EXACT = 1e-13


@dataclass(frozen=True, eq=False)
class Sparse:
    """Pairs of users and items, grouped by user, items sorted."""

    start: I64
    item: I32
    items: int
    """How many items there are."""

    @property
    def users(self) -> int:
        """How many users there are."""
        return self.start.size - 1

    @property
    def user(self) -> I64:
        """The user of each pair."""
        return np.repeat(np.arange(self.users), np.diff(self.start))

    def rows(self, weight: F64, right: F64) -> F64:
        """Return, for each user, the weighted sum of the rows of the user's items."""
        from unskew.bias.decomposition import kernels

        out = np.zeros((self.users, right.shape[1]))
        kernels.add_rows(self.start, self.item, frozen(weight), frozen(right), out)
        return out

    def columns(self, weight: F64, left: F64) -> F64:
        """Return, for each item, the weighted sum of the rows of the item's users."""
        from unskew.bias.decomposition import kernels

        out = np.zeros((self.items, left.shape[1]))
        kernels.add_columns(self.start, self.item, frozen(weight), frozen(left), out)
        return out

    def margins(self, weight: F64) -> tuple[F64, F64]:
        """Return the sums of the weights of each user and of each item."""
        rows = self.rows(weight, np.ones((self.items, 1)))[:, 0]
        return rows, self.columns(weight, np.ones((self.users, 1)))[:, 0]

    def logistic(self, user: F64, item: F64) -> F64:
        """Return the chances of the pairs by log odds of users and items."""
        from unskew.bias.decomposition import kernels

        out = np.empty(self.item.size)
        kernels.logistic(self.start, self.item, frozen(user), frozen(item), out)
        return out

    def take(self, users: Mask, items: Mask) -> tuple[Sparse, Mask]:
        """Return the pairs of some users and items, numbered anew, and which pairs these are."""
        from unskew.bias.decomposition import kernels

        mask = np.empty(self.item.size, np.bool_)
        kernels.keep_free(self.start, self.item, users, items, mask)
        bounds = np.append(0, np.cumsum(mask))[self.start]
        start = np.append(0, np.cumsum(np.diff(bounds)[users]))
        number = (np.cumsum(items) - 1).astype(np.int32)
        part = number[self.item[mask]]
        return Sparse(frozen(start), frozen(part), int(np.count_nonzero(items))), mask


@dataclass(frozen=True, eq=False)
class PairWeights:
    """A table of weights V, users x items: a product of two thin tables and a sparse one."""

    left: F64
    right: F64
    sparse: Sparse
    weight: F64
    """Of the sparse pairs."""

    def times(self, b: F64) -> F64:
        """Return V b."""
        return self.left @ (self.right @ b) + self.sparse.rows(self.weight, b)

    def transposed(self, a: F64) -> F64:
        """Return V' a."""
        return self.right.T @ (self.left.T @ a) + self.sparse.columns(self.weight, a)

    def margins(self) -> tuple[F64, F64]:
        """Return the sums of users and of items."""
        rows, columns = self.sparse.margins(self.weight)
        return self.left @ self.right.sum(1) + rows, self.left.sum(0) @ self.right + columns

    def by_item(self, factor: F64) -> PairWeights:
        """Return the weights times a factor of each item."""
        weight = self.weight * factor[self.sparse.item]
        return replace(self, right=self.right * factor, weight=weight)


def additive(weights: PairWeights, rows: F64, columns: F64, close: float = 1e-7) -> tuple[F64, F64]:
    """Return a and b such that V-weighted sums of a_u + b_i are the given ones.

    By conjugate gradients on the equations of the items. With the V-weighted sums of a table w,
    a + b is its projection on tables that are additive in user and item.

    Parameters
    ----------
    weights
        V.
    rows, columns
        Users x cases and items x cases.
    close
        Where to stop, as a share of the size of the columns.
    """
    margins = weights.margins()
    of_users, of_items = (_inverse(sums)[:, None] for sums in margins)
    diagonal = margins[1][:, None]
    b = np.zeros(columns.shape)
    residual = columns - weights.transposed(of_users * rows)
    direction = of_items * residual
    size = np.sum(residual * direction, axis=0)
    limit = close**2 * np.sum(columns * of_items * columns, axis=0)
    for _ in range(ROUNDS):
        going = size > limit
        if not going.any():
            break
        image = diagonal * direction - weights.transposed(of_users * weights.times(direction))
        length = np.sum(direction * image, axis=0)
        step = np.divide(size, length, out=np.zeros_like(size), where=going & (length > 0))
        b += step * direction
        residual -= step * image
        scaled = of_items * residual
        before, size = size, np.sum(residual * scaled, axis=0)
        size[step == 0] = 0.0
        ratio = np.divide(size, before, out=np.zeros_like(size), where=before > 0)
        direction = scaled + ratio * direction
    return of_users * (rows - weights.times(b)), b


def _inverse(values: F64) -> F64:
    return np.divide(1.0, values, out=np.zeros_like(values), where=values > 1e-250)


@dataclass(frozen=True, eq=False)
class Rasch:
    """A fit to all cells but some. A user or item of which all or no cells are 1 is exact."""

    user: F64
    """Log odds."""
    item: F64
    user_turn: I32
    """When a user was seen to have one possible value only: smaller is earlier; `FREE` = never."""
    item_turn: I32
    user_value: F64
    """That value, 0 or 1."""
    item_value: F64
    sparse: Sparse
    """The cells that are left out, of free users and items."""

    @property
    def free_users(self) -> Mask:
        """Users with several possible values."""
        mask: Mask = self.user_turn == FREE
        return mask

    @property
    def free_items(self) -> Mask:
        """Items with several possible values."""
        mask: Mask = self.item_turn == FREE
        return mask

    def chances(self, low: int, listed: I32) -> F64:
        """Return the chances of listed cells, a row per user from number `low` on."""
        from unskew.bias.decomposition import kernels

        out = np.empty(listed.shape)
        kernels.chances(
            low,
            frozen(listed),
            self.user,
            self.item,
            self.user_turn,
            self.item_turn,
            self.user_value,
            self.item_value,
            out,
        )
        return out

    def weights(self) -> PairWeights:
        """Return p (1 - p) of the free users and items."""
        user, item = self.user[self.free_users], self.item[self.free_items]
        return _outside(self.sparse, user, item)[2]


def fit_outside(excluded: Sparse, ones: Sparse) -> Rasch:
    """Fit the model to all cells but the excluded ones; `ones` are the cells that hold a 1."""
    turns, values = _bound(excluded, ones)
    masks = [turn == FREE for turn in turns]
    part = excluded.take(*masks)[0]
    cells = ones.take(*masks)[0]
    rows, columns = cells.margins(np.ones(cells.item.size))
    odds = [np.zeros(turn.size) for turn in turns]
    if rows.size:
        gone = part.margins(np.ones(part.item.size))
        start = _first_guess(rows, columns, columns.size - gone[0], rows.size - gone[1])
        odds[0][masks[0]], odds[1][masks[1]] = _newton(
            rows, columns, start, lambda user, item: _outside(part, user, item)
        )
    return Rasch(
        user=frozen(odds[0]),
        item=frozen(odds[1]),
        user_turn=frozen(turns[0]),
        item_turn=frozen(turns[1]),
        user_value=frozen(values[0]),
        item_value=frozen(values[1]),
        sparse=part,
    )


def fit_pairs(pairs: Sparse, ones: Mask) -> tuple[F64, F64]:
    """Fit the model to sparse pairs only; return chances and variances of the pairs.

    A pair whose value is the same in every table with these margins is exact: its value can change
    only along a cycle that alternates between ones and zeros, that is, within a strongly connected
    component of the graph with an edge from user to item for a one and back for a zero. Variances
    are p (1 - p) times pairs / (pairs - parameters) of the component, since p is fitted to few
    pairs: exact for two users and two items, 16 / 15 for a user of 16 pairs and no item effects.
    """
    chance: F64 = ones.astype(np.float64)
    mask, factor = _on_cycle(pairs, ones)
    if not mask.any():
        return chance, np.zeros(chance.size)
    start = np.append(0, np.cumsum(mask))[pairs.start]
    part = Sparse(frozen(start), frozen(pairs.item[mask]), pairs.items)
    rows, columns = part.margins(chance[mask])
    cells = part.margins(np.ones(part.item.size))
    thin = np.zeros((part.users, 0)), np.zeros((0, part.items))

    def model(user: F64, item: F64) -> tuple[F64, F64, PairWeights]:
        p = part.logistic(user, item)
        return *part.margins(p), PairWeights(*thin, part, p * (1 - p))

    odds = _newton(rows, columns, _first_guess(rows, columns, *cells), model)
    chance[mask] = part.logistic(*odds)
    return chance, factor * chance * (1 - chance)


def _on_cycle(pairs: Sparse, ones: Mask) -> tuple[Mask, F64]:
    """Mark the pairs on a cycle that alternates between ones and zeros.

    Returns too, for each pair, pairs / (pairs - parameters) of its component; 0 off cycles.
    """
    from unskew.bias.decomposition import kernels

    user, item = pairs.user, pairs.item + pairs.users
    source, target = np.where(ones, user, item), np.where(ones, item, user)
    order = np.argsort(source, kind="stable")
    count = np.bincount(source, minlength=pairs.users + pairs.items)
    start = np.append(0, np.cumsum(count))
    component = kernels.strong_components(frozen(start), frozen(target[order].astype(np.int32)))
    same: Mask = component[user] == component[item]
    nodes = np.bincount(component)
    edges = np.bincount(component[user[same]], minlength=nodes.size)
    factor = edges / np.maximum(edges - nodes + 1, 1)
    return same, np.where(same, factor[component[user]], 0.0)


def _bound(excluded: Sparse, ones: Sparse) -> tuple[tuple[I32, I32], tuple[F64, F64]]:
    """Take out users and items of which all or no cells are 1, until none is left."""
    sizes = ones.users, ones.items
    turns = tuple(np.full(size, FREE, np.int32) for size in sizes)
    values = tuple(np.zeros(size) for size in sizes)
    pairs = (ones.user, ones.item), (excluded.user, excluded.item)
    turn, quiet = 0, 0
    while quiet < 2:
        side = turn % 2
        masks = [turn == FREE for turn in turns]
        counts = [
            np.bincount(pair[side][masks[0][pair[0]] & masks[1][pair[1]]], minlength=sizes[side])
            for pair in pairs
        ]
        cells = int(np.count_nonzero(masks[1 - side])) - counts[1]
        bound = masks[side] & ((counts[0] == 0) | (counts[0] == cells))
        values[side][bound] = (counts[0] > 0)[bound]
        turns[side][bound] = turn
        quiet = 0 if bound.any() else quiet + 1
        turn += 1
    return (turns[0], turns[1]), (values[0], values[1])


def _outside(excluded: Sparse, user: F64, item: F64) -> tuple[F64, F64, PairWeights]:
    """Return expected margins of all cells but the excluded ones, and their p (1 - p)."""
    left, nodes = interpolation(user)
    right = 1 / (1 + np.exp(-nodes[:, None] - item[None, :]))
    p = excluded.logistic(user, item)
    rows, columns = excluded.margins(p)
    weights = PairWeights(left, right * (1 - right), excluded, -p * (1 - p))
    return left @ right.sum(1) - rows, left.sum(0) @ right - columns, weights


def interpolation(points: F64) -> tuple[F64, F64]:
    """Return L and nodes such that f(at) = L f(nodes) for sums of logistic functions f."""
    low, high = (float(points.min()), float(points.max())) if points.size else (0.0, 0.0)
    half = max((high - low) / 2, 1e-3)
    # The largest ellipse around the interval without a pole: sum of its half axes.
    axis = math.pi / half
    count = math.ceil(-math.log(EXACT) / math.log(axis + math.hypot(1, axis))) + 6
    angle = (np.arange(count) + 0.5) * np.pi / count
    degree = np.arange(count)
    coefficients = 2 / count * np.cos(degree[:, None] * angle[None, :])
    coefficients[0] /= 2
    position = np.clip((points - (low + high) / 2) / half, -1, 1)
    polynomials = np.cos(np.arccos(position)[:, None] * degree[None, :])
    return polynomials @ coefficients, (low + high) / 2 + half * np.cos(angle)


def _first_guess(rows: F64, columns: F64, per_row: F64, per_column: F64) -> tuple[F64, F64]:
    """Return log odds of users and items as if they did not depend on each other."""
    total, cells = rows.sum(), per_row.sum()
    user = np.log(np.maximum(rows, 0.5) / np.maximum(per_row - rows, 0.5))
    item = np.log(np.maximum(columns, 0.5) / np.maximum(per_column - columns, 0.5))
    return user, item - math.log(total / (cells - total))


def _newton(
    rows: F64,
    columns: F64,
    odds: tuple[F64, F64],
    model: Callable[[F64, F64], tuple[F64, F64, PairWeights]],
) -> tuple[F64, F64]:
    """Return the log odds whose expected margins are the given ones.

    The log likelihood is concave, and its third derivative is bounded by its second: steps
    shortened by log(1 + d) / d, d the length, converge from any start (Sun and Tran-Dinh 2019).
    """
    user, item = odds
    for _ in range(STEPS):
        expected_rows, expected_columns, weights = model(user, item)
        gaps = rows - expected_rows, columns - expected_columns
        far = max(
            float(np.max(np.abs(gap) / np.maximum(margin, 0.5), initial=0.0))
            for gap, margin in zip(gaps, (rows, columns), strict=True)
        )
        if far <= CLOSE:
            break
        a, b = additive(weights, gaps[0][:, None], gaps[1][:, None], min(0.1, far))
        length = float(np.max(np.abs(a), initial=0.0) + np.max(np.abs(b), initial=0.0))
        short = math.log1p(length) / length if length > 0 else 1.0
        user, item = user + short * a[:, 0], item + short * b[:, 0]
    return user, item
