"""`StudyResult`: the verdicts of a study as a ledger and a page, its exhibits, every number."""

from __future__ import annotations

import math
import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import polars as pl

from unskew.auditing.page.paper_files import PAPERS
from unskew.engine.files import replacing_folder, write_table
from unskew.report.document import Block, Code, Document, Fold, Section, Words
from unskew.report.result import Result
from unskew.report.tables import Table
from unskew.report.text import as_json
from unskew_studies.paper import (
    AMBIGUOUS,
    CLAIM,
    EVIDENCE_KINDS,
    NOTE,
    Claim,
    Evidence,
    Exhibit,
    MeasuredValue,
    Study,
    format_value,
)
from unskew_studies.rules import Rule

HOLDS, DIFFERS, CONTRADICTS, NOT_SETTLED = "holds", "differs", "contradicts", "not settled"
FAILED, NO_DATA, NOT_CHECKABLE = "failed", "data not there", "not checkable"
VERDICTS = {
    HOLDS: "what was measured agrees with the claim, with its whole interval",
    DIFFERS: "neither the value nor its interval agrees; what the paper leaves open (settings, "
    "pre-processing) could explain it",
    CONTRADICTS: "neither the value nor its interval agrees, and nothing that was left open "
    "explains it",
    NOT_SETTLED: "some values of the interval agree with the claim and some do not",
    AMBIGUOUS: "the paper says two things; the measured value is given without a verdict",
    NOTE: "the paper says nothing about it; the measured value is given without a verdict",
    FAILED: "the check raised an error; the note has the reason",
    NO_DATA: "the data it needs are not there; the note has the reason",
    NOT_CHECKABLE: "it is not defined on these data, or nobody can check it; the note has the "
    "reason",
}
"""What each verdict means."""
HEADS = {
    CONTRADICTS: "What contradicts",
    DIFFERS: "What differs",
    NOT_SETTLED: "What is not settled",
    AMBIGUOUS: "Where the paper is ambiguous",
    NOTE: "Notes",
    FAILED: "What failed",
}
PLURALS = {HOLDS: "hold", DIFFERS: "differ", CONTRADICTS: "contradict"}
LEDGER = {
    "claim": pl.String,
    "place": pl.String,
    "statement": pl.String,
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


@dataclass(frozen=True, kw_only=True)
class Verdict:
    """The verdict on a claim by one piece of evidence on one data set."""

    claim: Claim
    evidence: Evidence
    data: str
    """The name of the data set, or the source of evidence that needs none."""
    verdict: str
    measured: MeasuredValue | None = None
    why: str = ""
    """Why it could not be checked."""
    rule: Rule | None = None

    @property
    def evidence_kind(self) -> str:
        """What it rests on."""
        kind = self.measured.evidence_kind if self.measured is not None else ""
        return kind or self.evidence.kind


def judge(
    claim: Claim, evidence: Evidence, rule: Rule, data: str, measured: MeasuredValue
) -> Verdict:
    """Compare a measured value with a claim.

    It holds if the value and its whole interval agree, and is not settled if only part of them
    does. If none does, it differs where what the paper leaves open could explain it; else it
    contradicts the claim.
    """
    low, high = measured.range
    why = ""
    if math.isnan(measured.value):
        verdict, why = NOT_CHECKABLE, measured.note or "undefined on these data"
    elif claim.kind != CLAIM:
        verdict = claim.kind
    elif rule.accepts(low) and rule.accepts(high):
        verdict = HOLDS
    elif rule.reaches(low, high):
        verdict = NOT_SETTLED
    else:
        verdict = CONTRADICTS if rule.decisive else DIFFERS
    return Verdict(
        claim=claim,
        evidence=evidence,
        data=data,
        verdict=verdict,
        measured=measured,
        why=why,
        rule=rule,
    )


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class StudyResult(Result):
    """The result of `study`.

    Print it for the verdicts; `document()` is the whole page, `to_csv` writes every number.
    """

    study: Study
    verdicts: tuple[Verdict, ...]
    exhibits: tuple[tuple[Exhibit, str, tuple[Block, ...]], ...]
    """Each exhibit with the data it is of and its blocks."""
    left_out: Mapping[str, str]
    """Exhibits that could not be drawn, and why."""
    tables: Mapping[tuple[str, str], pl.DataFrame]
    """Every table that was measured, by measurement and data set."""
    card: Mapping[str, Any]
    is_other_data: bool
    """Whether it ran on other data than the paper's."""

    @cached_property
    def ledger(self) -> pl.DataFrame:
        """A row per claim, piece of evidence and data set: value, what agrees, verdict."""
        rows = [_ledger_row(one, self.is_other_data) for one in self.verdicts]
        return pl.DataFrame(rows, schema=LEDGER)

    def table(self) -> pl.DataFrame:
        """Return the ledger."""
        return self.ledger

    def display_table(self) -> pl.DataFrame:
        """Return the ledger as people read it, without the statements in full."""
        columns = ("claim", "place", "data", "evidence", "published", "measured", "verdict")
        return self.ledger.select(columns)

    def counts(self, evidence_kind: str | None = None) -> dict[str, int]:
        """Return the number of each verdict, of all or of one kind of evidence."""
        verdicts = [
            one.verdict for one in self.verdicts if evidence_kind in (None, one.evidence_kind)
        ]
        return {verdict: verdicts.count(verdict) for verdict in VERDICTS}

    def by_evidence(self) -> pl.DataFrame:
        """Return the number of each verdict: a row per kind of evidence."""
        table = pl.DataFrame([{"evidence": kind, **self.counts(kind)} for kind in EVIDENCE_KINDS])
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
        return f"{self.study.name}, {self.card['datasets']}: {self.tally()}."

    def tally(self) -> str:
        """Return the number of each verdict, such as `measured: 31 hold, 1 differs`."""
        counts = {kind: self.counts(kind) for kind in EVIDENCE_KINDS}
        return "; ".join(
            f"{kind}: {_in_words(numbers)}"
            for kind, numbers in counts.items()
            if any(numbers.values())
        )

    def to_csv(self, folder: str | os.PathLike[str]) -> list[Path]:
        """Write every number as CSV: `ledger.csv`, and a file per measurement and data set."""
        home = Path(folder)
        files = {"ledger.csv": self.ledger}
        for (name, dataset_name), table in self.tables.items():
            end = f"-{Path(dataset_name).stem}" if dataset_name else ""
            files[f"{name}{end}.csv"] = _flat(table)
        with replacing_folder(home) as part:
            for name, table in files.items():
                write_table(table, part / name, "csv")
        return [home / name for name in files]

    def document(self) -> Document:
        """Return the page: verdicts first, the exhibits, the ledger in full, and the card."""
        title = f"{self.study.name}: {self.study.title}"
        sections = [_verdicts(self), *_exhibits(self), _ledger(self), _card(self)]
        return Document(title, tuple(_lead(self)), tuple(sections), self.card)

    def _content(self) -> dict[str, Any]:
        return self.document().to_dict()

    def _summary(self) -> str:
        return f"{self.study.name}: {len(self.verdicts)} verdicts"


def _in_words(counts: Mapping[str, int]) -> str:
    return ", ".join(
        f"{number} {PLURALS.get(verdict, verdict) if number > 1 else verdict}"
        for verdict, number in counts.items()
        if number
    )


def _ledger_row(one: Verdict, is_other_data: bool) -> dict[str, Any]:
    claim, evidence, measured = one.claim, one.evidence, one.measured
    asked = is_other_data and claim.question_rule(evidence) is not None
    row: dict[str, Any] = {
        "claim": claim.key,
        "place": claim.place,
        "statement": claim.question if asked else claim.statement,
        "data": one.data,
        "published": claim.published,
        "measured": "",
        "accepted": str(one.rule or evidence.rule),
        "why": evidence.why,
        "verdict": one.verdict,
        "evidence": one.evidence_kind,
        "note": one.why,
    }
    if measured is None:
        return row
    text = str(measured)
    if measured.low is not None and measured.high is not None:
        text += f" [{format_value(measured.low)}, {format_value(measured.high)}]"
    if measured.as_defined is not None:
        text += f" (as defined: {format_value(measured.as_defined)})"
    numbers = {
        "value": float(measured.value),
        "low": measured.low,
        "high": measured.high,
        "as_defined": measured.as_defined,
    }
    note = one.why or measured.note
    if not is_other_data:
        note = f"{note} {evidence.explanation}".strip()
    return row | numbers | {"measured": text, "note": note}


def _flat(table: pl.DataFrame) -> pl.DataFrame:
    """Return a table that CSV can hold: lists as text."""
    lists = [name for name, kind in table.schema.items() if kind == pl.List]
    return table.with_columns(
        pl.col(name).cast(pl.List(pl.String)).list.join(" ").alias(name) for name in lists
    )


# The page

OPEN_EXHIBITS = 2
"""So many exhibits are unfolded at first."""
GUIDES = {
    "verdicts": (
        "Each claim of the paper was written down as a rule before it was checked: which measured "
        "values would agree with it.",
        "A claim holds where the value and its whole interval agree, and is not settled where only "
        "a part of the interval does.",
    ),
    "exhibit": (
        "This is the table or figure of the paper, made again from these data. Compare its shape "
        "with the paper's; the verdicts compare the numbers.",
    ),
    "ledger": (
        "A row for each claim and piece of evidence: what the paper says, what was measured, what "
        "would agree with it, and why.",
    ),
    "card": ("The same data, settings and versions give the same numbers again.",),
}
"""By kind of section: how to read it."""


def _lead(result: StudyResult) -> Iterator[Words]:
    yield Words(result.study.reference + ".")
    yield Words(
        f"Run on {result.card['datasets']}. Claims by evidence: {result.tally()}.", tone="answer"
    )
    if result.is_other_data:
        yield Words(
            "These are not the data of the paper: its claims are asked here as questions about "
            "other data, and a verdict says nothing about the paper.",
            tone="warning",
        )
    for remark in result.remarks():
        yield Words(remark, tone="warning")
    if result.card["quick"]:
        yield Words("A quick run, with fewer repetitions than the paper.", tone="warning")


def _verdicts(result: StudyResult) -> Section:
    blocks: list[Block] = [
        Table("Verdicts by evidence", result.by_evidence()),
        Table("Verdicts", result.display_table()),
    ]
    for verdict, head in HEADS.items():
        rows = result.ledger.filter(pl.col("verdict") == verdict).iter_rows(named=True)
        points = tuple(
            f"{row['claim']} ({row['place']}, {row['data']}): {row['statement']} Measured: "
            f"{row['measured']}; would agree: {row['accepted']}. {row['note']}".strip()
            for row in rows
        )
        if points:
            blocks.append(Fold(f"{head} ({len(points)})", (Words("", head=head, points=points),)))
    kinds = tuple(f"{kind}: {text}" for kind, text in EVIDENCE_KINDS.items())
    meanings = tuple(f"{verdict}: {text}" for verdict, text in VERDICTS.items())
    blocks.append(
        Fold("What verdicts and kinds of evidence mean", (Words("", points=(*meanings, *kinds)),))
    )
    shows = "Every claim of the paper that can be checked, and whether it holds here."
    return Section("verdicts", "Verdicts", shows, tuple(blocks), guide=GUIDES["verdicts"])


def _exhibits(result: StudyResult) -> Iterator[Section]:
    for number, (exhibit, data, blocks) in enumerate(result.exhibits, start=1):
        title = f"{exhibit.place}: {exhibit.title} ({data})"
        yield Section(
            f"exhibit-{number}",
            title,
            exhibit.shows,
            blocks,
            guide=GUIDES["exhibit"],
            is_open=number <= OPEN_EXHIBITS,
        )
    if result.left_out:
        points = tuple(f"{place}: {why}" for place, why in result.left_out.items())
        shows = "Tables and figures of the paper that these data cannot give."
        yield Section("left-out", "Not drawn", shows, (Words("", points=points),), is_open=False)


def _ledger(result: StudyResult) -> Section:
    columns = ["claim", "place", "statement", "data", "published", "measured", "accepted", "why"]
    frame = result.ledger.select(*columns, "evidence", "verdict", "note")
    repeated = pl.struct("claim", "statement") == pl.struct("claim", "statement").shift(1)
    once = pl.when(repeated.fill_null(value=False)).then(pl.lit("")).otherwise("statement")
    shows = "Each claim in full, with a row per piece of evidence: what agrees with it and why, "
    shows += "and what was measured."
    grid = Table("Claims", frame.with_columns(once.alias("statement")))
    return Section("ledger", "The ledger", shows, (grid,), guide=GUIDES["ledger"], is_open=False)


def _card(result: StudyResult) -> Section:
    blocks = (
        Code("Again", result.card["command"]),
        Code("Card", as_json(dict(result.card), indent=1)),
        Code("To cite", PAPERS[result.study.name]),
    )
    shows = "The settings, data and versions behind these numbers."
    return Section("card", "The card", shows, blocks, guide=GUIDES["card"], is_open=False)
