"""The page in a browser: three widths, light and dark, folds, filters, terms, paper."""

import json
import os
import re
from pathlib import Path

import numpy as np
import polars as pl
import pytest

import unskew as us
from shared.browser import Browser, browser, needs_chromium, pages_of  # noqa: F401
from unskew.auditing.audit import audit
from unskew.report.charts import as_figure, system_colours
from unskew.report.document import (
    Code,
    Document,
    Fact,
    Fold,
    Headline,
    Link,
    Picture,
    Section,
    Term,
    Terms,
    Words,
)
from unskew.report.page import SIGNS, as_html, rows_of
from unskew.report.tables import Table

WIDTHS = ((1440, 900), (768, 1024), (390, 844))
GLOSSARY = (
    Term("chance", "What a random order scores."),
    Term("P@10", "The share of liked items among the first ten.", ("precision",)),
    Term("design", "What is tested & ranked.", ("designs",)),
)


def scores(systems, designs=4):
    values = np.linspace(0.1, 0.3, len(systems) * designs).tolist()
    return pl.DataFrame(
        {
            "design": [f"design {at}" for at in range(designs) for _ in systems],
            "system": [*systems] * designs,
            "value": values,
            "chance": [0.05] * len(values),
        }
    )


def faceted(table, systems):
    """Return a chart with a panel per design, and one with steps for categories."""
    import altair as alt

    colours = system_colours(systems)
    scale = alt.Scale(domain=list(colours), range=list(colours.values()))
    points = alt.Chart(alt.NamedData(name="rows"), width=200, height=120).mark_point()
    points = points.encode(
        x="value:Q",
        y=alt.Y("system:N", sort=list(systems)),
        color=alt.Color("system:N").scale(scale),
        tooltip=["system:N", "value:Q"],
    )
    panels = points.facet(alt.Facet("design:N", title=None), columns=4)
    cells = alt.Chart(alt.NamedData(name="rows")).mark_rect().encode(x="system:N", y="design:N")
    cells = cells.encode(color="value:Q").properties(width=alt.Step(60), height=alt.Step(24))
    rows = table.to_dicts()
    notes = ["a subtitle that is long enough to need more than one line on a phone, which wraps it"]
    return (
        as_figure(panels, "P@10 of every system under every design", notes, rows),
        as_figure(cells, "A matrix", [], rows),
    )


def document(systems=("ease", "puresvd", "popularity", "a system with a rather long name")):
    """Return a document with every kind of part."""
    table = scores(systems)
    panels, matrix = faceted(table.head(2_000), systems)
    grid = Table("P@10 by design", table, names=("design", "system", "P@10", "chance"))
    target = Table("Rates", pl.DataFrame({"kind": ["a", "b"]}), anchors=("rate-a", "rate-b"))
    sections = (
        Section(
            "scores",
            "Scores",
            "What every system scores.",
            (
                Words("Precision is the share; chance is what a random order has."),
                Picture(panels, "A note."),
                grid,
                Picture(matrix),
                Code("Commands", "\n".join(f"line {at}" for at in range(30))),
            ),
            guide=("Each point is a system.",),
        ),
        Section(
            "more",
            "More",
            "What else there is.",
            (Fold("All of it", (target, Picture(matrix))), Words("No dead link.", link=DEAD)),
            is_open=False,
        ),
    )
    facts = (Fact("1 in 14 lists", "has one more good item."), Fact("412 / 233", "better, worse."))
    return Document(
        "How far to trust it",
        (
            Words("First sentence about chance.", link=Link("more", "rate-b")),
            Words("Report both.", head="To do:"),
        ),
        sections,
        systems=tuple(systems),
        headline=Headline("No system is best", "depends", facts, Picture(panels)),
        glossary=GLOSSARY,
    )


DEAD = Link("nowhere", "nothing")


@pytest.fixture(scope="module")
def page(tmp_path_factory):
    path = tmp_path_factory.mktemp("page") / "page.html"
    path.write_bytes(as_html(document()))
    return path


# Without a browser


