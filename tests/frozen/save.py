"""Write the bytes of results, one file per piece, to be compared before and after a change.

    python tests/frozen/save.py FOLDER [--only NAME,NAME]
    python tests/frozen/compare.py OLD NEW

A name of `--only` takes every piece that begins with it. Only public names and the command line are
used. A piece that fails writes the last line of its traceback.
"""

import argparse
import dataclasses
import hashlib
import json
import math
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
import traceback
import warnings
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import polars as pl
from functions import PIECES as FUNCTIONS

import unskew as us
import unskew_studies

USERS, ITEMS, LIKED = 60, 80, 4.0
STUDIES = ("bellogin2017", "valcarce2018", "carraro2020", "mena2021", "castells2018")
WORLDS = (
    "shop",
    "null",
    "uniform",
    "relevance-only",
    "item-only",
    "popular-good",
    "inverted",
    "clustered",
    "ageing",
    "feedback",
    "simulated-popularity",
)
VARYING = {
    "version",
    "versions",
    "unskew_version",
    "seconds",
    "elapsed",
    "created",
    "written",
    "date",
    "time_taken",
    "machine",
    "platform",
    "python",
    "environment",
    "packages",
    "threads",
    "memory",
    "folder",
    "data_dir",
    "host",
    "cpu",
}
"""Keys whose values may differ from machine to machine, from day to day or from version to version.
"""
OPTIONS = ["--liked", "4", "--format", "json", "--quiet"]
JUDGED = ["-j", "test.csv", "-r", "a.csv", "-r", "b.csv", "-r", "c.csv"]
METRICS = ["-m", "P@5,nDCG@10,AP,anti-P@5"]
DEMO = ["demo", "--seed", "7", "--save", "OUT", "-o", "OUT.json"]


# Plain values


def digest(*parts):
    """Return the hash of texts, bytes, arrays and tables."""
    whole = hashlib.sha256()
    for part in parts:
        if isinstance(part, pl.DataFrame):
            part = "\n".join(repr(row) for row in [tuple(part.columns), *part.rows()])
        if isinstance(part, np.ndarray):
            whole.update(f"{part.dtype.str}{part.shape}".encode())
            part = np.ascontiguousarray(part).tobytes()
        whole.update(part if isinstance(part, bytes) else str(part).encode())
        whole.update(b"\x1f")
    return whole.hexdigest()


def digest_of(ratings):
    return digest(ratings.to_polars())


def plain(value, depth=0):
    """Return any result as JSON knows it: floats as text with every bit, large parts as hashes."""
    if depth > 12:
        return "deep"
    if isinstance(value, us.Ratings):
        return {"ratings": len(value), "digest": digest_of(value)}
    if isinstance(value, np.generic):
        value = value.item()
    if value is None or isinstance(value, bool | int | str):
        return value
    if isinstance(value, float):
        return repr(value)
    if isinstance(value, np.ndarray):
        if value.dtype == object or value.size <= 200:
            return plain(value.tolist(), depth + 1)
        return {"array": list(value.shape), "digest": digest(value)}
    if isinstance(value, pl.Series):
        value = value.to_frame()
    if isinstance(value, pl.DataFrame):
        if value.height <= 200:
            return {name: plain(value[name].to_list(), depth + 1) for name in value.columns}
        return {"rows": value.height, "columns": value.columns, "digest": digest(value)}
    if isinstance(value, Mapping):
        return {str(k): plain(v, depth + 1) for k, v in value.items() if str(k) not in VARYING}
    if isinstance(value, list | tuple | set | frozenset):
        return [plain(one, depth + 1) for one in value]
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        told = {
            one.name: plain(getattr(value, one.name), depth + 1)
            for one in dataclasses.fields(value)
            if not one.name.startswith(("_", "draw_")) and one.name not in VARYING
        }
        return {name: one for name, one in told.items() if one != "object"}
    return "object"


def steady(value, home=""):
    """Return JSON without what may differ."""
    if isinstance(value, dict):
        if str(value.get("what", "")).startswith("versions: "):
            return "a version"
        return {key: steady(one, home) for key, one in value.items() if key not in VARYING}
    if isinstance(value, list):
        return [steady(one, home) for one in value]
    if isinstance(value, str):
        if value.startswith("{\n"):  # a card within a report
            return {"json": steady(json.loads(value), home)}
        return steady_text(value, home)
    return value


def steady_text(text, home):
    text = text.replace(home, "HOME") if home else text
    text = re.sub(r"unskew \d+\.\d+\.\d+\S*", "unskew VERSION", text)
    text = re.sub(r"\b\d+(\.\d+)? (seconds|minutes|ms|s)\b", "TIME", text)
    return text.replace(us.__version__, "VERSION") if us.__version__ else text


# The data


def made_ratings():
    """Return a small table of ratings with popular items, tastes, time stamps and tags."""
    rng = np.random.default_rng(20240601)
    popular = 1.0 / np.arange(1, ITEMS + 1) ** 0.8
    taste, kind = rng.normal(size=(USERS, 3)), rng.normal(size=(ITEMS, 3))
    rows = []
    for user in range(USERS):
        number = int(rng.integers(12, 40))
        for item in rng.choice(ITEMS, number, replace=False, p=popular / popular.sum()):
            value = 3.4 + 0.7 * taste[user] @ kind[item] + rng.normal() * 0.5
            stamp = 1_000_000_000 + int(rng.integers(0, 50_000_000))
            rows.append(
                (
                    f"u{user:02d}",
                    f"i{item:02d}",
                    float(np.clip(round(value), 1, 5)),
                    stamp,
                    bool(rng.random() < 0.6),
                    "test" if rng.random() < 0.25 else "train",
                )
            )
    names = ["user", "item", "rating", "time", "familiar", "part"]
    return pl.DataFrame(rows, schema=names, orient="row")


