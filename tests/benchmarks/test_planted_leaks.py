"""Planted leaks: they are what they say, and drawn by their seed."""

from dataclasses import replace

import numpy as np
import pytest

import unskew as us
from reliability.planted_leaks import LEAKS, plant_leak, with_validation
from unskew import DataError
from unskew.splits.diagnosis.diagnosis import CHECKS
from unskew.splits.time.temporal import Temporal

every_leak = pytest.mark.parametrize("name", LEAKS)


@pytest.fixture(scope="module")
def clean():
    log = us.worlds.event_log("stationary", users=200, items=150, events=6_000, seed=4)
    return Temporal(test=0.25).split(log.to_ratings("first"))[0]


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
    planted, again = (plant_leak(clean, name, strength, seed=3) for _ in range(2))
    assert planted.train.fingerprint == again.train.fingerprint
    assert planted.test.fingerprint == again.test.fingerprint
    assert us.splits.diagnose(planted).check(leak.check).light in ("leak", leak.light)
    before = us.splits.diagnose(with_validation(clean))
    assert before.check(leak.check).light in ("ok", "unknown")


def pairs(part):
    return set(zip(part.users.raw(part.user), part.items.raw(part.item), strict=True))


def test_amounts_are_those_asked_for(clean):
    train, test = pairs(clean.train), pairs(clean.test)
    moved = plant_leak(clean, "future", 0.2)
    assert len(moved.test) == round(0.8 * len(clean.test))
    assert pairs(moved.train) - train == test - pairs(moved.test)
    copies = plant_leak(clean, "copies", 0.1)
    assert len(pairs(copies.train) & test) == round(0.1 * len(clean.test))
    old = plant_leak(clean, "old-copies", 0.2)
    assert len(pairs(old.test) & train) / len(old.test) == pytest.approx(0.2, abs=0.01)
    core = plant_leak(clean, "k-core", 5)
    whole = np.concatenate([core.train.user, core.test.user])
    rows = np.bincount(whole)
    assert rows[rows > 0].min() >= 5
    assert core.train.steps[-1].counts_rows
    assert plant_leak(clean, "silent-k-core", 5).train.steps == clean.train.steps
    twins = plant_leak(clean, "copied-users", 0.1)
    tested = int(np.count_nonzero(np.diff(clean.test.start)))
    assert len(twins.train.users) - len(clean.train.users) == round(0.1 * tested)
    assert twins.train.time.max() <= max(clean.train.time.max(), clean.test.time.min())


def test_leaks_that_cannot_be_planted(clean):
    untimed = replace(clean, train=replace(clean.train, time=None))
    with pytest.raises(DataError, match="needs time stamps"):
        plant_leak(untimed, "future")
    with pytest.raises(DataError, match="leaves no"):
        plant_leak(clean, "k-core", 1_000)
    with pytest.raises(us.UnknownName, match="kind 'futur'"):
        plant_leak(clean, "futur")
