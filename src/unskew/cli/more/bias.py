"""The commands `bias …`, `power`, `robustness`: what popularity does, what data can show."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Annotated, Any

from unskew.checks import choose
from unskew.cli import inputs, outputs
from unskew.cli.files import LIST_COLUMNS
from unskew.cli.options import (
    ComputeOptions,
    ExecutorOptions,
    FiguresDir,
    FigureTableOptions,
    FileOptions,
    NamedFileOptions,
    RatingsArgument,
    RelevanceOptions,
    ScoredOptions,
    StoredOptions,
    TableOptions,
    TextOptions,
)
from unskew.cli.parameters import Option, Options, OptionsOf, argument, bundle
from unskew.cli.progress import progress
from unskew.errors import SettingError

if TYPE_CHECKING:
    from unskew.data.dataset import Dataset


@bundle
class BiasOptions:
    """Ratings whose popularity is looked at.

    What is measured
    ----------------
    users
        Number of users. Default: the users with ratings.
    sample
        Use this many random pairs of items instead of all pairs.
    """

    ratings: RatingsArgument
    random: str | None = None
    files: NamedFileOptions
    liked: float | None = None
    users: int | None = None
    sample: int | None = None
    compute: ComputeOptions

    def read(self) -> tuple[Dataset, dict[str, Any]]:
        """Return the ratings, and the settings of what is computed on them."""
        data = inputs.load_data(self.ratings, self.files, other_columns=LIST_COLUMNS)
        sample = inputs.read_random_file(self.random, self.files, other_columns=LIST_COLUMNS)
        settings = {
            "liked": self.liked,
            "random": sample,
            "users": self.users,
            "sample": self.sample,
            **vars(self.compute),
        }
        return data, settings


def bias_describe_command(
    *,
    options: BiasOptions,
    output: TextOptions,
    figures: FiguresDir = None,
) -> None:
    """Describe how popularity, ratings and relevance go together, and which metrics to trust.

    Without --liked, a rating of 4 is liked on a scale of 1 to 5.

    [bold]Examples[/bold]

      unskew bias describe ratings.csv --liked 4

      unskew bias describe train.csv --random random.csv --liked 4 --figures figures/

      unskew bias describe cm100k:observed=familiar -o bias.md

    [bold]Figures[/bold]

      popularity (the default), positive-ratio, optimal, cases, dependence
    """
    from unskew.bias.describe_bias import FIGURES, describe_bias
    from unskew.report.page import save_each

    wanted_figures = outputs.figures_of(output.figure, FIGURES)
    data, settings = options.read()
    for line in () if output.quiet else data.notes:
        outputs.note(line)
    result = describe_bias(data, **settings)
    outputs.draw(wanted_figures, result.figure)
    if figures is not None:
        save_each({name: result.figure(name) for name in result.figures()}, figures)
    outputs.deliver_result(result, output)


@bundle
class ListPopularityOptions:
    """Ranked lists, the ratings that judge them, and the profiles of users."""

    judgments: str | None
    run: list[str] | None
    train: str | None
    files: FileOptions
    relevance: RelevanceOptions


def bias_lists_command(
    *,
    options: ListPopularityOptions,
    k: int = 10,
    by: Annotated[str, Option(metavar="NAME|FILE:COLUMN")] = "taste",
    level: float = 0.95,
    seed: int = 0,
    output: TableOptions,
) -> None:
    """Measure how popular lists are, against the users' training ratings and against chance.

    Beside each value: its interval over users, what a random order of the items gives, and its null
    value, what lists would show that match the taste of their users. Measures: PopLift,
    PopPercentile, PercentileShift, TailShift, UPD, ExcessUPD, PopRSP, PopREO, Gini.

    [bold]Examples[/bold]

      unskew bias lists -j test.csv -r mine.csv -r theirs.csv --train train.csv --liked 4

      unskew bias lists -j test.csv -r mine.csv --train train.csv -k 20 --by activity --format json

      unskew bias lists -j test.csv -r mine.csv --train train.csv --by users.csv:country -o table.md

    What is measured
    ----------------
    k
        Lists are cut here.
    by
        Groups of users: taste (niche, diverse, blockbuster), activity, popularity, time,
        FILE:COLUMN of a file of users, or none.
    """
    from unskew.bias.popularity.list_popularity import list_popularity
    from unskew.judging.judge import judge

    files = inputs.read_judged(
        options.judgments, options.run, options.train, options.files, seed=seed
    )
    data = judge(**files, seed=seed, **inputs.relevance_settings(options.relevance))
    result = list_popularity(data, k=k, by=None if by == "none" else by, level=level, seed=seed)
    outputs.deliver_result(result, output)


@bundle
class NullOptions:
    """How relevance is drawn anew, and what is measured then.

    What is measured
    ----------------
    null
        How to draw relevance: iid, within-user, within-item, clusters. Default: iid. Repeatable.
    designs
        Designs, separated by commas.
    folds
        Number of folds of the random split, instead of one test share.
    """

    null: list[str] | None = None
    draws: Annotated[
        Options,
        OptionsOf(
            "auditing.null.null_experiment:null_experiment",
            {"What is measured": "repeats precision most share"},
        ),
    ]
    designs: str = "random,flat,percentiles,judgment-bins,test-targets"
    algorithm: list[str] | None = None
    metric: list[str] | None = None
    liked: float | None = None
    folds: int | None = None
    users: str | None = "all"


def bias_null_command(
    *,
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

      null share: the part of a system's score above chance that it also has on null data
    """
    from unskew.auditing.null.null_designs import published_designs
    from unskew.auditing.null.null_experiment import NULL, null_experiment

    figures = outputs.figures_of(output.figure, [drawing.name for drawing in NULL.figures])
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
    kinds = tuple(options.null or ["iid"])
    settings = {**vars(options.draws), "store": stored.store, **stored.executor.arguments()}
    with progress("null experiment", output.quiet, "null runs") as move:
        result = null_experiment(data.ratings, plans, kinds, progress=move, **settings)
    outputs.draw(figures, result.figure)
    outputs.deliver_result(result, output)


