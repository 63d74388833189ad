"""`unskew metrics`: what can be computed."""

from __future__ import annotations

import inspect
from typing import Annotated

from unskew.cli import outputs
from unskew.cli.bundles import argument


def command(
    name: Annotated[
        str | None, argument("Name of a metric, to print its definition.", default=None)
    ],
) -> None:
    """List the metrics, or explain one.

    [bold]Examples[/bold]

      unskew metrics

      unskew metrics nDCG
    """
    from unskew.metrics.names import aliases, parse
    from unskew.metrics.registry import REGISTRY

    if name is not None:
        metric = parse(name)
        definition = metric.definition
        settings = ", ".join(
            f"{key}={param.default}" + (f" ({'|'.join(param.words)})" if param.words else "")
            for key, param in definition.params.items()
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
