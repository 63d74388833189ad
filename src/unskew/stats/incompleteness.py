"""`robustness`: how the order of systems holds when less is known.

Ranked lists stay as they are: judged items are met once per system, and a smaller test set only
takes some of them as unjudged.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Protocol, Unpack

import numpy as np
import polars as pl

from unskew.arrays import F64, I32, I64, U8, Mask, frozen
from unskew.checks import as_count, as_share, checked, choose, portion
from unskew.engine.rng import key_of
from unskew.engine.threads import map_blocks, resolve
from unskew.errors import DataError, SettingError
from unskew.evaluation.evaluate import MEMORY, labelled, memory_bytes
from unskew.evaluation.scores import UNDEFINED, USERS, Scores
from unskew.evaluation.scoring import Progress, list_columns, prepare, score
from unskew.judging.judged import Judged, as_judged, second_argument
from unskew.judging.reading import DataOptions
from unskew.judging.shape import Basis, Hits, Matched, View
from unskew.metrics.block import log_discount
from unskew.metrics.names import Metric
from unskew.report.charts import Figure, as_figure
from unskew.report.result import Result
from unskew.report.tables import WIDE
from unskew.splits.popularity import head, item_counts
from unskew.splits.subsample import PER
from unskew.stats.correlation import rounded
from unskew.stats.pairing import Source, paired
from unskew.stats.user_draws import at_least_two, chosen_metrics, reweighted

TO = ("sparsity", "popularity")
METRICS = ("P@10", "Recall@10", "AP@10", "nDCG@10", "RR@10", "bpref", "infAP(pool=all)")
"""What is looked at when no metrics are named: the seven of valcarce2018."""
SHARES = {
    "sparsity": tuple(round(0.05 * step, 2) for step in range(19, 0, -1)),
    "popularity": tuple(round(1 - 0.01 * step, 2) for step in range(1, 21)),
    "users": tuple(round(0.05 * step, 2) for step in range(19, 0, -1)),
}
"""The levels of valcarce2018 section 5."""
SAMPLES = 50
KEPT = {
    "sparsity": "share of test judgments kept",
    "popularity": "share of items kept, the least popular",
    "users": "share of users kept",
}


@dataclass(frozen=True, eq=False)
class Robustness(Result):
    """Kendall's τ_b between the order of systems on smaller test sets and on the full one.

    Made by `robustness` and `user_robustness`.
    """

    digits = 3

    to: str
    """`sparsity`, `popularity` or `users`."""
    systems: tuple[str, ...]
    metrics: tuple[str, ...]
    shares: tuple[float, ...]
    """What is kept: of each user's judgments, of the items, or of the users."""
    tau: F64
    """Metrics x shares x samples; NaN where all systems are equal."""
    judgments: I64
    """Shares x samples: test judgments left (0 where users were drawn)."""
    users: I64
    """Shares x samples: users left to average."""
    full: Mapping[str, int]
    """`judgments` and `users` of the full test set."""
    means: F64
    """Metrics x shares x samples x systems."""
    full_means: F64
    """Metrics x systems."""
    seed: int = 0
    notes: tuple[str, ...] = ()

    def table(self) -> pl.DataFrame:
        """Return a row per metric and share: τ (mean over samples), its spread, what was left.

        Columns: metric, share, tau, sd (null for a single one), low and high (the least and the
        largest of the samples),
        samples, undefined (samples in which all systems are equal; left out of the mean),
        judgments and users (means over samples).
        """
        rows = [
            {
                "metric": metric,
                "share": share,
                **_spread(self.tau[m, s]),
                "judgments": float(self.judgments[s].mean()),
                "users": float(self.users[s].mean()),
            }
            for m, metric in enumerate(self.metrics)
            for s, share in enumerate(self.shares)
        ]
        if self.to == "users":
            rows = [{k: v for k, v in row.items() if k != "judgments"} for row in rows]
        return pl.DataFrame(rows, infer_schema_length=None)

    def wide(self) -> pl.DataFrame:
        """Return the mean τ: a row per share, a column per metric."""
        columns: dict[str, Sequence[float | None]] = {"share": self.shares}
        for m, metric in enumerate(self.metrics):
            columns[metric] = [_spread(taus)["tau"] for taus in self.tau[m]]
        return pl.DataFrame(columns)

    def summary(self) -> pl.DataFrame:
        """Return a row per metric, the most robust first: τ averaged over shares, and its least.

        A share at which τ is undefined is left out of the average.
        """
        rows = []
        for m, metric in enumerate(self.metrics):
            means = [_spread(taus)["tau"] for taus in self.tau[m]]
            known = [mean for mean in means if mean is not None]
            rows.append(
                {
                    "metric": metric,
                    "tau": math.fsum(known) / len(known) if known else None,
                    "least": min(known, default=None),
                    "undefined": len(means) - len(known),
                }
            )
        schema = {
            "metric": pl.String,
            "tau": pl.Float64,
            "least": pl.Float64,
            "undefined": pl.Int64,
        }
        table = pl.DataFrame(rows, schema=schema)
        return table.sort("tau", descending=True, nulls_last=True, maintain_order=True)

    def systems_table(self) -> pl.DataFrame:
        """Return a row per metric, share and system: its mean score, the sd, and the full one.

        So that one sees what a smaller test set does to the scores themselves.
        """
        single = self.means.shape[2] < 2
        rows = [
            {
                "metric": metric,
                "share": share,
                "system": system,
                "mean": float(self.means[m, s, :, at].mean()),
                "sd": None if single else float(self.means[m, s, :, at].std(ddof=1)),
                "full": float(self.full_means[m, at]),
            }
            for m, metric in enumerate(self.metrics)
            for s, share in enumerate(self.shares)
            for at, system in enumerate(self.systems)
        ]
        return pl.DataFrame(rows, schema_overrides={"sd": pl.Float64}, infer_schema_length=None)

    def figure(self, metrics: Iterable[str] | None = None) -> Figure:
        """Draw the mean τ over the share that is kept, a line per metric."""
        import altair as alt

        wanted = list(self.metrics) if metrics is None else list(metrics)
        for metric in wanted:
            choose("metric", metric, self.metrics)
        table = self.table().filter(pl.col("metric").is_in(wanted) & pl.col("tau").is_not_null())
        rows = table.select("metric", "share", "tau", "low", "high").to_dicts()
        x = alt.X("share:Q", title=KEPT[self.to])
        x = x.scale(reverse=True, zero=False).axis(format="%")
        y = alt.Y("tau:Q", title="Kendall's τ with all of it").scale(zero=False)
        color = alt.Color("metric:N").scale(domain=wanted)
        chart = alt.Chart(alt.NamedData(name="rows"), width=520, height=280)
        line: alt.Chart = chart.mark_line(point=True).encode(x=x, y=y, color=color)
        return as_figure(line, f"Robustness to {self.to}", self.footer(), rows)

    def _explanation(self) -> list[str]:
        samples = self.tau.shape[2]
        each = f"{samples} samples per share" if samples > 1 else "one test set per share"
        least = int(self.users.min(initial=self.full["users"]))
        lines = [f"τ_b of {len(self.systems)} systems with their order on everything; {each}"]
        if self.to != "users" and least < self.full["users"]:
            lines.append(
                f"users without judgments left are not averaged: of {self.full['users']:,} "
                f"at least {least:,} remain"
            )
        undefined = int(np.isnan(self.tau).sum())
        if undefined:
            lines.append(f"undefined (all systems equal): {undefined:,} of {self.tau.size:,} τ")
        return lines

    def display_table(self) -> pl.DataFrame:
        """Return a column per metric or, where there are many, a row."""
        return self.wide() if len(self.metrics) <= WIDE else self.summary()

    def _summary(self) -> str:
        return (
            f"to={self.to!r}, {len(self.systems)} systems, {len(self.metrics)} metrics, "
            f"{len(self.shares)} shares, {self.tau.shape[2]} samples"
        )


