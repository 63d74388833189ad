"""`unskew algorithms`: the recommenders and their settings."""

from __future__ import annotations

import inspect
from typing import Annotated

from unskew.cli import outputs
from unskew.cli.bundles import argument
from unskew.cli.options import PlainFormat


def command(
    name: Annotated[
        str | None, argument("Name of an algorithm, to print its definition.", default=None)
    ],
    format: PlainFormat,  # noqa: A002 - the option's name
) -> None:
    """List the recommenders, or explain one.

    [bold]Examples[/bold]

      unskew algorithms

      unskew algorithms slim

      unskew algorithms --format json
    """
    from unskew.recommend.registry import ALGORITHMS, algorithm_class, settings_of

    shown = ALGORITHMS if name is None else {name: algorithm_class(name)}
    texts = {key: inspect.cleandoc(kind.__doc__ or "") for key, kind in shown.items()}
    settings = {
        key: ", ".join(f"{setting}={value}" for setting, value in settings_of(kind).items())
        for key, kind in shown.items()
    }
    if format == "json":
        entries = [
            {"name": key, "text": texts[key], "settings": settings_of(kind)}
            for key, kind in shown.items()
        ]
        outputs.print_json(entries)
    elif name is None:
        rows = [(key, text.splitlines()[0], settings[key]) for key, text in texts.items()]
        outputs.print_list(("name", "what it is", "settings"), rows)
        outputs.say(
            "unskew algorithms NAME prints the formula, the settings and the reference of one "
            "algorithm."
        )
    else:
        outputs.say(f"{name}: {texts[name]}")
        outputs.say(f"\nDefaults: {settings[name] or 'no settings'}.")
