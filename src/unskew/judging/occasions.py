"""`Occasions`: several lists of a user, each evaluated with what the user did from then on."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import polars as pl

from unskew.arrays import F64, I32, I64, Mask, frozen
from unskew.data.events import Events, read_events
from unskew.data.ratings import Ids, Ratings
from unskew.data.read.ratings_files import read_ratings
from unskew.data.read.tables import USER, column_hint, read_table
from unskew.data.times import written
from unskew.errors import DataError, SettingError, Spelling
from unskew.judging.notes import checked_numbering
from unskew.judging.shape import Numbering
from unskew.report.text import counted
from unskew.run_tables import DAY, ListKeys
from unskew.runs import Run


@dataclass(frozen=True, eq=False)
class RatingLog:
    """Test ratings with the date or session of each row; a user may meet an item several times."""

    tests: Ratings
    """The same, each pair of user and item once."""
    user: I32
    """Of each row, as `tests` numbers users; so are items."""
    item: I32
    value: F64
    time: I64 | None = None
    sessions: Ids | None = None
    session: I32 | None = None
    tags: dict[str, pl.Series] | None = None
    repeats: str = "error"
    """How several rows of an item become one where a list is evaluated with all of them."""

    @classmethod
    def read(cls, source: object, keys: ListKeys, **log_options: Any) -> RatingLog:
        """Read what lists with these keys are evaluated with.

        `log_options` are `events` and `weights` of `read_ratings`.
        """
        if isinstance(source, RatingLog):
            return source
        if isinstance(source, Events):
            return cls.of_events(source, keys)
        ratings = getattr(source, "ratings", source)  # of a Dataset or a World
        if isinstance(ratings, Ratings):
            return cls.of_ratings(read_ratings(source, **log_options), keys)
        return cls.of_file(source, keys, **log_options)

    @classmethod
    def of_ratings(cls, tests: Ratings, keys: ListKeys) -> RatingLog:
        """Take ratings as they are: each pair occurs once."""
        rows = cls(tests, tests.user, tests.item, tests.value, tags=dict(tests.tags))
        if keys.kind == "date":
            return replace(rows, time=_times(tests))
        if keys.column not in tests.tags:
            raise DataError(
                f"the lists are told apart by sessions, and the test ratings have no column "
                f"{keys.column!r}: keep it with read_ratings(…, tags=[{keys.column!r}]); if the "
                "lists have dates, name that column date or time"
            )
        sessions, session = Ids.number(tests.tags[keys.column])
        return replace(rows, sessions=sessions, session=frozen(session))

    @classmethod
    def of_events(cls, events: Events, keys: ListKeys, repeats: str | None = None) -> RatingLog:
        """Take a log: of an item that a user met again, what a list is followed by counts.

        `repeats` says how several events of an item become one rating: the last one unless given,
        and their number where the feedback is implicit.
        """
        rule = repeats or ("count" if events.implicit else "last")
        rows = cls(
            events.to_ratings(rule),
            events.user,
            events.item,
            events.value,
            events.time,
            tags=dict(events.tags),
            repeats=rule,
        )
        if keys.kind == "date":
            return rows
        if keys.column not in events.tags:
            raise DataError(
                f"the lists are told apart by sessions, and the events have no column "
                f"{keys.column!r}: keep it with read_events(…, tags=[{keys.column!r}])"
            )
        sessions, session = Ids.number(events.tags[keys.column])
        return replace(rows, time=None, sessions=sessions, session=frozen(session))

    @classmethod
    def of_file(
        cls, source: object, keys: ListKeys, duplicates: str | None = None, **settings: Any
    ) -> RatingLog:
        """Read a file; `settings` are those of `read_ratings`.

        Where `duplicates` are settled, this is done among the rows that a list is followed by.
        """
        if keys.kind == "session":
            return cls.of_sessions(source, keys.column, duplicates=duplicates, **settings)
        tests = read_ratings(source, duplicates=duplicates, **settings)
        counted_log = (step.settings["repeats"] for step in tests.steps if step.name == "repeats")
        repeats = next(counted_log, "error") if duplicates is None else duplicates
        if repeats == "error":
            return cls.of_ratings(tests, keys)
        _times(tests)
        feedback = "implicit" if tests.implicit else "explicit"
        events = read_events(source, **{**settings, "feedback": feedback})
        return replace(cls.of_events(events, keys, repeats), tests=tests)

    @classmethod
    def of_sessions(cls, source: object, column: str, **settings: Any) -> RatingLog:
        """Read test ratings of sessions: a pair of user and item may occur in several of them."""
        table = read_table(source)
        owner = table.need("user", USER, settings.pop("user", None))
        if column not in table.frame.columns or column == owner:
            raise DataError(
                f"{table.source}: the lists are told apart by sessions, and the test ratings have "
                f"no column {column!r} beside that of the users ({owner}); the columns are: "
                f"{', '.join(table.frame.columns)}. If the lists have dates, name that column "
                "date or time"
            )
        rows = read_ratings(source, user=column, tags=[owner], **settings)
        users, user = Ids.number(rows.tags[owner])
        _refuse_shared(rows, user, users)
        once = Ratings.of(
            rows.tags[owner],
            rows.items.raw(rows.item),
            pl.Series("rating", rows.value),
            rows.time,
            duplicates="last",
        )
        tests = replace(once, implicit=rows.implicit, notes=rows.notes)
        return cls(
            tests,
            frozen(user),
            rows.item,
            rows.value,
            sessions=rows.users,
            session=rows.user,
            repeats="last",
        )


def _times(tests: Ratings) -> I64:
    """Return when each test rating was given; DataError where that is not known."""
    if tests.time is None:
        raise DataError(
            "lists of several dates are evaluated with what users did from then on, and the test "
            "ratings have no time: name its column with ",
            column_hint("time"),
        )
    return tests.time


def _refuse_shared(rows: Ratings, user: I32, users: Ids) -> None:
    """Refuse a session of two users."""
    first = user[np.minimum(rows.start[:-1], max(len(rows) - 1, 0))]
    shared = user != first[rows.user]
    if shared.any():
        row = int(np.argmax(shared))
        session = rows.users.values[int(rows.user[row])]
        pair = (users.values[int(code)] for code in (first[rows.user[row]], user[row]))
        sessions = counted(int(np.unique(rows.user[shared]).size), "session has", "sessions have")
        raise DataError(
            f"{sessions} test ratings of several users, the first: session {session!r} of users "
            f"{' and '.join(map(repr, pair))}; give every session an id of its own, in ",
            Spelling("judgments and runs", "the files of judgments and lists"),
        )


_EARLY = 10**14
"""Microseconds since 1970 below which a time stamp may be a number of any unit: see `UNITS`."""
_MOST = 2**31 - 1


@dataclass(frozen=True, eq=False)
class Occasions:
    """The lists of all systems, one per user and date or session, user by user.

    A user with test ratings and without any list has one that no system gave, with all of the
    test ratings: as everywhere, who gets no list scores 0.
    """

    column: str
    """The column that tells the lists of a user apart."""
    users: Ids
    """Those of training, test and lists."""
    user: I32
    """The user of each list."""
    tests: Ratings
    """The test ratings, under the same numbers of users and items as the lists."""
    is_absent: Mask
    """Which lists no system gave."""
    time: I64 | None = None
    """Of each list, in microseconds since 1970; of one that no system gave the first of all."""
    sessions: Ids | None = None
    session: I32 | None = None
    """Of each list, -1 for one that no system gave."""
    notes: tuple[str, ...] = ()

    def __len__(self) -> int:
        return int(self.user.size)

    @property
    def settings(self) -> dict[str, Any]:
        """Return what makes the lists what they are, for the card of a result."""
        after = {"date": "from the date on", "session": "in the session"}
        kind = "session" if self.time is None else "date"
        return {"by": ["user", self.column], "kind": kind, "judgments": after[kind]}

    def columns(self) -> dict[str, pl.Series]:
        """Return the `time` or `session` of each list; nothing where no system gave one."""
        missing = pl.Series(self.is_absent)
        if self.time is not None:
            column = pl.Series("time", self.time).cast(pl.Datetime("us"))
        else:
            assert self.sessions is not None
            assert self.session is not None
            column = self.sessions.raw(np.maximum(self.session, 0)).alias("session")
        frame = pl.DataFrame({"kept": column, "missing": missing})
        present = pl.when(~pl.col("missing")).then(pl.col("kept"))
        return {column.name: frame.select(present.alias(column.name)).to_series()}

    @cached_property
    def words(self) -> str:
        """How many lists there are, of whom, and what they are evaluated with."""
        owner = self.user[~self.is_absent]
        users = int(np.unique(owner).size)
        kind = "session" if self.time is None else "date"
        return (
            f"{counted(owner.size, 'list')} of {counted(users, 'user')}, one per user and {kind} "
            f"(column {self.column!r}, {owner.size / max(users, 1):.1f} per user)"
        )


def common_keys(runs: Mapping[str, Run]) -> ListKeys:
    """Return the keys of the first run; refuse runs whose lists are not told apart alike."""
    first = next(iter(runs))
    expected = runs[first].keys
    for name, run in runs.items():
        keys = run.keys
        if keys is None or expected is None:
            single = name if keys is None else first
            raise SettingError(
                f"{single} has one list per user, and other systems have several: read all of them "
                "with lists=…"
            )
        if keys.kind != expected.kind or (
            keys.kind == "session" and keys.column != expected.column
        ):
            raise DataError(
                f"the lists of {first} are told apart by {expected.kind} ({expected.column!r}), "
                f"those of {name} by {keys.kind} ({keys.column!r}): all systems need the same"
            )
    assert expected is not None
    return expected


def lay_occasions(
    log: RatingLog, train: Ratings | None, runs: Mapping[str, Run], items: pl.Series | None
) -> tuple[Numbering, Occasions]:
    """Number the lists of all systems alike, and give each the test ratings that follow it."""
    column = common_keys(runs).column
    people = {
        name: replace(run, users=run.keys.users, keys=None)
        for name, run in runs.items()
        if run.keys is not None
    }
    base = checked_numbering(log.tests, train, people, items)
    moments = _moments(log, runs)
    owner, codes = {}, {}
    for name, run in runs.items():
        assert run.keys is not None
        owner[name] = base.runs[name][0][run.keys.user].astype(np.int64)
        codes[name] = moments.codes[name] + 1
    with_list = np.zeros(len(base.judgments.users), np.bool_)
    for users in owner.values():
        with_list[users] = True
    absent = np.flatnonzero((np.diff(base.judgments.start) > 0) & ~with_list)
    factor = np.int64(moments.size + 1)  # code 0 is that of lists that no system gave
    pairs = {name: owner[name] * factor + codes[name] for name in runs}
    keys = np.unique(np.concatenate([*pairs.values(), absent * factor]))
    user, code = (part.astype(np.int32) for part in np.divmod(keys, factor))
    judgments, notes = _judgments(log, base, moments, user, code)
    tables = {
        name: (np.searchsorted(keys, pairs[name]).astype(np.int32), base.runs[name][1])
        for name in runs
    }
    occasions = moments.occasions(column, base.judgments, user, code, notes)
    numbering = replace(base, judgments=judgments, runs=tables, owner=occasions.user)
    return numbering, occasions


@dataclass(frozen=True, eq=False)
class _Moments:
    """The dates or sessions of all lists, numbered in order, and those of the test ratings."""

    size: int
    codes: Mapping[str, I64]
    """Of the lists of each run."""
    log: I64
    """Of each row of the log: how many dates are at or before it; or its session, -1 for others."""
    time: I64 | None = None
    sessions: Ids | None = None
    notes: tuple[str, ...] = ()

    def occasions(
        self, column: str, tests: Ratings, user: I32, code: I32, notes: list[str]
    ) -> Occasions:
        """Return the lists; `code` counts from 1, 0 is one that no system gave."""
        absent = code == 0
        time = session = None
        if self.time is not None:
            time = frozen(self.time[np.maximum(code - 1, 0)])
        else:
            session = frozen(code - np.int32(1))
        plain = Occasions(
            column, tests.users, frozen(user), tests, absent, time, self.sessions, session
        )
        return replace(plain, notes=(plain.words + notes[0], *notes[1:], *self.notes))


def _moments(log: RatingLog, runs: Mapping[str, Run]) -> _Moments:
    keys = {name: run.keys for name, run in runs.items() if run.keys is not None}
    if log.time is None:
        assert log.sessions is not None
        assert log.session is not None
        ids = {
            name: list_keys.sessions
            for name, list_keys in keys.items()
            if list_keys.sessions is not None
        }
        common, (log_table, *tables) = Ids.union(log.sessions, *ids.values())
        codes = {}
        for table, (name, list_keys) in zip(tables, keys.items(), strict=True):
            assert list_keys.session is not None
            codes[name] = table[list_keys.session].astype(np.int64)
        return _Moments(
            len(common), codes, log_table[log.session].astype(np.int64), sessions=common
        )
    stamps = {
        name: list_keys.time for name, list_keys in keys.items() if list_keys.time is not None
    }
    _check_units(stamps, log.time)
    notes: tuple[str, ...] = ()
    latest = log.time
    if not (log.time % DAY).any() and any((time % DAY).any() for time in stamps.values()):
        latest = log.time + (DAY - 1)
        notes = ("the test ratings have no time of day: those of the day of a list follow it",)
    time = np.unique(np.concatenate(list(stamps.values())))
    codes = {name: np.searchsorted(time, stamp) for name, stamp in stamps.items()}
    after = np.searchsorted(time, latest, side="right")
    return _Moments(time.size, codes, after, time=frozen(time), notes=notes)


def _check_units(stamps: Mapping[str, I64], tests: I64) -> None:
    """Refuse dates of lists and times of test ratings that cannot be of one calendar."""
    for name, time in stamps.items():
        if not time.size or not tests.size:
            continue
        if (int(time.max()) < _EARLY) != (int(tests.max()) < _EARLY):
            latest = [written(int(stamp.max())) for stamp in (time, tests)]
            raise DataError(
                f"{name}: the dates of its lists end at {latest[0]}, those of the test ratings at "
                f"{latest[1]}: their units differ; write both as dates such as 2024-05-31"
            )


def _judgments(
    log: RatingLog, base: Numbering, moments: _Moments, user: I32, code: I32
) -> tuple[Ratings, list[str]]:
    """Return the test ratings that each list is evaluated with, under the numbers of lists."""
    user_table, item_table = base.tests
    factor = np.int64(moments.size + 1)
    # A row follows the lists of its user up to its code: those of the same or an earlier date.
    stamp = moments.log if log.time is not None else moments.log + 1
    key = user_table[log.user] * factor + stamp
    order = np.argsort(key, kind="stable")  # a log is in order of time
    ordered = key[order]
    first = np.searchsorted(ordered, user * factor + code)
    last = np.searchsorted(ordered, (user + np.int64(1)) * factor)
    if log.time is None:
        last = np.where(
            code == 0, last, np.searchsorted(ordered, user * factor + code, side="right")
        )
    count = last - first
    total = int(count.sum())
    if total > _MOST:
        raise DataError(
            f"the lists are followed by {total:,} test ratings in all, more than 2**31: evaluate "
            "fewer users, or fewer dates"
        )
    start = np.append(0, np.cumsum(count))
    rows = order[np.arange(total) + np.repeat(first - start[:-1], count)]
    lists = np.repeat(np.arange(user.size, dtype=np.int32), count)
    rough = Ratings(
        users=Ids(pl.Series(np.arange(user.size))),
        items=base.judgments.items,
        user=frozen(lists),
        item=frozen(item_table[log.item[rows]]),
        value=frozen(log.value[rows]),
        tags={name: column.gather(pl.Series(rows)) for name, column in (log.tags or {}).items()},
        implicit=log.tests.implicit,
    )
    used = np.zeros(key.size, np.bool_)
    used[rows] = True
    return rough.in_order(log.repeats), _notes(log, used, count, code)


def _notes(log: RatingLog, used: Mask, count: I64, code: I32) -> list[str]:
    """Say what lists are evaluated with, and what is left out."""
    after, outside = "from that date on", "earlier than every list of the same user"
    if log.time is None:
        after, outside = "in that session", "in a session without a list"
    followed = count[code > 0]
    mean = float(followed.mean()) if followed.size else 0.0
    notes = [
        f"; each is evaluated with what its user rated {after}: {mean:.1f} test ratings per list"
    ]
    empty, unused = int(np.count_nonzero(followed == 0)), int(np.count_nonzero(~used))
    if empty:
        notes.append(f"{counted(empty, 'list has', 'lists have')} no test rating {after}")
    if unused:
        ratings = counted(unused, "test rating is", "test ratings are")
        notes.append(f"{ratings} {outside}, and not used")
    return notes
