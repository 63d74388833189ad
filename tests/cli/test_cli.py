"""The command line, as a user types it."""

import json
import os
import re
import subprocess
import sys

import polars as pl
import pytest

import unskew as us
from shared.commands import COMMANDS
from unskew.cli.command import COMMON_OPTIONS, MAIN_OPTIONS, PANELS


def run(*arguments, env=None, cwd=None):
    """Run the command in a process of its own."""
    return subprocess.run(
        [sys.executable, "-m", "unskew", *map(str, arguments)], capture_output=True, text=True,
        env={**os.environ, "COLUMNS": "200", **(env or {})}, cwd=cwd, timeout=120,
    )  # fmt: skip


def test_json_is_one_object_named_as_the_user_wrote(files, call):
    code, out, err = call(
        "evaluate", "--judgments", files / "test.csv", "--run", files / "mine.csv",
        "--run", f"other={files / 'theirs.trec'}", "-m", "P_2", "-m", "MAP,nDCL@2",
        "--liked", 4, "--format", "json",
    )  # fmt: skip
    assert code == 0
    result = json.loads(out)
    assert list(result) == ["mine", "other"]
    assert list(result["mine"]) == ["P_2", "MAP", "nDCL@2"]
    assert result["mine"]["P_2"] == {"mean": 0.5, "users": 2}
    assert "assumed" in err or "rows" in err


def test_same_values_as_in_python(files, call):
    arguments = ["-j", files / "test.csv", "-r", files / "mine.csv", "-r", files / "theirs.trec"]
    _, out, _ = call("evaluate", *arguments, "-m", "AP,bpref", "--liked", 4, "--format", "json")
    paths = [files / "mine.csv", files / "theirs.trec"]
    scores = us.evaluate(files / "test.csv", paths, ["AP", "bpref"], liked=4)
    means = {s: {m: v["mean"] for m, v in row.items()} for s, row in json.loads(out).items()}
    assert means == scores.means()


@pytest.mark.parametrize("kind", ["table", "csv", "markdown", "latex"])
def test_formats(files, call, kind):
    names = ["-m", "P(per=list)@2", "-m", "Coverage"]
    code, out, _ = call("evaluate", "-j", files / "test.csv", "-r", files / "mine.csv", *names,
                        "--format", kind, "-q")  # fmt: skip
    assert code == 0
    assert "0.5" in out
    assert {"table": "mine", "csv": "mine,P(per=list)@2,0.5,2,0", "markdown": "| mine | 0.5",
            "latex": "\\toprule"}[kind] in out  # fmt: skip


def test_per_user_and_saved_scores(files, call):
    out = files / "values.parquet"
    code, _, _ = call("evaluate", "-j", files / "test.csv", "-r", files / "mine.csv", "-m", "RR",
                      "--per-user", out, "--save", files / "scores")  # fmt: skip
    assert code == 0
    assert pl.read_parquet(out)["RR"].to_list() == [0.5, 1.0]
    assert us.Scores.load(files / "scores").means() == {"mine": {"RR": 0.75}}


def test_options_change_what_they_say(files, call):
    def value(*options, metric="P@2", run="mine.csv"):
        code, out, err = call("evaluate", "-j", files / "test.csv", "-r", files / run, "-m", metric,
                              "--format", "json", "-q", *options)  # fmt: skip
        assert code == 0, err
        return next(iter(json.loads(out).values()))[metric]["mean"]

    assert value("--liked", 4) == 0.5
    assert value("--above", 4) == 0.5
    assert value("--liked", 1) == 1.0
    assert value("--depth", 1) == 0.25
    assert value("--liked", 5, metric="Recall@1") == 0.5
    assert value("--users", "with-train", "--train", files / "train.csv") == pytest.approx(1 / 3)
    skipped = value("--liked", 5, "--undefined", "skip", metric="Recall@1")
    assert skipped >= value("--liked", 5, "--undefined", "zero", metric="Recall@1")
    assert value("--ties", "trec", metric="RR", run="theirs.trec") == 0.75
    assert value("--ties", "id", metric="RR", run="theirs.trec") == 1.0
    assert value("--gain", "5=2,4=1,3=0,2=0,1=0", metric="DCG") != value(metric="DCG")
    assert value("--relevance", "mena2021", metric="DCG") != value(metric="DCG")
    assert value("--memory", "1MiB", "--threads", 1) == value()
    assert value("--train", files / "train.csv", metric="ARP@2") == 0.0
    (files / "items.csv").write_text("item\na\nb\nc\nd\ne\n")
    assert value("--items", files / "items.csv", metric="Coverage") == 0.6
    assert value("--loss", "binary", metric="DCL") != value(metric="DCL")
    (files / "both.csv").write_text("user,item,rank,score\n1,b,1,1\n1,a,2,9\n2,d,1,1\n")
    assert value("--by", "rank", metric="RR", run="both.csv") == 0.75
    assert value("--by", "score", metric="RR", run="both.csv") == 1.0


