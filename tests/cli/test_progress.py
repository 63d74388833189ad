"""Progress on standard error: a line on a terminal, a few plain lines off it, nothing if quiet."""

import os
import pty
import re
import select
import subprocess
import sys
import time

import pytest

from unskew.cli import progress as shown
from unskew.cli.progress import (
    AUDIT,
    Stage,
    Tracker,
    named_progress,
    progress,
    stages_progress,
    tasks_progress,
)
from unskew.engine.progress import Remaining
from unskew.experiment.execution import RunProgress


class Clock:
    def __init__(self):
        self.now = 0.0

    def __call__(self):
        return self.now


@pytest.fixture
def clock(monkeypatch):
    """Time that tests move; the display is asked by tests, not by its thread."""
    clock = Clock()
    monkeypatch.setattr(shown, "Remaining", lambda weights: Remaining(weights, clock))
    return clock


def lines_of(tracker, events, clock, capsys, step=0.25):
    """Return the lines that a command off a terminal prints while events come in."""
    display, at = shown._Lines(tracker), 0
    while clock.now <= events[-1][0]:
        while at < len(events) and events[at][0] <= clock.now:
            tracker.report(*events[at][1:])
            at += 1
        display.tick()
        clock.now += step
    return capsys.readouterr().err.splitlines()


def steady(stage, total, seconds, start=0.0):
    return [(start + n * seconds / total, stage, n, total) for n in range(total + 1)]


def test_a_short_command_prints_nothing(clock, capsys):
    tracker = Tracker(AUDIT, command="audit")
    assert lines_of(tracker, steady("designs", 24, 1.5), clock, capsys) == []


def test_each_stage_and_now_and_then(clock, capsys):
    tracker = Tracker(AUDIT, command="audit")
    events = steady("reading", 1, 4) + steady("splits", 6, 6, 4.0)
    events += steady("designs", 96, 240, 10.0) + steady("null experiment", 8, 80, 250.0)
    lines = lines_of(tracker, events, clock, capsys)
    assert lines[0] == "audit: reading"
    assert lines[1].startswith("audit: splits and what is ranked: 0 of 6")
    assert lines[2] == "audit: systems under all designs: 0 of 96 (0 %)"
    assert any(line.startswith("audit: null experiment") for line in lines)
    pattern = r"audit: systems under all designs: \d+ of 96 \(\d+ %\), about \d+ min left"
    assert sum(bool(re.fullmatch(pattern, line)) for line in lines) > 5
    assert 10 < len(lines) < 36
    left = [int(line.split()[-3]) for line in lines if line.endswith("min left")]
    assert left == sorted(left, reverse=True)  # even steps: it never rises


@pytest.mark.parametrize("hours", [1, 10, 100])
def test_long_commands_print_few_lines(clock, capsys, hours):
    tracker = Tracker(AUDIT, command="audit")
    lines = lines_of(tracker, steady("designs", 500, 3600 * hours), clock, capsys, step=5.0)
    assert len(lines) < 60
    assert " h" in lines[len(lines) // 2]


def test_a_step_that_takes_long_is_still_named(clock, capsys):
    tracker = Tracker(AUDIT, command="audit")
    events = [(0.0, "designs", 0, 4), (300.0, "designs", 1, 4)]
    lines = lines_of(tracker, events, clock, capsys)
    assert set(lines) >= {"audit: systems under all designs: 0 of 4 (0 %)"}
    assert len(lines) > 5


def test_steps_that_nobody_counts_are_shares(clock, capsys):
    tracker = Tracker({"testing": Stage("testing")}, command="power")
    tracker.remaining.begin("testing")
    lines = lines_of(tracker, steady("testing", 100_000, 60), clock, capsys, step=0.5)
    assert lines[0].startswith("power: testing: 3 %")
    assert all(re.match(r"power: testing: \d+ %", line) for line in lines)
    assert "100,000" not in "".join(lines)


def test_a_run_counts_tasks(clock, capsys):
    with tasks_progress(quiet=True, workers=2) as move:
        tracker = shown._LATEST.get()
        clock.now = 10.0
        move(RunProgress(91, 100, 0, "a"))  # 90 were in the store
        assert tracker.text() == "unskew: tasks: 91 of 100 (91 %), 2 running"
        clock.now = 20.0
        move(RunProgress(92, 100, 1, "b"))
        assert tracker.text().endswith("2 running, 1 failed")
        assert tracker.remaining.seconds() == pytest.approx(80, rel=0.2)
    assert shown.finished_work() == "92 of 100 tasks"


def test_a_study_names_its_steps(clock, capsys):
    with named_progress("claims", quiet=True) as move:
        tracker = shown._LATEST.get()
        move("training 9 systems (stand-in)", 0, 40)
        move("", 1, 40)
        assert "training 9 systems (stand-in): 1 of 40" in tracker.text()
    assert shown.finished_work() == ""  # steps are not what its store holds


def test_quiet_prints_nothing(capsys):
    for manager in (stages_progress(True), named_progress("claims", True), tasks_progress(True)):
        with manager as move:
            assert callable(move)
            time.sleep(0.01)
    with progress("testing", True) as move:
        move(1, 2)
    assert capsys.readouterr().err == ""


def test_what_an_audit_has_stored():
    with stages_progress(True) as move:
        assert shown.finished_work() == ""
        move("reading", 1, 1)
        move("designs", 10, 24)
        assert shown.finished_work() == "10 of 24 tasks"
        move("designs", 24, 24)
        move("null experiment", 3, 8)
    assert shown.finished_work() == "24 of 24 tasks and 3 of 8 null runs"


SCRIPT = """
import sys, time
from unskew.cli.progress import stages_progress
with stages_progress(quiet=False) as move:
    for done in range(41):
        move("designs", done, 40)
        time.sleep(0.1)
print("the result")
"""


def test_off_a_terminal_for_real():
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT], capture_output=True, text=True, timeout=60, check=True
    )
    assert done.stdout == "the result\n"
    lines = done.stderr.splitlines()
    assert 1 <= len(lines) <= 3
    assert re.match(r"unskew: systems under all designs: \d+ of 40 \(\d+ %\)", lines[0])
    assert "\x1b" not in done.stderr


def test_one_line_on_a_terminal():
    """On a terminal there is one line with the step, a bar and the time left; it vanishes."""
    terminal, other = pty.openpty()
    settings = {**os.environ, "TERM": "xterm", "COLUMNS": "100", "LINES": "24"}
    process = subprocess.Popen([sys.executable, "-c", SCRIPT], stderr=other, env=settings,
                               stdout=subprocess.DEVNULL)  # fmt: skip
    os.close(other)
    seen = b""
    while process.poll() is None or select.select([terminal], [], [], 0)[0]:
        if select.select([terminal], [], [], 0.2)[0]:
            try:
                seen += os.read(terminal, 65536)
            except OSError:  # closed by the process
                break
    os.close(terminal)
    assert process.wait(timeout=30) == 0
    text = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", seen.decode())
    frames = [one.strip() for one in re.split(r"[\r\n]+", text) if one.strip()]
    assert len(frames) > 3
    assert all("systems under all designs" in one for one in frames)
    assert any("of 40" in one and "━" in one and "left" in one for one in frames)
    assert seen.endswith((b"\x1b[2K", b"\x1b[?25h", b"\r"))  # erased
