"""`Outcome`: what became of a task, wherever it was done."""

from __future__ import annotations

import traceback
from collections.abc import Callable, Generator
from dataclasses import dataclass
from typing import Any, TypeVar

from unskew.engine.store import StoreError
from unskew.errors import UnskewError

T = TypeVar("T")


class WorkersError(UnskewError):
    """Workers that cannot be used, or that were lost: no task is to blame."""


@dataclass(frozen=True)
class Outcome:
    """What became of a task: its result, or the report of its failure."""

    task: Any
    result: Any = None
    failure: str | None = None


Outcomes = Generator[Outcome, None, None]
"""Outcomes as they come; to close it is to give the other tasks up."""


def attempt(function: Callable[[T], Any], task: T) -> tuple[Any, str | None]:
    """Do a task; return its result, or the report of its failure."""
    try:
        return function(task), None
    except StoreError:
        raise
    except UnskewError as problem:  # it says what is wrong: where it was raised says nothing more
        return None, str(problem)
    except Exception:
        return None, traceback.format_exc()
