"""Shared by all tests: real data, found through UNSKEW_DATA, and random cases."""

import os
from pathlib import Path

import numpy as np
import pytest
from hypothesis import settings

settings.register_profile("unskew", deadline=None, derandomize=True)
settings.load_profile("unskew")


def real_data(name: str) -> Path:
    """Return a real data file, or skip the test, saying what is missing."""
    home = os.environ.get("UNSKEW_DATA")
    if not home:
        pytest.skip(f"needs {name}: set UNSKEW_DATA to a folder that holds it")
    path = Path(home) / name
    if not path.exists():
        pytest.skip(f"needs {path}")
    return path


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


def random_case(seed: int, users: int = 4, items: int = 12, ties: bool = True) -> tuple:
    """Return judgments {user: {item: grade}} and a run {user: {item: score}}.

    With ties, unjudged and pooled-unjudged (-1) items, users without relevant items, users in
    only one of the two, and lists shorter and longer than the cutoffs used.
    """
    rng = np.random.default_rng(seed)
    qrels: dict = {}
    run: dict = {}
    for u in range(users):
        judged = rng.choice(items, size=rng.integers(1, items), replace=False)
        top = 1 if rng.random() < 0.15 else 6
        qrels[f"u{u}"] = {f"i{i}": int(rng.integers(-1, top)) for i in judged}
        listed = rng.choice(items, size=rng.integers(1, items + 1), replace=False)
        levels = 4 if ties else 10_000
        run[f"u{u}"] = {f"i{i}": float(rng.integers(0, levels)) / 3 for i in listed}
    if rng.random() < 0.3:
        run.pop(f"u{users - 1}")
    if rng.random() < 0.3:
        qrels.pop("u0")
    return qrels, run


def as_ratings(qrels: dict):
    """Make judgments of nested dicts, a negative grade marking pooled but unjudged items."""
    import polars as pl

    from unskew import Ratings

    rows = [(u, i, g) for u, judged in qrels.items() for i, g in judged.items()]
    user, item, grade = zip(*rows, strict=True)
    value = pl.Series("grade", grade, dtype=pl.Float64)
    return Ratings.of(
        pl.Series("user", user), pl.Series("item", item), value, tags={"pooled": value < 0}
    )


@pytest.fixture
def any_size(monkeypatch):
    """Take made-up files of any size for a paper's data sets and released tables."""
    monkeypatch.setattr("unskew.studies.lab.SIZE_TOLERANCE", float("inf"))
    monkeypatch.setattr("unskew.data.released._check_rows", lambda *_: None)
