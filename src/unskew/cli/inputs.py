"""What commands read: ratings, ranked lists, saved scores, plans, stores."""

from __future__ import annotations

import difflib
import re
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from unskew.cli import outputs
from unskew.cli.files import LIST_COLUMNS, RATING_COLUMNS, file_columns, split_named_source
from unskew.cli.options import (
    ComputeOptions,
    FileOptions,
    JudgedOptions,
    NamedFileOptions,
    RelevanceOptions,
    ScoredOptions,
)
from unskew.cli.progress import progress
from unskew.errors import DataError, SettingError, is_address

if TYPE_CHECKING:
    from unskew.data.dataset import Dataset
    from unskew.data.filters import Filter
    from unskew.data.ratings import Ratings
    from unskew.engine.store import Store
    from unskew.evaluation.scores import Scores
    from unskew.judging.judged import Judged
    from unskew.judging.occasions import RatingLog
    from unskew.recommend.model import Algorithm
    from unskew.run_tables import ListKeys

Class = TypeVar("Class")


# Text that options hold


def between_commas(text: str | None) -> list[str] | None:
    """Read names between commas; None where nothing is given."""
    return None if text is None else [part.strip() for part in text.split(",") if part.strip()]


def metric_names(metric: Sequence[str] | None) -> list[str] | None:
    """Return the metrics asked for, None for none: several may stand between commas."""
    parts = [part for text in metric or [] for part in re.split(r",(?![^()]*\))", text)]
    return [part.strip() for part in parts if part.strip()] or None


def built(build: Callable[..., Class], texts: Sequence[str] | None) -> list[Class]:
    """Build what is named by NAME or NAME:SETTING=VALUE,SETTING=VALUE."""
    from unskew.recommend.registry import read_setting

    named = [text.partition(":") for text in texts or []]
    return [
        build(name.strip(), **dict(map(read_setting, between_commas(settings) or [])))
        for name, _, settings in named
    ]


def systems(texts: Sequence[str] | None) -> list[Algorithm] | None:
    """Read recommenders with their settings; None where nothing is given."""
    from unskew.recommend.registry import algorithm

    return built(algorithm, texts) or None


def assignments(texts: Sequence[str] | None, form: str) -> list[tuple[str, str]]:
    """Read NAME=VALUE; refuse other texts with the form they should have.

    Parameters
    ----------
    texts
        What was given.
    form
        The option, and how it is written: `--rail: write NAME=MARGIN, such as coverage=10%`.
    """
    pairs = []
    for text in texts or []:
        name, equals, value = (part.strip() for part in text.partition("="))
        if not (name and equals and value):
            raise SettingError(f"{form}, got {text!r}")
        pairs.append((name, value))
    return pairs


def given(**options: Any) -> dict[str, Any]:
    """Return the options that were given: not None, and not False."""
    return {
        name: value for name, value in options.items() if value is not None and value is not False
    }


def relevance_settings(options: RelevanceOptions) -> dict[str, Any]:
    """Return which ratings are liked and what they are worth, as `evaluate` takes it."""
    from unskew.data.relevance import DEFAULT_GAIN, DEFAULT_LOSS

    if options.relevance is not None:
        if any(x is not None for x in (options.liked, options.above, options.gain, options.loss)):
            raise SettingError("--relevance replaces --liked, --above, --gain and --loss")
        return {"relevance": options.relevance}
    return {
        "liked": options.liked,
        "above": options.above,
        "gain": _rule(options.gain) or DEFAULT_GAIN,
        "loss": _rule(options.loss) or DEFAULT_LOSS,
    }


def _rule(text: str | None) -> Any:
    """Read a gain or loss: a name, or a mapping such as 5=2,4=1."""
    if text is None or "=" not in text:
        return text
    try:
        pairs = [part.split("=") for part in text.split(",")]
        return {float(rating): float(value) for rating, value in pairs}
    except ValueError:
        raise SettingError(f"cannot read {text!r}; write a mapping as 5=2,4=1,3=0") from None


def threshold(liked: float | None, data: Any) -> float:
    """Return the smallest liked rating: as given, as the data set or its scale says."""
    from unskew.data.relevance import check_likes, relevance_for

    rule, notes = relevance_for(data.ratings, liked, usual=data.liked)
    check_likes(data.ratings, rule)
    for line in notes:
        outputs.note(line)
    return rule.threshold


