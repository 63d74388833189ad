"""`unskew bias null` and `unskew bias truth`: protocols tried where the truth is known."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from unskew.checks import MOST_DEPTH, MOST_DRAWS, MOST_REPEATS, choose
from unskew.cli import inputs, outputs
from unskew.cli.console import progress
from unskew.cli.options import (
    INPUT,
    MEASURE,
    RUNNING,
    USERS,
    Algorithms,
    Columns,
    DataDir,
    Duplicates,
    FigureFile,
    Metrics,
    Quiet,
    Ratings,
    Seed,
    StoreDir,
    TableFile,
    TextFormat,
    Users,
    Workers,
    at_least,
    option,
)
from unskew.errors import SettingError

if TYPE_CHECKING:
    from unskew.recommend.model import Algorithm


Liked = Annotated[
    float | None, option(MEASURE, "The smallest rating that is liked; 4 unless the data say.")
]
Folds = Annotated[
    int | None,
    option(
        MEASURE,
        "Folds of the random split, instead of one test share.",
        **at_least(2, MOST_REPEATS),
    ),
]

NULL = """
Run protocols on the ratings with relevance drawn anew: what they show then is their own doing.

[bold]Examples[/bold]

  unskew bias null ratings.csv --liked 4

  unskew bias null ratings.csv --designs random,flat,test-targets -a popularity -a user-knn:k=50

  unskew bias null ratings.csv --null iid --null within-item --repeats 10 --format json

[bold]Nulls[/bold]

  iid: all values drawn independently; within-user, within-item: values shuffled there; clusters:
  values shuffled within groups of users x groups of items

[bold]Designs[/bold]

  random, flat, percentiles, judgment-bins, slices, test-targets, forced, forced-raw (castells2018)

[bold]Columns[/bold]

  ratio: the value on null data / what chance scores there; 1 for every system if a design is fair

  null_share: how much of what a system has above chance it has on null data too
"""

TRUTH = """
Set what protocols observe beside what is true, in a world or by ratings of random items.

[bold]Examples[/bold]

  unskew bias truth train.csv --random random.csv --liked 4 -m Recall@10 -m anti-P@10

  unskew bias truth coat --intervention full --intervention skew --intervention wtd -m Recall@10

  unskew bias truth --world inverted --users 500 --items 300 -a popularity -a average-rating

