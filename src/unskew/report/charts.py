"""`Figure`, and the charts: plain numbers in, a chart specification out.

Results call these from their `figure()`. altair is imported when a chart is drawn, vl-convert when
it is saved.
"""

from __future__ import annotations

import html
import json
import os
import re
from collections.abc import Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from string import Template
from types import ModuleType
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from unskew.arrays import I64
from unskew.checks import choose
from unskew.engine.files import replacing
from unskew.errors import DataError, SettingError, UnskewError
from unskew.report.figure_width import at_width, without_unit
from unskew.report.text import counted, visible

if TYPE_CHECKING:
    import altair as alt

MOST_ROWS = 5_000
"""The most rows of data in one figure: more is slow to draw and no easier to read."""
FORMATS = (".svg", ".png", ".pdf", ".html", ".json")
SCALES = ("linear", "log")

# Okabe and Ito's colours, which the colour-blind can tell apart.
ORANGE, SKY, GREEN, YELLOW = "#E69F00", "#56B4E9", "#009E73", "#F0E442"
BLUE, VERMILION, PURPLE, GREY = "#0072B2", "#D55E00", "#CC79A7", "#999999"
PALETTE = (BLUE, ORANGE, GREEN, PURPLE, SKY, VERMILION, YELLOW, GREY)
MORE_COLOURS = ("#117733", "#882255", "#44AA99", "#AA4499")
"""For the systems after the sixth: of Tol's muted scheme, told apart from the others."""
PARTS = {"training": BLUE, "test": VERMILION}

INK = "#333333"
# The converter brings Liberation Sans along and Arial is as wide: the same layout everywhere.
LOOK: dict[str, Any] = json.loads(Path(__file__).with_name("look.json").read_text(encoding="utf-8"))
"""Fonts, axes and legends of all charts: a configuration of Vega-Lite."""


@dataclass(frozen=True)
class Figure:
    """A chart: to show in a notebook, or to save.

    Parameters
    ----------
    title
        What it shows, in a few words.
    spec
        Its Vega-Lite specification, the data included, at most 5,000 rows.

    Examples
    --------
    >>> from unskew.report.charts import split_counts
    >>> figure = split_counts(train=[8, 3, 1], test=[2, 1, 0])
    >>> figure
    Figure('Ratings per item', 8 rows)
    >>> figure.save("counts.svg")  # doctest: +SKIP
    """

    title: str
    spec: Mapping[str, Any] = field(repr=False, hash=False)

    def __post_init__(self) -> None:
        if self._rows() > MOST_ROWS:
            raise SettingError(
                f"a figure holds at most {MOST_ROWS:,} rows of data, and {self.title!r} has "
                f"{self._rows():,}: aggregate them first, or take fewer bins"
            )

    def to_dict(self) -> dict[str, Any]:
        """Return the Vega-Lite specification; a copy, which may be changed."""
        return deepcopy(dict(self.spec))

    def to_svg(self) -> str:
        """Return the figure as a still picture, the text of an SVG file."""
        return self._as(".svg").decode()

    def save(self, path: str | os.PathLike[str], width: float | None = None) -> None:
        """Write the figure; nothing is loaded from elsewhere, neither now nor when it is shown.

        Parameters
        ----------
        path
            Its ending says what is written: `.svg`, `.png`, `.pdf`, `.html` (a page that needs
            nothing else) or `.json` (the Vega-Lite specification).
        width
            In points, of `.svg` and `.pdf` for a paper: 241 is one column, 506 both columns of
            ACM's format. The chart is laid out anew without its title; letters have 9 points. Wide
            legends are broken into rows, and narrow panels stand below each other.
        """
        ending = choose("file ending", Path(path).suffix.lower(), FORMATS)
        if width is not None:
            choose("file ending of a figure with a width", ending, (".svg", ".pdf"))
        content = self._as(ending, width)
        with replacing(path) as part:
            part.write_bytes(content)

    def _as(self, ending: str, width: float | None = None) -> bytes:
        if ending == ".json":
            return (json.dumps(self.spec, indent=1, allow_nan=False) + "\n").encode()
        convert, version = converter(self.spec)
        if ending == ".html":
            return page(self.title, self.spec, convert.javascript_bundle(vl_version=version))
        svg = _drawn(json.dumps(self.spec), width)
        if ending == ".svg":
            return svg.encode()
        if ending == ".pdf":
            return bytes(convert.svg_to_pdf(svg if width is None else without_unit(svg)))
        return bytes(convert.svg_to_png(svg, scale=2))

    def _rows(self) -> int:
        inline = self.spec.get("data", {}).get("values", ())
        return sum(len(rows) for rows in (inline, *self.spec.get("datasets", {}).values()))

    def _repr_mimebundle_(self, **_: object) -> dict[str, dict[str, Any] | str]:
        """Give notebooks the live chart, and a still picture for those that cannot draw it."""
        major = _grammar(self.spec).split(".")[0]
        return {
            "text/plain": repr(self),
            "image/svg+xml": self.to_svg(),
            f"application/vnd.vegalite.v{major}+json": self.to_dict(),
        }

    def __repr__(self) -> str:
        return f"Figure({self.title!r}, {self._rows():,} rows)"


