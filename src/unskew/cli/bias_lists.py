"""`unskew bias lists`: how popular lists are, against what their users rated."""

from __future__ import annotations

from typing import Annotated

from unskew.checks import MOST_DEPTH
from unskew.cli import inputs, outputs
from unskew.cli.bundles import REQUIRED, bundle, option
from unskew.cli.options import (
    MEASURE,
    FileOptions,
    Judgments,
    Level,
    RelevanceOptions,
    Runs,
    Seed,
    TableOptions,
    Train,
)


@bundle
class ListPopularityOptions:
    """Ranked lists, the ratings that judge them, and the profiles of users."""

    judgments: Judgments = REQUIRED
    run: Runs = REQUIRED
    train: Train = REQUIRED
    files: FileOptions
    relevance: RelevanceOptions


def command(
    options: ListPopularityOptions,
    k: Annotated[
        int, option(MEASURE, "Lists are cut here.", "-k", default=10, min=1, max=MOST_DEPTH)
    ],
    by: Annotated[
        str,
        option(
            MEASURE,
            "Groups of users: taste (niche, diverse, blockbuster), activity, popularity, time, "
            "FILE:COLUMN of a file of users, or none.",
            default="taste",
            metavar="NAME|FILE:COLUMN",
        ),
    ],
    level: Level,
    seed: Seed,
    output: TableOptions,
) -> None:
    """Measure how popular lists are, against the users' training ratings and against chance.

    Beside each value: its interval over users, what a random order of the items gives, and its null
    value, what lists would show that match the taste of their users. Measures: PopLift,
    PopPercentile, PercentileShift, TailShift, UPD, ExcessUPD, PopRSP, PopREO, Gini.

    [bold]Examples[/bold]

      unskew bias lists -j test.csv -r mine.csv -r theirs.csv --train train.csv --liked 4

      unskew bias lists -j test.csv -r mine.csv --train train.csv -k 20 --by activity --format json

      unskew bias lists -j test.csv -r mine.csv --train train.csv --by users.csv:country -o table.md
    """
    from unskew.bias.listed_popularity import list_popularity
    from unskew.judging.judged import judge

    files = inputs.read_judged(
        options.judgments, options.run, options.train, options.files, seed=seed
    )
    data = judge(**files, seed=seed, **inputs.relevance_settings(options.relevance))
    result = list_popularity(data, k=k, by=None if by == "none" else by, level=level, seed=seed)
    outputs.deliver(outputs.Printout.of_result(result, output.digits, json=result.to_dict), output)
