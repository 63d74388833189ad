"""castells2018: which experiments are fair, and the null experiment that shows it."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from unskew.data.dataset import Dataset
from unskew.worlds.worlds import world
from unskew_studies.castells2018 import checks
from unskew_studies.castells2018.exhibits import EXHIBITS
from unskew_studies.claims import read_claims
from unskew_studies.lab import Amount
from unskew_studies.paper import STAND_IN, Study

DATA = ("ml-1m", "ml-100k", "cm100k", "yahoo-r3")


def stand_in(seed: int) -> Dataset:
    """Return a small shop."""
    shop = world("shop", users=300, items=200, seed=seed, density=0.2)
    return replace(shop.dataset(random=0.05), name=STAND_IN)


STUDY = Study(
    name="castells2018",
    title="Characterization of fair experiments",
    reference="P. Castells and R. Cañamares, Characterization of Fair Experiments for Recommender "
    "System Evaluation: A Formal Analysis, REVEAL workshop at RecSys 2018",
    data=DATA,
    amounts={
        "folds": Amount(5, 2, "folds of the random split"),
        "repeats": Amount(3, 2, "number of times that relevance is redrawn (once in the paper)"),
        "factors": Amount(50, 10, "factors of matrix factorisation"),
        "users": Amount(40_000, 8_000, "users of the largest simulated world"),
        "worlds": Amount(10, 2, "simulated worlds with online tests"),
    },
    exhibits=EXHIBITS,
    claims=read_claims(Path(__file__).with_name("claims.toml"), checks=(checks,), data=DATA),
    stand_in=stand_in,
    options={"yahoo-r3": {"common": True}},
    sizes={"yahoo-r3": (5_400, 1_000, 129_179)},
)
