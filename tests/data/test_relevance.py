"""`Relevance`: every rule for gain and loss, worked by hand on 1 to 5 stars."""

import numpy as np
import pytest

import unskew as us
from unskew import Relevance

STARS = np.array([1.0, 2, 3, 4, 5])


@pytest.mark.parametrize(
    ("rule", "liked", "above"),
    [
        ("rating", [1, 2, 3, 4, 5], [1, 2, 3, 4, 5]),
        ("liked-only", [0, 0, 0, 4, 5], [0, 0, 0, 4, 5]),
        ("binary", [0, 0, 0, 1, 1], [0, 0, 0, 1, 1]),
        ("levels", [0, 0, 0, 1, 2], [0, 0, 0, 1, 2]),
        ("exponential", [0, 0, 0, 1, 3], [0, 0, 0, 1, 3]),
        ("burges", [1, 3, 7, 15, 31], [1, 3, 7, 15, 31]),
        ("integer", [1, 2, 3, 4, 5], [1, 2, 3, 4, 5]),
    ],
)
def test_gains(rule, liked, above):
    assert Relevance(liked=4, gain=rule).gains(STARS).tolist() == liked
    assert Relevance(above=3, gain=rule).gains(STARS).tolist() == above


@pytest.mark.parametrize(
    ("rule", "liked", "above"),
    [("levels", [3, 2, 1, 0, 0], [3, 2, 1, 0, 0]), ("binary", [1, 1, 1, 0, 0], [1, 1, 1, 0, 0])],
)
def test_losses(rule, liked, above):
    assert Relevance(liked=4, loss=rule).losses(STARS).tolist() == liked
    assert Relevance(above=3, loss=rule).losses(STARS).tolist() == above


def test_half_stars():
    """What liked and above differ in: 3.5 is not from 4 up, but it is above 3."""
    half = np.array([2.5, 3.0, 3.5, 4.0, 4.5])
    liked, above = Relevance(liked=4, gain="levels"), Relevance(above=3, gain="levels")
    assert liked.is_liked(half).tolist() == [False, False, False, True, True]
    assert above.is_liked(half).tolist() == [False, False, True, True, True]
    assert liked.gains(half).tolist() == [0, 0, 0, 1, 1.5]
    assert above.gains(half).tolist() == [0, 0, 0.5, 1, 1.5]
    assert liked.losses(half).tolist() == [1.5, 1, 0.5, 0, 0]
    assert above.losses(half).tolist() == [1.5, 1, 0, 0, 0]
    assert Relevance(liked=4, gain="integer").gains(half).tolist() == [2, 3, 3, 4, 4]
    exponential = Relevance(above=3, gain="exponential").gains(half)
    assert exponential.tolist() == pytest.approx([0, 0, 2**0.5 - 1, 1, 2**1.5 - 1])


def test_zero_is_a_threshold_like_any_other():
    values = np.array([-1.0, 0.0, 1.0])
    assert Relevance(liked=0).is_liked(values).tolist() == [False, True, True]
    assert Relevance(above=0).is_liked(values).tolist() == [False, False, True]
    assert Relevance(above=0, gain="levels").gains(values).tolist() == [0, 0, 1]


def test_mappings():
    rule = Relevance(
        liked=4, gain={1: 0, 2: 0, 3: 0.5, 4: 1, 5: 4}, loss={1: 9, 2: 4, 3: 1, 4: 0, 5: 0}
    )
    assert rule.gains(STARS).tolist() == [0, 0, 0.5, 1, 4]
    assert rule.losses(STARS).tolist() == [9, 4, 1, 0, 0]
    assert rule.gains(np.array([5.0, 5.0, 1.0])).tolist() == [4, 4, 0]


def test_a_rating_that_a_mapping_lacks():
    message = r"the gain mapping has no entry for the rating 2 \(it has 4, 5\); add it, 0 if"
    with pytest.raises(us.DataError, match=message):
        Relevance(liked=4, gain={4: 1, 5: 2}).gains(np.array([5.0, 2.0, 3.0]))
    with pytest.raises(us.DataError, match="the loss mapping has no entry for the rating 4"):
        Relevance(liked=4, loss={1: 1}).losses(np.array([1.0, 4.0]))


def test_functions():
    rule = Relevance(liked=4, gain=np.square, loss=lambda value: 5 - value)
    assert rule.gains(STARS).tolist() == [1, 4, 9, 16, 25]
    assert rule.losses(STARS).tolist() == [4, 3, 2, 1, 0]
    with pytest.raises(us.SettingError, match="gain function must return one number per rating"):
        Relevance(liked=4, gain=np.sum).gains(STARS)


