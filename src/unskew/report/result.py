"""How results print: tables as plain text, Markdown, LaTeX and HTML, and the lines below them."""

from __future__ import annotations

import html
import json
import math
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

if TYPE_CHECKING:
    import polars as pl

Rows = Sequence[Sequence[str]]

WIDE = 7
"""With more metrics than this a row per metric is easier to read than a column."""


# Control characters drive the terminal; marks of writing direction hide what a name says.
_UNSAFE = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069]")
# What a spreadsheet would take for a formula.
_FORMULA = r"^[=+\-@\t\r]"


def visible(text: str, *, breaks: bool = False) -> str:
    """Return text that a terminal prints as it is: control characters appear as their codes.

    With `breaks` line breaks stay.
    """

    def code(sign: re.Match[str]) -> str:
        keep = breaks and sign[0] in "\r\n"
        return sign[0] if keep else sign[0].encode("unicode_escape").decode()

    return _UNSAFE.sub(code, text)


class Printed:
    """A result that prints as a table and the lines below it that say what it is of.

    Those lines end with the notes of the result, where it has any: what was counted, assumed or
    left out on the way to its numbers.
    """

    digits: ClassVar[int] = 4

    def table(self) -> pl.DataFrame:
        """Return the result as a table."""
        raise NotImplementedError

    def footer(self) -> list[str]:
        """Return the lines below the table."""
        return []

    def shown(self) -> pl.DataFrame:
        """Return the table as people read it."""
        return self.table()

    def __str__(self) -> str:
        return "\n".join([plain(self.shown(), self.digits), *map(visible, self.footer())])

    def _repr_html_(self) -> str:
        return f"{self.shown()._repr_html_()}{html_lines(self.footer())}"


def html_lines(lines: Iterable[str]) -> str:
    """Return lines below a table as one HTML paragraph, with nothing in them that is HTML."""
    return f"<p>{'<br>'.join(map(html.escape, lines))}</p>"


def plain(table: pl.DataFrame, digits: int = 4) -> str:
    """Return a whole table as text: every row and column, numbers with so many decimals."""
    header, rows, left = cells(table, digits)
    return as_text(header, rows, left)


def cells(table: pl.DataFrame, digits: int = 4) -> tuple[list[str], list[list[str]], list[int]]:
    """Return a table's header, its rows as people read them, and which columns are text."""
    rows = [[cell(value, digits) for value in row] for row in table.iter_rows()]
    left = [at for at, kind in enumerate(table.dtypes) if not kind.is_numeric()]
    return [visible(name) for name in table.columns], rows, left


def cell(value: object, digits: int = 4) -> str:
    """Return a value as people read it; a dash for what there is not."""
    if value is None:
        return "–"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        return number(value, digits)
    if isinstance(value, list):
        return ", ".join(cell(one, digits) for one in value)
    return f"{value:,}".replace("-", "−") if isinstance(value, int) else visible(str(value))


def finite(value: Any) -> Any:
    """Return a nest of plain values in which what is not a number is None."""
    if isinstance(value, float) and not math.isfinite(value):
        return None
    if isinstance(value, Mapping):
        return {str(key): finite(one) for key, one in value.items()}
    if isinstance(value, list | tuple):
        return [finite(one) for one in value]
    return value


def as_json(value: Any, indent: int | None = None) -> str:
    """Return a nest of plain values as JSON: what is not a number is null, as JSON has no NaN."""
    text = json.dumps(
        finite(value), ensure_ascii=False, indent=indent, allow_nan=False, default=str
    )
    # JSON itself leaves these as they are.
    return re.sub(r"[\x7f-\x9f\u2028-\u202e\u2066-\u2069]", lambda c: f"\\u{ord(c[0]):04x}", text)


def as_csv(table: pl.DataFrame) -> str:
    """Return a table for people as CSV: no cell is a formula or drives a terminal.

    Text that a spreadsheet would take for a formula (it starts with =, +, -, @, a tab or a carriage
    return) gets an apostrophe in front. Files that programs read again are written as they are.
    """
    import polars as pl

    names = {name: _as_cell(name) for name in table.columns}
    texts = [pl.col(name).map_elements(_as_cell, pl.String) for name in _texts(table)]
    return table.with_columns(texts).rename(names).write_csv().rstrip("\n")


def _texts(table: pl.DataFrame) -> list[str]:
    import polars as pl

    return [name for name, kind in table.schema.items() if kind == pl.String]


def _as_cell(text: str) -> str:
    return ("'" if re.match(_FORMULA, text) else "") + visible(text)


def number(value: float, digits: int = 4, *, signed: bool = False) -> str:
    """Return a number with a fixed number of decimals; nothing for NaN."""
    if math.isnan(value):
        return "–"
    text = f"{value:+,.{digits}f}" if signed else f"{value:,.{digits}f}"
    return text.replace("-", "−")


