"""Recommended pairs: places and coefficients against `evaluate` and plain loops."""

import itertools

import numpy as np
import pytest

import unskew as us
from unskew.labels.recommended_pairs import RecommendedPairs, place_sums
from unskew.metrics.names import REGISTRY
from unskew.runs import read_run

METRICS = ("P@3", "P", "P(per=list)@3", "DCG@3", "DCG(discount=original)@4", "RBP", "RBP(p=0.5)@2",
           "anti-P@3", "anti-DCG@3", "anti-RBP@4")  # fmt: skip


def lists(seed, users=12, items=15, depth=4, systems=3):
    """Return the lists of systems that differ in length; some users have none."""
    rng = np.random.default_rng(seed)
    runs = {}
    for number in range(systems):
        length = rng.integers(0, depth + 1, users)
        runs[f"s{number}"] = {
            f"u{user}": [f"i{item}" for item in rng.permutation(items)[: length[user]]]
            for user in range(users)
            if length[user]
        }
    return runs


def ranks_of(pairs):
    """Return user, item and the rank in each system's list (None: not in it) of each pair."""
    columns = [pairs.users.raw(pairs.user).to_list(), pairs.items.raw(pairs.item).to_list()]
    for listed in pairs.lists.values():
        rank = dict(zip(listed.pair.tolist(), listed.rank.tolist(), strict=True))
        columns.append([rank.get(row) for row in range(len(pairs))])
    return list(zip(*columns, strict=True))


def all_judged(seed, users=12, items=15):
    rng = np.random.default_rng(seed + 100)
    pairs = list(itertools.product(range(users), range(items)))
    return {
        "user": [f"u{u}" for u, _ in pairs],
        "item": [f"i{i}" for _, i in pairs],
        "rating": rng.integers(1, 6, len(pairs)),
    }


@pytest.mark.parametrize("seed", [1, 2])
@pytest.mark.parametrize("metric", METRICS)
def test_sums_over_pairs_are_the_values_of_evaluate(metric, seed):
    runs, labels = lists(seed), all_judged(seed)
    judged = us.judge(labels, runs, liked=4)
    pairs = RecommendedPairs.of_judged(judged)
    (one,) = place_sums(metric).values()
    y = one.worth(judged.view)[pairs.judgment]
    listed = set().union(*runs.values())
    for name in runs:
        row, add = pairs.coefficients(one).contrast(name)
        per_user = us.evaluate(judged, metric, users="all").values(name, metric)
        assert add @ y[row] == pytest.approx(np.nansum(per_user) / len(listed), abs=1e-12)
    for a, b in itertools.combinations(runs, 2):
        row, add = pairs.coefficients(one).contrast(a, b)
        values = [
            float(c @ y[r]) for r, c in (pairs.coefficients(one).contrast(name) for name in (a, b))
        ]
        assert add @ y[row] == pytest.approx(values[0] - values[1], abs=1e-12)
        assert (add != 0).all()


def test_the_ratio_of_sums_is_the_share_of_places():
    runs, labels = lists(3), all_judged(3)
    judged = us.judge(labels, runs, liked=4)
    pairs = RecommendedPairs.of_judged(judged, 3)
    (one,) = place_sums("P@3").values()
    liked = {(u, i) for u, i, r in zip(*labels.values(), strict=True) if r >= 4}
    for name, run in runs.items():
        places = [(user, item) for user, items in run.items() for item in items[:3]]
        row, add = pairs.coefficients(one, "ratio").contrast(name)
        y = one.worth(judged.view)[pairs.judgment[row]]
        assert add @ y == pytest.approx(np.mean([place in liked for place in places]))


def test_places_by_hand_and_strangers():
    runs = {"a": {1: ["x", "y"], 2: ["y"]}, "b": {1: ["y", "z", "x"], 3: ["q"]}}
    ready = {name: read_run(run) for name, run in runs.items()}
    pairs = RecommendedPairs.of_runs(ready, 2)
    assert ranks_of(pairs) == [
        (1, "x", 1, None),
        (1, "y", 2, 1),
        (1, "z", None, 2),
        (2, "y", 1, None),
        (3, "q", None, 1),
    ]
    assert pairs.number_of_users == 3
    assert pairs.times_listed.tolist() == [1, 2, 1, 1, 1]
    assert pairs.best_rank.tolist() == [1, 1, 2, 1, 1]
    (one,) = place_sums("P@2").values()
    row, add = pairs.coefficients(one).contrast("a", "b")
    assert row.tolist() == [0, 2, 3, 4]  # y of user 1 counts alike for both
    assert add == pytest.approx([1 / 6, -1 / 6, 1 / 6, -1 / 6])
    human = us.read_ratings({"user": [1, 1, 9, 2], "item": ["z", "q", "x", "y"],
                             "rating": [1, 1, 1, 1]})  # fmt: skip
    found = dict(zip(human.to_polars().select("user", "item").rows(),
                     pairs.rows_of(human).tolist(), strict=True))  # fmt: skip
    assert found == {(1, "z"): 2, (1, "q"): -1, (9, "x"): -1, (2, "y"): 3}


