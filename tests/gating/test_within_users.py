"""What the gate measures within users: against plain loops, and in simulations of another make."""

from dataclasses import replace

import numpy as np
import pytest

import unskew as us
from unskew.gating.checks import INFORM, NOT_SETTLED, OPEN, PASS, PROMOTE
from unskew.gating.settings import RAILS, GateSettings
from unskew.gating.values import ENOUGH, PRIOR, lay, metric_of, values_of

OFF = dict.fromkeys(RAILS, "off")


def ratings_of(rows):
    user, item, value = zip(*rows, strict=True)
    return {"user": list(user), "item": list(item), "rating": list(value)}


def lists_of(rng, users, items, k):
    return {u: rng.permutation(items)[:k].tolist() for u in range(users)}


@pytest.fixture(scope="module")
def small():
    """Return test, training and two runs of 30 users and 12 items, and 2 items nobody rated."""
    rng = np.random.default_rng(5)
    rows = {part: [] for part in ("test", "train")}
    for user in range(30):
        for item in rng.permutation(12)[: rng.integers(4, 9)]:
            part = "test" if rng.random() < 0.5 else "train"
            rows[part].append((user, int(item), int(rng.choice([2, 5]))))
    runs = {name: lists_of(rng, 30, 14, 4) for name in ("new", "old")}
    return rows["test"], rows["train"], runs


def measured(small, metric="nDCG@4", *, with_train=True):
    test, train, runs = small
    more = {"train": ratings_of(train)} if with_train else {}
    judged = us.judge(ratings_of(test), runs, liked=4, **more)
    return values_of(lay(judged, "new", "old", metric_of(metric)))


@pytest.mark.parametrize("with_train", [True, False])
def test_usual_shares_are_those_of_a_loop(small, with_train):
    test, train, _ = small
    values = measured(small, with_train=with_train)
    rows = test + (train if with_train else [])
    users = sorted({user for user, _, _ in test})
    shares = [np.mean([value >= 4 for u, _, value in rows if u == user]) for user in users]
    np.testing.assert_allclose(values.usual, shares)


def test_filled_shares_are_those_of_a_loop(small):
    test, train, runs = small
    values = measured(small)
    overall = np.mean([value >= 4 for _, _, value in test + train])

    def average(item):
        liked = [value >= 4 for _, i, value in test + train if i == item]
        return (sum(liked) + PRIOR * overall) / (len(liked) + PRIOR)

    rated = {(user, item): value >= 4 for user, item, value in test}
    for name, column in zip(("new", "old"), values.filled, strict=True):
        expected = [
            np.mean([rated.get((user, item), average(item)) for item in runs[name][user]])
            for user in sorted({user for user, _, _ in test})
        ]
        np.testing.assert_allclose(column, expected)


def test_counts_by_rank_are_those_of_a_loop(small):
    test, _, runs = small
    values = measured(small)
    rated = {(user, item): value >= 4 for user, item, value in test}
    users = sorted({user for user, _, _ in test})
    for at, name in enumerate(("new", "old")):
        liked, judged = np.zeros(len(users)), np.zeros(len(users))
        for row, user in enumerate(users):
            for rank, item in enumerate(runs[name][user], start=1):
                if (user, item) in rated:
                    judged[row] += 1 / np.log2(rank + 1)
                    liked[row] += rated[user, item] / np.log2(rank + 1)
        np.testing.assert_allclose(values.liked_by_rank[at], liked)
        np.testing.assert_allclose(values.judged_by_rank[at], judged)
    plain = measured(small, "P@4")
    for weighted, counts in (("liked_by_rank", "liked"), ("judged_by_rank", "judged")):
        np.testing.assert_array_equal(getattr(plain, weighted), getattr(plain, counts))


def test_unrated_shares_are_those_of_a_loop(small):
    test, train, runs = small
    known = {item for _, item, _ in test + train}
    shares = [
        np.mean([item not in known for items in runs[name].values() for item in items])
        for name in ("new", "old")
    ]
    assert measured(small).unrated == pytest.approx(shares)
    assert shares[0] > 0


