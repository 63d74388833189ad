"""What an audit of ratings runs: the plan and the designs of a level, or of the user's plan."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from unskew.auditing.analyses import Attempts
from unskew.auditing.designs import (
    METRICS,
    AuditDesign,
    Level,
    designs_of_level,
    designs_of_plan,
    plan_of_level,
    tunable_systems,
)
from unskew.auditing.large_data import active_users, affordable
from unskew.auditing.request import (
    Request,
    TrainingRequest,
    check_absent,
    check_worth,
    without_dislikes,
)
from unskew.data.dataset import Dataset
from unskew.data.ratings import Ratings
from unskew.experiment.plan import Plan
from unskew.judging.tied import refuse_order
from unskew.recommend.fit_cost import DataShape
from unskew.ties import EXPECTED
from unskew.worlds.worlds import World

TRIED = 50
"""On the ratings of so many users it is tried whether a system can be trained at all."""


def _affordable(
    plan: Plan, ratings: Ratings, request: Request, attempts: Attempts
) -> tuple[Plan, list[str]]:
    """Leave out systems that cost too much on data of this size; return what stands in for them."""
    level, _ = request.large.level(request.level, len(ratings))
    systems, left_out = affordable(
        plan.systems,
        DataShape.of(ratings),
        level,
        memory=request.large.memory,
    )
    attempts.failures.update({f"system {name}": why for name, why in left_out.items()})
    new = [name for name in systems if name not in plan.systems]
    notes = [f"{name} is run because {' and '.join(left_out)} cost too much here" for name in new]
    return replace(plan, algorithms=systems) if left_out else plan, notes


def _trainable(plan: Plan, ratings: Ratings, attempts: Attempts) -> Plan:
    """Leave out systems that cannot be trained on these ratings, and say which and why.

    Ratings below 0 have no meaning to some.
    """
    if ratings.value.min() >= 0:
        return plan
    users = np.append(np.arange(TRIED), ratings.user[int(np.argmin(ratings.value))])
    part = ratings.take(np.isin(ratings.user, users))
    systems = {}
    for name, system in plan.systems.items():
        if attempts.attempt(f"system {name}", partial(system.fit, part, plan.seed)) is not None:
            systems[name] = system
    return replace(plan, algorithms=systems)


@dataclass(frozen=True, eq=False)
class Chosen:
    """What is run: a plan of all systems, and its designs."""

    plan: Plan
    designs: Sequence[AuditDesign]
    assumed: Sequence[str]
    is_user_plan: bool
    tunable: frozenset[str]
    """Systems whose settings the user did not state."""
    level: Level
    """With the number of splits for data of this size."""


def chosen_of(
    source: World | Dataset,
    plan: Plan | str,
    request: Request,
    training: TrainingRequest,
    attempts: Attempts,
) -> Chosen:
    """Return the plan and designs of a level, or of the user's plan."""
    ratings, rules, seed = source.ratings, training.rules, request.seed
    algorithms, level = training.algorithms, request.level
    is_user_plan = isinstance(plan, Plan)
    notes: list[str] = []
    if isinstance(plan, Plan):
        if plan.ties == EXPECTED:
            raise refuse_order()
        absent = {
            "algorithms": algorithms,
            "designs": request.designs,
            "splits": request.large.splits,
        }
        check_absent(absent, "is in the plan already")
        rule, assumed = plan.relevance, notes
        if rules.stated:
            rule, assumed = rules.of(ratings, source.liked)
        plan = replace(plan, relevance=rule, seed=plan.seed if seed is None else seed)
        algorithms = tuple(plan.systems.values())
    else:
        level, notes = request.large.level(level, len(ratings))
        rule, assumed = rules.of(ratings, source.liked)
        check_worth(ratings, rule)
        plan = plan_of_level(level, rule, algorithms, 0 if seed is None else seed)
        if rule.is_liked(ratings.value).all():
            plan = replace(plan, metrics=without_dislikes(METRICS))
        if algorithms is None:
            plan, stand_ins = _affordable(plan, ratings, request, attempts)
            plan, assumed = _trainable(plan, ratings, attempts), [*assumed, *stand_ins]
    tunable = tunable_systems(plan.systems, algorithms)
    plan, assumed = _judging(plan, ratings, request, [*assumed, *notes])
    return Chosen(
        plan=plan,
        designs=designs_of_plan(plan) if is_user_plan else designs_of_level(level, request.designs),
        assumed=assumed,
        is_user_plan=is_user_plan,
        tunable=tunable,
        level=level,
    )


def _judging(
    plan: Plan, ratings: Ratings, request: Request, assumed: list[str]
) -> tuple[Plan, list[str]]:
    """Draw users where there are many; a plan may state how many itself."""
    large = request.large
    if plan.judged_users is not None:
        check_absent({"users": large.users}, "is in the plan already, as judged_users")
        large = replace(large, users=plan.judged_users)
    judged, notes = large.judged_users(active_users(ratings))
    return replace(plan, judged_users=judged), [*assumed, *notes]
