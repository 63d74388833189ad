"""`Task`: one system on one split, and the function that trains, ranks and scores it."""

from __future__ import annotations

import secrets
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, field, replace
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
import polars as pl

from unskew.data.dataset import stored_data
from unskew.data.events import Events
from unskew.data.ratings import Ratings
from unskew.data.relevance import Relevance
from unskew.engine.cluster import ClusterError, await_worker, over, worker_address
from unskew.engine.executor import Executor
from unskew.engine.files import is_temporary, replacing
from unskew.engine.process_pool import Outcomes
from unskew.engine.rng import generator
from unskew.engine.store import Store, StoreError, digest_of
from unskew.engine.system import versions
from unskew.engine.threads import resolve
from unskew.errors import quietly
from unskew.evaluation.chance import chance_scores
from unskew.evaluation.evaluate import MEMORY, forgiving
from unskew.evaluation.scores import USERS, System
from unskew.evaluation.scoring import Measures, list_columns, prepare, remarks, score
from unskew.experiment.plan import STAGES, Plan, PlanView, label_of
from unskew.judging.judged import Judged
from unskew.judging.rank import Ranking, rank_designs
from unskew.judging.rank_tiles import RankJob
from unskew.metrics.definition import WHEN_CHANGED
from unskew.metrics.names import Metric
from unskew.report.text import finite
from unskew.splits.split import Split

if TYPE_CHECKING:
    from distributed import Client


Card = dict[str, Any]
Place = tuple[int, int, str | None]
"""Number of the splitter, number of its split, and the system; None = what all systems share."""


@dataclass(frozen=True)
class Done:
    """What a task did."""

    keys: Sequence[str]
    """The keys of what it stored."""
    result: Any = None
    """What it has to say beside."""


@dataclass(frozen=True)
class Task:
    """One system on one split, judged in every way that is not in the store yet.

    Without a system: what all systems share, the lists and what chance scores on them.
    """

    store: Store
    data: str
    """The key of the ratings."""
    plan: Plan
    split: int
    fold: int
    system: str | None
    todo: tuple[tuple[int, str], ...]
    """Number of the view, and the key of its result."""
    key: str
    """A key of the task as a whole, for reports of failure."""
    into: Store | None = None
    """Where results go that must not be kept."""

    @property
    def label(self) -> str:
        """What it is, in words."""
        return task_label(self.plan, self.split, self.fold, self.system)

    @property
    def place(self) -> Place:
        """Where it stands in its plan."""
        return self.split, self.fold, self.system

    @property
    def needs(self) -> tuple[str, ...]:
        """The keys of results that it reads: none."""
        return ()

    def moved(self, store: Store) -> Task:
        """Return the same task with all that it reads and writes in another store."""
        return replace(self, store=store, into=None)

    def perform(self) -> Done:
        """Do it."""
        return Done(perform(self))


def protocol_label(plan: Plan, split: int) -> str:
    """Return the name of a protocol; with its settings where the plan has several of that name."""
    splitter = plan.splits[split]
    alone = sum(split.title == splitter.title for split in plan.splits) == 1
    return splitter.title if alone else repr(splitter)


def task_label(plan: Plan, split: int, fold: int, system: str | None) -> str:
    """Return in words what a task is; no two of a plan have the same."""
    return f"{system or 'lists'} on {protocol_label(plan, split)}, split {fold + 1}"


def result_key(
    plan: Plan, data: str, split: int, fold: int, view: PlanView, system: str | None
) -> str:
    """Return the key of a result: the hash of all that determines it."""
    parts: dict[str, Any] = {
        "stages": STAGES,
        "data": data,
        "split": plan.splits[split].describe(),
        "fold": fold,
        "seed": plan.seed,
        "view": view.describe(),
        "relevance": plan.relevance.describe(),
        "metrics": {label: str(metric) for label, metric in plan.labelled_metrics.items()},
        "labels": list(plan.metrics),
        **({} if plan.judged_users is None else {"judged_users": plan.judged_users}),
    }
    if system is None:
        parts |= {"what": "lists", "draws": plan.draws}
    else:
        parts |= {"system": plan.systems[system].describe(), "ties": plan.ties}
    return digest_of(parts)


