"""`sample_size`: the smallest difference these users can show, and the users a difference needs."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations
from statistics import NormalDist

import numpy as np
import polars as pl

from unskew.arrays import F64, I64
from unskew.checks import check_share, checked, choose, is_number
from unskew.errors import DataError, SettingError
from unskew.report.result import Result
from unskew.report.text import counted
from unskew.stats.discrimination import ALPHA, POWER
from unskew.stats.pairing import Source, paired
from unskew.stats.user_draws import check_two_systems, chosen_metrics

MOST_USERS = 1 << 53
"""A difference that needs more users than this is one of rounding: no number would do."""


@dataclass(frozen=True, eq=False)
class SampleSize(Result):
    """What difference the users at hand can show, and how many users a difference needs.

    Made by `sample_size`.
    """

    metrics: tuple[str, ...]
    pairs: tuple[tuple[str, str], ...]
    gap: F64
    """Metrics x pairs: the mean difference a - b."""
    sd: F64
    """Metrics x pairs: the standard deviation of the users' differences."""
    users: I64
    """Metrics: users compared."""
    difference: float | None
    """The difference that `needed` is of; None: the observed one."""
    alpha: float = ALPHA
    power: float = POWER
    tests: int = 1
    """Comparisons that share alpha (Bonferroni)."""

    def detectable(self) -> F64:
        """Return metrics x pairs: the least difference that is found with the power asked for."""
        free = self.users[:, None] - self._quantile() ** 2 / 2
        least: F64 = (self._quantile() + NormalDist().inv_cdf(self.power)) * self.sd / np.sqrt(free)
        return least

    def needed(self) -> F64:
        """Return metrics x pairs: the users needed; infinite for a difference of 0."""
        gap = (
            np.abs(self.gap) if self.difference is None else np.full_like(self.gap, self.difference)
        )
        both = self._quantile() + NormalDist().inv_cdf(self.power)
        with np.errstate(divide="ignore", invalid="ignore"):
            ratio = np.where(gap > 0, self.sd / gap, np.inf)
        # Less a hair, so that a whole number found in floating point is not rounded up.
        users: F64 = np.ceil((both * ratio) ** 2 + self._quantile() ** 2 / 2 - 1e-9)
        return np.maximum(users, 2.0)

    def achieved(self) -> F64:
        """Return metrics x pairs: the power with which a difference as observed is found."""
        with np.errstate(divide="ignore", invalid="ignore"):
            free = np.sqrt(self.users[:, None] - self._quantile() ** 2 / 2)
            shift = np.where(self.gap == 0, 0.0, np.abs(self.gap) / self.sd * free)
        normal = NormalDist()
        return np.array(
            [
                [normal.cdf(x - self._quantile()) + normal.cdf(-x - self._quantile()) for x in row]
                for row in shift.tolist()
            ]
        )

    def pair_table(self) -> pl.DataFrame:
        """Return a row per metric and pair of systems.

        Columns: metric, a, b, users, difference (a - b), sd, effect (difference / sd), detectable,
        power (to find a difference as large as the observed one), needed (users; null where no
        number would do).
        """
        count = len(self.pairs)
        with np.errstate(divide="ignore", invalid="ignore"):
            effect = np.where(self.gap == 0, 0.0, self.gap / self.sd)
        needed = self.needed().ravel()
        return pl.DataFrame(
            {
                "metric": np.repeat(self.metrics, count),
                "a": [a for a, _ in self.pairs] * len(self.metrics),
                "b": [b for _, b in self.pairs] * len(self.metrics),
                "users": np.repeat(self.users, count),
                "difference": self.gap.ravel(),
                "sd": self.sd.ravel(),
                "effect": effect.ravel(),
                "detectable": self.detectable().ravel(),
                "power": self.achieved().ravel(),
                "needed": [int(n) if n < MOST_USERS else None for n in needed.tolist()],
            },
            schema_overrides={"needed": pl.Int64},
        )

    def table(self) -> pl.DataFrame:
        """Return a row per metric, over all pairs of systems.

        Columns: metric, users, sd (median), detectable (median and, as `hardest`, the largest),
        powered (the share of pairs whose observed difference is at least what is detectable),
        needed (median users; null where no number would do).
        """
        least = self.detectable()
        needed = np.median(self.needed(), axis=1)
        return pl.DataFrame(
            {
                "metric": self.metrics,
                "users": self.users,
                "sd": np.median(self.sd, axis=1),
                "detectable": np.median(least, axis=1),
                "hardest": least.max(axis=1),
                "powered": ((np.abs(self.gap) >= least) & (self.gap != 0)).mean(axis=1),
                "needed": [math.ceil(n) if n < MOST_USERS else None for n in needed.tolist()],
            },
            schema_overrides={"needed": pl.Int64},
        )

    def _quantile(self) -> float:
        return NormalDist().inv_cdf(1 - self.alpha / self.tests / 2)

    def _explanation(self) -> list[str]:
        wanted = "the observed differences" if self.difference is None else f"{self.difference:g}"
        shared = f" / {self.tests} (Bonferroni)" if self.tests > 1 else ""
        return [
            f"paired t test, two-sided, alpha {self.alpha:g}{shared}, power {self.power:g} "
            f"(normal approximation with Guenther's correction); users needed for {wanted}"
        ]

    def _summary(self) -> str:
        return f"{counted(len(self.metrics), 'metric')}, {counted(len(self.pairs), 'pair')}"


