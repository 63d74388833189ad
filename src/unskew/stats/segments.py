"""`Segmentation`: users divided by activity, taste, time or a column of a file."""

from __future__ import annotations

import math
import os
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from unskew.arrays import F64, I32, I64, Mask, frozen
from unskew.checks import as_count
from unskew.data.ratings import Ids, Ratings
from unskew.data.read.tables import ITEM, USER, DataTable, naming, read_table
from unskew.data.summary import by_popularity, item_counts
from unskew.errors import DataError, SettingError, Spelling, is_address, unknown_name
from unskew.evaluation.scores import Scores
from unskew.judging.judged import Judged
from unskew.report.text import counted

_WHO, _WHAT = {"user": "who", "item": "that"}, {"by": "segments", "group_users": "groups"}
_NO_FILES = ("arrays", "frame")
"""How `read_table` calls tables that are in no file."""


@dataclass(frozen=True, eq=False)
class UserColumn:
    """A value per user (or item): numbers, or texts."""

    name: str
    source: str
    users: Ids
    numbers: F64 | None = None
    """NaN where there is none."""
    texts: pl.Series | None = None
    is_time: bool = False
    """Whether the numbers are microseconds since 1970."""

    @property
    def title(self) -> str:
        """The column, and its file where it is in one."""
        return self.name if self.source in _NO_FILES else f"{self.name} ({self.source})"

    def numbers_of(self, codes: I32) -> F64:
        """Return the numbers of users by their codes; NaN for a code of -1."""
        assert self.numbers is not None
        return np.append(self.numbers, np.nan)[codes]

    def texts_of(self, codes: I32) -> pl.Series:
        """Return the texts of users by their codes; null for a code of -1."""
        assert self.texts is not None
        index = pl.Series(codes.astype(np.int64))
        return self.texts.gather(index.set(index < 0, None))

    @property
    def place(self) -> str:
        """Where it is."""
        return "the table" if self.source in _NO_FILES else self.source


def is_column(by: str) -> bool:
    """Tell whether a text names a column of a file: FILE:COLUMN.

    A file that is not there counts if its name has an ending: reading it names it.
    """
    file, colon, column = by.rpartition(":")
    if not colon or not column:
        return False
    try:
        return is_address(file) or bool(Path(file).suffix) or Path(file).exists()
    except OSError:  # such as a name that is too long
        return False


def read_column(by: str | os.PathLike[str], of: str = "user", argument: str = "by") -> UserColumn:
    """Read FILE:COLUMN; `of`: whose, `user` or `item`; `argument`: how messages call it."""
    file, _, name = str(by).rpartition(":")
    table = read_table(file)
    key, others = _id_column(table, of, argument)
    if name not in others:
        raise unknown_name(f"column of {table.source}", name, others)
    return _column(table, key, name, of, argument)


def column_of_table(source: object, of: str = "user", argument: str = "by") -> UserColumn:
    """Take a table with a column of users (or, with `of`, of items) and one other column."""
    table = read_table(source)
    key, others = _id_column(table, of, argument)
    if len(others) != 1:
        raise DataError(
            f"{argument}=…: a table of {_WHAT[argument]} has a column of {of}s and one other "
            f"column, got: {', '.join(table.frame.columns)}"
        )
    return _column(table, key, others[0], of, argument)


def _id_column(table: DataTable, of: str, argument: str) -> tuple[str, list[str]]:
    """Return the column with the ids of users or items, and the other columns."""
    names = table.frame.columns
    key = table.pick(of, USER if of == "user" else ITEM, None)
    if key is not None:
        return key, [name for name in names if name != key]
    item = table.pick("item", ITEM, None) if (of, argument) == ("user", "by") else None
    if item is not None:
        raise DataError(
            f"by=…: {table.source} has a column of items ({item!r}) and none of users, but "
            "segments are groups of users; metrics by groups of items: ",
            Spelling(
                "us.unbiased.strata(judged, by=…, of='items')",
                "unskew strata --by FILE --of items",
            ),
        )
    raise DataError(
        f"{argument}=…: {table.source} has no column of {of}s; its columns are: "
        f"{', '.join(names) or 'none'}; call the one with the ids of {of}s {of}"
    )


