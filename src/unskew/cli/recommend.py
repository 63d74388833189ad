"""`unskew recommend`: train a recommender and write its ranked lists."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from unskew.cli.console import messages, output
from unskew.cli.options import Columns, Duplicates, Quiet, column_names
from unskew.errors import SettingError, choose

EXAMPLES = """
Train a recommender on ratings and write a ranked list for each user.

[bold]Examples[/bold]

  unskew recommend --train train.parquet --algorithm popularity -o pop.parquet

  unskew recommend --train train.parquet --test test.parquet --targets test-items
  --algorithm wrmf --set factors=50 --depth 100 --seed 0 -o wrmf.parquet

  unskew recommend --train train.parquet --algorithm slim --save-model slim.model -o slim.csv

  unskew recommend --train train.parquet --model slim.model --depth 20 -o short.csv

[bold]Targets[/bold]

  all-items: all items but the user's training items; train-items: those with training ratings

  test-items: those with test ratings (needs --test); test-targets: those that the user rated there

[bold]unskew algorithms[/bold] lists what --algorithm takes. Files end in .parquet, .csv or .trec.
"""

KINDS = (".parquet", ".csv", ".trec")


def recommend(  # noqa: D103 - its help is EXAMPLES
    train: Annotated[Path, typer.Option(help="Training ratings.")],
    to: Annotated[Path, typer.Option("--output", "-o", help="The file to write.")],
    algorithm: Annotated[
        str | None,
        typer.Option("--algorithm", "-a", help="Default: popularity."),
    ] = None,
    setting: Annotated[
        list[str] | None, typer.Option("--set", "-s", help="A setting, NAME=VALUE. Repeatable.")
    ] = None,
    model_file: Annotated[
        Path | None,
        typer.Option("--model", help="Instead of training: a model saved for these ratings."),
    ] = None,
    save_to: Annotated[
        Path | None, typer.Option("--save-model", help="Keep the trained model in this file.")
    ] = None,
    test: Annotated[
        Path | None, typer.Option(help="Test ratings: for test-items, test-targets.")
    ] = None,
    targets: Annotated[str, typer.Option(help="Which items are ranked.")] = "all-items",
    depth: Annotated[int, typer.Option(help="Items per list.")] = 100,
    seed: Annotated[int, typer.Option(help="Same seed, same lists.")] = 0,
    ties: Annotated[str, typer.Option(help="Equal scores: id, random.")] = "id",
    columns: Columns = None,
    duplicates: Duplicates = "error",
    threads: Annotated[
        int | None, typer.Option(help="Threads to use; never changes a list.")
    ] = None,
    quiet: Quiet = False,
) -> None:
    from time import perf_counter

    from unskew.data.ratings import under_one_numbering
    from unskew.data.readers import read_ratings
    from unskew.protocol.split import Split
    from unskew.protocol.targets import BY_NAME
    from unskew.ranking import rank
    from unskew.recommend.registry import algorithm as build
    from unskew.recommend.registry import read_setting
    from unskew.recommend.saved_models import load_model, save_model

    choose("targets", targets, BY_NAME)
    if to.suffix not in KINDS:
        raise SettingError(f"--output must end in {', '.join(KINDS)}; got {to.name!r}")
    if depth < 1:
        raise SettingError(f"--depth must be at least 1, got {depth}")
    if test is None and targets.startswith("test"):
        raise SettingError(f"--targets {targets} needs the test ratings: give --test FILE")
    if model_file is not None and (algorithm or setting or save_to):
        raise SettingError("--model replaces --algorithm, --set and --save-model")
    chosen = build(algorithm or "popularity", **dict(read_setting(text) for text in setting or []))
    names = column_names(columns)
    parts = [
        read_ratings(path, duplicates=duplicates, **names)
        for path in (train, test)
        if path is not None
    ]
    trained, *tests = under_one_numbering(*parts)
    split = Split(trained, tests[0] if tests else trained.take(trained.user < 0))
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
    {".parquet": run.to_parquet, ".csv": run.to_csv, ".trec": run.to_trec}[to.suffix](to)
    if not quiet:
        output().print(
            f"{what}: {len(run):,} lists of up to {int(run.depth.max(initial=0))} items, "
            f"{'loaded' if model_file else 'trained'} in {fitted - begun:.1f} s, "
            f"ranked in {ranked - fitted:.1f} s",
            markup=False, soft_wrap=True,
        )  # fmt: skip
        empty = int((run.depth == 0).sum())
        if empty:
            messages().print(f"{empty:,} users have no list", style="dim", markup=False)
        for note in run.notes:
            messages().print(note, style="dim", markup=False)
        output().print(f"written to {to}", style="dim", markup=False)


recommend.__doc__ = EXAMPLES
