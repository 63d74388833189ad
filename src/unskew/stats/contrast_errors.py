"""Standard errors of differences over repeated splits, and the largest |t| of a family.

The rule for systems that are trained anew, fixed on simulated data sets and checked on others
(`benchmarks/coverage_of_intervals.py`):

    V = V_users + 3/4 V_between + (1/2 + 1/J) V_common

with, of a difference of two means over J splits and n users whose influences are φ_uj:

- V_users = n / (n - 1) Σ_u (mean_j φ_uj)²: the variance of the mean over users;
- V_between = V_users less the test noise of each user over splits: how much users truly differ. A
  user enters twice, as one to test on and as one to train on; the second part cannot be seen in
  splits that share all users, and is taken in proportion to the first;
- V_common = (variance of the split means less the test noise of a split)+: what moves all users of
  a split together, training seed and training ratings.

With one split V = 5/4 V_users: what moves all users together cannot be seen.

The between-split variance alone (Nadeau and Bengio 2003) does not serve here: all splits share all
users, so that it holds none of the variance between users; and V_common times 4, which is right for
independent training ratings, is near 0 or negative on average, because a rating that is held out to
test one user is missing to train for the others.

Simultaneous intervals are wider for that target than the draws of the largest |t| say: among many
differences the largest |t| picks those whose error was estimated too small. Beyond the quantile of
a single interval, Student's tail with 18 (1 - 1.2 / J) degrees of freedom stands for the normal
one.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import NormalDist

import numpy as np

from unskew.arrays import F64, I64
from unskew.engine.rng import draw, generator
from unskew.engine.threads import one_blas_thread
from unskew.stats.distributions import student_t_quantile, student_t_sf
from unskew.stats.samples import Pairs
from unskew.stats.user_influence import SplitInfluence

RETRAINED = "retrained"
LISTS = "lists"
TARGETS = (RETRAINED, LISTS)
TRAINING_SHARE = 0.75
"""What a user adds by being trained on, in parts of the variance between users."""
ONE_SPLIT_SHARE = 0.25
"""The same with one split, in parts of the variance over users: test noise cannot be told apart."""
COMMON_SHARE = 0.5
"""What the training ratings add beyond these splits, in parts of the common variance."""
TAIL_DF, TAIL_SPLITS = 18.0, 1.2
"""The degrees of freedom of simultaneous intervals are TAIL_DF (1 - TAIL_SPLITS / splits)."""
MOST_BLOCKS = 2_000
"""More users than this are drawn in random blocks, so that time and memory stay bounded."""
_USERS_AT_ONCE = 4_096
_DRAWS_AT_ONCE = 250
_ROUNDING = 1e-13


@dataclass(frozen=True, eq=False)
class PairErrors:
    """The differences of all pairs of one design, their standard errors and their influences."""

    difference: F64
    se: F64
    """Times the ratio of Student's to the normal quantile: to be used with normal quantiles."""
    influence: F64
    """Blocks of users x pairs: means over the splits."""
    users: int
    splits: int


def pair_errors(
    splits: Sequence[SplitInfluence], pairs: Pairs, blocks: I64, *, target: str, level: float
) -> PairErrors:
    """Return the mean difference of each pair over distinct splits, with its error.

    Parameters
    ----------
    splits
        The distinct splits.
    pairs
        The columns of the systems.
    blocks
        The block of each user; see `user_blocks`.
    target
        `retrained` or `lists`.
    level
        Of the single intervals: sets Student's quantile.
    """
    one, other = pairs.one, pairs.other
    count = len(splits)
    means = np.stack([split.means for split in splits])
    by_split = means[:, one] - means[:, other]
    difference = by_split.mean(axis=0)
    size = np.maximum(np.abs(means[:, one]), np.abs(means[:, other])).max(axis=0)
    influence, squares, within = _influences(splits, pairs, blocks)
    users = int(np.logical_or.reduce([split.counted for split in splits]).sum())
    few = users / (users - 1)
    over_users = few * squares
    trained = common = np.zeros_like(over_users)
    if target == RETRAINED and count == 1:
        trained = ONE_SPLIT_SHARE * over_users
    if target == RETRAINED and count > 1:
        trained = TRAINING_SHARE * np.maximum(over_users - few * within / count, 0.0)
        spread = np.maximum(by_split.var(axis=0, ddof=1) - within, 0.0)
        common = (COMMON_SHARE + 1 / count) * spread
    variance = over_users + trained + common
    # A difference that is the same for every user leaves rounding errors, which are no variance.
    variance[variance <= (_ROUNDING * size) ** 2] = 0.0
    difference[np.abs(difference) <= _ROUNDING * size] = 0.0
    factor = _student_factor(variance, common, users, count, level)
    se = np.sqrt(variance) * factor
    return PairErrors(difference, se, influence, users, count)


