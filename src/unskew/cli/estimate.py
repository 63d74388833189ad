"""`unskew estimate`: what systems would score were everything judged."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

from unskew.checks import MOST_DRAWS
from unskew.cli import inputs, outputs
from unskew.cli.bundles import bundle, option
from unskew.cli.label_options import LabelOptions, check_together, estimate_by_labels
from unskew.cli.options import (
    INTERVALS,
    USERS,
    ComputeOptions,
    FigureTableOptions,
    ItemsFile,
    JudgedOptions,
    Level,
    RandomFile,
    RunsRequiredOptions,
)
from unskew.cli.sources import LIST_COLUMNS
from unskew.errors import SettingError

if TYPE_CHECKING:
    from unskew.data.ratings import Ratings
    from unskew.judging.judged import Judged
    from unskew.unbiased.propensities import Propensity

ESTIMATE = "Propensities and estimates"


@bundle
class PropensityOptions:
    """How likely each rating was to be observed."""

    propensity: Annotated[
        str,
        option(
            ESTIMATE,
            "popularity, naive-bayes, logistic, or a FILE with columns item (and user) and "
            "propensity.",
            default="popularity",
        ),
    ]
    exponent: Annotated[
        float | None,
        option(ESTIMATE, "popularity: the exponent, instead of a fitted one or 1."),
    ]
    test_share: Annotated[
        str | None,
        option(ESTIMATE, "Share of the ratings in the test part, or items: a share per item."),
    ]
    of: Annotated[
        str | None,
        option(
            ESTIMATE,
            "Whether the propensities of a FILE are those of the test part (test) or of all "
            "ratings (observed).",
        ),
    ]


@bundle
class EstimateOptions:
    """How estimates are averaged, and how sure they are."""

    clip: Annotated[
        str | None, option(ESTIMATE, "Largest weight allowed, or a quantile such as 99%.")
    ]
    mean: Annotated[
        str,
        option(
            ESTIMATE,
            "How to average fractions: over users (users), or as a ratio of sums (ratio).",
            default="users",
        ),
    ]
    resamples: Annotated[
        int,
        option(
            INTERVALS,
            "Bootstrap resamples of users; 0 for no intervals.",
            default=1_000,
            min=0,
            max=MOST_DRAWS,
        ),
    ]
    level: Level
    users: Annotated[
        str, option(USERS, "Users to average over: with-list, with-test, all.", default="with-list")
    ]


def command(
    judged: RunsRequiredOptions,
    random: RandomFile,
    items: ItemsFile,
    labels: LabelOptions,
    propensities: PropensityOptions,
    estimates: EstimateOptions,
    sensitivity: Annotated[
        bool,
        option(
            ESTIMATE,
            "Report instead how wrong the propensities must be to reverse two systems by one "
            "metric.",
            "--sensitivity",
            default=False,
        ),
    ],
    bounds: Annotated[
        bool,
        option(
            ESTIMATE,
            "Report instead the values if all unjudged items were disliked, and if all were liked.",
            "--bounds",
            default=False,
        ),
    ],
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
      --figure clip.svg

      unskew estimate --train train.csv -j test.csv -r a.csv -r b.csv -m P@10 --sensitivity

      unskew estimate --labels model.csv --human people.csv -r a.csv -r b.csv -m P@10 --liked 4

    [bold]Columns with --judgments[/bold]

      naive: the observed score; unjudged items count as not liked

      ips: each judgment counts 1/propensity times; – where propensities are known up to a factor

      snips: the same, normalised by the weights; both with an interval over users

      hits, ess: liked items in the lists, and their effective sample size

      usable: "not usable here" where the estimate or an end of its interval is not a possible value
      of the metric, it rests on too few hits, or the weights do not add up to the slots of the
      lists; the lines below the table give the reason

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
    """
    figures = outputs.figures_of(output.figure, ("estimate",))
    if sensitivity and bounds:
        raise SettingError("give --sensitivity or --bounds, not both")
    files = {"--random": random, "--items": items}
    flags = {"--sensitivity": sensitivity, "--bounds": bounds}
    odd = [name for name, value in {**files, **flags}.items() if value]
    result: Any
    if check_together(labels, judged, *odd, propensities):
        result = estimate_by_labels(
            labels, judged, **vars(compute), **_of_labels(estimates, labels)
        )
    else:
        chosen = "bounds" if bounds else "sensitivity" if sensitivity else "ips"
        result = _from_judgments(judged, random, items, propensities, estimates, compute, chosen)
    outputs.draw(figures, lambda _: result.figure())
    printout = outputs.Printout.of_result(result, output.digits, json=result.to_dict)
    outputs.deliver(printout, output)


def _of_labels(estimates: EstimateOptions, labels: LabelOptions) -> dict[str, Any]:
    """Return the options of estimates that labels take; refuse the others."""
    only = {
        "--clip": estimates.clip is not None,
        "--users": estimates.users != "with-list",
        "--resamples": estimates.resamples != 1_000 and labels.interval != "bootstrap",
    }
    for name, given in only.items():
        if given:
            what = "--interval bootstrap" if name == "--resamples" else "judgments"
            raise SettingError(f"{name} is for {what}: leave it out with --labels")
    return {"mean": estimates.mean, "level": estimates.level, "resamples": estimates.resamples}


def _from_judgments(
    judged: JudgedOptions,
    random: str | None,
    items: str | None,
    propensities: PropensityOptions,
    estimates: EstimateOptions,
    compute: ComputeOptions,
    chosen: str,
) -> Any:
    """Return estimates by propensities (`ips`), their `sensitivity`, or `bounds`."""
    from unskew.unbiased import hidden_bias, ips, worst_cases

    names = inputs.metric_names(judged.metric)
    if chosen == "sensitivity" and len(names or [""]) != 1:
        raise SettingError("--sensitivity takes one metric: give -m once")
    data = inputs.judge_files(judged, compute.seed, items=items)
    if chosen == "bounds":
        return worst_cases.bounds(data, names or "P@10", **vars(compute))
    sample = inputs.read_random_file(random, judged.files, other_columns=LIST_COLUMNS)
    chances = _propensities(propensities, data, sample)
    if chosen == "sensitivity":
        name, model = (names or ["P@10"])[0], "odds" if chances.known else "weights"
        return hidden_bias.sensitivity(data, name, propensity=chances, model=model, **vars(compute))
    return ips.estimate(
        data, names or ips.METRICS, propensity=chances, **vars(estimates), **vars(compute)
    )


def _propensities(options: PropensityOptions, data: Judged, sample: Ratings | None) -> Propensity:
    """Return how likely each rating was to be observed."""
    from unskew.unbiased.propensities import propensity

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
