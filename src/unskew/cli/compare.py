"""`unskew compare`: which system is better, by how much, and how sure that is."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from unskew.cli import formats, inputs, outputs
from unskew.cli.bundles import bundle, option
from unskew.cli.options import (
    OUTPUT,
    TEST,
    AverageOptions,
    ComputeOptions,
    FigureTableOptions,
    JudgedOptions,
    Permutations,
    Saved,
)
from unskew.cli.progress import progress


@bundle
class TestOptions:
    """How systems are tested."""

    test: Annotated[
        str,
        option(
            TEST,
            "The test: randomisation, t, wilcoxon, sign, bootstrap or bootstrap-t.",
            default="randomisation",
        ),
    ]
    alternative: Annotated[
        str,
        option(
            TEST,
            "two-sided, or one-sided for the first system of a pair: greater, less or better.",
            default="two-sided",
        ),
    ]
    correction: Annotated[
        str,
        option(
            TEST,
            "Correction for several pairs: holm, bonferroni, bh, by, maxT, tukey or none.",
            default="holm",
        ),
    ]
    family: Annotated[
        str,
        option(
            TEST,
            "P-values to correct together: those of each metric (metric), or all (all).",
            default="metric",
        ),
    ]
    permutations: Permutations
    plus_one: Annotated[
        bool,
        option(
            TEST,
            "Compute p as (extreme + 1) / (permutations + 1), which is never 0, or as the plain "
            "share.",
            default=True,
        ),
    ]
    confidence: Annotated[float, option(TEST, "Confidence of the intervals.", default=0.95)]
    interval: Annotated[
        str, option(TEST, "Method of the intervals: t, or bca (bootstrap).", default="t")
    ]
    reference: Annotated[
        str | None, option(TEST, "Compare this system with every other one, instead of all pairs.")
    ]
    rope: Annotated[
        float | None,
        option(
            TEST,
            "Differences up to this size do not matter; adds the probability of such a difference.",
        ),
    ]


PaperFile = Annotated[
    Path | None,
    option(
        OUTPUT,
        "Also write systems x metrics as a paper prints them, with marks of significance; the "
        f"ending selects the format: {', '.join(formats.TABLES)}.",
        "--paper",
        callback=formats.check_paper_file,
    ),
]


def command(
    judged: JudgedOptions,
    scores: Saved,
    average: AverageOptions,
    tests: TestOptions,
    compute: ComputeOptions,
    output: FigureTableOptions,
    paper: PaperFile,
) -> None:
    """Compare recommenders user by user: differences, intervals, corrected p-values, letters.

    [bold]Examples[/bold]

      unskew compare --judgments test.csv --run mine.parquet --run theirs.trec -m nDCG@10 --liked 4

      unskew compare -j test.csv -r a.csv -r b.csv -r c.csv -m P@10,nDCG@10 --correction maxT

      unskew compare -j test.csv -r base.csv -r mine.csv -m AP --reference base -o table.tex

      unskew compare -j test.csv -r a.csv -r b.csv -r c.csv -m P@10 --figure differences.svg
      --figure pairs=matrix.svg

      unskew compare --scores fold-1/ --scores fold-2/ -m nDCG@10 --test wilcoxon --format latex

      unskew compare -j test.csv -r a.csv -r b.csv -m P@10,nDCG@10 --family all --paper table.tex

    Several --scores are folds or splits of the same systems: the user stays the unit. All pairs are
    tested with the same permutations. Systems that share a letter do not differ significantly.

    In the table of a paper, superscripts are the letters of the systems that a system is
    significantly better than; with --reference, a dagger marks those better than it.

    [bold]Figures[/bold]

      differences (the default) and pairs, both for the first metric
    """
    from unskew.evaluation.evaluate import METRICS
    from unskew.stats.comparison import FIGURES
    from unskew.stats.pairing import paired
    from unskew.stats.paper_tables import table_of
    from unskew.stats.significance import compare

    figures = outputs.figures_of(output.figure, FIGURES)
    pairs = paired(inputs.scores_of(judged, scores, average, compute, METRICS, output.quiet))
    correction = None if tests.correction == "none" else tests.correction
    with progress("comparing", output.quiet) as move:
        result = compare(
            pairs,
            inputs.metric_names(judged.metric),
            progress=move,
            **vars(compute),
            **{**vars(tests), "correction": correction},
        )
    outputs.draw(figures, result.figure)
    if paper is not None:
        table = table_of(pairs, result, digits=output.digits)
        outputs.Printout.of_result(
            table, latex=table.to_latex, markdown=table.to_markdown, json=table.to_dict
        ).write(paper)
    printout = outputs.Printout.of_result(result, output.digits, json=result.to_dict)
    outputs.deliver(printout, output)
