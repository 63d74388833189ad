"""Estimates of the distribution of true ranks behind sampled ranks, and of metrics under it.

Three of them, each with what every list adds to the estimate (its influence), so that intervals
over draws of users cost no refit:

- `mle`: the likelihood of the sampled ranks, climbed by expectation maximisation from equal shares
  of all ranks (Jin et al. 2021). The climb is stopped early: at its top the shares sit on a few
  ranks, which no metric of the top of a list survives.
- `mes`: the largest entropy with the smallest squared distance between the shares of sampled ranks
  that are expected and those that are counted (Jin et al. 2021; Li et al. 2023).
- `weighted`: Krichene & Rendle's trade-off between bias and variance with the true ranks weighted
  by the shares of `mle`, instead of all alike (Li et al. 2023, BV_MLE).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from unskew.arrays import F64, I64
from unskew.metrics.names import Metric
from unskew.unbiased.rank_mixture import RankCells, SampleGroups
from unskew.unbiased.sampled_ranks import values_in_lists

LEARNED = ("mle", "mes", "weighted")
"""Estimators that learn from all lists of a system how its true ranks are spread."""

ENTROPY = 0.01
"""Weight of the entropy in `mes`, as in the code that its authors published."""
NEWTON, TOLERANCE, LEAST_STEP = 200, 1e-10, 1e-6
"""Newton's steps at most, the gain at which they end, and the shortest step."""
LEAST = 1e-300
"""No chance is below this: its logarithm and its inverse are numbers."""


@dataclass(frozen=True, eq=False)
class MetricEstimate:
    """Metrics under an estimated distribution of true ranks."""

    value: F64
    """Of each metric."""
    by_cell: F64
    """Metrics x cells: value + influence of a list in the cell. Their mean over lists is `value`,
    and their mean over lists drawn anew is, to first order, the estimate from these lists."""


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


def likelihood(cells: RankCells, shares: F64) -> float:
    """Return the mean logarithm of the likelihood of a list, given the shares of the bins."""
    return float(cells.share @ np.log(np.maximum(cells.chance @ shares, LEAST)))


def most_likely(cells: RankCells, values: F64, iterations: int) -> MetricEstimate:
    """Estimate metrics (rows of `values`: metrics x bins) by the shares after the last step.

    The influence is the derivative of the last step's estimate by the share of lists in each cell,
    taken back through all steps.
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
    return _centred(value, by_share, share)


def _centred(value: F64, by_share: F64, share: F64) -> MetricEstimate:
    """Turn derivatives by the shares of the cells into the values of their lists."""
    influence = by_share - (by_share @ share)[:, None]
    return MetricEstimate(value, value[:, None] + influence)


def most_entropic(cells: RankCells, groups: SampleGroups, values: F64) -> MetricEstimate:
    """Estimate metrics by the shares π that minimise distance - ENTROPY x entropy.

    The distance is the mean over groups of lists, weighted by their sizes, of
    (n + 1) sum over r of s(r) (f(r) - s(r))², with s(r) the share of sampled rank r within the
    group and f(r) what π makes of it. Solved in its dual: π(R) is in proportion to
    exp(-sum over cells of v p(r | R) / ENTROPY), with one v per cell.
    """
    share, group = cells.share, cells.group
    of_group = np.bincount(group, share)[group]
    within = share / of_group
    weight = (groups.n[group] + 1) * share  # (n + 1) s(r) x the share of the group
    dual, shares = _solve_dual(cells, within, weight)
    expected = cells.chance @ shares
    towards = (values * shares) @ cells.chance.T - np.outer(values @ shares, expected)
    # By what expected = within + v / (2 weight) must give way when shares of cells change.
    lever = -_solve_newton(cells, shares, weight, (towards / ENTROPY).T).T
    pull = lever * (dual / (2.0 * weight**2))
    by_within = -lever / of_group
    total = np.stack([np.bincount(group, row) for row in by_within * within])[:, group]
    by_share = by_within - total + pull * (groups.n[group] + 1)
    return _centred(values @ shares, by_share, share)


def _solve_dual(cells: RankCells, within: F64, weight: F64) -> tuple[F64, F64]:
    """Return one number per cell, and the shares that follow, by Newton's steps."""
    size = cells.bins.size
    dual = np.zeros(within.size)
    shares, height = _entropic(cells, size, dual, within, weight)
    for _ in range(NEWTON):
        gradient = cells.chance @ shares - within - dual / (2.0 * weight)
        step = _solve_newton(cells, shares, weight, gradient[:, None])[:, 0]
        gain, length = float(gradient @ step), 1.0
        if gain <= TOLERANCE:  # near the top a whole step squares what is left
            dual = dual + step
            return dual, _entropic(cells, size, dual, within, weight)[0]
        while length > LEAST_STEP:
            shares, risen = _entropic(cells, size, dual + length * step, within, weight)
            if risen >= height + 1e-4 * length * gain:
                break
            length /= 2
        dual, height = dual + length * step, risen
    return dual, shares


