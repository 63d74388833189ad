"""What commands that compare systems share: runs or saved scores come in, a table goes out."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from unskew.cli.console import messages, output
from unskew.cli.evaluate import named_runs, rule_of, split_metrics
from unskew.cli.options import column_names
from unskew.errors import SettingError, choose

if TYPE_CHECKING:
    import polars as pl

FORMATS = ("table", "json", "csv", "markdown")

Judgments = Annotated[
    Path | None, typer.Option("--judgments", "-j", help="Test ratings, or TREC qrels.")
]
Runs = Annotated[
    list[str] | None,
    typer.Option("--run", "-r", help="Ranked lists: FILE or NAME=FILE. Repeatable."),
]
Saved = Annotated[
    list[Path] | None,
    typer.Option(
        "--scores", help="Instead: a folder saved by evaluate --save. Repeatable, one per fold."
    ),
]
Metrics = Annotated[
    list[str] | None,
    typer.Option("--metric", "-m", help="A metric, such as nDCG@10. Repeatable."),
]
Liked = Annotated[float | None, typer.Option(help="The smallest rating that is liked.")]
Above = Annotated[
    float | None, typer.Option(help="Instead of --liked: ratings above this are liked.")
]
Gain = Annotated[str | None, typer.Option(help="See unskew evaluate --help.")]
Loss = Annotated[str | None, typer.Option(help="See unskew evaluate --help.")]
RelevanceOf = Annotated[
    str | None, typer.Option("--relevance", help="A paper's rule instead, such as mena2021.")
]
Users = Annotated[
    str, typer.Option(help="Averaged: with-test, with-relevant, with-list, both, with-train, all.")
]
Ties = Annotated[str | None, typer.Option(help="Equal scores: id, trec, random, input.")]
Depth = Annotated[
    int | None, typer.Option(help="Look at no more than this many items of each list.")
]
Threads = Annotated[int | None, typer.Option(help="Threads to use; never changes a number.")]
Format = Annotated[str, typer.Option(help="table, json, csv or markdown.")]
Digits = Annotated[int, typer.Option(help="Decimals in tables.")]
FigureFile = Annotated[
    Path | None, typer.Option("--figure", help="Draw it: .svg, .png, .pdf, .html or .json.")
]


def either(judgments: Path | None, run: Sequence[str] | None, saved: Sequence[Path] | None) -> bool:
    """Tell whether saved scores are meant; refuse what is neither one nor the other."""
    if saved:
        if judgments is not None or run:
            raise SettingError("give either --scores or --judgments and --run, not both")
        return True
    if judgments is None or not run:
        raise SettingError("give --judgments and --run, or --scores with a saved folder")
    return False


def metric_names(metric: list[str] | None) -> list[str] | None:
    """Return the metrics asked for, None for all or the default."""
    return split_metrics(metric) or None


def sources(
    judgments: Path | None, run: Sequence[str] | None, train: Path | None, *,
    columns: str | None, duplicates: str, ties: str | None, seed: int,
) -> tuple[Any, dict[str, Any], Any]:  # fmt: skip
    """Read test ratings, runs and, where given, training ratings."""
    from unskew.data.readers import read_ratings
    from unskew.runs import read_run

    names = column_names(columns)
    of_ratings = {key: names[key] for key in ("user", "item", "rating", "time") if key in names}
    of_runs = {key: names[key] for key in ("user", "item", "rank", "score") if key in names}
    lists = {
        name: read_run(path, ties=ties, seed=seed, keep_scores=False, **of_runs)
        for name, path in named_runs(list(run or [])).items()
    }
    tests = read_ratings(judgments, duplicates=duplicates, **of_ratings)
    trained = None
    if train is not None:
        trained = read_ratings(train, duplicates=duplicates, **of_ratings)
    return tests, lists, trained


def relevance_of(
    liked: float | None, above: float | None, gain: str | None, loss: str | None,
    relevance: str | None,
) -> dict[str, Any]:  # fmt: skip
    """Return how ratings are taken, as the settings that `evaluate` takes."""
    from unskew.data.relevance import Relevance

    if relevance is not None:
        if any(x is not None for x in (liked, above, gain, loss)):
            raise SettingError("--relevance replaces --liked, --above, --gain and --loss")
        return {"relevance": Relevance.paper(relevance)}
    rules = {"gain": rule_of(gain) or "rating", "loss": rule_of(loss) or "levels"}
    return {"liked": liked, "above": above, **rules}


def load(folders: Sequence[Path]) -> Any:
    """Read saved scores: one folder, or several as folds."""
    from unskew.scores import Scores

    several = [Scores.load(folder) for folder in folders]
    return several[0] if len(several) == 1 else several


def show(
    shown: pl.DataFrame, whole: pl.DataFrame, *, format: str, digits: int,  # noqa: A002
    footer: Sequence[str], notes: Sequence[str], quiet: bool,
) -> None:  # fmt: skip
    """Print a result: as a table for people (`shown`), or for programs (`whole`)."""
    choose("format", format, FORMATS)
    lines = [] if quiet else [*footer, *notes]
    if format == "table":
        from rich import box
        from rich.table import Table
        from rich.text import Text

        table = Table(box=box.SIMPLE_HEAD)
        for name, kind in shown.schema.items():
            table.add_column(Text(name), justify="right" if kind.is_numeric() else "left")
        for row in shown.iter_rows():
            table.add_row(*(Text(_cell(value, digits)) for value in row))
        output().print(table)
        for line in lines:
            output().print(line, style="dim", markup=False, soft_wrap=True)
        return
    for line in [] if quiet else notes:
        messages().print(line, style="dim", markup=False)
    if format == "json":
        print(json.dumps([_plain(row) for row in whole.to_dicts()], ensure_ascii=False))
    elif format == "csv":
        print(whole.write_csv().rstrip("\n"))
    else:
        from unskew.comparing.layout import as_markdown

        rows = [[_cell(value, digits) for value in row] for row in shown.iter_rows()]
        left = [at for at, kind in enumerate(shown.dtypes) if not kind.is_numeric()]
        print(as_markdown(shown.columns, rows, left))


def _cell(value: object, digits: int) -> str:
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return "–"
    if isinstance(value, float):
        return f"{value:.{digits}f}"
    return f"{value:,}" if isinstance(value, int) else str(value)


def _plain(row: Mapping[str, object]) -> dict[str, object]:
    return {
        key: None if isinstance(value, float) and math.isnan(value) else value
        for key, value in row.items()
    }
