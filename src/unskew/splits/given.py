"""Splits that someone else made, and ratings that were collected apart."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import MISSING, dataclass
from typing import Any, ClassVar

import numpy as np
import polars as pl

from unskew.arrays import F64, Mask
from unskew.data.ratings import Ratings, under_one_numbering
from unskew.data.summary import item_counts
from unskew.errors import DataError, SettingError
from unskew.report.text import counted
from unskew.settings import choice, count, declare, flag, number, share
from unskew.splits import draws
from unskew.splits.split import (
    OVERLAP,
    Split,
    Splitter,
    assemble,
    by_mask,
    empty,
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
    """A split that someone made: a column that says where each rating belongs, or two files.

    Examples
    --------
    >>> import unskew as us
    >>> rows = {"user": [1, 1, 2, 2], "item": [7, 8, 7, 9], "part": ["train", "test"] * 2}
    >>> us.splits.Given("part").split(us.read_ratings(rows, tags=["part"]))
    [Split(given: train 2, test 2)]
    """

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
            left_out = sum(map(len, parts.values()))
            yield assemble(self, train, test, hint=hint, left_out=left_out, judgments=parts)
        else:
            yield from self._folds(ratings, column, hint)

    def _folds(self, ratings: Ratings, column: pl.Series, hint: str) -> Iterator[Split]:
        values = column.unique().sort().to_list()
        if len(values) < 2 or len(values) > 100:
            raise DataError(
                f"column {self.column!r} has {len(values):,} different values; it must say true "
                f"and false, train and test, or number 2 to 100 folds"
            )
        is_integer = column.dtype.is_integer()
        for fold, value in enumerate(values, 1):
            test = (column == value).to_numpy()
            label = f"fold{value if is_integer else fold}"
            facts = {"fold": value if is_integer else str(value)}
            yield by_mask(self, ratings, test, label, hint=hint, facts=facts)


@dataclass(frozen=True)
class Forced(Splitter):
    """Ratings that users chose to give train; ratings they were asked for at random test.

    castells2018 section 5.2.1. Pairs in both parts belong to training: taking them out of
    training instead favours popular items, and does so however sparse the test is.

    Examples
    --------
    In a simulation, what users chose to rate trains and a random sample tests. Of the sample, 61
    pairs are in the training part.

    >>> import unskew as us
    >>> shop = us.world("shop", users=60, items=20, density=0.3, seed=3)
    >>> (split,) = us.splits.Forced(shop.random(0.2)).split(shop.ratings)
    >>> split, split.facts["overlap"]
    (Split(forced: train 354, test 169), 61)
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
    train, test, shared = without_overlap(train, test, overlap)
    hint = "all its pairs are in the other part too; choose another overlap"
    left_out = total - len(train) - len(test)
    return assemble(protocol, train, test, hint=hint, left_out=left_out, facts={"overlap": shared})


@dataclass(frozen=True)
class Custom(Splitter):
    """A way to split of your own, as a function.

    Examples
    --------
    >>> import unskew as us
    >>> def even_items_test(ratings, seed):
    ...     even = ratings.item % 2 == 0
    ...     return us.Split(ratings.take(~even), ratings.take(even))
    >>> data = us.read_ratings({"user": [1, 1, 2], "item": [1, 2, 1]})
    >>> us.splits.Custom("even items", even_items_test).split(data)
    [Split(even items: train 1, test 2)]
    """

    label: str = declare(MISSING, "Name of the protocol.")
    function: Callable[[Ratings, int], Split | Iterable[Split]] = declare(
        MISSING,
        """Takes ratings and a seed and returns a `Split`, or several. To run in several processes
        it must be importable (not a lambda).""",
        repr=False,
    )
    version: str | int | None = declare(
        None,
        """Version of the function: change it when the function changes. Without a version results
        are not stored.""",
    )

    name: ClassVar[str] = "custom"
    draw_name: ClassVar[str] = "custom"
    not_on_cards: ClassVar[frozenset[str]] = frozenset({"function"})

    @property
    def title(self) -> str:
        """Its label."""
        return self.label

    def make_splits(self, ratings: Ratings, seed: int) -> Split | Iterable[Split]:
        """Call the function."""
        return self.function(ratings, seed)


TAGS = ("familiar", "known")


