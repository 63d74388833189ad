"""Metrics over sampled items: what they are expected to be, and how to correct them.

With one relevant item and n others drawn from N - 1, a list shows the item at a sampled rank, and a
metric of that rank is not the metric of the rank among all N items: not even its expectation puts
systems in the same order (Krichene & Rendle 2020). Here: the distribution of the sampled rank, the
expectation of every metric at any sample size, the corrected estimators of that paper, and, on
target lists, plain, corrected and full values side by side. `sizes` looks at the same choice as a
trade-off.

Others are drawn *without* replacement unless `replacement=True`: the sampled rank is then
hypergeometric, as in the lists of `OneRelevant`; with replacement, as in the paper, binomial.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import ArrayLike

from unskew.arrays import F64, I64, frozen
from unskew.checks import as_count, as_numbers, check_share, checked, choose
from unskew.engine.rng import key_of
from unskew.engine.threads import map_blocks, one_blas_thread
from unskew.errors import DataError, SettingError
from unskew.evaluation.evaluate import labelled
from unskew.evaluation.one_relevant import of_rank, value_at
from unskew.judging.anchors import anchor_ranks, full_ranks
from unskew.judging.rank import ranks_of
from unskew.metrics.names import Metric
from unskew.recommend.model import as_model
from unskew.report.charts import Figure, as_figure
from unskew.report.result import Result
from unskew.report.tables import Table
from unskew.stats.correlation import kendall, rounded
from unskew.targets.lists import TargetLists

Progress = Callable[[int, int], None]
Metrics = str | Metric | Iterable[str | Metric]

METRICS = ("Recall@10", "nDCG@10", "AP")
ESTIMATORS = ("plain", "rank", "bias", "trade-off")
"""How to take a sampled rank; see `corrected_values`."""
GAMMA = 0.01
BOOTSTRAP, LEVEL = 1_000, 0.95
SIZES = (10, 20, 50, 100, 200, 500, 1_000)
_CELLS = 1 << 22  # probabilities held at a time


# The sampled rank


def rank_distribution(rank: ArrayLike, items: int, n: int, *, replacement: bool = False) -> F64:
    """Return how likely each sampled rank 1 … n + 1 is: a row per true rank.

    The true rank is among `items`, the relevant one included; n of the items - 1 others are drawn
    uniformly. A sampled rank of 1 + x means that x of the rank - 1 better ones were drawn:
    hypergeometric, or binomial with replacement (Krichene & Rendle 2020).

    Examples
    --------
    >>> from unskew.unbiased.sampled import rank_distribution
    >>> rank_distribution(3, items=5, n=2).round(4).tolist()
    [[0.1667, 0.6667, 0.1667]]
    """
    ranks = np.atleast_1d(np.asarray(rank))
    _check_sample(items, n, replacement)
    if ranks.dtype.kind not in "iu" or ranks.min(initial=1) < 1 or ranks.max(initial=1) > items:
        raise DataError(f"true ranks are whole numbers from 1 to {items:,} (items)")
    from unskew.evaluation import one_relevant_kernels

    out = np.empty((ranks.size, n + 1))
    rows = frozen(ranks.astype(np.int64))
    one_relevant_kernels.rank_chances(rows, items - 1, n, replacement, out)
    return out


def _check_sample(items: int, n: int, replacement: bool) -> None:
    as_count("items", items)
    as_count("n", n)
    if not replacement and n > items - 1:
        raise SettingError(f"n={n}: there are only {items - 1:,} others to draw from {items:,}")


def expected_sampled(
    metric: str | Metric, rank: ArrayLike, items: int, n: int, *, replacement: bool = False
) -> F64:
    """Return what a sampled metric is expected to be, given the true rank among `items`.

    Krichene & Rendle 2020: sum over sampled ranks of p(sampled | true) x metric. With
    n = items - 1, drawn without replacement, it is the metric itself; with n = 1 every metric is a
    straight line in the rank, as AUC is.

    Examples
    --------
    >>> from unskew.unbiased.sampled import expected_sampled
    >>> expected_sampled("Recall@1", [1, 2, 51], items=101, n=1).round(12).tolist()
    [1.0, 0.99, 0.5]
    """
    ranks = np.atleast_1d(np.asarray(rank))
    values = value_at(metric, np.arange(1, n + 2), n + 1)
    step = max(_CELLS // (n + 1), 1)
    parts = [
        rank_distribution(ranks[low : low + step], items, n, replacement=replacement) @ values
        for low in range(0, max(ranks.size, 1), step)
    ]
    return np.concatenate(parts)


@checked
def corrected_values(
    metrics: Metrics,
    items: int,
    n: int,
    *,
    estimator: str = "trade-off",
    gamma: float = GAMMA,
    replacement: bool = False,
) -> F64:
    """Return what to count for each sampled rank 1 … n + 1 instead of the metric: a row each.

    Parameters
    ----------
    metrics
        See `value_at`.
    items
        N, how many items there are, the relevant one included.
    n
        How many others are drawn.
    estimator
        `plain`: the metric of the sampled rank. `rank`: the metric of an unbiased estimate of the
        true rank, 1 + (N - 1)(sampled - 1)/n. `bias`: the values with the least squared bias, on
        average over all true ranks alike, among those that never rise with the rank nor fall below
        0, as the metric itself; without this they run into millions. `trade-off`: the least
        squared bias + gamma x variance. (Krichene & Rendle 2020, corrected metrics.)
    gamma
        Of the trade-off: the larger, the smaller the variance; 1 minimises the mean squared error.
    replacement
        Whether others are drawn with replacement.

    Examples
    --------
    One of two others is drawn. Recall@1 is 1 at rank 1 and 0 at ranks 2 and 3; of these, rank 2 is
    seen as first half of the time.

    >>> from unskew.unbiased.sampled import corrected_values
    >>> corrected_values("Recall@1", items=3, n=1, estimator="bias").round(4).tolist()
    [[0.8, 0.0]]
    """
    wanted = [of_rank(metric) for metric in labelled(metrics).values()]
    return np.array(_corrections(wanted, items, n, (estimator,), gamma, replacement)[0])


def _corrections(
    metrics: Sequence[Metric],
    items: int,
    n: int,
    estimators: Sequence[str],
    gamma: float,
    replacement: bool,
) -> F64:
    """Return estimators x metrics x sampled ranks."""
    _check_sample(items, n, replacement)
    _check_gamma(gamma)
    sampled = np.arange(1, n + 2)
    out = np.empty((len(estimators), len(metrics), n + 1))
    fitted = [name for name in estimators if choose("estimator", name, ESTIMATORS) not in _DIRECT]
    found = _fitted(metrics, items, n, fitted, gamma, replacement) if fitted else {}
    for at, name in enumerate(estimators):
        if name == "plain":
            out[at] = [value_at(metric, sampled, n + 1) for metric in metrics]
        elif name == "rank":
            guess = 1.0 + (items - 1) * (sampled - 1) / n
            out[at] = [value_at(metric, guess, items) for metric in metrics]
        else:
            out[at] = found[name]
    return out


_DIRECT = ("plain", "rank")


def _check_gamma(gamma: float) -> None:
    if not gamma > 0 or math.isinf(gamma):
        raise SettingError(
            f"gamma must be above 0, got {gamma!r}; for no variance term take estimator='bias'"
        )


def _fitted(
    metrics: Sequence[Metric],
    items: int,
    n: int,
    estimators: Sequence[str],
    gamma: float,
    replacement: bool,
) -> dict[str, F64]:
    """Solve the least-squares problems of both, block by block of true ranks.

    With A = p(sampled | true), a row per true rank, and M the metric: minimise the mean of
    (A x - M)² + gamma (A x² - (A x)²). Its normal equations are
    ((1 - gamma) A'A + gamma diag(A'1)) x = A'M.
    """
    size = n + 1
    gram, cross, weight = np.zeros((size, size)), np.zeros((size, len(metrics))), np.zeros(size)
    step = max(_CELLS // size, 1)
    found: dict[str, F64] = {}
    with one_blas_thread():
        for low in range(1, items + 1, step):
            ranks = np.arange(low, min(low + step, items + 1))
            chance = rank_distribution(ranks, items, n, replacement=replacement)
            truth = np.stack([value_at(metric, ranks, items) for metric in metrics], axis=1)
            gram += chance.T @ chance
            cross += chance.T @ truth
            weight += chance.sum(axis=0)
        if "trade-off" in estimators:
            damped = (1.0 - gamma) * gram + gamma * np.diag(weight)
            try:
                found["trade-off"] = np.asarray(np.linalg.solve(damped, cross).T, np.float64)
            except np.linalg.LinAlgError:
                raise SettingError(f"gamma={gamma!r} is too large to be worked with") from None
        if "bias" in estimators:
            found["bias"] = np.array([_falling(gram, cross[:, m]) for m in range(len(metrics))])
    return found


def _falling(gram: F64, cross: F64) -> F64:
    """Minimise x'Gx - 2 c'x over x that falls from place to place and ends at 0 or above.

    Such an x is a sum of steps down that are not negative: least squares over these, by the active
    sets of Lawson & Hanson 1974.
    """
    # x = S y with y >= 0: y_j is the step after place j, and x_i the sum of the steps from i on.
    inner = np.cumsum(np.cumsum(gram, axis=0), axis=1)
    outer = np.cumsum(cross)
    size = outer.size
    steps, used = np.zeros(size), np.zeros(size, np.bool_)
    limit = 1e-10 * float(np.abs(outer).max(initial=0.0))
    for _ in range(3 * size):
        pull = np.where(used, -np.inf, outer - inner @ steps)
        best = int(np.argmax(pull))
        if pull[best] <= limit:
            break
        used[best] = True
        while True:
            rows = np.flatnonzero(used)
            wanted = np.linalg.lstsq(inner[np.ix_(rows, rows)], outer[rows], rcond=1e-13)[0]
            if wanted.min() > 0:
                steps[rows] = wanted
                break
            # Go only as far as no step turns negative, and give up what has become 0.
            falls = wanted <= 0
            room = (steps[rows] - wanted)[falls]
            share = float((steps[rows][falls] / np.where(room > 0, room, 1.0)).min())
            steps[rows] += share * (wanted - steps[rows])
            gone = rows[falls & (steps[rows] <= 1e-15 * steps.max())]
            gone = gone if gone.size else rows[falls][:1]
            steps[gone], used[gone] = 0.0, False
            if not used.any():
                break
    result: F64 = np.cumsum(steps[::-1])[::-1].copy()
    return result


# Systems


@dataclass(frozen=True, eq=False)
class Sampled(Result):
    """Plain, corrected and full values of systems, side by side.

    Made by `sampled_metrics` and `correct_sampled`.
    """

    systems: tuple[str, ...]
    metrics: tuple[str, ...]
    estimators: tuple[str, ...]
    value: F64
    """Metrics x estimators x systems."""
    low: F64
    high: F64
    full: F64
    """Metrics x systems: the metric of the true ranks; NaN where these are not known."""
    gap_low: F64
    """Of value - full, metrics x estimators x systems: its interval."""
    gap_high: F64
    tau: F64
    """Metrics x estimators x 3: Kendall's τ_b with the order by full values, its interval."""
    distance: F64
    """Metrics x estimators x 3: the mean over systems of |value - full|, its interval."""
    lists: int
    users: int
    gamma: float = GAMMA
    level: float = LEVEL
    bootstrap: int = BOOTSTRAP
    notes: tuple[str, ...] = ()

    def table(self) -> pl.DataFrame:
        """Return a row per metric, system and estimator.

        Columns: metric, system, estimator, value with its interval low to high, full, gap (value -
        full) with its interval.
        """
        rows = []
        for m, metric in enumerate(self.metrics):
            for s, system in enumerate(self.systems):
                for e, estimator in enumerate(self.estimators):
                    at = (m, e, s)
                    numbers = (
                        self.value[at],
                        self.low[at],
                        self.high[at],
                        self.full[m, s],
                        self.value[at] - self.full[m, s],
                        self.gap_low[at],
                        self.gap_high[at],
                    )
                    rows.append((metric, system, estimator, *(float(x) for x in numbers)))
        names = ("value", "low", "high", "full", "gap", "gap_low", "gap_high")
        return _table(rows, ("metric", "system", "estimator"), names)

    def agreement(self) -> pl.DataFrame:
        """Return a row per metric and estimator: how near it comes to the full values.

        Columns: metric, estimator, tau (τ_b of the order of systems with that by full values) and
        its interval, distance (mean over systems of |value - full|) and its interval.
        """
        rows = [
            (metric, name, *self.tau[m, e].tolist(), *self.distance[m, e].tolist())
            for m, metric in enumerate(self.metrics)
            for e, name in enumerate(self.estimators)
        ]
        names = ("tau", "tau_low", "tau_high", "distance", "distance_low", "distance_high")
        return _table(rows, ("metric", "estimator"), names)

    def _content(self) -> dict[str, object]:
        return {
            "lists": self.lists,
            "users": self.users,
            "gamma": self.gamma,
            "level": self.level,
            "values": self.table(),
            "agreement": self.agreement(),
            "notes": self.notes,
        }

    def figure(self, metric: str | None = None) -> Figure:
        """Draw one metric (the first unless named): each estimate against the full value."""
        import altair as alt

        m = 0 if metric is None else self.metrics.index(choose("metric", metric, self.metrics))
        if np.isnan(self.full[m]).any():
            raise DataError("the full values are not known: give the true ranks")
        rows = [
            {
                "system": system,
                "estimator": estimator,
                "full": float(self.full[m, s]),
                "value": float(self.value[m, e, s]),
                "low": null(self.low[m, e, s]),
                "high": null(self.high[m, e, s]),
            }
            for s, system in enumerate(self.systems)
            for e, estimator in enumerate(self.estimators)
        ]
        base = alt.Chart(alt.NamedData(name="rows"), width=420, height=300)
        x = alt.X("full:Q", title=f"{self.metrics[m]} over all items")
        y = alt.Y("value:Q", title="estimate")
        color = alt.Color("estimator:N").scale(domain=list(self.estimators))
        points = base.mark_point(filled=True, size=50).encode(
            x=x, y=y, color=color, tooltip=["system:N", "estimator:N", "value:Q", "full:Q"]
        )
        bars = base.mark_rule().encode(x=x, y=alt.Y("low:Q"), y2="high:Q", color=color)
        right = base.mark_line(color="#999999", strokeDash=[4, 4], strokeWidth=1).encode(
            x=x, y=alt.Y("full:Q")
        )
        return as_figure(
            alt.layer(right, bars, points), "Sampled against full", self._explanation(), rows
        )

    def _explanation(self) -> list[str]:
        lines = [
            f"means over {self.lists:,} lists of {self.users:,} users; one relevant item in each",
        ]
        if "trade-off" in self.estimators:
            lines.append(f"trade-off: gamma = {self.gamma:g}")
        if self.bootstrap:
            lines.append(
                f"intervals: {100 * self.level:g} %, {self.bootstrap:,} bootstrap draws of users"
            )
        return lines

    def display_tables(self, digits: int | None = None) -> list[Table]:
        """Return the values and, where the full ones are known, how well the orders agree."""
        tables = super().display_tables(digits)
        if not np.isnan(self.full).all():
            tables.append(Table("", self.agreement(), tables[0].digits))
        return tables

    def display_table(self) -> pl.DataFrame:
        """Return a row per metric and system, a column per estimator, and the full value."""
        rows = [
            (metric, system, *self.value[m, :, s].tolist(), float(self.full[m, s]))
            for m, metric in enumerate(self.metrics)
            for s, system in enumerate(self.systems)
        ]
        return _table(rows, ("metric", "system"), (*self.estimators, "full"))

    def _summary(self) -> str:
        return f"{len(self.systems)} systems, {len(self.metrics)} metrics, {self.lists:,} lists"


