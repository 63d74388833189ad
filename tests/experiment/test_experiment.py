"""Experiments: same bits, killed and resumed, failures, shared work, tuning."""

import json
import math
import os
import random
import signal
import subprocess
import sys
import time
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

import numpy as np
import polars as pl
import pytest

import unskew as us
from shared.plans import PLAN, WORLD, broken, contents, drawn, results
from shared.worker_tasks import double
from unskew import DataError, DataWarning, Plan, SettingError
from unskew.cli import main
from unskew.data.dataset import data_key, put_data
from unskew.engine.executor import Executor
from unskew.engine.store import Store, StoreError
from unskew.experiment.collection import keys_of
from unskew.experiment.execution import tasks_of
from unskew.experiment.plan_files import plan_from_card
from unskew.experiment.task import forget, perform, result_key
from unskew.recommend.model import Algorithm, as_model
from unskew.recommend.registry import ALGORITHMS

SMALL = Plan(
    us.splits.Random(folds=3),
    us.targets.TestItems(),
    [us.recommend.Popularity()],
    metrics=["P@5"],
    seed=3,
)


def popular(train, rng):
    return us.recommend.Popularity().fit(train)


TWICE = [1, pytest.param(2, marks=pytest.mark.slow)]
"""In one process, and in two, which take a while to start."""


def plan(*systems, **settings):
    return Plan(
        **{
            "split": us.splits.Random(folds=3),
            "targets": us.targets.TestItems(),
            "seed": 3,
            "metrics": ["P@5"],
            "algorithms": list(systems),
            **settings,
        }
    )


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory):
    """Return the files of the plan as one process makes them, and its table."""
    home = tmp_path_factory.mktemp("undisturbed") / "store"
    done = us.run_plan(WORLD, PLAN, store=home)
    return contents(home), done.table()


# Same bits


def test_a_second_run_does_nothing_and_gives_the_same(undisturbed, tmp_path):
    files, table = undisturbed
    assert us.run_plan(WORLD, PLAN).table().equals(table)
    seen = []
    us.run_plan(WORLD, PLAN, store=tmp_path / "s")
    assert contents(tmp_path / "s") == files
    again = us.run_plan(WORLD, PLAN, store=tmp_path / "s", progress=seen.append)
    assert again.table().equals(table)
    assert seen == []


def test_same_bits_in_two_processes(undisturbed, tmp_path):
    files, table = undisturbed
    done = us.run_plan(WORLD, PLAN, store=tmp_path / "s", workers=2)
    assert contents(tmp_path / "s") == files
    assert done.table().equals(table)


@pytest.mark.parametrize(("items", "lists"), [(3, 2), (50, 7)])
def test_same_bits_in_any_block_size(undisturbed, tmp_path, monkeypatch, items, lists):
    monkeypatch.setattr("unskew.targets.lists.BLOCK_ITEMS", items)
    monkeypatch.setattr("unskew.judging.shape.BLOCK", lists)
    monkeypatch.setattr("unskew.evaluation.scoring.BLOCK", lists)
    done = us.run_plan(WORLD, PLAN, store=tmp_path / "s")
    assert contents(tmp_path / "s") == undisturbed[0]
    assert done.table().equals(undisturbed[1])


def test_same_bits_in_any_company(undisturbed, tmp_path):
    """A result is the same file whatever else the plan holds, and however it calls the system."""
    one = Plan(
        split=us.splits.PerUser(0.3),
        targets=us.targets.OneRelevant(others=6),
        algorithms={"renamed": us.recommend.BPRMF(factors=3, epochs=3)},
        metrics=PLAN.metrics,
        interventions=[us.splits.Skew()],
        ties="random",
        draws=2,
        seed=11,
        users="all",
        undefined="skip",
    )
    us.run_plan(WORLD, one, store=tmp_path / "s")
    files = contents(tmp_path / "s")
    assert len(files) == 2
    assert files.items() <= undisturbed[0].items()


def test_rows_in_another_order(undisturbed, tmp_path):
    frame = WORLD.to_polars()[np.random.default_rng(1).permutation(len(WORLD))]
    us.run_plan(us.read_ratings(frame, tags=["familiar"]), PLAN, store=tmp_path / "s")
    assert contents(tmp_path / "s") == undisturbed[0]


def test_another_seed_is_another_experiment(undisturbed, tmp_path):
    settings = {one: getattr(PLAN, one) for one in ("split", "targets", "metrics")}
    other = Plan(**settings, algorithms=PLAN.systems, seed=12)
    assert not keys_of(other, WORLD) & keys_of(PLAN, WORLD)
    assert not us.run_plan(WORLD, other).table().equals(undisturbed[1])


def test_results_agree_with_evaluate():
    (split, *_) = us.splits.Random(folds=3).split(WORLD, seed=3)
    lists = us.targets.TestItems().lists(split, liked=4, seed=3)
    by_hand = us.evaluate(
        lists, {"popularity": us.recommend.Popularity().fit(split.train)}, ["P@5"]
    )
    part = next(iter(us.run_plan(WORLD, SMALL)))
    assert part.fold == split.label
    assert part.scores.means() == by_hand.means()


# A card is enough


