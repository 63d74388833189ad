"""Which of the test rows are targets: all, one of each user or session, or every next item."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import polars as pl

from unskew.arrays import I64, Mask, frozen
from unskew.data.events import Events
from unskew.data.groups import grouped_order, sort_groups
from unskew.engine.rng import draw
from unskew.splits.timeline import Timeline

ONE = ("first", "last", "random")
PICKS = ("all", *ONE, "next")
"""Which test rows of a user are targets; see `Temporal`."""
SEEN = ("drop", "keep")
"""What becomes of test pairs that were met before; see `Windows`."""
SESSION, STEP, TARGET = "session", "step", "target"
"""Tags of the logs of a split."""


@dataclass(frozen=True, eq=False)
class Picked:
    """Which of some rows are targets."""

    target: Mask
    seen: int
    """Rows that are none because their pair was met before."""
    ties: int | None
    """Users (or sessions) in whom equal times left the choice to the seed; None = not asked."""


def pick_rows(
    line: Timeline,
    places: I64,
    group: I64,
    *,
    pick: str,
    seen: str,
    seed: int,
) -> Picked:
    """Say which rows are targets.

    Parameters
    ----------
    line
        Rows in order of time.
    places
        The rows in question, rising.
    group
        The user or the session of each of them.
    pick
        `first`, `last` or `random`: one of each group; `next` and `all`: every one.
    seen
        `drop`: not those whose pair occurs before.
    seed
        Decides between equal times, and draws.
    """
    eligible = line.is_new(places) if seen == "drop" else np.ones(places.size, np.bool_)
    dropped = int(np.count_nonzero(~eligible))
    if pick not in ONE:
        return Picked(eligible, dropped, None)
    rows = np.flatnonzero(eligible)
    chosen, ties = _one_of_each(line, places[rows], group[rows], pick, seed)
    target = np.zeros(places.size, np.bool_)
    target[rows[chosen]] = True
    return Picked(target, dropped, ties if pick != "random" else None)


def _one_of_each(line: Timeline, places: I64, group: I64, pick: str, seed: int) -> tuple[Mask, int]:
    """Mark one row of each group; return too in how many groups equal times left it to the seed."""
    from unskew.data.kernels import group_starts
    from unskew.splits import kernels

    codes = np.unique(group, return_inverse=True)[1].astype(np.int32)
    groups = int(codes.max(initial=-1)) + 1
    start, grouped = group_starts(frozen(codes), groups)
    by_group = np.arange(places.size) if grouped else grouped_order(codes, start)
    at = places[by_group]
    time = line.time[at]
    key = {"first": time, "last": -time, "random": np.zeros_like(time)}[pick]
    order, _ = sort_groups(frozen(start), frozen(key), _hashes(line, at, seed))
    mark, size = np.zeros(places.size, np.uint8), frozen(np.ones(groups, np.int64))
    kernels.mark_first(frozen(start), frozen(by_group[order]), size, mark)
    ties = kernels.count_tied(frozen(start), frozen(order), frozen(key), size)
    return mark.view(np.bool_), int(ties)


def _hashes(line: Timeline, places: I64, seed: int) -> I64:
    """Return a random number from 0 up for each row, by user, item and time."""
    bits = draw(seed, "split/pick", line.user[places], line.item[places])
    bits = bits ^ draw(seed, "split/pick/time", line.time[places])
    return frozen((bits >> np.uint64(1)).view(np.int64))


def steps_in(group: I64) -> I64:
    """Return the place of each row in its group, from 1, in the order of rows.

    Examples
    --------
    >>> import numpy as np
    >>> from unskew.splits.picks import steps_in
    >>> steps_in(np.array([7, 3, 7, 7, 3])).tolist()
    [1, 1, 2, 3, 2]
    """
    order = np.argsort(group, kind="stable")
    sorted_ = group[order]
    heads = np.flatnonzero(np.append(True, sorted_[1:] != sorted_[:-1])) if group.size else order
    sizes = np.diff(np.append(heads, group.size))
    step = np.empty(group.size, np.int64)
    step[order] = np.arange(group.size) - np.repeat(heads, sizes) + 1
    return step


def tagged(
    log: Events, step: I64 | None = None, session: I64 | None = None, target: Mask | None = None
) -> Events:
    """Return a log with what each event is in its sequence."""
    columns = {SESSION: session, STEP: step, TARGET: target}
    more = {name: pl.Series(name, one) for name, one in columns.items() if one is not None}
    return replace(log, tags={**log.tags, **more})
