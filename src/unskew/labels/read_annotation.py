"""`read_annotation`: what people judged so far, as a random sample, and whether it is enough."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from unskew.arrays import F64, I64, Mask, frozen
from unskew.checks import checked, choose
from unskew.data.ratings import Ids
from unskew.data.read.tables import ITEM, USER, DataTable, column_names, read_table
from unskew.data.relevance import Relevance
from unskew.engine.files import digest_of_file, inner_path, local_path, read_sealed, reading
from unskew.errors import DataError, file_name
from unskew.labels.annotation_designs import Labels, Wave
from unskew.labels.annotation_plan import (
    CARD,
    FORMAT,
    LABEL,
    PAIRS,
    TO_JUDGE,
    UNCLEAR,
    AnnotationPlan,
)
from unskew.labels.recommended_pairs import positions
from unskew.report.text import counted


def load_plan(folder: str | os.PathLike[str]) -> AnnotationPlan:
    """Read what `AnnotationPlan.save` wrote; refuse changed files and other formats."""
    path = Path(folder)
    if not (path / CARD).is_file():
        raise DataError(f"{path}: no plan of an annotation here ({CARD} is missing)")
    with reading(path / CARD):
        try:
            card = read_sealed(inner_path(path, CARD))
        except ValueError as problem:
            raise DataError(f"{path / CARD}: {problem}; take the file that was written") from None
    if card.get("format") != FORMAT:
        raise DataError(
            f"{path / CARD}: format {card.get('format')!r}, and this version of unskew reads "
            f"format {FORMAT}"
        )
    with reading(path / PAIRS):
        if digest_of_file(inner_path(path, PAIRS)) != card["files"][PAIRS]:
            raise DataError(f"{path / PAIRS}: the file was changed; take the one that was written")
        frame = pl.read_parquet(local_path(path / PAIRS), glob=False)
    return _plan_of(card, frame)


def read_labels(plan: AnnotationPlan, source: object) -> tuple[Labels, list[str]]:
    """Match the rows of a filled-in file to the plan; return labels by place in the order."""
    table = read_table(source)
    user, item, label = (
        _column(table, what, names)
        for what, names in (
            ("user", USER),
            ("item", ITEM),
            (LABEL, (LABEL, *column_names()["opinions"])),
        )
    )
    position = _places(plan, table, user, item)
    value, unclear = _parsed(plan, table, label)
    has_label = ~np.isnan(value) | unclear
    _check_repeated(table, position, value, unclear, has_label)
    combined, cannot = plan.labels.value.copy(), plan.labels.unclear.copy()
    fresh = has_label & ~(plan.labels.judged)[position]
    changed = has_label & plan.labels.judged[position]
    changed &= ~((value == combined[position]) | (unclear & cannot[position]))
    if changed.any():
        row = int(np.argmax(changed))
        raise DataError(
            f"{table.source}: row {row + 1} has another label for user {table.frame[user][row]!r}, "
            f"item {table.frame[item][row]!r} than the first batch, which the plan holds"
        )
    combined[position[fresh]], cannot[position[fresh]] = value[fresh], unclear[fresh]
    notes = []
    absent = plan.labels.judged.size - np.union1d(position, np.flatnonzero(plan.labels.judged)).size
    if absent:
        is_are = counted(absent, "planned pair is", "planned pairs are")
        notes.append(f"{is_are} not in {table.source}: not judged yet")
    return Labels(frozen(combined), frozen(cannot)), notes


def _column(table: DataTable, what: str, names: Sequence[str]) -> str:
    """Return the column that holds users, items or labels."""
    column = table.pick(what, names, None)
    if column is None:
        raise DataError(
            f"{table.source}: no {what} column among: {', '.join(table.frame.columns)}; give the "
            f"file that was written ({TO_JUDGE}), its labels filled in"
        )
    return column


def _places(plan: AnnotationPlan, table: DataTable, user: str, item: str) -> I64:
    """Return the place in the order of each row of a table; refuse pairs that are not planned."""
    columns, numbers = [], []
    for column, name in ((plan.user, user), (plan.item, item)):
        ids, codes = Ids.number(column)
        empty = table.frame[name].is_null()
        if empty.any():
            raise DataError(f"{table.source}: row {empty.arg_true()[0] + 1} has no {name}")
        columns.append(ids.codes(table.frame[name]).astype(np.int64))
        numbers.append((codes.astype(np.int64), len(ids)))
    (planned_user, _), (planned_item, width) = numbers
    planned = planned_user[plan.order] * width + planned_item[plan.order]
    keys = np.where((columns[0] < 0) | (columns[1] < 0), -1, columns[0] * width + columns[1])
    by_number = np.argsort(planned)
    index = positions(planned[by_number], keys)
    wrong = index < 0
    if wrong.any():
        row = int(np.argmax(wrong))
        more = int(wrong.sum()) - 1
        raise DataError(
            f"{table.source}: row {row + 1} (user {table.frame[user][row]!r}, item "
            f"{table.frame[item][row]!r}) is not a pair of the plan"
            + (f", and {counted(more, 'further row is', 'further rows are')} not" if more else "")
            + "; spreadsheet programs change long numbers and leading zeros of ids: copy the "
            f"labels into {TO_JUDGE} as it was written"
        )
    return by_number[index]


def _parsed(plan: AnnotationPlan, table: DataTable, name: str) -> tuple[F64, Mask]:
    """Return labels as numbers, NaN where a cell is empty; and where people could not tell."""
    column = table.frame[name]
    text = column.cast(pl.String).str.strip_chars()
    text = pl.select(pl.when(text == "").then(None).otherwise(text)).to_series()
    unclear = (text == UNCLEAR).fill_null(value=False)
    number = text.cast(pl.Float64, strict=False)
    low, high = plan.scale
    fits = number.is_between(low, high).fill_null(value=False) & (number == number.floor())
    wrong = text.is_not_null() & ~unclear & ~fits.fill_null(value=False)
    if wrong.any():
        row, count = int(wrong.arg_true()[0]), int(wrong.sum())
        raise DataError(
            f"{table.source}: {counted(count, 'label is', 'labels are')} not allowed, the first in "
            f"row {row + 1}: {text[row]!r}; labels are whole numbers from {low} to {high}, "
            f"{UNCLEAR} where nobody can tell, or empty where nobody has judged"
        )
    values = number.cast(pl.Float64).fill_null(np.nan).to_numpy()
    return np.where(unclear.to_numpy(), np.nan, values), unclear.to_numpy()


def _check_repeated(
    table: DataTable, position: I64, value: F64, unclear: Mask, has_label: Mask
) -> None:
    """Refuse a pair that stands twice with different labels; the same label twice is one."""
    rows = np.flatnonzero(has_label)
    order = rows[np.argsort(position[rows], kind="stable")]
    same = position[order[1:]] == position[order[:-1]]
    earlier, later = order[:-1][same], order[1:][same]
    differ = (value[earlier] != value[later]) & ~(unclear[earlier] & unclear[later])
    if differ.any():
        first = int(np.argmax(differ))
        raise DataError(
            f"{table.source}: rows {earlier[first] + 1} and {later[first] + 1} are the same pair "
            f"with different labels: keep one of them"
        )


def _plan_of(card: dict[str, Any], frame: pl.DataFrame) -> AnnotationPlan:
    rule = dict(card["relevance"])
    for what in ("gain", "loss"):
        if isinstance(rule[what], dict):
            keys = {key: float(key) for key in rule[what]}
            rule[what] = {
                int(number) if number.is_integer() else number: rule[what][key]
                for key, number in keys.items()
            }
    rank = frame["place"].fill_null(0).to_numpy()
    order = np.argsort(rank, kind="stable")[int((rank == 0).sum()) :]
    names = [name for name in frame.columns if name.startswith("coefficient_")]
    waves = [
        Wave(**{**wave, "slots": None if wave["slots"] is None else tuple(wave["slots"])})
        for wave in card["waves"]
    ]
    label = frame["label"].cast(pl.Float64).fill_null(np.nan).to_numpy()[order]
    return AnnotationPlan(
        metric=card["metric"],
        estimand=card["estimand"],
        systems=tuple(card["systems"]),
        scale=(card["scale"][0], card["scale"][1]),
        relevance=Relevance(**rule),
        seed=card["seed"],
        smallest=card["smallest"],
        user=frame["user"],
        item=frame["item"],
        coefficient=frozen(np.array([frame[name].to_numpy() for name in names])),
        hint=frozen(frame["hint"].to_numpy()) if "hint" in frame.columns else None,
        stratum=frozen(frame["stratum"].to_numpy()),
        strata=tuple(card["strata"]),
        order=frozen(order),
        waves=tuple(waves),
        labels=Labels(frozen(label), frozen(frame["unclear"].to_numpy()[order])),
        facts=card["facts"],
        notes=tuple(card["notes"]),
    )


SKIPPED = ("hold", "refuse")


@checked
def read_annotation(
    folder: str | os.PathLike[str], file: object = None, *, skipped: str = "hold"
) -> AnnotationPlan:
    """Return a plan with the labels of the file that people filled in.

    Parameters
    ----------
    folder
        Where `AnnotationPlan.save` wrote the plan.
    file
        The filled-in file, or any table with columns user, item, label, its rows in any order.
        Default: `to-judge.csv` in the folder. Cells are a whole number of the scale, empty where
        nobody has judged, `?` where nobody can tell.
    skipped
        Only the first pairs of the order, up to the first without a label, are a random sample: who
        skips pairs may skip hard ones. `hold` keeps the labels behind the first gap back until it
        is filled, and counts them; `refuse` makes them an error.

    Examples
    --------
    >>> import tempfile, unskew as us
    >>> x, y = {1: ["a", "b"], 2: ["a", "b"]}, {1: ["c", "b"], 2: ["d", "b"]}
    >>> plan = us.labels.plan_annotation({"x": x, "y": y}, "P@2", budget=4, seed=1)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     saved = plan.save(folder)
    ...     judged = us.labels.read_annotation(
    ...         folder, {"user": [1, 2, 1, 2], "item": ["a", "a", "c", "d"], "label": [1, 1, 0, 0]}
    ...     )
    >>> judged
    AnnotationPlan(P@2, 4 of 4 pairs judged)
    >>> judged.status().pair("x", "y").estimate
    (0.5, 0.5, 0.5)
    """
    choose("skipped", skipped, SKIPPED)
    plan = load_plan(folder)
    source = inner_path(folder, TO_JUDGE) if file is None else file
    labels, notes = read_labels(plan, source)
    name = file_name(source) if isinstance(source, str | os.PathLike) else "table"
    result = replace(plan, labels=labels, source=name, file_notes=tuple(notes))
    if skipped == "refuse" and result.held:
        raise DataError(f"{name}: {result.label_notes[len(notes)]}")
    return result
