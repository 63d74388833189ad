"""Several lists per user: each is evaluated with what its user did from its date on."""

import math

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

import unskew as us
from shared.examples import examples

K = 3
LIKED = 4
SHORT = pytest.mark.filterwarnings("ignore:.* hold at most:unskew.DataWarning")
"""Drawn lists may all be shorter than the cutoff."""
DAILY = {
    "user": [1, 1, 1, 1, 2, 2],
    "date": ["2024-05-01"] * 2 + ["2024-05-02"] * 2 + ["2024-05-01"] * 2,
    "item": ["a", "b", "a", "c", "a", "b"],
    "rank": [1, 2, 1, 2, 1, 2],
}
TEST = {
    "user": [1, 1, 2, 3],
    "item": ["a", "c", "b", "z"],
    "rating": [5, 5, 4, 5],
    "time": ["2024-05-01T10:00", "2024-05-03T00:00", "2024-04-01T00:00", "2024-05-05T00:00"],
}


# Plain counterparts


def list_values(items, rated):
    """Return P@K and nDCG@K of a list; `rated` are ratings by item."""
    liked = [rated.get(item, 0) >= LIKED for item in items[:K]]
    best = min(K, sum(rating >= LIKED for rating in rated.values()))
    top = sum(hit / math.log2(place + 2) for place, hit in enumerate(liked))
    ideal = sum(1 / math.log2(place + 2) for place in range(best))
    return sum(liked) / K, top / ideal if ideal else 0.0


def plain_means(test, runs, follows):
    """Return the means of P@K and nDCG@K by system: of each user's lists, then of users.

    `test` holds rows (user, item, rating, moment), `runs` lists by system, user and moment;
    `follows(row, moment)` tells whether a test rating counts for a list.
    """
    keys = {key for lists in runs.values() for key in lists}
    keys |= {(user, None) for user, *_ in test if user not in {owner for owner, _ in keys}}
    means = {}
    for name, lists in runs.items():
        users = {}
        for user, moment in keys:
            rated = {
                item: rating
                for owner, item, rating, when in test
                if owner == user and (moment is None or follows(when, moment))
            }
            if rated:
                values = list_values(lists.get((user, moment), []), rated)
                users.setdefault(user, []).append(values)
        each = [np.mean(values, axis=0) for values in users.values()]
        means[name] = tuple(np.mean(each, axis=0)) if each else (math.nan, math.nan)
    return means


def as_rows(lists, column):
    rows = [
        (user, moment, item, rank)
        for (user, moment), items in lists.items()
        for rank, item in enumerate(items, start=1)
    ]
    return pl.DataFrame(rows, ["user", column, "item", "rank"], orient="row")


def moments_of(days):
    return [1_700_000_000 + 3600 * day for day in days]


@st.composite
def logs(draw, unique=True):
    """Draw test rows and the lists of two systems, which may lack lists of each other."""
    users, items, days = range(4), range(6), range(5)
    pair = st.tuples(st.sampled_from(users), st.sampled_from(items))
    row = st.tuples(pair, st.integers(1, 5), st.sampled_from(days))
    by = {"unique_by": lambda one: one[0]} if unique else {}
    rows = draw(st.lists(row, min_size=1, max_size=20, **by))
    test = [(user, item, rating, moments_of([day])[0]) for (user, item), rating, day in rows]
    test.append((0, 99, 5, moments_of([2])[0]))  # some rating is liked
    runs = {}
    for name in "ab":
        lists = draw(
            st.dictionaries(
                st.tuples(st.sampled_from(users), st.sampled_from(moments_of(days))),
                st.lists(st.sampled_from(items), min_size=1, max_size=4, unique=True),
                min_size=1,
                max_size=8,
            )
        )
        lists[test[0][0], moments_of([0])[0]] = [test[0][1]]  # some user is in both
        runs[name] = lists
    return test, runs


def evaluated(test, runs, column, **options):
    tables = {name: as_rows(lists, column) for name, lists in runs.items()}
    return us.evaluate(
        test, tables, [f"P@{K}", f"nDCG@{K}"], liked=LIKED, gain="binary", lists=("user", column),
        **options,
    )  # fmt: skip


def assert_same(scores, expected):
    for name, (precision, ndcg) in expected.items():
        assert scores.mean(f"P@{K}")[name] == pytest.approx(precision, nan_ok=True)
        assert scores.mean(f"nDCG@{K}")[name] == pytest.approx(ndcg, nan_ok=True)


