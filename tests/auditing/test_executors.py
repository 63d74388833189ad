"""One executor everywhere: serial, processes and a Dask cluster give the same bytes.

One cluster of two worker processes serves all tests of this file.
"""

import json
import os
import signal
import subprocess
import sys
import threading
import time
from contextlib import ExitStack, closing
from pathlib import Path

import pytest

import unskew as us
from shared import ROOT
from shared.plans import contents, results
from shared.worker_tasks import dies_once, fails, process_of, wait_for
from unskew.auditing.audit import audit
from unskew.auditing.core.workers import SharedJob, _longest_first
from unskew.auditing.truth.tasks import TruthJob, TruthTask
from unskew.engine.cluster import ClusterError, connect
from unskew.engine.executor import Executor, executor
from unskew.engine.process_pool import ProcessPool, WorkersError
from unskew.errors import DataError, DataWarning, SettingError
from unskew.experiment import task as stored_tasks

pytest.importorskip("distributed", reason="needs distributed: pip install 'unskew[cluster]'")

SHOP = us.world("shop", users=80, items=40, seed=3)
AUDIT = {
    "plan": "quick",
    "algorithms": ["random", "popularity", "item-knn"],
    "designs": ["all-items", "1r", "skew"],
    "repeats": 2,
    "permutations": 200,
    "seed": 2,
}
PLAN = us.Plan(
    us.splits.Random(folds=2),
    us.targets.AllItems(),
    [us.recommend.Random(), us.recommend.Popularity(), us.recommend.UserKNN(k=5)],
    us.Relevance(liked=4),
    ["P@5", "anti-P@5", "nDCG@5"],
    seed=4,
)
ONE_SPLIT = us.Plan(
    us.splits.Random(test=0.3),
    us.targets.AllItems(),
    [us.recommend.Popularity(), us.recommend.Random(), us.recommend.UserKNN(k=5)],
    us.Relevance(liked=4),
    ["P@5", "Recall@5"],
    interventions=[us.splits.Full(), us.splits.Wtd()],
    seed=4,
)
BOTH = {"workers": 2, "cluster": "local:2"}


@pytest.fixture(scope="module")
def client():
    # Workers import the functions of this file and of tests/shared.
    folders = [str(Path(__file__).parent), str(ROOT / "tests"), os.environ.get("PYTHONPATH")]
    before, path = os.environ.get("PYTHONPATH"), os.pathsep.join(filter(None, folders))
    os.environ["PYTHONPATH"] = path
    with ExitStack() as stack:
        stack.callback(_restore, before)
        yield stack.enter_context(connect("local:2"))


def _restore(before):
    if before is None:
        os.environ.pop("PYTHONPATH")
    else:
        os.environ["PYTHONPATH"] = before


def document(result, folder):
    """Return everything that an audit says, as bytes: its content and its report."""
    path = folder / "report.html"
    us.report.save_report(result, path)
    return json.dumps(result.to_dict()).encode() + path.read_bytes()


@pytest.fixture(scope="module")
def serial(tmp_path_factory):
    """Return the audit as one process makes it, and the files of its store."""
    folder = tmp_path_factory.mktemp("serial")
    result = audit(SHOP, store=folder / "s", **AUDIT)
    return document(result, folder), contents(folder / "s")


# The audit


def test_an_audit_by_processes(serial, tmp_path):
    result = audit(SHOP, store=tmp_path / "s", workers=2, **AUDIT)
    assert document(result, tmp_path) == serial[0]
    assert contents(tmp_path / "s") == serial[1]


def test_an_audit_on_a_cluster_that_sees_the_store(serial, client, tmp_path, monkeypatch):
    monkeypatch.setattr(stored_tasks, "Apart", None)
    steps = []

    def note(stage, done, total):
        steps.append((stage, done, total))

    result = audit(SHOP, store=tmp_path / "s", cluster=client, progress=note, **AUDIT)
    assert document(result, tmp_path) == serial[0]
    assert contents(tmp_path / "s") == serial[1]
    done = [step for step in steps if step[0] == "designs"]
    assert [step[1] for step in done] == list(range(done[0][2] + 1))  # one by one, to the end


