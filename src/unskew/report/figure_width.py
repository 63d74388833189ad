"""Figures as wide as a column of a paper: laid out anew, so that letters keep their size."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping, Sequence
from copy import deepcopy
from typing import Any, NamedTuple

from unskew.checks import as_number

ONE_COLUMN, TWO_COLUMNS = 241.0, 506.0
"""Points: a column of ACM's two-column format (3.33 inches), and both columns (7 inches)."""
PIXELS = 96 / 72
"""Of a layout, per point."""
USUAL = 520
"""The inner width of a chart that takes the width of its page."""
NARROWEST = 80.0
"""Pixels: no panel is laid out narrower, so that it can still be read."""
SMALLEST = 0.8
"""Rather than to scale letters below this share of their size, fewer panels stand in a row."""
CLOSE = 0.01
"""A layout whose width is off by this share at most is scaled: nobody sees that."""
MOST_DRAWS = 5
_GAP = 12.0
"""Pixels between two entries of a legend."""
_SIZE = re.compile(r'<svg([^>]*?) width="([\d.]+)" height="([\d.]+)"')
_PANEL = re.compile(
    r'<g transform="translate\(([-\d.]+),[-\d.]+\)"><path class="background" aria-hidden="true" '
    r'd="M[\d.]+,[\d.]+h([\d.]+)v[\d.]+h-[\d.]+Z"/>'
)
_ENTRY = re.compile(r'd="M0,0h([\d.]+)v[\d.]+h-[\d.]+Z" pointer-events="none" opacity="1"')


class Layout(NamedTuple):
    """How a figure is made narrower, or wider."""

    factor: float = 1.0
    """Of inner widths."""
    panels: int | None = None
    """The most panels in a row, if not those of the figure."""
    entries: int | None = None
    """The most entries of a legend in a row; None: all of them."""


class FigureSize(NamedTuple):
    """What a layout came out as, in pixels."""

    width: float
    left: float
    """Where the first panel begins."""
    inner: float
    """The width of the widest panel, without what stands around it."""
    panels: int
    """How many stand side by side."""
    legends: tuple[tuple[float, ...], ...]
    """By legend: the widths of its entries."""

    @classmethod
    def of(cls, svg: str) -> FigureSize:
        """Return the size of a drawing by Vega."""
        panels = [(float(x), float(width)) for x, width in _PANEL.findall(svg) if float(width) > 0]
        left = re.search(r'transform="translate\(([-\d.]+),', svg)
        legends = (_ENTRY.findall(part) for part in svg.split('role-legend"')[1:])
        return cls(
            width=float(_head(svg)[2]),
            left=float(left[1]) if left else 0.0,
            inner=max((width for _, width in panels), default=0.0),
            panels=len({x for x, _ in panels}) or 1,
            legends=tuple(tuple(map(float, widths)) for widths in legends if widths),
        )


