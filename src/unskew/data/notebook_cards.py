"""What notebooks show of ratings and data sets: a card of facts."""

from __future__ import annotations

from typing import Any

import numpy as np

from unskew.report.notebook_view import card

Facts = list[tuple[str, object]]
"""Names and values."""


def of_ratings(ratings: Any) -> str:
    """Return the card of ratings."""
    return card("Ratings", "", rating_facts(ratings), ratings.notes, "to_polars() gives the rows.")


def of_events(events: Any) -> str:
    """Return the card of an event log."""
    facts = [("events", len(events)), *rating_facts(events)[1:]]
    return card("Events", "", facts, events.notes, "to_ratings() makes one rating of each pair.")


def of_dataset(data: Any) -> str:
    """Return the card of a data set."""
    facts = [
        *rating_facts(data.ratings),
        ("true part", None if data.true_part is None else str(data.true_part)),
        ("scale", None if data.scale is None else f"{data.scale[0]:g} to {data.scale[1]:g}"),
        ("liked", None if data.liked is None else f"{data.liked:g} and more"),
        ("features", ", ".join(data.features)),
    ]
    notes = tuple(dict.fromkeys((*data.ratings.notes, *data.notes)))
    return card("Dataset", data.name, facts, notes)


def rating_facts(ratings: Any) -> Facts:
    """Return what people ask of ratings first.

    Examples
    --------
    >>> import unskew as us
    >>> from unskew.data.notebook_cards import rating_facts
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
