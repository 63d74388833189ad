"""The commands `run`, `plan …` and `store …`: plans and their results."""

from __future__ import annotations

import time
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from unskew.cli import inputs, outputs
from unskew.cli.console import messages
from unskew.cli.options import (
    ExecutorOptions,
    PlainFormat,
    PlanArgument,
    PrintOptions,
    StoreArgument,
)
from unskew.cli.parameters import Options, OptionsOf, bundle
from unskew.cli.progress import tasks_progress
from unskew.report.text import counted


@bundle
class RunOptions:
    """How tasks run."""

    store: Path | None = None
    executor: ExecutorOptions
    failures: Annotated[
        Options,
        OptionsOf("experiment.execution:run_plan", {"How it runs": "keep_going retry_failed"}),
    ]


def run_command(
    *,
    plan: PlanArgument,
    data: str | None = None,
    options: RunOptions,
    output: PrintOptions,
) -> None:
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
    from unskew.engine.executor import executor
    from unskew.experiment.execution import run_plan_by

    arguments = options.executor.arguments()
    read_plan, ratings = inputs.read_plan_and_data(plan, data)
    settings = {"store": options.store, **vars(options.failures)}
    with executor(**arguments) as workers, tasks_progress(output.quiet, workers.count) as move:
        results = run_plan_by(workers, ratings, read_plan, progress=move, **settings)
    outputs.deliver(outputs.Printout.of_result(results), output)
    for label, report in results.failures.items():
        messages().print(f"failed: {label}\n{report}", markup=False)
    if results.failures:
        raise typer.Exit(1)


def plan_check_command(
    *,
    plan: PlanArgument,
    data: str | None = None,
    store: Path | None = None,
    estimate: bool = True,
    format: PlainFormat = "text",  # noqa: A002 - the option's name
) -> None:
    """Explain what a plan will do: splits, designs, systems, tasks, time and memory.

    [bold]Examples[/bold]

      unskew plan check plan.toml

      unskew plan check plan.toml --store results/ --no-estimate

    Input
    -----
    store
        Count the results that this store already holds.

    How it runs
    -----------
    estimate
        Estimate time and memory.
    """
    from unskew.experiment.plan_files import outline

    read_plan, ratings = inputs.read_plan_and_data(plan, data)
    result = outline(read_plan, ratings, store=store, estimate=estimate)
    outputs.print_plain(format, asdict(result), [str(result)])


def store_gc_command(
    *,
    folder: StoreArgument,
    plan: Path | None = None,
    data: str | None = None,
    format: PlainFormat = "text",  # noqa: A002 - the option's name
) -> None:
    """Remove the remains of stopped runs and, with --plan, results that the plan does not need.

    [bold]Examples[/bold]

      unskew store gc results/

      unskew store gc results/ --plan plan.toml

    Input
    -----
    plan
        Also remove results that this plan does not need.
    """
    from unskew.experiment.collection import keys_of

    store = inputs.open_store(folder)
    keep = None if plan is None else keys_of(*inputs.read_plan_and_data(plan, data))
    start = time.perf_counter()
    removed = store.gc(keep)
    line = f"removed {counted(removed, 'file')} in {time.perf_counter() - start:.1f} s"
    outputs.print_plain(format, {"removed": removed}, [line])


def store_ls_command(
    *,
    folder: StoreArgument,
    format: PlainFormat = "text",  # noqa: A002 - the option's name
) -> None:
    """List the results of a store.

    [bold]Examples[/bold]

      unskew store ls results/
    """
    rows = [
        {
            "key": entry.key,
            "bytes": entry.size,
            "design": str(entry.card.get("label") or entry.card.get("study", "")),
            "system": str(entry.card.get("system") or entry.card.get("measurement") or "lists"),
        }
        for entry in inputs.open_store(folder).entries()
    ]
    form = "{key:.12}  {bytes:>10,}  {design}  {system}"
    outputs.print_plain(format, rows, (form.format(**row) for row in rows))


def store_verify_command(
    *,
    folder: StoreArgument,
    format: PlainFormat = "text",  # noqa: A002 - the option's name
) -> None:
    """Check every result against its digest; exit 1 when something is wrong.

    [bold]Examples[/bold]

      unskew store verify results/
    """
    store = inputs.open_store(folder)
    problems = store.verify()
    results = sum(1 for _ in store.entries())
    total = f"{counted(results, 'result is', 'results are')} whole"
    lines = [*problems, f"{total}, {counted(len(problems), 'problem')}"]
    outputs.print_plain(format, {"whole": results, "problems": list(problems)}, lines)
    if problems:
        raise typer.Exit(1)
