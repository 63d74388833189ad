"""Candidates and classes in words."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cache

from unskew.conventions.collection import Library, LibraryMetric, all_libraries
from unskew.conventions.convention import AXES
from unskew.conventions.values import Values
from unskew.evaluation.compat import differences
from unskew.explaining.asked import OURS, Target
from unskew.explaining.candidates import Candidate, Change, Start
from unskew.explaining.explanation import Answer
from unskew.explaining.search import Class, Means, quantities_of

CUTOFF_WORDS = {
    "k-1": "the cutoff is one less than it is called",
    "k+1": "the cutoff is one more than it is called",
}


def change_in_words(change: Change) -> str:
    """Say what is changed."""
    axis, option = change
    if axis == "cutoff":
        return CUTOFF_WORDS[option]
    return f"{axis}: {AXES[axis].options[option]}"


def name_of(start: Start, libraries: Mapping[str, Library]) -> str:
    """Return a library and its versions."""
    if start.library == OURS:
        return "unskew's defaults"
    one = libraries[start.library]
    if start.until:
        return f"{one.name} up to {start.until}"
    return f"{one.name} {'/'.join(one.versions)}"


def title_of(
    candidate: Candidate, targets: Sequence[Target], libraries: Mapping[str, Library]
) -> str:
    """Say which library computes it so, under which of its names, and with which changes."""
    start = candidate.start
    text = name_of(start, libraries)
    if start.library != OURS:
        asked = quantities_of(targets)
        names = [row.label(one.k, full=True) for row, one in zip(start.rows, asked, strict=True)]
        text += f" ({', '.join(dict.fromkeys(names))})"
    if candidate.changes:
        text += ", but " + "; ".join(map(change_in_words, candidate.changes))
    return text


def answer_of(
    fit: Class, targets: Sequence[Target], libraries: Mapping[str, Library], means: Means
) -> Answer:
    """Describe a class by its simplest member, and name the libraries that have it."""
    first = simplest(fit)
    unchanged = [member for member in fit.members if not member.changes]
    names = dict.fromkeys(name_of(member.start, libraries) for member in unchanged)
    asked = quantities_of(targets)
    engines = [means.engine(target.system).values for target in targets]
    pairs = [(_telling(first.row(at), engines), first.cutoff(q.k)) for at, q in enumerate(asked)]
    return Answer(
        title=title_of(first, targets, libraries),
        libraries=tuple(names),
        options=tuple(dict.fromkeys(m.start.option for m in unchanged if m.start.option)),
        changes=tuple(map(change_in_words, first.changes)),
        differences=differences(pairs),
        values=fit.values,
        members=len(fit.members),
    )


def _telling(row: LibraryMetric, engines: Sequence[Values]) -> LibraryMetric:
    """Return a metric without the options that are the same as ours on these data."""
    options = tuple(
        (name, option)
        for name, option in row.options
        if not all(engine.is_idle(name, option, AXES[name].default) for engine in engines)
    )
    return replace(row, options=options)


def simplest(one: Class) -> Candidate:
    """Return the simplest member: by default before by option, then the fewest differences."""
    return min(one.members, key=_simplicity)


def _simplicity(member: Candidate) -> tuple[float, ...]:
    rows = member.start.rows
    return (
        not member.start.is_default,
        surprise(member.changes),
        member.start.library != OURS,
        sum(len(row.options) for row in rows),
    )


def rank_of(one: Class) -> tuple[float, ...]:
    """Order classes: by default before by option, common changes first, more libraries first."""
    members = [member for member in one.members if member.start.is_default] or one.members
    libraries = {member.start.library for member in members}
    first = simplest(one)
    return (not first.start.is_default, surprise(first.changes), -len(libraries))


@cache
def _frequencies() -> dict[Change, float]:
    """Return how often metrics of libraries have each option."""
    rows: list[LibraryMetric] = [
        row for library in all_libraries().values() for row in library.metrics
    ]
    counts = Counter(pair for row in rows for pair in row.options)
    return {pair: count / len(rows) for pair, count in counts.items()}


def surprise(changes: Sequence[Change]) -> float:
    """Return how unusual changes are: 0 for none, the more the rarer libraries have them."""
    known = _frequencies()
    return sum(-math.log(known.get(change, 0.0) + 0.002) for change in changes)
