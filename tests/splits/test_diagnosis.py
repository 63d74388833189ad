"""The diagnosis of splits: every check against hand-worked cases and plain twins of its kernels."""

import json
import pickle
from dataclasses import replace
from itertools import pairwise

import numpy as np
import polars as pl
import pytest

import unskew as us
from shared.ratings import ratings, split_of
from unskew import DataError, SettingError, Split
from unskew.data.ratings import under_one_numbering
from unskew.data.steps import Size, Step
from unskew.splits.diagnosis import kernels
from unskew.splits.diagnosis.check import IN_ORDER, LIGHTS, UNITS, amount, days, percent
from unskew.splits.diagnosis.diagnosis import CHECKS
from unskew.splits.diagnosis.fact_checks import survival, truncation
from unskew.splits.diagnosis.feature_checks import ranks
from unskew.splits.diagnosis.over_time import distance, mean_shift
from unskew.splits.diagnosis.parts import (
    DAY,
    GAP,
    Log,
    PartRows,
    SplitParts,
    calendar_of,
    mean_later,
)
from unskew.splits.diagnosis.thresholds import LEAK_SHARE
from unskew.splits.time.temporal import Temporal

MINUTE = 60


def random_split(seed, users=12, items=9, rows=80, test=0.3, late=False):
    """Return a split of random rows in seconds, its parts drawn at random or cut in time."""
    rng = np.random.default_rng(seed)
    cells = rng.choice(users * items, min(rows, users * items), replace=False)
    time = rng.integers(0, 40, cells.size) * 10 * MINUTE
    drawn = time > np.quantile(time, 1 - test) if late else rng.random(cells.size) < test
    table = [
        (int(c // items), int(c % items), int(rng.integers(1, 6)), int(t))
        for c, t in zip(cells, time, strict=True)
    ]
    train = [row for row, is_test in zip(table, drawn, strict=True) if not is_test]
    return split_of(train, [row for row, is_test in zip(table, drawn, strict=True) if is_test])


def parts_of(split, log=None):
    return SplitParts(split, Log.of_split(split) if log is None else Log.of(log))


def table_of(part):
    """Return rows (user, item, value, microseconds)."""
    return list(
        zip(
            part.user.tolist(), part.item.tolist(), part.value.tolist(), part.time.tolist(),
            strict=True,
        )
    )  # fmt: skip


def reading(split, key, **options):
    (one,) = us.splits.diagnose(split, **options).check(key).readings.values()
    return one


# What every check promises


def test_the_list_of_checks():
    keys = [one.key for one in CHECKS]
    assert len(set(keys)) == len(keys) >= 25
    assert len({one.title for one in CHECKS}) == len(keys)
    for one in CHECKS:
        assert one.unit in UNITS
        assert one.threshold
        judges = not one.threshold.startswith("a fact")
        assert bool(one.remedy) == judges, one.key
        assert one.remedy.endswith(".") == judges


@pytest.mark.parametrize("late", [False, True])
@pytest.mark.parametrize("seed", range(3))
def test_contract(seed, late):
    split = random_split(seed, late=late)
    result = us.splits.diagnose(split)
    assert [one.key for one in result.checks] == [one.key for one in CHECKS]
    for one in result.checks:
        assert one.light in LIGHTS
        assert list(one.readings) == [split.label]
        assert one.sentence.endswith(".")
        assert "nan" not in one.sentence
        assert bool(one.remedy) == (one.light in ("leak", "look"))
        if one.light == "unknown":
            assert one.value is None
        if one.light == "ok":
            assert one.value == 0
        if one.light in ("leak", "look"):
            assert one.value > 0
    facts = [one.key for one in CHECKS if one.threshold.startswith("a fact")]
    assert {result.check(key).light for key in facts} <= {"shown", "unknown"}
    assert json.loads(json.dumps(result.to_dict()))["lights"] == result.lights
    assert len(str(result).splitlines()) < 60
    assert max(map(len, str(result).splitlines())) <= 100


def test_rows_in_any_order_give_the_same_bits():
    split = random_split(1)
    tables = {name: table_of(part) for name, part in (("a", split.train), ("b", split.test))}
    shuffled = split_of(
        *(
            [(u, i, v, t // 10**6) for u, i, v, t in np.random.default_rng(5).permutation(rows)]
            for rows in tables.values()
        )
    )
    first, second = us.splits.diagnose(split), us.splits.diagnose(shuffled)
    assert first.to_dict() == second.to_dict()
    assert str(first) == str(second)


def test_lights_are_counted_and_shown_in_order():
    result = us.splits.diagnose(random_split(0))
    verdict = result.verdict()
    assert verdict.startswith(f"{len(result.leaks)} leaks, ")
    shown = result.display_table()["light"].to_list()
    assert shown == sorted(shown, key=IN_ORDER.index)
    assert sum(map(len, (result.of_light(one) for one in LIGHTS))) == len(CHECKS)
    with pytest.raises(us.UnknownName, match="check 'futur'"):
        result.check("futur")
    with pytest.raises(us.UnknownName, match="light 'red'"):
        result.of_light("red")


def test_a_diagnosis_can_go_to_another_process():
    result = us.splits.diagnose(random_split(0))
    assert pickle.loads(pickle.dumps(result)).to_dict() == result.to_dict()


def test_several_splits_and_their_worst():
    data = ratings([(u, i, 1 + (u + i) % 5, 100 * u + 10 * i) for u in range(20) for i in range(6)])
    folds = us.splits.Random(folds=3).split(data)
    result = us.splits.diagnose(iter(folds), log=data)
    future = result.check("future")
    assert list(future.readings) == ["fold1", "fold2", "fold3"]
    worst = max(future.readings.values(), key=lambda one: one.value)
    assert future.value == worst.value
    assert worst.sentence in future.sentence
    assert future.sentence.startswith("All 3 splits; ")
    assert list(result.check("time-stamps").readings) == ["fold1"]  # of the log, so once
    assert result.numbers().height == 3
    assert result.notes == ()
    assert len(result.timelines) == 3
    again = us.splits.diagnose([folds[0], folds[0]])
    assert list(again.splits) == ["fold1", "fold1 (2)"]
    assert again.notes[0].startswith("No log was given")


def test_what_is_refused():
    split = random_split(0)
    with pytest.raises(SettingError, match="at least one split"):
        us.splits.diagnose([])
    with pytest.raises(SettingError, match="a Split or several of them"):
        us.splits.diagnose(iter([split, 3]))
    with pytest.raises(SettingError, match="test part is empty"):
        us.splits.diagnose(Split(split.train, split.test.take(np.zeros(0, np.int64))))
    untimed = split_of([(1, "a", 3)], [(1, "b", 4)])
    with pytest.raises(DataError, match="nothing to draw over time: The ratings have no time"):
        us.splits.diagnose(untimed).figure("time")


def test_without_time_stamps_time_is_grey():
    untimed = split_of(
        [(u, i, 3) for u in range(5) for i in range(3)], [(u, 4, 3) for u in range(5)]
    )
    result = us.splits.diagnose(untimed)
    assert not result.leaks
    for key in ("future", "user-order", "unborn-items", "torn-sessions", "popularity-drift"):
        assert result.check(key).light == "unknown"
        assert result.check(key).sentence == "The ratings have no time stamps."
    assert result.check("copies").light == "ok"
    one_moment = split_of([(1, "a", 3, 9), (2, "a", 3, 9)], [(1, "b", 4, 9)])
    result = us.splits.diagnose(one_moment)
    assert result.check("future").sentence == "All rows carry the same time stamp."
    assert result.check("time-stamps").light == "look"


# Order in time


def plain_future(train, test):
    later = [sum(t > s for *_, t in train) / len(train) for *_, s in test]
    return sum(later) / len(test)


def plain_user_order(train, test):
    last = {}
    for u, *_, t in train:
        last[u] = max(t, last.get(u, -1))
    return sum(t < last.get(u, -1) for u, *_, t in test) / len(test)


def plain_unborn(train, test):
    birth = {}
    for _, i, _, t in (*train, *test):
        birth[i] = min(t, birth.get(i, t))
    items = {i for _, i, *_ in train}
    return sum(sum(birth[i] > t for i in items) / len(items) for *_, t in test) / len(test)


def plain_sessions(train, test, gap):
    """Return torn test rows, users with a session in both parts, and mean places of test rows."""
    torn, crossing, places = 0, 0, []
    for user in {u for u, *_ in train} & {u for u, *_ in test}:
        mine = [(t, 0) for u, *_, t in train if u == user]
        mine += [(t, 1) for u, *_, t in test if u == user]
        mine.sort()
        together, session = False, [mine[0]]
        sessions = [session]
        for before, row in pairwise(mine):
            if row[0] - before[0] > gap:
                session = []
                sessions.append(session)
            session.append(row)
        for one in sessions:
            latest = max((t for t, is_test in one if not is_test), default=-1)
            torn += sum(is_test and t < latest for t, is_test in one)
            together |= {is_test for _, is_test in one} == {0, 1}
        crossing += together
        places += [at / (len(mine) - 1) for at, (_, is_test) in enumerate(mine) if is_test]
    return torn, crossing, places


@pytest.mark.parametrize("late", [False, True])
@pytest.mark.parametrize("seed", range(6))
def test_order_follows_plain_twins(seed, late):
    split = random_split(seed, late=late)
    train, test = table_of(split.train), table_of(split.test)
    result = us.splits.diagnose(split)
    for key, twin in (
        ("future", plain_future),
        ("user-order", plain_user_order),
        ("unborn-items", plain_unborn),
    ):
        assert result.check(key).value == pytest.approx(twin(train, test), abs=1e-12), key
    torn, crossing, places = plain_sessions(train, test, GAP)
    counts = result.check("torn-sessions").counts
    assert counts["test_rows"] == torn
    assert counts["users_with_session_across_parts"] == crossing
    place = result.check("positional-shift")
    assert place.value == pytest.approx(np.mean(places))
    assert place.counts["rows"] == len(places)


def test_thresholds_of_shares_by_hand():
    train = [(u, f"t{u}", 3, 10 + u) for u in range(999)]
    one_late = [*train, (0, "late", 3, 5_000)]
    test = [(u, "x", 3, 1_000 + u) for u in range(1_000, 1_100)]
    future = reading(split_of(one_late, test), "future")
    assert future.value == pytest.approx(0.001)  # one of 1,000 training rows is later than all
    assert future.light == "leak"
    half = [*train, (0, "late", 3, 2_050)]
    assert reading(split_of(half, test), "future").light == "look"
    assert reading(split_of(train, test), "future").light == "ok"
    assert LEAK_SHARE == 0.001


def test_a_random_split_is_said_to_ignore_time():
    data = us.worlds.event_log("stationary", users=60, items=40, events=1_500, seed=2)
    (split,) = us.splits.Random(test=0.2).split(data.to_ratings("first"))
    result = us.splits.diagnose(split, log=data)
    future = result.check("future")
    assert future.light == "leak"
    assert future.value == pytest.approx(0.5, abs=0.1)
    assert "A random split, or a cut for each user alone, does this" in future.sentence
    assert result.check("popularity-drift").light == "unknown"
    assert not result.drift


def test_equal_times_are_not_later():
    split = split_of([(1, "a", 3, 100), (2, "a", 3, 200)], [(1, "b", 3, 200), (3, "c", 3, 200)])
    lights = us.splits.diagnose(split).lights
    assert (lights["future"], lights["user-order"], lights["unborn-items"]) == ("ok",) * 3


def test_sessions_need_more_than_dates():
    day = 86_400
    split = split_of([(1, "a", 3, 2 * day)], [(1, "b", 3, day), (2, "b", 3, 5 * day)])
    assert reading(split, "torn-sessions").sentence == (
        "Time stamps are dates: sessions cannot be told."
    )


# Rows in both parts


def test_copies_and_repeats_by_hand():
    train = [(1, "a", 3, 10), (1, "b", 3, 10), (2, "a", 4, 10), (3, "c", 5, 11)]
    test = [(1, "a", 3, 10), (1, "b", 4, 10), (2, "a", 4, 99), (4, "c", 5, 99)]
    split = split_of(train, test)
    copies, repeats = reading(split, "copies"), reading(split, "repeats")
    assert (copies.light, copies.value) == ("leak", 0.25)
    assert dict(copies.counts) == {"pairs_in_both": 3, "same_value": 2, "copies": 1}
    assert (repeats.light, repeats.value) == ("shown", 0.5)


def test_copies_without_times():
    explicit = split_of([(1, "a", 3), (1, "b", 3)], [(1, "a", 3), (1, "b", 4)])
    assert reading(explicit, "copies").light == "leak"
    train = us.read_ratings({"user": [1, 1, 2], "item": ["a", "b", "a"]})
    test = us.read_ratings({"user": [1, 2], "item": ["a", "c"]})
    (implicit,) = us.splits.Given(test=test, overlap="keep").split(train)
    copies = reading(implicit, "copies")
    assert copies.light == "look"  # a shop sells the same thing again
    assert "a copy cannot be told from a repeat" in copies.sentence


def test_repeats_on_the_day_of_the_cut_may_be_copies():
    day = 86_400
    train = [(1, "a", 1, day), (1, "b", 1, 2 * day)]
    test = [(1, "b", 1, 2 * day), (2, "b", 1, 3 * day)]
    assert reading(split_of(train, test), "copies").light == "look"
    earlier = [*test, (1, "a", 1, day)]
    assert reading(split_of(train, earlier), "copies").light == "leak"


# Validation


def with_validation(split, valid):
    parts = under_one_numbering(split.train, split.test, ratings(valid))
    return Split(parts[0], parts[1], "given", judgments={"validation": parts[2]})


TRAIN = [(u, i, 3, 10 * u + i) for u in range(20) for i in range(3)]
TEST = [(u, i, 3, 1_000 + 10 * u + i) for u in range(20) for i in range(3, 5)]


@pytest.mark.parametrize(
    ("valid", "light", "words"),
    [
        ([(u, 7, 3, 500 + u) for u in range(20)], "ok", "shares no row with the test"),
        ([(u, 7, 3, 1_100 + u) for u in range(20)], "leak", "is later than a test row"),
        (
            [*[(u, 7, 3, 500 + u) for u in range(20)], TEST[0]],
            "leak",
            "1 test row is in validation too",
        ),
        ([(u, 7, 3, 100 + u) for u in range(20)], "look", "training is later than a validation"),
    ],
)
def test_validation(valid, light, words):
    split = with_validation(split_of(TRAIN, TEST), valid)
    check = us.splits.diagnose(split).check("validation")
    assert check.light == light
    assert words in check.sentence


def test_other_judgments_are_no_validation():
    split = split_of(TRAIN, TEST)
    other = replace(split, judgments={"true": split.test})
    assert reading(other, "validation").sentence == "The split has no validation part."


# Columns


def with_column(split, name, of, values):
    """Return the split with a column that has one value per item or user."""
    parts = []
    for part in (split.train, split.test):
        code = part.item if of == "item" else part.user
        parts.append(replace(part, tags={name: pl.Series(values[code])}))
    return replace(split, train=parts[0], test=parts[1])


@pytest.fixture(scope="module")
def clean():
    log = us.worlds.event_log("warming", users=150, items=120, events=6_000, seed=8)
    return Temporal(test=0.25).split(log.to_ratings("first"))[0]


def statistics(split):
    items, users = len(split.train.items), len(split.train.users)
    count = [np.bincount(one.item, minlength=items) for one in (split.train, split.test)]
    total = [np.bincount(one.item, one.value, items) for one in (split.train, split.test)]
    active = [np.bincount(one.user, minlength=users) for one in (split.train, split.test)]
    return count, total, active


def test_columns_with_test_rows_are_seen(clean):
    (seen, later), (value, later_value), (active, later_active) = statistics(clean)
    mean = (value + later_value) / np.maximum(seen + later, 1)
    for of, column in (
        ("item", seen + later),
        ("item", np.log1p(seen + later)),
        ("item", -3.0 * (seen + later) ** 2),
        ("item", later),
        ("item", mean),
        ("item", 10 * mean - 7),
        ("user", active + later_active),
    ):
        check = reading(with_column(clean, "x", of, column.astype(float)), "features")
        assert check.light == "leak"
        assert "'x' follows the " in check.sentence


def test_honest_columns_are_green(clean):
    (seen, later), (value, _), (active, _) = statistics(clean)
    rng = np.random.default_rng(3)
    world = np.exp(rng.normal(0, 1, seen.size))
    for of, column in (
        ("item", seen),
        ("item", np.log1p(seen)),
        ("item", value / np.maximum(seen, 1)),
        ("item", rng.normal(0, 1, seen.size)),
        ("item", seen + rng.normal(0, 0.1, seen.size)),
        # A popularity measured elsewhere: it predicts the test, and was not computed from it.
        ("item", (seen + later) * np.exp(0.3 * rng.normal(0, 1, seen.size)) * world**0.2),
        ("user", active),
    ):
        assert reading(with_column(clean, "x", of, column.astype(float)), "features").light == "ok"


@pytest.mark.parametrize("days", [1, 2, 3, 7])
def test_honest_columns_are_green_where_the_test_is_a_few_dates(clean, days):
    """Test rows of one date are no steps in time: training and none of them is training."""
    part = np.arange(len(clean.test)) * days // len(clean.test)
    day = 86_400_000_000
    last = int(clean.train.time.max()) // day * day
    split = replace(clean, test=replace(clean.test, time=last + (1 + part) * day))
    (seen, later), _, (active, _) = statistics(split)
    for of, column in (("item", seen), ("user", active)):
        assert reading(with_column(split, "x", of, column.astype(float)), "features").light == "ok"
    leak = with_column(split, "x", "item", (seen + later).astype(float))
    assert reading(leak, "features").light == "leak"


def test_columns_that_cannot_be_checked(clean):
    per_row = [
        replace(one, tags={"x": pl.Series(np.arange(len(one)) * 1.0)})
        for one in (clean.train, clean.test)
    ]
    rows = reading(replace(clean, train=per_row[0], test=per_row[1]), "features")
    assert "No column of numbers belongs to items or users" in rows.sentence
    names = [
        replace(one, tags={"genre": pl.Series(["drama"] * len(one))})
        for one in (clean.train, clean.test)
    ]
    texts = reading(replace(clean, train=names[0], test=names[1]), "features")
    assert texts.sentence.startswith("The ratings have no column of numbers")
    assert reading(clean, "features").sentence.startswith("The ratings have no further column")


def test_numbers_written_as_text_are_numbers(clean):
    (seen, later), *_ = statistics(clean)
    text = np.array([str(one) for one in seen + later], object)
    assert reading(with_column(clean, "x", "item", text), "features").light == "leak"


def test_columns_of_the_log_are_checked_under_any_ids(clean):
    (seen, later), *_ = statistics(clean)
    items = clean.train.items.values
    log = us.read_events(
        {
            "user": ["nobody", *["u"] * len(items)],
            "item": ["none", *map(str, items)],
            "time": np.arange(len(items) + 1) * 1_000,
            "views": [7, *(seen + later).tolist()],
        },
        tags=["views"],
    )
    parts = [
        us.read_ratings(part.to_polars().with_columns(pl.col("item").cast(pl.String)))
        for part in (clean.train, clean.test)
    ]
    split = Split(*under_one_numbering(*parts))
    assert reading(split, "features", log=log).light == "leak"
    assert reading(split, "features").light == "unknown"


def test_ranks_are_those_of_scipy():
    stats = pytest.importorskip("scipy.stats")
    rng = np.random.default_rng(4)
    for values in (rng.normal(size=50), rng.integers(0, 5, 60).astype(float), np.zeros(4)):
        assert ranks(values) == pytest.approx(stats.rankdata(values))


# Filters


def test_recorded_filters_that_counted_test_rows():
    data = us.worlds.event_log("growing", users=120, items=90, events=2_500, seed=5)
    kept = us.data.apply_filters(data.to_ratings("first"), us.data.KCore(5, 5))
    (split,) = Temporal(test=0.2).split(kept)
    filters = reading(split, "filters")
    assert filters.light == "leak"
    step = kept.steps[-1]
    assert filters.value == pytest.approx(1 - step.after.rows / step.before.rows)
    assert filters.sentence.startswith("k-core(users=5, items=5) counted test rows too")
    (clean,) = Temporal(test=0.2).split(data.to_ratings("first"))
    core = us.data.KCore(2, 1).apply(clean.train)
    after = under_one_numbering(core, clean.test)
    assert reading(Split(*after), "filters").light == "ok"  # training rows alone decided


def test_a_filter_that_removed_next_to_nothing_is_yellow(clean):
    size = Size(10_000, 10, 10)
    for rows, light in ((10_000, "ok"), (9_995, "look"), (9_990, "leak")):
        step = Step("k-core", {"users": 2}, size, replace(size, rows=rows), counts_rows=True)
        parts = [replace(one, steps=(step,)) for one in (clean.train, clean.test)]
        split = replace(clean, train=parts[0], test=parts[1])
        assert reading(split, "filters").light == light


def test_filters_that_look_back_are_no_leak():
    log = us.worlds.event_log("repeating", users=60, items=40, events=2_000, seed=5)
    once = us.data.apply_filters(log, us.data.DropRepeats("consecutive"))
    (split,) = us.splits.TemporalEvents(test=0.2).split(once)
    assert reading(split, "filters").light == "ok"


def test_truncation_by_hand():
    falling = np.repeat([5, 6, 7, 8, 9], [30, 20, 12, 8, 5])
    assert truncation(falling) == (5, 30.0)  # as many below as at the edge, at least
    rising = np.repeat([5, 6, 7], [12, 20, 30])
    assert truncation(rising) == (5, 12 * 12 / 20)
    steep = np.repeat([5, 6, 7], [3, 20, 30])
    assert truncation(steep) == (5, 0.0)
    assert truncation(np.array([1, 1, 2, 0])) == (1, 0.0)
    assert truncation(np.zeros(3, np.int64)) == (0, 0.0)


def test_survival_by_hand():
    trained = np.array([1, 2, 2, 3, 4, 3, 5])
    everything = np.array([3, 3, 4, 3, 4, 5, 9])
    # Of four peers with 3 to 5 training rows two go on: (2 + 1) / (4 + 2).
    assert survival(trained, everything, 3) == pytest.approx(-3 * np.log(0.5))
    assert survival(trained, everything, 1) == 0


# Time stamps


def stamped(seconds, users=30):
    """Return a split whose rows have these time stamps, in order of user."""
    rows = [(n % users, n // users, 3, int(s)) for n, s in enumerate(seconds)]
    cut = np.quantile([row[3] for row in rows], 0.8)
    return split_of([row for row in rows if row[3] <= cut], [row for row in rows if row[3] > cut])


NOW = 1_600_000_000


def test_time_stamps_that_are_no_times():
    rng = np.random.default_rng(6)
    number = 1_500
    for seconds, words in (
        (np.arange(number), "lies in 1970"),
        (NOW + np.arange(number), "they number the rows"),
        (
            np.where(rng.random(number) < 0.5, NOW, NOW + np.arange(number) * 977),
            "one and the same",
        ),
        (NOW + rng.integers(0, 10**7, number), "they were shuffled, or everybody"),
        (NOW + (np.arange(number) % 30) * 86_400 + rng.integers(0, 900, number), "in one session"),
    ):
        one = reading(stamped(seconds), "time-stamps")
        assert one.light == "look", words
        assert words in one.sentence


def test_the_test_of_shuffled_stamps_is_an_analysis_of_variance():
    stats = pytest.importorskip("scipy.stats")
    split = random_split(3, users=15, items=30, rows=400)
    log = Log.of_split(split)
    deviation = log.time - log.time.mean()
    groups = [deviation[log.start[u] : log.start[u + 1]] for u in range(15)]
    number = np.zeros(15, np.int64)
    between = kernels.one_way_variance(log.user, deviation, np.zeros(15), number)
    total = deviation @ deviation
    f = (between / 14) / ((total - between) / (deviation.size - 15))
    assert f == pytest.approx(stats.f_oneway(*groups).statistic)
    z = reading(split, "time-stamps").counts["z_of_times_between_users"]
    assert z == pytest.approx((f - 1) / np.sqrt(2 / 14 + 2 / (deviation.size - 15)))


# Facts


@pytest.mark.parametrize("seed", range(3))
def test_facts_follow_plain_twins(seed):
    rng = np.random.default_rng(seed)
    rows = [
        (int(rng.integers(0, 8)), int(rng.integers(0, 6)), int(rng.integers(0, 300)) * 10 * MINUTE)
        for _ in range(120)
    ]
    user, item, time = zip(*rows, strict=True)
    log = us.read_events({"user": user, "item": item, "time": [NOW + t for t in time]})
    (split,) = us.splits.TemporalEvents(test=0.3, seen="keep").split(log)
    result = us.splits.diagnose(split, log=log)
    tied = again = repeats = sessions = 0
    gaps, lives = [], []
    for one in set(user):
        mine = sorted((t, i) for u, i, t in rows if u == one)
        lives.append(mine[-1][0] - mine[0][0])
        gaps += [b[0] - a[0] for a, b in pairwise(mine)]
        tied += sum(b[0] == a[0] for a, b in pairwise(mine))
        again += sum(b[1] == a[1] for a, b in pairwise(mine))
        repeats += len(mine) - len({i for _, i in mine})
        sessions += 1 + sum(b[0] - a[0] > 30 * MINUTE for a, b in pairwise(mine))
    lasting = [
        max(t for _, i, t in rows if i == one) - min(t for _, i, t in rows if i == one)
        for one in set(item)
    ]
    day = 86_400
    assert result.check("collisions").counts["rows"] == tied
    assert dict(result.check("log-repeats").counts) == {"repeats": repeats, "consecutive": again}
    assert result.check("rhythm").value == pytest.approx(np.mean(gaps) / day)
    assert result.check("rhythm").counts["sessions"] == sessions
    assert result.check("lifetimes").value == pytest.approx(np.mean(lives) / day)
    assert result.check("lifetimes").counts["mean_item_days"] == pytest.approx(
        np.mean(lasting) / day
    )
    shift = [
        min(t for *_, t in table_of(split.test) if _[0] == u)
        - max(t for *_, t in table_of(split.train) if _[0] == u)
        for u in {r[0] for r in table_of(split.train)} & {r[0] for r in table_of(split.test)}
    ]
    assert result.check("temporal-shift").value == pytest.approx(np.median(shift) / DAY)
    trained = {r[1] for r in table_of(split.train)}
    cold = {r[1] for r in table_of(split.test)} - trained
    assert result.check("cold-items").counts["items"] == len(cold)


def test_weekdays_by_the_calendar():
    rng = np.random.default_rng(1)
    time = np.sort(rng.integers(-(10**15), 2 * 10**15, 2_000))
    weekdays, hours = calendar_of(np.ascontiguousarray(time))
    moments = pl.Series(time).cast(pl.Datetime("us")).dt
    assert weekdays.tolist() == np.bincount(moments.weekday() - 1, minlength=7).tolist()
    assert hours.tolist() == np.bincount(moments.hour(), minlength=24).tolist()


def test_the_smallest_difference_is_that_of_a_z_test():
    split = split_of([(u, "a", 3) for u in range(100)], [(u, "b", 3) for u in range(100)])
    smallest = reading(split, "test-size").counts["smallest_difference_in_deviations"]
    normal = pytest.importorskip("scipy.stats").norm
    assert normal.sf(normal.isf(0.025) - smallest * 10) == pytest.approx(0.8, abs=1e-4)


# Drift


def pairs(rows):
    user, item = (np.array(column, np.int32) for column in zip(*rows, strict=True))
    return user, item


def test_distance_by_hand():
    early, late = pairs([(0, 0), (0, 1), (1, 0)]), pairs([(0, 0), (2, 2)])
    result = distance(early, late, (3, 3), "x")
    assert result.value == pytest.approx(0.5 * (abs(2 / 3 - 0.5) + 1 / 3 + 0.5))
    assert result.chance <= result.highest <= 1
    none = np.zeros(0, np.int32)
    assert np.isnan(distance((none, none), late, (3, 3), "x").value)


def test_draws_under_no_drift_are_a_permutation_test():
    """Users with tastes of their own, and no drift: the measured distance is no outlier.

    Each of 21 values is the largest with probability 1/21: of 150 logs at most 18 (99.9 %).
    """
    largest = 0
    for seed in range(150):
        rng = np.random.default_rng(10_000 + seed)
        taste = rng.dirichlet(np.full(30, 0.3), 60)
        sides = [
            pairs(
                [(u, i) for u in range(60) for i in rng.choice(30, rng.integers(0, 9), p=taste[u])]
            )
            for _ in range(2)
        ]
        result = distance(*sides, (60, 30), f"seed{seed}")
        largest += result.value > result.highest
    assert largest <= 18


def test_drift_is_seen_beside_chance():
    rng = np.random.default_rng(3)
    early = pairs([(u, i) for u in range(80) for i in rng.integers(0, 20, 8)])
    late = pairs([(u, i) for u in range(80) for i in rng.integers(10, 30, 8)])
    result = distance(early, late, (80, 30), "x")
    assert result.value > 0.4
    assert result.highest < 0.25


def test_rows_of_one_user_are_no_independent_rows():
    """The error of a shift of ratings: with one row per user the usual one, with blocks wider."""
    rng = np.random.default_rng(5)
    n = 400

    def rows(user, value):
        zero = np.zeros(value.size, np.int32)
        return PartRows(user.astype(np.int32), zero, value, zero.astype(np.int64))

    early, late = rng.normal(3, 1, n), rng.normal(3.2, 1, n)
    shift, error = mean_shift(rows(np.arange(n), early), rows(np.arange(n, 2 * n), late), 2 * n)
    assert shift == pytest.approx(late.mean() - early.mean())
    assert error == pytest.approx(np.sqrt(early.var() / n + late.var() / n))
    blocks = np.repeat(rng.normal(3, 1, 40), 10)
    user = np.repeat(np.arange(40), 10)
    _, wide = mean_shift(rows(user, blocks), rows(user + 40, blocks + 0.1), 80)
    assert wide == pytest.approx(np.sqrt(2 * blocks.var() / 40))


def test_new_items_are_shown_and_never_red():
    log = us.worlds.event_log("growing", users=150, items=120, events=4_000, seed=3)
    (split,) = Temporal(test=0.2).split(log.to_ratings("first"))
    result = us.splits.diagnose(split, log=log)
    assert result.check("cold-items").counts["new_items"] > 0
    assert result.check("popularity-drift").light == "shown"
    assert not result.leaks
    assert len(result.drift) == 10


def test_mean_later_counts_pairs():
    rng = np.random.default_rng(0)
    times, others = rng.integers(0, 50, 30), np.sort(rng.integers(0, 50, 40))
    assert mean_later(times, others) == np.mean(times[:, None] > others[None, :])
    assert mean_later(times[:0], others) == 0


# Other ids, words, pages


def test_a_log_under_other_ids_gives_the_same_births():
    data = ratings(
        [(u, f"i{(3 * u + n) % 40:02}", 3, NOW + 1000 * u + n) for u in range(60) for n in range(5)]
    )
    (split,) = Temporal(test=0.3).split(data)
    wider = ratings(
        [(u, f"i{(3 * u + n) % 40:02}", 3, NOW + 1000 * u + n) for u in range(60) for n in range(5)]
        + [(99, "a-first", 3, NOW - 10), (99, "i00", 3, NOW - 20)]
    )
    same, other = (parts_of(split, log).births for log in (data, wider))
    place = split.train.items.values.to_list().index("i00")
    assert other[place] == (NOW - 20) * 10**6
    assert np.delete(same, place).tolist() == np.delete(other, place).tolist()


def test_amounts():
    assert [percent(x) for x in (0, 0.00001, 0.0012, 0.5, 0.9999, 1)] == [
        "0%", "<0.01%", "0.12%", "50.0%", "100.0%", "100%",
    ]  # fmt: skip
    assert [days(x) for x in (1000, 20, 1.5, 1 / 24, 10 / 86_400)] == [
        "1,000.0 days", "20.0 days", "36.0 hours", "60.0 minutes", "10 seconds",
    ]  # fmt: skip
    assert days(3 * 365.25) == "3.0 years"
    assert amount(None, "share") == amount(float("nan"), "days") == "–"
    assert (amount(3.0, "number"), amount(1.5, "ratio")) == ("3", "1.50 times")


def test_pages_and_figures(tmp_path):
    split = random_split(2, late=True, users=40, items=30, rows=600)
    result = us.splits.diagnose(split)
    for ending in ("html", "md", "json"):
        result.save(tmp_path / f"leaks.{ending}")
        text = (tmp_path / f"leaks.{ending}").read_text()
        assert "Training after test" in text
    assert json.loads((tmp_path / "leaks.json").read_text())["lights"] == result.lights
    for kind in ("time", "drift", "items"):
        assert result.figure(kind).to_svg().startswith("<svg")
    rows = result.figure("time").spec["datasets"]["rows"]
    assert sum(row["rows"] for row in rows) == len(split.train) + len(split.test)
    several = us.splits.diagnose([split, replace(split, label="again")])
    assert len(several.figure().spec["datasets"]["rows"]) == 4
    with pytest.raises(us.UnknownName, match="kind 'drifts'"):
        result.figure("drifts")
    counts = result.counts()
    assert set(counts["key"]) <= {one.key for one in CHECKS}
    assert result.table().height == len(CHECKS)
