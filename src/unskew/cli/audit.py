"""`unskew audit`: how far to trust an evaluation; one command, one report."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from unskew.cli import inputs
from unskew.cli.console import messages, output
from unskew.cli.inputs import read_files
from unskew.cli.options import (
    INPUT,
    MEASURE,
    Above,
    Columns,
    DataDir,
    Duplicates,
    FiguresDir,
    Gain,
    Liked,
    Loss,
    Quiet,
    RelevanceOf,
    ReportFile,
    ReportFormat,
    Seed,
    StoreDir,
    Workers,
    option,
)
from unskew.cli.outputs import report_kind, write_report
from unskew.errors import SettingError

if TYPE_CHECKING:
    from unskew.auditing.result import Audit

EXAMPLES = """
Tell how far an evaluation can be trusted, and write a report.

Runs systems on the ratings under several designs, finds which conclusions hold whatever the design
and which are made by it, and writes one HTML file that needs nothing else.

[bold]Examples[/bold]

  unskew audit ratings.csv

  unskew audit ml-1m --thorough -o report.html --store audit/

  unskew audit ratings.csv --quick --liked 4 --algorithms popularity,user-knn,wrmf

  unskew audit ratings.csv --random random.csv --figures figures/

  unskew audit --judgments test.csv --run mine.parquet --run theirs.trec --train train.csv

[bold]Levels[/bold]

  --quick     six systems, one split, 3 null repeats, 10,000 permutations
  (default)   ten systems, one split, 5 null repeats, 100,000 permutations
  --thorough  ten systems, five folds

