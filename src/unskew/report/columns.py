"""`Column`, `Method`, `Question`: what is asked, declared once; results of it hold only numbers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any

from unskew.checks import choose

if TYPE_CHECKING:
    import polars as pl

KEYS = ("key", "axis", "switch")
"""The kinds of columns that say what a row is of."""
_TYPES: Mapping[str, tuple[str, str]] = {
    "key": ("String", "string"),
    "axis": ("Float64", "number"),
    "switch": ("Boolean", "boolean"),
    "value": ("Float64", "number"),
    "interval": ("Float64", "number"),
    "p": ("Float64", "number"),
    "share": ("Float64", "number"),
    "fact": ("Float64", "number"),
    "count": ("Int64", "number"),
    "flag": ("Boolean", "boolean"),
    "note": ("String", "string"),
}
"""The type of each kind of column: that of polars, that of JSON."""


@dataclass(frozen=True)
class Column:
    """A column of `Estimates`.

    Parameters
    ----------
    name
        The name that programs use.
    kind
        What it holds. Keys: `key` (a name), `axis` (a number), `switch` (yes or no). Numbers:
        `value`, `interval` (an end of it, or the standard error), `p`, `share`, `fact`, `count`.
        Besides: `flag` (yes or no), `note` (why there is no value).
    label
        The name that people read; `name` unless given.

    Examples
    --------
    >>> from unskew.report.columns import Column
    >>> Column("n", "count", "users")
    Column(name='n', kind='count', label='users')
    """

    name: str
    kind: str
    label: str = ""

    def __post_init__(self) -> None:
        choose("kind", self.kind, _TYPES)
        if not self.label:
            object.__setattr__(self, "label", self.name)

    @property
    def type(self) -> pl.DataType:
        """The polars type of its values."""
        import polars as pl

        return getattr(pl, _TYPES[self.kind][0])()  # type: ignore[no-any-return]

    @property
    def schema(self) -> dict[str, Any]:
        """What JSON holds of a value; what there is not is null."""
        return {"type": [_TYPES[self.kind][1], "null"]}


SYSTEM = Column("system", "key")
METRIC = Column("metric", "key")
VALUE, SE = Column("value", "value"), Column("se", "interval")
LOW, HIGH = Column("low", "interval"), Column("high", "interval")
USERS = Column("n", "count", "users")
NOTE = Column("note", "note", "reason")
ESTIMATE = (USERS, VALUE, SE, LOW, HIGH, NOTE)
"""A value over users, its standard error, its interval, and why there is none."""
PAIR = (Column("system", "key", "a"), Column("against", "key", "b"))
"""The two systems of a difference: that of the first less that of the second."""


@dataclass(frozen=True, kw_only=True)
class Method:
    """How numbers were worked out.

    Parameters
    ----------
    estimand
        What is estimated, in one sentence.
    unit
        What the intervals take as drawn at random: users, lists, data sets.
    interval
        Its kind: `t`, `Wilson`, `percentile`, `bounds`; empty where there is none.
    level
        Of the intervals.
    correction
        Of the p-values.
    draws, seed
        Of the bootstrap or the permutations.
    """

    estimand: str
    unit: str = "users"
    interval: str = ""
    level: float | None = None
    correction: str | None = None
    draws: int = 0
    seed: int | None = None


@dataclass(frozen=True, kw_only=True)
class Question:
    """What is asked of data, declared once: every answer to it is an `Estimates`.

    Parameters
    ----------
    name
        In a few words, as titles of figures and views show it.
    columns
        The columns of the answer, keys first.
    method
        How it is answered; an answer replaces what the caller chose.
    figure
        How the answer is drawn: `forest` (a point and its interval per row), `bars` or `lines`.
    """

    name: str
    columns: tuple[Column, ...]
    method: Method
    figure: str = "forest"

    def of_pairs(self, *extra: Column) -> Question:
        """Return the question of differences of two systems, a less b, by Student's t.

        Parameters
        ----------
        extra
            More columns; they stand before the numbers. A count of a system (`judged`) has a twin
            of the second system (`judged_against`).

        Examples
        --------
        >>> from unskew.report.columns import SYSTEM, VALUE, Column, Method, Question
        >>> columns = SYSTEM, Column("rated", "count"), VALUE
        >>> mean = Question(name="mean", columns=columns, method=Method(estimand="the mean"))
        >>> [column.label for column in mean.of_pairs().columns]
        ['a', 'b', 'rated_a', 'rated_b', 'value']
        """
        keys, counts = list(PAIR), list[Column]()
        rest = list[Column]()
        for column in self.columns:
            if column.kind == "count" and column.name != "n":
                counts.append(Column(column.name, "count", f"{column.name}_a"))
                counts.append(Column(f"{column.name}_against", "count", f"{column.name}_b"))
            elif column.name != "system":
                (keys if column.kind in KEYS else rest).append(column)
        estimand = f"{self.method.estimand}: of a less that of b"
        return replace(
            self,
            name=f"differences: {self.name}",
            columns=(*keys, *counts, *extra, *rest),
            method=replace(self.method, estimand=estimand, interval="t"),
        )

    def schema(self) -> dict[str, Any]:
        """Return the JSON schema of an answer, derived from the columns.

        Examples
        --------
        >>> from unskew.report.columns import METRIC, VALUE, Method, Question
        >>> mean = Question(name="mean", columns=(METRIC, VALUE), method=Method(estimand="mean"))
        >>> mean.schema()["properties"]["rows"]["items"]["properties"]["value"]
        {'type': ['number', 'null']}
        """
        names = [column.name for column in self.columns]
        row = {column.name: column.schema for column in self.columns}
        items = {"type": "object", "required": names, "properties": row}
        texts = {"type": "array", "items": {"type": "string"}}
        properties = {
            "question": {"type": "object", "required": ["name", "columns", "figure"]},
            "method": {"type": "object", "required": list(asdict(self.method))},
            "rows": {"type": "array", "items": items},
            "parts": {"type": "object"},
            "explanation": texts,
            "notes": texts,
            "card": {"type": "object"},
        }
        return {"type": "object", "required": list(properties), "properties": properties}

    def to_dict(self) -> dict[str, Any]:
        """Return the declaration as plain values; the method is part of the answer."""
        columns = [asdict(column) for column in self.columns]
        return {"name": self.name, "columns": columns, "figure": self.figure}
