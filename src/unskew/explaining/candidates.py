"""Candidates: conventions under which all asked values might have been computed.

A candidate starts from a library, each of whose metrics has a row of its own, or from our
defaults, and changes a few choices. A change applies to every metric that it can change.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations, product

from unskew.conventions.collection import Library, LibraryMetric
from unskew.conventions.convention import AXES, relevant_axes
from unskew.explaining.asked import OURS, Quantity

Change = tuple[str, str]
"""An axis, or `cutoff`, and the option it is set to."""
CUTOFFS = {"k-1": -1, "k+1": 1}
"""Cutoffs that are off by one: the metric of another cutoff under the name of this one."""
UNUSUAL = ("cutoff", "cut", "average", "catalogue", "unjudged", "digits")
"""Of these, no two are changed together."""
MOST_ROWS = 64
"""The most combinations of rows of one library that are tried for several metrics."""


@dataclass(frozen=True)
class Start:
    """A library (or ours) with a row for every metric that is asked for."""

    library: str
    rows: tuple[LibraryMetric, ...]

    @property
    def is_default(self) -> bool:
        """Whether the library does so unless it is asked for something else, to this day."""
        return all(not row.option and not row.until for row in self.rows)

    @property
    def until(self) -> str:
        """The last version of the library that did so; empty: it still does."""
        return next((row.until for row in self.rows if row.until), "")

    @property
    def given(self) -> str:
        """The form in which the library is given judgments."""
        return "; ".join(dict.fromkeys(row.given for row in self.rows if row.given))

    @property
    def option(self) -> str:
        """The options of the library."""
        return "; ".join(dict.fromkeys(row.option for row in self.rows if row.option))


@dataclass(frozen=True)
class Candidate:
    """A start and what is changed in it."""

    start: Start
    changes: tuple[Change, ...] = ()

    def row(self, at: int) -> LibraryMetric:
        """Return the metric that stands for a quantity, with the changes."""
        row = self.start.rows[at]
        allowed = set(relevant_axes(row.metric)) if row.metric else set(AXES)
        changed = {name: option for name, option in self.changes if name in allowed}
        if not changed:
            return row
        return replace(row, options=tuple(sorted({**dict(row.options), **changed}.items())))

    def cutoff(self, k: int | None) -> int | None:
        """Return the cutoff that is taken for one that is asked for."""
        shift = CUTOFFS[dict(self.changes)["cutoff"]] if "cutoff" in dict(self.changes) else 0
        return None if k is None else k + shift


def starts(libraries: Mapping[str, Library], quantities: Sequence[Quantity]) -> list[Start]:
    """Return ours and every library that has all quantities, in every form it is known in."""
    result = [Start(OURS, tuple(one.row() for one in quantities))]
    for library in libraries.values():
        for given in dict.fromkeys(row.given for row in library.metrics):
            rows = [
                [row for row in library.metrics if row.given == given and one.is_of(row)]
                for one in quantities
            ]
            result += [Start(library.key, chosen) for chosen in _combined(rows)]
    return result


def _combined(rows: Sequence[Sequence[LibraryMetric]]) -> Iterator[tuple[LibraryMetric, ...]]:
    """Return a row for each quantity: all combinations, or the first rows with one other."""
    size = 1
    for several in rows:
        size *= len(several)
    if size <= MOST_ROWS:
        yield from product(*rows)
        return
    first = tuple(several[0] for several in rows)
    yield first
    for at, several in enumerate(rows):
        for other in several[1:]:
            yield (*first[:at], other, *first[at + 1 :])


def changed(
    known: Sequence[Start], options: Mapping[str, Sequence[str]], number: int
) -> Iterator[Candidate]:
    """Return every start with so many changes, among the options that can matter."""
    for start in known:
        rows = start.rows
        axes = {name for row in rows for name in (relevant_axes(row.metric) if row.metric else ())}
        names = [name for name in options if name in axes or name == "cutoff"]
        for chosen in combinations(names, number):
            if sum(name in UNUSUAL for name in chosen) > 1:
                continue
            for picked in product(*(options[name] for name in chosen)):
                changes = tuple(zip(chosen, picked, strict=True))
                if all(_is_change(rows, name, option) for name, option in changes):
                    yield Candidate(start, changes)


def _is_change(rows: Sequence[LibraryMetric], axis: str, option: str) -> bool:
    if axis == "cutoff":
        return True
    return any(
        dict(row.options).get(axis, AXES[axis].default) != option
        for row in rows
        if axis in relevant_axes(row.metric)
    )
