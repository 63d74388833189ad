"""action.yml: its inputs are used, and its steps pass on a verdict, and nothing else."""

import importlib.util
import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from typer.main import get_command

from shared import ROOT, stage
from unskew.cli import app
from unskew.gating.result import EXIT_CODES, SCHEMA

yaml = pytest.importorskip("yaml")
ACTION = yaml.safe_load((ROOT / "action.yml").read_text())
STEPS = {step["name"]: step for step in ACTION["runs"]["steps"]}
SPEC = importlib.util.spec_from_file_location("gate_action", ROOT / ".ci" / "gate_action.py")
action = importlib.util.module_from_spec(SPEC)
SPEC.loader.exec_module(action)
FILES = {"judgments": "test.csv", "candidate": "a.csv", "production": "b.csv", "liked": "4"}


def test_every_input_is_used_and_every_use_is_an_input():
    used = set(re.findall(r"inputs\.([\w-]+)", (ROOT / "action.yml").read_text()))
    assert used == set(ACTION["inputs"])
    for name, one in ACTION["inputs"].items():
        assert one["description"], name
        assert one.get("required") or "default" in one, name
    for step in STEPS.values():
        assert "${{" not in step.get("run", ""), "values reach a shell by its environment"
        assert step.get("uses") or step["shell"] == "bash"


def test_the_page_names_every_input():
    page = (ROOT / "docs" / "gate-in-ci.md").read_text()
    for name in ACTION["inputs"]:
        assert f"`{name}`" in page, name
    for name in ACTION["outputs"]:
        assert f"`{name}`" in page, name


def run_step(name, folder, inputs, outputs=()):
    """Run a shell step as the runner does: inputs in its environment, what it wrote back."""
    values = {key: str(one.get("default", "")) for key, one in ACTION["inputs"].items()} | inputs

    def filled(text):
        text = re.sub(r"\$\{\{ inputs\.([\w-]+) \}\}", lambda m: values[m[1]], text)
        return re.sub(
            r"\$\{\{ steps\.gate\.outputs\.([\w-]+) \}\}", lambda m: outputs.get(m[1], ""), text
        )

    step = STEPS[name]
    given = {key: filled(value) for key, value in step["env"].items()}
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    files = {key: str(folder / key.lower()) for key in ("GITHUB_OUTPUT", "GITHUB_STEP_SUMMARY")}
    files["GITHUB_ACTION_PATH"] = str(ROOT)
    done = subprocess.run(
        ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", step["run"]],
        cwd=folder,
        env={**os.environ, "PATH": path, **files, **given},
        capture_output=True,
        text=True,
        check=False,
    )
    written = folder / "github_output"
    lines = written.read_text().splitlines() if written.exists() else []
    return done, dict(line.split("=", 1) for line in lines)


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    stage.provide(["test.csv", "a.csv", "b.csv", "c.csv"])
    return tmp_path


def decide(folder, **inputs):
    done, outputs = run_step("decide", folder, {**FILES, **inputs})
    assert done.returncode == 0, done.stderr
    return done, outputs


def end(folder, outputs, **inputs):
    return run_step("pass or fail", folder, inputs, outputs)[0].returncode


CODES = {"promote": 0, "hold": 1, "not settled": 3}


OFF = "--no-references --rail coverage=off --rail gini=off --rail popularity=off --rail anti=off"


@pytest.mark.parametrize(
    ("candidate", "production", "expected"),
    [("a.csv", "c.csv", "promote"), ("c.csv", "a.csv", "hold"), ("a.csv", "b.csv", "not settled")],
)
def test_the_steps_pass_on_the_verdict(folder, candidate, production, expected):
    done, outputs = decide(
        folder,
        candidate=f"new={candidate}",
        production=production,
        metric="P@10",
        by="activity\npopularity\n",
        options=OFF,
    )
    verdict, code = outputs["verdict"], int(outputs["exit-code"])
    assert (verdict, code) == (expected, CODES[expected]), done.stderr
    written = {path.name for path in (folder / "unskew-gate").iterdir()}
    assert written == {f"gate.{ending}" for ending in ("html", "md", "svg", "json", "xml")}
    summary = (folder / "github_step_summary").read_text()
    assert verdict.upper() in summary
    assert "![" not in summary
    assert end(folder, outputs) == code
    assert end(folder, outputs, **{"not-settled": "pass"}) == (0 if code == 3 else code)
    assert end(folder, outputs, **{"not-settled": "maybe"}) == 2


