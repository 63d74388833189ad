"""Logs larger than memory: time, memory, and races against Dask's merge and RePlay on Spark.

python benchmarks/big.py make FOLDER MILLION        lists of so many million rows, and judgments
python benchmarks/big.py ours FOLDER [HOW]          once: seconds and the largest memory held
python benchmarks/big.py dask FOLDER                the same files merged by dask.dataframe
python benchmarks/big.py spark FOLDER               the same files through RePlay's Spark metrics
python benchmarks/big.py table FOLDER 5,20,80       our time and memory for these sizes
python benchmarks/big.py race FOLDER DASK SPARK     all three in turn, by their own Pythons

HOW are words such as memory=1GiB workers=2 cluster=local:2. Every measurement is a process of its
own, its memory (with that of the processes it started) looked at 20 times a second. The peers need
environments of their own: dask[dataframe,distributed] and psutil; replay-rec, pyspark and psutil.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from pathlib import Path

DEPTH, JUDGED, ITEMS = 20, 30, 20_011  # a prime: strides through it meet every item once
METRICS = ["P@10", "Recall@10", "nDCG@10", "AP@10", "RR@10"]


def make(folder: Path, million: float) -> None:
    """Write lists of depth 20, and 30 judgments a user, no two rows of a user in one file."""
    import numpy as np
    import polars as pl

    users = int(million * 1e6) // DEPTH
    rng = np.random.default_rng(1)
    user = np.arange(users)
    stride = rng.integers(1, ITEMS, users)
    first = rng.integers(0, ITEMS, users)
    # A third of the users have lists that run into their judgments.
    other = np.where(user % 3 == 0, first - 2 * stride, rng.integers(0, ITEMS, users))
    for name, count, begin in (("judgments", JUDGED, first), ("lists", DEPTH, other)):
        (folder / name).mkdir(parents=True, exist_ok=True)
        for place in range(count):
            order = rng.permutation(users)
            item = (begin[order] + place * stride[order]) % ITEMS
            value = rng.integers(1, 6, users) if name == "judgments" else np.full(users, place + 1)
            frame = pl.DataFrame({"user": order, "item": item})
            column = "rating" if name == "judgments" else "rank"
            frame = frame.with_columns(pl.Series(column, value))
            frame.write_parquet(folder / name / f"{place:02d}.parquet", row_group_size=1 << 18)


def ours(folder: Path, **how: str) -> float:
    """Evaluate the files; return a mean, so that ways can be compared."""
    from unskew.evaluation.on_disk.files import evaluate_files

    settings: dict[str, object] = dict(how)
    if "workers" in how:
        settings["workers"] = int(how["workers"])
    with tempfile.TemporaryDirectory(dir=folder) as output:
        scores = evaluate_files(
            folder / "judgments", folder / "lists", METRICS, liked=4, output=output, **settings
        )
        return float(scores.row(system="lists", metric="nDCG@10").value)


def merged(folder: Path) -> float:
    """Merge the files with dask.dataframe on two workers, which is the join alone."""
    import dask.dataframe as dd
    from distributed import Client, LocalCluster

    with (
        LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None) as cluster,
        Client(cluster),
    ):
        begin = time.perf_counter()
        lists = dd.read_parquet(str(folder / "lists"))
        judgments = dd.read_parquet(str(folder / "judgments"))
        both = lists.merge(judgments, on=["user", "item"])
        total = float(both["rating"].sum().compute())
        print(json.dumps({"inside": time.perf_counter() - begin}))
        return total


def spark(folder: Path) -> float:
    """Judge the files with RePlay's metrics on Spark with two cores."""
    from pyspark.sql import SparkSession, functions
    from replay.metrics import MAP, MRR, NDCG, OfflineMetrics, Precision, Recall

    os.environ["PYSPARK_PYTHON"] = sys.executable
    session = (
        SparkSession.builder.master("local[2]").config("spark.driver.memory", "8g")
        .config("spark.sql.shuffle.partitions", "16").config("spark.ui.enabled", "false")
        .config("spark.sql.execution.arrow.pyspark.enabled", "true").getOrCreate()
    )  # fmt: skip
    begin = time.perf_counter()
    lists = session.read.parquet(str(folder / "lists"))
    lists = lists.withColumn("score", -functions.col("rank").cast("double")).drop("rank")
    judgments = session.read.parquet(str(folder / "judgments")).filter("rating >= 4")
    judge = OfflineMetrics(
        [Precision(10), Recall(10), NDCG(10), MAP(10), MRR(10)],
        query_column="user", item_column="item", rating_column="score",
    )  # fmt: skip
    found = judge(lists, judgments.select("user", "item"))
    print(json.dumps({"inside": time.perf_counter() - begin}))
    return float(found["Precision@10"])


