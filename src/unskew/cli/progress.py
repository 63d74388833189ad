"""How far a command is: one line with a bar on a terminal, a few plain lines off it.

What is said of the time that is left is about the whole command, stages that have not begun
included. Short commands show nothing.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any

from unskew.cli.console import command_name, messages
from unskew.engine.progress import AUDIT_STAGES, Remaining
from unskew.engine.threads import Lock, every

SHORT = 2.0
"""Seconds before anything is shown."""
APART = 15.0
"""Seconds between two plain lines, at least; more as a command goes on, so that they stay few."""
_TICK = 0.25


@dataclass(frozen=True)
class Stage:
    """A part of a command that is shown by its title."""

    title: str
    weight: float = 1.0
    """What it typically takes, beside the other stages of the command."""
    unit: str = ""
    """What its steps are, where people can count them; else the share that is done is shown."""


_AUDIT_TITLES = {
    "splits": "splits and what is ranked",
    "designs": "systems under all designs",
}
_AUDIT_UNITS = {"splits": "splits", "designs": "tasks", "null experiment": "null runs"}
AUDIT = {
    name: Stage(_AUDIT_TITLES.get(name, name), weight, _AUDIT_UNITS.get(name, ""))
    for name, weight in AUDIT_STAGES.items()
}
"""The stages of an audit of ratings."""


STORED_BY_AUDIT = ("designs", "null experiment")


@dataclass(eq=False)
class Tracker:
    """What a command reports of its progress."""

    stages: Mapping[str, Stage]
    stored: tuple[str, ...] = ()
    """Stages whose finished steps are in the store, where the command has one."""
    command: str = field(default_factory=command_name)
    counts: dict[str, tuple[int, int]] = field(default_factory=dict)
    """By stage: the steps that are done, and all steps."""
    current: str = ""
    title: str = ""
    remark: str = ""
    lock: Lock = field(default_factory=Lock)
    remaining: Remaining = field(init=False)

    def __post_init__(self) -> None:
        weights = {name: stage.weight for name, stage in self.stages.items()}
        self.remaining = Remaining(weights if len(weights) > 1 else None)

    def begin(self, stage: str) -> None:
        """Begin a stage of which nothing is known yet."""
        with self.lock:
            self.current, self.title = stage, self.stages[stage].title
            self.remaining.begin(stage)

    def report(
        self, stage: str, done: int, total: int, *, title: str = "", remark: str = ""
    ) -> None:
        """Take in how many steps of a stage are done, and of how many."""
        with self.lock:
            stage_of_name = self.stages.get(stage)
            self.current, self.counts[stage] = stage, (done, total)
            self.title = title or (stage_of_name.title if stage_of_name else stage)
            self.remark = remark
            self.remaining.report(stage, done, total)

    def text(self) -> str:
        """Return the command, what is being done, and how far it is."""
        done, total = self.counts.get(self.current, (0, 0))
        stage = self.stages.get(self.current)
        share = f"{min(done / total, 1):.0%}".replace("%", " %") if total > 1 else ""
        line = f"{self.command}: {self.title}"
        if share and stage is not None and stage.unit:
            line += f": {done:,} of {total:,} ({share})"
        elif share and done:
            line += f": {share}"
        return line + (f", {self.remark}" if self.remark else "")

    def finished(self) -> str:
        """Return how many steps are in the store, such as '3 of 8 tasks'; '' if not known."""
        parts = [
            f"{done:,} of {total:,} {self.stages[name].unit}"
            for name in self.stored
            for done, total in [self.counts.get(name, (0, 0))]
            if total
        ]
        return " and ".join(parts)


_LATEST: ContextVar[Tracker | None] = ContextVar("latest", default=None)


def forget_progress() -> None:
    """Begin a command of which nothing is done."""
    _LATEST.set(None)


def finished_work() -> str:
    """Return how much of the work of this command is in its store; '' if that is not known."""
    latest = _LATEST.get()
    return "" if latest is None else latest.finished()


@contextmanager
def _shown(tracker: Tracker, quiet: bool) -> Iterator[Tracker]:
    """Show the progress of a command meanwhile, unless it is quiet."""
    _LATEST.set(tracker)
    if quiet:
        yield tracker
        return
    display = _TerminalBar(tracker) if sys.stderr.isatty() else _Lines(tracker)
    try:
        with every(_TICK, display.tick):
            yield tracker
    finally:
        display.close()


class _TerminalBar:
    """One line on a terminal: what is done, a bar, the time that is left. It vanishes at the end.

    The bar appears only when the command turns out not to be short.
    """

    def __init__(self, tracker: Tracker) -> None:
        self.tracker = tracker
        self.bar: Any = None
        self.task: Any = None

    def close(self) -> None:
        if self.bar is not None:
            self.bar.stop()

    def tick(self) -> None:
        tracker = self.tracker
        if tracker.remaining.elapsed < SHORT / 2 or not tracker.title:
            return
        with tracker.lock:
            text, share = tracker.text(), tracker.remaining.share()
            left = tracker.remaining.text()
        if self.bar is None:
            self._begin(text)
        self.bar.update(self.task, description=text, completed=share, left=left)
        self.bar.refresh()

    def _begin(self, text: str) -> None:
        from rich.progress import BarColumn, Progress, TextColumn

        columns = (
            TextColumn("{task.description}", markup=False),
            BarColumn(),
            TextColumn("{task.fields[left]}", markup=False),
        )
        self.bar = Progress(*columns, console=messages(), transient=True, auto_refresh=False)
        self.task = self.bar.add_task(text, total=1.0, left="")
        self.bar.start()


class _Lines:
    """Plain lines off a terminal: one per stage, and one now and then."""

    def __init__(self, tracker: Tracker) -> None:
        self.tracker = tracker
        self.last = 0.0
        self.stage = ""

    def close(self) -> None:
        """Print nothing more."""

    def tick(self) -> None:
        with self.tracker.lock:
            line = self._line()
        if line:
            print(line, file=sys.stderr, flush=True)

    def _line(self) -> str:
        """Return the line that is due, if any."""
        tracker, now = self.tracker, self.tracker.remaining.elapsed
        if not tracker.title or now < SHORT:
            return ""
        begins = tracker.current != self.stage and now - self.last >= SHORT
        if not begins and now - self.last < max(APART, now / 6):
            return ""
        self.last, self.stage = now, tracker.current
        left = tracker.remaining.text()
        return tracker.text() + (f", {left}" if left else "")


@contextmanager
def progress(title: str, quiet: bool, unit: str = "") -> Iterator[Callable[[int, int], None]]:
    """Show how far one thing is; give the function that takes the steps done and all steps.

    Where its steps have a unit, they are kept in the store of the command.
    """
    stages = {title: Stage(title, 1, unit)}
    with _shown(Tracker(stages, (title,) if unit else ()), quiet) as tracker:
        tracker.begin(title)
        yield lambda done, total: tracker.report(title, done, total)


@contextmanager
def named_progress(title: str, quiet: bool) -> Iterator[Callable[[str, int, int], None]]:
    """Show steps that have names; give what takes a name ('': the last), steps done, all steps."""
    with _shown(Tracker({title: Stage(title, 1, "steps")}), quiet) as tracker:
        tracker.begin(title)

        def move(name: str, done: int, total: int) -> None:
            tracker.report(title, done, total, title=name or tracker.title)

        yield move


@contextmanager
def tasks_progress(quiet: bool, workers: int = 1) -> Iterator[Callable[[Any], None]]:
    """Show tasks done, running and failed; give what takes the state of a run."""
    with _shown(Tracker({"tasks": Stage("tasks", 1, "tasks")}, ("tasks",)), quiet) as tracker:
        tracker.begin("tasks")

        def move(state: Any) -> None:
            if "tasks" not in tracker.counts:  # all before the first one were in the store
                tracker.remaining.begin("tasks", stored=state.done - 1)
            running = min(workers, state.total - state.done)
            remark = f"{running} running" if workers > 1 and running else ""
            failed = f"{state.failed} failed" if state.failed else ""
            remark = ", ".join(filter(None, (remark, failed)))
            tracker.report("tasks", state.done, state.total, remark=remark)

        yield move


@contextmanager
def stages_progress(
    quiet: bool, stages: Mapping[str, Stage] = AUDIT, stored: tuple[str, ...] = STORED_BY_AUDIT
) -> Iterator[Callable[[str, int, int], None]]:
    """Show the stages of an audit; give what takes the stage, its steps done, and all its steps."""
    with _shown(Tracker(stages, stored), quiet) as tracker:
        yield tracker.report
