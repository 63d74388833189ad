"""The core of an audit: every system once per split, under every design."""

import os
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import pytest

import unskew as us
from unskew.auditing.core.core import run_core
from unskew.auditing.designs import LEVELS, designs_of_level, plan_of_level
from unskew.data.formats.catalog import load
from unskew.engine.executor import Executor
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


@pytest.mark.slow
def test_workers_do_not_change_a_bit(core, shop):
    other = core_of(shop.ratings, ["all-items", "test-items", "1r", "u1r"], executor=Executor(2))
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


# Designs that count


def test_designs_with_the_same_numbers_count_once():
    dense = everyone_rates()
    core = core_of(dense, ["all-items", "test-items", "skew"], metrics=["P@1"])
    left = core.left_out["test-items"]
    one, two = core.scores["all-items"], left.scores
    assert all(
        np.array_equal(a.values(name, "P@1"), b.values(name, "P@1"))
        for a, b in zip(one, two, strict=True)
        for name in core.systems
    )
    assert (left.reason, left.same_as) == ("identical", "all-items")
    assert "all-items" in left.why
    assert list(core.designs) == list(core.scores) == list(core.warm) == ["all-items", "skew"]


def everyone_rates():
    """Return ratings of which every item and every user has many."""
    rng = np.random.default_rng(2)
    user = np.repeat(np.arange(40), 30)
    item = np.concatenate([rng.choice(60, 30, replace=False) for _ in range(40)])
    return us.read_ratings({"user": user, "item": item, "rating": rng.integers(1, 6, user.size)})


def test_one_list_apart_is_another_design(core):
    from dataclasses import replace

    from unskew.auditing.designs import left_out_designs

    part = core.scores["all-items"][0]
    name = core.systems[-1]
    system = part.systems[name]
    values = system.values.copy()
    values[0, np.flatnonzero(part.lists["test"].to_numpy())[0]] += 0.1
    other = replace(part, systems={**part.systems, name: replace(system, values=values)})
    assert list(left_out_designs({"a": (part,), "b": (part,)}, "P@10", 10)) == ["b"]
    assert not left_out_designs({"a": (part,), "b": (other,)}, "P@10", 10)
    # Another number of splits is another design, too.
    assert not left_out_designs({"a": (part,), "b": (part, part)}, "P@10", 10)


def test_bins_of_as_many_items_as_the_cutoff_tell_nothing():
    small = us.world("shop", users=150, items=100, seed=3)
    core = core_of(small.ratings, ["all-items", "p1r"])
    assert core.left_out["p1r"].reason == "degenerate"
    assert "at most 10 targets" in core.left_out["p1r"].why
    assert list(core.designs) == ["all-items"]
    large = us.world("shop", users=150, items=300, seed=3)
    assert "p1r" in core_of(large.ratings, ["all-items", "p1r"]).designs
    # A cutoff within the bins tells systems apart.
    assert "p1r" in core_of(small.ratings, ["all-items", "p1r"], metrics=["P@1"]).designs


def test_the_common_design_stays_even_if_it_tells_nothing():
    small = us.world("shop", users=150, items=100, seed=3)
    assert list(core_of(small.ratings, ["p1r"]).designs) == ["p1r"]
    both = core_of(small.ratings, ["p1r", "all-items"])
    assert list(both.designs) == ["all-items"]


def test_a_design_whose_systems_all_score_chance_is_left_out(shop):
    from unskew.auditing.designs import left_out_designs

    part = core_of(shop.ratings, systems=["random", "popularity"]).scores["all-items"][0]
    chance = dict.fromkeys(part.systems, part.chance)
    from dataclasses import replace

    flat = replace(part, systems=chance)
    left = left_out_designs({"a": (part,), "b": (flat,)}, "P@10", 10)
    assert left["b"].reason == "degenerate"
    assert "random order" in left["b"].why


# Warm and cold users


def with_newcomers(users=60, items=40, cold=8):
    """Return ratings where the last users come after the cut: they have no training rating."""
    rng = np.random.default_rng(4)
    rows = []
    for user in range(users):
        for item in rng.choice(items, 12, replace=False, p=falling(items)):
            late = user >= users - cold
            time = int(rng.integers(10**6)) + 10**6 * late
            rows.append((user, int(item), int(rng.integers(1, 6)), time))
    user, item, rating, time = zip(*rows, strict=True)
    return us.read_ratings({"user": user, "item": item, "rating": rating, "time": time})


