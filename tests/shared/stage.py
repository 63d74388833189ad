"""Small files under the names that commands in the documentation use."""

import os
import shutil
from contextlib import redirect_stderr, redirect_stdout, suppress
from datetime import datetime, timedelta
from functools import cache
from io import StringIO
from itertools import pairwise
from pathlib import Path

import polars as pl

import unskew as us
from unskew.cli import main

PLAN = """
metrics = ["P@10"]
seed = 7
[data]
file = "ratings.csv"
[relevance]
liked = 4
[[split]]
protocol = "random"
[[targets]]
design = "all-items"
[[algorithm]]
name = "popularity"
[[algorithm]]
name = "random"
"""


@cache
def _parts():
    """Return ratings, a split of them, a random sample and the lists of three systems."""
    shop = us.world("shop", users=80, items=50, ratings=1200, seed=7)
    (split,) = us.splits.Random(test=0.3).split(shop.ratings, seed=7)
    lists = us.targets.AllItems().lists(split, liked=4)
    systems = (us.recommend.Popularity(), us.recommend.UserKNN(k=10), us.recommend.Random())
    runs = [us.rank(system.fit(split.train), lists, depth=20).to_polars() for system in systems]
    days = pl.datetime_range(
        datetime(2024, 1, 1),
        interval="1h",
        end=datetime(2024, 1, 1) + timedelta(hours=2_000),
        eager=True,
    )
    rows = shop.ratings.to_polars()
    tables = {
        "ratings": rows.with_columns(days[: len(rows)].alias("time")),
        "random": shop.random(0.2).to_polars(),
        "train": split.train.to_polars(),
        "test": split.test.to_polars(),
    }
    return tables | dict(zip("abc", runs, strict=True))


TABLES = {
    **dict.fromkeys(
        ("ratings.csv", "ratings.parquet", "my.csv", "my.parquet", "chosen.csv"), "ratings"
    ),
    **dict.fromkeys(("random.csv", "mar.csv", "shown.csv"), "random"),
    **dict.fromkeys(("train.csv", "train.parquet", "parts/train.parquet"), "train"),
    **dict.fromkeys(("test.csv", "test.parquet", "test.tsv", "parts/test.parquet"), "test"),
    **dict.fromkeys(("a.csv", "mine.csv", "mine.parquet", "new.parquet", "new.csv"), "a"),
    **dict.fromkeys(("b.csv", "base.csv", "recs/ItemKNN.tsv", "old.parquet", "old.csv"), "b"),
    "run1.csv": "a",
    **dict.fromkeys(("run2.csv", "theirs.csv"), "b"),
    "c.csv": "c",
}
"""Files of ratings and lists, by their names: which table they hold."""
TREC = {"theirs.trec": "b", "run1.trec": "a", "run2.trec": "b", "c.trec": "c"}


def write(frame, path):
    """Write a table in the format that the name says."""
    path.parent.mkdir(parents=True, exist_ok=True)
    if path.suffix == ".parquet":
        frame.write_parquet(path)
    else:
        frame.write_csv(path, separator="\t" if path.suffix == ".tsv" else ",")


def _trec(frame, path):
    rows = frame.iter_rows(named=True)
    lines = (f"{r['user']} Q0 {r['item']} {r['rank']} {100 - r['rank']} run\n" for r in rows)
    path.write_text("".join(lines))


def _folder(frame, path):
    path.mkdir(parents=True)
    frame.write_parquet(path / "day-0.parquet")


def _scores(path, which):
    parts = _parts()
    judged = us.judge(parts["test"], {name: parts[name] for name in which}, liked=4)
    us.evaluate(judged, ["P@10", "nDCG@10", "RR"]).save(path)


def _qrels(path):
    rows = _parts()["test"].iter_rows(named=True)
    path.write_text("".join(f"{r['user']} 0 {r['item']} {int(r['rating'])}\n" for r in rows))


def _events(path):
    ratings = _parts()["ratings"]
    rows = ratings.select("user", pl.Series("time", range(len(ratings))), "item")
    rows.write_csv(path, separator="\t", include_header=False)


def _plays(path):
    """Write a log of 50 days in which every third event is repeated a quarter of an hour later."""
    rows = _parts()["ratings"].select("user", "item", pl.col("time").shuffle(seed=7))
    later = rows.gather_every(3).with_columns(pl.col("time").dt.offset_by("15m"))
    write(pl.concat([rows, later]), path)


