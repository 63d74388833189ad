"""`unskew study list`: the studies there are, or the claims of one."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from unskew.cli import outputs
from unskew.cli.options import PrintOptions
from unskew.cli.parameters import argument


def command(
    *,
    name: Annotated[str | None, argument("NAME")] = None,
    data_dir: Path | None = None,
    output: PrintOptions,
) -> None:
    """List the studies and what they can check with your data, or the claims of one study.

    [bold]Examples[/bold]

      unskew study list

      unskew study list mena2021 --data-dir data/

    Arguments
    ---------
    name
        Name of a study, to list its claims.
    """
    from unskew_studies.run import find_study, list_claims, overview

    if name is None:
        printout = outputs.Printout.of(overview(data_dir))
    else:
        lines = [
            f"--amount {key}={amount.paper} ({amount.quick} if quick): {amount.description}"
            for key, amount in find_study(name).amounts.items()
        ]
        printout = outputs.Printout.of(list_claims(name, data_dir), footer=lines)
    outputs.deliver(printout, output)
