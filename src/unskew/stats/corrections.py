"""p-values corrected for many comparisons at once.

What needs the permutations themselves (Westfall and Young's maxT, randomised Tukey) is in
`randomisation`.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from unskew.arrays import F64
from unskew.checks import as_numbers, checked, choose
from unskew.errors import DataError

CORRECTIONS = ("holm", "bonferroni", "bh", "by")
IN_WORDS = {
    "holm": "Holm",
    "bonferroni": "Bonferroni",
    "bh": "Benjamini–Hochberg",
    "by": "Benjamini–Yekutieli",
    "maxT": "Westfall–Young maxT",
    "tukey": "randomised Tukey HSD",
}


@checked
def correct(p: ArrayLike, method: str = "holm") -> F64:
    """Return p-values corrected for their number m: reject where the result is at most alpha.

    With p in ascending order and i counting from 1, as statsmodels' `multipletests`:

    - `bonferroni`: min(1, m p). Keeps the chance of any false rejection at alpha.
    - `holm`: the largest (m - j + 1) p_j of all j <= i. The same guarantee, never less powerful
      (Holm 1979).
    - `bh`: the smallest m p_j / j of all j >= i. Keeps the expected share of false rejections
      at alpha, for independent or positively dependent tests (Benjamini and Hochberg 1995).
    - `by`: `bh` times 1 + 1/2 + … + 1/m: for any dependence (Benjamini and Yekutieli 2001).

    NaN stays NaN and does not count.

    Parameters
    ----------
    p
        The p-values, in any order.
    method
        One of the four above.

    Returns
    -------
    array
        The corrected p-values, in the order of `p`.

    Examples
    --------
    >>> from unskew.stats.corrections import correct
    >>> correct([0.020, 0.021, 0.022], "holm").round(3).tolist()
    [0.06, 0.06, 0.06]
    >>> correct([0.020, 0.021, 0.022], "bh").round(3).tolist()
    [0.022, 0.022, 0.022]
    """
    choose("correction", method, CORRECTIONS)
    values = as_numbers("p", p)
    if bool(((values < 0) | (values > 1)).any()):
        raise DataError(f"p-values are between 0 and 1, got {values.min()} to {values.max()}")
    is_known = ~np.isnan(values)
    m = int(is_known.sum())
    if not m:
        return values.copy()
    order = np.argsort(values[is_known], kind="stable")
    ascending, i = values[is_known][order], np.arange(1, m + 1)
    if method == "bonferroni":
        corrected = ascending * m
    elif method == "holm":
        corrected = np.maximum.accumulate(ascending * (m - i + 1))
    else:
        # statsmodels divides by i/m; so do we, to the last bit.
        share = i / m if method == "bh" else i / m / float((1.0 / i).sum())
        corrected = np.minimum.accumulate((ascending / share)[::-1])[::-1]
    result = np.full(values.shape, np.nan)
    back = np.empty(m)
    back[order] = np.minimum(corrected, 1.0)
    result[is_known] = back
    return result


def corrected_by(method: str | None, family: str) -> str | None:
    """Return a correction in words: `Holm over 3 pairs`; None where there is none.

    Parameters
    ----------
    method
        Its name.
    family
        What is corrected together.
    """
    return None if method is None else f"{IN_WORDS[method]} over {family}"
