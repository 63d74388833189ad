"""Every command that prints JSON, with calls whose options change what it prints."""

import io
import json
from contextlib import redirect_stderr, redirect_stdout

import numpy as np
import polars as pl

from shared.commands import (
    EXPLAINED,
    GATES,
    JUDGED,
    LOG,
    PLAN,
    RATINGS,
    TABLES,
    TRAIN,
    write_annotation,
    write_values,
)
from unskew.cli import main

OTHERS = {
    "algorithms": [[], ["slim"]],
    "metrics": [[], ["nDCG@3"], ["--library", "all"], ["--library", "recbole"]],
    "plan check": [["plan.toml"], ["plan.toml", "--no-estimate"]],
    "schema": [[]],
    "split": [["test.csv", "--audit"], ["test.csv", "--audit", "--folds", "3"]],
    "store gc": [["store"]],
    "store ls": [["store"]],
    "store verify": [["store"]],
}
"""Commands that print lines, or JSON on request."""

LABELS = [
    "--labels",
    "model.csv",
    "--human",
    "people.csv",
    "-r",
    "a.csv",
    "-r",
    "b.csv",
    "-m",
    "P@2",
]
ON_DISK = ["-j", "test.parquet", "-r", "a=a.parquet", "-r", "b=b.parquet", "-m", "P@2", "--liked",
           "4", "--on-disk"]  # fmt: skip
TRAINED = [*JUDGED, "--train", "train.csv"]

FURTHER = {
    "evaluate": [
        [*JUDGED, "-m", "AP"],
        TRAINED,
        [*JUDGED, "--hygiene"],
        [*ON_DISK, "on-disk"],
    ],
    "compare": [
        [*JUDGED, "--test", "t"],
        [*JUDGED, "--permutations", "20", "--against", "a"],
        [*JUDGED, "--permutations", "20", "-m", "AP", "--rope", "0.01"],
        [*TRAINED, "--permutations", "20", "--by", "activity"],
    ],
    "estimate": [
        [*TRAINED, "--resamples", "0"],
        [*TRAINED, "--resamples", "5", "--sensitivity"],
        [*TRAINED, "--resamples", "5", "--bounds"],
        [*TRAINED, "--clipping"],
        LABELS,
    ],
    "explain": [[*EXPLAINED, "--value", "0.25"]],
    "groups": [
        [*JUDGED[:6], "--liked", "4", "--train", "train.csv", "--by-items", "genres.csv:genre"]
    ],
    "strata": [
        [*TRAINED, "--by", "activity", "--resamples", "0"],
        [*TRAINED, "--strata", "2", "--resamples", "5", "--heads"],
    ],
    "power": [[*TABLES["power"], "--pairs"]],
    "bias describe": [["test.csv"]],
    "bias lists": [[*JUDGED[:6], "--liked", "4", "--train", "train.csv", "-k", "2"]],
    "data info": [["train.csv"], ["log.csv"], ["valcarce2018_ml-1m_results.csv"]],
    "gate": [[*GATES["gate"], "--train", "train.csv"]],
    "annotate status": [["judged", "--smallest", "0.5"]],
    "robustness": [[*JUDGED, "--samples", "2", "-m", "AP"]],
}
"""Options that let a command print another result, or further parts of it."""

CALLS = {
    **{name: [call, *FURTHER.get(name, ())] for name, call in (TABLES | GATES).items()},
    **OTHERS,
}
"""By command: arguments of several calls."""


def write_files(folder):
    """Write what the calls read."""
    for name, rows in (("test", RATINGS), ("train", TRAIN)):
        frame = pl.DataFrame(rows, ["user", "item", "rating"], orient="row")
        frame.write_csv(folder / f"{name}.csv")
    for name, step in (("a", 1), ("b", 3)):
        rows = [(u, (u + step * k) % 10, k + 1) for u in range(12) for k in range(3)]
        pl.DataFrame(rows, ["user", "item", "rank"], orient="row").write_csv(folder / f"{name}.csv")
    for name in ("test", "a", "b"):
        pl.read_csv(folder / f"{name}.csv").write_parquet(folder / f"{name}.parquet")
    genres = pl.DataFrame({"item": list(range(10)), "genre": ["x", "y"] * 5})
    genres.write_csv(folder / "genres.csv")
    _write_labels(folder)
    (folder / "plan.toml").write_text(PLAN)
    write_annotation(folder)
    write_values(folder)
    pl.DataFrame(LOG, ["user", "item", "time"], orient="row").write_csv(folder / "log.csv")
    output_of("run", str(folder / "plan.toml"), "--data", str(folder / "test.csv"),
              "--store", str(folder / "store"), "-q")  # fmt: skip


def _write_labels(folder):
    """Write labels of a model for all recommended pairs, and of people for some of them."""
    rng = np.random.default_rng(3)
    lists = [pl.read_csv(folder / f"{name}.csv").select("user", "item") for name in "ab"]
    pairs = pl.concat(lists).unique(maintain_order=True)
    liked = (rng.random(pairs.height) < 0.5).astype(int)
    pairs.with_columns(label=1 - liked).write_csv(folder / "model.csv")
    some = np.sort(rng.choice(pairs.height, pairs.height // 2, replace=False))
    pairs[some].with_columns(label=liked[some]).write_csv(folder / "people.csv")


def output_of(*words):
    """Run a command; return its exit code, output and errors."""
    out, err = io.StringIO(), io.StringIO()
    code = 0
    with redirect_stdout(out), redirect_stderr(err):
        try:
            main(list(words))
        except SystemExit as end:
            code = end.code or 0
    return code, out.getvalue(), err.getvalue()


def printed(name, call):
    """Return the JSON that a command prints, which must be all of standard output."""
    code, out, err = output_of(*name.split(), *call, "--format", "json")
    assert code in ((0, 1, 3) if name in GATES else (0,)), (name, call, err)
    return json.loads(out)