def test_an_audit_on_a_cluster_that_sees_no_store(serial, client, tmp_path, monkeypatch):
    """Results come back; what an earlier run finished is sent where it is needed, not redone."""
    monkeypatch.setattr(stored_tasks, "InPlace", None)
    monkeypatch.setattr(stored_tasks, "_is_seen", lambda *_: False)
    audit(SHOP, store=tmp_path / "s", **AUDIT)
    kept = {}
    for path in results(tmp_path / "s"):  # settings that were chosen stay, what follows is gone
        if b'"edges"' in path.read_bytes():
            kept[path] = path.stat().st_mtime_ns
        else:
            path.unlink()
    assert kept
    result = audit(SHOP, store=tmp_path / "s", cluster=client, **AUDIT)
    assert document(result, tmp_path) == serial[0]
    assert contents(tmp_path / "s") == serial[1]
    assert {path: path.stat().st_mtime_ns for path in kept} == kept


def test_an_audit_on_a_cluster_that_keeps_nothing(serial, client, tmp_path):
    assert document(audit(SHOP, cluster=client, **AUDIT), tmp_path) == serial[0]


@pytest.mark.slow
def test_a_worker_killed_amid_an_audit_costs_its_task_alone(serial, client, tmp_path):
    before = {}

    def kill(stage, done, _total):
        if (stage, done) == ("designs", 3):
            pids = list(client.run(os.getpid).values())
            before.update({path: path.stat().st_mtime_ns for path in results(tmp_path / "s")})
            os.kill(pids[0], signal.SIGKILL)

    result = audit(SHOP, store=tmp_path / "s", cluster=client, progress=kill, **AUDIT)
    assert before
    assert {path: path.stat().st_mtime_ns for path in before} == before  # nothing was done again
    assert document(result, tmp_path) == serial[0]
    assert contents(tmp_path / "s") == serial[1]
    client.wait_for_workers(2, timeout=60)


@pytest.mark.slow
def test_a_lost_scheduler_ends_an_audit_that_goes_on_later(serial, tmp_path):
    """Also amid the null experiment, which data alone may make impossible."""
    from distributed import Client, LocalCluster

    for stage in ("designs", "null experiment"):
        store = tmp_path / stage.replace(" ", "-")
        with LocalCluster(
            n_workers=1,
            threads_per_worker=1,
            dashboard_address=None,
            worker_dashboard_address=None,
        ) as started:
            client = Client(started, set_as_default=False)

            def lose(at, done, _total, stage=stage, client=client):
                if at == stage and done == 1:
                    client.close()

            with pytest.raises(ClusterError, match=r"the scheduler .* was lost; finished work"):
                audit(SHOP, store=store, cluster=client, progress=lose, **AUDIT)
        kept = contents(store)
        assert kept
        assert kept.items() <= serial[1].items()
        result = audit(SHOP, store=store, **AUDIT)
        assert document(result, tmp_path) == serial[0]
        assert contents(store) == serial[1]


SCRIPT = """
import json, sys
import numpy as np
import unskew as us

class Mine(us.recommend.Algorithm):
    name = "mine"
    def learn(self, train, rng):
        return rng.random((len(train.users), len(train.items)))

if __name__ == "__main__":
    shop = us.world("shop", users=60, items=40, seed=3)
    systems = {"mine": Mine(), "popularity": us.recommend.Popularity()}
    for settings in ({}, {"workers": 2}, {"cluster": "local:2"}):
        made = us.audit(shop, "quick", algorithms=systems, designs=["all-items", "1r"], repeats=2,
                        permutations=200, tune=False, **settings)
        print(json.dumps(made.to_dict(), sort_keys=True))
"""


@pytest.mark.slow
def test_an_algorithm_of_a_script(tmp_path):
    script = tmp_path / "script.py"
    script.write_text(SCRIPT)
    done = subprocess.run(
        [sys.executable, str(script)], capture_output=True, text=True, timeout=300, check=False
    )
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    assert len(lines) == 3
    assert len(set(lines)) == 1