def _solve_newton(cells: RankCells, shares: F64, weight: F64, right: F64) -> F64:
    """Solve (C / ENTROPY + diag(1 / (2 weight))) x = right, with C the spread of the chances.

    C is the covariance of the cells' chances under the shares. Cells may be thousands, bins are
    hundreds: by Woodbury's identity only a matrix of bins is solved.
    """
    root = np.sqrt(shares)
    factor = cells.chance * root
    factor = (factor - np.outer(factor @ root, root)) / math.sqrt(ENTROPY)
    scaled = factor * (2.0 * weight)[:, None]
    inner = np.eye(root.size) + factor.T @ scaled
    first = right * (2.0 * weight)[:, None]
    return first - scaled @ np.linalg.solve(inner, factor.T @ first)


def _entropic(
    cells: RankCells, size: I64, dual: F64, within: F64, weight: F64
) -> tuple[F64, float]:
    """Return the shares that belong to a dual point, and how high the dual is there."""
    energy = -(dual @ cells.chance) / ENTROPY
    top = float(energy.max())
    mass = size * np.exp(energy - top)
    total = float(mass.sum())
    height = -ENTROPY * (top + math.log(total)) - float(dual @ within)
    return mass / total, height - float((dual**2 / (4.0 * weight)).sum())


def weighted_values(
    cells: RankCells, groups: SampleGroups, values: F64, iterations: int, gamma: float
) -> MetricEstimate:
    """Estimate metrics by what each sampled rank counts: least squared bias + gamma x variance.

    On average over true ranks with the shares of `mle`. How these shares vary is left out of the
    influence.
    """
    shares = climb(cells, iterations)[-1]
    by_cell = np.empty((len(values), cells.count.size))
    for group in np.unique(cells.group):
        here, chance = cells.group == group, groups.chances(group)
        gram = (1.0 - gamma) * (chance * shares) @ chance.T + gamma * np.diag(chance @ shares)
        counts = np.linalg.lstsq(gram, (chance * shares) @ values.T, rcond=1e-13)[0]
        by_cell[:, here] = counts[cells.better[here]].T
    return MetricEstimate(by_cell @ cells.share, by_cell)


def learned_values(
    metrics: Sequence[Metric],
    ranks: F64,
    items: I64,
    n: I64,
    groups: SampleGroups,
    estimators: Sequence[str],
    iterations: int | None,
    gamma: float,
) -> F64:
    """Return estimators x metrics x lists: what each list of one system adds to an estimate.

    The mean over lists is the estimate. A list without a rank counts 0, a list that holds all items
    the metric of its rank; a metric whose expectation a sample does not change is left as it is.
    """
    cells = RankCells.of(groups, ranks)
    seen = np.where(np.isnan(ranks), 1.0, ranks)
    at_sampled = np.array(
        [
            values_in_lists(metric, seen, np.where(groups.of_list < 0, items, n + 1))
            for metric in metrics
        ]
    )
    out = np.repeat(at_sampled[None], len(estimators), axis=0)
    changed = np.array([not _unchanged(metric) for metric in metrics])
    among = cells.cell >= 0
    if among.any() and changed.any():
        wanted = [metric for metric in metrics if not _unchanged(metric)]
        values = cells.values(wanted)
        steps = default_iterations(cells.lists) if iterations is None else iterations
        for at, name in enumerate(estimators):
            if name == "mle":
                result = most_likely(cells, values, steps)
            elif name == "mes":
                result = most_entropic(cells, groups, values)
            else:
                result = weighted_values(cells, groups, values, steps, gamma)
            out[at][np.ix_(changed, among)] = result.by_cell[:, cells.cell[among]]
    out[:, :, np.isnan(ranks)] = 0.0
    return out


def _unchanged(metric: Metric) -> bool:
    form = metric.definition.at_rank
    return form is not None and form.draws_change_nothing
