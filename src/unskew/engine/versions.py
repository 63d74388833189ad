"""Which versions a result was made with."""

from __future__ import annotations

import platform
import sys
from functools import cache
from importlib import metadata

_STANDS_ON = ("numpy", "polars", "numba")


def versions() -> dict[str, str]:
    """Return the versions of unskew, Python and what it stands on."""
    # Of the code that runs: metadata may be of another installation, where PYTHONPATH names it.
    ours = sys.modules[__name__.partition(".")[0]].__version__
    result = {"unskew": ours, "python": platform.python_version()}
    return {**result, **{name: _version(name) for name in _STANDS_ON}}


def show_versions() -> None:
    """Print versions and machine, for a bug report."""
    facts = {**versions(), "system": platform.platform(), "machine": platform.machine()}
    for name in ("narwhals", "pandas", "pyarrow", "duckdb"):
        facts[name] = _version(name)
    for name, version in facts.items():
        print(f"{name:8} {version}")


@cache
def _version(name: str) -> str:
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return "not installed"
