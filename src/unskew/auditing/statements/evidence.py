"""`Evidence`: all numbers that statements rest on. A rule may look at nothing else."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import permutations
from statistics import NormalDist
from typing import Any, TypeVar

import numpy as np

from unskew.auditing.analyses import Attempts
from unskew.auditing.core.core import Core
from unskew.bias.decomposition.ladder import ladder_of
from unskew.bias.decomposition.ladder_part import ladder_part
from unskew.data.ratings import Ratings
from unskew.report.columns import Row
from unskew.report.estimates import Estimates
from unskew.stats.compare.contrasts import contrasts
from unskew.unbiased.judgments_needed import judgments_for
from unskew.unbiased.liked_shares import liked_part, liked_shares_of
from unskew.unbiased.listed_pairs import unrated_liking
from unskew.unbiased.random_slice import random_part, random_slice_of


@dataclass(frozen=True, kw_only=True)
class Thresholds:
    """From which values on a statement is made."""

    level: float = 0.95
    """Of all intervals; those over designs and pairs hold together at this level."""
    match_z: float = 3.5
    """Least z of the step from averages to observed, against its null."""
    match_t: float = 3.0
    """Least t of the same step over users."""
    opinion_z: float = 3.5
    opinion_t: float = 3.0
    popular_share: float = 0.2
    """Most of a lead that the match may be, where the lead is called one of numbers."""
    popular_bound: float = 0.5
    """Where the upper end of that share must lie."""
    liked_error: float = 0.01
    """Chance of an error over all pairs, of the plain comparison of liked shares."""
    levelled_error: float = 0.05
    """The same of the levelled comparison."""
    shown_error: float = 0.05
    """The same of the comparison on randomly shown items."""


THRESHOLDS = Thresholds()


T = TypeVar("T")


@dataclass(frozen=True, eq=False, kw_only=True)
class Evidence:
    """What was measured of systems under designs. Made by `evidence_of`."""

    core: Core
    contrasts: Estimates
    """Differences under every design, with intervals that hold together."""
    ladder: Estimates | None = None
    """What the scores of the common design are made of."""
    liked: Estimates | None = None
    """How often judged recommendations are liked; None where nothing can be disliked."""
    random_slice: Estimates | None = None
    """The same on randomly shown items, where there are any."""
    references: tuple[str, ...] = ()
    """Systems that were added to compare with."""
    margin: float | None = None
    """The difference below which systems count as equal, where the user states one."""
    smallest: float = 0.05
    """The smallest difference of true precision that is worth finding: stated, never observed."""
    is_given: bool = False
    """Whether the lists were given and not trained here."""
    thresholds: Thresholds = THRESHOLDS

    @property
    def common(self) -> str:
        """The common design: the first one."""
        return next(iter(self.core.designs))

    @property
    def designs(self) -> tuple[str, ...]:
        """The distinct designs, the common one first."""
        return tuple(self.core.designs)

    @property
    def metric(self) -> str:
        """The metric that orders the systems."""
        return self.core.metric

    @property
    def precision(self) -> str:
        """The metric of which the ladder speaks."""
        return f"P@{self.core.k}"

    @cached_property
    def order(self) -> tuple[str, ...]:
        """Systems by their mean under the common design, best first."""
        means = self.contrasts.parts["means"].where(design=self.common)
        sign = -1 if means.card["better"][means.label()] == "lower" else 1
        mean = dict(means.rows.select("system", "value").iter_rows())
        return tuple(sorted(self.core.systems, key=lambda system: -sign * mean[system]))

    @property
    def leader(self) -> str:
        """The system with the best mean under the common design."""
        return self.order[0]

    @property
    def pairs(self) -> Iterator[tuple[str, str]]:
        """All ordered pairs of systems."""
        return permutations(self.order, 2)

    def contrast(self, a: str, b: str, design: str | None = None) -> Row:
        """Return the difference of two systems: under a design, or under the common one."""
        return self.contrasts.pair(a, b, design=design or self.common)

    def ahead(self, a: str, b: str, design: str | None = None) -> bool:
        """Tell whether a is ahead of b, corrected for all designs and pairs."""
        _, low, _ = self.contrast(a, b, design).estimate
        return low > 0

    def ahead_of_all(self, a: str, design: str | None = None) -> bool:
        """Tell whether a system is ahead of every other one under a design."""
        return all(self.ahead(a, b, design) for b in self.order if b != a)

    def nearest(self, a: str) -> str:
        """Return the system that comes nearest to another under the common design."""
        others = [system for system in self.order if system != a]
        return min(others, key=lambda b: self.contrast(a, b).estimate[0])

    @property
    def levelled_design(self) -> str | None:
        """The design that levels popularity by drawing test ratings against it."""
        return next((design for design in ("skew", "wtd-h") if design in self.core.designs), None)

    def critical(self, error: float) -> float:
        """Return the z that is passed by chance in any pair of systems with this probability."""
        count = len(self.order) * (len(self.order) - 1)
        return NormalDist().inv_cdf(1 - error / max(count, 1))

    def liked_pair(self, a: str, b: str, *, levelled: bool = False) -> Row | None:
        """Return by how much more often judged recommendations of a are liked than those of b."""
        return _with_value(self.liked, a, b, levelled=levelled)

    def unrated_liking(self, system: str, habit: float) -> float | None:
        """Return how many recommendations of a system are liked under one habit of rating.

        None where there are too few judgments, or the data do not allow this habit.
        """
        if self.liked is None:
            return None
        share = self.liked.row(system=system)
        if share.value is None:
            return None
        places, trained = self._places[system], self._train_share
        return unrated_liking(share.value, share.facts["judged"] / places, habit, trained)

    @cached_property
    def _places(self) -> dict[str, int]:
        """By system: the places of all its lists, down to the cutoff."""
        k = self.core.k
        return {
            system: sum(
                int(np.minimum(part.runs[system].depth, k).sum()) for part in self.core.lists
            )
            for system in self.core.systems
        }

    @cached_property
    def _train_share(self) -> float:
        trained = sum(part.train_size for part in self.core.lists)
        return trained / (trained + sum(part.test_size for part in self.core.lists))

    def shown_pair(self, a: str, b: str) -> Row | None:
        """Return by how much more randomly shown items in a's lists are liked than in b's."""
        return _with_value(self.random_slice, a, b)

    def step(self, name: str, a: str, b: str | None = None) -> Row | None:
        """Return a step of the ladder, of one system or of a pair; None where there is none."""
        if self.ladder is None:
            return None
        if b is None:
            return self.ladder.row(step=name, system=a)
        return self.ladder.pair(a, b, step=name)

    def judgments_needed(self, a: str, b: str) -> int | None:
        """Return how many judgments of random recommendations find the smallest difference.

        None where the lists of the two cannot differ by so much.
        """
        if not self.core.lists:
            return None
        runs, level, k = self.core.lists[0].runs, self.thresholds.level, self.core.k
        first, second = min(a, b), max(a, b)
        row = self._once(
            ("judgments", first, second),
            lambda: judgments_for(runs[first], runs[second], self.smallest, level=level, k=k).row(),
        )
        return None if row.value is None else int(row.value)

    # Several rules ask for the same numbers: each is worked out once.

    @cached_property
    def _results(self) -> dict[tuple[object, ...], Any]:
        return {}

    def _once(self, key: tuple[object, ...], make: Callable[[], T]) -> T:
        """Return what was worked out under a key before; else work it out."""
        if key not in self._results:
            self._results[key] = make()
        result: T = self._results[key]
        return result


def evidence_of(
    core: Core,
    *,
    random: Ratings | None = None,
    references: tuple[str, ...] = (),
    margin: float | None = None,
    smallest: float = 0.05,
    is_given: bool = False,
    draws: int = 2_000,
    seed: int = 0,
    thresholds: Thresholds = THRESHOLDS,
    attempts: Attempts | None = None,
) -> Evidence:
    """Work out all that statements rest on.

    Parameters
    ----------
    core
        What was run.
    random
        Ratings of randomly shown items, where there are any.
    references
        Systems that were added to compare with.
    margin
        The difference below which systems count as equal.
    smallest
        The smallest difference of true precision that is worth finding.
    is_given
        Whether lists were given and not trained here.
    draws, seed
        Of the bootstrap behind intervals that hold together.
    thresholds
        From which values on statements are made.
    attempts
        Takes what these data do not allow besides comparing; without it that raises an error.
    """
    attempt = _attempted if attempts is None else attempts.attempt
    compared = contrasts(
        core.warm_scores,
        core.metric,
        target="lists" if is_given else "retrained",
        level=thresholds.level,
        resamples=draws,
        seed=seed,
    )
    ladder = liked = random_slice = None
    if core.lists:
        ladder = attempt("ladder", lambda: _ladder(core))
    if core.lists and not core.implicit:
        liked = attempt("liked shares", lambda: _liked(core))
    if core.lists and random is not None:
        random_slice = attempt("random slice", lambda: _random_slice(core, random))
    return Evidence(
        core=core,
        contrasts=compared,
        ladder=ladder,
        liked=liked,
        random_slice=random_slice,
        references=references,
        margin=margin,
        smallest=smallest,
        is_given=is_given,
        thresholds=thresholds,
    )


def _with_value(estimates: Estimates | None, a: str, b: str, **keys: bool) -> Row | None:
    """Return the difference of two systems; None where there is none."""
    pair = None if estimates is None else estimates.pair(a, b, **keys)
    return None if pair is None or pair.value is None else pair


def _attempted(name: str, function: Callable[[], T]) -> T | None:  # noqa: ARG001
    """Work something out; what the data do not allow raises an error."""
    return function()


def _ladder(core: Core) -> Estimates:
    return ladder_of(
        [
            ladder_part(part.split.train, part.split.judged_test, part.runs, core.relevance, core.k)
            for part in core.lists
        ]
    )


def _liked(core: Core) -> Estimates:
    return liked_shares_of(
        [
            liked_part(part.split.train, part.split.test, part.runs, core.relevance, core.k)
            for part in core.lists
        ]
    )


def _random_slice(core: Core, random: Ratings) -> Estimates:
    return random_slice_of(
        [
            random_part(part.split.train, random, part.runs, core.relevance, core.k)
            for part in core.lists
        ]
    )