def _spread(taus: F64) -> dict[str, float | None]:
    """Return mean and spread of the samples in which τ is defined."""
    known = taus[~np.isnan(taus)]
    facts: dict[str, float | None] = {"tau": None, "sd": None, "low": None, "high": None}
    if known.size:
        facts["tau"] = math.fsum(known) / known.size
        facts |= {"low": float(known.min()), "high": float(known.max())}
    if known.size > 1:
        facts["sd"] = float(known.std(ddof=1))
    return {**facts, "samples": taus.size, "undefined": taus.size - known.size}


# On runs and judgments


@checked
def robustness(
    judgments: object,
    runs: object = None,
    metrics: str | Metric | Iterable[str | Metric] = METRICS,
    *,
    to: str = "sparsity",
    shares: Sequence[float] | None = None,
    samples: int = SAMPLES,
    per: str = "user",
    users: str = "with-test",
    undefined: str = "zero",
    seed: int = 0,
    threads: int | None = None,
    memory: int | str = MEMORY,
    progress: Progress | None = None,
    **data: Unpack[DataOptions],
) -> Robustness:
    """Measure how the order of systems holds when the test set shrinks; nothing is ranked anew.

    For each share and sample: systems are ordered by their mean, and Kendall's τ_b with the order
    on the full test set is taken, metric by metric (valcarce2018 section 4). Means equal to 12
    digits are ties.

    Parameters
    ----------
    judgments, runs, metrics
        Judged data (`judge`) of at least two systems alone, with the metrics as the second
        argument; or raw data as `judge` takes them.
    to
        `sparsity`: random parts of the test set; sample n is
        ``sparsity_sample(judgments, share, seed + n, per=per)``, so that in each sample the
        smaller test sets are parts of the larger. `popularity`: without the items that have most
        training ratings, ``popularity_cut(train, judgments, share)``; one test set per share.
    shares
        What to keep: of the judgments, or of the items with training ratings. Default: 0.95, 0.90
        … 0.05, and for popularity 0.99 … 0.80, as the paper.
    samples
        Samples per share of a sparse test set; 50 in the paper.
    per
        `user` keeps the share of each user's judgments (half to even, valcarce2018), `all` of all
        judgments together (bellogin2017).
    users, undefined
        Which users are averaged, as in `evaluate`, looked up in each smaller test set: by default
        a user without judgments left drops out of the average, as in trec_eval; `table` counts
        who remains.
    seed
        Of the first sample.
    threads, memory
        Never change a result.
    progress
        Called with (done, total) as work goes on.
    data
        Of raw data, see `judge`: liked, above, gain, loss, relevance, items, ties, depth; and
        train, which `to="popularity"` needs.

    Returns
    -------
    Robustness

    Examples
    --------
    >>> from unskew.stats.incompleteness import robustness
    >>> test = {"user": [1, 1, 1, 2, 2], "item": [1, 2, 3, 1, 2], "rating": [5, 2, 4, 4, 1]}
    >>> runs = {"a": {1: [1, 3], 2: [1]}, "b": {1: [2, 3], 2: [1]}}
    >>> result = robustness(test, runs, "P@2", shares=[0.5], samples=4, liked=4)
    >>> result.table().select("metric", "share", "judgments", "users").rows()
    [('P@2', 0.5, 3.0, 2.0)]
    """
    choose("to", to, TO)
    choose("per", per, PER)
    choose("users", users, USERS)
    choose("undefined", undefined, UNDEFINED)
    runs, metrics = second_argument(judgments, runs, metrics, METRICS)
    levels = _levels(SHARES[to] if shares is None else shares)
    wanted = labelled(metrics)
    judged = as_judged(judgments, runs, seed=seed, **data)
    if judged.targets is not None:
        raise SettingError("give test ratings and runs with one list per user, not target lists")
    if to == "popularity" and judged.train is None:
        raise DataError("to='popularity' needs the training ratings: give train=…")
    if users == "with-train" and judged.train is None:
        raise SettingError("users='with-train' needs the training ratings: give train=…")
    at_least_two(list(judged.systems))
    judged = prepare(judged, wanted)
    settings = _Settings(users, undefined, resolve(threads), memory_bytes(memory))
    count = as_count("samples", samples) if to == "sparsity" else 1
    draws = _draws(judged, to, levels, count, seed, per)
    full, everything = _means(judged, wanted, settings, [_Everything()], (1, 1))
    means, tally = _means(judged, wanted, settings, draws, (len(levels), count), progress)
    return Robustness(
        to=to,
        systems=tuple(judged.systems),
        metrics=tuple(wanted),
        shares=tuple(float(part) for part in levels),
        tau=_taus(means, full[0, 0]),
        judgments=tally.judgments,
        users=tally.users,
        full={"judgments": len(judged.tests), "users": int(everything.users[0, 0])},
        means=_by_metric(means),
        full_means=full[0, 0],
        seed=seed,
        notes=tuple(dict.fromkeys([*judged.read.tests, *judged.read.relevance])),
    )


