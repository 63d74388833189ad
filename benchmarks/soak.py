"""Load and faults: changed files, killed processes, random commands under faults, wrong calls.

Every case has a seed and can be repeated by it. Counts go to a JSON file, from which
docs/reliability.py writes the section *Load and faults*::

    python benchmarks/soak.py --mutations 10000 -o benchmarks/soak_counts.json
    python benchmarks/soak.py --kills 200 -o benchmarks/soak_counts.json
    python benchmarks/soak.py --minutes 60 -o benchmarks/soak_counts.json
    python benchmarks/soak.py --calls 1000 -o benchmarks/soak_counts.json
    python benchmarks/soak.py --mutations 1 --first 2605    # one case again
"""

from __future__ import annotations

import argparse
import json
import platform
import signal
import sys
from collections.abc import Iterator
from importlib.metadata import version
from pathlib import Path
from typing import Any

import unskew as us
from soak_calls import count_calls
from soak_commands import count_commands
from soak_kills import count_kills
from soak_mutations import count_mutations


def main() -> None:
    """Run what was asked for; exit 1 when anything was lost, wrong, or not explained."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--mutations", type=int, default=0, help="changed files to read")
    parser.add_argument("--kills", type=int, default=0, help="processes to kill")
    parser.add_argument("--minutes", type=float, default=0, help="how long to run random commands")
    parser.add_argument("--calls", type=int, default=0, help="wrong calls to make")
    parser.add_argument("--first", type=int, default=0, help="the seed of the first case")
    parser.add_argument("-o", "--output", type=Path, help="a JSON file of the counts")
    asked = parser.parse_args()
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    wanted = {
        "mutations": (count_mutations, asked.mutations),
        "kills": (count_kills, asked.kills),
        "commands": (count_commands, asked.minutes),
        "calls": (count_calls, asked.calls),
    }
    counts: dict[str, Any] = {}
    for name, (count, amount) in wanted.items():
        if amount:
            counts[name] = last(count(amount, asked.first), name, asked.output)
    print(json.dumps({name: summary(part) for name, part in counts.items()}, indent=1))
    sys.exit(any(part["problems"] for part in counts.values()))


def last(running: Iterator[dict[str, Any]], name: str, output: Path | None) -> dict[str, Any]:
    """Return the counts of all cases; what was counted is kept when the run is stopped."""
    counts: dict[str, Any] = {}
    try:
        for counts in running:  # noqa: B007 - the last ones count
            pass
    finally:
        if output and counts:
            write(output, {name: counts})
    return counts


def summary(part: dict[str, Any]) -> dict[str, Any]:
    """Return the counts of a part without its tables."""
    return {
        name: value
        for name, value in part.items()
        if name not in ("problems", "by_file", "by_command")
    }


def write(path: Path, counts: dict[str, Any]) -> None:
    """Put counts into a file beside those of other parts."""
    before = json.loads(path.read_text()) if path.exists() else {}
    versions = {"Python": platform.python_version(), "unskew": us.__version__}
    versions |= {name: version(name) for name in ("numpy", "polars", "numba")}
    path.write_text(json.dumps({**before, **counts, "versions": versions}, indent=1) + "\n")


if __name__ == "__main__":
    main()
