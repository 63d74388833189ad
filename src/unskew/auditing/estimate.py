"""What an audit will cost, before it is run, and which systems of a level it can afford."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from unskew.auditing.designs import AuditDesign, Level, designs_of_level
from unskew.experiment.halving import BUDGET
from unskew.recommend.costs import (
    REFERENCE,
    DataShape,
    Machine,
    cost_of,
    seconds_of,
    work_of_several,
)
from unskew.recommend.grids import candidates
from unskew.recommend.limits import LARGEST
from unskew.recommend.model import Algorithm
from unskew.recommend.registry import algorithm
from unskew.report.text import counted

TRAINING = 0.8
"""The share of the ratings in the training part of a split, and of those in the part of it that
settings are tried on."""
MANY_USERS = 2_000
"""With more users than this, settings are first tried on some of them."""
MOST_SECONDS = {"quick": 600.0, "default": 3_600.0, "thorough": 10_800.0}
"""By level: what all fits of a system may take, in seconds of one processor of the machine on which
the constants were measured."""
MEMORY = 8 << 30
"""Bytes that an audit may use, unless stated."""
SHARE_OF_MEMORY = 0.5
"""What one fit may take of it."""
STAND_INS = {"user-knn": "item-knn", "ease": "item-knn", "slim": "item-knn", "wrmf": "puresvd"}
"""By system: which one is run in its place where it is left out, unless it is run anyway."""
NEEDED = ("item-knn", "puresvd")
"""Left out for their memory only, never for their time: an audit of any size has a neighbourhood
and a model of factors if these fit."""


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
    half of the memory, or all its fits in the audit more than 10 minutes of processor time (quick),
    an hour (default) or three hours (thorough). item-kNN and PureSVD are left out for their memory
    only, and item-kNN stands in for the neighbourhoods and linear models that are left out. The
    rule counts operations: it gives the same systems on every machine.

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
    cost = cost_of(system, shape.part(TRAINING))
    if not cost.is_known:
        return ""
    total = training_seconds(system, shape, designs_of_level(level), level.repeats, tune)
    size = f"{in_time(total)} of processor time and {in_bytes(cost.bytes)}"
    data = f"{counted(shape.users, 'user')} and {counted(shape.items, 'item')}"
    text = f"it would take about {size} for {data}"
    if cost.largest_part > LARGEST:
        array = f"an array of {in_bytes(cost.largest_part)}"
        return f"{text}, with {array} where a model may have {in_bytes(LARGEST)}"
    if cost.bytes > SHARE_OF_MEMORY * memory:
        bound = f"a fit may take {in_bytes(SHARE_OF_MEMORY * memory)}"
    elif total > most and system.name not in NEEDED:
        bound = f"this level allows {in_time(most)} for all fits of a system"
    else:
        return ""
    return f"{text}, and {bound}; name it among the algorithms to run it"


# The time that training takes


def training_seconds(
    system: Algorithm,
    shape: DataShape,
    designs: Sequence[AuditDesign],
    repeats: int,
    tune: bool,
    machine: Machine = REFERENCE,
) -> float:
    """Return what all fits of a system in an audit take on one processor.

    Parameters
    ----------
    system
        What is trained.
    shape
        Of all ratings.
    designs
        Of the audit: their splits are trained on.
    repeats
        Of the null experiment.
    tune
        Whether settings are chosen on each split.
    machine
        Whose time it is.
    """
    train = shape.part(TRAINING)
    fit = cost_of(system, train, machine).seconds
    splits = sum(split_counts(designs).values())
    tuning = tuning_seconds(system, train, machine) if tune else 0.0
    return splits * (fit + tuning) + null_splits(designs) * repeats * fit


def split_counts(designs: Sequence[AuditDesign]) -> dict[str, int]:
    """Return how many splits there are, by their key."""
    return {one.split_key: one.repeats for one in designs}


def null_splits(designs: Sequence[AuditDesign]) -> int:
    """Return how many splits each repeat of the null experiment trains on."""
    return len(
        {
            one.split_key
            for one in designs
            if one.view.intervention is None and one.split.name != "temporal"
        }
    )


def tuning_rounds(users: int, settings: int) -> Iterator[tuple[int, int]]:
    """Return the users and the settings of each round in which settings are tried."""
    earlier = max(0, math.ceil(math.log10(max(users, 1) / MANY_USERS)))
    for number in range(earlier + 1):
        yield -(-users // 3 ** (earlier - number)), -(-settings // 2**number)


def tuning_seconds(system: Algorithm, train: DataShape, machine: Machine = REFERENCE) -> float:
    """Return what the fits take that choose the settings of a system on one split."""
    if not system.tuning:
        return 0.0
    settings = [replace(system, **one) for one in candidates(system, BUDGET)]
    part, total = train.part(TRAINING), 0.0
    for users, count in tuning_rounds(train.users, len(settings)):
        several = work_of_several(settings, part.of_users(users))
        if several is None:
            return math.nan
        shared = {kind: several.fit[kind] for kind in several.fit if kind in several.shared}
        rest = {kind: several.fit[kind] for kind in several.fit if kind not in several.shared}
        total += seconds_of(shared, machine)
        total += seconds_of(rest, machine) * count / len(settings)
    return total


# Words


def in_bytes(size: float) -> str:
    """Return a size for people.

    Examples
    --------
    >>> from unskew.auditing.estimate import in_bytes
    >>> in_bytes(3e8), in_bytes(2**31), in_bytes(1.5e10)
    ('286 MiB', '2.0 GiB', '14 GiB')
    """
    if size < 2**30:
        return f"{max(size / 2**20, 1):,.0f} MiB"
    return f"{size / 2**30:,.1f} GiB" if size < 10 * 2**30 else f"{size / 2**30:,.0f} GiB"


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
