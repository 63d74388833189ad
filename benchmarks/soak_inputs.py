"""Input files of the soak, and how plain Python reads the same bytes.

A *subject* writes a small valid file, reads it with unskew, and reads it with a twin: Python's csv
module, `str.split`, pyarrow or tomllib, told only which columns and which separator unskew says
it took (its notes). Rows are compared as text and numbers, whatever their order.
"""

from __future__ import annotations

import csv
import gzip
import io
import re
import tomllib
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq

import unskew as us
from unskew.data.events import read_events
from unskew.data.read.ratings_files import read_items

Rows = Any


@dataclass(frozen=True)
class Subject:
    """A kind of file: how it is written, read, and read by plain means."""

    name: str
    write: Callable[[Path, np.random.Generator], None]
    """Write the file or files into an empty folder."""
    read: Callable[[Path], Rows]
    twin: Callable[[Path, Rows], Rows] | None = None
    """Read the same bytes plainly; None: only what was written may be read (saved formats)."""
    packed: bool = False
    """Whether its files are gzipped, so that what is inside is changed too."""
    kind: str = "input"
    changed: tuple[str, ...] = ("**/*",)
    """Which of its files are changed."""


@dataclass(frozen=True)
class Read:
    """What was read, and the sentence that says from which columns."""

    rows: Rows
    note: str = ""
    places: str = ""
    """The note that numbers the columns of a file without a header line."""


def same(one: Rows, other: Rows) -> bool:
    """Tell whether two results are equal; NaN equals NaN."""
    return repr(one) == repr(other)


# Random tables


def table(
    rng: np.random.Generator, text_ids: bool | None = None
) -> list[tuple[str, str, str, str]]:
    """Draw rows of user, item, rating and time as text: enough of them to be split."""
    text_ids = bool(rng.integers(2)) if text_ids is None else text_ids
    pairs: list[tuple[int, int]] = []
    while len(pairs) < 6:
        users, items = int(rng.integers(2, 9)), int(rng.integers(3, 12))
        pairs = [(u, i) for u in range(users) for i in range(items) if rng.random() < 0.6]

    def name(kind: str, n: int) -> str:
        return f"{kind}{n} é" if text_ids else str(n + 1)

    scale = [1, 2, 3.5, 4, 5]
    start = int(rng.integers(10**9, 16 * 10**8))
    return [
        (name("u", u), name("i", i), f"{scale[int(rng.integers(5))]:g}",
         str(start + int(rng.integers(10**6))))
        for u, i in pairs
    ]  # fmt: skip


def text_of(rows: Sequence[Sequence[str]], head: Sequence[str] | None, mark: str) -> bytes:
    """Return the text of a table."""
    out = io.StringIO()
    if mark == "::":
        out.write("".join("::".join(row) + "\n" for row in ([head] if head else []) + [*rows]))
    else:
        writer = csv.writer(out, delimiter=mark, lineterminator="\n")
        writer.writerows(([head] if head else []) + [*rows])
    return out.getvalue().encode()


def put_table(
    file: str, mark: str, head: bool, columns: int = 4, packed: bool = False, **more: Any
) -> Callable[[Path, np.random.Generator], None]:
    """Return a function that writes a random table."""

    def write(folder: Path, rng: np.random.Generator) -> None:
        rows = [row[:columns] for row in table(rng, **more)]
        content = text_of(
            rows, ("user", "item", "rating", "time")[:columns] if head else None, mark
        )
        (folder / file).write_bytes(gzip.compress(content, mtime=0) if packed else content)

    return write


# Plain reading of text


CARRIAGE = "\ue000"
"""Stands for a carriage return within a line, which the csv module would end a row at."""
BLANK = " \t\n\r\x0b\x0c\x85\xa0\u1680\u2028\u2029\u202f\u205f\u3000" + "".join(
    map(chr, range(0x2000, 0x200B))
)
"""What Unicode calls white space; `str.strip` takes away some control characters too."""


