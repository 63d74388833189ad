"""The rows of ranked lists, from whatever holds them: files, frames, mappings of users."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import polars as pl

from unskew.arrays import I32, I64, frozen
from unskew.data.ratings import Ids
from unskew.data.read import tables
from unskew.data.read.frames import as_column, check_lengths, first_value, value_text
from unskew.data.times import time_column, written
from unskew.errors import DataError, SettingError, Spelling
from unskew.report.text import counted

# Kernels subtract ranks from each other, and floats hold every whole number below this.
_TOO_LARGE = 2**53
BY_SCORE = Spelling(
    "by='score'", "--by score", beside="--gaps", without="a file without its rank column"
)
"""How lists with ranks and scores are ranked by score."""


def run_table(source: object, kind: str | None, by_number: bool) -> tables.DataTable:
    """Read a run's rows; mappings from user to list become rows too."""
    if isinstance(source, Mapping) and not _is_columns(source):
        return _from_lists(source)
    table = tables.read_table(source, format=kind)
    if table.format == "trec":
        if table.frame.width != 6:
            raise DataError(
                f"{table.source}: a TREC run file has 6 columns (user Q0 item rank score tag), "
                f"this has {table.frame.width}"
            )
        frame = table.frame
        frame.columns = ["user", "Q0", "item", "rank", "score", "tag"]
        return replace(table, frame=frame)
    if not table.header and not (by_number and table.frame.width > 4):
        names = (
            ("user", "item", "score")
            if table.frame.width == 3
            else ("user", "item", "rank", "score")
        )
        return tables.name_columns(table, names)
    return table


def one_row_per_item(table: tables.DataTable, names: Mapping[str, Any]) -> tables.DataTable:
    """Turn a row per list, with a column of lists of items, into a row per item."""
    nested = [names[what] for what in ("item", "rank", "score") if names[what] is not None]
    for name in nested:
        if not isinstance(table.frame[name].dtype, pl.List | pl.Array):
            raise DataError(
                f"{table.source}: column {names['item']!r} holds lists, but column {name!r} one "
                "value per row; give a list for each row, or leave the column out"
            )
    check_lengths(table.source, table.frame.select(nested))
    flat = [names["user"]]
    if table.frame[names["user"]].n_unique() < table.frame.height:  # something tells lists apart
        flat = [name for name, kind in table.frame.schema.items() if not kind.is_nested()]
    frame = table.frame.select(*flat, *nested).explode(nested)
    return replace(table, frame=frame.filter(pl.col(names["item"]).is_not_null()))


def _is_columns(source: Mapping[Any, Any]) -> bool:
    """Tell a mapping of columns from a mapping of users: columns have the names of columns."""
    names = [tables.plain_name(str(name)) for name in source]
    return any(name in tables.USER for name in names) and any(name in tables.ITEM for name in names)


def _from_lists(source: Mapping[Any, Any]) -> tables.DataTable:
    scored = [isinstance(items, Mapping) for items in source.values()]
    if any(scored) != all(scored):
        raise DataError("lists must all be of one kind: items in order, or items with scores")
    user: list[Any] = []
    item: list[Any] = []
    third: list[Any] = []
    for who, items in source.items():
        is_list = getattr(items, "ndim", 1) == 1 and not isinstance(items, str)
        if not is_list or not isinstance(items, Mapping | Sequence | np.ndarray):
            raise DataError(f"user {who!r}: expected a list of items, got {value_text(items)}")
        user += [who] * len(items)
        item += list(items)
        third += list(items.values()) if isinstance(items, Mapping) else range(1, len(items) + 1)
    name = "score" if scored and all(scored) else "rank"
    ids = as_column("item", item)
    if isinstance(ids.dtype, pl.List | pl.Array):  # else lists of lists would become one list
        row, cell = first_value(ids)
        raise DataError(f"user {user[row - 1]!r}: expected a list of items, but one item is {cell}")
    frame = pl.DataFrame([as_column("user", user), ids, as_column(name, third)])
    return tables.DataTable(frame, "lists", format="mapping")


def are_ranks(column: pl.Series) -> bool:
    """Tell whether all of a column's integers are small enough for ranks."""
    limits = pl.DataFrame([column]).select(low=pl.first().min(), high=pl.first().max()).row(0)
    return not len(column) or max(map(abs, limits)) < _TOO_LARGE