def _table(rows: Sequence[Any], text: Sequence[str], numbers: Sequence[str]) -> pl.DataFrame:
    schema = {**dict.fromkeys(text, pl.String), **dict.fromkeys(numbers, pl.Float64)}
    return pl.DataFrame(rows, schema, orient="row").with_columns(
        pl.selectors.float().fill_nan(None)
    )


def null(value: float) -> float | None:
    """Return a number as JSON takes it."""
    return None if math.isnan(value) else float(value)


@checked
def sampled_metrics(
    ranks: Mapping[str, ArrayLike] | ArrayLike,
    metrics: Metrics = METRICS,
    *,
    items: ArrayLike,
    n: ArrayLike,
    true_ranks: Mapping[str, ArrayLike] | ArrayLike | None = None,
    users: ArrayLike | None = None,
    estimators: Sequence[str] = ESTIMATORS,
    gamma: float = GAMMA,
    replacement: bool = False,
    bootstrap: int = BOOTSTRAP,
    level: float = LEVEL,
    seed: int = 0,
    threads: int | None = None,
) -> Sampled:
    """Correct metrics of ranks among sampled items.

    Parameters
    ----------
    ranks
        The rank of each list's one relevant item among itself and the n drawn others, from 1 to
        n + 1; by system where there are several. NaN where a system could not rank it: such a list
        counts 0.
    metrics
        See `value_at`.
    items
        N, how many items there are for each list, the relevant one included; one number or one per
        list.
    n
        How many others were drawn; one number or one per list.
    true_ranks
        The ranks among all items, where known, in the same form: gives the full values.
    users
        The user of each list; each list has its own unless given. Users are what is drawn anew for
        the intervals.
    estimators, gamma, replacement
        See `corrected_values`.
    bootstrap, level, seed
        Draws of users for the intervals (percentiles); 0 for none.
    threads
        Never changes a result.

    Examples
    --------
    >>> from unskew.unbiased.sampled import sampled_metrics
    >>> found = sampled_metrics([1, 1, 2, 30], "Recall@10", items=1000, n=99, bootstrap=0)
    >>> found.value[0, :2, 0].tolist()  # plain; that of the estimated ranks 1, 1, 11 …, 294 …
    [0.75, 0.5]
    """
    wanted = {label: of_rank(metric) for label, metric in labelled(metrics).items()}
    names, given = _by_system("ranks", ranks)
    lists = given.shape[1]
    if not lists:
        raise DataError("ranks: there are no lists")
    size, drawn = _whole("items", items, lists), _whole("n", n, lists)
    _must_fit("ranks", given, drawn + 1)
    full = np.full_like(given, np.nan)
    if true_ranks is not None:
        others, full = _by_system("true_ranks", true_ranks)
        if others != names or full.shape != given.shape:
            raise DataError("true_ranks must be of the same systems and lists as ranks")
        _must_fit("true_ranks", full, size)
    owner = np.arange(lists)
    if users is not None:
        raw = np.asarray(users)
        if raw.shape != (lists,):
            raise DataError(f"users: {raw.size:,} given for {lists:,} lists: give one for each")
        owner = np.unique(raw, return_inverse=True)[1]
    how = _How(tuple(estimators), gamma, replacement, bootstrap, level, seed, threads)
    return _sampled(
        names, wanted, given, full if true_ranks is not None else None, size, drawn, owner, how, ()
    )


