"""`unskew store ls`: the results of a store."""

from __future__ import annotations

from unskew.cli import inputs, outputs
from unskew.cli.options import StoreArgument


def command(folder: StoreArgument) -> None:
    """List the results of a store.

    [bold]Examples[/bold]

      unskew store ls results/
    """
    for entry in inputs.open_store(folder).entries():
        card = entry.card
        design = card.get("label") or card.get("study", "")
        system = card.get("system") or card.get("measurement") or "lists"
        outputs.say(f"{entry.key[:12]}  {entry.size:>10,}  {design}  {system}")
