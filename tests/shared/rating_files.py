"""Small files in the formats that people have, and damaged forms of them, with what they hold.

`python tests/shared/rating_files.py FOLDER` writes them all.
"""

from __future__ import annotations

import bz2
import gzip
import json
import sys
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

Row = tuple[object, ...]
EPOCH = 874_724_710
"""The first second of MovieLens 100K."""


@dataclass(frozen=True)
class Read:
    """A file that is read, and what is in it."""

    liked: float | None
    """The threshold that the scale gives; None: implicit feedback."""
    rows: Sequence[Row]
    """User, item, value, and the time in seconds where there is one."""
    note: str = ""
    """What the notes must say."""


@dataclass(frozen=True)
class Asks(Read):
    """A file that is read, on a scale that gives no threshold: the error proposes `liked`."""


@dataclass(frozen=True)
class Refused:
    """A file that is refused, and what the error must say."""

    error: str


@dataclass(frozen=True)
class Case:
    """A file, and what becomes of it."""

    name: str
    content: bytes
    outcome: Read | Refused
    options: dict[str, object] = field(default_factory=dict)


def pairs(users: int = 30, items: int = 20, per_user: int = 8, seed: int = 0) -> list[Row]:
    """Draw different pairs of users and items, numbered from 1, in random order."""
    rng = np.random.default_rng(seed)
    rows = [
        (user, int(item) + 1)
        for user in range(1, users + 1)
        for item in rng.choice(items, per_user, replace=False)
    ]
    return [rows[index] for index in rng.permutation(len(rows))]


def rated(values: Sequence[float], **size: int) -> list[Row]:
    """Give every pair one of some values, each at least once, and a time."""
    rng = np.random.default_rng(len(values))
    rows = pairs(**size)
    drawn = [*values, *rng.choice(values, len(rows) - len(values))]
    return [
        (*row, value, EPOCH + 60 * at)
        for at, (row, value) in enumerate(zip(rows, drawn, strict=True))
    ]


STARS = rated([1.0, 2.0, 3.0, 4.0, 5.0])
HALVES = rated([0.5 * step for step in range(1, 11)])


def plain(value: object) -> str:
    """Write a number as files do: 4 and not 4.0."""
    return f"{value:g}" if isinstance(value, float) else str(value)


def text(
    rows: Iterable[Sequence[object]],
    header: str | None = None,
    separator: str = ",",
    end: str = "\n",
) -> bytes:
    """Write rows with a separator."""
    lines = [separator.join(map(plain, row)) for row in rows]
    return (end.join([*([header] if header else []), *lines]) + end).encode()


def json_lines(rows: Iterable[dict[str, object]]) -> bytes:
    """Write an object per line."""
    return "".join(f"{json.dumps(row)}\n" for row in rows).encode()


def three(rows: Sequence[Row]) -> list[Row]:
    """Keep user, item and value."""
    return [row[:3] for row in rows]


def named(
    rows: Sequence[Row], user: Callable[[int], object], item: Callable[[int], object]
) -> list[Row]:
    """Give users and items other ids."""
    return [(user(row[0]), item(row[1]), *row[2:]) for row in rows]  # type: ignore[arg-type]


def amazon_user(number: int) -> str:
    """Return an id as Amazon's reviewers have it."""
    return f"A{number * 7_919:013d}"[:14]


def asin(number: int) -> str:
    """Return an id as Amazon's products have it."""
    return f"B00{number * 104_729:07d}"[:10]


AMAZON = named(STARS, amazon_user, asin)


def columns(header: str, values: Sequence[float], liked: float) -> Case:
    """A CSV file whose third column has some name and some values."""
    rows = three(rated(values))
    name = "".join(letter if letter.isalnum() else "-" for letter in header)
    return Case(f"{name}-{len(values)}.csv", text(rows, header), Read(liked, rows))


