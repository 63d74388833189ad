"""`ladder`: what the P@k of fixed lists is made of, over all splits of some data."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import chain, combinations
from typing import TYPE_CHECKING

import numpy as np
import polars as pl
from numpy.typing import NDArray

from unskew.arrays import F64
from unskew.bias.decomposition.ladder_part import NULLS, RUNGS, LadderPart, ladder_part
from unskew.checks import as_count, checked, choose
from unskew.data.ratings import Ids, Ratings
from unskew.data.relevance import Relevance, relevance_for
from unskew.errors import DataError, SettingError
from unskew.judging.judge import read_runs
from unskew.judging.judged import Judged
from unskew.report.result import Result
from unskew.report.tables import Table
from unskew.report.text import counted
from unskew.runs import Run, read_run
from unskew.splits.split import Split
from unskew.stats.intervals.means import student_ends

if TYPE_CHECKING:
    from unskew.report.charts import Figure

LEVEL = 0.95
LEAST = 5.0
"""Informative pairs, in expectation, that a step needs to have a z."""
ENDS = {
    "counts": (1, 0),
    "averages": (2, 1),
    "match": (4, 2),
    "choice": (3, 2),
    "opinion": (4, 3),
    "lead": (4, None),
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
ROW = ("match", "choice", "opinion")
PAIR = ("lead", "counts", "averages", "match", "choice", "opinion")


@dataclass(frozen=True)
class Step:
    """A step of the ladder, of one system or of system `a` less system `b`."""

    name: str
    a: str
    b: str | None
    value: float
    se: float | None
    """Standard error over users; None with one user."""
    low: float | None
    """Of the 95 % interval over users, by Student's t."""
    high: float | None
    z: float | None
    """The step in standard deviations under its null hypothesis, which holds the sums of the rung
    that it starts from; None for steps without one, and where `events` is below 5."""
    t: float | None
    """The step in standard errors over users; None where these are 0."""
    events: float | None
    """How many pairs inform z: the null variance of the number of listed likes, which for rare
    events is their expected number. None for steps without a null hypothesis."""


