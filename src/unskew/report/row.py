"""`Row`: a row of `Estimates`, typed, and turned the other way round where it is of a pair."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

NUMBERS = ("value", "se", "low", "high", "p", "p_corrected")
AGAINST = "_against"
"""How the name of a fact of the second system of a pair ends."""
ENDS = {"low": "high", "high": "low"}
"""How the names of both ends of a range begin, each with the other."""
TURNING = ("+", "+%", "×")
"""The forms of numbers that change where a pair is turned round."""
SIGNED = {"value": "+"}


@dataclass(frozen=True, kw_only=True)
class Row:
    """A row of `Estimates`: a value, its interval, and what it rests on.

    What there is not is None; `note` says why.
    """

    keys: Mapping[str, Any]
    facts: Mapping[str, Any]
    value: float | None = None
    se: float | None = None
    low: float | None = None
    high: float | None = None
    p: float | None = None
    p_corrected: float | None = None
    n: int | None = None
    note: str = ""

    @property
    def estimate(self) -> tuple[float, float, float]:
        """The value and both ends of its interval; NaN for what there is not."""
        value, low, high = (math.nan if x is None else x for x in (self.value, self.low, self.high))
        return value, low, high

    @property
    def z(self) -> float | None:
        """The value in standard errors."""
        return None if self.value is None or not self.se else self.value / self.se

    def swapped(self, forms: Mapping[str, str] = SIGNED) -> Row:
        """Return the pair the other way round: the second system and the first.

        The facts of the two systems (`judged`, `judged_against`) change places, and so do both ends
        of a range (`low_single`, `high_single`).

        Parameters
        ----------
        forms
            How `value` and the facts are written (see `Column`): those with a sign change it,
            ratios are inverted, others stay.
        """
        keys = {**self.keys, "system": self.keys["against"], "against": self.keys["system"]}
        facts = {name: self.facts[partner] for name, partner in partners(self.facts).items()}
        facts = {name: _turned(value, forms.get(name, "")) for name, value in facts.items()}
        form = forms.get("value", "")
        value, low, high = (_turned(x, form) for x in (self.value, self.low, self.high))
        if form in TURNING:
            low, high = high, low
        return replace(self, keys=keys, facts=facts, value=value, low=low, high=high)


def _turned(value: Any, form: str) -> Any:
    """Return a number of a pair that is turned round."""
    if value is None or form not in TURNING:
        return value
    if form == "×":
        return 1 / value if value else None
    return -value + 0.0  # without a sign where it is 0


def partners(names: Iterable[str]) -> dict[str, str]:
    """Return by name that of the other system of a pair, or of the other end of a range."""
    there = list(names)
    result = {name: name.removesuffix(AGAINST) for name in there}
    result |= {name: f"{name}{AGAINST}" for name in there if f"{name}{AGAINST}" in there}
    ends = {
        name: f"{ENDS[end]}{name.removeprefix(end)}"
        for name in there
        if (end := name.partition("_")[0]) in ENDS
    }
    return result | {name: end for name, end in ends.items() if end in there}