# Ratings


def is_named(source: str | Path) -> bool:
    """Tell whether a data set of the catalogue is meant: NAME or NAME:OPTION=VALUE."""
    if Path(source).is_file():
        return False
    from unskew.data.formats.catalog import read_name

    return read_name(str(source)) is not None


def check_data_dir(data_dir: Path | None, *sources: str | Path | None) -> None:
    """Reject the folder of named data sets where none is named."""
    if data_dir is not None and not any(source and is_named(source) for source in sources):
        raise SettingError("--data-dir is for named data sets, but none is named: leave it out")


def load_data(
    source: str | Path,
    files: FileOptions,
    *,
    other_columns: Sequence[str] = (),
    **settings: Any,
) -> Dataset:
    """Load a data set by its name (NAME:OPTION=VALUE), or a file (FILE:item=sku).

    Parameters
    ----------
    source
        What was given.
    files
        How files are read; a named data set refuses what it does not take.
    other_columns
        Columns that other files of the command have.
    settings
        For a named data set, see `load`.
    """
    from unskew.data.formats.catalog import load, read_name

    data_dir = files.data_dir if isinstance(files, NamedFileOptions) else None
    settings |= given(duplicates=files.duplicates)
    named = read_name(str(source))
    if named is None:
        settings |= given(feedback=files.feedback, **chosen_events(files))
        path, columns = file_columns(source, files.columns, RATING_COLUMNS, other_columns)
        _check_name(str(path))
        file = path if is_address(path) else Path(path)
        return load(file, data_dir=data_dir, **settings, **columns)
    takes_duplicates = files.duplicates is None or "duplicates" in named[0].options
    duplicates = None if takes_duplicates else files.duplicates
    options = {"columns": files.columns, "feedback": files.feedback, "duplicates": duplicates}
    for name in given(**options, **chosen_events(files)):
        raise SettingError(f"--{name} is for files, but {source} is a named data set")
    return load(str(source), data_dir=data_dir, **settings)


def _check_name(path: str) -> None:
    """Refuse what is no file and nearly the name of a data set."""
    from unskew.data.formats.entries import DATASETS

    near = difflib.get_close_matches(path.lower(), DATASETS, n=1, cutoff=0.75)
    if near and not Path(path).exists():
        raise DataError(
            f"{path}: no such file, and no data set of that name; did you mean {near[0]}?"
        )


def read_rating_file(
    source: str | Path, files: FileOptions, *, other_columns: Sequence[str] = (), **more: Any
) -> Ratings:
    """Read ratings from FILE, FILE:item=sku or a named data set; `more` is for `read_ratings`."""
    from unskew.data.read.ratings_files import read_ratings

    if is_named(source):
        return load_data(source, files).ratings
    path, columns = file_columns(source, files.columns, RATING_COLUMNS, other_columns)
    settings = {"duplicates": files.duplicates, "feedback": files.feedback, **chosen_events(files)}
    return read_ratings(path, **columns, **{**settings, **more})


def chosen_events(files: FileOptions) -> dict[str, Any]:
    """Return which kinds of events count, and how much, as `read_ratings` takes it."""
    chosen = [kind for text in files.events or [] for kind in between_commas(text) or []]
    return {"events": chosen or None, "weights": _weights(files.weights)}


def _weights(text: str | None) -> dict[str, float] | None:
    """Read view=1,purchase=5."""
    if text is None:
        return None
    pairs = [part.rpartition("=") for part in between_commas(text) or []]
    try:
        weights = {kind.strip(): float(number) for kind, _, number in pairs}
    except ValueError:
        weights = {}
    if not weights or "" in weights:
        form = "--weights: write KIND=NUMBER,… such as view=1,purchase=5"
        raise SettingError(f"{form}, got {text!r}")
    return weights


def read_log(source: str, files: NamedFileOptions) -> Any:
    """Read an event log, in which a pair may occur any number of times."""
    from unskew.data.events import read_events

    if is_named(source):
        return read_events(read_rating_file(source, files))
    if files.duplicates is not None:
        raise SettingError("--duplicates is for ratings: an event log keeps every event")
    path, columns = file_columns(source, files.columns, RATING_COLUMNS)
    feedback = files.feedback or "implicit"
    return read_events(path, feedback=feedback, **chosen_events(files), **columns)


