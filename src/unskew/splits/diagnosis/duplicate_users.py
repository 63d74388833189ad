"""Near-duplicate users: other accounts in training with the history of a test user.

Candidates are pairs of accounts whose weighted min-hashes agree; rare items weigh more. A candidate
counts if its overlap is beyond chance even among people who share its rarest items: the chance that
such a person holds each item, gives it the same value, and does so at the same time apart, is taken
from the others who do. So neither a few fans of blockbusters nor the followers of a series are
called duplicates.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from unskew.arrays import F64, I32, I64, U32, U64, Mask, frozen
from unskew.data.groups import grouped_order
from unskew.data.ratings import Ratings
from unskew.engine.rng import key_of
from unskew.engine.threads import map_blocks
from unskew.report.text import counted
from unskew.splits.diagnosis.check import Number, Reading, by_share, percent, rule
from unskew.splits.diagnosis.parts import DAY, SplitParts, starts
from unskew.splits.diagnosis.thresholds import (
    COPY_ALIKE,
    COPY_ITEMS,
    COPY_MARGIN,
    COPY_OTHERS,
)

BANDS, WIDTH = 24, 4
"""Two histories are compared if one of 24 groups of 4 min-hashes is equal."""
CROWD = 64
"""A group of min-hashes that more pairs than this share is common, and is passed over."""
CLOSEST = 20_000
"""The most pairs that are looked at closely: those with the largest overlap."""
SIMILAR = 0.5
"""The least share of common items among all items of two histories."""
JITTER_DAYS, JITTER_SHARE = 2, 0.01
"""Times of a copy may be moved, all alike, and each by so many days, or this share of the log."""
USERS, _PAIRS = 4096, 64
_NEVER = np.float32(np.inf).view(np.uint32)


class DuplicateUsers(NamedTuple):
    """Pairs of accounts with nearly the same history."""

    copy: I32
    """The account in training."""
    user: I32
    """The test user."""
    decades: F64
    """How improbable the overlap is, in powers of ten."""
    exposed: I64
    """Test rows of the user whose item the copy has in training."""
    compared: int
    """Pairs that were looked at closely."""


@rule
def duplicate_users(parts: SplitParts) -> Reading:
    """Look for accounts in training that are near-duplicates of test users."""
    result = find_duplicates(parts.train, parts.test)
    users, rows = np.unique(result.user), 0
    for user in users:
        rows += int(result.exposed[result.user == user].max())
    share = rows / len(parts.test)
    counts: dict[str, Number] = {
        "test_users": int(users.size),
        "pairs": int(result.user.size),
        "exposed_test_rows": rows,
        "compared": result.compared,
        "examples": ", ".join(
            f"{parts.train.users.values[int(u)]} ~ {parts.train.users.values[int(v)]}"
            for u, v in zip(result.copy[:5], result.user[:5], strict=True)
        ),
    }
    if not users.size:
        return Reading(
            "ok", 0.0, "No account in training is a near-duplicate of a test user.", counts
        )
    number = counted(int(users.size), "test user has", "test users have")
    sentence = (
        f"{number} a near-duplicate in training: another account with nearly the same items, "
        f"beyond chance. These accounts hold {percent(share)} of all test rows."
    )
    light = by_share(share)
    return Reading("look" if light == "ok" else light, share, sentence, counts)


def find_duplicates(train: Ratings, test: Ratings) -> DuplicateUsers:
    """Return the pairs of a training account and a test user that are near-duplicates.

    Parameters
    ----------
    train, test
        Under the same ids.
    """
    from unskew.splits.diagnosis import duplicate_user_kernels as kernels

    candidates = _candidates(train, test)
    sizes = kernels.overlaps(candidates, train.start, train.item, test.start, test.item)
    close = _close(candidates, sizes, train, test)
    pairs = candidates[close]
    none = DuplicateUsers(
        np.zeros(0, np.int32), np.zeros(0, np.int32), np.zeros(0), np.zeros(0, np.int64),
        int(candidates.shape[0]),
    )  # fmt: skip
    if not pairs.shape[0]:
        return none
    evidence = _evidence(pairs, train, test)
    decades, others, alike = evidence.T
    trained, tested = (int(np.count_nonzero(np.diff(part.start))) for part in (train, test))
    needed = np.log10(max(trained * tested, 1)) + COPY_MARGIN
    real = (decades >= needed) & (alike <= np.maximum(2.0, COPY_OTHERS * others))
    exposed = sizes[close][real, 0]
    return DuplicateUsers(
        pairs[real, 0], pairs[real, 1], decades[real], exposed, int(candidates.shape[0])
    )


def _evidence(pairs: I32, train: Ratings, test: Ratings) -> F64:
    """Return for each pair how improbable it is, how many others there are, and how many alike."""
    from unskew.splits.diagnosis import duplicate_user_kernels as kernels
    from unskew.splits.diagnosis.kernels import UserRows

    times, width = times_of(train, test)
    trained, tested = (
        UserRows(part.start, part.item, frozen(part.value), time)
        for part, time in zip((train, test), times, strict=True)
    )
    start, size = np.zeros(train.start.size, np.int64), len(train) + len(test)
    item, value, time = np.empty(size, np.int32), np.empty(size), np.empty(size, np.int64)
    kernels.united(trained, tested, UserRows(start, item, value, time))
    union = UserRows(frozen(start), frozen(item), frozen(value), frozen(time))
    item = union.item[: union.start[-1]]
    item_start = starts(np.bincount(item, minlength=len(train.items)))
    user = np.repeat(np.arange(len(train.users), dtype=np.int32), np.diff(union.start))
    raters = frozen(user[grouped_order(item, item_start)])
    draws = draws_of(np.diff(item_start), np.diff(train.start)[pairs[:, 0]])
    evidence = np.empty((pairs.shape[0], 3))

    def weigh(low: int) -> None:
        rows = slice(low, low + _PAIRS)
        kernels.evidence(
            pairs[rows], trained, tested, union, item_start, raters, draws[rows], width, COPY_ALIKE,
            evidence[rows],
        )  # fmt: skip

    for _ in map_blocks(weigh, range(0, pairs.shape[0], _PAIRS), size=len(train)):
        pass
    return evidence


def times_of(train: Ratings, test: Ratings) -> tuple[tuple[I64, I64], int]:
    """Return the times of both parts, empty where one has none, and how much jitter is allowed."""
    none = frozen(np.zeros(0, np.int64))
    if train.time is None or test.time is None:
        return (none, none), 0
    bounds = [int(end) for time in (train.time, test.time) for end in (time.min(), time.max())]
    width = max(JITTER_DAYS * DAY, round(JITTER_SHARE * (max(bounds) - min(bounds))))
    return (frozen(train.time), frozen(test.time)), width


def draws_of(counts: I64, sizes: I64) -> F64:
    """Return how many draws by popularity give accounts of these sizes."""
    from unskew.splits.diagnosis import duplicate_user_kernels as kernels

    positive = counts[counts > 0].astype(np.float64)
    grid = np.unique(np.geomspace(1.0, min(float(sizes.max()), positive.size - 0.5), 30))
    numbers = np.empty(grid.size)
    kernels.draws_for(positive, float(positive.sum()), grid, numbers)
    return np.interp(sizes, grid, numbers)


def _close(candidates: I32, sizes: I64, train: Ratings, test: Ratings) -> I64:
    """Return the candidates with a large overlap: with the test part, or with all of a user."""
    if not candidates.shape[0]:
        return np.zeros(0, np.int64)
    in_test, in_train = sizes.T
    copy = np.diff(train.start)[candidates[:, 0]]
    of_test = np.diff(test.start)[candidates[:, 1]]
    of_all = of_test + np.diff(train.start)[candidates[:, 1]]
    in_all = in_test + in_train
    similar = np.maximum(in_test / (copy + of_test - in_test), in_all / (copy + of_all - in_all))
    enough = (similar >= SIMILAR) & (in_all >= COPY_ITEMS)
    rows = np.flatnonzero(enough)
    order = np.argsort(-similar[rows], kind="stable")[:CLOSEST]
    return np.sort(rows[order])


def _candidates(train: Ratings, test: Ratings) -> I32:
    """Return pairs (training account, test user) whose histories share a group of min-hashes."""
    from unskew.splits.diagnosis import duplicate_user_kernels as kernels

    trained, tested = np.diff(train.start), np.diff(test.start)
    chosen = (
        trained >= COPY_ITEMS,
        tested >= COPY_ITEMS,
        (tested > 0) & (trained > 0) & (tested + trained >= COPY_ITEMS),
    )
    left, of_test, of_all = _keys(_hashes(train, test), train, test, chosen)
    copies = np.flatnonzero(chosen[0]).astype(np.int32)
    users = np.concatenate([np.flatnonzero(mask) for mask in chosen[1:]]).astype(np.int32)
    right = np.hstack([of_test, of_all])
    pairs = [kernels.meet(left[band], right[band], CROWD) for band in range(BANDS)]
    a = np.concatenate([copies[index] for index, _ in pairs])
    b = np.concatenate([users[index] for _, index in pairs])
    code = np.unique((a.astype(np.int64) << 32 | b)[a != b])
    return np.ascontiguousarray(np.column_stack([code >> 32, code & 0xFFFFFFFF]).astype(np.int32))


def _hashes(train: Ratings, test: Ratings) -> U32:
    """Return for each item and hash an exponential time, the shorter the rarer, as its bits."""
    items = len(train.items)
    count = np.bincount(train.item, minlength=items) + np.bincount(test.item, minlength=items)
    return hash_items(count, len(train.users))


def hash_items(count: I64, users: int) -> U32:
    """Return the same, of items with so many ratings by so many users."""
    from unskew.splits.diagnosis import duplicate_user_kernels as kernels

    weight = np.maximum(np.log(max(users, 2) / np.maximum(count, 1)), 0.05)
    table = np.empty((count.size, BANDS * WIDTH), np.float32)
    kernels.exponentials(np.uint64(key_of(0, "diagnosis/duplicate-users")), weight, table)
    return frozen(table.view(np.uint32))


def _keys(
    table: U32, train: Ratings, test: Ratings, chosen: tuple[Mask, Mask, Mask]
) -> tuple[U64, U64, U64]:
    """Return keys of bands, equal where all min-hashes of the band are: one column per user.

    Of the training rows, of the test rows, and of all rows of the users chosen for each.
    """
    from unskew.splits.diagnosis import duplicate_user_kernels as kernels

    users, in_any = chosen[0].size, frozen(chosen[0] | chosen[1] | chosen[2])
    keys = tuple(np.empty((BANDS, int(mask.sum())), np.uint64) for mask in chosen)
    places = [np.append(0, np.cumsum(mask)) for mask in chosen]

    def fill(low: int) -> None:
        high = min(low + USERS, users)
        signatures = signature_of(low, high, in_any, [train, test], table)
        signatures.append(np.minimum(*signatures))
        for signature, mask, before, out in zip(signatures, chosen, places, keys, strict=True):
            rows = np.flatnonzero(mask[low:high])
            kernels.band_keys(signature, rows, WIDTH, int(before[low]), out)

    for _ in map_blocks(fill, range(0, users, USERS), size=len(train)):
        pass
    left, of_test, of_all = keys
    return left, of_test, of_all


def signature_of(low: int, high: int, mask: Mask, parts: list[Ratings], table: U32) -> list[U32]:
    """Return the min-hashes of each part's items: a row per user from `low` to before `high`."""
    from unskew.splits.diagnosis import duplicate_user_kernels as kernels

    signatures = [np.full((high - low, BANDS * WIDTH), _NEVER) for _ in parts]
    for part, signature in zip(parts, signatures, strict=True):
        kernels.lower_signatures(low, mask, part.start, part.item, table, signature)
    return signatures
