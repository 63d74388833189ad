"""`save_report`: an audit, a study or a document as a file."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from html import escape
from pathlib import Path
from typing import Protocol

from unskew.checks import as_count, checked, choose
from unskew.engine.files import replacing, replacing_folder
from unskew.errors import SettingError
from unskew.report.charts import Figure
from unskew.report.document import Document
from unskew.report.page import as_html

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
    >>> from unskew.report.writing import save_report
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