def bias_pairs_command(
    *,
    options: BiasOptions,
    run: list[str] | None = None,
    k: int | None = None,
    output: TextOptions,
) -> None:
    """Count on which pairs of items precision and anti-precision disagree, and why.

    Without --liked, a rating of 4 is liked on a scale of 1 to 5.

    [bold]Examples[/bold]

      unskew bias pairs ratings.csv --liked 4

      unskew bias pairs train.csv --liked 4 --run mine.csv --run theirs.trec -k 10

      unskew bias pairs ratings.csv --liked 4 --format json

    Input
    -----
    run
        Give it twice to use only the items that two systems recommend.

    What is measured
    ----------------
    k
        With --run: number of items of each list to use. Default: 10.
    """
    from unskew.bias.pairs.item_pairs import item_pairs, pairs_of_systems

    figures = outputs.figures_of(output.figure, ("cases",))
    if run and len(run) != 2:
        raise SettingError(f"give --run twice, for two systems; got {len(run)}")
    if k is not None and not run:
        raise SettingError("-k needs --run: give the lists of two systems")
    data, settings = options.read()
    if run:
        a, b = (inputs.read_run_file(path, options.files.columns) for path in run)
        result = pairs_of_systems(data, a, b, 10 if k is None else k, **settings)
    else:
        result = item_pairs(data, **settings)
    outputs.deliver_result(result, output, figures)


@bundle
class TruthSourceOptions:
    """Ratings and the truth about them, or a world.

    Arguments
    ---------
    ratings
        Ratings: a file, or a named data set such as coat.

    Input
    -----
    world
        Use a simulated world, such as shop or inverted, instead of ratings.
    world_users
        Number of users of the world.
    world_items
        Number of items of the world.
    """

    ratings: Annotated[str | None, argument("RATINGS")] = None
    random: str | None = None
    world: str | None = None
    world_users: int | None = None
    world_items: int | None = None
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
    """What is run on the observed ratings.

    What is measured
    ----------------
    targets
        Items to rank: all-items, test-items, train-items, test-targets. Repeatable.
    intervention
        Evaluate on a sample of the test ratings: full, reg, skew, wtd, wtd-h. Repeatable.
    test
        The share of ratings in the test part.
    folds
        Number of folds of the random split, instead of one test share.

    Users and ties
    --------------
    average
        Users to average over: with-test, with-relevant, with-train, warm, all.
    """

    algorithm: list[str] | None = None
    metric: list[str] | None = None
    liked: float | None = None
    targets: list[str] | None = None
    intervention: list[str] | None = None
    test: float = 0.2
    folds: int | None = None
    average: str = "with-test"

    def plan(self, liked: float, seed: int) -> Any:
        """Return the plan of these designs."""
        from unskew.auditing.null.null_designs import simple_systems
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


