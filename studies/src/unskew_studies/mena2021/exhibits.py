"""mena2021: its tables and figures again, ours beside the printed numbers."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import polars as pl

from unskew.bias import charts
from unskew.bias.optimal_rankings import optimal_rankings
from unskew.report.charts import MOST_ROWS, Figure
from unskew.report.document import Block, Picture, Words
from unskew.report.tables import Table
from unskew.report.text import counted
from unskew_studies.charts import Chart
from unskew_studies.lab import Lab, MissingDataError
from unskew_studies.mena2021 import printed
from unskew_studies.mena2021.checks import (
    Tau,
    means,
    released,
    released_tau,
)
from unskew_studies.mena2021.checks_systems import FIRST, MORE, kept, twins
from unskew_studies.mena2021.measurements import (
    BEST_ANTI,
    BEST_P,
    BEST_TRUE,
    CONDENSED,
    PAIRS,
    RELEASED_AT_10,
    SIXTEEN,
    bias,
    folds,
    inverted_popularity,
    items,
    observed_part,
    random_part,
    scores,
    sizes,
    steepness,
    temporal,
    threshold,
)
from unskew_studies.mena2021.measurements_lemmas import (
    case_table,
    lemma_worlds,
    overall,
    toys,
    truth_tables,
)
from unskew_studies.paper import STAND_IN, Exhibit

Blocks = Sequence[Block]
ML, YAHOO, CM = "ml-1m", "yahoo-r3", "cm100k"
ALL, KNOWN = (ML, YAHOO, CM), (YAHOO, CM)
WORDS = {
    "P": "P and anti-P",
    "Recall": "recall and fallout",
    "nDCG": "nDCG and nDCL",
    "MRR": "MRR and anti-MRR",
}
HITS = {"P": "P", "Recall": "recall", "nDCG": "nDCG", "MRR": "MRR"}
FALSE = {"P": "anti-P", "Recall": "fallout", "nDCG": "nDCL", "MRR": "anti-MRR"}
BPMF = "The published BPMF never learned and is random here; as the text describes it, it learns."


# Systems


def _scatter(
    table: pl.DataFrame,
    across: tuple[str, str],
    up: tuple[str, str],
    title: str,
    also: Sequence[str] = (),
) -> Picture:
    """Draw a point per system: judgments and metric across, and up."""
    x, y = means(table, *across), means(table, *up)
    names = [name for name in (*SIXTEEN, *also) if name in x]
    points = pl.DataFrame(
        {"system": names, "x": [x[name] for name in names], "y": [y[name] for name in names]}
    )
    labels = (f"{' '.join(side)}" for side in (across, up))
    return Picture(_point_chart(points, title, *labels))


def _point_chart(points: pl.DataFrame, title: str, across: str, up: str) -> Figure:
    return Chart(
        points, "x", "y", title=title, label="system", across=across, up=up, zero=False
    ).points()


def _beside(
    taus: Mapping[str, Tau], published: Mapping[str, float], words: Mapping[str, str]
) -> Table:
    """Show τ beside the printed values."""
    frame = pl.DataFrame(
        [
            {
                "of": words[name],
                "printed": published.get(name),
                "measured": one.value,
                "low": one.low,
                "high": one.high,
                "as the text has it": one.meant,
            }
            for name, one in taus.items()
        ],
        schema_overrides=dict.fromkeys(("printed", "low", "high"), pl.Float64),
    )
    return Table("Kendall's τ of sixteen systems", frame, digits=2, note=BPMF)


def _twins(
    table: pl.DataFrame,
    judgments: str,
    names: Sequence[str],
    title: str,
    published: Mapping[str, float] | None = None,
    *,
    also: Sequence[str] = (),
    sets: Mapping[str, tuple[str, str]] = PAIRS,
) -> list[Block]:
    """Draw metrics against their twins, and set τ beside the printed one."""
    pictures = [
        _scatter(
            table,
            (judgments, sets[name][0]),
            (judgments, sets[name][1]),
            f"{title}: {WORDS[name]}",
            also if name == "P" else (),
        )
        for name in names
    ]
    return [*pictures, _beside(twins(table, names, judgments, sets), published or {}, WORDS)]


def fig_1(lab: Lab, dataset_name: str) -> Blocks:
    """Draw true- against false-positive metrics on condensed and full rankings."""
    table = lab.table(scores, dataset_name)
    condensed = printed.CONDENSED if dataset_name == ML else None
    full = printed.OBSERVED.get(dataset_name)
    return [
        *_twins(table, "observed", FIRST, "Condensed rankings", condensed, sets=CONDENSED),
        *_twins(table, "observed", FIRST, "Full rankings", full),
    ]


def fig_1_released(lab: Lab, _dataset_name: str) -> Blocks:
    """Draw the released values of Figs. 1 and 12 and set τ beside what is printed."""
    blocks: list[Block] = []
    for title, end, published in (
        ("Condensed rankings", "_c", printed.CONDENSED),
        ("Full rankings", "", printed.OBSERVED[ML]),
    ):
        columns = {
            "P": (f"precision{end}", f"antiprecision{end}"),
            "Recall": (f"recall{end}", f"fallout{end}"),
        }
        table = released(lab).filter(pl.col("system").is_in(SIXTEEN))
        blocks += [
            Picture(_point_chart(table.select("system", x=x, y=y), f"{title}: {WORDS[name]}", x, y))
            for name, (x, y) in columns.items()
        ]
        taus = [
            {"of": WORDS[name], "printed": published[name], "measured": released_tau(lab, *both)}
            for name, both in columns.items()
        ]
        blocks.append(Table("Kendall's τ of sixteen systems", pl.DataFrame(taus), digits=2))
    return blocks


def fig_12(lab: Lab, dataset_name: str) -> Blocks:
    """Draw observed true- against false-positive metrics, and the systems' values."""
    table, published = lab.table(scores, dataset_name), printed.OBSERVED.get(dataset_name)
    return [
        *_twins(table, "observed", FIRST, "As observed", published, also=(BEST_P, BEST_ANTI)),
        *_twins(table, "observed", MORE, "As observed: further metrics"),
        _values(lab, dataset_name),
    ]


