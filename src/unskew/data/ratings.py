"""`Ids` and `Ratings`: raw ids in, small consecutive numbers inside, raw ids out."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
import polars as pl

from unskew.arrays import F64, I32, I64, Mask, frozen
from unskew.checks import choose
from unskew.data.groups import GROUPS_PER_TASK, does_numpy_sort, grouped_order, run_starts
from unskew.data.read.frames import got
from unskew.data.rows import Rows
from unskew.data.steps import Step
from unskew.engine.files import write_table
from unskew.engine.threads import check_fork, map_blocks
from unskew.errors import DataError, Spelling
from unskew.report.tables import as_pandas
from unskew.report.text import counted

CANONICAL_INTEGER = r"^(0|-?[1-9][0-9]{0,17})$"
DUPLICATES = ("error", "first", "last", "mean", "sum", "max", "count")
FEEDBACK = ("implicit", "explicit")
COUNT, WEIGHT = "count", "weight"
"""Names of columns that hold implicit feedback."""

LARGEST = 1e100
"""Ratings beyond this are refused: squares and sums of many of them stay within floats."""
# Beyond this not every whole number is a float, so ids that differ may have become the same.
_WHOLE = 2.0**53


@dataclass(frozen=True, eq=False)
class Ids:
    """Raw ids numbered 0, 1, … in sorted order: integers by value, text by code point.

    Examples
    --------
    >>> import polars as pl
    >>> from unskew.data import Ids
    >>> ids, codes = Ids.number(pl.Series(["b", "a", "b"]))
    >>> list(ids.values), codes.tolist()
    (['a', 'b'], [1, 0, 1])
    """

    values: pl.Series
    """The distinct raw ids, sorted: Int64 or String."""

    @classmethod
    def number(cls, raw: pl.Series, likely: Ids | None = None) -> tuple[Ids, I32]:
        """Number the ids of a column; return the ids and the column as numbers.

        `likely` ids, if any, only make text quicker to look up.
        """
        series = id_column(raw)
        if series.dtype == pl.String:
            likely_values = likely.values if likely is not None and likely.kind == "text" else None
            return cls._number_text(series, likely_values)
        return cls._number_integers(frozen(series.to_numpy()))

    @classmethod
    def group(cls, raw: pl.Series, likely: Ids | None = None) -> tuple[Ids, I64, I64 | None]:
        """Return the ids of a column, where each one's rows start, and the order that groups rows.

        The last of the starts is the end. The order is None if the rows stand so already.
        """
        from unskew.data import kernels

        series = id_column(raw)
        if series.dtype == pl.Int64:
            values = frozen(series.to_numpy())
            count = kernels.count_ascending(values)
            if count >= 0:  # the usual case: nothing to number
                distinct, start = np.empty(count, np.int64), np.empty(count + 1, np.int64)
                kernels.ascending_runs(values, distinct, start)
                return cls(pl.Series(distinct)), start, None
        ids, codes = cls.number(series, likely)
        start, grouped = kernels.group_starts(frozen(codes), len(ids))
        return ids, start, None if grouped else grouped_order(codes, start)

    @classmethod
    def _number_integers(cls, values: I64) -> tuple[Ids, I32]:
        from unskew.data import kernels

        if values.size == 0:
            return cls(pl.Series([], dtype=pl.Int64)), np.empty(0, np.int32)
        low, high = int(values.min()), int(values.max())
        span = high - low + 1
        if span <= max(4 * values.size, 1 << 16):
            present = np.zeros(span, np.uint8)
            kernels.mark_present(values, low, present)
            # Modulo 2**32, which the difference survives: ids may be larger than 32 bits.
            codes = np.subtract(values, np.int64(low), dtype=np.int32, casting="unsafe")
            distinct = np.flatnonzero(present) + low
            if distinct.size < span:  # close the gaps
                table = np.cumsum(present, dtype=np.int32) - np.int32(1)
                codes = recoded(codes, table)
        else:
            appeared, distinct = kernels.number_by_hash(values)
            order = np.argsort(distinct)
            table = np.empty(order.size, np.int32)
            table[order] = np.arange(order.size, dtype=np.int32)
            distinct = distinct[order]
            codes = recoded(appeared, table)
        return cls(pl.Series(distinct, dtype=pl.Int64)), codes

    @classmethod
    def _number_text(cls, series: pl.Series, likely: pl.Series | None) -> tuple[Ids, I32]:
        # Rows usually come in runs of one user: then only the first of each run needs a look-up.
        heads = _heads(series.head(1000))
        if 4 * int(heads.sum()) < heads.size:
            heads = _heads(series)
            ids, codes = cls._number_text(series.filter(pl.Series(heads)), likely)
            return ids, codes[np.cumsum(heads) - 1]
        if likely is None:
            distinct = series.unique().sort()
        else:
            guess = series.cast(pl.Enum(likely), strict=False).to_physical()
            used = np.zeros(len(likely), np.bool_)
            used[guess.drop_nulls().to_numpy()] = True
            distinct = likely.filter(pl.Series(used))
            if not guess.null_count():
                table = np.cumsum(used, dtype=np.int32) - np.int32(1)
                return cls(distinct), table[guess.to_numpy()]
            new = series.filter(guess.is_null()).unique()
            distinct = pl.concat([distinct, new]).sort()
        codes = series.cast(pl.Enum(distinct)).to_physical().to_numpy()
        return cls(distinct), codes.astype(np.int32)

    def __len__(self) -> int:
        return len(self.values)

    @property
    def kind(self) -> str:
        """`integer` or `text`."""
        return "text" if self.values.dtype == pl.String else "integer"

    def raw(self, codes: I32 | Sequence[int]) -> pl.Series:
        """Return the raw ids of some numbers."""
        return self.values.gather(pl.Series(np.asarray(codes, dtype=np.int64)))

    def codes(self, raw: pl.Series | Sequence[object]) -> I32:
        """Return the numbers of raw ids, -1 for those that are not known."""
        ids, rows = Ids.number(raw if isinstance(raw, pl.Series) else pl.Series(raw))
        common, (self_table, raw_table) = Ids.union(self, ids)
        back = np.full(len(common), -1, np.int32)
        back[self_table] = np.arange(len(self), dtype=np.int32)
        result: I32 = back[raw_table[rows]]
        return result

    def equals(self, ids: Ids) -> bool:
        """Tell whether two numberings are the same."""
        return self is ids or (
            self.values.dtype == ids.values.dtype and self.values.equals(ids.values)
        )

    @staticmethod
    def union(*numberings: Ids) -> tuple[Ids, list[I32]]:
        """Return the ids of all, and for each the table from its numbers to the common ones.

        Text that is a canonical decimal matches the integer, but only when *all* text ids are:
        otherwise all compare as text.
        """
        values = _alike([ids.values for ids in numberings])
        common = values[0]
        for column in values[1:]:
            if not column.equals(common):
                common = pl.concat([common, column]).unique()
        common = common if common.is_sorted() else common.sort()
        low = 0 if common.dtype == pl.String or not len(common) else int(common[0])
        solid = (
            common.dtype != pl.String
            and len(common) > 0
            and (int(common[-1]) - low + 1 == len(common))
        )
        tables = []
        for value in values:
            if solid:  # consecutive integers number themselves
                tables.append((value.to_numpy() - low).astype(np.int32))
            elif value.equals(common):
                tables.append(np.arange(len(value), dtype=np.int32))
            elif common.dtype == pl.String:
                physical = value.cast(pl.Enum(common)).to_physical().to_numpy()
                tables.append(physical.astype(np.int32))
            else:
                positions = np.searchsorted(common.to_numpy(), value.to_numpy())
                tables.append(positions.astype(np.int32))
        return Ids(common), tables


def _heads(series: pl.Series) -> Mask:
    """Mark the rows that differ from the row before."""
    heads = series.ne_missing(series.shift(1)).to_numpy().copy()
    heads[:1] = True
    return heads


def _alike(columns: Sequence[pl.Series]) -> list[pl.Series]:
    """Bring ids to one type: integers where every text id is one, else text."""
    texts = [values for values in columns if values.dtype == pl.String]
    if not texts or len(texts) == len(columns):
        return list(columns)
    if all(bool(values.str.contains(CANONICAL_INTEGER).all()) for values in texts):
        return [values.cast(pl.Int64) for values in columns]
    return [values.cast(pl.String) for values in columns]


def id_column(raw: pl.Series) -> pl.Series:
    """Return a column of ids as Int64 or String; refuse missing ids."""
    check_fork()
    if raw.dtype in (pl.Int64, pl.String) and not raw.null_count():
        return raw
    if raw.dtype == pl.Null and len(raw) == 0:
        return raw.cast(pl.Int64)
    missing = raw.is_null()
    if raw.dtype.is_float():
        missing |= raw.is_nan()
    if missing.any():
        row = int(missing.arg_true()[0])
        raise DataError(
            f"column {raw.name!r}: {counted(int(missing.sum()), 'id is', 'ids are')} missing, "
            f"the first in row {row + 1}; remove these rows or give them an id"
        )
    if raw.dtype.is_float():
        is_whole = (raw == raw.round(0)) & (raw.abs() <= _WHOLE)
        if not is_whole.all():
            row = int((~is_whole).arg_true()[0])
            large = abs(raw[row]) > _WHOLE
            remedy = "give large ids as integers or text" if large else "is this the right column?"
            raise DataError(
                f"column {raw.name!r}: ids must be whole numbers or text, but row {row + 1} has "
                f"{raw[row]!r}; {remedy}"
            )
        return raw.cast(pl.Int64)
    if raw.dtype.is_nested():
        raise _no_ids(raw)
    if raw.dtype.is_integer():
        low, high = raw.min(), raw.max()
        limits = np.iinfo(np.int64)
        inside = not len(raw) or (limits.min <= int(low) and int(high) <= limits.max)  # type: ignore[arg-type]
        return raw.cast(pl.Int64 if inside else pl.String)
    try:
        return raw if raw.dtype == pl.String else raw.cast(pl.String)
    except pl.exceptions.PolarsError:
        raise _no_ids(raw) from None


def _no_ids(raw: pl.Series) -> DataError:
    rule = "ids must be whole numbers or text"
    return DataError(f"column {raw.name!r}: {rule}, {got(raw)}; is this the right column?")


@dataclass(frozen=True, eq=False, repr=False)
class Ratings(Rows):
    """Ratings (or test judgments) in one order, by user and then by item; never changed.

    Build them with `read_ratings` or `Ratings.of`. Rows are numbers of `users` and `items`.

    Examples
    --------
    >>> import unskew as us
    >>> data = us.read_ratings({"user": ["a", "a", "b"], "item": [7, 8, 7], "rating": [5, 3, 4]})
    >>> data.user.tolist(), data.take(data.value >= 4).to_polars().rows()
    ([0, 0, 1], [('a', 7, 5.0), ('b', 7, 4.0)])
    """

    users: Ids
    items: Ids
    time: I64 | None = None
    """Microseconds since 1970, or None."""
    tags: Mapping[str, pl.Series] = field(default_factory=dict)
    """Named extra columns, such as a fold or `pooled`."""
    implicit: bool = False
    """Implicit: a pair that occurs is liked, dislikes are unknown, and a value counts events."""
    notes: tuple[str, ...] = ()
    """What was assumed when the data was read."""
    steps: tuple[Step, ...] = ()
    """What was done to the data since: filters, and how repeated events became one rating."""

    noun: ClassVar[str] = "ratings"
    hint: ClassVar[str] = "to_polars() gives the rows."

    @classmethod
    def of(
        cls,
        user: pl.Series,
        item: pl.Series,
        value: pl.Series | None = None,
        time: I64 | None = None,
        *,
        tags: Mapping[str, pl.Series] | None = None,
        duplicates: str = "error",
        notes: tuple[str, ...] = (),
    ) -> Ratings:
        """Build ratings from columns, number their ids and put the rows in order.

        Parameters
        ----------
        user, item, value
            Columns of equal length; no value means implicit data, where every value is 1.
        time
            Microseconds since 1970.
        tags
            Further columns to keep.
        duplicates
            What to do when a user rated an item more than once: `error`, `first`, `last`,
            `mean`, `sum` or `max`; `count` makes implicit feedback of an event log, with the number
            of rows as the value of every pair.
        notes
            Remarks to keep with the data.
        """
        work: list[Callable[[], Any]] = [
            lambda: Ids.number(user),
            lambda: Ids.number(item),
            lambda: value_column(value, len(user)),
        ]
        (users, u), (items, i), column = map_blocks(lambda do: do(), work, size=len(user))
        rough = cls(
            users,
            items,
            frozen(u),
            frozen(i),
            frozen(column),
            time,
            dict(tags or {}),
            value is None,
            notes,
        )
        return rough.in_order(choose("duplicates", duplicates, DUPLICATES))

    def __repr__(self) -> str:
        kind = "implicit" if self.implicit else "explicit"
        return (
            f"Ratings({len(self):,} {kind}, {counted(len(self.users), 'user')}, "
            f"{counted(len(self.items), 'item')})"
        )

    @cached_property
    def start(self) -> I64:
        """Where each user's rows start; one more entry for the end."""
        from unskew.data import kernels

        result: I64 = frozen(kernels.group_starts(self.user, len(self.users))[0])
        return result

    @cached_property
    def fingerprint(self) -> str:
        """A digest of ids and values that is equal for equal ratings in any row order."""
        from unskew.data import kernels

        digest = hashlib.blake2b(digest_size=16)
        for ids in (self.users, self.items):
            digest.update(ids.kind.encode())
            text = ids.kind == "text"
            digest.update("\x1f".join(ids.values).encode() if text else ids.values.to_numpy().data)
        bits = frozen(self.value.view(np.int64))
        # Blocks of fixed size, so that threads do not matter.
        step = 1 << 20

        def mix(low: int) -> int:
            rows = slice(low, low + step)
            return kernels.digest(self.user[rows], self.item[rows], bits[rows])

        for part in map_blocks(mix, range(0, len(self), step), size=len(self)):
            digest.update(part.to_bytes(8, "little"))
        return digest.hexdigest()

    def recode(self, users: Ids, user_table: I32, items: Ids, item_table: I32) -> Ratings:
        """Return the same ratings under a larger common numbering."""
        same_users = users.equals(self.users)
        same_items = items.equals(self.items)
        if same_users and same_items:
            return self
        u = self.user if same_users else recoded(self.user, user_table)
        i = self.item if same_items else recoded(self.item, item_table)
        result = replace(self, users=users, items=items, user=frozen(u), item=frozen(i))
        rising = np.all(np.diff(user_table) > 0) and np.all(np.diff(item_table) > 0)
        return result if rising else result.in_order("first")

    def to_polars(self) -> pl.DataFrame:
        """Return the ratings with raw ids as a polars frame."""
        columns = {
            "user": self.users.raw(self.user),
            "item": self.items.raw(self.item),
            "rating": pl.Series(self.value),
        }
        if self.time is not None:
            columns["time"] = pl.Series(self.time).cast(pl.Datetime("us"))
        return pl.DataFrame({**columns, **self.tags})

    def to_file_table(self) -> pl.DataFrame:
        """Return `to_polars` as files have it: implicit feedback has no rating, or counts."""
        frame = self.to_polars()
        if not self.implicit:
            return frame
        if bool((self.value == 1).all()):
            return frame.drop("rating")
        are_counts = bool((self.value == np.round(self.value)).all() and (self.value >= 1).all())
        return frame.rename({"rating": COUNT if are_counts else WEIGHT})

    def to_csv(self, path: str | os.PathLike[str]) -> None:
        """Write user, item, rating and what else there is as CSV; formulas as `Run.to_csv`."""
        write_table(self.to_file_table(), path, "csv")

    def to_parquet(self, path: str | os.PathLike[str]) -> None:
        """Write user, item, rating and what else there is as Parquet."""
        write_table(self.to_file_table(), path, "parquet")

    def to_qrels(self, path: str | os.PathLike[str]) -> None:
        """Write TREC qrels: `user 0 item grade`; grades must be whole numbers, as TREC has them."""
        odd = (self.value != np.round(self.value)) | (np.abs(self.value) > _WHOLE)
        if odd.any():
            row = int(np.argmax(odd))
            raise DataError(
                f"TREC grades are whole numbers up to 2**53, but row {row + 1} has "
                f"{self.value[row]:g}; write CSV, or round the ratings first"
            )
        frame = self.to_polars().select(
            "user", pl.lit(0).alias("0"), "item", pl.col("rating").cast(pl.Int64)
        )
        write_trec(frame, path)

    def to_pandas(self) -> Any:
        """Return the ratings with raw ids as a pandas frame (pandas must be installed)."""
        return as_pandas(self.to_polars())

    def to_csr(self) -> Any:
        """Return a scipy matrix of users x items (scipy must be installed), for other libraries.

        Rows and columns are in the order of `users` and `items`; a rating of 0 is stored.
        """
        from scipy.sparse import csr_matrix

        shape = (len(self.users), len(self.items))
        return csr_matrix((self.value.copy(), self.item.copy(), self.start.copy()), shape=shape)

    def in_order(self, duplicates: str) -> Ratings:
        """Return the rows sorted by user and item, with duplicates settled as in `of`."""
        from unskew.data import kernels

        if duplicates == "count":
            ones = replace(self, value=frozen(np.ones(len(self))), implicit=True)
            return ones.in_order("sum")

        start, grouped = kernels.group_starts(self.user, len(self.users))
        ready = self if grouped else self.take(grouped_order(self.user, start))
        ready, clean = ready._sorted_within(frozen(start))
        count, example = (0, -1) if clean else kernels.repeated(frozen(start), ready.item)
        if not count:
            ready.__dict__["start"] = frozen(start)  # known already
            return ready
        if duplicates == "error":
            pair = (
                f"user {self.users.values[int(ready.user[example])]!r}, "
                f"item {self.items.values[int(ready.item[example])]!r}"
            )
            raise DataError(
                f"{counted(count, 'user-item pair occurs', 'user-item pairs occur')} more than "
                f"once, the first: {pair}; choose what to keep with ",
                Spelling(
                    "duplicates='first', 'last', 'mean', 'sum' or 'max'",
                    "--duplicates first, last, mean, sum or max",
                ),
                "; events are counted with ",
                Spelling("duplicates='count'", "--duplicates count"),
                ", and a log is split by time with ",
                Spelling("read_events", "unskew split --event-log or unskew timeline --event-log"),
            )
        return ready._merge(duplicates, count)

    def _sorted_within(self, start: I64) -> tuple[Ratings, bool]:
        """Sort rows, grouped by user, by item as well; tell whether no pair is known to repeat."""
        from unskew.data import kernels

        if kernels.is_sorted(start, self.item):
            return self, False
        if does_numpy_sort(len(self)):
            return self.take(np.lexsort((self.item, self.user))), False
        item, value = np.empty_like(self.item), np.empty_like(self.value)
        more = self.time is not None or bool(self.tags)
        order = np.empty(len(self) if more else 0, np.int64)
        groups = start.size - 1

        def sort(low: int) -> int:
            high = min(low + GROUPS_PER_TASK, groups)
            return kernels.sort_items(
                start=start,
                item=self.item,
                value=self.value,
                lo=low,
                hi=high,
                items=item,
                values=value,
                order=order,
            )

        repeats = map_blocks(sort, range(0, groups, GROUPS_PER_TASK), size=len(self))
        result = self.take(order) if more else self
        sorted_ = replace(result, user=self.user, item=frozen(item), value=frozen(value))
        return sorted_, not any(repeats)

    def _merge(self, duplicates: str, count: int) -> Ratings:
        """Keep one row per user and item."""
        from unskew.data import kernels

        first = run_starts(self.user, self.item)[:-1]
        last = np.append(first[1:], len(self)) - 1
        note = f"{counted(count, 'duplicate user-item pair')}: kept the {duplicates}"
        merged = self.take(last if duplicates == "last" else first)
        if duplicates in ("mean", "sum", "max"):
            value = kernels.merged_values(frozen(first), self.value, duplicates == "max")
            if duplicates == "mean":
                value = value / (last - first + 1)
            merged = replace(merged, value=frozen(value))
        return replace(merged, notes=(*self.notes, note))


