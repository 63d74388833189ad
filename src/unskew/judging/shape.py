"""Judgments and runs meet: the judged shape on which every metric stands.

`Judgments` are `Ratings` in use as such: `start`, `item`, `value`, one copy for all systems.
`View` says how each of them is taken; `Hits` says where a system's lists met them.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import DTypeLike, NDArray

from unskew.arrays import F64, I8, I32, I64, Mask, frozen
from unskew.data.ratings import Ids, Ratings
from unskew.data.relevance import Relevance
from unskew.engine.threads import map_blocks
from unskew.errors import SettingError
from unskew.runs import Run
from unskew.targets.lists import TargetLists

BLOCK = 8192
"""Lists per block at the most: small enough that what a block needs stays in the cache."""
MASKED, LIKED, DISLIKED, POOLED = 0, 1, 2, 3
"""Labels of a judgment: taken as unjudged; liked; disliked; in the pool but not judged."""


@dataclass(frozen=True, eq=False)
class View:
    """How each judgment is taken: its label, its gain and its loss. No new join is needed.

    Gains and losses are worked out when a metric first asks for them.
    """

    label: I8
    value: F64
    relevance: Relevance
    is_anti: bool = False

    @classmethod
    def of(cls, judgments: Ratings, relevance: Relevance) -> View:
        """Apply a relevance rule to judgments."""
        label = np.subtract(DISLIKED, relevance.is_liked(judgments.value), dtype=np.int8)
        pooled = judgments.tags.get("pooled")
        if pooled is not None:
            label[pooled.to_numpy()] = POOLED
        return cls(frozen(label), judgments.value, relevance)

    @cached_property
    def gain(self) -> F64:
        """What each judgment is worth; 0 where it is masked or only pooled."""
        return self._worth("losses" if self.is_anti else "gains")

    @cached_property
    def loss(self) -> F64:
        """What each judgment costs; 0 where it is masked or only pooled."""
        return self._worth("gains" if self.is_anti else "losses")

    def _worth(self, rule: str) -> F64:
        apply = getattr(self.relevance, rule)
        if not self.label.size or (self.label.min() > MASKED and self.label.max() < POOLED):
            return frozen(apply(self.value))
        unjudged = (self.label == MASKED) | (self.label == POOLED)
        amount = np.zeros(self.value.size)
        amount[~unjudged] = apply(self.value[~unjudged])
        return frozen(amount)

    @cached_property
    def anti(self) -> View:
        """The same judgments with liked and disliked, gain and loss, exchanged."""
        swap = np.array([MASKED, DISLIKED, LIKED, POOLED], np.int8)
        return replace(self, label=frozen(swap[self.label]), is_anti=not self.is_anti)

    @cached_property
    def liked(self) -> F64:
        """1 for liked judgments, 0 for all others."""
        return frozen((self.label == LIKED).astype(np.float64))

    @cached_property
    def judged(self) -> F64:
        """1 for liked and disliked judgments, 0 for all others."""
        return frozen(((self.label == LIKED) | (self.label == DISLIKED)).astype(np.float64))


@dataclass(frozen=True, eq=False)
class Lists:
    """The lists asked of every system: whose they are and how many items could be ranked."""

    user: I32
    targets: I64 | None = None
    """Number of target items of each list, where known."""
    source: TargetLists | None = None
    """The target lists, where lists are not those of users."""

    def __len__(self) -> int:
        return int(self.user.size)


@dataclass(frozen=True, eq=False)
class Hits:
    """The judged items met by a block of lists, in rank order."""

    start: I64
    rank: I32
    judgment: I32
    depth: I64
    """Length of each list."""
    tied: I32 | None = None
    """How many items share the rank of each hit, itself included; None where ties are broken."""

    def condensed(self, view: View) -> Hits:
        """Drop what is not judged and number the ranks anew."""
        from unskew.judging import list_kernels, tie_kernels

        if self.tied is not None:
            first = tie_kernels.condense(self.start, self.rank, self.judgment, view.label)
            return Hits(*first[:3], np.diff(first[0]), first[3])
        start, rank, judgment = list_kernels.condense(self.start, self.judgment, view.label)
        return Hits(start, rank, judgment, np.diff(start))


class Scratch:
    """Arrays used again and again by one thread.

    To give memory back and take it anew for every block makes threads wait for each other.
    """

    def __init__(self) -> None:
        self._arrays: dict[str, NDArray[Any]] = {}

    def array(self, name: str, shape: tuple[int, ...], dtype: DTypeLike) -> NDArray[Any]:
        """Return an array with unspecified content, valid until `name` is asked for again."""
        size = math.prod(shape)
        if name not in self._arrays or self._arrays[name].size < size:
            self._arrays[name] = np.empty(size, dtype)
        return self._arrays[name][:size].reshape(shape)


@dataclass(frozen=True, eq=False)
class Matched:
    """A run laid over the common numbering of users and items."""

    run: Run
    lists: Lists
    start: I64
    stop: I64
    scan: I64
    """Where the search for judged items ends: no metric may look further down."""
    to_run: I32
    """From an item's common number to the run's, -1 if it is in no list."""
    from_run: I32
    """From an item's number in the run to the common one."""

    @classmethod
    def of(
        cls,
        run: Run,
        lists: Lists,
        users: Ids,
        user_table: I32,
        items: Ids,
        item_table: I32,
        depth: int | None = None,
        limit: int | None = None,
    ) -> Matched:
        """Lay a run over `users` and `items`; the tables come from `Ids.union`.

        Lists are cut at `depth`; judged items are looked for down to `limit`.
        """
        list_of = np.full(len(users), -1, np.int64)
        list_of[user_table] = np.arange(user_table.size, dtype=np.int64)
        row = list_of[lists.user]
        bounds = np.append(run.start, 0)  # -1 picks an empty list
        start = np.where(row >= 0, bounds[row], 0)
        stop = np.where(row >= 0, bounds[row + 1], 0)
        if depth is not None:
            stop = np.minimum(stop, start + depth)
        scan = stop if limit is None else np.minimum(stop, start + limit)
        to_run = np.full(len(items), -1, np.int32)
        to_run[item_table] = np.arange(item_table.size, dtype=np.int32)
        return cls(
            run,
            lists,
            frozen(start),
            frozen(stop),
            frozen(scan),
            frozen(to_run),
            frozen(item_table),
        )

    @property
    def is_full(self) -> bool:
        """Whether lists go to the last target, so that no judged item lies below their end."""
        return False

    @cached_property
    def depth(self) -> I64:
        """Length of each list; 0 for users without one."""
        lengths: I64 = self.stop - self.start
        return lengths

    def hits(self, judgments: Ratings, lo: int, hi: int, scratch: Scratch | None = None) -> Hits:
        """Return the judged items of lists lo..hi; in `scratch`, until it is used again."""
        return self._meet(judgments, lo, hi, scratch)

    def _meet(self, judgments: Ratings, lo: int, hi: int, scratch: Scratch | None) -> Hits:
        from unskew.judging import list_kernels

        memory = scratch or Scratch()
        user, depth = self.lists.user[lo:hi], self.depth[lo:hi]
        judged = judgments.start[user + 1] - judgments.start[user]
        capacity = int(np.minimum(judged, self.scan[lo:hi] - self.start[lo:hi]).sum())
        start = memory.array("start", (hi - lo + 1,), np.int64)
        rank = memory.array("rank", (capacity,), np.int32)
        judgment = memory.array("judgment", (capacity,), np.int32)
        mark = memory.array("mark", (len(self.run.items) + 1,), np.int32)
        count = list_kernels.meet(
            self.lists.user,
            self.start,
            self.scan,
            self.run.item,
            judgments.start,
            judgments.item,
            self.to_run,
            lo,
            hi,
            mark,
            start,
            rank,
            judgment,
        )
        return Hits(start, rank[:count], judgment[:count], depth)

    def count_slots(self, catalogue: Mask, train: Ratings | None) -> tuple[I64, I64, I64, I64]:
        """Count empty slots of each list, items outside a catalogue, training items, and targets.

        A target is in the catalogue and not in training.
        """
        from unskew.judging import list_kernels
        from unskew.judging.rank_kernels import ItemRows

        rows = frozen(np.zeros(0, np.int64)), frozen(np.zeros(0, np.int32))
        return list_kernels.count_slots(
            self.lists.user,
            self.start,
            self.stop,
            self.run.item,
            self.from_run,
            frozen(catalogue),
            ItemRows(*(rows if train is None else (train.start, train.item))),
        )

    def overlap(self, ratings: Ratings, owner: I32 | None = None) -> int:
        """Count the slots that hold an item which the user rated: in training, or in the test.

        `owner` is the user of each list by the numbers of the ratings, where these are not by list.
        """
        lists = self.lists if owner is None else Lists(owner)
        unlimited = replace(self, scan=self.stop, lists=lists)
        scratch, total = Scratch(), len(lists)
        bounds = [(low, min(low + BLOCK, total)) for low in range(0, total, BLOCK)]
        return sum(int(unlimited._meet(ratings, *block, scratch).rank.size) for block in bounds)