def _values(lab: Lab, dataset_name: str) -> Table:
    """Return precision and anti-precision of all systems, beside those released for ML-1M."""
    table = lab.table(scores, dataset_name)
    good, bad = (means(table, "observed", one) for one in PAIRS["P"])
    rows = pl.DataFrame(
        {"system": list(good), "P@10": list(good.values()), "anti-P@10": list(bad.values())}
    )
    if dataset_name == ML:
        try:
            theirs = released(lab).select(
                "system",
                pl.col("precision").alias("P@10, released"),
                pl.col("antiprecision").alias("anti-P@10, released"),
            )
        except MissingDataError:
            return Table("Systems", rows)
        rows = rows.join(theirs, on="system", how="left", maintain_order="left")
    return Table("Systems", rows)


def fig_13(lab: Lab, dataset_name: str) -> Blocks:
    """Draw the same by unbiased test data."""
    random_part(lab, dataset_name)
    table, published = lab.table(scores, dataset_name), printed.TRUE.get(dataset_name)
    return [
        *_twins(table, "true", FIRST, "By the truth", published, also=(BEST_TRUE,)),
        *_twins(table, "true", MORE, "By the truth: further metrics"),
    ]


def _observed_and_true(
    table: pl.DataFrame,
    names: Sequence[str],
    hits: Mapping[str, float],
    false: Mapping[str, float],
) -> Blocks:
    """Draw metrics and their twins as observed against the truth."""
    blocks: list[Block] = []
    for side, words, published in ((0, HITS, hits), (1, FALSE, false)):
        for name in names:
            metric = PAIRS[name][side]
            title = f"Observed and true {words[name]}"
            blocks.append(_scatter(table, ("observed", metric), ("true", metric), title))
        blocks.append(_beside(kept(table, names, side), published, words))
    return blocks


def observed_and_true(names: Sequence[str]) -> Callable[[Lab, str], Blocks]:
    """Return what draws some metrics and their twins as observed against the truth."""

    def draw(lab: Lab, dataset_name: str) -> Blocks:
        random_part(lab, dataset_name)
        hits, false = (one.get(dataset_name, {}) for one in (printed.HITS, printed.FALSE))
        return _observed_and_true(lab.table(scores, dataset_name), names, hits, false)

    return draw


