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
| a page | `us.report.save_report(es, "page.html")` |
| more than one answer | `Estimates.stack({"monday": first, "tuesday": second}, "day")` |
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

from unskew.checks import choose
from unskew.errors import DataError, SettingError, unknown_name
from unskew.report.columns import KEYS, NUMBERS, Column, Method, Question, Row, partners
from unskew.report.estimate_tables import display_tables
from unskew.report.notebook_view import MOST_ROWS
from unskew.report.result import Result
from unskew.report.tables import latex_environment, latex_text
from unskew.report.text import counted

if TYPE_CHECKING:
    import polars as pl

    from unskew.report.charts import Figure
    from unskew.report.document import Document
    from unskew.report.tables import Table


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
        What else people should know of how the numbers came about.
    notes
        What was counted, assumed or left out.
    conclusion
        What follows from the numbers, in sentences.
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
    P@5
    system   value            95% CI
    mine    0.3000  [0.2000, 0.4000]
    theirs  0.2500  [0.1500, 0.3500]
    <BLANKLINE>
    95% CI: t, by user
    means over users
    >>> es.row(system="theirs").value, es.best.keys["system"]
    (0.25, 'mine')
    """

    question: Question
    rows: pl.DataFrame = field(repr=False)
    method: Method
    explanation: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    conclusion: tuple[str, ...] = ()
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
        rows: pl.DataFrame | Iterable[Mapping[str, Any] | Sequence[Any]],
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
            By name of the column, or in the order of the columns; or a polars frame.
        level
            Of the intervals; that of the question unless given.
        settings
            The other fields: `method`, `explanation`, `notes`, `parts`, `card`.
        """
        import polars as pl

        types = {column.name: column.type for column in question.columns}
        if isinstance(rows, pl.DataFrame):
            missing = [pl.lit(None, kind).alias(name) for name, kind in types.items()
                       if name not in rows.columns]  # fmt: skip
            frame = rows.with_columns(missing).select(pl.col(n).cast(k) for n, k in types.items())
        else:
            listed = [
                [row.get(n) for n in types] if isinstance(row, Mapping) else row for row in rows
            ]
            frame = pl.DataFrame(listed, types, orient="row")
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

    @property
    def form(self) -> str:
        """How values are written: as the column of values says, or the quantity, if it is one."""
        names = self.values_of("quantity") if "quantity" in self.keys else ["value"]
        columns = (*self.question.quantities, *self.question.columns)
        forms = {column.form for column in columns if column.name in names}
        return forms.pop() if len(forms) == 1 else ""

    @property
    def systems(self) -> list[str]:
        """The systems, also the second ones of pairs, in the order of the rows."""
        names = [name for name in ("system", "against") if name in self.keys]
        return list(dict.fromkeys(value for name in names for value in self.values_of(name)))

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

        values_of_key = {
            key: list(value) if isinstance(value, list | tuple) else [value]
            for key, value in keys.items()
        }
        for key, values in values_of_key.items():
            for value in values:
                self._check({key: value})
        types = self.rows.schema
        masks = [
            pl.col(key).is_in(pl.Series(values, dtype=types[key], strict=False).to_list())
            for key, values in values_of_key.items()
        ]
        parts = {
            name: part.where(**{k: [v for v in vs if v in part.values_of(k)]
                                for k, vs in values_of_key.items() if k in part.keys})
            for name, part in self.parts.items()
        }  # fmt: skip
        return replace(self, rows=self.rows.filter(masks) if masks else self.rows, parts=parts)

    def __getitem__(self, metric: str) -> Estimates:
        return self.where(metric=self.label(metric))

    def label(self, metric: str | None = None) -> str:
        """Return a metric as the rows name it, in capitals or not; the first unless given."""
        names = self.values_of("metric")
        if metric is None:
            return str(names[0])
        return next((name for name in names if name.casefold() == metric.casefold()), metric)

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
        row = self._row({**keys, "system": a, "against": b}) or self._reverse(a, b, keys)
        if row is not None:
            return row
        for system in (a, b):
            choose("system", system, self.systems)
        self._check(keys)
        raise DataError(f"there is no pair of {a} and {b}")

    def _reverse(self, a: str, b: str, keys: Mapping[str, Any]) -> Row | None:
        """Return the row of b and a, turned round; of quantities that of the twin."""
        keys = {**keys, "system": b, "against": a}
        forms = {column.name: column.form for column in self.question.columns}
        if "quantity" not in self.keys:
            row = self._row(keys)
            return row and row.swapped(forms)
        quantities = {quantity.name: quantity.form for quantity in self.question.quantities}
        name = keys.get("quantity", self._first["quantity"])
        row = self._row({**keys, "quantity": partners(quantities).get(name, name)})
        if row is None:
            return None
        row = row.swapped({**forms, "value": quantities.get(name, "")})
        return replace(row, keys={**row.keys, "quantity": name})

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
        for answer in others:
            if (answer.question, answer.method) != (first.question, first.method):
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
        """Return the numbers that are not hidden, under the names that people read."""
        import polars as pl

        columns = [column for column in self.question.columns if not column.hidden]
        if "p_corrected" in self.rows.columns:
            columns = [column for column in columns if column.name != "p"]
        return self.rows.select(pl.col(column.name).alias(column.label) for column in columns)

    def display_tables(self, digits: int | None = None) -> list[Table]:
        """Return the tables that people read: intervals in brackets, one table per metric."""
        return display_tables(self, digits)

    def to_latex(
        self, digits: int | None = None, *, label: str = "", caption: str | None = None
    ) -> str:
        """Return the tables that people read as LaTeX (booktabs).

        Parameters
        ----------
        digits
            Decimals.
        label
            Give a whole `table` environment, to which the text refers by this label.
        caption
            Of that environment, LaTeX as it is; the explanation of the answer unless given.
        """
        text = super().to_latex(digits)
        if not label and caption is None:
            return text
        words = latex_text(" ".join(self._explanation())) if caption is None else caption
        return latex_environment(text, label or "tab:results", words)

    def figure(self, kind: str | None = None, metric: str | None = None, **keys: Any) -> Figure:
        """Draw the answer, as its question declares.

        Parameters
        ----------
        kind
            One of the question's figures; the first unless given.
        metric
            Of several metrics the first unless given, or all where they share a figure.
        keys
            Draw only the rows with these keys.
        """
        from unskew.report.estimate_figures import KINDS, Canvas

        drawings = {drawing.name: drawing for drawing in self.question.figures}
        if not drawings:
            raise SettingError(f"{self.question.name}: there is no figure")
        drawing = drawings[choose("figure", kind or next(iter(drawings)), drawings)]
        part = self.parts[drawing.part] if drawing.part else self
        takes_one = metric is not None or not part.question.joins_metrics
        if "metric" in part.keys and part.rows.height and takes_one:
            keys["metric"] = part.label(metric)
        if "quantity" in part.keys:
            names = part.values_of("quantity")
            of_name = [drawing.name] if drawing.name in names else names
            keys = {"quantity": list(drawing.quantities) or of_name} | keys
        method = self.method if part.method.level is None else part.method
        return KINDS[drawing.kind](Canvas.of(part.where(**keys), method.lines()))

    def document(self, title: str = "") -> Document:
        """Return the page of the answer, which `us.report.save_report` writes to a file.

        Parameters
        ----------
        title
            Of the page; what was asked, unless given.

        Examples
        --------
        >>> import unskew as us
        >>> test = {"user": [1, 1], "item": ["a", "b"], "rating": [5, 1]}
        >>> bounds = us.unbiased.bounds(test, {"x": {1: ["a", "c"]}}, "P@2", liked=4)
        >>> [section.title for section in bounds.document().sections]
        ['bounds', 'method']
        """
        from unskew.report.document import Document, Picture, Section, Words

        question, sections = self.question, list[Section]()
        drawn_parts = [drawing.part for drawing in question.figures]
        for name in dict.fromkeys((*question.display, *drawn_parts)):
            part = self.parts[name] if name else self
            metrics = part.values_of("metric") if "metric" in part.keys else [None]
            pictures = [
                Picture(self.figure(drawing.name, metric))
                for drawing in question.figures
                if drawing.part == name
                for metric in metrics
                if _has_values(part, metric)
            ]
            of_part = replace(question, display=(name,) if name in question.display else ())
            tables = replace(self, question=of_part).display_tables()
            sections.append(
                Section(
                    name or "answer",
                    part.question.name,
                    part.method.estimand,
                    (*pictures, *tables),
                )
            )
        words = tuple(map(Words, (*self._explanation(), *self.notes)))
        about = "what the numbers mean, and what was counted, assumed or left out"
        sections.append(Section("method", "method", about, words))
        return Document(
            title or question.name,
            tuple(map(Words, self.conclusion)),
            tuple(sections),
            card=self.card,
            systems=tuple(self.systems),
            values=self.to_dict(),
        )

    def _explanation(self) -> Sequence[str]:
        return [*self.method.lines(), *self.explanation]

    def _conclusion(self) -> Sequence[str]:
        return self.conclusion

    def _summary(self) -> str:
        keys = [c for c in self.question.columns if c.kind in KEYS and c.kind != "switch"]
        numbers = (counted(len(self.values_of(key.name)), key.name) for key in keys)
        return f"{self.question.name}: {', '.join(numbers)}"

    def __repr__(self) -> str:
        more = sum(table.frame.height for table in self.display_tables()) - MOST_ROWS
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
            "conclusion": self.conclusion,
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
        return cls.of_rows(
            Question.from_dict(content["question"], Method(**content["method"])),
            content["rows"],
            explanation=tuple(content["explanation"]),
            notes=tuple(content["notes"]),
            conclusion=tuple(content["conclusion"]),
            parts={name: cls.from_dict(part) for name, part in content["parts"].items()},
            card=content["card"],
        )


def _has_values(es: Estimates, metric: str | None) -> bool:
    """Tell whether a figure of a metric has anything to draw."""
    rows = es.rows if metric is None else es.where(metric=metric).rows
    return rows["value"].null_count() < rows.height
