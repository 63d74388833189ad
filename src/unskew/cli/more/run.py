"""The commands `run`, `plan …` and `store …`: plans and their results."""

from __future__ import annotations

import time
from contextlib import ExitStack
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
    wanted, ratings = inputs.read_plan_and_data(plan, data)
    with ExitStack() as stack:
        one = stack.enter_context(executor(**arguments))
        move = stack.enter_context(tasks_progress(output.quiet, one.count))
        settings = {"store": options.store, **vars(options.failures)}
        results = run_plan_by(one, ratings, wanted, progress=move, **settings)
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

    wanted, ratings = inputs.read_plan_and_data(plan, data)
    result = outline(wanted, ratings, store=store, estimate=estimate)
    if format == "json":
        outputs.print_json(asdict(result))
    else:
        outputs.say(str(result))


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
    if format == "json":
        outputs.print_json({"removed": removed})
        return
    outputs.say(f"removed {counted(removed, 'file')} in {time.perf_counter() - start:.1f} s")


def store_ls_command(
    *,
    folder: StoreArgument,
    format: PlainFormat = "text",  # noqa: A002 - the option's name
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
    if format == "json":
        outputs.print_json({"whole": results, "problems": list(problems)})
    else:
        for line in problems:
            outputs.say(line)
        whole = counted(results, "result is", "results are")
        outputs.say(f"{whole} whole, {counted(len(problems), 'problem')}")
    if problems:
        raise typer.Exit(1)
