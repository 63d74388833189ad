"""`unskew plan check`: what a plan will do."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Annotated

from unskew.cli import inputs, outputs
from unskew.cli.bundles import option
from unskew.cli.options import INPUT, RUNNING, PlainFormat, PlanArgument, PlanData


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
    format: PlainFormat,  # noqa: A002 - the option's name
) -> None:
    """Explain what a plan will do: splits, designs, systems, tasks, time and memory.

    [bold]Examples[/bold]

      unskew plan check plan.toml

      unskew plan check plan.toml --store results/ --no-estimate
    """
    from unskew.experiment.plan_outline import outline

    wanted, ratings = inputs.read_plan_and_data(plan, data)
    result = outline(wanted, ratings, store=store, estimate=estimate)
    if format == "json":
        outputs.print_json(asdict(result))
    else:
        outputs.say(str(result))
