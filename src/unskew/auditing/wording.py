"""How statements write numbers, lists of names and designs."""

from __future__ import annotations

import math
from collections.abc import Sequence

PHRASES = {
    "all-items": "among all items",
    "test-items": "among items that have a test rating",
    "1r": "when one liked item is ranked among 100 others",
    "u1r": "on a test part with equally many ratings per item",
    "p1r": "within groups of equally popular items",
    "test-targets": "among what each user rated",
    "skew": "once item popularity is levelled",
    "wtd-h": "on a test part drawn as if items were shown at random",
    "temporal": "on the last fifth in time",
    "as-given": "on the judgments as they are",
}
"""Designs as they stand in a sentence."""


MOST_DIGITS = 6


def phrase(design: str) -> str:
    """Return a design as it stands in a sentence."""
    return PHRASES.get(design, f"under {design}")


def names(items: Sequence[str], most: int = 4) -> str:
    """Return names in a row: `a, b and c`; beyond `most` the others are counted."""
    shown = list(items[:most])
    if len(items) > most:
        shown.append(f"{len(items) - most} more")
    if len(shown) < 2:
        return "".join(shown)
    return f"{', '.join(shown[:-1])} and {shown[-1]}"


def capital(text: str, systems: Sequence[str] = ()) -> str:
    """Return a text that starts with a capital, unless the name of a system starts it."""
    if any(text.startswith(name) for name in systems):
        return text
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
    while digits < MOST_DIGITS and any(one and not round(one, digits) for one in (low, high)):
        digits += 1
    return f"{signed(value, digits)} [{number(low, digits)}, {number(high, digits)}]"


def points(value: float) -> str:
    """Return a share in points of a hundred: `1.3`, `12`."""
    hundred = round(100 * value, 1)
    text = f"{abs(hundred):.1f}" if abs(hundred) < 10 else f"{abs(hundred):.0f}"
    return f"−{text}" if hundred < 0 and float(text) != 0 else text


def about(count: float) -> str:
    """Return a count with two leading digits: `about 1,400`."""
    whole = max(math.ceil(count), 1)
    if whole >= 100:
        step = 10 ** (len(str(whole)) - 2)
        whole = math.ceil(whole / step) * step
    return f"about {whole:,}"
