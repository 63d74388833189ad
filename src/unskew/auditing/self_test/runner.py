"""`reliability`: audit many known worlds, and count how often each kind of statement is false."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import closing
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import polars as pl

from unskew.auditing.self_test.kinds import KINDS
from unskew.auditing.self_test.rates import FILE, Rate, Rates, code_fingerprint
from unskew.auditing.self_test.tally import Count, rate_of
from unskew.auditing.self_test.trial import Trial, run_trial
from unskew.auditing.statements import CATALOGUE
from unskew.checks import as_count, checked, choose
from unskew.engine.execute import execute
from unskew.engine.files import replacing
from unskew.errors import DataError, quietly
from unskew.report.result import Result

WORLDS = 480
FIRST_SEED = 1_000
"""Seeds of worlds for the final count start here; smaller ones are for setting rules."""
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
class WorldRecord:
    """What the audit of one world came to."""

    world: str
    seed: int
    counts: tuple[Count, ...]
    recognised: Recognised


def audit_world(task: WorldTask) -> WorldRecord:
    """Audit a world, and count what is false."""
    with quietly():
        trial = run_trial(KINDS[task.kind].make(task.seed))
        return record_of(trial, task)


def record_of(trial: Trial, task: WorldTask) -> WorldRecord:
    """Count statements, and those that are false."""
    said, false, broken = Counter[str](), Counter[str](), set[str]()
    for one in trial.outcomes():
        said[one.kind] += 1
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
        for kind, count in said.items()
    )
    return WorldRecord(
        world=task.kind, seed=task.seed, counts=counts, recognised=_recognised(trial, task)
    )


def _recognised(trial: Trial, task: WorldTask) -> Recognised:
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


@dataclass(frozen=True, eq=False)
class Reliability(Result):
    """How often each kind of statement is said and false in known worlds. Made by `reliability`."""

    records: tuple[WorldRecord, ...]
    fingerprint: str

    @property
    def rates(self) -> Rates:
        """The rates, as reports show them."""
        counts = [count for one in self.records for count in one.counts]
        run = Counter(one.world for one in self.records)
        each = [rate_of(kind.name, counts, run) for kind in CATALOGUE if kind.is_true is not None]
        return Rates(
            fingerprint=self.fingerprint,
            worlds=len(self.records),
            world_kinds=tuple(dict.fromkeys(one.world for one in self.records)),
            rates={one.kind: one for one in each if one is not None},
        )

    def table(self) -> pl.DataFrame:
        """Return a row per kind of statement: said in how many worlds, how often, how often false.

        `rate` is the mean over kinds of worlds of the share of false sayings, with its 95 %
        interval over worlds and its one-sided upper end; `worst` is the kind of worlds with the
        highest rate, `if_broken` the rate where a condition of the statement does not hold.
        """
        return pl.DataFrame([_row(one) for one in self.rates.rates.values()])

    def by_world(self) -> pl.DataFrame:
        """Return a row per kind of statement and kind of world."""
        rows = [
            {"kind": one.kind, **asdict(part), "condition": holds}
            for one in self.rates.rates.values()
            for holds, several in (("holds", one.by_world), ("broken", one.broken))
            for part in several
        ]
        return pl.DataFrame(rows)

    def recognised(self) -> pl.DataFrame:
        """Return a row per kind of world: how often a truly better system is named as such.

        Over pairs of which one is truly better by more than a tenth and ahead; the mean over
        worlds of the share of pairs. `visible`: kinds named beforehand as those where it should be
        seen.
        """
        rows = []
        for kind in dict.fromkeys(one.world for one in self.records):
            several = [
                one.recognised for one in self.records if one.world == kind and one.recognised.pairs
            ]
            if several:
                count = len(several)
                rows.append(
                    {
                        "world": kind,
                        "visible": KINDS[kind].where_better_is_visible,
                        "worlds": count,
                        "named": sum(one.named / one.pairs for one in several) / count,
                        "by_slice": sum(one.named_by_slice / one.pairs for one in several) / count,
                    }
                )
        schema = {
            "world": pl.String,
            "visible": pl.Boolean,
            "worlds": pl.Int64,
            "named": pl.Float64,
            "by_slice": pl.Float64,
        }
        return pl.DataFrame(rows, schema=schema)

    def save_rates(self, path: str | Path = FILE) -> None:
        """Write the result file from which reports take their rates."""
        with replacing(Path(path)) as file:
            file.write_text(json.dumps(self.rates.to_dict(), indent=1), encoding="utf-8")

    def _content(self) -> dict[str, Any]:
        return {
            **self.rates.to_dict(),
            "recognised": self.recognised().to_dicts(),
        }

    def _summary(self) -> str:
        kinds = len(self.rates.world_kinds)
        return f"{len(self.records):,} worlds of {kinds} kinds, {self.table().height} statements"

    def _explanation(self) -> list[str]:
        return [
            "rate: the share of false sayings in a world, as a mean over the worlds in which it is "
            "said; kinds of worlds count alike",
            "low, high: 95 % interval over worlds; upper: one-sided 95 % end",
        ]


def _row(rate: Rate) -> dict[str, object]:
    worst = rate.worst
    broken = [one.rate for one in rate.broken]
    return {
        "kind": rate.kind,
        "worlds": rate.worlds,
        "sayings": rate.sayings,
        "rate": rate.rate,
        "low": rate.low,
        "high": rate.high,
        "upper": rate.upper,
        "worst": None if worst is None else worst.world,
        "worst_rate": None if worst is None else worst.rate,
        "if_broken": sum(broken) / len(broken) if broken else None,
    }


Progress = Callable[[str, int, int], None]


@checked
def reliability(
    worlds: int = WORLDS,
    *,
    kinds: Sequence[str] | None = None,
    seed: int = FIRST_SEED,
    workers: int = 1,
    folder: str | Path | None = None,
    progress: Progress | None = None,
) -> Reliability:
    """Audit many worlds whose truth is known, and count how often each kind of statement is false.

    Parameters
    ----------
    worlds
        How many worlds, in equal numbers of each kind.
    kinds
        Kinds of worlds; all unless given.
    seed
        The seed of the first world of each kind; the others follow.
    workers
        Processes side by side; never changes a number.
    folder
        Keeps each finished world here, so that a run that was stopped goes on.
    progress
        Called with the stage, how many worlds are done, and of how many.
    """
    as_count("worlds", worlds, 1)
    chosen = [choose("kind of world", one, KINDS) for one in kinds or KINDS]
    each = -(-worlds // len(chosen))
    tasks = [WorldTask(kind, seed + number) for number in range(each) for kind in chosen]
    fingerprint = code_fingerprint()
    kept = _Kept(None if folder is None else Path(folder) / fingerprint)
    records = {task: record for task in tasks if (record := kept.read(task)) is not None}
    todo = [task for task in tasks if task not in records]
    tell = progress or (lambda _stage, _done, _total: None)
    tell("worlds", len(records), len(tasks))
    with closing(execute(audit_world, todo, workers)) as outcomes:
        for outcome in outcomes:
            if outcome.failure is not None:
                raise DataError(f"{outcome.task.label} failed: {outcome.failure}")
            records[outcome.task] = outcome.result
            kept.write(outcome.task, outcome.result)
            tell("worlds", len(records), len(tasks))
    return Reliability(tuple(records[task] for task in tasks), fingerprint)


@dataclass(frozen=True)
class _Kept:
    """Finished worlds in a folder, a file each."""

    home: Path | None

    def _path(self, task: WorldTask) -> Path | None:
        return None if self.home is None else self.home / f"{task.kind}-{task.seed}.json"

    def read(self, task: WorldTask) -> WorldRecord | None:
        path = self._path(task)
        if path is None or not path.exists():
            return None
        content = json.loads(path.read_text(encoding="utf-8"))
        return WorldRecord(
            world=content["world"],
            seed=content["seed"],
            counts=tuple(Count(**one) for one in content["counts"]),
            recognised=Recognised(**content["recognised"]),
        )

    def write(self, task: WorldTask, record: WorldRecord) -> None:
        path = self._path(task)
        if path is not None:
            path.parent.mkdir(parents=True, exist_ok=True)
            with replacing(path) as file:
                file.write_text(json.dumps(asdict(record)), encoding="utf-8")