def _explicit() -> Iterable[Case]:
    stars = [1.0, 2.0, 3.0, 4.0, 5.0]
    for name in (
        "user,item,rating", "userId,movieId,rating", "reviewerID,asin,overall", "user,item,stars",
        "user_id,business_id,stars", "customer,sku,score", "uid,track,star_rating",
        "User-ID,ISBN,Book-Rating", "user_id:token,item_id:token,rating:float", "user,item,label",
        "user,product,review_score",
    ):  # fmt: skip
        yield columns(name, stars, 4)
    yield columns("userId,movieId,rating", [0.5 * step for step in range(1, 11)], 4)
    for name in ("like", "liked", "click", "is_click", "vote", "thumbs", "feedback", "clicked"):
        yield columns(f"user,item,{name}", [0.0, 1.0], 1)
    yield columns("user,item,thumb", [-1.0, 1.0], 1)
    yield columns("user,item,vote", [-1.0, 0.0, 1.0], 1)
    scales: dict[str, tuple[Sequence[float], float]] = {
        "filmtrust": ([0.5 * step for step in range(1, 9)], 2.5),
        "one-to-four": ([1.0, 2.0, 3.0, 4.0], 3),
        "zero-to-ten": ([float(step) for step in range(11)], 6),
        "one-to-ten": ([float(step) for step in range(1, 11)], 6),
        "one-to-hundred": ([float(step) for step in range(1, 101)], 51),
        "minus-ten-to-ten": ([-10.0, -5.5, -0.25, 0.75, 4.5, 10.0], 0.75),
        "zero-to-five": ([0.0, 1.0, 2.0, 3.0, 4.0, 5.0], 3),
        "one-to-three": ([1.0, 2.0, 3.0], 3),
    }
    for name, (values, liked) in scales.items():
        rows = three(rated(values))
        yield Case(f"{name}.csv", text(rows, "user,item,rating"), Asks(liked, rows))
    ratio = three(rated([0.05, 0.4, 0.9, 1.3, 2.75]))
    yield Case("watch_ratio.csv", text(ratio, "user_id,video_id,watch_ratio"), Asks(2.75, ratio))


def _words() -> Iterable[Case]:
    rows = three(rated([0.0, 1.0]))
    for name, (no, yes) in {
        "recommended": ("False", "True"),
        "opinion": ("dislike", "like"),
        "vote": ("down", "up"),
        "liked": ("no", "yes"),
    }.items():
        words = [(user, item, yes if value else no) for user, item, value in rows]
        yield Case(
            f"words-{name}.csv", text(words, f"user,item,{name}"), Read(1, rows, f"{yes} = 1")
        )


def _implicit() -> Iterable[Case]:
    only = [(*pair, 1.0) for pair in pairs()]
    yield Case("pairs.csv", text((row[:2] for row in only), "user,item"), Read(None, only))
    yield Case("pairs.tsv", text((row[:2] for row in only), separator="\t"), Read(None, only))
    yield Case("ones.csv", text(only, "user,item,rating"), Read(None, only, "1 in every row"))
    counts = three(rated([1.0, 2.0, 7.0, 40.0]))
    for name in ("plays", "count", "play_count", "clicks", "purchases", "quantity"):
        yield Case(
            f"{name}.csv", text(counts, f"user,artist,{name}"), Read(None, counts, "counts use")
        )
    hours = three(rated([0.1, 2.5, 30.0]))
    yield Case("hours.csv", text(hours, "user,game,hours"), Read(None, hours, "counts use"))
    zeros = three(rated([0.0, 1.0, 2.0, 8.0]))
    yield Case("clicks-zero.csv", text(zeros, "user,item,clicks"), Asks(8, zeros))


def _unclear() -> Iterable[Case]:
    rows = three(STARS)
    yield Case("unnamed.csv", text(rows, "user,item,zufriedenheit"), Refused("is this column the"))
    yield Case(
        "stated.csv", text(rows, "user,item,zufriedenheit"), Read(4, rows),
        {"rating": "zufriedenheit"},
    )  # fmt: skip
    two = [(*row, 1, 0) for row in pairs()]
    yield Case("two.csv", text(two, "user,item,like,click"), Refused("which column is the rating"))
    yield Case("dislike.csv", text(rows, "user,item,disliked"), Refused("1 minus the value"))
    yield Case("attributes.csv", text(
        ((*row[:2], 19.5, 2) for row in rows), "user,item,price,fold"
    ), Read(None, [(*row[:2], 1.0) for row in rows], "not used: 'price', 'fold'"))  # fmt: skip
    ranks = [(user, 100 + at, at) for user in range(1, 9) for at in range(1, 6)]
    yield Case("ranks.csv", text(ranks, "user,item,rank"), Refused("look like ranked lists"))
    scores = [(user, item, 1 / (at + 3.3)) for user, item, at in ranks]
    yield Case("scores.csv", text(scores, "user,item,score"), Refused("look like ranked lists"))
    yield Case("twice.csv", text(rows, "user,item,item"), Refused("item"))
    both = [(*row, row[2]) for row in rows]
    yield Case("two-ratings.csv", text(both, "user,item,rating,rating"), Refused("rating"))
    yield Case("no-users.csv", text(rows, "a,b,rating"), Refused("no user column"))