def rank_column(table: tables.DataTable, name: str) -> I64:
    """Return a rank column as whole numbers; refuse what is none."""
    column = tables.number_column(table, name, "ranks")
    if column.dtype.is_integer() and not column.null_count() and are_ranks(column):
        return (column if column.dtype == pl.Int64 else column.cast(pl.Int64)).to_numpy()
    values = column.cast(pl.Float64).fill_null(float("nan")).to_numpy()
    bad = ~(np.abs(values) < _TOO_LARGE) | (values != np.round(values))
    if bad.any():
        row = int(np.argmax(bad))
        raise DataError(
            f"{table.source}: {int(bad.sum()):,} ranks in column {name!r} are not whole numbers "
            f"below 2**53, the first in row {row + 1}: {table.frame[name][row]!r}; rank by score "
            f"instead with ",
            BY_SCORE,
            ", or correct them",
        )
    return values.astype(np.int64)


def without_nan(
    table: tables.DataTable, scores: pl.Series, ranks: I64 | None, nan: str
) -> tuple[tables.DataTable, pl.Series, I64 | None, list[str]]:
    """Refuse, or drop, rows whose score is NaN or missing."""
    floats = scores.cast(pl.Float64)
    bad = (floats.is_null() | floats.is_nan()).to_numpy()
    if not bad.any():
        return table, floats, ranks, []
    count, row = int(bad.sum()), int(np.argmax(bad))
    if nan == "error":
        raise DataError(
            f"{table.source}: {counted(count, 'score is', 'scores are')} NaN or missing, the "
            f"first in row {row + 1}; leave these items out with ",
            Spelling("nan='drop'", "--nan drop"),
        )
    keep = pl.Series(~bad)
    remaining = None if ranks is None else ranks[~bad]
    note = f"{table.source}: {counted(count, 'row')} without a score dropped"
    return replace(table, frame=table.frame.filter(keep)), floats.filter(keep), remaining, [note]


DAY = 86_400_000_000
"""Microseconds."""
_DATE_ENDINGS = ("date", "datetime", "time", "timestamp")
_SYSTEMS = (
    "system",
    "model",
    "algorithm",
    "method",
    "recommender",
    "ranker",
    "variant",
    "arm",
    "tag",
)
_ISO = re.compile(r"\d{4}-\d{2}-\d{2}")


@dataclass(frozen=True, eq=False)
class ListKeys:
    """Whose list each one is, and of which date or session. Lists ascend by user, then by it."""

    column: str
    """The name of the column of dates or sessions."""
    users: Ids
    user: I32
    """Of each list."""
    time: I64 | None = None
    """Of each list, in microseconds since 1970; None where lists are told apart by sessions."""
    sessions: Ids | None = None
    session: I32 | None = None

    @classmethod
    def group(
        cls, table: tables.DataTable, user: str, column: str
    ) -> tuple[ListKeys, I64, I64 | None]:
        """Group the rows of a table into lists.

        Returns the keys, where each list's rows start (and the last end), and the order that
        brings the rows together, None if they stand so already.
        """
        users, owner = Ids.number(table.frame[user])
        time = sessions = session = None
        if is_date(table.frame[column]):
            moments, stamp = np.unique(time_column(table, column)[0], return_inverse=True)
            number, code = moments.size, stamp.astype(np.int32)
        else:
            sessions, code = Ids.number(table.frame[column])
            number = len(sessions)
        pair = owner.astype(np.int64) * number + code
        distinct, start, order = Ids.group(pl.Series(column, pair))
        of_user, of_code = np.divmod(distinct.values.to_numpy(), number)
        if sessions is None:
            time = frozen(moments[of_code])
        else:
            session = frozen(of_code.astype(np.int32))
        keys = cls(column, users, frozen(of_user.astype(np.int32)), time, sessions, session)
        return keys, start, order

    def __len__(self) -> int:
        return int(self.user.size)

    @property
    def kind(self) -> str:
        """`date` or `session`."""
        return "session" if self.time is None else "date"

    @property
    def names(self) -> Ids:
        """The names of the lists: numbers."""
        return Ids(pl.Series(np.arange(len(self))))

    def name(self, number: int) -> str:
        """Return in words whose list it is."""
        owner = f"user {self.users.values[int(self.user[number])]!r}"
        if self.time is not None:
            return f"{owner}, {self.column} {written(int(self.time[number])).removesuffix(_START)}"
        assert self.sessions is not None
        assert self.session is not None
        return f"{owner}, {self.column} {self.sessions.values[int(self.session[number])]!r}"

    def columns(self, rows: I32) -> dict[str, pl.Series]:
        """Return the columns that tell the lists of some rows apart, with raw ids."""
        if self.time is not None:
            occasion = pl.Series(self.time[rows]).cast(pl.Datetime("us"))
        else:
            assert self.sessions is not None
            assert self.session is not None
            occasion = self.sessions.raw(self.session[rows])
        return {"user": self.users.raw(self.user[rows]), self.column: occasion}


_START = "T00:00:00"  # of a day: a date without a time of day


