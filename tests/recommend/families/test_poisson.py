"""HPF: a plain twin, an evidence bound that never falls, its slopes, planted rates."""

import math

import numpy as np
import polars as pl
import pytest

from shared.algorithms import all_scores
from unskew import Ratings
from unskew.errors import DataError, SettingError
from unskew.recommend.topics import HPF

lgamma = np.vectorize(math.lgamma, otypes=[float])


def digamma(x):
    """Differentiate lnΓ; good to 1e-9."""
    h = 1e-3 * x
    f = [math.lgamma(x + k * h) for k in (-3, -2, -1, 1, 2, 3)]
    return np.dot(f, [-1, 9, -45, 45, -9, 1]) / (60 * h)


psi = np.vectorize(digamma, otypes=[float])


def ratings(R: np.ndarray, seen: np.ndarray | None = None) -> Ratings:
    user, item = np.indices(R.shape).reshape(2, -1)
    made = Ratings.of(pl.Series(user), pl.Series(item), pl.Series(R.ravel().astype(float)))
    return made.take((R > 0 if seen is None else seen).ravel())


def some(seed: int = 1, users: int = 8, items: int = 7) -> np.ndarray:
    """Return ratings, 0 = missing, with some for every user and item."""
    rng = np.random.default_rng(seed)
    R = rng.integers(1, 6, (users, items)) * (rng.random((users, items)) < 0.4)
    R[np.arange(users), np.arange(users) % items] = 3
    return R.astype(float)


class Twin:
    """Coordinate ascent on whole matrices: a (shape, rate) for θ and β, a rate for ξ and η."""

    def __init__(self, R, of: HPF, rng):
        self.R, self.of = R, of
        level = np.sqrt(R.mean() / of.factors)
        self.shape = [of.shape * rng.gamma(100, 0.01, (n, of.factors)) for n in R.shape]
        self.rate = [np.full((n, of.factors), of.shape / level) for n in R.shape]
        self.top = of.shape_of_rates + of.factors * of.shape
        self.bottom = [self.of_rates(side) for side in (0, 1)]

    def mean(self, side):
        return self.shape[side] / self.rate[side]

    def of_rates(self, side):
        of = self.of
        return of.shape_of_rates / of.mean_of_rates + self.mean(side).sum(1, keepdims=True)

    def logs(self, side):
        return psi(self.shape[side]) - np.log(self.rate[side])

    def step(self):
        theta, beta = np.exp(self.logs(0)), np.exp(self.logs(1))
        ratio = self.R / (theta @ beta.T)
        counts = theta * (ratio @ beta), beta * (ratio.T @ theta)
        for side in (0, 1):
            self.shape[side] = self.of.shape + counts[side]
            self.rate[side] = self.top / self.bottom[side] + self.mean(1 - side).sum(0)
            self.bottom[side] = self.of_rates(side)

    def bound(self):
        """Return the evidence lower bound with the best shares φ."""
        of, value = self.of, 0.0
        predicted = np.exp(self.logs(0)) @ np.exp(self.logs(1)).T
        value += (self.R * np.log(predicted) - lgamma(self.R + 1)).sum()
        value -= (self.mean(0) @ self.mean(1).T).sum()
        prior = of.shape_of_rates / of.mean_of_rates
        for side in (0, 1):
            shape, rate, bottom = self.shape[side], self.rate[side], self.bottom[side]
            xi, log_xi = self.top / bottom, psi(self.top) - np.log(bottom)
            value += expected_log_gamma(of.shape, log_xi, xi, self.mean(side), self.logs(side))
            value += expected_log_gamma(of.shape_of_rates, np.log(prior), prior, xi, log_xi)
            value += entropy(shape, rate) + entropy(np.full_like(bottom, self.top), bottom)
        return value


def expected_log_gamma(shape, log_rate, rate, x, log_x):
    """Return the expected log density, given the expected x and ln x."""
    terms = shape * log_rate - math.lgamma(shape) + (shape - 1) * log_x - rate * x
    return terms.sum()


def entropy(shape, rate):
    return (shape - np.log(rate) + lgamma(shape) + (1 - shape) * psi(shape)).sum()


SETTINGS = [HPF(1), HPF(3), HPF(8, shape=0.1), HPF(2, shape_of_rates=2.0, mean_of_rates=0.5)]