def _influences(
    splits: Sequence[SplitInfluence], pairs: Pairs, blocks: I64
) -> tuple[F64, F64, F64]:
    """Return the influences, means over splits: of blocks of users, and their sums of squares.

    Last, the test noise of one split's difference: each user's variance over splits.
    """
    count, users = len(splits), splits[0].influence.shape[0]
    influence = np.zeros((int(blocks.max(initial=-1)) + 1, len(pairs)))
    squares, within = np.zeros(len(pairs)), np.zeros(len(pairs))
    for low in range(0, users, _USERS_AT_ONCE):
        part = slice(low, low + _USERS_AT_ONCE)
        each = [
            split.influence[part][:, pairs.one] - split.influence[part][:, pairs.other]
            for split in splits
        ]
        mean = sum(each[1:], start=each[0]) / count
        squares += (mean**2).sum(axis=0)
        np.add.at(influence, blocks[part], mean)
        if count > 1:
            for values in each:
                within += ((values - mean) ** 2).sum(axis=0) / (count - 1)
    return influence, squares, within


def _student_factor(variance: F64, common: F64, users: int, splits: int, level: float) -> F64:
    """Return Student's quantile by the normal one, with Satterthwaite's degrees of freedom."""
    rest = variance - common
    with np.errstate(divide="ignore", invalid="ignore"):
        df = variance**2 / (rest**2 / (users - 1) + common**2 / max(splits - 1, 1))
    whole = np.floor(np.where(variance > 0, df, users - 1) + 1e-9)
    normal = NormalDist().inv_cdf((1 + level) / 2)
    factors = [
        student_t_quantile((1 + level) / 2, max(one, 1.0)) / normal for one in whole.tolist()
    ]
    return np.array(factors)


def largest_t(influences: Sequence[F64], draws: int, seed: int) -> F64:
    """Return draws of the largest |t| of the family, sorted: what equal systems would give.

    The Gaussian multiplier bootstrap (Chernozhukov, Chetverikov and Kato 2013): each user's
    influence times a normal draw that is the same in all contrasts. Rows are users, or blocks of
    users, in the same order in every design.
    """
    rows = np.concatenate(influences, axis=1)
    norm = np.sqrt((rows**2).sum(axis=0))
    rows = rows[:, norm > 0] / norm[norm > 0]
    largest = np.zeros(draws)
    rng = generator(seed, "contrasts")
    with one_blas_thread():
        for low in range(0, draws, _DRAWS_AT_ONCE):
            shape = (min(_DRAWS_AT_ONCE, draws - low), rows.shape[0])
            normals = rng.standard_normal(shape)
            if rows.shape[1]:
                largest[low : low + shape[0]] = np.abs(normals @ rows).max(axis=1)
    return np.sort(largest)


def user_blocks(users: int, seed: int) -> I64:
    """Return the block of each user: each its own one, or `MOST_BLOCKS` random ones."""
    if users <= MOST_BLOCKS:
        return np.arange(users, dtype=np.int64)
    drawn = draw(seed, "contrast blocks", np.arange(users)) % np.uint64(MOST_BLOCKS)
    return drawn.astype(np.int64)


def critical_value(largest: F64, level: float) -> float:
    """Return the t above which the adjusted p-value is at most 1 - `level`, of a normal tail."""
    single = NormalDist().inv_cdf((1 + level) / 2)
    above = math.floor(round(1 - level, 12) * (largest.size + 1) + 1e-9) - 1
    if above < 0:
        return math.inf
    return max(float(largest[largest.size - 1 - above]), single)


@dataclass(frozen=True)
class Tail:
    """How quantiles of the largest |t| become those of estimated errors, and back.

    Nothing changes up to the quantile of a single interval; beyond it Student's tail stands for
    the normal one.
    """

    df: float
    """Infinite: the normal tail."""
    level: float
    """Of single intervals."""

    @classmethod
    def of(cls, splits: int, target: str, level: float) -> Tail:
        """Return the tail for a number of distinct splits."""
        df = TAIL_DF * (1 - TAIL_SPLITS / max(splits, 2)) if target == RETRAINED else math.inf
        return cls(df, level)

    @property
    def _single(self) -> float:
        return NormalDist().inv_cdf((1 + self.level) / 2)

    @property
    def _scale(self) -> float:
        return self._single / student_t_quantile((1 + self.level) / 2, self.df)

    def widened(self, t: float) -> float:
        """Return the t of estimated errors for the t of a normal tail."""
        if math.isinf(self.df) or t <= self._single:
            return t
        return max(student_t_quantile(NormalDist().cdf(t), self.df) * self._scale, t)

    def narrowed(self, t: F64) -> F64:
        """Return |t| of a normal tail for t of estimated errors."""
        size = np.abs(t)
        if math.isinf(self.df):
            return size
        beyond = student_t_sf(size / self._scale, self.df)
        normal = [-NormalDist().inv_cdf(p) if p > 0 else math.inf for p in beyond.tolist()]
        return np.where(size <= self._single, size, np.minimum(normal, size))


def adjusted_p(t: F64, largest: F64, tail: Tail) -> tuple[F64, F64]:
    """Return the single and the adjusted two-sided p-values of t."""
    single = np.array([2 * NormalDist().cdf(-abs(one)) for one in t.tolist()])
    reached = largest.size - np.searchsorted(largest, tail.narrowed(t), side="left")
    adjusted = (1 + reached) / (largest.size + 1)
    return single, np.minimum(np.maximum(adjusted, single), 1.0)
