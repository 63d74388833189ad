"""`step_curves`: means by the number of the step or over time; users are the unit of intervals."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np
import polars as pl

from unskew.arrays import F64, I64
from unskew.checks import as_count, check_share, checked, choose
from unskew.data.times import moment, written
from unskew.errors import DataError, SettingError
from unskew.evaluation.scores import RANDOM, Scores
from unskew.report.charts import Figure
from unskew.report.result import Result
from unskew.report.tables import Table
from unskew.report.text import counted, number
from unskew.stats.clusters import variance_of
from unskew.stats.intervals.means import student_ends

BY = ("step", "window")
MOST = 10
"""Steps that have a point of their own; later ones share one."""
WINDOWS = 6


@dataclass(frozen=True, eq=False)
class StepCurves(Result):
    """Means of steps by their number, or by the window of time in which they fall.

    Made by `step_curves`.
    """

    figure_is_open: ClassVar[bool] = True

    by: str
    """`step` or `window`."""
    systems: tuple[str, ...]
    metrics: tuple[str, ...]
    points: tuple[str, ...]
    rows: pl.DataFrame = field(repr=False)
    """See `table`."""
    over: str
    level: float
    notes: tuple[str, ...] = ()

    def table(self) -> pl.DataFrame:
        """Return a row per metric, point and system.

        `users` and `steps`: how many are averaged; `mean`; `low` and `high`: the interval of this
        mean alone, users being the unit; null with fewer than two. The system `(random)` is what
        chance alone is expected to give.
        """
        return self.rows

    def display_tables(self, digits: int | None = None) -> list[Table]:
        """Return, of each metric, a row per point and a column per system."""
        digits = self.digits if digits is None else digits
        return [self._display(label, digits) for label in self.metrics]

    def _display(self, label: str, digits: int) -> Table:
        rows = []
        mine = self.rows.filter(pl.col("metric") == label)
        for point in self.points:
            here = mine.filter(pl.col(self.by) == point)
            counts = here.row(0, named=True)
            means = {row["system"]: row for row in here.iter_rows(named=True)}
            cells = [_cell(means[name], digits) for name in (*self.systems, RANDOM)]
            rows.append([point, f"{counts['users']:,}", f"{counts['steps']:,}", *cells])
        header = [self.by, "users", "steps", *self.systems, RANDOM]
        title = f"{label} by {self.by}: mean ± half of its {100 * self.level:g} % interval"
        return Table.of_rows(header, rows, left=(0,), title=title)

    def _explanation(self) -> list[str]:
        what = "of each user's steps, then of users" if self.over == "users" else "of all steps"
        lines = [
            f"means {what}; intervals of {100 * self.level:g} % of each mean alone, users being "
            "the unit"
        ]
        if self.by == "step":
            lines.append(
                "later steps belong to users who stay longer: a curve that rises or falls may be a "
                "matter of who is left"
            )
        else:
            lines.append(
                "the models are the same in all windows: their age grows with the period, and what "
                "changes cannot be put down to either"
            )
        return lines

    def _summary(self) -> str:
        return f"{counted(len(self.systems), 'system')}, {counted(len(self.points), self.by)}"

    def figure(self, metric: str | None = None) -> Figure:
        """Draw the curves of one metric, the first unless given.

        Parameters
        ----------
        metric
            Its label.
        """
        from unskew.report import charts

        label = self.metrics[0] if metric is None else choose("metric", metric, self.metrics)
        mine = self.rows.filter((pl.col("metric") == label) & (pl.col("system") != RANDOM))
        note = f"bars: {100 * self.level:g} % intervals of each mean alone, users being the unit"
        return charts.curves(mine, self.by, label, [note])


@checked
def step_curves(
    scores: Scores,
    metrics: str | Sequence[str] | None = None,
    *,
    by: str = "step",
    most: int = MOST,
    windows: int | Sequence[Any] = WINDOWS,
    level: float = 0.95,
) -> StepCurves:
    """Return means by the number of the step, or over time.

    Parameters
    ----------
    scores
        What `evaluate_steps` gave.
    metrics
        Labels; all unless given.
    by
        `step`: its number among the test events of the user or session. `window`: of time.
    most
        With `by="step"`: so many steps have a point of their own, later ones share one.
    windows
        With `by="window"`: how many windows of equal length the time from the first to the last
        step is cut into; or the moments at which they begin and the last one ends (datetimes, ISO
        text), steps outside being left out and counted.
    level
        Of the interval of each mean.

    Examples
    --------
    >>> import unskew as us
    >>> train = {"user": [1, 2, 3], "item": [7, 8, 9], "time": [1, 2, 3]}
    >>> test = {"user": [1, 1, 2, 2], "item": [8, 9, 9, 7], "time": [5, 6, 7, 8]}
    >>> steps = us.targets.next_items(train, test)
    >>> popular = us.recommend.Popularity().fit(steps.train)
    >>> scores = us.evaluation.evaluate_steps(steps, {"popular": popular}, "HitRate@1")
    >>> curves = us.stats.step_curves(scores).table()
    >>> curves.filter(system="popular").select("step", "users", "mean").rows()
    [('1', 2, 0.5), ('2', 2, 1.0)]
    """
    choose("by", by, BY)
    check_share("level", level)
    as_count("most", most)
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
        code, points = _by_step(scores.lists["step"].to_numpy(), most)
    else:
        code, points = _by_window(scores, windows)
    notes = list(scores.notes)
    outside = int(np.count_nonzero(code < 0))
    if outside:
        notes.append(f"{counted(outside, 'step')} outside the windows left out")
    tables = [_points(scores, label, by, code, points, level) for label in labels]
    return StepCurves(
        by=by,
        systems=tuple(scores.systems),
        metrics=tuple(labels),
        points=tuple(points),
        rows=pl.concat(tables),
        over=scores.over,
        level=level,
        notes=tuple(notes),
    )


@checked
def steps_by_window(scores: Scores, windows: int | Sequence[Any] = WINDOWS) -> dict[str, Scores]:
    """Cut the scores of steps into windows of time: what `us.stats.order_over_time` takes.

    Parameters
    ----------
    scores
        What `evaluate_steps` gave.
    windows
        As in `step_curves`.
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


