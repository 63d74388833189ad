"""One audit of one known world: what is said of it, and which of it is false."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from reliability.known_world import KnownData, KnownWorld
from reliability.systems import PartTrained, RandomOrder
from reliability.world_truth import WorldTruth
from unskew.auditing.core.core import Core, run_core
from unskew.auditing.designs import LEVELS, AuditDesign, Level, designs_of_level, plan_of_level
from unskew.auditing.statements.evidence import Evidence, evidence_of
from unskew.auditing.statements.first_screen import CATALOGUE, KINDS, statements_of
from unskew.auditing.statements.statement import Kind, Statement
from unskew.data.relevance import Relevance
from unskew.experiment.plan import Plan
from unskew.recommend.model import Algorithm

DESIGNS = ("all-items", "test-items", "1r", "p1r", "test-targets", "skew", "temporal")
"""What is run in a known world: designs that share their training, and time where there is any."""
METRIC = "P@10"
FRESH = 6
"""Fresh data sets on which systems are trained anew, for what is expected of a design."""
WORTH = 0.1
"""The random slice is planned for a difference of this share of the mean liking."""
PLANNED_Z = 3.1 + 0.84
"""Of the corrected test, and of 80 % power."""
MOST_SHOWN = 0.5
"""The slice holds at most this share of all pairs."""
BY_SLICE = ("better-shown",)
"""Kinds of statements that rest on randomly shown items."""
SEED_STEP = 1_000_003
"""Between the seeds of the audit and of each fresh data set."""
MARGIN = 0.1
"""The margin of equality, as a share of the best score."""


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """One statement of an audit of a known world."""

    kind: str
    subjects: tuple[str, ...]
    is_false: bool | None
    """None: a condition of the statement does not hold here."""
    would_be_false: bool
    """Whether it is false, conditions or not."""
    role: str


@dataclass(frozen=True, eq=False)
class Trial:
    """An audit of a known world, and the truth about it."""

    world: KnownWorld
    evidence: Evidence
    """With randomly shown items."""
    truth: WorldTruth
    statements: tuple[Statement, ...]

    def outcomes(self) -> list[Outcome]:
        """Return every statement that a world can refute, and whether it does."""
        result = []
        for one in self.statements:
            kind = KINDS[one.kind]
            if kind.is_true is None:
                continue
            result.append(
                Outcome(
                    kind=one.kind,
                    subjects=one.subjects,
                    is_false=kind.is_false(one, self.truth),
                    would_be_false=not kind.is_true(one, self.truth),
                    role=one.role,
                )
            )
        return result


def run_trial(world: KnownWorld, *, fresh: int = FRESH, kinds: Sequence[Kind] = CATALOGUE) -> Trial:
    """Audit a known world, and learn the truth about it.

    Statements are those of an audit without randomly shown items, which is the usual one, and of
    one with such items what rests on them.

    Parameters
    ----------
    world
        The world.
    fresh
        On how many fresh data sets systems are trained anew, for what is expected of a design.
    kinds
        The kinds of statements.
    """
    data = world.data(0)
    core = audit_core(data)
    truth = WorldTruth(data, core, expected_scores(world, core, fresh))
    evidence = evidence_of_trial(data, core)
    usual = statements_of(replace(evidence, random_slice=None), kinds)
    with_slice = statements_of(evidence, [one for one in kinds if one.name in BY_SLICE])
    return Trial(world, evidence, truth, (*usual, *with_slice))


def audit_core(data: KnownData) -> Core:
    """Run the audit's core in a known world, as `unskew audit --quick` does."""
    plan, designs = _plan(data, LEVELS["quick"])
    tune = data.world.tune
    return run_core(data.ratings, plan, designs, metric=METRIC, metrics=(METRIC,), tune=tune)


