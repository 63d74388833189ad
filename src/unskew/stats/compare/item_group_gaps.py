"""`item_group_gaps`: how groups of items fare inside lists: shown, liked, found."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from unskew.arrays import F64, I32, I64, Mask
from unskew.checks import as_count, check_share, checked, choose
from unskew.data.summary import item_counts
from unskew.errors import DataError, SettingError, unknown_name
from unskew.judging.judged import Judged, Need
from unskew.judging.shape import BLOCK, LIKED, Matched, Scratch
from unskew.report.columns import TEST, Column, Method
from unskew.report.estimates import Estimates
from unskew.report.text import counted
from unskew.stats.clusters import variance_of
from unskew.stats.compare.gaps import (
    HALL,
    NO_INTERVAL,
    TOO_FEW,
    Division,
    check_single_lists,
    has_interval,
    limits_of,
    question_of_groups,
    shared_level,
    with_p_values,
)
from unskew.stats.corrections import CORRECTIONS, corrected_by
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

ITEM_GROUPS = question_of_groups(
    facts=(Column("items", "count"),),
    name="what lists show of each group of items",
    quantities=(
        Column("exposure", "value"),
        Column("liked_share", "value", "share of liked"),
        Column("exposure_gap", "value", "gap", form="+"),
    ),
    method=Method(
        estimand="the share of a group of items in the lists, less its share of liked items",
        interval=HALL,
        together="Bonferroni over groups and systems",
        test="Student's t with and without skewness, of the gap in recall",
    ),
    display=("", "recall"),
)
ITEM_RECALL = question_of_groups(
    tests=TEST,
    name="recall of liked items",
    quantities=(
        Column("recall", "value"),
        Column("recall_rest", "value", "recall of the rest"),
        Column("recall_gap", "value", "gap", form="+"),
    ),
    method=replace(
        ITEM_GROUPS.method,
        estimand="the recall of a group's liked items, less that of all other liked items",
    ),
)


@checked
def item_group_gaps(
    judged: Judged,
    by: object,
    k: int = 10,
    *,
    groups: int | None = None,
    correction: str | None = "holm",
    level: float = 0.95,
) -> Estimates:
    """Compare groups of items inside the first k ranks of lists, system by system.

    Of each group its share of these ranks (exposure), its share of the liked items and the gap
    between the two; the recall of its liked items, that of all other liked items and the gap
    between these. All are means over users, with intervals over users.

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
        How many ranks of each list count.
    groups
        Into how many quantile groups of items numbers are cut, 4 unless given.
    correction
        Of p-values over all groups and systems: `holm`, `bonferroni`, `bh`, `by` or None.
    level
        Of all intervals of a kind together (Bonferroni).

    Returns
    -------
    Estimates
        Rows by system, group and quantity: `exposure`, the group's mean share of the first k
        ranks, `liked_share`, that of a user's liked items, and `exposure_gap`, the first less the
        second. The part `recall`: `recall` of the group's liked items, `recall_rest` of all others,
        and `recall_gap`, with p.

    Examples
    --------
    >>> import unskew as us
    >>> test = {"user": [1, 1, 2], "item": [10, 20, 30], "rating": [5, 5, 4]}
    >>> judged = us.judge(test, {"mine": {1: [10, 30], 2: [10, 30]}}, liked=4)
    >>> kind = {"item": [10, 20, 30], "kind": ["old", "new", "new"]}
    >>> gaps = us.stats.item_group_gaps(judged, kind, 2)
    >>> print(gaps.parts["recall"].display_tables()[0].to_text())
    system  group  users  recall  recall of the rest      gap  reason
    mine    new        2  0.5000              1.0000  −0.5000  too few users
            old        1  1.0000              0.5000  +0.5000  too few users
    """
    check_share("level", level)
    if correction is not None:
        choose("correction", correction, CORRECTIONS)
    cutoff = as_count("k", k)
    check_single_lists(judged, "groups of items need")
    ready = judged.prepare(Need(scan=cutoff, top=cutoff), judged.threads)
    items = items_of(ready, by, groups)
    if not (ready.liked > 0).any():
        raise DataError(f"no user has a liked item ({ready.relevance})")
    number, systems = len(items.names), len(ready.systems)
    # Two groups are one comparison, seen from both sides.
    comparisons = systems * (1 if number == 2 else number)
    level, level_of_means = (
        shared_level(level, count) for count in (comparisons, systems * number)
    )
    rows, recalls, p = list[dict[str, Any]](), list[dict[str, Any]](), []
    for name, matched in ready.matched.items():
        listed, hits, liked = _count(ready, matched, items, cutoff)
        for group in range(number):
            keys = {"system": name, "group": items.names[group]}
            size = {"items": int(np.count_nonzero(items.code == group))}
            rows += [keys | size | row for row in _exposure(listed, liked, group, level)]
            recall, gap = _recall(hits, liked, group, level, level_of_means)
            recalls += [keys | row for row in recall]
            p.append(gap)
    by_system = np.array(p).reshape(systems, number)
    recalls[2::3] = with_p_values(recalls[2::3], by_system, correction, level, groups=number)
    tested = int(np.isfinite(by_system[:, : comparisons // systems]).sum())
    question = replace(ITEM_GROUPS, name=f"the first {counted(cutoff, 'rank')} of lists")
    part = replace(ITEM_RECALL, name=f"recall@{cutoff} of liked items")
    return Estimates.of_rows(
        question,
        rows,
        method=replace(
            ITEM_GROUPS.method,
            level=level,
            correction=corrected_by(correction, f"{counted(tested, 'gap')} in recall"),
        ),
        explanation=(
            items.rule,
            "exposure, share of liked items: means over users with a list, with a liked item; "
            "their gap over users with both; recall: mean over users who like an item of the group",
            NO_INTERVAL,
            "liked items are those that users rated: a gap in recall can come from what was rated",
        ),
        notes=(str(ready.relevance), *ready.notes, *items.notes),
        parts={"recall": Estimates.of_rows(part, recalls, level=level)},
        card={
            "by": items.by,
            "rule": items.rule,
            "groups": items.names,
            "k": cutoff,
            "users": int((ready.liked > 0).sum()),
            "correction": correction,
        },
    )


# Groups of items


def items_of(judged: Judged, by: object, groups: int | None) -> Division:
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


def _by_number(by: str, values: F64, parts: int, absent: str) -> Division:
    code, names = quantile_groups(values, ~np.isnan(values), parts, is_time=False)
    rule = f"groups: {parts} parts of the items by {by}; items with equal values stay together"
    return _several(by, rule, code, names, absent)


def _by_text(column: UserColumn, codes: I32, absent: str) -> Division:
    code, names, merged = text_groups(column.texts_of(codes))
    rule = f"groups: {column.title}"
    if merged:
        rule += f"; {OTHER}: values beyond the {MOST_GROUPS} most frequent"
    return _several(column.title, rule, code, names, absent)


def _several(by: str, rule: str, code: I64, names: Sequence[str], absent: str) -> Division:
    """Give items without a value a group of their own; refuse a single group."""
    items = Division(of="items", by=by, rule=rule, code=code, names=tuple(names))
    items = items.complete(UNKNOWN, absent)
    if len(items.names) < 2:
        raise DataError(f"by=… gives one group of items only: there is nothing to compare ({rule})")
    return items


# Counts


def _count(judged: Judged, matched: Matched, items: Division, k: int) -> tuple[F64, F64, F64]:
    """Return users x groups: items among the first k of a list, liked ones of these, all liked."""
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
    return listed, hits, liked


# Estimates


@dataclass(frozen=True, eq=False)
class _GroupMean:
    """A mean over the users who count, and each user's influence on it."""

    value: float
    influence: F64
    users: int
    has_interval: bool
    is_difference: bool = False

    @classmethod
    def of(cls, values: F64, counts: Mask, *, is_difference: bool = False) -> _GroupMean:
        users = int(counts.sum())
        if not users:
            return cls(np.nan, np.zeros(values.size), 0, has_interval=False)
        mean = float(values[counts].mean())
        influence = np.where(counts, (values - mean) * (counts.size / users), 0.0)
        return cls(mean, influence, users, has_interval(values[counts]), is_difference)

    def less(self, second: _GroupMean) -> _GroupMean:
        """Return the difference of two means."""
        return _GroupMean(
            self.value - second.value,
            self.influence - second.influence,
            min(self.users, second.users),
            self.has_interval and second.has_interval,
            is_difference=True,
        )

    @property
    def estimate(self) -> MeanEstimates | None:
        """What its interval and its p follow from; None: too few users."""
        if not self.has_interval:
            return None
        n, users = self.influence.size, self.users
        variance = float(variance_of(self.influence, users)) / n**2
        third = float((self.influence**3).sum()) / n**3
        moments = (self.value, variance, third, users - 1.0)
        return replace(estimates(*map(np.array, moments)), is_difference=self.is_difference)

    def row(self, quantity: str, level: float | None = None) -> dict[str, Any]:
        """Return a row; a share stays between 0 and 1."""
        row = {"quantity": quantity, "n": self.users, "value": self.value}
        if level is None:
            return row
        if self.estimate is None:
            return row | {"note": TOO_FEW}
        limits = (-np.inf, np.inf) if self.is_difference else (0.0, 1.0)
        return row | limits_of(*intervals(self.estimate, level), *limits)


