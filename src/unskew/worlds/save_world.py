"""`save_world`: a world in a folder: what is observed, a random sample, the truth, and the card."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from unskew.arrays import I32
from unskew.checks import choose
from unskew.engine.files import replacing_folder, write_table
from unskew.errors import SettingError
from unskew.splits.saved import check_folder
from unskew.worlds.worlds import MOST_PAIRS, World

FORMATS = ("parquet", "csv")
CARD = "card.json"


def save_world(
    world: World,
    folder: str | os.PathLike[str],
    *,
    random: float = 0.05,
    truth: bool | None = None,
    format: str = "parquet",  # noqa: A002
    force: bool = False,
) -> dict[str, Any]:
    """Write a world into a folder and return its card.

    The folder gets `ratings` (what is observed), `random` (a random sample) and, in the folder
    `truth`, a file per block of users with every known pair: user, item, its true rating `value`,
    the `chance` that it is liked and the probability of its `observation`; and `card.json`. It
    appears when all is written: on a full disk nothing of it is left.

    Parameters
    ----------
    world
        What to write.
    folder
        Where; it must be new or empty.
    random
        The share of all pairs in the random sample; 0 writes none.
    truth
        Whether to write the truth. Unless said, yes, but a world with more pairs than memory
        should hold at once is refused until it is.
    format
        `parquet` or `csv`.
    force
        Write into a folder that is not empty; what an older card there lists is removed first.

    Examples
    --------
    >>> import tempfile
    >>> from unskew.worlds.save_world import save_world
    >>> from unskew.worlds.worlds import world
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     card = save_world(world("null", users=30, items=20), folder, format="csv")
    >>> card["files"]["truth/1.csv"]
    600
    """
    choose("format", format, FORMATS)
    if not 0 <= random <= 1:
        raise SettingError(f"random must be from 0 to 1, got {random!r}")
    path = check_folder(folder, force)
    pairs = len(world.users) * len(world.items)
    if truth is None and world.known is None and pairs > MOST_PAIRS:
        raise SettingError(
            f"the truth has {pairs:,} pairs: use --truth (truth=True) to write them all, or "
            "--no-truth (truth=False) to leave them out"
        )
    observed = world.ratings  # whatever cannot be made, fails before anything is written
    with replacing_folder(path) as part:
        files = {}

        def write(name: str, frame: pl.DataFrame) -> None:
            write_table(frame, part / f"{name}.{format}", format)
            files[f"{name}.{format}"] = frame.height

        write("ratings", observed.to_polars())
        if random:
            write("random", world.random(random).to_polars())
        if truth is None or truth:
            for number, users in enumerate(world.blocks(), 1):
                write(f"truth/{number}", _pairs(world, users))
        card = {**world.describe(), "random": random, "files": files}
        (part / CARD).write_text(json.dumps(card, indent=1) + "\n", encoding="utf-8")
        _clear(path)  # now that everything is written
    return card


def _pairs(world: World, users: I32) -> pl.DataFrame:
    """Return every known pair of a block of users, with what is true of it."""
    values = world.values(users)
    row, item = np.nonzero(~np.isnan(values))
    return pl.DataFrame(
        {
            "user": world.users.raw(users[row]),
            "item": world.items.raw(item.astype(np.int32)),
            "value": values[row, item],
            "chance": world.chances(users)[row, item],
            "observation": world.observation(users)[row, item],
        }
    )


def _clear(path: Path) -> None:
    """Take away what an older card of a world lists, the card first; nothing else is touched."""
    old = path / CARD
    if not old.is_file():
        return
    try:
        listed = json.loads(old.read_text(encoding="utf-8"))
        files = [path / name for name in listed["files"]] if "world" in listed else []
    except (ValueError, KeyError, TypeError):
        files = []  # not one of ours
    old.unlink()
    for file in files:
        if file.resolve().is_relative_to(path.resolve()):
            file.unlink(missing_ok=True)
