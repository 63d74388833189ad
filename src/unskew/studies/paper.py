"""`Study`: a paper as data: what it needs, what it shows, what it claims."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from unskew.data.catalog import DATASETS
from unskew.data.dataset import Dataset
from unskew.errors import SettingError
from unskew.report.document import Block
from unskew.studies.claims import ALGEBRA, MEASURED, PRINTED, RELEASED, Claim
from unskew.studies.lab import Amount, Lab, Size

STAND_IN = "stand-in"
"""The name of the built-in data."""
SOURCES = {
    MEASURED: "simulated",
    RELEASED: "released results",
    PRINTED: "printed values",
    ALGEBRA: "algebra",
}
"""What claims that speak of no data set are about, by their evidence."""


@dataclass(frozen=True)
class Exhibit:
    """A table or figure of a paper, made again."""

    place: str
    """Such as `Fig. 2` or `Table 3`."""
    title: str
    shows: str
    """One sentence: what it shows and why that matters."""
    draw: Callable[[Lab, str], Sequence[Block]]
    """Called with the lab and the name of the data."""
    data: tuple[str, ...] = ()
    """The data sets it is drawn for; () = it needs none."""
    files: tuple[str, ...] = ()
    """Tables of released results that it needs."""
    anywhere: bool = True
    """Whether it is drawn for other data too."""


@dataclass(frozen=True)
class Study:
    """A paper as a study: what it needs, what it shows, what it claims."""

    name: str
    title: str
    reference: str
    """The paper: authors, title, journal, year."""
    data: tuple[str, ...]
    """The named data sets it can run on, the most telling first."""
    amounts: Mapping[str, Amount]
    exhibits: tuple[Exhibit, ...]
    claims: tuple[Claim, ...]
    stand_in: Callable[[int], Dataset]
    """Make small data of a built-in world, for a seed."""
    options: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    """Options of `us.load`, by data set."""
    sizes: Mapping[str, Size] = field(default_factory=dict)
    """How large the paper's data sets are as these options load them; a file of another size is
    not the paper's data. The catalogue's sizes, unless given."""

    def size(self, name: str) -> Size:
        """Return how large a data set of the paper is."""
        return self.sizes.get(name) or DATASETS[name].size_of_ratings

    def __post_init__(self) -> None:
        keys = [claim.key for claim in self.claims]
        if len(set(keys)) != len(keys):
            raise SettingError(f"{self.name}: a claim has the key of another")
