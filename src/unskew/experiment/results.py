"""`run`: carry a plan out, and `Results`: everything it gave."""

from __future__ import annotations

import os
import pickle
import sys
from collections.abc import Callable, Iterator, Mapping, Set
from contextlib import ExitStack, closing
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import polars as pl

from unskew.checks import checked
from unskew.data.catalog import load, read_name
from unskew.data.ratings import Ratings
from unskew.data.readers import read_ratings
from unskew.data.stored import data_key, put_ratings
from unskew.engine.cluster import connect
from unskew.engine.execute import Outcomes, execute
from unskew.engine.files import temporary_folder
from unskew.engine.store import MissingResult, Store, StoreError, key_of
from unskew.errors import DataError, SettingError, Spelling
from unskew.evaluation.scores import RANDOM, Scores, notes_of, system_of
from unskew.experiment.cluster import over_plan
from unskew.experiment.plan import Custom, Plan, View
from unskew.experiment.task import (
    Place,
    Task,
    count_splits,
    forget,
    is_storable,
    perform,
    protocol_label,
    result_key,
    task_label,
    wanted_metrics,
)
from unskew.report.result import Result
from unskew.report.tables import WIDE, Table

if TYPE_CHECKING:
    from distributed import Client


@dataclass(frozen=True)
class Progress:
    """How far a run is."""

    done: int
    total: int
    failed: int
    label: str
    """What was finished last."""


@dataclass(frozen=True, eq=False)
class ScoredSplit:
    """The scores of all systems on one split, judged in one way."""

    split: str
    """The protocol; with its settings where the plan has several of that name."""
    fold: str
    """The label of the split, such as `fold1`."""
    view: View
    scores: Scores
    intervention: str = ""
    """Its kind; with its settings where the plan has several of that kind."""


@dataclass(frozen=True, eq=False)
class Results(Result):
    """Everything a plan gave: scores of all systems by split, judgments and targets."""

    plan: Plan
    parts: tuple[ScoredSplit, ...]
    failures: Mapping[str, str] = field(default_factory=dict)
    """Reports of failed tasks, by what they were."""

    def __iter__(self) -> Iterator[ScoredSplit]:
        return iter(self.parts)

    def __len__(self) -> int:
        return len(self.parts)

    def scores(
        self,
        targets: str | None = None,
        *,
        split: str | None = None,
        judgments: str | None = None,
        intervention: str | None = None,
    ) -> list[Scores]:
        """Return the scores of one design, one per fold: what comparisons take.

        Parameters
        ----------
        targets
            A design as it prints, such as `TestItems()`; not needed where there is one.
        split, judgments, intervention
            Likewise.
        """
        wanted = {
            "targets": targets,
            "split": split,
            "judgments": judgments,
            "intervention": intervention,
        }
        found = [
            part
            for part in self.parts
            if all(value is None or _names(part)[name] == value for name, value in wanted.items())
        ]
        designs = {tuple(_names(part).values()) for part in found}
        if len(designs) != 1:
            there = sorted({tuple(_names(part).values()) for part in self.parts})
            listed = "\n  ".join(" | ".join(one) for one in there)
            raise SettingError(
                f"{len(designs)} designs fit; say which with targets=…, split=…, judgments=…, "
                f"intervention=…. There are (targets | split | judgments | intervention):\n  "
                f"{listed}"
            )
        return [part.scores for part in found]

    def table(self) -> pl.DataFrame:
        """Return a row per split, design, system and metric, with what chance scores."""
        rows = []
        for part in self.parts:
            chance = part.scores.random()
            for system, means in part.scores.averages().items():
                for label, mean in means.items():
                    rows.append(
                        {
                            **_names(part),
                            "fold": part.fold,
                            "system": system,
                            "metric": label,
                            "mean": mean.value,
                            "users": mean.users,
                            "random": chance.get(label),
                        }
                    )
        return pl.DataFrame(rows, infer_schema_length=None)

    def summary(self) -> pl.DataFrame:
        """Return the mean over folds: a row per design and system, a column per metric."""
        design = ["targets", "split", "judgments", "intervention"]
        long = self.table()
        chance = long.with_columns(system=pl.lit(RANDOM), mean="random").unique(maintain_order=True)
        both = pl.concat([long, chance]).with_columns(
            place=pl.concat_str(pl.col(design), separator="\x1f").rank("dense")
        )
        first = {name: n for n, name in enumerate(dict.fromkeys(both["place"].to_list()))}
        means = both.group_by([*design, "place", "system", "metric"], maintain_order=True).agg(
            pl.col("mean").mean()
        )
        wide = means.pivot(
            "metric", index=[*design, "place", "system"], values="mean", maintain_order=True
        )
        wide = wide.sort(pl.col("place").replace_strict(first), maintain_order=True).drop("place")
        return wide.drop([key for key in design if wide[key].n_unique() == 1])

    def _explanation(self) -> list[str]:
        folds = len({(part.split, part.fold) for part in self.parts})
        lines = [f"means over {folds} splits; {self.plan.users}; {self.plan.relevance}"]
        if self.failures:
            lines.append(f"{len(self.failures)} tasks failed: {', '.join(self.failures)}")
        return lines

    @property
    def notes(self) -> tuple[str, ...]:
        """What was counted on the way, each note once, with the systems and designs it is of."""
        names = [_names(part) for part in self.parts]
        differing = (
            [key for key in names[0] if len({one[key] for one in names}) > 1] if names else []
        )
        designs: dict[str, list[Scores]] = {}
        for part, one in zip(self.parts, names, strict=True):
            design = ", ".join(one[key] for key in differing if one[key])
            designs.setdefault(design, []).append(part.scores)
        return tuple(notes_of(designs))

    def display_tables(self, digits: int | None = None) -> list[Table]:
        """Return one table or, where there are many metrics, one per design with a row for each."""
        digits = self.digits if digits is None else digits
        table = self.summary()
        names = [str(metric) for metric in self.plan.metrics]
        if len(names) <= WIDE:
            return [Table("", table, digits)]
        keys = [column for column in table.columns if column not in (*names, "system")]
        parts = table.partition_by(keys, maintain_order=True) if keys else [table]
        wide = [
            part.select(names).transpose(
                include_header=True,
                header_name=", ".join(str(part[key][0]) for key in keys) or "metric",
                column_names=part["system"],
            )
            for part in parts
        ]
        return [Table("", part, digits) for part in wide]

    def _summary(self) -> str:
        return f"{len(self.parts)} designs and splits, {len(self.plan.systems)} systems"


