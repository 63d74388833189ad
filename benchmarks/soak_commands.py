"""Random commands on random data, most of them under a fault; then once more without it.

After every case: an exit code of the documented ones, no traceback, outputs whole or absent, and
the same command without the fault prints and writes what it does where nothing ever failed.
"""

from __future__ import annotations

import json
import os
import re
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from soak_kills import LIMIT, contents

TESTS = Path(__file__).parents[1] / "tests"
sys.path.insert(0, str(TESTS))

from shared.commands import (  # noqa: E402
    FOLDERS,
    GATES,
    LISTS,
    PLAN,
    REPORTS,
    TABLES,
    write_annotation,
)

LEFT_OUT = ("demo", "study run", "audit")
"""They take minutes at this load; `audit --store` is among the commands that are killed."""
CODES = (0, 1, 2, 130, 141)
GATE_CODES = (0, 1, 2, 3, 130, 141)
ABORTED = -signal.SIGABRT
"""The exit code where polars, which is written in Rust, finds no memory: it ends the process."""
VARIANTS = 4
MEGABYTE = 1 << 20
FAULTS = ("none", "full output", "file size", "memory", "interrupt", "two at once", "kill")


@dataclass(frozen=True)
class Command:
    """A command with all its arguments, and the files it writes."""

    name: str
    arguments: tuple[str, ...]
    outputs: tuple[str, ...]


@dataclass(frozen=True)
class Outcome:
    """How a command ended: its exit code, and what it printed and wrote."""

    code: int
    out: str
    err: str
    written: dict[str, dict[str, str]]


def write_data(folder: Path, variant: int) -> None:
    """Write random ratings, lists, logs and values, with the names that the commands take."""
    folder.mkdir()
    rng = np.random.default_rng([11, variant])
    users, items = int(rng.integers(10, 40)), int(rng.integers(8, 25))
    grid = [(u, i, int(rng.integers(1, 6))) for u in range(users) for i in range(items)]
    chosen = rng.random(len(grid))
    names = ["user", "item", "rating"]
    for name, low, high in (("test", 0, 0.45), ("train", 0.45, 0.8)):
        rows = [row for row, x in zip(grid, chosen, strict=True) if low <= x < high]
        pl.DataFrame(rows, names, orient="row").write_csv(folder / f"{name}.csv")
    for name in "ab":
        rows = [(u, int(i), k) for u in range(users)
                for k, i in enumerate(rng.permutation(items)[:6], 1)]  # fmt: skip
        pl.DataFrame(rows, ["user", "item", "rank"], orient="row").write_csv(folder / f"{name}.csv")
    stamps = [(u, int(rng.integers(items)), 86_400 * k + 60 * u) for u in range(users)
              for k in range(12)]  # fmt: skip
    pl.DataFrame(stamps, ["user", "item", "time"], orient="row").write_csv(folder / "log.csv")
    for name in ("books", "films"):
        values = [(u, *rng.random(2)) for u in range(users)]
        pl.DataFrame(values, ["user", "x", "y"], orient="row").write_csv(folder / f"{name}.csv")
    (folder / "plan.toml").write_text(PLAN)
    write_annotation(folder)


def draw(rng: np.random.Generator) -> Command:
    """Draw a command, its output and its format."""
    known = {**TABLES, **FOLDERS, **REPORTS, **GATES, **LISTS}
    names = sorted(name for name in known if name not in LEFT_OUT)
    name = names[int(rng.integers(len(names)))]
    arguments = [*name.split(), *known[name]]
    endings = ("csv", "json", "md", "tex", "html") if name in TABLES else ("html", "md", "json")
    if name in FOLDERS:
        output = "out"
    elif name in LISTS:
        output = f"out.{('csv', 'parquet')[int(rng.integers(2))]}"
    else:
        output = f"out.{endings[int(rng.integers(len(endings)))]}" if rng.integers(2) else ""
    if output:
        arguments += ["-o", output]
    elif name in TABLES and rng.integers(2):
        arguments += ["--format", ("csv", "json", "markdown")[int(rng.integers(3))]]
    return Command(name, tuple(arguments), (output,) if output else ())


def limited(kind: int, amount: int) -> Callable[[], None]:
    """Return what sets a limit in a new process."""
    return lambda: resource.setrlimit(kind, (amount, amount))


