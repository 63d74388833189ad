"""Figures of a column's width: few layouts, readable letters, one drawing for all formats."""

import json
import re

import altair as alt
import pytest

from unskew.report import charts
from unskew.report.charts import Figure, as_figure, split_counts
from unskew.report.figure_width import (
    MOST_DRAWS,
    NARROWEST,
    ONE_COLUMN,
    PIXELS,
    SMALLEST,
    TWO_COLUMNS,
    FigureSize,
)

SYSTEMS = [f"{name} (reference)" for name in ("smoothed-average", "item-knn", "wrmf", "slim")]
MANY = [*SYSTEMS, *(f"{name} 2" for name in SYSTEMS)]
WIDTHS = [ONE_COLUMN, TWO_COLUMNS]


@pytest.fixture
def draws(monkeypatch):
    """Return the specifications that are drawn, and what else the converter is asked for."""
    import vl_convert

    calls = {}

    def count(name):
        true = getattr(vl_convert, name)

        def counted(source, **settings):
            calls.setdefault(name, []).append(source)
            return true(source, **settings)

        monkeypatch.setattr(vl_convert, name, counted)

    for name in dir(vl_convert):
        if "_to_" in name:
            count(name)
    charts._drawn.cache_clear()
    yield calls
    charts._drawn.cache_clear()


def lines(names, **legend):
    """A chart whose legend is wider than a column."""
    rows = [{"x": x, "y": x * at, "system": name} for at, name in enumerate(names) for x in (1, 2)]
    color = alt.Color("system:N").legend(**legend) if legend else "system:N"
    chart = alt.Chart(alt.NamedData(name="rows"), width=520, height=200).mark_line()
    return as_figure(chart.encode(x="x:Q", y="y:Q", color=color), "Lines", [], rows)


def panels(columns=4, width=304):
    """A chart with a panel per system, side by side."""
    rows = [{"x": x, "y": x, "system": name} for name in SYSTEMS for x in (1, 2)]
    chart = alt.Chart(alt.NamedData(name="rows"), width=width, height=80).mark_point()
    chart = chart.encode(x="x:Q", y="y:Q")
    chart = chart.facet(facet=alt.Facet("system:N", title=None), columns=columns)
    return as_figure(chart, "Panels", [], rows)


CASES = {
    "legend": lines(MANY),
    "legend with columns": lines(MANY, columns=8),
    "panels": panels(),
    "panels of steps": panels(width=alt.Step(26)),
    "one": split_counts(train=[80, 30, 10, 5, 3], test=[20, 10, 0, 2, 1]),
}


def inner_widths(spec):
    """Return the widths of the panels in a specification."""
    parts = [spec, *(spec[key] for key in ("spec",) if key in spec)]
    return [part["width"] for part in parts if isinstance(part.get("width"), int | float)]


@pytest.mark.parametrize("points", WIDTHS)
@pytest.mark.parametrize("case", CASES)
def test_letters_keep_their_size_in_a_few_layouts(case, points, draws):
    svg = CASES[case]._as(".svg", points).decode()
    specs = draws["vegalite_to_svg"]
    assert len(specs) <= MOST_DRAWS
    # No layout goes astray: one of a million pixels takes as long as hundreds of others.
    assert max(max(inner_widths(spec), default=0) for spec in specs) < 2 * points * PIXELS
    width, box = re.search(r'width="([\d.]+)pt" height="[\d.]+pt" viewBox="([^"]+)"', svg).groups()
    assert float(width) == points
    scale = points * PIXELS / float(box.split()[2])
    assert SMALLEST <= scale < 1.03
    size = FigureSize.of(svg.replace("pt", ""))
    assert size.inner >= NARROWEST - 1
    texts = re.findall(r">([^<>]*reference[^<>]*)</text>", svg)
    assert not [text for text in texts if "…" in text]


def test_legends_and_panels_are_broken_into_rows_only_where_they_must(draws):
    CASES["legend"]._as(".svg", ONE_COLUMN)
    narrow = draws["vegalite_to_svg"][-1]
    assert narrow["config"]["legend"]["columns"] == 1
    CASES["legend with columns"]._as(".svg", TWO_COLUMNS)
    wide = draws["vegalite_to_svg"][-1]
    assert wide["config"]["legend"]["columns"] in (3, 4)
    assert "columns" not in wide["encoding"]["color"]["legend"]
    CASES["panels"]._as(".svg", ONE_COLUMN)
    assert draws["vegalite_to_svg"][-1]["columns"] < 3
    CASES["one"]._as(".svg", ONE_COLUMN)
    assert "columns" not in draws["vegalite_to_svg"][-1]["config"]["legend"]


@pytest.mark.parametrize("width", [None, ONE_COLUMN])
def test_a_figure_is_drawn_once_for_all_formats(tmp_path, width, draws):
    figure = CASES["one"]
    figure.save(tmp_path / "a.svg", width=width)
    layouts = len(draws["vegalite_to_svg"])
    equal = Figure("again", json.loads(json.dumps(figure.spec)))
    equal.save(tmp_path / "b.svg", width=width)
    figure.save(tmp_path / "a.pdf", width=width)
    if width is None:
        figure.save(tmp_path / "a.png")
        assert layouts == 1
    assert len(draws.pop("vegalite_to_svg")) == layouts
    assert {name: len(calls) for name, calls in draws.items()} == {"svg_to_pdf": 1} | (
        {"svg_to_png": 1} if width is None else {}
    )
    assert (tmp_path / "a.svg").read_bytes() == (tmp_path / "b.svg").read_bytes()
    pdf = (tmp_path / "a.pdf").read_bytes()
    assert b"/Font" in pdf  # letters, not outlines or pixels
    assert b"/Image" not in re.sub(rb"/ProcSet \[[^]]*\]", b"", pdf)


def test_pictures_equal_those_drawn_from_the_specification(tmp_path):
    """svg_to_png and svg_to_pdf give what Vega-Lite gives directly; a PDF but for its order."""
    figure = CASES["legend"]
    convert, version = charts.converter(figure.spec)
    offline = {"vl_version": version, "allowed_base_urls": []}
    spec = dict(figure.spec)
    assert figure._as(".png") == convert.vegalite_to_png(spec, scale=2, **offline)
    pdf = figure._as(".pdf")
    direct = convert.vegalite_to_pdf(spec, **offline)
    assert len(pdf) == len(direct)
    assert sorted(pdf.split(b"\n")[:20]) == sorted(direct.split(b"\n")[:20])


def test_names_that_xml_cannot_hold_are_drawn_at_a_width_too():
    svg = lines(["a\x00b", "c\ud800", "d\uffff"])._as(".svg", ONE_COLUMN).decode()
    assert "a\\x00b" in svg
