"""What a paper claims, as data: the statement, how it is measured, and what counts as agreeing."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace

from unskew.errors import SettingError
from unskew.report.text import number
from unskew.studies.lab import Lab

HOLDS, DIFFERS, CONTRADICTS = "holds", "differs", "contradicts"
NOT_SETTLED = "not settled"
"""Some values of the interval agree with the claim and some do not."""
AMBIGUOUS, NOTE = "ambiguous", "note"
"""No verdict: the paper says two things, or nothing; what was measured is told all the same."""
FAILED = "failed"
"""The check itself raised an error."""
NO_DATA, NOT_CHECKABLE = "data not there", "not checkable"
VERDICTS = (
    HOLDS,
    DIFFERS,
    CONTRADICTS,
    NOT_SETTLED,
    AMBIGUOUS,
    NOTE,
    FAILED,
    NO_DATA,
    NOT_CHECKABLE,
)

MEASURED, RELEASED, PRINTED, ALGEBRA = "measured", "released", "printed", "algebra"
EVIDENCE = {
    MEASURED: "measured anew, on data or in simulated worlds, in a way that could have failed",
    RELEASED: "computed from results that the authors released",
    PRINTED: "computed from values that the paper prints",
    ALGEBRA: "follows from definitions; a run can only confirm it",
}
"""What a verdict rests on."""

CLAIM = "claim"
KINDS = (CLAIM, AMBIGUOUS, NOTE)


@dataclass(frozen=True)
class Rule:
    """Which values agree with a claim: those from `low` to `high`.

    Made by `near`, `exactly`, `at_least`, `above`, `at_most`, `below`, `between` and `true`.
    """

    low: float = -math.inf
    high: float = math.inf
    strict: bool = False
    """Whether the bounds themselves do not agree."""
    decisive: bool = True
    """Whether a value outside contradicts the claim. Not where what the paper leaves open
    (settings, pre-processing) could explain it: then it differs."""
    said: str = ""
    """How it reads; made from the bounds unless given."""

    def accepts(self, value: float) -> bool:
        """Tell whether a value agrees."""
        if self.strict:
            return self.low < value < self.high
        return self.low <= value <= self.high

    def reaches(self, low: float, high: float) -> bool:
        """Tell whether any value from low to high agrees."""
        if self.strict:
            return low < self.high and high > self.low
        return low <= self.high and high >= self.low

    def open(self) -> Rule:
        """Return the rule for a claim that depends on what the paper leaves open."""
        return replace(self, decisive=False)

    def __str__(self) -> str:
        if self.said:
            return self.said
        if self.low == self.high:
            return f"= {self.low:g}"
        if math.isinf(self.high):
            return f"{'>' if self.strict else '≥'} {self.low:g}"
        if math.isinf(self.low):
            return f"{'<' if self.strict else '≤'} {self.high:g}"
        return f"{self.low:g} to {self.high:g}"


def near(value: float, within: float) -> Rule:
    """Return the rule that a value is near another."""
    return Rule(value - within, value + within, said=f"{value:g} ± {within:g}")


def exactly(value: float) -> Rule:
    """Return the rule that a value is another, to the last digit that is printed (1e-9)."""
    return Rule(value - 1e-9, value + 1e-9, said=f"= {value:g}")


def at_least(value: float) -> Rule:
    """Return the rule that a value is no smaller."""
    return Rule(low=value)


def above(value: float) -> Rule:
    """Return the rule that a value is larger."""
    return Rule(low=value, strict=True)


def at_most(value: float) -> Rule:
    """Return the rule that a value is no larger."""
    return Rule(high=value)


def below(value: float) -> Rule:
    """Return the rule that a value is smaller."""
    return Rule(high=value, strict=True)


def between(low: float, high: float) -> Rule:
    """Return the rule that a value lies in a range."""
    return Rule(low, high)


def true() -> Rule:
    """Return the rule for what is measured as true or false."""
    return Rule(low=1.0, high=1.0, said="true")


@dataclass(frozen=True)
class Measured:
    """What was measured about a claim.

    Where the paper's numbers come from a procedure that differs from its text, `value` follows the
    procedure, so that it can be set beside them, and `as_defined` the text.
    """

    value: float
    low: float | None = None
    high: float | None = None
    """Its interval (95 %), where it is uncertain."""
    as_defined: float | None = None
    text: str = ""
    """How the value reads, where a number is not enough, such as `52.6 / 8.6 / 29.8 / 9.0 %`."""
    note: str = ""
    """What else there is to know; where the claim is contradicted, what is right."""
    evidence: str = ""
    """What the value rests on, where that is not what the claim says, such as printed values in
    place of released ones that are not there."""

    @property
    def range(self) -> tuple[float, float]:
        """The interval; the value itself where there is none."""
        low = self.value if self.low is None else min(self.low, self.value)
        return low, self.value if self.high is None else max(self.high, self.value)

    def __str__(self) -> str:
        return self.text or shown(self.value)


Measure = Callable[[Lab, str], Measured]


@dataclass(frozen=True)
class Claim:
    """A claim of a paper."""

    key: str
    """Paper and number, such as `0-09`."""
    place: str
    """Where the paper says so, such as `Fig. 2` or `§6.2`."""
    says: str
    measure: Measure | None
    """Called with the lab and the name of the data; None where `needs` says why nobody could."""
    rule: Rule
    why: str
    """Why this much may differ."""
    published: str = ""
    """The value as the paper prints it."""
    data: tuple[str, ...] = ()
    """The data sets it speaks of; it is measured on each that is at hand. () = on none."""
    files: tuple[str, ...] = ()
    """Tables of released results that it needs."""
    asks: Rule | None = None
    """What agrees on other data; None where the claim is about its own data only."""
    question: str = ""
    """How the claim reads as a question about any data."""
    needs: str = ""
    """What it would need that no file could bring here."""
    evidence: str = ""
    """What a verdict rests on: a key of `EVIDENCE`. Where a claim speaks of data it is `measured`,
    where it speaks of released tables only, `released`, unless given; all others have to say."""
    kind: str = CLAIM
    """`note` where the paper says nothing about it, `ambiguous` where it says two things."""
    explanation: str = ""
    """Why the verdict on the paper's own data is what it is, where that was found out."""

    def __post_init__(self) -> None:
        if not self.evidence:
            default = MEASURED if self.data else RELEASED if self.files else ""
            object.__setattr__(self, "evidence", default)
        if self.measure is not None and self.evidence not in EVIDENCE:
            raise SettingError(f"claim {self.key}: evidence must be one of {', '.join(EVIDENCE)}")
        if self.kind not in KINDS:
            raise SettingError(f"claim {self.key}: kind must be one of {', '.join(KINDS)}")


