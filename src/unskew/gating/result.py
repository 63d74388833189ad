"""`Gate`: may the candidate replace production? The verdict and every check."""

from __future__ import annotations

import os
import textwrap
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, ClassVar
from xml.etree import ElementTree as ET

import polars as pl

from unskew.checks import choose
from unskew.engine.files import replacing
from unskew.gating.checks import (
    FAIL,
    FEWEST,
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
from unskew.gating.settings import GateSettings, MarginRule
from unskew.report.charts import Figure, as_figure
from unskew.report.document import Document, Headline, Picture, Section, Words
from unskew.report.result import Result, plain_values
from unskew.report.tables import Table
from unskew.report.text import as_json, counted, escape_markdown, visible


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


def lead_sentences(gate: Gate) -> list[str]:
    """Return what check 2 saw, and what the ladder says where training is known."""
    check = gate.popularity
    parts = []
    if check.judged is not None:
        parts.append(f"are judged {check.judged:.2f} times as often")
    if check.liked is not None:
        parts.append(f"where judged, are liked {check.liked:.2f} times as often")
    if check.popularity is not None:
        parts.append(f"have {check.popularity:.2f} times as many ratings")
    texts = []
    if parts:
        texts.append(f"Against production, the candidate's items {', '.join(parts)}.")
    if check.levelled is not None and check.levelled_low is not None:
        interval = f"{check.levelled_low:+.1%} to {check.levelled_high:+.1%}"
        texts.append(
            "If each liked item counts 1 / popularity, the candidate lists "
            f"{check.levelled:+.1%} liked items ({interval})."
        )
    if gate.ladder:
        steps = ", ".join(f"{name} {value:+.4f}" for name, value in gate.ladder.items())
        texts.append(
            f"The lead in precision, step by step (docs: the ladder): {steps}. Counts and averages "
            "are what items that more people rate and like give to any lists; choice and opinion "
            "are who rated and liked what beyond that."
        )
    return texts


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
    title = f"{check.by}: {check.title}" if isinstance(check, SegmentCheck) else check.title
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
_RAIL_HARM = {
    "rail anti": "per item that users like, it would show more that they dislike than you allow",
    "rail coverage": "it would show a smaller part of the catalogue than you allow",
    "rail gini": "it would concentrate on fewer items than you allow",
    "rail popularity": "it would favour popular items more than you allow",
}
_RAIL_OPEN = {
    "rail anti": "whether it shows more disliked items per liked one than you allow is open",
    "rail coverage": "whether it shows a smaller part of the catalogue than you allow is open",
    "rail gini": "whether it concentrates on fewer items than you allow is open",
    "rail popularity": "whether it favours popular items more than you allow is open",
}
EXIT_CODES = {PROMOTE: 0, HOLD: 1, NOT_SETTLED: 3}
"""By verdict: how `unskew gate` ends; 2 is bad input."""
SCHEMA = "urn:unskew:gate:2"
"""What the JSON holds, and its version: `unskew schema gate`."""
ENDINGS = (".html", ".htm", ".md", ".json", ".xml")
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
        candidate, production, better = self.candidate, self.production, self.better
        alpha, margin, checks = self.look.alpha, self.settings.margin, self.checks
        if self.verdict == PROMOTE:
            gain = _gain(better, margin)
            guarded = any(isinstance(check, Rail) and check.outcome == PASS for check in checks)
            ending = "; what you guard stays in bounds" if guarded else ""
            return (
                f"PROMOTE: {candidate} may replace {production}.",
                f"Why: {gain}{ending}.",
                f"How sure: of 100 rankers that do not deserve it, about {_of_100(alpha)} or fewer "
                "would pass.",
            )
        if self.verdict == HOLD:
            harms = [_harm(check, better) for check in checks if check.outcome == FAIL]
            return (
                f"HOLD: keep {production}; do not replace it by {candidate}.",
                f"Why: {_joined(harms)}.",
                # The test of the score and the alarms each err at alpha.
                "How sure: of 100 rankers without such harm, about "
                f"{_of_100(2 * alpha)} or fewer would look so.",
            )
        # Where a gain may come from is a question only where there is one.
        relevant = [
            check for check in checks if better.outcome == PASS or check.key != "popularity"
        ]
        reasons = [_open(check, better, margin) for check in relevant if check.outcome == OPEN]
        return (
            f"NOT SETTLED: keep {production} for now; the data do not show that {candidate} may "
            "replace it.",
            f"Why: {_joined(reasons)}.",
            f"How sure: {_power(better, margin)}.",
        )

    @property
    def exit_code(self) -> int:
        """How `unskew gate` ends: 0 promote, 1 hold, 3 not settled."""
        return EXIT_CODES[self.verdict]

    def table(self) -> pl.DataFrame:
        """Return a row per check: both values, the change, its bounds, its limit, the outcome."""
        names = ("key", "title", "candidate", "production", "change", "low", "high", "limit")
        rows = [
            {name: getattr(check, name) for name in (*names, "outcome", "reason", "rule")}
            for check in self.checks
        ]
        numbers = dict.fromkeys(names[2:], pl.Float64)
        return pl.DataFrame(rows, schema_overrides=numbers, infer_schema_length=None)

    def header(self) -> list[str]:
        """Return what to do, why, and how sure."""
        return wrapped(self.first_lines())

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
        users = counted(self.better.users, "user")
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


# The words of the first lines


def wrapped(lines: Sequence[str]) -> list[str]:
    """Break lines at the width of a terminal."""
    return [part for line in lines for part in textwrap.wrap(line, WIDTH) or [""]]


def percent(better: Better, value: float | None = None) -> str:
    """Return a change of the score in per cent of production's, or in its own unit from 0."""
    amount = better.change if value is None else value
    assert amount is not None
    if not better.production:
        return f"{amount:+.4f}".replace("-", "−")
    return f"{100 * amount / abs(better.production):+.1f} %".replace("-", "−")


def _of_100(alpha: float) -> str:
    return f"{100 * alpha:.2g}"


def _gain(better: Better, margin: MarginRule | None) -> str:
    if margin is None:
        return f"it serves users better (score {percent(better)})"
    return f"it serves users well enough (score {percent(better)}; you allow −{_allowed(margin)})"


def _allowed(margin: MarginRule) -> str:
    return f"{100 * margin.amount:g} %" if margin.relative else f"{margin.amount:g}"


def _harm(check: GateCheck, better: Better) -> str:
    if check is better:
        return f"it serves users worse (score {percent(better)})"
    if isinstance(check, SegmentCheck):
        return f"some users would be worse off ({check.by}: {check.title})"
    return _RAIL_HARM[check.key]


def _open(check: GateCheck, better: Better, margin: MarginRule | None) -> str:
    if check is better:
        if margin is None:
            return f"no clear gain for users (score {percent(better)})"
        return f"a loss of more than {_allowed(margin)} is not ruled out (score {percent(better)})"
    if check.key == "popularity":
        return "the score may come from items that are rated more, not liked more"
    return _RAIL_OPEN.get(check.key, check.reason)


def _power(better: Better, margin: MarginRule | None) -> str:
    if better.outcome == PASS:
        return "the score itself is clear; what is missing stands in the line above"
    if better.detectable == float("inf"):
        return "there are too few users for a test"
    if margin is None and better.differing < FEWEST:
        users = counted(better.differing, "user gets", "users get")
        return f"{users} another score, of {better.users:,}; it takes at least {FEWEST}"
    what = "gain" if margin is None else "change"
    smallest = percent(better, better.detectable)
    return f"with these users, a true {what} of {smallest} would show in 8 of 10 tests"


def _joined(reasons: Sequence[str]) -> str:
    """Join the first reasons; say how many more there are."""
    texts = list(dict.fromkeys(reasons))
    if len(texts) <= 2:
        return "; ".join(texts)
    return f"{'; '.join(texts[:2])}; and {len(texts) - 2} more (below)"


# Tables


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
    show = _writer(check, digits)
    interval = f"[{show(check.low, True)}, {show(check.high, True)}]"
    return [
        short,
        show(check.production or 0.0, False),
        show(check.change, True),
        interval,
        _needed(check, show),
        _result(check),
    ]


def _needed(check: GateCheck, show: Any) -> str:
    if check.limit is None:
        return "–"
    if isinstance(check, PopularityCheck) and not check.is_needed:
        return "–"
    sign = "<" if isinstance(check, Rail) and not check.is_loss else ">"
    return f"{sign} {show(check.limit, True) if check.limit else '0'}"


def _writer(check: GateCheck, digits: int) -> Any:
    """Return a function that writes numbers of a check, large ones with fewer decimals."""
    size = max(abs(value or 0.0) for value in (check.production, check.candidate, check.change))
    places = digits if size < 10 else 1 if size < 1_000 else 0

    def show(value: float, signed: bool) -> str:
        text = f"{value:+,.{places}f}" if signed else f"{value:,.{places}f}"
        return text.replace("-", "−")

    return show


def _full_table(checks: tuple[GateCheck, ...]) -> Table:
    names = ("check", "production", "candidate", "change", "low", "high", "limit", "result", "rule")
    rows = []
    for check in checks:
        title = f"{check.by}: {check.title}" if isinstance(check, SegmentCheck) else check.title
        values = [getattr(check, name) for name in names[1:7]]
        result = _result(check) + (f": {check.reason}" if check.reason else "")
        rows.append([title, *values, result, check.rule])
    return Table.of_rows(names, rows, left=(0, 7, 8))
