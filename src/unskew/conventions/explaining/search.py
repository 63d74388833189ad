"""The search: candidates from the simplest on, until some give all printed values.

Candidates whose values are equal on these data are one class. Stage 0 are libraries as they are,
by default or by an option, and our defaults; stage 1 changes one choice of these, stage 2 two
choices of what is done by default.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain, islice

import numpy as np

from unskew.arrays import F64
from unskew.conventions.explaining.candidates import (
    Candidate,
    Start,
    changed,
    quantities_of,
    starts,
    usable_options,
)
from unskew.conventions.explaining.printed import PrintedQuantity, Target
from unskew.conventions.laying import Laid
from unskew.conventions.libraries import Library, LibraryMetric
from unskew.conventions.values import ConventionValues
from unskew.engine.threads import map_blocks
from unskew.errors import SettingError
from unskew.evaluation.compat import mean_of_row, values_of_row

WINDOWS = (10.0, 30.0, 100.0, 300.0, 1000.0)
"""Distances at which classes are counted, in halves of the last digit."""
SHARED = 0.5
"""How far further values narrow chance: 0 not at all, 1 as if they were independent."""


def expected_fits(cloud: F64, targets: Sequence[Target], steps: Sequence[float]) -> float:
    """Return how many classes that are not the right one are expected to give all values.

    Classes (rows of `cloud`) are counted within windows around the printed values, those that fit
    left out. If they lie evenly, a window that is s times as wide as rounding holds s times as
    many; of further values each narrows that by s^0.5, since classes that are near in one value
    are often near in others. The largest rate of all windows counts.

    A mean can be a multiple of a `step`, such as 1 by the number of users: then two means agree
    by chance as often as if they were rounded to it.
    """
    if not len(cloud):
        return 0.0
    printed = np.array([target.printed.value for target in targets])
    half = np.array([target.printed.half for target in targets])
    fits = (np.abs(cloud - printed) <= half * (1 + 1e-6)).all(axis=1)
    width = np.maximum(half, np.array(steps) / 2)
    distance = (np.abs(cloud - printed) / width).max(axis=1)
    independent = 1 + SHARED * (len(distinct(targets)) - 1)
    others = np.sort(distance[~fits])
    counts = np.searchsorted(others, WINDOWS, side="right")
    rates = counts / np.array(WINDOWS) ** independent
    return float(rates.max(initial=0.0))


def smallest_step(values: F64) -> float:
    """Return how little a mean can change: the least difference between two users' values, by n.

    Examples
    --------
    >>> import numpy as np
    >>> from unskew.conventions.explaining.search import smallest_step
    >>> smallest_step(np.array([0.0, 1.0, 1.0, np.nan, 0.0]))
    0.25
    """
    finite = values[~np.isnan(values)]
    levels = np.unique(np.round(finite, 9))
    if levels.size < 2:
        return 0.0
    return float(np.diff(levels).min()) / finite.size


def distinct(targets: Sequence[Target]) -> set[tuple[str, str]]:
    """Return the values that are not the same number asked twice."""
    return {(target.system, target.quantity.label) for target in targets}


DEEPEST = 2
"""The most choices that are changed in a library, or in our defaults."""
MOST = 60_000
"""The most candidates of one stage; the rest is left out, and the result says so."""
BLOCK = 500
"""Candidates that one thread computes at a time."""
SAME = 11
"""Values that agree to so many decimals are one value."""


@dataclass(eq=False)
class Class:
    """Candidates whose values are equal on these data."""

    values: tuple[float, ...]
    cost: int
    """How many choices its simplest member changes."""
    members: list[Candidate]

    def fits(self, targets: Sequence[Target], *, cut: bool = False) -> bool:
        """Tell whether all values are printed so: rounded, or with their last digits cut off."""
        pairs = zip(self.values, targets, strict=True)
        if cut:
            return all(target.printed.cuts(value) for value, target in pairs)
        return all(target.printed.rounds(value) for value, target in pairs)


@dataclass(eq=False)
class Search:
    """What was tried, and what of it fits."""

    targets: tuple[Target, ...]
    libraries: Mapping[str, Library]
    laid: Laid
    classes: dict[tuple[float, ...], Class] = field(default_factory=dict)
    fitting: list[Class] = field(default_factory=list)
    cut: bool = False
    """Whether those that fit do so only if digits were cut off."""
    stage: int = 0
    """How many choices were changed when something fitted, or at last."""
    tried: int = 0
    """How many candidates."""
    left_out: int = 0
    """How many candidates were not tried for their number."""
    _values: dict[str, ConventionValues] = field(default_factory=dict)
    _means: dict[object, float] = field(default_factory=dict)

    def values(self, system: str) -> ConventionValues:
        """Return what computes the values of a system."""
        if system not in self._values:
            self._values[system] = ConventionValues(self.laid, system)
        return self._values[system]

    def mean(self, system: str, row: LibraryMetric, k: int | None) -> float:
        """Return the mean of one metric, computed once; NaN where it cannot be computed."""
        key = (system, row.metric, row.ours, row.options, k if row.has_cutoff else None)
        if key not in self._means:
            try:
                self._means[key] = mean_of_row(self.values(system), row, k)
            except SettingError:
                self._means[key] = math.nan
        return self._means[key]

    def add(self, candidates: Iterable[Candidate], cost: int, threads: int | None = None) -> None:
        """Compute candidates and put each into its class."""
        batch = list(islice(candidates, MOST))
        self.left_out += sum(1 for _ in candidates) if len(batch) == MOST else 0
        self.tried += len(batch)
        blocks = [batch[low : low + BLOCK] for low in range(0, len(batch), BLOCK)]

        def compute(block: list[Candidate]) -> list[tuple[float, ...]]:
            return [
                tuple(self.mean(t.system, *row) for t, row in candidate.rows_of(self.targets))
                for candidate in block
            ]

        size = len(batch) * len(self.laid.users)
        results = map_blocks(compute, blocks, threads, size=size)
        for candidate, values in zip(batch, chain.from_iterable(results), strict=True):
            if any(map(math.isnan, values)):
                continue
            key = tuple(round(value, SAME) for value in values)
            group = self.classes.get(key)
            if group is None:
                self.classes[key] = Class(values, cost, [candidate])
            elif group.cost == cost:
                group.members.append(candidate)

    def look(self, stage: int) -> bool:
        """Look for classes of this cost that fit, and for simpler ones whose digits were cut."""
        self.stage = stage
        self.fitting = [
            group
            for group in self.classes.values()
            if group.cost == stage and group.fits(self.targets)
        ]
        if not self.fitting:
            self.fitting = [
                group
                for group in self.classes.values()
                if group.cost == stage - 1 and group.fits(self.targets, cut=True)
            ]
            self.cut = bool(self.fitting)
        return bool(self.fitting)

    def expected(self, first: Candidate | None) -> float:
        """Return how many classes are expected to fit by chance.

        `first` is the candidate that fits best, or comes nearest.
        """
        if first is None:
            return 0.0
        steps = [
            smallest_step(values_of_row(self.values(target.system), *row))
            for target, row in first.rows_of(self.targets)
        ]
        return expected_fits(self.cloud, self.targets, steps)

    @property
    def quantities(self) -> list[PrintedQuantity]:
        """The metrics that are asked for, each once."""
        return quantities_of(self.targets)

    @property
    def cloud(self) -> F64:
        """The values of all classes: a row for each."""
        return np.array([group.values for group in self.classes.values()]).reshape(
            len(self.classes), len(self.targets)
        )


def search(
    laid: Laid,
    targets: tuple[Target, ...],
    libraries: Mapping[str, Library],
    threads: int | None = None,
) -> Search:
    """Try candidates stage by stage; stop at the first stage in which some fit."""
    result = Search(targets, libraries, laid)
    initial: list[Start] = starts(libraries, quantities_of(targets))
    result.add((Candidate(start) for start in initial), 0, threads)
    if result.look(0):
        return result
    options = usable_options(laid, targets)
    # What a library does by default, nearest to our defaults.
    distinct = [
        min(
            (member.start for member in group.members),
            key=lambda start: (not start.is_default, start.number_of_options),
        )
        for group in result.classes.values()
    ]
    for stage in range(1, DEEPEST + 1):
        result.add(changed(distinct, options, stage), stage, threads)
        distinct = [start for start in distinct if start.is_default]
        if result.look(stage):
            return result
    result.look(DEEPEST + 1)
    return result
