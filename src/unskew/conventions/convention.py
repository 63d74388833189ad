"""`Convention`: every choice that turns ranked lists and judgments into one number.

Two libraries that print the same name for different numbers differ in one of these choices (an
*axis*). The default of each axis is what `evaluate` does.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from functools import cache

from unskew.checks import choose
from unskew.data.relevance import DEFAULT_GAIN

METRICS = (
    "P",
    "Recall",
    "F1",
    "AP",
    "MeanP",
    "nDCG",
    "DCG",
    "RR",
    "ARHR",
    "NCRR",
    "HitRate",
    "Hits",
    "Rprec",
)
"""Metrics whose conventions are known here; all others of a library are metrics of ours."""
GRADED = ("nDCG", "DCG")
COMMON = ("nDCG", "Recall", "P", "AP", "RR", "HitRate")
"""Metrics that papers print most."""
OTHER_NAMES = ("MAP", "MRR", "HR")
"""Usual names of some of them."""
WITHOUT_CUTOFF = ("Rprec",)
"""Metrics that set their cutoff by themselves."""
OF_MEANS = ("F1",)
"""Metrics that can be computed from means of others."""
NEAREST = {"MeanP": "AP", "ARHR": "RR", "NCRR": "RR", "Hits": "HitRate"}
"""By metric that unskew does not have: the nearest one that it has."""


@dataclass(frozen=True)
class Axis:
    """A choice: what it decides, its options in words, and the metrics that it can change."""

    question: str
    options: Mapping[str, str]
    """By name, in words; the first is what `evaluate` does unless told otherwise."""
    metrics: tuple[str, ...] = METRICS

    @property
    def default(self) -> str:
        """The option that `evaluate` takes."""
        return next(iter(self.options))


AXES: dict[str, Axis] = {
    "judgments": Axis(
        "Which judgments does it see?",
        {
            "all": "all judgments",
            "liked": "only the relevant judgments",
            "listed": "only the judgments of items in the list",
        },
    ),
    "relevant": Axis(
        "Which judged items are relevant?",
        {
            "liked": "ratings from the threshold on",
            "above": "ratings above the threshold",
            "whole": "ratings whose whole part reaches the threshold",
            "positive": "every rating above 0",
            "one": "ratings from 1 on",
            "judged": "every judged item",
        },
    ),
    "gain": Axis(
        "What is an item worth?",
        {
            "liked-only": "its rating if relevant",
            "rating": "its rating, relevant or not",
            "binary": "1 if relevant",
            "burges": "2^rating - 1, relevant or not",
            "burges-liked": "2^rating - 1 if relevant",
            "burges-next": "2^(rating + 1) - 1, relevant or not",
            "levels": "rating - threshold + 1 if relevant",
            "exponential": "2^(rating - threshold + 1) - 1 if relevant",
            "integer": "the whole part of its rating",
            "integer-liked": "the whole part of its rating if relevant",
            "integer-burges": "2^(whole part of its rating) - 1, relevant or not",
            "integer-burges-liked": "2^(whole part of its rating) - 1 if relevant",
        },
        GRADED,
    ),
    "discount": Axis(
        "How are ranks discounted?",
        {
            "log": "by log2(rank + 1)",
            "original": "by log2(rank), ranks 1 and 2 in full",
            "late": "by log2(rank + 2)",
            "reciprocal": "by the rank",
        },
        GRADED,
    ),
    "ideal": Axis(
        "What is the ideal list?",
        {
            "cut": "the user's best items, cut at k",
            "uncut": "all of the user's items, best first",
            "list": "the user's best items, as many as the list has up to k",
            "full": "k items of gain 1",
            "found": "the items of the list up to k, best first",
            "found-uncut": "the items of the whole list, best first, cut at k",
        },
        ("nDCG", "NCRR"),
    ),
    "per": Axis(
        "What is the sum divided by?",
        {
            "usual": "P and MeanP by k, Recall and AP by all relevant items",
            "list": "the length of the list up to k; of AP, at most the number of relevant items",
            "min": "the number of relevant items, at most k",
            "k": "k",
            "found": "the relevant items in the list up to k",
            "found-uncut": "the relevant items in the whole list",
            "all": "all relevant items",
        },
        ("P", "Recall", "F1", "AP", "MeanP"),
    ),
    "cut": Axis(
        "Where is the list cut?",
        {
            "k": "at k",
            "k+1": "one place below k",
            "k-1": "one place above k",
            "whole": "nowhere: the whole list counts",
        },
    ),
    "users": Axis(
        "Which users are averaged?",
        {
            "with-test": "those with a judgment; without a list they count 0",
            "with-relevant": "those with a relevant judgment",
            "both": "those with a list and a judgment",
            "list-and-relevant": "those with a list and a relevant judgment",
            "with-list": "those with a list",
            "with-hit": "those with a relevant item anywhere in the list",
            "above-zero": "those whose value is above 0",
            "all": "everybody who has a judgment or a list",
        },
    ),
    "undefined": Axis(
        "What does an averaged user count who has no relevant item?",
        {
            "zero": "0",
            "skip": "nothing: the user is left out",
            "one": "1",
        },
    ),
    "average": Axis(
        "How is the mean taken?",
        {
            "users": "over users",
            "pooled": "sum of the numerators by sum of the denominators",
            "of-means": "F1 of mean precision and mean recall",
        },
    ),
    "ties": Axis(
        "Which of several items of equal score comes first?",
        {
            "given": "as the list was read",
            "id": "the smaller id",
            "trec": "the larger id, as text",
            "input": "the one that came first",
            "last": "the one that came last",
            "reverse": "the larger id",
            "text": "the smaller id, as text",
            "expected": "none: mean over all orders",
            "together": "none: all count at the last place of their group",
        },
    ),
    "duplicates": Axis(
        "What of an item that a list has twice?",
        {
            "first": "its first place counts; the others are taken out and the rest moves up",
            "miss": "its first place counts; the others keep their places and miss",
            "again": "it counts at each of its places",
            "multiple": "it counts at each of its places, and as often among the relevant items",
            "new": "each of its places up to k is another item, in the ideal list and totals too",
        },
    ),
    "training": Axis(
        "What of training items in a list?",
        {
            "keep": "they keep their places",
            "remove": "they are taken out and the rest moves up",
        },
    ),
    "catalogue": Axis(
        "What of items outside the catalogue in a list?",
        {
            "keep": "they keep their places",
            "remove": "they are taken out and the rest moves up",
        },
    ),
    "unjudged": Axis(
        "What of items without a judgment in a list?",
        {
            "keep": "they keep their places",
            "remove": "they are taken out and the rest moves up",
        },
    ),
    "digits": Axis(
        "Are values of users rounded before they are averaged?",
        {
            "none": "no",
            "5": "to five decimals",
            "4": "to four decimals",
        },
    ),
}
"""Every choice, in the order in which a path from one convention to another takes its steps."""


@dataclass(frozen=True)
class Convention:
    """One option for every axis, of one metric at one cutoff."""

    metric: str
    k: int | None = None
    judgments: str = "all"
    relevant: str = "liked"
    gain: str = DEFAULT_GAIN
    discount: str = "log"
    ideal: str = "cut"
    per: str = "usual"
    cut: str = "k"
    users: str = "with-test"
    undefined: str = "zero"
    average: str = "users"
    ties: str = "given"
    duplicates: str = "first"
    training: str = "keep"
    catalogue: str = "keep"
    unjudged: str = "keep"
    digits: str = "none"

    def __post_init__(self) -> None:
        options = self.__dict__
        for name, axis in AXES.items():
            if options[name] not in axis.options:
                choose(name, options[name], axis.options)

    @property
    def choices(self) -> dict[str, str]:
        """The option of every axis."""
        return {name: getattr(self, name) for name in AXES}

    def changed(self, **options: str) -> Convention:
        """Return the convention with other options."""
        return replace(self, **options)  # type: ignore[arg-type]

    def differences(self, other: Convention) -> dict[str, tuple[str, str]]:
        """Return the axes that differ and change this metric: option here, option there."""
        return {
            name: (getattr(self, name), getattr(other, name))
            for name in relevant_axes(self.metric)
            if getattr(self, name) != getattr(other, name)
        }


@cache
def relevant_axes(metric: str) -> tuple[str, ...]:
    """Return the axes that can change a metric."""
    return tuple(name for name, axis in AXES.items() if metric in axis.metrics)


def in_words(options: Mapping[str, str]) -> str:
    """Say options in words: `gain: 1 if relevant; users: those with a list`."""
    return "; ".join(f"{name}: {AXES[name].options[option]}" for name, option in options.items())


def check_axes(names: Iterable[str]) -> None:
    """Refuse names that are no axis."""
    for name in names:
        choose("axis", name, AXES)
