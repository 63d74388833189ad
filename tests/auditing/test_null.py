"""The null experiment: values redrawn, designs that need it."""

import json
import math
from dataclasses import replace

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

import unskew as us
from shared.commands import invoke
from shared.real_data import real_data
from unskew.auditing.null.null_designs import (
    DESIGNS,
    ForcedNull,
    Slices,
    published_designs,
    simple_systems,
)
from unskew.auditing.null.null_experiment import null_experiment
from unskew.engine.rng import draw, key_of
from unskew.stats.intervals.means import mean_interval as interval
from unskew.stats.intervals.means import values_needed
from unskew.worlds.nulls import NULLS, co_clusters, forced_judgments, redraw, uniform
from unskew.worlds.worlds import World, world


def some_ratings(users=30, items=20, seed=0, share=0.4):
    """Return ratings of which popular items have more."""
    rng = np.random.default_rng(seed)
    chance = share * 2 * (1 + np.arange(items)) ** -0.5
    user, item = np.nonzero(rng.random((users, items)) < chance)
    rating = rng.integers(1, 6, user.size)
    return us.read_ratings({"user": user, "item": item, "rating": rating})


def skewed(users=150, items=60, seed=0):
    """Return a world with popular items, for plans."""
    return world("shop", users=users, items=items, seed=seed)


# Values drawn anew


@pytest.mark.parametrize("null", NULLS)
def test_pairs_stay_and_rows_may_come_in_any_order(null):
    ratings = some_ratings()
    drawn = redraw(ratings, null, 7)
    assert drawn.user.tolist() == ratings.user.tolist()
    assert drawn.item.tolist() == ratings.item.tolist()
    assert set(drawn.value) <= set(ratings.value)
    mixed = us.read_ratings(ratings.to_polars().sample(fraction=1.0, shuffle=True, seed=3))
    assert redraw(mixed, null, 7).fingerprint == drawn.fingerprint
    assert redraw(ratings, null, 8).fingerprint != drawn.fingerprint


@given(st.integers(0, 10_000), st.sampled_from(["within-user", "within-item"]))
def test_shuffles_equal_a_plain_twin(seed, null):
    ratings = some_ratings(8, 6, seed)
    drawn = redraw(ratings, null, seed)
    group = ratings.user if null == "within-user" else ratings.item
    key = (draw(seed, f"nulls/{null}", ratings.user, ratings.item) >> np.uint64(1)).tolist()
    for one in set(group.tolist()):
        rows = [row for row in range(len(ratings)) if group[row] == one]
        taken = sorted(rows, key=lambda row: key[row])
        assert [drawn.value[row] for row in rows] == [ratings.value[row] for row in taken]
        assert sorted(drawn.value[rows]) == sorted(ratings.value[rows])


def test_clusters_keep_the_values_of_each_cell():
    ratings = some_ratings(40, 30, 1)
    users, items = co_clusters(ratings, 2)
    drawn = redraw(ratings, "clusters", 5)
    cell = users[ratings.user] * 4 + items[ratings.item]
    for one in np.unique(cell):
        assert sorted(drawn.value[cell == one]) == sorted(ratings.value[cell == one])
    assert (drawn.value != ratings.value).any()


def test_clusters_are_those_that_were_planted():
    rng = np.random.default_rng(0)
    mine, theirs = rng.integers(0, 2, 60), rng.integers(0, 2, 50)
    user, item = np.nonzero(rng.random((60, 50)) < 0.5)
    rating = np.where(mine[user] == theirs[item], 4, 2) + rng.integers(0, 2, user.size)
    users, items = co_clusters(us.read_ratings({"user": user, "item": item, "rating": rating}), 1)
    for found, real in ((users, mine), (items, theirs)):
        assert abs(np.mean(found == real) - 0.5) == 0.5  # the same, or each other's name


