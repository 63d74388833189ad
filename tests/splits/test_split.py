"""Splits, sub-samples, strata and the audit: by hand, by property, and on published data."""

import json
from datetime import UTC, datetime
from itertools import pairwise

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

import unskew as us
from shared.commands import run
from shared.examples import examples
from shared.ratings import ratings
from shared.real_data import real_data
from unskew import DataError, Ratings, SettingError
from unskew.checks import as_share, portion
from unskew.data.summary import divergence, gini
from unskew.splits import draws
from unskew.splits.counts import count_parts
from unskew.splits.given import FamiliarTraining, Forced, Given
from unskew.splits.popularity import Flat, HeadRemoved, Uniform
from unskew.splits.random import LeaveOut, PerUser, Random
from unskew.splits.saved import PROTOCOLS, from_card, load_splits, protocol, read_card, save_splits
from unskew.splits.split import Split
from unskew.splits.strata import judgment_bins, popularity_percentiles
from unskew.splits.subsample import popularity_cut, random_parts, sparsity_sample
from unskew.splits.time.sessions import Sessions
from unskew.splits.time.temporal import Temporal, TemporalEvents
from unskew.splits.time.windows import ModelAges, Windows
from unskew.testing import check_splitter


def rows(part):
    """Return ratings as rows with raw ids."""
    return part.to_polars().rows()


def pairs(part):
    return set(zip(part.user.tolist(), part.item.tolist(), strict=True))


