"""`unskew shuffles`: lists of the same candidates in several orders."""

import json

import numpy as np
import polars as pl
import pytest


@pytest.fixture
def files(tmp_path):
    """Write three runs of a ranker that copies much of the presented order, and what judges it."""
    rng = np.random.default_rng(3)
    quality = rng.normal(size=(20, 6))
    for number in (1, 2, 3):
        order = rng.permuted(np.tile(np.arange(6), (20, 1)), axis=1)
        ranked = np.argsort(-(quality - 0.4 * np.argsort(order, axis=1)), axis=1)
        for name, lists in (("run", ranked), ("shown", order)):
            rows = [(u, int(i), at) for u in range(20) for at, i in enumerate(lists[u], start=1)]
            frame = pl.DataFrame(rows, ["user", "item", "rank"], orient="row")
            frame.write_csv(tmp_path / f"{name}{number}.csv")
    rows = [(u, i, 5 if quality[u, i] > 0 else 1) for u in range(20) for i in range(6)]
    pl.DataFrame(rows, ["user", "item", "rating"], orient="row").write_csv(tmp_path / "test.csv")
    return tmp_path


def words(files, *names):
    return [word for name in names for word in ("-r", files / f"{name}.csv")]


def test_likeness_position_and_metrics(files, call):
    runs = words(files, "run1", "run2", "run3")
    shown = [word for n in (1, 2, 3) for word in ("--presented", files / f"shown{n}.csv")]
    judged = ("-j", files / "test.csv", "--liked", "4", "-m", "P@3")
    code, out, _ = call("shuffles", *runs, *shown, *judged, "-k", "3")
    assert code == 0
    assert "overlap@3" in out
    assert "an item that is presented sooner is listed sooner" in out
    code, out, _ = call("shuffles", *runs, *judged, "--format", "json", "-q")
    content = json.loads(out)
    assert content["spread"][0]["metric"] == "P@3"
    assert content["position"] is None
    assert content["shuffles"] == ["run1", "run2", "run3"]


def test_refusals(files, call):
    def refused(*more):
        code, _, messages = call("shuffles", *more)
        assert code == 2
        return messages

    assert "--run twice or more" in refused(*words(files, "run1"))
    both = words(files, "run1", "run2")
    assert "--metric is for metrics: it needs --judgments" in refused(*both, "-m", "P@3")
    assert "--liked is for metrics" in refused(*both, "--liked", "4")
    assert "one order per run" in refused(*both, "--presented", files / "shown1.csv")