def system_colours(systems: Sequence[str]) -> dict[str, str]:
    """Return a colour for each system, the same in every chart of a report.

    Yellow is too faint for lines and points. After the tenth, systems are grey: their names tell
    them apart.

    Examples
    --------
    >>> from unskew.report.charts import system_colours
    >>> system_colours(["ease", "popularity"])
    {'ease': '#0072B2', 'popularity': '#E69F00'}
    """
    colours = [one for one in (*PALETTE, *MORE_COLOURS) if one not in (YELLOW, GREY)]
    others = [GREY] * max(0, len(systems) - len(colours))
    return dict(zip(systems, [*colours, *others], strict=False))


# Saving


@lru_cache(maxsize=16)
def _drawn(text: str, width: float | None) -> str:
    """Return a specification, as JSON, drawn as SVG; kept, as other formats are made from it."""
    spec = _drawable(json.loads(text))
    convert, version = converter(spec)

    def draw(layout: dict[str, Any]) -> str:
        return str(convert.vegalite_to_svg(layout, vl_version=version, allowed_base_urls=[]))

    return draw(spec) if width is None else at_width(spec, width, draw)


def _drawable(value: Any) -> Any:
    """Return a specification whose texts XML can hold: others would end the process, not raise."""
    if isinstance(value, str):
        text = visible(value, breaks=True).encode("utf-8", "backslashreplace").decode()
        return text.replace("\ufffe", "\\ufffe").replace("\uffff", "\\uffff")
    if isinstance(value, Mapping):
        return {_drawable(key): _drawable(one) for key, one in value.items()}
    if isinstance(value, list | tuple):
        return [_drawable(one) for one in value]
    return value


def converter(spec: Mapping[str, Any]) -> tuple[ModuleType, str]:
    """Return vl-convert and the version of Vega-Lite it should take for a specification."""
    try:
        import vl_convert
    except ImportError as error:
        raise UnskewError(
            "saving a figure needs the package vl-convert-python: pip install vl-convert-python "
            "(only .json can be written without it)"
        ) from error
    version, versions = _grammar(spec), vl_convert.get_vegalite_versions()
    if version not in versions:
        raise UnskewError(
            f"the figure is written for Vega-Lite {version}, and this vl-convert-python knows "
            f"{', '.join(versions)}: pip install --upgrade altair vl-convert-python"
        )
    return vl_convert, version


def _grammar(spec: Mapping[str, Any]) -> str:
    """Return the version of Vega-Lite a specification names, such as `6.4`."""
    version = re.search(r"/v(\d+\.\d+)[^/]*\.json$", spec.get("$schema", ""))
    if not version:
        raise SettingError("a figure's specification names its version of Vega-Lite in '$schema'")
    return version[1]


def script_json(value: object) -> str:
    """Return a value as JSON that is safe inside a `<script>` element, whatever text it holds."""
    return json.dumps(value, separators=(",", ":"), allow_nan=False).replace("<", "\\u003c")


def page(title: str, spec: Mapping[str, Any], bundle: str) -> bytes:
    """Return a page that shows a chart and needs nothing else.

    Its policy forbids it to load anything; Vega compiles its expressions, hence `unsafe-eval`.
    """
    template = Template(Path(__file__).with_name("figure.html").read_text(encoding="utf-8"))
    return template.substitute(
        title=html.escape(title), bundle=bundle, spec=script_json(spec)
    ).encode()


# Drawing


def as_figure(
    chart: alt.TopLevelMixin, title: str, notes: Sequence[str], rows: Sequence[Mapping[str, Any]]
) -> Figure:
    """Put an altair chart of the data named `rows` into our look.

    It is taken as a part of a whole (`top_level` is False), because altair adds its global
    settings, which belong to the user, to the whole only.
    """
    import altair as alt

    # Our charts are drawn in tests: their form need not be checked again each time.
    part = chart.to_dict(validate=False, context={"top_level": False, "pre_transform": False})
    spec = {
        "$schema": alt.SCHEMA_URL,
        "background": "white",
        "padding": 12,
        "title": {"text": title, "subtitle": list(notes)},
        **part,
        "config": LOOK,
        "datasets": {"rows": [dict(row) for row in rows]},
    }
    return Figure(title, spec)


