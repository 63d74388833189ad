"""`unskew algorithms`: the recommenders and their settings."""

from __future__ import annotations

import inspect
from typing import Annotated

from unskew.cli import outputs
from unskew.cli.bundles import argument


def command(
    name: Annotated[
        str | None, argument("Name of an algorithm, to print its definition.", default=None)
    ],
) -> None:
    """List the recommenders, or explain one.

    [bold]Examples[/bold]

      unskew algorithms

      unskew algorithms slim
    """
    from unskew.errors import unknown_name
    from unskew.recommend.registry import ALGORITHMS, settings_of

    texts = {key: inspect.cleandoc(kind.__doc__ or "") for key, kind in ALGORITHMS.items()}
    settings = {
        key: ", ".join(f"{setting}={value}" for setting, value in settings_of(kind).items())
        for key, kind in ALGORITHMS.items()
    }
    if name is None:
        rows = [(key, text.splitlines()[0], settings[key]) for key, text in texts.items()]
        outputs.print_list(("name", "what it is", "settings"), rows)
        outputs.say(
            "unskew algorithms NAME prints the formula, the settings and the reference of one "
            "algorithm."
        )
    elif name not in ALGORITHMS:
        raise unknown_name("algorithm", name, ALGORITHMS)
    else:
        outputs.say(f"{name}: {texts[name]}")
        outputs.say(f"\nDefaults: {settings[name] or 'no settings'}.")
