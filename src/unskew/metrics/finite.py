"""Values of metrics that users wrote: finite, or NaN where the metric is undefined.

Sums would take infinity for undefined. Our own formulas return none, so that only the functions of
users are looked at.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from unskew.arrays import F64, Mask
from unskew.errors import DataError
from unskew.metrics.block import Block, ratio

RULE = "it must return a finite number, or nan where it is undefined"


def is_ours(function: Callable[..., Any]) -> bool:
    """Tell whether a formula is part of unskew, and not a user's."""
    return str(getattr(function, "__module__", "")).partition(".")[0] == "unskew"


def check_finite(
    metric: object, block: Block, result: F64 | tuple[F64, F64 | None], *, apart: bool = False
) -> None:
    """Refuse infinity among the values of a block of lists; the error names the first list.

    Parameters
    ----------
    metric
        As messages name it.
    block
        The lists.
    result
        What the formula returned: a row per cutoff, or such a fraction.
    apart
        Whether top and bottom of a fraction are averaged apart, so that their ratio does not
        matter.
    """
    parts = result if isinstance(result, tuple) else (result,)
    values = [np.asarray(part, np.float64) for part in parts if part is not None]
    if len(values) == 2 and not apart:
        values.append(ratio(values[0], values[1]))
    infinite = [np.isinf(value) for value in values]
    if not any(mask.any() for mask in infinite):
        return
    lists = block.hi - block.lo
    row, value = min(
        _first(value, mask, lists) for value, mask in zip(values, infinite, strict=True)
    )
    raise infinite_value(metric, value, block.judged.describe(block.lo + row))


def _first(values: F64, infinite: Mask, lists: int) -> tuple[int, float]:
    """Return the first list with an infinite value, and the value; no list if there is none."""
    if not infinite.any():
        return lists, 0.0
    shape = np.broadcast_shapes(values.shape, (1, lists))
    wide, mask = np.broadcast_to(values, shape), np.broadcast_to(infinite, shape)
    row = int(np.argmax(mask.any(axis=0)))
    return row, float(wide[int(np.argmax(mask[:, row])), row])


def infinite_value(metric: object, value: object, where: str) -> DataError:
    """Return the error of a value that is no number and not NaN.

    Parameters
    ----------
    metric
        As messages name it.
    value
        What was returned.
    where
        For which list, or which other thing.
    """
    return DataError(f"metric {str(metric)!r} returned {value!r} for {where}; {RULE}")
