"""Differences on several data sets, each with its standard error, as draws around one mean.

The normal model with two levels: d_i is normal around theta_i with the standard error s_i, theta_i
is normal around mu with the standard deviation tau.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from statistics import NormalDist

import numpy as np

from unskew.arrays import F64
from unskew.errors import DataError
from unskew.stats.pairing import PairedSample
from unskew.stats.special import student_t_sf

_STEP = 0.05
"""Of ln tau, at most. The posterior is smooth in it, so that sums over a grid converge fast."""
_LOW, _HIGH = 1e-5, 1e7
"""The grid goes from this share of the smallest scale to this multiple of the largest one."""
_NEGLIGIBLE = 1e-13
_FAR = 64.0
"""Standard deviations beyond which the tail of a normal is 0 as a number."""


def heterogeneity(differences: F64, errors: F64) -> float:
    """Return tau by Paule and Mandel (1982): the one whose Q equals its degrees of freedom.

    Q(tau) is the sum of (d_i - mean)² / (s_i² + tau²), about the mean with these weights.

    Examples
    --------
    >>> import numpy as np
    >>> from unskew.stats.tests.posterior import heterogeneity
    >>> round(heterogeneity(np.array([0.0, 2.0]), np.array([1e-9, 1e-9])), 6)
    1.414214
    """
    freedom = differences.size - 1

    def excess(square: float) -> float:
        weight = 1 / (errors**2 + square)
        mean = (weight * differences).sum() / weight.sum()
        return float((weight * (differences - mean) ** 2).sum()) - freedom

    if freedom < 1 or not (errors > 0).all() or excess(0.0) <= 0:
        return 0.0 if (errors > 0).all() else math.nan
    low, high = 0.0, float(((differences - differences.mean()) ** 2).sum())
    while excess(high) > 0:
        high *= 2
    for _ in range(200):
        middle = (low + high) / 2
        low, high = (middle, high) if excess(middle) > 0 else (low, middle)
    return math.sqrt((low + high) / 2)


@dataclass(frozen=True, eq=False)
class Posterior:
    """What is believed of mu, and of theta on a new data set: a mixture of normals over tau."""

    tau: F64
    weight: F64
    """Of each tau; they add up to 1."""
    mean: F64
    """Of mu given tau."""
    variance: F64
    """Of mu given tau."""

    def above(self, limit: float, *, new: bool = False) -> float:
        """Return the probability that mu (`new`: theta of a new data set) exceeds a limit."""
        scale = np.sqrt(self.variance + self.tau**2) if new else np.sqrt(self.variance)
        # A limit beyond all belief divided by a small scale would be too large for a number.
        far = _FAR * scale
        z = (np.clip(limit - self.mean, -far, far) / scale / math.sqrt(2)).tolist()
        return 0.5 * math.fsum(
            w * math.erfc(score) for w, score in zip(self.weight, z, strict=True)
        )

    def quantile(self, probability: float, *, new: bool = False) -> float:
        """Return the value that mu (theta of a new data set) stays below so often."""
        scale = np.sqrt(self.variance + self.tau**2) if new else np.sqrt(self.variance)
        z = NormalDist().inv_cdf(probability)
        quantiles = (
            self.mean + z * scale
        )  # the quantile of each normal: that of the mixture is between
        low, high = float(quantiles.min()), float(quantiles.max())
        value = float((self.weight * self.mean).sum())
        value = value if low < value < high else (low + high) / 2
        for _ in range(200):
            miss = 1 - self.above(value, new=new) - probability
            low, high = (value, high) if miss < 0 else (low, value)
            slope = float(
                (self.weight * np.exp(-0.5 * ((value - self.mean) / scale) ** 2) / scale).sum()
            )
            step = -miss * math.sqrt(2 * math.pi) / slope if slope > 0 else math.inf
            # Newton's steps; half of what is left where they leave it.
            if not low < value + step < high:
                step = (low + high) / 2 - value
            value += step
            if abs(step) <= 1e-13 * float(scale[0] + abs(value)):
                break
        return value


def posterior(differences: F64, errors: F64) -> Posterior | None:
    """Return the posterior under a flat prior of mu and the Jeffreys prior of tau, by quadrature.

    The prior of tau is the root of the sum of (tau / (s_i² + tau²))². It depends on no unit and on
    no choice. Where differences vary much more than their errors explain, it is 1 / tau, and mu
    has the t distribution of the plain mean of the differences. Röver (Journal of Statistical
    Software 93(6), 2020, section 2) derives the mixture. None with fewer than two data sets, and
    where a standard error is 0 or unknown: then tau = 0 would have infinite weight.
    """
    if differences.size < 2 or not (errors > 0).all():
        return None
    spread = float(np.abs(differences - differences.mean()).max())
    low = math.log(_LOW * float(errors.min()))
    high = math.log(_HIGH * max(float(errors.max()), spread))
    # The posterior of ln tau is about as wide as 1 / sqrt(2 N).
    ln_tau = np.arange(low, high, min(_STEP, 0.3 / math.sqrt(differences.size)))
    tau = np.exp(ln_tau)
    variance = errors[:, None] ** 2 + tau**2
    precision = (1 / variance).sum(axis=0)
    mean = (differences[:, None] / variance).sum(axis=0) / precision
    misfit = ((differences[:, None] - mean) ** 2 / variance).sum(axis=0)
    prior = 0.5 * np.log(((tau / variance) ** 2).sum(axis=0))
    ln = ln_tau + prior - 0.5 * (np.log(variance).sum(axis=0) + np.log(precision) + misfit)
    weight = np.exp(ln - ln.max())
    keep = weight > _NEGLIGIBLE * weight.max()
    weight = weight[keep]
    return Posterior(tau[keep], weight / weight.sum(), mean[keep], 1 / precision[keep])


def bayesian_t(sample: PairedSample, rope: float) -> tuple[F64, F64, F64]:
    """Return, for each pair, P(first greater), P(practically equivalent), P(second greater).

    The posterior of the mean difference under the Jeffreys prior is Student's t with n - 1 degrees
    of freedom around the observed mean, scaled by its standard error: the Bayesian t test of
    Benavoli et al. (2017) without correlation, since users are the units and are not shared by
    folds. `rope` is the largest difference, in units of the metric, that does not matter in
    practice: the region of practical equivalence is [-rope, rope].
    """
    if sample.users < 2:
        raise DataError(f"{sample.label}: a posterior needs at least 2 users, there is 1")
    df = sample.users - 1
    error, mean = sample.standard_error, sample.difference
    certain = error == 0
    scale = np.where(certain, 1.0, error)
    with np.errstate(over="ignore"):  # a rope beyond all differences leaves nothing outside
        above = student_t_sf((rope - mean) / scale, df)
        below = student_t_sf((rope + mean) / scale, df)
    above = np.where(certain, mean > rope, above).astype(np.float64)
    below = np.where(certain, mean < -rope, below).astype(np.float64)
    return above, np.maximum(1 - above - below, 0.0), below
