"""`Temporal`: training before test."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import Any, ClassVar

import numpy as np

from unskew.arrays import I64, Mask, frozen
from unskew.checks import DEFAULT_TEST, as_share, portion
from unskew.data.groups import sort_groups
from unskew.data.ratings import Ratings
from unskew.data.times import moment, written
from unskew.errors import SettingError
from unskew.settings import choice, declare, flag, share
from unskew.splits.split import Split, Splitter, by_mask, time_of
from unskew.splits.user import hint_share

TIES = ("test", "train")


@dataclass(frozen=True)
class Temporal(Splitter):
    """Training ratings come before test ratings, for everyone or within each user.

    Ratings with the same time stamp are never torn apart: where the cut would fall between them,
    all go to the side that `ties` names (counted).
    """

    test: float | None = share(
        None,
        """The share of ratings after the cut: 0.2 unless given, rounded to the nearest whole number
        (`per_user`: rounded down).""",
    )
    at: str | datetime | float | None = declare(
        None,
        """Instead of a share: the moment of the cut, as ISO text (UTC unless it says otherwise), a
        `datetime`, or seconds since 1970. Ratings at that moment go to the side that `ties`
        names.""",
    )
    ties: str = choice("test", "`test` (default) or `train`.", TIES)
    per_user: bool = flag(False, "Cut each user's ratings on their own.")

    name: ClassVar[str] = "temporal"
    draw_name: ClassVar[str] = "temporal"

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.at is None:
            return
        moment(self.at)
        if self.test is not None:
            raise SettingError(f"give either a share (test={self.test}) or a moment (at={self.at})")
        if self.per_user:
            raise SettingError(
                "at=… is one moment for everyone; it cannot be combined with per_user=True"
            )

    def known_count(self) -> int | None:
        """Return how many splits there are."""
        return 1

    def make_splits(self, ratings: Ratings, seed: int) -> Iterator[Split]:
        """Make the split; nothing is drawn, so the seed does not matter."""
        time = time_of(ratings, self.name)
        if self.per_user:
            yield self._each_user(ratings, time)
            return
        test, facts = cut_in_time(time, self.test, self.at, self.ties)
        yield by_mask(self, ratings, test, hint=time_hint(time), facts=facts)

    def _each_user(self, ratings: Ratings, time: I64) -> Split:
        from unskew.splits import kernels

        part = as_share("test", DEFAULT_TEST if self.test is None else self.test)
        rated = np.diff(ratings.start)
        order, _ = sort_groups(ratings.start, frozen(time), frozen(np.zeros(0, np.int64)))
        mark = np.zeros(len(ratings), np.uint8)
        tied = kernels.mark_last(
            ratings.start,
            frozen(order),
            frozen(time),
            frozen(portion(rated, part)),
            self.ties == "test",
            mark,
        )
        test = mark.view(np.bool_)
        tested = np.bincount(ratings.user[test], minlength=rated.size)
        facts = {
            "users_with_ties_at_cut": tied,
            "users_without_test": int(np.count_nonzero((tested == 0) & (rated > 0))),
            "users_without_train": int(np.count_nonzero((tested == rated) & (rated > 0))),
        }
        hint = hint_share(rated)
        return by_mask(self, ratings, test, hint=hint, facts=facts)


def cut_in_time(
    time: I64, test: float | None, at: str | datetime | float | None, ties: str
) -> tuple[Mask, dict[str, Any]]:
    """Mark what comes after one cut; return the facts of the cut too."""
    if at is not None:
        cut, tied = moment(at), True
    else:
        part = as_share("test", DEFAULT_TEST if test is None else test)
        first = time.size - int(portion(np.array([time.size]), part, "half-even")[0])
        if not 0 < first < time.size:  # too few for a cut: nothing to mark
            return np.zeros(time.size, np.bool_), {}
        around = np.partition(time, [first - 1, first])
        cut, tied = int(around[first]), bool(around[first - 1] == around[first])
    after = time > cut if tied and ties == "train" else time >= cut
    facts = {
        "cut": written(cut),
        "ties_at_cut": int(np.count_nonzero(time == cut)) if tied else 0,
    }
    return after, facts


def time_hint(time: I64) -> str:
    """Say between which moments a cut is possible."""
    if not time.size or time.min() == time.max():
        return "all ratings carry the same time stamp, so time cannot split them"
    return (
        f"there are {time.size:,} ratings from {written(int(time.min()))} to "
        f"{written(int(time.max()))}: cut between them, or let ties go to the other side"
    )
