"""Which measured values agree with a claim: `near`, `exactly`, `at_least`, `true` and the like.

`read_rule` reads a rule as it is written in a file of claims.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from dataclasses import dataclass, replace

from unskew.errors import SettingError


@dataclass(frozen=True)
class Rule:
    """Which values agree with a claim: those from `low` to `high`."""

    low: float = -math.inf
    high: float = math.inf
    strict: bool = False
    """Whether the bounds themselves do not agree."""
    decisive: bool = True
    """Whether a value outside contradicts the claim. It only differs where something that the paper
    leaves open (settings, pre-processing) could explain it."""
    text: str = ""
    """The rule in words; built from the bounds where it is empty."""

    def accepts(self, value: float) -> bool:
        """Return whether a value agrees."""
        if self.strict:
            return self.low < value < self.high
        return self.low <= value <= self.high

    def reaches(self, low: float, high: float) -> bool:
        """Return whether any value from low to high agrees."""
        if self.strict:
            return low < self.high and high > self.low
        return low <= self.high and high >= self.low

    def open(self) -> Rule:
        """Return the rule for a claim that depends on what the paper leaves open."""
        return replace(self, decisive=False)

    def __str__(self) -> str:
        if self.text:
            return self.text
        if self.low == self.high:
            return f"= {self.low:g}"
        if math.isinf(self.high):
            return f"{'>' if self.strict else '≥'} {self.low:g}"
        if math.isinf(self.low):
            return f"{'<' if self.strict else '≤'} {self.high:g}"
        return f"{self.low:g} to {self.high:g}"


def near(value: float, within: float) -> Rule:
    """Return the rule that a value is near another."""
    return Rule(value - within, value + within, text=f"{value:g} ± {within:g}")


def exactly(value: float) -> Rule:
    """Return the rule that a value is another, to the last digit that is printed (1e-9)."""
    return Rule(value - 1e-9, value + 1e-9, text=f"= {value:g}")


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


def strictly_between(low: float, high: float) -> Rule:
    """Return the rule that a value lies in a range and is neither of its bounds."""
    return Rule(low, high, strict=True)


def true() -> Rule:
    """Return the rule for what is measured as true or false."""
    return Rule(low=1.0, high=1.0, text="true")


FORMS: dict[str, Callable[..., Rule]] = {
    "near # ± #": near,
    "exactly #": exactly,
    "at least #": at_least,
    "above #": above,
    "at most #": at_most,
    "below #": below,
    "between # and #": between,
    "strictly between # and #": strictly_between,
    "true": true,
}
"""How a rule is written, # being a number."""
_NUMBER = r"(-?\d+(?:\.\d+)?(?:e-?\d{1,2})?)"
_END = r"(?P<open>, open)?(?:: (?P<words>\S.*))?"
_PATTERNS = {
    re.compile(form.replace("#", _NUMBER) + _END): rule_of_numbers
    for form, rule_of_numbers in FORMS.items()
}


def read_rule(text: str) -> Rule:
    """Return the rule that a text such as `near 0.35 ± 0.05, open` states.

    `open` is `Rule.open`; what follows a colon is the rule in other words: `at most 3: within 3
    standard errors`.
    """
    for pattern, rule_of_numbers in _PATTERNS.items():
        if (match := pattern.fullmatch(text)) is None:
            continue
        numbers = [float(group) for group in match.groups()[: pattern.groups - 2]]
        rule = rule_of_numbers(*numbers)
        if rule.low > rule.high or (rule.strict and rule.low == rule.high):
            raise SettingError(
                f"no value agrees with {text!r}: the lower bound goes first, and ± is not negative"
            )
        rule = replace(rule, text=match["words"] or rule.text)
        return rule.open() if match["open"] else rule
    raise SettingError(
        f"{text!r} is no rule: write {', '.join(map(repr, FORMS))} with numbers for #, then "
        "', open' where the paper leaves something open, then ': ' and other words for the rule"
    )
