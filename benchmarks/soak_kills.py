"""Killed processes: what is there is whole, and a second run gives what an undisturbed one does."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

import unskew as us
from unskew.engine.store import Store

LIMIT = 300.0
"""Seconds for a command that is not killed."""

PLAN = """seed = 3
metrics = ["P@5", "nDCG@10"]
[data]
file = "ratings.csv"
[relevance]
liked = 4
[[split]]
protocol = "random"
folds = 3
[[targets]]
design = "all-items"
[[algorithm]]
name = "popularity"
[[algorithm]]
name = "item-knn"
k = [3, 5, 10, 20]
"""


@dataclass(frozen=True)
class Job:
    """A command that writes, and what it writes."""

    name: str
    arguments: tuple[str, ...]
    outputs: tuple[str, ...]
    """Files and folders: whole or absent at any moment, and always the same bytes."""
    store: str = ""
    """A folder of results: every result in it is whole at any moment."""
    partial: tuple[str, ...] = ()
    """Folders that a second run goes on with: compared when it is done."""
    twice: bool = False
    """Whether a second process runs the same at once, and is not killed."""


LISTS = ("-j", "test.csv", "-r", "a.csv", "-r", "b.csv", "-m", "P@5", "-m", "nDCG@10",
         "--liked", "4")  # fmt: skip
RUN = ("run", "plan.toml", "--store", "store", "-o", "means.csv", "-q")

JOBS = (
    Job("run --store", RUN, ("means.csv",), store="store"),
    Job("run --store, two at once", RUN, ("means.csv",), store="store", twice=True),
    Job("evaluate --on-disk", ("evaluate", "-j", "test.parquet", "-r", "a.parquet", "-r",
                               "b.parquet", "-m", "P@5", "--liked", "4", "--on-disk", "disk"),
        (), partial=("disk",)),
    Job("split -o", ("split", "ratings.csv", "--folds", "3", "-o", "parts"), ("parts",)),
    Job("evaluate -o --per-user --save", ("evaluate", *LISTS, "-o", "means.json", "--per-user",
                                          "users.parquet", "--save", "scores"),
        ("means.json", "users.parquet", "scores")),
    Job("recommend -o --save-model", ("recommend", "--train", "ratings.csv", "-a", "item-knn",
                                      "--depth", "20", "-o", "lists.parquet", "--save-model",
                                      "some.model"), ("lists.parquet", "some.model")),
    Job("annotate plan -o", ("annotate", "plan", "-r", "a.csv", "-r", "b.csv", "-m", "P@5",
                             "--budget", "40", "-o", "judged"), ("judged",)),
    Job("world -o", ("world", "null", "--users", "300", "--items", "80", "-o", "world"),
        ("world",)),
    Job("audit --store", ("audit", "ratings.csv", "--quick", "--liked", "4", "--algorithms",
                          "popularity,random", "--store", "store", "-o", "report.html", "-q"),
        ("report.html",), store="store"),
)  # fmt: skip
RARE = "audit --store"
"""It takes many times as long as the others: one kill in forty."""


def write_data(folder: Path) -> None:
    """Write ratings, lists and a plan."""
    folder.mkdir()
    data = us.world("shop", users=300, items=80, seed=4).ratings.to_polars()
    data = data.select("user", "item", "rating")
    data.write_csv(folder / "ratings.csv")
    test = data.filter(pl.int_range(pl.len()) % 4 == 0)
    rng = np.random.default_rng(5)
    frames = {"test": test}
    pairs = data.select("user", "item")
    for name in "ab":
        frames[name] = pairs.with_columns(score=pl.Series(rng.permutation(pairs.height) / 8))
    for name, frame in frames.items():
        frame.write_csv(folder / f"{name}.csv")
        frame.write_parquet(folder / f"{name}.parquet")
    (folder / "plan.toml").write_text(PLAN)


def start(folder: Path, arguments: tuple[str, ...], **more: Any) -> subprocess.Popen[bytes]:
    """Start a command in a folder, as the leader of a group of processes."""
    (folder / "tmp").mkdir(exist_ok=True)
    variables = {**os.environ, "TMPDIR": str(folder / "tmp")}
    return subprocess.Popen(
        [sys.executable, "-m", "unskew", *arguments], cwd=folder, env=variables,
        stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, start_new_session=True, **more,
    )  # fmt: skip


def finish(process: subprocess.Popen[bytes]) -> tuple[int, str]:
    """Wait for a command; return its exit code and what it said on standard error."""
    try:
        _, err = process.communicate(timeout=LIMIT)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        _, err = process.communicate()
        return -99, err.decode(errors="replace")
    return process.returncode, err.decode(errors="replace")


def contents(path: Path) -> dict[str, str]:
    """Return a digest of each file below a path; parts that writers left do not count."""
    files = [path] if path.is_file() else sorted(p for p in path.rglob("*") if p.is_file())
    return {
        str(file.relative_to(path)): hashlib.sha256(file.read_bytes()).hexdigest()
        for file in files
        if not any(part.endswith(".part") for part in file.relative_to(path.parent).parts)
    }


def results(store: Path) -> dict[str, str]:
    """Return a digest of each result in a store."""
    if not (store / "results").is_dir():
        return {}
    return {
        file.name: hashlib.sha256(file.read_bytes()).hexdigest()
        for file in (store / "results").glob("*/*.result")
    }


class Kills:
    """Killed commands on one set of data; how each ends undisturbed is worked out once."""

    def __init__(self, home: Path) -> None:
        self.home = home
        self.data = home / "data"
        write_data(self.data)
        self.known: dict[str, tuple[float, dict[str, Any], dict[str, str]]] = {}

    def undisturbed(self, job: Job) -> tuple[float, dict[str, Any], dict[str, str]]:
        """Return how long a command takes, what it writes and what its store holds."""
        if job.name not in self.known:
            seconds = 0.0
            for _ in range(2):  # the first may compile
                folder = self.fresh()
                begin = time.perf_counter()
                code, err = finish(start(folder, job.arguments))
                seconds = time.perf_counter() - begin
                if code:
                    raise RuntimeError(f"{job.name}: exit code {code}: {err}")
            written = {name: contents(folder / name) for name in (*job.outputs, *job.partial)}
            if not all(written.values()):
                raise RuntimeError(f"{job.name}: writes nothing to {written}")
            stored = results(folder / job.store) if job.store else {}
            self.known[job.name] = (seconds, written, stored)
        return self.known[job.name]

    def fresh(self) -> Path:
        """Return a new copy of the data."""
        folder = self.home / "work"
        shutil.rmtree(folder, ignore_errors=True)
        shutil.copytree(self.data, folder)
        return folder

    def run(self, seed: int) -> dict[str, Any]:
        """Kill a command at a moment drawn by the seed, run it again, and compare."""
        rng = np.random.default_rng([9, seed])
        usual = [job for job in JOBS if job.name != RARE]
        job = usual[seed % len(usual)] if seed % 40 else JOBS[-1]
        seconds, written, stored = self.undisturbed(job)
        # Half of them in the second half of the time, where most is written.
        moment = float(rng.uniform(seconds / 2 if rng.integers(2) else 0, seconds))
        folder = self.fresh()
        processes = [start(folder, job.arguments) for _ in range(1 + job.twice)]
        time.sleep(moment)
        ended = processes[0].poll() is not None
        if not ended:
            os.killpg(processes[0].pid, signal.SIGKILL)
        processes[0].communicate()
        problems = self.whole(job, folder, written, stored)
        for other in processes[1:]:
            code, err = finish(other)
            if code:
                problems.append(f"the other process: exit code {code}: {err[-300:]}")
        state = "finished" if ended else self.state(job, folder)
        if not self.is_done(job, folder):
            code, err = finish(start(folder, job.arguments))
            if code:
                problems.append(f"the second run: exit code {code}: {err[-300:]}")
        problems += self.equal(job, folder, written, stored)
        return {"seed": seed, "job": job.name, "share": round(moment / seconds, 3), "state": state,
                "problems": problems}  # fmt: skip

    def whole(self, job: Job, folder: Path, written: Any, stored: dict[str, str]) -> list[str]:
        """Return what is there and not whole, right after the kill."""
        problems = [
            f"{name}: half written"
            for name in job.outputs
            if (folder / name).exists() and contents(folder / name) != written[name]
        ]
        if job.store and not job.twice:
            wrong = {k: v for k, v in results(folder / job.store).items() if stored.get(k) != v}
            problems += [f"{name}: not the result that belongs there" for name in wrong]
            if (folder / job.store / "unskew-store.json").exists():
                faults = Store.open(folder / job.store).verify()
                problems += [one for one in faults if "left by a stopped writer" not in one]
        return problems

    def state(self, job: Job, folder: Path) -> str:
        """Say how far a killed command came."""
        if self.is_done(job, folder):
            return "all written"
        places = [*job.outputs, *job.partial, *([job.store] if job.store else [])]
        return (
            "some written" if any((folder / name).exists() for name in places) else "none written"
        )

    def is_done(self, job: Job, folder: Path) -> bool:
        """Tell whether everything is there that a command writes once."""
        return bool(job.outputs) and all((folder / name).exists() for name in job.outputs)

    def equal(self, job: Job, folder: Path, written: Any, stored: dict[str, str]) -> list[str]:
        """Return what differs in the end from a run that was never killed."""
        problems = [
            f"{name}: differs from an undisturbed run"
            for name, expected in written.items()
            if not (folder / name).exists() or contents(folder / name) != expected
        ]
        if job.store:
            if results(folder / job.store) != stored:
                problems.append("the store holds other results than that of an undisturbed run")
            store = Store.open(folder / job.store)
            store.gc()
            problems += store.verify()
        return problems


def count_kills(count: int, first: int) -> Iterator[dict[str, Any]]:
    """Kill commands; yield after each kill what came of all so far."""
    by_job: dict[str, Counter[str]] = {}
    problems = []
    with tempfile.TemporaryDirectory() as home:
        kills = Kills(Path(home))
        done, seed = 0, first
        while done < count:
            case = kills.run(seed)
            seed += 1
            counts = by_job.setdefault(case["job"], Counter())
            counts[case["state"]] += 1
            done += case["state"] != "finished"  # it came too late to kill anything
            if case["problems"]:
                counts["lost or changed"] += 1
                problems.append(case)
                print(json.dumps(case), flush=True)
            yield {
                "kills": done,
                "first": first,
                "lost_or_changed": len(problems),
                "by_command": {name: dict(counts) for name, counts in sorted(by_job.items())},
                "problems": problems[:20],
            }
