"""Plans on a Dask cluster: same bits, workers that die or come late, a scheduler that is lost.

A real scheduler and real workers on loopback, each a process of its own.
"""

import json
import os
import platform
import signal
import subprocess
import sys
import time
from functools import partial
from pathlib import Path

import pytest

import unskew as us
from shared import ROOT
from shared.plans import PLAN, WORLD, broken, contents, drawn, results
from unskew import DataError, Plan, SettingError
from unskew.data.dataset import data_key, put_data
from unskew.engine import cluster as dask_side
from unskew.engine.cluster import ClusterError, connect, over
from unskew.engine.executor import Executor
from unskew.engine.store import Store, StoreError
from unskew.engine.system import versions
from unskew.errors import DataWarning
from unskew.experiment import task as cluster
from unskew.experiment.execution import tasks_of
from unskew.experiment.task import Apart, InPlace, do_stored

pytest.importorskip("distributed", reason="needs distributed: pip install 'unskew[cluster]'")

WAIT = 60
"""Seconds after which a test gives up: machines may be busy."""
TOML = """
seed = 3
metrics = ["P@5"]
[data]
file = "ratings.csv"
[[split]]
protocol = "random"
folds = 20
[[targets]]
design = "test-items"
[[algorithm]]
name = "popularity"
"""


class Farm:
    """A scheduler and workers on loopback."""

    def __init__(self, home):
        self.home = home
        self.workers = []
        self.started = 0
        file = home / "scheduler.json"
        # Without --port 0 two schedulers of two test processes would meet.
        self.scheduler = self.begin(
            "dask_scheduler",
            "--host",
            "127.0.0.1",
            "--port",
            "0",
            "--no-dashboard",
            "--no-show",
            "--scheduler-file",
            file,
            "--idle-timeout",
            "600 s",
        )
        until(lambda: file.exists() and file.read_text().rstrip().endswith("}"))
        self.address = json.loads(file.read_text())["address"]

    def begin(self, command, *arguments):
        # Workers import the functions of this file and of tests/shared.
        folders = [str(Path(__file__).parent), str(ROOT / "tests"), os.environ.get("PYTHONPATH")]
        path = os.pathsep.join(filter(None, folders))
        self.started += 1
        with (self.home / f"{command}-{self.started}.log").open("wb") as log:
            return subprocess.Popen(
                [sys.executable, "-m", f"distributed.cli.{command}", *map(str, arguments)],
                stdout=log,
                stderr=log,
                cwd=self.home,
                env=os.environ | {"PYTHONPATH": path},
            )

    def add(self):
        """Start a worker, and do not wait until it has joined."""
        one = self.begin(
            "dask_worker",
            self.address,
            "--nthreads",
            "1",
            "--no-nanny",
            "--no-dashboard",
            "--local-directory",
            self.home / "scratch",
            "--death-timeout",
            "60",
        )
        self.workers.append(one)

    def have(self, count):
        """Have this many workers: start what lacks, end what is too much."""
        self.workers = [one for one in self.workers if one.poll() is None]
        while len(self.workers) > count:
            end(self.workers.pop())
        while len(self.workers) < count:
            self.add()
        with distributed_client(self.address) as client:
            until(lambda: len(client.scheduler_info()["workers"]) == count)
        return self

    def stop(self):
        for one in [*self.workers, self.scheduler]:
            end(one)


def end(process, how=signal.SIGKILL):
    process.send_signal(how)
    process.wait(WAIT)


def distributed_client(address):
    from distributed import Client

    return Client(address, timeout=WAIT, set_as_default=False)


def until(true):
    begun = time.monotonic()
    while not true():
        assert time.monotonic() - begun < WAIT
        time.sleep(0.05)


@pytest.fixture(scope="module")
def farm(tmp_path_factory):
    started = Farm(tmp_path_factory.mktemp("farm"))
    yield started
    started.stop()
    assert all(one.poll() is not None for one in [*started.workers, started.scheduler])


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory):
    """Return the files of the plan as one process makes them, and its table."""
    home = tmp_path_factory.mktemp("undisturbed") / "store"
    done = us.run_plan(WORLD, PLAN, store=home)
    return contents(home), done.table()


