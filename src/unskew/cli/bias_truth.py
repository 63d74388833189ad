"""`unskew bias truth`: what designs observe beside what is true."""

from __future__ import annotations

from typing import Annotated, Any

from unskew.checks import MOST_DEPTH, choose
from unskew.cli import inputs, outputs
from unskew.cli.bias_options import Folds
from unskew.cli.bundles import argument, bundle, option
from unskew.cli.options import (
    INPUT,
    MEASURE,
    USERS,
    Algorithms,
    Bootstrap,
    ExecutorOptions,
    Liked,
    Metrics,
    NamedFileOptions,
    RandomFile,
    Seed,
    TextOptions,
)
from unskew.cli.progress import progress
from unskew.errors import SettingError


@bundle
class TruthSourceOptions:
    """Ratings and the truth about them, or a world."""

    ratings: Annotated[
        str | None,
        argument("Ratings: a file, or a named data set such as coat.", "RATINGS", default=None),
    ]
    random: RandomFile
    world: Annotated[
        str | None,
        option(INPUT, "Use a simulated world, such as shop or inverted, instead of ratings."),
    ]
    world_users: Annotated[
        int | None, option(INPUT, "Number of users of the world.", "--users", min=1, max=MOST_DEPTH)
    ]
    world_items: Annotated[
        int | None, option(INPUT, "Number of items of the world.", "--items", min=1, max=MOST_DEPTH)
    ]
    files: NamedFileOptions

    def read(self, seed: int) -> tuple[Any, Any]:
        """Return the data and, where given, ratings of randomly chosen items."""
        from unskew.worlds.worlds import world

        if (self.ratings is None) == (self.world is None):
            raise SettingError("give either ratings or --world NAME")
        sizes = inputs.given(users=self.world_users, items=self.world_items)
        if self.world is not None:
            if self.random is not None or self.files.columns is not None:
                raise SettingError("a world knows its truth: leave --random and --columns out")
            return world(self.world, seed=seed, **sizes), None
        if sizes:
            raise SettingError("--users and --items are sizes of a --world")
        data = inputs.load_data(str(self.ratings), self.files)
        return data, inputs.read_random_file(self.random, self.files)


@bundle
class DesignOptions:
    """What is run on the observed ratings."""

    algorithm: Algorithms
    metric: Metrics
    liked: Liked
    targets: Annotated[
        list[str] | None,
        option(
            MEASURE, "Items to rank: all-items, test-items, train-items, test-targets. Repeatable."
        ),
    ]
    intervention: Annotated[
        list[str] | None,
        option(
            MEASURE,
            "Evaluate on a sample of the test ratings: full, reg, skew, wtd, wtd-h. Repeatable.",
        ),
    ]
    test: Annotated[float, option(MEASURE, "The share of ratings in the test part.", default=0.2)]
    folds: Folds
    average: Annotated[
        str,
        option(
            USERS,
            "Users to average over: with-test, with-relevant, with-train, warm, all.",
            default="with-test",
        ),
    ]

    def plan(self, liked: float, seed: int) -> Any:
        """Return the plan of these designs."""
        from unskew.auditing.null_designs import simple_systems
        from unskew.data.relevance import Relevance
        from unskew.experiment.plan import Plan
        from unskew.splits.interventions import DESIGNS
        from unskew.splits.random import Random
        from unskew.targets.designs import BY_NAME

        targets = [choose("targets", name, BY_NAME) for name in self.targets or ["all-items"]]
        kinds = [choose("intervention", name, DESIGNS) for name in self.intervention or []]
        return Plan(
            split=Random(test=self.test) if self.folds is None else Random(folds=self.folds),
            targets=[BY_NAME[name]() for name in targets],
            algorithms=inputs.systems(self.algorithm) or simple_systems(liked),
            relevance=Relevance(liked=liked),
            metrics=inputs.metric_names(self.metric)
            or ["P@10", "anti-P@10", "Recall@10", "nDCG@10"],
            interventions=[DESIGNS[name]() for name in kinds],
            users=self.average,
            seed=seed,
        )


def command(
    sources: TruthSourceOptions,
    overlap: Annotated[
        str,
        option(
            INPUT,
            "Random ratings that are also in training: to-training (remove them from the truth) "
            "or keep.",
            default="to-training",
        ),
    ],
    designs: DesignOptions,
    bootstrap: Bootstrap,
    seed: Seed,
    executor: ExecutorOptions,
    output: TextOptions,
) -> None:
    """Compare observed and true scores, in a simulated world or with ratings of random items.

    Without --liked, a rating of 4 is liked unless the data set says otherwise.

    [bold]Examples[/bold]

      unskew bias truth train.csv --random random.csv --liked 4 -m Recall@10 -m anti-P@10

      unskew bias truth coat --intervention full --intervention skew --intervention wtd -m Recall@10

      unskew bias truth --world inverted --users 500 --items 300 -a popularity -a average-rating

    The error is in percent of the truth; tau compares the order of systems with the true one, with
    an interval over users. Both are for the users for whom the metric is defined (recall: those
    with a liked test item); columns ending in _zero count the others as 0.
    """
    from unskew.auditing.true_scores import truth

    figures = outputs.figures_of(output.figure, ("truth",))
    data, sample = sources.read(seed)
    plan = designs.plan(inputs.threshold(designs.liked, data), seed)
    with progress("observed and true", output.quiet) as move:
        result = truth(
            data,
            plan,
            random=sample,
            overlap=overlap,
            bootstrap=bootstrap,
            progress=move,
            **executor.arguments(),
        )
    outputs.draw(figures, lambda _: result.figure())
    outputs.deliver(outputs.Printout.of_text(result), output)