def _column(table: DataTable, user: str, name: str, of: str, argument: str) -> UserColumn:
    """Return the value of each user or item; each has one row."""
    with naming(table.source):
        ids, codes = Ids.number(table.frame[user])
    if len(ids) < codes.size:
        again = ids.values[int(np.argmax(np.bincount(codes)))]
        raise DataError(
            f"{argument}=…: {table.source} has {counted(codes.size - len(ids), 'row')} of {of}s "
            f"{_WHO[of]} already have one, such as {of} {again!r}: give each {of} one row"
        )
    order = pl.Series(np.argsort(codes, kind="stable"))
    column = table.frame[name].gather(order)
    kind = column.dtype
    if kind.is_temporal() and kind not in (pl.Time, pl.Duration):
        times = column.cast(pl.Datetime("us")).to_physical().cast(pl.Float64)
        return UserColumn(name, table.source, ids, _floats(times), is_time=True)
    if kind == pl.String:
        texts = column.str.strip_chars()
        texts = texts.set(texts == "", None)
        floats = texts.cast(pl.Float64, strict=False)
        if floats.null_count() == texts.null_count() and texts.null_count() < len(texts):
            return UserColumn(name, table.source, ids, _floats(floats))
        return UserColumn(name, table.source, ids, texts=texts)
    if kind.is_numeric():
        return UserColumn(name, table.source, ids, _floats(column.cast(pl.Float64)))
    if kind.is_nested() or kind in (pl.Object, pl.Binary):
        raise DataError(
            f"{argument}=…: column {name!r} of {table.source} must hold numbers, times or text, "
            f"got {kind}"
        )
    return UserColumn(name, table.source, ids, texts=column.cast(pl.String))


def _floats(column: pl.Series) -> F64:
    """Return numbers; NaN for what is missing or not finite."""
    values = column.fill_null(float("nan")).to_numpy().astype(np.float64)
    return np.where(np.isfinite(values), values, np.nan)


BY = ("activity", "popularity", "taste", "time")
GROUPS = 4
LEAST_USERS = 20
MOST_GROUPS = 20
"""Of a text column, the largest groups that stay apart."""
TASTES = ("niche", "diverse", "blockbuster")
POPULAR = 0.2
"""The share of the rated items that is popular, and of the users that is niche, or blockbuster."""
COLD = "cold"
UNKNOWN = "unknown"
OTHER = "other"
_PARTS = {2: "halves", 3: "thirds", 4: "quarters", 5: "fifths", 10: "tenths"}
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(frozen=True, eq=False)
class Segmentation:
    """Users divided into segments. Made by `segments_of`."""

    by: str
    """What users are divided by, in words."""
    rule: str
    """How the segments are formed, in a sentence."""
    users: Ids
    code: I64
    """The segment of each user."""
    names: tuple[str, ...]
    notes: tuple[str, ...] = ()

    @property
    def sizes(self) -> I64:
        """How many users each segment has."""
        return np.bincount(self.code, minlength=len(self.names)).astype(np.int64)


@dataclass(frozen=True, eq=False)
class Quantity:
    """A number per user, by which users are divided; NaN where it is not known."""

    by: str
    values: F64
    is_time: bool = False
    """Whether it is microseconds since 1970."""
    cold: Mask | None = None
    """Users without training ratings, where training ratings are known."""
    missing: str = ""
    """Of which users it is not known, as noun and verb: "user has no …|users have no …"."""
    notes: tuple[str, ...] = ()


