"""Several files of TREC judgments as one collection."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path

import polars as pl

from unskew.addresses import file_name
from unskew.checks import checked
from unskew.data.ratings import Ratings
from unskew.data.readers import read_ratings
from unskew.errors import SettingError


@checked
def read_qrels(
    files: str | os.PathLike[str] | Sequence[str | os.PathLike[str]] | Mapping[str, object],
    *,
    duplicates: str = "error",
) -> Ratings:
    r"""Read TREC qrels; several files become one collection, as bellogin2017 takes 30 tracks.

    Query 301 of one track is not query 301 of another: with several files every query is written
    `label/query`, and the tag `collection` holds the label. Documents keep their names.

    Parameters
    ----------
    files
        A file, several (each labelled by its name without its ending), or labels with their files.
    duplicates
        For pairs that stand more than once in a file: see `read_ratings`.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from unskew.data.collection import read_qrels
    >>> folder = Path(tempfile.mkdtemp())
    >>> for track in ("web9", "web10"):
    ...     _ = (folder / f"{track}.qrels").write_text("1 0 d7 2\n1 0 d8 0\n")
    >>> both = read_qrels(sorted(folder.glob("*.qrels")))
    >>> list(both.users.values)
    ['web10/1', 'web9/1']
    """
    if isinstance(files, str | os.PathLike):
        return read_ratings(files, format="trec", duplicates=duplicates)
    labelled = files if isinstance(files, Mapping) else _labelled(files)
    if not labelled:
        raise SettingError("read_qrels: give at least one file")
    frames: list[pl.DataFrame] = []
    notes: list[str] = []
    for label, file in labelled.items():
        part = read_ratings(file, format="trec", duplicates=duplicates)
        notes += part.notes
        frames.append(
            part.to_polars().select(
                (pl.lit(f"{label}/") + pl.col("user").cast(pl.String)).alias("user"),
                pl.col("item").cast(pl.String),
                "rating",
                "pooled",
                pl.lit(label).alias("collection"),
            )
        )
    rows = pl.concat(frames)
    return Ratings.of(
        rows["user"],
        rows["item"],
        rows["rating"],
        tags={name: rows[name] for name in ("pooled", "collection")},
        notes=tuple(notes),
    )


def _labelled(files: Sequence[str | os.PathLike[str]]) -> dict[str, object]:
    labelled: dict[str, object] = {}
    for file in files:
        label = Path(file_name(file).removesuffix(".gz")).stem
        if label in labelled:
            raise SettingError(
                f"read_qrels: two files are named {label!r}; give labels: "
                f"{{'first': …, 'second': …}}"
            )
        labelled[label] = file
    return labelled