def test_a_card_is_enough_to_make_a_result_again(undisturbed, tmp_path):
    us.run_plan(WORLD, PLAN, store=tmp_path / "s")
    store = Store.open(tmp_path / "s")
    entries = list(store.entries())
    entries.sort(key=lambda one: bool(one.card["system"]))
    wanted = [entries[0], *random.Random(1).sample(entries[1:], 7)]  # of lists, and of systems
    assert {bool(one.card["system"]) for one in wanted} == {True, False}
    for number, entry in enumerate(wanted):
        card = json.loads(json.dumps(entry.card))
        assert card["data"] == data_key(WORLD)
        assert card["versions"]["numpy"] == np.__version__
        again = plan_from_card(card)
        (view,) = again.views()
        key = result_key(again, card["data"], 0, card["fold"], view, card["system"])
        assert key == entry.key
        us.run_plan(WORLD, again, store=tmp_path / str(number))
        assert Store.open(tmp_path / str(number)).path(key).read_bytes() == (
            store.path(entry.key).read_bytes()
        )


def test_the_card_of_scores(undisturbed):
    part = next(iter(us.run_plan(WORLD, PLAN)))
    assert plan_from_card(part.scores.card) == PLAN
    assert part.scores.card["fold"] == 0
    assert "numpy" in part.scores.card["versions"]


# Killed and resumed

TOML = """
seed = 11
metrics = ["P@5", "nDCG@5"]
draws = 2
[data]
file = "ratings.csv"
[[split]]
protocol = "random"
folds = 2
[[targets]]
design = "test-items"
[[targets]]
design = "one-relevant"
others = 5
[[algorithm]]
name = "popularity"
[[algorithm]]
name = "user-knn"
k = [2, 3, 4, 5, 6, 7, 8]
[[algorithm]]
name = "bprmf"
factors = 3
epochs = 3
"""
RESULTS = 2 * 2 * 10
COMMAND = (
    "import signal, sys; signal.signal(signal.SIGINT, signal.default_int_handler); "
    "from unskew.cli import main; main(sys.argv[1:])"
)


