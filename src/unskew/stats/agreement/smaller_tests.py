"""Means over smaller test sets, most of them added up hit by hit without a value per user."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

import numpy as np

from unskew.arrays import F64, I32, I64, U8, Mask, frozen
from unskew.checks import portion
from unskew.data.summary import item_counts
from unskew.engine.progress import Progress, Steps
from unskew.engine.rng import key_of
from unskew.engine.threads import map_blocks, resolve
from unskew.evaluation.scores import TRAINED, Scores
from unskew.evaluation.scoring import list_columns, score
from unskew.judging.judged import Judged
from unskew.judging.shape import Basis, Hits, Matched, View
from unskew.metrics.block import log_discount
from unskew.metrics.names import Metric
from unskew.splits.popularity import head

SmallerTest = Callable[[I64, int, int], Iterator[tuple[int, int, U8]]]
"""What keeps some judgments: gives (level, sample, 1 for what is kept) of judgments low to high.

It is called with where the judgments of each user in this range begin, counted from `low`, with
`low` and with `high`.
"""


@dataclass(frozen=True, eq=False, kw_only=True)
class SparseTest:
    """One sample of the test set, at every share."""

    number: int
    shares: Sequence[Fraction]
    seed: int
    per: str
    user: I32
    """The user's own number in the test set, of each judgment: what `draw` is asked with."""
    item: I32

    def __call__(self, start: I64, low: int, high: int) -> Iterator[tuple[int, int, U8]]:
        """Give what each share keeps."""
        from unskew.stats import kernels

        user, item = self.user[low:high], self.item[low:high]
        keep = np.empty(high - low, np.uint8)
        if self.per == "user":
            rank = np.empty(high - low, np.int32)
            kernels.places(start, user, item, self.key, rank)
            counts = np.diff(start)
            for level, share in enumerate(self.shares):
                kernels.keep_first(
                    start, frozen(rank), frozen(portion(counts, share, "half-even")), keep
                )
                yield level, self.number, keep
            return
        keys = self._keys(low, high)
        for level, limit in enumerate(self.limits):
            np.less_equal(keys, limit, out=keep.view(np.bool_))
            yield level, self.number, keep

    @property
    def key(self) -> np.uint64:
        """The key of the draws."""
        return np.uint64(key_of(self.seed, f"sample/{self.per}"))

    @cached_property
    def limits(self) -> list[int]:
        """For each share the largest key that is kept, of all judgments."""
        keys = self._keys(0, self.user.size)
        total = np.array([keys.size])
        sizes = [int(portion(total, share, "half-even")[0]) for share in self.shares]
        keys.partition(sorted({max(size - 1, 0) for size in sizes}))
        return [int(keys[size - 1]) if size else -1 for size in sizes]

    def _keys(self, low: int, high: int) -> I64:
        from unskew.stats import kernels

        keys = np.empty(high - low, np.int64)
        kernels.draw_keys(self.user[low:high], self.item[low:high], self.key, keys)
        return keys


def without_popular(level: int, share: Fraction, basis: Basis) -> SmallerTest:
    """Return what leaves the most popular items out, so that a share of them remains."""
    assert basis.train is not None
    gone = head(item_counts(basis.train), 1 - share)

    def remaining(_: I64, low: int, high: int) -> Iterator[tuple[int, int, U8]]:
        yield level, 0, np.logical_not(gone[basis.judgments.item[low:high]]).view(np.uint8)

    return remaining


def full_test(_: I64, low: int, high: int) -> Iterator[tuple[int, int, U8]]:
    """Give everything: the test set to compare with."""
    yield 0, 0, np.ones(high - low, np.uint8)


@dataclass(frozen=True)
class Averaging:
    """Who is averaged, and with what."""

    users: str
    undefined: str
    threads: int | None
    budget: int


# Metrics that are sums over hits are added up without a value per user. What `add_lists` adds up,
# in the order of its slots; a metric's definition names the one that its mean follows from.
SLOTS = (
    "liked",
    "recall",
    "precisions",
    "first",
    "preferences",
    "inferred",
    "inferred-all",
    "gains",
    "hit",
    "gains per ideal",
    "liked per place",
)
LIKED_COUNT, IDEAL = SLOTS.index("liked"), SLOTS.index("gains per ideal")
COMPLETE = (IDEAL, SLOTS.index("liked per place"))
SUMS = len(SLOTS)


def slot_of(metric: Metric, marks_pool: bool = False) -> int | None:
    """Return where `add_lists` adds up a metric; None for those that take the general way.

    Parameters
    ----------
    metric
        The metric.
    marks_pool
        Whether the judgments mark a pool, which decides infAP's unless it is stated.
    """
    fast_sum = metric.definition.fast_sum
    if metric.condensed or fast_sum is None:
        return None
    name = fast_sum(metric.params, metric.cutoff)
    if name == "inferred-auto":
        name = "inferred" if marks_pool else "inferred-all"
    return None if name is None else SLOTS.index(name)


