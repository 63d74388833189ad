"""Everything laid out on one numbering, ready to be scored; and the scoring itself."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
import polars as pl

from unskew.arrays import F64, I32, I64, Mask, frozen
from unskew.data.ratings import Ids, Ratings
from unskew.data.relevance import Relevance
from unskew.engine.threads import map_blocks
from unskew.errors import DataError, DataWarning, SettingError
from unskew.evaluation.one_relevant import check_exact, expected_values, full_ranks
from unskew.evaluation.scores import System
from unskew.judging.rank import Ranks, rank_both, say_unscored
from unskew.judging.shape import BLOCK, Hits, Lists, Matched, Ranked, Scratch, View, count_labels
from unskew.metrics.block import Block, Judged, Walk, ratio
from unskew.metrics.names import Metric
from unskew.metrics.settings import Params
from unskew.recommend.model import Model
from unskew.runs import Run
from unskew.targets.lists import TargetLists


@dataclass(frozen=True, eq=False)
class Bench:
    """What all systems share, and each system's lists laid over it."""

    judged: Judged
    matched: dict[str, Matched]
    notes: tuple[str, ...] = ()
    """What laying the systems out already showed."""

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


def _count_targets(known: Mask, train: Ratings | None, users: int) -> I64:
    """Count the items that could be recommended to each user: the catalogue less training."""
    targets = np.full(users, int(known.sum()), np.int64)
    if train is not None:
        targets -= np.bincount(train.user[known[train.item]], minlength=users)
    return targets


def _meet(
    systems: Mapping[str, Run],
    tests: Ratings,
    user_tables: Sequence[I32],
    item_tables: Sequence[I32],
    offset: int,
) -> tuple[str, ...]:
    """Refuse a run that shares no user with the judgments; warn of one that shares no item.

    Without a common user no list is judged at all: ids do not match. Without a common item every
    value is 0, which can be true of a system, and can be ids that do not match.
    """
    users, items = _marked(user_tables), _marked(item_tables)
    notes: list[str] = []
    for place, (name, run) in enumerate(systems.items(), start=offset):
        if not users[user_tables[place]].any():
            raise DataError(f"{name}: {_strangers('users', run.users, tests.users)}")
        if not items[item_tables[place]].any():
            _warn(notes, f"{name}: {_strangers('items', run.items, tests.items)}")
    return tuple(notes)


def _strangers(what: str, mine: Ids, theirs: Ids) -> str:
    """Say that a run and the judgments share no `users`, or no `items`."""
    return say_strangers(what, (mine.kind, _examples(mine)), (theirs.kind, _examples(theirs)))


def say_strangers(what: str, mine: tuple[str, str], theirs: tuple[str, str]) -> str:
    """Return the same words for the kind of the ids, and some of them, of both."""
    zero = ": none of its items is judged" if what == "items" else ""
    return (
        f"no {what} in common with the judgments{zero}. Its ids are {mine[0]}, such as {mine[1]}; "
        f"the judgments' are {theirs[0]}, such as {theirs[1]}. Check that both use the same ids"
    )


def _marked(tables: Sequence[I32]) -> Mask:
    """Mark what occurs in the first table."""
    marked = np.zeros(1 + max(int(table.max(initial=-1)) for table in tables), np.bool_)
    marked[tables[0]] = True
    return marked


def _examples(ids: Ids) -> str:
    return ", ".join(repr(value) for value in ids.values.head(3))


def lay_runs(
    tests: Ratings,
    systems: Mapping[str, Run],
    train: Ratings | None,
    catalogue: pl.Series | None,
    relevance: Relevance,
    wanted: Mapping[str, Metric],
    depth: int | None,
    *,
    must_meet: bool = True,
) -> Bench:
    """Number users and items of all sources alike and check that they meet.

    Of a part of the users, a system may rank none: then `must_meet` is False.
    """
    notes: tuple[str, ...] = ()
    _need(wanted, train)
    ratings = [tests] if train is None else [tests, train]
    sources: list[Ratings | Run] = [*ratings, *systems.values()]
    extra = [] if catalogue is None else [Ids.number(catalogue)[0]]
    users, user_tables = Ids.union(*(source.users for source in sources))
    items, item_tables = Ids.union(*(source.items for source in sources), *extra)
    if must_meet:
        notes = _meet(systems, tests, user_tables, item_tables, offset=len(ratings))
    tables = list(zip(user_tables, item_tables, strict=False))
    recoded = [
        source.recode(users, user_table, items, item_table)
        for source, (user_table, item_table) in zip(ratings, tables, strict=False)
    ]
    judgments, training = recoded[0], recoded[1] if train is not None else None
    lists = Lists(frozen(np.arange(len(users), dtype=np.int32)))
    matched = {
        name: Matched.of(run, lists, users, own_users, items, own_items, depth, _limit(wanted))
        for (name, run), (own_users, own_items) in zip(
            systems.items(), tables[len(ratings) :], strict=False
        )
    }
    known = None
    if _needs(wanted, "catalogue"):
        known = _known(len(items), item_tables[-1] if extra else None, training, judgments)
        lists = Lists(lists.user, _count_targets(known, training, len(users)))
    return replace(_bench(judgments, lists, relevance, training, known, matched), notes=notes)


