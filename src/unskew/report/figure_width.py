"""Figures as wide as a column of a paper: laid out anew, so that letters keep their size."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from copy import deepcopy
from typing import Any

from unskew.checks import as_number

ONE_COLUMN, TWO_COLUMNS = 241.0, 506.0
"""Points: a column of ACM's two-column format (3.33 inches), and both columns (7 inches)."""
PIXELS = 96 / 72
"""Of a layout, per point."""
LEAST = 0.1
"""No chart is laid out narrower than this share of its inner width: beyond, it is scaled."""
USUAL = 520
"""The inner width of a chart that takes the width of its page."""
_SIZE = re.compile(r'<svg([^>]*?) width="([\d.]+)" height="([\d.]+)"')


def at_width(
    spec: Mapping[str, Any], points: float, draw: Callable[[dict[str, Any]], str]
) -> tuple[str, float]:
    """Return a figure as SVG of a width in points, and its height in points.

    Its title is left out: a paper has a caption. Inner widths are chosen so that the whole,
    labels and legends included, has the width; what is still missing is scaled.

    Parameters
    ----------
    spec
        The Vega-Lite specification.
    points
        The width.
    draw
        Turns a specification into SVG.
    """
    target = as_number("width", points, 36, 2_000) * PIXELS
    factor, seen = 1.0, []
    svg = draw(_scaled(spec, factor))
    for _ in range(4):
        width = _width(svg)
        if abs(width - target) < 0.5:
            break
        seen.append((factor, width))
        factor = _next_factor(seen, target)
        if any(abs(factor - one) < 1e-4 for one, _ in seen):
            break
        svg = draw(_scaled(spec, factor))
    match = _SIZE.search(svg)
    assert match is not None
    height = points * float(match[3]) / float(match[2])
    head = f'<svg{match[1]} width="{points:g}pt" height="{height:.2f}pt"'
    return svg.replace(match[0], head, 1), height


def _next_factor(seen: list[tuple[float, float]], target: float) -> float:
    """Return the factor of inner widths by a line through what was drawn so far."""
    if len(seen) == 1:
        return max(LEAST, seen[0][0] * target / seen[0][1])
    (f0, w0), (f1, w1) = seen[-2:]
    if w0 == w1:
        return f1
    return max(LEAST, f1 + (target - w1) * (f1 - f0) / (w1 - w0))


def _width(svg: str) -> float:
    match = _SIZE.search(svg)
    assert match is not None
    return float(match[2])


def _scaled(spec: Mapping[str, Any], factor: float) -> dict[str, Any]:
    """Return a specification without its title, whose inner widths are multiplied."""
    copy = deepcopy(dict(spec))
    copy.pop("title", None)
    copy["padding"] = 2
    _scale(copy, factor)
    view = copy.setdefault("config", {}) | {}
    view["view"] = {**view.get("view", {}), "continuousWidth": max(20, round(200 * factor))}
    copy["config"] = view
    return copy


def _scale(part: dict[str, Any], factor: float) -> None:
    width = part.get("width")
    if width == "container":
        width = part["width"] = USUAL
    if isinstance(width, int | float):
        part["width"] = max(20, round(width * factor, 1))
    elif isinstance(width, dict) and "step" in width:
        part["width"] = {**width, "step": max(4, round(width["step"] * factor, 2))}
    for key in ("layer", "concat", "hconcat", "vconcat"):
        for one in part.get(key, ()):
            _scale(one, factor)
    if isinstance(part.get("spec"), dict):
        _scale(part["spec"], factor)
