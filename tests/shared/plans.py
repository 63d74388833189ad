"""A small world, a plan with a part of every kind, and the files that a store keeps."""

from pathlib import Path

import numpy as np

import unskew as us
from unskew import Plan


def world(users=40, items=30, share=0.35, seed=5):
    """Return a small world in which some items are more popular than others."""
    rng = np.random.default_rng(seed)
    user, item = np.nonzero(rng.random((users, items)) < share * np.linspace(2, 0.4, items))
    value = 1 + (user * 3 + item * 7 + rng.integers(0, 2, user.size)) % 5
    columns = {
        "user": user,
        "item": item,
        "rating": value,
        "time": rng.integers(0, 9999, user.size),
    }
    return us.read_ratings({**columns, "familiar": rng.random(user.size) < 0.5}, tags=["familiar"])


WORLD = world()


PLAN = Plan(
    split=[us.splits.Random(folds=2), us.splits.PerUser(0.3)],
    targets=[
        us.targets.AllItems(),
        us.targets.OneRelevant(others=6),
        us.targets.TestTargets("forgive"),
    ],
    algorithms=[
        us.recommend.Popularity(),
        us.recommend.Random(),
        us.recommend.UserKNN(k=5),
        us.recommend.BPRMF(factors=3, epochs=3),
    ],
    metrics=["P@5", "nDCG@5", "anti-P@5", "bpref", "Coverage@5"],
    interventions=[us.splits.Full(), us.splits.Skew()],
    ties="random",
    draws=2,
    seed=11,
)


def drawn(train, rng):
    """Score at random: from the generator that the plan gives, so always the same."""
    return rng.random((len(train.users), len(train.items)))


def broken(train, rng):
    raise RuntimeError("this one never works")


def results(folder):
    return sorted((Path(folder) / "results").rglob("*.result"))


def contents(folder):
    return {path.name: path.read_bytes() for path in results(folder)}