def falling(items):
    weight = 1 / np.arange(1, items + 1)
    return weight / weight.sum()


def test_cold_users_are_recommended_what_is_popular():
    ratings = with_newcomers()
    core = core_of(ratings, ["temporal"], systems=["popularity", "user-knn", "puresvd", "random"])
    (split,) = [one.split for one in core.lists]
    cold = np.flatnonzero((np.diff(split.train.start) == 0) & (np.diff(split.test.start) > 0))
    assert cold.size == 8
    runs = core.lists[0].runs
    for user in cold:
        raw = ratings.users.values[int(user)]
        lists = {}
        for name, run in runs.items():
            row = run.users.values.to_list().index(raw)
            lists[name] = run.item[run.start[row] : run.start[row + 1]].tolist()
        assert lists["user-knn"] == lists["popularity"] == lists["puresvd"]
        assert lists["random"] != lists["popularity"]


def test_warm_and_cold_users_are_apart():
    core = core_of(with_newcomers(), ["temporal"], systems=["popularity", "user-knn"])
    (part,), (warm,) = core.scores["temporal"], core.warm["temporal"]
    assert np.array_equal(warm, part.lists["train"].to_numpy() > 0)
    table = core.cold_table
    row = table.filter(system="user-knn").row(0, named=True)
    tested = part.lists["test"].to_numpy() > 0
    assert row["users"] == tested.sum()
    assert row["cold"] == (tested & ~warm).sum() == 8
    values = part.values("user-knn", "P@10")
    assert row["on_warm"] == pytest.approx(values[tested & warm].mean())
    assert row["on_cold"] == pytest.approx(values[tested & ~warm].mean())
    compared = core.warm_scores["temporal"][0]
    assert compared.mean("P@10")["user-knn"] == pytest.approx(row["on_warm"])
    # To cold users both recommend the same.
    assert table["on_cold"].n_unique() == 1


def test_without_cold_users_nothing_is_taken_out():
    core = core_of(everyone_rates(), systems=["random", "popularity"])
    assert not core.has_cold
    assert core.warm_scores["all-items"][0] is core.scores["all-items"][0]
    assert core.cold_table["on_cold"].null_count() == 2


def test_a_model_that_tells_users_apart_without_ratings_is_left_alone():
    from unskew.auditing.cold_users import with_fallback

    train = us.read_ratings({"user": [1, 1, 3], "item": [7, 8, 8], "rating": [5, 4, 3]})
    ids = us.read_ratings({"user": [1, 1, 2, 3], "item": [7, 8, 8, 9]})
    train = ids.take(np.array([True, True, False, True]))

    class Model:
        def score(self, users):
            return np.array([[1.0, 2, 3], [np.nan, 5, 5], [3, 2, 1]])[users]

    tile = with_fallback(Model(), train).score(np.arange(3, dtype=np.int32))
    assert tile[[0, 2]].tolist() == [[1, 2, 3], [3, 2, 1]]
    assert tile[1].tolist() == [1, 1, 1]  # user 2 has no rating left: ratings of each item

    class Ordered(Model):
        def score(self, users):
            return np.tile([1.0, 2, 3], (users.size, 1))

    tile = with_fallback(Ordered(), train).score(np.arange(3, dtype=np.int32))
    assert tile[1].tolist() == [1, 2, 3]


@pytest.mark.skipif("UNSKEW_DATA" not in os.environ, reason="needs UNSKEW_DATA")
def test_temporal_movielens_has_109_warm_users():
    ratings = load("ml-100k").ratings
    core = core_of(ratings, ["temporal"], systems=["popularity", "user-knn"])
    row = core.cold_table.row(0, named=True)
    assert (row["users"], row["cold"]) == (301, 192)
    on_warm = dict(core.cold_table.select("system", "on_warm").iter_rows())
    assert on_warm["user-knn"] > on_warm["popularity"]
    assert on_warm["popularity"] == pytest.approx(0.097, abs=0.001)


# Implicit feedback


