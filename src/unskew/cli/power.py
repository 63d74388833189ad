"""`unskew power`: how well metrics tell systems apart, and how many users that takes."""

from __future__ import annotations

from typing import Annotated

from unskew.checks import MOST_DRAWS, choose
from unskew.cli import inputs, outputs
from unskew.cli.console import progress
from unskew.cli.options import (
    Above,
    Columns,
    Depth,
    Digits,
    Duplicates,
    FigureFile,
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
from unskew.errors import SettingError

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

POWER = "Power"


def power(  # noqa: D103 - its help is EXAMPLES
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
        str, option(POWER, "The test: randomisation, t, wilcoxon, sign, bootstrap.")
    ] = "randomisation",
    permutations: Annotated[
        int, option(POWER, "Of the randomisation test.", **at_least(1, MOST_DRAWS))
    ] = 100_000,
    ordered: Annotated[
        bool, option(POWER, "Count each pair twice in DP, as valcarce2018.", "--ordered")
    ] = False,
    samples: Annotated[
        int,
        option(
            POWER, "Random halves for the swap rate; 0: no swap rate.", **at_least(0, MOST_DRAWS)
        ),
    ] = 1_000,
    difference: Annotated[
        float | None, option(POWER, "The difference that users are needed for.")
    ] = None,
    power: Annotated[float, option(POWER, "How surely it should be found.")] = 0.8,
    alpha: Annotated[float, option(POWER, "The level of the test.")] = 0.05,
    pairs: Annotated[
        bool,
        option(POWER, "A row per pair of systems: what it takes to tell them.", "--pairs"),
    ] = False,
    errors: Annotated[
        bool,
        option(POWER, "Instead: how often tests err on data like these (1 metric).", "--errors"),
    ] = False,
    simulations: Annotated[int, option(POWER, "Of --errors.", **at_least(1, MOST_DRAWS))] = 1_000,
    seed: Seed = 0,
    threads: Threads = None,
    to: TableFile = None,
    figure: FigureFile = None,
    format: Format = "table",  # noqa: A002 - the word users expect
    digits: Digits = 4,
    quiet: Quiet = False,
) -> None:
    from unskew.stats.null_errors import TypeOneError, type_one_error
    from unskew.stats.power_analysis import Power
    from unskew.stats.power_analysis import power as analyse

    choose("format", format, outputs.FORMATS)
    figures = outputs.figures_of(figure, ("power",))
    saved = inputs.either(judgments, run, scores)
    names = inputs.metric_names(metric)
    if errors and (pairs or len(names or []) != 1):
        raise SettingError("--errors looks at one metric: give -m once, and no --pairs")
    if saved:
        judged = inputs.load(scores or [])
    else:
        from unskew.evaluation.evaluate import evaluate
        from unskew.stats.incompleteness import METRICS

        rules = inputs.relevance_of(liked, above, gain, loss, relevance)
        tests, lists, trained = inputs.read_files(
            judgments, run, train, columns=columns, duplicates=duplicates, ties=ties, seed=seed
        )
        judged = evaluate(
            tests,
            lists,
            names or METRICS,
            train=trained,
            users=users,
            undefined=undefined,
            ties=ties,
            seed=seed,
            depth=depth,
            threads=threads,
            **rules,
        )
    result: Power | TypeOneError
    with progress("testing", quiet) as moved:
        if errors:
            result = type_one_error(
                judged,
                (names or [""])[0],
                simulations=simulations,
                alpha=alpha,
                seed=seed,
                threads=threads,
                progress=moved,
            )
        else:
            result = analyse(
                judged,
                names,
                test=test,
                permutations=permutations,
                ordered=ordered,
                samples=samples,
                difference=difference,
                power=power,
                alpha=alpha,
                seed=seed,
                threads=threads,
                progress=moved,
            )
    outputs.draw(figures, lambda _: result.figure())
    table = result.table()
    if pairs and isinstance(result, Power):
        table = result.sizes.pair_table()
    printout = outputs.Printout.of(table, digits=digits, footer=result.footer())
    outputs.deliver(printout, to, format, quiet)


power.__doc__ = EXAMPLES
