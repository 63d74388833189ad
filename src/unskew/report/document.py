"""`Document`: what a report says, without how it looks: sections of words, tables and figures."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from html import escape
from typing import Any, NamedTuple, TypeAlias

from unskew.report.charts import Figure
from unskew.report.explorer import Explorer
from unskew.report.tables import Table
from unskew.report.text import as_json, one_line


class Link(NamedTuple):
    """A place in the same document: a section, or a row of a table that has an anchor."""

    text: str
    target: str
    """The key of a section or an anchor."""


@dataclass(frozen=True)
class Words:
    """A paragraph."""

    text: str
    tone: str = "plain"
    """`plain`, `good`, `warning` or `answer`: how it is set off."""
    head: str = ""
    """What it is about, in a word or two."""
    points: tuple[str, ...] = ()
    """What follows, one by one."""
    link: Link | None = None
    """Where more stands about it: small, after the text; no part of the text itself."""

    def __str__(self) -> str:
        """Return it as one line of plain text."""
        return " ".join(filter(None, [self.head, self.text, *self.points]))


class Picture(NamedTuple):
    """A figure."""

    figure: Figure
    note: str = ""


class Code(NamedTuple):
    """Text to copy: a command, a plan, citations."""

    title: str
    text: str


class Fold(NamedTuple):
    """Parts that stay folded until a reader asks for them."""

    title: str
    blocks: tuple[Block, ...]


Block: TypeAlias = Words | Table | Picture | Code | Fold


class Fact(NamedTuple):
    """A number that readers should take away, in units they know."""

    value: str
    """Short, such as `1 in 14 lists`."""
    text: str
    """What it is, in a sentence."""


STATUSES = ("settled", "score", "depends", "promote", "hold", "open")
"""What a headline can say: a page gives each a sign and a colour of its own."""


@dataclass(frozen=True, eq=False)
class Headline:
    """What the first screen shows besides the sentences of the lead."""

    verdict: str
    status: str
    """One of `STATUSES`."""
    facts: tuple[Fact, ...] = ()
    chart: Picture | None = None
    """The one chart that carries the message."""


class Term(NamedTuple):
    """A word of the field, explained where it is met and in the glossary."""

    word: str
    meaning: str
    forms: tuple[str, ...] = ()
    """Other spellings under which texts and heads of columns use it."""


@dataclass(frozen=True, eq=False)
class Section:
    """A part of a report."""

    key: str
    """A short word, for links and file names."""
    title: str
    shows: str
    """One sentence: what it shows and why that matters."""
    blocks: tuple[Block, ...]
    guide: tuple[str, ...] = ()
    """How to read it: paragraphs that readers unfold."""
    is_open: bool = True
    """Whether it is unfolded at first."""

    def every_block(self) -> Iterator[Block]:
        """Yield all blocks, those inside of folds too."""
        yield from _unfolded(self.blocks)


def _unfolded(blocks: Iterable[Block]) -> Iterator[Block]:
    for block in blocks:
        if isinstance(block, Fold):
            yield from _unfolded(block.blocks)
        else:
            yield block


@dataclass(frozen=True, eq=False)
class Document:
    """A report: the answer first, then its sections, and the card from which it can be re-made."""

    title: str
    lead: tuple[Words, ...]
    """The answer, in plain words."""
    sections: tuple[Section, ...]
    card: Mapping[str, Any] = field(default_factory=dict)
    systems: tuple[str, ...] = ()
    """The systems it speaks of: readers can hide some."""
    values: Mapping[str, Any] = field(default_factory=dict)
    """What only programs read: it stands in JSON beside the sections."""
    headline: Headline | None = None
    """What the first screen shows besides the lead."""
    glossary: tuple[Term, ...] = ()
    explorer: Explorer | None = None
    """Numbers that readers choose from."""

    def figures(self) -> Iterator[tuple[str, Figure]]:
        """Yield every figure under a name that can be a file's."""
        if self.headline is not None and self.headline.chart is not None:
            yield "headline", self.headline.chart.figure
        for section in self.sections:
            pictures = [block for block in section.every_block() if isinstance(block, Picture)]
            for number, picture in enumerate(pictures, start=1):
                yield f"{section.key}-{number}", picture.figure

    def to_markdown(self, folder: str | None = None) -> str:
        """Return the report as Markdown.

        Parameters
        ----------
        folder
            Where its figures are, by the names that `figures` gives them, as SVG; without it
            they are named only.
        """
        lines = [f"# {one_line(self.title)}", "", *self._first_lines(folder)]
        places = self._headings()
        for words in self.lead:
            lines += [*_as_markdown(words, places), ""]
        for section in self.sections:
            lines += [f"## {one_line(section.title)}", "", one_line(section.shows), ""]
            for text in section.guide:
                lines += [one_line(text), ""]
            number = 0
            for block in section.every_block():
                if isinstance(block, Picture):
                    number += 1
                    lines += _figure_lines(block, folder, f"{section.key}-{number}")
                else:
                    lines += _as_markdown(block, places)
                lines.append("")
        if self.glossary:
            lines += ["## Glossary", ""]
            lines += [f"- **{one_line(t.word)}**: {one_line(t.meaning)}" for t in self.glossary]
        return "\n".join(lines).rstrip() + "\n"

    def _first_lines(self, folder: str | None) -> list[str]:
        """Return what a headline says as lines of Markdown."""
        if self.headline is None:
            return []
        lines = [f"**{one_line(self.headline.verdict)}**", ""]
        facts = self.headline.facts
        lines += [f"- **{one_line(fact.value)}** {one_line(fact.text)}" for fact in facts]
        lines += [""] if facts else []
        if self.headline.chart is not None:
            lines += [*_figure_lines(self.headline.chart, folder, "headline"), ""]
        return lines

    def anchors(self) -> frozenset[str]:
        """Return everything that a link can lead to: sections and rows of tables."""
        return frozenset(self._headings())

    def _headings(self) -> dict[str, str]:
        """Return by anchor the heading, as Markdown names it, below which it stands."""
        places: dict[str, str] = {}
        for section in self.sections:
            heading = re.sub(r"[^\w -]", "", section.title.lower()).replace(" ", "-")
            tables = [block for block in section.every_block() if isinstance(block, Table)]
            anchors = (anchor for table in tables for anchor in table.anchors)
            places |= dict.fromkeys((section.key, *anchors), heading)
        return places

    def to_dict(self) -> dict[str, Any]:
        """Return everything but the figures as plain values, for JSON."""
        return {
            "title": self.title,
            "answer": [str(words) for words in self.lead],
            **self._headline_values(),
            "sections": {
                section.key: {
                    "title": section.title,
                    "shows": section.shows,
                    "blocks": [_plain(block) for block in section.every_block()],
                }
                for section in self.sections
            },
            "systems": list(self.systems),
            **self.values,
            "card": dict(self.card),
        }

    def _headline_values(self) -> dict[str, Any]:
        """Return the headline as plain values; nothing if there is none."""
        if self.headline is None:
            return {}
        facts = [{"value": fact.value, "text": fact.text} for fact in self.headline.facts]
        verdict, status = self.headline.verdict, self.headline.status
        return {"headline": {"verdict": verdict, "status": status, "facts": facts}}

    def to_json(self) -> str:
        """Return `to_dict` as JSON; what is not a number is null."""
        return as_json(self.to_dict(), indent=1)


