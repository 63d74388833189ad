"""Values of the same systems in several windows of time: scores, results of a plan, or a table."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import polars as pl

from unskew.arrays import F64, I64
from unskew.data.ratings import Ids
from unskew.data.read.tables import DataTable, plain_name
from unskew.errors import DataError, SettingError
from unskew.evaluation.notes import notes_of
from unskew.evaluation.scores import Scores
from unskew.report.columns import (
    HIGH,
    LOW,
    METRIC,
    SE,
    SYSTEM,
    USERS,
    Column,
    Drawing,
    Method,
    Question,
)
from unskew.report.text import counted
from unskew.stats.agreement.conditions import named_sources
from unskew.stats.intervals.means import mean_intervals
from unskew.stats.pairing import Paired, PlanResults, as_table, is_evaluated, paired
from unskew.stats.resampling import check_two_systems, chosen_metrics


@dataclass(frozen=True, eq=False)
class WindowValues:
    """The values of one metric: of each window its users, and users x systems."""

    label: str
    better: str
    """`higher`, `lower` or `neither`."""
    systems: tuple[str, ...]
    windows: tuple[str, ...]
    users: Ids
    """Everybody who has a value in some window."""
    codes: tuple[I64, ...]
    """Of each window: the numbers of its users, ascending."""
    values: tuple[F64, ...]
    """Of each window: a row per user, a column per system."""

    @property
    def sign(self) -> float:
        """-1 where lower is better."""
        return -1.0 if self.better == "lower" else 1.0

    @property
    def counts(self) -> I64:
        """In how many windows each user has a value."""
        codes = np.concatenate([np.zeros(0, np.int64), *self.codes])
        return np.bincount(codes, minlength=len(self.users)).astype(np.int64)


@dataclass(frozen=True, eq=False)
class WindowScores:
    """Scores by window, paired user by user."""

    parts: Mapping[str, Paired]
    metrics: tuple[str, ...]
    notes: tuple[str, ...] = ()

    @property
    def systems(self) -> tuple[str, ...]:
        """The systems, in the order of the first window."""
        return next(iter(self.parts.values())).systems

    def values(self, metric: str) -> WindowValues:
        """Return the values of one metric, over one numbering of all users."""
        first = next(iter(self.parts.values()))
        complete: list[tuple[Ids, F64]] = []
        for part in self.parts.values():
            matrix, is_complete = part.scaled(metric)
            columns = [part.systems.index(name) for name in first.systems]
            who = Ids(part.users.values.filter(pl.Series(is_complete)))
            complete.append((who, np.ascontiguousarray(matrix[is_complete][:, columns])))
        everyone, tables = Ids.union(*(who for who, _ in complete))
        orders = [np.argsort(table, kind="stable") for table in tables]
        return WindowValues(
            label=first.label(metric),
            better=first.direction(first.label(metric)),
            systems=first.systems,
            windows=tuple(self.parts),
            users=everyone,
            codes=tuple(
                table[order].astype(np.int64) for table, order in zip(tables, orders, strict=True)
            ),
            values=tuple(
                np.ascontiguousarray(values[order])
                for (_, values), order in zip(complete, orders, strict=True)
            ),
        )

    @property
    def has_one_training(self) -> bool:
        """Whether all windows were judged by models of the same training ratings.

        By the fingerprints of the ratings or, where scores do not know them, by how many training
        ratings the users have whom two windows share.
        """
        parts = [part.parts for part in self.parts.values()]
        if not all(len(part) == 1 for part in parts):
            return False
        scores = [part[0] for part in parts]
        prints = [(score.card.get("train") or {}).get("fingerprint") for score in scores]
        if all(prints):
            return len(set(prints)) == 1
        if any(prints) or not all("train" in score.lists.columns for score in scores):
            return False
        first, *later = (_training_counts(score) for score in scores)
        shared = [first.join(table, on="user", how="inner") for table in later]
        return all(
            table.height > 1 and table["train"].equals(table["train_right"], check_names=False)
            for table in shared
        )


CURVES = Drawing("curves", "points", "means")
"""The means over windows, of answers that have them as a part."""


def means_question(unit: str, *counts: Column, is_shown: bool = False) -> Question:
    """Return the question of means by window, split, age or step.

    Parameters
    ----------
    unit
        The key that means are by.
    counts
        What is counted besides users.
    is_shown
        Whether people see the interval of each mean, which holds for it alone.

    Examples
    --------
    >>> from unskew.stats.windows.window_values import means_question
    >>> [column.name for column in means_question("split").columns]
    ['metric', 'split', 'system', 'n', 'value', 'se', 'low', 'high']
    """
    limits = [replace(end, hidden=not is_shown) for end in (LOW, HIGH)]
    mean = Column("value", "value", "mean")
    return Question(
        name=f"means by {unit}",
        columns=(METRIC, Column(unit, "key"), SYSTEM, USERS, *counts, mean, SE, *limits),
        method=Method(estimand=f"the mean over the users of each {unit}", interval="t"),
        figures=(Drawing("curves", "points"),),
        across="system",
    )


def mean_rows(data: WindowValues, unit: str, level: float) -> pl.DataFrame:
    """Return a row per window and system: the mean and the interval of it alone.

    Parameters
    ----------
    data
        The values of one metric.
    unit
        What windows are called.
    level
        Of the intervals.

    Examples
    --------
    >>> from unskew.stats.windows.window_values import mean_rows, read_windows
    >>> table = {"user": [1, 2, 1, 2], "window": [1, 1, 2, 2], "x": [0, 1, 1, 1], "y": [1, 1, 0, 0]}
    >>> data = read_windows(table, None).values("value")
    >>> mean_rows(data, "window", 0.95).select("window", "system", "n", "value").rows()[:2]
    [('1', 'x', 2, 0.5), ('1', 'y', 2, 1.0)]
    """
    frames = []
    for window, values in zip(data.windows, data.values, strict=True):
        mean, se, low, high = mean_intervals(values, level)
        keys = {"metric": data.label, unit: window, "system": list(data.systems), "n": len(values)}
        frames.append(pl.DataFrame({**keys, "value": mean, "se": se, "low": low, "high": high}))
    return pl.concat(frames)


def read_windows(
    scores: Any,
    metrics: str | Sequence[str] | None,
    *,
    unit: str = "window",
    better: str | None = None,
    one_system: bool = False,
) -> WindowScores:
    """Read scores by window.

    Parameters
    ----------
    scores
        A mapping from names to what `paired` takes; results of a plan; or a table with a column
        named like the unit.
    metrics
        Labels; all that have a value per user unless given.
    unit
        What a name stands for, as a noun.
    better
        Of tables: which direction is better, as in `paired`.
    one_system
        Whether one system is enough.
    """
    named, notes = _named(scores, unit)
    if len(named) < 2:
        raise SettingError(
            f"{counted(2, unit)} or more are needed, got {len(named)}: give a mapping from "
            f"{unit}s to scores, the results of a plan, or a table with a column {unit!r}"
        )
    parts, averaging_notes = {}, {}
    for name, source in named.items():
        scores_by_user, averaging_notes[name] = _averaged_by_user(source)
        table = not is_evaluated(scores_by_user)
        try:
            parts[name] = (
                paired(scores_by_user, better=better)
                if table and better
                else paired(scores_by_user)
            )
        except DataError as problem:
            raise DataError(f"{unit} {name!r}: ", *problem.args) from None
    notes += _notes(parts, averaging_notes)
    first = next(iter(parts.values()))
    if not one_system:
        check_two_systems(first.systems)
    for name, part in parts.items():
        if set(part.systems) != set(first.systems):
            raise DataError(
                f"{unit} {name!r} is of other systems ({', '.join(part.systems)}) than "
                f"{next(iter(parts))!r} ({', '.join(first.systems)}): give the same ones"
            )
    labels, undirected = _directed(first, metrics)
    for part in parts.values():
        chosen_metrics(part, labels)
    notes += undirected
    return WindowScores(parts, tuple(labels), tuple(dict.fromkeys(notes)))


def _notes(parts: Mapping[str, Paired], averaging_notes: Mapping[str, list[str]]) -> list[str]:
    """Return the notes of all windows, each once; those of some windows name them."""
    scored = {name: part.parts for name, part in parts.items() if part.parts}
    lines = notes_of(scored) if scored else []
    others: dict[str, list[str]] = {}
    for name, part in parts.items():
        common = set(notes_of({"": part.parts})) if part.parts else set()
        for note in (*averaging_notes[name], *(note for note in part.notes if note not in common)):
            others.setdefault(note, []).append(name)
    for note, names in others.items():
        lines.append(note if len(names) == len(parts) else f"{note} ({', '.join(names)})")
    return lines


def _directed(first: Paired, metrics: str | Sequence[str] | None) -> tuple[list[str], list[str]]:
    """Return the metrics of which one direction is better, and a note about the others."""
    labels = chosen_metrics(first, metrics)
    neither = [label for label in labels if first.direction(label) == "neither"]
    if neither and (metrics is not None or len(neither) == len(labels)):
        raise SettingError(
            f"{neither[0]}: neither higher nor lower is better, so that it orders no systems"
        )
    left = [f"{label} is left out: neither higher nor lower is better" for label in neither]
    return [label for label in labels if label not in neither], left


def _named(scores: Any, unit: str) -> tuple[dict[str, Any], list[str]]:
    """Return sources by name, in the order of time, and notes."""
    if isinstance(scores, PlanResults):
        return dict(scores.by_fold()), []
    if isinstance(scores, Mapping) and scores and named_sources(scores):
        return {_text(name): source for name, source in scores.items()}, []
    if is_evaluated(scores):
        raise SettingError(
            f"these scores do not say which {unit} they are of: give a mapping from {unit}s to "
            "scores, the results of a plan, or a table"
        )
    return _from_table(as_table(scores), unit)


def _text(name: object) -> str:
    """Return the name of a window; 30.0 is 30."""
    return f"{name:g}" if isinstance(name, float) else str(name)


def _from_table(table: DataTable, unit: str) -> tuple[dict[str, Any], list[str]]:
    """Cut a table by its column of windows, in natural order: 2 comes before 10."""
    column = next((name for name in table.frame.columns if plain_name(name) == unit), None)
    if column is None:
        raise DataError(
            f"{table.source}: there is no column {unit!r} among: "
            f"{', '.join(table.frame.columns) or 'none'}"
        )
    missing = table.frame[column].is_null()
    if missing.any():
        raise DataError(
            f"{table.source}: column {column!r} is empty in "
            f"{counted(int(missing.sum()), 'row')}, the first: row "
            f"{int(missing.arg_true()[0]) + 1}"
        )
    names = sorted(table.frame[column].cast(pl.String).unique().to_list(), key=natural)
    text = table.frame[column].cast(pl.String)
    frame = table.frame.drop(column)
    parts = {
        name: replace(table, frame=frame.filter(text == name), source=f"{table.source}, {name}")
        for name in names
    }
    return parts, list(table.notes)


def counts_of_test(scores: Scores) -> pl.DataFrame:
    """Return users with test ratings, and how many are liked and disliked, in the order of ids.

    Scores of one and the same test agree in it; those of different windows practically never do.
    """
    counts = scores.lists.filter(pl.col("test") > 0).select("user", "test", "liked", "disliked")
    raw = scores.user_ids.raw(counts["user"].to_numpy())
    return counts.with_columns(user=raw).sort(pl.all())


def _training_counts(scores: Scores) -> pl.DataFrame:
    raw = scores.user_ids.raw(scores.lists["user"].to_numpy())
    counts = pl.DataFrame({"user": raw, "train": scores.lists["train"]})
    return counts.filter(pl.col("train") > 0).unique(maintain_order=True)


def natural(text: str) -> list[tuple[int, float, str]]:
    """Return what sorts texts by the numbers in them: window2 before window10, 1.5 before 2.

    Examples
    --------
    >>> from unskew.stats.windows.window_values import natural
    >>> sorted(["w10", "w2", "w1"], key=natural)
    ['w1', 'w2', 'w10']
    """
    parts = re.split(r"(\d+(?:\.\d+)?)", text)
    return [
        (1, float(part), "") if index % 2 else (0, 0.0, part) for index, part in enumerate(parts)
    ]


def _averaged_by_user(source: Any) -> tuple[Any, list[str]]:
    """Average the lists of each user first: in time, a user's number of lists changes too."""
    folds = [source] if isinstance(source, Scores) else source
    if not (isinstance(folds, Sequence) and all(isinstance(fold, Scores) for fold in folds)):
        return source, []
    has_several = [fold.over != "users" and _has_several(fold) for fold in folds]
    if not any(has_several):
        return source, []
    averaged = [
        replace(fold, over="users") if s else fold
        for fold, s in zip(folds, has_several, strict=True)
    ]
    return averaged, ["the lists of each user are averaged first (over='users')"]


def _has_several(scores: Scores) -> bool:
    """Tell whether some user has several lists."""
    user = scores.lists["user"]
    return user.n_unique() < len(user)
