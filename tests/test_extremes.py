"""Extreme values of every option of every command: an answer or one line, never a traceback."""

import signal
from contextlib import contextmanager

import polars as pl
import pytest

import unskew as us
from shared.commands import (
    COMMANDS,
    FOLDERS,
    GATES,
    LISTS,
    LOG,
    PLAN,
    RATINGS,
    TABLES,
    TRAIN,
    write_annotation,
    write_values,
)

VALUES = ("0", "-1", str(2**63), "1e308", "nan", "inf", "")
LIMIT = 60
"""Seconds after which a command counts as hanging."""
# Others than those that write something; demo, audit and studies run for long.
OTHERS = {
    "metrics": ["P"],
    "algorithms": ["popularity"],
    "data get": ["ml-1m", "--yes"],
    "plan check": ["plan.toml", "--no-estimate"],
    "store ls": ["store"],
    "store verify": ["store"],
    "store gc": ["store"],
    "schema": ["evaluate"],
    "warmup": ["-q"],
    "audit": [
        "test.csv",
        "--quick",
        "--liked",
        "4",
        "--algorithms",
        "random,popularity",
        "--designs",
        "all-items",
        "-o",
        "audit.json",
        "-q",
    ],
    "study run": ["mena2021", "--stand-in", "--claims", "3-05", "-q", "-o", "study.json"],
    "demo": ["-q", "-o", "demo.json"],
    "timeline": [
        "log.csv",
        "--event-log",
        "-a",
        "random",
        "-a",
        "popularity",
        "--windows",
        "2",
        "--resamples",
        "5",
        "-q",
        "-o",
        "timeline.json",
    ],
}
WRITES = {
    **{name: [*given, "-o", "out", "--force"] for name, given in FOLDERS.items()},
    **{name: [*given, "-o", "out.csv"] for name, given in LISTS.items()},
}
BASE = {**TABLES, **OTHERS, **WRITES, **GATES}


def walked():
    """Return every command, option and value."""
    return [
        (name, max(option.opts, key=len), value)
        for name, command in COMMANDS.items()
        for option in command.params
        if option.param_type_name == "option" and not getattr(option, "is_flag", False)
        for value in VALUES
        if "--help" not in option.opts
    ]


@contextmanager
def time_limit(seconds, what):
    def ring(*_):
        raise AssertionError(f"{what} takes longer than {seconds} s")

    before = signal.signal(signal.SIGALRM, ring)
    signal.alarm(seconds)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


@pytest.fixture(scope="module")
def home(tmp_path_factory):
    folder = tmp_path_factory.mktemp("extremes")
    for name, rows in (("test", RATINGS), ("train", TRAIN)):
        frame = pl.DataFrame(rows, ["user", "item", "rating"], orient="row")
        frame.write_csv(folder / f"{name}.csv")
    for name, step in (("a", 1), ("b", 3)):
        rows = [(u, (u + step * k) % 10, k + 1) for u in range(12) for k in range(3)]
        frame = pl.DataFrame(rows, ["user", "item", "rank"], orient="row")
        frame.write_csv(folder / f"{name}.csv")
    (folder / "plan.toml").write_text(PLAN)
    write_annotation(folder)
    write_values(folder)
    pl.DataFrame(LOG, ["user", "item", "time"], orient="row").write_csv(folder / "log.csv")
    return folder


@pytest.fixture
def at_home(home, call, monkeypatch):
    monkeypatch.chdir(home)
    monkeypatch.setenv("UNSKEW_DATA", str(home))
    monkeypatch.setattr("unskew.cli.doors.demo.USERS", 60)
    monkeypatch.setattr("unskew.cli.doors.demo.ITEMS", 40)
    if not (home / "store").exists():
        assert call("run", "plan.toml", "--store", "store")[0] == 0
    return call


