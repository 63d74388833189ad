"""Target lists on disk, and lists that someone else drew."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from unskew.arrays import I32, I64, frozen
from unskew.checks import checked
from unskew.data.ratings import Ids, Ratings
from unskew.data.read.tables import DataTable, number_column, read_table
from unskew.data.relevance import Relevance
from unskew.engine.files import (
    digest_of_file,
    inner_path,
    local_path,
    reading,
    replacing_folder,
    write_sealed,
    write_table,
)
from unskew.engine.system import versions
from unskew.errors import DataError
from unskew.report.text import counted
from unskew.splits.saved import check_digests, saved_card
from unskew.splits.split import Split
from unskew.targets.designs import relevance_of
from unskew.targets.lists import Kept, TargetLists

FORMAT = 2
UNSEALED = 1
"""The format before files and card had digests; still read, as it is."""
CARD = "card.json"
_MOST_STRATA = 1_000_000


@checked
def save_targets(lists: TargetLists, folder: str | os.PathLike[str]) -> Path:
    """Write every list in full: Parquet files of bounded size, and `card.json` last.

    Columns: `list`, `user`, `item`, and `anchor` and `stratum` where there are such. Other tools
    rank the items of each list and name their lists by `list`.

    Parameters
    ----------
    lists
        What to write.
    folder
        A new or empty folder.

    Returns
    -------
    Path
        The folder.

    Examples
    --------
    >>> import os, tempfile, unskew as us
    >>> shop = us.world("shop", users=60, items=20, density=0.3, seed=3).ratings
    >>> (split,) = us.splits.Random(test=0.2).split(shop, seed=1)
    >>> lists = us.targets.OneRelevant(others=5).lists(split, liked=4, seed=1)
    >>> folder = us.targets.save_targets(lists, os.path.join(tempfile.mkdtemp(), "lists"))
    >>> us.targets.read_targets(folder, split, liked=4)
    TargetLists(50 lists, 5 to 6 items each)
    """
    path = Path(folder)
    if path.exists() and (not path.is_dir() or any(path.iterdir())):
        raise DataError(f"{path} already exists and is not empty: name a new folder")
    with replacing_folder(path) as part:
        _write(lists, part)
    return path


def _write(lists: TargetLists, folder: Path) -> None:
    digests = {}
    for number, (lo, hi) in enumerate(lists.blocks()):
        name = f"part-{number:05d}.parquet"
        write_table(lists.to_polars(lo, hi), folder / name, "parquet")
        digests[name] = digest_of_file(folder / name)
    card = {
        "format": FORMAT,
        "files": list(digests),
        "digests": digests,
        "lists": int(np.count_nonzero(lists.size)),
        "without_targets": int(np.count_nonzero(lists.size == 0)),
        "targets": dict(lists.design),
        "relevance": lists.relevance.describe(),
        "train": lists.train.fingerprint,
        "judgments": lists.tests.fingerprint,
        "facts": dict(lists.facts),
        "versions": versions(),
    }
    write_sealed(folder / CARD, json.loads(json.dumps(card, default=str)))


@checked
def read_targets(
    source: object,
    split: Split,
    relevance: Relevance | str | None = None,
    *,
    liked: float | None = None,
    judgments: str | None = None,
    shortfall: str = "count",
) -> TargetLists:
    """Read target lists: what `save_targets` wrote, or a table of one's own.

    Parameters
    ----------
    source
        A saved folder, or a table with columns `user` and `item`; `list` where a user has
        several, numbered user by user; `anchor` (the one relevant item) and `stratum` if any.
    split
        Training items must not be targets; test ratings say what is relevant.
    relevance, liked
        Which test ratings are liked.
    judgments
        Judge by one of `split.judgments` instead of the test ratings.
    shortfall
        As in `Targets`.

    Examples
    --------
    A table that another program made: which items the list of each user holds.

    >>> import unskew as us
    >>> data = us.read_ratings({"user": [1, 1, 2, 2], "item": [7, 8, 7, 9]})
    >>> (split,) = us.splits.LeaveOut(1).split(data, seed=1)
    >>> rows = {"user": [1, 1, 2], "item": [7, 9, 9]}
    >>> us.targets.read_targets(rows, split, liked=1)
    TargetLists(2 lists, 1 to 2 items each)
    """
    rule = relevance_of(relevance, liked)
    frame, design, notes = _table(source)
    split = split if judgments is None else split.judged_by(judgments)
    tests = split.test
    user, item = _codes(frame, "user", tests.users), _codes(frame, "item", tests.items)
    anchor = _codes(frame, "anchor", tests.items) if "anchor" in frame.columns else None
    label = frame["list"] if "list" in frame.columns else frame["user"]
    lists, code = Ids.number(label)
    order = np.lexsort((item, code))
    code, user, item = code[order], user[order], item[order]
    start = np.append(0, np.cumsum(np.bincount(code, minlength=len(lists))))
    first = start[:-1]
    owner = user[first]
    _check(lists, code, user, item, owner)
    _check_training(split.train, owner, start, item, lists)
    none = np.full(len(lists), -1, np.int32)
    strata = _strata(frame)[order][first] if "stratum" in frame.columns else none
    return TargetLists(
        design=design,
        train=split.train,
        known=split.known.get("test"),
        tests=tests,
        relevance=rule,
        user=frozen(owner),
        anchor=frozen(none if anchor is None else anchor[order][first]),
        stratum=frozen(strata.astype(np.int32)),
        size=frozen(np.diff(start)),
        source=Kept(frozen(start), frozen(item), lists),
        strata=int(strata.max(initial=-1)) + 1,
        shortfall=shortfall,
        facts={"lists": len(lists)},
        notes=notes,
    )


def _strata(frame: pl.DataFrame) -> I32:
    """Return the numbers of strata; -1 is none."""
    column = number_column(DataTable(frame, "targets"), "stratum", "strata")
    values = column.cast(pl.Float64).fill_null(float("nan")).to_numpy()
    bad = ~((values >= -1) & (values < _MOST_STRATA)) | (values != np.round(values))
    if bad.any():
        row = int(np.argmax(bad))
        raise DataError(
            f"targets: {int(bad.sum()):,} strata are not whole numbers from 0 (or -1 for none) to "
            f"{_MOST_STRATA - 1:,}, the first in row {row + 1}: {frame['stratum'][row]!r}"
        )
    return values.astype(np.int32)


def _table(source: object) -> tuple[pl.DataFrame, dict[str, Any], tuple[str, ...]]:
    """Return the rows and, of a saved folder, the design they came from and what it left out."""
    if not isinstance(source, str | os.PathLike) or not Path(source).is_dir():
        frame = read_table(source).frame
        missing = {"user", "item"} - set(frame.columns)
        if missing:
            raise DataError(
                f"targets need columns user and item, and list, anchor, stratum where they apply; "
                f"found: {', '.join(frame.columns)}"
            )
        return frame, {"given": True}, ()
    folder = Path(source)
    card = saved_card(
        inner_path(folder, CARD),
        problem=f"{folder}: no saved targets here",
        formats=(FORMAT, UNSEALED),
        advice="save the targets again",
    )
    check_digests(folder, card.get("digests", {}), "save them again")
    with reading(folder):
        paths = [local_path(inner_path(folder, name)) for name in card["files"]]
        frame = pl.concat([pl.read_parquet(path, glob=False) for path in paths])
    if frame["list"].n_unique() != card["lists"]:
        raise DataError(
            f"{folder}: {counted(frame['list'].n_unique(), 'list is', 'lists are')} left of "
            f"{card['lists']:,}; save them again"
        )
    empty = card["without_targets"]
    notes = (
        (f"targets: {counted(empty, 'list')} without any target not in the file",) if empty else ()
    )
    return frame, dict(card["targets"]), notes


def _codes(frame: pl.DataFrame, name: str, ids: Ids) -> I32:
    codes = ids.codes(frame[name])
    if (codes < 0).any():
        row = int(np.argmax(codes < 0))
        rows = counted(int(np.count_nonzero(codes < 0)), "row has", "rows have")
        raise DataError(
            f"targets: {rows} a {name} that is not in the split, the first in row "
            f"{row + 1}: {frame[name][row]!r}"
        )
    return codes


def _check(lists: Ids, code: I32, user: I32, item: I32, owner: I32) -> None:
    """Refuse lists of two users, items that stand twice, and lists in no order of users."""
    mixed, twice = user != owner[code], (np.diff(code) == 0) & (np.diff(item) == 0)
    for bad, problem in ((mixed, "belongs to two users"), (twice, "holds an item twice")):
        if bad.any():
            name = lists.values[int(code[int(np.argmax(bad))])]
            raise DataError(f"targets: list {name!r} {problem}")
    if (np.diff(owner) < 0).any():
        name = lists.values[int(np.argmax(np.diff(owner) < 0)) + 1]
        raise DataError(
            f"targets: lists must be numbered user by user, but list {name!r} follows one of a "
            f"later user; number them in the order of users"
        )


def _check_training(train: Ratings, owner: I32, start: I64, item: I32, lists: Ids) -> None:
    """Refuse targets that the user has rated in training."""
    from unskew.targets import kernels

    row = kernels.first_trained(owner, frozen(start), frozen(item), train.start, train.item)
    if row >= 0:
        targets = item[start[row] : start[row + 1]]
        trained = train.item[train.start[owner[row]] : train.start[owner[row] + 1]]
        raw = train.items.values[int(targets[np.isin(targets, trained)][0])]
        raise DataError(
            f"targets: list {lists.values[row]!r} holds item {raw!r}, which is in the user's "
            f"training ratings; training items are never targets"
        )
