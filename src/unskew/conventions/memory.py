"""What several conventions have in common, kept within a bound."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, TypeVar, cast

import numpy as np

from unskew.engine.threads import new_lock

T = TypeVar("T")
BUDGET = 256 << 20
"""In bytes; what was computed first is given up first, and computed again where it is needed."""


@dataclass(eq=False)
class Memory:
    """Arrays by what they depend on."""

    budget: int = BUDGET
    size: int = 0
    _kept: dict[object, tuple[Any, int]] = field(default_factory=dict)
    """Results, and their sizes when they came: an object may keep more later."""
    _lock: Any = field(default_factory=new_lock)

    def once(self, key: object, compute: Callable[[], T]) -> T:
        """Return what is kept under a key; compute it where it is not."""
        known = self._kept.get(key)
        if known is not None:
            return cast("T", known[0])
        result = compute()
        size = bytes_of(result)
        with self._lock:
            if key not in self._kept:
                self._kept[key] = result, size
                self.size += size
            while self.size > self.budget and len(self._kept) > 1:
                self.size -= self._kept.pop(next(iter(self._kept)))[1]
        return result

    def __len__(self) -> int:
        return len(self._kept)

    def __getstate__(self) -> dict[str, Any]:
        return {"budget": self.budget}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__init__(state["budget"])  # type: ignore[misc]


def bytes_of(value: object) -> int:
    """Return the size of an array, or of all arrays in a tuple or an object."""
    if isinstance(value, np.ndarray):
        return int(value.nbytes)
    # A copy: another thread may use the object at the same time, and add what it caches.
    parts = value if isinstance(value, tuple) else list(vars(value).values())
    return sum(bytes_of(part) for part in parts if isinstance(part, np.ndarray))