def _figure_lines(block: Picture, folder: str | None, name: str) -> list[str]:
    title = one_line(block.figure.title)
    line = f"*Figure: {title}*" if folder is None else f"![{title}]({folder}/{name}.svg)"
    return [line, *(["", one_line(block.note)] if block.note else [])]


def _as_markdown(block: Block, places: Mapping[str, str]) -> list[str]:
    if isinstance(block, Words):
        head = f"**{one_line(block.head)}** " if block.head else ""
        points = [f"- {one_line(point)}" for point in block.points]
        link = ""
        if block.link is not None and block.link.target in places:
            link = f" [{one_line(block.link.text)}](#{places[block.link.target]})"
        text = f"{head}{one_line(block.text)}{link}".strip()
        return [text, *([""] if points else []), *points]
    if isinstance(block, Table):
        return [block.to_markdown()]
    if isinstance(block, Code):
        longest = max((len(run) for run in re.findall("`+", block.text)), default=0)
        fence = "`" * max(3, longest + 1)
        return [f"**{one_line(block.title)}**", "", fence, block.text, fence]
    return []


def _plain(block: Block) -> dict[str, Any]:
    if isinstance(block, Words):
        return {"words": str(block), "tone": block.tone}
    if isinstance(block, Table):
        return {"table": block.title, "rows": block.frame.to_dicts(), "note": block.note}
    if isinstance(block, Code):
        return {"code": block.title, "text": block.text}
    if isinstance(block, Fold):
        return {"fold": block.title, "blocks": [_plain(block) for block in block.blocks]}
    return {"figure": block.figure.title, "note": block.note}


class Terms:
    """The terms of a document, and those that the section being written has used already."""

    def __init__(self, terms: Sequence[Term]) -> None:
        self._terms = tuple(terms)
        self._number = {
            form.casefold(): number
            for number, term in reversed(list(enumerate(self._terms)))
            for form in (term.word, *term.forms)
            if form.strip()
        }
        # Longest first: "anti-precision" before "precision". A metric keeps its cutoff.
        forms = sorted(self._number, key=lambda form: (-len(form), form))
        words = "|".join(map(re.escape, forms))
        self._pattern = re.compile(
            rf"(?<![\w@-])({words})(?:@\d+)?(?![\w@-])" if words else r"(?!)", re.IGNORECASE
        )
        self._seen: set[int] = set()

    def start(self) -> None:
        """Begin a part of the document in which each term is marked once."""
        self._seen = set()

    def mark(self, text: str) -> str:
        """Return text as HTML, each term marked where this part first uses it."""
        parts, position = [], 0
        for match in self._pattern.finditer(text):
            number = self._number[match[1].casefold()]
            if number in self._seen:
                continue
            self._seen.add(number)
            parts += [escape(text[position : match.start()]), _marked(number, escape(match[0]))]
            position = match.end()
        return "".join([*parts, escape(text[position:])])

    def question_mark(self, text: str) -> str:
        """Return a sign that explains the first term in the head of a column, or nothing."""
        match = self._pattern.search(text)
        if match is None:
            return ""
        return _marked(self._number[match[1].casefold()], "?", f"explain {match[0]}")

    def listed(self) -> str:
        """Return all terms and meanings as an HTML list, in the order of the alphabet."""
        order = sorted(
            range(len(self._terms)), key=lambda number: self._terms[number].word.casefold()
        )
        return "".join(
            f"<div><dt>{escape(self._terms[number].word)}</dt>"
            f'<dd id="term-{number}">{escape(self._terms[number].meaning)}</dd></div>'
            for number in order
        )

    def __bool__(self) -> bool:
        return bool(self._terms)


def _marked(number: int, text: str, name: str = "") -> str:
    kind = "term sign" if name else "term"
    label = f' aria-label="{escape(name)}"' if name else ""
    return (
        f'<span class="{kind}" role="button" tabindex="0" aria-describedby="term-{number}"{label}>'
        f"{text}</span>"
    )
