"""How often intervals miss where users are cloned, with and without groups; how often a note comes.

    python benchmarks/clone_coverage.py                        # both parts, 1,000 and 480 data sets
    python benchmarks/clone_coverage.py --repeats 200 coverage # one part, quicker

Plain numpy draws people, and copies each of 100 people to five accounts that share nine in ten of
their ratings; no world of the library. `coverage`: two systems list ten items for each account; the
truth is the mean over accounts of new people, from 200,000 of them. `notes`: how often data of
twelve shapes are said to hold near-duplicates, with people alone and with people copied. Results go
to build/clone-coverage.json. The standard error of a coverage of 95 % is 0.7 points with 1,000 data
sets.
"""

from __future__ import annotations

import argparse
import json
import time
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

import unskew as us
from unskew.splits.duplicate_users import DuplicateAccounts

SEED = 41_000
PEOPLE, COPIES, SHARED = 100, 5, 0.9
ITEMS, GENRES, K, LIKED = 300, 12, 10, 4
TEST = 0.4
"""The share of the ratings of a person that is tested: the last ones."""
TRUE_PEOPLE = 200_000

Integers = NDArray[np.int64]
Floats = NDArray[np.float64]


# Coverage


@dataclass(frozen=True)
class Catalogue:
    """The items of all data sets: one draw, which all systems know."""

    genre: Integers
    weight: Floats
    quality: Floats

    @classmethod
    def draw(cls) -> Catalogue:
        """Return genres, how often items are rated, and how good they are."""
        rng = np.random.default_rng(SEED)
        weight = (1.0 + rng.permutation(ITEMS)) ** -0.6
        return cls(rng.integers(0, GENRES, ITEMS), weight, rng.normal(0, 0.4, ITEMS))


@dataclass(frozen=True)
class Accounts:
    """Stars of accounts x items, 0 where not rated; and which are tested."""

    stars: Integers
    is_test: NDArray[np.bool_]
    household: Integers


def people(rng: np.random.Generator, catalogue: Catalogue, number: int) -> tuple[Integers, Floats]:
    """Return the stars of people x items, and when each item is rated (0 to 1).

    A person likes some genres and rates 25 to 75 items, mostly of these, popular ones more often.
    """
    taste = rng.gamma(0.5, 1.0, (number, GENRES))
    taste /= taste.mean(axis=1, keepdims=True)
    habit = rng.normal(0, 0.4, number)
    chance = catalogue.weight * (0.3 + taste[:, catalogue.genre])
    order = np.argsort(rng.exponential(1.0, (number, ITEMS)) / chance, axis=1)
    rank = np.empty_like(order)
    np.put_along_axis(rank, order, np.arange(ITEMS)[None], axis=1)
    is_rated = rank < rng.integers(25, 76, number)[:, None]
    liking = 2.6 + 0.7 * np.sqrt(taste[:, catalogue.genre]) + catalogue.quality + habit[:, None]
    stars = np.clip(np.rint(liking + rng.normal(0, 0.7, chance.shape)), 1, 5).astype(np.int64)
    return np.where(is_rated, stars, 0), rng.random(chance.shape)


def copied(
    rng: np.random.Generator, stars: Integers, when: Floats, copies: int
) -> tuple[Integers, Floats, Integers]:
    """Return accounts: each drops a tenth of the ratings of its person and has as many others."""
    household = np.repeat(np.arange(len(stars)), copies)
    mine, at = stars[household].copy(), when[household]
    dropped = (mine > 0) & (rng.random(mine.shape) > SHARED)
    number = dropped.sum(axis=1)
    lottery = np.where(mine > 0, np.inf, rng.random(mine.shape))
    rank = np.argsort(np.argsort(lottery, axis=1), axis=1)
    mine = np.where(rank < number[:, None], rng.integers(1, 6, mine.shape), mine)
    return np.where(dropped, 0, mine), at, household


def accounts_of(
    rng: np.random.Generator, catalogue: Catalogue, number: int, copies: int
) -> Accounts:
    """Return accounts of new people."""
    stars, when, household = copied(rng, *people(rng, catalogue, number), copies)
    return Accounts(stars, (when > 1 - TEST) & (stars > 0), household)


