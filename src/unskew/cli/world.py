"""`unskew world`: simulated data whose truth is known."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from unskew.checks import MOST_DEPTH, MOST_SEED
from unskew.cli import outputs
from unskew.cli.console import output
from unskew.cli.options import OUTPUT, Force, Quiet, Seed, at_least, option
from unskew.errors import SettingError

EXAMPLES = """
Make a world: simulated ratings whose full truth is known.

[bold]Examples[/bold]

  unskew world --list

  unskew world shop -o shop/

  unskew world inverted --users 500 --items 300 --seed 7 --set alpha=1.2 -o inverted/

  unskew world simulated-popularity --set alpha=0 --no-truth --format csv -o flat/

The folder gets ratings (what users chose to rate), random (a random sample of all pairs), truth
(a file per block of users: every pair with its true rating, the chance that it is liked and the
probability that it is observed) and card.json. Without -o the shape of the world is shown only.
Same seed, same world, on any machine.
"""

SIZE = "The world"


def world(  # noqa: D103 - its help is EXAMPLES
    name: Annotated[
        str | None, typer.Argument(help="A world: see --list.", show_default=False)
    ] = None,
    show_list: Annotated[
        bool, option(SIZE, "List the worlds and their settings.", "--list")
    ] = False,
    users: Annotated[int | None, option(SIZE, "How many users.", **at_least(1, MOST_DEPTH))] = None,
    items: Annotated[int | None, option(SIZE, "How many items.", **at_least(1, MOST_DEPTH))] = None,
    ratings: Annotated[
        int | None, option(SIZE, "Observed ratings to expect.", **at_least(1, MOST_SEED))
    ] = None,
    density: Annotated[float | None, option(SIZE, "Instead: their share of all pairs.")] = None,
    setting: Annotated[
        list[str] | None,
        option(SIZE, "A setting of the world: KEY=VALUE. Repeatable.", "--set"),
    ] = None,
    seed: Seed = 0,
    to: Annotated[
        Path | None,
        option(
            OUTPUT,
            "The folder to write.",
            "--output",
            "-o",
            metavar="DIR",
            callback=outputs.folder,
        ),
    ] = None,
    random: Annotated[
        float, option(OUTPUT, "Share of all pairs in the random sample; 0 = none.")
    ] = 0.05,
    truth: Annotated[
        bool | None, option(OUTPUT, "Whether to write every pair.", "--truth/--no-truth")
    ] = None,
    kind: Annotated[
        str, option(OUTPUT, "Of the files in the folder: parquet or csv.", "--format")
    ] = "parquet",
    force: Force = False,
    quiet: Quiet = False,
) -> None:
    from unskew.worlds.saved import save_world
    from unskew.worlds.worlds import world as made

    if show_list:
        _list()
        return
    if name is None:
        raise SettingError("say which world: unskew world --list tells their names")
    settings = _settings(setting or [])
    chosen = made(
        name, users=users, items=items, seed=seed, ratings=ratings, density=density, **settings
    )
    card = None
    if to is not None:
        card = save_world(chosen, to, random=random, truth=truth, format=kind, force=force)
    if quiet:
        return
    print(chosen)
    for what, value in chosen.summary().items():
        print(f"  {what:16} {f'{value:,}' if isinstance(value, int) else f'{value:.4f}'}")
    if card is not None:
        pairs = sum(rows for file, rows in card["files"].items() if file.startswith("truth/"))
        sampled = card["files"].get(f"random.{kind}", 0)
        print(f"  {'random sample':16} {sampled:,}")
        print(f"  {'truth':16} {pairs:,} pairs")
        output().print(f"written to {to}", style="dim", markup=False)


world.__doc__ = EXAMPLES

COMMON = ("users", "items", "seed", "ratings", "density")


def _settings(texts: list[str]) -> dict[str, Any]:
    """Read KEY=VALUE, numbers as numbers."""
    found: dict[str, Any] = {}
    for text in texts:
        key, equals, value = (piece.strip() for piece in text.partition("="))
        key = key.replace("-", "_")
        if not equals or not key or not value:
            raise SettingError(f"--set: write KEY=VALUE, such as alpha=1.2, got {text!r}")
        if key in COMMON:
            raise SettingError(f"--set {key}: use --{key} instead")
        if key in found:
            raise SettingError(f"--set {key} stands twice; leave one out")
        found[key] = _number(key, value)
    return found


def _number(key: str, text: str) -> int | float:
    for read in (int, float):
        try:
            return read(text)
        except ValueError:
            continue
    raise SettingError(f"--set {key}: settings are numbers, got {text!r}")


def _list() -> None:
    """Print the worlds that have a name."""
    from rich import box
    from rich.table import Table

    from unskew.worlds.named import WORLDS

    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for column in ("name", "what it is", "paper", "users x items, ratings", "settings"):
        table.add_column(column)
    for name, one in WORLDS.items():
        size = f"{one.users:,} x {one.items:,}, {one.ratings:,}"
        settings = ", ".join(f"{key}={value}" for key, value in one.settings().items())
        table.add_row(name, one.about, one.paper, size, settings)
    output().print(table)