def at_width(spec: Mapping[str, Any], points: float, draw: Callable[[dict[str, Any]], str]) -> str:
    """Return a figure as SVG of a width in points.

    Its title is left out: a paper has a caption. Inner widths are chosen so that the whole,
    labels and legends included, has the width. Legends that are wider are broken into rows, and
    panels that would be too narrow stand below each other. What is still missing is scaled.

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
    layout: Layout | None = Layout()
    drawings: dict[Layout, tuple[FigureSize, str]] = {}
    while layout is not None and layout not in drawings and len(drawings) < MOST_DRAWS:
        svg = draw(_laid_out(spec, layout))
        drawings[layout] = FigureSize.of(svg), svg
        layout = _next(list(drawings.items()), target, can_wrap="columns" in spec)
    svg = drawings[_best(drawings, target)][1]
    head = _head(svg)
    height = points * float(head[3]) / float(head[2])
    return svg.replace(head[0], f'<svg{head[1]} width="{points:g}pt" height="{height:.2f}pt"', 1)


def without_unit(svg: str) -> str:
    """Return a figure `at_width` for a converter that takes a pixel for a point."""
    return re.sub(r'="([\d.]+)pt"', r'="\1"', svg, count=2)


def _best(drawings: Mapping[Layout, tuple[FigureSize, str]], target: float) -> Layout:
    """Return the layout that has to be scaled least; of equal ones that with the widest panels."""

    def cost(layout: Layout) -> tuple[int, float]:
        return round(50 * abs(math.log(drawings[layout][0].width / target))), -layout.factor

    return min(drawings, key=cost)


def _next(
    drawings: Sequence[tuple[Layout, tuple[FigureSize, str]]], target: float, *, can_wrap: bool
) -> Layout | None:
    """Return the layout to try next; None where the last one has the width, or none will."""
    layout, (size, _) = drawings[-1]
    if abs(size.width - target) < CLOSE * target or not size.inner:
        return None
    before = drawings[-2][1][0] if len(drawings) > 1 else None
    if before is not None and abs(before.width - size.width) < 1:
        return None  # labels make the width, not the panels
    entries = _entries_in_a_row(size, target - size.left)
    around = _around(size, layout.entries) / size.panels
    panels = size.panels
    if can_wrap and before is not None and size.width > target / SMALLEST:
        panels = max(1, panels - 1)
    while can_wrap and panels > 1 and target / panels - around < min(size.inner, NARROWEST):
        panels -= 1
    inner = max(target / panels - around, NARROWEST)
    factor = round(layout.factor * inner / size.inner, 4)
    return Layout(
        factor,
        panels=panels if panels < size.panels else layout.panels,
        entries=min(filter(None, (entries, layout.entries)), default=None),
    )


def _around(size: FigureSize, entries: int | None) -> float:
    """Return the width of what is around the panels: labels and the space between them."""
    legend = max(
        (_legend_width(widths, entries or len(widths)) for widths in size.legends), default=0.0
    )
    if size.left + legend > size.width - 2 * _GAP and legend > size.inner * size.panels:
        return size.left + _GAP  # the legend hides how far labels reach on the right
    return size.width - size.inner * size.panels


def _entries_in_a_row(size: FigureSize, width: float) -> int | None:
    """Return how many entries of every legend fit side by side; None where all do."""
    width /= max(1, len(size.legends))
    fitting = []
    for widths in size.legends:
        numbers = range(len(widths), 1, -1)
        fitting.append(next((n for n in numbers if _legend_width(widths, n) <= width), 1))
    longest = max(map(len, size.legends), default=0)
    return None if not fitting or min(fitting) >= longest else min(fitting)


def _legend_width(widths: Sequence[float], entries: int) -> float:
    """Return the width of a legend with so many entries in a row: a column is as its widest."""
    columns = [max(widths[first::entries]) for first in range(min(entries, len(widths)))]
    return sum(columns) + _GAP * (len(columns) - 1)


def _head(svg: str) -> re.Match[str]:
    head = _SIZE.search(svg)
    assert head is not None
    return head


def _laid_out(spec: Mapping[str, Any], layout: Layout) -> dict[str, Any]:
    """Return a specification in a layout, without its title."""
    copy = deepcopy(dict(spec))
    copy.pop("title", None)
    copy["padding"] = 2
    if layout.panels is not None:
        copy["columns"] = layout.panels
    _scale(copy, layout)
    config = copy.setdefault("config", {}) | {}
    width = max(20, round(200 * layout.factor))
    config["view"] = {**config.get("view", {}), "continuousWidth": width}
    config["axis"] = {"labelSeparation": 4, **config.get("axis", {})}
    if layout.entries is not None:
        config["legend"] = {**config.get("legend", {}), "columns": layout.entries}
    copy["config"] = config
    return copy


def _scale(part: dict[str, Any], layout: Layout) -> None:
    width, factor = part.get("width"), layout.factor
    if width == "container":
        width = part["width"] = USUAL
    if isinstance(width, int | float):
        part["width"] = max(20, round(width * factor, 1))
    elif isinstance(width, dict) and "step" in width:
        part["width"] = {**width, "step": max(4, round(width["step"] * factor, 2))}
    for channel in part.get("encoding", {}).values():
        legend = channel.get("legend") if isinstance(channel, dict) else None
        if isinstance(legend, dict) and layout.entries is not None:
            legend.pop("columns", None)
    for key in ("layer", "concat", "hconcat", "vconcat"):
        for child in part.get(key, ()):
            _scale(child, layout)
    if isinstance(part.get("spec"), dict):
        _scale(part["spec"], layout)