class Commands:
    """Commands in a folder; how each ends undisturbed is worked out once."""

    def __init__(self, home: Path) -> None:
        self.home = home
        self.clean: dict[tuple[int, Command], Outcome] = {}
        for variant in range(VARIANTS):
            write_data(home / f"data{variant}", variant)

    def fresh(self, variant: int, name: str) -> Path:
        """Return a new copy of the data."""
        folder = self.home / name
        shutil.rmtree(folder, ignore_errors=True)
        shutil.copytree(self.home / f"data{variant}", folder)
        (folder / "tmp").mkdir()
        return folder

    def start(self, folder: Path, arguments: tuple[str, ...], **more: Any) -> Any:
        """Start a command; what it prints goes to files."""
        variables = {**os.environ, "TMPDIR": str(folder / "tmp"), "COLUMNS": "100"}
        settings = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "cwd": folder,
                    "env": variables, "start_new_session": True, **more}  # fmt: skip
        return subprocess.Popen([sys.executable, "-m", "unskew", *arguments], **settings)

    def end(self, process: Any, folder: Path, command: Command) -> Outcome:
        """Wait for a command; one that does not end is killed, and has the exit code -99."""
        try:
            out, err = process.communicate(timeout=LIMIT)
            code = process.returncode
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            out, err = process.communicate()
            code = -99
        written = {name: contents(folder / name) for name in command.outputs
                   if (folder / name).exists()}  # fmt: skip
        printed = re.sub(r"\d+\.\d s\b", "some s", (out or b"").decode(errors="replace"))
        return Outcome(code, printed, err.decode(errors="replace"), written)

    def undisturbed(self, variant: int, command: Command) -> Outcome:
        """Return how a command ends where nothing fails."""
        if (variant, command) not in self.clean:
            folder = self.fresh(variant, "clean")
            process = self.start(folder, command.arguments)
            self.clean[variant, command] = self.end(process, folder, command)
        return self.clean[variant, command]

    def run(self, seed: int) -> dict[str, Any]:
        """Run a command under a fault, all drawn by the seed, and then without it."""
        rng = np.random.default_rng([13, seed])
        variant, command = int(rng.integers(VARIANTS)), draw(rng)
        fault = FAULTS[int(rng.integers(len(FAULTS)))]
        expected = self.undisturbed(variant, command)
        folder = self.fresh(variant, "work")
        problems = [*judged(command, expected, "undisturbed")]
        ends = self.disturbed(fault, folder, command, rng)
        for one in ends:
            problems += judged(command, one, fault)
            problems += [f"{name}: half written" for name, files in one.written.items()
                         if files != expected.written.get(name)]  # fmt: skip
        ending = "ended as undisturbed"
        if any(one.code != expected.code for one in ends):
            ending = "killed" if fault == "kill" else "stopped with a message"
        if any(one.code == ABORTED for one in ends):
            ending = "ended by a library without memory"
        if any(one.code == -99 for one in ends):
            ending = "no answer"
        if command.name not in FOLDERS or not any(one.written for one in ends):
            again = self.end(self.start(folder, command.arguments), folder, command)
            problems += judged(command, again, "again")
            if (again.code, again.out, again.written) != (
                expected.code, expected.out, expected.written
            ):  # fmt: skip
                problems.append("without the fault, it does not end as undisturbed")
        return {"seed": seed, "command": command.name, "arguments": command.arguments,
                "fault": fault, "codes": [one.code for one in ends], "end": ending,
                "problems": problems, "said": [one.err[-400:] for one in ends]}  # fmt: skip

    def disturbed(
        self, fault: str, folder: Path, command: Command, rng: np.random.Generator
    ) -> list[Outcome]:
        """Run a command under a fault; two of them where two run at once."""
        arguments, more = command.arguments, {}
        if fault == "full output":
            if command.outputs and command.name not in FOLDERS and "." in command.outputs[0]:
                arguments = tuple("/dev/full" if a == command.outputs[0] else a for a in arguments)
            with Path("/dev/full").open("wb") as full:
                process = self.start(folder, arguments, stdout=full)
            return [self.end(process, folder, command)]
        if fault == "file size":
            more["preexec_fn"] = limited(resource.RLIMIT_FSIZE, int(2 ** rng.uniform(0, 16)))
        if fault == "memory":
            amount = int(rng.uniform(600, 3000)) * MEGABYTE
            more["preexec_fn"] = limited(resource.RLIMIT_AS, amount)
        processes = [self.start(folder, arguments, **more)]
        if fault == "two at once":
            processes.append(self.start(folder, arguments))
        if fault in ("interrupt", "kill"):
            time.sleep(float(rng.uniform(0.05, 2.5)))
            if processes[0].poll() is None:
                os.killpg(
                    processes[0].pid, signal.SIGINT if fault == "interrupt" else signal.SIGKILL
                )
        return [self.end(process, folder, command) for process in processes]


def judged(command: Command, outcome: Outcome, fault: str) -> list[str]:
    """Return what is wrong with how a command ended."""
    allowed = {*(GATE_CODES if command.name in GATES else CODES)}
    if fault == "kill":
        allowed.add(-signal.SIGKILL)
    if fault == "memory" and "memory allocation" in outcome.err:
        allowed.add(ABORTED)
    if fault == "interrupt" and "unskew" not in outcome.err:
        allowed |= {-signal.SIGINT, 1}  # Python itself was still starting
        return [] if outcome.code in allowed else [f"{fault}: exit code {outcome.code}"]
    problems = []
    if outcome.code not in allowed:
        problems.append(f"{fault}: exit code {outcome.code}: {outcome.err[-300:]}")
    if "Traceback (most recent" in outcome.err or "defect of unskew" in outcome.err:
        problems.append(f"{fault}: a traceback: {outcome.err[-600:]}")
    return problems


def count_commands(minutes: float, first: int, most: int | None = None) -> Iterator[dict[str, Any]]:
    """Run random commands for some minutes; yield after each one how all so far ended."""
    begin, seed = time.perf_counter(), first
    by_fault: dict[str, Counter[str]] = {fault: Counter() for fault in FAULTS}
    by_command: Counter[str] = Counter()
    problems = []
    with tempfile.TemporaryDirectory() as home:
        commands = Commands(Path(home))
        while time.perf_counter() - begin < 60 * minutes and (most is None or seed < first + most):
            case = commands.run(seed)
            seed += 1
            counts = by_fault[case["fault"]]
            counts["cases"] += 1
            counts[case["end"]] += 1
            by_command[case["command"]] += 1
            if case["problems"]:
                counts["problems"] += 1
                problems.append(case)
                print(json.dumps(case), flush=True)
            yield {
                "cases": seed - first,
                "first": first,
                "minutes": round((time.perf_counter() - begin) / 60),
                "by_fault": {fault: dict(counts) for fault, counts in by_fault.items()},
                "commands": dict(sorted(by_command.items())),
                "problems": problems[:20],
            }
