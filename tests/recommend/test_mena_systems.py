"""Systems of mena2021 on the first fold of its own split, beside its published means of five."""

from dataclasses import replace

import numpy as np
import polars as pl
import pytest

import unskew as us
import unskew_studies
from shared.real_data import real_data
from unskew.arrays import frozen
from unskew.recommend.listwise import ListRankMF
from unskew.recommend.pairwise import GBPR, WBPR, RankSGD
from unskew.recommend.sgd import SVDpp
from unskew_studies.librec import LibRecItemKNN, LibRecSLIM, LibRecUserKNN

pytestmark = [pytest.mark.real, pytest.mark.slow]

# How far P@10 and anti-P@10 may be from the published values, as a share of them. SLIM: more
# penalty where zeros are kept as ratings; WBPR: seeds alone spread P@10 from .0846 to .0920.
NEAR = {
    "userknn": (LibRecUserKNN(), 0.03, 0.03),
    "itemknn": (LibRecItemKNN(), 0.03, 0.03),
    "svdpp": (SVDpp(), 0.05, 0.08),
    "gbpr": (GBPR(), 0.03, 0.05),
    "ranksgd": (RankSGD(), 0.08, 0.05),
    "slim": (LibRecSLIM(), 0.13, 0.13),
    "listrankmf": (ListRankMF(divisor=3.0), 0.03, 0.05),
    "wbpr": (WBPR(drifting=True), 0.10, 0.10),
}


@pytest.fixture(scope="module")
def fold():
    """Return training ratings 1 to 5 as 0, 0, 0, 1, 2, the lists to rank and what is published."""
    movielens = us.read_ratings(real_data("ml-1m/ratings.parquet"), tags=["mena_fold"])
    test = movielens.tags["mena_fold"].to_numpy() == 1
    split = us.Split(movielens.take(~test), movielens.take(test))
    train = replace(split.train, value=frozen(np.maximum(split.train.value - 3.0, 0.0)))
    table = pl.read_csv(real_data("published/mena2021_ml-1m_at10.csv")).to_dicts()
    return (
        train,
        us.targets.TrainItems().lists(split, liked=4),
        {row["algorithm"]: row for row in table},
    )


def measured(algorithm, fold, metrics=("P@10", "anti-P@10")):
    train, lists, _ = fold
    model = algorithm.fit(train)
    return list(us.evaluate(lists, {"one": model}, metrics).means()["one"].values())


@pytest.mark.parametrize("name", NEAR)
def test_near_the_published_values(fold, name):
    algorithm, *bounds = NEAR[name]
    theirs = fold[2][name]["precision"], fold[2][name]["antiprecision"]
    for value, published, bound in zip(measured(algorithm, fold), theirs, bounds, strict=True):
        assert value == pytest.approx(published, rel=bound)


DEFAULTS = {
    "wrmf": us.recommend.WRMF(),
    "plsa": us.recommend.PLSA(),
    "eals": us.recommend.EALS(),
    "pnmf": us.recommend.PNMF(),
    "listrankmf": ListRankMF(),
    "smootheditemaverage": us.recommend.SmoothedAverage(liked=1),
    "wbpr": WBPR(),
}
"""Where the settings of the paper are not the default; liked is a level from 1 up."""


@pytest.mark.parametrize("name", DEFAULTS)
def test_defaults_are_as_good_as_published(fold, name):
    assert measured(DEFAULTS[name], fold)[0] >= 0.97 * fold[2][name]["precision"]


@pytest.mark.parametrize(
    ("algorithm", "condensed"),
    [(LibRecSLIM(), (0.588, 0.488)), (ListRankMF(divisor=3.0), (0.6154, 0.4461))],
    ids=["slim", "listrankmf"],
)
def test_condensed_recall_and_fallout(fold, algorithm, condensed):
    """Means of five folds, measured once; SLIM stays .015 below and .022 above the published."""
    found = measured(algorithm, fold, ["condensed-Recall@10", "anti-condensed-Recall@10"])
    assert found == pytest.approx(condensed, abs=0.006)


def test_slim_leaves_nobody_without_a_list(fold):
    train, lists, _ = fold
    run = us.rank(LibRecSLIM().fit(train), lists, 10)
    assert run.depth.min() == 10


def test_defaults_are_those_of_the_paper_or_checked_here():
    for name, chosen in unskew_studies.preset("mena2021").items():
        default = type(chosen.algorithm)()
        assert default == chosen.algorithm or name in DEFAULTS


def test_the_published_wbpr_is_a_defect(fold):
    """LibRec's table of popularities drifts; draws by popularity do far better."""
    assert measured(WBPR(), fold)[0] > 2 * fold[2]["wbpr"]["precision"]
