"""`order_over_time`: whether systems change places between windows, more than chance does."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from unskew.arrays import F64
from unskew.checks import as_count, check_share, checked
from unskew.engine.progress import Progress, notebook_progress
from unskew.errors import SettingError
from unskew.stats.agreement.agreement import BOOTSTRAP, Agreement, agreement
from unskew.stats.corrections import correct
from unskew.stats.intervals.means import student_ends
from unskew.stats.pairing import Pairs, all_pairs
from unskew.stats.simultaneous import Differences
from unskew.stats.windows.order_over_time_result import OrderOverTime
from unskew.stats.windows.window_tests import (
    Cells,
    WithinUsers,
    between_windows,
    differences_of,
    tau_by_chance,
    within_users,
)
from unskew.stats.windows.window_values import (
    WindowScores,
    WindowValues,
    has_one_training,
    read_windows,
)

EXCHANGES = 1_999
CONFOUNDED = (
    "the training ratings are the same in all windows: the age of the models grows with the "
    "period, and what changes cannot be put down to either; see model_decay"
)
"""Said where one model is judged on later and later windows."""


@notebook_progress("order over time")
@checked
def order_over_time(
    scores: object,
    metrics: str | Sequence[str] | None = None,
    *,
    level: float = 0.95,
    exchanges: int = EXCHANGES,
    bootstrap: int = BOOTSTRAP,
    better: str | None = None,
    seed: int = 0,
    threads: int | None = None,
    progress: Progress | None = None,
) -> OrderOverTime:
    """Compare the same systems over windows of time: curves, differences, changes of order.

    Two findings are kept apart. *Differences vary*: the difference between two systems is not the
    same in all windows; tested by exchanging each user's windows at random, and by the means of
    windows over users, of which both must show it. Both look at differences between systems, so
    that a level that rises and falls for all systems alike is no finding. *The order changes*: one
    system is shown to be ahead in one window and behind in another, by intervals that hold for all
    pairs and windows at once.

    Parameters
    ----------
    scores
        A mapping from windows, in the order of time, to what `evaluate` gave (or to values per
        user, see `paired`); the results of a plan whose split has several parts, such as
        `us.splits.Windows`; or a table with a column `window` beside those that `paired` takes,
        whose windows are put in natural order.
    metrics
        Labels; all that have a value per user unless given. Each metric has its own correction.
    level
        Of all intervals of a metric together; 1 - level is the level of the tests.
    exchanges
        How often each user's windows are exchanged at random. Where that would take too long, p is
        that of Hotelling's F, which the result says.
    bootstrap
        How often users are drawn, with all their windows, for the interval of each τ; 0 for none.
    better
        Of tables: which direction is better, `higher`, `lower` or `neither`; see `paired`.
    seed, threads
        The same seed gives the same numbers, on any number of threads.
    progress
        Called with (done, total) as windows are exchanged.

    Notes
    -----
    What is said is about these trained models and about users like those of each window. Windows
    are periods: where one model is judged on later and later windows, its age grows with the
    period; `model_decay` tells the age of a model apart.

    Examples
    --------
    >>> import numpy as np
    >>> import unskew as us
    >>> rng = np.random.default_rng(3)
    >>> user, window = np.tile(np.arange(200), 4), np.repeat([1, 2, 3, 4], 200)
    >>> lead = np.where(window < 3, 0.2, -0.2)  # a is ahead at first, b later
    >>> values = {"a": rng.normal(0.5 + lead, 0.3), "b": rng.normal(0.5, 0.3, 800)}
    >>> result = us.stats.order_over_time({"user": user, "window": window, **values})
    >>> result.changes().select("a", "b", "a_ahead", "b_ahead", "reverses").rows()
    [('a', 'b', ['1', '2'], ['3', '4'], True)]
    """
    return _orders(
        scores,
        metrics,
        unit="window",
        level=level,
        exchanges=exchanges,
        bootstrap=bootstrap,
        better=better,
        seed=seed,
        threads=threads,
        progress=progress,
    )


@notebook_progress("order across splits")
@checked
def order_across_splits(
    scores: object,
    metrics: str | Sequence[str] | None = None,
    *,
    unit: str = "split",
    level: float = 0.95,
    exchanges: int = EXCHANGES,
    bootstrap: int = BOOTSTRAP,
    better: str | None = None,
    seed: int = 0,
    threads: int | None = None,
    progress: Progress | None = None,
) -> OrderOverTime:
    """Compare the order of the same systems under a random split and a split by time.

    Kendall's τ between the orders with its interval over users, the differences of all pairs under
    each split with intervals that hold at once, and the pairs whose order changes: significantly
    one way under one split and the other way under the other.

    Parameters
    ----------
    scores
        A mapping from the name of a split, such as `random` and `time`, to what `evaluate` gave,
        or to a list of such for its folds (their means are averaged); or a table with a column
        `split`.
    unit
        What the orders belong to, in words, where it is not a split but another condition.
    metrics, level, exchanges, bootstrap, better, seed, threads, progress
        As in `order_over_time`.

    Examples
    --------
    >>> import numpy as np
    >>> import unskew as us
    >>> rng = np.random.default_rng(5)
    >>> user = np.arange(300)
    >>> random = {"user": user, "a": rng.normal(0.6, 0.2, 300), "b": rng.normal(0.5, 0.2, 300)}
    >>> time = {"user": user, "a": rng.normal(0.3, 0.2, 300), "b": rng.normal(0.4, 0.2, 300)}
    >>> result = us.stats.order_across_splits({"random": random, "time": time})
    >>> result.tau["value"].tau[0, 1].item(), result.changes()["reverses"].to_list()
    (-1.0, [True])
    """
    folded = scores
    if isinstance(scores, Mapping):
        folded = {str(name): _folds(source) for name, source in scores.items()}
    return _orders(
        folded,
        metrics,
        unit=unit,
        level=level,
        exchanges=exchanges,
        bootstrap=bootstrap,
        better=better,
        seed=seed,
        threads=threads,
        progress=progress,
    )


def _folds(source: Any) -> Any:
    """Return the scores of each fold of a plan's results; anything else as it is."""
    scores = getattr(source, "scores", None)
    return scores() if callable(scores) and hasattr(source, "by_fold") else source