def card_of(
    plan: Plan, data: str, split: int, fold: int, view: PlanView, system: str | None
) -> Card:
    """Return the card of a result: the part of the plan that determines it, and nothing else.

    The same for every plan that holds the result, whatever else is in it and however it calls the
    system: who writes a key again writes the same bytes.
    """
    algorithm = None if system is None else plan.systems[system]
    systems = {} if algorithm is None else {label_of(algorithm): algorithm.describe()}
    change = [] if view.intervention is None else [view.intervention.describe()]
    return {
        "plan": {
            "split": [plan.splits[split].describe()],
            "targets": [view.targets.describe()],
            "algorithms": systems,
            "relevance": plan.relevance.describe(),
            "metrics": list(plan.metrics),
            "interventions": change,
            "judgments": [view.judgments],
            "seed": plan.seed,
            **({} if plan.judged_users is None else {"judged_users": plan.judged_users}),
            **({"draws": plan.draws} if algorithm is None else {"ties": plan.ties}),
        },
        "data": data,
        "fold": fold,
        "system": next(iter(systems), None),
        "stages": STAGES,
        "versions": versions(),
    }


def perform(task: Task) -> list[str]:
    """Do a task; return the keys that it stored."""
    with quietly():
        split = _split(task.store, task.data, task.plan, task.split, task.fold)
        views = task.plan.views()
        model = None
        if task.system is not None:
            algorithm = task.plan.systems[task.system]
            split_key = digest_of({"split": task.plan.splits[task.split].draw_key})
            rng = generator(
                task.plan.seed, "fit", split_key, task.fold, digest_of(algorithm.draw_key)
            )
            model = algorithm.fit(split.train, rng)
        designs = (
            (
                _judged(task.store, task.data, task.plan, task.split, task.fold, number),
                wanted_metrics(task.plan, views[number]),
            )
            for number, _ in task.todo
        )
        results: Iterable[tuple[pl.DataFrame, Card]]
        if model is None:  # each is kept before the next one is laid, which may not be possible
            results = (
                lists_result(*design, draws=task.plan.draws, seed=task.plan.seed)
                for design in designs
            )
        else:
            results, _ = system_results(
                list(designs), model, USERS, ties=task.plan.ties, seed=task.plan.seed
            )
        for (number, key), (table, card) in zip(task.todo, results, strict=True):
            view = views[number]
            card |= card_of(task.plan, task.data, task.split, task.fold, view, task.system)
            (task.into or task.store).put(key, table, {**card, "label": split.label})
    return [key for _, key in task.todo]


def wanted_metrics(plan: Plan, view: PlanView) -> Measures:
    """Return the metrics by label, as the view's rule for short lists takes them."""
    return _measures(tuple(plan.labelled_metrics.items()), view.targets.shortfall == "forgive")


@lru_cache(maxsize=8)
def _measures(metrics: tuple[tuple[str, Metric], ...], forgive: bool) -> Measures:
    return Measures({label: forgiving(metric) if forgive else metric for label, metric in metrics})


WHEN_CHANGED.append(_measures.cache_clear)


@lru_cache(maxsize=1)
def _ratings(store: Store, data: str) -> Ratings | Events:
    return stored_data(store, data)


# A process works on one split at a time: the one before, and its lists, are given back.
@lru_cache(maxsize=1)
def _split(store: Store, data: str, plan: Plan, split: int, fold: int) -> Split:
    _judged.cache_clear()
    ratings = _ratings(store, data)
    return plan.splits[split].nth(ratings, fold, plan.seed).judging(plan.judged(ratings))


@lru_cache(maxsize=64)
def _judged(store: Store, data: str, plan: Plan, split: int, fold: int, number: int) -> Judged:
    return judged_view(
        plan.views()[number], _split(store, data, plan, split, fold), plan.relevance, plan.seed
    )


def judged_view(view: PlanView, split: Split, relevance: Relevance, seed: int) -> Judged:
    """Return the target lists of a view without systems, laid over the judgments once for all."""
    lists = view.targets.lists(view.apply(split, seed), relevance, seed=seed)
    return Judged.of_lists(lists, {})


def forget() -> None:
    """Give back what this process keeps from task to task."""
    for cache in (_ratings, _split, _judged):
        cache.cache_clear()


def judged_systems(
    designs: Sequence[tuple[Judged, Measures]],
    model: object,
    more: Sequence[RankJob] = (),
    *,
    ties: str,
    seed: int,
) -> tuple[list[Judged], list[Ranking]]:
    """Rank by a model under several designs, for which it scores each user once.

    Parameters are those of `system_results`; the model's name in the results is empty.
    """
    system: Any = {"": model}
    prepared = [
        prepare(judged.with_models(system, ties=ties, seed=seed), metrics)
        for judged, metrics in designs
    ]
    jobs = [judged.job for judged in prepared]
    rankings = rank_designs(model, [*jobs, *more], ties=ties, seed=seed)
    for judged, ranking in zip(prepared, rankings, strict=False):
        judged.ranked_by("", ranking)
    return prepared, rankings[len(jobs) :]


