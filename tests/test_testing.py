"""Checks offered to users: they pass what keeps the contract, and say what does not."""

from dataclasses import dataclass, field
from types import SimpleNamespace

import numpy as np
import pytest

import unskew as us


@dataclass(frozen=True)
class Newest(us.recommend.Algorithm):
    """The items with the highest numbers first."""

    weight: float = 1.0

    def learn(self, train, rng):
        return self.weight * np.arange(len(train.items), dtype=np.float64)


@dataclass(frozen=True)
class HighTest(us.splits.Splitter):
    """High ratings test."""

    least: float = 5.0
    version = 1

    def make_splits(self, ratings, seed):
        high = ratings.value >= self.least
        return us.Split(ratings.take(~high), ratings.take(high))


def even_items_test(ratings, seed):
    even = ratings.item % 2 == 0
    return us.Split(ratings.take(~even), ratings.take(even))


def random_scores(train, rng):
    return rng.random((len(train.users), len(train.items)))


def test_what_keeps_the_contract():
    us.testing.check_algorithm(Newest(2.0))
    us.testing.check_algorithm(random_scores)
    us.testing.check_splitter(HighTest(4.0), draws=False)
    us.testing.check_splitter(even_items_test)


def test_a_declared_grid_is_checked():
    def newest(tuning):
        return type("Grid", (Newest,), {"tuning": tuning})(2.0)

    us.testing.check_algorithm(newest({"weight": (0.5, 1.0)}), odd_data=False)
    us.testing.check_algorithm(newest([{"weight": 0.5}]), odd_data=False)
    for tuning, says in (
        ({"weight": (2.0,)}, "no settings beside those it has"),
        ({"wait": (1.0,)}, "has no setting 'wait'"),
        ({"weight": ("much",)}, "cannot be trained: weight must be a number"),
    ):
        with pytest.raises(AssertionError, match=says):
            us.testing.check_algorithm(newest(tuning), odd_data=False)

    class Grows(Newest):
        tuning = {"weight": (1.0, 9.0)}  # noqa: RUF012

        def learn(self, train, rng):
            return np.full(len(train.items), np.inf if self.weight == 9.0 else 1.0)

    with pytest.raises(AssertionError, match="gives infinite scores"):
        us.testing.check_algorithm(Grows(), odd_data=False)


def test_names_follow_from_the_class():
    assert Newest.name == "Newest"
    assert Newest().describe() == {"algorithm": "Newest", "weight": 1.0}
    assert HighTest().describe() == {"protocol": "HighTest", "least": 5.0, "version": 1}
    assert type("Next", (Newest,), {}).name == "Next"
    assert type("Same", (us.recommend.Popularity,), {}).name == "popularity"
    assert [one.label for one in HighTest().split(some_ratings())] == ["HighTest"]


def test_settings_are_checked_by_their_types():
    with pytest.raises(us.SettingError, match="weight must be a number, got 'much'"):
        Newest("much")


def some_ratings():
    return us.world("shop", users=40, items=30, seed=1).ratings


def test_they_run_in_plans_and_are_stored_by_version(tmp_path):
    plan = us.Plan(
        split=[HighTest(4.0), even_items_test],
        targets=us.targets.Targets(candidates=rated_twice, strata=halves),
        algorithms=[Newest(), us.experiment.Custom("mine", random_scores, 1), random_scores],
        metrics=("P@5",),
    )
    results = us.run_plan(some_ratings(), plan, store=tmp_path)
    assert results.table().height > 0
    assert set(plan.systems) == {"Newest", "mine", "random_scores"}
    assert results.table().equals(us.run_plan(some_ratings(), plan, workers=2).table())


def rated_twice(split):
    return np.bincount(split.train.item, minlength=len(split.train.items)) >= 2


def halves(split):
    return np.arange(len(split.train.items)) % 2


def test_candidates_and_strata_by_function():
    (split,) = us.splits.Random().split(some_ratings(), 1)
    lists = us.targets.Targets(candidates=rated_twice).lists(split, liked=4)
    assert lists.candidates.tolist() == rated_twice(split).tolist()
    raw = split.train.items.raw(np.flatnonzero(rated_twice(split)).astype(np.int32)).to_list()
    same = us.targets.Targets(candidates=lambda split: raw).lists(split, liked=4)
    assert same.to_polars().equals(lists.to_polars())
    within = us.targets.OneRelevant(others=3, strata=halves).lists(split, liked=4)
    _, item = within.block(0, len(within))
    assert (item % 2 == np.repeat(within.anchor % 2, within.size)).all()
    with pytest.raises(us.DataError, match="a whole number from 0 up for each of the"):
        us.targets.Targets(strata=lambda split: [0, 1]).lists(split, liked=4)