def test_iid_values_come_from_the_data_or_with_a_given_share():
    ratings = some_ratings(400, 50, 2)
    n = len(ratings)
    plain = redraw(ratings, "iid", 1)
    p = (ratings.value >= 4).mean()
    assert abs((plain.value >= 4).mean() - p) < 4.5 * math.sqrt(p * (1 - p) / n)
    given_share = redraw(ratings, "iid", 1, liked=4, share=0.9)
    assert abs((given_share.value >= 4).mean() - 0.9) < 4.5 * math.sqrt(0.09 / n)
    low = ratings.value < 4
    drawn_low = given_share.value[given_share.value < 4]
    for value in (1.0, 2.0, 3.0):
        share = (ratings.value[low] == value).mean()
        spread = math.sqrt(share * (1 - share) / drawn_low.size)
        assert abs((drawn_low == value).mean() - share) < 4.5 * spread
    assert abs(np.corrcoef(plain.value, ratings.value)[0, 1]) < 4.5 / math.sqrt(n)


@pytest.mark.parametrize(
    ("settings", "told"),
    [
        ({"null": "iidd"}, "iid"),
        ({"share": 0.5}, "liked=4"),
        ({"liked": 4}, "share"),
        ({"liked": 4, "share": 1.5}, "between 0 and 1"),
        ({"liked": 9, "share": 0.5}, "at least liked=9"),
        ({"liked": 0, "share": 0.5}, "below liked=0"),
        ({"null": "within-user", "share": 0.5}, "for null='iid'"),
        ({"directions": 3}, "clusters"),
        ({"null": "clusters", "directions": 0}, "from 1 to 8"),
    ],
)
def test_what_redraw_refuses(settings, told):
    with pytest.raises(us.UnskewError, match=told):
        redraw(some_ratings(), **settings)


def test_nothing_cannot_be_redrawn():
    ratings = some_ratings()
    with pytest.raises(us.DataError, match="no ratings"):
        redraw(ratings.take(ratings.user < 0))


# Forced judgments and slices


def test_forced_judgments_equal_a_plain_twin():
    ratings, seed, density = some_ratings(12, 9, 3), 11, 0.5
    found = forced_judgments(ratings, density, seed)

    def number(stage, u, i):
        return uniform(draw(seed, stage, u, i) >> np.uint64(1))[0]

    own = {(u, i): v for u, i, v in zip(ratings.user, ratings.item, ratings.value, strict=True)}
    train = {pair for pair in own if number("nulls/forced/train", *pair) < density}
    known, rows = np.sort(ratings.value), []
    for u in range(len(ratings.users)):
        for i in range(len(ratings.items)):
            share = sum(item == i for _, item in train) / len(ratings.users)
            tested = number("nulls/forced/test", u, i) < (density - share) / (1 - share)
            if (u, i) not in train and not tested:
                continue
            new = known[int(number("nulls/forced/value", u, i) * known.size)]
            rows.append((u, i, own.get((u, i), new), (u, i) in train))
    table = zip(found.user, found.item, found.value, found.tags["familiar"], strict=True)
    assert [tuple(row) for row in table] == rows


def test_forced_judgments_are_as_dense_for_every_item():
    ratings = some_ratings(3_000, 12, 5)
    found = forced_judgments(ratings, 0.5, 1)
    density = np.bincount(found.item, minlength=12) / 3_000
    assert (np.abs(density - 0.5) < 4.5 * 0.5 / math.sqrt(3_000)).all()
    with pytest.raises(us.SettingError, match="density"):
        forced_judgments(ratings, 1.0)


def test_a_forced_split_trains_on_familiar_pairs_and_tests_on_liked_others():
    ratings = redraw(some_ratings(200, 30), "iid", 2)
    raw = ForcedNull(fair=False).split(ratings, 3)[0]
    fair = ForcedNull().split(ratings, 3)[0]
    assert raw.train.fingerprint == fair.train.fingerprint
    assert (fair.test.value >= 4).all()
    pairs = {(u, i) for u, i in zip(raw.test.user, raw.test.item, strict=True)}
    assert {(u, i) for u, i in zip(fair.test.user, fair.test.item, strict=True)} < pairs
    assert fair.label == "forced-null"
    assert fair.design == {
        "protocol": "forced-null",
        "density": 0.5,
        "liked": 4.0,
        "fair": True,
        "seed": 3,
    }