def start(folder, *more, plan="plan.toml", store="store"):
    """Start the command in a process of its own."""
    arguments = ["run", folder / plan, "--store", folder / store, "--format", "csv", *more]
    return subprocess.Popen(
        [sys.executable, "-c", COMMAND, *map(str, arguments)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )


def wait_for(condition, seconds=60.0):
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "waited in vain"
        time.sleep(0.002)


def finish(process, code=0):
    out, err = process.communicate(timeout=120)
    assert process.returncode == code, err
    return out


@pytest.fixture(scope="module")
def bench(tmp_path_factory):
    """Return a folder with a plan and ratings, the files of an undisturbed run, its output."""
    folder = tmp_path_factory.mktemp("bench")
    WORLD.to_polars().select("user", "item", "rating").write_csv(folder / "ratings.csv")
    (folder / "plan.toml").write_text(TOML)
    out = finish(start(folder))
    files = contents(folder / "store")
    assert len(files) == RESULTS
    return folder, files, out


def kill_and_resume(bench, store, moments, *more):
    """Kill the command when so many results are there, again and again, then let it finish."""
    folder, files, out = bench
    home = folder / store
    kept: dict = {}
    for number, delay in moments:
        process = start(folder, *more, store=store)
        wait_for(lambda n=number, p=process: len(results(home)) >= n or p.poll() is not None)
        time.sleep(delay)
        process.kill()
        process.communicate()
        now = {path: (path.stat().st_ino, path.stat().st_mtime_ns) for path in results(home)}
        assert kept.items() <= now.items(), "what was finished was done again"
        kept = now
        for path in now:  # nothing half-written stands under a key
            assert path.read_bytes() == files[path.name]
    assert finish(start(folder, *more, store=store)) == out
    assert contents(home) == files
    now = {path: (path.stat().st_ino, path.stat().st_mtime_ns) for path in results(home)}
    assert kept.items() <= now.items()
    opened = Store.open(home)
    # A process that started later may have the number of one that was killed.
    parts = list(home.rglob("*.part"))
    left = [part for part in parts if not Path("/proc", part.name.split("-")[-2]).exists()]
    assert len(opened.verify()) == len(left)
    assert opened.gc() == len(left)
    assert opened.verify() == []


MOMENTS = [
    [(5, 0.004)],
    pytest.param([(0, 0.3), (5, 0.004), (23, 0.0)], marks=pytest.mark.slow),
]


@pytest.mark.parametrize("moments", MOMENTS, ids=["once", "three times"])
def test_killed_and_resumed(bench, moments):
    kill_and_resume(bench, f"killed{len(moments)}", moments)


@pytest.mark.slow
def test_killed_and_resumed_with_workers(bench):
    kill_and_resume(bench, "killed2", [(9, 0.003)], "--workers", 2)


@pytest.mark.slow
@pytest.mark.parametrize("turn", range(5))
def test_killed_at_twenty_moments(bench, turn):
    rng = random.Random(turn)
    numbers = sorted(rng.sample(range(RESULTS), 4))
    moments = [(n, rng.uniform(0, 0.03) if n else rng.uniform(0, 1.5)) for n in numbers]
    kill_and_resume(bench, f"turn{turn}", moments, "--workers", 1 + turn % 2)


@pytest.mark.parametrize("workers", TWICE)
def test_two_commands_on_one_store(bench, workers):
    folder, files, out = bench
    both = [start(folder, "--workers", workers, store=f"both{workers}") for _ in range(2)]
    assert [finish(one) for one in both] == [out, out]
    assert contents(folder / f"both{workers}") == files
    assert Store.open(folder / f"both{workers}").verify() == []


def alive(process):
    try:
        state = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return False
    return state != "Z"


def children(process):
    """Return all processes below a process."""
    found = []
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            parent = int(path.read_text().rpartition(")")[2].split()[1])
        except OSError:
            continue
        if parent == process:
            found += [int(path.parent.name), *children(int(path.parent.name))]
    return found


SCRIPT = """
import os, signal, sys, time
import unskew as us

# A shell that starts the tests in the background has interrupts ignored.
signal.signal(signal.SIGINT, signal.default_int_handler)

def slow(train, rng):
    open(f"{sys.argv[2]}-{os.getpid()}", "w").close()
    time.sleep(300)

if __name__ == "__main__":
    systems = [us.recommend.Popularity(), us.recommend.Random(), us.experiment.Custom("slow", slow)]
    systems.append(us.experiment.Custom("too", slow))
    plan = us.Plan(us.splits.Random(test=0.3), us.targets.TestItems(), systems, metrics=["P@5"])
    ratings = us.read_ratings(sys.argv[1])
    us.run_plan(ratings, plan, store=sys.argv[3], workers=2)
"""


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="looks at processes in /proc")
@pytest.mark.parametrize(
    "how", [signal.SIGKILL, pytest.param(signal.SIGINT, marks=pytest.mark.slow)]
)
def test_no_worker_stays_behind(bench, tmp_path, how):
    (tmp_path / "script.py").write_text(SCRIPT)
    process = subprocess.Popen(
        [
            sys.executable,
            str(tmp_path / "script.py"),
            str(bench[0] / "ratings.csv"),
            str(tmp_path / "begun"),
            str(tmp_path / "store"),
        ],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    # Both workers are at what takes long: nothing but the signal ends the wait for them.
    wait_for(lambda: len([*tmp_path.glob("begun-*")]) == 2 or process.poll() is not None)
    below = children(process.pid)
    assert len(below) >= 2
    process.send_signal(how)
    process.wait(timeout=30)
    try:
        wait_for(lambda: not any(map(alive, below)), 20)
    finally:
        for one in filter(alive, below):
            os.kill(one, signal.SIGKILL)
        process.communicate()
    assert len(results(tmp_path / "store")) >= 2  # the lists, and whatever was done


MANY = TOML.replace("[2, 3, 4, 5, 6, 7, 8]", str(list(range(1, 401))))


@pytest.mark.parametrize("workers", TWICE)
def test_interrupted(bench, workers):
    folder, store = bench[0], f"interrupted{workers}"
    (folder / "many.toml").write_text(MANY)
    process = start(folder, "--workers", workers, plan="many.toml", store=store)
    wait_for(lambda: len(results(folder / store)) > 10 or process.poll() is not None)
    os.killpg(process.pid, signal.SIGINT)  # as a terminal does
    try:
        out, err = process.communicate(timeout=60)
    finally:
        process.kill()
    assert process.returncode == 130, err
    assert out == ""
    assert "Traceback" not in err
    kept = results(folder / store)
    assert 10 < len(kept) < 1600
    opened = Store.open(folder / store)
    assert sum(1 for _ in opened.entries()) == len(kept)
    assert workers > 1 or not list((folder / store).rglob("*.part"))


@pytest.mark.slow
def test_a_killed_worker_is_told(tmp_path):
    seen = plan(us.experiment.Custom("dies", die, 1), us.recommend.Popularity())
    with (
        pytest.warns(DataWarning, match=r"a worker process was killed.* are done again"),
        pytest.raises(DataError, match=r"a worker process was killed.* run again with fewer"),
    ):
        us.run_plan(WORLD, seen, store=tmp_path / "s", workers=2)
    assert us.run_plan(WORLD, plan(us.recommend.Popularity()), store=tmp_path / "s").failures == {}


def die(train, rng):
    os.kill(os.getpid(), signal.SIGKILL)


# The command


def test_formats(bench, call, tmp_path):
    folder, _, csv = bench
    run = ("run", folder / "plan.toml", "--store", folder / "store")
    code, out, _ = call(*run)
    assert code == 0
    assert "3 users with test data have no liked item" in out
    assert "user-knn k=5" in out
    assert "means over 2 splits" in out
    assert call(*run, "--format", "csv")[1] == csv
    table = pl.read_csv(csv.encode())
    assert table.height == 2 * 2 * 9 * 2
    assert json.loads(call(*run, "--format", "json")[1])[0]["system"] == "popularity"
    assert "| popularity" in call(*run, "--format", "markdown")[1]
    for name in ("t.csv", "t.parquet"):
        assert call(*run, "-o", tmp_path / name, "-q")[0] == 0
    assert pl.read_parquet(tmp_path / "t.parquet").height == table.height
    assert call(*run, "-o", tmp_path / "t.xls")[0] == 2
    assert call(*run, "--format", "cvs")[0] == 2
    assert call(*run, "--workers", 0)[0] == 2
    assert call("run", folder / "plan.toml", "--store", folder)[0] == 1  # a folder of other things
    assert call("run", folder / "plan.toml", "--data", folder / "none.csv")[0] in (1, 2)
    assert call("run", folder / "none.toml")[0] == 2
    assert call("run", folder / "plan.toml", "-q", "--format", "csv")[1] == csv  # without a store


def test_a_failing_command(bench, call, tmp_path):
    text = TOML.replace("seed = 11", 'seed = 11\njudgments = ["true"]')
    (bench[0] / "fails.toml").write_text(text)
    run = ("run", bench[0] / "fails.toml", "--store", tmp_path / "s")
    code, _, err = call(*run)
    assert code == 1
    assert err.startswith(
        "error: lists on random, split 1 failed, with seed 11: unknown judgments 'true'"
    )
    assert "in an earlier run" in call(*run)[2]
    assert "in an earlier run" not in call(*run, "--retry-failed")[2]
    code, _, err = call(*run, "--keep-going")
    assert code == 1
    assert "no task was finished" in err


# Results that vanish


@pytest.mark.parametrize("kept", [False, True])
def test_a_vanished_result_is_an_error(tmp_path, monkeypatch, kept):
    """Nothing that is absent counts as not wanted: a run never returns a part of its results."""
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    store = tmp_path / "store" if kept else None
    made = plan(us.recommend.Popularity(), us.recommend.Random())

    def remove(progress):
        if progress.done == 4:
            for path in tmp_path.rglob("*.result"):
                path.unlink()

    with pytest.raises(StoreError, match=r"lists on random, split 1: its result \w+ has disapp"):
        us.run_plan(WORLD, made, store=store, progress=remove)
    if kept:  # what is left is not done again, and the next run is whole
        assert results(store)
        assert us.run_plan(WORLD, made, store=store).table().height == 6 * len(made.metrics)
    assert not list(tmp_path.glob("unskew-*"))


def test_collected_by_another_plan(bench, tmp_path, monkeypatch, capsys):
    """`unskew store gc` with another plan, while a run goes on: exit code 1, nothing printed."""
    home = tmp_path / "store"
    other = plan(us.recommend.Random(), seed=99)

    def forget_now():
        Store.open(home).gc(keys_of(other, WORLD))

    monkeypatch.setattr("unskew.experiment.execution.forget", forget_now)
    with pytest.raises(SystemExit) as done:
        main(["run", str(bench[0] / "plan.toml"), "--store", str(home), "-q"])
    assert done.value.code == 1
    printed = capsys.readouterr()
    assert printed.out == ""
    assert "has disappeared from" in printed.err
    assert "Run again" in printed.err


def test_failures_of_protocols_of_one_name_stay_apart():
    splits = [us.splits.Random(test=0.2), us.splits.Random(test=0.4)]
    made = Plan(
        splits,
        us.targets.TestItems(),
        [us.experiment.Custom("broken", broken), us.recommend.Popularity()],
        metrics=["P@5"],
    )
    done = us.run_plan(WORLD, made, keep_going=True)
    assert len(done.failures) == 2
    assert all("Random(test=0." in label for label in done.failures)


# Failures


def faulty(counts, broken_size):
    """Return a function that fails on the training part of one size, and counts its calls."""

    def fit(train, rng):
        counts.append(len(train))
        if len(train) == broken_size:
            raise ValueError("no luck with this fold")
        return us.recommend.Popularity().fit(train)

    return fit


@pytest.fixture
def sizes():
    found = [len(split.train) for split in us.splits.Random(folds=3).split(WORLD, seed=3)]
    assert len(set(found)) == 3
    return found


def test_a_failure_is_told_and_kept(tmp_path, sizes):
    counts: list = []
    mine = us.experiment.Custom("mine", faulty(counts, sizes[1]), version=1)
    made = plan(us.recommend.Popularity(), mine, us.recommend.Random())
    with pytest.raises(DataError) as told:
        us.run_plan(WORLD, made, store=tmp_path / "s")
    text = str(told.value)
    assert "mine on random, split 2 failed, with seed 3" in text
    assert "no luck with this fold" in text
    assert "Traceback" in text
    assert made.key in text
    assert counts == sizes[:2]

    with pytest.raises(DataError, match=r"in an earlier run \(try again with retry_failed\)"):
        us.run_plan(WORLD, made, store=tmp_path / "s")
    assert counts == sizes[:2]  # not tried again

    seen: list = []
    done = us.run_plan(WORLD, made, store=tmp_path / "s", keep_going=True, progress=seen.append)
    assert counts == sizes  # the third fold, but not the second
    assert list(done.failures) == ["mine on random, split 2"]
    assert "no luck" in done.failures["mine on random, split 2"]
    assert "seed 3" in done.failures["mine on random, split 2"]
    assert (seen[-1].done + seen[-1].failed, seen[-1].total) == (12, 12)
    assert "1 task failed: mine on random, split 2" in str(done)
    per_fold = done.table().group_by("fold", maintain_order=True).agg("system")["system"].to_list()
    assert per_fold == [
        ["popularity", "mine", "random"],
        ["popularity", "random"],
        ["popularity", "mine", "random"],
    ]

    cured = plan(
        us.recommend.Popularity(),
        us.experiment.Custom("mine", popular, version=1),
        us.recommend.Random(),
    )
    done = us.run_plan(WORLD, cured, store=tmp_path / "s", retry_failed=True)
    assert done.failures == {}
    assert done.table().height == 9
    assert Store.open(tmp_path / "s").failures() == {}


def test_a_failure_after_some_results_is_remembered(tmp_path):
    """Its first targets are judged before it fails: what is left is still the same task."""
    made = plan(
        us.recommend.Popularity(),
        metrics=["P@5"],
        targets=[us.targets.TestItems(), us.targets.AllItems(others=29, shortage="error")],
    )
    with pytest.raises(DataError, match="lists on random, split 1 failed, with seed 3: others=29"):
        us.run_plan(WORLD, made, store=tmp_path / "s")
    assert results(tmp_path / "s")
    with pytest.raises(DataError, match="in an earlier run"):
        us.run_plan(WORLD, made, store=tmp_path / "s")


@pytest.mark.parametrize("workers", TWICE)
def test_others_go_on(tmp_path, workers):
    made = plan(us.experiment.Custom("broken", broken, 1), us.recommend.Popularity())
    done = us.run_plan(WORLD, made, store=tmp_path / "s", keep_going=True, workers=workers)
    assert len(done.failures) == 3
    assert all("this one never works" in text for text in done.failures.values())
    assert done.table().equals(us.run_plan(WORLD, plan(us.recommend.Popularity())).table())
    with pytest.raises(DataError, match="never works"):
        us.run_plan(WORLD, made, workers=workers)


def test_when_nothing_works():
    with pytest.raises(DataError, match="no task was finished"):
        us.run_plan(WORLD, plan(us.experiment.Custom("broken", broken)), keep_going=True)


# Functions of one's own


def test_without_a_version_nothing_is_kept(tmp_path, sizes):
    counts: list = []
    made = plan(us.recommend.Popularity(), us.experiment.Custom("mine", faulty(counts, -1)))
    for times in (1, 2):
        done = us.run_plan(WORLD, made, store=tmp_path / "s")
        assert counts == sizes * times
        assert done.table().height == 6
    assert len(results(tmp_path / "s")) == 6  # lists and popularity
    assert not any(e.card["system"] == "mine" for e in Store.open(tmp_path / "s").entries())
    # Another function of that name is another: nothing of the old one comes back, nor failures.
    other = plan(us.recommend.Popularity(), us.experiment.Custom("mine", broken))
    for _ in range(2):
        done = us.run_plan(WORLD, other, store=tmp_path / "s", keep_going=True)
        assert set(done.table()["system"]) == {"popularity"}
    assert Store.open(tmp_path / "s").failures() == {}
    done = us.run_plan(WORLD, made, store=tmp_path / "s")
    assert done.failures == {}


def test_with_a_version_results_are_kept(tmp_path, sizes):
    counts: list = []
    for _ in range(2):
        us.run_plan(
            WORLD, plan(us.experiment.Custom("mine", faulty(counts, -1), 1)), store=tmp_path / "s"
        )
    assert counts == sizes
    us.run_plan(
        WORLD, plan(us.experiment.Custom("mine", faulty(counts, -1), 2)), store=tmp_path / "s"
    )
    assert counts == sizes * 2


def test_own_gains_are_not_kept(tmp_path):
    """Two functions may share a name: a result of one must never be taken for the other's."""
    tables = []
    for factor in (1.0, 2.0):
        rule = us.Relevance(liked=4, gain=lambda value, by=factor: value**by)
        made = plan(us.recommend.Popularity(), relevance=rule, metrics=["DCG@5"])
        tables.append(us.run_plan(WORLD, made, store=tmp_path / "s").table())
    assert not tables[0].equals(tables[1])
    assert not results(tmp_path / "s")


@pytest.mark.slow
def test_custom_in_two_processes(tmp_path):
    made = plan(us.experiment.Custom("mine", drawn, 1), us.experiment.Custom("fresh", popular))
    one = us.run_plan(WORLD, made, store=tmp_path / "1")
    two = us.run_plan(WORLD, made, store=tmp_path / "2", workers=2)
    assert one.table().equals(two.table())
    assert contents(tmp_path / "1") == contents(tmp_path / "2")
    same = us.run_plan(WORLD, plan(us.recommend.Popularity())).table()["mean"]
    assert one.table().filter(system="fresh")["mean"].equals(same)


def test_lambdas_need_one_process():
    made = plan(
        us.experiment.Custom("mine", lambda train, rng: us.recommend.Popularity().fit(train)),
        us.recommend.Random(),
    )
    with pytest.raises(SettingError, match=r"mine: several workers cannot share its function.*top"):
        us.run_plan(WORLD, made, workers=2)
    assert us.run_plan(WORLD, made).table().height == 6


def test_functions_of_a_session_need_one_process():
    code = (
        "import unskew as us\n"
        "def mine(train, rng): return us.recommend.Popularity().fit(train)\n"
        "rows = [(u, (u + 3 * n) % 17, 1 + n % 5) for u in range(20) for n in range(6)]\n"
        "ratings = us.read_ratings(dict(zip(('user', 'item', 'rating'), zip(*rows))))\n"
        "systems = [us.experiment.Custom('mine', mine), us.recommend.Random()]\n"
        "plan = us.Plan(algorithms=systems, metrics='P@5')\n"
        "try:\n"
        "    us.run_plan(ratings, plan, workers=2)\n"
        "except us.SettingError as problem:\n"
        "    print(problem)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert "mine: its function exists only in this session" in done.stdout, done.stderr


# Nothing is computed twice


def test_training_is_shared(tmp_path, monkeypatch, sizes):
    counts: list = []
    laid: list = []
    real = us.targets.Targets.lists

    def lists(self, *arguments, **settings):
        laid.append(self)
        return real(self, *arguments, **settings)

    monkeypatch.setattr(us.targets.Targets, "lists", lists)
    made = plan(
        us.experiment.Custom("mine", faulty(counts, -1), 1),
        us.recommend.Popularity(),
        targets=[us.targets.AllItems(), us.targets.TestItems(), us.targets.OneRelevant(others=5)],
        interventions=[us.splits.Full(), us.splits.Skew(), us.splits.Reg()],
        metrics=["P@5", "nDCG@5", "bpref"],
    )
    us.run_plan(WORLD, made, store=tmp_path / "s")
    assert counts == sizes  # once per split
    assert len(laid) == 3 * 9  # and lists once per split and design, for all systems
    more = plan(
        us.experiment.Custom("mine", faulty(counts, -1), 1),
        targets=[us.targets.AllItems(), us.targets.TestItems(), us.targets.UserFlat(5)],
        metrics=["P@5", "nDCG@5", "bpref"],
        interventions=[us.splits.Full()],
    )
    us.run_plan(WORLD, more, store=tmp_path / "s")
    assert counts == sizes * 2
    assert len(laid) == 3 * 10  # only what is new


def test_judgments_of_a_split(tmp_path, sizes):
    counts: list = []
    made = plan(
        us.experiment.Custom("mine", faulty(counts, -1), 1),
        split=us.splits.FamiliarTraining("familiar"),
        judgments=["observed", "true"],
    )
    done = us.run_plan(WORLD, made)
    folds = len({part.fold for part in done})
    assert len(counts) == folds
    assert len(done) == 2 * folds
    assert len(done.scores(judgments="true")) == folds
    with pytest.raises(SettingError, match="2 designs fit; choose one"):
        done.scores()


def test_memory_of_a_process_is_given_back(tmp_path):
    from unskew.experiment import task

    us.run_plan(WORLD, PLAN, store=tmp_path / "s")
    assert not any(one.cache_info().currsize for one in (task._ratings, task._split, task._judged))


# Results


def test_alike_designs_stay_apart():
    made = plan(
        us.recommend.Popularity(),
        split=[us.splits.Random(test=0.2), us.splits.Random(test=0.4)],
        interventions=[us.splits.Full(), us.splits.Skew(size=0.3), us.splits.Skew(size=0.6)],
    )
    done = us.run_plan(WORLD, made)
    assert done.table().select("split", "intervention").n_unique() == 6
    assert set(done.table()["intervention"]) == {
        "full",
        repr(us.splits.Skew(0.3)),
        repr(us.splits.Skew(0.6)),
    }
    assert len(done.scores(split=repr(us.splits.Random(test=0.4)), intervention="full")) == 1
    with pytest.raises(SettingError, match="2 designs fit"):
        done.scores(intervention="full")
    assert done.summary().height == 6 * 2


def test_the_shape_of_results():
    done = us.run_plan(WORLD, SMALL)
    assert (len(done), len(list(done))) == (3, 3)
    table = done.table()
    assert table.columns == [
        "targets",
        "split",
        "judgments",
        "intervention",
        "fold",
        "system",
        "metric",
        "mean",
        "users",
        "random",
    ]
    means = [scores.mean("P@5")["popularity"] for scores in done.scores()]
    assert table["mean"].to_list() == means
    summary = done.summary()
    assert summary["system"].to_list() == ["popularity", "(random)"]
    assert math.isclose(summary["P@5"][0], sum(means) / 3)
    assert "designs x splits: 3, 1 system" in repr(done)
    assert "<table" in done._repr_html_()


def test_notes_are_those_of_the_users_asked_for(tmp_path):
    nobody = us.experiment.Custom("nobody", nothing_scored, 1)
    said = {}
    for users in ("with-test", "both"):
        done = us.run_plan(WORLD, plan(nobody, users=users), store=tmp_path / "s")
        said[users] = " ".join(next(iter(done)).scores.notes)
    assert "they score 0" in said["with-test"]
    assert "left out of the means" in said["both"]


def nothing_scored(train, rng):
    return np.full((len(train.users), len(train.items)), np.nan)


def test_data_in_other_forms(tmp_path):
    frame = WORLD.to_polars().select("user", "item", "rating")
    frame.write_csv(tmp_path / "r.csv")
    expected = us.run_plan(us.read_ratings(frame), SMALL).table()
    for data in (frame, tmp_path / "r.csv", frame.to_dict(as_series=False)):
        assert us.run_plan(data, SMALL).table().equals(expected)


# Execute


@pytest.mark.parametrize("workers", TWICE)
def test_execute(workers):
    done = {one.task: one for one in Executor(workers).do(double, range(6))}
    assert {n: one.result for n, one in done.items() if n != 3} == {0: 0, 1: 2, 2: 4, 4: 8, 5: 10}
    assert "ValueError: three" in done[3].failure
    assert list(Executor(workers).do(double, [])) == []


def test_a_worker_killed_while_tasks_are_submitted(monkeypatch):
    class Pool(ProcessPoolExecutor):
        def submit(self, *arguments):
            if arguments[1] > 2:
                raise BrokenProcessPool("A child process terminated abruptly")
            return super().submit(*arguments)

    monkeypatch.setattr("unskew.engine.process_pool.ProcessPoolExecutor", Pool)
    with (
        pytest.warns(DataWarning, match=r"a worker process was killed.* are done again"),
        pytest.raises(DataError, match=r"a worker process was killed.* run again with fewer"),
    ):
        list(Executor(2).do(double, range(10)))


def test_tasks_that_vanish_are_not_called_want_of_memory(tmp_path, monkeypatch):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))

    class Pool(ProcessPoolExecutor):
        def __init__(self, *arguments, **more):
            super().__init__(*arguments, **more)
            next(tmp_path.glob("unskew-*/tasks")).unlink()

    monkeypatch.setattr("unskew.engine.process_pool.ProcessPoolExecutor", Pool)
    with pytest.raises(StoreError, match=r"cannot read its tasks: .*No such file.*TMPDIR"):
        list(Executor(2).do(double, range(10)))


