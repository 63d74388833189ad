"""Checks of a user's own algorithms and ways to split: the same that ours pass.

Each check raises AssertionError, and says what was expected and what came.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from dataclasses import FrozenInstanceError, fields, replace
from typing import Any

import numpy as np
import polars as pl

from unskew.arrays import F64
from unskew.data.ratings import Ids, Ratings
from unskew.data.read.ratings_files import read_ratings
from unskew.engine.rng import DrawKeyed
from unskew.engine.threads import exactly
from unskew.errors import DataError, SettingError
from unskew.experiment.plan import Custom
from unskew.experiment.tune import candidates
from unskew.judging.rank import rank
from unskew.recommend.model import Algorithm, Model
from unskew.splits.given import Custom as CustomSplit
from unskew.splits.split import Split, Splitter
from unskew.targets.designs import AllItems

THREADS = (1, 2, 2)
"""The numbers of threads that must give the same bits."""


def check_algorithm(
    algorithm: Algorithm | Callable[..., Any],
    train: Ratings | None = None,
    *,
    cold_is_nan: bool = False,
    odd_data: bool = True,
) -> None:
    """Check that an algorithm keeps the contract that every algorithm of unskew keeps.

    Settings are frozen, can be printed and stand on cards as plain values; `fit` refuses empty
    data, leaves the training ratings as they are, and gives the same bits for the same seed on any
    number of threads; the model gives a new array with a row per user and a column per item, NaN
    where it cannot score and never infinity; ranked lists leave training items out. Odd data (one
    rating, one user, one item, equal ratings, zeros) are survived. A grid that it declares
    (`tuning`) holds two settings or more, those of the object among them, and each can be trained.

    Parameters
    ----------
    algorithm
        An object of a subclass of `us.recommend.Algorithm`, or a function of training ratings and
        a numpy generator, as `us.experiment.Custom` takes it.
    train
        Training ratings to check it on; some are made up unless given.
    cold_is_nan
        Also demand NaN for users and for items without training ratings. A personalised algorithm
        should give it; popularity and the like can score everyone.
    odd_data
        Whether to try odd data too.

    Raises
    ------
    AssertionError
        Saying what is wrong.

    Examples
    --------
    >>> import unskew as us
    >>> us.testing.check_algorithm(us.recommend.ItemKNN(k=5), cold_is_nan=True)
    """
    subject = algorithm if isinstance(algorithm, Algorithm) else Custom("checked", algorithm)
    _check_settings(subject)
    ratings = _some_ratings() if train is None else train
    _check_refuses_empty(subject, ratings)
    _check_model(subject, ratings)
    _check_bits(subject, ratings)
    if subject.tuning:
        _check_grid(subject, _some_ratings(users=60) if train is None else train)
    if cold_is_nan:
        _check_cold(subject, ratings)
    for name, rows in _odd_data().items() if odd_data else ():
        scores = _scores(subject.fit(rows, 3), rows)
        _demand(not np.isinf(scores).any(), f"{subject!r} gives infinite scores on {name}")


def check_splitter(
    splitter: Splitter | Callable[..., Any],
    ratings: Ratings | None = None,
    *,
    draws: bool | None = None,
) -> None:
    """Check that a way to split keeps the contract that every one of unskew keeps.

    Settings are frozen, can be printed and stand on cards as plain values; both parts are under the
    same ids and have no pair in common; no rating is lost or invented, and what is left out is
    counted; the same seed gives the same rows, in any order of the input; facts and design are
    plain values; splits can be made one by one, and `count` says how many there are.

    Parameters
    ----------
    splitter
        An object of a subclass of `us.splits.Splitter`, or a function of ratings and a seed that
        returns a `us.Split` or several.
    ratings
        Ratings to check it on; some with times and tags (`familiar`, `fold`) are made up unless
        given.
    draws
        Whether another seed must give other rows (True) or the same (False); None = either.

    Raises
    ------
    AssertionError
        Saying what is wrong.

    Examples
    --------
    >>> import unskew as us
    >>> us.testing.check_splitter(us.splits.PerUser(test=0.5), draws=True)
    """
    subject = splitter if isinstance(splitter, Splitter) else CustomSplit("checked", splitter)
    _check_settings(subject)
    data = _tagged_ratings() if ratings is None else ratings
    splits = subject.split(data, 3)
    _demand(len(splits) > 0, f"{subject!r} makes no split")
    for split in splits:
        _check_parts(subject, split, data)
        _check_facts(subject, split)
    tables = _tables(splits)
    _demand(
        _tables(subject.each(data, 3)) == tables, f"{subject!r}: the same seed gives other rows"
    )
    _demand(
        subject.count(data, 3) == len(splits), f"{subject!r}: count is not the number of splits"
    )
    mixed = _tables(subject.split(_shuffled(data), 3))
    _demand(mixed == tables, f"{subject!r}: rows in another order give another split")
    if draws is not None:
        same = _rows(subject.split(data, 4)) == _rows(splits)
        word = "the same" if same else "other"
        _demand(same != draws, f"{subject!r}: another seed gives {word} rows")


def _demand(holds: bool, what: str) -> None:
    if not holds:
        raise AssertionError(what)


def _check_settings(part: DrawKeyed) -> None:
    """Check that settings are frozen, printable and plain on cards and in seeds."""
    _demand(bool(repr(part)), f"{type(part).__name__} prints as nothing")
    for card in (part.describe(), part.draw_key):
        try:
            text = json.dumps(card, allow_nan=False)
        except (TypeError, ValueError) as problem:
            raise AssertionError(f"{part!r}: no card can hold its settings: {problem}") from None
        _demand("<" not in text or "object at" not in text, f"{part!r}: {text} names no value")
    for field in fields(part):  # type: ignore[arg-type]
        try:
            setattr(part, field.name, getattr(part, field.name))
        except (FrozenInstanceError, AttributeError):
            continue
        raise AssertionError(f"{part!r}: {field.name} can be changed; use @dataclass(frozen=True)")


# Algorithms


def _scores(model: Model, train: Ratings) -> F64:
    everyone = np.arange(len(train.users), dtype=np.int32)
    return np.asarray(model.score(everyone), np.float64)


def _check_refuses_empty(algorithm: Algorithm, train: Ratings) -> None:
    try:
        algorithm.fit(train.take(np.zeros(len(train), np.bool_)), 3)
    except DataError:
        return
    raise AssertionError(f"{algorithm!r} fits no training ratings at all; a DataError is expected")


def _check_model(algorithm: Algorithm, train: Ratings) -> None:
    """Check what a model gives, and that the training ratings stay."""
    before = [part.tobytes() for part in (train.user, train.item, train.value)]
    model = algorithm.fit(train, 3)
    _demand(
        isinstance(model, Model), f"{algorithm!r} gives {type(model).__name__}, which has no score"
    )
    first = _scores(model, train)
    shape = len(train.users), len(train.items)
    _demand(first.shape == shape, f"{algorithm!r} gives scores of shape {first.shape}, not {shape}")
    _demand(not np.isinf(first).any(), f"{algorithm!r} gives infinite scores")
    again = _scores(model, train)
    _demand(
        first.tobytes() == again.tobytes(), f"{algorithm!r} gives other scores when asked again"
    )
    after = [part.tobytes() for part in (train.user, train.item, train.value)]
    _demand(before == after, f"{algorithm!r} changes the training ratings")


def _check_bits(algorithm: Algorithm, train: Ratings) -> None:
    """Check that bits follow from the seed alone, and that training items are not ranked."""
    lists = AllItems().lists(Split(train, train.take(np.zeros(len(train), np.bool_))), liked=1)
    bits = set()
    for threads in THREADS:
        with exactly(threads):
            model = algorithm.fit(train, 3)
            run = rank(model, lists, 10, threads=threads)
        bits.add(
            (_scores(model, train).tobytes(), run.item.tobytes(), np.asarray(run.score).tobytes())
        )
    _demand(len(bits) == 1, f"{algorithm!r} gives other bits with the same seed")
    rated = set(zip(train.user.tolist(), train.item.tolist(), strict=True))
    ranked = set(zip(np.repeat(lists.user, run.depth).tolist(), run.item.tolist(), strict=True))
    _demand(not rated & ranked, f"{algorithm!r}: a training item is ranked")


def _check_grid(algorithm: Algorithm, train: Ratings) -> None:
    """Check that each setting of a declared grid makes an algorithm that can be trained."""
    try:
        settings_of_grid = candidates(algorithm)
    except SettingError as problem:
        raise AssertionError(f"{algorithm!r}: tuning cannot be used: {problem}") from None
    _demand(
        len(settings_of_grid) > 1,
        f"{algorithm!r}: tuning has no settings beside those it has: {algorithm.tuning}",
    )
    for settings in settings_of_grid:
        try:
            model = replace(algorithm, **settings).fit(train, 3)
        except (DataError, SettingError) as problem:
            raise AssertionError(
                f"{algorithm!r}: {settings} cannot be trained: {problem}"
            ) from None
        infinite = bool(np.isinf(_scores(model, train)).any())
        _demand(not infinite, f"{algorithm!r}: {settings} gives infinite scores")


def _check_cold(algorithm: Algorithm, train: Ratings) -> None:
    """Check that users and items without ratings have no score."""
    users, items = len(train.users), len(train.items)
    grown = train.recode(
        Ids(pl.Series(np.arange(users + 2))),
        np.arange(users, dtype=np.int32),
        Ids(pl.Series(np.arange(items + 2))),
        np.arange(items, dtype=np.int32),
    )
    scores = _scores(algorithm.fit(grown, 3), grown)
    _demand(bool(np.isnan(scores[users:]).all()), f"{algorithm!r} scores users without ratings")
    _demand(bool(np.isnan(scores[:, items:]).all()), f"{algorithm!r} scores items without ratings")


def _numbered(rows: Iterable[tuple[int, int, float]]) -> Ratings:
    user, item, rating = zip(*rows, strict=True)
    # In no order of users and items: some algorithms look at time.
    time = [1_600_000_000 + 3_600 * ((7 * n) % 101) for n in range(len(user))]
    columns = {"user": user, "item": item, "rating": rating, "time": time}
    return read_ratings({name: list(column) for name, column in columns.items()})


def _some_ratings(users: int = 300, items: int = 40, each: int = 8) -> Ratings:
    """Return ratings of two groups of users, more than are scored at a time."""
    rng = np.random.default_rng(1)
    number = np.arange(items)
    return _numbered(
        (user, int(item), float(rng.integers(1, 6)))
        for user in range(users)
        for item in rng.choice(number[number % 2 == user % 2], each, replace=False)
    )


def _odd_data() -> dict[str, Ratings]:
    pairs = [(user, item) for user in range(6) for item in range(6)]
    return {
        "one rating": _numbered([(0, 0, 4.0)]),
        "one user": _numbered((0, item, 1.0 + item % 5) for item in range(6)),
        "one item": _numbered((user, 0, 1.0 + user % 5) for user in range(6)),
        "equal ratings": _numbered((u, i, 3.0) for u, i in pairs if (u + 2 * i) % 3),
        "ratings of 1": _numbered((u, i, 1.0) for u, i in pairs if (u * i) % 4 != 1),
        "zeros": _numbered((u, i, float((u + i) % 3)) for u, i in pairs if (u + i) % 4),
    }


# Ways to split


def _tagged_ratings(users: int = 60, items: int = 20) -> Ratings:
    """Return ratings with everything that a way to split may ask for."""
    rng = np.random.default_rng(0)
    user, item = np.nonzero(rng.random((users, items)) < 0.8 * np.linspace(1, 0.1, items))
    columns = {
        "user": [f"u{number}" for number in user],
        "item": item,
        "rating": rng.integers(1, 6, user.size),
        "time": rng.integers(0, user.size // 2, user.size),
        "familiar": rng.random(user.size) < 0.4,
        "fold": rng.integers(1, 4, user.size),
    }
    return read_ratings(pl.DataFrame(columns), tags=["familiar", "fold"])


def _shuffled(ratings: Ratings) -> Ratings:
    """Return the same ratings, read from rows in another order."""
    frame = ratings.to_polars().sample(fraction=1, shuffle=True, seed=5)
    if ratings.implicit:
        frame = frame.drop("rating")
    return read_ratings(frame, tags=list(ratings.tags))


def _pairs(part: Ratings) -> dict[tuple[Any, Any], float]:
    user, item = part.users.raw(part.user).to_list(), part.items.raw(part.item).to_list()
    return dict(zip(zip(user, item, strict=True), part.value.tolist(), strict=True))


def _check_parts(splitter: Splitter, split: Split, data: Ratings) -> None:
    """Check that nothing is lost, invented or in both parts."""
    settings = [getattr(splitter, field.name) for field in fields(splitter)]
    sources = [data, *(value for value in settings if isinstance(value, Ratings))]
    train, test = _pairs(split.train), _pairs(split.test)
    _demand(not train.keys() & test.keys(), f"{splitter!r}: a pair is in both parts")
    # Events are counted or added up: then pairs are kept, not values.
    pairs = {pair for source in sources for pair in _pairs(source)}
    _demand(train.keys() | test.keys() <= pairs, f"{splitter!r}: a pair is invented")
    total = sum(map(len, sources))
    counted = len(train) + len(test) + split.facts["left_out"]
    _demand(
        counted == total, f"{splitter!r}: of {total} ratings {counted} are in a part or left out"
    )


def _check_facts(splitter: Splitter, split: Split) -> None:
    """Check that a card can hold what a split says of itself."""
    try:
        card = json.loads(json.dumps([dict(split.facts), dict(split.design)], allow_nan=False))
    except (TypeError, ValueError) as problem:
        raise AssertionError(f"{splitter!r} has facts that no card can hold: {problem}") from None
    _demand(
        card[1]["protocol"] == splitter.name, f"{splitter!r}: the design names another protocol"
    )
    sizes = split.facts["train"], split.facts["test"]
    _demand(
        sizes == (len(split.train), len(split.test)), f"{splitter!r}: the facts tell other sizes"
    )


def _rows(splits: Iterable[Split]) -> list[Any]:
    return [
        [part.to_polars().rows() for part in (split.train, split.test, *split.judgments.values())]
        for split in splits
    ]


def _tables(splits: Iterable[Split]) -> list[Any]:
    made_splits = list(splits)
    labels = [(split.label, dict(split.facts), list(split.judgments)) for split in made_splits]
    return [labels, _rows(made_splits)]
