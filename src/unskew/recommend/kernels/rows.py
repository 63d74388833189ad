"""`Rows` and `Raters`: sparse rows as kernels take them."""

from __future__ import annotations

from typing import NamedTuple

from unskew.arrays import F64, I32, I64


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
