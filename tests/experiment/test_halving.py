"""Systems are tuned on a part of their training ratings, with equal budgets, on nothing else."""

import math
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import ClassVar

import numpy as np
import polars as pl
import pytest

import unskew as us
from shared.algorithms import EVERYONE
from unskew.experiment import halving
from unskew.experiment.tune import candidates, edges
from unskew.recommend.registry import algorithm_class
from unskew.splits import draws

LIKED = us.Relevance(liked=4)
UNTUNED = {
    "random",
    "popularity",
    "recent-popularity",
    "positive-popularity",
    "average-rating",
    "smoothed-average",
    "optimal-precision",
    "optimal-anti-precision",
    "optimal-true",
    "with-fallback",  # the recommender within it has a grid of its own
}


def clusters(users=120, items=60, ratings=1800, seed=0):
    """Return ratings of users who like items of their own cluster: a generator of this test."""
    rng = np.random.default_rng(seed)
    same = rng.integers(0, 4, users)[:, None] == rng.integers(0, 4, items)
    liked = rng.random((users, items)) < np.where(same, 0.8, 0.1)
    weight = np.where(liked, 1.0, 0.1) * rng.lognormal(0, 0.5, items)
    chosen = rng.choice(users * items, ratings, replace=False, p=(weight / weight.sum()).ravel())
    user, item = np.divmod(np.sort(chosen), items)
    value = np.where(liked[user, item], 5, 2)
    return us.read_ratings({"user": user + 100, "item": item + 7, "rating": value})


def tuned(systems, train, metric="P@5", **more):
    return us.experiment.tune_systems(systems, train, LIKED, metric, **more)


@dataclass(frozen=True)
class Blend(us.recommend.Algorithm):
    """Popularity with noise; trouble on demand."""

    noise: float = 5.0
    fails: bool = False
    name: ClassVar[str] = "blend"
    tuning = {"noise": (0.0, 1.0, 5.0)}  # noqa: RUF012

    def learn(self, train, rng):
        if self.fails or self.noise == 1.0:
            raise us.DataError(f"noise {self.noise:g} is refused")
        counts = np.bincount(train.item, minlength=len(train.items))
        return counts + self.noise * rng.random(counts.size)


# What is chosen


def plain_values(system, train, k, seed):
    """Return the value of every setting of a system that draws nothing, by loops over sets."""
    held = draws.coin(train, Fraction(1, 5), seed, "tune/validation")
    fit, valid = train.take(~held), train.take(held)
    values = []
    for settings in candidates(system, 6):
        model = replace(system, **settings).fit(fit)
        scores = model.score(np.arange(len(train.users), dtype=np.int32))
        shares = []
        for user in range(len(train.users)):
            known = set(fit.item[fit.user == user].tolist())
            rows = valid.user == user
            if not known or not rows.any():
                continue
            liked = set(valid.item[rows & (valid.value >= 4)].tolist())
            ranked = [
                item
                for item in range(len(train.items))
                if item not in known and not np.isnan(scores[user, item])
            ]
            ranked.sort(key=lambda item, of=scores[user]: (-of[item], item))
            shares.append(len(liked & set(ranked[:k])) / k)
        values.append(sum(shares) / len(shares))
    return values


@pytest.mark.parametrize(
    "system", [us.recommend.ItemKNN(), us.recommend.EASE(), us.recommend.UserKNN(k=7)]
)
def test_values_and_choice_are_those_of_a_plain_twin(system):
    train = clusters()
    result = tuned({"x": system}, train, seed=4)["x"]
    expected = plain_values(system, train, 5, 4)
    assert result.trials["value"].to_list() == pytest.approx(expected, abs=1e-12)
    best = int(np.argmax(np.round(expected, 12)))
    assert result.settings == candidates(system, 6)[best]
    assert result.algorithm == replace(system, **result.settings)
    assert result.value == pytest.approx(max(expected))
    assert (result.tried, result.is_default) == (6, best == 0)
    assert result.trials["round"].to_list() == [1] * 6
    assert result.trials["settings"][best] == result.text


