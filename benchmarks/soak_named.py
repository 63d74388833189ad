"""Files of named data sets in the soak: a few rows each, and how plain Python reads them."""

from __future__ import annotations

import ast
import csv
import gzip
import io
import json
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from soak_inputs import (
    BLANK,
    CARRIAGE,
    Read,
    Rows,
    Subject,
    number,
    of_ratings,
    parquet_columns,
    table,
    twin_ratings,
)
from unskew.data.formats.catalog import load

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
    head, *rows = csv_table(path)
    return [dict(zip(head, row, strict=True)) for row in rows]


def csv_table(path: Path) -> list[list[str]]:
    """Return the rows of a CSV file, its header line first."""
    text = path.read_bytes().decode("utf-8-sig", "surrogateescape").replace("\r\n", "\n")
    text = text.replace("\r", CARRIAGE)  # within a line, as in `cells`
    rows = list(csv.reader(io.StringIO(text, newline=""), strict=True))
    while rows and not any(rows[-1]):
        rows.pop()
    if any(len(row) != len(rows[0]) for row in rows):
        raise ValueError("rows differ in width")
    return [[one.replace(CARRIAGE, "\r") for one in row] for row in rows]


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
        if not line.strip(BLANK):
            continue
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


KUAIRAND = "kuairand-pure/data/log_{}_pure.csv"
LOGS = {"standard_4_08_to_4_21": 0, "standard_4_22_to_5_08": 0, "random_4_22_to_5_08": 1}
"""Logs of KuaiRand, and whether they hold what was shown at random."""


def write_kuairand(folder: Path, rng: np.random.Generator) -> None:
    head = "user_id,video_id,date,hourmin,time_ms,is_click,is_like,long_view,is_rand\n"
    for part, flag in LOGS.items():
        text = "".join(
            f"{u},{i},20220408,400,{t}301,{int(r) % 2},0,1,{flag}\n" for u, i, r, t in numbered(rng)
        )
        put(folder, KUAIRAND.format(part), head + text)


def read_kuairand(folder: Path) -> Read:
    """Read both parts, with their times; -0 is 0, as in a column of whole numbers."""
    data = load("kuairand-pure", data_dir=folder)
    parts = (of_ratings(part) for part in (data.ratings, data.random))
    return Read([[(u, i, v + 0.0, t) for u, i, v, t in part] for part in parts])


def twin_kuairand(folder: Path, _: Read) -> Rows:
    """Read logs; only a time stamp may be missing, and without one a part has no times."""
    parts: dict[float, list[tuple[str, str, float, int | None]]] = {0.0: [], 1.0: []}
    for part, flag in LOGS.items():
        for row in csv_rows(folder / KUAIRAND.format(part)):
            time = int(np.round(number(row["time_ms"]) * 1e3)) if row["time_ms"] else None
            parts[number(row.get("is_rand", str(flag)))].append(
                (whole(row["user_id"]), whole(row["video_id"]), number(row["is_click"]) + 0.0, time)
            )
    return [largest(rows) for rows in parts.values()]


def largest(rows: list[tuple[str, str, float, int | None]]) -> Rows:
    """Return the largest value of each pair, and its first time."""
    rows = sorted(rows, key=lambda row: (row[3] is None, row[3] or 0))
    first = {(u, i): t for u, i, _, t in reversed(rows)}
    is_timed = all(row[3] is not None for row in rows)
    values = once([row[:3] for row in rows], max)
    return [(u, i, v, first[u, i] if is_timed else None) for u, i, v in values]


# Pools


EXTENSION = "ml-32m-ext/{}-ratings.csv"
INTEREST = ("Not interested", "Somewhat interested", "Interested", "Very interested",
            "Extremely interested")  # fmt: skip


def write_extension(folder: Path, rng: np.random.Generator) -> None:
    rows = table(rng, text_ids=False)
    text = "".join(",".join(row) + "\n" for row in rows)
    put(folder, EXTENSION.format("explicit"), f"userId,movieId,rating,timestamp\n{text}")
    head = "participant_id,dataset_id,movie_id,seen_status,familiarity,p1_check,p2_check,"
    head += "interest_level,rating,rank_p2,movielens_rating\n"
    answers = [
        f"9,{u},{i},{rng.choice(['t', 'f'])},{rng.choice(['', 'Seen', 'Never'])},"
        f"{rng.choice(['P1', '', '', '']) if n else ''},,{rng.choice(INTEREST)},{r},,\n"
        for n, (u, i, r, _) in enumerate(rows)
    ]
    put(folder, EXTENSION.format("p2"), head + "".join(answers))


def read_extension(folder: Path) -> Read:
    """Read the ratings, and the judgments of the pools with their tags."""
    data = load("ml-32m-ext", data_dir=folder)
    pool = data.truth.ratings
    tags = zip(pool.tags["seen"].to_list(), pool.tags["familiarity"].to_list(), strict=True)
    frame = pool.to_polars()
    rows = zip(frame["user"].to_list(), frame["item"].to_list(), pool.value.tolist(), strict=True)
    judged = [(str(u), str(i), v, *t) for (u, i, v), t in zip(rows, tags, strict=True)]
    return Read([of_ratings(data.ratings), sorted(judged, key=str)], data.ratings.notes[0])


