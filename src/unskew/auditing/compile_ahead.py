"""Kernels compiled ahead: in a process of its own, while an audit reads its data.

The first audit after installation spends most of its time on compiling. Compiled kernels are kept
on disk, where every process finds them; so a second process calls, on next to no data, what the
audit will need later. It changes no number, and where it fails the audit compiles for itself.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np

from unskew.engine.compiled import is_compiled
from unskew.engine.threads import available, python_beside
from unskew.errors import quietly

USERS, ITEMS = 30, 20


@contextmanager
def compiling_ahead() -> Iterator[None]:
    """Compile in another process, if there are processors for it and kernels to compile."""
    from unskew.judging.rank_kernels import top_of_tile

    if available() < 2 or is_compiled(top_of_tile):
        yield
        return
    with python_beside("unskew.auditing.compile_ahead"):
        yield


@quietly()
def compile_all() -> None:
    """Train, rank, judge and compare on next to no data."""
    from unskew.auditing.designs import LEVELS, METRICS
    from unskew.auditing.run import audit
    from unskew.data.readers import read_ratings
    from unskew.engine.rng import generator
    from unskew.evaluation.evaluate import evaluate
    from unskew.judging.rank import rank
    from unskew.recommend.registry import algorithm
    from unskew.splits.random import Random
    from unskew.targets.designs import AllItems, TestTargets

    user, item = np.divmod(np.arange(USERS * ITEMS), ITEMS)
    some = (7 * user + 3 * item) % 5 < 3
    rating = 1 + (user + item * item) % 5
    ratings = read_ratings({"user": user[some], "item": item[some], "rating": rating[some]})
    split = Random(test=0.2).split(ratings)[0]
    models = {
        name: algorithm(name).fit(split.train, generator(0, name))
        for name in LEVELS["quick"].algorithms
    }
    for targets in (AllItems(), TestTargets()):
        evaluate(targets.lists(split, liked=4), models, METRICS)
    lists = AllItems().lists(split, liked=4)
    runs = {name: rank(model, lists, 10) for name, model in models.items()}
    audit(judgments=split.test, runs=runs, train=split.train, liked=4, plan="quick")


if __name__ == "__main__":
    compile_all()
