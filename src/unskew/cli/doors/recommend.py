"""`unskew recommend`: train a recommender and write its ranked lists."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from unskew.checks import choose
from unskew.cli import files as formats
from unskew.cli import inputs, outputs
from unskew.cli.files import RATING_COLUMNS, file_columns
from unskew.cli.options import ComputeOptions, NamedFileOptions
from unskew.cli.parameters import Option, Options, OptionsOf, bundle
from unskew.errors import SettingError, without_credentials
from unskew.report.text import counted

if TYPE_CHECKING:
    import polars as pl

    from unskew.data.ratings import Ratings
    from unskew.recommend.model import Algorithm
    from unskew.runs import Run
    from unskew.splits.split import Split


@bundle
class ModelOptions:
    """Which model recommends.

    Model
    -----
    algorithm
        The algorithm; unskew algorithms lists them. Default: popularity.
    setting
        A setting, NAME=VALUE. Repeatable.
    model
        Use a model saved for these ratings, instead of training one.
    save_model
        Save the trained model to this file.
    """

    algorithm: str | None = None
    setting: list[str] | None = None
    model: Path | None = None
    save_model: Path | None = None


@bundle
class PartOptions:
    """The ratings and users that lists are made for.

    Input
    -----
    train
        Training ratings: a file, or a named data set.
    test
        Test ratings: for the targets test-items and test-targets.
    users
        Also make lists for these users, with or without training ratings: a file with a column
        user.
    """

    train: str
    test: str | None = None
    users: str | None = None
    files: NamedFileOptions


def recommend_command(
    *,
    parts: PartOptions,
    models: ModelOptions,
    targets: str = "all-items",
    ranking: Annotated[Options, OptionsOf("judging.rank:rank", {"Lists": "depth ties"})],
    compute: ComputeOptions,
    output: Annotated[
        Path,
        Option(
            formats.file_check(formats.LISTS, no_stream="name a file, such as lists.parquet"),
            "FILE",
        ),
    ],
    quiet: bool = False,
) -> None:
    """Train a recommender on ratings and write a ranked list for each user.

    [bold]Examples[/bold]

      unskew recommend --train train.parquet --algorithm popularity -o pop.parquet

      unskew recommend --train train.parquet --test test.parquet --targets test-items
      --algorithm wrmf --set factors=50 --depth 100 --seed 0 -o wrmf.parquet

      unskew recommend --train train.parquet --algorithm slim --save-model slim.model -o slim.csv

      unskew recommend --train train.parquet --model slim.model --depth 20 -o short.csv

      unskew recommend --train train.csv --users test.csv -o lists-of-test-users-too.csv

    [bold]Targets[/bold]

      all-items: all items except the user's training items; train-items: those with training
      ratings

      test-items: those with test ratings (needs --test); test-targets: those that the user rated
      there

    [bold]unskew algorithms[/bold] lists what --algorithm takes.

    Lists
    -----
    targets
        Items to rank: all-items, train-items, test-items, test-targets.

    Output
    ------
    output
        File of the lists; its ending selects the format: .parquet, .csv, .trec.
    """
    from time import perf_counter

    from unskew.judging.rank import rank
    from unskew.recommend.saved_models import load_model, save_model
    from unskew.targets.designs import BY_NAME

    choose("targets", targets, BY_NAME)
    inputs.check_data_dir(parts.files.data_dir, parts.train, parts.test)
    if parts.test is None and targets.startswith("test"):
        raise SettingError(f"--targets {targets} needs the test ratings: give --test FILE")
    algorithm = _algorithm(models)
    split, users = _read(parts)
    lowest = float(split.test.value.min(initial=1.0))  # no target depends on what is liked
    lists = BY_NAME[targets]().lists(split, liked=lowest, seed=compute.seed)
    times = [perf_counter()]
    if models.model is not None:
        model, name = load_model(models.model, split.train), str(models.model)
    else:
        model, name = algorithm.fit(split.train, compute.seed), repr(algorithm)
    times.append(perf_counter())
    if models.save_model is not None:
        save_model(model, models.save_model, split.train, algorithm)
    times.append(perf_counter())
    run = rank(model, lists, **vars(ranking), **vars(compute))
    times.append(perf_counter())
    write = {"parquet": run.to_parquet, "csv": run.to_csv, "trec": run.to_trec}
    write[formats.LISTS[output.suffix.lower()]](output)
    if quiet:
        return
    outputs.say(
        f"{name}: {counted(len(run), 'list')} of up to "
        f"{counted(int(run.depth.max(initial=0)), 'item')}, "
        f"{'loaded' if models.model else 'trained'} in {times[1] - times[0]:.1f} s, ranked in "
        f"{times[3] - times[2]:.1f} s"
    )
    for line in _notes(run, split.train, users, parts.users):
        outputs.note(line)
    outputs.say(f"written to {output}", dim=True)


def _algorithm(options: ModelOptions) -> Algorithm:
    """Return the algorithm that is trained, unless a saved model is loaded."""
    from unskew.recommend.registry import algorithm, read_setting

    if options.model is not None and (options.algorithm or options.setting or options.save_model):
        raise SettingError("--model replaces --algorithm, --set and --save-model")
    settings = dict(read_setting(text) for text in options.setting or [])
    return algorithm(options.algorithm or "popularity", **settings)


def _read(parts: PartOptions) -> tuple[Split, pl.Series | None]:
    """Read training and test ratings, and the users who get lists besides."""
    from unskew.data.ratings import under_one_numbering
    from unskew.data.read.ratings_files import read_items
    from unskew.splits.split import Split

    read = [
        inputs.read_rating_file(path, parts.files)
        for path in (parts.train, parts.test)
        if path is not None
    ]
    users = None
    if parts.users is not None:
        path, names = file_columns(parts.users, parts.files.columns, ("user",), RATING_COLUMNS)
        users = read_items(path, names.get("user", "user"))
        read.append(_without_ratings(users, read[0]))
    train, *others = under_one_numbering(*read)
    test = others[0] if parts.test is not None else train.take(train.user < 0)
    return Split(train, test), users


def _without_ratings(users: pl.Series, train: Ratings) -> Ratings:
    """Return no ratings, under ids that hold these users and none but training items."""
    from unskew.data.ratings import Ratings

    ratings = Ratings.of(users, train.items.raw([0] * len(users)))
    return ratings.take(ratings.user < 0)


def _notes(run: Run, train: Ratings, users: pl.Series | None, source: str | None) -> list[str]:
    """Return what to know about the lists: users without ratings, users without a list."""
    lines = []
    if users is not None:
        cold = sum(train.start[code] == train.start[code + 1] for code in train.users.codes(users))
        verb = "has" if cold == 1 else "have"
        of_all = f"{cold:,} of {counted(len(users), 'user')} in {without_credentials(str(source))}"
        lines.append(f"{of_all} {verb} no training rating")
    empty = int((run.depth == 0).sum())
    if empty:
        lines.append(f"{counted(empty, 'user has', 'users have')} no list")
    return [*lines, *run.notes]