def check(call, command, option, value):
    """Run a command with one option; fail on a traceback, another exit code, or a hang."""
    given = [*command.split(), *BASE[command], option, value]
    with time_limit(LIMIT, " ".join(given)):
        code, _, err = call(*given)
    assert code in ((0, 1, 2, 3) if command in GATES else (0, 1, 2)), (given, code, err)
    assert "Traceback" not in err, (given, err)
    assert "defect" not in err, (given, err)


def test_every_command_is_walked():
    assert set(BASE) | {"data info", "data list", "study list"} == set(COMMANDS)


@pytest.mark.parametrize("place", range(12))
def test_a_sample(at_home, place):
    """Every 47th of the walk; the whole of it is slow."""
    for command, option, value in walked()[place * 47 :: 12 * 47]:
        if command not in ("demo", "audit", "study run"):
            check(at_home, command, option, value)


@pytest.mark.slow
@pytest.mark.parametrize("command", COMMANDS)
def test_the_whole_walk(at_home, command):
    for name, option, value in walked():
        if name == command:
            check(at_home, command, option, value)


# The same amounts in Python and in plans


@pytest.mark.parametrize(
    "make",
    [
        lambda: us.splits.Random(folds=2**63 - 1),
        lambda: us.splits.Random(folds=10**9),
        lambda: us.splits.Uniform(test=0.2, repetitions=10**9),
        lambda: us.splits.FamiliarTraining(folds=10**9),
        lambda: us.recommend.WRMF(iterations=10**9),
        lambda: us.recommend.BPRMF(epochs=10**9),
        lambda: us.Plan(
            us.splits.Random(), [us.targets.AllItems()], [us.recommend.Popularity()], draws=10**9
        ),
        lambda: us.Plan(
            us.splits.Random(), [us.targets.AllItems()], [us.recommend.Popularity()], seed=2**63
        ),
    ],
)
def test_amounts_that_would_never_end(make):
    with pytest.raises(us.SettingError, match="must be at most"):
        make()


@pytest.mark.parametrize(
    "work",
    [
        lambda scores: us.compare(scores, permutations=10**9),
        lambda scores: us.compare(scores, resamples=10**9, interval="bca"),
        lambda scores: us.stats.power(scores, permutations=10**9),
        lambda scores: us.stats.user_robustness(scores, samples=2**63),
    ],
)
def test_draws_that_would_never_end(home, work):
    runs = {"a": home / "a.csv", "b": home / "b.csv"}
    scores = us.evaluate(home / "test.csv", runs, ["P@2"], liked=4)
    refused = pytest.raises(us.SettingError, match=r"must be at most|up to 9223372036854775807")
    with time_limit(LIMIT, "a comparison"), refused:
        work(scores)


def test_a_plan_with_endless_folds(at_home, home):
    text = PLAN.replace('protocol = "random"', f'protocol = "random"\nfolds = {2**63 - 1}')
    (home / "endless.toml").write_text(text)
    code, _, err = at_home("run", "endless.toml")
    assert code == 2
    assert "endless.toml: folds must be at most 10,000" in err


@pytest.mark.parametrize(
    ("given", "says"),
    [
        (["--liked", "nan"], "--liked must be a finite number, got nan"),
        (["--liked", "inf"], "--liked must be a finite number, got inf"),
        (["--digits", "-1"], "-1 is not in the range 0<=x<=15"),
        (["--depth", "-1"], "-1 is not in the range 1<=x"),
        (["--seed", "-1"], "-1 is not in the range 0<=x"),
        (["--seed", str(2**63)], "is not in the range"),
        (["--metric", ""], "--metric is empty"),
        (["--metric="], "--metric is empty"),
        (["-o", ""], "-o is empty"),
        (["--threads", "99999999"], "is not in the range 1<=x<=1024"),
    ],
)
def test_refused_in_words(at_home, given, says):
    code, _, err = at_home("evaluate", *BASE["evaluate"], *given)
    assert code == 2
    assert says in " ".join(err.replace("│", " ").split())
