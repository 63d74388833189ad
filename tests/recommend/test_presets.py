"""The papers' systems with settings: all there, all trainable, all savable in a plan."""

import polars as pl
import pytest

import unskew as us
import unskew_studies
from shared.real_data import real_data
from unskew.recommend.registry import algorithm_class

PRESETS = {
    "bellogin2017": 5,
    "valcarce2018": 21,
    "carraro2020": 5,
    "mena2021": 16,
    "castells2018": 6,
}


@pytest.mark.parametrize("paper", PRESETS)
def test_every_system_is_there_and_known(paper):
    systems = unskew_studies.preset(paper)
    assert len(systems) == PRESETS[paper]
    for chosen in systems.values():
        assert algorithm_class(chosen.algorithm.name) is type(chosen.algorithm)
        assert chosen.settings in ("none", "published", "recovered", "tuned")
    assert list(us.Plan(algorithms=systems).systems) == list(systems)


def test_levels_start_where_liking_does():
    ratings = us.read_ratings({"user": [1] * 5, "item": [1, 2, 3, 4, 5], "rating": [1, 2, 3, 4, 5]})
    assert us.data.levels(ratings, liked=4).value.tolist() == [0, 0, 0, 1, 2]
    assert us.data.levels(ratings, liked=5).value.tolist() == [0, 0, 0, 0, 1]
    assert ratings.value.tolist() == [1, 2, 3, 4, 5]


def test_small_systems_of_every_paper_rank():
    """Those that take no time; the others walk the contract with fewer factors."""
    world = us.world("shop", users=60, items=40, ratings=600, seed=1)
    (split,) = us.splits.Random(test=0.3).split(world.ratings, seed=1)
    lists = us.targets.AllItems().lists(split, liked=4)
    quick = {"popularity", "random", "user-knn", "item-knn", "nncosngbr-ub", "average-rating"}
    for paper in PRESETS:
        for name, chosen in unskew_studies.preset(paper).items():
            if chosen.algorithm.name in quick:
                assert len(us.rank(chosen.fit(split.train), lists, 5)) == 60, name


@pytest.mark.real
@pytest.mark.slow
def test_the_systems_of_mena2021_come_in_the_published_order(tmp_path):
    """Kendall's tau over the personalised ones but BPMF, which never learned; its five folds.

    And over all 16: condensed recall and condensed fallout order them the other way round; the
    released values have -0.90.
    """
    ratings = us.read_ratings(real_data("ml-1m/ratings.parquet"), tags=["mena_fold"])
    table = pl.read_csv(real_data("published/mena2021_ml-1m_at10.csv"))
    published = dict(table.select("algorithm", "precision").rows())
    condensed = ["condensed-Recall@10", "anti-condensed-Recall@10"]
    plan = us.Plan(
        us.splits.Given(column="mena_fold"),
        us.targets.TrainItems(),
        unskew_studies.preset("mena2021"),
        us.Relevance(liked=1),
        ["P@10", *condensed],
    )
    results = us.run_plan(us.data.levels(ratings, liked=4), plan, store=tmp_path).summary()
    systems = results.filter(pl.col("system").is_in(list(unskew_studies.preset("mena2021"))))
    assert systems.height == 16
    ours = dict(systems.select("system", "P@10").rows())
    assert us.stats.kendall(*systems.select(condensed).to_numpy().T) == pytest.approx(
        -0.92, abs=0.05
    )
    for name, values in {"slim": (0.588, 0.488), "listrankmf": (0.6154, 0.4461)}.items():
        assert systems.filter(system=name).select(condensed).row(0) == pytest.approx(
            values, abs=0.005
        )
    alike = {"mostpopular", "smootheditemaverage", "randomguess", "bpoissmf"}
    names = [name for name in unskew_studies.preset("mena2021") if name not in alike]
    assert len(names) == 12
    assert (
        us.stats.kendall([ours[name] for name in names], [published[name] for name in names]) >= 0.7
    )