def test_few_factors_where_popularity_is_all_there_is():
    shop = us.world("shop", users=300, items=150, seed=7)
    systems = {"svd": us.recommend.PureSVD(), "wrmf": us.recommend.WRMF()}
    result = tuned(systems, shop.ratings, "P@10", seed=1)
    assert result["svd"].settings["factors"] <= 2
    assert result["svd"].edges == (), "fewer than 1 factor there cannot be"
    assert result["wrmf"].settings["regularisation"] >= 50
    assert result["svd"].value > 1.3 * result["svd"].trials["value"][0], "30 are far worse"


def test_same_bits_whatever_else_is_tuned_and_in_whatever_order():
    train = clusters()
    systems = {
        "wrmf": us.recommend.WRMF(factors=3),
        "knn": us.recommend.UserKNN(),
        "popular": us.recommend.Popularity(),
        "bpr": us.recommend.BPRMF(factors=4, epochs=3),
    }
    first = tuned(systems, train, seed=2)
    turned = tuned(dict(reversed(systems.items())), train, seed=2)
    assert sorted(first) == sorted(turned) == ["bpr", "knn", "wrmf"]
    for name, one in first.items():
        alone = tuned({"other name": systems[name]}, train, seed=2)["other name"]
        for other in (turned[name], alone):
            assert one.trials.equals(other.trials)
            assert one.algorithm == other.algorithm
    assert not tuned(systems, train, seed=3)["wrmf"].trials.equals(first["wrmf"].trials)


def test_of_equal_settings_those_that_it_came_with_stay():
    @dataclass(frozen=True)
    class Flat(us.recommend.Algorithm):
        level: int = 3
        tuning = {"level": (1, 2, 3, 4)}  # noqa: RUF012

        def learn(self, train, rng):
            return np.arange(len(train.items), dtype=float)

    result = tuned({"flat": Flat()}, clusters())["flat"]
    assert result.is_default
    assert (result.settings, result.tried, result.edges) == ({"level": 3}, 4, ())


def test_where_lower_is_better_the_lowest_wins():
    result = tuned({"blend": Blend()}, clusters(), "anti-P@5")["blend"]
    values = result.trials.filter(pl.col("reason") == "")["value"]
    assert result.value == values.min() < values.max()


def test_a_metric_without_values_of_users_is_refused():
    with pytest.raises(us.SettingError, match="no value per user"):
        tuned({"blend": Blend()}, clusters(), "Gini@5")


# Rounds


def test_a_setting_that_is_clearly_ahead_is_chosen_at_once(monkeypatch):
    monkeypatch.setattr(halving, "MANY_USERS", 300)
    train, both = clusters(users=400, ratings=6000), []
    for close in (0.0, 1.0):  # only equal values are close; every value is
        monkeypatch.setattr(halving, "CLOSE", close)
        calls = []
        system = {"svd": us.recommend.PureSVD()}
        both += [
            tuned(system, train, progress=lambda *done, calls=calls: calls.append(done))["svd"]
        ]
        assert calls[-1] == (8, 8)  # what is left out counts as done
    at_once, in_two_rounds = both
    first = in_two_rounds.trials.filter(in_two_rounds.trials["round"] == 1)
    assert at_once.trials.equals(first)
    best = first.sort("value", descending=True, maintain_order=True)
    assert (at_once.text, at_once.value) == (best["settings"][0], best["value"][0])
    assert in_two_rounds.trials.height == 8


def test_the_best_third_of_the_settings_goes_on_to_all_users(monkeypatch):
    monkeypatch.setattr(halving, "MANY_USERS", 300)
    monkeypatch.setattr(halving, "CLOSE", 1.0)
    train, calls = clusters(users=400, ratings=6000), []
    systems = {"svd": us.recommend.PureSVD(), "blend": Blend()}
    result = tuned(systems, train, seed=1, progress=lambda *done: calls.append(done))
    trials = result["svd"].trials
    rounds = {number: part for (number,), part in trials.group_by(["round"], maintain_order=True)}
    assert [part.height for part in rounds.values()] == [6, 2]
    users = [part["users"].unique().item() for part in rounds.values()]
    assert users[1] > 380
    assert users[0] == pytest.approx(400 / 3, abs=8)
    order = rounds[1].sort("value", descending=True, maintain_order=True)["settings"]
    assert set(rounds[2]["settings"]) == set(order[:2])
    last = rounds[2].sort("value", descending=True, maintain_order=True)
    assert (result["svd"].text, result["svd"].value) == (last["settings"][0], last["value"][0])
    assert calls[-1] == (6 + 2 + 3 + 2, 6 + 2 + 3 + 2)


