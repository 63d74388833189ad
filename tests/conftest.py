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
