"""`fitted_chances`: chances of real people to like items, fitted on ratings of theirs."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from unskew.arrays import F64, I32, Mask
from unskew.engine.rng import generator
from unskew.engine.threads import one_blas_thread

ROUNDS = 40
"""Rounds of Newton's steps, of users, items and what they share in turn."""
EFFECTS = 2
"""Columns before those of factors: the effect of users, and that of items."""


@dataclass(frozen=True, kw_only=True)
class Spread:
    """How much users and items differ before anything is known of them, in log odds."""

    user: float
    """Standard deviation of users' generosity."""
    item: float
    """Standard deviation of items' quality."""
    taste: float = 1.0
    """Standard deviation of the sum over factors of taste."""
    factors: int = 0


@dataclass(frozen=True, eq=False)
class Pairs:
    """Pairs of users and items, and an answer about each."""

    user: I32
    item: I32
    answer: Mask
    is_chosen: Mask
    """Which pairs users chose themselves: their level is another one."""
    shape: tuple[int, int]
    """How many users and items there are."""


def fitted_chances(
    pairs: Pairs, spread: Spread, *, hint: F64 | None = None, chosen: bool = False
) -> F64:
    """Fit the chance of the answer yes for all users and items, by the answers about some pairs.

    Log odds are the sum of a level, the user's generosity, the item's quality and a product of
    factors of both, and of the hint times a weight. Pairs that users chose have a level of their
    own. Effects and factors are drawn to 0 by normal distributions with the standard deviations of
    `spread`; the fit is the most probable one.

    Parameters
    ----------
    pairs
        The answers.
    spread
        How much users and items differ.
    hint
        [users, items]: what else speaks for the answer, on a scale of its own; the weight is
        fitted.
    chosen
        Return chances at the level of pairs that users chose, instead of those drawn at random.

    Examples
    --------
    >>> import numpy as np
    >>> from reliability.preferences import Pairs, Spread, fitted_chances
    >>> rng = np.random.default_rng(1)
    >>> user, item = rng.integers(50, size=3000), rng.integers(20, size=3000)
    >>> liked = rng.random(3000) < np.where(item < 10, 0.8, 0.2)
    >>> pairs = Pairs(user, item, liked, np.zeros(3000, bool), (50, 20))
    >>> chance = fitted_chances(pairs, Spread(user=0.5, item=1))
    >>> bool(chance[:, :10].min() > chance[:, 10:].max())
    True
    """
    rng = generator(0, "self-test", "preferences")
    width = max(spread.factors, 1) ** -0.25 * spread.taste**0.5
    sides = []
    for number, size in enumerate(pairs.shape):
        side = np.ones((size, EFFECTS + spread.factors))
        side[:, EFFECTS:] = width * rng.standard_normal((size, spread.factors))
        # The other column stays one: it stands beside the other side's effect.
        side[:, number] = 0.0
        sides.append(side)
    effects = spread.user, spread.item
    priors = [np.array([effect, *[width] * spread.factors], np.float64) ** -2 for effect in effects]
    shared = _shared(pairs, hint)
    weights = np.zeros(shared.shape[1])
    with one_blas_thread():
        for _ in range(ROUNDS):
            weights += _shared_step(pairs, sides, shared, weights)
            for side, prior in enumerate(priors):
                _side_step(side, pairs, sides, shared @ weights, prior)
        odds = weights[int(chosen)] + sides[0] @ sides[1].T
    if hint is not None:
        odds += weights[-1] * hint
    result: F64 = 1 / (1 + np.exp(-odds))
    return result


def _shared(pairs: Pairs, hint: F64 | None) -> F64:
    """Return, by pair, what has the same weight for all: both levels, and the hint."""
    columns = [~pairs.is_chosen, pairs.is_chosen]
    if hint is not None:
        columns.append(hint[pairs.user, pairs.item])
    return np.stack(columns, axis=1).astype(np.float64)


def _chance(pairs: Pairs, sides: list[F64], base: F64) -> F64:
    """Return the chance of yes of each pair that has an answer."""
    odds = base + (sides[0][pairs.user] * sides[1][pairs.item]).sum(axis=1)
    result: F64 = 1 / (1 + np.exp(-odds))
    return result


def _shared_step(pairs: Pairs, sides: list[F64], shared: F64, weights: F64) -> F64:
    """Return one of Newton's steps for what has the same weight for all."""
    chance = _chance(pairs, sides, shared @ weights)
    slope = shared.T @ (pairs.answer - chance)
    bend = (shared * (chance * (1 - chance))[:, None]).T @ shared
    # Without chosen pairs their level stays 0.
    step = np.linalg.solve(bend + 1e-9 * np.eye(len(bend)), slope)
    result: F64 = np.clip(step, -1, 1)
    return result


def _side_step(side: int, pairs: Pairs, sides: list[F64], base: F64, prior: F64) -> None:
    """Take one of Newton's steps for all users or for all items, each on its own."""
    numbers = pairs.user, pairs.item
    fitted = [side, *range(EFFECTS, sides[side].shape[1])]
    changed, row = sides[side], numbers[side]
    known = sides[1 - side][numbers[1 - side]][:, fitted]
    chance = _chance(pairs, sides, base)
    error, weight = pairs.answer - chance, chance * (1 - chance)
    width, size = len(fitted), len(changed)
    slope, bend = np.empty((size, width)), np.empty((size, width, width))
    for a in range(width):
        slope[:, a] = np.bincount(row, error * known[:, a], size)
        for b in range(a + 1):
            products = weight * known[:, a] * known[:, b]
            bend[:, a, b] = bend[:, b, a] = np.bincount(row, products, size)
    slope -= prior * changed[:, fitted]
    bend += np.diag(prior)
    changed[:, fitted] += np.clip(np.linalg.solve(bend, slope[:, :, None])[:, :, 0], -1, 1)
