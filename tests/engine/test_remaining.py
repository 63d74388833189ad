"""The time that is left: sane, never negative, and silent while nothing is known."""

import itertools

import numpy as np
import pytest

from unskew.cli.progress import AUDIT
from unskew.engine.progress import LEAST_SECONDS, Remaining, in_words

WEIGHTS = {name: stage.weight for name, stage in AUDIT.items()}


class Clock:
    def __init__(self):
        self.now = 0.0

    def __call__(self):
        return self.now


def events(stages):
    """Return when each step is reported: stages are (name, the seconds of each of its steps)."""
    now, seen = 0.0, []
    for name, each in stages:
        seen.append((now, name, 0, len(each)))
        for done, seconds in enumerate(each, start=1):
            now += seconds
            seen.append((now, name, done, len(each)))
    return seen


def estimates(seen, weights, step=0.5):
    """Return (time, seconds left, share) every half second while these events come in."""
    clock = Clock()
    remaining = Remaining(weights, clock)
    rows, at, end = [], 0, seen[-1][0]
    for time in np.arange(0.0, end, step):
        while at < len(seen) and seen[at][0] <= time:
            clock.now, *report = seen[at]
            remaining.report(*report)
            at += 1
        clock.now = float(time)
        rows.append((float(time), remaining.seconds(), remaining.share()))
    return rows, end


# Seconds as measured on two processors: tasks of a split take turns, the tuned system is slowest.
DEMO = [
    ("reading", [1.5]),
    ("splits", [0.7, 0.2, 0.2, 0.2, 0.1, 0.1]),
    ("designs", [1.0, 0.8, 0.8, 2.1] * 6),
    ("null experiment", [1.9, 0.6, 0.8, 0.6, 1.2, 0.7, 0.9, 0.6]),
    ("conclusions", [0.1, 0.3, 0.5]),
    ("diagnostics", [0.1, 0.1, 0.1, 0.3]),
    ("statements", [2.5]),
]
ML_100K = [
    ("reading", [1.0]),
    ("splits", [0.2] * 7),
    ("designs", [0.3, 0.4, 0.4, 2.2, 1.9, 1.3] * 7),
    ("null experiment", [5.2, 2.6, 2.6, 2.7, 2.6, 2.5, 2.6, 2.6]),
    ("conclusions", [0.3, 0.5, 0.6]),
    ("diagnostics", [0.1, 0.1, 0.1, 0.3]),
    ("statements", [2.4]),
]


@pytest.mark.parametrize("stages", [DEMO, ML_100K], ids=["demo", "ml-100k"])
def test_an_audit_is_estimated_as_a_whole(stages):
    rows, end = estimates(events(stages), WEIGHTS)
    late = [(time, left) for time, left, _ in rows if time > 0.2 * end]
    assert None not in [left for _, left in late]
    for time, left in late:
        assert left <= 1.6 * (end - time) + 4, (time, left, end - time)
        assert left >= (end - time) / 1.6 - 4, (time, left, end - time)


def test_many_audits_of_other_proportions():
    """Stages that take half or twice their usual share still give a usable estimate."""
    rng = np.random.default_rng(5)
    errors = []
    for _ in range(60):
        stages = []
        for name, weight in WEIGHTS.items():
            steps = int(rng.integers(1, 40))
            whole = 3 * weight * 2 ** rng.uniform(-1, 1)
            stages.append((name, list(whole * rng.dirichlet(np.full(steps, 3.0)))))
        rows, end = estimates(events(stages), WEIGHTS, step=end_step(stages))
        shares = [share for *_, share in rows]
        assert all(0 <= a <= b <= 1 for a, b in itertools.pairwise(shares))
        for time, left, _ in rows:
            assert left is None or left >= 0
            if left is not None and 0.3 * end < time < 0.9 * end:
                errors.append(abs(np.log((left + 1) / (end - time + 1))))
    assert np.mean(np.array(errors) < np.log(2)) > 0.85


