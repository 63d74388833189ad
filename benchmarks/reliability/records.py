"""What the audit of one known world came to: counts of statements, kept in a file each."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from reliability.kinds import KINDS
from reliability.tally import Count
from reliability.trial import BY_SLICE, Trial, run_trial
from unskew.auditing.statements.first_screen import SETTLED, first_screen
from unskew.engine.files import inner_path, replacing
from unskew.errors import quietly

WORTH = 0.1
"""A system counts as truly better from this share of the other's true precision on."""


@dataclass(frozen=True)
class WorldTask:
    """One world to audit."""

    kind: str
    seed: int

    @property
    def label(self) -> str:
        """What it is, in words."""
        return f"world {self.kind}, seed {self.seed}"


@dataclass(frozen=True, kw_only=True)
class Recognised:
    """Of the pairs in one world of which one is truly better and ahead: how many are named."""

    world: str
    seed: int
    pairs: int
    named: int
    """By judgments as they are."""
    named_by_slice: int
    """By a slice of randomly shown items."""


@dataclass(frozen=True, kw_only=True)
class Answer:
    """What the first screen of one world says of the best systems, and what is true."""

    verdict: str
    is_clear: bool
    """Whether the truly best systems are ahead of all others by a tenth, in truth and in score."""
    is_named: bool
    """Whether the leading tier holds some of these systems and no other one."""
    is_wrong: bool
    """Whether systems are called the best by score and liking, and each of them truly is worse by a
    tenth than another system."""


@dataclass(frozen=True, kw_only=True)
class WorldRecord:
    """What the audit of one world came to."""

    world: str
    seed: int
    counts: tuple[Count, ...]
    recognised: Recognised
    answer: Answer


def audit_world(task: WorldTask) -> WorldRecord:
    """Audit a world, and count what is false."""
    with quietly():
        trial = run_trial(KINDS[task.kind](task.seed))
        return record_of(trial, task)


def record_of(trial: Trial, task: WorldTask) -> WorldRecord:
    """Count statements, and those that are false."""
    sayings, false, broken = Counter[str](), Counter[str](), set[str]()
    for one in trial.outcomes():
        sayings[one.kind] += 1
        false[one.kind] += one.would_be_false
        if one.is_false is None:
            broken.add(one.kind)
    counts = tuple(
        Count(
            kind=kind,
            world=task.kind,
            seed=task.seed,
            sayings=count,
            false=false[kind],
            is_broken=kind in broken,
        )
        for kind, count in sayings.items()
    )
    return WorldRecord(
        world=task.kind,
        seed=task.seed,
        counts=counts,
        recognised=_recognised(trial, task),
        answer=answer_of(trial),
    )


def answer_of(trial: Trial) -> Answer:
    """Compare what the first screen says of the best systems with the truth."""
    evidence, truth = trial.evidence, trial.truth
    usual = replace(evidence, random_slice=None)
    statements = [one for one in trial.statements if one.kind not in BY_SLICE]
    verdict = first_screen(usual, statements).verdict
    precision = {system: truth.precision(system) for system in evidence.order}
    best = max(precision.values())
    good = {system for system, value in precision.items() if value * (1 + WORTH) > best}
    others = set(evidence.order) - good
    leads = [truth.leads[evidence.common][system] for system in good]
    scores = [truth.leads[evidence.common][system] for system in others]
    leading = set(evidence.leading())
    return Answer(
        verdict=verdict,
        is_clear=bool(others) and min(leads) > (1 + WORTH) * max(scores),
        is_named=leading <= good,
        is_wrong=verdict == SETTLED and not leading & good,
    )


def _recognised(trial: Trial, task: WorldTask) -> Recognised:
    """Count the pairs of which one is truly better and ahead, and those that are named."""
    evidence, truth = trial.evidence, trial.truth
    better = {
        pair
        for pair in evidence.pairs
        if evidence.ahead(*pair)
        and truth.liking(*pair) > WORTH * max(truth.precision(pair[1]), 1e-9)
    }
    named = {one.subjects for one in trial.statements if one.kind == "better"}
    by_slice = {one.subjects for one in trial.statements if one.kind == "better-shown"}
    return Recognised(
        world=task.kind,
        seed=task.seed,
        pairs=len(better),
        named=len(better & named),
        named_by_slice=len(better & by_slice),
    )


@dataclass(frozen=True)
class KeptRecords:
    """Finished worlds in a folder, a file each: a run that was stopped goes on."""

    home: Path | None
    """None keeps nothing."""

    def _path(self, task: WorldTask) -> Path | None:
        if self.home is None:
            return None
        return inner_path(self.home, f"{task.kind}-{task.seed}.json")

    def read(self, task: WorldTask) -> WorldRecord | None:
        """Return the record of a world; None where it has not been audited yet."""
        path = self._path(task)
        if path is None or not path.exists():
            return None
        content = json.loads(path.read_text(encoding="utf-8"))
        return WorldRecord(
            world=content["world"],
            seed=content["seed"],
            counts=tuple(Count(**one) for one in content["counts"]),
            recognised=Recognised(**content["recognised"]),
            answer=Answer(**content["answer"]),
        )

    def write(self, task: WorldTask, record: WorldRecord) -> None:
        """Keep a record; it appears under its name when it is complete."""
        path = self._path(task)
        if path is not None:
            path.parent.mkdir(parents=True, exist_ok=True)
            with replacing(path) as file:
                file.write_text(json.dumps(asdict(record)), encoding="utf-8")
