"""Do systems change places over windows of time? Tests within users, and intervals for all at once.

Two questions that must not be mixed up:

**Do differences vary?** For two systems, d_uw is user u's difference in window w and e_uw = d_uw
less the user's mean over the windows that the user has. With T_w = sum_u e_uw and
S_wv = sum_u e_uw e_uv the statistic is T' S⁺ T. Under the hypothesis that a user's differences are
exchangeable over the user's windows, p is exact up to the number of exchanges drawn; because the
statistic is studentised it also holds with many users where windows differ in spread or depend on
each other, as long as each user's expected difference is the same in all windows (Friedrich,
Brunner and Pauly, Journal of Multivariate Analysis 153, 2017). Users with one window have e = 0.
Where exchanges would take too long, p is that of Hotelling's F.

That test can be misled by users who leave because a system served them badly: those who stay were
served well before, and their differences seem to fall. The means over all users of each window are
not misled by it (but by users of another kind who come in, which the test within users is not). So
the p of a pair is the larger of both: of the test within users, and of Wald's test that the mean
difference is the same in all windows, users being the unit.

**Does the order change?** Only where one system is ahead in one window and behind in another one
(a qualitative interaction: Gail and Simon, Biometrics 41, 1985). Each window has an interval of
each difference, all of them holding at once; an order that changes has intervals on both sides of
0 (the range test of Piantadosi and Gail, Statistics in Medicine 12, 1993, for windows that share
users). The critical value is a quantile of the largest |t|, each user's influence being drawn once
for all windows and pairs, and Student's t stands for the normal distribution in small windows.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from unskew.arrays import F64, I64, frozen
from unskew.engine.progress import Progress
from unskew.engine.rng import key_of
from unskew.engine.threads import map_blocks, one_blas_thread
from unskew.stats.correlation import rounded
from unskew.stats.pairing import Pairs
from unskew.stats.resampling import percentile_interval
from unskew.stats.simultaneous import LEAST_DRAWS, Differences, simultaneous
from unskew.stats.special import incomplete_beta
from unskew.stats.tests.randomisation import permuted_p
from unskew.stats.windows.window_values import WindowValues

MOST_WORK = 2e10
"""Products of deviations in all exchanges; above this, p is that of the F distribution."""
LEAST_VARIANCE = 0.05
"""In parts of what the pooled variance gives: a window's variance counts as at least this."""
TAU_EXCHANGES = 500
_BLOCK = 25
_ROUNDING = 1e-9
_NONE = 1e-12


@dataclass(frozen=True, eq=False)
class Cells:
    """The values of users with two windows or more, one row per user and window."""

    start: I64
    """Where each user's rows start; one more for the end."""
    window: I64
    values: F64
    """A column per system."""
    windows: int

    @classmethod
    def of(cls, data: WindowValues) -> Cells:
        """Collect them, user by user and in each by window."""
        has_several = data.counts > 1
        user = np.concatenate([np.zeros(0, np.int64), *data.codes])
        window = np.repeat(np.arange(len(data.codes)), [code.size for code in data.codes])
        values = np.concatenate([np.zeros((0, len(data.systems))), *data.values])
        keep = np.flatnonzero(has_several[user])
        order = keep[np.argsort(user[keep], kind="stable")]
        sizes = data.counts[has_several]
        return cls(
            frozen(np.append(0, np.cumsum(sizes)).astype(np.int64)),
            frozen(window[order].astype(np.int64)),
            frozen(values[order]),
            len(data.codes),
        )

    @property
    def users(self) -> int:
        """How many users there are."""
        return int(self.start.size - 1)

    def centred(self, columns: F64) -> F64:
        """Return columns (a row per cell) less the mean of each user."""
        if not self.users:
            return columns
        sizes = np.diff(self.start)
        means = np.add.reduceat(columns, self.start[:-1], axis=0) / sizes[:, None]
        residual: F64 = columns - np.repeat(means, sizes, axis=0)
        # What is the same in all windows leaves rounding errors, which are no deviations.
        size = np.maximum(np.abs(columns).max(axis=0, initial=0.0), np.finfo(np.float64).tiny)
        residual[np.abs(residual) <= _NONE * size] = 0.0
        return residual


