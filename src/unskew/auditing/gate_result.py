"""`Gate`: may the candidate replace production? The verdict and every check."""

from __future__ import annotations

import os
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, ClassVar

import polars as pl

from unskew.auditing.gate_checks import (
    FAIL,
    HOLD,
    INFORM,
    NOT_SETTLED,
    OPEN,
    PASS,
    PROMOTE,
    Check,
    Popularity,
    Rail,
    SegmentCheck,
)
from unskew.auditing.gate_facts import GateFacts
from unskew.auditing.gate_junit import as_junit
from unskew.auditing.gate_lead import lead_sentences
from unskew.auditing.gate_words import WIDTH, wrapped
from unskew.checks import choose
from unskew.engine.files import replacing
from unskew.report.charts import Figure
from unskew.report.document import Document, Headline, Picture, Section, Words
from unskew.report.result import Result, plain_values
from unskew.report.tables import Table
from unskew.report.text import as_json, counted, escape_markdown

EXIT_CODES = {PROMOTE: 0, HOLD: 1, NOT_SETTLED: 3}
"""By verdict: how `unskew gate` ends; 2 is bad input."""
SCHEMA = "urn:unskew:gate:2"
"""What the JSON holds, and its version: `unskew schema gate`."""
ENDINGS = (".html", ".htm", ".md", ".json", ".xml")
_STATUS = {PROMOTE: "promote", HOLD: "hold", NOT_SETTLED: "open"}
_SHOWN = {PASS: "ok", OPEN: "open", FAIL: "fails", INFORM: "–"}
_WIDEST = 17


