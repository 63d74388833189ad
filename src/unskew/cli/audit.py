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
from unskew.cli.options import Columns, Duplicates, Quiet, column_names
from unskew.errors import SettingError, choose

if TYPE_CHECKING:
    from unskew.auditing.main_job import Audit

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
    "reading": "reading", "designs": "systems under all designs",
    "null experiment": "null experiment", "lists": "lists and truth",
    "conclusions": "conclusions", "diagnostics": "diagnostics",
}  # fmt: skip
FORMATS = ("html", "markdown", "json")
ENDINGS = {"html": ".html", "markdown": ".md", "json": ".json"}


def audit(  # noqa: D103 - its help is EXAMPLES
    ratings: Annotated[
        str | None, typer.Argument(help="Ratings: a file, or the name of a data set.")
    ] = None,
    to: Annotated[
        Path | None,
        typer.Option("--output", "-o", help="The report. Default: unskew-report.html; - prints."),
    ] = None,
    quick: Annotated[bool, typer.Option("--quick", help="Fewer systems, fewer repeats.")] = False,
    thorough: Annotated[bool, typer.Option("--thorough", help="Five folds.")] = False,
    liked: Annotated[float | None, typer.Option(help="The smallest rating that is liked.")] = None,
    algorithms: Annotated[
        str | None, typer.Option(help="Systems, between commas; see unskew algorithms.")
    ] = None,
    designs: Annotated[
        str | None,
        typer.Option(
            help="Designs, between commas, the common one first: all-items, test-items, "
            "1r, u1r, p1r, test-targets, skew, wtd-h, temporal."
        ),
    ] = None,
    metric: Annotated[
        str | None, typer.Option("--metric", "-m", help="What orders the systems: P@10.")
    ] = None,
    random: Annotated[
        Path | None, typer.Option(help="Ratings of randomly chosen items: the truth.")
    ] = None,
    judgments: Annotated[
        Path | None, typer.Option("--judgments", "-j", help="Instead: test ratings …")
    ] = None,
    run: Annotated[
        list[str] | None,
        typer.Option("--run", "-r", help="… and ranked lists: FILE or NAME=FILE. Repeatable."),
    ] = None,
    train: Annotated[
        Path | None, typer.Option(help="… and the training ratings behind them.")
    ] = None,
    seed: Annotated[int, typer.Option(help="Same seed, same numbers.")] = 0,
    store: Annotated[
        Path | None, typer.Option(help="A folder that keeps what is finished.")
    ] = None,
    workers: Annotated[
        int, typer.Option(help="Processes side by side; never changes a number.")
    ] = 1,
    data_dir: Annotated[
        Path | None, typer.Option(help="Where named data sets are (or UNSKEW_DATA).")
    ] = None,
    format: Annotated[str, typer.Option(help="html, markdown or json.")] = "html",  # noqa: A002
    figures: Annotated[
        Path | None, typer.Option(help="Also write every figure here, as SVG and PNG.")
    ] = None,
    columns: Columns = None,
    duplicates: Duplicates = "error",
    quiet: Quiet = False,
) -> None:
    from unskew.auditing.ahead import compiling_ahead
    from unskew.auditing.main_job import audit as carry_out

    choose("format", format, FORMATS)
    if quick and thorough:
        raise SettingError("give --quick or --thorough, not both")
    level = "quick" if quick else "thorough" if thorough else "default"
    how: dict[str, Any] = {
        "designs": between_commas(designs), "metric": metric, "seed": seed, "liked": liked,
    }  # fmt: skip
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
        given = {
            "data": inputs.loaded(ratings, data_dir, columns, duplicates),
            "random": _random(random, columns, duplicates),
            "algorithms": between_commas(algorithms), "store": store, "workers": workers,
        }  # fmt: skip
    with compiling_ahead(), stages(quiet) as moved:
        found = carry_out(plan=level, progress=moved, **given, **how)
    shown(found, quiet)
    finish(found, to, format, figures, quiet)


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


def _random(path: Path | None, columns: str | None, duplicates: str) -> Any:
    from unskew.data.readers import read_ratings

    if path is None:
        return None
    return read_ratings(path, duplicates=duplicates, **column_names(columns))


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
        TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn(),
        TimeRemainingColumn(), console=messages(), transient=True,
    )  # fmt: skip
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
            Text(f"{rows[one]['value']:.4f} ({rows[one]['place']})",
                 style="bold green" if rows[one]["place"] == 1 else "")
            for one in order
        ]  # fmt: skip
        table.add_row(design, *cells, "–" if chance is None else f"{chance:.4f}")
    screen.print(table)
    for line in found.lines():
        messages().print(line, style="dim", markup=False)


def finish(
    found: Audit,
    to: Path | None,
    format: str,  # noqa: A002
    figures: Path | None,
    quiet: bool,
) -> None:
    """Write the report and say where it is."""
    from unskew.reporting.write import report, written

    if to is not None and str(to) == "-":
        sys.stdout.write(written(found.document(), format, figures).decode())
        return
    target = to or Path(f"unskew-report{ENDINGS[format]}")
    report(found, target, format=format, figures=figures)
    if not quiet:
        messages().print(f"the report is in {target}", markup=False)
        if figures is not None:
            messages().print(f"its figures are in {figures}", markup=False)