def cells(path: Path, note: str) -> list[list[str]]:
    """Return the rows of a text file, split as the note says; ValueError if it cannot be read.

    A line ends with a line feed, as in RFC 4180; white space around a cell does not count, and a
    carriage return is white space.
    """
    content = path.read_bytes()
    if content[:2] == b"\x1f\x8b":
        content = gzip.decompress(content)
    text = content.decode("utf-8").removeprefix("\ufeff").replace("\r\n", "\n")
    if "::-separated" in note:
        rows = [line.split("::") for line in text.split("\n")]
    elif re.search(r": (trec|TREC|whitespace-separated)", note):
        rows = [re.sub(r"[ \t]+", " ", line.strip(" \t\r")).split(" ") for line in text.split("\n")]
    else:
        marked = re.search(r": '(.|\\t)'-separated", note)
        mark = "," if "comma-separated" in note else "\t" if "tab-separated" in note else marked[1]
        if "several tabs as one" in note:
            text = "\n".join(re.sub(r"\t+", "\t", line.strip("\t")) for line in text.split("\n"))
        lines = io.StringIO(text.replace("\r", CARRIAGE), newline="")
        rows = list(csv.reader(lines, delimiter=mark, strict=True))
    rows = [[cell.replace(CARRIAGE, "\r").strip(BLANK) for cell in row] for row in rows]
    while rows and not any(rows[-1]):
        rows.pop()
    return rows


def named(path: Path, note: str, roles: Sequence[str], numbers: str = "") -> list[dict[str, str]]:
    """Return the cells that hold each role in each row, in the columns that the notes name."""
    rows = cells(path, note)
    pattern = "(?:, )?".join(rf"(?:(?P<{role}>{role} = .*?))?" for role in roles)
    taken = re.search(rf"; {pattern}$", note, re.DOTALL).groupdict()
    columns = {
        role: re.sub(
            r" \([^()]*( since 1970|UTC|dates|time)[^()]*\)$", "", found.partition(" = ")[2]
        )
        for role, found in taken.items()
        if found
    }
    if "without header" in note:
        head = [f"column_{at}" for at in range(len(rows[0]))]
        for at, role in re.findall(r"(\d+) the (\w+)", numbers):
            head[int(at)] = role
        if not numbers:  # lists
            head = [*columns.values(), f"column_{len(columns)}"][: len(rows[0])]
        while len(head) > 2 and not any(
            row[len(head) - 1] for row in rows if len(row) == len(head)
        ):
            head.pop()  # a separator at the end of each line
            rows = [row[:-1] if row[-1:] == [""] else row for row in rows]
    else:
        head, rows = [plain(cell) for cell in rows[0]], rows[1:]
        columns = {role: plain(name) for role, name in columns.items()}
    if any(len(row) != len(head) for row in rows):
        raise ValueError("rows differ in width")
    places = {role: head.index(name) for role, name in columns.items()}
    return [{role: row[at] for role, at in places.items()} for row in rows]


def plain(name: str) -> str:
    """Return a name without the blanks around it."""
    return name.strip(BLANK)


def number(text: str) -> float:
    """Read a number as a file writes it: no underscores, no digits of other scripts."""
    if not text.isascii() or "_" in text:
        raise ValueError(text)
    if re.fullmatch(r"[+-]?\d+,\d+", text):
        text = text.replace(",", ".")
    return float(text)


def of_ratings(ratings: Any) -> Rows:
    """Return rows as text and numbers, in an order of their own."""
    frame = ratings.to_polars()
    value = ratings.value.tolist()
    times = [None] * len(value) if ratings.time is None else ratings.time.tolist()
    ids = zip(frame["user"].to_list(), frame["item"].to_list(), value, times, strict=True)
    return sorted((str(u), str(i), v, t) for u, i, v, t in ids)


def read_csv_ratings(file: str, **settings: Any) -> Callable[[Path], Read]:
    """Return a function that reads ratings."""

    def read(folder: Path) -> Read:
        ratings = us.read_ratings(folder / file, **settings)
        places = next((note for note in ratings.notes if "no header line" in note), "")
        return Read(of_ratings(ratings), ratings.notes[0], places)

    return read


