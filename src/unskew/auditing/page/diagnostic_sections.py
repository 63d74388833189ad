"""The sections of a report below its decisions: liking, protocol, truth, error rates, card."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING

import polars as pl

from unskew.auditing.page import blocks, charts
from unskew.auditing.page.captions import caption, title
from unskew.auditing.page.glossary import SPLITS
from unskew.auditing.page.paper_files import bibtex
from unskew.auditing.page.reproduction import plan_toml
from unskew.auditing.page.statement_blocks import (
    of_kinds,
    rates,
    rates_block,
    statement_table,
)
from unskew.auditing.split_lights import WITHIN_TIME
from unskew.auditing.statements.statement import names
from unskew.metrics.names import parse
from unskew.report.charts import system_colours
from unskew.report.document import Block, Code, Words
from unskew.report.text import counted
from unskew.splits.diagnosis.diagnosis import Diagnosis

if TYPE_CHECKING:
    from unskew.auditing.measurements import Measurements
    from unskew.auditing.null.null_experiment import NullExperiment
    from unskew.unbiased.weighted_estimates import WeightedEstimates


NULL_COLUMNS = (
    *("design", "system", "real", "real_random", "null_value", "null_random"),
    *("ratio", "ratio_low", "ratio_high"),
)
"""What is shown of the null experiment."""
SHARE_COLUMNS = (
    *("system", "a", "b", "weights", "judged", "judged_a", "judged_b"),
    *("shown", "shown_a", "shown_b", "users", "value", "low", "high", "reason"),
)
"""What is shown of liked shares, and of what randomly shown items say."""
ESTIMATE_COLUMNS = (
    *("system", "metric", "naive", "ips", "ips_low", "ips_high"),
    *("snips", "snips_low", "snips_high", "hits", "ess"),
)
"""What is shown of estimates that weigh judgments."""


def liked(audit: Measurements) -> Iterator[Block]:
    """Yield liked shares, and the estimates that weigh judgments."""
    if not audit.core.implicit:
        yield from _shares(audit)
        if audit.margins is not None:
            of_systems, k = audit.margins.systems, audit.margins.k or 10
            yield blocks.picture(partial(charts.good_and_bad, of_systems, k, audit.order()))
            yield blocks.table("margins", of_systems)
    if audit.evidence.random_slice is not None:
        random_slice, precision = audit.evidence.random_slice, audit.evidence.precision
        pairs = blocks.table(
            "shown pairs",
            _shown(random_slice.parts["pairs"].display_table()),
            note="shown",
            precision=precision,
        )
        yield blocks.table("shown", _shown(random_slice.display_table()), precision=precision)
        yield from blocks.fold("shown", pairs)
    if len(audit.scores[audit.common]) > 1:
        yield Words(caption("first split"))
    if audit.estimates is not None:
        yield from blocks.fold("estimates", *_estimates(audit.estimates, audit.order()))
    if audit.strata is not None:
        colours = system_colours(audit.order())
        is_drawable = len(audit.systems) <= charts.MOST_CHARTED_SYSTEMS
        figures = [blocks.picture(audit.strata.figure, colours)] if is_drawable else []
        heads = blocks.table("heads", audit.strata.heads(), 3)
        yield from blocks.fold("strata", *figures, heads)


def _shares(audit: Measurements) -> Iterator[Block]:
    shares = audit.evidence.liked
    if shares is None:
        return
    yield blocks.table("shares", _shown(shares.display_table()))
    pairs = blocks.table("share pairs", _shown(shares.parts["pairs"].display_table()))
    yield from blocks.fold("shares", pairs)
    reversals = of_kinds(audit.statements, "break-even")[: blocks.MOST_ROWS]
    if reversals:
        yield statement_table(title("break-even"), reversals, caption("break-even note"))


def _shown(table: pl.DataFrame) -> pl.DataFrame:
    """Return what is shown of liked shares and of randomly shown items, or of differences."""
    if "levelled" in table.columns:
        weights = pl.when("levelled").then(pl.lit("levelled")).otherwise(pl.lit("plain"))
        table = table.with_columns(weights=weights)
    return blocks.without_empty(table.select(blocks.present(table, *SHARE_COLUMNS)))


def _estimates(estimates: WeightedEstimates, order: Sequence[str]) -> Iterator[Block]:
    """Show usable estimates only: others may lie outside the range of their metric."""
    table, first = estimates.table(), estimates.metrics[0]
    usable = table.filter("usable")
    if usable.filter(metric=first).height:
        rows = table.filter(metric=first)
        yield blocks.picture(partial(charts.estimates, rows, order, first))
    if usable.height:
        columns = blocks.present(usable, *ESTIMATE_COLUMNS)
        yield blocks.table("estimates", usable.select(columns))
    for metric in estimates.metrics:
        left = table.filter(~pl.col("usable"), metric=metric)["system"].to_list()
        if left:
            text = caption("unusable", metric=metric, names=names(left, len(left)))
            yield Words(text, "warning")


def protocol(audit: Measurements) -> Iterator[Block]:
    """Yield the null experiment, and what tests and parts of the ratings say of metrics."""
    if audit.null is not None:
        yield from _null(audit, audit.null)
    if audit.power is not None:
        table = _of_metrics(audit, audit.power.table()).sort("DP", maintain_order=True)
        count = len(audit.systems) * (len(audit.systems) - 1) // 2
        pairs = counted(count, "pair of systems", "pairs of systems")
        figure = blocks.picture(audit.power.figure)
        yield from blocks.fold("power", blocks.table("power", table, pairs=pairs), figure)
    robust: list[Block] = []
    systems = counted(len(audit.systems), "system")
    for name, robustness in (("sparsity", audit.sparsity), ("popularity", audit.popularity)):
        if robustness is not None:
            table = _of_metrics(audit, robustness.summary())
            robust.append(blocks.table(name, table, 3, "robustness", systems=systems))
            robust.append(blocks.picture(robustness.figure))
    yield from blocks.fold("robust", *robust)


def _of_metrics(audit: Measurements, table: pl.DataFrame) -> pl.DataFrame:
    """Leave metrics of disliked items out where nothing is disliked."""
    if not audit.core.implicit:
        return table
    mask = [parse(label).anti is False for label in table["metric"]]
    return table.filter(pl.Series(mask, dtype=pl.Boolean))


def _null(audit: Measurements, null: NullExperiment) -> Iterator[Block]:
    table = null.table().filter(metric=audit.metric)
    case = "null lists" if audit.evidence.is_given else "null trained"
    yield Words(caption(case, repeats=counted(null.repeats, "repeat")))
    yield Words("" if null.budget is None else null.budget.sentence())
    yield from map(Words, null.notes)
    common = table.filter(design=audit.common)
    if common.height:
        yield blocks.picture(
            partial(charts.null, common, audit.order(), audit.metric, audit.common)
        )
    rows = blocks.without_empty(table.select(NULL_COLUMNS))
    yield from blocks.fold("null", blocks.table("null", rows))
    missing = [design for design in audit.designs if design not in set(table["design"])]
    if missing:
        yield Words(caption("null designs", designs=", ".join(missing)))


def truth(audit: Measurements) -> Iterator[Block]:
    """Yield the designs, held against the truth."""
    result, metric = audit.truth, audit.metric
    if result is None:
        yield Words(caption("truth unknown"))
        return
    yield Words(caption("truth source", source=result.source_name))
    agreement = result.agreement()
    rows = agreement.filter(metric=metric)
    if rows["tau"].null_count() < rows.height:
        yield blocks.picture(partial(charts.agreement_with_truth, rows.to_dicts(), metric))
    yield blocks.table("orders", result.orders(metric))
    values = result.table().filter(metric=metric).drop("metric")
    common = values.filter(design=audit.common)
    yield blocks.picture(partial(charts.observed_and_true, common, audit.order(), metric))
    columns = ["design", "metric", "tau", "low", "high", "swaps", "mean_error"]
    yield from blocks.fold(
        "truth",
        blocks.table("true orders", agreement.select(columns), 2),
        blocks.table("true values", values),
    )


def filters(audit: Measurements) -> Iterator[Block]:
    """Yield how far filters moved scores and order."""
    effect = audit.filter_effect
    assert effect is not None
    changes = effect.orders.changes().select(
        *("a", "b"),
        pl.col("reverses").replace_strict({True: "yes", False: "not shown"}),
        *("least", "most", "p_corrected"),
        *(pl.col(name).list.join(", ") for name in ("a_ahead", "b_ahead")),
    )
    yield blocks.table("filter steps", effect.removed())
    yield blocks.table("filter scores", effect.table().drop("metric"), metric=audit.metric)
    yield blocks.picture(effect.figure)
    yield blocks.table("filter changes", changes)
    yield from blocks.fold("filter sizes", blocks.table("filter sizes", effect.sizes))


def error_rates(audit: Measurements) -> Iterator[Block]:
    """Yield how often sentences of each kind are wrong."""
    yield rates_block(audit.statements, rates())


def card(audit: Measurements) -> Iterator[Block]:
    """Yield all from which everything can be derived again."""
    name = title("command" if audit.command.startswith("unskew ") else "code")
    yield Code(name, audit.command)
    count = len(audit.plans)
    case = "plan" if count == 1 else "plan of several"
    plans = [
        Code(title(case, number=number, count=count), plan_toml(plan))
        for number, plan in enumerate(audit.plans, start=1)
    ]
    yield from blocks.fold("plans", *plans)
    yield from blocks.fold("card", blocks.table("card", blocks.card_table(audit.card)))
    yield from blocks.fold("citations", Code(title("citations"), bibtex(audit)))


def leaks(audit: Measurements) -> Iterator[Block]:
    """Yield lights first; facts folded."""
    mixed, diagnoses = audit.lights.mixed, audit.lights.diagnoses
    if mixed:
        splits = ", ".join(SPLITS.get(split, split) for split in mixed)
        yield Words(caption("no cut", names=splits), "warning")
    if not diagnoses:
        yield Words(caption("no training part"))
        return
    judged = _checks(diagnoses, ("leak", "look", "ok"), mixed)
    yield blocks.table("lights", judged)
    in_time = [split for split in diagnoses if split not in mixed]
    drawn = next((diagnoses[split] for split in in_time if diagnoses[split].timelines), None)
    if drawn is not None:
        yield blocks.picture(drawn.figure)
        if drawn.drift:
            yield blocks.picture(partial(drawn.figure, "drift"))
    # Facts are those of a split by time, if there is one.
    first = next(iter([*in_time, *diagnoses]))
    facts = _checks({first: diagnoses[first]}, ("shown",)).drop("light")
    yield from blocks.fold("facts", blocks.table("facts", facts))
    unknown = _checks(diagnoses, ("unknown",)).drop("light", "amount")
    yield from blocks.fold("unknown", blocks.table("unknown", unknown))


def _checks(
    diagnoses: Mapping[str, Diagnosis], lights: Sequence[str], mixed: Sequence[str] = ()
) -> pl.DataFrame:
    """Return a row per check of some lights, without those that a mixed split always fails."""
    rows = [
        (SPLITS.get(split, split), light, check.title, check.short, check.sentence)
        for light in lights
        for split, diagnosis in diagnoses.items()
        for check in diagnosis.of_light(light)
        if split not in mixed or check.key not in WITHIN_TIME
    ]
    names = ("split", "light", "check", "amount", "sentence")
    return pl.DataFrame(rows, schema=dict.fromkeys(names, pl.String), orient="row")
