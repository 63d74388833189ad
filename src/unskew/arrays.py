"""Types of arrays, declared once, and the forms in which kernels see data."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

F64 = NDArray[np.float64]
F32 = NDArray[np.float32]
I64 = NDArray[np.int64]
I32 = NDArray[np.int32]
I8 = NDArray[np.int8]
U64 = NDArray[np.uint64]
U32 = NDArray[np.uint32]
U16 = NDArray[np.uint16]
U8 = NDArray[np.uint8]
Mask = NDArray[np.bool_]
Objects = NDArray[np.object_]
Floats = NDArray[np.floating[Any]]
"""Doubles, or single precision where a model works in it."""
Tile = F64 | F32
"""Scores of a tile of users: doubles, or single precision where a model works in it."""


def frozen(array: NDArray[Any]) -> NDArray[Any]:
    """Return a read-only view, the one form in which kernels see data."""
    view = np.ascontiguousarray(array).view()
    view.flags.writeable = False
    return view


class Rows(NamedTuple):
    """A sparse matrix by rows."""

    start: I64
    """Where each row starts; one more entry for the end."""
    column: I32
    value: F64


class Raters(NamedTuple):
    """The entries of a sparse matrix by columns: their rows, and their places by rows."""

    start: I64
    """Where each column starts; one more entry for the end."""
    row: I32
    place: I64
