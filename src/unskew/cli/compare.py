"""`unskew compare`: who is better, by how much, how sure."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from unskew.cli import inputs
from unskew.cli.console import output, progress
from unskew.cli.options import Columns, Duplicates, Quiet
from unskew.errors import choose
from unskew.layout import as_json

if TYPE_CHECKING:
    from collections.abc import Sequence

    from unskew.comparing.comparison import Comparison
    from unskew.scores import Scores

EXAMPLES = """
Compare recommenders user by user: differences, intervals, corrected p-values, letters.

[bold]Examples[/bold]

  unskew compare --judgments test.csv --run mine.parquet --run theirs.trec -m nDCG@10 --liked 4

  unskew compare -j test.csv -r a.csv -r b.csv -r c.csv -m P@10,nDCG@10 --correction maxT

  unskew compare -j test.csv -r base.csv -r mine.csv -m AP --reference base -o differences.svg

  unskew compare --scores fold-1/ --scores fold-2/ -m nDCG@10 --test wilcoxon --format latex

Several --scores are folds or splits of the same systems: the user stays the unit. All pairs are
tested with the same permutations. Systems that share a letter do not differ significantly.
"""
FORMATS = ("table", "markdown", "latex", "json", "csv")


def compare(  # noqa: D103 - its help is EXAMPLES
    judgments: inputs.Judgments = None,
    run: inputs.Runs = None,
    scores: inputs.Saved = None,
    metric: inputs.Metrics = None,
    liked: inputs.Liked = None,
    above: inputs.Above = None,
    gain: inputs.Gain = None,
    loss: inputs.Loss = None,
    relevance: inputs.RelevanceOf = None,
    train: Annotated[
        Path | None, typer.Option(help="Training ratings: for popularity and novelty metrics.")
    ] = None,
    users: inputs.Users = "with-test",
    undefined: Annotated[
        str, typer.Option(help="Undefined values count as zero, or skip their users.")
    ] = "zero",
    ties: inputs.Ties = None,
    depth: inputs.Depth = None,
    columns: Columns = None,
    duplicates: Duplicates = "error",
    test: Annotated[
        str, typer.Option(help="randomisation, t, wilcoxon, sign, bootstrap or bootstrap-t.")
    ] = "randomisation",
    alternative: Annotated[
        str, typer.Option(help="two-sided; or greater, less, better: of a pair's first system.")
    ] = "two-sided",
    correction: Annotated[
        str, typer.Option(help="holm, bonferroni, bh, by, maxT, tukey or none.")
    ] = "holm",
    family: Annotated[
        str, typer.Option(help="Corrected together: the pairs of a metric, or all.")
    ] = "metric",
    permutations: Annotated[int, typer.Option(help="Permutations, or resamples.")] = 100_000,
    plus_one: Annotated[
        bool,
        typer.Option(help="p = (extreme + 1) / (permutations + 1), never 0; or the plain share."),
    ] = True,
    confidence: Annotated[float, typer.Option(help="Of the intervals.")] = 0.95,
    interval: Annotated[str, typer.Option(help="t, or bca (bootstrap).")] = "t",
    reference: Annotated[
        str | None, typer.Option(help="Compare with this system only, not all pairs.")
    ] = None,
    rope: Annotated[
        float | None, typer.Option(help="Differences up to this do not matter: adds probabilities.")
    ] = None,
    seed: Annotated[int, typer.Option(help="Of the permutations, and of --ties random.")] = 0,
    format: Annotated[  # noqa: A002 - the word users expect
        str, typer.Option(help="table, markdown, latex, json or csv (all pairs).")
    ] = "table",
    out: Annotated[
        Path | None,
        typer.Option("--output", "-o", help="Draw the first metric: .html, .svg, .png or .pdf."),
    ] = None,
    figure: Annotated[
        str, typer.Option(help="What -o draws: differences, or pairs (a matrix).")
    ] = "differences",
    digits: inputs.Digits = 4,
    threads: inputs.Threads = None,
    quiet: Quiet = False,
) -> None:
    from unskew.charts import FORMATS as DRAWN
    from unskew.comparing.comparison import FIGURES
    from unskew.comparing.significance import compare as compare_scores

    choose("format", format, FORMATS)
    choose("figure", figure, FIGURES)
    if out is not None:
        choose("ending of --output", out.suffix.lower(), DRAWN)
    asked = inputs.metric_names(metric)
    judged: Scores | Sequence[Scores]
    if inputs.either(judgments, run, scores):
        judged = inputs.load(scores or [])
    else:
        from unskew.evaluation import METRICS, evaluate

        rules = inputs.relevance_of(liked, above, gain, loss, relevance)
        tests, lists, trained = inputs.read_files(
            judgments, run, train, columns=columns, duplicates=duplicates, ties=ties, seed=seed
        )
        with progress("judging", quiet) as moved:
            judged = evaluate(
                tests, lists, asked or METRICS, train=trained, users=users, undefined=undefined,
                ties=ties, seed=seed, depth=depth, threads=threads, progress=moved, **rules,
            )  # fmt: skip
    with progress("comparing", quiet) as moved:
        result = compare_scores(
            judged, asked, test=test, alternative=alternative, permutations=permutations,
            plus_one=plus_one, correction=None if correction == "none" else correction,
            family=family, confidence=confidence, interval=interval, reference=reference,
            rope=rope, seed=seed, threads=threads, progress=moved,
        )  # fmt: skip
    if out is not None:
        result.figure(figure).save(out)
    if format == "table":
        text = result.text(digits)
        output().print(text, markup=False, soft_wrap=True)
        for line in [] if quiet else ["", *result.footer()]:
            output().print(line, style="dim", markup=False, soft_wrap=True)
        return
    texts = {
        "markdown": lambda: result.to_markdown(digits=digits),
        "latex": lambda: result.to_latex(digits=digits),
        "json": lambda: _as_json(result),
        "csv": lambda: result.table().write_csv().rstrip("\n"),
    }
    print(texts[format]())


compare.__doc__ = EXAMPLES


def _as_json(result: Comparison) -> str:
    """Return the pairs, and how they were compared; what is not a number is null."""
    content = {
        "systems": result.systems,
        "metrics": {
            label: {
                "better": result.better[label],
                "users": result.users[label],
                "means": result.means[label],
                "letters": dict(
                    zip(
                        *(result.ranking(label)[name] for name in ("system", "letters")),
                        strict=True,
                    )
                )
                if result.reference is None
                else None,
            }
            for label in result.metrics
        },
        "test": result.test,
        "alternative": result.alternative,
        "correction": result.correction,
        "family": result.family,
        "permutations": result.permutations,
        "enumerated": result.enumerated,
        "confidence": result.confidence,
        "interval": result.interval,
        "reference": result.reference,
        "rope": result.rope,
        "seed": result.seed,
        "pairs": result.table().to_dicts(),
        "notes": result.notes,
    }
    return as_json(content)
