"""Files of named data sets in the soak: a few rows each, and how plain Python reads them."""

from __future__ import annotations

import ast
import csv
import gzip
import io
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from soak_inputs import BLANK, Read, Rows, Subject, number, table
from unskew.data.catalog import load

Pair = tuple[str, str, float]


def read_named(name: str, **options: Any) -> Callable[[Path], Read]:
    """Return a function that reads a named data set: its ratings and its random part."""

    def read(folder: Path) -> Read:
        data = load(name, data_dir=folder, **options)
        parts = [data.ratings, *([data.random] if data.random is not None else [])]
        return Read([rows_of(part) for part in parts])

    return read


def rows_of(ratings: Any) -> list[Pair]:
    """Return user, item and value of each rating."""
    frame = ratings.to_polars()
    rows = zip(
        frame["user"].to_list(), frame["item"].to_list(), ratings.value.tolist(), strict=True
    )
    return sorted((str(u), str(i), v) for u, i, v in rows)


def put(folder: Path, name: str, text: str | bytes) -> None:
    """Write a file and the folders above it."""
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(text if isinstance(text, bytes) else text.encode())


def lines_of(path: Path) -> list[str]:
    """Return the lines of a text file, which must be UTF-8; empty ones at the end are left out."""
    content = path.read_bytes()
    content = gzip.decompress(content) if content[:2] == b"\x1f\x8b" else content
    lines = content.decode("utf-8-sig").split("\n")
    while lines and not lines[-1].strip():
        lines.pop()
    return [line.removesuffix("\r") for line in lines]


def split_rows(path: Path, mark: str | None, width: int) -> list[list[str]]:
    """Return the cells of each line, all of one width."""
    rows = [[cell.strip(BLANK) for cell in line.split(mark)] for line in lines_of(path)]
    if any(len(row) != width for row in rows):
        raise ValueError("rows differ in width")
    return rows


def csv_rows(path: Path) -> list[dict[str, str]]:
    """Return the rows of a CSV file with a header line."""
    text = io.StringIO(path.read_bytes().decode("utf-8-sig"), newline="")
    head, *rows = csv.reader(text, strict=True)
    while rows and not any(rows[-1]):
        rows.pop()
    if any(len(row) != len(head) for row in rows):
        raise ValueError("rows differ in width")
    return [dict(zip(head, row, strict=True)) for row in rows]


def numbered(rng: np.random.Generator) -> list[tuple[str, str, str, str]]:
    """Draw rows with whole numbers throughout."""
    return [(u, i, str(int(float(r))), t) for u, i, r, t in table(rng, text_ids=False)]


def once(rows: list[Pair], keep: Callable[[float, float], float]) -> list[Pair]:
    """Merge the values of each pair."""
    pairs: dict[tuple[str, str], float] = {}
    for user, item, value in rows:
        pairs[user, item] = keep(pairs[user, item], value) if (user, item) in pairs else value
    return sorted((u, i, v) for (u, i), v in pairs.items())


def whole(text: str) -> str:
    """Return an id that is a whole number as it is printed."""
    if not text.isascii() or "_" in text:
        raise ValueError(text)
    return str(int(text))


# MovieLens, Yahoo, CM100k


def write_ml_100k(folder: Path, rng: np.random.Generator) -> None:
    put(folder, "ml-100k/u.data", "".join("\t".join(row) + "\n" for row in numbered(rng)))


def twin_ml_100k(folder: Path, _: Read) -> Rows:
    rows = split_rows(folder / "ml-100k/u.data", "\t", 4)
    return [sorted((u, i, number(r)) for u, i, r, _ in rows)]


def write_ml_1m(folder: Path, rng: np.random.Generator) -> None:
    put(folder, "ml-1m/ratings.dat", "".join("::".join(row) + "\n" for row in numbered(rng)))


def twin_ml_1m(folder: Path, _: Read) -> Rows:
    rows = split_rows(folder / "ml-1m/ratings.dat", "::", 4)
    return [sorted((u, i, number(r)) for u, i, r, _ in rows)]


YAHOO = "yahoo-r3/ydata-ymusic-rating-study-v1_0-{}.txt"


def write_yahoo(folder: Path, rng: np.random.Generator) -> None:
    for part in ("train", "test"):
        text = "".join("\t".join(row[:3]) + "\n" for row in numbered(rng))
        put(folder, YAHOO.format(part), text)


