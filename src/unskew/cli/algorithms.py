"""`unskew algorithms`: the recommenders and their settings."""

from __future__ import annotations

import inspect
from typing import Annotated

import typer

from unskew.cli.console import output


def algorithms(
    name: Annotated[
        str | None, typer.Argument(help="An algorithm, to read its definition.", show_default=False)
    ] = None,
) -> None:
    """List the recommenders, or explain one.

    [bold]Examples[/bold]

      unskew algorithms

      unskew algorithms slim
    """
    from rich import box
    from rich.table import Table

    from unskew.errors import unknown_name
    from unskew.recommend.registry import ALGORITHMS, settings_of

    if name is not None:
        if name not in ALGORITHMS:
            raise unknown_name("algorithm", name, ALGORITHMS)
        kind = ALGORITHMS[name]
        print(f"{name}: {inspect.cleandoc(kind.__doc__ or '')}")
        defaults = ", ".join(f"{key}={value}" for key, value in settings_of(kind).items())
        print(f"\nDefaults: {defaults or 'no settings'}.")
        return
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for column in ("name", "what it is", "settings"):
        table.add_column(column)
    for key, kind in ALGORITHMS.items():
        summary = inspect.cleandoc(kind.__doc__ or "").splitlines()[0]
        settings = ", ".join(f"{k}={v}" for k, v in settings_of(kind).items())
        table.add_row(key, summary, settings)
    output().print(table)
    print("unskew algorithms NAME tells formula, settings and reference.")