def read_filters(texts: Sequence[str] | None) -> list[Filter]:
    """Read filters: NAME, or NAME:SETTING=VALUE,SETTING=VALUE."""
    from unskew.data.filters import filter_of

    return built(filter_of, texts)


def read_random_file(
    source: str | Path | None, files: FileOptions, *, other_columns: Sequence[str] = ()
) -> Ratings | None:
    """Read ratings of randomly chosen items: a file, or that part of a named data set."""
    from unskew.data.formats.catalog import read_name

    if source is None:
        return None
    named = read_name(str(source))
    if named is None:
        return read_rating_file(source, files, other_columns=other_columns)
    data = load_data(source, files)
    if data.random is None and not named[0].is_all_random:
        raise SettingError(f"{source} has no ratings of randomly chosen items")
    return data.ratings if data.random is None else data.random


def read_item_file(source: str | None) -> Any:
    """Read a list of items from FILE or FILE:item=sku; None where there is none."""
    from unskew.data.read.ratings_files import read_items

    if source is None:
        return None
    path, columns = file_columns(source, None, ("item",))
    return read_items(path, **columns)


# Ranked lists and judgments


def named_runs(runs: Sequence[str], name_of: Callable[[str], str] | None = None) -> dict[str, str]:
    """Name each run after NAME=FILE or its file's stem; the files keep what follows a colon."""
    from unskew.runs import system_name

    named: dict[str, str] = {}
    for text in runs:
        name, path, columns = split_named_source(text)
        name = name or (name_of or system_name)(path)
        if name in named:
            raise SettingError(f"two runs are named {name!r}; give one another name: NAME=FILE")
        named[name] = f"{path}:{columns}" if columns else path
    return named


def read_run_file(
    source: str | Path,
    columns: str | None,
    read: Callable[..., Any] | None = None,
    **settings: Any,
) -> Any:
    """Read ranked lists from FILE or FILE:item=sku by `read_run`, or by another function."""
    from unskew.runs import read_run

    path, names = file_columns(source, columns, LIST_COLUMNS, RATING_COLUMNS)
    return (read or read_run)(path, **settings, **names)


def read_judged(
    judgments: str | None,
    runs: Sequence[str] | None,
    train: str | None,
    files: FileOptions,
    read_lists: Callable[..., Any] | None = None,
    **run_settings: Any,
) -> dict[str, Any]:
    """Read test ratings, ranked lists and training ratings.

    Lists are read by `read_run`, or by another function, with these settings. Kinds of events are
    chosen where a file has them.
    """
    from unskew.data.read.ratings_files import read_parts

    if judgments is None or not runs:
        raise SettingError("give --judgments and --run")
    settings = {"keep_scores": False} if read_lists is None else {"read": read_lists}
    lists = {
        name: read_run_file(source, files.columns, **settings, **run_settings)
        for name, source in named_runs(runs).items()
    }
    all_keys = [getattr(run, "keys", None) for run in lists.values()]
    keys = next((keys for keys in all_keys if keys is not None), None)
    read: Any = partial(read_rating_file, other_columns=LIST_COLUMNS)
    readers = {"judgments": partial(read, judgments, files)}
    if keys is not None:
        readers["judgments"] = partial(read_log_file, judgments, files, keys)
    if train is not None:
        readers["train"] = partial(read, train, files)
    return {"runs": lists, "train": None, **read_parts(readers)}


def read_log_file(source: str, files: FileOptions, keys: ListKeys, **more: Any) -> RatingLog:
    """Read test ratings for lists that are each evaluated with a part of them."""
    from unskew.judging.occasions import RatingLog

    if is_named(source):
        return RatingLog.of_ratings(load_data(source, files).ratings, keys)
    path, columns = file_columns(source, files.columns, RATING_COLUMNS, LIST_COLUMNS)
    settings = {"feedback": files.feedback, **chosen_events(files), **more}
    return RatingLog.of_file(path, keys, files.duplicates, **columns, **settings)


