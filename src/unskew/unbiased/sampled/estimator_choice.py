"""Which estimator of sampled metrics is taken, by a rule, and whether it has an interval."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import NormalDist
from typing import NamedTuple

import numpy as np

from unskew.arrays import F64
from unskew.evaluation.one_relevant import value_at
from unskew.metrics.names import Metric
from unskew.stats.clusters import variance_of

ALARM = 0.0027
"""How often the two differ by chance alone beyond the limit, over all systems: 3 standard errors
for one system."""
LEAST_SHOWN = 0.05
"""Of the ranks that a metric hangs on, so many must be in a sample in the mean for `mle`."""
LEAST_HELD = 1.0
"""Of the ranks that a metric hangs on, so many must be in a sample in the mean for an interval:
with fewer the error is mostly bias, which no draw of users shows."""
LEAST_USERS = 20
"""With fewer users a standard error is not known well enough."""


class Choice(NamedTuple):
    """The estimator that is taken for a metric, and why, as the end of a sentence."""

    estimator: str
    reason: str


@dataclass(frozen=True)
class Sample:
    """How large the samples of all lists are."""

    items: int
    """The largest number of items of a list."""
    share: float
    """The share of the others that is drawn: the median over lists."""
    first_share: float
    """The same over the lists that tell least: those whose relevant item stands first."""
    known: bool
    """Whether all others are in every list."""


def choice_without_test(metric: Metric, sample: Sample, adaptive: bool) -> Choice | None:
    """Return the choice where nothing is left to test, whatever the sampled ranks are.

    Parameters
    ----------
    metric
        One of the rank of the relevant item.
    sample
        How large it is.
    adaptive
        Whether the number of others depends on what was seen.
    """
    form = metric.definition.at_rank
    if sample.known:
        return Choice("plain", "because the lists hold all items: nothing is left to correct")
    if adaptive:
        return Choice(
            "mle",
            "because the numbers of drawn others depend on what was seen, which only the "
            "likelihood allows for",
        )
    if form is not None and form.draws_change_nothing:
        return Choice("plain", "because a sample does not change its expectation")
    ranks = ranks_looked_at(metric, sample.items)
    expected = ranks * sample.share
    if expected < LEAST_SHOWN:
        return Choice(
            "trade-off",
            f"because {metric} hangs on the first ranks (about {ranks:.1f}), and a sample holds "
            f"{expected:.3f} of these in the mean, fewer than {LEAST_SHOWN:g}: too few to tell mle "
            "from it",
        )
    return None


def why_no_interval(metric: Metric, sample: Sample) -> str:
    """Return why draws of users do not show the error of an estimate; nothing where they do."""
    form = metric.definition.at_rank
    if sample.known or (form is not None and form.draws_change_nothing):
        return ""
    ranks = ranks_looked_at(metric, sample.items)
    expected = ranks * sample.first_share
    if expected >= LEAST_HELD:
        return ""
    return (
        f"it hangs on the first ranks (about {ranks:.1f}), of which a sample holds {expected:.2f} "
        f"in the mean, fewer than {LEAST_HELD:g}: its error is mostly bias, which draws of users "
        "do not show"
    )


def ranks_looked_at(metric: Metric, items: int) -> float:
    """Return how many of the first ranks a metric hangs on: Σ M(R)² / M(1)².

    The cutoff of Recall@k and P@k; 2.5 of nDCG@10, 1.6 of AP, where the first ranks count most.
    """
    values = value_at(metric, np.arange(1, items + 1), items)
    return float((values**2).sum() / values[0] ** 2)


def difference_in_errors(sums: F64, counts: F64) -> F64:
    """Return by how many standard errors means over lists differ from 0, users drawn together.

    Parameters
    ----------
    sums
        Users x systems: the sum of the differences of each user's lists.
    counts
        The number of lists of each user.
    """
    lists = counts.sum()
    mean = sums.sum(axis=0) / lists
    residual = sums - mean * counts[:, None]
    error = np.sqrt(variance_of(residual, len(counts))) / lists
    tiny = 1e-9  # differences of rounding are none
    return np.where(np.abs(mean) <= tiny, 0.0, np.abs(mean) / np.maximum(error, tiny))


def choice_by_test(sums: F64, counts: F64, systems: Sequence[str]) -> Choice:
    """Choose the trade-off, or `mle` where it differs from it beyond chance for some system.

    Parameters
    ----------
    sums
        Users x systems: summed over each user's lists, what `mle` counts less what the trade-off
        counts.
    counts
        The number of lists of each user.
    systems
        Their names.
    """
    if len(counts) < LEAST_USERS:
        return Choice(
            "trade-off",
            f"because there are fewer than {LEAST_USERS} users: mle needs more to be trusted",
        )
    errors = difference_in_errors(sums, counts)
    limit = NormalDist().inv_cdf(1.0 - ALARM / (2 * len(systems)))
    index = int(np.argmax(errors))
    if errors[index] <= limit:
        return Choice(
            "trade-off",
            f"because mle differs from it by at most {errors[index]:.2f} standard errors, which is "
            f"not more than {limit:.2f}",
        )
    return Choice(
        "mle",
        f"because it differs from the trade-off by {errors[index]:.2f} standard errors for "
        f"{systems[index]}, which is more than {limit:.2f}",
    )
