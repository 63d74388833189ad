"""The sections of a report: what was measured in tables and figures, and what may be stated."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from functools import partial
from itertools import combinations
from typing import TYPE_CHECKING

import polars as pl

from unskew.auditing.page import blocks, diagnostic_sections
from unskew.auditing.page.captions import RUNGS, caption, title
from unskew.auditing.page.charts import panel_titles
from unskew.auditing.page.checklist import checklist_blocks
from unskew.auditing.page.glossary import PARTS, SPLITS, glossary_of
from unskew.auditing.page.headline import explorer_of, headline, pair_of
from unskew.auditing.page.statement_blocks import (
    facts,
    lead,
    of_kinds,
    pair_blocks,
    rate_values,
    rates,
    sentence,
    statement_table,
)
from unskew.auditing.statements.statement import with_interval
from unskew.report.charts import system_colours
from unskew.report.document import Block, Document, Words
from unskew.report.text import cell, counted

if TYPE_CHECKING:
    from unskew.auditing.measurements import Measurements
    from unskew.bias.decomposition.ladder import Ladder
    from unskew.splits.counts import SplitCounts

PAIR_STEPS = (
    *("a", "b", "lead_step", "lead_low", "lead_high", "counts_step", "averages_step"),
    *("match_step", "match_low", "match_high", "match_z", "choice_step"),
    *("opinion_step", "opinion_low", "opinion_high", "opinion_z"),
)
"""What is shown of the ladder of a pair."""
PREPARATION = ("sampled", "implicit", "references", "tuned", "untuned", "tuned-edge", "cold")
"""Kinds of statements about how data and systems were prepared."""
WORTH_SAYING = 0.05
"""From this share of test ratings or users on, the section about the data counts them."""


def document(audit: Measurements) -> Document:
    """Return the report of an audit."""
    cases = [
        *(["implicit"] if audit.core.implicit else []),
        *(["given"] if audit.evidence.is_given else []),
    ]
    report = Document(
        title("title", name=audit.name),
        lead(audit.first_screen),
        tuple(
            blocks.section(key, content(audit), audit.skipped, cases)
            for key, content in CONTENTS.items()
            if key != "filters" or audit.filter_effect is not None
        ),
        dict(audit.card),
        audit.systems,
        values_of(audit),
        headline(audit),
        explorer=explorer_of(audit),
    )
    return replace(report, glossary=glossary_of(report))


def values_of(audit: Measurements) -> dict[str, object]:
    """Return what programs read: the verdict, the first screen by kind, and all statements."""
    screen, measured = audit.first_screen, rates()
    return {
        "verdict": screen.verdict,
        "first_screen": {sentence.kind: sentence.text for sentence in screen.sentences},
        "statements": [
            statement.to_dict(rate_values(statement.kind, measured))
            for statement in audit.statements
        ],
    }


def _answer(audit: Measurements) -> Iterator[Block]:
    yield from pair_blocks(audit.statements, pair_of(audit), blocks.MOST_ROWS)
    skipped = (f"{what}: {why}" for what, why in audit.skipped.items())
    yield from blocks.fold(
        "assumed", blocks.listed("assumed", audit.assumed), blocks.listed("all not done", skipped)
    )


def _data(audit: Measurements) -> Iterator[Block]:
    yield from facts(audit.statements, *PREPARATION)
    if audit.data is not None:
        yield blocks.facts_table("data", audit.data.table(), PARTS)
        yield blocks.picture(audit.data.figure)
    if audit.bias is not None and not audit.core.implicit:
        yield blocks.picture(partial(audit.bias.figure, "positive-ratio"))
        yield from blocks.fold("bins", blocks.table("bins", audit.bias.bins(), 3))
    if audit.splits:
        for name, split in audit.splits.items():
            yield from _counts(name, split)
        rows = [{"split": name, **split.describe()} for name, split in audit.splits.items()]
        table = pl.DataFrame(rows, infer_schema_length=None).drop("label")
        key = "given split" if audit.evidence.is_given else "splits"
        yield from blocks.fold("splits", blocks.facts_table(key, table, SPLITS))
    settings = [
        {"system": system, "split": number, "settings": tuned.text}
        for number, of_split in enumerate(audit.core.tuned, start=1)
        for system, tuned in of_split.items()
    ]
    if settings:
        table = pl.DataFrame(settings).sort("system", "split", maintain_order=True)
        yield from blocks.fold("settings", blocks.table("settings", table))
    yield from blocks.fold("notes", blocks.listed("notes", audit.notes))


def _counts(name: str, split: SplitCounts) -> Iterator[Words]:
    """Count test ratings older than training ones, pairs in both parts, and cold users."""
    if split.before_any_train is not None and split.before_any_train > WORTH_SAYING:
        share = f"{split.before_any_train:.1%}"
        yield Words(caption("older", share=share, name=name), "warning")
    if split.duplicates:
        pairs = counted(split.duplicates, "pair is", "pairs are")
        yield Words(caption("in both parts", pairs=pairs, name=name), "warning")
    if split.cold_users > WORTH_SAYING * split.test_users:
        count, users = f"{split.cold_users:,}", f"{split.test_users:,}"
        yield Words(caption("cold users", count=count, users=users, name=name), "warning")


def _designs(audit: Measurements) -> Iterator[Block]:
    metric, panels = audit.metric, panel_titles(audit)
    about = {
        "design": list(audit.designs),
        "title": [panels[design] for design in audit.designs],
        "about": list(audit.designs.values()),
    }
    yield blocks.table("designs", pl.DataFrame(about))
    yield blocks.table("places", _side_by_side(audit), metric=metric)
    yield from facts(audit.statements, "same-design", "degenerate-design")
    for name, why in audit.unstated_designs().items():
        yield Words(caption("left out", design=name, why=why))
    for what, why in audit.skipped.items():
        if what.startswith("design "):
            yield Words(caption("not done", what=what.removeprefix("design "), why=why))
    table = audit.table()
    case = "scores given" if audit.evidence.is_given else "scores"
    if table["random"].null_count() == table.height:
        case, table = f"{case} no chance", table.drop("random")
    yield from blocks.fold("scores", blocks.table("scores", table, note=case, metric=metric))
    if audit.core.has_cold:
        cold = audit.core.cold_table().filter(pl.col("cold") > 0)
        yield from blocks.fold("cold", blocks.table("cold", cold, metric=metric))
    if audit.reach is not None and audit.reach.height:
        yield from blocks.fold("reach", blocks.table("reach", audit.reach, 3))
    yield from blocks.fold("counted", blocks.listed("counted", audit.remarks))


def _side_by_side(audit: Measurements) -> pl.DataFrame:
    """Return a row per system, and one for chance: score and place under each design."""
    table, names = audit.table(), audit.order()
    columns: dict[str, list[str | None]] = {}
    chance = {}
    for design in audit.designs:
        part = {row["system"]: row for row in table.filter(design=design).iter_rows(named=True)}
        columns[design] = [f"{cell(part[name]['value'])} ({part[name]['place']})" for name in names]
        chance[design] = next(iter(part.values()))["random"]
    if any(value is not None for value in chance.values()):
        names = [*names, title("chance row")]
        for design, value in chance.items():
            columns[design].append(None if value is None else cell(value))
    return pl.DataFrame({"system": names, **columns})


def _decisions(audit: Measurements) -> Iterator[Block]:
    metric = audit.metric
    yield from facts(audit.statements, "target")
    yield from map(sentence, of_kinds(audit.statements, "equal"))
    yield blocks.table("decided", _decided(audit), metric=metric)
    differences = audit.evidence.contrasts.display_table()
    yield from blocks.fold("contrasts", blocks.table("contrasts", differences, metric=metric))
    if len(audit.designs) > 1:
        yield from blocks.fold("consensus", blocks.table("consensus", audit.consensus(), 2))
    if audit.agreement is not None:
        pairs = audit.agreement.pairs().select("a", "b", "tau", "low", "high", "swaps")
        pairs = pairs.drop_nulls("tau")
        if pairs.height:
            figures = [blocks.picture(audit.agreement.figure)] if len(audit.designs) > 2 else []
            yield from blocks.fold("agreement", *figures, blocks.table("agreement", pairs, 2))
    if audit.choices is not None:
        yield from blocks.fold("choices", blocks.picture(audit.choices.figure))
    segments = audit.segments
    if segments is not None:
        names = ("a", "b", "segment", "users", "difference", "low", "high")
        rows = segments.table().select(*names, p="p_corrected")
        tests = segments.interactions().select("a", "b", "difference", interaction="p_corrected")
        metric, by = segments.metrics[0], segments.by
        yield from blocks.fold(
            "segments",
            blocks.table("segments", rows, metric=metric, by=by, rule=segments.rule),
            blocks.table("interactions", tests, metric=metric, by=by),
        )


def _decided(audit: Measurements) -> pl.DataFrame:
    """Return a row per pair: under each design, whether the first system is ahead of the other."""
    ahead, pairs = audit.evidence.ahead, list(combinations(audit.order(), 2))

    def decided(a: str, b: str, design: str) -> str:
        if ahead(a, b, design):
            return title("is ahead")
        return title("is behind") if ahead(b, a, design) else title("is open")

    columns = {design: [decided(a, b, design) for a, b in pairs] for design in audit.designs}
    return pl.DataFrame({"a": [a for a, _ in pairs], "b": [b for _, b in pairs], **columns})


def _ladder(audit: Measurements) -> Iterator[Block]:
    ladder = audit.evidence.ladder
    if ladder is None:
        return
    yield from map(sentence, of_kinds(audit.statements, "system-match", "system-opinion"))
    yield blocks.picture(ladder.figure, system_colours(audit.order()))
    yield from _floor(ladder)
    pairs = of_kinds(audit.statements, "opinion", "match", "popular", "reason-open")
    if pairs:
        yield from blocks.fold(
            "reasons", statement_table(title("reasons"), pairs[: blocks.MOST_ROWS])
        )
    table, names = ladder.table(), [name for name, _ in RUNGS]
    rungs = pl.DataFrame(RUNGS, schema=["rung", title("kept")], orient="row")
    yield from blocks.fold(
        "ladder",
        blocks.table("rungs", rungs),
        blocks.table("ladder", table.select("system", *names), precision=audit.evidence.precision),
        blocks.table("steps", table.drop(names)),
        blocks.table("ladder pairs", ladder.pairs().select(PAIR_STEPS), note="steps"),
    )


def _floor(ladder: Ladder) -> Iterator[Words]:
    """Show the match of popularity itself."""
    popular = [system for system in ladder.systems if system.split(" (")[0] == "popularity"]
    for system in popular[:1]:
        step = ladder.step("match", system)
        if step.low is not None and step.high is not None:
            yield Words(caption("floor", match=with_interval(step.value, step.low, step.high)))


CONTENTS: dict[str, Callable[[Measurements], Iterable[Block]]] = {
    "answer": _answer,
    "data": _data,
    "leaks": diagnostic_sections.leaks,
    "designs": _designs,
    "decisions": _decisions,
    "ladder": _ladder,
    "liked": diagnostic_sections.liked,
    "protocol": diagnostic_sections.protocol,
    "truth": diagnostic_sections.truth,
    "filters": diagnostic_sections.filters,
    "error-rates": diagnostic_sections.error_rates,
    "checklist": checklist_blocks,
    "card": diagnostic_sections.card,
}
"""By section, in the order of the report: its blocks. Titles, guides and notes are captions."""
