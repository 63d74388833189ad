"""`Gate`: may the candidate replace production? The verdict and every check."""

from __future__ import annotations

import os
import textwrap
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar
from xml.etree import ElementTree as ET

import polars as pl

from unskew.checks import choose
from unskew.engine.files import replacing
from unskew.gating.checks import (
    FAIL,
    HOLD,
    INFORM,
    NOT_SETTLED,
    OPEN,
    PASS,
    PROMOTE,
    Better,
    GateCheck,
    PopularityCheck,
    Rail,
    SegmentCheck,
)
from unskew.gating.looks import Look
from unskew.gating.settings import GateSettings
from unskew.gating.words import first_lines, lead_sentences
from unskew.report.charts import Figure, as_figure
from unskew.report.columns import Column, Method, Question
from unskew.report.document import Document, Headline, Picture, Section, Words
from unskew.report.estimate_tables import as_table
from unskew.report.estimates import Estimates
from unskew.report.result import Result, plain_values
from unskew.report.tables import Table
from unskew.report.text import as_json, counted, escape_markdown, interval, number, visible


def as_junit(gate: Gate) -> str:
    """Return a test suite: the verdict, and a test case per check."""
    failed = [check for check in gate.checks if check.outcome in (FAIL, OPEN)]
    skipped = [check for check in gate.checks if check.outcome == INFORM]
    suite = ET.Element(
        "testsuite",
        name="unskew gate",
        tests=str(1 + len(gate.checks)),
        failures=str(len(failed) + (not gate.promoted)),
        errors="0",
        skipped=str(len(skipped)),
    )
    case = ET.SubElement(suite, "testcase", classname="gate", name="verdict")
    text = "\n".join(map(visible, gate.first_lines()))
    if not gate.promoted:
        failure = ET.SubElement(case, "failure", message=gate.verdict, type=gate.verdict)
        failure.text = text
    ET.SubElement(case, "system-out").text = text
    for check in gate.checks:
        _add(suite, check)
    ET.indent(suite)
    return '<?xml version="1.0" encoding="UTF-8"?>\n' + ET.tostring(suite, encoding="unicode")


def _add(suite: ET.Element, check: GateCheck) -> None:
    case = ET.SubElement(suite, "testcase", classname="gate", name=visible(check.key))
    reason = visible(check.reason)
    if check.outcome in (FAIL, OPEN):
        kind = "hold" if check.outcome == FAIL else "not settled"
        ET.SubElement(case, "failure", message=reason, type=kind).text = visible(check.rule)
    elif check.outcome == INFORM:
        ET.SubElement(case, "skipped", message=reason or "reported, not tested")
    if check.change is not None:
        bounds = "" if check.low is None else f", bounds {check.low:.6g} to {check.high:.6g}"
        limit = "" if check.limit is None else f", limit {check.limit:.6g}"
        ET.SubElement(case, "system-out").text = f"change {check.change:.6g}{bounds}{limit}"


_COLOURS = {
    "ok": "#2a7f62",
    "open": "#b8860b",
    "fails": "#b3261e",
    "no alarm": "#4a7ba6",
    "reported": "#777777",
}
_WORDS = {"pass": "ok", "open": "open", "fail": "fails", "inform": "reported"}
EDGE = 150.0
"""Changes beyond so many per cent are drawn at the edge."""
MOST = 30
"""Segments beyond so many are left out of the chart: the report lists them."""


