"""What audits cost: constants of the model of cost, how far estimates are off, and how cost grows.

python benchmarks/cost.py fit          measure every constant and write recommend/cost_constants.py
python benchmarks/cost.py check        estimates beside what audits took, on five sizes
python benchmarks/cost.py grow         time and memory against each size alone; docs/cost.md's table
python benchmarks/cost.py run JSON     one audit, in a process of its own

Time is processor time of the process and its children: other work on the machine disturbs it least.
"""

from __future__ import annotations

import json
import re
import resource
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
from scipy.optimize import least_squares, nnls

import cost_data
import unskew as us
from unskew.auditing.estimate import Estimate, estimate_audit
from unskew.recommend import cost_constants
from unskew.recommend.costs import DataShape, Machine, Work, seconds_of, work_of
from unskew.recommend.registry import algorithm

HERE = Path(__file__).resolve().parent
RESULTS = HERE / "cost_results.json"
TABLE = Path(cost_constants.__file__)
SYSTEMS = (
    *("random", "popularity", "smoothed-average", "user-knn", "item-knn", "puresvd", "ease"),
    *("slim", "wrmf", "bprmf", "plsa"),
)
SHAPES = ((60_000, 800, 1_200), (300_000, 3_000, 2_000), (800_000, 5_000, 3_500))
"""Ratings, users and items on which single fits are timed."""
TRAINED = {
    "bprmf": {"epochs": 10},
    "plsa": {"iterations": 20},
    "wrmf": {"iterations": 5},
}
"""Settings by which long fits are timed: their time is proportional to these."""
AUDITS: tuple[dict[str, object], ...] = (
    {"size": (8_000, 150, 200)},
    {"size": (20_000, 400, 500)},
    {"size": (60_000, 2_500, 600), "tune": False},
    {"size": (100_000, 943, 1_682)},
    {"size": (150_000, 3_000, 1_500), "tune": False},
    {"size": (400_000, 5_000, 3_000), "tune": False},
    {"size": (100_000, 2_000, 1_000), "level": "default", "tune": False},
    {"size": (300_000, 9_000, 1_000), "algorithms": ["random", "popularity", "puresvd"]},
)
"""Audits by which the constants of stages are fitted."""


def spent() -> float:
    """Return the processor time of this process and of the children that it waited for."""
    ended = resource.getrusage(resource.RUSAGE_CHILDREN)
    return time.process_time() + ended.ru_utime + ended.ru_stime


def peak_bytes() -> int:
    """Return the most memory that this process held; `ru_maxrss` may be that of its parent."""
    status = Path("/proc/self/status").read_text()
    return 1024 * int(re.search(r"VmHWM:\s+(\d+) kB", status)[1])


# One audit