def count_labels(judgments: Ratings, lists: Lists, view: View) -> tuple[F64, F64]:
    """Return how many liked and how many disliked judgments each list's user has."""
    from unskew.judging import list_kernels

    step = 1 << 16

    def count(low: int) -> tuple[I32, I32]:
        return list_kernels.count_labels(lists.user[low : low + step], judgments.start, view.label)

    blocks = map_blocks(count, range(0, len(lists), step), size=judgments.value.size)
    if not blocks:
        return np.zeros(0), np.zeros(0)
    liked, disliked = (np.concatenate(parts) for parts in zip(*blocks, strict=True))
    return frozen(liked.astype(np.float64)), frozen(disliked.astype(np.float64))


@dataclass(frozen=True, eq=False)
class Basis:
    """What all systems are judged by: judgments, lists, the view, and facts about items."""

    judgments: Ratings
    lists: Lists
    view: View
    liked: F64
    """Liked judgments of each list's user."""
    disliked: F64
    train: Ratings | None = None
    catalogue: Mask | None = None
    """Which items could be recommended, where known."""
    longest: int = 0
    """The deepest list or the largest number of judgments of a user."""
    owner: I32 | None = None
    """The user of each list, as `train` numbers them."""
    tests: Ratings | None = None
    """The test ratings of users who have several lists, under the same numbers as `train`."""
    _memory: dict[object, F64] = field(default_factory=dict)

    def masked(self, keep: Mask, *, recount: bool = True) -> Basis:
        """Return the basis on which some judgments count as unjudged.

        Parameters
        ----------
        keep
            Which judgments stay.
        recount
            Whether the liked and disliked judgments of each user are counted anew; else metrics
            divide by those of all judgments.
        """
        label = frozen(np.where(keep, self.view.label, MASKED).astype(np.int8))
        view = View(label, self.view.value, self.view.relevance)
        liked, disliked = self.liked, self.disliked
        if recount:
            liked, disliked = count_labels(self.judgments, self.lists, view)
        return replace(self, view=view, liked=liked, disliked=disliked, _memory={})

    @property
    def are_several(self) -> bool:
        """Whether users have lists of several dates or sessions."""
        return self.tests is not None

    def describe(self, number: int) -> str:
        """Return what messages call a list: its user, and anchor and stratum where it has them."""
        if self.are_several:
            return f"list {number + 1:,}"
        lists = self.lists.source
        if lists is None:
            return f"the list of user {self.judgments.users.values[int(self.lists.user[number])]!r}"
        words = f"the list of user {lists.tests.users.values[int(lists.user[number])]!r}"
        if lists.anchor[number] >= 0:
            words += f", anchor {lists.tests.items.values[int(lists.anchor[number])]!r}"
        return f"{words}, stratum {lists.stratum[number]}" if lists.strata else words

    def once(self, key: object, make: Callable[[], F64]) -> F64:
        """Return what `make` gives, made at its first use: a weight per judgment or item."""
        if key not in self._memory:
            self._memory[key] = frozen(make())
        return self._memory[key]

    @cached_property
    def marks_pool(self) -> bool:
        """Whether judgments say of some items that they are in the pool but not judged."""
        pooled = self.judgments.tags.get("pooled")
        return pooled is not None and bool(pooled.any())

    @cached_property
    def positives(self) -> F64:
        """Liked ratings of each item, in training and test together."""
        items = len(self.judgments.items)
        item = self.judgments.item[self.view.label == LIKED]
        if self.tests is not None:  # a rating that follows several lists is one
            item = self.tests.item[self.view.relevance.is_liked(self.tests.value)]
        count = np.bincount(item, minlength=items)
        if self.train is not None:
            liked = self.view.relevance.is_liked(self.train.value)
            count = count + np.bincount(self.train.item[liked], minlength=items)
        return count.astype(np.float64)

    @cached_property
    def popularity(self) -> F64:
        """Training ratings of each item."""
        assert self.train is not None
        counts = np.bincount(self.train.item, minlength=len(self.judgments.items))
        return counts.astype(np.float64)

    @cached_property
    def train_users(self) -> int:
        """Users with training ratings."""
        assert self.train is not None
        return int(np.count_nonzero(np.diff(self.train.start)))