def segments_of(
    users: Ids,
    by: object,
    *,
    judged: Judged | None = None,
    scores: tuple[Scores, ...] = (),
    groups: int | None = None,
    least_users: int | None = None,
) -> Segmentation:
    """Divide users into segments.

    Parameters
    ----------
    users
        Whom to divide: all others do not count.
    by
        `activity`, `popularity`, `taste`, `time`, `FILE:COLUMN`, a table with a column of users and
        one other column, or a `Segmentation` of these users.
    judged
        The judged data, where they are known.
    scores
        What was evaluated: enough for `activity`.
    groups
        Into how many quantile groups numbers are cut, 4 unless given.
    least_users
        A group of a text column with fewer users is merged into `other`; 20 unless given.
    """
    parts = as_count("groups", GROUPS if groups is None else groups, 2)
    minimum = as_count("least_users", LEAST_USERS if least_users is None else least_users)
    if isinstance(by, Segmentation):
        if not by.users.equals(users):
            raise SettingError(
                f"by=… has segments of {counted(len(by.users), 'user')}, which are not the "
                f"{counted(len(users), 'user')} that are compared"
            )
        return by
    if isinstance(by, str) and by in BY:
        if least_users is not None:
            raise SettingError(
                f"least_users=… is for the groups of a text column, not for by={by!r}: leave it out"
            )
        if by == "taste":
            if groups is not None:
                raise SettingError("groups=… does nothing with by='taste', which has three")
            return _by_taste(users, judged)
        return _by_quantity(users, QUANTITIES[by](users, judged, scores), parts)
    if isinstance(by, str):
        if not is_column(by):
            raise unknown_name("by", by, (*BY, "FILE:COLUMN"))
        column = read_column(by)
    else:
        column = column_of_table(by)
    _check_settings(column, groups, least_users)
    return _by_column(users, column, parts, minimum)


def _check_settings(column: UserColumn, groups: int | None, least_users: int | None) -> None:
    """Refuse a setting that does nothing for this kind of column."""
    kind, name = ("text", "groups") if column.numbers is None else ("numbers", "least_users")
    setting = groups if name == "groups" else least_users
    if setting is not None:
        raise SettingError(f"{name}=… does nothing here: {column.title} holds {kind}; leave it out")


# Numbers per user


def _activity(users: Ids, judged: Judged | None, scores: tuple[Scores, ...]) -> Quantity:
    """Count each user's training ratings, or test ratings where training is not known."""
    if judged is not None:
        counts = {"test": _counts(users, judged.tests)}
        if judged.train is not None:
            counts["train"] = _counts(users, judged.train)
    elif len(scores) == 1:
        counts = _counts_of_scores(users, scores[0])
    else:
        raise _needs_judged("activity")
    if "train" not in counts:
        return Quantity("number of test ratings", counts["test"])
    train = counts["train"]
    return Quantity("number of training ratings", train, cold=train == 0)


def _counts(users: Ids, ratings: Ratings) -> F64:
    """Return how many ratings each user has."""
    codes = ratings.users.codes(users.values)
    counts = np.append(np.diff(ratings.start), 0)
    return counts[codes].astype(np.float64)  # -1, who has none, is the last


def _counts_of_scores(users: Ids, scores: Scores) -> dict[str, F64]:
    """Return what scores know of each user: their lists name the counts of the list's user."""
    codes = scores.user_ids.codes(users.values)
    is_known = codes >= 0
    counts: dict[str, F64] = {}
    for name in ("test", "train"):
        if name in scores.lists.columns:
            of_user = np.zeros(len(scores.user_ids))
            # Of several lists the first is followed by most test ratings.
            np.maximum.at(of_user, scores.lists["user"].to_numpy(), scores.lists[name].to_numpy())
            counts[name] = np.where(is_known, of_user[codes], 0.0)
    return counts


