"""Statements about scores: who leads, under which designs, and what is not settled."""

from __future__ import annotations

from collections.abc import Iterator

from unskew.auditing.statements.evidence import Evidence
from unskew.auditing.statements.statement import (
    Kind,
    KnownTruth,
    Statement,
    Subjects,
    about,
    decimals,
    names,
    number,
    phrase,
    with_interval,
)
from unskew.stats.compare.contrasts import Contrast

UNTUNED = "With untuned systems"


def shown_lead(contrast: Contrast) -> str:
    """Return a difference with the interval that holds together with all others."""
    return with_interval(contrast.difference, *interval_of(contrast))


def interval_of(contrast: Contrast) -> tuple[float, float]:
    """Return the interval that holds together with all others."""
    return (contrast.low, contrast.high)


def opening(evidence: Evidence, text: str) -> str:
    """Say in a first sentence that systems were not tuned, where that is so."""
    if any(evidence.core.tuned) or evidence.is_given:
        return text
    return f"{UNTUNED}: {text}"


# Who is ahead of whom


def _word_ahead(evidence: Evidence, subjects: Subjects) -> Statement:
    a, b = subjects
    contrast = evidence.contrast(a, b)
    text = f"{a} is ahead of {b} {phrase(evidence.common)}: {shown_lead(contrast)}."
    return Statement(
        kind="ahead",
        subjects=subjects,
        text=text,
        role="pair",
        value=contrast.difference,
        interval=interval_of(contrast),
        designs=(evidence.common,),
    )


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
    leader = evidence.leader
    return any(
        evidence.ahead(b, leader, design)
        for design in evidence.designs
        for b in evidence.order
        if b != leader
    )


def _leads_everywhere(evidence: Evidence, subjects: Subjects) -> bool:
    return _designs_led(evidence) == evidence.designs


def _leads_here(evidence: Evidence, subjects: Subjects) -> bool:
    led = _designs_led(evidence)
    return evidence.common in led and led != evidence.designs and not _contradicted(evidence)


def _others_phrase(count: int) -> str:
    return (
        "the other system"
        if count == 1
        else f"{'both' if count == 2 else f'all {count}'} other systems"
    )


def _word_leads(evidence: Evidence, subjects: Subjects) -> Statement:
    leader, others = evidence.leader, len(evidence.order) - 1
    nearest = evidence.nearest(leader)
    contrast = evidence.contrast(leader, nearest)
    led = _designs_led(evidence)
    everywhere, is_multiple = led == evidence.designs, len(evidence.designs) > 1
    if everywhere and is_multiple:
        where = f"under {'both' if len(led) == 2 else f'all {len(led)}'} distinct designs"
    else:
        where = phrase(evidence.common)
    gap = shown_lead(contrast)
    text = f"{leader} leads {_others_phrase(others)} {where}"
    text += f": {gap}" if others == 1 else f"; nearest {nearest}, {gap}"
    if everywhere and is_multiple:
        text += f" {phrase(evidence.common)}"
    text += f" ({evidence.metric})."
    if not everywhere:
        open_count = len(evidence.designs) - len(led)
        verb = "leaves" if open_count == 1 else "leave"
        text += f" {open_count} of {len(evidence.designs)} designs {verb} the order open; "
        text += "none reverses it."
    return Statement(
        kind="leads" if everywhere else "leads-here",
        subjects=(leader, *(system for system in evidence.order if system != leader)),
        text=opening(evidence, text),
        role="finding",
        value=contrast.difference,
        interval=interval_of(contrast),
        designs=led,
    )


# Who leads depends on the design


def _turns(evidence: Evidence, a: str, b: str) -> str | None:
    """Return the design under which b is ahead of a most clearly; None if there is none."""
    designs = [design for design in evidence.designs if evidence.ahead(b, a, design)]
    if not designs:
        return None
    return max(designs, key=lambda design: _clearness(evidence.contrast(b, a, design)))


def _clearness(contrast: Contrast) -> float:
    return contrast.difference / contrast.se if contrast.se else 0.0


def _stands(evidence: Evidence, a: str, b: str) -> str | None:
    """Return the design under which a is ahead of b: the common one if it is one of them."""
    return next((design for design in evidence.designs if evidence.ahead(a, b, design)), None)


def _ordered_pairs(evidence: Evidence) -> Iterator[Subjects]:
    """Yield each pair once: the one that is ahead under the first design that tells is first."""
    for index, a in enumerate(evidence.order):
        for b in evidence.order[index + 1 :]:
            yield (a, b)


def _depends(evidence: Evidence, subjects: Subjects) -> bool:
    a, b = subjects
    return _stands(evidence, a, b) is not None and _turns(evidence, a, b) is not None


