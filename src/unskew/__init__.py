"""unskew: bias-aware offline evaluation of recommender systems.

>>> import unskew as us
>>> test = {"user": ["ann", "ann", "bob"], "item": ["x", "y", "z"], "rating": [5, 1, 4]}
>>> print(us.evaluate(test, {"mine": {"ann": ["y", "x"], "bob": ["z"]}}, "P@1", liked=4).mean())
{'mine': {'P@1': 0.5}}
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from unskew.data.ratings import Ids, Ratings
    from unskew.data.readers import read_ratings
    from unskew.data.relevance import Relevance
    from unskew.errors import DataError, DataWarning, SettingError, UnknownName, UnskewError
    from unskew.evaluation import evaluate
    from unskew.metrics.names import Metric
    from unskew.runs import Run, read_run
    from unskew.scores import Scores
    from unskew.versions import show_versions

__version__ = "0.1.0"

# Names are loaded at first use (PEP 562), so that importing unskew costs next to nothing.
_HOME = {
    "Ids": "unskew.data.ratings",
    "Ratings": "unskew.data.ratings",
    "Relevance": "unskew.data.relevance",
    "read_ratings": "unskew.data.readers",
    "Run": "unskew.runs",
    "read_run": "unskew.runs",
    "Metric": "unskew.metrics.names",
    "Scores": "unskew.scores",
    "evaluate": "unskew.evaluation",
    "show_versions": "unskew.versions",
    "UnskewError": "unskew.errors",
    "DataError": "unskew.errors",
    "SettingError": "unskew.errors",
    "UnknownName": "unskew.errors",
    "DataWarning": "unskew.errors",
}

__all__ = [
    "DataError",
    "DataWarning",
    "Ids",
    "Metric",
    "Ratings",
    "Relevance",
    "Run",
    "Scores",
    "SettingError",
    "UnknownName",
    "UnskewError",
    "evaluate",
    "read_ratings",
    "read_run",
    "show_versions",
]


def __getattr__(name: str) -> object:
    if name not in _HOME:
        raise AttributeError(f"module 'unskew' has no attribute {name!r}")
    value = getattr(import_module(_HOME[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted([*globals(), *_HOME])
