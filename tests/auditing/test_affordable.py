"""Which systems of a level an audit can afford."""

import pytest

import unskew as us
from unskew.auditing.designs import LEVELS, named_systems
from unskew.auditing.large_data import MOST_OPERATIONS, affordable, beyond_limits
from unskew.recommend.fit_cost import DataShape, fit_cost
from unskew.recommend.matrices.sparse import LARGEST


def shape(ratings, users, items, user_pairs, item_pairs):
    return DataShape(
        ratings=ratings, users=users, items=items, user_pairs=user_pairs, item_pairs=item_pairs
    )


ML_1M = shape(1_000_209, 6_040, 3_706, 389_989_535.0, 816_406_113.0)
ML_20M = shape(20_000_263, 138_493, 26_744, 2.3e10, 1.4e11)
MILLION = shape(100_000_000, 1_000_000, 100_000, 3.5e10, 3.5e11)


def systems(level):
    return dict(named_systems(None, LEVELS[level], 4.0))


@pytest.mark.parametrize("level", LEVELS)
def test_a_million_ratings_lose_no_system(level):
    run, left_out = affordable(systems(level), ML_1M, LEVELS[level])
    assert list(run) == list(LEVELS[level].algorithms)
    assert left_out == {}


@pytest.mark.parametrize("data", [ML_20M, MILLION])
def test_a_large_quick_audit_has_a_neighbourhood_and_factors(data):
    run, left_out = affordable(systems("quick"), data, LEVELS["quick"], memory=12 << 30)
    assert list(run) == ["random", "popularity", "smoothed-average", "puresvd", "item-knn"]
    assert list(left_out) == ["user-knn", "ease"]
    for why in left_out.values():
        assert "billion operations and" in why
    assert left_out["user-knn"].endswith("name it among the algorithms to run it")
    assert left_out["ease"].endswith("GiB where a model may have 2.0 GiB")  # it cannot be run


def test_what_is_left_out_follows_from_the_counts():
    assert fit_cost(systems("quick")["ease"], ML_20M).largest_part == 8 * 26_744**2 > LARGEST
    run, left_out = affordable(systems("default"), ML_20M, LEVELS["default"])
    assert {"item-knn", "puresvd"} <= run.keys()
    assert {"ease", "slim"} <= left_out.keys()


def test_the_limit_is_the_number_of_operations():
    knn = us.recommend.UserKNN()
    most = MOST_OPERATIONS["quick"]
    assert not beyond_limits(knn, shape(10**6, 10**5, 10**4, 1e7, most), LEVELS["quick"])
    why = beyond_limits(knn, shape(10**6, 10**5, 10**4, 1e7, 2 * most), LEVELS["quick"])
    assert why.startswith("a fit would take about 60 billion operations and ")
    assert why.endswith(
        "for 100,000 users and 10,000 items, and this level allows 30 billion operations"
    )


def test_memory_leaves_out_what_time_does_not():
    run, left_out = affordable(systems("quick"), ML_20M, LEVELS["quick"], memory=1 << 29)
    assert list(run) == ["random", "popularity", "smoothed-average"]
    assert "and it may take 256 MiB" in left_out["puresvd"]


def test_the_report_says_what_is_left_out_and_what_stands_in(monkeypatch):
    """With bounds so low that a small world is too large."""
    monkeypatch.setitem(MOST_OPERATIONS, "quick", 0.0)
    shop = us.world("shop", users=60, items=40, seed=3)
    chosen = {"designs": ["all-items"], "repeats": 2, "permutations": 50, "tune": False}
    result = us.audit(shop.ratings, "quick", liked=4, **chosen)
    assert result.systems == (*LEVELS["quick"].algorithms[:3], "puresvd", "item-knn")
    assert "this level allows" in result.skipped["system user-knn"]
    assert any(line.startswith("item-knn is run because ") for line in result.assumed)
    named = us.audit(
        shop.ratings, "quick", liked=4, algorithms=["popularity", "user-knn"], **chosen
    )
    assert named.systems == ("popularity", "user-knn")
