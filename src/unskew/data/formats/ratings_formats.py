"""Official formats of data sets of ratings: one function each, files in, `Parts` out."""

from __future__ import annotations

import ast
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import IO, Any

import numpy as np
import polars as pl

from unskew.arrays import F64, Mask
from unskew.checks import choose
from unskew.data.formats.parts import (
    Files,
    Parts,
    csv_columns,
    text_columns,
    text_of,
    times_or_none,
)
from unskew.data.ratings import CANONICAL_INTEGER, Ratings
from unskew.data.read.dataset_files import (
    UNRATED,
    check_rows,
    jester_matrix,
    matrix_rows,
    read_matrix,
    read_netflix,
)
from unskew.data.read.ratings_files import read_ratings
from unskew.data.read.tables import naming
from unskew.engine.files import InputFile
from unskew.errors import DataError
from unskew.report.text import counted


def columns_reader(settings: Mapping[str, Any]) -> Callable[..., Parts]:
    """Return what reads one file of ratings, or two of which the second is the random part.

    Parameters
    ----------
    settings
        Those of `read_ratings`, for each file.
    """

    def read(*files: Files) -> Parts:
        ratings, *random = (read_ratings(path, **settings) for (path,) in files)
        return Parts(ratings, random[0] if random else None).over_same_ids()

    return read


def netflix(ratings: Files) -> Parts:
    """Read `combined_data_*.txt` or `mv_*.txt`: a line `movie:`, then lines `user,rating,date`."""
    frames = [read_netflix(InputFile.of(path)) for path in ratings]
    frame = pl.concat(frames)
    time = frame["time"].cast(pl.Datetime("us")).dt.timestamp("us").to_numpy()
    notes = (f"{counted(len(frames), 'file')}, {counted(frame.height, 'row')}",)
    return Parts(Ratings.of(frame["user"], frame["item"], frame["rating"], time, notes=notes))


def coat(train: Files, test: Files) -> Parts:
    """Read the matrices `train.ascii` (self-selected) and `test.ascii` (random); 0 = not rated."""
    chosen, random = (read_matrix(InputFile.of(path), None) for (path,) in (train, test))
    if chosen.shape != random.shape:
        raise DataError(f"{train[0]} is {chosen.shape}, but {test[0]} is {random.shape}")
    return Parts(_of_matrix(chosen, chosen != 0), _of_matrix(random, random != 0)).over_same_ids()


def jester(ratings: Files) -> Parts:
    """Read `jester-data-1.csv` …: a row per user, the number of ratings first, 99 = not rated."""
    dense = np.vstack([jester_matrix(InputFile.of(path), ",") for path in ratings])
    return Parts(_of_matrix(dense, dense != UNRATED))


def _of_matrix(dense: F64, rated: Mask) -> Ratings:
    rows = matrix_rows(dense, rated)
    return Ratings.of(rows["user"], rows["item"], rows["rating"])


def cm100k(ratings: Files, *, observed: str = "all") -> Parts:
    """Read `user item rating known`; all judgments are of random tracks, some of them familiar.

    Parameters
    ----------
    ratings
        The file.
    observed
        `all`: one set of judgments with the tag `familiar`, for `FamiliarTraining`. `familiar`:
        the familiar ones are the ratings, all are the random part.
    """
    choose("observed", observed, ("all", "familiar"))
    (path,) = ratings
    lines = text_columns(path, ("user", "item", "rating", "known"), "\t")
    frame = lines.select(pl.all().cast(pl.Int64, strict=False))
    check_rows(path, frame, lines, "user, item, rating and known, separated by tabs")
    judgments = Ratings.of(
        frame["user"],
        frame["item"],
        frame["rating"],
        tags={"familiar": (frame["known"] == 1).alias("familiar")},
    )
    is_familiar = judgments.tags["familiar"].to_numpy()
    familiar = counted(
        int(is_familiar.sum()), "judgment is of a familiar item", "judgments are of familiar items"
    )
    notes = (f"{familiar}: tag 'familiar'",)
    if observed == "all":
        random = (
            "all judgments are of randomly chosen items; with observed=familiar the familiar ones "
            "are the ratings and all are the random part"
        )
        return Parts(judgments, notes=(*notes, random))
    return Parts(judgments.take(is_familiar), judgments, notes=notes)


def lastfm_1k(plays: Files) -> Parts:
    """Read the plays: `features["events"]` holds them one by one, the ratings are their counts.

    An artist is known by its MusicBrainz id or, where there is none, by its name.
    """
    (path,) = plays
    columns = ("user", "timestamp", "artist_id", "artist", "track_id", "track")
    lines = text_columns(path, columns, "\t", quote=False)
    events = lines.select(
        pl.col("user").cast(pl.Categorical),
        pl.coalesce(
            pl.when(pl.col(name).str.len_chars() > 0).then(name) for name in ("artist_id", "artist")
        )
        .cast(pl.Categorical)
        .alias("item"),
        pl.col("timestamp")
        .str.to_datetime("%Y-%m-%dT%H:%M:%SZ", time_unit="us", strict=False)
        .alias("time"),
    )
    check_rows(path, events.select("user", "time"), lines, "userid, timestamp, artist and track")
    nameless = events["item"].null_count()
    events = events.drop_nulls()
    notes = [
        (
            f"{path.name}: {counted(lines.height, 'play')}; the rating is the number of plays per "
            "artist"
        )
    ]
    if nameless:
        notes.append(f"{path.name}: {counted(nameless, 'play')} without an artist left out")
    ones = pl.Series("plays", np.ones(events.height))
    time = events["time"].dt.timestamp("us").to_numpy()
    ratings = Ratings.of(events["user"], events["item"], ones, time, duplicates="sum")
    return Parts(ratings, features={"events": events}, notes=tuple(notes))


