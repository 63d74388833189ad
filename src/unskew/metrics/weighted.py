"""Metrics as sums in which a judgment stands for several: what an IPS estimate is made of.

A metric that adds something up over liked items can be estimated from some of them: each one in a
list is counted 1/p times, p being its chance of being judged. A fraction is estimated by such a sum
over another.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from unskew.arrays import F64, I32, I64, frozen
from unskew.errors import DataError
from unskew.judging.shape import LIKED, Basis, View
from unskew.metrics.block import (
    WHOLE,
    Block,
    geometric_discount,
    geometric_table,
    log_discount,
    log_table,
    sum_of_discounts,
)
from unskew.metrics.settings import Params

Fraction = tuple[F64, F64 | None]


@dataclass(frozen=True)
class Weighted:
    """The weighted form of a metric."""

    fraction: Callable[[Seen, Params, I64], Fraction]
    """Top and bottom at each cutoff; no bottom where it is a plain sum."""
    sum_if: Params | None = None
    """Settings with which it is a sum over judged items divided by what is known; None: never."""
    is_ratio: bool = False
    """Whether it is a ratio of two sums over judgments: a common factor of weights cancels."""
    bias: str = ""
    """Why weights leave a bias that more users do not remove, and what to take instead.

    {anti} stands for the prefix of an anti-metric, {plain} for the metric `unnormalised`, {sum} for
    the metric with the settings of `sum_if`.
    """
    unnormalised: str = ""
    """The metric that it normalises."""
    needs_targets: bool = False
    """Whether the number of targets must be known."""
    high: Callable[[View, int, Params], float] | None = None
    """(judgments, longest list, settings) to the largest value, where it is not a constant."""


@dataclass(frozen=True)
class Linear:
    """A metric as a sum over judged hits, up to a divisor that all systems share.

    Each hit adds its column times the discount of its rank.
    """

    column: Callable[[Params], tuple[str, float]]
    """What a judgment adds (see `Columns.of`), and a power of the item's popularity."""
    discount: Callable[[Params, int], F64]
    """(settings, longest list) to a table by rank."""
    per_cutoff: bool = False
    """Whether it is divided by the cutoff."""


def liked_column(params: Params) -> tuple[str, float]:  # noqa: ARG001
    """A liked judgment adds 1."""
    return "liked", 0.0


def gain_column(params: Params) -> tuple[str, float]:  # noqa: ARG001
    """A judgment adds its gain."""
    return "gain", 0.0


def popularity_column(params: Params) -> tuple[str, float]:
    """A liked judgment adds a power of its item's number of liked ratings."""
    gamma = float(params["gamma"])
    return "SR", -gamma / (gamma + 1)


def largest_dcg(view: View, depth: int, params: Params) -> float:
    """Return the DCG of a list that holds nothing but the largest gain."""
    largest = float(view.gain.max()) if view.gain.size else 0.0
    return largest * float(log_table(params, depth).sum())


def largest_ndcg(view: View, depth: int, params: Params) -> float:  # noqa: ARG001
    """Return 1; by the best order nDCL has no upper end."""
    return float("inf") if params["ideal"] == "best" else 1.0


@dataclass(eq=False)
class Columns:
    """Judgments as estimands add them up: liked or gain, times weight. Made once for all blocks."""

    judged: Basis
    weight: F64 | None
    """Of each judgment; None where all count once."""
    _memory: dict[tuple[object, ...], F64] = field(default_factory=dict)

    def view(self, anti: bool) -> View:
        """Return the judgments, liked and disliked exchanged for an anti-metric."""
        return self.judged.view.anti if anti else self.judged.view

    def of(self, what: str, anti: bool, power: float = 0.0) -> F64:
        """Return `liked`, `judged`, `gain`, `squares` (of weights of the liked), `SR` or `HLU`."""
        key = (what, anti, power)
        if key not in self._memory:
            self._memory[key] = frozen(self._make(what, self.view(anti), power))
        return self._memory[key]

    def _make(self, what: str, view: View, power: float) -> F64:
        kinds: dict[str, Callable[[], F64]] = {
            "liked": lambda: view.liked,
            "squares": lambda: view.liked,
            "judged": lambda: view.judged,
            "gain": lambda: view.gain,
            "SR": lambda: view.liked * self._popular(power),
            "HLU": lambda: view.liked * view.gain * self._popular(power),
        }
        column = kinds[what]()
        if self.weight is None:
            return column
        result: F64 = column * (self.weight**2 if what == "squares" else self.weight)
        return result

    def _popular(self, power: float) -> F64:
        counts = np.maximum(self.judged.positives, 1.0) ** power
        return counts[self.judged.judgments.item]

    @property
    def each(self) -> F64:
        """The weight of each judgment."""
        return frozen(np.ones(len(self.judged.judgments))) if self.weight is None else self.weight


