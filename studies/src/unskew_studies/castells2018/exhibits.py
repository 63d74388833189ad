"""castells2018: its figures and tables again, and what each design does to every system."""

from __future__ import annotations

from collections.abc import Sequence

import polars as pl

from unskew.errors import UnskewError
from unskew.report.document import Block, Picture, Words
from unskew.report.tables import Table
from unskew_studies.castells2018 import measurements_worlds as worlds
from unskew_studies.castells2018.measurements import (
    AVERAGE_OF_ONE,
    CUTOFF,
    METRICS,
    factors,
    null_bins,
    null_flat,
    null_forced,
    null_random,
    null_slices,
    null_user_flat,
)
from unskew_studies.charts import Chart
from unskew_studies.lab import Lab, Measurement
from unskew_studies.paper import Exhibit

SHOWN = {
    "random": "random split",
    "flat": "flat test",
    "slices": "popularity bins",
    "forced": "forced judgments",
    "test-targets": "random split, test targets",
}
"""The designs of Fig. 2, in its order."""
OTHERS = {
    "forced-raw": "forced judgments, not thinned",
    "percentiles": "bins of items, trained on all",
    "judgment-bins": "popularity bins, trained on all",
}


def _gathered(
    lab: Lab, dataset_name: str, parts: Sequence[Measurement]
) -> tuple[pl.DataFrame, list[str]]:
    """Return the rows of all designs that these data allow, and why others are missing."""
    tables, missing = [], []
    for part in parts:
        try:
            tables.append(lab.table(part, dataset_name))
        except UnskewError as problem:
            missing.append(f"{part.description}: {problem}")
    if not tables:
        raise UnskewError("; ".join(missing))
    return pl.concat(tables, how="vertical_relaxed"), missing


def _missing(why: Sequence[str]) -> list[Block]:
    return [Words("", "warning", "Left out", tuple(why))] if why else []


def figure_2(lab: Lab, dataset_name: str) -> list[Block]:
    """Draw P@10 of every system under every design, on null data and as the data are."""
    table, missing = _gathered(
        lab, dataset_name, (null_random, null_flat, null_slices, null_forced)
    )
    table = table.filter(
        (pl.col("metric") == METRICS[0])
        & pl.col("design").is_in(list(SHOWN))
        & (pl.col("system") != AVERAGE_OF_ONE)
    )
    rows = []
    for design, title in SHOWN.items():
        for row in table.filter(pl.col("design") == design).iter_rows(named=True):
            at = {"design": title, "system": row["system"]}
            null = {"value": row["null_value"], "low": row["low"], "high": row["high"]}
            rows.append({**at, "data": "null", **null, "chance": row["null_random"]})
            if row["real"] is not None:
                real = {"value": row["real"], "low": None, "high": None}
                rows.append({**at, "data": "as they are", **real, "chance": row["real_random"]})
    frame = pl.DataFrame(rows, infer_schema_length=None)
    figure = Chart(
        frame,
        "system",
        "value",
        title=f"P@{CUTOFF} by design",
        by="data",
        panel="design",
        low="low",
        high="high",
        up=f"P@{CUTOFF}",
        notes=[f"{dataset_name}: relevance redrawn, and as it is; whiskers: 95 % over repeats"],
    ).bars()
    wide = frame.with_columns(pl.format("{}, {}", "design", "data").alias("design")).pivot(
        "system", index="design", values="value"
    )
    note = (
        "The paper shows these as bars without numbers. Forced judgments exist on null data only."
    )
    return [Picture(figure), Table(f"P@{CUTOFF}", wide, note=note), *_missing(missing)]


