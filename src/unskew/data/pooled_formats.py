"""Official formats of pooled test sets: what several systems listed was judged by people."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import polars as pl

from unskew.checks import choose
from unskew.data.format_files import Files, check_rows, csv_table
from unskew.data.parts import Parts
from unskew.data.ratings import Ratings
from unskew.data.readers import read_ratings
from unskew.data.tables import naming
from unskew.data.user_samples import as_user_share, of_sampled_users
from unskew.errors import DataError
from unskew.report.text import counted

INTEREST = (
    "Not interested",
    "Somewhat interested",
    "Interested",
    "Very interested",
    "Extremely interested",
)
"""Answers of participants to how interested they are in watching, from 0 up."""
LABELS = {
    "interest": (2.0, (0.0, 4.0)),
    "rating": (4.0, (0.5, 5.0)),
}
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
        observed,
        pooled=pooled,
        notes=(*notes, *counts),
        true_liked=liked,
        true_scale=scale,
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
    kept = typed.filter(stay)
    if not kept.height:
        raise DataError(f"{path}: no judgment of a pooled movie is left")
    tags = {"seen": kept["seen"], "familiarity": kept["familiarity"]}
    with naming(str(path)):
        return Ratings.of(kept["user"], kept["item"], kept["value"], tags=tags), notes
