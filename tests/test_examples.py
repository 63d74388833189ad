"""The examples run, as functions and as commands, and their numbers are right."""

import importlib.util
import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import unskew as us

ROOT = Path(__file__).parents[1]
EXAMPLE = ROOT / "examples" / "lists_without_hits.py"


@pytest.fixture(scope="module")
def example():
    spec = importlib.util.spec_from_file_location("lists_without_hits", EXAMPLE)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_shares_of_users_without_a_hit(example):
    users = np.arange(40)
    test = {"user": users, "item": users % 4, "rating": [5] * 40}
    lists = {"x": {u: [0, 1, 9] for u in users}, "y": {u: [0, 1, 2] for u in users}}
    groups = {"user": users, "kind": np.where(users < 20, "first", "second")}
    es = example.lists_without_hits(us.judge(test, lists, liked=4), 3, groups)
    row = es.row(group="first", system="x", against="y")
    assert (row.facts["share"], row.facts["share_against"], row.n) == (0.5, 0.25, 20)
    stats = pytest.importorskip("scipy.stats")
    missed = (users[:20] % 4 == 2).astype(float)
    paired = stats.ttest_1samp(missed, 0)
    low, high = paired.confidence_interval(0.95)
    assert (row.value, row.low, row.high) == pytest.approx((0.25, low, high))
    assert row.p == pytest.approx(paired.pvalue)


def test_the_example_is_a_command(files):
    words = ["-j", "test.csv", "-r", "mine.csv", "-r", "theirs.trec", "--liked", "4"]
    (files / "users.csv").write_text("user,age\n1,30\n2,40\n")

    def run(*more):
        words_typed = [sys.executable, str(EXAMPLE), *words, *more]
        return subprocess.run(words_typed, cwd=files, capture_output=True, text=True)

    done = run("--by", "users.csv:age", "-k", "2", "--format", "json", "-q", "--figure", "out.svg")
    assert done.returncode == 0, done.stderr
    again = us.report.Estimates.from_dict(json.loads(done.stdout))
    assert again.row(group="30").note == "1 user, fewer than 2"
    refused = run("-m", "AP")
    assert (refused.returncode, "--metric is HitRate" in refused.stderr) == (2, True)


def test_the_page_shows_the_example():
    page = (ROOT / "docs" / "extending.md").read_text()
    assert EXAMPLE.read_text() in page


def test_the_example_is_short():
    """A question from end to end takes at most 60 lines."""
    lines = EXAMPLE.read_text().splitlines()
    assert len([line for line in lines if line.strip()]) <= 60
