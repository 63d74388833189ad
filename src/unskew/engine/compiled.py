"""Decorators of kernels: what numba compiles, or, on little data, Python runs as it stands.

Kernels see C-contiguous arrays of fixed dtypes; data is read-only (`frozen`), so that each kernel
is compiled once. They release the interpreter lock and write only into what they return or are
given to fill. No fastmath: the order of a sum is part of the result. Only inside training
(`training_kernel`) may the compiler order sums as suits the processor: the same bits on one type of
processor, other last digits on another.

numba is imported when the first kernel is needed: a command that needs none, or has little data for
those of `plain_kernel`, does without it.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from functools import cached_property, update_wrapper
from pathlib import Path
from typing import Any, ClassVar, ParamSpec, TypeVar, cast

import numpy as np

P = ParamSpec("P")
R = TypeVar("R")
F = TypeVar("F", bound=Callable[..., Any])

PLAIN_WARM = 400_000
"""So many entries of arrays Python walks, all calls of a process together, less than a quarter of
them in one call, before compiled kernels are loaded from disk: that takes longer."""
PLAIN_COLD = 4_000_000
"""The same where kernels would have to be compiled first, which takes seconds."""


def kernel(function: Callable[P, R]) -> Callable[P, R]:
    """Compile `function` when it is first called, or find it on disk."""
    return cast("Callable[P, R]", Kernel(function))


def plain_kernel(function: F) -> F:
    """Mark a kernel that gives the same bits when Python runs it, and let it where data is little.

    Python must see what numba sees: no sum of small integers grows beyond their dtype, nothing is
    divided by zero, no logarithm or power is taken. The tests run each both ways.
    """
    return cast("F", Kernel(function, is_plain=True))


def training_kernel(function: Callable[P, R]) -> Callable[P, R]:
    """Compile a kernel of training, in which sums may be taken in any order."""
    return cast("Callable[P, R]", Kernel(function, fastmath={"reassoc", "contract", "nsz"}))


class Kernel:
    """A function over arrays, compiled when that is needed."""

    walked = 0
    """Entries of arrays that Python walked so far in this process."""
    loaded: ClassVar[list[Kernel]] = []
    """Those that numba has."""

    def __init__(
        self, function: Callable[..., Any], *, is_plain: bool = False, **options: Any
    ) -> None:
        update_wrapper(self, function)
        self.py_func = function
        self._name = function.__qualname__
        self.is_plain = is_plain
        """Whether Python may run it as it stands."""
        self.options: dict[str, Any] = {"nogil": True, "error_model": "numpy", **options}

    def __call__(self, *arguments: Any, **named: Any) -> Any:
        """Run the function."""
        if self.is_plain and "dispatcher" not in self.__dict__:
            size = max(one.size for one in (*arguments, *named.values()) if hasattr(one, "size"))
            if self._is_little(size):
                return _as_compiled(self.py_func(*arguments, **named))
        return self.dispatcher(*arguments, **named)

    def __reduce__(self) -> str:
        return self._name  # a worker finds it under its name

    @cached_property
    def dispatcher(self) -> Any:
        """What numba made of the function."""
        from unskew.engine.compiler import dispatcher

        Kernel.loaded.append(self)
        return dispatcher(self.py_func, self.options)

    @property
    def _numba_type_(self) -> Any:
        """How numba sees a kernel that another one calls."""
        return self.dispatcher._numba_type_

    @cached_property
    def _limit(self) -> int:
        """How much Python walks before the kernel is taken from disk, or compiled."""
        python = f"py{sys.version_info[0]}{sys.version_info[1]}"
        name = f"{self.__module__.rpartition('.')[2]}.{self._name}-*.{python}*.nbi"
        given = os.environ.get("NUMBA_CACHE_DIR")
        if given:
            return PLAIN_WARM if any(Path(given).glob(f"*/{name}")) else PLAIN_COLD
        home = Path(self.py_func.__code__.co_filename).parent
        if any((home / "__pycache__").glob(name)):
            return PLAIN_WARM
        # Where the folder cannot be written, kernels are kept elsewhere, or nowhere.
        return PLAIN_COLD if os.access(home, os.W_OK) else PLAIN_WARM

    def _is_little(self, entries: int) -> bool:
        """Tell whether Python walks through the entries sooner than a compiled kernel is there."""
        if are_kernels_loaded() and self._limit == PLAIN_WARM:
            return False
        if 4 * entries >= self._limit:
            return False
        Kernel.walked += entries
        return Kernel.walked <= self._limit


def are_kernels_loaded() -> bool:
    """Tell whether numba is at hand in this process: loading it takes a third of a second."""
    return "unskew.engine.compiler" in sys.modules


def compile_always() -> None:
    """Let Python run no kernel in this process any more, however little the data."""
    Kernel.walked = PLAIN_COLD + 1


def compiled_kernels() -> dict[str, set[str]]:
    """Return the kernels that this process has compiled or loaded, by the folder they are kept in.

    Those that are kept nowhere are under an empty name.
    """
    kept: dict[str, set[str]] = {}
    for one in Kernel.loaded:
        kept.setdefault(one.dispatcher.stats.cache_path or "", set()).add(one._name)
    return kept


def is_compiled(function: Callable[..., Any]) -> bool:
    """Tell whether a kernel has been compiled on this machine, or cannot be kept there at all."""
    one = cast("Kernel", function)
    folder = one.dispatcher.stats.cache_path
    name = f"{one.__module__.rpartition('.')[2]}.{one._name}"
    return folder is None or any(Path(folder).glob(f"{name}-*.nbi"))


def _as_compiled(result: Any) -> Any:
    """Return numbers as compiled kernels return them: Python's own."""
    if isinstance(result, tuple):
        return tuple(map(_as_compiled, result))
    return result.item() if isinstance(result, np.generic) else result
