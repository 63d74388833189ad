"""Simulated event logs: what each kind promises."""

import numpy as np
import pytest

import unskew as us
from unskew.worlds.event_logs import DAY, KINDS, START

SESSION = 30 * 60 * 1_000_000
"""Microseconds without an event that end a session."""
every_kind = pytest.mark.parametrize("kind", KINDS)


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