def judge_files(
    options: JudgedOptions,
    seed: int,
    *,
    items: str | None = None,
    targets: str | None = None,
    unranked: str | None = None,
    **run_settings: Any,
) -> Judged:
    """Read ranked lists and what judges them, and lay them over one numbering.

    Parameters
    ----------
    options
        The files, and how ratings are taken.
    seed
        For random ties.
    items, targets, unranked
        The catalogue, what was ranked, and what becomes of items in no list.
    run_settings
        How lists are read, see `read_run`.
    """
    from unskew.data.relevance import check_likes
    from unskew.evaluation.evaluate import check_dislikes, labelled
    from unskew.judging.judge import judge

    rules = relevance_settings(options.relevance)
    order: dict[str, Any] = {"ties": options.ties, "seed": seed}
    files = read_judged(
        options.judgments, options.run, options.train, options.files, **order, **run_settings
    )
    rules |= {"items": read_item_file(items), "targets": targets, "unranked": unranked}
    judged = judge(**files, depth=options.depth, **order, **rules)
    check_likes(judged.tests, judged.relevance)
    names = metric_names(options.metric)
    check_dislikes(labelled(names).values() if names else (), judged)
    return judged


def read_for_conventions(
    options: JudgedOptions, seed: int, items: str | None = None, **run_settings: Any
) -> dict[str, Any]:
    """Read lists with scores and duplicates, and what judges them, as conventions need them."""
    from unskew.conventions.laying import read_lists

    settings = {"ties": options.ties, "seed": seed, "depth": options.depth, **run_settings}
    files = read_judged(
        options.judgments, options.run, options.train, options.files, read_lists, **settings
    )
    rules = relevance_settings(options.relevance)
    return {**files, "items": read_item_file(items), "seed": seed, **rules}


def is_saved(options: ScoredOptions) -> bool:
    """Tell whether saved scores are meant; reject both, and neither."""
    judged, scores = options.judged, options.scores
    if scores and (judged.judgments is not None or judged.run):
        raise SettingError("give --scores, or --judgments and --run: not both")
    if not scores and (judged.judgments is None or not judged.run):
        raise SettingError("give --judgments and --run, or --scores with a saved folder")
    return bool(scores)


def read_scores(folders: Sequence[Path]) -> Scores | list[Scores]:
    """Read saved scores: one folder, or several as folds."""
    from unskew.evaluation.scores import Scores

    folds = [Scores.load(folder) for folder in folders]
    return folds[0] if len(folds) == 1 else folds


def scores_of(
    options: ScoredOptions,
    compute: ComputeOptions,
    metrics: Sequence[Any],
    quiet: bool,
    judged: Judged | None = None,
) -> Scores | list[Scores]:
    """Return saved scores, or those of ranked lists by the metrics asked for, else by these.

    Parameters
    ----------
    options
        Ranked lists and what judges them, or saved scores.
    compute
        How scores are computed.
    metrics
        By which metrics, where none are asked for.
    quiet
        Whether no progress is shown.
    judged
        The lists, where they have been judged.
    """
    from unskew.evaluation.evaluate import evaluate

    if judged is None:
        if is_saved(options):
            return read_scores(options.scores or [])
        judged = judge_files(options.judged, compute.seed)
    metric_list = metric_names(options.judged.metric) or metrics
    settings = {"threads": compute.threads, **vars(options.average)}
    with progress("judging", quiet) as move:
        return evaluate(judged, metric_list, progress=move, **settings)


# Plans and stores


def read_plan_and_data(plan: Path, data: str | None) -> tuple[Any, Any]:
    """Read a plan and its ratings, or the ratings given instead."""
    from unskew.data.read.ratings_files import read_ratings
    from unskew.experiment.execution import data_of
    from unskew.experiment.plan_files import read_plan

    plan_of_file, source = read_plan(plan)
    if data is not None and not is_named(data):
        more = {key: value for key, value in source.items() if key != "file"}
        path, columns = file_columns(data, None, RATING_COLUMNS)
        return plan_of_file, read_ratings(path, **{**more, **columns})
    return plan_of_file, data_of(source if data is None else {"file": str(data)}, plan.parent)


def open_store(folder: Path) -> Store:
    """Open a store of results."""
    from unskew.engine.store import MARK, Store

    if not (folder / MARK).exists():
        raise SettingError(f"{folder} is not a store: name the folder given to unskew run --store")
    return Store.open(folder)
