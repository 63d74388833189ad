"""Commands that compare in parts: groups, strata, quantiles of users, many data sets."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

from unskew.checks import choose
from unskew.cli import inputs, outputs
from unskew.cli.doors.compare import SegmentOptions, read_segments
from unskew.cli.files import exists, split_named_source
from unskew.cli.options import (
    AverageOptions,
    ComputeOptions,
    FigureTableOptions,
    JudgedOptions,
    ScoredOptions,
)
from unskew.cli.parameters import Options, OptionsOf, argument, bundle, refuse
from unskew.cli.progress import progress
from unskew.errors import DataError, SettingError


@bundle
class GapOptions:
    """How groups are compared.

    Groups
    ------
    by_items
        Groups of items instead of users: popularity, or FILE:COLUMN of a file of items.
    places
        With --by-items: how many ranks of each list count. Default: 10.
    against
        Compare each group of users with the rest of users (rest), the best group (best), every
        other group (pairs), or the group of this name. Default: rest.
    epsilon
        Aversion to inequality of Atkinson's index across users, between 0 and 1. Default: 0.5.
    """

    by_items: str | None = None
    places: int | None = None
    against: str | None = None
    epsilon: float | None = None
    tests: Annotated[
        Options, OptionsOf("stats.compare.group_gaps:group_gaps", {"Test": "correction level"})
    ]


def groups_command(
    *,
    scored: ScoredOptions,
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
    p-value. A ratio is left out where the mean that divides may be 0.

    With --by-items: each group's share of ranks and of liked items, its recall and that of all
    other liked items, as means over users.

    [bold]Figures[/bold]

      groups (the default; means) and gaps, for the first metric; none with --by-items
    """
    from unskew.stats.compare.group_gaps import GROUP_GAPS, group_gaps

    correction = None if gaps.tests.correction == "none" else gaps.tests.correction
    settings = {**vars(gaps.tests), "correction": correction}
    if (segments.by is None) == (gaps.by_items is None):
        raise SettingError("give --by for groups of users, or --by-items for groups of items")
    if gaps.by_items is None:
        figures = outputs.figures_of(
            output.figure, [drawing.name for drawing in GROUP_GAPS.figures]
        )
        refuse("is for --by-items: leave it out", "--places", gaps)
        pairs, division = read_segments(scored, None, compute, segments, output.quiet)
        chosen = division | inputs.given(against=gaps.against, epsilon=gaps.epsilon)
        names = inputs.metric_names(scored.judged.metric)
        with progress("comparing groups", output.quiet) as move:
            result: Any = group_gaps(
                pairs, metrics=names, progress=move, **chosen, **settings, **vars(compute)
            )
        outputs.draw(figures, result.figure)
    else:
        refuse("is for groups of users: leave it out with --by-items", "--figure", output)
        result = _items(scored, segments, gaps, compute, settings)
    outputs.deliver_result(result, output)


def _items(
    scored: ScoredOptions,
    segments: SegmentOptions,
    gaps: GapOptions,
    compute: ComputeOptions,
    settings: dict[str, Any],
) -> Any:
    from unskew.stats.compare.item_group_gaps import item_group_gaps

    if inputs.is_saved(scored):
        raise SettingError("--by-items needs the lists: give --judgments and --run, not --scores")
    reason = "is for groups of users: leave it out with --by-items"
    refuse(reason, "--metric --against --epsilon --least-users", scored, gaps, segments)
    data = inputs.judge_files(scored.judged, compute.seed)
    places = 10 if gaps.places is None else gaps.places
    return item_group_gaps(data, gaps.by_items, places, groups=segments.groups, **settings)


DIVISION = OptionsOf(
    "unbiased.strata:strata", {"Strata": "of equal head", "Intervals": "resamples level"}
)


def strata_command(
    *,
    judged: JudgedOptions,
    average: AverageOptions,
    by: str = "popularity",
    division: Annotated[Options, DIVISION],
    strata: int | None = None,
    heads: bool = False,
    compute: ComputeOptions,
    output: FigureTableOptions,
) -> None:
    """Show where a score comes from: metrics by strata of items or users, and their shares.

    [bold]Examples[/bold]

      unskew strata -j test.csv -r a.csv -r b.csv --train train.csv -m nDCG@10 --liked 4

      unskew strata -j test.csv -r a.csv --train train.csv --by activity --strata 4 -m P@10

      unskew strata -j test.csv -r a.csv --by genres.csv -m P@10 --liked 4 --format json

    [bold]Columns[/bold]

      stratum: the first has the most popular items, or the most active or mainstream users

      within the stratum: the mean, and its interval over users

      share of the score: what comes from the stratum, and its interval; shares add up to 1

    [bold]Figures[/bold]

      strata (the default; means) and shares, for the first metric

    Strata
    ------
    by
        How to form strata: popularity (of items), activity or mainstreamness (of users), or a file
        of groups: ids in the first column, groups in the second.
    strata
        Number of strata. Default: 10.
    heads
        Print instead a row per system, with the share of the head.
    """
    from unskew.unbiased.strata import METRICS, STRATA
    from unskew.unbiased.strata import strata as strata_of

    figures = outputs.figures_of(output.figure, [drawing.name for drawing in STRATA.figures])
    data = inputs.judge_files(judged, compute.seed)
    settings = {**vars(division), **vars(average), **vars(compute)}
    names = inputs.metric_names(judged.metric) or METRICS
    with progress("strata", output.quiet) as move:
        result = strata_of(data, names, by=_groups(by), m=strata, progress=move, **settings)
    outputs.draw(figures, result.figure)
    if heads:
        part = result.parts["heads"]
        result = replace(part, explanation=result.explanation, notes=result.notes)
    outputs.deliver_result(result, output)


