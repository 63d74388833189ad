"""Evaluation setups in words, and the question that each one asks."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

_TEXTS: dict[str, Any] = tomllib.loads(
    Path(__file__).with_name("statements.toml").read_text(encoding="utf-8")
)
PHRASES: dict[str, str] = _TEXTS["designs"]
"""Designs as they stand in a sentence."""
QUESTIONS: dict[str, str] = _TEXTS["questions"]
"""By design: the name of the question that it asks. Between questions nothing is a conflict."""
ASKED: dict[str, str] = _TEXTS["asked"]
"""By name: the question in words."""
RECOMMENDATION = "recommendation"


def phrase(design: str) -> str:
    """Return a design as it stands in a sentence."""
    return PHRASES.get(design, f"under {design}")


def question(design: str) -> str:
    """Return the name of the question that a design asks."""
    return QUESTIONS.get(design, RECOMMENDATION)
