"""`unskew distribution`: how values are spread over users, who gains and who loses."""

from __future__ import annotations

from typing import Annotated, Any

from unskew.cli import inputs, outputs
from unskew.cli.bundles import option
from unskew.cli.options import (
    TEST,
    AverageOptions,
    ComputeOptions,
    Confidence,
    FigureTableOptions,
    JudgedOptions,
    Reference,
    Saved,
)
from unskew.errors import SettingError


def command(
    judged: JudgedOptions,
    scores: Saved,
    average: AverageOptions,
    reference: Reference,
    confidence: Confidence,
    lexirecall: Annotated[
        bool,
        option(
            TEST,
            "Compare instead by the places of the worst-placed liked items (lexicographic recall).",
            "--lexirecall",
            default=False,
        ),
    ],
    compute: ComputeOptions,
    output: FigureTableOptions,
) -> None:
    """Show the values of all users: quantile curves, dominance, who gains and who loses.

    [bold]Examples[/bold]

      unskew distribution -j test.csv -r a.csv -r b.csv -m nDCG@10 --liked 4

      unskew distribution --scores saved/ -m nDCG@10 --reference b --figure curves.svg

      unskew distribution -j test.csv -r a.csv -r b.csv --liked 4 --lexirecall

    Bands hold at all points of a curve together. One system dominates another to first order where
    at every tested value more users lie above it, to second order where at every tested value users
    fall short of it by less, in the mean.

    [bold]Figures[/bold]

      quantiles, for the first metric; none with --lexirecall
    """
    from unskew.stats.distribution_result import FIGURES

    if lexirecall:
        result = _lexicographic(judged, scores, reference, confidence, compute, output)
    else:
        figures = outputs.figures_of(output.figure, FIGURES)
        result = _distribution(judged, scores, average, reference, confidence, compute, output)
        outputs.draw(figures, result.figure)
    printout = outputs.Printout.of_result(result, output.digits, json=result.to_dict)
    outputs.deliver(printout, output)


def _distribution(
    judged: JudgedOptions,
    scores: Any,
    average: AverageOptions,
    reference: str | None,
    confidence: float,
    compute: ComputeOptions,
    output: FigureTableOptions,
) -> Any:
    from unskew.evaluation.evaluate import METRICS
    from unskew.stats.distribution_of_users import user_distribution

    values = inputs.scores_of(judged, scores, average, compute, METRICS, output.quiet)
    names = inputs.metric_names(judged.metric)
    return user_distribution(values, names, reference=reference, confidence=confidence)


def _lexicographic(
    judged: JudgedOptions,
    scores: Any,
    reference: str | None,
    confidence: float,
    compute: ComputeOptions,
    output: FigureTableOptions,
) -> Any:
    from unskew.stats.lexicographic import lexirecall

    if inputs.is_saved(judged, scores):
        raise SettingError("--lexirecall needs the lists: give --judgments and --run, not --scores")
    if judged.metric:
        raise SettingError("--metric does nothing with --lexirecall: leave it out")
    if output.figure:
        raise SettingError("--figure does nothing with --lexirecall: leave it out")
    data = inputs.judge_files(judged, compute.seed)
    return lexirecall(data, reference=reference, confidence=confidence)