def _groups(by: str) -> Any:
    """Return the name of what strata go by, or the table of groups in a file."""
    from unskew.data.read.tables import read_table
    from unskew.unbiased.divide import BY

    if by in BY:
        return by
    if not exists(by):
        choose("--by", by, (*BY, "FILE"))
    table = read_table(by)
    if table.frame.width < 2:
        raise DataError(f"{by}: a file of groups needs two columns, ids and groups")
    return table.frame.select(table.frame.columns[:2])


PAIRS = OptionsOf("stats.compare.user_distribution:user_distribution", {"Test": "against level"})


def distribution_command(
    *,
    scored: ScoredOptions,
    tests: Annotated[Options, PAIRS],
    lexirecall: bool = False,
    compute: ComputeOptions,
    output: FigureTableOptions,
) -> None:
    """Show the values of all users: quantile curves, dominance, who gains and who loses.

    [bold]Examples[/bold]

      unskew distribution -j test.csv -r a.csv -r b.csv -m nDCG@10 --liked 4

      unskew distribution --scores saved/ -m nDCG@10 --against b --figure curves.svg

      unskew distribution -j test.csv -r a.csv -r b.csv --liked 4 --lexirecall

    Bands hold at all points of a curve together. One system dominates another to first order where
    at every tested value more users lie above it, to second order where at every tested value users
    fall short of it by less, in the mean.

    [bold]Figures[/bold]

      quantiles, for the first metric; none with --lexirecall

    Test
    ----
    lexirecall
        Compare instead by the ranks of the worst-ranked liked items (lexicographic recall).
    """
    from unskew.evaluation.evaluate import METRICS
    from unskew.stats.compare.user_distribution import USER_DISTRIBUTION, user_distribution

    if lexirecall:
        result = _lexicographic(scored, compute, output, vars(tests))
    else:
        names = [drawing.name for drawing in USER_DISTRIBUTION.figures]
        figures = outputs.figures_of(output.figure, names)
        values = inputs.scores_of(scored, compute, METRICS, output.quiet)
        result = user_distribution(values, inputs.metric_names(scored.judged.metric), **vars(tests))
        outputs.draw(figures, result.figure)
    outputs.deliver_result(result, output)


def _lexicographic(
    scored: ScoredOptions,
    compute: ComputeOptions,
    output: FigureTableOptions,
    tests: dict[str, Any],
) -> Any:
    from unskew.stats.compare.lexirecall import lexirecall

    if inputs.is_saved(scored):
        raise SettingError("--lexirecall needs the lists: give --judgments and --run, not --scores")
    refuse("does nothing with --lexirecall: leave it out", "--metric --figure", scored, output)
    return lexirecall(inputs.judge_files(scored.judged, compute.seed), **tests)


RANKS = OptionsOf(
    "stats.compare.compare_data_sets:compare_data_sets",
    {
        "Input": "missing",
        "What is measured": "metric",
        "Test": "test against rope level permutations",
        "Intervals": "resamples",
    },
)


def ranking_command(
    *,
    data_sets: Annotated[list[str], argument("[NAME=]PATH…")],
    settings: Annotated[Options, RANKS],
    compute: ComputeOptions,
    output: FigureTableOptions,
) -> None:
    """Compare recommenders over several data sets: ranks, tests of ranks, differences, letters.

    [bold]Examples[/bold]

      unskew evaluate -j test.csv -r a.csv -r b.csv --liked 4 -m nDCG@10,P@10 --save books/

      unskew ranking books/ films/ games/ -m nDCG@10

      unskew ranking read=books/ seen=films/ -m nDCG@10 --against b --rope 0.005

      unskew ranking books/ films/ games/ -m P@10 --test nemenyi --figure ranks.svg
      --figure differences=d.svg

    Every data set counts once, however many users it has. What holds on these data sets and what
    holds on data sets like these are two questions: about other data sets nothing is concluded with
    fewer than 6 of them.

    [bold]Figures[/bold]

      ranks (the default; mean ranks, and which systems do not differ), differences (by data set),
      pairs (over data sets)

    Arguments
    ---------
    data_sets
        Scores of each data set: a folder written by evaluate --save, or a table of values per user;
        NAME=PATH names the data set. Folders of one NAME are its folds.
    """
    from unskew.stats.compare.compare_data_sets import DATA_SETS, compare_data_sets

    names = [drawing.name for drawing in DATA_SETS.figures]
    figures = outputs.figures_of(output.figure, names)
    scores = _read(data_sets)
    with progress("drawing users", output.quiet) as move:
        result = compare_data_sets(scores, progress=move, **vars(settings), **vars(compute))
    outputs.draw(figures, result.figure)
    outputs.deliver_result(result, output)


def _read(texts: Sequence[str]) -> dict[str, Any]:
    """Read the scores of each data set; several folders of one name are folds."""
    from unskew.evaluation.scores import Scores
    from unskew.runs import system_name

    paths: dict[str, list[str]] = {}
    for text in texts:
        name, path, rest = split_named_source(text)
        if rest:
            raise SettingError(f"columns cannot be renamed here: {text}; call them as they are")
        paths.setdefault(name or system_name(path), []).append(path)
    scores: dict[str, Any] = {}
    for name, several in paths.items():
        folders = [path for path in several if Path(path).is_dir()]
        if len(several) > 1 and len(folders) < len(several):
            raise SettingError(
                f"several paths are named {name!r}: only folders can be folds of one data set; "
                "name data sets by NAME=PATH"
            )
        loaded = [Scores.load(path) for path in folders]
        scores[name] = several[0] if not loaded else loaded[0] if len(loaded) == 1 else loaded
    return scores
