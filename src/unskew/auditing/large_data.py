"""Large data: how many users are judged, how many splits are made, and what is held in memory."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from unskew.auditing.designs import LEVELS, Level
from unskew.checks import as_count
from unskew.errors import SettingError, Spelling
from unskew.evaluation.evaluate import memory_bytes
from unskew.recommend.fit_cost import DataShape, fit_cost
from unskew.recommend.matrices.sparse import LARGEST
from unskew.recommend.model import Algorithm
from unskew.recommend.registry import algorithm
from unskew.report.text import counted

if TYPE_CHECKING:
    from unskew.data.ratings import Ratings


EVERYONE = "all"
"""What asks for all users."""
MOST_USERS = 50_000
"""Up to so many users with ratings, all are judged unless stated."""
SAMPLE = 20_000
"""Of more users, so many are judged unless stated."""
SPREAD = 0.1
"""A usual standard deviation over users of the difference of two systems' P@10."""
MANY_RATINGS = 5_000_000
"""From so many ratings on, fewer splits are made unless stated."""
FEWER_SPLITS = {"quick": 2, "default": 3, "thorough": 5}
"""By level: how many splits of many ratings are made; at least 2, so that the spread between them
is measured."""
MEMORY = 8 << 30
"""Bytes that an audit may use, unless stated."""
WORKING = 1 << 30
"""Bytes beside ratings and splits: code, tiles of scores, results."""


def half_width(users: int, spread: float = SPREAD) -> float:
    """Return the half-width of a 95 % interval of a mean difference over so many users.

    Examples
    --------
    >>> from unskew.auditing.large_data import half_width
    >>> round(half_width(20_000), 4)
    0.0014
    """
    return 1.96 * spread / math.sqrt(users)


@dataclass(frozen=True, kw_only=True)
class LargeRequest:
    """What a user asks for large data."""

    users: int | str | None = None
    """How many users are judged; `all`; None: by the number of users."""
    splits: int | None = None
    """None: those of the level, fewer where there are many ratings."""
    memory: int | None = None
    """Bytes that the audit may use; None: 8 GiB."""

    @classmethod
    def of(
        cls, users: int | str | None, splits: int | None, memory: int | str | None
    ) -> LargeRequest:
        """Check what the user gives."""
        if isinstance(users, str) and users != EVERYONE:
            raise SettingError(f"users must be a number such as 20000, or {EVERYONE!r}: {users!r}")
        if isinstance(users, int):
            as_count("users", users)
        if splits is not None:
            as_count("splits", splits, 1, 1_000)
        return cls(
            users=users,
            splits=splits,
            memory=None if memory is None else memory_bytes(memory),
        )

    def judged_users(self, active: int) -> tuple[int | None, list[str]]:
        """Return how many users are judged, None for all, and what a reader should know of it.

        Parameters
        ----------
        active
            How many users have ratings.
        """
        users = self.users
        if users is None:
            users = SAMPLE if active > MOST_USERS else EVERYONE
        if isinstance(users, str):
            return None, []
        if users >= active:
            return None, [
                f"users={users:,}: the data have {counted(active, 'user')} with ratings, and all "
                "are judged"
            ]
        return users, [sample_sentence(users, active, self.users is None)]

    def level(self, level: Level, ratings: int) -> tuple[Level, list[str]]:
        """Return the level with the number of splits for so many ratings, and why."""
        if self.splits is not None:
            return replace(level, splits=self.splits), []
        fewer = min(FEWER_SPLITS.get(level.name, level.splits), level.splits)
        if ratings < MANY_RATINGS or fewer == level.splits:
            return level, []
        return replace(level, splits=fewer), [
            f"{counted(fewer, 'random split')} instead of {level.splits}, because there are more "
            f"than {MANY_RATINGS:,} ratings: with that many, means hardly differ between splits"
        ]

    def settled(self, ratings: Ratings, judged: int | None, level: Level) -> LargeRequest:
        """Return what makes the audit again: what differs from what is usual for small data."""
        users: int | str | None = judged
        if judged is None and active_users(ratings) > MOST_USERS:
            users = EVERYONE
        splits = None if level.splits == LEVELS[level.name].splits else level.splits
        return replace(self, users=users, splits=splits)

    def settings(self) -> dict[str, int | str]:
        """Return what is stated."""
        values = {"users": self.users, "splits": self.splits, "memory": self.memory}
        return {name: value for name, value in values.items() if value is not None}

    def check_memory(self, ratings: Ratings, workers: int) -> None:
        """Refuse data that do not fit into the memory that may be used."""
        limit = MEMORY if self.memory is None else self.memory
        per_process = needed_bytes(ratings)
        total = per_process * max(workers, 1) + WORKING
        if total <= limit:
            return
        alone = per_process + WORKING <= limit
        remedy = (
            f"take {counted(max(int((limit - WORKING) // per_process), 1), 'worker')}"
            if alone
            else "keep fewer ratings, such as those of a random part of the users"
        )
        limit_text = "memory is" if self.memory is not None else "an audit may use, unless stated,"
        raise SettingError(
            f"{counted(len(ratings), 'rating')} and one split of them take about "
            f"{in_bytes(per_process)} in each process, {in_bytes(total)} in all, and {limit_text} "
            f"{in_bytes(limit)}: give ",
            Spelling(f"memory={_rounded(total)!r}", f"--memory {_rounded(total)}"),
            f" if there is so much, or {remedy}",
        )