TestMeans = tuple[F64, I64, I64]
"""Means (levels x samples x metrics x systems), judgments that remain and users that are averaged,
the most that a system has (levels x samples)."""


@dataclass(frozen=True, eq=False)
class Tally:
    """What is added up over blocks of lists, for each level and sample."""

    sums: F64
    """Levels x samples x systems x views (plain, anti) x slots x cutoffs."""
    averaged: I64
    """Levels x samples x systems: how many users the mean is of."""
    judgments: I64
    """Levels x samples: judgments kept."""
    users: I64
    """Levels x samples: users averaged, the most that a system has."""

    @classmethod
    def empty(cls, shape: tuple[int, int], systems: int, views: int, cutoffs: int) -> Tally:
        """Return sums of nothing."""
        counts = (np.zeros(size, np.int64) for size in ((*shape, systems), shape, shape))
        return cls(np.zeros((*shape, systems, views, SUMS, cutoffs)), *counts)

    def mean(self, slot: int, view: int, column: int) -> F64:
        """Return levels x samples x systems of one metric."""
        sums = self.sums[:, :, :, view, slot]
        # Of what is not complete by cutoff, each column holds what the next cutoff adds.
        total = sums[..., column] if slot in COMPLETE else sums[..., : column + 1].sum(axis=-1)
        with np.errstate(invalid="ignore"):
            mean: F64 = total / self.averaged
        return mean


def means_of_tests(
    judged: Judged,
    metrics: Mapping[str, Metric],
    settings: Averaging,
    draws: Sequence[SmallerTest],
    shape: tuple[int, int],
    progress: Progress | None = None,
) -> TestMeans:
    """Return the means of smaller test sets, and what remains in them."""
    marks_pool = judged.basis.marks_pool
    slots = {label: slot_of(metric, marks_pool) for label, metric in metrics.items()}
    if settings.undefined == "skip":
        slots = dict.fromkeys(metrics)
    quick = {label: metrics[label] for label, slot in slots.items() if slot is not None}
    slow = {label: metrics[label] for label, slot in slots.items() if slot is None}
    cutoffs = np.array(sorted({metric.whole_cutoff for metric in quick.values()}), np.int64)
    views = sorted({metric.anti for metric in quick.values()})
    size = _lists_per_block(judged, settings)
    blocks = range(0, len(judged.basis.lists), size)
    steps = Steps(len(draws) * (len(blocks) + bool(slow)), progress)
    want = np.zeros(SUMS, np.uint8)
    want[[slot for slot in slots.values() if slot is not None]] = 1
    tally = Tally.empty(shape, len(judged.systems), len(views), cutoffs.size)
    for low in blocks:
        block = _HitBlock.of(judged, views, cutoffs, want, settings.users, low, size)

        def add(draw: SmallerTest, block: _HitBlock = block) -> None:
            for level, sample, keep in draw(block.start, block.first, block.last):
                block.add(keep, tally, level, sample)
            steps.advance()

        map_blocks(add, draws, settings.threads)
    means = np.empty((*shape, len(metrics), len(judged.systems)))
    for position, (label, slot) in enumerate(slots.items()):
        if slot is not None:
            metric = metrics[label]
            column = int(np.searchsorted(cutoffs, metric.whole_cutoff))
            mean = tally.mean(slot, views.index(metric.anti), column)
            means[:, :, position] = mean / metric.whole_cutoff if slot == LIKED_COUNT else mean
    if slow:
        rows = [row for row, label in enumerate(metrics) if label in slow]
        start, total = judged.judgments.start, len(judged.judgments)

        def measure(draw: SmallerTest) -> None:
            for level, sample, keep in draw(start, 0, total):
                means[level, sample, rows] = _general(judged, slow, settings, keep.view(np.bool_))
            steps.advance()

        map_blocks(measure, draws, settings.threads)
    return means, tally.judgments, tally.users


def _lists_per_block(judged: Judged, settings: Averaging) -> int:
    """Choose how many lists' hits are held at a time; never shows in a result."""
    judgments = len(judged.judgments) / max(len(judged.basis.lists), 1) + 1
    list_bytes = 16 * len(judged.systems) * judgments + 64 * resolve(settings.threads) * judgments
    return max(min(int(settings.budget / list_bytes), 1 << 16), 64)


