"""valcarce2018: which metrics and cutoffs are robust, and which tell systems apart."""

from __future__ import annotations

from pathlib import Path

from unskew.data.dataset import Dataset
from unskew.worlds.worlds import world
from unskew_studies.claims import read_claims
from unskew_studies.lab import Amount
from unskew_studies.paper import STAND_IN, Study
from unskew_studies.valcarce2018 import checks_methods, checks_metrics
from unskew_studies.valcarce2018.exhibits import EXHIBITS
from unskew_studies.valcarce2018.printed import SETS

DATA = tuple(SETS)


def stand_in(seed: int) -> Dataset:
    """Return a small shop, with more items than a list holds."""
    shop = world("shop", users=300, items=250, seed=seed)
    return Dataset(STAND_IN, shop.ratings, scale=shop.scale, liked=shop.liked)


STUDY = Study(
    name="valcarce2018",
    title="Robustness and discriminative power of metrics",
    reference="D. Valcarce, A. Bellogín, J. Parapar, P. Castells, On the robustness and "
    "discriminative power of information retrieval metrics for top-N recommendation, RecSys 2018",
    data=DATA,
    amounts={
        "permutations": Amount(100_000, 2_000, "random sign flips of each test"),
        "samples": Amount(50, 5, "random test sets for each of 20 shares (50: 1,000 in all)"),
        "bootstrap": Amount(1_000, 50, "draws of users for the intervals of τ"),
    },
    exhibits=EXHIBITS,
    claims=read_claims(
        Path(__file__).with_name("claims.toml"), checks=(checks_methods, checks_metrics), data=DATA
    ),
    stand_in=stand_in,
)