def made_random():
    rng = np.random.default_rng(77)
    pairs = rng.choice(USERS * ITEMS, 500, replace=False)
    value = np.clip(np.round(rng.normal(3.0, 1.2, 500)), 1, 5)
    return pl.DataFrame(
        {
            "user": [f"u{one // ITEMS:02d}" for one in pairs],
            "item": [f"i{one % ITEMS:02d}" for one in pairs],
            "rating": value,
            "familiar": [bool(one) for one in rng.random(500) < 0.5],
        }
    )


def made_events():
    rng = np.random.default_rng(78)
    return pl.DataFrame(
        {
            "user": [f"u{one:02d}" for one in rng.integers(0, 30, 1500)],
            "item": [f"i{one:02d}" for one in rng.integers(0, 40, 1500)],
            "time": 1_000_000_000 + rng.integers(0, 9_000_000, 1500),
        }
    )


def made_runs(train):
    """Return three runs of raw ids: by popularity, by means, and by chance."""
    rng = np.random.default_rng(79)
    counts = dict(train.group_by("item").len().rows())
    means = dict(train.group_by("item").agg(pl.col("rating").mean()).rows())
    seen = {(user, item) for user, item in train.select("user", "item").rows()}
    ways = {
        "a": lambda item: counts.get(item, 0) + 0.01 * rng.random(),
        "b": lambda item: means.get(item, 0.0) + 0.01 * rng.random(),
        "c": lambda item: rng.random(),
    }
    runs = {}
    for name, way in ways.items():
        rows = []
        for user in sorted(set(train["user"])):
            scored = [(way(f"i{item:02d}"), f"i{item:02d}") for item in range(ITEMS)]
            left = [(score, item) for score, item in scored if (user, item) not in seen]
            best = sorted(left, reverse=True)[:20]
            rows += [(user, item, place + 1, one) for place, (one, item) in enumerate(best)]
        runs[name] = pl.DataFrame(rows, schema=["user", "item", "rank", "score"], orient="row")
    return runs


class Data:
    """The small data, in memory and as files in a folder."""

    def __init__(self, home):
        self.home = home
        table = made_ratings()
        held = np.random.default_rng(80).random(table.height) < 0.25
        self.frame = table
        self.train_frame = table.filter(~pl.Series(held)).drop("familiar", "part")
        self.test_frame = table.filter(pl.Series(held)).drop("familiar", "part")
        self.runs = made_runs(self.train_frame)
        random = made_random()
        files = {
            "ratings": table.drop("familiar", "part"),
            "tagged": table,
            "random": random,
            "train": self.train_frame,
            "test": self.test_frame,
            "events": made_events(),
            **self.runs,
        }
        for name, one in files.items():
            one.write_csv(home / f"{name}.csv")
        groups = {"item": [f"i{n:02d}" for n in range(ITEMS)], "group": [n % 3 for n in range(80)]}
        pl.DataFrame(groups).write_csv(home / "groups.csv")
        (home / "plan.toml").write_text(PLAN)
        self.ratings = us.read_ratings(table, tags=["familiar", "part"])
        self.random = us.read_ratings(random, tags=["familiar"])
        self.events = us.read_events(made_events())
        self.train = us.read_ratings(self.train_frame)
        self.test = us.read_ratings(self.test_frame)


PLAN = """
seed = 7
metrics = ["P@5", "nDCG@10", "anti-P@5"]
[data]
file = "ratings.csv"
[relevance]
liked = 4
[[split]]
protocol = "random"
folds = 2
[[targets]]
design = "test-items"
[[algorithm]]
name = "user-knn"
k = [5, 20]
[[algorithm]]
name = "wrmf"
factors = 4
iterations = 3
"""


# The command line