def twin_ratings(file: str) -> Callable[[Path, Read], Rows]:
    """Return a function that reads the same ratings with Python's csv module."""

    def twin(folder: Path, read: Read) -> Rows:
        rows = named(folder / file, read.note, ("user", "item", "rating", "time"), read.places)
        return sorted(
            (r["user"], r["item"], number(r["rating"]) if "rating" in r else 1.0,
             micros(r["time"], read.note) if "time" in r else None)
            for r in rows
        )  # fmt: skip

    return twin


def micros(text: str, note: str) -> int:
    """Return a time stamp in microseconds, in the unit that the note states."""
    unit = re.search(r"(\w+) since 1970", note)
    if unit is None:
        moment = datetime.fromisoformat(text)
        moment = moment if moment.tzinfo else moment.replace(tzinfo=UTC)
        return round(moment.timestamp() * 1e6)
    factor = {"seconds": 1e6, "milliseconds": 1e3, "microseconds": 1.0, "nanoseconds": 1e-3}
    return int(np.round(number(text) * factor[unit[1]]))


# Event logs


def read_log_of_events(folder: Path) -> Read:
    """Read an event log."""
    log = read_events(folder / "log.csv")
    frame = log.to_polars()
    rows = zip(frame["user"].to_list(), frame["item"].to_list(), log.value.tolist(),
               log.time.tolist(), strict=True)  # fmt: skip
    return Read(sorted((str(u), str(i), v, t) for u, i, v, t in rows), log.notes[0])


def twin_events(folder: Path, read: Read) -> Rows:
    """Read an event log plainly."""
    note = read.note.replace("value = ", "rating = ")
    rows = named(folder / "log.csv", note, ("user", "item", "time", "rating"))
    return sorted(
        (r["user"], r["item"], number(r["rating"]) if "rating" in r else 1.0,
         micros(r["time"], note))
        for r in rows
    )  # fmt: skip


# TREC files


def write_qrels(folder: Path, rng: np.random.Generator) -> None:
    """Write judgments as trec_eval takes them."""
    rows = [f"{u.replace(' ', '')} 0 {i.replace(' ', '')} {int(float(r)) - 2}"
            for u, i, r, _ in table(rng)]  # fmt: skip
    (folder / "test.qrels").write_text("\n".join(rows) + "\n", encoding="utf-8")


def twin_qrels(folder: Path, read: Read) -> Rows:
    """Read judgments by splitting lines."""
    rows = cells(folder / "test.qrels", read.note)
    if any(len(row) != 4 for row in rows):
        raise ValueError("rows differ in width")
    return sorted((u, i, number(grade), None) for u, _, i, grade in rows)


def write_run(folder: Path, rng: np.random.Generator) -> None:
    """Write a TREC run."""
    rows = table(rng)
    score = rng.permutation(len(rows)) / 8
    lines = [f"{u.replace(' ', '')} Q0 {i.replace(' ', '')} {n} {s:g} tag"
             for n, ((u, i, *_), s) in enumerate(zip(rows, score, strict=True), 1)]  # fmt: skip
    (folder / "mine.run").write_text("\n".join(lines) + "\n", encoding="utf-8")


def write_ranks(folder: Path, rng: np.random.Generator) -> None:
    """Write ranked lists as CSV."""
    place: Counter[str] = Counter()
    lines = ["user,item,rank"]
    for user, item, *_ in table(rng):
        place[user] += 1
        lines.append(f"{user},{item},{place[user]}")
    (folder / "mine.csv").write_text("\n".join(lines) + "\n", encoding="utf-8")


def of_run(file: str) -> Callable[[Path], Read]:
    """Return a function that reads lists: each user's items in order."""

    def read(folder: Path) -> Read:
        run = us.read_run(folder / file)
        lists: dict[str, list[str]] = {}
        for user, item in run.to_polars().select("user", "item").iter_rows():
            lists.setdefault(str(user), []).append(str(item))
        return Read(sorted(lists.items()), run.notes[0])

    return read


