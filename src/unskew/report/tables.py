"""`Table`: one description of a table, written as text, HTML, LaTeX, Markdown, CSV or for rich."""

from __future__ import annotations

import html
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

from unskew.errors import SettingError, UnskewError
from unskew.report.text import (
    as_json,
    cell,
    escape_formula,
    escape_latex,
    escape_markdown,
    one_line,
    visible,
)

if TYPE_CHECKING:
    import polars as pl
    import rich.table

WIDE = 7
"""With more metrics than this a row per metric is easier to read than a column."""


@dataclass(frozen=True, eq=False)
class Table:
    """Columns of numbers and texts, and what people need to read them.

    Parameters
    ----------
    title
        What it shows; printed above it.
    frame
        The values. Numbers are rounded when the table is written, not here.
    digits
        The decimals of numbers.
    note
        What stands below it.
    left
        The columns that are aligned to the left; None: those that hold no numbers.
    strong
        The cells, as (row, column), that are set in bold.
    names
        The header, where it is not the names of the frame's columns.
    anchors
        A name for each row, where other parts of a page point to it.
    links
        By (row, column): the anchor that a cell of a page points to.
    second
        The cells that are underlined: the second best.
    marks
        By (row, column): a superscript, such as the letters of systems that differ significantly.
    is_plain_marked
        Whether plain text shows what is bold as `*0.5*` and what is underlined as `_0.5_`.

    Examples
    --------
    >>> from unskew.report.tables import Table
    >>> table = Table.of_rows(["system", "mean"], [["first", 0.25], ["second", 1 / 3]])
    >>> print(table.to_text())
    system    mean
    first   0.2500
    second  0.3333
    """

    title: str
    frame: pl.DataFrame
    digits: int = 4
    note: str = ""
    left: Sequence[int] | None = None
    strong: frozenset[tuple[int, int]] = frozenset()
    names: tuple[str, ...] | None = None
    anchors: tuple[str, ...] = ()
    links: Mapping[tuple[int, int], str] = field(default_factory=dict)
    second: frozenset[tuple[int, int]] = frozenset()
    marks: Mapping[tuple[int, int], str] = field(default_factory=dict)
    is_plain_marked: bool = False

    @classmethod
    def of_rows(
        cls,
        header: Sequence[str],
        rows: Iterable[Sequence[object]],
        *,
        left: Sequence[int] | None = None,
        title: str = "",
        digits: int = 4,
        strong: Iterable[tuple[int, int]] = (),
        once: int = 0,
    ) -> Table:
        """Return a table of rows; its header may have a name twice, which a frame cannot.

        Of the first `once` cells those are left empty that repeat the row above.
        """
        import polars as pl

        listed = [list(row) for row in rows]
        cells = [row.copy() for row in listed]
        for above, here, row in zip(listed, listed[1:], cells[1:], strict=False):
            for column in range(once):
                if here[column] != above[column]:
                    break
                row[column] = ""
        numbered = [f"column{column}" for column in range(len(header))]
        frame = pl.DataFrame(cells, numbered, orient="row", infer_schema_length=None)
        return cls(title, frame, digits, left=left, strong=frozenset(strong), names=tuple(header))

    @property
    def header(self) -> list[str]:
        """The names of the columns."""
        return list(self.names or self.frame.columns)

    def cells(self, *, breaks: bool = False) -> list[list[str]]:
        """Return header and rows as people read them; with `breaks` line breaks stay."""
        return [
            [cell(value, self.digits, breaks=breaks) for value in row]
            for row in (self.header, *self.frame.iter_rows())
        ]

    def is_left(self) -> list[bool]:
        """Return for every column whether it is aligned to the left."""
        if self.left is not None:
            return [column in self.left for column in range(self.frame.width)]
        return [not kind.is_numeric() for kind in self.frame.dtypes]

    def to_text(self) -> str:
        """Return lines whose columns are aligned: every row and column."""
        rows = list(self._styled(self._plain_style()))
        widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
        left = self.is_left()

        def line(row: Sequence[str]) -> str:
            texts = [
                text.ljust(width) if to_left else text.rjust(width)
                for text, width, to_left in zip(row, widths, left, strict=True)
            ]
            return "  ".join(texts).rstrip()

        lines = [self.title, *map(line, rows), self.note]
        return "\n".join(map(visible, filter(None, lines)))

    def to_markdown(self) -> str:
        """Return a Markdown table that shows every text as it is."""
        marks = "|".join("---" if to_left else "---:" for to_left in self.is_left())

        def line(row: Iterable[str]) -> str:
            return f"| {' | '.join(row)} |"

        head, *body = map(line, self._styled(_MARKDOWN))
        parts = [f"**{one_line(self.title)}**"] if self.title else []
        parts.append("\n".join([head, f"|{marks}|", *body]))
        return "\n\n".join([*parts, *([one_line(self.note)] if self.note else [])])

    def to_latex(self) -> str:
        """Return a LaTeX tabular (booktabs)."""

        def line(row: Iterable[str]) -> str:
            return " & ".join(row) + " \\\\"

        columns = "".join("l" if to_left else "r" for to_left in self.is_left())
        head, *body = map(line, self._styled(_LATEX))
        comments = [[f"% {visible(text)}"] if text else [] for text in (self.title, self.note)]
        return "\n".join(
            [
                *comments[0],
                f"\\begin{{tabular}}{{{columns}}}",
                "\\toprule",
                head,
                "\\midrule",
                *body,
                "\\bottomrule",
                "\\end{tabular}",
                *comments[1],
            ]
        )

    def to_html(self, longest: int | None = None) -> str:
        """Return an HTML table with nothing in it that its texts could start.

        Parameters
        ----------
        longest
            The most characters of a cell; what is longer ends in an ellipsis.
        """
        sides = ["left" if to_left else "right" for to_left in self.is_left()]

        def line(row: Iterable[str], tag: str) -> str:
            cells = [
                f'<{tag} style="text-align: {side}">{text}</{tag}>'
                for text, side in zip(row, sides, strict=True)
            ]
            return f"<tr>{''.join(cells)}</tr>"

        title = f"<p><b>{html.escape(visible(self.title))}</b></p>" if self.title else ""
        note = f"<p>{html.escape(visible(self.note))}</p>" if self.note else ""

        def escape(text: str) -> str:
            cut = text if longest is None or len(text) <= longest else f"{text[:longest]}…"
            return html.escape(cut)

        head, *rows = self._styled(_HTML._replace(escape=escape))
        body = "".join(line(row, "td") for row in rows)
        top = f"<thead>{line(head, 'th')}</thead>" if any(head) else ""
        return f"{title}<table>{top}<tbody>{body}</tbody></table>{note}"

    def to_rich(self) -> rich.table.Table:
        """Return a table for the terminal."""
        from rich import box
        from rich.table import Table as RichTable
        from rich.text import Text

        title = Text(self.title, style="bold") if self.title else None
        table = RichTable(box=box.SIMPLE_HEAD, pad_edge=False, title=title, title_justify="left")
        header, *rows = self.cells()
        for name, to_left in zip(header, self.is_left(), strict=True):
            table.add_column(Text(name), justify="left" if to_left else "right", overflow="fold")
        for i, row in enumerate(rows):
            cells = []
            for column, text in enumerate(row):
                style = "underline" if (i, column) in self.second else ""
                style = "bold green" if (i, column) in self.strong else style
                cells.append(Text(text, style))
                if (i, column) in self.marks:
                    cells[-1] = Text.assemble(cells[-1], (f"^{self.marks[i, column]}", "dim"))
            table.add_row(*cells)
        return table

    def to_csv(self) -> str:
        """Return every value, not rounded, as CSV, marks in columns of their own; see `as_csv`."""
        return as_csv(self._with_marks())

    def to_json(self) -> str:
        """Return every value, not rounded: an object per row; marks are values of their own."""
        frame = self._with_marks() if self.marks else self.frame
        header = frame.columns if self.marks else self.header
        return as_json([dict(zip(header, row, strict=True)) for row in frame.iter_rows()])

    def _with_marks(self) -> pl.DataFrame:
        """Return the values under the names of the header, each column's marks after it."""
        import polars as pl

        columns = []
        for number, (column, name) in enumerate(zip(self.frame, self.header, strict=True)):
            columns.append(column.alias(name))
            marks = [self.marks.get((row, number), "") for row in range(self.frame.height)]
            if any(marks):
                columns.append(pl.Series(f"{name} marks", marks))
        return pl.DataFrame(columns)

    def _styled(self, style: Style) -> Iterator[list[str]]:
        """Yield header and rows as one format writes them: escaped, bold, underlined, marked."""
        for i, row in enumerate(self.cells(breaks=style.breaks), start=-1):
            cells = []
            for column, text in enumerate(row):
                written = style.escape(text)
                if (i, column) in self.strong:
                    written = style.strong.format(written)
                elif (i, column) in self.second:
                    written = style.second.format(written)
                elif column in style.padded:
                    written = f" {written}"
                mark = self.marks.get((i, column))
                cells.append(written if mark is None else written + style.mark(mark))
            yield cells

    def _plain_style(self) -> Style:
        if not self.is_plain_marked:
            return Style(str, "{}", "{}", "^{}".format, breaks=False)
        padded = frozenset(column for _, column in (*self.strong, *self.second))
        return Style(str, "*{}*", "_{}_", "^{}".format, padded, breaks=False)


