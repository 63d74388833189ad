"""`unskew evaluate`: judge ranked lists."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from unskew.cli import inputs
from unskew.cli.console import messages, output, progress
from unskew.cli.options import Columns, Duplicates, Quiet, column_names
from unskew.errors import SettingError, choose

EXAMPLES = """
Judge the ranked lists of any recommender against test ratings.

[bold]Examples[/bold]

  unskew evaluate --judgments test.csv --run mine.parquet -m P@10 -m nDCG@10 --liked 4

  unskew evaluate -j test.csv -r mine.csv -r theirs.trec -m P@10,anti-P@10 --train train.csv

  unskew evaluate -j qrels.txt -r bm25=run1.trec -r dense=run2.trec -m map -m ndcg_cut_10

  unskew evaluate -j test.csv -r mine.csv -m AP --per-user values.parquet --format json

  unskew evaluate -j judgments/ -r mine=lists/ -m nDCG@10 --liked 4 --output judged/ --memory 4GiB

Files may be CSV, TSV, ::-separated, TREC or Parquet, also gzipped; what was assumed about them is
printed below the table. [bold]unskew metrics[/bold] lists what -m takes. With --output, Parquet
files, and folders and patterns of them, need not fit into memory: values of each user and means go
to that folder, and a stopped evaluation goes on when it is started again.
"""


def evaluate(  # noqa: D103 - its help is EXAMPLES
    judgments: Annotated[
        Path,
        typer.Option(
            "--judgments", "-j", help="Test ratings, or TREC qrels; with --output also a folder."
        ),
    ],
    run: Annotated[
        list[str],
        typer.Option("--run", "-r", help="Ranked lists: FILE or NAME=FILE, or FOLDER. Repeatable."),
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
        str | None,
        typer.Option(
            help="Working memory (default 512MiB; with --output, of everything: 2GiB); never "
            "changes a number."
        ),
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option(
            "--output", "-o", help="Judge Parquet files larger than memory, into this folder."
        ),
    ] = None,
    by_user: Annotated[
        bool,
        typer.Option("--by-user", help="With --output: the n-th files hold the same users."),
    ] = False,
    cluster: Annotated[
        str | None,
        typer.Option(help="With --output: a Dask cluster, tcp://HOST:PORT or local:N."),
    ] = None,
    quiet: Quiet = False,
) -> None:
    from unskew.evaluation import MEMORY, METRICS
    from unskew.evaluation import evaluate as judge
    from unskew.files import write_table
    from unskew.reporting import tables

    choose("format", format, tables.FORMATS)
    if per_user is not None and per_user.suffix not in (".parquet", ".csv"):
        raise SettingError(f"--per-user must end in .parquet or .csv, got {per_user.name!r}")
    rules = inputs.relevance_of(liked, above, gain, loss, relevance)
    if out is not None:
        _refuse({"--train": train, "--items": items, "--targets": targets, "--save": save,
                 "--per-user": per_user, "--gaps": None if gaps == "close" else gaps})  # fmt: skip
        _evaluate_files(
            judgments, run, inputs.metric_names(metric), columns, format, digits, quiet,
            output=out, users=users, undefined=undefined, by=by, ties=ties, seed=seed, depth=depth,
            duplicates=duplicates, repeated=repeated, nan=nan, by_user=by_user, workers=threads,
            cluster=cluster, **({} if memory is None else {"memory": memory}), **rules,
        )  # fmt: skip
        return
    if by_user or cluster is not None:
        raise SettingError("--by-user and --cluster go with --output FOLDER")
    if judgments.is_dir() or any(Path(text.partition("=")[2] or text).is_dir() for text in run):
        raise SettingError("folders of Parquet files need --output FOLDER for what is written")
    tests, lists, trained = inputs.read_files(
        judgments, run, train, columns=columns, duplicates=duplicates,
        by=by, ties=ties, seed=seed, repeated=repeated, nan=nan, gaps=gaps,
    )  # fmt: skip
    with progress("judging", quiet) as moved:
        scores = judge(
            tests, lists, inputs.metric_names(metric) or METRICS, train=trained, items=items,
            users=users, undefined=undefined, ties=ties, seed=seed, depth=depth, threads=threads,
            memory=memory or MEMORY, progress=moved, targets=targets, **rules,
        )  # fmt: skip
    if per_user is not None:
        write_table(scores.per_user(), per_user, per_user.suffix.removeprefix("."))
    if save is not None:
        scores.save(save)
    if format == "table":
        output().print(tables.as_rich(scores, digits))
        for line in [] if quiet else scores.footer():
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


def _refuse(given: dict[str, object]) -> None:
    """Refuse options that files larger than memory do not take."""
    for option, value in given.items():
        if value is not None:
            raise SettingError(
                f"{option} does not go with --output: files are judged by parts of the users, and "
                f"what is written goes to that folder"
            )


def _evaluate_files(
    judgments: Path, run: list[str], metrics: list[str] | None, columns: str | None,
    format: str, digits: int, quiet: bool, **how: Any,  # noqa: A002
) -> None:  # fmt: skip
    from unskew.evaluation import METRICS
    from unskew.experiment._parquet import source_name
    from unskew.experiment.big import evaluate_files

    if format == "latex":
        raise SettingError("--format latex does not go with --output: use table, csv or markdown")
    runs: dict[str, str] = {}
    for text in run:
        name, equals, path = text.partition("=")
        if not equals or Path(text).exists():
            name, path = source_name(text), text
        if name in runs:
            raise SettingError(f"two runs are named {name!r}; name them with --run NAME=FOLDER")
        runs[name] = path
    with progress("judging", quiet) as moved:
        scores = evaluate_files(
            judgments,
            runs,
            metrics or METRICS,
            columns=column_names(columns),
            progress=moved,
            **how,
        )
    table = scores.table()
    inputs.show(table, table, format=format, digits=digits, footer=scores.footer(), quiet=quiet)


evaluate.__doc__ = EXAMPLES