def commands():
    """Return the commands: the name of a piece, and its words; OUT is what it writes."""
    few = ["--permutations", "500", "--seed", "3"]
    found = {
        "evaluate": ["evaluate", *JUDGED, *METRICS, "--train", "train.csv", *OPTIONS],
        "evaluate-targets": [
            "evaluate",
            *JUDGED,
            "-m",
            "P@5,Recall@10,Judged@10,RR,RBP@10,Gini@10,Coverage@10",
            "--train",
            "train.csv",
            "--targets",
            "all-items",
            *OPTIONS,
        ],
        "evaluate-random-ties": [
            "evaluate",
            *JUDGED,
            *METRICS,
            "--ties",
            "random",
            "--seed",
            "5",
            "--by",
            "score",
            *OPTIONS,
        ],
        "compare": ["compare", *JUDGED, *METRICS, *few, *OPTIONS],
        "compare-maxT": [
            "compare",
            *JUDGED,
            *METRICS,
            "--correction",
            "maxT",
            "--interval",
            "bca",
            "--rope",
            "0.01",
            *few,
            *OPTIONS,
        ],
        "power": ["power", *JUDGED, *METRICS, *few, *OPTIONS],
        "strata": [
            "strata",
            *JUDGED,
            "--train",
            "train.csv",
            "-m",
            "P@5,nDCG@10",
            "--strata",
            "4",
            "--resamples",
            "100",
            *OPTIONS,
        ],
        "strata-groups": [
            "strata",
            *JUDGED,
            "--by",
            "groups.csv",
            "-m",
            "P@5",
            "--resamples",
            "100",
            *OPTIONS,
        ],
        "estimate": [
            "estimate",
            *JUDGED,
            "--train",
            "train.csv",
            "-m",
            "P@5,nDCG@10",
            "--resamples",
            "100",
            *OPTIONS,
        ],
        "estimate-naive-bayes": [
            "estimate",
            *JUDGED,
            "--train",
            "train.csv",
            "-m",
            "P@5",
            "--resamples",
            "100",
            "--propensity",
            "naive-bayes",
            "--random",
            "random.csv",
            *OPTIONS,
        ],
        "estimate-sensitivity": [
            "estimate",
            *JUDGED,
            "--train",
            "train.csv",
            "-m",
            "P@5",
            "--resamples",
            "100",
            "--sensitivity",
            *OPTIONS,
        ],
        "estimate-bounds": [
            "estimate",
            *JUDGED,
            "--train",
            "train.csv",
            "-m",
            "P@5",
            "--bounds",
            *OPTIONS,
        ],
        "bias-describe": ["bias", "describe", "ratings.csv", "--random", "random.csv", *OPTIONS],
        "bias-pairs": ["bias", "pairs", "ratings.csv", "--sample", "500", *OPTIONS],
        "bias-pairs-systems": [
            "bias",
            "pairs",
            "train.csv",
            "-r",
            "a.csv",
            "-r",
            "b.csv",
            "-k",
            "5",
            *OPTIONS,
        ],
        "bias-null": [
            "bias",
            "null",
            "ratings.csv",
            "--repeats",
            "2",
            "--null",
            "iid",
            "--null",
            "within-item",
            "-m",
            "P@5",
            "-a",
            "popularity",
            "-a",
            "user-knn:k=10",
            "-a",
            "random",
            "--designs",
            "random,flat,percentiles,judgment-bins,slices,test-targets,forced-raw",
            *OPTIONS,
        ],
        "bias-truth": [
            "bias",
            "truth",
            "ratings.csv",
            "--random",
            "random.csv",
            "-m",
            "Recall@5",
            "-a",
            "popularity",
            "-a",
            "wrmf:factors=4,iterations=3",
            "--intervention",
            "full",
            "--intervention",
            "skew",
            "--intervention",
            "wtd",
            "--resamples",
            "50",
            *OPTIONS,
        ],
        "bias-truth-world": [
            "bias",
            "truth",
            "--world",
            "inverted",
            "--users",
            "60",
            "--items",
            "50",
            "-m",
            "P@5",
            "-a",
            "popularity",
            "-a",
            "average-rating",
            "--resamples",
            "50",
            *OPTIONS,
        ],
        "metrics": ["metrics"],
        "metrics-one": ["metrics", "nDCG"],
        "algorithms": ["algorithms"],
        "algorithms-one": ["algorithms", "wrmf"],
        "data-info": ["data", "info", "ratings.csv", *OPTIONS],
        "world-list": ["world", "--list"],
        "run": ["run", "plan.toml", "--store", "OUT", "--format", "json", "--quiet"],
        "plan-check": ["plan", "check", "plan.toml", "--no-estimate"],
    }
    for to in ("sparsity", "popularity", "users"):
        found[f"robustness-{to}"] = [
            "robustness",
            *JUDGED,
            *METRICS,
            "--to",
            to,
            "--train",
            "train.csv",
            "--samples",
            "5",
            "--seed",
            "2",
            *OPTIONS,
        ]
    worlds = {"shop": [], "feedback": ["--no-truth"]}
    for name, more in worlds.items():
        size = ["--users", "50", "--items", "40", "--seed", "7"]
        found[f"world-{name}"] = ["world", name, *size, *more, "-o", "OUT", "--quiet"]
    splits = {
        "random": ["--folds", "3"],
        "user": ["--test", "0.2", "--pick", "last"],
        "uniform": ["--test", "0.2", "--repetitions", "2"],
        "head-removed": ["--head", "0.1"],
    }
    for name, more in splits.items():
        found[f"split-{name}"] = [
            "split",
            "ratings.csv",
            "-p",
            name,
            *more,
            "--seed",
            "4",
            "--liked",
            "4",
            "-o",
            "OUT",
            "--quiet",
        ]
    found["split-forced"] = [
        "split",
        "ratings.csv",
        "-p",
        "forced",
        "--test-ratings",
        "random.csv",
        "-o",
        "OUT",
    ]
    found["split-events"] = [
        "split",
        "events.csv",
        "-p",
        "events",
        "--test",
        "0.3",
        "-o",
        "OUT",
    ]
    for kind in ("full", "reg", "skew", "wtd", "wtd-h"):
        found[f"intervene-{kind}"] = [
            "intervene",
            "test.csv",
            "--train",
            "train.csv",
            "--mar",
            "random.csv",
            "-k",
            kind,
            "--seed",
            "4",
            "-o",
            "OUT",
        ]
    found["intervene-raking"] = [
        "intervene",
        "test.csv",
        "--train",
        "train.csv",
        "-k",
        "wtd-h",
        "--weighting",
        "raking",
        "-o",
        "OUT",
    ]
    models = {
        "popularity": [],
        "wrmf": ["--set", "factors=4", "--set", "iterations=3"],
        "bprmf": ["--set", "factors=4", "--set", "epochs=3"],
        "random": ["--ties", "random"],
    }
    for name, more in models.items():
        found[f"recommend-{name}"] = [
            "recommend",
            "--train",
            "train.csv",
            "--test",
            "test.csv",
            "--targets",
            "test-items",
            "-a",
            name,
            *more,
            "--depth",
            "10",
            "--seed",
            "4",
            "-o",
            "OUT.csv",
        ]
    return {f"cli-{name}": words for name, words in found.items()}