class Style(NamedTuple):
    """How one format writes the cells of a table."""

    escape: Callable[[str], str]
    strong: str
    """Where braces stand, the cell that is bold."""
    second: str
    mark: Callable[[str], str]
    padded: frozenset[int] = frozenset()
    """Columns whose plain cells begin with a space, as wide as the sign of emphasised ones."""
    breaks: bool = True
    """Whether line breaks stay."""


_SIGNS = {"†": "\\dagger ", "‡": "\\ddagger "}


def _latex_mark(mark: str) -> str:
    inner = "".join(_SIGNS.get(sign) or escape_latex(sign) for sign in mark)
    return f"$^{{{inner.strip()}}}$"


_MARKDOWN = Style(
    escape_markdown, "**{}**", "<ins>{}</ins>", lambda mark: f"<sup>{escape_markdown(mark)}</sup>"
)
_LATEX = Style(escape_latex, "\\textbf{{{}}}", "\\underline{{{}}}", _latex_mark)
_HTML = Style(html.escape, "<b>{}</b>", "<u>{}</u>", lambda mark: f"<sup>{html.escape(mark)}</sup>")


def latex_environment(tabular: str, label: str, caption: str) -> str:
    """Return the environment of a table, which needs the package booktabs.

    Parameters
    ----------
    tabular
        What `Table.to_latex` gives.
    label
        By which the text refers to it.
    caption
        LaTeX, as it is.
    """
    if set(label) & set("{}\\%#$&~^ "):
        raise SettingError(
            f"label={label!r}: a LaTeX label has letters, digits, and the signs : - _ . only"
        )
    top = ["% needs \\usepackage{booktabs}", "\\begin{table}", "\\centering"]
    lines = [*top, f"\\caption{{{caption}}}", f"\\label{{{label}}}", tabular, "\\end{table}"]
    return "\n".join(lines)


