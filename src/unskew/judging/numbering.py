"""Users and items of all sources under one numbering, and runs laid over target lists."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import polars as pl

from unskew.arrays import I32, I64, Mask, frozen
from unskew.data.ratings import Ids, Ratings
from unskew.errors import DataError, SettingError
from unskew.judging.notes import strangers, warn
from unskew.judging.shape import Lists, Matched
from unskew.runs import Run
from unskew.targets.lists import TargetLists

_FEWEST_USERS = 5
_FEWEST_RANKS = 3


def check_not_swapped(tests: Ratings, runs: Mapping[str, Run], unknown: Mapping[str, Mask]) -> None:
    """Refuse ranked lists that are given as test ratings.

    Parameters
    ----------
    tests
        What is given as test ratings.
    runs
        What is given as ranked lists.
    unknown
        By system, which of its items occur neither in the test ratings nor elsewhere.
    """
    length = np.diff(tests.start)
    length = length[length > 0]
    if length.size < _FEWEST_USERS or "pooled" in tests.tags:
        return
    reason = ""
    if _are_ranks(tests, length):
        reason = "the values of each user are the ranks 1, 2, 3, …"
    elif length.min() == length.max() >= _FEWEST_RANKS:
        reason = _stranger(int(length[0]), runs, unknown)
    if reason:
        raise DataError(
            f"the test ratings look like ranked lists: {reason}. Are test ratings and lists "
            "swapped?"
        )


def _are_ranks(tests: Ratings, length: I64) -> bool:
    """Tell whether the values of each user are the numbers from 1 up, each once."""
    if length.min() < _FEWEST_RANKS or tests.implicit:
        return False
    # Sums are quick and rule nearly everything out: ranks add up to n (n + 1) / 2.
    sums = np.add.reduceat(tests.value, (np.cumsum(length) - length))
    if (sums != length * (length + 1) / 2).any():
        return False
    order = np.lexsort((tests.value, tests.user))
    first = np.repeat(np.cumsum(length) - length, length)
    return bool((tests.value[order] == np.arange(len(tests)) - first + 1).all())


def _stranger(length: int, runs: Mapping[str, Run], unknown: Mapping[str, Mask]) -> str:
    """Name a run of lists of many lengths, of which most items are unknown to the test ratings."""
    for name, run in runs.items():
        depth = run.depth[run.depth > 0]
        share = float(unknown[name][run.item[run.item >= 0]].mean()) if run.item.size else 0.0
        if share > 0.5 and depth.size >= _FEWEST_USERS and depth.min() < depth.max():
            return (
                f"every user has {length} of them, while the lists of {name} have from "
                f"{depth.min()} to {depth.max()} items, {share:.0%} of which are not among the "
                "test items"
            )
    return ""


@dataclass(frozen=True, eq=False)
class Numbering:
    """Judgments, training ratings, runs and catalogue over the same numbers."""

    judgments: Ratings
    train: Ratings | None
    runs: Mapping[str, tuple[I32, I32]]
    """By system: from the run's numbers of users and of items to the common ones."""
    tests: tuple[I32, I32]
    """The same of the test ratings."""
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
        *,
        must_meet: bool = True,
    ) -> Numbering:
        """Number users and items of all sources alike and check that they meet.

        Of a part of the users, a system may rank none: then `must_meet` is False.
        """
        for name, run in runs.items():
            if run.keys is not None:
                raise several_refused(f"{name} has several lists per user, and")
        ratings = [tests] if train is None else [tests, train]
        sources: list[Ratings | Run] = [*ratings, *runs.values()]
        extra = [] if items is None else [Ids.number(items)[0]]
        users, user_tables = Ids.union(*(source.users for source in sources))
        all_items, item_tables = Ids.union(*(source.items for source in sources), *extra)
        notes: tuple[str, ...] = ()
        if must_meet:
            notes = _meet(runs, tests, user_tables, item_tables, offset=len(ratings))
            _check_order(tests, runs, item_tables, offset=len(ratings))
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
            items=item_tables[-1] if extra else None,
            notes=notes,
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
        user = _inverse(user_table, len(self.judgments.users))[self.judgments.user]
        item = _inverse(item_table, len(self.judgments.items))[self.judgments.item]
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


def _inverse(table: I32, size: int) -> I32:
    """Return the table from common numbers back to those that `table` starts from."""
    back = np.full(size, -1, np.int32)
    back[table] = np.arange(table.size, dtype=np.int32)
    return back