def run_command(words, data, out):
    """Run a command inside the folder of the data; return what it prints and writes."""
    words = [word.replace("OUT", out) for word in words]
    home = str(data.home)
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-m", "unskew", *words],
        cwd=home,
        capture_output=True,
        text=True,
        timeout=400,
        check=False,
        env={**os.environ, "COLUMNS": "120", "NO_COLOR": "1", "TERM": "dumb"},
    )
    if done.returncode:
        lines = [line for line in done.stderr.splitlines() if line.strip(" ─╭╮╰╯")]
        raise RuntimeError(f"exit {done.returncode}: {' '.join(lines[-2:])}")
    text, brace, rest = done.stdout.partition("{\n")
    if "json" not in words:
        text, brace, rest = done.stdout, "", ""
    elif not brace:  # a list, or all on one line
        text, rest = "", done.stdout
    told = {"printed": steady_text(text, home).replace(out, "OUT").splitlines()}
    if rest:
        told["json"] = steady(json.loads(brace + rest), home)
    files = {}
    for path in sorted(data.home.glob(f"{out}/**/*")) + sorted(data.home.glob(f"{out}.*")):
        if path.is_file() and "run" not in words[:1]:
            files[path.relative_to(data.home).as_posix().replace(out, "OUT")] = of_file(path, home)
    return told | ({"files": files} if files else {})


def of_file(path, home):
    if path.suffix == ".parquet":
        return digest(pl.read_parquet(path))
    if path.suffix == ".json":
        return steady(json.loads(path.read_text()), home)
    return digest(path.read_bytes())


def command_piece(words):
    def make(data, name):
        return run_command(words, data, f"out-{name}")

    return make


def study_piece(name):
    def make(data, piece):
        words = ["study", "run", name, "--stand-in", "--format", "json", "--quiet", "-o", "-"]
        return run_command(words, data, f"out-{piece}")

    return make


def audit_demo(data, piece):
    """The audit of the demo's world, by the command line on what it saves and in memory."""
    shop = us.world("shop", users=1_000, items=500, seed=7)
    shop.ratings.to_polars().write_csv(data.home / "shop.csv")
    shop.random(0.05).to_polars().write_csv(data.home / "shop-random.csv")
    words = ["audit", "shop.csv", "--random", "shop-random.csv", "--quick", "--seed", "7"]
    return run_command([*words, "--format", "json", "-q", "-o", "-"], data, f"out-{piece}")


def audit_world(data, piece):
    """The audit of a small world whose truth is known, with systems that draw."""
    shop = us.world("shop", users=150, items=100, seed=7)
    systems = {
        "BPRMF": us.recommend.BPRMF(factors=4, epochs=4),
        "Popularity": us.recommend.Popularity(),
        "WRMF": us.recommend.WRMF(factors=4, iterations=3),
        "Random": us.recommend.Random(),
    }
    found = us.audit(shop, "quick", seed=7, algorithms=systems, permutations=500, repeats=2)
    us.report.save_report(found, data.home / f"{piece}.json")
    return steady(json.loads((data.home / f"{piece}.json").read_text()), str(data.home))


# Splits, targets, interventions


def splitters(data):
    random = data.random
    plans = us.auditing.published_designs(designs=["slices", "forced-raw"])
    return {
        "RandomSplit": us.splits.Random(test=0.2),
        "RandomSplit default": us.splits.Random(),
        "RandomSplit exact": us.splits.Random(test=0.3, exact=True),
        "RandomSplit folds": us.splits.Random(folds=3),
        "UserSplit": us.splits.PerUser(test=0.2),
        "UserSplit half-even": us.splits.PerUser(test=0.25, rounding="half-even"),
        "UserSplit number last": us.splits.PerUser(number=2, pick="last"),
        "LeaveOut": us.splits.LeaveOut(),
        "LeaveOut two first": us.splits.LeaveOut(n=2, pick="first"),
        "TemporalSplit": us.splits.Temporal(test=0.2),
        "TemporalSplit per user": us.splits.Temporal(test=0.2, per_user=True, ties="train"),
        "TemporalSplit at": us.splits.Temporal(at="2002-06-01"),
        "EventSplit": us.splits.TemporalEvents(test=0.2),
        "EventSplit sum": us.splits.TemporalEvents(test=0.3, aggregate="sum", seen="keep"),
        "UniformTest": us.splits.Uniform(test=0.2),
        "UniformTest nearest": us.splits.Uniform(
            test=0.1, epsilon=0.3, rounding="nearest", repetitions=2
        ),
        "FlatTest": us.splits.Flat(t=3, min_ratings=6),
        "FlatTest share": us.splits.Flat(test=0.1, repetitions=2),
        "HeadRemoved": us.splits.HeadRemoved(),
        "HeadRemoved ratings": us.splits.HeadRemoved(
            of=us.splits.Random(folds=2), share=0.2, by="ratings", counts="training"
        ),
        "HeadRemoved head": us.splits.HeadRemoved(of=us.splits.PerUser(test=0.2), keep="head"),
        "Given": us.splits.Given(column="part"),
        "Given ratings": us.splits.Given(test=random, overlap="to-training"),
        "ForcedTest": us.splits.Forced(random=random),
        "ForcedTest to test": us.splits.Forced(random=random, overlap="to-test"),
        "FamiliarTraining": us.splits.FamiliarTraining(folds=2, tag="familiar"),
        "FamiliarTraining fair": us.splits.FamiliarTraining(
            folds=None, fair=True, liked=LIKED, tag="familiar", smoothing=5.0, cap=0.5
        ),
        **{f"plan {name}": plan.splits[0] for name, plan in plans.items()},
    }