@dataclass(frozen=True, eq=False)
class Numbering:
    """Judgments, training ratings, runs and catalogue over the same numbers."""

    judgments: Ratings
    train: Ratings | None
    runs: Mapping[str, tuple[I32, I32]]
    """By system: from the run's numbers of users and of items to the common ones."""
    tests: tuple[I32, I32]
    """The same of the test ratings."""
    trained: tuple[I32, I32] | None = None
    """The same of the training ratings."""
    items: I32 | None = None
    """Common numbers of the given catalogue."""
    notes: tuple[str, ...] = ()
    """Runs that share no item with the judgments."""
    owner: I32 | None = None
    """The user of each list, as `train` numbers them; None where list and user are the same."""

    @classmethod
    def of(
        cls,
        tests: Ratings,
        train: Ratings | None,
        runs: Mapping[str, Run],
        items: pl.Series | None,
    ) -> Numbering:
        """Number users and items of all sources alike."""
        for name, run in runs.items():
            if run.keys is not None:
                raise several_refused(f"{name} has several lists per user, and")
        ratings = [tests] if train is None else [tests, train]
        sources: list[Ratings | Run] = [*ratings, *runs.values()]
        extra = [] if items is None else [Ids.number(items)[0]]
        users, user_tables = Ids.union(*(source.users for source in sources))
        all_items, item_tables = Ids.union(*(source.items for source in sources), *extra)
        tables = list(zip(user_tables, item_tables, strict=False))
        recoded = [
            source.recode(users, user_table, all_items, item_table)
            for source, (user_table, item_table) in zip(ratings, tables, strict=False)
        ]
        return cls(
            judgments=recoded[0],
            train=None if train is None else recoded[1],
            runs=dict(zip(runs, tables[len(ratings) :], strict=True)),
            tests=tables[0],
            trained=None if train is None else tables[1],
            items=item_tables[-1] if extra else None,
        )

    @classmethod
    def of_targets(cls, lists: TargetLists) -> Numbering:
        """Take the numbering of target lists, over which systems are laid list by list."""
        judgments = lists.judgments
        users, items = (
            np.arange(len(ids), dtype=np.int32) for ids in (judgments.users, judgments.items)
        )
        return cls(judgments, lists.train, {}, (users, items))

    @property
    def own_numbers(self) -> tuple[I32, I32]:
        """The user and the item of each judgment by the numbers of the test ratings as given."""
        user_table, item_table = self.tests
        user = inverse_table(user_table, len(self.judgments.users))[self.judgments.user]
        item = inverse_table(item_table, len(self.judgments.items))[self.judgments.item]
        return frozen(user), frozen(item)

    def match(
        self, name: str, run: Run, lists: Lists, depth: int | None, scan: int | None
    ) -> Matched:
        """Lay a run over the common numbering."""
        ids, (user_table, item_table) = self.judgments, self.runs[name]
        return Matched.of(
            run, lists, ids.users, user_table, ids.items, item_table, depth=depth, limit=scan
        )

    def known_items(self, *, everything: bool) -> Mask:
        """Mark the catalogue: what is given, else `everything`, or what is trained on; and judged.

        What systems recommend counts as everything too.
        """
        catalogue = np.zeros(len(self.judgments.items), np.bool_)
        if self.items is not None:
            catalogue[self.items] = True
        elif everything:
            catalogue[:] = True
        elif self.train is not None:
            catalogue[self.train.item] = True
        catalogue[self.judgments.item] = True
        return catalogue

    def count_targets(self, catalogue: Mask) -> I64:
        """Count the items that could be recommended to each user: the catalogue less training."""
        targets = np.full(len(self.judgments.users), int(catalogue.sum()), np.int64)
        if self.train is not None:
            users = len(self.train.users)
            trained = np.bincount(self.train.user[catalogue[self.train.item]], minlength=users)
            targets -= trained if self.owner is None else trained[self.owner]
        return targets


def several_refused(reason: str) -> SettingError:
    """Return the error of what takes one list per user; `reason` begins its sentence."""
    return SettingError(
        f"{reason} this takes one list per user; evaluate, compare and gate take several (lists=…)"
    )


def inverse_table(table: I32, size: int) -> I32:
    """Return the table from common numbers back to those that `table` starts from."""
    back = np.full(size, -1, np.int32)
    back[table] = np.arange(table.size, dtype=np.int32)
    return back
