"""`Column`, `Method`, `Question`: what is asked, declared once; `Row`: what is answered."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

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
    "names": ("List", "array"),
}
"""The type of each kind of column: that of polars, that of JSON."""


FORMS = ("", "+", "%", "+%", "×", "log")
"""How numbers are written: plain, with their sign, in per cent, both, as ratios; `log`: an axis."""


@dataclass(frozen=True)
class Column:
    """A column of `Estimates`.

    Parameters
    ----------
    name
        The name that programs use. `low` and `high` are the interval of `value`.
    kind
        What it holds. Keys: `key` (a name), `axis` (a number), `switch` (yes or no). Numbers:
        `value`, `interval` (an end of it, or the standard error), `p`, `share`, `fact`, `count`.
        Besides: `flag` (yes or no), `note` (words, such as why there is no value), `names`.
    label
        The name that people read; `name` unless given.
    form
        How its numbers are written: `+` with their sign, `%` in per cent, `+%` both; `×` are
        ratios, drawn on a logarithmic scale and inverted where a pair is turned round. Of an axis:
        `log`.
    hidden
        Whether it is for programs alone.

    Examples
    --------
    >>> from unskew.report.columns import Column
    >>> Column("n", "count", "users").label
    'users'
    """

    name: str
    kind: str
    label: str = ""
    form: str = ""
    hidden: bool = False

    def __post_init__(self) -> None:
        choose("kind", self.kind, _TYPES)
        choose("form", self.form, FORMS)
        if not self.label:
            object.__setattr__(self, "label", self.name)

    @property
    def type(self) -> pl.DataType:
        """The polars type of its values."""
        import polars as pl

        kind: Any = getattr(pl, _TYPES[self.kind][0])
        return kind(pl.String()) if self.kind == "names" else kind()  # type: ignore[no-any-return]

    @property
    def schema(self) -> dict[str, Any]:
        """What JSON holds of a value; what there is not is null."""
        return {"type": [_TYPES[self.kind][1], "null"]}


class Drawing(NamedTuple):
    """A figure of an answer: its name, how it is drawn, and of which part (of its rows: "").

    Of the quantities it shows some: the one of its own name, if there is one, else all unless said.
    """

    name: str = "values"
    kind: str = "forest"
    part: str = ""
    quantities: tuple[str, ...] = ()


SYSTEM = Column("system", "key")
METRIC = Column("metric", "key")
GROUP = Column("group", "key")
DESIGN = Column("design", "key")
QUANTITY = Column("quantity", "key")
"""Where a row per quantity stands below each other; people read them side by side."""
VALUE, SE = Column("value", "value"), Column("se", "interval", hidden=True)
LOW, HIGH = Column("low", "interval"), Column("high", "interval")
P, P_CORRECTED = Column("p", "p"), Column("p_corrected", "p", "p")
SIGNIFICANT = Column("significant", "flag", hidden=True)
USERS = Column("n", "count", "users")
NOTE = Column("note", "note", "reason")
ESTIMATE = (USERS, VALUE, SE, LOW, HIGH, NOTE)
"""A value over users, its standard error, its interval, and why there is none."""
PAIR = (Column("system", "key", "a"), Column("against", "key", "b"))
"""The two systems of a difference: that of the first less that of the second."""
DIFFERENCE = (
    Column("value", "value", "a − b", form="+"),
    *(Column(end, "interval", form="+") for end in ("low", "high")),
)
"""A difference and its interval."""
TEST = (P, P_CORRECTED, SIGNIFICANT)


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
        Its kind: `t`, `Wilson`, `percentile bootstrap`; empty where there is none.
    level
        Of the intervals.
    together
        How intervals hold for all rows at once, such as `Bonferroni over 3 differences`; empty:
        each of them alone.
    test
        What the p-values are of; empty where there are none.
    correction
        Of the p-values, and over how many: `Holm over 3 pairs`.
    draws, seed
        Of the bootstrap or the permutations.

    Examples
    --------
    >>> from unskew.report.columns import Method
    >>> method = Method(estimand="the mean", interval="t", level=0.95, test="t test")
    >>> method.lines()
    ['95% CI: t, by user', 'p: t test, not corrected']
    """

    estimand: str
    unit: str = "users"
    interval: str = ""
    level: float | None = None
    together: str = ""
    test: str = ""
    correction: str | None = None
    draws: int = 0
    seed: int | None = None

    @property
    def ci(self) -> str:
        """How the interval is called."""
        return "interval" if self.level is None else f"{100 * self.level:g}% CI"

    @property
    def single_unit(self) -> str:
        """How one unit is called: `user`, `list`, `group of users`."""
        noun, of, whole = self.unit.partition(" of ")
        return noun.removesuffix("s") + of + whole

    def lines(self) -> list[str]:
        """Return what people should know of intervals and p-values."""
        lines = []
        if self.interval:
            together = f"; all together ({self.together})" if self.together else ""
            lines.append(f"{self.ci}: {self.interval}, by {self.single_unit}{together}")
        if self.test:
            corrected = f"corrected by {self.correction}" if self.correction else "not corrected"
            lines.append(f"p: {self.test}, {corrected}")
        return lines


