"""`divide`: items, users or judgments in strata: by popularity, activity, groups, tags."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import polars as pl

from unskew.arrays import F64, Mask
from unskew.checks import as_count, choose
from unskew.data.ratings import Ids, Ratings
from unskew.data.read.frames import read_frame
from unskew.data.summary import item_counts
from unskew.errors import DataError, SettingError, unknown_name
from unskew.evaluation.scores import Scores
from unskew.judging.judged import Judged
from unskew.judging.shape import Basis
from unskew.report.text import counted
from unskew.splits.strata import judgment_bins
from unskew.stats.compare.gaps import Division

BY = ("popularity", "activity", "mainstreamness")
OF = ("items", "users")
EQUAL = ("items", "judgments")
STRATA = 10


def divide(
    judged: Judged,
    scores: Scores,
    by: object,
    of: str | None,
    strata: int | None,
    equal: str | None,
) -> Division:
    """Divide items, users or judgments into strata, as `strata` is asked to.

    `scores` are the scores over everything: of users only those who are averaged are divided.
    """
    basis = judged.basis
    if not isinstance(by, str | Mapping):
        frame = read_frame(by)
        if frame is None:
            raise SettingError(
                f"by must be text, a mapping from ids to groups or a table, got {by!r}"
            )
        by = frame
    if equal is not None and not (isinstance(by, str) and by == "popularity"):
        raise SettingError("equal=… says how to cut by popularity: leave it out here")
    if not isinstance(by, str) or by in basis.judgments.tags:
        if strata is not None:
            raise SettingError("m=… is for strata by a number; these are given: leave it out")
        if isinstance(by, str):
            _refuse_of(of)
            return _tagged(basis.judgments, by)
        whose = choose("of", of or "items", OF)
        return _groups(by, whose, basis.judgments.items if whose == "items" else judged.users)
    _refuse_of(of)
    if by not in BY:
        raise unknown_name("by", by, [*BY, *basis.judgments.tags])
    m = as_count("m", STRATA if strata is None else strata)
    if by == "popularity":
        return _by_popularity(basis, m, choose("equal", equal or "items", EQUAL))
    if basis.train is None:
        raise DataError(f"by={by!r} needs the training ratings: give train=…")
    averaged = np.logical_or.reduce([scores.averaged(name) for name in scores.systems])
    people = np.zeros(len(judged.users), np.bool_)
    people[judged.owner[averaged]] = True
    count = np.diff(basis.train.start).astype(np.float64)
    if by == "activity":
        return _by_quantity("users", by, count, people, m)
    popularity = item_counts(basis.train)[basis.train.item]
    total = np.bincount(basis.train.user, popularity, count.size)
    with np.errstate(invalid="ignore", divide="ignore"):
        mean = total / count
    return _by_quantity("users", by, mean, people, m)


def _refuse_of(of: str | None) -> None:
    if of is not None:
        raise SettingError("of=… says whose ids given groups are of: leave it out here")


def _by_popularity(basis: Basis, m: int, equal: str) -> Division:
    """Part the items that occur in training or test; what only runs hold has no place."""
    judgments, train = basis.judgments, basis.train
    rated = item_counts(judgments) > 0
    if train is None:
        if equal == "judgments":
            raise DataError("equal='judgments' goes by training ratings: give train=…")
        note = "no training ratings: popularity is the number of test ratings"
        counts = item_counts(judgments).astype(np.float64)
        parts = _by_quantity("items", "popularity", counts, rated, m)
        return replace(parts, notes=(note, *parts.notes))
    rated |= item_counts(train) > 0
    counts = item_counts(train).astype(np.float64)
    if equal == "items":
        return _by_quantity("items", "popularity", counts, rated, m)
    bins = judgment_bins(train, basis.view.relevance, m)
    return Division(
        of="items",
        by="popularity (equal judgments)",
        code=np.where(rated, bins.stratum, -1).astype(np.int64),
        names=_numbers(m),
        quantity=counts,
        is_ordered=True,
    )


def _by_quantity(of: str, by: str, quantity: F64, among: Mask, m: int) -> Division:
    """Cut what is marked into m equally large parts, by falling quantity; ties by id."""
    ranked = among & ~np.isnan(quantity)
    rows = np.flatnonzero(ranked)
    if m > rows.size:
        raise SettingError(f"{m:,} strata need at least {m:,} {of}; there are {rows.size:,}")
    order = rows[np.argsort(-quantity[rows], kind="stable")]
    code = np.full(quantity.size, -1, np.int64)
    code[order] = np.arange(rows.size, dtype=np.int64) * m // rows.size
    names, notes = _numbers(m), list[str]()
    unknown = among & np.isnan(quantity)
    if unknown.any():
        code[unknown] = m
        names = (*names, "without training")
        notes.append(
            f"{of} without training ratings ({int(unknown.sum()):,}) form a separate stratum"
        )
    return Division(
        of=of,
        by=by,
        code=code,
        names=names,
        quantity=quantity,
        is_ordered=True,
        notes=tuple(notes),
    )


def _numbers(m: int) -> tuple[str, ...]:
    return tuple(str(number + 1) for number in range(m))


def _groups(by: Mapping[Any, Any] | pl.DataFrame, of: str, ids: Ids) -> Division:
    """Take strata as they are given."""
    if isinstance(by, pl.DataFrame):
        if by.width < 2:
            raise DataError("a table of groups needs ids in its first column, groups in its second")
        raw, group = by.to_series(0), by.to_series(1).cast(pl.String).to_list()
    else:
        raw, group = pl.Series(list(by)), [str(value) for value in by.values()]
    if raw.n_unique() < len(raw):
        raise DataError(
            f"by: {counted(len(raw) - raw.n_unique(), 'id occurs', 'ids occur')} twice: give "
            "each id one group"
        )
    codes = ids.codes(raw)
    names = tuple(sorted({name for name, code in zip(group, codes, strict=True) if code >= 0}))
    if not names:
        raise DataError(
            f"by: none of the ids, such as {raw[0] if len(raw) else None!r}, is one of the {of}; "
            "of='users' or of='items' says whose ids they are"
        )
    number_of = {name: number for number, name in enumerate(names)}
    code = np.full(len(ids), -1, np.int64)
    inside = codes >= 0
    code[codes[inside]] = [
        number_of[name] for name, is_inside in zip(group, inside, strict=True) if is_inside
    ]
    return _complete(Division(of=of, by="group", code=code, names=names))


def _complete(parts: Division) -> Division:
    """Put what has no group into one of its own."""
    return parts.complete("(none)", "without a group")


def _tagged(judgments: Ratings, name: str) -> Division:
    column = judgments.tags[name].cast(pl.String)
    names = tuple(sorted(column.drop_nulls().unique().to_list()))
    number_of = {value: number for number, value in enumerate(names)}
    code = np.array([number_of.get(value, -1) for value in column.to_list()], np.int64)
    return _complete(Division(of="judgments", by=name, code=code, names=names))