def twin_yahoo(folder: Path, _: Read) -> Rows:
    both = (split_rows(folder / YAHOO.format(part), "\t", 3) for part in ("train", "test"))
    return [sorted((u, i, number(r)) for u, i, r in rows) for rows in both]


def write_cm100k(folder: Path, rng: np.random.Generator) -> None:
    rows = ("\t".join((*row[:3], str(rng.integers(2)))) for row in numbered(rng))
    put(folder, "cm100k/ratings.txt", "".join(f"{row}\n" for row in rows))


def twin_cm100k(folder: Path, _: Read) -> Rows:
    rows = split_rows(folder / "cm100k/ratings.txt", "\t", 4)
    return [sorted((whole(u), whole(i), float(whole(r))) for u, i, r, _ in rows)]


# Netflix, matrices


def write_netflix(folder: Path, rng: np.random.Generator) -> None:
    lines: dict[str, list[str]] = {}
    for user, item, rating, _ in numbered(rng):
        lines.setdefault(item, []).append(
            f"{user},{rating},200{rng.integers(1, 6)}-05-1{user[-1]}\n"
        )
    text = "".join(f"{item}:\n{''.join(rows)}" for item, rows in lines.items())
    put(folder, "netflix/combined_data_1.txt", text)


def twin_netflix(folder: Path, _: Read) -> Rows:
    rows, item = [], None
    for line in lines_of(folder / "netflix/combined_data_1.txt"):
        if line.endswith(":") and "," not in line:
            item = whole(line[:-1])
            continue
        user, rating, _date = line.split(",")
        if item is None:
            raise ValueError("no movie")
        rows.append((whole(user), item, float(whole(rating))))
    return [sorted(rows)]


def write_coat(folder: Path, rng: np.random.Generator) -> None:
    for part in ("train", "test"):
        cells = rng.integers(0, 6, (5, 4)) * (rng.random((5, 4)) < 0.7)
        cells[0, 0] = 3
        text = "".join(" ".join(map(str, row)) + "\n" for row in cells)
        put(folder, f"coat/{part}.ascii", text)


def twin_coat(folder: Path, _: Read) -> Rows:
    parts = []
    for part in ("train", "test"):
        rows = [line.split() for line in lines_of(folder / f"coat/{part}.ascii") if line.strip()]
        parts.append(sorted(
            (str(u), str(i), number(cell))
            for u, row in enumerate(rows, 1) for i, cell in enumerate(row, 1) if number(cell) != 0
        ))  # fmt: skip
    return parts


def write_jester(folder: Path, rng: np.random.Generator) -> None:
    cells = np.where(rng.random((5, 4)) < 0.6, rng.integers(-9, 9, (5, 4)) + 0.25, 99)
    text = "".join(f"{(row != 99).sum()},{','.join(map(str, row))}\n" for row in cells)
    put(folder, "jester/jester-data-1.csv", text)


def twin_jester(folder: Path, _: Read) -> Rows:
    rows = [
        line.split(",") for line in lines_of(folder / "jester/jester-data-1.csv") if line.strip()
    ]
    return [sorted(
        (str(u), str(i), number(cell))
        for u, row in enumerate(rows, 1) for i, cell in enumerate(row[1:], 1) if number(cell) != 99
    )]  # fmt: skip


# Reviews and plays


def write_librarything(folder: Path, rng: np.random.Generator) -> None:
    put(
        folder,
        "librarything/UI2.txt",
        "".join(f"{u} {i} {r} tag\n" for u, i, r, _ in numbered(rng)),
    )


def twin_librarything(folder: Path, _: Read) -> Rows:
    content = (folder / "librarything/UI2.txt").read_bytes().decode("utf-8", "replace")
    lines = content.replace("\r\n", "\n").replace("\r", "\n").split("\n")
    rows = [line.split(maxsplit=3)[:3] for line in (lines[:-1] if not lines[-1] else lines)]
    unique = list(dict.fromkeys((whole(u), whole(i), int(r) / 2) for u, i, r in rows))
    return [once(unique, lambda _, new: new)]


KEYS = ("review/profileName", "beer/beerId", "review/overall", "review/time")


