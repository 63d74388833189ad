"""Commands that compare in parts: groups, strata, quantiles of users, many data sets, time."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from unskew.checks import choose
from unskew.cli import inputs, outputs
from unskew.cli.doors.compare import SegmentOptions, read_segments, test_settings
from unskew.cli.files import exists, split_named_source
from unskew.cli.options import (
    AverageOptions,
    ComputeOptions,
    ExecutorOptions,
    FigureTableOptions,
    JudgedOptions,
    NamedFileOptions,
    RatingsArgument,
    ReportOptions,
    ScoredOptions,
)
from unskew.cli.parameters import Options, OptionsOf, argument, bundle, refuse
from unskew.cli.progress import tasks_progress
from unskew.errors import DataError, SettingError

if TYPE_CHECKING:
    from unskew.engine.progress import Progress
    from unskew.judging.judged import Judged
    from unskew.report.estimates import Estimates
    from unskew.splits.time.windows import Windows


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
    from unskew.stats.compare.item_group_gaps import ITEM_GROUPS, item_group_gaps

    if (segments.by is None) == (gaps.by_items is None):
        raise SettingError("give --by for groups of users, or --by-items for groups of items")
    tests = test_settings(gaps.tests)
    if gaps.by_items is not None:
        judge = partial(_judge_lists, "--by-items", scored, compute)
        reason = "is for groups of users: leave it out with --by-items"
        refuse(
            reason,
            "--figure --metric --against --epsilon --least-users",
            *(output, scored, gaps, segments),
        )
        ask = partial(item_group_gaps, by=gaps.by_items, groups=segments.groups, **tests)
        outputs.answer(ITEM_GROUPS, judge, partial(ask, k=gaps.places or 10), output)
        return
    refuse("is for --by-items: leave it out", "--places", gaps)
    metrics = inputs.metric_names(scored.judged.metric)
    chosen = inputs.given(against=gaps.against, epsilon=gaps.epsilon)

    def compare_groups(data: tuple[Any, dict[str, Any]], progress: Progress) -> Estimates:
        pairs, division = data
        settings = {**division, **chosen, **tests, **vars(compute)}
        return group_gaps(pairs, metrics=metrics, progress=progress, **settings)

    read = partial(read_segments, scored, None, compute, segments, output.quiet)
    outputs.answer(GROUP_GAPS, read, compare_groups, output, "comparing groups")


def _judge_lists(option: str, scored: ScoredOptions, compute: ComputeOptions) -> Judged:
    """Read lists and what judges them, where saved scores do not say enough."""
    if inputs.is_saved(scored):
        raise SettingError(f"{option} needs the lists: give --judgments and --run, not --scores")
    return inputs.judge_files(scored.judged, compute.seed)


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

    settings = {"m": strata, **vars(division), **vars(average), **vars(compute)}

    def ask(judged_lists: Judged, progress: Progress) -> Estimates:
        groups = _group_table(by)
        return strata_of(judged_lists, names, by=groups, progress=progress, **settings)

    names = inputs.metric_names(judged.metric) or METRICS
    read = partial(inputs.judge_files, judged, compute.seed)
    outputs.answer(STRATA, read, ask, output, "strata", part="heads" if heads else "")


def _group_table(by: str) -> Any:
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
    from unskew.stats.compare.lexirecall import LEXIRECALL
    from unskew.stats.compare.lexirecall import lexirecall as by_worst_ranks
    from unskew.stats.compare.user_distribution import USER_DISTRIBUTION, user_distribution

    if lexirecall:
        judge = partial(_judge_lists, "--lexirecall", scored, compute)
        refuse("does nothing with --lexirecall: leave it out", "--metric --figure", scored, output)
        outputs.answer(LEXIRECALL, judge, partial(by_worst_ranks, **vars(tests)), output)
        return
    read = partial(inputs.scores_of, scored, compute, METRICS, output.quiet)
    metrics = inputs.metric_names(scored.judged.metric)
    ask = partial(user_distribution, metrics=metrics, **vars(tests))
    outputs.answer(USER_DISTRIBUTION, read, ask, output)


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

    ask = partial(compare_data_sets, **vars(settings), **vars(compute))
    read = partial(_read_data_sets, data_sets)
    outputs.answer(DATA_SETS, read, ask, output, "drawing users")


def _read_data_sets(texts: Sequence[str]) -> dict[str, Any]:
    """Read the scores of each data set; several folders of one name are folds."""
    from unskew.evaluation.scores import Scores
    from unskew.runs import system_name

    paths: dict[str, list[str]] = {}
    for text in texts:
        name, path, columns = split_named_source(text)
        if columns:
            raise SettingError(f"columns cannot be renamed here: {text}; call them as they are")
        paths.setdefault(name or system_name(path), []).append(path)
    scores: dict[str, Any] = {}
    for name, folds in paths.items():
        folders = [path for path in folds if Path(path).is_dir()]
        if len(folds) > 1 and len(folders) < len(folds):
            raise SettingError(
                f"several paths are named {name!r}: only folders can be folds of one data set; "
                "name data sets by NAME=PATH"
            )
        loaded = [Scores.load(path) for path in folders]
        scores[name] = folds[0] if not loaded else loaded[0] if len(loaded) == 1 else loaded
    return scores


@bundle
class WindowOptions:
    """Which windows are judged, and what trains for each.

    Windows
    -------
    windows
        How many windows. Default: 5 of equal numbers of ratings; with --length, as many as there is
        room for.
    test
        Share of the ratings that windows cover, the last ones. Default: 0.5.
    """

    windows: int | None = None
    lengths: Annotated[
        Options,
        OptionsOf("splits.time.windows:Windows", {"Windows": "length step gap train_length"}),
    ]
    test: float | None = None


def timeline_command(
    *,
    ratings: RatingsArgument,
    files: NamedFileOptions,
    event_log: bool = False,
    algorithm: list[str] | None = None,
    metric: list[str] | None = None,
    liked: float | None = None,
    windows: WindowOptions,
    ages: str | None = None,
    level: float = 0.95,
    resamples: int = 1_000,
    seed: int = 0,
    executor: ExecutorOptions,
    output: ReportOptions,
) -> None:
    """Show how systems do over time: windows, changes of their order, age of models.

    Every system is trained again for every window, on what came before it.

    [bold]Examples[/bold]

      unskew timeline ratings.csv --liked 4 -a popularity -a recent-popularity -a item-knn

      unskew timeline log.csv --event-log --windows 6 --length 30d --ages 0d,30d,60d

      unskew timeline ml-100k --windows 5 -m nDCG@10 -m RR -o timeline.html

    [bold]What is said[/bold]

      varies: the difference between two systems is not the same in all windows

      order changes: each of two systems is ahead in some window, by intervals that hold for all
      pairs and windows at once

      loses with age: models whose training ends earlier, judged on one window by the same users

    Without -o the result is printed; a file that ends in .html has the curves too.

    Age of models
    -------------
    ages
        Also judge models of these ages on the last window: how long before it their training ends,
        such as 0d,7d,30d.
    """
    from unskew.experiment.over_time import METRIC, SYSTEMS, timeline

    read = inputs.read_log if event_log else inputs.read_rating_file
    data = read(ratings, files)
    settings = {"liked": liked, "level": level, "resamples": resamples, "seed": seed}
    with tasks_progress(output.quiet, 1) as move:
        result = timeline(
            data,
            inputs.systems(algorithm) or list(SYSTEMS),
            inputs.metric_names(metric) or METRIC,
            windows=_windows(windows),
            ages=inputs.between_commas(ages),
            progress=move,
            **settings,  # type: ignore[arg-type]
            **executor.arguments(),
        )
    if output.output is None and output.format is None:
        show_timeline(result, output.quiet)
        return
    page = result.document("Systems over time")
    show = partial(show_timeline, result, output.quiet)
    outputs.write_report(page, output, "timeline", show)


def show_timeline(result: Estimates, quiet: bool) -> None:
    """Print the result; quietly, what follows from it alone."""
    outputs.say("\n".join(result.conclusion) if quiet else str(result))


def _windows(options: WindowOptions) -> Windows | None:
    """Return the windows asked for; None: the usual ones."""
    from unskew.experiment.over_time import SHARE
    from unskew.splits.time.windows import Windows as Split

    test = SHARE if (options.test, options.lengths.length) == (None, None) else options.test
    return Split(**inputs.given(number=options.windows, test=test, **vars(options.lengths)))
