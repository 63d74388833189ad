"""`Audit`: what an audit measured, in words, tables and figures."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from unskew.auditing.conclusions import answer
from unskew.auditing.measurements import Measurements
from unskew.auditing.sections import document
from unskew.report.document import Document


@dataclass(frozen=True, eq=False, kw_only=True)
class Audit(Measurements):
    """What an audit measured. Made by `audit`.

    Print it for the answer; `document()` is the whole report. What could not be measured is None,
    and `skipped` says why.
    """

    def answer(self) -> list[str]:
        """Return the answer in plain words: a paragraph each."""
        return [str(words) for words in answer(self)]

    def document(self) -> Document:
        """Return the whole report: the answer, ten sections, and the card."""
        return document(self)

    def header(self) -> list[str]:
        """Return the answer."""
        return self.answer()

    def footer(self) -> list[str]:
        """Return what was assumed, left out and counted, a line each: what is below the answer."""
        return [
            *(f"assumed: {text}" for text in self.assumed),
            *(f"left out: {what}: {why}" for what, why in self.skipped.items()),
            *(f"not counted: design {name}: {one.why}" for name, one in self.left_out.items()),
            *(f"note: {text}" for text in (*self.notes, *self.remarks)),
        ]

    def _content(self) -> dict[str, Any]:
        return self.document().to_dict()

    def _summary(self) -> str:
        return f"{self.name}: {len(self.systems)} systems, {len(self.designs)} designs"

    def __str__(self) -> str:
        return "\n".join([*self.header(), *self.footer()])
