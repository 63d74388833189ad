"""`save_paper`: what a paper needs of an audit, as files."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from unskew.auditing.checklist import checklist_of
from unskew.auditing.methods import methods_of, table_metrics
from unskew.checks import checked
from unskew.engine.files import replacing_folder
from unskew.engine.notebook_progress import notebook_progress
from unskew.engine.progress import Progress, Steps
from unskew.errors import SettingError
from unskew.report.figure_width import ONE_COLUMN
from unskew.report.text import escape_latex
from unskew.stats.pairing import paired
from unskew.stats.paper_tables import PaperTable, table_of

if TYPE_CHECKING:
    from unskew.auditing.measurements import Measurements
    from unskew.report.charts import Figure


@notebook_progress("paper")
@checked
def save_paper(
    audit: object,
    folder: str | os.PathLike[str],
    *,
    width: float = ONE_COLUMN,
    force: bool = False,
    progress: Progress | None = None,
) -> list[Path]:
    """Write what a paper needs of an audit; all of it or nothing. Return the files.

    `table.tex` and `table.md` (the common design: systems x metrics with marks of significance),
    `methods.tex` and `methods.md`, `references.bib`, `checklist.md`, and in `figures/` every figure
    of the report as SVG and PDF, with `figures.tex` to include them.

    Parameters
    ----------
    audit
        What `us.audit` gave.
    folder
        A new or empty one.
    width
        Of the figures in points: 241 is one column, 506 both columns of ACM's format.
    force
        Whether to write into a folder that is not empty: files of the same names are replaced.
    progress
        Called with (done, total) as figures are drawn.
    """
    methods, checklist = methods_of(audit), checklist_of(audit)
    check_paper_folder(folder, force=force)
    table = audit_table(audit)  # type: ignore[arg-type]
    texts = {
        "methods.md": methods.to_markdown(),
        "methods.tex": methods.to_latex(),
        "references.bib": methods.bibtex(),
        "checklist.md": f"{checklist.to_markdown()}\n\n{checklist.footer()[0]}",
    }
    if table is not None:
        texts |= {"table.tex": table.to_latex(), "table.md": table.to_markdown()}
    figures: dict[str, Figure] = dict(audit.document().figures())  # type: ignore[attr-defined]
    environments = [_environment(name, figure.title) for name, figure in figures.items()]
    texts["figures.tex"] = "% needs \\usepackage{graphicx}\n" + "\n\n".join(environments)
    with replacing_folder(folder) as home:
        _draw(figures, home / "figures", width, progress)
        for name, text in texts.items():
            (home / name).write_text(text + "\n", encoding="utf-8")
        files = sorted(path.relative_to(home) for path in home.rglob("*") if path.is_file())
    return [Path(folder) / file for file in files]


def _draw(
    figures: Mapping[str, Figure], folder: Path, width: float, progress: Progress | None
) -> None:
    """Write figures as SVG and PDF into a new folder."""
    folder.mkdir()
    steps = Steps(len(figures), progress)
    steps.advance(0)
    for name, figure in figures.items():
        for ending in ("svg", "pdf"):
            figure.save(folder / f"{name}.{ending}", width=width)
        steps.advance()


def check_paper_folder(folder: str | os.PathLike[str], *, force: bool = False) -> None:
    """Refuse a folder that holds something, or a file in its place."""
    home = Path(folder)
    if home.exists() and not home.is_dir():
        raise SettingError(f"folder={str(folder)!r}: a file is there: name a folder")
    if home.is_dir() and any(home.iterdir()) and not force:
        raise SettingError(
            f"folder={str(folder)!r} is not empty: name a new folder, or give force=True to "
            f"replace files of the same names"
        )


def audit_table(audit: Measurements) -> PaperTable | None:
    """Return the table of the common design; None where systems could not be compared.

    The tests are those of the audit, so that report and paper agree.
    """
    one = audit.comparison
    if one is None:
        return None
    pairing = paired(list(audit.scores[audit.common]))
    metrics = [label for label in table_metrics(audit) if label in one.metrics]
    chance = all(part.random() for part in audit.scores[audit.common])
    design = f"{audit.common}: {audit.designs[audit.common]}"
    return table_of(pairing, one.of_metrics(metrics), chance=chance, design=design)


def _environment(name: str, title: str) -> str:
    return "\n".join(
        [
            "\\begin{figure}",
            "\\centering",
            f"\\includegraphics[width=\\columnwidth]{{figures/{name}.pdf}}",
            f"\\caption{{{escape_latex(title)}}}",
            f"\\label{{fig:{name}}}",
            "\\end{figure}",
        ]
    )
