"""`evaluate`: judgments and ranked lists in, `Scores` out."""

from __future__ import annotations

import os
import re
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from unskew.data.ratings import Ids, Ratings, frozen
from unskew.data.readers import read_items, read_ratings
from unskew.data.relevance import Relevance, Rule
from unskew.errors import DataError, DataWarning, SettingError, choose
from unskew.judge import BLOCK, Lists, Matched, Scratch, View, count_labels
from unskew.metrics.block import Block, Judged, Walk, ratio
from unskew.metrics.definition import Params
from unskew.metrics.names import Metric, parse
from unskew.order import TIES
from unskew.runs import Run, read_run, system_name
from unskew.scores import UNDEFINED, USERS, Scores, System
from unskew.threads import map_blocks, resolve
from unskew.versions import versions

I64 = NDArray[np.int64]
F64 = NDArray[np.float64]

METRICS = ("P@10", "Recall@10", "nDCG@10", "RR@10", "anti-P@10", "Judged@10")
"""What is computed when no metrics are named."""
MEMORY = 512 << 20
"""Working memory beyond inputs and result, in bytes."""


def evaluate(
    judgments: object,
    runs: object,
    metrics: str | Metric | Iterable[str | Metric] = METRICS,
    *,
    liked: float | None = None,
    above: float | None = None,
    gain: Rule = "rating",
    loss: Rule = "levels",
    relevance: Relevance | None = None,
    train: object = None,
    items: object = None,
    users: str = "with-test",
    undefined: str = "zero",
    ties: str | None = None,
    seed: int = 0,
    depth: int | None = None,
    threads: int | None = None,
    memory: int | str = MEMORY,
    progress: Callable[[int, int], None] | None = None,
) -> Scores:
    """Judge ranked lists: the value of every metric for every user and system.

    Parameters
    ----------
    judgments
        Test ratings: anything that `read_ratings` takes.
    runs
        A mapping from system name to ranked lists (anything that `read_run` takes), a list of
        paths, or a single path, table or `Run`.
    metrics
        Names such as ``"P@10"``, ``"nDCG"``, ``"anti-P@10"`` or ``"SR(gamma=1)@10"``.
    liked, above, gain, loss
        How a rating is taken, see `Relevance`. Without `liked`, `above` or `relevance` a threshold
        is assumed where it is plain (1 for TREC qrels, implicit and 0/1 data, 4 on a scale of 1
        to 5), and the notes say so.
    relevance
        A `Relevance` instead of these four.
    train
        Training ratings: for popularity, novelty and stratified recall; warns when lists hold
        items the user already rated there.
    items
        The catalogue: for coverage, Gini, entropy, AUC. Default: all items of `train` and
        `judgments`.
    users
        Which users are averaged by default, see `Scores.mean`.
    undefined
        `zero` (default) counts undefined values as 0 in means, `skip` leaves them out.
    ties
        How equal scores are ordered, see `unskew.order`. Default: `trec` for TREC files, else
        `id`.
    seed
        For `ties="random"`.
    depth
        Look at no more than this many items of each list.
    threads
        How many threads to use; never changes a result.
    memory
        Working memory in bytes, or text such as ``"512MiB"``; never changes a result.
    progress
        Called with (done, total) as work goes on.

    Returns
    -------
    Scores

    Examples
    --------
    >>> import unskew as us
    >>> test = {"user": [1, 1, 2], "item": [10, 20, 30], "rating": [5, 2, 4]}
    >>> scores = us.evaluate(test, {"mine": {1: [20, 10], 2: [30]}}, ["RR", "P@2"], liked=4)
    >>> scores.mean()
    {'mine': {'RR': 0.75, 'P@2': 0.5}}
    """
    choose("users", users, USERS)
    choose("undefined", undefined, UNDEFINED)
    if ties is not None:
        choose("ties", ties, TIES)
    if depth is not None and depth < 1:
        raise SettingError(f"depth must be at least 1, got {depth}")
    budget = memory_bytes(memory)
    wanted = _labelled(metrics)
    tests = read_ratings(judgments)
    systems = _read_runs(runs, ties, seed, (tests.users, tests.items))
    training = None if train is None else read_ratings(train)
    catalogue = None if items is None else read_items(items)
    notes = [*tests.notes, *(training.notes if training is not None else ())]
    if relevance is None:
        relevance, note = _relevance(tests, liked, above, gain, loss)
        notes += note
    elif liked is not None or above is not None or gain != "rating" or loss != "levels":
        raise SettingError("give either relevance or liked/above/gain/loss, not both")
    bench = _Bench.lay(tests, systems, training, catalogue, relevance, wanted, depth)
    notes += [note for run in systems.values() for note in run.notes]
    notes += bench.remarks(wanted, users)
    results = bench.score(wanted, resolve(threads), budget, progress)
    judged = bench.judged
    columns = {
        "user": pl.Series(judged.lists.user),
        "liked": pl.Series(judged.liked.astype(np.int64)),
        "disliked": pl.Series(judged.disliked.astype(np.int64)),
        "test": pl.Series(np.diff(judged.judgments.start)),
    }
    if judged.train is not None:
        columns["train"] = pl.Series(np.diff(judged.train.start))
    labels = tuple(label for label, metric in wanted.items() if metric.definition.of != "run")

    def card() -> dict[str, Any]:
        def facts(ratings: Ratings | None) -> dict[str, Any] | None:
            if ratings is None:
                return None
            return {"fingerprint": ratings.fingerprint, "rows": len(ratings)}

        return {
            "judgments": facts(tests),
            "train": facts(training),
            "relevance": relevance.describe(),
            "metrics": {label: str(metric) for label, metric in wanted.items()},
            "systems": list(systems),
            "ties": ties or "trec for TREC files, else id",
            "seed": seed,
            "depth": depth,
            "versions": versions(),
        }

    return Scores(
        labels, results, judged.judgments.users, pl.DataFrame(columns), users, undefined,
        tuple(wanted), card, tuple(notes), str(relevance),
    )  # fmt: skip


