"""Data on which libraries are measured: the same in every environment, plain Python 3.8 and up.

A fixture has `judgments` (user to item to rating), `lists` (user to items, best first), `scores`
(user to item to score, larger is better; where it has ties, `lists` are in the order in which rows
are given) and `threshold`, from which on a rating is liked. Users are texts, items whole numbers.

- small: six users, each a special case (no list, no judgment, nothing liked, a short list, more
  liked items than places).
- stars: 60 users, half stars, lists of 3 to 15 items; the same special cases among them.
- clean: 150 users, whole ratings, lists of 20; everybody has a list and a liked item.
- tied: as stars with whole ratings, with equal scores within lists.
- twice: as clean with 40 users; every third list has an item twice.
"""

from __future__ import annotations

import random

SMALL_JUDGMENTS = {
    "u1": {1: 5, 2: 4, 3: 4, 4: 2, 5: 5, 6: 1},
    "u2": {1: 4, 7: 3, 8: 2},
    "u3": {2: 3, 9: 1},
    "u4": {3: 5, 4: 4, 5: 4, 6: 4, 7: 5, 8: 4, 10: 5},
    "u5": {1: 5, 2: 2},
}
SMALL_LISTS = {
    "u1": [4, 1, 11, 5, 12, 13, 2, 14],
    "u2": [7, 11, 1],
    "u3": [2, 11, 12, 13, 14],
    "u4": [3, 4, 5, 9, 6, 11, 7],
    "u6": [1, 2, 3],
}
CUTOFFS = (3, 5, 10)


def falling(lists):
    """Return scores that fall with the rank, without ties."""
    return {
        user: {item: float(len(items) - place) for place, item in enumerate(items)}
        for user, items in lists.items()
    }


def drawn(seed, users, ratings, lengths, special):
    """Return judgments and lists: lists lean to judged items, liked ones first."""
    rng = random.Random(seed)
    judgments, lists = {}, {}
    for number in range(1, users + 1):
        user = f"u{number:03d}"
        rated = rng.sample(range(1, 81), rng.randint(4, 18))
        judgments[user] = {item: rng.choice(ratings) for item in rated}
        others = [item for item in range(1, 121) if item not in judgments[user]]
        pool = rng.sample(rated, (2 * len(rated)) // 3) + rng.sample(others, 25)

        appeal = {item: judgments[user].get(item, 2.5) + rng.gauss(0, 2) for item in pool}
        lists[user] = sorted(pool, key=appeal.get, reverse=True)[: rng.randint(*lengths)]
        if special and number % 11 == 0:
            del lists[user]
        if special and number % 13 == 0:
            judgments[user] = {item: min(r, 3) for item, r in judgments[user].items()}
        if special and number % 17 == 0:
            del judgments[user]
        if not special and max(judgments[user].values()) < 4:
            judgments[user][rated[0]] = 5
    return judgments, lists


def small():
    return fixture(SMALL_JUDGMENTS, SMALL_LISTS)


def stars():
    halves = [step / 2 for step in range(1, 11)]
    return fixture(*drawn(11, 60, halves, (3, 15), special=True))


def clean():
    return fixture(*drawn(12, 150, [1, 2, 3, 4, 5], (20, 20), special=False))


def tied():
    judgments, lists = drawn(13, 60, [1, 2, 3, 4, 5], (3, 15), special=True)
    scores = {
        user: {item: float((len(items) - place + 2) // 3) for place, item in enumerate(items)}
        for user, items in lists.items()
    }
    return fixture(judgments, lists, scores)


def twice():
    judgments, lists = drawn(14, 40, [1, 2, 3, 4, 5], (15, 15), special=False)
    for number, items in enumerate(lists.values()):
        if number % 3 == 0:
            items[number % 4 + 2] = items[number % 2]
    return fixture(judgments, lists)


def fixture(judgments, lists, scores=None):
    return {
        "judgments": judgments,
        "lists": lists,
        "scores": falling(lists) if scores is None else scores,
        "threshold": 4,
    }


FIXTURES = {"small": small, "stars": stars, "clean": clean, "tied": tied, "twice": twice}


def liked_only(judgments, threshold):
    """Return the liked judgments, and only users who have any."""
    kept = {
        user: {item: rating for item, rating in judged.items() if rating >= threshold}
        for user, judged in judgments.items()
    }
    return {user: judged for user, judged in kept.items() if judged}
