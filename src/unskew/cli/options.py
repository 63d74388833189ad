"""Options that several commands share, and how their text is read."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from unskew.errors import SettingError, choose

Columns = Annotated[
    str | None,
    typer.Option(help="Names of columns, such as user=uid,item=movie,rating=stars."),
]
Duplicates = Annotated[
    str, typer.Option(help="Pairs that stand twice: error, first, last, mean, sum, max.")
]
Force = Annotated[bool, typer.Option("--force", help="Write into a folder that is not empty.")]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="Print the result only.")]


def column_names(text: str | None) -> dict[str, Any]:
    """Read user=uid,item=0 into names or numbers of columns."""
    names: dict[str, Any] = {}
    for part in (text or "").split(","):
        if not part.strip():
            continue
        what, equals, name = (piece.strip() for piece in part.partition("="))
        if not equals or not name:
            raise SettingError(f"--columns: write user=NAME,item=NAME, got {part!r}")
        choose("column", what, ("user", "item", "rating", "time", "rank", "score"))
        names[what] = int(name) if name.isdecimal() else name
    return names
