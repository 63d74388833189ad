"""Scales of ratings: the threshold that a scale gives, or the one to propose."""

from __future__ import annotations

import numpy as np

from unskew.arrays import F64
from unskew.errors import DataError, SettingError, Spelling

_MOST_VALUES = 11


def usual_threshold(value: F64) -> tuple[float, str]:
    """Return the smallest liked rating of a scale that has a usual one, and the note on it.

    0 and 1, and -1 and 1, are dislikes and likes; on 1 to 5 stars the papers take 4. On all other
    scales nothing is assumed: the error proposes the upper half.
    """
    kinds = np.unique(value)
    if np.isin(kinds, (0.0, 1.0)).all():
        return 1.0, "liked: every value from 1 up (assumed)"
    if np.isin(kinds, (-1.0, 0.0, 1.0)).all():
        return 1.0, "liked: 1, and not -1 or 0 (assumed)"
    low, high = float(kinds[0]), float(kinds[-1])
    if low >= 0.5 and high == 5:
        return 4.0, "liked: ratings from 4 up (assumed from the 1-5 scale; set it with liked=…)"
    proposal = upper_half(kinds)
    zero = ""
    if low == 0 and high > 1:
        zero = "; if 0 means that there is no rating, remove these rows first"
    raise SettingError(
        f"what counts as liked? Ratings are {described(value)}; give the smallest liked rating "
        "with ",
        Spelling(f"liked={proposal:g}", f"--liked {proposal:g}"),
        " (the upper half of this scale), or another; if they count events and every one is a "
        "like, state ",
        Spelling("feedback='implicit'", "--feedback implicit"),
        zero,
    )


def upper_half(kinds: F64) -> float:
    """Return the smallest of some values above the middle of their range.

    Examples
    --------
    >>> import numpy as np
    >>> from unskew.data.scales import upper_half
    >>> upper_half(np.array([1.0, 2, 3, 4])), upper_half(np.arange(-10, 10.5))
    (3.0, 1.0)
    """
    middle = (float(kinds.min()) + float(kinds.max())) / 2
    above = kinds[kinds > middle]
    return float(above.min()) if above.size else float(kinds.max())


def described(value: F64) -> str:
    """Return the values of ratings with their numbers, or their range where they are many.

    Examples
    --------
    >>> import numpy as np
    >>> from unskew.data.scales import described
    >>> described(np.array([1.0, 1, 2]))
    '1 (2 rows) and 2 (1 row)'
    """
    kinds, counts = np.unique(value, return_counts=True)
    if kinds.size > _MOST_VALUES:
        return f"from {kinds[0]:g} to {kinds[-1]:g}"
    shown = [
        f"{kind:g} ({count:,} row{'s' * (count > 1)})"
        for kind, count in zip(kinds.tolist(), counts.tolist(), strict=True)
    ]
    return " and ".join([", ".join(shown[:-1]), shown[-1]]) if len(shown) > 1 else shown[0]


def check_some_liked(value: F64, is_liked: F64 | np.ndarray, rule: str) -> None:
    """Refuse ratings of which none is liked: every score would be 0.

    Parameters
    ----------
    value
        The ratings.
    is_liked
        Which of them are liked.
    rule
        What is liked, in words.
    """
    if not value.size or np.any(is_liked):
        return
    kinds = np.unique(value)
    proposal = upper_half(kinds)
    raise DataError(
        f"no rating is liked: ratings are {described(value)}, and liked are those {rule}; give "
        "another threshold, such as ",
        Spelling(f"liked={proposal:g}", f"--liked {proposal:g}"),
    )