With --store, an audit that was stopped goes on where it was.
"""

STAGES = {
    "reading": "reading",
    "designs": "systems under all designs",
    "null experiment": "null experiment",
    "lists": "lists and truth",
    "conclusions": "conclusions",
    "diagnostics": "diagnostics",
}


def audit(  # noqa: D103 - its help is EXAMPLES
    ratings: Annotated[
        str | None, typer.Argument(help="Ratings: a file, or the name of a data set.")
    ] = None,
    random: Annotated[
        Path | None, option(INPUT, "Ratings of randomly chosen items: the truth.")
    ] = None,
    judgments: Annotated[
        Path | None, option(INPUT, "Instead: test ratings …", "--judgments", "-j")
    ] = None,
    run: Annotated[
        list[str] | None,
        option(
            INPUT, "… and ranked lists: FILE or NAME=FILE[:item=sku]. Repeatable.", "--run", "-r"
        ),
    ] = None,
    train: Annotated[Path | None, option(INPUT, "… and the training ratings behind them.")] = None,
    data_dir: DataDir = None,
    columns: Columns = None,
    duplicates: Duplicates = "error",
    quick: Annotated[bool, option(MEASURE, "Fewer systems, fewer repeats.", "--quick")] = False,
    thorough: Annotated[bool, option(MEASURE, "Five folds.", "--thorough")] = False,
    liked: Liked = None,
    above: Above = None,
    gain: Gain = None,
    loss: Loss = None,
    relevance: RelevanceOf = None,
    algorithms: Annotated[
        str | None, option(MEASURE, "Systems, between commas; see unskew algorithms.")
    ] = None,
    designs: Annotated[
        str | None,
        option(
            MEASURE,
            "Designs, between commas, the common one first: all-items, test-items, 1r, u1r, p1r, "
            "test-targets, skew, wtd-h, temporal.",
        ),
    ] = None,
    metric: Annotated[
        str | None, option(MEASURE, "What orders the systems: P@10.", "--metric", "-m")
    ] = None,
    seed: Seed = 0,
    store: StoreDir = None,
    workers: Workers = 1,
    to: ReportFile = None,
    figures: FiguresDir = None,
    format: ReportFormat = None,  # noqa: A002 - the word users expect
    quiet: Quiet = False,
) -> None:
    from unskew.auditing.compile_ahead import compiling_ahead
    from unskew.auditing.result import audit as carry_out

    kind = report_kind(to, format)
    if quick and thorough:
        raise SettingError("give --quick or --thorough, not both")
    level = "quick" if quick else "thorough" if thorough else "default"
    how: dict[str, Any] = {
        "designs": between_commas(designs),
        "metric": metric,
        "seed": seed,
        **inputs.relevance_of(liked, above, gain, loss, relevance),
    }
    if judgments is not None or run:
        if ratings is not None:
            raise SettingError("give ratings, or --judgments and --run: not both")
        if judgments is None or not run:
            raise SettingError("give both --judgments and --run")
        several = None if workers == 1 else workers
        _without(
            random=random, algorithms=algorithms, store=store, data_dir=data_dir, workers=several
        )
        tests, runs, trained = read_files(
            judgments, run, train, columns=columns, duplicates=duplicates
        )
        given: dict[str, Any] = {"judgments": tests, "runs": runs, "train": trained}
    else:
        if ratings is None:
            raise SettingError("name ratings (a file, or a data set), or --judgments and --run")
        if train is not None:
            raise SettingError("--train goes with --judgments and --run: ratings are split here")
        drawn = None
        if random is not None:
            drawn = inputs.read_random_file(random, columns, duplicates, data_dir=data_dir)
        given = {
            "data": inputs.loaded(ratings, data_dir, columns, duplicates),
            "random": drawn,
            "algorithms": between_commas(algorithms),
            "store": store,
            "workers": workers,
        }
    with compiling_ahead(), stages(quiet) as moved:
        found = carry_out(plan=level, progress=moved, **given, **how)
    shown(found, quiet)
    write_report(found, to, kind, figures, "unskew-report", quiet)


audit.__doc__ = EXAMPLES


def between_commas(text: str | None) -> list[str] | None:
    """Read names between commas; None for none."""
    return None if text is None else [part.strip() for part in text.split(",") if part.strip()]


def _without(**given: object) -> None:
    for name, value in given.items():
        if value is not None:
            raise SettingError(
                f"--{name.replace('_', '-')} is for ratings: leave it out with --judgments"
            )


@contextmanager
def stages(quiet: bool) -> Iterator[Callable[[str, int, int], None] | None]:
    """Show every stage on a terminal, with the time left; give what moves them, or None."""
    if quiet or not sys.stderr.isatty():
        yield None
        return
    from rich.progress import (
        BarColumn,
        MofNCompleteColumn,
        Progress,
        TextColumn,
        TimeElapsedColumn,
        TimeRemainingColumn,
    )

    bar = Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TimeRemainingColumn(),
        console=messages(),
        transient=True,
    )
    with bar:
        tasks = {
            stage: bar.add_task(title, total=None, start=False) for stage, title in STAGES.items()
        }
        begun: set[str] = set()

        def moved(stage: str, done: int, total: int) -> None:
            if stage not in begun:
                begun.add(stage)
                bar.start_task(tasks[stage])
            bar.update(tasks[stage], completed=done, total=total)

        yield moved


def shown(found: Audit, quiet: bool) -> None:
    """Print the answer and, unless quiet, designs x systems and what was assumed."""
    import polars as pl
    from rich import box
    from rich.table import Table
    from rich.text import Text

    screen = output()
    for text in found.answer():
        screen.print(text, markup=False, soft_wrap=not sys.stdout.isatty())
        screen.print()
    if quiet:
        return
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, title=f"{found.metric} (place)")
    table.add_column("design")
    order = found.order()[:10]
    for system in order:
        table.add_column(Text(system), justify="right")
    table.add_column("(chance)", justify="right", style="dim")
    for design in found.designs:
        rows = {
            row["system"]: row
            for row in found.table().filter(pl.col("design") == design).iter_rows(named=True)
        }
        chance = rows[order[0]]["random"]
        cells = [
            Text(
                f"{rows[one]['value']:.4f} ({rows[one]['place']})",
                style="bold green" if rows[one]["place"] == 1 else "",
            )
            for one in order
        ]
        table.add_row(design, *cells, "–" if chance is None else f"{chance:.4f}")
    screen.print(table)
    for line in found.footer():
        messages().print(line, style="dim", markup=False)
