"""What a metric is: a definition in a registry, filled by decorated functions."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeVar

Value = str | float | int
Params = Mapping[str, Value]
F = TypeVar("F", bound=Callable[..., Any])


@dataclass(frozen=True)
class Param:
    """A setting of a metric: its default, and the words or the range of numbers it takes."""

    default: Value
    words: tuple[str, ...] = ()
    low: float = float("-inf")
    high: float = float("inf")

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


@dataclass(frozen=True)
class Definition:
    """A metric's name, what it computes and what must be known of it."""

    name: str
    compute: Callable[..., Any]
    params: Mapping[str, Param] = field(default_factory=dict)
    better: str = "higher"
    """`higher`, `lower`, or `neither` for a description that is no verdict."""
    low: float = 0.0
    high: float = 1.0
    of: str = "judged"
    """`judged` hits, `items` of the lists, or the whole `run`."""
    anti: bool = True
    """Whether it has an anti-twin."""
    needs: frozenset[str] = frozenset()
    """What must be given beside judgments and runs: `train`, `catalogue`."""
    parts: Callable[[Params], tuple[str, ...]] = lambda params: ()  # noqa: ARG005
    """Which parts of `Block.walk` it is made of."""

    @property
    def summary(self) -> str:
        """The first sentence of the docstring."""
        return (self.compute.__doc__ or "").strip().splitlines()[0]


REGISTRY: dict[str, Definition] = {}


def metric(name: str, **facts: Any) -> Callable[[F], F]:
    """Register a function as the metric `name`; keyword `params` holds its settings."""

    def register(function: F) -> F:
        REGISTRY[name] = Definition(name, function, **facts)
        return function

    return register
