"""Random judgments and lists, and how they are evaluated."""

import warnings

import numpy as np
import polars as pl

import unskew as us
from unskew import Ratings


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
    rows = [(u, i, g) for u, judged in qrels.items() for i, g in judged.items()]
    user, item, grade = zip(*rows, strict=True)
    value = pl.Series("grade", grade, dtype=pl.Float64)
    return Ratings.of(
        pl.Series("user", user), pl.Series("item", item), value, tags={"pooled": value < 0}
    )


def quiet(judgments, run, metrics, liked=3, **settings):
    """Evaluate one run, and let no warning about the data stop the test."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", us.DataWarning)
        return us.evaluate(
            judgments, {"s": us.read_run(run, ties="trec")}, metrics, liked=liked, **settings
        )