def _clicks(path):
    """Write what users met in 50 days, once each."""
    write(_parts()["ratings"].drop("rating"), path)


def _daily(path):
    """Write the lists of three days: those of a system, each day a place further down."""
    rows = _parts()["b" if path.stem == "daily-old" else "a"]
    days = [
        rows.filter(pl.col("rank").is_between(day, day + 9)).select(
            "user", pl.lit(f"2024-01-{5 + day:02d}").alias("date"), "item", pl.col("rank") - day + 1
        )
        for day in (1, 2, 3)
    ]
    write(pl.concat(days), path)


def _log(path):
    """Write a log of a year."""
    log = us.worlds.event_log("growing", users=150, items=60, events=6_000, seed=7)
    write(log.to_polars().drop("value"), path)


def _chances(path):
    items = _parts()["ratings"].group_by("item").len().sort("item")
    share = pl.col("len") / 80
    write(items.select("item", propensity=share.clip(0.05, 1)), path)


def _genres(path):
    items = _parts()["ratings"]["item"].unique().sort()
    write(pl.DataFrame({"item": items, "genre": ["even", "odd"] * (len(items) // 2)}), path)


def _users(path):
    users = _parts()["ratings"]["user"].unique().sort()
    countries, households = (
        ["de", "fr"] * (len(users) // 2),
        [f"h{n // 2}" for n in range(len(users))],
    )
    write(pl.DataFrame({"user": users, "country": countries, "household": households}), path)


def _annotation(path):
    """Plan an annotation, and judge the first half of it."""
    parts = _parts()
    runs = {name: parts[name] for name in "ab"}
    plan = us.labels.plan_annotation(runs, "P@10", budget=100, design="stratified")
    plan.save(path)
    _judge(path / "to-judge.csv", path / "to-judge.csv")


def _judge(source, path):
    frame = pl.read_csv(source, infer_schema=False)
    likes = [str(int(item) % 2) for item in frame["item"][:50]]
    label = pl.Series("label", [*likes, *[None] * (frame.height - 50)])
    write(frame.with_columns(label), path)


def _filled(path):
    provide(["to-judge/"])
    _judge(Path("to-judge/to-judge.csv"), path)


def _titles(path):
    items = _parts()["ratings"]["item"].unique().sort()
    write(pl.DataFrame({"item": items, "title": [f"Film {item}" for item in items]}), path)


def _labels(path):
    """Write labels from 1 to 5: of a model for all recommended pairs, or of people for some."""
    parts = _parts()
    listed = pl.concat([parts[name].select("user", "item") for name in "abc"])
    pairs = listed.unique().sort("user", "item")
    liked = (pairs["user"] * 7 + pairs["item"] * 3) % 10 < 4
    if path.stem == "people":
        some = pairs.with_columns(rating=liked.cast(pl.Int64) * 3 + 2)
        write(some.sample(300, seed=1).sort("user", "item"), path)
    else:
        odd = (pairs["user"] + pairs["item"]) % 6 == 0
        write(pairs.with_columns(rating=(liked | odd).cast(pl.Int64) * 3 + 2), path)


MAKERS = {
    "to-judge/": _annotation,
    "filled.csv": _filled,
    "movies.csv": _titles,
    "model.csv": _labels,
    "people.csv": _labels,
    "judgments/": lambda path: _folder(_parts()["test"], path),
    "mine/": lambda path: _folder(_parts()["a"], path),
    "lists/": lambda path: _folder(_parts()["a"], path),
    "theirs/": lambda path: _folder(_parts()["b"], path),
    "fold-1/": lambda path: _scores(path, "ab"),
    "fold-2/": lambda path: _scores(path, "ab"),
    "saved/": lambda path: _scores(path, "abc"),
    **dict.fromkeys(("books/", "films/", "games/"), lambda path: _scores(path, "ab")),
    "qrels.txt": _qrels,
    "plays.tsv": _events,
    "events.csv": _events,
    "plays.csv": _plays,
    "log.csv": _log,
    "clicks.csv": _clicks,
    **dict.fromkeys(("daily.csv", "daily-new.csv", "daily-old.csv"), _daily),
    "chances.csv": _chances,
    "genres.csv": _genres,
    "users.csv": _users,
    "plan.toml": lambda path: path.write_text(PLAN),
}


def _card(path):
    """Save a split of the ratings, unless it is there."""
    provide(["ratings.csv"])
    ratings = us.read_ratings("ratings.csv")
    if not path.exists() or ratings.fingerprint not in path.read_text():
        shutil.rmtree(path.parent, ignore_errors=True)
        with redirect_stdout(StringIO()), redirect_stderr(StringIO()), suppress(SystemExit):
            main(["split", "ratings.csv", "--test", "0.2", "-o", str(path.parent)])


OUTPUTS = ("-o", "--output", "--on-disk", "--save", "--save-model", "--figures", "--csv", "--paper")
_renamed: set[Path] = set()


def provide(words):
    """Write into this folder the files that a command reads and that are not there.

    Folders that it writes are removed: each command is an example of its own.
    """
    for path in _renamed:
        path.unlink(missing_ok=True)
    _renamed.clear()
    for option, value in pairwise(words):
        if option in OUTPUTS:
            shutil.rmtree(value, ignore_errors=True)
    written = {b for a, b in pairwise(words) if a in OUTPUTS}
    for word in set(words) - written:
        file, _, columns = word.partition(":")
        for name in (word, word.partition("=")[2], file):
            if name and not Path(name).exists():
                _make(name)
        if file in TABLES and columns:
            new = {old: new for new, old in (one.split("=")[::-1] for one in columns.split(","))}
            write(_parts()[TABLES[file]].rename(new), Path(file))
            _renamed.add(Path(file))
    if "--card" in words:
        _card(Path(words[words.index("--card") + 1]))
    if "plan.toml" in words:
        provide(["ratings.csv"])


def _make(name):
    path = Path(name)
    if name in TABLES:
        write(_parts()[TABLES[name]], path)
    elif name in TREC:
        _trec(_parts()[TREC[name]], path)
    elif name in MAKERS:
        path.parent.mkdir(parents=True, exist_ok=True)
        MAKERS[name](path)


SLOW = (
    "unskew audit",
    "unskew demo",
    "unskew study run",
    "unskew bias null",
    "unskew explain --judgments",
    "unskew explain -j test.csv -r a.csv",
    "unskew timeline ml-100k",
    "unskew timeline log.csv",
    "unskew world shop -o",
    "unskew world simulated-popularity",
)
"""Commands that take seconds: run by make test-all only."""
NOT_RUN = {
    "unskew data get": "downloads a data set",
    "://bucket/": "needs an object store; tests/data run stand-ins of one",
    "://host/": "needs a server at that address",
    "--cluster tcp://host": "needs a cluster at that address",
    "--cluster local:": "starts a cluster; tests/experiment run one",
    "unskew study run bellogin2017 --seed 0": "all of the study on real data, minutes",
    "unskew study run valcarce2018 --seed 0": "all of the study on real data, minutes",
    "unskew study run carraro2020 --seed 0": "all of the study on real data, minutes",
    "unskew study run mena2021 --seed 0": "all of the study on real data, minutes",
    "unskew study run castells2018 --seed 0": "all of the study on real data, minutes",
}
"""Commands that no test runs, and why. The key is a part of the command."""
OTHER_COMMANDS = {
    "make ": "installs, builds or tests everything",
    "source .venv/bin/activate": "changes a shell",
    "pip ": "changes an environment",
    "git pull": "needs a repository elsewhere",
}
"""Beginnings of commands of other programs, and why no test of the pages runs them."""
DATA_SETS = ("ml-1m", "ml-100k", "coat", "cm100k", "valcarce2018_ml-1m_pvalues.csv")


def reason_not_to_run(words):
    """Return why no test runs a command here, or an empty text."""
    command = " ".join(words)
    for part, reason in NOT_RUN.items():
        if part in command:
            return reason
    named = [word for word in words if word.partition(":")[0] in DATA_SETS]
    return f"needs {named[0]} in UNSKEW_DATA" if named and "UNSKEW_DATA" not in os.environ else ""


def is_slow(words):
    """Tell whether a command takes seconds."""
    return " ".join(words).startswith(SLOW)
