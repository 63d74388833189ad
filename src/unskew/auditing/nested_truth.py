"""Random judgments from which the observed ratings were taken: what that does to the truth.

Judgments of randomly chosen pairs serve as the truth of pairs outside training if whether a pair
was judged does not depend on whether it is observed. Where the observed ratings are themselves
among the random judgments (CM100k: those of familiar tracks), it does: of the pairs outside
training, one that would be observed is judged only if its rating fell into the test part, one that
would not be is judged with the density q of all judgments. A judgment that is observed then stands
for

    w = (1 - (1 - t) q) / t

judgments, t being the share of ratings in the test part. A metric that is a sum over judged items
is then the sum over all judgments and w - 1 times that over the observed ones. This holds given the
training part, so that all users with a training rating count: to leave out those without a test
rating would take the observed judgments of the others for more than they are.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np

from unskew.arrays import F64, frozen
from unskew.auditing.truth_sources import Sampled, Source
from unskew.data.true_judgments import RANDOM
from unskew.errors import SettingError
from unskew.evaluation.scores import Scores, System
from unskew.metrics.names import parse
from unskew.metrics.weighted import Weighted
from unskew.report.text import counted
from unskew.splits.split import shared_rows
from unskew.targets.designs import AllItems
from unskew.unbiased.weighted_metrics import Estimand

UNLIKELY = 4.0
"""Standard deviations beyond which a number of common pairs is no chance."""


@dataclass(frozen=True, kw_only=True)
class Overlap:
    """How many observed pairs are among the random judgments."""

    observed: int
    """Ratings of users who have random judgments."""
    both: int
    """Those among the random judgments."""
    expected: float
    """How many would be if what is judged did not depend on what is observed."""

    @property
    def is_nested(self) -> bool:
        """Whether every observed rating is one of the random judgments."""
        return 0 < self.observed == self.both and self.expected < 0.9 * self.observed

    @property
    def is_dependent(self) -> bool:
        """Whether chance hardly makes so many common pairs, or so few."""
        away = abs(self.both - self.expected)
        return not self.is_nested and away > UNLIKELY * math.sqrt(max(self.expected, 1.0))

    @property
    def note(self) -> str:
        """What follows for the truth; empty where nothing does."""
        if self.is_nested:
            return (
                "every observed rating is one of the random judgments: outside training, what "
                "would be observed is judged less often than the rest"
            )
        if self.is_dependent:
            return (
                f"{counted(self.both, 'observed pair is', 'observed pairs are')} among the random "
                f"judgments, where chance would make {self.expected:,.0f}: what is judged depends "
                "on what is observed, and true scores lean against popular items if the common "
                "pairs are too few, towards them if they are too many"
            )
        return ""


def overlap_of(source: Source) -> Overlap | None:
    """Count common pairs of observed ratings and random judgments; None where none are random."""
    if not isinstance(source, Sampled) or source.kind != RANDOM:
        return None
    users = len(source.ratings.users)
    judged = np.bincount(source.random.user, minlength=users)
    rated = np.bincount(source.ratings.user, minlength=users)
    items = np.unique(source.random.item).size
    inside = np.isin(source.ratings.item, source.random.item)
    among = np.bincount(source.ratings.user[inside], minlength=users)
    return Overlap(
        observed=int(rated[judged > 0].sum()),
        both=int(np.count_nonzero(shared_rows(source.ratings, source.random))),
        expected=float((among * judged).sum() / max(items, 1)),
    )


@dataclass(frozen=True, eq=False)
class NestedTruth:
    """Weights of observed judgments among random ones."""

    weight: F64
    """By user: the density of judgments may differ."""

    @classmethod
    def of(cls, source: Sampled, test: float, metrics: tuple[str, ...]) -> NestedTruth:
        """Work the weights out; refuse metrics that are no sums over judged items."""
        for label in metrics:
            metric = parse(label)
            known = isinstance(metric.definition.weighted, Weighted) and not metric.condensed
            if not known or not Estimand(label, metric).is_sum:
                raise SettingError(
                    f"{label} is not a sum over judged items, but these observed ratings are among "
                    "the random judgments, which takes weights: choose a metric such as P@10"
                )
        if source.targets != AllItems():
            raise SettingError(
                "the observed ratings are among the random judgments, which takes weights over "
                f"lists of all items: leave targets out, got {source.targets!r}"
            )
        items = np.unique(source.random.item).size
        density = np.bincount(source.random.user, minlength=len(source.ratings.users)) / items
        return cls(frozen((1 - (1 - test) * density) / test))

    def weighted(self, true: Scores, observed: Scores) -> Scores:
        """Return what all judgments say, the observed ones standing for others too.

        Both are scores of the same lists; a user whom no observed judgment judges has none to add.
        """
        user, seen = (part.lists["user"].to_numpy() for part in (true, observed))
        place = np.full(len(true.user_ids), -1)
        place[seen] = np.arange(seen.size)
        row = place[user]
        extra = np.where(row >= 0, self.weight[user] - 1, 0.0)

        def combined(name: str) -> System:
            system = true.systems[name]
            at = [observed.labels.index(label) for label in true.labels]
            more = observed.systems[name].values[at][:, row]
            return replace(system, values=system.values + extra * np.nan_to_num(more))

        return replace(true, systems={name: combined(name) for name in true.systems})
