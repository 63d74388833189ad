"""`Rows`: sparse rows as kernels take them."""

from __future__ import annotations

from typing import NamedTuple

from unskew.arrays import F64, I32, I64


class Rows(NamedTuple):
    """A sparse matrix by rows."""

    start: I64
    """Where each row starts; one more entry for the end."""
    column: I32
    value: F64
