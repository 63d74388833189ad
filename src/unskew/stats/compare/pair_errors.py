"""Errors of the differences of all pairs of systems, under all designs, over repeated splits.

Three parts: the variance over users; what users add by being trained on; and the *common* variance
of what moves all users of a split together, such as an unlucky training. A few splits tell little
about the last part of a single pair (two degrees of freedom from three splits), so a width that
rests on it alone can triple by chance. It is therefore pooled: over the pairs of a design, over
designs for how unsteady each pair is among the others, and only a part of what a pair shows beyond
the others counts.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import NormalDist

import numpy as np

from unskew.arrays import F64, I64, Mask
from unskew.stats.influence import RETRAINED, SplitInfluence
from unskew.stats.pairing import Pairs
from unskew.stats.special import student_t_quantile

TRAINING_SHARE = 0.75
"""What a user adds by being trained on, in parts of the variance between users."""
ONE_SPLIT_SHARE = 0.25
"""The same with one split, in parts of the variance over users: test noise cannot be told apart."""
COMMON_SHARE = 0.5
"""What the training ratings add beyond these splits, in parts of the common variance."""
MOST_CHANCE = 0.5
"""At most so much of what a pair shows beyond the others is taken for chance."""
_USERS_AT_ONCE = 4_096
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


@dataclass(frozen=True, eq=False)
class _Moments:
    """What the splits of one design say of each pair."""

    difference: F64
    """The mean over splits."""
    size: F64
    """The largest mean of either system."""
    between: F64
    """The variance of the difference between splits; 0 with one split."""
    within: F64
    """How much of it the test noise of users explains: each user's variance over splits."""
    over_users: F64
    influence: F64
    users: int
    splits: int

    @property
    def has_noise(self) -> Mask:
        """Where users have test noise, more than rounding."""
        return self.within > (_ROUNDING * self.size) ** 2

    @property
    def ratio(self) -> F64:
        """The variance between splits by the one that test noise explains: 1 where none is left."""
        one = np.ones_like(self.within)
        return np.divide(self.between, self.within, out=one, where=self.has_noise)


def pair_errors(
    designs: Mapping[str, Sequence[SplitInfluence]],
    pairs: Pairs,
    blocks: I64,
    *,
    target: str,
    level: float,
) -> dict[str, PairErrors]:
    """Return, by design, the mean difference of each pair over distinct splits, with its error.

    Parameters
    ----------
    designs
        The distinct splits of each.
    pairs
        The columns of the systems: all pairs of them.
    blocks
        The block of each user; see `user_blocks`.
    target
        `retrained` or `lists`.
    level
        Of the single intervals: sets Student's quantile.
    """
    moments = {design: _moments(splits, pairs, blocks) for design, splits in designs.items()}
    repeated = [design for design, part in moments.items() if part.splits > 1]
    pooled: dict[str, tuple[F64, F64]] = {}
    if target == RETRAINED and repeated:
        ratios = np.stack([moments[design].ratio for design in repeated])
        degrees = np.array([moments[design].splits - 1 for design in repeated])
        pooled = dict(zip(repeated, zip(*pooled_ratios(ratios, degrees), strict=True), strict=True))
    return {
        design: _errors(part, pooled.get(design), target, level) for design, part in moments.items()
    }


