"""Looks: who tries again on the same test log until it passes must pass a stricter test.

The k-th look at a test log is tested at level alpha / (k (k + 1)): over all looks, however many,
these add up to alpha. A look is a new candidate, production or threshold; the same inputs again are
the same look.
"""

from __future__ import annotations

import hashlib
import json
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from unskew.engine.files import replacing
from unskew.errors import DataError
from unskew.judging.judged import Judged
from unskew.list_keys import ListKeys
from unskew.runs import Run


@dataclass(frozen=True)
class Look:
    """A look at a test log."""

    number: int
    """From 1."""
    alpha: float
    """The level of its tests."""
    test: str
    """The digest of judgments, relevance and metric."""
    inputs: str
    """The digest of lists and settings."""

    @property
    def is_recorded(self) -> bool:
        """Whether looks are counted at all."""
        return self.number > 0


def spent(alpha: float, number: int) -> float:
    """Return the level of the k-th look.

    Examples
    --------
    >>> from unskew.auditing.gate_looks import spent
    >>> [round(spent(0.05, number), 4) for number in (1, 2, 3)]
    [0.025, 0.0083, 0.0042]
    """
    return alpha / (number * (number + 1))


def look_at(
    path: str | os.PathLike[str] | None,
    judged: Judged,
    names: tuple[str, str],
    settings: dict[str, Any],
) -> Look:
    """Return which look at the test log this is, and its level; nothing is written yet."""
    alpha = float(settings["alpha"])
    if path is None:
        return Look(0, alpha, "", "")
    test = _digest(judged.tests.fingerprint, str(judged.relevance), settings["metric"])
    runs = [_digest_of_run(judged.systems[name]) for name in names]
    inputs = _digest(*runs, json.dumps(settings, sort_keys=True))
    before = [one for one in _entries(Path(path)) if one["test"] == test]
    same = [one["look"] for one in before if one["inputs"] == inputs]
    number = same[0] if same else 1 + max((one["look"] for one in before), default=0)
    return Look(number, spent(alpha, number), test, inputs)


def record(path: str | os.PathLike[str], look: Look, facts: dict[str, Any]) -> None:
    """Add a look to the log, unless it is there."""
    entries = _entries(Path(path))
    entry = {"test": look.test, "inputs": look.inputs, "look": look.number, "alpha": look.alpha}
    if any(one["test"] == look.test and one["inputs"] == look.inputs for one in entries):
        return
    lines = [json.dumps(one) for one in [*entries, {**entry, **facts}]]
    with replacing(path) as part:
        part.write_text("\n".join(lines) + "\n", encoding="utf-8")


def _entries(path: Path) -> list[dict[str, Any]]:
    if not path.exists():
        return []
    entries = []
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), start=1):
        try:
            entry = json.loads(line)
            if not {"test", "inputs", "look"} <= entry.keys() or int(entry["look"]) < 1:
                raise ValueError
        except (ValueError, TypeError, AttributeError):
            raise DataError(
                f"{path}, line {number}: this is no log of looks; name the file that unskew gate "
                "--log writes"
            ) from None
        entries.append(entry)
    return entries


def _digest(*parts: str) -> str:
    return hashlib.blake2b("\x1f".join(parts).encode(), digest_size=16).hexdigest()


def _digest_of_run(run: object) -> str:
    assert isinstance(run, Run)
    digest = hashlib.blake2b(digest_size=16)
    for ids in (run.users, run.items):
        text = ids.kind == "text"
        digest.update("\x1f".join(ids.values).encode() if text else ids.values.to_numpy().data)
    for column in (run.start, run.item):
        digest.update(column.data)
    if run.keys is not None:
        digest.update(_digest_of_keys(run.keys).encode())
    return digest.hexdigest()


def _digest_of_keys(keys: ListKeys) -> str:
    """Return the digest of whose lists they are."""
    named = keys.columns(np.arange(len(keys), dtype=np.int32)).values()
    return _digest(*(str(value) for column in named for value in column))
