"""The work of an audit, counted in operations before it is done: by stage, and by system."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

from unskew.auditing.designs import METRICS, AuditDesign, Level
from unskew.experiment.halving import BUDGET, FINALISTS, MANY_USERS, MOST_USERS, SHARE
from unskew.recommend.cost_constants import BYTES
from unskew.recommend.costs import Cost, DataShape, Work, work_of, work_of_several
from unskew.recommend.grids import candidates
from unskew.recommend.limits import LARGEST
from unskew.recommend.model import Algorithm

Operations = dict[str, float]
"""How many operations of each kind: kinds are those of `cost_constants`."""

TRAINING = 0.8
"""The share of the ratings in the training part of a split, and of those in the part of it that
settings are tried on."""
LIKED = 0.55
"""The share of ratings that are liked, unless stated."""
REPEATED_USERS = 2_500, 5_000
"""With so few users the null experiment is usually repeated as often as its level allows; with so
many as rarely."""
HELD_ROWS = 1 << 22
"""Splits are kept from task to task while they have at most so many ratings together."""


def together(*parts: Mapping[str, float]) -> Operations:
    """Add operations up.

    Examples
    --------
    >>> from unskew.auditing.audit_work import together
    >>> together({"pass": 1.0}, {"pass": 2.0, "vote": 5.0})
    {'pass': 3.0, 'vote': 5.0}
    """
    total: Operations = {}
    for part in parts:
        for kind, count in part.items():
            total[kind] = total.get(kind, 0.0) + count
    return total


def times(number: float, operations: Mapping[str, float]) -> Operations:
    """Return operations that are done so many times."""
    return {kind: number * count for kind, count in operations.items()}


@dataclass(frozen=True, eq=False, kw_only=True)
class AuditWork:
    """What an audit of ratings does, as far as its cost depends on it."""

    shape: DataShape
    """Of all ratings."""
    systems: Mapping[str, Algorithm]
    designs: Sequence[AuditDesign]
    level: Level
    tuned: frozenset[str]
    """Systems whose settings are chosen on each split."""
    judged: int
    """Users who are judged."""
    metrics: int = len(METRICS)
    liked: float = LIKED
    has_null: bool = True
    """Whether the null experiment is run: not where nothing is disliked."""
    trials: Mapping[str, Cost] = field(default_factory=dict)
    """What systems without a formula cost on the training part, as a trial on few users showed."""

    @cached_property
    def train(self) -> DataShape:
        """The shape of the training part of a split."""
        return self.shape.part(TRAINING)

    @cached_property
    def splits(self) -> dict[str, list[AuditDesign]]:
        """By key of the way to split: its designs."""
        groups: dict[str, list[AuditDesign]] = {}
        for one in self.designs:
            groups.setdefault(one.split_key, []).append(one)
        return groups

    @cached_property
    def null_designs(self) -> list[AuditDesign]:
        """The designs of the null experiment."""
        if not self.has_null:
            return []
        return [
            one
            for one in self.designs
            if one.view.intervention is None and one.split.name != "temporal"
        ]

    @property
    def repeats(self) -> float:
        """How often the null experiment will draw: more for fewer users, whose spread is larger."""
        least, most = self.level.repeats, self.level.most_repeats
        few, many = (math.log(bound) for bound in REPEATED_USERS)
        share = (many - math.log(max(self.judged, 1))) / (many - few)
        return least + (most - least) * min(max(share, 0.0), 1.0)

    def lists_of(self, design: AuditDesign) -> float:
        """Return how many lists a design has on one split."""
        if design.view.targets.relevant != "one":
            return self.judged
        tests = (1 - TRAINING) * self.shape.ratings * self.judged / max(self.shape.users, 1)
        return self.liked * tests

    def cells_of(self, design: AuditDesign) -> float:
        """Return how many items all lists of a design have on one split."""
        targets = design.view.targets
        rated = self.shape.ratings / max(self.shape.users, 1)
        most = self.shape.items - TRAINING * rated
        if targets.drawn is not None:
            fixed = 1.0 if targets.relevant == "one" else (1 - TRAINING) * rated
            most = min(most, targets.drawn + fixed)
        return self.lists_of(design) * max(most, 0.0)

    # A system

    @cached_property
    def fits(self) -> dict[str, Work]:
        """By system: what one fit and the scores of one user take; the mean over tuned settings."""
        return {name: self._fit(name) for name in self.systems}

    def _fit(self, name: str) -> Work:
        settings = self.settings_of(name)
        several = [work_of(one, self.train) for one in settings]
        known = [one for one in several if one is not None]
        if not known or len(known) < len(several):
            cost = self.trials.get(name, Cost(math.nan, 0.0))
            return Work(
                fit={"seconds": cost.seconds},
                score={"seconds": cost.score_seconds},
                model=cost.bytes,
            )
        share = 1 / len(known)
        possible = [one for one in known if one.largest_part <= LARGEST] or known
        return Work(
            fit=times(share, together(*(one.fit for one in known))),
            score=times(share, together(*(one.score for one in known))),
            model=max(one.model for one in possible),
            largest_part=max(one.largest_part for one in possible),
            fit_bytes=max(one.fit_bytes for one in possible),
        )

    def settings_of(self, name: str) -> list[Algorithm]:
        """Return the settings with which a system may be run: those tried, or its present ones."""
        system = self.systems[name]
        if name not in self.tuned or not system.tuning:
            return [system]
        return [replace(system, **one) for one in candidates(system, BUDGET)]

    def tuning_of(self, name: str) -> Operations:
        """Return the operations that choose the settings of a system on one split."""
        settings = self.settings_of(name)
        if len(settings) < 2:
            return {}
        part, total = self.train.part(TRAINING), Operations()
        for users, count in tuning_rounds(self.train.users, len(settings)):
            shape = part.of_users(users)
            several = work_of_several(settings, shape)
            if several is None:
                fit = self.fits[name]
                share = shape.ratings / max(self.train.ratings, 1)
                rest = times(count * share, fit.fit)
                total = together(total, rest, times(count * users, fit.score))
            else:
                shared = {k: n for k, n in several.fit.items() if k in several.shared}
                rest = {k: n for k, n in several.fit.items() if k not in several.shared}
                left = count / len(settings)
                total = together(total, shared, times(left, rest))
                total = together(total, times(left * users, several.score))
            ranked = {"rank cell": count * users * shape.items, "trial": count}
            total = together(total, ranked, {"trial user": count * users})
        return total

    def judging_of(self, name: str, designs: Sequence[AuditDesign]) -> Operations:
        """Return the operations that score and judge a model under designs on one split."""
        lists = sum(self.lists_of(one) for one in designs)
        return together(
            times(self.judged, self.fits[name].score),
            {
                "rank cell": sum(self.cells_of(one) for one in designs),
                "judged list": lists,
                "task design": len(designs),
                "task": 1,
            },
        )

    def stages_of(self, name: str) -> dict[str, Operations]:
        """Return the operations of a system by stage."""
        designs = Operations()
        for several in self.splits.values():
            one = together(
                self.fits[name].fit, self.tuning_of(name), self.judging_of(name, several)
            )
            designs = together(designs, times(several[0].repeats, one))
        null = Operations()
        for several in self.splits.values():
            looked_at = [one for one in several if one in self.null_designs]
            if looked_at:
                null = together(null, self.fits[name].fit, self.judging_of(name, looked_at))
        return {"designs": designs, "null experiment": times(self.repeats, null)}

    # What all systems share

    def shared_stages(self) -> dict[str, Operations]:
        """Return the operations by stage that no single system needs."""
        ratings, systems = float(self.shape.ratings), len(self.systems)
        splits, null = Operations(), Operations()
        for several in self.splits.values():
            lay = self._lay(several)
            splits = together(splits, times(several[0].repeats, lay))
            looked_at = [one for one in several if one in self.null_designs]
            if looked_at:
                null = together(null, self._lay(looked_at), {"redrawn rating": ratings})
        values = sum(self.lists_of(one) * one.repeats for one in self.designs)
        listed = self.judged * systems * self.designs[0].repeats
        pairs = systems * (systems - 1) / 2
        tests = pairs * self.level.permutations * self.judged
        return {
            "reading": {"start": 1, "read rating": ratings},
            "splits": splits,
            "null experiment": times(self.repeats, null),
            "conclusions": {
                "conclusion": 1,
                "concluded value": values * systems,
                "permutation": tests,
            },
            "diagnostics": {"diagnosis": 1, "diagnosed list": listed},
            "statements": {
                "statement": 1,
                "stated rating": ratings,
                "stated list": listed,
                "stated value": values * systems,
            },
        }

    def _lay(self, designs: Sequence[AuditDesign]) -> Operations:
        """Return the operations that split the ratings once and lay the lists of designs."""
        return {
            "split rating": float(self.shape.ratings),
            "laid list": sum(self.lists_of(one) for one in designs),
            "laid design": len(designs),
        }

    # Memory

    def sizes(self) -> dict[str, float]:
        """Return what is held in memory: how many of each, by kind."""
        held = max(1, min(HELD_ROWS // max(self.shape.ratings, 1), len(self.splits)))
        values = sum(self.lists_of(one) * one.repeats for one in self.designs)
        return {
            "start": 1,
            "rating": self.shape.ratings * (1 + held),
            "value": values * len(self.systems) * (self.metrics + 4),
            "model": max(one.model + one.fit_bytes for one in self.fits.values()),
        }

    def bytes(self) -> float:
        """Return the bytes of one process at its largest."""
        return sum(BYTES[kind] * count for kind, count in self.sizes().items())


def tuning_rounds(users: int, settings: int) -> Iterator[tuple[int, int]]:
    """Return the users and the settings of each round in which settings are tried.

    A clear lead ends the search before the last round; that is not known beforehand.

    Examples
    --------
    >>> from unskew.auditing.audit_work import tuning_rounds
    >>> list(tuning_rounds(6_040, 6))
    [(2014, 6), (6040, 2)]
    """
    last = min(users, MOST_USERS)
    if last <= MANY_USERS:
        yield last, settings
        return
    yield -(-last // SHARE), settings
    yield last, min(settings, max(FINALISTS, -(-settings // SHARE)))
