"""Fixtures of all tests."""

import os
from pathlib import Path

# OpenBLAS chooses its kernels by the processor, and the last digits of trained models with them:
# examples of pages would print other lists on other machines. Set before numpy is imported.
os.environ.setdefault("OPENBLAS_CORETYPE", "Haswell")

import pytest
from hypothesis import settings

from shared.real_data import real_data

settings.register_profile("all", deadline=None, derandomize=True)
settings.register_profile("fast", settings.get_profile("all"), max_examples=35)


def pytest_configure(config):
    """Draw fewer examples of what holds for any data where slow tests are left out."""
    settings.load_profile("fast" if "not slow" in config.getoption("markexpr") else "all")


@pytest.fixture(autouse=True)
def only_our_metrics():
    """Forget the metrics that a test registered."""
    from unskew.metrics.definition import REGISTRY, WHEN_CHANGED

    before = dict(REGISTRY)
    yield
    if before and before != REGISTRY:
        REGISTRY.clear()
        REGISTRY.update(before)
        for forget in WHEN_CHANGED:
            forget()


@pytest.fixture
def ml1m_path() -> Path:
    return real_data("ml-1m/ratings.parquet")


@pytest.fixture
def call(capsys):
    """Run the command in this process; return its exit code and what it printed."""

    from unskew.cli import main

    def do(*arguments):
        with pytest.raises(SystemExit) as done:
            main([str(argument) for argument in arguments])
        printed = capsys.readouterr()
        return done.value.code or 0, printed.out, printed.err

    return do


@pytest.fixture
def files(tmp_path):
    """Return a folder with test and training ratings and the lists of two systems."""
    (tmp_path / "test.csv").write_text("user,item,rating\n1,a,5\n1,b,2\n1,c,4\n2,a,3\n2,d,5\n")
    (tmp_path / "mine.csv").write_text("user,item,rank\n1,b,1\n1,a,2\n2,d,1\n2,a,2\n")
    (tmp_path / "theirs.trec").write_text(
        "1 Q0 a 1 9 x\n1 Q0 c 2 8 x\n2 Q0 x 1 1 x\n2 Q0 d 2 1 x\n"
    )
    (tmp_path / "train.csv").write_text("user,item,rating\n1,x,5\n2,c,5\n3,c,1\n")
    return tmp_path


@pytest.fixture
def any_size(monkeypatch):
    """Take made-up files of any size for a paper's data sets and released tables."""
    monkeypatch.setattr("unskew_studies.lab.SIZE_TOLERANCE", float("inf"))
    monkeypatch.setattr("unskew.data.formats.catalog._check_rows", lambda *_: None)
