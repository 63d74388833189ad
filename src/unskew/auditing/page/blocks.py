"""Blocks of a report: tables that are cut where they are long, figures that may be missing."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import polars as pl

from unskew.auditing.page.captions import SECTIONS, SHOWS, caption
from unskew.auditing.page.captions import title as title_of
from unskew.auditing.page.glossary import ROWS, heads
from unskew.errors import UnskewError
from unskew.report.charts import Figure
from unskew.report.document import Block, Fold, Picture, Section, Words
from unskew.report.tables import Table
from unskew.report.text import counted, finite

OPEN = ("answer", "designs", "decisions", "ladder")
"""Sections that are unfolded at first."""

GUIDES = {
    "answer": (
        "Every sentence about two systems is printed under a fixed rule. Its kind leads to how "
        "often sentences of that kind are wrong in simulated worlds whose truth is known.",
        "A number with brackets is a difference of scores and its 95 % interval. An interval "
        "without 0 means that the lead is more than chance; an interval with 0 leaves it open.",
        "A higher score means more hits. It does not yet mean that people like the "
        "recommendations more: that is stated only where the ratings support it.",
    ),
    "data": (
        "Look here for what the numbers rest on: how many ratings there are, whether a few items "
        "hold most of them, and what the split into training and test part did.",
        "Where popular items have most of the ratings, a system that recommends them to everybody "
        "has many hits, whatever people think of them.",
        "Cold users have no training rating: no system knows anything about them, so comparisons "
        "leave them out.",
    ),
    "leaks": (
        "A leak lets systems learn what they are tested on: later ratings, copies of test ratings, "
        "columns or filters that were computed with them. Scores are then too high.",
        "Red lights name a leak and what to do about it. Drift, cold users and new items are shown "
        "and never red: they belong to the task.",
        "A random split learns from the future by construction. That is a choice: its score is "
        "about filling gaps in known histories, not about what comes next.",
    ),
    "designs": (
        "A design says which ratings test the systems and which items they must rank. All designs "
        "judge the same systems on the same data.",
        "Compare systems within a column, never scores of different columns: each design has its "
        "own scale and its own chance.",
        "Some designs weaken the reward for recommending popular items: the table says how. A lead "
        "that vanishes there owes something to popularity.",
    ),
    "decisions": (
        "Read a row from left to right: whether the first system is ahead of the second one, "
        "behind, or neither is shown, under each design.",
        "One correction covers all pairs and all designs, so that all decisions of the table hold "
        "together. Open is not equal: the test found no difference that it could have called.",
        "A pair that is ahead under one design and behind under another has no overall winner.",
    ),
    "ladder": (
        "The lists stay as they are. The test part is drawn again, first keeping almost nothing "
        "of it, then more and more; each rung is what the lists then score.",
        "Up to the rung averages only numbers are kept: how often each item and each user is "
        "liked. What lies above it is the match: which user gets which item.",
        "The match has two parts: choice, predicting what people rate, and opinion, predicting "
        "what they say of it.",
        "A small match does not mean that the recommendations are bad. A large one does not prove "
        "taste: people can also rate what they were shown.",
    ),
    "liked": (
        "Most recommendations are never judged. Of those that are, this section counts how many "
        "are liked: a system can have few hits and yet be liked more.",
        "Levelled shares give every item and every user about the same weight, so that popular "
        "items do not decide.",
        "Estimates by IPS and SNIPS weigh each judgment by how rarely such judgments are made. "
        "Few or very unequal weights make them useless: those are left out.",
    ),
    "protocol": (
        "The null experiment draws opinions at random and asks what the protocol still gives. A "
        "system that keeps a score far above chance there shows what the protocol rewards besides "
        "opinions.",
        "Discriminative power asks which metric separates the systems with the fewest doubts, and "
        "robustness whether a metric keeps their order on a part of the test ratings.",
    ),
    "truth": (
        "In a simulated world, or with ratings of randomly shown items, the truth is known. Here "
        "it is shown beside what each design observes.",
        "What matters is the order: a Kendall's τ of 1 means that a design orders the systems as "
        "the truth does, −1 the opposite.",
    ),
    "filters": (
        "Filters such as a k-core remove users and items. What is left is easier or harder to "
        "recommend, and every score changes. The table splits the change of each score in two.",
        "Judged on what stays: the same trained systems, judged by fewer users and items. "
        "Filtered: trained on less, too. The order of two systems changes only where one is shown "
        "to be ahead under one condition and the other under another.",
    ),
    "error-rates": (
        "The audit was run in many simulated worlds whose truth is known. For each kind of "
        "sentence the table says in how many of these worlds such sentences were false.",
        "These are rates of the method in those worlds. They are not the chance that this report "
        "is wrong: your data may differ from all of them.",
    ),
    "checklist": (
        "Each question is answered from this run: what is done, what is missing and how to get it, "
        "and what only you can state. An answer here is no verdict on the paper.",
    ),
    "card": (
        "The same data, plan and seed give the same numbers, whatever the machine. The command or "
        "the lines of Python below make the report again from the same data.",
    ),
}
"""By section: how to read it."""


CARD_WORDS = {
    "data": "data",
    "truth": "truth",
    "level": "level",
    "relevance": "relevance",
    "metric": "metric that orders the systems",
    "seed": "seed",
    "null": "null experiment",
    "permutations": "permutations of the tests",
    "bootstrap": "bootstrap draws",
    "users": "users that are averaged",
    "undefined": "undefined values count as",
    "ties": "ties",
    "versions": "version",
}
"""By key of a card: people's words. Designs and systems have sections of their own."""
LEAST_POINTS = 3
"""A figure of fewer points says no more than a sentence."""
SHARES = ("density", "liked", "before_any_train", "before_user_train")
"""Facts that are shares."""
MOST_ROWS = 300
"""The most rows of a table: pairs of many systems are cut, and counted."""