@dataclass(frozen=True)
class _How:
    """How to correct, and how to draw users anew."""

    estimators: tuple[str, ...]
    gamma: float
    replacement: bool
    bootstrap: int
    level: float
    seed: int
    threads: int | None

    def __post_init__(self) -> None:
        if not self.estimators:
            raise SettingError("no estimators are named")
        for name in self.estimators:
            choose("estimator", name, ESTIMATORS)
        _check_gamma(self.gamma)
        as_count("bootstrap", self.bootstrap, least=0)
        check_share("level", self.level)


def _by_system(
    name: str, ranks: Mapping[str, ArrayLike] | ArrayLike
) -> tuple[tuple[str, ...], F64]:
    named = ranks if isinstance(ranks, Mapping) else {"run": ranks}
    if not named:
        raise SettingError(f"{name}: no systems are given")
    columns = [as_numbers(name, column) for column in named.values()]
    if any(column.ndim != 1 or column.size != columns[0].size for column in columns):
        raise DataError(f"{name}: every system needs one rank per list")
    return tuple(str(key) for key in named), np.array(columns)


def _whole(name: str, values: ArrayLike, lists: int) -> I64:
    array = np.asarray(values)
    if array.dtype.kind not in "iu" or array.ndim > 1 or array.size not in (1, lists):
        raise DataError(f"{name}: a whole number is needed, or one for each of {lists:,} lists")
    if array.min() < 1:
        raise DataError(f"{name}: numbers from 1 up are needed, got {int(array.min())}")
    return np.broadcast_to(array.astype(np.int64), (lists,))


