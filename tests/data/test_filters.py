"""Filters against plain twins, and the steps that they record."""

from dataclasses import dataclass

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

import unskew as us
from unskew.data.filters import FILTERS, filter_of
from unskew.data.steps import Step

pairs = st.lists(st.tuples(st.integers(0, 6), st.integers(0, 6)), min_size=1, max_size=40)


def log_of(rows):
    return us.read_events(
        pl.DataFrame({"user": [r[0] for r in rows], "item": [r[1] for r in rows],
                      "time": [1_000_000_000 + 10 * n for n in range(len(rows))]})
    )  # fmt: skip


def raw(data):
    users, items = data.users.raw(data.user).to_list(), data.items.raw(data.item).to_list()
    return list(zip(users, items, strict=True))


def plain_core(rows, users, items, rounds):
    done = 0
    while rounds is None or done < rounds:
        kept = [
            (u, i) for u, i in rows
            if sum(v == u for v, _ in rows) >= users and sum(j == i for _, j in rows) >= items
        ]  # fmt: skip
        if kept == rows:
            break
        rows, done = kept, done + 1
    return rows, done


@given(rows=pairs, users=st.integers(1, 4), items=st.integers(1, 4),
       rounds=st.sampled_from([None, 1, 2]))  # fmt: skip
def test_k_core_is_its_plain_twin(rows, users, items, rounds):
    log = log_of(rows)
    kept, done = plain_core(raw(log), users, items, rounds)
    core = us.data.KCore(users, items, rounds)
    if not kept:
        with pytest.raises(us.DataError, match="k-core: no row is left"):
            core.apply(log)
        return
    result = core.apply(log)
    assert raw(result) == kept
    assert result.steps[0].facts == {"rounds": done}
    assert len(result.users) == len({u for u, _ in kept})


@given(rows=pairs, within=st.sampled_from([None, 10.0, 25.0]))
def test_repeats_that_follow_at_once_are_dropped(rows, within):
    log = log_of(rows)
    kept, last = [], {}
    for (u, i), time in zip(raw(log), log.time.tolist(), strict=True):
        before = last.get(u)
        again = before is not None and before[0] == i
        near = again and (within is None or time - before[1] <= within * 1e6)
        last[u] = (i, time)
        if not near:
            kept.append((u, i))
    assert raw(us.data.DropRepeats(within=within).apply(log)) == kept
    once = us.data.DropRepeats("all").apply(log)
    assert raw(once) == list(dict.fromkeys(raw(log)))


def test_each_filter_by_hand():
    rows = {"user": [1, 1, 1, 2, 2, 3], "item": ["a", "b", "c", "a", "b", "a"],
            "rating": [5, 3, 1, 4, 2, 3], "time": [10, 20, 30, 40, 50, 60]}  # fmt: skip
    data = us.read_ratings(rows)

    def left(*filters):
        return raw(us.data.apply_filters(data, filters))

    assert left(us.data.MaxCounts(users=2)) == [(2, "a"), (2, "b"), (3, "a")]
    assert left(us.data.MaxCounts(items=2)) == [(1, "b"), (1, "c"), (2, "b")]
    assert left(us.data.PopularItems(1)) == [(1, "a"), (2, "a"), (3, "a")]
    assert left(us.data.Between(20, 50)) == [(1, "b"), (1, "c"), (2, "a")]
    assert left(us.data.Threshold(4)) == [(1, "a"), (2, "a")]
    liked = us.data.Threshold(4).apply(data)
    assert (liked.value.tolist(), liked.implicit) == ([1, 1], True)
    graded = us.data.Threshold(4, binary=False).apply(data)
    assert (graded.value.tolist(), graded.implicit) == ([5, 4], False)
    assert left(us.data.Between(end=30), us.data.Threshold(4)) == [(1, "a")]


def test_sampled_users_keep_all_their_rows():
    rows = [(u, i) for u in range(2000) for i in range(3)]
    data = us.read_ratings({"user": [u for u, _ in rows], "item": [i for _, i in rows]})
    half = us.data.SampleUsers(0.5, seed=3).apply(data)
    assert abs(len(half.users) - 1000) < 4.5 * np.sqrt(500)
    assert len(half) == 3 * len(half.users)
    assert raw(half) == raw(us.data.SampleUsers(0.5, seed=3).apply(data))
    assert raw(half) != raw(us.data.SampleUsers(0.5, seed=4).apply(data))


def test_steps_tell_what_was_removed():
    data = us.read_ratings({"user": [1, 1, 2, 2, 3], "item": [7, 8, 7, 8, 9]})
    core = us.data.apply_filters(data, [us.data.KCore(2, 2), us.data.PopularItems(1)])
    assert [str(step) for step in core.steps] == [
        "k-core(users=2, items=2): 5 rows of 3 users and 3 items became 4 rows of 2 users and 2 "
        "items; rounds: 1",
        "popular-items(number=1): 4 rows of 2 users and 2 items became 2 rows of 2 users and 1 "
        "item",
    ]
    assert [step.counts_rows for step in core.steps] == [True, True]
    assert [Step.from_card(step.describe()) for step in core.steps] == list(core.steps)
    assert "step 1" in core._repr_html_()
    (split,) = us.splits.Random(test=0.5, exact=True).split(core)
    assert split.train.steps == core.steps


@pytest.mark.parametrize("name", FILTERS)
def test_every_filter_is_built_by_name(name):
    needed = {
        "popular-items": {"number": 2},
        "threshold": {"least": 1},
        "sample-users": {"share": 0.5},
    }
    one = filter_of(name, **needed.get(name, {}))
    assert type(one) is FILTERS[name]
    settings = {key: value for key, value in one.describe().items() if key != "filter"}
    assert filter_of(name, **settings) == one
    with pytest.raises(us.SettingError, match="no setting 'depth'"):
        filter_of(name, depth=3)
    if name in needed:
        with pytest.raises(us.SettingError, match=f"{name} needs {next(iter(needed[name]))}"):
            filter_of(name)


def test_wrong_filters_are_refused():
    data = us.read_ratings({"user": [1, 2], "item": [7, 8]})
    with pytest.raises(us.SettingError, match="works on an event log"):
        us.data.DropRepeats().apply(data)
    with pytest.raises(us.DataError, match="needs time stamps"):
        us.data.Between("2020-01-01").apply(data)
    with pytest.raises(us.SettingError, match="start must be an ISO date"):
        us.data.Between("yesterday")
    timed = us.read_ratings({"user": [1], "item": [7], "time": ["2020-01-01"]})
    with pytest.raises(us.DataError, match="the data go from 2020-01-01T00:00:00 to"):
        us.data.Between("2021-01-01").apply(timed)
    with pytest.raises(us.SettingError, match="data must be ratings"):
        us.data.apply_filters([1], us.data.KCore())
    with pytest.raises(us.DataError, match="every value is below 9"):
        us.data.Threshold(9).apply(data)


def test_a_filter_of_a_user():
    @dataclass(frozen=True)
    class Even(us.data.Filter):
        def keep(self, data):
            return data.item % 2 == 0, {"kept": "even"}

    data = us.read_ratings({"user": [1, 2, 3], "item": [7, 8, 9]})
    assert str(Even().apply(data).steps[0]).startswith("Even(): 3 rows")
