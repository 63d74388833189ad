"""`unskew evaluate`: judge ranked lists."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Annotated, Any

import typer

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
    metric: Annotated[
        list[str] | None,
        typer.Option("--metric", "-m", help="A metric, such as nDCG@10. Repeatable."),
    ] = None,
    liked: Annotated[float | None, typer.Option(help="The smallest rating that is liked.")] = None,
    above: Annotated[
        float | None, typer.Option(help="Instead of --liked: ratings above this are liked.")
    ] = None,
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
    relevance: Annotated[
        str | None, typer.Option(help="A paper's rule instead, such as mena2021.")
    ] = None,
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
    users: Annotated[
        str,
        typer.Option(help="Averaged: with-test, with-relevant, with-list, both, with-train, all."),
    ] = "with-test",
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
    depth: Annotated[
        int | None, typer.Option(help="Look at no more than this many items of each list.")
    ] = None,
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
    digits: Annotated[int, typer.Option(help="Decimals in tables.")] = 4,
    threads: Annotated[
        int | None, typer.Option(help="Threads to use; never changes a number.")
    ] = None,
    memory: Annotated[
        str, typer.Option(help="Working memory, such as 512MiB; never changes a number.")
    ] = "512MiB",
    quiet: Quiet = False,
) -> None:
    from unskew.data.readers import read_ratings
    from unskew.data.relevance import Relevance
    from unskew.evaluation import METRICS
    from unskew.evaluation import evaluate as judge
    from unskew.files import write_table
    from unskew.report import tables
    from unskew.runs import read_run

    choose("format", format, tables.FORMATS)
    if per_user is not None and per_user.suffix not in (".parquet", ".csv"):
        raise SettingError(f"--per-user must end in .parquet or .csv, got {per_user.name!r}")
    if relevance is not None and any(x is not None for x in (liked, above, gain, loss)):
        raise SettingError("--relevance replaces --liked, --above, --gain and --loss")
    names = column_names(columns)
    of_ratings = {key: names[key] for key in ("user", "item", "rating", "time") if key in names}
    of_runs = {key: names[key] for key in ("user", "item", "rank", "score") if key in names}

    def ratings(path: Path) -> Any:
        return read_ratings(path, duplicates=duplicates, **of_ratings)

    lists = {
        name: read_run(
            path, by=by, ties=ties, seed=seed, duplicates=repeated, nan=nan, gaps=gaps,
            keep_scores=False, **of_runs,
        )
        for name, path in named_runs(run).items()
    }  # fmt: skip
    with progress("judging", quiet) as moved:
        scores = judge(
            ratings(judgments), lists, split_metrics(metric) or METRICS,
            liked=liked, above=above, gain=rule_of(gain) or "rating",
            loss=rule_of(loss) or "levels",
            relevance=None if relevance is None else Relevance.paper(relevance),
            train=None if train is None else ratings(train), items=items, users=users,
            undefined=undefined, ties=ties, seed=seed, depth=depth, threads=threads,
            memory=memory, progress=moved, targets=targets,
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


def named_runs(runs: list[str]) -> dict[str, str]:
    """Name each run after NAME=FILE or its file's stem."""
    from unskew.runs import system_name

    named: dict[str, str] = {}
    for text in runs:
        name, equals, path = text.partition("=")
        if not equals or Path(text).exists():
            name, path = system_name(text), text
        if name in named:
            raise SettingError(f"two runs are named {name!r}; name them with --run NAME=FILE")
        named[name] = path
    return named


def split_metrics(metrics: list[str] | None) -> list[str]:
    """Allow several metrics in one option, separated by commas outside parentheses."""
    parts = [part for text in metrics or [] for part in re.split(r",(?![^()]*\))", text)]
    return [part.strip() for part in parts if part.strip()]


def rule_of(text: str | None) -> Any:
    """Read a gain or loss: a name, or a mapping such as 5=2,4=1."""
    if text is None or "=" not in text:
        return text
    try:
        pairs = [part.split("=") for part in text.split(",")]
        return {float(rating): float(value) for rating, value in pairs}
    except ValueError:
        raise SettingError(f"cannot read {text!r}; write a mapping as 5=2,4=1,3=0") from None