# What workers do: they import it from here


def square(number):
    return number * number


def plus(bonus, number):
    return bonus["more"] + number


def odd_fails(number):
    if number % 2:
        raise ValueError(f"{number} is odd")
    return number


def full_disk(number):
    raise StoreError("no room for anything")


def kill_the_worker(number):
    os.kill(os.getpid(), signal.SIGKILL)


def meet(folder):
    """Return who does this, when two are at it."""
    (Path(folder) / str(os.getpid())).touch()
    until(lambda: len(list(Path(folder).iterdir())) >= 2)
    return os.getpid()


def linger(seconds):
    time.sleep(seconds)
    return seconds


def pretend(version):
    platform.python_version = lambda: version
    dask_side._must_be_fit.cache_clear()


def held():
    """Return what a worker keeps from task to task, and which stores of its own it has."""
    from unskew.experiment import task

    kept = [task._ratings, task._split, task._judged]
    return (
        [one.cache_info().currsize for one in kept],
        len(dask_side._sent),
        len(cluster._folders),
    )


# The seam


def test_outcomes_are_those_of_execute(farm):
    farm.have(2)
    with connect(farm.address) as client:
        assert sorted(one.result for one in over(client, square, range(9))) == [
            n * n for n in range(9)
        ]
        assert list(over(client, square, [])) == []
        told = {one.task: one for one in over(client, odd_fails, range(4))}
        assert [told[n].result for n in range(4)] == [0, None, 2, None]
        assert told[2].failure is None
        assert "ValueError: 1 is odd" in told[1].failure
        assert "odd_fails" in told[1].failure  # says where
        with pytest.raises(StoreError, match="no room"):
            list(over(client, full_disk, range(3)))
        doubled = over(client, lambda n: 2 * n, [1, 2])  # of a script or a notebook
        assert sorted(one.result for one in doubled) == [2, 4]


def test_what_is_large_travels_in_pieces_and_many_tasks_in_turns(farm, monkeypatch):
    farm.have(2)
    monkeypatch.setattr(dask_side, "PIECE", 1000)
    monkeypatch.setattr(dask_side, "WINDOW", 4)
    carried = partial(plus, {"more": 5, "ballast": os.urandom(10_500)})
    with connect(farm.address) as client:
        seen = {one.task: one.result for one in over(client, carried, range(30))}
        assert seen == {n: n + 5 for n in range(30)}
        until(lambda: client.run_on_scheduler(tasks_left) == 0)


def tasks_left(dask_scheduler):
    return sum("unskew-" in str(key) for key in dask_scheduler.tasks)


def test_what_cannot_travel_is_refused(farm):
    farm.have(2)
    with (
        connect(farm.address) as client,
        pytest.raises(SettingError, match="a cluster cannot run these tasks"),
    ):
        list(over(client, square, [(n for n in range(3))]))


def test_who_stops_early_leaves_nothing_behind(farm):
    farm.have(2)
    with connect(farm.address) as client:
        outcomes = over(client, linger, [0.01] * 3 + [0.2] * 60)
        assert next(outcomes).result == 0.01
        outcomes.close()
        until(lambda: client.run_on_scheduler(tasks_left) == 0)
        assert [one.result for one in over(client, square, [3])] == [9]


# Same bits


def test_same_bits_in_a_shared_store(farm, undisturbed, tmp_path, monkeypatch):
    """Two workers read and write the store; only keys come back."""
    farm.have(2)
    monkeypatch.setattr(Store, "adopt", None)
    monkeypatch.chdir(tmp_path)  # a relative path, for workers that are elsewhere
    with connect(farm.address) as client:
        done = us.run_plan(WORLD, PLAN, store="s", cluster=client)
        assert contents("s") == undisturbed[0]
        assert done.table().equals(undisturbed[1])
        assert Store.open("s").verify() == []
        assert not list(Path("s").glob(".probe*"))
        until(lambda: all(kept == ([0, 0, 0], 0, 0) for kept in client.run(held).values()))
    seen = []
    us.run_plan(WORLD, PLAN, store="s", cluster=farm.address, progress=seen.append)
    assert seen == []


