"""Closed, broken and full streams: the work is done, and the exit code is the documented one."""

import json
import os
import subprocess
import sys

import polars as pl
import pytest

PLAN = """
metrics = ["P@2"]
[data]
file = "test.csv"
[relevance]
liked = 4
[[split]]
protocol = "random"
folds = 2
[[algorithm]]
name = "popularity"
[[algorithm]]
name = "random"
"""
CODES = {"promote": 0, "hold": 1, "not settled": 3}
LISTS = {"promote": ("good", "bad"), "hold": ("bad", "good"), "not settled": ("same", "bad")}


@pytest.fixture(scope="module")
def home(tmp_path_factory):
    """Return a folder with judgments and the lists of a good and two bad systems."""
    folder = tmp_path_factory.mktemp("streams")
    rows = [(u, i, r) for u in range(80) for i, r in (("a", 5), ("b", 5), ("c", 1))]
    pl.DataFrame(rows, ["user", "item", "rating"], orient="row").write_csv(folder / "test.csv")
    for name, items in {"good": "ab", "bad": "ca", "same": "ca"}.items():
        rows = [(u, i, k) for u in range(80) for k, i in enumerate((items[0], items[u % 5 > 0]), 1)]
        rows = [row for row in rows if row[2] == 1 or row[1] != items[0]]
        frame = pl.DataFrame(rows, ["user", "item", "rank"], orient="row")
        frame.write_csv(folder / f"{name}.csv")
    (folder / "plan.toml").write_text(PLAN)
    return folder


def gate(verdict):
    candidate, production = LISTS[verdict]
    return (
        f"gate -j test.csv --candidate {candidate}.csv --production {production}.csv -m P@2 "
        "--liked 4 --rail coverage=off -o verdict.json"
    )


COMMANDS = {
    **{name: (gate(name), code) for name, code in CODES.items()},
    "list": ("metrics", 0),
    "help": ("gate --help", 0),
    "table": ("evaluate -j test.csv -r good.csv -m P@2 --liked 4", 0),
    "json": ("compare -j test.csv -r good.csv -r bad.csv -m P@2 --liked 4 --format json", 0),
    "files": ("split test.csv -o parts --force", 0),
    "wrong metric": ("metrics nonsense", 2),
    "wrong option": ("gate --nonsense", 2),
    "missing file": ("evaluate -j none.csv -r good.csv", 1),
    "missing file of gate": ("gate -j none.csv --candidate good.csv --production bad.csv", 2),
    "workers": ("run plan.toml --workers 2", 0),
}


def run(home, command, redirection):
    line = f"{sys.executable} -m unskew {command} {redirection}"
    done = subprocess.run(
        ["bash", "-c", line], cwd=home, capture_output=True, text=True, timeout=300, check=False
    )
    return done.returncode, done.stdout + done.stderr


SLOW = {"workers": pytest.mark.slow}
CLOSED = [
    *[pytest.param(name, "<&- >&- 2>&-", marks=SLOW.get(name, ())) for name in COMMANDS],
    *[(name, end) for name in ("not settled", "wrong metric", "list") for end in (">&-", "2>&-")],
]


@pytest.mark.parametrize(("name", "redirection"), CLOSED)
def test_a_closed_stream_changes_no_exit_code(home, name, redirection):
    command, code = COMMANDS[name]
    (home / "verdict.json").unlink(missing_ok=True)
    came, printed = run(home, command, redirection)
    assert came == code, printed
    assert "Traceback" not in printed
    if name in CODES:
        assert json.loads((home / "verdict.json").read_text())["verdict"] == name
    if redirection == ">&-":
        assert printed.count("error:") == (name == "wrong metric")


@pytest.mark.parametrize("name", ["not settled", "wrong metric", "missing file of gate"])
def test_messages_that_cannot_be_written_are_dropped(home, name):
    command, code = COMMANDS[name]
    assert run(home, command, "2>/dev/full")[0] == code


@pytest.mark.parametrize("name", ["promote", "not settled", "help"])
def test_a_verdict_that_cannot_be_printed_is_a_failure(home, name):
    """On a full disk a gate ends neither in 0 nor in 1 nor in 3, and says why in a line."""
    code, printed = run(home, COMMANDS[name][0].replace("-o verdict.json", "-q"), ">/dev/full")
    assert code == 2
    assert printed == (
        "error: standard output or a temporary file: cannot be written: the disk is full: free "
        "some space, or write to another disk\n"
    )


@pytest.mark.parametrize("name", ["promote", "not settled"])
@pytest.mark.parametrize("stream", ["stdout", "stderr"])
def test_a_pipe_that_nobody_reads(home, name, stream):
    reads, writes = os.pipe()
    os.close(reads)
    streams = {"stdout": subprocess.DEVNULL, "stderr": subprocess.PIPE, stream: writes}
    command = [sys.executable, "-m", "unskew", *COMMANDS[name][0].split()]
    done = subprocess.run(command, cwd=home, **streams, timeout=120, check=False)
    os.close(writes)
    assert done.returncode == (141 if stream == "stdout" else CODES[name])
    assert not done.stderr


def test_a_gate_that_cannot_start_gives_no_verdict(home):
    code, printed = run(
        home, "metrics", "; ulimit -v 400000; " + f"{sys.executable} -m unskew gate"
    )
    assert code == 2
    assert "640 MiB are needed to start" in printed
