"""Where results go: to the terminal in a format, to files whose ending is the format."""

from __future__ import annotations

import html
import json
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from unskew.checks import choose
from unskew.cli.console import in_option_words, messages, output
from unskew.cli.files import REPORTS, STANDARD_OUTPUT, TABLES, figure_name_and_file
from unskew.cli.options import (
    FigureTableOptions,
    FolderOptions,
    PrintOptions,
    ReportOptions,
    TableOptions,
    TextOptions,
)
from unskew.cli.progress import progress
from unskew.errors import SettingError

if TYPE_CHECKING:
    import polars as pl

    from unskew.report.charts import Figure
    from unskew.report.columns import Question
    from unskew.report.estimates import Estimates
    from unskew.report.result import Result
    from unskew.report.tables import Table


ABOUT = ("explanation", "notes")
"""The words of an answer."""


@dataclass(frozen=True)
class Printout:
    """The result of a command, ready for every format."""

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
        if kind == "parquet" or (kind == "csv" and kind not in self.texts):
            write_table(self.table, path, kind)  # every id can be read back as it was
            return
        text, footer = self.text(kind), self.lines()
        if kind == "html":
            text = _page(path.stem, text, footer)
        elif footer and kind in ("markdown", "latex"):
            mark = "% " if kind == "latex" else ""
            text += "\n\n" + ("\n" if mark else "\n\n").join(f"{mark}{x}" for x in footer)
        with replacing(path) as part:
            part.write_text(text + "\n", encoding="utf-8")

    def lines(self) -> list[str]:
        """Return the footer in the words of the command line."""
        return list(map(in_option_words, self.footer))

    def show(self, kind: str, quiet: bool) -> None:
        """Print the result, and what it is of: below a table, else on standard error."""
        lines = [] if quiet else self.lines()
        if kind == "text":  # says by itself what it is of
            say(in_option_words(self.texts[kind]()))
        elif kind == "table":
            for section in self.sections:
                output().print(section.to_rich())
            for line in lines:
                say(line, dim=True)
        else:
            for line in lines:
                note(line)
            print(_encodable(self.text(kind), kind))


def deliver(printout: Printout, options: PrintOptions) -> None:
    """Write a result to a file, where one is named, and print it."""
    if options.output is not None:
        printout.write(options.output)
    printout.show(options.format, options.quiet)
    if options.output is not None and not options.quiet:
        note(f"written to {options.output}")


def answer(
    question: Question,
    read: Callable[[], Any],
    ask: Callable[..., Estimates],
    options: FigureTableOptions,
    title: str = "",
    part: str = "",
) -> None:
    """Read, ask, draw the figures that are wanted, and print: what most commands do.

    Parameters
    ----------
    question
        Whose figures can be drawn: a name of another one is refused before anything is read.
    read
        Reads the data.
    ask
        Gives the answer for the data.
    options
        Where the answer and its figures go.
    title
        What is shown while the answer is worked out; empty where it comes at once.
    part
        The part of the answer that is printed; empty: the answer itself. A part without words of
        its own has those of the answer.
    """
    figures = figures_of(options.figure, [drawing.name for drawing in question.figures])
    data = read()
    if title:
        with progress(title, options.quiet) as move:
            result = ask(data, progress=move)
    else:
        result = ask(data)
    draw(figures, result.figure)
    if part:
        chosen = result.parts[part]
        about = {} if chosen.explanation else {name: getattr(result, name) for name in ABOUT}
        result = replace(chosen, **about)
    deliver_result(result, options)


def deliver_result(
    result: Any, options: PrintOptions, figures: Sequence[tuple[str, Path]] = ()
) -> None:
    """Draw the one figure of a result, write it to a file where one is named, and print it."""
    draw(figures, lambda _: result.figure())
    digits = options.digits if isinstance(options, TableOptions) else None
    as_text = {"text": result.__str__} if isinstance(options, TextOptions) else {}
    deliver(Printout.of_result(result, digits, json=result.to_dict, **as_text), options)


def note(line: str) -> None:
    """Print a line about the result on standard error."""
    messages().print(in_option_words(line), style="dim", markup=False)


def message(line: str) -> None:
    """Print what a command has done on standard error."""
    messages().print(line, markup=False)


def say(line: str, *, dim: bool = False) -> None:
    """Print a line of the result as it is."""
    output().print(line, style="dim" if dim else None, markup=False, soft_wrap=True)