def some_frame(seed=0, users=30, items=20, share=0.4):
    """Return a table with everything a protocol may ask for."""
    rng = np.random.default_rng(seed)
    popular = share * 2 * np.linspace(1, 0.1, items)
    user, item = np.nonzero(rng.random((users, items)) < popular)
    return pl.DataFrame(
        {
            "user": [f"u{u}" for u in user],
            "item": item,
            "rating": rng.integers(1, 6, user.size),
            "time": rng.integers(0, user.size // 2, user.size),
            "familiar": rng.random(user.size) < 0.4,
            "fold": rng.integers(1, 4, user.size),
        }
    )


def read(frame):
    return us.read_ratings(frame, tags=["familiar", "fold"])


RANDOM_PART = us.read_ratings(
    some_frame(99, share=0.2).select("user", "item", "rating", pl.col("time") * 2)
)

CASES = [
    Random(),
    Random(folds=3),
    Random(test=0.3, exact=True),
    PerUser(),
    PerUser(test=0.5, rounding="half-even", pick="last"),
    PerUser(number=2, pick="first"),
    LeaveOut(),
    LeaveOut(n=2, pick="last"),
    Temporal(),
    Temporal(test=0.3, ties="train"),
    Temporal(per_user=True),
    Temporal(at=30),
    Temporal(test=0.2, validation=0.2, gap=5),
    Temporal(test=0.2, validation=0.2, per_user=True, pick="last"),
    Temporal(at=30, pick="random"),
    TemporalEvents(aggregate="sum"),
    Windows(),
    Windows(number=2, length=20, train_length=30, gap=3, pick="last"),
    Windows(number=4, test=0.5, ties="train", pick="next"),
    ModelAges(number=3, step=15),
    ModelAges(ages=(0, 30), train_length=40, pick="first"),
    Sessions(pause=20, test=0.4),
    Sessions(pause=9, pick="next", ties="train"),
    Sessions(pause=30, at=70, pick="random", least=2),
    Uniform(test=0.1),
    Uniform(test=0.1, epsilon=0.5, rounding="nearest", repetitions=2),
    Flat(t=2),
    Flat(test=0.1, min_ratings=1, repetitions=2),
    HeadRemoved(),
    HeadRemoved(Random(folds=2), share=0.5, by="ratings", counts="training", keep="head"),
    Forced(RANDOM_PART),
    Forced(RANDOM_PART, overlap="to-test"),
    FamiliarTraining(folds=3),
    FamiliarTraining(folds=None, fair=True, liked=3),
    Given(column="familiar"),
    Given(column="fold"),
    Given(test=RANDOM_PART, overlap="to-training"),
]
DRAWN = (Random, Uniform, Flat, HeadRemoved)

every = pytest.mark.parametrize("how", CASES, ids=repr)


def as_tables(splits):
    return [
        {"train": rows(s.train), "test": rows(s.test), "facts": s.facts, "label": s.label}
        | {name: rows(part) for name, part in s.judgments.items()}
        for s in splits
    ]


# What every protocol promises


def test_every_protocol_is_walked():
    assert {type(case).name for case in CASES} == set(PROTOCOLS)


@every
def test_contract(how):
    pick = getattr(how, "pick", None)
    drawn = isinstance(how, DRAWN) or pick == "random"
    fixed = isinstance(how, Temporal | TemporalEvents | Windows | ModelAges | Given | Forced)
    fixed = fixed and pick not in ("first", "last")  # the seed decides between equal times
    draws = True if drawn or isinstance(how, FamiliarTraining) else False if fixed else None
    check_splitter(how, draws=draws)


@every
def test_values_stay_and_every_split_can_be_diagnosed(how):
    data = read(some_frame())
    there = {row[:3] for row in rows(data) + rows(RANDOM_PART)}
    for split in how.split(data):
        assert count_parts(split).table().height == 19
        assert us.splits.diagnose(split, log=data).checks
        if not isinstance(how, TemporalEvents):
            assert {row[:3] for row in rows(split.train) + rows(split.test)} <= there


@every
def test_a_card_makes_the_split_again(how, tmp_path):
    data = read(some_frame())
    if isinstance(how, TemporalEvents):
        data = us.read_events(some_frame())
    card = save_splits(how, data, tmp_path, 4, liked=3)
    assert card == read_card(tmp_path / "card.json")
    again = from_card(card, data, RANDOM_PART)
    assert as_tables(again.split(data, card["seed"])) == as_tables(how.split(data, 4))
    for made, loaded in zip(how.split(data, 4), load_splits(tmp_path), strict=True):
        assert rows(loaded.train) == rows(made.train)
        assert rows(loaded.test) == rows(made.test)
        assert {name: rows(part) for name, part in loaded.judgments.items()} == {
            name: rows(part) for name, part in made.judgments.items()
        }
        assert loaded.facts.items() >= made.facts.items()


cells = st.tuples(st.integers(0, 6), st.integers(0, 6))


@given(
    st.lists(cells, min_size=1, max_size=40, unique=True),
    st.sampled_from(CASES),
    st.randoms(use_true_random=False),
)
@examples(200)
def test_any_ratings_are_split_alike_in_any_order_or_refused_alike(rated, how, random):
    """Whatever the data: the same split for shuffled rows, parts disjoint, nothing lost."""
    if isinstance(how, Forced) or (isinstance(how, Given) and how.test is not None):
        how = Forced(ratings([(1, 1, 1, 0), (9, 9, 9, 0)]))
    lines = [(u, i, 1 + (u * i) % 5, (u + i) % 4, u > i, 1 + i % 3) for u, i in rated]
    names = ["user", "item", "rating", "time", "familiar", "fold"]

    def outcome(table):
        try:
            return as_tables(how.split(read(pl.DataFrame(table, schema=names, orient="row")), 5))
        except (DataError, SettingError) as problem:
            return str(problem)

    made = outcome(lines)
    mixed = list(lines)
    random.shuffle(mixed)
    assert outcome(mixed) == made
    for split in [] if isinstance(made, str) else made:
        train, test = ({row[:2] for row in split[part]} for part in ("train", "test"))
        assert train
        assert test
        assert not train & test
        more = 2 if isinstance(how, Forced) else 0
        assert len(train) + len(test) + split["facts"]["left_out"] == len(rated) + more


def test_implicit_ratings_stay_implicit_on_disk(tmp_path):
    data = us.read_ratings({"user": [1, 1, 2, 2], "item": [1, 2, 1, 2], "label": [1, 2, 3, 4]},
                           rating=None, tags=["label"])  # fmt: skip
    data = Ratings(data.users, data.items, data.user, data.item, np.ones(4), tags=data.tags,
                   implicit=True)  # fmt: skip
    save_splits(Random(test=0.5, exact=True), data, tmp_path)
    loaded = load_splits(tmp_path)[0]
    assert loaded.train.implicit
    assert set(loaded.train.tags) == {"label"}


# Draws


def plain_choice(key, group, size):
    """Return the rows with the smallest keys of each group, one by one."""
    chosen = []
    for g in np.unique(group):
        own = sorted((k, row) for row, k in enumerate(key) if group[row] == g)
        chosen += [row for _, row in own[: size[g]]]
    return sorted(chosen)


@given(st.integers(0, 50), st.lists(st.integers(0, 12), min_size=20, max_size=20))
@examples(25)
def test_draws_are_the_smallest_hashes(seed, wanted):
    data = read(some_frame(seed % 4))
    key = draws.keys(data, seed, "test").tolist()
    for group, groups, draw in (
        (data.user, 30, draws.of_each_user),
        (data.item, 20, draws.of_each_item),
    ):
        size = np.minimum(np.resize(wanted, groups), np.bincount(group, minlength=groups))
        mark = draw(data, size, seed, "test")
        assert np.flatnonzero(mark).tolist() == plain_choice(key, group, size)
    number = wanted[0]
    smallest = sorted(range(len(key)), key=lambda row: key[row])[:number]
    assert np.flatnonzero(draws.of_all(data, number, seed, "test")).tolist() == sorted(smallest)


def test_a_limit_that_was_too_low_does_not_show(monkeypatch):
    data = read(some_frame(users=300))
    size = np.full(20, 5)
    usual = draws.of_each_item(data, size, 1, "test")
    monkeypatch.setattr(draws, "_likely_limit", lambda counts, size: np.zeros_like(size))
    assert np.array_equal(draws.of_each_item(data, size, 1, "test"), usual)


# Amounts


@pytest.mark.parametrize(
    ("share", "counts", "floor", "nearest"),
    [
        (0.29, [100], [29], [29]),
        (0.2, [4, 5, 9, 10], [0, 1, 1, 2], [1, 1, 2, 2]),
        (0.5, [1, 2, 3, 5], [0, 1, 1, 2], [0, 1, 2, 2]),
        (1 / 3, [3, 4, 5], [1, 1, 1], [1, 1, 2]),
    ],
)
def test_portions_are_exact(share, counts, floor, nearest):
    part = as_share("test", share)
    assert portion(np.array(counts), part).tolist() == floor
    assert portion(np.array(counts), part, "half-even").tolist() == nearest


@given(st.integers(1, 999), st.lists(st.integers(0, 10**6), min_size=1))
def test_portions_round_as_python_does(thousandths, counts):
    part = as_share("test", thousandths / 1000)
    half_even = portion(np.array(counts), part, "half-even").tolist()
    assert half_even == [round(part * n) for n in counts]
    assert portion(np.array(counts), part).tolist() == [n * thousandths // 1000 for n in counts]


@pytest.mark.parametrize("share", [0, 1, -0.1, 1.5, float("nan"), "0.2", True, None])
def test_what_is_no_share(share):
    with pytest.raises(SettingError, match="test must be a share between 0 and 1"):
        as_share("test", share)


# By chance


def test_a_coin_for_each_rating():
    """Within 4.5 standard deviations of a fifth, and folds likewise."""
    data = read(some_frame(users=2000))
    n = len(data)
    deviation = np.sqrt(n * 0.2 * 0.8)
    for seed in range(5):
        test = Random().split(data, seed)[0].test
        assert abs(len(test) - n / 5) < 4.5 * deviation
    sizes = [len(split.test) for split in Random(folds=5).split(data)]
    assert sum(sizes) == n
    assert max(abs(size - n / 5) for size in sizes) < 4.5 * deviation
    assert len(set(sizes)) > 1  # not equal-sized


def test_folds_part_the_ratings():
    data = read(some_frame())
    splits = Random(folds=4).split(data)
    assert [split.label for split in splits] == ["fold1", "fold2", "fold3", "fold4"]
    assert sorted(row for split in splits for row in rows(split.test)) == sorted(rows(data))


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"test": 0.2, "folds": 10}, "the test share is 1/10"),
        ({"folds": 1}, "folds must be a whole number from 2 up"),
        ({"folds": 5, "exact": True}, "exact=True is for one split"),
        ({"test": 2}, "test must be a share"),
    ],
)
def test_impossible_random_splits(settings, message):
    with pytest.raises(SettingError, match=message):
        Random(**settings)
    assert Random(test=0.2, folds=5) is not None