def _draws(
    judged: Judged, to: str, levels: list[Fraction], count: int, seed: int, per: str
) -> list[_Draw]:
    """Return what draws the smaller test sets."""
    if to == "popularity":
        return [_Cut(at, part, judged.basis) for at, part in enumerate(levels)]
    # Draws go by the numbers of the test set as given, whatever ids the runs bring along.
    user, item = judged.numbering.own_numbers
    return [_Sparse(levels, seed + n, per, user, item, n) for n in range(count)]


def _levels(shares: Sequence[float]) -> list[Fraction]:
    levels = [as_share("shares", share, one=True) for share in shares]
    if not levels:
        raise SettingError("no shares are given")
    return levels


@dataclass(frozen=True)
class _Settings:
    """Who is averaged, and with what."""

    users: str
    undefined: str
    threads: int
    budget: int


class _Draw(Protocol):
    """Something that keeps some judgments, at one or several levels."""

    def keeps(self, start: I64, low: int, high: int) -> Iterator[tuple[int, int, U8]]:
        """Give (level, sample, 1 for what is kept) of judgments low..high.

        `start` is where the judgments of each user in this range begin, counted from `low`.
        """


@dataclass(frozen=True, eq=False)
class _Sparse:
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
class _Cut:
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
class _Everything:
    """The full test set, to compare with."""

    def keeps(self, start: I64, low: int, high: int) -> Iterator[tuple[int, int, U8]]:  # noqa: ARG002
        """Give everything."""
        yield 0, 0, np.ones(high - low, np.uint8)


