"""`Statement`: one thing that an audit says, and `Kind`: when it may be said and when it is false.

A sentence is a result: it has a value with an interval, the rule under which it is printed, what it
assumes, and a predicate that the truth of a world can refute. `statements.first_screen` is the
closed catalogue of kinds; nothing else is said.
"""

from __future__ import annotations

import math
import tomllib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from unskew.auditing.statements.setups import phrase
from unskew.report.text import interval

if TYPE_CHECKING:
    from unskew.auditing.statements.evidence import Evidence


TEXTS: dict[str, Any] = tomllib.loads(
    Path(__file__).with_name("statements.toml").read_text(encoding="utf-8")
)
"""All texts, as the file holds them."""
WORDS: dict[str, dict[str, str]] = TEXTS["kinds"]
"""By kind: its role, its rule, its claim and its texts."""
UNTUNED = "With untuned systems"
"""What findings begin with where systems were trained here and not tuned."""

Subjects = tuple[str, ...]
"""The systems, and where it matters the design, that a statement is about."""

ROLES = ("finding", "reason", "next", "pair", "system", "procedure")
"""What a statement is for: the first three stand on the first screen."""

DISPLAY_SWAYS = "display-sways-ratings"
DISPLAY_SELECTS = "display-changes-who-rates"
CONDITIONS = {
    DISPLAY_SWAYS: "being shown an item does not change what people say of it",
    DISPLAY_SELECTS: (
        "who rates an item depends on liking equally, whether people were shown it or sought it"
    ),
}
"""By name: what must hold for a statement about liking. Nothing in the data can show it."""


class KnownTruth(Protocol):
    """What a world whose truth is known can say: the judge of every predicate."""

    def lead(self, design: str, a: str, b: str) -> float:
        """Return by how much a is expected to score above b: retrained, on new users."""
        ...

    def liking(self, a: str, b: str) -> float:
        """Return by how much more the recommendations of a are truly liked than those of b."""
        ...

    def judged_liking(self, a: str, b: str) -> float:
        """Return by how much more often judged recommendations of a are recorded as liked.

        Each beyond what is expected of its user.
        """
        ...

    def match(self, a: str, b: str | None = None) -> float:
        """Return the expected step from averages to observed: of a, or of a above b."""
        ...

    def opinion(self, a: str, b: str | None = None) -> float:
        """Return the expected step from choice to observed: of a, or of a above b."""
        ...

    def popular_liking(self, *, rated: bool = False) -> float:
        """Return how truly liking rises with popularity, within users: over all or rated items."""
        ...

    def broken(self, condition: str) -> bool:
        """Tell whether a condition does not hold."""
        ...


@dataclass(frozen=True, kw_only=True)
class Statement:
    """One thing that an audit says."""

    kind: str
    subjects: Subjects
    text: str
    role: str
    value: float | None = None
    interval: tuple[float, float] | None = None
    assumptions: tuple[str, ...] = ()
    """Names of the conditions under which it is claimed: see `CONDITIONS`."""
    designs: tuple[str, ...] = ()
    """The designs it speaks of."""
    others: Subjects = ()
    """The systems that all subjects are said to be above."""

    def __str__(self) -> str:
        return self.text

    def to_dict(self, false_rate: Any = None) -> dict[str, Any]:
        """Return it as plain values, for JSON.

        Parameters
        ----------
        false_rate
            How often statements of its kind are false, as the self-test measured it.
        """
        return {
            "kind": self.kind,
            "role": self.role,
            "subjects": list(self.subjects),
            "others": list(self.others),
            "designs": list(self.designs),
            "value": self.value,
            "interval": None if self.interval is None else list(self.interval),
            "text": self.text,
            "assumptions": [CONDITIONS[assumption] for assumption in self.assumptions],
            "false_rate": false_rate,
        }


@dataclass(frozen=True, kw_only=True)
class Measured:
    """What a statement says of its subjects: a value, and what stands in its words."""

    value: float | None = None
    interval: tuple[float, float] | None = None
    designs: tuple[str, ...] = ()
    others: Subjects = ()
    words: Mapping[str, object] = field(default_factory=dict)
    case: str = "text"
    """Which of the texts of its kind it has."""


