"""What an audit will do: counts against what an audit has, words, the command."""

import numpy as np
import pytest

import unskew as us
from unskew.auditing import large_data
from unskew.auditing.outline_audit import outline_audit

FEW = ["random", "popularity"]


def drawn(users, items, share):
    """Return ratings of a random share of all pairs."""
    rng = np.random.default_rng(2)
    user, item = np.nonzero(rng.random((users, items)) < share)
    return us.read_ratings({"user": user, "item": item, "rating": rng.integers(1, 6, user.size)})


def test_lists_and_scores_are_counted_as_designs_have_them():
    data = drawn(80, 300, 0.2)
    (split,) = us.splits.Random(test=0.2).split(data, seed=3)
    outline = outline_audit(data, "quick", algorithms=FEW, liked=4)
    rows = outline.designs.rows_by_key("design", named=True, unique=True)
    assert "temporal" not in rows  # there are no time stamps
    designs = {
        "all-items": us.targets.AllItems(),
        "test-items": us.targets.TestItems(),
        "1r": us.targets.OneRelevant(100, shortage="shorten"),
        "test-targets": us.targets.TestTargets("fill"),
    }
    for name, targets in designs.items():
        lists = targets.lists(split, us.Relevance(liked=4), seed=0)
        assert rows[name]["lists"] == pytest.approx(len(lists), rel=0.15)
        assert rows[name]["scores"] == pytest.approx(lists.size.sum(), rel=0.15)


def test_fits_are_counted():
    data = drawn(60, 40, 0.3)
    settings = {"algorithms": ["popularity", "item-knn"], "liked": 4, "designs": ["all-items"]}
    fits = outline_audit(data, "quick", **settings).systems.rows_by_key("system", named=True)
    assert fits["popularity"][0]["fits"] == 3 + 6  # splits, and draws of null data
    assert fits["item-knn"][0]["fits"] == 3 * (1 + 6) + 6  # six settings are tried
    plain = outline_audit(data, "quick", tune=False, splits=2, **settings).systems
    assert plain["fits"].to_list() == [2 + 6, 2 + 6]
    two = outline_audit(data, "quick", **{**settings, "designs": ["1r", "u1r", "skew"]}).systems
    assert two["fits"].to_list()[0] == 2 * (3 + 6)


def test_what_nobody_dislikes_has_no_null_experiment():
    clicks = us.read_ratings({"user": [1, 1, 2, 2, 3], "item": [1, 2, 1, 2, 3]})
    outline = outline_audit(clicks, "quick", algorithms=FEW, designs=["all-items"])
    assert outline.systems["fits"].to_list() == [3, 3]


def test_result_shows_itself(monkeypatch):
    monkeypatch.setitem(large_data.MOST_OPERATIONS, "quick", 0.0)
    data = drawn(60, 40, 0.3)
    outline = outline_audit(data, "quick", liked=4, users=20)
    text = str(outline)
    assert "of processor time to train and to score" in text
    assert "user-knn is left out: a fit would take about 1 billion operations" in text
    assert outline.designs["lists"].to_list()[0] == 20
    named = outline_audit(data, "quick", liked=4, algorithms=["popularity", "user-knn"])
    assert named.left_out == {}
    assert "user-knn is named and run: a fit would take about" in str(named)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"algorithms": []}, "algorithm"),
        ({"designs": ["temporal"]}, "needs time stamps"),
        ({"level": "quik"}, "quick"),
    ],
)
def test_what_leaves_nothing_to_do_is_refused(settings, message):
    with pytest.raises(us.UnskewError, match=message):
        outline_audit(us.world("shop", users=9, items=9), **settings)


def test_the_command_prints_the_outline_and_runs_nothing(tmp_path, call):
    shop = us.world("shop", users=40, items=30, seed=3)
    shop.ratings.to_polars().select("user", "item", "rating").write_csv(tmp_path / "r.csv")
    report = tmp_path / "report.html"
    arguments = ("--liked", 4, "--algorithms", "popularity,random", "--dry-run", "-o", report)
    code, out, _ = call("audit", tmp_path / "r.csv", *arguments)
    assert code == 0
    assert "Designs, a system on a split" in out
    assert not report.exists()
    lists = ("audit", "-j", tmp_path / "r.csv", "-r", tmp_path / "r.csv", "--dry-run")
    code, _, err = call(*lists)
    assert code == 2
    assert "--dry-run is for ratings" in err
