"""`unskew power`: how well metrics tell systems apart, and how many users that takes."""

from __future__ import annotations

from typing import Annotated

from unskew.cli import inputs, outputs
from unskew.cli.bundles import bundle, option
from unskew.cli.options import (
    TEST,
    AverageOptions,
    ComputeOptions,
    FigureTableOptions,
    JudgedOptions,
    Permutations,
    Saved,
)
from unskew.cli.progress import progress

POWER = "Power"


@bundle
class PowerOptions:
    """What power is computed of."""

    test: Annotated[
        str,
        option(
            TEST, "The test: randomisation, t, wilcoxon, sign, bootstrap.", default="randomisation"
        ),
    ]
    permutations: Permutations
    ordered: Annotated[
        bool,
        option(
            POWER, "Count each pair twice in DP, as valcarce2018 does.", "--ordered", default=False
        ),
    ]
    difference: Annotated[float | None, option(POWER, "The difference that should be detected.")]
    power: Annotated[
        float, option(POWER, "The probability with which the test should detect it.", default=0.8)
    ]
    alpha: Annotated[float, option(TEST, "The significance level of the test.", default=0.05)]


def command(
    judged: JudgedOptions,
    scores: Saved,
    average: AverageOptions,
    powers: PowerOptions,
    pairs: Annotated[
        bool,
        option(
            POWER,
            "Print a row per pair of systems, with the number of users needed to tell them apart.",
            "--pairs",
            default=False,
        ),
    ],
    compute: ComputeOptions,
    output: FigureTableOptions,
) -> None:
    """Report how well metrics tell systems apart, and which difference your users can show.

    [bold]Examples[/bold]

      unskew power -j test.csv -r a.csv -r b.csv -r c.trec -m P@10,nDCG@10,RR --liked 4

      unskew power --scores saved/ --difference 0.01 --power 0.9

    [bold]Columns[/bold]

      DP: sum of the p-values of all pairs of systems, the lower the better

      ratio: share of the pairs with p below alpha; median_p: the median of all

      detectable: the difference that is detected with the requested power (median over pairs)

      needed: users needed for --difference, or for the observed differences (median over pairs)
    """
    from unskew.stats.incompleteness import METRICS
    from unskew.stats.power_analysis import power

    figures = outputs.figures_of(output.figure, ("power",))
    names = inputs.metric_names(judged.metric)
    all_scores = inputs.scores_of(judged, scores, average, compute, METRICS, output.quiet)
    with progress("testing", output.quiet) as move:
        result = power(all_scores, names, progress=move, **vars(powers), **vars(compute))
    outputs.draw(figures, lambda _: result.figure())
    table = result.sizes.pair_table() if pairs else result.table()
    printout = outputs.Printout.of(table, digits=output.digits, footer=result.footer())
    outputs.deliver(printout, output)
