"""`RatingLog`: the test ratings row by row, for lists that are evaluated with a part of them."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import polars as pl

from unskew.arrays import F64, I32, I64, frozen
from unskew.data.events import Events, read_events
from unskew.data.ratings import Ids, Ratings
from unskew.data.readers import read_ratings
from unskew.data.tables import USER, column_hint, read_table
from unskew.errors import DataError, Spelling
from unskew.list_keys import ListKeys
from unskew.report.text import counted


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
        held = getattr(source, "ratings", source)  # of a Dataset or a World
        if isinstance(held, Ratings):
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
        many = counted(int(np.unique(rows.user[shared]).size), "session has", "sessions have")
        raise DataError(
            f"{many} test ratings of several users, the first: session {session!r} of users "
            f"{' and '.join(map(repr, pair))}; give every session an id of its own, in ",
            Spelling("judgments and runs", "the files of judgments and lists"),
        )