def bias_truth_command(
    *,
    sources: TruthSourceOptions,
    overlap: str = "to-training",
    designs: DesignOptions,
    resamples: int = 1_000,
    seed: int = 0,
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

    Input
    -----
    overlap
        Random ratings that are also in training: to-training (remove them from the truth) or keep.
    """
    from unskew.auditing.truth.truth import TRUTH, truth

    figures = outputs.figures_of(output.figure, [drawing.name for drawing in TRUTH.figures])
    data, sample = sources.read(seed)
    plan = designs.plan(inputs.threshold(designs.liked, data), seed)
    settings = {"overlap": overlap, "resamples": resamples, **executor.arguments()}
    with progress("observed and true", output.quiet) as move:
        result = truth(data, plan, random=sample, progress=move, **settings)
    outputs.draw(figures, result.figure)
    outputs.deliver_result(result, output)


POWER = OptionsOf(
    "stats.agreement.power:power",
    {"Test": "test permutations alpha", "Power": "ordered difference power"},
)


def power_command(
    *,
    scored: ScoredOptions,
    powers: Annotated[Options, POWER],
    pairs: bool = False,
    compute: ComputeOptions,
    output: FigureTableOptions,
) -> None:
    """Report how well metrics tell systems apart, and which difference your users can show.

    [bold]Examples[/bold]

      unskew power -j test.csv -r a.csv -r b.csv -r c.trec -m P@10,nDCG@10,RR --liked 4

      unskew power --scores saved/ --difference 0.01 --power 0.9

    [bold]Columns[/bold]

      DP: sum of the p-values of all pairs of systems, the lower the better

      ratio: share of the pairs with p below alpha; median p: the median of all

      detectable: the difference that is detected with the requested power (median over pairs)

      needed: users needed for --difference, or for the observed differences (median over pairs)

    Power
    -----
    pairs
        Print a row per pair of systems, with the number of users needed to tell them apart.
    """
    from unskew.stats.agreement.power import POWER, power
    from unskew.stats.agreement.robustness import METRICS

    metrics = inputs.metric_names(scored.judged.metric)
    read = partial(inputs.scores_of, scored, compute, METRICS, output.quiet)
    ask = partial(power, metrics=metrics, **vars(powers), **vars(compute))
    outputs.answer(POWER, read, ask, output, "testing", part="pairs" if pairs else "")


@bundle
class TauOptions(FigureTableOptions):
    """Where a table of correlations goes."""

    digits: int = 3


def robustness_command(
    *,
    scored: ScoredOptions,
    goal: str | None = None,
    share: list[str] | None = None,
    samples: int = 50,
    per: str = "user",
    compute: ComputeOptions,
    executor: ExecutorOptions,
    output: TauOptions,
) -> None:
    """Report how the order of systems changes when the test set shrinks (Kendall's tau).

    [bold]Examples[/bold]

      unskew robustness -j test.csv -r a.csv -r b.csv -r c.trec -m P@10,nDCG@10 --liked 4

      unskew robustness -j test.csv -r a.csv -r b.csv -r c.csv --to popularity --train train.csv

      unskew robustness --scores saved/ -m nDCG@10

    [bold]To what[/bold]

      sparsity: random parts of the test set; popularity: without the most rated items (--train)

      users: with fewer users (the only one that works with saved scores)

    The lists stay the same. Users without remaining judgments are left out of the means.

    Samples
    -------
    goal
        What to remove: judgments (sparsity), popular items (popularity) or users (users). Default:
        sparsity.
    share
        Share to keep, such as 0.5. Repeatable. Default: the shares of valcarce2018.
    samples
        Number of random samples per share.
    per
        Keep the share of each user's judgments (user), or of all judgments together (all).
    """
    from unskew.stats.agreement.robustness import (
        METRICS,
        ROBUSTNESS,
        SHARES,
        robustness,
        user_robustness,
    )

    saved = inputs.is_saved(scored)
    goal = choose("to", goal or ("users" if saved else "sparsity"), SHARES)
    if saved and goal != "users":
        raise SettingError(f"--to {goal} needs --judgments and --run: scores hold no judgments")
    if goal == "users" and executor != ExecutorOptions(workers=1, cluster=None):
        raise SettingError(
            "--workers and --cluster are for --to sparsity and --to popularity; samples of users "
            "take little"
        )
    metrics = inputs.metric_names(scored.judged.metric)
    settings: dict[str, Any] = {"shares": _shares(share), "samples": samples, **vars(compute)}
    read: Any = partial(inputs.scores_of, scored, compute, METRICS, output.quiet)
    ask: Any = partial(user_robustness, metrics=metrics, **settings)
    if goal != "users":
        read = partial(inputs.judge_files, scored.judged, compute.seed)
        settings |= {"to": goal, "per": per, **vars(scored.average), **executor.arguments()}
        ask = partial(robustness, metrics=metrics or METRICS, **settings)
    outputs.answer(ROBUSTNESS, read, ask, output, "evaluating samples")


def _shares(texts: list[str] | None) -> list[float] | None:
    """Read numbers, several between commas; None where nothing is given."""
    parts = [part for text in texts or [] for part in inputs.between_commas(text) or []]
    try:
        return [float(part) for part in parts] or None
    except ValueError:
        raise SettingError(f"--share: write shares as 0.5 or 0.9,0.5, got {texts}") from None
