"""Worlds that have a name: one for each situation that the papers speak of."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from unskew.worlds.parts import as_parts
from unskew.worlds.tastes import Part, Stars


class NamedWorld(NamedTuple):
    """A world that has a name: its parts, how large it is unless said otherwise, and why."""

    about: str
    paper: str
    settings: Mapping[str, Any]
    """Its settings and their defaults."""
    parts: Sequence[Mapping[str, Any]]
    """Its parts as `Part.describe` gives them, with names of settings in place of values."""
    users: int = 2_000
    items: int = 1_000
    ratings: int = 80_000

    def build(self, **settings: Any) -> tuple[Part, ...]:
        """Return its parts by these settings; by their defaults where none is stated."""
        values = {**self.settings, **settings}
        if "p" not in values:
            values["p"] = Stars(liked=values["liked"]).liked_share
        return as_parts(
            [
                {field: values.get(entry, entry) for field, entry in part.items()}
                for part in self.parts
            ]
        )


WORLDS: dict[str, NamedWorld] = {
    name: NamedWorld(**fields)
    for name, fields in tomllib.loads(
        Path(__file__).with_name("named.toml").read_text(encoding="utf-8")
    ).items()
}
"""Every world that has a name."""
