"""bellogin2017: its figures again, ours beside the printed numbers."""

from __future__ import annotations

from collections.abc import Sequence

import polars as pl

from unskew.report.charts import split_counts
from unskew.report.document import Block, Picture, Words
from unskew.report.tables import Table
from unskew.report.text import p_value
from unskew.splits.counts import count_parts
from unskew_studies.bellogin2017.measurements import (
    AP,
    AR,
    AR_FIXED,
    BPREF,
    HEADLESS,
    INFAP,
    LASTFM,
    MOVIELENS,
    NDCG,
    ONE,
    PERCENTILES,
    RECALL,
    RR,
    STRATIFIED,
    U1R,
    U1R_ALL,
    UAR,
    UAR_ALL,
    P,
    folds,
    uniform_splits,
)
from unskew_studies.bellogin2017.measurements_designs import (
    bounds,
    configurations,
    larger,
    remedies,
    significance,
    sparser,
    uniform_designs,
)
from unskew_studies.bellogin2017.measurements_popularity import (
    counts,
    cumulated_shares,
    ratio_by_popularity,
    simulated,
)
from unskew_studies.bellogin2017.printed import PRINTED, PRINTED_SIMULATED, TREC
from unskew_studies.charts import Chart
from unskew_studies.lab import Lab
from unskew_studies.paper import Exhibit


def means(frame: pl.DataFrame, *by: str) -> pl.DataFrame:
    """Return the mean over folds, and its least and largest fold."""
    return frame.group_by(*by, maintain_order=True).agg(
        pl.col("value").mean(),
        pl.col("value").min().alias("low"),
        pl.col("value").max().alias("high"),
        pl.col("random").mean(),
    )


def beside(frame: pl.DataFrame, row: str, column: str, value: str = "value") -> pl.DataFrame:
    """Return a table with a row and a column for each name."""
    return frame.pivot(column, index=row, values=value, maintain_order=True)


def figure_2(lab: Lab, dataset_name: str) -> list[Block]:
    """Draw precision under AR and 1R, and which systems differ."""
    table = lab.table(configurations, dataset_name).filter(pl.col("metric") == P)
    shown = means(table, "design", "system")
    beside_printed = shown.with_columns(
        printed=pl.Series(
            [
                PRINTED.get((dataset_name, *pair), "")
                for pair in shown.select("design", "system").iter_rows()
            ]
        )
    )
    figure = Chart(
        shown,
        "system",
        "value",
        title="P@10 of systems under AR and 1R",
        panel="design",
        low="low",
        high="high",
        up="P@10",
        notes=["whiskers: least and largest fold"],
    ).bars()
    pairs = lab.table(significance, dataset_name).select(
        "design",
        "a",
        "b",
        "difference",
        "low",
        "high",
        pl.col("p").fill_null(float("nan")).map_elements(p_value, pl.String),
    )
    return [
        Picture(figure),
        Table(
            "P@10, and what the paper prints",
            beside_printed.select("design", "system", "value", "random", "printed"),
            note="random: what a random order of the same targets is expected to score",
        ),
        Table("Differences of P@10, and p by Wilcoxon's test", pairs),
    ]


def figure_3(lab: Lab, dataset_name: str) -> list[Block]:
    """Draw 1R precision between its bounds."""
    table = lab.table(bounds, dataset_name).filter(pl.col("along") != "one each")
    blocks: list[Block] = []
    for along, title, across in (
        ("kept", "1RP@10 and its bounds over test ratings kept", "share of test ratings kept"),
        ("targets", "1RP@10 and its bounds over the size of target sets", "|T|"),
    ):
        rows = table.filter((pl.col("along") == along) & (pl.col("system") != "random"))
        each = rows.group_by("system", "at", maintain_order=True).agg(
            pl.col("low", "value", "high").mean()
        )
        long = each.unpivot(index=["system", "at"], variable_name="line", value_name="P@10")
        names = {"low": "lower bound", "value": "1RP@10", "high": "upper bound"}
        long = long.with_columns(pl.col("line").replace_strict(names))
        figure = Chart(
            long, "at", "P@10", title=title, by="line", panel="system", across=across, columns=2
        ).lines()
        blocks += [Picture(figure), Table(title, each.rename({"at": across}))]
    return blocks


