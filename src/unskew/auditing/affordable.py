"""`affordable`: which systems of a level an audit can afford on data of some size."""

from __future__ import annotations

from collections.abc import Mapping

from unskew.auditing.designs import Level
from unskew.auditing.large_data import MEMORY, in_bytes
from unskew.recommend.fit_cost import DataShape, fit_cost
from unskew.recommend.limits import LARGEST
from unskew.recommend.model import Algorithm
from unskew.recommend.registry import algorithm
from unskew.report.text import counted

MOST_OPERATIONS = {"quick": 3e10, "default": 1.5e11, "thorough": 3e11}
"""By level: the operations that a fit may take; it is done again on every split, for every setting
that is tried, and on null data."""
SHARE_OF_MEMORY = 0.5
"""What a fit may take of it."""
STAND_INS = {"user-knn": "item-knn", "ease": "item-knn", "slim": "item-knn", "wrmf": "puresvd"}
"""By system: which one is run in its place where it is left out, unless it is run anyway."""
NEEDED = ("random", "popularity", "smoothed-average", "item-knn", "puresvd")
"""Left out for their memory only, never for their operations: an audit of any size has baselines, a
neighbourhood and a model of factors if these fit."""


def affordable(
    systems: Mapping[str, Algorithm], shape: DataShape, level: Level, *, memory: int | None = None
) -> tuple[dict[str, Algorithm], dict[str, str]]:
    """Return the systems of a level that data of some size allow, and why others are left out.

    The rule counts operations and bytes: it gives the same systems on every machine. What a user
    names is run in any case.

    Parameters
    ----------
    systems
        Those that a level takes, by name.
    shape
        Of all ratings.
    level
        How much is done.
    memory
        Bytes that the audit may use; 8 GiB unless given.

    Examples
    --------
    >>> import unskew as us
    >>> from unskew.auditing.affordable import affordable
    >>> from unskew.auditing.designs import LEVELS
    >>> from unskew.recommend.fit_cost import DataShape
    >>> systems = {"popularity": us.recommend.Popularity(), "ease": us.recommend.EASE()}
    >>> shape = DataShape(
    ...     ratings=20_000_000, users=138_000, items=27_000, user_pairs=1e10, item_pairs=4e11
    ... )
    >>> run, left_out = affordable(systems, shape, LEVELS["quick"])
    >>> list(run), list(left_out)
    (['popularity', 'item-knn'], ['ease'])
    """
    reasons = {
        name: beyond_limits(system, shape, level, memory) for name, system in systems.items()
    }
    run = {name: systems[name] for name, reason in reasons.items() if not reason}
    hint = "; name it among the algorithms to run it"
    left_out = {
        name: f"{reason}{hint if _can_run(systems[name], shape) else ''}"
        for name, reason in reasons.items()
        if reason
    }
    for name in left_out:
        other = STAND_INS.get(name)
        if other is None or other in reasons or other in run:
            continue
        stand_in = algorithm(other)
        if not beyond_limits(stand_in, shape, level, memory):
            run[other] = stand_in
    return run, left_out


def beyond_limits(
    system: Algorithm, shape: DataShape, level: Level, memory: int | None = None
) -> str:
    """Return why a system is beyond the limits of a level; empty if it is within them."""
    cost = fit_cost(system, shape)
    if cost is None:
        return ""
    room = SHARE_OF_MEMORY * (MEMORY if memory is None else memory)
    most = MOST_OPERATIONS.get(level.name, MOST_OPERATIONS["default"])
    data = f"{counted(shape.users, 'user')} and {counted(shape.items, 'item')}"
    text = f"a fit would take about {_in_billions(cost.operations)} and {in_bytes(cost.bytes)}"
    if not _can_run(system, shape):
        array = f"an array of {in_bytes(cost.largest_part)}"
        return f"{text} for {data}, with {array} where a model may have {in_bytes(LARGEST)}"
    if cost.bytes > room:
        return f"{text} for {data}, and it may take {in_bytes(room)}"
    if cost.operations > most and system.name not in NEEDED:
        return f"{text} for {data}, and this level allows {_in_billions(most)}"
    return ""


def _can_run(system: Algorithm, shape: DataShape) -> bool:
    """Tell whether a model of this size is not refused."""
    cost = fit_cost(system, shape)
    return cost is None or cost.largest_part <= LARGEST


def _in_billions(operations: float) -> str:
    return f"{max(operations / 1e9, 1):,.0f} billion operations"
