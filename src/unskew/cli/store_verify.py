"""`unskew store verify`: check the results of a store."""

from __future__ import annotations

import typer

from unskew.cli import inputs, outputs
from unskew.cli.options import PlainFormat, StoreArgument
from unskew.report.text import counted


def command(
    folder: StoreArgument,
    format: PlainFormat,  # noqa: A002 - the option's name
) -> None:
    """Check every result against its digest; exit 1 when something is wrong.

    [bold]Examples[/bold]

      unskew store verify results/
    """
    store = inputs.open_store(folder)
    problems = store.verify()
    results = sum(1 for _ in store.entries())
    if format == "json":
        outputs.print_json({"whole": results, "problems": list(problems)})
    else:
        for line in problems:
            outputs.say(line)
        whole = counted(results, "result is", "results are")
        outputs.say(f"{whole} whole, {counted(len(problems), 'problem')}")
    if problems:
        raise typer.Exit(1)
