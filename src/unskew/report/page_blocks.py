"""The parts of a page: words, tables, figures, text to copy and folds as HTML."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from html import escape
from typing import Any

from unskew.report.document import Block, Code, Fold, Picture, Section, Terms, Words
from unskew.report.tables import Table
from unskew.report.text import cell

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
            f'{" sentences" if at == sentences else ""}"><div>'
            f'<button type="button">{escape(name)}</button>{self.terms.question_mark(name)}'
            f"</div></th>"
            for at, (name, number) in enumerate(zip(block.header, numeric, strict=True))
        )
        rows = "".join(
            self._line(block, at, row, numeric) for at, row in enumerate(block.frame.iter_rows())
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

    def _line(self, block: Table, at: int, row: Sequence[object], numeric: Sequence[bool]) -> str:
        anchor = f' id="{escape(block.anchors[at])}"' if block.anchors else ""
        cells = []
        for place, (value, number) in enumerate(zip(row, numeric, strict=True)):
            target = block.links.get((at, place))
            target = target if target in self.places else None
            cells.append(_cell(value, number, block.digits, target, (at, place) in block.strong))
        return f"<tr{anchor}>{''.join(cells)}</tr>"

    def _owners(self, block: Table) -> list[int]:
        """Return the columns that say of which systems a row is: hidden ones hide it.

        Columns with the usual names, and columns of systems at the left; a column of systems
        further right is a result, such as the leader under a design.
        """
        import polars as pl

        names = [name.casefold() for name in block.header]
        owners = {at for at, name in enumerate(names) if name in SYSTEM_COLUMNS}
        for at, column in enumerate(block.frame.iter_columns()):
            values = column.drop_nulls().to_list() if column.dtype == pl.String else []
            if not values or not self.systems.issuperset(values):
                break
            owners.add(at)
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
        f'<button type="button" data-export="{kind}" aria-label="{shown} of {title}">'
        f"{shown}</button>"
        for kind, shown in (("csv", "CSV"), ("latex", "LaTeX"))
    )
    return f'<span class="export">{search}{buttons}</span>'


def _sentence_column(block: Table) -> int | None:
    """Return the one column that holds sentences: it gets the room that the others leave."""
    longest = [
        max((len(one) for one in column.to_list() if isinstance(one, str)), default=0)
        for column in block.frame.iter_columns()
    ]
    columns = [at for at, length in enumerate(longest) if length > SENTENCE]
    return columns[0] if len(columns) == 1 else None


def _cell(value: object, number: bool, digits: int, target: str | None, is_strong: bool) -> str:
    length = len(value) if isinstance(value, str) else 0
    kinds = {"number": number, "short": 0 < length <= SHORT}
    kind = "".join(f' class="{name}"' for name, is_so in kinds.items() if is_so)
    raw = "" if value is None or value != value else str(value)
    shown = cell(value, digits)
    # What is read is what is sorted and exported, unless it says otherwise.
    stored = "" if raw == shown else f' data-value="{escape(raw)}"'
    text = escape(shown)
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