def test_of_very_many_users_a_random_part_stands_for_all(monkeypatch):
    train = clusters(users=400, ratings=6000)
    monkeypatch.setattr(halving, "MOST_USERS", 150)
    result = tuned({"knn": us.recommend.UserKNN(k=5)}, train, seed=1)["knn"]
    assert result.trials["users"].unique().item() == pytest.approx(150, abs=8)
    # The same as if there were no others: users keep what they rated, items nobody rated go.
    chosen = halving._drawn_users(400, 150, 1)
    part = train.take(chosen[train.user])
    part = us.read_ratings(part.to_polars().rename({"value": "rating"}, strict=False))
    monkeypatch.setattr(halving, "MOST_USERS", 10_000)
    alone = tuned({"knn": us.recommend.UserKNN(k=5)}, part, seed=1)["knn"]
    assert alone.trials.equals(result.trials)
    assert alone.settings == result.settings


def test_rounds_follow_from_the_number_of_users():
    assert halving._sizes(1) == [1]
    assert halving._sizes(2_000) == [2_000]
    assert halving._sizes(6_040) == [2_014, 6_040]
    assert halving._sizes(10_000) == [3_334, 10_000]
    assert halving._sizes(1_000_000) == [3_334, 10_000]
    assert [halving._going_on(n) for n in (1, 2, 3, 6, 7, 12)] == [1, 2, 2, 2, 3, 4]


@pytest.mark.parametrize("metric", ["P@5", "nDCG@7", "anti-Recall@3", "AP(per=min)@4", "RR@2"])
def test_the_top_of_lists_gives_the_values_that_whole_rankings_give(metric, monkeypatch):
    train = clusters()
    system = us.recommend.ItemKNN(k=3)  # leaves many items without a score
    result = tuned({"x": system}, train, metric, seed=1)["x"]
    monkeypatch.setattr(halving, "rank", lambda model, *_, **__: model)
    assert tuned({"x": system}, train, metric, seed=1)["x"].trials.equals(result.trials)


def test_rounds_are_laid_once_for_systems_that_are_tuned_one_by_one(monkeypatch):
    train, calls = clusters(), []
    lay = halving._rounds

    def counted(*given):
        calls.append(given)
        return lay(*given)

    monkeypatch.setattr(halving, "_rounds", counted)
    knn, svd = us.recommend.UserKNN(), us.recommend.PureSVD()
    first = tuned({"knn": knn}, train, seed=1)
    tuned({"svd": svd}, train, seed=1)
    assert len(calls) == 1
    tuned({"knn": knn}, train, seed=2)
    again = tuned({"knn": knn}, train, seed=1)
    assert len(calls) == 3
    assert again["knn"].trials.equals(first["knn"].trials)


def test_users_of_an_earlier_round_are_in_the_later_one():
    few, many = (halving._drawn_users(500, size, 3) for size in (50, 200))
    assert (few.sum(), many.sum()) == (50, 200)
    assert (few <= many).all()
    assert (halving._drawn_users(500, 50, 4) != few).any()


# What cannot be tried


def test_a_setting_that_cannot_be_trained_is_noted():
    result = tuned({"blend": Blend()}, clusters())["blend"]
    rows = {row["settings"]: row for row in result.trials.to_dicts()}
    assert rows["noise=1.0"]["value"] is None
    assert rows["noise=1.0"]["reason"] == "noise 1 is refused"
    assert rows["noise=0.0"]["reason"] == ""
    assert result.settings["noise"] in (0.0, 5.0)
    with pytest.raises(us.DataError, match="mine: none of 3 settings can be trained; the first: n"):
        tuned({"mine": Blend(fails=True)}, clusters())