def _logs() -> Iterable[Case]:
    kinds = ["view", "view", "view", "cart", "purchase"]
    log = [(*row[:2], kinds[at % 5], row[3]) for at, row in enumerate(STARS)]
    whole = text(log, "visitorid,itemid,event,timestamp")
    every = [(*row[:2], 1.0, row[3]) for row in STARS]
    yield Case("log.csv", whole, Read(None, every, "every event counts alike"))
    bought = [row for at, row in enumerate(every) if kinds[at % 5] == "purchase"]
    yield Case("bought.csv", whole, Read(None, bought, "left out"), {"events": "purchase"})
    weights = {"view": 1.0, "cart": 0.0, "purchase": 5.0}
    weighted = [
        (*row[:2], weights[kinds[at % 5]], row[3])
        for at, row in enumerate(every)
        if weights[kinds[at % 5]]
    ]
    yield Case("weighted.csv", whole, Read(None, weighted, "weights"), {"weights": weights})
    yield Case("sold.csv", whole, Refused("no event of the kind 'sold'"), {"events": "sold"})
    numbers = [(*row[:2], at % 4, row[3]) for at, row in enumerate(STARS)]
    yield Case(
        "behavior.csv", text(numbers, "user_id,item_id,behavior_type,time"),
        Read(None, every, "every event counts alike"),
    )  # fmt: skip
    yield Case("no-kinds.csv", text(three(STARS), "user,item,rating"),
               Refused("needs a column that says what kind"), {"events": "buy"})  # fmt: skip


def _movielens() -> Iterable[Case]:
    yield Case("u.data", text(STARS, separator="\t"), Read(4, STARS))
    yield Case("ratings.dat", text(STARS, separator="::"), Read(4, STARS))
    yield Case("ratings.csv", text(HALVES, "userId,movieId,rating,timestamp"), Read(4, HALVES))
    milli = [(*row[:3], row[3] * 1000) for row in STARS]  # type: ignore[operator]
    yield Case("milliseconds.tsv", text(milli, separator="\t"), Read(4, STARS))
    plain_text = text(STARS, "user,item,rating,time")
    yield Case("zipped.csv.gz", gzip.compress(plain_text), Read(4, STARS))
    yield Case("zipped-unnamed.csv", gzip.compress(plain_text), Read(4, STARS))
    yield Case("cut.csv.gz", gzip.compress(plain_text)[:-40], Refused("cut.csv.gz"))
    yield Case("other.csv.bz2", bz2.compress(plain_text), Refused("bz2"))
    yield Case("bom.csv", b"\xef\xbb\xbf" + plain_text, Read(4, STARS))
    yield Case("windows.csv", text(STARS, "user,item,rating,time", end="\r\n"), Read(4, STARS))
    yield Case("semicolon.csv", text(STARS, "user;item;rating;time", ";"), Read(4, STARS))
    mac = text(STARS, "user,item,rating,time", end="\r")
    yield Case("mac.csv", mac, Refused("carriage return"))
    yield Case(
        "mac-numbers.csv", mac, Refused("carriage return"), {"user": 0, "item": 1, "rating": 2}
    )
    yield Case("cut.csv", plain_text.rsplit(b",", 2)[0], Refused("cut.csv"))
    yield Case("empty.csv", b"", Refused("empty"))
    yield Case("header-only.csv", b"user,item,rating\n", Refused("no rows"))
    yield Case(
        "page.csv", b"<!DOCTYPE html>\n<html><body>Sign in</body></html>\n", Refused("web page")
    )
    wide = plain_text.replace(b",5,", b",five,")
    yield Case("word.csv", wide, Refused("not number"))
    gap = plain_text.replace(b",5,", b",,")
    yield Case("gap.csv", gap, Refused("missing"))


