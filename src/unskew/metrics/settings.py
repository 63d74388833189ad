"""Settings of metrics: their default, and what they may be."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

import numpy as np

from unskew.arrays import F64, I64

Value = str | float | int
Params = Mapping[str, Value]


@dataclass(frozen=True)
class Param:
    """A setting of a metric: its default, and the words or the range of numbers it takes.

    Examples
    --------
    >>> import unskew as us
    >>> us.metrics.REGISTRY["nDCG"].params["discount"].words
    ('log', 'original')
    >>> us.metrics.Param(0.8, low=0, high=1).read("0.9")
    0.9
    """

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


@dataclass(frozen=True)
class AtRank:
    """A metric of a list whose one relevant item stands at a rank; nothing else has a gain."""

    value: Callable[[F64, Params, int, int | I64], F64]
    """(ranks, settings, cutoff, ranked items, of all lists or of each) to the values. Ranks may be
    fractions."""
    needs_cutoff: bool = False
    settings: frozenset[str] = frozenset()
    """Settings that make sense with one relevant item."""
    gain: str = "ignored"
    """What the relevant item's gain does: `ignored`, `factor` of the value, or `needed` above 0."""
    draws_change_nothing: bool = False
    """Whether its expectation over drawn others is its value over all of them."""


def within_cutoff(
    formula: Callable[[F64, Params, int], F64],
    *,
    needs_cutoff: bool = False,
    settings: frozenset[str] = frozenset(),
    gain: str = "ignored",
) -> AtRank:
    """Return a metric that has `worth(ranks, settings, cutoff)` down to the cutoff, then 0."""

    def value(rank: F64, params: Params, cutoff: int, items: int | I64) -> F64:  # noqa: ARG001
        return np.where(rank <= cutoff, formula(rank, params, cutoff), 0.0)

    return AtRank(value, needs_cutoff, settings, gain)


def _area(rank: F64, params: Params, cutoff: int, items: int | I64) -> F64:  # noqa: ARG001
    area: F64 = 1.0 - (rank - 1.0) / np.maximum(np.subtract(items, 1), 1)
    return area


ALWAYS_1 = within_cutoff(lambda r, params, k: np.ones_like(r))  # noqa: ARG005
PER_CUTOFF = within_cutoff(lambda r, params, k: np.full_like(r, 1.0 / k), needs_cutoff=True)  # noqa: ARG005
HARMONIC = within_cutoff(
    lambda r, params, k: np.full_like(r, 2.0 / (k + 1)),  # noqa: ARG005
    needs_cutoff=True,
)
FIRST_ONLY = within_cutoff(lambda r, params, k: (r <= 1).astype(np.float64))  # noqa: ARG005
RECIPROCAL = within_cutoff(lambda r, params, k: 1.0 / r)  # noqa: ARG005
AREA = AtRank(_area, draws_change_nothing=True)


def _log(rank: F64, params: Params, cutoff: int) -> F64:  # noqa: ARG001
    result: F64 = 1.0 / np.log2(rank + 1.0)
    return result


DISCOUNTED_GAIN = within_cutoff(_log, gain="factor")
NORMALISED_GAIN = within_cutoff(_log, gain="needed")


def _geometric(rank: F64, params: Params, cutoff: int) -> F64:  # noqa: ARG001
    p = float(params["p"])
    result: F64 = (1.0 - p) * p ** (rank - 1.0)
    return result


GEOMETRIC = within_cutoff(_geometric, settings=frozenset({"p"}))