def latex_text(text: str) -> str:
    """Return a sentence for LaTeX; † and ‡ are signs of its mathematics."""
    pieces = re.split(f"([{''.join(_SIGNS)}])", text)
    return "".join(
        f"${_SIGNS[piece].strip()}$" if piece in _SIGNS else escape_latex(piece) for piece in pieces
    )


def as_csv(frame: pl.DataFrame) -> str:
    """Return a table for people as CSV: no cell is a formula or drives a terminal.

    Files, from which ids are read back as they were, are written by `write_table`, not by this.
    """
    import polars as pl

    texts = [
        pl.col(name).map_elements(escape_formula, pl.String)
        for name, kind in frame.schema.items()
        if kind == pl.String
    ]
    names = {name: escape_formula(name) for name in frame.columns}
    return frame.with_columns(texts).rename(names).write_csv().rstrip("\n")


def as_pandas(frame: pl.DataFrame) -> Any:
    """Return a pandas frame; pandas is no dependency, so it may be missing."""
    try:
        import pandas as pd
    except ImportError as error:
        raise UnskewError(
            "to_pandas() needs the package pandas: pip install pandas "
            "(to_polars() gives the same table without it)"
        ) from error
    return pd.DataFrame({name: frame[name].to_numpy() for name in frame.columns})
