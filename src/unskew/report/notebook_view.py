"""What results and data show in a notebook: tables of a readable size, facts, notes, a figure."""

from __future__ import annotations

import base64
import dataclasses
import html
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from unskew.report.text import cell, counted, visible
from unskew.settings import Setting

if TYPE_CHECKING:
    from unskew.report.charts import Figure
    from unskew.report.tables import Table

CONTAINER = '<div class="unskew-view">'
"""What every view starts with; its style reaches nothing outside of it."""
MOST_ROWS = 20
"""Rows that are shown of a long table."""
SLACK = 5
"""A table with this many rows more is shown whole: a line that says so would be as long."""
MOST_COLUMNS = 24
MOST_LINES = 12
"""Lines that are shown below tables; more are folded."""
MOST_FOLDED = 100
LONGEST_CELL = 240
"""Characters of a cell."""
LARGEST_PICTURE = 400_000
"""Bytes of a figure; a larger one is named instead of shown."""

_RULES = Path(__file__).with_name("notebook_view.css").read_text(encoding="utf-8").splitlines()
STYLE = f"<style>{''.join(_RULES[1:])}</style>"


def view(
    kind: str,
    summary: str,
    *,
    header: Sequence[str] = (),
    tables: Iterable[Table] = (),
    lines: Sequence[str] = (),
    fold: str = "",
    picture: str = "",
    hint: str = "",
    every_row: str = "print it to see all",
) -> str:
    """Return what a notebook shows of a result or of data.

    Parameters
    ----------
    kind, summary
        What it is, and a few words on what it holds.
    header
        Lines above the tables; the first one is set in bold.
    tables
        Its tables; long ones are cut, which a line says.
    lines
        Lines below the tables: explanation, notes, conclusions.
    fold
        Under which title the lines are folded; empty: only what is too long is.
    picture
        A figure as `as_picture` returns it.
    hint
        Where to find the rest.
    every_row
        What to do to see the rows of a table that were cut.

    Examples
    --------
    >>> from unskew.report.notebook_view import view
    >>> shown = view("Ratings", "3 <b>", lines=["a note"])
    >>> shown.startswith('<div class="unskew-view">'), "3 &lt;b&gt;" in shown
    (True, True)
    """
    parts = [CONTAINER, STYLE, f"<p><b>{_text(kind)}</b> {_text(summary)}</p>"]
    if header:
        first, *others = map(_text, header)
        parts.append(f'<p class="unskew-head">{"<br>".join([f"<b>{first}</b>", *others])}</p>')
    parts += [_table(table, every_row) for table in tables]
    parts.append(picture)
    parts += _lines(lines, fold)
    if hint:
        parts.append(f'<p class="unskew-lines">{_text(hint)}</p>')
    return "".join([*parts, "</div>"])


def card(
    kind: str,
    summary: str,
    facts: Iterable[tuple[str, object]],
    notes: Sequence[str] = (),
    hint: str = "",
) -> str:
    """Return a card of facts for a notebook; facts that are None or empty are left out.

    Examples
    --------
    >>> from unskew.report.notebook_view import card
    >>> shown = card("Split", "fold1", [("training ratings", 1234), ("time", None)])
    >>> "1,234" in shown, "time" in shown.partition("</style>")[2]
    (True, False)
    """
    from unskew.report.tables import Table

    rows = [(name, cell(value)) for name, value in facts if value is not None and value != ""]
    tables = [Table.of_rows(["", ""], rows, left=(0, 1))] if rows else []
    return view(kind, summary, tables=tables, lines=notes, hint=hint)


def settings_card(kind: str, summary: str, settings: Any) -> str:
    """Return a card of a frozen dataclass of settings: value and meaning of each."""
    from unskew.report.tables import Table

    rows = []
    for field in dataclasses.fields(settings):
        stated = [part.meaning for part in field.metadata.values() if isinstance(part, Setting)]
        meaning = " ".join(" ".join(stated).replace("`", "").split())
        value = getattr(settings, field.name)
        # Of ratings, functions and the like the first words of what they print are enough.
        plain = isinstance(value, bool | int | float | str) or value is None
        rows.append((field.name, cell(value) if plain else repr(value), meaning))
    tables = [Table.of_rows(["setting", "value", "meaning"], rows, left=(0, 1, 2))] if rows else []
    return view(kind, summary, tables=tables)


def as_picture(result: object, *, is_open: bool) -> str:
    """Return the figure of a result as HTML; nothing where it has none or none can be drawn.

    A picture in an image cannot run a script, and its ids meet none of other pictures.
    """
    draw = getattr(result, "figure", None)
    if draw is None:
        return ""
    try:
        figure: Figure = draw()
        content = figure.to_svg().encode()
    except Exception:  # a view must show the numbers whatever becomes of the figure
        return ""
    title = _text(figure.title)
    if len(content) > LARGEST_PICTURE:
        return f"<p>Figure: {title}, too large for this view; .figure() shows it.</p>"
    source = f"data:image/svg+xml;base64,{base64.b64encode(content).decode()}"
    state = " open" if is_open else ""
    return (
        f"<details{state}><summary>Figure: {title}</summary>"
        f'<img alt="{title}" src="{source}"></details>'
    )


def _text(text: str) -> str:
    return html.escape(visible(text))


def _table(table: Table, every_row: str) -> str:
    frame = table.frame
    notes = []
    if frame.height > MOST_ROWS + SLACK:
        notes.append(f"{frame.height - MOST_ROWS:,} more rows of {frame.height:,}: {every_row}")
    if frame.width > MOST_COLUMNS:
        left_out = counted(frame.width - MOST_COLUMNS, "more column")
        notes.append(f"{left_out}: {every_row}")
    rows = MOST_ROWS if frame.height > MOST_ROWS + SLACK else frame.height
    columns = frame.columns[:MOST_COLUMNS]
    cut_table = dataclasses.replace(
        table,
        frame=frame.head(rows).select(columns),
        names=tuple(table.header[: len(columns)]),
        anchors=(),
        links={},
    )
    cut = "".join(f'<p class="unskew-lines">… {_text(note)}</p>' for note in notes)
    return f'<div class="unskew-scroll">{cut_table.to_html(longest=LONGEST_CELL)}</div>{cut}'


def _lines(lines: Sequence[str], fold: str) -> list[str]:
    """Return lines as paragraphs; many of them, or all below a title, in a fold."""
    first = [] if fold else lines[:MOST_LINES]
    folded = lines[len(first) :][:MOST_FOLDED]
    beyond = len(lines) - len(first) - len(folded)
    parts = [f'<p class="unskew-lines">{"<br>".join(map(_text, first))}</p>'] if first else []
    if folded:
        title = _text(fold or counted(len(lines) - len(first), "more line"))
        more = [f"… and {beyond:,} more: print it to see all"] if beyond else []
        body = "<br>".join(map(_text, [*folded, *more]))
        parts.append(f'<details><summary>{title}</summary><p class="unskew-lines">{body}</p>')
        parts.append("</details>")
    return parts
