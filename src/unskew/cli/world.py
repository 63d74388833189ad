"""`unskew world`: simulated data whose truth is known."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

from unskew.checks import MOST_DEPTH, MOST_SEED
from unskew.cli import outputs
from unskew.cli.bundles import argument, bundle, option
from unskew.cli.options import FOLDER, OUTPUT, Force, Quiet, Seed, setting_option
from unskew.errors import SettingError
from unskew.report.text import counted

SIZE = "The world"


@bundle
class SizeOptions:
    """How large a world is."""

    users: Annotated[int | None, option(SIZE, "Number of users.", min=1, max=MOST_DEPTH)]
    items: Annotated[int | None, option(SIZE, "Number of items.", min=1, max=MOST_DEPTH)]
    ratings: Annotated[
        int | None, option(SIZE, "Expected number of observed ratings.", min=1, max=MOST_SEED)
    ]
    density: Annotated[
        float | None, option(SIZE, "Observed share of all user-item pairs, instead of --ratings.")
    ]
    seed: Seed


@bundle
class WorldFolderOptions:
    """Which files of a world are written, and where."""

    output: Annotated[Path | None, FOLDER] = None
    random: Annotated[
        float,
        option(
            OUTPUT,
            "Share of all user-item pairs in the random sample; 0 for no sample.",
            default=0.05,
        ),
    ]
    truth: Annotated[
        bool | None,
        option(
            OUTPUT,
            "Write the truth of every user-item pair, or leave it out.",
            "--truth/--no-truth",
        ),
    ]
    format: Annotated[
        str, option(OUTPUT, "Format of the files in the folder: parquet or csv.", default="parquet")
    ]
    force: Force
    quiet: Quiet


def command(
    name: Annotated[str | None, argument("Name of a world; --list lists them.", default=None)],
    show_list: Annotated[
        bool, option(SIZE, "List the worlds and their settings.", "--list", default=False)
    ],
    size: SizeOptions,
    setting: Annotated[list[str] | None, setting_option(SIZE)],
    output: WorldFolderOptions,
) -> None:
    """Simulate ratings whose full truth is known (a world).

    [bold]Examples[/bold]

      unskew world --list

      unskew world shop -o shop/

      unskew world inverted --users 500 --items 300 --seed 7 --set alpha=1.2 -o inverted/

      unskew world simulated-popularity --set alpha=0 --no-truth --format csv -o flat/

    The folder gets ratings (what users chose to rate), random (a random sample of all pairs), truth
    (a file per block of users: every pair with its true rating, the chance that it is liked and the
    probability that it is observed) and card.json. Without -o the command only prints the sizes of
    the world. The same seed gives the same world on any machine.
    """
    from unskew.worlds.saved import save_world
    from unskew.worlds.worlds import world

    if show_list:
        _list()
        return
    if name is None:
        raise SettingError("name a world; unskew world --list lists them")
    chosen = world(name, **vars(size), **_settings(setting or []))
    card = None
    if output.output is not None:
        card = save_world(
            chosen,
            output.output,
            random=output.random,
            truth=output.truth,
            format=output.format,
            force=output.force,
        )
    if output.quiet:
        return
    outputs.say(str(chosen))
    for what, value in chosen.summary().items():
        outputs.say(f"  {what:16} {f'{value:,}' if isinstance(value, int) else f'{value:.4f}'}")
    if card is not None:
        pairs = sum(rows for file, rows in card["files"].items() if file.startswith("truth/"))
        sampled = card["files"].get(f"random.{output.format}", 0)
        outputs.say(f"  {'random sample':16} {sampled:,}")
        outputs.say(f"  {'truth':16} {counted(pairs, 'pair')}")
        outputs.say(f"written to {output.output}", dim=True)


COMMON = ("users", "items", "seed", "ratings", "density")


def _settings(texts: list[str]) -> dict[str, Any]:
    """Read NAME=VALUE, numbers as numbers."""
    settings: dict[str, Any] = {}
    for text in texts:
        name, equals, value = (piece.strip() for piece in text.partition("="))
        name = name.replace("-", "_")
        if not equals or not name or not value:
            raise SettingError(f"--set: write NAME=VALUE, such as alpha=1.2, got {text!r}")
        if name in COMMON:
            raise SettingError(f"--set {name}: use --{name} instead")
        if name in settings:
            raise SettingError(f"--set {name} is given twice; leave one out")
        settings[name] = _number(name, value)
    return settings


def _number(name: str, text: str) -> int | float:
    for read in (int, float):
        try:
            return read(text)
        except ValueError:
            continue
    raise SettingError(f"--set {name}: settings are numbers, got {text!r}")


def _list() -> None:
    """Print the worlds that have a name."""
    from unskew.worlds.named import WORLDS

    outputs.print_list(
        ("name", "what it is", "paper", "users x items, ratings", "settings"),
        [
            (
                name,
                world.about,
                world.paper,
                f"{world.users:,} x {world.items:,}, {world.ratings:,}",
                ", ".join(f"{key}={value}" for key, value in world.settings().items()),
            )
            for name, world in WORLDS.items()
        ],
    )