@pytest.mark.parametrize("by", ["items", "judgments"])
def test_slices_train_and_test_on_their_own_items(by):
    ratings = some_ratings(60, 40)
    whole = us.splits.Random(test=0.3).split(ratings, 4)[0]
    parts = Slices(us.splits.Random(test=0.3), 4, by).split(ratings, 4)
    seen = [set(part.train.item) | set(part.test.item) for part in parts]
    for place, one in enumerate(seen):
        assert all(one.isdisjoint(other) for other in seen[:place])
    assert sum(len(part.train) for part in parts) == len(whole.train)
    assert sum(len(part.test) for part in parts) == len(whole.test)
    assert [part.facts["stratum"] for part in parts] == [0, 1, 2, 3]


def test_what_designs_refuse():
    with pytest.raises(us.SettingError, match="split_by"):
        Slices("random")
    with pytest.raises(us.UnknownName, match="judgments"):
        Slices(by="judgment")
    with pytest.raises(us.UnskewError, match="density"):
        ForcedNull(density=0)
    with pytest.raises(us.UnknownName, match="forced"):
        published_designs(designs=["force"])
    with pytest.raises(us.SettingError, match="at least one"):
        published_designs(designs=[])


def test_designs_of_castells2018():
    plans = published_designs(
        [us.recommend.Popularity(), us.recommend.UserKNN(k=50)], list(DESIGNS), liked=3
    )
    assert list(plans) == list(DESIGNS)
    assert plans["test-targets"].systems["user-knn k=50"].k is None
    assert plans["random"].systems["user-knn k=50"].k == 50
    assert all(plan.users == "all" for plan in plans.values())
    assert plans["slices"].splits[0].liked == 3


# The experiment


def test_every_number_is_that_of_a_run():
    ratings, repeats = some_ratings(60, 30), 3
    plan = us.Plan(
        us.splits.Random(folds=2),
        [us.targets.AllItems(), us.targets.TestTargets()],
        [us.recommend.Popularity(), us.recommend.AverageRating()],
        metrics=["P@3", "anti-P@3"],
        users="all",
        seed=5,
    )
    found = null_experiment(ratings, plan, "iid", repeats)
    data = {("real", 0): us.run_plan(ratings, plan)}
    for repeat in range(repeats):
        seed = key_of(5, "null", "iid", repeat) % (1 << 31)
        data["iid", repeat] = us.run_plan(redraw(ratings, "iid", seed), replace(plan, seed=seed))
    assert found.parts["repeats"].rows.height == 4 * 2 * 2 * 2
    for row in found.parts["repeats"].rows.iter_rows(named=True):
        own = (
            data[row["data"], row["repeat"]]
            .table()
            .filter(targets=row["design"], system=row["system"], metric=row["metric"])
        )
        assert own.height == 2
        assert row["value"] == pytest.approx(own["mean"].mean(), rel=1e-12)
        assert row["random"] == pytest.approx(own["random"].mean(), rel=1e-12)
    for row in found.table("quantity").iter_rows(named=True):
        part = found.parts["repeats"].rows.filter(
            design=row["design"], system=row["system"], metric=row["metric"]
        )
        real, null = part.filter(data="real"), part.filter(data="iid")
        values = null["value"].to_numpy()
        assert row["value_null_value"] == pytest.approx(values.mean())
        half = 4.302652729749464 * values.std(ddof=1) / math.sqrt(3)  # t of 2 degrees of freedom
        assert row["high_null_value"] - row["value_null_value"] == pytest.approx(half)
        assert row["value_ratio"] == pytest.approx((values / null["random"].to_numpy()).mean())
        excess = values - null["random"].to_numpy()
        above = real["value"][0] - real["random"][0]
        if abs(above) > 3 * excess.std(ddof=1):
            assert row["value_null_share"] == pytest.approx((excess / above).mean())
        else:
            assert row["value_null_share"] is None