def _orders(
    scores: Any,
    metrics: str | Sequence[str] | None,
    *,
    unit: str,
    level: float,
    exchanges: int,
    bootstrap: int,
    better: str | None,
    seed: int,
    threads: int | None,
    progress: Progress | None,
) -> OrderOverTime:
    check_share("level", level)
    as_count("exchanges", exchanges, most=1_000_000)
    if exchanges < 99:
        raise SettingError(f"exchanges must be at least 99, got {exchanges}")
    as_count("bootstrap", bootstrap, least=0)
    as_count("seed", seed, least=0)
    windows = read_windows(scores, metrics, unit=unit, better=better)
    pairs = all_pairs(len(windows.systems))
    curves, differences, changes = [], [], []
    tau: dict[str, Agreement] = {}
    chance, users, by_f = {}, {}, False
    for label in windows.metrics:
        data = windows.values(label)
        cells = Cells.of(data)
        simultaneous_differences = differences_of(data, pairs, level=level, seed=seed)
        test = within_users(
            cells, pairs, exchanges=exchanges, seed=seed, threads=threads, progress=progress
        )
        by_f |= test.exchanges == 0 and test.users > 0
        curves.append(_curves(data, level, unit))
        differences.append(_differences(data, pairs, simultaneous_differences, unit))
        changes.append(
            _changes(
                data, pairs, simultaneous_differences, test, between_windows(data, pairs), level
            )
        )
        tau[label] = agreement(
            dict(windows.parts), label, bootstrap=bootstrap, seed=seed, threads=threads
        )
        chance[label] = tau_by_chance(data, cells, seed=seed, threads=threads)
        users[label] = (len(data.users), cells.users)
    return OrderOverTime(
        unit=unit,
        systems=windows.systems,
        windows=tuple(windows.parts),
        metrics=windows.metrics,
        better={label: windows.values(label).better for label in windows.metrics},
        means=pl.concat(curves),
        rows=pl.concat(differences),
        tests=pl.concat(changes),
        tau=tau,
        chance=chance,
        users=users,
        level=level,
        exchanges=0 if by_f else exchanges,
        bootstrap=bootstrap,
        seed=seed,
        notes=(*windows.notes, *_same_training(windows, unit)),
    )