def lay_lists(
    lists: TargetLists,
    systems: Mapping[str, Run | Model],
    wanted: Mapping[str, Metric],
    depth: int | None,
    ties: str = "id",
    seed: int = 0,
    threads: int | None = None,
) -> Bench:
    """Lay systems over target lists: runs by their list ids, models by the ranks they give."""
    _need(wanted, lists.train)
    if lists.exact:
        return _expect_lists(lists, systems, wanted, depth, ties, seed, threads)
    judgments = lists.judgments
    asked = Lists(frozen(np.arange(len(lists), dtype=np.int32)), lists.size)
    matched: dict[str, Matched] = {}
    notes: list[str] = []
    for name, system in systems.items():
        if isinstance(system, Run):
            matched[name] = _match_run(name, system, lists, asked, wanted, depth)
            continue
        shown = _shown_depth(name, wanted)
        shown = shown if depth is None else min(shown, depth)
        run, ranks = rank_both(system, lists, shown, ties, seed, threads)
        notes += (f"{name}: {said}" for said in say_unscored(lists, int(ranks.unscored.sum())))
        matched[name] = Ranked.over(ranks, run, asked, lists.ids, judgments.items, depth)
    known = lists.candidates if _needs(wanted, "catalogue") else None
    bench = _bench(judgments, asked, lists.relevance, lists.train, known, matched)
    return replace(bench, notes=tuple(notes))


@dataclass(frozen=True, eq=False)
class Undrawn(Ranked):
    """A system on lists whose others are not drawn: where it ranks the relevant items is known."""

    rank: F64 = field(kw_only=True)
    """Of each list's relevant item among all candidates; NaN where it could not be scored."""

    def hits(self, judgments: Ratings, lo: int, hi: int, scratch: Scratch | None = None) -> Hits:  # noqa: ARG002
        """Refuse: what a list holds depends on the draw."""
        raise SettingError(
            "with exact=True no others are drawn, and this needs the lists themselves: leave exact "
            "out of the targets"
        )


@dataclass(frozen=True, eq=False)
class ExactBench(Bench):
    """Systems on lists with one relevant item whose others are not drawn."""

    lists: TargetLists = field(kw_only=True)

    def score(
        self,
        wanted: Mapping[str, Metric],
        threads: int,
        budget: int,  # noqa: ARG002
        progress: Callable[[int, int], None] | None,
    ) -> dict[str, System]:
        """Compute the expectation of all metrics over all draws of each list's others."""
        results = {}
        for done, (name, matched) in enumerate(self.matched.items(), start=1):
            assert isinstance(matched, Undrawn)
            values = expected_values(self.lists, wanted, matched.rank, threads)
            results[name] = System(values, {}, matched.depth, {})
            if progress is not None:
                progress(done, len(self.matched))
        return results