@dataclass(eq=False)
class Seen:
    """A block of lists whose judgments are weighted; sums are computed once."""

    block: Block
    columns: Columns
    anti: bool
    _memory: dict[tuple[object, ...], F64] = field(default_factory=dict)

    def weighted_hits(
        self, what: str, discount: F64, name: str, cutoffs: I64, power: float = 0.0
    ) -> F64:
        """Sum weight x discount over the hits above each cutoff; `name` is the discount's."""
        key = ("hits", what, name, power, cutoffs.tobytes())
        if key not in self._memory:
            column = self.columns.of(what, self.anti, power)
            self._memory[key] = self.block.discounted(column, discount, cutoffs).copy()
        return self._memory[key]

    def liked(self, cutoffs: I64) -> F64:
        """Liked items above each cutoff."""
        return self.weighted_hits("liked", _flat(self.block.judged), "flat", cutoffs)

    def judged(self, cutoffs: I64) -> F64:
        """Judged items above each cutoff."""
        return self.weighted_hits("judged", _flat(self.block.judged), "flat", cutoffs)

    def all(self, what: str = "liked", power: float = 0.0) -> F64:
        """The same sum over all judgments of the user; it does not depend on the system."""
        key = ("all", what, self.anti, power, id(self.columns))
        shared = self.block.shared
        if key not in shared:
            shared[key] = self.block.sum_judged(self.columns.of(what, self.anti, power))
        return shared[key]

    def ideal(self, name: str, key: F64, gain: F64, discount: F64, cutoffs: I64) -> F64:
        """Sum gain x discount in the best order, a judgment filling as many ranks as its weight."""
        if self.columns.weight is None:
            return self.block.ideal(f"{name}-{self.anti}", key, gain, discount, cutoffs)
        memo = ("ideal", name, self.anti, cutoffs.tobytes(), id(self.columns))
        shared = self.block.shared
        if memo not in shared:
            judged = self.block.judged
            from unskew.metrics.kernels import lists

            shared[memo] = lists.weighted_ideal(
                judged.lists.user,
                judged.judgments.start,
                key,
                gain,
                key is gain,
                self.columns.each,
                frozen(np.cumsum(discount)),
                cutoffs,
                self.block.lo,
                self.block.hi,
            )
        return shared[memo]

    def precisions(self, cutoffs: I64) -> F64:
        """Sum of the precision at each liked item, pairs weighted by the product."""
        from unskew.metrics.kernels import lists

        out = np.empty((cutoffs.size, self.block.hi - self.block.lo))
        hits, column = self.block.hits, self.columns.of("liked", self.anti)
        lists.weighted_precisions(hits.start, hits.rank, hits.judgment, column, cutoffs, out)
        return out

    @property
    def targets(self) -> F64:
        """How many items could be ranked."""
        assert self.block.targets is not None
        size = self.block.targets.astype(np.float64)
        short = self.block.hits.depth > self.block.targets
        if short.any():
            row = int(np.argmax(short))
            owner = int(self.block.judged.lists.user[self.block.lo + row])
            raise DataError(
                f"the list of user {self.block.judged.judgments.users.values[owner]!r} holds "
                f"{int(self.block.hits.depth[row])} items, but there are only {int(size[row])} "
                f"targets; give the whole catalogue (items=…)"
            )
        return size


def _flat(judged: Basis) -> F64:
    return judged.once("estimate/flat", lambda: np.ones(judged.longest + 1))


def _ranks(judged: Basis) -> F64:
    return judged.once("estimate/ranks", lambda: np.arange(judged.longest + 1, dtype=np.float64))


def precision(seen: Seen, params: Params, cutoffs: I64) -> Fraction:
    """Liked items over places."""
    block = seen.block
    slots = block.shown(cutoffs) if params["per"] == "list" else block.slots(cutoffs)
    return seen.liked(cutoffs) / np.maximum(slots, 1), None


def _fits(seen: Seen, params: Params, cutoffs: I64) -> F64:
    """Return what recall and average precision divide by."""
    block, liked = seen.block, seen.all()[None, :]
    if params["per"] == "all":
        return liked
    slots = block.shown(cutoffs) if params["per"] == "list" else block.slots(cutoffs)
    fits = slots if params["per"] == "k" else np.minimum(liked, slots)
    smallest = np.minimum(liked, 1.0) if params["per"] != "k" else 1.0
    return np.where(liked == 0, 0.0, np.maximum(fits, smallest))


def recall(seen: Seen, params: Params, cutoffs: I64) -> Fraction:
    """Liked items of the list over all liked items."""
    return seen.liked(cutoffs), _fits(seen, params, cutoffs)


def f1(seen: Seen, params: Params, cutoffs: I64) -> Fraction:
    """2 P Recall / (P + Recall) = 2 hits / (k + all)."""
    block, liked = seen.block, seen.all()[None, :]
    slots = block.shown(cutoffs) if params["per"] == "list" else block.slots(cutoffs)
    return 2 * seen.liked(cutoffs), np.where(liked == 0, 0.0, np.maximum(slots, 1) + liked)


def _dcg(seen: Seen, params: Params, cutoffs: I64) -> F64:
    kind = str(params["discount"])
    return seen.weighted_hits("gain", log_discount(seen.block.judged.longest, kind), kind, cutoffs)


def dcg(seen: Seen, params: Params, cutoffs: I64) -> Fraction:
    """Discounted gains."""
    return _dcg(seen, params, cutoffs), None


