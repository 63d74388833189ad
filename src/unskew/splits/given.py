"""Splits that someone else made, and ratings that were collected apart."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import MISSING, dataclass
from typing import ClassVar

import polars as pl

from unskew.data.ratings import Ratings, under_one_numbering
from unskew.errors import DataError, SettingError
from unskew.report.text import counted
from unskew.settings import choice, declare
from unskew.splits.split import (
    OVERLAP,
    Split,
    Splitter,
    assemble,
    by_mask,
    tag_of,
    truth,
    without_overlap,
)


def _need_ratings(name: str, value: object) -> None:
    if not isinstance(value, Ratings):
        raise SettingError(
            f"{name} must be Ratings, got {type(value).__name__}; read them with read_ratings(…)"
        )


@dataclass(frozen=True)
class Given(Splitter):
    """A split that someone made: a column that says where each rating belongs, or two files."""

    column: str | None = declare(
        None,
        """A tag of the ratings. True and false, or `test` and `train`, make one split (further
        words make further judgment sets, such as `valid`); anything else, 0 and 1 too, numbers
        folds, each the test part once.""",
    )
    test: Ratings | None = declare(
        None,
        """Instead of a column: the test ratings; the ratings that are split are then the training
        part.""",
        _need_ratings,
    )
    overlap: str = choice(
        "error",
        """With `test`: pairs in both parts are refused (`error`), taken out of the test part
        (`to-training`) or out of the training part (`to-test`), or kept in both (`keep`).""",
        OVERLAP,
    )

    name: ClassVar[str] = "given"
    draw_name: ClassVar[str] = "given"

    def __post_init__(self) -> None:
        super().__post_init__()
        if (self.column is None) == (self.test is None):
            raise SettingError("give the split: either column='fold' (a tag) or test=… (ratings)")

    def make_splits(self, ratings: Ratings, seed: int) -> Iterator[Split]:
        """Give the split, or one per fold."""
        if self.test is not None:
            yield _two_parts(self, ratings, self.test, self.overlap)
            return
        column = tag_of(ratings, str(self.column), "Given")
        missing = int(column.null_count())
        if missing:
            raise DataError(f"column {self.column!r} is empty for {counted(missing, 'rating')}")
        words = set(column.unique().to_list()) if column.dtype == pl.String else set()
        hint = f"look at column {self.column!r}"
        mask = truth(column)
        if mask is not None:
            yield by_mask(self, ratings, mask, hint=hint)
        elif {"train", "test"} <= words:
            parts = {word: ratings.take((column == word).to_numpy()) for word in sorted(words)}
            train, test = parts.pop("train"), parts.pop("test")
            rest = sum(map(len, parts.values()))
            yield assemble(self, train, test, hint=hint, left_out=rest, judgments=parts)
        else:
            yield from self._folds(ratings, column, hint)

    def _folds(self, ratings: Ratings, column: pl.Series, hint: str) -> Iterator[Split]:
        values = column.unique().sort().to_list()
        if len(values) < 2 or len(values) > 100:
            raise DataError(
                f"column {self.column!r} has {len(values):,} different values; it must say true "
                f"and false, train and test, or number 2 to 100 folds"
            )
        whole = column.dtype.is_integer()
        for place, value in enumerate(values, 1):
            test = (column == value).to_numpy()
            label = f"fold{value if whole else place}"
            facts = {"fold": value if whole else str(value)}
            yield by_mask(self, ratings, test, label, hint=hint, facts=facts)


@dataclass(frozen=True)
class Forced(Splitter):
    """Ratings that users chose to give train; ratings they were asked for at random test.

    castells2018 section 5.2.1. Pairs in both parts belong to training: taking them out of
    training instead favours popular items, and does so however sparse the test is.
    """

    random: Ratings = declare(MISSING, "The ratings of randomly chosen items.", _need_ratings)
    overlap: str = choice(
        "to-training",
        """`to-training` (default), `to-test`, or `keep` in both; the number is a fact either
        way.""",
        ("to-training", "to-test", "keep"),
    )

    name: ClassVar[str] = "forced"
    draw_name: ClassVar[str] = "forced"

    def make_splits(self, ratings: Ratings, seed: int) -> Iterator[Split]:
        """Make the split; nothing is drawn, so the seed does not matter."""
        yield _two_parts(self, ratings, self.random, self.overlap)


def _two_parts(protocol: Splitter, train: Ratings, test: Ratings, overlap: str) -> Split:
    """Bring training and test ratings of two sources under one numbering."""
    train, test = under_one_numbering(train, test)
    total = len(train) + len(test)
    train, test, both = without_overlap(train, test, overlap)
    hint = "all its pairs are in the other part too; choose another overlap"
    left_out = total - len(train) - len(test)
    return assemble(protocol, train, test, hint=hint, left_out=left_out, facts={"overlap": both})