def _expect_lists(
    lists: TargetLists,
    systems: Mapping[str, Run | Model],
    wanted: Mapping[str, Metric],
    depth: int | None,
    ties: str,
    seed: int,
    threads: int | None,
) -> ExactBench:
    """Lay models over lists whose others are not drawn."""
    check_exact(lists, wanted)
    if depth is not None:
        raise SettingError("exact=True ranks all candidates: leave depth=… out")
    asked = Lists(frozen(np.arange(len(lists), dtype=np.int32)), lists.size)
    none = frozen(np.zeros(0, np.int32))
    matched: dict[str, Matched] = {}
    notes: list[str] = []
    for name, system in systems.items():
        if isinstance(system, Run):
            raise SettingError(
                f"{name}: exact=True needs to know how many candidates stand above the relevant "
                f"item, which a ready-made run does not say: give a model, or leave exact out"
            )
        rank, scored = full_ranks(lists, system, ties, seed, threads)
        lost = int(np.isnan(rank).sum())
        if lost:
            notes.append(f"{name}: {lost:,} relevant items could not be scored; they count 0")
        held = np.where(scored > 0, lists.size, 0)  # nothing scored: no list at all
        ranks = Ranks(frozen(np.zeros(len(lists) + 1, np.int64)), none, none, held, none)
        laid = Ranked.over(ranks, None, asked, lists.ids, lists.judgments.items, None)
        matched[name] = Undrawn(**laid.__dict__, rank=rank)
    bench = _bench(lists.judgments, asked, lists.relevance, lists.train, None, matched)
    return ExactBench(bench.judged, matched, tuple(notes), lists=lists)


def _bench(
    judgments: Ratings,
    lists: Lists,
    relevance: Relevance,
    train: Ratings | None,
    known: Mask | None,
    matched: dict[str, Matched],
) -> Bench:
    view = View.of(judgments, relevance)
    longest = [int(one.depth.max(initial=0)) for one in matched.values()]
    most = int(np.diff(judgments.start).max(initial=0))
    liked, disliked = count_labels(judgments, lists, view)
    judged = Judged(
        judgments, lists, view, liked, disliked, train, known, max([most, *longest]) + 1
    )
    return Bench(judged, matched)


def _match_run(
    name: str,
    run: Run,
    lists: TargetLists,
    asked: Lists,
    wanted: Mapping[str, Metric],
    depth: int | None,
) -> Matched:
    """Lay a ready-made run over target lists; refuse items that its list did not ask for."""
    judgments = lists.judgments
    users, (theirs, mine) = Ids.union(judgments.users, run.users)
    if len(users) > len(judgments.users):
        known = np.zeros(len(users), np.bool_)
        known[theirs] = True
        stranger = run.users.values[int(np.argmin(known[mine]))]
        raise DataError(
            f"{name}: {np.count_nonzero(~known[mine]):,} of its lists were not asked for, the "
            f"first: {stranger!r}; lists are named as in the column `list` of the targets"
        )
    items, (ours, own) = Ids.union(judgments.items, run.items)
    if len(items) > len(judgments.items):
        raise DataError(f"{name}: recommends items that are in no target list")
    # Numbers against text: common ids may stand in another order than the judgments' own.
    mine, own = _back(theirs)[mine], _back(ours)[own]
    matched = Matched.of(
        run, asked, judgments.users, mine, judgments.items, own, depth, _limit(wanted)
    )
    if run.made_for is not lists:
        _must_be_targets(name, matched, lists)
    return matched


def _back(table: I32) -> I32:
    """Return the table from common numbers back to one's own, where all are one's own."""
    back = np.empty_like(table)
    back[table] = np.arange(table.size, dtype=np.int32)
    return back


def _must_be_targets(name: str, matched: Matched, lists: TargetLists) -> None:
    from unskew.judging import kernels

    for lo, hi in lists.blocks():
        start, item = lists.block(lo, hi)
        row = kernels.first_stranger(
            matched.start,
            matched.stop,
            matched.run.item,
            matched.from_run,
            frozen(start),
            frozen(item),
            lo,
            hi,
        )
        if row >= 0:
            slot = matched.run.item[matched.start[row] : matched.stop[row]]
            shown = matched.from_run[slot[slot >= 0]]
            inside = np.isin(shown, item[start[row - lo] : start[row - lo + 1]])
            raw = lists.tests.items.values[int(shown[int(np.argmin(inside))])]
            raise DataError(
                f"{name}: list {lists.ids.values[row]!r} holds item {raw!r}, which is not among "
                f"its targets; rank only the items of the column `item` of the targets"
            )


def _shown_depth(name: str, wanted: Mapping[str, Metric]) -> int:
    """Return how deep the lists of a model must be kept for metrics of their items."""
    deepest = 0
    for label, metric in wanted.items():
        if metric.definition.of == "judged":
            continue
        if metric.cutoff is None:
            raise SettingError(
                f"{label}: {name} ranks every target, so say how many of its items to look at: "
                f"{label}@10"
            )
        deepest = max(deepest, metric.cutoff)
    return deepest


