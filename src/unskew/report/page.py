"""A document as one HTML file that needs nothing else: no network, no other file."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from html import escape
from importlib import resources
from pathlib import Path
from string import Template
from typing import Any, Protocol

from unskew.checks import as_count, checked, choose
from unskew.engine.files import replacing, replacing_folder
from unskew.engine.store import cached
from unskew.errors import SettingError
from unskew.report import explorer
from unskew.report.charts import Figure, converter, script_json
from unskew.report.document import (
    Block,
    Code,
    Document,
    Fold,
    Headline,
    Picture,
    Section,
    Terms,
    Words,
)
from unskew.report.tables import Table
from unskew.report.text import cell

SIGNS = {
    "settled": ("Settled", "M5 12.5l4.5 4.5L19 7.5"),
    "score": ("By score only", "M5 19V12m5 7V8m5 11V5m5 14v-9"),
    "depends": ("Depends on the setup", "M4 8.5h15m-4-4l4 4-4 4M20 15.5H5m4-4l-4 4 4 4"),
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
        lead_words = "".join(writer.words(words) for words in document.lead)
        return f'<div class="lead">{lead_words}</div>'
    # The banner says the verdict already.
    sentences = [words for words in document.lead if words.tone != "verdict"]
    last = len(sentences) - 1
    lead_words = "".join(
        writer.words(words, "do" if number == last and number else "")
        for number, words in enumerate(sentences)
    )
    facts = "".join(
        f"<li><b>{escape(fact.value)}</b> <span>{writer.terms.mark(fact.text)}</span></li>"
        for fact in headline.facts
    )
    facts = f'<ul class="facts">{facts}</ul>' if facts else ""
    chart = "" if headline.chart is None else writer.picture(headline.chart, "headline")
    first = f'{_banner(headline)}{facts}<div class="lead">{lead_words}</div>{chart}'
    return f'<div class="first{"" if chart else " alone"}">{first}</div>'


def _banner(headline: Headline) -> str:
    """Return the verdict with a sign; words and shape say what the colour says."""
    words, path = SIGNS[headline.status]
    openings = tuple(words_of_sign.casefold() for words_of_sign, _ in SIGNS.values())
    label = "" if headline.verdict.casefold().startswith(openings) else words
    label = f'<span class="status">{label}</span>' if label else ""
    return (
        f'<div class="banner {headline.status}"><svg viewBox="0 0 24 24" aria-hidden="true">'
        f'<path d="{path}"/></svg><p>{label}{escape(headline.verdict)}</p></div>'
    )


# What stands around the sections


def _contents(document: Document, *, with_glossary: bool) -> str:
    titles = {section.key: section.title for section in document.sections}
    titles |= {"glossary": "Glossary"} if with_glossary else {}
    links = (f'<a href="#{escape(key)}">{escape(title)}</a>' for key, title in titles.items())
    return "".join(f"<li>{link}</li>" for link in links)


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
        save_each(dict(document.figures()), figures)
        folder = os.path.relpath(figures, beside or Path()).replace(os.sep, "/")
    if format == "html":
        return as_html(document)
    text = document.to_markdown(folder) if format == "markdown" else document.to_json() + "\n"
    return text.encode()


def save_each(figures: Mapping[str, Figure], folder: str | os.PathLike[str]) -> list[Path]:
    """Write figures as SVG and PNG under their names; return the files."""
    files = {f"{name}.{kind}": figures[name] for name in figures for kind in PICTURES}
    with replacing_folder(folder) as part:
        for file, figure in files.items():
            figure.save(part / file)
    return [Path(folder) / file for file in files]


# The parts of a page

SENTENCE = 50
"""Texts longer than this are sentences."""
SHORT = 24
"""Texts up to this long stay on one line of a table."""
MOST_LINES = 12
"""Text to copy that has more lines is folded."""
MOST_ROWS = 12
"""Tables with more rows can be filtered."""
HALF = 600
"""Tables up to about this many pixels wide stand beside another part."""
FEW = 280
"""Words with up to this many characters stand above what they lead to, not beside it."""
LONG = 60
"""Tables with longer texts take the whole width."""
SYSTEM_COLUMNS = ("system", "a", "b")


@dataclass(frozen=True)
class Writer:
    """Writes blocks as HTML and collects the specifications of their charts."""

    terms: Terms
    places: frozenset[str]
    """The anchors of the page: links to anything else become plain text."""
    systems: frozenset[str] = frozenset()
    specs: dict[str, Mapping[str, Any]] = field(default_factory=dict)

    def section(self, section: Section) -> str:
        """Return a section that folds."""
        self.terms.start()
        guide = ""
        if section.guide:
            texts = "".join(f"<p>{self.terms.mark(text)}</p>" for text in section.guide)
            guide = f'<details class="guide"><summary>How to read this</summary>{texts}</details>'
        return folding_section(
            section.key,
            section.title,
            section.shows,
            guide + self.blocks(section.blocks, section.key),
            is_open=section.is_open,
        )

    def blocks(self, blocks: Sequence[Block], key: str) -> str:
        """Return blocks one after the other; small ones side by side where there is room."""
        numbered = [(f"{key}-{number}", block) for number, block in enumerate(blocks)]
        return "".join(map(self._row, rows_of(numbered)))

    def _row(self, row: tuple[tuple[tuple[str, Block], ...], ...]) -> str:
        cells = ["".join(self.block(block, key) for key, block in group) for group in row]
        if len(cells) == 1:
            is_long_text = _only_words(row[0]) and _length(row[0]) > 2 * FEW
            return f'<div class="text">{cells[0]}</div>' if is_long_text else cells[0]
        kind = "beside words" if _only_words(row[0]) else "beside"
        return f'<div class="{kind}">{"".join(f"<div>{cell}</div>" for cell in cells)}</div>'

    def block(self, block: Block, key: str) -> str:
        """Return a block; `key` names its chart or caption."""
        if isinstance(block, Words):
            return self.words(block)
        if isinstance(block, Table):
            return self._grid(block, key)
        if isinstance(block, Code):
            return _code(block, key)
        if isinstance(block, Fold):
            return (
                f'<details class="fold"><summary>{escape(block.title)}</summary>'
                f"{self.blocks(block.blocks, key)}</details>"
            )
        return self.picture(block, key)

    def words(self, words: Words, kind: str = "") -> str:
        """Return a paragraph, with a list of its points if it has some."""
        head = f"<strong>{escape(words.head)}</strong> " if words.head else ""
        text = f"{head}{self.terms.mark(words.text)}"
        if words.link is not None:
            label = escape(words.link.text)
            if words.link.target in self.places:
                label = f'<a class="aside" href="#{escape(words.link.target)}">{label}</a>'
                text += f" {label}"
        tone = escape(" ".join(filter(None, [words.tone, kind])))
        if not words.points:
            return f'<p class="{tone}">{text}</p>'
        points = "".join(f"<li>{self.terms.mark(point)}</li>" for point in words.points)
        return f'<div class="{tone} points"><p>{text}</p><ul>{points}</ul></div>'

    def picture(self, block: Picture, key: str) -> str:
        """Return the place of a chart; its specification goes to `specs`."""
        spec = block.figure.to_dict()
        self.specs[key] = spec
        alt = escape(alternative(block, spec))
        return (
            f'<figure class="chart"><div id="chart-{escape(key)}" data-chart="{escape(key)}" '
            f'data-alt="{alt}"><noscript>{alt} (The chart needs JavaScript.)</noscript>'
            f"</div>{self._note(block.note)}</figure>"
        )

    def _grid(self, block: Table, key: str) -> str:
        numeric = [kind.is_numeric() for kind in block.frame.dtypes]
        sentences = _sentence_column(block)
        head = "".join(
            f'<th scope="col" class="{"number" if number else "text"}'
            f'{" sentences" if column == sentences else ""}"><div>'
            f'<button type="button">{escape(name)}</button>{self.terms.question_mark(name)}'
            f"</div></th>"
            for column, (name, number) in enumerate(zip(block.header, numeric, strict=True))
        )
        rows = "".join(
            self._line(block, column, row, numeric)
            for column, row in enumerate(block.frame.iter_rows())
        )
        kind = "table small" if is_half(block) else "table"
        caption, owners = f"{escape(key)}-caption", " ".join(map(str, self._owners(block)))
        return (
            f'<figure class="{kind}"><figcaption><span id="{caption}">'
            f"{self.terms.mark(block.title)}</span>{_tools(block)}</figcaption>"
            f'<div class="wide" tabindex="0" role="group" aria-labelledby="{caption}">'
            f'<table data-systems="{owners}"><thead><tr>{head}</tr></thead>'
            f"<tbody>{rows}</tbody></table></div>{self._note(block.note)}</figure>"
        )

    def _line(self, block: Table, i: int, row: Sequence[object], numeric: Sequence[bool]) -> str:
        anchor = f' id="{escape(block.anchors[i])}"' if block.anchors else ""
        cells = []
        for column, (value, number) in enumerate(zip(row, numeric, strict=True)):
            target = block.links.get((i, column))
            target = target if target in self.places else None
            cells.append(_cell(value, number, block.digits, target, (i, column) in block.strong))
        return f"<tr{anchor}>{''.join(cells)}</tr>"

    def _owners(self, block: Table) -> list[int]:
        """Return the columns that say of which systems a row is: hidden ones hide it.

        Columns with the usual names, and columns of systems at the left; a column of systems
        further right is a result, such as the leader under a design.
        """
        import polars as pl

        names = [name.casefold() for name in block.header]
        owners = {i for i, name in enumerate(names) if name in SYSTEM_COLUMNS}
        for i, column in enumerate(block.frame.iter_columns()):
            values = column.drop_nulls().to_list() if column.dtype == pl.String else []
            if not values or not self.systems.issuperset(values):
                break
            owners.add(i)
        return sorted(owners)

    def _note(self, note: str) -> str:
        return f'<p class="note">{self.terms.mark(note)}</p>' if note else ""


def folding_section(key: str, title: str, shows: str, body: str, *, is_open: bool) -> str:
    """Return a section whose heading folds it."""
    key, opened = escape(key), " open" if is_open else ""
    return (
        f'<section id="{key}" aria-labelledby="{key}-title"><details class="section"{opened}>'
        f'<summary><h2 id="{key}-title">{escape(title)}</h2>'
        f'<span class="shows">{escape(shows)}</span></summary>'
        f'<div class="body">{body}</div></details></section>'
    )


def alternative(block: Picture, spec: Mapping[str, Any]) -> str:
    """Return what a chart shows for those who do not see it."""
    title = spec.get("title", {})
    below = title.get("subtitle", []) if isinstance(title, Mapping) else []
    lines = [below] if isinstance(below, str) else list(below)
    texts = [block.figure.title, *lines, block.note]
    return " ".join(re.sub(r"(?<![.?!])$", ".", text.strip()) for text in texts if text.strip())


# Side by side

Numbered = tuple[str, Block]


def rows_of(blocks: Iterable[Numbered]) -> Iterator[tuple[tuple[Numbered, ...], ...]]:
    """Yield rows of one or two cells: figures and tables with the words that lead to them.

    Few words stand above the figure or table they lead to, many beside it; two small figures or
    tables stand beside each other.
    """
    waiting: tuple[Numbered, ...] = ()
    for group in _cells(blocks):
        if not all(is_half(block) for _, block in group):
            yield from ((part,) for part in (waiting, group) if part)
            waiting = ()
        elif waiting and not _only_words(group):
            yield (waiting, group)
            waiting = ()
        else:
            if waiting:
                yield (waiting,)
            waiting = group
    if waiting:
        yield (waiting,)


def _cells(blocks: Iterable[Numbered]) -> Iterator[tuple[Numbered, ...]]:
    """Yield words together, and with the figure or table that follows if they are few."""
    words: tuple[Numbered, ...] = ()
    for block in blocks:
        if isinstance(block[1], Words):
            words += (block,)
            continue
        if words and _length(words) > FEW and is_half(block[1]):
            yield words
            words = ()
        yield (*words, block)
        words = ()
    if words:
        yield words


def _only_words(group: Iterable[Numbered]) -> bool:
    return all(isinstance(block, Words) for _, block in group)


def _length(group: Iterable[Numbered]) -> int:
    return sum(len(str(block)) for _, block in group)


def is_half(block: Block) -> bool:
    """Return whether a block can stand beside another one."""
    if isinstance(block, Table):
        return _table_width(block) <= HALF
    if isinstance(block, Picture):
        spec = block.figure.spec
        return not {"facet", "hconcat", "vconcat", "concat", "repeat"} & set(spec) and not (
            {"row", "column", "facet"} & set(spec.get("encoding", {}))
        )
    return isinstance(block, Words)


def _table_width(block: Table) -> float:
    """Return about how many pixels a table needs to show short texts on one line each."""
    rows = block.cells()[:60]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    if max(widths) > LONG:
        return 2.0 * HALF
    return sum(7.2 * width + 24 for width in widths)


# Small parts


def _tools(block: Table) -> str:
    """Return what readers do with a table: filter it, take it away."""
    title = escape(block.title or "this table")
    search = ""
    if block.frame.height > MOST_ROWS:
        search = (
            f'<input type="search" placeholder="filter {block.frame.height:,} rows" '
            f'aria-label="filter rows of {title}"><output></output>'
        )
    buttons = "".join(
        f'<button type="button" data-export="{kind}" aria-label="{label} of {title}">'
        f"{label}</button>"
        for kind, label in (("csv", "CSV"), ("latex", "LaTeX"))
    )
    return f'<span class="export">{search}{buttons}</span>'


def _sentence_column(block: Table) -> int | None:
    """Return the one column that holds sentences: it gets the room that the others leave."""
    longest = [
        max((len(value) for value in column.to_list() if isinstance(value, str)), default=0)
        for column in block.frame.iter_columns()
    ]
    columns = [number for number, length in enumerate(longest) if length > SENTENCE]
    return columns[0] if len(columns) == 1 else None


def _cell(value: object, number: bool, digits: int, target: str | None, is_strong: bool) -> str:
    length = len(value) if isinstance(value, str) else 0
    kinds = {"number": number, "short": 0 < length <= SHORT}
    kind = "".join(f' class="{name}"' for name in kinds if kinds[name])
    raw = "" if value is None or value != value else str(value)
    text_of_value = cell(value, digits)
    # What is read is what is sorted and exported, unless it says otherwise.
    stored = "" if raw == text_of_value else f' data-value="{escape(raw)}"'
    text = escape(text_of_value)
    if is_strong:
        text = f"<b>{text}</b>"
    if target is not None:
        text = f'<a href="#{escape(target)}">{text}</a>'
    return f"<td{kind}{stored}>{text}</td>"


def _code(block: Code, key: str) -> str:
    title, caption = escape(block.title), f"{escape(key)}-caption"
    lines = block.text.count("\n") + 1
    text = f'<pre tabindex="0" role="group" aria-labelledby="{caption}">{escape(block.text)}</pre>'
    if lines > MOST_LINES:
        text = f'<details class="lines"><summary>Show {lines:,} lines</summary>{text}</details>'
    return (
        f'<figure class="code"><figcaption><span id="{caption}">{title}</span>'
        f'<span class="export"><button type="button" data-copy aria-label="copy {title}">copy'
        f'</button><span role="status"></span></span></figcaption>{text}</figure>'
    )