def _must_fit(name: str, ranks: F64, most: I64) -> None:
    with np.errstate(invalid="ignore"):
        wrong = ~np.isnan(ranks) & ((ranks < 1) | (ranks > most) | (ranks != np.floor(ranks)))
    if wrong.any():
        system, at = (int(index[0]) for index in np.nonzero(wrong))
        raise DataError(
            f"{name}: list {at} has rank {ranks[system, at]:g}; whole numbers from 1 to "
            f"{int(most[at]):,} are possible ({int(wrong.sum()):,} such ranks)"
        )


def _sampled(
    systems: tuple[str, ...],
    wanted: Mapping[str, Metric],
    ranks: F64,
    full: F64 | None,
    items: I64,
    n: I64,
    owner: I64,
    how: _How,
    notes: Sequence[str],
) -> Sampled:
    """Look every sampled rank up in the corrections of its list, and average."""
    metrics = list(wanted.values())
    users = int(owner.max()) + 1
    columns = (len(metrics), len(how.estimators) + 1, len(systems))
    sums = np.full((users, *columns), np.nan)  # the last estimator is the truth
    pairs, kind = np.unique(np.stack([items, n]), axis=1, return_inverse=True)
    groups = _groups(kind.ravel(), pairs.shape[1])

    def corrections(at: int) -> F64:
        return _corrections(
            metrics,
            int(pairs[0, at]),
            int(pairs[1, at]),
            how.estimators,
            how.gamma,
            how.replacement,
        )

    tables = map_blocks(corrections, range(len(groups)), how.threads, size=1 << 20)
    values = np.empty((*columns[:2], ranks.shape[1]))
    for s in range(len(systems)):
        for at, rows in enumerate(groups):
            here = ranks[s, rows]
            seen = np.where(np.isnan(here), 1, here).astype(np.int64) - 1
            looked = tables[at][:, :, seen].transpose(1, 0, 2)
            values[:, :-1, rows] = np.where(np.isnan(here), 0.0, looked)
            if full is not None:
                true = full[s, rows]
                exact = np.stack([value_at(one, true, int(pairs[0, at])) for one in metrics])
                values[:, -1, rows] = np.where(np.isnan(true), 0.0, exact)
        for m in range(columns[0]):
            for e in range(columns[1] - (full is None)):
                sums[:, m, e, s] = np.bincount(owner, values[m, e], users)
    counts = np.bincount(owner, minlength=users).astype(np.float64)
    return _averaged(systems, tuple(wanted), sums, counts, how, notes)