def test_too_many_folds_for_the_ratings():
    with pytest.raises(DataError, match="the number of ratings is 3: ask for fewer folds"):
        Random(folds=5).split(ratings([(1, 1, 5), (1, 2, 4), (2, 1, 3)]))


def test_exactly_so_many():
    data = read(some_frame())
    assert len(Random(test=0.3, exact=True).split(data)[0].test) == len(data) * 3 // 10


# By user


@given(st.integers(0, 10**6), st.sampled_from([0.1, 0.2, 0.25, 0.5, 0.9]))
@examples(20)
def test_a_share_of_each_user(seed, share):
    data = read(some_frame(seed % 7))
    rated = np.diff(data.start)
    split = PerUser(test=share).split(data, seed)[0]
    part = as_share("test", share)
    assert np.diff(split.test.start).tolist() == [int(part * int(n)) for n in rated]
    assert split.facts["users_without_test"] == int(np.sum([part * int(n) < 1 for n in rated]))


def test_every_rating_of_a_user_is_as_likely():
    data = ratings([(1, item, 3) for item in range(5)])
    hits = np.zeros(5)
    for seed in range(3000):
        hits[PerUser(test=0.4).split(data, seed)[0].test.item] += 1
    z = (hits - 1200) / np.sqrt(3000 * 0.4 * 0.6)
    assert np.abs(z).max() < 4.5


def test_the_last_and_the_first_in_time():
    data = ratings([("a", i, 1, t) for i, t in [(1, 30), (2, 10), (3, 40), (4, 20)]])
    assert PerUser(test=0.5, pick="last").split(data)[0].test.item.tolist() == [0, 2]
    assert PerUser(test=0.5, pick="first").split(data)[0].test.item.tolist() == [1, 3]
    assert LeaveOut(pick="last").split(data)[0].test.item.tolist() == [2]


def test_equal_times_at_the_cut_are_settled_by_the_seed_and_counted():
    data = ratings([("a", i, 1, 7) for i in range(4)] + [("b", i, 1, i) for i in range(4)])
    splits = [PerUser(number=1, pick="last").split(data, seed)[0] for seed in range(40)]
    assert {split.facts["users_with_ties_at_cut"] for split in splits} == {1}
    assert {int(split.test.item[0]) for split in splits} == {0, 1, 2, 3}
    assert {int(split.test.item[1]) for split in splits} == {3}


def test_users_with_too_few_stay_in_training():
    data = ratings([("a", 1, 5), ("b", 1, 5), ("b", 2, 5), ("c", 1, 1), ("c", 2, 2), ("c", 3, 3)])
    split = LeaveOut(n=2).split(data)[0]
    assert np.diff(split.test.start).tolist() == [0, 0, 2]
    assert split.facts["users_without_test"] == 2


@pytest.mark.parametrize(
    ("how", "message"),
    [
        (PerUser(test=0.1), "has 3: one of them is moved from test=0.3334 up"),
        (PerUser(number=3), "has 3, so at most 2 can be left out"),
        (LeaveOut(n=5), "has 3, so at most 2 can be left out"),
        (PerUser(pick="last"), "needs time stamps"),
        (Temporal(), "temporal needs time stamps"),
    ],
)
def test_what_would_be_possible(how, message):
    data = ratings([("c", 1, 1), ("c", 2, 2), ("c", 3, 3)])
    with pytest.raises(DataError, match=message):
        how.split(data)
    if isinstance(how, PerUser) and how.test:
        assert len(PerUser(test=0.3334).split(data)[0].test) == 1


# By time


def test_before_and_after():
    data = ratings([(u, i, 1, 10 * u + i) for u in range(5) for i in range(2)])
    split = Temporal(test=0.3).split(data)[0]
    assert split.facts["cut"] == "1970-01-01T00:00:31"
    assert split.facts["ties_at_cut"] == 0
    assert len(split.test) == 3
    assert split.train.time.max() < split.test.time.min()


def test_ties_at_the_cut_stay_together():
    """Ten ratings at times 0 0 1 1 1 1 2 2 3 3; half of them would cut through the ones."""
    data = ratings([(1, i, 1, t) for i, t in enumerate([0, 0, 1, 1, 1, 1, 2, 2, 3, 3])])
    to_test, to_train = (Temporal(test=0.5, ties=ties).split(data)[0] for ties in TIES)
    assert (len(to_test.test), len(to_train.test)) == (8, 4)
    assert to_test.facts["ties_at_cut"] == to_train.facts["ties_at_cut"] == 4
    # Without ties at the cut the rule does not matter.
    for ties in TIES:
        assert len(Temporal(test=0.4, ties=ties).split(data)[0].test) == 4


TIES = ("test", "train")


@pytest.mark.parametrize(
    "at", ["1970-01-01T00:00:02", "1970-01-01T02:00:02+02:00", 2, 2.0, "2",
           datetime(1970, 1, 1, 0, 0, 2, tzinfo=UTC)],
)  # fmt: skip
def test_a_moment(at):
    data = ratings([(1, i, 1, t) for i, t in enumerate([0, 1, 2, 2, 3])])
    assert len(Temporal(at=at).split(data)[0].test) == 3
    late = Temporal(at=at, ties="train").split(data)[0]
    assert len(late.test) == 1
    assert late.facts["ties_at_cut"] == 2


def test_a_cut_for_each_user():
    """Of a's five ratings one is asked for and two share the last time; b has too few."""
    times = {"a": [1, 2, 3, 9, 9], "b": [1, 2, 3]}
    data = ratings([(u, i, 1, t) for u, ts in times.items() for i, t in enumerate(ts)])
    split = Temporal(test=0.2, per_user=True).split(data)[0]
    assert split.test.item.tolist() == [3, 4]
    assert split.facts["users_with_ties_at_cut"] == 1
    assert split.facts["users_without_test"] == 1
    with pytest.raises(DataError, match="the test part is empty"):
        Temporal(test=0.2, per_user=True, ties="train").split(data)