def test_same_bits_where_workers_do_not_see_the_store(farm, undisturbed, tmp_path, monkeypatch):
    farm.have(2)
    seen = cluster._is_seen

    def hidden(client, path, token):
        return seen(client, path.with_name("elsewhere"), token)

    monkeypatch.setattr(cluster, "_is_seen", hidden)
    monkeypatch.setattr(cluster, "InPlace", None)
    with connect(farm.address) as client:
        us.run_plan(WORLD, PLAN, store=tmp_path / "s", cluster=client)
        assert contents(tmp_path / "s") == undisturbed[0]
        assert Store.open(tmp_path / "s").verify() == []
        until(lambda: all(kept == ([0, 0, 0], 0, 0) for kept in client.run(held).values()))
    assert not list((farm.home / "scratch").rglob("*.result"))
    assert not list((farm.home / "scratch").rglob("*.arrow"))


@pytest.mark.slow
def test_same_bits_without_a_store_and_with_one_worker(farm, undisturbed):
    farm.have(1)
    assert us.run_plan(WORLD, PLAN, cluster=farm.address).table().equals(undisturbed[1])


def test_functions_of_ones_own(farm, tmp_path):
    """With a version they are kept; without, they come back and are not."""
    farm.have(1)
    systems = [
        us.experiment.Custom("kept", drawn, version=1),
        us.experiment.Custom("not kept", drawn),
    ]
    settings = {
        "split": us.splits.Random(folds=2),
        "targets": us.targets.TestItems(),
        "metrics": ["P@5"],
    }
    plan = Plan(algorithms=systems, **settings)
    there = us.run_plan(WORLD, plan, store=tmp_path / "s", cluster=farm.address)
    assert there.table().equals(us.run_plan(WORLD, plan).table())
    assert len(results(tmp_path / "s")) == 4  # lists and the one with a version, two folds

    flat = Plan(
        algorithms=[us.experiment.Custom("λ", lambda train, rng: drawn(train, rng))], **settings
    )
    assert us.run_plan(WORLD, flat, cluster=farm.address).table().height == 2


def test_a_failed_task(farm, tmp_path):
    farm.have(1)
    plan = Plan(
        us.splits.Random(folds=2),
        us.targets.TestItems(),
        seed=3,
        metrics=["P@5"],
        algorithms=[us.recommend.Popularity(), us.experiment.Custom("broken", broken, version=1)],
    )
    where = {"store": tmp_path / "s", "cluster": farm.address}
    done = us.run_plan(WORLD, plan, keep_going=True, **where)
    assert set(done.failures) == {"broken on random, split 1", "broken on random, split 2"}
    assert "this one never works" in next(iter(done.failures.values()))
    assert len(results(tmp_path / "s")) == 4
    with pytest.raises(DataError, match="in an earlier run"):
        us.run_plan(WORLD, plan, **where)
    with pytest.raises(DataError, match="this one never works"):
        us.run_plan(WORLD, plan, retry_failed=True, **where)


# What goes wrong


def test_a_killed_worker_changes_nothing(farm, undisturbed, tmp_path):
    farm.have(2)
    victim = farm.workers[-1]

    def kill(progress):
        if victim.poll() is None:
            end(victim)

    us.run_plan(WORLD, PLAN, store=tmp_path / "s", cluster=farm.address, progress=kill)
    assert victim.poll() is not None
    assert contents(tmp_path / "s") == undisturbed[0]


@pytest.mark.slow
def test_a_killed_worker_changes_nothing_where_results_come_back(farm, undisturbed):
    """What it was sent, and results that it held, are sent and done again."""
    farm.have(2)
    victim = farm.workers[0]

    def kill(progress):
        if progress.done == 4 and victim.poll() is None:
            end(victim)

    done = us.run_plan(WORLD, PLAN, cluster=farm.address, progress=kill)
    assert victim.poll() is not None
    assert done.table().equals(undisturbed[1])


