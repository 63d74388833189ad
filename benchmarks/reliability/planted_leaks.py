"""Leaks planted into a clean split, so that it is known what a check has to find."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
import polars as pl

from unskew.arrays import I64, Mask, frozen
from unskew.checks import as_number, checked, choose
from unskew.data.filters import KCore
from unskew.data.ratings import Ids, Ratings
from unskew.data.steps import Step
from unskew.engine.rng import generator
from unskew.errors import DataError
from unskew.splits.split import Split, time_of

SESSION = 30 * 60 * 1_000_000
"""Microseconds without a row that end a session."""
ENOUGH = 25
"""Rows of a user who is copied."""
CHANGED = 0.1
"""The share of items that a copied account changes."""


@dataclass(frozen=True)
class PlantedLeak:
    """A kind of leak: what is done to a split, and what should see it."""

    about: str
    check: str
    """The key of the check that should see it."""
    light: str
    """The light that it should show."""
    strengths: tuple[float, float, float]
    """Weak, middle and strong."""
    plant: Callable[[Split, float, np.random.Generator], Split]
    stated: int = 1
    """From which of the three strengths on it is promised to be found: 0, 1 or 2."""


@checked
def plant_leak(split: Split, kind: str, strength: float | None = None, seed: int = 0) -> Split:
    """Return a clean split with a leak planted into it.

    Parameters
    ----------
    split
        A split by time without leaks.
    kind
        One of `LEAKS`, such as `future`.
    strength
        How strong: mostly a share of rows, users or items; of `k-core` the number of rows. Default:
        the middle one of three for which the checks were tested.
    seed
        Same seed, same leak.

    Examples
    --------
    >>> import unskew as us
    >>> from reliability.planted_leaks import plant_leak
    >>> log = us.worlds.event_log("stationary", users=100, items=80, events=2_000, seed=3)
    >>> [clean] = us.splits.Temporal(test=0.2).split(log.to_ratings("first"))
    >>> leaky = plant_leak(clean, "copies", strength=0.1)
    >>> us.splits.diagnose(leaky).check("copies").short
    '10.1%'
    """
    leak = LEAKS[choose("kind", kind, LEAKS)]
    amount = leak.strengths[1] if strength is None else as_number("strength", strength, 0.0, 1e6)
    time_of(split.train, f"the leak {kind!r}")
    planted = leak.plant(split, amount, generator(seed, "planted-leak", kind))
    for name, part in (("training", planted.train), ("test", planted.test)):
        if not len(part):
            raise DataError(f"{kind}: strength {amount:g} leaves no {name} row; plant less")
    return replace(planted, facts={}, design={})


# Rows that change their part


def _some(size: int, number: float, rng: np.random.Generator) -> Mask:
    """Mark so many of `size` rows, drawn at random; at least one."""
    mask = np.zeros(size, np.bool_)
    chosen = min(max(round(number), 1), size)
    mask[rng.choice(size, chosen, replace=False)] = True
    return mask


def _joined(one: Ratings, other: Ratings) -> Ratings:
    """Put the rows of two parts together; of a pair in both the first one's row."""
    assert one.time is not None
    assert other.time is not None
    both = replace(
        one,
        user=frozen(np.concatenate([one.user, other.user])),
        item=frozen(np.concatenate([one.item, other.item])),
        value=frozen(np.concatenate([one.value, other.value])),
        time=frozen(np.concatenate([one.time, other.time])),
        tags={
            name: pl.concat([column, other.tags[name]])
            for name, column in one.tags.items()
            if name in other.tags
        },
    )
    return replace(both.in_order("first"), notes=one.notes)


def _future(split: Split, strength: float, rng: np.random.Generator) -> Split:
    moved = _some(len(split.test), strength * len(split.test), rng)
    train = _joined(split.train, split.test.take(moved))
    return replace(split, train=train, test=split.test.take(~moved))


def _past(split: Split, strength: float, rng: np.random.Generator) -> Split:
    moved = _some(len(split.train), strength * len(split.test), rng)
    test = _joined(split.test, split.train.take(moved))
    return replace(split, train=split.train.take(~moved), test=test)


