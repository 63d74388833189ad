"""`answer`: values, and what each unit moves them by, become an `Estimates`.

A new question needs its keys, a value per row, and the *influence* of each unit (a user, a group of
users, a list): for a mean (x - mean) / n, for a ratio of sums (top - value x bottom) / sum of
bottoms, for a difference the difference of two. Standard errors, intervals, p-values, corrections
and clusters follow here, for any question.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from statistics import NormalDist
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import ArrayLike, NDArray

from unskew.arrays import F64, Mask
from unskew.checks import check_share, checked, choose
from unskew.errors import DataError
from unskew.report.columns import Question
from unskew.report.estimates import Estimates
from unskew.report.text import counted
from unskew.stats.clusters import variance_of
from unskew.stats.corrections import CORRECTIONS, IN_WORDS, correct
from unskew.stats.intervals.means import student_ends
from unskew.stats.simultaneous import LEAST_DRAWS, critical_value, largest_t
from unskew.stats.special import student_t_sf


@checked
def answer(
    question: Question,
    keys: Sequence[Mapping[str, Any]],
    value: ArrayLike,
    influence: ArrayLike,
    *,
    clusters: ArrayLike | None = None,
    level: float = 0.95,
    together: bool = False,
    correction: str | None = "holm",
    family: Sequence[str] = ("metric",),
    seed: int = 0,
    **settings: Any,
) -> Estimates:
    """Return values with standard errors, Student's intervals and p-values.

    Parameters
    ----------
    question
        Its columns say what is shown: any of `n`, `value`, `se`, `low`, `high`, `p`, `p_corrected`,
        `significant` and `note`.
    keys
        Of each row: its keys and facts, by the name of the column.
    value
        Of each row; NaN where there is none.
    influence
        Units x rows: what each unit moves the value by; NaN where it is not part of the row.
    clusters
        The cluster of each unit, such as its household: what units of one cluster move is added up,
        and clusters are what is drawn at random.
    level
        Of the intervals; 1 - level is the level of significance.
    together
        Let all intervals hold at once: their width follows from draws of the largest |t|.
    correction
        Of the p-values of a family: `holm`, `bonferroni`, `bh`, `by` or None.
    family
        The keys within whose values p-values are corrected together.
    seed
        Of the draws.
    settings
        The other fields of `Estimates`: `explanation`, `notes`, `parts`, `card`.

    Returns
    -------
    Estimates
        A row per row of `keys`. Where fewer than two units are part of a row it has no interval and
        no p, and its `note` says so.

    Examples
    --------
    >>> import numpy as np
    >>> from unskew.report.columns import HIGH, LOW, SYSTEM, USERS, VALUE, Method, Question
    >>> from unskew.stats.answer import answer, mean_influence
    >>> columns = (SYSTEM, USERS, VALUE, LOW, HIGH)
    >>> question = Question(name="means", columns=columns, method=Method(estimand="the mean"))
    >>> x = np.array([[1.0, 0.0], [0.0, 0.0], [1.0, 1.0], [1.0, np.nan]])
    >>> answer(question, [{"system": "a"}, {"system": "b"}], *mean_influence(x))
    system  users   value             95% CI
    a           4  0.7500  [−0.0456, 1.5456]
    b           3  0.3333  [−1.1009, 1.7676]
    95% CI: t, by user
    """
    check_share("level", level)
    if correction is not None:
        choose("correction", correction, CORRECTIONS)
    values, moves = np.asarray(value, np.float64), np.asarray(influence, np.float64)
    if moves.ndim != 2 or not len(keys) == values.size == moves.shape[1]:
        raise DataError(
            f"keys, value and influence must be of the same rows: there are {len(keys)} keys, "
            f"{values.size} values, and influence has the shape {moves.shape}"
        )
    if clusters is not None:
        moves = _by_cluster(moves, np.asarray(clusters))
    units = np.count_nonzero(~np.isnan(moves), axis=0)
    is_enough = (units > 1) & ~np.isnan(values)
    moves, df = np.nan_to_num(moves[:, is_enough]), units[is_enough] - 1.0
    estimate, se = values[is_enough], np.sqrt(variance_of(moves, units[is_enough]))
    share = level
    if together and is_enough.any():
        critical = critical_value(largest_t([moves], LEAST_DRAWS, seed), level)
        share = 2 * NormalDist().cdf(critical) - 1
    low, high = student_ends(estimate, se, df, share)
    with np.errstate(divide="ignore", invalid="ignore"):
        t = np.where(estimate == 0, 0.0, np.abs(estimate) / se)
    numbers = {
        "se": se,
        "low": low,
        "high": high,
        "p": 2 * student_t_sf(t, df),
    }
    unit = question.method.single_unit
    notes = [
        "" if ready else f"{counted(n, unit)}, fewer than 2" if n < 2 else "no value"
        for ready, n in zip(is_enough.tolist(), units.tolist(), strict=True)
    ]
    rows = pl.DataFrame(list(keys), infer_schema_length=None).with_columns(
        value=pl.Series(values, dtype=pl.Float64),
        n=pl.Series(units),
        note=pl.Series(notes, dtype=pl.String),
        **{name: _where(is_enough, column) for name, column in numbers.items()},
    )
    groups = [name for name in family if name in rows.columns]
    rows = _corrected(rows, groups, correction).with_columns(
        significant=pl.col("p_corrected") <= 1 - level
    )
    method = replace(
        question.method,
        interval="t",
        level=level,
        together=f"largest |t| of {LEAST_DRAWS:,} draws" if together else "",
        seed=seed if together else None,
    )
    if any(column.name == "p" for column in question.columns):
        scope = f" within each {' and '.join(groups)}" if groups else ""
        words = correction and f"{IN_WORDS[correction]}{scope}"
        method = replace(method, test=method.test or "t test", correction=words)
    return Estimates.of_rows(question, rows, method=method, **settings)


def mean_influence(values: ArrayLike) -> tuple[F64, F64]:
    """Return the mean of each column, and what each row moves it by; NaN: not part of the column.

    Examples
    --------
    >>> from unskew.stats.answer import mean_influence
    >>> mean, influence = mean_influence([[1.0, 3.0], [3.0, float("nan")]])
    >>> mean.tolist(), influence[:, 0].tolist()
    ([2.0, 3.0], [-0.5, 0.5])
    """
    columns = np.asarray(values, np.float64)
    count = np.count_nonzero(~np.isnan(columns), axis=0)
    with np.errstate(divide="ignore", invalid="ignore"):
        mean = np.nansum(columns, axis=0) / count
        return mean, (columns - mean) / count


def _by_cluster(moves: F64, clusters: NDArray[Any]) -> F64:
    """Return clusters x rows: what all units of a cluster move together."""
    if clusters.shape != moves.shape[:1]:
        raise DataError(f"clusters: {len(moves)} are needed, one per unit, got {clusters.shape}")
    names, number = np.unique(clusters, return_inverse=True)
    added, members = np.zeros((2, names.size, moves.shape[1]))
    np.add.at(added, number, np.nan_to_num(moves))
    np.add.at(members, number, ~np.isnan(moves))
    return np.where(members > 0, added, np.nan)


def _where(mask: Mask, numbers: F64) -> pl.Series:
    """Return numbers of the rows of a mask; null elsewhere."""
    column = np.full(mask.size, np.nan)
    column[mask] = numbers
    return pl.Series(column, nan_to_null=True)


def _corrected(rows: pl.DataFrame, groups: list[str], correction: str | None) -> pl.DataFrame:
    if correction is None:
        return rows.with_columns(p_corrected="p")

    def of_family(p: pl.Series) -> pl.Series:
        return pl.Series(correct(p.to_numpy(), correction), nan_to_null=True)

    corrected = pl.col("p").map_batches(of_family, pl.Float64)
    return rows.with_columns(p_corrected=corrected.over(groups) if groups else corrected)
