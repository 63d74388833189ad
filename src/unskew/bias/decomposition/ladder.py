"""`ladder`: what the P@k of fixed lists is made of, over all splits of some data."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import combinations
from typing import Any

import numpy as np
from numpy.typing import NDArray

from unskew.arrays import F64
from unskew.bias.decomposition.ladder_part import NULLS, RUNGS, LadderPart, ladder_part
from unskew.checks import as_count, checked
from unskew.data.ratings import Ids, Ratings
from unskew.data.relevance import Relevance, relevance_for
from unskew.data.user_groups import UserGroups
from unskew.errors import DataError, SettingError
from unskew.judging.judge import read_runs
from unskew.judging.judged import Judged
from unskew.report.columns import (
    HIGH,
    LOW,
    SE,
    SYSTEM,
    USERS,
    VALUE,
    Column,
    Drawing,
    Method,
    Question,
)
from unskew.report.estimates import Estimates
from unskew.report.text import counted
from unskew.runs import Run, read_run
from unskew.splits.split import Split
from unskew.stats.intervals.means import student_ends

LEVEL = 0.95
LEAST = 5.0
"""Informative pairs, in expectation, that a step needs to have a z."""
STEPS: Mapping[str, tuple[int, int | None]] = {
    "lead": (4, None),
    "counts": (1, 0),
    "averages": (2, 1),
    "match": (4, 2),
    "choice": (3, 2),
    "opinion": (4, 3),
}
"""By step: the rung that it ends on, and the one that it starts from."""
KEPT = (
    "each user's number of likes",
    "each user's and each item's number of test ratings, likes being as frequent everywhere",
    "each user's and each item's number of likes",
    "who rated what, and each user's and each item's number of likes",
    "everything",
)
"""By rung: what is kept of the test part."""

_HIDDEN_USERS = replace(USERS, hidden=True)
LADDER = Question(
    name="steps",
    columns=(
        *(Column("step", "key"), SYSTEM, _HIDDEN_USERS, VALUE, SE, LOW, HIGH),
        *(Column("z", "fact", form="+"), Column("t", "fact", form="+")),
        Column("events", "fact", hidden=True),
    ),
    method=Method(
        estimand="how much of the expected P@k of fixed lists each step adds", interval="t"
    ),
    display=("rungs", ""),
    figures=(Drawing("rungs", "points", "rungs"),),
)
"""`z`: the step in standard deviations under its null hypothesis, which holds the sums of the rung
that it starts from; none for steps without one, and where `events` is below 5. `t`: in standard
errors over users. `events`: how many pairs inform z, the null variance of the number of listed
likes, which for rare events is their expected number."""
PAIRS = LADDER.of_pairs()
HEIGHTS = Question(
    name="rungs",
    columns=(SYSTEM, Column("rung", "key"), _HIDDEN_USERS, VALUE),
    method=replace(
        LADDER.method, estimand="the expected P@k if the test part were drawn again", interval=""
    ),
    across="rung",
)


def ladder_of(
    parts: Sequence[LadderPart], notes: Sequence[str] = (), groups: UserGroups | None = None
) -> Estimates:
    """Return the ladder over splits of the same data, from what `ladder_part` gives of each.

    A value is the mean over splits; equal splits count once. z divides the mean step by the root of
    the mean variance: splits of the same data repeat each other, so they make a test no sharper.
    Standard errors are over users: each user's deviation from the mean of a split, summed over
    splits.

    Parameters
    ----------
    parts
        Of each split.
    notes
        What was assumed.
    groups
        Users that count as one. There is no z then: its null hypothesis draws every user's likes.

    Examples
    --------
    >>> import unskew as us
    >>> from unskew.bias.decomposition.ladder import ladder_of
    >>> data = us.read_ratings({"user": [1, 1, 2, 2], "item": [1, 2, 1, 3], "rating": [3, 5, 3, 5]})
    >>> train, test = (data.take(data.value == value) for value in (3, 5))
    >>> lists = {"right": us.read_run({1: [2], 2: [3]}), "same": us.read_run({1: [2], 2: [2]})}
    >>> part = us.bias.ladder_part(train, test, lists, us.Relevance(liked=4), 1)
    >>> ladder_of([part]).pair("right", "same", step="match").value
    0.5
    """
    parts = _distinct(parts)
    systems, k = parts[0].systems, parts[0].k
    heights = np.mean([part.scores for part in parts], axis=0)
    users = _rows_of_users(parts, groups)
    order = [systems[index] for index in np.argsort(-heights[-1], kind="stable").tolist()]
    step = partial(_step, parts, users, has_z=groups is None)
    steps = [step(name, system) for name in STEPS for system in systems]
    pairs = [step(name, *pair) for pair in combinations(order, 2) for name in STEPS]
    facts = {"k": k, "users": users[0], "splits": len(parts)}
    rungs = [
        {"system": system, "rung": rung, "n": users[0], "value": float(heights[row, column])}
        for column, system in enumerate(systems)
        for row, rung in enumerate(RUNGS)
    ]
    return Estimates.of_rows(
        LADDER,
        steps,
        level=LEVEL,
        explanation=tuple(_explanation(parts, users[0])),
        notes=tuple(notes),
        parts={
            "pairs": Estimates.of_rows(PAIRS, pairs, level=LEVEL),
            "rungs": Estimates.of_rows(replace(HEIGHTS, name=f"P@{k}"), rungs, level=LEVEL),
        },
        card=facts,
    )


def _distinct(parts: Sequence[LadderPart]) -> list[LadderPart]:
    """Leave out splits that are equal to an earlier one; all must be of the same systems."""
    distinct: list[LadderPart] = []
    for part in parts:
        if not any(
            part.ids.equals(earlier.ids)
            and np.array_equal(part.users, earlier.users)
            and np.array_equal(part.rungs, earlier.rungs)
            for earlier in distinct
        ):
            distinct.append(part)
    if not distinct:
        raise SettingError("parts is empty: a ladder needs at least one split")
    first = distinct[0]
    for part in distinct:
        if part.systems != first.systems or part.k != first.k:
            raise DataError(
                f"all splits need the same systems and the same k: "
                f"{', '.join(first.systems)} at {first.k} against "
                f"{', '.join(part.systems)} at {part.k}"
            )
    return distinct


def _rows_of_users(
    parts: Sequence[LadderPart], groups: UserGroups | None
) -> tuple[int, list[NDArray[np.integer]]]:
    """Return how many users all splits have, and the row of each split's users among them.

    Or how many groups of users, and the row of each user's group.
    """
    ids = [part.ids for part in parts]
    if all(table.equals(ids[0]) for table in ids):
        numbers = [part.users for part in parts]
    else:
        tables = Ids.union(*ids)[1]
        numbers = [table[part.users] for part, table in zip(parts, tables, strict=True)]
    if groups is not None:
        code = groups.of(Ids.union(*ids)[0])[1].astype(np.int32)
        numbers = [code[number] for number in numbers]
    union = np.unique(np.concatenate(numbers))
    return union.size, [np.searchsorted(union, number) for number in numbers]


def _step(
    parts: Sequence[LadderPart],
    users: tuple[int, list[NDArray[np.integer]]],
    name: str,
    system: str,
    against: str | None = None,
    *,
    has_z: bool = True,
) -> dict[str, Any]:
    """Return the row of a step: of a system, or of it less another one."""
    signs = np.zeros(len(parts[0].systems))
    signs[parts[0].systems.index(system)] = 1.0
    if against is not None:
        signs[parts[0].systems.index(against)] = -1.0
    values = [_by_user(part, name, system, against) for part in parts]
    value = math.fsum(float(of_split.mean()) for of_split in values) / len(values)
    row = {"step": name, "system": system, "against": against, "n": users[0], "value": value}
    error = _error(values, *users)
    if error is not None:
        row["se"] = error
        row["low"], row["high"] = student_ends(value, error, users[0] - 1, LEVEL)
        row["t"] = value / error if error else None
    if name in NULLS and has_z:
        kind = NULLS.index(name)
        events = float(np.mean([signs @ part.events[kind] @ signs for part in parts]))
        row["events"] = max(events, 0.0)
        if events >= LEAST:
            variance = np.mean([signs @ part.covariance[kind] @ signs for part in parts])
            row["z"] = value / math.sqrt(variance)
    return row


def _by_user(part: LadderPart, name: str, system: str, against: str | None) -> F64:
    """Return what each user adds to a step."""
    upper, lower = STEPS[name]

    def gain(index: int) -> F64:
        end: F64 = part.rungs[upper, index]
        return end if lower is None else end - part.rungs[lower, index]

    first = gain(part.systems.index(system))
    return first if against is None else first - gain(part.systems.index(against))


def _error(values: Sequence[F64], users: int, rows: Sequence[NDArray[np.integer]]) -> float | None:
    """Return the standard error over users of the mean of the splits' means."""
    if users < 2:
        return None
    total = np.zeros(users)
    for value, row in zip(values, rows, strict=True):
        moves = (value - value.mean()) * (users / (value.size * len(values)))
        total += np.bincount(row, moves, users)
    spread = math.sqrt(math.fsum(total**2) / (users - 1) / users)
    # Below rounding it is 0: all users have the same value.
    return spread if spread > 1e-12 * max(float(np.max(np.abs(values[0]))), 1e-300) else 0.0


