"""Every way to split, by name, and the way back from a card."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from typing import Any

from unskew.checks import choose
from unskew.errors import SettingError
from unskew.splits.events import TemporalEvents
from unskew.splits.familiar import FamiliarTraining
from unskew.splits.given import Forced, Given
from unskew.splits.model_ages import ModelAges
from unskew.splits.popularity import Flat, HeadRemoved, Uniform
from unskew.splits.random import Random
from unskew.splits.sessions import Sessions
from unskew.splits.split import Splitter
from unskew.splits.time import Temporal
from unskew.splits.user import LeaveOut, PerUser
from unskew.splits.windows import Windows

PROTOCOLS: dict[str, type[Splitter]] = {
    kind.name: kind
    for kind in (
        Random,
        PerUser,
        LeaveOut,
        Temporal,
        TemporalEvents,
        Windows,
        ModelAges,
        Sessions,
        Uniform,
        Flat,
        HeadRemoved,
        Forced,
        FamiliarTraining,
        Given,
    )
}


def protocol(name: str, **settings: Any) -> Splitter:
    """Build a way to split from its name and settings, such as those of a card.

    Parameters
    ----------
    name
        One of `PROTOCOLS`.
    settings
        Its settings; a nested one is given as a mapping with its own `protocol`.

    Examples
    --------
    >>> from unskew.splits.registry import protocol
    >>> protocol("user", test=0.5)
    PerUser(test=0.5, rounding='floor', number=None, pick='random')
    """
    kind = PROTOCOLS[choose("protocol", name, PROTOCOLS)]
    allowed = [one.name for one in fields(kind)]
    for setting in settings:
        if setting not in allowed:
            raise SettingError(f"{name} has no setting {setting!r}; it has: {', '.join(allowed)}")
    return kind(**{key: _nested(value) for key, value in settings.items()})


def _nested(value: Any) -> Any:
    if isinstance(value, Mapping) and "protocol" in value:
        inner = dict(value)
        return protocol(inner.pop("protocol"), **inner)
    return value