EVENTS = {
    "all ones": {"rating": lambda rng, n: np.ones(n)},
    "no values": {},
    "plays": {"plays": lambda rng, n: np.minimum(rng.zipf(1.7, n), 5000)},
    "a log": {"time": lambda rng, n: rng.integers(0, 10**9, n)},
    "a constant": {"rating": lambda rng, n: np.full(n, 3)},
}


def events(kind):
    rng = np.random.default_rng(7)
    user = np.repeat(np.arange(50), 15)
    item = np.concatenate([rng.choice(80, 15, replace=False) for _ in range(50)])
    columns = {name: make(rng, user.size) for name, make in EVENTS[kind].items()}
    return {"user": user, "item": item, **columns}


@pytest.mark.parametrize("kind", EVENTS)
def test_implicit_feedback_is_recognised(kind, tmp_path):
    import polars as pl

    pl.DataFrame(events(kind)).write_csv(tmp_path / "events.csv")
    made = us.audit(
        tmp_path / "events.csv",
        "quick",
        algorithms=["random", "popularity", "user-knn"],
        designs=["all-items", "test-items"],
        repeats=2,
        permutations=200,
    )
    assert made.core.implicit
    assert made.relevance.gain == "binary"
    assert made.relevance.is_liked(us.read_ratings(tmp_path / "events.csv").value).all()
    assert not any("anti-" in name for name in made.scores["all-items"][0].order)
    assert (made.null, made.margins, made.bias) == (None, None, None)
    assert [name for name, why in made.skipped.items() if "dislike" in why] == ["dislikes"]
    (note,) = [text for text in made.assumed if "implicit feedback" in text]
    assert "Liked means that the pair occurs" in note
    assert made.document().to_markdown()


def test_play_counts_are_gains_only_where_the_user_says_so():
    plays = events("plays")
    how = {"algorithms": ["random", "popularity"], "designs": ["all-items"]}
    how |= {"repeats": 2, "permutations": 200}
    stated = us.audit(plays, "quick", gain="rating", **how)
    assert stated.core.implicit
    assert stated.relevance.gain == "rating"
    from_five = us.audit(plays, "quick", liked=5, **how)
    assert not from_five.core.implicit
    assert "dislikes" not in from_five.skipped


@pytest.mark.parametrize("values", [np.arange(1, 11), np.arange(0, 101), np.arange(1, 101)])
def test_scales_are_not_taken_for_counts(values):
    rng = np.random.default_rng(3)
    user = np.repeat(np.arange(30), 10)
    data = {"user": user, "item": np.tile(np.arange(10), 30), "rating": rng.choice(values, 300)}
    with pytest.raises(us.errors.SettingError, match="what counts as liked"):
        us.audit(data, "quick")


# Settings


def test_settings_are_chosen_on_the_training_part_of_each_split(shop):
    core = core_of(shop.ratings, ["all-items", "u1r"], systems=["popularity", "puresvd"], tune=True)
    assert [list(split) for split in core.tuned] == [["puresvd"]] * 3
    for split, lists, seed in zip(core.tuned, core.lists, core.seeds, strict=True):
        alone = us.experiment.tune_systems(
            {"puresvd": us.recommend.PureSVD()},
            lists.split.train,
            us.Relevance(liked=4),
            "P@10",
            seed=seed,
        )["puresvd"]
        assert split["puresvd"].settings == alone.settings
        assert split["puresvd"].algorithm == alone.algorithm
        assert split["puresvd"].tried == 6
        assert split["puresvd"].trials.equals(alone.trials)
    assert core.tuned_by_design["all-items"][0]["puresvd"].settings == (
        core.tuned[0]["puresvd"].settings
    )


def test_tuned_systems_are_trained_with_what_was_chosen(shop):
    """The least popular items first is what it came with; the most popular ones are better."""
    core = core_of(shop.ratings, systems=["popularity", Shifted(power=-1.0)], tune=True)
    label = core.systems[1]
    assert [split[label].settings for split in core.tuned] == [{"power": 1.0}] * 3
    assert not any(split[label].is_default for split in core.tuned)
    for one, part in zip(core.lists, core.scores["all-items"], strict=True):
        assert np.array_equal(one.runs[label].item, one.runs["popularity"].item)
        assert part.mean("P@10")[label] == part.mean("P@10")["popularity"]
    plain = core_of(shop.ratings, systems=["popularity", Shifted(power=-1.0)])
    assert plain.scores["all-items"][0].mean("P@10")[label] < 0.02


