"""`unskew ranking`: scores of several data sets, from folders and files."""

import json

import numpy as np
import polars as pl
import pytest

import unskew as us


@pytest.fixture
def scores(tmp_path):
    """Return the folders of saved scores on three data sets."""
    folders = []
    for seed, name in enumerate(("books", "films", "games")):
        shop = us.world("shop", users=30, items=20, seed=seed)
        (split,) = us.splits.Random(test=0.3).split(shop.ratings, seed=1)
        lists = us.targets.AllItems().lists(split, liked=4)
        systems = {"pop": us.recommend.Popularity(), "rand": us.recommend.Random()}
        runs = {key: us.rank(one.fit(split.train), lists, 10) for key, one in systems.items()}
        us.evaluate(split.test, runs, ["P@5", "RR"], liked=4).save(tmp_path / name / "scores")
        folders.append(f"{name}={tmp_path / name / 'scores'}")
    return folders


def test_folders(scores, call, tmp_path):
    code, out, _ = call("ranking", *scores, "-m", "P@5", "--resamples", "20")
    assert code == 0
    assert "P@5 (higher is better), 3 data sets" in out
    chart = tmp_path / "ranks.svg"
    code, out, _ = call("ranking", *scores, "-m", "RR", "--format", "json", "--figure", chart, "-q")
    content = json.loads(out)
    assert content["card"]["data_sets"].keys() == {"books", "films", "games"}
    assert chart.stat().st_size > 1000
    folds = [f"all={one.split('=')[1]}" for one in scores[:2]]
    code, out, _ = call("ranking", *folds, scores[2], "-m", "P@5", "--format", "json", "-q")
    assert list(json.loads(out)["card"]["data_sets"]) == ["all", "games"]


def test_refusals(scores, call, tmp_path):
    def refused(*words):
        code, _, messages = call("ranking", *words)
        assert code in (1, 2)  # data or setting
        return messages

    assert "at least 2 data sets" in refused(scores[0], "-m", "P@5")
    assert "choose one --metric" in refused(*scores)
    assert "nothing" in refused(*scores, "nothing.csv", "-m", "P@5")
    frame = pl.DataFrame({"user": np.arange(5), "pop": np.arange(5.0), "new": np.arange(5.0)})
    frame.write_csv(tmp_path / "x.csv")
    frame.drop("new").with_columns(rand=pl.lit(0.5)).write_csv(tmp_path / "y.csv")
    messages = refused(tmp_path / "x.csv", tmp_path / "y.csv")
    assert "--missing systems" in messages
    assert "only folders can be folds" in refused(
        f"x={tmp_path / 'x.csv'}", f"x={tmp_path / 'y.csv'}"
    )
