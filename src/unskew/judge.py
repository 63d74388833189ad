"""Judgments and runs meet: the judged shape on which every metric stands.

`Judgments` are `Ratings` in use as such: `start`, `item`, `value`, one copy for all systems.
`View` says how each of them is taken; `Hits` says where a system's lists met them.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from unskew.data.ratings import Ids, Ratings, frozen
from unskew.data.relevance import Relevance
from unskew.runs import Run

I8 = NDArray[np.int8]
I32 = NDArray[np.int32]
I64 = NDArray[np.int64]
F64 = NDArray[np.float64]

MASKED, LIKED, DISLIKED, POOLED = 0, 1, 2, 3
"""Labels of a judgment: taken as unjudged; liked; disliked; in the pool but not judged."""


@dataclass(frozen=True, eq=False)
class View:
    """How each judgment is taken: its label, its gain and its loss. No new join is needed."""

    label: I8
    gain: F64
    loss: F64

    @classmethod
    def of(cls, judgments: Ratings, relevance: Relevance) -> View:
        """Apply a relevance rule to judgments."""
        value = judgments.value
        pooled = judgments.tags.get("pooled")
        hidden = np.zeros(value.size, np.bool_) if pooled is None else pooled.to_numpy()
        known = np.where(hidden, relevance.threshold, value) if hidden.any() else value
        label = np.where(relevance.is_liked(known), LIKED, DISLIKED).astype(np.int8)
        gain, loss = relevance.gains(known), relevance.losses(known)
        if hidden.any():
            label[hidden] = POOLED
            gain, loss = np.where(hidden, 0.0, gain), np.where(hidden, 0.0, loss)
        return cls(frozen(label), frozen(gain), frozen(loss))

    @cached_property
    def anti(self) -> View:
        """The same judgments with liked and disliked, gain and loss, exchanged."""
        swap = np.array([MASKED, DISLIKED, LIKED, POOLED], np.int8)
        return View(frozen(swap[self.label]), self.loss, self.gain)

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

    def condensed(self, view: View) -> Hits:
        """Drop what is not judged and number the ranks anew."""
        from unskew import _judge

        start, rank, judgment = _judge.condense(self.start, self.judgment, view.label)
        return Hits(start, rank, judgment, np.diff(start))


@dataclass(frozen=True, eq=False)
class Matched:
    """A run laid over the common numbering of users and items."""

    run: Run
    lists: Lists
    start: I64
    stop: I64
    to_run: I32
    """From an item's common number to the run's, -1 if it is in no list."""
    from_run: I32
    """From an item's number in the run to the common one."""

    @classmethod
    def of(cls, run: Run, lists: Lists, users: Ids, user_table: I32, items: Ids, item_table: I32,
           depth: int | None = None) -> Matched:  # fmt: skip
        """Lay a run over `users` and `items`; the tables come from `Ids.union`."""
        list_of = np.full(len(users), -1, np.int64)
        list_of[user_table] = np.arange(len(run), dtype=np.int64)
        at = list_of[lists.user]
        bounds = np.append(run.start, 0)  # -1 picks an empty list
        start = np.where(at >= 0, bounds[at], 0)
        stop = np.where(at >= 0, bounds[at + 1], 0)
        if depth is not None:
            stop = np.minimum(stop, start + depth)
        to_run = np.full(len(items), -1, np.int32)
        to_run[item_table] = np.arange(len(run.items), dtype=np.int32)
        return cls(run, lists, frozen(start), frozen(stop), frozen(to_run), frozen(item_table))

    @cached_property
    def depth(self) -> I64:
        """Length of each list; 0 for users without one."""
        lengths: I64 = self.stop - self.start
        return lengths

    def hits(self, judgments: Ratings, lo: int, hi: int) -> Hits:
        """Return the judged items of lists lo..hi."""
        from unskew import _judge

        start, rank, judgment = _judge.meet(
            self.lists.user, self.start, self.stop, self.run.item,
            judgments.start, judgments.item, self.to_run, max(len(self.run.items), 1), lo, hi,
        )  # fmt: skip
        return Hits(start, rank, judgment, self.depth[lo:hi])

    def overlap(self, train: Ratings, lo: int, hi: int) -> int:
        """Count the slots of lists lo..hi that hold an item of the user's training ratings."""
        return int(self.hits(train, lo, hi).rank.size)


def count_labels(judgments: Ratings, lists: Lists, view: View) -> tuple[I32, I32]:
    """Return how many liked and how many disliked judgments each list's user has."""
    from unskew import _judge

    liked, disliked = _judge.count_labels(lists.user, judgments.start, view.label)
    return frozen(liked), frozen(disliked)


def without(view: View, hidden: NDArray[np.bool_]) -> View:
    """Return the view with some judgments taken as if they had not been made."""
    label = np.where(hidden, np.int8(MASKED), view.label)
    return replace(view, label=frozen(label))
