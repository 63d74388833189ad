"""What commands that compare systems share: runs or saved scores come in, a table goes out."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, cast

import typer

from unskew.cli.console import messages, output
from unskew.cli.options import column_names
from unskew.errors import SettingError, choose

if TYPE_CHECKING:
    import polars as pl

    from unskew.data.ratings import Ratings
    from unskew.runs import Run

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
            raise SettingError("give --scores, or --judgments and --run: not both")
        return True
    if judgments is None or not run:
        raise SettingError("give --judgments and --run, or --scores with a saved folder")
    return False


def metric_names(metric: list[str] | None) -> list[str] | None:
    """Return the metrics asked for, None for none: several may stand between commas."""
    parts = [part for text in metric or [] for part in re.split(r",(?![^()]*\))", text)]
    return [part.strip() for part in parts if part.strip()] or None


def read_files(
    judgments: Path | None, run: Sequence[str] | None, train: Path | None, *,
    columns: str | None, duplicates: str, repeated: str = "error", **how: Any,
) -> tuple[Ratings, dict[str, Run], Ratings | None]:  # fmt: skip
    """Read test ratings, runs (see `read_run` for `how`) and, where given, training ratings."""
    from unskew.data.readers import read_ratings
    from unskew.runs import read_run

    names = column_names(columns)
    of_ratings = {key: names[key] for key in ("user", "item", "rating", "time") if key in names}
    of_runs = {key: names[key] for key in ("user", "item", "rank", "score") if key in names}
    lists = {
        name: read_run(path, duplicates=repeated, keep_scores=False, **how, **of_runs)
        for name, path in named_runs(list(run or [])).items()
    }
    tests, trained = (
        None if path is None else read_ratings(path, duplicates=duplicates, **of_ratings)
        for path in (judgments, train)
    )
    return cast("Ratings", tests), lists, trained


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


def rule_of(text: str | None) -> Any:
    """Read a gain or loss: a name, or a mapping such as 5=2,4=1."""
    if text is None or "=" not in text:
        return text
    try:
        pairs = [part.split("=") for part in text.split(",")]
        return {float(rating): float(value) for rating, value in pairs}
    except ValueError:
        raise SettingError(f"cannot read {text!r}; write a mapping as 5=2,4=1,3=0") from None


def load(folders: Sequence[Path]) -> Any:
    """Read saved scores: one folder, or several as folds."""
    from unskew.scores import Scores

    several = [Scores.load(folder) for folder in folders]
    return several[0] if len(several) == 1 else several


def show(
    shown: pl.DataFrame, whole: pl.DataFrame, *, format: str, digits: int,  # noqa: A002
    footer: Sequence[str], quiet: bool,
) -> None:  # fmt: skip
    """Print a result: as a table for people (`shown`), or for programs (`whole`)."""
    choose("format", format, FORMATS)
    lines = [] if quiet else footer
    from unskew.layout import as_json, as_markdown, cells

    header, rows, left = cells(shown, digits)
    if format == "table":
        from rich import box
        from rich.table import Table
        from rich.text import Text

        table = Table(box=box.SIMPLE_HEAD)
        for at, name in enumerate(header):
            table.add_column(Text(name), justify="left" if at in left else "right")
        for row in rows:
            table.add_row(*map(Text, row))
        output().print(table)
        for line in lines:
            output().print(line, style="dim", markup=False, soft_wrap=True)
        return
    for line in lines:
        messages().print(line, style="dim", markup=False)
    if format == "json":
        print(as_json(whole.to_dicts()))
    elif format == "csv":
        print(whole.write_csv().rstrip("\n"))
    else:
        print(as_markdown(header, rows, left))


def loaded(ratings: str, data_dir: Path | None, columns: str | None, duplicates: str) -> Any:
    """Load a data set by its name, or a file; what does not go with it is refused there."""
    from unskew.data.catalog import DATASETS, load

    options = column_names(columns)
    if duplicates != "error":
        options["duplicates"] = duplicates
    named = ratings.lower() in DATASETS and not Path(ratings).is_file()
    return load(ratings if named else Path(ratings), data_dir=data_dir, **options)
