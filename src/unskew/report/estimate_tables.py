"""Tables of `Estimates` as people read them: by metric, intervals in brackets, numbers rounded."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from unskew.report.columns import KEYS, Answer, Column
from unskew.report.tables import Table
from unskew.report.text import cell, counted, interval, number, p_value

Row = Mapping[str, Any]
MOST_COLUMNS = 7
"""Of a key that is a number, where its values are columns."""
DIRECTIONS = {"higher": "higher is better", "lower": "lower is better"}


def display_tables(es: Answer, digits: int | None = None) -> list[Table]:
    """Return the tables that the question displays: for each metric those that tell it apart.

    Tables without metrics stand where the question has them, the others beside the first of them.
    """
    names = [name for name in es.question.display if not name or name in es.parts]
    parts = [es.parts[name] if name else es for name in names]
    metrics = es.values_of("metric") if "metric" in es.keys else []
    by_metric = [part for part in parts if metrics and _is_by_metric(part)]
    tables: list[Table] = []
    for part in parts:
        if part not in by_metric:
            tables.append(as_table(part, part.question.name * (len(parts) > 1), digits))
        elif part is by_metric[0]:
            for metric in metrics:
                tables += _of_metric(metric, by_metric, digits)
    return [table for table in tables if table.frame.height]


def _is_by_metric(part: Answer) -> bool:
    """Tell whether each metric has a table of its own."""
    question = part.question
    return "metric" in part.keys and question.across != "metric" and not question.joins_metrics


def _of_metric(metric: str, parts: Iterable[Answer], digits: int | None) -> Iterator[Table]:
    """Yield the tables of a metric; the number of users is named where it is another one."""
    users = None
    for part in parts:
        if metric not in part.values_of("metric"):
            continue
        rows = part.where(metric=metric)
        if users is None:
            direction = DIRECTIONS.get(part.card.get("better", {}).get(metric, ""), "")
            title = f"{metric} ({direction})" if direction else metric
        else:
            title = f"{metric}: {part.question.name}"
        number = _users(rows)
        if number not in (None, users):
            title += f", {counted(number, _noun(part))}"
        users = number or users or 0
        yield as_table(rows, title, digits, has_metric=False)


def _only(part: Answer, name: str) -> Any:
    """Return the one value of a column; None where there are several."""
    values = set(part.rows[name].to_list()) if name in part.rows.columns else set()
    return values.pop() if len(values) == 1 else None


def _users(part: Answer) -> int | None:
    """Return the number of users of all rows; groups have numbers of their own."""
    return None if "group" in part.keys else _only(part, "n")


def _noun(part: Answer) -> str:
    return next(c.label for c in part.question.columns if c.name == "n").removesuffix("s")


def as_table(
    es: Answer, title: str = "", digits: int | None = None, *, has_metric: bool = True
) -> Table:
    """Return rows as people read them, quantities side by side.

    Parameters
    ----------
    es
        The rows; those of one metric where its name is in the title.
    title
        Of the table.
    digits
        The decimals of numbers; those of the question unless given.
    has_metric
        Whether the metric is a column; else, and the number of users, it is in the title.
    """
    digits = es.question.digits if digits is None else digits
    columns = _columns(es, has_metric=has_metric)
    if es.question.across:
        return _across(es, columns, title, digits)
    rows = es.rows.to_dicts()
    keys = [column for column in columns if column.kind in KEYS]
    if "quantity" in es.keys:
        others = [column for column in columns if column.kind not in KEYS]
        header, cells = _side_by_side(es, keys, others, rows, digits)
    else:
        header, cells = _below(es, columns, rows, digits)
    left = [i for i, name in enumerate(header) if name in _left_labels(es)]
    is_key = [column.kind in KEYS for column in columns]
    leading = is_key.index(False) if False in is_key else len(keys)
    return Table.of_rows(header, cells, left=left, title=title, once=max(leading - 1, 0))


def _columns(es: Answer, *, has_metric: bool) -> list[Column]:
    """Return the columns that people read: not those without any value."""
    left_out = {"quantity"} if has_metric else {"quantity", "metric"}
    if not has_metric and _users(es) is not None:
        left_out.add("n")
    if "p_corrected" in es.rows.columns:
        left_out.add("p")
    return [
        column
        for column in es.question.columns
        if column.name not in left_out and not column.hidden
        if column.kind in (*KEYS, "value") or _is_filled(es, column)
    ]


def _is_filled(es: Answer, column: Column) -> bool:
    return any(value not in (None, "") for value in es.rows[column.name].to_list())


def _left_labels(es: Answer) -> set[str]:
    kinds = ("key", "switch", "note", "names", "flag")
    return {column.label for column in es.question.columns if column.kind in kinds}


def _below(
    es: Answer, columns: Sequence[Column], rows: Sequence[Row], digits: int
) -> tuple[list[str], list[list[str]]]:
    """Return header and cells of rows that stand below each other."""
    written = [_written(column, es.method.ci, digits) for column in columns if not _is_end(column)]
    return [name for name, _ in written], [[write(row) for _, write in written] for row in rows]


def _is_end(column: Column) -> bool:
    return column.name == "high"


def _written(column: Column, ci: str, digits: int) -> tuple[str, Callable[[Row], str]]:
    """Return the heading of a column and what writes its cells."""
    if column.name == "low":
        signed, percent = _form(column)
        return ci, lambda row: interval(
            row["low"], row["high"], digits, signed=signed, percent=percent
        )
    return column.label, lambda row: _cell(row[column.name], column, digits)


def _form(column: Column) -> tuple[bool, bool]:
    """Tell whether numbers have their sign, and whether they are in per cent."""
    return "+" in column.form, "%" in column.form


def _cell(value: Any, column: Column, digits: int) -> str:
    if column.kind == "p":
        return p_value(value, digits)
    if column.kind == "note":
        return value or ""
    if column.kind == "axis" and value is not None:
        return _on_axis(value, column)
    if isinstance(value, float):
        signed, percent = _form(column)
        return number(value, digits, signed=signed, percent=percent)
    return value if isinstance(value, str) else cell(value, digits)


def _on_axis(value: float, column: Column) -> str:
    """Return a number of an axis without trailing zeros."""
    if "%" in column.form:
        return f"{100 * value:,.10g}%"
    return f"{value:,.10g}".replace("-", "−")


def _side_by_side(
    es: Answer,
    keys: Sequence[Column],
    columns: Sequence[Column],
    rows: Sequence[Row],
    digits: int,
) -> tuple[list[str], list[list[str]]]:
    """Return header and cells of rows whose quantities stand side by side."""
    groups: dict[tuple[Any, ...], dict[str, Row]] = {}
    for row in rows:
        groups.setdefault(tuple(row[c.name] for c in keys), {})[row["quantity"]] = row
    header, writers = _below_header(keys, [c for c in columns if c.kind == "count"], digits)
    for quantity in (column for column in es.question.quantities if not column.hidden):
        mine = [group[quantity.name] for group in groups.values() if quantity.name in group]
        headings = {"value": quantity.label, "low": es.method.ci}
        if quantity.kind == "interval":  # another one of the value before
            headings = {"low": quantity.label}
        if quantity.kind == "fact":
            headings = {"value": quantity.label}
        for name, heading in headings.items():
            if any(row.get(name) is not None for row in mine):
                column = replace(quantity, name=name, kind="value", label=heading)
                header.append(heading)
                writers.append(_of(quantity.name, _written(column, es.method.ci, digits)[1]))
    for column in columns:
        if column.kind in ("p", "note", "names", "flag", "fact", "share"):
            header.append(column.label)
            writers.append(_first(column, digits))
    return header, [[write(group) for write in writers] for group in groups.values()]


Group = Mapping[str, Row]


def _below_header(
    keys: Sequence[Column], counts: Iterable[Column], digits: int
) -> tuple[list[str], list[Callable[[Group], str]]]:
    columns = [*keys, *counts]
    return [c.label for c in columns], [_first(c, digits) for c in columns]


def _first(column: Column, digits: int) -> Callable[[Group], str]:
    """Return what writes the value of the first quantity that has one."""

    def write(group: Group) -> str:
        values = [row[column.name] for row in group.values()]
        return _cell(next((v for v in values if v not in (None, "")), None), column, digits)

    return write


def _of(quantity: str, write: Callable[[Row], str]) -> Callable[[Group], str]:
    return lambda group: write(group[quantity]) if quantity in group else "–"


def _across(es: Answer, columns: Sequence[Column], title: str, digits: int) -> Table:
    """Return a column per value of a key; of systems the best in bold, and marks.

    Each value is followed by half of its interval, where that says all. Rows of the part `chance`
    come last and are never the best. Of a long axis some values are shown, equally far apart.
    """
    across = next(column for column in es.question.columns if column.name == es.question.across)
    names = es.values_of(across.name)
    if across.kind == "axis":
        names = names[:: math.ceil(len(names) / MOST_COLUMNS)]
    before = [c for c in columns if c.kind in (*KEYS, "note") and c.name != across.name]
    before += [c for c in columns if c.name == "n" and _depends_on(es, c.name, before)]
    cells = dict[tuple[str, ...], dict[Any, Row]]()
    for row in es.rows.iter_rows(named=True):
        key = tuple(_cell(row[column.name], column, digits) for column in before)
        cells.setdefault(key, {})[row[across.name]] = row
    groups, first = list(cells.values()), len(before)
    write = _with_half if _has_halves(es, columns) else _plain
    rows: list[list[Any]] = [
        [*key, *(write(of[name], digits) if name in of else None for name in names)]
        for key, of in cells.items()
    ]
    marks = {
        (i, first + column): str(of[name]["mark"])
        for i, of in enumerate(groups)
        for column, name in enumerate(names)
        if name in of and of[name].get("mark")
    }
    strong, second = set[tuple[int, int]](), set[tuple[int, int]]()
    if [column.name for column in before if column.kind in KEYS] == ["system"]:
        for column, name in enumerate(names, start=first):
            metric = name if across.name == "metric" else _only(es, "metric")
            best, next_best = _best(es, metric, [of.get(name) for of in groups], digits)
            strong |= {(i, column) for i in best}
            second |= {(i, column) for i in next_best}
    if "chance" in es.parts:
        expected = dict(es.parts["chance"].rows.select("metric", "value").iter_rows())
        label = es.parts["chance"].rows["system"][0]
        rows.append([*[""] * (first - 1), label, *(expected.get(name) for name in names)])
    left = [i for i, column in enumerate(before) if column.label in _left_labels(es)]
    if marks or strong:  # marks hang on the right of numbers: these stay below each other
        texts = [[_width(row[i], digits) for row in rows] for i in range(first, len(rows[0]))]
        left += [i for i, widths in enumerate(texts, start=first) if len({*widths} - {0}) < 2]
    header = [*(c.label for c in before), *(_heading(name, across) for name in names)]
    table = Table.of_rows(header, rows, left=left, title=title, digits=digits, strong=strong)
    return replace(table, second=frozenset(second), marks=marks, is_plain_marked=True)


def _has_halves(es: Answer, columns: Sequence[Column]) -> bool:
    """Tell whether people see intervals, and all of them lie evenly about their values."""
    if not any(column.name == "low" for column in columns):
        return False
    limits = es.rows.select("value", "low", "high").drop_nulls("low").to_numpy()
    return bool(np.allclose(limits[:, 0] - limits[:, 1], limits[:, 2] - limits[:, 0], rtol=1e-6))


def _plain(row: Row, digits: int) -> Any:  # noqa: ARG001 - as `_with_half`
    return row["value"]


def _with_half(row: Row, digits: int) -> str:
    """Return a value and half of its interval."""
    text = number(row["value"], digits)
    if row["low"] is None:
        return text
    return f"{text} ± {number((row['high'] - row['low']) / 2, digits)}"


def _width(value: Any, digits: int) -> int:
    return len(number(value, digits)) if isinstance(value, float) else 0


def _depends_on(es: Answer, name: str, keys: Sequence[Column]) -> bool:
    """Tell whether a column has one value for all rows with the same keys."""
    names = [column.name for column in keys]
    return es.rows.select(*names, name).n_unique() == es.rows.select(names).n_unique()


def _best(
    es: Answer, metric: str | None, rows: Sequence[Row | None], digits: int
) -> tuple[list[int], list[int]]:
    """Return which rows are the best and which the second best: those that print alike.

    Where all print alike, or neither direction is better, there is none, and no second of two.
    """
    better = es.card.get("better", {}).get(metric or "", "higher")
    printed = [
        None if row is None or row["value"] is None else round(row["value"], digits) for row in rows
    ]
    order = sorted({x for x in printed if x is not None}, reverse=better == "higher")
    if better == "neither" or len(order) < 2:
        return [], []
    best, second = ([i for i, x in enumerate(printed) if x == value] for value in order[:2])
    return best, second if len(rows) > 2 else []


def _heading(value: Any, column: Column) -> str:
    return _on_axis(value, column) if column.kind == "axis" else str(value)
