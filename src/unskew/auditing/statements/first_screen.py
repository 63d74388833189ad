"""What comes first in an audit: a verdict, and the sentences that bear it out."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from unskew.auditing.statements.evidence import Evidence
from unskew.auditing.statements.procedure_statements import PROCEDURE_KINDS
from unskew.auditing.statements.reason_statements import REASON_KINDS
from unskew.auditing.statements.score_statements import SCORE_KINDS
from unskew.auditing.statements.statement import Kind, Statement, Subjects
from unskew.auditing.statements.truth_statements import TRUTH_KINDS

CATALOGUE: tuple[Kind, ...] = (*SCORE_KINDS, *REASON_KINDS, *TRUTH_KINDS, *PROCEDURE_KINDS)
"""Every kind of statement. An audit says nothing else."""

KINDS = {kind.name: kind for kind in CATALOGUE}


def statements_of(evidence: Evidence, kinds: Sequence[Kind] = CATALOGUE) -> tuple[Statement, ...]:
    """Return all that may be said."""
    return tuple(statement for kind in kinds for statement in kind.say(evidence))


SETTLED = "settled"
BY_SCORE_ONLY = "settled by score only"
"""The verdict where systems lead and nothing says that they are liked more than all others."""
DEPENDS = "depends on the setup"
NOT_SETTLED = "not settled"
FINDINGS = ("leads", "ties", "leads-some", "undecided")
POPULARITY = ("beats-popularity", "not-above-popularity")
POPULAR_LIKING = ("popular-liked", "popular-not-liked", "popular-open")
NEXT_STEPS = ("better-shown", "better", "not-personal", "predicts-use", "liking-open")
"""Kinds about the leading system and another one, the surest first."""


@dataclass(frozen=True, eq=False)
class FirstScreen:
    """What comes first: a verdict, the finding, what bears on it, and the next step."""

    verdict: str
    finding: Statement
    reasons: tuple[Statement, ...]
    """Setups that disagree, and how the best system stands to popularity."""
    next_step: Statement | None

    @property
    def sentences(self) -> tuple[Statement, ...]:
        """The finding, the reasons and the next step, as far as there are any."""
        step = () if self.next_step is None else (self.next_step,)
        return (self.finding, *self.reasons, *step)


def first_screen(evidence: Evidence, statements: Sequence[Statement]) -> FirstScreen:
    """Choose what comes first."""
    finding = next(s for kind in FINDINGS for s in statements if s.kind == kind)
    conflict = _conflict(evidence, statements)
    popular = _first(statements, POPULARITY)
    step = _next_step(evidence, statements, finding, conflict)
    # Where popularity scores as high as anything, it matters whether popular items are liked.
    quality = _first(statements, POPULAR_LIKING) if _is_led_by_popularity(evidence) else None
    if evidence.leading() == (evidence.popularity,):
        popular = None  # the finding says it
    reasons = tuple(one for one in (conflict, popular, quality) if one is not None)
    return FirstScreen(_verdict(evidence, statements, finding, conflict), finding, reasons, step)


def _is_led_by_popularity(evidence: Evidence) -> bool:
    return evidence.popularity in evidence.leading() or evidence.popularity in evidence.above


def _conflict(evidence: Evidence, statements: Sequence[Statement]) -> Statement | None:
    """Return that setups of one question disagree about a leading system and one outside."""
    leading = evidence.leading()
    return next(
        (
            statement
            for statement in statements
            if statement.kind == "depends"
            and len({*leading} & {*statement.subjects}) == 1
            and statement.designs[0] == evidence.common
        ),
        None,
    )


def _verdict(
    evidence: Evidence,
    statements: Sequence[Statement],
    finding: Statement,
    conflict: Statement | None,
) -> str:
    """Return the verdict: a lead is settled only where it is also one of liking."""
    if finding.kind == "undecided":
        return NOT_SETTLED
    if conflict is not None:
        return DEPENDS
    shown = {s.subjects for s in statements if s.kind == "better-shown"}
    outside = evidence.outside()
    is_shown = bool(outside) and {(a, b) for a in evidence.leading() for b in outside} <= shown
    return SETTLED if is_shown or _first(statements, ["best"]) else BY_SCORE_ONLY


def _next_step(
    evidence: Evidence,
    statements: Sequence[Statement],
    finding: Statement,
    conflict: Statement | None,
) -> Statement | None:
    """Return what is known of liking, or what to do."""
    leader = evidence.leader
    for kind in ("better-shown", "better-despite"):
        above = _clearest_above(statements, kind, leader)
        if above is not None and (conflict is None or kind == "better-shown"):
            return above
    if finding.kind == "undecided":
        return _first(statements, ["better-shown", "more-users"])
    if conflict is not None:
        return _first(statements, ["report-both"], [conflict.subjects])
    best = _first(statements, ["best"])
    doubt = _clearest_above(statements, "evidence-disagrees", leader)
    if best is not None or doubt is not None:
        return best or doubt
    others = (system for system in evidence.order if system != leader)
    behind = [(leader, system) for system in others if evidence.ahead(leader, system)]
    return next(
        (
            statement
            for kind in NEXT_STEPS
            for pair in behind
            for statement in statements
            if statement.kind == kind and statement.subjects == pair
        ),
        None,
    )


def _clearest_above(statements: Sequence[Statement], kind: str, leader: str) -> Statement | None:
    """Return the clearest statement of a kind that some system is above the leading one."""
    above = [s for s in statements if s.kind == kind and s.subjects[1:] == (leader,)]
    return max(above, key=lambda statement: statement.value or 0.0, default=None)


def _first(
    statements: Sequence[Statement], kinds: Sequence[str], pairs: Sequence[Subjects] | None = None
) -> Statement | None:
    """Return the first statement of these kinds, in their order; about one of some pairs."""
    return next(
        (
            statement
            for kind in kinds
            for statement in statements
            if statement.kind == kind and (pairs is None or statement.subjects in pairs)
        ),
        None,
    )
