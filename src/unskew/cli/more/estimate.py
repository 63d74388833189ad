"""The commands `estimate` and `annotate …`: what nobody has rated."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from unskew.cli import inputs, outputs
from unskew.cli.files import LIST_COLUMNS, RATING_COLUMNS, file_columns
from unskew.cli.options import (
    ComputeOptions,
    FigureTableOptions,
    FileOptions,
    FolderOptions,
    GroupUsers,
    JudgedOptions,
    PrintOptions,
    RelevanceOptions,
    RunsRequiredOptions,
    TextOptions,
)
from unskew.cli.parameters import Options, OptionsOf, argument, bundle, given_options, refuse
from unskew.errors import SettingError

if TYPE_CHECKING:
    from unskew.data.ratings import Ratings
    from unskew.report.estimates import Estimates


LABELS = "Labels of people and of an annotator"
SAMPLE_COLUMNS = ("probability", "stratum")


@bundle
class LabelOptions:
    """Labels of an annotator for all recommended items, and of people for some of them.

    Labels of people and of an annotator
    ------------------------------------
    labels
        Instead of --judgments: labels of an annotator (a model, clicks) for every recommended item.
    human
        Labels of people for a random sample of the recommended items. The columns probability and
        stratum say how it was drawn; without them it is a simple random sample.
    """

    labels: str | None = None
    human: str | None = None
    sample: Annotated[
        Options,
        OptionsOf(
            "labels.assisted:assisted",
            {LABELS: "human_liked strata population unlabelled", "Intervals": "interval"},
        ),
    ]


def _has_labels(
    options: LabelOptions,
    judged: JudgedOptions,
    flags: Sequence[str],
    propensities: PropensityOptions,
) -> bool:
    """Tell whether labels are given; refuse options that do not go with them, or without them.

    Parameters
    ----------
    options
        What was said about labels.
    judged
        The judgments, which labels replace.
    flags, propensities
        What is for judgments with propensities: names of options that were given, and a bundle.
    """
    given = given_options(options)
    if options.labels is None and options.human is None:
        if given:
            raise SettingError(f"{given[0]} is for labels: give --labels and --human too")
        if judged.judgments is None:
            raise SettingError("give --judgments, or --labels and --human")
        return False
    if options.labels is None or options.human is None:
        raise SettingError(
            "give both --labels (of an annotator, all recommended items) and --human (of people, a "
            "random sample of them)"
        )
    if judged.judgments is not None:
        raise SettingError("give --judgments, or --labels and --human: not both")
    odd = [*flags, *given_options(propensities)]
    if odd:
        raise SettingError(f"{odd[0]} is for judgments with propensities: leave it out")
    return True


def _from_labels(
    options: LabelOptions, judged: JudgedOptions, estimates: Options, compute: ComputeOptions
) -> Estimates:
    """Read labels of an annotator and of people, and estimate."""
    from unskew.labels.assisted import assisted

    refuse("is for judgments: leave it out with --labels", "--clip --users", estimates)
    if options.sample.interval != "bootstrap":
        reason = "is for --interval bootstrap: leave it out with --labels"
        refuse(reason, "--resamples", estimates)
    return assisted(
        inputs.judge_files(replace(judged, judgments=options.labels), compute.seed),
        inputs.metric_names(judged.metric) or "P@10",
        human=_read_people(str(options.human), judged.files),
        **{name: getattr(estimates, name) for name in ("mean", "level", "resamples")},
        **vars(options.sample),
        **vars(compute),
    )


def _read_people(source: str, files: FileOptions) -> Ratings:
    """Read FILE or FILE:item=sku,probability=p; the columns of the design get their usual names."""
    from unskew.data.read.ratings_files import read_ratings

    roles = (*RATING_COLUMNS, *SAMPLE_COLUMNS)
    path, columns = file_columns(source, files.columns, roles, LIST_COLUMNS)
    roles_of = {str(columns.pop(role, role)): role for role in SAMPLE_COLUMNS}
    people = read_ratings(
        path,
        tags=[name for name, role in roles_of.items() if name != role],
        optional_tags=[name for name, role in roles_of.items() if name == role],
        duplicates=files.duplicates,
        feedback="explicit",
        **columns,
    )
    tags = {roles_of.get(name, name): values for name, values in people.tags.items()}
    return replace(people, tags=tags)


ESTIMATE = "Propensities and estimates"


@bundle
class PropensityOptions:
    """How likely each rating was to be observed.

    Propensities and estimates
    --------------------------
    propensity
        popularity, naive-bayes, logistic, or a FILE with columns item (and user) and propensity.
    exponent
        popularity: the exponent, instead of a fitted one or 1.
    test_share
        Share of the ratings in the test part, or items: a share per item.
    of
        Whether the propensities of a FILE are those of the test part (test) or of all ratings
        (observed).
    """

    propensity: str = "popularity"
    exponent: float | None = None
    test_share: str | None = None
    of: str | None = None


ESTIMATES = OptionsOf(
    "unbiased.estimate:estimate",
    {ESTIMATE: "clip mean", "Intervals": "resamples level", "Users and ties": "users"},
)


def estimate_command(
    *,
    judged: RunsRequiredOptions,
    random: str | None = None,
    items: str | None = None,
    labels: LabelOptions,
    propensities: PropensityOptions,
    estimates: Annotated[Options, ESTIMATES],
    sensitivity: bool = False,
    bounds: bool = False,
    clipping: bool = False,
    group_users: GroupUsers = None,
    compute: ComputeOptions,
    output: FigureTableOptions,
) -> None:
    """Estimate the scores that systems would have if every item were judged.

    From judgments, with weights 1/propensity; or from labels of people for a random sample of the
    recommended items, helped by labels of an annotator for all of them (--labels, --human).

    [bold]Examples[/bold]

      unskew estimate --train train.csv -j test.csv -r a.csv -r b.csv -m P@10,Recall@10 --liked 4

      unskew estimate --train train.csv -j test.csv -r a.csv -m DCG@10 --random mar.csv
      --propensity naive-bayes

      unskew estimate -j test.csv -r a.csv -m P@10 --propensity chances.csv --clip 99%

      unskew estimate --train train.csv -j test.csv -r a.csv -m P@10 --clipping --figure clip.svg

      unskew estimate --train train.csv -j test.csv -r a.csv -r b.csv -m P@10 --sensitivity

      unskew estimate --labels model.csv --human people.csv -r a.csv -r b.csv -m P@10 --liked 4

    [bold]Columns with --judgments[/bold]

      naive: the observed score; unjudged items count as not liked

      IPS: each judgment counts 1/propensity times; – where propensities are known up to a factor

      SNIPS: the same, normalised by the weights; all with an interval over users

      hits, effective hits: liked items in the lists, and how many equal weights theirs are worth

      not usable here: why; the estimate or an end of its interval is not a possible value of the
      metric, it rests on too few hits, or the weights do not add up to the slots of the lists

    [bold]Columns with --labels[/bold]

      labels: of people, that count for the system or the difference

      human: by labels of people alone

      PPI++, PPI: corrected by the labels of the annotator, by as much as helps or by all; right
      whatever it gets wrong

      annotator: by its labels alone; no estimate of what people would say

      gain: how many times as many labels of people alone would be as precise as PPI++

    Metrics: P, DCG, RBP, Recall, nDCG, F1, SR, HLU, AP, AUC, their anti-twins, and ADG and ATOP,
    the mean discounted gain and the mean normalised rank of the liked items. Other metrics have no
    such estimate; the message gives the reason. nDCG is biased even if propensities are right: use
    DCG or nDCG(ideal=full). With --labels: P, DCG, RBP and their anti-twins.

    Propensities and estimates
    --------------------------
    sensitivity
        Report instead how wrong the propensities must be to reverse two systems by one metric.
    bounds
        Report instead the values if all unjudged items were disliked, and if all were liked.
    clipping
        Report instead how IPS moves with the largest weight allowed: bias and noise.
    """
    figures = outputs.figures_of(output.figure, ("estimate",))
    flags = {"--sensitivity": sensitivity, "--bounds": bounds, "--clipping": clipping}
    reports = [name for name, is_wanted in flags.items() if is_wanted]
    if len(reports) > 1:
        raise SettingError(f"give {reports[0]} or {reports[1]}, not both")
    files = {"--random": random, "--items": items}
    odd = [*(name for name, file in files.items() if file), *reports]
    if group_users is not None and reports:
        raise SettingError(f"--group-users does not go with {reports[0]}: leave it out")
    odd += ["--group-users"] * (group_users is not None)
    if _has_labels(labels, judged, odd, propensities):
        result = _from_labels(labels, judged, estimates, compute)
    else:
        report = "".join(reports)
        result = _from_judgments(
            judged, random, items, propensities, estimates, compute, report, group_users
        )
    outputs.deliver_result(result, output, figures)


def _from_judgments(
    judged: JudgedOptions,
    random: str | None,
    items: str | None,
    propensities: PropensityOptions,
    estimates: Options,
    compute: ComputeOptions,
    report: str,
    group_users: str | None,
) -> Estimates:
    """Return estimates by propensities, or what a flag asks for instead."""
    from unskew.unbiased.bounds import bounds
    from unskew.unbiased.estimate import METRICS, clipping_curve, estimate
    from unskew.unbiased.propensity import propensity
    from unskew.unbiased.sensitivity import sensitivity

    names = inputs.metric_names(judged.metric)
    if report == "--sensitivity" and len(names or [""]) != 1:
        raise SettingError("--sensitivity takes one metric: give -m once")
    data = inputs.judge_files(judged, compute.seed, items=items)
    if report == "--bounds":
        return bounds(data, names or "P@10", **vars(compute))
    sample = inputs.read_random_file(random, judged.files, other_columns=LIST_COLUMNS)
    is_fitted = sample is not None and propensities.propensity == "popularity"
    chances = propensity(
        data.train,
        data.tests,
        propensities.propensity,
        random=sample,
        exponent=propensities.exponent,
        test_share=_share(propensities.test_share),
        of=propensities.of,
        relevance=data.relevance if is_fitted else None,
    )
    settings = {"propensity": chances, **vars(compute)}
    if report == "--sensitivity":
        settings |= {"resamples": estimates.resamples, "level": estimates.level}
        model = "odds" if chances.known else "weights"
        return sensitivity(data, (names or ["P@10"])[0], model=model, **settings)
    if report == "--clipping":
        refuse("does not go with --clipping: leave it out", "--clip --resamples", estimates)
        settings |= {name: getattr(estimates, name) for name in ("mean", "users", "level")}
        return clipping_curve(data, names or METRICS, **settings)
    return estimate(data, names or METRICS, group_users=group_users, **settings, **vars(estimates))


def _share(text: str | None) -> float | str | None:
    """Read a share, or the word items."""
    if text is None or text == "items":
        return text
    try:
        return float(text)
    except ValueError:
        raise SettingError(f"--test-share: a number or items, got {text!r}") from None


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
    outputs.say_written(output, str(plan), then=": fill in to-judge.csv from the top down")


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
    from unskew.splits.saved import check_folder

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
