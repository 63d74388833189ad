"""Tasks on a Dask cluster, one side of the seam in `execute`: same outcomes, same bits.

`connect` finds the cluster and `over` does tasks there. What all tasks share travels once to every
worker; the scheduler sees numbers only. A task whose worker dies is done again by another, a few
times; workers may come and go. Dask is imported inside: who takes no cluster needs none.
"""

from __future__ import annotations

import itertools
import logging
import os
import secrets
import signal
import time
import traceback
import warnings
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from functools import lru_cache
from typing import TYPE_CHECKING, Any, TypeVar

from unskew.engine.files import temporary_folder
from unskew.engine.process_pool import Outcome, Outcomes, WorkersError, attempt
from unskew.engine.system import node, versions
from unskew.engine.threads import limit, safe_path, usual_path
from unskew.errors import DataWarning, SettingError, UnskewError

if TYPE_CHECKING:
    from distributed import Client, Future

T = TypeVar("T")

PIECE = 32 << 20
"""Bytes of one message: what is larger travels in pieces."""
WINDOW = 4096
"""Tasks that wait at the scheduler at once: each costs it some kilobytes and some of its time."""
PATIENCE = 5.0
"""Seconds without a worker after which that is said."""
CONNECT = 30
"""Seconds in which a scheduler must answer."""


class ClusterError(WorkersError):
    """A cluster that cannot be used, or that was lost."""


@contextmanager
def connect(cluster: str | Client) -> Iterator[Client]:
    """Connect to a cluster and give its client; what was started here ends at the end.

    Every worker that is there is looked at: one thread each, the same versions as here.

    Parameters
    ----------
    cluster
        `local:4`: four worker processes on this machine, for as long as they are needed.
        `tcp://host:port` (or `tls://…`): the scheduler of a cluster that runs already. Or a
        `distributed.Client`, which stays open.

    Examples
    --------
    >>> with connect("local:1") as client:  # doctest: +SKIP
    ...     [outcome.result for outcome in over(client, abs, [-3, 2])]
    [3, 2]
    """
    distributed = _distributed()
    with ExitStack() as stack:
        if isinstance(cluster, distributed.Client):
            if cluster.asynchronous:
                raise SettingError("cluster: the client is asynchronous; make it with Client(…)")
            client = cluster
        elif not isinstance(cluster, str):
            raise SettingError(
                f"cluster must be a text such as 'local:4' or 'tcp://host:8786', or a "
                f"distributed.Client; got {cluster!r}"
            )
        elif cluster.partition(":")[0] == "local":
            client = stack.enter_context(_local(_count(cluster)))
        else:
            client = stack.enter_context(_remote(cluster))
        _look_at_workers(client)
        yield client


def workers_of(client: Client) -> int:
    """Return how many workers a cluster has now."""
    try:
        return len(client.scheduler_info()["workers"])
    except (OSError, ValueError, RuntimeError) as problem:
        raise _lost(client) from problem


def over(client: Client, function: Callable[[T], Any], tasks: Iterable[T]) -> Outcomes:
    """Do all tasks on a cluster and yield their outcomes as they come, as `Executor.do` does.

    A failure stops none of the others. A task whose workers die again and again has failed. A
    store that cannot be read or written, a worker that is not fit and a lost scheduler are raised
    at once; what was finished is kept by who takes the outcomes.

    Parameters
    ----------
    client
        From `connect`.
    function
        A function of a module that workers can import, or of the script itself. What it carries
        (`functools.partial`) is sent once to every worker.
    tasks
        Values that can be pickled; likewise sent once to every worker.
    """
    import cloudpickle
    from distributed import as_completed

    work = list(tasks)
    if not work:
        return
    try:
        parcel = cloudpickle.dumps((function, work))
    except Exception as problem:
        raise SettingError(f"a cluster cannot run these tasks: {problem}") from None
    await_worker(client)  # before: the first to join would be given all that waits
    token = secrets.token_hex(8)
    sent = _send(client, token, parcel)
    del parcel
    ahead = iter(range(len(work)))
    waiting: dict[Any, int] = {}
    done = as_completed(loop=client.loop)
    try:
        while True:
            if len(waiting) <= WINDOW // 2:
                some = list(itertools.islice(ahead, WINDOW - len(waiting)))
                futures = _submit(client, token, sent, some)
                waiting |= {future.key: n for future, n in zip(futures, some, strict=True)}
                done.update(futures)
            if not waiting:
                return
            for future, result in _next(client, done):
                yield Outcome(work[waiting.pop(future.key)], *result)
    finally:
        # On the way out of an error or an interrupt: nothing half-written is ever read, so that
        # running tasks may go on or die.
        if client.status == "running":
            with suppress(OSError, ValueError, RuntimeError):  # the scheduler may be lost as well
                client.cancel([*done.futures, sent], force=True)
                client.run(_forget, token, on_error="ignore")