def test_a_small_log_does_not_tell_which_items_nobody_rated(small):
    test, _, runs = small
    assert measured(small, with_train=False).unrated is not None
    assert measured((test[:20], [], runs), with_train=False).unrated is None
    judged = us.judge(ratings_of(test[:20]), runs, liked=4)
    gate = us.gate(judged, candidate="new", production="old", metric="P@4", rails=OFF)
    (fact,) = [check for check in gate.data if check.key == "data unrated"]
    assert fact.outcome == INFORM
    assert str(ENOUGH) in fact.reason


def test_training_without_dislikes_says_nothing_of_the_usual(small):
    test, train, runs = small
    likes = [(user, item, 5) for user, item, _ in train]
    with_likes = measured((test, likes, runs))
    np.testing.assert_array_equal(with_likes.usual, measured(small, with_train=False).usual)


def test_light_users_have_at_most_the_median_number_of_ratings(small):
    _, train, _ = small
    values = measured(small)
    users = sorted({user for user, _, _ in small[0]})
    counts = np.array([sum(user == u for u, _, _ in train) for user in users])
    np.testing.assert_array_equal(values.light, counts <= np.median(counts))


# Nobody prefers what is recommended, and yet a system scores higher


def focused(seed, users=500, items=300):
    """Predictable users like .7 of anything, the others .35; lists of one system know the first."""
    rng = np.random.default_rng(seed)
    is_focused = rng.random(users) < 0.5
    part = rng.integers(5, size=users)
    near = np.arange(items) % 5 == part[:, None]
    weight = np.where(is_focused[:, None] & near, 60.0, 1.0)
    rated = rng.random((users, items)) < np.minimum(50 * weight / weight.sum(1)[:, None], 0.9)
    likes = rng.random((users, items)) < np.where(is_focused, 0.7, 0.35)[:, None]
    user, item = np.nonzero(rated)
    test = {"user": user, "item": item, "rating": np.where(likes[rated], 5, 1)}
    noise = rng.random((2, users, items))
    knows = np.argsort(-(noise[0] + (is_focused[:, None] & near)), axis=1)[:, :10]
    random = np.argsort(-noise[1], axis=1)[:, :10]
    arrays = us.Run.from_arrays
    return test, {"new": arrays(np.arange(users), knows), "old": arrays(np.arange(users), random)}


@pytest.mark.parametrize("metric", ["P@10", "nDCG@10"])
def test_generous_users_who_are_better_known_carry_no_lead(metric):
    outcomes = []
    for seed in range(12):
        test, runs = focused(seed)
        gate = us.gate(
            test, runs, candidate="new", production="old", metric=metric, liked=4, rails=OFF
        )
        assert gate.better.outcome == PASS
        assert gate.popularity.liked > 1.05  # over all users together it is liked more
        outcomes.append(gate.verdict)
    assert outcomes.count(PROMOTE) <= 3  # .05 each: four or more in .0004 of all cases


def test_popular_items_at_the_top_carry_no_lead():
    """The same items in both lists; the candidate puts first what more people rate."""
    outcomes = []
    for seed in range(12):
        rng = np.random.default_rng([1, seed])
        users, items = 500, 60
        chance = np.linspace(0.9, 0.05, items)
        rated = rng.random((users, items)) < chance
        likes = rng.random((users, items)) < 0.5
        user, item = np.nonzero(rated)
        test = {"user": user, "item": item, "rating": np.where(likes[rated], 5, 1)}
        chosen = rng.permuted(np.tile(np.arange(items), (users, 1)), axis=1)[:, :10]
        arrays = us.Run.from_arrays
        runs = {
            "new": arrays(np.arange(users), np.sort(chosen, axis=1)),
            "old": arrays(np.arange(users), chosen),
        }
        gate = us.gate(test, runs, candidate="new", production="old", liked=4, rails=OFF)
        assert gate.better.outcome == PASS
        assert gate.popularity.is_needed
        outcomes.append(gate.verdict)
    assert outcomes.count(PROMOTE) <= 3


def new_items(seed, users=400):
    """Four good items and six that nobody has rated, for ten middling ones."""
    rng = np.random.default_rng([2, seed])
    chance = np.array([0.6] * 4 + [0.2] * 10)  # good ones are rated more
    liked = np.array([0.7] * 4 + [0.5] * 10)
    rated = rng.random((users, 14)) < chance
    likes = rng.random((users, 14)) < liked
    user, item = np.nonzero(rated)
    test = {"user": user, "item": item, "rating": np.where(likes[rated], 5, 1)}
    lists = {"new": [0, 1, 2, 3, *range(14, 20)], "old": list(range(4, 14))}
    return test, {name: dict.fromkeys(range(users), items) for name, items in lists.items()}