def _explanation(parts: Sequence[LadderPart], users: int) -> Iterator[str]:
    yield (
        f"P@{parts[0].k} over {counted(users, 'user')}, {counted(len(parts), 'split')}; "
        "lists are fixed, training pairs are not candidates"
    )
    yield (
        "each rung is the expected score of these lists if the test part were drawn again; this of "
        "it stays as it is:"
    )
    yield from (f"- {rung}: {meaning}" for rung, meaning in zip(RUNGS, KEPT, strict=True))
    yield (
        "steps: match = observed - averages, choice = rung choice - averages, opinion = observed - "
        "rung choice"
    )
    yield (
        "t: in standard errors over users; z: in standard deviations of what the lower rung draws "
        f"(none below {LEAST:g} informative pairs)"
    )
    counts = {
        "users without training ratings, left out": [part.cold for part in parts],
        "test ratings of training pairs, left out": [part.overlap for part in parts],
    }
    for index, system in enumerate(parts[0].systems):
        counts |= {
            f"{system}: users without a list, which count 0": [
                part.without_list[index] for part in parts
            ],
            f"{system}: listed training pairs, which count as misses": [
                part.rated_before[index] for part in parts
            ],
            f"{system}: listed items without any rating, which count as misses": [
                part.unknown[index] for part in parts
            ],
        }
    yield from (f"{what}: {sum(number):,}" for what, number in counts.items() if sum(number))


