"""`unskew strata`: any metric by popularity of the items or by kind of user."""

from __future__ import annotations

from typing import Annotated, Any

from unskew.checks import MOST_DEPTH, choose
from unskew.cli import inputs, outputs
from unskew.cli.bundles import option
from unskew.cli.options import (
    AverageOptions,
    Bootstrap,
    ComputeOptions,
    FigureTableOptions,
    JudgedOptions,
    Level,
)
from unskew.cli.progress import progress
from unskew.cli.sources import exists
from unskew.errors import DataError

STRATA = "Strata"


def command(
    judged: JudgedOptions,
    average: AverageOptions,
    by: Annotated[
        str,
        option(
            STRATA,
            "How to form strata: popularity (of items), activity or mainstreamness (of users), "
            "or a file of groups: ids in the first column, groups in the second.",
            default="popularity",
        ),
    ],
    of: Annotated[
        str | None, option(STRATA, "Whether a file of groups holds ids of items or of users.")
    ],
    strata: Annotated[
        int | None, option(STRATA, "Number of strata. Default: 10.", min=1, max=MOST_DEPTH)
    ],
    equal: Annotated[
        str | None,
        option(STRATA, "Cut popularity strata to equal numbers of items, or of judgments."),
    ],
    head: Annotated[
        int,
        option(
            STRATA, "Number of first strata that form the head.", default=1, min=1, max=MOST_DEPTH
        ),
    ],
    heads: Annotated[
        bool,
        option(
            STRATA,
            "Print instead a row per system, with the share of the head.",
            "--heads",
            default=False,
        ),
    ],
    bootstrap: Bootstrap,
    level: Level,
    compute: ComputeOptions,
    output: FigureTableOptions,
) -> None:
    """Show where a score comes from: metrics by strata of items or users, and their shares.

    [bold]Examples[/bold]

      unskew strata -j test.csv -r a.csv -r b.csv --train train.csv -m nDCG@10 --liked 4

      unskew strata -j test.csv -r a.csv --train train.csv --by activity --strata 4 -m P@10

      unskew strata -j test.csv -r a.csv --by genres.csv -m P@10 --liked 4 --format json

    [bold]Columns[/bold]

      stratum: the first has the most popular items, or the most active or mainstream users

      value, low, high: the mean within the stratum, and its interval over users

      share: the part of the whole score that comes from the stratum; shares add up to 1
    """
    from unskew.unbiased import stratified

    figures = outputs.figures_of(output.figure, ("strata",))
    data = inputs.judge_files(judged, compute.seed)
    with progress("strata", output.quiet) as move:
        result = stratified.strata(
            data,
            inputs.metric_names(judged.metric) or stratified.METRICS,
            by=_groups(by),
            of=of,
            m=strata,
            equal=equal,
            head=head,
            bootstrap=bootstrap,
            level=level,
            progress=move,
            **vars(average),
            **vars(compute),
        )
    outputs.draw(figures, lambda _: result.figure())
    table = result.heads() if heads else result.table()
    printout = outputs.Printout.of(table, digits=output.digits, footer=result.footer())
    outputs.deliver(printout, output)


def _groups(by: str) -> Any:
    """Return the name of what strata go by, or the table of groups in a file."""
    from unskew.data.tables import read_table
    from unskew.unbiased.divisions import BY

    if by in BY:
        return by
    if not exists(by):
        choose("--by", by, (*BY, "FILE"))
    table = read_table(by)
    if table.frame.width < 2:
        raise DataError(f"{by}: a file of groups needs two columns, ids and groups")
    return table.frame.select(table.frame.columns[:2])
