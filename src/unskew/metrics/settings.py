"""Settings of metrics: their default, and what they may be."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

Value = str | float | int
Params = Mapping[str, Value]


@dataclass(frozen=True)
class Param:
    """A setting of a metric: its default, and the words or the range of numbers it takes."""

    default: Value
    words: tuple[str, ...] = ()
    low: float = float("-inf")
    high: float = float("inf")
    synonyms: Params = field(default_factory=dict)
    """Words that mean the same as another word."""

    def read(self, text: str) -> Value:
        """Turn the text after `=` into a value; raise ValueError with what is allowed."""
        if self.words:
            if text.lower() not in self.words:
                raise ValueError(f"one of {', '.join(self.words)}")
            return text.lower()
        try:
            value = float(text)
        except ValueError:
            raise ValueError("a number") from None
        if not self.low < value < self.high:
            raise ValueError(f"a number between {self.low:g} and {self.high:g}")
        return value

    def meaning(self, value: Value) -> Value:
        """Return the word that a value stands for; most stand for themselves."""
        return self.synonyms.get(str(value), value)
