"""`item_group_gaps`: how groups of items fare inside lists: shown, liked, found."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import polars as pl

from unskew.arrays import F64, I32, I64, Mask
from unskew.checks import as_count, check_share, checked, choose
from unskew.data.summary import item_counts
from unskew.errors import DataError, SettingError, unknown_name
from unskew.judging.judged import Judged, Need
from unskew.judging.numbering import several_refused
from unskew.judging.shape import BLOCK, LIKED, Matched, Scratch
from unskew.report.result import Result
from unskew.report.tables import Table
from unskew.report.text import counted, interval, number, p_value
from unskew.stats.compare.comparison import IN_WORDS
from unskew.stats.compare.group_gaps_result import LEAST_OTHERS, LEAST_USERS
from unskew.stats.corrections import CORRECTIONS, correct
from unskew.stats.inequality import others
from unskew.stats.intervals.skewed import MeanEstimates, estimates, intervals, p_values_of
from unskew.stats.segments import (
    GROUPS,
    MOST_GROUPS,
    OTHER,
    UNKNOWN,
    UserColumn,
    column_of_table,
    is_column,
    quantile_groups,
    read_column,
    text_groups,
)


@dataclass(frozen=True, eq=False)
class ItemGroupGaps(Result):
    """Groups of items inside the first k places of lists. Made by `item_group_gaps`."""

    systems: tuple[str, ...]
    by: str
    """What items are divided by, in words."""
    rule: str
    """How the groups are formed."""
    groups: tuple[str, ...]
    k: int
    users: int
    """Users with a liked item."""
    correction: str | None
    confidence: float
    """Of all intervals of a kind together."""
    rows: pl.DataFrame = field(repr=False)
    """See `table`."""
    notes: tuple[str, ...] = ()

    def table(self) -> pl.DataFrame:
        """Return a row per system and group.

        `items` of the group and `users` who like some of them; `exposure`, the group's mean share
        of the first k places, `liked_share`, its mean share of a user's liked items, and
        `exposure_gap`, the first less the second over users who have both; `recall` of its liked
        items, `recall_rest` of all other liked items, and `recall_gap`; each with the ends of its
        interval (`…_low`, `…_high`); `p`, `p_corrected`, `significant` of the gap in recall.
        """
        return self.rows

    def display_tables(self, digits: int | None = None) -> list[Table]:
        """Return places, then recall."""
        digits = self.digits if digits is None else digits
        together = f"{100 * self.confidence:g} % intervals"
        places = ["system", "group", "items", "share of places", together]
        places += ["share of liked", "gap", together]
        headers = ["system", "group", "users", "recall", together, "recall of the rest", "gap"]
        headers += [together, "p"]
        rows, recalls = [], []
        for row in self.rows.iter_rows(named=True):
            names = [row["system"], row["group"]]
            rows.append(
                [
                    *names,
                    f"{row['items']:,}",
                    *_both(row, "exposure", digits),
                    number(row["liked_share"], digits),
                    *_both(row, "exposure_gap", digits, signed=True),
                ]
            )
            recalls.append(
                [
                    *names,
                    f"{row['users']:,}",
                    *_both(row, "recall", digits),
                    number(row["recall_rest"], digits),
                    *_both(row, "recall_gap", digits, signed=True),
                    p_value(row["p_corrected"]),
                ]
            )
        title = f"the first {counted(self.k, 'place')} of lists by {self.by} of items"
        recall = f"Recall@{self.k} of liked items"
        return [
            Table.of_rows(places, rows, left=(0, 1), title=title, once=True),
            Table.of_rows(headers, recalls, left=(0, 1), title=recall, once=True),
        ]

    def _explanation(self) -> list[str]:
        correction = "not corrected"
        if self.correction is not None:
            correction = f"corrected by {IN_WORDS[self.correction]} over groups and systems"
        return [
            self.rule,
            "share of places, of liked items: means over users with a list, with a liked item; "
            "their gap over users with both; recall: mean over users who like an item of the group",
            f"intervals: over users, all of a kind together at {100 * self.confidence:g} % "
            "(Bonferroni), t without skewness (Hall); none with fewer than "
            f"{LEAST_USERS} users, or fewer than {LEAST_OTHERS} whose value is not the most common",
            f"p: the gap in recall is 0, Student's t with and without skewness; {correction}",
            "liked items are those that users rated: a gap in recall can come from what was rated",
        ]

    def _summary(self) -> str:
        return (
            f"{counted(len(self.systems), 'system')}, {counted(len(self.groups), 'group')} of items"
        )

    def _content(self) -> dict[str, object]:
        return self._fields()


def _both(
    row: Mapping[str, Any], name: str, digits: int, *, signed: bool = False
) -> tuple[str, str]:
    """Return a value and its interval."""
    limits = interval(row[f"{name}_low"], row[f"{name}_high"], digits, signed=signed)
    return number(row[name], digits, signed=signed), limits


@dataclass(frozen=True, eq=False)
class ItemGroups:
    """Items divided into groups."""

    by: str
    rule: str
    code: I64
    """The group of each item."""
    names: tuple[str, ...]
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, eq=False)
class _ItemCounts:
    """Users x groups."""

    shown: F64
    """Items of the group among the first k of the user's list."""
    hits: F64
    """Liked ones of these."""
    liked: F64
    """Liked items of the group in the test."""


