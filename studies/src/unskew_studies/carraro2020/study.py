"""carraro2020: test sets drawn so that they look missing at random, held against random ratings."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from unskew.data.dataset import Dataset
from unskew.worlds.worlds import world
from unskew_studies.carraro2020 import checks, checks_means
from unskew_studies.carraro2020.exhibits import EXHIBITS
from unskew_studies.carraro2020.printed import (
    BOTH,
)
from unskew_studies.claims import read_claims
from unskew_studies.lab import Amount
from unskew_studies.paper import STAND_IN, Study

DATA = BOTH


def stand_in(seed: int) -> Dataset:
    """Return a small shop of which some ratings are of randomly chosen items."""
    shop = world("shop", users=150, items=100, seed=seed)
    return replace(shop.dataset(random=0.2), name=STAND_IN)


STUDY = Study(
    name="carraro2020",
    title="Debiased offline evaluation: a weighted-sampling approach",
    reference="D. Carraro, D. Bridge: Debiased Offline Evaluation of Recommender Systems: A "
    "Weighted-Sampling Approach, ACM SAC 2020",
    data=DATA,
    amounts={
        "repetitions": Amount(10, 3, "random splits"),
        "neighbours": Amount(10, 2, "sizes of neighbourhoods to choose from"),
        "factors": Amount(10, 1, "numbers of factors to choose from"),
        "penalties": Amount(6, 2, "strengths of regularisation to choose from"),
    },
    exhibits=EXHIBITS,
    claims=read_claims(
        Path(__file__).with_name("claims.toml"), checks=(checks, checks_means), data=DATA
    ),
    stand_in=stand_in,
    options={"yahoo-r3": {"common": True}},
    sizes={"yahoo-r3": (5_400, 1_000, 129_179)},
)
