"""`unskew bias`: what popularity does to metrics on some data."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from unskew.checks import MOST_DEPTH, MOST_DRAWS, choose
from unskew.cli import inputs, outputs
from unskew.cli.command import App
from unskew.cli.console import messages
from unskew.cli.options import (
    INPUT,
    LIST_COLUMNS,
    MEASURE,
    OUTPUT,
    Columns,
    DataDir,
    Duplicates,
    FigureFile,
    FiguresDir,
    Quiet,
    Ratings,
    Seed,
    TableFile,
    TextFormat,
    Threads,
    at_least,
    option,
)
from unskew.errors import SettingError

if TYPE_CHECKING:
    from unskew.data.dataset import Dataset

bias_app = App(help="What popularity does to metrics on some data, and which to trust.")


Liked = Annotated[
    float | None, option(MEASURE, "The smallest rating that is liked; 4 on a 1-5 scale.")
]
RandomFile = Annotated[
    Path | None,
    option(INPUT, "Judgments of random items: then the truth is estimated.", "--random"),
]
Users = Annotated[
    int | None,
    option(
        MEASURE,
        "How many users there are; those with ratings unless given.",
        **at_least(1, MOST_DEPTH),
    ),
]
Sample = Annotated[
    int | None,
    option(
        MEASURE,
        "Look at this many random pairs of items instead of all.",
        **at_least(1, 100 * MOST_DRAWS),
    ),
]


@bias_app.command("describe")
def describe(
    ratings: Ratings,
    random: RandomFile = None,
    data_dir: DataDir = None,
    columns: Columns = None,
    duplicates: Duplicates = "error",
    liked: Liked = None,
    users: Users = None,
    sample: Sample = None,
    seed: Seed = 0,
    threads: Threads = None,
    to: TableFile = None,
    figure: Annotated[
        list[str] | None,
        option(
            OUTPUT,
            "Draw one: FILE (popularity), or NAME=FILE with positive-ratio, optimal, cases, "
            "dependence. Repeatable.",
            "--figure",
            metavar="[NAME=]FILE",
            callback=outputs.figure_files,
        ),
    ] = None,
    figures: FiguresDir = None,
    format: TextFormat = "text",  # noqa: A002 - the word users expect
    quiet: Quiet = False,
) -> None:
    """Describe how popularity, ratings and relevance go together, and which metrics to trust.

    [bold]Examples[/bold]

      unskew bias describe ratings.csv --liked 4

      unskew bias describe train.csv --random random.csv --liked 4 --figures figures/

      unskew bias describe cm100k:observed=familiar -o bias.md
    """
    from unskew.bias.describe import FIGURES, describe_bias
    from unskew.report.writing import save_each

    choose("format", format, outputs.TEXT_FORMATS)
    wanted = outputs.figures_of(figure, FIGURES)
    data, truth = _both(ratings, random, data_dir, columns, duplicates)
    for note in () if quiet else data.notes:
        messages().print(note, style="dim", markup=False)
    report = describe_bias(
        data, liked=liked, random=truth, users=users, sample=sample, seed=seed, threads=threads
    )
    outputs.draw(wanted, report.figure)
    if figures is not None:
        save_each({name: report.figure(name) for name in report.figures()}, figures)
    printout = outputs.Printout.of_result(report, text=report.__str__, json=report.to_dict)
    outputs.deliver(printout, to, format, quiet)


@bias_app.command("pairs")
def pairs(
    ratings: Ratings,
    random: RandomFile = None,
    run: Annotated[
        list[Path] | None,
        option(INPUT, "Twice: only items that two systems recommend.", "--run", "-r"),
    ] = None,
    data_dir: DataDir = None,
    columns: Columns = None,
    duplicates: Duplicates = "error",
    liked: Liked = None,
    k: Annotated[
        int | None,
        option(
            MEASURE,
            "With --run: items of each list looked at; 10.",
            "-k",
            **at_least(1, MOST_DEPTH),
        ),
    ] = None,
    users: Users = None,
    sample: Sample = None,
    seed: Seed = 0,
    threads: Threads = None,
    to: TableFile = None,
    figure: FigureFile = None,
    format: TextFormat = "text",  # noqa: A002 - the word users expect
    quiet: Quiet = False,
) -> None:
    """Count on which pairs of items precision and anti-precision disagree, and why.

    [bold]Examples[/bold]

      unskew bias pairs ratings.csv --liked 4

      unskew bias pairs train.csv --liked 4 --run mine.csv --run theirs.trec -k 10

      unskew bias pairs ratings.csv --liked 4 --format json
    """
    from unskew.bias.pairs import item_pairs, pairs_of_systems

    choose("format", format, outputs.TEXT_FORMATS)
    figures = outputs.figures_of(figure, ("cases",))
    if run and len(run) != 2:
        raise SettingError(f"give --run twice, for two systems; got {len(run)}")
    if k is not None and not run:
        raise SettingError("-k is for --run: say whose lists")
    data, truth = _both(ratings, random, data_dir, columns, duplicates)
    how: dict[str, Any] = {
        "liked": liked,
        "random": truth,
        "users": users,
        "sample": sample,
        "seed": seed,
        "threads": threads,
    }
    if run:
        a, b = (inputs.read_run_file(path, columns) for path in run)
        found = pairs_of_systems(data, a, b, 10 if k is None else k, **how)
    else:
        found = item_pairs(data, **how)
    outputs.draw(figures, lambda _: found.figure())
    printout = outputs.Printout.of_result(found, text=found.__str__, json=found.to_dict)
    outputs.deliver(printout, to, format, quiet)


def _both(
    ratings: str, random: Path | None, data_dir: Path | None, columns: str | None, duplicates: str
) -> tuple[Dataset, Any]:
    """Read ratings and, where given, random judgments."""
    data: Dataset = inputs.loaded(ratings, data_dir, columns, duplicates, others=LIST_COLUMNS)
    if random is None:
        return data, None
    return data, inputs.read_random_file(
        random, columns, duplicates, others=LIST_COLUMNS, data_dir=data_dir
    )
