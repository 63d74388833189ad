"""`Step`: one recorded change of data on their way from a file to an experiment."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from unskew.report.text import counted


@dataclass(frozen=True)
class Size:
    """How many rows there are, and how many users and items have one."""

    rows: int
    users: int
    items: int

    def __str__(self) -> str:
        users, items = counted(self.users, "user"), counted(self.items, "item")
        return f"{counted(self.rows, 'row')} of {users} and {items}"


@dataclass(frozen=True)
class Step:
    """What was done to data, and how much of them it left.

    Examples
    --------
    The steps that data went through are in `Ratings.steps` and `Events.steps`.

    >>> import unskew as us
    >>> data = us.read_ratings({"user": [1, 1, 2], "item": [7, 8, 7]})
    >>> (step,) = us.data.PopularItems(1).apply(data).steps
    >>> print(step)
    popular-items(number=1): 3 rows of 2 users and 2 items became 2 rows of 2 users and 1 item
    >>> step.name, step.after.rows
    ('popular-items', 2)
    """

    name: str
    """The name of a filter, `repeats` or `weights`."""
    settings: Mapping[str, Any]
    before: Size
    after: Size
    counts_rows: bool = False
    """Whether other rows decide on a row, as in a k-core: done before a split, test rows then
    decide what is trained on."""
    facts: Mapping[str, Any] = field(default_factory=dict)
    """What was counted on the way."""

    def describe(self) -> dict[str, Any]:
        """Return plain values, for a card."""
        return asdict(self)

    @classmethod
    def from_card(cls, card: Mapping[str, Any]) -> Step:
        """Return the step that `describe` described.

        Examples
        --------
        >>> import unskew as us
        >>> data = us.read_ratings({"user": [1, 1, 2], "item": [7, 8, 7]})
        >>> (step,) = us.data.PopularItems(1).apply(data).steps
        >>> us.data.Step.from_card(step.describe()) == step
        True
        """
        sizes = {name: Size(**card[name]) for name in ("before", "after")}
        return cls(**{**card, **sizes})

    @property
    def title(self) -> str:
        """Its name and settings."""
        settings = {key: value for key, value in self.settings.items() if value is not None}
        return f"{self.name}({', '.join(f'{key}={value}' for key, value in settings.items())})"

    def __str__(self) -> str:
        facts = "".join(f"; {key.replace('_', ' ')}: {value}" for key, value in self.facts.items())
        return f"{self.title}: {self.before} became {self.after}{facts}"
