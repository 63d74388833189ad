"""Saved formats in the soak: whatever byte changes, the same result comes back, or an error."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

import unskew as us
from soak_inputs import Read, Subject, cells, number, of_ratings, table
from unskew.engine.files import read_sealed, write_sealed
from unskew.engine.store import Store
from unskew.errors import DataError
from unskew.evaluation.on_disk.files import load_means, scan_values
from unskew.labels.plan_annotation import plan_annotation
from unskew.labels.read_annotation import load_plan, read_labels
from unskew.recommend.saved_models import array_digest, load_model, save_model
from unskew.splits.saved import load_splits, save_splits
from unskew.targets.designs import AllItems
from unskew.targets.saved import read_targets, save_targets


def ratings(rng: np.random.Generator) -> Any:
    """Draw ratings."""
    rows = table(rng)
    columns = zip(*rows, strict=True)
    user, item, value, _ = (list(one) for one in columns)
    return us.read_ratings({"user": user, "item": item, "rating": [float(v) for v in value]})


def runs(data: Any, rng: np.random.Generator) -> dict[str, pl.DataFrame]:
    """Draw lists of two systems."""
    frame = data.to_polars().select("user", "item")
    return {
        name: frame.with_columns(score=pl.Series(rng.permutation(frame.height) / 4))
        for name in ("mine", "theirs")
    }


def plain(value: Any) -> Any:
    """Return a card or a table as text that shows every value."""
    return json.dumps(value, sort_keys=True, default=str)


# Scores in memory and on disk


def write_scores(folder: Path, rng: np.random.Generator) -> None:
    data = ratings(rng)
    us.evaluate(data, runs(data, rng), ["P@2", "nDCG", "Coverage@2"], liked=3).save(
        folder / "scores"
    )


def read_scores(folder: Path) -> Read:
    scores = us.Scores.load(folder / "scores")
    values = [(name, one.values.tolist(), one.depth.tolist(), sorted(one.aggregates.items()))
              for name, one in scores.systems.items()]  # fmt: skip
    return Read((values, scores.lists.rows(), scores.user_ids.values.to_list(), scores.order,
                 scores.users, scores.notes, plain(dict(scores.card))))  # fmt: skip


def write_on_disk(folder: Path, rng: np.random.Generator) -> None:
    data = ratings(rng)
    source = folder / "source"
    source.mkdir()
    data.to_polars().write_parquet(source / "test.parquet")
    for name, frame in runs(data, rng).items():
        frame.write_parquet(source / f"{name}.parquet")
    files = {name: source / f"{name}.parquet" for name in ("mine", "theirs")}
    us.evaluation.evaluate_files(source / "test.parquet", files, ["P@2", "RR"], liked=3,
                                 output=folder / "scores", workers=1)  # fmt: skip


def read_on_disk(folder: Path) -> Read:
    means = load_means(folder / "scores")
    users = scan_values(folder / "scores").collect()
    return Read((plain(means.to_dict()), users.sort(users.columns).rows()))


# Splits, targets, models


def write_split(folder: Path, rng: np.random.Generator) -> None:
    data = ratings(rng)
    ways = (us.splits.Random(test=0.4), us.splits.Random(folds=2), us.splits.PerUser(test=0.5))
    save_splits(ways[int(rng.integers(3))], data, folder / "split", int(rng.integers(99)))


def read_split(folder: Path) -> Read:
    splits = load_splits(folder / "split")
    return Read([
        (one.label, of_ratings(one.train), of_ratings(one.test), plain(one.design),
         plain(one.facts))
        for one in splits
    ])  # fmt: skip


def write_targets(folder: Path, _rng: np.random.Generator) -> None:
    (split,) = us.splits.Random(test=0.4).split(fixed(), 3)
    save_targets(AllItems().lists(split, liked=3), folder / "targets")


def fixed() -> Any:
    """Return the ratings that targets are of: they are not part of what is saved."""
    return ratings(np.random.default_rng(8))


def read_saved_targets(folder: Path) -> Read:
    (split,) = us.splits.Random(test=0.4).split(fixed(), 3)
    lists = read_targets(folder / "targets", split, liked=3)
    frame = lists.to_polars(0, len(lists.size))
    return Read((frame.rows(), plain(dict(lists.design)), lists.notes))


def write_model(folder: Path, rng: np.random.Generator) -> None:
    data = ratings(rng)
    ways = (us.recommend.Popularity(), us.recommend.ItemKNN(k=3), us.recommend.WRMF(factors=2))
    way = ways[int(rng.integers(3))]
    save_model(way.fit(data, us_rng()), folder / "some.model", data, way)


def us_rng() -> np.random.Generator:
    """Return the draws of a fit."""
    return np.random.default_rng(1)


def read_model(folder: Path) -> Read:
    model = load_model(folder / "some.model")
    users = np.arange(2, dtype=np.int32)
    return Read((type(model).__name__, array_digest(np.asarray(model.score(users)))))


# The store


KEYS = ("ab" + "0" * 38, "cd" + "1" * 38)


def write_store(folder: Path, rng: np.random.Generator) -> None:
    store = Store.open(folder / "store")
    for key in KEYS:
        frame = pl.DataFrame({"user": rng.integers(0, 9, 12), "P@2": rng.random(12)})
        store.put(key, frame, {"metric": "P@2", "seed": int(rng.integers(99))})
    data = pl.DataFrame({"user": rng.integers(0, 9, 20), "value": rng.random(20)})
    store.put_frames("data1", {"ratings": data}, {"notes": ["x"], "scale": [1, 5]})
    store.put_failure(KEYS[0], "Traceback: it failed")


def read_store(folder: Path) -> Read:
    """Read all that a store holds; what it misses it must name."""
    store = Store.open(folder / "store")
    results = [(table.rows(), plain(card)) for table, card in map(store.get, KEYS)]
    frames, facts = store.frames("data1")
    if store.failures() != {KEYS[0]: "Traceback: it failed"}:
        # A damaged report is left out: its task is tried again, which verify says.
        raise DataError("; ".join(store.verify()))
    return Read((results, [f.rows() for f in frames.values()], plain(facts), store.verify()))


# Annotation


def write_annotation(folder: Path, rng: np.random.Generator) -> None:
    pairs = [(f"u{u}", f"i{i}") for u in range(6) for i in range(6)]
    frame = pl.DataFrame(pairs, ["user", "item"], orient="row")
    lists = {name: frame.with_columns(score=pl.Series(rng.permutation(36))) for name in "ab"}
    plan = plan_annotation(lists, "P@2", budget=6, seed=int(rng.integers(9)))
    home = plan.save(folder / "judged")
    frame = pl.read_csv(home / "to-judge.csv", infer_schema=False)
    labels = [str(one) if one < 2 else None for one in rng.integers(0, 3, frame.height)]
    frame.with_columns(label=pl.Series(labels, dtype=pl.String)).write_csv(home / "to-judge.csv")


def read_annotation_plan(folder: Path) -> Read:
    plan = load_plan(folder / "judged")
    return Read((plain(plan.card()), plan.user.to_list(), plan.item.to_list(),
                 plan.coefficient.tolist(), plan.order.tolist()))  # fmt: skip


def read_annotation_labels(folder: Path) -> Read:
    plan = load_plan(folder / "judged")
    labels, _ = read_labels(plan, folder / "judged" / "to-judge.csv")
    return Read(labels_of(plan, labels))


def labels_of(plan: Any, labels: Any) -> list[tuple[str, str, str]]:
    """Return user, item and label of each judged pair."""
    rows = []
    for at, place in enumerate(plan.order):
        value = "?" if labels.unclear[at] else labels.value[at]
        if value == "?" or not np.isnan(value):
            text = "?" if value == "?" else f"{value:g}"
            rows.append((str(plan.user[int(place)]), str(plan.item[int(place)]), text))
    return sorted(rows)


def twin_labels(folder: Path, _: Read) -> Any:
    """Read the labels with the csv module."""
    for mark in (",", ";", "|", "\t", " "):
        label = {",": "comma-separated", "\t": "tab-separated"}.get(mark, f"'{mark}'-separated")
        head, *rows = cells(folder / "judged" / "to-judge.csv", f"to-judge.csv: {label}")
        names = [re.sub(r"[\s_-]", "", cell).lower() for cell in head]
        if {"user", "item", "label"} <= set(names):
            at = [names.index(name) for name in ("user", "item", "label")]
            given = {tuple(row[n] for n in at) for row in rows}
            return sorted((u, i, x if x == "?" else f"{number(x):g}") for u, i, x in given if x)
    raise ValueError("no header")


# Sealed text


def write_text(folder: Path, rng: np.random.Generator) -> None:
    write_sealed(folder / "sealed.json", {"text": "é" * 40, "numbers": rng.random(5).tolist()})


def read_text(folder: Path) -> Read:
    try:
        return Read(plain(read_sealed(folder / "sealed.json")))
    except ValueError as problem:  # its callers make their own error of it
        raise DataError(str(problem)) from None


SAVED = (*(
    Subject(name, write, read, kind="saved")
    for name, write, read in (
        ("scores", write_scores, read_scores),
        ("split", write_split, read_split),
        ("target lists", write_targets, read_saved_targets),
        ("model", write_model, read_model),
        ("store of results", write_store, read_store),
        ("sealed text", write_text, read_text),
    )),
    Subject("scores of files on disk", write_on_disk, read_on_disk, kind="saved",
            changed=("scores/*.*", "scores/users/*")),
    Subject("annotation plan", write_annotation, read_annotation_plan, kind="saved",
            changed=("judged/card.json", "judged/pairs.parquet")),
    Subject("annotation labels", write_annotation, read_annotation_labels, twin_labels,
            changed=("judged/to-judge.csv",)),
)  # fmt: skip