def p_value(p: float, digits: int = 4) -> str:
    """Return a p-value; a small one as less than the last decimal, never as 0."""
    if math.isnan(p):
        return "–"
    least = 10.0**-digits
    return f"<{least:.{digits}f}" if p < least else f"{p:.{digits}f}"


def as_text(header: Sequence[str], rows: Rows, left: Sequence[int] = (0,)) -> str:
    """Return lines whose columns are aligned; `left` are the columns of text."""
    header, *rows = [[visible(cell) for cell in row] for row in (header, *rows)]
    widths = [max(map(len, column)) for column in zip(header, *rows, strict=True)]

    def line(row: Sequence[str]) -> str:
        cells = [
            cell.ljust(width) if place in left else cell.rjust(width)
            for place, (cell, width) in enumerate(zip(row, widths, strict=True))
        ]
        return "  ".join(cells).rstrip()

    return "\n".join([line(header), *map(line, rows)])


def as_markdown(header: Sequence[str], rows: Rows, left: Sequence[int] = (0,)) -> str:
    """Return a Markdown table that shows every text as it is."""
    escaped = [list(map(escape_markdown, row)) for row in (header, *rows)]
    return markdown_table(escaped[0], escaped[1:], left)


def markdown_table(header: Sequence[str], rows: Rows, left: Sequence[int] = (0,)) -> str:
    """Return a table of texts that are Markdown already, such as numbers set in bold."""
    marks = "|".join("---" if place in left else "---:" for place in range(len(header)))

    def line(row: Sequence[str]) -> str:
        return "| " + " | ".join(row) + " |"

    return "\n".join([line(header), f"|{marks}|", *map(line, rows)])


def as_latex(header: Sequence[str], rows: Rows, left: Sequence[int] = (0,)) -> str:
    """Return a LaTeX tabular (booktabs)."""
    columns = "".join("l" if place in left else "r" for place in range(len(header)))

    def line(row: Sequence[str]) -> str:
        return " & ".join(map(escape_latex, row)) + " \\\\"

    body = [line(header), "\\midrule", *map(line, rows)]
    return "\n".join(
        [f"\\begin{{tabular}}{{{columns}}}", "\\toprule", *body, "\\bottomrule", "\\end{tabular}"]
    )


def as_html(header: Sequence[str], rows: Rows, left: Sequence[int] = (0,)) -> str:
    """Return an HTML table."""

    def line(row: Sequence[str], tag: str) -> str:
        cells = [
            f'<{tag} style="text-align: {"left" if place in left else "right"}">'
            f"{html.escape(cell)}</{tag}>"
            for place, cell in enumerate(row)
        ]
        return f"<tr>{''.join(cells)}</tr>"

    body = "".join(line(row, "td") for row in rows)
    return f"<table><thead>{line(header, 'th')}</thead><tbody>{body}</tbody></table>"


_MARKDOWN = re.compile(
    r"[\\`*<>\[\]&~$|]"
    r"|(?<![^\W_])_|_(?![^\W_])"  # an underscore inside a word is no mark
    r"|^[#+=-](?=[\s#=-]|$)|(?<=^\d)[.)](?=\s|$)|(?<=^\d\d)[.)](?=\s|$)"  # headings and lists
)
"""What Markdown can take for a mark."""


def escape_markdown(text: str) -> str:
    """Return text that Markdown shows as it is, in a table, a heading or a paragraph.

    Examples
    --------
    >>> from unskew.report.result import escape_markdown
    >>> escape_markdown("user_knn *new*") == "user_knn " + chr(92) + "*new" + chr(92) + "*"
    True
    """
    escaped = _MARKDOWN.sub(r"\\\g<0>", visible(text, breaks=True))
    # An entity is a line break of the text; a line break itself would end the row of a table.
    return re.sub(r"[\r\n]", lambda match: f"&#{ord(match[0])};", escaped)


_LATEX = {
    **{mark: f"\\{mark}" for mark in "&%$#_{}"},
    "\\": "\\textbackslash{}",
    "~": "\\textasciitilde{}",
    "^": "\\textasciicircum{}",
    "|": "\\textbar{}",
    "`": "\\textasciigrave{}",
    "<": "$<$",
    ">": "$>$",
    "−": "$-$",
    "–": "--",
    # After the end of a row LaTeX would take these for an argument or a star of the line break.
    "[": "{[}",
    "*": "{*}",
    "\r": " ",
    "\n": " ",
    "\u200b": "{}",
}


def escape_latex(text: str) -> str:
    """Return text that LaTeX prints as it is; a line break is a space, as columns have none."""
    # Two hyphens in a row would be joined to a dash: an empty group keeps them apart.
    apart = re.sub("-(?=-)", "-\u200b", visible(text, breaks=True))
    return "".join(_LATEX.get(mark, mark) for mark in apart)
