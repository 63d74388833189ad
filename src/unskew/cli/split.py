"""`unskew split`: training and test ratings, and the card that tells how they were made."""

from __future__ import annotations

from dataclasses import fields
from pathlib import Path
from typing import Annotated, Any

import typer

from unskew.checks import MOST_DEPTH, MOST_REPEATS, choose
from unskew.cli.console import messages, output
from unskew.cli.options import (
    INPUT,
    RATING_COLUMNS,
    Columns,
    DataDir,
    Duplicates,
    Folder,
    Force,
    Quiet,
    Seed,
    at_least,
    file_columns,
    option,
)
from unskew.errors import SettingError

EXAMPLES = """
Split ratings into training and test parts.

[bold]Examples[/bold]

  unskew split ratings.csv --test 0.2 -o parts/

  unskew split ratings.csv --protocol random --folds 5 --seed 7 -o folds/

  unskew split ratings.csv --protocol user --test 0.2 --pick last -o parts/

  unskew split ratings.csv --protocol uniform --test 0.2 --epsilon 0.2 -o uniform/

  unskew split plays.tsv --protocol events --test 0.2 --columns user=0,item=2,time=1 -o parts/

  unskew split ratings.csv --card parts/card.json -o again/

[bold]Protocols[/bold]

  random: a coin per rating, or folds

  user: a share or number of each user's ratings; leave-out: a few of each user's

  temporal: before and after a moment; events: a log, split by time and then aggregated

  uniform: the same number of test ratings for the popular items; flat: for all that have enough

  head-removed: random, without the most popular items in the test part

  forced: test ratings of randomly chosen items, in a file of their own

  familiar: judgments of randomly chosen items, of which the familiar ones train

  given: a column or two files that say it

The folder gets train.parquet and test.parquet (in fold1, fold2, … where there are several) and
card.json with every setting and fact. Same seed, same rows, on any machine.
"""

# Settings that are named otherwise on the command line.
_SETTING = {
    ("leave-out", "number"): "n",
    ("flat", "per_item"): "t",
    ("head-removed", "head"): "share",
    ("familiar", "column"): "tag",
    ("forced", "test_ratings"): "random",
    ("given", "test_ratings"): "test",
}

SPLIT = "The split"
PER_USER = "Protocols user and leave-out"
TIME = "Protocols temporal and events"
POPULARITY = "Protocols uniform, flat and head-removed"
GIVEN = "Protocols forced, given and familiar"


