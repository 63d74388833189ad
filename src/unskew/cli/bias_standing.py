"""`unskew bias standing`: the place of popularity by observed and by true judgments."""

from __future__ import annotations

from typing import Annotated

from unskew.checks import MOST_REPEATS, choose
from unskew.cli import inputs, outputs
from unskew.cli.bias_truth import TruthSourceOptions
from unskew.cli.bundles import bundle, option
from unskew.cli.options import (
    INPUT,
    MEASURE,
    Bootstrap,
    ExecutorOptions,
    Level,
    Liked,
    OrderingMetric,
    Seed,
    SystemNames,
    TextOptions,
    Tune,
)
from unskew.cli.progress import progress


@bundle
class StandingOptions:
    """What is run and measured."""

    system: Annotated[
        str, option(MEASURE, "The system whose place is asked for.", default="popularity")
    ]
    algorithms: SystemNames
    tune: Tune
    metric: OrderingMetric
    liked: Liked
    true_liked: Annotated[
        float | None,
        option(
            MEASURE,
            "True judgments from this value up are liked. Default: as the data set says, or as "
            "--liked.",
        ),
    ]
    targets: Annotated[
        str | None,
        option(
            MEASURE,
            "Items that the truth ranks: all-items, test-items, test-targets. Default: as the kind "
            "of true judgments asks for.",
        ),
    ]
    splits: Annotated[
        int,
        option(MEASURE, "How many random splits are made.", default=5, min=1, max=MOST_REPEATS),
    ]
    test: Annotated[float, option(MEASURE, "The share of ratings in the test part.", default=0.2)]


def command(
    sources: TruthSourceOptions,
    pooled: Annotated[
        str | None,
        option(
            INPUT,
            "Judgments of the items that several systems listed; other items count as unjudged.",
        ),
    ],
    options: StandingOptions,
    bootstrap: Bootstrap,
    level: Level,
    seed: Seed,
    executor: ExecutorOptions,
    output: TextOptions,
) -> None:
    """Tell which place popularity takes by observed and by true judgments.

    Systems are trained on the observed ratings and judged twice: by held-out observed ratings, and
    by the true judgments of the data set: of randomly chosen items, of every pair of some users
    and items, or of pooled items. The last lines say whether a change of place exceeds chance.

    [bold]Examples[/bold]

      unskew bias standing coat

      unskew bias standing kuairec --splits 1 --workers 2

      unskew bias standing ratings.csv --pooled judgments.csv --liked 4 --true-liked 2

      unskew bias standing --world shop --users 500 --items 200 --algorithms popularity,random,ease
    """
    from unskew.auditing.system_places import standing
    from unskew.targets.designs import BY_NAME

    figures = outputs.figures_of(output.figure, ("places",))
    data, sample = sources.read(seed)
    judged = None if pooled is None else inputs.read_rating_file(pooled, sources.files)
    targets = None
    if options.targets is not None:
        targets = BY_NAME[choose("targets", options.targets, BY_NAME)]()
    with progress("observed and true", output.quiet) as move:
        result = standing(
            data,
            system=options.system,
            algorithms=inputs.between_commas(options.algorithms),
            metric=options.metric or "P@10",
            liked=options.liked,
            true_liked=options.true_liked,
            random=sample,
            pooled=judged,
            targets=targets,
            splits=options.splits,
            test=options.test,
            tune=options.tune,
            bootstrap=bootstrap,
            level=level,
            seed=seed,
            progress=move,
            **executor.arguments(),
        )
    outputs.draw(figures, lambda _: result.figure())
    outputs.deliver(outputs.Printout.of_text(result), output)