@checked
def ladder(
    data: object,
    runs: object = None,
    *,
    k: int = 10,
    liked: float | None = None,
    above: float | None = None,
    relevance: Relevance | str | None = None,
) -> Estimates:
    """Return the ladder: what the P@k of fixed lists is made of.

    Five rungs, from `chance` to `observed`. Each is the expected P@k of the same lists if the test
    part were drawn again, with more and more of it kept: each user's number of likes; each user's
    and item's number of ratings; of likes; the rated pairs; everything. No system is trained again.

    Parameters
    ----------
    data
        Judged data with training ratings (`us.judge(test, runs, train=…)`), a split, or a list of
        either for several splits of the same data.
    runs
        With a split, its runs by system: anything that `judge` takes. With a list of splits, a list
        of such, one per split.
    k
        How many items of each list count.
    liked, above, relevance
        With splits: which ratings are likes, as in `judge`.

    Returns
    -------
    Estimates
        Rows by step and system: `lead` (the score), `counts` (counts - chance), `averages`
        (averages - counts), `match` (observed - averages), `choice` (choice - averages), `opinion`
        (observed - choice). The parts: `pairs`, the same steps of differences, the system of higher
        score first (counts + averages + choice + opinion = lead); `rungs`, by system and rung.

    Examples
    --------
    >>> import unskew as us
    >>> train = {"user": [1, 2, 3, 4], "item": [9, 9, 9, 9]}
    >>> test = {"user": [1, 2, 3, 4], "item": [5, 5, 6, 6]}
    >>> lists = {1: [5], 2: [6], 3: [6], 4: [6]}
    >>> judged = us.judge(test, {"mine": lists}, train=train)
    >>> ladder = us.bias.ladder(judged, k=1)
    >>> [ladder.parts["rungs"].row(rung=rung).value for rung in ("averages", "choice", "observed")]
    [0.5, 0.75, 0.75]
    >>> ladder.row(step="match").value
    0.25
    """
    as_count("k", k)
    inputs = list(data) if isinstance(data, list | tuple) else [data]
    if inputs and all(isinstance(data, Judged) for data in inputs):
        if not (runs is None and liked is None and above is None and relevance is None):
            raise SettingError("judged data know their runs and likes: leave runs, liked, … out")
        return ladder_of([_of_judged(judged, k) for judged in inputs if isinstance(judged, Judged)])
    if not inputs or not all(isinstance(data, Split) for data in inputs):
        raise SettingError(
            "data must be judged data (us.judge(test, runs, train=…)), a split, or a list of such; "
            f"got {type(data).__name__}"
        )
    splits = [split for split in inputs if isinstance(split, Split)]
    mappings = list(runs) if isinstance(runs, list | tuple) else [runs]
    if len(mappings) != len(splits) or not all(isinstance(lists, Mapping) for lists in mappings):
        kind = type(mappings[0]).__name__ if mappings else "none"
        raise SettingError(
            f"runs must be ranked lists by system for each split: expected {len(splits)} mappings "
            f"{{'name': lists}}, got {len(mappings)} of {kind}"
        )
    rule, notes = relevance_for(splits[0].test, liked, above, relevance=relevance)
    parts = []
    for split, lists in zip(splits, mappings, strict=True):
        ready = read_runs(lists, None, 0, (split.test.users, split.test.items))
        parts.append(ladder_part(split.train, split.test, ready, rule, k))
    return ladder_of(parts, notes)


def _of_judged(judged: Judged, k: int) -> LadderPart:
    if judged.targets is not None:
        raise SettingError(
            "the ladder needs lists of all items that the user did not rate in training, judged "
            "without targets: us.judge(test, runs, train=…)"
        )
    train: Ratings | None = judged.numbering.train
    if train is None:
        raise SettingError(
            "the ladder needs the training ratings, which are no candidates: "
            "us.judge(test, runs, train=…)"
        )
    runs = {
        name: read_run(run, depth=judged.depth)
        for name, run in judged.systems.items()
        if isinstance(run, Run)
    }
    return ladder_part(train, judged.judgments, runs, judged.relevance, k)
