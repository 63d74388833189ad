"""Propensities: by hand, against oracles, in worlds where they are known, and every error."""

import math
import sys

import numpy as np
import polars as pl
import pytest

import unskew as us
from unskew.errors import DataError, SettingError, UnknownName
from unskew.unbiased.propensity import propensity

module = sys.modules[propensity.__module__]

TRAIN = {"user": [1, 2, 3], "item": ["a", "a", "b"], "rating": [5, 4, 1]}
TEST = {"user": [3, 4], "item": ["a", "c"], "rating": [5, 2]}


def world(users=400, items=60, seed=0, power=0.7, top=0.6, share=0.1):
    """Return observed and random ratings of a world in which p(rated | liked) = c i^-power.

    Being rated does not depend on being liked here, so counts are in proportion to p.
    """
    rng = np.random.default_rng(seed)
    p = top * (np.arange(items) + 1.0) ** -power
    value = np.where(rng.random((users, items)) < 0.3, 5.0, 2.0)
    seen = rng.random((users, items)) < p
    chosen = rng.random((users, items)) < share
    return p, table(value, seen), table(value, chosen)


def table(value, mask):
    user, item = np.nonzero(mask)
    return us.read_ratings({"user": user, "item": item, "rating": value[user, item]})


# Popularity


def test_popularity_by_hand():
    made = propensity(TRAIN, TEST)
    # 4 users; a has 3 ratings, c 1; 2 of 5 ratings are in the test part.
    p, sigma = np.array([3 / 4, 1 / 4]), 2 / 5
    assert made.observed == pytest.approx(p)
    assert made.value == pytest.approx(sigma * p / (1 - (1 - sigma) * p))
    assert made.weight == pytest.approx(1 / made.value)
    assert made.known
    assert made.share == sigma
    assert made.table().columns == ["user", "item", "rating", "propensity"]


def test_the_chance_outside_training_is_not_that_of_the_test_part():
    """Simulated: of the pairs that are not in training, this share is in the test part."""
    rng = np.random.default_rng(1)
    p, sigma, pairs = 0.7, 0.3, 400_000
    rated = rng.random(pairs) < p
    test = rated & (rng.random(pairs) < sigma)
    outside = ~(rated & ~test)
    found = test[outside].mean()
    said = module._outside_training(np.array([p]), None, sigma)[0]
    assert abs(found - said) < 4.5 * math.sqrt(said * (1 - said) / outside.sum())
    assert said > 1.3 * sigma * p


def test_share_by_item():
    made = propensity(TRAIN, TEST, test_share="items")
    p, sigma = np.array([3 / 4, 1 / 4]), np.array([1 / 3, 1.0])
    assert made.value == pytest.approx(sigma * p / (1 - (1 - sigma) * p))
    assert made.share == "items"


def test_without_training_the_chance_is_that_of_being_rated():
    made = propensity(None, TEST)
    assert made.value == pytest.approx([0.5, 0.5])
    assert made.value == pytest.approx(made.observed)


def test_another_exponent_is_known_up_to_a_factor():
    made = propensity(TRAIN, TEST, exponent=0.5)
    assert not made.known
    assert made.observed[0] / made.observed[1] == pytest.approx(math.sqrt(3))
    assert any("factor" in note for note in made.notes)


def test_exponent_from_what_was_shown():
    counts = {"a": 1, "b": 4, "c": 9, "d": 16}
    rows = [(u, i) for i, n in counts.items() for u in range(n)]
    test = {"user": [u for u, _ in rows], "item": [i for _, i in rows], "rating": [5] * len(rows)}
    # Shown n^1.5 times: 1, 8, 27, 64.
    shown = [(u, i) for i, n in counts.items() for u in range(round(n**1.5))]
    lists = pl.DataFrame(shown, schema=["user", "item"], orient="row")
    lists = lists.with_columns(rank=pl.int_range(1, pl.len() + 1).over("user"))
    made = propensity(None, test, shown=lists)
    assert made.facts["gamma"] == pytest.approx(1.5)
    assert made.facts["exponent"] == pytest.approx(1.25)


