"""mena2021: popularity bias in metrics of false positives."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

import polars as pl

from unskew.bias.optimal import optimal_rankings
from unskew.data.dataset import Dataset
from unskew.report.charts import MOST_ROWS, Figure
from unskew.report.document import Block, Picture, Words
from unskew.report.tables import Table
from unskew.studies.charts import bars, scatter
from unskew.studies.lab import Amount, Lab, Measurement, NotAtHandError
from unskew.studies.mena2021 import printed
from unskew.studies.mena2021.checks import kept, twins
from unskew.studies.mena2021.claims import ALL, CLAIMS, CM, KNOWN, ML, TABLE
from unskew.studies.mena2021.measures import (
    BEST_ANTI,
    BEST_P,
    BEST_TRUE,
    CONDENSED,
    PAIRS,
    SIXTEEN,
    Tau,
    bias,
    folds,
    items,
    means,
    observed_part,
    random_part,
    released,
    released_tau,
    scores,
    sizes,
    steepness,
    temporal,
    threshold,
    turned,
)
from unskew.studies.mena2021.theory import lemma_worlds, toys, truth_tables
from unskew.studies.paper import STAND_IN, Exhibit, Study
from unskew.worlds.worlds import world

Blocks = Sequence[Block]
WORDS = {
    "P": "P and anti-P",
    "Recall": "recall and fallout",
    "nDCG": "nDCG and nDCL",
    "MRR": "MRR and anti-MRR",
}
HITS = {"P": "P", "Recall": "recall", "nDCG": "nDCG", "MRR": "MRR"}
FALSE = {"P": "anti-P", "Recall": "fallout", "nDCG": "nDCL", "MRR": "anti-MRR"}
BPMF = "BPMF as published never learned, and is random here; as the text has it, it learns."


# Systems


def _drawn(
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
    return Picture(_scattered(points, title, *labels))


def _scattered(points: pl.DataFrame, title: str, across: str, up: str) -> Figure:
    return scatter(points, "x", "y", title=title, label="system", across=across, up=up)


def _beside(found: Mapping[str, Tau], said: Mapping[str, float], words: Mapping[str, str]) -> Table:
    """Set τ beside what is printed."""
    frame = pl.DataFrame(
        [
            {
                "of": words[name],
                "printed": said.get(name),
                "measured": one.value,
                "low": one.low,
                "high": one.high,
                "as the text has it": one.meant,
            }
            for name, one in found.items()
        ],
        schema_overrides=dict.fromkeys(("printed", "low", "high"), pl.Float64),
    )
    return Table("Kendall's τ of sixteen systems", frame, digits=2, note=BPMF)


def _twins(
    lab: Lab,
    on: str,
    what: Measurement,
    judgments: str,
    said: Mapping[str, float],
    names: Sequence[str],
    title: str,
    also: Sequence[str] = (),
    sets: Mapping[str, tuple[str, str]] = PAIRS,
) -> list[Block]:
    """Draw metrics against their twins, and set τ beside what is printed."""
    table = lab.table(what, on)
    pictures = [
        _drawn(
            table,
            (judgments, sets[name][0]),
            (judgments, sets[name][1]),
            f"{title}: {WORDS[name]}",
            also if name == "P" else (),
        )
        for name in names
    ]
    return [*pictures, _beside(twins(table, names, judgments, sets), said, WORDS)]


def fig_1(lab: Lab, on: str) -> Blocks:
    """Draw true- against false-positive metrics on condensed and full rankings."""
    names = ("P", "Recall")
    return [
        *_twins(
            lab,
            on,
            scores,
            "observed",
            printed.CONDENSED if on == ML else {},
            names,
            "Condensed rankings",
            sets=CONDENSED,
        ),
        *_twins(lab, on, scores, "observed", printed.OBSERVED.get(on, {}), names, "Full rankings"),
    ]


def fig_1_released(lab: Lab, _on: str) -> Blocks:
    """Draw the released values of Figs. 1 and 12 and set τ beside what is printed."""
    blocks: list[Block] = []
    for title, end, said in (
        ("Condensed rankings", "_c", printed.CONDENSED),
        ("Full rankings", "", printed.OBSERVED[ML]),
    ):
        columns = {
            "P": (f"precision{end}", f"antiprecision{end}"),
            "Recall": (f"recall{end}", f"fallout{end}"),
        }
        table = released(lab).filter(pl.col("system").is_in(SIXTEEN))
        blocks += [
            Picture(_scattered(table.select("system", x=x, y=y), f"{title}: {WORDS[name]}", x, y))
            for name, (x, y) in columns.items()
        ]
        found = [
            {"of": WORDS[name], "printed": said[name], "measured": released_tau(lab, *both)}
            for name, both in columns.items()
        ]
        blocks.append(Table("Kendall's τ of sixteen systems", pl.DataFrame(found), digits=2))
    return blocks


def fig_12(lab: Lab, on: str) -> Blocks:
    """Draw observed true- against false-positive metrics, and the systems' values."""
    blocks = _twins(
        lab,
        on,
        scores,
        "observed",
        printed.OBSERVED.get(on, {}),
        ("P", "Recall"),
        "As observed",
        (BEST_P, BEST_ANTI),
    )
    more = _twins(lab, on, scores, "observed", {}, ("nDCG", "MRR"), "As observed: further metrics")
    return [*blocks, *more, _values(lab, on)]