def twin_extension(folder: Path, read: Read) -> Rows:
    """Read the same; movies that were shown again as a check leave."""
    observed = twin_ratings(EXTENSION.format("explicit"))(folder, read)
    judged = [
        (whole(r["dataset_id"]), whole(r["movie_id"]), float(INTEREST.index(r["interest_level"])),
         {"t": True, "f": False}[r["seen_status"]], r["familiarity"] or None)
        for r in csv_rows(folder / EXTENSION.format("p2"))
        if not (r["p1_check"] or r["p2_check"])
    ]  # fmt: skip
    return [observed, sorted(judged, key=str)]


# Yambda


YAMBDA = "yambda-50m/flat/50m/{}.parquet"
EVENT = {"uid": pl.UInt32, "timestamp": pl.UInt32, "item_id": pl.UInt32, "is_organic": pl.UInt8}
PLAYED = {"played_ratio_pct": pl.UInt16}


def write_yambda(folder: Path, rng: np.random.Generator) -> None:
    for kind in ("likes", "dislikes", "unlikes", "undislikes", "listens"):
        size = int(rng.integers(3, 15))
        columns = [rng.integers(1, high, size) for high in (4, 9, 6, 3, 99)]
        rows = [(u, 5 * t, i, flag - 1, p) for u, t, i, flag, p in zip(*columns, strict=True)]
        rows += [(9, 500, 9, 1, 80)] if kind in ("likes", "listens") else []
        schema = {**EVENT, **PLAYED}
        frame = pl.DataFrame(rows, schema=schema, orient="row").sort("uid", "timestamp")
        frame = frame if kind == "listens" else frame.drop(*PLAYED)
        path = folder / YAMBDA.format(kind)
        path.parent.mkdir(parents=True, exist_ok=True)
        frame.write_parquet(path, statistics=bool(rng.integers(2)))


def read_yambda(folder: Path) -> Read:
    """Read likes and dislikes, then listens, with times and tags."""
    parts = []
    for signal in ("explicit", "listens"):
        ratings = load("yambda-50m", data_dir=folder, signal=signal).ratings
        tags = (ratings.tags[name].to_list() for name in ("organic", "plays")
                if name in ratings.tags)  # fmt: skip
        frame = ratings.to_polars()
        columns = (frame["user"].to_list(), frame["item"].to_list(), ratings.value.tolist(),
                   ratings.time.tolist(), *tags)  # fmt: skip
        parts.append(sorted(zip(*columns, strict=True)))
    return Read(parts)


def twin_yambda(folder: Path, _: Read) -> Rows:
    """Go through the events one by one."""
    last = {kind: latest(folder, kind) for kind in ("likes", "dislikes", "unlikes", "undislikes")}
    stated = []
    for pair in {**last["likes"], **last["dislikes"]}:
        events = []
        for value, kind in enumerate(("dislikes", "likes")):
            time, organic = last[kind].get(pair, (-1, 0))
            if time > last[f"un{kind}"].get(pair, (-1, 0))[0]:
                events.append((time, organic, float(value)))
        if events and (len(events) == 1 or events[0][0] != events[1][0]):
            time, organic, score = max(events)
            stated.append((*pair, score, time * 10**6, organic == 1))
    return [sorted(stated), twin_listens(folder)]


def latest(folder: Path, kind: str) -> dict[tuple[int, int], tuple[int, int]]:
    """Return the last event of each pair, the organic one of two at once."""
    pairs: dict[tuple[int, int], tuple[int, int]] = {}
    for user, time, item, organic in events_of(folder, kind, [*EVENT]):
        pairs[user, item] = max(pairs.get((user, item), (-1, 0)), (time, organic))
    return pairs


def twin_listens(folder: Path) -> Rows:
    """Return the largest share that was played, the first event, and how many there are."""
    first: dict[tuple[int, int], tuple[int, int]] = {}
    played: dict[tuple[int, int], int] = {}
    plays: Counter[tuple[int, int]] = Counter()
    for user, time, item, organic, percent in events_of(folder, "listens", [*EVENT, *PLAYED]):
        pair = user, item
        plays[pair] += 1
        first[pair] = min(first.get(pair, (time, 1 - organic)), (time, 1 - organic))
        if percent is not None:
            played[pair] = max(played.get(pair, percent), percent)
    return sorted((*pair, float(percent), first[pair][0] * 10**6, first[pair][1] == 0, plays[pair])
                  for pair, percent in played.items())  # fmt: skip


def events_of(folder: Path, kind: str, names: list[str]) -> list[tuple[Any, ...]]:
    """Return events as other libraries read them; nothing of an event may be missing."""
    data = parquet_columns(folder / YAMBDA.format(kind))
    events = list(zip(*(data[name] for name in names), strict=True))
    if any(None in event[:4] or event[3] not in (0, 1) for event in events):
        raise ValueError("an event with something missing")
    return events


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
    Subject("kuairand-pure", write_kuairand, read_kuairand, twin_kuairand),
    Subject("ml-32m-ext", write_extension, read_extension, twin_extension),
    Subject("yambda-50m", write_yambda, read_yambda, twin_yambda),
)
