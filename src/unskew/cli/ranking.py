"""`unskew ranking`: the same systems on several data sets."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

from unskew.checks import MOST_DRAWS
from unskew.cli import outputs
from unskew.cli.bundles import argument, bundle, option
from unskew.cli.options import (
    INPUT,
    INTERVALS,
    MEASURE,
    TEST,
    ComputeOptions,
    Confidence,
    FigureTableOptions,
    Reference,
    Rope,
)
from unskew.cli.progress import progress
from unskew.cli.sources import split_named_source
from unskew.errors import SettingError


@bundle
class RankOptions:
    """How systems are compared over data sets."""

    missing: Annotated[
        str,
        option(
            INPUT,
            "A system that a data set lacks: refuse, or leave out such systems (systems) or the "
            "data sets that lack one (data-sets).",
            default="refuse",
        ),
    ]
    metric: Annotated[
        str | None,
        option(
            MEASURE,
            "The metric. Not needed where the data sets share one only.",
            "--metric",
            "-m",
        ),
    ]
    test: Annotated[
        str,
        option(TEST, "The test of pairs: wilcoxon, sign, t or nemenyi.", default="wilcoxon"),
    ]
    reference: Reference
    rope: Rope
    confidence: Confidence
    permutations: Annotated[
        int,
        option(
            TEST,
            "Permutations of ranks for Friedman's test, where all are too many to count.",
            default=100_000,
            min=1,
            max=MOST_DRAWS,
        ),
    ]
    resamples: Annotated[
        int,
        option(
            INTERVALS,
            "Resamples of data sets and users for intervals of mean ranks; 0 for no intervals.",
            default=2_000,
            min=0,
            max=MOST_DRAWS,
        ),
    ]


def command(
    data_sets: Annotated[
        list[str],
        argument(
            "Scores of each data set: a folder written by evaluate --save, or a table of values "
            "per user; NAME=PATH names the data set. Folders of one NAME are its folds.",
            "[NAME=]PATH…",
        ),
    ],
    settings: RankOptions,
    compute: ComputeOptions,
    output: FigureTableOptions,
) -> None:
    """Compare recommenders over several data sets: ranks, tests of ranks, differences, letters.

    [bold]Examples[/bold]

      unskew evaluate -j test.csv -r a.csv -r b.csv --liked 4 -m nDCG@10,P@10 --save books/

      unskew ranking books/ films/ games/ -m nDCG@10

      unskew ranking read=books/ seen=films/ -m nDCG@10 --reference b --rope 0.005

      unskew ranking books/ films/ games/ -m P@10 --test nemenyi --figure ranks.svg
      --figure differences=d.svg

    Every data set counts once, however many users it has. What holds on these data sets and what
    holds on data sets like these are kept apart: about other data sets nothing is concluded with
    fewer than 6 of them.

    [bold]Figures[/bold]

      ranks (the default; the critical-difference chart) and differences
    """
    from unskew.stats.data_set_result import FIGURES
    from unskew.stats.data_sets import compare_data_sets

    figures = outputs.figures_of(output.figure, FIGURES)
    scores = _read(data_sets)
    with progress("drawing users", output.quiet) as move:
        result = compare_data_sets(scores, progress=move, **vars(settings), **vars(compute))
    outputs.draw(figures, result.figure)
    printout = outputs.Printout.of_result(result, output.digits, json=result.to_dict)
    outputs.deliver(printout, output)


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
