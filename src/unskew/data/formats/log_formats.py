"""Readers of logs and of pooled judgments: Yambda, KuaiRec, KuaiRand, MovieLens 32M ext."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from fractions import Fraction
from functools import partial, reduce
from pathlib import Path

import polars as pl

from unskew.checks import choose
from unskew.data.formats.parts import (
    Files,
    Parts,
    as_user_share,
    csv_columns,
    csv_table,
    of_sampled_users,
    read_text_table,
    sample_note,
    sampled,
    times_or_none,
)
from unskew.data.ratings import Ratings, value_column
from unskew.data.read.dataset_files import check_rows
from unskew.data.read.ratings_files import read_ratings
from unskew.data.read.tables import naming
from unskew.data.times import microseconds
from unskew.engine.files import local_path, reading
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


def _sampled_users(
    paths: Sequence[Path], share: Fraction
) -> tuple[pl.Series | None, tuple[str, ...]]:
    """Return the ids of the users that are kept, None for all, and a note."""
    if share == 1:
        return None, ()
    ids = [_collected(path, _scan(path, EVENT).select(USER).unique()) for path in paths]
    users = pl.concat(ids)["uid"].drop_nulls().unique().sort()
    chosen = users.filter(pl.Series(sampled(users, share)))
    return chosen, (sample_note(len(chosen), len(users), share),)


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


def _by_pair(
    path: Path, users: pl.Series | None, further: Sequence[str], aggregates: Mapping[str, pl.Expr]
) -> pl.DataFrame:
    """Return a row per track of these users; refuse events with something missing or impossible."""
    events = _scan(path, (*EVENT, *further))
    if users is not None:
        events = events.filter(USER.is_in(users.implode()))
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
    cells = ", ".join(f"{name} = {row[name]}" for name in EVENT)
    return DataError(
        f"{path}: row {row['row'] + 1} cannot be read: {cells}; expected whole numbers, a "
        "timestamp in seconds, and is_organic 0 or 1"
    )


def _said(paths: Mapping[str, Path], share: Fraction) -> Parts:
    """Return likes and dislikes that were not taken back."""
    users, sample_notes = _sampled_users(list(paths.values()), share)
    # The last event of a kind, and whether it was organic, in one number.
    code = 2 * pl.col("timestamp").cast(pl.Int64) + pl.col("is_organic").cast(pl.Int64)
    notes = [
        f"{path.name}: {counted(_check_amount(path, share), 'event')}" for path in paths.values()
    ]
    tables = [_by_pair(path, users, (), {kind: code.max()}) for kind, path in paths.items()]
    state = reduce(partial(pl.DataFrame.join, on=PAIR, how="full", coalesce=True), tables)
    state = state.with_columns(
        liked=_stands("like", "unlike"),
        disliked=_stands("dislike", "undislike"),
        like_at=pl.col("like").fill_null(-2) // 2,
        dislike_at=pl.col("dislike").fill_null(-2) // 2,
    )
    contradictory = pl.col("liked") & pl.col("disliked")
    value = (
        pl.when(contradictory & (pl.col("like_at") == pl.col("dislike_at")))
        .then(None)
        .when(pl.col("liked") & (~pl.col("disliked") | (pl.col("like_at") > pl.col("dislike_at"))))
        .then(1.0)
        .when(pl.col("disliked"))
        .then(0.0)
    )
    state = state.with_columns(value=value)
    clear = state.drop_nulls("value")
    if not clear.height:
        raise DataError(f"{paths['like'].parent}: no like or dislike that was not taken back")
    out = state.height - clear.height
    notes.append(
        f"{counted(out, 'pair')} of user and track left out: taken back, taken back without a like "
        "or dislike in these files, or liked and disliked within 5 s"
    )
    opinions = clear.select(
        *PAIR,
        "value",
        pl.when(pl.col("value") == 1).then("like").otherwise("dislike").alias("code"),
    )
    ratings = _rated(opinions, opinions["value"])
    return Parts(ratings, notes=(*notes, *sample_notes, TIMES), liked=1.0, scale=(0.0, 1.0))


def _stands(kind: str, cancel: str) -> pl.Expr:
    """Tell whether an event was not taken back; within the same 5 s, it was."""
    time, back = pl.col(kind) // 2, pl.col(cancel).fill_null(-2) // 2
    return (time > back).fill_null(value=False)


def _listened(path: Path, share: Fraction) -> Parts:
    """Return how much of each track was played, at most, at one time."""
    if not path.is_file():
        raise DataError(
            f"{path}: no such file; signal=listens needs it beside likes.parquet: download it from "
            "the same folder of the data set"
        )
    users, sample_notes = _sampled_users([path], share)
    rows = _check_amount(path, share)
    # The first event, and whether it was organic, in one number; of two at once, the organic one.
    code = 2 * pl.col("timestamp").cast(pl.Int64) + (1 - pl.col("is_organic").cast(pl.Int64))
    aggregates = {"code": code.min(), "played": pl.col(PLAYED).max(), "plays": pl.len()}
    table = _by_pair(path, users, (PLAYED,), aggregates)
    complete = table.drop_nulls("played")
    if not complete.height:
        raise DataError(f"{path}: no event with a value of {PLAYED}")
    notes = [
        f"{path.name}: {counted(rows, 'event')}; the rating is the largest share of the track that "
        "was played at one time, in percent"
    ]
    if complete.height < table.height:
        left = table.height - complete.height
        notes.append(f"{path.name}: {counted(left, 'pair')} without {PLAYED} left out")
    flipped = complete.with_columns(code=pl.col("code") // 2 * 2 + 1 - pl.col("code") % 2)
    ratings = _rated(flipped, flipped["played"], {"plays": flipped["plays"].cast(pl.Int64)})
    return Parts(ratings, notes=(*notes, *sample_notes, TIMES), liked=LISTENED)


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


KUAI_SIGNALS = (
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
    observed, judged = (
        _ratings(_joined([_rows(path, names, SECOND) for path in paths]), paths, SECOND, duplicates)
        for paths in (big, small)
    )
    pairs = len(judged.users) * len(judged.items)
    note = (
        f"{small[0].name}: {len(judged):,} of the {pairs:,} pairs of its "
        f"{counted(len(judged.users), 'user')} and {counted(len(judged.items), 'video')} are judged"
    )
    return Parts(observed, judged, notes=(note,)).over_same_ids()


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
    choose("signal", signal, KUAI_SIGNALS)
    names = {"user": "user_id", "item": "video_id", "rating": signal, "time": "time_ms"}
    notes: list[str] = []
    logs = [
        _marked(path, names, is_random, notes)
        for paths, is_random in ((standard, False), (random, True))
        for path in paths
    ]
    log = _joined(logs)
    usual, random_part = (
        _ratings(log.filter(pl.col(IS_RANDOM) == is_random), paths, MILLISECOND, duplicates)
        for paths, is_random in ((standard, False), (random, True))
    )
    return Parts(usual, random_part, notes=tuple(notes)).over_same_ids()


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
    mismatches = int((log[IS_RANDOM] != is_random).sum())
    if mismatches:
        part = "the observed part" if is_random else "the random part"
        notes.append(
            f"{path.name}: {counted(mismatches, 'row has', 'rows have')} {IS_RANDOM} = "
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
    time, notes = times_or_none(files[0].name, log["time"], unit, "row has", "rows have")
    return Ratings.of(
        log["user"], log["item"], log["rating"], time, duplicates=duplicates, notes=tuple(notes)
    )


INTEREST = (
    "Not interested",
    "Somewhat interested",
    "Interested",
    "Very interested",
    "Extremely interested",
)
"""Answers of participants to how interested they are in watching, from 0 up."""
LABELS = {"interest": (2.0, (0.0, 4.0)), "rating": (4.0, (0.5, 5.0))}
"""By what is taken of an answer: the smallest liked value, and the scale."""
SEEN = ("keep", "drop")
CHECKS = ("p1_check", "p2_check")
"""Columns that mark movies which were shown again to see whether answers are consistent."""
NEEDED = (
    "dataset_id",
    "movie_id",
    "seen_status",
    "familiarity",
    *CHECKS,
    "interest_level",
    "rating",
)


def ml_32m_ext(
    ratings: Files,
    answers: Files,
    *,
    labels: str = "interest",
    seen: str = "keep",
    share: float | str = 1.0,
) -> Parts:
    """Read the extended ratings of MovieLens 32M, and what 51 participants said of their pools.

    Parameters
    ----------
    ratings
        `explicit-ratings.csv`, as the authors' `make.sh` writes it: MovieLens 32M as they filtered
        it, and the profiles of the participants.
    answers
        `p2-ratings.csv`: a row per participant and movie.
    labels
        `interest`: how interested the participant is in watching, from 0 to 4. `rating`: the rating
        that the participant gives, or expects to give, from 0.5 to 5.
    seen
        Movies of the pool that the participant had seen: `keep` or `drop`.
    share
        Keep the ratings of this share of the other users, drawn by a hash of their ids;
        participants always stay.
    """
    choose("labels", labels, LABELS)
    choose("seen", seen, SEEN)
    part = as_user_share(share)
    (path,), (judged,) = ratings, answers
    pooled, notes = _pool(judged, labels, seen)
    observed = read_ratings(path, format="csv", feedback="explicit")
    observed, counts = of_sampled_users(observed, part, keep=pooled.users)
    liked, scale = LABELS[labels]
    absent = int((observed.users.codes(pooled.users.values) < 0).sum())
    if absent:
        people = counted(absent, "participant has", "participants have")
        raise DataError(
            f"{path}: {people} no rating here although {judged.name} names them: build the file "
            "with the make.sh of the extension, which appends their profiles"
        )
    parts = Parts(
        observed, pooled=pooled, notes=(*notes, *counts), true_liked=liked, true_scale=scale
    )
    return parts.over_same_ids()


def _pool(path: Path, labels: str, seen: str) -> tuple[Ratings, list[str]]:
    """Return the judgments of the pools, and how many rows were left out and why."""
    raw = csv_table(path, infer_schema=False)
    missing = [name for name in NEEDED if name not in raw.columns]
    if missing:
        raise DataError(
            f"{path}: no column {missing[0]!r}; expected the columns {', '.join(NEEDED)}"
        )
    level = pl.col("interest_level").replace_strict(
        list(INTEREST), list(range(len(INTEREST))), default=None, return_dtype=pl.Float64
    )
    typed = raw.select(
        pl.col("dataset_id").cast(pl.Int64, strict=False).alias("user"),
        pl.col("movie_id").cast(pl.Int64, strict=False).alias("item"),
        (level if labels == "interest" else pl.col("rating").cast(pl.Float64, strict=False)).alias(
            "value"
        ),
        pl.col("seen_status")
        .replace_strict(["t", "f"], [True, False], default=None, return_dtype=pl.Boolean)
        .alias("seen"),
    )
    expected = (
        "whole numbers in dataset_id and movie_id, t or f in seen_status, "
        f"{' or '.join(repr(word) for word in INTEREST)} in interest_level and a number in rating"
    )
    check_rows(path, typed, raw.select(NEEDED), expected)
    typed = typed.with_columns(raw["familiarity"])
    checks = pl.any_horizontal(pl.col(name).fill_null("") != "" for name in CHECKS)
    is_check = raw.select(checks).to_series()
    notes = [f"{path.name}: {counted(raw.height, 'row')}"]
    left: Sequence[tuple[str, pl.Series]] = (
        ("of consistency checks left out: the participant had rated the movie", is_check),
        ("of movies that the participant had seen left out", typed["seen"] & (seen == "drop")),
    )
    stay = pl.Series([True] * raw.height)
    for words, out in left:
        count = int((out & stay).sum())
        if count:
            notes.append(f"{path.name}: {counted(count, 'row')} {words}")
        stay = stay & ~out
    judgments = typed.filter(stay)
    if not judgments.height:
        raise DataError(f"{path}: no judgment of a pooled movie is left")
    tags = {"seen": judgments["seen"], "familiarity": judgments["familiarity"]}
    with naming(str(path)):
        return Ratings.of(
            judgments["user"], judgments["item"], judgments["value"], tags=tags
        ), notes