def test_judged_data_and_lists_alone_agree():
    runs, labels = lists(4), all_judged(4)
    judged = us.judge(labels, runs, liked=4)
    ready = {name: read_run(run) for name, run in runs.items()}
    one, other = RecommendedPairs.of_judged(judged, 3), RecommendedPairs.of_runs(ready, 3)
    assert ranks_of(one) == ranks_of(other)
    assert (one.judgment >= 0).all()
    assert (other.judgment < 0).all()
    value = judged.judgments.value[one.judgment]
    known = {(u, i): r for u, i, r in zip(*labels.values(), strict=True)}
    rows = [row[:2] for row in ranks_of(one)]
    assert value.tolist() == [known[row] for row in rows]


def test_strata_part_the_pairs():
    pairs = RecommendedPairs.of_runs({k: read_run(v) for k, v in lists(5, depth=8).items()})
    by_rank = pairs.strata("rank")
    assert by_rank.names == ("rank 1", "ranks 2 to 3", "ranks 4 to 7", "ranks 8 to 15")
    for name, rank in zip(np.array(by_rank.names)[by_rank.code], pairs.best_rank, strict=True):
        numbers = [int(word) for word in name.split() if word.isdigit()]
        assert numbers[0] <= rank <= numbers[-1]
    systems = pairs.strata("disagreement")
    assert systems.names == ("1 of 3", "2 of 3", "3 of 3")[: len(systems.names)]
    assert (systems.code == pairs.times_listed - 1).all()
    popular = pairs.strata("popularity")
    assert popular.names == ("least popular", "middle", "most popular")
    assert popular.sizes.sum() == len(pairs)
    assert popular.sizes.min() > 0
    tops = [pairs.popularity[popular.code == code].max() for code in range(3)]
    lows = [pairs.popularity[popular.code == code].min() for code in range(3)]
    assert tops[0] < lows[1] <= tops[1] < lows[2]
    flat = RecommendedPairs.of_runs({"a": read_run({1: ["x", "y", "z"]})})
    assert flat.strata("popularity").names == ("all",)


def test_popularity_is_that_of_training_where_it_is_known():
    train = us.read_ratings({"user": [1, 2, 3], "item": ["x", "x", "y"], "rating": [1, 1, 1]})
    pairs = RecommendedPairs.of_runs({"a": read_run({1: ["y", "z"], 4: ["x"]})}, train=train)
    assert [row[1] for row in ranks_of(pairs)] == ["y", "z", "x"]
    assert pairs.popularity.tolist() == [1, 0, 2]


def test_what_is_no_sum_over_places_is_refused():
    allowed = {"P", "DCG", "RBP"}
    for name, definition in REGISTRY.items():
        if definition.is_user_code or name in allowed:
            continue
        with pytest.raises(us.SettingError, match="cannot be estimated from judgments of"):
            place_sums(f"{name}@5")
    for bad in ("condensed-P@5", "P(bound=upper)@5", "nDCG(ideal=full)@5"):
        with pytest.raises(us.SettingError, match="take one of P, DCG, RBP or an anti-twin"):
            place_sums(bad)
    with pytest.raises(us.SettingError, match="no metrics"):
        place_sums([])


def test_lists_that_cannot_be_taken():
    with pytest.raises(us.SettingError, match="no runs"):
        RecommendedPairs.of_runs({})
    world = us.world("null", users=30, items=12, seed=1)
    split = us.splits.Random(test=0.3).split(world.ratings, seed=1)[0]
    one_relevant = us.targets.OneRelevant(others=3).lists(split, liked=4)
    model = us.recommend.Popularity().fit(split.train)
    with pytest.raises(us.SettingError, match="one list per user"):
        RecommendedPairs.of_judged(us.judge(one_relevant, {"pop": model}), 2)
    whole = us.judge(us.targets.AllItems().lists(split, liked=4), {"pop": model})
    with pytest.raises(us.SettingError, match="cutoff"):
        RecommendedPairs.of_judged(whole)
    ready = us.rank(model, us.targets.AllItems().lists(split, liked=4), 2)
    ours = RecommendedPairs.of_judged(whole, 2)
    assert ranks_of(ours) == ranks_of(RecommendedPairs.of_runs({"pop": ready}, 2))
