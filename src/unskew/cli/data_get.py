"""`unskew data get`: download a named data set."""

from __future__ import annotations

import sys
from dataclasses import asdict
from typing import Annotated

import typer

from unskew.cli import outputs
from unskew.cli.bundles import argument, option
from unskew.cli.console import messages
from unskew.cli.options import INPUT, DataDir, PlainFormat, Quiet
from unskew.cli.progress import progress
from unskew.errors import SettingError


def command(
    name: Annotated[str, argument("Name of a data set; `unskew data list` lists them.")],
    data_dir: DataDir,
    yes: Annotated[
        bool, option(INPUT, "Accept the licence without asking.", "--yes", default=False)
    ],
    format: PlainFormat,  # noqa: A002 - the option's name
    quiet: Quiet,
) -> None:
    """Download a data set, check it and unpack it; a failed download leaves nothing behind.

    The command prints the checks that were possible and saves them in download.json in the folder:
    a checksum where one is published, else the size and the checksums inside the archive.

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
    with progress(f"downloading {entry.name}", quiet) as move:
        folder = catalog.get(name, data_dir, progress=move)
    receipt = catalog.receipt(folder)
    if format == "json":
        facts = None if receipt is None else asdict(receipt)
        outputs.print_json(
            {"name": entry.name, "folder": str(folder), "was_there": there, "receipt": facts}
        )
        return
    outputs.say(f"{entry.title} is there {'already' if there else 'now'}: {folder}")
    if receipt is not None:
        outputs.say(str(receipt))


def _accept(yes: bool) -> None:
    if yes:
        return
    if not sys.stdin.isatty():
        raise SettingError("give --yes to accept the licence")
    typer.confirm("Do you accept the licence?", abort=True, err=True)
