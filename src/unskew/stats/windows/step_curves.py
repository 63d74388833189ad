"""`step_curves`: means by the number of the step or over time; users are the unit of intervals."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import polars as pl

from unskew.arrays import F64, I64
from unskew.checks import as_count, check_share, checked, choose
from unskew.data.times import moment, written
from unskew.errors import DataError, SettingError
from unskew.evaluation.scores import RANDOM, Scores
from unskew.report.columns import Column
from unskew.report.estimates import Estimates
from unskew.report.text import counted
from unskew.stats.clusters import variance_of
from unskew.stats.intervals.means import student_ends
from unskew.stats.windows.window_values import means_question

MOST = 10
"""Steps that have a point of their own; later ones share one."""
WINDOWS = 6
CAUTIONS = {
    "step": "later steps belong to users who stay longer: a curve that rises or falls may be a "
    "matter of who is left",
    "window": "the models are the same in all windows: their age grows with the period, and what "
    "changes cannot be put down to either",
}


@checked
def step_curves(
    scores: Scores,
    metrics: str | Sequence[str] | None = None,
    *,
    by: str = "step",
    max_steps: int = MOST,
    windows: int | Sequence[Any] = WINDOWS,
    level: float = 0.95,
) -> Estimates:
    """Return means by the number of the step, or over time.

    Parameters
    ----------
    scores
        What `evaluate_steps` gave.
    metrics
        Labels; all unless given.
    by
        `step`: its number among the test events of the user or session. `window`: of time.
    max_steps
        With `by="step"`: so many steps have a point of their own, later ones share one.
    windows
        With `by="window"`: how many windows of equal length the time from the first to the last
        step is cut into; or the moments at which they begin and the last one ends (datetimes, ISO
        text), steps outside being left out and counted.
    level
        Of the interval of each mean.

    Returns
    -------
    Estimates
        A row per metric, step (or window) and system: the mean and the interval of it alone, users
        being the unit, none with fewer than two; how many users and `steps` are averaged. The
        system `(random)` is what chance alone is expected to give.

    Examples
    --------
    >>> import unskew as us
    >>> train = {"user": [1, 2, 3], "item": [7, 8, 9], "time": [1, 2, 3]}
    >>> test = {"user": [1, 1, 2, 2], "item": [8, 9, 9, 7], "time": [5, 6, 7, 8]}
    >>> steps = us.targets.next_items(train, test)
    >>> popular = us.recommend.Popularity().fit(steps.train)
    >>> scores = us.evaluation.evaluate_steps(steps, {"popular": popular}, "HitRate@1")
    >>> curves = us.stats.step_curves(scores)
    >>> curves.row(system="popular", step="1").value, curves.row(system="popular", step="2").value
    (0.5, 1.0)
    """
    choose("by", by, CAUTIONS)
    check_share("level", level)
    as_count("max_steps", max_steps)
    _check_steps(scores)
    requested = [metrics] if isinstance(metrics, str) else metrics
    labels = (
        [scores._label(metric) for metric in requested]
        if requested is not None
        else list(scores.labels)
    )
    if not labels:
        raise SettingError("no metrics are named; leave metrics out to take all there are")
    if by == "step":
        code, points = _by_step(scores.lists["step"].to_numpy(), max_steps)
    else:
        code, points = _by_window(scores, windows)
    notes = list(scores.notes)
    outside = int(np.count_nonzero(code < 0))
    if outside:
        notes.append(f"{counted(outside, 'step')} outside the windows left out")
    what = "of each user's steps, then of users" if scores.over == "users" else "of all steps"
    return Estimates.of_rows(
        means_question(by, Column("steps", "count"), is_shown=True),
        [row for label in labels for row in _rows(scores, label, code, points, level)],
        level=level,
        explanation=(f"means {what}, ± half of the CI", CAUTIONS[by]),
        notes=tuple(notes),
        card={"better": {label: scores.metrics[label].better for label in labels}},
    )


@checked
def steps_by_window(scores: Scores, windows: int | Sequence[Any] = WINDOWS) -> dict[str, Scores]:
    """Cut the scores of steps into windows of time: what `us.stats.order_changes` takes.

    Parameters
    ----------
    scores
        What `evaluate_steps` gave.
    windows
        As in `step_curves`.

    Examples
    --------
    >>> import unskew as us
    >>> train = {"user": [1, 2, 3], "item": [7, 8, 9], "time": [1, 2, 3]}
    >>> test = {"user": [1, 1, 2, 2], "item": [8, 9, 9, 7], "time": [5, 6, 7, 8]}
    >>> steps = us.targets.next_items(train, test)
    >>> popular = us.recommend.Popularity().fit(steps.train)
    >>> scores = us.evaluation.evaluate_steps(steps, {"popular": popular}, "HitRate@1")
    >>> list(us.stats.steps_by_window(scores, 2).values())
    [Scores(1 system, 1 metric, 2 lists), Scores(1 system, 1 metric, 2 lists)]
    """
    _check_steps(scores)
    code, points = _by_window(scores, windows)
    return {name: scores.of_lists(code == window) for window, name in enumerate(points)}


def _check_steps(scores: Scores) -> None:
    if "step" not in scores.lists.columns:
        raise DataError(
            "these scores have no steps: give what evaluate_steps gave "
            "(us.evaluation.evaluate_steps)"
        )


def _by_step(step: I64, maximum: int) -> tuple[I64, list[str]]:
    """Number steps up to `maximum`; later ones share a point."""
    code = np.minimum(step, maximum + 1) - 1
    used = np.unique(code)
    names = [
        str(step_index + 1) if step_index < maximum else f"{maximum + 1} and more"
        for step_index in used.tolist()
    ]
    return np.searchsorted(used, code), names


def _by_window(scores: Scores, windows: int | Sequence[Any]) -> tuple[I64, list[str]]:
    """Return the window of each step, -1 for none, and what windows with steps are called."""
    time = scores.lists["time"].cast(pl.Datetime("us")).dt.timestamp("us").to_numpy()
    if isinstance(windows, int):
        as_count("windows", windows, most=10_000)
        bounds = np.linspace(int(time.min()), int(time.max()) + 1, windows + 1)
        edges = np.round(bounds).astype(np.int64)
    else:
        edges = np.array([_moment(window) for window in windows], np.int64)
        if edges.size < 2 or (np.diff(edges) <= 0).any():
            raise SettingError("windows must be at least 2 moments, each later than the one before")
    code = np.searchsorted(edges, time, side="right") - 1
    code[(code >= edges.size - 1) | (time < edges[0])] = -1
    used = np.unique(code[code >= 0])
    if not used.size:
        raise DataError("no step falls into the windows")
    names = _window_names(edges, used)
    number_of = np.full(edges.size + 1, -1)
    number_of[used] = np.arange(used.size)
    return number_of[code], names


def _window_names(edges: I64, used: I64) -> list[str]:
    """Name windows by the day on which they begin, or the moment where a day has several."""
    moments = [written(int(edges[index])) for index in used.tolist()]
    days = [moment[:10] for moment in moments]
    return days if len(set(days)) == len(days) else moments


def _moment(value: Any) -> int:
    """Return a moment as microseconds since 1970."""
    try:
        return moment(value)
    except (SettingError, TypeError, ValueError, OverflowError):
        raise SettingError(
            "windows must be a number of windows, or moments such as '2024-01-31' or datetimes; "
            f"got {value!r}"
        ) from None


def _rows(
    scores: Scores, label: str, code: I64, points: Sequence[str], level: float
) -> Iterator[tuple[object, ...]]:
    """Yield a row per point and system, chance last."""
    row = scores.labels.index(label)
    values = {name: system.values[row] for name, system in scores.systems.items()}
    if scores.chance is not None:
        values[RANDOM] = scores.chance.values[row]
    user = scores.lists["user"].to_numpy()
    for index, point in enumerate(points):
        here = code == index
        who, cluster = np.unique(user[here], return_inverse=True)
        for name, system_values in values.items():
            numbers = clustered_mean(system_values[here], cluster, who.size, scores.over, level)
            yield label, point, name, who.size, int(here.sum()), *numbers


def clustered_mean(
    values: F64, user: I64, users: int, over: str, level: float
) -> tuple[float, float, float, float]:
    """Return a mean, its standard error and its interval by Student's t, users being the unit.

    Over users: the mean of each user's mean. Over lists: a ratio of sums, whose standard error is
    that of the users' residuals (Cochran, Sampling techniques, 3rd edition, section 9.4).
    """
    total = np.bincount(user, values, users)
    size = np.bincount(user, minlength=users).astype(np.float64)
    if over == "users":
        user_means = total / size
        mean = float(user_means.mean())
        influence = (user_means - mean) / users
    else:
        mean = float(total.sum() / size.sum())
        influence = (total - mean * size) / size.sum()
    if users < 2:
        return mean, np.nan, np.nan, np.nan
    error = float(np.sqrt(variance_of(influence, users)))
    return mean, error, *student_ends(mean, error, users - 1, level)
