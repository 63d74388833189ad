"""Candidates: conventions under which all asked values might have been computed.

A candidate starts from a library, each of whose metrics has a row of its own, or from our
defaults, and changes a few choices. A change applies to every metric that it can change.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations, product

import numpy as np

from unskew.conventions.explaining.printed import OURS, PrintedQuantity, Target
from unskew.conventions.laying import Laid, count_ties
from unskew.conventions.libraries import AXES, OF_MEANS, Library, LibraryMetric, relevant_axes
from unskew.conventions.values import first_alike

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
    def option(self) -> str:
        """The options of the library."""
        return "; ".join(dict.fromkeys(row.option for row in self.rows if row.option))

    @property
    def number_of_options(self) -> int:
        """How many options of conventions differ from our defaults."""
        return sum(len(row.options) for row in self.rows)


def quantities_of(targets: Sequence[Target]) -> list[PrintedQuantity]:
    """Return the metrics that are asked for, each once."""
    return list(dict.fromkeys(target.quantity for target in targets))


@dataclass(frozen=True)
class Candidate:
    """A start and what is changed in it."""

    start: Start
    changes: tuple[Change, ...] = ()

    def row(self, index: int) -> LibraryMetric:
        """Return the metric that stands for a quantity, with the changes."""
        row = self.start.rows[index]
        allowed = set(relevant_axes(row.metric)) if row.metric else set(AXES)
        changed = {name: option for name, option in self.changes if name in allowed}
        if not changed:
            return row
        return replace(row, options=tuple(sorted({**dict(row.options), **changed}.items())))

    def rows_of(
        self, targets: Sequence[Target]
    ) -> Iterator[tuple[Target, tuple[LibraryMetric, int | None]]]:
        """Yield every target with the metric and the cutoff that stand for it."""
        quantities = quantities_of(targets)
        for target in targets:
            row = self.row(quantities.index(target.quantity))
            yield target, (row, self.cutoff(target.quantity.k))

    def cutoff(self, k: int | None) -> int | None:
        """Return the cutoff that is taken for one that is asked for."""
        shift = CUTOFFS[dict(self.changes)["cutoff"]] if "cutoff" in dict(self.changes) else 0
        return None if k is None else k + shift


def starts(libraries: Mapping[str, Library], quantities: Sequence[PrintedQuantity]) -> list[Start]:
    """Return ours and every library that has all quantities, in every form it is known in."""
    result = [Start(OURS, tuple(quantity.row() for quantity in quantities))]
    for library in libraries.values():
        for form in dict.fromkeys(row.given for row in library.metrics):
            rows = [
                [row for row in library.metrics if row.given == form and quantity.is_of(row)]
                for quantity in quantities
            ]
            result += [Start(library.key, chosen) for chosen in _combined(rows)]
    return result


def _combined(rows: Sequence[Sequence[LibraryMetric]]) -> Iterator[tuple[LibraryMetric, ...]]:
    """Return a row for each quantity: all combinations, or the first rows with one other."""
    if math.prod(map(len, rows)) <= MOST_ROWS:
        yield from product(*rows)
        return
    first = tuple(choices[0] for choices in rows)
    yield first
    for index, choices in enumerate(rows):
        for choice in choices[1:]:
            yield (*first[:index], choice, *first[index + 1 :])


def changed(
    starting_points: Sequence[Start], options: Mapping[str, Sequence[str]], number: int
) -> Iterator[Candidate]:
    """Return every start with so many changes, among the options that can matter."""
    for start in starting_points:
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


@dataclass(frozen=True)
class DataFinding:
    """A property of the data that changes numbers under some conventions."""

    what: str
    count: int
    """Over all systems whose values are asked for."""
    axis: str
    """The choice that is tried because of it."""


def look_at(laid: Laid, targets: Sequence[Target]) -> list[DataFinding]:
    """Count what is odd in lists and judgments."""
    systems = dict.fromkeys(target.system for target in targets)
    runs = [laid.systems[name].run for name in systems]
    tested = np.bincount(laid.judgments.user, minlength=len(laid.users)) > 0
    liked = np.bincount(laid.judgments.user[laid.is_relevant("liked")], minlength=len(laid.users))
    without_list = without_test = 0
    for name, run in zip(systems, runs, strict=True):
        listed = np.zeros(len(laid.users), np.bool_)
        listed[laid.numbering.runs[name][0][run.depth > 0]] = True
        without_list += int((tested & ~listed).sum())
        without_test += int((listed & ~tested).sum())
    value = laid.judgments.value
    return [
        DataFinding("items that a list has twice", sum(run.repeated for run in runs), "duplicates"),
        DataFinding("training items in lists", sum(map(laid.count_training, systems)), "training"),
        DataFinding(
            "items outside the catalogue", sum(map(laid.count_unknown, systems)), "catalogue"
        ),
        DataFinding("places with the score of the place above", sum(map(count_ties, runs)), "ties"),
        DataFinding("users with judgments but no list", without_list, "users"),
        DataFinding("lists of users without judgments", without_test, "users"),
        DataFinding("users with judgments but no liked item",
                int((tested & (liked == 0)).sum()), "users"),
        DataFinding(
            "ratings that are not whole", int((value != np.trunc(value)).sum()), "relevant"
        ),
    ]  # fmt: skip


def usable_options(laid: Laid, targets: Sequence[Target]) -> dict[str, list[str]]:
    """Return the options of every choice that can change a number on these data."""
    counts = Counter[str]()
    for finding in look_at(laid, targets):
        counts[finding.axis] += finding.count
    options = {name: list(axis.options) for name, axis in AXES.items()}
    for axis in ("duplicates", "training", "catalogue"):
        if not counts[axis]:
            options[axis] = []
    options["ties"] = _ties(laid, targets) if counts["ties"] else []
    options["relevant"] = list(dict.fromkeys(first_alike(laid.relevance_masks).values()))
    if not any(target.quantity.metric in OF_MEANS for target in targets):
        options["average"].remove("of-means")
    are_integers = bool((laid.judgments.value == np.trunc(laid.judgments.value)).all())
    if are_integers:
        options["gain"] = [name for name in options["gain"] if not name.startswith("integer")]
    if any(target.quantity.k is not None for target in targets):
        return {"cutoff": list(CUTOFFS), **options}
    return {**options, "cut": []}


def _ties(laid: Laid, targets: Sequence[Target]) -> list[str]:
    """Return the rules about equal scores that can be told apart in some system."""
    systems = dict.fromkeys(target.system for target in targets)
    names = {name for system in systems for name in first_alike(laid.orders(system)).values()}
    names |= {"expected", "together"}
    return [name for name in AXES["ties"].options if name in names]


def in_sentences(findings: Sequence[DataFinding]) -> list[str]:
    """Say what was counted; nothing of what does not occur."""
    present = [f"{finding.what} ({finding.count:,})" for finding in findings if finding.count]
    none = [finding.what for finding in findings if not finding.count]
    lines = [f"in the data: {'; '.join(present)}"] if present else []
    if none:
        lines.append(f"looked for and not present: {'; '.join(none)}")
    return lines