def gate_chart(gate: Gate) -> Figure:
    """Draw the change of every check in per cent of production's value, and its limit."""
    import altair as alt

    segments = sorted(
        gate.segments, key=lambda segment: 2.0 if segment.p_beyond is None else segment.p_beyond
    )
    checks = (gate.better, gate.popularity, *gate.rails, *segments[:MOST])
    rows = [row for check in checks if (row := _chart_row(check, gate.settings.metric)) is not None]
    order = [row["check"] for row in rows]
    base = alt.Chart(alt.NamedData(name="rows")).properties(width=520, height=alt.Step(22))
    y = alt.Y("check:N", title=None).sort(order).axis(labelLimit=260)
    colour = alt.Color("result:N", title=None).scale(
        domain=list(_COLOURS), range=list(_COLOURS.values())
    )
    title = "candidate less production, in per cent of production"
    bounds = [float(row[name]) for row in rows for name in ("low", "high", "limit") if row[name]]
    domain = [max(min(bounds, default=-1.0), -EDGE), min(max(bounds, default=1.0), EDGE)]
    x = alt.X("low:Q", title=title).scale(domain=domain, clamp=True)
    bars = base.mark_rule(strokeWidth=2).encode(y=y, x=x, x2="high:Q", color=colour)
    points = base.mark_point(filled=True, size=60).encode(y=y, x="change:Q", color=colour)
    limits = base.mark_tick(thickness=2, color="black").encode(y=y, x="limit:Q")
    notes = [
        f"bars: {100 * (1 - 2 * gate.look.alpha):.3g} % intervals; black ticks: limits",
        gate.first_lines()[0],
    ]
    if max(map(abs, bounds), default=0) > EDGE:
        notes.insert(1, f"changes beyond {EDGE:g} % are drawn at the edge")
    chart = alt.layer(bars, points, limits)
    return as_figure(chart, f"{gate.candidate} against {gate.production}", notes, rows)


def _chart_row(check: GateCheck, metric: str) -> dict[str, Any] | None:
    if check.change is None or check.low is None or check.high is None or not check.production:
        return None
    scale = 100 / abs(check.production)
    title = _full_title(check)
    if check.key == "rail gini":  # its limit is a share of 1 - Gini
        scale, title = -100 / max(1 - check.production, 1e-9), "even exposure"
    is_tested = check.limit is not None and not isinstance(check, PopularityCheck)
    # Where a rise is guarded against, the bar must stay on the left of its limit.
    is_rise = isinstance(check, Rail) and not check.is_loss and check.key != "rail gini"
    if check.key == "better":
        title = metric
    return {
        "check": f"{title} (less is better)" if is_rise else title,
        "change": scale * check.change,
        "low": scale * check.low,
        "high": scale * check.high,
        "limit": scale * check.limit if is_tested and check.limit is not None else None,
        "result": "no alarm" if is_quiet(check) else _WORDS[check.outcome],
    }


def is_quiet(check: GateCheck) -> bool:
    """Tell whether a segment raises no alarm, which does not show that it is safe."""
    return isinstance(check, SegmentCheck) and check.outcome == PASS


WIDTH = 80
EXIT_CODES = {PROMOTE: 0, HOLD: 1, NOT_SETTLED: 3}
"""By verdict: how `unskew gate` ends; 2 is bad input."""
SCHEMA = "urn:unskew:gate:2"
"""What the JSON holds, and its version: `unskew schema gate`."""
ENDINGS = (".html", ".htm", ".md", ".json", ".xml")
CHECKS = Question(
    name="checks",
    columns=(
        *(Column("check", "key", hidden=True), Column("title", "note", "check")),
        *(Column("production", "fact"), Column("candidate", "fact")),
        Column("value", "value", "change", form="+"),
        *(Column(end, "interval", form="+") for end in ("low", "high")),
        *(Column("limit", "fact", form="+"), Column("p_beyond", "p", hidden=True)),
        *(Column(name, "note", hidden=True) for name in ("outcome", "reason")),
        *(Column("result", "note"), Column("rule", "note")),
    ),
    method=Method(estimand="candidate less production", interval="Hall's t", test="one-sided t"),
    figures=(),
)
"""A row per check; what is not tested has no interval."""
CHECKED = (
    "production",
    "candidate",
    "low",
    "high",
    "limit",
    "p_beyond",
    "outcome",
    "reason",
    "rule",
)
"""What a row of `CHECKS` takes from a check as it is."""
_STATUS = {PROMOTE: "promote", HOLD: "hold", NOT_SETTLED: "open"}
_SHOWN = {PASS: "ok", OPEN: "open", FAIL: "fails", INFORM: "–"}
_WIDEST = 17