def twin_run(folder: Path, read: Read) -> Rows:
    """Order the lines of a TREC run as trec_eval does: by score, then by name, both falling."""
    rows = cells(folder / "mine.run", read.note)
    if any(len(row) != 6 for row in rows):
        raise ValueError("rows differ in width")
    lists: dict[str, list[tuple[np.float32, bytes, str]]] = {}
    for user, _, item, _, score, _ in rows:
        with np.errstate(over="ignore"):
            lists.setdefault(user, []).append((np.float32(number(score)), item.encode(), item))
    return sorted(
        (u, [one[2] for one in sorted(lines, reverse=True)]) for u, lines in lists.items()
    )


def twin_ranks(folder: Path, read: Read) -> Rows:
    """Order the lines of a CSV file by their rank, or as they stand."""
    rows = named(folder / "mine.csv", read.note, ("user", "item", "rank", "score"))
    lists: dict[str, list[tuple[float, str]]] = {}
    for at, row in enumerate(rows):
        key = (
            number(row["rank"])
            if "rank" in row
            else -number(row["score"])
            if "score" in row
            else at
        )
        lists.setdefault(row["user"], []).append((key, row["item"]))
    ordered = ((u, sorted(lines, key=lambda one: one[0])) for u, lines in lists.items())
    return sorted((u, [item for _, item in lines]) for u, lines in ordered)


# Parquet


def write_parquet(folder: Path, rng: np.random.Generator) -> None:
    """Write ratings as a Parquet file."""
    user, item, value, _ = zip(*table(rng), strict=True)
    frame = pl.DataFrame({"user": user, "item": item, "rating": [float(one) for one in value]})
    frame.write_parquet(folder / "ratings.parquet", statistics=bool(rng.integers(2)))


def parquet_columns(path: Path) -> dict[str, list[Any]]:
    """Read a file with Arrow's own reader, or with duckdb where that one refuses it."""
    try:
        return pq.read_table(path).to_pydict()
    except (OSError, pa.ArrowException):
        return duckdb.connect().read_parquet(str(path)).to_arrow_table().to_pydict()


def twin_parquet(folder: Path, _: Read) -> Rows:
    """Read the same file with other libraries.

    Parquet files as they come have no checksum: a changed value is what the file says.
    """
    data = parquet_columns(folder / "ratings.parquet")
    names = list(data)
    user, item = (data[next(n for n in names if n.lower() == what)] for what in ("user", "item"))
    value = data.get("rating", [1.0] * len(user))
    return sorted(
        (str(u), str(i), float(v), None) for u, i, v in zip(user, item, value, strict=True)
    )


# Other tables


def write_items(folder: Path, rng: np.random.Generator) -> None:
    """Write a catalogue of items."""
    items = sorted({row[1] for row in table(rng)})
    (folder / "items.csv").write_text("item\n" + "\n".join(items) + "\n", encoding="utf-8")


def read_catalogue(folder: Path) -> Read:
    """Read a catalogue of items, whose first line is the name of the column."""
    return Read(sorted(map(str, read_items(folder / "items.csv", item="item"))))


def twin_items(folder: Path, _: Read) -> Rows:
    """Read the lines of a catalogue."""
    rows = cells(folder / "items.csv", "items.csv: comma-separated")
    if any(len(row) > 1 for row in rows):  # another separator, and the column called item
        for mark in (",", ";", "|", " "):
            label = {",": "comma-separated"}.get(mark, f"'{mark}'-separated")
            rows = cells(folder / "items.csv", f"items.csv: {label}")
            if "item" in rows[0]:
                return sorted({row[rows[0].index("item")] for row in rows[1:]})
    has_header = not re.fullmatch(r"[-+.\deE]+", rows[0][0])
    return sorted({row[0] for row in rows[has_header:]})


# Plans