@dataclass(frozen=True, eq=False)
class Ladder(Result):
    """What the P@k of fixed lists is made of. Made by `ladder`.

    Over several splits of the same data a value is the mean over splits. z divides the mean step
    by the root of the mean variance: splits of the same data repeat each other, so they make a
    test no sharper. Standard errors are over users: each user's deviation from the mean of a split,
    summed over splits.
    """

    parts: tuple[LadderPart, ...]
    """Of each split; equal splits count once."""
    notes: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        object.__setattr__(self, "parts", _distinct(self.parts))
        first = self.parts[0]
        for part in self.parts[1:]:
            if part.systems != first.systems or part.k != first.k:
                raise DataError(
                    f"all splits need the same systems and the same k: "
                    f"{', '.join(first.systems)} at {first.k} against "
                    f"{', '.join(part.systems)} at {part.k}"
                )

    @property
    def systems(self) -> tuple[str, ...]:
        """The names of the systems."""
        return self.parts[0].systems

    @property
    def k(self) -> int:
        """How many items of each list count."""
        return self.parts[0].k

    @cached_property
    def scores(self) -> F64:
        """Rungs x systems: P@k, the mean over splits of the mean over users."""
        means: F64 = np.mean([part.scores for part in self.parts], axis=0)
        return means

    @cached_property
    def users(self) -> int:
        """How many users there are in all splits together."""
        return self._rows[0]

    @cached_property
    def _rows(self) -> tuple[int, list[NDArray[np.integer]]]:
        """Users of all splits, and the row of each split's users among them."""
        ids = [part.ids for part in self.parts]
        if all(table.equals(ids[0]) for table in ids):
            numbers = [part.users for part in self.parts]
        else:
            tables = Ids.union(*ids)[1]
            pairs = zip(self.parts, tables, strict=True)
            numbers = [table[part.users] for part, table in pairs]
        union = np.unique(np.concatenate(numbers))
        return union.size, [np.searchsorted(union, number) for number in numbers]

    def step(self, name: str, a: str, b: str | None = None) -> Step:
        """Return a step of one system, or of `a` less `b`.

        Parameters
        ----------
        name
            `match` (observed - averages), `choice` (choice - averages), `opinion` (observed -
            choice), `counts` (counts - chance), `averages` (averages - counts), or `lead`
            (observed: the score, or the difference of scores).
        a, b
            Names of systems.
        """
        upper, lower = ENDS[choose("step", name, ENDS)]
        mine = self._number(a)
        rival = None if b is None else self._number(b)
        values = []
        for part in self.parts:
            rungs = part.rungs[upper] if lower is None else part.rungs[upper] - part.rungs[lower]
            values.append(rungs[mine] if rival is None else rungs[mine] - rungs[rival])
        value = math.fsum(float(value.mean()) for value in values) / len(values)
        error = self._error(values)
        low = high = None
        if error is not None:
            low, high = student_ends(value, error, self.users - 1, LEVEL)
        z, events = self._test(name, value, mine, rival)
        return Step(
            name=name,
            a=a,
            b=b,
            value=value,
            se=error,
            low=low,
            high=high,
            z=z,
            t=value / error if error else None,
            events=events,
        )

    def _number(self, system: str) -> int:
        return self.systems.index(choose("system", system, self.systems))

    def _error(self, values: Sequence[F64]) -> float | None:
        """Return the standard error over users of the mean of the splits' means."""
        users, rows = self._rows
        if users < 2:
            return None
        total = np.zeros(users)
        for value, row in zip(values, rows, strict=True):
            total[row] += (value - value.mean()) * (users / (value.size * len(values)))
        spread = math.sqrt(math.fsum(total**2) / (users - 1) / users)
        # Below rounding it is 0: all users have the same value.
        return spread if spread > 1e-12 * max(float(np.max(np.abs(values[0]))), 1e-300) else 0.0

    def _test(
        self, name: str, value: float, mine: int, rival: int | None
    ) -> tuple[float | None, float | None]:
        """Return z and the number of informative pairs."""
        if name not in NULLS:
            return None, None
        kind = NULLS.index(name)
        weight = np.zeros(len(self.systems))
        weight[mine] = 1.0
        if rival is not None:
            weight[rival] -= 1.0
        variance = float(np.mean([weight @ part.covariance[kind] @ weight for part in self.parts]))
        events = float(np.mean([weight @ part.events[kind] @ weight for part in self.parts]))
        if events < LEAST:
            return None, max(events, 0.0)
        return value / math.sqrt(variance), events

    def table(self) -> pl.DataFrame:
        """Return a row per system: the five rungs, and the steps match, choice and opinion.

        Columns of rungs have the names of `RUNGS`; those of a step are `match_step`, `match_low`,
        `match_high`, `match_z`, `match_t` and so on.
        """
        rows = []
        for number, system in enumerate(self.systems):
            rungs = dict(zip(RUNGS, self.scores[:, number].tolist(), strict=True))
            rows.append({"system": system, **rungs} | self._columns(ROW, system))
        columns = [*RUNGS, *_step_columns(ROW)]
        return pl.DataFrame(
            rows, schema={"system": pl.String, **dict.fromkeys(columns, pl.Float64)}
        )

    def pairs(self) -> pl.DataFrame:
        """Return a row per pair of systems, the one of higher observed P@k first.

        Columns of the steps lead, counts, averages, match, choice and opinion, as in `table`;
        counts + averages + choice + opinion = lead.
        """
        order = np.argsort(-self.scores[-1], kind="stable")
        rows = []
        for first, second in combinations(order.tolist(), 2):
            a, b = self.systems[first], self.systems[second]
            rows.append({"a": a, "b": b} | self._columns(PAIR, a, b))
        floats = dict.fromkeys(_step_columns(PAIR), pl.Float64)
        return pl.DataFrame(rows, schema={"a": pl.String, "b": pl.String, **floats})

    def _columns(
        self, names: Sequence[str], a: str, b: str | None = None
    ) -> dict[str, float | None]:
        steps = [_numbers_of(self.step(name, a, b)).values() for name in names]
        return dict(zip(_step_columns(names), chain(*steps), strict=True))

    def display_tables(self, digits: int | None = None) -> list[Table]:
        """Return the rungs, and the steps with their intervals."""
        decimals = self.digits if digits is None else digits
        steps = pl.DataFrame(
            [
                {"system": system, "step": name} | _numbers_of(self.step(name, system))
                for name in ROW
                for system in self.systems
            ],
            infer_schema_length=None,
        )
        rungs = self.table().select("system", *RUNGS)
        return [Table(f"P@{self.k}", rungs, decimals), Table("Steps", steps, decimals)]

    def _explanation(self) -> list[str]:
        lines = [
            f"P@{self.k} over {counted(self.users, 'user')}, "
            f"{counted(len(self.parts), 'split')}; lists are fixed, training pairs are not "
            "candidates",
            "each rung is the expected score of these lists if the test part were drawn again; "
            "this of it stays as it is:",
        ]
        lines += [f"- {rung}: {meaning}" for rung, meaning in zip(RUNGS, KEPT, strict=True)]
        return [
            *lines,
            "steps: match = observed - averages, choice = rung choice - averages, "
            "opinion = observed - rung choice",
            "low, high and t: over users; z: in standard deviations of what the lower rung draws "
            f"(none below {LEAST:g} informative pairs)",
            *self._left_out(),
        ]

    def _left_out(self) -> list[str]:
        counts = {
            "users without training ratings, left out": [part.cold for part in self.parts],
            "test ratings of training pairs, left out": [part.overlap for part in self.parts],
        }
        for number, system in enumerate(self.systems):
            counts |= {
                f"{system}: users without a list, which count 0": [
                    part.without_list[number] for part in self.parts
                ],
                f"{system}: listed training pairs, which count as misses": [
                    part.rated_before[number] for part in self.parts
                ],
                f"{system}: listed items without any rating, which count as misses": [
                    part.unknown[number] for part in self.parts
                ],
            }
        return [f"{what}: {sum(number):,}" for what, number in counts.items() if sum(number)]

    def _content(self) -> dict[str, object]:
        return {
            "k": self.k,
            "users": self.users,
            "splits": len(self.parts),
            "systems": self.table(),
            "pairs": self.pairs(),
            "notes": self.footer(),
        }

    def figure(self) -> Figure:
        """Draw the staircase of each system: five rungs."""
        from unskew.bias import charts

        return charts.staircases(self.systems, RUNGS, self.scores, self.k, self._explanation()[:1])

    def _summary(self) -> str:
        return f"{counted(len(self.systems), 'system')}, {counted(self.users, 'user')}, P@{self.k}"