def _amazon() -> Iterable[Case]:
    yield Case("user-first.csv", text(AMAZON), Read(4, AMAZON))
    swapped = [(item, user, *rest) for user, item, *rest in AMAZON]
    yield Case("item-first.csv", text(swapped), Read(4, AMAZON))
    yield Case(
        "amazon.csv", text(AMAZON, "reviewerID,asin,overall,unixReviewTime"), Read(4, AMAZON)
    )
    reviews = [
        {"reviewerID": user, "asin": item, "overall": value, "vote": "3", "verified": True,
         "reviewTime": "09 1, 2016", "style": {"Format:": "Paperback"}, "unixReviewTime": time}
        for user, item, value, time in AMAZON
    ]  # fmt: skip
    yield Case("reviews.json", json_lines(reviews), Read(4, AMAZON))
    yield Case("reviews.json.gz", gzip.compress(json_lines(reviews)), Read(4, AMAZON))
    new = [
        {"rating": value, "title": "Good", "text": "…", "images": [], "asin": item,
         "parent_asin": item, "user_id": user, "timestamp": time * 1000, "helpful_vote": 0,
         "verified_purchase": True}
        for user, item, value, time in AMAZON
    ]  # fmt: skip
    yield Case("2023.jsonl", json_lines(new), Read(4, AMAZON))
    broken = json_lines(new)
    yield Case("cut.jsonl", broken[:-30], Refused("line 240"))


def _others() -> Iterable[Case]:
    yelp = [
        {"review_id": f"r{at}", "user_id": f"u{user}", "business_id": f"b{item}", "stars": value,
         "useful": 0, "text": "x"}
        for at, (user, item, value, _) in enumerate(STARS)
    ]  # fmt: skip
    yield Case(
        "yelp.json", json_lines(yelp), Read(4, named(three(STARS), "u{}".format, "b{}".format))
    )
    goodreads = [
        {"user_id": f"u{user}", "book_id": str(item), "is_read": True, "rating": int(value),
         "date_added": "Fri Nov 10 15:06:00 -0800 2017"}
        for user, item, value, _ in STARS
    ]  # fmt: skip
    time = [(f"u{user}", item, value, 1_510_355_160) for user, item, value, _ in STARS]
    yield Case("goodreads.json", json_lines(goodreads), Read(4, time))
    by_item: dict[object, list[Row]] = {}
    for row in sorted(STARS, key=lambda row: row[1]):  # type: ignore[arg-type, return-value]
        by_item.setdefault(row[1], []).append(row)
    lines = []
    for item, rows in by_item.items():
        lines += [f"{item}:", *(f"{user},{value:g},2005-09-06" for user, _, value, _ in rows)]
    days = [(user, item, value, 1_125_964_800) for user, item, value, _ in STARS]
    netflix = ("\n".join(lines) + "\n").encode()
    yield Case("combined_data_1.txt", netflix, Read(4, days))
    yield Case("netflix-unnamed.csv", netflix, Read(4, days))
    jester = rated([-9.5, -3.25, 0.5, 4.75, 9.0], items=100, per_user=12)
    dense = np.full((30, 100), 99.0)
    for user, item, value, _ in jester:
        dense[user - 1, item - 1] = value  # type: ignore[index, operator]
    table = [(12, *row) for row in dense.tolist()]
    yield Case("jester-data-1.csv", text(table), Asks(0.5, three(jester)))
    yield Case("jester-long.tsv", text(three(jester), separator="\t\t"), Asks(0.5, three(jester)))
    yield Case(
        "recbole.inter",
        text(STARS, "user_id:token\titem_id:token\trating:float\ttimestamp:float", "\t"),
        Read(4, STARS),
    )
    qrels = [(user, 0, item, int(value >= 4)) for user, item, value, _ in STARS]
    graded = [(user, item, float(value)) for user, _, item, value in qrels]
    yield Case("test.qrels", text(qrels, separator=" "), Read(1, graded))


def cases() -> list[Case]:
    """Return all files."""
    parts = (
        _explicit, _words, _implicit, _unclear, _logs, _movielens, _amazon, _others,
    )  # fmt: skip
    return [case for part in parts for case in part()]


if __name__ == "__main__":
    folder = Path(sys.argv[1])
    folder.mkdir(parents=True, exist_ok=True)
    for case in cases():
        (folder / case.name).write_bytes(case.content)
