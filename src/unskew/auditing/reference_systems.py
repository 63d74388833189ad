"""Systems that stand beside given lists: trained on the same training ratings, ranked as deep."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from unskew.arrays import Mask, frozen
from unskew.auditing.analyses import Attempts
from unskew.auditing.cold_users import with_fallback
from unskew.auditing.truth_sources import fit_all
from unskew.data.ratings import Ids, Ratings
from unskew.data.relevance import Relevance
from unskew.experiment.halving import TunedSystem, tune_systems
from unskew.judging.rank import rank
from unskew.recommend.model import Algorithm
from unskew.recommend.neighbours import ItemKNN
from unskew.recommend.simple import Popularity, Random, SmoothedAverage
from unskew.runs import Run
from unskew.targets.lists import TargetLists


def reference_name(name: str, taken: Collection[str]) -> str:
    """Return what a reference system is called; no name that a system of the user has.

    Examples
    --------
    >>> from unskew.auditing.reference_systems import reference_name
    >>> reference_name("popularity", ["mine", "popularity"])
    'popularity (reference)'
    >>> reference_name("popularity", ["popularity (reference)"])
    'popularity (reference 2)'
    """
    label, number = f"{name} (reference)", 1
    while label in taken:
        number += 1
        label = f"{name} (reference {number})"
    return label


@dataclass(frozen=True, eq=False, kw_only=True)
class ReferenceLists:
    """The lists of reference systems by name, and what was chosen for those that were tuned."""

    runs: Mapping[str, Run]
    tuned: Mapping[str, TunedSystem]


@dataclass(frozen=True, kw_only=True)
class References:
    """Which systems stand beside the given lists, and how they are trained."""

    relevance: Relevance
    liked: float
    """The smallest liked rating."""
    metric: str
    """By which item-kNN is tuned."""
    is_implicit: bool
    """Whether nothing is disliked: then all averages are equal and order nothing."""
    seed: int

    @property
    def algorithms(self) -> tuple[Algorithm, ...]:
        """The systems, before they are tuned."""
        average = () if self.is_implicit else (SmoothedAverage(liked=self.liked),)
        return (Popularity(), *average, ItemKNN(), Random())

    def lists_of(
        self,
        lists: TargetLists,
        users: Mask,
        depth: int,
        taken: Collection[str],
        attempts: Attempts,
    ) -> ReferenceLists:
        """Return the lists of each system.

        Parameters
        ----------
        lists
            All items outside training, one list per user.
        users
            Whose lists are kept: those who have one of the user's systems, so that all are alike.
        depth
            How many items of each list are kept.
        taken
            Names that the systems of the user have.
        attempts
            Notes systems that cannot be trained on these ratings.
        """
        names = {one.name: reference_name(one.name, taken) for one in self.algorithms}
        tuned = self._tuned(lists.train, names, attempts)
        runs = {}
        for one in self.algorithms:
            label = names[one.name]
            system = tuned[label].algorithm if label in tuned else one
            run = attempts.attempt(
                f"reference system {one.name}", partial(self._run, system, lists, users, depth)
            )
            if run is not None:
                runs[label] = run
        return ReferenceLists(runs=runs, tuned=tuned)

    def _tuned(
        self, train: Ratings, names: Mapping[str, str], attempts: Attempts
    ) -> dict[str, TunedSystem]:
        """Choose the settings of the personalised system on a part of the training ratings."""
        personal = {names[one.name]: one for one in self.algorithms if isinstance(one, ItemKNN)}
        tuned = attempts.attempt(
            "tuning of reference systems",
            lambda: tune_systems(personal, train, self.relevance, self.metric, seed=self.seed),
        )
        return {} if tuned is None else tuned

    def _run(self, system: Algorithm, lists: TargetLists, users: Mask, depth: int) -> Run:
        model = fit_all({system.name: system}, lists.train, self.seed, "references")[system.name]
        whole = with_fallback(model, lists.train)
        return _of_users(rank(whole, lists, depth, seed=self.seed), users)


def _of_users(run: Run, users: Mask) -> Run:
    """Return the lists of some users."""
    held = run.depth
    return replace(
        run,
        users=Ids(run.users.raw(np.flatnonzero(users).astype(np.int32))),
        start=frozen(np.append(0, np.cumsum(held[users]))),
        item=frozen(run.item[np.repeat(users, held)]),
        score=None,
        notes=(),
        ranked_for=None,
    )