def splits(data, _piece):
    made = {}
    for name, how in splitters(data).items():
        for seed in (0, 1):
            rows = data.events if name.startswith("EventSplit") else data.ratings
            made[f"{name}, seed {seed}"] = [
                {
                    "label": one.label,
                    "train": [len(one.train), digest_of(one.train)],
                    "test": [len(one.test), digest_of(one.test)],
                    "judgments": {key: digest_of(part) for key, part in one.judgments.items()},
                }
                for one in how.split(rows, seed)
            ]
    for seed in (0, 1):
        for per in ("user", "all"):
            one = us.splits.sparsity_sample(data.test, 0.5, seed, per=per)
            made[f"sparsity_sample {per}, seed {seed}"] = digest_of(one)
        for null in ("iid", "within-user", "within-item", "clusters"):
            share = {"liked": LIKED, "share": 0.4} if null == "iid" else {}
            one = us.worlds.redraw(data.ratings, null, seed, **share)
            made[f"redraw {null}, seed {seed}"] = digest_of(one)
    made["popularity_cut"] = digest_of(us.splits.popularity_cut(data.train, data.test, 0.7))
    return made


def designs():
    return {
        "AllItems": us.targets.AllItems(),
        "AllItems 20": us.targets.AllItems(others=20),
        "AllItems strata": us.targets.AllItems(strata=4),
        "AllItems judgment strata": us.targets.AllItems(strata=4, strata_by="judgments"),
        "AllItems popular": us.targets.AllItems(others=10, by="popularity"),
        "TestItems": us.targets.TestItems(),
        "TestItems 10": us.targets.TestItems(others=10, shortage="skip"),
        "TrainItems": us.targets.TrainItems(),
        "OneRelevant": us.targets.OneRelevant(others=9),
        "OneRelevant once": us.targets.OneRelevant(others=9, fresh=False),
        "OneRelevant all": us.targets.OneRelevant(others="all", fixed="judged"),
        "Percentiles": us.targets.Percentiles(others=5, strata=4),
        "TestTargets": us.targets.TestTargets(),
        "TestTargets fill": us.targets.TestTargets(shortfall="fill"),
        "UserFlat": us.targets.UserFlat(others=15),
        "Targets": us.targets.Targets(
            candidates="train", relevant="one", others=7, by="popularity"
        ),
    }


def one_split(data):
    return us.splits.Random(test=0.2).split(data.ratings, 0)[0]


def targets(data, _piece):
    split, made = one_split(data), {}
    for name, design in designs().items():
        for seed in (0, 1):
            lists = design.lists(split, liked=LIKED, seed=seed)
            start, item = lists.block(0, len(lists))
            made[f"{name}, seed {seed}"] = {
                "lists": len(lists),
                "items": int(item.size),
                "digest": digest(lists.user, lists.anchor, lists.stratum, start, item),
            }
    return made


def interventions(data, _piece):
    ways = {
        "Full": us.splits.Full(),
        "Reg": us.splits.Reg(),
        "Reg 0.3": us.splits.Reg(size=0.3),
        "Skew": us.splits.Skew(),
        "Skew random": us.splits.Skew(size=0.4, exponent=0.5, unseen="random"),
        "Wtd": us.splits.Wtd(),
        "Wtd paper": us.splits.Wtd(exponent=1.0, smoothing="paper"),
        "WtdH": us.splits.WtdH(),
        "WtdH alpha": us.splits.WtdH(size=0.3, alpha=0.5),
    }
    made = {}
    for name, way in ways.items():
        for seed in (0, 1):
            one = way.sample(data.test, data.train, data.random, seed=seed)
            made[f"{name}, seed {seed}"] = {
                "rows": digest_of(one.ratings),
                "facts": plain(one.facts),
            }
        for method in ("hajek", "inclusion", "raking"):
            one = way.weigh(data.test, data.train, data.random, method=method)
            made[f"{name}, {method}"] = {"weight": digest(one.weight), "facts": plain(one.facts)}
    return made


# Recommenders


