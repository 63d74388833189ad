"""What a metric may look at: one block of lists and everything known about it."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cache, lru_cache
from types import ModuleType
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from unskew.arrays import F64, I64, frozen
from unskew.judging.shape import Basis, Hits, Matched, Scratch, View
from unskew.metrics.settings import Params

PARTS = (
    "liked",
    "disliked",
    "precisions",
    "first",
    "preferences",
    "inferred",
    "inferred-all",
    "gains",
)
"""What one walk down a list can give, in the order of the kernel."""
Walk = tuple[bool, bool, bytes]
"""A walk: anti, condensed, cutoffs."""
WHOLE = 1 << 62
"""The cutoff of a metric without one: the whole list."""


@cache
def _kernels() -> ModuleType:
    """Import the compiled kernels at their first use: names of metrics need none."""
    from unskew.metrics.kernels import lists

    return lists


@lru_cache(maxsize=64)
def _rows_of(parts: tuple[str, ...]) -> I64:
    """Return the row in which the kernel of a walk writes each of `PARTS`; -1 for none."""
    return np.array([parts.index(part) if part in parts else -1 for part in PARTS], np.int64)


@lru_cache(maxsize=64)
def log_discount(longest: int, kind: str = "log") -> F64:
    """1 / log2(rank + 1), or 1 / log2(rank) from rank 2 on, indexed by rank: one table for all."""
    return frozen(_discount_table(1 << max(longest, 1).bit_length(), kind)[: longest + 1])


@lru_cache(maxsize=8)
def _discount_table(longest: int, kind: str) -> F64:
    """Make the table for ranks far enough down: lengths of lists differ, few tables serve all."""
    ranks = range(1, longest + 1)
    if kind == "original":
        tail = (1.0 / math.log2(max(rank, 2)) for rank in ranks)
    else:
        tail = (1.0 / math.log2(rank + 1) for rank in ranks)
    return frozen(np.append(0.0, np.fromiter(tail, np.float64, longest)))


@lru_cache(maxsize=64)
def sum_of_discounts(cutoff: int, kind: str = "log") -> float:
    """Sum `log_discount` over the ranks down to a cutoff, however deep, in little memory.

    Beyond the first ranks by Euler and Maclaurin: the integral, half the step, a twelfth of the
    slope's; what is left out is below 1e-17 of the sum.
    """
    near = min(cutoff, _ADDED)
    total = float(np.cumsum(log_discount(near, kind))[-1])
    if cutoff == near:
        return total
    low, high = (rank + (kind != "original") for rank in (near, cutoff))

    def value(x: int) -> float:
        return 1.0 / math.log(x)

    def slope(x: int) -> float:
        return -1.0 / (x * math.log(x) ** 2)

    tail = _log_integral(high) - _log_integral(low)
    tail += (value(high) - value(low)) / 2 + (slope(high) - slope(low)) / 12
    return total + math.log(2) * tail


_ADDED = 1 << 16
"""So many ranks are added one by one."""


def _log_integral(x: int) -> float:
    """Return the logarithmic integral: γ + ln ln x + the sum over n of (ln x)^n / (n n!)."""
    log, term, terms = math.log(x), 1.0, []
    for n in range(1, int(4 * log) + 40):  # far beyond the largest term, n = ln x
        term *= log / n
        terms.append(term / n)
    return float(np.euler_gamma) + math.log(log) + math.fsum(terms)


@lru_cache(maxsize=8)
def geometric_discount(longest: int, first: float, factor: float) -> F64:
    """First x factor**(rank - 1), indexed by rank, by repeated multiplication."""
    table = np.zeros(longest + 1)
    term = first
    for rank in range(1, longest + 1):
        table[rank] = term
        term *= factor
    return frozen(table)


def flat_discount(params: Params, longest: int) -> F64:  # noqa: ARG001
    """1 at every rank."""
    return frozen(np.ones(longest + 1))


def log_table(params: Params, longest: int) -> F64:
    """`log_discount` of the kind that a metric's setting `discount` names, else the usual one."""
    return log_discount(longest, str(params.get("discount", "log")))


def geometric_table(params: Params, longest: int) -> F64:
    """(1 - p) p**(rank - 1), with a metric's setting `p`."""
    p = float(params["p"])
    return geometric_discount(longest, 1.0 - p, p)


