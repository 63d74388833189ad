"""`unskew compare`: which system is better, by how much, and how sure that is."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from unskew.cli import files, inputs, outputs
from unskew.cli.options import (
    AverageOptions,
    ComputeOptions,
    FigureTableOptions,
    GroupUsers,
    JudgedOptions,
    ScoredOptions,
)
from unskew.cli.parameters import Option, Options, OptionsOf, bundle
from unskew.cli.progress import progress
from unskew.errors import SettingError

if TYPE_CHECKING:
    from unskew.judging.judged import Judged
    from unskew.stats.pairing import Paired

TESTS = OptionsOf(
    "stats.compare.compare:compare",
    {
        "Test": "test alternative correction family permutations plus_one level interval "
        "against rope"
    },
)


@bundle
class SegmentOptions:
    """The segments of users that systems are compared in.

    Segments of users
    -----------------
    by
        Compare within segments of users: activity, popularity (of what the user likes), taste
        (niche, diverse, blockbuster), time (of the last test judgment), or FILE:COLUMN of a file of
        users.
    groups
        Number of quantile groups that numbers are cut into. Default: 4.
    least_users
        Groups of a text column with fewer users are merged into other. Default: 20.
    """

    by: Annotated[str | None, Option(metavar="NAME|FILE:COLUMN")] = None
    groups: int | None = None
    least_users: int | None = None


PaperFile = Annotated[
    Path | None,
    Option(files.file_check(files.TABLES, "--paper", "name a file, such as table.tex")),
]


def compare_command(
    *,
    judged: JudgedOptions,
    lists: str | None = None,
    scores: list[Path] | None = None,
    average: AverageOptions,
    tests: Annotated[Options, TESTS],
    segments: SegmentOptions,
    group_users: GroupUsers = None,
    compute: ComputeOptions,
    output: FigureTableOptions,
    paper: PaperFile = None,
) -> None:
    """Compare recommenders user by user: differences, intervals, corrected p-values, letters.

    [bold]Examples[/bold]

      unskew compare --judgments test.csv --run mine.parquet --run theirs.trec -m nDCG@10 --liked 4

      unskew compare -j test.csv -r a.csv -r b.csv -r c.csv -m P@10,nDCG@10 --correction maxT

      unskew compare -j test.csv -r base.csv -r mine.csv -m AP --against base -o table.tex

      unskew compare -j test.csv -r a.csv -r b.csv -r c.csv -m P@10 --figure differences.svg
      --figure pairs=matrix.svg

      unskew compare --scores fold-1/ --scores fold-2/ -m nDCG@10 --test wilcoxon --format latex

      unskew compare -j test.csv -r a.csv -r b.csv -m P@10,nDCG@10 --family all --paper table.tex

      unskew compare -j test.csv -r a.csv -r b.csv --train train.csv -m P@10 --by activity

      unskew compare -j test.csv -r a.csv -r b.csv -m P@10 --by users.csv:country --figure by.svg

      unskew compare -j test.csv -r a.csv -r b.csv -m P@10 --group-users users.csv:household

    Several --scores are folds or splits of the same systems: the user stays the unit. All pairs are
    tested with the same permutations. Systems that share a letter do not differ significantly.

    In the table of a paper, superscripts are the letters of the systems that a system is
    significantly better than; with --against, a dagger marks those better than it.

    With --by, differences are within segments of users: intervals of all segments and pairs hold
    together, p-values are corrected over them, and an interaction test tells whether the difference
    differs between segments. With --train, users without training ratings are a segment, cold,
    unless a file is given.

    [bold]Figures[/bold]

      differences (the default) and pairs, both for the first metric; with --by: segments, of the
      first pair

    Output
    ------
    paper
        Also write systems x metrics as a paper prints them, with marks of significance; the ending
        selects the format: .csv, .json, .md, .tex, .html, .parquet.
    """
    from unskew.stats.compare.compare import PAIRS, compare
    from unskew.stats.compare.compare_segments import SEGMENTS
    from unskew.stats.compare.paper_table import table_of
    from unskew.stats.user_groups import duplicates_notes, groups_of_users, rating_parts

    by_segment = segments.by is not None
    if by_segment and paper is not None:
        raise SettingError("--paper is for all users: leave out --by")
    question = SEGMENTS if by_segment else PAIRS
    figures = outputs.figures_of(output.figure, [drawing.name for drawing in question.figures])
    scored = ScoredOptions(judged=judged, scores=scores, average=average)
    pairs, data = read_pairs(scored, lists, compute, output.quiet)
    groups = groups_of_users(group_users, rating_parts(data))
    pairs = replace(pairs, notes=(*pairs.notes, *duplicates_notes(data, group_users)))
    division = {**_division(pairs, data, segments), "group_users": groups}
    settings = {**vars(compute), **test_settings(tests), **division}
    with progress("comparing", output.quiet) as move:
        result = compare(pairs, inputs.metric_names(judged.metric), progress=move, **settings)
    outputs.draw(figures, result.figure)
    if paper is not None:
        table = table_of(pairs, result)
        environment = partial(table.to_latex, output.digits, label="tab:results")
        outputs.Printout.of_result(
            table, output.digits, latex=environment, json=table.to_dict
        ).write(paper)
    outputs.deliver_result(result, output)
    if paper is not None and not output.quiet:
        outputs.note(f"the table for a paper is in {paper}")


def test_settings(tests: Options) -> dict[str, Any]:
    """Return the options of tests as functions take them, for which no correction is None."""
    correction = None if tests.correction == "none" else tests.correction
    return {**vars(tests), "correction": correction}


def read_segments(
    scored: ScoredOptions,
    lists: str | None,
    compute: ComputeOptions,
    segments: SegmentOptions,
    quiet: bool,
) -> tuple[Any, dict[str, Any]]:
    """Return the values per user, and what `compare` takes to divide users into segments."""
    pairs, data = read_pairs(scored, lists, compute, quiet)
    return pairs, _division(pairs, data, segments)


def read_pairs(
    scored: ScoredOptions, lists: str | None, compute: ComputeOptions, quiet: bool
) -> tuple[Paired, Judged | None]:
    """Return the values per user, and the judged data where these are no saved scores."""
    from unskew.evaluation.evaluate import METRICS
    from unskew.stats.pairing import paired

    if inputs.is_saved(scored):
        if lists is not None:
            raise SettingError("--lists is for --run: saved scores know their lists")
        return paired(inputs.read_scores(scored.scores or [])), None
    data = inputs.judge_files(scored.judged, compute.seed, lists=lists)
    return paired(inputs.scores_of(scored, compute, METRICS, quiet, data)), data


def _division(pairs: Paired, data: Judged | None, segments: SegmentOptions) -> dict[str, Any]:
    """Return what `compare` takes to divide users into segments."""
    from unskew.stats.segments import segments_of

    if data is None or segments.by is None:
        return vars(segments)
    return {"by": segments_of(pairs.users, judged=data, **vars(segments))}