def test_exponent_and_scale_from_random_ratings():
    p, data, chosen = world(users=3000, share=0.2)
    made = propensity(None, data, random=chosen, liked=4)
    # Counts are in proportion to p, so p = counts / users: exponent 1, scale 1 / users.
    assert made.facts["exponent"] == pytest.approx(1, abs=0.06)
    # An item with about 100 ratings has a count that is off by a tenth.
    assert made.observed == pytest.approx(p[data.item], rel=0.4)
    assert (made.observed / p[data.item]).mean() == pytest.approx(1, abs=0.03)
    assert made.known


def test_equal_items_have_no_exponent():
    value = np.full((6, 4), 5.0)
    data = table(value, np.eye(6, 4, dtype=bool) | np.eye(6, 4, 1, dtype=bool)[:, ::-1])
    counts = np.bincount(data.item)
    assert np.ptp(counts) >= 0
    some = table(value, np.tril(np.ones((6, 4), bool)))
    made = propensity(None, data, random=some, liked=4)
    assert np.isfinite(made.value).all()


# Naive Bayes


def test_naive_bayes_by_hand():
    observed = {"user": [1, 1, 2, 2], "item": [1, 2, 1, 3], "rating": [5, 5, 5, 1]}
    drawn = {"user": [1, 1, 2, 2], "item": [3, 4, 4, 2], "rating": [1, 1, 1, 5]}
    made = propensity(None, observed, "naive-bayes", random=drawn, alpha=0)
    # p(5 | rated) = 3/4, p(rated) = 4/8, p(5) = 1/4 -> 3/2, set to 1; p(1): 1/4 x 1/2 / (3/4).
    assert made.facts["p(5)"] == 1
    assert made.facts["p(1)"] == pytest.approx(1 / 6)
    assert sorted(made.value.tolist()) == pytest.approx([1 / 6, 1, 1, 1])
    assert any("above 1" in note for note in made.notes)


def test_naive_bayes_finds_the_chances_of_each_rating():
    rng = np.random.default_rng(3)
    value = rng.choice([1.0, 3.0, 5.0], (500, 80), p=[0.5, 0.3, 0.2])
    true = {1.0: 0.02, 3.0: 0.1, 5.0: 0.3}
    chance = np.vectorize(true.get)(value)
    data = table(value, rng.random(value.shape) < chance)
    drawn = table(value, rng.random(value.shape) < 0.1)
    made = propensity(None, data, "naive-bayes", random=drawn)
    for rating, p in true.items():
        assert made.facts[f"p({rating:g})"] == pytest.approx(p, rel=0.12)


def test_naive_bayes_errors():
    with pytest.raises(SettingError, match="needs random"):
        propensity(TRAIN, TEST, "naive-bayes")
    drawn = {"user": [1], "item": ["c"], "rating": [5]}
    with pytest.raises(DataError, match="the rating 1 does not occur"):
        propensity(TRAIN, TEST, "naive-bayes", random=drawn, alpha=0)
    with pytest.raises(SettingError, match="alpha"):
        propensity(TRAIN, TEST, "naive-bayes", random=drawn, alpha=-1)
    odd = {"user": [1, 2], "item": ["c", "c"], "rating": [3, 5]}
    made = propensity(TRAIN, TEST, "naive-bayes", random=odd)
    assert any("1 random rating has a value" in note for note in made.notes)


# Logistic regression


