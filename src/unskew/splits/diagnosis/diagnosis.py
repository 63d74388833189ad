"""`diagnose`: the answers of all checks, and the numbers behind them."""

from __future__ import annotations

import os
import textwrap
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar

import polars as pl

from unskew.checks import checked, choose
from unskew.data.events import Events
from unskew.data.ratings import Ratings
from unskew.data.summary import Summary
from unskew.engine.system import versions
from unskew.errors import DataError, SettingError
from unskew.report.document import Block, Document, Fold, Picture, Section, Words
from unskew.report.page import save_report
from unskew.report.result import Result
from unskew.report.tables import Table
from unskew.report.text import counted, visible
from unskew.splits.diagnosis import (
    duplicate_users,
    fact_checks,
    feature_checks,
    over_time,
    time_checks,
)
from unskew.splits.diagnosis.check import IN_ORDER, LIGHTS, Check, Reading, Rule, check_facts
from unskew.splits.diagnosis.over_time import DriftPeriod, RowsOverTime, drift_of, rows_over_time
from unskew.splits.diagnosis.parts import Log, SplitParts
from unskew.splits.split import Split

if TYPE_CHECKING:
    from unskew.report.charts import Figure


FIGURES = ("time", "drift", "items")
WIDTH = 100
"""Of printed lines."""
_INDENT = " " * 9