def test_terms_are_marked_once_per_part_and_only_as_whole_words():
    terms = Terms(GLOSSARY)
    marked = terms.mark("Designs & <b> redesign a design; anti-P@10, precision, P@10")
    assert marked.count('class="term"') == 2
    assert ">Designs</span> &amp; &lt;b&gt; redesign a design; anti-P@10, " in marked
    assert ">precision</span>, P@10" in marked
    assert "class" not in terms.mark("design")
    terms.start()
    assert 'aria-describedby="term-2"' in terms.mark("design")
    assert "chance</dt>" in terms.listed()
    assert "What is tested &amp; ranked." in terms.listed()
    assert not Terms(())
    assert Terms(()).mark("a < b") == "a &lt; b"
    assert terms.question_mark("value") == ""
    assert 'aria-label="explain P@10"' in terms.question_mark("mean P@10")


def test_every_link_of_a_page_leads_somewhere(page):
    body = page.read_text().rsplit("<body>", 1)[1]
    ids = re.findall(r' id="([^"]+)"', body)
    assert len(ids) == len(set(ids))
    assert set(re.findall(r'href="#([^"]+)"', body)) <= set(ids)
    assert set(re.findall(r'aria-describedby="([^"]+)"', body)) <= set(ids)
    assert set(re.findall(r'aria-labelledby="([^"]+)"', body)) <= set(ids)
    assert "nowhere" not in body


@pytest.mark.parametrize("status", SIGNS)
def test_a_verdict_has_a_sign_and_words(status):
    words, _ = SIGNS[status]
    shown = []
    for verdict in ("It is so.", f"{words}: it is so."):
        html = as_html(Document("t", (), (), headline=Headline(verdict, status))).decode()
        banner = re.search(r'<div class="banner.*?</div>', html)[0]
        assert "<path" in banner
        assert banner.count(words) == 1
        shown.append(banner)
    assert 'class="status"' in shown[0]


def test_words_stand_with_what_they_lead_to():
    few, many = Words("few"), Words("many " * 80)
    small = Table("t", pl.DataFrame({"a": [1]}))
    wide = Table("t", pl.DataFrame({"a": ["long " * 20]}))

    def rows(*blocks):
        numbered = [(str(at), block) for at, block in enumerate(blocks)]
        return [tuple("".join(key for key, _ in cell) for cell in row) for row in rows_of(numbered)]

    assert rows(few, small, small) == [("01", "2")]
    assert rows(many, small, small, small) == [("0", "1"), ("2", "3")]
    assert rows(many, wide, few, wide) == [("01",), ("23",)]
    assert rows(small, wide, small) == [("0",), ("1",), ("2",)]
    assert rows(small, many, small, few) == [("0",), ("1", "2"), ("3",)]
    assert rows() == []


def test_markdown_and_json_hold_the_headline_and_the_glossary():
    text = document().to_markdown()
    assert text.startswith("# How far to trust it\n\n**No system is best**\n\n- **1 in 14 lists**")
    assert "Each point is a system." in text
    assert "- **chance**: What a random order scores." in text
    headline = json.loads(document().to_json())["headline"]
    assert headline["status"] == "depends"
    assert headline["facts"][1] == {"value": "412 / 233", "text": "better, worse."}


# In a browser

MEASURE = """(() => {
  const charts = [...document.querySelectorAll("[data-chart]")].filter((one) => one.dataset.drawn);
  const root = document.documentElement;
  const wide = charts.filter((place) => {
    const svg = place.querySelector("svg.marks, svg").getBoundingClientRect();
    return svg.right > place.closest("figure").getBoundingClientRect().right + 1;
  });
  return {
    charts: charts.length, wide: wide.map((one) => one.dataset.chart),
    scroll: root.scrollWidth - root.clientWidth, height: root.scrollHeight,
    used: charts.map((place) => place.querySelector("svg.marks, svg").getBoundingClientRect().width
      / place.clientWidth),
    names: charts.map((place) => place.querySelector('svg[role="img"]').getAttribute("aria-label")),
  };
})()"""


def unfold(browser):  # noqa: F811
    browser.run("document.querySelector('[data-unfold]').click()")
    browser.run("new Promise((done) => setTimeout(done, 100)).then(() => report.drawAll())")


@needs_chromium
@pytest.mark.parametrize(("width", "height"), WIDTHS)
def test_nothing_is_wider_than_its_column(browser, page, width, height):  # noqa: F811
    browser.open(page, width, height)
    measured = browser.run(MEASURE)
    assert measured["charts"] == 3  # not the one in a fold
    unfold(browser)
    measured = browser.run(MEASURE)
    assert measured["charts"] == 4
    assert measured["wide"] == []
    assert measured["scroll"] <= 0
    assert min(measured["used"][:2]) > 0.85  # panels fill the column
    assert measured["names"][1].startswith("P@10 of every system under every design. a subtitle")
    assert browser.log == []
    if width < 500:
        order = "['.banner', '.facts', '.lead', '[data-chart=headline]']"
        tops = browser.run(f"{order}.map((one) => document.querySelector(one).offsetTop)")
        assert tops == sorted(tops)
    if width > 1000:
        chart = browser.run("document.querySelector('#chart-headline').getBoundingClientRect()")
        assert browser.run("document.querySelector('.first').getBoundingClientRect().bottom") < 900
        assert chart is not None


