"""The formats of what commands print and write, and checks of the files that are named."""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path

from unskew.checks import choose
from unskew.engine.remote import check_local
from unskew.errors import SettingError

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
GATES = (".html", ".md", ".json", ".xml")
"""The endings of files that hold the verdict of a gate."""
GATE_FORMATS = ("text", "json", "markdown", "junit")
"""What the verdict of a gate is printed as."""
FIGURES = (".svg", ".png", ".pdf", ".html", ".json")
"""The endings of files that hold a figure."""
FORMATS = ("table", "csv", "json", "markdown", "latex", "html")
"""What a table is printed as."""
TEXT_FORMATS = ("text", *FORMATS[1:])
"""What a result is printed as that says in words what it is of."""
PLAIN_FORMATS = ("text", "json")
"""What is printed that is no table: for people, or for programs."""

STANDARD_OUTPUT = "-"


def check_file(path: Path | None, endings: Iterable[str], option: str = "--output") -> Path | None:
    """Return the path of a file to write if its ending is a format and no folder is there."""
    if path is None or str(path) == STANDARD_OUTPUT:
        return path
    check_local(option, path)
    allowed = ", ".join(endings)
    if path.suffix.lower() not in endings:
        raise SettingError(f"{option} {path}: the ending selects the format: use one of {allowed}")
    if path.is_dir():
        raise SettingError(f"{option} {path}: this is a folder: name a file that ends in {allowed}")
    return path


def check_table_file(path: Path | None) -> Path | None:
    """Check `--output` of a command that gives a table."""
    if path is not None and str(path) == STANDARD_OUTPUT:
        raise SettingError(
            "--output -: tables are printed anyway; choose their format with --format"
        )
    return check_file(path, TABLES)


def check_paper_file(path: Path | None) -> Path | None:
    """Check `--paper` of a command that writes the table of a paper."""
    if path is not None and str(path) == STANDARD_OUTPUT:
        raise SettingError("--paper -: name a file, such as table.tex")
    return check_file(path, TABLES, "--paper")


def check_report_file(path: Path | None) -> Path | None:
    """Check `--output` of a command that writes a report."""
    return check_file(path, REPORTS)


def check_gate_files(paths: list[Path] | None) -> list[Path] | None:
    """Check `--output` of the gate, which can be given several times."""
    for path in paths or []:
        if str(path) == STANDARD_OUTPUT:
            raise SettingError(
                "--output -: the verdict is printed anyway; choose its format with --format"
            )
        check_file(path, GATES)
    return paths


def check_gate_format(kind: str) -> str:
    """Check `--format` of the gate."""
    return choose("format", kind, GATE_FORMATS)


def check_lists_file(path: Path | None) -> Path | None:
    """Check `--output` of a command that writes ranked lists."""
    return check_file(path, LISTS)


def check_values_file(path: Path | None) -> Path | None:
    """Check `--per-user` of a command that writes a value per user."""
    return check_file(path, (".parquet", ".csv"), "--per-user")


def check_folder_name(path: Path | None) -> Path | None:
    """Check `--output` of a command that writes a folder."""
    if path is not None:
        check_local("--output", path)
    endings = {*TABLES, *REPORTS, *LISTS}
    if path is not None and path.suffix.lower() in endings and not path.is_dir():
        raise SettingError(
            f"--output {path}: this command writes a folder, not a file: leave out {path.suffix}"
        )
    return path


def check_format(kind: str) -> str:
    """Check `--format` of a command that prints a table."""
    return choose("format", kind, FORMATS)


def check_text_format(kind: str) -> str:
    """Check `--format` of a command that prints text."""
    return choose("format", kind, TEXT_FORMATS)


def check_plain_format(kind: str) -> str:
    """Check `--format` of a command that prints lines."""
    return choose("format", kind, PLAIN_FORMATS)


def check_figure_files(texts: list[str] | None) -> list[str] | None:
    """Check `--figure`: the endings of the files."""
    for text in texts or []:
        check_file(Path(figure_name_and_file(text)[1]), FIGURES, "--figure")
    return texts


def figure_name_and_file(text: str) -> tuple[str, str]:
    """Split NAME=FILE into the figure's name (which may be missing) and the file."""
    named = re.fullmatch(r"([\w-]+)=(.+)", text)
    return (named[1], named[2]) if named else ("", text)
