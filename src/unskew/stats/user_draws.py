"""Means of systems over users drawn anew: the bootstrap, halves of the users, smaller samples."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np

from unskew.arrays import F64
from unskew.engine.progress import Progress, Steps
from unskew.engine.threads import map_blocks, one_blas_thread
from unskew.errors import DataError, SettingError
from unskew.stats.pairing import Paired

ROWS = 16
"""Draws per product: of fixed size, so that the bits do not depend on threads or memory."""
HELD = 1 << 27
"""Bytes of values held at a time; more metrics than fit are done one after the other."""

Weigh = Callable[[int, F64], None]
"""Fills rows of weights per user, the first row being the draw of the given number."""


def reweighted(
    paired: Paired,
    metrics: Sequence[str],
    weigh: Weigh,
    draws: int,
    threads: int | None = None,
    progress: Progress | None = None,
) -> F64:
    """Return the means draws x metrics x systems with the users weighted anew in each draw.

    Users whom a metric leaves out (NaN) have no weight in it. A draw without any weight is NaN.
    """
    users, systems = len(paired), len(paired.systems)
    out = np.empty((draws, len(metrics), systems))
    group = max(HELD // (8 * users * systems), 1)
    parts = [metrics[low : low + group] for low in range(0, len(metrics), group)]
    starts = range(0, draws, ROWS)
    steps = Steps(len(parts) * len(starts), progress)

    with one_blas_thread():
        for number, part in enumerate(parts):
            held = [_defined(paired.matrix(metric)) for metric in part]

            def fill(low: int, number: int = number, held: list[Held] = held) -> None:
                weights = np.empty((min(ROWS, draws - low), users))
                weigh(low, weights)
                for at, (values, known) in enumerate(held, start=number * group):
                    total = weights.sum(axis=1) if known is None else weights @ known
                    with np.errstate(invalid="ignore", divide="ignore"):
                        out[low : low + len(weights), at] = weights @ values / total[:, None]
                steps.advance()

            map_blocks(fill, starts, threads, size=draws * users)
    return out


Held = tuple[F64, F64 | None]


def _defined(values: F64) -> Held:
    """Return values with 0 where undefined, and 1 for the users that have one; None if all."""
    missing = np.logical_or.reduce(np.isnan(values), axis=1)
    if not missing.any():
        return values, None
    kept = float((~missing).mean())  # means over fewer users, as in `Paired.complete`
    return np.where(missing[:, None], 0.0, values * kept), (~missing).astype(np.float64)


def chosen_metrics(paired: Paired, metrics: str | Sequence[str] | None) -> list[str]:
    """Return the labels of the metrics asked for; all with a value per user unless named."""
    if metrics is None:
        if not paired.metrics:
            raise SettingError("these scores have no metric with a value per user")
        return list(paired.metrics)
    several = [metrics] if isinstance(metrics, str) else list(metrics)
    if not several:
        raise SettingError("no metrics are named")
    return list(dict.fromkeys(paired.label(metric) for metric in several))


def check_two_systems(systems: Sequence[str]) -> None:
    """Raise an error if there are fewer than two systems to order."""
    if len(systems) < 2:
        named = f" ({systems[0]})" if systems else ""
        raise DataError(f"an order needs at least 2 systems, got {len(systems)}{named}")


def percentile_interval(draws: F64, level: float) -> tuple[F64, F64]:
    """Return percentiles over the first axis of those draws that are defined; NaN where none is."""
    flat = draws.reshape(draws.shape[0], math.prod(draws.shape[1:]))
    ends = np.full((2, flat.shape[1]), np.nan)
    known = ~np.isnan(flat).all(axis=0)
    if draws.shape[0] and known.any():
        shares = ((1 - level) / 2, (1 + level) / 2)
        ends[:, known] = np.nanquantile(flat[:, known], shares, axis=0)
    low, high = ends.reshape(2, *draws.shape[1:])
    return low, high