@dataclass(frozen=True, eq=False)
class _Bench:
    """Everything laid out on one numbering, ready to be scored."""

    judged: Judged
    matched: dict[str, Matched]

    @classmethod
    def lay(
        cls,
        tests: Ratings,
        systems: Mapping[str, Run],
        train: Ratings | None,
        catalogue: pl.Series | None,
        relevance: Relevance,
        wanted: Mapping[str, Metric],
        depth: int | None,
    ) -> _Bench:
        """Number users and items of all sources alike and check that they meet."""
        ratings = [tests] if train is None else [tests, train]
        sources: list[Ratings | Run] = [*ratings, *systems.values()]
        everyone = [source.users for source in sources]
        everything = [source.items for source in sources]
        extra = [] if catalogue is None else [Ids.number(catalogue)[0]]
        users, user_tables = Ids.union(*everyone)
        items, item_tables = Ids.union(*everything, *extra)
        _must_meet(systems, tests, user_tables, item_tables, offset=len(ratings))
        recoded = [
            source.recode(users, user_table, items, item_table)
            for source, user_table, item_table in zip(
                ratings, user_tables, item_tables, strict=False
            )
        ]
        judgments, training = recoded[0], recoded[1] if train is not None else None
        view = View.of(judgments, relevance)
        lists = Lists(frozen(np.arange(len(users), dtype=np.int32)))
        matched = {
            name: Matched.of(
                run, lists, users, user_table, items, item_table, depth, _limit(wanted)
            )
            for (name, run), user_table, item_table in zip(
                systems.items(),
                user_tables[len(ratings) :],
                item_tables[len(ratings) :],
                strict=False,
            )
        }
        needs = frozenset().union(*(metric.definition.needs for metric in wanted.values()))
        known: NDArray[np.bool_] | None = None
        if "catalogue" in needs:
            known = np.zeros(len(items), np.bool_)
            if catalogue is not None:
                known[item_tables[-1]] = True
            elif training is not None:
                known[training.item] = True
            known[judgments.item] = True
            lists = Lists(lists.user, _targets(known, training, len(users)))
        if "train" in needs and training is None:
            label = next(k for k, m in wanted.items() if "train" in m.definition.needs)
            raise DataError(f"{label} needs the training ratings: give train=… (--train FILE)")
        longest = [int(one.depth.max(initial=0)) for one in matched.values()]
        most = int(np.diff(judgments.start).max(initial=0))
        liked, disliked = count_labels(judgments, lists, view)
        judged = Judged(
            judgments, lists, view, liked, disliked, training, known,
            max([most, *longest]) + 1,
        )  # fmt: skip
        return cls(judged, matched)

    def remarks(self, wanted: Mapping[str, Metric], users: str) -> list[str]:
        """Say, and where it matters warn of, what a reader of the numbers should know."""
        judged = self.judged
        notes: list[str] = []
        for name, matched in self.matched.items():
            deepest = int(matched.depth.max(initial=0))
            beyond = [k for k, m in wanted.items() if m.cutoff is not None and m.cutoff > deepest]
            if beyond:
                _warn(
                    notes,
                    f"{name}: the lists hold at most {deepest} items, fewer than the cutoff of "
                    f"{', '.join(beyond)}",
                )
            tested = np.diff(judged.judgments.start) > 0
            without = int(np.count_nonzero(tested & (matched.depth == 0)))
            if without:
                how = "left out of the means" if users in ("both", "with-list") else "they score 0"
                notes.append(f"{name}: {without:,} users with test data have no list; {how}")
            unjudged = int(np.count_nonzero(~tested & (matched.depth > 0)))
            if unjudged:
                how = "score 0" if users in ("all", "with-list") else "are not averaged"
                notes.append(f"{name}: {unjudged:,} lists of users without test data {how}")
            if judged.train is not None:
                held = matched.overlap(judged.train)
                if held:
                    _warn(
                        notes,
                        f"{name}: {held:,} recommended items are in the user's own training "
                        f"ratings",
                    )
            if any(metric.condensed for metric in wanted.values()):
                notes.append(
                    f"{name}: condensed metrics see the first {deepest} items of each list; "
                    f"judged items below were not seen"
                )
        if not int(judged.disliked.sum()):
            blind = [k for k, m in wanted.items() if m.name in ("bpref", "infAP") and not m.anti]
            if blind:
                _warn(
                    notes,
                    f"no judgment is disliked: {', '.join(blind)} cannot tell good from bad here "
                    f"(bpref is mere coverage)",
                )
        empty = int(np.count_nonzero((np.diff(judged.judgments.start) > 0) & (judged.liked == 0)))
        if empty:
            notes.append(f"{empty:,} users with test data have no liked item")
        outside = 0
        if judged.catalogue is not None:
            for matched in self.matched.values():
                outside += int(np.count_nonzero(~judged.catalogue[matched.from_run]))
            notes.append(f"catalogue: {int(judged.catalogue.sum()):,} items")
        if outside:
            _warn(notes, f"{outside:,} recommended items lie outside the catalogue: give items=…")
        return notes

    def score(
        self,
        wanted: Mapping[str, Metric],
        threads: int,
        budget: int,
        progress: Callable[[int, int], None] | None,
    ) -> dict[str, System]:
        """Compute all metrics of all systems, block by block of lists."""
        rows = [label for label, metric in wanted.items() if metric.definition.of != "run"]
        total = len(self.judged.lists)
        families = _families({label: wanted[label] for label in rows})
        # One array for all systems: large enough to be mapped in large pages.
        everything = np.empty((len(self.matched), len(rows), total))
        values = dict(zip(self.matched, everything, strict=True))
        den: dict[str, dict[int, F64]] = {name: {} for name in self.matched}
        for name in self.matched:
            for row, label in enumerate(rows):
                if wanted[label].params.get("mean") == "ratio":
                    den[name][row] = np.empty(total)
        parts = _parts(families)
        step = _block_size(total, len(rows), self.judged, threads, budget)
        blocks = [(lo, min(lo + step, total)) for lo in range(0, total, step)]
        done = 0

        def fill(bounds: tuple[int, int]) -> None:
            nonlocal done
            lo, hi = bounds
            shared: dict[object, F64] = {}
            scratch = Scratch()
            for name, matched in self.matched.items():
                block = Block.of(self.judged, matched, lo, hi, shared, scratch, parts)
                for family in families:
                    family.fill(block, values[name][:, lo:hi], den[name])
            done += 1
            if progress is not None:
                progress(done, len(blocks))

        whole = {k: metric for k, metric in wanted.items() if metric.definition.of == "run"}
        map_blocks(fill, blocks, threads, size=total * len(rows) * len(self.matched))
        return {
            name: System(values[name], den[name], matched.depth, self._aggregates(matched, whole))
            for name, matched in self.matched.items()
        }

    def _aggregates(self, matched: Matched, wanted: Mapping[str, Metric]) -> dict[str, float]:
        return {
            label: metric.definition.compute(
                self.judged, matched, metric.params, metric.whole_cutoff
            )
            for label, metric in wanted.items()
        }


