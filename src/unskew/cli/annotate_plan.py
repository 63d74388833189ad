"""`unskew annotate plan`: which recommended pairs people should judge."""

from __future__ import annotations

from typing import Annotated, Any

from unskew.cli import inputs, outputs
from unskew.cli.annotate_options import DESIGN, Budget, Smallest, TitlesFile
from unskew.cli.bundles import REQUIRED, bundle, option
from unskew.cli.options import (
    INPUT,
    MEASURE,
    FileOptions,
    FolderOptions,
    Metrics,
    RelevanceOptions,
    Runs,
    Seed,
    Train,
)
from unskew.cli.sources import LIST_COLUMNS
from unskew.errors import SettingError


@bundle
class SampleOptions:
    """How pairs are drawn."""

    budget: Budget
    design: Annotated[
        str,
        option(
            DESIGN,
            "How pairs are drawn: uniform, stratified (in proportion to the pairs of each "
            "stratum), neyman (where labels vary most, by --labels).",
            default="uniform",
        ),
    ]
    strata: Annotated[
        str | None,
        option(
            DESIGN,
            "What divides the pairs, separated by commas: disagreement, rank, popularity. Default: "
            "disagreement,rank.",
        ),
    ]
    seed: Seed


@bundle
class ListOptions:
    """Ranked lists, and what is known of their items."""

    run: Runs = REQUIRED
    labels: Annotated[
        str | None,
        option(INPUT, "Labels of a model for the recommended pairs: user, item, rating."),
    ]
    titles: TitlesFile
    train: Train
    files: FileOptions


@bundle
class EstimandOptions:
    """What is estimated, and what labels mean."""

    metric: Metrics
    estimand: Annotated[
        str | None,
        option(
            MEASURE,
            "What is estimated: difference (the first --run less the second) or levels of all. "
            "Default: the difference of two runs.",
        ),
    ]
    smallest: Smallest
    scale: Annotated[str, option(MEASURE, "The smallest and the largest label.", default="0,1")]
    relevance: RelevanceOptions


def command(
    lists: ListOptions, estimand: EstimandOptions, sample: SampleOptions, output: FolderOptions
) -> None:
    """Draw recommended pairs of a user and an item for people to judge.

    [bold]Examples[/bold]

      unskew annotate plan -r a.csv -r b.csv -m P@10 --budget 300 -o to-judge/

      unskew annotate plan -r a.csv -r b.csv -m P@10 --budget 300 --design stratified -o to-judge/

      unskew annotate plan -r a.csv -r b.csv -m DCG@10 --scale 1,5 --liked 4 --labels model.csv
      --design neyman --budget 300 --titles movies.csv -o stars/

    The folder gets to-judge.csv: pairs in random order, which shows neither system nor rank, with
    an empty column label to fill in from the top down. Its other files tell what annotators must
    not see. Then: unskew annotate status FOLDER.

    Pairs that two systems have at places that count alike say nothing of their difference, and are
    never drawn. Metrics: P, DCG, RBP and their anti-twins, with a cutoff.
    """
    from unskew.splits.saved import check_folder
    from unskew.unbiased.annotation_planning import STRATA, plan_annotation

    names = inputs.metric_names(estimand.metric) or ["P@10"]
    if len(names) != 1:
        raise SettingError("a plan is for one metric: give -m once")
    check_folder(output.output, output.force)
    runs = {
        name: inputs.read_run_file(source, lists.files.columns, keep_scores=False)
        for name, source in inputs.named_runs(lists.run or []).items()
    }
    labels, train = (
        None
        if path is None
        else inputs.read_rating_file(path, lists.files, other_columns=LIST_COLUMNS)
        for path in (lists.labels, lists.train)
    )
    plan = plan_annotation(
        runs,
        names[0],
        budget=sample.budget,
        design=sample.design,
        estimand=estimand.estimand,
        strata=inputs.between_commas(sample.strata) or STRATA,
        labels=labels,
        train=train,
        smallest=estimand.smallest,
        scale=_scale(estimand.scale),
        seed=sample.seed,
        **inputs.relevance_settings(estimand.relevance),
    )
    plan.save(output.output, titles=lists.titles, force=output.force)
    if not output.quiet:
        outputs.say(str(plan))
        outputs.say(f"written to {output.output}: fill in to-judge.csv from the top down", dim=True)


def _scale(text: str) -> Any:
    """Read the two ends of a scale."""
    try:
        low, high = (int(part) for part in text.split(","))
    except ValueError:
        raise SettingError(f"--scale: write two whole numbers such as 1,5; got {text!r}") from None
    return low, high
