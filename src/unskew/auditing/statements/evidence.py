"""`Evidence`: all numbers that statements rest on. A rule may look at nothing else."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import permutations
from statistics import NormalDist
from typing import Any, TypeVar

import numpy as np

from unskew.arrays import I64
from unskew.auditing.analyses import Attempts
from unskew.auditing.core.core import Core
from unskew.auditing.statements.setups import question
from unskew.bias.decomposition.ladder import ladder_of
from unskew.bias.decomposition.ladder_part import ladder_part
from unskew.bias.popularity.liked_by_popularity import popularity_slope
from unskew.data.ratings import Ratings
from unskew.report.columns import Row
from unskew.report.estimates import Estimates
from unskew.splits.duplicate_users import DuplicateAccounts
from unskew.splits.split import union
from unskew.stats.compare.contrasts import contrasts
from unskew.unbiased.judgments_needed import judgments_for
from unskew.unbiased.liked_shares import liked_part, liked_shares_of
from unskew.unbiased.listed_pairs import unrated_liking
from unskew.unbiased.random_slice import random_part, random_slice_of


@dataclass(frozen=True, kw_only=True)
class Thresholds:
    """From which values on a statement is made."""

    level: float = 0.95
    """Of all intervals; those of all pairs under a design hold together at this level."""
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
    within_z: float = 2.5
    """Least z of a difference of liking within users, beside a lead in score."""
    items_z: float = 3.0
    """Or: least z of how much the listed items are liked by whoever rates them, …"""
    within_beside_items: float = 1.5
    """… together with this one within users."""
    rated_places: float = 0.75
    """Of the places of a list, the share whose items somebody rated: below it, what is judged does
    not stand for the list."""
    popular_level: float = 0.99
    """Of the interval of the slope of liking on popularity, within users."""
    popular_most: float = 0.1
    """Where popularity means nothing, the upper end of that interval: for ten times the ratings."""
    items_not_below: float = -1.0
    """Where liking is to overrule a score: least z of how much the listed items are liked."""
    disagree_error: float = 0.05
    """Chance of an error over all pairs, of a difference of liking against the score."""
    shown_error: float = 0.05
    """The same of the comparison on randomly shown items."""


THRESHOLDS = Thresholds()
POPULARITY = "popularity"


T = TypeVar("T")


@dataclass(frozen=True, eq=False, kw_only=True)
class Evidence:
    """What was measured of systems under designs. Made by `evidence_of`."""

    core: Core
    contrasts: Estimates
    """Differences under every design, whose intervals hold together for all pairs."""
    ladder: Estimates | None = None
    """What the scores of the common design are made of."""
    liked: Estimates | None = None
    """How often judged recommendations are liked; None where nothing can be disliked."""
    popular_liking: Estimates | None = None
    """Whether the same users like popular items more; None where nothing can be disliked."""
    random_slice: Estimates | None = None
    """The same on randomly shown items, where there are any."""
    has_duplicates: bool = False
    """Whether near-duplicate accounts count as users of their own: a copy likes what its twin does,
    and recommends it."""
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
        """The candidate with the best mean under the common design."""
        return self.candidates[0]

    @cached_property
    def candidates(self) -> tuple[str, ...]:
        """The systems that the answer is about, best first: the user's own, where there are any."""
        return tuple(s for s in self.order if s not in self.references) or self.order

    @cached_property
    def _tiers(self) -> dict[str, tuple[str, ...]]:
        return {
            design: tuple(
                a
                for a in self.candidates
                if not any(self.ahead(b, a, design) for b in self.candidates if b != a)
            )
            for design in self.designs
        }

    def leading(self, design: str | None = None) -> tuple[str, ...]:
        """Return the leading tier: the candidates that no candidate is significantly ahead of."""
        return self._tiers[self.common if design is None else design]

    def outside(self, design: str | None = None) -> tuple[str, ...]:
        """Return all systems that are not in the leading tier, best first."""
        return tuple(s for s in self.order if s not in self.leading(design))

    def behind(self, design: str | None = None) -> tuple[str, ...]:
        """Return the systems that every system of the leading tier is ahead of, best first."""
        leading = self.leading(design)
        return tuple(
            b for b in self.outside(design) if all(self.ahead(a, b, design) for a in leading)
        )

    @cached_property
    def above(self) -> tuple[str, ...]:
        """References that are ahead of some system of the leading tier."""
        return tuple(b for b in self.references if any(self.ahead(b, a) for a in self.leading()))

    def same_question(self, design: str) -> tuple[str, ...]:
        """Return the other designs that ask the same question as a design."""
        return tuple(d for d in self.designs if d != design and question(d) == question(design))

    @property
    def popularity(self) -> str | None:
        """The system that lists what most people rated; None without it."""
        names = (POPULARITY, *(s for s in self.references if s.startswith(f"{POPULARITY} ")))
        return next((name for name in names if name in self.order), None)

    @property
    def pairs(self) -> Iterator[tuple[str, str]]:
        """All ordered pairs of systems."""
        return permutations(self.order, 2)

    def contrast(self, a: str, b: str, design: str | None = None) -> Row:
        """Return the difference of two systems: under a design, or under the common one."""
        return self.contrasts.pair(a, b, design=design or self.common)

    def ahead(self, a: str, b: str, design: str | None = None) -> bool:
        """Tell whether a is ahead of b under a design, corrected for all pairs."""
        _, low, _ = self.contrast(a, b, design).estimate
        return low > 0

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

    def liked_pair(self, a: str, b: str) -> Row | None:
        """Return by how much more often judged recommendations of a are liked than those of b.

        Each beyond the other ratings of its user.
        """
        return _with_value(None if self.liked is None else self.liked.parts["within users"], a, b)

    def item_pair(self, a: str, b: str) -> Row | None:
        """Return by how much more the items in a's lists are liked than those in b's.

        By whoever rates them, each beyond the other ratings of its user.
        """
        return _with_value(None if self.liked is None else self.liked.parts["listed items"], a, b)

    def is_rated(self, system: str) -> bool:
        """Tell whether most listed items have ratings, so that judgments stand for the list."""
        return self._rated_places[system] >= self.thresholds.rated_places

    @cached_property
    def _rated_places(self) -> dict[str, float]:
        """By system: the share of the places of its lists whose items anybody rated."""
        k, shares = self.core.k, dict.fromkeys(self.core.systems, 0.0)
        for part in self.core.lists:
            split = part.split
            rated = np.zeros(len(split.train.items), np.bool_)
            rated[split.train.item] = rated[split.test.item] = True
            for system in shares:
                run = part.runs[system]
                first = np.arange(run.item.size) - np.repeat(run.start[:-1], run.depth) < k
                codes = split.train.items.codes(run.items.values)[run.item[first & (run.item >= 0)]]
                is_rated = (codes >= 0) & rated[codes]
                shares[system] += float(is_rated.mean()) if codes.size else 0.0
        return {system: share / max(len(self.core.lists), 1) for system, share in shares.items()}

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
        family="design",
        level=thresholds.level,
        resamples=draws,
        seed=seed,
    )
    ladder = liked = random_slice = popular = None
    if core.lists:
        ladder = attempt("ladder", lambda: _ladder(core))
    if core.lists and not core.implicit:
        liked = attempt("liked shares", lambda: _liked(core))
        popular = attempt(
            "liking by popularity", lambda: popular_liking(core, thresholds.popular_level)
        )
    if core.lists and random is not None:
        random_slice = attempt("random slice", lambda: _random_slice(core, random))
    return Evidence(
        core=core,
        contrasts=compared,
        ladder=ladder,
        liked=liked,
        popular_liking=popular,
        has_duplicates=bool(core.lists) and _has_duplicates(core),
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


def popular_liking(core: Core, level: float, groups: I64 | None = None) -> Estimates:
    """Return by how much more often the same users like popular items, by all ratings of a core."""
    split = core.lists[0].split
    ratings = union(split.train, split.test)
    return popularity_slope(ratings, core.relevance, groups=groups, level=level)


def _has_duplicates(core: Core) -> bool:
    split = core.lists[0].split
    return bool(DuplicateAccounts.of(union(split.train, split.test)).notes())


def _random_slice(core: Core, random: Ratings) -> Estimates:
    return random_slice_of(
        [
            random_part(part.split.train, random, part.runs, core.relevance, core.k)
            for part in core.lists
        ]
    )
