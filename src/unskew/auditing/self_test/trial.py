"""One audit of one known world: what is said of it, and which of it is false."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from unskew.auditing.core import Core, run_core
from unskew.auditing.designs import LEVELS, AuditDesign, Level, designs_of_level, plan_of_level
from unskew.auditing.evidence import Evidence, evidence_of
from unskew.auditing.self_test.known_world import KnownData, KnownWorld
from unskew.auditing.self_test.world_truth import WorldTruth
from unskew.auditing.statement import Kind, Statement
from unskew.auditing.statements import CATALOGUE, KINDS, statements_of
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
MARGIN = 0.1
"""The margin of equality, as a share of the best score."""


@dataclass(frozen=True)
class Outcome:
    """One statement made in a known world."""

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
                    one.kind,
                    one.subjects,
                    kind.is_false(one, self.truth),
                    not kind.is_true(one, self.truth),
                    one.role,
                )
            )
        return result


def run_trial(world: KnownWorld, *, fresh: int = FRESH, kinds: Sequence[Kind] = CATALOGUE) -> Trial:
    """Audit a known world, and learn the truth about it."""
    data = world.data(0)
    core = audit_core(data)
    truth = WorldTruth(data, core, expected_scores(world, core, fresh))
    evidence = evidence_of_trial(data, core)
    return Trial(world, evidence, truth, statements_of(evidence, kinds))


def audit_core(data: KnownData) -> Core:
    """Run the audit's core in a known world, as `unskew audit --quick` does."""
    plan, designs = _plan(data, LEVELS["quick"])
    tune = data.world.tune
    return run_core(data.ratings, plan, designs, metric=METRIC, metrics=(METRIC,), tune=tune)


def _plan(data: KnownData, level: Level) -> tuple[Plan, list[AuditDesign]]:
    relevance = Relevance(liked=data.liked, gain="binary")
    systems = data.world.systems
    plan = plan_of_level(level, relevance, systems, data.world.seed)
    names = [one for one in DESIGNS if one != "temporal" or data.ratings.time is not None]
    return plan, designs_of_level(level, names)


def expected_scores(world: KnownWorld, core: Core, fresh: int) -> dict[str, dict[str, float]]:
    """Return what each system is expected to score under each design, trained on fresh data."""
    total = {design: dict.fromkeys(core.systems, 0.0) for design in core.designs}
    level = replace(LEVELS["quick"], splits=1)
    for number in range(1, fresh + 1):
        data = world.data(number)
        plan, designs = _plan(data, level)
        plan = replace(plan, algorithms=chosen_systems(plan, core))
        wanted = [one for one in designs if one.name in core.designs]
        again = run_core(data.ratings, plan, wanted, metric=METRIC, metrics=(METRIC,), tune=False)
        for design, parts in again.warm_scores.items():
            for system, value in parts[0].mean(METRIC).items():
                total[design][system] += value / fresh
    return total


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
