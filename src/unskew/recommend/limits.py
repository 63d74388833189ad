"""How large one part of a model may be."""

from __future__ import annotations

from unskew.errors import DataError

LARGEST = 2 << 30
"""Bytes above which a part is refused."""


def most(size: int) -> int:
    """Return how many things of so many bytes fit."""
    return LARGEST // size


def check_size(size: int, what: str, remedy: str) -> None:
    """Refuse what would take too many bytes, before any work."""
    if size > LARGEST:
        raise DataError(
            f"{what} would take {size / 2**30:,.1f} GiB, more than {LARGEST / 2**30:g}; {remedy}"
        )
