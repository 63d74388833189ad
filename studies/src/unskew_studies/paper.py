"""`Study`: a paper as data: what it needs, what it shows, what it claims, on which evidence."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from unskew.data.dataset import Dataset
from unskew.data.formats.entries import DATASETS
from unskew.errors import SettingError
from unskew.report.document import Block
from unskew.report.text import number
from unskew_studies.lab import Amount, Lab, Size
from unskew_studies.rules import Rule

STAND_IN = "stand-in"
"""The name of the built-in data."""

MEASURED, RELEASED, PRINTED, ALGEBRA = "measured", "released", "printed", "algebra"
EVIDENCE_KINDS = {
    MEASURED: "measured again, on data or in simulated worlds, in a way that could have failed",
    RELEASED: "computed from results that the authors released",
    PRINTED: "computed from values that the paper prints",
    ALGEBRA: "follows from definitions; a run can only confirm it",
}
SOURCES = {
    MEASURED: "simulated",
    RELEASED: "released results",
    PRINTED: "printed values",
    ALGEBRA: "algebra",
}
"""The source of evidence that needs no data set, by kind; it stands in place of the data set."""

CLAIM, AMBIGUOUS, NOTE = "claim", "ambiguous", "note"
CLAIM_KINDS = (CLAIM, AMBIGUOUS, NOTE)


@dataclass(frozen=True)
class MeasuredValue:
    """The value that a check measured.

    Where the paper's numbers come from a procedure that differs from its text, `value` follows the
    procedure, so that it can be set beside them, and `as_defined` the text.
    """

    value: float
    low: float | None = None
    high: float | None = None
    """Its interval (95 %), where it is uncertain."""
    as_defined: float | None = None
    text: str = ""
    """The value in words, where a number is not enough, such as `52.6 / 8.6 / 29.8 / 9.0 %`."""
    note: str = ""
    """What else there is to know; where the claim is contradicted, what is right."""
    evidence_kind: str = ""
    """What the value rests on, where that is not the kind of the evidence: printed values in place
    of released ones that are missing."""

    @property
    def range(self) -> tuple[float, float]:
        """The interval; the value itself where there is none."""
        low = self.value if self.low is None else min(self.low, self.value)
        return low, self.value if self.high is None else max(self.high, self.value)

    def __str__(self) -> str:
        return self.text or format_value(self.value)


def format_value(value: float) -> str:
    """Return a measured value as people read it: truths as words, whole numbers as such."""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if float(value).is_integer() and abs(value) < 1e15:
        return f"{int(value):,}".replace("-", "−")
    return number(value, 4 if abs(value) < 10 else 2)


Check = Callable[[Lab, str], MeasuredValue]
"""A function from the lab and the name of a data set to a measured value."""


@dataclass(frozen=True, kw_only=True)
class Evidence:
    """A way to check a claim: the check, what it needs, and which values agree."""

    kind: str
    """A key of `EVIDENCE_KINDS`; empty where there is no check."""
    check: Check | None
    """None where `needs` says why nobody could check it."""
    rule: Rule
    """The values that agree on the paper's data."""
    why: str
    """Why this much may differ."""
    data: tuple[str, ...] = ()
    """The data sets of the paper that it is checked on; () = it needs none."""
    files: tuple[str, ...] = ()
    """Tables of released results that it needs."""
    question_rule: Rule | None = None
    """The values that answer the claim's question with yes on other data, where these are not those
    of `rule`."""
    explanation: str = ""
    """The reason of the verdict on the paper's data, where it is known."""
    needs: str = ""
    """What it would need that no file could bring here."""

    def __post_init__(self) -> None:
        if self.check is not None and self.kind not in EVIDENCE_KINDS:
            raise SettingError(
                f"evidence {self.kind!r}: kind must be one of {', '.join(EVIDENCE_KINDS)}"
            )

    @property
    def source(self) -> str:
        """What it is about, where it needs no data set."""
        return SOURCES[self.kind or PRINTED]


@dataclass(frozen=True, kw_only=True)
class Claim:
    """A claim of a paper, and the evidence for or against it."""

    key: str
    """Paper and number, such as `0-09`."""
    place: str
    """Where the paper says so, such as `Fig. 2` or `§6.2`."""
    statement: str
    published: str = ""
    """The value as the paper prints it."""
    question: str = ""
    """The claim as a question about any data; empty where it is about the paper's data only."""
    kind: str = CLAIM
    """`note` where the paper says nothing about it, `ambiguous` where it says two things."""
    evidence: tuple[Evidence, ...]
    """Each piece has a verdict, on each data set that it is checked on."""

    def __post_init__(self) -> None:
        if self.kind not in CLAIM_KINDS:
            raise SettingError(f"claim {self.key}: kind must be one of {', '.join(CLAIM_KINDS)}")

    def question_rule(self, evidence: Evidence) -> Rule | None:
        """Return which values agree on other data; None where the claim is no question about them.

        What the paper leaves open is no excuse there: a value outside contradicts.
        """
        if not self.question or not evidence.data:
            return None
        return evidence.question_rule or replace(evidence.rule, decisive=True)


@dataclass(frozen=True, kw_only=True)
class Exhibit:
    """A table or figure of a paper, drawn again."""

    place: str
    """Such as `Fig. 2` or `Table 3`."""
    title: str
    shows: str
    """One sentence: what it shows and why that matters."""
    draw: Callable[[Lab, str], Sequence[Block]]
    """Called with the lab and the name of the data set."""
    data: tuple[str, ...] = ()
    """The data sets it is drawn for; () = it needs none."""
    files: tuple[str, ...] = ()
    """Tables of released results that it needs."""
    on_other_data: bool = True
    """Whether it is drawn for other data too."""

    @property
    def source(self) -> str:
        """What it is about, where it needs no data set."""
        return SOURCES[RELEASED if self.files else MEASURED]


@dataclass(frozen=True, kw_only=True)
class Study:
    """A paper as a study: what it needs, what it shows, what it claims."""

    name: str
    title: str
    reference: str
    """The paper: authors, title, journal, year."""
    data: tuple[str, ...]
    """The named data sets it can run on, the most informative first."""
    amounts: Mapping[str, Amount]
    exhibits: tuple[Exhibit, ...]
    claims: tuple[Claim, ...]
    stand_in: Callable[[int], Dataset]
    """Return small data of a built-in world, for a seed."""
    options: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    """Options of `us.load`, by data set."""
    sizes: Mapping[str, Size] = field(default_factory=dict)
    """The sizes of the paper's data sets as these options load them; a file of another size is not
    the paper's data. The catalogue's sizes, unless given."""

    def size(self, name: str) -> Size:
        """Return the size of a data set of the paper."""
        return self.sizes.get(name) or DATASETS[name].size_of_ratings