def write_beer(folder: Path, rng: np.random.Generator) -> None:
    records = (json.dumps(dict(zip(KEYS, row, strict=True))) for row in numbered(rng))
    text = "".join(f"{record}\n" for record in records)
    put(folder, "beeradvocate/beeradvocate.json.gz", gzip.compress(text.encode(), mtime=0))


def twin_beer(folder: Path, _: Read) -> Rows:
    """Read reviews; those without a user, an item or a rating leave, as the notes say."""
    content = gzip.decompress((folder / "beeradvocate/beeradvocate.json.gz").read_bytes())
    rows: list[tuple[str, str, float, float | None]] = []
    for line in io.TextIOWrapper(io.BytesIO(content), encoding="utf-8", errors="replace"):
        if not line.strip().startswith("{"):
            if line.strip():
                raise ValueError("a line that is no record")
            continue
        try:
            record = json.loads(line)
        except ValueError:
            record = ast.literal_eval(line.strip())
        cells = [record.get(key) for key in KEYS]
        user, item, *numbers = ("" if one is None else str(one) for one in cells)
        rating, time = (float_or_none(one) for one in numbers)
        if user and item and rating is not None:
            rows.append((user, item, rating, time))
    rows.sort(key=lambda row: (row[3] is not None, row[3] or 0.0))
    return [once([row[:3] for row in rows], lambda _, new: new)]


def float_or_none(text: str) -> float | None:
    """Return a number, or None where there is none."""
    try:
        return number(text)
    except ValueError:
        return None


LASTFM = "lastfm-1k/userid-timestamp-artid-artname-traid-traname.tsv"


def write_lastfm(folder: Path, rng: np.random.Generator) -> None:
    rows = (f"user_{u}\t2009-05-0{rng.integers(1, 9)}T09:17:36Z\tmb-{i}\tThe {i}\t\tSong\n"
            for u, i, _, _ in numbered(rng) for _ in range(int(rng.integers(1, 3))))  # fmt: skip
    put(folder, LASTFM, "".join(rows))


def twin_lastfm(folder: Path, _: Read) -> Rows:
    lines = [line.split("\t") for line in lines_of(folder / LASTFM)]
    if any(len(row) != 6 for row in lines):
        raise ValueError("rows differ in width")
    named = [(row[0], row[2] or row[3], 1.0) for row in lines]
    return [once([row for row in named if row[1]], lambda old, new: old + new)]


# Logs


def write_kuairec(folder: Path, rng: np.random.Generator) -> None:
    head = "user_id,video_id,play_duration,video_duration,time,date,timestamp,watch_ratio\n"
    for part in ("big", "small"):
        text = "".join(f"{u},{i},9,8,x,20200705,{t}.5,{r}.25\n" for u, i, r, t in numbered(rng))
        put(folder, f"kuairec/data/{part}_matrix.csv", head + text)


def twin_kuairec(folder: Path, _: Read) -> Rows:
    parts = []
    for part in ("big", "small"):
        rows = csv_rows(folder / f"kuairec/data/{part}_matrix.csv")
        parts.append(sorted(
            (whole(r["user_id"]), whole(r["video_id"]), number(r["watch_ratio"])) for r in rows
        ))  # fmt: skip
    return parts


NAMED = (
    Subject("ml-100k", write_ml_100k, read_named("ml-100k"), twin_ml_100k),
    Subject("ml-1m", write_ml_1m, read_named("ml-1m"), twin_ml_1m),
    Subject("yahoo-r3", write_yahoo, read_named("yahoo-r3"), twin_yahoo),
    Subject("cm100k", write_cm100k, read_named("cm100k"), twin_cm100k),
    Subject("netflix", write_netflix, read_named("netflix"), twin_netflix),
    Subject("coat", write_coat, read_named("coat"), twin_coat),
    Subject("jester", write_jester, read_named("jester"), twin_jester),
    Subject("librarything", write_librarything, read_named("librarything"), twin_librarything),
    Subject("beeradvocate", write_beer, read_named("beeradvocate"), twin_beer, packed=True),
    Subject("lastfm-1k", write_lastfm, read_named("lastfm-1k"), twin_lastfm),
    Subject("kuairec", write_kuairec, read_named("kuairec", duplicates="error"), twin_kuairec),
)
