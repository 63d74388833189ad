"""Groups of near-duplicate accounts within one set of ratings: households, clones, test accounts.

Candidates are pairs of accounts whose weighted min-hashes agree, as where accounts in training are
compared with test users. A pair is one of near-duplicates if its overlap is beyond chance among
people who share its rarest items, and, where values tell people apart, if it agrees in most values.
"""

from __future__ import annotations

import numpy as np

from unskew.arrays import I32, I64, U64, frozen
from unskew.data.groups import grouped_order
from unskew.data.ratings import Ratings
from unskew.engine.threads import map_blocks
from unskew.splits.diagnosis.duplicate_users import (
    BANDS,
    CLOSEST,
    SIMILAR,
    USERS,
    WIDTH,
    draws_of,
    hash_items,
    signature_of,
    times_of,
)
from unskew.splits.diagnosis.parts import starts
from unskew.splits.diagnosis.thresholds import COPY_ITEMS, COPY_MARGIN

CROWD = 8
"""Of accounts with one key, so many are compared with each other; of more, neighbours are."""


def duplicate_groups(ratings: Ratings) -> I32:
    """Return for each user the first account of its group of near-duplicates: mostly the user.

    Parameters
    ----------
    ratings
        In which accounts are compared; accounts with fewer than 8 ratings are in no group.
    """
    parent = np.arange(len(ratings.users), dtype=np.int32)
    users = np.flatnonzero(np.diff(ratings.start) >= COPY_ITEMS).astype(np.int32)
    if users.size < 2:
        return parent
    pairs = _similar(_candidates(ratings, users), ratings)
    if pairs.shape[0]:
        _join(pairs, ratings, float(users.size), parent)
    return parent


def _join(pairs: I32, ratings: Ratings, users: float, parent: I32) -> None:
    """Join the accounts of those pairs that are beyond chance."""
    from unskew.splits.diagnosis import duplicate_group_kernels as kernels
    from unskew.splits.diagnosis.kernels import UserRows

    times, width = times_of(ratings, ratings)
    rows = UserRows(ratings.start, ratings.item, frozen(ratings.value), times[0])
    item_start = starts(np.bincount(ratings.item, minlength=len(ratings.items)))
    raters = frozen(ratings.user[grouped_order(ratings.item, item_start)])
    draws = draws_of(np.diff(item_start), np.diff(ratings.start)[pairs[:, 0]])
    duplicates = 1.0
    for _ in range(2):
        # As by Benjamini and Hochberg: among many duplicates less evidence makes another one sure.
        needed = float(np.log10(users * (users - 1) / 2 / duplicates)) + COPY_MARGIN
        kernels.join(pairs, rows, item_start, raters, draws, width, needed, parent)
        size = np.bincount(parent).astype(np.float64)
        duplicates = max(float((size * (size - 1)).sum()) / 2, 1.0)
        if duplicates == 1.0:
            break


def _similar(pairs: I32, ratings: Ratings) -> I32:
    """Return the similar candidates, the most similar first, the larger account of each first."""
    from unskew.splits.diagnosis import duplicate_user_kernels as kernels

    start, item = ratings.start, ratings.item
    size = np.diff(start)
    overlap = kernels.overlaps(pairs, start, item, start, item)[:, 0]
    similar = overlap / (size[pairs].sum(axis=1) - overlap)
    rows = np.flatnonzero((similar >= SIMILAR) & (overlap >= COPY_ITEMS))
    chosen = pairs[rows[np.argsort(-similar[rows], kind="stable")[:CLOSEST]]]
    is_smaller = size[chosen[:, 0]] < size[chosen[:, 1]]
    chosen[is_smaller] = chosen[is_smaller][:, ::-1]
    return np.ascontiguousarray(chosen)


def _candidates(ratings: Ratings, users: I32) -> I32:
    """Return pairs of accounts whose histories share a group of min-hashes, in order."""
    from unskew.splits.diagnosis import duplicate_group_kernels as kernels

    keys = _keys(ratings, users)
    found: list[I64] = []
    for key in keys:
        pairs = kernels.meet_within(key, np.argsort(key, kind="stable"), CROWD)
        found.append(users[pairs[:, 0]].astype(np.int64) << 32 | users[pairs[:, 1]])
    code = np.unique(np.concatenate(found))
    return np.ascontiguousarray(np.column_stack([code >> 32, code & 0xFFFFFFFF]).astype(np.int32))


def _keys(ratings: Ratings, users: I32) -> U64:
    """Return keys of bands, equal where all min-hashes of the band are: one column per account."""
    from unskew.splits.diagnosis import duplicate_user_kernels as kernels

    count = np.bincount(ratings.item, minlength=len(ratings.items))
    table = hash_items(count, len(ratings.users))
    keys = np.empty((BANDS, users.size), np.uint64)
    is_compared = np.zeros(len(ratings.users), np.bool_)
    is_compared[users] = True
    before = np.append(0, np.cumsum(is_compared))

    def fill(low: int) -> None:
        high = min(low + USERS, is_compared.size)
        signature = signature_of(low, high, frozen(is_compared), [ratings], table)[0]
        rows = np.flatnonzero(is_compared[low:high])
        kernels.band_keys(signature, rows, WIDTH, int(before[low]), keys)

    for _ in map_blocks(fill, range(0, is_compared.size, USERS), size=len(ratings)):
        pass
    return keys
