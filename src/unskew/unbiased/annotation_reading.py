"""Reading back a plan of annotation, and the labels that people filled in."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from unskew.arrays import F64, I64, Mask, frozen
from unskew.data.column_names import column_names
from unskew.data.ratings import Ids
from unskew.data.relevance import Relevance
from unskew.data.tables import ITEM, USER, Table, read_table
from unskew.engine.files import digest_of_file, read_sealed, reading
from unskew.engine.folders import inner_path, local_path
from unskew.errors import DataError
from unskew.report.text import counted
from unskew.unbiased.annotation_designs import Wave
from unskew.unbiased.annotation_files import CARD, FORMAT, LABEL, PAIRS, TO_JUDGE, UNCLEAR
from unskew.unbiased.annotation_plan import AnnotationPlan, Labels


def load_plan(folder: str | os.PathLike[str]) -> AnnotationPlan:
    """Read what `AnnotationPlan.save` wrote; refuse changed files and other formats."""
    home = Path(folder)
    if not (home / CARD).is_file():
        raise DataError(f"{home}: no plan of an annotation here ({CARD} is missing)")
    with reading(home / CARD):
        try:
            card = read_sealed(inner_path(home, CARD))
        except ValueError as problem:
            raise DataError(f"{home / CARD}: {problem}; take the file that was written") from None
    if card.get("format") != FORMAT:
        raise DataError(
            f"{home / CARD}: format {card.get('format')!r}, and this version of unskew reads "
            f"format {FORMAT}"
        )
    with reading(home / PAIRS):
        if digest_of_file(inner_path(home, PAIRS)) != card["files"][PAIRS]:
            raise DataError(f"{home / PAIRS}: the file was changed; take the one that was written")
        frame = pl.read_parquet(local_path(home / PAIRS), glob=False)
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
    place = _places(plan, table, user, item)
    value, unclear = _parsed(plan, table, label)
    given = ~np.isnan(value) | unclear
    _check_repeated(table, place, value, unclear, given)
    known, cannot = plan.labels.value.copy(), plan.labels.unclear.copy()
    fresh = given & ~(plan.labels.judged)[place]
    changed = given & plan.labels.judged[place]
    changed &= ~((value == known[place]) | (unclear & cannot[place]))
    if changed.any():
        row = int(np.argmax(changed))
        raise DataError(
            f"{table.source}: row {row + 1} has another label for user {table.frame[user][row]!r}, "
            f"item {table.frame[item][row]!r} than the first batch, which the plan holds"
        )
    known[place[fresh]], cannot[place[fresh]] = value[fresh], unclear[fresh]
    notes = []
    absent = plan.labels.judged.size - np.union1d(place, np.flatnonzero(plan.labels.judged)).size
    if absent:
        is_are = counted(absent, "planned pair is", "planned pairs are")
        notes.append(f"{is_are} not in {table.source}: not judged yet")
    return Labels(frozen(known), frozen(cannot)), notes


def _column(table: Table, what: str, names: Sequence[str]) -> str:
    """Return the column that holds users, items or labels."""
    column = table.pick(what, names, None)
    if column is None:
        raise DataError(
            f"{table.source}: no {what} column among: {', '.join(table.frame.columns)}; give the "
            f"file that was written ({TO_JUDGE}), its labels filled in"
        )
    return column


def _places(plan: AnnotationPlan, table: Table, user: str, item: str) -> I64:
    """Return the place in the order of each row of a table; refuse pairs that are not planned."""
    columns, numbers = [], []
    for known, name in ((plan.user, user), (plan.item, item)):
        ids, codes = Ids.number(known)
        empty = table.frame[name].is_null()
        if empty.any():
            raise DataError(f"{table.source}: row {empty.arg_true()[0] + 1} has no {name}")
        columns.append(ids.codes(table.frame[name]).astype(np.int64))
        numbers.append((codes.astype(np.int64), len(ids)))
    (planned_user, _), (planned_item, width) = numbers
    planned = planned_user[plan.order] * width + planned_item[plan.order]
    asked = np.where((columns[0] < 0) | (columns[1] < 0), -1, columns[0] * width + columns[1])
    by_number = np.argsort(planned)
    at = np.minimum(np.searchsorted(planned[by_number], asked), planned.size - 1)
    place = by_number[at]
    wrong = planned[place] != asked
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
    return place


def _parsed(plan: AnnotationPlan, table: Table, name: str) -> tuple[F64, Mask]:
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


def _check_repeated(table: Table, place: I64, value: F64, unclear: Mask, given: Mask) -> None:
    """Refuse a pair that stands twice with different labels; the same label twice is one."""
    rows = np.flatnonzero(given)
    order = rows[np.argsort(place[rows], kind="stable")]
    same = place[order[1:]] == place[order[:-1]]
    one, other = order[:-1][same], order[1:][same]
    differ = (value[one] != value[other]) & ~(unclear[one] & unclear[other])
    if differ.any():
        first = int(np.argmax(differ))
        raise DataError(
            f"{table.source}: rows {one[first] + 1} and {other[first] + 1} are the same pair with "
            f"different labels: keep one of them"
        )


def _plan_of(card: dict[str, Any], frame: pl.DataFrame) -> AnnotationPlan:
    rule = dict(card["relevance"])
    for what in ("gain", "loss"):
        if isinstance(rule[what], dict):
            keys = {key: float(key) for key in rule[what]}
            rule[what] = {
                int(one) if one.is_integer() else one: rule[what][key] for key, one in keys.items()
            }
    place = frame["place"].fill_null(0).to_numpy()
    order = np.argsort(place, kind="stable")[int((place == 0).sum()) :]
    names = [name for name in frame.columns if name.startswith("coefficient_")]
    waves = [
        Wave(**{**one, "slots": None if one["slots"] is None else tuple(one["slots"])})
        for one in card["waves"]
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
