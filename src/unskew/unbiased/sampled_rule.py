"""Which correction of sampled metrics is taken, by a rule that looks at the sampled ranks alone.

The trade-off needs few lists, and is biased wherever true ranks are not spread evenly; the
likelihood (`mle`) learns how they are spread, and varies more. So the trade-off is taken until the
lists show that it is biased: until the two differ, for some system, by more than chance explains.

Where a metric hangs on so few ranks that hardly a sample holds one of them, the lists cannot show
which of the two is nearer: what lifts a system with relevant items in first place lifts one with
relevant items in seventh place as well. There the trade-off stays.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import NormalDist

import numpy as np

from unskew.arrays import F64
from unskew.evaluation.one_relevant import value_at
from unskew.metrics.names import Metric

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


@dataclass(frozen=True)
class Pick:
    """The estimator that is taken for a metric."""

    estimator: str
    reason: str
    """Why, as the end of a sentence that names it."""
    no_interval: str = ""
    """Why the estimate has no interval, where it has none."""


def settled(metric: Metric, sample: Sample, adaptive: bool) -> Pick | None:
    """Return the pick where nothing is left to choose, whatever the sampled ranks are.

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
        return Pick("plain", "because the lists hold all items: nothing is left to correct")
    if adaptive:
        return Pick(
            "mle",
            "because the numbers of drawn others depend on what was seen, which only the "
            "likelihood allows for",
        )
    if form is not None and form.draws_change_nothing:
        return Pick("plain", "because a sample does not change its expectation")
    ranks = ranks_looked_at(metric, sample.items)
    shown = ranks * sample.share
    if shown < LEAST_SHOWN:
        return Pick(
            "trade-off",
            f"because {metric} hangs on the first ranks (about {ranks:.1f}), and a sample holds "
            f"{shown:.3f} of these in the mean, fewer than {LEAST_SHOWN:g}: too few to tell mle "
            "from it",
        )
    return None


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


def why_no_interval(metric: Metric, sample: Sample) -> str:
    """Return why draws of users do not show the error of an estimate; nothing where they do."""
    form = metric.definition.at_rank
    if sample.known or (form is not None and form.draws_change_nothing):
        return ""
    ranks = ranks_looked_at(metric, sample.items)
    held = ranks * sample.first_share
    if held >= LEAST_HELD:
        return ""
    return (
        f"it hangs on the first ranks (about {ranks:.1f}), of which a sample holds {held:.2f} in "
        f"the mean, fewer than {LEAST_HELD:g}: its error is mostly bias, which draws of users do "
        "not show"
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
    users = len(counts)
    rest = sums - mean * counts[:, None]
    error = np.sqrt((rest**2).sum(axis=0) * users / (users - 1)) / lists
    tiny = 1e-9  # differences of rounding are none
    return np.where(np.abs(mean) <= tiny, 0.0, np.abs(mean) / np.maximum(error, tiny))


def compare(sums: F64, counts: F64, systems: Sequence[str]) -> Pick:
    """Pick the trade-off, or `mle` where it differs from it beyond chance for some system.

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
        return Pick(
            "trade-off",
            f"because there are fewer than {LEAST_USERS} users: mle needs more to be trusted",
        )
    errors = difference_in_errors(sums, counts)
    limit = NormalDist().inv_cdf(1.0 - ALARM / (2 * len(systems)))
    most = int(np.argmax(errors))
    if errors[most] <= limit:
        return Pick(
            "trade-off",
            f"because mle differs from it by at most {errors[most]:.2f} standard errors, which is "
            f"not more than {limit:.2f}",
        )
    return Pick(
        "mle",
        f"because it differs from the trade-off by {errors[most]:.2f} standard errors for "
        f"{systems[most]}, which is more than {limit:.2f}",
    )
