"""`unskew data list`: what has a name, and whether it is there."""

from __future__ import annotations

from unskew.cli import outputs
from unskew.cli.options import DataDir, PrintOptions


def command(data_dir: DataDir, output: PrintOptions) -> None:
    """List the named data sets and the results that authors released, and which ones you have.

    [bold]Examples[/bold]

      unskew data list

      unskew data list --data-dir ~/data --format json
    """
    import polars as pl

    from unskew.data.catalog import data_folder, listing

    table = pl.DataFrame(listing(data_dir))
    footer = [f"data folder: {data_folder(data_dir)}"]
    printout = outputs.Printout.of(table.drop("licence"), table, footer=footer)
    outputs.deliver(printout, output)
