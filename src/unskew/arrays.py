"""Types of arrays, declared once, and the one form in which kernels see data."""

from __future__ import annotations

from typing import Any

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
