"""The closed catalogue of what an audit says."""

from __future__ import annotations

from collections.abc import Sequence

from unskew.auditing.evidence import Evidence
from unskew.auditing.procedure_statements import PROCEDURE_KINDS
from unskew.auditing.reason_statements import REASON_KINDS
from unskew.auditing.score_statements import SCORE_KINDS
from unskew.auditing.statement import Kind, Statement
from unskew.auditing.truth_statements import TRUTH_KINDS

CATALOGUE: tuple[Kind, ...] = (*SCORE_KINDS, *REASON_KINDS, *TRUTH_KINDS, *PROCEDURE_KINDS)
"""Every kind of statement. An audit says nothing else."""

KINDS = {kind.name: kind for kind in CATALOGUE}


def statements_of(evidence: Evidence, kinds: Sequence[Kind] = CATALOGUE) -> tuple[Statement, ...]:
    """Return all that may be said."""
    return tuple(statement for kind in kinds for statement in kind.say(evidence))
