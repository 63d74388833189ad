"""Files of known formats that `read_ratings` recognises by their content, and plain readings."""

from __future__ import annotations

import ast
import gzip
import json
import re
from collections.abc import Callable
from datetime import datetime
from pathlib import Path
from typing import Any

import numpy as np

from soak_inputs import (
    BLANK,
    Read,
    Rows,
    Subject,
    micros,
    number,
    read_csv_ratings,
    table,
    twin_ratings,
)
from soak_named import lines_of, numbered, whole

GOODREADS = ("user_id", "book_id", "rating", "date_added")
AMAZON = ("reviewerID", "asin", "rating", "unixReviewTime")


def put_json(file: str, names: tuple[str, ...], array: bool = False, packed: bool = False) -> Any:
    """Return a function that writes a record per rating."""

    def write(folder: Path, rng: np.random.Generator) -> None:
        records = [record(row, names, rng) for row in table(rng)]
        rng.shuffle(records)
        text = json.dumps(records, indent=1) if array else "\n".join(map(json.dumps, records))
        content = f"{text}\n".encode()
        (folder / file).write_bytes(gzip.compress(content, mtime=0) if packed else content)

    return write


def record(
    row: tuple[str, ...], names: tuple[str, ...], rng: np.random.Generator
) -> dict[str, Any]:
    """Return an object with fields that are not needed too."""
    user, item, rating, time = row
    ids = [int(one) if one.isdigit() else one for one in (user, item)]
    stamp: Any = int(time)
    if names is GOODREADS:
        stamp = datetime.fromtimestamp(int(time)).strftime("%a %b %d %H:%M:%S -0800 %Y")
    values = dict(zip(names, (*ids, float(rating), stamp), strict=True))
    if rng.integers(2):
        values |= {"style": {"Color:": "Red"}, "vote": "3", "verified": bool(rng.integers(2))}
    return values


def objects(path: Path) -> list[dict[str, Any]]:
    """Return the objects of a file with Python's own reader, each strictly."""
    content = path.read_bytes()
    content = gzip.decompress(content) if content[:2] == b"\x1f\x8b" else content
    text = content.decode("utf-8-sig")
    if text.lstrip().startswith("["):
        return strict(text)
    lines = [line for line in text.split("\n") if line.strip(BLANK + "\x1c\x1d\x1e\x1f")]
    read = ast.literal_eval if re.match(r"\s*\{\s*u?'", lines[0]) else strict
    return [read(line.strip()) for line in lines]


def strict(text: str) -> Any:
    """Read JSON without NaN and without fields that occur twice."""

    def once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        if len(dict(pairs)) < len(pairs):
            raise ValueError("a field occurs twice")
        return dict(pairs)

    def refuse(name: str) -> float:
        raise ValueError(name)

    return json.loads(text, object_pairs_hook=once, parse_constant=refuse)


def twin_json(file: str) -> Callable[[Path, Read], Rows]:
    """Return a function that reads the same with Python's json module."""

    def twin(folder: Path, read: Read) -> Rows:
        if ": JSON" not in read.note:
            return twin_ratings(file)(folder, read)
        taken = dict(re.findall(r"(user|item|rating|time) = ([^,(]+?)(?=, | \(|$)", read.note))
        is_goodreads = {"user_id", "book_id", "is_read", "rating"}
        rows = []
        for values in objects(folder / file):
            if is_goodreads <= set(values) and values["rating"] == 0:
                continue
            user, item = (as_text(values[taken[role]]) for role in ("user", "item"))
            rating = float(values[taken["rating"]]) if "rating" in taken else 1.0
            time = moment(values[taken["time"]], read.note) if "time" in taken else None
            rows.append((user, item, rating, time))
        return sorted(rows)

    return twin


def as_text(value: Any) -> str:
    """Return an id as it is printed."""
    if value is None or isinstance(value, dict | list):
        raise ValueError(value)
    if isinstance(value, float) and value == int(value):
        return str(int(value))
    return str(value).lower() if isinstance(value, bool) else str(value)


def moment(value: Any, note: str) -> int:
    """Return a time in microseconds."""
    if "Fri Nov 10" in note:
        return round(datetime.strptime(value, "%a %b %d %H:%M:%S %z %Y").timestamp() * 1e6)
    return micros(str(value), note)


# Netflix and Jester


def write_netflix(folder: Path, rng: np.random.Generator) -> None:
    """Write lines `movie:`, and ratings below them."""
    lines: dict[str, list[str]] = {}
    for user, item, rating, _ in numbered(rng):
        lines.setdefault(item, []).append(f"{user},{rating},200{rng.integers(1, 6)}-05-17\n")
    text = "".join(f"{item}:\n{''.join(rows)}" for item, rows in lines.items())
    (folder / "ratings.txt").write_text(text)


def twin_netflix(folder: Path, read: Read) -> Rows:
    """Read lines one after the other."""
    if "Netflix Prize" not in read.note:
        return twin_ratings("ratings.txt")(folder, read)
    rows, item = [], None
    for line in lines_of(folder / "ratings.txt"):
        if re.fullmatch(r"[^,]*:\s*", line):
            item = whole(line.strip()[:-1])
            continue
        user, rating, date = line.split(",")
        if item is None:
            raise ValueError("no movie")
        rows.append((whole(user), item, float(whole(rating)), micros(date, "")))
    return sorted(rows)


def write_jester(folder: Path, rng: np.random.Generator) -> None:
    """Write a matrix."""
    shape = (4, 24)
    cells = np.where(rng.random(shape) < 0.6, rng.integers(-9, 9, shape) + 0.25, 99)
    text = "".join(f"{(row != 99).sum()},{','.join(map(str, row))}\n" for row in cells)
    (folder / "matrix.csv").write_text(text)


def twin_jester(folder: Path, read: Read) -> Rows:
    """Read the cells that are not 99."""
    if "Jester" not in read.note:
        return twin_ratings("matrix.csv")(folder, read)
    lines = [line for line in lines_of(folder / "matrix.csv") if line.strip()]
    marks = [mark for mark in (",", ";", "\t") if len(lines[0].split(mark)) > 20]
    rows = [line.split(marks[0] if marks else None) for line in lines]
    if any(len(row) != len(rows[0]) for row in rows):
        raise ValueError("rows differ in width")
    return sorted(
        (str(u), str(i), number(cell.strip()), None)
        for u, row in enumerate(rows, 1)
        for i, cell in enumerate(row[1:], 1)
        if number(cell.strip()) != 99
    )


RECOGNISED = (
    Subject("ratings, JSON lines", put_json("ratings.jsonl", AMAZON),
            read_csv_ratings("ratings.jsonl"), twin_json("ratings.jsonl")),
    Subject("ratings, JSON lines without their ending", put_json("ratings", GOODREADS),
            read_csv_ratings("ratings"), twin_json("ratings")),
    Subject("ratings, JSON lines, gzip", put_json("ratings.json.gz", AMAZON, packed=True),
            read_csv_ratings("ratings.json.gz"), twin_json("ratings.json.gz"), packed=True),
    Subject("ratings, JSON array", put_json("ratings.json", AMAZON, array=True),
            read_csv_ratings("ratings.json"), twin_json("ratings.json")),
    Subject("ratings, Netflix by content", write_netflix, read_csv_ratings("ratings.txt"),
            twin_netflix),
    Subject("ratings, Jester by content", write_jester, read_csv_ratings("matrix.csv"),
            twin_jester),
)  # fmt: skip
