"""`Executor`: the one seam through which tasks run: here, in processes, on a Dask cluster.

Outcomes and their bits are the same on all three sides.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, TypeVar

from unskew.engine.cluster import connect, over, workers_of
from unskew.engine.process_pool import Outcome, Outcomes, ProcessPool, attempt
from unskew.engine.threads import check_fork
from unskew.errors import SettingError

if TYPE_CHECKING:
    from distributed import Client

T = TypeVar("T")


@dataclass(frozen=True)
class Executor:
    """Who does tasks. `executor` makes one for as long as it is needed."""

    workers: int = 1
    """1: this process; more: as many processes side by side."""
    client: Client | None = None
    """Instead: the workers of a Dask cluster."""
    pool: ProcessPool | None = field(default=None, repr=False, compare=False)
    """Processes that stay from one set of tasks to the next; else they end with their tasks."""

    def __post_init__(self) -> None:
        if self.workers < 1:
            raise SettingError(f"workers must be at least 1, got {self.workers}")

    @property
    def is_here(self) -> bool:
        """Whether this process does the tasks itself."""
        return self.workers == 1 and self.client is None

    @property
    def count(self) -> int:
        """How many tasks are done at a time."""
        return self.workers if self.client is None else workers_of(self.client)

    def do(self, function: Callable[[T], Any], tasks: Iterable[T]) -> Outcomes:
        """Do all tasks and yield their outcomes as they come; a failure stops none of the others.

        A store that cannot be read or written is no task's failure: it is raised at once. So are a
        worker of a cluster that is not fit, and a lost scheduler.

        Parameters
        ----------
        function
            A function of a module: other processes must find it. What it carries is sent once to
            every worker. Its method `forget`, if any, gives back what a worker keeps from task to
            task.
        tasks
            Values that can be pickled; likewise sent once to every worker.
        """
        work = list(tasks)
        if self.client is not None:
            yield from over(self.client, function, work)
        elif self.workers == 1 or len(work) < 2:
            for task in work:
                yield Outcome(task, *attempt(function, task))
        elif self.pool is not None:
            yield from self.pool.do(function, work)
        else:
            with ProcessPool(self.workers) as pool:
                yield from pool.do(function, work)

    def rest(self) -> None:
        """Give back what workers hold, where that may take a while before they are needed again."""
        if self.pool is not None:
            self.pool.end()


@contextmanager
def executor(workers: int = 1, cluster: str | Client | None = None) -> Iterator[Executor]:
    """Give who does tasks; what was started for it ends at the end.

    Parameters
    ----------
    workers
        1: this process. More: processes side by side, which share the processors.
    cluster
        Instead: `tcp://host:port`, `local:4`, or a `distributed.Client`, which stays open.

    Examples
    --------
    >>> from unskew.engine.executor import executor
    >>> with executor() as here:
    ...     [outcome.result for outcome in here.do(abs, [-3, 2])]
    [3, 2]
    """
    check_fork()  # before a task meets it: no task is to blame
    alone = Executor(workers)
    if cluster is not None:
        if workers != 1:
            raise SettingError(f"give workers or a cluster, not both; got workers={workers}")
        with connect(cluster) as client:
            yield replace(alone, client=client)
    elif workers == 1:
        yield alone
    else:
        with ProcessPool(workers) as pool:
            yield replace(alone, pool=pool)