def test_the_test_part_has_no_say_in_settings(shop):
    """Opinions of the test part are turned round: the same settings are chosen."""
    from dataclasses import replace

    ratings = shop.ratings
    (split,) = us.splits.Random(test=0.2).split(ratings, 0)
    tested = {(u, i) for u, i in zip(split.test.user, split.test.item, strict=True)}
    held = np.array([pair in tested for pair in zip(ratings.user, ratings.item, strict=True)])
    turned = ratings.value.copy()
    turned[held] = 6 - turned[held]
    turned.flags.writeable = False
    other = replace(ratings, value=turned)
    systems = ["user-knn", "puresvd", "wrmf"]
    one, two = (core_of(data, systems=systems, tune=True) for data in (ratings, other))
    assert not np.array_equal(one.lists[0].split.test.value, two.lists[0].split.test.value)
    for name in systems:
        assert one.tuned[0][name].settings == two.tuned[0][name].settings
        assert one.tuned[0][name].trials.equals(two.tuned[0][name].trials)
    # What trains another split did change.
    assert any(
        not one.tuned[at][name].trials.equals(two.tuned[at][name].trials)
        for at in (1, 2)
        for name in systems
    )


def test_choices_are_taken_from_the_store(shop, tmp_path, monkeypatch):
    from unskew.auditing.core import tasks

    store = Store.open(tmp_path / "store")
    how = {"systems": ["popularity", "puresvd"], "tune": True, "store": store}
    first = core_of(shop.ratings, **how)

    def never(*_, **__):
        raise AssertionError("tuned again")

    monkeypatch.setattr(tasks, "tune_systems", never)
    again = core_of(shop.ratings, **how)
    assert same(values(first), values(again))
    for one, two in zip(first.tuned, again.tuned, strict=True):
        assert one["puresvd"].algorithm == two["puresvd"].algorithm
        assert one["puresvd"].edges == two["puresvd"].edges
        assert one["puresvd"].trials.equals(two["puresvd"].trials)
    # Without tuning other results are there, under keys of their own.
    assert core_of(shop.ratings, **{**how, "tune": False}).tuned == ()


@dataclass(frozen=True)
class Shifted(us.recommend.Algorithm):
    """Popularity of items, from one on; it declares a grid."""

    power: float = 1.0
    version = 1
    tuning: ClassVar = {"power": (1.0, -1.0)}

    def learn(self, train, rng):
        return self.power * np.bincount(train.item, minlength=len(train.items)).astype(float)


def test_whose_settings_are_chosen(shop):
    how = {"designs": ["all-items"], "repeats": 2, "permutations": 200}

    def tuned(algorithms, **more):
        core = us.audit(shop, "quick", algorithms=algorithms, **how, **more).core
        return set(core.tuned[0]) if core.tuned else set()

    assert tuned(["popularity", "puresvd"]) == {"puresvd"}
    assert tuned(["popularity", "puresvd"], tune=False) == set()
    assert tuned(["popularity", us.recommend.PureSVD()]) == set()
    assert tuned({"mine": us.recommend.PureSVD(), "yours": Shifted(-1.0)}) == {"yours"}


def test_an_audit_states_what_was_chosen(shop):
    made = us.audit(
        shop,
        "quick",
        algorithms=["popularity", "puresvd"],
        designs=["all-items", "u1r"],
        repeats=2,
        permutations=200,
    )
    assert set(made.card["tuned"]) == {"all-items", "u1r"}
    first = made.core.tuned[0]["puresvd"]
    assert made.card["tuned"]["all-items"][0]["puresvd"]["settings"] == first.settings
    assert any(text.startswith("settings: chosen by P@10") for text in made.assumed)
    assert made.plans[0].systems["puresvd"] == first.algorithm
    assert "tune=False" not in made.command
    plain = us.audit(
        shop,
        "quick",
        algorithms=["popularity", "puresvd"],
        designs=["all-items"],
        repeats=2,
        permutations=200,
        tune=False,
    )
    assert plain.core.tuned == ()
    assert "tune=False" in plain.command
