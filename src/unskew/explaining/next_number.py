"""Which further number would tell the remaining classes apart."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

from unskew.conventions.collection import Library, LibraryMetric
from unskew.conventions.convention import COMMON, WITHOUT_CUTOFF, relevant_axes
from unskew.explaining.asked import OURS, Quantity, Target
from unskew.explaining.candidates import Candidate
from unskew.explaining.printed import Printed
from unskew.explaining.search import Class, Means, quantities_of
from unskew.explaining.wording import simplest

CUTOFFS = (1, 3, 5, 10, 20, 50, 100)
MOST = 24
"""The most classes among which a number is chosen."""


def best_question(
    means: Means,
    targets: Sequence[Target],
    classes: Sequence[Class],
    libraries: Mapping[str, Library],
    systems: Sequence[str],
) -> str:
    """Return a sentence: the number that leaves the fewest classes, and how many it tells apart."""
    several = [simplest(one) for one in classes[:MOST]]
    if len(several) < 2:
        return ""
    best: tuple[float, str, int] = (math.inf, "", 0)
    for system, quantity, printed in _questions(means, targets, systems):
        texts = [
            printed.show(_value(means, one, system, quantity, targets, libraries))
            for one in several
        ]
        counts = Counter(texts)
        remaining = sum(count**2 for count in counts.values()) / len(texts)
        if remaining < best[0] - 1e-9:
            where = f" of {system}" if len(systems) > 1 else ""
            best = (remaining, f"{quantity.label}{where}", len(counts))
    if best[2] < 2:
        return "no further metric or cutoff of these lists tells the remaining classes apart"
    return (
        f"ask for {best[1]} next: the {len(several)} classes nearest to what was printed give it "
        f"{best[2]} different values"
    )


def _questions(
    means: Means, targets: Sequence[Target], systems: Sequence[str]
) -> Iterator[tuple[str, Quantity, Printed]]:
    """Return what might be asked: near to what is known first."""
    asked = {(target.system, target.quantity.metric, target.quantity.k) for target in targets}
    first = targets[0]
    deepest = max(int(means.laid.systems[name].given.depth.max(initial=1)) for name in systems)
    families = dict.fromkeys([*(t.quantity.metric for t in targets), *COMMON])
    cutoffs = [k for k in CUTOFFS if k <= deepest]
    for system in dict.fromkeys([*(t.system for t in targets), *systems]):
        for family in families:
            for k in cutoffs if family and family not in WITHOUT_CUTOFF else []:
                if (system, family, k) not in asked:
                    yield system, Quantity(f"{family}@{k}", family, k), first.printed


def _value(
    means: Means,
    candidate: Candidate,
    system: str,
    quantity: Quantity,
    targets: Sequence[Target],
    libraries: Mapping[str, Library],
) -> float:
    """Return what a candidate gives for another metric, by the row of its library if it has one."""
    row = _row(candidate, quantity, targets, libraries)
    allowed = relevant_axes(row.metric)
    changes = tuple(change for change in candidate.changes if change[0] in (*allowed, "cutoff"))
    shifted = Candidate(type(candidate.start)(candidate.start.library, (row,)), changes)
    return means.of(system, shifted.row(0), shifted.cutoff(quantity.k))


def _row(
    candidate: Candidate,
    quantity: Quantity,
    targets: Sequence[Target],
    libraries: Mapping[str, Library],
) -> LibraryMetric:
    start = candidate.start
    for asked, row in zip(quantities_of(targets), start.rows, strict=True):
        if asked.metric == quantity.metric and row.has_cutoff:
            return row
    if start.library != OURS:
        rows = [
            row
            for row in libraries[start.library].metrics
            if row.given == start.rows[0].given and quantity.is_of(row)
        ]
        if rows:
            return min(rows, key=lambda row: row.option != start.rows[0].option)
    options = {
        name: option
        for name, option in start.rows[0].options
        if name in relevant_axes(quantity.metric) and name not in ("per", "ideal")
    }
    return LibraryMetric(
        OURS, f"{quantity.metric}@{{k}}", metric=quantity.metric, options=tuple(options.items())
    )
