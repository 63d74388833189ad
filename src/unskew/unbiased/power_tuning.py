r"""How much labels of an annotator count: the slope that makes a corrected mean vary least.

An estimate from people's labels y is corrected by the labels f of an annotator, known for all
pairs: with y - λ (f - mean of f) in place of y it stays unbiased for every λ that is fixed
beforehand, and varies least with the slope of y on f (PPI++, Angelopoulos, Duchi and Zrnic 2023). A
slope that was fitted to the same labels would bias the estimate and narrow its interval, so each
label is corrected with the slope of all others (cross-fitting that leaves one out: no draw of
folds).
"""

from __future__ import annotations

import numpy as np

from unskew.arrays import F64, I64

_NOTHING = 1e-12


def leave_one_out_slopes(weight: F64, y: F64, label: F64, stratum: I64, room: F64) -> F64:
    r"""Return for each sampled pair the slope of y on the annotator's label among all others.

    It minimises the variance of :math:`\sum w (y - \theta - \lambda f)` within strata, where
    :math:`\theta` is the weighted mean of y.

    Parameters
    ----------
    weight
        Of each sampled pair: what it adds, over its probability.
    y
        People's labels.
    label
        Labels of the annotator, less their mean over all pairs.
    stratum
        0, 1, … for each sampled pair; strata without any may be there.
    room
        By stratum: the share of its pairs that is not sampled. One that is sampled as a whole
        varies no more.

    Examples
    --------
    >>> import numpy as np
    >>> from unskew.unbiased.power_tuning import leave_one_out_slopes
    >>> y, label = np.array([1.0, 1, 0, 0, 1]), np.array([0.5, 0.5, -0.5, -0.5, -0.5])
    >>> one = np.zeros(5, np.int64)
    >>> leave_one_out_slopes(np.ones(5), y, label, one, np.ones(1)).round(3).tolist()
    [0.667, 0.667, 0.5, 0.5, 1.0]
    """
    sums = _Sums(weight, y, label, stratum, room)
    top_y, top_w, bottom = sums.without_each()
    total = float(weight.sum())
    with np.errstate(invalid="ignore", divide="ignore"):
        mean = (float((weight * y).sum()) - weight * y) / (total - weight)
        slope = (top_y - mean * top_w) / bottom
    # Where all labels are alike, rounding leaves a little of what should be 0.
    usable = (bottom > _NOTHING * float((sums.label**2).sum())) & np.isfinite(slope)
    return np.where(usable, slope, 0.0)


class _Sums:
    """Sums of products with f within strata, and what they are without one pair."""

    def __init__(self, weight: F64, y: F64, label: F64, stratum: I64, room: F64) -> None:
        self.stratum, self.room = stratum, room
        self.number = np.bincount(stratum, minlength=room.size).astype(np.float64)
        self.label = weight * label
        self.y, self.weight = weight * y, weight

    def without_each(self) -> tuple[F64, F64, F64]:
        """Return the products of y, of the weight and of f with f, without each pair in turn."""
        return self._without(self.y), self._without(self.weight), self._without(self.label)

    def _by_stratum(self, column: F64) -> F64:
        return np.bincount(self.stratum, column, self.room.size).astype(np.float64)

    def _without(self, one: F64) -> F64:
        other, h = self.label, self.stratum
        a, b, both = (self._by_stratum(column) for column in (one, other, one * other))
        whole = self.room * _inside(self.number, a, b, both)
        rest = _inside(self.number[h] - 1.0, a[h] - one, b[h] - other, both[h] - one * other)
        return float(whole.sum()) - whole[h] + self.room[h] * rest


def _inside(number: F64, a: F64, b: F64, both: F64) -> F64:
    """Return Σ (a - mean) (b - mean) from the sums of a, of b and of both."""
    return np.where(number > 0, both - a * b / np.maximum(number, 1.0), 0.0)
