"""Groups of items inside lists: places, liked items, recall."""

import math

import numpy as np
import polars as pl
import pytest

import unskew as us


def data(users=150, seed=1):
    """Lists over 20 items, kinds a, b, c; all liked items are known."""
    rng = np.random.default_rng(seed)
    kinds = np.array(["a"] * 8 + ["b"] * 8 + ["c"] * 4)
    chance = np.where(kinds == "a", 0.4, np.where(kinds == "b", 0.2, 0.1))
    liked = rng.random((users, 20)) < chance
    order = np.argsort(-(liked + np.where(kinds == "b", 0.6, 0) + rng.gumbel(0, 1, liked.shape)), 1)
    user, item = np.nonzero(liked)
    test = {"user": user, "item": item, "rating": np.full(user.size, 5)}
    runs = {"mine": {u: order[u, :7].tolist() for u in range(users) if u % 10}}
    return liked, kinds, test, runs


def test_shares_and_recall_are_plain_counts():
    liked, kinds, test, runs = data()
    judged = us.judge(test, runs, liked=4)
    by = {"item": np.arange(20), "kind": kinds}
    result = us.stats.item_group_gaps(judged, by, 5)
    assert result.groups == ("a", "b", "c")
    for row in result.table().iter_rows(named=True):
        mine = kinds == row["group"]
        places, recall, rest, gap, share = [], [], [], [], []
        for user in range(len(liked)):
            top = runs["mine"].get(user, [])[:5]
            if top:
                places.append(np.mean(mine[top]))
            hit = np.isin(np.arange(20), top) & liked[user]
            if liked[user].any():
                share.append(np.mean(mine[liked[user]]))
                if top:
                    gap.append(places[-1] - share[-1])
            if (liked[user] & mine).any():
                recall.append((hit & mine).sum() / (liked[user] & mine).sum())
            if (liked[user] & ~mine).any():
                rest.append((hit & ~mine).sum() / (liked[user] & ~mine).sum())
        assert row["exposure"] == pytest.approx(np.mean(places))
        assert row["liked_share"] == pytest.approx(np.mean(share))
        assert row["exposure_gap"] == pytest.approx(np.mean(gap))
        assert row["recall"] == pytest.approx(np.mean(recall))
        assert row["recall_rest"] == pytest.approx(np.mean(rest))
        assert row["recall_gap"] == pytest.approx(np.mean(recall) - np.mean(rest))
        assert row["users"] == len(recall)
        assert row["items"] == mine.sum()
        assert row["recall_low"] < row["recall"] < row["recall_high"]


def test_intervals_cover_over_users():
    """Users drawn anew from a population of 3,000: all gaps in recall at 95 % together."""
    liked, kinds, _, runs = data(3000, seed=2)
    by = {"item": np.arange(20), "kind": kinds}

    def result(chosen):
        number = np.repeat(np.arange(len(chosen)), liked[chosen].sum(axis=1))
        test = {"user": number, "item": np.nonzero(liked[chosen])[1], "rating": [5] * number.size}
        lists = {n: runs["mine"][u] for n, u in enumerate(chosen) if u in runs["mine"]}
        return us.stats.item_group_gaps(us.judge(test, {"mine": lists}, liked=4), by, 5).table()

    truth = result(np.arange(3000))
    rng = np.random.default_rng(3)
    held = {"exposure": 0, "exposure_gap": 0, "recall": 0, "recall_gap": 0}
    for _ in range(150):
        table = result(rng.integers(0, 3000, 200))
        for name in held:
            inside = (table[f"{name}_low"] <= truth[name]) & (truth[name] <= table[f"{name}_high"])
            held[name] += bool(inside.all())
    for name, count in held.items():
        assert count / 150 > 0.95 - 3.5 * math.sqrt(0.05 * 0.95 / 150), name


def test_popularity_files_and_unknown_items(tmp_path):
    _, kinds, test, runs = data()
    judged = us.judge(test, runs, liked=4)
    by_count = us.stats.item_group_gaps(judged, "popularity", 5, groups=2)
    assert len(by_count.groups) == 2
    p = by_count.table()["p"].to_list()
    assert p[0] == pytest.approx(p[1])
    assert by_count.table()["p_corrected"].to_list() == pytest.approx(p)
    gaps = by_count.table()["recall_gap"].to_list()
    assert gaps[0] == pytest.approx(-gaps[1])
    file = tmp_path / "items.csv"
    pl.DataFrame({"item": np.arange(15), "kind": kinds[:15]}).write_csv(file)
    result = us.stats.item_group_gaps(judged, f"{file}:kind", 5)
    assert result.groups == ("a", "b", "unknown")
    assert "unknown: 5 items" in str(result)
    assert result.to_dict()["rows"]


def test_wrong_groups_are_refused():
    _, _, test, runs = data()
    judged = us.judge(test, runs, liked=4)
    with pytest.raises(us.UnskewError, match="no column of items"):
        us.stats.item_group_gaps(judged, {"user": [1], "kind": ["a"]})
    with pytest.raises(us.UnskewError, match="popularity"):
        us.stats.item_group_gaps(judged, "activity")
    with pytest.raises(us.UnskewError, match="one group of items only"):
        us.stats.item_group_gaps(judged, {"item": np.arange(20), "kind": ["a"] * 20})
    with pytest.raises(us.UnskewError, match="none of its 3 items"):
        us.stats.item_group_gaps(judged, {"item": [91, 92, 93], "kind": ["a", "b", "b"]})
    with pytest.raises(us.UnskewError, match="items that already have one"):
        us.stats.item_group_gaps(judged, {"item": [1, 1], "kind": ["a", "b"]})
