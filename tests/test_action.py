"""action.yml: its inputs are used, and its shell steps give the verdict of a small case."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from shared import ROOT, stage

yaml = pytest.importorskip("yaml")
ACTION = yaml.safe_load((ROOT / "action.yml").read_text())
STEPS = {step["name"]: step for step in ACTION["runs"]["steps"]}
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


def test_bad_input_fails_the_job(folder):
    done, outputs = decide(folder, candidate="missing.csv")
    assert outputs == {"exit-code": "2", "verdict": ""}
    assert "missing.csv" in done.stderr
    assert "could not decide: exit code 2" in (folder / "github_step_summary").read_text()
    assert end(folder, outputs) == 2


def test_no_input_becomes_a_command(folder):
    decide(folder, candidate="$(touch broken)", metric="`touch broken`", by="; touch broken")
    assert not (folder / "broken").exists()


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