def test_impossible_moments():
    data = ratings([(1, i, 1, t) for i, t in enumerate([0, 1, 2])])
    with pytest.raises(DataError, match="from 1970-01-01T00:00:00 to 1970-01-01T00:00:02"):
        Temporal(at="1980-01-01").split(data)
    with pytest.raises(DataError, match="all ratings carry the same time stamp"):
        Temporal().split(ratings([(1, i, 1, 5) for i in range(9)]))
    with pytest.raises(SettingError, match="at must be an ISO date"):
        Temporal(at="soon")
    with pytest.raises(SettingError, match="either a share"):
        Temporal(test=0.2, at=3)
    with pytest.raises(SettingError, match="one moment for everyone"):
        Temporal(at=3, per_user=True)


def test_events_are_split_before_they_are_aggregated():
    """The pair (1, x) is played before and after the cut: two plays train, the third is dropped."""
    log = {
        "user": [1, 1, 1, 1, 2, 2],
        "item": ["x", "x", "x", "y", "y", "y"],
        "time": [1, 2, 8, 9, 7, 9],
        "plays": [1, 2, 4, 8, 16, 32],
    }
    split = TemporalEvents(at=5, aggregate="count").split(log)[0]
    assert [row[:3] for row in rows(split.train)] == [(1, "x", 2.0)]
    assert [row[:3] for row in rows(split.test)] == [(1, "y", 1.0), (2, "y", 2.0)]
    facts = {k: split.facts[k] for k in ("events_train", "events_test", "pairs_seen_in_training")}
    assert facts == {"events_train": 2, "events_test": 4, "pairs_seen_in_training": 1}
    summed = TemporalEvents(at=5, aggregate="sum", seen="keep").split(log)[0]
    assert [row[2] for row in rows(summed.train)] == [3.0]
    assert [row[2] for row in rows(summed.test)] == [4.0, 8.0, 48.0]
    assert count_parts(summed).facts["duplicates"] == 1
    times = split.test.to_polars()["time"].dt.epoch("s").to_list()
    assert times == [9, 7]  # the first event of each pair


def test_event_logs_do_not_depend_on_the_order_of_rows():
    rng = np.random.default_rng(1)
    log = pl.DataFrame({k: rng.integers(0, 5, 200) for k in ("user", "item", "time")})
    log = log.with_columns(rating=pl.Series(rng.random(200)))
    mixed = log.sample(fraction=1, shuffle=True, seed=1)
    how = TemporalEvents(test=0.4, aggregate="sum", seen="keep")
    assert as_tables(how.split(log)) == as_tables(how.split(mixed))
    assert us.read_events(log).fingerprint == us.read_events(mixed).fingerprint
    assert us.read_events(log).fingerprint != us.read_events(log[1:]).fingerprint


# By popularity


def counted(*counts):
    """Make ratings in which item k has counts[k] ratings."""
    return ratings([(u, i, 1 + (u + i) % 5) for i, n in enumerate(counts) for u in range(n)])


def test_uniform_test_by_hand():
    """20 ratings; (1-.5) R(i_k) k: 4, 6, 4.5, 4 of which at least .2 * 20 = 4 up to k = 4."""
    data = counted(8, 6, 3, 2, 1)
    split = Uniform(test=0.2, epsilon=0.5).split(data)[0]
    assert {k: split.facts[k] for k in ("items", "per_item", "zeta", "zeta_ratings")} == {
        "items": 4, "per_item": 1, "zeta": 4, "zeta_ratings": 2,
    }  # fmt: skip
    assert np.bincount(split.test.item, minlength=5).tolist() == [1, 1, 1, 1, 0]


def test_uniform_test_takes_no_more_than_it_needs():
    """Where all items are alike, half of each would be far more than a tenth of all."""
    split = Uniform(test=0.1, epsilon=0.5).split(counted(*[20] * 10))[0]
    assert split.facts["per_item"] == 2
    assert split.facts["test_share"] == 0.1


def test_uniform_test_says_what_is_possible():
    data = counted(8, 6, 3, 2, 1)
    with pytest.raises(DataError, match=r"the most is 0.3, with the 2 most rated items"):
        Uniform(test=0.31, epsilon=0.5).split(data)
    assert Uniform(test=0.3, epsilon=0.5).split(data)[0].facts["items"] == 2
    with pytest.raises(DataError, match="a larger test share takes fewer"):
        Uniform(test=0.1, epsilon=0.8).split(counted(3, 3, 3))


def test_repetitions_are_independent_draws():
    first, second = Uniform(test=0.2, repetitions=2).split(counted(*[12] * 8))
    assert (first.label, second.label) == ("repetition1", "repetition2")
    assert pairs(first.test) != pairs(second.test)
    assert first.facts == second.facts


def test_flat_test():
    data = counted(9, 5, 3, 2)
    split = Flat(t=3).split(data)[0]
    assert np.bincount(split.test.item, minlength=4).tolist() == [3, 3, 0, 0]
    assert (split.facts["items"], split.facts["items_below"]) == (2, 2)
    everything = Flat(t=3, min_ratings=1).split(data)[0]
    assert np.bincount(everything.test.item, minlength=4).tolist() == [3, 3, 3, 2]
    assert everything.facts["items_short"] == 1
    assert Flat(test=0.3).split(data)[0].facts["per_item"] == 2  # 2 of each of three items: 6 of 19
    with pytest.raises(DataError, match="no item has 11 ratings, the most is 9"):
        Flat().split(data)
    with pytest.raises(
        DataError, match=r"flat: test=0.9 is not possible: the most is 0.421, with t=4"
    ):
        Flat(test=0.9).split(data)