def _values(lab: Lab, on: str) -> Table:
    """Return precision and anti-precision of all systems, beside those released for ML-1M."""
    table = lab.table(scores, on)
    good, bad = (means(table, "observed", one) for one in PAIRS["P"])
    rows = pl.DataFrame(
        {"system": list(good), "P@10": list(good.values()), "anti-P@10": list(bad.values())}
    )
    if on == ML:
        try:
            theirs = released(lab).select(
                "system",
                pl.col("precision").alias("P@10, released"),
                pl.col("antiprecision").alias("anti-P@10, released"),
            )
        except NotAtHandError:
            return Table("Systems", rows)
        rows = rows.join(theirs, on="system", how="left", maintain_order="left")
    return Table("Systems", rows)


def fig_13(lab: Lab, on: str) -> Blocks:
    """Draw the same by unbiased test data."""
    random_part(lab, on)
    more = _twins(lab, on, scores, "true", {}, ("nDCG", "MRR"), "By the truth: further metrics")
    return [
        *_twins(
            lab,
            on,
            scores,
            "true",
            printed.TRUE.get(on, {}),
            ("P", "Recall"),
            "By the truth",
            (BEST_TRUE,),
        ),
        *more,
    ]


def _observed_and_true(
    lab: Lab,
    on: str,
    what: Measurement,
    names: Sequence[str],
    hits: Mapping[str, float],
    false: Mapping[str, float],
) -> Blocks:
    """Draw metrics and their twins as observed against the truth."""
    if on:
        random_part(lab, on)
    table = lab.table(what, on)
    blocks: list[Block] = []
    for side, words, said in ((0, HITS, hits), (1, FALSE, false)):
        blocks += [
            _drawn(
                table, ("observed", metric), ("true", metric), f"Observed and true {words[name]}"
            )
            for name in names
            for metric in (PAIRS[name][side],)
        ]
        blocks.append(_beside(kept(table, names, side), said, words))
    return blocks


def fig_14(lab: Lab, on: str) -> Blocks:
    """Draw precision, recall and their twins as observed against the truth."""
    hits, false = printed.HITS.get(on, {}), printed.FALSE.get(on, {})
    return _observed_and_true(lab, on, scores, ("P", "Recall"), hits, false)


def fig_16(lab: Lab, on: str) -> Blocks:
    """Draw the same where popularity goes against relevance."""
    if not on and lab.own and STAND_IN not in lab.sets:
        raise NotAtHandError("a simulated world, which says nothing about your data")
    hits, false = (printed.TURNED_HITS, printed.TURNED_FALSE) if on == CM else ({}, {})
    return _observed_and_true(lab, on, turned, ("P", "Recall"), hits, false)


