"""What it costs to judge one system under all designs of a random split, in one pass or one by one.

Prints CPU seconds per system and design: `alone` is a pass of its own for the design, as it was
before designs shared one; `shared` is what the design adds to a pass that has all the others.

    python benchmarks/one_pass.py [DATASET]
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from time import process_time
from typing import Any

import unskew as us
from unskew.auditing.core.tasks import DEPTH
from unskew.auditing.designs import LEVELS, METRICS, designs_of_level
from unskew.engine.threads import exactly
from unskew.evaluation.scoring import Measures, prepare
from unskew.experiment.plan import Plan
from unskew.experiment.task import system_results
from unskew.judging.judged import Judged
from unskew.judging.rank import rank_designs
from unskew.judging.rank_tiles import RankJob
from unskew.metrics.names import parse

SYSTEMS = {
    "popularity": us.recommend.Popularity(),
    "puresvd": us.recommend.PureSVD(),
    "user-knn": us.recommend.UserKNN(),
    "ease": us.recommend.EASE(),
}


def seconds(function: Callable[[], Any], times: int = 3) -> float:
    """Return the least CPU time of a few calls."""
    spent = []
    for _ in range(times):
        start = process_time()
        function()
        spent.append(process_time() - start)
    return min(spent)


def main(dataset: str = "ml-1m") -> None:
    """Time every system on one split of a data set."""
    designs = [one for one in designs_of_level(LEVELS["quick"]) if one.name not in LEFT_OUT]
    split = next(iter(designs[0].split.each(us.load(dataset).ratings, 0)))
    plan = Plan(designs[0].split, us.targets.AllItems(), [SYSTEMS["ease"]], us.Relevance(liked=4))
    wanted = {name: parse(name) for name in METRICS}
    lists = {
        one.name: one.view.targets.lists(one.view.apply(split, 0), plan.relevance, seed=0)
        for one in designs
    }
    for name, one in lists.items():
        start = process_time()
        _ = one.judgments
        print(f"{name:13s} {len(one):9,} lists {int(one.size.sum()):12,} targets", end="  ")
        print(f"drawn and judged in {process_time() - start:.2f} s")
    asked = [(Judged.of_lists(one, {}), Measures.of(wanted)) for one in lists.values()]
    run = RankJob(lists["all-items"], DEPTH, judged=False)
    for name, system in SYSTEMS.items():
        model = system.fit(split.train, 0)
        jobs = {
            design: prepare(Judged.of_lists(one, {"": model}), wanted).job
            for design, one in lists.items()
        } | {"run": run}
        everything = list(jobs.values())
        whole = seconds(lambda: rank_designs(model, everything))  # noqa: B023
        print(f"\n{name}: alone, shared")
        for design, job in jobs.items():
            alone = seconds(lambda: rank_designs(model, [job]))  # noqa: B023
            others = [one for one in everything if one is not job]
            shared = whole - seconds(lambda: rank_designs(model, others))  # noqa: B023
            print(f"  {design:13s} {alone:6.3f} {max(shared, 0.0):6.3f}")
        judged = seconds(
            lambda: system_results(asked, model, ("with-test",), [run], ties=plan.ties, seed=0)  # noqa: B023
        )
        print(f"  one pass {whole:.3f}; with metrics and notes {judged:.3f}")


LEFT_OUT = ("u1r", "temporal")
"""Designs on other splits."""

if __name__ == "__main__":
    with exactly(1):
        main(*sys.argv[1:2])
