"""What a study found: the ledger of verdicts, the exhibits, and every number."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import polars as pl

from unskew.engine.files import replacing_folder
from unskew.report.document import Block
from unskew.report.result import Result
from unskew.studies.claims import CONTRADICTS, DIFFERS, EVIDENCE, HOLDS, VERDICTS, Verdict, shown
from unskew.studies.paper import SOURCES, Exhibit, Study


@dataclass(frozen=True, eq=False)
class Found(Result):
    """What a study found, before it is put on a page."""

    study: Study
    verdicts: tuple[Verdict, ...]
    exhibits: tuple[tuple[Exhibit, str, tuple[Block, ...]], ...]
    """Each exhibit with the data it is of and its blocks."""
    left_out: Mapping[str, str]
    """Exhibits that could not be drawn, and why."""
    tables: Mapping[tuple[str, str], pl.DataFrame]
    """Everything that was measured, by measurement and data set."""
    card: Mapping[str, Any]
    own: bool
    """Whether it ran on other data than the paper's."""

    @cached_property
    def ledger(self) -> pl.DataFrame:
        """A row per claim and data set: what is claimed, what was measured, the verdict."""
        return pl.DataFrame([_ledger_row(one, self.own) for one in self.verdicts], schema=LEDGER)

    def table(self) -> pl.DataFrame:
        """Return the ledger."""
        return self.ledger

    def display_table(self) -> pl.DataFrame:
        """Return the ledger as people read it, without the statements in full."""
        columns = ("claim", "place", "data", "evidence", "published", "measured", "verdict")
        return self.ledger.select(columns)

    def counts(self, evidence: str | None = None) -> dict[str, int]:
        """Return how many claims have each verdict, all or those of one kind of evidence."""
        verdicts = [
            one.verdict for one in self.verdicts if evidence is None or one.evidence == evidence
        ]
        return {verdict: verdicts.count(verdict) for verdict in VERDICTS}

    def by_evidence(self) -> pl.DataFrame:
        """Return how many claims have each verdict: a row per kind of evidence."""
        rows = [{"evidence": kind, **self.counts(kind)} for kind in EVIDENCE]
        table = pl.DataFrame(rows)
        return table.filter(pl.sum_horizontal(pl.exclude("evidence")) > 0)

    def _explanation(self) -> list[str]:
        return [self.summary(), *self.remarks()]

    def remarks(self) -> list[str]:
        """Return which files are not the paper's data, and which systems could not be trained."""
        return [
            *self.card["not the paper's"].values(),
            *(f"left out: {name}: {why}" for name, why in self.card["left out"].items()),
        ]

    def summary(self) -> str:
        """Return the verdicts in a sentence."""
        return f"{self.study.name}, {self.card['on']}: {self.tally()}."

    def tally(self) -> str:
        """Return the number of each verdict, such as `measured: 31 hold, 1 differs`."""
        parts = [
            f"{kind}: {_in_words(self.counts(kind))}"
            for kind in EVIDENCE
            if any(self.counts(kind).values())
        ]
        return "; ".join(parts)

    def to_csv(self, folder: str | os.PathLike[str]) -> list[Path]:
        """Write every number as CSV: `ledger.csv`, and a file per measurement and data set."""
        home = Path(folder)
        files = {"ledger.csv": self.ledger}
        for (what, on), table in self.tables.items():
            files[f"{what}-{Path(on).stem}.csv" if on else f"{what}.csv"] = _flat(table)
        with replacing_folder(home) as part:
            for name, table in files.items():
                table.write_csv(part / name)
        return [home / name for name in files]


def _in_words(counts: Mapping[str, int]) -> str:
    many = {HOLDS: "hold", DIFFERS: "differ", CONTRADICTS: "contradict"}
    return ", ".join(
        f"{number} {many.get(verdict, verdict) if number > 1 else verdict}"
        for verdict, number in counts.items()
        if number
    )


LEDGER = {
    "claim": pl.String,
    "place": pl.String,
    "says": pl.String,
    "data": pl.String,
    "published": pl.String,
    "measured": pl.String,
    "value": pl.Float64,
    "low": pl.Float64,
    "high": pl.Float64,
    "as_defined": pl.Float64,
    "accepted": pl.String,
    "why": pl.String,
    "verdict": pl.String,
    "evidence": pl.String,
    "note": pl.String,
}


def _ledger_row(one: Verdict, own: bool) -> dict[str, Any]:
    claim, measured = one.claim, one.measured
    asked = own and one.data not in SOURCES.values() and claim.question
    row: dict[str, Any] = {
        "claim": claim.key,
        "place": claim.place,
        "says": claim.question if asked else claim.says,
        "data": one.data,
        "published": claim.published,
        "measured": "",
        "accepted": str(one.rule or claim.rule),
        "why": claim.why,
        "verdict": one.verdict,
        "evidence": one.evidence,
        "note": one.why,
    }
    if measured is None:
        return row
    text = str(measured)
    if measured.low is not None and measured.high is not None:
        text += f" [{shown(measured.low)}, {shown(measured.high)}]"
    if measured.as_defined is not None:
        text += f" (as defined: {shown(measured.as_defined)})"
    numbers = {
        "value": float(measured.value),
        "low": measured.low,
        "high": measured.high,
        "as_defined": measured.as_defined,
    }
    note = one.why or measured.note
    if not own:
        note = f"{note} {claim.explanation}".strip()
    return row | numbers | {"measured": text, "note": note}


def _flat(table: pl.DataFrame) -> pl.DataFrame:
    """Return a table that CSV can hold: lists as text."""
    lists = [name for name, kind in table.schema.items() if kind == pl.List]
    return table.with_columns(
        pl.col(name).cast(pl.List(pl.String)).list.join(" ").alias(name) for name in lists
    )