@SHORT
@examples(40)
@given(log=logs())
def test_dates_give_what_plain_python_gives(log):
    test, runs = log
    table = pl.DataFrame(test, ["user", "item", "rating", "time"], orient="row")
    expected = plain_means(test, runs, lambda when, moment: when >= moment)
    assert_same(evaluated(table, runs, "time"), expected)


@SHORT
@examples(40)
@given(log=logs(unique=False))
def test_of_a_log_what_follows_a_list_counts(log):
    """An item that a user met before and after a list follows it: its last rating counts."""
    test, runs = log
    test = sorted(test, key=lambda row: (row[3], row[0], row[1], row[2]))
    table = pl.DataFrame(test, ["user", "item", "rating", "time"], orient="row")
    events = us.read_events(table, feedback="explicit")
    expected = plain_means(test, runs, lambda when, moment: when >= moment)
    assert_same(evaluated(events, runs, "time"), expected)


@SHORT
@examples(40)
@given(log=logs())
def test_sessions_give_what_plain_python_gives(log):
    test, runs = log
    names = {moment: f"s{number}" for number, moment in enumerate(moments_of(range(5)))}

    def name(user, moment):
        return f"{user}-{names[moment]}"

    test = [(user, item, rating, name(user, when)) for user, item, rating, when in test]
    runs = {
        system: {(user, name(user, moment)): items for (user, moment), items in lists.items()}
        for system, lists in runs.items()
    }
    table = pl.DataFrame(test, ["user", "item", "rating", "session"], orient="row")
    expected = plain_means(test, runs, lambda when, moment: when == moment)
    assert_same(evaluated(table, runs, "session"), expected)


@SHORT
@examples(20)
@given(log=logs())
def test_comparisons_have_one_value_per_user(log):
    test, runs = log
    table = pl.DataFrame(test, ["user", "item", "rating", "time"], orient="row")
    scores = evaluated(table, runs, "time")
    pairing = us.stats.paired(scores)
    users = {user for user, *_ in test}
    assert set(pairing.users.values) <= users
    means = pairing.matrix(f"P@{K}").mean(axis=0)
    assert means == pytest.approx(list(scores.mean(f"P@{K}").values()))


def test_one_list_per_user_gives_what_it_gives_without_dates():
    rng = np.random.default_rng(3)
    runs = {
        name: {(user, 1_700_000_000): list(rng.permutation(9)[:4]) for user in range(30)}
        for name in "ab"
    }
    test = [(u, int(i), int(rng.integers(1, 6)), 1_700_000_001) for u in range(30) for i in
            rng.permutation(9)[:5]]  # fmt: skip
    table = pl.DataFrame(test, ["user", "item", "rating", "time"], orient="row")
    train = pl.DataFrame({"user": [0, 1], "item": [20, 21], "rating": [5, 4]})
    lists = {name: as_rows(one, "date") for name, one in runs.items()}
    metrics = ["P@3", "nDCG@3", "SR@3", "Coverage@3", "AUC", "Novelty@3", "condensed-P@3"]
    options = {"liked": 4, "train": train}
    dated = us.evaluate(table, lists, metrics, lists="user,date", **options)
    plain = us.evaluate(table, {k: v.drop("date") for k, v in lists.items()}, metrics, **options)
    for name in "ab":
        assert dated.means()[name] == pytest.approx(plain.means()[name], rel=1e-14)
        for metric in dated.labels:
            ours, theirs = (one.values(name, metric) for one in (dated, plain))
            assert np.array_equal(ours, theirs, equal_nan=True)


# What is counted and said


def test_an_example_by_hand():
    """User 1: 1 of 2 on the first day (c counts for nDCG only), 1 of 2 on the second.

    User 2 rated before the list: not averaged. User 3 has no list and scores 0.
    """
    scores = us.evaluate(TEST, {"mine": DAILY}, ["P@2", "RR"], liked=4, lists=("user", "date"))
    assert scores.means() == {"mine": {"P@2": 0.25, "RR": 0.375}}
    values = scores.per_user()
    assert values["user"].to_list() == [1, 1, 2, 3]
    assert [str(time)[:10] for time in values["time"]] == [
        "2024-05-01", "2024-05-02", "2024-05-01", "None",
    ]  # fmt: skip
    assert values["test"].to_list() == [2, 1, 0, 1]
    assert scores.card["lists"] == {
        "by": ["user", "date"], "kind": "date", "judgments": "from the date on",
    }  # fmt: skip
    text = str(scores)
    assert "mean over 2 users (with-test), of each the mean of the lists" in text
    assert (
        "3 lists of 2 users, one per user and date (column 'date', 1.5 per user); each is "
        "evaluated with what its user rated from that date on: 1.0 test ratings per list" in text
    )
    assert "1 test rating is earlier than every list of the same user, and not used" in text
    assert "mine: 1 list with test data is missing; they score 0" in text
    assert "mine: 1 list without test data is not averaged" in text


