"""Old names of public functions and classes: they work for a while, and warn.

A package that renames a public name keeps the old one in the table of its `__init__.py`:

    __getattr__, __dir__, __all__ = attach_renamed(
        __name__, __file__, {"old": Renamed("stats.new", since="0.3.0", removal="0.4.0")}
    )

docs/compatibility.md says how long. Packages without old names do not need this module.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import reduce
from importlib import import_module
from typing import Any


@dataclass(frozen=True)
class Renamed:
    """Where a name went."""

    new: str
    """The new name, as it is written after `us.`: `stats.kendall`."""
    since: str
    """The version that renamed it."""
    removal: str
    """The version that no longer knows the old name."""


def attach_renamed(
    package: str, file: str, renamed: Mapping[str, Renamed]
) -> tuple[Callable[[str], Any], Callable[[], list[str]], list[str]]:
    """Attach the public names of a package, as lazy_loader does, and its old names.

    Parameters
    ----------
    package, file
        `__name__` and `__file__` of the package.
    renamed
        The old names, each with its new one. They are in no list of names.
    """
    import lazy_loader

    present, listed, names = lazy_loader.attach_stub(package, file)
    top, _, inner = package.partition(".")

    def look_up(name: str) -> Any:
        if name not in renamed:
            return present(name)
        one = renamed[name]
        old = f"us.{inner}.{name}" if inner else f"us.{name}"
        warnings.warn(
            f"{old} is now us.{one.new}, since unskew {one.since}; the old name is removed in "
            f"unskew {one.removal}",
            DeprecationWarning,
            stacklevel=2,
        )
        return reduce(getattr, one.new.split("."), import_module(top))

    return look_up, listed, names
