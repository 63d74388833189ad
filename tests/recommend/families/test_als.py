"""PZT, EALS and WRMF: whole fits against plain twins, losses that never rise, published values."""

from dataclasses import replace

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

import unskew as us
from shared.algorithms import all_scores, check_same_bits
from shared.ratings import matrix_ratings
from shared.real_data import real_data
from unskew import Ratings
from unskew.arrays import frozen
from unskew.errors import DataError, SettingError
from unskew.recommend.factors import EALS, PZT, WRMF
from unskew.recommend.topics import PLSA, PNMF


def some(seed: int, users: int = 12, items: int = 9) -> tuple[Ratings, np.ndarray, np.ndarray]:
    """Return ratings from 0 to 4, their matrix and where they are; user 3 and item 5 are cold."""
    rng = np.random.default_rng(seed)
    seen = rng.random((users, items)) < 0.4
    seen[3], seen[:, 5] = False, False
    seen[0, 0] = True
    R = rng.integers(0, 5, seen.shape).astype(float)
    return matrix_ratings(R, seen), R, seen


def terms(algorithm, R, seen):
    """Return the weight and the target of every cell."""
    if isinstance(algorithm, EALS):
        f = seen.sum(axis=0).astype(float)
        share = np.where(f > 0, f**algorithm.popularity, 0.0)
        total = (f > 0).sum() if algorithm.missing is None else algorithm.missing
        missing = np.broadcast_to(total * share / share.sum(), R.shape)
        return np.where(seen, 1 + algorithm.alpha * R, missing), seen.astype(float)
    p = R if algorithm.target == "rating" else np.ones_like(R)
    return np.where(seen, 1 + algorithm.alpha * R, 1.0), np.where(seen, p, 0.0)


def loss(algorithm, R, seen, X, Y):
    C, p = terms(algorithm, R, seen)
    return (C * (p - X @ Y.T) ** 2).sum() + algorithm.regularisation * ((X**2).sum() + (Y**2).sum())


def sweep(X, Y, C, p, penalty):
    """Set every coordinate of X once to where the loss is least, cell by cell."""
    X = X.copy()
    for u in range(len(X)):
        for k in range(X.shape[1]):
            rest = p[u] - Y @ X[u] + X[u, k] * Y[:, k]
            X[u, k] = (C[u] * Y[:, k] * rest).sum() / (penalty + (C[u] * Y[:, k] ** 2).sum())
    return X


def twin(algorithm, R, seen, rng):
    C, p = terms(algorithm, R, seen)
    K, penalty = algorithm.factors, algorithm.regularisation
    draw = {
        PZT: lambda n: rng.uniform(0, K**-0.5, (n, K)),
        EALS: lambda n: rng.normal(0, 0.1, (n, K)),
    }[type(algorithm)]
    X, Y = draw(len(R)), draw(R.shape[1])
    X[~seen.any(axis=1)], Y[~seen.any(axis=0)] = 0, 0
    for _ in range(algorithm.iterations):
        if isinstance(algorithm, PZT):
            Y = sweep(Y, X, C.T, p.T, penalty)
            X = sweep(X, Y, C, p, penalty)
        else:
            X = sweep(X, Y, C, p, penalty)
            Y = sweep(Y, X, C.T, p.T, penalty)
    return X, Y


BY_COORDINATES = [
    PZT(1, 0.3, 3),
    PZT(5, 0.3, 3, alpha=2.0, target="rating"),
    PZT(9, 2.0, 2, alpha=0.0),
    EALS(3, 0.05, 4, missing=4.0),
    EALS(5, 0.05, 3, alpha=1.5, missing=None, popularity=0.0),
    EALS(2, 0.05, 3, missing=500.0, popularity=1.0),
    EALS(2, 0.05, 3, missing=0.0),
]