@dataclass(frozen=True)
class _Family:
    """Metrics that differ in cutoff only."""

    metric: Metric
    params: Params
    cutoffs: I64
    places: list[tuple[int, int]]
    """(place among the cutoffs, row of the result) of each."""
    rows: slice | None
    """The rows of the result where they follow each other: the usual case, without a copy."""

    @classmethod
    def of(cls, metric: Metric, members: list[tuple[int, int]]) -> _Family:
        """Group members (cutoff, row) of one metric."""
        cutoffs = sorted({cutoff for cutoff, _ in members})
        places = [(cutoffs.index(cutoff), row) for cutoff, row in members]
        first = places[0][1]
        straight = places == [(at, first + at) for at in range(len(cutoffs))]
        rows = slice(first, first + len(cutoffs)) if straight else None
        return cls(metric, metric.params, frozen(np.array(cutoffs, np.int64)), places, rows)

    def fill(self, block: Block, values: F64, den: dict[int, F64]) -> None:
        """Write the values of a block's lists into their rows (and denominators into `den`)."""
        seen = block.derive(self.metric.anti, self.metric.condensed)
        result = self.metric.definition.compute(seen, self.params, self.cutoffs)
        if isinstance(result, tuple) and self.params.get("mean") != "ratio":
            top, bottom = result
            if self.rows is not None:
                ratio(top, bottom, out=values[self.rows])
                return
            result = ratio(top, bottom)
        if isinstance(result, tuple):
            result, bottom = result
            bottom = np.broadcast_to(bottom, result.shape)
            for at, row in self.places:
                den[row][block.lo : block.hi] = bottom[at]
        for at, row in self.places:
            values[row] = result[at]


