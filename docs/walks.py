"""Trace what evaluate, gate and audit run on a small case: python docs/walks.py.

Counts the files of the package whose functions run, the Python calls in all threads, and how often
the name of a metric is parsed. Each question is asked twice and the second time is counted: kernels
are compiled by then and modules imported.
"""

from __future__ import annotations

import sys
import threading
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

import unskew as us

PACKAGE = str(Path(us.__file__).parent)
PARSING = {("metrics/names.py", "parse"), ("metrics/names.py", "_parse")}
"""The functions that read the name of a metric."""
METRICS = ("P@10", "nDCG@10")
USERS, ITEMS, LIKED, SEED = 120, 80, 4.0, 7


class Trace:
    """The Python calls of a function, by code."""

    def __init__(self) -> None:
        self.calls: Counter[CodeType] = Counter()

    def note(self, frame: FrameType, event: str, _argument: object) -> None:
        """Count a call; given to `sys.setprofile`."""
        if event == "call":
            self.calls[frame.f_code] += 1

    def of(self, question: Callable[[], Any]) -> Trace:
        """Ask a question and count what it calls."""
        threading.setprofile(self.note)
        sys.setprofile(self.note)
        try:
            question()
        finally:
            sys.setprofile(None)
            threading.setprofile(None)  # type: ignore[arg-type]
        return self

    @property
    def inside(self) -> dict[tuple[str, str], int]:
        """The calls of functions of the package, by file and name."""
        result: Counter[tuple[str, str]] = Counter()
        for code, number in self.calls.items():
            if code.co_filename.startswith(PACKAGE):
                path = Path(code.co_filename).relative_to(PACKAGE).as_posix()
                result[path, code.co_qualname] += number
        return dict(result)

    @property
    def files(self) -> set[str]:
        """The files of the package whose functions run."""
        return {path for (path, name) in self.inside if name != "<module>"}

    @property
    def parsed(self) -> int:
        """How often the name of a metric is parsed."""
        return sum(number for place, number in self.inside.items() if place in PARSING)


def questions() -> dict[str, Callable[[], Any]]:
    """Return the questions, asked of ratings of a world of 120 users.

    A gate decides from judgments and lists alone. With training ratings it also shows what the lead
    is made of, and reference systems, which it tunes and trains: neither changes the verdict.
    """
    ratings = us.world("shop", users=USERS, items=ITEMS, seed=SEED).ratings
    split = us.splits.Random().split(ratings, seed=SEED)[0]
    targets = us.targets.AllItems().lists(split, liked=LIKED)
    systems = {"new": us.recommend.UserKNN(k=20), "old": us.recommend.Popularity()}
    runs = {name: us.rank(one.fit(split.train), targets, 20) for name, one in systems.items()}
    train = {"train": split.train, "liked": LIKED}
    pair = {"candidate": "new", "production": "old"}
    return {
        "evaluate": lambda: us.evaluate(split.test, runs, METRICS, **train),
        "gate": lambda: us.gate(split.test, runs, **pair, liked=LIKED),
        "gate with the lead": lambda: us.gate(split.test, runs, **pair, **train, references=False),
        "gate with references": lambda: us.gate(split.test, runs, **pair, **train),
        "audit": lambda: us.audit(ratings, "quick", liked=LIKED, seed=SEED),
    }


def main() -> None:
    """Print the table."""
    print("| question | files | calls | calls inside | metric names parsed |")
    print("|---|---|---|---|---|")
    for name, question in questions().items():
        question()
        trace = Trace().of(question)
        inside = sum(trace.inside.values())
        total = sum(trace.calls.values())
        print(f"| {name} | {len(trace.files)} | {total:,} | {inside:,} | {trace.parsed:,} |")


if __name__ == "__main__":
    main()