def test_a_task_that_kills_its_workers_has_failed(farm):
    farm.have(2)

    def allow(dask_scheduler, failures):
        dask_scheduler.allowed_failures = failures

    with connect(farm.address) as client:
        client.run_on_scheduler(allow, failures=1)
        (told,) = over(client, kill_the_worker, [1])
        client.run_on_scheduler(allow, failures=3)
    assert told.result is None
    assert "died 2 times, the last one at tcp://127.0.0.1" in told.failure
    assert all(one.poll() is not None for one in farm.workers)


def test_workers_may_join_late(farm, tmp_path):
    """None at first, which is said; then two, which share the work."""
    farm.have(0)
    with connect(farm.address) as client:
        farm.add()
        outcomes = over(client, meet, [str(tmp_path)] * 5)
        farm.add()
        with pytest.warns(DataWarning, match="has no worker; waiting until one joins"):
            pids = {one.result for one in outcomes}
    assert len(pids) == 2


@pytest.mark.slow
def test_a_plan_waits_for_its_first_worker(farm, undisturbed):
    farm.have(0)
    farm.add()
    with pytest.warns(DataWarning, match="has no worker"):
        done = us.run_plan(WORLD, PLAN, cluster=farm.address)
    assert done.table().equals(undisturbed[1])


def test_a_lost_scheduler_is_said_and_the_run_goes_on_later(undisturbed, tmp_path):
    (tmp_path / "farm").mkdir()
    farm = Farm(tmp_path / "farm")
    try:
        farm.have(1)
        with (
            pytest.raises(ClusterError, match=r"scheduler tcp://.* was lost; finished work"),
            connect(farm.address) as client,
        ):
            us.run_plan(
                WORLD,
                PLAN,
                store=tmp_path / "s",
                cluster=client,
                progress=lambda _: end(farm.scheduler),
            )
    finally:
        farm.stop()
    kept = contents(tmp_path / "s")
    assert 0 < len(kept) < len(undisturbed[0])
    assert kept.items() <= undisturbed[0].items()
    us.run_plan(WORLD, PLAN, store=tmp_path / "s")
    assert contents(tmp_path / "s") == undisturbed[0]


HOW = [signal.SIGINT, pytest.param(signal.SIGKILL, marks=pytest.mark.slow)]