def scored(judged: Judged, metrics: Measures) -> System:
    """Return the values of the one system, list by list."""
    return score(judged.basis, judged.matched, metrics, threads=resolve(None), budget=MEMORY)[""]


def system_results(
    designs: Sequence[tuple[Judged, Measures]],
    model: object,
    averaged: Sequence[str],
    more: Sequence[RankJob] = (),
    *,
    ties: str,
    seed: int,
) -> tuple[list[tuple[pl.DataFrame, Card]], list[Ranking]]:
    """Judge a model under several designs, for which it scores each user once.

    Parameters
    ----------
    designs
        What is ranked, without systems, and metrics by label.
    model
        What was trained.
    averaged
        Of `USERS`: whom means may be taken over; the notes depend on it, no value does.
    more
        What else to rank.
    ties, seed
        How equal scores are ordered.

    Returns
    -------
    tuple
        By design: values list by list, and what is noted of them. And what else was ranked.
    """
    prepared, rankings = judged_systems(designs, model, more, ties=ties, seed=seed)
    results = []
    for judged, (_, metrics) in zip(prepared, designs, strict=True):
        system = scored(judged, metrics)
        notes = {
            users: [note.removeprefix(": ") for note in remarks(judged, metrics, users)]
            for users in averaged
        }
        card = {"aggregates": finite(system.aggregates), "notes": notes}
        results.append((_table(system, metrics), card))
    return results, rankings


def lists_result(
    judged: Judged, metrics: Measures, *, draws: int, seed: int
) -> tuple[pl.DataFrame, Card]:
    """Return what all systems share: the lists, and what chance scores on them."""
    lists = judged.targets
    assert lists is not None
    chance, simulated = chance_scores(judged, metrics, draws=draws, seed=seed)
    columns = list_columns(judged).select("liked", "disliked", "test", "train")
    facts = pl.DataFrame(
        {
            "user": lists.user,
            "anchor": lists.anchor,
            "stratum": lists.stratum,
            "targets": lists.size,
            **columns.to_dict(),
        }
    ).rename(lambda name: f"list {name}")
    card = {
        "aggregates": finite(chance.aggregates),
        "simulated": simulated,
        "notes": list(lists.notes),
        "facts": dict(lists.facts),
        "strata": lists.strata,
    }
    return pl.concat([facts, _table(chance, metrics)], how="horizontal"), card


def _table(system: System, metrics: Measures) -> pl.DataFrame:
    columns: dict[str, Any] = {"depth": np.asarray(system.depth)}
    for row, label in enumerate(metrics.rows):
        columns[label] = system.values[row]
        if row in system.den:
            columns[f"{label}/den"] = system.den[row]
    return pl.DataFrame(columns)


ARRIVAL = 120.0
"""Seconds in which a result that a worker wrote must be seen here."""


class StoredTask(Protocol):
    """A task whose ratings, and whose results, are in a store."""

    @property
    def store(self) -> Store:
        """Where the ratings are, and where results go."""

    @property
    def into(self) -> Store | None:
        """Where results go that must not be kept."""

    @property
    def data(self) -> str:
        """The key of the ratings."""

    @property
    def needs(self) -> Sequence[str]:
        """The keys of results that it reads."""

    def moved(self, store: Store) -> StoredTask:
        """Return the same task with all that it reads and writes in another store."""

    def perform(self) -> Done:
        """Do it."""


def do_stored(executor: Executor, tasks: Sequence[StoredTask]) -> Outcomes:
    """Do tasks of one store and one set of ratings; their results are then in the store of each.

    The result of an outcome is what the task has to say beside.
    """
    if executor.client is not None:
        return _over_store(executor.client, tasks)
    return executor.do(Here(), tasks)


def _over_store(client: Client, tasks: Sequence[StoredTask]) -> Outcomes:
    """Do tasks on a cluster.

    Where all workers see the store they read ratings there and write results there. Else ratings
    are sent once to every worker, and results come back with the outcome of each task.
    """
    if not tasks:
        return
    await_worker(client)
    store = Store(tasks[0].store.home.resolve())  # workers start elsewhere
    # A folder that is about to be removed must not be written by a worker that does not know it.
    is_kept = not is_temporary(store.home) and all(task.into is None for task in tasks)
    with _probe(store) as (path, token):
        if is_kept and _is_seen(client, path, token):
            function = InPlace(str(path), token, str(store.home))
            yield from _taken(client, function, tasks, lambda _, keys: _arrive(store, keys))
            return

    def adopt(task: StoredTask, files: Sequence[tuple[str, bytes]]) -> None:
        for key, content in files:
            (task.into or store).adopt(key, content)

    yield from _taken(client, Apart(_files(store, tasks)), tasks, adopt)