@dataclass(frozen=True, eq=False)
class _HitBlock:
    """The hits of all systems on some lists, and what their users have judged."""

    start: I64
    """Where each user's judgments begin, counted from `first`."""
    first: int
    last: int
    systems: list[Hits]
    views: list[View]
    cutoffs: I64
    bucket: I64
    want: U8
    discount: F64
    users: str
    trained: Mask | None

    @classmethod
    def of(
        cls,
        judged: Judged,
        views: Sequence[bool],
        cutoffs: I64,
        want: U8,
        users: str,
        low: int,
        size: int,
    ) -> _HitBlock:
        """Meet the judgments of some lists, once per system."""
        basis = judged.basis
        high = min(low + size, len(basis.lists))
        first, last = (int(basis.judgments.start[row]) for row in (low, high))

        def meet(matched: Matched) -> Hits:
            hits = matched.hits(basis.judgments, low, high)
            judgment = (hits.judgment - np.int32(first)).astype(np.int32)
            depth = frozen(hits.depth)
            return Hits(frozen(hits.start), frozen(hits.rank), frozen(judgment), depth)

        deepest = basis.longest
        bucket = np.searchsorted(cutoffs, np.arange(deepest + 1), side="left")
        trained = None
        if basis.train is not None:
            trained = np.diff(basis.train.start)[low:high] > 0
        return cls(
            start=frozen(basis.judgments.start[low : high + 1] - first),
            first=first,
            last=last,
            systems=map_blocks(meet, judged.matched.values()),
            views=[basis.view.anti if anti else basis.view for anti in views],
            cutoffs=frozen(cutoffs),
            bucket=frozen(bucket.astype(np.int64)),
            want=frozen(want),
            discount=log_discount(deepest),
            users=users,
            trained=trained,
        )

    def add(self, keep: U8, tally: Tally, level: int, sample: int) -> None:
        """Add the lists of this block, with only some judgments, to the sums."""
        from unskew.stats import kernels

        rows, here = self.start.size - 1, slice(self.first, self.last)
        label, gain = np.empty(keep.size, np.int8), np.empty(keep.size)
        liked, disliked = np.empty(rows), np.empty(rows)
        judgments = np.empty(rows, np.int32)
        weight: F64 | None = None
        for view, seen in enumerate(self.views):
            kernels.relabel(
                self.start,
                frozen(keep),
                frozen(seen.label[here]),
                frozen(seen.gain[here]),
                label,
                gain,
                liked,
                disliked,
                judgments,
            )
            if weight is None:
                weight = self._averaged(judgments, disliked if seen.is_anti else liked)
            inverse = self._inverse_ideal(frozen(gain), rows)
            for system, hits in enumerate(self.systems):
                kernels.add_lists(
                    hits.start,
                    hits.rank,
                    hits.judgment,
                    hits.depth,
                    frozen(label),
                    frozen(gain),
                    self.discount,
                    frozen(liked),
                    frozen(disliked),
                    frozen(weight),
                    inverse,
                    self.cutoffs,
                    self.bucket,
                    self.want,
                    tally.sums[level, sample, system, view],
                )
        if weight is None:  # no metric of this kind: only counts are asked for
            judgments = np.add.reduceat(np.append(keep, 0), self.start[:-1], dtype=np.int32)
            judgments[np.diff(self.start) == 0] = 0
            weight = (judgments > 0).astype(np.float64)
        tally.judgments[level, sample] += int(judgments.sum())
        counts = [self._count(weight, hits) for hits in self.systems]
        tally.averaged[level, sample] += counts
        tally.users[level, sample] += max(counts)

    def _averaged(self, judgments: I32, liked: F64) -> F64:
        """Return 1 for users who are averaged, whatever the system, else 0."""
        if self.users in TRAINED:
            assert self.trained is not None
            averaged = (
                self.trained if self.users == "with-train" else self.trained & (judgments > 0)
            )
            return averaged.astype(np.float64)
        if self.users in ("all", "with-list"):
            return np.ones(judgments.size)
        averaged = liked > 0 if self.users == "with-relevant" else judgments > 0
        return averaged.astype(np.float64)

    def _count(self, weight: F64, hits: Hits) -> int:
        listed = hits.depth > 0 if self.users in ("both", "with-list") else True
        return int(np.count_nonzero((weight > 0) & listed))

    def _inverse_ideal(self, gain: F64, rows: int) -> F64:
        """Return what nDCG multiplies with, a row per cutoff; 0 where it is undefined."""
        from unskew.metrics.kernels import lists as _kernels

        if not self.want[IDEAL]:
            return frozen(np.zeros((self.cutoffs.size, 0)))
        user = frozen(np.arange(rows, dtype=np.int32))
        best = _kernels.ideal(
            user, self.start, gain, gain, True, self.discount, self.cutoffs, 0, rows
        )
        return frozen(np.divide(1.0, best, out=np.zeros_like(best), where=best > 0))


def _general(judged: Judged, metrics: Mapping[str, Metric], settings: Averaging, keep: Mask) -> F64:
    """Return the means metrics x systems of any metrics, through a value for every list."""
    masked = judged.basis.masked(keep)
    lists = list_columns(judged, masked)
    labels = tuple(k for k, metric in metrics.items() if metric.definition.of != "run")
    out = np.empty((len(metrics), len(judged.systems)))
    # System by system, so that no more than one system's values are held at a time.
    for column, (name, matched) in enumerate(judged.matched.items()):
        result = score(masked, {name: matched}, metrics, threads=1, budget=settings.budget)
        scores = Scores(
            labels=labels,
            systems=result,
            user_ids=judged.users,
            lists=lists,
            users=settings.users,
            undefined=settings.undefined,
            order=tuple(metrics),
        )
        out[:, column] = [mean.value for mean in scores.averages()[name].values()]
    return out