@pytest.mark.parametrize("how", HOW, ids=["Ctrl-C", "killed"])
def test_a_stopped_command_leaves_no_process(how, tmp_path):
    many = f"[[algorithm]]\nname = 'user-knn'\nk = {list(range(1, 60))}\n"
    (tmp_path / "plan.toml").write_text(TOML + many)
    WORLD.to_polars().write_csv(tmp_path / "ratings.csv")
    command = [sys.executable, "-m", "unskew", "run", str(tmp_path / "plan.toml")]
    store = tmp_path / "s"
    # What is started in the background of a shell ignores Ctrl-C, and so would the command.
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    process = subprocess.Popen(
        [*command, "--store", str(store), "--cluster", "local:2"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    signal.signal(signal.SIGINT, before)
    try:
        until(lambda: len(results(store)) > 3 or process.poll() is not None)
        assert process.poll() is None, process.communicate()[1]
        assert len(session(process.pid)) > 2
        if how == signal.SIGINT:
            os.killpg(process.pid, how)  # as a terminal does
        else:
            process.send_signal(how)
        said = process.communicate(timeout=WAIT)[1]
        assert process.returncode == (130 if how == signal.SIGINT else -how)
        assert "Traceback" not in said
        until(lambda: session(process.pid) == [])
    finally:
        for pid in session(process.pid):
            os.kill(pid, signal.SIGKILL)
    assert [line for line in Store.open(store).verify() if "stopped writer" not in line] == []


def session(number):
    """Return the living processes of a session."""
    found = []
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = path.read_text().rpartition(")")[2].split()
        except OSError:
            continue
        if int(fields[3]) == number and fields[0] != "Z":
            found.append(int(path.parent.name))
    return found


# Workers that are not fit


def test_workers_of_other_versions_are_refused(farm, tmp_path):
    farm.have(1)
    with distributed_client(farm.address) as client:
        client.run(pretend, "3.0.1")
        try:
            with (
                pytest.raises(ClusterError, match=r"worker tcp://.* it has python 3\.0\.1 \(here"),
                connect(farm.address),
            ):
                pass
            with pytest.raises(ClusterError, match=r"python 3\.0\.1"):  # who joined since
                list(over(client, square, [1]))
            assert list(over(client, square, [])) == []
        finally:
            client.run(pretend, platform.python_version())
        assert [one.result for one in over(client, square, [4])] == [16]


def test_what_makes_a_worker_unfit():
    good = {"versions": versions(), "threads": 1}
    assert dask_side._unfit("w", good, versions()) is None
    other = good | {"versions": versions() | {"numpy": "1.0"}}
    assert "worker w would give other results: it has numpy 1.0 (here" in dask_side._unfit(
        "w", other, versions()
    )
    none = good | {"versions": {}}
    assert "unskew missing" in dask_side._unfit("w", none, versions())
    assert "--nthreads 1 --nworkers 8" in dask_side._unfit("w", good | {"threads": 8}, versions())


class Told:
    """A client whose workers say what they are told to."""

    status = "running"

    def __init__(self, answers):
        self.answers = answers

    def run(self, function, *arguments, on_error):
        if isinstance(self.answers, Exception):
            raise self.answers
        return self.answers


def test_a_worker_without_unskew():
    answers = {"tcp://a:1": ModuleNotFoundError("No module named 'unskew'")}
    with pytest.raises(ClusterError, match=r"worker tcp://a:1 cannot load unskew .*No module"):
        dask_side._look_at_workers(Told(answers))
    with pytest.raises(ClusterError, match="does not answer"):
        dask_side._look_at_workers(Told(OSError("gone")))
    dask_side._look_at_workers(Told({"tcp://a:1": OSError("this one died")}))


def test_a_store_is_shared_when_every_worker_reads_the_probe(tmp_path):
    store = Store.open(tmp_path / "s")
    with cluster._probe(store) as (path, token):
        assert store.verify() == []
        assert cluster._read(str(path)) == token
        assert cluster._is_seen(Told({"a": token, "b": token}), path, token)
        assert not cluster._is_seen(Told({"a": token, "b": None}), path, token)
        assert not cluster._is_seen(Told({"a": "of a copy of the store"}), path, token)
        assert not cluster._is_seen(Told({"a": OSError()}), path, token)
    assert cluster._read(str(path)) is None
    assert sorted(one.name for one in store.home.iterdir()) == ["unskew-store.json"]


def test_a_late_worker_that_does_not_see_the_store(tmp_path, monkeypatch):
    monkeypatch.setattr(cluster, "worker_address", lambda: "tcp://late:1")
    store = Store.open(tmp_path / "s")
    task = tasks_of(PLAN, WORLD, put_data(store, WORLD), store)[0]
    with pytest.raises(ClusterError, match="worker tcp://late:1 does not see the store"):
        InPlace(str(tmp_path / "nowhere"), "token", str(store.home))(task)
    (tmp_path / "probe").write_text("token")
    there = InPlace(str(tmp_path / "probe"), "token", str(store.home))
    assert there(task) == ([key for _, key in task.todo], None)


def test_results_that_are_late_to_be_seen(tmp_path, monkeypatch):
    monkeypatch.setattr(cluster, "ARRIVAL", 0.2)
    store = Store.open(tmp_path / "s")
    cluster._arrive(store, [])
    with pytest.raises(StoreError, match=r"a worker wrote it .* not visible here"):
        cluster._arrive(store, ["ab" * 20])

    def write(seconds):
        store.path("ab" * 20).parent.mkdir(parents=True)
        store.path("ab" * 20).touch()

    monkeypatch.setattr(time, "sleep", write)
    cluster._arrive(store, ["ab" * 20])


def test_a_result_from_elsewhere_is_checked(tmp_path, undisturbed):
    store = Store.open(tmp_path / "s")
    name, content = next(iter(undisturbed[0].items()))
    key = name.removesuffix(".result")
    for wrong in (content[:-1], content + b"x", b"", content.replace(b"unskew", b"unskow", 1)):
        with pytest.raises(StoreError, match="damaged"):
            store.adopt(key, wrong)
    with pytest.raises(StoreError, match="damaged"):
        store.adopt("ab" * 20, content)
    assert contents(store.home) == {}
    store.adopt(key, content)
    assert store.has(key)
    assert store.content(key) == content
    with pytest.raises(StoreError, match="cannot be read"):
        store.frames_files(data_key(WORLD))
    assert "ratings.arrow" not in repr(Apart({"ratings.arrow": b"x"}))


# Arguments


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ("local", "give the number of workers"),
        ("local:0", "give the number of workers"),
        ("local:two", "give the number of workers"),
        ("localhost:8786", "give local:4, or a scheduler's address"),
        ("tcp://host", "give local:4, or a scheduler's address"),
        ("ws://host:8786", "give local:4, or a scheduler's address"),
        (4, "cluster must be a text"),
    ],
)
def test_clusters_that_are_none(given, said):
    with pytest.raises(SettingError, match=said), connect(given):
        pass


