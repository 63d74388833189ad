"""`unskew plan check`: what a plan will do."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from unskew.cli import inputs, outputs
from unskew.cli.bundles import option
from unskew.cli.options import INPUT, RUNNING, PlanArgument, PlanData


def command(
    plan: PlanArgument,
    data: PlanData,
    store: Annotated[
        Path | None, option(INPUT, "Count the results that this store already holds.")
    ],
    estimate: Annotated[
        bool,
        option(RUNNING, "Estimate time and memory.", default=True),
    ],
) -> None:
    """Explain what a plan will do: splits, designs, systems, tasks, time and memory.

    [bold]Examples[/bold]

      unskew plan check plan.toml

      unskew plan check plan.toml --store results/ --no-estimate
    """
    from unskew.experiment.plan_outline import outline

    wanted, ratings = inputs.read_plan_and_data(plan, data)
    outputs.say(str(outline(wanted, ratings, store=store, estimate=estimate)))
