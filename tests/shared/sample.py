"""A small built-in sample: ratings of a simulated shop and the lists of three systems.

People discover popular items far more often than others, and rate what they discover. The
systems: `random`, `popular` (most training ratings first) and `personal` (each user's taste, with
some error). Nothing is tuned to an outcome; the seed fixes everything.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import polars as pl

from unskew.engine.rng import generator


@dataclass(frozen=True)
class Sample:
    """Training and test ratings, and the runs of three systems."""

    train: pl.DataFrame
    test: pl.DataFrame
    runs: dict[str, pl.DataFrame]


def sample(users: int = 600, items: int = 300, depth: int = 50, seed: int = 7) -> Sample:
    """Build the sample.

    Examples
    --------
    >>> from shared.sample import sample
    >>> sorted(sample().runs)
    ['personal', 'popular', 'random']
    """
    rng = generator(seed, "sample")
    taste = rng.normal(size=(users, 4)) @ rng.normal(size=(4, items)) / 2
    quality = rng.normal(size=items)
    liking = taste + 0.5 * quality + rng.normal(scale=0.5, size=(users, items))
    stars = np.clip(np.round(3.2 + liking), 1, 5)
    discovery = np.minimum(0.75 * (1 + np.arange(items)) ** -0.7, 1)[rng.permutation(items)]
    rated = rng.random((users, items)) < discovery
    in_test = rated & (rng.random((users, items)) < 0.25)
    in_train = rated & ~in_test
    popularity = in_train.sum(axis=0)
    scores = {
        "random": rng.random((users, items)),
        "popular": np.broadcast_to(popularity + rng.random(items) / 2, (users, items)),
        "personal": taste + rng.normal(scale=0.8, size=(users, items)),
    }
    runs = {name: _lists(score, in_train, depth) for name, score in scores.items()}
    return Sample(_table(in_train, stars), _table(in_test, stars), runs)


def _table(mask: np.ndarray, stars: np.ndarray) -> pl.DataFrame:
    user, item = np.nonzero(mask)
    return pl.DataFrame(
        {"user": user + 1, "item": item + 1, "rating": stars[mask].astype(np.int64)}
    )


def _lists(score: np.ndarray, seen: np.ndarray, depth: int) -> pl.DataFrame:
    """Rank every user's unseen items by score."""
    order = np.argsort(np.where(seen, -np.inf, score), axis=1, kind="stable")[:, ::-1][:, :depth]
    user = np.repeat(np.arange(score.shape[0]), depth)
    item = order.ravel()
    frame = pl.DataFrame(
        {
            "user": user + 1,
            "item": item + 1,
            "rank": np.tile(np.arange(1, depth + 1), score.shape[0]),
            "score": score[user, item].round(6),
        }
    )
    return frame.filter(pl.Series(~seen[user, item]))
