"""The rank of one relevant item among sampled items: its distribution, and how to correct for it.

With one relevant item and n others drawn from N - 1, a list shows the item at a sampled rank, and a
metric of that rank is not the metric of the rank among all N items: not even its expectation puts
systems in the same order (Krichene & Rendle 2020).

Others are drawn *without* replacement unless `replacement=True`: the sampled rank is then
hypergeometric, as in the lists of `OneRelevant`; with replacement, as in the paper, binomial.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence

import numpy as np
from numpy.typing import ArrayLike

from unskew.arrays import F64, I64, frozen
from unskew.checks import as_count, as_numbers, checked
from unskew.engine.threads import map_blocks, one_blas_thread
from unskew.errors import DataError, SettingError
from unskew.evaluation.evaluate import labelled
from unskew.evaluation.one_relevant import of_rank, value_at
from unskew.metrics.names import Metric
from unskew.report.columns import METRIC, SYSTEM, Column, Drawing, Method, Question
from unskew.report.estimates import Estimates
from unskew.report.text import counted

Metrics = str | Metric | Iterable[str | Metric]

METRICS = ("Recall@10", "nDCG@10", "AP")
GAMMA = 0.01
_CELLS = 1 << 22  # probabilities held at a time


def rank_distribution(rank: ArrayLike, items: int, n: int, *, replacement: bool = False) -> F64:
    """Return how likely each sampled rank 1 … n + 1 is: a row per true rank.

    The true rank is among `items`, the relevant one included; n of the items - 1 others are drawn
    uniformly. A sampled rank of 1 + x means that x of the rank - 1 better ones were drawn:
    hypergeometric, or binomial with replacement (Krichene & Rendle 2020).

    Examples
    --------
    >>> from unskew.unbiased.sampled.expected_metrics import rank_distribution
    >>> rank_distribution(3, items=5, n=2).round(4).tolist()
    [[0.1667, 0.6667, 0.1667]]
    """
    ranks = np.atleast_1d(np.asarray(rank))
    _check_sample(items, n, replacement)
    if ranks.dtype.kind not in "iu" or ranks.min(initial=1) < 1 or ranks.max(initial=1) > items:
        raise DataError(f"true ranks are whole numbers from 1 to {items:,} (items)")
    from unskew.evaluation import kernels

    out = np.empty((ranks.size, n + 1))
    rows = frozen(ranks.astype(np.int64))
    kernels.rank_chances(rows, items - 1, n, replacement, out)
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
    >>> from unskew.unbiased.sampled.expected_metrics import expected_sampled
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
    metrics: Metrics, items: int, n: int, *, gamma: float = GAMMA, replacement: bool = False
) -> F64:
    """Return what to count for each sampled rank 1 … n + 1 instead of the metric: a row each.

    The values with the least squared bias + gamma x variance, on average over all true ranks alike
    (Krichene & Rendle 2020). With A = p(sampled | true), a row per true rank, and M the metric,
    these minimise the mean of (A x - M)² + gamma (A x² - (A x)²): they solve
    ((1 - gamma) A'A + gamma diag(A'1)) x = A'M.

    Parameters
    ----------
    metrics
        See `value_at`.
    items
        N, how many items there are, the relevant one included.
    n
        How many others are drawn.
    gamma
        The larger, the smaller the variance; 1 minimises the mean squared error.
    replacement
        Whether others are drawn with replacement.

    Examples
    --------
    One of two others is drawn. Recall@1 is 1 at rank 1 and 0 at ranks 2 and 3; of these, rank 2 is
    seen as first half of the time.

    >>> from unskew.unbiased.sampled.expected_metrics import corrected_values
    >>> corrected_values("Recall@1", items=3, n=1).round(4).tolist()
    [[0.8308, -0.1642]]
    """
    by_rank = [of_rank(metric) for metric in labelled(metrics).values()]
    check_gamma(gamma)
    return trade_off(by_rank, items, n, gamma, replacement)


def check_gamma(gamma: float) -> None:
    """Refuse a gamma that is not above 0."""
    if not gamma > 0 or math.isinf(gamma):
        raise SettingError(f"gamma must be a finite number above 0, got {gamma!r}")


def trade_off(
    metrics: Sequence[Metric], items: int, n: int, gamma: float, replacement: bool
) -> F64:
    """Return metrics x sampled ranks, see `corrected_values`; block by block of true ranks."""
    _check_sample(items, n, replacement)
    size = n + 1
    gram, cross, weight = np.zeros((size, size)), np.zeros((size, len(metrics))), np.zeros(size)
    step = max(_CELLS // size, 1)
    with one_blas_thread():
        for low in range(1, items + 1, step):
            ranks = np.arange(low, min(low + step, items + 1))
            chance = rank_distribution(ranks, items, n, replacement=replacement)
            truth = np.stack([value_at(metric, ranks, items) for metric in metrics], axis=1)
            gram += chance.T @ chance
            cross += chance.T @ truth
            weight += chance.sum(axis=0)
        damped = (1.0 - gamma) * gram + gamma * np.diag(weight)
        try:
            return np.array(np.linalg.solve(damped, cross).T, np.float64)
        except np.linalg.LinAlgError:
            raise SettingError(f"gamma={gamma!r} is too large to be worked with") from None


def values_in_lists(metric: Metric, ranks: F64, sizes: I64) -> F64:
    """Return a metric at the rank of each list; only AUC looks at how many items a list has."""
    form = metric.definition.at_rank
    if form is None or not form.draws_change_nothing:
        return value_at(metric, ranks, int(sizes.max()))
    out = np.empty(ranks.size)
    different, kind = np.unique(sizes, return_inverse=True)
    for size, rows in zip(different, rows_by_kind(kind, different.size), strict=True):
        out[rows] = value_at(metric, ranks[rows], int(size))
    return out


def rows_by_kind(kind: I64, kinds: int) -> list[I64]:
    """Return the rows of each kind."""
    order = np.argsort(kind, kind="stable")
    edges = np.cumsum(np.bincount(kind, minlength=kinds))[:-1]
    return np.split(order, edges)


def ranks_by_system(
    name: str, ranks: Mapping[str, ArrayLike] | ArrayLike
) -> tuple[tuple[str, ...], F64]:
    """Return the names of the systems, and systems x lists."""
    named = ranks if isinstance(ranks, Mapping) else {"run": ranks}
    if not named:
        raise SettingError(f"{name}: no systems are given")
    columns = [as_numbers(name, column) for column in named.values()]
    if any(column.ndim != 1 or column.size != columns[0].size for column in columns):
        raise DataError(f"{name}: every system needs one rank per list")
    return tuple(str(key) for key in named), np.array(columns)


def whole_numbers(name: str, values: ArrayLike, lists: int) -> I64:
    """Return a whole number for each list."""
    array = np.asarray(values)
    if array.dtype.kind not in "iu" or array.ndim > 1 or array.size not in (1, lists):
        raise DataError(f"{name}: a whole number is needed, or one for each of {lists:,} lists")
    if array.min() < 1:
        raise DataError(f"{name}: numbers from 1 up are needed, got {int(array.min())}")
    return np.broadcast_to(array.astype(np.int64), (lists,))


def check_ranks(name: str, ranks: F64, limits: I64) -> None:
    """Refuse ranks that are no whole numbers from 1 to the number of ranked items."""
    with np.errstate(invalid="ignore"):
        wrong = ~np.isnan(ranks) & ((ranks < 1) | (ranks > limits) | (ranks != np.floor(ranks)))
    if wrong.any():
        system, row = (int(index[0]) for index in np.nonzero(wrong))
        raise DataError(
            f"{name}: list {row} has rank {ranks[system, row]:g}; whole numbers from 1 to "
            f"{int(limits[row]):,} are possible ({int(wrong.sum()):,} such ranks)"
        )


SIZES = (10, 20, 50, 100, 200, 500, 1_000)


EXPECTED = Question(
    name="expected value of a sampled metric",
    columns=(
        *(METRIC, Column("others", "axis", "others drawn"), SYSTEM),
        *(Column("value", "value", "expected"), Column("full", "fact", "all items", hidden=True)),
    ),
    method=Method(estimand="the mean over lists of the metric among sampled items", unit="lists"),
    across="system",
    figures=(Drawing("expected", "log lines"),),
)


@checked
def expected_metrics(
    true_ranks: Mapping[str, ArrayLike] | ArrayLike,
    metrics: Metrics = METRICS,
    *,
    items: ArrayLike,
    sizes: Sequence[int] = SIZES,
    replacement: bool = False,
    threads: int | None = None,
) -> Estimates:
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

    Returns
    -------
    Estimates
        A row per metric, number of `others` and system: the expectation as `value`, and the value
        of the true ranks as `full`.

    Examples
    --------
    One system ranks every relevant item 100th, the other half of them 10th and half 400th. The
    second is better; a small sample says the opposite.

    >>> from unskew.unbiased.sampled.expected_metrics import expected_metrics
    >>> ranks = {"steady": [100, 100], "bold": [10, 400]}
    >>> print(expected_metrics(ranks, "Recall@10", items=1000, sizes=[20, 999]))
    Recall@10 (higher is better)
    others drawn  steady    bold
              20  1.0000  0.8796
             999  0.0000  0.5000
    <BLANKLINE>
    exact expectation over 2 lists; others drawn without replacement
    """
    by_label = {label: of_rank(metric) for label, metric in labelled(metrics).items()}
    names, ranks = ranks_by_system("true_ranks", true_ranks)
    lists = ranks.shape[1]
    if not lists:
        raise DataError("true_ranks: there are no lists")
    size = whole_numbers("items", items, lists)
    check_ranks("true_ranks", ranks, size)
    numbers = tuple(as_count("sizes", size) for size in sizes)
    if not numbers:
        raise SettingError("no sizes are given")
    value = np.zeros((len(by_label), len(numbers), len(names)))
    cells = np.stack([np.broadcast_to(size, ranks.shape), np.nan_to_num(ranks).astype(np.int64)])
    full = np.zeros((len(by_label), len(names)))
    for s in range(len(names)):
        here = cells[:, s, ~np.isnan(ranks[s])]
        pairs, count = np.unique(here, axis=1, return_counts=True)
        groups = [
            (int(total), pairs[1, pairs[0] == total], count[pairs[0] == total])
            for total in np.unique(pairs[0])
        ]
        for m, metric in enumerate(by_label.values()):
            truth = [value_at(metric, rank, total) @ count for total, rank, count in groups]
            full[m, s] = math.fsum(truth) / lists

            def block(group: tuple[int, I64, I64], metric: Metric = metric) -> list[float]:
                total, rank, count = group
                return [
                    float(_expected(metric, rank, total, n, replacement) @ count) for n in numbers
                ]

            parts = map_blocks(block, groups, threads, size=pairs.shape[1] * max(numbers))
            if parts:  # some rank is known
                value[m, :, s] = [math.fsum(column) / lists for column in zip(*parts, strict=True)]
    draws = "with" if replacement else "without"
    return Estimates.of_rows(
        EXPECTED,
        [
            (label, number, system, value[m, n, s], full[m, s])
            for m, label in enumerate(by_label)
            for n, number in enumerate(numbers)
            for s, system in enumerate(names)
        ],
        explanation=(
            f"exact expectation over {counted(lists, 'list')}; others drawn {draws} replacement",
        ),
        card={
            "lists": lists,
            "better": {label: metric.better for label, metric in by_label.items()},
        },
    )


def _expected(metric: Metric, rank: I64, items: int, n: int, replacement: bool) -> F64:
    if items < 2:
        return value_at(metric, rank, items)
    number = n if replacement else min(n, items - 1)
    return expected_sampled(metric, rank, items, number, replacement=replacement)
