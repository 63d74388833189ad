"""Statements about scores: who leads, under which designs, and what is not settled."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import combinations

from unskew.auditing.statements.evidence import Evidence
from unskew.auditing.statements.statement import (
    Kind,
    KnownTruth,
    Measured,
    Statement,
    Subjects,
    about,
    decimals,
    names,
    number,
    phrase,
    with_interval,
)
from unskew.report.columns import Row
from unskew.stats.compare.contrasts import equivalent


def shown_lead(contrast: Row) -> str:
    """Return a difference with the interval that holds together with all others."""
    return with_interval(*contrast.estimate)


def measured_lead(
    evidence: Evidence, pair: Subjects, design: str | None = None, **words: object
) -> Measured:
    """Return the difference of two systems: under a design, or under the common one."""
    a, b = pair
    value, low, high = evidence.contrast(a, b, design).estimate
    return Measured(
        value=value,
        interval=(low, high),
        designs=(evidence.common if design is None else design,),
        words=words,
    )


def _all_pairs(evidence: Evidence) -> Iterator[Subjects]:
    yield from evidence.pairs


def _leads_where_stated(statement: Statement, truth: KnownTruth) -> bool:
    """Tell whether the first subject is above all others under the designs of the statement."""
    first, *others = statement.subjects
    return all(truth.lead(design, first, b) > 0 for design in statement.designs for b in others)


# Who leads all


def _leader_and_others(evidence: Evidence) -> Iterator[Subjects]:
    yield evidence.order


def _designs_led(evidence: Evidence) -> tuple[str, ...]:
    return tuple(
        design for design in evidence.designs if evidence.ahead_of_all(evidence.leader, design)
    )


def _contradicted(evidence: Evidence) -> bool:
    leader, *others = evidence.order
    return any(evidence.ahead(b, leader, design) for design in evidence.designs for b in others)


def _leads_here(evidence: Evidence, subjects: Subjects) -> bool:
    led = _designs_led(evidence)
    return evidence.common in led and led != evidence.designs and not _contradicted(evidence)


def _measure_leads(evidence: Evidence, subjects: Subjects) -> Measured:
    leader, *others = subjects
    nearest, led, count = evidence.nearest(leader), _designs_led(evidence), len(evidence.designs)
    shown, where = shown_lead(evidence.contrast(leader, nearest)), phrase(evidence.common)
    gap = f": {shown}" if len(others) == 1 else f"; nearest {nearest}, {shown}"
    if led == evidence.designs and count > 1:
        gap = f"{gap} {where}"
        where = f"under {'both' if count == 2 else f'all {count}'} distinct designs"
    all_others = f"{'both' if len(others) == 2 else f'all {len(others)}'} other systems"
    lead = measured_lead(
        evidence,
        (leader, nearest),
        others="the other system" if len(others) == 1 else all_others,
        where=where,
        gap=gap,
        metric=evidence.metric,
        open=count - len(led),
        count=count,
        leave="leaves" if count - len(led) == 1 else "leave",
    )
    return replace(lead, designs=led)


# Who leads depends on the design


def _turns(evidence: Evidence, a: str, b: str) -> str | None:
    """Return the design under which b is ahead of a most clearly; None if there is none."""
    designs = [design for design in evidence.designs if evidence.ahead(b, a, design)]
    if not designs:
        return None
    return max(designs, key=lambda design: evidence.contrast(b, a, design).z or 0.0)


def _stands(evidence: Evidence, a: str, b: str) -> str | None:
    """Return the design under which a is ahead of b: the common one if it is one of them."""
    return next((design for design in evidence.designs if evidence.ahead(a, b, design)), None)


def _ordered_pairs(evidence: Evidence) -> Iterator[Subjects]:
    """Yield each pair once: the one with the higher mean under the common design is first."""
    yield from combinations(evidence.order, 2)


def _depends(evidence: Evidence, subjects: Subjects) -> bool:
    a, b = subjects
    return _stands(evidence, a, b) is not None and _turns(evidence, a, b) is not None


def _measure_depends(evidence: Evidence, subjects: Subjects) -> Measured:
    a, b = subjects
    here, there = _stands(evidence, a, b), _turns(evidence, a, b)
    assert here is not None
    assert there is not None
    opposite = shown_lead(evidence.contrast(b, a, there))
    lead = measured_lead(evidence, subjects, here, elsewhere=phrase(there), reversed=opposite)
    return replace(lead, designs=(here, there))


def _is_turned(statement: Statement, truth: KnownTruth) -> bool:
    (a, b), (here, there) = statement.subjects, statement.designs
    return truth.lead(here, a, b) > 0 and truth.lead(there, b, a) > 0


# Not settled


def _leader_and_second(evidence: Evidence) -> Iterator[Subjects]:
    """Yield the leader and the nearest system that it is not ahead of; else the nearest one."""
    leader, *others = evidence.order
    others.sort(key=lambda b: evidence.contrast(leader, b).estimate[0])
    if others:
        yield (leader, next((b for b in others if not evidence.ahead(leader, b)), others[0]))


def _detectable(evidence: Evidence, subjects: Subjects) -> float:
    """Return the smallest difference of two systems that these data show with 80 % power."""
    detectable: float = evidence.contrast(*subjects).facts["detectable"]
    return detectable


def _undecided(evidence: Evidence, subjects: Subjects) -> bool:
    return not evidence.ahead(*subjects)


def _measure_undecided(evidence: Evidence, subjects: Subjects) -> Measured:
    detectable = _detectable(evidence, subjects)
    text = number(detectable, decimals(detectable))
    lead = measured_lead(evidence, subjects, metric=evidence.metric, detectable=text)
    return replace(lead, case="detects" if detectable else "text")


def _within_interval(statement: Statement, truth: KnownTruth) -> bool:
    assert statement.interval is not None
    low, high = statement.interval
    return low <= truth.lead(statement.designs[0], *statement.subjects) <= high


# Whom an undecided leader is ahead of


def _behind(evidence: Evidence) -> tuple[str, ...]:
    """Return the systems that the leader is ahead of under the common design."""
    return tuple(system for system in evidence.order[1:] if evidence.ahead(evidence.leader, system))


def _leader_and_rest(evidence: Evidence) -> Iterator[Subjects]:
    yield (evidence.leader, *_behind(evidence))


def _is_ahead_of_some(evidence: Evidence, subjects: Subjects) -> bool:
    return 0 < len(_behind(evidence)) < len(evidence.order) - 1


def _measure_ahead_of_some(evidence: Evidence, subjects: Subjects) -> Measured:
    leader, *others = subjects
    nearest = min(others, key=lambda system: evidence.contrast(leader, system).estimate[0])
    lead = measured_lead(evidence, (leader, nearest), others=names(others), nearest=nearest)
    return replace(lead, case="several" if len(others) > 1 else "text")


# Undecided under the common design, ahead under another


def _is_ahead_elsewhere(evidence: Evidence, subjects: Subjects) -> bool:
    a, b = subjects
    return (
        not evidence.ahead(a, b)
        and _turns(evidence, b, a) is not None
        and _turns(evidence, a, b) is None
    )


def _measure_ahead_elsewhere(evidence: Evidence, subjects: Subjects) -> Measured:
    a, b = subjects
    there = _turns(evidence, b, a)
    assert there is not None
    shown = shown_lead(evidence.contrast(a, b))
    return measured_lead(evidence, subjects, there, common=phrase(evidence.common), open=shown)


# Equal by a stated margin


def _equal(evidence: Evidence, subjects: Subjects) -> bool:
    if evidence.margin is None:
        return False
    a, b = subjects
    return equivalent(evidence.contrasts, a, b, evidence.margin, design=evidence.common)


def _measure_equal(evidence: Evidence, subjects: Subjects) -> Measured:
    margin, shown = evidence.margin or 0.0, shown_lead(evidence.contrast(*subjects))
    lead = measured_lead(evidence, subjects, margin=number(margin), difference=shown)
    return replace(lead, value=margin)


def _is_equal(statement: Statement, truth: KnownTruth) -> bool:
    return abs(truth.lead(statement.designs[0], *statement.subjects)) < (statement.value or 0.0)


# What remains when popularity is levelled


def _levelled(evidence: Evidence, subjects: Subjects) -> bool:
    design = evidence.levelled_design
    a, b = subjects
    return design is not None and evidence.ahead(a, b) and evidence.ahead(a, b, design)


def _gone(evidence: Evidence, subjects: Subjects) -> bool:
    design = evidence.levelled_design
    if design is None or not evidence.ahead(*subjects):
        return False
    a, b = subjects
    return not evidence.ahead(a, b, design) and not evidence.ahead(b, a, design)


def _measure_levelled(evidence: Evidence, subjects: Subjects) -> Measured:
    return measured_lead(evidence, subjects, evidence.levelled_design or "")


# What to do


def _is_detectable(evidence: Evidence, subjects: Subjects) -> bool:
    return _undecided(evidence, subjects) and bool(_detectable(evidence, subjects))


def _measure_more_users(evidence: Evidence, subjects: Subjects) -> Measured:
    half, users = _detectable(evidence, subjects) / 2, 4.0 * (evidence.contrast(*subjects).n or 0)
    words = {"half": number(half, decimals(half)), "users": about(users).removeprefix("about ")}
    return Measured(value=users, words=words)


SCORE_KINDS = (
    Kind(
        name="ahead",
        subjects=_all_pairs,
        holds=lambda evidence, subjects: evidence.ahead(*subjects),
        measure=measured_lead,
        is_true=_leads_where_stated,
    ),
    Kind(
        name="leads",
        subjects=_leader_and_others,
        holds=lambda evidence, subjects: _designs_led(evidence) == evidence.designs,
        measure=_measure_leads,
        is_true=_leads_where_stated,
    ),
    Kind(
        name="leads-here",
        subjects=_leader_and_others,
        holds=_leads_here,
        measure=_measure_leads,
        is_true=_leads_where_stated,
    ),
    Kind(
        name="depends",
        subjects=_ordered_pairs,
        holds=_depends,
        measure=_measure_depends,
        is_true=_is_turned,
    ),
    Kind(
        name="undecided",
        subjects=_leader_and_second,
        holds=_undecided,
        measure=_measure_undecided,
        is_true=_within_interval,
    ),
    Kind(
        name="ahead-of-some",
        subjects=_leader_and_rest,
        holds=_is_ahead_of_some,
        measure=_measure_ahead_of_some,
        is_true=_leads_where_stated,
    ),
    Kind(
        name="ahead-elsewhere",
        subjects=_all_pairs,
        holds=_is_ahead_elsewhere,
        measure=_measure_ahead_elsewhere,
        is_true=_leads_where_stated,
    ),
    Kind(
        name="equal",
        subjects=_ordered_pairs,
        holds=_equal,
        measure=_measure_equal,
        is_true=_is_equal,
    ),
    Kind(
        name="levelled",
        subjects=_all_pairs,
        holds=_levelled,
        measure=_measure_levelled,
        is_true=_leads_where_stated,
    ),
    Kind(
        name="levelled-open",
        subjects=_all_pairs,
        holds=_gone,
        measure=_measure_levelled,
        is_true=_within_interval,
    ),
    Kind(
        name="more-users",
        subjects=_leader_and_second,
        holds=_is_detectable,
        measure=_measure_more_users,
    ),
    Kind(name="report-both", subjects=_ordered_pairs, holds=_depends),
)
"""In the order in which they are said."""
