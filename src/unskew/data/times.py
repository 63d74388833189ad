"""Time stamps: ISO text, dates, or numbers whose size tells their unit."""

from __future__ import annotations

import math
import re
from datetime import UTC, datetime, timedelta

import numpy as np
import polars as pl

from unskew.arrays import F64, I64
from unskew.data.read.tables import DataTable, naming
from unskew.errors import DataError, SettingError
from unskew.report.text import counted

# Units of time stamps: the name, microseconds in one, and the numbers that are told by their size.
# Seconds since 1970 stay below 1e11 until the year 5138; below 1e8 a number fits any unit.
UNITS = (
    ("seconds", 1e6, 1e8, 1e11),
    ("milliseconds", 1e3, 1e11, 1e14),
    ("microseconds", 1.0, 1e14, 1e17),
    ("nanoseconds", 1e-3, 1e17, 1e20),
)
_LATEST = 1e17  # microseconds
_ZONE = r"\d(?:[Zz]|[+-]\d{2}:?\d{2})$"
_WEEKDAY = "%a %b %d %H:%M:%S %z %Y"
"""How Goodreads and Twitter write times: Fri Nov 10 15:06:00 -0800 2017."""
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
# Units of durations: the shortest first. A month has no fixed length.
_LENGTHS = {
    "us": 1,
    "ms": 1_000,
    "s": 1_000_000,
    "min": 60_000_000,
    "h": 3_600_000_000,
    "d": 86_400_000_000,
    "w": 604_800_000_000,
}
_DURATION = re.compile(r"\s*([0-9]*\.?[0-9]+)\s*([a-z]+)?\s*")


def time_column(table: DataTable, name: str) -> tuple[I64, str]:
    """Return time stamps as microseconds since 1970, and in words what they were taken for.

    Numbers are seconds, milli-, micro- or nanoseconds by their size; text is ISO 8601.
    """
    column = table.frame[name]
    if column.null_count():
        row = int(column.is_null().arg_true()[0])
        raise DataError(
            f"{table.source}: {counted(column.null_count(), 'time stamp is', 'time stamps are')} "
            f"missing in column {name!r}, the first in row {row + 1}"
        )
    with naming(f"{table.source}: column {name!r}"):
        stamps, unit = _stamps(column)
    days = stamps[[stamps.argmin(), stamps.argmax()]].astype("datetime64[us]").astype("M8[D]")
    return stamps, f"{unit}, {days[0]} to {days[1]}"


def _stamps(column: pl.Series) -> tuple[I64, str]:
    kind = column.dtype
    numbers = column
    if kind == pl.String:
        numbers = column.cast(pl.Float64, strict=False)
        if numbers.null_count():
            return _parsed(column), _iso_words(column)
    elif kind in (pl.Date, pl.Datetime):
        factor = 86_400e6 if kind == pl.Date else {"ms": 1e3, "us": 1.0, "ns": 1e-3}[kind.time_unit]  # type: ignore[attr-defined]
        physical = column.to_physical()
        _refuse_distant(physical, physical.to_numpy() * factor)
        moments = column.cast(pl.Datetime("us")).dt.timestamp("us").to_numpy()
        zone = getattr(kind, "time_zone", None)
        words = "dates with time" if zone is None else f"dates with time of {zone}, turned into UTC"
        return moments, "dates" if kind == pl.Date else words
    elif not kind.is_numeric():
        raise DataError(f"time stamps must be numbers, ISO dates as text, or dates, got {kind}")
    values = numbers.cast(pl.Float64).to_numpy()
    unit, factor = _unit_of(column, values)
    return microseconds(values, factor), f"{unit} since 1970"


def _parsed(column: pl.Series) -> I64:
    parsed = column.str.to_datetime(time_unit="us", time_zone="UTC", strict=False)
    if _is_weekdays(column):
        parsed = column.str.to_datetime(_WEEKDAY, time_unit="us", strict=False)
    if parsed.null_count():
        zoned = column.str.contains(_ZONE)
        if zoned.any() and not zoned.all():
            row = int((zoned != zoned[0]).arg_true()[0])
            raise DataError(
                f"some time stamps name a time zone and others do not: row 1 has {column[0]!r}, "
                f"row {row + 1} has {column[row]!r}; write all in one way"
            )
        unread = parsed.is_null() & column.cast(pl.Float64, strict=False).is_null()
        if not unread.any():
            first = (int(part.arg_true()[0]) for part in (parsed.is_null(), ~parsed.is_null()))
            examples = (f"row {row + 1} has {column[row]!r}" for row in first)
            raise DataError(
                f"some time stamps are numbers and others ISO dates: {', '.join(examples)}; write "
                "all in one way"
            )
        row = int(unread.arg_true()[0])
        singular, plural = (
            "is neither a number nor an ISO date",
            "are neither numbers nor ISO dates",
        )
        raise DataError(
            f"{counted(int(unread.sum()), f'time stamp {singular}', f'time stamps {plural}')}, "
            f"the first in row {row + 1}: {column[row]!r}"
        )
    return parsed.dt.timestamp("us").to_numpy()