@dataclass(frozen=True, kw_only=True)
class Kind:
    """A kind of statement: of whom it can be said, when, what it says, and when it is false.

    Its role, its rule, its claim and its words stand in `statements.toml`.
    """

    name: str
    subjects: Callable[[Evidence], Iterable[Subjects]]
    """Of whom it could be said."""
    holds: Callable[[Evidence, Subjects], bool] = lambda _evidence, _subjects: True
    """Whether it may be said of them."""
    measure: Callable[[Evidence, Subjects], Measured] = lambda _evidence, _subjects: Measured()
    """What it says of them."""
    is_true: Callable[[Statement, KnownTruth], bool] | None = None
    """Whether it is true in a world. None: it repeats what was done or counted, which tests check
    without a world."""
    assumptions: tuple[str, ...] = ()
    is_of_designs: bool = False
    """Whether its subjects are designs, not systems."""

    @property
    def role(self) -> str:
        """What it is for: one of `ROLES`."""
        return WORDS[self.name]["role"]

    @property
    def rule(self) -> str:
        """Under which condition it is said, in words."""
        return WORDS[self.name]["rule"]

    @property
    def claims(self) -> str:
        """What is claimed: what a world must show for it to be true."""
        return WORDS[self.name]["claims"]

    def say(self, evidence: Evidence) -> list[Statement]:
        """Return all statements of this kind that the evidence allows."""
        return [
            self.word(evidence, subjects)
            for subjects in self.subjects(evidence)
            if self.holds(evidence, subjects)
        ]

    def word(self, evidence: Evidence, subjects: Subjects) -> Statement:
        """Return the statement about some subjects."""
        measured = self.measure(evidence, subjects)
        words: dict[str, object] = dict(zip("ab", subjects, strict=False))
        designs = subjects if self.is_of_designs else measured.designs
        if designs:
            words["where"] = phrase(designs[0])
        if measured.value is not None and measured.interval is not None:
            words["shown"] = with_interval(measured.value, *measured.interval)
        text = WORDS[self.name][measured.case].format(**{**words, **measured.words})
        if self.role == "finding" and not (any(evidence.core.tuned) or evidence.is_given):
            text = f"{UNTUNED}: {text}"
        return Statement(
            kind=self.name,
            subjects=() if self.is_of_designs else subjects,
            text=text,
            role=self.role,
            value=measured.value,
            interval=measured.interval,
            assumptions=self.assumptions,
            designs=designs,
            others=measured.others,
        )

    def is_false(self, statement: Statement, truth: KnownTruth) -> bool | None:
        """Tell whether a world refutes it; None where one of its conditions does not hold."""
        if self.is_true is None or any(
            truth.broken(assumption) for assumption in statement.assumptions
        ):
            return None
        return not self.is_true(statement, truth)


MOST_DIGITS = 6


def names(items: Sequence[str], limit: int = 4) -> str:
    """Return names in a row: `a, b and c`; beyond `limit` the others are counted."""
    labels = list(items[:limit])
    if len(items) > limit:
        labels.append(f"{len(items) - limit} more")
    if len(labels) < 2:
        return "".join(labels)
    return f"{', '.join(labels[:-1])} and {labels[-1]}"


def capital(text: str) -> str:
    """Return a text that starts with a capital."""
    return f"{text[:1].upper()}{text[1:]}"


def decimals(half: float) -> int:
    """Return so many decimals that half an interval is at least three units of the last one."""
    if not (half > 0 and math.isfinite(half)):
        return 3
    return min(max(math.ceil(math.log10(3 / half)), 3), MOST_DIGITS)


def number(value: float, digits: int = 3) -> str:
    """Return a number between -1 and 1 without its leading zero, with a minus sign."""
    text = f"{abs(value):.{digits}f}"
    text = text[1:] if text.startswith("0.") else text
    return f"−{text}" if value < 0 and float(text) != 0 else text


def signed(value: float, digits: int = 3) -> str:
    """Return a number with its sign."""
    text = number(value, digits)
    return text if text.startswith("−") or float(text) == 0 else f"+{text}"


def with_interval(value: float, low: float, high: float) -> str:
    """Return `+.012 [.006, .018]`."""
    digits = decimals((high - low) / 2)
    # An end beside 0 shows on which side of it it lies.
    while digits < MOST_DIGITS and any(bound and not round(bound, digits) for bound in (low, high)):
        digits += 1
    return f"{signed(value, digits)} {interval(low, high, write=partial(number, digits=digits))}"


def points(value: float) -> str:
    """Return a share in points of a hundred: `1.3`, `12`."""
    hundred = round(100 * value, 1)
    text = f"{abs(hundred):.1f}" if abs(hundred) < 10 else f"{abs(hundred):.0f}"
    return f"−{text}" if hundred < 0 and float(text) != 0 else text


def about(count: float) -> str:
    """Return a count with two leading digits: `about 1,400`."""
    rounded = max(math.ceil(count), 1)
    if rounded >= 100:
        step = 10 ** (len(str(rounded)) - 2)
        rounded = math.ceil(rounded / step) * step
    return f"about {rounded:,}"