def algorithms(data):
    few = {"factors": 4}
    return {
        "Random": us.recommend.Random(),
        "Popularity": us.recommend.Popularity(),
        "PositivePopularity": us.recommend.PositivePopularity(),
        "AverageRating": us.recommend.AverageRating(),
        "SmoothedAverage": us.recommend.SmoothedAverage(),
        "OptimalPrecision": us.recommend.OptimalPrecision(),
        "OptimalAntiPrecision": us.recommend.OptimalAntiPrecision(),
        "OptimalTrue": us.recommend.OptimalTrue(truth=data.random),
        "UserKNN": us.recommend.UserKNN(),
        "UserKNN normalised": us.recommend.UserKNN(k=5, normalised=True, min_support=2),
        "ItemKNN": us.recommend.ItemKNN(),
        "NNCosNgbrUB": us.recommend.NNCosNgbrUB(),
        "NNCosNgbrIB": us.recommend.NNCosNgbrIB(),
        "RW": us.recommend.RW(),
        "RSV": us.recommend.RSV(),
        "CHI2": us.recommend.CHI2(),
        "KLD": us.recommend.KLD(),
        "RM1": us.recommend.RM1(),
        "RM2": us.recommend.RM2(),
        "LMWSRUserBased": us.recommend.LMWSRUserBased(),
        "LMWSRItemBased": us.recommend.LMWSRItemBased(),
        "UIRItem": us.recommend.UIRItem(),
        "HittingTime": us.recommend.HittingTime(),
        "SLIM": us.recommend.SLIM(),
        "SLIM small": us.recommend.SLIM(l1=0.1, l2=1.0),
        "EASE": us.recommend.EASE(),
        "PureSVD": us.recommend.PureSVD(**few),
        "WRMF": us.recommend.WRMF(**few, iterations=3),
        "WRMF default": us.recommend.WRMF(),
        "BPRMF": us.recommend.BPRMF(**few, epochs=4),
        "BPRMF pairs": us.recommend.BPRMF(**few, epochs=4, bias=False),
        "SVD": us.recommend.SVD(**few, epochs=4),
        "BiasedMF": us.recommend.BiasedMF(**few, epochs=4),
        "PLSA": us.recommend.PLSA(topics=4, iterations=5),
        "LDA": us.recommend.LDA(topics=4, iterations=5),
        "PZT": us.recommend.PZT(**few, iterations=3),
        "EALS": us.recommend.EALS(**few, iterations=3),
        "PNMF": us.recommend.PNMF(**few, iterations=5),
        "HPF": us.recommend.HPF(**few, iterations=5),
        "GaussianPLSA": us.recommend.GaussianPLSA(topics=4, iterations=5),
        "LibRecUserKNN": unskew_studies.LibRecUserKNN(),
        "LibRecItemKNN": unskew_studies.LibRecItemKNN(),
        "LibRecSLIM": unskew_studies.LibRecSLIM(),
        "SVDpp": us.recommend.SVDpp(**few, epochs=4),
        "WBPR": us.recommend.WBPR(**few, epochs=3, draws=20),
        "GBPR": us.recommend.GBPR(**few, epochs=3, draws=20),
        "RankSGD": us.recommend.RankSGD(**few, epochs=4),
        "ListRankMF": us.recommend.ListRankMF(**few, epochs=4),
    }


def score_digest(model, train):
    if isinstance(model, np.ndarray):
        return digest(model)
    tile = model.score(np.arange(len(train.users), dtype=np.int32))
    return digest(np.asarray(tile, np.float64))


class Recorder:
    """While it is open, every fit of these kinds of algorithms leaves its model here."""

    def __init__(self, kinds):
        self.kinds, self.models, self.own = set(kinds), [], {}

    def __enter__(self):
        for kind in self.kinds:
            self.own[kind] = vars(kind).get("fit")
            kind.fit = self.recorded(kind.fit)
        return self

    def recorded(self, fit):
        def keep(one, train, rng=0):
            model = fit(one, train, rng)
            self.models.append((one, train, model))
            return model

        return keep

    def __exit__(self, *_error):
        for kind, own in self.own.items():
            if own is None:
                del kind.fit
            else:
                kind.fit = own


def own_scores(train, rng):
    return rng.random(len(train.items))


def recommenders(data, _piece):
    """Scores of every algorithm: of a fit with a generator, with a seed, and of a plan's fits."""
    made = {}
    for name, one in algorithms(data).items():
        with_generator = one.fit(data.train, np.random.default_rng(0))
        made[name] = {
            "generator": score_digest(with_generator, data.train),
            "seed": score_digest(one.fit(data.train, 0), data.train),
        }
    ways = algorithms(data) | {"Custom": us.experiment.Custom("own", own_scores, version=1)}
    made["Custom"] = {}
    plan = us.Plan(
        split=(us.splits.Random(folds=2), us.splits.PerUser(test=0.2)),
        algorithms=ways,
        targets=(us.targets.AllItems(), us.targets.OneRelevant(others=9)),
        relevance=us.Relevance(liked=LIKED),
        metrics=("P@5", "nDCG@10", "anti-P@5", "RR@10"),
        interventions=(us.splits.Full(), us.splits.Skew()),
        seed=0,
    )
    with Recorder(type(one) for one in ways.values()) as kept:
        results = us.run_plan(data.ratings, plan)
    names = {id(one): name for name, one in plan.systems.items()}
    fits = {name: [] for name in ways}
    for one, train, model in kept.models:
        found = names.get(id(one)) or next(n for n, other in plan.systems.items() if other == one)
        fits[found].append(f"{digest_of(train)[:12]} {score_digest(model, train)}")
    for name in ways:
        made[name]["plan"] = sorted(fits[name])
    made["means"] = plain(results.table())
    return made


# Worlds, estimates


def worlds(_data, _piece):
    made = {}
    for name in WORLDS:
        for seed in (0, 1):
            size = {"ratings": 600} if name == "simulated-popularity" else {}
            one = us.world(name, users=60, items=50, seed=seed, **size)
            made[f"{name}, seed {seed}"] = {
                "ratings": plain(one.ratings),
                "random": plain(one.random(0.1)),
                "liked": repr(float(one.liked)),
            }
    return made


def some_systems():
    return {
        "Random": us.recommend.Random(),
        "Popularity": us.recommend.Popularity(),
        "WRMF": us.recommend.WRMF(factors=4, iterations=3),
        "BPRMF": us.recommend.BPRMF(factors=4, epochs=4),
        "LDA": us.recommend.LDA(topics=3, iterations=4),
    }


