"""Splits along time and their diagnosis at scale: seconds and memory, and how they grow.

    python benchmarks/time_scale.py                    # 10 million events
    python benchmarks/time_scale.py --growth           # 10 and 100 million, each in its own process

The log is made here: a million users and a hundred thousand items (ten times as many of both for
100 million events), both skewed, a year of seconds, pairs that repeat. Every job starts from the
log as it was read, walks all splits of one splitter and keeps one at a time. Seconds of the
processor are those of all threads; on a busy machine only these can be compared.
"""

import argparse
import json
import resource
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import replace

import numpy as np
import polars as pl

import unskew as us
from unskew.arrays import frozen
from unskew.data.events import Events
from unskew.data.ratings import Ids

YEAR = 365 * 86_400


def made_log(events: int, seed: int = 7) -> Events:
    """Draw a log, in order of time as `read_events` gives it."""
    rng = np.random.default_rng(seed)
    users, items = events // 10, events // 100

    def skewed(most: int, power: float) -> np.ndarray:
        drawn = np.empty(events, np.int32)
        for low in range(0, events, 1 << 22):  # in blocks: doubles of all would be large
            part = drawn[low : low + (1 << 22)]
            part[:] = rng.random(part.size) ** power * most
        return drawn

    stamps = np.sort(rng.integers(0, YEAR, events, dtype=np.int32)).astype(np.int64)
    stamps = (stamps + 1_600_000_000) * 1_000_000
    return Events(
        users=Ids(pl.Series(np.arange(users))),
        items=Ids(pl.Series(np.arange(items))),
        user=frozen(skewed(users, 2.0)),
        item=frozen(skewed(items, 3.0)),
        value=frozen(np.ones(events)),
        time=frozen(stamps),
    )


SPLITTERS = {
    "rolling windows": us.splits.Windows(number=10, length="7d", train_length="180d"),
    "expanding windows": us.splits.Windows(number=10, length="7d"),
    "last of each user": us.splits.Windows(number=10, length="7d", pick="last"),
    "ages": us.splits.ModelAges(number=4, step="30d", train_length="180d", test=0.1),
    "sessions": us.splits.Sessions(pause="30min", test=0.1, pick="next"),
    "validation": us.splits.Temporal(test=0.1, validation=0.1, gap="1d"),
}


def walk(splitter: us.splits.Splitter, log: Events) -> int:
    """Make every split, and give it back."""
    return sum(len(split.train) + len(split.test) for split in splitter.each(log))


def diagnose(splitter: us.splits.Splitter, log: Events) -> int:
    """Make every split and look for leaks in all of them."""
    return len(us.splits.diagnose(splitter.each(log), log=log).checks)


def jobs() -> Iterator[tuple[str, Callable[[Events], int]]]:
    """Give what is timed; others add theirs here."""
    for name, splitter in SPLITTERS.items():
        yield f"split: {name}", lambda log, splitter=splitter: walk(splitter, log)
    rolling = SPLITTERS["rolling windows"]
    yield "rolling windows and diagnosis", lambda log: diagnose(rolling, log)


def peak() -> float:
    """Return the most memory that this process had, in MiB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def measure(events: int, only: str) -> list[dict[str, float | str]]:
    """Time every job on one log; kernels are compiled before, on a small one."""
    small = made_log(20_000)
    chosen = [(name, job) for name, job in jobs() if only in name]
    for _, job in chosen:
        job(small)
    log = made_log(events)
    rows = [{"job": "the log itself", "wall": 0.0, "processor": 0.0, "peak MiB": peak()}]
    for name, job in chosen:
        fresh = replace(log)  # without the order by pairs that the job before made
        wall, cpu = time.perf_counter(), time.process_time()
        job(fresh)
        rows.append(
            {
                "job": name,
                "wall": time.perf_counter() - wall,
                "processor": time.process_time() - cpu,
                "peak MiB": peak(),
            }
        )
    return rows


def main() -> None:
    """Measure, and print a table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--events", type=int, default=10_000_000)
    parser.add_argument("--only", default="", help="only jobs whose name holds this")
    parser.add_argument("--growth", action="store_true", help="and ten times as many")
    parser.add_argument("--json", action="store_true", help="for a process that reads it")
    given = parser.parse_args()
    if given.json:
        print(json.dumps(measure(given.events, given.only)))
        return
    sizes = [given.events, 10 * given.events] if given.growth else [given.events]
    tables = {}
    for size in sizes:  # each in a process of its own: its peak is that of this size alone
        words = [sys.executable, __file__, "--json", "--events", str(size), "--only", given.only]
        done = subprocess.run(words, check=True, capture_output=True, text=True)
        tables[size] = json.loads(done.stdout)
        print(f"\n{size:,} events")
        for row in tables[size]:
            print(
                f"{row['job']:32} {row['wall']:8.1f} s  {row['processor']:8.1f} s processor"
                f"  {row['peak MiB']:8,.0f} MiB",
                flush=True,
            )
    if given.growth:
        print("\ngrowth of the processor's seconds")
        for one, ten in zip(*tables.values(), strict=True):
            if one["processor"]:
                print(f"{one['job']:32} {ten['processor'] / one['processor']:6.1f}")


if __name__ == "__main__":
    main()
