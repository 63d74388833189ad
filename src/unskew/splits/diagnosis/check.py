"""`Check`, what a diagnosis shows of one question, and `Rule`, how the question is answered."""

from __future__ import annotations

import math
import tomllib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from unskew.splits.diagnosis import thresholds
from unskew.splits.diagnosis.thresholds import LEAK_SHARE

if TYPE_CHECKING:
    from unskew.splits.diagnosis.parts import SplitParts

LIGHTS = {
    "leak": "red: what is tested reached the training",
    "look": "yellow: look at it before you trust a score",
    "unknown": "grey: cannot be checked here",
    "shown": "blue: a fact, not a judgement",
    "ok": "green: checked, nothing found",
}
"""Every light and what it means, the worst first."""
IN_ORDER = ("leak", "look", "ok", "shown", "unknown")
"""Lights in the order in which tables show them."""
UNITS = ("share", "number", "days", "ratio", "value")

Number = int | float | str | None


@dataclass(frozen=True)
class Reading:
    """What one check found in one split."""

    light: str
    value: float | None
    sentence: str
    counts: Mapping[str, Number] = field(default_factory=dict)
    """The numbers behind the sentence."""
    short: str = ""
    """The value in a few words, where it says more than the number."""


@dataclass(frozen=True)
class Check:
    """A question about a split, or about several, and its answer."""

    key: str
    title: str
    light: str
    """One of `LIGHTS`."""
    value: float | None
    """The number that decides; of several splits the worst one's."""
    unit: str
    """What the value is: a share, a number, days, a ratio, or a value of the data."""
    threshold: str
    """When the light changes, in words."""
    sentence: str
    remedy: str
    """What to do; empty where there is nothing to do."""
    short: str
    """The value in a few words."""
    readings: Mapping[str, Reading] = field(default_factory=dict)
    """By split: what was found."""

    @property
    def counts(self) -> Mapping[str, Number]:
        """The numbers behind the sentence, of the split that it speaks of."""
        for reading in self.readings.values():
            if reading.sentence in self.sentence:
                return reading.counts
        return {}

    def to_dict(self) -> dict[str, Any]:
        """Return plain values."""
        return {
            "key": self.key,
            "title": self.title,
            "light": self.light,
            "value": self.value,
            "unit": self.unit,
            "threshold": self.threshold,
            "sentence": self.sentence,
            "remedy": self.remedy,
            "splits": {
                label: {"light": reading.light, "value": reading.value, **reading.counts}
                for label, reading in self.readings.items()
            },
        }


@dataclass(frozen=True)
class Rule:
    """How one question is answered for one split. Made by `rule`."""

    key: str
    title: str
    read: Callable[[SplitParts], Reading]
    unit: str = "share"
    threshold: str = "a fact: no threshold"
    remedy: str = ""
    of_log: bool = False
    """Whether the question is about the log, so that one answer serves all splits."""
    needs_time: bool = False

    def reading(self, parts: SplitParts) -> Reading:
        """Answer for one split; grey where there are no time stamps and they are needed."""
        if self.needs_time and not parts.has_time:
            return unknown(parts.why_no_time)
        return self.read(parts)

    def conclude(self, readings: Mapping[str, Reading]) -> Check:
        """Put the answers for all splits together: the worst light, and where it is."""
        light = min((reading.light for reading in readings.values()), key=list(LIGHTS).index)
        label, worst = worst_of(
            {name: reading for name, reading in readings.items() if reading.light == light}
        )
        sentence, short = worst.sentence, worst.short or amount(worst.value, self.unit)
        if len(readings) > 1:
            sentence, short = self._over_splits(readings, light, label, worst)
        has_remedy = light in ("leak", "look")
        return Check(
            key=self.key,
            title=self.title,
            light=light,
            value=worst.value,
            unit=self.unit,
            threshold=self.threshold,
            sentence=sentence,
            remedy=self.remedy if has_remedy else "",
            short=short,
            readings=dict(readings),
        )

    def _over_splits(
        self, readings: Mapping[str, Reading], light: str, label: str, worst: Reading
    ) -> tuple[str, str]:
        """Say in how many splits, and in which it is worst; and the value in a few words."""
        alike = [reading for reading in readings.values() if reading.light == light]
        values = [reading.value for reading in alike if reading.value is not None]
        short = ""
        if values:
            low, high = (amount(value, self.unit) for value in (min(values), max(values)))
            short = low if low == high else f"{low} to {high}"
        if len({reading.sentence for reading in readings.values()}) == 1:
            return worst.sentence, short
        if light == "shown":
            return f"{short} over {len(readings):,} splits. {label}: {worst.sentence}", short
        scope = "all" if len(alike) == len(readings) else f"{len(alike):,} of"
        return f"{scope.capitalize()} {len(readings):,} splits; {label}: {worst.sentence}", short