def test_execute_refuses():
    with pytest.raises(SettingError, match="workers must be at least 1"):
        Executor(0)


# Tuning


@dataclass(frozen=True)
class Planted(Algorithm):
    """Ranks items by how near they are to a place: best where the liked items are."""

    place: int = 0
    sharp: float = 1.0
    name: ClassVar[str] = "planted"

    def learn(self, train, rng):
        near = -self.sharp * np.abs(np.arange(len(train.items)) - self.place)
        return as_model(np.tile(near, (len(train.users), 1)), train)


@pytest.fixture(scope="module")
def hill():
    """Return ratings whose liked items are those around number 12."""
    rng = np.random.default_rng(2)
    user, item = np.nonzero(rng.random((60, 30)) < 0.5)
    value = np.where(np.abs(item - 12) <= 3, 5, 1)
    return us.read_ratings({"user": user, "item": item, "rating": value})


LIKED = us.Relevance(liked=4)


def test_tuning_finds_what_is_planted(hill):
    found = us.tune(Planted(), {"place": [0, 6, 12, 18, 25]}, hill, "nDCG@5", relevance=LIKED)
    assert found.best == Planted(place=12)
    assert found.metric == "nDCG@5"
    assert found.trials.columns == ["place", "nDCG@5", "deviation"]
    assert found.trials["nDCG@5"].is_sorted(descending=True)
    assert found.trials["nDCG@5"][0] == found.value
    assert found.table().height == 5
    assert "best of 5 trials" in str(found)
    assert "<table" in found._repr_html_()


