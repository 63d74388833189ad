"""The effect of filters: against a plain twin, and in worlds where filters cannot matter."""

import numpy as np
import pytest

import unskew as us
from unskew.auditing.filter_effects import ALL, FILTERED, JUDGED


def some_ratings(seed=1, users=60, items=40):
    rng = np.random.default_rng(seed)
    popularity = np.linspace(1, 0.1, items)
    activity = rng.uniform(0.1, 0.8, users)
    rated = rng.random((users, items)) < activity[:, None] * popularity
    user, item = np.nonzero(rated)
    return us.read_ratings({"user": user, "item": item, "rating": rng.integers(1, 6, user.size)})


def plan_of(*systems, **settings):
    return us.Plan(
        us.splits.Random(test=0.3),
        algorithms=systems,
        metrics=["P@5", "nDCG@5"],
        seed=3,
        **settings,
    )


SYSTEMS = [us.recommend.Popularity(), us.recommend.EASE(l2=5), us.recommend.Random()]


def table_of(effect):
    """Return a row per metric and system, a column per condition and change."""
    keys = ["metric", "system"]
    return effect.parts["scores"].rows.pivot("quantity", index=keys, values="value")


def plain_means(data, plan, *filters):
    """Split, filter the parts by sets of raw pairs, train and evaluate: by definition."""
    (split,) = plan.splits[0].split(data, plan.seed)
    kept = us.data.apply_filters(data, filters)
    pairs = set(zip(*raw(kept), strict=True))
    left = [
        part.take(np.array([pair in pairs for pair in zip(*raw(part), strict=True)]))
        for part in (split.train, split.test)
    ]
    items = tuple(sorted(set(raw(kept)[1])))
    among = us.targets.Targets(candidates=items)
    cases = {
        ALL: (us.Split(split.train, split.test), split.train, us.targets.AllItems()),
        JUDGED: (us.Split(split.train, left[1]), split.train, among),
        FILTERED: (us.Split(*left), left[0], among),
    }
    means = {}
    for name, (parts, train, targets) in cases.items():
        lists = targets.lists(parts, plan.relevance, seed=plan.seed)
        models = {"popularity": us.recommend.Popularity().fit(train)}
        means[name] = us.evaluate(lists, models, list(plan.metrics)).means()["popularity"]
    return means


def raw(data):
    return data.users.raw(data.user).to_list(), data.items.raw(data.item).to_list()


def test_scores_under_each_condition_are_those_of_a_plain_twin():
    data, plan = some_ratings(), plan_of(*SYSTEMS)
    core = us.data.KCore(6, 6)
    effect = us.auditing.filter_effect(data, plan, core, resamples=10)
    expected = plain_means(data, plan, core)
    for row in table_of(effect).filter(system="popularity").iter_rows(named=True):
        values = {name: means[row["metric"]] for name, means in expected.items()}
        assert {name: row[name] for name in values} == pytest.approx(values, abs=1e-12)
        assert row["judged"] + row["trained"] == pytest.approx(row[FILTERED] - row[ALL])


def test_a_filter_that_removes_nothing_changes_nothing():
    data, plan = some_ratings(), plan_of(*SYSTEMS)
    effect = us.auditing.filter_effect(data, plan, us.data.KCore(1, 1), resamples=10)
    table = table_of(effect)
    assert np.allclose(table["judged"], 0, atol=1e-12)
    assert np.allclose(table.filter(system="popularity")["trained"], 0, atol=1e-12)
    assert not effect.parts["changes"].rows["reverses"].any()
    sizes = effect.parts["sizes"].rows.select("train", "test", "n", "items").unique()
    assert sizes.height == 1


def test_the_filters_of_the_plan_are_taken_unless_others_are_given():
    data = some_ratings()
    plan = plan_of(*SYSTEMS, filters=us.data.KCore(6, 6))
    one = us.auditing.filter_effect(data, plan, resamples=10)
    other = us.auditing.filter_effect(data, plan_of(*SYSTEMS), us.data.KCore(6, 6), resamples=10)
    assert table_of(one).equals(table_of(other))
    assert "k-core(users=6, items=6)" in str(one)
    assert one.to_dict()["card"]["steps"][0]["name"] == "k-core"
    assert one.parts["removed"].rows["rows"].to_list() == [len(data)]
    assert one.figure() is not None


def test_an_event_log_is_counted():
    rng = np.random.default_rng(2)
    log = us.read_events(
        {
            "user": rng.integers(0, 40, 3000),
            "item": (rng.random(3000) ** 2 * 50).astype(int),
            "time": rng.integers(0, 10**9, 3000),
        }
    )
    plan = plan_of(*SYSTEMS, relevance=us.Relevance(liked=1, gain="binary"))
    effect = us.auditing.filter_effect(log, plan, us.data.DropRepeats("all"), resamples=10)
    popularity = table_of(effect).filter(system="popularity")
    assert np.allclose(popularity["judged"], 0, atol=1e-12)  # every pair stays


def test_bad_calls_are_refused():
    data = some_ratings()
    with pytest.raises(us.SettingError, match="no filter is given"):
        us.auditing.filter_effect(data, plan_of(*SYSTEMS))
    with pytest.raises(us.DataError, match="no row is left"):
        us.auditing.filter_effect(data, plan_of(*SYSTEMS), us.data.KCore(500, 500))


def test_the_report_has_a_section_on_filters():
    data = some_ratings(users=80)
    audit = us.audit(
        data, "quick", algorithms=["random", "popularity"], designs=["all-items"],
        filters=us.data.KCore(6, 6), repeats=2, permutations=100,
    )  # fmt: skip
    keys = [one.key for one in audit.document().sections]
    assert "filters" in keys
    assert audit.card["data"]["steps"][0]["name"] == "k-core"
    assert any("k-core" in note for note in audit.notes)
    plain = us.audit(
        data, "quick", algorithms=["random", "popularity"], designs=["all-items"], repeats=2,
        permutations=100,
    )  # fmt: skip
    assert "filters" not in [one.key for one in plain.document().sections]
    with pytest.raises(us.SettingError, match="filters are for ratings: a world"):
        us.audit(us.world("null", users=30, items=20), "quick", filters=us.data.KCore())
