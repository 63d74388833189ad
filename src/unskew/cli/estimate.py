"""`unskew estimate`: what systems would score were everything judged."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

from unskew.checks import MOST_DRAWS, choose
from unskew.cli import inputs, outputs
from unskew.cli.options import (
    INPUT,
    LIST_COLUMNS,
    USERS,
    Above,
    Columns,
    Depth,
    Digits,
    Duplicates,
    FigureFile,
    Format,
    Gain,
    Liked,
    Loss,
    Metrics,
    Quiet,
    RelevanceOf,
    Seed,
    TableFile,
    Threads,
    Ties,
    at_least,
    option,
)
from unskew.errors import SettingError

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
  it rests on too few hits, or the weights do not add up to the slots of the lists; the lines below
  the table give the reason

Metrics: P, DCG, RBP, Recall, nDCG, F1, SR, HLU, AP, AUC, their anti-twins, and ADG and ATOP, the
mean discounted gain and the mean normalised rank of the liked items. Others have no such estimate;
the message says why. nDCG is biased even if propensities are right: take DCG or nDCG(ideal=full).
"""

ESTIMATE = "Propensities and estimates"


def estimate(  # noqa: D103 - its help is EXAMPLES
    judgments: Annotated[Path, option(INPUT, "Test ratings, or TREC qrels.", "--judgments", "-j")],
    run: Annotated[
        list[str],
        option(INPUT, "Ranked lists: FILE or NAME=FILE[:item=sku]. Repeatable.", "--run", "-r"),
    ],
    train: Annotated[
        Path | None, option(INPUT, "Training ratings: what is in them is no target.")
    ] = None,
    random: Annotated[
        Path | None, option(INPUT, "Ratings of randomly chosen items, to fit propensities.")
    ] = None,
    items: Annotated[
        Path | None, option(INPUT, "The catalogue, from which targets are counted.")
    ] = None,
    columns: Columns = None,
    duplicates: Duplicates = "error",
    metric: Metrics = None,
    liked: Liked = None,
    above: Above = None,
    gain: Gain = None,
    loss: Loss = None,
    relevance: RelevanceOf = None,
    depth: Depth = None,
    propensity: Annotated[
        str,
        option(
            ESTIMATE,
            "popularity, naive-bayes, logistic, or a FILE with columns item (and user) and "
            "propensity.",
        ),
    ] = "popularity",
    exponent: Annotated[
        float | None,
        option(ESTIMATE, "popularity: its exponent, instead of a fitted one or 1."),
    ] = None,
    test_share: Annotated[
        str | None,
        option(ESTIMATE, "Share of the ratings in the test part, or items: each item's own."),
    ] = None,
    of: Annotated[
        str | None,
        option(ESTIMATE, "A FILE's propensities are of the test part (test), or observed."),
    ] = None,
    clip: Annotated[
        str | None, option(ESTIMATE, "The largest weight, or a quantile such as 99%.")
    ] = None,
    mean: Annotated[
        str, option(ESTIMATE, "Of fractions: users, or ratio of sums over users.")
    ] = "users",
    sensitivity: Annotated[
        bool,
        option(ESTIMATE, "Instead: how wrong propensities must be (1 metric).", "--sensitivity"),
    ] = False,
    bounds: Annotated[
        bool, option(ESTIMATE, "Instead: were all unjudged items bad, or good.", "--bounds")
    ] = False,
    resamples: Annotated[
        int, option(ESTIMATE, "Of the bootstrap over users; 0: none.", **at_least(0, MOST_DRAWS))
    ] = 1_000,
    level: Annotated[float, option(ESTIMATE, "Of the intervals.")] = 0.95,
    users: Annotated[str, option(USERS, "Averaged: with-list, with-test, all.")] = "with-list",
    ties: Ties = None,
    seed: Seed = 0,
    threads: Threads = None,
    to: TableFile = None,
    figure: FigureFile = None,
    format: Format = "table",  # noqa: A002 - the word users expect
    digits: Digits = 4,
    quiet: Quiet = False,
) -> None:
    from unskew.unbiased import hidden_bias, ips, worst_cases
    from unskew.unbiased.propensities import propensity as chances

    choose("format", format, outputs.FORMATS)
    figures = outputs.figures_of(figure, ("estimate",))
    if sensitivity and bounds:
        raise SettingError("give --sensitivity or --bounds, not both")
    rules = inputs.relevance_of(liked, above, gain, loss, relevance)
    tests, lists, trained = inputs.read_files(
        judgments, run, train, columns=columns, duplicates=duplicates, ties=ties, seed=seed
    )
    names = inputs.metric_names(metric)
    shared: dict[str, Any] = {
        "train": trained,
        "items": inputs.read_item_file(items),
        "ties": ties,
        "seed": seed,
        "depth": depth,
        "threads": threads,
        **rules,
    }
    result: ips.Estimates | worst_cases.Bounds | hidden_bias.Sensitivity
    if bounds:
        result = worst_cases.bounds(tests, lists, names or "P@10", **shared)
        shown = result.table()
    else:
        fitted = random is not None and propensity == "popularity"
        rule = _rule(rules) if fitted else None
        drawn = None
        if random is not None:
            drawn = inputs.read_random_file(random, columns, duplicates, others=LIST_COLUMNS)
        made = chances(
            trained,
            tests,
            propensity,
            random=drawn,
            exponent=exponent,
            test_share=_share(test_share),
            of=of,
            relevance=rule,
        )
        if sensitivity:
            if len(names or [""]) != 1:
                raise SettingError("--sensitivity looks at one metric: give -m once")
            model = "odds" if made.known else "weights"
            name = (names or ["P@10"])[0]
            result = hidden_bias.sensitivity(
                tests, lists, name, propensity=made, model=model, **shared
            )
            shown = result.table()
        else:
            result = ips.estimate(
                tests,
                lists,
                names or ips.METRICS,
                propensity=made,
                clip=clip,
                mean=mean,
                users=users,
                resamples=resamples,
                level=level,
                **shared,
            )
            shown = result.display_table()
    outputs.draw(figures, lambda _: result.figure())
    printout = outputs.Printout.of(
        shown,
        result.table(),
        digits=digits,
        footer=result.footer(),
        json=result.to_dict,
    )
    outputs.deliver(printout, to, format, quiet)


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
