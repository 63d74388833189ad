"""`unskew metrics`: what can be computed."""

from __future__ import annotations

import inspect
from typing import Annotated

from unskew.cli import outputs
from unskew.cli.bundles import argument, option
from unskew.cli.options import MEASURE, PlainFormat


def command(
    name: Annotated[
        str | None, argument("Name of a metric, to print its definition.", default=None)
    ],
    library: Annotated[
        str | None,
        option(
            MEASURE,
            "List the metrics of another library and its conventions; all: list the libraries.",
        ),
    ],
    format: PlainFormat,  # noqa: A002 - the option's name
) -> None:
    """List the metrics, or explain one.

    [bold]Examples[/bold]

      unskew metrics

      unskew metrics nDCG

      unskew metrics --library all

      unskew metrics --library recbole
    """
    from unskew.metrics.names import aliases, parse
    from unskew.metrics.registry import REGISTRY

    if library is not None:
        _print_library(library, format == "json")
        return
    if format == "json":
        chosen = REGISTRY if name is None else [str(parse(name))]
        outputs.print_json(list(map(_entry, chosen)))
        return
    if name is not None:
        metric = parse(name)
        definition = metric.definition
        settings = ", ".join(
            f"{key}={default}" + (f" ({'|'.join(words)})" if words else "")
            for key, default in metric.defaults.items()
            for words in [definition.params[key].words]
        )
        outputs.say(f"{metric}: {inspect.cleandoc(definition.compute.__doc__ or '')}")
        outputs.say(f"Settings: {settings or 'none'}. Better: {metric.better}.")
        return
    also: dict[str, list[str]] = {}
    for alias, target in aliases().items():
        also.setdefault(parse(target).name, []).append(alias)
    rows = [
        (key, metric.summary, ", ".join(metric.params), ", ".join(also.get(key, ())))
        for key, metric in REGISTRY.items()
    ]
    outputs.print_list(("name", "what it is", "settings", "also called"), rows)
    outputs.say(
        "The prefix anti- gives the same metric of disliked items. The prefix condensed- removes"
    )
    outputs.say(
        "unjudged items first. @k sets a cutoff: anti-P@10, condensed-nDCG@10, SR(gamma=1)@10."
    )


def _entry(name: str) -> dict[str, object]:
    """Return what is known of a metric, for programs."""
    from unskew.metrics.names import aliases, parse

    metric = parse(name)
    definition = metric.definition
    return {
        "name": name,
        "summary": definition.summary,
        "text": inspect.cleandoc(definition.compute.__doc__ or ""),
        "settings": {
            key: {"default": default, "words": list(definition.params[key].words)}
            for key, default in metric.defaults.items()
        },
        "better": metric.better,
        "also_called": [alias for alias, of in aliases().items() if parse(of).name == metric.name],
    }


def _print_library(name: str, as_json: bool) -> None:
    """Print the libraries, or the metrics of one and what differs from our defaults."""
    from unskew.conventions.collection import known_libraries
    from unskew.conventions.collection import library as library_of
    from unskew.evaluation.compat import differences

    if name == "all":
        table = known_libraries()
        if as_json:
            outputs.print_json(table.to_dicts())
            return
        outputs.print_list(table.columns, [tuple(map(str, row)) for row in table.iter_rows()])
        return
    source = library_of(name)
    rows = [
        (row.name, row.option, row.given, row.ours or row.metric, differences([(row, None)]))
        for row in source.metrics
    ]
    header = ("its name", "its option", "given", "metric", "other than ours")
    if as_json:
        keys = ("name", "option", "given", "metric", "differences")
        outputs.print_json([dict(zip(keys, row, strict=True)) for row in rows])
        return
    outputs.print_list(header, rows)
    reasons: dict[str, list[str]] = {}
    for gap in source.missing:
        name = f"{gap.name} [{gap.option}]" if gap.option else gap.name
        reasons.setdefault(f"({gap.given}): {gap.why}" if gap.given else gap.why, []).append(name)
    for why, names in reasons.items():
        outputs.say(f"not computed: {', '.join(dict.fromkeys(names))}: {why}")
    outputs.say(f"{source}. {source.given}")
