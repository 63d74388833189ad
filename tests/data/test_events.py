"""Event logs: order, weights, repeats, and the steps that they record."""

import functools
import operator

import numpy as np
import polars as pl
import pytest

import unskew as us
from unskew.data.dataset import data_key, put_data, stored_data
from unskew.data.events import REPEATS, Events
from unskew.engine.store import Store


def some_log(seed=1, rows=300):
    rng = np.random.default_rng(seed)
    return pl.DataFrame(
        {
            "user": rng.integers(0, 12, rows),
            "item": rng.choice(["x", "y", "z", "w", "v"], rows),
            "time": rng.integers(1_600_000_000, 1_600_000_060, rows),
            "value": np.round(rng.random(rows), 2),
            "kind": rng.choice(["view", "cart", "buy"], rows),
        }
    )


def columns(log):
    return [log.user.tolist(), log.item.tolist(), log.value.tolist(), log.time.tolist()]


def test_rows_are_in_order_of_time_then_user_item_and_value():
    log = us.read_events(some_log())
    rows = list(zip(log.time, log.user, log.item, log.value, strict=True))
    assert rows == sorted(rows)


@pytest.mark.parametrize("seed", range(5))
def test_the_order_of_rows_in_a_file_never_matters(seed):
    log = some_log(seed)
    mixed = log.sample(fraction=1, shuffle=True, seed=seed)
    one, other = us.read_events(log), us.read_events(mixed)
    assert columns(one) == columns(other)
    assert one.fingerprint == other.fingerprint


def plain(log, repeats):
    """Group events of a pair in a dictionary."""
    pairs = {}
    for user, item, value, time in zip(*columns(log), strict=True):
        pairs.setdefault((user, item), []).append((time, value))

    def added(values):  # one by one: from Python 3.12 on, sum() keeps what rounding loses
        return functools.reduce(operator.add, sorted(values))

    def worth(rows):
        values = [value for _, value in rows]
        return {
            "count": len(values), "sum": added(values), "max": max(values),
            "mean": added(values) / len(values), "first": values[0], "last": values[-1],
        }[repeats]  # fmt: skip

    last = -1 if repeats == "last" else 0
    return [(*pair, worth(rows), rows[last][0]) for pair, rows in sorted(pairs.items())]


@pytest.mark.parametrize("repeats", REPEATS)
def test_repeats_become_one_rating(repeats):
    log = us.read_events(some_log())
    ratings = log.to_ratings(repeats)
    rows = zip(ratings.user, ratings.item, ratings.value, ratings.time, strict=True)
    assert [tuple(row) for row in rows] == plain(log, repeats)
    assert ratings.implicit
    (step,) = ratings.steps
    assert (step.name, step.before.rows, step.after.rows) == ("repeats", 300, len(ratings))


def test_a_part_of_a_log_keeps_its_ids():
    log = us.read_events(some_log())
    part = log.to_ratings("count", slice(0, 10))
    assert part.users is log.users
    assert part.value.sum() == 10
    assert len(log.take(log.user == 3)) == np.count_nonzero(log.user == 3)
    assert log.take(np.array([0, 5])).tags == {}


def test_kinds_of_events_have_weights():
    weights = {"view": 1, "cart": 0, "buy": 5}
    log = us.read_events(some_log(), event="kind", weights=weights)
    kinds = some_log()["kind"].to_list()
    assert len(log) == 300 - kinds.count("cart")
    assert sorted(log.value) == sorted(weights[kind] for kind in kinds if kind != "cart")
    assert log.tags["kind"].n_unique() == 2
    (step,) = log.steps
    assert step.facts["events of kind cart"] == kinds.count("cart")
    assert "weights(event=kind, view=1, cart=0, buy=5)" in str(step)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"weights": {"view": 1}}, "without a weight: 'buy', 'cart'"),
        ({"events": "sell"}, "no event of the kind 'sell' in column 'kind'"),
        ({"events": "buy", "weights": {"buy": 1}}, "not both"),
        ({"event": "kind", "weights": {"view": 1, "buy": 2}}, "without a weight: 'cart'"),
        ({"event": "type", "weights": {"view": 1}}, "no column 'type' for event"),
        ({"event": "kind", "weights": {"view": -1}}, "must count 0 or more"),
        ({"event": "kind", "weights": {"view": 1}, "rating": "value"}, "either weights"),
        ({"event": "kind", "weights": dict.fromkeys(["view", "cart", "buy"], 0)}, "weighs 0"),
        ({"tags": ["shop"]}, "no column 'shop' to keep"),
        ({"feedback": "both"}, "feedback"),
    ],
)
def test_bad_logs_are_refused(options, message):
    with pytest.raises(us.UnskewError, match=message):
        us.read_events(some_log(), **options)


def test_ratings_without_times_are_no_log():
    with pytest.raises(us.DataError, match="needs time stamps"):
        us.read_events(us.read_ratings({"user": [1], "item": [2]}))
    with pytest.raises(us.DataError, match="no events"):
        us.read_events(some_log()[:0])


def test_a_log_in_a_store_comes_back(tmp_path):
    log = us.data.apply_filters(us.read_events(some_log(), event="kind"), us.data.KCore(3, 3))
    store = Store.open(tmp_path)
    back = stored_data(store, put_data(store, log))
    assert isinstance(back, Events)
    assert columns(back) == columns(log)
    assert back.steps == log.steps
    assert back.tags["kind"].equals(log.tags["kind"])
    assert data_key(back) == data_key(log)


def test_any_splitter_takes_a_log():
    """One that does not know time counts the events of each pair first, and the step says so."""
    log = us.read_events(some_log())
    (split,) = us.splits.Random(test=0.3).split(log, seed=1)
    assert split.train.steps[0].name == "repeats"
    assert split.train.value.sum() + split.test.value.sum() == 300
    (split,) = us.splits.TemporalEvents(test=0.3, seen="keep").split(log)
    assert split.facts["events"] == 300


def test_a_plan_runs_on_a_log(tmp_path):
    log = us.read_events(some_log(rows=600))
    plan = us.Plan(
        us.splits.TemporalEvents(test=0.3, seen="keep"),
        algorithms=[us.recommend.Popularity()],
        relevance=us.Relevance(liked=1),
        metrics=["P@2"],
    )
    first = us.run_plan(log, plan, store=tmp_path)
    again = us.run_plan(log, plan, store=tmp_path, workers=2)
    assert str(first) == str(again)


def test_a_log_says_what_it_is():
    log = us.read_events(some_log())
    assert repr(log).startswith("Events(300 events, 12 users, 5 items, 2020-09-13T")
    assert "300" in log._repr_html_()
    frame = log.to_polars()
    assert frame.columns == ["user", "item", "value", "time"]
    assert us.read_events(frame).fingerprint == log.fingerprint
    assert us.read_events(log) is log
