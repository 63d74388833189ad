"""The commands `annotate …`: let people judge a random sample of recommended pairs."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

from unskew.checks import MOST_DEPTH
from unskew.cli import inputs, outputs
from unskew.cli.command import REQUIRED, argument, bundle, option
from unskew.cli.files import LIST_COLUMNS
from unskew.cli.options import (
    INPUT,
    MEASURE,
    FileOptions,
    FolderOptions,
    Level,
    Metrics,
    PrintOptions,
    RelevanceOptions,
    Runs,
    Seed,
    TextOptions,
    Train,
)
from unskew.errors import SettingError
from unskew.splits.saved import check_folder

DESIGN = "Design"

PlanFolder = Annotated[Path, argument("Folder that unskew annotate plan wrote.", "FOLDER")]
FilledFile = Annotated[
    Path | None,
    option(INPUT, "The file with labels. Default: to-judge.csv in the folder.", "--file"),
]
Skipped = Annotated[
    str,
    option(
        INPUT,
        "Labels behind the first pair that was skipped: hold (keep them back, and count them) or "
        "refuse.",
        default="hold",
    ),
]
Budget = Annotated[
    int,
    option(
        DESIGN, "Number of pairs to judge.", "--budget", default=REQUIRED, min=1, max=MOST_DEPTH
    ),
]
Smallest = Annotated[
    float | None,
    option(
        MEASURE,
        "The smallest difference that matters, such as 0.02; stated, never the observed one.",
    ),
]
TitlesFile = Annotated[
    str | None,
    option(
        INPUT,
        "What annotators see of each item: a file with the item and further columns, such as a "
        "title.",
        "--titles",
    ),
]


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


def annotate_plan_command(
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
    from unskew.labels.plan_annotation import STRATA, plan_annotation
    from unskew.splits.saved import check_folder

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


def annotate_extend_command(
    folder: PlanFolder,
    file: FilledFile,
    titles: TitlesFile,
    budget: Budget,
    design: Annotated[
        str,
        option(
            DESIGN,
            "How further pairs are drawn: uniform, stratified, neyman (where the labels so far "
            "vary most).",
            default="stratified",
        ),
    ],
    output: FolderOptions,
) -> None:
    """Plan further pairs; those that have a label keep it.

    [bold]Examples[/bold]

      unskew annotate extend to-judge/ --budget 100 -o more/

      unskew annotate extend to-judge/ --file filled.csv --budget 100 --design neyman -o more/

    The new folder knows all labels so far; its to-judge.csv asks for the pairs that have none.
    Intervals of unskew annotate status stay valid, whatever the labels were.
    """
    from unskew.labels.annotations import read_annotation

    check_folder(output.output, output.force)
    plan = read_annotation(folder, file).extend(budget, design)
    plan.save(output.output, titles=titles, force=output.force)
    if not output.quiet:
        outputs.say(str(plan))
        outputs.say(f"written to {output.output}: fill in to-judge.csv from the top down", dim=True)


def annotate_read_command(
    folder: PlanFolder,
    file: FilledFile,
    skipped: Skipped,
    output: PrintOptions,
) -> None:
    """Turn labels into the sample that unskew estimate --human takes.

    [bold]Examples[/bold]

      unskew annotate read to-judge/ -o human.csv

      unskew annotate read to-judge/ --file filled.csv --skipped refuse -o human.parquet

    The table has user, item, label, probability (that the pair was drawn) and, where the design has
    strata, stratum.
    """
    from unskew.labels.annotations import read_annotation

    result = read_annotation(folder, file, skipped=skipped)
    outputs.deliver(outputs.Printout.of_result(result), output)


def annotate_status_command(
    folder: PlanFolder,
    file: FilledFile,
    skipped: Skipped,
    smallest: Smallest,
    width: Annotated[
        float | None,
        option(MEASURE, "Stop also when every interval is at most so wide."),
    ],
    level: Level,
    output: TextOptions,
) -> None:
    """Say what labels show so far, and whether to stop.

    Intervals hold the value of these lists after every number of labels at once: look as often as
    you like, and stop for whatever reason.

    [bold]Examples[/bold]

      unskew annotate status to-judge/

      unskew annotate status to-judge/ --smallest 0.02

      unskew annotate status to-judge/ --file filled.csv --width 0.05 --figure path.svg

    Stop when the interval of the difference does not hold 0, when it lies within ±--smallest, or
    when it is as narrow as --width. Else the number of labels still needed is printed: for a true
    difference of --smallest, not for the one that was observed.
    """
    from unskew.labels.annotations import read_annotation

    figures = outputs.figures_of(output.figure, ("path",))
    status = read_annotation(folder, file, skipped=skipped).status(
        smallest=smallest, width=width, level=level
    )
    outputs.draw(figures, lambda _: status.figure())
    outputs.deliver(outputs.Printout.of_text(status), output)