def _names(part: ScoredSplit) -> dict[str, str]:
    return {
        "targets": repr(part.view.targets),
        "split": part.split,
        "judgments": part.view.judgments,
        "intervention": part.intervention,
    }


@checked
def run_plan(
    data: object,
    plan: Plan,
    *,
    store: str | os.PathLike[str] | None = None,
    workers: int = 1,
    cluster: str | Client | None = None,
    keep_going: bool = False,
    retry_failed: bool = False,
    progress: Callable[[Progress], None] | None = None,
) -> Results:
    """Carry a plan out: split, train, rank, judge. What is in the store is not done again.

    Parameters
    ----------
    data
        Ratings, or anything that `read_ratings` takes.
    plan
        The plan.
    store
        A folder that keeps every finished result: a run that was killed goes on where it was.
        Without one, results are kept until they are returned.
    workers
        Processes side by side; never changes a result.
    cluster
        Do tasks on a Dask cluster instead: `tcp://host:port`, `local:4`, or a
        `distributed.Client`; never changes a result. Needs `pip install 'unskew[cluster]'`.
    keep_going
        Go on when a task fails, and return what there is; else the first failure is raised when
        all running tasks are done.
    retry_failed
        Try tasks again that failed in an earlier run on this store.
    progress
        Called after each task.

    Examples
    --------
    >>> import unskew as us
    >>> ratings = {"user": [1, 1, 2, 2, 3, 3], "item": [7, 8, 7, 9, 8, 9], "rating": [5] * 6}
    >>> plan = us.Plan(
    ...     us.splits.LeaveOut(1), algorithms=[us.recommend.Popularity()], metrics=["P@1"], seed=2
    ... )
    >>> us.run_plan(ratings, plan)
    Results(1 designs and splits, 1 systems)
    """
    ratings = data if isinstance(data, Ratings) else read_ratings(data)
    if cluster is not None and workers != 1:
        raise SettingError(f"give workers or a cluster, not both; got workers={workers}")
    with ExitStack() as stack:
        kept = store is not None
        opened = Store.open(stack.enter_context(temporary_folder()) if store is None else store)
        scratch = None
        if not all(is_storable(plan, system) for system in (None, *plan.systems)):
            scratch = Store.open(stack.enter_context(temporary_folder()))
        do: Callable[[list[Task]], Outcomes]
        if cluster is not None:
            client = stack.enter_context(connect(cluster))
            do = partial(over_plan, client, shared=kept and scratch is None)
        else:
            if workers > 1:
                _must_travel(plan)
            do = partial(execute, perform, workers=workers)
        return _carry_out(
            ratings, plan, opened, scratch, do, keep_going, retry_failed and kept, progress
        )


