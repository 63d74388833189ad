"""`unskew estimate --labels FILE --human FILE`: numbers as in Python, errors in one line."""

import json

import numpy as np
import polars as pl
import pytest

import unskew as us
from shared.commands import invoke, run

ARGUMENTS = ["estimate", "--labels", "model.csv", "--human", "people.csv", "-r", "a.csv",
             "-r", "b.csv", "-m", "P@3"]  # fmt: skip


@pytest.fixture
def files(tmp_path, monkeypatch):
    """Write lists of two systems, labels of a model for all pairs and of people for some."""
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(3)
    rows, lists = set(), {}
    for name in "ab":
        lists[name] = [
            (u, int(i), k + 1) for u in range(80) for k, i in enumerate(rng.permutation(12)[:3])
        ]
        frame = pl.DataFrame(lists[name], ["user", "item", "rank"], orient="row")
        frame.write_csv(f"{name}.csv")
        rows |= {(u, i) for u, i, _ in lists[name]}
    pairs = pl.DataFrame(sorted(rows), ["user", "item"], orient="row")
    liked = (rng.random(pairs.height) < 0.45).astype(int)
    said = np.where(rng.random(pairs.height) < 0.85, liked, 1 - liked)
    pairs.with_columns(label=said).write_csv("model.csv")
    some = np.sort(rng.choice(pairs.height, 120, replace=False))
    people = pairs[some].with_columns(label=liked[some])
    people.write_csv("people.csv")
    people.with_columns(p=pl.lit(0.25), part=pl.col("item") % 2).write_csv("drawn.csv")
    return tmp_path


def test_the_command_gives_what_the_function_gives(files):
    result = invoke(*ARGUMENTS, "--format", "json")
    assert result.exit_code == 0, result.output
    made = us.labels.assisted("model.csv", {"a": "a.csv", "b": "b.csv"}, "P@3", human="people.csv")
    printed = json.loads(result.stdout)
    assert printed["rows"] == made.to_dict()["rows"]
    assert printed["parts"] == made.to_dict()["parts"]


def test_options_reach_the_function(files):
    more = ["--population", "users", "--interval", "bootstrap", "--resamples", "50", "--level",
            "0.9", "--mean", "ratio", "--liked", "1"]  # fmt: skip
    result = invoke(*ARGUMENTS, *more, "--format", "json")
    made = us.labels.assisted(
        "model.csv",
        {"a": "a.csv", "b": "b.csv"},
        "P@3",
        human="people.csv",
        population="users",
        interval="bootstrap",
        resamples=50,
        level=0.9,
        mean="ratio",
        liked=1,
    )
    assert json.loads(result.stdout)["rows"] == made.to_dict()["rows"]


def test_columns_of_the_sample_can_be_named(files):
    named = [*ARGUMENTS]
    named[4] = "drawn.csv:probability=p,stratum=part"
    result = invoke(*named, "--format", "json")
    assert result.exit_code == 0, result.output
    assert json.loads(result.stdout)["card"]["sample"] == "taken as random within 2 strata"
    named[4] = "drawn.csv:probability=q"
    result = invoke(*named)
    assert result.exit_code == 1
    assert "no column 'q'" in result.output


def test_table_figure_and_file(files, capsys):
    code, text = run(capsys, *ARGUMENTS, "-o", "out.csv", "--figure", "out.svg")
    assert code == 0
    assert "P@3: differences" in text
    assert "agreement of annotator and people" in text
    assert pl.read_csv("out.csv")["quantity"].n_unique() == 4
    assert "P@3: assisted estimates" in (files / "out.svg").read_text()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--labels", "model.csv"], "give both --labels"),
        (["--human", "people.csv"], "give both --labels"),
        ([], "give --judgments, or --labels and --human"),
        (["-j", "model.csv", "--population", "users"], "--population is for labels"),
        (["-j", "model.csv", "--labels", "model.csv", "--human", "people.csv"], "not both"),
        (["--labels", "model.csv", "--human", "people.csv", "--clip", "5"], "--clip is for"),
        (["--labels", "model.csv", "--human", "people.csv", "--bounds"], "--bounds is for"),
        (["--labels", "model.csv", "--human", "people.csv", "--random", "x.csv"], "--random is"),
        (["--labels", "model.csv", "--human", "people.csv", "--resamples", "5"], "--resamples is"),
        (["--labels", "model.csv", "--human", "people.csv", "--users", "all"], "--users is for"),
        (["--labels", "model.csv", "--human", "people.csv", "--propensity", "x"], "--propensity"),
        (["--labels", "model.csv", "--human", "none.csv"], "none.csv"),
        (["--labels", "people.csv", "--human", "people.csv"], "--unlabelled disliked"),
        (["--labels", "model.csv", "--human", "people.csv", "-m", "nDCG@3"], "nDCG@3 cannot be"),
    ],
)
def test_what_does_not_go_together_is_one_line(files, arguments, message):
    result = invoke("estimate", "-r", "a.csv", "-r", "b.csv", *arguments)
    assert result.exit_code in (1, 2)  # data, or options
    assert message in " ".join(result.output.split())
    assert "Traceback" not in result.output
