"""`unskew data filter`: what filters leave of ratings or of an event log, as a file."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from unskew.cli import formats, inputs, outputs
from unskew.cli.bundles import REQUIRED, bundle, option
from unskew.cli.options import OUTPUT, EventLog, Filters, NamedFileOptions, Quiet, RatingsArgument
from unskew.errors import SettingError

ENDINGS = {".csv": "csv", ".parquet": "parquet"}


@bundle
class FilterOptions:
    """What is filtered, and how."""

    source: RatingsArgument
    files: NamedFileOptions
    filters: Filters
    event_log: EventLog


def command(
    options: FilterOptions,
    output: Annotated[
        Path,
        option(
            OUTPUT,
            "File to write; its ending selects the format: .csv or .parquet.",
            "--output",
            "-o",
            metavar="FILE",
            default=REQUIRED,
        ),
    ],
    quiet: Quiet,
) -> None:
    """Filter ratings or an event log, and say what each filter removed.

    [bold]Examples[/bold]

      unskew data filter ratings.csv --filter k-core:users=5,items=5 -o core.parquet

      unskew data filter plays.tsv --event-log --columns user=0,time=1,item=2 --filter
      drop-repeats:within=60 --filter max-counts:users=1000 -o clean.csv

    [bold]Filters[/bold]

      k-core:users=5,items=5,rounds=1: users and items with enough rows

      max-counts:users=1000: without users (robots) or items with more rows

      popular-items:number=1000: the items with the most rows

      between:start=2024-01-01,end=2024-07-01: from one moment up to another

      threshold:least=4,binary=true: rows from a value up, as implicit feedback

      drop-repeats:which=consecutive,within=60: an event log without repeats

      sample-users:share=0.1,seed=7: all rows of users drawn at random
    """
    from unskew.data.events import Events
    from unskew.data.filters import apply_filters
    from unskew.engine.files import write_table

    if str(output) == formats.STANDARD_OUTPUT:
        raise SettingError(f"--output -: name a file that ends in {', '.join(ENDINGS)}")
    formats.check_file(output, ENDINGS)
    chosen = inputs.read_filters(options.filters)
    if not chosen:
        raise SettingError("name at least one filter, such as --filter k-core:users=5,items=5")
    read = inputs.read_log if options.event_log else inputs.read_rating_file
    kept = apply_filters(read(options.source, options.files), chosen)
    table = kept.to_polars() if isinstance(kept, Events) else kept.to_file_table()
    write_table(table, output, ENDINGS[output.suffix.lower()])
    if quiet:
        return
    for step in kept.steps:
        outputs.say(str(step))
    outputs.say(f"written to {output}", dim=True)
    for line in kept.notes:
        outputs.note(line)
