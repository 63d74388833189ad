"""Lists for the next step: what is asked, and what is refused where nothing is left to ask."""

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
