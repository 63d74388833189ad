"""Intervals of the mean differences of pairs of systems."""

from __future__ import annotations

import numpy as np

from unskew.arrays import F64
from unskew.stats.bootstrap import Resampling, bca_intervals
from unskew.stats.distributions import student_t_quantile
from unskew.stats.p_values import TestSettings
from unskew.stats.samples import PairedSample


def difference_interval(one: PairedSample, settings: TestSettings) -> tuple[F64, F64]:
    """Return both ends of each pair's interval, at the settings' confidence; NaN with one user."""
    if one.users < 2:
        nothing = np.full(len(one.pairs), np.nan)
        return nothing, nothing.copy()
    if settings.interval == "bca":
        draws = Resampling(settings.resamples, settings.seed, settings.threads)
        return bca_intervals(one, settings.confidence, draws)
    half = student_t_quantile((1 + settings.confidence) / 2, one.users - 1) * one.standard_error
    return one.difference - half, one.difference + half