def fails(folder, says, **inputs):
    """Assert that the action gives no verdict, says why, and fails the job."""
    (folder / "github_output").unlink(missing_ok=True)
    (folder / "github_step_summary").unlink(missing_ok=True)
    done, outputs = decide(folder, **inputs)
    assert outputs == {"exit-code": "2", "verdict": ""}
    summary = (folder / "github_step_summary").read_text()
    assert summary.startswith("unskew gate could not decide: ")
    assert says in summary + done.stderr
    assert summary.count("\n") == 1
    for outcome in ("fail", "pass"):
        assert end(folder, outputs, **{"not-settled": outcome}) == 2


def test_bad_input_fails_the_job(folder):
    fails(folder, "missing.csv", candidate="missing.csv")
    fails(folder, "the input judgments is empty", judgments=" ")


PRINTING = [
    "--help", "-h", "--help-all", "--version", "--dry-run", "--install-completion",
    "--show-completion", "--hel", "--he", "-help", "-hq", "-qh", "--help=1", "init", "init x.toml",
    "-- init", "--", "-", "--seed 3 --help", "--seed=3 -h", "-q --version", "\n--help", "\t-h",
    "'--help'", '"--version"', "--he''lp", "--rail 'gini=off' --help",
]  # fmt: skip
REDIRECTING = [
    "--output x.json", "-o x.json", "--output=x.json", "-ox.json", "--outpu x", "-qo x.json",
    "--format json", "--format=json", "--forma=json", "-q -o /dev/null",
    "--judgments a.csv", "-j a.csv", "--candidate b.csv", "--production=c.csv", "--log=x",
    "--config x.toml", "-m P@1", "--metric=P@1", "--by time", "--liked 1", "--train x", "--items x",
]  # fmt: skip
BROKEN = ["'", '"--seed 3', "--seed", "--seed=", "--seed ''", "--nothing", "--seed 3 4", "a.csv",
          "--quiet=1", "--no-references=yes", "$(touch broken)", "--seed '3\n--help'",
          "--seed '\x1b[2J'"]  # fmt: skip


@pytest.mark.parametrize("options", [*PRINTING, *REDIRECTING, *BROKEN])
def test_options_that_do_not_decide_are_refused(options):
    with pytest.raises(action.UndecidedError, match=r"options"):
        action.further(options)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ("", []),
        (OFF, [*OFF.replace("--rail ", "--rail=").split()]),
        ("--seed 3\n--depth=5  -q", ["--seed=3", "--depth=5", "-q"]),
        ("--margin", None),
        ("--alpha --help", ["--alpha=--help"]),  # a value, which the gate refuses
        ("--columns 'user=the user'", ["--columns=user=the user"]),
    ],
)
def test_each_option_is_one_word_with_its_value(options, words):
    if words is None:
        with pytest.raises(action.UndecidedError, match="give the input margin"):
            action.further(options)
    else:
        assert action.further(options) == words


def test_every_option_of_the_gate_is_allowed_or_refused():
    """A new option of the gate belongs into one of the tables of .ci/gate_action.py."""
    command = get_command(app).commands["gate"]
    options = [one for one in command.params if one.param_type_name == "option"]
    flags = {name for one in options if one.is_flag for name in (*one.opts, *one.secondary_opts)}
    values = {name for one in options if not one.is_flag for name in one.opts}
    assert flags == action.FLAGS
    assert values == action.TAKE_VALUE | set(action.REFUSED)
    assert not action.TAKE_VALUE & set(action.REFUSED)
    assert (action.SCHEMA, action.CODES) == (SCHEMA, EXIT_CODES)


@pytest.mark.parametrize("options", ["--help", "--output=other.json", "--alpha --help", "'"])
def test_an_option_that_prints_fails_the_job(folder, options):
    fails(folder, "", options=options)
    assert not (folder / "other.json").exists()


def test_an_earlier_verdict_is_no_verdict(folder):
    """Reports of an earlier step go: what is uploaded is of this run."""
    decide(folder, candidate="a.csv", production="c.csv", metric="P@10", options=OFF)
    assert json.loads((folder / "unskew-gate" / "gate.json").read_text())["verdict"] == "promote"
    fails(folder, "missing.csv", candidate="missing.csv")
    assert list((folder / "unskew-gate").iterdir()) == []


def test_reports_replace_links(folder):
    (folder / "unskew-gate").mkdir()
    (folder / "precious").write_text("mine")
    (folder / "unskew-gate" / "gate.json").symlink_to(folder / "precious")
    _, outputs = decide(folder, candidate="a.csv", production="c.csv", metric="P@10", options=OFF)
    assert outputs["verdict"] == "promote"
    assert (folder / "precious").read_text() == "mine"


WHOLE = {"schema": SCHEMA, "verdict": "promote", "exit_code": 0}