def watched(work: Callable[[], float]) -> dict[str, float]:
    """Do some work; return its time and the largest memory of this process and its children.

    The time of the processors is told too: on a machine that does other work it is the fairer.
    """
    import resource

    import psutil

    peak, stop = {"all": 0, "largest": 0}, threading.Event()

    def look() -> None:
        here = psutil.Process()
        while not stop.wait(0.05):
            try:
                each = [p.memory_info().rss for p in [here, *here.children(recursive=True)]]
            except psutil.Error:
                continue
            peak["all"] = max(peak["all"], sum(each))
            peak["largest"] = max(peak["largest"], max(each))

    watcher = threading.Thread(target=look, daemon=True)
    watcher.start()
    begin = time.perf_counter()
    value = work()
    seconds = time.perf_counter() - begin
    spent = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    living = [child.cpu_times() for child in psutil.Process().children(recursive=True)]
    processor = sum(one.ru_utime + one.ru_stime for one in spent)
    processor += sum(one.user + one.system for one in living)
    stop.set()
    watcher.join()
    return {
        "seconds": seconds, "processor": processor, "MiB": peak["all"] / 2**20,
        "MiB of one": peak["largest"] / 2**20, "value": value,
    }  # fmt: skip


def apart(python: str, *arguments: str) -> dict[str, float]:
    """Measure in a process of its own; what it prints last is what it found."""
    done = subprocess.run(
        [python, __file__, *arguments], check=True, capture_output=True, text=True
    )
    found: dict[str, float] = {}
    for line in done.stdout.splitlines():
        if line.startswith("{"):
            found |= json.loads(line)
    return found


def table(folder: Path, sizes: list[float], how: list[str]) -> None:
    """Print time and memory for several sizes; each one's data is made and removed."""
    print("| list rows | judgments | seconds | of processors | ns per row | MiB |")
    print("|---:|---:|---:|---:|---:|---:|")
    for million in sizes:
        home = folder / f"{million:g}"
        ready = home.exists()
        if not ready:
            make(home, million)
        found = apart(sys.executable, "ours", str(home), *how)
        rows = million * 1e6 * (1 + JUDGED / DEPTH)
        print(
            f"| {million:g} million | {million * JUDGED / DEPTH:g} million | "
            f"{found['seconds']:.1f} | {found['processor']:.1f} | "
            f"{found['processor'] / rows * 1e9:.0f} | {found['MiB']:.0f} |",
            flush=True,
        )
        if not ready:
            shutil.rmtree(home)


def race(folder: Path, dask: str, spark_python: str) -> None:
    """Run ours, each peer, and ours again, in turn."""
    runs = [("unskew, 2 threads", sys.executable, "ours", "workers=2"),
            ("unskew, 2 Dask workers", sys.executable, "ours", "cluster=local:2"),
            ("dask.dataframe merge", dask, "dask"),
            ("unskew, 2 threads", sys.executable, "ours", "workers=2"),
            ("RePlay on Spark", spark_python, "spark"),
            ("unskew, 2 threads", sys.executable, "ours", "workers=2")]  # fmt: skip
    print("| what | seconds | without starting | of processors | MiB |\n|---|---:|---:|---:|---:|")
    for name, python, job, *how in runs:
        if python == "-":
            continue
        found = apart(python, job, str(folder), *how)
        inside = f"{found['inside']:.1f}" if "inside" in found else ""
        print(
            f"| {name} | {found['seconds']:.1f} | {inside} | {found['processor']:.1f} | "
            f"{found['MiB']:.0f} |",
            flush=True,
        )


def main() -> None:
    job, folder, *rest = sys.argv[1:]
    home = Path(folder)
    if job == "make":
        make(home, float(rest[0]))
    elif job == "table":
        table(home, [float(size) for size in rest[0].split(",")], rest[1:])
    elif job == "race":
        race(home, *rest)
    else:
        how = dict(word.split("=") for word in rest)
        work = {"ours": lambda: ours(home, **how), "dask": lambda: merged(home),
                "spark": lambda: spark(home)}[job]  # fmt: skip
        print(json.dumps(watched(work)))


if __name__ == "__main__":
    main()