@dataclass(eq=False)
class Block:
    """The judged hits of lists lo..hi of one system, as seen through a view.

    Attributes hold one entry per list of the block; methods return a row per cutoff.
    """

    judged: Basis
    matched: Matched
    hits: Hits
    lo: int
    hi: int
    view: View
    liked: F64
    disliked: F64
    targets: I64 | None
    scratch: Scratch
    is_anti: bool = False
    is_condensed: bool = False
    shared: dict[object, F64] = field(default_factory=dict)
    """What does not depend on the system: ideal values of these lists."""
    parts: Mapping[Walk, tuple[str, ...]] = field(default_factory=dict)
    """Which parts each walk will be asked for; all unless known."""
    _walks: dict[bytes, dict[str, F64]] = field(default_factory=dict)
    _derived: dict[tuple[bool, bool], Block] = field(default_factory=dict)

    @classmethod
    def of(
        cls,
        judged: Basis,
        matched: Matched,
        lo: int,
        hi: int,
        shared: dict[object, F64],
        scratch: Scratch,
        parts: Mapping[Walk, tuple[str, ...]],
    ) -> Self:
        """Meet the judgments of lists lo..hi of a system."""
        targets = judged.lists.targets
        return cls(
            judged=judged,
            matched=matched,
            hits=cls.meet(judged, matched, lo, hi, scratch),
            lo=lo,
            hi=hi,
            view=judged.view,
            liked=judged.liked[lo:hi],
            disliked=judged.disliked[lo:hi],
            targets=None if targets is None else targets[lo:hi],
            scratch=scratch,
            shared=shared,
            parts=parts,
        )

    @staticmethod
    def meet(judged: Basis, matched: Matched, lo: int, hi: int, scratch: Scratch) -> Hits:
        """Return where lists lo..hi of a system meet the judgments."""
        return matched.hits(judged.judgments, lo, hi, scratch)

    def changed(self, **changes: Any) -> Self:
        """Return a block that differs in some fields and has computed nothing yet."""
        return replace(self, _walks={}, _derived={}, **changes)

    def derive(self, anti: bool, condensed: bool) -> Block:
        """Return the block as an anti-metric or a condensed one sees it."""
        key = (anti, condensed)
        if key == (False, False):
            return self
        if key not in self._derived:
            block = self._condensed() if condensed else self
            self._derived[key] = block._swapped() if anti else block
        return self._derived[key]

    def _condensed(self) -> Block:
        return self.changed(
            hits=self.hits.condensed(self.view),
            targets=(self.liked + self.disliked).astype(np.int64),
            is_condensed=True,
        )

    def _swapped(self) -> Block:
        return self.changed(
            view=self.view.anti, liked=self.disliked, disliked=self.liked, is_anti=True
        )

    def room(self, name: str, *shape: int) -> F64:
        """Return an array for a kernel to write to, valid until the next metric."""
        return self.scratch.array(name, (*shape, self.hi - self.lo), np.float64)

    def shown(self, cutoffs: I64) -> F64:
        """How many slots of each list lie above each cutoff."""
        return np.minimum(cutoffs[:, None], self.hits.depth[None, :]).astype(np.float64)

    def slots(self, cutoffs: I64) -> F64:
        """What precision divides by: the cutoff, or the list's length where there is none."""
        column = cutoffs[:, None].astype(np.float64)
        if cutoffs[-1] != WHOLE:
            return column
        return np.where(cutoffs[:, None] == WHOLE, self.hits.depth[None, :], column)

    def walk(self, part: str, cutoffs: I64) -> F64:
        """Return a part of what one walk down the lists gives; one of `PARTS`."""
        key = cutoffs.tobytes()
        if key not in self._walks:
            parts = self.parts.get((self.is_anti, self.is_condensed, key), PARTS)
            name = f"walk{len(self._walks)}{self.is_anti}{self.is_condensed}"
            shape = (len(parts), cutoffs.size, self.hi - self.lo)
            out = self.scratch.array(name, shape, np.float64)
            gain = self.view.gain if "gains" in parts else self.view.value
            discount = log_discount(self.judged.longest)
            self.run_kernel(
                "walk",
                self.view.label,
                gain,
                discount,
                self.liked,
                self.disliked,
                cutoffs,
                _rows_of(parts),
                out,
            )
            self._walks[key] = dict(zip(parts, out, strict=True))
        return self._walks[key][part]

    def run_kernel(self, name: str, *arguments: object) -> None:
        """Call a kernel on the hits of the block."""
        kernel = getattr(_kernels(), name)
        kernel(self.hits.start, self.hits.rank, self.hits.judgment, *arguments)

    def liked_within(self, limit: I64) -> F64:
        """How many liked items stand above a rank of each list's own."""
        count: F64 = (
            _kernels()
            .liked_within(
                self.hits.start, self.hits.rank, self.hits.judgment, self.view.label, limit
            )
            .astype(np.float64)
        )
        return count

    def discounted(self, weight: F64, discount: F64, cutoffs: I64) -> F64:
        """Sum of weight x discount over the judged hits above each cutoff."""
        total = self.room("discounted", cutoffs.size)
        self.run_kernel("discounted", weight, discount, cutoffs, total)
        return total

    def ideal(self, name: str, key: F64, weight: F64, discount: F64, cutoffs: I64) -> F64:
        """The same sum over all judgments of the user, by descending key; `name` names it."""
        memo = (name, self.is_anti, cutoffs.tobytes())
        if memo not in self.shared:
            judged = self.judged
            self.shared[memo] = _kernels().ideal(
                judged.lists.user,
                judged.judgments.start,
                key,
                weight,
                key is weight,
                discount,
                cutoffs,
                self.lo,
                self.hi,
            )
        return self.shared[memo]

    def sum_judged(self, weight: F64) -> F64:
        """Sum of a weight over all judgments of the user."""
        total: F64 = _kernels().sum_judged(
            self.judged.lists.user, self.judged.judgments.start, weight, self.lo, self.hi
        )
        return total

    def per_positive(self, power: float) -> F64:
        """Each judgment's item's number of liked ratings, to a power."""
        judged = self.judged
        counts = np.maximum(judged.positives, 1.0) ** power
        return counts[judged.judgments.item]

    def item_mean(self, weight: F64, cutoffs: I64) -> F64:
        """Mean of a weight of the recommended items above each cutoff; NaN without any."""
        run = self.matched
        weights = frozen(weight[run.from_run])
        args = (run.start, run.stop, run.run.item)
        total = _kernels().item_sum(*args, weights, cutoffs, self.lo, self.hi)
        ones = frozen(np.ones(weights.size))
        filled = _kernels().item_sum(*args, ones, cutoffs, self.lo, self.hi)
        return ratio(total, filled)


def ratio(top: NDArray[Any], bottom: NDArray[Any], out: F64 | None = None) -> F64:
    """Divide. Where the bottom is 0 so is the top, and 0/0 is undefined: NaN."""
    with np.errstate(divide="ignore", invalid="ignore"):
        result: F64 = np.divide(top, bottom, out=out, dtype=np.float64)
    return result