def test_known_scores_of_the_real_data_are_taken_as_they_are():
    ratings = some_ratings(60, 30)
    plans = published_designs(designs=["random", "test-targets", "flat"], metrics=["P@3"])
    whole = null_experiment(ratings, plans, repeats=2)
    real = {name: us.run_plan(ratings, plan).scores() for name, plan in plans.items()}
    assert (
        null_experiment(ratings, plans, repeats=2, real=real)
        .parts["repeats"]
        .rows.equals(whole.parts["repeats"].rows)
    )
    with pytest.raises(us.SettingError, match="real has no scores of flat"):
        null_experiment(ratings, plans, repeats=2, real={**real, "flat": []})


def test_a_random_order_has_its_expected_value_on_null_data():
    ratings = some_ratings(60, 30)
    systems = {"chance": us.recommend.Random(), "popular": us.recommend.Popularity()}
    plan = us.Plan(algorithms=systems, metrics=["P@3"], users="all")
    found = null_experiment(ratings, plan, repeats=40)
    row = found.table("quantity").filter(system="chance").row(0, named=True)
    assert row["value_null_value"] == row["value_null_random"]
    assert (row["value_ratio"], row["low_ratio"], row["high_ratio"]) == (1.0, 1.0, 1.0)
    assert row["value_null_share"] is None
    assert "the value of chance is the expected one of a random order" in str(found)
    assert row["value_real"] != row["value_real_random"]  # an order that was drawn
    # What it stands for: the mean of many random orders.
    many = {str(n): us.recommend.Random() for n in range(40)}
    values = []
    for repeat in range(40):
        seed = key_of(0, "null", "iid", repeat) % (1 << 31)
        split = us.splits.Random().split(redraw(ratings, "iid", seed), seed)[0]
        lists = us.targets.AllItems().lists(split, liked=4)
        models = {
            name: one.fit(split.train, np.random.default_rng(int(name)))
            for name, one in many.items()
        }
        values += us.evaluate(lists, models, "P@3", users="all").mean("P@3").values()
    error = np.std(values) / math.sqrt(len(values))
    assert abs(np.mean(values) - row["value_null_random"]) < 4.5 * error
    # Metrics of a whole run have no such value: there a random order is ranked as any system.
    whole = null_experiment(ratings, replace(plan, metrics=["P@3", "Coverage@3"]), repeats=2)
    assert whole.table("quantity").filter(system="chance", metric="P@3")["value_ratio"][0] != 1.0


def test_workers_change_no_number(tmp_path):
    ratings = some_ratings(60, 30)
    plans = published_designs(designs=["random", "flat"], metrics=["P@3"])
    settings = {"precision": 0.02, "most": 4}
    here = null_experiment(ratings, plans, **settings)
    assert here.card["repeats"] == 4
    assert (
        null_experiment(ratings, plans, workers=2, **settings)
        .parts["repeats"]
        .rows.equals(here.parts["repeats"].rows)
    )


# The number of repeats


