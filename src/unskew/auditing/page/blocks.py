"""Blocks of a report: tables that are cut where they are long, figures that may be missing."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import polars as pl

from unskew.auditing.page.captions import SECTIONS, SHOWS, TEXTS, caption
from unskew.auditing.page.captions import title as title_of
from unskew.auditing.page.glossary import ROWS, heads
from unskew.errors import UnskewError
from unskew.report.charts import Figure
from unskew.report.document import Block, Fold, Picture, Section, Words
from unskew.report.tables import Table
from unskew.report.text import counted, finite

OPEN = ("answer", "designs", "decisions", "ladder")
"""Sections that are unfolded at first."""

GUIDES: dict[str, tuple[str, ...]] = {name: tuple(texts) for name, texts in TEXTS["guides"].items()}
"""By section: how to read it."""
CARD_WORDS: dict[str, str] = TEXTS["card"]
"""By key of a card: people's words. Designs and systems have sections of their own."""
LEAST_POINTS = 3
"""A figure of fewer points says no more than a sentence."""
SHARES = ("density", "liked", "before_any_train", "before_user_train")
"""Facts that are shares."""
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
    return Section(
        key,
        title,
        SHOWS[case] if case else shows,
        tuple(content),
        guide=GUIDES[key],
        is_open=key in OPEN,
    )


def drawable(section: Section) -> Section:
    """Return a section whose figures hold numbers only: JSON has no word for what is none."""
    return replace(section, blocks=tuple(map(_drawable, section.blocks)))


def _drawable(block: Block) -> Block:
    if isinstance(block, Picture):
        figure = Figure(block.figure.title, finite(dict(block.figure.spec)))
        return replace(block, figure=figure)
    if isinstance(block, Fold):
        return replace(block, blocks=tuple(map(_drawable, block.blocks)))
    return block


def fold(key: str, content: Sequence[Block], **values: object) -> list[Block]:
    """Return parts that stay folded; nothing where there are none."""
    parts = tuple(block for block in content if not _is_empty(block))
    return [Fold(title_of(key, **values), parts)] if parts else []


def _is_empty(block: Block) -> bool:
    return isinstance(block, Words) and not str(block)


def card_table(card: Mapping[str, object]) -> pl.DataFrame:
    """Return a card as rows of what and value."""
    rows: list[tuple[str, str]] = []
    for key, words in CARD_WORDS.items():
        value = card.get(key)
        if isinstance(value, dict):
            rows += [
                (f"{words}: {name.replace('_', ' ')}", str(entry))
                for name, entry in value.items()
                if entry is not None
            ]
        elif value is not None:
            rows.append((words, str(value)))
    return pl.DataFrame(rows, schema={"what": pl.String, "value": pl.String}, orient="row")


def facts_table(key: str, table: pl.DataFrame, parts: Mapping[str, str]) -> Table:
    """Turn a table of one row per part into one row per fact.

    Parameters
    ----------
    key
        Its name among the titles.
    table
        The name of a part in the first column, facts in the others.
    parts
        People's words for parts.
    """
    rows = []
    names = [parts.get(part, part) for part in table[table.columns[0]]]
    for name in table.columns[1:]:
        values = table[name].to_list()
        if any(value is not None for value in values):
            texts = [_plain(value, name in SHARES) for value in values]
            rows.append({"what": ROWS.get(name, name), **dict(zip(names, texts, strict=True))})
    return Table(title_of(key), pl.DataFrame(rows))


def _plain(value: Any, is_share: bool = False) -> str:
    if value is None:
        return "–"
    if is_share:
        return f"{100 * value:.1f} %" if 100 * value >= 0.1 or not value else "less than 0.1 %"
    if isinstance(value, float):
        return f"{value:,.4g}" if abs(value) < 1e4 else f"{value:,.0f}"
    return f"{value:,}" if isinstance(value, int) else str(value)


def table(
    key: str, frame: pl.DataFrame, digits: int = 4, note: str = "", **values: object
) -> Table:
    """Return a table with people's words for its columns, cut where it is long.

    Parameters
    ----------
    key
        Its name among the titles.
    frame
        Its values, under their names in Python.
    digits
        The decimals of numbers.
    note
        What stands below it.
    values
        What stands in its title.
    """
    if frame.height > MOST_ROWS:
        cut = caption("rows cut", shown=MOST_ROWS, count=f"{frame.height:,}")
        note = f"{note}; {cut}" if note else cut
        frame = frame.head(MOST_ROWS)
    named = frame.rename(heads(frame.columns, key))
    return Table(title_of(key, **values), named, digits, note)


def reach_table(reach: pl.DataFrame) -> Table:
    """Return how far given lists reach."""
    return table("reach", reach, 3, caption("reach note"))


def present(frame: pl.DataFrame, *names: str) -> list[str]:
    """Return those of the columns that a table has."""
    return [name for name in names if name in frame.columns]


def without_empty(frame: pl.DataFrame) -> pl.DataFrame:
    """Leave out the columns that hold nothing: null, or no text."""
    columns = [
        name
        for name, kind in frame.schema.items()
        if frame[name].null_count() < frame.height
        and not (kind == pl.String and frame[name].fill_null("").eq("").all())
    ]
    return frame.select(columns)


def figure_or_none(make: Callable[[], Figure]) -> Figure | None:
    """Return a figure, or None where there is nothing to draw."""
    try:
        figure = make()
    except UnskewError:
        return None
    rows = figure.spec.get("datasets", {}).get("rows", [1])
    return figure if len(rows) else None


def picture(make: Callable[[], Figure], colours: Mapping[str, str] | None = None) -> Block:
    """Return a figure; a sentence where it would show a point or two, no words where nothing.

    Parameters
    ----------
    make
        Draws it.
    colours
        The colour of each system, for figures that colour them.
    """
    figure = figure_or_none(make)
    if figure is None:
        return Words("")
    points = len(figure.spec.get("datasets", {}).get("rows", range(LEAST_POINTS)))
    if points < LEAST_POINTS:
        count = counted(points, "point")
        return Words(caption("too few points", figure=figure.title, points=count))
    return Picture(figure if colours is None else _coloured(figure, colours))


def _coloured(figure: Figure, colours: Mapping[str, str]) -> Figure:
    """Return a figure in which systems have the colours of the report."""
    scale = {"domain": list(colours), "range": list(colours.values())}

    def changed(part: Any) -> Any:
        if isinstance(part, list):
            return [changed(entry) for entry in part]
        if not isinstance(part, Mapping):
            return part
        parts = {key: part[key] if key == "datasets" else changed(part[key]) for key in part}
        colour = parts.get("color")
        if isinstance(colour, Mapping) and colour.get("field") == "system":
            parts["color"] = {**colour, "scale": scale}
        return parts

    return Figure(figure.title, changed(dict(figure.spec)))


def filled(
    blocks: Sequence[Block], skipped: Mapping[str, str], needs: Sequence[str]
) -> tuple[Block, ...]:
    """Leave empty words out; say why things are missing."""
    content = [block for block in blocks if not _is_empty(block)]
    missing = [
        Words(caption("not done", what=what, why=skipped[what]), "warning")
        for what in needs
        if what in skipped
    ]
    result = (*content, *missing)
    return result or (Words(caption("nothing"), "warning"),)
