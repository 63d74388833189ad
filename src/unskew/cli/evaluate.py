"""`unskew evaluate`: judge ranked lists."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from unskew.cli import inputs
from unskew.cli.console import messages, output, progress
from unskew.cli.options import Columns, Duplicates, Quiet
from unskew.errors import SettingError, choose

EXAMPLES = """
Judge the ranked lists of any recommender against test ratings.

[bold]Examples[/bold]

  unskew evaluate --judgments test.csv --run mine.parquet -m P@10 -m nDCG@10 --liked 4

  unskew evaluate -j test.csv -r mine.csv -r theirs.trec -m P@10,anti-P@10 --train train.csv

  unskew evaluate -j qrels.txt -r bm25=run1.trec -r dense=run2.trec -m map -m ndcg_cut_10

  unskew evaluate -j test.csv -r mine.csv -m AP --per-user values.parquet --format json

Files may be CSV, TSV, ::-separated, TREC or Parquet, also gzipped; what was assumed about them is
printed below the table. [bold]unskew metrics[/bold] lists what -m takes.
"""


def evaluate(  # noqa: D103 - its help is EXAMPLES
    judgments: Annotated[
        Path, typer.Option("--judgments", "-j", help="Test ratings, or TREC qrels.")
    ],
    run: Annotated[
        list[str],
        typer.Option("--run", "-r", help="Ranked lists: FILE or NAME=FILE. Repeatable."),
    ],
    metric: inputs.Metrics = None,
    liked: inputs.Liked = None,
    above: inputs.Above = None,
    gain: Annotated[
        str | None,
        typer.Option(
            help="rating, liked-only, binary, levels, exponential, burges, integer, or a mapping "
            "such as 5=2,4=1,3=0,2=0,1=0."
        ),
    ] = None,
    loss: Annotated[
        str | None, typer.Option(help="levels, binary, or a mapping such as 3=1,2=2,1=3,4=0,5=0.")
    ] = None,
    relevance: inputs.RelevanceOf = None,
    train: Annotated[
        Path | None,
        typer.Option(help="Training ratings: for popularity, novelty, SR; checks the lists."),
    ] = None,
    items: Annotated[
        Path | None, typer.Option(help="The catalogue: for Coverage, Gini, Entropy, AUC.")
    ] = None,
    targets: Annotated[
        str | None,
        typer.Option(
            help="What was ranked: all-items, test-items, train-items (less --train), "
            "test-targets; adds what chance would score."
        ),
    ] = None,
    users: inputs.Users = "with-test",
    undefined: Annotated[
        str, typer.Option(help="Undefined values count as zero, or skip them.")
    ] = "zero",
    ties: Annotated[
        str | None,
        typer.Option(
            help="Equal scores: id, trec, random, input. Default: trec for TREC, else id."
        ),
    ] = None,
    by: Annotated[
        str | None,
        typer.Option(
            help="What ranks when there are both: rank or score. Default: rank; TREC score."
        ),
    ] = None,
    seed: Annotated[int, typer.Option(help="For --ties random.")] = 0,
    depth: inputs.Depth = None,
    columns: Columns = None,
    duplicates: Duplicates = "error",
    repeated: Annotated[
        str, typer.Option(help="An item twice in a list: error, or first to keep its best place.")
    ] = "error",
    nan: Annotated[
        str, typer.Option(help="Scores that are NaN: error, or drop these items.")
    ] = "error",
    gaps: Annotated[
        str, typer.Option(help="Ranks that jump: close them, or keep empty slots.")
    ] = "close",
    per_user: Annotated[
        Path | None, typer.Option(help="Write each user's values to this .parquet or .csv file.")
    ] = None,
    save: Annotated[
        Path | None, typer.Option(help="Save the scores in this folder, to be loaded again.")
    ] = None,
    format: Annotated[  # noqa: A002 - the word users expect
        str, typer.Option(help="table, json, csv, markdown or latex.")
    ] = "table",
    digits: inputs.Digits = 4,
    threads: inputs.Threads = None,
    memory: Annotated[
        str, typer.Option(help="Working memory, such as 512MiB; never changes a number.")
    ] = "512MiB",
    quiet: Quiet = False,
) -> None:
    from unskew.evaluation import METRICS
    from unskew.evaluation import evaluate as judge
    from unskew.files import write_table
    from unskew.report import tables

    choose("format", format, tables.FORMATS)
    if per_user is not None and per_user.suffix not in (".parquet", ".csv"):
        raise SettingError(f"--per-user must end in .parquet or .csv, got {per_user.name!r}")
    rules = inputs.relevance_of(liked, above, gain, loss, relevance)
    tests, lists, trained = inputs.read_files(
        judgments, run, train, columns=columns, duplicates=duplicates,
        by=by, ties=ties, seed=seed, repeated=repeated, nan=nan, gaps=gaps,
    )  # fmt: skip
    with progress("judging", quiet) as moved:
        scores = judge(
            tests, lists, inputs.metric_names(metric) or METRICS, train=trained, items=items,
            users=users, undefined=undefined, ties=ties, seed=seed, depth=depth, threads=threads,
            memory=memory, progress=moved, targets=targets, **rules,
        )  # fmt: skip
    if per_user is not None:
        write_table(scores.per_user(), per_user, per_user.suffix.removeprefix("."))
    if save is not None:
        scores.save(save)
    if format == "table":
        output().print(tables.as_rich(scores, digits))
        for line in [] if quiet else [*scores.footer(), *scores.notes]:
            output().print(line, style="dim", markup=False, soft_wrap=True)
        return
    if not quiet:
        for line in scores.notes:
            messages().print(line, style="dim", markup=False)
    texts = {
        "json": lambda: tables.as_json(scores),
        "csv": lambda: tables.as_csv(scores),
        "markdown": lambda: tables.as_markdown(scores, digits),
        "latex": lambda: tables.as_latex(scores, digits),
    }
    print(texts[format]())


evaluate.__doc__ = EXAMPLES
