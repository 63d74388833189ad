"""The only importer of numba: one decorator for all kernels.

A kernel is compiled at its first call and kept on disk, beside the module or, where that folder
cannot be written, in numba's cache folder of the user (`NUMBA_CACHE_DIR` moves it). Where no
folder can be written at all, kernels are compiled anew in each process, and one notice says so.

Kernels see C-contiguous arrays of fixed dtypes; data is read-only (`frozen`), so that each kernel
is compiled once. They release the interpreter lock and write only into what they return or are
given to fill. No fastmath: the order of a sum is part of the result. Only inside training
(`training_kernel`) may the compiler order sums as suits the processor: the same bits on one type of
processor, other last digits on another.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any, ParamSpec, TypeVar, cast

from unskew.errors import DataWarning, UnskewError, address_limit

try:
    import numba
except OSError as problem:  # its library is there, but not the room for it
    raise UnskewError(f"the compiler cannot be loaded ({problem}){address_limit()}") from problem

P = ParamSpec("P")
R = TypeVar("R")

_without_cache = False


def kernel(function: Callable[P, R]) -> Callable[P, R]:
    """Compile `function` at its first call, cached on disk where that is possible."""
    return _compiled(function, {})


def training_kernel(function: Callable[P, R]) -> Callable[P, R]:
    """Compile a kernel of training, in which sums may be taken in any order."""
    return _compiled(function, {"fastmath": {"reassoc", "contract", "nsz"}})


def is_compiled(function: Callable[..., Any]) -> bool:
    """Tell whether a kernel has been compiled on this machine, or cannot be kept there at all."""
    dispatcher = cast("Any", function)
    folder, function = dispatcher.stats.cache_path, dispatcher.py_func
    if folder is None:
        return True
    name = f"{function.__module__.rpartition('.')[2]}.{function.__qualname__}"
    return any(Path(folder).glob(f"{name}-*.nbi"))


def _compiled(function: Callable[P, R], more: dict[str, Any]) -> Callable[P, R]:
    options: dict[str, Any] = {"nogil": True, "error_model": "numpy", **more}
    try:
        return cast("Callable[P, R]", numba.njit(cache=True, **options)(function))
    except RuntimeError:  # numba found no folder it may write to
        global _without_cache
        if not _without_cache:
            _without_cache = True
            warnings.warn(
                "no folder for compiled kernels can be written, so each process compiles them "
                "again (some seconds); set NUMBA_CACHE_DIR to a writable folder to keep them",
                DataWarning,
                stacklevel=2,
            )
        return cast("Callable[P, R]", numba.njit(**options)(function))