def pooled_ratios(ratios: F64, degrees: I64) -> tuple[F64, F64]:
    """Return what each ratio of variances is taken to be, and its degrees of freedom.

    Parameters
    ----------
    ratios
        Designs x pairs (all pairs of systems, in order): the variance between splits by the one
        that test noise explains.
    degrees
        Of freedom, of each design: its splits - 1.

    Notes
    -----
    1. The *level* of a design is the median over its pairs, at least 1: no pair counts as steadier.
    2. A pair's own ratio, in units of the level, is that of the design or its mean over designs,
       whichever is larger: the same systems are trained under all of them.
    3. Its excess over the mean of all pairs counts in part (James and Stein): less the share of the
       spread between systems that chance explains, which is at most `MOST_CHANCE`.
    4. Degrees of freedom are those of a sum of variances of systems (Welch and Satterthwaite).

    Two systems have one pair, which stands for itself.

    Examples
    --------
    >>> import numpy as np
    >>> from unskew.stats.compare.pair_errors import pooled_ratios
    >>> steady, jump = [0.9, 1.1, 1.2, 0.8, 1.0, 0.7], [0.9, 1.1, 5.0, 0.8, 1.0, 0.7]
    >>> for ratios in ([jump], [jump, steady, steady, steady]):
    ...     ratio, df = pooled_ratios(np.array(ratios), np.full(len(ratios), 2))
    ...     print(ratio[0].round(1), df[0].round(1))
    [1.4 1.4 3.3 1.4 1.4 1.4] [3.1 3.1 4.  4.  3.3 3.3]
    [1.4 1.4 3.1 1.4 1.4 1.4] [3.2 3.1 4.1 4.7 3.4 3.3]
    """
    systems = round((1 + np.sqrt(1 + 8 * ratios.shape[1])) / 2)
    free = degrees[:, None].astype(np.float64)
    # A design whose values are those of another one says nothing anew.
    _, distinct = np.unique(np.column_stack([ratios, free]), axis=0, return_index=True)
    if systems < 3:
        mean = np.average(ratios[distinct], axis=0, weights=degrees[distinct])
        return np.maximum(ratios, mean), np.broadcast_to(free, ratios.shape)
    # The median of a chi-squared variable by its mean (Wilson and Hilferty 1931).
    median = np.median(ratios, axis=1, keepdims=True) / (1 - 2 / (9 * free)) ** 3
    level = np.maximum(median, 1.0)
    relative = ratios / level
    profile = np.average(relative[distinct], axis=0, weights=degrees[distinct])
    by_system, typical = _of_systems(relative, systems), _of_systems(profile, systems)
    spread = max(float(typical.var(ddof=1)), np.finfo(np.float64).tiny)
    chance = np.minimum(2 / free * typical.mean() ** 2 / spread, MOST_CHANCE)
    ratio = chance * profile.mean() + (1 - chance) * np.maximum(relative, profile)
    df = free * _effective(chance, (by_system + typical) / 2, typical)
    return level * np.maximum(ratio, 1.0), np.maximum(df, free)


def _of_systems(ratios: F64, systems: int) -> F64:
    """Return the ratio of each system: that of a pair is the mean of its two (least squares)."""
    first, second = np.triu_indices(systems, 1)
    total = np.zeros((*ratios.shape[:-1], systems))
    for system in range(systems):
        total[..., system] = ratios[..., (first == system) | (second == system)].sum(axis=-1)
    everything = ratios.sum(axis=-1, keepdims=True)
    solution: F64 = 2 * (total - everything / (systems - 1)) / (systems - 2)
    return np.maximum(solution, 0.0)


def _effective(chance: F64, by_system: F64, typical: F64) -> F64:
    """Return how many equal systems each pair's ratio rests on: (sum of parts)² / sum of squares.

    A system is part of the mean of all, and, where it is one of the pair, of the pair's own ratio.
    """
    systems = typical.size
    first, second = np.triu_indices(systems, 1)
    shared = chance * typical / systems
    own = (1 - chance) * by_system / 2
    total, squares = shared.sum(axis=1, keepdims=True), (shared**2).sum(axis=1, keepdims=True)
    total = total + own[:, first] + own[:, second]
    for side in (first, second):
        squares = squares + (shared[:, side] + own[:, side]) ** 2 - shared[:, side] ** 2
    effective: F64 = np.divide(total**2, squares, out=np.ones_like(total), where=squares > 0)
    return effective