@dataclass(frozen=True, eq=False)
class Diagnosis(Result):
    """What was found in a split, or in several. Made by `diagnose`."""

    figure_is_open: ClassVar[bool] = True

    splits: Mapping[str, Summary]
    """By split: users, items and ratings of both parts, in numbers."""
    checks: tuple[Check, ...]
    """Every check, in the order of the list."""
    timelines: tuple[RowsOverTime, ...] = ()
    drift: tuple[DriftPeriod, ...] = ()
    notes: tuple[str, ...] = field(default=())

    @property
    def leaks(self) -> tuple[Check, ...]:
        """The checks whose light is red."""
        return self.of_light("leak")

    @property
    def lights(self) -> dict[str, str]:
        """The light of each check, by its key."""
        return {check.key: check.light for check in self.checks}

    def of_light(self, light: str) -> tuple[Check, ...]:
        """Return the checks with a light: `leak`, `look`, `unknown`, `shown` or `ok`."""
        choose("light", light, LIGHTS)
        return tuple(check for check in self.checks if check.light == light)

    def check(self, key: str) -> Check:
        """Return one check by its key, such as `future`."""
        choose("check", key, [check.key for check in self.checks])
        return next(check for check in self.checks if check.key == key)

    def table(self) -> pl.DataFrame:
        """Return a row per check and split: its light, its value, and when the light changes."""
        names = ("key", "title", "split", "light", "value", "unit", "threshold", "sentence")
        rows = [
            [{**vars(check), **part._asdict(), "split": label}[name] for name in names]
            for check in self.checks
            for label, part in check.readings.items()
        ]
        return _frame(rows, *names)

    def numbers(self) -> pl.DataFrame:
        """Return a row per split: users, items and ratings of its parts."""
        rows = [{"split": label} | _plain(counts) for label, counts in self.splits.items()]
        return pl.DataFrame(rows, infer_schema_length=None)

    def counts(self) -> pl.DataFrame:
        """Return a row per number behind the lights: its check, its split, its name, its value."""
        rows = [
            (check.key, label, name, *((None, value) if isinstance(value, str) else (value, None)))
            for check in self.checks
            for label, part in check.readings.items()
            for name, value in part.counts.items()
        ]
        return _frame(rows, "key", "split", "name", "value", "text")

    def figure(self, kind: str | None = None, *, scale: str = "linear") -> Figure:
        """Draw rows over time, drift of items, or the ratings of items.

        Parameters
        ----------
        kind
            `time` (default where there are time stamps): the rows of each part over time. `drift`:
            how different the items of each tenth of training are from those of the test. `items`:
            the training and test ratings of items, of the first split.
        scale
            Of `items`: `linear` or `log`.
        """
        from unskew.report.charts import split_counts
        from unskew.splits.diagnosis.over_time import drift, over_time

        if kind is None:
            kind = "time" if self.timelines else "items"
        choose("kind", kind, FIGURES)
        if kind == "items":
            first = next(iter(self.splits.values()))
            return split_counts(*first.per_item.values(), scale=scale, label=first.name)
        if not self.timelines or (kind == "drift" and not self.drift):
            raise DataError(
                f"there is nothing to draw over time: {self.check('time-frame').sentence}"
                if not self.timelines
                else "training has too few rows to draw the drift of items"
            )
        return over_time(self.timelines) if kind == "time" else drift(self.drift)

    def display_table(self) -> pl.DataFrame:
        """Return a row per check, the worst light first."""
        rows = [
            (check.light, check.title, check.short, check.sentence, check.threshold)
            for light in IN_ORDER
            for check in self.of_light(light)
        ]
        return _frame(
            rows,
            "light",
            "check",
            "value",
            "in a sentence",
            "when the light changes",
            value=pl.String,
        )

    def header(self) -> list[str]:
        """Return what was looked at, and how many lights there are of each colour."""
        return [self._summary()]

    def verdict(self) -> str:
        """Return how many lights there are of each colour, in words."""
        words = {"look": "to look at", "ok": "ok", "unknown": "not checked"}
        others = (f"{len(self.of_light(light)):,} {text}" for light, text in words.items())
        return ", ".join([counted(len(self.leaks), "leak"), *others])

    def __str__(self) -> str:
        lines = [self._summary(), ""]
        for light in ("leak", "look"):
            for check in self.of_light(light):
                lines += _block(light, f"{check.title}: {check.sentence}")
                lines += _block("", f"Do: {check.remedy}") if check.remedy else []
        facts = "; ".join(f"{fact.title} {fact.short}" for fact in self.of_light("shown"))
        lines += _block("shown", facts) if facts else []
        fine = "; ".join(check.title for check in self.of_light("ok"))
        lines += _block("ok", fine) if fine else []
        reasons: dict[str, list[str]] = {}
        for check in self.of_light("unknown"):
            reasons.setdefault(check.sentence, []).append(check.title)
        for index, (reason, titles) in enumerate(reasons.items()):
            lines += _block("" if index else "unknown", f"{', '.join(titles)}: {reason}")
        return "\n".join([*map(visible, lines), *map(visible, self.notes)])

    def _summary(self) -> str:
        first, *others = self.splits.values()
        what = first.lines[0] if not others else f"{len(self.splits):,} splits"
        return f"{what}: {self.verdict()}"

    def _content(self) -> dict[str, Any]:
        return {
            "verdict": self.verdict(),
            "lights": self.lights,
            "checks": [check.to_dict() for check in self.checks],
            "splits": {label: _plain(counts) for label, counts in self.splits.items()},
            "notes": list(self.notes),
        }

    def document(self) -> Document:
        """Return the diagnosis as a document, for a page, Markdown or JSON."""
        verdict = [Words(f"{self.verdict()}.", "warning" if self.leaks else "good", "Verdict")]
        verdict += [
            Words(f"{check.sentence} {check.remedy}", tone, f"{check.title}.")
            for light, tone in TONES.items()
            for check in self.of_light(light)
        ]
        judged = [light for light in IN_ORDER if light != "shown"]
        lights: list[Block] = [_light_table(self, judged)]
        if self.timelines:
            lights.append(Picture(self.figure("time")))
        facts: list[Block] = [Picture(self.figure("drift"))] if self.drift else []
        facts.append(_light_table(self, ["shown"]))
        rules = [(check.key, check.title, check.threshold, check.remedy) for check in self.checks]
        numbers = (
            Table("", _frame(rules, "key", "check", "when the light changes", "what to do")),
            Fold("All numbers", (Table("", self.counts(), 4),)),
            Fold("Parts", (Table("", _turned(self.numbers()), 4),)),
        )
        sections = {"lights": tuple(lights), "drift": tuple(facts), "thresholds": numbers}
        return Document(
            f"Leaks and drift: {', '.join(list(self.splits)[:3])}",
            tuple(verdict),
            tuple(
                Section(key, *SECTIONS[key], blocks, is_open=key != "thresholds")
                for key, blocks in sections.items()
            ),
            card={"versions": versions(), "notes": list(self.notes)},
            values=self.to_dict(),
        )

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the diagnosis as a page (`.html`), Markdown (`.md`) or JSON (`.json`)."""
        save_report(self, path)


def _plain(counts: Summary) -> dict[str, Any]:
    return {key: value for key, value in counts.facts.items() if key != "label"}


def _block(head: str, text: str) -> list[str]:
    """Return a text as lines behind a head, the further ones indented."""
    return textwrap.wrap(
        text,
        WIDTH,
        initial_indent=head.ljust(len(_INDENT)),
        subsequent_indent=_INDENT,
        break_long_words=False,
        break_on_hyphens=False,
    )


SIGNS = {
    "leak": "● leak",
    "look": "▲ look",
    "unknown": "○ unknown",
    "shown": "· shown",
    "ok": "✓ ok",
}
TONES = {"leak": "warning", "look": "plain"}
SECTIONS = {
    "lights": (
        "Lights",
        "What was checked, the worst first: red is a leak, yellow is worth a look.",
    ),
    "drift": (
        "Drift and facts",
        "What changes between training and test, and what the data are: no judgement.",
    ),
    "thresholds": (
        "Thresholds and numbers",
        "When each light changes, and every number behind it.",
    ),
}
"""Sections of the page: title, and what each shows."""


def _light_table(diagnosis: Diagnosis, lights: Iterable[str]) -> Table:
    """Return a row per check with one of these lights, the bad ones marked."""
    rows = [
        (SIGNS[light], check.title, check.short, check.sentence)
        for light in lights
        for check in diagnosis.of_light(light)
    ]
    frame = _frame(rows, "light", "check", "value", "in a sentence", value=pl.String)
    bad = (SIGNS["leak"], SIGNS["look"])
    strong = frozenset((index, 0) for index, row in enumerate(rows) if row[0] in bad)
    return Table("", frame, strong=strong)


def _frame(rows: Sequence[Sequence[Any]], *names: str, value: Any = pl.Float64) -> pl.DataFrame:
    """Return a table of texts; its column `value` has another type."""
    schema = {name: value if name == "value" else pl.String for name in names}
    return pl.DataFrame(rows, schema=schema, orient="row", strict=False)


def _turned(frame: pl.DataFrame) -> pl.DataFrame:
    """Return a column per split, which is easier to read than a row."""
    return frame.with_columns(pl.exclude("split").cast(pl.Float64)).transpose(
        include_header=True, header_name="number", column_names="split"
    )


_RULES = {
    rule.key: rule
    for family in (time_checks, duplicate_users, feature_checks, fact_checks, over_time)
    for rule in vars(family).values()
    if isinstance(rule, Rule)
}
CHECKS: tuple[Rule, ...] = tuple(_RULES[key] for key in check_facts())
"""Every check. To add one: a function with `@rule` in a file of its family, and its facts in
`checks.toml`."""


@checked
def diagnose(split: Split | Iterable[Split], *, log: Events | Ratings | None = None) -> Diagnosis:
    """Look for leaks from test to training, and show what drifts, check by check.

    A check fails (`leak`, red) if what is tested reached the training, warns (`look`, yellow) of
    what to look at before a score is trusted, or passes (`ok`, green). A fact without a judgement
    is `shown` (blue); what cannot be checked here is `unknown` (grey), with the reason. Numerical
    columns that `Ratings` carry as tags are checked as features.

    Parameters
    ----------
    split
        A split, or several of the same data (windows, folds). An iterator is worked through one
        split at a time, such as `us.splits.Random(folds=5).each(ratings)`.
    log
        The ratings or the event log that the splits were made of: for questions about the whole
        log (repeats, births of items, sessions). Default: the parts of the first split together.

    Examples
    --------
    >>> import unskew as us
    >>> log = us.worlds.event_log("growing", users=200, items=100, events=4_000, seed=1)
    >>> ratings = log.to_ratings("first")
    >>> [clean] = us.splits.Temporal(test=0.2).split(ratings)
    >>> us.splits.diagnose(clean).leaks
    ()
    >>> [random] = us.splits.Random(test=0.2).split(ratings)
    >>> [check.key for check in us.splits.diagnose(random).leaks]
    ['future', 'user-order', 'unborn-items', 'torn-sessions']
    """
    view = None if log is None else Log.of(log)
    readings: dict[str, dict[str, Reading]] = {check.key: {} for check in CHECKS}
    counts: dict[str, Summary] = {}
    timelines: list[RowsOverTime] = []
    drift: list[DriftPeriod] = []
    for part in [split] if isinstance(split, Split) else split:
        if not isinstance(part, Split):
            raise SettingError(f"split must be a Split or several of them, got {part!r}")
        _check_rows(part)
        view = Log.of_split(part) if view is None else view
        parts = SplitParts(part, view)
        label = _label(part.label, counts)
        for rule in CHECKS:
            if not rule.of_log or not counts:
                readings[rule.key][label] = rule.reading(parts)
        if (timeline := rows_over_time(parts)) is not None:
            timelines.append(timeline)
        drift += drift_of(parts)
        counts[label] = parts.counts
    if view is None or not counts:
        raise SettingError("split: give at least one split, got none")
    return Diagnosis(
        splits=counts,
        checks=tuple(rule.conclude(readings[rule.key]) for rule in CHECKS),
        timelines=tuple(timelines),
        drift=tuple(drift),
        notes=_notes(view, counts),
    )


def _check_rows(split: Split) -> None:
    """Refuse a split without rows: there is nothing to look at."""
    for name, part in (("training", split.train), ("test", split.test)):
        if not len(part):
            raise SettingError(
                f"{split.label}: the {name} part is empty, so nothing can be checked"
            )


def _label(label: str, counts: dict[str, Summary]) -> str:
    """Return a name that no split before has."""
    name, number = label, 2
    while name in counts:
        name, number = f"{label} ({number})", number + 1
    return name


def _notes(log: Log, counts: dict[str, Summary]) -> tuple[str, ...]:
    if log.is_given or len(counts) == 1:
        return ()
    first = next(iter(counts))
    return (f"No log was given: facts about it are those of the parts of {first}.",)
