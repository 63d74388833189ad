"""`unskew robustness`: how the order of systems holds when less is known."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from unskew.cli import inputs
from unskew.cli.console import progress
from unskew.cli.options import Columns, Duplicates, Quiet
from unskew.errors import SettingError, choose

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


def robustness(  # noqa: D103 - its help is EXAMPLES
    judgments: inputs.Judgments = None,
    run: inputs.Runs = None,
    scores: inputs.Saved = None,
    metric: inputs.Metrics = None,
    to: Annotated[
        str | None, typer.Option(help="sparsity, popularity or users. Default: sparsity.")
    ] = None,
    share: Annotated[
        list[str] | None,
        typer.Option(help="What to keep, such as 0.5. Repeatable. Default: those of the paper."),
    ] = None,
    samples: Annotated[int, typer.Option(help="Random samples per share.")] = 50,
    per: Annotated[
        str, typer.Option(help="Keep the share of each user's judgments (user), or of all (all).")
    ] = "user",
    train: Annotated[
        Path | None, typer.Option(help="Training ratings: for --to popularity.")
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
    seed: Annotated[int, typer.Option(help="Same seed, same samples.")] = 0,
    depth: inputs.Depth = None,
    columns: Columns = None,
    duplicates: Duplicates = "error",
    figure: inputs.FigureFile = None,
    format: inputs.Format = "table",  # noqa: A002 - the word users expect
    digits: inputs.Digits = 3,
    threads: inputs.Threads = None,
    quiet: Quiet = False,
) -> None:
    from unskew.comparing import robustness as library

    choose("format", format, inputs.FORMATS)
    saved = inputs.either(judgments, run, scores)
    goal = to or ("users" if saved else "sparsity")
    choose("to", goal, library.SHARES)
    if saved and goal != "users":
        raise SettingError(f"--to {goal} needs --judgments and --run: scores hold no judgments")
    shares = _shares(share)
    names = inputs.metric_names(metric)
    with progress("looking at samples", quiet) as moved:
        if saved:
            result = library.user_robustness(
                inputs.load(scores or []), names, shares=shares, samples=samples, seed=seed,
                threads=threads, progress=moved,
            )  # fmt: skip
        else:
            rules = inputs.relevance_of(liked, above, gain, loss, relevance)
            tests, lists, trained = inputs.read_files(
                judgments, run, train, columns=columns, duplicates=duplicates, ties=ties, seed=seed
            )
            settings = {
                **rules, "train": trained, "users": users, "undefined": undefined, "ties": ties,
                "seed": seed, "depth": depth, "threads": threads,
            }  # fmt: skip
            if goal == "users":
                from unskew.evaluation import evaluate

                judged = evaluate(tests, lists, names or library.METRICS, **settings)
                result = library.user_robustness(
                    judged, shares=shares, samples=samples, seed=seed, threads=threads,
                    progress=moved,
                )  # fmt: skip
            else:
                result = library.robustness(
                    tests, lists, names or library.METRICS, to=goal, shares=shares,
                    samples=samples, per=per, progress=moved, **settings,
                )  # fmt: skip
    if figure is not None:
        result.figure().save(figure)
    inputs.show(
        result.shown(), result.table(), format=format, digits=digits, footer=result.footer(),
        quiet=quiet,
    )  # fmt: skip


robustness.__doc__ = EXAMPLES


def _shares(texts: list[str] | None) -> list[float] | None:
    parts = [part.strip() for text in texts or [] for part in text.split(",") if part.strip()]
    try:
        return [float(part) for part in parts] or None
    except ValueError:
        raise SettingError(f"--share: write shares as 0.5 or 0.9,0.5, got {texts}") from None
