"""`unskew gate`: exit codes, files, `gate init`."""

import json

import polars as pl
import pytest

from unskew.gating.settings import TEMPLATE


@pytest.fixture
def home(tmp_path, monkeypatch):
    """Return a folder with judgments and the lists of a good and a bad system."""
    users = range(80)
    rows = [(u, item, rating) for u in users for item, rating in (("a", 5), ("b", 5), ("c", 1))]
    pl.DataFrame(rows, ["user", "item", "rating"], orient="row").write_csv(tmp_path / "test.csv")
    lists = {
        "good": lambda u: ["a", "b"] if u % 5 else ["a", "d"],
        "bad": lambda u: ["c", "a"] if u % 5 else ["c", "d"],
    }
    for name, of in lists.items():
        rows = [(u, item, k) for u in users for k, item in enumerate(of(u), start=1)]
        frame = pl.DataFrame(rows, ["user", "item", "rank"], orient="row")
        frame.write_csv(tmp_path / f"{name}.csv")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def files(candidate, production):
    return [
        "gate", "-j", "test.csv", "--candidate", f"{candidate}.csv", "--production",
        f"{production}.csv", "-m", "P@2", "--liked", "4",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("candidate", "production", "code", "word"),
    [
        ("good", "bad", 0, "PROMOTE"),
        ("bad", "good", 1, "HOLD"),
    ],
)
def test_the_exit_code_is_the_answer(home, call, candidate, production, code, word):
    came, out, err = call(*files(candidate, production))
    assert came == code, err
    assert out.startswith(word)


def test_users_of_one_group_count_once(home, call):
    frame = pl.DataFrame({"user": range(80), "home": [f"home {user // 2}" for user in range(80)]})
    frame.write_csv(home / "homes.csv")
    text = files("good", "bad")
    came, out, _ = call(*text, "--group-users", "homes.csv:home", "--format", "json")
    assert came == 0
    assert json.loads(out)["better"]["users"] == 40
    came, _, err = call(*text, "--group-users", "homes.csv:hme")
    assert came == 2
    assert "hme" in err
    assert "home" in err


@pytest.fixture
def daily(home):
    """Add lists of three days, and test ratings with times: of good ones users like half."""
    rows = [
        (u, f"2024-05-0{day}", item, rank)
        for u in range(80) for day in (1, 2, 3) for rank, item in enumerate("ab", start=1)
    ]  # fmt: skip
    frame = pl.DataFrame(rows, ["user", "date", "item", "rank"], orient="row")
    frame.write_csv(home / "good.csv")
    frame.with_columns(item=pl.col("item").replace("b", "c")).write_csv(home / "bad.csv")
    test = pl.read_csv(home / "test.csv").with_columns(time=pl.lit("2024-05-02T12:00:00"))
    test.write_csv(home / "test.csv")
    return home


COMMANDS = {
    "gate": files("good", "bad"),
    "evaluate": ["evaluate", "-j", "test.csv", "-r", "good.csv", "-r", "bad.csv", "-m", "P@2",
                 "--liked", "4"],
    "compare": ["compare", "-j", "test.csv", "-r", "good.csv", "-r", "bad.csv", "-m", "P@2",
                "--liked", "4"],
}  # fmt: skip


@pytest.mark.parametrize("command", COMMANDS)
def test_daily_lists_are_proposed_and_taken(daily, call, command):
    came, _, err = call(*COMMANDS[command])
    assert came == (2 if command == "gate" else 1)
    assert "320 ranks occur twice in one list" in err
    assert err.strip().endswith("these are daily lists; use --lists user,date")
    assert "--by" not in err
    came, out, err = call(*COMMANDS[command], "--lists", "user,date")
    assert came == 0, err
    assert "good" in out


def test_daily_lists_of_the_gate_are_followed_by_what_users_did(daily, call):
    """The list of the third day is followed by nothing; two lists of each of 80 users count."""
    came, out, _ = call(*files("good", "bad"), "--lists", "user,date", "--format", "json")
    assert came == 0
    result = json.loads(out)
    assert (result["better"]["candidate"], result["better"]["production"]) == (1.0, 0.5)
    assert result["better"]["users"] == 80
    assert any(note.startswith("240 lists of 80 users") for note in result["notes"])
    assert "80 lists have no test rating from that date on" in result["notes"]