def audited(job: dict) -> dict:
    """Run an audit in a process of its own; return seconds by stage, in all, and peak bytes."""
    done = subprocess.run(
        [sys.executable, __file__, "run", json.dumps(job)],
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        raise SystemExit(done.stderr)
    return json.loads(done.stdout.splitlines()[-1])


def run(job: dict) -> dict:
    """Run one audit here."""
    stages: dict[str, float] = {}
    last = ["reading", spent()]

    def move(stage: str, _done: int, _total: int) -> None:
        now = spent()
        stages[last[0]] = stages.get(last[0], 0.0) + now - last[1]
        last[:] = [stage, now]

    ratings = ratings_of(job)
    begun, clock = spent(), time.perf_counter()
    last[1] = begun
    options = {name: job[name] for name in ("tune", "algorithms", "designs") if name in job}
    more = {"users": job["users"]} if "users" in job else {}
    us.audit(ratings, job.get("level", "quick"), liked=4, progress=move, **options, **more)
    move("", 1, 1)
    return {
        "stages": stages,
        "seconds": spent() - begun,
        "clock": time.perf_counter() - clock,
        "bytes": peak_bytes(),
    }


def ratings_of(job: dict) -> us.Ratings:
    """Return the ratings of a job: of a size, or of a named data set."""
    if "name" in job:
        return us.load(job["name"]).ratings
    return cost_data.made(*job["size"])


def estimated(job: dict) -> Estimate:
    """Return the estimate of a job, on the machine of the constants."""
    options = {name: job[name] for name in ("tune", "algorithms", "designs") if name in job}
    more = {"users": job["users"]} if "users" in job else {}
    level = job.get("level", "quick")
    return estimate_audit(ratings_of(job), level, machine=Machine(), **options, **more)


# The constants


def fit() -> None:
    """Measure all constants and write them."""
    nanoseconds = dict(cost_constants.NANOSECONDS)
    nanoseconds |= _algorithm_constants()
    cost_constants.NANOSECONDS.update(nanoseconds)
    of_stages, sizes = _audit_constants()
    nanoseconds |= of_stages
    write(nanoseconds, {**cost_constants.BYTES, **sizes})
    print(f"written to {TABLE}")


def _algorithm_constants() -> dict[str, float]:
    """Time single fits and scores, and solve for the operations."""
    rows: list[tuple[dict[str, float], float, str]] = []
    for size in SHAPES:
        ratings = cost_data.made(*size)
        shape = DataShape.of(ratings)
        for name in SYSTEMS:
            one = algorithm(name, **TRAINED.get(name, {}))
            one.fit(ratings.take(ratings.user < 20), 0)  # kernels are compiled here
            begun = spent()
            model = one.fit(ratings, 0)
            took = spent() - begun
            users = np.arange(512, dtype=np.int32)
            model.score(users)
            begun = spent()
            for _ in range(4):
                model.score(users)
            score = (spent() - begun) / 2_048
            work = work_of(one, shape)
            if work is None:
                continue
            rows += [(work.fit, took, f"{name} fit {size}")]
            rows += [(work.score, score, f"{name} score {size}")]
            print(f"{name:18s} {size} fit {took:.3f} s, score {1e6 * score:.1f} us", flush=True)
    rows = [row for row in rows if row[1] > (0.01 if " fit " in row[2] else 0) and row[0]]
    return solved(rows)


def solved(rows: list[tuple[dict[str, float], float, str]]) -> dict[str, float]:
    """Return the nanoseconds per operation that explain times best, by their ratios."""
    kinds = sorted({kind for operations, _, _ in rows for kind in operations})
    A = np.array([[1e-9 * one.get(kind, 0.0) / took for kind in kinds] for one, took, _ in rows])
    scale = np.maximum(A.max(axis=0), 1e-300)
    A = A / scale
    begin = np.maximum(nnls(A, np.ones(len(rows)))[0], 1e-3)
    best = least_squares(lambda x: np.log(A @ np.exp(x)), np.log(begin), bounds=(-12, 3))
    values = np.exp(best.x) / scale
    for operations, took, label in rows:
        by = sum(1e-9 * values[kinds.index(kind)] * n for kind, n in operations.items())
        print(f"  {label:40s} {took:12.6f} model {by:12.6f}  x{by / took:.2f}")
    return dict(zip(kinds, map(float, values), strict=True))


STAGES = {
    "reading": ("reading",),
    "splits": ("splits",),
    "work": ("designs", "null experiment"),
    "conclusions": ("conclusions",),
    "diagnostics": ("diagnostics",),
    "statements": ("statements",),
}
"""Stages that are fitted together."""


def _audit_constants() -> tuple[dict[str, float], dict[str, float]]:
    """Run audits, and solve for the operations that are no fits, and for the bytes."""
    of_fits = _fit_kinds()
    parts: dict[str, list[tuple[dict[str, float], float, str]]] = {name: [] for name in STAGES}
    memory: list[tuple[dict[str, float], float, str]] = []
    for job in AUDITS:
        result, estimate = audited(job), estimated(job)
        print(json.dumps({"job": job, **result}), flush=True)
        operations = stage_operations(estimate)
        for name, stages in STAGES.items():
            for stage in stages:
                own = operations.get(stage, {})
                known = seconds_of({k: n for k, n in own.items() if k in of_fits})
                rest = {k: n for k, n in own.items() if k not in of_fits}
                took = result["stages"].get(stage, 0.0)
                left = max(took - known, 0.1 * took)
                if rest and took > 0.02:
                    parts[name].append((rest, left, f"{stage} {job['size']}"))
        sizes = estimate.work.sizes()
        left = result["bytes"] - sizes.pop("model")
        memory.append(({k: 1e9 * n for k, n in sizes.items()}, left, f"bytes {job['size']}"))
    constants: dict[str, float] = {}
    for rows in parts.values():
        constants |= solved(rows) if rows else {}
    return constants, solved(memory)


def _fit_kinds() -> set[str]:
    """Return the operations of fits and scores."""
    shape = DataShape(1_000, 100, 50)
    works = [work_of(algorithm(name), shape) for name in SYSTEMS]
    works.append(work_of(algorithm("user-knn", k=None), shape))
    known: list[Work] = [one for one in works if one is not None]
    return {kind for one in known for kind in (*one.fit, *one.score)}


def stage_operations(estimate: Estimate) -> dict[str, dict[str, float]]:
    """Return the operations of an audit by stage."""
    from unskew.auditing.audit_work import together

    parts = [estimate.work.stages_of(name) for name in estimate.work.systems]
    parts.append(estimate.work.shared_stages())
    stages = dict.fromkeys(stage for part in parts for stage in part)
    return {stage: together(*(part.get(stage, {}) for part in parts)) for stage in stages}


def write(nanoseconds: dict[str, float], sizes: dict[str, float]) -> None:
    """Put the constants into their module."""
    text = TABLE.read_text()
    for name, values in (("NANOSECONDS", nanoseconds), ("BYTES", sizes)):
        lines = "".join(f'    "{kind}": {values[kind]:.3g},\n' for kind in sorted(values))
        text = re.sub(
            rf"{name}: dict\[str, float\] = {{\n.*?\n}}",
            f"{name}: dict[str, float] = {{\n{lines}}}",
            text,
            flags=re.DOTALL,
        )
    TABLE.write_text(text)


# How far off


def check(sizes: list[str]) -> None:
    """Print estimates beside what audits took."""
    print("| ratings | estimated s | took s | ratio | estimated GiB | took GiB | ratio |")
    print("|---|---:|---:|---:|---:|---:|---:|")
    for name in sizes:
        job: dict = {"size": cost_data.SIZES[name]}
        estimate, result = estimated(job), audited(job)
        by, took = estimate.cpu_seconds, result["seconds"]
        held, used = estimate.bytes / 2**30, result["bytes"] / 2**30
        row = [name, f"{by:.1f}", f"{took:.1f}", f"{by / took:.2f}"]
        row += [f"{held:.2f}", f"{used:.2f}", f"{held / used:.2f}"]
        print(f"| {' | '.join(row)} |", flush=True)
        for stage, seconds in estimate.by_stage.items():
            print(f"    {stage:18s} {seconds:8.1f} {result['stages'].get(stage, 0.0):8.1f}")


if __name__ == "__main__":
    match sys.argv[1:]:
        case ["run", text]:
            print(json.dumps(run(json.loads(text))))
        case ["fit"]:
            fit()
        case ["check", *names]:
            check(names or list(cost_data.SIZES))
        case _:
            raise SystemExit(__doc__)
