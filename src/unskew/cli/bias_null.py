"""`unskew bias null`: what designs show on ratings in which no system can be better."""

from __future__ import annotations

from typing import Annotated

from unskew.checks import MOST_REPEATS
from unskew.cli import inputs, outputs
from unskew.cli.bias_options import Folds
from unskew.cli.bundles import bundle, option
from unskew.cli.options import (
    MEASURE,
    Algorithms,
    Liked,
    Metrics,
    NamedFileOptions,
    RatingsArgument,
    StoredOptions,
    TextOptions,
    Users,
)
from unskew.cli.progress import progress


@bundle
class NullOptions:
    """How relevance is drawn anew, and what is measured then."""

    null: Annotated[
        list[str] | None,
        option(
            MEASURE,
            "How to draw relevance: iid, within-user, within-item, clusters. Default: iid. "
            "Repeatable.",
        ),
    ]
    repeats: Annotated[
        int | None,
        option(
            MEASURE,
            "Number of times that relevance is redrawn; with --precision, the smallest number. "
            "Default: 5; with --precision: 3.",
            min=1,
            max=MOST_REPEATS,
        ),
    ]
    precision: Annotated[
        float | None,
        option(
            MEASURE,
            "Redraw until every interval of the first metric has at most this half-width, as a "
            "share of the largest lead over chance, such as 0.05. Default: a fixed number.",
        ),
    ]
    most: Annotated[
        int | None,
        option(
            MEASURE,
            "With --precision: the largest number of repeats. Default: 20.",
            min=2,
            max=MOST_REPEATS,
        ),
    ]
    designs: Annotated[
        str,
        option(
            MEASURE,
            "Designs, separated by commas.",
            default="random,flat,percentiles,judgment-bins,test-targets",
        ),
    ]
    algorithm: Algorithms
    metric: Metrics
    liked: Liked
    share: Annotated[
        float | None, option(MEASURE, "iid: the share of liked ratings. Default: as in the data.")
    ]
    folds: Folds
    users: Users = "all"


def command(
    ratings: RatingsArgument,
    files: NamedFileOptions,
    options: NullOptions,
    stored: StoredOptions,
    output: TextOptions,
) -> None:
    """Run designs on data without any taste: every difference between systems is then bias.

    Without --liked, a rating of 4 is liked unless the data set says otherwise.

    [bold]Examples[/bold]

      unskew bias null ratings.csv --liked 4

      unskew bias null ratings.csv --designs random,flat,test-targets -a popularity -a user-knn:k=50

      unskew bias null ratings.csv --null iid --null within-item --repeats 10 --format json

      unskew bias null ratings.csv --precision 0.05 --most 10

    [bold]Nulls[/bold]

      iid: all values drawn independently; within-user, within-item: values shuffled there;
      clusters: values shuffled within groups of users x groups of items

    [bold]Designs[/bold]

      random, flat, percentiles, judgment-bins, slices, test-targets, forced, forced-raw
      (castells2018)

    [bold]Columns[/bold]

      ratio: the value on null data / chance; 1 for every system if a design is fair

      null_share: the part of a system's score above chance that it also has on null data
    """
    from unskew.auditing.null import null_experiment
    from unskew.auditing.null_designs import published_designs

    figures = outputs.figures_of(output.figure, ("null",))
    data = inputs.load_data(ratings, files)
    plans = published_designs(
        inputs.systems(options.algorithm),
        inputs.between_commas(options.designs) or (),
        liked=inputs.threshold(options.liked, data),
        metrics=inputs.metric_names(options.metric) or ["P@10"],
        folds=options.folds,
        users=options.users or "all",
        seed=stored.seed,
    )
    with progress("null experiment", output.quiet, "null runs") as move:
        result = null_experiment(
            data.ratings,
            plans,
            tuple(options.null or ["iid"]),
            options.repeats,
            precision=options.precision,
            most=options.most,
            share=options.share,
            store=stored.store,
            progress=move,
            **stored.executor.arguments(),
        )
    outputs.draw(figures, lambda _: result.figure())
    outputs.deliver(outputs.Printout.of_text(result), output)
