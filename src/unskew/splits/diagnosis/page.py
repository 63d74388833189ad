"""The document of a diagnosis: lights first, then facts, drift, and all thresholds."""

from __future__ import annotations

import polars as pl

from unskew.engine.versions import versions
from unskew.report.document import Block, Document, Fold, Picture, Section, Words
from unskew.report.tables import Table
from unskew.splits.diagnosis.check import IN_ORDER, Check
from unskew.splits.diagnosis.lights import Lights

SIGNS = {
    "leak": "● leak",
    "look": "▲ look",
    "unknown": "○ unknown",
    "shown": "· shown",
    "ok": "✓ ok",
}
TONES = {"leak": "warning", "look": "plain", "ok": "good"}


def document_of(diagnosis: Lights) -> Document:
    """Return a diagnosis as a document."""
    return Document(
        f"Leaks and drift: {', '.join(list(diagnosis.splits)[:3])}",
        tuple(lead(diagnosis)),
        (
            Section(
                "lights",
                "Lights",
                "What was checked, the worst first: red is a leak, yellow is worth a look.",
                tuple(light_blocks(diagnosis)),
            ),
            Section(
                "drift",
                "Drift and facts",
                "What changes between training and test, and what the data are: no judgement.",
                tuple(fact_blocks(diagnosis)),
            ),
            Section(
                "thresholds",
                "Thresholds and numbers",
                "When each light changes, and every number behind it.",
                (
                    threshold_table(diagnosis),
                    Fold("All numbers", (Table("", diagnosis.counts(), 4),)),
                    Fold("Parts", (Table("", _turned(diagnosis.numbers()), 4),)),
                ),
                is_open=False,
            ),
        ),
        card={"versions": versions(), "notes": list(diagnosis.notes)},
        values=diagnosis.to_dict(),
    )


def lead(diagnosis: Lights) -> list[Words]:
    """Return the answer: the verdict, and every red and yellow light with its remedy."""
    tone = "warning" if diagnosis.leaks else "good"
    result = [Words(f"{diagnosis.verdict()}.", tone, "Verdict")]
    for light in ("leak", "look"):
        for one in diagnosis.of_light(light):
            result.append(Words(f"{one.sentence} {one.remedy}", TONES[light], f"{one.title}."))
    return result


def light_blocks(diagnosis: Lights) -> list[Block]:
    """Return the table of lights, without facts, and the rows over time."""
    rows = [
        (SIGNS[light], one.title, one.short, one.sentence)
        for light in IN_ORDER
        if light != "shown"
        for one in diagnosis.of_light(light)
    ]
    blocks: list[Block] = [_table(rows)]
    if diagnosis.timelines:
        blocks.append(Picture(diagnosis.figure("time")))
    return blocks


def fact_blocks(diagnosis: Lights) -> list[Block]:
    """Return the facts, and the drift of items."""
    facts = diagnosis.of_light("shown")
    blocks: list[Block] = [_table([(SIGNS["shown"], *_row(one)) for one in facts])]
    if diagnosis.drift:
        blocks.insert(0, Picture(diagnosis.figure("drift")))
    return blocks


def threshold_table(diagnosis: Lights) -> Table:
    """Return when each light changes."""
    rows = [(one.key, one.title, one.threshold, one.remedy) for one in diagnosis.checks]
    names = ["key", "check", "when the light changes", "what to do"]
    return Table("", pl.DataFrame(rows, schema=dict.fromkeys(names, pl.String), orient="row"))


def _row(check: Check) -> tuple[str, str, str]:
    return check.title, check.short, check.sentence


def _table(rows: list[tuple[str, str, str, str]]) -> Table:
    names = ["light", "check", "value", "in a sentence"]
    frame = pl.DataFrame(rows, schema=dict.fromkeys(names, pl.String), orient="row")
    bad = (SIGNS["leak"], SIGNS["look"])
    return Table(
        "", frame, strong=frozenset((at, 0) for at, row in enumerate(rows) if row[0] in bad)
    )


def _turned(frame: pl.DataFrame) -> pl.DataFrame:
    """Return a column per split, which is easier to read than a row."""
    names = [name for name in frame.columns if name != "split"]
    columns: dict[str, list[object]] = {"number": list(names)}
    for row in frame.iter_rows(named=True):
        values = [row[name] for name in names]
        columns[row["split"]] = [None if one is None else float(one) for one in values]
    return pl.DataFrame(columns)
