"""`mle`: the most likely distribution of true ranks behind sampled ranks, and metrics under it.

The likelihood of the sampled ranks is climbed by expectation maximisation from equal shares of all
ranks (Jin et al. 2021). The climb is stopped early: at its top the shares sit on a few ranks, which
no metric of the top of a list survives. What every list adds to the estimate (its influence) comes
with it, so that intervals over draws of users cost no refit.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from unskew.arrays import F64, I64
from unskew.metrics.names import Metric
from unskew.unbiased.rank_mixture import RankCells, SampleGroups
from unskew.unbiased.sampled_ranks import values_in_lists

LEAST = 1e-300
"""No chance is below this: its logarithm and its inverse are numbers."""


def default_iterations(lists: float) -> int:
    """Return after how many steps the climb of `mle` stops: the square root of the lists.

    More lists bear more detail. Measured over kinds of rank distributions, docs/sampled.md.
    """
    return max(1, round(math.sqrt(lists)))


def climb(cells: RankCells, iterations: int) -> F64:
    """Return the shares of the bins after each step of expectation maximisation: steps + 1 rows.

    Each step multiplies the share of a bin by how much more often its ranks would be seen in the
    cells than now expected: the likelihood never falls.
    """
    path = np.empty((iterations + 1, cells.chance.shape[1]))
    path[0] = cells.bins.uniform
    for step in range(iterations):
        expected = np.maximum(cells.chance @ path[step], LEAST)
        path[step + 1] = path[step] * (cells.chance.T @ (cells.share / expected))
    return path


def most_likely(cells: RankCells, values: F64, iterations: int) -> F64:
    """Return metrics x cells: the estimate + influence of a list in the cell.

    Rows of `values` are metrics, columns bins. The mean of the result over lists is the estimate,
    by the shares after the last step; its mean over lists drawn anew is, to first order, the
    estimate from these. The influence is the derivative of the last step's estimate by the share of
    lists in each cell, taken back through all steps.
    """
    path = climb(cells, iterations)
    chance, share = cells.chance, cells.share
    back = values.copy()
    by_share = np.zeros((len(values), share.size))
    for shares in path[-2::-1]:
        expected = np.maximum(chance @ shares, LEAST)
        seen = (back * shares) @ chance.T
        by_share += seen / expected
        back = back * (chance.T @ (share / expected)) - (seen * (share / expected**2)) @ chance
    value = values @ path[-1]
    influence = by_share - (by_share @ share)[:, None]
    return np.asarray(value[:, None] + influence)


def most_likely_values(
    metrics: Sequence[Metric],
    ranks: F64,
    items: I64,
    n: I64,
    groups: SampleGroups,
    iterations: int | None,
) -> F64:
    """Return metrics x lists: what each list of one system adds to the estimate.

    The mean over lists is the estimate. A list without a rank counts 0, a list that holds all items
    the metric of its rank; a metric whose expectation a sample does not change is left as it is.
    """
    cells = RankCells.of(groups, ranks)
    seen = np.where(np.isnan(ranks), 1.0, ranks)
    out = np.array(
        [
            values_in_lists(metric, seen, np.where(groups.of_list < 0, items, n + 1))
            for metric in metrics
        ]
    )
    changed = np.array([not _unchanged(metric) for metric in metrics])
    among = cells.cell >= 0
    if among.any() and changed.any():
        wanted = [metric for metric in metrics if not _unchanged(metric)]
        steps = default_iterations(cells.lists) if iterations is None else iterations
        by_cell = most_likely(cells, cells.values(wanted), steps)
        out[np.ix_(changed, among)] = by_cell[:, cells.cell[among]]
    out[:, np.isnan(ranks)] = 0.0
    return out


def _unchanged(metric: Metric) -> bool:
    form = metric.definition.at_rank
    return form is not None and form.draws_change_nothing
