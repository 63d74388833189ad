"""`TargetLists`: the lists asked of every system, and their target items block by block."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import polars as pl

from unskew.arrays import I32, I64, U8, U16, Mask, frozen
from unskew.data.ratings import Ids, Ratings
from unskew.data.relevance import Relevance
from unskew.engine.threads import map_blocks
from unskew.errors import SettingError
from unskew.report.text import counted
from unskew.splits.split import union

if TYPE_CHECKING:
    from unskew.targets.kernels import DrawWeights, Pool

BLOCK_ITEMS = 1 << 22
"""Target items that are held at a time."""
KEPT_ITEMS = 1 << 24
"""Up to so many target items are drawn once and kept, for every system that ranks them."""


@dataclass(frozen=True, eq=False)
class TargetLists:
    """The lists asked of every system: whose they are, and their target items block by block.

    Made by `Targets.lists`, or read from a file by `read_targets`.

    Examples
    --------
    With the training item left out each user has two items, of which one is a test item.

    >>> import unskew as us
    >>> data = us.read_ratings({"user": [1, 1, 2, 2], "item": [7, 8, 7, 9]})
    >>> (split,) = us.splits.LeaveOut(1).split(data, seed=1)
    >>> lists = us.targets.AllItems().lists(split, liked=1)
    >>> lists.to_polars().select("user", "item").rows()
    [(1, 7), (1, 9), (2, 8), (2, 9)]
    >>> us.targets.TestTargets().lists(split, liked=1)
    TargetLists(2 lists, 1 to 1 items each)
    """

    design: Mapping[str, Any]
    """The settings and the seed from which they can be made again."""
    train: Ratings
    tests: Ratings
    """The judgments, a user's once."""
    relevance: Relevance
    user: I32
    """The user of each list; lists stand user by user."""
    anchor: I32
    """The one relevant item of each list, -1 where all are asked for."""
    stratum: I32
    """The stratum within which each list ranks, -1 without strata."""
    size: I64
    """Number of targets of each list."""
    source: DrawnTargets | Kept
    strata: int = 0
    shortfall: str = "count"
    seed: int = 0
    facts: Mapping[str, Any] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    known: Ratings | None = None
    """What users met before they were tested, beside training; see `Split.known`."""

    def __len__(self) -> int:
        return int(self.user.size)

    def __repr__(self) -> str:
        lowest, highest = (int(self.size.min()), int(self.size.max())) if len(self) else (0, 0)
        return f"TargetLists({counted(len(self), 'list')}, {lowest:,} to {highest:,} items each)"

    def _repr_html_(self) -> str:
        from unskew.report.notebook_view import card

        facts = [
            ("lists", len(self)),
            ("users with a list", int(np.unique(self.user).size)),
            (
                "items per list",
                f"{self.size.min():,} to {self.size.max():,}" if len(self) else None,
            ),
            ("strata", self.strata or None),
            ("relevance", str(self.relevance)),
            ("seed", self.seed),
        ]
        return card("TargetLists", "", facts, self.notes)

    @cached_property
    def barred(self) -> Ratings:
        """What can be no target: the training ratings, and what else users met before."""
        return self.train if self.known is None else union(self.train, self.known)

    @cached_property
    def per_user(self) -> bool:
        """Whether list and user are the same: one list for each, in the order of the ids."""
        return (
            bool((self.anchor < 0).all()) and not self.strata and len(self) == len(self.tests.users)
        )

    @cached_property
    def at_most_one(self) -> bool:
        """Whether no user has more than one list, with all relevant items in it."""
        alone = bool((self.anchor < 0).all()) and not self.strata
        return alone and bool((np.diff(self.user) > 0).all())

    @cached_property
    def whole(self) -> bool:
        """Whether each list holds all candidates of its stratum but the user's training items."""
        return (
            isinstance(self.source, DrawnTargets)
            and self.source.n is None
            and not self.one_relevant
        )

    @property
    def given(self) -> bool:
        """Whether the lists were read, not drawn."""
        return isinstance(self.source, Kept)

    @cached_property
    def one_relevant(self) -> bool:
        """Whether each list has one relevant item (1R)."""
        return bool(len(self)) and bool((self.anchor >= 0).all())

    @property
    def exact(self) -> bool:
        """Whether no others are drawn: values are expectations over all draws."""
        return bool(self.design.get("exact", False))

    @property
    def free(self) -> I64:
        """How many others each list could have, of which some are drawn; not of lists read."""
        assert isinstance(self.source, DrawnTargets)
        return self.source.available

    @property
    def candidates(self) -> Mask:
        """Which items can be targets at all."""
        if isinstance(self.source, DrawnTargets):
            return self.source.pool.stratum >= 0
        return np.bincount(self.source.item, minlength=len(self.tests.items)) > 0

    @property
    def pool(self) -> Pool:
        """The candidates that lists are drawn from, unless they were read (`given`)."""
        assert isinstance(self.source, DrawnTargets)
        return self.source.pool

    def block(self, lo: int, hi: int) -> tuple[I64, I32]:
        """Return the targets of lists lo..hi: where each one's items start, and the items.

        Items of a list ascend. The same whatever other blocks are asked for.

        Examples
        --------
        >>> import unskew as us
        >>> data = us.read_ratings({"user": [1, 1, 2, 2], "item": [7, 8, 7, 9]})
        >>> (split,) = us.splits.LeaveOut(1).split(data, seed=1)
        >>> start, item = us.targets.AllItems().lists(split, liked=1).block(0, 2)
        >>> start.tolist(), item.tolist()  # items by their numbers
        ([0, 2, 4], [0, 2, 1, 2])
        """
        if not 0 <= lo <= hi <= len(self):
            raise SettingError(f"there are {len(self):,} lists; got {lo}..{hi}")
        if self.exact:
            raise SettingError(
                "with exact=True no others are drawn, so there are no lists to look at or to rank: "
                "leave exact out, or evaluate(lists, models)"
            )
        start = self._start[lo : hi + 1] - self._start[lo]
        items = self.__dict__.get("kept")  # what is asked for once is not worth to be kept
        if items is not None:
            return start, items[self._start[lo] : self._start[hi]].astype(np.int32)
        return start, self.source.items(self, lo, hi, start)

    @cached_property
    def _start(self) -> I64:
        """Where the targets of each list start, among those of all lists; one more for the end."""
        return frozen(np.append(0, np.cumsum(self.size)))

    @cached_property
    def kept(self) -> I32 | U16 | None:
        """All targets, in few bytes, from now on for every system; None where they are too many.

        These are drawn anew by everyone who asks for them.
        """
        count = int(self._start[-1])
        if self.given or self.whole or self.exact or count > KEPT_ITEMS:
            return None
        kind = np.uint16 if len(self.tests.items) <= 1 << 16 else np.int32
        item = np.empty(count, kind)

        def draw(bounds: tuple[int, int]) -> None:
            lo, hi = bounds
            item[self._start[lo] : self._start[hi]] = self.block(lo, hi)[1]

        map_blocks(draw, self.blocks(), size=count)
        return frozen(item)

    def blocks(self, lo: int = 0, hi: int | None = None) -> Iterator[tuple[int, int]]:
        """Cut lists lo..hi into blocks of a bounded number of items.

        Examples
        --------
        >>> import unskew as us
        >>> data = us.read_ratings({"user": [1, 1, 2, 2], "item": [7, 8, 7, 9]})
        >>> (split,) = us.splits.LeaveOut(1).split(data, seed=1)
        >>> list(us.targets.AllItems().lists(split, liked=1).blocks())
        [(0, 2)]
        """
        end = len(self) if hi is None else hi
        before = self._start[lo : end + 1] - self._start[lo]  # targets before each list
        first = 0
        while lo + first < end:
            limit = np.searchsorted(before, before[first] + BLOCK_ITEMS, side="right")
            stop = max(int(limit) - 1, first + 1)
            yield lo + first, lo + stop
            first = stop

    @cached_property
    def judgments(self) -> Ratings:
        """The judgments of each list, under list numbers: those of the user among its targets.

        Where a list asks for all relevant items, those outside the candidates stay in: no system
        can find them, and they count as missed.
        """
        if self.per_user and self.whole:
            return self.tests
        if self.at_most_one and self.whole:
            return _of_users(self)
        return _anchors(self) if self.exact else _judgments(self)

    @property
    def ids(self) -> Ids:
        """The names of the lists: numbers, or users where none has more than one list."""
        if isinstance(self.source, Kept):
            return self.source.names
        if self.per_user:
            return self.tests.users
        return self._user_names if self.at_most_one else Ids(pl.Series(np.arange(len(self))))

    @cached_property
    def _user_names(self) -> Ids:
        return Ids(self.tests.users.raw(self.user))

    def to_polars(self, lo: int = 0, hi: int | None = None) -> pl.DataFrame:
        """Return lists lo..hi in full: list, user, anchor, stratum, item, with raw ids."""
        end = len(self) if hi is None else hi
        start, item = self.block(lo, end)
        rows = np.repeat(np.arange(lo, end, dtype=np.int32), np.diff(start))
        columns: dict[str, Any] = {
            "list": self.ids.raw(rows),
            "user": self.tests.users.raw(self.user[rows]),
            "item": self.tests.items.raw(item),
        }
        if self.one_relevant:
            columns["anchor"] = self.tests.items.raw(self.anchor[rows])
        if self.strata:
            columns["stratum"] = pl.Series(self.stratum[rows])
        return pl.DataFrame(columns)


