"""`unskew split --audit`: splits that are made, given or saved, and what the exit code says."""

import json

import pytest

import unskew as us
from reliability.planted_leaks import plant_leak
from unskew.splits.time.temporal import Temporal


@pytest.fixture(scope="module")
def logs(tmp_path_factory):
    home = tmp_path_factory.mktemp("logs")
    log = us.worlds.event_log("growing", users=120, items=90, events=3_000, seed=3)
    ratings = log.to_ratings("first")
    ratings.to_csv(home / "ratings.csv")
    (split,) = Temporal(test=0.2).split(ratings)
    leaky = plant_leak(plant_leak(split, "copies"), "popularity", 1.0)
    leaky.train.to_csv(home / "train.csv")
    leaky.test.to_csv(home / "test.csv")
    events = us.worlds.event_log("repeating", users=120, items=90, events=3_000, seed=3)
    events.to_polars().write_csv(home / "events.csv")
    return home


def test_a_clean_split(logs, call, tmp_path):
    code, out, _ = call("split", logs / "ratings.csv", "-p", "temporal", "--audit")
    assert code == 0
    assert ": 0 leaks, " in out.splitlines()[0]
    assert max(map(len, out.splitlines())) <= 100
    page = tmp_path / "leaks.html"
    code, again, messages = call(
        "split", logs / "ratings.csv", "-p", "temporal", "--audit", "-o", page, "--fail-on", "leak"
    )
    assert (code, again) == (0, out)
    assert "Leaks and drift" in page.read_text()
    assert f"written to {page}" in " ".join(messages.split())


def test_red_lights_and_the_exit_code(logs, call, tmp_path):
    random = ("split", logs / "ratings.csv", "--test", "0.2", "--audit", "-q")
    assert call(*random)[0] == 0
    code, out, messages = call(*random, "--fail-on", "leak", "-o", tmp_path / "leaks.json")
    assert code == 3
    assert "Systems learn from the future" in " ".join(out.split())
    assert messages == ""
    lights = json.loads((tmp_path / "leaks.json").read_text())["lights"]
    assert lights["future"] == "leak"


def test_a_split_of_somebody_else(logs, call):
    given = ("split", logs / "train.csv", "--test-ratings", logs / "test.csv", "-p", "given")
    code, out, _ = call(*given, "--audit", "--feature", "popularity", "--fail-on", "leak")
    assert code == 3
    text = " ".join(out.split())
    assert "are in training too, with the same time and value" in text
    assert "'popularity' follows the number of rows of each item over training and test" in text
    code, _, messages = call(*given, "-o", "nowhere")
    assert (code, "are in both parts" in messages) == (1, True)  # which an audit shows


def test_parts_are_written_and_audited_again(logs, call, tmp_path):
    parts = tmp_path / "parts"
    code, first, _ = call(
        "split", logs / "events.csv", "--event-log", "-p", "windows", "--number", "3", "--audit",
        "-o", parts,
    )  # fmt: skip
    assert code == 0
    assert (parts / "card.json").is_file()
    assert first.startswith("3 splits: 0 leaks")
    code, second, _ = call("split", parts, "--audit", "--fail-on", "leak")
    assert code == 0
    assert second.startswith("3 splits: 0 leaks")
    assert "No log was given: facts about it are those of the parts of window1." in second


def test_a_saved_split_knows_its_filters(logs, call, tmp_path):
    """A k-core before the split is red when the split is made, and when its folder is read."""
    made = ("split", logs / "ratings.csv", "-p", "temporal", "--filter", "k-core:users=8,items=8")
    _, first, _ = call(*made, "--audit", "-o", tmp_path / "parts")
    _, second, _ = call("split", tmp_path / "parts", "--audit")
    for out in (first, second):
        assert "k-core(users=8, items=8) counted test rows too" in " ".join(out.split())


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["ratings.csv"], "--output"),
        (["ratings.csv", "-o", "x.html"], "writes a folder, not a file"),
        (["ratings.csv", "-o", "x", "--fail-on", "leak"], "--fail-on is for --audit"),
        (["ratings.csv", "-o", "x", "--feature", "f"], "--feature is for --audit"),
        (["ratings.csv", "--audit", "--fail-on", "red"], "unknown fail-on 'red'"),
        (["ratings.csv", "--audit", "--feature", "nope"], "no column 'nope'"),
        (["nowhere.csv", "--audit"], "no such file"),
        (["parts", "--audit", "--test", "0.2"], "is split already; leave out --test"),
        (["parts", "--audit", "--protocol", "user"], "leave out --protocol"),
        (["parts", "--audit", "--seed", "3"], "leave out --seed"),
        (["parts", "--audit", "--feature", "f"], "leave out --feature"),
        (["parts", "--audit", "--event-log"], "leave out --event-log"),
        (["parts", "--audit", "--columns", "user=u"], "leave out --columns"),
        (["parts", "--audit", "-o", "more"], "give a file for the diagnosis"),
        (["empty", "--audit"], "holds no card.json"),
        (["ml-100k", "--audit", "--feature", "f"], "--feature names a column of a file"),
    ],
)
def test_what_is_refused(logs, call, tmp_path, monkeypatch, arguments, words):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "empty").mkdir()
    (tmp_path / "ratings.csv").write_text((logs / "ratings.csv").read_text())
    assert call("split", "ratings.csv", "-p", "temporal", "-o", "parts")[0] == 0
    code, _, messages = call("split", *arguments)
    assert code in (1, 2)  # bad data, bad options
    assert words in " ".join(messages.split())