def settings_of_ones_own():
    class Local(us.recommend.Algorithm):
        name = "local"

        def learn(self, train, rng):
            return us.recommend.Popularity().fit(train, rng)

    return {**AUDIT, "algorithms": {"mine": Local(), "random": us.recommend.Random()}}


def test_algorithms_that_cannot_travel():
    with pytest.raises(SettingError, match=r"mine: several workers cannot share.*one worker"):
        audit(SHOP, workers=2, **settings_of_ones_own())


@pytest.mark.slow
def test_a_cluster_takes_algorithms_that_workers_cannot_share(client):
    settings = settings_of_ones_own()
    assert audit(SHOP, cluster=client, **settings).to_dict() == audit(SHOP, **settings).to_dict()


# The other commands


EXECUTORS = ["cluster", pytest.param("processes", marks=pytest.mark.slow)]
"""An audit by processes above does all of these; each alone by processes is slow."""


@pytest.fixture(params=EXECUTORS)
def elsewhere(request):
    """Return the arguments that let others do the work."""
    if request.param == "processes":
        return {"workers": 2}
    return {"cluster": request.getfixturevalue("client")}


def same(function, elsewhere):
    """Check that processes or a cluster give what one process gives; return that."""
    alone = function()
    assert json.dumps(function(**elsewhere).to_dict()) == json.dumps(alone.to_dict())
    return alone


def test_null_experiment(elsewhere, tmp_path):
    def run(**settings):
        return us.auditing.null_experiment(SHOP.ratings, PLAN, repeats=2, **settings)

    alone = same(run, elsewhere)
    assert alone.table().height
    stored = run(store=tmp_path / "s", **elsewhere)
    assert json.dumps(stored.to_dict()) == json.dumps(alone.to_dict())
    assert results(tmp_path / "s")


@pytest.mark.parametrize("plan", [PLAN, ONE_SPLIT], ids=["two splits", "one split"])
def test_truth(elsewhere, plan):
    def run(**settings):
        return us.auditing.truth(SHOP, plan, resamples=50, **settings)

    alone = same(run, elsewhere)
    there = run(**elsewhere)
    assert there.card == alone.card
    assert there.to_dict() == alone.to_dict()


def test_splits_of_the_truth_are_drawn_in_any_order():
    from unskew.auditing.truth.sources import source_of

    job = TruthJob(source_of(SHOP, None, None, None, "to-training", PLAN), PLAN)
    tasks = [TruthTask(0, fold, ("popularity",)) for fold in (0, 1, 0)]
    first, second, again = (job(task).true.means() for task in tasks)
    assert first == again != second


def test_robustness(elsewhere):
    split = us.splits.Random(test=0.4).split(SHOP.ratings, 1)[0]
    lists = us.targets.AllItems().lists(split, liked=4)
    runs = {
        one.name: us.rank(one.fit(split.train, 1), lists, 10)
        for one in (us.recommend.Popularity(), us.recommend.Random(), us.recommend.ItemKNN(k=5))
    }
    for more in ({"to": "sparsity", "samples": 7}, {"to": "popularity", "train": split.train}):

        def run(more=more, **settings):
            metrics = ["P@5", "nDCG@5", "condensed-P@5"]
            return us.stats.robustness(split.test, runs, metrics, liked=4, **more, **settings)

        alone = same(run, elsewhere)
        assert len(alone.values_of("share")) > 5
        steps = []
        run(**elsewhere, progress=lambda *step, steps=steps: steps.append(step))
        assert steps[-1][0] == steps[-1][1]
        assert len(steps) > 2


@pytest.mark.slow
def test_tuning(elsewhere):
    def run(**settings):
        grid = {"k": [2, 5, 9]}
        rule = us.Relevance(liked=4)
        one = us.recommend.UserKNN()
        return us.tune(one, grid, SHOP.ratings, "nDCG@5", relevance=rule, **settings)

    same(run, elsewhere)


