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

    It minimises the variance within strata of :math:`\sum w (y - \bar y - \lambda (f - \bar f))`,
    with weighted means.

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
    sums = _Sums(stratum, room)
    columns = {"y": weight * y, "f": weight * label, "w": weight}
    total = sums.without(weight)
    with np.errstate(invalid="ignore", divide="ignore"):
        y_mean, f_mean = (sums.without(columns[name]) / total for name in "yf")
        product = {
            name: sums.products(columns[name[0]], columns[name[1]])
            for name in ("yf", "yw", "fw", "ff", "ww")
        }
        top = product["yf"] - y_mean * product["fw"] - f_mean * product["yw"]
        top = top + y_mean * f_mean * product["ww"]
        bottom = product["ff"] - 2 * f_mean * product["fw"] + f_mean**2 * product["ww"]
        slope = top / bottom
    # Where all labels are alike, rounding leaves a little of what should be 0.
    usable = (bottom > _NOTHING * float((columns["f"] ** 2).sum())) & np.isfinite(slope)
    return np.where(usable, slope, 0.0)


class _Sums:
    """Sums over all pairs but one, for each in turn."""

    def __init__(self, stratum: I64, room: F64) -> None:
        self.stratum, self.room = stratum, room
        self.number = np.bincount(stratum, minlength=room.size).astype(np.float64)

    def without(self, column: F64) -> F64:
        """Return the sum without each pair."""
        return float(column.sum()) - column

    def products(self, one: F64, other: F64) -> F64:
        """Return Σ room (one - mean) (other - mean) within strata, without each pair."""
        h = self.stratum
        a, b, both = (self._by_stratum(column) for column in (one, other, one * other))
        whole = self.room * _inside(self.number, a, b, both)
        rest = _inside(self.number[h] - 1.0, a[h] - one, b[h] - other, both[h] - one * other)
        return float(whole.sum()) - whole[h] + self.room[h] * rest

    def _by_stratum(self, column: F64) -> F64:
        return np.bincount(self.stratum, column, self.room.size).astype(np.float64)


def _inside(number: F64, a: F64, b: F64, both: F64) -> F64:
    """Return Σ (a - mean) (b - mean) from the sums of a, of b and of both."""
    return np.where(number > 0, both - a * b / np.maximum(number, 1.0), 0.0)