def test_logistic_regression_against_a_plain_one():
    from scipy.optimize import minimize

    rng = np.random.default_rng(5)
    x, z = rng.normal(size=(12, 2)), rng.normal(size=(9, 1))
    logit = -0.5 + (x @ [0.8, -0.4])[:, None] + (z @ [0.6])[None, :]
    mask = rng.random((12, 9)) < 1 / (1 + np.exp(-logit))
    mask[:, 0] |= ~mask.any(axis=1)
    mask[0] |= ~mask.any(axis=0)
    data = table(np.full((12, 9), 4.0), mask)
    users = pl.DataFrame({"user": np.arange(12), "x": x[:, 0], "y": x[:, 1]})
    items = pl.DataFrame({"item": np.arange(9), "z": z[:, 0]})
    made = propensity(None, data, "logistic", features={"users": users, "items": items}, ridge=2.0)

    def standard(c):
        return (c - c.mean(axis=0)) / c.std(axis=0)

    design = np.hstack([
        np.ones((108, 1)), np.repeat(standard(x), 9, axis=0), np.tile(standard(z), (12, 1)),
    ])  # fmt: skip
    y = mask.ravel().astype(float)

    def loss(b):
        eta = design @ b
        return np.sum(np.logaddexp(0, eta) - y * eta) + 0.5 * 2.0 * np.sum(b[1:] ** 2)

    best = minimize(loss, np.zeros(4), method="BFGS", options={"gtol": 1e-9}).x
    expected = (1 / (1 + np.exp(-design @ best))).reshape(12, 9)[data.user, data.item]
    assert made.observed == pytest.approx(expected, abs=1e-6)
    # At the optimum without a penalty of the intercept, as many are expected as there are.
    assert (1 / (1 + np.exp(-design @ best))).sum() == pytest.approx(y.sum(), rel=1e-5)


def test_logistic_regression_without_features_uses_counts():
    _, data, chosen = world(users=800)
    made = propensity(None, data, "logistic", random=chosen)
    top = made.observed[data.item < 5].mean()
    assert top > 2 * made.observed[data.item > 40].mean()
    assert made.calibration is not None
    assert made.facts["user features"] == 1


def test_text_features_and_missing_ones():
    items = pl.DataFrame({"item": ["a", "c", "zzz"], "genre": ["pop", "jazz", "rock"]})
    made = propensity(TRAIN, TEST, "logistic", features={"items": items})
    assert made.facts["item features"] == 2
    assert made.facts["user features"] == 0
    assert ((made.value > 0) & (made.value < 1)).all()
    with pytest.raises(DataError, match="none of the ids"):
        propensity(
            TRAIN, TEST, "logistic", features={"items": items.with_columns(item=pl.lit("q"))}
        )
    with pytest.raises(DataError, match="at least one feature"):
        propensity(TRAIN, TEST, "logistic", features={"items": items.select("item")})
    with pytest.raises(UnknownName, match="Did you mean 'items'"):
        propensity(TRAIN, TEST, "logistic", features={"item": items})
    with pytest.raises(SettingError, match="ridge"):
        propensity(TRAIN, TEST, "logistic", ridge=-1)


def test_a_part_of_the_users_is_enough(monkeypatch):
    _, data, _ = world(users=600)
    whole = propensity(None, data, "logistic")
    monkeypatch.setattr("unskew.unbiased.propensity_models.MOST_PAIRS", 300 * 60)
    part = propensity(None, data, "logistic")
    assert part.value == pytest.approx(whole.value, rel=0.25)
    assert any("300 of" in note for note in part.notes)
    assert propensity(None, data, "logistic", seed=1).value.tolist() != part.value.tolist()


# Given


def test_given_by_item_by_pair_by_file_and_by_function(tmp_path):
    by_item = propensity(TRAIN, TEST, {"a": 0.5, "b": 0.9, "c": 0.1})
    assert by_item.value.tolist() == [0.5, 0.1]
    frame = pl.DataFrame({"user": [4, 3], "item": ["c", "a"], "propensity": [0.2, 0.3]})
    assert propensity(TRAIN, TEST, frame).value.tolist() == [0.3, 0.2]
    path = tmp_path / "p.csv"
    pl.DataFrame({"item": ["a", "c"], "propensity": [0.5, 0.1]}).write_csv(path)
    assert propensity(TRAIN, TEST, str(path)).value.tolist() == [0.5, 0.1]
    tile = np.linspace(0.1, 0.9, 12).reshape(4, 3)  # users 1-4, items a, b, c
    made = propensity(TRAIN, TEST, lambda users: tile[users], of="observed")
    p, sigma = np.array([tile[2, 0], tile[3, 2]]), 0.4
    assert made.value == pytest.approx(sigma * p / (1 - (1 - sigma) * p))
    with pytest.raises(DataError, match="users x items"):
        propensity(TRAIN, TEST, lambda users: tile[users, :2])