@pytest.mark.parametrize("algorithm", SETTINGS, ids=str)
def test_like_a_plain_twin_whose_bound_never_falls(algorithm):
    R = some()
    train = ratings(R)
    twin = Twin(R, algorithm, np.random.default_rng(4))
    bounds = []
    for n in range(1, 31):
        twin.step()
        bounds.append(twin.bound())
        if n in (1, 2, 30):
            own = HPF(algorithm.factors, n, *list(vars(algorithm).values())[2:])
            model = own.fit(train, np.random.default_rng(4))
            expected = twin.mean(0) @ twin.mean(1).T
            np.testing.assert_allclose(all_scores(model, train), expected, rtol=1e-6)
    assert (np.diff(bounds) >= -1e-7).all()
    assert bounds[-1] > bounds[0] + 0.01


def test_where_it_ends_every_slope_is_zero():
    twin = Twin(some(), HPF(2), np.random.default_rng(4))
    for _ in range(3000):
        twin.step()
    for part in (*twin.shape, *twin.rate, *twin.bottom):
        for place in np.ndindex(part.shape):
            kept, ends = part[place], []
            for step in (1e-4, -1e-4):
                part[place] = kept * (1 + step)
                ends.append(twin.bound())
            part[place] = kept
            assert abs(ends[0] - ends[1]) / 2e-4 < 1e-3


def test_a_stored_zero_is_a_missing_cell():
    R = some()
    few, all_cells = ratings(R), ratings(R, np.ones(R.shape, bool))
    np.testing.assert_allclose(
        all_scores(HPF(2).fit(few, 1), few), all_scores(HPF(2).fit(all_cells, 1), all_cells)
    )


def test_planted_rates_are_found():
    rng = np.random.default_rng(2)
    theta, beta = rng.gamma(0.5, 1.0, (150, 3)), rng.gamma(0.5, 2.0, (80, 3))
    truth = theta @ beta.T
    R = rng.poisson(truth)
    train = ratings(R)
    kept = np.ix_(R.any(axis=1), R.any(axis=0))
    found = all_scores(HPF(3).fit(train, 1), train)[kept]
    assert np.corrcoef(found.ravel(), truth[kept].ravel())[0, 1] > 0.95
    error = np.abs(found - truth[kept]).mean()
    assert error < 0.5 * np.abs(R[kept] - truth[kept]).mean()
    assert found.sum() == pytest.approx(R.sum(), rel=0.05)


def test_the_cold_take_no_part():
    R = some()
    users, items = R.shape
    wide = np.zeros((users + 3, items + 2))
    wide[:users, :items] = R
    plain, cold = ratings(R), ratings(wide)
    model = HPF(2, 400).fit(cold, 1)
    scores = all_scores(model, cold)
    assert np.isnan(scores[users:]).all()
    assert np.isnan(scores[:, items:]).all()
    assert (model.user_factors[users:] == 0).all()
    # From another start, but to the same end.
    end = all_scores(HPF(2, 400).fit(plain, 1), plain)
    assert np.corrcoef(scores[:users, :items].ravel(), end.ravel())[0, 1] > 0.7


@pytest.mark.parametrize("shape", [1e-4, 50.0])
def test_extreme_shapes(shape):
    train = ratings(some())
    assert np.isfinite(all_scores(HPF(3, 20, shape=shape).fit(train), train)).all()


def test_same_bits_with_any_number_of_threads(monkeypatch):
    train = ratings(some(3, 300, 200))
    monkeypatch.setattr("unskew.engine.threads.SMALL", 0)
    results = []
    for threads in (1, 2, 3):
        monkeypatch.setattr("unskew.engine.threads.available", lambda threads=threads: threads)
        results.append(all_scores(HPF(5, 3).fit(train, 7), train).tobytes())
    assert len(set(results)) == 1
    assert all_scores(HPF(5, 3).fit(train, 8), train).tobytes() != results[0]


def test_negative_ratings_are_refused():
    R = some()
    R[0, 0] = -1
    with pytest.raises(DataError, match=r"hpf takes ratings as counts.*the first -1 in row 1"):
        HPF().fit(ratings(R, R != 0))


@pytest.mark.parametrize(
    "wrong",
    [{"factors": 0}, {"iterations": 0}, {"shape": 0}, {"shape_of_rates": -1}, {"mean_of_rates": 0}],
)
def test_settings(wrong):
    with pytest.raises(SettingError, match=next(iter(wrong))):
        HPF(**wrong)