def null_ratios(lab: Lab, dataset_name: str) -> list[Block]:
    """Show the score of every system under every design, as a multiple of chance."""
    parts = (null_random, null_flat, null_slices, null_bins, null_forced, null_user_flat)
    table, missing = _gathered(lab, dataset_name, parts)
    table = table.with_columns(
        pl.col("design")
        .replace(SHOWN | OTHERS)
        .str.replace(r"^others (\w+)$", "user-flat targets, $1 others")
    )
    blocks: list[Block] = []
    for metric in METRICS:
        wide = table.filter(pl.col("metric") == metric).pivot(
            "system", index="design", values="ratio"
        )
        note = "1 for every system if the design is fair." if metric == METRICS[0] else ""
        blocks.append(Table(f"{metric} / chance, on null data", wide, digits=3, note=note))
    free = [SHOWN[name] for name in ("random", "flat", "slices")]
    shares = table.filter(
        (pl.col("metric") == METRICS[0])
        & pl.col("design").is_in(free)
        & ~pl.col("system").is_in(["random", AVERAGE_OF_ONE])
    )
    if shares.height:
        wide = shares.pivot("system", index="design", values="null_share")
        note = (
            "What null data gives of what a system has above chance on the data as they are; empty "
            "where it is not clearly above."
        )
        blocks.append(Table("Null share", wide, digits=2, note=note))
    return [*blocks, *_missing(missing)]


def factor_by_popularity(lab: Lab, dataset_name: str) -> list[Block]:
    """Draw the chance of targets to be judged, by popularity."""
    frame = lab.table(factors, dataset_name)
    figure = Chart(
        frame,
        "tenth",
        "over mean",
        by="split",
        title="Chance to be judged, over its mean",
        across="tenth of the items, most popular first",
        up="over the mean of all items",
        notes=[f"{dataset_name}; 1 everywhere if the design is fair to non-personalised systems"],
    ).lines()
    return [Picture(figure)]


def overlap(lab: Lab, _dataset_name: str) -> list[Block]:
    """Show what popularity scores with forced tests, by where the overlap goes."""
    out = {"to-test": "leaves training", "to-training": "leaves the test"}
    frame = lab.table(worlds.overlap).with_columns(
        pl.col("overlap").replace(out),
        (pl.col("ratio") - 1.96 * pl.col("error")).alias("low"),
        (pl.col("ratio") + 1.96 * pl.col("error")).alias("high"),
    )
    figure = Chart(
        frame,
        "test density",
        "ratio",
        by="overlap",
        low="low",
        high="high",
        log_x=True,
        zero=False,
        title="Popularity over chance, by where the overlap goes",
        across="density of the forced test",
        up="P@10 / chance",
        notes=["a world in which nobody has any taste; whiskers: 95 %"],
    ).lines()
    return [Picture(figure), Table("Forced tests", frame.drop("low", "high"))]


def online(lab: Lab, _dataset_name: str) -> list[Block]:
    """Show how often online tests are right, and what their judgments say of newcomers."""
    tests = lab.table(worlds.online).select("feedback", "test", "pairs", "right", "found", "wrong")
    again = lab.table(worlds.reused).select(
        "feedback", "judged", "error", "error_inside", "wrong", "wrong_inside"
    )
    return [
        Table(
            "Pairs of systems ordered correctly, detected, and ordered wrongly",
            tests,
            digits=2,
            note="30,000 impressions. Trendy: popular items draw clicks, liked or not.",
        ),
        Table(
            "A system left out, judged by what the test gathered",
            again,
            digits=3,
            note="Inside: among those that took part.",
        ),
    ]


EXHIBITS = (
    Exhibit(
        place="Fig. 2",
        title="offline results on null data and on the data as they are",
        shows="Where nobody has any taste all systems are equally good: any difference that a "
        "design shows comes from the design.",
        draw=figure_2,
        data=("ml-1m",),
    ),
    Exhibit(
        place="§7.2",
        title="what each design makes of every system",
        shows="How many times chance each system scores where there is nothing to find.",
        draw=null_ratios,
        data=("ml-1m",),
    ),
    Exhibit(
        place="Eqs. 3, 4",
        title="chance of a target to be judged, by popularity",
        shows="Why a random split favours popular items, and a flat test does so less.",
        draw=factor_by_popularity,
        data=("ml-1m",),
    ),
    Exhibit(
        place="§5.2.1",
        title="where judgments go that are both free and forced",
        shows="Removed from training, they cause a bias that does not fade with a sparser test.",
        draw=overlap,
    ),
    Exhibit(
        place="§5.3",
        title="online tests",
        shows="Free clicks compare systems fairly unless they follow fashion; judgments used "
        "again penalise newcomers.",
        draw=online,
    ),
)