def active_users(ratings: Ratings) -> int:
    """Count the users who have a rating."""
    return int(np.count_nonzero(np.diff(ratings.start)))


def judged_card(judged: int | None, ratings: Ratings) -> dict[str, int] | None:
    """Return how many users were judged, of how many; None where all were."""
    return None if judged is None else {"judged": judged, "with_ratings": active_users(ratings)}


def sample_sentence(judged: int, active: int, by_rule: bool) -> str:
    """Say who was judged, and how precise that is."""
    width = half_width(judged)
    rule = f", as of any data with more than {MOST_USERS:,} users" if by_rule else ""
    return (
        f"{judged:,} of {active:,} users were judged, drawn at random{rule}; systems were trained "
        f"on the ratings of all users. A difference of P@10 with a standard deviation of "
        f"{SPREAD:g} over users then has a 95 % interval of ±{width:.4f}"
    )


def needed_bytes(ratings: Ratings) -> int:
    """Return what ratings and one split of them take: its parts, and the numbers of their rows."""
    row = 4 + 4 + 8 + (8 if ratings.time is not None else 0)
    return 2 * len(ratings) * row + 8 * len(ratings)


def _rounded(size: int) -> str:
    return f"{math.ceil(size / (1 << 30))}GiB"


def in_bytes(size: float) -> str:
    """Return a size for people.

    Examples
    --------
    >>> from unskew.auditing.large_data import in_bytes
    >>> in_bytes(3e8), in_bytes(2**31), in_bytes(1.5e10)
    ('286 MiB', '2.0 GiB', '14 GiB')
    """
    if size < 2**30:
        return f"{max(size / 2**20, 1):,.0f} MiB"
    return f"{size / 2**30:,.1f} GiB" if size < 10 * 2**30 else f"{size / 2**30:,.0f} GiB"


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
    >>> from unskew.auditing.large_data import affordable
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
        substitute = STAND_INS.get(name)
        if substitute is None or substitute in reasons or substitute in run:
            continue
        stand_in = algorithm(substitute)
        if not beyond_limits(stand_in, shape, level, memory):
            run[substitute] = stand_in
    return run, left_out


def beyond_limits(
    system: Algorithm, shape: DataShape, level: Level, memory: int | None = None
) -> str:
    """Return why a system is beyond the limits of a level; empty if it is within them."""
    cost = fit_cost(system, shape)
    if cost is None:
        return ""
    memory_limit = SHARE_OF_MEMORY * (MEMORY if memory is None else memory)
    operation_limit = MOST_OPERATIONS.get(level.name, MOST_OPERATIONS["default"])
    data = f"{counted(shape.users, 'user')} and {counted(shape.items, 'item')}"
    text = f"a fit would take about {_in_billions(cost.operations)} and {in_bytes(cost.bytes)}"
    if not _can_run(system, shape):
        array = f"an array of {in_bytes(cost.largest_part)}"
        return f"{text} for {data}, with {array} where a model may have {in_bytes(LARGEST)}"
    if cost.bytes > memory_limit:
        return f"{text} for {data}, and it may take {in_bytes(memory_limit)}"
    if cost.operations > operation_limit and system.name not in NEEDED:
        return f"{text} for {data}, and this level allows {_in_billions(operation_limit)}"
    return ""


def _can_run(system: Algorithm, shape: DataShape) -> bool:
    """Tell whether a model of this size is not refused."""
    cost = fit_cost(system, shape)
    return cost is None or cost.largest_part <= LARGEST


def _in_billions(operations: float) -> str:
    return f"{max(operations / 1e9, 1):,.0f} billion operations"
