"""The sections of a report: what an audit measured, as words, tables and figures."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import polars as pl

from unskew.auditing import blocks, charts
from unskew.auditing.citations import bibtex
from unskew.auditing.conclusions import LEAK, answer
from unskew.auditing.reproduction import plan_toml
from unskew.report.document import Block, Code, Document, Picture, Section, Words

if TYPE_CHECKING:
    from unskew.auditing.measurements import Measurements
    from unskew.splits.diagnose import SplitAudit
    from unskew.unbiased.estimates import Estimates
    from unskew.unbiased.hidden_bias import Sensitivity
    from unskew.unbiased.judgment_budget import JudgmentsNeeded


def document(audit: Measurements) -> Document:
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
        f"How far to trust this evaluation: {audit.name}",
        tuple(answer(audit)),
        tuple(blocks.drawable(make(audit)) for make in parts),
        dict(audit.card),
        audit.systems,
    )


def _answer(audit: Measurements) -> Section:
    content: list[Block] = [
        blocks.table("Place and mean place of each system over all designs", audit.consensus(), 2),
    ]
    if audit.flips is not None:
        firm = audit.flips.pairs().filter((pl.col("b_wins") == 0) & (pl.col("a_wins") > 0))
        shown = firm.select("a", "b", "a_wins", "ties", *blocks.present(firm, "a_significant"))
        content.append(
            blocks.table("Conclusions that no design contradicts: a beats b", shown, 2)
            if firm.height
            else Words("No pair of systems keeps its order under all designs.", "warning")
        )
    content += [Words(f"Assumed: {text}.", "warning") for text in audit.assumed]
    content += [Words(f"Left out: {what}: {why}.", "plain") for what, why in audit.skipped.items()]
    return Section(
        "answer",
        "The answer",
        "Who is best, under how many designs, and how sure: what the rest of the report rests on.",
        tuple(content),
        "audit.md",
    )


def _data(audit: Measurements) -> Section:
    content: list[Block] = []
    if audit.data is not None:
        content.append(blocks.facts_table("The data", audit.data.table()))
        content.append(Picture(audit.data.figure()))
    if audit.bias is not None:
        bias = audit.bias
        figure = blocks.figure_or_none(lambda: bias.figure("positive-ratio"))
        content += [Words(line) for line in bias.header()]
        if figure is not None:
            content.append(Picture(figure))
        content.append(
            blocks.table("Share of liked ratings by popularity of the items", bias.bins(), 3)
        )
    if audit.splits:
        facts = {name: one.describe() for name, one in audit.splits.items()}
        table = pl.DataFrame(
            [
                {"split": name, **{k: v for k, v in own.items() if k != "label"}}
                for name, own in facts.items()
            ],
            infer_schema_length=None,
        )
        content.append(blocks.facts_table("What the splits did", table))
        content += [words for name, one in audit.splits.items() for words in _warnings(name, one)]
    content += [Words(note) for note in audit.notes]
    return Section(
        "data",
        "The data",
        "How many ratings there are, how unequally they fall on items, and "
        "whether the splits leak: an evaluation cannot be better than its data.",
        tuple(content),
        "datasets.md",
    )


def _warnings(name: str, one: SplitAudit) -> list[Words]:
    warnings = []
    if one.before_any_train is not None and one.before_any_train > LEAK:
        warnings.append(
            f"{one.before_any_train:.1%} of the test ratings of the {name} split are older than "
            f"the newest training rating: systems are trained on the future of some users."
        )
    if one.duplicates:
        warnings.append(f"{one.duplicates:,} pairs are in both parts of the {name} split.")
    if one.test and one.cold_users / max(one.test_users, 1) > LEAK:
        warnings.append(
            f"{one.cold_users:,} test users of the {name} split have no training ratings."
        )
    return [Words(text, "warning") for text in warnings]


def _designs(audit: Measurements) -> Section:
    order = audit.order()
    table = audit.table()
    about = pl.DataFrame(
        {"design": list(audit.designs), "what is done": list(audit.designs.values())}
    )
    note = "means and 95 % t intervals over users"
    known = table["random"].drop_nulls().len() > 0
    content: list[Block] = [
        blocks.table("The designs", about),
        Picture(charts.designs(table, order, audit.metric, list(audit.designs), note)),
        blocks.table(
            f"{audit.metric} of every system under every design",
            table if known else table.drop("random"),
            4,
            "random: what a random order of the same targets is expected to score" if known else "",
        ),
    ]
    if audit.reach is not None and audit.reach.height:
        content.append(blocks.reach_table(audit.reach))
    content += [Words(f"Not counted: {name}: {one.why}.") for name, one in audit.left_out.items()]
    content += [
        Words(f"Not done: {what.removeprefix('design ')}: {why}.")
        for what, why in audit.skipped.items()
        if what.startswith("design")
    ]
    if audit.remarks:
        content.append(
            Words("", "warning", "Counted while the systems were judged:", audit.remarks)
        )
    return Section(
        "designs",
        "Designs side by side",
        "The same systems under each design, with what chance "
        "scores there: values of different designs are not on one scale, orders are.",
        tuple(content),
        "protocols.md",
    )


def _decisions(audit: Measurements) -> Section:
    order = audit.consensus()["system"].to_list()
    content: list[Block] = []
    if len(audit.designs) > 1:
        content.append(Picture(charts.places(audit.table(), order, list(audit.designs))))
    content.append(blocks.table("A consensus: systems by their mean place", audit.consensus(), 2))
    if audit.flips is not None:
        pairs = audit.flips.pairs()
        content.append(
            blocks.table(
                "Pairs of systems over designs, the least settled first",
                pairs,
                2,
                "flips: the share of the designs that say the opposite; contradicts: both ways "
                "significantly (p corrected by Holm)",
            )
        )
    made = audit.comparisons.get(audit.common)
    if made is not None:
        content.append(blocks.picture(lambda: made.figure("differences")))
        pairs = made.table().select(
            "a", "b", "difference", "low", "high", "p", "p_corrected", "significant", "cohen_d"
        )
        content.append(
            blocks.table(
                f"All pairs under {audit.common}, {audit.metric}", pairs, 4, made.footer()[1]
            )
        )
    if audit.agreement is not None:
        agreed = audit.agreement
        content.append(blocks.picture(agreed.figure))
        content.append(
            blocks.table(
                "How alike designs order the systems: Kendall's τ with its interval over users",
                agreed.pairs().select("a", "b", "tau", "low", "high", "p", "swaps"),
                2,
            )
        )
    if audit.choices is not None:
        choices = audit.choices
        content.append(blocks.picture(choices.figure))
    return Section(
        "decisions",
        "Decisions",
        "Which conclusions depend on the design, and which do not: a "
        "pair that flips is not settled by this evaluation.",
        blocks.filled(content, audit.skipped, ("agreement", "stability", "significance")),
        "comparing.md",
    )


def _null(audit: Measurements) -> Section:
    content: list[Block] = []
    if audit.null is not None:
        table = audit.null.table().filter(pl.col("metric") == audit.metric)
        own = table.filter(pl.col("design") == audit.common)
        if own.height:
            content.append(Picture(charts.null(own, audit.order(), audit.metric, audit.common)))
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
        content.append(
            blocks.table(
                "Where nothing is to be found",
                shown,
                4,
                "ratio: null value / chance, 1 for every system if the design is fair; null "
                "share: the part of what a system has above chance that null data gives it too; "
                "missing where the system is not clearly away from chance",
            )
        )
        content += [Words(line) for line in audit.null.footer()]
        seen = set(table["design"])
        left_out = [design for design in audit.designs if design not in seen]
        if left_out:
            why = (
                "intervened test parts would train all systems anew, and time says nothing here"
                if audit.null.retrained
                else "the judgments of the common design are redrawn, and no others"
            )
            content.append(Words(f"Not looked at: {', '.join(left_out)} ({why})."))
    return Section(
        "null",
        "The null experiment",
        "What each system would score if nobody had any taste and "
        "no item were better: whatever is above chance here is made by the design.",
        blocks.filled(content, audit.skipped, ("null experiment",)),
        "null.md",
    )


def _good_and_bad(audit: Measurements) -> Section:
    content: list[Block] = []
    if audit.margins is not None:
        split = audit.margins
        k = split.k or 10
        content.append(Picture(charts.good_and_bad(split.systems, k, audit.order())))
        content.append(
            blocks.table(
                "Judged and liked",
                split.systems,
                4,
                "P = judged x liked; anti-P = judged x (1 − liked)",
            )
        )
        if len(audit.systems) <= charts.MOST_SYSTEMS:
            content.append(blocks.picture(split.figure))
            content.append(blocks.table("Every margin of precision, split", split.table(), 3))
            content += [Words(f"{line}.") for line in split.footer()[1:3]]
        else:
            best = audit.order()[0]
            rows = [split.pair(best, one).to_dict() for one in audit.systems if one != best]
            content.append(
                blocks.table("The margins of the best system, split", pl.DataFrame(rows), 3)
            )
    if audit.bias is not None:
        bias = audit.bias
        verdict = bias.verdict
        content.append(Words(f"More reliable here: {verdict.family}. {verdict.why}", "answer"))
        content += [Words(line) for line in verdict.branches]
        content.append(blocks.picture(bias.pairs.figure))
        content += [Words(f"{line}.") for line in bias.pairs.footer()[1:3]]
    return Section(
        "good-and-bad",
        "Good against bad",
        "Liked beside disliked recommendations: what is "
        "popular is judged more and gets more of both, so the two families of metrics can "
        "disagree.",
        blocks.filled(content, audit.skipped, ("margins", "bias")),
        "bias.md",
    )


def _metric(audit: Measurements) -> Section:
    content: list[Block] = []
    advice = recommended(audit)
    if advice:
        content.append(Words(advice, "good"))
    if audit.power is not None:
        power = audit.power
        content.append(
            blocks.table(
                "Discriminative power",
                power.table().sort("DP", maintain_order=True),
                4,
                power.footer()[0],
            )
        )
        content.append(blocks.picture(power.figure))
    for one in (audit.sparsity, audit.popularity):
        if one is not None:
            content.append(
                blocks.table(f"Robustness to {one.to}", one.summary(), 3, one.footer()[0])
            )
            content.append(blocks.picture(one.figure))
    return Section(
        "metric",
        "Which metric",
        "How well metrics and cutoffs tell these systems apart, and how "
        "their orders hold when less is known: a metric that does neither decides nothing.",
        blocks.filled(
            content,
            audit.skipped,
            ("discriminative power", "robustness to sparsity", "robustness to popularity"),
        ),
        "comparing.md",
    )


def recommended(audit: Measurements) -> str:
    """Return which metric does best on these data by both measures, in words."""
    if audit.power is None:
        return ""
    power = audit.power.table().filter(~pl.col("metric").str.starts_with("anti-"))
    power = power.filter(pl.col("metric") != "nDCL@10").sort("DP", maintain_order=True)
    if not power.height or power["DP"].n_unique() < 2:
        return ""
    best = power["metric"][0]
    text = (
        f"{best} tells the systems apart best (DP {power['DP'][0]:.2f}; {audit.metric}: "
        f"{_of(power, audit.metric, 'DP')})"
    )
    if audit.sparsity is not None:
        robust = audit.sparsity.summary().drop_nulls("tau")
        if robust.height:
            text += (
                f"; {robust['metric'][0]} keeps its order best when test ratings are missing "
                f"(mean τ {robust['tau'][0]:.2f})"
            )
    return text + ". Choose the metric before looking at who wins by it."


def _of(table: pl.DataFrame, metric: str, column: str) -> str:
    row = table.filter(pl.col("metric") == metric)
    return f"{row[column][0]:.2f}" if row.height else "–"


def _unbiased(audit: Measurements) -> Section:
    content: list[Block] = []
    if len(audit.scores[audit.common]) > 1:
        content.append(Words("All but the users needed is of the first split."))
    if audit.estimates is not None:
        content += _estimates(audit.estimates, audit.order())
    if audit.strata is not None:
        if len(audit.systems) <= charts.MOST_SYSTEMS:
            content.append(blocks.picture(audit.strata.figure))
        content.append(
            blocks.table(
                "Where the score comes from: the share of the most popular tenth of items",
                audit.strata.heads(),
                3,
            )
        )
    if audit.sensitivity is not None:
        content += _sensitivity(audit.sensitivity)
    if audit.judgments_needed is not None:
        content.append(_judgments_needed(audit.judgments_needed))
    if audit.users_needed is not None:
        columns = ["a", "b", "users", "difference", "detectable", "power", "needed"]
        content.append(
            blocks.table(
                "What would settle it: users needed under the common design",
                audit.users_needed.pair_table().select(columns),
                4,
                audit.users_needed.footer()[0],
            )
        )
    return Section(
        "unbiased",
        "Unbiased estimates",
        "What systems would score were everything judged, how "
        "surely, where their scores come from, and what would settle what is open.",
        blocks.filled(
            content,
            audit.skipped,
            ("unbiased estimates", "popularity deciles", "sensitivity", "judgments needed"),
        ),
        "estimates.md",
    )


def _estimates(estimates: Estimates, order: Sequence[str]) -> list[Block]:
    content: list[Block] = []
    metric = estimates.metrics[0]
    rows = estimates.table().filter(pl.col("metric") == metric)
    if rows["usable"].any():
        content.append(Picture(charts.estimates(rows, order, metric)))
    content.append(
        blocks.table(
            "Estimates that weigh popularity out, and what they rest on",
            estimates.display_table(),
            4,
            "naive: what is not judged counts as not liked; ips, snips: each judgment counts "
            "by its propensity, with intervals over users; ess: how many equal weights the "
            "weights of the hits are worth; usable: whether the estimate and its interval "
            "are values that the metric can have, it rests on enough hits, and the weights "
            "add up to the slots of the lists",
        )
    )
    content.append(Words(f"{estimates.footer()[0]}."))
    content += [Words(f"{note}.", "warning") for note in estimates.unusable_notes()]
    fitted = "random ratings" in estimates.settings["propensity"]
    if not fitted and rows["usable"].not_().any():
        content.append(
            Words("Random ratings (--random FILE) would allow better propensities.", "warning")
        )
    if estimates.weights.effective < 0.1 * estimates.weights.number:
        content.append(Words("The weights are very unequal: these estimates are noisy.", "warning"))
    return content


def _sensitivity(sensitivity: Sensitivity) -> list[Block]:
    title = "How wrong propensities must be for a pair to turn"
    content: list[Block] = []
    if sensitivity.flips:
        note = "gamma: the odds of being judged may be this many times off; 1 = undecided"
        content.append(blocks.table(title, sensitivity.table(), 3, note))
    if sensitivity.unusable:
        names = ", ".join(sensitivity.unusable)
        content.append(Words(f"{title}: not said of {names}, whose estimates are not usable here."))
    return content


def _judgments_needed(needed: JudgmentsNeeded) -> Block:
    title = "What would settle it: random judgments needed"
    if needed.table()["needed"].null_count() < len(needed.rows):
        return blocks.table(title, needed.table(), 4, needed.footer()[0])
    reasons = dict.fromkeys(str(row["reason"]) for row in needed.rows)
    return Words(f"{title}: no number, as {'; '.join(reasons)}.")


def _truth(audit: Measurements) -> Section:
    content: list[Block] = []
    truth = audit.truth
    if truth is not None:
        rows = truth.agreement().filter(pl.col("metric") == audit.metric)
        several = any(len(parts) > 1 for parts in audit.scores.values())
        first = " Observed and true are of the first split of each design." if several else ""
        content.append(Words(f"The truth: {truth.source_name}.{first}"))
        if rows["tau"].null_count() < rows.height:
            content.append(Picture(charts.agreement_with_truth(rows.to_dicts(), audit.metric)))
        content.append(
            blocks.table(
                "Places of the systems, in truth and by design", truth.orders(audit.metric)
            )
        )
        values = truth.table().filter(pl.col("metric") == audit.metric).drop("metric")
        own = values.filter(pl.col("design") == audit.common)
        content.append(Picture(charts.observed_and_true(own, audit.order(), audit.metric)))
        columns = ["design", "metric", "tau", "low", "high", "p", "swaps", "mean_error"]
        content.append(
            blocks.table(
                "How true each design is",
                truth.agreement().select(columns),
                2,
                "tau: of the order of systems to the true one; swaps: pairs in the wrong order; "
                "mean_error: mean size of the errors in percent of the truth. Lists of one "
                "relevant item are on another scale by design: look at their order",
            )
        )
        content.append(
            blocks.table("Observed and true values", values, 4, "error in percent of the truth")
        )
    else:
        content.append(
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
        tuple(content),
        "null.md",
    )


def _card(audit: Measurements) -> Section:
    card = audit.card
    content: list[Block] = [blocks.table("What everything rests on", blocks.card_table(card))]
    content.append(Code("The command", audit.command))
    for number, plan in enumerate(audit.plans, start=1):
        title = "The plan" if len(audit.plans) == 1 else f"Plan {number} of {len(audit.plans)}"
        content.append(Code(f"{title} (unskew run plan.toml)", plan_toml(plan)))
    content.append(Code("Citations", bibtex(audit)))
    return Section(
        "card",
        "The card",
        "Everything needed to derive each number again: data, plan, seed and "
        "versions, and the papers to cite.",
        tuple(content),
        "audit.md",
    )
