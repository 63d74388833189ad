"""Statements about what was done and counted: nothing that could be wrong in a world."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from unskew.auditing.statements.evidence import Evidence
from unskew.auditing.statements.statement import Kind, Measured, Subjects, names
from unskew.report.text import counted

WORTH_SAYING = 0.05
"""From this share of cold users on, the report speaks of them."""


def _where(condition: Callable[[Evidence], bool]) -> Callable[[Evidence], Iterator[Subjects]]:
    """Return what says something once, of no system, where a condition holds."""
    return lambda evidence: iter([()] if condition(evidence) else [])


def _of_systems(
    systems: Callable[[Evidence], Subjects],
) -> Callable[[Evidence], Iterator[Subjects]]:
    """Return what says something once, of some systems, where there are any."""
    return lambda evidence: filter(None, [systems(evidence)])


def _left_out(reason: str) -> Callable[[Evidence], Iterator[Subjects]]:
    """Return what speaks of each design that is left out for a reason."""
    return lambda evidence: (
        (name,) for name, design in evidence.core.left_out.items() if design.reason == reason
    )


def _measure_target(evidence: Evidence, subjects: Subjects) -> Measured:
    splits = counted(len(evidence.core.lists), "random split")
    return Measured(words={"splits": splits}, case="given" if evidence.is_given else "text")


def _sample(evidence: Evidence) -> int | None:
    """Return how many users are judged, where a sample of them is."""
    return evidence.core.lists[0].judged if evidence.core.lists else None


def _measure_sampled(evidence: Evidence, subjects: Subjects) -> Measured:
    users = evidence.core.lists[0].users
    return Measured(words={"sample": f"{_sample(evidence):,}", "users": f"{users:,}"})


def _tuned(evidence: Evidence) -> Subjects:
    return tuple(evidence.core.tuned[0]) if any(evidence.core.tuned) else ()


def _measure_tuned(evidence: Evidence, subjects: Subjects) -> Measured:
    tried = max(tuned.tried for of_split in evidence.core.tuned for tuned in of_split.values())
    return Measured(words={"tried": tried, "systems": names(subjects, 8)})


def _at_edge(evidence: Evidence) -> Subjects:
    """Return the systems whose best settings lie on the edge of what was tried, in most splits."""
    tuned = evidence.core.tuned
    counts = {
        name: sum(bool(of_split[name].edges) for of_split in tuned if name in of_split)
        for name in (tuned[0] if tuned else {})
    }
    return tuple(name for name, count in counts.items() if 2 * count > len(tuned))


def _share_cold(evidence: Evidence, design: str) -> tuple[int, int]:
    """Return the cold judged users of a design and all its judged users, over splits."""
    row = evidence.core.cold_table.filter(design=design).row(0, named=True)
    return row["cold"], row["users"]


def _is_cold(evidence: Evidence, subjects: Subjects) -> bool:
    cold, total = _share_cold(evidence, subjects[0])
    return total > 0 and cold / total >= WORTH_SAYING


def _measure_cold(evidence: Evidence, subjects: Subjects) -> Measured:
    design = subjects[0]
    cold, total = _share_cold(evidence, design)
    is_one_split = len(evidence.core.warm[design]) == 1
    counts = f"{cold:,} of {total:,}" if is_one_split else f"{cold / total:.0%} of the"
    return Measured(value=cold / total, words={"design": design, "counts": counts})


def _measure_left_out(evidence: Evidence, subjects: Subjects) -> Measured:
    design = evidence.core.left_out[subjects[0]]
    words = {"design": subjects[0], "same_as": design.same_as, "why": design.why}
    return Measured(words=words)


PROCEDURE_KINDS = (
    Kind(
        name="liking-target",
        subjects=_where(lambda evidence: evidence.liked is not None),
    ),
    Kind(name="target", subjects=_where(lambda evidence: True), measure=_measure_target),
    Kind(
        name="sampled",
        subjects=_where(lambda evidence: _sample(evidence) is not None),
        measure=_measure_sampled,
    ),
    Kind(name="tuned", subjects=_of_systems(_tuned), measure=_measure_tuned),
    Kind(
        name="tuned-edge",
        subjects=_of_systems(_at_edge),
        measure=lambda evidence, systems: Measured(words={"systems": names(systems)}),
    ),
    Kind(
        name="untuned",
        subjects=_where(lambda evidence: not any(evidence.core.tuned) and not evidence.is_given),
    ),
    Kind(name="implicit", subjects=_where(lambda evidence: evidence.core.implicit)),
    Kind(
        name="cold",
        subjects=lambda evidence: ((design,) for design in evidence.core.designs),
        holds=_is_cold,
        measure=_measure_cold,
        is_of_designs=True,
    ),
    Kind(
        name="same-design",
        subjects=_left_out("identical"),
        measure=_measure_left_out,
        is_of_designs=True,
    ),
    Kind(
        name="degenerate-design",
        subjects=_left_out("degenerate"),
        measure=_measure_left_out,
        is_of_designs=True,
    ),
    Kind(
        name="references",
        subjects=_of_systems(lambda evidence: evidence.references),
        measure=lambda evidence, systems: Measured(words={"systems": names(systems, 8)}),
    ),
)
"""In the order in which they are said."""
