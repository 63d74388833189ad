"""A document as one HTML file that needs nothing else: no network, no other file."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from html import escape
from importlib import resources
from pathlib import Path
from string import Template
from typing import Protocol

from unskew.checks import as_count, checked, choose
from unskew.engine.files import replacing, replacing_folder
from unskew.engine.store import cached
from unskew.errors import SettingError
from unskew.report import explorer
from unskew.report.charts import Figure, converter, script_json
from unskew.report.document import Document, Fact, Headline, Terms
from unskew.report.page_blocks import Writer, folding_section

SIGNS = {
    "settled": ("Settled", "M5 12.5l4.5 4.5L19 7.5"),
    "depends": ("Depends on the design", "M4 8.5h15m-4-4l4 4-4 4M20 15.5H5m4-4l-4 4 4 4"),
    "promote": ("Promote", "M5 12.5l4.5 4.5L19 7.5"),
    "hold": ("Hold", "M6.5 6.5l11 11m0-11l-11 11"),
    "open": ("Not settled", "M8.5 9a3.5 3.5 0 1 1 5.6 2.8c-1.4 1-2.1 1.6-2.1 3.2m0 3.4v.1"),
}
"""By status of a headline: its words, and the path of its sign in a square of 24."""


def as_html(document: Document) -> bytes:
    """Return a page with everything in it: words, tables that sort, charts that answer.

    Parameters
    ----------
    document
        What to say.
    """
    terms = Terms(document.glossary)
    places = frozenset({*document.anchors(), *(("glossary",) if terms else ())})
    writer = Writer(terms, places, frozenset(document.systems))
    first = _first_screen(document, writer)
    body = "".join(writer.section(section) for section in document.sections)
    if terms:
        shows = "What the words of this report mean."
        listed = f'<dl class="glossary">{terms.listed()}</dl>'
        body += folding_section("glossary", "Glossary", shows, listed, is_open=False)
    specs = writer.specs
    bundle = _bundle(next(iter(specs.values()))["$schema"]) if specs else ""
    panel, style, script = _explorer(document)
    return (
        Template(_part("page.html"))
        .substitute(
            title=escape(document.title),
            style=_part("page.css") + style,
            bundle=_closed(bundle),
            script=_part("page.js") + script,
            first=first,
            explorer=panel,
            nav=_contents(document, with_glossary=bool(terms)),
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
    key = {"vl-convert": convert.__version__, "Vega-Lite": version}
    return cached("charts", key, lambda: str(convert.javascript_bundle(vl_version=version)))


def _part(name: str) -> str:
    return resources.files("unskew.report").joinpath(name).read_text(encoding="utf-8")


def _explorer(document: Document) -> tuple[str, str, str]:
    """Return the panel with which readers choose numbers, its style and its script."""
    if document.explorer is None:
        return "", "", ""
    return explorer.panel(document.explorer), _part("explorer.css"), _part("explorer.js")


def _closed(script: str) -> str:
    """Return a script that cannot end its own element."""
    return re.sub(r"</(script)", r"<\\/\1", script, flags=re.IGNORECASE)


# The first screen


def _first_screen(document: Document, writer: Writer) -> str:
    """Return the verdict, the numbers to take away, the lead and the chart that shows it."""
    headline = document.headline
    if headline is None:
        lead = "".join(writer.words(words) for words in document.lead)
        return f'<div class="lead">{lead}</div>'
    # The banner says the verdict already.
    sentences = [words for words in document.lead if words.tone != "verdict"]
    last = len(sentences) - 1
    lead = "".join(
        writer.words(words, "do" if at == last and at else "") for at, words in enumerate(sentences)
    )
    facts = "".join(_fact(fact, writer) for fact in headline.facts)
    facts = f'<ul class="facts">{facts}</ul>' if facts else ""
    chart = "" if headline.chart is None else writer.picture(headline.chart, "headline")
    kind = "first" if chart else "first alone"
    lead = f'<div class="lead">{lead}</div>'
    return f'<div class="{kind}">{_banner(headline)}{facts}{lead}{chart}</div>'


def _banner(headline: Headline) -> str:
    """Return the verdict with a sign; words and shape say what the colour says."""
    words, path = SIGNS[headline.status]
    openings = tuple(one.casefold() for one, _ in SIGNS.values())
    label = "" if headline.verdict.casefold().startswith(openings) else words
    label = f'<span class="status">{label}</span>' if label else ""
    return (
        f'<div class="banner {headline.status}"><svg viewBox="0 0 24 24" aria-hidden="true">'
        f'<path d="{path}"/></svg><p>{label}{escape(headline.verdict)}</p></div>'
    )


def _fact(fact: Fact, writer: Writer) -> str:
    return f"<li><b>{escape(fact.value)}</b> <span>{writer.terms.mark(fact.text)}</span></li>"


# What stands around the sections


def _contents(document: Document, *, with_glossary: bool) -> str:
    entries = [(section.key, section.title) for section in document.sections]
    entries += [("glossary", "Glossary")] if with_glossary else []
    return "".join(
        f'<li><a href="#{escape(key)}">{escape(title)}</a></li>' for key, title in entries
    )


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
        f'<div><p><button type="button" data-all>all</button> '
        f'<button type="button" data-none>none</button></p>{boxes}</div></details>'
    )


ENDINGS = {".html": "html", ".htm": "html", ".md": "markdown", ".json": "json"}
FORMATS = ("html", "markdown", "json")
PICTURES = ("svg", "png")


class HasDocument(Protocol):
    """A result that is written as a document: an audit, a study."""

    def document(self) -> Document:
        """Return the document."""


@checked
def save_report(
    report: HasDocument | Document,
    path: str | os.PathLike[str],
    *,
    format: str | None = None,  # noqa: A002
    figures: str | os.PathLike[str] | None = None,
) -> None:
    """Write a report as one file: a page that needs nothing else, Markdown, or JSON.

    Parameters
    ----------
    report
        A result that has a `document()`, such as those of `audit` and `study`, or a document.
    path
        The file. Its ending says what is written unless `format` does.
    format
        `html`, `markdown` or `json`.
    figures
        A folder for every figure of the report, as SVG and PNG.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from unskew.report.document import Document, Words
    >>> from unskew.report.page import save_report
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     page = Document("A title", (Words("The answer."),), ())
    ...     save_report(page, Path(folder) / "report.md")
    ...     print(Path(folder, "report.md").read_text().strip())
    # A title
    <BLANKLINE>
    The answer.
    """
    target = Path(path)
    document = report if isinstance(report, Document) else report.document()
    if format is None:
        ending = target.suffix.lower()
        if ending not in ENDINGS:
            raise SettingError(
                f"{target.name!r}: what should it be? End it in {', '.join(ENDINGS)}, or say "
                f"format={' or '.join(FORMATS)}"
            )
        format = ENDINGS[ending]  # noqa: A001
    content = document_bytes(document, format, figures, target.parent)
    with replacing(target) as part:
        part.write_bytes(content)


@dataclass(frozen=True)
class Embedded:
    """A report inside a notebook. Made by `embedded`."""

    page: str = field(repr=False)
    height: int

    def _repr_html_(self) -> str:
        # Its scripts run apart from the notebook's, which it can neither see nor change.
        return (
            f'<iframe srcdoc="{escape(self.page)}" sandbox="allow-scripts allow-downloads" '
            f'style="width: 100%; height: {self.height}px; border: 0"></iframe>'
        )


@checked
def embedded(report: HasDocument | Document, height: int = 800) -> Embedded:
    """Return a report that shows itself in a notebook, with its charts.

    Parameters
    ----------
    report
        A result that has a `document()`, such as those of `audit` and `study`, or a document.
    height
        Of the frame, in pixels.

    Examples
    --------
    >>> import unskew as us
    >>> test = {"user": [*range(60)], "item": ["a"] * 60}
    >>> runs = {order: {u: list(order) for u in range(60)} for order in ("ab", "ba")}
    >>> gate = us.gate(test, runs, candidate="ab", production="ba", metric="RR@2")
    >>> us.report.embedded(gate, height=400)
    Embedded(height=400)
    """
    document = report if isinstance(report, Document) else report.document()
    return Embedded(as_html(document).decode(), as_count("height", height))


def document_bytes(
    document: Document,
    format: str,  # noqa: A002
    figures: str | os.PathLike[str] | None = None,
    beside: Path | None = None,
) -> bytes:
    """Return a document in one of the formats; its figures go to a folder where one is given."""
    choose("format", format, FORMATS)
    folder = None
    if figures is not None:
        save_figures(document, figures)
        folder = os.path.relpath(figures, beside or Path()).replace(os.sep, "/")
    if format == "html":
        return as_html(document)
    text = document.to_markdown(folder) if format == "markdown" else document.to_json() + "\n"
    return text.encode()


def save_each(figures: Mapping[str, Figure], folder: str | os.PathLike[str]) -> list[Path]:
    """Write figures as SVG and PNG under their names; return the files."""
    files = []
    with replacing_folder(folder) as part:
        for name, figure in figures.items():
            for ending in PICTURES:
                files.append(f"{name}.{ending}")
                figure.save(part / files[-1])
    return [Path(folder) / file for file in files]


def save_figures(document: Document, folder: str | os.PathLike[str]) -> list[Path]:
    """Write every figure as SVG and PNG; return the files."""
    return save_each(dict(document.figures()), folder)
