"""`StepLists`: a list for every next item of a user, what came before being known.

A *step* is one list: the item that a user met next is its one relevant item, and everything that
the user met before is its history. Lists are never written down: a step is a place in the log.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
import polars as pl

from unskew.arrays import I32, I64, U8, Mask, frozen
from unskew.checks import as_count, as_number, checked, choose
from unskew.data.events import Histories
from unskew.data.ratings import Ids, Ratings
from unskew.engine.rng import draw
from unskew.errors import DataError, SettingError
from unskew.report.text import counted
from unskew.splits.split import union
from unskew.targets.step_log import EventParts, StepLog, event_parts

SEEN = ("drop", "keep")
CANDIDATES = ("train", "all")
TARGETS = ("every", "first", "last", "random")
HISTORIES = ("user", "session")


@dataclass(frozen=True, eq=False)
class StepLists:
    """The steps that every system is judged on. Made by `next_items`.

    Examples
    --------
    >>> import unskew as us
    >>> train = {"user": [1, 1, 2], "item": [7, 8, 8], "time": [1, 2, 1]}
    >>> test = {"user": [1, 1, 2], "item": [9, 7, 9], "time": [5, 6, 7]}
    >>> steps = us.targets.next_items(train, test, candidates="all")
    >>> steps  # user 1 had met item 7 before
    StepLists(2 steps of 2 users, 3 items)
    """

    train: Ratings
    """Training ratings, a pair of user and item once: what models are fitted to."""
    known: Ratings | None
    """What users met before they were tested, beside training; see `Split.known`."""
    log: Histories
    """Training and test events of each user, in order of time."""
    tested: U8
    """Marks the test events in the log."""
    fresh: U8
    """Marks the first test event of each pair that is not in training."""
    at: I64
    """Of each step: where its target is in the log."""
    begin: I64
    """Of each step: where its history starts in the log; it ends before the target."""
    user: I32
    item: I32
    """The target."""
    step: I32
    """The number of the step among the test events of its user, or of its session, from 1."""
    session: I32
    """The number of the session of its user, from 1; empty without sessions."""
    candidates: Mask
    """Which items can be recommended at all."""
    size: I64
    """How many items could be recommended at each step."""
    seen: str = "drop"
    design: Mapping[str, Any] = field(default_factory=dict)
    """The settings and the seed from which the steps can be made again."""
    facts: Mapping[str, Any] = field(default_factory=dict)
    notes: tuple[str, ...] = ()

    def __len__(self) -> int:
        return int(self.at.size)

    def __repr__(self) -> str:
        return (
            f"StepLists({counted(len(self), 'step')} of "
            f"{counted(int(np.unique(self.user).size), 'user')}, "
            f"{counted(int(self.candidates.sum()), 'item')})"
        )

    def _repr_html_(self) -> str:
        from unskew.report.notebook_view import card

        facts = [(name.replace("_", " "), value) for name, value in self.facts.items()]
        return card("StepLists", "", [*self.design.items(), *facts], self.notes)

    @property
    def users(self) -> Ids:
        """The users that `user` numbers."""
        return self.train.users

    @property
    def items(self) -> Ids:
        """The items that `item` numbers."""
        return self.train.items

    @property
    def time(self) -> I64:
        """When each target was met, in microseconds since 1970."""
        return self.log.time[self.at]

    @cached_property
    def barred(self) -> Ratings:
        """What cannot be recommended at any step where met items are dropped."""
        return self.train if self.known is None else union(self.train, self.known)

    @property
    def drops(self) -> bool:
        """Whether items that the user met before cannot be recommended."""
        return self.seen == "drop"

    def histories(self, lo: int, hi: int) -> Histories:
        """Return what came before the targets of steps lo..hi.

        Examples
        --------
        >>> import unskew as us
        >>> train = {"user": [1, 1], "item": [7, 8], "time": [1, 2]}
        >>> test = {"user": [1, 1], "item": [9, 6], "time": [5, 6]}
        >>> steps = us.targets.next_items(train, test, candidates="all")
        >>> before = steps.histories(0, 2)
        >>> before.start.tolist(), steps.items.raw(before.item).to_list()
        ([0, 2, 5], [7, 8, 7, 8, 9])
        """
        begin, size = self.begin[lo:hi], self.at[lo:hi] - self.begin[lo:hi]
        start = np.append(0, np.cumsum(size)).astype(np.int64)
        positions = np.arange(start[-1]) + np.repeat(begin - start[:-1], size)
        return Histories(
            frozen(start), frozen(self.log.item[positions]), frozen(self.log.time[positions])
        )

    @cached_property
    def pairs(self) -> Ratings:
        """The pairs of user and item that a model which scores users once must rank.

        Where met items are dropped, those that are new to the user in the test part; else all of
        the test part.
        """
        rows = np.flatnonzero(self.fresh if self.drops else self.tested)
        items = np.int64(len(self.items))
        pair = np.unique(self.log_user[rows] * items + self.log.item[rows])
        return Ratings(
            users=self.users,
            items=self.items,
            user=frozen((pair // items).astype(np.int32)),
            item=frozen((pair % items).astype(np.int32)),
            value=frozen(np.ones(pair.size)),
        )

    @cached_property
    def log_user(self) -> I64:
        """The user of each event of the log."""
        return np.repeat(np.arange(len(self.users), dtype=np.int64), self.log.length)

    def to_polars(self) -> pl.DataFrame:
        """Return a row per step with raw ids: user, session, step, time, item, history, items."""
        columns = {
            "user": self.users.raw(self.user),
            **({"session": pl.Series(self.session)} if self.session.size else {}),
            "step": pl.Series(self.step),
            "time": pl.Series(self.time).cast(pl.Datetime("us")),
            "item": self.items.raw(self.item),
            "history": pl.Series(self.at - self.begin),
            "items": pl.Series(self.size),
        }
        return pl.DataFrame(columns)


@checked
def next_items(
    train: object,
    test: object = None,
    *,
    seen: str = "drop",
    candidates: str = "train",
    target: str = "every",
    gap: float | None = None,
    session: str | None = None,
    history: str = "user",
    least_history: int = 1,
    liked: float | None = None,
    seed: int = 0,
) -> StepLists:
    """Make a step of every test event: the item that a user met next, and what came before it.

    Parameters
    ----------
    train
        A split whose ratings have time stamps, or training events: an event log (`read_events`),
        ratings with time stamps, a file. Of a split with logs (`pick="next"`,
        `us.splits.Sessions`) those of its test events are steps that it asks for.
    test
        Test events, where `train` is not a split. They should come after the training events; what
        does not is counted.
    seen
        Items that the user met before (in training, or in the test part before the step) can be
        recommended again (`keep`) or not (`drop`). With `drop`, events that repeat an item are no
        steps; they are counted, and part of the history.
    candidates
        What can be recommended: items with a `train` event (a target without any is missed by
        every system; such steps are counted), or `all` items of training and test.
    target
        Which events of each session, or of each user where there are no sessions, are steps:
        `every` one, the `first`, the `last`, or one drawn at `random`, of those that can be.
    gap
        Minutes without an event after which a new session of a user begins; 30 is usual. None: no
        sessions.
    session
        In place of `gap`: the tag that names the session of each event. A split into sessions
        (`us.splits.Sessions`) brings its own.
    history
        What a model that sees the history is given: all earlier events of the `user`, or those of
        the `session`.
    least_history
        Steps with fewer events before them are left out and counted; 0 keeps all.
    liked
        Only events of at least this value are steps. Needed where values are opinions (ratings);
        of an event log every event counts unless it is given.
    seed
        For `target="random"`.

    Examples
    --------
    >>> import unskew as us
    >>> log = {"user": [1, 1, 1, 1], "item": [7, 8, 7, 9], "time": [0, 60, 120, 180]}
    >>> train, test = ({k: v[s] for k, v in log.items()} for s in (slice(1), slice(1, 4)))
    >>> us.targets.next_items(train, test, candidates="all").to_polars()["item"].to_list()
    [8, 9]
    >>> us.targets.next_items(train, test, candidates="all", seen="keep").item.tolist()
    [1, 0, 2]
    """
    choose("seen", seen, SEEN)
    choose("candidates", candidates, CANDIDATES)
    choose("target", target, TARGETS)
    choose("history", history, HISTORIES)
    as_count("least_history", least_history, 0)
    as_count("seed", seed, 0)
    if gap is not None:
        as_number("gap", gap, above=True)
        if session is not None:
            raise SettingError("give either gap or session: both say where a session begins")
    parts = event_parts(train, test)
    if session is None and gap is None:
        session = parts.session
    if history == "session" and gap is None and session is None:
        raise SettingError(
            "history='session' needs sessions: give gap=30, or session=… as the name of a tag"
        )
    log = StepLog.of(parts, session)
    begins, number = log.sessions(gap)
    begin = log.begin(begins if history == "session" else None)
    fresh = _fresh(log, parts.earlier)
    steps, facts = _asked(log, parts, begin, fresh, seen, liked, least_history)
    steps = _chosen(log, steps, number, target, seed)
    if not steps.any():
        raise DataError(
            f"there is no step to judge: of {counted(int(log.tested.sum()), 'test event')}, "
            f"{_left_out(facts, least_history) or 'none is left'}; see seen, liked, least_history"
        )
    settings = {
        "seen": seen,
        "candidates": candidates,
        "target": target,
        "gap": gap,
        "session": session,
        "history": history,
        "least_history": least_history,
        "liked": liked,
        "seed": seed,
    }
    return _lists(log, parts, np.flatnonzero(steps), begin, fresh, number, settings, facts)


def _asked(
    log: StepLog,
    parts: EventParts,
    begin: I64,
    fresh: Mask,
    seen: str,
    liked: float | None,
    minimum: int,
) -> tuple[Mask, dict[str, int]]:
    """Return which events can be steps, and how many test events cannot."""
    if not parts.implicit and liked is None:
        raise SettingError(
            "the values of these events are opinions (ratings): give the smallest value that is "
            "liked, such as liked=4"
        )
    steps = log.tested.copy()
    facts = {"test_events": int(steps.sum())}

    def leave(name: str, mask: Mask) -> None:
        facts[name] = int(np.count_nonzero(steps & mask))
        steps[mask] = False

    if liked is not None:
        leave("not_liked", log.value < liked)
    facts["repeats"] = int(np.count_nonzero(steps & ~fresh))
    if seen == "drop":
        steps[~fresh] = False
    leave("no_target", ~log.target)
    leave("short_histories", np.arange(log.user.size) - begin < minimum)
    return steps, facts


def _fresh(log: StepLog, earlier: Ratings | None) -> Mask:
    """Mark the first test event of each pair that was met neither in training nor beside it."""
    items = np.int64(len(log.items))
    pair = log.user * items + log.item
    distinct, first, inverse = np.unique(pair, return_index=True, return_inverse=True)
    trained = np.zeros(first.size, np.bool_)
    trained[inverse[~log.tested]] = True
    if earlier is not None:
        trained |= np.isin(distinct, earlier.user * items + earlier.item)
    fresh = np.zeros(pair.size, np.bool_)
    fresh[first] = True
    return fresh & log.tested & ~trained[inverse]


def _chosen(log: StepLog, steps: Mask, number: I64, target: str, seed: int) -> Mask:
    """Choose the events of each session, or user, that are steps."""
    if target == "every":
        return steps
    rows = np.flatnonzero(steps)
    group = log.user[rows] * np.int64(1 << 31) + (number[rows] if number.size else 0)
    heads = np.flatnonzero(np.diff(group, prepend=-1) != 0)
    sizes = np.diff(np.append(heads, rows.size))
    if target == "first":
        chosen = heads
    elif target == "last":
        chosen = heads + sizes - 1
    else:
        user = log.user[rows[heads]]
        session = number[rows[heads]] if number.size else np.zeros(heads.size, np.int64)
        bits = draw(seed, "next item", user, session) >> np.uint64(33)
        chosen = heads + (bits.astype(np.int64) * sizes >> 31)
    result = np.zeros(steps.size, np.bool_)
    result[rows[chosen]] = True
    return result


def _lists(
    log: StepLog,
    parts: EventParts,
    rows: I64,
    begin: I64,
    fresh: Mask,
    number: I64,
    settings: Mapping[str, Any],
    facts: dict[str, Any],
) -> StepLists:
    ratings, user = parts.fitted, log.user[rows]
    candidates = np.ones(len(log.items), np.bool_)
    if settings["candidates"] == "train":
        candidates = np.bincount(ratings.item, minlength=len(log.items)) > 0
    barred = ratings if parts.earlier is None else union(ratings, parts.earlier)
    facts |= _more_facts(log, rows, candidates, ratings)
    return StepLists(
        train=ratings,
        known=parts.earlier,
        log=Histories(frozen(log.start), frozen(log.item), frozen(log.time)),
        tested=frozen(log.tested.astype(np.uint8)),
        fresh=frozen(fresh.astype(np.uint8)),
        at=frozen(rows),
        begin=frozen(begin[rows]),
        user=frozen(user.astype(np.int32)),
        item=frozen(log.item[rows]),
        step=frozen(_places(log, rows, number)),
        session=frozen((number[rows] if number.size else number).astype(np.int32)),
        candidates=candidates,
        size=frozen(_sizes(log, rows, candidates, fresh, barred, settings["seen"])),
        seen=settings["seen"],
        design=settings,
        facts=facts,
        notes=_notes(facts, settings),
    )


def _places(log: StepLog, rows: I64, number: I64) -> I32:
    """Number the test events of each user, or of each session, up to the steps."""
    tests = np.cumsum(log.tested, dtype=np.int64)
    group = log.user if not number.size else log.user * np.int64(1 << 31) + number
    heads = np.flatnonzero(np.diff(group, prepend=-1) != 0)
    which = np.searchsorted(heads, rows, side="right") - 1
    first = heads[which]
    position: I64 = tests[rows] - tests[first] + log.tested[first]
    return position.astype(np.int32)


def _sizes(
    log: StepLog, rows: I64, candidates: Mask, fresh: Mask, train: Ratings, seen: str
) -> I64:
    """Count what could be recommended at each step."""
    count = int(candidates.sum())
    if seen == "keep":
        return np.full(rows.size, count, np.int64)
    trained = np.bincount(train.user[candidates[train.item]], minlength=len(log.users))
    met = np.append(0, np.cumsum(fresh & candidates[log.item]))
    user = log.user[rows]
    size: I64 = count - trained[user] - (met[rows] - met[log.start[user]])
    return size.astype(np.int64)


def _more_facts(log: StepLog, rows: I64, candidates: Mask, train: Ratings) -> dict[str, int]:
    user = log.user[rows]
    trained = np.diff(train.start)[user] > 0
    tests = np.flatnonzero(~log.tested)
    last = np.full(len(log.users), -1, np.int64)
    last[log.user[tests]] = tests  # ascending: the last one stays
    same = (np.diff(log.user) == 0) & (np.diff(log.time) == 0)
    return {
        "steps": int(rows.size),
        "users": int(np.unique(user).size),
        "steps_of_new_items": int(np.count_nonzero(~candidates[log.item[rows]])),
        "steps_of_users_without_training": int(np.count_nonzero(~trained)),
        "steps_before_training_of_their_user": int(np.count_nonzero(last[user] > rows)),
        "test_events_at_the_moment_of_another": int(np.count_nonzero(same & log.tested[1:])),
    }


def _left_out(facts: Mapping[str, int], minimum: int) -> str:
    """Say which test events are no steps."""
    reasons = {
        "not_liked": "of a value that is not liked",
        "no_target": "that the split does not ask for",
        "short_histories": "with nothing before them"
        if minimum == 1
        else f"with fewer than {counted(minimum, 'event')} before them",
    }
    parts = [f"{facts[key]:,} {text}" for key, text in reasons.items() if facts.get(key)]
    if facts.get("repeats"):
        parts.append(f"{facts['repeats']:,} of an item that the user had met")
    return ", ".join(parts)


def _notes(facts: Mapping[str, Any], settings: Mapping[str, Any]) -> tuple[str, ...]:
    drops = settings["seen"] == "drop"
    counts = facts if drops else {**facts, "repeats": 0}
    lines = []
    left = _left_out(counts, settings["least_history"])
    if left:
        lines.append(f"test events that are no steps: {left}")
    if not drops:
        lines.append(
            f"items that a user met before can be recommended again (seen='keep'); "
            f"{counted(facts['repeats'], 'test event repeats', 'test events repeat')} one"
        )
    missed, unknown, order = (
        "a target that cannot be recommended (no training event): every system misses",
        "whom a model that scores users once does not know",
        "such events are in the order of item numbers",
    )
    texts = {
        "steps_of_new_items": (f"step has {missed} it", f"steps have {missed} them"),
        "steps_of_users_without_training": (
            f"step belongs to a user without training events, {unknown}",
            f"steps belong to users without training events, {unknown}",
        ),
        "steps_before_training_of_their_user": (
            "step comes before a training event of its user: its system learned from the future",
            "steps come before a training event of their user: systems learned from the future",
        ),
        "test_events_at_the_moment_of_another": (
            f"test event has the moment of another event of its user; {order}",
            f"test events have the moment of another event of their user; {order}",
        ),
    }
    lines += [counted(facts[key], *text) for key, text in texts.items() if facts[key]]
    return tuple(lines)
