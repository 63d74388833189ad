"""Every command, with arguments on files that are small enough to run them all."""

import warnings

import polars as pl
import pytest
from typer.main import get_command
from typer.testing import CliRunner

from unskew.cli import app, main
from unskew.labels.plan_annotation import plan_annotation

RATINGS = [(u, i, 1 + (u * i + u) % 5) for u in range(12) for i in range(10) if (u + 2 * i) % 3]


TRAIN = [(u, i, 1 + (u + i) % 5) for u in range(12) for i in range(10) if not (u + 2 * i) % 3]


LOG = [(u, (3 * u + k) % 10, 86_400 * k + 60 * u) for u in range(12) for k in range(10)]


def commands(group=None, before=()):
    """Return every command under its whole name."""
    found = {}
    for name, command in (get_command(app) if group is None else group).commands.items():
        if hasattr(command, "commands"):
            found |= commands(command, (*before, name))
        else:
            found[" ".join((*before, name))] = command
    return found


COMMANDS = commands()


JUDGED = ["-j", "test.csv", "-r", "a.csv", "-r", "b.csv", "-m", "P@2", "--liked", "4"]


EXPLAINED = ["-j", "test.csv", "-r", "a.csv", "-m", "P@2", "--liked", "4"]


TABLES = {
    "evaluate": JUDGED,
    "compare": [*JUDGED, "--permutations", "20"],
    "groups": [*JUDGED, "--train", "train.csv", "--by", "activity", "--groups", "2"],
    "distribution": JUDGED,
    "ranking": ["books.csv", "films.csv", "--resamples", "5"],
    "power": [*JUDGED, "--permutations", "20"],
    "robustness": [*JUDGED, "--samples", "2"],
    "strata": [*JUDGED, "--train", "train.csv", "--strata", "2", "--resamples", "5"],
    "estimate": [*JUDGED, "--train", "train.csv", "--resamples", "5"],
    "annotate status": ["judged", "--smallest", "0.1"],
    "annotate read": ["judged"],
    "explain": [*EXPLAINED, "--between", "ours", "recbole"],
    "bias describe": ["test.csv", "--liked", "4"],
    "bias lists": [*JUDGED[:6], "--liked", "4", "--train", "train.csv", "-k", "2", "--by", "none"],
    "bias pairs": ["test.csv", "--liked", "4"],
    "bias null": ["test.csv", "--liked", "4", "-a", "random", "--designs", "random",
                  "--repeats", "2"],
    "bias truth": ["--world", "null", "--users", "30", "--items", "12", "-a", "random",
                   "-a", "popularity", "-m", "P@2", "--resamples", "5"],
    "data list": [],
    "data info": ["test.csv"],
    "study list": [],
    "run": ["plan.toml"],
}  # fmt: skip


FOLDERS = {
    "annotate plan": ["-r", "a.csv", "-r", "b.csv", "-m", "P@2", "--budget", "6"],
    "annotate extend": ["judged", "--budget", "2"],
    "split": ["test.csv"],
    "intervene": ["test.csv", "--kind", "reg"],
    "world": ["null", "--users", "20", "--items", "10"],
}


REPORTS = {
    "audit": ["test.csv"],
    "demo": [],
    "study run": ["mena2021", "--stand-in"],
    "timeline": ["log.csv", "--event-log"],
}


GATES = {
    "gate": ["-j", "test.csv", "--candidate", "a.csv", "--production", "b.csv", "-m", "P@2",
             "--liked", "4"],
}  # fmt: skip
"""Commands whose exit code is an answer."""


LISTS = {
    "recommend": ["--train", "train.csv"],
    "data filter": ["test.csv", "--filter", "k-core:users=2,items=2"],
}


PLAN = """
metrics = ["P@2"]
[data]
file = "test.csv"
[relevance]
liked = 4
[[split]]
protocol = "random"
[[targets]]
design = "all-items"
[[algorithm]]
name = "popularity"
"""


def write_annotation(folder):
    """Plan an annotation of a.csv and b.csv in a folder, and judge its first pairs."""
    runs = {name: folder / f"{name}.csv" for name in "ab"}
    home = plan_annotation(runs, "P@2", budget=6).save(folder / "judged")
    frame = pl.read_csv(home / "to-judge.csv", infer_schema=False)
    label = ["1", "0", "1", "?", None, None]
    frame.with_columns(pl.Series("label", label)).write_csv(home / "to-judge.csv")


def write_values(folder):
    """Write values per user of two systems on two data sets."""
    for name, step in (("books", 3), ("films", 5)):
        rows = [(u, u * step % 7 / 7, u * step % 4 / 4) for u in range(12)]
        frame = pl.DataFrame(rows, ["user", "x", "y"], orient="row")
        frame.write_csv(folder / f"{name}.csv")


def run(capsys, *arguments):
    """Run a command in this process; return its exit code and all that it printed."""
    with warnings.catch_warnings(), pytest.raises(SystemExit) as stop:
        main([str(argument) for argument in arguments])
    out = capsys.readouterr()
    return stop.value.code, out.out + out.err


def invoke(*arguments):
    """Run a command in this process; return its exit code, output and errors as one result."""
    return CliRunner().invoke(app, [str(argument) for argument in arguments])
