"""Blocks of a report: tables that are cut where they are long, figures that may be missing."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

import polars as pl

from unskew.auditing.page.captions import CAPTIONS, SECTIONS, SHOWS, TEXTS, caption
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
NEEDS: dict[str, list[str]] = TEXTS["needs"]
"""By section: the analyses of which it says why they were not done."""
CARD_WORDS: dict[str, str] = TEXTS["card"]
"""By key of a card: people's words. Designs and systems have sections of their own."""
LEAST_POINTS = 3
"""A figure of fewer points says no more than a sentence."""
SHARES = ("density", "liked", "before_any_train", "before_user_train")
"""Facts that are shares."""
MOST_ROWS = 300
"""The most rows of a table: pairs of many systems are cut, and counted."""


def section(
    key: str, content: Iterable[Block], skipped: Mapping[str, str], cases: Iterable[str] = ()
) -> Section:
    """Return a section; what it lacks of the analyses that it shows is said at its end.

    Parameters
    ----------
    key
        Its name among the captions, which have its title.
    content
        What it holds; empty words are left out.
    skipped
        What was not done, and why.
    cases
        What is special here: the first one for which the captions have a text of their own says
        what the section shows.
    """
    title, shows = SECTIONS[key]
    names = (f"{key} {case}" for case in cases)
    missing = [
        Words(caption("not done", what=what, why=skipped[what]), "warning")
        for what in NEEDS.get(key, ())
        if what in skipped
    ]
    return Section(
        key,
        title,
        next((SHOWS[name] for name in names if name in SHOWS), shows),
        (*_filled(content), *missing) or (Words(caption("nothing"), "warning"),),
        guide=GUIDES[key],
        is_open=key in OPEN,
    )


def _filled(content: Iterable[Block]) -> tuple[Block, ...]:
    """Leave empty words out."""
    return tuple(block for block in content if not isinstance(block, Words) or str(block))


def fold(key: str, *content: Block) -> list[Block]:
    """Return parts that stay folded; nothing where there are none."""
    parts = _filled(content)
    return [Fold(title_of(f"{key} fold"), parts)] if parts else []


def listed(key: str, points: Iterable[str]) -> Words:
    """Return points below a caption; empty words without any."""
    texts = tuple(points)
    return Words("", "plain", caption(key), texts) if texts else Words("")


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
    key: str, frame: pl.DataFrame, digits: int = 4, note: str | None = None, **values: object
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
        The name of the caption below it: that of the table unless given.
    values
        What stands in its title and its caption.
    """
    name = f"{note or key} note"
    notes = [caption(name, **values)] if name in CAPTIONS else []
    if frame.height > MOST_ROWS:
        notes.append(caption("rows cut", shown=MOST_ROWS, count=f"{frame.height:,}"))
        frame = frame.head(MOST_ROWS)
    named = frame.rename(heads(frame.columns, key))
    return Table(title_of(key, **values), named, digits, "; ".join(notes))


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


def picture(make: Callable[[], Figure], colours: Mapping[str, str] | None = None) -> Block:
    """Return a figure; a sentence where it would show a point or two, no words where nothing.

    Parameters
    ----------
    make
        Draws it.
    colours
        The colour of each system, for figures that colour them.
    """
    try:
        figure = make()
    except UnskewError:
        return Words("")
    points = len(figure.spec.get("datasets", {}).get("rows", range(LEAST_POINTS)))
    if points == 0:
        return Words("")
    if points < LEAST_POINTS:
        count = counted(points, "point")
        return Words(caption("too few points", figure=figure.title, points=count))
    spec = finite(dict(figure.spec))  # JSON has no word for what is no number
    return Picture(Figure(figure.title, spec if colours is None else _coloured(spec, colours)))


def _coloured(spec: dict[str, Any], colours: Mapping[str, str]) -> dict[str, Any]:
    """Return a specification in which systems have the colours of the report."""
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

    return dict(changed(spec))
