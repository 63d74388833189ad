"""The sections of a report: what an audit measured, as words, tables and figures."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import polars as pl

from unskew.auditing import charts
from unskew.auditing.citations import bibtex
from unskew.auditing.conclusions import LEAK, answer
from unskew.errors import UnskewError
from unskew.report.charts import Figure
from unskew.report.document import Block, Code, Document, Picture, Section, Words
from unskew.report.tables import Table
from unskew.report.text import finite

if TYPE_CHECKING:
    from unskew.auditing.measurements import Found

MOST_ROWS = 300
"""The most rows of a table: pairs of many systems are cut, and counted."""


def document(found: Found) -> Document:
    """Return the report of an audit."""
    parts = (
        _answer,
        _data,
        _designs,
        _decisions,
        _null,
        _good_and_bad,
        _metric,
        _unbiased,
        _truth,
        _card,
    )
    return Document(
        f"How far to trust this evaluation: {found.name}",
        tuple(answer(found)),
        tuple(_drawable(make(found)) for make in parts),
        dict(found.card),
        found.systems,
    )


def _drawable(section: Section) -> Section:
    """Return a section whose figures hold numbers only: JSON has no word for what is none."""
    blocks = tuple(
        replace(block, figure=Figure(block.figure.title, finite(dict(block.figure.spec))))
        if isinstance(block, Picture)
        else block
        for block in section.blocks
    )
    return replace(section, blocks=blocks)


def _answer(found: Found) -> Section:
    blocks: list[Block] = [
        _grid("Place and mean place of each system over all designs", found.consensus(), 2),
    ]
    if found.flips is not None:
        firm = found.flips.pairs().filter((pl.col("b_wins") == 0) & (pl.col("a_wins") > 0))
        shown = firm.select("a", "b", "a_wins", "ties", *_there(firm, "a_significant"))
        blocks.append(
            _grid("Conclusions that no design contradicts: a beats b", shown, 2)
            if firm.height
            else Words("No pair of systems keeps its order under all designs.", "warning")
        )
    blocks += [Words(f"Assumed: {text}.", "warning") for text in found.assumed]
    blocks += [Words(f"Left out: {what}: {why}.", "plain") for what, why in found.skipped.items()]
    return Section(
        "answer",
        "The answer",
        "Who is best, under how many designs, and how sure: what the rest of the report rests on.",
        tuple(blocks),
        "audit.md",
    )


def _data(found: Found) -> Section:
    blocks: list[Block] = []
    if found.data is not None:
        blocks.append(_facts("The data", found.data.table()))
        blocks.append(Picture(found.data.figure()))
    if found.bias is not None:
        bias = found.bias
        figure = _drawn(lambda: bias.figure("positive-ratio"))
        blocks += [Words(line) for line in bias.header()]
        if figure is not None:
            blocks.append(Picture(figure))
        blocks.append(_grid("Share of liked ratings by popularity of the items", bias.bins(), 3))
    if found.splits:
        facts = {name: one.describe() for name, one in found.splits.items()}
        table = pl.DataFrame(
            [
                {"split": name, **{k: v for k, v in own.items() if k != "label"}}
                for name, own in facts.items()
            ],
            infer_schema_length=None,
        )
        blocks.append(_facts("What the splits did", table))
        blocks += [words for name, one in found.splits.items() for words in _warnings(name, one)]
    blocks += [Words(note) for note in found.notes]
    return Section(
        "data",
        "The data",
        "How many ratings there are, how unequally they fall on items, and "
        "whether the splits leak: an evaluation cannot be better than its data.",
        tuple(blocks),
        "datasets.md",
    )


def _warnings(name: str, one: Any) -> list[Words]:
    told = []
    if one.before_any_train is not None and one.before_any_train > LEAK:
        told.append(
            f"{one.before_any_train:.1%} of the test ratings of the {name} split are older than "
            f"the newest training rating: systems are trained on the future of some users."
        )
    if one.duplicates:
        told.append(f"{one.duplicates:,} pairs are in both parts of the {name} split.")
    if one.test and one.cold_users / max(one.test_users, 1) > LEAK:
        told.append(f"{one.cold_users:,} test users of the {name} split have no training ratings.")
    return [Words(text, "warning") for text in told]


def _designs(found: Found) -> Section:
    order = found.order()
    table = found.table()
    about = pl.DataFrame(
        {"design": list(found.designs), "what is done": list(found.designs.values())}
    )
    note = "means and 95 % t intervals over users"
    blocks: list[Block] = [
        _grid("The designs", about),
        Picture(charts.designs(table, order, found.metric, list(found.designs), note)),
        _grid(
            f"{found.metric} of every system under every design",
            table,
            4,
            "random: what a random order of the same targets is expected to score",
        ),
    ]
    blocks += [
        Words(f"Not done: {what.removeprefix('design ')}: {why}.")
        for what, why in found.skipped.items()
        if what.startswith("design")
    ]
    if found.remarks:
        blocks.append(Words("", "warning", "Counted while the systems were judged:", found.remarks))
    return Section(
        "designs",
        "Designs side by side",
        "The same systems under each design, with what chance "
        "scores there: values of different designs are not on one scale, orders are.",
        tuple(blocks),
        "protocols.md",
    )


def _decisions(found: Found) -> Section:
    order = found.consensus()["system"].to_list()
    blocks: list[Block] = []
    if len(found.designs) > 1:
        blocks.append(Picture(charts.places(found.table(), order, list(found.designs))))
    blocks.append(_grid("A consensus: systems by their mean place", found.consensus(), 2))
    if found.flips is not None:
        pairs = found.flips.pairs()
        blocks.append(
            _grid(
                "Pairs of systems over designs, the least settled first",
                pairs,
                2,
                "flips: the share of the designs that say the opposite; contradicts: both ways "
                "significantly (p corrected by Holm)",
            )
        )
    made = found.comparisons.get(found.common)
    if made is not None:
        blocks.append(_picture(lambda: made.figure("differences")))
        pairs = made.table().select(
            "a", "b", "difference", "low", "high", "p", "p_corrected", "significant", "cohen_d"
        )
        blocks.append(
            _grid(f"All pairs under {found.common}, {found.metric}", pairs, 4, made.footer()[1])
        )
    if found.agreement is not None:
        agreed = found.agreement
        blocks.append(_picture(agreed.figure))
        blocks.append(
            _grid(
                "How alike designs order the systems: Kendall's τ with its interval over users",
                agreed.pairs().select("a", "b", "tau", "low", "high", "p", "swaps"),
                2,
            )
        )
    if found.choices is not None:
        choices = found.choices
        blocks.append(_picture(choices.figure))
    return Section(
        "decisions",
        "Decisions",
        "Which conclusions depend on the design, and which do not: a "
        "pair that flips is not settled by this evaluation.",
        _filled(blocks, found, ("agreement", "stability", "significance")),
        "comparing.md",
    )


def _null(found: Found) -> Section:
    blocks: list[Block] = []
    if found.null is not None:
        table = found.null.table().filter(pl.col("metric") == found.metric)
        own = table.filter(pl.col("design") == found.common)
        if own.height:
            blocks.append(Picture(charts.null(own, found.order(), found.metric, found.common)))
        columns = [
            "design",
            "system",
            "real",
            "real_random",
            "null_value",
            "null_random",
            "ratio",
            "ratio_low",
            "ratio_high",
            "null_share",
        ]
        unknown = [one for one in columns if table[one].null_count() == table.height]
        shown = table.select([one for one in columns if one not in unknown])
        blocks.append(
            _grid(
                "Where nothing is to be found",
                shown,
                4,
                "ratio: null value / chance, 1 for every system if the design is fair; null "
                "share: the part of what a system has above chance that null data gives it too; "
                "missing where the system is not clearly away from chance",
            )
        )
        blocks += [Words(line) for line in found.null.footer()]
        seen = set(table["design"])
        left_out = [design for design in found.designs if design not in seen]
        if left_out:
            why = "intervened test parts would train all systems anew, and time says nothing here"
            blocks.append(Words(f"Not looked at: {', '.join(left_out)} ({why})."))
    return Section(
        "null",
        "The null experiment",
        "What each system would score if nobody had any taste and "
        "no item were better: whatever is above chance here is made by the design.",
        _filled(blocks, found, ("null experiment",)),
        "null.md",
    )


def _good_and_bad(found: Found) -> Section:
    blocks: list[Block] = []
    if found.margins is not None:
        split = found.margins
        k = split.k or 10
        blocks.append(Picture(charts.good_and_bad(split.systems, k, found.order())))
        blocks.append(
            _grid(
                "Judged and liked",
                split.systems,
                4,
                "P = judged x liked; anti-P = judged x (1 − liked)",
            )
        )
        if len(found.systems) <= charts.MOST_SYSTEMS:
            blocks.append(_picture(split.figure))
            blocks.append(_grid("Every margin of precision, split", split.table(), 3))
            blocks += [Words(f"{line}.") for line in split.footer()[1:3]]
        else:
            best = found.order()[0]
            rows = [split.pair(best, one).to_dict() for one in found.systems if one != best]
            blocks.append(_grid("The margins of the best system, split", pl.DataFrame(rows), 3))
    if found.bias is not None:
        bias = found.bias
        verdict = bias.verdict
        blocks.append(Words(f"More reliable here: {verdict.family}. {verdict.why}", "answer"))
        blocks += [Words(line) for line in verdict.branches]
        blocks.append(_picture(bias.pairs.figure))
        blocks += [Words(f"{line}.") for line in bias.pairs.footer()[1:3]]
    return Section(
        "good-and-bad",
        "Good against bad",
        "Liked beside disliked recommendations: what is "
        "popular is judged more and gets more of both, so the two families of metrics can "
        "disagree.",
        _filled(blocks, found, ("margins", "bias")),
        "bias.md",
    )


def _metric(found: Found) -> Section:
    blocks: list[Block] = []
    advice = recommended(found)
    if advice:
        blocks.append(Words(advice, "good"))
    if found.power is not None:
        power = found.power
        blocks.append(
            _grid(
                "Discriminative power",
                power.table().sort("DP", maintain_order=True),
                4,
                power.footer()[0],
            )
        )
        blocks.append(_picture(power.figure))
    for one in (found.sparsity, found.popularity):
        if one is not None:
            blocks.append(_grid(f"Robustness to {one.to}", one.summary(), 3, one.footer()[0]))
            blocks.append(_picture(one.figure))
    return Section(
        "metric",
        "Which metric",
        "How well metrics and cutoffs tell these systems apart, and how "
        "their orders hold when less is known: a metric that does neither decides nothing.",
        _filled(
            blocks,
            found,
            ("discriminative power", "robustness to sparsity", "robustness to popularity"),
        ),
        "comparing.md",
    )


def recommended(found: Found) -> str:
    """Return which metric does best on these data by both measures, in words."""
    if found.power is None:
        return ""
    power = found.power.table().filter(~pl.col("metric").str.starts_with("anti-"))
    power = power.filter(pl.col("metric") != "nDCL@10").sort("DP", maintain_order=True)
    if not power.height or power["DP"].n_unique() < 2:
        return ""
    best = power["metric"][0]
    text = (
        f"{best} tells the systems apart best (DP {power['DP'][0]:.2f}; {found.metric}: "
        f"{_of(power, found.metric, 'DP')})"
    )
    if found.sparsity is not None:
        robust = found.sparsity.summary().drop_nulls("tau")
        if robust.height:
            text += (
                f"; {robust['metric'][0]} keeps its order best when test ratings are missing "
                f"(mean τ {robust['tau'][0]:.2f})"
            )
    return text + ". Choose the metric before looking at who wins by it."


def _of(table: pl.DataFrame, metric: str, column: str) -> str:
    row = table.filter(pl.col("metric") == metric)
    return f"{row[column][0]:.2f}" if row.height else "–"


def _unbiased(found: Found) -> Section:
    blocks: list[Block] = []
    order = found.order()
    if len(found.scores[found.common]) > 1:
        blocks.append(Words("All but the users needed is of the first split."))
    if found.estimates is not None:
        made = found.estimates
        metric = made.metrics[0]
        own = made.table().filter(pl.col("metric") == metric)
        if own["usable"].any():
            blocks.append(Picture(charts.estimates(own, order, metric)))
        blocks.append(
            _grid(
                "Estimates that weigh popularity out, and what they rest on",
                made.display_table(),
                4,
                "naive: what is not judged counts as not liked; ips, snips: each judgment counts "
                "by its propensity, with intervals over users; ess: how many equal weights the "
                "weights of the hits are worth; usable: whether the estimate and its interval "
                "are values that the metric can have, it rests on enough hits, and the weights "
                "add up to the slots of the lists",
            )
        )
        blocks.append(Words(f"{made.footer()[0]}."))
        blocks += [Words(f"{note}.", "warning") for note in made.unusable_notes()]
        fitted = "random ratings" in made.settings["propensity"]
        if not fitted and own["usable"].not_().any():
            blocks.append(
                Words("Random ratings (--random FILE) would allow better propensities.", "warning")
            )
        if made.weights.effective < 0.1 * made.weights.number:
            blocks.append(
                Words("The weights are very unequal: these estimates are noisy.", "warning")
            )
    if found.strata is not None:
        strata = found.strata
        if len(found.systems) <= charts.MOST_SYSTEMS:
            blocks.append(_picture(strata.figure))
        blocks.append(
            _grid(
                "Where the score comes from: the share of the most popular tenth of items",
                strata.heads(),
                3,
            )
        )
    if found.sensitivity is not None:
        title = "How wrong propensities must be for a pair to turn"
        if found.sensitivity.flips:
            blocks.append(
                _grid(
                    title,
                    found.sensitivity.table(),
                    3,
                    "gamma: the odds of being judged may be this many times off; 1 = undecided",
                )
            )
        if found.sensitivity.unusable:
            names = ", ".join(found.sensitivity.unusable)
            blocks.append(
                Words(f"{title}: not said of {names}, whose estimates are not usable here.")
            )
    if found.judgments_needed is not None:
        needed = found.judgments_needed
        title = "What would settle it: random judgments needed"
        if needed.table()["needed"].null_count() < len(needed.rows):
            blocks.append(_grid(title, needed.table(), 4, needed.footer()[0]))
        else:
            reasons = dict.fromkeys(str(row["reason"]) for row in needed.rows)
            blocks.append(Words(f"{title}: no number, as {'; '.join(reasons)}."))
    if found.users_needed is not None:
        columns = ["a", "b", "users", "difference", "detectable", "power", "needed"]
        blocks.append(
            _grid(
                "What would settle it: users needed under the common design",
                found.users_needed.pair_table().select(columns),
                4,
                found.users_needed.footer()[0],
            )
        )
    return Section(
        "unbiased",
        "Unbiased estimates",
        "What systems would score were everything judged, how "
        "surely, where their scores come from, and what would settle what is open.",
        _filled(
            blocks,
            found,
            ("unbiased estimates", "popularity deciles", "sensitivity", "judgments needed"),
        ),
        "estimates.md",
    )


def _truth(found: Found) -> Section:
    blocks: list[Block] = []
    truth = found.truth
    if truth is not None:
        rows = truth.agreement().filter(pl.col("metric") == found.metric)
        several = any(len(parts) > 1 for parts in found.scores.values())
        first = " Observed and true are of the first split of each design." if several else ""
        blocks.append(Words(f"The truth: {truth.source_name}.{first}"))
        if rows["tau"].null_count() < rows.height:
            blocks.append(Picture(charts.agreement_with_truth(rows.to_dicts(), found.metric)))
        blocks.append(
            _grid("Places of the systems, in truth and by design", truth.orders(found.metric))
        )
        values = truth.table().filter(pl.col("metric") == found.metric).drop("metric")
        own = values.filter(pl.col("design") == found.common)
        blocks.append(Picture(charts.observed_and_true(own, found.order(), found.metric)))
        columns = ["design", "metric", "tau", "low", "high", "p", "swaps", "mean_error"]
        blocks.append(
            _grid(
                "How true each design is",
                truth.agreement().select(columns),
                2,
                "tau: of the order of systems to the true one; swaps: pairs in the wrong order; "
                "mean_error: mean size of the errors in percent of the truth. Lists of one "
                "relevant item are on another scale by design: look at their order",
            )
        )
        blocks.append(_grid("Observed and true values", values, 4, "error in percent of the truth"))
    else:
        blocks.append(
            Words(
                "The truth of these data is not known. With ratings of randomly chosen items "
                "(random=…, --random FILE) this section holds every design against them; the "
                "built-in worlds (unskew demo) show how it looks."
            )
        )
    return Section(
        "truth",
        "The truth",
        "Where it is known: true values beside what each design observes, "
        "so that one sees where the common design misleads, and where the remedies fail too.",
        tuple(blocks),
        "null.md",
    )


def _card(found: Found) -> Section:
    from unskew.auditing.reproduce import command, plan_toml

    card = found.card
    blocks: list[Block] = [_grid("What everything rests on", _flat(card))]
    blocks.append(Code("The command", command(found)))
    for number, plan in enumerate(found.plans, start=1):
        title = "The plan" if len(found.plans) == 1 else f"Plan {number} of {len(found.plans)}"
        blocks.append(Code(f"{title} (unskew run plan.toml)", plan_toml(plan)))
    blocks.append(Code("Citations", bibtex(found)))
    return Section(
        "card",
        "The card",
        "Everything needed to derive each number again: data, plan, seed and "
        "versions, and the papers to cite.",
        tuple(blocks),
        "audit.md",
    )


# Pieces


def _flat(card: Any, before: str = "") -> pl.DataFrame:
    """Return a card as rows of what and value; what is deep is told by its keys."""
    rows: list[tuple[str, str]] = []
    for key in (
        "data",
        "truth",
        "level",
        "relevance",
        "metric",
        "seed",
        "null",
        "permutations",
        "bootstrap",
        "users",
        "undefined",
        "ties",
        "versions",
    ):
        value = card.get(key)
        if isinstance(value, dict):
            rows += [(f"{key}: {name}", str(one)) for name, one in value.items()]
        elif value is not None:
            rows.append((f"{before}{key}", str(value)))
    return pl.DataFrame(rows, schema={"what": pl.String, "value": pl.String}, orient="row")


def _facts(title: str, table: pl.DataFrame) -> Table:
    """Turn a table of one row per part into one row per fact."""
    rows = []
    for name in table.columns[1:]:
        values = table[name].to_list()
        if any(one is not None for one in values):
            rows.append(
                {
                    "what": name.replace("_", " "),
                    **{
                        part: _plain(one)
                        for part, one in zip(table[table.columns[0]], values, strict=True)
                    },
                }
            )
    return Table(title, pl.DataFrame(rows))


def _plain(value: Any) -> str:
    if value is None:
        return "–"
    if isinstance(value, float):
        return f"{value:,.4g}" if abs(value) < 1e4 else f"{value:,.0f}"
    return f"{value:,}" if isinstance(value, int) else str(value)


def _grid(title: str, frame: pl.DataFrame, digits: int = 4, note: str = "") -> Table:
    """Return a table, cut where it is long."""
    if frame.height > MOST_ROWS:
        note = f"{note + '; ' if note else ''}the first {MOST_ROWS} of {frame.height:,} rows"
        frame = frame.head(MOST_ROWS)
    named = frame.rename(lambda name: name.replace("_", " "))
    return Table(title, named, digits, note)


def _there(frame: pl.DataFrame, *names: str) -> list[str]:
    return [name for name in names if name in frame.columns]


def _drawn(make: Callable[[], Figure]) -> Figure | None:
    """Return a figure, or None where there is nothing to draw."""
    try:
        figure = make()
    except UnskewError:
        return None
    rows = figure.spec.get("datasets", {}).get("rows", [1])
    return figure if len(rows) else None


def _picture(make: Callable[[], Figure]) -> Block:
    figure = _drawn(make)
    return Words("") if figure is None else Picture(figure)


def _filled(blocks: Sequence[Block], found: Found, needs: Sequence[str]) -> tuple[Block, ...]:
    """Leave empty words out; say why things are missing."""
    kept = [block for block in blocks if not (isinstance(block, Words) and not block.text)]
    missing = [
        Words(f"Not done: {what}: {found.skipped[what]}.", "warning")
        for what in needs
        if what in found.skipped
    ]
    both = (*kept, *missing)
    return both or (Words("There is nothing to show.", "warning"),)