def fig_16(lab: Lab, dataset_name: str) -> Blocks:
    """Draw the same where popularity goes against relevance."""
    if dataset_name:
        random_part(lab, dataset_name)
    elif lab.is_other_data and STAND_IN not in lab.datasets:
        raise MissingDataError("a simulated world, which says nothing about your data")
    shown = (printed.TURNED_HITS, printed.TURNED_FALSE) if dataset_name == CM else ({}, {})
    return _observed_and_true(lab.table(inverted_popularity, dataset_name), FIRST, *shown)


def fig_18(lab: Lab, dataset_name: str) -> Blocks:
    """Draw true- against false-positive metrics by a split in time."""
    published = printed.TEMPORAL if dataset_name == ML else None
    table = lab.table(temporal, dataset_name)
    return _twins(table, "observed", list(PAIRS), "By a split in time", published)


# Items and pairs of items


def table_2(lab: Lab, dataset_name: str) -> Blocks:
    """Show the sizes of the data beside the printed ones."""
    published = printed.SIZES.get(dataset_name, {})
    rows = [
        (what, published.get(what), number)
        for what, number in lab.table(sizes, dataset_name).iter_rows()
    ]
    kinds = {"what": pl.String, "printed": pl.Int64, "found": pl.Int64}
    return [Table(dataset_name, pl.DataFrame(rows, schema=kinds, orient="row"))]


def fig_5(lab: Lab, dataset_name: str) -> Blocks:
    """Draw the four cases of popularity and average rating."""
    pairs = bias(lab, dataset_name).pairs
    columns = "share", "strict", "lemma", "disagree", "agree", "ties"
    shares = [name for name in columns if name != "lemma"]
    frame = _percent(case_table(pairs, *columns), shares)
    if dataset_name == ML:
        frame = frame.with_columns(printed=pl.Series(printed.CASES[dataset_name]))
    lines = "; ".join(pairs.explanation[:3]) + "."
    blocks: list[Block] = [
        Picture(pairs.figure()),
        Table("Shares of item pairs (%)", frame, digits=2, note=lines),
    ]
    return [*blocks, *_steepness(lab, dataset_name)] if dataset_name == ML else blocks


def _steepness(lab: Lab, dataset_name: str) -> list[Block]:
    """Explain the printed share of pairs on which popularity is steeper than both."""
    table = _percent(lab.table(steepness, dataset_name), ("both",))
    wide = table.pivot("popularity", index="ratings", values="both").with_columns(
        pl.col("ratings").str.replace("fold", "training part of fold ")
    )
    words = (
        "The paper prints 63.3 % for the pairs on which popularity is steeper than relevance and "
        "non-relevance. The odds of popularity, which Lemma 1 is about, give more, on all ratings "
        "and on the training part of every fold. Plain popularity on the training part of a fold "
        "comes nearest. Which fold does was looked up after the fact: this may explain the "
        "number, and does not prove where it is from."
    )
    title = "Steeper than relevance and non-relevance (% of item pairs)"
    return [Words(words, head="63.3 % (3-08)"), Table(title, wide, digits=2)]


def _percent(frame: pl.DataFrame, columns: Sequence[str]) -> pl.DataFrame:
    return frame.with_columns(pl.col(column) * 100 for column in columns)


def fig_6(lab: Lab, dataset_name: str) -> Blocks:
    """Draw the curves of popularity and average rating, and the optimal rankings."""
    report = bias(lab, dataset_name)
    ranks = optimal_rankings(report.counts)
    tau = f"τ_b of the orders for P and anti-P: {overall(report.pairs, 'tau'):.2f}"
    rankings = charts.ranks(ranks["rank_P"], ranks["rank_anti-P"], [tau])
    return [Picture(report.figure("popularity")), Picture(rankings)]


def fig_7(lab: Lab, dataset_name: str) -> Blocks:
    """Draw what the optimal rankings follow."""
    report = bias(lab, dataset_name)
    published = list(printed.PEARSON.values()) if dataset_name == ML else [None] * 4
    frame = report.correlations.with_columns(printed=pl.Series(published, dtype=pl.Float64))
    return [Picture(report.figure("optimal")), Table("Correlations over items", frame, digits=2)]


