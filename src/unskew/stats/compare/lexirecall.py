"""`lexirecall`: which of two systems ranks the worst-ranked liked items higher, user by user."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from unskew.arrays import I8, I64, Mask
from unskew.checks import check_share, checked, choose
from unskew.errors import DataError, SettingError
from unskew.judging.judged import Judged, Need
from unskew.judging.shape import LIKED, Matched, Scratch
from unskew.report.columns import (
    HIGH,
    LOW,
    PAIR,
    QUANTITY,
    TEST,
    USERS,
    VALUE,
    Column,
    Method,
    Question,
)
from unskew.report.estimates import Estimates
from unskew.report.text import counted
from unskew.stats.compare.gaps import check_single_lists, with_p_values
from unskew.stats.corrections import CORRECTIONS, corrected_by
from unskew.stats.intervals.shares import paired_shares, sign_p
from unskew.stats.pairing import pairs_with

SHARES = (
    Column("better", "value", "a better", form="%"),
    Column("better_against", "value", "b better", form="%"),
    Column("tied", "value", form="%"),
    Column("net", "value", "a − b", form="+%"),
)
"""Shares of users who are better off with either system of a pair; `net`: a less b."""
LEXIRECALL = Question(
    name="lexirecall",
    columns=(*PAIR, QUANTITY, USERS, VALUE, LOW, HIGH, *TEST),
    quantities=SHARES,
    method=Method(
        estimand="the share of users whose liked items a system ranks higher",
        interval="mid-p, of a − b Tango's score",
        test="exact sign test",
    ),
)
_CELLS = 1 << 21
"""Ranks compared at a time."""
_MISSING = np.iinfo(np.int32).max


def share_rows(better: int, worse: int, users: int, level: float) -> list[dict[str, Any]]:
    """Return the rows of `SHARES`, from how many users are better off with a, and with b."""
    numbers = paired_shares(better, worse, users, level)
    names = zip(SHARES, ("better", "worse", "tied", "net"), strict=True)
    return [
        {
            "quantity": column.name,
            "value": numbers[name],
            "low": numbers[f"{name}_low"],
            "high": numbers[f"{name}_high"],
        }
        for column, name in names
    ]


@checked
def lexirecall(
    judged: Judged,
    *,
    against: str | None = None,
    level: float = 0.95,
    correction: str | None = "holm",
) -> Estimates:
    """Compare systems by lexicographic recall, user by user.

    Of a user's liked items, the one that a system ranks worst decides: the system that ranks it
    higher is better for this user. Where both ranks are equal the next worst decides, and so on.
    Liked items that a list does not hold share the rank below it, so that the system whose list
    holds more of them is better. Recall asks for the same at one cutoff, and mostly sees ties.

    Parameters
    ----------
    judged
        Judged data (`judge`). Lists count in full, down to their depth.
    against
        Compare all systems with this one only; all pairs unless given.
    level
        Of each interval; 1 - level is the level of significance.
    correction
        Of the p-values of several pairs: `holm`, `bonferroni`, `bh`, `by` or None.

    Returns
    -------
    Estimates
        Rows by pair and quantity: the shares of users for whom a is `better`, b is
        (`better_against`), neither is (`tied`), and `net`, the first less the second, with p.

    References
    ----------
    Diaz, Ekstrand and Mitra (arXiv 2302.11370): recall, robustness, and lexicographic evaluation.

    Examples
    --------
    >>> import unskew as us
    >>> test = {"user": [1, 1, 2], "item": [10, 20, 30], "rating": [5, 4, 4]}
    >>> runs = {"a": {1: [10, 7, 20], 2: [30]}, "b": {1: [10, 20], 2: [30]}}
    >>> result = us.stats.lexirecall(us.judge(test, runs, liked=4))
    >>> for quantity in ("better", "better_against", "tied"):
    ...     print(quantity, result.pair("a", "b", quantity=quantity).value)
    better 0.0
    better_against 0.5
    tied 0.5
    """
    check_share("level", level)
    if correction is not None:
        choose("correction", correction, CORRECTIONS)
    systems = tuple(judged.systems)
    if len(systems) < 2:
        raise SettingError(f"there is one system only, {systems[0]!r}: nothing to compare it with")
    pairs = pairs_with(against, systems)
    check_single_lists(judged, "lexirecall needs")
    ready = judged.prepare(Need(), judged.threads)
    users: Mask = ready.liked > 0
    if not users.any():
        raise DataError(f"no user has a liked item ({ready.relevance})")
    count = int(users.sum())
    rows, p = list[dict[str, object]](), []
    for first, second in zip(pairs.first, pairs.second, strict=True):
        keys = {"system": systems[first], "against": systems[second], "n": count}
        signs = _signs(ready, systems[first], systems[second])[users]
        better, worse = int((signs > 0).sum()), int((signs < 0).sum())
        rows += [keys | row for row in share_rows(better, worse, count, level)]
        p.append(sign_p(better, worse))
    rows[3::4] = with_p_values(rows[3::4], p, correction, level)
    without = int((users & ~ready.with_list).sum())
    no_list = f"{counted(without, 'user has', 'users have')} no list of any system: tied"
    family = counted(len(pairs), "pair")
    return Estimates.of_rows(
        LEXIRECALL,
        rows,
        method=replace(LEXIRECALL.method, level=level, correction=corrected_by(correction, family)),
        explanation=(
            "better: the worst-ranked liked item stands higher; where ranks are equal the next "
            "one decides; liked items outside a list stand below all that are in it",
        ),
        notes=(str(ready.relevance), *ready.notes, *[no_list] * (without > 0)),
        card={"against": against, "correction": correction},
    )


def _signs(judged: Judged, a: str, b: str) -> I8:
    """Return 1 where a is better for a list's user, -1 where b is, 0 where they are tied."""
    basis = judged.basis
    liked = np.asarray(basis.liked, np.int64)
    lists = liked.size
    sign = np.zeros(lists, np.int8)
    step = int(max(1, min(8192, _CELLS // max(int(liked.max(initial=1)), 1))))
    scratch = Scratch()
    for lo in range(0, lists, step):
        hi = min(lo + step, lists)
        width = int(liked[lo:hi].max(initial=0))
        if not width:
            continue
        first, second = (
            _worst_first(judged, judged.matched[name], lo, hi, width, scratch) for name in (a, b)
        )
        position = (first != second).argmax(axis=1)
        row = np.arange(hi - lo)
        sign[lo:hi] = np.sign(second[row, position].astype(np.int64) - first[row, position])
    return sign


def _worst_first(
    judged: Judged, matched: Matched, lo: int, hi: int, width: int, scratch: Scratch
) -> I64:
    """Return the ranks of liked items from the worst up: missing ones, then those in the list."""
    hits = matched.hits(judged.judgments, lo, hi, scratch)
    owner = np.repeat(np.arange(hi - lo), np.diff(hits.start))
    liked = judged.view.label[hits.judgment] == LIKED
    rank, owner = hits.rank[liked].astype(np.int64), owner[liked]
    hit_counts = np.bincount(owner, minlength=hi - lo)
    ranks = np.full((hi - lo, width), _MISSING, np.int64)
    # Hits are in rank order: the last liked one of a list stands at the end of its row's start.
    start = np.cumsum(hit_counts) - hit_counts
    order = np.arange(rank.size) - start[owner]
    total = judged.liked[lo:hi].astype(np.int64)
    ranks[owner, total[owner] - 1 - order] = rank
    return ranks
