"""The way to the studies, a distribution of their own: no other file imports `unskew_studies`."""

from __future__ import annotations

from importlib import import_module
from importlib.util import find_spec
from types import ModuleType
from typing import TYPE_CHECKING, Any, Never

from unskew.errors import UnskewError

if TYPE_CHECKING:
    from unskew_studies.run import study as study

STUDIES = "unskew_studies"
PACKAGES = ("unskew", STUDIES)
"""Whose classes are ours, and not a user's."""


def import_studies(module: str, purpose: str) -> ModuleType:
    """Return a module of the studies; raise an error where they are not installed.

    Parameters
    ----------
    module
        Its name inside the package, such as `librec`.
    purpose
        What needs it, as the error names it.
    """
    if find_spec(STUDIES) is None:
        raise _missing(purpose)
    return import_module(f"{STUDIES}.{module}")


def __getattr__(name: str) -> Any:
    """Load `study` at its first use: it imports nearly all of unskew."""
    if name != "study":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return _study_without_package if find_spec(STUDIES) is None else import_studies("run", "").study


def _study_without_package(*_arguments: object, **_settings: object) -> Never:
    """Raise an error: `study` is part of the package unskew-studies."""
    raise _missing("study")


def _missing(purpose: str) -> UnskewError:
    return UnskewError(
        f"{purpose} needs the package unskew-studies: pip install unskew-studies (from a clone: "
        "pip install ./studies)"
    )
