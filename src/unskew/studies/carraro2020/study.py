"""carraro2020: test sets drawn so that they look missing at random, held against random ratings."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import polars as pl

from unskew.data.dataset import Dataset
from unskew.report.document import Block, Picture, Words
from unskew.report.tables import Table
from unskew.stats.correlation import kendall_test
from unskew.studies.carraro2020 import measures as made
from unskew.studies.carraro2020.claims import BOTH, CLAIMS, NAMES
from unskew.studies.carraro2020.printed import (
    SETS,
    STATISTICS,
    SYSTEMS,
    TABLE_1,
    TABLE_2,
    TABLE_3,
    TABLE_4,
    TRUE,
    printed_means,
)
from unskew.studies.lab import Amount, Lab
from unskew.studies.paper import STAND_IN, Exhibit, Study
from unskew.worlds.worlds import world

RULES = {
    "counting as missed": made.experiment,
    "left out of the truth": made.without_pairs_in_training,
}
"""What may become of random ratings whose pair is in training too."""
DOUBLED = "regularisation: twice the λ of the paper, which its library counts twice."


def table_1(lab: Lab, on: str) -> list[Block]:
    """Show both parts in numbers, and whether users and items are equally frequent."""
    ours = lab.table(made.statistics, on).select("part", *STATISTICS)
    rows = ours.with_columns(source=pl.lit("ours"))
    if on in TABLE_1:
        printed = [
            {"part": part, **dict(zip(STATISTICS, map(float, values), strict=True))}
            for part, values in TABLE_1[on].items()
        ]
        theirs = pl.DataFrame(printed, schema=ours.schema, strict=False)
        rows = pl.concat([rows, theirs.with_columns(source=pl.lit("published"))])
    rows = rows.select("part", "source", *STATISTICS).sort("part", "source", maintain_order=True)
    note = f"{made.in_both(lab, on):,} pairs are in both parts."
    if on in TABLE_1:
        note += " The published numbers are cut off, not rounded."
    tests = lab.table(made.posteriors, on)
    return [
        Table("Both parts in numbers", rows, digits=3, note=note),
        Table(
            "Chi-square tests of equal frequency, and of users and items being independent", tests
        ),
    ]


def table_2(lab: Lab, on: str) -> list[Block]:
    """Show the true recall and the error of every test set, beside what is printed."""
    found = {rule: made.study_of(lab.table(what, on)) for rule, what in RULES.items()}
    grids = [
        Table(f"Recall@10, pairs in both parts {rule}", _beside_printed(one.table(), on))
        for rule, one in found.items()
    ]
    kept = found[next(iter(RULES))]
    chosen = (
        lab.table(made.experiment, on)
        .filter(pl.col("settings") != "")
        .select(pl.col("repetition") + 1, "system", "settings")
        .unique(maintain_order=True)
        .pivot(on="system", index="repetition", values="settings")
    )
    return [
        *grids,
        Picture(kept.figure()),
        *_noise(kept.table()["deviation"].drop_nulls().to_list()),
        Table("Settings chosen by recall on the validation part", chosen, note=DOUBLED),
    ]


def _noise(deviations: Sequence[float]) -> list[Block]:
    if not deviations:
        return []
    return [
        Words(
            f"The error of a single repetition has a standard deviation of {min(deviations):.0f} "
            f"to {max(deviations):.0f} points: errors much smaller than that are noise."
        )
    ]


def _beside_printed(table: pl.DataFrame, on: str) -> pl.DataFrame:
    """Return a row per system, below it what is printed; errors in percent."""
    rows = []
    for system in SYSTEMS:
        own = table.filter(system=system)
        cells = {
            NAMES[row["set"]]: _with_interval(row["error"], row["low"], row["high"])
            for row in own.iter_rows(named=True)
        }
        rows.append({"system": system, "source": "ours", TRUE: f"{own['true'][0]:.3f}", **cells})
        if on in TABLE_2:
            true, *printed = TABLE_2[on][system]
            cells = {
                NAMES[name]: _with_interval(value, None, None)
                for name, value in zip(SETS, printed, strict=True)
            }
            rows.append({"system": system, "source": "published", TRUE: f"{true:.3f}", **cells})
    return pl.DataFrame(rows)


def _with_interval(error: float | None, low: float | None, high: float | None) -> str:
    if error is None:
        return "–"
    text = f"{round(error):+d} %"
    if low is not None and high is not None:
        text += f" ({low:.0f} to {high:.0f})"
    return text.replace("-", "−")


def table_3(lab: Lab, on: str) -> list[Block]:
    """Show τ to the true order of all systems."""
    return _orders(lab, on, SYSTEMS, TABLE_3)


def table_4(lab: Lab, on: str) -> list[Block]:
    """Show τ to the true order of the systems without MF."""
    return _orders(lab, on, SYSTEMS[:-1], TABLE_4)


def _orders(
    lab: Lab, on: str, systems: Sequence[str], printed: Mapping[str, Sequence[float]]
) -> list[Block]:
    left_out = [one for one in SYSTEMS if one not in systems]
    columns: dict[str, list[float]] = {}
    if on in printed:
        columns["printed"] = list(printed[on])
        means = printed_means(on)
        true = [means[TRUE, one] for one in systems]
        tests = [kendall_test([means[name, one] for one in systems], true) for name in SETS]
        columns["from printed table 2"] = [one.value for one in tests]
        columns["its p"] = [one.p for one in tests]
    for rule, what in RULES.items():
        found = made.study_of(lab.table(what, on)).agreement(without=left_out)
        columns[f"ours, pairs in both {rule}"] = found["tau"].to_list()
        columns[f"p ({rule})"] = found["p"].to_list()
    grid = pl.DataFrame({"set": [NAMES[name] for name in SETS], **columns})
    return [
        Table("Kendall's τ to the true order", grid, digits=3),
        Words(
            "p: how often an order drawn at random would agree or disagree as much. With so few "
            "systems hardly any τ differs from 0: five systems reach p < .05 only at ±1, and four "
            "not at all."
        ),
    ]


def interventions(lab: Lab, on: str) -> list[Block]:
    """Show how far from equally frequent users and items are in every test set."""
    numbers = [f"{of}_{measure}_after" for of in ("items", "users") for measure in ("kl", "gini")]
    grid = (
        lab.table(made.drawn, on)
        .group_by("set", maintain_order=True)
        .agg(pl.col("kept").first().alias("ratings"), pl.col(numbers).mean())
        .rename({name: name.removesuffix("_after").replace("_", " ") for name in numbers})
        .with_columns(pl.col("set").replace(NAMES))
    )
    note = (
        "kl: divergence from uniform in nats; 0 = equally frequent. A smaller set is less even by "
        "chance alone: REG shows by how much."
    )
    return [Table("Users and items in the test sets, means over repetitions", grid, note=note)]


def stand_in(seed: int) -> Dataset:
    """Make a small shop of which some ratings are of randomly chosen items."""
    shop = world("shop", users=150, items=100, seed=seed)
    return replace(shop.dataset(random=0.2), name=STAND_IN)


EXHIBITS = (
    Exhibit(
        "Table 1",
        "Data",
        "What both parts are, and whether the random one looks random: the truth rests on that.",
        table_1,
        BOTH,
    ),
    Exhibit(
        "Table 2",
        "Errors of test sets",
        "How far the recall on each test set is from that on "
        "random ratings: what drawing a test set differently can mend.",
        table_2,
        BOTH,
    ),
    Exhibit(
        "Table 3",
        "Orders of systems",
        "Whether the test sets put the systems in the true order, "
        "which is what an evaluation is for.",
        table_3,
        BOTH,
    ),
    Exhibit(
        "Table 4",
        "Orders of systems without MF",
        "How much the order hangs on one system.",
        table_4,
        BOTH,
    ),
    Exhibit(
        "§4",
        "What interventions do to users and items",
        "Whether the test sets have users and "
        "items as random ratings would, which is what they are drawn for.",
        interventions,
        BOTH,
    ),
)

STUDY = Study(
    name="carraro2020",
    title="Debiased offline evaluation: a weighted-sampling approach",
    reference="D. Carraro, D. Bridge: Debiased Offline Evaluation of Recommender Systems: A "
    "Weighted-Sampling Approach, ACM SAC 2020",
    data=BOTH,
    amounts={
        "repetitions": Amount(10, 3, "random splits"),
        "neighbours": Amount(10, 2, "sizes of neighbourhoods to choose from"),
        "factors": Amount(10, 1, "numbers of factors to choose from"),
        "penalties": Amount(6, 2, "strengths of regularisation to choose from"),
    },
    exhibits=EXHIBITS,
    claims=CLAIMS,
    stand_in=stand_in,
    options={"yahoo-r3": {"common": True}},
    sizes={"yahoo-r3": (5_400, 1_000, 129_179)},
)
