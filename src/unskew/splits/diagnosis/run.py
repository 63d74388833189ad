"""`diagnose`: which leaks a split has, and what drifts between its parts."""

from __future__ import annotations

from collections.abc import Iterable

from unskew.checks import checked
from unskew.data.events import Events
from unskew.data.ratings import Ratings
from unskew.errors import SettingError
from unskew.splits.counts import SplitCounts
from unskew.splits.diagnosis.check import Reading
from unskew.splits.diagnosis.over_time import DriftPeriod, RowsOverTime, drift_of, rows_over_time
from unskew.splits.diagnosis.parts import Log, Parts
from unskew.splits.diagnosis.result import Diagnosis
from unskew.splits.diagnosis.rules import CHECKS
from unskew.splits.split import Split


@checked
def diagnose(split: Split | Iterable[Split], *, log: Events | Ratings | None = None) -> Diagnosis:
    """Look for leaks from test to training, and show what drifts: a light for each check.

    Red (`leak`): what is tested reached the training. Yellow (`look`): look at it before you trust
    a score. Green (`ok`): checked, nothing found. Blue (`shown`): a fact without a judgement. Grey
    (`unknown`): it cannot be checked here, with the reason. Numerical columns that `Ratings` carry
    as tags are checked as features.

    Parameters
    ----------
    split
        A split, or several of the same data (windows, folds). An iterator is worked through one
        split at a time, such as `us.splits.Random(folds=5).each(ratings)`.
    log
        The ratings or the event log that the splits were made of: for questions about the whole
        log (repeats, births of items, sessions). Default: the parts of the first split together.

    Examples
    --------
    >>> import unskew as us
    >>> log = us.worlds.event_log("growing", users=200, items=100, events=4_000, seed=1)
    >>> ratings = log.to_ratings("first")
    >>> [clean] = us.splits.Temporal(test=0.2).split(ratings)
    >>> us.splits.diagnose(clean).leaks
    ()
    >>> [random] = us.splits.Random(test=0.2).split(ratings)
    >>> [check.key for check in us.splits.diagnose(random).leaks]
    ['future', 'user-order', 'unborn-items', 'torn-sessions']
    """
    view = None if log is None else Log.of(log)
    readings: dict[str, dict[str, Reading]] = {one.key: {} for one in CHECKS}
    counts: dict[str, SplitCounts] = {}
    timelines: list[RowsOverTime] = []
    drift: list[DriftPeriod] = []
    for one in [split] if isinstance(split, Split) else split:
        if not isinstance(one, Split):
            raise SettingError(f"split must be a Split or several of them, got {one!r}")
        _check_rows(one)
        view = Log.of_split(one) if view is None else view
        parts = Parts(one, view)
        label = _label(one.label, counts)
        for rule in CHECKS:
            if not rule.of_log or not counts:
                readings[rule.key][label] = rule.reading(parts)
        if (timeline := rows_over_time(parts)) is not None:
            timelines.append(timeline)
        drift += drift_of(parts)
        counts[label] = parts.counts
    if view is None or not counts:
        raise SettingError("split: give at least one split, got none")
    return Diagnosis(
        splits=counts,
        checks=tuple(rule.conclude(readings[rule.key]) for rule in CHECKS),
        timelines=tuple(timelines),
        drift=tuple(drift),
        notes=_notes(view, counts),
    )


def _check_rows(split: Split) -> None:
    """Refuse a split without rows: there is nothing to look at."""
    for name, part in (("training", split.train), ("test", split.test)):
        if not len(part):
            raise SettingError(
                f"{split.label}: the {name} part is empty, so nothing can be checked"
            )


def _label(label: str, known: dict[str, SplitCounts]) -> str:
    """Return a name that no split before has."""
    name, number = label, 2
    while name in known:
        name, number = f"{label} ({number})", number + 1
    return name


def _notes(log: Log, counts: dict[str, SplitCounts]) -> tuple[str, ...]:
    if log.is_given or len(counts) == 1:
        return ()
    first = next(iter(counts))
    return (f"No log was given: facts about it are those of the parts of {first}.",)
