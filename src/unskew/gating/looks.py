"""Looks: who tries again on the same test log until it passes must pass a stricter test.

The k-th look at a test log is tested at level alpha / (k (k + 1)): over all looks, however many,
these add up to alpha. A look is a new candidate, production or threshold; the same inputs again are
the same look.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from unskew.arrays import I64
from unskew.checks import as_count, check, choose, shown
from unskew.engine.files import reading, replacing
from unskew.engine.system import open_regular
from unskew.errors import DataError
from unskew.gating.checks import HOLD, NOT_SETTLED, PROMOTE
from unskew.judging.judged import Judged
from unskew.runs import Run

MOST_LOOKS = 1_000_000
"""The largest number of a look that a log may hold."""
_KEYS = {
    "test": str,
    "inputs": str,
    "look": int,
    "alpha": float,
    "metric": str,
    "verdict": str,
    "candidate": str,
    "production": str,
}
"""What a line of the log holds."""


@dataclass(frozen=True)
class Look:
    """A look at a test log."""

    number: int
    """From 1; 0 where looks are not counted."""
    alpha: float
    """The level of its tests."""
    test: str = ""
    """The digest of judgments, relevance and metric."""
    inputs: str = ""
    """The digest of lists and settings."""

    @property
    def is_recorded(self) -> bool:
        """Whether looks are counted at all."""
        return self.number > 0


def spent(alpha: float, number: int) -> float:
    """Return the level of the k-th look.

    Examples
    --------
    >>> from unskew.gating.looks import spent
    >>> [round(spent(0.05, number), 4) for number in (1, 2, 3)]
    [0.025, 0.0083, 0.0042]
    """
    return alpha / (number * (number + 1))


def digests_of(
    judged: Judged, names: tuple[str, str], settings: dict[str, Any], groups: I64 | None = None
) -> tuple[str, str]:
    """Return the digests of the test log and of what is tested on it, by which groups of users."""
    test = _digest(judged.tests.fingerprint, str(judged.relevance), settings["metric"])
    runs = [_digest_of_run(judged.systems[name]) for name in names]
    if groups is not None:
        runs.append(hashlib.blake2b(groups.tobytes()).hexdigest())
    return test, _digest(*runs, json.dumps(settings, sort_keys=True))


def look_at(path: str | os.PathLike[str], digests: tuple[str, str], alpha: float) -> Look:
    """Return which look at the test log this is, and its level; nothing is written yet."""
    test, inputs = digests
    before = {entry["inputs"]: entry["look"] for entry in read_log(path) if entry["test"] == test}
    # Their count too: up to 0.2.0 gates that ran at the same time shared a number.
    number = before.get(inputs) or 1 + max(len(before), *before.values(), 0)
    return Look(number, spent(alpha, number), test, inputs)


def record(path: str | os.PathLike[str], look: Look, facts: dict[str, Any]) -> None:
    """Add a look to the log, unless it is there."""
    entries = read_log(path)
    entry = {"test": look.test, "inputs": look.inputs, "look": look.number, "alpha": look.alpha}
    if any(entry["test"] == look.test and entry["inputs"] == look.inputs for entry in entries):
        return
    lines = [json.dumps(row) for row in [*entries, {**entry, **facts}]]
    with replacing(path) as part:
        part.write_text("\n".join(lines) + "\n", encoding="utf-8")


def read_log(path: str | os.PathLike[str]) -> list[dict[str, Any]]:
    """Return the looks of a log; `DataError`, with line and key, for anything else."""
    final = Path(os.path.realpath(path))
    if not os.path.lexists(final):
        return []
    try:
        with reading(path), open_regular(final) as file:
            text = file.read().decode()
    except DataError as problem:
        raise DataError(f"{problem}; name the file that unskew gate --log writes") from None
    entries = []
    for number, line in enumerate(text.removesuffix("\n").split("\n") if text else [], start=1):
        try:
            entries.append(_entry(line))
        except ValueError as problem:
            raise DataError(
                f"{path}, line {number}: this is no log of looks: {problem}. Restore the line, or "
                "name a file that unskew gate --log wrote"
            ) from None
    return entries


def _entry(line: str) -> dict[str, Any]:
    """Read a line of the log; ValueError for what this module did not write."""
    try:
        entry = json.loads(line, object_pairs_hook=_without_repeats)
    except json.JSONDecodeError as problem:
        reason = f"{problem.msg} at character {problem.pos + 1}"
        raise ValueError(f"it is cut short or changed ({reason})") from None
    except RecursionError:
        raise ValueError("it is nested too deeply") from None
    if not isinstance(entry, dict) or set(entry) != set(_KEYS):
        raise ValueError(f"it must be an object with {', '.join(_KEYS)}, got {shown(entry)}")
    for name, kind in _KEYS.items():
        check(name, entry[name], kind)
    for name in ("test", "inputs"):
        if not re.fullmatch("[0-9a-f]{32}", entry[name]):
            raise ValueError(f"{name} must be 32 hexadecimal digits, got {shown(entry[name])}")
    as_count("look", entry["look"], 1, MOST_LOOKS)
    if not 0 < entry["alpha"] < 0.5:
        raise ValueError(f"alpha must lie between 0 and 0.5, got {shown(entry['alpha'])}")
    choose("verdict", entry["verdict"], (PROMOTE, HOLD, NOT_SETTLED))
    return entry


def _without_repeats(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    content = dict(pairs)
    if len(content) < len(pairs):
        raise ValueError(f"a key occurs twice among {shown([name for name, _ in pairs])}")
    return content


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
        # Whose lists they are.
        named = run.keys.columns(np.arange(len(run.keys), dtype=np.int32)).values()
        digest.update(_digest(*(str(value) for column in named for value in column)).encode())
    return digest.hexdigest()