def _exposure(listed: F64, liked: F64, group: int, level: float) -> list[dict[str, Any]]:
    """Return the rows of a group's exposure, its share of liked items, and their gap."""
    has_list, has_liked = listed.sum(axis=1) > 0, liked.sum(axis=1) > 0
    exposure = _divided(listed[:, group], listed.sum(axis=1))
    demand = _divided(liked[:, group], liked.sum(axis=1))
    gap = _GroupMean.of(exposure - demand, has_list & has_liked, is_difference=True)
    return [
        _GroupMean.of(exposure, has_list).row("exposure", level),
        _GroupMean.of(demand, has_liked).row("liked_share"),
        gap.row("exposure_gap", level),
    ]


def _recall(
    hits: F64, liked: F64, group: int, level: float, level_of_means: float
) -> tuple[list[dict[str, Any]], float]:
    """Return the rows of the recall of a group and of all others, and p of their gap."""
    recall, outside = (
        _GroupMean.of(_divided(hit, relevant), relevant > 0)
        for hit, relevant in (
            (hits[:, group], liked[:, group]),
            (hits.sum(axis=1) - hits[:, group], liked.sum(axis=1) - liked[:, group]),
        )
    )
    gap = recall.less(outside)
    p = np.nan if gap.estimate is None else float(p_values_of(gap.estimate))
    rows = [
        recall.row("recall", level_of_means),
        outside.row("recall_rest"),
        gap.row("recall_gap", level),
    ]
    return rows, p


def _divided(part: F64, total: F64) -> F64:
    """Return shares; 0 where there is nothing to divide."""
    return np.divide(part, total, out=np.zeros(part.size), where=total > 0)
