"""`Split`, and what every way to split shares."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

import numpy as np
import polars as pl

from unskew.arrays import I64, Mask, frozen
from unskew.checks import as_count, check_fields, choose
from unskew.data.events import Events
from unskew.data.ratings import Ratings
from unskew.data.read.tables import column_hint
from unskew.engine.rng import DrawKeyed
from unskew.errors import DataError, SettingError, Spelling
from unskew.report.text import counted

OVERLAP = ("to-training", "to-test", "keep", "error")
"""Where pairs go that are in both parts: see `without_overlap`."""
UNLABELLED = "split"
"""The label of a split that states none; its splitter gives it another."""
VALIDATION = "validation"
"""The judgment set on which settings are chosen; see `Temporal`."""
SIZES = ("train", "test", "test_share", "left_out")
"""The facts that every split has."""


@dataclass(frozen=True, eq=False)
class Split:
    """Training and test ratings under the same ids, and how they came about.

    Examples
    --------
    Splitters make splits; two parts of the same ratings make one by hand.

    >>> import unskew as us
    >>> data = us.read_ratings({"user": [1, 1, 2, 2], "item": [7, 8, 8, 9]})
    >>> us.splits.LeaveOut(1).split(data, seed=1)
    [Split(leave-out: train 2, test 2)]
    >>> split = us.Split(data.take(data.item == 0), data.take(data.item > 0))
    >>> split, split.test.to_polars().rows()
    (Split(split: train 1, test 3), [(1, 8, 1.0), (2, 8, 1.0), (2, 9, 1.0)])
    """

    train: Ratings
    test: Ratings
    label: str = UNLABELLED
    """What tells it from its sisters, such as `fold1`."""
    facts: Mapping[str, Any] = field(default_factory=dict)
    """What was counted on the way, as plain values."""
    design: Mapping[str, Any] = field(default_factory=dict)
    """The settings and the seed from which it can be made again; its splitter states them."""
    judgments: Mapping[str, Ratings] = field(default_factory=dict)
    """Further sets to judge by, such as `validation`, or `observed` and `true`."""
    judged: Mask | None = None
    """Users who are judged: only these have target lists. None = all. Systems are trained on all
    ratings, and candidate items and interventions come from the test ratings of all users."""
    known: Mapping[str, Ratings] = field(default_factory=dict)
    """What users met before they were tested, beside the training ratings, by the set that judges
    (`test`, `validation`): such items are no targets, as training items are none."""
    logs: Mapping[str, Events] = field(default_factory=dict)
    """For judging step by step: the events of `train` and of `test`, in order of time. In that of
    `test` the tags `step` (from 1) and `target` say which place an event has in the sequence of its
    user, or of its `session`, and whether it is to be predicted."""

    def __post_init__(self) -> None:
        check_fields(self)
        if self.judged is not None:
            _check_judged(self.judged, len(self.train.users))

    @property
    def judged_test(self) -> Ratings:
        """The test ratings of the users who are judged."""
        return self.test if self.judged is None else self.test.take(self.judged[self.test.user])

    def judging(self, users: Mask | None) -> Split:
        """Return the split that judges only those of its users who are among some; None = all.

        Examples
        --------
        >>> import numpy as np
        >>> import unskew as us
        >>> shop = us.world("shop", users=60, items=20, density=0.3, seed=3).ratings
        >>> (split,) = us.splits.Random(test=0.2).split(shop, seed=1)
        >>> few = split.judging(np.arange(60) < 10)
        >>> len(few.test) == len(split.test), len(few.judged_test)
        (True, 9)
        """
        if users is None:
            return self
        judged = users if self.judged is None else frozen(users & self.judged)
        if not judged.any():
            raise SettingError(
                f"{self.label}: none of the users to be judged can be judged by this split; judge "
                "more users"
            )
        return replace(self, judged=judged)

    def judged_by(self, judgments: str) -> Split:
        """Return the split with another of its judgment sets as its test part.

        Parameters
        ----------
        judgments
            A name in `judgments`, such as `validation`; `test` for the split as it is.

        Examples
        --------
        >>> import unskew as us
        >>> rows = {"user": [1] * 5, "item": [1, 2, 3, 4, 5], "time": [1, 2, 3, 4, 5]}
        >>> splitter = us.splits.Temporal(test=0.2, validation=0.2)
        >>> (split,) = splitter.split(us.read_ratings(rows))
        >>> split.judged_by("validation").test.to_polars()["item"].to_list()
        [4]
        """
        if judgments == "test":
            return self
        test = self.judgments[choose("judgments", judgments, self.judgments)]
        earlier = {"test": self.known[judgments]} if judgments in self.known else {}
        return replace(self, test=test, known=earlier, logs={})

    def with_validation_in_train(self) -> Split:
        """Return the split for the final judgment: training and validation ratings train.

        The test part stays. Where the split was made with a gap, ratings in the gap before the
        validation part train neither here nor before; the same splitter without a validation part
        trains on them too.

        Examples
        --------
        >>> import unskew as us
        >>> data = us.read_ratings(
        ...     {"user": [1, 1, 1, 1, 1], "item": [1, 2, 3, 4, 5], "time": [1, 2, 3, 4, 5]}
        ... )
        >>> (split,) = us.splits.Temporal(test=0.2, validation=0.2).split(data)
        >>> split, split.with_validation_in_train()
        (Split(temporal: train 3, test 1, validation 1), Split(temporal: train 4, test 1))
        """
        if VALIDATION not in self.judgments:
            raise SettingError(
                f"{self.label}: there is no validation part; make one with "
                "splits.Temporal(validation=0.1)"
            )
        judgments = {name: part for name, part in self.judgments.items() if name != VALIDATION}
        train = union(self.train, self.judgments[VALIDATION])
        left_out = self.facts.get("left_out", 0) - (len(train) - len(self.train))
        facts = {**self.facts, **_sizes(train, self.test, left_out), "validation_in_train": True}
        earlier = {
            name: part.take(~shared_rows(part, train))
            for name, part in self.known.items()
            if name != VALIDATION
        }
        return replace(self, train=train, judgments=judgments, facts=facts, known=earlier)

    def __repr__(self) -> str:
        more = "".join(f", {name} {len(part):,}" for name, part in self.judgments.items())
        return f"Split({self.label}: train {len(self.train):,}, test {len(self.test):,}{more})"

    def _repr_html_(self) -> str:
        from unskew.report.notebook_view import card

        total = len(self.train) + len(self.test)
        facts = [
            ("training ratings", len(self.train)),
            ("test ratings", len(self.test)),
            ("test share", f"{len(self.test) / total:.1%}" if total else None),
            ("users", len(self.train.users)),
            ("judged users", None if self.judged is None else int(self.judged.sum())),
            ("items", len(self.train.items)),
            ("left out", self.facts.get("left_out") or None),
            *((f"judgments: {name}", len(part)) for name, part in self.judgments.items()),
            *((name, _short(value)) for name, value in self.design.items()),
        ]
        notes = tuple(dict.fromkeys((*self.train.notes, *self.test.notes)))
        hint = "us.splits.diagnose(split) looks for leaks and drift."
        return card("Split", self.label, facts, notes, hint)


def _check_judged(judged: Mask, users: int) -> None:
    """Refuse what marks no users."""
    is_mask = isinstance(judged, np.ndarray) and judged.dtype == np.bool_
    if not is_mask or judged.shape != (users,):
        text = f"{judged.dtype} of shape {judged.shape}" if is_mask else f"{judged!r}"
        raise SettingError(
            f"judged must be a mask with True or False for each of the {users:,} users, got {text}"
        )
    if not judged.any():
        raise SettingError("judged marks no user: mark at least one, or leave it out to judge all")


def _short(value: object) -> object:
    """Return a setting of a design in a cell; a nest of values as text."""
    return value if isinstance(value, bool | int | float | str) else str(value)


@dataclass(frozen=True)
class Splitter(DrawKeyed, ABC):
    """A way to split: frozen settings, and the splits they make of ratings.

    A way of your own is a subclass with one method, `make_splits`. Its settings are the fields of a
    frozen dataclass. See the documentation page "Extending".

    Examples
    --------
    >>> from dataclasses import dataclass
    >>> import unskew as us
    >>> @dataclass(frozen=True)
    ... class HighTest(us.splits.Splitter):
    ...     least: float = 5.0
    ...
    ...     def make_splits(self, ratings, seed):
    ...         high = ratings.value >= self.least
    ...         return us.Split(ratings.take(~high), ratings.take(high))
    >>> data = us.read_ratings({"user": [1, 1, 2], "item": [1, 2, 1], "rating": [5, 3, 4]})
    >>> HighTest().split(data)
    [Split(HighTest: train 2, test 1)]
    """

    name: ClassVar[str]
    """Its name on the command line and on cards; the name of the class unless stated."""
    draw_entry: ClassVar[str | None] = "protocol"
    null_only: ClassVar[bool] = False
    """Whether it has a meaning on null data only."""
    takes_events: ClassVar[bool] = False
    """Whether it splits an event log event by event; for others the events of each pair are counted
    first, which `Ratings.steps` records."""

    @abstractmethod
    def make_splits(self, ratings: Any, seed: int) -> Split | Iterable[Split]:
        """Return one split, or yield several: only one at a time needs to fit in memory.

        Parameters
        ----------
        ratings
            What to split. `ratings.take(mask)` gives a part under the same ids. An event log
            (`Events`) only where `takes_events` says so.
        seed
            Everything random must follow from it and from the ids of users and items.
        """

    def make_one(self, ratings: Any, number: int, seed: int) -> Split | None:
        """Return the split of this number, from 0, alone; None = it takes those before it.

        A way to split that makes many large splits says here how to make one of them.

        Parameters
        ----------
        ratings, seed
            As in `make_splits`.
        number
            Which split.
        """
        return None

    def each(self, ratings: Any, seed: int = 0) -> Iterator[Split]:
        """Make the splits one by one; each says how it was made and what was left out.

        Examples
        --------
        >>> import unskew as us
        >>> shop = us.world("shop", users=60, items=20, density=0.3, seed=3).ratings
        >>> for split in us.splits.Random(folds=2).each(shop, seed=1):
        ...     print(split.label, split.facts["test"])
        fold1 181
        fold2 173
        """
        ratings = self._accepted(ratings)
        result = self.make_splits(ratings, seed)
        splits = result if isinstance(result, Iterable) else [result]
        for number, split in enumerate(splits):
            yield self._stated(split, ratings, number, seed)

    def nth(self, ratings: Any, number: int, seed: int = 0) -> Split:
        """Make one of the splits, without those before it where that is possible.

        Parameters
        ----------
        ratings, seed
            As in `split`.
        number
            Which one, from 0.

        Examples
        --------
        >>> import unskew as us
        >>> shop = us.world("shop", users=60, items=20, density=0.3, seed=3).ratings
        >>> us.splits.Random(folds=2).nth(shop, 1, seed=1)
        Split(fold2: train 181, test 173)
        """
        accepted = self._accepted(ratings)
        split = self.make_one(accepted, as_count("number", number, 0), seed)
        if split is not None:
            return self._stated(split, accepted, number, seed)
        for index, candidate in enumerate(self.each(accepted, seed)):
            if index == number:
                return candidate
        raise SettingError(f"{self!r} does not make a split number {number + 1}")

    def _accepted(self, ratings: Any) -> Any:
        """Return what `make_splits` takes."""
        as_ratings = isinstance(ratings, Events) and not self.takes_events
        return ratings.to_ratings() if as_ratings else ratings

    def _stated(self, split: Split, ratings: Any, number: int, seed: int) -> Split:
        """Return a split that says how it was made and what was left out."""
        _check_parts(self, split)
        label = split.label
        if label == UNLABELLED:
            label = f"split{number + 1}" if number else self.title
        facts = split.facts
        if not facts.keys() >= set(SIZES):
            left_out = len(ratings) - len(split.train) - len(split.test)
            facts = {**_sizes(split.train, split.test, left_out), **facts}
        design = {**self.describe(), "seed": int(seed)}
        return replace(split, label=label, facts=facts, design=design)

    def split(self, ratings: Any, seed: int = 0) -> list[Split]:
        """Make all splits: folds or repetitions where there are several, else one.

        Parameters
        ----------
        ratings
            Ratings, or an event log (`read_events`).
        seed
            Same seed, same rows: on any machine and in any order of the input.

        Examples
        --------
        >>> import unskew as us
        >>> shop = us.world("shop", users=60, items=20, density=0.3, seed=3).ratings
        >>> [split.label for split in us.splits.Random(folds=3).split(shop, seed=1)]
        ['fold1', 'fold2', 'fold3']
        """
        return list(self.each(ratings, seed))

    def count(self, ratings: Any, seed: int = 0) -> int:
        """Return how many splits there are; makes them unless the settings tell.

        Examples
        --------
        >>> import unskew as us
        >>> shop = us.world("shop", users=60, items=20, density=0.3, seed=3).ratings
        >>> us.splits.Random(folds=2).count(shop)
        2
        """
        number = self.known_count()
        return sum(1 for _ in self.each(ratings, seed)) if number is None else number

    @property
    def title(self) -> str:
        """What it is called in tables and messages."""
        return self.name

    def _repr_html_(self) -> str:
        from unskew.report.notebook_view import settings_card

        return settings_card(type(self).__name__, "a way to split ratings", self)

    def known_count(self) -> int | None:
        """Return how many splits there are if the settings tell it; None = they must be made."""
        return None


def _check_parts(protocol: Splitter, split: Split) -> None:
    """Refuse what is no split of ratings under the same ids."""
    if not isinstance(split, Split):
        raise SettingError(
            f"{protocol.name}: make_splits must give us.Split(train, test), got {split!r}"
        )
    if not (
        split.train.users.equals(split.test.users) and split.train.items.equals(split.test.items)
    ):
        raise DataError(
            f"{protocol.name}: the two parts have different ids; make them with ratings.take(mask)"
        )
    for part, rows in (("training", split.train), ("test", split.test)):
        if not len(rows):
            raise empty(protocol, part, "no system can be trained or judged without")


def _sizes(train: Ratings, test: Ratings, left_out: int) -> dict[str, Any]:
    numbers = len(train), len(test), len(test) / (len(train) + len(test)), left_out
    return dict(zip(SIZES, numbers, strict=True))


def assemble(
    protocol: Splitter,
    train: Ratings,
    test: Ratings,
    label: str | None = None,
    *,
    hint: str,
    facts: Mapping[str, Any] | None = None,
    left_out: int = 0,
    judgments: Mapping[str, Ratings] | None = None,
) -> Split:
    """Put a split together; refuse one without training or test ratings, with a hint."""
    for part, rows in (("training", train), ("test", test)):
        if not len(rows):
            raise empty(protocol, part if label is None else f"{label} {part}", hint)
    return Split(
        train,
        test,
        label or protocol.name,
        facts={**_sizes(train, test, left_out), **(facts or {})},
        judgments=dict(judgments or {}),
    )


def by_mask(
    protocol: Splitter,
    ratings: Ratings,
    test: Mask,
    label: str | None = None,
    *,
    hint: str,
    facts: Mapping[str, Any] | None = None,
) -> Split:
    """Put the marked ratings in the test part and all others in training."""
    parts = ratings.take(~test), ratings.take(test)
    return assemble(protocol, *parts, label, hint=hint, facts=facts)


def empty(protocol: Splitter, part: str, hint: str) -> DataError:
    """Build the error for a part without ratings."""
    return DataError(f"{protocol.name}: the {part} part is empty; {hint}")


def union(ratings: Ratings, additions: Ratings) -> Ratings:
    """Return the ratings of both, under the same ids; of a pair in both, that of the first."""
    more = additions.take(~shared_rows(additions, ratings))
    times = [part.time for part in (ratings, more) if part.time is not None]
    names = [name for name in ratings.tags if name in more.tags]
    result = replace(
        ratings,
        user=frozen(np.concatenate([ratings.user, more.user])),
        item=frozen(np.concatenate([ratings.item, more.item])),
        value=frozen(np.concatenate([ratings.value, more.value])),
        time=frozen(np.concatenate(times)) if len(times) == 2 else None,
        tags={name: pl.concat([ratings.tags[name], more.tags[name]]) for name in names},
    )
    return result.in_order("error")


def shared_rows(ratings: Ratings, others: Ratings) -> Mask:
    """Tell which rows have their user and item in `others` too; both under the same ids."""
    from unskew.splits import kernels

    mark = kernels.shared(ratings.start, ratings.item, others.start, others.item)
    return mark.view(np.bool_)


def without_overlap(train: Ratings, test: Ratings, overlap: str) -> tuple[Ratings, Ratings, int]:
    """Settle the pairs that are in both parts; return both parts and how many there were.

    Parameters
    ----------
    train, test
        Under the same ids.
    overlap
        `to-training` takes them out of the test part, `to-test` out of the training part, `keep`
        leaves them in both, `error` refuses them.
    """
    choose("overlap", overlap, OVERLAP)
    again = shared_rows(test, train)
    number = int(np.count_nonzero(again))
    if number and overlap == "error":
        row = int(np.argmax(again))
        pair = (
            f"user {test.users.values[int(test.user[row])]!r}, "
            f"item {test.items.values[int(test.item[row])]!r}"
        )
        raise DataError(
            f"{counted(number, 'user-item pair is', 'user-item pairs are')} in both parts, the "
            f"first: {pair}; choose where they belong with ",
            Spelling(
                "overlap='to-training', 'to-test' or 'keep'",
                "--overlap to-training, to-test or keep",
            ),
        )
    if number and overlap == "to-training":
        test = test.take(~again)
    elif number and overlap == "to-test":
        train = train.take(~shared_rows(train, test))
    return train, test, number


def time_of(ratings: Ratings, what: str) -> I64:
    """Return the time stamps, or say that they are needed."""
    if ratings.time is None:
        raise DataError(
            f"{what} needs time stamps, and these ratings have none; name their column with ",
            column_hint("time"),
            ", or draw at random with ",
            Spelling("splits.Random or pick='random'", "--protocol random or --pick random"),
        )
    return ratings.time


def tag_of(ratings: Ratings, name: str, what: str) -> pl.Series:
    """Return a tag's column, or say which tags there are."""
    if name not in ratings.tags:
        there = ", ".join(ratings.tags) or "none"
        raise DataError(
            f"{what}: these ratings carry no tag {name!r} (tags: {there}); keep a column as a tag "
            f"with ",
            Spelling(f"read_ratings(…, tags=[{name!r}])", f"--column {name}"),
        )
    return ratings.tags[name]


def truth(column: pl.Series) -> Mask | None:
    """Return a column of true and false (as such or as text) as a mask; None if it is another."""
    if column.dtype == pl.String:
        words = column.str.to_lowercase()
        if words.is_in(["true", "false"]).all():
            column = words == "true"
    return column.to_numpy() if column.dtype == pl.Boolean and not column.null_count() else None