@pytest.mark.parametrize(
    ("content", "code", "says"),
    [
        (None, 0, "without a verdict"),
        ("", 0, "without a verdict"),
        ('{"schema": "urn:unskew:gate:2", "verdict": "promote", "exit', 0, "without a verdict"),
        (b"\xff\xfe", 0, "without a verdict"),
        ("[" * 100_000, 0, "without a verdict"),
        (["promote"], 0, "schema None"),
        ("promote", 0, "without a verdict"),
        ({}, 0, "schema None"),
        ({**WHOLE, "schema": "urn:unskew:gate:1"}, 0, "schema 'urn:unskew:gate:1'"),
        ({**WHOLE, "schema": "urn:unskew:gate:3"}, 0, "schema 'urn:unskew:gate:3'"),
        ({**WHOLE, "schema": [SCHEMA]}, 0, "schema ["),
        ({**WHOLE, "verdict": "PROMOTE"}, 0, "none of promote, hold, not settled"),
        ({**WHOLE, "verdict": ["promote"]}, 0, "none of"),
        ({**WHOLE, "verdict": True}, 0, "none of"),
        ({**WHOLE, "verdict": None}, 0, "none of"),
        ({**WHOLE, "exit_code": False}, 0, "exit code False"),
        ({**WHOLE, "exit_code": "0"}, 0, "exit code '0'"),
        ({**WHOLE, "exit_code": 1}, 0, "exit code 1 and 0"),
        (WHOLE, 1, "exit code 0 and 1"),
        (WHOLE, 2, "exit code 0 and 2"),
        (WHOLE, 141, "exit code 0 and 141"),
        (WHOLE, -9, "exit code 0 and -9"),
        ({**WHOLE, "verdict": "hold", "exit_code": 1}, 0, "exit code 1 and 0"),
    ],
)
def test_only_a_verdict_of_a_known_form_counts(tmp_path, content, code, says):
    path = tmp_path / "gate.json"
    if content is not None:
        text = content if isinstance(content, str | bytes) else json.dumps(content)
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
    with pytest.raises(action.UndecidedError) as refused:
        action.verdict_in(path, code)
    assert says in str(refused.value)
    path.write_text(json.dumps(WHOLE))
    assert action.verdict_in(path, 0) == "promote"


@pytest.mark.parametrize("name", ["judgments", "candidate", "metric", "log", "by", "config"])
@pytest.mark.parametrize("value", ["a\x00b", "a\x1b[2J", "a\r--help"])
def test_an_input_is_one_line(name, value):
    values = {key.upper(): one for key, one in {**FILES, name: value}.items()}
    with pytest.raises(action.UndecidedError, match=f"the input {name} must be one line"):
        action.arguments(values)


def test_an_input_is_one_word():
    values = {"JUDGMENTS": "--help", "CANDIDATE": "-h", "PRODUCTION": "a b", "BY": "time\n\n--help"}
    assert action.arguments(values) == [
        "--judgments=--help", "--candidate=-h", "--production=a b", "--by=time", "--by=--help",
    ]  # fmt: skip


def test_no_module_of_the_working_folder_is_run(folder):
    for name in ("unskew", "polars", "json", "shlex"):
        (folder / f"{name}.py").write_text("from pathlib import Path\nPath('broken').touch()\n")
    _, outputs = decide(folder, candidate="a.csv", production="c.csv", metric="P@10", options=OFF)
    assert outputs["verdict"] == "promote"
    assert not (folder / "broken").exists()


def test_no_input_becomes_a_command(folder):
    fails(folder, "", candidate="$(touch broken)", metric="`touch broken`", by="; touch broken")
    assert not (folder / "broken").exists()


def test_without_a_verdict_nothing_passes(folder):
    for verdict in ("", "PROMOTE", "promote ", "hold\npromote", "0"):
        assert end(folder, {"verdict": verdict, "exit-code": "0"}) == 2


def test_the_script_of_the_page_tells_verdicts_apart(folder):
    page = (ROOT / "docs" / "gate-in-ci.md").read_text()
    (script,) = re.findall(r"```bash\n(.*?)```", page, re.DOTALL)
    (folder / "unskew").write_text("#!/bin/sh\nexit $CODE\n")
    (folder / "unskew").chmod(0o755)
    for code, ends in {0: 0, 1: 1, 3: 0, 2: 2}.items():
        path = f"{folder}{os.pathsep}{os.environ['PATH']}"
        done = subprocess.run(
            ["bash", "-e", "-c", script],
            env={**os.environ, "PATH": path, "CODE": str(code)},
            capture_output=True,
            check=False,
        )
        assert done.returncode == ends, code
