"""Statements about scores: who leads, under which designs, and what is not settled."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import combinations

from unskew.auditing.statements.evidence import Evidence
from unskew.auditing.statements.setups import ASKED, phrase, question
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
    with_interval,
)
from unskew.report.columns import Row
from unskew.stats.compare.contrasts import equivalent

MOST_NAMED = 6
"""Of more systems the first ones are named and the others counted."""


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


def _all_above(statement: Statement, truth: KnownTruth) -> bool:
    """Tell whether every subject is above every other system named, where that is stated."""
    return all(
        truth.lead(design, a, b) > 0
        for design in statement.designs
        for a in statement.subjects
        for b in statement.others
    )


# The leading tier


def _leading(evidence: Evidence) -> Iterator[Subjects]:
    yield evidence.leading()


def _leads(evidence: Evidence, subjects: Subjects) -> bool:
    return len(subjects) == 1 and bool(evidence.behind())


def _ties(evidence: Evidence, subjects: Subjects) -> bool:
    return len(subjects) > 1 and bool(evidence.behind())


def _only_leader(evidence: Evidence) -> Iterator[Subjects]:
    yield (evidence.leader,)


def _behind_leader(evidence: Evidence) -> Subjects:
    leader = evidence.leader
    return tuple(b for b in evidence.order if b != leader and evidence.ahead(leader, b))


def _leads_some(evidence: Evidence, subjects: Subjects) -> bool:
    return not evidence.behind() and bool(_behind_leader(evidence))


def _measure_leading(evidence: Evidence, subjects: Subjects) -> Measured:
    leader, leading = subjects[0], evidence.leading()
    behind = evidence.behind() or _behind_leader(evidence)
    nearest = min(behind, key=lambda b: evidence.contrast(leader, b).estimate[0])
    lead = measured_lead(
        evidence,
        (leader, nearest),
        metric=evidence.metric,
        systems=names(leading, len(leading)),
        of="Of the given lists, " if evidence.references else "",
        all="both" if len(leading) == 2 else f"all {len(leading)}",
        others=names(behind, MOST_NAMED),
        near=f" nearest {nearest}," if len(behind) > 1 else "",
        range=_range_of_leads(evidence, subjects, behind),
        between=_between(evidence),
        finds=_finds(evidence, leading),
    )
    return replace(lead, others=behind)


def _range_of_leads(evidence: Evidence, leading: Subjects, behind: Subjects) -> str:
    """Say by how much the leading systems are ahead of those behind all of them."""
    leads = [evidence.contrast(a, b).estimate[0] for a in leading for b in behind]
    digits = decimals(max(leads) / 20)
    low, high = number(min(leads), digits), number(max(leads), digits)
    return f"by {low}" if low == high else f"by {low} to {high}"


def _between(evidence: Evidence) -> str:
    """Name the systems that are neither in the leading tier nor behind all of it."""
    leading, behind = evidence.leading(), evidence.behind()
    above = evidence.above
    between = [s for s in evidence.outside() if s not in behind and s not in above]
    sentences = []
    if between:
        some = "it" if len(leading) == 1 else "every one of them"
        sentences.append(f" {names(between, MOST_NAMED)}: not clearly behind {some}.")
    if above:
        verb = "scores" if len(above) == 1 else "score"
        sentences.append(f" The reference {names(above)} {verb} higher.")
    return "".join(sentences)


def _finds(evidence: Evidence, leading: Subjects) -> str:
    """Say which difference within a tier would have been found."""
    found = [_detectable(evidence, pair) for pair in combinations(leading, 2)]
    if not any(found):
        return ""
    text = number(max(found), decimals(max(found)))
    return f" A difference of {text} between them would have been found (80 % power)."


# The best system and popularity


def _best_and_popularity(evidence: Evidence) -> Iterator[Subjects]:
    popularity = evidence.popularity
    best = [system for system in evidence.candidates if system != popularity]
    if popularity is not None and best:
        yield (best[0], popularity)


def _beats_popularity(evidence: Evidence, subjects: Subjects) -> bool:
    return evidence.ahead(*subjects)


def _measure_popularity(evidence: Evidence, subjects: Subjects) -> Measured:
    best, popularity = subjects
    others = evidence.same_question(evidence.common)
    agree = [design for design in others if evidence.ahead(best, popularity, design)]
    against = [design for design in others if evidence.ahead(popularity, best, design)]
    turned = f", but behind {names([phrase(d) for d in against])}" if against else ""
    setups = "setup" if len(others) == 1 else "setups"
    also = f"; also under {len(agree)} of {len(others)} other {setups} that ask the same{turned}"
    lead = measured_lead(evidence, subjects, also=also if others else "")
    return replace(lead, designs=(evidence.common, *agree))


# Who is ahead depends on the design


def _turned(evidence: Evidence, a: str, b: str, same: bool) -> tuple[str, str] | None:
    """Return a design under which a is ahead of b, and the one where b is, most clearly.

    Both ask the same question, or not the same one: then the first one is the common design, or the
    first one under which a is ahead.
    """
    ahead = [design for design in evidence.designs if evidence.ahead(a, b, design)]
    behind = [design for design in evidence.designs if evidence.ahead(b, a, design)]
    pairs = [(d, e) for d in ahead for e in behind if (question(d) == question(e)) == same]
    if not pairs:
        return None
    here = pairs[0][0]
    against = [e for d, e in pairs if d == here]
    return here, max(against, key=lambda design: evidence.contrast(b, a, design).z or 0.0)


def _ordered_pairs(evidence: Evidence) -> Iterator[Subjects]:
    """Yield each pair once: the one with the higher mean under the common design is first."""
    yield from combinations(evidence.order, 2)


def _depends(evidence: Evidence, subjects: Subjects) -> bool:
    a, b = subjects
    return _turned(evidence, a, b, same=True) is not None


def _differs(evidence: Evidence, subjects: Subjects) -> bool:
    a, b = subjects
    return not _depends(evidence, subjects) and _turned(evidence, a, b, same=False) is not None


def _measure_turned(same: bool) -> Callable[[Evidence, Subjects], Measured]:
    """Return what says the two designs that order a pair differently."""

    def measure(evidence: Evidence, subjects: Subjects) -> Measured:
        a, b = subjects
        turned = _turned(evidence, a, b, same)
        assert turned is not None  # the rule
        here, there = turned
        words = {
            "elsewhere": phrase(there),
            "reversed": shown_lead(evidence.contrast(b, a, there)),
            "question": ASKED[question(there)],
        }
        return replace(measured_lead(evidence, subjects, here, **words), designs=turned)

    return measure


def _is_turned(statement: Statement, truth: KnownTruth) -> bool:
    (a, b), (here, there) = statement.subjects, statement.designs
    return truth.lead(here, a, b) > 0 and truth.lead(there, b, a) > 0


# Nobody leads


def _first_two(evidence: Evidence) -> Iterator[Subjects]:
    """Yield the best candidate and a reference ahead of it; else the second one, if any."""
    leader, *others = evidence.candidates
    for second in (*evidence.above, *others, *evidence.references)[:1]:
        yield (leader, second)


def _detectable(evidence: Evidence, subjects: Subjects) -> float:
    """Return the smallest difference of two systems that these data show with 80 % power."""
    detectable: float = evidence.contrast(*subjects).facts["detectable"]
    return detectable


def _undecided(evidence: Evidence, subjects: Subjects) -> bool:
    return not evidence.behind() and not _behind_leader(evidence)


def _measure_undecided(evidence: Evidence, subjects: Subjects) -> Measured:
    detectable = _detectable(evidence, subjects)
    text = number(detectable, decimals(detectable))
    lead = measured_lead(evidence, subjects, metric=evidence.metric, detectable=text)
    if evidence.above:
        return replace(lead, case="above")
    return replace(lead, case="detects" if detectable else "text")


def _within_interval(statement: Statement, truth: KnownTruth) -> bool:
    assert statement.interval is not None
    low, high = statement.interval
    return low <= truth.lead(statement.designs[0], *statement.subjects) <= high


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
    is_open = _undecided(evidence, subjects) and not evidence.above
    return is_open and bool(_detectable(evidence, subjects))


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
        subjects=_leading,
        holds=_leads,
        measure=_measure_leading,
        is_true=_all_above,
    ),
    Kind(
        name="ties",
        subjects=_leading,
        holds=_ties,
        measure=_measure_leading,
        is_true=_all_above,
    ),
    Kind(
        name="leads-some",
        subjects=_only_leader,
        holds=_leads_some,
        measure=_measure_leading,
        is_true=_all_above,
    ),
    Kind(
        name="undecided",
        subjects=_first_two,
        holds=_undecided,
        measure=_measure_undecided,
        is_true=_within_interval,
    ),
    Kind(
        name="beats-popularity",
        subjects=_best_and_popularity,
        holds=_beats_popularity,
        measure=_measure_popularity,
        is_true=_leads_where_stated,
    ),
    Kind(
        name="not-above-popularity",
        subjects=_best_and_popularity,
        holds=lambda evidence, subjects: not _beats_popularity(evidence, subjects),
        measure=measured_lead,
        is_true=_within_interval,
    ),
    Kind(
        name="depends",
        subjects=_ordered_pairs,
        holds=_depends,
        measure=_measure_turned(same=True),
        is_true=_is_turned,
    ),
    Kind(
        name="other-question",
        subjects=_ordered_pairs,
        holds=_differs,
        measure=_measure_turned(same=False),
        is_true=_is_turned,
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
        subjects=_first_two,
        holds=_is_detectable,
        measure=_measure_more_users,
    ),
    Kind(name="report-both", subjects=_ordered_pairs, holds=_depends),
)
"""In the order in which they are said."""