@pytest.mark.parametrize("algorithm", BY_COORDINATES, ids=str)
def test_like_a_plain_twin(algorithm):
    train, R, seen = some(4)
    X, Y = twin(algorithm, R, seen, np.random.default_rng(1))
    expected = X @ Y.T
    expected[3], expected[:, 5] = np.nan, np.nan
    model = algorithm.fit(train, np.random.default_rng(1))
    np.testing.assert_allclose(all_scores(model, train), expected, rtol=0, atol=1e-9)


def test_pzt_by_synthetic_examples():
    """RankSys's form: an example per eigenvector of Σ yyᵀ + λ, and λ once more per coordinate."""

    def ridge(x, examples, y, c, penalty):
        for k in range(x.size):
            e = y - examples @ x + x[k] * examples[:, k]
            weighted = c * examples[:, k]
            x[k] = weighted @ e / (penalty + weighted @ examples[:, k])

    def step(X, Y, R, seen, penalty):
        d, V = np.linalg.eigh(Y.T @ Y + penalty * np.eye(Y.shape[1]))
        synthetic = (V * np.sqrt(d)).T
        for u in np.flatnonzero(seen.any(axis=1)):
            own = np.flatnonzero(seen[u])
            c = np.concatenate([np.ones(len(d)), R[u, own]])  # c - 1 = r
            y = np.concatenate([np.zeros(len(d)), (1 + R[u, own]) * R[u, own] / R[u, own]])
            ridge(X[u], np.concatenate([synthetic, Y[own]]), y, c, penalty)

    _, R, seen = some(8)
    R += 1  # a rating of 0 has no example there
    train = matrix_ratings(R, seen)
    rng = np.random.default_rng(2)
    X, Y = (rng.uniform(0, 3**-0.5, (n, 3)) for n in R.shape)
    X[3], Y[5] = 0, 0
    for _ in range(4):
        step(Y, X, R.T, seen.T, 0.1)
        step(X, Y, R, seen, 0.1)
    model = PZT(3, 0.2, 4, target="rating").fit(train, np.random.default_rng(2))
    np.testing.assert_allclose(model.user_factors, X, atol=1e-9)
    np.testing.assert_allclose(model.item_factors, Y, atol=1e-9)


DESCENDING = [
    PZT(3, 0.3), PZT(4, 0.01, target="rating"), EALS(3), EALS(6, 0.1, alpha=2.0, missing=None),
    WRMF(3, 0.3), WRMF(4, 0.01, target="rating"),
]  # fmt: skip


@pytest.mark.parametrize("algorithm", DESCENDING, ids=str)
@given(seed=st.integers(0, 1000))
def test_the_loss_never_rises(algorithm, seed):
    train, R, seen = some(seed)
    values = []
    for n in range(1, 8):
        model = replace(algorithm, iterations=n).fit(train, seed)
        values.append(loss(algorithm, R, seen, model.user_factors, model.item_factors))
    assert (np.diff(values) <= 1e-9 * values[0]).all()


@pytest.mark.parametrize("algorithm", DESCENDING, ids=str)
def test_where_it_ends_every_slope_is_zero(algorithm):
    train, R, seen = some(2)
    model = replace(algorithm, iterations=20_000, regularisation=1.0).fit(train, 1)
    own = replace(algorithm, regularisation=1.0)
    X, Y, h = model.user_factors.copy(), model.item_factors.copy(), 1e-5
    assert np.abs(X).max() > 0.1
    for part in (X, Y):
        for place in np.ndindex(part.shape):
            kept, ends = part[place], []
            for step in (h, -h):
                part[place] = kept + step
                ends.append(loss(own, R, seen, X, Y))
            part[place] = kept
            assert abs(ends[0] - ends[1]) / (2 * h) < 1e-4


