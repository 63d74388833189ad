"""Official formats of logs with a part that was shown at random, or to everyone."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import polars as pl

from unskew.checks import choose
from unskew.data.format_files import Files, check_rows, csv_columns, read_text_table
from unskew.data.parts import Parts
from unskew.data.ratings import Ratings, value_column
from unskew.data.tables import naming
from unskew.data.times import microseconds
from unskew.errors import DataError
from unskew.report.text import counted

SIGNALS = (
    "is_click",
    "is_like",
    "is_follow",
    "is_comment",
    "is_forward",
    "is_profile_enter",
    "long_view",
)
IS_RANDOM = "is_rand"
"""The column of KuaiRand that says whether a video was shown at random."""
SECOND, MILLISECOND = 1e6, 1e3
"""Units of time stamps, in microseconds."""


def kuairec(big: Files, small: Files, *, duplicates: str = "first") -> Parts:
    """Read the big matrix, and the small one, which is (almost) fully observed.

    Parameters
    ----------
    big, small
        `big_matrix.csv` and `small_matrix.csv`; the rating is `watch_ratio`.
    duplicates
        Which showing of a video counts when there are several: see `read_ratings`.
    """
    names = {"user": "user_id", "item": "video_id", "rating": "watch_ratio", "time": "timestamp"}
    observed, every = (
        _ratings(_joined([_rows(path, names, SECOND) for path in paths]), paths, SECOND, duplicates)
        for paths in (big, small)
    )
    pairs = len(every.users) * len(every.items)
    note = (
        f"{small[0].name}: {len(every):,} of the {pairs:,} pairs of its "
        f"{counted(len(every.users), 'user')} and {counted(len(every.items), 'video')} are judged"
    )
    return Parts(observed, every, notes=(note,)).over_same_ids()


def kuairand(
    standard: Files, random: Files, *, signal: str = "is_click", duplicates: str = "max"
) -> Parts:
    """Read the logs of the usual recommendations, and of videos that were shown at random.

    Which part a row belongs to is what its column `is_rand` says, whatever the file; without the
    column, the file decides.

    Parameters
    ----------
    standard, random
        `log_standard_*.csv` and `log_random_*.csv`.
    signal
        What counts as the rating (0 or 1): `is_click`, `is_like`, `is_follow`, `is_comment`,
        `is_forward`, `is_profile_enter` or `long_view`.
    duplicates
        What counts when a video was shown several times: see `read_ratings`.
    """
    choose("signal", signal, SIGNALS)
    names = {"user": "user_id", "item": "video_id", "rating": signal, "time": "time_ms"}
    notes: list[str] = []
    logs = [
        _marked(path, names, is_random, notes)
        for paths, is_random in ((standard, False), (random, True))
        for path in paths
    ]
    every = _joined(logs)
    usual, drawn = (
        _ratings(every.filter(pl.col(IS_RANDOM) == drawn), paths, MILLISECOND, duplicates)
        for paths, drawn in ((standard, False), (random, True))
    )
    return Parts(usual, drawn, notes=tuple(notes)).over_same_ids()


def _marked(
    path: Path, names: Mapping[str, str], is_random: bool, notes: list[str]
) -> pl.DataFrame:
    """Read a log of KuaiRand with a column that says what was shown at random."""
    if IS_RANDOM not in read_text_table(path, n_rows=1).columns:
        notes.append(
            f"{path.name}: no column {IS_RANDOM!r}: its name says what was shown at random"
        )
        log = _rows(path, names, MILLISECOND)
        return log.with_columns(pl.lit(is_random).alias(IS_RANDOM))
    log = _rows(path, {**names, IS_RANDOM: IS_RANDOM}, MILLISECOND)
    odd = ~log[IS_RANDOM].is_in([0.0, 1.0])
    if odd.any():
        row = int(odd.arg_true()[0])
        raise DataError(
            f"{path}: {IS_RANDOM} must be 0 or 1, but row {row + 1} has {log[IS_RANDOM][row]:g}"
        )
    log = log.with_columns(pl.col(IS_RANDOM) == 1)
    moved = int((log[IS_RANDOM] != is_random).sum())
    if moved:
        part = "the observed part" if is_random else "the random part"
        notes.append(
            f"{path.name}: {counted(moved, 'row has', 'rows have')} {IS_RANDOM} = "
            f"{int(not is_random)}: taken into {part}"
        )
    return log


def _rows(path: Path, names: Mapping[str, str], unit: float) -> pl.DataFrame:
    """Read the columns of a log as numbers; only a time stamp may be missing."""
    # Ids as text: `1e5` is no id, but a number like any other where a column is read as numbers.
    raw = csv_columns(path, names, text=("user", "item"))
    typed = raw.select(
        raw[name].cast(pl.Int64 if name in ("user", "item") else pl.Float64, strict=False)
        for name in names
    )
    time = pl.when(raw["time"].is_null()).then(0.0).otherwise(typed["time"])
    needed = typed.with_columns(time.alias("time"))
    check_rows(path, needed, raw, f"numbers in {', '.join(names.values())}")
    with naming(str(path)):
        value_column(typed["rating"].alias(names["rating"]), typed.height)
        microseconds(needed["time"].to_numpy(), unit)
    return typed


def _joined(logs: Sequence[pl.DataFrame]) -> pl.DataFrame:
    """Put the files of a log together, earliest first."""
    return pl.concat(logs).sort("time", nulls_last=True, maintain_order=True)


def _ratings(log: pl.DataFrame, files: Files, unit: float, duplicates: str) -> Ratings:
    """Make ratings of a log; time stamps that are missing for some rows are given up."""
    if not log.height:
        raise DataError(f"{files[0].parent}: no rows for the part of {files[0].name}")
    missing = log["time"].null_count()
    time, notes = None, []
    if missing:
        notes.append(
            f"{files[0].name}: {counted(missing, 'row has', 'rows have')} no time stamp: read "
            "without times"
        )
    else:
        time = microseconds(log["time"].to_numpy(), unit)
    return Ratings.of(
        log["user"],
        log["item"],
        log["rating"],
        time,
        duplicates=duplicates,
        notes=tuple(notes),
    )
