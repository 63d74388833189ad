"""`unskew bias`: what popularity does to metrics on some data."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from unskew.cli.command import App
from unskew.cli.options import Columns, Duplicates, column_names
from unskew.errors import SettingError, choose
from unskew.layout import as_json

if TYPE_CHECKING:
    from unskew.data.dataset import Dataset

bias_app = App(help="What popularity does to metrics on some data, and which to trust.")

FORMATS = ("text", "json", "markdown")

Source = Annotated[str, typer.Argument(metavar="RATINGS", help="A file, or a named data set.")]
Liked = Annotated[
    float | None, typer.Option(help="The smallest rating that is liked; 4 on a 1-5 scale.")
]
RandomFile = Annotated[
    Path | None,
    typer.Option("--random", help="Judgments of random items: then the truth is estimated."),
]
Users = Annotated[
    int | None, typer.Option(help="How many users there are; those with ratings unless given.")
]
Sample = Annotated[
    int | None, typer.Option(help="Look at this many random pairs of items instead of all.")
]
Seed = Annotated[int, typer.Option(help="Same seed, same sample.")]
DataDir = Annotated[
    Path | None,
    typer.Option(help="The folder of named data sets; default: the variable UNSKEW_DATA."),
]
Format = Annotated[str, typer.Option(help="text, json or markdown.")]
Threads = Annotated[int | None, typer.Option(help="Threads to use; never changes a number.")]


@bias_app.command("describe")
def describe(
    ratings: Source,
    liked: Liked = None,
    random: RandomFile = None,
    users: Users = None,
    sample: Sample = None,
    seed: Seed = 0,
    data_dir: DataDir = None,
    columns: Columns = None,
    duplicates: Duplicates = "error",
    figures: Annotated[
        Path | None, typer.Option(help="Draw all figures into this folder, as SVG.")
    ] = None,
    format: Format = "text",  # noqa: A002 - the word users expect
    threads: Threads = None,
) -> None:
    """Describe how popularity, ratings and relevance go together, and which metrics to trust.

    [bold]Examples[/bold]

      unskew bias describe ratings.csv --liked 4

      unskew bias describe train.csv --random random.csv --liked 4 --figures figures/
    """
    from unskew.bias.describe import describe_bias
    from unskew.layout import as_markdown

    choose("format", format, FORMATS)
    data, truth = _both(ratings, random, data_dir, columns, duplicates)
    report = describe_bias(
        data, liked=liked, random=truth, users=users, sample=sample, seed=seed, threads=threads
    )
    if figures is not None:
        figures.mkdir(parents=True, exist_ok=True)
        for name in report.figures():
            report.figure(name).save(figures / f"{name}.svg")
    if format == "markdown":
        tables = [f"{as_markdown(*section)}\n" for section in report.sections()]
        lines = [*report.header(), *report.footer(), str(report.verdict)]
        print("\n".join([*tables, "\n\n".join(lines)]))
    else:
        print(as_json(report.to_dict()) if format == "json" else str(report))


@bias_app.command("pairs")
def pairs(
    ratings: Source,
    liked: Liked = None,
    random: RandomFile = None,
    run: Annotated[
        list[Path] | None,
        typer.Option("--run", "-r", help="Twice: only items that two systems recommend."),
    ] = None,
    k: Annotated[
        int | None, typer.Option("-k", help="With --run: items of each list looked at; 10.")
    ] = None,
    users: Users = None,
    sample: Sample = None,
    seed: Seed = 0,
    data_dir: DataDir = None,
    columns: Columns = None,
    duplicates: Duplicates = "error",
    figure: Annotated[
        Path | None, typer.Option(help="Draw it: .svg, .png, .pdf, .html or .json.")
    ] = None,
    format: Format = "text",  # noqa: A002 - the word users expect
    threads: Threads = None,
) -> None:
    """Count on which pairs of items precision and anti-precision disagree, and why.

    [bold]Examples[/bold]

      unskew bias pairs ratings.csv --liked 4

      unskew bias pairs train.csv --liked 4 --run mine.csv --run theirs.trec -k 10

      unskew bias pairs ratings.csv --liked 4 --format json
    """
    from unskew.bias.pairs import item_pairs, pairs_of_systems
    from unskew.layout import as_markdown

    choose("format", format, FORMATS)
    if run and len(run) != 2:
        raise SettingError(f"give --run twice, for two systems; got {len(run)}")
    if k is not None and not run:
        raise SettingError("-k is for --run: say whose lists")
    data, truth = _both(ratings, random, data_dir, columns, duplicates)
    how: dict[str, Any] = {
        "liked": liked, "random": truth, "users": users, "sample": sample, "seed": seed,
        "threads": threads,
    }  # fmt: skip
    if run:
        found = pairs_of_systems(data, run[0], run[1], 10 if k is None else k, **how)
    else:
        found = item_pairs(data, **how)
    if figure is not None:
        found.figure().save(figure)
    if format == "markdown":
        lines = [*found.footer(), str(found.verdict)]
        print("\n".join([f"{as_markdown(*found.grid())}\n", "\n\n".join(lines)]))
    else:
        print(as_json(found.to_dict()) if format == "json" else str(found))


def _both(
    ratings: str, random: Path | None, data_dir: Path | None, columns: str | None, duplicates: str
) -> tuple[Dataset, Any]:
    """Read ratings and, where given, random judgments."""
    from unskew.data.readers import read_ratings

    truth = None
    if random is not None:
        truth = read_ratings(random, duplicates=duplicates, **_names(columns))
    return _ratings(ratings, data_dir, columns, duplicates), truth


def _ratings(source: str, data_dir: Path | None, columns: str | None, duplicates: str) -> Dataset:
    """Read a file, or load a named data set."""
    from unskew.data.catalog import DATASETS, load

    if source.lower() in DATASETS:
        if columns is not None or duplicates != "error":
            raise SettingError("--columns and --duplicates are for files, not named data sets")
        return load(source, data_dir=data_dir)
    return load(source, data_dir=data_dir, duplicates=duplicates, **_names(columns))


def _names(columns: str | None) -> dict[str, Any]:
    names = column_names(columns)
    return {key: names[key] for key in ("user", "item", "rating", "time") if key in names}