def test_tuning_where_less_is_better(hill):
    grid = {"place": [0, 12, 25]}
    found = us.tune(Planted(), grid, hill, "anti-P@5", relevance=LIKED)
    assert found.best == Planted(place=12)
    assert found.trials["anti-P@5"].is_sorted()


def test_settings_that_are_not_searched_stay(hill):
    found = us.tune(Planted(sharp=3.0), {"place": [12, 0]}, hill, "P@5", relevance=LIKED)
    assert found.best == Planted(place=12, sharp=3.0)
    both = us.tune(Planted(), {"place": [0, 12], "sharp": [1.0, 2.0]}, hill, "P@5", relevance=LIKED)
    assert both.trials.height == 4
    assert both.best == Planted(12, 1.0)  # of equals the first


def test_random_search_is_the_same_again(hill):
    grid = {"place": list(range(30))}

    def tried(seed):
        found = us.tune(Planted(), grid, hill, "P@5", relevance=LIKED, trials=4, seed=seed)
        return found.trials

    assert tried(1).equals(tried(1))
    assert set(tried(1)["place"]) != set(tried(2)["place"])
    every = us.tune(Planted(), {"place": [1, 2]}, hill, "P@5", relevance=LIKED, trials=9)
    assert every.trials.height == 2


def test_trials_are_kept(hill, tmp_path):
    seen: list = []
    settings = {
        "relevance": LIKED,
        "store": tmp_path / "s",
        "progress": seen.append,
        "validation": us.splits.PerUser(0.25),
        "targets": us.targets.AllItems(),
    }
    for _ in range(2):
        us.tune(us.recommend.UserKNN(), {"k": [2, 4]}, hill, "P@5", **settings)
    assert len(seen) == 3
    assert len(results(tmp_path / "s")) == 3
    us.tune(us.recommend.UserKNN(), {"k": [2, 4, 6]}, hill, "P@5", **settings)
    assert len(seen) == 4


