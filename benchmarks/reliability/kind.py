"""`Kind`: a kind of worlds, by name, and what is stated of it before anything is audited."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from unskew.auditing.self_test.known_world import KnownWorld


@dataclass(frozen=True, kw_only=True)
class Kind:
    """A kind of worlds: from a seed to a world."""

    name: str
    about: str
    """In words: who likes what, what is exposed, who rates."""
    make: Callable[[int], KnownWorld]
    adversarial: bool = False
    """Whether a condition of statements about truth does not hold in its worlds."""
    where_better_is_visible: bool = False
    """Whether, by construction, a truly better system should be recognised as such here."""

    def __call__(self, seed: int) -> KnownWorld:
        """Make the world of a seed."""
        return self.make(seed)