def _taken(
    client: Client,
    function: Callable[[StoredTask], tuple[Any, Any]],
    tasks: Sequence[StoredTask],
    take: Callable[[StoredTask, Any], None],
) -> Outcomes:
    """Do tasks; take what each one stored."""
    with closing(over(client, function, tasks)) as outcomes:
        for outcome in outcomes:
            if outcome.failure is None:
                stored, result = outcome.result
                take(outcome.task, stored)
                yield replace(outcome, result=result)
            else:
                yield outcome


def _files(store: Store, tasks: Sequence[StoredTask]) -> dict[str, bytes]:
    """Return what tasks read, by the names of the files in a store."""
    files = store.frames_files(tasks[0].data)
    for task in tasks:
        for key in task.needs:
            source = task.into or store
            files[str(source.path(key).relative_to(source.home))] = source.content(key)
    return files


@dataclass
class Here:
    """Does tasks in the store that this process sees."""

    def __call__(self, task: StoredTask) -> Any:
        """Do a task; return what it has to say beside what it stored."""
        return task.perform().result

    def forget(self) -> None:
        """Give back what this process keeps from task to task."""
        forget()


@dataclass
class InPlace:
    """Does tasks in the store that all machines share."""

    path: str
    token: str
    folder: str

    def __call__(self, task: StoredTask) -> tuple[Sequence[str], Any]:
        """Do a task; return the keys that it stored, and what it has to say beside."""
        if _read(self.path) != self.token:
            raise ClusterError(
                f"worker {worker_address()} does not see the store {self.folder}, which the "
                "others share; finished work is kept: run again when this worker sees the "
                "store, or without this worker"
            )
        done = task.moved(Store(Path(self.folder))).perform()
        return done.keys, done.result

    def forget(self) -> None:
        """Give back what this worker keeps from task to task."""
        forget()


@dataclass
class Apart:
    """Does tasks in a store that only this worker sees."""

    files: dict[str, bytes] = field(repr=False)
    """What tasks read, by the names of the files in a store."""

    def __call__(self, task: StoredTask) -> tuple[list[tuple[str, bytes]], Any]:
        """Do a task; return what it stored, and what it has to say beside."""
        store = self._store()
        done = task.moved(store).perform()
        stored = [(key, store.content(key)) for key in done.keys]
        for key in done.keys:
            store.path(key).unlink()
        return stored, done.result

    def forget(self) -> None:
        """Give back what this worker keeps from task to task, its store included."""
        forget()
        for folder in _folders:
            folder.cleanup()
        _folders.clear()

    def _store(self) -> Store:
        from distributed import get_worker

        if not _folders:
            folder = tempfile.TemporaryDirectory(
                prefix="unskew-", dir=get_worker().local_directory, ignore_cleanup_errors=True
            )
            store = Store.open(folder.name)
            for name, content in self.files.items():
                path = store.home / name
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_bytes(content)
            self.files = {}
            _folders.append(folder)
        return Store.open(_folders[0].name)


_folders: list[tempfile.TemporaryDirectory[str]] = []
"""The private store of this worker, during one run."""


@contextmanager
def _probe(store: Store) -> Iterator[tuple[Path, str]]:
    """Put something into the store by which another machine can tell that it sees it."""
    token = secrets.token_hex(16)
    final = store.home / ".probe"
    with replacing(final) as path:
        path.write_text(token)
        yield path, token
    final.unlink(missing_ok=True)


def _is_seen(client: Client, path: Path, token: str) -> bool:
    """Return whether every worker reads the probe."""
    seen = client.run(_read, str(path), on_error="return")
    return all(text == token for text in seen.values())


def _read(path: str) -> str | None:
    try:
        return Path(path).read_text()
    except OSError:
        return None


def _arrive(store: Store, keys: Sequence[str]) -> None:
    """Wait until results are seen here: file systems of a network show them a while later."""
    begun = time.monotonic()
    for path in map(store.path, keys):
        while not path.exists():
            if time.monotonic() - begun > ARRIVAL:
                raise StoreError(
                    f"{path}: a worker wrote it {ARRIVAL:.0f} s ago, but it is not visible here; "
                    "run again when the file system works"
                )
            time.sleep(0.05)