def _word_depends(evidence: Evidence, subjects: Subjects) -> Statement:
    a, b = subjects
    here, there = _stands(evidence, a, b), _turns(evidence, a, b)
    assert here is not None
    assert there is not None
    first, second = evidence.contrast(a, b, here), evidence.contrast(b, a, there)
    text = (
        f"No overall winner: {a} leads {b} {phrase(here)} ({shown_lead(first)}), {b} leads {a} "
        f"{phrase(there)} ({shown_lead(second)}). The data cannot tell which design is closer to "
        "what users like."
    )
    return Statement(
        kind="depends",
        subjects=subjects,
        text=opening(evidence, text),
        role="finding",
        value=first.difference,
        interval=interval_of(first),
        designs=(here, there),
    )


def _is_turned(statement: Statement, truth: KnownTruth) -> bool:
    (a, b), (here, there) = statement.subjects, statement.designs
    return truth.lead(here, a, b) > 0 and truth.lead(there, b, a) > 0


# Not settled


def _leader_and_second(evidence: Evidence) -> Iterator[Subjects]:
    """Yield the leader and the nearest system that it is not ahead of; else the nearest one."""
    leader, *others = evidence.order
    others.sort(key=lambda b: evidence.contrast(leader, b).difference)
    if others:
        yield (leader, next((b for b in others if not evidence.ahead(leader, b)), others[0]))


def _undecided(evidence: Evidence, subjects: Subjects) -> bool:
    return not evidence.ahead(*subjects)


def _word_undecided(evidence: Evidence, subjects: Subjects) -> Statement:
    a, b = subjects
    contrast = evidence.contrast(a, b)
    digits = decimals(contrast.detectable)
    text = f"Undecided: {a} − {b} = {shown_lead(contrast)} {phrase(evidence.common)} "
    text += f"({evidence.metric})."
    if contrast.detectable:
        text += (
            f" This test detects differences of {number(contrast.detectable, digits)} or more "
            "(80 % power); smaller ones may exist."
        )
    return Statement(
        kind="undecided",
        subjects=subjects,
        text=opening(evidence, text),
        role="finding",
        value=contrast.difference,
        interval=interval_of(contrast),
        designs=(evidence.common,),
    )


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


def _word_ahead_of_some(evidence: Evidence, subjects: Subjects) -> Statement:
    leader, *others = subjects
    nearest = min(others, key=lambda system: evidence.contrast(leader, system).difference)
    contrast = evidence.contrast(leader, nearest)
    text = f"{leader} is ahead of {names(others)} {phrase(evidence.common)}"
    text += f"; nearest {nearest}, {shown_lead(contrast)}." if len(others) > 1 else ""
    return Statement(
        kind="ahead-of-some",
        subjects=subjects,
        text=text if len(others) > 1 else f"{text}: {shown_lead(contrast)}.",
        role="reason",
        value=contrast.difference,
        interval=interval_of(contrast),
        designs=(evidence.common,),
    )


# Undecided under the common design, ahead under another


def _is_ahead_elsewhere(evidence: Evidence, subjects: Subjects) -> bool:
    a, b = subjects
    return (
        not evidence.ahead(a, b)
        and _turns(evidence, b, a) is not None
        and _turns(evidence, a, b) is None
    )


def _word_ahead_elsewhere(evidence: Evidence, subjects: Subjects) -> Statement:
    a, b = subjects
    there = _turns(evidence, b, a)
    assert there is not None
    contrast = evidence.contrast(a, b, there)
    text = (
        f"{a} is ahead of {b} {phrase(there)}: {shown_lead(contrast)}. The order is open "
        f"{phrase(evidence.common)} ({shown_lead(evidence.contrast(a, b))}), and no design "
        "reverses it. The data cannot tell which design is closer to what users like."
    )
    return Statement(
        kind="ahead-elsewhere",
        subjects=subjects,
        text=text,
        role="reason",
        value=contrast.difference,
        interval=interval_of(contrast),
        designs=(there,),
    )


# Equal by a stated margin


def _equal(evidence: Evidence, subjects: Subjects) -> bool:
    if evidence.margin is None:
        return False
    a, b = subjects
    return evidence.contrasts.equivalent(a, b, evidence.margin, design=evidence.common)


def _word_equal(evidence: Evidence, subjects: Subjects) -> Statement:
    a, b = subjects
    contrast = evidence.contrast(a, b)
    margin = evidence.margin or 0.0
    return Statement(
        kind="equal",
        subjects=subjects,
        text=(
            f"{a} and {b} are equal within the stated margin of {number(margin)} "
            f"{phrase(evidence.common)}: {shown_lead(contrast)}."
        ),
        role="pair",
        value=margin,
        interval=interval_of(contrast),
        designs=(evidence.common,),
    )


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


def _word_levelled(evidence: Evidence, subjects: Subjects, kind: str, ending: str) -> Statement:
    a, b = subjects
    design = evidence.levelled_design or ""
    contrast = evidence.contrast(a, b, design)
    return Statement(
        kind=kind,
        subjects=subjects,
        text=f"Of the lead of {a} over {b}, {shown_lead(contrast)} {ending} {phrase(design)}.",
        role="pair",
        value=contrast.difference,
        interval=interval_of(contrast),
        designs=(design,),
    )


