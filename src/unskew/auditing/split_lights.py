"""What the splits of an audit did: counts of each, lights of the first and of those in time."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from unskew.data.ratings import Ratings
from unskew.splits.counts import SplitCounts, count_parts
from unskew.splits.diagnosis.result import Diagnosis
from unskew.splits.diagnosis.run import diagnose
from unskew.splits.split import Split, Splitter
from unskew.splits.time import Temporal

WITHIN_TIME = ("future", "user-order", "unborn-items", "torn-sessions")
"""Checks that are red for every split that does not look at time."""


@dataclass(frozen=True, eq=False)
class SplitLights:
    """The first split of each protocol: what it did, and what was found in it."""

    counts: Mapping[str, SplitCounts] = field(default_factory=dict)
    """By protocol: users, items and ratings of its parts."""
    diagnoses: Mapping[str, Diagnosis] = field(default_factory=dict)
    """By protocol, of the first one and of splits by time: the lights."""

    @property
    def ignoring_time(self) -> tuple[str, ...]:
        """The protocols whose test is not later than their training."""
        return tuple(
            name for name, one in self.counts.items() if (one.before_any_train or 0.0) > 0.5
        )


def lights_of_splits(splitters: Iterable[Splitter], ratings: Ratings, seed: int) -> SplitLights:
    """Make the first split of each protocol, and look at it.

    Parameters
    ----------
    splitters
        One of each protocol; the first one is that of the common design.
    ratings
        What is split.
    seed
        Same seed, same splits.
    """
    kinds = list(splitters)
    names = [one.name for one in kinds]
    counts, diagnoses = {}, {}
    for number, one in enumerate(kinds):
        name = one.name if names.count(one.name) == 1 else repr(one)
        split = next(iter(one.each(ratings, seed)))
        counts[name] = count_parts(split)
        if number == 0 or isinstance(one, Temporal):
            diagnoses[name] = diagnose(split, log=ratings)
    return SplitLights(counts, diagnoses)


def lights_of_given(train: Ratings | None, test: Ratings) -> SplitLights:
    """Look at training and test ratings as they were given."""
    if train is None or not len(train) or not len(test):
        return SplitLights()
    split = Split(train, test, "given")
    return SplitLights({"given": count_parts(split)}, {"given": diagnose(split)})
