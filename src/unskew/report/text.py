"""How values and texts are written: numbers, JSON, and what must be escaped where."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Mapping
from typing import Any

from unskew.engine.cells import escape_cell

# Control characters drive the terminal; marks of writing direction hide what a name says.
_UNSAFE = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069]")


def visible(text: str, *, breaks: bool = False) -> str:
    """Return text that a terminal prints as it is: control characters appear as their codes.

    With `breaks` line breaks stay.
    """

    def code(sign: re.Match[str]) -> str:
        keep = breaks and sign[0] in "\r\n"
        return sign[0] if keep else sign[0].encode("unicode_escape").decode()

    return _UNSAFE.sub(code, text)


def cell(value: object, digits: int = 4, *, breaks: bool = False) -> str:
    """Return a value as people read it; a dash for what there is not.

    With `breaks` line breaks stay.
    """
    if value is None:
        return "–"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        return number(value, digits)
    if isinstance(value, list):
        return ", ".join(cell(entry, digits, breaks=breaks) for entry in value)
    if isinstance(value, int):
        return f"{value:,}".replace("-", "−")
    return visible(str(value), breaks=breaks)


def finite(value: Any) -> Any:
    """Return a nest of plain values in which what is not a number is None."""
    if isinstance(value, float) and not math.isfinite(value):
        return None
    if isinstance(value, Mapping):
        return {str(key): finite(entry) for key, entry in value.items()}
    if isinstance(value, list | tuple):
        return [finite(entry) for entry in value]
    return value


def as_json(value: Any, indent: int | None = None) -> str:
    """Return a nest of plain values as JSON: what is not a number is null, as JSON has no NaN."""
    text = json.dumps(
        finite(value), ensure_ascii=False, indent=indent, allow_nan=False, default=str
    )
    # JSON itself leaves these as they are.
    return re.sub(r"[\x7f-\x9f\u2028-\u202e\u2066-\u2069]", lambda c: f"\\u{ord(c[0]):04x}", text)


def escape_formula(text: str) -> str:
    """Return text that neither a spreadsheet nor a terminal carries out.

    Text that a spreadsheet would take for a formula gets an apostrophe in front; see `escape_cell`.
    """
    return visible(escape_cell(text))


def number(
    value: float | None, digits: int = 4, *, signed: bool = False, percent: bool = False
) -> str:
    """Return a number with a fixed number of decimals; a dash for NaN and for what there is not.

    In per cent it has three decimals fewer.
    """
    if value is None or math.isnan(value):
        return "–"
    scaled, decimals = (100 * value, max(digits - 3, 0)) if percent else (value, digits)
    text = f"{scaled:{'+' if signed else ''},.{decimals}f}{'%' if percent else ''}"
    return text.replace("-", "−")


def interval(
    low: float | None,
    high: float | None,
    digits: int = 4,
    *,
    signed: bool = False,
    percent: bool = False,
    write: Callable[[float], str] | None = None,
) -> str:
    """Return both ends of an interval in brackets; a dash where there is none.

    Parameters
    ----------
    low, high
        None: there is none.
    digits, signed, percent
        How `number` writes them.
    write
        What writes an end instead.
    """
    if low is None or high is None:
        return "–"
    write = write or (lambda end: number(end, digits, signed=signed, percent=percent))
    return f"[{write(low)}, {write(high)}]"


def p_value(p: float | None, digits: int = 4) -> str:
    """Return a p-value; a small one as less than the last decimal, never as 0."""
    if p is None or math.isnan(p):
        return "–"
    smallest = 10.0**-digits
    return f"<{smallest:.{digits}f}" if p < smallest else f"{p:.{digits}f}"


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
    >>> from unskew.report.text import escape_markdown
    >>> escape_markdown("user_knn *new*") == "user_knn " + chr(92) + "*new" + chr(92) + "*"
    True
    """
    escaped = _MARKDOWN.sub(r"\\\g<0>", visible(text, breaks=True))
    # An entity is a line break of the text; a line break itself would end the row of a table.
    return re.sub(r"[\r\n]", lambda match: f"&#{ord(match[0])};", escaped)


def one_line(text: str) -> str:
    """Return a text from data as one line that Markdown shows as it is."""
    return escape_markdown(" ".join(text.split()))


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


def counted(number: int, one: str, many: str | None = None) -> str:
    """Return a number and its noun: 1 user, 2 users; or noun and verb: 1 user is, 2 users are."""
    return f"{number:,} {one if number == 1 else many or f'{one}s'}"
