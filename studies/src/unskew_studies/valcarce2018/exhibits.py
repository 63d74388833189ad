"""valcarce2018: its tables and figures again, from released results and from our systems."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import polars as pl

from unskew.report.charts import Figure
from unskew.report.document import Block, Picture, Words
from unskew.report.tables import Table
from unskew.stats.agreement.power import discriminative_power
from unskew_studies.charts import Chart
from unskew_studies.lab import Lab, MissingDataError
from unskew_studies.paper import Exhibit
from unskew_studies.presets import preset
from unskew_studies.valcarce2018.measurements import (
    OurResults,
    ReleasedResults,
    Results,
    needs_depth,
    powers,
    pvalues_file,
    results_file,
    sizes,
    sparsity,
    unordered_pairs,
)
from unskew_studies.valcarce2018.printed import (
    FIGURE_1,
    FIGURE_5,
    SETS,
    SEVEN,
    TABLE_2,
    TABLE_3,
    as_pairs,
    cutoffs,
)

ML = "ml-1m"
NDCG = cutoffs("nDCG")
PRINTED = "as printed"
CURVE = 0.005
"""The p down to which p-value curves are shown: further ones are next to 0."""

Draw = Callable[[Lab, str], Sequence[Block]]


def _tables(lab: Lab, dataset_name: str) -> Sequence[Block]:
    row = lab.table(sizes, dataset_name).row(0, named=True)
    names = ("users", "items", "ratings", "density", "gini")
    columns = {"": list(names), "here": [float(row[name]) for name in names]}
    if dataset_name in TABLE_2:
        columns[PRINTED] = list(map(float, TABLE_2[dataset_name]))
    return [
        Table(f"Table 2 ({dataset_name}): density in %, Gini over items", pl.DataFrame(columns))
    ]


def _systems(lab: Lab, dataset_name: str) -> Sequence[Block]:
    settings_of = {name: one.settings for name, one in preset("valcarce2018").items()}
    shown = {"nDCG": pl.col("ndcg"), "P@10": pl.col("P_10")}
    settings = pl.col("system").replace_strict(settings_of).alias("settings")
    ours = OurResults(lab, dataset_name).means.select("system", settings, **shown)
    try:
        theirs = {f"released {name}": column for name, column in shown.items()}
        ours = ours.join(
            ReleasedResults(lab, dataset_name).means.select("system", **theirs), on="system"
        )
    except MissingDataError:
        pass  # ours alone
    ours = ours.sort("nDCG", descending=True)
    note = (
        "The paper publishes no settings. Recovered ones were fitted to the released values on "
        "MovieLens 1M."
    )
    return [Table("The 21 systems", ours, note=note)]


def _taus(
    results: Results,
    here: str,
    columns: Mapping[str, str],
    printed: Sequence[Sequence[float]] | None,
    title: str,
) -> Sequence[Block]:
    """Draw a matrix of τ, beside the printed one where there is one."""
    taus = results.taus(columns)
    parts = [taus.select("a", "b", "tau", panel=pl.lit(here))]
    if printed is not None:
        parts.append(as_pairs(printed, list(columns)).with_columns(panel=pl.lit(PRINTED)))
    frame = pl.concat(parts)
    blocks: list[Block] = [
        Picture(Chart(frame, "b", "a", title=title, panel="panel", columns=1).matrix("tau"))
    ]
    if printed is not None:
        both = taus.join(as_pairs(printed, list(columns)), on=["a", "b"], suffix="_printed")
        gap = (both["tau"] - both["tau_printed"]).abs()
        same = int((gap <= 0.005 + 1e-9).sum())
        blocks.append(Words(f"{same} of {both.height} values are as printed to two decimals."))
    if taus["low"].drop_nulls().len():
        table = unordered_pairs(taus).sort("tau").head(5)
        blocks.append(Table("The smallest τ, with intervals over users (95 %)", table))
    return blocks


def _curve(table: pl.DataFrame, columns: Mapping[str, str], title: str, across: str) -> Figure:
    """Draw τ over what is taken away, a line per metric or cutoff."""
    names = {column: name for name, column in columns.items()}
    part = table.filter(pl.col("metric").is_in(list(names)))
    frame = part.select(
        pl.col("metric").replace_strict(names).alias("metric"),
        removed=(100 * (1 - pl.col("share"))).round(6),
        tau="tau",
    )
    order = pl.DataFrame({"metric": list(columns), "place": range(len(columns))})
    frame = frame.join(order, on="metric").sort("place", "removed").drop("place")
    return Chart(
        frame,
        "removed",
        "tau",
        title=title,
        by="metric",
        across=across,
        up="τ with the full test set",
        zero=False,
    ).lines()


def _robustness(
    table: pl.DataFrame, columns: Mapping[str, str], title: str, of: str
) -> list[Block]:
    names = {column: name for name, column in columns.items()}
    part = table.filter((pl.col("share") < 1) & pl.col("metric").is_in(list(names)))
    means = part.group_by("metric", maintain_order=True).agg(
        pl.col("tau").mean().alias("mean τ"), pl.col("tau").min().alias("least τ")
    )
    means = means.with_columns(pl.col("metric").replace_strict(names))
    return [
        Picture(_curve(table, columns, title, f"{of} taken away (%)")),
        Table("τ averaged over what is left", means.sort("mean τ", descending=True)),
    ]


def _power(results: Results, columns: Mapping[str, str], title: str) -> list[Block]:
    """Draw p-value curves, over ordered pairs as the paper, and list DP."""
    chosen = results.pvalues.select("a", "b", **{name: pl.col(c) for name, c in columns.items()})
    power = discriminative_power(chosen, ordered=True)
    curves = power.parts["curve"].rows.rename({"value": "p"})
    last = curves.filter(pl.col("p") >= CURVE)["rank"].max() or curves["rank"].max()
    curves = curves.filter(pl.col("rank") <= last)
    figure = Chart(
        curves,
        "rank",
        "p",
        title=title,
        by="metric",
        up="p",
        across="pairs, the largest p first",
        notes=power.footer(),
    ).lines()
    once = discriminative_power(chosen).rows.select(
        "metric", pl.col("value").alias("DP as defined")
    )
    table = power.rows.select("metric", pl.col("value").alias("DP"), "median_p", "ratio")
    table = table.join(once, on="metric")
    note = "DP adds up ordered pairs, as the paper's table does; as defined, each pair counts once."
    return [Picture(figure), Table("Discriminative power: the lower the better", table, note=note)]


def _table_3(results: Results, here: str, name: str) -> Sequence[Block]:
    twice, once = (powers(results.pvalues, SEVEN, ordered=ordered) for ordered in (True, False))
    columns: dict[str, Sequence[object]] = {"metric": list(SEVEN)}
    if name in TABLE_3:
        columns[PRINTED] = TABLE_3[name]
    columns |= {here: list(twice.values()), "as defined": list(once.values())}
    note = "Printed values add up 420 ordered pairs; as defined, each pair counts once."
    return [Table("DP (the lower the better)", pl.DataFrame(columns), digits=2, note=note)]


def _on_released(draw: Callable[[ReleasedResults], Sequence[Block]], name: str = ML) -> Draw:
    return lambda lab, _dataset_name: draw(ReleasedResults(lab, name))


def _on_ours(draw: Callable[[OurResults], Sequence[Block]], *, deep: bool = False) -> Draw:
    def draw_ours(lab: Lab, dataset_name: str) -> Sequence[Block]:
        if deep:
            needs_depth(lab, dataset_name)
        return draw(OurResults(lab, dataset_name))

    return draw_ours


def _sparse(columns: Mapping[str, str], title: str) -> Callable[[OurResults], Sequence[Block]]:
    def draw(ours: OurResults) -> Sequence[Block]:
        return _robustness(
            ours.lab.table(sparsity, ours.dataset_name), columns, title, "test ratings"
        )

    return draw


def _popular(columns: Mapping[str, str], title: str) -> Callable[[Results], Sequence[Block]]:
    return lambda results: _robustness(results.popularity, columns, title, "most popular items")


def _figure_1_of_ours(ours: OurResults) -> Sequence[Block]:
    printed = FIGURE_1 if ours.dataset_name == ML else None
    return _taus(ours, "our systems", NDCG, printed, "τ between cutoffs of nDCG")


def _figure_5_of_ours(ours: OurResults) -> Sequence[Block]:
    return _taus(ours, "our systems", SEVEN, FIGURE_5.get(ours.dataset_name), "τ between metrics")


def _figure_5_as_released(of: ReleasedResults) -> Sequence[Block]:
    return _taus(of, "released scores", SEVEN, FIGURE_5[of.name], "τ between metrics")


def _released(letter: str, name: str) -> tuple[Exhibit, ...]:
    """Return what the released results of a data set show of the seven metrics."""
    results, pvalues, of = (results_file(name),), (pvalues_file(name),), f"released, {SETS[name]}"
    popular = _popular(SEVEN, "Metrics without popular items")
    return (
        Exhibit(
            place=f"Fig. 5{letter}",
            title=f"metrics, {of}",
            shows=FIG_5,
            draw=_on_released(_figure_5_as_released, name),
            files=results,
        ),
        Exhibit(
            place=f"Fig. 7{letter}",
            title=f"metrics under popularity cuts, {of}",
            shows=FIG_7,
            draw=_on_released(popular, name),
            files=results,
        ),
        Exhibit(
            place=f"Fig. 8{letter}",
            title=f"discriminative power of metrics, {of}",
            shows=FIG_8,
            draw=_on_released(lambda results: _power(results, SEVEN, "p-values by metric"), name),
            files=pvalues,
        ),
        Exhibit(
            place="Table 3",
            title=f"DP, {of}",
            shows=TAB_3,
            draw=_on_released(lambda results: _table_3(results, "released p-values", name), name),
            files=pvalues,
        ),
    )


RESULTS, PVALUES = (results_file(ML),), (pvalues_file(ML),)
DATA = tuple(SETS)
FIG_1 = (
    "How alike the cutoffs of nDCG order the systems: where τ is high, the choice hardly counts."
)
FIG_2 = "How far each cutoff of nDCG keeps the order of systems when test ratings are taken away."
FIG_3 = "How far each cutoff of nDCG keeps the order of systems without the most popular items."
FIG_4 = "How surely each cutoff of nDCG tells systems apart: the closer to the origin, the better."
FIG_5 = "How alike the seven metrics order the systems: low τ means that the choice decides."
FIG_6 = "How far each metric keeps the order of systems when test ratings are taken away."
FIG_7 = "How far each metric keeps the order of systems without the most popular items."
FIG_8 = "How surely each metric tells systems apart: the closer to the origin, the better."
TAB_3 = "How surely each metric tells systems apart, in one number: the sum of all p-values."

EXHIBITS = (
    Exhibit(
        place="Table 2",
        title="data",
        shows="How large and how skewed the data are.",
        draw=_tables,
        data=DATA,
    ),
    Exhibit(
        place="Systems",
        title="the 21 systems here and as released",
        shows="How strong each system is: metrics can be compared only on systems that differ.",
        draw=_systems,
        data=DATA,
    ),
    Exhibit(
        place="Fig. 1",
        title="cutoffs of nDCG, released",
        shows=FIG_1,
        draw=_on_released(
            lambda results: _taus(
                results, "released scores", NDCG, FIGURE_1, "τ between cutoffs of nDCG"
            )
        ),
        files=RESULTS,
    ),
    Exhibit(
        place="Fig. 1",
        title="cutoffs of nDCG, our systems",
        shows=FIG_1,
        draw=_on_ours(_figure_1_of_ours, deep=True),
        data=DATA,
    ),
    Exhibit(
        place="Fig. 2",
        title="cutoffs under sparsity, our systems",
        shows=FIG_2,
        draw=_on_ours(_sparse(NDCG, "Cutoffs of nDCG under sparsity"), deep=True),
        data=DATA,
    ),
    Exhibit(
        place="Fig. 3",
        title="cutoffs under popularity cuts, released",
        shows=FIG_3,
        draw=_on_released(_popular(NDCG, "Cutoffs of nDCG without popular items")),
        files=RESULTS,
    ),
    Exhibit(
        place="Fig. 3",
        title="cutoffs under popularity cuts, our systems",
        shows=FIG_3,
        draw=_on_ours(_popular(NDCG, "Cutoffs of nDCG without popular items"), deep=True),
        data=DATA,
    ),
    Exhibit(
        place="Fig. 4",
        title="discriminative power of cutoffs, released",
        shows=FIG_4,
        draw=_on_released(lambda results: _power(results, NDCG, "p-values by cutoff of nDCG")),
        files=PVALUES,
    ),
    Exhibit(
        place="Fig. 4",
        title="discriminative power of cutoffs, our systems",
        shows=FIG_4,
        draw=_on_ours(
            lambda results: _power(results, NDCG, "p-values by cutoff of nDCG"), deep=True
        ),
        data=DATA,
    ),
    *(one for letter, name in zip("abc", SETS, strict=True) for one in _released(letter, name)),
    Exhibit(
        place="Fig. 5",
        title="metrics, our systems",
        shows=FIG_5,
        draw=_on_ours(_figure_5_of_ours),
        data=DATA,
    ),
    Exhibit(
        place="Fig. 6",
        title="metrics under sparsity, our systems",
        shows=FIG_6,
        draw=_on_ours(_sparse(SEVEN, "Metrics under sparsity")),
        data=DATA,
    ),
    Exhibit(
        place="Fig. 7",
        title="metrics under popularity cuts, our systems",
        shows=FIG_7,
        draw=_on_ours(_popular(SEVEN, "Metrics without popular items")),
        data=DATA,
    ),
    Exhibit(
        place="Fig. 8",
        title="discriminative power of metrics, our systems",
        shows=FIG_8,
        draw=_on_ours(lambda results: _power(results, SEVEN, "p-values by metric")),
        data=DATA,
    ),
    Exhibit(
        place="Table 3",
        title="DP, our systems",
        shows=TAB_3,
        draw=_on_ours(lambda ours: _table_3(ours, "our systems", ours.dataset_name)),
        data=DATA,
    ),
)