@dataclass(frozen=True)
class Bad(us.recommend.Algorithm):
    """What breaks the contract, one way or another."""

    kind: str = ""
    more: object = field(default=None)

    def learn(self, train, rng):
        shape = len(train.users), len(train.items)
        return {
            "shape": lambda users: np.zeros((users.size, 1)),
            "infinite": np.full(shape, np.inf),
            "chance": lambda users: np.random.default_rng().random((users.size, shape[1])),
            "cold": np.zeros(shape),
        }[self.kind]


@pytest.mark.parametrize(
    ("kind", "message"),
    [
        ("shape", "scores of shape"),
        ("infinite", "infinite scores"),
        ("chance", "gives other scores when asked again"),
        ("cold", "scores users without ratings"),
    ],
)
def test_bad_algorithms(kind, message):
    with pytest.raises(AssertionError, match=message):
        us.testing.check_algorithm(Bad(kind), cold_is_nan=True)


def test_settings_that_no_card_can_hold():
    with pytest.raises(AssertionError, match="no card can hold its settings"):
        us.testing.check_algorithm(Bad("cold", {1, 2}))


def by_clock(ratings, seed):
    test = np.random.default_rng().random(len(ratings)) < 0.5
    return us.Split(ratings.take(~test), ratings.take(test))


def both(ratings, seed):
    return us.Split(ratings, ratings.take(ratings.value > 3))


def other_ids(ratings, seed):
    return us.Split(ratings, us.read_ratings({"user": [1], "item": [1]}))


def by_row(ratings, seed):
    test = draw_rows(len(ratings), seed)
    return us.Split(ratings.take(~test), ratings.take(test))


def draw_rows(many, seed):
    return np.random.default_rng(seed).random(many) < 0.5


@pytest.mark.parametrize(
    ("function", "problem", "message"),
    [
        (by_clock, AssertionError, "the same seed gives other rows"),
        (both, AssertionError, "a pair is in both parts"),
        (other_ids, us.DataError, "different ids"),
        (lambda ratings, seed: ratings, us.SettingError, "must give us.Split"),
        (lambda ratings, seed: [], AssertionError, "makes no split"),
        (
            lambda ratings, seed: us.Split(ratings, ratings.take(ratings.user < 0)),
            us.DataError,
            "test part is empty",
        ),
    ],
)
def test_bad_splits(function, problem, message):
    with pytest.raises(problem, match=message):
        us.testing.check_splitter(function)


def test_seeds():
    us.testing.check_splitter(by_row, draws=True)
    with pytest.raises(AssertionError, match="another seed gives other rows"):
        us.testing.check_splitter(by_row, draws=False)
    with pytest.raises(AssertionError, match="another seed gives the same rows"):
        us.testing.check_splitter(even_items_test, draws=True)


# Gates


def gate_of(better):
    """Return the gate of a candidate that puts the liked item first, or last."""
    users = range(60)
    test = {"user": list(users) * 2, "item": [0] * 60 + [1] * 60, "rating": [5] * 60 + [1] * 60}
    first, last = {u: [0, 2 + u % 9, 1] for u in users}, {u: [1, 2 + u % 9, 0] for u in users}
    runs = {"new": first if better else last, "old": last if better else first}
    return us.gate(us.judge(test, runs, liked=4), candidate="new", production="old", metric="RR@3")


def test_assert_gate_shows_the_verdict():
    gate = gate_of(better=False)
    assert gate.verdict == "hold"
    with pytest.raises(AssertionError) as caught:
        us.testing.assert_gate(gate)
    assert str(caught.value) == f"the verdict is 'hold', not 'promote'\n\n{gate}"
    us.testing.assert_gate(gate, allowed="hold")
    us.testing.assert_gate(gate, allowed=["promote", "hold"])


def test_assert_gate_passes_what_may_replace_production():
    gate = gate_of(better=True)
    us.testing.assert_gate(gate, allowed=[gate.verdict])
    assert gate.verdict != "hold"


@pytest.mark.parametrize(
    ("settings", "says"),
    [
        ({"result": 5}, "result must be what us.gate gives, got int"),
        ({"allowed": "promoted"}, "unknown verdict 'promoted'. Did you mean 'promote'?"),
        ({"allowed": []}, "allowed is empty: name one or more of promote, hold, not settled"),
        ({"allowed": 3}, "allowed must be text or a list of names, got 3"),
    ],
)
def test_assert_gate_refuses_what_is_no_gate(settings, says):
    good = SimpleNamespace(verdict="promote")
    with pytest.raises(us.SettingError) as caught:
        us.testing.assert_gate(**{"result": good, **settings})
    assert says in str(caught.value)
