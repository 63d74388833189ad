"""`unskew strata`: any metric by popularity of the items or by kind of user."""

from __future__ import annotations

from typing import Annotated, Any

from unskew.checks import MOST_DEPTH, MOST_DRAWS, choose
from unskew.cli import inputs, outputs
from unskew.cli.console import progress
from unskew.cli.options import (
    Above,
    Columns,
    Depth,
    Digits,
    Duplicates,
    FigureFile,
    Format,
    Gain,
    Judgments,
    Liked,
    Loss,
    Metrics,
    Quiet,
    RelevanceOf,
    Runs,
    Seed,
    TableFile,
    Threads,
    Ties,
    Train,
    Undefined,
    Users,
    at_least,
    exists,
    option,
)
from unskew.errors import DataError, SettingError

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

STRATA = "Strata"


def strata(  # noqa: D103 - its help is EXAMPLES
    judgments: Judgments = None,
    run: Runs = None,
    train: Train = None,
    columns: Columns = None,
    duplicates: Duplicates = "error",
    metric: Metrics = None,
    liked: Liked = None,
    above: Above = None,
    gain: Gain = None,
    loss: Loss = None,
    relevance: RelevanceOf = None,
    depth: Depth = None,
    users: Users = "with-test",
    undefined: Undefined = "zero",
    ties: Ties = None,
    by: Annotated[
        str,
        option(
            STRATA,
            "popularity of items, activity or mainstreamness of users, or a file of groups: ids "
            "in the first column, groups in the second.",
        ),
    ] = "popularity",
    of: Annotated[
        str | None, option(STRATA, "Whose ids a file of groups holds: items or users.")
    ] = None,
    strata: Annotated[
        int | None,
        option(STRATA, "How many strata; 10 unless given.", **at_least(1, MOST_DEPTH)),
    ] = None,
    equal: Annotated[
        str | None,
        option(STRATA, "Popularity strata of equal numbers of items, or of judgments."),
    ] = None,
    head: Annotated[
        int, option(STRATA, "How many of the first strata are the head.", **at_least(1, MOST_DEPTH))
    ] = 1,
    heads: Annotated[
        bool, option(STRATA, "A row per system instead: the share of the head.", "--heads")
    ] = False,
    bootstrap: Annotated[
        int,
        option(STRATA, "Draws of users for the intervals; 0: none.", **at_least(0, MOST_DRAWS)),
    ] = 1_000,
    level: Annotated[float, option(STRATA, "Of the intervals.")] = 0.95,
    seed: Seed = 0,
    threads: Threads = None,
    to: TableFile = None,
    figure: FigureFile = None,
    format: Format = "table",  # noqa: A002 - the word users expect
    digits: Digits = 4,
    quiet: Quiet = False,
) -> None:
    from unskew.unbiased import stratified as library

    choose("format", format, outputs.FORMATS)
    figures = outputs.figures_of(figure, ("strata",))
    if judgments is None or not run:
        raise SettingError("give --judgments and --run")
    tests, lists, trained = inputs.read_files(
        judgments, run, train, columns=columns, duplicates=duplicates, ties=ties, seed=seed
    )
    rules = inputs.relevance_of(liked, above, gain, loss, relevance)
    with progress("strata", quiet) as moved:
        result = library.strata(
            tests,
            lists,
            inputs.metric_names(metric) or library.METRICS,
            by=_groups(by),
            of=of,
            m=strata,
            equal=equal,
            head=head,
            train=trained,
            users=users,
            undefined=undefined,
            ties=ties,
            depth=depth,
            bootstrap=bootstrap,
            level=level,
            seed=seed,
            threads=threads,
            progress=moved,
            **rules,
        )
    outputs.draw(figures, lambda _: result.figure())
    table = result.heads() if heads else result.table()
    printout = outputs.Printout.of(table, digits=digits, footer=result.footer())
    outputs.deliver(printout, to, format, quiet)


def _groups(by: str) -> Any:
    """Return the name of what strata go by, or the table of groups in a file."""
    from unskew.data.readers import read_table
    from unskew.unbiased.stratified import BY

    if by in BY:
        return by
    if not exists(by):
        choose("--by", by, (*BY, "FILE"))
    table = read_table(by)
    if table.frame.width < 2:
        raise DataError(f"{by}: a file of groups needs two columns, ids and groups")
    return table.frame.select(table.frame.columns[:2])


strata.__doc__ = EXAMPLES
