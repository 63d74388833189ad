"""`unskew shuffles`: how far lists depend on the order of candidates."""

from __future__ import annotations

from typing import Annotated, Any

from unskew.checks import MOST_DEPTH, MOST_DRAWS
from unskew.cli import inputs, outputs
from unskew.cli.bundles import given_options, option
from unskew.cli.options import (
    INPUT,
    TEST,
    AverageOptions,
    ComputeOptions,
    Confidence,
    JudgedOptions,
    TableOptions,
)
from unskew.cli.sources import split_named_source
from unskew.errors import SettingError

LISTS = "Lists"


def command(
    judged: JudgedOptions,
    presented: Annotated[
        list[str] | None,
        option(
            INPUT,
            "The order in which candidates were presented, one file per --run, in the same order. "
            "Repeatable.",
        ),
    ],
    average: AverageOptions,
    k: Annotated[
        int,
        option(
            LISTS,
            "First places of two lists whose overlap is counted.",
            "-k",
            default=10,
            min=1,
            max=MOST_DEPTH,
        ),
    ],
    p: Annotated[
        float,
        option(
            LISTS,
            "How likely a reader goes on to the next place, for RBO.",
            "--persistence",
            default=0.9,
        ),
    ],
    confidence: Confidence,
    permutations: Annotated[
        int,
        option(
            TEST,
            "Permutations of presented orders, for the test of position.",
            default=1_999,
            min=1,
            max=MOST_DRAWS,
        ),
    ],
    compute: ComputeOptions,
    output: TableOptions,
) -> None:
    """Report how the lists of a ranker change when the same candidates come in another order.

    [bold]Examples[/bold]

      unskew shuffles -r order1.csv -r order2.csv -r order3.csv

      unskew shuffles -r run1.csv -r run2.csv --presented shown1.csv --presented shown2.csv

      unskew shuffles -j test.csv -r run1.csv -r run2.csv --liked 4 -m nDCG@10

    Every --run holds the lists of one system for the same candidates, presented in another order.
    With --judgments, metrics are compared between them. With --presented, a test tells whether an
    item that is presented sooner is listed sooner.
    """
    from unskew.stats.list_sensitivity import order_sensitivity

    runs = _runs(judged, compute.seed)
    result = order_sensitivity(
        runs,
        presented=None if presented is None else _orders(presented, judged, compute.seed),
        scores=_scores(judged, average, compute, output.quiet),
        k=k,
        p=p,
        confidence=confidence,
        permutations=permutations,
        seed=compute.seed,
    )
    printout = outputs.Printout.of_result(result, output.digits, json=result.to_dict)
    outputs.deliver(printout, output)


def _runs(judged: JudgedOptions, seed: int) -> dict[str, Any]:
    """Read the lists of all shuffles, by name."""
    if not judged.run or len(judged.run) < 2:
        raise SettingError("give --run twice or more: the lists of each order of the candidates")
    return {
        name: inputs.read_run_file(
            path, judged.files.columns, ties=judged.ties, seed=seed, depth=judged.depth
        )
        for name, path in inputs.named_runs(judged.run).items()
    }


def _orders(presented: list[str], judged: JudgedOptions, seed: int) -> dict[str, Any]:
    """Read the presented orders; their files may have any names."""
    orders = {}
    for number, text in enumerate(presented, start=1):
        name, path, columns = split_named_source(text)
        source = f"{path}:{columns}" if columns else path
        orders[name or f"{number}"] = inputs.read_run_file(
            source, judged.files.columns, ties=judged.ties, seed=seed
        )
    if len(orders) < len(presented):
        raise SettingError("two of --presented have the same name")
    return orders


def _scores(
    judged: JudgedOptions, average: AverageOptions, compute: ComputeOptions, quiet: bool
) -> Any:
    """Return the scores of all shuffles; None without judgments."""
    if judged.judgments is None:
        given = given_options(judged.relevance, average, judged.files)
        given += ["--metric"] * bool(judged.metric) + ["--train"] * bool(judged.train)
        unused = [name for name in given if name != "--columns"]
        if unused:
            raise SettingError(f"{unused[0]} is for metrics: it needs --judgments")
        return None
    from unskew.evaluation.evaluate import METRICS

    return inputs.scores_of(judged, None, average, compute, METRICS, quiet)