def test_the_number_of_repeats_follows_from_the_spread_of_the_first():
    ratings = some_ratings(60, 30)
    plan = us.Plan(
        algorithms=[us.recommend.Popularity(), us.recommend.AverageRating()],
        metrics=["P@3", "P@1"],
        users="all",
    )
    least, most, wanted = 4, 30, 0.12
    found = null_experiment(ratings, plan, repeats=least, precision=wanted, most=most)
    fixed = null_experiment(ratings, plan, repeats=found.card["repeats"])
    assert found.parts["repeats"].rows.equals(
        fixed.parts["repeats"].rows
    )  # the same draws, more or fewer of them
    rows = (
        found.parts["repeats"]
        .rows.filter(metric="P@3")
        .with_columns(above=pl.col("value") - pl.col("random"))
    )
    t = 3.182446305284263  # of 3 degrees of freedom
    real, null = rows.filter(data="real"), rows.filter(data="iid")
    scale = max(real["above"].abs().max(), null["random"].mean())
    needed, widths = [least], []
    for system in ("popularity", "average-rating"):
        first = null.filter(pl.col("repeat") < least, system=system)["above"].to_numpy()
        needed.append(math.ceil((t * first.std(ddof=1) / (wanted * scale)) ** 2))
        widths.append(t * first.std(ddof=1) / math.sqrt(found.card["repeats"]) / scale)
    assert found.card["repeats"] == min(max(needed), most)
    assert least < found.card["repeats"] < most
    assert found.card["widest"] == pytest.approx(max(widths))
    assert found.card["widest"] <= wanted
    assert f"{found.card['repeats']} repeats (at least 4, at most 30) give the precision" in str(
        found
    )
    for row in found.table("quantity").filter(metric="P@3").iter_rows(named=True):
        part = null.filter(system=row["system"])
        values = part["value"].to_numpy()
        half = t * values[:least].std(ddof=1) / math.sqrt(found.card["repeats"])
        assert row["value_null_value"] == pytest.approx(values.mean())
        assert row["high_null_value"] - row["value_null_value"] == pytest.approx(half)
    assert found.card["least"] == 4


def test_the_largest_number_of_repeats_is_a_bound_and_is_reported():
    ratings = some_ratings(60, 30)
    plan = us.Plan(algorithms=[us.recommend.Popularity()], metrics=["P@3"])
    found = null_experiment(ratings, plan, precision=1e-4, most=5)
    assert found.card["repeats"] == 5
    assert found.card["widest"] > 1e-4
    assert "5 repeats are the most allowed" in str(found)
    coarse = null_experiment(ratings, plan, precision=50.0)
    assert coarse.card["repeats"] == 3


@pytest.mark.parametrize("shape", ["normal", "skewed"])
@pytest.mark.parametrize("half", [2.0, 1.0, 0.6])
def test_intervals_hold_where_the_spread_chooses_their_number(shape, half):
    """Simulated experiments of two correlated systems, the wider of which decides."""
    rng, trials, least, most = np.random.default_rng(11), 4_000, 3, 12
    held, fixed = [], []
    for _ in range(trials):
        shared = rng.normal(size=(most, 1)) * 0.7
        values = shared + rng.normal(size=(most, 2)) * 0.7
        if shape == "skewed":
            values = np.exp(0.8 * values)
        needed = [values_needed(values[:least, one], half) for one in range(2)]
        count = int(min(max(needed), most))
        truth = float(np.exp(0.8**2 * 0.98 / 2)) if shape == "skewed" else 0.0
        for one in range(2):
            _, low, high = interval(values[:count, one].tolist(), 0.95, least)
            held.append(low <= truth <= high)
            _, low, high = interval(values[:least, one].tolist(), 0.95)
            fixed.append(low <= truth <= high)
    error = math.sqrt(0.95 * 0.05 / trials)  # pairs are correlated: at most as for one of them
    if shape == "normal":
        assert abs(np.mean(held) - 0.95) < 4.5 * error
    else:  # no worse than intervals of as few values, by more than noise
        assert np.mean(held) > np.mean(fixed) - 0.02


def test_an_interval_looked_at_after_every_value_would_not_hold():
    """Why the number is chosen in two stages: else small spreads end an experiment early."""
    rng, trials, held = np.random.default_rng(5), 3_000, 0
    for _ in range(trials):
        values = rng.normal(size=10).tolist()
        for count in range(3, 11):
            mean, low, high = interval(values[:count], 0.95)
            if high - mean <= 0.7 or count == 10:
                held += low <= 0 <= high
                break
    assert held / trials < 0.95 - 4.5 * math.sqrt(0.95 * 0.05 / trials)


def test_plans_that_share_a_split_are_run_as_one():
    ratings = some_ratings(60, 30)
    both = published_designs(designs=["random", "test-targets", "flat"], metrics=["P@3"])
    together = null_experiment(ratings, both, repeats=2)
    for name in both:
        alone = null_experiment(ratings, {name: both[name]}, repeats=2).table("quantity")
        assert together.table("quantity").filter(design=name).equals(alone)


