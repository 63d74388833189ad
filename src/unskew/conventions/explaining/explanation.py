"""`Explanation`: which conventions give the printed values, how sure that is, what to ask next."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from typing import Any

import polars as pl

from unskew.conventions.explaining.candidates import Candidate, Change, Start
from unskew.conventions.explaining.printed import OURS
from unskew.conventions.explaining.search import Class, Search
from unskew.conventions.libraries import AXES, Library, LibraryMetric, all_libraries
from unskew.conventions.values import ConventionValues
from unskew.evaluation.compat import differences
from unskew.report.result import Result
from unskew.report.tables import Table
from unskew.report.text import counted

VERDICTS = {
    "explains": "one class of conventions gives the printed values, and chance would not",
    "ambiguous": "several classes of conventions give the printed values",
    "compatible": "one class of conventions gives the printed values, but chance might too",
    "does not fit": "no convention that was tried gives the printed values",
}
LIMIT = 0.01
"""Up to so many chance fits, a unique fit explains."""
SHOWN = 10
"""The most classes that are printed; the table holds all."""


@dataclass(frozen=True)
class Answer:
    """A class of conventions that gives the printed values: equal numbers on these data.

    Examples
    --------
    >>> import unskew as us
    >>> test = {"user": [1, 1, 2, 3], "item": [10, 20, 30, 40], "rating": [5, 2, 4, 3]}
    >>> lists = {"mine": {1: [20, 10], 2: [30], 3: [10]}}
    >>> (answer,) = us.explain(test, lists, {"P@2": "0.5000"}, liked=4).answers
    >>> "RecBole 1.2.1" in answer.libraries, answer.differences
    (True, 'users: those with a relevant judgment')
    """

    title: str
    """Its simplest member: the library or our defaults, and what is changed in it."""
    libraries: tuple[str, ...]
    """Libraries with versions that have it as they are; empty where choices are changed."""
    options: tuple[str, ...]
    """Options of these libraries, where it is not their default."""
    changes: tuple[str, ...]
    """What is changed, in words."""
    differences: str
    """What differs from our defaults, in words."""
    values: tuple[float, ...]
    members: int
    """How many conventions that were tried are in the class."""


@dataclass(frozen=True, eq=False)
class Explanation(Result):
    """Which conventions give printed values. Made by `explain`.

    Print it for the verdict, the classes of conventions that fit, and the number to ask for next.

    Examples
    --------
    User 3 has no liked item. Libraries that leave such users out print another mean than we do.

    >>> import unskew as us
    >>> test = {"user": [1, 1, 2, 3], "item": [10, 20, 30, 40], "rating": [5, 2, 4, 3]}
    >>> lists = {"mine": {1: [20, 10], 2: [30], 3: [10]}}
    >>> result = us.explain(test, lists, {"P@2": "0.5000"}, liked=4)
    >>> result.verdict, result.table()["other than our defaults"].to_list()
    ('explains', ['users: those with a relevant judgment'])
    """

    verdict: str
    """`explains`, `ambiguous`, `compatible` or `does not fit`."""
    printed: Mapping[str, str]
    """What was asked: by system and metric, the printed text."""
    answers: tuple[Answer, ...]
    """Classes that fit, the simplest first."""
    tried: int
    """Conventions that were tried."""
    classes: int
    """Distinct classes among them."""
    changed: int
    """The most choices that were changed in a library or in our defaults."""
    expected: float
    """How many classes are expected to fit by chance."""
    cut: bool = False
    """Whether the values fit only if digits were cut off and not rounded."""
    near: tuple[str, ...] = ()
    """Where nothing fits: the nearest classes, in words."""
    ask: str = ""
    """The further number that tells most of the remaining classes apart."""
    checks: tuple[str, ...] = ()
    """What was looked at in the data first."""
    notes: tuple[str, ...] = field(default=())

    def table(self) -> pl.DataFrame:
        """Return a row per class that fits, with its differences from our defaults.

        Columns: convention, libraries, changes, other than our defaults, and one per printed value.
        """
        columns: dict[str, list[Any]] = {
            "convention": [answer.title for answer in self.answers],
            "libraries": ["; ".join(answer.libraries) for answer in self.answers],
            "changes": ["; ".join(answer.changes) for answer in self.answers],
            "other than our defaults": [answer.differences for answer in self.answers],
        }
        schema: dict[str, Any] = dict.fromkeys(columns, pl.String)
        for index, label in enumerate(self.printed):
            columns[label] = [answer.values[index] for answer in self.answers]
            schema[label] = pl.Float64
        return pl.DataFrame(columns, schema=schema)

    def display_tables(self, digits: int | None = None) -> list[Table]:
        """Return the classes that fit, the first ten."""
        if not self.answers:
            return []
        titles = [
            f"{answer.title} and {others} more" if others > 0 else answer.title
            for answer in self.answers[:SHOWN]
            for others in [len(answer.libraries) - 1]
        ]
        frame = self.table().head(SHOWN).drop("changes", "libraries")
        frame = frame.with_columns(pl.Series("convention", titles))
        return [Table("", frame, 6 if digits is None else digits)]

    def header(self) -> list[str]:
        """Return verdict and best candidate."""
        values = ", ".join(f"{label} = {text}" for label, text in self.printed.items())
        lines = [f"{values}: {self.verdict} ({VERDICTS[self.verdict]})"]
        if self.answers:
            best = self.answers[0]
            kind = "best candidate" if self.verdict != "explains" else "explanation"
            others = len(best.libraries) - 1
            same = (
                f"; the same on these data: {', '.join(best.libraries[1:])}" if others > 0 else ""
            )
            lines.append(f"{kind}: {best.title}{same}")
        return lines

    def _explanation(self) -> list[str]:
        reach = {
            0: "libraries as they are and our defaults",
            1: "these and one change of a choice",
            2: "these, one change, and two changes of what is done by default",
        }[min(self.changed, 2)]
        expected = f"{self.expected:,.0f}" if self.expected >= 10 else f"{self.expected:.2g}"
        lines = [
            f"tried: {reach}; {counted(self.tried, 'convention')} in "
            f"{counted(self.classes, 'class', 'classes')} of equal values, "
            f"of which {expected} {'is' if expected == '1' else 'are'} expected to fit by chance"
        ]
        if self.cut:
            lines.append("the values fit only if further digits were cut off, not rounded")
        if len(self.answers) > SHOWN:
            more = len(self.answers) - SHOWN
            lines.append(f"{counted(more, 'more class', 'more classes')} in table()")
        return [*lines, *self.near, *self.checks]

    def _conclusion(self) -> Sequence[str]:
        return (self.ask,) if self.ask else ()

    def _summary(self) -> str:
        return f"{self.verdict}, {counted(len(self.answers), 'class', 'classes')}"

    def _content(self) -> dict[str, object]:
        return {
            "verdict": self.verdict,
            "printed": dict(self.printed),
            "answers": [vars(answer) for answer in self.answers],
            "tried": self.tried,
            "classes": self.classes,
            "changed": self.changed,
            "expected_by_chance": self.expected,
            "cut": self.cut,
            "near": list(self.near),
            "ask": self.ask,
            "checks": list(self.checks),
            "notes": list(self.notes),
        }


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
    library = libraries[start.library]
    if start.until:
        return f"{library.name} up to {start.until}"
    return f"{library.name} {'/'.join(library.versions)}"


def title_of(candidate: Candidate, result: Search) -> str:
    """Say which library computes it so, under which of its names, and with which changes."""
    start = candidate.start
    text = name_of(start, result.libraries)
    if start.library != OURS:
        names = [
            row.label(quantity.k, full=True)
            for row, quantity in zip(start.rows, result.quantities, strict=True)
        ]
        text += f" ({', '.join(dict.fromkeys(names))})"
    if candidate.changes:
        text += ", but " + "; ".join(map(change_in_words, candidate.changes))
    return text


def answer_of(fit: Class, result: Search) -> Answer:
    """Describe a class by its simplest member, and name the libraries that have it."""
    first = simplest(fit)
    unchanged = [member for member in fit.members if not member.changes]
    names = dict.fromkeys(name_of(member.start, result.libraries) for member in unchanged)
    engines = [result.values(target.system) for target in result.targets]
    pairs = [
        (_telling(first.row(index), engines), first.cutoff(q.k))
        for index, q in enumerate(result.quantities)
    ]
    return Answer(
        title=title_of(first, result),
        libraries=tuple(names),
        options=tuple(dict.fromkeys(m.start.option for m in unchanged if m.start.option)),
        changes=tuple(map(change_in_words, first.changes)),
        differences=differences(pairs),
        values=fit.values,
        members=len(fit.members),
    )


def _telling(row: LibraryMetric, engines: Sequence[ConventionValues]) -> LibraryMetric:
    """Return a metric without the options that are the same as ours on these data."""
    options = tuple(
        (name, option)
        for name, option in row.options
        if not all(engine.is_idle(name, option, AXES[name].default) for engine in engines)
    )
    return replace(row, options=options)


def simplest(group: Class) -> Candidate:
    """Return the simplest member: by default before by option, then the fewest differences."""
    return min(group.members, key=_simplicity)


def _simplicity(member: Candidate) -> tuple[float, ...]:
    return (
        not member.start.is_default,
        surprise(member.changes),
        member.start.library != OURS,
        member.start.number_of_options,
    )


def rank_of(group: Class) -> tuple[float, ...]:
    """Order classes: by default before by option, common changes first, more libraries first."""
    members = [member for member in group.members if member.start.is_default] or group.members
    libraries = {member.start.library for member in members}
    first = simplest(group)
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
    frequencies = _frequencies()
    return sum(-math.log(frequencies.get(change, 0.0) + 0.002) for change in changes)