The error is in percent of the truth; tau compares the order of systems with the true one. Both are
of the users for whom the metric is defined (recall: those with a liked test item); columns ending
in _zero count the others as 0.
"""


def null(  # noqa: D103 - its help is NULL
    ratings: Ratings,
    data_dir: DataDir = None,
    columns: Columns = None,
    duplicates: Duplicates = "error",
    kinds: Annotated[
        list[str] | None, option(MEASURE, "Default: iid. Repeatable.", "--null")
    ] = None,
    repeats: Annotated[
        int, option(MEASURE, "How often relevance is drawn anew.", **at_least(1, MOST_REPEATS))
    ] = 5,
    designs: Annotated[
        str, option(MEASURE, "Names, separated by commas.")
    ] = "random,flat,percentiles,judgment-bins,test-targets",
    algorithm: Algorithms = None,
    metric: Metrics = None,
    liked: Liked = None,
    share: Annotated[
        float | None, option(MEASURE, "iid: the share of liked ratings; as in the data.")
    ] = None,
    folds: Folds = None,
    users: Users = "all",
    seed: Seed = 0,
    store: StoreDir = None,
    workers: Workers = 1,
    to: TableFile = None,
    figure: FigureFile = None,
    format: TextFormat = "text",  # noqa: A002 - the word users expect
    quiet: Quiet = False,
) -> None:
    from unskew.auditing.null import null_experiment
    from unskew.auditing.null_designs import published_designs

    choose("format", format, outputs.TEXT_FORMATS)
    figures = outputs.figures_of(figure, ("null",))
    data = inputs.loaded(ratings, data_dir, columns, duplicates)
    named = [name.strip() for name in designs.split(",") if name.strip()]
    plans = published_designs(
        systems_of(algorithm),
        named,
        liked=_threshold(liked, data),
        metrics=inputs.metric_names(metric) or ["P@10"],
        folds=folds,
        users=users,
        seed=seed,
    )
    with progress("null experiment", quiet) as moved:
        found = null_experiment(
            data.ratings,
            plans,
            tuple(kinds or ["iid"]),
            repeats,
            share=share,
            store=store,
            workers=workers,
            progress=moved,
        )
    outputs.draw(figures, lambda _: found.figure())
    outputs.deliver(_printout(found), to, format, quiet)


def truth(  # noqa: D103 - its help is TRUTH
    ratings: Annotated[
        str | None,
        typer.Argument(metavar="RATINGS", help="A file, or a named data set such as coat."),
    ] = None,
    random: Annotated[
        Path | None, option(INPUT, "Ratings of randomly chosen items: the truth.")
    ] = None,
    world: Annotated[
        str | None, option(INPUT, "Instead of ratings: a world, such as shop or inverted.")
    ] = None,
    world_users: Annotated[
        int | None, option(INPUT, "Of the world.", "--users", **at_least(1, MOST_DEPTH))
    ] = None,
    world_items: Annotated[
        int | None, option(INPUT, "Of the world.", "--items", **at_least(1, MOST_DEPTH))
    ] = None,
    overlap: Annotated[
        str, option(INPUT, "Random ratings in training: to-training (left out) or keep.")
    ] = "to-training",
    data_dir: DataDir = None,
    columns: Columns = None,
    duplicates: Duplicates = "error",
    algorithm: Algorithms = None,
    metric: Metrics = None,
    liked: Liked = None,
    targets: Annotated[
        list[str] | None,
        option(MEASURE, "all-items, test-items, train-items, test-targets. Repeatable."),
    ] = None,
    intervention: Annotated[
        list[str] | None,
        option(MEASURE, "Judge by a sample: full, reg, skew, wtd, wtd-h. Repeatable."),
    ] = None,
    test: Annotated[float, option(MEASURE, "The share of ratings that test.")] = 0.2,
    folds: Folds = None,
    average: Annotated[
        str, option(USERS, "Users averaged: with-test, with-relevant, with-train, all.")
    ] = "with-test",
    bootstrap: Annotated[
        int,
        option(
            RUNNING, "Draws of users for the interval of tau; 0: none.", **at_least(0, MOST_DRAWS)
        ),
    ] = 1_000,
    seed: Seed = 0,
    to: TableFile = None,
    figure: FigureFile = None,
    format: TextFormat = "text",  # noqa: A002 - the word users expect
    quiet: Quiet = False,
) -> None:
    from unskew.auditing.null_designs import simple_systems
    from unskew.auditing.true_values import truth as compare_with_truth
    from unskew.data.relevance import Relevance
    from unskew.experiment.plan import Plan
    from unskew.splits.interventions import DESIGNS
    from unskew.splits.random import Random
    from unskew.targets.designs import BY_NAME

    choose("format", format, outputs.TEXT_FORMATS)
    figures = outputs.figures_of(figure, ("truth",))
    if (ratings is None) == (world is None):
        raise SettingError("give either ratings or --world NAME")
    data: Any
    sample: Any = None
    if world is not None:
        from unskew.worlds.worlds import world as build

        if random is not None or columns is not None:
            raise SettingError("a world knows its truth: leave --random and --columns out")
        sizes = {"users": world_users, "items": world_items}
        data = build(world, seed=seed, **{k: v for k, v in sizes.items() if v is not None})
    else:
        if world_users is not None or world_items is not None:
            raise SettingError("--users and --items are sizes of a --world")
        data = inputs.loaded(str(ratings), data_dir, columns, duplicates)
        if random is not None:
            sample = inputs.read_random_file(random, columns, duplicates, data_dir=data_dir)
    threshold = _threshold(liked, data)
    named = [BY_NAME[choose("targets", one, BY_NAME)]() for one in targets or ["all-items"]]
    plan = Plan(
        Random(test=test) if folds is None else Random(folds=folds),
        named,
        systems_of(algorithm) or simple_systems(threshold),
        Relevance(liked=threshold),
        inputs.metric_names(metric) or ["P@10", "anti-P@10", "Recall@10", "nDCG@10"],
        [DESIGNS[choose("intervention", one, DESIGNS)]() for one in intervention or []],
        users=average,
        seed=seed,
    )
    with progress("observed and true", quiet) as moved:
        found = compare_with_truth(
            data, plan, random=sample, overlap=overlap, bootstrap=bootstrap, progress=moved
        )
    outputs.draw(figures, lambda _: found.figure())
    outputs.deliver(_printout(found), to, format, quiet)


null.__doc__ = NULL
truth.__doc__ = TRUTH


def systems_of(texts: Sequence[str] | None) -> list[Algorithm] | None:
    """Read NAME or NAME:SETTING=VALUE,SETTING=VALUE; None where nothing is said."""
    from unskew.recommend.registry import algorithm, read_setting

    if not texts:
        return None
    systems = []
    for text in texts:
        name, _, rest = text.partition(":")
        settings = dict(read_setting(part) for part in rest.split(",") if part.strip())
        systems.append(algorithm(name.strip(), **settings))
    return systems


def _threshold(liked: float | None, data: Any) -> float:
    if liked is not None:
        return liked
    return 4.0 if data.liked is None else float(data.liked)


def _printout(result: Any) -> outputs.Printout:
    return outputs.Printout.of_result(result, text=result.__str__, json=result.to_dict)
