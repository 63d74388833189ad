"""Tasks that read ratings from a store and put results there: here, in processes, on a cluster.

The workers of a Dask cluster may or may not share the file system of the store.
"""

from __future__ import annotations

import secrets
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from unskew.engine.cluster import ClusterError, await_worker, over, worker_address
from unskew.engine.execute import Executor
from unskew.engine.files import is_temporary, replacing
from unskew.engine.outcomes import Outcomes
from unskew.engine.store import Store, StoreError
from unskew.experiment.task import Done, forget

if TYPE_CHECKING:
    from distributed import Client

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
    home: str

    def __call__(self, task: StoredTask) -> tuple[Sequence[str], Any]:
        """Do a task; return the keys that it stored, and what it has to say beside."""
        if _read(self.path) != self.token:
            raise ClusterError(
                f"worker {worker_address()} does not see the store {self.home}, which the "
                "others share; finished work is kept: run again when this worker sees the "
                "store, or without this worker"
            )
        done = task.moved(Store(Path(self.home))).perform()
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