def test_the_head_is_removed_from_the_test_part_only():
    data = counted(40, 20, 10, 10, 10, 10)
    plain = Random(test=0.5).split(data)[0]
    tail = HeadRemoved(Random(test=0.5), share=0.34).split(data)[0]  # 2 of 6 items
    head = HeadRemoved(Random(test=0.5), share=0.34, keep="head").split(data)[0]
    assert rows(tail.train) == rows(head.train) == rows(plain.train)
    assert set(tail.test.item.tolist()) == {2, 3, 4, 5}
    assert set(head.test.item.tolist()) == {0, 1}
    assert pairs(tail.test) | pairs(head.test) == pairs(plain.test)
    assert tail.facts["removed_from_test"] == len(head.test)
    by_ratings = HeadRemoved(Random(test=0.5), share=0.41, by="ratings").split(data)[0]
    assert by_ratings.facts["head_items"] == 2  # 40 of 100 are not enough, 60 are


def test_the_head_by_training_counts():
    data = counted(5, 4, 3)
    column = [False] * 5 + [False] * 2 + [True] * 2 + [True] * 3
    given_split = Given(column="is_test")
    order = np.lexsort((data.user, data.item))  # the column was written item by item
    tag = pl.Series(np.array(column)[np.argsort(order)])
    tagged = Ratings(
        data.users, data.items, data.user, data.item, data.value, tags={"is_test": tag}
    )  # fmt: skip
    of_all = HeadRemoved(given_split, share=0.34).split(tagged)[0]
    of_training = HeadRemoved(given_split, share=0.5, counts="training", keep="tail").split(tagged)
    assert of_all.facts["head_items"] == 1
    assert of_training[0].facts["head_items"] == 1  # half of the two items in training
    assert set(of_training[0].test.item.tolist()) == {1, 2}


# Given, forced, familiar


def test_given_by_a_column():
    data = ratings(
        [(1, 1, 1), (1, 2, 2), (2, 1, 3), (2, 2, 4)],
        {"part": ["train", "test", "valid", "train"], "is_test": [True, False, True, False]},
    )
    split = Given(column="part").split(data)[0]
    assert [row[2] for row in rows(split.train)] == [1, 4]
    assert [row[2] for row in rows(split.judgments["valid"])] == [3]
    assert split.facts["left_out"] == 1
    assert len(Given(column="is_test").split(data)[0].test) == 2
    with pytest.raises(DataError, match=r"no tag 'fold' \(tags: part, is_test\)"):
        Given(column="fold").split(data)
    with pytest.raises(SettingError, match="either column='fold'"):
        Given()


def test_given_folds_keep_their_numbers():
    data = ratings([(1, i, i) for i in range(1, 7)], {"fold": [3, 3, 7, 7, 7, 3]})
    assert [(s.label, len(s.test)) for s in Given(column="fold").split(data)] == [
        ("fold3", 3), ("fold7", 3),
    ]  # fmt: skip
    named = ratings([(1, i, i) for i in range(1, 5)], {"fold": ["b/c", "a", "b/c", "a"]})
    assert [(s.label, s.facts["fold"]) for s in Given(column="fold").split(named)] == [
        ("fold1", "a"), ("fold2", "b/c"),
    ]  # fmt: skip


def test_pairs_in_both_parts():
    train = ratings([(1, "a", 5), (1, "b", 4), (2, "a", 3)])
    test = ratings([(1, "b", 4), (3, "c", 1)])
    with pytest.raises(DataError, match="1 user-item pair is in both parts, the first: user 1, "):
        Given(test=test).split(train)
    sizes = {}
    for overlap in ("to-training", "to-test", "keep"):
        split = Forced(test, overlap).split(train)[0]
        assert split.facts["overlap"] == 1
        sizes[overlap] = (len(split.train), len(split.test), count_parts(split).facts["duplicates"])
    assert sizes == {"to-training": (3, 1, 0), "to-test": (2, 2, 0), "keep": (3, 2, 1)}
    assert split.train.users.values.to_list() == [1, 2, 3]
    with pytest.raises(SettingError, match="random must be Ratings, got str"):
        Forced("test.csv")


def survey(users=400, items=30, density=0.5, seed=0):
    """Return judgments of random pairs, and everything about the pairs that were not judged."""
    rng = np.random.default_rng(seed)
    liked = rng.random((users, items)) < 0.6
    known = rng.random((users, items)) < np.linspace(0.05, 0.9, items)
    judged = rng.random((users, items)) < density
    user, item = np.nonzero(judged)
    columns = {"user": user, "item": item, "rating": 1 + 2 * liked[user, item]}
    data = us.read_ratings({**columns, "known": known[user, item]}, tags=["known"])
    return data, liked


def test_observed_and_true_test_share_their_training():
    data, _ = survey()
    known = data.tags["known"].to_numpy()
    splits = FamiliarTraining(folds=4).split(data)
    assert sum(len(split.judgments["true"]) for split in splits) == len(data)
    assert sum(len(split.judgments["observed"]) for split in splits) == known.sum()
    for split in splits:
        assert split.train.tags["known"].all()
        assert rows(split.test) == rows(split.judgments["true"])
        assert pairs(split.judgments["observed"]) < pairs(split.test)
        assert not pairs(split.train) & pairs(split.test)


def test_the_residual_factor():
    """Two items, both judged by all four users: 3 of 4 familiar, and none; s = 1, n = 2."""
    data = ratings(
        [(u, i, 3) for u in range(4) for i in range(2)],
        {"familiar": [u < 3 and i == 0 for u in range(4) for i in range(2)]},
    )
    facts = FamiliarTraining(folds=2).split(data, 1)[0].facts
    assert facts["factor_low"] == pytest.approx(0.5)
    assert facts["factor_high"] == pytest.approx(0.5 / (1 - 0.5 * 0.75))
    assert facts["residual"] == pytest.approx(0.6)


@pytest.mark.parametrize("folds", [None, 4])
def test_fair_thinning_evens_out_the_items(folds):
    """Of the liked pairs outside training the same share is judged, whatever the item."""
    data, liked = survey(users=4000)
    how = FamiliarTraining(folds=folds, fair=True, liked=3, smoothing=0)
    split = how.split(data, 5)[0]
    outside = liked.sum(0) - np.bincount(split.train.item[split.train.value >= 3], minlength=30)
    found = np.bincount(split.test.item, minlength=30)
    z = (found - outside * split.facts["factor"]) / np.sqrt(outside * split.facts["factor"])
    assert np.abs(z).max() < 4.5
    assert (split.test.value >= 3).all()
    plain = FamiliarTraining(folds=folds).split(data, 5)[0]
    before = np.bincount(plain.test.item[plain.test.value >= 3], minlength=30) / outside
    assert max(before) / min(before) > 1.3  # what thinning had to even out
    assert 0 < split.facts["kept_share"] < 1