def end_step(stages):
    return sum(sum(each) for _, each in stages) / 100


def test_jumps_are_rare():
    rows, end = estimates(events(ML_100K), WEIGHTS, step=0.25)
    lefts = [left for _, left, _ in rows if left is not None]
    rises = [b - a for a, b in itertools.pairwise(lefts) if b > a]
    assert sum(rises) < 0.4 * end  # it falls by more than all of it
    assert max(rises) < 0.1 * end


def test_even_steps_are_known_exactly():
    rows, end = estimates(events([("one", [2.0] * 50)]), None, step=1.0)
    for time, left, share in rows:
        assert share == pytest.approx(int(time / 2) / 50)
        if time > 10:
            assert left == pytest.approx(end - time, abs=0.01)


def test_nothing_is_said_too_early():
    clock = Clock()
    remaining = Remaining({"a": 1, "b": 9}, clock)
    assert remaining.seconds() is None
    assert remaining.share() == 0
    remaining.report("a", 0, 4)
    clock.now = 10.0
    remaining.report("a", 1, 4)  # a fortieth of all
    assert remaining.text() == ""
    clock.now = LEAST_SECONDS - 1
    other = Remaining(None, clock)
    other.report("a", 0, 2)
    clock.now = LEAST_SECONDS
    other.report("a", 1, 2)
    assert other.text() == ""  # its clock began a second ago


def test_what_was_stored_took_no_time():
    clock = Clock()
    remaining = Remaining(None, clock)
    remaining.report("tasks", 80, 100)  # in the store
    clock.now = 50.0
    remaining.report("tasks", 85, 100)
    assert remaining.seconds() == pytest.approx(150.0)
    begun = Remaining(None, clock)
    begun.begin("tasks")
    begun.begin("tasks", stored=9)
    clock.now += 10
    begun.report("tasks", 10, 12)  # the first one that was worked on
    assert begun.seconds() == pytest.approx(20.0)


def test_a_step_that_takes_long_is_not_the_end():
    clock = Clock()
    remaining = Remaining(None, clock)
    remaining.report("steps", 0, 10)
    for step in range(1, 4):
        clock.now = 10.0 * step
        remaining.report("steps", step, 10)
    assert remaining.seconds() == pytest.approx(70.0)
    clock.now = 500.0  # the fourth still runs
    assert remaining.seconds() >= 30  # six more come
    remaining.report("steps", 10, 10)
    assert remaining.seconds() >= 0


def test_a_stage_that_is_tried_again_and_one_that_is_left_out():
    clock = Clock()
    remaining = Remaining({"a": 1, "b": 1, "c": 1}, clock)
    remaining.report("a", 0, 2)
    clock.now = 10.0
    remaining.report("a", 2, 2)
    remaining.report("c", 0, 2)  # there is no b
    assert remaining.share() == pytest.approx(2 / 3)
    clock.now = 15.0
    remaining.report("c", 1, 2)
    remaining.report("c", 0, 4)
    clock.now = 20.0
    remaining.report("c", 1, 4)
    assert remaining.share() > 2 / 3
    assert 5 < remaining.seconds() < 20


def test_a_number_of_steps_that_is_not_known():
    clock = Clock()
    remaining = Remaining(None, clock)
    remaining.report("bytes", 0, 0)
    clock.now = 60.0
    remaining.report("bytes", 4_000, 0)
    assert (remaining.seconds() or 0.0) >= 0
    assert 0 <= remaining.share() <= 1


@pytest.mark.parametrize(
    ("seconds", "words"),
    [
        (0, "a few seconds"),
        (9, "about 10 s"),
        (57, "about 55 s"),
        (59, "about 1 min"),
        (89, "about 1 min"),
        (90, "about 2 min"),
        (3_500, "about 58 min"),
        (3_600, "about 1 h"),
        (9_000, "about 2 h 30 min"),
        (100_000, "about 28 h"),
    ],
)
def test_words(seconds, words):
    assert in_words(seconds) == words
