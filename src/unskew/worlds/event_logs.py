"""Simulated event logs, free of leaks by construction: the background for checks of splits."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import polars as pl

from unskew.arrays import F64, I32, I64, Mask
from unskew.checks import as_count, as_number, checked, choose
from unskew.data.events import Events, read_events
from unskew.engine.rng import generator

SECOND = 1_000_000
DAY = 86_400 * SECOND
START = 1_577_836_800 * SECOND
"""Logs begin on 1 January 2020, a Wednesday."""
PERIODS = 40
"""The popularity of items is constant within a fortieth of the log."""


class LogKind(NamedTuple):
    """What tells one kind of logs from another."""

    about: str
    sitting: float = 2.5
    """Mean number of events in one sitting."""
    sittings: float = 0.0
    """If above 0: the mean number of sittings of a user, whatever the number of events."""
    arrivals: float = 0.0
    """The share of users and items that come after the beginning; users then leave again."""
    ageing: float = 0.0
    """How much less an item is chosen at the end of the log than at its birth, as a logarithm."""
    walk: float = 0.0
    """Standard deviation of the random walk of an item's log popularity over the log."""
    week: float = 0.0
    """How much more happens at weekends than in the middle of the week, as a logarithm."""
    night: float = 0.0
    """How much less happens at night, as a logarithm."""
    growth: float = 0.0
    """How much more happens at the end of the log than at its beginning, as a logarithm."""
    repeats: float = 0.0
    """The probability that an event repeats an earlier item of its user."""
    series: float = 0.0
    """The share of users who follow a series of items from its first to its last."""
    explicit: bool = True
    """Whether values are ratings from 1 to 5."""
    slope: float = 0.0
    """How much higher ratings are at the end of the log."""
    unit: int = SECOND
    """Time stamps are whole multiples of this, in microseconds."""


KINDS: dict[str, LogKind] = {
    "stationary": LogKind("nothing changes over time"),
    "drifting": LogKind("the popularity of items moves", walk=1.5, ageing=1.0),
    "seasonal": LogKind("weekends and evenings are busier", week=1.2, night=2.0),
    "bursty": LogKind("users come for few long sittings", sitting=12.0),
    "growing": LogKind("users and items arrive, age and leave", arrivals=0.6, ageing=2.0, growth=1),
    "repeating": LogKind("users return to items", repeats=0.45, explicit=False, arrivals=0.3),
    "dates": LogKind("time stamps are dates", unit=DAY, arrivals=0.4, ageing=1.0),
    "warming": LogKind("ratings rise over time", slope=0.8, arrivals=0.3),
    "series": LogKind("many users follow a series in its order", series=0.5, arrivals=0.3),
    "registering": LogKind("users rate nearly everything when they join", sittings=1.2, arrivals=1),
}
"""Every kind of clean log, by name."""


class _LogShape(NamedTuple):
    """What a log is drawn by: its kind, how many users and items there are, how long it lasts."""

    kind: LogKind
    users: int
    items: int
    span: int
    """Microseconds."""


@checked
def event_log(
    kind: str = "stationary",
    *,
    users: int = 500,
    items: int = 400,
    events: int = 20_000,
    days: float = 365.0,
    seed: int = 0,
) -> Events:
    """Simulate an event log: who met which item when.

    Users have a taste (one of a few communities of items), a rate of activity and a time in which
    they are there; items have a popularity, which may move, and a birth. Only the repeating kind
    has pairs that occur more than once, so that fewer events remain than are drawn.

    Parameters
    ----------
    kind
        `stationary`, `drifting`, `seasonal`, `bursty`, `growing`, `repeating`, `dates`, `warming`,
        `series` or `registering`.
    users, items
        How many there are; some may have no event.
    events
        How many are drawn.
    days
        How long the log lasts.
    seed
        Same seed, same log.

    Examples
    --------
    >>> import unskew as us
    >>> us.worlds.event_log("seasonal", users=50, items=80, events=1_000, seed=7)
    Events(588 events, 50 users, 76 items, 2020-01-04T16:07:17 to 2020-12-30T22:01:00)
    """
    nature = KINDS[choose("kind", kind, KINDS)]
    size = as_count("users", users, 2), as_count("items", items, 2)
    number = as_count("events", events, 2)
    shape = _LogShape(nature, *size, round(as_number("days", days, 1.0, 36_500.0) * DAY))
    when, what, series, values = (
        generator(seed, "event-log", kind, stage) for stage in ("when", "what", "series", "value")
    )
    user, time = _moments(shape, number, when)
    item = _items(shape, user, time, what)
    if nature.series:
        user, item, time = _with_series(shape, user, item, time, series)
    stamp = (START + time) // nature.unit * nature.unit
    if not nature.repeats:
        first = _first_of_pairs(user, item, stamp)
        user, item, stamp = user[first], item[first], stamp[first]
    value = _values(shape, user, item, stamp - START, values)
    return read_events(
        {
            "user": pl.Series(user),
            "item": pl.Series(item),
            "rating": pl.Series(value),
            "time": pl.Series(stamp).cast(pl.Datetime("us")),
        },
        feedback="explicit" if nature.explicit else "implicit",
    )


