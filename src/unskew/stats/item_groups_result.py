"""`ItemGroupGaps`: groups of items inside lists: shown, liked, found."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import polars as pl

from unskew.report.result import Result
from unskew.report.tables import Table
from unskew.report.text import counted, number, p_value
from unskew.stats.comparison import CORRECTIONS
from unskew.stats.group_contrasts import LEAST_OTHERS, LEAST_USERS


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
    rows: pl.DataFrame = field(repr=False)
    """See `table`."""
    correction: str | None
    confidence: float
    """Of all intervals of a kind together."""
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
        interval = f"{100 * self.confidence:g} % intervals"
        places = ["system", "group", "items", "share of places", interval]
        places += ["share of liked", "gap", interval]
        found = ["system", "group", "users", "recall", interval, "recall of the rest", "gap"]
        found += [interval, "p"]
        rows, recalls, before = [], [], ""
        for row in self.rows.iter_rows(named=True):
            system = "" if row["system"] == before else row["system"]
            rows.append(
                [
                    system,
                    row["group"],
                    f"{row['items']:,}",
                    *_both(row, "exposure", digits),
                    _number(row["liked_share"], digits),
                    *_both(row, "exposure_gap", digits, signed=True),
                ]
            )
            recalls.append(
                [
                    system,
                    row["group"],
                    f"{row['users']:,}",
                    *_both(row, "recall", digits),
                    _number(row["recall_rest"], digits),
                    *_both(row, "recall_gap", digits, signed=True),
                    "–" if row["p_corrected"] is None else p_value(row["p_corrected"]),
                ]
            )
            before = row["system"]
        title = f"the first {counted(self.k, 'place')} of lists by {self.by} of items"
        return [
            Table.of_rows(places, rows, left=(0, 1), title=title),
            Table.of_rows(found, recalls, left=(0, 1), title=f"Recall@{self.k} of liked items"),
        ]

    def _explanation(self) -> list[str]:
        correction = "not corrected"
        if self.correction is not None:
            correction = f"corrected by {CORRECTIONS[self.correction]} over groups and systems"
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
        return {
            "systems": self.systems,
            "by": self.by,
            "rule": self.rule,
            "groups": self.groups,
            "k": self.k,
            "users": self.users,
            "correction": self.correction,
            "confidence": self.confidence,
            "rows": self.rows,
            "notes": self.notes,
        }


def _number(value: float | None, digits: int, *, signed: bool = False) -> str:
    return "–" if value is None else number(value, digits, signed=signed)


def _both(
    row: Mapping[str, Any], name: str, digits: int, *, signed: bool = False
) -> tuple[str, str]:
    """Return a value and its interval."""
    low, high = row[f"{name}_low"], row[f"{name}_high"]
    if low is None or high is None:
        return _number(row[name], digits, signed=signed), "–"
    ends = (number(end, digits, signed=signed) for end in (low, high))
    return _number(row[name], digits, signed=signed), f"[{', '.join(ends)}]"