def say_written(options: FolderOptions, *lines: str, then: str = "") -> None:
    """Print what was written, where, and what to do then, unless the command is quiet."""
    if not options.quiet:
        for line in lines:
            say(line)
        say(f"written to {options.output}{then}", dim=True)


def report_kind(options: ReportOptions) -> str:
    """Return the format of a report: its file's ending, else what --format says, else html."""
    path, kind = options.output, options.format
    if kind is not None:
        choose("format", kind, dict.fromkeys(REPORTS.values()))
    if path is None or str(path) == STANDARD_OUTPUT:
        return kind or "html"
    ending = REPORTS[path.suffix.lower()]
    if kind is not None and kind != ending:
        raise SettingError(f"--format {kind} and --output {path} disagree: leave out --format")
    return ending


def write_report(
    result: Any, options: ReportOptions, name: str, show: Callable[[], None] = lambda: None
) -> None:
    """Write a report to its file, `name` where none is given, or to standard output; say where.

    Parameters
    ----------
    result
        A document, or what has one.
    options
        Where the report goes, and in which format.
    name
        The file without its ending, where none is given.
    show
        Prints the result. A file is written before: a reader that stops early, such as `head`,
        must not cost the report.
    """
    from unskew.report.document import Document
    from unskew.report.page import document_bytes, save_report

    document = result if isinstance(result, Document) else result.document()
    path, figures, kind = options.output, options.figures, report_kind(options)
    if path is not None and str(path) == STANDARD_OUTPUT:
        # The report alone: lines before it would be no JSON. It begins with the answer.
        sys.stdout.write(document_bytes(document, kind, figures).decode())
        return
    ending = next(ending for ending, of in REPORTS.items() if of == kind)
    target = path or Path(f"{name}{ending}")
    save_report(document, target, format=kind, figures=figures)
    show()
    if not options.quiet:
        message(f"the report is in {target}{_to_open(target)}")
        if figures is not None:
            message(f"its figures are in {figures}")


def _to_open(path: Path) -> str:
    """Say how to open a page."""
    if path.suffix.lower() not in (".html", ".htm"):
        return ""
    return f"; open it in a browser: {path.resolve().as_uri()}"


# Figures


def figures_of(texts: Sequence[str] | None, names: Sequence[str]) -> list[tuple[str, Path]]:
    """Read FILE or NAME=FILE into the figures to draw; FILE alone is the first of the names."""
    figures = []
    for text in texts or []:
        name, file = figure_name_and_file(text)
        figures.append((choose("figure", name or names[0], names), Path(file)))
    return figures


def draw(wanted: Sequence[tuple[str, Path]], figure: Callable[[str], Figure]) -> None:
    """Write figures to their files."""
    for name, file in wanted:
        figure(name).save(file)


# Printing


def print_list(
    entries: Sequence[Mapping[str, Any]],
    columns: Mapping[str, str],
    as_json: bool = False,
    below: Sequence[str] = (),
) -> None:
    """Print a list of things that have names: all for programs, columns of text for people.

    Parameters
    ----------
    entries
        What is known of each thing.
    columns
        The parts of an entry that people see, by the title of their column.
    as_json
        Whether programs read it.
    below
        Lines below the columns, for people.
    """
    from unskew.report.tables import Table

    if as_json:
        print_json(entries)
        return
    rows = [[_cell(entry[part]) for part in columns.values()] for entry in entries]
    output().print(Table.of_rows(list(columns), rows).to_rich())
    for line in below:
        say(line)


def _cell(value: Any) -> str:
    """Return the first line of a text, the names in a list, or settings and their defaults."""
    if isinstance(value, dict):
        value = [key if isinstance(x, dict) else f"{key}={x}" for key, x in value.items()]
    return ", ".join(value) if isinstance(value, list) else str(value).partition("\n")[0]


def print_plain(kind: str, content: object, lines: Iterable[str]) -> None:
    """Print plain values: as JSON for programs, or the lines that people read of them."""
    if kind == "json":
        print_json(content)
    else:
        for line in lines:
            say(line)


def print_json(content: object, indent: int | None = None) -> None:
    """Print a nest of plain values as JSON, for programs."""
    from unskew.report.text import as_json

    print(_encodable(as_json(content, indent), "json"))


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