def test_a_study(elsewhere):
    def run(**settings):
        claims = ["3-40"]
        return us.study("mena2021", stand_in=True, claims=claims, **settings)

    assert same(run, elsewhere).counts()["holds"] == 1


def test_a_study_does_not_blame_claims_for_a_lost_cluster(monkeypatch):
    from unskew_studies.lab import Lab

    def lost(*_):
        raise ClusterError("the scheduler was lost")

    monkeypatch.setattr(Lab, "table", lost)
    with pytest.raises(WorkersError, match="the scheduler was lost"):
        us.study("mena2021", stand_in=True, claims=["3-40"])


# Processes


def test_what_a_killed_process_took_with_it_is_done_again(tmp_path, monkeypatch):
    monkeypatch.setenv("UNSKEW_TEST_MARK", str(tmp_path / "mark"))
    systems = [us.recommend.Random(), us.experiment.Custom("mine", dies_once, 1)]
    plan = us.Plan(us.splits.Random(folds=3), algorithms=systems, metrics=["P@5"], seed=1)
    with pytest.warns(DataWarning, match=r"a worker process was killed.* are done again"):
        there = us.run_plan(SHOP.ratings, plan, store=tmp_path / "s", workers=2)
    assert there.table().equals(us.run_plan(SHOP.ratings, plan).table())


def test_processes_stay_from_one_set_of_tasks_to_the_next():
    with executor(2) as two:
        first = {one.result for one in two.do(process_of, range(20))}
        again = {one.result for one in two.do(process_of, range(20))}
        assert again <= first
        assert os.getpid() not in first
        two.rest()
        assert not {one.result for one in two.do(process_of, range(20))} & first
    with executor() as here:
        assert here == Executor()
        assert {one.result for one in here.do(process_of, range(3))} == {os.getpid()}


def test_a_set_that_is_given_up_leaves_processes_free():
    with ProcessPool(2) as pool:
        outcomes = pool.do(process_of, range(50))
        next(outcomes)
        outcomes.close()
        assert len(list(pool.do(process_of, range(5)))) == 5


def interrupted_at_an_outcome(outcomes):
    with closing(outcomes):
        next(outcomes)
        raise KeyboardInterrupt


def interrupt_soon():
    main = threading.main_thread().ident
    threading.Timer(0.5, signal.pthread_kill, (main, signal.SIGINT)).start()


def interrupted_while_it_waits(outcomes):
    next(outcomes)
    interrupt_soon()
    next(outcomes)


def interrupted_at_the_end(outcomes):
    """Interrupt while processes that are given up end."""
    next(outcomes)
    interrupt_soon()
    outcomes.close()