def fig_17(lab: Lab, on: str) -> Blocks:
    """Draw nDCG, MRR and their twins as observed against the truth."""
    hits, false = printed.HITS.get(on, {}), printed.FALSE.get(on, {})
    return _observed_and_true(lab, on, scores, ("nDCG", "MRR"), hits, false)


def fig_18(lab: Lab, on: str) -> Blocks:
    """Draw true- against false-positive metrics by a split in time."""
    said = printed.TEMPORAL if on == ML else {}
    return _twins(lab, on, temporal, "observed", said, list(PAIRS), "By a split in time")


# Items and pairs of items


def table_2(lab: Lab, on: str) -> Blocks:
    """Set the sizes of the data beside those printed."""
    said = printed.SIZES.get(on, {})
    rows = [(what, said.get(what), found) for what, found in lab.table(sizes, on).iter_rows()]
    kinds = {"what": pl.String, "printed": pl.Int64, "found": pl.Int64}
    return [Table(on, pl.DataFrame(rows, schema=kinds, orient="row"))]


def fig_5(lab: Lab, on: str) -> Blocks:
    """Draw the four cases of popularity and average rating."""
    found = bias(lab, on).pairs
    frame = _percent(found.table(), ("share", "strict", "disagree", "agree", "ties"))
    if on == ML:
        frame = frame.with_columns(printed=pl.Series(printed.CASES[on]))
    lines = "; ".join(found.footer()[:3]) + "."
    blocks: list[Block] = [
        Picture(found.figure()),
        Table("Shares of item pairs (%)", frame, digits=2, note=lines),
    ]
    return [*blocks, *_steepness(lab, on)] if on == ML else blocks


def _steepness(lab: Lab, on: str) -> list[Block]:
    """Say where the printed share of pairs on which popularity is steeper than both may be from."""
    table = _percent(lab.table(steepness, on), ("both",))
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


def fig_6(lab: Lab, on: str) -> Blocks:
    """Draw the curves of popularity and average rating, and the optimal rankings."""
    report = bias(lab, on)
    ranks = optimal_rankings(report.counts)
    return [Picture(report.figure("popularity")), Picture(ranks.figure())]


def fig_7(lab: Lab, on: str) -> Blocks:
    """Draw what the optimal rankings follow."""
    report = bias(lab, on)
    said = list(printed.PEARSON.values()) if on == ML else [None] * 4
    frame = report.correlations.with_columns(printed=pl.Series(said, dtype=pl.Float64))
    return [Picture(report.figure("optimal")), Table("Correlations over items", frame, digits=2)]


def fig_9(lab: Lab, on: str) -> Blocks:
    """Draw the four cases of popularity and true relevance, and which metrics are consistent."""
    random_part(lab, on)
    found = bias(lab, on).pairs
    frame = _percent(found.true.table(), ("share", "strict", "P", "anti-P"))
    if on == CM:
        frame = frame.with_columns(printed=pl.Series(printed.CASES[on]))
    long = pl.concat(
        frame.select("case", pl.lit(label).alias("of"), pl.col(column).alias("percent"))
        for label, column in (
            ("pairs", "share"),
            ("P consistent", "P"),
            ("anti-P consistent", "anti-P"),
        )
    )
    figure = bars(
        long,
        "case",
        "percent",
        by="of",
        up="item pairs (%)",
        title="Popularity and relevance: which metrics are consistent",
    )
    said = {
        "observed P as the truth": 64.1,
        "observed anti-P as the truth": 42.1,
        "Lemma 3, P": 81.2,
        "Lemma 3, anti-P": 75.3,
        "Lemma 2": 18.3,
    }
    measured = [*found.true.consistent.values(), *found.true.lemma3.values(), found.true.lemma2]
    shares = pl.DataFrame(
        {
            "what": list(said),
            "printed": pl.Series(list(said.values()) if on == CM else [None] * 5, dtype=pl.Float64),
            "measured": [100 * one for one in measured],
        }
    )
    return [
        Picture(figure),
        Table("Shares of item pairs (%)", frame, digits=2),
        Table("What holds (% of item pairs)", shares, digits=2),
    ]