BAD = [0.0, -0.1, 1.5, math.nan, math.inf, 1e-300, 5e-324, 9.9e-13]


@pytest.mark.parametrize("bad", BAD)
def test_a_chance_that_is_none_is_refused(bad, tmp_path):
    first = r"1 of 2 judgments have no propensity from 1e-12 to 1, the first: user 4, item 'c' "
    with pytest.raises(DataError, match=first):
        propensity(TRAIN, TEST, {"a": 0.5, "c": bad})
    tile = np.full((4, 3), 0.5)
    tile[3, 2] = bad
    with pytest.raises(DataError, match=first):
        propensity(TRAIN, TEST, lambda users: tile[users])
    path = tmp_path / "p.csv"
    rows = {"user": [4, 3, 4], "item": ["a", "a", "c"], "propensity": [0.5, 0.3, bad]}
    pl.DataFrame(rows).write_csv(path)
    with pytest.raises(DataError, match=first + r"\(row 3 of .*p.csv: .*give it one"):
        propensity(TRAIN, TEST, path)
    # A bad row of a pair that nobody judged is not looked at.
    rows = {"user": [4, 3, 2], "item": ["c", "a", "c"], "propensity": [0.5, 0.3, bad]}
    assert propensity(TRAIN, TEST, rows).value.tolist() == [0.3, 0.5]


def test_the_smallest_chance_still_gives_finite_weights():
    made = propensity(TRAIN, TEST, {"a": 0.5, "c": 1e-12})
    assert made.weight.tolist() == [2, 1e12]
    with pytest.raises(DataError, match=r"\(row 2 of propensity: 1e-12\) has 4e-13; every judged"):
        propensity(TRAIN, TEST, {"a": 0.5, "c": 1e-12}, of="observed")  # σ makes it smaller


def test_what_a_file_of_chances_must_not_hold(tmp_path):
    with pytest.raises(DataError, match=r"item 'c' has 'x', which is not a number"):
        propensity(TRAIN, TEST, {"a": 0.5, "c": "x"})
    path = tmp_path / "p.csv"
    path.write_text("item,propensity\na,0.5\nc,half\n")
    with pytest.raises(DataError, match=r"\(row 2 of .*: 'half'\) has none"):
        propensity(TRAIN, TEST, path)
    twice = {"item": ["a", "c", "a"], "propensity": [0.5, 0.5, 0.4]}
    with pytest.raises(
        DataError, match=r"'a' has two propensities, 0\.5 in row 1 and 0\.4 in row 3"
    ):
        propensity(TRAIN, TEST, twice)
    twice["propensity"][2] = 0.5
    assert propensity(TRAIN, TEST, twice).value.tolist() == [0.5, 0.5]
    with pytest.raises(DataError, match=r"user 4, item 'c' \(not in propensity\) has none"):
        propensity(TRAIN, TEST, {"user": [3], "item": ["a"], "propensity": [0.5]})


def test_a_model_that_gives_impossible_chances_is_named():
    with pytest.raises(DataError, match="the model popularity does not fit these data"):
        propensity({"user": [1] * 40, "item": list(range(40)), "rating": [5] * 40},
                   {"user": [*range(50), 1], "item": ["x"] * 50 + ["y"], "rating": [5] * 51},
                   exponent=30)  # fmt: skip


def test_missing_chances_are_refused():
    with pytest.raises(DataError, match="has none"):
        propensity(TRAIN, TEST, {"a": 0.5})
    with pytest.raises(DataError, match="has none"):
        propensity(TRAIN, TEST, {"user": [9], "item": ["a"], "propensity": [0.5]})
    with pytest.raises(DataError, match="no column `propensity`"):
        propensity(TRAIN, TEST, {"item": ["a"], "chance": [0.5]})


# Calibration