def _by_metric(means: F64) -> F64:
    return np.ascontiguousarray(np.moveaxis(means, 2, 0))


def _taus(means: F64, full: F64) -> F64:
    """Return τ_b of every sample's means with the full ones: metrics x shares x samples."""
    from unskew.stats import rank_kernels as kernels

    levels, samples, columns, systems = means.shape
    out = np.empty((columns, levels, samples))
    for column in range(columns):
        rows = rounded(means[:, :, column].reshape(-1, systems))
        reference = rounded(full[column])
        out[column] = kernels.taus(frozen(rows), frozen(reference)).reshape(levels, samples)
    return out


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


def _slot(metric: Metric) -> int | None:
    """Return where `add_lists` adds up a metric; None for those that take the general way."""
    fast_sum = metric.definition.fast_sum
    if metric.condensed or fast_sum is None:
        return None
    name = fast_sum(metric.params, metric.cutoff)
    return None if name is None else SLOTS.index(name)


@dataclass(frozen=True, eq=False)
class _Tally:
    """What is added up over blocks of lists, for each level and sample."""

    sums: F64
    """Levels x samples x systems x views (plain, anti) x slots x cutoffs."""
    averaged: I64
    """Levels x samples x systems: how many users the mean is of."""
    judgments: I64
    """Levels x samples: judgments kept."""
    users: I64
    """Levels x samples: users averaged, the most that a system has."""

    def mean(self, slot: int, view: int, column: int) -> F64:
        """Return levels x samples x systems of one metric."""
        sums = self.sums[:, :, :, view, slot]
        # Of what is not complete by cutoff, each column holds what the next cutoff adds.
        total = sums[..., column] if slot in COMPLETE else sums[..., : column + 1].sum(axis=-1)
        with np.errstate(invalid="ignore"):
            mean: F64 = total / self.averaged
        return mean


class _Steps:
    """Counts what is done."""

    def __init__(self, total: int, progress: Progress | None) -> None:
        self.total, self.progress, self.done = total, progress, 0

    def one(self) -> None:
        """Another step is done."""
        self.done += 1
        if self.progress is not None:
            self.progress(self.done, self.total)


