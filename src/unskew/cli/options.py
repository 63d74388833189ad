"""Options that several commands share, each declared once, and how their text is read."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

from unskew.checks import MOST_DEPTH, MOST_DIGITS, MOST_PROCESSES, MOST_SEED, choose
from unskew.cli import outputs
from unskew.errors import SettingError

RATING_COLUMNS = ("user", "item", "rating", "time")
"""The columns of ratings that can be named."""
LIST_COLUMNS = ("user", "item", "rank", "score")
"""The columns of ranked lists that can be named."""

INPUT = "Input"
MEASURE = "What is measured"
USERS = "Users and ties"
RUNNING = "How it runs"
OUTPUT = "Output"


def option(panel: str, text: str, *names: str, **more: Any) -> Any:
    """Declare an option of a panel."""
    return typer.Option(*names, help=text, rich_help_panel=panel, **more)


def at_least(least: int, most: int) -> dict[str, int]:
    """Return the limits of a whole number, as an option takes them."""
    return {"min": least, "max": most}


# Input
Ratings = Annotated[
    str,
    typer.Argument(metavar="RATINGS", help="A file, or a named data set such as ml-1m."),
]
Judgments = Annotated[
    Path | None, option(INPUT, "Test ratings, or TREC qrels.", "--judgments", "-j")
]
Runs = Annotated[
    list[str] | None,
    option(INPUT, "Ranked lists: FILE or NAME=FILE[:item=sku]. Repeatable.", "--run", "-r"),
]
Saved = Annotated[
    list[Path] | None,
    option(
        INPUT, "Instead: a folder saved by evaluate --save. Repeatable, one per fold.", "--scores"
    ),
]
Train = Annotated[
    Path | None, option(INPUT, "Training ratings: for popularity and novelty metrics.")
]
DataDir = Annotated[
    Path | None,
    option(INPUT, "The folder of named data sets; default: the variable UNSKEW_DATA."),
]
Columns = Annotated[
    str | None,
    option(
        INPUT,
        "Names of columns in all files: user=uid,item=movie,rating=stars. Of one file alone: write "
        "FILE:item=sku,user=uid where the file is named.",
    ),
]
Duplicates = Annotated[
    str, option(INPUT, "Pairs that stand twice: error, first, last, mean, sum, max.")
]

# What is measured
Metrics = Annotated[
    list[str] | None,
    option(MEASURE, "A metric, such as nDCG@10. Repeatable.", "--metric", "-m"),
]
Liked = Annotated[float | None, option(MEASURE, "The smallest rating that is liked.")]
Above = Annotated[
    float | None, option(MEASURE, "Instead of --liked: ratings above this are liked.")
]
Gain = Annotated[
    str | None,
    option(
        MEASURE,
        "rating, liked-only, binary, levels, exponential, burges, integer, or a mapping such as "
        "5=2,4=1,3=0,2=0,1=0.",
    ),
]
Loss = Annotated[
    str | None, option(MEASURE, "levels, binary, or a mapping such as 3=1,2=2,1=3,4=0,5=0.")
]
RelevanceOf = Annotated[
    str | None, option(MEASURE, "A paper's rule instead, such as mena2021.", "--relevance")
]
Depth = Annotated[
    int | None,
    option(
        MEASURE, "Look at no more than this many items of each list.", **at_least(1, MOST_DEPTH)
    ),
]
Algorithms = Annotated[
    list[str] | None,
    option(
        MEASURE,
        "A system: NAME or NAME:SETTING=VALUE,… such as user-knn:k=50. Repeatable.",
        "--algorithm",
        "-a",
    ),
]

# Users and ties
Users = Annotated[
    str, option(USERS, "Averaged: with-test, with-relevant, with-list, both, with-train, all.")
]
Undefined = Annotated[str, option(USERS, "Undefined values count as zero, or skip their users.")]
Ties = Annotated[
    str | None,
    option(USERS, "Equal scores: id, trec, random, input. Default: trec for TREC, else id."),
]

# How it runs
Seed = Annotated[int, option(RUNNING, "Same seed, same result.", **at_least(0, MOST_SEED))]
Threads = Annotated[
    int | None,
    option(RUNNING, "Threads to use; never changes a number.", **at_least(1, MOST_PROCESSES)),
]
Workers = Annotated[
    int,
    option(
        RUNNING, "Processes side by side; never changes a number.", **at_least(1, MOST_PROCESSES)
    ),
]
StoreDir = Annotated[
    Path | None,
    option(RUNNING, "A folder that keeps what is finished: a stopped command goes on.", "--store"),
]

# Output
TableFile = Annotated[
    Path | None,
    option(
        OUTPUT,
        f"Also write the table, as its ending says: {', '.join(outputs.TABLES)}.",
        "--output",
        "-o",
        metavar="FILE",
        callback=outputs.table_file,
    ),
]
ReportFile = Annotated[
    Path | None,
    option(
        OUTPUT,
        "The report, as its ending says: .html, .md, .json; - prints it.",
        "--output",
        "-o",
        metavar="FILE",
        callback=outputs.report_file,
        show_default=False,
    ),
]
ReportFormat = Annotated[
    str | None, option(OUTPUT, "Without a file: html, markdown or json. Default: html.")
]
Folder = Annotated[
    Path,
    option(
        OUTPUT, "The folder to write.", "--output", "-o", metavar="DIR", callback=outputs.folder
    ),
]
FigureFile = Annotated[
    list[str] | None,
    option(
        OUTPUT,
        f"Draw it: {', '.join(outputs.FIGURES)}.",
        "--figure",
        metavar="FILE",
        callback=outputs.figure_files,
    ),
]
FiguresDir = Annotated[
    Path | None,
    option(
        OUTPUT,
        "Also write every figure here, as SVG and PNG.",
        "--figures",
        callback=outputs.folder,
    ),
]
Format = Annotated[
    str, option(OUTPUT, f"What is printed: {', '.join(outputs.FORMATS)}.", "--format")
]
TextFormat = Annotated[
    str, option(OUTPUT, "What is printed: text, csv, json, markdown, latex, html.", "--format")
]
Digits = Annotated[int, option(OUTPUT, "Decimals in tables.", **at_least(0, MOST_DIGITS))]
Force = Annotated[bool, option(OUTPUT, "Write into a folder that is not empty.", "--force")]
Quiet = Annotated[bool, option(OUTPUT, "Print the result only.", "--quiet", "-q")]


def column_names(
    text: str | None,
    roles: Sequence[str] = (*RATING_COLUMNS, *LIST_COLUMNS[2:]),
    source: str = "--columns",
) -> dict[str, Any]:
    """Read user=uid,item=0 into names or numbers of columns.

    Parameters
    ----------
    text
        What was given.
    roles
        The columns that there are.
    source
        The option or file that it was given with, for errors.
    """
    names: dict[str, Any] = {}
    for part in (text or "").split(","):
        if not part.strip():
            continue
        what, equals, name = (piece.strip() for piece in part.partition("="))
        if not equals or not name:
            raise SettingError(f"{source}: write user=NAME,item=NAME, got {part!r}")
        choose(f"column (of {source})", what, roles)
        names[what] = int(name) if name.isdecimal() else name
    return names


def split_source(text: str) -> tuple[str, str]:
    """Split FILE:user=uid,item=0 into the file and what stands behind the colon.

    A file that exists is taken as it is, colons and all.
    """
    marks = [mark.start() for mark in re.finditer(r":(?=\s*\w+\s*=)", text)]
    for at in (len(text), *marks):
        if exists(text[:at]):
            return text[:at], text[at + 1 :]
    roles = "|".join((*RATING_COLUMNS, *LIST_COLUMNS[2:]))
    missing = re.search(rf":(?=\s*({roles})\s*=)", text)
    at = missing.start() if missing else len(text)
    return text[:at], text[at + 1 :]


def split_named_source(text: str) -> tuple[str, str, str]:
    """Split NAME=FILE:user=uid,item=0 into the name (which may be missing), the file, the rest."""
    path, rest = split_source(text)
    if exists(path):
        return "", path, rest
    name, _, named = text.partition("=")
    inner, more = split_source(named)
    if named and exists(inner):
        return name, inner, more
    name, equals, named = path.partition("=")
    return (name, named, rest) if equals else ("", path, rest)


def exists(text: str) -> bool:
    """Tell whether a file or folder is there."""
    try:
        return Path(text).exists()
    except OSError:  # such as a name that is too long
        return False


def file_columns(
    text: str | Path, columns: str | None, roles: Sequence[str], others: Sequence[str] = ()
) -> tuple[str, dict[str, Any]]:
    """Return a file and the names of its columns: those of --columns, and those behind FILE:.

    Parameters
    ----------
    text
        FILE, or FILE:item=sku.
    columns
        What --columns was given.
    roles
        The columns that this file has.
    others
        The columns that other files of the command have.
    """
    path, rest = split_source(str(text))
    shared = column_names(columns, tuple(dict.fromkeys((*roles, *others))))
    inside = {role: name for role, name in shared.items() if role in roles}
    return path, {**inside, **column_names(rest, roles, path)}
