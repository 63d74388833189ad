"""Splits by time against their definitions: sets of rows, one by one."""

import math
from collections import defaultdict
from dataclasses import replace
from datetime import datetime

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

import unskew as us
from shared.examples import examples
from unskew import DataError, SettingError
from unskew.data.times import duration, lasting, written
from unskew.splits.saved import load_splits, save_splits
from unskew.splits.time.sessions import Sessions
from unskew.splits.time.temporal import Temporal
from unskew.splits.time.windows import COVERED, ModelAges, Windows

SECOND = 1_000_000

# Small logs: few users and items, so that pairs repeat and times are equal.
rows_of_logs = st.lists(
    st.tuples(st.integers(0, 4), st.integers(0, 5), st.integers(0, 30)), min_size=2, max_size=40
)


def log_of(rows, **more):
    """Return events of (user, item, second)."""
    user, item, time = zip(*rows, strict=True)
    return us.read_events({"user": user, "item": item, "time": time}, **more)


def ratings_of(rows):
    """Return ratings of (user, item, second), of each pair the first row."""
    first = {}
    for user, item, time in rows:
        first.setdefault((user, item), time)
    return us.read_ratings(
        {
            "user": [user for user, _ in first],
            "item": [item for _, item in first],
            "rating": [1 + (3 * user + item) % 5 for user, item in first],
            "time": list(first.values()),
        }
    )


def pairs(part):
    """Return pairs by raw ids, and their values."""
    user, item = part.users.raw(part.user).to_list(), part.items.raw(part.item).to_list()
    return dict(zip(zip(user, item, strict=True), part.value.tolist(), strict=True))


def counts(rows):
    """Count the rows of each pair."""
    result = defaultdict(float)
    for user, item, _ in rows:
        result[user, item] += 1
    return dict(result)


def expected(train, before, test, seen="drop"):
    """Return the two parts of a split of a log by definition, and what is known beside training."""
    met = {(u, i) for u, i, _ in before}
    new = [row for row in test if seen == "keep" or row[:2] not in met]
    known = met - {(u, i) for u, i, _ in train}
    return counts(train), counts(new), known


def outcome(splitter, data):
    """Return the splits, or None where they are refused."""
    try:
        return splitter.split(data, 3)
    except DataError:
        return None


def held(split):
    """Return the parts of a split by raw ids."""
    known = split.known.get("test")
    return (
        pairs(split.train),
        pairs(split.test),
        set() if known is None else set(pairs(known)),
    )


# Windows


def plain_windows(rows, how):
    """Return (start, end) of windows of a length, and whether a time is before a moment."""
    times = sorted(time for *_, time in rows)

    def is_before(time, moment):
        return time <= moment if how.ties == "train" else time < moment

    length, step = how.length, how.step or how.length
    end = times[-1] + (1 if how.ties == "test" else 0)
    if how.start is not None:
        first = how.start
    elif how.number is not None:
        first = end - length - (how.number - 1) * step
    else:
        first = times[len(times) - round(0.2 * len(times))] if round(0.2 * len(times)) else end
    number = how.number
    if number is None:
        number = 0
        while min(end, first + number * step + length) - first - number * step >= COVERED * length:
            number += 1
    starts = [first + k * step for k in range(number)]
    return [(start, start + length) for start in starts], is_before


@given(
    rows_of_logs,
    st.sampled_from([None, 1, 2, 3]),
    st.integers(1, 9),
    st.sampled_from([None, 2, 5, 12]),
    st.integers(0, 4),
    st.sampled_from([None, 5, 12]),
    st.sampled_from(["test", "train"]),
    st.sampled_from(["drop", "keep"]),
    st.sampled_from([None, 11]),
)
@examples(150)
def test_windows_by_definition(rows, number, length, step, gap, train_length, ties, seen, start):
    how = Windows(number=number, length=length, step=step, gap=gap, train_length=train_length,
                  ties=ties, seen=seen, start=start, empty="skip")  # fmt: skip
    made = outcome(how, log_of(rows))
    if made is None:
        return
    windows, is_before = plain_windows(rows, how)
    numbers = [split.facts["window"] for split in made]
    full = [
        number + 1
        for number, (start, end) in enumerate(windows)
        if any(is_before(t, end) and not is_before(t, start) for *_, t in rows)
    ]
    assert numbers == full
    for split in made:
        start, end = windows[split.facts["window"] - 1]
        cut = start - gap
        first = -math.inf if train_length is None else cut - train_length
        train = [r for r in rows if is_before(r[2], cut) and not is_before(r[2], first)]
        before = [r for r in rows if is_before(r[2], start)]
        test = [r for r in rows if is_before(r[2], end) and not is_before(r[2], start)]
        assert held(split) == expected(train, before, test, seen)
        facts = split.facts
        assert facts["start"] == written(start * SECOND)
        assert facts["end"] == written(end * SECOND)
        assert facts["cut"] == written(cut * SECOND)
        assert facts["ties_at_start"] == sum(t == start for *_, t in rows)
        assert facts["ties_at_end"] == sum(t == end for *_, t in rows)
        assert facts["ties_at_cut"] == sum(t == cut for *_, t in rows)
        check_counts(split, rows)


