"""What comes first in an audit: a verdict, and three sentences."""

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


VERDICTS = {
    "ahead": "settled",
    "leads": "settled",
    "depends": "depends on the design",
    "leads-here": "not settled",
    "undecided": "not settled",
}
"""By kind of finding: the verdict, in the fewest words."""
BY_SCORE_ONLY = "settled by score only"
"""The verdict where one system leads everywhere and nothing says that it is liked more."""
FINDINGS = ("depends", "leads", "leads-here", "undecided")
LIKED = ("better-shown", "better-despite", "better")
"""Kinds that name a system as liked more than another, the surest first."""
REASONS = ("popular", "match", "opinion", "reason-open")
NEXT_STEPS = (*LIKED, "liked-despite", "not-personal", "predicts-use", "liking-open")


@dataclass(frozen=True, eq=False)
class FirstScreen:
    """What comes first: a verdict, the finding, a reason for it, and the next step."""

    verdict: str
    finding: Statement
    reason: Statement | None
    next_step: Statement | None

    @property
    def sentences(self) -> tuple[Statement, ...]:
        """The finding, the reason and the next step, as far as there are any."""
        parts = (self.finding, self.reason, self.next_step)
        return tuple(part for part in parts if part is not None)


def first_screen(evidence: Evidence, statements: Sequence[Statement]) -> FirstScreen:
    """Choose what comes first."""
    finding = _finding(evidence, statements)
    a, b = _pair_of(evidence, finding)
    reason: Statement | None = None
    steps: Sequence[str] = NEXT_STEPS
    is_lead = finding.kind not in ("undecided", "depends")
    if finding.kind == "undecided":
        leads = [statement for statement in statements if statement.kind == "ahead-of-some"]
        reason = _first(statements, ["ahead-elsewhere"], [(a, b), (b, a)]) or next(
            (statement for statement in leads if {a, b} & {*statement.subjects}), None
        )
        steps = (*LIKED, "more-users")
    elif finding.kind == "depends":
        steps = (*LIKED, "report-both")
    else:
        reason = _first(statements, REASONS, [(a, b)])
    # Where one system leads clearly, the step is about it and the nearest one.
    above = None if is_lead else _liked_above(statements, evidence.leader)
    next_step = above or _first(statements, steps, [(a, b), (b, a)])
    return FirstScreen(_verdict(finding, next_step), finding, reason, next_step)


def _verdict(finding: Statement, next_step: Statement | None) -> str:
    """Return the verdict: a lead is settled only where it is also one of liking."""
    verdict = VERDICTS[finding.kind]
    if verdict == "settled" and (
        next_step is None
        or not next_step.kind.startswith("better")
        or next_step.subjects[0] != finding.subjects[0]
    ):
        return BY_SCORE_ONLY
    return verdict


def _finding(evidence: Evidence, statements: Sequence[Statement]) -> Statement:
    """Return the finding about the system that leads the common design."""
    leader = evidence.leader
    of_user = _between_given(evidence, statements)
    if of_user is not None:
        return of_user
    reversals = [
        statement
        for statement in statements
        if statement.kind == "depends" and leader in statement.subjects
    ]
    if reversals:
        return reversals[0]
    finding = next(
        statement for kind in FINDINGS[1:] for statement in statements if statement.kind == kind
    )
    pair = _given_pair(evidence)
    if finding.kind != "undecided" or pair is None:
        return finding
    return _first(statements, ["undecided"], [pair]) or finding


def _given_pair(evidence: Evidence) -> Subjects | None:
    """Return the user's own two best lists, where references stand beside."""
    systems = [system for system in evidence.order if system not in evidence.references]
    if not evidence.references or len(systems) < 2:
        return None
    return (systems[0], systems[1])


def _between_given(evidence: Evidence, statements: Sequence[Statement]) -> Statement | None:
    """Return what is found about the user's own two best lists, where references stand beside."""
    pair = _given_pair(evidence)
    return None if pair is None else _first(statements, ("depends", "ahead"), [pair, pair[::-1]])


def undecided_between_given(
    evidence: Evidence, statements: Sequence[Statement]
) -> tuple[Statement, ...]:
    """Return that the user's own two best lists are undecided, where only references are named.

    The rules of these kinds speak of the best system of all and the nearest one, and both may be
    references. The intervals of all pairs hold together, so the claims are the same for this pair.
    """
    pair = _given_pair(evidence)
    if pair is None or evidence.ahead(*pair) or evidence.ahead(*pair[::-1]):
        return ()
    is_stated = _first(statements, ["undecided"], [pair]) is not None
    kinds = (
        ["undecided", "more-users"]
        if evidence.contrast(*pair).facts["detectable"]
        else ["undecided"]
    )
    return () if is_stated else tuple(KINDS[kind].word(evidence, pair) for kind in kinds)


def _pair_of(evidence: Evidence, finding: Statement) -> Subjects:
    if finding.kind in ("leads", "leads-here"):
        return (evidence.leader, evidence.nearest(evidence.leader))
    return finding.subjects


def _liked_above(statements: Sequence[Statement], leader: str) -> Statement | None:
    """Return the clearest statement that some system is liked more than the leader."""
    above = [statement for statement in statements if statement.subjects[1:] == (leader,)]
    for kind in LIKED:
        of_kind = [statement for statement in above if statement.kind == kind]
        if of_kind:
            return max(of_kind, key=lambda statement: statement.value or 0.0)
    return None


def _first(
    statements: Sequence[Statement], kinds: Sequence[str], pairs: Sequence[Subjects]
) -> Statement | None:
    """Return the first statement of these kinds, in their order, about one of the pairs."""
    return next(
        (
            statement
            for kind in kinds
            for statement in statements
            if statement.kind == kind and statement.subjects in pairs
        ),
        None,
    )
