"""Named data sets work wherever a file of ratings does, with options after a colon."""

import json

import numpy as np
import polars as pl
import pytest

from shared.commands import PLAN
from unskew.cli.options import NamedFileOptions
from unskew_studies.command_run import read_data

USERS, ITEMS = 14, 12


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    """Return a data folder with coat (ratings and a random part) and cm100k (all random)."""
    home = tmp_path_factory.mktemp("data")
    rng = np.random.default_rng(5)
    (home / "coat").mkdir()
    for name, share in (("train", 0.5), ("test", 0.3)):
        matrix = rng.integers(1, 6, (USERS, ITEMS)) * (rng.random((USERS, ITEMS)) < share)
        text = "\n".join(" ".join(map(str, row)) for row in matrix)
        (home / "coat" / f"{name}.ascii").write_text(text + "\n")
    (home / "cm100k").mkdir()
    rows = [(u, i, int(rng.integers(1, 5)), int(rng.random() < 0.4))
            for u in range(USERS) for i in range(ITEMS) if rng.random() < 0.6]  # fmt: skip
    lines = "\n".join("\t".join(map(str, row)) for row in rows)
    (home / "cm100k" / "ratings.txt").write_text(lines + "\n")
    return home


@pytest.fixture
def run(data, call, tmp_path, monkeypatch):
    monkeypatch.setenv("UNSKEW_DATA", str(data))
    monkeypatch.chdir(tmp_path)

    def do(*arguments):
        code, out, err = call(*arguments)
        assert code == 0, err
        return out, err

    return do


def facts(run, source):
    return json.loads(run("data", "info", source, "--format", "json")[0])["parts"]


FAMILIAR = "cm100k:observed=familiar"


def test_options_change_what_is_read(run):
    every, familiar = facts(run, "cm100k"), facts(run, FAMILIAR)
    assert [part["part"] for part in familiar] == ["observed", "random"]
    assert familiar[1]["ratings"] == every[0]["ratings"] > familiar[0]["ratings"]


@pytest.mark.parametrize(
    "command",
    [
        ("split", "{}", "--test", "0.3", "-o", "out"),
        ("intervene", "{}", "--kind", "reg", "-o", "out"),
        ("recommend", "--train", "{}", "-o", "out.csv"),
        ("bias", "describe", "{}"),
        ("bias", "pairs", "{}"),
        ("bias", "null", "{}", "-a", "random", "--designs", "random", "--repeats", "2"),
        ("run", "plan.toml", "--data", "{}"),
        ("run", "of-data.toml"),
        ("plan", "check", "plan.toml", "--no-estimate", "--data", "{}"),
    ],
    ids=" ".join,
)
def test_wherever_a_file_does(run, tmp_path, command):
    plan = PLAN.replace("liked = 4", "liked = 3")
    (tmp_path / "plan.toml").write_text(plan)
    (tmp_path / "of-data.toml").write_text(plan.replace("test.csv", FAMILIAR))
    run(*(word.format(FAMILIAR) for word in command))
    if command[0] == "split":
        rows = facts(run, FAMILIAR)[0]["ratings"]
        card = json.loads((tmp_path / "out" / "card.json").read_text())
        assert card["file"] == FAMILIAR
        assert card["data"]["ratings"] == rows


def test_the_random_part_where_random_ratings_are_asked_for(run, call, tmp_path):
    random = facts(run, "coat")[1]["ratings"]
    run("split", "coat", "-p", "forced", "--test-ratings", "coat", "--overlap", "keep", "-o", "out")
    assert pl.read_parquet(tmp_path / "out" / "test.parquet").height == random
    run("bias", "describe", "coat", "--random", "coat", "--liked", 4)
    run("intervene", "coat", "--train", "coat", "--mar", "coat", "--kind", "wtd", "-o", "wtd")
    run("bias", "describe", FAMILIAR, "--random", "cm100k", "--liked", 3)
    (tmp_path / "ratings").mkdir()
    code, _, err = call("bias", "describe", "coat", "--random", "ml-1m", "--data-dir", tmp_path)
    assert code == 1
    assert "is not there" in err


def test_tags_come_along(run, tmp_path):
    run("split", "cm100k", "-p", "familiar", "--folds", 2, "-o", "folds")
    assert (tmp_path / "folds" / "card.json").is_file()


def test_a_file_of_that_name_wins(run, tmp_path):
    (tmp_path / "coat").write_text("user,item,rating\n1,a,5\n1,b,3\n2,a,4\n2,c,4\n3,b,1\n")
    out, _ = run("recommend", "--train", "coat", "-o", "lists.csv")
    assert "3 lists" in out


def test_what_is_refused(run, call, tmp_path):
    for words, says in (
        (["split", "coat:colour=red", "-o", "out"], "does not take the option 'colour'"),
        (["split", "coat:overlap", "-o", "out"], "write options of a data set as NAME:OPTION"),
        (["split", "coat", "-p", "events", "-o", "out"], "reads a log from a file"),
        (["recommend", "--train", "coat", "--columns", "user=u", "-o", "o.csv"], "is for files"),
        (["split", "x.csv", "--data-dir", "d", "-o", "out"], "--data-dir is for named data sets"),
        (["bias", "describe", "coat", "--random", "cm100k:observed=al"], "unknown observed 'al'"),
    ):
        code, _, err = call(*words)
        assert code in (1, 2)
        assert says in err


def test_studies(run):
    files = NamedFileOptions(
        columns=None, duplicates=None, feedback=None, events=None, weights=None, data_dir=None
    )
    assert read_data("COAT", files) == "coat"
    assert read_data(FAMILIAR, files).random is not None


def test_bias_says_when_everything_is_random(run):
    out, err = run("bias", "describe", "cm100k", "--liked", 3)
    assert "all judgments are of randomly chosen items; with observed=familiar" in err
    assert "settle the question" not in out
    assert "cannot tell. If" not in out or "of items that users chose cannot tell" in out