def check_counts(split, rows):
    """Check that every row of a log is accounted for, and users and items are counted."""
    facts = split.facts
    assert facts["events"] == len(rows)
    assert facts["events_train"] + facts["events_test"] + facts["left_out"] == len(rows)
    why = ("before", "gap", "after", "seen", "pick")
    reasons = sum(facts.get(f"left_out_{one}", 0) for one in why)
    assert reasons + facts.get("validation", 0) == facts["left_out"]
    trained, tested = pairs(split.train), pairs(split.test)
    for name, at in (("users", 0), ("items", 1)):
        mine = {pair[at] for pair in tested}
        assert facts[f"test_{name}"] == len(mine)
        assert facts[f"cold_{name}"] == len(mine - {pair[at] for pair in trained})


@given(
    rows_of_logs,
    st.sampled_from([None, 1, 2, 4]),
    st.sampled_from([0.2, 0.5, 0.8]),
    st.sampled_from(["test", "train"]),
    st.integers(0, 3),
)
@examples(100)
def test_windows_of_equal_rows_by_definition(rows, number, test, ties, gap):
    """Edges stand before the row at the share; equal times move to one side together."""
    made = outcome(
        Windows(number=number, test=test, ties=ties, gap=gap, empty="skip"), log_of(rows)
    )
    if made is None:
        return
    times = sorted(t for *_, t in rows)
    n, number = len(times), number or 5
    wanted = round(test * n)

    def edge(place):
        if place >= n:
            return n
        if place and times[place - 1] == times[place]:
            late = ties == "train"
            return sum(t <= times[place] for t in times) if late else times.index(times[place])
        return place

    first = edge(n - wanted)
    places = [n - wanted] + [first + (n - first) * k // number for k in range(1, number)]
    edges = [edge(place) for place in places] + [n]
    ordered = sorted(rows, key=lambda row: (row[2], row[0], row[1]))
    spans = [(edges[k], edges[k + 1], k) for k in range(number) if edges[k] < edges[k + 1]]
    assert len(made) == len(spans)
    for split, (low, high, k) in zip(made, spans, strict=True):
        cut = times[places[k]] - gap
        train = [
            r for r in ordered[:low] if not gap or r[2] < cut or (ties == "train" and r[2] == cut)
        ]
        assert held(split) == expected(train, ordered[:low], ordered[low:high])
        check_counts(split, rows)
    assert sum(s.facts["events_test"] + s.facts.get("left_out_seen", 0) for s in made) == n - first


@pytest.mark.parametrize("how", [
    Windows(number=3, test=0.6),
    Windows(number=2, length=5, gap=2, train_length=9),
    Windows(number=3, test=0.6, pick="last"),
    Temporal(test=0.3, validation=0.2, gap=1),
    Temporal(test=0.3, validation=0.2, per_user=True),
    ModelAges(number=3, step=4, test=0.3),
    Sessions(pause=4, test=0.4, pick="random"),
    Sessions(pause=4, test=0.4, pick="next"),
], ids=repr)  # fmt: skip
@given(rows_of_logs)
@examples(40)
def test_ratings_and_events_agree_where_no_pair_repeats(how, rows):
    """The same parts, facts and known pairs; of ratings the values stay what they are."""
    data = ratings_of(rows)
    log = us.read_events(data.to_polars().drop("rating"))
    of_ratings, of_log = outcome(how, data), outcome(how, log)
    assert (of_ratings is None) == (of_log is None)
    for one, other in zip(of_ratings or [], of_log or [], strict=True):
        assert one.label == other.label
        extra = {"events", "events_train", "events_test"}
        assert dict(one.facts) == {k: v for k, v in other.facts.items() if k not in extra}
        assert [set(part) for part in held(one)] == [set(part) for part in held(other)]
        assert pairs(one.test).items() <= pairs(data).items()
        assert {k: list(pairs(v)) for k, v in one.judgments.items()} == {
            k: list(pairs(v)) for k, v in other.judgments.items()
        }
        assert {k: v.to_polars().drop("value").rows() for k, v in one.logs.items()} == {
            k: v.to_polars().drop("value").rows() for k, v in other.logs.items()
        }


SPLITTERS = [
    Windows(number=2, test=0.5, pick="random"),
    Windows(number=2, length=6, step=3, train_length=8, gap=1),
    ModelAges(number=2, step=5, test=0.4, pick="last"),
    Sessions(pause=5, test=0.5, pick="last"),
    Temporal(test=0.3, validation=0.2, gap=2, pick="first"),
    Temporal(test=0.4, validation=0.3, per_user=True),
]


@given(rows_of_logs, st.sampled_from(SPLITTERS), st.randoms(use_true_random=False))
@examples(80)
def test_the_order_of_rows_never_matters(rows, how, random):
    mixed = list(rows)
    random.shuffle(mixed)
    one, other = outcome(how, log_of(rows)), outcome(how, log_of(mixed))
    assert (one is None) == (other is None)
    for a, b in zip(one or [], other or [], strict=True):
        assert (a.label, dict(a.facts)) == (b.label, dict(b.facts))
        for left, right in zip((a.train, a.test), (b.train, b.test), strict=True):
            assert left.to_polars().rows() == right.to_polars().rows()
        assert {k: v.to_polars().rows() for k, v in a.logs.items()} == {
            k: v.to_polars().rows() for k, v in b.logs.items()
        }


@given(rows_of_logs, st.sampled_from(SPLITTERS))
@examples(150)
def test_one_split_alone_is_the_one_among_all(rows, how):
    """`nth` makes the same split as `split`; nothing is trained on that is later than the test."""
    log = log_of(rows)
    made = outcome(how, log)
    for number, split in enumerate(made or []):
        alone = how.nth(log, number, 3)
        assert alone.design == split.design
        assert (alone.label, dict(alone.facts), held(alone)) == (
            split.label, dict(split.facts), held(split),
        )  # fmt: skip
        if not getattr(how, "per_user", False):
            assert split.train.time.max() <= split.test.time.min()
    if made:
        with pytest.raises(SettingError, match=f"does not make a split number {len(made) + 1}"):
            how.nth(log, len(made), 3)


def test_windows_overlap_and_say_so():
    log = log_of([(1, t, t) for t in range(12)])
    made = Windows(number=3, length=4, step=2).split(log)
    assert [split.facts["start"][-2:] for split in made] == ["04", "06", "08"]
    assert [split.facts.get("rows_in_previous_window") for split in made] == [None, 2, 2]
    apart = Windows(number=2, length=2, step=4).split(log)
    assert [sorted(i for _, i in pairs(split.test)) for split in apart] == [[6, 7], [10, 11]]
    assert apart[1].facts["rows_in_previous_window"] == 0


def test_windows_of_days_follow_the_calendar():
    """Dates without times: a window of 7 days holds 7 dates, and ends after the last one."""
    days = pl.date_range(pl.date(2024, 1, 1), pl.date(2024, 2, 11), eager=True)
    log = us.read_events({"user": [1] * len(days), "item": range(len(days)), "time": days})
    made = Windows(number=2, length="7d").split(log)
    assert [(s.facts["start"][:10], s.facts["end"][:10], len(s.test)) for s in made] == [
        ("2024-01-29", "2024-02-05", 7), ("2024-02-05", "2024-02-12", 7),
    ]  # fmt: skip
    forward = Windows(length="1w", start="2024-01-22").split(log)
    assert [s.label for s in forward] == ["window1", "window2", "window3"]
    assert [s.facts["covered"] for s in forward] == [1, 1, 1]


def test_windows_without_rows_are_refused_or_left_out():
    log = log_of([(1, 1, 0), (1, 2, 1), (1, 3, 5), (1, 4, 6), (1, 5, 21), (1, 6, 22)])
    with pytest.raises(DataError, match=r"no row in window 2, from 1970-01-01T00:00:10 to .*skip"):
        Windows(number=3, length=5, start=5).split(log)
    how = Windows(number=4, length=5, start=5, empty="skip")
    made = how.split(log)
    assert [split.label for split in made] == ["window1", "window4"]
    assert [split.facts["windows_skipped"] for split in made] == [2, 2]
    assert how.count(log) == 2
    assert how.nth(log, 1).label == "window4"


@pytest.mark.parametrize(
    ("how", "message"),
    [
        (Windows(number=2, length="1d"), r"2 windows of 1d, one every 1d, with training before .*"
         r"lasts 9s, from 1970-01-01T00:00:00 to 1970-01-01T00:00:09; ask for shorter or fewer"),
        (Windows(length="1h"), "1 window of 1h with training before .* but the log lasts 9s"),
        (Windows(number=2, length=2, train_length=20), "training part of window1 would last 20s, "
         "from .* but the log begins at 1970-01-01T00:00:00"),
        (Windows(start=0, number=2), "the window1 training part is empty"),
        (Windows(start="2020-01-01", number=1), "no row in window 1"),
        (ModelAges(step=5, number=3, test=0.2), "the age 10s training part is empty"),
        (ModelAges(step=1, number=2, train_length=30), "age 0s would last 30s"),
        (Sessions(pause="1d"), "the training part is empty; there are 1 sessions"),
        (Temporal(test=0.5, validation_at=8), None),
    ],
)  # fmt: skip
def test_what_the_log_has_no_room_for(how, message):
    log = log_of([(1, t, t) for t in range(10)])
    if message is None:
        with pytest.raises(SettingError, match=r"validation_at=8 must be earlier than .*00:00:05"):
            how.split(log)
        return
    with pytest.raises(DataError, match=message):
        how.split(log)


@pytest.mark.parametrize(
    "how", [Windows(), ModelAges(step=1), Sessions(), Temporal(validation=0.1)]
)
def test_equal_time_stamps_cannot_be_split(how):
    with pytest.raises(DataError, match=r"all ratings carry the same time stamp|is empty"):
        how.split(log_of([(1, i, 7) for i in range(9)]))
    with pytest.raises(DataError, match="needs time stamps"):
        how.split(us.read_ratings({"user": [1, 2], "item": [1, 2]}))


@pytest.mark.parametrize(
    ("kind", "given_settings", "message"),
    [
        (Windows, {"step": "1d"}, "needs length"),
        (Windows, {"number": 2, "length": "1d", "test": 0.2}, "end with the log"),
        (Windows, {"start": 5, "test": 0.2}, "either a share"),
        (Windows, {"length": "1month"}, "length must be a duration of more than 0, such as '7d'"),
        (Windows, {"length": 0}, "length must be a duration of more than 0"),
        (Windows, {"length": "-1d"}, "length must be a duration"),
        (Windows, {"gap": -1}, "gap must be a duration of 0 or more"),
        (Windows, {"length": float("nan")}, "length must be a duration"),
        (Windows, {"length": True}, "length must be a duration"),
        (Windows, {"pick": "best"}, "pick"),
        (Windows, {"empty": "keep"}, "empty"),
        (ModelAges, {}, "say how old the models are"),
        (ModelAges, {"ages": ("0d", "1d"), "step": "1d"}, "say how old the models are"),
        (ModelAges, {"ages": ("1d", "0d")}, "the youngest first"),
        (ModelAges, {"ages": ("0d",)}, "two or more"),
        (ModelAges, {"ages": "0d"}, "ages must be a list of text or a number"),
        (ModelAges, {"ages": ("0d", "1d"), "number": 3}, "goes with step"),
        (Sessions, {"pause": "soon"}, "pause must be a duration"),
        (Sessions, {"pick": "all"}, "pick"),
        (Sessions, {"test": 0.1, "at": 3}, "either a share"),
        (Temporal, {"validation": 0.1, "validation_at": 3}, "either a share"),
        (Temporal, {"validation_at": 3, "per_user": True}, "one moment for everyone"),
        (Temporal, {"gap": "1d", "per_user": True}, "a time for everyone"),
    ],
)  # fmt: skip
def test_settings_that_do_not_go_together(kind, given_settings, message):
    with pytest.raises(SettingError, match=message):
        kind(**given_settings)


# Ages


@given(rows_of_logs, st.sampled_from([None, 9]), st.sampled_from(["test", "train"]))
@examples(100)
def test_model_ages_by_definition(rows, train_length, ties):
    """One test for all ages; older models end earlier; the judged have rows at every age."""
    ages = (0, 3, 6)
    how = ModelAges(ages=ages, train_length=train_length, at=18, length=8, ties=ties)
    made = outcome(how, log_of(rows))
    if made is None:
        return

    def is_before(time, moment):
        return time <= moment if ties == "train" else time < moment

    before = [r for r in rows if is_before(r[2], 18)]
    test = [r for r in rows if not is_before(r[2], 18) and is_before(r[2], 26)]
    warm = None
    for age, split in zip(ages, made, strict=True):
        first = -math.inf if train_length is None else 18 - age - train_length
        train = [r for r in rows if is_before(r[2], 18 - age) and not is_before(r[2], first)]
        assert held(split) == expected(train, before, test)
        users = {u for u, *_ in train}
        warm = users if warm is None else warm & users
        check_counts(split, rows)
        assert split.facts["age"] == age
    assert [split.label for split in made] == ["age0", "age3s", "age6s"]
    ids = made[0].train.users.values.to_list()
    tested = {user for user, _ in pairs(made[0].test)}
    for split in made:
        assert {ids[n] for n in np.flatnonzero(split.judged)} == warm
        assert split.facts["judged_users"] == len(warm & tested)
        assert split.facts["users_not_judged"] == len(tested - warm)


def test_no_age_is_asked_for_items_met_before_the_window():
    """The old model has not seen that user 1 met b: it must not be asked for b either."""
    log = log_of([(1, "a", 0), (2, "a", 1), (1, "b", 5), (2, "c", 6), (1, "c", 10), (2, "b", 11)])
    for split in ModelAges(ages=(0, 6), at=10).split(log):
        lists = us.targets.AllItems().lists(split, liked=1)
        run = us.rank(us.recommend.Popularity().fit(split.train), lists, depth=3)
        ranked = run.items.raw(run.item[run.item >= 0]).to_list()
        assert sorted(ranked) == ["b", "c"]  # each user has one item left
    older = ModelAges(ages=(0, 6), at=10).split(log)[1]
    assert lists.facts["known"] == 2
    assert "2 user-item pairs that users met before the test" in lists.notes[-1]
    bare = us.targets.AllItems().lists(replace(older, known={}), liked=1)
    assert bare.size.tolist() == [2, 2]


# Sessions


def plain_sessions(rows, pause):
    """Return the sessions of each user as lists of rows in order of time."""
    sessions = []
    for user in sorted({u for u, *_ in rows}):
        mine = sorted((r for r in rows if r[0] == user), key=lambda r: (r[2], r[1]))
        for at, row in enumerate(mine):
            if at == 0 or row[2] - mine[at - 1][2] > pause:
                sessions.append([])
            sessions[-1].append(row)
    return sessions


@given(
    rows_of_logs,
    st.integers(1, 12),
    st.sampled_from(["first", "last", "next"]),
    st.sampled_from(["test", "train"]),
    st.sampled_from(["drop", "keep"]),
    st.integers(1, 2),
    st.sampled_from([None, 14]),
)
@examples(150)
def test_sessions_by_definition(rows, pause, pick, ties, seen, least, at):
    how = Sessions(pause=pause, pick=pick, ties=ties, seen=seen, least=least, at=at,
                   test=0.4 if at is None else None)  # fmt: skip
    made = outcome(how, log_of(rows))
    if made is None:
        return
    (split,) = made
    sessions = plain_sessions(rows, pause)
    begins = sorted(one[0][2] for one in sessions)
    if at is None:
        first = len(begins) - round(0.4 * len(begins))
        cut = begins[first]
        tied = first > 0 and begins[first - 1] == cut
    else:
        cut, tied = at, True
    late = [one[0][2] > cut if tied and ties == "train" else one[0][2] >= cut for one in sessions]
    early = [row for one, is_late in zip(sessions, late, strict=True) if not is_late for row in one]
    train = [r for r in early if r[2] < cut or (ties == "train" and r[2] == cut)]
    torn = len(early) - len(train)
    tests = [one for one, is_late in zip(sessions, late, strict=True) if is_late]
    targets, again = plain_targets(tests, early, pick, seen, least)
    assert pairs(split.train) == counts(train)
    facts = split.facts
    assert facts["targets"] == sum(map(len, targets))
    if pick == "next" or not any(len({r[2] for r in one}) < len(one) for one in tests):
        assert pairs(split.test) == counts(row for one in targets for row in one)
    assert facts["cut"] == written(cut * SECOND)
    assert facts["sessions"] == len(sessions)
    assert (facts["sessions_train"], facts["sessions_test"]) == (
        late.count(False),
        late.count(True),
    )
    assert facts["left_out_torn"] == torn
    assert facts["left_out_seen"] == again
    assert facts["left_out"] == len(rows) - len(train) - facts["targets"]
    reasons = [facts[f"left_out_{one}"] for one in ("torn", "seen", "pick")]
    assert sum(reasons) == facts["left_out"]
    assert facts["short_sessions"] == sum(len(one) < least for one in tests)
    assert facts["sessions_without_target"] == sum(not one for one in targets)
    known = {(u, i) for u, i, _ in early} - {(u, i) for u, i, _ in train}
    assert held(split)[2] == known
    check_log(split, sessions, train)


def plain_targets(tests, early, pick, seen, least):
    """Return the targets of each test session, and how many rows were met before."""
    met = {(u, i) for u, i, _ in early}
    rows = sorted(
        ((r, len(one) >= least) for one in tests for r in one),
        key=lambda r: (r[0][2], r[0][0], r[0][1]),
    )
    new, again = [], 0
    for row, is_long in rows:
        if seen == "keep" or row[:2] not in met:
            new.append(row)
        else:
            again += is_long
        met.add(row[:2])
    left, targets = list(new), []
    for one in tests:
        able = []
        for place, row in enumerate(one if len(one) >= least else []):
            if row in left:
                left.remove(row)
                able.append((place, row))
        if pick == "next":
            targets.append([row for place, row in able if place])
        else:
            targets.append([row for _, row in (able[:1] if pick == "first" else able[-1:])])
    return targets, again


def check_log(split, sessions, train):
    """Check that the logs hold all rows in order, with their place in the session."""
    place = defaultdict(list)
    for number, one in enumerate(sessions):
        for step, row in enumerate(one):
            place[row].append((number, step + 1))
    logs = {name: log.to_polars() for name, log in split.logs.items()}
    assert logs["train"].height == len(train)
    for frame in logs.values():
        assert frame["time"].is_sorted()
        for row in frame.iter_rows(named=True):
            seconds = int((row["time"] - datetime(1970, 1, 1)).total_seconds())
            assert (row["session"], row["step"]) in place[row["user"], row["item"], seconds]
    steps = split.logs["test"].to_polars().filter("target")
    assert steps.height == split.facts["targets"]
    assert set(zip(steps["user"], steps["item"], strict=True)) == set(pairs(split.test))


def test_torn_sessions_are_not_trained_on_after_the_cut():
    """User 1's first session runs over the cut at 10; its tail is known, and no target."""
    log = log_of([(1, "a", 8), (1, "b", 9), (1, "c", 11), (1, "d", 40), (1, "b", 41), (2, "a", 2)])
    (split,) = Sessions(pause=5, at=10, pick="first").split(log)
    assert set(pairs(split.train)) == {(1, "a"), (1, "b"), (2, "a")}
    assert set(pairs(split.test)) == {(1, "d")}
    assert set(pairs(split.known["test"])) == {(1, "c")}
    assert (split.facts["torn_sessions"], split.facts["left_out_torn"]) == (1, 1)
    frame = split.logs["test"].to_polars()
    assert frame.select("item", "session", "step", "target").rows() == [
        ("c", 0, 3, False), ("d", 1, 1, True), ("b", 1, 2, False),
    ]  # fmt: skip


def test_a_random_event_of_each_session_is_as_likely_as_any():
    """900 sessions of three: each place is drawn a third of the time, within 4.5 deviations."""
    rows = [(u, 0, 0) for u in range(900)] + [
        (u, 1 + 3 * u + k, 100 + k) for u in range(900) for k in range(3)
    ]
    (split,) = Sessions(pause=10, at=50, pick="random").split(log_of(rows), 5)
    test = split.logs["test"].to_polars().filter("target")
    drawn = np.bincount(test["step"], minlength=4)[1:]
    assert drawn.sum() == 900
    assert (np.abs(drawn - 300) < 4.5 * np.sqrt(900 * 2 / 9)).all()


# Picks within a window


@given(rows_of_logs, st.sampled_from(["first", "last", "next"]), st.sampled_from(["drop", "keep"]))
@examples(100)
def test_targets_within_a_window(rows, pick, seen):
    how = Windows(number=1, length=10, start=12, pick=pick, seen=seen)
    made = outcome(how, log_of(rows))
    if made is None:
        return
    (split,) = made
    before = {r[:2] for r in rows if r[2] < 12}
    test = sorted((r for r in rows if 12 <= r[2] < 22), key=lambda r: (r[2], r[0], r[1]))
    new, met = [], set(before)
    for row in test:
        if seen == "keep" or row[:2] not in met:
            new.append(row)
        met.add(row[:2])
    result = pairs(split.test)
    if pick == "next":
        assert result == counts(new)
    else:
        for user in {u for u, *_ in new}:
            mine = [r for r in new if r[0] == user]
            extreme = (min if pick == "first" else max)(r[2] for r in mine)
            chosen = [i for u, i in result if u == user]
            assert len(chosen) == 1
            assert (user, chosen[0], extreme) in mine
        several = {u for u, *_ in new if _tied(new, u, pick)}
        assert split.facts["users_with_ties_at_pick"] == len(several)
    check_counts(split, rows)
    log = split.logs["test"].to_polars()
    assert log.height == len(test)
    assert log.filter("target").height == split.facts["events_test"]
    for user, part in log.group_by("user"):
        assert part["step"].to_list() == list(range(1, part.height + 1)), user


def _tied(rows, user, pick):
    times = [r[2] for r in rows if r[0] == user]
    return times.count(min(times) if pick == "first" else max(times)) > 1


# Validation


@given(rows_of_logs, st.sampled_from(["test", "train"]), st.integers(0, 4))
@examples(100)
def test_a_validation_part_by_definition(rows, ties, gap):
    how = Temporal(at=20, validation_at=12, ties=ties, gap=gap)
    made = outcome(how, log_of(rows))
    if made is None:
        return

    def is_before(time, moment):
        return time <= moment if ties == "train" else time < moment

    (split,) = made
    train = [r for r in rows if is_before(r[2], 12 - gap)]
    valid = [r for r in rows if not is_before(r[2], 12) and is_before(r[2], 20 - gap)]
    before = {name: [r for r in rows if is_before(r[2], at)] for name, at in
              (("validation", 12), ("test", 20))}  # fmt: skip
    test = [r for r in rows if not is_before(r[2], 20)]
    assert held(split) == expected(train, before["test"], test)
    _, new, known = expected(train, before["validation"], valid)
    assert pairs(split.judgments["validation"]) == new
    assert set(pairs(split.known["validation"]) if "validation" in split.known else ()) == known
    assert split.facts["ties_at_validation_cut"] == sum(t == 12 for *_, t in rows)
    check_counts_with_validation(split, rows)


def check_counts_with_validation(split, rows):
    facts = split.facts
    assert facts["events_train"] + facts["events_test"] + facts["left_out"] == len(rows)


@given(rows_of_logs)
@examples(100)
def test_training_on_validation_is_the_split_without_it(rows):
    """Of ratings, without a gap: the same parts as one cut makes."""
    data = ratings_of(rows)
    made = outcome(Temporal(test=0.3, validation=0.3), data)
    if made is None:
        return
    (plain,) = Temporal(test=0.3).split(data)
    final = made[0].with_validation_in_train()
    assert final.train.to_polars().rows() == plain.train.to_polars().rows()
    assert final.test.to_polars().rows() == plain.test.to_polars().rows()
    assert not final.judgments
    assert not final.known.get("test") or not len(final.known["test"])
    assert (final.facts["train"], final.facts["left_out"]) == (len(plain.train), 0)
    with pytest.raises(SettingError, match="there is no validation part"):
        plain.with_validation_in_train()


def test_shares_of_a_validation_part():
    data = us.read_ratings({"user": [1] * 20, "item": range(20), "time": range(20)})
    (split,) = Temporal(test=0.2, validation=0.1).split(data)
    assert [len(split.train), len(split.judgments["validation"]), len(split.test)] == [14, 2, 4]
    assert split.facts["validation_cut"] == "1970-01-01T00:00:14"
    (each,) = Temporal(test=0.2, validation=0.1, per_user=True).split(data)
    assert [len(each.train), len(each.judgments["validation"]), len(each.test)] == [14, 2, 4]
    lists = us.targets.AllItems().lists(split, liked=1)
    assert lists.size.tolist() == [4]  # 14 train, 2 validate: neither are targets
    of_validation = us.targets.AllItems().lists(split, liked=1, judgments="validation")
    assert of_validation.size.tolist() == [6]


def test_a_plain_cut_keeps_its_card_and_facts():
    data = us.read_ratings({"user": [1] * 20, "item": range(20), "time": range(20)})
    (split,) = Temporal(test=0.2).split(data)
    assert split.design == {
        "protocol": "temporal", "test": 0.2, "at": None, "ties": "test", "per_user": False,
        "seed": 0,
    }  # fmt: skip
    assert set(split.facts) == {"train", "test", "test_share", "left_out", "cut", "ties_at_cut"}


# On disk and in plans


@pytest.mark.parametrize("how", SPLITTERS, ids=repr)
def test_everything_of_a_split_is_there_when_it_is_loaded(how, tmp_path):
    rng = np.random.default_rng(4)
    rows = list(zip(*(rng.integers(0, most, 200).tolist() for most in (9, 12, 60)), strict=True))
    log = log_of(rows)
    card = save_splits(how, log, tmp_path / "parts", 3)
    for made, loaded in zip(how.split(log, 3), load_splits(tmp_path / "parts"), strict=True):
        assert held(loaded) == held(made)
        assert {k: pairs(v) for k, v in loaded.known.items()} == {
            k: pairs(v) for k, v in made.known.items()
        }
        for name, one in made.logs.items():
            assert loaded.logs[name].to_polars().equals(one.to_polars())
        judged = [
            None if one.judged is None else
            set(one.train.users.raw(np.flatnonzero(one.judged)).to_list())
            for one in (made, loaded)
        ]  # fmt: skip
        assert judged[0] == judged[1]
    files = {path.name for path in (tmp_path / "parts").rglob("*.parquet")}
    listed = {f for one in card["splits"] for f in (*one["files"], *one.get("further_files", ()))}
    assert files == listed
    save_splits(Temporal(), log, tmp_path / "parts", force=True)
    assert {path.name for path in (tmp_path / "parts").rglob("*.parquet")} == {
        "train.parquet", "test.parquet",
    }  # fmt: skip


def test_a_plan_makes_each_window_alone(monkeypatch):
    """The task of window 2 does not make window 1."""
    rng = np.random.default_rng(5)
    rows = list(zip(*(rng.integers(0, most, 400).tolist() for most in (20, 15, 90)), strict=True))
    made = []
    split = Windows._split
    monkeypatch.setattr(Windows, "_split", lambda *a: made.append(a[3]) or split(*a))
    plan = us.Plan(
        Windows(number=3, test=0.6),
        algorithms=[us.recommend.Popularity()],
        relevance=us.Relevance(liked=1),
        metrics=["P@3"],
    )
    results = us.run_plan(log_of(rows), plan)
    assert list(results.by_fold()) == ["window1", "window2", "window3"]
    assert sorted(made) == [0, 1, 2]


def test_a_plan_judges_the_users_that_ages_share():
    rng = np.random.default_rng(6)
    rows = list(zip(*(rng.integers(0, most, 300).tolist() for most in (40, 15, 90)), strict=True))
    ages = ModelAges(number=3, step=25, test=0.3)
    plan = us.Plan(
        [ages],
        algorithms=[us.recommend.Popularity()],
        relevance=us.Relevance(liked=1),
        metrics=["P@3"],
    )
    log = log_of(rows)
    by_age = us.run_plan(log, plan).by_fold()
    assert list(by_age) == ["age0", "age25s", "age50s"]
    judged = {tuple(one.lists["user"].to_list()) for one in by_age.values()}
    assert len(judged) == 1
    shared = ages.split(log)[0]
    assert set(judged.pop()) == set(np.flatnonzero(shared.judged).tolist())
    assert shared.facts["users_not_judged"] > 0


# Durations


@given(st.integers(1, 10**9), st.sampled_from(["ms", "s", "min", "h", "d", "w"]))
def test_durations_are_read_as_they_are_written(number, unit):
    sizes = {"ms": 1e3, "s": 1e6, "min": 60e6, "h": 3600e6, "d": 86400e6, "w": 7 * 86400e6}
    if number * sizes[unit] >= 1e17:
        return
    micros = duration(f"{number}{unit}")
    assert micros == number * int(sizes[unit])
    assert duration(lasting(micros)) == micros
    assert duration(f" {number} {unit.upper()} ") == micros
    assert duration(number / 1000) == number * 1000
