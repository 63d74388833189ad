"""`unskew evaluate`: judge ranked lists."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

from unskew.checks import choose
from unskew.cli import inputs, outputs
from unskew.cli.console import progress
from unskew.cli.options import (
    INPUT,
    MEASURE,
    OUTPUT,
    RUNNING,
    USERS,
    Above,
    Columns,
    Depth,
    Digits,
    Duplicates,
    Format,
    Gain,
    Liked,
    Loss,
    Metrics,
    Quiet,
    RelevanceOf,
    Seed,
    TableFile,
    Threads,
    Ties,
    Undefined,
    Users,
    column_names,
    option,
    split_source,
)
from unskew.errors import SettingError

EXAMPLES = """
Judge the ranked lists of any recommender against test ratings.

[bold]Examples[/bold]

  unskew evaluate --judgments test.csv --run mine.parquet -m P@10 -m nDCG@10 --liked 4

  unskew evaluate -j test.csv -r mine.csv -r theirs.trec -m P@10,anti-P@10 --train train.csv

  unskew evaluate -j qrels.txt -r bm25=run1.trec -r dense=run2.trec -m map -m ndcg_cut_10

  unskew evaluate -j test.csv:user=who,item=what -r mine.csv:item=sku -m P@10 --liked 4

  unskew evaluate -j test.csv -r mine.csv -m AP --per-user values.parquet -o table.csv

  unskew evaluate -j judgments/ -r mine=lists/ -m nDCG@10 --liked 4 --on-disk judged/ --memory 4GiB

