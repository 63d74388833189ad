"""Published values on real data."""

import numpy as np
import polars as pl
import pytest

import unskew as us
from shared.real_data import real_data

GOLDEN = {
    "P@10": 0.1428, "P@100": 0.0621, "recall_10": 0.0858, "recall_100": 0.3535, "MAP": 0.0762,
    "MRR": 0.3367, "nDCG": 0.2233, "nDCG@10": 0.1793, "nDCG@100": 0.2269, "bpref": 0.3157,
    "infAP": 0.2609, "infAP2": 0.2609, "P@5": 0.1687,
}  # fmt: skip


def popularity_run(train: pl.DataFrame, depth: int) -> pl.DataFrame:
    """Rank every user's unseen items by training count, ties by ascending id."""
    popular = train.group_by("item").len().sort(["len", "item"], descending=[True, False])
    popular = popular["item"].to_list()
    rows = []
    for (user,), seen in train.group_by(["user"], maintain_order=True):
        known = set(seen["item"])
        best = [item for item in popular if item not in known][:depth]
        rows.append(pl.DataFrame({"user": user, "item": best, "rank": range(1, len(best) + 1)}))
    return pl.concat(rows)


@pytest.mark.real
def test_popularity_on_the_split_of_valcarce2018(ml1m_path):
    """Twelve released values of the popularity ranking, to four decimals."""
    ratings = pl.read_parquet(ml1m_path)
    train = ratings.filter(~pl.col("valcarce_test"))
    test = ratings.filter("valcarce_test")
    run = popularity_run(train, 100)
    scores = us.evaluate(test, {"pop": run}, list(GOLDEN), liked=4, gain="integer")
    assert len(test) == 197_656
    for name, value in scores.means()["pop"].items():
        assert round(value, 4) == GOLDEN[name], name


@pytest.mark.real
def test_condensed_precision_on_the_folds_of_mena2021(ml1m_path):
    """Popularity's released condensed precision and anti-precision, means of five folds.

    Items of equal popularity have another order there: hence two units of the fourth decimal.
    """
    released = pl.read_csv(real_data("published/mena2021_ml-1m_at10.csv"))
    popular = released.row(by_predicate=pl.col("algorithm") == "mostpopular", named=True)
    ratings = us.read_ratings(ml1m_path, tags=["mena_fold"])
    fold = ratings.tags["mena_fold"].to_numpy()
    twins = ["condensed-P@10", "condensed-anti-P@10"]
    means = []
    for number in range(1, 6):
        split = us.Split(ratings.take(fold != number), ratings.take(fold == number))
        lists = us.targets.TrainItems().lists(split, liked=4)
        model = us.recommend.Popularity().fit(split.train)
        means.append(list(us.evaluate(lists, {"m": model}, twins).means()["m"].values()))
    published = [popular["precision_c"], popular["antiprecision_c"]]
    assert np.sum(means, axis=1) == pytest.approx(np.ones(5), abs=1e-12)
    assert np.mean(means, axis=0) == pytest.approx(published, abs=2e-4)
