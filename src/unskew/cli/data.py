"""`unskew data`: named data sets: list them, get them, look at them."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated, Any

import typer

from unskew.checks import choose
from unskew.cli import inputs, outputs
from unskew.cli.command import App
from unskew.cli.console import messages, output, progress
from unskew.cli.options import (
    INPUT,
    MEASURE,
    Columns,
    DataDir,
    Duplicates,
    FigureFile,
    Format,
    Quiet,
    TableFile,
    TextFormat,
)
from unskew.cli.options import option as declared
from unskew.errors import SettingError

data_app = App(help="Named data sets, and what is in a file.")


@data_app.command("list")
def list_(
    data_dir: DataDir = None,
    to: TableFile = None,
    format: Format = "table",  # noqa: A002 - the word users expect
    quiet: Quiet = False,
) -> None:
    """List what has a name, and whether it is there: data sets, and results that authors released.

    [bold]Examples[/bold]

      unskew data list

      unskew data list --data-dir ~/data --format json
    """
    import polars as pl

    from unskew.data.catalog import data_folder, listing

    choose("format", format, outputs.FORMATS)
    table = pl.DataFrame(listing(data_dir))
    footer = [f"data folder: {data_folder(data_dir)}"]
    outputs.deliver(
        outputs.Printout.of(table.drop("licence"), table, footer=footer), to, format, quiet
    )


@data_app.command("get")
def get(
    name: Annotated[str, typer.Argument(help="A data set, see: unskew data list.")],
    data_dir: DataDir = None,
    yes: Annotated[bool, typer.Option("--yes", help="Accept the licence without asking.")] = False,
    quiet: Quiet = False,
) -> None:
    """Download a data set: checked, unpacked, whole or not at all.

    What could be checked is printed, and kept in the folder's download.json: a checksum where one
    is published, else the size and the checksums inside the archive.

    [bold]Examples[/bold]

      unskew data get ml-1m

      unskew data get coat --data-dir ~/data --yes
    """
    from unskew.data import catalog

    entry = catalog.named(name)
    there = catalog.is_there(entry, data_dir)
    if entry.archive is not None and not there:
        size = "" if entry.size is None else f", {entry.size / 1e6:,.0f} MB"
        messages().print(
            f"{entry.title}{size}\n  from     {entry.archive}\n  page     {entry.address}\n"
            f"  licence  {entry.licence}",
            markup=False,
        )
        _accept(yes)
    with progress(f"getting {entry.name}", quiet) as moved:
        folder = catalog.get(name, data_dir, progress=moved)
    said = "is there already" if there else "is there now"
    output().print(f"{entry.title} {said}: {folder}", markup=False, soft_wrap=True)
    receipt = catalog.receipt(folder)
    if receipt is not None:
        output().print(str(receipt), markup=False, soft_wrap=True)


def _accept(yes: bool) -> None:
    if yes:
        return
    if not sys.stdin.isatty():
        raise SettingError("say --yes to accept the licence")
    typer.confirm("Do you accept the licence?", abort=True, err=True)


@data_app.command("info")
def info(
    source: Annotated[
        str, typer.Argument(help="A named data set, a file of ratings, or released results.")
    ],
    data_dir: DataDir = None,
    option: Annotated[
        list[str] | None,
        declared(INPUT, "Of a named data set, such as overlap=keep. Repeatable.", "--option"),
    ] = None,
    columns: Columns = None,
    duplicates: Duplicates = "error",
    liked: Annotated[float | None, declared(MEASURE, "The smallest rating that is liked.")] = None,
    to: TableFile = None,
    figure: FigureFile = None,
    format: TextFormat = "text",  # noqa: A002 - the word users expect
    quiet: Quiet = False,
) -> None:
    """Tell what a data set looks like: sizes, density, Gini, liked share, times, random part.

    Of a named data set and of results that authors released it also tells where to get them.

    [bold]Examples[/bold]

      unskew data info ml-1m

      unskew data info valcarce2018_ml-1m_pvalues.csv

      unskew data info coat --option overlap=drop-from-test

      unskew data info ratings.csv --liked 4 --format json
    """
    from dataclasses import replace

    from unskew.data import released
    from unskew.data.catalog import data_folder, read_name
    from unskew.data.overview import summary

    choose("format", format, outputs.TEXT_FORMATS)
    figures = outputs.figures_of(figure, ("popularity",))
    settings = _options(option)
    table = None if Path(source).is_file() else released.named(source)
    if table is not None:
        given = [option, liked, columns, figure, None if duplicates == "error" else duplicates]
        if any(one is not None for one in given):
            raise SettingError(
                f"{source} holds results, no ratings: leave out --option, --liked, --columns, "
                "--duplicates and --figure"
            )
        told = released.describe(table, data_folder(data_dir))
        outputs.deliver(_of_released(told), to, format, quiet)
        return
    meant = read_name(source)
    if meant is not None:
        if columns is not None or duplicates != "error":
            raise SettingError(f"--columns and --duplicates are for files, and {source} is named")
    elif settings:
        raise SettingError(f"--option is for named data sets, and {source} is a file")
    data = inputs.loaded(source, data_dir, columns, duplicates, **settings)
    if meant is not None:
        data = replace(data, notes=(*data.notes, meant[0].source))
    found = summary(data if liked is None else replace(data, liked=liked))
    outputs.draw(figures, lambda _: found.figure())
    printout = outputs.Printout.of(
        found.table(),
        footer=found.notes,
        text=lambda: str(found),
        json=found.to_dict,
    )
    outputs.deliver(printout, to, format, quiet)


def _of_released(told: dict[str, str | int | None]) -> outputs.Printout:
    """Return what is told of a table of released results."""
    import polars as pl

    lines = [f"{told['file']}: results that authors released, {told['rows']} rows"]
    lines.append(f"  from   {told['source']}")
    if told["authors_file"]:
        lines.append(f"  file   {told['authors_file']}, which is recognised under this name too")
    place = told["path"] or "no; put it into the folder published of the data folder"
    lines.append(f"  there  {place}")
    return outputs.Printout.of(
        pl.DataFrame([told]), text=lambda: "\n".join(lines), json=lambda: told
    )


def _options(texts: list[str] | None) -> dict[str, Any]:
    settings: dict[str, Any] = {}
    for text in texts or []:
        name, equals, value = text.partition("=")
        if not equals:
            raise SettingError(f"--option: write NAME=VALUE, such as overlap=keep, got {text!r}")
        settings[name] = {"true": True, "false": False}.get(value.lower(), value)
    return settings
