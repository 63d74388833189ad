"""What audits cost: constants of the model of cost, how far estimates are off, and how cost grows.

python benchmarks/cost.py fit          measure every constant and write recommend/cost_constants.py
python benchmarks/cost.py solve        the same from what fit measured last
python benchmarks/cost.py check        estimates beside what audits took, on five sizes
python benchmarks/cost.py grow         time and memory against each size alone; docs/cost.md's table
python benchmarks/cost.py paper        what a billion ratings would need on a cluster
python benchmarks/cost.py show         the same table and figure, from what grow kept
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
from dataclasses import replace
from pathlib import Path

import numpy as np
from scipy.optimize import least_squares

import cost_data
import unskew as us
from unskew.auditing.estimate import Estimate, estimate_audit, in_time
from unskew.auditing.large_data import in_bytes
from unskew.recommend import cost_constants
from unskew.recommend.costs import DataShape, Machine, Work, seconds_of, work_of
from unskew.recommend.registry import algorithm
from unskew.report.charts import Figure, as_figure
from unskew.report.text import counted

HERE = Path(__file__).resolve().parent
MEASURED = HERE / "cost_measured.json"
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
    {"size": (100_000, 943, 1_682)},
    {"size": (100_000, 2_000, 1_000), "level": "default", "tune": False},
    {"size": (150_000, 3_000, 1_500), "tune": False},
    {"size": (400_000, 5_000, 3_000), "tune": False},
    {"size": (300_000, 9_000, 1_000), "algorithms": ["popularity", "item-knn", "puresvd"]},
    {
        "size": (4_000_000, 60_000, 8_000),
        "algorithms": ["popularity", "item-knn", "puresvd"],
        "users": 5_000,
    },
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
    level = job.get("level", "quick")
    result = us.audit(ratings, level, liked=4, progress=move, **options, **more)
    move("", 1, 1)
    return {
        "stages": stages,
        "seconds": spent() - begun,
        "clock": time.perf_counter() - clock,
        "bytes": peak_bytes(),
        "repeats": None if result.null is None else result.null.repeats,
    }


def ratings_of(job: dict) -> us.Ratings | DataShape:
    """Return the ratings of a job: of a size, or of a named data set."""
    if "shape" in job:  # of data that are elsewhere: for estimates only
        return DataShape(*job["shape"])
    if "name" in job:
        return us.load(job["name"]).ratings
    return cost_data.made(*job["size"])


def estimated(job: dict, repeats: int | None = None) -> Estimate:
    """Return the estimate of a job on the machine of the constants, with given null repeats."""
    options = {name: job[name] for name in ("tune", "algorithms", "designs") if name in job}
    more = {"users": job["users"]} if "users" in job else {}
    level = job.get("level", "quick")
    estimate = estimate_audit(ratings_of(job), level, liked=4, machine=Machine(), **options, **more)
    if repeats is None:
        return estimate
    fixed = replace(estimate.work.level, repeats=repeats, most_repeats=repeats)
    return replace(estimate, work=replace(estimate.work, level=fixed))


# The constants


def fit() -> None:
    """Measure fits and audits, and solve for all constants."""
    known = {"fits": _timed_fits(), "audits": []}
    audited({"size": (3_000, 2_100, 50), "level": "default"})  # kernels are compiled
    for job in AUDITS:
        known["audits"].append({"job": job, **audited(job)})
        print(json.dumps(known["audits"][-1]), flush=True)
    MEASURED.write_text(json.dumps(known, indent=1) + "\n")
    solve()


def solve() -> None:
    """Solve for the constants that explain what was measured, and write them."""
    known = json.loads(MEASURED.read_text())
    shapes = {tuple(one["size"]): None for one in known["fits"]}
    shapes = {size: DataShape.of(cost_data.made(*size)) for size in shapes}
    rows: list[tuple[dict[str, float], float, str]] = []
    for one in known["fits"]:
        name, size = one["name"], tuple(one["size"])
        work = work_of(algorithm(name, **TRAINED.get(name, {})), shapes[size])
        if work is None:
            continue
        if work.fit and one["fit"] > 0.01:
            rows.append((work.fit, one["fit"], f"{name} fit {size}"))
        rows.append((work.score, one["score"], f"{name} score {size}"))
    cost_constants.NANOSECONDS.update(solved(rows))
    of_stages, sizes = _audit_constants(known["audits"])
    nanoseconds = cost_constants.NANOSECONDS | of_stages
    write(nanoseconds, {**cost_constants.BYTES, **sizes})
    print(f"written to {TABLE}")


def _timed_fits() -> list[dict]:
    """Time single fits, and scores of a user."""
    rows = []
    for size in SHAPES:
        ratings = cost_data.made(*size)
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
            rows.append({"name": name, "size": size, "fit": took, "score": score})
            print(json.dumps(rows[-1]), flush=True)
    return rows


def solved(rows: list[tuple[dict[str, float], float, str]]) -> dict[str, float]:
    """Return the nanoseconds per operation that explain times best, by their ratios.

    What the rows say little of stays near `USUAL`.
    """
    kinds = sorted({kind for operations, _, _ in rows for kind in operations})
    A = np.array([[1e-9 * one.get(kind, 0.0) / took for kind in kinds] for one, took, _ in rows])
    usual = np.log([USUAL[kind] for kind in kinds])

    def residuals(x: np.ndarray) -> np.ndarray:
        return np.concatenate([np.log(A @ np.exp(x)), STIFF * (x - usual)])

    values = np.exp(least_squares(residuals, usual).x)
    for operations, took, label in rows:
        by = sum(1e-9 * values[kinds.index(kind)] * n for kind, n in operations.items())
        print(f"  {label:40s} {took:12.6g} model {by:12.6g}  x{by / took:.2f}")
    return dict(zip(kinds, map(float, values), strict=True))


STIFF = 0.08
"""What one e-fold away from the usual value counts, beside one e-fold of a measured time."""
USUAL = {
    "draw": 0.5,
    "pass": 5.0,
    "score cell": 0.3,
    "vote": 1.0,
    "vote cell": 3.0,
    "vote row": 0.2,
    "factor cell": 8.0,
    "factor flop": 0.08,
    "sparse flop": 0.3,
    "svd flop": 0.1,
    "gram product": 0.8,
    "knn product": 1.1,
    "knn candidate": 0.8,
    "ease flop": 0.045,
    "slim cell": 500.0,
    "solve flop": 0.09,
    "sgd step": 1.0,
    "topic": 0.6,
    "start": 8e8,
    "read rating": 20.0,
    "split rating": 60.0,
    "redrawn rating": 40.0,
    "laid list": 1_500.0,
    "laid design": 5e6,
    "judged list": 3_000.0,
    "rank cell": 1.2,
    "task": 5e6,
    "task design": 5e6,
    "trial": 8e6,
    "trial user": 2_000.0,
    "concluded value": 1_000.0,
    "conclusion": 3e8,
    "permutation": 0.01,
    "diagnosed list": 4_000.0,
    "diagnosis": 1e8,
    "statement": 1.5e8,
    "stated rating": 800.0,
    "stated list": 5_000.0,
    "stated value": 300.0,
}
"""Values that were seen when constants were measured one by one."""
USUAL |= {
    f"{kind} bytes": size for kind, size in (("rating", 40.0), ("start", 3e8), ("value", 14.0))
}


STAGES = {
    "reading": ("reading",),
    "splits": ("splits",),
    "work": ("designs", "null experiment"),
    "conclusions": ("conclusions",),
    "diagnostics": ("diagnostics",),
    "statements": ("statements",),
}
"""Stages that are fitted together."""


def _audit_constants(audits: list[dict]) -> tuple[dict[str, float], dict[str, float]]:
    """Solve for the operations of audits that are no fits, and for the bytes."""
    of_fits = _fit_kinds()
    parts: dict[str, list[tuple[dict[str, float], float, str]]] = {name: [] for name in STAGES}
    memory: list[tuple[dict[str, float], float, str]] = []
    for result in audits:
        job = result["job"]
        estimate = estimated(job, result["repeats"])
        operations = stage_operations(estimate)
        label = job["size"] if "size" in job else job["shape"][:3]
        for name, stages in STAGES.items():
            for stage in stages:
                took = result["stages"].get(stage, 0.0)
                if operations.get(stage) and took > 0.02:
                    parts[name].append((operations[stage], took, f"{stage} {label}"))
        sizes = estimate.work.sizes()
        left = result["bytes"] - sizes.pop("model")
        held = {f"{kind} bytes": 1e9 * n for kind, n in sizes.items()}
        memory.append((held, left, f"bytes {label}"))
    constants: dict[str, float] = {}
    for rows in parts.values():  # what an earlier part told is known in a later one
        constants |= solved([_unknown(row, of_fits | set(constants), constants) for row in rows])
    return constants, {k.removesuffix(" bytes"): n for k, n in solved(memory).items()}


def _unknown(
    row: tuple[dict[str, float], float, str], known: set[str], constants: dict[str, float]
) -> tuple[dict[str, float], float, str]:
    """Return operations without those whose cost is known, and the time that is left for them."""
    operations, took, label = row
    cost = cost_constants.NANOSECONDS | constants
    spent = sum(1e-9 * cost[kind] * n for kind, n in operations.items() if kind in known)
    rest = {kind: n for kind, n in operations.items() if kind not in known}
    return rest, max(took - spent, 0.1 * took), label


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


def check(names: list[str]) -> None:
    """Print estimates beside what audits took, and put them into the page."""
    audited({"size": (3_000, 2_100, 50), "level": "default"})  # kernels are compiled
    lines = [
        "| ratings | estimated s | took s | ratio | estimated GiB | took GiB | ratio |",
        "|---|---:|---:|---:|---:|---:|---:|",
    ]
    for name in names:
        # A named size, or a file of ratings.
        job: dict = {"size": cost_data.SIZES[name]} if name in cost_data.SIZES else {"name": name}
        estimate, result = estimated(job), audited(job)
        by, took = estimate.cpu_seconds, result["seconds"]
        held, used = estimate.bytes / 2**30, result["bytes"] / 2**30
        row = [f"{estimate.work.shape.ratings:,}", f"{by:.0f}", f"{took:.0f}", f"{by / took:.2f}"]
        row += [f"{held:.2f}", f"{used:.2f}", f"{held / used:.2f}"]
        lines.append(f"| {' | '.join(row)} |")
        print(lines[-1], flush=True)
        for stage, seconds in estimate.by_stage.items():
            print(f"    {stage:18s} {seconds:8.1f} {result['stages'].get(stage, 0.0):8.1f}")
    _insert("check", lines)


# A cluster, on paper

BILLION = DataShape(10**9, 10**8, 10**6)
ROW = 16
"""Bytes of a rating: numbers of user and item, and its value."""
OVERHEAD = 5e-3
"""Seconds that a task costs a cluster (docs/cluster.md)."""
NETWORK = 1.25e9
"""Bytes a second that a worker receives: 10 Gbit."""


def paper() -> None:
    """Work out what a billion ratings need on a cluster, from the constants."""
    estimate = estimate_audit(BILLION, "quick", memory=256 << 30, machine=Machine())
    work = estimate.work
    stages = {name: work.stages_of(name) for name in work.systems}
    splits = {name: [group[0].repeats, len(group)] for name, group in work.splits.items()}
    places = sum(repeats for repeats, _ in splits.values())
    null = round(work.repeats) * len({one.split_key for one in work.null_designs})
    tasks = (places + null) * (len(work.systems) + 1)
    longest = max(
        seconds_of(operations["designs"]) / max(places, 1) for operations in stages.values()
    )
    lines = ["| | |", "|---|---:|"]
    send = BILLION.ratings * ROW
    values = sum(work.lists_of(one) * one.repeats for one in work.designs)
    rows = {
        "systems": ", ".join(work.systems),
        "left out": ", ".join(estimate.left_out),
        "tasks (systems x splits, null draws included)": f"{tasks:,}",
        "processor time": in_time(estimate.cpu_seconds),
        "the longest task": in_time(longest),
        "lost to the scheduler (5 ms a task)": f"{tasks * OVERHEAD:.1f} s",
        "memory of a worker": in_bytes(estimate.bytes),
        "ratings, sent once to each worker": in_bytes(send),
        "their way at 10 Gbit/s": f"{send / NETWORK:.0f} s",
        "results that come back": in_bytes(8 * values * len(work.systems) * work.metrics),
    }
    for count in (1, 4, 16):
        shared = sum(estimate.by_stage[s] for s in ("reading", "conclusions", "statements"))
        clock = max((estimate.cpu_seconds - shared) / count, longest) + shared + send / NETWORK
        rows[f"time on the clock with {counted(count, 'worker')}"] = in_time(clock)
    lines += [f"| {name} | {value} |" for name, value in rows.items()]
    print("\n".join(lines))
    _insert("paper", lines)


# How cost grows

BASE = {"ratings": 120_000, "users": 2_000, "items": 1_000}
NAMES = ("popularity", "item-knn", "random", "smoothed-average", "puresvd", "user-knn", "ease")
FIVE = NAMES[:5]
DESIGNS = ("all-items", "test-items", "1r", "p1r", "test-targets", "skew", "wtd-h", "u1r")
SWEEPS = {
    "ratings": (60_000, 120_000, 240_000, 480_000),
    "users": (1_000, 2_000, 4_000, 8_000),
    "items": (500, 1_000, 2_000, 4_000),
    "systems": (2, 3, 5, 7),
    "designs": (1, 2, 4, 7),
}
"""By size: its values; all others stay as in `BASE`, with five systems and eight designs."""


def grow() -> None:
    """Vary each size alone and keep what audits took; write the table and the figure."""
    rows = []
    audited({"size": (3_000, 2_100, 50), "level": "default"})  # kernels are compiled
    for name, values in SWEEPS.items():
        for value in values:
            result = audited(job_of(name, value))
            row = {"size": name, "value": value, "seconds": result["seconds"]}
            rows.append(row | {"bytes": result["bytes"], "repeats": result["repeats"]})
            print(json.dumps(rows[-1]), flush=True)
    RESULTS.write_text(json.dumps(rows, indent=1) + "\n")
    show()


def job_of(name: str, value: int) -> dict:
    """Return an audit in which one size is another."""
    sizes = BASE | ({name: value} if name in BASE else {})
    return {
        "size": (sizes["ratings"], sizes["users"], sizes["items"]),
        "algorithms": list(NAMES[:value] if name == "systems" else FIVE),
        "designs": list(DESIGNS[:value] if name == "designs" else DESIGNS),
        "tune": False,
    }


def exponent(x: list[float], y: list[float]) -> tuple[float, float]:
    """Return the slope of log y on log x, and its standard error."""
    a, b = np.log(x), np.log(y)
    a, b = a - a.mean(), b - b.mean()
    slope = float(a @ b / (a @ a))
    rest = b - slope * a
    return slope, float(np.sqrt(rest @ rest / max(len(x) - 2, 1) / (a @ a)))


def show() -> None:
    """Put the table into the page and draw the figure, from what `grow` kept."""
    rows = json.loads(RESULTS.read_text())
    for row in rows:
        row["estimated"] = estimated(job_of(row["size"], row["value"]), row["repeats"]).cpu_seconds
    lines = [
        "| varied alone | values | processor s | exponent of time | of the estimate | MiB | "
        "exponent of memory |",
        "|---|---|---|---:|---:|---|---:|",
    ]
    for name in SWEEPS:
        part = [row for row in rows if row["size"] == name]
        x = [row["value"] for row in part]
        slopes = [
            exponent(x, [row[key] for row in part]) for key in ("seconds", "estimated", "bytes")
        ]
        cells = [
            name,
            ", ".join(f"{value:,}" for value in x),
            ", ".join(f"{row['seconds']:.1f}" for row in part),
            f"{slopes[0][0]:.2f} ± {slopes[0][1]:.2f}",
            f"{slopes[1][0]:.2f}",
            ", ".join(f"{row['bytes'] / 2**20:,.0f}" for row in part),
            f"{slopes[2][0]:.2f} ± {slopes[2][1]:.2f}",
        ]
        lines.append(f"| {' | '.join(cells)} |")
    _insert("growth", lines)
    _figure(rows).save(HERE.parent / "docs" / "figures" / "cost.svg")


def _insert(name: str, lines: list[str]) -> None:
    """Replace what stands between two marks of the page."""
    page = HERE.parent / "docs" / "cost.md"
    begin, end = f"<!-- {name}: benchmarks/cost.py -->\n", f"<!-- end of {name} -->"
    text = page.read_text()
    before, rest = text.split(begin)
    after = rest.split(end, 1)[1]
    page.write_text(before + begin + "\n".join(lines) + "\n" + end + after)


def _figure(rows: list[dict]) -> Figure:
    """Draw time against each size, measured and estimated, both axes by their logarithms."""
    import altair as alt

    long = [
        {"size": row["size"], "value": row["value"], "seconds": row[key], "what": what}
        for row in rows
        for key, what in (("seconds", "measured"), ("estimated", "estimated"))
    ]
    base = alt.Chart().encode(
        x=alt.X("value:Q", title=None).scale(type="log", nice=False),
        y=alt.Y("seconds:Q", title="processor seconds").scale(type="log"),
        color=alt.Color("what:N", sort=["measured", "estimated"]),
    )
    points = base.mark_point(filled=True, size=60).transform_filter("datum.what == 'measured'")
    line = base.mark_line().transform_filter("datum.what == 'estimated'")
    layers = alt.layer(line, points, data=alt.NamedData(name="rows"))
    layers = layers.properties(width=110, height=130)
    faceted = layers.facet(column=alt.Column("size:N", title=None, sort=list(SWEEPS)))
    return as_figure(faceted.resolve_scale(x="independent"), "What an audit costs", [], long)


if __name__ == "__main__":
    match sys.argv[1:]:
        case ["run", text]:
            print(json.dumps(run(json.loads(text))))
        case ["fit"]:
            fit()
        case ["solve"]:
            solve()
        case ["check", *names]:
            check(names or list(cost_data.SIZES))
        case ["grow"]:
            grow()
        case ["paper"]:
            paper()
        case ["show"]:
            show()
        case _:
            raise SystemExit(__doc__)