def _groups(kind: I64, many: int) -> list[I64]:
    """Return the rows of each kind."""
    order = np.argsort(kind, kind="stable")
    edges = np.cumsum(np.bincount(kind, minlength=many))[:-1]
    return np.split(order, edges)


def _averaged(
    systems: tuple[str, ...],
    metrics: tuple[str, ...],
    sums: F64,
    counts: F64,
    how: _How,
    notes: Sequence[str],
) -> Sampled:
    """Average sums per user over all lists, and over draws of users."""
    mean = sums.sum(axis=0) / counts.sum()
    drawn = _drawn_means(sums, counts, how)
    value, full = mean[:, :-1], mean[:, -1]
    low, high = interval(drawn[:, :, :-1], how.level)
    gaps = drawn[:, :, :-1] - drawn[:, :, -1:]
    gap_low, gap_high = interval(gaps, how.level)
    tau, distance = (np.full((*value.shape[:2], 3), np.nan) for _ in range(2))
    if not np.isnan(full).all():
        distance[..., 0] = np.abs(value - full[:, None]).mean(axis=-1)
        distance[..., 1], distance[..., 2] = interval(np.abs(gaps).mean(axis=-1), how.level)
        if len(systems) > 1:
            tau[..., 0] = _taus(mean[None])[0]
            tau[..., 1], tau[..., 2] = interval(_taus(drawn), how.level)
    return Sampled(
        systems,
        metrics,
        how.estimators,
        value,
        low,
        high,
        full,
        gap_low,
        gap_high,
        tau,
        distance,
        int(counts.sum()),
        counts.size,
        how.gamma,
        how.level,
        how.bootstrap,
        tuple(notes),
    )


