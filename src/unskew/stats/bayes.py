"""Bayesian comparison: how probable it is that one system is better, worse or much the same."""

from __future__ import annotations

import numpy as np

from unskew.arrays import F64
from unskew.errors import DataError
from unskew.stats.distributions import student_t_sf
from unskew.stats.samples import PairedSample


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
