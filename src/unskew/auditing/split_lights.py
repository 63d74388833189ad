"""What the splits of an audit did: counts of each, lights of the first and of those in time."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

import numpy as np

from unskew.data.ratings import Ratings
from unskew.data.summary import Summary
from unskew.splits.counts import count_parts
from unskew.splits.diagnosis.diagnosis import Diagnosis, diagnose
from unskew.splits.diagnosis.parts import MIXED, mean_later
from unskew.splits.split import Split, Splitter
from unskew.splits.time.temporal import Temporal

WITHIN_TIME = ("future", "user-order", "unborn-items", "torn-sessions")
"""Checks that are red wherever training and test cover the same time."""


@dataclass(frozen=True, eq=False)
class SplitLights:
    """The first split of each protocol: what it did, and what was found in it."""

    counts: Mapping[str, Summary] = field(default_factory=dict)
    """By protocol: users, items and ratings of its parts."""
    diagnoses: Mapping[str, Diagnosis] = field(default_factory=dict)
    """By protocol, of the first one and of splits by time: the lights."""

    mixed: tuple[str, ...] = ()
    """The protocols whose training and test cover the same time: without one cut for all."""


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
    names = [kind.name for kind in kinds]
    counts, diagnoses, mixed = {}, {}, []
    for number, kind in enumerate(kinds):
        name = kind.name if names.count(kind.name) == 1 else repr(kind)
        split = next(iter(kind.each(ratings, seed)))
        counts[name] = count_parts(split)
        if number == 0 or isinstance(kind, Temporal):
            diagnoses[name] = diagnose(split, log=ratings)
        if _is_mixed(split):
            mixed.append(name)
    return SplitLights(counts, diagnoses, tuple(mixed))


def _is_mixed(split: Split) -> bool:
    """Tell whether training and test cover the same time."""
    train, test = split.train.time, split.test.time
    return train is not None and test is not None and mean_later(train, np.sort(test)) >= MIXED


def lights_of_given(train: Ratings | None, test: Ratings) -> SplitLights:
    """Look at training and test ratings as they were given."""
    if train is None or not len(train) or not len(test):
        return SplitLights()
    split = Split(train, test, "given")
    mixed = ("given",) if _is_mixed(split) else ()
    return SplitLights({"given": count_parts(split)}, {"given": diagnose(split)}, mixed)
