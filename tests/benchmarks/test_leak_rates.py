"""How often lights are right: a small seeded version of `leak_rates.py`."""

import numpy as np
import pytest

import unskew as us
from reliability import leak_rates
from reliability.planted_leaks import LEAKS
from shared.real_data import real_data
from unskew.splits.split import Split
from unskew.worlds.event_logs import KINDS

SEED = 3_000


@pytest.mark.slow
@pytest.mark.parametrize("kind", [*KINDS, leak_rates.PLAIN])
def test_clean_logs_are_not_red(kind):
    """One log of each way to split: a red light would be a fault of the rules."""
    row = leak_rates.clean_row(kind, 4, SEED)
    assert row["red"] == 0, row["examples"]


@pytest.mark.slow
@pytest.mark.parametrize("name", LEAKS)
def test_planted_leaks_are_seen(name):
    row = leak_rates.leak_row(name, 4, SEED)
    for seen, planted in row["rates"][LEAKS[name].stated :]:
        assert seen == planted == 4, row["missed"]


@pytest.mark.slow
@pytest.mark.parametrize("name", [one for one in LEAKS if one not in leak_rates.NOT_IN_MOVIELENS])
def test_planted_leaks_are_seen_in_movielens(name, monkeypatch):
    monkeypatch.setenv("UNSKEW_DATA", str(real_data("ml-100k/u.data").parents[1]))
    seen, planted = leak_rates.movielens_row(name, 2, SEED)["rates"][1]
    assert seen == planted == 2


def test_leaks_planted_without_our_planter():
    """A log and leaks of plain numpy: rows move, copies, a random split, leave-one-out."""
    rng = np.random.default_rng(SEED)
    log = leak_rates.plain_log(SEED)
    ratings = log.to_ratings("first")
    cut = np.quantile(ratings.time, 0.8)
    late = ratings.time > cut
    clean = Split(ratings.take(~late), ratings.take(late))
    assert not us.splits.diagnose(clean).leaks
    some = rng.random(len(ratings)) < 0.1
    leaks = {
        "future": Split(ratings.take(~late | some), ratings.take(late & ~some)),
        "copies": Split(ratings.take(~late | some), ratings.take(late)),
        "user-order": us.splits.Random(test=0.2).split(ratings)[0],
    }
    for key, split in leaks.items():
        assert us.splits.diagnose(split).check(key).light == "leak", key
    (last,) = us.splits.LeaveOut(1, pick="last").split(ratings)
    lights = us.splits.diagnose(last).lights
    assert (lights["future"], lights["user-order"]) == ("leak", "ok")


def test_the_tables_hold_every_leak_and_kind():
    kept = {f"leak {name}": leak_rates_row(name) for name in LEAKS}
    kept |= {
        f"clean {kind}": {"kind": kind, "logs": 20, "red": 0, "yellow": {"cut-off": 1}}
        for kind in (*KINDS, leak_rates.PLAIN)
    }
    text = leak_rates.tables(kept)
    assert all(f"| {name}: " in text for name in LEAKS)
    assert "| all | 220 | 0 | |" in text


def leak_rates_row(name):
    return {"leak": name, "strengths": LEAKS[name].strengths, "rates": [[1, 2]] * 3}


BY_TIME = [
    us.splits.Windows(number=3, length="14d", gap="3d", train_length="120d"),
    us.splits.Windows(number=3, length="14d", pick="last"),
    us.splits.ModelAges(number=3, step="20d", test=0.1),
    us.splits.Sessions(pause="30min", test=0.1, pick="next"),
    us.splits.Temporal(test=0.1, validation=0.1, gap="1d"),
]


@pytest.mark.parametrize("splitter", BY_TIME, ids=lambda one: f"{one.name}-{one.pick}")
@pytest.mark.parametrize("kind", ["growing", "bursty", "repeating", "dates"])
def test_no_splitter_by_time_is_red_on_a_clean_log(splitter, kind):
    log = us.worlds.event_log(kind, users=300, items=200, events=8_000, seed=SEED)
    result = us.splits.diagnose(splitter.each(log), log=log)
    assert not result.leaks, str(result)
    assert (result.lights["validation"] == "ok") == (splitter.name == "temporal")
