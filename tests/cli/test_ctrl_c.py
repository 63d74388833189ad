"""Ctrl-C: exit code 130, a line on what is kept, no process and no half-written file left."""

import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from unskew import world
from unskew.engine.files import write_table

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="looks at processes in /proc"),
]

PLAN = """
seed = 1
metrics = ["P@5"]
[data]
file = "ratings.csv"
[relevance]
liked = 4
[[split]]
protocol = "random"
folds = 4
[[algorithm]]
name = "wrmf"
factors = [10, 20, 30, 40, 50, 60, 70, 80]
iterations = 200
"""
"""It runs for half a minute: progress that is no terminal's says how far a run is every 10 s."""


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    write_table(
        world("shop", users=1_500, items=400, seed=2).ratings.to_polars(),
        tmp_path / "ratings.csv",
        "csv",
    )
    (tmp_path / "plan.toml").write_text(PLAN)
    (tmp_path / "tmp").mkdir()
    return tmp_path


def group(number):
    """Return the processes of a group that are alive."""
    alive = []
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = path.read_text().rpartition(")")[2].split()
        except OSError:
            continue
        if int(fields[2]) == number and fields[0] != "Z":
            alive.append(int(path.parent.name))
    return alive


def stopped(folder, *words, until, seconds=120):
    """Start a command, press Ctrl-C when standard error says `until`; return what it says then."""
    log = folder / "err.txt"
    with log.open("w") as err:
        process = subprocess.Popen(
            [sys.executable, "-c",
             "import signal; signal.signal(signal.SIGINT, signal.default_int_handler);"
             "from unskew.__main__ import start; start()", *map(str, words)],
            stdout=subprocess.DEVNULL, stderr=err, cwd=folder, start_new_session=True,
            env={**os.environ, "TMPDIR": str(folder / "tmp")},
        )  # fmt: skip
    end = time.monotonic() + seconds
    try:
        while not re.search(until, log.read_text()):
            assert process.poll() is None, log.read_text()
            assert time.monotonic() < end, log.read_text()
            time.sleep(0.05)
        os.killpg(process.pid, signal.SIGINT)  # as a terminal does
        code = process.wait(timeout=60)
        for _ in range(100):
            if not group(process.pid):
                break
            time.sleep(0.1)
        left = group(process.pid)
    finally:
        for one in group(process.pid):
            os.kill(one, signal.SIGKILL)
    text = log.read_text()
    assert code == 130, text
    assert "Traceback" not in text
    assert left == []
    assert list(folder.rglob("*.part")) == []
    assert list((folder / "tmp").glob("unskew-*")) == []
    return [line for line in text.splitlines() if line.startswith("Stopped")]


QUICK = ("audit", "ratings.csv", "--quick", "--liked", 4)


def test_demo(folder):
    assert stopped(folder, "demo", until="demo: ") == ["Stopped."]
    assert not (folder / "unskew-report.html").exists()


@pytest.mark.parametrize("workers", [1, 2])
def test_audit(folder, workers):
    said = stopped(folder, *QUICK, "--workers", workers, until="all designs: ")
    assert said == ["Stopped. Nothing is stored: add --store FOLDER to be able to go on."]


def test_an_audit_with_a_store_goes_on(folder):
    command = (*QUICK, "--store", "kept")
    (said,) = stopped(folder, *command, until=r"all designs: [1-9]")
    done = re.fullmatch(
        r"Stopped\. (\d+) of (\d+) tasks are stored in kept: run the same command again to go on\.",
        said,
    )
    assert done is not None, said
    assert 1 <= int(done[1]) < int(done[2])
    before = set((folder / "kept").rglob("*.result"))
    times = {path: path.stat().st_mtime_ns for path in before}
    (again,) = stopped(folder, *command, until=r"all designs: [1-9]")
    number = int(re.search(r"Stopped\. (\d+) of", again)[1])
    assert number >= int(done[1])
    assert before <= set((folder / "kept").rglob("*.result"))
    assert all(path.stat().st_mtime_ns == stamp for path, stamp in times.items())


@pytest.mark.parametrize("workers", [1, 2])
def test_run(folder, workers):
    command = ("run", "plan.toml", "--store", "kept", "--workers", workers)
    (said,) = stopped(folder, *command, until=r"run: tasks: [1-9]")
    assert re.match(r"Stopped\. \d+ of 36 tasks are stored in kept: run the same", said)


def test_study(folder):
    command = ("study", "run", "valcarce2018", "--stand-in", "--store", "kept")
    (said,) = stopped(folder, *command, until="study run: ")
    assert said.startswith("Stopped")
    assert said.endswith("run the same command again to go on.")
