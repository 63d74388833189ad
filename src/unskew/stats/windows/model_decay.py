"""`model_decay`: what a system loses when its training ends earlier, on one window and one test.

One model judged on later and later windows grows older while the period changes: what is lost
cannot be put down to either. Models of different age judged on the same test by the same users
differ in their training alone.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np
import polars as pl

from unskew.checks import as_count, check_share, checked
from unskew.errors import DataError, SettingError
from unskew.evaluation.scores import Scores
from unskew.report.charts import Figure
from unskew.report.tables import Table
from unskew.report.text import counted, interval, number
from unskew.stats.metric_result import MetricResult
from unskew.stats.simultaneous import simultaneous
from unskew.stats.special import student_t_quantile
from unskew.stats.windows.window_values import (
    WindowScores,
    WindowValues,
    counts_of_test,
    has_one_training,
    read_windows,
)

CONFOUNDED = (
    "age and period are confounded: these scores are of different test ratings ({0} and {1}), so "
    "that an older model is also judged in another period. Judge models of different age on one "
    "window (us.splits.ModelAges); order_over_time compares windows"
)


@dataclass(frozen=True, eq=False)
class ModelDecay(MetricResult):
    """What systems lose with the age of their training. Made by `model_decay`."""

    kind: ClassVar[str] = "this result"

    ages: tuple[str, ...]
    """The youngest first."""
    age_unit: str
    """Of ages that are numbers."""
    users: Mapping[str, int]
    """By metric: users with a value at every age."""
    level: float
    seed: int
    rows: pl.DataFrame = field(repr=False)
    """See `table`."""
    notes: tuple[str, ...] = ()

    def table(self, metric: str | None = None) -> pl.DataFrame:
        """Return a row per metric, system and age.

        `users`, `mean`, `mean_low` and `mean_high` (the interval of this mean alone);
        `difference` to the youngest model of the same system, negative where the older one is
        worse, and its interval `low`, `high`, which holds for all systems and ages of the metric
        at once. Null for the youngest, and where too few users differ.
        """
        return self._of(self.rows, metric)

    def display_tables(self, digits: int | None = None) -> list[Table]:
        """Return, of each metric, a row per system and age."""
        digits = self.digits if digits is None else digits
        return [self._display(label, digits) for label in self.metrics]

    def _display(self, label: str, digits: int) -> Table:
        rows = [
            [
                row["system"],
                self._age(row["age"]),
                number(row["mean"], digits),
                number(row["difference"], digits, signed=True),
                interval(row["low"], row["high"], digits, signed=True),
            ]
            for row in self.table(label).iter_rows(named=True)
        ]
        users = counted(self.users[label], "user")
        title = f"{self._heading(label)}, {users}: older less youngest model"
        header = ["system", "age", "mean", "change", f"{100 * self.level:g} % interval"]
        return Table.of_rows(header, rows, left=(0,), title=title, once=True)

    def brief_table(self, metric: str | None = None) -> Table:
        """Return a row per system: its youngest model, and the change at each age.

        Parameters
        ----------
        metric
            The first one unless given.
        """
        label = self._label(metric)
        rows = []
        for system in self.systems:
            mine = list(self.table(label).filter(pl.col("system") == system).iter_rows(named=True))
            cells = [number(mine[0]["mean"], self.digits)]
            for row in mine[1:]:
                low, high = row["low"], row["high"]
                sure = low is not None and (low > 0 or high < 0)
                change = number(row["difference"], self.digits, signed=True)
                cells.append(f"{change}{'*' if sure else ' '}")
            rows.append([system, *cells])
        ages = [f"change at {self._age(age)}" for age in self.ages[1:]]
        header = ["system", f"mean at age {self._age(self.ages[0])}", *ages]
        title = (
            f"{label} on one window by the age of the model, "
            f"{counted(self.users[label], 'user')} (*: the interval excludes 0)"
        )
        return Table.of_rows(header, rows, left=(0,), title=title)

    def _age(self, age: str) -> str:
        return f"{age} {self.age_unit}".strip()

    def _explanation(self) -> list[str]:
        return [
            f"change: the same system trained up to an earlier moment less its youngest model "
            f"({self._age(self.ages[0])}), same users and same test; negative is worse",
            f"intervals of {100 * self.level:g} % that hold for all systems and ages at once",
            "about these trained models and users like these: another training, or another window "
            "to test on, is not part of it",
        ]

    def _conclusion(self) -> list[str]:
        return [line for label in self.metrics for line in self._findings(label)]

    def _findings(self, label: str) -> list[str]:
        """Say what is lost, at the first and the last age at which it is shown."""
        lines = []
        for system in self.systems:
            rows = self.table(label).filter(pl.col("system") == system).drop_nulls("low")
            for verb, losses in (
                ("loses", rows.filter(pl.col("high") < 0)),
                ("gains", rows.filter(pl.col("low") > 0)),
            ):
                ages = list(losses.iter_rows(named=True))
                for row in ages if len(ages) < 3 else (ages[0], ages[-1]):
                    lines.append(self._sentence(label, verb, row))
        return lines or [f"{label}: no system is shown to lose or gain with age"]

    def _sentence(self, label: str, verb: str, row: Mapping[str, object]) -> str:
        limits = sorted(abs(float(row[end])) for end in ("low", "high"))  # type: ignore[arg-type]
        change = number(abs(float(row["difference"])), self.digits)  # type: ignore[arg-type]
        low, high = (number(end, self.digits) for end in limits)
        if self.better[label] == "lower":
            verb = {"loses": "is worse by", "gains": "is better by"}[verb]
        age = self._age(str(row["age"]))
        return (
            f"{label}: {row['system']} {verb} {change} ({low} to {high}) at age {age}, compared "
            f"with age {self._age(self.ages[0])}"
        )

    def _summary(self) -> str:
        return f"{counted(len(self.systems), 'system')}, {counted(len(self.ages), 'age')}"

    def _content(self) -> dict[str, object]:
        metrics = self._facts(users=self.users)
        return {
            "systems": self.systems,
            "ages": self.ages,
            "age_unit": self.age_unit,
            "metrics": metrics,
            **self._fields("systems", "metrics", "better", "ages", "age_unit", "users"),
            "notes": self.footer(),
        }

    def figure(self, metric: str | None = None) -> Figure:
        """Draw the mean of each system by age, with the interval of each mean alone."""
        from unskew.report import charts

        label = self._label(metric)
        renamed = self.table(label).with_columns(low="mean_low", high="mean_high")
        note = (
            f"bars: {100 * self.level:g} % intervals of each mean alone; ages share users and "
            "test, so that changes are known better than the bars say"
        )
        return charts.curves(renamed, "age", label, [note])


@checked
def model_decay(
    scores: object,
    metrics: str | Sequence[str] | None = None,
    *,
    level: float = 0.95,
    age_unit: str = "days",
    better: str | None = None,
    seed: int = 0,
) -> ModelDecay:
    """Return what systems lose when their training ends earlier, judged on one window.

    Parameters
    ----------
    scores
        A mapping from ages to what `evaluate` gave on one and the same test (or to values per user,
        see `paired`): ages that are numbers are sorted, others are taken in the order given, the
        youngest first. Or the results of a plan whose split is `us.splits.ModelAges`, or a table
        with a column `age`. Users without a value at some age are left out and counted.
    metrics
        Labels; all that have a value per user unless given. Each metric has its own correction.
    level
        Of all intervals of a metric together.
    age_unit
        What ages are counted in, where they are numbers.
    better
        Of tables: which direction is better, see `paired`.
    seed
        Of the draws behind simultaneous intervals.

    Notes
    -----
    Scores of different tests are refused: where an older model is also judged in another period,
    age and period are confounded. A model whose training ends earlier has usually fewer training
    ratings too; where their numbers are known, the result shows them.

    Examples
    --------
    >>> import numpy as np
    >>> import unskew as us
    >>> rng = np.random.default_rng(1)
    >>> young, user = rng.binomial(10, 0.4, 500) / 10, np.arange(500)
    >>> old = np.maximum(young - 0.1 * rng.integers(0, 3, 500), 0)
    >>> ages = {0: {"user": user, "x": young, "y": young}, 30: {"user": user, "x": old, "y": young}}
    >>> print(us.stats.model_decay(ages).footer()[-1])
    value: x loses 0.1028 (0.0956 to 0.1100) at age 30 days, compared with age 0 days
    """
    check_share("level", level)
    as_count("seed", seed, least=0)
    windows = read_windows(scores, metrics, unit="age", better=better, one_system=True)
    windows = _by_age(windows)
    _check_one_test(windows)
    tables, users, notes = [], {}, list(windows.notes)
    for label in windows.metrics:
        data = windows.values(label)
        table, lost = _decay(data, level, seed)
        tables.append(table)
        users[label] = int(table["users"][0])
        if lost:
            notes.append(
                f"{label}: {counted(lost, 'user has', 'users have')} no value at some age and do "
                "not count"
            )
    return ModelDecay(
        systems=windows.systems,
        ages=tuple(windows.parts),
        metrics=windows.metrics,
        better={label: windows.values(label).better for label in windows.metrics},
        rows=pl.concat(tables),
        users=users,
        level=level,
        age_unit=age_unit if all(_is_numeric(age) for age in windows.parts) else "",
        seed=seed,
        notes=(*dict.fromkeys(notes), *_training_sizes(windows)),
    )


def _is_numeric(age: str) -> bool:
    try:
        return bool(np.isfinite(float(age)))
    except ValueError:
        return False


def _by_age(windows: WindowScores) -> WindowScores:
    """Sort ages that are numbers; others stand as given, the youngest first.

    Labels of splits such as age7d are ages of 7d.
    """
    parts = {re.sub(r"^age(?=\d)", "", name): part for name, part in windows.parts.items()}
    if all(map(_is_numeric, parts)):
        parts = {name: parts[name] for name in sorted(parts, key=float)}
    return WindowScores(parts, windows.metrics, windows.notes)


def _fact(windows: WindowScores, part: str, name: str) -> dict[str, object]:
    """Return something that the cards of all ages know, by age; empty where one does not."""
    facts = {}
    for age, pairing in windows.parts.items():
        if len(pairing.parts) != 1:
            return {}
        value = (pairing.parts[0].card.get(part) or {}).get(name)
        if value is None:
            return {}
        facts[age] = value
    return facts


def _check_one_test(windows: WindowScores) -> None:
    """Refuse ages that were judged by different test ratings, or were trained on the same ones."""
    first, *older = windows.parts
    tests = _fact(windows, "judgments", "fingerprint")
    counts = {
        age: counts_of_test(pairing.parts[0])
        for age, pairing in windows.parts.items()
        if pairing.parts
    }
    for age in older:
        other_rows = bool(tests) and tests[age] != tests[first]
        other_counts = len(counts) > 1 and not counts[age].equals(counts[first])
        if other_rows or other_counts:
            raise SettingError(CONFOUNDED.format(f"age {first}", f"age {age}"))
    if has_one_training(windows):
        raise SettingError(
            "the training ratings are the same at all ages: models of different age are trained up "
            "to different moments (us.splits.ModelAges)"
        )


def _training_sizes(windows: WindowScores) -> list[str]:
    rows, whose = _fact(windows, "train", "rows"), "training ratings"
    if not rows:
        parts = {age: pairing.parts for age, pairing in windows.parts.items()}
        if not all(len(part) == 1 and "train" in part[0].lists.columns for part in parts.values()):
            return []
        rows = {age: int(_tested(folds[0])["train"].sum()) for age, folds in parts.items()}
        whose = "training ratings of the judged users"
    if len(set(rows.values())) < 2:
        return []
    listed = ", ".join(f"{int(str(count)):,} at age {age}" for age, count in rows.items())
    return [f"{whose}: {listed}; age and the amount of training change together"]


def _tested(scores: Scores) -> pl.DataFrame:
    """Return the lists of users with test ratings."""
    return scores.lists.filter(pl.col("test") > 0)


def _decay(data: WindowValues, level: float, seed: int) -> tuple[pl.DataFrame, int]:
    """Return a row per system and age, and how many users have no value at some age."""
    ages = len(data.windows)
    common = np.flatnonzero(data.counts == ages)
    if common.size < 2:
        raise DataError(
            f"{data.label}: {counted(common.size, 'user has', 'users have')} a value at every age; "
            "at least 2 are needed"
        )
    values = np.stack(
        [
            value[np.searchsorted(code, common)]
            for value, code in zip(data.values, data.codes, strict=True)
        ]
    )
    change = data.sign * (values[1:] - values[:1])
    columns = np.ascontiguousarray(change.transpose(1, 0, 2)).reshape(common.size, -1)
    result = simultaneous([columns], [np.arange(common.size)], common.size, level=level, seed=seed)
    shape = (ages - 1, len(data.systems))
    estimates = {
        name: np.concatenate([np.full((1, shape[1]), np.nan), getattr(result, name).reshape(shape)])
        for name in ("difference", "low", "high")
    }
    # A row per system, and in each per age.
    mean = np.array([[column.mean() for column in age.T] for age in values])
    spread = np.array([[column.std(ddof=1) for column in age.T] for age in values])
    half = student_t_quantile((1 + level) / 2, common.size - 1) / np.sqrt(common.size) * spread
    numbers = {"mean": mean, "mean_low": mean - half, "mean_high": mean + half, **estimates}
    table = pl.DataFrame(
        {
            "metric": data.label,
            "system": np.repeat(data.systems, ages),
            "age": list(data.windows) * len(data.systems),
            "users": np.full(mean.size, common.size),
            **{name: part.T.ravel() for name, part in numbers.items()},
        }
    )
    return table.with_columns(pl.selectors.float().fill_nan(None)), len(data.users) - common.size
