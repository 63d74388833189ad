"""Small tables as plain text, Markdown, LaTeX and HTML: the first column left, the others right."""

from __future__ import annotations

import html
import math
from collections.abc import Sequence

Rows = Sequence[Sequence[str]]


def number(value: float, digits: int = 4, *, signed: bool = False) -> str:
    """Return a number with a fixed number of decimals; nothing for NaN."""
    if math.isnan(value):
        return "–"
    text = f"{value:+.{digits}f}" if signed else f"{value:.{digits}f}"
    return text.replace("-", "−")


def p_value(p: float, digits: int = 4) -> str:
    """Return a p-value; a small one as less than the last decimal, never as 0."""
    if math.isnan(p):
        return "–"
    least = 10.0**-digits
    return f"<{least:.{digits}f}" if p < least else f"{p:.{digits}f}"


def as_text(header: Sequence[str], rows: Rows, left: Sequence[int] = (0,)) -> str:
    """Return lines whose columns are aligned; `left` are the columns of text."""
    widths = [max(map(len, column)) for column in zip(header, *rows, strict=True)]

    def line(row: Sequence[str]) -> str:
        cells = [
            cell.ljust(width) if place in left else cell.rjust(width)
            for place, (cell, width) in enumerate(zip(row, widths, strict=True))
        ]
        return "  ".join(cells).rstrip()

    return "\n".join([line(header), *map(line, rows)])


def as_markdown(header: Sequence[str], rows: Rows, left: Sequence[int] = (0,)) -> str:
    """Return a Markdown table."""
    marks = "|".join("---" if place in left else "---:" for place in range(len(header)))

    def line(row: Sequence[str]) -> str:
        return "| " + " | ".join(cell.replace("|", "\\|") for cell in row) + " |"

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


def escape_latex(text: str) -> str:
    """Return text that LaTeX prints as it is."""
    table = {c: "\\" + c for c in "&%$#_{}"}
    table |= {"\\": "\\textbackslash{}", "~": "\\textasciitilde{}", "^": "\\textasciicircum{}"}
    table |= {"<": "$<$", ">": "$>$", "−": "$-$", "–": "--"}
    return "".join(table.get(character, character) for character in text)