@needs_chromium
def test_charts_follow_the_window(browser, page):  # noqa: F811
    browser.open(page)
    browser.size(768, 1024)
    browser.run("new Promise((done) => setTimeout(done, 400)).then(() => report.drawAll())")
    assert browser.run(MEASURE)["wide"] == []
    assert browser.run(MEASURE)["scroll"] <= 0


@needs_chromium
def test_an_address_opens_the_folds_around_its_place(browser, page):  # noqa: F811
    folds = "['.section', '.fold'].map((one) => document.querySelector('#more ' + one).open)"
    browser.open(page, fragment="#rate-b")
    assert browser.run(folds) == [True, True]
    browser.run("report.drawAll()")
    assert browser.run("document.querySelector('#more [data-chart]').dataset.drawn") == "yes"
    browser.open(page)
    assert browser.run(folds) == [False, False]
    browser.run("document.querySelector('nav a[href=\"#more\"]').click()")
    browser.run("new Promise((done) => setTimeout(done, 100))")
    assert browser.run(folds) == [True, False]
    browser.open(page, fragment="#metric=P@10&design=%E0")  # not a place: nothing happens
    assert browser.log == []


@needs_chromium
def test_rows_are_filtered_and_systems_hidden(browser, page):  # noqa: F811
    browser.open(page)
    shown = """[...document.querySelectorAll("#scores tbody tr")].filter((r) => !r.hidden).length"""
    everything = browser.run(shown)
    assert everything == 16
    search = "const box = document.querySelector('#scores input[type=search]');"
    typed = "box.dispatchEvent(new Event('input')); new Promise((done) => setTimeout(done, 200))"
    browser.run(f"{{ {search} box.value = 'DESIGN ease'; {typed} }}")
    assert browser.run(shown) == 4
    assert browser.run("document.querySelector('#scores output').textContent") == "4 of 16 rows"
    browser.run(f"{{ {search} box.value = ''; {typed} }}")
    assert browser.run(shown) == everything
    browser.run("document.querySelector('.systems input').click()")
    assert browser.run(shown) == 12


@needs_chromium
def test_a_hidden_system_takes_its_pairs_along(browser, tmp_path):  # noqa: F811
    pairs = pl.DataFrame(
        {"design": ["all", "all", "all"], "a": ["x", "x", "y"], "b": ["y", "z", "z"]}
    )
    table = Table("Pairs", pairs, names=("design", "system", "compared with"))
    whole = Document("t", (), (Section("pairs", "P", "Pairs.", (table,)),), systems=("x", "y", "z"))
    path = tmp_path / "pairs.html"
    path.write_bytes(as_html(whole))
    browser.open(path)
    shown = """[...document.querySelectorAll("#pairs tbody tr")].map((row) => !row.hidden)"""
    assert browser.run(shown) == [True, True, True]
    browser.run("document.querySelectorAll('.systems input')[2].click()")
    assert browser.run(shown) == [True, False, False]


@needs_chromium
def test_another_script_can_give_the_main_chart_other_rows(browser, page):  # noqa: F811
    browser.open(page)
    texts = "[...document.querySelectorAll('#chart-headline svg text')].map((t) => t.textContent)"
    rows = [{"design": "mine", "system": name, "value": 0.5} for name in ("ease", "puresvd")]
    browser.run(f"report.redraw('headline', {json.dumps(rows)})")
    assert {"mine", "ease", "puresvd"} <= set(browser.run(texts))
    assert "design 1" not in browser.run(texts)
    # "ease" is hidden: it stays hidden in what is drawn then.
    browser.run("document.querySelector('.systems input').click()")
    change = "(spec) => ({ ...spec, title: { text: 'Another title' } })"
    browser.run(f"report.redraw('headline', {json.dumps(rows)}, {change})")
    browser.run("new Promise((done) => setTimeout(done, 200)).then(() => report.drawAll())")
    drawn = browser.run(texts)
    assert "Another title" in drawn
    assert "puresvd" in drawn
    assert "ease" not in browser.run(
        "[...document.querySelectorAll('#chart-headline .role-axis-label text')]"
        ".map((t) => t.textContent)"
    )
    assert browser.log == []