def estimates(data, _piece):
    train, test, random = data.train, data.test, data.random
    runs = {name: us.read_run(one) for name, one in data.runs.items()}
    how = {"train": train, "liked": LIKED}
    split = one_split(data)
    models = {name: one.fit(split.train, 0) for name, one in some_systems().items()}
    lists = us.targets.OneRelevant(others=9).lists(split, liked=LIKED)
    systems = some_systems()
    two = {name: systems[name] for name in ("WRMF", "BPRMF")}
    shop = us.world("shop", users=60, items=50, seed=1)
    relevance = us.Relevance(liked=LIKED)
    plan = us.Plan(
        algorithms=systems,
        relevance=relevance,
        metrics=("P@5", "Recall@5"),
        split=us.splits.Random(test=0.2),
        seed=3,
    )
    scores = us.evaluate(test, runs, ("P@5", "nDCG@10", "anti-P@5"), **how)
    rng = np.random.default_rng(81)
    rng.integers(0, 4, 200), rng.integers(0, 2, 200)  # ranks stay those of older saved folders
    ranks = {"x": rng.integers(1, 11, 60), "y": rng.integers(1, 6, 60)}
    few = {"resamples": 100, "seed": 2}
    work = {
        "evaluate": lambda: us.evaluate(test, runs, **how).means(),
        "evaluate exact": lambda: us.evaluate(
            us.targets.OneRelevant(others=9, exact=True).lists(split, liked=LIKED), models, "RR@10"
        ).means(),
        "evaluate models": lambda: us.evaluate(lists, models, ("P@5", "nDCG@10")).means(),
        "estimate": lambda: us.estimate(test, runs, ("P@5", "nDCG@10"), **how, **few),
        "estimate clipped": lambda: us.estimate(
            test, runs, "P@5", clip="90%", mean="ratio", users="all", **how, **few
        ),
        "propensity": lambda: us.unbiased.propensity(train, test),
        "propensity naive-bayes": lambda: us.unbiased.propensity(
            train, test, "naive-bayes", random=random
        ),
        "bounds": lambda: us.unbiased.bounds(test, runs, "P@5", **how),
        "sensitivity": lambda: us.unbiased.sensitivity(test, runs, "P@5", **how, **few),
        "judgments_needed": lambda: us.unbiased.judgments_needed(test, runs, "P@5", **how, **few),
        "stratified_recall": lambda: us.unbiased.stratified_recall(test, runs, 5, **how),
        "strata": lambda: us.unbiased.strata(test, runs, "P@5", m=4, resamples=100, **how),
        "correct_sampled": lambda: us.unbiased.correct_sampled(lists, models, resamples=100),
        "sampled_metrics": lambda: us.unbiased.sampled_metrics(
            ranks, items=100, n=10, resamples=100
        ),
        "expected_metrics": lambda: us.unbiased.expected_metrics(ranks, items=100, sizes=(10, 50)),
        "corrected_values": lambda: us.unbiased.corrected_values("nDCG@10", 100, 10),
        "target_sizes": lambda: us.unbiased.target_sizes(
            split, models, "P@5", (0, 10, 20), liked=LIKED, permutations=200, resamples=50
        ),
        "top_lists": lambda: us.online.top_lists(shop, systems, k=5, seed=4),
        "ab_test": lambda: us.online.ab_test(shop, systems, 500, k=5, seed=4),
        "ab_test forced": lambda: us.online.ab_test(
            shop, systems, 500, us.online.ForcedExposure(), k=5, seed=4
        ),
        "ab_test of a list": lambda: us.online.ab_test(
            shop,
            [us.recommend.Random(), us.recommend.WRMF(factors=4, iterations=3)],
            500,
            k=5,
            seed=4,
        ),
        "interleave": lambda: us.online.interleave(shop, two, 500, k=5, seed=4),
        "interleave balanced": lambda: us.online.interleave(
            shop, two, 500, k=5, seed=4, method="balanced"
        ),
        "multileave": lambda: us.online.multileave(shop, systems, 500, k=5, seed=4),
        "reuse_judgments": lambda: us.online.reuse_judgments(
            shop, systems, ["Random", "WRMF"], k=5
        ),
        "online_tests": lambda: us.online.online_tests(shop, systems, (50, 200), k=5, repeats=2),
        "null_experiment": lambda: us.auditing.null_experiment(
            data.ratings, plan, ("iid", "within-user"), 2, liked=LIKED
        ),
        "truth": lambda: us.auditing.truth(shop, plan, resamples=50),
        "truth of random": lambda: us.auditing.truth(
            data.ratings, plan, random=random, resamples=50
        ),
        "intervention_study": lambda: us.auditing.intervention_study(
            data.ratings,
            random,
            {
                "WRMF": (us.recommend.WRMF(iterations=2), {"factors": [2, 4]}),
                "BPRMF": us.recommend.BPRMF(factors=4, epochs=3),
                "Popularity": us.recommend.Popularity(),
            },
            relevance=relevance,
            repetitions=2,
        ),
        "tune": lambda: us.tune(
            us.recommend.WRMF(iterations=2),
            {"factors": [2, 4, 8], "alpha": [1.0, 5.0]},
            train,
            "nDCG@10",
            relevance=relevance,
            trials=3,
        ),
        "compare": lambda: us.compare(scores, permutations=500),
        "compare wilcoxon": lambda: us.compare(scores, test="wilcoxon"),
        "compare bootstrap": lambda: us.compare(scores, test="bootstrap", permutations=500),
        "power": lambda: us.stats.power(scores, permutations=200),
        "agreement": lambda: us.stats.agreement(scores, resamples=50, permutations=200),
        "stability": lambda: us.stats.stability(us.stats.score_table(scores, resamples=20)),
        "user_robustness": lambda: us.stats.user_robustness(scores, samples=5),
        "describe_bias": lambda: us.bias.describe_bias(data.ratings, liked=LIKED, random=random),
        "margins": lambda: us.bias.margins(scores),
        "optimal_rankings": lambda: us.bias.optimal_rankings(data.ratings, liked=LIKED),
        "expected_precision": lambda: us.evaluation.expected_precision(data.ratings, liked=LIKED),
        "fairness": lambda: us.evaluation.fairness(split, relevance=relevance),
        "sparsity": lambda: us.evaluation.sparsity(lists),
        "audit_split": lambda: us.splits.diagnose(split),
        "looks_random": lambda: us.splits.looks_random(random),
        "fit_popularity_law": lambda: us.worlds.fit_popularity_law(data.ratings),
        "summary": lambda: us.data.summary(data.ratings),
        "ties": lambda: {
            name: digest(us.rank(one, lists, 10, ties="random", seed=5).item)
            for name, one in models.items()
        },
    }
    made, wrong = {}, []
    for name, make in work.items():
        try:
            made[name] = plain(make())
        except Exception as error:
            wrong.append(f"{name}: {error!r}")
    if wrong:
        raise RuntimeError(" | ".join(wrong))
    return made