def test_validation_of_its_own_never_leaks(hill):
    """Pairs that train too judge nothing, and all of the training data trains."""
    rows = np.random.default_rng(0).random(len(hill)) < 0.3
    train, held_out = hill.take(~rows), hill.take(rows)
    leaky = us.read_ratings(pl.concat([held_out.to_polars(), train.to_polars()[:200]]))
    sizes: list = []

    @dataclass(frozen=True)
    class Spy(Planted):
        def learn(self, train, rng):
            sizes.append(len(train))
            return super().learn(train, rng)

    grid = {"place": [3, 12, 20]}
    clean = us.tune(Spy(), grid, train, "nDCG@5", relevance=LIKED, validation=held_out)
    leaked = us.tune(Spy(), grid, train, "nDCG@5", relevance=LIKED, validation=leaky)
    assert leaked.trials.equals(clean.trials)
    assert set(sizes) == {len(train)}
    with pytest.raises(DataError, match="test part is empty"):
        us.tune(Spy(), grid, train, "P@5", relevance=LIKED, validation=train)


@pytest.mark.parametrize(
    ("grid", "more", "message"),
    [
        ({}, {}, "name at least one setting"),
        ({"plaec": [1]}, {}, "planted has no setting 'plaec'; it has: place, sharp"),
        ({"place": []}, {}, "give a list of values for place"),
        ({"place": "abc"}, {}, "grid must be a mapping to a list, got"),
        ({"place": [1]}, {"trials": 0}, "trials must be at least 1"),
        ({"place": [1]}, {"metric": "Pp@5"}, "unknown metric"),
        (
            {"place": [1]},
            {"relevance": us.Relevance(liked=6), "users": "with-relevant"},
            "undefined for every trial: is anything liked",
        ),
        ({"place": [1]}, {"users": "some"}, "unknown users"),
    ],
)
def test_tuning_errors(hill, grid, more, message):
    settings = {"metric": "P@5", "relevance": LIKED, **more}
    with pytest.raises((SettingError, DataError), match=message):
        us.tune(Planted(), grid, hill, **settings)


