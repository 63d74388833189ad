"""`unskew run`, `unskew plan check` and `unskew store`: experiments from files."""

from __future__ import annotations

import time
from contextlib import ExitStack
from pathlib import Path
from typing import Annotated, Any

import typer

from unskew.checks import choose
from unskew.cli import outputs
from unskew.cli.command import App
from unskew.cli.console import messages, output, tasks_progress
from unskew.cli.options import (
    INPUT,
    RATING_COLUMNS,
    RUNNING,
    Format,
    Quiet,
    StoreDir,
    TableFile,
    Workers,
    file_columns,
    option,
)
from unskew.errors import SettingError

EXAMPLES = """
Carry a plan out: split, train, rank, judge; resumable.

[bold]Examples[/bold]

  unskew plan check plan.toml

  unskew run plan.toml --store results/

  unskew run plan.toml --store results/ --workers 2 -o table.csv

  unskew run plan.toml --store results/ --cluster tcp://host:8786

What is finished is kept in the store: a run that was stopped or killed goes on where it was.

[bold]A plan[/bold]

  seed = 7
  metrics = ["P@10", "nDCG@10", "anti-P@10"]

  \\[data]
  file = "ratings.parquet"

  \\[relevance]
  liked = 4

  \\[\\[split]]
  protocol = "random"
  folds = 5

  \\[\\[targets]]
  design = "test-items"

  \\[\\[algorithm]]
  name = "user-knn"
  k = \\[20, 50, 100]
"""

PlanData = Annotated[
    Path | None,
    option(INPUT, "Ratings, instead of the plan's: a file, or a named data set.", "--data"),
]


def run(  # noqa: D103 - its help is EXAMPLES
    plan: Annotated[Path, typer.Argument(help="A plan: a TOML file.")],
    data: PlanData = None,
    store: StoreDir = None,
    workers: Workers = 1,
    cluster: Annotated[
        str | None,
        option(RUNNING, "A Dask cluster instead: tcp://host:port of its scheduler, or local:4."),
    ] = None,
    keep_going: Annotated[
        bool, option(RUNNING, "Go on when a task fails.", "--keep-going")
    ] = False,
    retry_failed: Annotated[
        bool, option(RUNNING, "Try again what failed in an earlier run.", "--retry-failed")
    ] = False,
    to: TableFile = None,
    format: Format = "table",  # noqa: A002 - the word users expect
    quiet: Quiet = False,
) -> None:
    from unskew.engine.cluster import connect, workers_of
    from unskew.experiment.execution import run_plan as carry_out
    from unskew.experiment.plan_files import read_plan

    choose("format", format, outputs.FORMATS)
    if cluster is not None and workers != 1:
        raise SettingError("give --workers or --cluster, not both")
    wanted, source = read_plan(plan)
    ratings = _data(plan, source, data)
    with ExitStack() as stack:
        client, running = None, workers
        if cluster is not None:
            client = stack.enter_context(connect(cluster))
            running = workers_of(client)
        moved = stack.enter_context(tasks_progress(quiet, running))
        results = carry_out(
            ratings,
            wanted,
            store=store,
            workers=workers,
            cluster=client,
            keep_going=keep_going,
            retry_failed=retry_failed,
            progress=moved,
        )
    outputs.deliver(outputs.Printout.of_result(results), to, format, quiet)
    for label, report in results.failures.items():
        messages().print(f"failed: {label}\n{report}", markup=False)
    if results.failures:
        raise typer.Exit(1)


run.__doc__ = EXAMPLES


def _data(plan: Path, source: dict[str, Any], data: Path | None) -> Any:
    from unskew.cli.inputs import is_named
    from unskew.data.readers import read_ratings
    from unskew.experiment.execution import data_of

    if data is not None:
        if is_named(data):
            return data_of({"file": str(data)}, plan.parent)
        more = {key: value for key, value in source.items() if key != "file"}
        path, names = file_columns(data, None, RATING_COLUMNS)
        return read_ratings(path, **{**more, **names})
    return data_of(source, plan.parent)


plan_app = App(help="Look at a plan before it runs.")


@plan_app.command("check")
def check(
    plan: Annotated[Path, typer.Argument(help="A plan: a TOML file.")],
    data: PlanData = None,
    store: Annotated[Path | None, option(INPUT, "Count what is in this store.")] = None,
    estimate: Annotated[
        bool, option(RUNNING, "Train every system on a few users to estimate the time.")
    ] = True,
) -> None:
    """Explain what a plan will do: splits, designs, systems, tasks, time and memory.

    [bold]Examples[/bold]

      unskew plan check plan.toml

      unskew plan check plan.toml --store results/ --no-estimate
    """
    from unskew.experiment.plan_files import read_plan
    from unskew.experiment.plan_outline import outline

    wanted, source = read_plan(plan)
    told = outline(wanted, _data(plan, source, data), store=store, estimate=estimate)
    output().print(str(told), markup=False, soft_wrap=True, highlight=False)


store_app = App(help="Look into a store of results.")
Folder = Annotated[Path, typer.Argument(help="The store.")]


@store_app.command("ls")
def ls(folder: Folder) -> None:
    """List the results of a store.

    [bold]Examples[/bold]

      unskew store ls results/
    """
    opened = _opened(folder)
    for entry in opened.entries():
        card = entry.card
        what = card.get("label") or card.get("study", "")
        who = card.get("system") or card.get("measurement") or "lists"
        print(f"{entry.key[:12]}  {entry.size:>10,}  {what}  {who}")


@store_app.command("verify")
def verify(folder: Folder) -> None:
    """Check every result against its digest; exit 1 when something is wrong.

    [bold]Examples[/bold]

      unskew store verify results/
    """
    opened = _opened(folder)
    wrong = opened.verify()
    for line in wrong:
        print(line)
    print(f"{sum(1 for _ in opened.entries()):,} results are whole, {len(wrong):,} problems")
    if wrong:
        raise typer.Exit(1)


@store_app.command("gc")
def gc(
    folder: Folder,
    plan: Annotated[
        Path | None, typer.Option(help="Also remove results that this plan does not need.")
    ] = None,
    data: PlanData = None,
) -> None:
    """Remove what stopped writers left behind and, with --plan, results it does not need.

    [bold]Examples[/bold]

      unskew store gc results/

      unskew store gc results/ --plan plan.toml
    """
    from unskew.experiment.collection import keys_of
    from unskew.experiment.plan_files import read_plan

    opened = _opened(folder)
    keep = None
    if plan is not None:
        wanted, source = read_plan(plan)
        keep = keys_of(wanted, _data(plan, source, data))
    begun = time.perf_counter()
    removed = opened.gc(keep)
    print(f"removed {removed:,} files in {time.perf_counter() - begun:.1f} s")


def _opened(folder: Path) -> Any:
    from unskew.engine.store import MARK, Store

    if not (folder / MARK).exists():
        raise SettingError(f"{folder} is no store: name the folder given to unskew run --store")
    return Store.open(folder)
