"""Rows that are in both parts. Copies leak; repeats at another time are a fact."""

from __future__ import annotations

import numpy as np

from unskew.arrays import U8, Mask
from unskew.data.ratings import Ratings
from unskew.report.text import counted
from unskew.splits.diagnosis.check import Reading, by_share, percent, rule, shown
from unskew.splits.diagnosis.parts import DAY, Parts, times_of
from unskew.splits.diagnosis.thresholds import LEAK_SHARE

PAIR, VALUE, TIME = 1, 2, 4
"""Bits of a match: the pair, its value, its time."""


def matches(ratings: Ratings, other: Ratings) -> U8:
    """Mark rows whose pair is in `other` too, with bits for an equal value and an equal time."""
    from unskew.splits.diagnosis import kernels

    return kernels.matched(
        ratings.start,
        ratings.item,
        times_of(ratings),
        ratings.value,
        other.start,
        other.item,
        times_of(other),
        other.value,
    )


def _of(parts: Parts) -> U8:
    """Match the test part with training, once."""
    known = vars(parts).get("_matches")
    if known is None:
        known = vars(parts)["_matches"] = matches(parts.test, parts.train)
    result: U8 = known
    return result


@rule(
    "copies",
    "Rows in both parts",
    threshold=(
        f"red from {percent(LEAK_SHARE)} of test rows with the same user, item, time and value in "
        "training; yellow above 0, and where times do not tell a copy from a repeat"
    ),
    remedy="Remove them from training or test (splits.Given(overlap=…), --overlap to-training).",
)
def copies(parts: Parts) -> Reading:
    """Measure which share of test rows is in training too."""
    mark, rows = _of(parts), len(parts.test)
    pairs = int(np.count_nonzero(mark))
    same = int(np.count_nonzero(mark & VALUE > 0))
    timed = parts.train.time is not None and parts.test.time is not None
    exact = mark == PAIR | VALUE | TIME if timed else mark == PAIR | VALUE
    number = int(np.count_nonzero(exact))
    counts = {"pairs_in_both": pairs, "same_value": same, "copies": number}
    if not number:
        return Reading("ok", 0.0, "No test row is in training too.", counts)
    share = number / rows
    if timed and _on_the_day_of_the_cut(parts, exact):
        sentence = (
            f"{counted(number, 'test row has', 'test rows have')} the same user, item, value and "
            "date in training, all on the day of the cut: repeats within that day, or copies."
        )
        return Reading("look", share, sentence, counts)
    if not timed and parts.test.implicit:
        sentence = (
            f"{percent(share)} of the test pairs are in training too; without time stamps a copy "
            "cannot be told from a repeat."
        )
        return Reading("look", share, sentence, counts)
    what = "time and value" if timed else "value"
    sentence = (
        f"{percent(share)} of the test rows ({number:,}) are in training too, with the same "
        f"{what}: the answer is known."
    )
    return Reading(by_share(share), share, sentence, counts)


def _on_the_day_of_the_cut(parts: Parts, exact: Mask) -> bool:
    """Tell whether stamps are dates and all copies are on the one day that both parts share."""
    if parts.log.resolution < DAY or parts.train.time is None or parts.test.time is None:
        return False
    day = parts.test.time.min()
    return bool(day == parts.train.time.max() and (parts.test.time[exact] == day).all())


@rule("repeats", "Repeated pairs")
def repeats(parts: Parts) -> Reading:
    """Measure which share of test rows repeats a pair of training."""
    mark = _of(parts)
    timed = parts.train.time is not None and parts.test.time is not None
    exact = mark == PAIR | VALUE | TIME if timed else mark == PAIR | VALUE
    number = int(np.count_nonzero((mark > 0) & ~exact))
    share = number / len(parts.test)
    sentence = f"Training has {percent(share)} of the test pairs too, at another time."
    if not timed:
        sentence = f"Training has {percent(share)} of the test pairs too, with another value."
    return shown(share, sentence, {"rows": number})