def _errors(
    part: _Moments, pooled: tuple[F64, F64] | None, target: str, level: float
) -> PairErrors:
    """Return the errors of one design; `pooled` has the ratio of each pair and its df."""
    trained = common = np.zeros_like(part.over_users)
    degrees = np.ones_like(common)
    if target == RETRAINED and part.splits == 1:
        trained = ONE_SPLIT_SHARE * part.over_users
    if pooled is not None:
        ratio, degrees = pooled
        noise = part.users / (part.users - 1) * part.within / part.splits
        trained = TRAINING_SHARE * np.maximum(part.over_users - noise, 0.0)
        # Where users have no noise at all, all that differs between splits is common to them.
        spread = np.where(part.has_noise, (ratio - 1) * part.within, part.between)
        degrees = np.where(part.has_noise, degrees, part.splits - 1)
        common = (COMMON_SHARE + 1 / part.splits) * np.maximum(spread, 0.0)
    variance = part.over_users + trained + common
    # A difference that is the same for every user leaves rounding errors, which are no variance.
    variance[variance <= (_ROUNDING * part.size) ** 2] = 0.0
    difference = np.where(np.abs(part.difference) <= _ROUNDING * part.size, 0.0, part.difference)
    se = np.sqrt(variance) * _student_factor(variance, common, degrees, part.users, level)
    return PairErrors(difference, se, part.influence, part.users, part.splits)


def _moments(splits: Sequence[SplitInfluence], pairs: Pairs, blocks: I64) -> _Moments:
    first, second, count = pairs.first, pairs.second, len(splits)
    means = np.stack([split.means for split in splits])
    by_split = means[:, first] - means[:, second]
    influence, squares, within = _influences(splits, pairs, blocks)
    users = int(np.logical_or.reduce([split.counted for split in splits]).sum())
    return _Moments(
        difference=by_split.mean(axis=0),
        size=np.maximum(np.abs(means[:, first]), np.abs(means[:, second])).max(axis=0),
        between=by_split.var(axis=0, ddof=1) if count > 1 else np.zeros(len(pairs)),
        within=within,
        over_users=users / (users - 1) * squares,
        influence=influence,
        users=users,
        splits=count,
    )


def _influences(
    splits: Sequence[SplitInfluence], pairs: Pairs, blocks: I64
) -> tuple[F64, F64, F64]:
    """Return the influences, means over splits: of blocks of users, and their sums of squares.

    Last, the test noise of one split's difference: each user's variance over splits.
    """
    count, users = len(splits), splits[0].influence.shape[0]
    influence = np.zeros((int(blocks.max(initial=-1)) + 1, len(pairs)))
    squares, within_splits = np.zeros(len(pairs)), np.zeros(len(pairs))
    for low in range(0, users, _USERS_AT_ONCE):
        part = slice(low, low + _USERS_AT_ONCE)
        by_split = [
            split.influence[part][:, pairs.first] - split.influence[part][:, pairs.second]
            for split in splits
        ]
        mean = sum(by_split[1:], start=by_split[0]) / count
        squares += (mean**2).sum(axis=0)
        np.add.at(influence, blocks[part], mean)
        if count > 1:
            for values in by_split:
                within_splits += ((values - mean) ** 2).sum(axis=0) / (count - 1)
    return influence, squares, within_splits


def _student_factor(variance: F64, common: F64, degrees: F64, users: int, level: float) -> F64:
    """Return Student's quantile by the normal one, with Satterthwaite's degrees of freedom."""
    remainder = variance - common
    with np.errstate(divide="ignore", invalid="ignore"):
        df = variance**2 / (remainder**2 / (users - 1) + common**2 / degrees)
    freedom = np.floor(np.where(variance > 0, df, users - 1) + 1e-9)
    normal = NormalDist().inv_cdf((1 + level) / 2)
    factors = [
        student_t_quantile((1 + level) / 2, max(count, 1.0)) / normal for count in freedom.tolist()
    ]
    return np.array(factors)