def _drawn_means(sums: F64, counts: F64, how: _How) -> F64:
    """Return the means of draws of users: a ratio of sums, as lists are what is averaged."""
    from unskew.stats import kernels

    key = np.uint64(key_of(how.seed, "bootstrap"))
    flat = np.ascontiguousarray(sums.reshape(len(sums), -1))
    out = np.empty((how.bootstrap, flat.shape[1]))
    rows = 16  # fixed: products of other shapes have other bits

    def fill(low: int) -> None:
        weights = np.empty((min(rows, how.bootstrap - low), len(sums)))
        kernels.resample(key, low, weights)
        out[low : low + rows] = weights @ flat / (weights @ counts)[:, None]

    with one_blas_thread():
        map_blocks(fill, range(0, how.bootstrap, rows), how.threads, size=out.size * len(sums))
    return out.reshape(how.bootstrap, *sums.shape[1:])


def _taus(means: F64) -> F64:
    """Return draws x metrics x estimators: τ_b of each order with that of the full values."""
    draws, metrics, estimators, _ = means.shape
    out = np.full((draws, metrics, estimators - 1), np.nan)
    for d in range(draws):
        for m in range(metrics):
            order = rounded(means[d, m])
            for e in range(estimators - 1):
                out[d, m, e] = kendall(order[e], order[-1])
    return out


def interval(draws: F64, level: float) -> tuple[F64, F64]:
    """Return percentiles of the draws; NaN without any."""
    shape = draws.shape[1:]
    if not draws.shape[0] or np.isnan(draws).all():
        return np.full(shape, np.nan), np.full(shape, np.nan)
    flat = draws.reshape(draws.shape[0], -1)
    ends = np.full((2, flat.shape[1]), np.nan)
    known = ~np.isnan(flat).all(axis=0)
    ends[:, known] = np.nanquantile(flat[:, known], ((1 - level) / 2, (1 + level) / 2), axis=0)
    low, high = ends.reshape(2, *shape)
    return low, high