# Cost


@pytest.mark.slow
def test_a_finished_plan_is_cheap(tmp_path):
    """A thousand tasks: ten folds of 99 systems, and the lists."""
    systems = {f"knn {k}": us.recommend.UserKNN(k=k) for k in range(1, 100)}
    made = plan(
        *[], algorithms=systems, split=us.splits.Random(folds=10), metrics=["P@5", "nDCG@5"]
    )
    begun = time.perf_counter()
    first = us.run_plan(WORLD, made, store=tmp_path / "s")
    spent = time.perf_counter() - begun
    begun = time.perf_counter()
    again = us.run_plan(WORLD, made, store=tmp_path / "s")
    more = time.perf_counter() - begun
    print(f"1,000 tasks in {spent:.1f} s, again in {more:.2f} s")
    assert again.table().equals(first.table())
    assert len(results(tmp_path / "s")) == 1000
    assert more < spent / 3


# Real data

THIRTY = [
    f"{name}@{k}"
    for name in ("P", "anti-P", "Recall", "nDCG", "nDCL", "AP", "RR", "HR", "Coverage")
    for k in (5, 10, 20)
] + ["bpref@100", "EPC@10", "Gini@10"]
TEN = [
    "random",
    "popularity",
    "positive-popularity",
    "average-rating",
    "smoothed-average",
    "optimal-precision",
    "optimal-anti-precision",
    "uir",
    "puresvd",
    "ease",
]


