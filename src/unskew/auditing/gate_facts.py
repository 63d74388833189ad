"""`GateFacts`: what a gate decided, as its texts, chart and files take it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from unskew.auditing.gate_checks import PROMOTE, Better, Check, Popularity, Rail, SegmentCheck
from unskew.auditing.gate_looks import Look
from unskew.auditing.gate_settings import GateSettings
from unskew.auditing.gate_words import first_lines


@dataclass(frozen=True, eq=False, kw_only=True)
class GateFacts:
    """The verdict, and every check."""

    verdict: str
    """`promote`, `hold` or `not settled`."""
    candidate: str
    production: str
    better: Better
    popularity: Popularity
    rails: tuple[Rail, ...]
    segments: tuple[SegmentCheck, ...]
    data: tuple[Check, ...]
    settings: GateSettings
    look: Look
    """Which look at this test log it is, and the level of its tests."""
    references: Mapping[str, float] = field(default_factory=dict)
    """The score of reference systems that were trained on the training ratings."""
    ladder: Mapping[str, float] = field(default_factory=dict)
    """What the lead in precision is made of (`us.bias.ladder`), where training is known."""
    notes: tuple[str, ...] = ()

    @property
    def promoted(self) -> bool:
        """Whether the candidate may replace production."""
        return self.verdict == PROMOTE

    @property
    def checks(self) -> tuple[Check, ...]:
        """All checks, in their order."""
        return (self.better, self.popularity, *self.rails, *self.segments, *self.data)

    def first_lines(self) -> tuple[str, str, str]:
        """Return what to do, why, and how sure, each as one line."""
        return first_lines(
            self.verdict,
            (self.candidate, self.production),
            self.checks,
            alpha=self.look.alpha,
            margin=self.settings.margin,
        )