@checked
def item_group_gaps(
    judged: Judged,
    by: object,
    k: int = 10,
    *,
    groups: int | None = None,
    correction: str | None = "holm",
    confidence: float = 0.95,
) -> ItemGroupGaps:
    """Compare groups of items inside the first k places of lists, system by system.

    Of each group its share of the places, its share of the liked items and the gap between the
    two; the recall of its liked items, that of all other liked items and the gap between these.
    All are means over users, with intervals over users.

    Parameters
    ----------
    judged
        Judged data (`judge`).
    by
        What divides items: `popularity` (number of training ratings; of test ratings where
        training is not known), `FILE:COLUMN` of a file of items, or a table with a column of
        items and one other column. Numbers are cut into quantile groups, texts are groups (the 20
        most frequent; all others are `other`).
    k
        How many places of each list count.
    groups
        Into how many quantile groups of items numbers are cut, 4 unless given.
    correction
        Of p-values over all groups and systems: `holm`, `bonferroni`, `bh`, `by` or None.
    confidence
        Of all intervals of a kind together (Bonferroni).

    Examples
    --------
    >>> import unskew as us
    >>> test = {"user": [1, 1, 2], "item": [10, 20, 30], "rating": [5, 5, 4]}
    >>> judged = us.judge(test, {"mine": {1: [10, 30], 2: [10, 30]}}, liked=4)
    >>> kind = {"item": [10, 20, 30], "kind": ["old", "new", "new"]}
    >>> us.stats.item_group_gaps(judged, kind, 2).table().select("group", "recall").rows()
    [('new', 0.5), ('old', 1.0)]
    """
    check_share("confidence", confidence)
    if correction is not None:
        choose("correction", correction, CORRECTIONS)
    cutoff = as_count("k", k)
    _check(judged)
    ready = judged.prepare(Need(scan=cutoff, top=cutoff), judged.threads)
    items = items_of(ready, by, groups)
    if not (ready.liked > 0).any():
        raise DataError(f"no user has a liked item ({ready.relevance})")
    parts = []
    for name, matched in ready.matched.items():
        parts.append(_rows(name, _count(ready, matched, items, cutoff), items))
    table = _together(parts, items, correction, confidence)
    return ItemGroupGaps(
        systems=tuple(ready.systems),
        by=items.by,
        rule=items.rule,
        groups=items.names,
        k=cutoff,
        users=int((ready.liked > 0).sum()),
        rows=table,
        correction=correction,
        confidence=confidence,
        notes=(str(ready.relevance), *ready.notes, *items.notes),
    )


def _check(judged: Judged) -> None:
    if judged.is_tied:
        raise SettingError("groups of items need an order of tied items: leave out ties='expected'")
    if judged.occasions is not None:
        raise several_refused("users have several lists, and")
    if judged.targets is not None and np.unique(judged.owner).size < judged.owner.size:
        raise SettingError(
            "groups of items need one list per user, and these target lists have several: use one "
            "of the designs that ask for all relevant items in one list"
        )


# Groups of items


