"""Judgments and lists of all systems under one numbering, as conventions see them.

What a convention sees of a list is where judged items stand in it (hits) and how long it is. That
depends on the rules for ties, duplicates, training items and others; each combination is laid once.
Nothing here is larger than the judgments and the lists themselves.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, TypeVar, cast

import numpy as np
import polars as pl

from unskew.arrays import F64, I32, I64, Mask, frozen
from unskew.checks import choose
from unskew.conventions.libraries import AXES, Convention
from unskew.data.groups import sort_groups
from unskew.data.ratings import Ids, Ratings
from unskew.data.read.ratings_files import read_items, read_test_and_train
from unskew.data.relevance import Relevance, relevance_for
from unskew.engine.threads import map_blocks, new_lock
from unskew.errors import DataError, SettingError
from unskew.judging.judge import name_systems
from unskew.judging.judged import Judged
from unskew.judging.notes import checked_numbering
from unskew.judging.shape import Numbering
from unskew.runs import Run, read_run
from unskew.ties import TIES, order_by_score

T = TypeVar("T")


@dataclass(eq=False)
class Memory:
    """Arrays by what they depend on; of more bytes than the budget the first ones are given up."""

    budget: float = math.inf
    size: int = 0
    _results: dict[object, tuple[Any, int]] = field(default_factory=dict)
    """Results, and their sizes when they came: an object may keep more later."""
    _lock: Any = field(default_factory=new_lock)

    def once(self, key: object, compute: Callable[[], T]) -> T:
        """Return what is kept under a key; compute it where it is not."""
        value = self._results.get(key)
        if value is not None:
            return cast("T", value[0])
        result = compute()
        size = bytes_of(result)
        with self._lock:
            if key not in self._results:
                self._results[key] = result, size
                self.size += size
            while self.size > self.budget and len(self._results) > 1:
                self.size -= self._results.pop(next(iter(self._results)))[1]
        return result

    def __len__(self) -> int:
        return len(self._results)

    def __getstate__(self) -> dict[str, Any]:
        return {"budget": self.budget}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__init__(state["budget"])  # type: ignore[misc]


def bytes_of(value: object) -> int:
    """Return the size of an array, or of all arrays in a tuple or an object."""
    if isinstance(value, np.ndarray):
        return int(value.nbytes)
    # A copy: another thread may use the object at the same time, and add what it caches.
    parts = value if isinstance(value, tuple) else list(vars(value).values())
    return sum(bytes_of(part) for part in parts if isinstance(part, np.ndarray))


@dataclass(frozen=True, eq=False)
class RankedLists:
    """The lists of one system, with duplicates, in the two orders that rows can give."""

    run: Run
    """Equal scores are ordered as everywhere else here."""
    as_input: Run
    """Equal scores are in the order of the rows."""


def read_lists(source: object, *, ties: str | None = None, **settings: Any) -> RankedLists:
    """Read ranked lists with their duplicates; `settings` are those of `read_run`."""
    if isinstance(source, RankedLists):
        return source
    if ties is not None:
        choose("ties", ties, TIES)
    run = read_run(source, ties=ties, duplicates="keep", **settings)
    if isinstance(source, Run) or not _has_ties(run):
        return RankedLists(run, run)
    return RankedLists(run, read_run(source, ties="input", duplicates="keep", **settings))


def _is_new(start: I64, size: int) -> Mask:
    """Mark the first place of each list."""
    first = np.zeros(size, np.bool_)
    first[start[:-1][np.diff(start) > 0]] = True
    return first


def falling_scores(run: Run) -> F64 | None:
    """Return the scores, where they order the lists; None where something else does."""
    if run.score is None or not run.score.size:
        return None
    rising = run.score[1:] > run.score[:-1]
    is_new = _is_new(run.start, run.item.size)
    if np.isnan(run.score).any() or bool((rising & ~is_new[1:]).any()):
        return None
    return run.score


def _has_ties(run: Run) -> bool:
    score = falling_scores(run)
    return score is not None and count_ties(run) > 0


def count_ties(run: Run) -> int:
    """Count the places whose score equals that of the place above, as a 32-bit number."""
    score = falling_scores(run)
    if score is None:
        return 0
    with np.errstate(over="ignore"):
        single = score.astype(np.float32)
    same = (single[1:] == single[:-1]) & ~_is_new(run.start, run.item.size)[1:]
    return int(same.sum())


@dataclass(frozen=True)
class ListRule:
    """What is done to lists before they are judged."""

    ties: str = "given"
    duplicates: str = "first"
    training: str = "keep"
    catalogue: str = "keep"
    unjudged: str = "keep"
    seen: tuple[str, str] = ("all", "liked")
    """Which judgments count as judged, where others are taken out."""

    @classmethod
    def of(cls, convention: Convention) -> ListRule:
        """Return the rule of a convention."""
        names = ("ties", "duplicates", "training", "catalogue", "unjudged")
        options = {name: getattr(convention, name) for name in names}
        rule = cls(**options)
        if rule.unjudged == "keep":
            return rule
        return replace(rule, seen=(convention.judgments, convention.relevant))


@dataclass(frozen=True, eq=False)
class LaidHits:
    """Where judged items stand in the lists of one system: list by list, by rank."""

    user: I64
    rank: I64
    """From 1."""
    judgment: I64
    """Its row among the judgments."""
    weight: F64
    """1; a share of 1 at each place where an item of a group of equal scores can stand."""
    length: I64
    """Items in the list of each user."""
    with_list: Mask
    """Users to whom the system gave a list, whatever was taken out of it."""
    again: Mask
    """Hits whose item the list already has."""
    once: Mask
    """One hit of each item, where it can stand at several places."""

    def up_to(self, rank: float) -> LaidHits:
        """Return the hits up to a rank."""
        mask = self.rank <= rank
        fields = ("user", "rank", "judgment", "weight", "again", "once")
        return replace(self, **{name: getattr(self, name)[mask] for name in fields})

    def once_more(self, k: int | None) -> I64:
        """Return judgments whose item a list has once more up to k."""
        rows: I64 = self.judgment[self.again & (self.rank <= (np.inf if k is None else k))]
        return rows


@dataclass(frozen=True, eq=False)
class _Places:
    """The places of all lists, list by list."""

    user: I64
    item: I64
    """-1 in an empty slot."""
    judgment: I64
    """-1 where there is none."""
    trained: Mask
    """Places whose item the user has in training."""
    rank: I64
    later: Mask
    """Places whose item the list already has."""
    score: F64 | None

    def keep(self, mask: Mask) -> _Places:
        """Keep some places; the rest moves up."""
        total = np.cumsum(mask)
        first = np.flatnonzero(self.rank == 1)
        before = np.append(0, total)[first]
        sizes = np.diff(np.append(first, self.rank.size))
        rank = (total - np.repeat(before, sizes))[mask]
        score = None if self.score is None else self.score[mask]
        names = ("user", "item", "judgment", "trained", "later")
        return _Places(
            **{name: getattr(self, name)[mask] for name in names}, rank=rank, score=score
        )


@dataclass(frozen=True, eq=False)
class Laid:
    """Judgments and the lists of systems under one numbering."""

    numbering: Numbering
    relevance: Relevance
    systems: Mapping[str, RankedLists]
    notes: tuple[str, ...] = ()
    _memory: Memory = field(default_factory=Memory)

    @property
    def judgments(self) -> Ratings:
        """The judgments, by user and then by item."""
        return self.numbering.judgments

    @property
    def users(self) -> Ids:
        """Everybody who has a judgment, a training rating or a list."""
        return self.judgments.users

    @cached_property
    def pooled(self) -> Mask:
        """Judgments that only say that an item was in a pool."""
        tag = self.judgments.tags.get("pooled")
        return np.zeros(len(self.judgments), np.bool_) if tag is None else tag.to_numpy()

    @cached_property
    def _key(self) -> I64:
        return self._keys(self.judgments.user, self.judgments.item)

    @cached_property
    def _train_key(self) -> I64:
        train = self.numbering.train
        return np.empty(0, np.int64) if train is None else self._keys(train.user, train.item)

    @cached_property
    def catalogue(self) -> Mask | None:
        """The catalogue, where it was given."""
        if self.numbering.items is None:
            return None
        mask = np.zeros(len(self.judgments.items), np.bool_)
        mask[self.numbering.items] = True
        return mask

    def _keys(self, user: I32, item: I32) -> I64:
        return user.astype(np.int64) * len(self.judgments.items) + item

    def is_relevant(self, rule: str) -> Mask:
        """Tell which judgments are relevant by a rule of the axis `relevant`."""
        value, level = self.judgments.value, self.relevance.threshold
        rules: dict[str, Callable[[], Mask]] = {
            "liked": lambda: self.relevance.is_liked(value),
            "above": lambda: value > level,
            "whole": lambda: self.relevance.is_liked(np.trunc(value)),
            "positive": lambda: value > 0,
            "one": lambda: value >= 1,
            "judged": lambda: np.ones(value.size, np.bool_),
        }
        return np.asarray(rules[rule]() & ~self.pooled)

    @cached_property
    def relevance_masks(self) -> dict[str, Mask]:
        """Which judgments are relevant, by every rule."""
        return {name: self.is_relevant(name) for name in AXES["relevant"].options}

    def orders(self, system: str) -> dict[str, I64]:
        """Return the items of all lists in the order of every rule about equal scores."""
        shared = ("expected", "together")
        return {
            name: self._in_order(system, name).item
            for name in AXES["ties"].options
            if name not in shared
        }

    def seen(self, judgments: str, relevant: str) -> tuple[Mask, Mask]:
        """Return which judgments a library sees, and which of them are relevant.

        Judgments of listed items are all seen here: which ones are listed depends on the system.
        """

        def find() -> tuple[Mask, Mask]:
            mask = self.relevance_masks[relevant]
            seen = mask if judgments == "liked" else ~self.pooled
            return seen, mask & seen

        return self._memory.once(("seen", judgments, relevant), find)

    def hits(self, system: str, rule: ListRule) -> LaidHits:
        """Return where judged items stand in the lists of a system, prepared by a rule."""
        return self._memory.once((system, rule), lambda: self._lay(system, rule))

    def top_hits(self, system: str, rule: ListRule, stop: float) -> LaidHits:
        """Return the hits up to a rank."""
        hits = self.hits(system, rule)
        if math.isinf(stop):
            return hits
        return self._memory.once((system, rule, stop), lambda: hits.up_to(stop))

    def _lay(self, system: str, rule: ListRule) -> LaidHits:
        places = self._prepare(system, rule)
        user, judgment, rank = places.user, places.judgment, places.rank
        users = len(self.users)
        length = np.bincount(user, minlength=users).astype(np.int64)
        met = judgment >= 0
        listed, later = self._with_list(system), places.later[met]
        if places.score is not None and rule.ties in ("expected", "together"):
            spread = _expected if rule.ties == "expected" else _together
            slot, position, weight = spread(user, rank, met, places.score)
            order = np.lexsort((position, user[slot]))
            slot, position, weight = slot[order], position[order], weight[order]
            once = np.zeros(slot.size, np.bool_)
            once[np.unique(slot, return_index=True)[1]] = True
            again = places.later[slot] & once
            return LaidHits(
                user[slot], position, judgment[slot], weight, length, listed, again, once
            )
        ones, all_hits = np.ones(int(met.sum())), np.ones(int(met.sum()), np.bool_)
        return LaidHits(user[met], rank[met], judgment[met], ones, length, listed, later, all_hits)

    def _with_list(self, system: str) -> Mask:
        mask = np.zeros(len(self.users), np.bool_)
        run = self.systems[system].run
        mask[self.numbering.runs[system][0][run.depth > 0]] = True
        return mask

    def _in_order(self, system: str, ties: str) -> _Places:
        """Return all places of the lists of a system, in the order of a rule about ties."""
        rule = ties if ties not in ("expected", "together") else "given"
        return self._memory.once(("places", system, rule), lambda: self._places(system, rule))

    def _places(self, system: str, rule: str) -> _Places:
        lists = self.systems[system]
        run = _ordered(lists.as_input if rule in ("input", "last") else lists.run, rule)
        user_table, item_table = self.numbering.runs[system]
        owner = np.repeat(user_table.astype(np.int64), run.depth)
        filled = run.item >= 0
        item = np.where(filled, item_table[np.maximum(run.item, 0)], -1)
        pairs = np.where(filled, owner * len(self.judgments.items) + item, -1)
        judgment, trained = look_up(self._key, pairs), look_up(self._train_key, pairs) >= 0
        rank = np.arange(owner.size) - np.repeat(run.start[:-1], run.depth) + 1
        later, score = _is_later(run), falling_scores(run)
        return _Places(owner, item, judgment, trained, rank, later, score)

    def _prepare(self, system: str, rule: ListRule) -> _Places:
        """Put lists in order, and take out what the rule takes out."""
        places = self._in_order(system, rule.ties)
        judgment = places.judgment
        keep = np.ones(judgment.size, np.bool_)
        if rule.training == "remove":
            keep &= ~places.trained
        if rule.catalogue == "remove" and self.catalogue is not None:
            keep &= self.catalogue[places.item]
        if rule.duplicates == "first":
            keep &= ~places.later
        elif rule.duplicates == "miss":
            judgment = np.where(places.later, -1, judgment)
        if rule.unjudged == "remove":
            seen = self.seen(*rule.seen)[0]
            keep &= (judgment >= 0) & seen[np.maximum(judgment, 0)]
        places = replace(places, judgment=judgment)
        return places if keep.all() else places.keep(keep)

    def run(self, system: str, rule: ListRule) -> Run:
        """Return the lists prepared by a rule, under the common numbering."""
        lists = self.systems[system].run
        if rule.ties in ("expected", "together") and count_ties(lists):
            raise SettingError("the order of equal scores is left open, so that there is no list")
        if rule.duplicates in ("multiple", "new") and lists.repeated:
            raise SettingError("an item that a list has twice counts as two items of the user")
        places = self._prepare(system, rule)
        start = np.append(0, np.cumsum(np.bincount(places.user, minlength=len(self.users))))
        order = np.argsort(places.user, kind="stable")
        later = places.later & (rule.duplicates == "miss")
        item = np.where(later, -1, places.item)[order].astype(np.int32)
        return Run(self.users, self.judgments.items, frozen(start), frozen(item))

    def count_training(self, system: str) -> int:
        """Count the places that hold training items of their user."""
        return int(np.count_nonzero(look_up(self._train_key, self._listed(system)) >= 0))

    def count_unknown(self, system: str) -> int:
        """Count the places that hold items outside the catalogue."""
        if self.catalogue is None:
            return 0
        return int((~self.catalogue[self._listed(system) % len(self.judgments.items)]).sum())

    def _listed(self, system: str) -> I64:
        run, (user_table, item_table) = self.systems[system].run, self.numbering.runs[system]
        owner = np.repeat(user_table.astype(np.int64), run.depth)[run.item >= 0]
        return owner * len(self.judgments.items) + item_table[run.item[run.item >= 0]]


def look_up(sorted_keys: I64, keys: I64) -> I64:
    """Return the place of each key among sorted ones, -1 where it is missing."""
    if not sorted_keys.size:
        return np.full(keys.size, -1, np.int64)
    position = np.minimum(np.searchsorted(sorted_keys, keys), sorted_keys.size - 1)
    return np.where(sorted_keys[position] == keys, position, -1)


def _ordered(run: Run, ties: str) -> Run:
    """Put items of equal score in the order of a rule."""
    score = falling_scores(run)
    if score is None or ties in ("given", "input", "expected", "together"):
        return run
    keys: dict[str, Callable[[], I64]] = {
        "reverse": lambda: -run.item.astype(np.int64),
        "last": lambda: -np.arange(run.item.size),
        "text": lambda: _place_as_text(run.items)[run.item],
    }
    if ties in keys:
        order, _ = sort_groups(run.start, frozen(-score), frozen(keys[ties]()))
    else:
        changed = order_by_score(run.start, score, run.item, run.users, run.items, ties, 0)
        if changed is None:
            return run
        order = changed
    return replace(run, item=frozen(run.item[order]), score=frozen(score[order]))


def _place_as_text(ids: Ids) -> I64:
    """Return the place of each id when all are sorted as text."""
    position = np.empty(len(ids), np.int64)
    position[ids.values.cast(pl.String).arg_sort().to_numpy()] = np.arange(len(ids))
    return position


def _is_later(run: Run) -> Mask:
    """Mark places whose item the list already has."""
    if not run.repeated:
        return np.zeros(run.item.size, np.bool_)
    from unskew.data import kernels

    keep = np.ones(run.item.size, np.uint8)
    kernels.seen_before(run.start, run.item, len(run.items), keep)
    return np.asarray(keep == 0)


def _groups(user: I64, score: F64) -> tuple[I64, I64, Mask]:
    """Return the group of equal scores of each place, the size of each, and where they begin."""
    is_new = np.ones(user.size, np.bool_)
    is_new[1:] = (user[1:] != user[:-1]) | (score[1:] != score[:-1])
    group = np.cumsum(is_new) - 1
    return group, np.bincount(group, minlength=1), is_new


Spread = tuple[I64, I64, F64]
"""Places that are hits, each once for every rank it can have; these ranks; and weights."""


def _together(user: I64, rank: I64, met: Mask, score: F64) -> Spread:
    """Put each item at the last place of its group of equal scores."""
    group, size, is_new = _groups(user, score)
    last = rank[is_new][group] + size[group] - 1
    slot = np.flatnonzero(met)
    return slot, last[slot], np.ones(slot.size)


def _expected(user: I64, rank: I64, met: Mask, score: F64) -> Spread:
    """Spread each judged item over the places of its group of equal scores."""
    group, size, is_new = _groups(user, score)
    hit = np.flatnonzero(met)
    sizes = size[group[hit]]
    offset = np.arange(int(sizes.sum())) - np.repeat(np.cumsum(sizes) - sizes, sizes)
    slot = np.repeat(hit, sizes)
    return slot, rank[is_new][group[slot]] + offset, 1.0 / size[group[slot]]


def lay(
    judgments: object,
    runs: object = None,
    *,
    liked: float | None = None,
    above: float | None = None,
    relevance: Relevance | str | None = None,
    train: object = None,
    items: object = None,
    ties: str | None = None,
    seed: int = 0,
    depth: int | None = None,
    events: str | Sequence[str] | None = None,
    weights: Mapping[str, float] | None = None,
) -> Laid:
    """Lay raw or judged data; duplicates in raw lists are kept. Options as those of `judge`."""
    if isinstance(judgments, Judged):
        settings = {"runs": runs, "liked": liked, "above": above, "relevance": relevance}
        settings |= {"train": train, "items": items, "ties": ties, "depth": depth}
        for name, value in settings.items():
            if value is not None:
                raise SettingError(f"{name} is already part of the judged data: leave {name}=… out")
        return _of_judged(judgments)
    if runs is None:
        raise SettingError("runs are missing: give ranked lists by system")
    tests, training = read_test_and_train(judgments, train, events, weights)
    catalogue = None if items is None else read_items(items)
    rule, assumed = relevance_for(tests, liked, above, relevance=relevance)
    systems = _read_systems(runs, ties, seed, depth, (tests.users, tests.items))
    lists_by_system = {name: lists.run for name, lists in systems.items()}
    numbering = checked_numbering(tests, training, lists_by_system, catalogue)
    return Laid(numbering, rule, systems, (*assumed, *numbering.notes))


def _of_judged(judged: Judged) -> Laid:
    """Take judged data: their lists are as they were read."""
    if judged.targets is not None:
        raise SettingError(
            "conventions of other libraries are for ready-made lists, one per user; these judged "
            "data are target lists"
        )
    systems = {}
    for name, run in judged.systems.items():
        assert isinstance(run, Run)
        cut = read_run(run, depth=judged.depth)
        systems[name] = RankedLists(cut, cut)
    return Laid(judged.numbering, judged.relevance, systems, judged.notes)


def _read_systems(
    runs: object, ties: str | None, seed: int, depth: int | None, likely: tuple[Ids, Ids]
) -> dict[str, RankedLists]:
    named = name_systems(runs)

    def read(name: str) -> RankedLists:
        try:
            return read_lists(named[name], ties=ties, seed=seed, depth=depth, likely=likely)
        except DataError as problem:
            raise type(problem)(f"{name}: {problem}") from None

    return dict(zip(named, map_blocks(read, named), strict=True))