@dataclass(frozen=True)
class FamiliarTraining(Splitter):
    r"""Judgments of random items, a tag saying which items the user knew before (CM100k).

    mena2021 section 8: all judgments are drawn into folds; the familiar judgments of the other
    folds are the training part, the whole fold is the test part (`judgments["true"]` too), and
    its familiar judgments alone, `judgments["observed"]`, are what is usually observed. Both
    share one training part. Without folds (castells2018 section 5.2.2) all familiar judgments
    train and the others test.

    The true test still favours familiar items a little: with density s of the judgments, share
    :math:`f_i` of familiar ones and n folds, :math:`p(test|\neg train, i) = \frac1n s /
    (1 - (1-\frac1n) s f_i)`. Without folds it is :math:`s (1-f_i) / (1 - s f_i)`. Facts:
    `factor_low` and `factor_high`, its range over items, and `residual`, their ratio less 1.

    With `fair`, liked test judgments are thinned so that this probability is the same for all
    items: an item keeps them with probability :math:`c\,(1 - s\tau_i)/\pi_i`, where
    :math:`\tau_i` is the share of its liked judgments that train, :math:`\pi_i` the share that
    could test (1/n; without folds :math:`1-\tau_i`, which is the formula of castells2018) and c
    the largest constant that leaves no probability above 1. Disliked judgments are left out, as
    in the paper. Facts: `T` (the largest τ), `factor`, `kept_share`, `items_above_cap`.

    Examples
    --------
    The familiar judgments of a fold are what is usually observed; all of them are the true test.

    >>> import unskew as us
    >>> rows = {"user": [u for u in range(30) for _ in range(6)], "item": [*range(6)] * 30}
    >>> rows["rating"] = [1 + n % 5 for n in range(180)]
    >>> rows["known"] = [n % 3 == 0 for n in range(180)]
    >>> data = us.read_ratings(rows, tags=["known"])
    >>> folds = us.splits.FamiliarTraining(folds=3).split(data, seed=1)
    >>> [len(folds[0].judgments[name]) for name in ("observed", "true")]
    [22, 55]
    """

    tag: str | None = declare(
        None,
        """The tag that says whether an item was familiar (true/false or 1/0); `familiar` or
        `known`, whichever there is, unless given.""",
    )
    folds: int | None = count(5, "The number of folds, or None.", 2, optional=True)
    fair: bool = flag(False, "Whether to thin the test part.")
    liked: float | None = declare(None, "For `fair`: the smallest rating that is liked.")
    smoothing: float | None = number(
        None,
        """For `fair`: τ counts this many judgments of the average rate on top of each item's own;
        the mean number of liked judgments per item unless given. With 0 and no folds, one item
        whose few liked judgments were all familiar makes T = 1 and leaves nothing.""",
    )
    cap: float | None = share(
        None,
        """For `fair` without folds: bound T. Items above it keep all they have, which is too
        few.""",
    )

    name: ClassVar[str] = "familiar"
    draw_name: ClassVar[str] = "familiar"

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.cap is not None and self.folds is not None:
            raise SettingError("cap is for folds=None: with folds no item needs it")
        if self.fair and self.liked is None:
            raise SettingError(
                "fair=True thins liked judgments: give the smallest liked rating, such as liked=3"
            )
        if not self.fair and any(x is not None for x in (self.liked, self.smoothing, self.cap)):
            raise SettingError("liked, smoothing and cap are for fair=True")

    def make_splits(self, ratings: Ratings, seed: int) -> Iterator[Split]:
        """Make the split, or one per fold."""
        familiar = self._familiar(ratings)
        if self.folds is None:
            yield self._one(ratings, familiar, familiar, ~familiar, None, seed)
            return
        fold = draws.fold_of(ratings, self.folds, seed, "split/familiar")
        for index in range(self.folds):
            inside = fold == index
            yield self._one(ratings, familiar, familiar & ~inside, inside, f"fold{index + 1}", seed)

    def _familiar(self, ratings: Ratings) -> Mask:
        """Return the tag as a mask."""
        name = self.tag or next((tag for tag in TAGS if tag in ratings.tags), TAGS[0])
        column = tag_of(ratings, name, "FamiliarTraining")
        if column.dtype.is_numeric() and column.is_in([0, 1]).all():
            column = column.cast(pl.Boolean)
        mask = truth(column)
        if mask is None:
            raise DataError(
                f"tag {name!r} must say true or false (or 1 or 0) for every rating; it holds "
                f"{column.unique().sort().head(5).to_list()}"
            )
        return mask

    def _one(
        self,
        ratings: Ratings,
        familiar: Mask,
        train: Mask,
        test: Mask,
        label: str | None,
        seed: int,
    ) -> Split:
        """Make one split of its masks."""
        hint = "look at the tag: some judgments must be familiar, and some not"
        for part, mask in (("training", train), ("test", test)):
            if not mask.any():
                raise empty(self, part, hint)
        true = ratings.take(test)
        judgments = {"true": true}
        if self.folds is not None:
            judgments["observed"] = ratings.take(test & familiar)
        rated = item_counts(ratings)
        familiar_counts = np.bincount(ratings.item, familiar, minlength=rated.size)
        rate = np.divide(familiar_counts, rated, out=np.zeros(rated.size), where=rated > 0)
        facts = self._residual(rate[rated > 0], _density(ratings))
        if self.fair:
            chance, more = self._chance(ratings, familiar)
            facts |= more
            liked = true.value >= float(self.liked or 0)
            lucky = draws.uniforms(true, seed, "split/familiar/fair") < chance[true.item]
            sample = true.take(liked & lucky)
            facts |= {
                "disliked_left_out": int(np.count_nonzero(~liked)),
                "thinned_out": int(np.count_nonzero(liked & ~lucky)),
                "kept_share": len(sample) / max(int(np.count_nonzero(liked)), 1),
            }
            hint = f"T = {facts['T']:.4f}: raise smoothing, or bound T with cap"
            true = sample
        train_ratings = ratings.take(train)
        return assemble(
            self,
            train_ratings,
            true,
            label,
            hint=hint,
            judgments=judgments,
            left_out=len(ratings) - len(train_ratings) - len(true),
            facts=facts,
        )

    def _training_share(self) -> float:
        """Return which share of the familiar judgments trains."""
        return 1.0 if self.folds is None else 1 - 1 / self.folds

    def _factor(self, training: F64, density: float) -> F64:
        """Return p(test | not train, i), given which share of an item's judgments trains.

        NaN for an item whose every pair trains.
        """
        could = 1 - training if self.folds is None else np.full(training.size, 1 / self.folds)
        outside = 1 - density * training
        factor = np.full(training.size, np.nan)
        np.divide(density * could, outside, out=factor, where=outside > 0)
        return factor

    def _residual(self, rate: F64, density: float) -> dict[str, Any]:
        """Return the range over items of the chance to test what was not trained on."""
        factor = self._factor(self._training_share() * rate, density)
        low, high = float(np.nanmin(factor)), float(np.nanmax(factor))
        return {
            "density": density,
            "factor_low": low,
            "factor_high": high,
            "residual": high / low - 1 if low > 0 else None,
        }

    def _chance(self, ratings: Ratings, familiar: Mask) -> tuple[F64, dict[str, Any]]:
        """Return the probability with which each item's liked judgments stay in the test."""
        liked = ratings.value >= float(self.liked or 0)
        judged = np.bincount(ratings.item[liked], minlength=len(ratings.items))
        familiar_counts = np.bincount(ratings.item[liked & familiar], minlength=judged.size)
        total = int(judged.sum())
        if not total:
            raise DataError(f"no judgment is liked: the largest is {ratings.value.max():g}")
        there = judged > 0
        extra = total / int(there.sum()) if self.smoothing is None else self.smoothing
        rate = np.zeros(judged.size)
        rate[there] = (familiar_counts[there] + extra * familiar_counts.sum() / total) / (
            judged[there] + extra
        )
        training = self._training_share() * rate
        factor = self._factor(training, _density(ratings))
        below = there & ~np.isnan(factor) & (training <= (self.cap or 1))
        if not below.any():
            raise DataError(
                f"all items train on more than cap={self.cap or 1:g} of their liked judgments; the "
                f"least is {training[there].min():g}"
            )
        constant = float(factor[below].min())
        chance = np.divide(constant, factor, out=np.ones(judged.size), where=below & (factor > 0))
        facts = {
            "T": float(training[below].max()),
            "smoothing_used": extra,
            "factor": constant,
            "items_above_cap": int(np.count_nonzero(there & ~below)),
        }
        return chance, facts


def _density(ratings: Ratings) -> float:
    """Return which share of all pairs is judged."""
    return len(ratings) / (len(ratings.users) * len(ratings.items))
