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


def quantities(result, group):
    """Return the rows of a group by quantity, of places and of recall."""
    parts = result, result.parts["recall"]
    return {
        name: part.row(group=group, quantity=name)
        for part in parts
        for name in part.values_of("quantity")
    }


def test_shares_and_recall_are_plain_counts():
    liked, kinds, test, runs = data()
    judged = us.judge(test, runs, liked=4)
    by = {"item": np.arange(20), "kind": kinds}
    result = us.stats.item_group_gaps(judged, by, 5)
    assert result.values_of("group") == ["a", "b", "c"]
    assert "recall@5 of liked items" in str(result)
    for group in "abc":
        rows = quantities(result, group)
        mine = kinds == group
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
        assert rows["exposure"].value == pytest.approx(np.mean(places))
        assert rows["liked_share"].value == pytest.approx(np.mean(share))
        assert rows["exposure_gap"].value == pytest.approx(np.mean(gap))
        assert rows["recall"].value == pytest.approx(np.mean(recall))
        assert rows["recall_rest"].value == pytest.approx(np.mean(rest))
        assert rows["recall_gap"].value == pytest.approx(np.mean(recall) - np.mean(rest))
        assert (rows["exposure"].n, rows["recall"].n) == (len(places), len(recall))
        assert rows["exposure"].facts == {"items": mine.sum()}
        assert rows["recall"].low < rows["recall"].value < rows["recall"].high


def test_intervals_cover_over_users():
    """Users drawn anew from a population of 3,000: all gaps in recall at 95 % together."""
    liked, kinds, _, runs = data(3000, seed=2)
    by = {"item": np.arange(20), "kind": kinds}

    def result(chosen):
        number = np.repeat(np.arange(len(chosen)), liked[chosen].sum(axis=1))
        test = {"user": number, "item": np.nonzero(liked[chosen])[1], "rating": [5] * number.size}
        lists = {n: runs["mine"][u] for n, u in enumerate(chosen) if u in runs["mine"]}
        gaps = us.stats.item_group_gaps(us.judge(test, {"mine": lists}, liked=4), by, 5)
        return [quantities(gaps, group) for group in "abc"]

    truth = result(np.arange(3000))
    rng = np.random.default_rng(3)
    held = {"exposure": 0, "exposure_gap": 0, "recall": 0, "recall_gap": 0}
    for _ in range(150):
        groups = list(zip(result(rng.integers(0, 3000, 200)), truth, strict=True))
        for name in held:
            inside = [of[name].low <= true[name].value <= of[name].high for of, true in groups]
            held[name] += all(inside)
    for name, count in held.items():
        assert count / 150 > 0.95 - 3.5 * math.sqrt(0.05 * 0.95 / 150), name


def test_popularity_files_and_unknown_items(tmp_path):
    _, kinds, test, runs = data()
    judged = us.judge(test, runs, liked=4)
    by_count = us.stats.item_group_gaps(judged, "popularity", 5, groups=2)
    assert len(by_count.values_of("group")) == 2
    gaps = by_count.parts["recall"].where(quantity="recall_gap").rows
    p = gaps["p"].to_list()
    assert p[0] == pytest.approx(p[1])
    assert gaps["p_corrected"].to_list() == pytest.approx(p)
    assert gaps["value"][0] == pytest.approx(-gaps["value"][1])
    file = tmp_path / "items.csv"
    pl.DataFrame({"item": np.arange(15), "kind": kinds[:15]}).write_csv(file)
    result = us.stats.item_group_gaps(judged, f"{file}:kind", 5)
    assert result.values_of("group") == ["a", "b", "unknown"]
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
