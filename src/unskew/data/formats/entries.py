"""The named data sets of `catalogue.toml`: where each comes from, its files, and their reader."""

from __future__ import annotations

import inspect
import re
import tomllib
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from unskew.data.dataset import ALL, RANDOM
from unskew.data.formats.log_formats import kuairand, kuairec, ml_32m_ext, yambda
from unskew.data.formats.parts import Parts
from unskew.data.formats.ratings_formats import (
    beeradvocate,
    cm100k,
    coat,
    columns_reader,
    jester,
    lastfm_1k,
    librarything,
    netflix,
)

READERS: dict[str, Callable[..., Parts]] = {
    reader.__name__: reader
    for reader in (
        *(netflix, coat, cm100k, lastfm_1k, librarything, beeradvocate),
        *(jester, kuairec, kuairand, yambda, ml_32m_ext),
    )
}
"""What reads the files of a data set, by the name that the catalogue gives it."""


@dataclass(frozen=True)
class CatalogEntry:
    """A named data set."""

    name: str
    title: str
    published: str
    """Users x items x ratings, as its authors give them."""
    licence: str
    address: str
    """The official page."""
    reader: Callable[..., Parts]
    files: tuple[str, ...]
    """The files that must be there: patterns, `|` between alternatives."""
    scale: tuple[float, float] | None = None
    liked: float | None = None
    """The smallest rating that is liked, as the papers take it; None where they do not say."""
    reason: str = ""
    """Why ratings are liked from there on."""
    observed: str = "ratings that users chose to give"
    """What the ratings are."""
    truth: str = ""
    """Its judgments without the bias of what users chose to rate: kind, and how many."""
    kind: str = RANDOM
    """What these are: see `TrueJudgments`."""
    is_all_random: bool = False
    """Whether the ratings themselves are of randomly chosen items."""
    candidates: str = ALL
    """Which items they speak of: see `TrueJudgments`."""
    rules: tuple[str, ...] = ()
    """Which of the rules about both parts apply."""
    archive: str | None = None
    """What is downloaded; None where a person has to ask for it or to convert it."""
    size: int | None = None
    """Bytes of the archive; None = not known."""
    checksum: str | None = None
    """As officially published; None = not known."""
    folders: tuple[str, ...] = ()
    """Further names under which its folder may lie in the data folder."""
    by_hand: str = ""
    """What to do where nothing can be downloaded."""

    @property
    def size_of_ratings(self) -> tuple[int | None, int | None, int | None]:
        """Users, items and ratings, as its authors count them; None where they give no number."""
        words = (re.sub(r"[^\d.]", "", part.split("(")[0]) for part in self.published.split(" x "))
        users, items, ratings = (int(word) if word.isdigit() else None for word in words)
        return users, items, ratings

    @property
    def source(self) -> str:
        """Where and how to get it, and its licence."""
        how = self.by_hand if self.archive is None else f"unskew data get {self.name}"
        return f"from {self.address} ({how}); licence: {self.licence}"

    @property
    def facts(self) -> tuple[str, ...]:
        """What is observed, what is true, and why ratings are liked from the threshold on."""
        lines = [f"observed: {self.observed}"]
        lines += [f"true part: {self.truth}"] if self.truth else []
        if self.liked is not None:
            lines.append(f"liked from {self.liked:g}: {self.reason}")
        return tuple(lines)

    @property
    def options(self) -> tuple[str, ...]:
        """The options that `load` takes for it."""
        return (*keywords(self.reader), *self.rules)


def keywords(function: Callable[..., Any]) -> tuple[str, ...]:
    """Return the options of a function that reads files: what it takes by keyword only."""
    parameters = inspect.signature(function).parameters.values()
    return tuple(
        parameter.name for parameter in parameters if parameter.kind is parameter.KEYWORD_ONLY
    )


DATASETS: dict[str, CatalogEntry]
"""The data sets by name; read when they are first asked for."""


def __getattr__(name: str) -> dict[str, CatalogEntry]:
    if name != "DATASETS":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return _datasets()


@cache
def _datasets() -> dict[str, CatalogEntry]:
    text = Path(__file__).with_name("catalogue.toml").read_text(encoding="utf-8")
    catalogue = tomllib.loads(text)
    return {
        name: _entry(name, {**catalogue["families"].get(fields.pop("family", ""), {}), **fields})
        for name, fields in catalogue["datasets"].items()
    }


def _entry(name: str, fields: dict[str, Any]) -> CatalogEntry:
    lists = {key: tuple(value) for key, value in fields.items() if isinstance(value, list)}
    values: dict[str, Any] = {**fields, **lists}
    columns, reader = values.pop("columns", None), values.pop("reader", None)
    values["reader"] = columns_reader(columns) if reader is None else READERS[reader]
    return CatalogEntry(name=name, **values)
