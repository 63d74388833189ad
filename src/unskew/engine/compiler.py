"""The only importer of numba: it compiles kernels and keeps them on disk.

A compiled kernel lies beside its module or, where that folder cannot be written, in numba's cache
folder of the user (`NUMBA_CACHE_DIR` moves it). It is found again as long as the text of its
module, and of every module of ours that this one imports, is the same: an update that changes no
kernel costs no compilation, and one that changes a kernel recompiles those that call it. Where no
folder can be written at all, kernels are compiled anew in each process, and one notice says so.
"""

from __future__ import annotations

import hashlib
import re
import sys
import warnings
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

from unskew.errors import DataWarning, UnskewError, address_limit

try:
    import numba
    from numba.core.caching import FunctionCache, IndexDataCacheFile
    from numba.core.runtime.nrt import rtsys
except OSError as problem:  # its library is there, but not the room for it
    raise UnskewError(f"the compiler cannot be loaded ({problem}){address_limit()}") from problem

_without_cache = False


def dispatcher(function: Callable[..., Any], options: dict[str, Any]) -> Any:
    """Return what compiles `function` at its first call, or finds it on disk."""
    result = numba.njit(**options)(function)
    try:
        result._cache = _KernelCache(function)
    except RuntimeError:  # numba found no folder it may write to
        global _without_cache
        if not _without_cache:
            _without_cache = True
            warnings.warn(
                "no folder for compiled kernels can be written, so each process compiles them "
                "again (some seconds); set NUMBA_CACHE_DIR to a writable folder to keep them",
                DataWarning,
                stacklevel=3,
            )
    return result


class _KernelFiles(IndexDataCacheFile):
    """The files of a kernel: what an earlier version left is no kernel of this one."""

    def _load_index(self) -> Any:
        try:
            return super()._load_index()  # type: ignore[no-untyped-call]
        except (ImportError, AttributeError):  # a class of its arguments has moved since
            return {}


class _KernelCache(FunctionCache):
    """Compiled kernels on disk, which know whom they call."""

    def __init__(self, function: Callable[..., Any]) -> None:
        super().__init__(function)  # type: ignore[no-untyped-call] # numba has no types
        stamp = source_stamp(function.__module__)
        files: Any = _KernelFiles
        self._cache_file = files(self.cache_path, self._impl.filename_base, stamp)

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        """Load a kernel without what numba needs to compile one: a fifth of a second less."""
        rtsys.initialize(target_context)
        with self._guard_against_spurious_io_errors():
            return self._load_overload(sig, target_context)  # type: ignore[no-untyped-call]


@cache
def source_stamp(module: str) -> str:
    """Return a digest of the text of a module and of all modules of ours that it imports.

    numba looks at the module alone. But the machine code of a kernel holds the kernels that it
    calls and the constants that it reads, wherever they were written.
    """
    digest = hashlib.sha256()
    for name in sorted(_imported(module)):
        digest.update(_text(name).encode())
    return digest.hexdigest()


def _imported(module: str) -> set[str]:
    """Return the module and those of ours that it imports, and so on; the decorators aside."""
    names, new = set[str](), {module}
    while new:
        name = new.pop()
        names.add(name)
        new |= set(re.findall(r"^from (unskew[.\w]*) import", _text(name), re.MULTILINE)) - names
        new.discard("unskew.engine.compiled")
    return names


@cache
def _text(module: str) -> str:
    file = sys.modules[module].__file__
    assert file is not None
    return Path(file).read_text(encoding="utf-8")
