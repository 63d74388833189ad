"""Text cells of CSV files: none is a formula of a spreadsheet, and all are read back as they were.

Spreadsheet programs carry out a cell that begins with =, +, -, @, a tab or a carriage return. Such
text gets an apostrophe in front when it is written, and loses it when it is read. So that this can
be undone, text that begins with apostrophes before one of these signs gets one more. Numbers are no
text: -5 stays -5.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import polars as pl

_SIGNS = r"[=+\-@\t\r]"
_FORMULA = re.compile(rf"'*{_SIGNS}")
# Of polars, which knows no lookahead.
_PLAIN, _ESCAPED = rf"^('*{_SIGNS})", rf"^'('*{_SIGNS})"


def escape_cell(text: str) -> str:
    """Return text that a spreadsheet takes for text.

    Examples
    --------
    >>> from unskew.engine.cells import escape_cell
    >>> [escape_cell(text) for text in ("=1+1", "'=1", "O'Hara", "'tis")]
    ["'=1+1", "''=1", "O'Hara", "'tis"]
    """
    return f"'{text}" if _FORMULA.match(text) else text


def escaped(frame: pl.DataFrame) -> pl.DataFrame:
    """Return a table whose text and names of columns no spreadsheet takes for formulas."""
    import polars as pl

    columns = []
    for column in frame.iter_columns():
        kind = column.dtype
        text = column.cast(pl.String) if isinstance(kind, pl.Categorical | pl.Enum) else column
        if text.dtype == pl.String:
            text = text.str.replace(_PLAIN, "'$1")
        columns.append(text.alias(escape_cell(column.name)))
    return pl.DataFrame(columns)


def unescaped(column: pl.Series) -> pl.Series:
    """Return a column of text as it was before `escaped`."""
    name = column.name
    if name.startswith("'") and _FORMULA.match(name):
        column = column.alias(name[1:])
    if not column.str.starts_with("'").any():  # the usual case
        return column
    return column.str.replace(_ESCAPED, "$1")