def _moments(shape: _LogShape, events: int, rng: np.random.Generator) -> tuple[I32, I64]:
    """Draw the user and the time of each event, by user and then by time."""
    nature, users, span = shape.kind, shape.users, shape.span
    arrival, leaving = _stays(nature, users, span, rng)
    activity = np.exp(rng.normal(0.0, 0.9, users)) * (leaving - arrival) / span
    number = rng.multinomial(events, activity / activity.sum())
    user = np.repeat(np.arange(users, dtype=np.int32), number)
    begins = _sitting_begins(nature, number, rng)
    sitting = np.cumsum(begins) - 1
    of_sitting = user[begins]
    busy = _busy_hours(nature, span)
    low, high = (np.interp(edge, *busy) for edge in (arrival[of_sitting], leaving[of_sitting]))
    if nature.sittings:  # the first sitting is the one in which a user joins
        first = np.flatnonzero(np.diff(of_sitting, prepend=-1))
        high[first] = low[first]
    moments = np.interp(low + (high - low) * rng.random(low.size), busy[1], busy[0])
    pauses = rng.exponential(90.0 * SECOND, user.size)
    pauses[begins] = 0.0
    since = np.cumsum(pauses)
    time = (moments[sitting] + since - since[begins][sitting]).astype(np.int64)
    keep = time < span
    user, time = user[keep], time[keep]
    order = np.lexsort((time, user))
    return user[order], time[order]


def _stays(nature: LogKind, users: int, span: int, rng: np.random.Generator) -> tuple[F64, F64]:
    """Draw when users come and leave."""
    late = rng.random(users) < nature.arrivals
    arrival = np.where(late, rng.random(users) * 0.95, 0.0) * span
    if not nature.arrivals:
        return arrival, np.full(users, float(span))
    stay = rng.exponential(0.6, users) * span
    return arrival, np.minimum(arrival + np.maximum(stay, 0.02 * span), span)


def _sitting_begins(nature: LogKind, number: I64, rng: np.random.Generator) -> Mask:
    """Mark the events that begin a sitting; the first event of a user does."""
    total = int(number.sum())
    rate = np.full(total, 1.0 / nature.sitting)
    if nature.sittings:
        rate = np.repeat(np.minimum(1.0, (nature.sittings - 1.0) / np.maximum(number, 1)), number)
    begins = rng.random(total) < rate
    begins[(np.cumsum(number) - number)[number > 0]] = True
    return begins