def _popularity(users: Ids, judged: Judged | None, scores: tuple[Scores, ...]) -> Quantity:  # noqa: ARG001
    """Average the popularity of what each user liked, or rated where nothing is liked."""
    if judged is None:
        raise _needs_judged("popularity")
    source = _judged_part(judged.tests if judged.train is None else judged.train)
    what = "test" if judged.train is None else "training"
    count = item_counts(source)[source.item].astype(np.float64)
    liked = judged.relevance.is_liked(source.value)
    everyone = _means(source, count, np.ones(count.size, np.bool_))
    taste = _means(source, count, liked)
    codes = source.users.codes(users.values)
    without = int(np.count_nonzero((codes >= 0) & np.isnan(np.append(taste, 0.0)[codes])))
    quantity = np.append(np.where(np.isnan(taste), everyone, taste), np.nan)[codes]
    notes = []
    if without:
        notes.append(
            f"{counted(without, 'user likes', 'users like')} none of their {what} items: the mean "
            "is over all that they rated"
        )
    return Quantity(
        f"mean number of {what} ratings of the items that the user liked in {what}",
        quantity,
        cold=None if judged.train is None else np.isnan(quantity),
        missing=f"user has no {what} rating|users have no {what} rating",
        notes=tuple(notes),
    )


def _judged_part(ratings: Ratings) -> Ratings:
    """Leave out pairs that were pooled but not judged: nobody rated them."""
    pooled = ratings.tags.get("pooled")
    return ratings if pooled is None else ratings.take(~pooled.to_numpy())


def _means(ratings: Ratings, values: F64, keep: Mask) -> F64:
    """Return the mean of kept values by user; NaN where none is kept. Sums of counts are exact."""
    users = len(ratings.users)
    total = np.bincount(ratings.user[keep], values[keep], users)
    number = np.bincount(ratings.user[keep], minlength=users)
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.where(number > 0, total / number, np.nan)


def _time(users: Ids, judged: Judged | None, scores: tuple[Scores, ...]) -> Quantity:  # noqa: ARG001
    """Return when each user's last test judgment was."""
    if judged is None:
        raise _needs_judged("time")
    tests = judged.tests
    if tests.time is None:
        raise DataError("by='time' needs test judgments with a column of times")
    last = np.full(len(tests.users) + 1, np.nan)
    last[: len(tests.users)] = -np.inf
    np.maximum.at(last, tests.user, tests.time.astype(np.float64))
    last[np.isinf(last)] = np.nan
    train = judged.train
    return Quantity(
        "time of the user's last test judgment",
        last[tests.users.codes(users.values)],
        is_time=True,
        cold=None if train is None else _counts(users, train) == 0,
        missing="user has no test judgment|users have no test judgment",
    )


def popular_items(counts: I64) -> F64:
    """Mark the popular ones among the rated items with 1."""
    popular = np.zeros(counts.size)
    popular[by_popularity(counts)[: math.ceil(POPULAR * np.count_nonzero(counts))]] = 1.0
    return popular


def taste_of(share: F64) -> I64:
    """Return the taste of each user by the share of popular items; beyond the last where NaN."""
    is_known = ~np.isnan(share)
    distinct, of, count = np.unique(share[is_known], return_inverse=True, return_counts=True)
    middle = (np.cumsum(count) - count / 2) / max(int(count.sum()), 1)
    group = np.where(middle < POPULAR, 0, np.where(middle < 1 - POPULAR, 1, 2))
    code = np.full(share.size, len(TASTES), np.int64)
    code[is_known] = group[of] if distinct.size else 0
    return code