def section(key: str, content: Sequence[Block], case: str = "") -> Section:
    """Return a section.

    Parameters
    ----------
    key
        Its name among the captions, which have its title.
    content
        What it holds.
    case
        What it shows in a special case, by its name among the captions.
    """
    title, shows = SECTIONS[key]
    return Section(
        key,
        title,
        SHOWS[case] if case else shows,
        tuple(content),
        guide=GUIDES[key],
        is_open=key in OPEN,
    )


def drawable(section: Section) -> Section:
    """Return a section whose figures hold numbers only: JSON has no word for what is none."""
    return replace(section, blocks=tuple(map(_drawable, section.blocks)))


def _drawable(block: Block) -> Block:
    if isinstance(block, Picture):
        figure = Figure(block.figure.title, finite(dict(block.figure.spec)))
        return replace(block, figure=figure)
    if isinstance(block, Fold):
        return replace(block, blocks=tuple(map(_drawable, block.blocks)))
    return block


def fold(key: str, content: Sequence[Block], **values: object) -> list[Block]:
    """Return parts that stay folded; nothing where there are none."""
    parts = tuple(block for block in content if not _is_empty(block))
    return [Fold(title_of(key, **values), parts)] if parts else []


def _is_empty(block: Block) -> bool:
    return isinstance(block, Words) and not str(block)


def card_table(card: Mapping[str, object]) -> pl.DataFrame:
    """Return a card as rows of what and value."""
    rows: list[tuple[str, str]] = []
    for key, words in CARD_WORDS.items():
        value = card.get(key)
        if isinstance(value, dict):
            rows += [
                (f"{words}: {name.replace('_', ' ')}", str(entry))
                for name, entry in value.items()
                if entry is not None
            ]
        elif value is not None:
            rows.append((words, str(value)))
    return pl.DataFrame(rows, schema={"what": pl.String, "value": pl.String}, orient="row")


def facts_table(key: str, table: pl.DataFrame, parts: Mapping[str, str]) -> Table:
    """Turn a table of one row per part into one row per fact.

    Parameters
    ----------
    key
        Its name among the titles.
    table
        The name of a part in the first column, facts in the others.
    parts
        People's words for parts.
    """
    rows = []
    names = [parts.get(part, part) for part in table[table.columns[0]]]
    for name in table.columns[1:]:
        values = table[name].to_list()
        if any(value is not None for value in values):
            texts = [_plain(value, name in SHARES) for value in values]
            rows.append({"what": ROWS.get(name, name), **dict(zip(names, texts, strict=True))})
    return Table(title_of(key), pl.DataFrame(rows))