def ndcg(seen: Seen, params: Params, cutoffs: I64) -> Fraction:
    """Discounted gains over those of the best order."""
    kind, name = params["ideal"], str(params["discount"])
    view, judged = seen.columns.view(seen.anti), seen.block.judged
    top = _dcg(seen, params, cutoffs)
    if kind == "full":
        best = float(view.gain.max()) if view.gain.size else 0.0
        sums = np.array([sum_of_discounts(int(cutoff), name) for cutoff in cutoffs])
        return top / (best * sums[:, None]), None
    # A judgment may stand for more ranks than any list has: the table goes to the last item.
    discount = log_discount(max(judged.longest, len(judged.judgments.items)), name)
    key = view.gain
    if kind == "best":
        key = judged.once(
            ("estimate/signed", seen.anti),
            lambda: np.where(view.judged > 0, view.loss - view.gain, -np.inf),
        )
    cuts = np.array([WHOLE]) if kind == "uncut" else cutoffs
    bottom = seen.ideal(f"nDCG-{kind}-{name}", key, view.gain, discount, cuts)
    return np.where(bottom == 0, 0.0, top), np.broadcast_to(bottom, top.shape)


def rbp(seen: Seen, params: Params, cutoffs: I64) -> Fraction:
    """Geometric discounts of the liked items."""
    table = geometric_table(params, seen.block.judged.longest)
    return seen.weighted_hits("liked", table, f"rbp{params['p']}", cutoffs), None


def stratified_recall(seen: Seen, params: Params, cutoffs: I64) -> Fraction:
    """Recall in which an item counts the less, the more often it is liked."""
    power = popularity_column(params)[1]
    top = seen.weighted_hits("SR", _flat(seen.block.judged), "flat", cutoffs, power)
    return top, seen.all("SR", power)[None, :]


def half_life(seen: Seen, params: Params, cutoffs: I64) -> Fraction:
    """Halved gains over those of the best order."""
    power = -1.0 if params["weight"] == "popularity" else 0.0
    halving = 0.5 ** (1.0 / (float(params["halflife"]) - 1.0))
    judged = seen.block.judged
    table = geometric_discount(judged.longest, 1.0, halving)
    longer = geometric_discount(max(judged.longest, len(judged.judgments.items)), 1.0, halving)
    name = f"HLU{params['halflife']}{params['weight']}"
    plain = Columns(judged, None)
    gain = judged.once(
        ("estimate/HLU", power, seen.anti), lambda: plain.of("HLU", seen.anti, power)
    )
    top = seen.weighted_hits("HLU", table, name, cutoffs, power)
    return top, seen.ideal(name, gain, gain, longer, cutoffs)


def average_precision(seen: Seen, params: Params, cutoffs: I64) -> Fraction:
    """Precision at each liked item, over all liked items."""
    return seen.precisions(cutoffs), _fits(seen, params, cutoffs)


def _beyond(seen: Seen, cutoffs: I64) -> tuple[F64, F64]:
    """Return ranks below the liked items, added up, and the weight of all liked ones.

    Items outside the list stand together at its end.
    """
    targets, liked = seen.targets[None, :], seen.all()[None, :]
    hits = seen.liked(cutoffs)
    ranks = seen.weighted_hits("liked", _ranks(seen.block.judged), "rank", cutoffs)
    mean_rank = np.maximum(targets - seen.block.shown(cutoffs) - 1, 0.0) / 2
    return (targets - mean_rank) * hits - ranks + liked * mean_rank, liked


def auc(seen: Seen, params: Params, cutoffs: I64) -> Fraction:  # noqa: ARG001
    """Pairs in the right order over all pairs; two liked items are a pair with both weights."""
    below, liked = _beyond(seen, cutoffs)
    twice = liked**2 - seen.all("squares")[None, :]  # ordered pairs of two liked items
    pairs = np.broadcast_to((seen.targets - 1) * liked - twice, below.shape)
    usable = pairs > 0
    return np.where(usable, below - twice / 2, 0.0), np.where(usable, pairs, 0.0)


def mean_normalised_rank(seen: Seen, params: Params, cutoffs: I64) -> Fraction:  # noqa: ARG001
    """Mean normalised rank of the liked items."""
    below, liked = _beyond(seen, cutoffs)
    places = (seen.targets - 1)[None, :]
    usable = (places > 0) & (liked > 0)
    return np.where(usable, below / np.maximum(places, 1), 0.0), np.where(usable, liked, 0.0)


def mean_discounted_gain(seen: Seen, params: Params, cutoffs: I64) -> Fraction:  # noqa: ARG001
    """Mean discount of the liked items."""
    table = log_discount(seen.block.judged.longest, "log")
    return seen.weighted_hits("liked", table, "log", cutoffs), seen.all()[None, :]


def liked_hits(block: Block, view: View, deepest: int) -> tuple[I32, I32]:
    """Return rank and judgment of the liked hits down to a rank."""
    hits = block.hits
    mine = (view.label[hits.judgment] == LIKED) & (hits.rank <= deepest)
    return hits.rank[mine], hits.judgment[mine]