def _by_taste(users: Ids, judged: Judged | None) -> Segmentation:
    """Divide users by the share of popular items in their training ratings.

    Abdollahpouri et al. 2019: the fifth of the users with the smallest share is niche, that with
    the largest blockbuster, the rest diverse. Users with equal shares stay together, in the group
    in which the middle of them falls.
    """
    if judged is None:
        raise _needs_judged("taste")
    if judged.train is None:
        raise DataError("by='taste' needs the training ratings: give train=…")
    train = _judged_part(judged.train)
    popular = popular_items(item_counts(train))
    share = np.append(_means(train, popular[train.item], np.ones(len(train), np.bool_)), np.nan)
    share = share[train.users.codes(users.values)]
    used, code = np.unique(taste_of(share), return_inverse=True)
    rule = (
        f"segments: users by the share of popular items (the {POPULAR:.0%} most rated) in their "
        f"training ratings: niche is the lowest {POPULAR:.0%} of users, blockbuster the highest; "
        "users with equal shares stay together"
    ).replace("%", " %")
    names = tuple((*TASTES, COLD)[number] for number in used)
    if COLD in names:
        rule += f"; {COLD}: no training rating"
    by = "share of popular items in training"
    return _several(Segmentation(by, rule, users, frozen(code.astype(np.int64)), names))


QUANTITIES: dict[str, Callable[[Ids, Judged | None, tuple[Scores, ...]], Quantity]] = {
    "activity": _activity,
    "popularity": _popularity,
    "time": _time,
}


def _needs_judged(by: str) -> SettingError:
    return SettingError(
        f"by={by!r} needs the ratings behind the values: give judged data (us.judge), or a table "
        "with a column of users and one other column"
    )


# From numbers and texts to segments


def _by_quantity(users: Ids, quantity: Quantity, groups: int) -> Segmentation:
    """Cut into quantile groups; cold users, and those without a number, are groups of their own."""
    values = quantity.values
    cold = np.zeros(values.size, np.bool_) if quantity.cold is None else quantity.cold
    is_known = ~np.isnan(values) & ~cold
    code, names = quantile_groups(values, is_known, groups, is_time=quantity.is_time)
    notes = list(quantity.notes)
    rule = (
        f"segments: {_PARTS.get(groups, f'{groups} parts')} of the users by {quantity.by}; users "
        "with equal values stay together"
    )
    if cold.any():
        code[cold] = len(names)
        names = [*names, COLD]
        rule += f"; {COLD}: no training rating"
    unknown = ~is_known & ~cold
    if unknown.any():
        code[unknown] = len(names)
        names = [*names, UNKNOWN]
        singular, plural = quantity.missing.split("|")
        notes.append(f"{UNKNOWN}: {counted(int(unknown.sum()), singular, plural)}")
    return _several(
        Segmentation(quantity.by, rule, users, frozen(code), tuple(names), tuple(notes))
    )


def _by_column(users: Ids, column: UserColumn, groups: int, minimum: int) -> Segmentation:
    """Cut a column of numbers into quantile groups; take the texts of another as groups."""
    codes = column.users.codes(users.values)
    if not (codes >= 0).any():
        raise DataError(
            f"{column.source}: none of its {counted(len(column.users), 'user')} is among the "
            f"{counted(len(users), 'user')} that are compared, such as {users.values[0]!r}"
        )
    by = column.title
    absent = f"user is not in {column.place} or has no {column.name}"
    missing = f"{absent}|{absent.replace('user is', 'users are').replace('has', 'have')}"
    if column.numbers is not None:
        values = column.numbers_of(codes)
        quantity = Quantity(by, values, is_time=column.is_time, missing=missing)
        return _by_quantity(users, quantity, groups)
    return _by_text(users, column.texts_of(codes), by, missing, minimum)


def _by_text(users: Ids, texts: pl.Series, by: str, missing: str, minimum: int) -> Segmentation:
    """Take texts as groups; small ones are merged."""
    code, names, merged = text_groups(texts, minimum, merges_single=False)
    rule = f"segments: {by}"
    if merged:
        rule += (
            f"; {OTHER}: {counted(merged, 'value')} with fewer than {minimum:,} users each or "
            f"beyond the {MOST_GROUPS} most frequent"
        )
    unknown = texts.null_count()
    notes = []
    if unknown:
        singular, plural = missing.split("|")
        notes.append(f"{UNKNOWN}: {counted(unknown, singular, plural)}")
        code[texts.is_null().to_numpy()] = len(names)
        names.append(UNKNOWN if UNKNOWN not in names else f"({UNKNOWN})")
    return _several(Segmentation(by, rule, users, frozen(code), tuple(names), tuple(notes)))