PLAN = """seed = {seed}
metrics = ["P@{k}", "nDCG@10"]
users = "with-test"
[data]
file = "ratings.csv"
[relevance]
liked = {liked}
[[split]]
protocol = "random"
test = 0.2
[[targets]]
design = "all-items"
[[algorithm]]
name = "user-knn"
k = 20
[[algorithm]]
name = "popularity"
"""


def write_plan(folder: Path, rng: np.random.Generator) -> None:
    """Write a plan."""
    text = PLAN.format(seed=rng.integers(1, 99), k=rng.integers(1, 30), liked=rng.integers(2, 6))
    (folder / "plan.toml").write_text(text)


def read_plan_file(folder: Path) -> Read:
    """Read a plan: what it says of seed, metrics, users and relevance, and its numbers of parts."""
    plan, data = us.read_plan(folder / "plan.toml")
    return Read(
        (int(plan.seed), [str(one) for one in plan.metrics], plan.users,
         float(plan.relevance.liked), sorted(data.items()), len(plan.split), len(plan.targets),
         len(plan.algorithms))
    )  # fmt: skip


def twin_plan(folder: Path, read: Read) -> Rows:
    """Take the same from the TOML file as Python reads it, where the file names it."""
    content = tomllib.loads((folder / "plan.toml").read_bytes().decode())
    mine = list(read.rows)
    metrics = content.get("metrics", mine[1])
    metrics = [metrics] if isinstance(metrics, str) else metrics
    liked = content.get("relevance", {})
    liked = liked.get("liked", mine[3]) if isinstance(liked, dict) else mine[3]
    parts = [content.get(name, [0] * size) for name, size in
             (("split", mine[5]), ("targets", mine[6]), ("algorithm", mine[7]))]  # fmt: skip
    sizes = [1 if isinstance(one, dict) else len(one) for one in parts]
    data = sorted(content.get("data", {}).items())
    return (int(content.get("seed", mine[0])), [str(one) for one in metrics],
            content.get("users", mine[2]), float(liked), data, *sizes)  # fmt: skip


INPUTS = (
    Subject("ratings, CSV", put_table("ratings.csv", ",", head=True),
            read_csv_ratings("ratings.csv"), twin_ratings("ratings.csv")),
    Subject("ratings, CSV without header", put_table("ratings.csv", ",", head=False, columns=3,
                                                     text_ids=False),
            read_csv_ratings("ratings.csv"), twin_ratings("ratings.csv")),
    Subject("ratings, TSV", put_table("ratings.tsv", "\t", head=True),
            read_csv_ratings("ratings.tsv"), twin_ratings("ratings.tsv")),
    Subject("ratings, semicolons", put_table("ratings.csv", ";", head=True, columns=3),
            read_csv_ratings("ratings.csv"), twin_ratings("ratings.csv")),
    Subject("ratings, ::", put_table("ratings.dat", "::", head=True),
            read_csv_ratings("ratings.dat"), twin_ratings("ratings.dat")),
    Subject("ratings, tabs without header, with times",
            put_table("u.data", "\t", head=False, text_ids=False),
            read_csv_ratings("u.data"), twin_ratings("u.data")),
    Subject("ratings, gzip", put_table("ratings.csv.gz", ",", head=True, packed=True),
            read_csv_ratings("ratings.csv.gz"), twin_ratings("ratings.csv.gz"), packed=True),
    Subject("ratings, Parquet", write_parquet, read_csv_ratings("ratings.parquet"), twin_parquet),
    Subject("judgments, TREC", write_qrels, read_csv_ratings("test.qrels"), twin_qrels),
    Subject("lists, TREC", write_run, of_run("mine.run"), twin_run),
    Subject("lists, CSV", write_ranks, of_run("mine.csv"), twin_ranks),
    Subject("events, CSV", put_table("log.csv", ",", head=True), read_log_of_events, twin_events),
    Subject("items, CSV", write_items, read_catalogue, twin_items),
    Subject("plan, TOML", write_plan, read_plan_file, twin_plan),
)  # fmt: skip
