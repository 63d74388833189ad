"""`Estimates`: the one result. Rows of keys, a value, its interval, and what explains them.

Nearly every question of this package has the same answer: *a value with an interval, for some
system or pair, by some metric, in some group, under some design*. `Estimates` is that answer. A
`Question` declares its columns once; a function fills the rows and writes the sentences; selecting,
sorting, combining, printing, drawing and saving are the same for all.

| to get | write |
|---|---|
| every number, for programs | `es.table()`, `es.to_pandas()`, `es.table(wide="metric")` |
| some of the rows | `es["nDCG@10"]`, `es.where(system="mine")` |
| one row, typed | `es.row(system="mine")`, `es.pair("mine", "theirs")` |
| an order | `es.sort()`, `es.best` |
| what people read | `print(es)`, `es.to_latex()`, `es.to_markdown()`, `es.figure()` |
| a file, and back | `es.to_dict()`, `Estimates.from_dict(…)` |
| more than one answer | `Estimates.stack({"monday": first, "tuesday": second}, "day")` |
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

from unskew.checks import choose
from unskew.errors import DataError, SettingError, unknown_name
from unskew.report.charts import Figure, as_figure, system_colours
from unskew.report.columns import KEYS, Column, Method, Question
from unskew.report.notebook_view import MOST_ROWS
from unskew.report.result import Result
from unskew.report.text import counted

if TYPE_CHECKING:
    import altair as alt
    import polars as pl

    from unskew.report.charts import Figure

NUMBERS = ("value", "se", "low", "high", "p", "p_corrected")
AGAINST = "_against"
"""How the name of a fact of the second system of a pair ends."""


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
    def z(self) -> float | None:
        """The value in standard errors."""
        return None if self.value is None or not self.se else self.value / self.se

    def swapped(self) -> Row:
        """Return the difference the other way round: the second system less the first.

        The facts of the two systems (`judged`, `judged_against`) change places.
        """
        first, second = self.keys["system"], self.keys["against"]
        partners = {name: name.removesuffix(AGAINST) for name in self.facts}
        partners |= {
            name: f"{name}{AGAINST}" for name in self.facts if f"{name}{AGAINST}" in self.facts
        }
        low, high = self.low, self.high
        return replace(
            self,
            keys={**self.keys, "system": second, "against": first},
            facts={name: self.facts[partner] for name, partner in partners.items()},
            value=None if self.value is None else -self.value,
            low=None if high is None else -high,
            high=None if low is None else -low,
        )


@dataclass(frozen=True, eq=False, kw_only=True)
class Estimates(Result):
    """Values with intervals: a row per system, pair, metric, group or whatever the question asks.

    Parameters
    ----------
    question
        The columns, and how the answer is drawn.
    rows
        The keys, then the numbers of each row; see `question.columns`.
    method
        What is estimated, over which units, with which intervals.
    explanation
        The lines that say how the numbers came about.
    notes
        What was counted, assumed or left out.
    parts
        Answers with other keys that belong to this one, such as the `pairs` of its systems.
    card
        The settings of this answer, and under `better` which values of a metric are better.

    Examples
    --------
    >>> from unskew.report.columns import HIGH, LOW, METRIC, SYSTEM, VALUE, Method, Question
    >>> from unskew.report.estimates import Estimates
    >>> question = Question(
    ...     name="means",
    ...     columns=(SYSTEM, METRIC, VALUE, LOW, HIGH),
    ...     method=Method(estimand="the mean over users", interval="t", level=0.95),
    ... )
    >>> rows = [("mine", "P@5", 0.3, 0.2, 0.4), ("theirs", "P@5", 0.25, 0.15, 0.35)]
    >>> es = Estimates.of_rows(question, rows, explanation=("means over users",))
    >>> es
    system  metric   value     low    high
    mine    P@5     0.3000  0.2000  0.4000
    theirs  P@5     0.2500  0.1500  0.3500
    means over users
    >>> es.row(system="theirs").value, es.best.keys["system"]
    (0.25, 'mine')
    """

    question: Question
    rows: pl.DataFrame = field(repr=False)
    method: Method
    explanation: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    parts: Mapping[str, Estimates] = field(default_factory=dict)
    card: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        names = [column.name for column in self.question.columns]
        if self.rows.columns != names:
            raise DataError(f"rows have the columns {self.rows.columns}, the question {names}")
        if any(part.parts for part in self.parts.values()):
            raise SettingError("parts of an answer have no parts of their own")

    @classmethod
    def of_rows(
        cls,
        question: Question,
        rows: Iterable[Mapping[str, Any] | Sequence[Any]],
        *,
        level: float | None = None,
        **settings: Any,
    ) -> Estimates:
        """Return the answer that holds some rows; what a row does not name is null.

        Parameters
        ----------
        question
            What was asked.
        rows
            By name of the column, or in the order of the columns.
        level
            Of the intervals; that of the question unless given.
        settings
            The other fields: `method`, `explanation`, `notes`, `parts`, `card`.
        """
        import polars as pl

        names = [column.name for column in question.columns]
        given = [
            [row.get(name) for name in names] if isinstance(row, Mapping) else row for row in rows
        ]
        frame = pl.DataFrame(given, {c.name: c.type for c in question.columns}, orient="row")
        frame = frame.with_columns(
            pl.selectors.float().fill_nan(None),
            *(pl.col(c.name).fill_null("") for c in question.columns if c.kind == "note"),
        )
        method = question.method if level is None else replace(question.method, level=level)
        return cls(question=question, rows=frame, **{"method": method} | settings)

    # Selecting

    @property
    def keys(self) -> list[str]:
        """The names of the columns that say what a row is of."""
        return [column.name for column in self.question.columns if column.kind in KEYS]

    def values_of(self, key: str) -> list[Any]:
        """Return the different values of a key, in the order of the rows."""
        choose("key", key, self.keys)
        return self.rows[key].unique(maintain_order=True).to_list()

    def _check(self, keys: Mapping[str, Any]) -> None:
        for key, value in keys.items():
            values = self.values_of(key)
            if value not in values:
                raise unknown_name(key, value, values)

    def where(self, **keys: Any) -> Estimates:
        """Return the rows with these keys: a value, or several in a list.

        Examples
        --------
        >>> import unskew as us
        >>> test = {"user": [1, 1], "item": ["a", "b"], "rating": [5, 1]}
        >>> lists = {"x": {1: ["a", "c"]}, "y": {1: ["b", "c"]}}
        >>> bounds = us.unbiased.bounds(test, lists, ["P@1", "P@2"], liked=4)
        >>> bounds.where(system="y", metric=["P@2"]).table().rows()
        [('y', 'P@2', 0.0, 0.0, 0.5)]
        """
        import polars as pl

        several = {
            key: list(value) if isinstance(value, list | tuple) else [value]
            for key, value in keys.items()
        }
        for key, values in several.items():
            for value in values:
                self._check({key: value})
        masks = [pl.col(key).is_in(values) for key, values in several.items()]
        return replace(self, rows=self.rows.filter(masks) if masks else self.rows)

    def __getitem__(self, metric: str) -> Estimates:
        return self.where(metric=metric)

    @cached_property
    def _rows(self) -> dict[tuple[Any, ...], Row]:
        """By the values of all keys: the row."""
        keys = self.keys
        return {
            tuple(row[key] for key in keys): Row(
                keys={key: row.pop(key) for key in keys},
                **{name: row.pop(name) for name in (*NUMBERS, "n", "note") if name in row},
                facts=row,
            )
            for row in self.rows.to_dicts()
        }

    @cached_property
    def _first(self) -> dict[str, Any]:
        """The first value of each key."""
        return {key: next(iter(self.rows[key]), None) for key in self.keys}

    def _row(self, keys: Mapping[str, Any]) -> Row | None:
        return self._rows.get(tuple({**self._first, **keys}.values()))

    def row(self, **keys: Any) -> Row:
        """Return one row; of a key that is left out its first value is taken."""
        row = self._row(keys)
        if row is None:
            self._check(keys)
            raise DataError(f"there is no row with {keys}")
        return row

    def pair(self, a: str, b: str, **keys: Any) -> Row:
        """Return the difference a less b; of the part `pairs` where the rows are of systems.

        Parameters
        ----------
        a, b
            Names of systems.
        keys
            The other keys; of one that is left out its first value is taken.

        Examples
        --------
        >>> import unskew as us
        >>> test = {"user": range(40), "item": ["a"] * 20 + ["b"] * 20, "rating": [5, 4, 4, 1] * 10}
        >>> lists = {"x": {u: ["a"] for u in range(40)}, "y": {u: ["b"] for u in range(40)}}
        >>> shares = us.unbiased.liked_shares(test, lists, 1, liked=5)
        >>> shares.pair("x", "y").value, shares.pair("y", "x", levelled=True).n
        (0.0, 40)
        """
        if "pairs" in self.parts:
            return self.parts["pairs"].pair(a, b, **keys)
        row = self._row({**keys, "system": a, "against": b})
        reverse = self._row({**keys, "system": b, "against": a})
        if row is not None:
            return row
        if reverse is not None:
            return reverse.swapped()
        systems = dict.fromkeys(self.values_of("system") + self.values_of("against"))
        for system in (a, b):
            choose("system", system, systems)
        self._check(keys)
        raise DataError(f"there is no pair of {a} and {b}")

    # Order

    def sort(self, by: str = "value", *, descending: bool | None = None) -> Estimates:
        """Return the rows in the order of a column; of values the best first unless said otherwise.

        Values are better when higher, but for metrics that `card["better"]` calls `lower`.
        """
        import polars as pl

        order = self.rows[choose("column", by, self.rows.columns)]
        if by == "value" and descending is None:
            better = self.card.get("better", {})
            metrics = self.rows["metric"] if "metric" in self.keys else [""] * order.len()
            signs = [-1 if better.get(metric) == "lower" else 1 for metric in metrics]
            order, descending = order * pl.Series(signs), True
        rows = self.rows.with_columns(order.alias("(order)")).sort(
            "(order)", descending=bool(descending), nulls_last=True, maintain_order=True
        )
        return replace(self, rows=rows.drop("(order)"))

    @property
    def best(self) -> Row:
        """The row with the best value."""
        return next(iter(self.sort()._rows.values()))

    @classmethod
    def stack(cls, answers: Mapping[str, Estimates], key: str) -> Estimates:
        """Return answers to one question below each other, with a key that says which is which.

        Parameters
        ----------
        answers
            By the value of the new key.
        key
            The name of the new key: `split`, `design`, `window`.
        """
        import polars as pl

        if not answers:
            raise SettingError("answers: at least one is needed")
        first, *others = answers.values()
        for other in others:
            if (other.question, other.method) != (first.question, first.method):
                raise DataError("answers to be stacked must be to one question, by one method")
        if key in first.rows.columns:
            raise SettingError(f"key={key!r}: the answers have a column of this name")
        question = replace(first.question, columns=(Column(key, "key"), *first.question.columns))
        frames = [
            answer.rows.select(pl.lit(name).alias(key), pl.all())
            for name, answer in answers.items()
        ]
        notes = dict.fromkeys(note for answer in answers.values() for note in answer.notes)
        return cls(
            question=question,
            rows=pl.concat(frames),
            method=first.method,
            explanation=first.explanation,
            notes=tuple(notes),
            card=first.card,
        )

    # What people and programs read

    def table(self, wide: str | None = None) -> pl.DataFrame:
        """Return every number.

        Parameters
        ----------
        wide
            A key whose values become columns, such as `metric`: `value_P@10`, `low_P@10` …
        """
        if wide is None:
            return self.rows
        index = [key for key in self.keys if key != choose("key", wide, self.keys)]
        values = [name for name in self.rows.columns if name not in self.keys]
        frame = self.rows.pivot(wide, index=index, values=values, maintain_order=True)
        return (
            frame
            if len(values) > 1
            else frame.rename(
                {name: f"{values[0]}_{name}" for name in frame.columns if name not in index}
            )
        )

    def display_table(self) -> pl.DataFrame:
        """Return the rows under the names that people read."""
        return self.rows.rename({c.name: c.label for c in self.question.columns})

    def figure(self, **keys: Any) -> Figure:
        """Draw the answer, as its question declares; of several metrics the first unless named."""
        if "metric" in self.keys:
            keys = {"metric": self.rows["metric"][0]} | keys
        draw = KINDS[self.question.figure]
        return draw(self.question, self.where(**keys).rows, self.footer()[:1])

    def _explanation(self) -> Sequence[str]:
        return self.explanation

    def _summary(self) -> str:
        keys = [c for c in self.question.columns if c.kind in KEYS and c.kind != "switch"]
        numbers = (counted(len(self.values_of(key.name)), key.name) for key in keys)
        return f"{self.question.name}: {', '.join(numbers)}"

    def __repr__(self) -> str:
        more = self.rows.height - MOST_ROWS
        if more <= 0:
            return str(self)
        first = replace(self, rows=self.rows.head(MOST_ROWS))
        return f"{first}\n… {counted(more, 'more row')}: print it"

    # Files

    def _content(self) -> Mapping[str, object]:
        return {
            "question": self.question.to_dict(),
            "method": asdict(self.method),
            "rows": self.rows,
            "parts": self.parts,
            "explanation": self.explanation,
            "notes": self.notes,
            "card": self.card,
        }

    @classmethod
    def from_dict(cls, content: Mapping[str, Any]) -> Estimates:
        """Return the answer that `to_dict` wrote.

        Examples
        --------
        >>> import unskew as us
        >>> test = {"user": [1, 1], "item": ["a", "b"], "rating": [5, 1]}
        >>> bounds = us.unbiased.bounds(test, {"x": {1: ["a", "c"]}}, "P@2", liked=4)
        >>> again = us.report.Estimates.from_dict(bounds.to_dict())
        >>> str(again) == str(bounds), again.table().equals(bounds.table())
        (True, True)
        """
        declared, method = content["question"], Method(**content["method"])
        columns = tuple(Column(**column) for column in declared["columns"])
        question = Question(
            name=declared["name"], columns=columns, method=method, figure=declared["figure"]
        )
        return cls.of_rows(
            question,
            content["rows"],
            explanation=tuple(content["explanation"]),
            notes=tuple(content["notes"]),
            parts={name: cls.from_dict(part) for name, part in content["parts"].items()},
            card=content["card"],
        )


def forest(question: Question, table: pl.DataFrame, notes: Sequence[str]) -> Figure:
    """Draw a row of the figure per row of the answer: its value and its interval."""
    import altair as alt

    canvas, rows, label, names = _canvas(question, table)
    y = alt.Y(f"{names[0]}:N", title=None).scale(domain=_domain(rows, names[0]))
    encodings = {"y": y, **_colours(rows, names)}
    if len(names) > 1:
        encodings["yOffset"] = alt.YOffset(f"{names[1]}:N").scale(domain=_domain(rows, names[1]))
    canvas = canvas.properties(width=420, height=alt.Step(24))
    lines = canvas.mark_rule(strokeWidth=4, opacity=0.5).encode(
        x=alt.X("low:Q", title=label), x2="high:Q", **encodings
    )
    points = canvas.mark_point(filled=True, size=70, opacity=1).encode(
        x=alt.X("value:Q", title=label), **encodings
    )
    return _figure(question, notes, alt.layer(lines, points), label, rows)


def bars(question: Question, table: pl.DataFrame, notes: Sequence[str]) -> Figure:
    """Draw a bar per row, with its interval: for counts and shares, which begin at 0."""
    import altair as alt

    canvas, rows, label, names = _canvas(question, table)
    y = alt.Y(f"{names[0]}:N", title=None).scale(domain=_domain(rows, names[0]))
    canvas = canvas.properties(width=420, height=alt.Step(24))
    filled = canvas.mark_bar().encode(x=alt.X("value:Q", title=label), y=y, **_colours(rows, names))
    lines = canvas.mark_rule().encode(x=alt.X("low:Q", title=label), x2="high:Q", y=y)
    return _figure(question, notes, alt.layer(filled, lines), label, rows)


def lines(question: Question, table: pl.DataFrame, notes: Sequence[str]) -> Figure:
    """Draw values, with intervals, over the key that is an axis; a line per value of the first."""
    import altair as alt

    canvas, rows, label, names = _canvas(question, table)
    axes = [column.name for column in question.columns if column.kind == "axis"]
    x = alt.X(f"{axes[0]}:Q")
    colours = _colours(rows, [name for name in names if name not in axes], first=True)
    y = alt.Y("value:Q", title=label).scale(zero=False)
    canvas = canvas.properties(width=520, height=260)
    bands = canvas.mark_area(opacity=0.2).encode(
        x=x, y=alt.Y("low:Q", title=label), y2="high:Q", **colours
    )
    curves = canvas.mark_line(point=True).encode(x=x, y=y, **colours)
    return _figure(question, notes, alt.layer(bands, curves), label, rows)


KINDS: Mapping[str, Callable[[Question, pl.DataFrame, Sequence[str]], Figure]] = {
    "forest": forest,
    "bars": bars,
    "lines": lines,
}


def _canvas(
    question: Question, table: pl.DataFrame
) -> tuple[alt.Chart, list[dict[str, Any]], str, list[str]]:
    """Return an empty chart, its rows, the title of their values, and the keys that differ."""
    import altair as alt

    keys = [column.name for column in question.columns if column.kind in KEYS]
    rows = []
    for row in table.iter_rows(named=True):
        drawn = {name: row.get(name) for name in (*keys, "value", "low", "high")}
        if row.get("against") is not None:
            drawn["system"] = f"{row['system']} − {drawn.pop('against')}"
        rows.append(drawn)
    names = [name for name in keys if name not in ("metric", "against")]
    differing = [name for name in names if len(_domain(rows, name)) > 1] or names[:1]
    metrics = _domain(rows, "metric") if "metric" in keys else []
    label = metrics[0] if len(metrics) == 1 else question.name
    for row in rows:
        row.pop("metric", None)
    return alt.Chart(alt.NamedData(name="rows")), rows, label, differing


def _domain(rows: list[dict[str, Any]], name: str) -> list[Any]:
    return list(dict.fromkeys(row[name] for row in rows))


def _colours(
    rows: list[dict[str, Any]], names: list[str], *, first: bool = False
) -> dict[str, Any]:
    """Return the colours of a key: of the second one, as the first has a place of its own."""
    import altair as alt

    chosen = names[:1] if first else names[1:2]
    if not chosen:
        return {}
    domain = _domain(rows, chosen[0])
    colours = list(system_colours([str(value) for value in domain]).values())
    return {"color": alt.Color(f"{chosen[0]}:N").scale(domain=domain, range=colours)}


def _figure(
    question: Question,
    notes: Sequence[str],
    chart: alt.TopLevelMixin,
    label: str,
    rows: list[dict[str, Any]],
) -> Figure:
    title = question.name if label == question.name else f"{label}: {question.name}"
    return as_figure(chart, title, notes, rows)