def fig_9(lab: Lab, dataset_name: str) -> Blocks:
    """Draw the four cases of popularity and true relevance, and which metrics are consistent."""
    random_part(lab, dataset_name)
    pairs = bias(lab, dataset_name).pairs
    columns = "share", "strict", "lemma_P", "P", "lemma_anti-P", "anti-P"
    frame = _percent(case_table(pairs.parts["true"], *columns), ("share", "strict", "P", "anti-P"))
    if dataset_name == CM:
        frame = frame.with_columns(printed=pl.Series(printed.CASES[dataset_name]))
    long = pl.concat(
        frame.select("case", pl.lit(label).alias("of"), pl.col(column).alias("percent"))
        for label, column in (
            ("pairs", "share"),
            ("P consistent", "P"),
            ("anti-P consistent", "anti-P"),
        )
    )
    figure = Chart(
        long,
        "case",
        "percent",
        by="of",
        up="item pairs (%)",
        title="Popularity and relevance: which metrics are consistent",
    ).bars()
    published = {
        "observed P as the truth": 64.1,
        "observed anti-P as the truth": 42.1,
        "Lemma 3, P": 81.2,
        "Lemma 3, anti-P": 75.3,
        "Lemma 2": 18.3,
    }
    names = "P", "anti-P", "lemma3_P", "lemma3_anti-P", "lemma2"
    measured = [overall(pairs, name, "true overall") for name in names]
    shares = pl.DataFrame(
        {
            "what": list(published),
            "printed": pl.Series(
                list(published.values()) if dataset_name == CM else [None] * 5, dtype=pl.Float64
            ),
            "measured": [100 * one for one in measured],
        }
    )
    return [
        Picture(figure),
        Table("Shares of item pairs (%)", frame, digits=2),
        Table("What holds (% of item pairs)", shares, digits=2),
    ]


def fig_10(lab: Lab, dataset_name: str) -> Blocks:
    """Draw how far being rated depends on the item and on being liked."""
    random_part(lab, dataset_name)
    report = bias(lab, dataset_name)
    if report.dependence is None:
        raise MissingDataError(
            f"{dataset_name}: nobody is known to like an item with random judgments"
        )
    return [Picture(report.figure("dependence")), Words(str(report.dependence))]


def fig_11(lab: Lab, dataset_name: str) -> Blocks:
    """Count what trains, what is observed and what is true in each fold."""
    everything = random_part(lab, dataset_name)
    rows = []
    for split in folds(lab, dataset_name).each(lab.data(dataset_name).ratings, lab.seed):
        seen = split.judgments.get("observed", split.test)
        real = split.judgments.get("true", everything)
        rows.append((split.label, len(split.train), len(seen), len(real)))
    names = ("fold", "training", "observed test", "true test")
    note = (
        f"{counted(len(observed_part(lab, dataset_name)), 'rating was', 'ratings were')} chosen "
        "by users."
    )
    return [Table("Ratings", pl.DataFrame(rows, schema=names, orient="row"), note=note)]


def fig_15(lab: Lab, dataset_name: str) -> Blocks:
    """Draw popularity against relevance."""
    random_part(lab, dataset_name)
    table = lab.table(items, dataset_name).drop_nulls(["p_rel"]).head(MOST_ROWS)
    notes = [f"{table.height:,} items, liked from {threshold(lab, dataset_name):g}"]
    figure = Chart(
        table,
        "p_train",
        "p_rel",
        title="Popularity and relevance",
        across="p(train|i)",
        up="p(rel|i)",
        notes=notes,
        zero=False,
    ).points()
    return [Picture(figure)]


# Theory


def toy_figures(*places: str) -> Callable[[Lab, str], Blocks]:
    """Return the function that shows the numbers of toys beside the printed ones."""

    def draw(lab: Lab, _dataset_name: str) -> Blocks:
        table = lab.table(toys)
        parts = [table.filter(pl.col("place").str.starts_with(place)) for place in places]
        return [
            Table(str(part["place"][0]), part.drop("place"), digits=3)
            for whole in parts
            for part in whole.partition_by("place", maintain_order=True)
        ]

    return draw


def lemma_tables(lab: Lab, _dataset_name: str) -> Blocks:
    """Show the truth tables, and the lemmas in worlds built for them."""
    table = lab.table(truth_tables).with_columns(pl.col("pairs").round().cast(pl.Int64))
    parts = table.partition_by("table", maintain_order=True)
    grids = [Table(str(part["table"][0]), part.drop("table")) for part in parts]
    note = "consistent: share of item pairs in the true order, and its 95 % interval over worlds."
    title = "In worlds built to the premises of Lemmas 2 and 3"
    return [*grids, Table(title, lab.table(lemma_worlds), note=note)]


