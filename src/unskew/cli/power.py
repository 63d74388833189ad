"""`unskew power`: how well metrics tell systems apart, and how many users that takes."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from unskew.cli import inputs
from unskew.cli.console import progress
from unskew.cli.options import Columns, Duplicates, Quiet
from unskew.errors import SettingError, choose

EXAMPLES = """
Tell how well metrics tell systems apart, and what difference the users at hand can show.

[bold]Examples[/bold]

  unskew power -j test.csv -r a.csv -r b.csv -r c.trec -m P@10,nDCG@10,RR --liked 4

  unskew power --scores saved/ --difference 0.01 --power 0.9

  unskew power --scores saved/ -m nDCG@10 --errors

[bold]Columns[/bold]

  DP: sum of the p-values of all pairs of systems, the lower the better

  ratio: share of the pairs with p below alpha; median_p: the median of all

  swap_rate: how often two halves of the users disagree about two systems; safe_difference: from
  which difference on they do so in less than 5 % of the cases

  detectable: the difference that is found with the power asked for (median over pairs)

  needed: users needed for --difference, or for the observed differences (median over pairs)
"""


def power(  # noqa: D103 - its help is EXAMPLES
    judgments: inputs.Judgments = None,
    run: inputs.Runs = None,
    scores: inputs.Saved = None,
    metric: inputs.Metrics = None,
    test: Annotated[
        str, typer.Option(help="The test: randomisation, t, wilcoxon, sign, bootstrap.")
    ] = "randomisation",
    permutations: Annotated[int, typer.Option(help="Of the randomisation test.")] = 100_000,
    ordered: Annotated[
        bool, typer.Option("--ordered", help="Count each pair twice in DP, as valcarce2018.")
    ] = False,
    samples: Annotated[
        int, typer.Option(help="Random halves for the swap rate; 0: no swap rate.")
    ] = 1_000,
    difference: Annotated[
        float | None, typer.Option(help="The difference that users are needed for.")
    ] = None,
    power: Annotated[
        float, typer.Option(help="How surely it should be found; above --alpha.")
    ] = 0.8,
    alpha: Annotated[float, typer.Option(help="The level of the test.")] = 0.05,
    pairs: Annotated[
        bool, typer.Option("--pairs", help="A row per pair of systems: what it takes to tell them.")
    ] = False,
    errors: Annotated[
        bool,
        typer.Option(
            "--errors",
            help="Instead: how often tests err on data like these where systems are equal, made so "
            "in several ways (1 metric).",
        ),
    ] = False,
    simulations: Annotated[int, typer.Option(help="Of --errors, in each way.")] = 1_000,
    train: Annotated[
        Path | None, typer.Option(help="Training ratings: for metrics that need them.")
    ] = None,
    liked: inputs.Liked = None,
    above: inputs.Above = None,
    gain: inputs.Gain = None,
    loss: inputs.Loss = None,
    relevance: inputs.RelevanceOf = None,
    users: inputs.Users = "with-test",
    undefined: Annotated[
        str, typer.Option(help="Undefined values count as zero, or skip them.")
    ] = "zero",
    ties: inputs.Ties = None,
    seed: Annotated[int, typer.Option(help="Same seed, same numbers.")] = 0,
    depth: inputs.Depth = None,
    columns: Columns = None,
    duplicates: Duplicates = "error",
    figure: inputs.FigureFile = None,
    format: inputs.Format = "table",  # noqa: A002 - the word users expect
    digits: inputs.Digits = 4,
    threads: inputs.Threads = None,
    quiet: Quiet = False,
) -> None:
    from unskew.comparing import power as library

    choose("format", format, inputs.FORMATS)
    saved = inputs.either(judgments, run, scores)
    names = inputs.metric_names(metric)
    if errors and (pairs or len(names or []) != 1):
        raise SettingError("--errors looks at one metric: give -m once, and no --pairs")
    if saved:
        judged = inputs.load(scores or [])
    else:
        from unskew.comparing.robustness import METRICS
        from unskew.evaluation import evaluate

        rules = inputs.relevance_of(liked, above, gain, loss, relevance)
        tests, lists, trained = inputs.read_files(
            judgments, run, train, columns=columns, duplicates=duplicates, ties=ties, seed=seed
        )
        judged = evaluate(
            tests, lists, names or METRICS, train=trained, users=users, undefined=undefined,
            ties=ties, seed=seed, depth=depth, threads=threads, **rules,
        )  # fmt: skip
    result: library.Power | library.TypeOneError
    with progress("testing", quiet) as moved:
        if errors:
            result = library.type_one_error(
                judged, (names or [""])[0], simulations=simulations, alpha=alpha, seed=seed,
                threads=threads, progress=moved,
            )  # fmt: skip
        else:
            result = library.power(
                judged, names, test=test, permutations=permutations, ordered=ordered,
                samples=samples, difference=difference, power=power, alpha=alpha, seed=seed,
                threads=threads, progress=moved,
            )  # fmt: skip
    if figure is not None:
        result.figure().save(figure)
    table = result.table()
    if pairs and isinstance(result, library.Power):
        table = result.sizes.pair_table()
    inputs.show(table, table, format=format, digits=digits, footer=result.footer(), quiet=quiet)


power.__doc__ = EXAMPLES
