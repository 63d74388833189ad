"""Wrong calls: commands with a mistyped option, a bad value, another file; counted.

A call that is wrong ends in an error of one line with a documented exit code; one that happens to
be right does its work. Neither ends in a traceback, and a refused call writes nothing.
"""

from __future__ import annotations

import io
import json
import os
import tempfile
from collections import Counter
from collections.abc import Iterator
from contextlib import chdir, redirect_stderr, redirect_stdout
from pathlib import Path
from typing import Any

import numpy as np

from soak_commands import CODES, GATE_CODES, draw, write_data
from unskew.cli import main

VALUES = (
    "", " ", "nonsense", "-1", "0", "1e999", "nan", "2.5", "4,5", "user", "P@", "nDCG@0", "a\tb",
    "user=item", "=cmd", "../x", ".", "missing.csv", "ε", "--", "NAME=", "s3://", "reference://x",
    "train.csv", "a.csv", "plan.toml", "view=1", "9" * 30,
)  # fmt: skip
ODD = ("--k", "--test_size", "--random-state", "--qrels", "--metric=", "-z", "--liked=four", "--no")


def change(words: list[str], rng: np.random.Generator) -> list[str]:
    """Make one mistake in a call."""
    at = int(rng.integers(1, len(words)))
    ways = (
        lambda: [*words[:at], *words[at + 1 :]],
        lambda: [*words[:at], words[at][:-1] or "x", *words[at + 1 :]],
        lambda: [*words[:at], VALUES[int(rng.integers(len(VALUES)))], *words[at + 1 :]],
        lambda: [*words, ODD[int(rng.integers(len(ODD)))]],
        lambda: [*words, "--columns", VALUES[int(rng.integers(len(VALUES)))]],
        lambda: [*words[:at], words[-1], *words[at + 1 : -1], words[at]],
        lambda: [*words, *words[at:]],
    )
    return ways[int(rng.integers(len(ways)))]()


def outcome(words: list[str], folder: Path) -> tuple[str, str]:
    """Return how a call ended, and what it said."""
    out, err = io.StringIO(), io.StringIO()
    before = {path: path.stat().st_mtime_ns for path in folder.rglob("*")}
    code = 0
    with chdir(folder), redirect_stdout(out), redirect_stderr(err):
        try:
            main(words)
        except SystemExit as stop:
            code = stop.code if isinstance(stop.code, int) else 1
        except BaseException as problem:
            return "traceback", f"{type(problem).__name__}: {problem}"
    said = err.getvalue()
    if "Traceback" in said or "Traceback" in out.getvalue():
        return "traceback", said
    if code not in (GATE_CODES if words[0] == "gate" else CODES):
        return "other exit code", f"{code}: {said}"
    if code == 0 or words[0] == "gate":
        return "done", ""
    changed = {path for path in folder.rglob("*") if before.get(path) != path.stat().st_mtime_ns}
    if any(path.is_file() for path in changed):
        return "half-written", str(sorted(changed))
    lines = [line for line in said.splitlines() if "rror" in line]
    lines += [line for line in out.getvalue().splitlines() if "Usage" in line]  # a group alone
    return ("refused", "") if lines else ("no message", said)


def count_calls(count: int, first: int) -> Iterator[dict[str, Any]]:
    """Make wrong calls; yield after each one the outcomes of all so far."""
    outcomes: Counter[str] = Counter()
    problems: list[dict[str, Any]] = []
    os.environ["COLUMNS"] = "200"
    for seed in range(first, first + count):
        rng = np.random.default_rng([17, seed])
        with tempfile.TemporaryDirectory() as temporary:
            folder = Path(temporary) / "data"
            write_data(folder, int(rng.integers(4)))
            words = change(list(draw(rng).arguments), rng)
            kind, said = outcome(words, folder)
        outcomes[kind] += 1
        if kind not in ("refused", "done"):
            problems.append({"seed": seed, "words": words, "outcome": kind, "said": said[-500:]})
            print(json.dumps(problems[-1]), flush=True)
        yield {
            "cases": seed - first + 1,
            "first": first,
            "outcomes": dict(outcomes),
            "problems": problems[:20],
        }