def figure_4(lab: Lab, dataset_name: str) -> list[Block]:
    """Draw precision over test ratings kept, in AR and 1R, and over the size of target sets."""
    table = lab.table(sparser, dataset_name).filter(pl.col("metric") == P)
    shares = means(table, "design", "kept", "system")
    targets = means(lab.table(larger, dataset_name), "targets", "system")
    return [
        Picture(
            Chart(
                shares,
                "kept",
                "value",
                title="P@10 with fewer test ratings",
                by="system",
                panel="design",
                across="share of test ratings kept",
                up="P@10",
                columns=2,
            ).lines()
        ),
        Table(
            "AR: P@10 by share of test ratings kept",
            beside(shares.filter(pl.col("design") == AR), "kept", "system"),
        ),
        Table(
            "1R: P@10 by share of test ratings kept",
            beside(shares.filter(pl.col("design") == ONE), "kept", "system"),
        ),
        Picture(
            Chart(
                targets,
                "targets",
                "value",
                title="1RP@10 with larger target sets",
                by="system",
                across="|T|",
                up="P@10",
                log_x=True,
                log_y=True,
            ).lines()
        ),
        Table(
            "1R: P@10 by size of target sets",
            beside(targets, "targets", "system"),
            note="Random is expected to have 1/|T|.",
        ),
    ]


def figure_5(lab: Lab, dataset_name: str) -> list[Block]:
    """Draw simulated popularity, precision over its skew, and the data's own distribution."""
    curves = lab.table(cumulated_shares, dataset_name)
    table = lab.table(simulated, dataset_name).filter(pl.col("metric") == P)
    one = table.filter(pl.col("design") == ONE)
    flat = one.filter(pl.col("alpha") == 0).select(
        "system", pl.col("value").alias("ours"), pl.col("random").alias("expected of chance")
    )
    printed = [PRINTED_SIMULATED.get((name, 0.0), "") for name in flat["system"]]
    top = lab.table(counts, dataset_name).filter(pl.col("what").str.contains("most liked"))[
        "value"
    ][0]
    simulated_only = pl.col("of").str.starts_with("α")
    across, up = "share of items, the most popular first", "share of ratings"
    return [
        Picture(
            Chart(
                curves.filter(simulated_only),
                "items",
                "share",
                by="of",
                title="Simulated popularity: what the first items hold",
                across=across,
                up=up,
            ).lines()
        ),
        Picture(
            Chart(
                table,
                "alpha",
                "value",
                title="P@10 on simulated data",
                by="system",
                panel="design",
                across="skew α",
                up="P@10",
                columns=2,
            ).lines()
        ),
        Table("1R: P@10 by α", beside(one, "alpha", "system")),
        Table(
            "1R at α = 0, and what the paper prints", flat.with_columns(printed=pl.Series(printed))
        ),
        Table("AR: P@10 by α", beside(table.filter(pl.col("design") == AR), "alpha", "system")),
        Picture(
            Chart(
                curves.filter(~simulated_only),
                "items",
                "share",
                title=f"Liked ratings of {dataset_name}: what the first items hold",
                across=across,
                up=up,
            ).lines()
        ),
        Words(f"The most liked item is liked by {100 * top:.1f} % of users here. {TREC}"),
    ]


def figure_6(lab: Lab, dataset_name: str) -> list[Block]:
    """Draw the training and test ratings of items in a random split and in a uniform test."""
    splits = {
        "A random split.": folds(lab, dataset_name)[0],
        "A uniform test.": uniform_splits(lab, dataset_name)[0],
    }
    return [
        Picture(
            split_counts(*count_parts(split).per_item.values(), scale="log", label=split.label),
            caption,
        )
        for caption, split in splits.items()
    ]