def split_counts(
    train: ArrayLike,
    test: ArrayLike,
    *,
    scale: str = "linear",
    bins: int = 500,
    label: str = "split",
) -> Figure:
    """Draw how many training and test ratings items have, the most rated first.

    bellogin2017 figure 6. Linear: the test ratings below, the training ratings on top of them, so
    that the outline is the number of all ratings. Items without any rating are not drawn; the
    subtitle counts them.

    Parameters
    ----------
    train, test
        Training and test ratings of each item.
    scale
        `linear`, or `log`: two lines, over log(1 + n) so that zero has a place.
    bins
        With more items than this, each step is the mean of items next to each other in rank.
    label
        What the split is called.
    """
    choose("scale", scale, SCALES)
    if bins < 1:
        raise SettingError(f"bins={bins}: at least one is needed")
    parts = dict(zip(PARTS, _counts(train, test), strict=True))
    everything = sum(parts.values())
    rated = int(np.count_nonzero(everything))
    order = np.argsort(-everything, kind="stable")[:rated]
    edges = np.arange(min(bins, rated) + 1) * rated // min(bins, rated)
    rows = [row for part, counts in parts.items() for row in _steps(part, counts[order], edges)]
    top = max(1.0, *(row["ratings"] for row in rows))
    chart = _stacked(rated) if scale == "linear" else _lines(rated, top)
    return as_figure(chart, "Ratings per item", _split_notes(label, parts, rated, edges), rows)


def _stacked(items: int) -> alt.Chart:
    """Draw test ratings and, on top of them, training ratings."""
    import altair as alt

    area: alt.Chart = _by_rank(items, "square").mark_area(interpolate="step-after", opacity=1)
    y = alt.Y("ratings:Q", title="ratings per item").stack("zero").axis(tickMinStep=1)
    below_first = alt.Order("part:N", sort="ascending")  # test, then training
    return area.encode(y=y, order=below_first)


def _lines(items: int, top: float) -> alt.Chart:
    """Draw a line each over a log axis: on it, parts cannot be stacked."""
    import altair as alt

    y = alt.Y("ratings:Q", title="ratings per item (log scale)")
    y = y.scale(type="symlog", constant=1, domain=[0, top], nice=False)
    y = y.axis(values=_decades(top), format=",d")
    line: alt.Chart = _by_rank(items, "stroke").mark_line(interpolate="step-after", strokeWidth=1.5)
    return line.encode(y=y)


def _by_rank(items: int, symbol: str) -> alt.Chart:
    """Lay out what both scales share: items from left to right, a colour for each part."""
    import altair as alt

    x = alt.X("left:Q", title="items, most rated first")
    x = x.scale(domain=[0, items], nice=False).axis(values=_even(items), format=",d")
    color = alt.Color("part:N").scale(domain=list(PARTS), range=list(PARTS.values()))
    color = color.legend(symbolType=symbol)
    return alt.Chart(alt.NamedData(name="rows"), width=520, height=260).encode(x=x, color=color)


def _counts(train: ArrayLike, test: ArrayLike) -> tuple[I64, I64]:
    first, second = np.asarray(train), np.asarray(test)
    for name, counts in (("train", first), ("test", second)):
        if counts.ndim != 1 or counts.dtype.kind not in "iu" or (counts < 0).any():
            raise DataError(f"{name}: not a number of ratings (0, 1, 2 …) for each item")
    if first.size != second.size:
        raise DataError(f"train is of {first.size:,} items, test of {second.size:,}")
    if not first.any() and not second.any():
        raise DataError("there are no ratings to draw")
    return first.astype(np.int64), second.astype(np.int64)


def _steps(part: str, counts: I64, edges: I64) -> list[dict[str, Any]]:
    """Return a row per bin: where it begins, how many items it holds, their mean."""
    items = np.diff(edges)
    means = (np.add.reduceat(counts, edges[:-1]) / items).tolist()
    steps = zip(edges.tolist(), [*items.tolist(), 0], [*means, means[-1]], strict=True)
    # The last row holds no items: it ends the last step.
    return [{"part": part, "left": left, "items": n, "ratings": mean} for left, n, mean in steps]


def _even(top: int) -> list[int]:
    """Return where an axis of whole numbers from 0 has its labels: six or fewer steps."""
    power = 10 ** len(str(top // 6))
    step = next(s for s in (power // 10, power // 5, power // 2, power) if top <= 6 * max(s, 1))
    return list(range(0, top + 1, max(step, 1)))


def _decades(top: float) -> list[int]:
    """Return where a log axis that begins at 0 has its labels."""
    powers = [10**power for power in range(len(str(int(top))))]
    steps = powers if top >= 1_000 else [m * power for power in powers for m in (1, 2, 5)]
    return [0, *(step for step in steps if step <= top)]


def _split_notes(label: str, parts: Mapping[str, I64], rated: int, edges: I64) -> list[str]:
    """Say what is drawn, and what is not."""
    sizes = " and ".join(f"{int(counts.sum()):,} {part}" for part, counts in parts.items())
    notes = [f"{label}: {sizes} ratings of {counted(rated, 'item')}"]
    widths = sorted(set(np.diff(edges).tolist()))
    if widths[-1] > 1:
        notes.append(f"each step is the mean of {' or '.join(f'{w:,}' for w in widths)} items")
    unrated = parts["training"].size - rated
    if unrated:
        notes.append(f"not drawn: {counted(unrated, 'item')} without ratings")
    return notes
