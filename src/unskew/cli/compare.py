"""`unskew compare`: who is better, by how much, how sure."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

from unskew.checks import MOST_DRAWS, choose
from unskew.cli import inputs, outputs
from unskew.cli.console import progress
from unskew.cli.options import (
    OUTPUT,
    Above,
    Columns,
    Depth,
    Digits,
    Duplicates,
    Format,
    Gain,
    Judgments,
    Liked,
    Loss,
    Metrics,
    Quiet,
    RelevanceOf,
    Runs,
    Saved,
    Seed,
    TableFile,
    Threads,
    Ties,
    Train,
    Undefined,
    Users,
    at_least,
    option,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from unskew.evaluation.scores import Scores

EXAMPLES = """
Compare recommenders user by user: differences, intervals, corrected p-values, letters.

[bold]Examples[/bold]

  unskew compare --judgments test.csv --run mine.parquet --run theirs.trec -m nDCG@10 --liked 4

  unskew compare -j test.csv -r a.csv -r b.csv -r c.csv -m P@10,nDCG@10 --correction maxT

  unskew compare -j test.csv -r base.csv -r mine.csv -m AP --reference base -o table.tex

  unskew compare -j test.csv -r a.csv -r b.csv -r c.csv -m P@10 --figure differences.svg
  --figure pairs=matrix.svg

  unskew compare --scores fold-1/ --scores fold-2/ -m nDCG@10 --test wilcoxon --format latex

Several --scores are folds or splits of the same systems: the user stays the unit. All pairs are
tested with the same permutations. Systems that share a letter do not differ significantly.
"""
TEST = "Test"


def compare(  # noqa: D103 - its help is EXAMPLES
    judgments: Judgments = None,
    run: Runs = None,
    scores: Saved = None,
    train: Train = None,
    columns: Columns = None,
    duplicates: Duplicates = "error",
    metric: Metrics = None,
    liked: Liked = None,
    above: Above = None,
    gain: Gain = None,
    loss: Loss = None,
    relevance: RelevanceOf = None,
    depth: Depth = None,
    users: Users = "with-test",
    undefined: Undefined = "zero",
    ties: Ties = None,
    test: Annotated[
        str, option(TEST, "randomisation, t, wilcoxon, sign, bootstrap or bootstrap-t.")
    ] = "randomisation",
    alternative: Annotated[
        str, option(TEST, "two-sided; or greater, less, better: of a pair's first system.")
    ] = "two-sided",
    correction: Annotated[
        str, option(TEST, "holm, bonferroni, bh, by, maxT, tukey or none.")
    ] = "holm",
    family: Annotated[
        str, option(TEST, "Corrected together: the pairs of a metric, or all.")
    ] = "metric",
    permutations: Annotated[
        int, option(TEST, "Permutations, or resamples.", **at_least(1, MOST_DRAWS))
    ] = 100_000,
    plus_one: Annotated[
        bool,
        option(TEST, "p = (extreme + 1) / (permutations + 1), never 0; or the plain share."),
    ] = True,
    confidence: Annotated[float, option(TEST, "Of the intervals.")] = 0.95,
    interval: Annotated[str, option(TEST, "t, or bca (bootstrap).")] = "t",
    reference: Annotated[
        str | None, option(TEST, "Compare with this system only, not all pairs.")
    ] = None,
    rope: Annotated[
        float | None,
        option(TEST, "Differences up to this do not matter: adds probabilities."),
    ] = None,
    seed: Seed = 0,
    threads: Threads = None,
    to: TableFile = None,
    figure: Annotated[
        list[str] | None,
        option(
            OUTPUT,
            "Draw the first metric: FILE (differences), or pairs=FILE (a matrix). Repeatable.",
            "--figure",
            metavar="[NAME=]FILE",
            callback=outputs.figure_files,
        ),
    ] = None,
    format: Format = "table",  # noqa: A002 - the word users expect
    digits: Digits = 4,
    quiet: Quiet = False,
) -> None:
    from unskew.stats.comparison import FIGURES
    from unskew.stats.significance import compare as compare_scores

    choose("format", format, outputs.FORMATS)
    figures = outputs.figures_of(figure, FIGURES)
    asked = inputs.metric_names(metric)
    judged: Scores | Sequence[Scores]
    if inputs.either(judgments, run, scores):
        judged = inputs.load(scores or [])
    else:
        from unskew.evaluation.evaluate import METRICS, evaluate

        rules = inputs.relevance_of(liked, above, gain, loss, relevance)
        tests, lists, trained = inputs.read_files(
            judgments, run, train, columns=columns, duplicates=duplicates, ties=ties, seed=seed
        )
        with progress("judging", quiet) as moved:
            judged = evaluate(
                tests,
                lists,
                asked or METRICS,
                train=trained,
                users=users,
                undefined=undefined,
                ties=ties,
                seed=seed,
                depth=depth,
                threads=threads,
                progress=moved,
                **rules,
            )
    with progress("comparing", quiet) as moved:
        result = compare_scores(
            judged,
            asked,
            test=test,
            alternative=alternative,
            permutations=permutations,
            plus_one=plus_one,
            correction=None if correction == "none" else correction,
            family=family,
            confidence=confidence,
            interval=interval,
            reference=reference,
            rope=rope,
            seed=seed,
            threads=threads,
            progress=moved,
        )
    outputs.draw(figures, result.figure)
    printout = outputs.Printout.of_result(result, digits, json=result.to_dict)
    outputs.deliver(printout, to, format, quiet)


compare.__doc__ = EXAMPLES
