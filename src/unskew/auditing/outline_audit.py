"""`outline_audit`: what an audit of ratings will do, counted, and a rough time by trial."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import polars as pl

from unskew.auditing.designs import (
    LEVELS,
    AuditDesign,
    designs_of_level,
    plan_of_level,
    tunable_systems,
)
from unskew.auditing.large_data import (
    LargeRequest,
    active_users,
    affordable,
    beyond_limits,
    in_bytes,
)
from unskew.auditing.request import Rules
from unskew.checks import checked, choose
from unskew.data.formats.catalog import load
from unskew.data.ratings import Ratings
from unskew.data.relevance import Relevance
from unskew.errors import DataError, quietly
from unskew.experiment.halving import BUDGET
from unskew.experiment.tune import candidates
from unskew.recommend.fit_cost import DataShape, fit_cost, timed_trial
from unskew.recommend.model import Algorithm
from unskew.report.tables import Table
from unskew.report.text import counted, visible
from unskew.worlds.worlds import World

TEST = 0.2
"""The share of the ratings in the test part of a split."""


@dataclass(frozen=True, eq=False, kw_only=True)
class AuditOutline:
    """What an audit of ratings will do; print it to read it. Made by `outline_audit`."""

    systems: pl.DataFrame
    """By system: `fits`, `settings` tried on each split, `bytes` and `seconds` of all fits."""
    designs: pl.DataFrame
    """By design: `splits`, and about how many `lists` and `scores` each system has on a split."""
    left_out: Mapping[str, str]
    """Systems of the level that are not run, and why."""
    costly: Mapping[str, str]
    """Systems that were named and are run, though a level would leave them out, and why."""

    def __str__(self) -> str:
        """Return the sentence that says most, both tables, and how the seconds were found."""
        fits = counted(int(self.systems["fits"].sum()), "fit")
        total = math.ceil(self.systems["seconds"].sum())
        systems = [
            [name, fits_of_system, settings, None if size is None else in_bytes(size), seconds]
            for name, fits_of_system, settings, size, seconds in self.systems.iter_rows()
        ]
        header = ["system", "fits", "settings tried", "memory of a fit", "processor seconds"]
        names, title = ["design", "splits", "lists", "scores"], "Designs, a system on a split"
        tables = [
            Table.of_rows(header, systems, title="Systems", digits=1),
            Table.of_rows(names, self.designs.rows(), title=title, digits=0),
        ]
        lines = [
            "seconds: one fit of each system on a sample of users and items was timed and scaled; "
            "expect a factor of 3 either way. To rank, to test and to write the report comes on top"
        ]
        lines += [f"{name} is left out: {why}" for name, why in self.left_out.items()]
        lines += [f"{name} is named and run: {why}" for name, why in self.costly.items()]
        return "\n\n".join(
            (
                f"{fits}, about {total:,} s of processor time to train and to score",
                *(table.to_text() for table in tables),
                "\n".join(map(visible, lines)),
            )
        )


@checked
def outline_audit(
    data: object,
    level: str = "default",
    *,
    algorithms: Sequence[Algorithm | str] | Mapping[str, Algorithm] | None = None,
    designs: Sequence[str] | None = None,
    users: int | str | None = None,
    splits: int | None = None,
    tune: bool = True,
    memory: int | str | None = None,
    liked: float | None = None,
    above: float | None = None,
    relevance: Relevance | str | None = None,
) -> AuditOutline:
    """Return what an audit of ratings will do, without running it.

    Fits, lists and scores are counted, and one fit of each system on a sample is timed.

    Parameters
    ----------
    data
        Ratings, a file, the name of a data set, or a `World`.
    level
        `quick`, `default` or `thorough`.
    algorithms, designs, users, splits, tune, memory, liked, above, relevance
        As in `audit`.

    Examples
    --------
    >>> import unskew as us
    >>> shop = us.world("shop", users=60, items=40, seed=3)
    >>> outline = us.auditing.outline_audit(shop, "quick", algorithms=["popularity", "random"])
    >>> outline.systems["fits"].to_list()
    [18, 18]
    """
    source = data if isinstance(data, World) else load(data)
    ratings = source.ratings
    if not len(ratings):
        raise DataError("there are no ratings to audit")
    large = LargeRequest.of(users, splits, memory)
    stage, _ = large.level(LEVELS[choose("level", level, LEVELS)], len(ratings))
    rule, _ = Rules(liked, above, relevance=relevance).of(ratings, source.liked)
    shape = DataShape.of(ratings)
    systems, left_out = plan_of_level(stage, rule, algorithms, 0).systems, dict[str, str]()
    if algorithms is None:
        systems, left_out = affordable(systems, shape, stage, memory=large.memory)
    run = [
        design
        for design in designs_of_level(stage, designs)
        if ratings.time is not None or design.split.name != "temporal"
    ]
    if not run:
        raise DataError("design temporal: needs time stamps")
    is_liked = rule.is_liked(ratings.value)
    judged = large.judged_users(active_users(ratings))[0] or active_users(ratings)
    repeats = 0 if is_liked.all() else stage.most_repeats
    counts = _models(run, repeats)
    tuned = tunable_systems(systems, algorithms) if tune else frozenset()
    return AuditOutline(
        systems=pl.DataFrame(
            [
                _system(name, system, ratings, judged, counts, name in tuned)
                for name, system in systems.items()
            ],
            infer_schema_length=None,
        ),
        designs=pl.DataFrame(
            [_design(design, ratings, judged, float(is_liked.mean())) for design in run]
        ),
        left_out=left_out,
        costly={
            name: reason
            for name, system in systems.items()
            if (reason := beyond_limits(system, shape, stage, large.memory))
        },
    )


def _models(designs: Sequence[AuditDesign], null_repeats: int) -> tuple[int, int]:
    """Return how many models of a system are judged: on splits, and at most on null data."""
    splits = {design.split_key: design.repeats for design in designs}
    null = {
        design.split_key
        for design in designs
        if design.view.intervention is None and design.split.name != "temporal"
    }
    return sum(splits.values()), null_repeats * len(null)


def _system(
    name: str,
    system: Algorithm,
    ratings: Ratings,
    judged: int,
    models: tuple[int, int],
    is_tuned: bool,
) -> dict[str, str | float | None]:
    """Count the fits of a system and time one."""
    settings = len(list(candidates(system, BUDGET))) if is_tuned and system.tuning else 0
    settings = settings if settings > 1 else 0
    on_splits, on_null = models
    fits = on_splits * (1 + settings) + on_null
    cost = fit_cost(system, DataShape.of(ratings))
    with quietly():
        trial = timed_trial(system, ratings)
    return {
        "system": name,
        "fits": fits,
        "settings": settings,
        "bytes": None if cost is None else cost.bytes,
        "seconds": fits * (trial.fit + judged * trial.score_user),
    }


def _design(
    design: AuditDesign, ratings: Ratings, judged: int, liked: float
) -> dict[str, str | int]:
    """Count the lists of a design on one split, and the items in them."""
    targets, per_user = design.view.targets, len(ratings) / active_users(ratings)
    has_one = targets.relevant == "one"
    lists = judged * (liked * TEST * per_user if has_one else 1.0)
    size = len(ratings.items) - (1 - TEST) * per_user
    if targets.drawn is not None:
        size = min(size, targets.drawn + (1.0 if has_one else TEST * per_user))
    return {
        "design": design.name,
        "splits": design.repeats,
        "lists": round(lists),
        "scores": round(lists * max(size, 0.0)),
    }