def _means(
    judged: Judged,
    wanted: Mapping[str, Metric],
    settings: _Settings,
    draws: Sequence[_Draw],
    shape: tuple[int, int],
    progress: Progress | None = None,
) -> tuple[F64, _Tally]:
    """Return the means levels x samples x metrics x systems."""
    slots = {label: _slot(metric) for label, metric in wanted.items()}
    if settings.undefined == "skip":
        slots = dict.fromkeys(wanted)
    quick = {label: wanted[label] for label, slot in slots.items() if slot is not None}
    slow = {label: wanted[label] for label, slot in slots.items() if slot is None}
    cutoffs = np.array(sorted({metric.whole_cutoff for metric in quick.values()}), np.int64)
    views = sorted({metric.anti for metric in quick.values()})
    size = _lists_per_block(judged, settings)
    blocks = range(0, len(judged.basis.lists), size)
    steps = _Steps(len(draws) * (len(blocks) + bool(slow)), progress)
    want = np.zeros(SUMS, np.uint8)
    want[[slot for slot in slots.values() if slot is not None]] = 1
    tally = _empty_tally(shape, len(judged.systems), len(views), cutoffs.size)
    for low in blocks:
        block = _Block.of(judged, views, cutoffs, want, settings.users, low, size)

        def add(draw: _Draw, block: _Block = block) -> None:
            for level, sample, keep in draw.keeps(block.start, block.first, block.last):
                block.add(keep, tally, level, sample)
            steps.one()

        map_blocks(add, draws, settings.threads)
    means = np.empty((*shape, len(wanted), len(judged.systems)))
    for at, (label, slot) in enumerate(slots.items()):
        if slot is not None:
            metric = wanted[label]
            column = int(np.searchsorted(cutoffs, metric.whole_cutoff))
            mean = tally.mean(slot, views.index(metric.anti), column)
            means[:, :, at] = mean / metric.whole_cutoff if slot == LIKED_COUNT else mean
    if slow:
        rows = [at for at, label in enumerate(wanted) if label in slow]
        start, total = judged.judgments.start, len(judged.judgments)

        def measure(draw: _Draw) -> None:
            for level, sample, keep in draw.keeps(start, 0, total):
                means[level, sample, rows] = _general(judged, slow, settings, keep.view(np.bool_))
            steps.one()

        map_blocks(measure, draws, settings.threads)
    return means, tally


def _empty_tally(shape: tuple[int, int], systems: int, views: int, cutoffs: int) -> _Tally:
    return _Tally(
        np.zeros((*shape, systems, views, SUMS, cutoffs)),
        np.zeros((*shape, systems), np.int64),
        np.zeros(shape, np.int64),
        np.zeros(shape, np.int64),
    )


def _lists_per_block(judged: Judged, settings: _Settings) -> int:
    """Choose how many lists' hits are held at a time; never shows in a result."""
    each = len(judged.judgments) / max(len(judged.basis.lists), 1) + 1
    held = 16 * len(judged.systems) * each + 64 * settings.threads * each
    return max(min(int(settings.budget / held), 1 << 16), 64)


@dataclass(frozen=True, eq=False)
class _Block:
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
    ) -> _Block:
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

    def add(self, keep: U8, tally: _Tally, level: int, sample: int) -> None:
        """Add the lists of this block, with only some judgments, to the sums."""
        from unskew.stats import rank_kernels as kernels

        rows, here = self.start.size - 1, slice(self.first, self.last)
        label, gain = np.empty(keep.size, np.int8), np.empty(keep.size)
        liked, disliked = np.empty(rows), np.empty(rows)
        kept = np.empty(rows, np.int32)
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
                kept,
            )
            if weight is None:
                weight = self._averaged(kept, disliked if seen.is_anti else liked)
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
            kept = np.add.reduceat(np.append(keep, 0), self.start[:-1], dtype=np.int32)
            kept[np.diff(self.start) == 0] = 0
            weight = (kept > 0).astype(np.float64)
        tally.judgments[level, sample] += int(kept.sum())
        counts = [self._count(weight, hits) for hits in self.systems]
        tally.averaged[level, sample] += counts
        tally.users[level, sample] += max(counts)

    def _averaged(self, kept: I32, liked: F64) -> F64:
        """Return 1 for users who are averaged, whatever the system, else 0."""
        if self.users == "with-train":
            assert self.trained is not None
            return self.trained.astype(np.float64)
        if self.users in ("all", "with-list"):
            return np.ones(kept.size)
        some = liked > 0 if self.users == "with-relevant" else kept > 0
        return some.astype(np.float64)

    def _count(self, weight: F64, hits: Hits) -> int:
        listed = hits.depth > 0 if self.users in ("both", "with-list") else True
        return int(np.count_nonzero((weight > 0) & listed))

    def _inverse_ideal(self, gain: F64, rows: int) -> F64:
        """Return what nDCG multiplies with, a row per cutoff; 0 where it is undefined."""
        from unskew.metrics import kernels as _kernels

        if not self.want[IDEAL]:
            return frozen(np.zeros((self.cutoffs.size, 0)))
        user = frozen(np.arange(rows, dtype=np.int32))
        best = _kernels.ideal(
            user, self.start, gain, gain, True, self.discount, self.cutoffs, 0, rows
        )
        return frozen(np.divide(1.0, best, out=np.zeros_like(best), where=best > 0))


