"""`unskew metrics`: what can be computed."""

from __future__ import annotations

import inspect
from typing import Annotated

from unskew.cli import outputs
from unskew.cli.bundles import argument


def command(
    name: Annotated[str | None, argument("A metric, to read its definition.", default=None)],
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
    outputs.say("Write anti- before a name for its twin of bad recommendations, condensed- to drop")
    outputs.say(
        "unjudged items first, @k for a cutoff: anti-P@10, condensed-nDCG@10, SR(gamma=1)@10."
    )
