"""The core of an audit: every system once per split, under every design."""

import numpy as np
import pytest

import unskew as us
from unskew.auditing.core import run_core
from unskew.auditing.designs import LEVELS, designs_of_level, plan_of_level
from unskew.engine.store import Store

QUICK = LEVELS["quick"]
SYSTEMS = ["random", "popularity", "user-knn"]


@pytest.fixture(scope="module")
def shop():
    return us.world("shop", users=150, items=130, seed=3)


def core_of(ratings, designs=("all-items",), systems=SYSTEMS, seed=0, **options):
    rule = us.Relevance(liked=4)
    plan = plan_of_level(QUICK, rule, list(systems), seed)
    options = {"metrics": ["P@10"], **options}
    return run_core(ratings, plan, designs_of_level(QUICK, list(designs)), **options)


def values(core):
    return {
        (design, at, system): part.values(system, core.metric)
        for design, parts in core.scores.items()
        for at, part in enumerate(parts)
        for system in core.systems
    }


def same(one, other):
    return one.keys() == other.keys() and all(np.array_equal(one[k], other[k]) for k in one)


@pytest.fixture(scope="module")
def core(shop):
    return core_of(shop.ratings, ["all-items", "test-items", "1r", "u1r"])


def test_every_random_design_has_the_splits_of_the_level(core):
    assert len(core.lists) == QUICK.splits == 3
    for parts in (*core.scores.values(), *(one.scores for one in core.left_out.values())):
        assert len(parts) == QUICK.splits


def test_repeated_splits_differ_and_are_hold_outs_of_a_fifth(core, shop):
    tests = [one.split.test for one in core.lists]
    for one in core.lists:
        assert len(one.split.train) + len(one.split.test) == len(shop.ratings)
        assert len(one.split.test) / len(shop.ratings) == pytest.approx(0.2, abs=0.03)
    pairs = [set(zip(part.user.tolist(), part.item.tolist(), strict=True)) for part in tests]
    # Not folds: independent draws share a fifth of a fifth of the pairs.
    assert len(pairs[0] & pairs[1]) / len(pairs[0]) == pytest.approx(0.2, abs=0.1)
    assert pairs[0] != pairs[2]


def test_the_same_seed_gives_the_same_bits_and_another_one_other_splits(core, shop):
    again = core_of(shop.ratings, ["all-items", "test-items", "1r", "u1r"])
    assert same(values(core), values(again))
    other = core_of(shop.ratings, seed=1)
    assert not set(other.seeds) & set(core.seeds)


def test_each_split_is_what_a_plan_with_its_seed_gives(core, shop):
    for at, seed in enumerate(core.seeds):
        plan = us.Plan(
            us.splits.Random(test=0.2),
            us.targets.AllItems(),
            [us.recommend.Popularity(), us.recommend.UserKNN()],
            us.Relevance(liked=4),
            ["P@10"],
            seed=seed,
        )
        plain = us.run_plan(shop.ratings, plan).scores()[0]
        for system in ("popularity", "user-knn"):
            warm = core.warm["all-items"][at]
            mine = core.scores["all-items"][at].values(system, "P@10")
            assert np.array_equal(mine[warm], plain.values(system, "P@10")[warm])


def test_lists_are_those_that_the_scores_judge(core):
    for number, one in enumerate(core.lists):
        for system, run in one.runs.items():
            judged = us.evaluate(
                one.split.test, {system: run}, ["P@10"], liked=4, train=one.split.train
            )
            whole = core.scores["all-items"][number]
            assert judged.mean("P@10")[system] == whole.mean("P@10")[system]


def test_workers_do_not_change_a_bit(core, shop):
    other = core_of(shop.ratings, ["all-items", "test-items", "1r", "u1r"], workers=2)
    assert same(values(core), values(other))
    for one, two in zip(core.lists, other.lists, strict=True):
        for system in core.systems:
            assert np.array_equal(one.runs[system].item, two.runs[system].item)


def test_a_store_is_taken_up_and_nothing_trained_anew(shop, tmp_path, monkeypatch):
    store = Store.open(tmp_path / "store")
    first = core_of(shop.ratings, ["all-items", "1r"], store=store)

    def never(*_):
        raise AssertionError("trained again")

    monkeypatch.setattr(us.recommend.UserKNN, "learn", never)
    again = core_of(shop.ratings, ["all-items", "1r"], store=store)
    assert same(values(first), values(again))
    with pytest.raises(us.errors.DataError, match="trained again"):
        core_of(shop.ratings, ["all-items", "1r"], store=store, seed=5)