def presets(_data, _piece):
    """The settings of the papers' systems."""
    papers = {
        "bellogin2017": unskew_studies.preset("bellogin2017"),
        "valcarce2018": unskew_studies.preset("valcarce2018"),
        "carraro2020": unskew_studies.preset("carraro2020"),
        "mena2021": unskew_studies.preset("mena2021"),
        "castells2018": unskew_studies.preset("castells2018"),
    }
    return {paper: plain(systems) for paper, systems in papers.items()}


# Functions, one piece each

TABLES = (
    "table",
    "display_table",
    "pairs",
    "summary",
    "group_means",
    "ranking",
    "by_data_set",
    "curves",
    "changes",
    "gaps",
    "lorenz",
    "moved",
    "removed",
    "windows",
)
"""Methods of results that give a table."""


def record(result, home):
    """Return all of a result: its fields, its tables and its lines; of other values the value."""
    if not hasattr(result, "footer"):
        return steady(plain(result), home)
    tables = {
        name: getattr(result, name)() for name in TABLES if callable(getattr(result, name, None))
    }
    lines = {
        "header": result.header(),
        "footer": result.footer(),
        "text": str(result).splitlines(),
        "repr": repr(result),
    }
    told = {"fields": plain(result), "dict": plain(result.to_dict()), "tables": plain(tables)}
    return steady(told | lines, home)


def function_piece(make):
    def piece(data, _name):
        home = str(data.home)
        return {name: record(result, home) for name, result in make(data).items()}

    return piece


# Writing


def pieces():
    made = {f"study-{name}": study_piece(name) for name in STUDIES}
    made |= {"audit-demo": audit_demo, "fn-demo": command_piece(DEMO)}
    made |= {name: command_piece(words) for name, words in commands().items()}
    inside = {
        "audit-world": audit_world,
        "splits": splits,
        "targets": targets,
        "interventions": interventions,
        "recommenders": recommenders,
        "worlds": worlds,
        "estimates": estimates,
        "presets": presets,
    }
    inside |= {name: function_piece(make) for name, make in FUNCTIONS.items()}
    return made, inside


def write(folder, name, make, data):
    begin = time.perf_counter()
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            text = json.dumps(make(data, name), indent=1, sort_keys=True, ensure_ascii=False)
        state = ""
    except Exception:
        lines = traceback.format_exc().strip().splitlines()
        text = f"ERROR {lines[-1]}".replace(str(data.home), "HOME")
        state = text
        if os.environ.get("FROZEN_DEBUG"):
            traceback.print_exc()
    (folder / f"{name}.json").write_text(text + "\n", encoding="utf-8")
    print(f"{name:28} {time.perf_counter() - begin:6.1f} s  {state}", flush=True)
    return not state


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--only", default="", help="beginnings of names, between commas")
    given = parser.parse_args()
    folder = given.folder.resolve()
    folder.mkdir(parents=True, exist_ok=True)
    begun = tuple(filter(None, given.only.split(",")))
    outside, inside = pieces()
    if begun:
        outside, inside = (
            {name: make for name, make in part.items() if name.startswith(begun)}
            for part in (outside, inside)
        )
    begin, home = time.perf_counter(), Path(tempfile.mkdtemp(prefix="frozen-"))
    try:
        data = Data(home)
        with ThreadPoolExecutor(2) as pool:  # commands are processes of their own
            jobs = [pool.submit(write, folder, *piece, data) for piece in outside.items()]
            good = [job.result() for job in jobs]
        good += [write(folder, *piece, data) for piece in inside.items()]
    finally:
        shutil.rmtree(home, ignore_errors=True)
    taken = math.ceil(time.perf_counter() - begin)
    print(f"{len(good)} pieces, {good.count(False)} with errors, {taken} s")
    return 0 if all(good) else 1


if __name__ == "__main__":
    sys.exit(main())