def items_of(judged: Judged, by: object, groups: int | None) -> ItemGroups:
    """Divide the items of judgments, training ratings and lists."""
    parts = as_count("groups", GROUPS if groups is None else groups, 2)
    ids = judged.judgments.items
    if isinstance(by, str) and by == "popularity":
        train = judged.numbering.train
        source = judged.judgments if train is None else train
        word = "test" if train is None else "training"
        counts = item_counts(source).astype(np.float64)
        return _by_number(f"number of {word} ratings", counts, parts, "")
    if isinstance(by, str) and not is_column(by):
        raise unknown_name("by", by, ("popularity", "FILE:COLUMN"))
    column = read_column(by, "item") if isinstance(by, str) else column_of_table(by, "item")
    codes = column.users.codes(ids.values)
    if not (codes >= 0).any():
        raise DataError(
            f"{column.source}: none of its {counted(len(column.users), 'item')} is among the "
            f"{counted(len(ids), 'item')} of judgments and lists, such as {ids.values[0]!r}"
        )
    absent = f"not in {column.place}, or without {column.name}"
    if column.numbers is not None:
        return _by_number(column.title, column.numbers_of(codes), parts, absent)
    if groups is not None:
        raise SettingError(f"groups=… does nothing here: {column.title} holds text; leave it out")
    return _by_text(column, codes, absent)


def _by_number(by: str, values: F64, parts: int, absent: str) -> ItemGroups:
    is_known = ~np.isnan(values)
    code, names = quantile_groups(values, is_known, parts, is_time=False)
    rule = f"groups: {parts} parts of the items by {by}; items with equal values stay together"
    return _several(by, rule, code, names, absent)


def _by_text(column: UserColumn, codes: I32, absent: str) -> ItemGroups:
    code, names, merged = text_groups(column.texts_of(codes))
    rule = f"groups: {column.title}"
    if merged:
        rule += f"; {OTHER}: values beyond the {MOST_GROUPS} most frequent"
    return _several(column.title, rule, code, names, absent)


def _several(by: str, rule: str, code: I64, names: Sequence[str], absent: str) -> ItemGroups:
    """Give items without a value a group of their own; refuse a single group."""
    lost, named = code < 0, list(names)
    notes: tuple[str, ...] = ()
    if lost.any():
        label = UNKNOWN if UNKNOWN not in named else f"({UNKNOWN})"
        code = np.where(lost, len(named), code)
        named.append(label)
        notes = (f"{label}: {counted(int(lost.sum()), 'item')} {absent}",)
    if len(named) < 2:
        raise DataError(f"by=… gives one group of items only: there is nothing to compare ({rule})")
    return ItemGroups(by, rule, code.astype(np.int64), tuple(named), notes)


# Counts


def _count(judged: Judged, matched: Matched, items: ItemGroups, k: int) -> _ItemCounts:
    """Count, for each user and group, places, liked items among them, and all liked items."""
    groups, users = len(items.names), judged.liked.size
    listed, hits = np.zeros((users, groups)), np.zeros((users, groups))
    judgments, scratch = judged.judgments, Scratch()
    for lo in range(0, users, BLOCK):
        hi = min(lo + BLOCK, users)
        start = matched.start[lo:hi]
        length = np.minimum(matched.stop[lo:hi] - start, k)
        owner = np.repeat(np.arange(lo, hi), length)
        slot = np.repeat(start - (np.cumsum(length) - length), length) + np.arange(length.sum())
        group = items.code[matched.from_run[matched.run.item[slot]]]
        np.add.at(listed, (owner, group), 1.0)
        of = matched.hits(judgments, lo, hi, scratch)
        owner = np.repeat(np.arange(lo, hi), np.diff(of.start))
        keep = (judged.view.label[of.judgment] == LIKED) & (of.rank <= k)
        np.add.at(hits, (owner[keep], items.code[judgments.item[of.judgment[keep]]]), 1.0)
    liked = np.zeros((users, groups))
    mine = judged.view.label == LIKED
    np.add.at(liked, (judgments.user[mine], items.code[judgments.item[mine]]), 1.0)
    return _ItemCounts(listed, hits, liked)


# Estimates


@dataclass(frozen=True, eq=False)
class _GroupMean:
    """A mean over the users who count, and each user's influence on it."""

    value: float
    influence: F64
    users: int
    varied: int

    @property
    def is_known(self) -> bool:
        return self.users >= LEAST_USERS and self.varied >= LEAST_OTHERS


def _mean(values: F64, counts: Mask) -> _GroupMean:
    users = int(counts.sum())
    if not users:
        return _GroupMean(np.nan, np.zeros(values.size), 0, 0)
    mean = float(values[counts].mean())
    influence = np.where(counts, (values - mean) * (counts.size / users), 0.0)
    return _GroupMean(mean, influence, users, others(values[counts]))


def _estimate(value: float, influence: F64, users: int, *, is_difference: bool) -> MeanEstimates:
    n = influence.size
    variance = float((influence**2).sum()) / n**2 * users / max(users - 1, 1)
    third = float((influence**3).sum()) / n**3
    of = estimates(np.array(value), np.array(variance), np.array(third), np.array(users - 1.0))
    return replace(of, is_difference=is_difference)