def _same_training(windows: WindowScores, unit: str) -> list[str]:
    """Say that age and period are confounded where all windows have the same training ratings."""
    return [CONFOUNDED] if unit == "window" and has_one_training(windows) else []


def _curves(data: WindowValues, level: float, unit: str) -> pl.DataFrame:
    """Return a row per window and system: the mean with its own interval."""
    rows = []
    for window, values in zip(data.windows, data.values, strict=True):
        users = len(values)
        middle = values.mean(axis=0) if users else np.full(len(data.systems), np.nan)
        low = high = np.full(len(data.systems), np.nan)
        if users > 1:
            error = values.std(axis=0, ddof=1) / np.sqrt(users)
            low, high = student_ends(middle, error, users - 1, level)
        rows += [
            (data.label, window, system, users, *numbers)
            for system, *numbers in zip(data.systems, middle, low, high, strict=True)
        ]
    names = ("metric", unit, "system", "users", "mean", "low", "high")
    table = pl.DataFrame(rows, names, orient="row", infer_schema_length=None)
    return table.with_columns(pl.selectors.float().fill_nan(None))


def _differences(
    data: WindowValues, pairs: Pairs, estimates: Differences, unit: str
) -> pl.DataFrame:
    """Return a row per pair and window."""
    count, windows = len(pairs), len(data.windows)

    def flat(values: NDArray[np.generic]) -> NDArray[Any]:
        return np.ascontiguousarray(values.T).reshape(-1)

    table = pl.DataFrame(
        {
            "metric": [data.label] * (count * windows),
            "a": [data.systems[i] for i in pairs.one for _ in range(windows)],
            "b": [data.systems[i] for i in pairs.other for _ in range(windows)],
            unit: list(data.windows) * count,
            "users": np.tile(estimates.users, count),
            "difference": flat(estimates.difference),
            "se": flat(estimates.se),
            "low": flat(estimates.low),
            "high": flat(estimates.high),
        }
    )
    ahead, behind = (pl.Series(flat(mask)) for mask in (estimates.ahead, estimates.behind))
    return table.with_columns(
        pl.selectors.float().fill_nan(None), ahead=pl.when(ahead).then("a").when(behind).then("b")
    )


def _changes(
    data: WindowValues,
    pairs: Pairs,
    estimates: Differences,
    test: WithinUsers,
    between: F64,
    level: float,
) -> pl.DataFrame:
    """Return a row per pair: whether differences vary, and whether the order changes."""
    larger_p = np.maximum(test.p, between)
    corrected = correct(larger_p, "holm")
    ahead, behind = (
        [[data.windows[w] for w in np.flatnonzero(column)] for column in mask.T]
        for mask in (estimates.ahead, estimates.behind)
    )
    columns = {
        "metric": [data.label] * len(pairs),
        "a": [data.systems[i] for i in pairs.one],
        "b": [data.systems[i] for i in pairs.other],
        "least": np.fmin.reduce(estimates.difference, axis=0),
        "most": np.fmax.reduce(estimates.difference, axis=0),
        "statistic": test.statistic,
        "df": test.df,
        "p_within": test.p,
        "p_between": between,
        "p": larger_p,
        "p_corrected": corrected,
        "varies": corrected <= round(1 - level, 12),
        "a_ahead": ahead,
        "b_ahead": behind,
        "reverses": [bool(a) and bool(b) for a, b in zip(ahead, behind, strict=True)],
    }
    names = dict.fromkeys(("a_ahead", "b_ahead"), pl.List(pl.String))
    table = pl.DataFrame(columns, schema_overrides=names)
    return table.with_columns(pl.selectors.float().fill_nan(None))
