"""bellogin2017: sparsity and popularity biases of ranking metrics for recommender systems."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from unskew.data.dataset import Dataset
from unskew.worlds.worlds import world
from unskew_studies.bellogin2017 import checks_designs, checks_popularity
from unskew_studies.bellogin2017.exhibits import EXHIBITS
from unskew_studies.bellogin2017.measurements import (
    LASTFM,
    MOVIELENS,
    NETFLIX,
)
from unskew_studies.claims import read_claims
from unskew_studies.lab import Amount
from unskew_studies.paper import STAND_IN, Study

DATA = (MOVIELENS, LASTFM, NETFLIX)


def stand_in(seed: int) -> Dataset:
    """Return a small shop."""
    shop = world("shop", users=400, items=300, seed=seed)
    return replace(shop.dataset(), name=STAND_IN, random=None)


STUDY = Study(
    name="bellogin2017",
    title="Statistical biases in Information Retrieval metrics for recommender systems",
    reference="A. Bellogín, P. Castells, I. Cantador: Statistical biases in Information Retrieval "
    "metrics for recommender systems. Information Retrieval Journal 20, 2017",
    data=DATA,
    amounts={
        "folds": Amount(5, 2, "folds of five, and repetitions of the uniform test"),
        "curves": Amount(5, 1, "folds of five along the curves of Figs. 3 and 4"),
        "skews": Amount(6, 3, "simulated data sets, of skew 0 to 2"),
    },
    exhibits=tuple(EXHIBITS),
    claims=read_claims(
        Path(__file__).with_name("claims.toml"),
        checks=(checks_designs, checks_popularity),
        data=DATA,
    ),
    stand_in=stand_in,
    sizes={LASTFM: (992, 176_948, None)},
)
