"""`unskew estimate`: what systems would score were everything judged."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Annotated, Any

from unskew.cli import inputs, outputs
from unskew.cli.files import LIST_COLUMNS, RATING_COLUMNS, file_columns
from unskew.cli.options import (
    ComputeOptions,
    FigureTableOptions,
    FileOptions,
    JudgedOptions,
    RunsRequiredOptions,
)
from unskew.cli.parameters import Options, OptionsOf, bundle, given_options, refuse
from unskew.errors import SettingError

if TYPE_CHECKING:
    from unskew.data.ratings import Ratings
    from unskew.judging.judged import Judged
    from unskew.report.estimates import Estimates
    from unskew.unbiased.propensity import Propensity


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


def check_together(options: LabelOptions, judged: JudgedOptions, *others: Any) -> bool:
    """Tell whether labels are given; refuse options that do not go with them, or without them.

    Parameters
    ----------
    options
        What was said about labels.
    judged
        The judgments, which labels replace.
    others
        Bundles of options that are for judgments with propensities, and names of flags.
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
    odd = [one for one in others if isinstance(one, str)]
    odd += given_options(*(one for one in others if not isinstance(one, str)))
    if odd:
        raise SettingError(f"{odd[0]} is for judgments with propensities: leave it out")
    return True


def estimate_by_labels(
    options: LabelOptions,
    judged: JudgedOptions,
    seed: int,
    threads: int | None,
    **settings: Any,
) -> Estimates:
    """Read labels of an annotator and of people, and estimate."""
    from unskew.labels.assisted import assisted

    data = inputs.judge_files(replace(judged, judgments=options.labels), seed)
    assert options.human is not None
    return assisted(
        data,
        inputs.metric_names(judged.metric) or "P@10",
        human=_read_people(options.human, judged.files),
        **vars(options.sample),
        seed=seed,
        threads=threads,
        **settings,
    )


def _read_people(source: str, files: FileOptions) -> Ratings:
    """Read FILE or FILE:item=sku,probability=p; the columns of the design get their usual names."""
    from unskew.data.read.ratings_files import read_ratings

    roles = (*RATING_COLUMNS, *SAMPLE_COLUMNS)
    path, columns = file_columns(source, files.columns, roles, LIST_COLUMNS)
    named = {role: columns.pop(role, role) for role in SAMPLE_COLUMNS}
    given = [str(name) for role, name in named.items() if name != role]
    kept = [str(name) for name in named.values() if str(name) not in given]
    people = read_ratings(
        path,
        tags=given,
        optional_tags=kept,
        duplicates=files.duplicates,
        feedback="explicit",
        **columns,
    )
    back = {str(name): role for role, name in named.items()}
    return replace(people, tags={back.get(tag, tag): one for tag, one in people.tags.items()})


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
    reports = [name for name, value in flags.items() if value]
    if len(reports) > 1:
        raise SettingError(f"give {reports[0]} or {reports[1]}, not both")
    files = {"--random": random, "--items": items}
    odd = [name for name, value in {**files, **flags}.items() if value]
    result: Any
    if check_together(labels, judged, *odd, propensities):
        result = estimate_by_labels(
            labels, judged, **vars(compute), **_of_labels(estimates, labels)
        )
    else:
        report = reports[0] if reports else ""
        result = _from_judgments(judged, random, items, propensities, estimates, compute, report)
    outputs.deliver_result(result, output, figures)


def _of_labels(estimates: Options, labels: LabelOptions) -> dict[str, Any]:
    """Return the options of estimates that labels take; refuse the others."""
    refuse("is for judgments: leave it out with --labels", "--clip --users", estimates)
    if labels.sample.interval != "bootstrap":
        reason = "is for --interval bootstrap: leave it out with --labels"
        refuse(reason, "--resamples", estimates)
    return {"mean": estimates.mean, "level": estimates.level, "resamples": estimates.resamples}


def _from_judgments(
    judged: JudgedOptions,
    random: str | None,
    items: str | None,
    propensities: PropensityOptions,
    estimates: Options,
    compute: ComputeOptions,
    report: str,
) -> Estimates:
    """Return estimates by propensities, or what a flag asks for instead."""
    from unskew.unbiased.bounds import bounds
    from unskew.unbiased.estimate import METRICS, clipping_curve, estimate
    from unskew.unbiased.sensitivity import sensitivity

    names = inputs.metric_names(judged.metric)
    if report == "--sensitivity" and len(names or [""]) != 1:
        raise SettingError("--sensitivity takes one metric: give -m once")
    data = inputs.judge_files(judged, compute.seed, items=items)
    if report == "--bounds":
        return bounds(data, names or "P@10", **vars(compute))
    sample = inputs.read_random_file(random, judged.files, other_columns=LIST_COLUMNS)
    chances = _propensities(propensities, data, sample)
    if report == "--sensitivity":
        name, model = (names or ["P@10"])[0], "odds" if chances.known else "weights"
        settings = {"resamples": estimates.resamples, "level": estimates.level, **vars(compute)}
        return sensitivity(data, name, propensity=chances, model=model, **settings)
    if report == "--clipping":
        refuse("does not go with --clipping: leave it out", "--clip --resamples", estimates)
        settings = {name: getattr(estimates, name) for name in ("mean", "users", "level")}
        return clipping_curve(
            data, names or METRICS, propensity=chances, **settings, **vars(compute)
        )
    return estimate(data, names or METRICS, propensity=chances, **vars(estimates), **vars(compute))


def _propensities(options: PropensityOptions, data: Judged, sample: Ratings | None) -> Propensity:
    """Return how likely each rating was to be observed."""
    from unskew.unbiased.propensity import propensity

    is_fitted = sample is not None and options.propensity == "popularity"
    return propensity(
        data.train,
        data.tests,
        options.propensity,
        random=sample,
        exponent=options.exponent,
        test_share=_share(options.test_share),
        of=options.of,
        relevance=data.relevance if is_fitted else None,
    )


def _share(text: str | None) -> float | str | None:
    """Read a share, or the word items."""
    if text is None or text == "items":
        return text
    try:
        return float(text)
    except ValueError:
        raise SettingError(f"--test-share: a number or items, got {text!r}") from None
