"""`SplitCounts`: what a split did to the data, in numbers."""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import polars as pl

from unskew.arrays import I64, frozen
from unskew.data.summary import gini, item_counts
from unskew.errors import DataError
from unskew.report.result import Result
from unskew.splits.split import Split, shared_rows

if TYPE_CHECKING:
    from unskew.report.charts import Figure


@dataclass(frozen=True)
class SplitCounts(Result):
    """What a split did to the data. Made by `count_parts`; shares are None without time stamps."""

    figure_is_open: ClassVar[bool] = True

    label: str
    train: int
    """Training ratings."""
    test: int
    train_users: int
    """Users with training ratings."""
    test_users: int
    cold_users: int
    """Users with test ratings but no training ratings."""
    untested_users: int
    """Users with training ratings but no test ratings."""
    lost_users: int
    """Users known by their id but with ratings in neither part."""
    train_items: int
    test_items: int
    cold_items: int
    untested_items: int
    lost_items: int
    duplicates: int
    """User-item pairs in both parts."""
    train_popularity: float
    """Mean number of training ratings of the item of a training rating."""
    test_popularity: float
    """Mean number of training ratings of the item of a test rating."""
    train_gini: float
    """Gini index of training ratings over all items."""
    test_gini: float
    before_user_train: float | None
    """Share of test ratings that are earlier than their user's last training rating."""
    before_any_train: float | None
    """Share of test ratings that are earlier than the last training rating of anyone."""
    per_item: tuple[I64, I64] | None = field(default=None, repr=False, compare=False)
    """Training and test ratings of each item, for `figure`; not kept on cards."""

    def table(self) -> pl.DataFrame:
        """Return a row per number: what it is, and its value."""
        rows = [(key, None if value is None else float(value)) for key, value in self._numbers()]
        return pl.DataFrame(rows, schema=["what", "value"], orient="row")

    def describe(self) -> dict[str, Any]:
        """Return all facts as plain values, for a card."""
        names = [field.name for field in fields(self) if field.name != "per_item"]
        return {name: getattr(self, name) for name in names}

    def figure(self, scale: str = "linear", bins: int = 500) -> Figure:
        """Draw the training and test ratings of items, the most rated first (bellogin2017 fig. 6).

        Parameters
        ----------
        scale
            `linear` or `log`.
        bins
            With more items than this, items next to each other in rank share a step: their mean.
        """
        from unskew.report.charts import split_counts

        if self.per_item is None:
            raise DataError(
                f"{self.label}: this diagnosis comes from a card, which has no ratings per item; "
                "to draw it, load the split (load_splits) and call diagnose"
            )
        return split_counts(*self.per_item, scale=scale, bins=bins, label=self.label)

    def _numbers(self) -> list[tuple[str, float | None]]:
        return [(key, value) for key, value in self.describe().items() if key != "label"]

    def _content(self) -> dict[str, Any]:
        return self.describe()

    def _summary(self) -> str:
        return f"{self.label}: {self.train:,} training and {self.test:,} test ratings"

    def __str__(self) -> str:
        def late(share: float | None) -> str:
            return "unknown (no time stamps)" if share is None else f"{share:.1%}"

        return "\n".join(
            [
                self._summary(),
                f"  users  {self.train_users:,} in training, {self.test_users:,} in test; "
                f"{self.cold_users:,} cold, {self.untested_users:,} untested, "
                f"{self.lost_users:,} lost",
                f"  items  {self.train_items:,} in training, {self.test_items:,} in test; "
                f"{self.cold_items:,} cold, {self.untested_items:,} untested, "
                f"{self.lost_items:,} lost",
                f"  popularity  mean training ratings of an item: {self.train_popularity:,.1f} per "
                f"training rating, {self.test_popularity:,.1f} per test rating; Gini "
                f"{self.train_gini:.3f} and {self.test_gini:.3f}",
                f"  test before training  of the same user: {late(self.before_user_train)}, of "
                f"anyone: {late(self.before_any_train)}",
                f"  pairs in both parts  {self.duplicates:,}",
            ]
        )


def count_parts(split: Split) -> SplitCounts:
    """Count what a split did: sizes, cold and lost users and items, popularity, time, duplicates.

    Parameters
    ----------
    split
        Any split.
    """
    train, test = split.train, split.test
    popularity, tested = item_counts(train), item_counts(test)
    users = np.diff(train.start), np.diff(test.start)
    same_user, any_user = _earlier(split)
    return SplitCounts(
        split.label,
        len(train),
        len(test),
        *_overlap(*users),
        *_overlap(popularity, tested),
        duplicates=int(np.count_nonzero(shared_rows(test, train))),
        train_popularity=_mean(popularity, popularity),
        test_popularity=_mean(popularity, tested),
        train_gini=gini(popularity),
        test_gini=gini(tested),
        before_user_train=same_user,
        before_any_train=any_user,
        per_item=(frozen(popularity), frozen(tested)),
    )


def _overlap(train: I64, test: I64) -> tuple[int, int, int, int, int]:
    """Count those with training and with test ratings, the cold, the untested and the lost."""
    trained, tested = train > 0, test > 0
    masks = trained, tested, tested & ~trained, trained & ~tested, ~trained & ~tested
    a, b, c, d, e = (int(np.count_nonzero(mask)) for mask in masks)
    return a, b, c, d, e


def _mean(popularity: I64, ratings: I64) -> float:
    """Return the mean popularity of the rated items, a rating being the unit."""
    return int(popularity @ ratings) / max(int(ratings.sum()), 1)


def _earlier(split: Split) -> tuple[float | None, float | None]:
    """Return which share of test ratings precede training ratings: own ones, anyone's."""
    from unskew.splits import kernels

    train, test = split.train, split.test
    if train.time is None or test.time is None or not len(train) or not len(test):
        return None, None
    same_user = kernels.precede(test.start, frozen(test.time), train.start, frozen(train.time))
    any_user = int(np.count_nonzero(test.time < train.time.max()))
    return same_user / len(test), any_user / len(test)
