"""The commands `annotate …`: let people judge a random sample of recommended pairs."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

from unskew.cli import inputs, outputs
from unskew.cli.files import LIST_COLUMNS
from unskew.cli.options import (
    FileOptions,
    FolderOptions,
    PrintOptions,
    RelevanceOptions,
    TextOptions,
)
from unskew.cli.parameters import Options, OptionsOf, argument, bundle
from unskew.errors import SettingError
from unskew.splits.saved import check_folder

DESIGN = "Design"

SAMPLE = OptionsOf(
    "labels.plan_annotation:plan_annotation",
    {DESIGN: "budget design", "What is measured": "estimand smallest"},
)


@bundle
class PlanFiles:
    """A plan, and the labels that it got.

    Arguments
    ---------
    folder
        Folder that unskew annotate plan wrote.

    Input
    -----
    file
        The file with labels. Default: to-judge.csv in the folder.
    """

    folder: Annotated[Path, argument("FOLDER")]
    file: Path | None = None


@bundle
class LabelFiles(PlanFiles):
    """The same, where pairs may have been skipped.

    Input
    -----
    skipped
        Labels behind the first pair that was skipped: hold (keep them back, and count them) or
        refuse.
    """

    skipped: str = "hold"


@bundle
class ListOptions:
    """Ranked lists, and what is known of their items.

    Input
    -----
    labels
        Labels of a model for the recommended pairs: user, item, rating.
    titles
        What annotators see of each item: a file with the item and further columns, such as a title.
    """

    run: list[str] | None
    labels: str | None = None
    titles: str | None = None
    train: str | None = None
    files: FileOptions


@bundle
class EstimandOptions:
    """What is estimated, and what labels mean.

    What is measured
    ----------------
    scale
        The smallest and the largest label.
    """

    metric: list[str] | None = None
    scale: str = "0,1"
    relevance: RelevanceOptions


def annotate_plan_command(
    *,
    lists: ListOptions,
    estimand: EstimandOptions,
    sample: Annotated[Options, SAMPLE],
    strata: str | None = None,
    seed: int = 0,
    output: FolderOptions,
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

    Design
    ------
    strata
        What divides the pairs, separated by commas: disagreement, rank, popularity. Default:
        disagreement,rank.
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
    settings = {
        "strata": inputs.between_commas(strata) or STRATA,
        "scale": _scale(estimand.scale),
        **vars(sample),
        **inputs.relevance_settings(estimand.relevance),
    }
    plan = plan_annotation(runs, names[0], labels=labels, train=train, seed=seed, **settings)
    _save(plan, lists.titles, output)


def _save(plan: Any, titles: str | None, output: FolderOptions) -> None:
    """Write the files of a plan, and say what to do with them."""
    plan.save(output.output, titles=titles, force=output.force)
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
    *,
    plan: PlanFiles,
    titles: str | None = None,
    budget: int,
    design: str = "stratified",
    output: FolderOptions,
) -> None:
    """Plan further pairs; those that have a label keep it.

    [bold]Examples[/bold]

      unskew annotate extend to-judge/ --budget 100 -o more/

      unskew annotate extend to-judge/ --file filled.csv --budget 100 --design neyman -o more/

    The new folder knows all labels so far; its to-judge.csv asks for the pairs that have none.
    Intervals of unskew annotate status stay valid, whatever the labels were.

    Input
    -----
    titles
        What annotators see of each item: a file with the item and further columns, such as a title.

    Design
    ------
    budget
        Number of pairs to judge.
    design
        How further pairs are drawn: uniform, stratified, neyman (where the labels so far vary
        most).
    """
    from unskew.labels.read_annotation import read_annotation

    check_folder(output.output, output.force)
    _save(read_annotation(**vars(plan)).extend(budget, design), titles, output)


def annotate_read_command(*, labels: LabelFiles, output: PrintOptions) -> None:
    """Turn labels into the sample that unskew estimate --human takes.

    [bold]Examples[/bold]

      unskew annotate read to-judge/ -o human.csv

      unskew annotate read to-judge/ --file filled.csv --skipped refuse -o human.parquet

    The table has user, item, label, probability (that the pair was drawn) and, where the design has
    strata, stratum.
    """
    from unskew.labels.read_annotation import read_annotation

    plan = read_annotation(**vars(labels))
    printout = outputs.Printout(plan.sample(), plan.display_tables(), plan.footer())
    outputs.deliver(printout, output)


def annotate_status_command(
    *,
    labels: LabelFiles,
    smallest: float | None = None,
    width: float | None = None,
    level: float = 0.95,
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

    What is measured
    ----------------
    smallest
        The smallest difference that matters, such as 0.02; stated, never the observed one.
    width
        Stop also when every interval is at most so wide.
    """
    from unskew.labels.read_annotation import read_annotation

    figures = outputs.figures_of(output.figure, ("path",))
    status = read_annotation(**vars(labels)).status(smallest=smallest, width=width, level=level)
    outputs.deliver_result(status, output, figures)
