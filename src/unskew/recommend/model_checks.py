"""Checks of a loaded model: its kernels trust what it holds, and a file may hold anything."""

from __future__ import annotations

import types
from collections.abc import Iterator
from dataclasses import fields, is_dataclass
from typing import Any, Union, get_args, get_origin, get_type_hints

import numpy as np

from unskew.recommend.model import Axes
from unskew.recommend.sparse import Rows


def check_model(model: object, users: int, items: int) -> None:
    """Raise ValueError unless a model can score so many users and items.

    Every value has the type that its field declares, every index leads to something that is there,
    and arrays have the shapes that the model's `axes` tell: `users`, `items`, or any other name,
    which has one length in the whole model. A model that trusts more than that has a `check`; one
    that holds others names their fields in `models`.
    """
    axes: Axes = getattr(model, "axes", {})
    lengths = {"users": users, "items": items}
    inner: tuple[str, ...] = getattr(model, "models", ())
    for name in inner:
        check_model(getattr(model, name), users, items)
    for name, value in _parts(model):
        if name.partition(".")[0] in inner:
            continue
        shape = _shape(value)
        if name not in axes:
            if isinstance(value, np.ndarray | Rows):
                raise ValueError(f"{name} has axes that this model does not know")
            continue
        known = axes[name]
        if len(known) != len(shape) and not isinstance(value, Rows):
            raise ValueError(f"{name} has {len(shape)} axes, not {len(known)}")
        for axis, length in zip(known, shape, strict=False):
            if lengths.setdefault(axis, length) != length:
                raise ValueError(f"{name} has {length:,} {axis}, not {lengths[axis]:,}")
    if hasattr(model, "check"):
        model.check()


def _parts(model: Any, name: str = "") -> Iterator[tuple[str, Any]]:
    """Yield what a model holds by its dotted name, each of the type that it should have."""
    hints = get_type_hints(type(model))
    for one in fields(model):
        value, place = getattr(model, one.name), f"{name}{one.name}"
        if not _is(value, hints[one.name]):
            raise ValueError(f"{place} is no {one.type}")
        if isinstance(value, Rows):
            _check_rows(place, value)
            yield place, value
        elif is_dataclass(value):
            yield from _parts(value, f"{place}.")
        else:
            yield place, value


def _is(value: object, hint: Any) -> bool:
    """Tell whether a value is what an annotation says."""
    origin = get_origin(hint)
    if origin in (Union, types.UnionType):
        return any(_is(value, one) for one in get_args(hint))
    if origin is np.ndarray:
        kind = np.dtype(get_args(get_args(hint)[1])[0])
        return (
            isinstance(value, np.ndarray) and value.dtype == kind and value.flags.c_contiguous
        )  # of another byte order, a type is another
    if hint is int:
        return isinstance(value, int) and not isinstance(value, bool) and value >= 0
    if hint is float:
        return isinstance(value, float | int) and not isinstance(value, bool)
    return isinstance(hint, type) and isinstance(value, hint)


def _shape(value: Any) -> tuple[int, ...]:
    """Return the lengths of a value's axes, of sparse rows then the entries; a number is one."""
    if isinstance(value, Rows):
        return len(value), value.columns, value.value.size
    return tuple(value.shape) if isinstance(value, np.ndarray) else (value,)


def _check_rows(name: str, rows: Rows) -> None:
    """Raise ValueError unless these are sparse rows, in each of them every column at most once."""
    for part, value in _parts(rows, f"{name}."):
        if isinstance(value, np.ndarray) and value.ndim != 1:
            raise ValueError(f"{part} has {value.ndim} axes, not 1")
    start, column = rows.start, rows.column
    if not start.size or start[0] != 0 or start[-1] != column.size or np.any(np.diff(start) < 0):
        raise ValueError(f"{name}.start does not ascend from 0 to the {column.size:,} entries")
    if rows.value.size != column.size:
        raise ValueError(f"{name} has {column.size:,} columns and {rows.value.size:,} values")
    if column.size and not 0 <= int(column.min()) <= int(column.max()) < rows.columns:
        raise ValueError(f"{name}.column leads beyond the {rows.columns:,} columns")
    place = rows.row.astype(np.int64) * rows.columns + column
    if np.any(np.diff(place) <= 0) and np.unique(place).size < place.size:
        raise ValueError(f"{name} has a column twice in a row")
