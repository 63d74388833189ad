"""Neighbourhood methods against plain numpy twins, planted structure, and the edges of data."""

import subprocess
import sys

import numpy as np
import polars as pl
import pytest

from unskew import Ratings
from unskew.errors import DataError, SettingError
from unskew.recommend.matrices import sparse
from unskew.recommend.matrices.similarity import Cosines, item_neighbours, user_neighbours
from unskew.recommend.matrices.sparse import user_rows
from unskew.recommend.neighbours import (
    CHI2,
    KLD,
    RSV,
    RW,
    ItemKNN,
    NNCosNgbrIB,
    NNCosNgbrUB,
    UserKNN,
)

PROBABILISTIC = [RSV(k=4), CHI2(k=4), KLD(k=4)]
EVERY = [
    UserKNN(k=4), UserKNN(k=None), UserKNN(k=None, normalised=True), UserKNN(k=4, power=2),
    UserKNN(k=4, votes="truncated"), UserKNN(k=6, normalised=True, min_support=3),
    ItemKNN(k=4), ItemKNN(k=None), ItemKNN(k=4, lists="target"), ItemKNN(k=4, normalised=True),
    UserKNN(k=4, asymmetry=0.2), UserKNN(k=None, asymmetry=1.0), ItemKNN(k=4, asymmetry=1.0),
    NNCosNgbrUB(4, 1.0, 1.0, 1.0), NNCosNgbrIB(4, 1.0, 1.0, 1.0), RW(k=4), *PROBABILISTIC,
]  # fmt: skip


def ratings_of(matrix: np.ndarray) -> Ratings:
    """Make ratings of a matrix in which NaN is a missing rating; all users and items are known."""
    everything = Ratings.of(
        pl.Series(np.repeat(np.arange(matrix.shape[0]), matrix.shape[1])),
        pl.Series(np.tile(np.arange(matrix.shape[1]), matrix.shape[0])),
        pl.Series(matrix.ravel(), dtype=pl.Float64).fill_nan(0.0),
    )
    return everything.take(~np.isnan(matrix.ravel()))


def random_matrix(seed: int, users: int = 23, items: int = 17, density: float = 0.35) -> np.ndarray:
    """Ratings from 0 to 5, with ties, one user and one item without ratings."""
    rng = np.random.default_rng(seed)
    matrix = rng.integers(0, 6, (users, items)).astype(float)
    matrix[rng.random(matrix.shape) >= density] = np.nan
    matrix[3, :] = np.nan
    matrix[:, 5] = np.nan
    return matrix


def everyone(train: Ratings) -> np.ndarray:
    return np.arange(len(train.users), dtype=np.int32)


def scores(algorithm, train: Ratings) -> np.ndarray:
    return algorithm.fit(train).score(everyone(train))


# ------------------------------------------------------------------ plain twins


def plain_cosine(matrix: np.ndarray, shrink: float = 0.0, asymmetry: float = 0.5) -> np.ndarray:
    filled, rated = np.nan_to_num(matrix), (~np.isnan(matrix)).astype(float)
    square = (filled**2).sum(axis=1)
    length = np.outer(square**asymmetry, square ** (1 - asymmetry))
    with np.errstate(invalid="ignore", divide="ignore"):
        cosine = np.nan_to_num((filled @ filled.T) / length)
        shared = rated @ rated.T
        cosine = cosine * np.nan_to_num(shared / (shared + shrink))
    np.fill_diagonal(cosine, 0.0)
    return cosine


def plain_nearest(cosine: np.ndarray, k: int | None) -> np.ndarray:
    """Keep the k largest positive entries of each row, ties by ascending number."""
    kept = np.zeros_like(cosine)
    for row, values in enumerate(cosine):
        order = np.argsort(-values, kind="stable")[: k or values.size]
        kept[row, order] = values[order]
    return np.maximum(kept, 0.0)