@dataclass(frozen=True, eq=False)
class WithinUsers:
    """The test of each pair: whether its differences vary over the windows of a user."""

    users: int
    """Users with two windows or more."""
    statistic: F64
    df: I64
    """The rank: 0 where no user's difference varies."""
    p: F64
    permutations: int
    """0: by the F distribution."""


def within_users(
    cells: Cells,
    pairs: Pairs,
    *,
    permutations: int,
    seed: int = 0,
    threads: int | None = None,
    progress: Progress | None = None,
) -> WithinUsers:
    """Test whether the differences of pairs vary over windows within users."""
    from unskew.stats.tests import kernels

    count = len(pairs)
    nothing = np.full(count, np.nan)
    if not cells.users:
        return WithinUsers(0, nothing, np.zeros(count, np.int64), nothing.copy(), 0)
    start, window, residual = _varying(cells, pairs)
    out = np.zeros((count, 2))
    kernels.wald_of_pairs(start, window, cells.windows, residual, out)
    statistic, df = np.ascontiguousarray(out[:, 0]), out[:, 1].astype(np.int64)
    work = float((np.diff(start).astype(np.float64) ** 2).sum()) / 2 * count * permutations
    if work > MOST_WORK:
        p = _hotelling(statistic, df, _users_that_vary(start, residual))
        return WithinUsers(cells.users, statistic, df, p, 0)
    key = np.uint64(key_of(seed, "windows within users"))
    limit = statistic * (1 - _ROUNDING)

    def extreme(begin: int, end: int) -> I64:
        counts = np.zeros(count, np.int64)
        kernels.count_exchanged(
            key, begin, end, start, window, cells.windows, residual, limit, counts
        )
        return counts

    p = permuted_p(
        extreme, permutations, _BLOCK, threads=threads, work=int(work), progress=progress
    )
    return WithinUsers(cells.users, statistic, df, np.where(df > 0, p, 1.0), permutations)


def _varying(cells: Cells, pairs: Pairs) -> tuple[I64, I64, F64]:
    """Return the deviations of pairs, of those users alone of whom any pair varies."""
    residual = cells.centred(cells.values[:, pairs.first] - cells.values[:, pairs.second])
    is_varying = np.add.reduceat((residual != 0).any(axis=1).astype(np.int64), cells.start[:-1]) > 0
    sizes = np.diff(cells.start)
    keep = np.repeat(is_varying, sizes)
    start = np.append(0, np.cumsum(sizes[is_varying])).astype(np.int64)
    return frozen(start), frozen(cells.window[keep]), frozen(residual[keep])


def _users_that_vary(start: I64, residual: F64) -> I64:
    """Count, for each pair, the users whose difference varies."""
    if start.size < 2:
        return np.zeros(residual.shape[1], np.int64)
    marks = np.add.reduceat((residual != 0).astype(np.int64), start[:-1], axis=0)
    count: I64 = np.count_nonzero(marks, axis=0)
    return count


def _hotelling(statistic: F64, df: I64, users: I64) -> F64:
    """Return p of T' S⁺ T, whose S holds the squares of T too, by Hotelling's F."""
    p = np.ones(statistic.size)
    for index in np.flatnonzero((df > 0) & (users > df)).tolist():
        n, q, rank = float(users[index]), float(statistic[index]), float(df[index])
        # The share of n that T' S⁺ T can reach at most is Beta(rank / 2, (n - rank) / 2).
        share = min(q / n, 1.0)
        p[index] = float(incomplete_beta(1 - share, share, (n - rank) / 2, rank / 2))
    return p


