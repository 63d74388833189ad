"""`Check`, what a diagnosis shows of one question, and `Rule`, how the question is answered."""

from __future__ import annotations

import math
import tomllib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

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


class Reading(NamedTuple):
    """What one check found in one split."""

    light: str
    value: float | None
    sentence: str
    counts: Mapping[str, Number]
    """The numbers behind the sentence."""
    short: str = ""
    """The value in a few words, where it says more than the number."""


@dataclass(frozen=True, kw_only=True)
class CheckFacts:
    """What there is to say of a question whatever its answer."""

    key: str
    title: str
    unit: str = "share"
    """What the value is: a share, a number, days, a ratio, or a value of the data."""
    threshold: str = "a fact: no threshold"
    """When the light changes, in words."""
    remedy: str = ""
    """What to do; empty where there is nothing to do."""


@dataclass(frozen=True, kw_only=True)
class Rule(CheckFacts):
    """How a question about a split is answered. Made by `rule`."""

    read: Callable[[SplitParts], Reading]
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
        alike = {name: reading for name, reading in readings.items() if reading.light == light}
        label, worst = max(alike.items(), key=lambda pair: _size(pair[1].value))
        sentence, short = worst.sentence, worst.short or amount(worst.value, self.unit)
        if len(readings) > 1:
            values = [reading.value for reading in alike.values() if reading.value is not None]
            limits = [amount(value(values), self.unit) for value in (min, max) if values]
            short = " to ".join(dict.fromkeys(limits))
            if len({reading.sentence for reading in readings.values()}) > 1:
                number = f"{len(readings):,} splits"
                scope = "All" if len(alike) == len(readings) else f"{len(alike):,} of"
                start = f"{short} over {number}. " if light == "shown" else f"{scope} {number}; "
                sentence = f"{start}{label}: {sentence}"
        return Check(
            key=self.key,
            title=self.title,
            unit=self.unit,
            threshold=self.threshold,
            remedy=self.remedy if light in ("leak", "look") else "",
            light=light,
            value=worst.value,
            sentence=sentence,
            short=short,
            readings=dict(readings),
            counts=worst.counts,
        )


@dataclass(frozen=True, kw_only=True)
class Check(CheckFacts):
    """A question about a split, or about several, and its answer."""

    light: str
    """One of `LIGHTS`."""
    value: float | None
    """The number that decides; of several splits the worst one's."""
    sentence: str
    short: str
    """The value in a few words."""
    readings: Mapping[str, Reading]
    """By split: what was found."""
    counts: Mapping[str, Number]
    """The numbers behind the sentence, of the split that it speaks of."""

    def to_dict(self) -> dict[str, Any]:
        """Return plain values."""
        names = ("key", "title", "light", "value", "unit", "threshold", "sentence", "remedy")
        return {name: getattr(self, name) for name in names} | {
            "splits": {
                label: {"light": reading.light, "value": reading.value, **reading.counts}
                for label, reading in self.readings.items()
            }
        }


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
    if unit in ("share", "days"):
        return percent(value) if unit == "share" else days(value)
    form = {"number": "{:,.0f}", "ratio": "{:.2f} times"}.get(unit, "{:.3g}")
    return form.format(value).replace("-", "−" if unit == "value" else "-")


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