def _must_travel(plan: Plan) -> None:
    """Refuse functions that other processes cannot find: there they would fail, or hang."""
    remedy = "define it at the top of a module that can be imported, or take one worker"
    for label, one in plan.systems.items():
        home = getattr(one.function, "__module__", None) if isinstance(one, Custom) else None
        main = sys.modules["__main__"]
        if home == "__main__" and not getattr(main, "__file__", None):
            raise SettingError(f"{label}: its function lives in this session only; {remedy}")
        try:
            pickle.dumps(one)
        except Exception as problem:
            raise SettingError(
                f"{label}: several workers cannot share its function ({problem}); {remedy}"
            ) from None
    try:
        pickle.dumps(plan)
    except Exception as problem:
        raise SettingError(f"several workers cannot share the plan ({problem})") from None


def _carry_out(
    ratings: Ratings,
    plan: Plan,
    store: Store,
    scratch: Store | None,
    do: Callable[[list[Task]], Outcomes],
    keep_going: bool,
    retry_failed: bool,
    progress: Callable[[Progress], None] | None,
) -> Results:
    key = put_ratings(store, ratings)
    tasks = tasks_of(plan, ratings, key, store, scratch)
    failures: dict[str, str] = {}
    failed: set[Place] = set()
    earlier = store.failures()
    todo = []
    for task in tasks:
        if not task.todo:
            continue
        if task.key in earlier and not retry_failed and task.into is None:
            failures[task.label] = earlier[task.key]
            failed.add(task.place)
            continue
        if task.key in earlier:
            store.forget_failure(task.key)
        todo.append(task)
    if failures and not keep_going:
        raise _failed(plan, failures, " in an earlier run (try again with retry_failed)")
    done = len(tasks) - len(todo) - len(failures)
    try:
        with closing(do(todo)) as outcomes:
            for outcome in outcomes:
                done += 1
                task = outcome.task
                if outcome.failure is not None:
                    report = f"{task.label}, seed {plan.seed}, plan {plan.key}\n{outcome.failure}"
                    failures[task.label] = report
                    failed.add(task.place)
                    if task.into is None:
                        store.put_failure(task.key, report)
                    if not keep_going:
                        raise _failed(plan, {task.label: report}, "")
                if progress is not None:
                    progress(Progress(done, len(tasks), len(failures), task.label))
    finally:
        forget()
    return collect(plan, ratings, key, store, failures, failed, scratch)


def _failed(plan: Plan, failures: Mapping[str, str], when: str) -> DataError:
    label, report = next(iter(failures.items()))
    why = report.partition("\n")[2].strip()
    if "\n" not in why:  # an error on purpose, not one of code
        return DataError(f"{label} failed{when}, with seed {plan.seed}: {why}")
    return DataError(
        f"{label} failed{when}, with seed {plan.seed}; what was finished is kept.\n{report}"
    )


def tasks_of(
    plan: Plan, ratings: Ratings, data: str, store: Store, scratch: Store | None = None
) -> list[Task]:
    """Return all tasks of a plan, each with what is not in the store yet."""
    tasks = []
    views = plan.views()
    for split in range(len(plan.splits)):
        for fold in range(count_splits(plan, split, ratings)):
            for system in (None, *plan.systems):
                keys = [
                    (number, result_key(plan, data, split, fold, view, system))
                    for number, view in enumerate(views)
                ]
                fresh = not is_storable(plan, system)
                todo = tuple((n, key) for n, key in keys if fresh or not store.has(key))
                whole = key_of({"task": [key for _, key in keys]})
                into = scratch if fresh else None
                tasks.append(Task(store, data, plan, split, fold, system, todo, whole, into))
    return tasks


def keys_of(plan: Plan, ratings: Ratings) -> set[str]:
    """Return the keys of all results of a plan."""
    data = data_key(ratings)
    return {
        result_key(plan, data, split, fold, view, system)
        for split in range(len(plan.splits))
        for fold in range(count_splits(plan, split, ratings))
        for system in (None, *plan.systems)
        for view in plan.views()
    }


