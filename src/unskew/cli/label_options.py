"""`unskew estimate --labels FILE --human FILE`: few labels of people, many of an annotator."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Annotated, Any

from unskew.cli import inputs
from unskew.cli.bundles import bundle, given_options, option
from unskew.cli.options import INTERVALS, FileOptions, JudgedOptions
from unskew.cli.sources import LIST_COLUMNS, RATING_COLUMNS, file_columns
from unskew.errors import SettingError

if TYPE_CHECKING:
    from unskew.data.ratings import Ratings
    from unskew.unbiased.assisted_result import Assisted

LABELS = "Labels of people and of an annotator"
SAMPLE_COLUMNS = ("probability", "stratum")


@bundle
class LabelOptions:
    """Labels of an annotator for all recommended items, and of people for some of them."""

    labels: Annotated[
        str | None,
        option(
            LABELS,
            "Instead of --judgments: labels of an annotator (a model, clicks) for every "
            "recommended item.",
        ),
    ]
    human: Annotated[
        str | None,
        option(
            LABELS,
            "Labels of people for a random sample of the recommended items. The columns "
            "probability and stratum say how it was drawn; without them it is a simple random "
            "sample.",
        ),
    ]
    human_liked: Annotated[
        float | None,
        option(
            LABELS, "Labels of people from this value up are liked, where their scale is another."
        ),
    ]
    strata: Annotated[
        str | None,
        option(
            LABELS,
            "The sample was drawn at random within strata of the recommended items: rank, "
            "popularity or disagreement (of the systems).",
        ),
    ]
    population: Annotated[
        str,
        option(
            LABELS,
            "What is estimated: the value for these lists (lists), or for new users (users).",
            default="lists",
        ),
    ]
    unlabelled: Annotated[
        str,
        option(
            LABELS,
            "Recommended items without a label of the annotator: error, disliked, mean (of all "
            "labels).",
            default="error",
        ),
    ]
    interval: Annotated[
        str, option(INTERVALS, "With --labels: score or bootstrap intervals.", default="score")
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
) -> Assisted:
    """Read labels of an annotator and of people, and estimate."""
    from unskew.unbiased.assisted_estimates import assisted

    data = inputs.judge_files(replace(judged, judgments=options.labels), seed)
    assert options.human is not None
    return assisted(
        data,
        inputs.metric_names(judged.metric) or "P@10",
        human=_read_people(options.human, judged.files),
        human_liked=options.human_liked,
        strata=options.strata,
        population=options.population,
        unlabelled=options.unlabelled,
        interval=options.interval,
        seed=seed,
        threads=threads,
        **settings,
    )


def _read_people(source: str, files: FileOptions) -> Ratings:
    """Read FILE or FILE:item=sku,probability=p; the columns of the design get their usual names."""
    from unskew.data.readers import read_ratings

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
