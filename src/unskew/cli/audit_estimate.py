"""What `unskew audit` says of its cost before it runs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from unskew.errors import UnskewError

if TYPE_CHECKING:
    from unskew.auditing.estimate import Estimate

WORTH_A_LINE = 20.0
"""Seconds from which on the estimate is printed before an audit."""
WORTH_LESS = 60.0
"""Seconds from which on a faster level is offered."""
TAKEN = (
    "algorithms",
    "designs",
    "users",
    "splits",
    "tune",
    "memory",
    "liked",
    "above",
    "relevance",
)
"""The arguments of an audit that its estimate takes."""


def estimate_of(level: str, settings: Mapping[str, Any]) -> Estimate:
    """Return what an audit with these settings will take."""
    from unskew.auditing.estimate import estimate_audit
    from unskew.data.filters import apply_filters

    chosen = {name: settings[name] for name in TAKEN if settings.get(name) is not None}
    data = settings["data"]
    if settings.get("filters"):
        data = replace(data, ratings=apply_filters(data.ratings, settings["filters"]))
    return estimate_audit(data, level, **chosen)


def lines_before(level: str, settings: Mapping[str, Any], estimate: Estimate) -> list[str]:
    """Return what to print before an audit; nothing where it is short."""
    from unskew.auditing.estimate import beyond_bounds, in_time

    lines = [f"{name}: {why}" for name, why in beyond_bounds(estimate.work).items()]
    if estimate.seconds < WORTH_A_LINE:
        return lines
    line = f"This takes {estimate.line()}"
    if settings.get("store") is not None:
        line += ", less for what the store already holds"
    if level != "quick" and estimate.seconds >= WORTH_LESS:
        try:
            quick = estimate_of("quick", settings).seconds
        except UnskewError:
            quick = estimate.seconds
        if quick < estimate.seconds / 2:
            line += f"; --quick takes about {in_time(quick)}"
    return [f"{line}.", *lines]
