"""`unskew strata`: any metric by popularity of the items or by kind of user."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from unskew.cli import inputs
from unskew.cli.console import progress
from unskew.cli.options import Columns, Duplicates, Quiet
from unskew.errors import DataError, SettingError, choose

EXAMPLES = """
Tell where a score comes from: every metric within strata of items or users, and the share of the
score that each stratum gives.

[bold]Examples[/bold]

  unskew strata -j test.csv -r a.csv -r b.csv --train train.csv -m nDCG@10 --liked 4

  unskew strata -j test.csv -r a.csv --train train.csv --by activity --strata 4 -m P@10

  unskew strata -j test.csv -r a.csv --by genres.csv -m P@10 --liked 4 --format json

[bold]Columns[/bold]

  stratum: the first has the most popular items, or the most active or mainstream users

  value, low, high: the mean within the stratum, and its interval over users

  share: how much of the whole score comes from the stratum; shares add up to 1
"""


def strata(  # noqa: D103 - its help is EXAMPLES
    judgments: inputs.Judgments = None,
    run: inputs.Runs = None,
    metric: inputs.Metrics = None,
    by: Annotated[
        str,
        typer.Option(
            help="popularity of items, activity or mainstreamness of users, or a file of groups: "
            "ids in the first column, groups in the second."
        ),
    ] = "popularity",
    of: Annotated[
        str | None, typer.Option(help="Whose ids a file of groups holds: items or users.")
    ] = None,
    strata: Annotated[int | None, typer.Option(help="How many strata; 10 unless given.")] = None,
    equal: Annotated[
        str | None,
        typer.Option(help="Popularity strata of equal numbers of items, or of judgments."),
    ] = None,
    head: Annotated[int, typer.Option(help="How many of the first strata are the head.")] = 1,
    heads: Annotated[
        bool, typer.Option("--heads", help="A row per system instead: the share of the head.")
    ] = False,
    train: Annotated[
        Path | None, typer.Option(help="Training ratings: what popularity and activity go by.")
    ] = None,
    bootstrap: Annotated[
        int, typer.Option(help="Draws of users for the intervals; 0: none.")
    ] = 1_000,
    level: Annotated[float, typer.Option(help="Of the intervals.")] = 0.95,
    liked: inputs.Liked = None,
    above: inputs.Above = None,
    gain: inputs.Gain = None,
    loss: inputs.Loss = None,
    relevance: inputs.RelevanceOf = None,
    users: inputs.Users = "with-test",
    undefined: Annotated[
        str, typer.Option(help="Undefined values count as zero, or skip them.")
    ] = "zero",
    ties: inputs.Ties = None,
    seed: Annotated[int, typer.Option(help="Same seed, same numbers.")] = 0,
    depth: inputs.Depth = None,
    columns: Columns = None,
    duplicates: Duplicates = "error",
    figure: inputs.FigureFile = None,
    format: inputs.Format = "table",  # noqa: A002 - the word users expect
    digits: inputs.Digits = 4,
    threads: inputs.Threads = None,
    quiet: Quiet = False,
) -> None:
    from unskew.estimating import strata as library

    choose("format", format, inputs.FORMATS)
    if judgments is None or not run:
        raise SettingError("give --judgments and --run")
    tests, lists, trained = inputs.read_files(
        judgments, run, train, columns=columns, duplicates=duplicates, ties=ties, seed=seed
    )
    rules = inputs.relevance_of(liked, above, gain, loss, relevance)
    with progress("strata", quiet) as moved:
        result = library.strata(
            tests, lists, inputs.metric_names(metric) or library.METRICS, by=_groups(by), of=of,
            m=strata, equal=equal, head=head, train=trained, users=users, undefined=undefined,
            ties=ties, depth=depth, bootstrap=bootstrap, level=level, seed=seed, threads=threads,
            progress=moved, **rules,
        )  # fmt: skip
    if figure is not None:
        result.figure().save(figure)
    table = result.heads() if heads else result.table()
    inputs.show(table, table, format=format, digits=digits, footer=result.footer(), quiet=quiet)


def _groups(by: str) -> Any:
    """Return the name of what strata go by, or the table of groups in a file."""
    from unskew.data.readers import read_table
    from unskew.estimating.strata import BY

    if by in BY:
        return by
    if not Path(by).is_file():
        choose("--by", by, (*BY, "FILE"))
    table = read_table(by)
    if table.frame.width < 2:
        raise DataError(f"{by}: a file of groups needs two columns, ids and groups")
    return table.frame.select(table.frame.columns[:2])


strata.__doc__ = EXAMPLES