def fig_10(lab: Lab, on: str) -> Blocks:
    """Draw how far being rated depends on the item and on being liked."""
    random_part(lab, on)
    report = bias(lab, on)
    if report.dependence is None:
        raise NotAtHandError(f"{on}: nobody is known to like an item with random judgments")
    return [Picture(report.figure("dependence")), Words(str(report.dependence))]


def fig_11(lab: Lab, on: str) -> Blocks:
    """Count what trains, what is observed and what is true in each fold."""
    everything = random_part(lab, on)
    rows = []
    for split in folds(lab, on).each(lab.data(on).ratings, lab.seed):
        seen = split.judgments.get("observed", split.test)
        real = split.judgments.get("true", everything)
        rows.append((split.label, len(split.train), len(seen), len(real)))
    names = ("fold", "training", "observed test", "true test")
    note = f"{len(observed_part(lab, on)):,} ratings were chosen by users."
    return [Table("Ratings", pl.DataFrame(rows, schema=names, orient="row"), note=note)]


def fig_15(lab: Lab, on: str) -> Blocks:
    """Draw popularity against relevance."""
    random_part(lab, on)
    table = lab.table(items, on).drop_nulls(["p_rel"]).head(MOST_ROWS)
    notes = [f"{table.height:,} items, liked from {threshold(lab, on):g}"]
    figure = scatter(
        table,
        "p_train",
        "p_rel",
        title="Popularity and relevance",
        across="p(train|i)",
        up="p(rel|i)",
        notes=notes,
    )
    return [Picture(figure)]


# Theory


def toy_figures(*places: str) -> Callable[[Lab, str], Blocks]:
    """Return what sets the numbers of toys beside those printed."""

    def draw(lab: Lab, _on: str) -> Blocks:
        table = lab.table(toys)
        parts = [table.filter(pl.col("place").str.starts_with(place)) for place in places]
        return [
            Table(str(part["place"][0]), part.drop("place"), digits=3)
            for whole in parts
            for part in whole.partition_by("place", maintain_order=True)
        ]

    return draw


def lemma_tables(lab: Lab, _on: str) -> Blocks:
    """Show the truth tables, and the lemmas in worlds built for them."""
    table = lab.table(truth_tables).with_columns(pl.col("pairs").round().cast(pl.Int64))
    parts = table.partition_by("table", maintain_order=True)
    grids = [Table(str(part["table"][0]), part.drop("table")) for part in parts]
    note = "consistent: share of item pairs in the true order, and its 95 % interval over worlds."
    title = "In worlds built to the premises of Lemmas 2 and 3"
    return [*grids, Table(title, lab.table(lemma_worlds), note=note)]