def _needs(wanted: Mapping[str, Metric], what: str) -> bool:
    return any(what in metric.definition.needs for metric in wanted.values())


def _need(wanted: Mapping[str, Metric], train: Ratings | None) -> None:
    """Refuse metrics that need training ratings where there are none."""
    if train is None and _needs(wanted, "train"):
        label = next(k for k, m in wanted.items() if "train" in m.definition.needs)
        raise DataError(f"{label} needs the training ratings: give train=…")


def _known(items: int, given: I32 | None, train: Ratings | None, judgments: Ratings) -> Mask:
    """Mark the catalogue: what is given, else what is in training; and what is judged."""
    known = np.zeros(items, np.bool_)
    if given is not None:
        known[given] = True
    elif train is not None:
        known[train.item] = True
    known[judgments.item] = True
    return known


def remarks(bench: Bench, wanted: Mapping[str, Metric], users: str) -> list[str]:
    """Say, and where it matters warn of, what a reader of the numbers should know."""
    notes = list(bench.notes)
    for name, matched in bench.matched.items():
        _remark_depth(notes, name, matched, wanted)
        _remark_users(notes, name, matched, bench.judged, users)
    _remark_judgments(notes, bench.judged, wanted)
    _remark_catalogue(notes, bench)
    return notes


def _remark_depth(
    notes: list[str], name: str, matched: Matched, wanted: Mapping[str, Metric]
) -> None:
    deepest = int(matched.depth.max(initial=0))
    beyond = [k for k, m in wanted.items() if m.cutoff is not None and m.cutoff > deepest]
    if beyond:
        _warn(
            notes,
            f"{name}: the lists hold at most {deepest} items, fewer than the cutoff of "
            f"{', '.join(beyond)}",
        )
    if not matched.is_full and any(metric.condensed for metric in wanted.values()):
        notes.append(
            f"{name}: condensed metrics see the first {deepest} items of each list; "
            f"judged items below were not seen"
        )


def _remark_users(
    notes: list[str], name: str, matched: Matched, judged: Judged, users: str
) -> None:
    tested = np.diff(judged.judgments.start) > 0
    without = int(np.count_nonzero(tested & (matched.depth == 0)))
    if without:
        how = "left out of the means" if users in ("both", "with-list") else "they score 0"
        notes.append(f"{name}: {without:,} users with test data have no list; {how}")
    unjudged = int(np.count_nonzero(~tested & (matched.depth > 0)))
    if unjudged and not matched.is_full:
        how = "score 0" if users in ("all", "with-list") else "are not averaged"
        notes.append(f"{name}: {unjudged:,} lists of users without test data {how}")
    if judged.train is not None and judged.train.users.equals(judged.judgments.users):
        held = 0 if matched.is_full else matched.overlap(judged.train)
        if held:
            _warn(
                notes,
                f"{name}: {held:,} recommended items are in the user's own training ratings",
            )


def say_blind(wanted: Mapping[str, Metric]) -> str:
    """Say which metrics need disliked judgments, when there are none; or nothing."""
    blind = [k for k, m in wanted.items() if m.definition.needs_disliked and not m.anti]
    if not blind:
        return ""
    return (
        f"no judgment is disliked: {', '.join(blind)} cannot tell good from bad here "
        f"(bpref is mere coverage)"
    )


def _remark_judgments(notes: list[str], judged: Judged, wanted: Mapping[str, Metric]) -> None:
    if not int(judged.disliked.sum()):
        warning = say_blind(wanted)
        if warning:
            _warn(notes, warning)
    empty = int(np.count_nonzero((np.diff(judged.judgments.start) > 0) & (judged.liked == 0)))
    if empty:
        notes.append(f"{empty:,} users with test data have no liked item")


def _remark_catalogue(notes: list[str], bench: Bench) -> None:
    known = bench.judged.catalogue
    if known is None:
        return
    notes.append(f"catalogue: {int(known.sum()):,} items")
    shown = np.zeros(known.size, np.bool_)
    for matched in bench.matched.values():
        item = matched.run.item
        shown[matched.from_run[item[item >= 0]]] = True
    outside = int(np.count_nonzero(shown & ~known))
    if outside:
        _warn(notes, f"{outside:,} recommended items lie outside the catalogue: give items=…")


def _warn(notes: list[str], text: str) -> None:
    notes.append(text)
    warnings.warn(text, DataWarning, stacklevel=5)
