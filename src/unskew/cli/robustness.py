"""`unskew robustness`: how the order of systems holds when less is known."""

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
Tell how the order of systems holds when the test set shrinks (Kendall's tau with the full one).

[bold]Examples[/bold]

  unskew robustness -j test.csv -r a.csv -r b.csv -r c.trec -m P@10,nDCG@10 --liked 4

  unskew robustness -j test.csv -r a.csv -r b.csv -r c.csv --to popularity --train train.csv

  unskew robustness --scores saved/ -m nDCG@10

[bold]To what[/bold]

  sparsity: random parts of the test set; popularity: without the most rated items (--train)

  users: with fewer users; all that saved scores can tell

Nothing is ranked anew. Users without judgments left are not averaged.
"""

SAMPLES = "Samples"


def robustness(  # noqa: D103 - its help is EXAMPLES
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
    goal: Annotated[
        str | None,
        option(SAMPLES, "sparsity, popularity or users. Default: sparsity.", "--to"),
    ] = None,
    share: Annotated[
        list[str] | None,
        option(SAMPLES, "What to keep, such as 0.5. Repeatable. Default: those of the paper."),
    ] = None,
    samples: Annotated[
        int, option(SAMPLES, "Random samples per share.", **at_least(1, MOST_DRAWS))
    ] = 50,
    per: Annotated[
        str, option(SAMPLES, "Keep the share of each user's judgments (user), or of all (all).")
    ] = "user",
    seed: Seed = 0,
    threads: Threads = None,
    to: TableFile = None,
    figure: FigureFile = None,
    format: Format = "table",  # noqa: A002 - the word users expect
    digits: Digits = 3,
    quiet: Quiet = False,
) -> None:
    from unskew.stats import incompleteness as library

    choose("format", format, outputs.FORMATS)
    figures = outputs.figures_of(figure, ("robustness",))
    saved = inputs.either(judgments, run, scores)
    goal = goal or ("users" if saved else "sparsity")
    choose("to", goal, library.SHARES)
    if saved and goal != "users":
        raise SettingError(f"--to {goal} needs --judgments and --run: scores hold no judgments")
    shares = _shares(share)
    names = inputs.metric_names(metric)
    with progress("looking at samples", quiet) as moved:
        if saved:
            result = library.user_robustness(
                inputs.load(scores or []),
                names,
                shares=shares,
                samples=samples,
                seed=seed,
                threads=threads,
                progress=moved,
            )
        else:
            rules = inputs.relevance_of(liked, above, gain, loss, relevance)
            tests, lists, trained = inputs.read_files(
                judgments, run, train, columns=columns, duplicates=duplicates, ties=ties, seed=seed
            )
            settings = {
                **rules,
                "train": trained,
                "users": users,
                "undefined": undefined,
                "ties": ties,
                "seed": seed,
                "depth": depth,
                "threads": threads,
            }
            if goal == "users":
                from unskew.evaluation.evaluate import evaluate

                judged = evaluate(tests, lists, names or library.METRICS, **settings)
                result = library.user_robustness(
                    judged,
                    shares=shares,
                    samples=samples,
                    seed=seed,
                    threads=threads,
                    progress=moved,
                )
            else:
                result = library.robustness(
                    tests,
                    lists,
                    names or library.METRICS,
                    to=goal,
                    shares=shares,
                    samples=samples,
                    per=per,
                    progress=moved,
                    **settings,
                )
    outputs.draw(figures, lambda _: result.figure())
    printout = outputs.Printout.of_result(result, digits)
    outputs.deliver(printout, to, format, quiet)


robustness.__doc__ = EXAMPLES


def _shares(texts: list[str] | None) -> list[float] | None:
    parts = [part.strip() for text in texts or [] for part in text.split(",") if part.strip()]
    try:
        return [float(part) for part in parts] or None
    except ValueError:
        raise SettingError(f"--share: write shares as 0.5 or 0.9,0.5, got {texts}") from None
