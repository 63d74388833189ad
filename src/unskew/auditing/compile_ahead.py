"""Kernels compiled ahead: on request, or in a process of its own while an audit reads its data.

The first audit after installation spends most of its time on compiling. Compiled kernels are kept
on disk, where every process finds them; so a second process calls, on next to no data, what the
audit will need later. It changes no number, and where it fails the audit compiles for itself.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

import numpy as np

from unskew.engine.compiled import compile_always, is_compiled
from unskew.engine.threads import available, python_beside
from unskew.errors import quietly

if TYPE_CHECKING:
    from unskew.splits.split import Split

USERS, ITEMS = 30, 20
BASELINES = ("popularity", "random")


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
def compile_evaluation() -> None:
    """Rank, judge and compare on next to no data, with every metric that we have."""
    from unskew.evaluation.evaluate import evaluate
    from unskew.judging.judge import judge
    from unskew.judging.rank import rank
    from unskew.metrics.names import REGISTRY
    from unskew.recommend.registry import algorithm
    from unskew.splits.duplicate_users import user_groups
    from unskew.stats.compare.compare import compare
    from unskew.targets.designs import AllItems

    compile_always()
    split = _split()
    lists = AllItems().lists(split, liked=4)
    runs = {name: rank(algorithm(name).fit(split.train), lists, 10) for name in BASELINES}
    names = [f"{name}@10" for name, definition in REGISTRY.items() if not definition.is_user_code]
    scores = evaluate(judge(split.test, runs, train=split.train, liked=4), names)
    compare(scores, "P@10")
    user_groups(split.train)


@quietly()
def compile_all() -> None:
    """Train, rank, judge and compare on next to no data."""
    from unskew.auditing.audit import audit
    from unskew.auditing.designs import LEVELS, METRICS
    from unskew.engine.rng import generator
    from unskew.evaluation.evaluate import evaluate
    from unskew.judging.rank import rank
    from unskew.recommend.registry import algorithm
    from unskew.targets.designs import AllItems, TestTargets

    compile_always()
    split = _split()
    models = {
        name: algorithm(name).fit(split.train, generator(0, name))
        for name in LEVELS["quick"].algorithms
    }
    for targets in (AllItems(), TestTargets()):
        evaluate(targets.lists(split, liked=4), models, METRICS)
    lists = AllItems().lists(split, liked=4)
    runs = {name: rank(model, lists, 10) for name, model in models.items()}
    audit(judgments=split.test, runs=runs, train=split.train, liked=4, plan="quick")


def _split() -> Split:
    """Return next to no data, cut."""
    from unskew.data.read.ratings_files import read_ratings
    from unskew.splits.random import Random

    user, item = np.divmod(np.arange(USERS * ITEMS), ITEMS)
    rated = (7 * user + 3 * item) % 5 < 3
    rating = 1 + (user + item * item) % 5
    ratings = read_ratings({"user": user[rated], "item": item[rated], "rating": rating[rated]})
    return Random(test=0.2).split(ratings)[0]


if __name__ == "__main__":
    compile_all()