def test_raw_rates_can_leave_nothing():
    data = ratings(
        [(1, "a", 3), (2, "a", 3), (1, "b", 3), (2, "b", 3), (3, "b", 3)],
        {"familiar": [True, True, True, False, False]},
    )
    with pytest.raises(DataError, match=r"T = 1\.0000: raise smoothing, or bound T with cap"):
        FamiliarTraining(folds=None, fair=True, liked=3, smoothing=0).split(data)
    capped = FamiliarTraining(folds=None, fair=True, liked=3, smoothing=0, cap=0.9).split(data)[0]
    assert capped.facts["T"] == pytest.approx(1 / 3)
    assert capped.facts["items_above_cap"] == 1
    assert len(capped.test) == 2


def test_what_familiar_training_needs():
    data = ratings([(1, 1, 1)], {"familiar": [3]})
    with pytest.raises(DataError, match="must say true or false"):
        FamiliarTraining().split(data)
    with pytest.raises(DataError, match="no tag 'familiar'"):
        FamiliarTraining().split(ratings([(1, 1, 1)]))
    for settings_ in ({"fair": True}, {"cap": 0.5}, {"fair": True, "liked": 3, "cap": 0.5}):
        with pytest.raises(SettingError):
            FamiliarTraining(**settings_)


# Sub-samples and strata


@given(st.integers(0, 1000), st.floats(0.01, 1))
@examples(25)
def test_sparsity_samples(seed, share):
    test = read(some_frame(seed % 5))
    part = as_share("share", share, one=True)
    sample = sparsity_sample(test, share, seed)
    sizes = np.diff(sample.start).tolist()
    assert sizes == [round(part * int(n)) for n in np.diff(test.start)]
    assert pairs(sample) <= pairs(test)
    assert len(sparsity_sample(test, share, seed, per="all")) == round(part * len(test))
    assert f"{len(sample):,} of {len(test):,} ratings kept" in sample.notes[-1]


def test_smaller_samples_are_part_of_larger_ones():
    test = read(some_frame())
    for per in ("user", "all"):
        sizes = [sparsity_sample(test, share, 3, per=per) for share in (0.2, 0.5, 0.9, 1.0)]
        assert all(pairs(a) <= pairs(b) for a, b in pairwise(sizes))
        assert pairs(sizes[-1]) == pairs(test)


def test_popularity_cut_by_training_counts():
    """Three items have training ratings; half to even of 0.5 * 3 = 1.5 is 2."""
    train = ratings([(1, "a", 1), (2, "a", 1), (1, "b", 1), (2, "c", 1)])
    test = ratings([(3, "a", 1), (3, "b", 1), (3, "c", 1), (3, "d", 1)])
    split = Forced(test).split(train)[0]
    cut = popularity_cut(split.train, split.test, 0.5)
    assert cut.items.raw(cut.item).to_list() == ["c", "d"]


