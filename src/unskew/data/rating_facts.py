"""What notebooks show of ratings and data sets: facts for a card."""

from __future__ import annotations

from typing import Any

import numpy as np

Facts = list[tuple[str, object]]
"""Names and values."""


def rating_facts(ratings: Any) -> Facts:
    """Return what people ask of ratings first.

    Examples
    --------
    >>> import unskew as us
    >>> from unskew.data.rating_facts import rating_facts
    >>> few = us.read_ratings({"user": [1, 1, 2], "item": [7, 8, 7], "rating": [5, 1, 4]})
    >>> rating_facts(few)[3:]
    [('density', '75 %'), ('values', '1 to 5')]
    """
    facts: Facts = [
        ("ratings", len(ratings)),
        ("users", len(ratings.users)),
        ("items", len(ratings.items)),
    ]
    if len(ratings):
        pairs = len(ratings.users) * len(ratings.items)
        facts.append(("density", f"{100 * len(ratings) / pairs:.3g} %"))
        low, high = float(ratings.value.min()), float(ratings.value.max())
        values = f"{low:g} to {high:g}"
        if ratings.implicit:
            values = "none: every rating counts 1" if low == high == 1 else f"counts, {values}"
        facts.append(("values", values))
        if ratings.time is not None:
            bounds = (ratings.time.min(), ratings.time.max())
            days = [str(np.datetime64(int(end), "us").astype("datetime64[D]")) for end in bounds]
            facts.append(("time", " to ".join(days)))
    if ratings.tags:
        facts.append(("tags", ", ".join(ratings.tags)))
    facts += [(f"step {number + 1}", str(step)) for number, step in enumerate(ratings.steps)]
    return facts
