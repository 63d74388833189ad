"""What is looked at in the data first, and the choices that can matter on them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from unskew.conventions.convention import AXES, OF_MEANS
from unskew.conventions.laying import Laid, count_ties
from unskew.conventions.values import first_alike
from unskew.explaining.asked import Target
from unskew.explaining.candidates import CUTOFFS


@dataclass(frozen=True)
class Finding:
    """A property of the data that changes numbers under some conventions."""

    what: str
    count: int
    """Over all systems whose values are asked for."""
    axis: str
    """The choice that is tried because of it."""


def look_at(laid: Laid, targets: Sequence[Target]) -> list[Finding]:
    """Count what is odd in lists and judgments."""
    systems = dict.fromkeys(target.system for target in targets)
    runs = [laid.systems[name].given for name in systems]
    tested = np.bincount(laid.judgments.user, minlength=len(laid.users)) > 0
    liked = np.bincount(laid.judgments.user[laid.is_relevant("liked")], minlength=len(laid.users))
    without_list = without_test = 0
    for name, run in zip(systems, runs, strict=True):
        listed = np.zeros(len(laid.users), np.bool_)
        listed[laid.numbering.runs[name][0][run.depth > 0]] = True
        without_list += int((tested & ~listed).sum())
        without_test += int((listed & ~tested).sum())
    value = laid.judgments.value
    return [
        Finding("items that a list has twice", sum(run.repeated for run in runs), "duplicates"),
        Finding("training items in lists", sum(map(laid.count_training, systems)), "training"),
        Finding("items outside the catalogue", sum(map(laid.count_unknown, systems)), "catalogue"),
        Finding("places with the score of the place above", sum(map(count_ties, runs)), "ties"),
        Finding("users with judgments but no list", without_list, "users"),
        Finding("lists of users without judgments", without_test, "users"),
        Finding("users with judgments but no liked item",
                int((tested & (liked == 0)).sum()), "users"),
        Finding("ratings that are not whole", int((value != np.trunc(value)).sum()), "relevant"),
    ]  # fmt: skip


def usable_options(laid: Laid, targets: Sequence[Target]) -> dict[str, list[str]]:
    """Return the options of every choice that can change a number on these data."""
    counts = {one.axis: 0 for one in look_at(laid, targets)}
    for one in look_at(laid, targets):
        counts[one.axis] += one.count
    options = {name: list(axis.options) for name, axis in AXES.items()}
    for axis in ("duplicates", "training", "catalogue"):
        if not counts[axis]:
            options[axis] = []
    options["ties"] = _ties(laid, targets) if counts["ties"] else []
    options["relevant"] = list(dict.fromkeys(first_alike(laid.relevance_masks).values()))
    if not any(target.quantity.metric in OF_MEANS for target in targets):
        options["average"].remove("of-means")
    whole = bool((laid.judgments.value == np.trunc(laid.judgments.value)).all())
    if whole:
        options["gain"] = [name for name in options["gain"] if not name.startswith("integer")]
    if any(target.quantity.k is not None for target in targets):
        return {"cutoff": list(CUTOFFS), **options}
    return {**options, "cut": []}


def _ties(laid: Laid, targets: Sequence[Target]) -> list[str]:
    """Return the rules about equal scores that can be told apart in some system."""
    systems = dict.fromkeys(target.system for target in targets)
    kept = {name for system in systems for name in first_alike(laid.orders(system)).values()}
    kept |= {"expected", "together"}
    return [name for name in AXES["ties"].options if name in kept]


def in_sentences(findings: Sequence[Finding]) -> list[str]:
    """Say what was counted; nothing of what does not occur."""
    some = [f"{one.what} ({one.count:,})" for one in findings if one.count]
    none = [one.what for one in findings if not one.count]
    lines = [f"in the data: {'; '.join(some)}"] if some else []
    if none:
        lines.append(f"looked for and not present: {'; '.join(none)}")
    return lines
