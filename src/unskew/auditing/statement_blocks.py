"""Statements as parts of a document: sentences and tables that lead to their rates."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import polars as pl

from unskew.auditing.captions import caption, title
from unskew.auditing.column_names import KINDS, heads
from unskew.auditing.error_rates import Rates, anchor_of, rate_table
from unskew.auditing.first_screen import FirstScreen
from unskew.auditing.statement import Statement
from unskew.report.document import Block, Fold, Link, Words
from unskew.report.tables import Table

TONES = {"finding": "answer", "next": "good"}
"""How sentences of the first screen are set off."""
TWO_SYSTEMS = ("finding", "pair", "reason", "next")


def sentence(statement: Statement, tone: str = "plain") -> Words:
    """Return a statement as a paragraph with a link to how often its kind is wrong."""
    return Words(statement.text, tone, link=Link(title("rate link"), anchor_of(statement.kind)))


def of_kinds(statements: Iterable[Statement], *kinds: str) -> list[Statement]:
    """Return the statements of some kinds, in the order of the kinds."""
    every = list(statements)
    return [one for kind in kinds for one in every if one.kind == kind]


def facts(statements: Iterable[Statement], *kinds: str) -> list[Block]:
    """Return what was done and counted: nothing that could be wrong in a world."""
    texts = tuple(one.text for one in of_kinds(statements, *kinds))
    return [Words("", points=texts)] if len(texts) > 1 else [Words(text) for text in texts]


def lead(screen: FirstScreen) -> tuple[Words, ...]:
    """Return what comes first: the verdict, and up to three sentences."""
    return (
        Words(title("verdict", verdict=screen.verdict), "verdict"),
        *(sentence(one, TONES.get(one.role, "plain")) for one in screen.sentences),
    )


def pair_blocks(statements: Sequence[Statement], pair: Sequence[str], most: int) -> list[Block]:
    """Return the statements about the two systems of the finding; those about others folded."""
    every = [one for one in statements if one.role in TWO_SYSTEMS]
    first = [one for one in every if set(one.subjects) == set(pair)]
    content: list[Block] = []
    if first:
        a, b = pair
        content.append(statement_table(title("pair", a=a, b=b), first[:most]))
    if len(every) > len(first):
        note = ""
        if len(every) > most:
            note = caption("rows cut", shown=most, count=f"{len(every):,}")
        table = statement_table(title("pairs"), every[:most], note)
        content.append(Fold(title("all pairs", count=f"{len(every):,}"), (table,)))
    return content


def statement_table(name: str, statements: Sequence[Statement], note: str = "") -> Table:
    """Return statements as a table, whose kinds lead to their rates."""
    rows = [(KINDS[one.kind], one.text) for one in statements]
    names = heads(("kind", "statement")).values()
    frame = pl.DataFrame(rows, schema=dict.fromkeys(names, pl.String), orient="row")
    links = {(at, 0): anchor_of(one.kind) for at, one in enumerate(statements)}
    return Table(name, frame, note=note, links=links)


def rates_block(statements: Sequence[Statement], rates: Rates | None) -> Table:
    """Return how often sentences of each kind of this report are wrong; a row for every link."""
    frame = rate_table(statements, rates)
    anchors = tuple(anchor_of(kind) for kind in frame["kind"])
    shown = frame.with_columns(pl.col("kind").replace_strict(KINDS)).rename(heads(frame.columns))
    return Table(title("rates"), shown, note=caption("rates note"), anchors=anchors)
