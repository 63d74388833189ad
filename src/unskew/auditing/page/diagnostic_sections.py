"""The sections of a report below its decisions: liking, protocol, truth, error rates, card."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING

import polars as pl

from unskew.auditing.page import blocks, charts
from unskew.auditing.page.blocks import section
from unskew.auditing.page.captions import caption, title
from unskew.auditing.page.glossary import SPLITS
from unskew.auditing.page.paper_files import bibtex
from unskew.auditing.page.reproduction import plan_toml
from unskew.auditing.page.statement_blocks import rates, rates_block, statement_table
from unskew.auditing.split_lights import WITHIN_TIME
from unskew.auditing.statements.statement import names
from unskew.metrics.names import parse
from unskew.report.charts import system_colours
from unskew.report.document import Block, Code, Section, Words
from unskew.report.text import counted
from unskew.splits.diagnosis.check import Check
from unskew.splits.diagnosis.diagnosis import Diagnosis

if TYPE_CHECKING:
    from unskew.auditing.measurements import Measurements
    from unskew.auditing.null.null_experiment import NullExperiment
    from unskew.auditing.truth.truth import Truth
    from unskew.unbiased.weighted_estimates import WeightedEstimates


NULL_COLUMNS = (
    *("design", "system", "real", "real_random", "null_value", "null_random"),
    *("ratio", "ratio_low", "ratio_high"),
)
"""What is shown of the null experiment."""


# Liked when judged


def liked(audit: Measurements) -> Section:
    """Return the section about liked shares, and the estimates that weigh judgments."""
    implicit = audit.core.implicit
    content: list[Block] = [] if implicit else [*_shares(audit), *_margins(audit)]
    content += _shown(audit)
    if len(audit.scores[audit.common]) > 1:
        content.append(Words(caption("first split")))
    if audit.estimates is not None:
        content += blocks.fold("estimates fold", _estimates(audit.estimates, audit.order()))
    if audit.strata is not None:
        colours = system_colours(audit.order())
        is_drawable = len(audit.systems) <= charts.MOST_CHARTED_SYSTEMS
        figures = [blocks.picture(audit.strata.figure, colours)] if is_drawable else []
        heads = blocks.table("heads", audit.strata.heads(), 3)
        content += blocks.fold("strata fold", [*figures, heads])
    needs = ("liked shares", "margins", "unbiased estimates", "popularity deciles")
    case = "liked implicit" if implicit else ""
    return section("liked", blocks.filled(content, audit.skipped, needs), case)


def _shares(audit: Measurements) -> list[Block]:
    shares = audit.evidence.liked
    if shares is None:
        return []
    note = caption("shares note")
    content: list[Block] = [blocks.table("shares", _of_shares(shares.display_table()), 4, note)]
    pairs = blocks.table("share pairs", _of_shares(shares.parts["pairs"].display_table()), 4)
    content += blocks.fold("shares fold", [pairs])
    reversals = [statement for statement in audit.statements if statement.kind == "break-even"]
    if reversals:
        note = caption("break-even note")
        content.append(statement_table(title("break-even"), reversals[: blocks.MOST_ROWS], note))
    return content


def _of_shares(table: pl.DataFrame) -> pl.DataFrame:
    """Return what is shown of liked shares or of their differences."""
    weights = pl.when("levelled").then(pl.lit("levelled")).otherwise(pl.lit("plain"))
    names = ("system", "a", "b", "weights", "judged", "judged_a", "judged_b", "users")
    rows = table.with_columns(weights=weights)
    columns = blocks.present(rows, *names, "value", "low", "high", "reason")
    return blocks.without_empty(rows.select(columns))


def _margins(audit: Measurements) -> list[Block]:
    if audit.margins is None:
        return []
    split = audit.margins
    return [
        blocks.picture(lambda: charts.good_and_bad(split.systems, split.k or 10, audit.order())),
        blocks.table("margins", split.systems, 4, caption("margins note")),
    ]


def _shown(audit: Measurements) -> list[Block]:
    """Show what randomly shown items say, where there are any."""
    random_slice, precision = audit.evidence.random_slice, audit.evidence.precision
    if random_slice is None:
        return []
    note = caption("shown note")
    pairs = _of_slice(random_slice.parts["pairs"].display_table())
    return [
        blocks.table(
            "shown", _of_slice(random_slice.display_table()), 4, note, precision=precision
        ),
        *blocks.fold(
            "shown fold",
            [blocks.table("shown pairs", pairs, 4, note, precision=precision)],
        ),
    ]


def _of_slice(table: pl.DataFrame) -> pl.DataFrame:
    """Return what is shown of randomly shown items."""
    names = ("system", "a", "b", "shown", "shown_a", "shown_b", "users")
    columns = blocks.present(table, *names, "value", "low", "high", "reason")
    return blocks.without_empty(table.select(columns))


def _estimates(estimates: WeightedEstimates, order: Sequence[str]) -> list[Block]:
    """Show usable estimates only: others may lie outside the range of their metric."""
    table = estimates.table()
    usable = table.filter("usable")
    content: list[Block] = []
    first = estimates.metrics[0]
    if usable.filter(pl.col("metric") == first).height:
        rows = table.filter(pl.col("metric") == first)
        content.append(blocks.picture(lambda: charts.estimates(rows, order, first)))
    if usable.height:
        columns = ["system", "metric", "naive", "ips", "ips_low", "ips_high"]
        columns += ["snips", "snips_low", "snips_high", "hits", "ess"]
        selection = usable.select(blocks.present(usable, *columns))
        content.append(blocks.table("estimates", selection, 4, caption("estimates note")))
    for metric in estimates.metrics:
        left = table.filter((pl.col("metric") == metric) & ~pl.col("usable"))["system"].to_list()
        if left:
            text = caption("unusable", metric=metric, names=names(left, len(left)))
            content.append(Words(text, "warning"))
    return content


# The null experiment, and the metrics


def protocol(audit: Measurements) -> Section:
    """Return the section about the protocol and its metrics."""
    content: list[Block] = []
    if audit.null is not None:
        content += _null(audit, audit.null)
    dislikes = not audit.core.implicit
    robust: list[Block] = []
    if audit.power is not None:
        table = _of_metrics(audit.power.table(), dislikes).sort("DP", maintain_order=True)
        pairs = len(audit.systems) * (len(audit.systems) - 1) // 2
        note = caption("power note", pairs=counted(pairs, "pair of systems", "pairs of systems"))
        grid = blocks.table("power", table, 4, note)
        content += blocks.fold("power fold", [grid, blocks.picture(audit.power.figure)])
    for name, robustness in (("sparsity", audit.sparsity), ("popularity", audit.popularity)):
        if robustness is not None:
            systems = counted(len(audit.systems), "system")
            note = caption("robustness note", systems=systems)
            table = _of_metrics(robustness.summary(), dislikes)
            robust += [blocks.table(name, table, 3, note), blocks.picture(robustness.figure)]
    content += blocks.fold("robust fold", robust)
    needs = (
        "null experiment",
        "discriminative power",
        "robustness to sparsity",
        "robustness to popularity",
    )
    case = "protocol given" if audit.evidence.is_given else ""
    return section("protocol", blocks.filled(content, audit.skipped, needs), case)


def _of_metrics(table: pl.DataFrame, dislikes: bool) -> pl.DataFrame:
    """Leave metrics of disliked items out where nothing is disliked."""
    if dislikes:
        return table
    mask = [parse(label).anti is False for label in table["metric"]]
    return table.filter(pl.Series(mask, dtype=pl.Boolean))


def _null(audit: Measurements, null: NullExperiment) -> list[Block]:
    table = null.table().filter(pl.col("metric") == audit.metric)
    case = "null lists" if audit.evidence.is_given else "null trained"
    content: list[Block] = [Words(caption(case, repeats=counted(null.repeats, "repeat")))]
    why = "" if null.budget is None else null.budget.sentence()
    content += [Words(text) for text in (why, *null.notes) if text]
    common = table.filter(pl.col("design") == audit.common)
    if common.height:
        content.append(
            blocks.picture(lambda: charts.null(common, audit.order(), audit.metric, audit.common))
        )
    rows = blocks.without_empty(table.select(NULL_COLUMNS))
    grid = blocks.table("null", rows, 4, caption("null note"))
    content += blocks.fold("null fold", [grid])
    seen = set(table["design"])
    missing = [design for design in audit.designs if design not in seen]
    if missing:
        content.append(Words(caption("null designs", designs=", ".join(missing))))
    return content


# The truth


def truth(audit: Measurements) -> Section:
    """Return the section that holds designs against the truth."""
    if audit.truth is None:
        content: list[Block] = [Words(caption("truth unknown"))]
    else:
        content = _truth(audit, audit.truth)
    return section("truth", content)


def _truth(audit: Measurements, result: Truth) -> list[Block]:
    content: list[Block] = [Words(caption("truth source", source=result.source_name))]
    agreement = result.agreement()
    rows = agreement.filter(pl.col("metric") == audit.metric)
    if rows["tau"].null_count() < rows.height:
        content.append(
            blocks.picture(lambda: charts.agreement_with_truth(rows.to_dicts(), audit.metric))
        )
    content.append(blocks.table("orders", result.orders(audit.metric)))
    values = result.table().filter(pl.col("metric") == audit.metric).drop("metric")
    common = values.filter(pl.col("design") == audit.common)
    content.append(
        blocks.picture(lambda: charts.observed_and_true(common, audit.order(), audit.metric))
    )
    columns = ["design", "metric", "tau", "low", "high", "swaps", "mean_error"]
    numbers = [
        blocks.table("true orders", agreement.select(columns), 2, caption("true orders note")),
        blocks.table("true values", values, 4, caption("true values note")),
    ]
    return [*content, *blocks.fold("truth fold", numbers)]


# The filters


def filters(audit: Measurements) -> Section:
    """Return the section that says how far filters moved scores and order."""
    effect = audit.filter_effect
    assert effect is not None
    changes = effect.orders.changes().select(
        *("a", "b"),
        pl.col("reverses").replace_strict({True: "yes", False: "not shown"}),
        *("least", "most", "p_corrected"),
        *(pl.col(name).list.join(", ") for name in ("a_ahead", "b_ahead")),
    )
    content: list[Block] = [
        blocks.table("filter steps", effect.removed()),
        blocks.table("filter scores", effect.table().drop("metric"), 4, metric=audit.metric),
        blocks.picture(effect.figure),
        blocks.table("filter changes", changes),
        *blocks.fold("filter sizes", [blocks.table("filter sizes", effect.sizes)]),
    ]
    return section("filters", content)


# Error rates, and the card


def error_rates(audit: Measurements) -> Section:
    """Return the section that says how often sentences of each kind are wrong."""
    return section("error-rates", [rates_block(audit.statements, rates())])


def card(audit: Measurements) -> Section:
    """Return the section from which everything can be derived again."""
    name = title("command" if audit.command.startswith("unskew ") else "code")
    content: list[Block] = [Code(name, audit.command)]
    count = len(audit.plans)
    plans: list[Block] = []
    for number, plan in enumerate(audit.plans, start=1):
        name = title("plan") if count == 1 else title("plan of several", number=number, count=count)
        plans.append(Code(name, plan_toml(plan)))
    content += blocks.fold("plans fold", plans)
    content += blocks.fold("card fold", [blocks.table("card", blocks.card_table(audit.card))])
    content += blocks.fold("citations fold", [Code(title("citations"), bibtex(audit))])
    return section("card", content)


NAMES = ("split", "light", "check", "amount", "sentence")
FACTS = tuple(name for name in NAMES if name != "light")


def leaks(audit: Measurements) -> Section:
    """Return the section: lights first, facts folded."""
    lights = audit.lights
    content: list[Block] = []
    if lights.mixed:
        names = ", ".join(_name(split) for split in lights.mixed)
        content.append(Words(caption("no cut", names=names), "warning"))
    if lights.diagnoses:
        content.append(_lights(lights.diagnoses, lights.mixed))
        content += _figures(lights.diagnoses, lights.mixed)
        content += blocks.fold("facts fold", [_facts(lights.diagnoses, lights.mixed)])
        content += blocks.fold("unknown fold", [_unknown(lights.diagnoses)])
    else:
        content.append(Words(caption("no training part")))
    return section("leaks", blocks.filled(content, audit.skipped, ()))


def _name(protocol: str) -> str:
    return SPLITS.get(protocol, protocol)


def _lights(diagnoses: Mapping[str, Diagnosis], mixed: tuple[str, ...]) -> Block:
    """Return a table of all checks that judge, the worst first."""
    rows = [
        (_name(protocol), light, *_cells(check))
        for light in ("leak", "look", "ok")
        for protocol, diagnosis in diagnoses.items()
        for check in diagnosis.of_light(light)
        if protocol not in mixed or check.key not in WITHIN_TIME
    ]
    return blocks.table("lights", _frame(rows, NAMES), note=caption("lights note"))


def _facts(diagnoses: Mapping[str, Diagnosis], mixed: tuple[str, ...]) -> Block:
    """Return a table of what is shown without a judgement: of a split by time, if there is one."""
    ordered = sorted(diagnoses, key=lambda split: split in mixed)
    rows = [
        (_name(ordered[0]), *_cells(check)) for check in diagnoses[ordered[0]].of_light("shown")
    ]
    return blocks.table("facts", _frame(rows, FACTS))


def _unknown(diagnoses: Mapping[str, Diagnosis]) -> Block:
    """Return a table of what could not be checked, and why."""
    rows = [
        (_name(protocol), *_cells(check))
        for protocol, diagnosis in diagnoses.items()
        for check in diagnosis.of_light("unknown")
    ]
    return blocks.table("unknown", _frame(rows, FACTS).drop("amount"))


def _cells(check: Check) -> tuple[str, str, str]:
    return check.title, check.short, check.sentence


def _frame(rows: Sequence[tuple[str, ...]], names: Sequence[str]) -> pl.DataFrame:
    return pl.DataFrame(rows, schema=dict.fromkeys(names, pl.String), orient="row")


def _figures(diagnoses: Mapping[str, Diagnosis], mixed: tuple[str, ...]) -> list[Block]:
    """Return rows over time, and the drift of items, of a split by time."""
    for protocol, diagnosis in diagnoses.items():
        if protocol not in mixed and diagnosis.timelines:
            figures: list[Block] = [blocks.picture(diagnosis.figure)]
            if diagnosis.drift:
                figures.append(blocks.picture(partial(diagnosis.figure, "drift")))
            return figures
    return []