def test_saved_scores_keep_the_lists(tmp_path):
    scores = us.evaluate(TEST, {"mine": DAILY}, ["P@2"], liked=4, lists=("user", "date"))
    scores.save(tmp_path / "saved")
    loaded = us.Scores.load(tmp_path / "saved")
    assert loaded.means() == scores.means()
    assert loaded.per_user().equals(scores.per_user())


def test_a_day_begins_at_midnight_and_a_time_at_its_moment():
    """Ratings of the day of a list follow it, unless the list has a time of day."""
    run = {"user": [1], "date": ["2024-05-01"], "item": ["a"], "rank": [1]}
    test = {"user": [1], "item": ["a"], "rating": [5], "time": ["2024-05-01T00:00:00"]}
    later = {**test, "time": ["2024-05-01T08:00:00"]}

    def precision(tests, date):
        runs = {"mine": {**run, "date": [date]}}
        return us.evaluate(tests, runs, "P@1", liked=4, lists=("user", "date"), users="all").mean(
            "P@1"
        )["mine"]

    assert precision(test, "2024-05-01") == 1
    assert precision(later, "2024-05-01T07:00:00") == 1
    assert precision(later, "2024-05-01T09:00:00") == 0
    assert precision(test, "2024-05-01T09:00:00") == 1  # ratings without a time of day
    assert precision(test, "2024-05-02T09:00:00") == 0


def test_training_items_in_lists_are_counted_by_user():
    train = {"user": [1, 2, 2], "item": ["a", "x", "y"], "rating": [5, 5, 5]}
    with pytest.warns(us.DataWarning, match="2 recommended items are in the user's training"):
        us.evaluate(TEST, {"mine": DAILY}, "P@2", liked=4, lists=("user", "date"), train=train)


def test_the_gate_decides_by_users():
    """Users have 1 to 7 lists: the mean of each counts once."""
    rng = np.random.default_rng(5)
    days = [f"2024-05-0{day}" for day in range(1, 8)]
    keys = [(user, day) for user in range(60) for day in days[: 1 + user % 7]]
    good = {key: [int(i) for i in rng.permutation(6)[:4]] for key in keys}
    runs = {"new": {key: [0, *good[key][1:]] for key in keys}, "old": good}
    runs["new"] = {key: list(dict.fromkeys(items)) for key, items in runs["new"].items()}
    test = [(user, item, 5 if item < 2 else 1, "2024-05-09") for user in range(60)
            for item in range(4)]  # fmt: skip
    table = pl.DataFrame(test, ["user", "item", "rating", "time"], orient="row")
    lists = {name: as_rows(one, "date") for name, one in runs.items()}
    names = {"candidate": "new", "production": "old", "metric": f"P@{K}"}
    result = us.gate(table, lists, **names, liked=LIKED, lists=("user", "date"))
    expected = plain_means(test, runs, lambda when, moment: when >= moment)
    assert result.better.users == 60
    assert result.better.candidate == pytest.approx(expected["new"][0])
    assert result.better.production == pytest.approx(expected["old"][0])
    words = f"{len(keys)} lists of 60 users, one per user and date"
    assert any(note.startswith(words) for note in result.notes)
    scores = us.evaluate(table, lists, f"P@{K}", liked=LIKED, gain="binary", lists=("user", "date"))
    change = us.compare(scores, against="old").table()["value"][0]
    assert result.better.change == pytest.approx(change)


# What is refused