def test_what_is_missing_weighs_by_hand():
    """Items with 4, 1 and no ratings: their square roots are 2, 1 and 0."""
    seen = np.array([[1, 1, 0], [1, 0, 0], [1, 0, 0], [1, 0, 0]], bool)
    train = matrix_ratings(np.ones((4, 3)), seen)
    assert EALS(missing=6.0, popularity=0.5)._missing(train) == pytest.approx([4, 2, 0])
    assert EALS(missing=None, popularity=1.0)._missing(train) == pytest.approx([1.6, 0.4, 0])
    assert EALS(missing=None, popularity=0.0)._missing(train) == pytest.approx([1, 1, 0])


def test_the_more_the_missing_of_popular_items_weighs_the_lower_they_score():
    rng = np.random.default_rng(3)
    seen = rng.random((60, 20)) < np.linspace(0.6, 0.05, 20)
    train = matrix_ratings(np.ones(seen.shape), seen)
    top = []
    for popularity in (0.0, 1.0):
        model = EALS(4, 0.1, 30, missing=10.0, popularity=popularity).fit(train, 1)
        score = np.where(seen, np.nan, all_scores(model, train))
        top.append(np.nanmean(score[:, :5]))
    assert top[1] < 0.9 * top[0]


@pytest.mark.parametrize("algorithm", [PZT(9, iterations=3), EALS(9, iterations=3)])
def test_same_bits_with_any_number_of_threads_and_any_tile(algorithm, monkeypatch):
    check_same_bits(algorithm, some(2, users=300, items=200)[0], monkeypatch)


@pytest.mark.parametrize("kind", [PZT, EALS])
def test_what_cannot_be_learned_from(kind):
    with pytest.raises(DataError, match="ratings from 0 up, but -1"):
        kind().fit(matrix_ratings(np.array([[-1.0, 2.0]]), np.ones((1, 2), bool)))
    huge = matrix_ratings(np.full((3, 3), 1e99), np.ones((3, 3), bool))
    with pytest.raises(DataError, match="overflowed; raise regularisation"):
        kind(2, alpha=1e300).fit(huge)


@pytest.mark.parametrize(
    ("kind", "wrong"),
    [
        (PZT, {"factors": 0}), (PZT, {"regularisation": 0}), (PZT, {"iterations": 1.5}),
        (PZT, {"alpha": -1}), (PZT, {"target": "two"}),
        (EALS, {"factors": True}), (EALS, {"regularisation": 0}), (EALS, {"iterations": 0}),
        (EALS, {"alpha": "x"}), (EALS, {"missing": -1}), (EALS, {"popularity": -0.5}),
    ],
)  # fmt: skip
def test_settings(kind, wrong):
    with pytest.raises(SettingError, match=next(iter(wrong))):
        kind(**wrong)


MENA = {
    "wrmf": WRMF(20, 0.01, 20, alpha=1.0, confidence="log", epsilon=1e-4),
    "eals": EALS(200, 0.01, 20, alpha=1.0, missing=None, popularity=0.0),
    "pnmf": PNMF(10, 26),
    "plsa": PLSA(10, 100),
}


@pytest.mark.real
@pytest.mark.slow
@pytest.mark.parametrize("name", MENA)
def test_mena2021_on_its_first_fold(name):
    """The published values are means over five folds, from other random starts."""
    movielens = us.read_ratings(real_data("ml-1m/ratings.parquet"), tags=["mena_fold"])
    table = pl.read_csv(real_data("published/mena2021_ml-1m_at10.csv"))
    published = table.row(by_predicate=pl.col("algorithm") == name, named=True)
    test = movielens.tags["mena_fold"].to_numpy() == 1
    split = us.Split(movielens.take(~test), movielens.take(test))
    levels = replace(split.train, value=frozen(np.maximum(split.train.value - 3.0, 0.0)))
    lists = us.targets.TrainItems().lists(split, liked=4)
    run = us.rank(MENA[name].fit(levels), lists, 10)
    ours = us.evaluate(lists, {name: run}, ["P@10", "anti-P@10"]).means()[name]
    assert ours["P@10"] == pytest.approx(published["precision"], rel=0.05)
    assert ours["anti-P@10"] == pytest.approx(published["antiprecision"], rel=0.05)