def split(  # noqa: D103 - its help is EXAMPLES
    ratings: Annotated[
        Path, typer.Argument(help="Ratings, interactions or events: a file, or a named data set.")
    ],
    to: Folder,
    card: Annotated[Path | None, option(INPUT, "Repeat the split of this card instead.")] = None,
    data_dir: DataDir = None,
    columns: Columns = None,
    duplicates: Duplicates = "error",
    protocol: Annotated[str, option(SPLIT, "How to split.", "--protocol", "-p")] = "random",
    test: Annotated[float | None, option(SPLIT, "Test share, 0.2 unless given.")] = None,
    folds: Annotated[
        int | None,
        option(
            SPLIT,
            "random, head-removed, familiar: folds (familiar: 0 = none).",
            **at_least(0, MOST_REPEATS),
        ),
    ] = None,
    exact: Annotated[
        bool, option(SPLIT, "random: an exact number instead of coins.", "--exact")
    ] = False,
    rounding: Annotated[
        str | None, option(SPLIT, "user: floor, half-even. uniform: floor, nearest.")
    ] = None,
    repetitions: Annotated[
        int | None,
        option(SPLIT, "uniform, flat: independent draws (not folds).", **at_least(1, MOST_REPEATS)),
    ] = None,
    liked: Annotated[
        float | None, option(SPLIT, "Count ratings from this value up as liked.")
    ] = None,
    seed: Seed = 0,
    number: Annotated[
        int | None, option(PER_USER, "This many ratings of each user.", **at_least(1, MOST_DEPTH))
    ] = None,
    pick: Annotated[str | None, option(PER_USER, "random, last or first in time.")] = None,
    at: Annotated[str | None, option(TIME, "The moment, such as 2003-01-01.")] = None,
    ties: Annotated[str | None, option(TIME, "Equal times at the cut go to test, train.")] = None,
    per_user: Annotated[bool, option(TIME, "temporal: a cut for each user.", "--per-user")] = False,
    aggregate: Annotated[str | None, option(TIME, "events: count, sum.")] = None,
    seen: Annotated[
        str | None, option(TIME, "events: test pairs seen in training: drop, keep.")
    ] = None,
    epsilon: Annotated[
        float | None, option(POPULARITY, "uniform: share an item keeps for training.")
    ] = None,
    per_item: Annotated[
        int | None, option(POPULARITY, "flat: test ratings per item.", **at_least(1, MOST_DEPTH))
    ] = None,
    min_ratings: Annotated[
        int | None,
        option(
            POPULARITY, "flat: items with fewer ratings are not tested.", **at_least(1, MOST_DEPTH)
        ),
    ] = None,
    head: Annotated[float | None, option(POPULARITY, "head-removed: how much is the head.")] = None,
    by: Annotated[str | None, option(POPULARITY, "head-removed: share of items, ratings.")] = None,
    counts: Annotated[
        str | None, option(POPULARITY, "head-removed: popularity in all, training.")
    ] = None,
    keep: Annotated[str | None, option(POPULARITY, "head-removed: keep tail, head.")] = None,
    column: Annotated[
        str | None, option(GIVEN, "given: the column that says it. familiar: its column.")
    ] = None,
    test_ratings: Annotated[
        Path | None, option(GIVEN, "forced, given: the test ratings, a file.")
    ] = None,
    overlap: Annotated[
        str | None,
        option(GIVEN, "forced, given: pairs in both: to-training, to-test, keep, error."),
    ] = None,
    fair: Annotated[
        bool, option(GIVEN, "familiar: thin the test (needs --liked).", "--fair")
    ] = False,
    smoothing: Annotated[float | None, option(GIVEN, "familiar --fair: of the rates.")] = None,
    cap: Annotated[float | None, option(GIVEN, "familiar --fair: bound T by this.")] = None,
    force: Force = False,
    quiet: Quiet = False,
) -> None:
    from unskew.cli.inputs import check_data_dir, is_named, read_random_file, read_rating_file
    from unskew.data.readers import read_ratings
    from unskew.splits.events import read_events
    from unskew.splits.registry import PROTOCOLS
    from unskew.splits.saved import check_folder, from_card, read_card, save_splits

    given = {
        "test": test,
        "folds": folds,
        "exact": exact or None,
        "rounding": rounding,
        "number": number,
        "pick": pick,
        "at": at,
        "ties": ties,
        "per_user": per_user or None,
        "aggregate": aggregate,
        "seen": seen,
        "epsilon": epsilon,
        "per_item": per_item,
        "min_ratings": min_ratings,
        "repetitions": repetitions,
        "head": head,
        "by": by,
        "counts": counts,
        "keep": keep,
        "column": column,
        "overlap": overlap,
        "fair": fair or None,
        "smoothing": smoothing,
        "cap": cap,
    }
    settings: dict[str, Any] = {name: it for name, it in given.items() if it is not None}
    check_folder(to, force)
    check_data_dir(data_dir, ratings, test_ratings)
    source = str(ratings)
    path, names = source, dict[str, Any]()
    if not is_named(source):
        path, names = file_columns(source, columns, RATING_COLUMNS)
    test_path, test_names = file_columns(test_ratings or "", columns, RATING_COLUMNS)
    old = None if card is None else read_card(card)
    if old is not None:
        if settings:
            raise SettingError(f"--card says it all; leave out --{_option(next(iter(settings)))}")
        if names or test_names:
            raise SettingError("--card says it all; leave out --columns and FILE:item=…")
        protocol, seed, liked = old["protocol"], old["seed"], old["liked"]
        names, duplicates = old["reading"]["columns"], old["reading"]["duplicates"]
        test_names = old["reading"].get("test_columns", names)
        column = old["settings"].get("column") or old["settings"].get("tag")
    choose("protocol", protocol, PROTOCOLS)
    data: Any
    if is_named(source):
        if protocol == "events":
            raise SettingError(f"--protocol events reads a log from a file, and {source} is named")
        data = read_rating_file(source, columns, duplicates, data_dir=data_dir)
    elif protocol == "events":
        data = read_events(path, **names)
    else:
        tag = "familiar" if protocol == "familiar" and column is None else column
        tags = [] if tag is None else [tag]
        data = read_ratings(path, duplicates=duplicates, tags=tags, **names)
    tested = None
    if test_ratings is not None:
        if is_named(test_ratings):
            read = read_random_file if protocol == "forced" else read_rating_file
            tested = read(test_ratings, columns, duplicates, data_dir=data_dir)
        else:
            tested = read_ratings(test_path, duplicates=duplicates, **test_names)
        settings["test_ratings"] = tested
    how = _built(protocol, settings, liked) if old is None else from_card(old, data, tested)
    reading = {"columns": names, "duplicates": duplicates}
    if test_names != names:
        reading["test_columns"] = test_names
    made = save_splits(
        how,
        data,
        to,
        seed,
        liked=liked,
        force=force,
        more={"file": Path(path).name, "reading": reading},
    )
    if not quiet:
        _show(made, to)
        for note in data.notes:
            messages().print(note, style="dim", markup=False)