@dataclass(frozen=True, eq=False)
class DrawnTargets:
    """Targets that are drawn when they are asked for."""

    n: int | None
    """How many others each list has; None = all."""
    fresh: bool
    """Whether others are drawn anew for each list of a user."""
    key: int
    """What the draws are seeded with."""
    available: I64
    """How many others each list could have."""
    pool: Pool
    fixed: U8
    """Marks the test ratings whose items are in the lists whatever is drawn."""
    weights: DrawWeights

    def items(self, lists: TargetLists, lo: int, hi: int, start: I64) -> I32:
        """Draw the targets of lists lo..hi."""
        from unskew.targets import kernels

        item = np.empty(int(start[-1]), np.int32)
        barred, tests = lists.barred, lists.tests
        kernels.draw_lists(
            user=lists.user,
            anchor=lists.anchor,
            stratum=lists.stratum,
            lo=lo,
            hi=hi,
            n=-1 if self.n is None else self.n,
            available=self.available,
            key=np.uint64(self.key),
            fresh=self.fresh,
            pool=self.pool,
            weights=self.weights,
            rows=kernels.Barred(barred.start, barred.item, tests.start, tests.item, self.fixed),
            start=frozen(start),
            item=item,
        )
        return item


class Kept(NamedTuple):
    """Targets that were read from a file."""

    start: I64
    item: I32
    names: Ids
    """What the lists are called."""

    def items(self, lists: TargetLists, lo: int, hi: int, start: I64) -> I32:  # noqa: ARG002
        """Return the targets of lists lo..hi."""
        return self.item[self.start[lo] : self.start[hi]]


