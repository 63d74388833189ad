"""Feature columns that know the test: counts and means over both parts are told by ranks."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
import polars as pl

from unskew.arrays import F64, I32, I64, frozen
from unskew.splits.diagnosis.check import Number, Reading, listed, rule, unknown
from unskew.splits.diagnosis.parts import SplitParts, places_in
from unskew.splits.diagnosis.thresholds import FEATURE_ENTRIES, FEATURE_MISFIT, FEATURE_RATIO

STEPS = 10
"""Moments of the test, evenly spaced in its rows, up to which a column may have counted."""
ROWS = "number of rows"
EXACT = 1e-9
"""A misfit up to this is that of equal ranks."""
MOST_ENTRIES = 20_000
"""The most items or users that are ranked; of more, every n-th one."""


class Sums(NamedTuple):
    """Rows of each item or user, and the sums of their values."""

    rows: F64
    values: F64

    def of(self, statistic: str) -> F64:
        """Return numbers of rows, sums or means."""
        if statistic == ROWS:
            return self.rows
        if statistic == "sum":
            return self.values
        return np.divide(self.values, self.rows, out=np.zeros(self.rows.size), where=self.rows > 0)

    def plus(self, sums: Sums) -> Sums:
        """Return both together."""
        return Sums(self.rows + sums.rows, self.values + sums.values)


class FeatureFit(NamedTuple):
    """How well a column follows a count, sum or mean."""

    column: str
    of: str
    """What it belongs to: item or user."""
    statistic: str
    misfit: float
    """1 - |rank correlation| with the statistic that takes test rows in."""
    without: float
    """The same for the statistic of training rows alone."""

    @property
    def is_leak(self) -> bool:
        """Whether the column follows the test rows, and training rows do not explain it."""
        if self.without <= EXACT:  # then 0 is 4 times 0, up to the last bits
            return False
        return self.misfit <= FEATURE_MISFIT and self.misfit * FEATURE_RATIO <= self.without


@rule
def features(parts: SplitParts) -> Reading:
    """Look for columns of items or users that hold counts or means with test rows."""
    columns = _columns(parts)
    numeric = {name: column for name, column in columns.items() if column is not None}
    if not numeric:
        what = "no column of numbers" if columns else "no further column"
        return unknown(f"The ratings have {what} beside user, item, rating and time.")
    fits: list[FeatureFit] = []
    for name, column in numeric.items():
        fits += _fits(parts, name, column)
    counts: dict[str, Number] = {
        "columns": len(numeric),
        "compared": len({fit.column for fit in fits}),
    }
    leaks: dict[str, FeatureFit] = {}
    for candidate in sorted(fits, key=lambda fit: fit.misfit):
        if candidate.is_leak:
            leaks.setdefault(candidate.column, candidate)
    if leaks:
        texts = [f"{leak.column!r} follows {leak.statistic}" for leak in leaks.values()]
        worst = next(iter(leaks.values()))
        counts |= {"misfit": worst.misfit, "misfit_without_test": worst.without}
        sentence = f"{listed(texts)}, not those of training alone."
        return Reading("leak", float(len(leaks)), sentence, counts)
    if not fits:
        return unknown(
            f"No column of numbers belongs to items or users of which {FEATURE_ENTRIES} or more "
            "have test rows.",
            counts,
        )
    return Reading("ok", 0.0, "No column follows counts or means that need test rows.", counts)


class FeatureColumn(NamedTuple):
    """A column of numbers."""

    user: I32
    item: I32
    value: F64


def _columns(parts: SplitParts) -> dict[str, FeatureColumn | None]:
    """Return the further columns of both parts, and of the log; None if they hold no numbers."""
    train, test, log = parts.train, parts.test, parts.log.source
    user = np.concatenate([train.user, test.user])
    item = np.concatenate([train.item, test.item])
    result: dict[str, FeatureColumn | None] = {}
    for name in train.tags:
        if name in test.tags:
            values = [_floats(part.tags[name]) for part in (train, test)]
            numbers = [value for value in values if value is not None]
            is_number = len(numbers) == len(values)
            result[name] = FeatureColumn(user, item, np.concatenate(numbers)) if is_number else None
    if log is None:
        return result
    # Under the numbers of the split; -1 for those not in it.
    users, items = (
        code if ids.equals(of_split) else places_in(ids, of_split)[code]
        for ids, of_split, code in (
            (log.users, train.users, log.user),
            (log.items, train.items, log.item),
        )
    )
    for name in log.tags:
        if name not in result:
            column = _floats(log.tags[name])
            result[name] = None if column is None else FeatureColumn(users, items, column)
    return result


def _floats(column: pl.Series) -> F64 | None:
    """Return numbers, also those written as text; None if some are no numbers."""
    if column.dtype == pl.String:
        empty = column.null_count()
        column = column.cast(pl.Float64, strict=False)
        if column.null_count() > empty:
            return None
    if not column.dtype.is_numeric():
        return None
    return column.cast(pl.Float64).fill_null(float("nan")).to_numpy().copy()


def _fits(parts: SplitParts, name: str, column: FeatureColumn) -> Iterator[FeatureFit]:
    """Compare a column that has one value per item, or per user, with counts, sums and means."""
    from unskew.splits.diagnosis import kernels

    for of, size, codes, tested in (
        ("item", len(parts.train.items), column.item, parts.item_counts[1]),
        ("user", len(parts.train.users), column.user, parts.user_counts[1]),
    ):
        constant = np.full(size, np.nan)
        if not kernels.constant_values(frozen(codes), frozen(column.value), constant):
            continue
        entries = np.flatnonzero(np.isfinite(constant) & (tested > 0))
        if entries.size < FEATURE_ENTRIES or np.ptp(constant[entries]) == 0:
            continue
        entries = entries[:: -(-entries.size // MOST_ENTRIES)]
        yield from _compare(parts, name, of, constant[entries], entries)


def _compare(
    parts: SplitParts, name: str, of: str, column: F64, entries: I64
) -> Iterator[FeatureFit]:
    """Compare with training alone, with training and the test up to some moments, and the test."""
    train, *steps = _sums(parts, of, entries)
    ranked = ranks(column)
    for statistic in (ROWS,) if parts.test.implicit else (ROWS, "sum", "mean"):
        without = _misfit(ranked, train.of(statistic))
        so_far = train
        for number, step in enumerate(steps, start=1):
            so_far = so_far.plus(step)
            share = "" if number == len(steps) else f"the first {number / len(steps):.0%} of "
            what = f"the {statistic} of each {of} over training and {share}test"
            yield FeatureFit(name, of, what, _misfit(ranked, so_far.of(statistic)), without)
        test = Sums(so_far.rows - train.rows, so_far.values - train.values)
        what = f"the {statistic} of each {of} in the test part"
        yield FeatureFit(name, of, what, _misfit(ranked, test.of(statistic)), without)


def _sums(parts: SplitParts, of: str, entries: I64) -> list[Sums]:
    """Return sums of training, and of each step of the test; one step without time stamps."""
    size = len(parts.train.items if of == "item" else parts.train.users)
    step = np.zeros(len(parts.test), np.int64)
    if parts.has_time:
        edges = parts.sorted_test_time[np.arange(1, STEPS) * len(parts.test) // STEPS]
        step = np.searchsorted(edges, parts.test_time, side="right")
    result = []
    for part, rows in (
        (parts.train, slice(None)),
        *((parts.test, step == number) for number in range(int(step.max()) + 1)),
    ):
        code, value = (part.item if of == "item" else part.user)[rows], part.value[rows]
        number = np.bincount(code, minlength=size)[entries].astype(np.float64)
        values = np.bincount(code, value, minlength=size)[entries].astype(np.float64)
        result.append(Sums(number, values))
    return result


def _misfit(ranked: F64, values: F64) -> float:
    """Return 1 - |rank correlation|; 1 where one of them is constant."""
    deviation = ranked - ranked.mean()
    against = ranks(values)
    against -= against.mean()
    scale = float(deviation @ deviation) * float(against @ against)
    return 1.0 if scale == 0 else max(0.0, 1.0 - abs(float(deviation @ against)) / scale**0.5)


def ranks(values: F64) -> F64:
    """Return ranks; equal values share the mean of theirs."""
    _, index, number = np.unique(values, return_inverse=True, return_counts=True)
    last = np.cumsum(number)
    return (last - (number - 1) / 2.0)[index]
