"""mena2021: popularity bias in metrics of false positives."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from unskew.data.dataset import Dataset
from unskew.worlds.worlds import world
from unskew_studies.claims import read_claims
from unskew_studies.lab import Amount
from unskew_studies.mena2021 import checks_items, checks_lemmas, checks_systems
from unskew_studies.mena2021.exhibits import EXHIBITS
from unskew_studies.paper import STAND_IN, Study

DATA = ("ml-1m", "ml-100k", "cm100k", "yahoo-r3")


def stand_in(seed: int) -> Dataset:
    """Return a small shop, with ratings of random items."""
    shop = world("shop", users=150, items=120, ratings=2500, seed=seed)
    return replace(shop.dataset(random=0.1), name=STAND_IN)


STUDY = Study(
    name="mena2021",
    title="Popularity bias in false-positive metrics",
    reference="E. Mena-Maldonado, R. Cañamares, P. Castells, Y. Ren, M. Sanderson: Popularity Bias "
    "in False-positive Metrics for Recommender Systems Evaluation, ACM TOIS 39(3), 2021",
    data=DATA,
    amounts={
        "folds": Amount(5, 2, "folds of the random split"),
        "users": Amount(1000, 300, "users of the worlds of the lemmas, with half as many items"),
        "inverted": Amount(600, 120, "users of the world where popularity goes against relevance"),
    },
    exhibits=EXHIBITS,
    claims=read_claims(
        Path(__file__).with_name("claims.toml"),
        checks=(checks_items, checks_lemmas, checks_systems),
        data=DATA,
    ),
    stand_in=stand_in,
    options={"yahoo-r3": {"common": True}},
    sizes={"yahoo-r3": (5_400, 1_000, 129_179)},
)