@checked
def ladder(
    data: object,
    runs: object = None,
    *,
    k: int = 10,
    liked: float | None = None,
    above: float | None = None,
    relevance: Relevance | str | None = None,
) -> Ladder:
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
    Ladder

    Examples
    --------
    >>> import unskew as us
    >>> train = {"user": [1, 2, 3, 4], "item": [9, 9, 9, 9]}
    >>> test = {"user": [1, 2, 3, 4], "item": [5, 5, 6, 6]}
    >>> lists = {1: [5], 2: [6], 3: [6], 4: [6]}
    >>> judged = us.judge(test, {"mine": lists}, train=train)
    >>> ladder = us.bias.ladder(judged, k=1)
    >>> ladder.table().select("averages", "choice", "observed").row(0)
    (0.5, 0.75, 0.75)
    """
    as_count("k", k)
    inputs = list(data) if isinstance(data, list | tuple) else [data]
    if inputs and all(isinstance(data, Judged) for data in inputs):
        if not (runs is None and liked is None and above is None and relevance is None):
            raise SettingError("judged data know their runs and likes: leave runs, liked, … out")
        parts = [_of_judged(judged, k) for judged in inputs if isinstance(judged, Judged)]
        return Ladder(tuple(parts))
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
    parts = [
        _of_split(split, mapping, rule, k) for split, mapping in zip(splits, mappings, strict=True)
    ]
    return Ladder(tuple(parts), tuple(notes))


def _of_split(split: Split, runs: object, relevance: Relevance, k: int) -> LadderPart:
    ready = read_runs(runs, None, 0, (split.test.users, split.test.items))
    return ladder_part(split.train, split.test, ready, relevance, k)


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


def _distinct(parts: Sequence[LadderPart]) -> tuple[LadderPart, ...]:
    """Leave out splits that are equal to an earlier one."""
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
    return tuple(distinct)


def _step_columns(names: Sequence[str]) -> list[str]:
    suffixes = ("step", "low", "high", "z", "t")
    return [f"{name}_{end}" for name in names for end in suffixes]


def _numbers_of(step: Step) -> dict[str, float | None]:
    return {name: getattr(step, name) for name in ("value", "low", "high", "z", "t")}