def test_items_that_nobody_rated_prevent_promotion():
    test, runs = new_items(1)
    names = {"candidate": "new", "production": "old", "metric": "P@10", "by": ["activity"]}
    names |= {"liked": 4, "rails": OFF}
    gate = us.gate(test, runs, **names)
    open_checks = [check for check in gate.checks if check.outcome == OPEN]
    assert [check.key for check in open_checks] == ["data unrated"]
    assert gate.verdict == NOT_SETTLED
    assert "60.0% of the candidate's recommendations are items that nobody" in open_checks[0].reason
    assert "has rated (production: 0.0%)" in open_checks[0].reason
    allowed = us.gate(test, runs, config={"data": {"unrated": 0.6}}, **names)
    assert allowed.verdict == PROMOTE


def test_rarely_rated_bad_items_are_seen_by_their_averages():
    """As new items, but some people rated them: few, and most disliked them."""
    test, runs = new_items(2)
    rng = np.random.default_rng(3)
    rows = [(u, i, 5 if rng.random() < 0.15 else 1) for i in range(14, 20) for u in range(12)]
    more = {name: [row[at] for row in rows] for at, name in enumerate(("user", "item", "rating"))}
    test = {name: [*test[name], *more[name]] for name in test}
    gate = us.gate(
        test,
        runs,
        candidate="new",
        production="old",
        metric="P@10",
        liked=4,
        rails=OFF,
        by=["activity"],
    )
    assert gate.better.outcome == PASS
    assert [check.key for check in gate.checks if check.outcome == OPEN] == ["data averages"]


# Light users


def of_light_users(fall, users=600, seed=4):
    """Return values where heavy users gain and light ones lose a share of the score."""
    rng = np.random.default_rng(seed)
    light = np.arange(users) % 2 == 0
    base = 0.3 + 0.05 * rng.standard_normal(users)
    change = np.where(light, -0.3 * fall, 0.15) + 0.05 * rng.standard_normal(users)
    return light, base, change


@pytest.mark.parametrize(
    ("fall", "margin", "outcome"),
    [(0.05, None, PASS), (0.15, None, OPEN), (0.25, None, "fail"), (0.25, "15%", PASS)],
)
def test_the_rail_of_light_users(small, fall, margin, outcome):
    from unskew.gating.checks import check_values
    from unskew.gating.values import Pair

    light, base, change = of_light_users(fall)
    size = base.size
    zero = Pair(np.zeros(size), np.zeros(size))
    columns = dict.fromkeys(
        ("liked", "judged", "levelled", "liked_by_rank", "judged_by_rank", "filled"), zero
    )
    values = replace(
        measured(small),
        metric=Pair(base + change, base),
        anti=None,
        usual=np.ones(size),
        light=light,
        segments=None,
        **columns,
    )
    settings = GateSettings(rails={"light": GateSettings().rails["light"]})
    settings = settings.with_margin(margin) if margin else settings
    checks = check_values(values, settings, 0.05)
    assert checks.better.outcome == PASS  # the mean over all users rises
    (rail,) = checks.rails
    assert rail.outcome == outcome
    assert rail.change == pytest.approx(change[light].mean())
    allowed = 0.15 + (0.15 if margin else 0)
    assert rail.limit == pytest.approx(-allowed * base[light].mean())
    assert rail.is_loss


def test_the_rail_of_light_users_is_turned_round_where_lower_is_better(small):
    from unskew.gating.checks import check_values
    from unskew.gating.values import Pair

    light, base, change = of_light_users(0.25)
    size = base.size
    zero = Pair(np.zeros(size), np.zeros(size))
    columns = dict.fromkeys(
        ("liked", "judged", "levelled", "liked_by_rank", "judged_by_rank", "filled"), zero
    )
    values = replace(
        measured(small),
        metric=Pair(base - change, base),
        anti=None,
        usual=np.ones(size),
        light=light,
        segments=None,
        is_lower_better=True,
        **columns,
    )
    settings = GateSettings(rails={"light": GateSettings().rails["light"]})
    (rail,) = check_values(values, settings, 0.05).rails
    assert rail.outcome == "fail"
    assert not rail.is_loss
    assert rail.low > rail.limit > 0