def _plain(value: Any, is_share: bool = False) -> str:
    if value is None:
        return "–"
    if is_share:
        return f"{100 * value:.1f} %" if 100 * value >= 0.1 or not value else "less than 0.1 %"
    if isinstance(value, float):
        return f"{value:,.4g}" if abs(value) < 1e4 else f"{value:,.0f}"
    return f"{value:,}" if isinstance(value, int) else str(value)


def table(
    key: str, frame: pl.DataFrame, digits: int = 4, note: str = "", **values: object
) -> Table:
    """Return a table with people's words for its columns, cut where it is long.

    Parameters
    ----------
    key
        Its name among the titles.
    frame
        Its values, under their names in Python.
    digits
        The decimals of numbers.
    note
        What stands below it.
    values
        What stands in its title.
    """
    if frame.height > MOST_ROWS:
        cut = caption("rows cut", shown=MOST_ROWS, count=f"{frame.height:,}")
        note = f"{note}; {cut}" if note else cut
        frame = frame.head(MOST_ROWS)
    named = frame.rename(heads(frame.columns, key))
    return Table(title_of(key, **values), named, digits, note)


def reach_table(reach: pl.DataFrame) -> Table:
    """Return how far given lists reach."""
    return table("reach", reach, 3, caption("reach note"))


def present(frame: pl.DataFrame, *names: str) -> list[str]:
    """Return those of the columns that a table has."""
    return [name for name in names if name in frame.columns]


def without_empty(frame: pl.DataFrame) -> pl.DataFrame:
    """Leave out the columns that hold nothing: null, or no text."""
    columns = [
        name
        for name, kind in frame.schema.items()
        if frame[name].null_count() < frame.height
        and not (kind == pl.String and frame[name].fill_null("").eq("").all())
    ]
    return frame.select(columns)


def figure_or_none(make: Callable[[], Figure]) -> Figure | None:
    """Return a figure, or None where there is nothing to draw."""
    try:
        figure = make()
    except UnskewError:
        return None
    rows = figure.spec.get("datasets", {}).get("rows", [1])
    return figure if len(rows) else None


def picture(make: Callable[[], Figure], colours: Mapping[str, str] | None = None) -> Block:
    """Return a figure; a sentence where it would show a point or two, no words where nothing.

    Parameters
    ----------
    make
        Draws it.
    colours
        The colour of each system, for figures that colour them.
    """
    figure = figure_or_none(make)
    if figure is None:
        return Words("")
    points = len(figure.spec.get("datasets", {}).get("rows", range(LEAST_POINTS)))
    if points < LEAST_POINTS:
        count = counted(points, "point")
        return Words(caption("too few points", figure=figure.title, points=count))
    return Picture(figure if colours is None else _coloured(figure, colours))


def _coloured(figure: Figure, colours: Mapping[str, str]) -> Figure:
    """Return a figure in which systems have the colours of the report."""
    scale = {"domain": list(colours), "range": list(colours.values())}

    def changed(part: Any) -> Any:
        if isinstance(part, list):
            return [changed(entry) for entry in part]
        if not isinstance(part, Mapping):
            return part
        parts = {key: part[key] if key == "datasets" else changed(part[key]) for key in part}
        colour = parts.get("color")
        if isinstance(colour, Mapping) and colour.get("field") == "system":
            parts["color"] = {**colour, "scale": scale}
        return parts

    return Figure(figure.title, changed(dict(figure.spec)))


def filled(
    blocks: Sequence[Block], skipped: Mapping[str, str], needs: Sequence[str]
) -> tuple[Block, ...]:
    """Leave empty words out; say why things are missing."""
    content = [block for block in blocks if not _is_empty(block)]
    missing = [
        Words(caption("not done", what=what, why=skipped[what]), "warning")
        for what in needs
        if what in skipped
    ]
    result = (*content, *missing)
    return result or (Words(caption("nothing"), "warning"),)
