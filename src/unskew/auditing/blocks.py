"""Blocks of a report: tables that are cut where they are long, figures that may be missing."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import polars as pl

from unskew.auditing.captions import SECTIONS, SHOWS, caption
from unskew.auditing.captions import title as title_of
from unskew.errors import UnskewError
from unskew.report.charts import Figure
from unskew.report.document import Block, Picture, Section, Words
from unskew.report.tables import Table
from unskew.report.text import finite

CARD = (
    *("data", "truth", "level", "relevance", "metric", "seed", "null", "permutations"),
    *("bootstrap", "users", "undefined", "ties", "versions"),
)
"""What is shown of a card; designs and systems have sections of their own."""
MOST_ROWS = 300
"""The most rows of a table: pairs of many systems are cut, and counted."""


def section(key: str, content: Sequence[Block], case: str = "") -> Section:
    """Return a section.

    Parameters
    ----------
    key
        Its name among the captions, which have its title.
    content
        What it holds.
    case
        What it shows in a special case, by its name among the captions.
    """
    title, shows = SECTIONS[key]
    return Section(key, title, SHOWS[case] if case else shows, tuple(content))


def drawable(section: Section) -> Section:
    """Return a section whose figures hold numbers only: JSON has no word for what is none."""
    blocks = tuple(
        replace(block, figure=Figure(block.figure.title, finite(dict(block.figure.spec))))
        if isinstance(block, Picture)
        else block
        for block in section.blocks
    )
    return replace(section, blocks=blocks)


def card_table(card: Mapping[str, object]) -> pl.DataFrame:
    """Return a card as rows of what and value."""
    rows: list[tuple[str, str]] = []
    for key in CARD:
        value = card.get(key)
        if isinstance(value, dict):
            rows += [(f"{key}: {name}", str(one)) for name, one in value.items()]
        elif value is not None:
            rows.append((key, str(value)))
    return pl.DataFrame(rows, schema={"what": pl.String, "value": pl.String}, orient="row")


def facts_table(title: str, table: pl.DataFrame) -> Table:
    """Turn a table of one row per part into one row per fact."""
    rows = []
    for name in table.columns[1:]:
        values = table[name].to_list()
        if any(one is not None for one in values):
            rows.append(
                {
                    "what": name.replace("_", " "),
                    **{
                        part: _plain(one)
                        for part, one in zip(table[table.columns[0]], values, strict=True)
                    },
                }
            )
    return Table(title, pl.DataFrame(rows))


def _plain(value: Any) -> str:
    if value is None:
        return "–"
    if isinstance(value, float):
        return f"{value:,.4g}" if abs(value) < 1e4 else f"{value:,.0f}"
    return f"{value:,}" if isinstance(value, int) else str(value)


def table(title: str, frame: pl.DataFrame, digits: int = 4, note: str = "") -> Table:
    """Return a table, cut where it is long."""
    if frame.height > MOST_ROWS:
        cut = caption("rows cut", shown=MOST_ROWS, count=f"{frame.height:,}")
        note = f"{note}; {cut}" if note else cut
        frame = frame.head(MOST_ROWS)
    named = frame.rename(lambda name: name.replace("_", " "))
    return Table(title, named, digits, note)


def reach_table(reach: pl.DataFrame) -> Table:
    """Return how far given lists reach."""
    return table(title_of("reach"), reach, 3, caption("reach note"))


def present(frame: pl.DataFrame, *names: str) -> list[str]:
    """Return those of the columns that a table has."""
    return [name for name in names if name in frame.columns]


def without_empty(frame: pl.DataFrame) -> pl.DataFrame:
    """Leave out the columns that hold nothing: null, or no text."""
    kept = [
        name
        for name, kind in frame.schema.items()
        if frame[name].null_count() < frame.height
        and not (kind == pl.String and frame[name].fill_null("").eq("").all())
    ]
    return frame.select(kept)


def figure_or_none(make: Callable[[], Figure]) -> Figure | None:
    """Return a figure, or None where there is nothing to draw."""
    try:
        figure = make()
    except UnskewError:
        return None
    rows = figure.spec.get("datasets", {}).get("rows", [1])
    return figure if len(rows) else None


def picture(make: Callable[[], Figure]) -> Block:
    """Return a figure; no words where there is nothing to draw, which `filled` leaves out."""
    figure = figure_or_none(make)
    return Words("") if figure is None else Picture(figure)


def filled(
    blocks: Sequence[Block], skipped: Mapping[str, str], needs: Sequence[str]
) -> tuple[Block, ...]:
    """Leave empty words out; say why things are missing."""
    kept = [block for block in blocks if not (isinstance(block, Words) and not str(block))]
    missing = [
        Words(caption("not done", what=what, why=skipped[what]), "warning")
        for what in needs
        if what in skipped
    ]
    both = (*kept, *missing)
    return both or (Words(caption("nothing"), "warning"),)