def lists_of(catalogue: Catalogue, accounts: Accounts) -> dict[str, Integers]:
    """Return what two systems list: popular items, and popular items of the genres liked so far."""
    train = np.where(accounts.is_test, 0, accounts.stars)
    is_known = train > 0
    likes = np.zeros((len(train), GENRES))
    for genre in range(GENRES):
        likes[:, genre] = (train[:, catalogue.genre == genre] >= LIKED).sum(axis=1)
    scores = {
        "popular": np.broadcast_to(catalogue.weight, train.shape),
        "taste": catalogue.weight * (1.0 + likes[:, catalogue.genre]),
    }
    return {
        name: np.argsort(np.where(is_known, np.inf, -score), axis=1, kind="stable")[:, :K]
        for name, score in scores.items()
    }


def plain_values(accounts: Accounts, lists: dict[str, Integers]) -> Floats:
    """Return P@10 of accounts x systems; NaN for accounts without test ratings."""
    liked = accounts.is_test & (accounts.stars >= LIKED)
    hits = [np.take_along_axis(liked, items, axis=1).mean(axis=1) for items in lists.values()]
    values = np.stack(hits, axis=1)
    values[~accounts.is_test.any(axis=1)] = np.nan
    return values


def true_difference(catalogue: Catalogue) -> float:
    """Return the mean over accounts of new people of what `popular` is ahead of `taste`."""
    rng, total, count = np.random.default_rng([SEED, 1]), 0.0, 0
    for _ in range(TRUE_PEOPLE // 10_000):
        accounts = accounts_of(rng, catalogue, 10_000, 1)
        values = plain_values(accounts, lists_of(catalogue, accounts))
        difference = values[:, 0] - values[:, 1]
        total += float(np.nansum(difference))
        count += int(np.count_nonzero(~np.isnan(difference)))
    return total / count


def judged_of(accounts: Accounts, lists: dict[str, Integers]) -> us.judging.Judged:
    """Lay lists over test ratings, with training ratings, as a user of the library does."""
    user, item = np.nonzero(accounts.stars)
    value, is_test = accounts.stars[user, item], accounts.is_test[user, item]
    parts = [
        {"user": user[mask], "item": item[mask], "rating": value[mask]}
        for mask in (is_test, ~is_test)
    ]
    numbers = np.arange(len(accounts.stars))
    runs = {name: us.Run.from_arrays(numbers, items) for name, items in lists.items()}
    return us.judge(parts[0], runs, train=parts[1], liked=LIKED)


def coverage(repeats: int) -> dict[str, float]:
    """Return how often intervals of the difference hold the truth, and how often a note comes."""
    catalogue = Catalogue.draw()
    truth = true_difference(catalogue)
    counts = dict.fromkeys(("plain", "stated", "detected", "people", "note", "clean note"), 0)
    kinds = {"plain": None, "stated": None, "detected": "detected"}
    for repeat in range(repeats):
        rng = np.random.default_rng([SEED, 2, repeat])
        accounts = accounts_of(rng, catalogue, PEOPLE, COPIES)
        judged = judged_of(accounts, lists_of(catalogue, accounts))
        kinds["stated"] = dict(enumerate(accounts.household.tolist()))
        for kind, groups in kinds.items():
            answer = compared(judged, groups)
            counts[kind] += holds(answer, truth)
            counts["note"] += kind == "plain" and has_note(answer)
        alone = accounts_of(rng, catalogue, PEOPLE * COPIES, 1)
        answer = compared(judged_of(alone, lists_of(catalogue, alone)), None)
        counts["people"] += holds(answer, truth)
        counts["clean note"] += has_note(answer)
    return {"truth": truth, **{name: count / repeats for name, count in counts.items()}}


def compared(judged: us.judging.Judged, groups: object) -> us.report.Estimates:
    """Return the difference of the two systems; p-values are not looked at."""
    return us.compare(judged, "P@10", group_users=groups, test="t")


def holds(answer: us.report.Estimates, truth: float) -> bool:
    """Tell whether the interval of the difference holds the truth."""
    _, low, high = answer.pair("popular", "taste").estimate
    return low <= truth <= high


def has_note(answer: us.report.Estimates) -> bool:
    """Tell whether near-duplicates are mentioned."""
    return any("near-duplicate accounts" in note for note in answer.notes)


# Notes


@dataclass(frozen=True)
class Shape:
    """How ratings of people are drawn."""

    users: int = 500
    items: int = 300
    fewest: int = 25
    most: int = 75
    popularity: float = 0.0
    has_stars: bool = True
    genres: int = 0
    pull: float = 0.0
    """So many times as often a person rates an item of the own genre."""
    series: int = 0
    """Items come in so many series of ten; who follows a series rates nine in ten of them."""


SHAPES = {
    "uniform": Shape(),
    "popular": Shape(popularity=1.1),
    "sparse": Shape(users=800, items=5_000, fewest=10, most=40, popularity=0.8),
    "dense": Shape(users=300, items=120, fewest=40, most=100, popularity=0.5),
    "implicit": Shape(items=1_000, popularity=0.9, has_stars=False),
    "implicit-uniform": Shape(has_stars=False),
    "genres": Shape(items=1_000, genres=12, pull=15.0),
    "implicit-genres": Shape(items=1_000, genres=12, pull=15.0, has_stars=False),
    "series": Shape(items=400, fewest=2, most=24, popularity=0.8, series=120),
    "implicit-series": Shape(
        items=400, fewest=2, most=24, popularity=0.8, series=120, has_stars=False
    ),
    "short": Shape(users=1_000, items=400, fewest=5, most=20, popularity=0.8),
    "large": Shape(users=3_000, items=3_000, fewest=15, most=120, popularity=1.0),
}


def drawn(shape: Shape, rng: np.random.Generator) -> list[tuple[Integers, Integers]]:
    """Return items and stars of each person."""
    weight = (1.0 + np.arange(shape.items)) ** -shape.popularity
    genre = rng.integers(0, max(shape.genres, 1), shape.items)
    follows = (1.0 + np.arange(max(shape.series, 1))) ** -0.7
    every = shape.items + 10 * shape.series
    quality, persons = rng.normal(0, 0.6, every), []
    for _ in range(shape.users):
        chance = weight
        if shape.genres:
            chance = weight * np.where(genre == rng.integers(shape.genres), shape.pull, 1.0)
        number = rng.integers(shape.fewest, shape.most + 1)
        items = rng.choice(shape.items, number, replace=False, p=chance / chance.sum())
        if shape.series:
            followed = rng.choice(
                shape.series, rng.integers(1, 5), replace=False, p=follows / follows.sum()
            )
            episodes = shape.items + 10 * followed[:, None] + np.arange(10)
            items = np.append(items, episodes[rng.random(episodes.shape) < 0.9])
        stars = np.clip(np.rint(3.5 + quality[items] + rng.normal(0, 1, items.size)), 1, 5)
        persons.append((items, stars.astype(np.int64) if shape.has_stars else np.ones_like(items)))
    return persons


def clones_of(
    persons: list[tuple[Integers, Integers]], rng: np.random.Generator
) -> list[tuple[Integers, Integers]]:
    """Return five accounts of each of a hundred people, nine in ten ratings shared."""
    every = np.unique(np.concatenate([items for items, _ in persons]))
    values = np.concatenate([stars for _, stars in persons])
    accounts = []
    for person in rng.permutation(len(persons))[:PEOPLE]:
        items, stars = persons[person]
        for _ in range(COPIES):
            keep = rng.random(items.size) < SHARED
            more = rng.choice(np.setdiff1d(every, items), int((~keep).sum()), replace=False)
            new = rng.choice(values, more.size)
            accounts.append((np.append(items[keep], more), np.append(stars[keep], new)))
    return accounts


def is_noted(accounts: list[tuple[Integers, Integers]]) -> bool:
    """Tell whether near-duplicates are mentioned."""
    user = np.repeat(np.arange(len(accounts)), [items.size for items, _ in accounts])
    item, value = (np.concatenate(column) for column in zip(*accounts, strict=True))
    ratings = us.read_ratings({"user": user, "item": item, "rating": value})
    return bool(DuplicateAccounts.of(ratings).notes())


def notes(repeats: int) -> dict[str, dict[str, float]]:
    """Return by shape how often near-duplicates are mentioned, of people and of copied people."""
    result = {}
    for number, (name, shape) in enumerate(SHAPES.items()):
        clean = cloned = 0
        for repeat in range(repeats):
            rng = np.random.default_rng([SEED, 3, number, repeat])
            persons = drawn(shape, rng)
            clean += is_noted(persons)
            cloned += is_noted(clones_of(persons, rng))
        result[name] = {"clean": clean / repeats, "cloned": cloned / repeats}
    return result


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("parts", nargs="*", default=["coverage", "notes"])
    parser.add_argument("--repeats", type=int, default=1_000)
    arguments = parser.parse_args()
    result: dict[str, object] = {}
    for part in arguments.parts:
        begin = time.perf_counter()
        if part == "coverage":
            result[part] = coverage(arguments.repeats)
        else:
            result[part] = notes(max(arguments.repeats // 25, 1))
        print(part, json.dumps(result[part], indent=1), f"{time.perf_counter() - begin:.0f} s")
    path = Path("build/clone-coverage.json")
    path.parent.mkdir(exist_ok=True)
    path.write_text(json.dumps(result, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
