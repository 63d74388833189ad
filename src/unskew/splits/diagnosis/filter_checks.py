"""Filters by which test rows decided what is in the data: recorded ones, and likely ones."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from unskew.arrays import I64
from unskew.data.steps import Step
from unskew.report.text import counted
from unskew.splits.diagnosis.check import Reading, listed, percent, rule
from unskew.splits.diagnosis.parts import Parts
from unskew.splits.diagnosis.thresholds import CUT_OFF_SURPRISE, LEAK_SHARE

LOOKS_BACK = ("drop-repeats",)
"""Filters that count other rows, but earlier ones only."""


@rule(
    "filters",
    "Filters that counted test rows",
    threshold=(
        "red if a recorded filter whose counts include test rows removed "
        f"{percent(LEAK_SHARE)} of the rows, yellow if it removed fewer"
    ),
    remedy="Split first, then filter users and items by their training rows alone.",
)
def filters(parts: Parts) -> Reading:
    """Look for filters such as a k-core that were applied before the split."""
    steps = _before_split(parts)
    counts = {"recorded_steps": len(_all_steps(parts)), "counted_test_rows": len(steps)}
    if not steps:
        done = counted(counts["recorded_steps"], "step is", "steps are")
        return Reading(
            "ok", 0.0, f"No recorded filter counted test rows ({done} recorded).", counts
        )
    removed = [1.0 - step.after.rows / max(step.before.rows, 1) for step in steps]
    share = max(removed)
    names = listed([f"{step.name}({_settings(step)})" for step in steps])
    sentence = (
        f"{names} counted test rows too and removed {percent(share)} of all rows: who stays in "
        "training depends on what happens in the test."
    )
    if not share:
        return Reading("ok", 0.0, f"{names} counted test rows too, but removed none.", counts)
    return Reading("leak" if share >= LEAK_SHARE else "look", share, sentence, counts)


def _before_split(parts: Parts) -> list[Step]:
    """Return the filters that count rows and were applied to training and test together."""
    of_test = {str(step) for step in parts.test.steps}
    return [
        step
        for step in parts.train.steps
        if step.counts_rows and step.name not in LOOKS_BACK and str(step) in of_test
    ]


def _all_steps(parts: Parts) -> set[str]:
    return {str(step) for part in (parts.train, parts.test) for step in part.steps}


def _settings(step: Step) -> str:
    given = {key: value for key, value in step.settings.items() if value is not None}
    return ", ".join(f"{key}={value}" for key, value in given.items())


@rule(
    "cut-off",
    "Counts that look cut off",
    unit="number",
    threshold=(
        "yellow if nobody has fewer rows than k over all parts, some have fewer in training, and "
        f"chance would leave nobody below k once in {np.exp(CUT_OFF_SURPRISE):,.0f} times or less"
    ),
    remedy="Find out whether the data were filtered by training rows alone or by all.",
)
def cut_off(parts: Parts) -> Reading:
    """Look whether users or items with few rows, test rows included, seem to be removed."""
    counts: dict[str, int | float | str | None] = {}
    texts, least, total = [], 0, 0.0
    for name, trained, everything in _all_counts(parts):
        k, expected = truncation(everything)
        below = int(np.count_nonzero((trained > 0) & (trained < k)))
        surprise = max(expected, survival(trained, everything, k)) if below else 0.0
        counts |= {f"smallest_{name}_count": k, f"{name}_surprise": surprise}
        total += surprise
        if surprise >= 1.0:
            least = max(least, k)
            texts.append(
                f"no {name} has fewer than {k:,} rows over all parts, and {below:,} have fewer in "
                "training"
            )
    if total < CUT_OFF_SURPRISE:
        return Reading("ok", 0.0, "Numbers of rows do not look cut off at a least number.", counts)
    sentence = f"{listed(texts)}: test rows may have decided who stays."
    return Reading("look", float(least), sentence[0].upper() + sentence[1:], counts)


def _all_counts(parts: Parts) -> Iterator[tuple[str, I64, I64]]:
    """Yield the training rows and all rows of users, and of items; all rows of a given log."""
    train, log = parts.train, parts.log
    for name, ids, (trained, tested), log_ids in (
        ("user", train.users, parts.user_counts, log.users),
        ("item", train.items, parts.item_counts, log.items),
    ):
        everything = trained + tested
        if log.is_given and ids.equals(log_ids):
            everything = log.user_counts if name == "user" else log.item_counts
        yield name, trained, everything


def truncation(counts: I64) -> tuple[int, float]:
    """Return the smallest count above 0, and how many below it a smooth distribution would have.

    Counts from the smallest one up are put into two groups of neighbouring numbers; a straight line
    through the logarithms of their sizes goes on to the group below. Where the second group is more
    than twice the first, the distribution itself falls steeply there, and nothing is expected.
    """
    present = counts[counts > 0]
    if not present.size:
        return 0, 0.0
    k = int(present.min())
    if k < 2:
        return k, 0.0
    width = max(1, k // 4)
    near = int(np.count_nonzero(present < k + width))
    next_group = int(np.count_nonzero((present >= k + width) & (present < k + 2 * width)))
    if near < 0.5 * next_group:
        return k, 0.0
    return k, near * near / max(next_group, near, 1)


def survival(trained: I64, everything: I64, k: int) -> float:
    """Return how surprising it is that all with fewer than k training rows go on to k.

    The chance to have any test row at all is taken from those with k to 2k training rows, who are
    more active. The result is the negative logarithm of the chance that all others go on too.
    """
    below = int(np.count_nonzero((trained > 0) & (trained < k)))
    peers = (trained >= k) & (trained < 2 * k)
    on = int(np.count_nonzero(peers & (everything > trained)))
    chance = (on + 1) / (int(np.count_nonzero(peers)) + 2)
    return -below * float(np.log(chance)) if k >= 2 else 0.0