def _busy_hours(nature: LogKind, span: int) -> tuple[F64, F64]:
    """Return times, and the share of all activity before them."""
    hours = max(int(np.ceil(span / (3_600 * SECOND))), 1)
    hour = np.arange(hours)
    weekday = (hour // 24 + 2) % 7  # the first day is a Wednesday
    rate = np.exp(
        nature.week * (weekday >= 5) - nature.night * (hour % 24 < 7) + nature.growth * hour / hours
    )
    edges = np.minimum(np.arange(hours + 1) * 3_600.0 * SECOND, float(span))
    before = np.append(0.0, np.cumsum(rate * np.diff(edges)))
    return edges, before / before[-1]


def _items(shape: _LogShape, user: I32, time: I64, rng: np.random.Generator) -> I32:
    """Draw the item of each event from what is popular in its period and in its user's taste."""
    nature, users, items = shape.kind, shape.users, shape.items
    groups = int(rng.integers(2, 7))
    taste, group = rng.integers(0, groups, users), rng.integers(0, groups, items)
    level = -rng.uniform(0.6, 1.1) * np.log1p(rng.permutation(items))
    birth = np.where(rng.random(items) < nature.arrivals, rng.random(items) * 0.98, 0.0)
    steps = rng.normal(0.0, nature.walk / np.sqrt(PERIODS), (PERIODS, items))
    walk = np.cumsum(steps, axis=0)
    period = np.minimum(time * PERIODS // shape.span, PERIODS - 1)
    cell = period * groups + taste[user]
    order = np.argsort(cell, kind="stable")
    edges = np.searchsorted(cell[order], np.arange(PERIODS * groups + 1))
    u = rng.random(user.size)
    item = np.empty(user.size, np.int32)
    for number in range(PERIODS * groups):
        rows = order[edges[number] : edges[number + 1]]
        if not rows.size:
            continue
        now = (number // groups) / PERIODS
        there = birth <= now
        weight = np.exp(
            level
            + walk[number // groups]
            - nature.ageing * (now - birth)
            + 2.0 * (group == number % groups)
        )
        total = np.cumsum(weight * there)
        item[rows] = np.searchsorted(total, u[rows] * total[-1], side="right")
    item = np.minimum(item, items - 1)
    return _repeated(nature, user, item, rng) if nature.repeats else item


def _repeated(nature: LogKind, user: I32, item: I32, rng: np.random.Generator) -> I32:
    """Let some events repeat the item of an earlier event of the same user."""
    start = np.flatnonzero(np.diff(user, prepend=-1))
    first = np.repeat(start, np.diff(np.append(start, user.size)))
    row = np.arange(user.size)
    before = first + (rng.random(user.size) * (row - first)).astype(np.int64)
    source = np.where((rng.random(user.size) < nature.repeats) & (row > first), before, row)
    while (source != source[source]).any():  # what is repeated may itself be a repeat
        source = source[source]
    return item[source]


def _with_series(
    shape: _LogShape, user: I32, item: I32, time: I64, rng: np.random.Generator
) -> tuple[I32, I32, I64]:
    """Add users' series: 8 to 14 items next to each other, one after the other within days.

    A third of these users has nothing else, so that their histories are nearly equal.
    """
    users, items, span = shape.users, shape.items, shape.span
    number = max(items // 60, 1)
    length = rng.integers(8, 15, number)
    begin = rng.integers(0, max(items - 15, 1), number)
    fans = np.flatnonzero(rng.random(users) < shape.kind.series).astype(np.int32)
    choice = rng.integers(0, number, fans.size)
    only = fans[rng.random(fans.size) < 1 / 3]
    more_user = np.repeat(fans, length[choice])
    first = np.repeat(np.cumsum(length[choice]) - length[choice], length[choice])
    offset = np.arange(more_user.size) - first
    more_item = np.minimum(np.repeat(begin[choice], length[choice]) + offset, items - 1)
    pause = rng.exponential(0.4 * DAY, more_user.size)
    since = np.cumsum(pause)
    moment = np.repeat(rng.random(fans.size) * span * 0.9, length[choice]) + since - since[first]
    keep, there = ~np.isin(user, only), moment < span
    return (
        np.concatenate([user[keep], more_user[there]]),
        np.concatenate([item[keep], more_item[there].astype(np.int32)]),
        np.concatenate([time[keep], moment[there].astype(np.int64)]),
    )


def _first_of_pairs(user: I32, item: I32, time: I64) -> I64:
    """Return the first row of each pair, by time."""
    order = np.lexsort((time, item, user))
    new = np.ones(order.size, np.bool_)
    new[1:] = (np.diff(user[order]) != 0) | (np.diff(item[order]) != 0)
    return np.sort(order[new])


def _values(shape: _LogShape, user: I32, item: I32, time: I64, rng: np.random.Generator) -> F64:
    """Draw ratings from 1 to 5, or 1 for all."""
    if not shape.kind.explicit:
        return np.ones(user.size)
    generous, quality = rng.normal(0.0, 0.4, shape.users), rng.normal(0.0, 0.6, shape.items)
    level = 3.4 + generous[user] + quality[item] + shape.kind.slope * (time / shape.span - 0.5)
    return np.clip(np.rint(level + rng.normal(0.0, 0.9, user.size)), 1.0, 5.0)
