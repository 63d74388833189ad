"""What a small command costs, part by part: python benchmarks/startup.py.

Each row is a process of its own that does all that the rows above it do, and one thing more; the
part is the difference. Rows alternate, and the fastest of several runs counts, so that other work
on the machine changes little. It is time on the clock; what Python compiles at first use is there.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path
from time import perf_counter

import ours
import sizes

ROUNDS = 15
METRICS = "P@10,Recall@10,AP@10,nDCG@10,RR@10,bpref,infAP"
WARM, COLD = 0.8, 4.0
"""Bars in seconds, on an idle machine: of the small command, and of both."""

PARTS = {
    "interpreter": "pass",
    "numpy": "import numpy",
    "polars": "import numpy, polars",
    "typer and rich": "import numpy, polars, typer, rich.console, rich.table",
    "command line of unskew": (
        "import numpy, polars, rich.console, rich.table\n"
        "from unskew.cli import app\nfrom typer.main import get_command\n"
        "get_command(app).commands['evaluate']"
    ),
    "modules of evaluate": (
        "import numpy, polars, rich.console, rich.table\n"
        "from unskew.cli import app\nfrom typer.main import get_command\n"
        "get_command(app).commands['evaluate']\n"
        "import unskew.runs, unskew.cli.inputs, unskew.evaluation.evaluate"
    ),
}
"""What is imported, row by row."""


def fastest(commands: dict[str, tuple[list[str], dict[str, str]]], rounds: int) -> dict[str, float]:
    """Return the fastest run of each command, in turns."""
    best = dict.fromkeys(commands, float("inf"))
    for _ in range(rounds):
        for name, (arguments, variables) in commands.items():
            begin = perf_counter()
            subprocess.run([sys.executable, *arguments], check=True, capture_output=True,
                           env=_environment(variables))  # fmt: skip
            best[name] = min(best[name], perf_counter() - begin)
    return best


def _environment(more: dict[str, str]) -> dict[str, str]:
    kept = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    return kept | more


def evaluate(folder: Path, users: int, depth: int) -> list[str]:
    """Write judgments and a run; return the command that evaluates them."""
    size = sizes.make(users, 1, depth, 2000, 30)
    judgments, runs = ours.make_frames(size, "integer", False, "polars")
    test, run = folder / f"test-{users}.csv", folder / f"run-{users}.csv"
    judgments.write_csv(test)
    runs["s0"].write_csv(run)
    return ["-m", "unskew", "evaluate", "-j", str(test), "-r", str(run), "-m", METRICS,
            "--liked", "4", "-q"]  # fmt: skip


def main() -> None:
    """Print what each part costs, and the whole; exit 1 when a bar is missed."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        small, large = evaluate(folder, 60, 20), evaluate(folder, 1000, 100)
        none = {"NUMBA_CACHE_DIR": ""}
        commands = {part: (["-c", code], none) for part, code in PARTS.items()}
        commands |= {
            "small": (small, none),
            "large": (large, none),
            "numba": (["-c", "import numpy, numba"], none),
        }  # fmt: skip
        fastest(commands, 1)
        best = fastest(commands, ROUNDS)
        cold = {}
        for case, arguments in (("small", small), ("large", large)):
            with tempfile.TemporaryDirectory() as empty:
                cold |= fastest({case: (arguments, {"NUMBA_CACHE_DIR": empty})}, 1)
    print("| part of a small command | seconds |\n|---|---:|")
    before = 0.0
    for part in PARTS:
        print(f"| {part} | {best[part] - before:.2f} |")
        before = best[part]
    print(f"| reading, counting, printing | {best['small'] - before:.2f} |")
    print(f"| **60 users x 20 items, warm** | **{best['small']:.2f}** |")
    print(f"| 1,000 users x 100 items, warm | {best['large']:.2f} |")
    print(f"| of which `import numba` | {best['numba'] - best['numpy']:.2f} |")
    print(f"| 60 users, nothing compiled | {cold['small']:.2f} |")
    print(f"| 1,000 users, nothing compiled | {cold['large']:.2f} |")
    if best["small"] > WARM or max(cold.values()) > COLD:
        sys.exit("a bar was missed (is the machine idle?)")


if __name__ == "__main__":
    main()