def _send(client: Client, token: str, parcel: bytes) -> Future:
    """Send bytes to the cluster, whose workers then hand them on to each other.

    As tasks that return what they hold, so that the scheduler can have lost ones made again:
    scattered data would be gone with the worker that holds it. Tasks depend on one whole: with
    many dependencies Dask would not keep them in a queue, from which late workers get their share.
    """
    import dask

    with dask.config.set({"distributed.admin.large-graph-warning-threshold": "1TiB"}):
        pieces = [
            client.submit(_piece, parcel[begin : begin + PIECE], key=(f"unskew-piece-{token}", n))
            for n, begin in enumerate(range(0, len(parcel), PIECE))
        ]
        return client.submit(b"".join, pieces, key=(f"unskew-parcel-{token}", 0))


def _submit(client: Client, token: str, sent: Future, numbers: list[int]) -> list[Future]:
    if not numbers:
        return []
    result: list[Future] = client.map(
        _attempt_there,
        numbers,
        key=[(f"unskew-task-{token}", number) for number in numbers],
        token=token,
        expected=versions(),
        parcel=sent,
    )
    return result


def _next(client: Client, done: Any) -> Iterator[tuple[Future, tuple[Any, str | None]]]:
    """Wait for what is done next, and give its results or the reports of its failure."""
    from distributed import CancelledError

    silent, warned = time.monotonic(), False
    while not (batch := done.next_batch(block=False)):
        time.sleep(0.01)
        if time.monotonic() - silent < PATIENCE or warned:
            continue
        silent = time.monotonic()
        if client.status == "running" and not workers_of(client):
            warned = True
            _warn_of_no_worker(client)
    status = {future: future.status for future in batch}  # once: it changes when a worker dies
    whole = [future for future in batch if status[future] == "finished"]
    if client.status != "running":
        raise _lost(client)
    try:  # all at once: one by one each would wait for its own message
        result = client.gather(whole)
    except UnskewError:  # of a task done again, because its worker took the result with it
        raise
    except (OSError, CancelledError) as problem:
        raise _lost(client) from problem
    except Exception as problem:
        raise ClusterError(f"results were lost in transfer: {problem!r}; run again") from problem
    yield from zip(whole, result, strict=True)
    for future in batch:
        if status[future] == "error":
            yield future, (None, _failure(future))
        elif status[future] == "cancelled":
            raise _lost(client)
        elif status[future] != "finished":  # its worker took the result with it: done again
            done.add(future)


def _failure(future: Future) -> str:
    """Return the report of a task's failure; raise what is no task's failure."""
    from distributed.scheduler import KilledWorker

    problem = future.exception()
    if isinstance(problem, KilledWorker):
        times = problem.allowed_failures + 1
        return (
            f"its workers died {times} times, the last one at {problem.last_worker.address}: "
            "they ran out of memory, or something stopped them; see their logs"
        )
    if isinstance(problem, UnskewError):
        raise problem
    raise ClusterError(f"the cluster could not run a task: {problem!r}") from problem


def _warn_of_no_worker(client: Client) -> None:
    warnings.warn(
        f"the cluster {_address(client)} has no worker; waiting until one joins (Ctrl-C stops; "
        "finished work is kept)",
        DataWarning,
        stacklevel=2,
    )


def _lost(client: Client) -> ClusterError:
    return ClusterError(
        f"the scheduler {_address(client)} was lost; finished work is kept: start it again and "
        "rerun the command"
    )


# Tasks of a plan


def await_worker(client: Client) -> None:
    """Wait for the first worker; where there is none, say so."""
    if workers_of(client):
        return
    _warn_of_no_worker(client)
    client.wait_for_workers(1)
    _look_at_workers(client)


# On a worker


def _piece(content: bytes) -> bytes:
    return content


def _attempt_there(
    number: int, token: str, expected: dict[str, str], parcel: bytes
) -> tuple[Any, str | None]:
    """Do one of the tasks that were sent to this worker."""
    _must_be_fit(tuple(expected.items()))
    function, work = _unpacked(token, parcel)
    return attempt(function, work[number])


_sent: dict[str, tuple[Callable[[Any], Any], list[Any]]] = {}


def _unpacked(token: str, parcel: bytes) -> tuple[Callable[[Any], Any], list[Any]]:
    """Return what was sent; unpacked once, and the one before is given back."""
    if token not in _sent:
        import cloudpickle

        for other in list(_sent):
            _forget(other)
        try:
            _sent[token] = cloudpickle.loads(parcel)
        except Exception as problem:
            raise ClusterError(
                f"worker {worker_address()} cannot read its tasks ({problem!r}): install there "
                f"what the plan's functions need"
            ) from problem
    return _sent[token]


def _forget(token: str) -> None:
    """Give back what this worker keeps from task to task; not what another run is at."""
    if token in _sent:
        function, _ = _sent.pop(token)
        getattr(function, "forget", lambda: None)()