def librarything(ratings: Files) -> Parts:
    """Read `UI2.txt` (`user work 2*rating tag`, a line per tag) or the reviews of another crawl.

    `reviews.txt` has a line `reviews[(…)] = {…}` per review, with user, work, stars and unixtime.
    """
    (path,) = ratings
    if path.name.startswith("reviews"):
        names = {"user": "user", "item": "work", "rating": "stars", "time": "unixtime"}
        return _reviews(path, names, "last")
    rows = []
    with text_of(path) as file:
        for number, line in enumerate(file, 1):
            words = line.split(maxsplit=3)
            if len(words) < 3 or not all(map(_is_whole, words[:3])):
                raise DataError(
                    f"{path}: line {number:,} is {line.strip()[:80]!r}; expected "
                    f"'user work rating tag', the rating times two"
                )
            rows.append(tuple(map(int, words[:3])))
    frame = pl.DataFrame(rows, schema=["user", "item", "rating"], orient="row")
    single = frame.unique(maintain_order=True)
    notes = (
        (
            f"{path.name}: {counted(frame.height, 'line')}, one per tag, of "
            f"{counted(single.height, 'rating')}"
        ),
    )
    result = Ratings.of(single["user"], single["item"], single["rating"] / 2, duplicates="last")
    return Parts(result, notes=tuple(notes))


def _is_whole(word: str) -> bool:
    return word.isascii() and word.isdecimal()


def beeradvocate(reviews: Files, *, duplicates: str = "last") -> Parts:
    """Read the reviews: blocks of `beer/name: …` lines, a record per line, or a CSV file.

    Parameters
    ----------
    reviews
        The file, also gzipped; the rating is `review/overall`.
    duplicates
        Which review of a beer counts when a user wrote several: see `read_ratings`.
    """
    (path,) = reviews
    if ".csv" in path.suffixes:
        names = {
            "user": "review_profilename",
            "item": "beer_beerid",
            "rating": "review_overall",
            "time": "review_time",
        }
        return _of_reviews(path, csv_columns(path, names), duplicates)
    names = {
        "user": "review/profileName",
        "item": "beer/beerId",
        "rating": "review/overall",
        "time": "review/time",
    }
    return _reviews(path, names, duplicates)


def _reviews(path: Path, names: Mapping[str, str], duplicates: str) -> Parts:
    with text_of(path) as file:
        records = list(_records(path, file, tuple(names.values())))
    columns = zip(*records, strict=True) if records else [()] * len(names)
    kinds = (pl.String, pl.String, pl.Float64, pl.Float64)
    frame = pl.DataFrame(
        [
            pl.Series(name, [None if x is None else str(x) for x in column], pl.String)
            .str.strip_chars()
            .replace("", None)
            .cast(kind, strict=False)
            for name, column, kind in zip(names, columns, kinds, strict=True)
        ]
    )
    return _of_reviews(path, frame, duplicates)


def _records(path: Path, file: IO[str], keys: Sequence[str]) -> Iterator[tuple[Any, ...]]:
    """Yield some fields of every review."""
    block: dict[str, str] = {}
    # A file of records holds nothing else; before the first one there may be a heading.
    only_records = ".json" in path.name
    for number, line in enumerate(file, 1):
        text = line.strip()
        if text.startswith(("{", "reviews[")):
            only_records = True
            record = _record(path, number, text[text.find("{") :])
            yield tuple(record.get(key) for key in keys)
        elif text and only_records:
            raise DataError(f"{path}: line {number:,} is not a record: {text[:80]!r}")
        elif text:
            key, colon, value = text.partition(":")
            if colon and key in keys:
                block[key] = value.strip()
        elif block:
            yield tuple(block.get(key) for key in keys)
            block = {}
    if block:
        yield tuple(block.get(key) for key in keys)


def _record(path: Path, number: int, text: str) -> dict[str, Any]:
    try:
        try:
            record = json.loads(text)
        except ValueError:
            record = ast.literal_eval(text)  # Python's own notation: only literals are read
    except (ValueError, SyntaxError):
        record = None
    if not isinstance(record, dict):
        raise DataError(f"{path}: line {number:,} is not a record: {text[:80]!r}")
    return record


def _of_reviews(path: Path, frame: pl.DataFrame, duplicates: str) -> Parts:
    """Make ratings of reviews, earliest first; reviews without a user, item or rating leave."""
    complete = frame.drop_nulls(["user", "item", "rating"])
    if not complete.height:
        raise DataError(f"{path}: no reviews in this file")
    notes = [f"{path.name}: {counted(frame.height, 'review')}"]
    if complete.height < frame.height:
        left = frame.height - complete.height
        notes.append(
            f"{path.name}: {counted(left, 'review')} without a user, an item or a rating left out"
        )
    complete = complete.sort("time", maintain_order=True)
    with naming(path.name):
        time, remarks = times_or_none(
            path.name, complete["time"], 1e6, "review has", "reviews have"
        )
    item = complete["item"].cast(pl.String)
    if bool(item.str.contains(CANONICAL_INTEGER).all()):  # 7 and 007 are two items
        item = item.cast(pl.Int64)
    result = Ratings.of(complete["user"], item, complete["rating"], time, duplicates=duplicates)
    return Parts(result, notes=(*notes, *remarks))