def text_groups(
    texts: pl.Series, minimum: int = 1, *, merges_single: bool = True
) -> tuple[I64, list[str], int]:
    """Return the group of each text (-1 for null), their names, and how many texts are merged.

    Parameters
    ----------
    texts
        A text per user or item.
    minimum
        A text that occurs less often is merged into `other`, and so are all beyond the 20 most
        frequent ones.
    merges_single
        Whether this holds for a single text too, which would only lose its name.
    """
    counts = texts.drop_nulls().value_counts().rows()
    ranked = sorted(counts, key=lambda row: (-row[1], row[0]))
    frequent = {name for name, count in ranked[:MOST_GROUPS] if count >= minimum and name != OTHER}
    merged = len(ranked) - len(frequent)
    if merged == 1 and not merges_single:
        frequent, merged = {name for name, _ in ranked}, 0
    names = sorted(frequent) + [OTHER] * (merged > 0)
    number_of = {name: number for number, name in enumerate(names)}
    merged_code = number_of.get(OTHER, -1)
    code = [-1 if text is None else number_of.get(text, merged_code) for text in texts.to_list()]
    return np.array(code, np.int64), names, merged


def _several(segments: Segmentation) -> Segmentation:
    if len(segments.names) < 2:
        name = segments.names[0] if segments.names else "none"
        raise DataError(
            f"by=… gives one segment only, {name!r}, with all "
            f"{counted(len(segments.users), 'user')}: there is nothing to compare it with "
            f"({segments.rule})"
        )
    return segments


def quantile_groups(
    values: F64, is_known: Mask, groups: int, *, is_time: bool
) -> tuple[I64, list[str]]:
    """Cut the known values into groups of about as many users; equal values stay together.

    A value belongs to the part in which the middle of its users falls, in rising order.
    """
    code = np.full(values.size, -1, np.int64)
    distinct, of, count = np.unique(values[is_known], return_inverse=True, return_counts=True)
    if not distinct.size:
        return code, []
    total = int(count.sum())
    middle = 2 * (np.cumsum(count) - count) + count  # twice the number of users below
    part = middle * groups // (2 * total)
    used, number = np.unique(part, return_inverse=True)
    code[is_known] = number[of]
    ranges = [
        (distinct[number == group][0], distinct[number == group][-1]) for group in range(used.size)
    ]
    return code, _names_of_ranges([(float(low), float(high)) for low, high in ranges], is_time)


def _names_of_ranges(ranges: list[tuple[float, float]], is_time: bool) -> list[str]:
    """Return a name per range, with as many digits as it takes to tell all ends apart."""
    distinct = len({end for pair in ranges for end in pair})
    writers = _TIME_WRITERS if is_time else _NUMBER_WRITERS
    for write in writers:
        if len({write(end) for pair in ranges for end in pair}) == distinct:
            break
    return [write(low) if low == high else f"{write(low)} to {write(high)}" for low, high in ranges]


def _number_writer(digits: int) -> Callable[[float], str]:
    def write(value: float) -> str:
        if value == math.floor(value) and abs(value) < 1e15:
            return f"{int(value):,}".replace("-", "−")
        return f"{value:,.{digits}g}".replace("-", "−")

    return write


def _time_writer(pattern: str) -> Callable[[float], str]:
    def write(value: float) -> str:
        try:
            return (_EPOCH + timedelta(microseconds=int(value))).strftime(pattern)
        except OverflowError:
            return f"{value:.0f}"

    return write


_NUMBER_WRITERS: list[Any] = [_number_writer(digits) for digits in (3, 4, 6, 9, 17)]
_TIME_WRITERS: list[Any] = [
    _time_writer(pattern) for pattern in ("%Y-%m-%d", "%Y-%m-%d %H:%M:%S", "%Y-%m-%d %H:%M:%S.%f")
]
