"""The sections of a report: what was measured in tables and figures, and what may be stated."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING

import polars as pl

from unskew.auditing.page import blocks, diagnostic_sections
from unskew.auditing.page import diagnostic_sections as leak_section
from unskew.auditing.page.blocks import section
from unskew.auditing.page.captions import RUNGS, caption, title
from unskew.auditing.page.charts import panel_titles
from unskew.auditing.page.checklist import checklist_section
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
from unskew.report.document import Block, Document, Section, Words
from unskew.report.text import cell, counted

if TYPE_CHECKING:
    from unskew.auditing.measurements import Measurements
    from unskew.bias.decomposition.ladder import Ladder
    from unskew.splits.counts import SplitCounts
    from unskew.stats.compare.segment_comparison import SegmentComparison

PAIR_STEPS = (
    *("a", "b", "lead_step", "lead_low", "lead_high", "counts_step", "averages_step"),
    *("match_step", "match_low", "match_high", "match_z", "choice_step"),
    *("opinion_step", "opinion_low", "opinion_high", "opinion_z"),
)
"""What is shown of the ladder of a pair."""
WORTH_SAYING = 0.05
"""From this share of test ratings or users on, the section about the data counts them."""


def document(audit: Measurements) -> Document:
    """Return the report of an audit."""
    parts: tuple[Callable[[Measurements], Section], ...] = (
        _answer,
        _data,
        leak_section.leaks,
        _designs,
        _decisions,
        _ladder,
        diagnostic_sections.liked,
        diagnostic_sections.protocol,
        diagnostic_sections.truth,
        *((diagnostic_sections.filters,) if audit.filter_effect is not None else ()),
        diagnostic_sections.error_rates,
        checklist_section,
        diagnostic_sections.card,
    )
    report = Document(
        title("title", name=audit.name),
        lead(audit.first_screen),
        tuple(blocks.drawable(make(audit)) for make in parts),
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


def _answer(audit: Measurements) -> Section:
    content = pair_blocks(audit.statements, pair_of(audit), blocks.MOST_ROWS)
    more: list[Block] = []
    if audit.assumed:
        more.append(Words("", "plain", caption("assumed"), audit.assumed))
    if audit.skipped:
        points = tuple(f"{what}: {why}" for what, why in audit.skipped.items())
        more.append(Words("", "plain", caption("all not done"), points))
    return section("answer", blocks.filled([*content, *blocks.fold("assumed fold", more)], {}, ()))


# The data


def _data(audit: Measurements) -> Section:
    core = audit.core
    content: list[Block] = facts(
        audit.statements,
        "sampled",
        "implicit",
        "references",
        "tuned",
        "untuned",
        "tuned-edge",
        "cold",
    )
    if audit.data is not None:
        content.append(blocks.facts_table("data", audit.data.table(), PARTS))
        content.append(blocks.picture(audit.data.figure))
    if audit.bias is not None and not core.implicit:
        bias = audit.bias
        content.append(blocks.picture(lambda: bias.figure("positive-ratio")))
        content += blocks.fold("bins fold", [blocks.table("bins", bias.bins(), 3)])
    content += _splits(audit)
    content += blocks.fold("settings fold", _settings(audit))
    if audit.notes:
        notes = Words("", "plain", caption("notes"), audit.notes)
        content += blocks.fold("notes fold", [notes])
    case = "data implicit" if core.implicit else "data given" if audit.evidence.is_given else ""
    return section("data", blocks.filled(content, {}, ()), case)


def _splits(audit: Measurements) -> list[Block]:
    if not audit.splits:
        return []
    rows = [
        {"split": name} | {key: value for key, value in split.describe().items() if key != "label"}
        for name, split in audit.splits.items()
    ]
    table = pl.DataFrame(rows, infer_schema_length=None)
    counts = [words for name, split in audit.splits.items() for words in _counts(name, split)]
    key = "given split" if audit.evidence.is_given else "splits"
    return [*counts, *blocks.fold("splits fold", [blocks.facts_table(key, table, SPLITS)])]


def _counts(name: str, split: SplitCounts) -> list[Words]:
    """Count test ratings older than training ones, pairs in both parts, and cold users."""
    texts = []
    if split.before_any_train is not None and split.before_any_train > WORTH_SAYING:
        texts.append(caption("older", share=f"{split.before_any_train:.1%}", name=name))
    if split.duplicates:
        texts.append(
            caption(
                "in both parts", pairs=counted(split.duplicates, "pair is", "pairs are"), name=name
            )
        )
    if split.cold_users > WORTH_SAYING * split.test_users:
        count, users = f"{split.cold_users:,}", f"{split.test_users:,}"
        texts.append(caption("cold users", count=count, users=users, name=name))
    return [Words(text, "warning") for text in texts]


def _settings(audit: Measurements) -> list[Block]:
    """Return the settings that tuning chose."""
    rows = [
        {"system": system, "split": number, "settings": tuned.text}
        for number, of_split in enumerate(audit.core.tuned, start=1)
        for system, tuned in of_split.items()
    ]
    if not rows:
        return []
    table = pl.DataFrame(rows).sort("system", "split", maintain_order=True)
    return [blocks.table("settings", table)]


# Designs


def _designs(audit: Measurements) -> Section:
    evidence = audit.evidence
    panels = panel_titles(audit)
    about = pl.DataFrame(
        {
            "design": list(audit.designs),
            "title": [panels[design] for design in audit.designs],
            "about": list(audit.designs.values()),
        }
    )
    content: list[Block] = [
        blocks.table("designs", about),
        blocks.table(
            "places", _side_by_side(audit), note=caption("places note"), metric=audit.metric
        ),
    ]
    content += facts(audit.statements, "same-design", "degenerate-design")
    content += [
        Words(caption("left out", design=name, why=why))
        for name, why in audit.unstated_designs().items()
    ]
    content += [
        Words(caption("not done", what=what.removeprefix("design "), why=why))
        for what, why in audit.skipped.items()
        if what.startswith("design ")
    ]
    content += blocks.fold("scores fold", _scores(audit))
    if evidence.core.has_cold:
        cold = evidence.core.cold_table().filter(pl.col("cold") > 0)
        note = caption("cold note")
        table = blocks.table("cold", cold, 4, note, metric=audit.metric)
        content += blocks.fold("cold fold", [table])
    content += blocks.fold("reach fold", _reach(audit))
    if audit.remarks:
        counts = Words("", "plain", caption("counted"), audit.remarks)
        content += blocks.fold("counted fold", [counts])
    return section("designs", content, "designs given" if evidence.is_given else "")


def _side_by_side(audit: Measurements) -> pl.DataFrame:
    """Return a row per system, and one for chance: score and place under each design."""
    table = audit.table()
    columns: dict[str, list[str | None]] = {}
    chance: list[str | None] = []
    for design in audit.designs:
        part = {row["system"]: row for row in table.filter(design=design).iter_rows(named=True)}
        columns[design] = [
            f"{cell(part[system]['value'])} ({part[system]['place']})" for system in audit.order()
        ]
        random = next(iter(part.values()))["random"]
        chance.append(None if random is None else cell(random))
    names = audit.order()
    if any(text is not None for text in chance):
        names = [*names, title("chance row")]
        for design, value in zip(audit.designs, chance, strict=True):
            columns[design].append(value)
    return pl.DataFrame({"system": names, **columns})


def _scores(audit: Measurements) -> list[Block]:
    """Show every number of every design."""
    table = audit.table()
    has_chance = table["random"].null_count() < table.height
    case = "scores note given" if audit.evidence.is_given else "scores note"
    note = caption(case if has_chance else f"{case} no chance")
    frame = table if has_chance else table.drop("random")
    return [blocks.table("scores", frame, 4, note, metric=audit.metric)]


def _reach(audit: Measurements) -> list[Block]:
    if audit.reach is None or not audit.reach.height:
        return []
    return [blocks.reach_table(audit.reach)]


# Decisions


def _decisions(audit: Measurements) -> Section:
    contrasts = audit.evidence.contrasts
    content: list[Block] = facts(audit.statements, "target")
    content += [sentence(statement) for statement in of_kinds(audit.statements, "equal")]
    note = caption("decided note")
    content.append(blocks.table("decided", _decided(audit), note=note, metric=audit.metric))
    differences = blocks.table(
        "contrasts", contrasts.display_table(), 4, caption("contrasts note"), metric=audit.metric
    )
    content += blocks.fold("contrasts fold", [differences])
    if len(audit.designs) > 1:
        note = caption("consensus note")
        places = blocks.table("consensus", audit.consensus(), 2, note)
        content += blocks.fold("consensus fold", [places])
    if audit.agreement is not None:
        content += blocks.fold("agreement fold", _agreement(audit))
    if audit.choices is not None:
        content += blocks.fold("choices fold", [blocks.picture(audit.choices.figure)])
    if audit.segments is not None:
        content += blocks.fold("segments fold", _segments(audit.segments))
    return section("decisions", blocks.filled(content, audit.skipped, ("agreement",)))


def _segments(segments: SegmentComparison) -> list[Block]:
    """Show the differences of given systems within segments of users."""
    names = ("a", "b", "segment", "users", "difference", "low", "high")
    rows = segments.table().select(*names, p="p_corrected")
    tests = segments.interactions().select("a", "b", "difference", interaction="p_corrected")
    about = {"metric": segments.metrics[0], "by": segments.by}
    note = caption("segments note", rule=segments.rule)
    return [
        blocks.table("segments", rows, 4, note, **about),
        blocks.table("interactions", tests, 4, caption("interactions note"), **about),
    ]


def _decided(audit: Measurements) -> pl.DataFrame:
    """Return a row per pair: under each design, whether the first system is ahead of the other."""
    evidence = audit.evidence
    order = audit.order()
    pairs = [(a, b) for index, a in enumerate(order) for b in order[index + 1 :]]

    def decided(a: str, b: str, design: str) -> str:
        if evidence.ahead(a, b, design):
            return title("is ahead")
        return title("is behind") if evidence.ahead(b, a, design) else title("is open")

    return pl.DataFrame(
        {
            "a": [a for a, _ in pairs],
            "b": [b for _, b in pairs],
            **{design: [decided(a, b, design) for a, b in pairs] for design in audit.designs},
        }
    )


def _agreement(audit: Measurements) -> list[Block]:
    agreement = audit.agreement
    assert agreement is not None
    pairs = agreement.pairs().select("a", "b", "tau", "low", "high", "swaps").drop_nulls("tau")
    if not pairs.height:
        return []
    figures = [blocks.picture(agreement.figure)] if len(audit.designs) > 2 else []
    return [*figures, blocks.table("agreement", pairs, 2, caption("agreement note"))]


# The ladder


def _ladder(audit: Measurements) -> Section:
    ladder = audit.evidence.ladder
    content: list[Block] = []
    if ladder is not None:
        kinds = ("system-match", "system-opinion")
        content += [sentence(statement) for statement in of_kinds(audit.statements, *kinds)]
        content.append(blocks.picture(ladder.figure, system_colours(audit.order())))
        content += _floor(ladder)
        pairs = of_kinds(audit.statements, "opinion", "match", "popular", "reason-open")
        if pairs:
            table = statement_table(title("reasons"), pairs[: blocks.MOST_ROWS])
            content += blocks.fold("reasons fold", [table])
        content += blocks.fold("ladder fold", _steps(audit, ladder))
    return section("ladder", blocks.filled(content, audit.skipped, ("ladder",)))


def _steps(audit: Measurements, ladder: Ladder) -> list[Block]:
    table = ladder.table()
    names = [name for name, _ in RUNGS]
    steps = table.select(column for column in table.columns if column not in names)
    precision, note = audit.evidence.precision, caption("ladder note")
    rungs = pl.DataFrame(RUNGS, schema=["rung", title("kept")], orient="row")
    return [
        blocks.table("rungs", rungs),
        blocks.table("ladder", table.select("system", *names), 4, precision=precision),
        blocks.table("steps", steps, 4, note),
        blocks.table("ladder pairs", ladder.pairs().select(PAIR_STEPS), 4, note),
    ]


def _floor(ladder: Ladder) -> list[Block]:
    """Show the match of popularity itself."""
    popular = next(
        (system for system in ladder.systems if system.split(" (")[0] == "popularity"), None
    )
    if popular is None:
        return []
    step = ladder.step("match", popular)
    if step.low is None or step.high is None:
        return []
    return [Words(caption("floor", match=with_interval(step.value, step.low, step.high)))]