def test_nobody_answers(monkeypatch, call, tmp_path):
    monkeypatch.setattr(dask_side, "CONNECT", 0.5)
    (tmp_path / "plan.toml").write_text(TOML)
    WORLD.to_polars().write_csv(tmp_path / "ratings.csv")
    code, out, error = call("run", tmp_path / "plan.toml", "--cluster", "tcp://127.0.0.1:9")
    assert (code, out) == (1, "")
    assert "error: no Dask scheduler answers at tcp://127.0.0.1:9" in error


def test_clients_that_cannot_be_used():
    from distributed import Client, LocalCluster

    with (
        LocalCluster(
            n_workers=1,
            threads_per_worker=1,
            processes=False,
            dashboard_address=":0",
            worker_dashboard_address=None,
        ) as inside,
        Client(inside, set_as_default=False) as client,
        pytest.raises(SettingError, match="threads of this process"),
        connect(client),
    ):
        pass


def test_workers_or_a_cluster(call, tmp_path):
    with pytest.raises(SettingError, match="workers or a cluster, not both; got workers=2"):
        us.run_plan(WORLD, PLAN, workers=2, cluster="local:2")
    (tmp_path / "plan.toml").write_text(TOML)
    code, _, error = call("run", tmp_path / "plan.toml", "--workers", "2", "--cluster", "local:2")
    assert code == 2
    assert "--workers or --cluster, not both" in error


def test_the_command(farm, call, tmp_path):
    farm.have(1)
    plan = tmp_path / "plan.toml"
    plan.write_text(TOML)
    WORLD.to_polars().write_csv(tmp_path / "ratings.csv")
    code, here, _ = call("run", plan, "--format", "csv")
    assert code == 0
    code, there, error = call("run", plan, "--format", "csv", "--cluster", farm.address)
    assert (code, there) == (0, here), error


def test_without_dask(monkeypatch, call, tmp_path):
    (tmp_path / "plan.toml").write_text(TOML)
    WORLD.to_polars().write_csv(tmp_path / "ratings.csv")
    monkeypatch.setitem(sys.modules, "distributed", None)
    code, out, error = call("run", tmp_path / "plan.toml", "--cluster", "local:2")
    assert (code, out) == (2, "")
    assert "pip install 'unskew[cluster]'" in error


def test_dask_is_loaded_only_when_asked_for():
    code = "import sys, unskew; unskew.run_plan; print({'dask', 'distributed'} & set(sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "set()"


def test_no_tasks_need_no_worker():
    assert list(do_stored(Executor(client="none"), [])) == []
