"""`Parts`: what a reader of a named data set returns, and the rules about its parts."""

from __future__ import annotations

import io
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from fractions import Fraction
from pathlib import Path
from typing import IO, Any

import numpy as np
import polars as pl

from unskew.arrays import I64, Mask
from unskew.checks import as_share, choose
from unskew.data.dataset import POOLED, RANDOM
from unskew.data.filters import compacted
from unskew.data.ratings import Ids, Ratings, under_one_numbering
from unskew.data.read.text_files import check_widths
from unskew.data.times import microseconds
from unskew.engine.files import InputFile, reading
from unskew.engine.rng import draw
from unskew.errors import DataError, SettingError
from unskew.report.text import counted

Files = Sequence[Path]


def csv_columns(
    path: Path, columns: Mapping[str, str], *, text: Sequence[str] = ()
) -> pl.DataFrame:
    """Read some columns of a file with a header line, under new names; some of them as text."""
    frame = csv_table(
        path,
        columns=list(columns.values()),
        infer_schema_length=10_000,
        schema_overrides={columns[name]: pl.String for name in text},
    )
    return frame.select(pl.col(old).alias(new) for new, old in columns.items())


def csv_table(path: Path, **options: Any) -> pl.DataFrame:
    """Read a file with a header line; refuse rows of another width than that line."""
    # polars does not look at cells beyond the columns that it is asked for, nor at the names.
    with reading(path):
        file = InputFile.of(path)
        with file.open() as opened:
            opened.readline().decode()  # fails where a name is not UTF-8
        check_widths(file, ",")
    return read_text_table(path, **options)


def text_columns(
    path: Path, names: Sequence[str], separator: str, *, quote: bool = True
) -> pl.DataFrame:
    """Read a file without a header line, all columns as text."""
    with reading(path):
        check_widths(InputFile.of(path), separator, quote=quote)
    return read_text_table(
        path,
        has_header=False,
        schema=dict.fromkeys(names, pl.String),
        separator=separator,
        quote_char='"' if quote else None,
    )


def read_text_table(path: Path, text: bytes | None = None, **options: Any) -> pl.DataFrame:
    """Read a file, or its text as it was changed."""
    with reading(path):
        source = InputFile.of(path).whole() if text is None else text
        frame = pl.read_csv(source, glob=False, **options)
    if not frame.height:
        raise DataError(f"{path}: there are no rows")
    return frame


def times_or_none(
    name: str, time: pl.Series, unit: float, singular: str, plural: str
) -> tuple[I64 | None, list[str]]:
    """Return time stamps; none at all, and a note, where some are missing.

    Parameters
    ----------
    name
        The name of the file.
    time
        Numbers.
    unit
        Microseconds in one of them.
    singular, plural
        What lacks a time stamp, such as `row has` and `rows have`.
    """
    missing = time.null_count()
    if missing:
        lacking = counted(missing, singular, plural)
        return None, [f"{name}: {lacking} no time stamp: read without times"]
    return microseconds(time.cast(pl.Float64).to_numpy(), unit), []


@contextmanager
def text_of(path: Path) -> Iterator[IO[str]]:
    """Open a text file, packed or not; what fails while it is read names the file."""
    with reading(path), InputFile.of(path).open() as file:
        yield io.TextIOWrapper(file, encoding="utf-8", errors="replace")


KEY = "users of a data set"
_SCALE = 1 << 64


def as_user_share(share: object) -> Fraction:
    """Return a share of users, also given as text after the name of a data set.

    Examples
    --------
    >>> from unskew.data.formats.parts import as_user_share
    >>> as_user_share("0.1")
    Fraction(1, 10)
    """
    value = share
    if isinstance(share, str):
        try:
            value = float(share)
        except ValueError:
            raise SettingError(f"share must be a number such as 0.1, got {share!r}") from None
    return as_share("share", value, one=True)


def sampled(users: pl.Series, share: Fraction) -> Mask:
    """Mark whole-number ids that belong to a sample; a smaller share is part of a larger one.

    Examples
    --------
    >>> import polars as pl
    >>> from fractions import Fraction
    >>> from unskew.data.formats.parts import sampled
    >>> ids = pl.Series(range(10_000))
    >>> few, many = (sampled(ids, Fraction(1, n)) for n in (10, 5))
    >>> bool((few <= many).all()), bool(900 < few.sum() < 1_100)
    (True, True)
    """
    draws = draw(0, KEY, users.to_numpy())
    if share == 1:
        return np.ones(len(users), np.bool_)
    return draws < np.uint64(int(share * _SCALE))