def test_a_setting_that_its_own_limits_refuse_is_noted():
    class Wrong(us.recommend.UserKNN):
        tuning = {"k": (5, 0)}  # noqa: RUF012

    result = tuned({"x": Wrong(k=5)}, clusters())["x"]
    assert result.algorithm == Wrong(k=5)
    assert result.trials["reason"][1].startswith("k must be")


def test_without_liked_ratings_settings_stay_and_the_reason_is_given():
    train = clusters()
    low = replace(train, value=np.full(len(train), 2.0))
    result = tuned({"knn": us.recommend.UserKNN(k=9)}, low)["knn"]
    assert result.algorithm == us.recommend.UserKNN(k=9)
    assert result.is_default
    assert (result.tried, result.trials.height, result.edges) == (0, 0, ())
    assert math.isnan(result.value)
    assert result.reason == "no validation rating is liked: the settings given are kept"


@pytest.mark.parametrize("rows", [0, 1, 2])
def test_too_few_ratings_keep_the_settings(rows):
    train = clusters().take(np.arange(rows))
    result = tuned({"knn": us.recommend.UserKNN()}, train)["knn"]
    assert result.is_default
    assert "too few" in result.reason


# Nothing of the test part


@dataclass(frozen=True)
class Memory(us.recommend.Algorithm):
    """Popularity, or by heart the pairs that it was given."""

    by_heart: bool = False
    pairs: tuple[tuple[int, int], ...] = field(default=(), repr=False)
    tuning = {"by_heart": (False, True)}  # noqa: RUF012

    def learn(self, train, rng):
        counts = np.bincount(train.item, minlength=len(train.items))
        table = np.tile(counts.astype(float), (len(train.users), 1))
        if self.by_heart:
            user = train.users.codes([u for u, _ in self.pairs])
            item = train.items.codes([i for _, i in self.pairs])
            table = 0.0 * table - np.arange(len(train.items))[::-1]
            known = (user >= 0) & (item >= 0)
            table[user[known], item[known]] = 1e6
        return table


def raw_pairs(ratings):
    frame = ratings.to_polars()
    return tuple(zip(frame["user"].to_list(), frame["item"].to_list(), strict=True))


def test_a_planted_leak_of_the_test_part_is_not_preferred():
    (split,) = us.splits.Random(test=0.2).split(clusters(), seed=1)
    liked = split.test.take(split.test.value >= 4)
    leak = Memory(pairs=raw_pairs(liked))
    lists = us.targets.AllItems().lists(split, LIKED)
    both = {one: replace(leak, by_heart=one).fit(split.train) for one in (False, True)}
    test = us.evaluate(lists, {str(one): model for one, model in both.items()}, "P@5").means()
    assert test["True"]["P@5"] > 2 * test["False"]["P@5"], "the leak would win on the test part"
    result = tuned({"x": leak}, split.train, seed=1)["x"]
    assert not result.algorithm.by_heart
    values = result.trials["value"]
    assert values[1] < values[0]


def test_a_leak_of_the_validation_part_would_be_seen():
    """The check above can fail: who knows the validation part does win."""
    train = clusters()
    leak = Memory(pairs=raw_pairs(train.take(train.value >= 4)))
    assert tuned({"x": leak}, train, seed=1)["x"].algorithm.by_heart


def test_the_choice_is_the_same_bits_whatever_the_test_part_is():
    data = clusters()
    (split,) = us.splits.Random(test=0.2).split(data, seed=1)
    frame, test = split.train.to_polars(), split.test.to_polars()
    others = {
        "other opinions": test.with_columns(rating=7 - pl.col("rating")),
        "fewer": test.head(10),
        "new users and items before all others": pl.DataFrame(
            {"user": [1, 2, 99], "item": [1, 2, 3], "rating": [5.0, 5.0, 1.0]}
        ),
    }
    systems = {
        "wrmf": us.recommend.WRMF(factors=3),
        "bpr": us.recommend.BPRMF(factors=4, epochs=3),
        "knn": us.recommend.UserKNN(),
    }
    expected = tuned(systems, split.train, seed=1)
    for name, other in others.items():
        whole = us.read_ratings(pl.concat([frame, other], how="vertical_relaxed"))
        keys = whole.to_polars().select("user", "item")
        mark = keys.join(frame, on=["user", "item"], how="left", maintain_order="left")
        train = whole.take(mark["rating"].is_not_null().to_numpy())
        result = tuned(systems, train, seed=1)
        for key, one in result.items():
            assert one.trials.equals(expected[key].trials), name
            assert one.algorithm == expected[key].algorithm


