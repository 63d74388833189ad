"""Terms of a document: marked where a section first uses them, and listed at its end."""

from __future__ import annotations

import re
from collections.abc import Sequence
from html import escape

from unskew.report.document import Term


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
        parts, at = [], 0
        for match in self._pattern.finditer(text):
            number = self._number[match[1].casefold()]
            if number in self._seen:
                continue
            self._seen.add(number)
            parts += [escape(text[at : match.start()]), _marked(number, escape(match[0]))]
            at = match.end()
        return "".join([*parts, escape(text[at:])])

    def question_mark(self, text: str) -> str:
        """Return a sign that explains the first term in the head of a column, or nothing."""
        match = self._pattern.search(text)
        if match is None:
            return ""
        return _marked(self._number[match[1].casefold()], "?", f"explain {match[0]}")

    def listed(self) -> str:
        """Return all terms and meanings as an HTML list, in the order of the alphabet."""
        order = sorted(range(len(self._terms)), key=lambda at: self._terms[at].word.casefold())
        return "".join(
            f"<div><dt>{escape(self._terms[at].word)}</dt>"
            f'<dd id="term-{at}">{escape(self._terms[at].meaning)}</dd></div>'
            for at in order
        )

    def __bool__(self) -> bool:
        return bool(self._terms)


def _marked(number: int, shown: str, name: str = "") -> str:
    kind = "term sign" if name else "term"
    label = f' aria-label="{escape(name)}"' if name else ""
    return (
        f'<span class="{kind}" role="button" tabindex="0" aria-describedby="term-{number}"{label}>'
        f"{shown}</span>"
    )
