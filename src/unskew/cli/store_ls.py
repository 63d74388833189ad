"""`unskew store ls`: the results of a store."""

from __future__ import annotations

from unskew.cli import inputs, outputs
from unskew.cli.options import PlainFormat, StoreArgument


def command(
    folder: StoreArgument,
    format: PlainFormat,  # noqa: A002 - the option's name
) -> None:
    """List the results of a store.

    [bold]Examples[/bold]

      unskew store ls results/
    """
    rows = []
    for entry in inputs.open_store(folder).entries():
        card = entry.card
        design = str(card.get("label") or card.get("study", ""))
        system = str(card.get("system") or card.get("measurement") or "lists")
        rows.append({"key": entry.key, "bytes": entry.size, "design": design, "system": system})
        if format == "text":
            outputs.say(f"{entry.key[:12]}  {entry.size:>10,}  {design}  {system}")
    if format == "json":
        outputs.print_json(rows)
