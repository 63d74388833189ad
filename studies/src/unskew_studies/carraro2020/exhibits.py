"""carraro2020: its tables again, ours beside the printed ones."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import polars as pl

from unskew.report.document import Block, Picture, Words
from unskew.report.tables import Table
from unskew.report.text import counted
from unskew.stats.correlation import kendall_test
from unskew_studies.carraro2020.checks import (
    study_of,
)
from unskew_studies.carraro2020.measurements import (
    experiment,
    in_both,
    posteriors,
    sampled_sets,
    statistics,
    without_pairs_in_training,
)
from unskew_studies.carraro2020.printed import (
    BOTH,
    NAMES,
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
from unskew_studies.lab import Lab
from unskew_studies.paper import Exhibit

RULES = {
    "counting as missed": experiment,
    "left out of the truth": without_pairs_in_training,
}
"""What may become of random ratings whose pair is in training too."""
DOUBLED = "regularisation: twice the λ of the paper, which its library counts twice."


def table_1(lab: Lab, dataset_name: str) -> list[Block]:
    """Show both parts in numbers, and whether users and items are equally frequent."""
    ours = lab.table(statistics, dataset_name).select("part", *STATISTICS)
    rows = ours.with_columns(source=pl.lit("ours"))
    if dataset_name in TABLE_1:
        printed = [
            {"part": part, **dict(zip(STATISTICS, map(float, values), strict=True))}
            for part, values in TABLE_1[dataset_name].items()
        ]
        theirs = pl.DataFrame(printed, schema=ours.schema, strict=False)
        rows = pl.concat([rows, theirs.with_columns(source=pl.lit("published"))])
    rows = rows.select("part", "source", *STATISTICS).sort("part", "source", maintain_order=True)
    note = f"{counted(in_both(lab, dataset_name), 'pair is', 'pairs are')} in both parts."
    if dataset_name in TABLE_1:
        note += " The published numbers are cut off, not rounded."
    tests = lab.table(posteriors, dataset_name)
    return [
        Table("Both parts in numbers", rows, digits=3, note=note),
        Table(
            "Chi-square tests of equal frequency, and of users and items being independent", tests
        ),
    ]


def table_2(lab: Lab, dataset_name: str) -> list[Block]:
    """Show the true recall and the error of every test set, beside what is printed."""
    studies = {
        rule: study_of(lab.table(what, dataset_name))["Recall@10"] for rule, what in RULES.items()
    }
    grids = [
        Table(f"Recall@10, pairs in both parts {rule}", _beside_printed(one.rows, dataset_name))
        for rule, one in studies.items()
    ]
    kept = studies[next(iter(RULES))]
    chosen = (
        lab.table(experiment, dataset_name)
        .filter(pl.col("settings") != "")
        .select(pl.col("repetition") + 1, "system", "settings")
        .unique(maintain_order=True)
        .pivot(on="system", index="repetition", values="settings")
    )
    return [
        *grids,
        Picture(kept.figure()),
        *_noise(kept.rows["deviation"].drop_nulls().to_list()),
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


def _beside_printed(table: pl.DataFrame, dataset_name: str) -> pl.DataFrame:
    """Return a row per system, below it what is printed; errors in percent."""
    rows = []
    for system in SYSTEMS:
        rows_of_system = table.filter(system=system)
        cells = {
            NAMES[row["design"]]: _with_interval(row["value"], row["low"], row["high"])
            for row in rows_of_system.iter_rows(named=True)
        }
        rows.append(
            {"system": system, "source": "ours", TRUE: f"{rows_of_system['truth'][0]:.3f}", **cells}
        )
        if dataset_name in TABLE_2:
            true, *printed = TABLE_2[dataset_name][system]
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


def table_3(lab: Lab, dataset_name: str) -> list[Block]:
    """Show τ to the true order of all systems."""
    return _orders(lab, dataset_name, SYSTEMS, TABLE_3)


def table_4(lab: Lab, dataset_name: str) -> list[Block]:
    """Show τ to the true order of the systems without MF."""
    return _orders(lab, dataset_name, SYSTEMS[:-1], TABLE_4)


def _orders(
    lab: Lab, dataset_name: str, systems: Sequence[str], printed: Mapping[str, Sequence[float]]
) -> list[Block]:
    columns: dict[str, list[float]] = {}
    if dataset_name in printed:
        columns["printed"] = list(printed[dataset_name])
        means = printed_means(dataset_name)
        true = [means[TRUE, one] for one in systems]
        tests = [kendall_test([means[name, one] for one in systems], true) for name in SETS]
        columns["from printed table 2"] = [one.value for one in tests]
        columns["its p"] = [one.p for one in tests]
    for rule, what in RULES.items():
        result = study_of(lab.table(what, dataset_name), systems)
        agreement = result.parts["agreement"]["Recall@10"].rows
        columns[f"ours, pairs in both {rule}"] = agreement["value"].to_list()
        columns[f"p ({rule})"] = agreement["p"].to_list()
    grid = pl.DataFrame({"set": [NAMES[name] for name in SETS], **columns})
    return [
        Table("Kendall's τ to the true order", grid, digits=3),
        Words(
            "p: how often an order drawn at random would agree or disagree as much. With so few "
            "systems hardly any τ differs from 0: five systems reach p < .05 only at ±1, and four "
            "not at all."
        ),
    ]


def interventions(lab: Lab, dataset_name: str) -> list[Block]:
    """Show how far from equally frequent users and items are in every test set."""
    numbers = [f"{of}_{measure}_after" for of in ("items", "users") for measure in ("kl", "gini")]
    grid = (
        lab.table(sampled_sets, dataset_name)
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


EXHIBITS = (
    Exhibit(
        place="Table 1",
        title="Data",
        shows="The two parts in numbers, and whether the random one looks random, because the "
        "truth depends on it.",
        draw=table_1,
        data=BOTH,
    ),
    Exhibit(
        place="Table 2",
        title="Errors of test sets",
        shows="How far the recall on each test set is from that on random ratings, and how much a "
        "differently drawn test set corrects.",
        draw=table_2,
        data=BOTH,
    ),
    Exhibit(
        place="Table 3",
        title="Orders of systems",
        shows="Whether the test sets put the systems in the true order, which is what an "
        "evaluation is for.",
        draw=table_3,
        data=BOTH,
    ),
    Exhibit(
        place="Table 4",
        title="Orders of systems without MF",
        shows="How much the order depends on one system.",
        draw=table_4,
        data=BOTH,
    ),
    Exhibit(
        place="§4",
        title="What interventions do to users and items",
        shows="Whether the test sets have users and items as random ratings would, which is what "
        "they are drawn for.",
        draw=interventions,
        data=BOTH,
    ),
)