# Grids


@pytest.mark.parametrize("name", EVERYONE)
def test_every_personalised_algorithm_declares_a_grid(name):
    if name in UNTUNED:
        assert algorithm_class(name).tuning == ()
        return
    system = algorithm_class(name)()
    grid = candidates(system)
    assert len(grid) == 6, "the default is one of the declared settings"
    assert grid[0] == {key: getattr(system, key) for key in grid[0]}
    built = [replace(system, **settings) for settings in grid]
    assert len(set(built)) == 6
    assert built[0] == system


def test_settings_that_differ_from_the_defaults_are_tried_first():
    grid = candidates(us.recommend.WRMF(factors=7, alpha=3.0), 6)
    assert grid[0] == {"factors": 7, "regularisation": 20.0}
    assert len(grid) == 6
    assert candidates(us.recommend.PureSVD(factors=4))[0] == {"factors": 4}
    assert [one["k"] for one in candidates(us.recommend.UserKNN(k=7), 4)] == [7, 10, 50, None]
    assert [one["k"] for one in candidates(us.recommend.UserKNN(), 3)] == [100, 10, None]
    assert [one["k"] for one in candidates(us.recommend.UserKNN(), 2)] == [100, 10]
    result = tuned({"x": us.recommend.PureSVD(factors=3)}, clusters(), budget=3)["x"]
    assert result.trials["settings"].to_list() == ["factors=3", "factors=1", "factors=30"]


def test_a_grid_changes_no_seed_and_no_card():
    class Tuned(us.recommend.PureSVD):
        tuning = {"factors": (1, 5)}  # noqa: RUF012

    assert Tuned().draw_key == us.recommend.PureSVD().draw_key
    assert Tuned().describe() == us.recommend.PureSVD().describe()


@pytest.mark.parametrize(
    ("tuning", "says"),
    [
        ({"factor": (1, 2)}, "puresvd has no setting 'factor'; it has: factors"),
        ({"factors": "12"}, "grid: give a list of values for factors, got '12'"),
        ({"factors": 3}, "grid: give a list of values for factors, got 3"),
        ({"factors": ()}, "grid: give a list of values"),
        ([3], "holds mappings"),
        ("factors", "a grid holds values by setting"),
    ],
)
def test_grids_that_cannot_be_used_are_refused(tuning, says):
    wrong = type("Wrong", (us.recommend.PureSVD,), {"tuning": tuning})
    with pytest.raises(us.SettingError, match=says):
        tuned({"x": wrong()}, clusters())


def test_edges():
    def of(system, chosen, *values, name="k"):
        return edges(system, {name: chosen}, [{name: value} for value in values])

    knn, svd, uir = us.recommend.UserKNN(), us.recommend.PureSVD(), us.recommend.UIRItem()
    assert of(knn, 10, 10, 20, 50) == ("k",)
    assert of(knn, 20, 10, 20, 50) == ()
    assert of(knn, 50, 10, 20, 50) == ("k",)
    assert of(knn, 50, 10, 20, 50, None) == (), "None, all of them, is beyond"
    assert of(knn, None, 10, 20, 50, None) == (), "beyond all there is nothing"
    assert of(svd, 1, 1, 2, 4, name="factors") == (), "nothing is below 1"
    assert of(svd, 4, 1, 2, 4, name="factors") == ("factors",)
    assert of(svd, 4, 4, 4, name="factors") == (), "only one value was tried"
    assert of(uir, 1.0, 0.5, 1.0, name="background") == (), "nothing is above 1"
    assert of(us.recommend.EASE(), 100.0, 100.0, 1e3, name="l2") == ("l2",)
    assert of(us.recommend.WRMF(), 0.0, 0.0, 1.0, name="alpha") == ()
    words = us.recommend.ItemKNN()
    assert of(words, "rated", "rated", "target", name="lists") == ()