def _general(judged: Judged, wanted: Mapping[str, Metric], settings: _Settings, keep: Mask) -> F64:
    """Return the means metrics x systems of any metrics, through a value for every list."""
    masked = judged.basis.masked(keep)
    lists = list_columns(judged, masked)
    labels = tuple(k for k, metric in wanted.items() if metric.definition.of != "run")
    out = np.empty((len(wanted), len(judged.systems)))
    # System by system, so that no more than one system's values are held at a time.
    for at, (name, matched) in enumerate(judged.matched.items()):
        result = score(masked, {name: matched}, wanted, threads=1, budget=settings.budget)
        scores = Scores(
            labels=labels,
            systems=result,
            user_ids=judged.users,
            lists=lists,
            users=settings.users,
            undefined=settings.undefined,
            order=tuple(wanted),
        )
        out[:, at] = [mean.value for mean in scores.averages()[name].values()]
    return out


# On scores


@checked
def user_robustness(
    scores: Source,
    metrics: str | Sequence[str] | None = None,
    *,
    shares: Sequence[float] | None = None,
    samples: int = SAMPLES,
    seed: int = 0,
    threads: int | None = None,
    progress: Progress | None = None,
) -> Robustness:
    """Measure how the order of systems holds with fewer users.

    This needs nothing but the values per user, so it also serves saved scores.

    Parameters
    ----------
    scores
        What `evaluate` gave, or a list of such for several folds; the user is the unit.
    metrics
        Labels of these scores; all that have a value per user unless named.
    shares
        Of the users to keep (half to even): 0.95, 0.90 … 0.05 unless given.
    samples
        Samples per share, drawn without replacement; in each sample the smaller sets of users are
        parts of the larger.
    seed, threads, progress
        As in `robustness`.
    """
    from unskew.stats import rank_kernels as kernels

    both = paired(scores)
    at_least_two(both.systems)
    labels = chosen_metrics(both, metrics)
    levels = _levels(SHARES["users"] if shares is None else shares)
    count = as_count("samples", samples)
    people = len(both)
    sizes = np.array([int(portion(np.array([people]), part, "half-even")[0]) for part in levels])
    if sizes.min() < 1:
        raise SettingError(f"shares: {float(min(levels)):g} of {people:,} users is not even one")
    key = np.uint64(key_of(seed, "users"))

    def weigh(low: int, out: F64) -> None:
        number = low + np.arange(len(out))
        # A sample's number is its key, whatever the level: a smaller set is part of a larger.
        kernels.part(key, frozen(number // len(levels)), frozen(sizes[number % len(levels)]), out)

    draws = reweighted(both, labels, weigh, count * len(levels), threads, progress)
    everyone = reweighted(both, labels, lambda _, out: out.fill(1.0), 1, threads)[0]
    means = draws.reshape(count, len(levels), len(labels), -1).swapaxes(0, 1)
    users = np.repeat(sizes[:, None], count, axis=1)
    return Robustness(
        to="users",
        systems=both.systems,
        metrics=tuple(labels),
        shares=tuple(float(part) for part in levels),
        tau=_taus(means, everyone),
        judgments=np.zeros_like(users),
        users=users,
        full={"judgments": 0, "users": people},
        means=_by_metric(means),
        full_means=everyone,
        seed=seed,
        notes=both.notes,
    )