def named_columns(
    lists: str | Sequence[str], user: str | int | None
) -> tuple[str | int | None, str]:
    """Return the column of users, where it is named, and that of dates or sessions.

    Parameters
    ----------
    lists
        Their names, or both between commas; `user` stands for the column of users.
    user
        The column of users, if it was named otherwise.
    """
    names = lists.split(",") if isinstance(lists, str) else list(lists)
    names = [name.strip() for name in names]
    example = "such as ", Spelling("lists=('user', 'date')", "--lists user,date")
    if len(names) != 2 or not all(names):
        raise SettingError(
            "lists=… names two columns, the users and the dates or sessions of their lists, ",
            *example,
            f"; got {lists!r}",
        )
    owner, occasion = names
    is_user = [tables.plain_name(name) in tables.USER for name in names]
    if owner == occasion or (is_user[1] and not is_user[0] and owner != user):
        raise SettingError(
            "lists=… names the column of users first, ", *example, f"; got {lists!r}"
        )
    if user is None:
        user = None if owner == "user" else owner
    elif owner not in ("user", user):
        raise SettingError(f"lists=… names the users {owner!r}, and user=… names them {user!r}")
    return user, occasion


def is_date(column: pl.Series) -> bool:
    """Tell whether a column holds dates or times, by its name, its type or its first text."""
    if column.dtype in (pl.Date, pl.Datetime) or _has_date_name(column.name):
        return True
    first = column.drop_nulls().head(1)
    return column.dtype == pl.String and bool(len(first)) and bool(_ISO.match(first[0]))


def _has_date_name(name: str) -> bool:
    plain = tables.plain_name(name)
    return plain in tables.TIME or plain.endswith(_DATE_ENDINGS)


def several_lists(table: tables.DataTable, names: Mapping[str, Any], slot: str) -> tuple[Any, ...]:
    """Say, as parts of an error, which column would tell the lists of a user apart; () if none.

    Parameters
    ----------
    table
        The rows of a run in which a user has a rank, or an item, twice.
    names
        The columns that were read.
    slot
        The column that repeats: of ranks or of items.
    """
    user = names["user"]
    column = next(
        (name for name in _others(table, names) if _separates(table.frame, user, name, slot)), None
    )
    if column is None:
        return ()
    columns = f"{user},{column}"
    advice = Spelling(
        f"lists=({user!r}, {column!r})",
        f"--lists {columns}",
        without=f"unskew evaluate, compare or gate, which take --lists {columns}",
    )
    fact = f"the file has a column {column!r}, and ({user}, {column}) makes them unique: "
    if is_date(table.frame[column]):
        return fact, f"these are {_dated(table, column)}; use ", advice
    if tables.plain_name(column).startswith(_SYSTEMS):
        return fact, "if it names systems, write one file per system"
    return (
        fact,
        "if it names the sessions of a user, use ",
        advice,
        "; if it names systems, write one file per system",
    )


def unused_dates(table: tables.DataTable, names: Mapping[str, Any]) -> Iterator[str]:
    """Note a column of dates that is not read though users have several of them."""
    for column in _others(table, names):
        if not _has_date_name(column):
            return
        pairs = table.frame.select(names["user"], column).n_unique()
        users = table.frame[names["user"]].n_unique()
        if users < pairs < table.frame.height:
            yield (
                f"{table.source}: users have several dates in column {column!r}, and all their "
                f"items make one list; lists=({names['user']!r}, {column!r}) (command line: "
                f"--lists {names['user']},{column}) makes a list per date"
            )


def _others(table: tables.DataTable, names: Mapping[str, Any]) -> list[str]:
    """Return the columns that were not read, dates first, then sessions."""
    unread = [name for name in table.frame.columns if name not in names.values()]
    is_other = {name: "session" not in tables.plain_name(name) for name in unread}
    return sorted(unread, key=lambda name: (not is_date(table.frame[name]), is_other[name]))


def _separates(frame: pl.DataFrame, user: str, column: str, slot: str) -> bool:
    """Tell whether no list of a user and a value of the column has a slot twice.

    A column that is different in every row says nothing of lists.
    """
    if frame[column].null_count() or frame[column].dtype.is_nested():
        return False
    if frame.select(user, column).n_unique() == frame.height:
        return False
    return frame.select(user, column, slot).n_unique() == frame.height


def _dated(table: tables.DataTable, column: str) -> str:
    try:
        moments = time_column(table, column)[0]
    except DataError:  # it will say so when it is asked for
        return "lists of several dates"
    return "lists of several times" if (moments % DAY).any() else "daily lists"


def say_keys(keys: ListKeys) -> str:
    """Return how many lists there are of how many users."""
    return f"{counted(len(keys), 'list')} of {counted(len(keys.users), 'user')}"
