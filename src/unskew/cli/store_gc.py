"""`unskew store gc`: remove what a store does not need."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Annotated

from unskew.cli import inputs, outputs
from unskew.cli.bundles import option
from unskew.cli.options import INPUT, PlainFormat, PlanData, StoreArgument
from unskew.report.text import counted


def command(
    folder: StoreArgument,
    plan: Annotated[
        Path | None, option(INPUT, "Also remove results that this plan does not need.")
    ],
    data: PlanData,
    format: PlainFormat,  # noqa: A002 - the option's name
) -> None:
    """Remove the remains of stopped runs and, with --plan, results that the plan does not need.

    [bold]Examples[/bold]

      unskew store gc results/

      unskew store gc results/ --plan plan.toml
    """
    from unskew.experiment.collection import keys_of

    store = inputs.open_store(folder)
    keep = None if plan is None else keys_of(*inputs.read_plan_and_data(plan, data))
    start = time.perf_counter()
    removed = store.gc(keep)
    if format == "json":
        outputs.print_json({"removed": removed})
        return
    outputs.say(f"removed {counted(removed, 'file')} in {time.perf_counter() - start:.1f} s")