@checked
def correct_sampled(
    lists: TargetLists,
    models: Mapping[str, object],
    metrics: Metrics = METRICS,
    *,
    full: bool = True,
    estimators: Sequence[str] = ESTIMATORS,
    gamma: float = GAMMA,
    bootstrap: int = BOOTSTRAP,
    level: float = LEVEL,
    ties: str = "id",
    seed: int = 0,
    threads: int | None = None,
    progress: Progress | None = None,
) -> Sampled:
    """Rank sampled lists, correct their metrics, and compare them with those over all items.

    Parameters
    ----------
    lists
        Lists with one relevant item and others drawn uniformly: `OneRelevant(others=n).lists(…)`.
        Of each list n is how many others it has, N - 1 how many it could have had.
    models
        Fitted models by name, and whatever `rank` takes.
    metrics
        See `value_at`. The relevant item has gain 1: in a list with one relevant item grades are
        lost, and others that were judged but not liked count nothing.
    full
        Whether to rank all items too, for the full values.
    estimators, gamma
        See `corrected_values`.
    bootstrap, level, seed
        Draws of users for the intervals (percentiles); 0 for none. The seed also breaks random
        ties.
    ties, threads
        As in `rank`.
    progress
        Called with (done, total) as models are ranked.

    Examples
    --------
    >>> import unskew as us
    >>> from unskew.unbiased.sampled import correct_sampled
    >>> pairs = [(u, i) for u in range(20) for i in range(50) if (u * 7 + i * 11) % 9 < 3]
    >>> user, item = zip(*pairs)
    >>> split = us.splits.Random(test=0.3).split(us.read_ratings({"user": user, "item": item}))[0]
    >>> lists = us.targets.OneRelevant(others=20, candidates="all").lists(split, liked=1)
    >>> systems = {"pop": us.recommend.Popularity(), "random": us.recommend.Random()}
    >>> models = {name: system.fit(split.train) for name, system in systems.items()}
    >>> correct_sampled(lists, models, ["Recall@5", "AP"], bootstrap=100)
    Sampled(2 systems, 2 metrics, 98 lists)
    """
    free = _free(lists)
    wanted = {label: of_rank(metric) for label, metric in labelled(metrics).items()}
    if not models:
        raise SettingError("no models are given")
    how = _How(tuple(estimators), gamma, False, bootstrap, level, seed, threads)
    drawn = lists.size - 1
    notes = list(lists.notes)
    keep = drawn > 0
    if not keep.all():
        notes.append(f"{int((~keep).sum()):,} lists without any other item are left out")
    ranks, true = [], []
    for at, (name, model) in enumerate(models.items()):
        scorer = as_model(model, lists.train)
        some = ranks_of(scorer, lists, ties=ties, seed=seed, threads=threads)
        ranks.append(anchor_ranks(lists, some)[keep])
        lost = int(np.isnan(ranks[-1]).sum())
        if lost:
            notes.append(f"{name}: {lost:,} relevant items could not be scored; they count 0")
        if full:
            true.append(full_ranks(lists, scorer, ties, seed, threads)[0][keep])
        if progress is not None:
            progress(at + 1, len(models))
    owner = np.unique(lists.user[keep], return_inverse=True)[1]
    return _sampled(
        tuple(models),
        wanted,
        np.array(ranks),
        np.array(true) if full else None,
        free[keep] + 1,
        drawn[keep],
        owner,
        how,
        notes,
    )


def _free(lists: TargetLists) -> I64:
    """Return how many others each list could have had, or refuse lists of another design."""
    if not isinstance(lists, TargetLists):
        raise SettingError(
            "give target lists: us.targets.OneRelevant(others=99).lists(split, liked=4)"
        )
    design = lists.design
    if lists.given or not lists.one_relevant or design.get("others") == "all":
        raise SettingError(
            "the correction is for lists with one relevant item and a number of others drawn: "
            "us.targets.OneRelevant(others=99).lists(split, …)"
        )
    if design.get("by") != "uniform":
        raise SettingError(
            f"others were drawn by {design['by']}; the correction is for uniform draws only"
        )
    return lists.free


# The expectation against the sample size