def of_sampled_users(
    ratings: Ratings, share: Fraction, keep: Ids | None = None
) -> tuple[Ratings, list[str]]:
    """Return the ratings of a sample of users, and of those to `keep`; say how many there are."""
    if share == 1:
        return ratings, []
    chosen = sampled(ratings.users.values, share)
    if keep is not None:
        codes = ratings.users.codes(keep.values)
        chosen[codes[codes >= 0]] = True
    smaller = compacted(ratings.take(chosen[ratings.user]))
    return smaller, [sample_note(len(smaller.users), len(ratings.users), share)]


def sample_note(size: int, total: int, share: Fraction) -> str:
    """Say how many users a sample holds."""
    return (
        f"share={float(share):g}: {size:,} of {counted(total, 'user')} kept, by a hash of their ids"
    )


OVERLAP = ("keep", "drop-from-test")


@dataclass(frozen=True)
class Parts:
    """What was read: the ratings, the random or pooled ones, tables, and remarks."""

    ratings: Ratings
    random: Ratings | None = None
    """Ratings of items that were drawn at random, or of every pair of some users and items."""
    features: Mapping[str, pl.DataFrame] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    pooled: Ratings | None = None
    """Judgments of the items that several systems listed."""
    liked: float | None = None
    """The threshold, where it depends on the options; None: that of the data set."""
    scale: tuple[float, float] | None = None
    """Likewise."""
    true_liked: float | None = None
    """The threshold of the pooled judgments, where they have a scale of their own."""
    true_scale: tuple[float, float] | None = None
    kind: str = RANDOM
    """What `random` holds: see `TrueJudgments`."""

    def remarks(self) -> tuple[str, ...]:
        """Return what is worth knowing: about the reading, then about each part."""
        named = {"observed": self.ratings, self.kind: self.random, POOLED: self.pooled}
        parts = {label: part for label, part in named.items() if part is not None}
        if len(parts) == 1:
            return (*self.notes, *self.ratings.notes)
        lines = [f"{label}: {note}" for label, part in parts.items() for note in part.notes]
        return (*lines, *self.notes)

    def over_same_ids(self) -> Parts:
        """Return all parts under one numbering of users and items."""
        others = [part for part in (self.random, self.pooled) if part is not None]
        if not others:
            return self
        ratings, *judgments = under_one_numbering(self.ratings, *others)
        random = None if self.random is None else judgments[0]
        return replace(
            self,
            ratings=ratings,
            random=random,
            pooled=None if self.pooled is None else judgments[-1],
        )

    def settle_overlap(self, overlap: str) -> Parts:
        """Keep pairs that are in both parts, or take them out of the random one; count them.

        castells2018 section 5.2.1: they belong to training.
        """
        choose("overlap", overlap, OVERLAP)
        if self.random is None:
            return self
        observed_pairs, random_pairs = (
            part.user.astype(np.int64) * len(part.items) + part.item
            for part in (self.ratings, self.random)
        )
        again = np.isin(random_pairs, observed_pairs, assume_unique=True)
        count = int(np.count_nonzero(again))
        random = self.random if overlap == "keep" else self.random.take(~again)
        what = "kept in both" if overlap == "keep" else f"taken out of the {self.kind} part"
        note = f"{counted(count, 'pair is', 'pairs are')} in both parts: {what}"
        return replace(self, random=random, notes=(*self.notes, note))

    def among_common_users(self) -> Parts:
        """Keep the ratings of users who have random ratings too (carraro2020 section 4.1)."""
        if self.random is None:
            return self
        common = np.zeros(len(self.random.users), np.bool_)
        common[self.random.user] = True
        common_ratings = self.ratings.take(common[self.ratings.user])
        left = len(self.ratings) - len(common_ratings)
        note = f"{counted(left, 'rating')} of users without random ratings left out"
        parts = replace(self, ratings=compacted(common_ratings), random=compacted(self.random))
        return replace(parts.over_same_ids(), notes=(*self.notes, note))