def _meet(
    runs: Mapping[str, Run],
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
    for index, (name, run) in enumerate(runs.items(), start=offset):
        if not users[user_tables[index]].any():
            raise DataError(f"{name}: {strangers('users', run.users, tests.users)}")
        if not items[item_tables[index]].any():
            notes.append(warn(f"{name}: {strangers('items', run.items, tests.items)}"))
    return tuple(notes)


def _check_order(
    tests: Ratings, runs: Mapping[str, Run], item_tables: Sequence[I32], offset: int
) -> None:
    """Refuse test ratings and lists that stand in each other's place."""
    systems = item_tables[offset : offset + len(runs)]
    other_tables = [*item_tables[:offset], *item_tables[offset + len(runs) :]]
    outside_runs = np.zeros(1 + max(int(table.max(initial=-1)) for table in item_tables), np.bool_)
    for table in other_tables:
        outside_runs[table] = True
    unknown = {name: ~outside_runs[table] for name, table in zip(runs, systems, strict=True)}
    check_not_swapped(tests, runs, unknown)


def _marked(tables: Sequence[I32]) -> Mask:
    """Mark what occurs in the first table."""
    marked = np.zeros(1 + max(int(table.max(initial=-1)) for table in tables), np.bool_)
    marked[tables[0]] = True
    return marked


def match_targets(
    name: str, run: Run, lists: TargetLists, all_lists: Lists, depth: int | None, scan: int | None
) -> Matched:
    """Lay a ready-made run over target lists; refuse items that its list did not ask for."""
    judgments = lists.judgments
    users, (theirs, mine) = Ids.union(judgments.users, run.users)
    if len(users) > len(judgments.users):
        is_target = np.zeros(len(users), np.bool_)
        is_target[theirs] = True
        stranger = run.users.values[int(np.argmin(is_target[mine]))]
        raise DataError(
            f"{name}: {np.count_nonzero(~is_target[mine]):,} of its lists were not asked for, the "
            f"first: {stranger!r}; lists are named as in the column `list` of the targets"
        )
    items, (ours, listed) = Ids.union(judgments.items, run.items)
    if len(items) > len(judgments.items):
        raise DataError(f"{name}: recommends items that are in no target list")
    # Numbers against text: common ids may stand in another order than those of the judgments.
    user_table, item_table = (
        _inverse(table, table.size)[part] for table, part in ((theirs, mine), (ours, listed))
    )
    matched = Matched.of(
        run,
        all_lists,
        judgments.users,
        user_table,
        judgments.items,
        item_table,
        depth=depth,
        limit=scan,
    )
    if run.ranked_for is not lists:
        _check_targets(name, matched, lists)
    return matched


def _check_targets(name: str, matched: Matched, lists: TargetLists) -> None:
    from unskew.judging import list_kernels
    from unskew.judging.rank_kernels import ItemRows

    for lo, hi in lists.blocks():
        start, item = lists.block(lo, hi)
        row = list_kernels.first_stranger(
            matched.start,
            matched.stop,
            matched.run.item,
            matched.from_run,
            ItemRows(frozen(start), frozen(item)),
            lo,
            hi,
        )
        if row >= 0:
            slot = matched.run.item[matched.start[row] : matched.stop[row]]
            listed = matched.from_run[slot[slot >= 0]]
            inside = np.isin(listed, item[start[row - lo] : start[row - lo + 1]])
            raw = lists.tests.items.values[int(listed[int(np.argmin(inside))])]
            raise DataError(
                f"{name}: list {lists.ids.values[row]!r} holds item {raw!r}, which is not among "
                f"its targets; rank only the items of the column `item` of the targets"
            )


def judged_part(run: Run, tests: Ratings, of_user: bool) -> Run:
    """Return the lists without items that nobody judged, or that their user did not judge.

    A list that loses all of its items stays, as an empty one.
    """
    _, (test_users, run_users) = Ids.union(tests.users, run.users)
    items, (test_items, run_items) = Ids.union(tests.items, run.items)
    judged = test_items[tests.item].astype(np.int64)
    listed = run_items[run.item].astype(np.int64)
    if of_user:
        owner = np.repeat(np.arange(len(run), dtype=np.int32), run.depth)
        judged += len(items) * test_users[tests.user].astype(np.int64)
        listed += len(items) * run_users[owner].astype(np.int64)
    retained = (run.item >= 0) & np.isin(listed, judged)
    start = np.append(0, np.cumsum(retained))[run.start]
    return Run(run.users, run.items, frozen(start), frozen(run.item[retained]))