@lru_cache(maxsize=1)
def _must_be_fit(expected: tuple[tuple[str, str], ...]) -> None:
    """Refuse to work where results would differ, as late as workers join."""
    from distributed import get_worker

    wrong = _unfit(worker_address(), _facts(get_worker()), dict(expected))
    if wrong:
        raise ClusterError(wrong)
    limit(1)


def _facts(dask_worker: Any) -> dict[str, Any]:
    """Return what must be right of a worker; its argument's name is Dask's."""
    return {
        "versions": versions(),
        "threads": dask_worker.state.nthreads,
        "process": _process(),
    }


def worker_address() -> str:
    """Return the address of the worker that this runs on."""
    from distributed import get_worker

    return str(get_worker().address)


def _process() -> tuple[str, int]:
    return node(), os.getpid()


# Here


def _unfit(worker: str, facts: dict[str, Any], expected: dict[str, str]) -> str | None:
    """Say what is wrong with a worker, if anything."""
    wrong = [
        f"{name} {facts['versions'].get(name, 'missing')} (here {version})"
        for name, version in expected.items()
        if facts["versions"].get(name) != version
    ]
    if wrong:
        return (
            f"worker {worker} would give other results: it has {', '.join(wrong)}; install the "
            f"same versions there"
        )
    if facts["threads"] != 1:
        return (
            f"worker {worker} runs {facts['threads']} tasks at once; start workers of one thread: "
            f"dask worker --nthreads 1 --nworkers {facts['threads']}"
        )
    return None


def _look_at_workers(client: Client) -> None:
    """Refuse a cluster with a worker that is not fit, before anything is sent."""
    try:
        result = client.run(_facts, on_error="return")
    except (OSError, ValueError, RuntimeError) as problem:
        raise ClusterError(
            f"the cluster {_address(client)} does not answer ({problem!r})"
        ) from problem
    for worker, facts in result.items():
        if isinstance(facts, OSError):  # it is gone, or its connection: others do its tasks
            continue
        if isinstance(facts, BaseException):
            text = "".join(traceback.format_exception_only(facts)).strip()
            raise ClusterError(
                f"worker {worker} cannot load unskew {versions()['unskew']} ({text}); install it "
                f"there, the same version with the same dependencies"
            )
        if facts["process"] == _process():
            raise SettingError(
                "cluster: its workers are threads of this process; make it with processes, such "
                "as LocalCluster(processes=True, threads_per_worker=1)"
            )
        wrong = _unfit(worker, facts, versions())
        if wrong:
            raise ClusterError(wrong)


def _distributed() -> Any:
    try:
        import distributed
    except ImportError:
        raise SettingError(
            "a cluster needs Dask, which is not installed: pip install 'unskew[cluster]'"
        ) from None
    return distributed


def _count(cluster: str) -> int:
    text = cluster.partition(":")[2]
    if not text.isdecimal() or int(text) < 1:
        raise SettingError(f"cluster: give the number of workers, such as local:4; got {cluster!r}")
    return int(text)


@contextmanager
def _local(count: int) -> Iterator[Client]:
    """Start worker processes here; they end with this process, even if it is killed."""
    from distributed import Client, LocalCluster

    with ExitStack() as stack:
        folder = stack.enter_context(temporary_folder())
        stack.enter_context(safe_path())  # until the end: a worker that dies is started again
        started = LocalCluster(
            n_workers=count,
            threads_per_worker=1,
            dashboard_address="127.0.0.1:0",
            worker_dashboard_address=None,
            silence_logs=logging.CRITICAL,
            memory_limit=0,
            local_directory=str(folder),
            preload=[__name__],
        )
        stack.enter_context(started)
        yield stack.enter_context(Client(started, set_as_default=False))


def dask_setup(worker: object) -> None:
    """Prepare a worker of `local:4`, when Dask calls this: an interrupt is for its parent."""
    del worker
    usual_path()
    signal.signal(signal.SIGINT, signal.SIG_IGN)


@contextmanager
def _remote(address: str) -> Iterator[Client]:
    from distributed import Client

    scheme, _, rest = address.partition("://")
    if scheme not in ("tcp", "tls") or not rest.rpartition(":")[2].isdecimal():
        raise SettingError(
            f"cluster: give local:4, or a scheduler's address such as tcp://host:8786 or "
            f"tls://host:8786; got {address!r}"
        )
    try:
        client = Client(address, timeout=CONNECT, set_as_default=False)
    except (OSError, ValueError, TypeError) as problem:
        raise ClusterError(
            f"no Dask scheduler answers at {address} ({problem}); is it running, and is the "
            f"address right ({scheme})?"
        ) from None
    with client:
        yield client


def _address(client: Client) -> str:
    scheduler = getattr(client, "scheduler", None)
    return str(getattr(scheduler, "address", None) or getattr(client, "_start_arg", ""))
