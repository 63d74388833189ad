"""The sections of a report: what was measured in tables and figures, and what may be stated."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import polars as pl

from unskew.auditing import blocks, charts, diagnostic_sections
from unskew.auditing.blocks import section
from unskew.auditing.captions import RUNGS, caption, title
from unskew.auditing.error_rates import rate_values
from unskew.auditing.explorer import explorer_of
from unskew.auditing.headline import headline
from unskew.auditing.self_test.rates import rates
from unskew.auditing.statement_blocks import (
    facts,
    lead,
    of_kinds,
    pair_table,
    sentence,
    statement_table,
)
from unskew.auditing.wording import with_interval
from unskew.report.document import Block, Document, Picture, Section, Words
from unskew.report.tables import Table

if TYPE_CHECKING:
    from unskew.auditing.measurements import Measurements
    from unskew.bias.steps import Ladder
    from unskew.splits.diagnose import SplitAudit

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
        _designs,
        _decisions,
        _ladder,
        diagnostic_sections.liked,
        diagnostic_sections.protocol,
        diagnostic_sections.truth,
        diagnostic_sections.error_rates,
        diagnostic_sections.card,
    )
    return Document(
        title("title", name=audit.name),
        lead(audit.first_screen),
        tuple(blocks.drawable(make(audit)) for make in parts),
        dict(audit.card),
        audit.systems,
        values_of(audit),
        headline(audit),
        explorer=explorer_of(audit),
    )


def values_of(audit: Measurements) -> dict[str, object]:
    """Return what programs read: the verdict, the first screen by kind, and all statements."""
    screen, measured = audit.first_screen, rates()
    return {
        "verdict": screen.verdict,
        "first_screen": {one.kind: one.text for one in screen.sentences},
        "statements": [one.to_dict(rate_values(one.kind, measured)) for one in audit.statements],
    }


def _answer(audit: Measurements) -> Section:
    content: list[Block] = []
    pairs = pair_table(audit.statements, blocks.MOST_ROWS)
    if pairs is not None:
        content.append(pairs)
    if audit.assumed:
        content.append(Words("", "plain", caption("assumed"), audit.assumed))
    if audit.skipped:
        points = tuple(f"{what}: {why}" for what, why in audit.skipped.items())
        content.append(Words("", "plain", caption("all not done"), points))
    return section("answer", content)


# The data


def _data(audit: Measurements) -> Section:
    core = audit.core
    content: list[Block] = facts(
        audit.statements, "implicit", "references", "tuned", "untuned", "tuned-edge", "cold"
    )
    if audit.data is not None:
        content.append(blocks.facts_table(title("data"), audit.data.table()))
        content.append(Picture(audit.data.figure()))
    if audit.bias is not None and not core.implicit:
        bias = audit.bias
        content.append(blocks.picture(lambda: bias.figure("positive-ratio")))
        content.append(blocks.table(title("bins"), bias.bins(), 3))
    content += _splits(audit)
    content += _settings(audit)
    if audit.notes:
        content.append(Words("", "plain", caption("notes"), audit.notes))
    case = "data implicit" if core.implicit else "data given" if audit.evidence.is_given else ""
    return section("data", blocks.filled(content, {}, ()), case)


def _splits(audit: Measurements) -> list[Block]:
    if not audit.splits:
        return []
    rows = [
        {"split": name} | {key: value for key, value in one.describe().items() if key != "label"}
        for name, one in audit.splits.items()
    ]
    table = pl.DataFrame(rows, infer_schema_length=None)
    counts = [words for name, one in audit.splits.items() for words in _counts(name, one)]
    name = title("given split" if audit.evidence.is_given else "splits")
    return [blocks.facts_table(name, table), *counts]


def _counts(name: str, one: SplitAudit) -> list[Words]:
    """Count test ratings older than training ones, pairs in both parts, and cold users."""
    texts = []
    if one.before_any_train is not None and one.before_any_train > WORTH_SAYING:
        texts.append(caption("older", share=f"{one.before_any_train:.1%}", name=name))
    if one.duplicates:
        texts.append(caption("in both parts", count=f"{one.duplicates:,}", name=name))
    if one.cold_users > WORTH_SAYING * one.test_users:
        count, users = f"{one.cold_users:,}", f"{one.test_users:,}"
        texts.append(caption("cold users", count=count, users=users, name=name))
    return [Words(text, "warning") for text in texts]


def _settings(audit: Measurements) -> list[Block]:
    """Return the settings that tuning chose."""
    rows = [
        {"system": system, "split": at, "settings": one.text}
        for at, of_split in enumerate(audit.core.tuned, start=1)
        for system, one in of_split.items()
    ]
    if not rows:
        return []
    table = pl.DataFrame(rows).sort("system", "split", maintain_order=True)
    return [blocks.table(title("settings"), table)]


# Designs


def _designs(audit: Measurements) -> Section:
    order, table, evidence = audit.order(), audit.table(), audit.evidence
    known = table["random"].null_count() < table.height
    case = "scores note given" if evidence.is_given else "scores note"
    note = caption(case if known else f"{case} no chance")
    metric = audit.metric
    about = pl.DataFrame(
        {"design": list(audit.designs), "what is done": list(audit.designs.values())}
    )
    content: list[Block] = [
        blocks.table(title("designs"), about),
        Picture(charts.designs(table, order, metric, list(audit.designs))),
        blocks.table(
            title("scores", metric=metric), table if known else table.drop("random"), 4, note
        ),
    ]
    if evidence.core.has_cold:
        cold = evidence.core.cold_table().filter(pl.col("cold") > 0)
        content.append(blocks.table(title("cold", metric=metric), cold, 4, caption("cold note")))
    content += facts(audit.statements, "same-design", "degenerate-design")
    content += [
        Words(caption("left out", design=name, why=why))
        for name, why in audit.unstated_designs().items()
    ]
    content += _reach(audit)
    content += [
        Words(caption("not done", what=what.removeprefix("design "), why=why))
        for what, why in audit.skipped.items()
        if what.startswith("design ")
    ]
    if audit.remarks:
        content.append(Words("", "warning", caption("counted"), audit.remarks))
    return section("designs", content, "designs given" if evidence.is_given else "")


def _reach(audit: Measurements) -> list[Block]:
    if audit.reach is None or not audit.reach.height:
        return []
    return [blocks.reach_table(audit.reach)]


# Decisions


def _decisions(audit: Measurements) -> Section:
    contrasts = audit.evidence.contrasts
    content: list[Block] = facts(audit.statements, "target")
    content += [sentence(one) for one in of_kinds(audit.statements, "equal")]
    content.append(
        blocks.table(
            title("contrasts", metric=audit.metric),
            contrasts.display_table(),
            4,
            caption("contrasts note"),
        )
    )
    if len(audit.designs) > 1:
        order = audit.consensus()["system"].to_list()
        content.append(Picture(charts.places(audit.table(), order, list(audit.designs))))
        content.append(
            blocks.table(title("consensus"), audit.consensus(), 2, caption("consensus note"))
        )
    if audit.agreement is not None:
        content += _agreement(audit)
    if audit.choices is not None:
        content.append(blocks.picture(audit.choices.figure))
    return section("decisions", blocks.filled(content, audit.skipped, ("agreement",)))


def _agreement(audit: Measurements) -> list[Block]:
    agreement = audit.agreement
    assert agreement is not None
    pairs = agreement.pairs().select("a", "b", "tau", "low", "high", "swaps").drop_nulls("tau")
    if not pairs.height:
        return []
    note = caption("agreement note")
    return [blocks.picture(agreement.figure), blocks.table(title("agreement"), pairs, 2, note)]


# The ladder


def _ladder(audit: Measurements) -> Section:
    ladder = audit.evidence.ladder
    content: list[Block] = []
    if ladder is not None:
        kinds = ("system-match", "system-opinion")
        content += [sentence(one) for one in of_kinds(audit.statements, *kinds)]
        content.append(blocks.picture(ladder.figure))
        rungs = pl.DataFrame(RUNGS, schema=["rung", "kept of the test part"], orient="row")
        content.append(Table(title("rungs"), rungs))
        content += _steps(audit, ladder)
        content += _floor(ladder)
        pairs = of_kinds(audit.statements, "opinion", "match", "popular", "reason-open")
        if pairs:
            content.append(statement_table(title("reasons"), pairs[: blocks.MOST_ROWS]))
    return section("ladder", blocks.filled(content, audit.skipped, ("ladder",)))


def _steps(audit: Measurements, ladder: Ladder) -> list[Block]:
    table = ladder.table()
    names = [name for name, _ in RUNGS]
    steps = table.select(one for one in table.columns if one not in names)
    precision, note = audit.evidence.precision, caption("ladder note")
    return [
        blocks.table(title("ladder", precision=precision), table.select("system", *names), 4),
        blocks.table(title("steps"), steps, 4, note),
        blocks.table(title("ladder pairs"), ladder.pairs().select(PAIR_STEPS), 4, note),
    ]


def _floor(ladder: Ladder) -> list[Block]:
    """Show the match of popularity itself."""
    popular = next((one for one in ladder.systems if one.split(" (")[0] == "popularity"), None)
    if popular is None:
        return []
    step = ladder.step("match", popular)
    if step.low is None or step.high is None:
        return []
    return [Words(caption("floor", match=with_interval(step.value, step.low, step.high)))]
