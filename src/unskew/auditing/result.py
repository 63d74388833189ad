"""`Audit`: what an audit measured, and what may be stated of it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from unskew.auditing.measurements import Measurements
from unskew.auditing.sections import document
from unskew.auditing.statement_blocks import lead
from unskew.report.document import Document


@dataclass(frozen=True, eq=False, kw_only=True)
class Audit(Measurements):
    """What an audit measured, and what may be stated of it. Made by `audit`.

    Print it for the verdict and three sentences: finding, reason, next step. `statements` holds all
    that is stated, `document()` is the whole report. What could not be measured is None, and
    `skipped` says why.
    """

    def answer(self) -> list[str]:
        """Return the verdict, and up to three sentences: finding, reason, next step."""
        return [str(words) for words in lead(self.first_screen)]

    def document(self) -> Document:
        """Return the whole report: the answer, ten sections, and the card."""
        return document(self)

    def header(self) -> list[str]:
        """Return the answer."""
        return self.answer()

    def footer(self) -> list[str]:
        """Return what was done, assumed, left out and counted, a line each: what is below."""
        done = [one.text for one in self.statements if one.role == "procedure"]
        return [
            *done,
            *(f"assumed: {text}" for text in self.assumed),
            *(f"left out: {what}: {why}" for what, why in self.skipped.items()),
            *(f"left out: design {name}: {why}" for name, why in self.unstated_designs().items()),
            *(f"note: {text}" for text in (*self.notes, *self.remarks)),
        ]

    def _content(self) -> dict[str, Any]:
        return self.document().to_dict()

    def _summary(self) -> str:
        return f"{self.name}: {len(self.systems)} systems, {len(self.designs)} designs"

    def __str__(self) -> str:
        return "\n".join([*self.header(), *self.footer()])
