"""`lexirecall`: which of two systems places the worst-placed liked items better, user by user."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import polars as pl

from unskew.arrays import I8, I64, Mask
from unskew.checks import check_share, checked, choose
from unskew.errors import DataError, SettingError
from unskew.judging.judged import Judged, Need
from unskew.judging.numbering import several_refused
from unskew.judging.shape import LIKED, Matched, Scratch
from unskew.report.result import Result
from unskew.report.tables import Table
from unskew.report.text import counted, p_value
from unskew.stats.compare.comparison import IN_WORDS as NAMES
from unskew.stats.compare.user_distribution_result import share_cells
from unskew.stats.corrections import CORRECTIONS, correct
from unskew.stats.intervals.shares import paired_shares, sign_p
from unskew.stats.pairing import pairs_with

_CELLS = 1 << 21
"""Ranks compared at a time."""
_MISSING = np.iinfo(np.int32).max


@dataclass(frozen=True, eq=False)
class LexicographicRecall(Result):
    """Pairs of systems by the places of their worst-placed liked items. Made by `lexirecall`."""

    systems: tuple[str, ...]
    users: int
    confidence: float
    correction: str | None
    rows: pl.DataFrame = field(repr=False)
    """See `table`."""
    notes: tuple[str, ...] = ()

    def table(self) -> pl.DataFrame:
        """Return a row per pair: shares of users for whom a is `better`, `worse` or `tied`.

        With intervals (`better_low` …); `net`, better less worse, with its interval; `p` of the
        sign test, `p_corrected`, `significant`.
        """
        return self.rows

    def display_tables(self, digits: int | None = None) -> list[Table]:  # noqa: ARG002
        """Return the shares of all pairs."""
        level = f"{100 * self.confidence:g} %"
        header = ["pair", "a better", "b better", "tied", f"a − b, {level}", "p"]
        rows = [
            [f"a = {row['a']}, b = {row['b']}", *share_cells(row), p_value(row["p_corrected"])]
            for row in self.rows.iter_rows(named=True)
        ]
        title = f"lexirecall: {counted(self.users, 'user')} with a liked item"
        return [Table.of_rows(header, rows, left=(0,), title=title)]

    def _explanation(self) -> list[str]:
        correction = "not corrected"
        if self.correction is not None:
            correction = (
                f"corrected by {NAMES[self.correction]} over {counted(len(self.rows), 'pair')}"
            )
        return [
            "better: the worst-placed liked item stands higher; where places are equal the next "
            "one decides; liked items outside a list stand below all that are in it",
            f"shares: mid-p intervals, their difference by Tango's score, each at "
            f"{100 * self.confidence:g} %; p: exact sign test, {correction}",
        ]

    def _summary(self) -> str:
        return f"{counted(len(self.systems), 'system')}, {counted(self.users, 'user')}"

    def _content(self) -> dict[str, object]:
        return self._fields()


@checked
def lexirecall(
    judged: Judged,
    *,
    reference: str | None = None,
    confidence: float = 0.95,
    correction: str | None = "holm",
) -> LexicographicRecall:
    """Compare systems by lexicographic recall, user by user.

    Of a user's liked items, the one that a system places worst decides: the system that places it
    higher is better for this user. Where both places are equal the next worst decides, and so on.
    Liked items that a list does not hold share the place below it, so that the system whose list
    holds more of them is better. Recall asks for the same at one cutoff, and mostly sees ties.

    Parameters
    ----------
    judged
        Judged data (`judge`). Lists count in full, down to their depth.
    reference
        Compare all systems with this one only; all pairs unless given.
    confidence
        Of each interval; 1 - confidence is the level of significance.
    correction
        Of the p-values of several pairs: `holm`, `bonferroni`, `bh`, `by` or None.

    References
    ----------
    Diaz, Ekstrand and Mitra (arXiv 2302.11370): recall, robustness, and lexicographic evaluation.

    Examples
    --------
    >>> import unskew as us
    >>> test = {"user": [1, 1, 2], "item": [10, 20, 30], "rating": [5, 4, 4]}
    >>> runs = {"a": {1: [10, 7, 20], 2: [30]}, "b": {1: [10, 20], 2: [30]}}
    >>> us.stats.lexirecall(us.judge(test, runs, liked=4)).table().select("better", "worse").row(0)
    (0.0, 0.5)
    """
    check_share("confidence", confidence)
    if correction is not None:
        choose("correction", correction, CORRECTIONS)
    systems = tuple(judged.systems)
    if len(systems) < 2:
        raise SettingError(f"there is one system only, {systems[0]!r}: nothing to compare it with")
    pairs = pairs_with(reference, systems)
    _check(judged)
    ready = judged.prepare(Need(), judged.threads)
    users: Mask = ready.liked > 0
    if not users.any():
        raise DataError(f"no user has a liked item ({ready.relevance})")
    count = int(users.sum())
    rows = []
    for a, b in ((systems[i], systems[j]) for i, j in zip(pairs.one, pairs.other, strict=True)):
        sign = _signs(ready, a, b)[users]
        better, worse = int((sign > 0).sum()), int((sign < 0).sum())
        shares = paired_shares(better, worse, count, confidence)
        rows.append({"a": a, "b": b, "users": count, **shares, "p": sign_p(better, worse)})
    table = pl.DataFrame(rows)
    p = table["p"].to_numpy()
    corrected = p if correction is None else correct(p, correction)
    table = table.with_columns(p_corrected=pl.Series(corrected)).with_columns(
        significant=pl.col("p_corrected") <= 1 - confidence + 1e-12
    )
    without = int((users & ~ready.with_list).sum())
    notes = list(ready.notes)
    if without:
        notes.append(f"{counted(without, 'user has', 'users have')} no list of any system: tied")
    return LexicographicRecall(
        systems=systems,
        users=count,
        rows=table,
        confidence=confidence,
        correction=correction,
        notes=(str(ready.relevance), *notes),
    )


def _check(judged: Judged) -> None:
    if judged.is_tied:
        raise SettingError("lexirecall needs an order of tied items: leave out ties='expected'")
    if judged.occasions is not None:
        raise several_refused("users have several lists, and")
    if judged.targets is not None and np.unique(judged.owner).size < judged.owner.size:
        raise SettingError(
            "lexirecall compares one list per user; these target lists have several: use one of "
            "the designs that ask for all relevant items in one list"
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
    """Return the places of liked items from the worst up: missing ones, then those in the list."""
    hits = matched.hits(judged.judgments, lo, hi, scratch)
    owner = np.repeat(np.arange(hi - lo), np.diff(hits.start))
    liked = judged.view.label[hits.judgment] == LIKED
    rank, owner = hits.rank[liked].astype(np.int64), owner[liked]
    hit_counts = np.bincount(owner, minlength=hi - lo)
    places = np.full((hi - lo, width), _MISSING, np.int64)
    # Hits are in rank order: the last liked one of a list stands at the end of its row's start.
    start = np.cumsum(hit_counts) - hit_counts
    order = np.arange(rank.size) - start[owner]
    total = judged.liked[lo:hi].astype(np.int64)
    places[owner, total[owner] - 1 - order] = rank
    return places
