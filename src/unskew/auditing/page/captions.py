"""Every sentence of a report that is no statement: what is shown, what was counted or left out.

A caption describes or defines; it concludes nothing. `unskew.auditing.statements` holds what may
be concluded, and a test holds every report against the two.
"""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

TEXTS: dict[str, Any] = tomllib.loads(
    Path(__file__).with_name("captions.toml").read_text(encoding="utf-8")
)
"""All texts, as the file holds them."""
SECTIONS: dict[str, tuple[str, str]] = {
    name: (heading, shows) for name, (heading, shows) in TEXTS["sections"].items()
}
"""By section: its title, and what it shows."""
SHOWS: dict[str, str] = TEXTS["shows"]
"""What a section shows in a special case."""
HEADLINES: dict[str, str] = TEXTS["headlines"]
TITLES: dict[str, str] = TEXTS["titles"]
FRAGMENTS: dict[str, str] = TEXTS["fragments"]
CAPTIONS: dict[str, str] = TEXTS["captions"]
"""By name: a sentence, with the values that stand in it between braces."""
RUNGS: tuple[tuple[str, str], ...] = tuple(TEXTS["rungs"].items())
"""The rungs of the ladder, and what each one keeps."""


def verdict(key: str, /, **values: object) -> str:
    """Return the verdict of a headline."""
    return HEADLINES[key].format(**values)


def fragment(key: str, /, **values: object) -> str:
    """Return a part of a verdict or caption."""
    return FRAGMENTS[key].format(**values)


def title(key: str, /, **values: object) -> str:
    """Return the title of a block."""
    return TITLES[key].format(**values)


def caption(key: str, /, **values: object) -> str:
    """Return a caption with its values."""
    return CAPTIONS[key].format(**values)
