"""A document as one HTML file that needs nothing else: no network, no other file."""

from __future__ import annotations

import re
from functools import cache
from html import escape
from importlib import resources
from string import Template

from unskew.engine.cached_text import cached
from unskew.report import explorer
from unskew.report.charts import converter, script_json
from unskew.report.document import Document, Fact, Headline
from unskew.report.glossary import Terms
from unskew.report.page_blocks import Writer, folding_section

SIGNS = {
    "settled": ("Settled", "M5 12.5l4.5 4.5L19 7.5"),
    "depends": ("Depends on the design", "M4 8.5h15m-4-4l4 4-4 4M20 15.5H5m4-4l-4 4 4 4"),
    "promote": ("Promote", "M5 12.5l4.5 4.5L19 7.5"),
    "hold": ("Hold", "M6.5 6.5l11 11m0-11l-11 11"),
    "open": ("Not settled", "M8.5 9a3.5 3.5 0 1 1 5.6 2.8c-1.4 1-2.1 1.6-2.1 3.2m0 3.4v.1"),
}
"""By status of a headline: its words, and the path of its sign in a square of 24."""


def as_html(document: Document) -> bytes:
    """Return a page with everything in it: words, tables that sort, charts that answer.

    Parameters
    ----------
    document
        What to say.
    """
    terms = Terms(document.glossary)
    places = frozenset({*document.anchors(), *(("glossary",) if terms else ())})
    writer = Writer(terms, places, frozenset(document.systems))
    first = _first_screen(document, writer)
    body = "".join(writer.section(section) for section in document.sections)
    if terms:
        shows = "What the words of this report mean."
        listed = f'<dl class="glossary">{terms.listed()}</dl>'
        body += folding_section("glossary", "Glossary", shows, listed, is_open=False)
    specs = writer.specs
    bundle = _bundle(next(iter(specs.values()))["$schema"]) if specs else ""
    panel, style, script = _explorer(document)
    return (
        Template(_part("page.html"))
        .substitute(
            title=escape(document.title),
            style=_part("page.css") + style,
            bundle=_closed(bundle),
            script=_part("page.js") + script,
            first=first,
            explorer=panel,
            nav=_contents(document, with_glossary=bool(terms)),
            systems=_systems(document.systems),
            body=body,
            specs=script_json(specs),
        )
        .encode()
    )


@cache
def _bundle(schema: str) -> str:
    """Return the script that draws charts of one version of the grammar; slow to make."""
    convert, version = converter({"$schema": schema})
    key = {"vl-convert": convert.__version__, "Vega-Lite": version}
    return cached("charts", key, lambda: str(convert.javascript_bundle(vl_version=version)))


def _part(name: str) -> str:
    return resources.files("unskew.report").joinpath(name).read_text(encoding="utf-8")


def _explorer(document: Document) -> tuple[str, str, str]:
    """Return the panel with which readers choose numbers, its style and its script."""
    if document.explorer is None:
        return "", "", ""
    return explorer.panel(document.explorer), _part("explorer.css"), _part("explorer.js")


def _closed(script: str) -> str:
    """Return a script that cannot end its own element."""
    return re.sub(r"</(script)", r"<\\/\1", script, flags=re.IGNORECASE)


# The first screen


def _first_screen(document: Document, writer: Writer) -> str:
    """Return the verdict, the numbers to take away, the lead and the chart that shows it."""
    headline = document.headline
    if headline is None:
        lead = "".join(writer.words(words) for words in document.lead)
        return f'<div class="lead">{lead}</div>'
    # The banner says the verdict already.
    sentences = [words for words in document.lead if words.tone != "verdict"]
    last = len(sentences) - 1
    lead = "".join(
        writer.words(words, "do" if at == last and at else "") for at, words in enumerate(sentences)
    )
    facts = "".join(_fact(fact, writer) for fact in headline.facts)
    facts = f'<ul class="facts">{facts}</ul>' if facts else ""
    chart = "" if headline.chart is None else writer.picture(headline.chart, "headline")
    kind = "first" if chart else "first alone"
    lead = f'<div class="lead">{lead}</div>'
    return f'<div class="{kind}">{_banner(headline)}{facts}{lead}{chart}</div>'


def _banner(headline: Headline) -> str:
    """Return the verdict with a sign; words and shape say what the colour says."""
    words, path = SIGNS[headline.status]
    openings = tuple(one.casefold() for one, _ in SIGNS.values())
    label = "" if headline.verdict.casefold().startswith(openings) else words
    label = f'<span class="status">{label}</span>' if label else ""
    return (
        f'<div class="banner {headline.status}"><svg viewBox="0 0 24 24" aria-hidden="true">'
        f'<path d="{path}"/></svg><p>{label}{escape(headline.verdict)}</p></div>'
    )


def _fact(fact: Fact, writer: Writer) -> str:
    return f"<li><b>{escape(fact.value)}</b> <span>{writer.terms.mark(fact.text)}</span></li>"


# What stands around the sections


def _contents(document: Document, *, with_glossary: bool) -> str:
    entries = [(section.key, section.title) for section in document.sections]
    entries += [("glossary", "Glossary")] if with_glossary else []
    return "".join(
        f'<li><a href="#{escape(key)}">{escape(title)}</a></li>' for key, title in entries
    )


def _systems(systems: tuple[str, ...]) -> str:
    """Return the boxes with which readers hide systems."""
    if len(systems) < 2:
        return ""
    boxes = "".join(
        f'<label><input type="checkbox" checked value="{escape(name)}"> {escape(name)}</label>'
        for name in systems
    )
    return (
        f'<details class="systems"><summary>Systems shown ({len(systems)})</summary>'
        f'<div><p><button type="button" data-all>all</button> '
        f'<button type="button" data-none>none</button></p>{boxes}</div></details>'
    )
