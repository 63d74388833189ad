"""Smaller test sets: random parts of the judgments, or those without the most popular items."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Protocol

import numpy as np

from unskew.arrays import I32, I64, U8, frozen
from unskew.checks import portion
from unskew.data.popularity import item_counts
from unskew.engine.rng import key_of
from unskew.judging.shape import Basis
from unskew.splits.popularity import head


class SmallerTest(Protocol):
    """Something that keeps some judgments, at one or several levels."""

    def keeps(self, start: I64, low: int, high: int) -> Iterator[tuple[int, int, U8]]:
        """Give (level, sample, 1 for what is kept) of judgments low..high.

        `start` is where the judgments of each user in this range begin, counted from `low`.
        """


@dataclass(frozen=True, eq=False)
class SparseTest:
    """One sample of the test set, at every share."""

    shares: list[Fraction]
    seed: int
    per: str
    user: I32
    """The user's own number in the test set, of each judgment: what `draw` is asked with."""
    item: I32
    number: int
    limits: dict[str, I64] = field(default_factory=dict)

    def keeps(self, start: I64, low: int, high: int) -> Iterator[tuple[int, int, U8]]:
        """Give what each share keeps."""
        from unskew.stats import rank_kernels as kernels

        user, item = self.user[low:high], self.item[low:high]
        keep = np.empty(high - low, np.uint8)
        key = np.uint64(key_of(self.seed, f"sample/{self.per}"))
        if self.per == "user":
            place = np.empty(high - low, np.int32)
            kernels.places(start, user, item, key, place)
            counts = np.diff(start)
            for level, share in enumerate(self.shares):
                kernels.keep_first(
                    start, frozen(place), frozen(portion(counts, share, "half-even")), keep
                )
                yield level, self.number, keep
            return
        keys = np.empty(high - low, np.int64)
        kernels.draw_keys(user, item, key, keys)
        for level, limit in enumerate(self._limits(key).tolist()):
            np.less_equal(keys, limit, out=keep.view(np.bool_))
            yield level, self.number, keep

    def _limits(self, key: np.uint64) -> I64:
        """Return for each share the largest key that is kept, of all judgments."""
        from unskew.stats import rank_kernels as kernels

        if "all" not in self.limits:
            keys = np.empty(self.user.size, np.int64)
            kernels.draw_keys(self.user, self.item, key, keys)
            total = np.array([keys.size])
            sizes = [int(portion(total, share, "half-even")[0]) for share in self.shares]
            keys.partition(sorted({max(size - 1, 0) for size in sizes}))
            self.limits["all"] = np.array([keys[size - 1] if size else -1 for size in sizes])
        return self.limits["all"]


@dataclass(frozen=True, eq=False)
class UnpopularTest:
    """The test set without the most popular items."""

    level: int
    share: Fraction
    basis: Basis

    def keeps(self, start: I64, low: int, high: int) -> Iterator[tuple[int, int, U8]]:  # noqa: ARG002
        """Give what the cut keeps."""
        assert self.basis.train is not None
        gone = head(item_counts(self.basis.train), 1 - self.share)
        item = self.basis.judgments.item[low:high]
        yield self.level, 0, np.logical_not(gone[item]).view(np.uint8)


@dataclass(frozen=True, eq=False)
class FullTest:
    """The full test set, to compare with."""

    def keeps(self, start: I64, low: int, high: int) -> Iterator[tuple[int, int, U8]]:  # noqa: ARG002
        """Give everything."""
        yield 0, 0, np.ones(high - low, np.uint8)