def _plan(data: KnownData, level: Level) -> tuple[Plan, list[AuditDesign]]:
    """Return the plan of an audit; fresh data have other seeds, as systems trained anew do."""
    relevance = Relevance(liked=data.liked, gain="binary")
    systems = data.world.systems
    plan = plan_of_level(level, relevance, systems, data.world.seed + SEED_STEP * data.number)
    names = [one for one in DESIGNS if one != "temporal" or data.ratings.time is not None]
    return plan, designs_of_level(level, names)


def expected_scores(world: KnownWorld, core: Core, fresh: int) -> dict[str, dict[str, float]]:
    """Return what each system is expected to score under each design, trained on fresh data.

    The mean over fresh data sets. Systems that are equal by construction get the mean of them all:
    what differs between them is chance.

    Parameters
    ----------
    world
        Where fresh data come from.
    core
        The audit: its designs, its systems with their settings.
    fresh
        How many data sets.
    """
    values: dict[str, dict[str, list[float]]] = {
        design: {system: [] for system in core.systems} for design in core.designs
    }
    level = replace(LEVELS["quick"], splits=1)
    for number in range(1, fresh + 1):
        data = world.data(number)
        plan, designs = _plan(data, level)
        plan = replace(plan, algorithms=chosen_systems(plan, core))
        wanted = [one for one in designs if one.name in core.designs]
        again = run_core(
            data.ratings,
            plan,
            wanted,
            metric=METRIC,
            metrics=(METRIC,),
            tune=False,
            with_lists=False,
        )
        for design, of_system in values.items():
            for system, value in _scores_under(again, design).items():
                of_system[system].append(value)
    twins = equal_systems(world, core)
    return {
        design: {
            system: _mean([value for twin in twins[system] for value in of_system[twin]])
            for system in core.systems
        }
        for design, of_system in values.items()
    }


def _scores_under(core: Core, design: str) -> dict[str, float]:
    """Return the mean of each system; none where the design is degenerate on these data."""
    left = core.left_out.get(design)
    name = left.same_as if left is not None else design
    return {} if name is None else core.warm_scores[name][0].mean(METRIC)


def _mean(values: Sequence[float]) -> float:
    """Return the mean; 0 of none, so that nothing is above anything else."""
    return sum(values) / len(values) if values else 0.0


def equal_systems(world: KnownWorld, core: Core) -> dict[str, list[str]]:
    """Return, for each system, those that differ from it by their stream of chance alone."""
    streams = {
        name: replace(one, stream=0)
        for name, one in (world.systems or {}).items()
        if isinstance(one, RandomOrder | PartTrained)
    }
    return {
        system: [
            other
            for other in core.systems
            if other == system or (system in streams and streams[system] == streams.get(other))
        ]
        for system in core.systems
    }


def chosen_systems(plan: Plan, core: Core) -> dict[str, Algorithm]:
    """Return the systems with the settings that tuning chose on the first split."""
    tuned = core.tuned[0] if core.tuned else {}
    return {
        name: tuned[name].algorithm if name in tuned else one for name, one in plan.systems.items()
    }


def evidence_of_trial(data: KnownData, core: Core) -> Evidence:
    """Return the evidence of an audit with a slice of randomly shown items."""
    best = max(core.warm_scores[core.common][0].mean(METRIC).values())
    shown = data.random_slice(slice_size(data))
    return evidence_of(core, random=shown, margin=MARGIN * best, seed=data.world.seed)


def slice_size(data: KnownData, k: int = 10) -> int:
    """Return how many pairs must be shown at random to find a difference that is worth it.

    For two systems without common items, by the test that is corrected for all pairs: the liked
    share p of m shown items on either side differs by `WORTH` p if m = 2 (1 - p) / p (z / WORTH)²,
    and one of items / k random pairs falls on a given list.
    """
    mean = float(data.like.mean())
    reach = PLANNED_Z / WORTH
    needed = 2 * (1 - mean) / max(mean, 0.01) * reach**2 * len(data.ratings.items) / k
    pairs = len(data.ratings.users) * len(data.ratings.items)
    return max(int(min(needed, MOST_SHOWN * pairs)), 1)