@dataclass(frozen=True)
class Verdict:
    """What was found about a claim on one data set."""

    claim: Claim
    data: str
    verdict: str
    measured: Measured | None = None
    why: str = ""
    """Why it could not be checked."""
    rule: Rule | None = None

    @property
    def evidence(self) -> str:
        """What it rests on."""
        return (self.measured.evidence if self.measured is not None else "") or self.claim.evidence


def judge(claim: Claim, rule: Rule, data: str, measured: Measured) -> Verdict:
    """Set what was measured beside what was claimed.

    It holds if the value and its whole interval agree, and is not settled if only part of them
    does. If none does, it differs where what the paper leaves open could explain it; else it
    contradicts the claim.
    """
    if math.isnan(measured.value):
        why = measured.note or "undefined on these data"
        return Verdict(claim, data, NOT_CHECKABLE, measured, why, rule)
    return Verdict(claim, data, _verdict(claim, rule, measured), measured, rule=rule)


def _verdict(claim: Claim, rule: Rule, measured: Measured) -> str:
    if claim.kind != CLAIM:
        return claim.kind
    low, high = measured.range
    if rule.accepts(low) and rule.accepts(high):
        return HOLDS
    if rule.reaches(low, high):
        return NOT_SETTLED
    return CONTRADICTS if rule.decisive else DIFFERS


def shown(value: float) -> str:
    """Return a measured value as people read it: truths as words, whole numbers as such."""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if float(value).is_integer() and abs(value) < 1e15:
        return f"{int(value):,}".replace("-", "−")
    return number(value, 4 if abs(value) < 10 else 2)