def between_windows(data: WindowValues, pairs: Pairs) -> F64:
    """Return p of each pair, of the hypothesis that its mean difference is the same in all windows.

    Wald's test with the covariance of the windows' means over users, who may be in several windows;
    p by Hotelling's F, which is exact for normal differences of users who are in all windows. The
    variance of a window counts as at least 1/20 of what the pooled one would give it.
    """
    sizes = np.array([value.shape[0] for value in data.values])
    used = np.flatnonzero(sizes > 1)
    users, p = int(np.count_nonzero(data.counts)), np.full(len(pairs), np.nan)
    if used.size < 2 or users < used.size:
        return p
    count = sizes[used].astype(np.float64)
    weight = 1 / np.sqrt(count * (count - 1))
    with one_blas_thread():
        for pair in range(len(pairs)):
            first, second = pairs.first[pair], pairs.second[pair]
            residual, means = np.zeros((used.size, len(data.users))), np.empty(used.size)
            for index, window in enumerate(used.tolist()):
                column = data.values[window][:, first] - data.values[window][:, second]
                means[index] = column.mean()
                residual[index, data.codes[window]] = column - means[index]
            pooled = float((residual**2).sum()) / max(count.sum() - used.size, 1.0)
            cov = residual @ residual.T * np.outer(weight, weight)
            floor = LEAST_VARIANCE * pooled / count
            cov[np.diag_indices(used.size)] = np.maximum(np.diag(cov), floor)
            p[pair] = _wald_p(means, cov, users)
    return p


def _wald_p(means: F64, cov: F64, users: int) -> float:
    """Return p of the hypothesis that all means are equal."""
    gap, freedom = means[1:] - means[0], means.size - 1
    if not np.abs(gap).max() > _NONE * float(np.abs(means).max()):
        return 1.0
    spread = cov[1:, 1:] - cov[1:, :1] - cov[:1, 1:] + cov[0, 0]
    if not np.trace(spread) > 0:
        return 0.0
    square = float(gap @ np.linalg.pinv(spread, rcond=1e-10, hermitian=True) @ gap)
    # Hotelling's T² / (users - 1) by itself plus 1 is a Beta variable.
    share = square / (square + users - 1)
    return float(incomplete_beta(1 - share, share, (users - freedom) / 2, freedom / 2))


def differences_of(
    data: WindowValues, pairs: Pairs, *, level: float, draws: int = LEAST_DRAWS, seed: int = 0
) -> Differences:
    """Return the differences of all pairs in all windows with simultaneous intervals."""
    columns = [
        data.sign * (values[:, pairs.first] - values[:, pairs.second]) for values in data.values
    ]
    return simultaneous(columns, data.codes, len(data.users), level=level, draws=draws, seed=seed)


def tau_by_chance(
    data: WindowValues, cells: Cells, *, seed: int = 0, threads: int | None = None
) -> dict[str, float] | None:
    """Return the mean Kendall τ between windows, of users with two windows or more, and by chance.

    The mean that is `observed`; the one `expected` where each user's windows are exchanged at
    random, and the range from `low` to `high` of 95 % of these exchanges. None without such users.
    """
    from unskew.stats.tests import kernels

    if not cells.users:
        return None
    sizes = np.bincount(cells.window, minlength=cells.windows)
    used = np.flatnonzero(sizes)
    key = np.uint64(key_of(seed, "windows within users"))
    signed = frozen(data.sign * cells.values)
    sums = np.zeros((1, cells.windows, signed.shape[1]))
    np.add.at(sums[0], cells.window, signed)

    def some(begin: int) -> list[float]:
        size = min(_BLOCK, TAU_EXCHANGES - begin)
        out = np.empty((size, cells.windows, signed.shape[1]))
        kernels.exchanged_sums(key, begin, cells.start, cells.window, signed, out)
        return _mean_taus(out[:, used] / sizes[used][:, None])

    blocks = range(0, TAU_EXCHANGES, _BLOCK)
    taus = [tau for part in map_blocks(some, blocks, threads, cells.values.size) for tau in part]
    defined = np.array([tau for tau in taus if not math.isnan(tau)])
    observed = _mean_taus(sums[:, used] / sizes[used][:, None])[0]
    if math.isnan(observed) or not defined.size:
        return None
    low, high = map(float, percentile_interval(defined, 0.95))
    return {"observed": observed, "expected": float(defined.mean()), "low": low, "high": high}


def _mean_taus(means: F64) -> list[float]:
    """Return the mean τ_b over pairs of windows, of each draw."""
    from unskew.stats import kernels

    upper = np.triu_indices(means.shape[1], 1)
    result = []
    for mean in means:
        taus = kernels.tau_matrix(frozen(rounded(mean)))[upper]
        defined = taus[~np.isnan(taus)]
        result.append(math.fsum(defined) / defined.size if defined.size else math.nan)
    return result
