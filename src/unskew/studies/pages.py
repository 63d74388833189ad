"""A study as a page: the verdicts first, then its exhibits, the whole ledger, and the card."""

from __future__ import annotations

from collections.abc import Iterator

import polars as pl

from unskew.auditing.citations import PAPERS
from unskew.report.document import Block, Code, Document, Section, Words
from unskew.report.tables import Table
from unskew.report.text import as_json
from unskew.studies.claims import (
    AMBIGUOUS,
    CONTRADICTS,
    DIFFERS,
    EVIDENCE,
    FAILED,
    HOLDS,
    NO_DATA,
    NOT_CHECKABLE,
    NOT_SETTLED,
    NOTE,
)
from unskew.studies.result import Found

MEANING = {
    HOLDS: "what was measured agrees with the claim, with its whole interval",
    DIFFERS: "neither the value nor its interval agrees; what the paper leaves open (settings, "
    "pre-processing) could explain it",
    CONTRADICTS: "neither the value nor its interval agrees, and nothing that was left open "
    "explains it",
    NOT_SETTLED: "some values of the interval agree with the claim and some do not",
    AMBIGUOUS: "the paper says two things; what was measured is told",
    NOTE: "the paper says nothing about it; what was measured is told",
    FAILED: "the check raised an error; the reason stands beside it",
    NO_DATA: "the data it needs are not there; the reason stands beside it",
    NOT_CHECKABLE: "it is not defined on these data, or nobody can check it; the reason stands "
    "beside it",
}
HEADS = {
    CONTRADICTS: "What contradicts",
    DIFFERS: "What differs",
    NOT_SETTLED: "What is not settled",
    AMBIGUOUS: "Where the paper is ambiguous",
    NOTE: "Notes",
    FAILED: "What failed",
}
PAGE = "studies/index.md"


def document(found: Found) -> Document:
    """Return what a study found as a document."""
    title = f"{found.study.name}: {found.study.title}"
    sections = [_verdicts(found), *_exhibits(found), _ledger(found), _card(found)]
    return Document(title, tuple(_lead(found)), tuple(sections), found.card)


def _lead(found: Found) -> Iterator[Words]:
    yield Words(found.study.reference + ".")
    yield Words(f"Run on {found.card['on']}. Claims by evidence: {found.tally()}.", tone="answer")
    if found.own:
        yield Words(
            "These are not the data of the paper: its claims are asked here as questions about "
            "other data, and a verdict says nothing about the paper.",
            tone="warning",
        )
    for remark in found.remarks():
        yield Words(remark, tone="warning")
    if found.card["quick"]:
        yield Words("A quick run, with fewer repetitions than the paper.", tone="warning")


def _verdicts(found: Found) -> Section:
    blocks: list[Block] = [
        Table("Verdicts by evidence", found.by_evidence()),
        Words("", points=tuple(f"{kind}: {text}" for kind, text in EVIDENCE.items())),
        Table("Verdicts", found.display_table()),
        Words("", points=tuple(f"{verdict}: {text}" for verdict, text in MEANING.items())),
    ]
    for verdict in (CONTRADICTS, DIFFERS, NOT_SETTLED, AMBIGUOUS, NOTE, FAILED):
        rows = found.ledger.filter(pl.col("verdict") == verdict).iter_rows(named=True)
        points = tuple(
            f"{row['claim']} ({row['place']}, {row['data']}): {row['says']} Measured: "
            f"{row['measured']}; would agree: {row['accepted']}. {row['note']}".strip()
            for row in rows
        )
        if points:
            blocks.append(Words("", head=HEADS[verdict], points=points))
    shows = "Every claim of the paper that can be checked, and whether it holds here."
    return Section("verdicts", "Verdicts", shows, tuple(blocks), PAGE)


def _exhibits(found: Found) -> Iterator[Section]:
    for number, (exhibit, on, blocks) in enumerate(found.exhibits, start=1):
        yield Section(
            f"exhibit-{number}",
            f"{exhibit.place}: {exhibit.title} ({on})",
            exhibit.shows,
            blocks,
            PAGE,
        )
    if found.left_out:
        points = tuple(f"{place}: {why}" for place, why in found.left_out.items())
        shows = "Tables and figures of the paper that these data cannot give."
        yield Section("left-out", "Not drawn", shows, (Words("", points=points),), PAGE)


def _ledger(found: Found) -> Section:
    columns = ["claim", "place", "says", "data", "published", "measured", "accepted", "why"]
    frame = found.ledger.select(*columns, "evidence", "verdict", "note")
    shows = "Each claim in full: what agrees with it and why, and what was measured."
    return Section("ledger", "The ledger", shows, (Table("Claims", frame),), PAGE)


def _card(found: Found) -> Section:
    blocks = (
        Code("Again", found.card["command"]),
        Code("Card", as_json(dict(found.card), indent=1)),
        Code("To cite", PAPERS[found.study.name]),
    )
    shows = "Everything from which these numbers can be made again."
    return Section("card", "The card", shows, blocks, PAGE)
