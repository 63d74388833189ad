"""`Random`: every rating to the test part by chance."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar

import numpy as np

from unskew.checks import DEFAULT_TEST, as_share, portion
from unskew.data.ratings import Ratings
from unskew.errors import SettingError
from unskew.settings import count, flag, share
from unskew.splits import draws
from unskew.splits.split import Split, Splitter, by_mask


@dataclass(frozen=True)
class Random(Splitter):
    """Every rating falls into the test part by chance, independently of all others.

    bellogin2017 section 3, mena2021 section 9, castells2018 section 5.1.1.

    Examples
    --------
    >>> import unskew as us
    >>> from unskew.splits.random import Random
    >>> data = us.read_ratings({"user": [1, 1, 2, 2, 3], "item": [1, 2, 1, 3, 2]})
    >>> Random(test=0.4, exact=True).split(data, seed=7)
    [Split(random: train 3, test 2)]
    """

    test: float | None = share(
        None,
        "The probability of the test part: 0.2 unless given, 1 / folds with folds.",
    )
    folds: int | None = count(
        None,
        """Draw each rating into one of this many folds instead, all equally likely; each fold is
        the test part once. Folds are not equal in size.""",
        2,
    )
    exact: bool = flag(
        False,
        """Draw exactly `floor(test * n)` of the n ratings instead of flipping coins
        (carraro2020).""",
    )

    name: ClassVar[str] = "random"
    draw_name: ClassVar[str] = "random"

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.folds is None:
            return
        if self.exact:
            raise SettingError("exact=True is for one split; folds are drawn rating by rating")
        if self.test is not None and as_share("test", self.test) != Fraction(1, self.folds):
            raise SettingError(
                f"with folds={self.folds} the test share is 1/{self.folds}; got test={self.test}: "
                f"leave one of them out"
            )

    def known_count(self) -> int | None:
        """Return how many splits there are."""
        return self.folds or 1

    def make_splits(self, ratings: Ratings, seed: int) -> Iterator[Split]:
        """Make the split, or one per fold."""
        if self.folds is not None:
            fold = draws.fold_of(ratings, self.folds, seed, "split/random")
            hint = f"the number of ratings is {len(ratings):,}: ask for fewer folds, or a new seed"
            for number in range(self.folds):
                test = fold == number
                label = f"fold{number + 1}"
                yield by_mask(self, ratings, test, label, hint=hint)
            return
        part = as_share("test", DEFAULT_TEST if self.test is None else self.test)
        if self.exact:
            size = int(portion(np.array([len(ratings)]), part)[0])
            test = draws.of_all(ratings, size, seed, "split/random")
        else:
            test = draws.coin(ratings, part, seed, "split/random")
        hint = f"the number of ratings is {len(ratings):,}: take another share or another seed"
        yield by_mask(self, ratings, test, hint=hint)