def test_calibration_in_a_world():
    _, data, chosen = world(users=3000, seed=2)
    made = propensity(None, data, random=chosen, exponent=1)
    shown = made.calibration
    assert shown["pairs"].sum() == len(chosen)
    error = (shown["found"] - shown["predicted"]) / (
        shown["predicted"] * (1 - shown["predicted"]) / shown["pairs"]
    ).sqrt()
    assert error.abs().max() < 4.5
    figure = made.figure()
    assert len(figure.to_dict()["datasets"]["rows"]) == shown.height
    # Wrong ones are seen to be wrong.
    wrong = propensity(None, data, random=chosen, exponent=2).calibration
    assert (wrong["found"] - wrong["predicted"]).abs().max() > 0.02


def test_no_calibration_without_overlap_or_random_ratings():
    drawn = {"user": [1], "item": ["c"], "rating": [5]}
    made = propensity(TRAIN, TEST, random=drawn, exponent=1)
    assert made.calibration is None
    assert any("calibration not shown" in note for note in made.notes)
    with pytest.raises(SettingError, match="give random"):
        made.figure()


# Errors, words


def test_settings_that_would_be_ignored_are_refused():
    with pytest.raises(SettingError, match="features=… does not go with popularity"):
        propensity(TRAIN, TEST, features={})
    with pytest.raises(SettingError, match="exponent=… does not go with logistic"):
        propensity(TRAIN, TEST, "logistic", exponent=1)
    with pytest.raises(SettingError, match="of=… does not go with popularity"):
        propensity(TRAIN, TEST, of="test")
    with pytest.raises(SettingError, match="liked=… does not go with logistic"):
        propensity(TRAIN, TEST, "logistic", liked=4)
    with pytest.raises(SettingError, match="ridge=… does not go with popularity"):
        propensity(TRAIN, TEST, ridge=1)
    with pytest.raises(SettingError, match="give random=… too"):
        propensity(TRAIN, TEST, liked=4)
    with pytest.raises(SettingError, match="either exponent or shown"):
        propensity(TRAIN, TEST, exponent=1, shown={1: ["a"]})


def test_other_errors():
    with pytest.raises(UnknownName, match="popularity"):
        propensity(TRAIN, TEST, "popularit")
    tests = us.read_ratings(TEST)
    with pytest.raises(DataError, match="no test judgments"):
        propensity(TRAIN, tests.take(tests.user < 0))
    for name, method in (("exponent", "popularity"), ("ridge", "logistic")):
        for bad in ("1", True, math.nan, math.inf, -1):
            with pytest.raises(SettingError, match=f"{name} must be a number (from 0 up|or None)"):
                propensity(TRAIN, TEST, method, **{name: bad})
    for share in (0, 1.5, True, "some", math.nan):
        with pytest.raises(SettingError, match="test_share"):
            propensity(TRAIN, TEST, test_share=share)
    with pytest.raises(SettingError, match="exponent"):
        propensity(TRAIN, TEST, exponent=-1)
    with pytest.raises(DataError, match="not enough to fit"):
        propensity(TRAIN, TEST, shown={1: ["a"]})
    drawn = {"user": [1], "item": ["c"], "rating": [1]}
    with pytest.raises(DataError, match="no liked rating to fit the exponent from, as the random"):
        propensity(TRAIN, TEST, random=drawn, liked=4)
    with pytest.raises(DataError, match="no disliked rating to fit the exponent from"):
        propensity(TRAIN, TEST, random={"user": [1], "item": ["a"], "rating": [5]}, liked=4)
    with pytest.raises(DataError, match="no liked rating to fit the exponent from, as the ratings"):
        propensity(TRAIN, TEST, random=TRAIN, liked=9)
    with pytest.raises(SettingError, match="either relevance or liked"):
        propensity(TRAIN, TEST, random=drawn, liked=4, relevance=us.Relevance(liked=4))
    with pytest.raises(UnknownName, match="observed"):
        propensity(TRAIN, TEST, {"a": 0.5, "c": 0.5}, of="observd")


def test_words():
    made = propensity(TRAIN, TEST)
    assert "2 judgments by popularity" in str(made)
    assert "exponent 1" in made._repr_html_()
    assert repr(made) == "Propensity(popularity, 2 judgments)"
