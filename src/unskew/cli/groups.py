"""`unskew groups`: how far groups of users or of items are apart, system by system."""

from __future__ import annotations

from typing import Annotated, Any

from unskew.checks import MOST_DEPTH
from unskew.cli import inputs, outputs
from unskew.cli.bundles import bundle, option
from unskew.cli.compare import SegmentOptions
from unskew.cli.options import (
    TEST,
    AverageOptions,
    ComputeOptions,
    Confidence,
    FigureTableOptions,
    JudgedOptions,
    Saved,
)
from unskew.cli.progress import progress
from unskew.errors import SettingError

GROUPS = "Groups"


@bundle
class GapOptions:
    """How groups are compared."""

    by_items: Annotated[
        str | None,
        option(
            GROUPS,
            "Groups of items instead of users: popularity, or FILE:COLUMN of a file of items.",
            metavar="NAME|FILE:COLUMN",
        ),
    ]
    places: Annotated[
        int | None,
        option(
            GROUPS,
            "With --by-items: how many places of each list count. Default: 10.",
            min=1,
            max=MOST_DEPTH,
        ),
    ]
    against: Annotated[
        str | None,
        option(
            GROUPS,
            "Compare each group of users with the rest of users (rest), the best group (best), "
            "every other group (pairs), or the group of this name. Default: rest.",
            metavar="rest|best|pairs|GROUP",
        ),
    ]
    epsilon: Annotated[
        float | None,
        option(
            GROUPS,
            "Aversion to inequality of Atkinson's index across users, between 0 and 1. "
            "Default: 0.5.",
        ),
    ]
    correction: Annotated[
        str,
        option(
            TEST,
            "Correction for several groups and systems: holm, bonferroni, bh, by or none.",
            default="holm",
        ),
    ]
    confidence: Confidence


def command(
    judged: JudgedOptions,
    scores: Saved,
    average: AverageOptions,
    segments: SegmentOptions,
    gaps: GapOptions,
    compute: ComputeOptions,
    output: FigureTableOptions,
) -> None:
    """Compare groups of users or items: gaps, ratios, the worst group, inequality.

    [bold]Examples[/bold]

      unskew groups -j test.csv -r a.csv -r b.csv -m nDCG@10 --liked 4 --by users.csv:country

      unskew groups -j test.csv -r mine.csv --train train.csv -m P@10 --liked 4 --by activity
      --against best

      unskew groups --scores saved/ -m nDCG@10 --by users.csv:country --figure groups.svg

      unskew groups -j test.csv -r mine.csv --liked 4 --by-items genres.csv:genre --places 20

    All intervals of a kind and metric hold together. Groups below 20 users have no interval and no
    p-value. A ratio is left out where the mean that divides cannot be told from 0.

    With --by-items: each group's share of places and of liked items, its recall and that of all
    other liked items, as means over users.

    [bold]Figures[/bold]

      groups, for the first metric; none with --by-items
    """
    from unskew.stats.group_gaps_result import FIGURES

    correction = None if gaps.correction == "none" else gaps.correction
    settings = {"correction": correction, "confidence": gaps.confidence}
    if (segments.by is None) == (gaps.by_items is None):
        raise SettingError("give --by for groups of users, or --by-items for groups of items")
    if gaps.by_items is None:
        figures = outputs.figures_of(output.figure, FIGURES)
        result = _users(judged, scores, average, segments, gaps, compute, output, settings)
        outputs.draw(figures, result.figure)
    else:
        if output.figure:
            raise SettingError("--figure is for groups of users: leave it out with --by-items")
        result = _items(judged, scores, segments, gaps, compute, settings)
    printout = outputs.Printout.of_result(result, output.digits, json=result.to_dict)
    outputs.deliver(printout, output)


def _users(
    judged: JudgedOptions,
    scores: Any,
    average: AverageOptions,
    segments: SegmentOptions,
    gaps: GapOptions,
    compute: ComputeOptions,
    output: FigureTableOptions,
    settings: dict[str, Any],
) -> Any:
    from unskew.evaluation.evaluate import METRICS
    from unskew.stats.group_comparison import group_gaps
    from unskew.stats.pairing import paired
    from unskew.stats.segments import segments_of

    if gaps.places is not None:
        raise SettingError("--places is for --by-items: leave it out")
    if inputs.is_saved(judged, scores):
        values = inputs.scores_of(judged, scores, average, compute, METRICS, output.quiet)
        pairs, division = paired(values), vars(segments)
    else:
        data = inputs.judge_files(judged, compute.seed)
        of = inputs.scores_of_judged(data, judged, average, compute, METRICS, output.quiet)
        pairs = paired(of)
        division = {"by": segments_of(pairs.users, judged=data, **vars(segments))}
    more = inputs.given(against=gaps.against, epsilon=gaps.epsilon)
    names = inputs.metric_names(judged.metric)
    with progress("comparing groups", output.quiet) as move:
        return group_gaps(
            pairs, metric=names, progress=move, **division, **more, **settings, **vars(compute)
        )


def _items(
    judged: JudgedOptions,
    scores: Any,
    segments: SegmentOptions,
    gaps: GapOptions,
    compute: ComputeOptions,
    settings: dict[str, Any],
) -> Any:
    from unskew.stats.item_groups import item_group_gaps

    if inputs.is_saved(judged, scores):
        raise SettingError("--by-items needs the lists: give --judgments and --run, not --scores")
    unused = {
        "--metric": judged.metric,
        "--against": gaps.against,
        "--epsilon": gaps.epsilon,
        "--least-users": segments.least_users,
    }
    for name, value in unused.items():
        if value is not None:
            raise SettingError(f"{name} is for groups of users: leave it out with --by-items")
    data = inputs.judge_files(judged, compute.seed)
    places = 10 if gaps.places is None else gaps.places
    return item_group_gaps(data, gaps.by_items, places, groups=segments.groups, **settings)
