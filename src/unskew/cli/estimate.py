"""`unskew estimate`: what systems would score were everything judged."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

from unskew.checks import MOST_DRAWS
from unskew.cli import inputs, outputs
from unskew.cli.bundles import bundle, option
from unskew.cli.options import (
    INTERVALS,
    USERS,
    ComputeOptions,
    FigureTableOptions,
    ItemsFile,
    Level,
    RandomFile,
    RequiredJudgedOptions,
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
    judged: RequiredJudgedOptions,
    random: RandomFile,
    items: ItemsFile,
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
    """Estimate the scores that systems would have if every item were judged (weights 1/propensity).

    [bold]Examples[/bold]

      unskew estimate --train train.csv -j test.csv -r a.csv -r b.csv -m P@10,Recall@10 --liked 4

      unskew estimate --train train.csv -j test.csv -r a.csv -m DCG@10 --random mar.csv
      --propensity naive-bayes

      unskew estimate -j test.csv -r a.csv -m P@10 --propensity chances.csv --clip 99%
      --figure clip.svg

      unskew estimate --train train.csv -j test.csv -r a.csv -r b.csv -m P@10 --sensitivity

    [bold]Columns[/bold]

      naive: the observed score; unjudged items count as not liked

      ips: each judgment counts 1/propensity times; – where propensities are known up to a factor

      snips: the same, normalised by the weights; both with an interval over users

      hits, ess: liked items in the lists, and their effective sample size

      usable: "not usable here" where the estimate or an end of its interval is not a possible value
      of the metric, it rests on too few hits, or the weights do not add up to the slots of the
      lists; the lines below the table give the reason

    Metrics: P, DCG, RBP, Recall, nDCG, F1, SR, HLU, AP, AUC, their anti-twins, and ADG and ATOP,
    the mean discounted gain and the mean normalised rank of the liked items. Other metrics have no
    such estimate; the message gives the reason. nDCG is biased even if propensities are right: use
    DCG or nDCG(ideal=full).
    """
    from unskew.unbiased import hidden_bias, ips, worst_cases

    figures = outputs.figures_of(output.figure, ("estimate",))
    if sensitivity and bounds:
        raise SettingError("give --sensitivity or --bounds, not both")
    names = inputs.metric_names(judged.metric)
    if sensitivity and len(names or [""]) != 1:
        raise SettingError("--sensitivity takes one metric: give -m once")
    data = inputs.judge_files(judged, compute.seed, items=items)
    result: Any
    if bounds:
        result = worst_cases.bounds(data, names or "P@10", **vars(compute))
    else:
        sample = inputs.read_random_file(random, judged.files, other_columns=LIST_COLUMNS)
        chances = _propensities(propensities, data, sample)
        if sensitivity:
            name, model = (names or ["P@10"])[0], "odds" if chances.known else "weights"
            result = hidden_bias.sensitivity(
                data, name, propensity=chances, model=model, **vars(compute)
            )
        else:
            result = ips.estimate(
                data,
                names or ips.METRICS,
                propensity=chances,
                **vars(estimates),
                **vars(compute),
            )
    outputs.draw(figures, lambda _: result.figure())
    printout = outputs.Printout.of_result(result, output.digits, json=result.to_dict)
    outputs.deliver(printout, output)


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
