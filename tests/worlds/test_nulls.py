"""Values redrawn: what each null keeps."""

import numpy as np
import pytest

import unskew as us
from unskew import DataError
from unskew.worlds.nulls import NULLS, redraw

RATINGS = us.world("shop", users=40, items=30, seed=5).ratings


@pytest.mark.parametrize("null", NULLS)
def test_pairs_stay_and_values_come_from_the_data(null):
    again = redraw(RATINGS, null, seed=3, **({"liked": 4, "share": 0.5} if null == "iid" else {}))
    assert np.array_equal(again.user, RATINGS.user)
    assert np.array_equal(again.item, RATINGS.item)
    assert {*again.value} <= {*RATINGS.value}
    assert not np.array_equal(again.value, RATINGS.value)


@pytest.mark.parametrize(("null", "owner"), [("within-user", "user"), ("within-item", "item")])
def test_the_values_of_an_owner_stay(null, owner):
    again = redraw(RATINGS, null, seed=3)
    for number in np.unique(getattr(RATINGS, owner)):
        mine = getattr(RATINGS, owner) == number
        assert sorted(again.value[mine]) == sorted(RATINGS.value[mine])


def test_nothing_to_redraw_is_refused():
    with pytest.raises(DataError, match="no ratings to redraw"):
        redraw(RATINGS.take(np.zeros(len(RATINGS), np.bool_)), "within-user")