@needs_chromium
def test_terms_are_explained_by_keyboard(browser, page):  # noqa: F811
    browser.open(page)
    tip = "(document.querySelector('#tip:not([hidden])') || { textContent: '' }).textContent"
    assert browser.run(tip) == ""
    for _ in range(12):
        browser.press("Tab")
        if browser.run("document.activeElement.className") == "term":
            break
    assert browser.run(tip) == "What a random order scores."
    browser.press("Escape")
    assert browser.run(tip) == ""
    browser.press("Enter")
    assert browser.run(tip) == "What a random order scores."
    heads = browser.run("document.querySelectorAll('#scores th .sign').length")
    assert heads == 3  # design, P@10, chance


@needs_chromium
def test_text_is_copied_with_a_word_about_it(browser, page):  # noqa: F811
    browser.open(page)
    browser.run("document.querySelector('[data-copy]').click()")
    browser.run("new Promise((done) => setTimeout(done, 300))")
    status = "document.querySelector('.code [role=status]').textContent"
    assert browser.run(status) == "copied"
    assert browser.run("document.querySelector('.code details').open") is False


@needs_chromium
def test_paper_shows_what_is_unfolded_in_light_colours(browser, page):  # noqa: F811
    browser.open(page, dark=True)
    pdf = browser.printed()
    assert pages_of(pdf) <= 3
    browser.run("window.dispatchEvent(new Event('beforeprint'))")
    assert browser.run("document.querySelector('#glossary details').open") is True
    assert "Folded" in browser.run("document.querySelector('.unprinted').textContent")
    browser.run("window.dispatchEvent(new Event('afterprint'))")
    assert browser.run("document.querySelector('#glossary details').open") is False


# Slow: whole reports, axe, many systems

AXE = [os.environ.get("AXE_CORE", ""), "node_modules/axe-core/axe.min.js"]


@pytest.fixture(scope="module")
def report(tmp_path_factory):
    found = audit(us.world("display", seed=7), "quick", repeats=2, permutations=200)
    path = tmp_path_factory.mktemp("report") / "report.html"
    path.write_bytes(as_html(found.document()))
    return path


@pytest.mark.slow
@needs_chromium
def test_a_report_of_an_audit(browser, report):  # noqa: F811
    assert report.stat().st_size < 2_000_000
    for width, height in WIDTHS:
        browser.open(report, width, height)
        measured = browser.run(MEASURE)
        if width == 1440:
            assert measured["height"] <= 7_200
            assert browser.run("document.querySelector('.first').offsetHeight") <= 860
        unfold(browser)
        measured = browser.run(MEASURE)
        assert measured["wide"] == []
        assert measured["scroll"] <= 0
        assert browser.log == []
    browser.open(report)
    assert pages_of(browser.printed()) <= 12


@pytest.mark.slow
@needs_chromium
@pytest.mark.parametrize("dark", [False, True])
@pytest.mark.parametrize("which", ["page", "report"])
def test_axe_has_nothing_serious_to_say(browser, request, which, dark):  # noqa: F811
    script = next((Path(one) for one in AXE if one and Path(one).is_file()), None)
    if script is None:
        pytest.skip("needs axe-core: npm install axe-core, or its axe.min.js in AXE_CORE")
    path = request.getfixturevalue(which)
    for width, height in WIDTHS:
        browser.open(path, width, height, dark=dark)
        unfold(browser)
        browser.run(script.read_text() + ";0")
        serious = browser.run(
            "axe.run(document, {resultTypes: ['violations']}).then((all) => all.violations"
            ".filter((one) => ['serious', 'critical'].includes(one.impact))"
            ".map((one) => [one.id, one.nodes[0].html]))"
        )
        assert serious == []


@pytest.mark.slow
@needs_chromium
def test_a_report_of_two_hundred_systems_paints_at_once(browser, tmp_path):  # noqa: F811
    path = tmp_path / "many.html"
    path.write_bytes(as_html(document([f"system {at}" for at in range(200)])))
    browser.open(path)
    painted = "performance.getEntriesByName('first-contentful-paint')[0].startTime"
    assert browser.run(painted) < 2_000
    assert browser.log == []
