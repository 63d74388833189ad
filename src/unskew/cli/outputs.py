"""Where results go: to the terminal in a format, to files whose ending is the format."""

from __future__ import annotations

import html
import json
import re
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from unskew.checks import choose
from unskew.cli.console import messages, output
from unskew.errors import SettingError

if TYPE_CHECKING:
    import polars as pl

    from unskew.report.charts import Figure
    from unskew.report.result import Result
    from unskew.report.tables import Table

TABLES = {
    ".csv": "csv",
    ".json": "json",
    ".md": "markdown",
    ".tex": "latex",
    ".html": "html",
    ".parquet": "parquet",
}
"""The endings of files that hold a table."""
REPORTS = {".html": "html", ".htm": "html", ".md": "markdown", ".json": "json"}
"""The endings of files that hold a report."""
LISTS = {".parquet": "parquet", ".csv": "csv", ".trec": "trec"}
"""The endings of files that hold ranked lists."""
FIGURES = (".svg", ".png", ".pdf", ".html", ".json")
"""The endings of files that hold a figure."""
FORMATS = ("table", "csv", "json", "markdown", "latex", "html")
"""What a table is printed as."""
TEXT_FORMATS = ("text", *FORMATS[1:])
"""What a result is printed as that has more to say than a table."""

STANDARD_OUTPUT = "-"


@dataclass(frozen=True)
class Printout:
    """What a command found, ready for every format."""

    table: pl.DataFrame
    """Every number, for programs."""
    sections: Sequence[Table]
    """Tables for people."""
    footer: Sequence[str] = ()
    texts: Mapping[str, Callable[[], Any]] = field(default_factory=dict)
    """Formats that the result writes in a way of its own."""

    @classmethod
    def of(
        cls,
        shown: pl.DataFrame,
        table: pl.DataFrame | None = None,
        *,
        digits: int = 4,
        footer: Sequence[str] = (),
        **texts: Callable[[], Any],
    ) -> Printout:
        """Return the result of a table for people and, where it is another, one for programs."""
        from unskew.report.tables import Table

        sections = [Table("", shown, digits)]
        return cls(shown if table is None else table, sections, footer, texts)

    @classmethod
    def of_result(
        cls, result: Result, digits: int | None = None, **texts: Callable[[], Any]
    ) -> Printout:
        """Return what a result says about itself."""
        footer = [*result.header(), *result.footer()]
        return cls(result.table(), result.display_tables(digits), footer, texts)

    def text(self, kind: str) -> str:
        """Return the result as `csv`, `json`, `markdown`, `latex` or `html`."""
        from unskew.report.tables import as_csv
        from unskew.report.text import as_json

        if kind == "json":
            content = self.texts[kind]() if kind in self.texts else self.table.to_dicts()
            return as_json(content)
        if kind in self.texts:
            return str(self.texts[kind]())
        if kind == "csv":
            return as_csv(self.table)
        written = [getattr(section, f"to_{kind}")() for section in self.sections]
        return "\n\n".join(written)

    def write(self, path: Path) -> None:
        """Write a file; its ending is the format. What people read has the footer below it."""
        from unskew.engine.files import replacing, write_table

        kind = TABLES[path.suffix.lower()]
        if kind == "parquet":
            write_table(self.table, path, kind)
            return
        text = self.text(kind)
        if kind == "html":
            text = _page(path.stem, text, self.footer)
        elif self.footer and kind in ("markdown", "latex"):
            mark = "% " if kind == "latex" else ""
            text += "\n\n" + ("\n" if mark else "\n\n").join(f"{mark}{x}" for x in self.footer)
        with replacing(path) as part:
            part.write_text(text + "\n", encoding="utf-8")

    def show(self, kind: str, quiet: bool) -> None:
        """Print the result, and what it is of: below a table, else on standard error."""
        lines = [] if quiet else self.footer
        if kind == "text":  # says by itself what it is of
            output().print(self.texts[kind](), markup=False, soft_wrap=True)
            return
        if kind == "table":
            if kind in self.texts:
                output().print(self.texts[kind](), markup=False, soft_wrap=True)
            else:
                for section in self.sections:
                    output().print(section.to_rich())
            for line in lines:
                output().print(line, style="dim", markup=False, soft_wrap=True)
            return
        for line in lines:
            messages().print(line, style="dim", markup=False)
        print(_encodable(self.text(kind), kind))


def deliver(result: Printout, to: Path | None, kind: str, quiet: bool) -> None:
    """Write a result to a file, where one is named, and print it."""
    if to is not None:
        result.write(to)
    result.show(kind, quiet)
    if to is not None and not quiet:
        messages().print(f"written to {to}", style="dim", markup=False)


