"""Simulated event logs: what each kind promises, and that planted leaks are what they say."""

from dataclasses import replace

import numpy as np
import pytest

import unskew as us
from unskew import DataError
from unskew.splits.diagnosis.rules import CHECKS
from unskew.splits.time import Temporal
from unskew.worlds.event_logs import DAY, KINDS, START
from unskew.worlds.planted_leaks import LEAKS, SESSION, with_validation

every_kind = pytest.mark.parametrize("kind", KINDS)
every_leak = pytest.mark.parametrize("name", LEAKS)


def log_of(kind, seed=4, **options):
    return us.worlds.event_log(
        kind, **{"users": 200, "items": 150, "events": 6_000, "seed": seed, **options}
    )


@every_kind
def test_contract(kind):
    log = log_of(kind)
    same, other = log_of(kind), log_of(kind, seed=5)
    assert log.fingerprint == same.fingerprint != other.fingerprint
    assert 1_500 < len(log) <= 9_000
    assert START <= log.time[0] <= log.time[-1] < START + 365 * DAY
    pairs = (log.user.astype(np.int64) << 32) | log.item
    repeated = np.unique(pairs).size < pairs.size
    assert repeated == bool(KINDS[kind].repeats)
    assert log.implicit != KINDS[kind].explicit
    assert set(np.unique(log.value)) <= {1.0, 2.0, 3.0, 4.0, 5.0}
    assert not (log.time % KINDS[kind].unit).any()


def test_kinds_are_what_they_say():
    weekday = (log_of("seasonal").time // DAY + 3) % 7
    weekend = (weekday >= 5).mean()
    assert weekend > 0.45 > ((log_of("stationary").time // DAY + 3) % 7 >= 5).mean() + 0.1
    growing = log_of("growing")
    late = growing.time > START + 300 * DAY
    early_items = set(growing.item[~late].tolist())
    assert len(set(growing.item[late].tolist()) - early_items) > 5
    warming = log_of("warming")
    last = warming.time > START + 270 * DAY
    first = warming.time < START + 90 * DAY
    assert warming.value[last].mean() - warming.value[first].mean() > 0.3
    sittings = {kind: sitting_size(log_of(kind)) for kind in ("stationary", "bursty")}
    assert sittings["bursty"] > 2 * sittings["stationary"]
    registering = log_of("registering")
    span = [
        np.ptp(registering.time[registering.user == user])
        for user in range(len(registering.users))
        if (registering.user == user).sum() >= 5
    ]
    assert np.median(span) < DAY


def sitting_size(log):
    order = np.lexsort((log.time, log.user))
    new = (np.diff(log.user[order]) != 0) | (np.diff(log.time[order]) > SESSION)
    return len(log) / (1 + new.sum())


def test_series_are_followed_in_order():
    log = log_of("series", users=400)
    sets = [frozenset(log.item[log.user == user].tolist()) for user in range(len(log.users))]
    common = max(sets.count(one) for one in set(sets))
    assert common >= 3  # several users have the same series and nothing else


def test_what_is_refused():
    with pytest.raises(us.UnknownName, match="kind 'sesonal'"):
        us.worlds.event_log("sesonal")
    with pytest.raises(us.SettingError, match="users"):
        us.worlds.event_log(users=1)
    with pytest.raises(us.SettingError, match="days"):
        us.worlds.event_log(days=0.1)


# Planted leaks


@pytest.fixture(scope="module")
def clean():
    return Temporal(test=0.25).split(log_of("stationary").to_ratings("first"))[0]


@every_leak
def test_leaks_name_a_check(name):
    leak = LEAKS[name]
    rule = {one.key: one for one in CHECKS}[leak.check]
    assert leak.light in ("leak", "look")
    assert rule.remedy
    assert list(leak.strengths) == sorted(leak.strengths)


@every_leak
def test_a_planted_leak_is_seen_and_drawn_by_its_seed(name, clean):
    leak = LEAKS[name]
    strength = leak.strengths[2 if leak.light == "look" else 1]
    planted, again = (us.worlds.plant_leak(clean, name, strength, seed=3) for _ in range(2))
    assert planted.train.fingerprint == again.train.fingerprint
    assert planted.test.fingerprint == again.test.fingerprint
    assert us.splits.diagnose(planted).check(leak.check).light in ("leak", leak.light)
    before = us.splits.diagnose(with_validation(clean))
    assert before.check(leak.check).light in ("ok", "unknown")


def pairs(part):
    return set(zip(part.users.raw(part.user), part.items.raw(part.item), strict=True))


def test_amounts_are_those_asked_for(clean):
    train, test = pairs(clean.train), pairs(clean.test)
    moved = us.worlds.plant_leak(clean, "future", 0.2)
    assert len(moved.test) == round(0.8 * len(clean.test))
    assert pairs(moved.train) - train == test - pairs(moved.test)
    copies = us.worlds.plant_leak(clean, "copies", 0.1)
    assert len(pairs(copies.train) & test) == round(0.1 * len(clean.test))
    old = us.worlds.plant_leak(clean, "old-copies", 0.2)
    assert len(pairs(old.test) & train) / len(old.test) == pytest.approx(0.2, abs=0.01)
    core = us.worlds.plant_leak(clean, "k-core", 5)
    whole = np.concatenate([core.train.user, core.test.user])
    rows = np.bincount(whole)
    assert rows[rows > 0].min() >= 5
    assert core.train.steps[-1].counts_rows
    assert us.worlds.plant_leak(clean, "silent-k-core", 5).train.steps == clean.train.steps
    twins = us.worlds.plant_leak(clean, "copied-users", 0.1)
    tested = int(np.count_nonzero(np.diff(clean.test.start)))
    assert len(twins.train.users) - len(clean.train.users) == round(0.1 * tested)
    assert twins.train.time.max() <= max(clean.train.time.max(), clean.test.time.min())


def test_leaks_that_cannot_be_planted(clean):
    untimed = replace(clean, train=replace(clean.train, time=None))
    with pytest.raises(DataError, match="needs time stamps"):
        us.worlds.plant_leak(untimed, "future")
    with pytest.raises(DataError, match="leaves no"):
        us.worlds.plant_leak(clean, "k-core", 1_000)
    with pytest.raises(us.UnknownName, match="kind 'futur'"):
        us.worlds.plant_leak(clean, "futur")
