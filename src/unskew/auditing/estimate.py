"""What an audit will cost, before it is run, and which systems of a level it can afford."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, ClassVar

from unskew.auditing.audit_work import LIKED, AuditWork, together
from unskew.auditing.designs import LEVELS, AuditDesign, Level, designs_of_level, named_systems
from unskew.auditing.large_data import MEMORY, LargeRequest, in_bytes
from unskew.auditing.request import Rules
from unskew.checks import as_count, checked, choose
from unskew.data.catalog import load
from unskew.data.dataset import Dataset
from unskew.data.ratings import Ratings
from unskew.data.relevance import Relevance
from unskew.engine.threads import available
from unskew.errors import DataError, SettingError
from unskew.recommend.costs import (
    Cost,
    DataShape,
    Machine,
    cost_by_trial,
    cost_of,
    on_clock,
    seconds_of,
    this_machine,
)
from unskew.recommend.limits import LARGEST
from unskew.recommend.model import Algorithm
from unskew.recommend.registry import algorithm
from unskew.report.result import Result
from unskew.report.tables import Table
from unskew.report.text import counted
from unskew.worlds.worlds import World

if TYPE_CHECKING:
    import polars as pl

MOST_SECONDS = {"quick": 300.0, "default": 3_600.0, "thorough": 10_800.0}
"""By level: what it may take to train and tune a system, in seconds of one processor of the machine
on which the constants were measured."""
SHARE_OF_MEMORY = 0.5
"""What one fit may take of it."""
STAND_INS = {"user-knn": "item-knn", "ease": "item-knn", "slim": "item-knn", "wrmf": "puresvd"}
"""By system: which one is run in its place where it is left out, unless it is run anyway."""
NEEDED = ("random", "popularity", "smoothed-average", "item-knn", "puresvd")
"""Left out for their memory only, never for their time: an audit of any size has baselines, a
neighbourhood and a model of factors if these fit."""


def affordable(
    systems: Mapping[str, Algorithm],
    shape: DataShape,
    level: Level,
    *,
    memory: int | None = None,
    tune: bool = True,
) -> tuple[dict[str, Algorithm], dict[str, str]]:
    """Return the systems of a level that data of some size allow, and why others are left out.

    A system is left out where one array of its model would take more than 2 GiB, a fit more than
    half of the memory, or to train and tune it more than 5 minutes of processor time (quick), an
    hour (default) or three hours (thorough). Baselines, item-kNN and PureSVD are left out for their
    memory only, and item-kNN stands in for the neighbourhoods and linear models that are left out.
    The rule counts operations: it gives the same systems on every machine.

    Parameters
    ----------
    systems
        Those that a level takes, by name. What a user names is run in any case.
    shape
        Of all ratings.
    level
        How much is done.
    memory
        Bytes that the audit may use; 8 GiB unless given.
    tune
        Whether settings are chosen on each split.

    Examples
    --------
    >>> import unskew as us
    >>> from unskew.auditing.designs import LEVELS
    >>> from unskew.auditing.estimate import affordable
    >>> from unskew.recommend.costs import DataShape
    >>> systems = {"popularity": us.recommend.Popularity(), "ease": us.recommend.EASE()}
    >>> kept, left_out = affordable(systems, DataShape(20_000_000, 138_000, 27_000),
    ...                             LEVELS["quick"])
    >>> list(kept), list(left_out)
    (['popularity', 'item-knn'], ['ease'])
    """
    room = MEMORY if memory is None else memory
    most = MOST_SECONDS.get(level.name, MOST_SECONDS["default"])
    kept: dict[str, Algorithm] = {}
    left_out: dict[str, str] = {}
    for name, one in systems.items():
        why = _beyond(one, shape, level, room, most, tune)
        if why:
            left_out[name] = why
        else:
            kept[name] = one
    for name in left_out:
        other = STAND_INS.get(name)
        if other is None or other in kept or other in left_out:
            continue
        stand_in = algorithm(other)
        if not _beyond(stand_in, shape, level, room, most, tune):
            kept[other] = stand_in
    return kept, left_out


def _beyond(
    system: Algorithm, shape: DataShape, level: Level, memory: int, most: float, tune: bool
) -> str:
    """Return why a system is beyond the bounds; empty if it is within them."""
    work = AuditWork(
        shape=shape,
        systems={system.name: system},
        designs=designs_of_level(level),
        level=level,
        tuned=frozenset([system.name] if tune else []),
        judged=0,
    )
    cost = cost_of(system, work.train)
    if not cost.is_known:
        return ""
    total = seconds_of(together(*work.stages_of(system.name).values()))
    size = f"{in_time(total)} of processor time and {in_bytes(cost.bytes)}"
    data = f"{counted(shape.users, 'user')} and {counted(shape.items, 'item')}"
    text = f"it would take about {size} for {data}"
    if cost.largest_part > LARGEST:
        array = f"an array of {in_bytes(cost.largest_part)}"
        return f"{text}, with {array} where a model may have {in_bytes(LARGEST)}"
    if cost.bytes > SHARE_OF_MEMORY * memory:
        bound = f"a fit may take {in_bytes(SHARE_OF_MEMORY * memory)}"
    elif total > most and system.name not in NEEDED:
        bound = f"this level allows {in_time(most)} to train and tune a system"
    else:
        return ""
    return f"{text}, and {bound}; name it among the algorithms to run it"


def beyond_bounds(work: AuditWork) -> dict[str, str]:
    """Return the systems that a level would leave out, and why: a user who names them gets them."""
    most = MOST_SECONDS.get(work.level.name, MOST_SECONDS["default"])
    reasons = {
        name: _beyond(one, work.shape, work.level, MEMORY, most, name in work.tuned)
        for name, one in work.systems.items()
        if name not in NEEDED
    }
    hint = "; name it among the algorithms to run it"
    return {name: why.removesuffix(hint) for name, why in reasons.items() if why}


# The estimate


@dataclass(frozen=True, eq=False, kw_only=True)
class Estimate(Result):
    """What an audit of ratings will take. Made by `estimate_audit`."""

    digits: ClassVar[int] = 1

    work: AuditWork
    machine: Machine
    processors: int
    left_out: Mapping[str, str]
    """Systems of the level that are not run, and why."""

    @cached_property
    def by_system(self) -> dict[str, dict[str, float]]:
        """By system and stage: seconds of one processor; '' = what all systems share."""
        parts = {name: self.work.stages_of(name) for name in self.work.systems}
        parts[""] = self.work.shared_stages()
        return {
            name: {stage: seconds_of(one, self.machine) for stage, one in stages.items()}
            for name, stages in parts.items()
        }

    @cached_property
    def by_stage(self) -> dict[str, float]:
        """By stage: seconds of one processor."""
        order = ("reading", "splits", "designs", "null experiment", "conclusions")
        stages = dict.fromkeys((*order, "diagnostics", "statements"), 0.0)
        for parts in self.by_system.values():
            for stage, seconds in parts.items():
                stages[stage] += seconds
        return stages

    @property
    def cpu_seconds(self) -> float:
        """Seconds of one processor."""
        return math.fsum(self.by_stage.values())

    @property
    def seconds(self) -> float:
        """Seconds on the clock, on all processors of a machine without other work."""
        return on_clock(self.cpu_seconds, self.processors)

    @property
    def bytes(self) -> float:
        """Bytes of the largest process."""
        return self.work.bytes()

    def table(self) -> pl.DataFrame:
        """Return a row per stage and system: `seconds` of one processor.

        The rows of what all systems share have no system.
        """
        import polars as pl

        rows = [
            {"stage": stage, "system": name or None, "seconds": parts[stage]}
            for stage in self.by_stage
            for name, parts in self.by_system.items()
            if parts.get(stage, 0.0) > 0
        ]
        types = {"stage": pl.String, "system": pl.String, "seconds": pl.Float64}
        return pl.DataFrame(rows, schema=types)

    def display_tables(self, digits: int | None = None) -> list[Table]:
        """Return the stages, and the systems with what they take in all stages."""
        shown = self.digits if digits is None else digits
        systems = [
            (name, math.fsum(parts.values())) for name, parts in self.by_system.items() if name
        ]
        whole = self.cpu_seconds or 1.0
        return [
            Table.of_rows(
                ["", "processor seconds", "share (%)"],
                [[name, seconds, 100 * seconds / whole] for name, seconds in rows],
                title=title,
                digits=shown,
            )
            for title, rows in (("By stage", self.by_stage.items()), ("By system", systems))
        ]

    def header(self) -> list[str]:
        """Return the sentence that says most."""
        return [self.line()]

    def line(self) -> str:
        """Return time and memory in one sentence."""
        size = f"{in_time(self.seconds)} and {in_bytes(self.bytes)}"
        costly = sorted(self.by_stage, key=lambda stage: -self.by_stage[stage])[:2]
        parts = ", ".join(
            f"{stage} {100 * self.by_stage[stage] / max(self.cpu_seconds, 1e-9):.0f} %"
            for stage in costly
        )
        processors = counted(self.processors, "processor")
        return f"about {size} on {processors} without other work ({parts})"

    def _explanation(self) -> Sequence[str]:
        shape = self.work.shape
        lines = [
            f"{counted(shape.ratings, 'rating')}, {counted(shape.users, 'user')} "
            f"({self.work.judged:,} judged), {counted(shape.items, 'item')}; "
            f"{counted(len(self.work.systems), 'system')}, "
            f"{counted(len(self.work.designs), 'design')}; operations are counted, and their "
            "speed on this machine was measured; expect a factor of 2 either way"
        ]
        return lines + [f"{name} is left out: {why}" for name, why in self.left_out.items()]

    def _summary(self) -> str:
        return f"{in_time(self.seconds)}, {in_bytes(self.bytes)}"


@checked
def estimate_audit(
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
    processors: int | None = None,
    machine: Machine | None = None,
) -> Estimate:
    """Return what an audit of ratings will take, without running it.

    Every stage and every fit is counted in operations, whose cost was measured; a tenth of a second
    compares this machine with the one of the measurement. Algorithms of your own classes are
    trained on 300 users, unless they state their `work`.

    Parameters
    ----------
    data
        Ratings, a file, the name of a data set; or a `DataShape`, for data that you do not have.
    level
        `quick`, `default` or `thorough`.
    algorithms, designs, users, splits, tune, memory, liked, above, relevance
        As in `audit`.
    processors
        Of the machine; those that this process may use unless given.
    machine
        How fast operations are; measured here unless given.

    Examples
    --------
    >>> from unskew.auditing.estimate import estimate_audit
    >>> from unskew.recommend.costs import DataShape, Machine
    >>> small, large = (
    ...     estimate_audit(DataShape(n, n // 100, 2_000), "quick", machine=Machine(), processors=2)
    ...     for n in (100_000, 1_000_000)
    ... )
    >>> 1 < large.seconds / small.seconds < 100
    True
    """
    shape, source = _shape_of(data)
    large = LargeRequest.of(users, splits, memory)
    stage, _ = large.level(LEVELS[choose("level", level, LEVELS)], shape.ratings)
    judged, _ = large.judged_users(shape.users)
    systems = _by_name(named_systems(algorithms, stage, 4.0))
    if not systems:
        raise SettingError(
            "algorithms is empty: name at least one system, or leave algorithms=… out"
        )
    left_out: dict[str, str] = {}
    if algorithms is None:
        systems, left_out = affordable(systems, shape, stage, memory=large.memory, tune=tune)
    speed = this_machine() if machine is None else machine
    share = LIKED
    if source is not None:
        rule = Rules(liked, above, relevance=relevance).of(source.ratings, source.liked)[0]
        share = float(rule.is_liked(source.ratings.value).mean())
    return Estimate(
        work=AuditWork(
            shape=shape,
            systems=systems,
            designs=_possible(designs_of_level(stage, designs), source),
            level=stage,
            tuned=frozenset(systems) if tune else frozenset(),
            judged=shape.users if judged is None else judged,
            liked=share,
            has_null=share < 1,
            trials=_trials(systems, shape, None if source is None else source.ratings),
        ),
        machine=speed,
        processors=available() if processors is None else as_count("processors", processors),
        left_out=left_out,
    )


def _shape_of(data: object) -> tuple[DataShape, World | Dataset | None]:
    """Return the sizes of data, and the data themselves where there are any."""
    source = data if isinstance(data, World | DataShape) else load(data)
    shape = source if isinstance(source, DataShape) else DataShape.of(source.ratings)
    if min(shape.ratings, shape.users, shape.items) < 1:
        raise SettingError("there are no ratings to audit")
    return shape, None if isinstance(source, DataShape) else source


def _possible(designs: Sequence[AuditDesign], source: World | Dataset | None) -> list[AuditDesign]:
    """Leave out designs by time where ratings have none."""
    timeless = source is not None and source.ratings.time is None
    possible = [one for one in designs if not (timeless and one.split.name == "temporal")]
    if not possible:
        raise DataError(f"design {designs[0].name}: needs time stamps")
    return possible


def _by_name(systems: Sequence[Algorithm] | Mapping[str, Algorithm]) -> dict[str, Algorithm]:
    if isinstance(systems, Mapping):
        return dict(systems)
    return {repr(one): one for one in systems}


def _trials(
    systems: Mapping[str, Algorithm], shape: DataShape, ratings: Ratings | None
) -> dict[str, Cost]:
    """Try systems without a formula on a few users."""
    unknown = {name: one for name, one in systems.items() if not cost_of(one, shape).is_known}
    if unknown and ratings is None:
        raise SettingError(
            f"there is no formula for the cost of {', '.join(unknown)}: give ratings instead of "
            "their sizes"
        )
    return {
        name: cost_by_trial(one, ratings) for name, one in unknown.items() if ratings is not None
    }


# Words


def in_time(seconds: float) -> str:
    """Return a time for people, rounded as an estimate should be.

    Examples
    --------
    >>> from unskew.auditing.estimate import in_time
    >>> in_time(0.4), in_time(42), in_time(200), in_time(1_200), in_time(11_000), in_time(1e6)
    ('1 s', '42 s', '3.3 min', '20 min', '3.1 h', '12 days')
    """
    for unit, size in (("s", 1.0), ("min", 60.0), ("h", 3_600.0), ("days", 86_400.0)):
        value = max(seconds / size, 1.0)
        if value < {"s": 60, "min": 60, "h": 48}.get(unit, math.inf):
            break
    digits = 1 if value < 10 and value != round(value) and unit != "s" else 0
    return f"{value:,.{digits}f} {unit}"
