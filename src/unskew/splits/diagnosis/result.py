"""`Diagnosis`: lights, and the page that shows them."""

from __future__ import annotations

import os
from dataclasses import dataclass

from unskew.report.document import Document
from unskew.report.writing import save_report
from unskew.splits.diagnosis.lights import Lights
from unskew.splits.diagnosis.page import document_of


@dataclass(frozen=True, eq=False)
class Diagnosis(Lights):
    """What was found in a split, or in several. Made by `diagnose`."""

    def document(self) -> Document:
        """Return the diagnosis as a document, for a page, Markdown or JSON."""
        return document_of(self)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the diagnosis as a page (`.html`), Markdown (`.md`) or JSON (`.json`)."""
        save_report(self, path)