EXHIBITS = (
    Exhibit(
        place="Fig. 1 and 12",
        title="released values",
        shows="Whether the released values of ML-1M give the printed correlations.",
        draw=fig_1_released,
        files=(RELEASED_AT_10,),
    ),
    Exhibit(
        place="Fig. 1",
        title="condensed and full rankings",
        shows="Metrics of hits and of false positives agree once unjudged items are taken out, "
        "and disagree as they are commonly used.",
        draw=fig_1,
        data=(ML,),
    ),
    Exhibit(
        place="Table 2",
        title="the data",
        shows="What the study runs on.",
        draw=table_2,
        data=(*ALL, "ml-100k"),
    ),
    Exhibit(
        place="Fig. 2, 4 and 8",
        title="toy examples",
        shows="The paper's examples: printed values, and values computed here.",
        draw=toy_figures("Fig. 2", "Fig. 4", "Fig. 8"),
    ),
    Exhibit(
        place="Fig. 3",
        title="agreement and steepness",
        shows="Four examples of two functions on two items.",
        draw=toy_figures("Fig. 3"),
    ),
    Exhibit(
        place="Tables 3 and 4, App. B",
        title="truth tables",
        shows="Whether each row of the lemmas holds on exact tables, and whether they hold in "
        "simulated data.",
        draw=lemma_tables,
    ),
    Exhibit(
        place="Fig. 5",
        title="pairs of items as rated",
        shows="How often popularity decides that the best orders for precision and anti-precision "
        "disagree.",
        draw=fig_5,
        data=(ML,),
    ),
    Exhibit(
        place="Fig. 6",
        title="popularity, ratings, optimal rankings",
        shows="Popularity is spread more unevenly than ratings, so the two best orders oppose "
        "each other.",
        draw=fig_6,
        data=(ML,),
    ),
    Exhibit(
        place="Fig. 7",
        title="what the optimal rankings follow",
        shows="Both follow popularity, in opposite directions, more than ratings.",
        draw=fig_7,
        data=(ML,),
    ),
    Exhibit(
        place="Fig. 9",
        title="pairs of items by the truth",
        shows="Which of the two metrics orders items as the truth does, and whether Lemma 3 says "
        "so.",
        draw=fig_9,
        data=(CM,),
    ),
    Exhibit(
        place="Fig. 10",
        title="what being rated depends on",
        shows="Whether rating depends on liking or on the item.",
        draw=fig_10,
        data=(CM,),
    ),
    Exhibit(
        place="Fig. 11",
        title="how the data are split",
        shows="Observed and true evaluation share their training data.",
        draw=fig_11,
        data=KNOWN,
    ),
    Exhibit(
        place="Fig. 12",
        title="systems as observed",
        shows="Metrics of hits and of false positives disagree about systems.",
        draw=fig_12,
        data=ALL,
    ),
    Exhibit(
        place="Fig. 13",
        title="systems by the truth",
        shows="With unbiased test data they agree.",
        draw=fig_13,
        data=KNOWN,
    ),
    Exhibit(
        place="Fig. 14",
        title="observed and true",
        shows="Which metrics keep the true order of systems.",
        draw=observed_and_true(FIRST),
        data=KNOWN,
    ),
    Exhibit(
        place="Fig. 15",
        title="popularity and relevance",
        shows="Whether popular items are the ones that users like.",
        draw=fig_15,
        data=KNOWN,
    ),
    Exhibit(
        place="Fig. 16",
        title="popularity against relevance",
        shows="Familiarity is reassigned, with the least liked items the most familiar: now "
        "metrics of false positives are right.",
        draw=fig_16,
        data=(CM,),
        on_other_data=False,
    ),
    Exhibit(
        place="Fig. 16",
        title="popularity against relevance, simulated",
        shows="The same in a built-in world where the worse items are the more popular.",
        draw=fig_16,
    ),
    Exhibit(
        place="Fig. 17",
        title="further metrics",
        shows="nDCG and MRR do as precision and recall, nDCL and anti-MRR as anti-precision and "
        "fallout.",
        draw=observed_and_true(MORE),
        data=KNOWN,
    ),
    Exhibit(
        place="Fig. 18",
        title="a split in time",
        shows="Metrics and their twins are related weakly once the test comes after training.",
        draw=fig_18,
        data=(ML, "ml-100k"),
    ),
)
