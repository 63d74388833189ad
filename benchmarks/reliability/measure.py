"""`reliability`: audit many known worlds, and count how often each kind of statement is false."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path

from reliability.kinds import KINDS
from reliability.records import KeptRecords, WorldRecord, WorldTask, audit_world
from reliability.result import LEAST, STATEMENT_KINDS, Reliability
from unskew.auditing.page.statement_blocks import code_fingerprint
from unskew.checks import as_count, checked, choose
from unskew.engine.executor import Executor, executor
from unskew.errors import DataError, SettingError

MOST = 1_100
FIRST_SEED = 30_000
"""Seeds of worlds for the final count start here; smaller ones are for setting rules."""
EACH = 10
"""Worlds of a kind, unless a statement is said too rarely without more of them."""
MORE = {"implicit-only": 40}
"""Where a statement is said that is said in no other kind: that people use what is recommended."""
MIX: Mapping[str, int] = {kind: MORE.get(kind, EACH) for kind in KINDS}
"""By kind of worlds: how many are audited."""

Progress = Callable[[str, int, int], None]


@checked
def reliability(
    worlds: int | Mapping[str, int] | None = None,
    *,
    kinds: Sequence[str] | None = None,
    least: int = LEAST,
    most: int = MOST,
    seed: int = FIRST_SEED,
    workers: int = 1,
    store: str | Path | None = None,
    progress: Progress | None = None,
) -> Reliability:
    """Audit many worlds whose truth is known, and count how often each kind of statement is false.

    Without `worlds`, the mix of worlds is the one behind the rates that reports show. With a number
    of worlds, all kinds have equally many. Then worlds are added until every kind of statement was
    said in at least `least` of them, or `most` worlds were audited: round by round one world of
    each kind in which a statement that is said too rarely was said before. A statement that was
    said in no world is not waited for. Kinds of worlds count alike in the rates, however many of
    them were audited.

    Parameters
    ----------
    worlds
        How many worlds, rounded up to equal numbers of each kind; or how many of each kind, by its
        name: `{"null": 10, "tiny": 20}`. The mix of the rates that reports show unless given.
    kinds
        Kinds of worlds; all, or those that `worlds` names, unless given.
    least
        In how many worlds every kind of statement is to be said. Worlds are added where `worlds` is
        a number; 0 adds none, and marks kinds that were said in fewer than 100.
    most
        The most worlds, where worlds are added.
    seed
        The seed of the first world of each kind; the others follow.
    workers
        Processes side by side; never changes a number.
    store
        A folder that keeps each finished world, so that a run that was stopped goes on.
    progress
        Called with the stage, how many worlds are done, and of how many.

    Returns
    -------
    Reliability
        `table()` has a row per kind of statement, `by_world()` one per kind of worlds too,
        `recognised()` says how often a truly better system is named; `save_rates()` writes the
        result file.

    Examples
    --------
    >>> from reliability.measure import reliability
    >>> result = reliability(1, kinds=["equal-systems"], least=0)
    >>> result.table().columns[:4]
    ['kind', 'worlds', 'sayings', 'rate']
    """
    as_count("least", least, 0)
    as_count("most", most, 1)
    mix = _mix(worlds, kinds)
    chosen, is_number = tuple(mix), isinstance(worlds, int)
    fingerprint = code_fingerprint()
    kept = KeptRecords(None if store is None else Path(store) / fingerprint)
    with executor(workers, None) as pool:
        run = _Run(kept, pool, progress or (lambda _stage, _done, _total: None))
        run.carry_out(tasks_of(mix, seed))
        while wanted := run.kinds_to_add(least if is_number else 0):
            room = most - len(run.records)
            if room < len(wanted):
                break
            audited = Counter(task.kind for task in run.records)
            run.carry_out(WorldTask(kind, seed + audited[kind]) for kind in wanted)
    order = sorted(run.records, key=lambda one: (one.seed, chosen.index(one.kind)))
    return Reliability(tuple(run.records[task] for task in order), fingerprint, least or LEAST)


def tasks_of(mix: Mapping[str, int], seed: int) -> list[WorldTask]:
    """Return the worlds of a mix: seed by seed, of all kinds that have so many.

    Parameters
    ----------
    mix
        By kind of worlds: how many.
    seed
        The seed of the first world of each kind; the others follow.

    Examples
    --------
    >>> from reliability.measure import tasks_of
    >>> [(one.kind, one.seed) for one in tasks_of({"null": 1, "tiny": 2}, 5)]
    [('null', 5), ('tiny', 5), ('tiny', 6)]
    """
    rounds = range(max(mix.values(), default=0))
    return [
        WorldTask(kind, seed + at) for at in rounds for kind, number in mix.items() if at < number
    ]


def _mix(worlds: int | Mapping[str, int] | None, kinds: Sequence[str] | None) -> dict[str, int]:
    """Return how many worlds of each kind are audited at first."""
    given = worlds if isinstance(worlds, Mapping) else MIX
    names = list(given) if kinds is None else list(kinds)
    if not names:
        raise SettingError("kinds: name at least one kind of worlds, or leave it out")
    chosen = tuple(dict.fromkeys(choose("kind of world", one, KINDS) for one in names))
    if worlds is None or isinstance(worlds, Mapping):
        return {kind: as_count("worlds", given.get(kind, 0), 1) for kind in chosen}
    each = -(-as_count("worlds", worlds, 1) // len(chosen))
    return dict.fromkeys(chosen, each)


@dataclass(frozen=True, eq=False)
class _Run:
    """Worlds while they are audited."""

    kept: KeptRecords
    executor: Executor
    progress: Progress
    records: dict[WorldTask, WorldRecord] = field(default_factory=dict)

    def carry_out(self, tasks: Iterable[WorldTask]) -> None:
        """Audit worlds; those that are kept are read."""
        todo = []
        for task in tasks:
            record = self.kept.read(task)
            if record is None:
                todo.append(task)
            else:
                self.records[task] = record
        total = len(self.records) + len(todo)
        self.progress("worlds", len(self.records), total)
        for task, record in self._audited(todo):
            self.records[task] = record
            self.kept.write(task, record)
            self.progress("worlds", len(self.records), total)

    def _audited(self, tasks: Sequence[WorldTask]) -> Iterator[tuple[WorldTask, WorldRecord]]:
        with closing(self.executor.do(audit_world, tasks)) as outcomes:
            for outcome in outcomes:
                if outcome.failure is not None:
                    raise DataError(f"{outcome.task.label} failed: {outcome.failure}")
                yield outcome.task, outcome.result

    def kinds_to_add(self, least: int) -> list[str]:
        """Return the kinds of worlds in which statements are said that are said too rarely.

        Worlds in which a condition of a statement is broken do not count for it.
        """
        counts = [
            count
            for record in self.records.values()
            for count in record.counts
            if count.sayings and not count.is_broken
        ]
        often = Counter(one.kind for one in counts)
        rare = {kind for kind in STATEMENT_KINDS if 0 < often[kind] < least}
        where = {one.world for one in counts if one.kind in rare}
        return [kind for kind in KINDS if kind in where]