def test_what_is_stored_is_not_done_again(tmp_path, monkeypatch):
    ratings = some_ratings(40, 20)
    plan = us.Plan(algorithms=[us.recommend.Popularity()], metrics=["P@3"])
    first = null_experiment(ratings, plan, ["iid", "within-item"], 2, store=tmp_path)

    def fail(self, train, rng):
        raise AssertionError("trained again")

    monkeypatch.setattr(us.recommend.Popularity, "learn", fail)
    again = null_experiment(ratings, plan, ["iid", "within-item"], 2, store=tmp_path)
    assert again.parts["repeats"].rows.equals(first.parts["repeats"].rows)
    with pytest.raises(us.DataError, match="trained again"):
        null_experiment(ratings, plan, "iid", 3, store=tmp_path)


def test_designs_for_null_data_only_have_no_real_value():
    ratings = some_ratings(80, 25)
    moved = []
    found = null_experiment(
        ratings,
        published_designs(designs=["forced"], metrics=["P@3"]),
        ["iid", "within-user"],
        2,
        progress=lambda done, total: moved.append((done, total)),
    )
    table = found.table("quantity")
    assert table["value_real"].null_count() == table.height
    assert set(table["null"]) == {"iid"}
    assert "forced: for the null iid only" in str(found)
    assert [done for done, _ in moved] == sorted(done for done, _ in moved)
    assert moved[-1][0] == moved[-1][1]


def test_result_shows_itself():
    found = null_experiment(
        some_ratings(40, 20), us.Plan(algorithms=simple_systems(), metrics=["P@3"]), repeats=2
    )
    assert "popularity" in str(found)
    assert "null share" in str(found)
    assert repr(found) == str(found)
    assert "<table" in found._repr_html_()
    assert json.loads(json.dumps(found.to_dict(), allow_nan=False))["card"]["repeats"] == 2
    rows = found.figure(metric="P@3").to_dict()["datasets"]["rows"]
    assert {row["quantity"] for row in rows} == {"ratio", "real / chance"}
    rows = found.figure("values", "P@3").to_dict()["datasets"]["rows"]
    assert {row["quantity"] for row in rows} == {"real", "null value", "chance"}
    with pytest.raises(us.UnknownName):
        found.figure(metric="P@4")
    with pytest.raises(us.UnknownName):
        found.where(null="clusters")


def test_a_figure_has_a_panel_for_each_null_and_design():
    plans = published_designs(simple_systems(), ["random", "flat"], metrics=["P@3"])
    found = null_experiment(some_ratings(80, 25), plans, ["iid", "within-user"], 2)
    rows = found.figure().to_dict()["datasets"]["rows"]
    assert {row["panel"] for row in rows} == {
        f"{null}, {design}" for null in ("iid", "within-user") for design in plans
    }


def test_one_repeat_has_no_interval():
    assert interval([0.5], 0.95) == (0.5, None, None)
    assert interval([], 0.95) == (None, None, None)
    found = null_experiment(
        some_ratings(40, 20),
        us.Plan(algorithms=[us.recommend.Popularity()], metrics=["P@3"]),
        repeats=1,
    ).table("quantity")
    assert found["low_null_value"].null_count() == 1
    assert found["value_null_share"].null_count() == 0