def _points(
    scores: Scores, label: str, by: str, code: I64, points: Sequence[str], level: float
) -> pl.DataFrame:
    """Return a row per point and system, chance last."""
    row = scores.labels.index(label)
    values = {name: system.values[row] for name, system in scores.systems.items()}
    if scores.chance is not None:
        values[RANDOM] = scores.chance.values[row]
    user = scores.lists["user"].to_numpy()
    rows = []
    for index, point in enumerate(points):
        here = code == index
        who, cluster = np.unique(user[here], return_inverse=True)
        for name, system_values in values.items():
            estimate = clustered_mean(system_values[here], cluster, who.size, scores.over, level)
            rows.append((label, point, name, who.size, int(here.sum()), *estimate))
    names = ("metric", by, "system", "users", "steps", "mean", "low", "high")
    table = pl.DataFrame(rows, names, orient="row", infer_schema_length=None)
    return table.with_columns(pl.selectors.float().fill_nan(None))


def clustered_mean(
    values: F64, user: I64, users: int, over: str, level: float
) -> tuple[float, float, float]:
    """Return a mean and its interval by Student's t, users being the unit.

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
        return mean, np.nan, np.nan
    error = float(np.sqrt(variance_of(influence, users)))
    return mean, *student_ends(mean, error, users - 1, level)


def _cell(row: dict[str, Any], digits: int) -> str:
    mean = number(row["mean"], digits)
    if row["low"] is None or row["system"] == RANDOM:
        return mean
    return f"{mean} ± {number((row['high'] - row['low']) / 2, digits)}"
