"""Timing: the best and the median of several repetitions, in one process."""

from __future__ import annotations

import gc
import resource
import statistics
import time
from collections.abc import Callable


def seconds(work: Callable[[], object], repeat: int = 5) -> dict[str, float]:
    """Run `work` several times and return its best and median time."""
    times = []
    for _ in range(repeat):
        gc.collect()
        start = time.perf_counter()
        work()
        times.append(time.perf_counter() - start)
    return {"best": min(times), "median": statistics.median(times)}


def peak_mib() -> float:
    """Return the largest amount of memory this process has held, in MiB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
