"""Data on which libraries were measured, laid for conventions."""

import sys
from functools import cache

from shared import ROOT
from unskew.conventions.laying import lay

sys.path.insert(0, str(ROOT / "benchmarks" / "conventions"))
from fixtures import FIXTURES

sys.path.pop(0)


def rows_of(fixture):
    """Return a fixture as judgments and a table of scored items, in the order of its lists."""
    judgments = [
        (user, item, rating)
        for user, judged in fixture["judgments"].items()
        for item, rating in judged.items()
    ]
    listed = [
        (user, item, score)
        for user, items in fixture["lists"].items()
        for item, score in zip(items, scores_of(fixture, user), strict=True)
    ]
    return judgments, listed


def scores_of(fixture, user):
    """Return the score of each place; an item that a list has twice falls with its place."""
    items, scores = fixture["lists"][user], fixture["scores"][user]
    if len(set(items)) < len(items):
        return [float(len(items) - place) for place in range(len(items))]
    return [scores[item] for item in items]


def columns(rows, names):
    return dict(zip(names, map(list, zip(*rows, strict=True)), strict=True))


@cache
def laid_fixture(name):
    fixture = FIXTURES[name]()
    judgments, listed = rows_of(fixture)
    return lay(
        columns(judgments, ("user", "item", "rating")),
        {"run": columns(listed, ("user", "item", "score"))},
        liked=fixture["threshold"],
    )