def _user_order(split: Split, strength: float, rng: np.random.Generator) -> Split:
    """Swap the last training row and the first test row of some users."""
    train, test = split.train, split.test
    last, first = _edge(train, last=True), _edge(test, last=False)
    both = np.flatnonzero((last >= 0) & (first >= 0))
    assert train.time is not None
    assert test.time is not None
    both = both[test.time[first[both]] > train.time[last[both]]]
    users = both[_some(both.size, strength * both.size, rng)]
    out, back = np.zeros(len(train), np.bool_), np.zeros(len(test), np.bool_)
    out[last[users]], back[first[users]] = True, True
    return replace(
        split,
        train=_joined(train.take(~out), test.take(back)),
        test=_joined(test.take(~back), train.take(out)),
    )


def _edge(ratings: Ratings, *, last: bool) -> I64:
    """Return the row of each user's last (or first) time; -1 where there is none."""
    assert ratings.time is not None
    result = np.full(len(ratings.users), -1, np.int64)
    order = np.argsort(ratings.time if last else -ratings.time, kind="stable")
    result[ratings.user[order]] = order  # the last one written stays
    return result


def _unborn(split: Split, strength: float, rng: np.random.Generator) -> Split:
    """Let some items be born in the test, and put their rows into training."""
    train, test = split.train, split.test
    items = np.flatnonzero(np.bincount(test.item, minlength=len(test.items)))
    number = strength * np.count_nonzero(np.bincount(train.item))
    chosen = np.zeros(len(test.items), np.bool_)
    chosen[items[_some(items.size, min(number, items.size // 2), rng)]] = True
    kept, moved = train.take(~chosen[train.item]), chosen[test.item]
    return replace(split, train=_joined(kept, test.take(moved)), test=test.take(~moved))


def _torn(split: Split, strength: float, rng: np.random.Generator) -> Split:
    """Move the last row of some sessions of the test into training."""
    test = split.test
    assert test.time is not None
    order = np.lexsort((test.time, test.user))
    user, time = test.user[order], test.time[order]
    goes_on = np.zeros(order.size, np.bool_)
    goes_on[1:] = (np.diff(user) == 0) & (np.diff(time) <= SESSION) & (np.diff(time) > 0)
    ends = goes_on & ~np.append(goes_on[1:], False)
    rows = order[ends]
    if not rows.size:
        raise DataError("torn-sessions: the test has no session of two rows or more")
    moved = np.zeros(len(test), np.bool_)
    moved[rows[_some(rows.size, strength * rows.size, rng)]] = True
    return replace(split, train=_joined(split.train, test.take(moved)), test=test.take(~moved))


# Rows in both parts


def _copies(split: Split, strength: float, rng: np.random.Generator) -> Split:
    chosen = _some(len(split.test), strength * len(split.test), rng)
    return replace(split, train=_joined(split.train, split.test.take(chosen)))


def _old_copies(split: Split, strength: float, rng: np.random.Generator) -> Split:
    """Put some training rows into the test, too, so that they are this share of it."""
    number = strength / (1.0 - strength) * len(split.test)
    chosen = _some(len(split.train), number, rng)
    return replace(split, test=_joined(split.test, split.train.take(chosen)))


def _copied_users(split: Split, strength: float, rng: np.random.Generator) -> Split:
    """Add accounts to training that have the items of test users, a tenth of them changed.

    They have all rows before the test, a day's jitter included.
    """
    train, test = split.train, split.test
    assert train.time is not None
    assert test.time is not None
    rows = np.diff(train.start) + np.diff(test.start)
    tested = np.flatnonzero(np.diff(test.start))
    able = tested[rows[tested] >= ENOUGH]
    if not able.size:
        raise DataError(f"copied-users: no test user has {ENOUGH} rows or more")
    users = able[_some(able.size, strength * tested.size, rng)]
    ids = _more_ids(train.users, users.size)
    cut = int(test.time.min())
    parts = []
    for number, user in enumerate(users.tolist()):
        parts.append(_copy_of(split, user, len(train.users) + number, cut, rng))
    more = [np.concatenate(columns) for columns in zip(*parts, strict=True)]
    extra = replace(
        train,
        users=ids,
        user=frozen(more[0].astype(np.int32)),
        item=frozen(more[1].astype(np.int32)),
        value=frozen(more[2]),
        time=frozen(more[3]),
        tags={},
    ).in_order("first")
    wider = replace(train, users=ids, tags={})
    return replace(
        split, train=_joined(wider, extra), test=replace(test, users=ids, tags={}), judged=None
    )


def _copy_of(
    split: Split, user: int, number: int, cut: int, rng: np.random.Generator
) -> tuple[I64, I64, np.ndarray, I64]:
    """Return users, items, values and times of the copy of one user."""
    columns = []
    for part in (split.train, split.test):
        rows = slice(int(part.start[user]), int(part.start[user + 1]))
        assert part.time is not None
        columns.append((part.item[rows], part.value[rows], part.time[rows]))
    item, value, time = (np.concatenate(pair) for pair in zip(*columns, strict=True))
    item = item.astype(np.int64)
    changed = _some(item.size, CHANGED * item.size, rng)
    others = split.train.item[rng.integers(0, len(split.train), int(changed.sum()))]
    item[changed] = others
    jitter = rng.integers(0, 86_400_000_000, item.size)
    shift = max(int(time.max()) - cut, 0) + 1
    return np.full(item.size, number), item, value, time - shift - jitter


def _more_ids(ids: Ids, number: int) -> Ids:
    """Return ids with new ones behind the last one."""
    if ids.kind == "text":
        last = str(ids.values[-1])
        more = pl.Series([f"{last}~{place:09d}" for place in range(number)])
    else:
        top = int(ids.values.max())  # type: ignore[arg-type]
        more = pl.Series(np.arange(top + 1, top + 1 + number))
    return Ids(pl.concat([ids.values, more.cast(ids.values.dtype)]))


# Columns and filters


def _popularity(split: Split, strength: float, rng: np.random.Generator) -> Split:  # noqa: ARG001
    """Add the logarithm of the rows of each item, with the first part of the test taken in."""
    return _with_column(split, "popularity", "item", strength, mean=False)


def _activity(split: Split, strength: float, rng: np.random.Generator) -> Split:  # noqa: ARG001
    return _with_column(split, "activity", "user", strength, mean=False)


def _mean_rating(split: Split, strength: float, rng: np.random.Generator) -> Split:  # noqa: ARG001
    return _with_column(split, "mean_rating", "item", strength, mean=True)


def _with_column(split: Split, name: str, of: str, strength: float, *, mean: bool) -> Split:
    train, test = split.train, split.test
    assert test.time is not None
    last = np.sort(test.time)[min(round(strength * len(test)), len(test)) - 1] if strength else -1
    seen = test.take(test.time <= last)
    size = len(train.items if of == "item" else train.users)
    number, total = np.zeros(size), np.zeros(size)
    for part in (train, seen):
        code = part.item if of == "item" else part.user
        number += np.bincount(code, minlength=size)
        total += np.bincount(code, part.value, minlength=size)
    column = np.divide(total, number, out=np.zeros(size), where=number > 0)
    if not mean:
        column = np.log1p(number)
    parts = []
    for part in (train, test):
        code = part.item if of == "item" else part.user
        parts.append(replace(part, tags={**part.tags, name: pl.Series(column[code])}))
    return replace(split, train=parts[0], test=parts[1])


def _core(split: Split, strength: float, rng: np.random.Generator) -> Split:  # noqa: ARG001
    """Keep users and items with so many rows over both parts, and record the step."""
    train, test = split.train, split.test
    whole = _joined(replace(train, tags={}), replace(test, tags={}))
    mask, _ = KCore(users=round(strength), items=round(strength)).keep(whole)
    kept = whole.take(mask)
    pairs = (kept.user.astype(np.int64) << 32) | kept.item
    parts = [
        part.take(np.isin((part.user.astype(np.int64) << 32) | part.item, pairs))
        for part in (train, test)
    ]
    settings = {"users": round(strength), "items": round(strength)}
    step = Step("k-core", settings, whole.size(), kept.size(), counts_rows=True)
    recorded = [replace(part, steps=(*part.steps, step)) for part in parts]
    return replace(split, train=recorded[0], test=recorded[1])


def _silent_core(split: Split, strength: float, rng: np.random.Generator) -> Split:
    done = _core(split, strength, rng)
    parts = [replace(part, steps=part.steps[:-1]) for part in (done.train, done.test)]
    return replace(done, train=parts[0], test=parts[1])


# Time stamps


def _shuffled(split: Split, strength: float, rng: np.random.Generator) -> Split:
    """Exchange the time stamps of a share of all rows, and cut again: half a random split."""
    whole = _joined(split.train, split.test)
    assert whole.time is not None
    rows = np.flatnonzero(_some(len(whole), strength * len(whole), rng))
    time = whole.time.copy()
    time[rows] = time[rng.permutation(rows)]
    whole = replace(whole, time=frozen(time))
    late = time >= np.sort(time)[-len(split.test)]
    return replace(split, train=whole.take(~late), test=whole.take(late))


# Validation


def _validation(split: Split, strength: float, rng: np.random.Generator) -> Split:
    """Cut the last tenth off training, and move part of the test into it."""
    clean = with_validation(split)
    valid = clean.judgments["validation"]
    number = min(strength / (1.0 - strength) * len(valid), len(split.test) // 2)
    moved = _some(len(split.test), number, rng)
    late = _joined(valid, split.test.take(moved))
    return replace(clean, test=split.test.take(~moved), judgments={"validation": late})


def _validation_copies(split: Split, strength: float, rng: np.random.Generator) -> Split:
    clean = with_validation(split)
    chosen = _some(len(split.test), strength * len(split.test), rng)
    both = _joined(clean.judgments["validation"], split.test.take(chosen))
    return replace(clean, judgments={"validation": both})


def with_validation(split: Split) -> Split:
    """Return the split with the last tenth of training, by time, as a validation part."""
    train = split.train
    assert train.time is not None
    last = train.time > np.quantile(train.time, 0.9)
    return replace(split, train=train.take(~last), judgments={"validation": train.take(last)})


LEAKS: dict[str, PlantedLeak] = {
    "future": PlantedLeak(
        "a share of the test rows goes to training", "future", "leak", (0.05, 0.2, 0.5), _future
    ),
    "past": PlantedLeak(
        "training rows go to the test, as many as a share of it",
        "future", "leak", (0.02, 0.1, 0.4), _past,
    ),
    "user-order": PlantedLeak(
        "a share of users swaps the last training and the first test row",
        "user-order", "leak", (0.2, 0.5, 1.0), _user_order,
    ),
    "unborn-items": PlantedLeak(
        "items that are born in the test go to training, as many as a share of its items",
        "unborn-items", "leak", (0.02, 0.1, 0.3), _unborn,
    ),
    "torn-sessions": PlantedLeak(
        "a share of the sessions of the test loses its last row to training",
        "torn-sessions", "leak", (0.05, 0.2, 0.6), _torn,
    ),
    "copies": PlantedLeak(
        "a share of the test rows is in training too", "copies", "leak", (0.01, 0.05, 0.2), _copies
    ),
    "old-copies": PlantedLeak(
        "a share of the test rows are training rows", "copies", "leak", (0.01, 0.05, 0.2),
        _old_copies,
    ),
    "copied-users": PlantedLeak(
        "a share of the test users, of those with 25 rows, is copied to training under another id, "
        "a tenth of the items changed, times moved",
        "duplicate-users", "leak", (0.02, 0.1, 0.3), _copied_users,
    ),
    "popularity": PlantedLeak(
        "a column holds the log popularity of items over training and a share of the test",
        "features", "leak", (0.25, 0.5, 1.0), _popularity,
    ),
    "activity": PlantedLeak(
        "a column holds the log activity of users over training and a share of the test",
        "features", "leak", (0.25, 0.5, 1.0), _activity,
    ),
    "mean-rating": PlantedLeak(
        "a column holds the mean rating of items over training and a share of the test",
        "features", "leak", (0.25, 0.5, 1.0), _mean_rating,
    ),
    "k-core": PlantedLeak(
        "users and items with fewer rows over both parts are removed, and the step is recorded",
        "filters", "leak", (3, 5, 10), _core,
    ),
    "silent-k-core": PlantedLeak(
        "the same, and nothing is recorded",
        "cut-off", "look", (3, 5, 10), _silent_core, stated=2,
    ),
    "shuffled-times": PlantedLeak(
        "time stamps of a share of all rows are exchanged, and the log is cut again",
        "time-stamps", "look", (0.5, 0.9, 1.0), _shuffled, stated=2,
    ),
    "late-validation": PlantedLeak(
        "a share of the validation rows comes from the test period",
        "validation", "leak", (0.05, 0.2, 0.5), _validation,
    ),
    "validation-copies": PlantedLeak(
        "a share of the test rows is in validation too",
        "validation", "leak", (0.01, 0.05, 0.2), _validation_copies,
    ),
}  # fmt: skip
"""Every kind of leak that can be planted, by name."""
