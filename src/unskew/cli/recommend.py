"""`unskew recommend`: train a recommender and write its ranked lists."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from unskew.checks import MOST_DEPTH, choose
from unskew.cli import inputs, outputs
from unskew.cli.console import messages, output
from unskew.cli.options import (
    INPUT,
    OUTPUT,
    RATING_COLUMNS,
    Columns,
    DataDir,
    Duplicates,
    Quiet,
    Seed,
    Threads,
    at_least,
    file_columns,
    option,
)
from unskew.errors import SettingError

if TYPE_CHECKING:
    import polars as pl

    from unskew.data.ratings import Ratings

EXAMPLES = """
Train a recommender on ratings and write a ranked list for each user.

[bold]Examples[/bold]

  unskew recommend --train train.parquet --algorithm popularity -o pop.parquet

  unskew recommend --train train.parquet --test test.parquet --targets test-items
  --algorithm wrmf --set factors=50 --depth 100 --seed 0 -o wrmf.parquet

  unskew recommend --train train.parquet --algorithm slim --save-model slim.model -o slim.csv

  unskew recommend --train train.parquet --model slim.model --depth 20 -o short.csv

  unskew recommend --train train.csv --users test.csv -o lists-of-test-users-too.csv

[bold]Targets[/bold]

  all-items: all items but the user's training items; train-items: those with training ratings

  test-items: those with test ratings (needs --test); test-targets: those that the user rated there

[bold]unskew algorithms[/bold] lists what --algorithm takes. Files end in .parquet, .csv or .trec.
"""

LISTS = "Lists"
MODEL = "Model"


def recommend(  # noqa: D103 - its help is EXAMPLES
    train: Annotated[Path, option(INPUT, "Training ratings: a file, or a named data set.")],
    to: Annotated[
        Path,
        option(
            OUTPUT,
            f"The lists, as its ending says: {', '.join(outputs.LISTS)}.",
            "--output",
            "-o",
            metavar="FILE",
            callback=outputs.lists_file,
        ),
    ],
    test: Annotated[
        Path | None, option(INPUT, "Test ratings: for test-items, test-targets.")
    ] = None,
    users: Annotated[
        Path | None,
        option(INPUT, "Also lists for these users, trained on or not: a file with a column user."),
    ] = None,
    data_dir: DataDir = None,
    columns: Columns = None,
    duplicates: Duplicates = "error",
    algorithm: Annotated[
        str | None, option(MODEL, "Default: popularity.", "--algorithm", "-a")
    ] = None,
    setting: Annotated[
        list[str] | None, option(MODEL, "A setting, NAME=VALUE. Repeatable.", "--set", "-s")
    ] = None,
    model_file: Annotated[
        Path | None,
        option(MODEL, "Instead of training: a model saved for these ratings.", "--model"),
    ] = None,
    save_to: Annotated[
        Path | None, option(MODEL, "Keep the trained model in this file.", "--save-model")
    ] = None,
    targets: Annotated[str, option(LISTS, "Which items are ranked.")] = "all-items",
    depth: Annotated[int, option(LISTS, "Items per list.", **at_least(1, MOST_DEPTH))] = 100,
    ties: Annotated[str, option(LISTS, "Equal scores: id, random.")] = "id",
    seed: Seed = 0,
    threads: Threads = None,
    quiet: Quiet = False,
) -> None:
    from time import perf_counter

    from unskew.data.ratings import under_one_numbering
    from unskew.data.readers import read_items
    from unskew.judging.rank import rank
    from unskew.recommend.registry import algorithm as build
    from unskew.recommend.registry import read_setting
    from unskew.recommend.saved_models import load_model, save_model
    from unskew.splits.split import Split
    from unskew.targets.designs import BY_NAME

    choose("targets", targets, BY_NAME)
    inputs.check_data_dir(data_dir, train, test)
    if test is None and targets.startswith("test"):
        raise SettingError(f"--targets {targets} needs the test ratings: give --test FILE")
    if model_file is not None and (algorithm or setting or save_to):
        raise SettingError("--model replaces --algorithm, --set and --save-model")
    chosen = build(algorithm or "popularity", **dict(read_setting(text) for text in setting or []))
    parts = [
        inputs.read_rating_file(path, columns, duplicates, data_dir=data_dir)
        for path in (train, test)
        if path is not None
    ]
    asked = None
    if users is not None:
        path, names = file_columns(users, columns, ("user",), RATING_COLUMNS)
        asked = read_items(path, names.get("user", "user"))
        parts.append(_without_ratings(asked, parts[0]))
    trained, *tests = under_one_numbering(*parts)
    split = Split(trained, tests[0] if test is not None else trained.take(trained.user < 0))
    lowest = float(split.test.value.min(initial=1.0))  # no target depends on what is liked
    lists = BY_NAME[targets]().lists(split, liked=lowest, seed=seed)
    begun = perf_counter()
    if model_file is not None:
        model, what = load_model(model_file, trained), str(model_file)
    else:
        model, what = chosen.fit(trained, seed), repr(chosen)
    fitted = perf_counter()
    if save_to is not None:
        save_model(model, save_to, trained, chosen)
    run = rank(model, lists, depth, ties=ties, seed=seed, threads=threads)
    ranked = perf_counter()
    write = {"parquet": run.to_parquet, "csv": run.to_csv, "trec": run.to_trec}
    write[outputs.LISTS[to.suffix.lower()]](to)
    if not quiet:
        output().print(
            f"{what}: {len(run):,} lists of up to {int(run.depth.max(initial=0))} items, "
            f"{'loaded' if model_file else 'trained'} in {fitted - begun:.1f} s, "
            f"ranked in {ranked - fitted:.1f} s",
            markup=False,
            soft_wrap=True,
        )
        if asked is not None:
            cold = sum(
                trained.start[code] == trained.start[code + 1]
                for code in trained.users.codes(asked)
            )
            line = f"{cold:,} of the {len(asked):,} users in {users} have no training rating"
            messages().print(line, style="dim", markup=False)
        empty = int((run.depth == 0).sum())
        if empty:
            messages().print(f"{empty:,} users have no list", style="dim", markup=False)
        for note in run.notes:
            messages().print(note, style="dim", markup=False)
        output().print(f"written to {to}", style="dim", markup=False)


recommend.__doc__ = EXAMPLES


def _without_ratings(users: pl.Series, train: Ratings) -> Ratings:
    """Return no ratings, under ids that hold these users and none but training items."""
    from unskew.data.ratings import Ratings

    some = Ratings.of(users, train.items.raw([0] * len(users)))
    return some.take(some.user < 0)
