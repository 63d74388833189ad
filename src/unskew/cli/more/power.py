"""The commands `power` and `robustness`: what a test can show, and with fewer ratings."""

from __future__ import annotations

from typing import Annotated, Any

from unskew.checks import choose
from unskew.cli import inputs, outputs
from unskew.cli.options import (
    ComputeOptions,
    ExecutorOptions,
    FigureTableOptions,
    ScoredOptions,
)
from unskew.cli.parameters import Options, OptionsOf, bundle
from unskew.cli.progress import progress
from unskew.errors import SettingError

POWER = OptionsOf(
    "stats.agreement.power:power",
    {"Test": "test permutations alpha", "Power": "ordered difference power"},
)


def power_command(
    *,
    scored: ScoredOptions,
    powers: Annotated[Options, POWER],
    pairs: bool = False,
    compute: ComputeOptions,
    output: FigureTableOptions,
) -> None:
    """Report how well metrics tell systems apart, and which difference your users can show.

    [bold]Examples[/bold]

      unskew power -j test.csv -r a.csv -r b.csv -r c.trec -m P@10,nDCG@10,RR --liked 4

      unskew power --scores saved/ --difference 0.01 --power 0.9

    [bold]Columns[/bold]

      DP: sum of the p-values of all pairs of systems, the lower the better

      ratio: share of the pairs with p below alpha; median p: the median of all

      detectable: the difference that is detected with the requested power (median over pairs)

      needed: users needed for --difference, or for the observed differences (median over pairs)

    Power
    -----
    pairs
        Print a row per pair of systems, with the number of users needed to tell them apart.
    """
    from unskew.stats.agreement.power import POWER, power
    from unskew.stats.agreement.robustness import METRICS

    figures = outputs.figures_of(output.figure, [drawing.name for drawing in POWER.figures])
    names = inputs.metric_names(scored.judged.metric)
    all_scores = inputs.scores_of(scored, compute, METRICS, output.quiet)
    with progress("testing", output.quiet) as move:
        result = power(all_scores, names, progress=move, **vars(powers), **vars(compute))
    outputs.draw(figures, result.figure)
    outputs.deliver_result(result.parts["pairs"] if pairs else result, output)


@bundle
class TauOptions(FigureTableOptions):
    """Where a table of correlations goes."""

    digits: int = 3


def robustness_command(
    *,
    scored: ScoredOptions,
    goal: str | None = None,
    share: list[str] | None = None,
    samples: int = 50,
    per: str = "user",
    compute: ComputeOptions,
    executor: ExecutorOptions,
    output: TauOptions,
) -> None:
    """Report how the order of systems changes when the test set shrinks (Kendall's tau).

    [bold]Examples[/bold]

      unskew robustness -j test.csv -r a.csv -r b.csv -r c.trec -m P@10,nDCG@10 --liked 4

      unskew robustness -j test.csv -r a.csv -r b.csv -r c.csv --to popularity --train train.csv

      unskew robustness --scores saved/ -m nDCG@10

    [bold]To what[/bold]

      sparsity: random parts of the test set; popularity: without the most rated items (--train)

      users: with fewer users (the only one that works with saved scores)

    The lists stay the same. Users without remaining judgments are left out of the means.

    Samples
    -------
    goal
        What to remove: judgments (sparsity), popular items (popularity) or users (users). Default:
        sparsity.
    share
        Share to keep, such as 0.5. Repeatable. Default: the shares of valcarce2018.
    samples
        Number of random samples per share.
    per
        Keep the share of each user's judgments (user), or of all judgments together (all).
    """
    from unskew.stats.agreement.robustness import (
        METRICS,
        ROBUSTNESS,
        SHARES,
        robustness,
        user_robustness,
    )

    figures = outputs.figures_of(output.figure, [drawing.name for drawing in ROBUSTNESS.figures])
    saved = inputs.is_saved(scored)
    goal = choose("to", goal or ("users" if saved else "sparsity"), SHARES)
    if saved and goal != "users":
        raise SettingError(f"--to {goal} needs --judgments and --run: scores hold no judgments")
    if goal == "users" and executor != ExecutorOptions(workers=1, cluster=None):
        raise SettingError(
            "--workers and --cluster are for --to sparsity and --to popularity; samples of users "
            "take little"
        )
    kept = inputs.shares(share)
    names = inputs.metric_names(scored.judged.metric)
    settings: dict[str, Any] = {"shares": kept, "samples": samples, **vars(compute)}
    data: Any = (
        inputs.scores_of(scored, compute, METRICS, output.quiet)
        if goal == "users"
        else inputs.judge_files(scored.judged, compute.seed)
    )
    with progress("evaluating samples", output.quiet) as move:
        if goal == "users":
            result = user_robustness(data, names, progress=move, **settings)
        else:
            settings |= {"to": goal, "per": per, **vars(scored.average), **executor.arguments()}
            result = robustness(data, names or METRICS, progress=move, **settings)
    outputs.draw(figures, result.figure)
    outputs.deliver_result(result, output)