def plain_user_knn(
    matrix, k, power=1.0, votes=None, normalised=False, min_support=1, asymmetry=0.5
):
    near = plain_nearest(plain_cosine(matrix, asymmetry=asymmetry), k)
    rated = ~np.isnan(matrix)
    weight = np.where(near > 0, near**power, 0.0)
    total = weight @ np.nan_to_num(matrix if votes is None else votes)
    if normalised:
        total = total / np.maximum(weight @ rated, 1e-300)
    return np.where((near > 0).astype(int) @ rated.astype(int) >= min_support, total, np.nan)


def plain_item_knn(matrix, k, power=1.0, lists="rated", normalised=False, asymmetry=0.5):
    near = plain_nearest(plain_cosine(matrix.T, asymmetry=asymmetry), k)
    near = near if lists == "rated" else near.T
    weight = np.where(near > 0, near**power, 0.0)
    rated = (~np.isnan(matrix)).astype(float)
    total = np.nan_to_num(matrix) @ weight
    if normalised:
        total = total / np.maximum(rated @ weight, 1e-300)
    return np.where(rated @ (near > 0) > 0, total, np.nan)


def plain_nncosngbr(matrix, k, shrink, user_shrink, item_shrink, based):
    mean, rated = np.nanmean(matrix), ~np.isnan(matrix)
    item = np.nansum(matrix - mean, axis=0) / (rated.sum(axis=0) + item_shrink)
    user = np.nansum(matrix - mean - item, axis=1) / (rated.sum(axis=1) + user_shrink)
    baseline = mean + user[:, None] + item
    deviation = np.nan_to_num(matrix - baseline)
    if based == "user":
        score = baseline + plain_nearest(plain_cosine(matrix, shrink), k) @ deviation
    else:
        score = baseline + deviation @ plain_nearest(plain_cosine(matrix.T, shrink), k).T
    score[~rated.any(axis=1)] = np.nan
    score[:, ~rated.any(axis=0)] = np.nan
    return score


def plain_feedback(weight, matrix, k, by_length=True):
    near = plain_nearest(plain_cosine(matrix), k) > 0
    rated, filled = ~np.isnan(matrix), np.nan_to_num(matrix)
    result = np.full(matrix.shape, np.nan)
    for u, mine in enumerate(near):
        for i in range(matrix.shape[1]):
            if rated[mine, i].any():
                p = filled[mine, i].sum() / filled[mine].sum()
                c = filled[:, i].sum() / filled.sum()
                if by_length:
                    p, c = p / mine.sum(), c / rated.any(axis=1).sum()
                rw = filled[mine, i].sum() / mine.sum()
                result[u, i] = {
                    "rw": rw,
                    "rsv": rw * filled[mine, i].sum() / filled[mine].sum(),
                    "chi2": (p - c) ** 2 / c if c > 0 else 0.0,
                    "kld": p * np.log(p / c) if p > 0 else 0.0,
                }[weight]
    return result


# ------------------------------------------------------------------ similarities


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("shrink", [0.0, 2.5])
@pytest.mark.parametrize("k", [1, 5, 16, 100, None])
def test_neighbours_are_the_k_most_similar(seed, shrink, k):
    matrix = random_matrix(seed)
    train = ratings_of(matrix)
    for near, plain in (
        (user_neighbours(train, k, shrink), plain_cosine(matrix, shrink)),
        (item_neighbours(train, k, shrink), plain_cosine(matrix.T, shrink)),
    ):
        wanted = plain_nearest(plain, k)
        found = np.zeros_like(wanted)
        for row in range(len(near)):
            span = slice(near.start[row], near.start[row + 1])
            found[row, near.column[span]] = near.value[span]
            if k is not None and k < len(near) - 1:
                assert (np.diff(near.value[span]) <= 0).all()
            else:
                assert (np.diff(near.column[span]) > 0).all()
        np.testing.assert_allclose(found, wanted, rtol=1e-12)