@pytest.mark.real
@pytest.mark.slow
def test_movielens(ml1m_path, tmp_path):
    """Five folds, six targets, ten algorithms, thirty metrics; one fold of it is done here."""
    ratings = us.read_ratings(ml1m_path)
    made = Plan(
        us.splits.Random(folds=5),
        [
            us.targets.AllItems(),
            us.targets.TestItems(),
            us.targets.TrainItems(),
            us.targets.OneRelevant(others=99),
            us.targets.TestTargets(),
            us.targets.UserFlat(100),
        ],
        [ALGORITHMS[name]() for name in TEN],
        metrics=THIRTY,
        draws=2,
        seed=7,
    )
    told = us.experiment.outline(made, ratings, store=tmp_path / "s", estimate=False)
    assert (told.tasks, told.results, told.metrics) == (55, 330, 30)
    assert "55 tasks, 0 of them done; 330 results" in str(told)

    store = Store.open(tmp_path / "s")
    data = put_data(store, ratings)
    todo = [task for task in tasks_of(made, ratings, data, store) if task.fold == 0]
    begun = time.perf_counter()
    outcomes = list(Executor().do(perform, todo))
    forget()
    spent = time.perf_counter() - begun
    assert [one.failure for one in outcomes] == [None] * 11
    assert len(results(tmp_path / "s")) == 66
    print(f"one fold in {spent:.0f} s")

    entry = next(e for e in store.entries() if e.card["system"] == "ease")
    again = plan_from_card(entry.card)
    other = Store.open(tmp_path / "again")
    (task,) = [
        one
        for one in tasks_of(again, ratings, put_data(other, ratings), other)
        if one.fold == 0 and one.system is not None
    ]
    assert task.todo[0][1] == entry.key
    perform(task)
    forget()
    assert other.path(entry.key).read_bytes() == store.path(entry.key).read_bytes()
    assert us.experiment.outline(made, ratings, store=tmp_path / "s", estimate=False).done == 11


# Filters and implicit feedback


def test_filters_of_a_plan_come_before_the_split(tmp_path):
    data = us.world("shop", users=300, items=100, seed=3).ratings
    systems = [us.recommend.Popularity()]
    core = us.data.KCore(4, 4)
    plan = us.Plan(algorithms=systems, metrics=["P@5"], filters=core)
    results = us.run_plan(data, plan)
    by_hand = us.run_plan(core.apply(data), us.Plan(algorithms=systems, metrics=["P@5"]))
    assert results.table().equals(by_hand.table())
    assert results.notes[0].startswith("k-core(users=4, items=4): ")
    assert plan.describe()["filters"] == [
        {"filter": "k-core", "users": 4, "items": 4, "rounds": None}
    ]
    assert plan_from_card(plan.describe()) == plan
    assert "filters" not in us.Plan(algorithms=systems).describe()


def test_filters_in_a_plan_file(tmp_path):
    (tmp_path / "plan.toml").write_text(
        """
        [data]
        file = "log.csv"
        log = true
        [[filter]]
        kind = "between"
        start = 2020-01-01
        [[filter]]
        kind = "k-core"
        users = 2
        items = 2
        [[split]]
        protocol = "events"
        [relevance]
        liked = 1
        [[algorithm]]
        name = "popularity"
        """
    )
    plan, data = us.read_plan(tmp_path / "plan.toml")
    assert plan.filter_steps == (us.data.Between("2020-01-01"), us.data.KCore(2, 2))
    assert data == {"file": "log.csv", "log": True}


@pytest.mark.parametrize(
    ("table", "message"),
    [
        ('[[filter]]\nkind = "kcore"', "k-core"),
        ("[[filter]]\nusers = 2", "needs kind"),
        ('[[filter]]\nkind = "k-core"\ndepth = 2', "no setting 'depth'"),
        ('[[filter]]\nkind = "popular-items"', "popular-items needs number"),
    ],
)
def test_bad_filters_in_a_plan_file(tmp_path, table, message):
    (tmp_path / "plan.toml").write_text(f'{table}\n[[algorithm]]\nname = "popularity"\n')
    with pytest.raises(us.UnskewError, match=message):
        us.read_plan(tmp_path / "plan.toml")


def test_a_plan_on_implicit_feedback_leaves_dislikes_out():
    data = us.read_ratings({"user": [1, 1, 1, 2, 2, 2], "item": [7, 8, 9, 7, 8, 9]})
    plan = us.Plan(
        us.splits.LeaveOut(1),
        algorithms=[us.recommend.Popularity()],
        metrics=["P@1", "anti-P@1"],
        relevance=us.Relevance(liked=1),
    )
    results = us.run_plan(data, plan)
    assert results.table()["metric"].unique().to_list() == ["P@1"]
    assert any("which has no dislikes: anti-P@1 left out" in note for note in results.notes)
    with pytest.raises(
        us.SettingError, match=r"likes no pair: give relevance=us.Relevance\(liked=1"
    ):
        us.run_plan(data, us.Plan(algorithms=[us.recommend.Popularity()]))