def collect(
    plan: Plan,
    ratings: Ratings,
    data: str,
    store: Store,
    failures: Mapping[str, str],
    failed: Set[Place],
    scratch: Store | None = None,
) -> Results:
    """Read the results of a plan from its store, and from where those are that are not kept.

    Results may be missing of the tasks that failed, and of no others: else StoreError.
    """
    parts = []
    kinds = [one.kind for one in plan.interventions]
    for split in range(len(plan.splits)):
        name = protocol_label(plan, split)
        for fold in range(count_splits(plan, split, ratings)):
            for view in plan.views():
                found = _read(plan, ratings, data, split, fold, view, store, scratch, failed)
                if found is None:
                    continue
                change = view.intervention
                kind = "" if change is None else change.kind
                changed = kind if kinds.count(kind) < 2 else repr(change)
                parts.append(ScoredSplit(name, found[1], view, found[0], changed))
    if not parts:
        raise DataError(
            "no task was finished"
            + "".join(f"\n{label}: {text}" for label, text in failures.items())
        )
    return Results(plan, tuple(parts), dict(failures))


def _read(
    plan: Plan,
    ratings: Ratings,
    data: str,
    split: int,
    fold: int,
    view: View,
    store: Store,
    scratch: Store | None,
    failed: Set[Place],
) -> tuple[Scores, str] | None:
    """Put the scores of one design together, of all systems whose tasks did not fail."""

    def get(system: str | None) -> tuple[pl.DataFrame, dict[str, Any]] | None:
        where = store if scratch is None or is_storable(plan, system) else scratch
        key = result_key(plan, data, split, fold, view, system)
        try:
            return where.get(key)
        except MissingResult:
            if (split, fold, system) in failed:
                return None
            label = task_label(plan, split, fold, system)
            raise StoreError(
                f"{label}: its result {key} was there and is gone from {where.home}. "
                f"Something else removed it, such as unskew store gc with another plan, or a "
                f"cleaner of temporary folders. Run again, with ",
                Spelling("store=…", "--store DIR"),
                " in a folder that nothing else empties: what is still there is not done again",
            ) from None

    lists = get(None)
    if lists is None:
        return None
    shared, card = lists
    wanted = wanted_metrics(plan, view)
    labels = tuple(label for label, metric in wanted.items() if metric.definition.of != "run")
    systems, notes = {}, list(card["notes"])
    for name in plan.systems:
        result = get(name)
        if result is None:
            continue
        table, own = result
        systems[name] = system_of(table, labels, own["aggregates"])
        notes += [f"{name}: {note}" for note in own["notes"][plan.users]]
    if not systems:
        return None
    facts = shared.select(pl.col("^list .*$")).rename(lambda column: column.removeprefix("list "))
    if card["strata"] == 0:
        facts = facts.drop("stratum")
    anchored = bool((facts["anchor"] >= 0).all())
    anchor = ratings.items.raw(facts["anchor"].to_numpy()) if anchored else None
    facts = facts.drop("anchor")
    if anchor is not None:
        facts = facts.with_columns(anchor=anchor)
    content = {
        "plan": plan.describe(),
        "data": data,
        "split": split,
        "fold": fold,
        "view": view.describe(),
        "lists": card["facts"],
        "systems": list(systems),
        "versions": card["versions"],
    }
    scores = Scores(
        labels,
        systems,
        ratings.users,
        facts,
        plan.users,
        plan.undefined,
        tuple(wanted),
        partial(dict, content),
        tuple(dict.fromkeys(notes)),
        str(plan.relevance),
        "strata" if card["strata"] else "lists",
        system_of(shared, labels, card["aggregates"]),
        card["simulated"],
    )
    return scores, card["label"]


def data_of(settings: Mapping[str, Any], folder: Path) -> Ratings:
    """Read the data that a plan names: a file, relative to the plan's, or a named data set."""
    if "file" not in settings:
        raise SettingError('the plan names no data: write [data] and file = "ratings.parquet"')
    more = {key: value for key, value in settings.items() if key != "file"}
    file = str(settings["file"])
    if not (folder / file).exists() and read_name(file) is not None:
        return load(file, **more).ratings
    return read_ratings(folder / file, **more)