def _rows(system: str, counts: _ItemCounts, items: ItemGroups) -> list[dict[str, Any]]:
    """Return a row per group, with estimates in place of intervals."""
    rows = []
    places, liked = counts.shown.sum(axis=1), counts.liked.sum(axis=1)
    listed, liking = places > 0, liked > 0
    size = np.bincount(items.code, minlength=len(items.names))
    for group, name in enumerate(items.names):
        with np.errstate(invalid="ignore", divide="ignore"):
            exposure = np.where(listed, counts.shown[:, group] / places, 0.0)
            demand = np.where(liking, counts.liked[:, group] / liked, 0.0)
            mine = counts.liked[:, group]
            here = np.where(mine > 0, counts.hits[:, group] / mine, 0.0)
            rest_liked = liked - mine
            rest_hits = counts.hits.sum(axis=1) - counts.hits[:, group]
            there = np.where(rest_liked > 0, rest_hits / rest_liked, 0.0)
        exposed = _mean(exposure, listed)
        gap = _mean(exposure - demand, listed & liking)
        recall, recall_rest = _mean(here, mine > 0), _mean(there, rest_liked > 0)
        rows.append(
            {
                "system": system,
                "group": name,
                "items": int(size[group]),
                "users": recall.users,
                "exposure": _single(exposed),
                "liked_share": _mean(demand, liking).value,
                "exposure_gap": _single(gap, is_difference=True),
                "recall": _single(recall),
                "recall_rest": recall_rest.value,
                "recall_gap": _gap(recall, recall_rest),
            }
        )
    return rows


def _single(of: _GroupMean, *, is_difference: bool = False) -> tuple[float, MeanEstimates | None]:
    if not of.is_known:
        return of.value, None
    return of.value, _estimate(of.value, of.influence, of.users, is_difference=is_difference)


def _gap(inside: _GroupMean, outside: _GroupMean) -> tuple[float, MeanEstimates | None]:
    value = inside.value - outside.value
    if not (inside.is_known and outside.is_known):
        return value, None
    users = min(inside.users, outside.users)
    return value, _estimate(value, inside.influence - outside.influence, users, is_difference=True)


def _together(
    parts: Sequence[list[dict[str, Any]]],
    items: ItemGroups,
    correction: str | None,
    confidence: float,
) -> pl.DataFrame:
    """Put systems together: intervals of a kind hold together, p-values are corrected."""
    rows = [row for part in parts for row in part]
    row_count = len(rows)
    once = len(parts) if len(items.names) == 2 else row_count
    frame: dict[str, list[Any]] = {name: [row[name] for row in rows] for name in rows[0]}
    for name in ("exposure", "exposure_gap", "recall", "recall_gap"):
        alone = once if name.endswith("gap") or name == "exposure" else row_count
        if name == "recall_gap":
            p = [np.nan if of is None else float(p_values_of(of)) for _, of in frame[name]]
        limits = [
            (np.nan, np.nan) if of is None else intervals(of, 1 - (1 - confidence) / alone)
            for _, of in frame[name]
        ]
        frame[name] = [value for value, _ in frame[name]]
        frame[f"{name}_low"] = [float(low) for low, _ in limits]
        frame[f"{name}_high"] = [float(high) for _, high in limits]
    for name in ("exposure", "recall"):  # shares
        frame[f"{name}_low"] = np.maximum(frame[f"{name}_low"], 0.0).tolist()
        frame[f"{name}_high"] = np.minimum(frame[f"{name}_high"], 1.0).tolist()
    frame["p"] = p
    frame["p_corrected"] = _corrected(np.array(p), len(parts), len(items.names), correction)
    table = pl.DataFrame(frame).with_columns(pl.selectors.float().fill_nan(None))
    alpha = 1 - confidence + 1e-12
    return table.with_columns(significant=(pl.col("p_corrected") <= alpha).fill_null(value=False))


def _corrected(p: F64, systems: int, groups: int, correction: str | None) -> list[float]:
    if correction is None:
        return [float(value) for value in p]
    table = p.reshape(systems, groups)
    # Two groups are one comparison, seen from both sides.
    once = table[:, :1] if groups == 2 else table
    corrected = np.broadcast_to(correct(once, correction), table.shape)
    return [float(value) for value in corrected.ravel()]
