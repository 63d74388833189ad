"""Splits and interventions on disk: Parquet files and the card from which they can be re-made."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from unskew.arrays import Mask, frozen
from unskew.checks import checked, choose
from unskew.data.events import Events, read_events
from unskew.data.ratings import COUNT, WEIGHT, Ids, Ratings, under_one_numbering
from unskew.data.relevance import Relevance
from unskew.data.steps import Step
from unskew.engine.files import (
    digest_of_file,
    inner_path,
    local_path,
    reading,
    replacing_folder,
    unsealed,
    write_sealed,
    write_table,
)
from unskew.engine.system import versions
from unskew.errors import DataError, SettingError
from unskew.report.text import finite
from unskew.splits.counts import count_parts
from unskew.splits.given import FamiliarTraining, Forced, Given
from unskew.splits.interventions import Intervened
from unskew.splits.popularity import Flat, HeadRemoved, Uniform
from unskew.splits.random import LeaveOut, PerUser, Random
from unskew.splits.split import Split, Splitter
from unskew.splits.time.sessions import Sessions
from unskew.splits.time.temporal import Temporal, TemporalEvents
from unskew.splits.time.windows import ModelAges, Windows

PROTOCOLS: dict[str, type[Splitter]] = {
    kind.name: kind
    for kind in (
        Random,
        PerUser,
        LeaveOut,
        Temporal,
        TemporalEvents,
        Windows,
        ModelAges,
        Sessions,
        Uniform,
        Flat,
        HeadRemoved,
        Forced,
        FamiliarTraining,
        Given,
    )
}


def protocol(name: str, **settings: Any) -> Splitter:
    """Build a way to split from its name and settings, such as those of a card.

    Parameters
    ----------
    name
        One of `PROTOCOLS`.
    settings
        Its settings; a nested one is given as a mapping with its own `protocol`.

    Examples
    --------
    >>> from unskew.splits.saved import protocol
    >>> protocol("user", test=0.5)
    PerUser(test=0.5, rounding='floor', number=None, pick='random')
    """
    kind = PROTOCOLS[choose("protocol", name, PROTOCOLS)]
    allowed = [field.name for field in fields(kind)]
    for setting in settings:
        if setting not in allowed:
            raise SettingError(f"{name} has no setting {setting!r}; it has: {', '.join(allowed)}")
    return kind(**{key: _nested(value) for key, value in settings.items()})


def _nested(value: Any) -> Any:
    if isinstance(value, Mapping) and "protocol" in value:
        inner = dict(value)
        return protocol(inner.pop("protocol"), **inner)
    return value


FORMAT = 3
UNSEALED = 2
"""The format before files and card had digests; still read, as it is."""
CARD = "card.json"
FURTHER = "further_files"
"""Of a split on a card: files beside those of ratings that train or judge, and their rows."""
KNOWN, LOG, JUDGED = "known-", "events-", "judged"
"""How their names begin: what was met before a test, event logs; and the users who are judged."""


@checked
def save_splits(
    splitter: Splitter,
    ratings: Ratings | Events,
    folder: str | os.PathLike[str],
    seed: int = 0,
    *,
    liked: float | None = None,
    force: bool = False,
    more: Mapping[str, Any] | None = None,
) -> dict[str, Any]:
    """Split ratings into a folder and return its card.

    The folder gets `train.parquet`, `test.parquet` and further judgment sets (such as
    `validation.parquet`); what a split says beside that stands in `known-test.parquet` (pairs that
    were met before the test and are not trained on), `judged.parquet` (the users who are judged)
    and `events-test.parquet` (the events, for judging step by step). Where there are several
    splits, each has a folder of its own, such as `fold1`. The files appear when all are written.
    `card.json` holds every setting and fact; facts that all splits share stand at its top. One
    split at a time is in memory.

    Parameters
    ----------
    splitter
        The way to split.
    ratings
        What to split.
    folder
        Where to write; it must be new or empty.
    seed
        Same seed, same rows.
    liked
        Count liked ratings (this value and more) too.
    force
        Write into a folder that is not empty; what an older card there lists is removed first.
    more
        Further entries for the card, such as how the data was read.

    Returns
    -------
    dict
        What `card.json` holds.

    Examples
    --------
    >>> import os, tempfile, unskew as us
    >>> shop = us.world("shop", users=60, items=20, density=0.3, seed=3).ratings
    >>> folder = os.path.join(tempfile.mkdtemp(), "folds")
    >>> card = us.splits.save_splits(us.splits.Random(folds=2), shop, folder, seed=1)
    >>> sorted(os.listdir(folder)), card["settings"]["folds"], card["seed"]
    (['card.json', 'fold1', 'fold2'], 2, 1)
    """
    path = check_folder(folder, force)
    with replacing_folder(path) as part:
        card = _write_splits(splitter, ratings, part, seed, liked, more or {})
        _clear(path)  # now that everything is written
    return card


def _write_splits(
    splitter: Splitter,
    ratings: Ratings | Events,
    folder: Path,
    seed: int,
    liked: float | None,
    more: Mapping[str, Any],
) -> dict[str, Any]:
    entries: list[dict[str, Any]] = []
    digests: dict[str, str] = {}

    def write(frame: pl.DataFrame, subfolder: str, name: str) -> None:
        file = folder / subfolder / f"{name}.parquet"
        write_table(frame, file, "parquet")
        digests[file.relative_to(folder).as_posix()] = digest_of_file(file)

    for split in splitter.each(ratings, seed):
        subfolder = "." if split.label == splitter.title else split.label
        parts = {"train": split.train, "test": split.test, **split.judgments}
        more_files = _further_frames(split)
        counts = {f"{name}.parquet": frame.height for name, frame in more_files.items()}
        for name, rows in parts.items():
            if not re.fullmatch(r"[\w-]+", name) or name.startswith((KNOWN, LOG, JUDGED)):
                raise DataError(f"{name!r} cannot name a file: rename it, such as valid")
            write(rows.to_file_table(), subfolder, name)
        for name, frame in more_files.items():
            write(frame, subfolder, name)
        facts = dict(split.facts)
        if liked is not None:
            rule = Relevance(liked=liked)
            for name, rows in parts.items():
                facts[f"{name}_liked"] = int(np.count_nonzero(rule.is_liked(rows.value)))
        entries.append(
            {
                "label": split.label,
                "folder": subfolder,
                "files": {f"{name}.parquet": len(rows) for name, rows in parts.items()},
                **({FURTHER: counts} if counts else {}),
                "facts": facts,
                "audit": {key: finite(fact) for key, fact in count_parts(split).facts.items()},
            }
        )
    settings = splitter.describe()
    first, *others = (entry["facts"] for entry in entries)
    common = {
        key: fact
        for key, fact in first.items()
        if all(key in facts and facts[key] == fact for facts in others)
    }
    card = {
        "format": FORMAT,
        "protocol": settings.pop("protocol"),
        "settings": settings,
        "seed": int(seed),
        "liked": liked,
        "data": _data_of(ratings),
        **more,
        **common,
        "splits": entries,
        "digests": digests,
        "versions": versions(),
    }
    write_sealed(folder / CARD, card)
    return card


@checked
def load_splits(folder: str | os.PathLike[str]) -> list[Split]:
    """Read what `save_splits` wrote; DataError if any of it was changed since.

    Parameters
    ----------
    folder
        The folder that `save_splits` wrote.

    Examples
    --------
    >>> import os, tempfile, unskew as us
    >>> shop = us.world("shop", users=60, items=20, density=0.3, seed=3).ratings
    >>> folder = os.path.join(tempfile.mkdtemp(), "folds")
    >>> card = us.splits.save_splits(us.splits.Random(folds=2), shop, folder, seed=1)
    >>> us.splits.load_splits(folder)
    [Split(fold1: train 173, test 181), Split(fold2: train 181, test 173)]
    """
    path = Path(folder)
    if not (path / CARD).is_file():
        raise DataError(f"{path}: holds no {CARD}, so it is not a folder of a saved split")
    card = read_card(inner_path(path, CARD))
    check_digests(path, card.get("digests", {}), "split again")
    return list(_loaded(path, card))


def _loaded(path: Path, card: Mapping[str, Any]) -> Iterator[Split]:
    design = {"protocol": card["protocol"], **card["settings"], "seed": card["seed"]}
    steps = tuple(Step.from_card(step) for step in card["data"].get("steps", ()))
    for entry in card["splits"]:
        folder = inner_path(path, entry["folder"])
        files = {Path(file).stem: inner_path(folder, file)
                 for file in (*entry["files"], *entry.get(FURTHER, ()))}  # fmt: skip
        users, logs = files.pop(JUDGED, None), _of_kind(files, LOG)
        parts = {name: _read_ratings(file) for name, file in files.items()}
        # What was done before the split is known to all parts, as it was when they were made.
        parts = {name: replace(part, steps=steps) for name, part in parts.items()}
        events = [_read_log(file, parts["train"].implicit) for file in logs.values()]
        sets = under_one_numbering(*parts.values(), *events)
        parts = dict(zip(parts, sets, strict=False))
        train, test = parts.pop("train"), parts.pop("test")
        met_before = _of_kind(parts, KNOWN)
        yield Split(
            train,
            test,
            entry["label"],
            entry["facts"],
            design,
            judgments=parts,
            judged=None if users is None else _read_judged(users, train.users),
            known=met_before,
            logs=dict(zip(logs, sets[len(sets) - len(logs) :], strict=True)),
        )


def _of_kind(entries: dict[str, Any], kind: str) -> dict[str, Any]:
    """Take out the entries whose names begin so; return them by what comes after."""
    names = [name for name in entries if name.startswith(kind)]
    return {name.removeprefix(kind): entries.pop(name) for name in names}


def _further_frames(split: Split) -> dict[str, pl.DataFrame]:
    """Return what a split has beside ratings that train or judge, by the names of files."""
    frames = {f"{KNOWN}{name}": rows.to_file_table() for name, rows in split.known.items()}
    frames |= {f"{LOG}{name}": log.to_polars() for name, log in split.logs.items()}
    if split.judged is not None:
        users = split.train.users.raw(np.flatnonzero(split.judged).astype(np.int32))
        frames[JUDGED] = users.alias("user").to_frame()
    return frames


def _read_part(path: Path, *needs: str) -> pl.DataFrame:
    try:
        frame = pl.read_parquet(local_path(path), glob=False)
        frame.select(needs)
    except (OSError, pl.exceptions.PolarsError) as problem:
        raise DataError(f"{path}: not a part of a split ({problem})") from None
    return frame


def _read_ratings(path: Path) -> Ratings:
    """Read a part again, every further column as a tag."""
    columns = {column.name: column for column in _read_part(path, "user", "item")}
    user, item = columns.pop("user"), columns.pop("item")
    time = columns.pop("time", None)
    values = {name: columns.pop(name) for name in ("rating", COUNT, WEIGHT) if name in columns}
    stamps = None if time is None else time.dt.timestamp("us").to_numpy()
    read = Ratings.of(user, item, next(iter(values.values()), None), stamps, tags=columns)
    return replace(read, implicit="rating" not in values)


def _read_log(path: Path, implicit: bool) -> Events:
    """Read an event log again, every further column as a tag."""
    frame = _read_part(path)
    tags = [name for name in frame.columns if name not in ("user", "item", "value", "time")]
    feedback = "implicit" if implicit else "explicit"
    return read_events(frame, rating="value", tags=tags, feedback=feedback)


def _read_judged(path: Path, users: Ids) -> Mask:
    codes = users.codes(_read_part(path, "user")["user"])
    judged = np.zeros(len(users), np.bool_)
    judged[codes[codes >= 0]] = True
    return frozen(judged)


def read_card(path: str | os.PathLike[str]) -> dict[str, Any]:
    """Read the card of a split; DataError if it was changed since it was written."""
    return saved_card(
        Path(path),
        problem=f"{path}: this is not a card of a split",
        formats=(FORMAT, UNSEALED),
        needs=("splits", "settings"),
        advice="split again, or take the card that was written",
    )


def saved_card(
    path: Path, *, problem: str, formats: tuple[int, int], needs: Sequence[str] = (), advice: str
) -> dict[str, Any]:
    """Read a card of saved splits or target lists; DataError if it was changed.

    Parameters
    ----------
    path
        The card.
    problem
        What to say where it is no such card.
    formats
        The number of today's format, and of the one before cards had digests; it is still read.
    needs
        What must be in it.
    advice
        What to do where it was changed.
    """
    try:
        content = path.read_bytes()
        card: dict[str, Any] = json.loads(content.decode("utf-8"))
        number, *_ = (card[name] for name in ("format", *needs))
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise DataError(f"{problem} ({error})") from None
    current, before_digests = formats
    if number not in formats:
        raise DataError(f"{path}: written in format {number}, this version reads {current}")
    if number == before_digests and "digest" not in card:
        return card
    try:
        return unsealed(content, str(path))
    except ValueError as error:
        raise DataError(f"{error}; {advice}") from None


def check_digests(folder: Path, digests: Mapping[str, str], advice: str) -> None:
    """Refuse files that were changed since they were written."""
    for name, digest in digests.items():
        with reading(folder / name):
            if digest_of_file(inner_path(folder, name)) != digest:
                raise DataError(f"{folder / name}: changed since it was written; {advice}")


def from_card(
    card: Mapping[str, Any], ratings: Ratings | Events, test_ratings: Ratings | None = None
) -> Splitter:
    """Return the way to split that a card describes, for the same ratings.

    Parameters
    ----------
    card
        What `read_card` returns.
    ratings
        The ratings that were split; refused if they are others.
    test_ratings
        Ratings that a setting stands for (those of `forced`, or of `given` with two files).
    """
    _check_same("these ratings", card["data"]["fingerprint"], ratings.fingerprint)
    settings = dict(card["settings"])
    for key, value in settings.items():
        if isinstance(value, Mapping) and "fingerprint" in value:
            if test_ratings is None:
                raise SettingError(f"this card needs the {value['ratings']:,} test ratings too")
            _check_same("the test ratings", value["fingerprint"], test_ratings.fingerprint)
            settings[key] = test_ratings
    return protocol(card["protocol"], **settings)


def save_intervened(
    done: Intervened,
    folder: str | os.PathLike[str],
    *,
    sources: Mapping[str, Ratings],
    force: bool = False,
) -> dict[str, Any]:
    """Write `test.parquet` and `card.json` of an intervention and return the card.

    Parameters
    ----------
    done
        The result.
    folder
        Where to write; it must be new or empty.
    sources
        The ratings it was made from, by their role.
    force
        Write into a folder that is not empty.
    """
    path = check_folder(folder, force)
    frame = done.to_polars()
    card = {
        "format": FORMAT,
        **done.design,
        "data": {role: _data_of(rows) for role, rows in sources.items()},
        "facts": {key: finite(value) for key, value in done.facts.items()},
        "files": {"test.parquet": frame.height},
        "versions": versions(),
    }
    with replacing_folder(path) as part:
        write_table(frame, part / "test.parquet", "parquet")
        write_sealed(part / CARD, card)
        _clear(path)  # now that everything is written
    return card


def check_folder(folder: str | os.PathLike[str], force: bool) -> Path:
    """Return the folder if it can be written to: new, empty, or `force`."""
    path = Path(folder)
    if path.exists() and not path.is_dir():
        raise SettingError(f"{path}: is a file; give a folder")
    if not force and path.exists() and any(path.iterdir()):
        raise SettingError(f"{path}: is not empty; give a new folder, or use --force (force=True)")
    return path


def _clear(folder: Path) -> None:
    """Take away what an older card lists, the card first; nothing else is touched."""
    old = folder / CARD
    if not old.is_file():
        return
    try:
        card = json.loads(old.read_text(encoding="utf-8"))
        entries = card.get("splits", [{"folder": ".", "files": card.get("files", {})}])
        files = [
            folder / entry["folder"] / file
            for entry in entries
            for file in (*entry["files"], *entry.get(FURTHER, ()))
        ]
    except (ValueError, KeyError, TypeError, AttributeError):
        files = []  # not one of ours
    old.unlink()
    for file in files:
        if file.resolve().is_relative_to(folder.resolve()) and file.suffix == ".parquet":
            file.unlink(missing_ok=True)
            if file.parent != folder and file.parent.is_dir() and not any(file.parent.iterdir()):
                file.parent.rmdir()


def _data_of(data: Ratings | Events) -> dict[str, Any]:
    """Return what tells these ratings from others."""
    sizes = {"ratings": len(data), "users": len(data.users), "items": len(data.items)}
    if isinstance(data, Events):
        sizes = {"events": len(data)}
    steps = {"steps": [step.describe() for step in data.steps]} if data.steps else {}
    return {**sizes, "fingerprint": data.fingerprint, "notes": list(data.notes), **steps}


def _check_same(what: str, expected: str, fingerprint: str) -> None:
    if expected != fingerprint:
        raise DataError(
            f"{what} are not those of the card (fingerprint {fingerprint}, the card says "
            f"{expected})"
        )
