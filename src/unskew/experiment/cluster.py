"""Plans on a Dask cluster, whether or not its workers share the file system of the store."""

from __future__ import annotations

import secrets
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING

from unskew.engine.cluster import ClusterError, await_worker, over, worker_address
from unskew.engine.files import replacing
from unskew.engine.outcomes import Outcomes
from unskew.engine.store import Store, StoreError
from unskew.experiment.task import Task, forget, perform

if TYPE_CHECKING:
    from distributed import Client

ARRIVAL = 120.0
"""Seconds in which a result that a worker wrote must be seen here."""


def over_plan(client: Client, tasks: Sequence[Task], shared: bool = True) -> Outcomes:
    """Do tasks of one plan; whatever the way, their results are then in the store of each.

    Where all workers see the store they read ratings there and write results there. Else ratings
    are sent once to every worker, and results come back with the outcome of each task.

    Parameters
    ----------
    client
        From `connect`.
    tasks
        Of one store and one set of ratings.
    shared
        False: do not even look whether workers see the store. (One that is about to be removed
        must not be written by a worker that does not know it.)
    """
    if not tasks:
        return
    await_worker(client)
    store = Store(tasks[0].store.home.resolve())  # workers start elsewhere
    with _probe(store) as (path, token):
        if shared and _is_seen(client, path, token):
            moved = [replace(task, store=store) for task in tasks]
            with closing(over(client, InPlace(str(path), token), moved)) as outcomes:
                for outcome in outcomes:
                    if outcome.failure is None:
                        _arrive(store, outcome.result)
                    yield outcome
            return
    with closing(over(client, Apart(store.frames_files(tasks[0].data)), tasks)) as outcomes:
        for outcome in outcomes:
            if outcome.failure is None:
                for key, content in outcome.result:
                    (outcome.task.into or store).adopt(key, content)
            yield outcome


@dataclass
class InPlace:
    """Does tasks in the store that all machines share."""

    path: str
    token: str

    def __call__(self, task: Task) -> list[str]:
        """Do a task; return the keys that it stored."""
        if _read(self.path) != self.token:
            raise ClusterError(
                f"worker {worker_address()} does not see the store {task.store.home}, which the "
                "others share; finished work is kept: run again when this worker sees the "
                "store, or without this worker"
            )
        return perform(task)

    def forget(self) -> None:
        """Give back what this worker keeps from task to task."""
        forget()


@dataclass
class Apart:
    """Does tasks in a store that only this worker sees."""

    files: dict[str, bytes] = field(repr=False)
    """The ratings, by the name of their file in a store."""

    def __call__(self, task: Task) -> list[tuple[str, bytes]]:
        """Do a task; return what it stored."""
        store = self._store()
        keys = perform(replace(task, store=store, into=None))
        stored = [(key, store.content(key)) for key in keys]
        for key in keys:
            store.path(key).unlink()
        return stored

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