@pytest.mark.parametrize("rule", ["first", "last", "count"])
def test_of_a_log_what_users_did_again_counts(daily, call, rule):
    """Everybody met everything also before the first list: that changes nothing."""
    test = pl.read_csv(daily / "test.csv").filter(pl.col("rating") == 5).drop("rating")
    before = test.with_columns(time=pl.lit("2024-04-01T00:00:00"))
    pl.concat([test, before]).write_csv(daily / "test.csv")
    words = [word for word in COMMANDS["evaluate"] if word not in ("--liked", "4")]
    came, out, err = call(*words, "--lists", "user,date", "--duplicates", rule, "--format", "json")
    assert came == 0, err
    result = json.loads(out)
    assert result["good"]["P@2"]["mean"] == 1.0
    assert result["bad"]["P@2"]["mean"] == 0.5


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        (["--compat", "recbole"], "--compat is for one list per user"),
        (["--hygiene"], "--lists cannot be used with --hygiene"),
        (["--on-disk", "judged"], "--lists cannot be used with --on-disk"),
        (["--targets", "all-items"], "--targets … is for one list per user"),
    ],
)
def test_options_that_take_one_list_per_user_say_so(daily, call, options, reason):
    came, _, err = call(*COMMANDS["evaluate"], "--lists", "user,date", *options)
    assert came == 2
    assert reason in err


def test_the_same_lists_are_not_settled(home, call):
    (home / "same.csv").write_bytes((home / "bad.csv").read_bytes())
    code, out, _ = call(*files("same", "bad"))
    assert code == 3
    assert out.startswith("NOT SETTLED")
    code, out, _ = call(*files("same", "bad"), "--margin", "1%")
    assert code == 0, out


@pytest.mark.parametrize(
    "more",
    [
        ["--candidate", "nothing.csv"],
        ["--margin", "much"],
        ["--rail", "gini"],
        ["--rail", "ginni=5%"],
        ["--alpha", "0.9"],
        ["--config", "nothing.toml"],
        ["--by", "nothing"],
        ["-o", "gate.csv"],
        ["-o", "-"],
        ["--format", "latex"],
        ["now"],
        ["init", "x.txt"],
        ["init"],
    ],
)
def test_bad_input_ends_in_2(home, call, more):
    (home / "broken.toml").write_text("=")
    code, _, err = call(*files("good", "bad"), *more)
    assert code == 2
    assert err
    assert "Traceback" not in err


def test_data_that_cannot_be_used_end_in_2(home, call):
    (home / "broken.toml").write_text("=")
    code, _, err = call(*files("good", "bad"), "--config", "broken.toml")
    assert code == 2
    assert "no TOML file" in err
    assert call("gate")[0] == 2


def test_files_and_formats(home, call):
    names = ["gate.md", "gate.xml", "gate.json", "gate.html"]
    outputs = [part for name in names for part in ("-o", name)]
    code, _, err = call(*files("good", "bad"), *outputs)
    assert code == 0
    for name in names:
        assert f"written to {name}" in err
        assert (home / name).stat().st_size > 500
    for kind, begin in {"json": "{", "markdown": "**PROMOTE", "junit": "<?xml"}.items():
        code, out, _ = call(*files("good", "bad"), "--format", kind, "-q")
        assert code == 0
        assert out.startswith(begin)


def test_init_writes_thresholds_that_the_gate_takes(home, call):
    code, _, err = call("gate", "init")
    assert code == 0
    assert "written to gate.toml" in err
    assert (home / "gate.toml").read_text() == TEMPLATE
    assert call("gate", "init")[0] == 2  # it stays as it is
    assert call("gate", "init", "other.toml")[0] == 0
    given = files("good", "bad")
    plain = json.loads(call(*given, "--format", "json")[1])
    config = json.loads(call(*given, "--format", "json", "--config", "gate.toml")[1])
    assert plain == config


def test_looks_are_counted(home, call):
    for number in (1, 1):
        _, out, _ = call(*files("good", "bad"), "--log", "looks.jsonl")
        assert f"look {number} at this test log" in out
    _, out, _ = call(*files("good", "bad"), "--log", "looks.jsonl", "--rail", "gini=off")
    assert "look 2 at this test log" in out