def test_liked_is_the_threshold_of_every_plan():
    ratings = some_ratings(60, 30)

    def plans(**rules):
        rule = us.Relevance(**rules)
        return {
            name: us.Plan(
                targets=[targets],
                algorithms=[us.recommend.Popularity()],
                metrics=["P@3"],
                relevance=rule,
            )
            for name, targets in (
                ("all", us.targets.AllItems()),
                ("test", us.targets.TestTargets()),
            )
        }

    asked = null_experiment(ratings, plans(above=2), repeats=2, liked=5)
    assert asked.parts["repeats"].rows.equals(
        null_experiment(ratings, plans(liked=5), repeats=2).parts["repeats"].rows
    )
    assert not asked.parts["repeats"].rows.equals(
        null_experiment(ratings, plans(above=2), repeats=2).parts["repeats"].rows
    )
    share = null_experiment(ratings, plans(above=2), repeats=2, liked=5, share=0.5)
    assert share.parts["repeats"].rows.equals(
        null_experiment(ratings, plans(liked=5), repeats=2, share=0.5).parts["repeats"].rows
    )
    with pytest.raises(us.SettingError, match="liked must be a number, such as 4; got nan"):
        null_experiment(ratings, plans(liked=4), liked=float("nan"))


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({"nulls": ()}, "at least one null"),
        ({"nulls": "idd"}, "iid"),
        ({"repeats": 0}, "repeats"),
        ({"precision": 0}, "precision must be above 0"),
        ({"precision": 0.1, "repeats": 1}, "at least 2"),
        ({"precision": 0.1, "repeats": 5, "most": 4}, "most must lie between"),
        ({"precision": 0.1, "metric": "P@7"}, "P@7"),
        ({"most": 9}, "for precision"),
        ({"level": 1.0}, "level"),
        ({"nulls": "clusters", "share": 0.5}, "share"),
        ({"plan": {}}, "plans by name"),
        ({"plan": {"a": "b"}}, "plan must be Plan or a mapping to Plan"),
        (
            {
                "plan": us.Plan(
                    algorithms=[us.recommend.Popularity()], relevance=us.Relevance(above=3)
                ),
                "share": 0.5,
            },
            "liked",
        ),
        (
            {
                "plan": us.Plan(
                    [us.splits.Random(), ForcedNull()], algorithms=[us.recommend.Popularity()]
                )
            },
            "only on null data",
        ),
    ],
)
def test_what_the_experiment_refuses(change, told):
    settings = {"plan": us.Plan(algorithms=[us.recommend.Popularity()], metrics=["P@3"]), **change}
    with pytest.raises(us.UnskewError, match=told):
        null_experiment(some_ratings(), **settings)


# The command


def test_command(tmp_path):
    some_ratings(60, 30).to_csv(tmp_path / "ratings.csv")
    done = invoke(
        "bias",
        "null",
        tmp_path / "ratings.csv",
        "--liked",
        4,
        "--repeats",
        2,
        "-m",
        "P@3",
        "-a",
        "popularity",
        "-a",
        "user-knn:k=5,power=2",
        "--designs",
        "random, test-targets",
        "--null",
        "iid",
        "--null",
        "within-item",
        "--format",
        "json",
        "--figure",
        tmp_path / "null.json",
        "--store",
        tmp_path / "store",
    )
    assert done.exit_code == 0, done.output
    told = json.loads(done.stdout)
    assert told["card"]["null"] == "iid, within-item"
    assert {row["design"] for row in told["rows"]} == {"random", "test-targets"}
    assert "user-knn k=5 power=2" in {row["system"] for row in told["rows"]}
    assert (tmp_path / "null.json").exists()
    text = invoke("bias", "null", tmp_path / "ratings.csv", "--repeats", 2, "--designs", "random")
    assert "null share" in text.stdout
    for options in (("--format", "xml"), ("-a", "popular")):
        wrong = invoke("bias", "null", tmp_path / "ratings.csv", *options)
        assert wrong.exit_code == 2
        assert f"unknown {'format' if options[1] == 'xml' else 'algorithm'}" in wrong.stderr


# What the papers found, on data