@checked
def sample_size(
    scores: Source,
    metrics: str | Sequence[str] | None = None,
    *,
    difference: float | None = None,
    power: float = POWER,
    alpha: float = ALPHA,
    correction: str = "none",
    threads: int | None = None,
) -> SampleSize:
    r"""Return the smallest difference these users can show, and the users a difference needs.

    From the standard deviation s of the users' paired differences:

    .. math::
        \delta_{min} = \frac{(z_{1-\alpha/2} + z_{power})\,s}{\sqrt{n - z_{1-\alpha/2}^2/2}}
        \qquad
        n = \frac{(z_{1-\alpha/2} + z_{power})^2 s^2}{\delta^2} + \frac{z_{1-\alpha/2}^2}{2}

    the normal approximation of the paired t test with Guenther's (1981) correction for the
    estimated s; from some twenty users up it is right to a fraction of a per cent.

    Parameters
    ----------
    scores
        What `evaluate` gave, a list of such for several folds, or values per user (see `paired`).
    metrics
        Labels of these scores; all that have a value per user unless named.
    difference
        The difference that users are needed for; None for the observed one of each pair.
    power
        How surely a true difference should be found; above `alpha`, which even no difference
        reaches.
    alpha
        How often a difference is found where there is none.
    correction
        `none`, or `bonferroni`: alpha divided by the number of pairs.
    threads
        Never change a result.

    References
    ----------
    Sakai 2016 (topic set size design); Guenther 1981.
    """
    from unskew.stats.samples import all_pairs, sample

    both = paired(scores)
    check_two_systems(both.systems)
    labels = chosen_metrics(both, metrics)
    check_power(power, alpha)
    choose("correction", correction, ("none", "bonferroni"))
    if difference is not None:
        check_difference(difference)
    names = both.systems
    pairs = tuple(combinations(names, 2))
    tests = len(pairs) if correction == "bonferroni" else 1
    least = math.floor(NormalDist().inv_cdf(1 - alpha / tests / 2) ** 2 / 2) + 2

    def one(label: str) -> tuple[F64, F64, int]:
        values = both.complete(label)
        if len(values) < least:
            raise DataError(
                f"{label}: {counted(len(values), 'user is', 'users are')} too few for "
                f"alpha={alpha:g}: at least {least}"
            )
        given = sample(values, all_pairs(len(names)), label, threads)
        return given.difference, given.sd, given.users

    rows = [one(label) for label in labels]
    gap, sd, users = (np.array(column) for column in zip(*rows, strict=True))
    return SampleSize(
        metrics=tuple(labels),
        pairs=pairs,
        gap=gap,
        sd=sd,
        users=users,
        difference=difference,
        alpha=alpha,
        power=power,
        tests=tests,
    )


def check_power(power: float, alpha: float) -> None:
    """Raise an error for a power that no number of users can give."""
    check_share("power", power)
    check_share("alpha", alpha)
    if power <= alpha:
        raise SettingError(
            f"power must be above alpha ({alpha:g}), got {power:g}: a test of this level finds a "
            f"difference in {100 * alpha:g} % of the cases even where there is none"
        )


def check_difference(value: float) -> None:
    """Raise an error for a difference that is not a finite number above 0."""
    if not is_number(value) or not 0 < value < math.inf:
        raise SettingError(f"difference must be a finite number above 0, got {value!r}")