Files may be CSV, TSV, ::-separated, TREC or Parquet, also gzipped; what was assumed about them is
printed below the table. [bold]unskew metrics[/bold] lists what -m takes. With --on-disk, Parquet
files, and folders and patterns of them, need not fit into memory: values of each user and means go
to that folder, and a stopped evaluation goes on when it is started again.
"""

LARGE = "Files larger than memory"


def evaluate(  # noqa: D103 - its help is EXAMPLES
    judgments: Annotated[
        Path,
        option(
            INPUT, "Test ratings, or TREC qrels; with --on-disk also a folder.", "--judgments", "-j"
        ),
    ],
    run: Annotated[
        list[str],
        option(
            INPUT,
            "Ranked lists: FILE or NAME=FILE[:item=sku], or FOLDER. Repeatable.",
            "--run",
            "-r",
        ),
    ],
    train: Annotated[
        Path | None,
        option(INPUT, "Training ratings: for popularity, novelty, SR; checks the lists."),
    ] = None,
    items: Annotated[
        Path | None, option(INPUT, "The catalogue: for Coverage, Gini, Entropy, AUC.")
    ] = None,
    columns: Columns = None,
    duplicates: Duplicates = "error",
    repeated: Annotated[
        str, option(INPUT, "An item twice in a list: error, or first to keep its best place.")
    ] = "error",
    nan: Annotated[
        str, option(INPUT, "Scores that are NaN: error, or drop these items.")
    ] = "error",
    gaps: Annotated[
        str, option(INPUT, "Ranks that jump: close them, or keep empty slots.")
    ] = "close",
    metric: Metrics = None,
    liked: Liked = None,
    above: Above = None,
    gain: Gain = None,
    loss: Loss = None,
    relevance: RelevanceOf = None,
    targets: Annotated[
        str | None,
        option(
            MEASURE,
            "What was ranked: all-items, test-items, train-items (less --train), test-targets; "
            "adds what chance would score.",
        ),
    ] = None,
    depth: Depth = None,
    users: Users = "with-test",
    undefined: Undefined = "zero",
    ties: Ties = None,
    by: Annotated[
        str | None,
        option(USERS, "What ranks when there are both: rank or score. Default: rank; TREC score."),
    ] = None,
    on_disk: Annotated[
        Path | None,
        option(LARGE, "Judge Parquet files larger than memory, into this folder.", metavar="DIR"),
    ] = None,
    by_user: Annotated[
        bool, option(LARGE, "With --on-disk: the n-th files hold the same users.", "--by-user")
    ] = False,
    cluster: Annotated[
        str | None,
        option(LARGE, "With --on-disk: a Dask cluster, tcp://HOST:PORT or local:N."),
    ] = None,
    seed: Seed = 0,
    threads: Threads = None,
    memory: Annotated[
        str | None,
        option(
            RUNNING,
            "Working memory (default 512MiB; with --on-disk, of everything: 2GiB); never changes "
            "a number.",
        ),
    ] = None,
    to: TableFile = None,
    per_user: Annotated[
        Path | None,
        option(OUTPUT, "Write each user's values to this .parquet or .csv file.", metavar="FILE"),
    ] = None,
    save: Annotated[
        Path | None,
        option(OUTPUT, "Save the scores in this folder, to be loaded again.", metavar="DIR"),
    ] = None,
    format: Format = "table",  # noqa: A002 - the word users expect
    digits: Digits = 4,
    quiet: Quiet = False,
) -> None:
    from unskew.engine.files import write_table
    from unskew.evaluation.evaluate import MEMORY, METRICS
    from unskew.evaluation.evaluate import evaluate as judge
    from unskew.report.tables import as_csv

    choose("format", format, outputs.FORMATS)
    outputs.check_file(per_user, (".parquet", ".csv"), "--per-user")
    rules = inputs.relevance_of(liked, above, gain, loss, relevance)
    if on_disk is not None:
        _refuse(
            {
                "--train": train,
                "--items": items,
                "--targets": targets,
                "--save": save,
                "--per-user": per_user,
                "--gaps": None if gaps == "close" else gaps,
            }
        )
        _evaluate_files(
            judgments,
            run,
            inputs.metric_names(metric),
            columns,
            to,
            format,
            digits,
            quiet,
            output=on_disk,
            users=users,
            undefined=undefined,
            by=by,
            ties=ties,
            seed=seed,
            depth=depth,
            duplicates=duplicates,
            repeated=repeated,
            nan=nan,
            by_user=by_user,
            workers=threads,
            cluster=cluster,
            **({} if memory is None else {"memory": memory}),
            **rules,
        )
        return
    if by_user or cluster is not None:
        raise SettingError("--by-user and --cluster go with --on-disk FOLDER")
    sources = (str(judgments), *inputs.named_runs(run).values())
    if any(Path(split_source(source)[0]).is_dir() for source in sources):
        raise SettingError("folders of Parquet files need --on-disk FOLDER for what is written")
    tests, lists, trained = inputs.read_files(
        judgments,
        run,
        train,
        columns=columns,
        duplicates=duplicates,
        by=by,
        ties=ties,
        seed=seed,
        repeated=repeated,
        nan=nan,
        gaps=gaps,
    )
    catalogue = inputs.read_item_file(items)
    with progress("judging", quiet) as moved:
        scores = judge(
            tests,
            lists,
            inputs.metric_names(metric) or METRICS,
            train=trained,
            items=catalogue,
            users=users,
            undefined=undefined,
            ties=ties,
            seed=seed,
            depth=depth,
            threads=threads,
            memory=memory or MEMORY,
            progress=moved,
            targets=targets,
            **rules,
        )
    if per_user is not None:
        write_table(scores.per_user(), per_user, per_user.suffix.lower().removeprefix("."))
    if save is not None:
        scores.save(save)
    printout = outputs.Printout.of_result(
        scores, digits, json=scores.to_dict, csv=lambda: as_csv(scores.long_table())
    )
    outputs.deliver(printout, to, format, quiet)


def _refuse(given: dict[str, object]) -> None:
    """Refuse options that files larger than memory do not take."""
    for name, value in given.items():
        if value is not None:
            raise SettingError(
                f"{name} does not go with --on-disk: files are judged by parts of the users, and "
                f"what is written goes to that folder"
            )


def _evaluate_files(
    judgments: Path,
    run: list[str],
    metrics: list[str] | None,
    columns: str | None,
    to: Path | None,
    format: str,  # noqa: A002
    digits: int,
    quiet: bool,
    **how: Any,
) -> None:
    from unskew.evaluation.evaluate import METRICS
    from unskew.evaluation.on_disk.files import evaluate_files
    from unskew.evaluation.on_disk.parquet import source_name

    runs = inputs.named_runs(run, source_name)
    for source in (str(judgments), *runs.values()):
        if split_source(source)[1]:
            raise SettingError(
                f"{source}: columns of one file do not go with --on-disk; name them for all files "
                f"with --columns"
            )
    with progress("judging", quiet) as moved:
        scores = evaluate_files(
            judgments,
            runs,
            metrics or METRICS,
            columns=column_names(columns),
            progress=moved,
            **how,
        )
    printout = outputs.Printout.of(scores.table(), digits=digits, footer=scores.footer())
    outputs.deliver(printout, to, format, quiet)


evaluate.__doc__ = EXAMPLES
