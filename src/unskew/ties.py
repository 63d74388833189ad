"""From scores to an order: the only place where ties are broken.

Tie policies:

`id`
    Ascending id (integers by value, text by code point): the default for scores.
`trec`
    As trec_eval: the score as a 32-bit float, then ids descending as strings.
`random`
    A hash of seed, user and item: reproducible, the same for every system.
`input`
    The order in which the rows came.

`expected` is no order: `judge` takes it, and metrics are averaged over all orders of equal scores.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass

import numpy as np
import polars as pl

from unskew.arrays import F64, I32, I64, frozen
from unskew.checks import choose
from unskew.data.groups import does_numpy_sort, sort_groups
from unskew.data.ratings import Ids
from unskew.engine.rng import draw

TIES = ("id", "trec", "random", "input")
MODEL_TIES = ("id", "random")
"""Those for equal scores that a model gives: no file has an order of them."""
EXPECTED = "expected"
"""No order of equal scores: the mean over all of them."""


@dataclass(frozen=True)
class TieCounts:
    """Equal scores of lists."""

    rise: int
    """The first slot whose score exceeds the one above it: not ranked by score; -1 if none."""
    tied: int
    """Slots with the score of one next to them."""
    at_end: int
    """Lists of two or more places that end in equal scores."""
    constant: int
    """Lists of two or more places whose first and last score, and the one above it, are equal."""


@dataclass(frozen=True)
class ReadingCounts:
    """What was left out of lists when they were read, and their equal scores."""

    duplicates: int = 0
    """Places dropped because their list had the item already."""
    duplicate_lists: int = 0
    """Lists that lost some."""
    without_score: int = 0
    """Rows dropped because their score was missing."""
    was_scored: bool = False
    """Whether scores ranked the lists."""
    ties: TieCounts | None = None
    """Of the scores that ranked them, where these are not kept."""


def order_by_score(
    start: I64, score: F64, item: I32, users: Ids, items: Ids, ties: str, seed: int
) -> I64 | None:
    """Return the order that ranks each list by descending score, or None if it has it already.

    Parameters
    ----------
    start
        Where each list starts.
    score, item
        One entry per row, list by list.
    users, items
        The ids of the lists' users and behind `item`.
    ties
        One of `TIES`.
    seed
        For `random`.
    """
    choose("ties", ties, TIES)
    with np.errstate(over="ignore"):  # beyond 32 bits all scores are infinite, as in trec_eval
        key = -(score.astype(np.float32).astype(np.float64) if ties == "trec" else score)
    if ties == "id":
        tie = item.astype(np.int64)
    elif ties == "trec":
        tie = _descending_as_text(items)[item]
    elif ties == "random":
        user = np.repeat(own_number(users), np.diff(start))
        bits = draw(seed, "ties", user, own_number(items)[item])
        tie = (bits >> np.uint64(1)).astype(np.int64)
    else:
        tie = np.empty(0, np.int64)
    order, changed = sort_groups(start, frozen(key), frozen(tie))
    return order if changed else None


def are_places(start: I64, rank: I64) -> bool:
    """Tell whether each list's ranks are its places as they stand: 1, 2, … or 0, 1, …."""
    from unskew.data import kernels

    return not rank.size or (
        int(rank[0]) in (0, 1) and kernels.are_places(frozen(start), frozen(rank), int(rank[0]))
    )


def order_by_rank(start: I64, rank: I64) -> I64:
    """Return the order that puts each list's rows by ascending rank."""
    from unskew.data import kernels

    order = np.empty(rank.size, np.int64)
    if does_numpy_sort(rank.size) or not kernels.place_ranks(frozen(start), frozen(rank), order):
        order, _ = sort_groups(start, frozen(rank), frozen(np.empty(0, np.int64)))
    return order


def own_number(ids: Ids) -> I64:
    """Return a number of each raw id that does not depend on which other ids there are."""
    if ids.kind == "integer":
        return ids.values.to_numpy()
    digests = (hashlib.blake2b(text.encode(), digest_size=8).digest() for text in ids.values)
    return np.frombuffer(b"".join(digests), np.dtype("<i8"))


def _descending_as_text(ids: Ids) -> I64:
    """Return each id's place when all are sorted as strings, descending."""
    position = np.empty(len(ids), np.int64)
    text = ids.values.cast(pl.String)
    position[text.arg_sort(descending=True).to_numpy()] = np.arange(len(ids))
    return position