def figure_7(lab: Lab, dataset_name: str) -> list[Block]:
    """Draw the share of positive ratings over popularity."""
    table = lab.table(ratio_by_popularity, dataset_name)
    figure = Chart(
        table,
        "segment",
        "ratio",
        title="Positive ratings by popularity",
        across="segments of items, the most popular first",
        up="mean of |PR(i)| / |R(i)|",
    ).lines()
    tenths = table.with_columns(tenth=(pl.col("segment") - 1) * 10 // table.height + 1)
    grid = tenths.group_by("tenth", maintain_order=True).agg(
        pl.col("items").sum(), pl.col("ratings", "ratio").mean()
    )
    return [Picture(figure), Table("Mean ratings and positive ratio by tenth of the items", grid)]


def figure_8(lab: Lab, dataset_name: str) -> list[Block]:
    """Draw systems under the remedies, by precision and nDCG, and popularity by other metrics."""
    order = (AR_FIXED, UAR, UAR_ALL, ONE, HEADLESS, PERCENTILES, U1R, U1R_ALL)
    columns = ("design", "fold", "system", "metric", "value", "random")
    parts = [lab.table(one, dataset_name).select(columns) for one in (configurations, remedies)]
    table = pl.concat([*parts, lab.table(uniform_designs, dataset_name).select(columns)])
    place = {name: number for number, name in enumerate(order)}
    table = table.filter(pl.col("design").is_in(order)).sort(
        pl.col("design").replace_strict(place), maintain_order=True
    )
    blocks: list[Block] = []
    for metric in (P, NDCG):
        shown = means(table.filter(pl.col("metric") == metric), "design", "system")
        figure = Chart(
            shown,
            "system",
            "value",
            title=f"{metric} under the remedies",
            panel="design",
            low="low",
            high="high",
            up=metric,
            columns=4,
        ).bars()
        chance = shown.group_by("design", maintain_order=True).agg(pl.col("random").first())
        grid = beside(shown, "design", "system").join(chance, on="design", suffix=", expected")
        blocks += [Picture(figure), Table(f"{metric} by design and system", grid)]
    popular = table.filter(
        (pl.col("system") == "popularity") & pl.col("metric").is_in([P, NDCG, RECALL, AP, RR])
    )
    over = means(popular, "design", "metric").with_columns(pl.col("value") / pl.col("random"))
    return [
        *blocks,
        Table("Popularity by what random is expected to score", beside(over, "design", "metric")),
    ]


def figure_9(lab: Lab, dataset_name: str) -> list[Block]:
    """Draw systems by bpref, infAP and stratified recall."""
    table = lab.table(configurations, dataset_name)
    blocks: list[Block] = []
    for metric in (BPREF, INFAP, STRATIFIED):
        rows = table.filter(pl.col("metric") == metric)
        if metric == BPREF:  # in 1R it says nothing: see the paper's section 7
            rows = rows.filter(pl.col("design") != ONE)
        shown = means(rows, "design", "system")
        figure = Chart(
            shown,
            "system",
            "value",
            title=metric,
            panel="design",
            low="low",
            high="high",
            up=metric,
        ).bars()
        blocks += [Picture(figure), Table(metric, beside(shown, "system", "design"))]
    return blocks


EXHIBITS: Sequence[Exhibit] = (
    Exhibit(
        place="Fig. 2",
        title="Systems under AR and 1R",
        shows="The same systems and the same metric give other values, and another order, with "
        "every configuration of the experiment.",
        draw=figure_2,
        data=(MOVIELENS, LASTFM),
    ),
    Exhibit(
        place="Fig. 3",
        title="1R precision and its bounds",
        shows="1R precision is tied to AR precision: it lies between two bounds that close in as "
        "targets get many or test ratings few.",
        draw=figure_3,
        data=(MOVIELENS,),
    ),
    Exhibit(
        place="Fig. 4",
        title="The sparsity bias",
        shows="AR precision measures how many test ratings there are as much as the system; 1R "
        "precision measures how many targets there are.",
        draw=figure_4,
        data=(MOVIELENS,),
    ),
    Exhibit(
        place="Fig. 5",
        title="Popularity, simulated and real",
        shows="Without any taste in the data, popularity is rewarded for the skew alone.",
        draw=figure_5,
        data=(MOVIELENS,),
    ),
    Exhibit(
        place="Fig. 6",
        title="Ratings per item in both splits",
        shows="A random split tests popular items most; a uniform test gives each of its items "
        "the same number of test ratings.",
        draw=figure_6,
        data=(MOVIELENS,),
    ),
    Exhibit(
        place="Fig. 7",
        title="Popular items are liked more often",
        shows="What a uniform test leaves of popularity's advantage comes partly from here.",
        draw=figure_7,
        data=(MOVIELENS,),
    ),
    Exhibit(
        place="Fig. 8",
        title="Remedies",
        shows="Percentiles and uniform tests take most of popularity's advantage away, and more "
        "than removing the most popular items does.",
        draw=figure_8,
        data=(MOVIELENS,),
    ),
    Exhibit(
        place="Fig. 9",
        title="bpref, infAP and stratified recall",
        shows="Metrics made for incomplete judgments change the order too, but not for popularity "
        "alone.",
        draw=figure_9,
        data=(MOVIELENS, LASTFM),
    ),
)