@pytest.fixture
def interrupts():
    """Take interrupts, also where a shell that starts the tests in the background ignores them."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.skipif(sys.platform == "win32", reason="needs signals to threads")
@pytest.mark.parametrize(
    "act", [interrupted_at_an_outcome, interrupted_while_it_waits, interrupted_at_the_end]
)
def test_an_interrupt_does_not_wait_for_long_tasks(act, interrupts):
    began = time.monotonic()
    with ProcessPool(2) as pool, pytest.raises(KeyboardInterrupt):
        act(pool.do(wait_for, [0, 300]))
    assert time.monotonic() - began < 60


# Order


def test_long_tasks_go_first():
    from unskew.auditing.core.core import CoreTask
    from unskew.auditing.core.tasks import CoreJob, MemoryStore, SplitId
    from unskew.auditing.designs import LEVELS, designs_of_level, plan_of_level

    names = ["popularity", "user-knn", "item-knn"]
    plan = plan_of_level(LEVELS["quick"], us.Relevance(liked=4), names)
    designs = designs_of_level(LEVELS["quick"], ["all-items"])
    job = CoreJob(
        ratings=SHOP.ratings,
        data="",
        plan=plan,
        designs=tuple(designs),
        listed=designs[0].split_key,
        truth=None,
        metric="P@10",
        tuned=frozenset(),
        store=MemoryStore(),
        scratch=MemoryStore(),
    )
    split_ids = [SplitId(designs[0].split_key, repeat, 0) for repeat in range(2)]
    tasks = [CoreTask(job, split_id, name) for split_id in split_ids for name in names]
    order = _longest_first(tasks)
    assert sorted(number for number, _ in order) == list(range(6))
    assert [task.system for _, task in order][-2:] == ["popularity", "popularity"]
    assert SharedJob(job).__getstate__()["full_job"] is None


# Arguments


def test_workers_or_a_cluster():
    rule = us.Relevance(liked=4)
    calls = {
        "audit": lambda: audit(SHOP, **AUDIT, **BOTH),
        "null": lambda: us.auditing.null_experiment(SHOP.ratings, PLAN, **BOTH),
        "truth": lambda: us.auditing.truth(SHOP, PLAN, **BOTH),
        "study": lambda: us.study("mena2021", stand_in=True, claims=["3-40"], **BOTH),
        "tune": lambda: us.tune(
            us.recommend.UserKNN(), {"k": [2]}, SHOP.ratings, "P@5", relevance=rule, **BOTH
        ),
        "robustness": lambda: us.stats.robustness(
            {"user": [1, 2], "item": [1, 1], "rating": [5, 4]},
            {"a": {1: [1]}, "b": {2: [1]}},
            "P@1",
            liked=4,
            **BOTH,
        ),
    }
    for name, call in calls.items():
        with pytest.raises(SettingError, match="workers or a cluster, not both; got workers=2"):
            print(name, call())
    with pytest.raises(SettingError, match="workers must be at least 1, got 0"):
        audit(SHOP, workers=0, **AUDIT)


def test_audits_of_lists_take_neither():
    lists = {"judgments": {"user": [1], "item": [2], "rating": [4]}, "runs": {"a": {1: [2]}}}
    for name, value in (("workers", 2), ("cluster", "local:2")):
        with pytest.raises(SettingError, match=f"{name} is for ratings"):
            audit(liked=4, **lists, **{name: value})


@pytest.mark.parametrize(
    "command",
    [
        ("audit", "shop.csv", "--quick"),
        ("bias", "null", "shop.csv"),
        ("bias", "truth", "--world", "shop"),
        ("study", "run", "mena2021", "--stand-in"),
    ],
    ids=" ".join,
)
def test_commands_take_one_of_both(command, call, tmp_path, monkeypatch):
    SHOP.ratings.to_polars().write_csv(tmp_path / "shop.csv")
    monkeypatch.chdir(tmp_path)
    code, _, error = call(*command, "--workers", 2, "--cluster", "local:2")
    assert code == 2
    assert "give --workers or --cluster, not both" in error
    code, _, error = call(*command, "--cluster", "local:none")
    assert code == 2
    assert "give the number of workers, such as local:4" in error


def test_robustness_of_users_takes_neither(call, files):
    given = ["-j", files / "test.csv", "-r", files / "mine.csv", "-r", files / "theirs.trec"]
    code, _, error = call("robustness", *given, "--liked", 4, "--to", "users", "--workers", 2)
    assert code == 2
    assert "--workers and --cluster are for --to sparsity" in error


def test_workers_need_folders():
    from unskew.auditing.core.workers import core_outcomes

    with pytest.raises(TypeError, match="stores in folders"):
        list(core_outcomes(Executor(2), [*_memory_tasks()]))


def _memory_tasks():
    from unskew.auditing.core.tasks import CoreTask, MemoryStore

    class Job:
        plan = PLAN
        store = scratch = MemoryStore()

    return [CoreTask(Job(), None, None)]


def test_a_failure_of_the_truth_names_its_task():
    systems = {"broken": us.experiment.Custom("broken", fails, 1), "random": us.recommend.Random()}
    plan = us.Plan(us.splits.Random(folds=2), algorithms=systems, metrics=["P@5"], seed=1)
    with pytest.raises(DataError, match=r"on random, split \d failed, with seed 1: .*never works"):
        us.auditing.truth(SHOP, plan, workers=2)
