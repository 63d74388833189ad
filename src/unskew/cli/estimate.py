"""`unskew estimate`: what systems would score were everything judged."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from unskew.cli import inputs
from unskew.cli.options import Columns, Duplicates, Quiet
from unskew.errors import SettingError, choose
from unskew.layout import as_json

EXAMPLES = """
Estimate what systems would score were everything judged: each judgment counts 1/propensity times.

[bold]Examples[/bold]

  unskew estimate --train train.csv -j test.csv -r a.csv -r b.csv -m P@10,Recall@10 --liked 4

  unskew estimate --train train.csv -j test.csv -r a.csv -m DCG@10 --random mar.csv
  --propensity naive-bayes

  unskew estimate -j test.csv -r a.csv -m P@10 --propensity chances.csv --clip 99% --figure clip.svg

  unskew estimate --train train.csv -j test.csv -r a.csv -r b.csv -m P@10 --sensitivity

[bold]Columns[/bold]

  naive: as judged, what is not judged counting as not liked

  ips: each judgment counts 1/propensity times; – where propensities are known up to a factor

  snips: the same, normalised by the weights; both with an interval over users

  hits, ess: liked items found, and how many equal weights theirs are worth

  usable: "not usable here" where the estimate or an end of its interval is no value of the metric,
  or rests on too few hits; the lines below the table give the reason

Metrics: P, DCG, RBP, Recall, nDCG, F1, SR, HLU, AP, AUC, their anti-twins, and ADG and ATOP, the
mean discounted gain and the mean normalised rank of the liked items. Others have no such estimate;
the message says why. nDCG is biased even if propensities are right: take DCG or nDCG(ideal=full).
"""


def estimate(  # noqa: D103 - its help is EXAMPLES
    judgments: Annotated[
        Path, typer.Option("--judgments", "-j", help="Test ratings, or TREC qrels.")
    ],
    run: Annotated[
        list[str],
        typer.Option("--run", "-r", help="Ranked lists: FILE or NAME=FILE. Repeatable."),
    ],
    metric: inputs.Metrics = None,
    train: Annotated[
        Path | None, typer.Option(help="Training ratings: what is in them is no target.")
    ] = None,
    propensity: Annotated[
        str,
        typer.Option(
            help="popularity, naive-bayes, logistic, or a FILE with columns item (and user) and "
            "propensity."
        ),
    ] = "popularity",
    random: Annotated[
        Path | None, typer.Option(help="Ratings of randomly chosen items, to fit propensities.")
    ] = None,
    exponent: Annotated[
        float | None, typer.Option(help="popularity: its exponent, instead of a fitted one or 1.")
    ] = None,
    test_share: Annotated[
        str | None,
        typer.Option(help="Share of the ratings in the test part, or items: each item's own."),
    ] = None,
    of: Annotated[
        str | None,
        typer.Option(help="A FILE's propensities are of the test part (test), or observed."),
    ] = None,
    items: Annotated[
        Path | None, typer.Option(help="The catalogue, from which targets are counted.")
    ] = None,
    clip: Annotated[
        str | None, typer.Option(help="The largest weight, or a quantile such as 99%.")
    ] = None,
    mean: Annotated[
        str, typer.Option(help="Of fractions: users, or ratio of sums over users.")
    ] = "users",
    sensitivity: Annotated[
        bool,
        typer.Option("--sensitivity", help="Instead: how wrong propensities must be (1 metric)."),
    ] = False,
    bounds: Annotated[
        bool, typer.Option("--bounds", help="Instead: were all unjudged items bad, or good.")
    ] = False,
    liked: inputs.Liked = None,
    above: inputs.Above = None,
    gain: inputs.Gain = None,
    loss: inputs.Loss = None,
    relevance: inputs.RelevanceOf = None,
    users: Annotated[str, typer.Option(help="Averaged: with-list, with-test, all.")] = "with-list",
    resamples: Annotated[int, typer.Option(help="Of the bootstrap over users; 0: none.")] = 1_000,
    level: Annotated[float, typer.Option(help="Of the intervals.")] = 0.95,
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
    from unskew.data.readers import read_ratings
    from unskew.estimating import bounds as limits
    from unskew.estimating import ips
    from unskew.estimating.propensity import propensity as chances

    choose("format", format, inputs.FORMATS)
    if sensitivity and bounds:
        raise SettingError("give --sensitivity or --bounds, not both")
    rules = inputs.relevance_of(liked, above, gain, loss, relevance)
    tests, lists, trained = inputs.read_files(
        judgments, run, train, columns=columns, duplicates=duplicates, ties=ties, seed=seed
    )
    names = inputs.metric_names(metric)
    shared: dict[str, Any] = {
        "train": trained, "items": items, "ties": ties, "seed": seed, "depth": depth,
        "threads": threads, **rules,
    }  # fmt: skip
    result: ips.Estimates | limits.Bounds | limits.Sensitivity
    if bounds:
        result = limits.bounds(tests, lists, names or "P@10", **shared)
        shown = result.table()
    else:
        fitted = random is not None and propensity == "popularity"
        rule = _rule(rules) if fitted else None
        made = chances(
            trained, tests, propensity, random=None if random is None else read_ratings(random),
            exponent=exponent, test_share=_share(test_share), of=of, relevance=rule,
        )  # fmt: skip
        if sensitivity:
            if len(names or [""]) != 1:
                raise SettingError("--sensitivity looks at one metric: give -m once")
            model = "odds" if made.known else "weights"
            name = (names or ["P@10"])[0]
            result = limits.sensitivity(tests, lists, name, propensity=made, model=model, **shared)
            shown = result.table()
        else:
            result = ips.estimate(
                tests, lists, names or ips.METRICS, propensity=made, clip=clip, mean=mean,
                users=users, resamples=resamples, level=level, **shared,
            )  # fmt: skip
            shown = result.shown()
    if figure is not None:
        result.figure().save(figure)
    if format == "json":
        print(as_json(result.to_dict()))
        return
    inputs.show(
        shown, result.table(), format=format, digits=digits, footer=result.footer(), quiet=quiet,
    )  # fmt: skip


estimate.__doc__ = EXAMPLES


def _rule(rules: dict[str, Any]) -> Any:
    """Return the relevance rule, None where it has to be assumed."""
    from unskew.data.relevance import Relevance

    if rules.get("relevance") is not None:
        return rules["relevance"]
    liked, above = rules.get("liked"), rules.get("above")
    return None if liked is None and above is None else Relevance(liked, above)


def _share(text: str | None) -> float | str | None:
    """Read a share, or the word items."""
    if text is None or text == "items":
        return text
    try:
        return float(text)
    except ValueError:
        raise SettingError(f"--test-share: a number or items, got {text!r}") from None