@dataclass(frozen=True, eq=False, kw_only=True)
class Gate(Result):
    """May the candidate replace production? Made by `gate`.

    Print it for the verdict; `save` writes a report, Markdown for pull requests, JSON or JUnit XML.

    Examples
    --------
    >>> import unskew as us
    >>> runs = {order: {u: list(order) for u in range(60)} for order in ("ab", "ba")}
    >>> us.gate({"user": range(60), "item": ["a"] * 60}, runs, candidate="ab", production="ba")
    Gate(promote, ab for ba)
    """

    figure_is_open: ClassVar[bool] = True
    footer_title: ClassVar[str] = "Notes"

    verdict: str
    """`promote`, `hold` or `not settled`."""
    candidate: str
    production: str
    better: Better
    popularity: PopularityCheck
    rails: tuple[Rail, ...]
    segments: tuple[SegmentCheck, ...]
    data: tuple[GateCheck, ...]
    settings: GateSettings
    look: Look
    """Which look at this test log it is, and the level of its tests."""
    references: Mapping[str, float] = field(default_factory=dict)
    """The score of reference systems that were trained on the training ratings."""
    ladder: Mapping[str, float] = field(default_factory=dict)
    """What the lead in precision is made of (`us.bias.ladder`), where training is known."""
    notes: tuple[str, ...] = ()
    is_grouped: bool = False
    """Whether bounds and tests are by group of users: then `users` of the checks are groups."""

    @property
    def promoted(self) -> bool:
        """Whether the candidate may replace production."""
        return self.verdict == PROMOTE

    @property
    def checks(self) -> tuple[GateCheck, ...]:
        """All checks, in their order."""
        return (self.better, self.popularity, *self.rails, *self.segments, *self.data)

    def first_lines(self) -> tuple[str, str, str]:
        """Return what to do, why, and how sure: three lines without terms of the field."""
        return first_lines(
            self.verdict,
            self.candidate,
            self.production,
            self.better,
            self.checks,
            self.look.alpha,
            self.settings.margin,
        )

    @property
    def exit_code(self) -> int:
        """How `unskew gate` ends: 0 promote, 1 hold, 3 not settled."""
        return EXIT_CODES[self.verdict]

    @cached_property
    def estimates(self) -> Estimates:
        """A row per check: both values, the change with its bounds and its limit, the outcome."""
        rows = [
            {
                **{name: getattr(check, name, None) for name in CHECKED},
                "check": check.key,
                "title": _full_title(check),
                "value": check.change,
                "result": _result(check) + (f": {check.reason}" if check.reason else ""),
            }
            for check in self.checks
        ]
        return Estimates.of_rows(CHECKS, rows, level=1 - 2 * self.look.alpha)

    def table(self) -> pl.DataFrame:
        """Return the numbers of `estimates`."""
        return self.estimates.table()

    def header(self) -> list[str]:
        """Return what to do, why, and how sure."""
        return [part for line in self.first_lines() for part in textwrap.wrap(line, WIDTH) or [""]]

    def display_tables(self, digits: int | None = None) -> list[Table]:
        """Return the checks as people read them; of each segmentation the worst segment."""
        digits = self.digits if digits is None else digits
        rows = [_row(check, digits, title) for check, title in self._shown()]
        level = f"{100 * (1 - 2 * self.look.alpha):.3g} % interval"
        names = ("check", "production", "change", level, "must be", "result")
        return [Table.of_rows(names, rows, left=(0, 5), digits=digits)]

    def _shown(self) -> list[tuple[GateCheck, str]]:
        metric = self.settings.metric
        popularity = self.popularity
        rows: list[tuple[GateCheck, str]] = [
            (self.better, metric),
            (popularity, popularity.measure),
        ]
        rows += [(rail, rail.title) for rail in self.rails]
        for by in dict.fromkeys(segment.by for segment in self.segments):
            mine = [segment for segment in self.segments if segment.by == by]
            worst = min(
                mine, key=lambda segment: 2.0 if segment.p_beyond is None else segment.p_beyond
            )
            rows.append((worst, f"worst {by}"))
        return rows

    def _explanation(self) -> list[str]:
        bad = [check.reason for check in self.data if check.outcome == OPEN]
        passed = counted(sum(check.outcome == PASS for check in self.data), "check")
        lines = [f"data: {'; '.join(bad)}" if bad else f"data: {passed} passed"]
        worst = [check for check, title in self._shown() if isinstance(check, SegmentCheck)]
        if worst:
            texts = [f"{segment.by} {segment.title}" for segment in worst]
            lines.append(f"worst: {'; '.join(texts)} (of {counted(len(self.segments), 'group')})")
        words = ("group of users", "groups of users") if self.is_grouped else ("user", "users")
        users = counted(self.better.users, *words)
        look = f", look {self.look.number} at this test log" if self.look.is_recorded else ""
        lines.append(f"{users}; one-sided tests at {self.look.alpha:.3g}{look}")
        if self.references:
            best = sorted(self.references.items(), key=lambda pair: -pair[1])
            texts = [f"{name.removesuffix(' (reference)')} {value:.4f}" for name, value in best]
            lines.append(f"trained for comparison: {', '.join(texts)}")
        return [_shortened(line, WIDTH) for line in lines]

    def brief(self) -> str:
        """Return the verdict as one terminal screen; of the notes only their number."""
        return self._text_above(self._brief_lines())

    def _brief_lines(self) -> list[str]:
        more = [f"{counted(len(self.notes), 'note')} in the report"] if self.notes else []
        return [*self._explanation(), *more]

    def _summary(self) -> str:
        return f"{self.verdict}, {self.candidate} for {self.production}"

    def _content(self) -> dict[str, object]:
        what, why, sure = self.first_lines()
        return {
            "schema": SCHEMA,
            "verdict": self.verdict,
            "exit_code": self.exit_code,
            "candidate": self.candidate,
            "production": self.production,
            "what": what,
            "why": why,
            "sure": sure,
            "better": asdict(self.better),
            "popularity": asdict(self.popularity),
            "rails": [asdict(rail) for rail in self.rails],
            "segments": [asdict(segment) for segment in self.segments],
            "data": [asdict(check) for check in self.data],
            "references": dict(self.references),
            "ladder": dict(self.ladder),
            "look": asdict(self.look),
            "settings": self.settings.to_dict(),
            "notes": self.notes,
        }

    # Outputs

    def figure(self) -> Figure:
        """Draw the change of every check against its limit, in per cent of production."""
        return gate_chart(self)

    def to_markdown(self, digits: int | None = None, figure: str | None = None) -> str:
        """Return Markdown for a pull request: the verdict, the chart, the checks.

        Parameters
        ----------
        digits
            Decimals.
        figure
            The address of the chart, as it is linked; without it there is none.
        """
        what, why, sure = map(escape_markdown, self.first_lines())
        parts = [f"**{what}**", why, sure]
        parts += [f"![Change of every check]({figure})"] if figure else []
        parts += [table.to_markdown() for table in self.display_tables(digits)]
        parts += ["\n".join(f"- {escape_markdown(line)}" for line in self._brief_lines())]
        return "\n\n".join(parts)

    def to_junit(self) -> str:
        """Return JUnit XML: a test case per check; open and failed ones are failures."""
        return as_junit(self)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the result; the ending is the format.

        Parameters
        ----------
        path
            `.html` a report; `.md` short, for a pull request, with its chart in an SVG file of the
            same name; `.json`; `.xml` JUnit.
        """
        target = Path(path)
        ending = choose("file ending", target.suffix.lower(), ENDINGS)
        if ending in (".html", ".htm"):
            from unskew.report.page import save_report

            save_report(self, target)
            return
        if ending == ".md":
            picture = target.with_suffix(".svg")
            self.figure().save(picture)
            text = self.to_markdown(figure=picture.name)
        else:
            text = self.to_junit() if ending == ".xml" else as_json(self.to_dict(), indent=1)
        with replacing(target) as part:
            part.write_text(text.rstrip() + "\n", encoding="utf-8")

    def document(self) -> Document:
        """Return the report."""
        what, why, sure = self.first_lines()
        sections = [
            Section(
                "checks",
                "Checks",
                "Every check with its change, its limit and what it shows.",
                (
                    self._table_of((self.better, self.popularity, *self.rails)),
                    *self._lead_words(),
                ),
            )
        ]
        if self.segments:
            shows = "Groups of users: an alarm is corrected for their number (Holm)."
            table = self._table_of(self.segments)
            sections.append(Section("segments", "Groups of users", shows, (table,)))
        sections.append(
            Section(
                "data",
                "Data",
                "What could spoil the comparison. Values are shares.",
                (self._table_of(self.data), *map(Words, self.notes)),
            )
        )
        return Document(
            f"May {self.candidate} replace {self.production}?",
            (Words(why), Words(sure)),
            tuple(sections),
            card=self.settings.to_dict(),
            systems=(self.candidate, self.production),
            values=plain_values(self._content()),
            headline=Headline(what, _STATUS[self.verdict], chart=Picture(self.figure())),
        )

    def _table_of(self, checks: Iterable[GateCheck]) -> Table:
        """Return some checks as people read them, with their rules."""
        return as_table(self.estimates.where(check=[check.key for check in checks]))

    def _lead_words(self) -> list[Words]:
        texts = lead_sentences(self.popularity, self.ladder)
        if self.references:
            pairs = [f"{name} {value:.4f}" for name, value in self.references.items()]
            texts.append(f"{self.settings.metric} of systems trained on the same ratings: "
                         f"{', '.join(pairs)}.")  # fmt: skip
        return [Words(text) for text in texts]


# Tables


def _full_title(check: GateCheck) -> str:
    return f"{check.by}: {check.title}" if isinstance(check, SegmentCheck) else check.title


def _result(check: GateCheck) -> str:
    """Return the outcome in a word; a segment that raises no alarm is not shown to be safe."""
    return "no alarm" if is_quiet(check) else _SHOWN[check.outcome]


def _shortened(text: str, width: int) -> str:
    """Return text that fits a width; a longer one ends in a sign."""
    return text if len(text) <= width else f"{text[: width - 1]}…"


def _row(check: GateCheck, digits: int, title: str) -> list[str]:
    short = _shortened(title, _WIDEST)
    if check.change is None or check.low is None or check.high is None:
        return [short, "–", "–", "–", "–", _result(check)]
    places = _decimals(check, digits)
    return [
        short,
        number(check.production or 0.0, places),
        number(check.change, places, signed=True),
        interval(check.low, check.high, places, signed=True),
        _needed(check, places),
        _result(check),
    ]


def _needed(check: GateCheck, places: int) -> str:
    if check.limit is None:
        return "–"
    if isinstance(check, PopularityCheck) and not check.is_needed:
        return "–"
    sign = "<" if isinstance(check, Rail) and not check.is_loss else ">"
    return f"{sign} {number(check.limit, places, signed=True) if check.limit else '0'}"


def _decimals(check: GateCheck, digits: int) -> int:
    """Return how many decimals the numbers of a check have: large ones have fewer."""
    size = max(abs(value or 0.0) for value in (check.production, check.candidate, check.change))
    return digits if size < 10 else 1 if size < 1_000 else 0