split.__doc__ = EXAMPLES


def _built(name: str, options: dict[str, Any], liked: float | None) -> Any:
    """Build the way to split from the options given, under the names of its settings."""
    from unskew.splits.registry import PROTOCOLS, protocol

    settings = dict(options)
    if name == "head-removed":
        inner = {key: settings.pop(key) for key in ("test", "folds", "exact") if key in settings}
        settings["of"] = protocol("random", **inner)
    if name == "familiar":
        settings["folds"] = settings.get("folds", 5) or None
        if settings.get("fair"):
            settings["liked"] = liked
    renamed = {_SETTING.get((name, key), key): value for key, value in settings.items()}
    allowed = [one.name for one in fields(PROTOCOLS[name])]
    for key, setting in zip(settings, renamed, strict=True):
        if setting not in allowed:
            back = {mine: theirs for (of, theirs), mine in _SETTING.items() if of == name}
            takes = ", ".join(f"--{_option(back.get(one, one))}" for one in allowed)
            raise SettingError(f"--{_option(key)} does not apply to {name}; it takes {takes}")
    return protocol(name, **renamed)


def _option(setting: str) -> str:
    return setting.replace("_", "-")


def _show(card: dict[str, Any], folder: Path) -> None:
    """Print what was made: the first split in full, a line for each further one."""
    from unskew.splits.diagnose import SplitAudit

    first, *others = card["splits"]
    print(SplitAudit(**first["audit"]))
    own = {key: fact for key, fact in first["facts"].items() if key not in first["audit"]}
    print("  facts  " + ", ".join(f"{key} {_told(fact)}" for key, fact in own.items()))
    for entry in others:
        sizes = ", ".join(f"{file} {rows:,}" for file, rows in entry["files"].items())
        print(f"{entry['label']}: {sizes}")
    output().print(f"written to {folder}", style="dim", markup=False)


def _told(fact: Any) -> str:
    if isinstance(fact, bool) or not isinstance(fact, int | float):
        return str(fact)
    return f"{fact:,}" if isinstance(fact, int) else f"{fact:.4g}"
