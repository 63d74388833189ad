"""`Audit`: what an audit measured, and what may be stated of it."""

from __future__ import annotations

import os
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, ClassVar

from unskew.auditing.measurements import Measurements
from unskew.auditing.page.headline import verdict_of
from unskew.auditing.page.paper_files import save_paper
from unskew.auditing.page.sections import document
from unskew.engine.progress import Progress
from unskew.evaluation.scores import RANDOM
from unskew.evaluation.tables import means_table
from unskew.metrics.names import parse
from unskew.report.document import Document
from unskew.report.figure_width import ONE_COLUMN
from unskew.report.tables import Table
from unskew.report.text import counted


@dataclass(frozen=True, eq=False, kw_only=True)
class Audit(Measurements):
    """What an audit measured, and what may be stated of it. Made by `audit`.

    Print it for the verdict, who scores highest, and what is known of liking. `statements` holds
    all that is stated, `document()` is the whole report. What could not be measured is None, and
    `skipped` says why.
    """

    footer_title: ClassVar[str] = "What was done, assumed, left out and counted"
    every_row: ClassVar[str] = "audit.table() has all"

    def answer(self) -> list[str]:
        """Return the verdict in a sentence, the finding, what bears on it, and the next step."""
        text, _ = verdict_of(self)
        return [text, *(sentence.text for sentence in self.first_screen.sentences)]

    def document(self) -> Document:
        """Return the whole report: the answer, ten sections, and the card."""
        return document(self)

    def save_paper(
        self,
        folder: str | os.PathLike[str],
        *,
        width: float = ONE_COLUMN,
        force: bool = False,
        progress: Progress | None = None,
    ) -> list[Path]:
        """Write table, methods, checklist and figures for a paper; see `auditing.save_paper`."""
        return save_paper(self, folder, width=width, force=force, progress=progress)

    def header(self) -> list[str]:
        """Return the answer."""
        return self.answer()

    def footer(self) -> list[str]:
        """Return what was done, assumed, left out and counted, a line each: what is below."""
        done = [statement.text for statement in self.statements if statement.role == "procedure"]
        return [
            *done,
            *(f"assumed: {text}" for text in self.assumed),
            *(f"left out: {what}: {why}" for what, why in self.skipped.items()),
            *(f"left out: design {name}: {why}" for name, why in self.unstated_designs().items()),
            *(f"note: {text}" for text in (*self.notes, *self.remarks)),
        ]

    def _content(self) -> dict[str, Any]:
        return self.document().to_dict()

    def _view_tables(self) -> list[Table]:
        """Return the score of every system under every design, the best of each in bold."""
        values: dict[str, dict[str, float]] = {system: {} for system in self.order()}
        chance: dict[str, float] = {}
        for row in self.table().iter_rows(named=True):
            values[row["system"]][row["design"]] = row["value"]
            if row["random"] is not None:
                chance[row["design"]] = row["random"]
        better = dict.fromkeys(
            self.table()["design"].unique(maintain_order=True), parse(self.metric).better
        )
        rows = {**values, **({RANDOM: chance} if chance else {})}
        table = means_table(rows, better, tuple(values), self.digits)
        return [replace(table, title=f"{self.metric} of each system under each design")]

    def _hint(self) -> str:
        return (
            "The whole report: us.report.embedded(audit) shows it here, "
            "us.report.save_report(audit, 'report.html') writes it. audit.table() has intervals."
        )

    def _summary(self) -> str:
        return (
            f"{self.name}: {counted(len(self.systems), 'system')}, "
            f"{counted(len(self.designs), 'design')}"
        )

    def __str__(self) -> str:
        return "\n".join([*self.header(), *self.footer()])