def test_equal_neighbours_come_by_ascending_number():
    matrix = np.array([[5.0, 3.0, np.nan], *[[5.0, 3.0, 1.0]] * 6])
    near = user_neighbours(ratings_of(matrix), 3)
    assert near.column[:3].tolist() == [1, 2, 3]
    assert near.column[near.start[6] : near.start[7]].tolist() == [1, 2, 3]


@pytest.mark.parametrize("k", [3, None])
def test_rows_that_meet_few_others_are_listed_with_the_same_result(k):
    # 400 users in pairs: each meets one other, which is where the kernel lists in place of scans.
    matrix = np.full((400, 200), np.nan)
    matrix[np.arange(400), np.arange(400) // 2] = 1 + np.arange(400) % 5
    matrix[::7, 0] = 3.0
    train = ratings_of(matrix)
    near = user_neighbours(train, k, 1.0)
    wanted = plain_nearest(plain_cosine(matrix, 1.0), k)
    found = np.zeros_like(wanted)
    found[np.repeat(np.arange(400), np.diff(near.start)), near.column] = near.value
    np.testing.assert_allclose(found, wanted, rtol=1e-12)


def test_a_block_of_cosines():
    matrix = random_matrix(1)
    some = np.array([7, 3, 0], np.int32)
    block = Cosines.of(user_rows(ratings_of(matrix)), shrink=2.0).block(some)
    np.testing.assert_allclose(block, plain_cosine(matrix, 2.0)[some], rtol=1e-12)


def test_lists_that_would_not_fit_are_refused(monkeypatch):
    monkeypatch.setattr(sparse, "LARGEST", 1 << 10)
    train = ratings_of(random_matrix(0))
    with pytest.raises(DataError, match=r"all neighbours of 17 rows.*k of about 5 or less"):
        ItemKNN(k=None).fit(train)
    UserKNN(k=3).fit(train)
    UserKNN(k=None).fit(train)


# ------------------------------------------------------------------ algorithms


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("k", [3, None])
@pytest.mark.parametrize("power", [1.0, 2.0, 0.0])
@pytest.mark.parametrize(("normalised", "min_support"), [(False, 1), (True, 1), (True, 3)])
def test_user_knn(seed, k, power, normalised, min_support):
    matrix = random_matrix(seed)
    settings = {"k": k, "power": power, "normalised": normalised, "min_support": min_support}
    found = scores(UserKNN(**settings), ratings_of(matrix))
    np.testing.assert_allclose(found, plain_user_knn(matrix, **settings), rtol=1e-9)


def test_truncated_votes():
    matrix = random_matrix(2)
    found = scores(UserKNN(k=5, votes="truncated", threshold=3), ratings_of(matrix))
    votes = np.maximum(matrix - 2, 0)
    np.testing.assert_allclose(found, plain_user_knn(matrix, 5, votes=votes), rtol=1e-9)
    assert (found == 0).any()  # rated, but by nobody who liked it


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("k", [3, None])
@pytest.mark.parametrize("lists", ["rated", "target"])
@pytest.mark.parametrize("normalised", [False, True])
def test_item_knn(seed, k, lists, normalised):
    matrix = random_matrix(seed)
    found = scores(ItemKNN(k, 1.5, lists, normalised), ratings_of(matrix))
    wanted = plain_item_knn(matrix, k, 1.5, lists, normalised)
    np.testing.assert_allclose(found, wanted, rtol=1e-9)


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("k", [3, None])
@pytest.mark.parametrize("asymmetry", [0.0, 0.3, 1.0])
@pytest.mark.parametrize("lists", ["rated", "target"])
def test_asymmetric_cosines(seed, k, asymmetry, lists):
    matrix = random_matrix(seed)
    train, settings = ratings_of(matrix), {"k": k, "asymmetry": asymmetry}
    found = scores(ItemKNN(lists=lists, **settings), train)
    np.testing.assert_allclose(found, plain_item_knn(matrix, lists=lists, **settings), rtol=1e-9)
    found = scores(UserKNN(**settings), train)
    np.testing.assert_allclose(found, plain_user_knn(matrix, **settings), rtol=1e-9)


def test_asymmetric_cosines_by_hand():
    """‖a‖² is 5, 25 and 1; item 0 has a·b = 4 with item 1 and 2 with item 2."""
    matrix = np.array([[1.0, 4.0, np.nan], [2.0, np.nan, 1.0], [np.nan, 3.0, np.nan]])
    train = ratings_of(matrix)
    near = item_neighbours(train, None, asymmetry=1.0)
    assert near.value[:2].tolist() == pytest.approx([4 / 5, 2 / 5])
    near = item_neighbours(train, None, asymmetry=0.0)
    assert near.value[:2].tolist() == pytest.approx([4 / 25, 2 / 1])
    near = item_neighbours(train, None)
    assert near.value[:2].tolist() == pytest.approx([4 / np.sqrt(5 * 25), 2 / np.sqrt(5)])


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("k", [4, None])
def test_nncosngbr(seed, k):
    matrix = random_matrix(seed)
    train = ratings_of(matrix)
    for kind, based in ((NNCosNgbrUB, "user"), (NNCosNgbrIB, "item")):
        found = scores(kind(k, 4.0, 2.0, 3.0), train)
        wanted = plain_nncosngbr(matrix, k, 4.0, 2.0, 3.0, based)
        np.testing.assert_allclose(found, wanted, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize("k", [4, 50])
def test_rocchio_family(seed, k):
    matrix = random_matrix(seed)
    train = ratings_of(matrix)
    for kind in (RW, RSV, CHI2, KLD):
        wanted = plain_feedback(kind.name, matrix, k)
        np.testing.assert_allclose(scores(kind(k), train), wanted, rtol=1e-9, atol=1e-15)
    for kind in (CHI2, KLD):
        wanted = plain_feedback(kind.name, matrix, k, by_length=False)
        np.testing.assert_allclose(scores(kind(k, False), train), wanted, rtol=1e-9, atol=1e-15)


def test_rsv_orders_as_rw():
    train = ratings_of(random_matrix(5, 60, 40))
    rw, rsv = scores(RW(10), train), scores(RSV(10), train)
    assert (np.argsort(rw, axis=1, kind="stable") == np.argsort(rsv, axis=1, kind="stable")).all()


# ------------------------------------------------------------------ structure and edges


@pytest.mark.parametrize("algorithm", EVERY, ids=str)
def test_the_own_community_comes_first(algorithm):
    """Two groups of users, each with items of its own; few rated the others', and badly."""
    rng = np.random.default_rng(4)
    own = (np.arange(60) % 2)[:, None] == (np.arange(40) % 2)
    matrix = np.where(own, rng.choice([4.0, 5.0], own.shape), 1.0)
    matrix[rng.random(own.shape) >= np.where(own, 0.5, 0.1)] = np.nan
    score = scores(algorithm, ratings_of(matrix))
    score[~np.isnan(matrix)] = np.nan
    place = np.argsort(-np.nan_to_num(score, nan=-np.inf), axis=1, kind="stable")
    first = np.take_along_axis(own, place[:, :3], axis=1)
    lenient = (
        algorithm.name.startswith("nncosngbr")  # a baseline also speaks for the others' items
        or getattr(algorithm, "min_support", 1) > 1  # leaves some users few items
        or (algorithm.name == "item-knn" and algorithm.asymmetry > 0.5)
        # The others' items, rated 1, are short, and dividing by that alone makes them weigh more.
    )
    if lenient:
        assert first.mean() > 0.9
    else:
        assert first.all()


@pytest.mark.parametrize("algorithm", EVERY, ids=str)
def test_who_and_what_has_no_ratings_has_no_score(algorithm):
    train = ratings_of(random_matrix(7))
    score = scores(algorithm, train)
    assert score.shape == (23, 17)
    assert score.flags.c_contiguous
    assert np.isnan(score[3]).all()
    assert np.isnan(score[:, 5]).all()
    assert np.isfinite(score).any()
    assert not np.isinf(score).any()


@pytest.mark.parametrize("algorithm", EVERY, ids=str)
@pytest.mark.parametrize(
    "matrix",
    [
        np.array([[4.0]]),
        np.array([[4.0, 2.0, np.nan]]),
        np.array([[4.0], [2.0], [np.nan]]),
        np.where(np.eye(6) > 0, np.nan, 1.0),
        np.where(np.eye(6) > 0, np.nan, 0.0),
        np.where(np.eye(6) > 0, 3.0, np.nan),
    ],
    ids=["one rating", "one user", "one item", "all 1", "all 0", "nothing in common"],
)
def test_small_and_degenerate_data(algorithm, matrix):
    score = scores(algorithm, ratings_of(matrix))
    assert score.shape == matrix.shape
    assert not np.isinf(score).any()


def test_implicit_data():
    rng = np.random.default_rng(0)
    pairs = np.argwhere(rng.random((30, 20)) < 0.3)
    train = Ratings.of(pl.Series(pairs[:, 0]), pl.Series(pairs[:, 1]))
    for algorithm in EVERY:
        assert np.isfinite(scores(algorithm, train)).any()


@pytest.mark.parametrize("algorithm", PROBABILISTIC, ids=str)
def test_shares_need_ratings_that_are_not_negative(algorithm):
    with pytest.raises(DataError, match="1 are negative"):
        algorithm.fit(ratings_of(np.array([[1.0, -2.0], [2.0, 3.0]])))


@pytest.mark.parametrize("algorithm", EVERY, ids=str)
def test_same_bits_whatever_the_threads_and_tiles(algorithm, monkeypatch):
    train = ratings_of(random_matrix(9, users=300, items=150, density=0.2))
    users = everyone(train)
    whole = []
    for threads in (1, 2, 3):
        monkeypatch.setattr("unskew.engine.threads.available", lambda n=threads: n)
        model = algorithm.fit(train)
        whole.append(model.score(users).tobytes())
        parts = [model.score(users[low : low + 77]) for low in range(0, 300, 77)]
        assert np.concatenate(parts).tobytes() == whole[0]
    assert len(set(whole)) == 1


@pytest.mark.parametrize("algorithm", EVERY, ids=str)
def test_fitting_and_scoring_change_nothing(algorithm):
    train = ratings_of(random_matrix(11))
    before = train.fingerprint
    model = algorithm.fit(train)
    first = model.score(everyone(train))
    kept = first.copy()
    first[:] = -1.0
    np.testing.assert_array_equal(model.score(everyone(train)), kept)
    assert train.fingerprint == before


@pytest.mark.parametrize(
    ("kind", "settings"),
    [
        (UserKNN, {"k": 0}),
        (UserKNN, {"k": 2.5}),
        (UserKNN, {"power": -1}),
        (UserKNN, {"votes": "stars"}),
        (UserKNN, {"threshold": float("nan")}),
        (UserKNN, {"min_support": 0}),
        (ItemKNN, {"k": -3}),
        (ItemKNN, {"lists": "both"}),
        (ItemKNN, {"min_support": True}),
        (ItemKNN, {"asymmetry": 1.5}),
        (UserKNN, {"asymmetry": -0.1}),
        (NNCosNgbrUB, {"shrink": -1.0}),
        (NNCosNgbrIB, {"item_shrink": "much"}),
        (RW, {"k": None}),
        (KLD, {"k": 0}),
    ],
)
def test_settings_that_are_not_allowed(kind, settings):
    with pytest.raises(SettingError):
        kind(**settings)


def test_settings_describe_themselves():
    assert KLD().describe() == {"algorithm": "kld", "k": 200, "length_normalised": True}


def test_importing_does_not_compile():
    code = "import sys, unskew.recommend.neighbours; sys.exit('numba' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