@dataclass(frozen=True, kw_only=True)
class Question:
    """What is asked of data, declared once: every answer to it is an `Estimates`.

    Parameters
    ----------
    name
        In a few words, as titles of tables and figures show it.
    columns
        The columns of the answer, keys first.
    method
        How it is answered; an answer replaces what the caller chose.
    quantities
        Where `quantity` is a key: its values, with what people read and how it is written; what is
        hidden is not printed, a `fact` has no interval, one of the kind `interval` is another
        interval of the same value, which is written once. Turned round, a pair's quantities change
        as their forms say; a share of the first system (`better`) has a twin (`better_against`).
    display
        The tables that people read: names of parts, and "" for the rows of the answer itself.
    figures
        How the answer can be drawn; the first is drawn unless another is named.
    across
        A key whose values are columns for people; metrics of systems with the best in bold and
        `mark` as superscript.
    digits
        The decimals of numbers that people read.
    """

    name: str
    columns: tuple[Column, ...]
    method: Method
    quantities: tuple[Column, ...] = ()
    display: tuple[str, ...] = ("",)
    figures: tuple[Drawing, ...] = (Drawing(),)
    across: str = ""
    digits: int = 4

    @property
    def joins_metrics(self) -> bool:
        """Whether metrics share a table and a figure: no other name tells rows apart."""
        names = {column.name for column in self.columns if column.kind in ("key", "switch")}
        return names <= {"metric", "quantity"}

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
        ['a', 'b', 'rated_a', 'rated_b', 'a − b']
        """
        keys, counts, numbers = list(PAIR), list[Column](), list[Column]()
        signed = {column.name: column for column in DIFFERENCE}
        for column in self.columns:
            if column.kind == "count" and column.name != "n":
                counts.append(replace(column, label=f"{column.name}_a"))
                counts.append(
                    replace(column, name=f"{column.name}_against", label=f"{column.name}_b")
                )
            elif column.name != "system":
                column = signed.get(column.name, column)
                (keys if column.kind in KEYS else numbers).append(column)
        estimand = f"{self.method.estimand}: of a less that of b"
        return replace(
            self,
            name=f"differences: {self.name}",
            columns=(*keys, *counts, *extra, *numbers),
            method=replace(self.method, estimand=estimand, interval="t"),
            display=("",),
            figures=(Drawing(),),
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
            "question": {"type": "object", "required": list(self.to_dict())},
            "method": {"type": "object", "required": list(asdict(self.method))},
            "rows": {"type": "array", "items": items},
            "parts": {"type": "object"},
            **dict.fromkeys(("explanation", "notes", "conclusion"), texts),
            "card": {"type": "object"},
        }
        return {"type": "object", "required": list(properties), "properties": properties}

    def to_dict(self) -> dict[str, Any]:
        """Return the declaration as plain values; the method is part of the answer."""
        return {
            "name": self.name,
            "columns": [asdict(column) for column in self.columns],
            "quantities": [asdict(column) for column in self.quantities],
            "display": list(self.display),
            "figures": [list(drawing) for drawing in self.figures],
            "across": self.across,
            "digits": self.digits,
        }

    @classmethod
    def from_dict(cls, content: Mapping[str, Any], method: Method) -> Question:
        """Return the question that `to_dict` wrote."""
        columns, quantities = (
            tuple(Column(**column) for column in content[name])
            for name in ("columns", "quantities")
        )
        return cls(
            name=content["name"],
            columns=columns,
            method=method,
            quantities=quantities,
            display=tuple(content["display"]),
            figures=tuple(
                Drawing(name, kind, part, tuple(quantities))
                for name, kind, part, quantities in content["figures"]
            ),
            across=content["across"],
            digits=content["digits"],
        )


NUMBERS = ("value", "se", "low", "high", "p", "p_corrected")
AGAINST = "_against"
"""How the name of a fact of the second system of a pair ends."""
ENDS = {"low": "high", "high": "low"}
"""How the names of both ends of a range begin, each with the other."""
TURNING = ("+", "+%", "×")
"""The forms of numbers that change where a pair is turned round."""
SIGNED = {"value": "+"}


@dataclass(frozen=True, kw_only=True)
class Row:
    """A row of `Estimates`: a value, its interval, and what it rests on.

    What there is not is None; `note` says why.
    """

    keys: Mapping[str, Any]
    facts: Mapping[str, Any]
    value: float | None = None
    se: float | None = None
    low: float | None = None
    high: float | None = None
    p: float | None = None
    p_corrected: float | None = None
    n: int | None = None
    note: str = ""

    @property
    def estimate(self) -> tuple[float, float, float]:
        """The value and both ends of its interval; NaN for what there is not."""
        value, low, high = (math.nan if x is None else x for x in (self.value, self.low, self.high))
        return value, low, high

    @property
    def z(self) -> float | None:
        """The value in standard errors."""
        return None if self.value is None or not self.se else self.value / self.se

    def swapped(self, forms: Mapping[str, str] = SIGNED) -> Row:
        """Return the pair the other way round: the second system and the first.

        The facts of the two systems (`judged`, `judged_against`) change places, and so do both ends
        of a range (`low_single`, `high_single`).

        Parameters
        ----------
        forms
            How `value` and the facts are written (see `Column`): those with a sign change it,
            ratios are inverted, others stay.
        """
        keys = {**self.keys, "system": self.keys["against"], "against": self.keys["system"]}
        facts = {name: self.facts[partner] for name, partner in partners(self.facts).items()}
        facts = {name: _turned(value, forms.get(name, "")) for name, value in facts.items()}
        form = forms.get("value", "")
        value, low, high = (_turned(x, form) for x in (self.value, self.low, self.high))
        if form in TURNING:
            low, high = high, low
        return replace(self, keys=keys, facts=facts, value=value, low=low, high=high)


def _turned(value: Any, form: str) -> Any:
    """Return a number of a pair that is turned round."""
    if value is None or form not in TURNING:
        return value
    if form == "×":
        return 1 / value if value else None
    return -value + 0.0  # without a sign where it is 0


def partners(names: Iterable[str]) -> dict[str, str]:
    """Return by name that of the other system of a pair, or of the other end of a range."""
    there = list(names)
    result = {name: name.removesuffix(AGAINST) for name in there}
    result |= {name: f"{name}{AGAINST}" for name in there if f"{name}{AGAINST}" in there}
    ends = {
        name: f"{ENDS[end]}{name.removeprefix(end)}"
        for name in there
        if (end := name.partition("_")[0]) in ENDS
    }
    return result | {name: end for name, end in ends.items() if end in there}


class Answer(Protocol):
    """What tables and figures are made from: `Estimates`, which imports their modules."""

    @property
    def question(self) -> Question:
        """What was asked."""

    @property
    def rows(self) -> pl.DataFrame:
        """The numbers."""

    @property
    def method(self) -> Method:
        """How they were worked out."""

    @property
    def parts(self) -> Mapping[str, Answer]:
        """Answers with other keys."""

    @property
    def card(self) -> Mapping[str, Any]:
        """The settings."""

    @property
    def keys(self) -> list[str]:
        """The columns that say what a row is of."""

    @property
    def form(self) -> str:
        """How the values are written."""

    def values_of(self, key: str) -> list[Any]:
        """Return the different values of a key."""

    def where(self, **keys: Any) -> Answer:
        """Return the rows with these keys."""
