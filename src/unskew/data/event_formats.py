"""Official formats of logs of events that are too large to hold: read lazily, counted by pair."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import partial, reduce
from pathlib import Path

import polars as pl

from unskew.checks import choose
from unskew.data.format_files import Files
from unskew.data.parts import Parts
from unskew.data.ratings import Ratings
from unskew.data.user_samples import as_user_share, sample_note, sampled
from unskew.engine.files import reading
from unskew.engine.folders import local_path
from unskew.errors import DataError
from unskew.report.text import counted

SIGNALS = ("explicit", "listens")
LISTENED = 50.0
"""Percent of a track: its authors take a track as listened to from here on."""
MOST_EVENTS = 150_000_000
"""Events that are counted at a time; more are refused, with the share of users that fits."""
PAIR = ["uid", "item_id"]
USER = pl.col("uid").cast(pl.Int64)
"""Files may differ in the size of their numbers."""
EVENT = (*PAIR, "timestamp", "is_organic")
PLAYED = "played_ratio_pct"
LATEST = 10**11
"""Seconds: no event is so late."""
TIMES = (
    "time stamps are seconds since the first event, in steps of 5 s; its date is not published, so "
    "dates start in 1970"
)


def yambda(
    likes: Files,
    dislikes: Files,
    unlikes: Files,
    undislikes: Files,
    *,
    signal: str = "explicit",
    share: float | str = 1.0,
) -> Parts:
    """Read the flat files of Yambda: a rating per user and track, with the tag `organic`.

    `organic` tells whether the user came to the track alone (True) or by a recommendation (False):
    at the like or dislike that counts, or at the first time that the track was played.

    Parameters
    ----------
    likes, dislikes, unlikes, undislikes
        The files of a size, in one folder.
    signal
        `explicit`: 1 for a track among the user's favourites, 0 for one that the user does not want
        to hear again, where the last word counts. `listens`: the largest share of the track that
        was played at one time, in percent, of `listens.parquet` in the same folder; the tag `plays`
        counts the times.
    share
        Keep this share of the users, drawn by a hash of their ids; the same ones in every file and
        in every size in which they occur.
    """
    choose("signal", signal, SIGNALS)
    part = as_user_share(share)
    if signal == "listens":
        return _listened(likes[0].with_name("listens.parquet"), part)
    paths = {"like": likes[0], "dislike": dislikes[0], "unlike": unlikes[0]}
    return _said({**paths, "undislike": undislikes[0]}, part)


@dataclass(frozen=True, eq=False)
class _Sample:
    """The users that are kept."""

    kept: pl.Series | None
    """Their ids; None: all."""
    notes: tuple[str, ...] = ()

    @classmethod
    def of(cls, paths: Sequence[Path], share: Fraction) -> _Sample:
        if share == 1:
            return cls(None)
        ids = [_collected(path, _scan(path, EVENT).select(USER).unique()) for path in paths]
        users = pl.concat(ids)["uid"].drop_nulls().unique().sort()
        kept = users.filter(pl.Series(sampled(users, share)))
        return cls(kept, (sample_note(len(kept), len(users), share),))

    def events(self, path: Path, columns: Sequence[str]) -> pl.LazyFrame:
        """Return the events of these users."""
        events = _scan(path, columns)
        return events if self.kept is None else events.filter(USER.is_in(self.kept.implode()))


def _scan(path: Path, columns: Sequence[str]) -> pl.LazyFrame:
    """Return some columns of a flat file; refuse files that are not as they should be."""
    with reading(path):
        schema = pl.scan_parquet(local_path(path), glob=False).collect_schema()
    for name in columns:
        if name not in schema:
            raise DataError(
                f"{path}: no column {name!r} but {', '.join(schema)}; expected a flat file of "
                f"Yambda with {', '.join(columns)}, not a sequential one"
            )
        if not schema[name].is_integer():
            raise DataError(
                f"{path}: column {name!r} holds {schema[name]}, expected whole numbers as in the "
                "flat files of Yambda"
            )
    return pl.scan_parquet(local_path(path), glob=False).select(columns)


def _collected(path: Path, lazy: pl.LazyFrame) -> pl.DataFrame:
    with reading(path):
        return lazy.collect(engine="streaming")


def _check_amount(path: Path, share: Fraction) -> int:
    """Refuse more events than fit, before any is read; return how many there are."""
    rows = int(_collected(path, _scan(path, EVENT).select(pl.len())).item())
    if rows * share > MOST_EVENTS:
        digit = 10 ** math.floor(math.log10(MOST_EVENTS / rows))
        fits = math.floor(MOST_EVENTS / rows / digit) * digit
        raise DataError(
            f"{path}: {rows:,} events, but at most {MOST_EVENTS:,} are counted: keep a share of "
            f"the users, such as share={fits:.1g}"
        )
    return rows


def _by_pair(path: Path, events: pl.LazyFrame, aggregates: Mapping[str, pl.Expr]) -> pl.DataFrame:
    """Return a row per user and track; refuse events with something missing or impossible."""
    table = _collected(
        path,
        events.group_by(PAIR)
        .agg(
            *(expression.alias(name) for name, expression in aggregates.items()),
            _is_wrong(EVENT[2:]).any().alias("wrong"),
        )
        .with_columns(pl.col(PAIR).cast(pl.Int64)),
    )
    missing = pl.any_horizontal(pl.col(name).is_null() for name in PAIR)
    if table.select((missing | pl.col("wrong")).any()).item():
        raise _bad_event(path)
    return table.drop("wrong")


def _is_wrong(columns: Sequence[str]) -> pl.Expr:
    """Tell whether something is missing in an event, or impossible."""
    return (
        pl.any_horizontal(pl.col(name).is_null() for name in columns)
        | ~pl.col("is_organic").is_between(0, 1)
        | ~pl.col("timestamp").is_between(0, LATEST)
    )


def _bad_event(path: Path) -> DataError:
    """Say which event of a file is the first that cannot be taken."""
    first = _scan(path, EVENT).with_row_index("row").filter(_is_wrong(EVENT)).head(1)
    row = _collected(path, first).row(0, named=True)
    shown = ", ".join(f"{name} = {row[name]}" for name in EVENT)
    return DataError(
        f"{path}: row {row['row'] + 1} cannot be read: {shown}; expected whole numbers, a "
        "timestamp in seconds, and is_organic 0 or 1"
    )


def _said(paths: Mapping[str, Path], share: Fraction) -> Parts:
    """Return likes and dislikes that were not taken back."""
    sample = _Sample.of(list(paths.values()), share)
    # The last event of a kind, and whether it was organic, in one number.
    code = 2 * pl.col("timestamp").cast(pl.Int64) + pl.col("is_organic").cast(pl.Int64)
    notes = [
        f"{path.name}: {counted(_check_amount(path, share), 'event')}" for path in paths.values()
    ]
    tables = [
        _by_pair(path, sample.events(path, EVENT), {kind: code.max()})
        for kind, path in paths.items()
    ]
    state = reduce(partial(pl.DataFrame.join, on=PAIR, how="full", coalesce=True), tables)
    state = state.with_columns(
        liked=_stands("like", "unlike"),
        disliked=_stands("dislike", "undislike"),
        like_at=pl.col("like").fill_null(-2) // 2,
        dislike_at=pl.col("dislike").fill_null(-2) // 2,
    )
    both = pl.col("liked") & pl.col("disliked")
    value = (
        pl.when(both & (pl.col("like_at") == pl.col("dislike_at")))
        .then(None)
        .when(pl.col("liked") & (~pl.col("disliked") | (pl.col("like_at") > pl.col("dislike_at"))))
        .then(1.0)
        .when(pl.col("disliked"))
        .then(0.0)
    )
    state = state.with_columns(value=value)
    kept = state.drop_nulls("value")
    if not kept.height:
        raise DataError(f"{paths['like'].parent}: no like or dislike that was not taken back")
    out = state.height - kept.height
    notes.append(
        f"{counted(out, 'pair')} of user and track left out: taken back, taken back without a like "
        "or dislike in these files, or liked and disliked within 5 s"
    )
    told = kept.select(
        *PAIR,
        "value",
        pl.when(pl.col("value") == 1).then("like").otherwise("dislike").alias("code"),
    )
    ratings = _rated(told, told["value"])
    return Parts(ratings, notes=(*notes, *sample.notes, TIMES), liked=1.0, scale=(0.0, 1.0))


def _stands(kind: str, cancel: str) -> pl.Expr:
    """Tell whether an event was not taken back; within the same 5 s, it was."""
    at, back = pl.col(kind) // 2, pl.col(cancel).fill_null(-2) // 2
    return (at > back).fill_null(value=False)


def _listened(path: Path, share: Fraction) -> Parts:
    """Return how much of each track was played, at most, at one time."""
    if not path.is_file():
        raise DataError(
            f"{path}: no such file; signal=listens needs it beside likes.parquet: download it from "
            "the same folder of the data set"
        )
    sample = _Sample.of([path], share)
    rows = _check_amount(path, share)
    # The first event, and whether it was organic, in one number; of two at once, the organic one.
    code = 2 * pl.col("timestamp").cast(pl.Int64) + (1 - pl.col("is_organic").cast(pl.Int64))
    aggregates = {"code": code.min(), "played": pl.col(PLAYED).max(), "plays": pl.len()}
    table = _by_pair(path, sample.events(path, (*EVENT, PLAYED)), aggregates)
    known = table.drop_nulls("played")
    if not known.height:
        raise DataError(f"{path}: no event with a value of {PLAYED}")
    notes = [
        f"{path.name}: {counted(rows, 'event')}; the rating is the largest share of the track that "
        "was played at one time, in percent"
    ]
    if known.height < table.height:
        left = table.height - known.height
        notes.append(f"{path.name}: {counted(left, 'pair')} without {PLAYED} left out")
    flipped = known.with_columns(code=pl.col("code") // 2 * 2 + 1 - pl.col("code") % 2)
    ratings = _rated(flipped, flipped["played"], {"plays": flipped["plays"].cast(pl.Int64)})
    return Parts(ratings, notes=(*notes, *sample.notes, TIMES), liked=LISTENED)


def _rated(
    table: pl.DataFrame, value: pl.Series, tags: Mapping[str, pl.Series] | None = None
) -> Ratings:
    """Make ratings of pairs, with the time and the flag that `code` holds."""
    seconds = (table["code"] // 2).to_numpy()
    organic = (table["code"] % 2 == 1).alias("organic")
    return Ratings.of(
        table["uid"],
        table["item_id"],
        value.cast(pl.Float64),
        seconds * 1_000_000,
        tags={"organic": organic, **(tags or {})},
    )
