"""Names of columns by what they hold, from `column_names.toml`."""

from __future__ import annotations

import tomllib
from functools import cache
from pathlib import Path


@cache
def column_names() -> dict[str, tuple[str, ...]]:
    """Return the names of each kind of column, and words of events and ratings.

    Examples
    --------
    >>> from unskew.data.column_names import column_names
    >>> column_names()["opinions"][:3]
    ('rating', 'ratings', 'overall')
    """
    text = Path(__file__).with_suffix(".toml").read_text(encoding="utf-8")
    return {kind: tuple(words) for kind, words in tomllib.loads(text).items()}
