"""The folder of a plan of annotation: the blinded file that people fill in, and the rest."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from unskew.data.ratings import Ids
from unskew.data.tables import ITEM, plain_name, read_table
from unskew.engine.files import digest_of_file, replacing_folder, sealed, write_table
from unskew.engine.folders import inner_path
from unskew.engine.versions import versions
from unskew.errors import DataError, SettingError
from unskew.report.text import counted, visible
from unskew.splits.saved import check_folder

FORMAT = 1
TO_JUDGE, PAIRS, CARD, GUIDE = "to-judge.csv", "pairs.parquet", "card.json", "read-me.txt"
UNCLEAR = "?"
"""What annotators write where they cannot tell."""
ROW, LABEL = "row", "label"


def write_plan(
    folder: str | os.PathLike[str],
    asked: pl.DataFrame,
    titles: object,
    pairs: pl.DataFrame,
    card: Mapping[str, Any],
    *,
    force: bool,
) -> Path:
    """Write the files of a plan; see `AnnotationPlan.save`.

    Parameters
    ----------
    folder
        New or empty, or `force`.
    asked
        User and item of the pairs that have no label yet, in their order.
    titles
        What annotators see of items, or None.
    pairs
        All pairs, with everything that is known of them.
    card
        The settings.
    force
        Write into a folder that is not empty.
    """
    home = check_folder(folder, force)
    _check_unfilled(inner_path(home, TO_JUDGE))
    sheet = _sheet(asked, titles)
    with replacing_folder(home) as part:
        write_table(sheet, part / TO_JUDGE, "csv")
        write_table(pairs, part / PAIRS, "parquet")
        files = {PAIRS: digest_of_file(part / PAIRS)}
        content = {"format": FORMAT, **card, "files": files, "versions": versions()}
        (part / CARD).write_bytes(sealed(content))
        (part / GUIDE).write_text(_guide(*card["scale"]), encoding="utf-8")
    return home


def _check_unfilled(path: Path) -> None:
    """Refuse to overwrite a file in which people have judged something."""
    if not path.is_file():
        return
    frame = read_table(path).frame
    name = next((column for column in frame.columns if plain_name(column) == LABEL), None)
    if name is None or frame[name].cast(pl.String).fill_null("").str.strip_chars().eq("").all():
        return
    raise SettingError(f"{path} holds labels, and is not overwritten: give another folder")


def _sheet(asked: pl.DataFrame, titles: object) -> pl.DataFrame:
    """Return what people see: the pairs in their order, and nothing that tells why."""
    frame = asked.with_row_index(ROW, offset=1)
    if titles is not None:
        frame = pl.concat([frame, _titles(titles, frame["item"])], how="horizontal")
    return frame.with_columns(pl.lit(None, pl.String).alias(LABEL))


def _titles(titles: object, items: pl.Series) -> pl.DataFrame:
    """Return the further columns of a table of items, a row for each of some items."""
    table = read_table(titles)
    key = table.need("item", ITEM, None)
    more = [name for name in table.frame.columns if name != key]
    clash = [name for name in more if name in (ROW, "user", "item", LABEL)]
    if not more or clash:
        what = (
            f"a column {clash[0]!r}, which {TO_JUDGE} has itself" if clash else "no further column"
        )
        raise DataError(f"titles: {table.source} has {what}; it needs the item and, say, a title")
    ids, codes = Ids.number(table.frame[key])
    if len(ids) < codes.size:
        raise DataError(
            f"titles: {table.source} has {counted(codes.size - len(ids), 'item')} more than once"
        )
    row = np.full(len(ids) + 1, -1, np.int64)
    row[codes] = np.arange(codes.size)
    at = row[ids.codes(items)]
    index = pl.Series(at).replace(-1, None).cast(pl.UInt32)
    seen = table.frame.select(more).select(pl.all().gather(index))
    # Control characters of a title would drive the terminal that shows it.
    safe = pl.col(pl.String).map_elements(visible, return_dtype=pl.String)
    return seen.with_columns(safe)


def _guide(low: int, high: int) -> str:
    return (
        f"Judge the rows of {TO_JUDGE} from the top down, without leaving any out: would this user "
        f"like this item?\nWrite a whole number from {low} to {high} into the column {LABEL}; "
        f"{UNCLEAR} where you cannot tell.\nStop wherever you like; leave what you have not judged "
        f"empty. Do not change other columns.\nDo not open the other files here before all is "
        f"judged: they show what the rows must not show.\n"
    )