@pytest.mark.slow
def test_overlap_out_of_training_favours_popular_items_however_sparse_the_test():
    """castells2018 section 5.2.1; the paper says that a sparse test makes it weak: it does not."""
    null = world("null", users=40_000, items=200, seed=1)
    ratings = null.ratings
    for density in (0.2, 0.02, 0.005):
        ratio = {}
        for overlap in ("to-test", "to-training"):
            split = us.splits.Forced(null.random(density, seed=1), overlap).split(ratings, 1)[0]
            lists = us.targets.AllItems().lists(split, liked=null.liked)
            scores = us.evaluate(
                lists, {"pop": us.recommend.Popularity().fit(split.train)}, "P@10", users="all"
            )
            chance = scores.random()["P@10"]
            value = scores.values("pop", "P@10")
            spread = value.std() / math.sqrt(value.size) / chance
            ratio[overlap] = (scores.mean("P@10")["pop"] / chance, spread)
        top = np.sort(np.bincount(split.train.item, minlength=200))[::-1][:10] / 40_000
        assert ratio["to-test"][0] - 1 > 4.5 * ratio["to-test"][1], (density, ratio)
        assert abs(ratio["to-training"][0] - 1) < 4.5 * ratio["to-training"][1], (density, ratio)
        assert ratio["to-test"][0] < 1 / (1 - top[0])


@pytest.mark.slow
def test_null_experiment_on_movielens(ml1m_path):
    """castells2018 figure 2: popularity against random, by design (P@10 over all users)."""
    ratings = us.read_ratings(ml1m_path)
    plans = published_designs(seed=1)
    found = null_experiment(ratings, plans, repeats=3, share=0.57).table("quantity")
    at = {(row["design"], row["system"]): row for row in found.iter_rows(named=True)}
    assert at["random", "popularity"]["value_ratio"] == pytest.approx(19.4, abs=1.5)
    assert at["random", "popularity"]["value_null_value"] == pytest.approx(0.103, abs=0.003)
    assert at["random", "popularity"]["value_null_random"] == pytest.approx(0.0053, abs=0.0005)
    average = at["random", "smoothed-average"]
    assert 0.5 < average["value_ratio"] < 2
    assert at["flat", "popularity"]["value_ratio"] == pytest.approx(4.0, abs=0.6)
    assert at["percentiles", "popularity"]["value_ratio"] == pytest.approx(2.2, abs=0.2)
    assert at["judgment-bins", "popularity"]["value_ratio"] == pytest.approx(1.2, abs=0.1)
    for (design, _), row in at.items():
        if design == "test-targets":
            assert row["value_null_value"] == pytest.approx(0.507, abs=0.004)
            assert row["value_ratio"] == pytest.approx(1, abs=0.01)


@pytest.mark.slow
def test_forced_judgments_on_movielens(ml1m_path):
    """castells2018 section 7.2: no bias with the sampling of 5.2.2, one against popular without."""
    ratings = us.read_ratings(ml1m_path)
    plans = published_designs(designs=["forced", "forced-raw"], seed=1)
    found = null_experiment(ratings, plans, repeats=1, share=0.57).table("quantity")
    at = {(row["design"], row["system"]): row for row in found.iter_rows(named=True)}
    for system in ("random", "popularity", "positive-popularity", "smoothed-average"):
        value = at["forced", system]["value_null_value"]
        sigma = math.sqrt(0.17 * 0.83 / 60_400)
        assert abs(value - at["forced", system]["value_null_random"]) < 4.5 * sigma
        assert value == pytest.approx(0.1725, abs=0.006)
    assert at["forced-raw", "random"]["value_null_random"] == pytest.approx(0.279, abs=0.003)
    assert at["forced-raw", "popularity"]["value_null_value"] == pytest.approx(0.204, abs=0.005)


def test_given_positions_as_a_world():
    """A world on given positions is null data too: same pairs, relevance independent of them."""
    ratings = some_ratings(80, 30)
    null = World.like(ratings, liked=4, observation="given", seed=2)
    drawn = redraw(ratings, "iid", 2)
    assert null.ratings.item.tolist() == drawn.item.tolist()


def test_data_folder_is_named_when_it_is_missing(monkeypatch):
    monkeypatch.delenv("UNSKEW_DATA", raising=False)
    with pytest.raises(pytest.skip.Exception, match="UNSKEW_DATA"):
        real_data("ml-1m/ratings.parquet")