def under_one_numbering(*parts: Any) -> list[Any]:
    """Return ratings and event logs from several sources under common ids."""
    users, user_tables = Ids.union(*(part.users for part in parts))
    items, item_tables = Ids.union(*(part.items for part in parts))
    tables = zip(parts, user_tables, item_tables, strict=True)
    return [part.recode(users, u, items, i) for part, u, i in tables]


def write_trec(frame: pl.DataFrame, path: str | os.PathLike[str]) -> None:
    """Write columns as TREC files have them, separated by blanks."""
    for name in ("user", "item"):
        if frame[name].dtype == pl.String and frame[name].str.contains(r"\s").any():
            raise DataError(f"a TREC file cannot hold {name} ids with white space; use CSV")
    write_table(frame, path, "trec")


def recoded(codes: I32, table: I32) -> I32:
    """Give every code its new number; -1 stays."""
    from unskew.data import kernels

    result = np.empty(codes.size, np.int32)
    kernels.recode(frozen(codes), frozen(table), result)
    return result


def value_column(value: pl.Series | None, rows: int) -> F64:
    """Return values as floats; refuse what is missing, not a number or infinite."""
    if value is None:
        return np.ones(rows)
    if not (value.dtype.is_numeric() or value.dtype == pl.Boolean):
        raise DataError(
            f"column {value.name!r}: ratings must be numbers, got {value.dtype} such as "
            f"{value[0]!r}"
        )
    floats = value if value.dtype == pl.Float64 else value.cast(pl.Float64)
    missing = int(floats.null_count())
    column = floats.fill_null(float("nan")).to_numpy() if missing else floats.to_numpy()
    finite = np.isfinite(column)
    if not finite.all():
        row = int(np.argmin(finite))
        raise DataError(
            f"column {value.name!r}: {counted(int((~finite).sum()), 'rating is', 'ratings are')} "
            f"missing, NaN or infinite, the first in row {row + 1}; remove these rows"
        )
    large = np.abs(column) > LARGEST
    if large.any():
        row = int(np.argmax(large))
        raise DataError(
            f"column {value.name!r}: {counted(int(large.sum()), 'rating is', 'ratings are')} "
            f"beyond ±{LARGEST:g}, the first in row {row + 1}: {column[row]:g}; remove these "
            "rows, or divide all ratings by the same number"
        )
    return column