# What to do


def _word_more_users(evidence: Evidence, subjects: Subjects) -> Statement:
    contrast = evidence.contrast(*subjects)
    detectable = contrast.detectable
    half = number(detectable / 2, decimals(detectable / 2))
    users = about(4 * contrast.users).removeprefix("about ")
    return Statement(
        kind="more-users",
        subjects=subjects,
        text=f"To detect differences of {half}, judge four times the users: about {users}.",
        role="next",
        value=4.0 * contrast.users,
    )


def _word_report_both(evidence: Evidence, subjects: Subjects) -> Statement:
    a, b = subjects
    return Statement(
        kind="report-both",
        subjects=subjects,
        text=f"Report both designs, and do not call {a} or {b} better without naming one.",
        role="next",
    )


def _all_pairs(evidence: Evidence) -> Iterator[Subjects]:
    yield from evidence.pairs


SCORE_KINDS = (
    Kind(
        name="ahead",
        rule="the lower end of the difference, corrected for all designs and pairs, is above 0",
        claims="retrained on new data, a is expected to score above b under this design",
        subjects=_all_pairs,
        holds=lambda evidence, subjects: evidence.ahead(*subjects),
        word=_word_ahead,
        is_true=_leads_where_stated,
    ),
    Kind(
        name="leads",
        rule="the system is ahead of every other one under every distinct design",
        claims="it is expected to score above all others under all these designs",
        subjects=_leader_and_others,
        holds=_leads_everywhere,
        word=_word_leads,
        is_true=_leads_where_stated,
    ),
    Kind(
        name="leads-here",
        rule="ahead of every other one under the common design; no design has another ahead of it",
        claims="it is expected to score above all others under the designs that show it",
        subjects=_leader_and_others,
        holds=_leads_here,
        word=_word_leads,
        is_true=_leads_where_stated,
    ),
    Kind(
        name="depends",
        rule="a is ahead of b under one design, b ahead of a under another, corrected for all",
        claims="the expected order of the two is reversed between these designs",
        subjects=_ordered_pairs,
        holds=_depends,
        word=_word_depends,
        is_true=_is_turned,
    ),
    Kind(
        name="undecided",
        rule="the corrected interval of the best system against the nearest one contains 0",
        claims="the expected difference lies in the interval",
        subjects=_leader_and_second,
        holds=_undecided,
        word=_word_undecided,
        is_true=_within_interval,
    ),
    Kind(
        name="ahead-of-some",
        rule="the best system is ahead of some others under the common design, and not of all",
        claims="it is expected to score above each of these",
        subjects=_leader_and_rest,
        holds=_is_ahead_of_some,
        word=_word_ahead_of_some,
        is_true=_leads_where_stated,
    ),
    Kind(
        name="ahead-elsewhere",
        rule=(
            "neither is ahead under the common design; a is ahead of b under another, corrected "
            "for all designs and pairs, and b ahead of a under none"
        ),
        claims="a is expected to score above b under that other design",
        subjects=_all_pairs,
        holds=_is_ahead_elsewhere,
        word=_word_ahead_elsewhere,
        is_true=_leads_where_stated,
    ),
    Kind(
        name="equal",
        rule="a margin is stated, and both one-sided tests place the difference within it",
        claims="the expected difference is smaller than the margin",
        subjects=_ordered_pairs,
        holds=_equal,
        word=_word_equal,
        is_true=_is_equal,
    ),
    Kind(
        name="levelled",
        rule="a is ahead of b under the common design and where popularity is levelled",
        claims="a is expected to score above b where popularity is levelled",
        subjects=_all_pairs,
        holds=_levelled,
        word=lambda evidence, subjects: _word_levelled(evidence, subjects, "levelled", "remains"),
        is_true=_leads_where_stated,
    ),
    Kind(
        name="levelled-open",
        rule="a is ahead of b under the common design; where popularity is levelled, neither is",
        claims="the expected difference where popularity is levelled lies in the interval",
        subjects=_all_pairs,
        holds=_gone,
        word=lambda evidence, subjects: _word_levelled(
            evidence, subjects, "levelled-open", "is left, which shows no lead,"
        ),
        is_true=_within_interval,
    ),
    Kind(
        name="more-users",
        rule="as undecided",
        claims="four times the users halve the smallest difference that is detected: arithmetic",
        subjects=_leader_and_second,
        holds=lambda evidence, subjects: (
            _undecided(evidence, subjects) and bool(evidence.contrast(*subjects).detectable)
        ),
        word=_word_more_users,
    ),
    Kind(
        name="report-both",
        rule="as depends",
        claims="advice that follows from depends",
        subjects=_ordered_pairs,
        holds=_depends,
        word=_word_report_both,
    ),
)
"""In the order in which they are said."""