def _of_lists(lists: TargetLists, rows: I64, owner: I32) -> Ratings:
    """Return some test ratings under the numbers of the lists that they belong to."""
    tests = lists.tests
    return Ratings(
        users=lists.ids,
        items=tests.items,
        user=frozen(owner),
        item=frozen(tests.item[rows]),
        value=frozen(tests.value[rows]),
        time=None,
        tags={name: column.gather(pl.Series(rows)) for name, column in tests.tags.items()},
        implicit=tests.implicit,
        notes=tests.notes,
    )


def _of_users(lists: TargetLists) -> Ratings:
    """Return the judgments of the users who have a list: in such lists, all of them."""
    has_list = np.zeros(len(lists.tests.users), np.bool_)
    has_list[lists.user] = True
    rows = np.flatnonzero(has_list[lists.tests.user])
    number = np.cumsum(has_list, dtype=np.int32) - np.int32(1)
    return _of_lists(lists, rows, number[lists.tests.user[rows]])


def _anchors(lists: TargetLists) -> Ratings:
    """Return the one relevant item of each list, which is all that is known to be in it."""
    tests = lists.tests
    items = np.int64(len(tests.items))
    rows = np.searchsorted(tests.user * items + tests.item, lists.user * items + lists.anchor)
    return _of_lists(lists, rows, np.arange(len(lists), dtype=np.int32))


def _judgments(lists: TargetLists) -> Ratings:
    """Collect the judgments among each list's targets, block by block."""
    from unskew.targets import kernels

    tests, _ = lists.tests, lists.kept  # drawn once for judgments and ranks
    missed = np.zeros(0, np.uint8)
    if isinstance(lists.source, DrawnTargets) and not lists.one_relevant and not lists.strata:
        missed = lists.source.fixed

    def meet(bounds: tuple[int, int]) -> tuple[I64, I64]:
        lo, hi = bounds
        start, item = lists.block(lo, hi)
        users = lists.user[lo:hi]
        judged = tests.start[users + 1] - tests.start[users]
        limits = judged if missed.size else np.minimum(lists.size[lo:hi], judged)
        first = np.zeros(hi - lo + 1, np.int64)
        judgment = np.empty(int(limits.sum()), np.int64)
        number = kernels.meet_targets(
            user=lists.user,
            start=frozen(start),
            item=frozen(item),
            judged_start=tests.start,
            judged_item=tests.item,
            missed=frozen(missed),
            lo=lo,
            hi=hi,
            first_row=first,
            judgment=judgment,
        )
        return judgment[:number].copy(), np.diff(first)

    done = map_blocks(meet, lists.blocks(), size=int(lists.size.sum()))
    rows, counts = (np.concatenate(part) for part in zip(*done, strict=True))
    owner = np.repeat(np.arange(len(lists), dtype=np.int32), counts)
    return _of_lists(lists, rows, owner)