def _families(wanted: Mapping[str, Metric]) -> list[_Family]:
    """Group metrics that differ in cutoff only."""
    groups: dict[Metric, list[tuple[int, int]]] = {}
    for row, metric in enumerate(wanted.values()):
        groups.setdefault(metric.family, []).append((metric.whole_cutoff, row))
    return [_Family.of(metric, members) for metric, members in groups.items()]


def _parts(families: Iterable[_Family]) -> dict[Walk, tuple[str, ...]]:
    """Collect what each walk down the lists has to give, so that one walk gives it all."""
    parts: dict[Walk, set[str]] = {}
    for family in families:
        metric = family.metric
        wanted = metric.definition.parts(family.params)
        walk = (metric.anti, metric.condensed, family.cutoffs.tobytes())
        parts.setdefault(walk, set()).update(wanted)
    return {walk: tuple(sorted(wanted)) for walk, wanted in parts.items()}


def _block_size(total: int, columns: int, judged: Judged, threads: int, budget: int) -> int:
    """Choose lists per block: within the budget, and enough blocks to share among threads."""
    judgments = len(judged.judgments) / max(len(judged.judgments.users), 1)
    each = 8 * 4 * max(columns, 1) + 24 * judgments + 64
    most = max(int(budget / threads / each), 1)
    return max(min(most, BLOCK, -(-total // threads)), 1)


def _limit(wanted: Mapping[str, Metric]) -> int | None:
    """Return the deepest rank at which a judged item can matter, None for the whole list."""
    metrics = [metric for metric in wanted.values() if metric.definition.of == "judged"]
    if any(metric.condensed or metric.cutoff is None for metric in metrics):
        return None
    return max((metric.whole_cutoff for metric in metrics), default=0)


def _targets(known: NDArray[np.bool_], train: Ratings | None, users: int) -> I64:
    """Count the items that could be recommended to each user: the catalogue less training."""
    targets = np.full(users, int(known.sum()), np.int64)
    if train is not None:
        targets -= np.bincount(train.user[known[train.item]], minlength=users)
    return targets


def _must_meet(
    systems: Mapping[str, Run], tests: Ratings, user_tables: Sequence[NDArray[np.int32]],
    item_tables: Sequence[NDArray[np.int32]], offset: int,
) -> None:  # fmt: skip
    """Refuse a run that shares no user, or no item, with the judgments: ids do not match."""
    known = {"users": _marked(user_tables), "items": _marked(item_tables)}
    for place, (name, run) in enumerate(systems.items(), start=offset):
        for what, tables, mine, theirs in (
            ("users", user_tables, run.users, tests.users),
            ("items", item_tables, run.items, tests.items),
        ):
            if not known[what][tables[place]].any():
                raise DataError(
                    f"{name}: no {what} in common with the judgments. Its ids are "
                    f"{mine.kind}, such as {_examples(mine)}; the judgments' are {theirs.kind}, "
                    f"such as {_examples(theirs)}. Check that both files use the same ids"
                )


def _marked(tables: Sequence[NDArray[np.int32]]) -> NDArray[np.bool_]:
    """Mark what occurs in the first table."""
    marked = np.zeros(1 + max(int(table.max(initial=-1)) for table in tables), np.bool_)
    marked[tables[0]] = True
    return marked


def _examples(ids: Ids) -> str:
    return ", ".join(repr(value) for value in ids.values.head(3))


def _labelled(metrics: str | Metric | Iterable[str | Metric]) -> dict[str, Metric]:
    """Map each metric as it was written to what it means."""
    several = [metrics] if isinstance(metrics, str | Metric) else list(metrics)
    if not several:
        raise SettingError("no metrics are named; give for example metrics=['P@10', 'nDCG@10']")
    return {str(metric): parse(metric) for metric in several}


def _read_runs(
    runs: object, ties: str | None, seed: int, likely: tuple[Ids, Ids]
) -> dict[str, Run]:
    """Read all runs, named by their keys or files."""
    if isinstance(runs, Mapping):
        named = {str(name): source for name, source in runs.items()}
        if any(isinstance(source, list | tuple) for source in named.values()):
            raise SettingError(
                "runs must be named: {'mine': {user: [items]}}, not {user: [items]} itself"
            )
    elif isinstance(runs, list | tuple):
        named = {}
        for source in runs:
            if not isinstance(source, str | os.PathLike):
                raise SettingError("a list of runs must hold paths; name tables in a mapping")
            name = system_name(source)
            if name in named:
                raise SettingError(
                    f"two runs are named {name!r}; name them in a mapping (NAME=FILE)"
                )
            named[name] = source
    else:
        name = system_name(runs) if isinstance(runs, str | os.PathLike) else "run"
        named = {name: runs}
    if not named:
        raise SettingError("no runs are given")

    def read(name: str) -> Run:
        try:
            return read_run(named[name], ties=ties, seed=seed, keep_scores=False, likely=likely)
        except DataError as problem:
            raise type(problem)(f"{name}: {problem}") from None

    return dict(zip(named, map_blocks(read, named), strict=True))


def _relevance(
    tests: Ratings, liked: float | None, above: float | None, gain: Rule, loss: Rule
) -> tuple[Relevance, list[str]]:
    """Return the relevance rule, and a note where the threshold had to be assumed."""
    if liked is not None or above is not None:
        return Relevance(liked, above, gain, loss), []
    values = tests.value
    if "pooled" in tests.tags or tests.implicit or bool(np.isin(values, (0.0, 1.0)).all()):
        return Relevance(1, None, gain, loss), ["liked: every value from 1 up (assumed)"]
    low, high = float(values.min()), float(values.max())
    if low >= 0.5 and 3 < high <= 5:
        return Relevance(4, None, gain, loss), [
            "liked: ratings from 4 up (assumed from the 1-5 scale; set it with liked=…)"
        ]
    raise SettingError(
        f"what counts as liked? Ratings go from {low:g} to {high:g}; give liked=… (the smallest "
        f"liked rating) or above=…"
    )


def _warn(notes: list[str], text: str) -> None:
    notes.append(text)
    warnings.warn(text, DataWarning, stacklevel=4)


def memory_bytes(memory: int | str) -> int:
    """Read an amount of memory: a number of bytes, or text such as 512MiB or 2GB."""
    if isinstance(memory, int):
        amount = memory
    else:
        match = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*([KMGT]?)(i?)B?\s*", memory, re.IGNORECASE)
        if match is None:
            raise SettingError(f"memory must look like 512MiB or 2GB, got {memory!r}")
        step = 1024 if match[3] else 1000
        power = " KMGT".index(match[2].upper() or " ")
        amount = int(float(match[1]) * step**power)
    if amount < 1 << 20:
        raise SettingError(f"memory must be at least 1MiB, got {memory!r}")
    return amount
