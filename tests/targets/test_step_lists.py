"""Lists for the next step: what is asked, and what is refused where nothing is left to ask."""

import numpy as np
import pytest

import unskew as us
from unskew import DataError

TRAIN = {"user": [1, 1, 2], "item": [7, 8, 9], "time": [1, 2, 3]}
TEST = {"user": [1, 2, 2], "item": [9, 7, 8], "time": [5, 6, 7]}


def test_every_test_event_is_a_step():
    steps = us.targets.next_items(TRAIN, TEST)
    assert len(steps) == 3


def test_no_step_left_is_refused_with_what_was_left_out():
    with pytest.raises(DataError, match=r"^there is no step to judge: of 3 test events, "):
        us.targets.next_items(TRAIN, TEST, least_history=50)


@pytest.mark.parametrize("seed", range(4))
def test_repeated_pairs_are_no_new_steps(seed):
    """Against sets: a step asks for an item that the user has not met before."""
    rng = np.random.default_rng(seed)
    user, item = rng.integers(4, size=60).tolist(), rng.integers(9, size=60).tolist()
    rows = list(zip(user, item, range(60), strict=True))
    train, test = rows[:30], rows[30:]
    met, fresh = {row[:2] for row in train}, 0
    for pair in (row[:2] for row in test):
        fresh += pair not in met
        met.add(pair)
    names = ("user", "item", "time")
    tables = [
        dict(zip(names, map(list, zip(*part, strict=True)), strict=True)) for part in (train, test)
    ]
    assert len(us.targets.next_items(*tables, seen="drop")) == fresh
