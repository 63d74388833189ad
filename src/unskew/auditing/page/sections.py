"""The sections of a report: what was measured in tables and figures, and what may be stated."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import combinations
from typing import TYPE_CHECKING, Any

import polars as pl

from unskew.auditing.measurements import WITHIN_TIME
from unskew.auditing.page import blocks, charts
from unskew.auditing.page.captions import RUNGS, caption, title
from unskew.auditing.page.charts import panel_titles
from unskew.auditing.page.checklist import checklist_blocks
from unskew.auditing.page.glossary import PARTS, SPLITS, glossary_of
from unskew.auditing.page.headline import explorer_of, headline, pair_of, verdict_of
from unskew.auditing.page.paper_files import bibtex
from unskew.auditing.page.reproduction import plan_toml
from unskew.auditing.page.statement_blocks import (
    facts,
    lead,
    of_kinds,
    pair_blocks,
    rate_values,
    rates,
    rates_block,
    sentence,
    statement_table,
)
from unskew.auditing.statements.first_screen import POPULAR_LIKING
from unskew.auditing.statements.statement import names, with_interval
from unskew.metrics.names import parse
from unskew.report.charts import Figure, system_colours
from unskew.report.document import Block, Code, Document, Words
from unskew.report.text import cell, counted
from unskew.splits.diagnosis.diagnosis import Diagnosis

if TYPE_CHECKING:
    from unskew.auditing.measurements import Measurements
    from unskew.report.estimates import Estimates

_PAIR = pl.col("system").alias("a"), pl.col("against").alias("b")
_DIFFERENCE, _USERS = pl.col("value").alias("difference"), pl.col("n").alias("users")
_P = pl.col("p_corrected").alias("p")
"""What tables of pairs call the columns of an answer."""
SYSTEM_STEPS = dict.fromkeys(("match", "choice", "opinion"), ("value", "low", "high", "z", "t"))
PAIR_STEPS = {
    "lead": ("value", "low", "high"),
    **dict.fromkeys(("counts", "averages"), ("value",)),
    "match": ("value", "low", "high", "z"),
    "choice": ("value",),
    "opinion": ("value", "low", "high", "z"),
}
"""What is shown of the ladder: by step, of a system and of a pair."""
PREPARATION = ("sampled", "implicit", "references", "tuned", "untuned", "tuned-edge", "cold")
"""Kinds of statements about how data and systems were prepared."""
WORTH_SAYING = 0.05
"""From this share of test ratings or users on, the section about the data counts them."""
NULL_COLUMNS = {
    **{name: f"value_{name}" for name in ("real", "real_random", "null_value", "null_random")},
    "ratio": "value_ratio",
    "ratio_low": "low_ratio",
    "ratio_high": "high_ratio",
}
"""What is shown of the null experiment, and where it stands in the wide table."""
SHARE_COLUMNS = (
    *("system", "a", "b", "weights", "judged", "judged_a", "judged_b"),
    *("shown", "shown_a", "shown_b", "users", "value", "low", "high", "reason"),
)
"""What is shown of liked shares, and of what randomly shown items say."""
ESTIMATE_COLUMNS = {
    "naive": "value_naive",
    "ips": "value_ips",
    "ips_low": "low_ips",
    "ips_high": "high_ips",
    "snips": "value_snips",
    "snips_low": "low_snips",
    "snips_high": "high_snips",
    "hits": "hits_ips",
    "ess": "effective_ips",
}
"""What is shown of estimates that weigh judgments, and where it stands in the wide table."""


def document(audit: Measurements) -> Document:
    """Return the report of an audit."""
    cases = [
        *(["implicit"] if audit.core.implicit else []),
        *(["given"] if audit.evidence.is_given else []),
    ]
    report = Document(
        title("title", name=audit.name),
        lead(audit.first_screen, verdict_of(audit)[0]),
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
            yield from _counts(name, split.facts)
        rows = [{"split": name, **split.facts} for name, split in audit.splits.items()]
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


def _counts(name: str, split: Mapping[str, Any]) -> Iterator[Words]:
    """Count test ratings older than training ones, pairs in both parts, and cold users."""
    if split["before_any_train"] is not None and split["before_any_train"] > WORTH_SAYING:
        share = f"{split['before_any_train']:.1%}"
        yield Words(caption("older", share=share, name=name), "warning")
    if split["duplicates"]:
        pairs = counted(split["duplicates"], "pair is", "pairs are")
        yield Words(caption("in both parts", pairs=pairs, name=name), "warning")
    if split["cold_users"] > WORTH_SAYING * split["test_users"]:
        count, users = f"{split['cold_users']:,}", f"{split['test_users']:,}"
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
        cold = audit.core.cold_table.filter(pl.col("cold") > 0)
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
    differences = audit.evidence.contrasts.rows.select(
        "design", *_PAIR, _DIFFERENCE, "low", "high", _P, "detectable", _USERS
    )
    yield from blocks.fold("contrasts", blocks.table("contrasts", differences, metric=metric))
    if len(audit.designs) > 1:
        yield from blocks.fold("consensus", blocks.table("consensus", audit.consensus(), 2))
    if audit.agreement is not None:
        pairs = audit.agreement.rows.drop_nulls("value").select(
            pl.col("low", "high", "swaps"), a="design", b="against_design", tau="value"
        )
        pairs = pairs.select("a", "b", "tau", "low", "high", "swaps")
        if pairs.height:
            figures = [blocks.picture(audit.agreement.figure)] if len(audit.designs) > 2 else []
            yield from blocks.fold("agreement", *figures, blocks.table("agreement", pairs, 2))
    if audit.choices is not None:
        factors = [name for name in audit.choices.values_of("factor") if name != "system"]
        choices = audit.choices.where(factor=factors).sort()
        yield from blocks.fold("choices", blocks.picture(choices.figure))
    segments = audit.segments
    if segments is not None:
        rows = segments.rows.select(
            *_PAIR, pl.col("group").alias("segment"), _USERS, _DIFFERENCE, "low", "high", _P
        )
        tests = segments.parts["interactions"].rows.select(
            *_PAIR, _DIFFERENCE, _P.alias("interaction")
        )
        metric, by, rule = segments.label(), segments.card["by"], segments.card["rule"]
        yield from blocks.fold(
            "segments",
            blocks.table("segments", rows, metric=metric, by=by, rule=rule),
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
    differences = ladder.parts["pairs"].rows.with_columns(*_PAIR)
    scores = ladder.parts["rungs"].rows.pivot("rung", index="system", values="value")
    rungs = pl.DataFrame(RUNGS, schema=["rung", title("kept")], orient="row")
    yield from blocks.fold(
        "ladder",
        blocks.table("rungs", rungs),
        blocks.table("ladder", scores, precision=audit.evidence.precision),
        blocks.table("steps", _steps(ladder.rows, SYSTEM_STEPS, "system")),
        blocks.table("ladder pairs", _steps(differences, PAIR_STEPS, "a", "b"), note="steps"),
    )


def _steps(rows: pl.DataFrame, columns: Mapping[str, Sequence[str]], *keys: str) -> pl.DataFrame:
    """Return the steps of the ladder side by side."""
    frame = rows.select(keys).unique(maintain_order=True)
    for step, numbers in columns.items():
        named = [
            pl.col(name).alias(f"{step}_step" if name == "value" else f"{step}_{name}")
            for name in numbers
        ]
        part = rows.filter(step=step).select(*keys, *named)
        frame = frame.join(part, on=keys, how="left", maintain_order="left")
    return frame


def _floor(ladder: Estimates) -> Iterator[Words]:
    """Show the match of popularity itself."""
    popular = [system for system in ladder.systems if system.split(" (")[0] == "popularity"]
    for system in popular[:1]:
        step = ladder.row(step="match", system=system)
        if step.low is not None:
            yield Words(caption("floor", match=with_interval(*step.estimate)))


def _liked(audit: Measurements) -> Iterator[Block]:
    """Yield liked shares, and the estimates that weigh judgments."""
    if not audit.core.implicit:
        yield from _shares(audit)
        if audit.margins is not None:
            rows, k = audit.margins.rows, audit.margins.card["k"]
            of_systems = rows.pivot("quantity", index="system", values="value")
            yield blocks.picture(partial(charts.good_and_bad, of_systems, k, audit.order()))
            yield blocks.table("margins", of_systems)
    if audit.evidence.random_slice is not None:
        random_slice, precision = audit.evidence.random_slice, audit.evidence.precision
        pairs = blocks.table(
            "shown pairs",
            _shown(random_slice.parts["pairs"]),
            note="shown",
            precision=precision,
        )
        yield blocks.table("shown", _shown(random_slice), precision=precision)
        yield from blocks.fold("shown", pairs)
    if len(audit.scores[audit.common]) > 1:
        yield Words(caption("first split"))
    if audit.estimates is not None:
        yield from blocks.fold("estimates", *_estimates(audit.estimates, audit.order()))
    if audit.strata is not None:
        colours = system_colours(audit.order())
        is_drawable = len(audit.systems) <= charts.MOST_CHARTED_SYSTEMS
        drawings = [partial(audit.strata.figure, kind) for kind in ("strata", "shares")]
        figures = [blocks.picture(draw, colours) for draw in drawings] if is_drawable else []
        heads = blocks.table("heads", audit.strata.parts["heads"].table(), 3)
        yield from blocks.fold("strata", *figures, heads)


def _shares(audit: Measurements) -> Iterator[Block]:
    shares = audit.evidence.liked
    if shares is None:
        return
    yield from map(sentence, of_kinds(audit.statements, *POPULAR_LIKING))
    yield from facts(audit.statements, "liking-target")
    yield blocks.table("shares", _shown(shares))
    pairs = blocks.table("share pairs", _shown(shares.parts["pairs"]))
    yield from blocks.fold("shares", pairs)


def _shown(shares: Estimates) -> pl.DataFrame:
    """Return what is shown of liked shares and of randomly shown items, or of differences."""
    labels = {c.name: c.label for c in shares.question.columns if c.kind != "value"}
    table = shares.rows.rename(labels)
    if "levelled" in table.columns:
        weights = pl.when("levelled").then(pl.lit("levelled")).otherwise(pl.lit("plain"))
        table = table.with_columns(weights=weights)
    return blocks.without_empty(table.select(blocks.present(table, *SHARE_COLUMNS)))


def _estimates(estimates: Estimates, order: Sequence[str]) -> Iterator[Block]:
    """Show usable estimates only: others may lie outside the range of their metric."""
    keys = "system", "metric"
    rows = estimates.rows.filter(pl.col("note").max().over(keys) == "")
    usable = replace(estimates, rows=rows)
    yield blocks.picture(partial(_estimates_figure, usable, order, estimates.label()))
    if rows.height:
        columns = {name: pl.col(column) for name, column in ESTIMATE_COLUMNS.items()}
        wide = usable.table(wide="quantity").select(*keys, **columns)
        yield blocks.table("estimates", wide)
    for metric in estimates.values_of("metric"):
        unusable = estimates.where(metric=metric, quantity="ips").rows.filter(pl.col("note") != "")
        if unusable.height:
            systems = names(unusable["system"].to_list(), unusable.height)
            yield Words(caption("unusable", metric=metric, names=systems), "warning")


def _estimates_figure(usable: Estimates, order: Sequence[str], metric: str) -> Figure:
    """Draw the weighted estimates of the first systems, in their order."""
    drawn = usable.where(metric=metric, quantity=["ips", "snips"])
    first = pl.DataFrame({"system": order[: charts.MOST_CHARTED_SYSTEMS]})
    rows = first.join(drawn.rows, on="system", maintain_order="left").select(drawn.rows.columns)
    return replace(drawn, rows=rows).figure()


def _protocol(audit: Measurements) -> Iterator[Block]:
    """Yield the null experiment, and what tests and parts of the ratings say of metrics."""
    if audit.null is not None:
        yield from _null(audit, audit.null)
    if audit.power is not None:
        table = audit.power.rows.rename({"value": "DP"})
        table = _of_metrics(audit, table).sort("DP", maintain_order=True)
        count = len(audit.systems) * (len(audit.systems) - 1) // 2
        pairs = counted(count, "pair of systems", "pairs of systems")
        figure = blocks.picture(audit.power.figure)
        yield from blocks.fold("power", blocks.table("power", table, pairs=pairs), figure)
    robust: list[Block] = []
    systems = counted(len(audit.systems), "system")
    for name, robustness in (("sparsity", audit.sparsity), ("popularity", audit.popularity)):
        if robustness is not None:
            summary = robustness.parts["summary"].rows.rename({"value": "tau", "lowest": "least"})
            table = _of_metrics(audit, summary)
            robust.append(blocks.table(name, table, 3, "robustness", systems=systems))
            robust.append(blocks.picture(robustness.figure))
    yield from blocks.fold("robust", *robust)


def _of_metrics(audit: Measurements, table: pl.DataFrame) -> pl.DataFrame:
    """Leave metrics of disliked items out where nothing is disliked."""
    if not audit.core.implicit:
        return table
    mask = [parse(label).anti is False for label in table["metric"]]
    return table.filter(pl.Series(mask, dtype=pl.Boolean))


def _null(audit: Measurements, null: Estimates) -> Iterator[Block]:
    case = "null lists" if audit.evidence.is_given else "null trained"
    yield Words(caption(case, repeats=counted(null.card["repeats"], "repeat")))
    yield from map(Words, null.notes)
    of_metric, designs = null[audit.metric], null.values_of("design")
    if audit.common in designs:
        common = _best(audit, of_metric).sort()
        yield blocks.picture(partial(common.figure, "values", audit.metric))
    columns = (pl.col(column).alias(name) for name, column in NULL_COLUMNS.items())
    rows = of_metric.table("quantity").select("design", "system", *columns)
    yield from blocks.fold("null", blocks.table("null", blocks.without_empty(rows)))
    missing = [design for design in audit.designs if design not in designs]
    if missing:
        yield Words(caption("null designs", designs=", ".join(missing)))


def _best(audit: Measurements, es: Estimates) -> Estimates:
    """Return the rows of the common design and of as many systems, the best, as a chart shows."""
    there = es.values_of("system")
    systems = [system for system in audit.order() if system in there]
    return es.where(design=audit.common, system=systems[: charts.MOST_CHARTED_SYSTEMS])


def _truth(audit: Measurements) -> Iterator[Block]:
    """Yield the designs, held against the truth."""
    result, metric = audit.truth, audit.metric
    if result is None:
        yield Words(caption("truth unknown"))
        return
    yield Words(caption("truth source", source=result.card["truth"]))
    yield blocks.picture(partial(result.figure, "agreement", metric))
    orders = result.parts["orders"].rows.filter(metric=metric)
    yield blocks.table("orders", orders.pivot("design", index="system", values="value"))
    draw = partial(_best(audit, result).figure, "observed and true", metric)
    yield blocks.picture(draw, system_colours(audit.order()))
    agreement = result.parts["agreement"].rows.rename({"value": "tau"})
    columns = ["design", "metric", "tau", "low", "high", "swaps", "mean_error"]
    of_metric, keys = result.rows.filter(metric=metric), ("design", "system")
    values, users = (
        of_metric.pivot("quantity", index=keys, values=name) for name in ("value", "n")
    )
    numbers = values.with_columns(users=users["observed"], true_users=users["true"])
    yield from blocks.fold(
        "truth",
        blocks.table("true orders", agreement.select(columns), 2),
        blocks.table("true values", numbers),
    )


def _filters(audit: Measurements) -> Iterator[Block]:
    """Yield how far filters moved scores and order."""
    effect = audit.filter_effect
    assert effect is not None
    changes = effect.parts["changes"].rows.select(
        *_PAIR,
        pl.col("reverses").replace_strict({True: "yes", False: "not shown"}),
        pl.col("low_lead").alias("least"),
        pl.col("high_lead").alias("most"),
        "p_corrected",
        pl.col("ahead").list.join(", ").alias("a_ahead"),
        pl.col("ahead_against").list.join(", ").alias("b_ahead"),
    )
    scores = effect.parts["scores"].rows.pivot("quantity", index="system", values="value")
    sizes = effect.parts["sizes"].rows.select(pl.all().exclude("n", "items"), _USERS, "items")
    yield blocks.table("filter steps", effect.parts["removed"].rows)
    yield blocks.table("filter scores", scores, metric=audit.metric)
    yield blocks.picture(effect.figure)
    yield blocks.table("filter changes", changes)
    yield from blocks.fold("filter sizes", blocks.table("filter sizes", sizes))


def _error_rates(audit: Measurements) -> Iterator[Block]:
    """Yield how often sentences of each kind are wrong."""
    yield rates_block(audit.statements, rates())


def _card(audit: Measurements) -> Iterator[Block]:
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


def _leaks(audit: Measurements) -> Iterator[Block]:
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


CONTENTS: dict[str, Callable[[Measurements], Iterable[Block]]] = {
    "answer": _answer,
    "data": _data,
    "leaks": _leaks,
    "designs": _designs,
    "decisions": _decisions,
    "ladder": _ladder,
    "liked": _liked,
    "protocol": _protocol,
    "truth": _truth,
    "filters": _filters,
    "error-rates": _error_rates,
    "checklist": checklist_blocks,
    "card": _card,
}
"""By section, in the order of the report: its blocks. Titles, guides and notes are captions."""