@pytest.mark.parametrize(
    ("arguments", "code", "says"),
    [
        (["-r", "mine.csv", "-m", "nDGC@10"], 2, "Did you mean 'nDCG'"),
        (["-r", "mine.csv", "--users", "everybody"], 2, "unknown users 'everybody'"),
        (["-r", "missing.csv"], 1, "no such file"),
        (["-r", "mine.csv", "-r", "mine.csv"], 2, "two runs are named 'mine'"),
        (["-r", "mine.csv", "--format", "jsno"], 2, "Did you mean 'json'"),
        (["-r", "mine.csv", "--per-user", "out.xls"], 2, "use one of .parquet, .csv"),
        (["-r", "mine.csv", "--memory", "lots"], 2, "512MiB"),
        (["-r", "mine.csv", "--columns", "user"], 2, "user=NAME"),
        (["-r", "mine.csv", "-m", "ARP@2"], 1, "--train"),
        (["-r", "broken.csv"], 1, "of the ranks in column 'rank' is not"),
        (["-r", "twice.csv"], 1, "occurs twice in one list"),
        (["-r", "foreign.csv"], 1, "no users in common"),
    ],
)
def test_errors_say_what_to_do(files, call, arguments, code, says):
    (files / "broken.csv").write_text("user,item,rank\n1,a,first\n")
    (files / "twice.csv").write_text("user,item,rank\n1,a,1\n1,a,2\n")
    (files / "foreign.csv").write_text("user,item,rank\nx,a,1\n")
    arguments = [files / a if a.endswith((".csv", ".trec")) else a for a in arguments]
    got, out, err = call("evaluate", "-j", files / "test.csv", *arguments, "--liked", 4)
    assert (got, out) == (code, "")
    assert says in err
    assert "Traceback" not in err


def test_notes_and_warnings_speak_of_options(files, call):
    given = ["-j", files / "test.csv", "-r", files / "theirs.trec", "-m", "Coverage@2,P@2"]
    code, out, err = call("evaluate", *given)
    assert code == 0
    assert "set it with --liked …" in out
    assert "outside the catalogue: give --items …" in out + err
    assert "=…" not in out + err


def test_warnings_go_to_standard_error(files, call):
    code, out, err = call("evaluate", "-j", files / "test.csv", "-r", files / "mine.csv",
                          "-m", "P@10", "--format", "json", "-q")  # fmt: skip
    assert code == 0
    json.loads(out)
    assert "warning: mine: the lists hold at most 2 items" in err


def test_a_process_of_its_own_without_colour_or_terminal(files):
    done = run("evaluate", "-j", "test.csv", "-r", "mine.csv", "-m", "P@2", cwd=files,
               env={"NO_COLOR": "1"})  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert "\x1b" not in done.stdout
    assert re.search(r"mine\s+0\.5000", done.stdout)


def test_no_writable_cache_still_works(files):
    """A read-only installation without a writable home compiles anew and says so once."""
    code = (
        "import numba.core.caching as c\n"
        "c.CacheImpl._locator_classes = []\n"
        "from unskew.cli import main\n"
        "from unskew.engine.compiled import compile_always\n"
        "compile_always()\n"
        "main(['evaluate', '-j', 'test.csv', '-r', 'mine.csv', '-m', 'P@2', '-q'])\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=files,
                          timeout=300)  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert done.stderr.count("no folder for compiled kernels") == 1
    assert "0.5000" in done.stdout


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_has_help_with_an_example(command, call):
    code, out, _ = call(*command.split(), "--help")
    assert code == 0
    assert "Examples" in out
    assert f"unskew {command}" in out


MOST_SHOWN = 14


@pytest.mark.parametrize("command", COMMANDS)
def test_help_shows_what_people_need_and_help_all_the_others(command, call, monkeypatch):
    monkeypatch.setenv("COLUMNS", "200")
    usual, whole = (call(*command.split(), word)[1] for word in ("--help", "--help-all"))
    in_usual, in_whole = (
        set(re.findall(r"(?m)^│ [* ]*(--?[a-z][\w-]*)", text)) - {"--help", "--help-all"}
        for text in (usual, whole)
    )
    options = [one for one in COMMANDS[command].params if one.param_type_name == "option"]
    assert in_whole == {one.opts[0] for one in options}
    assert in_usual >= {one.opts[0] for one in options if one.required}
    assert in_usual <= in_whole
    assert len(in_usual) <= MOST_SHOWN
    left_out = len(in_whole - in_usual)
    assert (f"{left_out} more option" in usual) == (left_out > 0)
    assert (f"unskew {command} --help-all" in usual) == (left_out > 0)
    assert "more option" not in whole


def test_options_that_people_need_exist():
    for command, names in MAIN_OPTIONS.items():
        options = [one.name for one in COMMANDS[command].params]
        assert set(names.split()) <= set(options), command
        assert len(options) > len({*COMMON_OPTIONS, *names.split()} & set(options))
    assert set(COMMON_OPTIONS) <= {
        one.name for command in COMMANDS.values() for one in command.params
    }


def test_the_first_help_shows_eight_commands(call):
    usual, whole = call("--help")[1], call("--help-all")[1]
    first, *others = PANELS.values()
    assert len(first) == 8
    for name in first:
        assert f"│ {name} " in usual
    for name in (name for names in others for name in names):
        assert f"│ {name} " not in usual
        assert f"│ {name} " in whole
    assert "unskew --help-all" in usual
    assert call("bias", "--help-all")[1] == call("bias", "--help")[1]


def test_help_version_and_nothing(call):
    assert call("--version")[1].strip() == f"unskew {us.__version__}"
    assert "evaluate" in call("--help")[1]


def test_metrics_command(call):
    code, out, _ = call("metrics")
    assert code == 0
    assert "nDCG" in out
    assert "Formula" in call("metrics", "Fallout@5")[1]
    assert "per=k (k|list)" in call("metrics", "P@5")[1]
    assert "per=list (k|list)" in call("metrics", "condensed-P@5")[1]
