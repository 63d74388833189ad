"""A document as one HTML file that needs nothing else: no network, no other file."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from functools import cache
from html import escape
from importlib import resources
from string import Template
from typing import Any

from unskew.report.charts import converter, script_json
from unskew.report.document import Block, Code, Document, Fold, Picture, Section, Words
from unskew.report.tables import Table
from unskew.report.text import cell

SHORT = 24
"""Texts up to this long stay on one line of a table."""


def as_html(document: Document) -> bytes:
    """Return a page with everything in it: words, tables that sort, charts that answer.

    Parameters
    ----------
    document
        What to say.
    """
    specs: dict[str, Mapping[str, Any]] = {}
    body = "".join(_section(section, specs) for section in document.sections)
    bundle = _bundle(next(iter(specs.values()))["$schema"]) if specs else ""
    return (
        Template(_part("page.html"))
        .substitute(
            title=escape(document.title),
            style=_part("page.css"),
            bundle=_closed(bundle),
            script=_part("page.js"),
            lead="".join(_words(words) for words in document.lead),
            nav="".join(
                f'<li><a href="#{escape(section.key)}">{escape(section.title)}</a></li>'
                for section in document.sections
            ),
            systems=_systems(document.systems),
            body=body,
            specs=script_json(specs),
        )
        .encode()
    )


@cache
def _bundle(schema: str) -> str:
    """Return the script that draws charts of one version of the grammar; slow to make."""
    convert, version = converter({"$schema": schema})
    return str(convert.javascript_bundle(vl_version=version))


def _part(name: str) -> str:
    return resources.files("unskew.report").joinpath(name).read_text(encoding="utf-8")


def _closed(script: str) -> str:
    """Return a script that cannot end its own element."""
    return re.sub(r"</(script)", r"<\\/\1", script, flags=re.IGNORECASE)


def _systems(systems: tuple[str, ...]) -> str:
    """Return the boxes with which readers hide systems."""
    if len(systems) < 2:
        return ""
    boxes = "".join(
        f'<label><input type="checkbox" checked value="{escape(name)}"> {escape(name)}</label>'
        for name in systems
    )
    return (
        f'<details class="systems"><summary>Systems shown ({len(systems)})</summary>'
        f'<div>{boxes}<button type="button" data-all>all</button>'
        f'<button type="button" data-none>none</button></div></details>'
    )


def _section(section: Section, specs: dict[str, Mapping[str, Any]]) -> str:
    key = escape(section.key)
    blocks = "".join(
        _block(block, f"{section.key}-{number}", specs)
        for number, block in enumerate(section.blocks)
    )
    return (
        f'<section id="{key}" aria-labelledby="{key}-title"><h2 id="{key}-title">'
        f'{escape(section.title)}</h2><p class="shows">{escape(section.shows)}</p>'
        f"{blocks}</section>"
    )


def _block(block: Block, key: str, specs: dict[str, Mapping[str, Any]]) -> str:
    if isinstance(block, Words):
        return _words(block)
    if isinstance(block, Table):
        return _grid(block, key)
    if isinstance(block, Code):
        return (
            f'<figure class="code"><figcaption>{escape(block.title)} '
            f'<button type="button" data-copy>copy</button></figcaption>'
            f'<pre tabindex="0">{escape(block.text)}</pre></figure>'
        )
    if isinstance(block, Fold):
        parts = "".join(
            _block(one, f"{key}-{number}", specs) for number, one in enumerate(block.blocks)
        )
        return f"<details><summary>{escape(block.title)}</summary>{parts}</details>"
    return _picture(block, key, specs)


def _words(words: Words) -> str:
    head = f"<strong>{escape(words.head)}</strong> " if words.head else ""
    text = f"{head}{escape(words.text)}"
    if words.link is not None:
        target, label = escape(words.link.target), escape(words.link.text)
        text += f' <a class="aside" href="#{target}">{label}</a>'
    if not words.points:
        return f'<p class="{escape(words.tone)}">{text}</p>'
    points = "".join(f"<li>{escape(point)}</li>" for point in words.points)
    return f'<div class="{escape(words.tone)} points"><p>{text}</p><ul>{points}</ul></div>'


def _picture(block: Picture, key: str, specs: dict[str, Mapping[str, Any]]) -> str:
    specs[key] = block.figure.to_dict()
    title = escape(block.figure.title)
    return (
        f'<figure class="chart"><div id="chart-{escape(key)}" data-chart="{escape(key)}" '
        f'role="img" aria-label="{title}"><noscript>Chart: {title} (needs JavaScript).</noscript>'
        f"</div>{_note(block.note)}</figure>"
    )


def _grid(block: Table, key: str) -> str:
    numeric = [kind.is_numeric() for kind in block.frame.dtypes]
    head = "".join(
        f'<th scope="col" class="{"number" if number else "text"}">'
        f'<button type="button">{escape(name)}</button></th>'
        for name, number in zip(block.frame.columns, numeric, strict=True)
    )
    rows = "".join(_row(block, at, row, numeric) for at, row in enumerate(block.frame.iter_rows()))
    return (
        f'<figure class="table"><figcaption id="{escape(key)}-caption">{escape(block.title)} '
        f'<span class="export"><button type="button" data-export="csv">CSV</button>'
        f'<button type="button" data-export="latex">LaTeX</button></span></figcaption>'
        f'<div class="wide" tabindex="0" role="region" aria-labelledby="{escape(key)}-caption">'
        f"<table><thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table></div>"
        f"{_note(block.note)}</figure>"
    )


def _row(block: Table, at: int, row: Sequence[object], numeric: Sequence[bool]) -> str:
    anchor = f' id="{escape(block.anchors[at])}"' if block.anchors else ""
    cells = "".join(
        _cell(value, number, block.digits, block.links.get((at, place)))
        for place, (value, number) in enumerate(zip(row, numeric, strict=True))
    )
    return f"<tr{anchor}>{cells}</tr>"


def _cell(value: object, number: bool, digits: int, target: str | None) -> str:
    short = isinstance(value, str) and len(value) <= SHORT
    kind = ' class="number"' if number else ' class="short"' if short else ""
    raw = "" if value is None or value != value else str(value)
    text = escape(cell(value, digits))
    if target is not None:
        text = f'<a href="#{escape(target)}">{text}</a>'
    return f'<td{kind} data-value="{escape(raw)}">{text}</td>'


def _note(note: str) -> str:
    return f'<p class="note">{escape(note)}</p>' if note else ""