EXHIBITS = (
    Exhibit(
        "Fig. 1 and 12",
        "released values",
        "Whether the released values of ML-1M give the printed correlations.",
        fig_1_released,
        files=TABLE,
    ),
    Exhibit(
        "Fig. 1",
        "condensed and full rankings",
        "Metrics of hits and of false positives agree "
        "once unjudged items are taken out, and disagree as they are commonly used.",
        fig_1,
        (ML,),
    ),
    Exhibit("Table 2", "the data", "What the study runs on.", table_2, (*ALL, "ml-100k")),
    Exhibit(
        "Fig. 2, 4 and 8",
        "toy examples",
        "The paper's examples worked through: printed, and found here.",
        toy_figures("Fig. 2", "Fig. 4", "Fig. 8"),
    ),
    Exhibit(
        "Fig. 3",
        "agreement and steepness",
        "Four examples of two functions on two items.",
        toy_figures("Fig. 3"),
    ),
    Exhibit(
        "Tables 3 and 4, App. B",
        "truth tables",
        "Whether each row of the lemmas holds on "
        "exact tables, and what becomes of them in simulated data.",
        lemma_tables,
    ),
    Exhibit(
        "Fig. 5",
        "pairs of items as rated",
        "How often popularity decides that the best "
        "orders for precision and anti-precision disagree.",
        fig_5,
        (ML,),
    ),
    Exhibit(
        "Fig. 6",
        "popularity, ratings, optimal rankings",
        "Popularity is spread more unevenly "
        "than ratings, so the two best orders oppose each other.",
        fig_6,
        (ML,),
    ),
    Exhibit(
        "Fig. 7",
        "what the optimal rankings follow",
        "Both follow popularity, in opposite directions, more than ratings.",
        fig_7,
        (ML,),
    ),
    Exhibit(
        "Fig. 9",
        "pairs of items by the truth",
        "Which of the two metrics orders items as the truth does, and whether Lemma 3 says so.",
        fig_9,
        (CM,),
    ),
    Exhibit(
        "Fig. 10",
        "what being rated depends on",
        "Whether users rate what they like, or what the item is.",
        fig_10,
        (CM,),
    ),
    Exhibit(
        "Fig. 11",
        "how the data are split",
        "Observed and true evaluation share their training data.",
        fig_11,
        KNOWN,
    ),
    Exhibit(
        "Fig. 12",
        "systems as observed",
        "Metrics of hits and of false positives disagree about systems.",
        fig_12,
        ALL,
    ),
    Exhibit(
        "Fig. 13", "systems by the truth", "With unbiased test data they agree.", fig_13, KNOWN
    ),
    Exhibit(
        "Fig. 14",
        "observed and true",
        "Which metrics keep the true order of systems.",
        fig_14,
        KNOWN,
    ),
    Exhibit(
        "Fig. 15",
        "popularity and relevance",
        "Whether popular items are the ones that users like.",
        fig_15,
        KNOWN,
    ),
    Exhibit(
        "Fig. 16",
        "popularity against relevance",
        "Familiarity dealt anew, most to what is "
        "liked least: now metrics of false positives are right.",
        fig_16,
        (CM,),
        anywhere=False,
    ),
    Exhibit(
        "Fig. 16",
        "popularity against relevance, simulated",
        "The same in a built-in world where the worse items are the more popular.",
        fig_16,
    ),
    Exhibit(
        "Fig. 17",
        "further metrics",
        "nDCG and MRR do as precision and recall, nDCL and anti-MRR as anti-precision and fallout.",
        fig_17,
        KNOWN,
    ),
    Exhibit(
        "Fig. 18",
        "a split in time",
        "Metrics and their twins are related weakly once the test comes after training.",
        fig_18,
        (ML, "ml-100k"),
    ),
)


def stand_in(seed: int) -> Dataset:
    """Make a small shop, with ratings of random items."""
    made = world("shop", users=150, items=120, ratings=2500, seed=seed)
    return replace(made.dataset(random=0.1), name=STAND_IN)


STUDY = Study(
    name="mena2021",
    title="Popularity bias in false-positive metrics",
    reference="E. Mena-Maldonado, R. Cañamares, P. Castells, Y. Ren, M. Sanderson: Popularity Bias "
    "in False-positive Metrics for Recommender Systems Evaluation, ACM TOIS 39(3), 2021",
    data=(ML, "ml-100k", "cm100k", "yahoo-r3"),
    amounts={
        "folds": Amount(5, 2, "folds of the random split"),
        "users": Amount(1000, 300, "users of the worlds of the lemmas, with half as many items"),
        "inverted": Amount(600, 120, "users of the world where popularity goes against relevance"),
    },
    exhibits=EXHIBITS,
    claims=CLAIMS,
    stand_in=stand_in,
    options={"yahoo-r3": {"common": True}},
    sizes={"yahoo-r3": (5_400, 1_000, 129_179)},
)