@dataclass(frozen=True, eq=False)
class ExpectedSampled(Result):
    """What sampled metrics are expected to be, by sample size. Made by `expected_metrics`."""

    systems: tuple[str, ...]
    metrics: tuple[str, ...]
    sizes: tuple[int, ...]
    value: F64
    """Metrics x sizes x systems."""
    full: F64
    """Metrics x systems."""
    lists: int
    replacement: bool = False

    def table(self) -> pl.DataFrame:
        """Return a row per metric, sample size and system: expected, full."""
        rows = [
            (metric, size, system, float(self.value[m, z, s]), float(self.full[m, s]))
            for m, metric in enumerate(self.metrics)
            for z, size in enumerate(self.sizes)
            for s, system in enumerate(self.systems)
        ]
        schema = {
            "metric": pl.String,
            "n": pl.Int64,
            "system": pl.String,
            "expected": pl.Float64,
            "full": pl.Float64,
        }
        return pl.DataFrame(rows, schema, orient="row")

    def figure(self, metric: str | None = None) -> Figure:
        """Draw the expectation over the sample size; where lines cross, so do conclusions."""
        import altair as alt

        m = 0 if metric is None else self.metrics.index(choose("metric", metric, self.metrics))
        rows = [
            {"n": size, "system": system, "expected": float(self.value[m, z, s])}
            for z, size in enumerate(self.sizes)
            for s, system in enumerate(self.systems)
        ]
        x = alt.X("n:Q", title="others drawn, n").scale(type="log")
        y = alt.Y("expected:Q", title=f"expected {self.metrics[m]}")
        color = alt.Color("system:N").scale(domain=list(self.systems))
        chart = alt.Chart(alt.NamedData(name="rows"), width=520, height=280)
        line: alt.Chart = chart.mark_line(point=True).encode(x=x, y=y, color=color)
        return as_figure(line, "Expected value of a sampled metric", self.footer(), rows)

    def _content(self) -> dict[str, object]:
        return {"lists": self.lists, "expected": self.table()}

    def _explanation(self) -> list[str]:
        how = "with" if self.replacement else "without"
        return [f"exact expectation over {self.lists:,} lists; others drawn {how} replacement"]

    def display_table(self) -> pl.DataFrame:
        """Return a row per metric and sample size, a column per system."""
        return self.table().pivot("system", index=["metric", "n"], values="expected")

    def _summary(self) -> str:
        return f"{len(self.systems)} systems, n = {list(self.sizes)}"


@checked
def expected_metrics(
    true_ranks: Mapping[str, ArrayLike] | ArrayLike,
    metrics: Metrics = METRICS,
    *,
    items: ArrayLike,
    sizes: Sequence[int] = SIZES,
    replacement: bool = False,
    threads: int | None = None,
) -> ExpectedSampled:
    """Return what metrics are expected to be at several sample sizes, given the true ranks.

    Parameters
    ----------
    true_ranks
        The rank of each list's one relevant item among all items; by system where there are
        several. NaN, where a system could not rank it, counts 0.
    metrics
        See `value_at`.
    items
        N, how many items there are, the relevant one included; one number or one per list.
    sizes
        How many others are drawn. Where a list has fewer, all of them are taken.
    replacement
        Whether others are drawn with replacement.
    threads
        Never changes a result.

    Examples
    --------
    One system ranks every relevant item 100th, the other half of them 10th and half 400th. The
    second is better; a small sample says the opposite.

    >>> from unskew.unbiased.sampled import expected_metrics
    >>> ranks = {"steady": [100, 100], "bold": [10, 400]}
    >>> found = expected_metrics(ranks, "Recall@10", items=1000, sizes=[20, 999])
    >>> found.value[0].round(3).tolist()
    [[1.0, 0.88], [0.0, 0.5]]
    """
    wanted = {label: of_rank(metric) for label, metric in labelled(metrics).items()}
    names, ranks = _by_system("true_ranks", true_ranks)
    lists = ranks.shape[1]
    if not lists:
        raise DataError("true_ranks: there are no lists")
    size = _whole("items", items, lists)
    _must_fit("true_ranks", ranks, size)
    several = tuple(as_count("sizes", one) for one in sizes)
    if not several:
        raise SettingError("no sizes are given")
    value = np.zeros((len(wanted), len(several), len(names)))
    cells = np.stack([np.broadcast_to(size, ranks.shape), np.nan_to_num(ranks).astype(np.int64)])
    full = np.zeros((len(wanted), len(names)))
    for s in range(len(names)):
        here = cells[:, s, ~np.isnan(ranks[s])]
        pairs, count = np.unique(here, axis=1, return_counts=True)
        groups = [
            (int(total), pairs[1, pairs[0] == total], count[pairs[0] == total])
            for total in np.unique(pairs[0])
        ]
        for m, metric in enumerate(wanted.values()):
            truth = [value_at(metric, rank, total) @ many for total, rank, many in groups]
            full[m, s] = math.fsum(truth) / lists

            def one(group: tuple[int, I64, I64], metric: Metric = metric) -> list[float]:
                total, rank, many = group
                return [
                    float(_expected(metric, rank, total, n, replacement) @ many) for n in several
                ]

            parts = map_blocks(one, groups, threads, size=pairs.shape[1] * max(several))
            if parts:  # some rank is known
                value[m, :, s] = [math.fsum(column) / lists for column in zip(*parts, strict=True)]
    return ExpectedSampled(names, tuple(wanted), several, value, full, lists, replacement)


def _expected(metric: Metric, rank: I64, items: int, n: int, replacement: bool) -> F64:
    if items < 2:
        return value_at(metric, rank, items)
    most = n if replacement else min(n, items - 1)
    return expected_sampled(metric, rank, items, most, replacement=replacement)