def check_file(path: Path | None, endings: Iterable[str], option: str = "--output") -> Path | None:
    """Return the path of a file to write if its ending is a format and no folder is there."""
    if path is None or str(path) == STANDARD_OUTPUT:
        return path
    allowed = ", ".join(endings)
    if path.suffix.lower() not in endings:
        raise SettingError(f"{option} {path}: the ending is the format: take one of {allowed}")
    if path.is_dir():
        raise SettingError(f"{option} {path}: this is a folder: name a file that ends in {allowed}")
    return path


def table_file(to: Path | None) -> Path | None:
    """Check `--output` of a command that gives a table."""
    if to is not None and str(to) == STANDARD_OUTPUT:
        raise SettingError("--output -: tables are printed anyway; choose what as with --format")
    return check_file(to, TABLES)


def report_file(to: Path | None) -> Path | None:
    """Check `--output` of a command that writes a report."""
    return check_file(to, REPORTS)


def lists_file(to: Path) -> Path:
    """Check `--output` of a command that writes ranked lists."""
    check_file(to, LISTS)
    return to


def folder(to: Path | None) -> Path | None:
    """Check `--output` of a command that writes a folder."""
    endings = {*TABLES, *REPORTS, *LISTS}
    if to is not None and to.suffix.lower() in endings and not to.is_dir():
        raise SettingError(
            f"--output {to}: a folder is written, and this names a file: leave out {to.suffix}"
        )
    return to


def report_kind(to: Path | None, kind: str | None) -> str:
    """Return the format of a report: its file's ending, else what --format says, else html."""
    if kind is not None:
        choose("format", kind, dict.fromkeys(REPORTS.values()))
    if to is None or str(to) == STANDARD_OUTPUT:
        return kind or "html"
    ending = REPORTS[to.suffix.lower()]
    if kind is not None and kind != ending:
        raise SettingError(f"--format {kind} and --output {to} disagree: leave out --format")
    return ending


def write_report(
    result: Any, to: Path | None, kind: str, figures: Path | None, name: str, quiet: bool
) -> None:
    """Write a report to its file, `name` where none is given, or to standard output; say where."""
    from unskew.report.writing import save_report, written

    if to is not None and str(to) == STANDARD_OUTPUT:
        sys.stdout.write(written(result.document(), kind, figures).decode())
        return
    ending = next(ending for ending, of in REPORTS.items() if of == kind)
    target = to or Path(f"{name}{ending}")
    save_report(result, target, format=kind, figures=figures)
    if not quiet:
        messages().print(f"the report is in {target}", markup=False)
        if figures is not None:
            messages().print(f"its figures are in {figures}", markup=False)


# Figures


def figure_files(texts: list[str] | None) -> list[str] | None:
    """Check `--figure`: the endings of the files."""
    for text in texts or []:
        check_file(Path(_name_and_file(text)[1]), FIGURES, "--figure")
    return texts


def figures_of(texts: Sequence[str] | None, names: Sequence[str]) -> list[tuple[str, Path]]:
    """Read FILE or NAME=FILE into the figures to draw; FILE alone is the first of the names."""
    wanted = []
    for text in texts or []:
        name, file = _name_and_file(text)
        wanted.append((choose("figure", name or names[0], names), Path(file)))
    return wanted


def draw(wanted: Sequence[tuple[str, Path]], figure: Callable[[str], Figure]) -> None:
    """Write figures to their files."""
    for name, file in wanted:
        figure(name).save(file)


def _name_and_file(text: str) -> tuple[str, str]:
    named = re.fullmatch(r"([\w-]+)=(.+)", text)
    return (named[1], named[2]) if named else ("", text)


# Printing


def _page(title: str, tables: str, footer: Sequence[str]) -> str:
    lines = "<br>\n".join(map(html.escape, footer))
    return (
        f'<!doctype html>\n<html lang="en">\n<meta charset="utf-8">\n'
        f"<title>{html.escape(title)}</title>\n"
        f"<style>body {{ font-family: sans-serif }} th, td {{ padding: .2em .8em }}</style>\n"
        f"{tables}\n<p>{lines}</p>\n</html>"
    )


def _encodable(text: str, kind: str) -> str:
    """Return JSON whose signs the terminal's encoding lacks are escaped: nothing is changed."""
    if kind == "json":
        try:
            text.encode(getattr(sys.stdout, "encoding", None) or "utf-8")
        except UnicodeEncodeError:
            return json.dumps(json.loads(text))
    return text