def _is_weekdays(column: pl.Series) -> bool:
    return bool(column.str.contains(r"^(Mon|Tue|Wed|Thu|Fri|Sat|Sun) \w{3} ").all())


def _iso_words(column: pl.Series) -> str:
    """Say what was done about time zones: dates that name one are turned into UTC."""
    if _is_weekdays(column):
        return "dates such as 'Fri Nov 10 15:06:00 -0800 2017', turned into UTC"
    zoned = bool(column.str.contains(_ZONE)[0])  # those that differ were not read
    return "ISO dates with a time zone, turned into UTC" if zoned else "ISO dates, taken as UTC"


def _unit_of(column: pl.Series, values: F64) -> tuple[str, float]:
    """Return the unit of time stamps and the microseconds in one; refuse several units at once."""
    size = np.abs(values)
    _refuse_distant(column, np.where(size < UNITS[-1][-1], 0.0, np.inf))
    of_unit = {unit: np.flatnonzero((size >= low) & (size < high)) for unit, _, low, high in UNITS}
    seen = {unit: rows for unit, rows in of_unit.items() if rows.size}
    if len(seen) > 1:
        cases = [
            f"{rows.size:,} look like {unit} (the first is row {rows[0] + 1:,}: "
            f"{column[int(rows[0])]})"
            for unit, rows in seen.items()
        ]
        raise DataError(
            f"the time stamps are in several units: {' and '.join(cases)}; write all in one unit"
        )
    factors = {unit: factor for unit, factor, _, _ in UNITS}
    unit = next(iter(seen), UNITS[0][0])
    return unit, factors[unit]


def _refuse_distant(column: pl.Series, moments: F64) -> None:
    """Refuse time stamps (here in microseconds) that are NaN, infinite or far beyond any date."""
    bad = ~(np.abs(moments) < _LATEST)
    if bad.any():
        row = int(bad.argmax())
        raise DataError(
            f"{counted(int(bad.sum()), 'time stamp is not a date', 'time stamps are not dates')} "
            f"before the year 5138, the first in row {row + 1}: {column[row]}"
        )


def microseconds(values: F64, factor: float) -> I64:
    """Return times as whole microseconds; `factor` is the microseconds in one unit."""
    moments = values * factor
    _refuse_distant(pl.Series(values), moments)
    return np.rint(moments).astype(np.int64)


def written(micros: int) -> str:
    """Write a moment as ISO text."""
    return str(np.datetime64(micros, "us")).removesuffix(".000000")


def moment(value: str | datetime | float, name: str = "at") -> int:
    """Return a moment as microseconds since 1970."""
    read = _read_moment(value) if isinstance(value, str) else value
    if isinstance(read, datetime):
        aware = read if read.tzinfo is not None else read.replace(tzinfo=UTC)
        return (aware - _EPOCH) // timedelta(microseconds=1)
    if read is None or not math.isfinite(read):
        raise SettingError(
            f"{name} must be an ISO date such as '2003-01-01' or '2003-01-01T12:00:00', a datetime "
            f"or seconds since 1970; got {value if read is None else read!r}"
        )
    return round(read * 1_000_000)


def _read_moment(text: str) -> datetime | float | None:
    """Read a date or a number; None where text is neither."""
    for read in (datetime.fromisoformat, float):
        try:
            return read(text)
        except ValueError:
            continue
    return None


def duration(value: str | float, name: str = "length", *, zero: bool = False) -> int:
    """Return a duration as microseconds: text such as `7d`, `12h`, `30min`, `1w`, or seconds.

    Parameters
    ----------
    value
        Text with a unit (us, ms, s, min, h, d, w), or a number of seconds.
    name
        What it is the duration of, for messages.
    zero
        Whether no time at all is allowed.

    Examples
    --------
    >>> from unskew.data.times import duration
    >>> duration("1.5h"), duration(2)
    (5400000000, 2000000)
    """
    micros = math.nan
    if isinstance(value, str):
        read = _DURATION.fullmatch(value.lower())
        if read is not None and (read[2] or "s") in _LENGTHS:
            micros = float(read[1]) * _LENGTHS[read[2] or "s"]
    elif isinstance(value, int | float) and not isinstance(value, bool):
        micros = float(value) * 1e6
    if not abs(micros) < _LATEST or micros < 0 or (round(micros) == 0 and not zero):
        minimum = "0 or more" if zero else "more than 0"
        raise SettingError(
            f"{name} must be a duration of {minimum}, such as '7d', '12h', '30min' or '1w' (units: "
            f"{', '.join(_LENGTHS)}), or a number of seconds; got {value!r}"
        )
    return round(micros)


def lasting(micros: int) -> str:
    """Write a duration in the largest unit that it is a whole number of.

    Examples
    --------
    >>> from unskew.data.times import lasting
    >>> lasting(86_400_000_000), lasting(5_400_000_000), lasting(0)
    ('1d', '90min', '0s')
    """
    if not micros:
        return "0s"
    name, size = next(pair for pair in reversed(_LENGTHS.items()) if micros % pair[1] == 0)
    if name == "w" and micros // size < 2:
        name, size = "d", _LENGTHS["d"]  # a week is better known as 7 days
    return f"{micros // size}{name}"
