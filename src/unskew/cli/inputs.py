"""What commands read: ratings, runs, saved scores, and how ratings are taken."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from unskew.cli.options import LIST_COLUMNS, RATING_COLUMNS, file_columns, split_named_source
from unskew.errors import SettingError

if TYPE_CHECKING:
    from unskew.data.ratings import Ratings
    from unskew.runs import Run


def either(judgments: Path | None, run: Sequence[str] | None, saved: Sequence[Path] | None) -> bool:
    """Tell whether saved scores are meant; refuse what is neither one nor the other."""
    if saved:
        if judgments is not None or run:
            raise SettingError("give --scores, or --judgments and --run: not both")
        return True
    if judgments is None or not run:
        raise SettingError("give --judgments and --run, or --scores with a saved folder")
    return False


def metric_names(metric: list[str] | None) -> list[str] | None:
    """Return the metrics asked for, None for none: several may stand between commas."""
    parts = [part for text in metric or [] for part in re.split(r",(?![^()]*\))", text)]
    return [part.strip() for part in parts if part.strip()] or None


def read_files(
    judgments: Path | None,
    run: Sequence[str] | None,
    train: Path | None,
    *,
    columns: str | None,
    duplicates: str,
    repeated: str = "error",
    **how: Any,
) -> tuple[Ratings, dict[str, Run], Ratings | None]:
    """Read test ratings, runs (see `read_run` for `how`) and, where given, training ratings."""
    lists = {
        name: read_run_file(source, columns, duplicates=repeated, keep_scores=False, **how)
        for name, source in named_runs(run or []).items()
    }
    tests, trained = (
        None if path is None else read_rating_file(path, columns, duplicates, others=LIST_COLUMNS)
        for path in (judgments, train)
    )
    return cast("Ratings", tests), lists, trained


def is_named(source: str | Path) -> bool:
    """Tell whether a data set of the catalogue is meant: NAME or NAME:OPTION=VALUE."""
    from unskew.data.catalog import read_name

    return read_name(str(source)) is not None


def check_data_dir(data_dir: Path | None, *sources: str | Path | None) -> None:
    """Refuse the folder of named data sets where none is named."""
    if data_dir is not None and not any(source and is_named(source) for source in sources):
        raise SettingError("--data-dir is for named data sets, and none is named: leave it out")


def read_rating_file(
    source: str | Path,
    columns: str | None,
    duplicates: str,
    *,
    others: Sequence[str] = (),
    data_dir: Path | None = None,
    **more: Any,
) -> Ratings:
    """Read ratings from FILE, FILE:item=sku or a named data set.

    Parameters
    ----------
    source
        What was given.
    columns, duplicates
        For a file; a named data set refuses what it does not take.
    others
        Columns that other files of the command have.
    data_dir
        The folder of named data sets.
    more
        For a file, see `read_ratings`.
    """
    from unskew.data.readers import read_ratings

    if is_named(source):
        ratings: Ratings = loaded(str(source), data_dir, columns, duplicates).ratings
        return ratings
    path, names = file_columns(source, columns, RATING_COLUMNS, others)
    return read_ratings(path, duplicates=duplicates, **names, **more)


def read_random_file(
    source: str | Path,
    columns: str | None,
    duplicates: str,
    *,
    others: Sequence[str] = (),
    data_dir: Path | None = None,
) -> Ratings:
    """Read ratings of randomly chosen items: a file, or that part of a named data set."""
    from unskew.data.catalog import read_name

    meant = read_name(str(source))
    if meant is None:
        return read_rating_file(source, columns, duplicates, others=others)
    data = loaded(str(source), data_dir, columns, duplicates)
    if data.random is None and meant[0].random != "all":
        raise SettingError(f"{source} has no ratings of randomly chosen items")
    ratings: Ratings = data.ratings if data.random is None else data.random
    return ratings


def read_run_file(source: str | Path, columns: str | None, **how: Any) -> Run:
    """Read ranked lists from FILE or FILE:item=sku."""
    from unskew.runs import read_run

    path, names = file_columns(source, columns, LIST_COLUMNS, RATING_COLUMNS)
    return read_run(path, **how, **names)


def read_item_file(source: Path | None) -> Any:
    """Read a list of items from FILE or FILE:item=sku; None where there is none."""
    from unskew.data.readers import read_items

    if source is None:
        return None
    path, names = file_columns(source, None, ("item",))
    return read_items(path, **names)


def relevance_of(
    liked: float | None,
    above: float | None,
    gain: str | None,
    loss: str | None,
    relevance: str | None,
) -> dict[str, Any]:
    """Return how ratings are taken, as the settings that `evaluate` takes."""
    from unskew.data.relevance import Relevance

    if relevance is not None:
        if any(x is not None for x in (liked, above, gain, loss)):
            raise SettingError("--relevance replaces --liked, --above, --gain and --loss")
        return {"relevance": Relevance.paper(relevance)}
    rules = {"gain": rule_of(gain) or "rating", "loss": rule_of(loss) or "levels"}
    return {"liked": liked, "above": above, **rules}


def named_runs(runs: Sequence[str], name_of: Callable[[str], str] | None = None) -> dict[str, str]:
    """Name each run after NAME=FILE or its file's stem; the files keep what follows a colon."""
    from unskew.runs import system_name

    named: dict[str, str] = {}
    for text in runs:
        name, path, columns = split_named_source(text)
        name = name or (name_of or system_name)(path)
        if name in named:
            raise SettingError(f"two runs are named {name!r}; name them with --run NAME=FILE")
        named[name] = f"{path}:{columns}" if columns else path
    return named


def rule_of(text: str | None) -> Any:
    """Read a gain or loss: a name, or a mapping such as 5=2,4=1."""
    if text is None or "=" not in text:
        return text
    try:
        pairs = [part.split("=") for part in text.split(",")]
        return {float(rating): float(value) for rating, value in pairs}
    except ValueError:
        raise SettingError(f"cannot read {text!r}; write a mapping as 5=2,4=1,3=0") from None


def load(folders: Sequence[Path]) -> Any:
    """Read saved scores: one folder, or several as folds."""
    from unskew.evaluation.scores import Scores

    several = [Scores.load(folder) for folder in folders]
    return several[0] if len(several) == 1 else several


def loaded(
    source: str,
    data_dir: Path | None,
    columns: str | None,
    duplicates: str,
    *,
    others: Sequence[str] = (),
    **settings: Any,
) -> Any:
    """Load a data set by its name (NAME:OPTION=VALUE), or a file (FILE:item=sku).

    Parameters
    ----------
    source
        What was given.
    data_dir
        The folder of named data sets.
    columns, duplicates
        For a file; a named data set refuses what it does not take.
    others
        Columns that other files of the command have.
    settings
        For a named data set, see `load`.
    """
    from unskew.data.catalog import load, read_name

    if duplicates != "error":
        settings["duplicates"] = duplicates
    meant = read_name(source)
    if meant is not None:
        takes_duplicates = duplicates == "error" or "duplicates" in meant[0].options
        if columns is not None or not takes_duplicates:
            name = "--columns" if columns is not None else "--duplicates"
            raise SettingError(f"{name} is for files, and {source} is a named data set")
        return load(source, data_dir=data_dir, **settings)
    path, names = file_columns(source, columns, RATING_COLUMNS, others)
    return load(Path(path), data_dir=data_dir, **settings, **names)
