"""`unskew run`: carry out the plan of an experiment."""

from __future__ import annotations

from contextlib import ExitStack
from typing import Annotated

import typer

from unskew.cli import inputs, outputs
from unskew.cli.bundles import bundle, option
from unskew.cli.console import messages
from unskew.cli.options import (
    RUNNING,
    ExecutorOptions,
    PlanArgument,
    PlanData,
    PrintOptions,
    StoreDir,
)
from unskew.cli.progress import tasks_progress


@bundle
class RunOptions:
    """How tasks run."""

    store: StoreDir
    executor: ExecutorOptions
    keep_going: Annotated[
        bool, option(RUNNING, "Continue when a task fails.", "--keep-going", default=False)
    ]
    retry_failed: Annotated[
        bool,
        option(
            RUNNING, "Retry tasks that failed in an earlier run.", "--retry-failed", default=False
        ),
    ]


def command(plan: PlanArgument, data: PlanData, options: RunOptions, output: PrintOptions) -> None:
    r"""Run a plan: split, train, rank and evaluate. A stopped run can be resumed.

    [bold]Examples[/bold]

      unskew plan check plan.toml

      unskew run plan.toml --store results/

      unskew run plan.toml --store results/ --workers 2 -o table.csv

      unskew run plan.toml --store results/ --cluster tcp://host:8786

    Finished work is kept in the store: a run that was stopped or killed continues where it was.

    [bold]A plan[/bold]

      seed = 7
      metrics = ["P@10", "nDCG@10", "anti-P@10"]

      \[data]
      file = "ratings.parquet"

      \[relevance]
      liked = 4

      \[\[split]]
      protocol = "random"
      folds = 5

      \[\[targets]]
      design = "test-items"

      \[\[algorithm]]
      name = "user-knn"
      k = \[20, 50, 100]
    """
    from unskew.engine.execute import executor
    from unskew.experiment.execution import run_plan_by

    arguments = options.executor.arguments()
    wanted, ratings = inputs.read_plan_and_data(plan, data)
    with ExitStack() as stack:
        one = stack.enter_context(executor(**arguments))
        move = stack.enter_context(tasks_progress(output.quiet, one.count))
        results = run_plan_by(
            one,
            ratings,
            wanted,
            store=options.store,
            keep_going=options.keep_going,
            retry_failed=options.retry_failed,
            progress=move,
        )
    outputs.deliver(outputs.Printout.of_result(results), output)
    for label, report in results.failures.items():
        messages().print(f"failed: {label}\n{report}", markup=False)
    if results.failures:
        raise typer.Exit(1)