def test_random_parts_are_disjoint_and_exact():
    data = read(some_frame())
    n = len(data)
    parts = random_parts(data, [0.15, 0.15, 0.7], 2)
    assert [len(part) for part in parts] == [n * 15 // 100] * 2 + [n - 2 * (n * 15 // 100)]
    assert sorted(row for part in parts for row in rows(part)) == sorted(rows(data))
    with pytest.raises(SettingError, match="add up to at most 1"):
        random_parts(data, [0.6, 0.6])


def test_percentiles_by_number_of_items():
    strata = popularity_percentiles(counted(5, 9, 1, 5, 2), m=2)
    assert strata.stratum.tolist() == [0, 0, 1, 0, 1]  # 9, 5, 5 | 2, 1
    assert strata.facts["items"] == [3, 2]
    assert strata.facts["ratings"] == [19, 3]
    with pytest.raises(SettingError, match="9 strata need at least 9 items; there are 5"):
        popularity_percentiles(counted(5, 9, 1, 5, 2), m=9)


def test_bins_by_positive_training_judgments():
    """Liked counts 6, 3, 2, 1, 0: half of twelve is the first item alone."""
    rows_ = [(u, i, 5) for i, n in enumerate([6, 3, 2, 1]) for u in range(n)]
    data = ratings([*rows_, *((u, 4, 1) for u in range(9))])
    strata = judgment_bins(data, us.Relevance(liked=4), m=2)
    assert strata.stratum.tolist() == [0, 1, 1, 1, 1]
    assert strata.facts["ratings"] == [6, 6]
    with pytest.raises(DataError, match="no training rating is liked"):
        judgment_bins(data, us.Relevance(liked=6), m=2)


def test_strata_slice_a_split():
    data = read(some_frame())
    split = Random().split(data)[0]
    strata = popularity_percentiles(data, 4)
    slices = strata.slices(split)
    assert sum(len(part.train) for part in slices) == len(split.train)
    assert sum(len(part.test) for part in slices) == len(split.test)
    for number, part in enumerate(slices):
        assert set(strata.stratum[part.test.item].tolist()) <= {number}


# The audit


def test_audit_by_hand():
    train = ratings([(1, "a", 1, 10), (1, "b", 1, 20), (2, "a", 1, 30), (4, "a", 1, 40)])
    test = ratings([(1, "c", 1, 15), (2, "b", 1, 35), (3, "a", 1, 5)])
    split = Given(test=test).split(train)[0]
    result = count_parts(split)
    facts = result.facts
    assert (facts["train"], facts["test"]) == (4, 3)
    assert (facts["train_users"], facts["test_users"], facts["cold_users"]) == (3, 3, 1)
    assert (facts["untested_users"], facts["lost_users"]) == (1, 0)
    assert (facts["train_items"], facts["test_items"], facts["cold_items"]) == (2, 3, 1)
    assert facts["duplicates"] == 0
    assert facts["train_popularity"] == (3 * 3 + 1) / 4
    assert facts["test_popularity"] == (0 + 1 + 3) / 3
    assert facts["before_user_train"] == 1 / 3  # 15 < 20; 35 > 30; user 3 has no training
    assert facts["before_any_train"] == 1
    assert "3 in training, 3 in test; 1 cold, 1 untested, 0 lost" in str(result)


def test_audit_of_lost_users():
    data = read(some_frame())
    split = popularity_percentiles(data, 4).slices(Random().split(data)[0])[0]
    assert count_parts(split).facts["lost_items"] > 0
    assert count_parts(Split(split.train, split.train)).facts["duplicates"] == len(split.train)


def test_gini_and_divergence():
    assert gini(np.array([3, 3, 3])) == 0
    assert gini(np.array([0, 0, 0, 1])) == 0.75
    assert divergence(np.array([2.0, 2.0])) == 0
    assert divergence(np.array([1, 0])) == pytest.approx(np.log(2))
    assert np.isnan(gini(np.zeros(3)))


def test_protocols_by_name():
    assert protocol("user", test=0.5) == PerUser(test=0.5)
    with pytest.raises(us.UnknownName, match="Did you mean 'temporal'"):
        protocol("temporl")
    with pytest.raises(SettingError, match="user has no setting 'epsilon'; it has: test, rounding"):
        protocol("user", epsilon=1)


# The command line


@pytest.fixture
def table(tmp_path):
    path = tmp_path / "ratings.csv"
    some_frame(users=60).write_csv(path)
    return path


def test_split_writes_files_and_a_card(capsys, table, tmp_path):
    code, text = run(capsys, "split", table, "--protocol", "uniform", "--test", 0.1, "--liked", 4,
                     "-o", tmp_path / "parts")  # fmt: skip
    assert code == 0, text
    card = json.loads((tmp_path / "parts" / "card.json").read_text())
    test = pl.read_parquet(tmp_path / "parts" / "test.parquet")
    assert card["items"] == test["item"].n_unique()
    assert card["per_item"] * card["items"] == card["test"] == test.height
    assert card["test_liked"] == test.filter(pl.col("rating") >= 4).height
    assert str(tmp_path) not in json.dumps(card)
    train = pl.read_parquet(tmp_path / "parts" / "train.parquet")
    assert train.height + test.height == some_frame(users=60).height
    again = run(capsys, "split", table, "--card", tmp_path / "parts" / "card.json", "-o",
                tmp_path / "again", "-q")  # fmt: skip
    assert again == (0, "")
    assert pl.read_parquet(tmp_path / "again" / "test.parquet").equals(test)


def test_split_into_folds_and_never_over_others(capsys, table, tmp_path):
    folder = tmp_path / "parts"
    code, text = run(capsys, "split", table, "--folds", 3, "-o", folder)
    assert code == 0, text
    assert sorted(path.name for path in folder.iterdir()) == [
        "card.json",
        "fold1",
        "fold2",
        "fold3",
    ]
    code, text = run(capsys, "split", table, "--folds", 2, "-o", folder)
    assert (code, "is not empty" in text) == (2, True)
    (folder / "mine.txt").write_text("kept")
    code, _ = run(capsys, "split", table, "--folds", 2, "-o", folder, "--force")
    assert code == 0
    assert sorted(path.name for path in folder.iterdir()) == [
        "card.json", "fold1", "fold2", "mine.txt",
    ]  # fmt: skip


def test_a_failed_split_leaves_the_old_one(capsys, table, tmp_path):
    folder = tmp_path / "parts"
    assert run(capsys, "split", table, "-o", folder)[0] == 0
    code, text = run(
        capsys, "split", table, "-p", "uniform", "--test", 0.9, "-o", folder, "--force"
    )
    assert (code, "the most is" in text) == (1, True)
    assert len(load_splits(folder)) == 1


COMMAND_LINES = [
    ["user", "--test", 0.3, "--pick", "last"],
    ["leave-out", "--number", 2],
    ["temporal", "--test", 0.2, "--ties", "train"],
    ["temporal", "--per-user"],
    ["temporal", "--test", 0.2, "--validation", 0.1, "--gap", "5s", "--pick", "last"],
    ["events", "--at", 30],
    ["windows", "--number", 2, "--length", "20s", "--train-length", "30s", "--step", "10s"],
    ["windows", "--test", 0.4, "--gap", 3, "--pick", "next"],
    ["ages", "--ages", "0,10s,20s", "--at", 120],
    ["ages", "--number", 3, "--step", "10s", "--event-log", "--repeats", "last", "--seen", "keep"],
    ["sessions", "--pause", "20s", "--pick", "last", "--least", 2],
    ["flat", "--test", 0.2],
    ["flat", "--per-item", 3, "--repetitions", 2],
    ["head-removed", "--folds", 2, "--head", 0.2],
    ["familiar", "--folds", 2],
    ["familiar", "--folds", 0, "--fair", "--liked", 3],
    ["given", "--column", "fold"],
]


@pytest.mark.parametrize("options", COMMAND_LINES, ids=str)
def test_every_protocol_on_the_command_line(capsys, table, tmp_path, options):
    name, *rest = options
    code, text = run(capsys, "split", table, "-p", name, *rest, "-o", tmp_path / "parts")
    assert code == 0, text
    made = load_splits(tmp_path / "parts")
    assert all(len(split.train) and len(split.test) for split in made)
    code, text = run(capsys, "split", table, "--card", tmp_path / "parts" / "card.json",
                     "-o", tmp_path / "again")  # fmt: skip
    assert code == 0, text
    assert as_tables(made) == as_tables(load_splits(tmp_path / "again"))


def test_no_protocol_is_left_out_on_the_command_line():
    walked = {name for name, *_ in COMMAND_LINES}
    elsewhere = {"random", "uniform", "forced"}  # in tests of their own, above and below
    assert walked | elsewhere == set(PROTOCOLS)


def test_two_files_on_the_command_line(capsys, table, tmp_path):
    other = tmp_path / "random.csv"
    RANDOM_PART.to_polars().with_columns(pl.col("time").dt.epoch("s")).write_csv(other)
    for name, overlap in (("forced", "to-test"), ("given", "to-training")):
        code, text = run(capsys, "split", table, "-p", name, "--test-ratings", other,
                         "--overlap", overlap, "-o", tmp_path / name)  # fmt: skip
        assert code == 0, text
        assert load_splits(tmp_path / name)[0].facts["overlap"] > 0


def test_options_that_do_not_apply(capsys, table, tmp_path):
    code, text = run(capsys, "split", table, "-p", "flat", "--epsilon", 0.2, "-o", tmp_path / "x")
    assert code == 2
    assert "--epsilon does not apply to flat; it takes --per-item, --test, --min-ratings" in text
    code, text = run(capsys, "split", table, "-p", "unifrom", "-o", tmp_path / "x")
    assert (code, "Did you mean 'uniform'" in text) == (2, True)
    run(capsys, "split", table, "-o", tmp_path / "y")
    other = tmp_path / "other.csv"
    some_frame(1).write_csv(other)
    code, text = run(capsys, "split", other, "--card", tmp_path / "y" / "card.json",
                     "-o", tmp_path / "z")  # fmt: skip
    assert (code, "are not those of the card" in text) == (1, True)


# Published data


@pytest.fixture(scope="module")
def movielens():
    path = real_data("ml-1m/ratings.parquet")
    return us.read_ratings(path, tags=["mena_fold", "valcarce_test"])


@pytest.fixture(scope="module")
def valcarce(movielens):
    return Given(column="valcarce_test").split(movielens)[0]


@pytest.mark.real
@pytest.mark.parametrize(("rounding", "per_item"), [("nearest", 118), ("floor", 117)])
def test_uniform_test_of_bellogin2017(movielens, rounding, per_item):
    split = Uniform(test=0.2, epsilon=0.2, rounding=rounding).split(movielens)[0]
    assert (split.facts["items"], split.facts["per_item"]) == (1703, per_item)
    assert split.facts["zeta_ratings"] == 147
    assert set(np.bincount(split.test.item)[np.unique(split.test.item)]) == {per_item}
    left = np.bincount(split.train.item, minlength=3706)[np.unique(split.test.item)]
    assert (left.min() >= 0.2 * 147) == (rounding == "floor")


@pytest.mark.real
def test_user_split_of_valcarce2018(movielens, valcarce):
    ours = PerUser().split(movielens)[0]
    assert np.array_equal(np.diff(ours.test.start), np.diff(valcarce.test.start))
    assert len(ours.test) == 197_656


@pytest.mark.real
@pytest.mark.parametrize(("share", "size"), [(0.5, 98_721), (0.05, 9_515), (0.9, 177_761)])
def test_sparsity_samples_of_valcarce2018(valcarce, share, size):
    assert len(sparsity_sample(valcarce.test, share)) == size


@pytest.mark.real
def test_popularity_levels_of_valcarce2018(valcarce):
    levels = pl.read_csv(real_data("published/valcarce2018_ml-1m_popularity_levels.csv"))
    assert levels.height == 36
    for keep, *published in levels.iter_rows():
        cut = popularity_cut(valcarce.train, valcarce.test, keep)
        assert [len(cut), np.unique(cut.item).size, np.unique(cut.user).size] == published, keep


@pytest.mark.real
def test_folds_of_mena2021(movielens):
    sizes = [len(split.test) for split in Given(column="mena_fold").split(movielens)]
    assert sizes == [199_684, 200_700, 200_065, 200_248, 199_512]


@pytest.mark.real
def test_gini_of_movielens(movielens):
    assert round(gini(np.bincount(movielens.item)), 3) == 0.634


@pytest.mark.real
def test_temporal_split_of_movielens_100k():
    """20,000 of 100,000 asked for; four ratings share the second of the cut."""
    data = us.read_ratings(real_data("ml-100k/u.data"), time=3)
    late, early = (Temporal(ties=ties).split(data)[0] for ties in TIES)
    assert (len(late.test), len(early.test)) == (20_001, 19_997)
    assert late.facts["ties_at_cut"] == 4
    assert count_parts(late).facts["before_any_train"] == 0


def test_a_card_of_python_is_refused_on_the_command_line(tmp_path, capsys):
    data = ratings([(user, item, 4) for user in range(5) for item in range(4)])
    data.to_csv(tmp_path / "ratings.csv")
    save_splits(Random(test=0.3), data, tmp_path / "parts", seed=1)
    card = tmp_path / "parts" / "card.json"
    code, out = run(
        capsys, "split", tmp_path / "ratings.csv", "--card", card, "-o", tmp_path / "again"
    )
    assert code == 2
    assert "which columns to read" in out
    assert "Traceback" not in out


@pytest.mark.real
def test_overlap_of_coat():
    parts = []
    for name in ("train", "test"):
        dense = np.loadtxt(real_data(f"coat/{name}.ascii"))
        user, item = np.nonzero(dense)
        parts.append(
            us.read_ratings({"user": user, "item": item, "rating": dense[user, item]})
        )  # fmt: skip
    free, random = parts
    sizes = {}
    for overlap in ("to-training", "to-test", "keep"):
        split = Forced(random, overlap).split(free)[0]
        assert split.facts["overlap"] == 366
        sizes[overlap] = (len(split.train), len(split.test))
    assert sizes == {"to-training": (6960, 4274), "to-test": (6594, 4640), "keep": (6960, 4640)}


@pytest.mark.parametrize("file", ["card.json", "train.parquet", "test.parquet"])
def test_a_saved_split_that_was_changed_is_refused(tmp_path, file):
    data = ratings([(u, i, 1 + (u + i) % 5) for u in range(8) for i in range(6)])
    save_splits(Random(test=0.4), data, tmp_path)
    content = bytearray((tmp_path / file).read_bytes())
    content[len(content) // 2] ^= 1
    (tmp_path / file).write_bytes(content)
    with pytest.raises(DataError, match=file):
        load_splits(tmp_path)


def test_a_split_of_the_format_before_digests_is_read(tmp_path):
    data = ratings([(u, i, 1 + (u + i) % 5) for u in range(8) for i in range(6)])
    card = save_splits(Random(test=0.4), data, tmp_path)
    before = load_splits(tmp_path)
    del card["digests"]
    (tmp_path / "card.json").write_text(json.dumps({**card, "format": 2}))
    assert as_tables(load_splits(tmp_path)) == as_tables(before)
