"""`unskew data info`: what a data set looks like."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

from unskew.cli import inputs, outputs
from unskew.cli.bundles import argument, bundle, option
from unskew.cli.options import INPUT, Liked, NamedFileOptions, TextOptions
from unskew.errors import SettingError
from unskew.report.text import counted


@bundle
class InfoOptions:
    """Which data set is described."""

    source: Annotated[str, argument("A named data set, a file of ratings, or released results.")]
    option: Annotated[
        list[str] | None,
        option(INPUT, "Option of a named data set, such as overlap=keep. Repeatable."),
    ]
    files: NamedFileOptions
    liked: Liked


def command(options: InfoOptions, output: TextOptions) -> None:
    """Describe a data set: sizes, density, Gini, liked share, times, true part.

    For a named data set, or results that authors released, it also shows where to get them.

    [bold]Examples[/bold]

      unskew data info ml-1m

      unskew data info valcarce2018_ml-1m_pvalues.csv

      unskew data info coat --option overlap=drop-from-test

      unskew data info ratings.csv --liked 4 --format json
    """
    from unskew.data import released
    from unskew.data.overview import summary

    figures = outputs.figures_of(output.figure, ("popularity",))
    is_file = Path(options.source).is_file()
    table = None if is_file else released.named(options.source)
    if table is not None:
        _show_released(table, options, output)
        return
    result = summary(_read(options))
    outputs.draw(figures, lambda _: result.figure())
    printout = outputs.Printout.of(
        result.table(),
        footer=result.notes,
        text=result.__str__,
        json=result.to_dict,
    )
    outputs.deliver(printout, output)


def _read(options: InfoOptions) -> Any:
    """Read a file, or a named data set and where to get it."""
    from unskew.data.catalog import read_name

    source, files = options.source, options.files
    settings = _settings(options.option)
    named = read_name(source)
    if named is None and settings:
        raise SettingError(f"--option is for named data sets, but {source} is a file")
    if named is not None and (files.columns is not None or files.duplicates is not None):
        raise SettingError(
            f"--columns and --duplicates are for files, but {source} is a named data set"
        )
    data = inputs.load_data(source, files, **settings)
    if named is not None:
        data = replace(data, notes=(*data.notes, *named[0].facts, named[0].source))
    return data if options.liked is None else replace(data, liked=options.liked)


def _show_released(table: Any, options: InfoOptions, output: TextOptions) -> None:
    """Print what is known of a table of released results."""
    import polars as pl

    from unskew.data import released
    from unskew.data.catalog import data_folder

    files = options.files
    refused = inputs.given(
        option=options.option,
        liked=options.liked,
        columns=files.columns,
        figure=output.figure,
        duplicates=files.duplicates,
        feedback=files.feedback,
    )
    if refused:
        raise SettingError(
            f"{options.source} holds results, not ratings: leave out --option, --liked, "
            "--columns, --duplicates, --feedback and --figure"
        )
    facts = released.describe(table, data_folder(files.data_dir))
    rows = counted(int(facts["rows"] or 0), "row")
    lines = [f"{facts['file']}: results that the authors released, {rows}"]
    lines.append(f"  from   {facts['source']}")
    if facts["authors_file"]:
        lines.append(f"  file   {facts['authors_file']}, which is also recognised under this name")
    place = facts["path"] or "no; put it into the folder `published` of the data folder"
    lines.append(f"  there  {place}")
    printout = outputs.Printout.of(
        pl.DataFrame([facts]), text=lambda: "\n".join(lines), json=lambda: facts
    )
    outputs.deliver(printout, output)


def _settings(texts: list[str] | None) -> dict[str, Any]:
    settings: dict[str, Any] = {}
    for text in texts or []:
        name, equals, value = text.partition("=")
        if not equals:
            raise SettingError(f"--option: write NAME=VALUE, such as overlap=keep, got {text!r}")
        settings[name] = {"true": True, "false": False}.get(value.lower(), value)
    return settings