@pytest.mark.parametrize(
    ("changes", "lists", "message"),
    [
        ({"time": None}, ("user", "date"), "test ratings have no time: name its column with time="),
        ({"time": [1, 2, 3, 4]}, ("user", "date"), "their units differ"),
        ({}, ("user", "day"), "no column 'day' for lists; the columns are: user, date, item, rank"),
    ],
)
def test_what_cannot_be_dated_is_refused(changes, lists, message):
    test = {name: column for name, column in {**TEST, **changes}.items() if column is not None}
    with pytest.raises(us.DataError, match=message):
        us.evaluate(test, {"mine": DAILY}, "P@2", liked=4, lists=lists)


@pytest.mark.parametrize(
    "lists", ["user", "user,", ("user",), ("user", "date", "item"), ("date", "user"), ("user",) * 2]
)
def test_columns_of_lists_are_two_and_users_come_first(lists):
    with pytest.raises(us.SettingError, match=r"such as lists=\('user', 'date'\); got"):
        us.read_run(DAILY, lists=lists)


def test_sessions_need_the_column_in_the_test_ratings():
    run = {**DAILY, "session": ["s1", "s1", "s2", "s2", "s3", "s3"]}
    with pytest.raises(us.DataError, match="no column 'session' beside that of the users"):
        us.evaluate(TEST, {"mine": run}, "P@2", liked=4, lists=("user", "session"))
    with pytest.raises(us.DataError, match=r"read_ratings\(…, tags=\['session'\]\)"):
        us.evaluate(us.read_ratings(TEST), {"mine": run}, "P@2", liked=4, lists=("user", "session"))
    shared = {"user": [1, 2], "item": ["a", "b"], "rating": [5, 5], "session": ["s1", "s1"]}
    with pytest.raises(us.DataError, match="1 session has test ratings of several users"):
        us.evaluate(shared, {"mine": run}, "P@2", liked=4, lists=("user", "session"))


def test_a_pair_may_occur_in_several_sessions():
    run = {"user": [1, 1], "session": ["s1", "s2"], "item": ["a", "a"], "rank": [1, 1]}
    test = {"user": [1, 1], "item": ["a", "a"], "rating": [1, 5], "session": ["s1", "s2"]}
    scores = us.evaluate(test, {"mine": run}, "P@1", liked=4, lists=("user", "session"))
    assert scores.per_user()["P@1"].to_list() == [0, 1]
    assert scores.per_user()["session"].to_list() == ["s1", "s2"]
    kept = us.read_ratings({**test, "item": ["a", "b"]}, tags=["session"])
    again = us.evaluate(kept, {"mine": run}, "P@1", liked=4, lists=("user", "session"))
    assert again.per_user()["P@1"].to_list() == [0, 0]


def test_systems_must_be_told_apart_alike():
    dated = us.read_run(DAILY, lists=("user", "date"))
    single = us.read_run({1: ["a"], 2: ["b"]})
    for runs in ({"a": dated, "b": single}, {"b": single, "a": dated}):
        with pytest.raises(us.SettingError, match="b has one list per user, and other systems"):
            us.judge(TEST, runs, liked=4)
    other = us.read_run({**DAILY, "visit": [1, 1, 2, 2, 1, 1]}, lists=("user", "visit"))
    with pytest.raises(us.DataError, match=r"told apart by date .* those of b by session"):
        us.judge(TEST, {"a": dated, "b": other}, liked=4)


ONE_EACH = "takes? one list per user"


def test_whatever_takes_one_list_per_user_says_so():
    judged = us.judge(TEST, {"a": DAILY, "b": DAILY}, liked=4, lists=("user", "date"))
    run = judged.systems["a"]
    calls = [
        lambda: us.stats.robustness(judged, "P@2"),
        lambda: us.estimate(judged, "P@2"),
        lambda: us.audit(judged),
        lambda: us.explain(judged, values={"P@2": 0.5}),
        lambda: us.bias.ladder(us.judge(TEST, {"a": run}, liked=4, train=TEST)),
        lambda: us.judging.hygiene(judged),
        lambda: us.stats.lexirecall(judged),
        lambda: us.stats.item_group_gaps(judged, "popularity"),
        lambda: us.read_run(run),
        lambda: us.evaluate(judged, "P@2", compat="recbole"),
    ]
    for call in calls:
        with pytest.raises(us.SettingError, match=ONE_EACH):
            call()
    with pytest.raises(us.SettingError, match="is for one list per user"):
        us.judge(TEST, {"a": DAILY}, liked=4, lists="user,date", targets="all-items")
    with pytest.raises(us.DataError, match="TREC run has one list per user"):
        run.to_trec("never-written")