@cache
def check_facts() -> dict[str, dict[str, Any]]:
    """Return what `checks.toml` says of each check, by its key."""
    text = Path(__file__).with_name("checks.toml").read_text(encoding="utf-8")
    facts: dict[str, dict[str, Any]] = tomllib.loads(text)
    return facts


def rule(read: Callable[[SplitParts], Reading]) -> Rule:
    """Make a rule of a function that answers a question for one split.

    What else there is to say of the question stands in `checks.toml`, under the function's name.
    """
    key = read.__name__.replace("_", "-")
    facts = dict(check_facts()[key])
    if "threshold" in facts:
        facts["threshold"] = facts["threshold"].format(**vars(thresholds))
    return Rule(key=key, read=read, **facts)


def worst_of(readings: Mapping[str, Reading]) -> tuple[str, Reading]:
    """Return the reading with the largest value, the first of equal ones, and its split."""
    return max(readings.items(), key=lambda pair: _size(pair[1].value))


def _size(value: float | None) -> float:
    return -math.inf if value is None or math.isnan(value) else abs(value)


def by_share(value: float) -> str:
    """Return the light of a share that should be 0: red from the threshold on, yellow below it."""
    if value >= LEAK_SHARE:
        return "leak"
    return "look" if value > 0 else "ok"


def unknown(why: str, counts: Mapping[str, Number] | None = None) -> Reading:
    """Return the answer to what cannot be checked."""
    return Reading("unknown", None, why, counts or {})


def fact(
    value: float | None, sentence: str, counts: Mapping[str, Number] | None = None, short: str = ""
) -> Reading:
    """Return a fact."""
    return Reading("shown", value, sentence, counts or {}, short)


def amount(value: float | None, unit: str) -> str:
    """Return a value with its unit, as people read it."""
    if value is None or math.isnan(value):
        return "–"
    if unit == "share":
        return percent(value)
    if unit == "number":
        return f"{value:,.0f}"
    if unit == "days":
        return days(value)
    if unit == "ratio":
        return f"{value:.2f} times"
    return f"{value:.3g}".replace("-", "−")


def percent(share: float) -> str:
    """Return a share in per cent; a small one is never shown as 0."""
    if share == 0 or share >= 0.0995:
        return f"{share:.0%}" if share in (0.0, 1.0) else f"{share:.1%}"
    return f"{share:.2%}" if share >= 0.0001 else "<0.01%"


def days(number: float) -> str:
    """Return a time in the unit in which it is easily read."""
    for name, size in (("years", 365.25), ("days", 1.0), ("hours", 1 / 24), ("minutes", 1 / 1440)):
        limit = 3 if name == "years" else 2
        if abs(number) >= limit * size:
            return f"{number / size:,.1f} {name}".replace("-", "−")
    seconds = round(number * 86_400)
    return f"{seconds:,} {'second' if seconds == 1 else 'seconds'}".replace("-", "−")


def listed(texts: Sequence[str]) -> str:
    """Return texts as one enumeration."""
    return texts[0] if len(texts) == 1 else f"{', '.join(texts[:-1])} and {texts[-1]}"
