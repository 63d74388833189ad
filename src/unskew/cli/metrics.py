"""`unskew metrics`: what can be computed."""

from __future__ import annotations

import inspect
from typing import Annotated

import typer

from unskew.cli.console import output


def metrics(
    name: Annotated[
        str | None, typer.Argument(help="A metric, to read its definition.", show_default=False)
    ] = None,
) -> None:
    """List the metrics, or explain one.

    [bold]Examples[/bold]

      unskew metrics

      unskew metrics nDCG
    """
    from rich import box
    from rich.table import Table

    from unskew.metrics.names import aliases, parse
    from unskew.metrics.registry import REGISTRY

    if name is not None:
        metric = parse(name)
        definition = metric.definition
        settings = ", ".join(
            f"{key}={param.default}" + (f" ({'|'.join(param.words)})" if param.words else "")
            for key, param in definition.params.items()
        )
        print(f"{metric}: {inspect.cleandoc(definition.compute.__doc__ or '')}")
        print(f"Settings: {settings or 'none'}. Better: {metric.better}.")
        return
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for column in ("name", "what it is", "settings", "also called"):
        table.add_column(column)
    for key, definition in REGISTRY.items():
        also = [alias for alias, target in aliases().items() if parse(target).name == key]
        table.add_row(key, definition.summary, ", ".join(definition.params), ", ".join(also))
    output().print(table)
    print("Write anti- before a name for its twin of bad recommendations, condensed- to drop")
    print("unjudged items first, @k for a cutoff: anti-P@10, condensed-nDCG@10, SR(gamma=1)@10.")