@pytest.mark.parametrize(
    ("rule", "value", "message"),
    [
        ("rating", [3.0, -1.0, -2.0], r"gives -1 for the rating -1 \(2 rows\)"),
        ("burges", [-3.0], r"gives -0\.875 for the rating -3"),
        ({1: -2}, [1.0], "gives -2 for the rating 1"),
        (lambda value: value * np.nan, [1.0], "gives nan for the rating 1"),
        (lambda value: value + np.inf, [1.0], "gives inf for the rating 1"),
    ],
)
def test_gains_below_zero_are_refused(rule, value, message):
    with pytest.raises(us.DataError, match=f"gain must be a number from 0 up, .*{message}"):
        Relevance(liked=1, gain=rule).gains(np.array(value))


@pytest.mark.parametrize("value", [0.0, -0.5])
def test_a_liked_rating_has_a_gain_above_zero(value):
    message = rf"the rating {value:g} is liked, but a gain must be above 0 \(1 row\)"
    with pytest.raises(us.DataError, match=message):
        Relevance(liked=-1).gains(np.array([3.0, value]))
    assert Relevance(liked=-1, gain="levels").gains(np.array([3.0, value, -2])).min() == 0


def test_the_default_gives_gain_to_liked_ratings_only():
    values = np.array([-10.0, 0, 3, 4, 5])
    assert Relevance(liked=4).gains(values).tolist() == [0, 0, 0, 4, 5]
    assert Relevance(above=4).gains(values).tolist() == [0, 0, 0, 0, 5]


def test_a_negative_rating_may_be_disliked():
    rule = Relevance(liked=1, gain="binary")
    assert rule.gains(np.array([-5.0, 5.0])).tolist() == [0, 1]
    assert rule.losses(np.array([-5.0, 5.0])).tolist() == [6, 0]


@pytest.mark.parametrize("thresholds", [{}, {"liked": 4, "above": 3}])
def test_one_threshold_must_be_given(thresholds):
    with pytest.raises(us.SettingError, match=r"either liked=4 .* or above=3"):
        Relevance(**thresholds)


@pytest.mark.parametrize("threshold", [float("nan"), float("inf")])
def test_the_threshold_is_a_number(threshold):
    with pytest.raises(us.SettingError, match="liked must be a number, such as 4; got"):
        Relevance(liked=threshold)


def test_unknown_rules_are_refused_with_the_nearest():
    with pytest.raises(us.UnknownName, match=r"unknown gain 'level'\. Did you mean 'levels'"):
        Relevance(liked=4, gain="level")
    with pytest.raises(us.UnknownName, match=r"unknown loss 'binar'\. Did you mean 'binary'"):
        Relevance(liked=4, loss="binar")


PAPERS = {  # liked ratings of 1 to 5, gains of 1 to 5, losses of 1 to 5
    "bellogin2017": ([5], [0, 0, 0, 0, 5], [4, 3, 2, 1, 0]),
    "valcarce2018": ([4, 5], [1, 2, 3, 4, 5], [3, 2, 1, 0, 0]),
    "carraro2020": ([4, 5], [0, 0, 0, 1, 3], [3, 2, 1, 0, 0]),
    "mena2021": ([4, 5], [0, 0, 0, 1, 2], [3, 2, 1, 0, 0]),
    "mena2021-cm100k": ([3, 4, 5], [0, 0, 1, 2, 3], [2, 1, 0, 0, 0]),
    "castells2018": ([4, 5], [0, 0, 0, 1, 1], [3, 2, 1, 0, 0]),
}


@pytest.mark.parametrize("name", PAPERS)
def test_the_rules_of_the_papers(name):
    rule = Relevance.paper(name)
    liked, gains, losses = PAPERS[name]
    assert STARS[rule.is_liked(STARS)].tolist() == liked
    assert rule.gains(STARS).tolist() == gains
    assert rule.losses(STARS).tolist() == losses


def test_every_paper_is_tested_and_others_are_refused():
    from unskew.data.relevance import PAPERS as ALL

    assert list(ALL) == list(PAPERS)
    with pytest.raises(us.UnknownName, match=r"unknown paper 'mena2012'\. Did you mean 'mena2021'"):
        Relevance.paper("mena2012")


def test_rules_describe_themselves():
    rule = Relevance(above=3, gain={5: 1}, loss=np.abs)
    assert rule.describe() == {"above": 3, "gain": {"5": 1.0}, "loss": "absolute"}
    assert str(Relevance(liked=4)) == "liked: rating >= 4; gain liked-only; loss levels"
    assert (
        str(Relevance(above=3.5, gain="binary")) == "liked: rating > 3.5; gain binary; loss levels"
    )