@dataclass(frozen=True, eq=False, kw_only=True)
class Gate(Result, GateFacts):
    """May the candidate replace production? Made by `gate`.

    Print it for the verdict on one screen; `save` writes a report, Markdown for a pull request,
    JSON or JUnit XML.
    """

    figure_is_open: ClassVar[bool] = True
    footer_title: ClassVar[str] = "Notes"

    @property
    def exit_code(self) -> int:
        """How `unskew gate` ends: 0 promote, 1 hold, 3 not settled."""
        return EXIT_CODES[self.verdict]

    def table(self) -> pl.DataFrame:
        """Return a row per check: both values, the change, its bounds, its limit, the outcome."""
        names = ("key", "title", "candidate", "production", "change", "low", "high", "limit")
        rows = [
            {name: getattr(one, name) for name in (*names, "outcome", "reason", "rule")}
            for one in self.checks
        ]
        numbers = dict.fromkeys(names[2:], pl.Float64)
        return pl.DataFrame(rows, schema_overrides=numbers, infer_schema_length=None)

    def header(self) -> list[str]:
        """Return what to do, why, and how sure."""
        return wrapped(self.first_lines())

    def display_tables(self, digits: int | None = None) -> list[Table]:
        """Return the checks as people read them; of each segmentation the worst segment."""
        digits = self.digits if digits is None else digits
        rows = [_row(one, digits, title) for one, title in self._shown()]
        level = f"{100 * (1 - 2 * self.look.alpha):.3g} % interval"
        names = ("check", "production", "change", level, "must be", "result")
        return [Table.of_rows(names, rows, left=(0, 5), digits=digits)]

    def _shown(self) -> list[tuple[Check, str]]:
        metric = self.settings.metric
        popularity = self.popularity
        shown: list[tuple[Check, str]] = [(self.better, metric), (popularity, popularity.measure)]
        shown += [(one, one.title) for one in self.rails]
        for by in dict.fromkeys(one.by for one in self.segments):
            mine = [one for one in self.segments if one.by == by]
            worst = min(mine, key=lambda one: 2.0 if one.p_beyond is None else one.p_beyond)
            shown.append((worst, f"worst {by}"))
        return shown

    def _explanation(self) -> list[str]:
        lines = [self._data_line()]
        worst = [one for one, title in self._shown() if isinstance(one, SegmentCheck)]
        if worst:
            texts = [f"{one.by} {one.title}" for one in worst]
            lines.append(f"worst: {'; '.join(texts)} (of {counted(len(self.segments), 'group')})")
        users = counted(self.better.users, "user")
        lines.append(f"{users}; one-sided tests at {self.look.alpha:.3g}{self._look_text()}")
        if self.references:
            best = sorted(self.references.items(), key=lambda pair: -pair[1])
            texts = [f"{name.removesuffix(' (reference)')} {value:.4f}" for name, value in best]
            lines.append(f"trained for comparison: {', '.join(texts)}")
        return [short_line(line) for line in lines]

    def _look_text(self) -> str:
        if not self.look.is_recorded:
            return ""
        return f", look {self.look.number} at this test log"

    def _data_line(self) -> str:
        bad = [one.reason for one in self.data if one.outcome == OPEN]
        if bad:
            return f"data: {'; '.join(bad)}"
        count = sum(one.outcome == PASS for one in self.data)
        return f"data: {counted(count, 'check')} passed"

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
            "rails": [asdict(one) for one in self.rails],
            "segments": [asdict(one) for one in self.segments],
            "data": [asdict(one) for one in self.data],
            "references": dict(self.references),
            "ladder": dict(self.ladder),
            "look": asdict(self.look),
            "settings": self.settings.to_dict(),
            "notes": self.notes,
        }

    # Outputs

    def figure(self) -> Figure:
        """Draw the change of every check against its limit, in per cent of production."""
        from unskew.auditing.gate_chart import gate_chart

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
            from unskew.report.writing import save_report

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
                (_full_table((self.better, self.popularity, *self.rails)), *self._lead_words()),
            )
        ]
        if self.segments:
            shows = "Groups of users: an alarm is corrected for their number (Holm)."
            table = _full_table(self.segments)
            sections.append(Section("segments", "Groups of users", shows, (table,)))
        sections.append(
            Section(
                "data",
                "Data",
                "What could spoil the comparison. Values are shares.",
                (_full_table(self.data), *map(Words, self.notes)),
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

    def _lead_words(self) -> list[Words]:
        texts = lead_sentences(self)
        if self.references:
            pairs = [f"{name} {value:.4f}" for name, value in self.references.items()]
            texts.append(f"{self.settings.metric} of systems trained on the same ratings: "
                         f"{', '.join(pairs)}.")  # fmt: skip
        return [Words(text) for text in texts]


def _result(one: Check) -> str:
    """Return the outcome in a word; a segment that raises no alarm is not shown to be safe."""
    is_quiet = isinstance(one, SegmentCheck) and one.outcome == PASS
    return "no alarm" if is_quiet else _SHOWN[one.outcome]


def short_line(line: str) -> str:
    """Return a line that fits the width; a longer one ends in a sign."""
    return line if len(line) <= WIDTH else f"{line[: WIDTH - 1]}…"


def _row(one: Check, digits: int, title: str) -> list[str]:
    short = title if len(title) <= _WIDEST else f"{title[: _WIDEST - 1]}…"
    if one.change is None or one.low is None or one.high is None:
        return [short, "–", "–", "–", "–", _result(one)]
    show = _writer(one, digits)
    ends = f"[{show(one.low, True)}, {show(one.high, True)}]"
    return [
        short,
        show(one.production or 0.0, False),
        show(one.change, True),
        ends,
        _needed(one, show),
        _result(one),
    ]


def _needed(one: Check, show: Any) -> str:
    if one.limit is None:
        return "–"
    if isinstance(one, Popularity) and not one.is_needed:
        return "–"
    sign = "<" if isinstance(one, Rail) and not one.is_loss else ">"
    return f"{sign} {show(one.limit, True) if one.limit else '0'}"


def _writer(one: Check, digits: int) -> Any:
    """Return a function that writes numbers of a check, large ones with fewer decimals."""
    size = max(abs(value or 0.0) for value in (one.production, one.candidate, one.change))
    places = digits if size < 10 else 1 if size < 1_000 else 0

    def show(value: float, signed: bool) -> str:
        text = f"{value:+,.{places}f}" if signed else f"{value:,.{places}f}"
        return text.replace("-", "−")

    return show


def _full_table(checks: tuple[Check, ...]) -> Table:
    names = ("check", "production", "candidate", "change", "low", "high", "limit", "result", "rule")
    rows = []
    for one in checks:
        title = f"{one.by}: {one.title}" if isinstance(one, SegmentCheck) else one.title
        values = (one.production, one.candidate, one.change, one.low, one.high, one.limit)
        result = _result(one) + (f": {one.reason}" if one.reason else "")
        rows.append([title, *values, result, one.rule])
    return Table.of_rows(names, rows, left=(0, 7, 8))
