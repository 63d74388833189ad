"""Which systems of a level an audit can afford."""

import pytest

import unskew as us
from unskew.auditing import estimate
from unskew.auditing.designs import LEVELS, named_systems
from unskew.auditing.estimate import affordable
from unskew.recommend.costs import DataShape, cost_of
from unskew.recommend.limits import LARGEST

ML_1M = DataShape(1_000_209, 6_040, 3_706, 2_314, 3_428, 389_989_535.0, 816_406_113.0)
ML_20M = DataShape(20_000_263, 138_493, 26_744, 9_254, 67_310)
MILLION = DataShape(100_000_000, 1_000_000, 100_000)


def systems(level):
    return dict(named_systems(None, LEVELS[level], 4.0))


@pytest.mark.parametrize("level", LEVELS)
def test_a_million_ratings_lose_no_system(level):
    kept, left_out = affordable(systems(level), ML_1M, LEVELS[level])
    assert list(kept) == list(LEVELS[level].algorithms)
    assert left_out == {}


@pytest.mark.parametrize("shape", [ML_20M, MILLION])
def test_a_large_quick_audit_has_a_neighbourhood_and_factors(shape):
    kept, left_out = affordable(systems("quick"), shape, LEVELS["quick"], memory=12 << 30)
    assert list(kept) == ["random", "popularity", "smoothed-average", "puresvd", "item-knn"]
    assert list(left_out) == ["user-knn", "ease"]
    for why in left_out.values():
        assert "of processor time and" in why
    assert left_out["user-knn"].endswith("name it among the algorithms to run it")
    assert left_out["ease"].endswith("GiB where a model may have 2.0 GiB")  # it cannot be run


def test_what_is_left_out_follows_from_the_formulas():
    assert cost_of(systems("quick")["ease"], ML_20M).largest_part == 8 * 26_744**2 > LARGEST
    kept, left_out = affordable(systems("default"), ML_20M, LEVELS["default"])
    assert {"item-knn", "puresvd"} <= kept.keys()
    assert {"ease", "slim"} <= left_out.keys()


def test_memory_leaves_out_what_time_does_not():
    kept, left_out = affordable(systems("quick"), ML_20M, LEVELS["quick"], memory=1 << 29)
    assert list(kept) == ["random", "popularity", "smoothed-average"]
    assert "a fit may take 256 MiB" in left_out["puresvd"]


def test_the_report_says_what_is_left_out_and_what_stands_in(monkeypatch):
    """With bounds so low that a small world is too large."""
    monkeypatch.setitem(estimate.MOST_SECONDS, "quick", 0.0)
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
