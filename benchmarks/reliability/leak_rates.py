"""How often the diagnosis of a split sees a planted leak, and is red on a clean log: two tables.

    python benchmarks/reliability/leak_rates.py [--logs 20] [--seed 2000] [--only NAME …] [--docs]

Clean logs come from `us.worlds.event_log` (every kind, sizes drawn at random) and from a generator
of this file that knows nothing of unskew. They are cut by time: at one moment, with a validation
part and honest feature columns, in three windows, or with training filtered by its own rows.
Leaks are planted by planted_leaks.py; in MovieLens 100K too, where UNSKEW_DATA holds it.
Rules were fixed on seeds below 1,000, the strength that is promised (bold) on seeds from 1,000 on;
the tables of docs/leaks.md (--docs writes them) are of seeds from 2,000 on. Finished
parts are kept in build/leak-rates.json: delete it after a change of a rule.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import unskew as us
from reliability.planted_leaks import LEAKS, plant_leak, with_validation
from unskew.data.ratings import Ratings, under_one_numbering
from unskew.splits.diagnosis.diagnosis import Diagnosis
from unskew.splits.split import Split
from unskew.worlds.event_logs import KINDS

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs" / "leaks.md"
KEPT = ROOT / "build" / "leak-rates.json"
BEGIN, END = "<!-- rates: benchmarks/reliability/leak_rates.py -->", "<!-- end of rates -->"
PLAIN = "plain numpy"
"""The kind of logs that this file draws itself."""
MOST_TRIED = 3
"""Where a leak cannot be planted (a k-core may leave nothing), the next log is taken; at most so
many times as many are tried."""
VARIANTS = ("one cut", "validation and columns", "three windows", "training filtered")
NOT_WITH = {
    "torn-sessions": ("dates",),
    "mean-rating": ("repeating",),
    "shuffled-times": ("registering",),
}
"""Leaks that a kind of logs cannot have: dates have no sessions, implicit feedback no ratings, and
users who rate all at once have a yellow light anyway."""
NOT_IN_MOVIELENS = ("copied-users", "silent-k-core", "torn-sessions", "shuffled-times")
"""Its users are cut off at 20 ratings, three pairs of them are near-duplicates, and its sessions
last for a user's whole history."""


# Clean logs


def sizes(seed: int) -> tuple[dict[str, Any], float, str]:
    """Return how large a log is, the share that is tested, and where ties at the cut go."""
    rng = np.random.default_rng([seed, 11])
    users = int(np.exp(rng.uniform(np.log(80), np.log(1500))))
    items = int(np.exp(rng.uniform(np.log(100), np.log(1200))))
    events = int(users * np.exp(rng.uniform(np.log(15), np.log(60))))
    days = float(np.exp(rng.uniform(np.log(60), np.log(700))))
    size = {"users": users, "items": items, "events": events, "days": days}
    return size, float(rng.uniform(0.1, 0.3)), ("test", "train")[int(rng.integers(2))]


def plain_log(seed: int) -> Any:
    """Draw a log with numpy alone: users with rates and stays, items with births, two tastes."""
    rng = np.random.default_rng([seed, 17])
    size, _, _ = sizes(seed)
    users, items, span = size["users"], size["items"], size["days"] * 86_400
    born = np.where(rng.random(items) < 0.3, rng.random(items) * span, 0.0)
    fame = rng.pareto(1.5, items) + 0.1
    number = 1 + rng.poisson(rng.gamma(1.5, size["events"] / users / 1.5, users))
    user = np.repeat(np.arange(users), number)
    start = np.repeat(rng.random(users) * 0.9 * span, number)
    moment = start + rng.exponential(0.2 * span, user.size) * rng.random(user.size)
    user, moment = user[moment < span], moment[moment < span]
    item = np.full(user.size, -1)
    while (missing := (item < 0) | (born[item] > moment)).any():  # drawn again until it is born
        for parity in (0, 1):
            weight = fame * np.where(np.arange(items) % 2 == parity, 4, 1)
            rows = np.flatnonzero(missing & (user % 2 == parity))
            item[rows] = rng.choice(items, rows.size, p=weight / weight.sum())
    frame = pl.DataFrame(
        {
            "user": user,
            "item": item,
            "rating": rng.integers(1, 6, user.size),
            "time": (1_300_000_000 + moment).astype(np.int64),
        }
    )
    frame = frame.sort("time", maintain_order=True).unique(
        ["user", "item"], keep="first", maintain_order=True
    )
    return us.read_events(frame, feedback="explicit")


def clean_splits(kind: str, seed: int, variant: str) -> tuple[Any, list[Split]]:
    """Return a clean log and its splits."""
    size, test, ties = sizes(seed)
    log = plain_log(seed) if kind == PLAIN else us.worlds.event_log(kind, seed=seed, **size)
    if variant == "three windows":
        repeats = "count" if log.implicit else "first"
        splitter = us.splits.Windows(number=3, test=test, ties=ties, repeats=repeats)
        return log, splitter.split(log)
    if kind == "repeating":
        (split,) = us.splits.TemporalEvents(test=test, ties=ties, seen="keep").split(log)
    else:
        (split,) = us.splits.Temporal(test=test, ties=ties).split(log.to_ratings("first"))
    if variant == "validation and columns":
        split = with_columns(with_validation(split), seed)
    if variant == "training filtered":
        train = us.data.KCore(3, 3).apply(split.train)
        split = Split(*under_one_numbering(train, split.test), split.label)
    return log, [split]


def with_columns(split: Split, seed: int) -> Split:
    """Add columns of items and users that test rows did not enter."""
    rng = np.random.default_rng([seed, 23])
    train, items, users = split.train, len(split.train.items), len(split.train.users)
    seen, active = (
        np.bincount(train.item, minlength=items),
        np.bincount(train.user, minlength=users),
    )
    later = np.bincount(split.test.item, minlength=items)
    total = np.bincount(train.item, train.value, minlength=items)
    columns = {
        "popularity": (np.log1p(seen), "item"),
        "mean": (total / np.maximum(seen, 1), "item"),
        "elsewhere": ((seen + later + 1) * np.exp(rng.normal(0, 0.3, items)), "item"),
        "price": (rng.gamma(2, 5, items), "item"),
        "activity": (active, "user"),
    }

    def tagged(part: Ratings) -> Ratings:
        tags = {
            name: pl.Series(values[part.item if of == "item" else part.user].astype(float))
            for name, (values, of) in columns.items()
        }
        return replace(part, tags=tags)

    return replace(split, train=tagged(train), test=tagged(split.test))


def clean_row(kind: str, logs: int, seed: int) -> dict[str, Any]:
    """Count the red and yellow lights of clean logs of a kind."""
    red, yellow, examples = 0, {}, []
    for number in range(logs):
        variant = VARIANTS[number % len(VARIANTS)]
        log, splits = clean_splits(kind, seed + number, variant)
        result = us.splits.diagnose(splits, log=log)
        red += bool(result.leaks)
        examples += [f"{seed + number} {variant}: {one.sentence}" for one in result.leaks]
        for one in result.of_light("look"):
            yellow[one.key] = yellow.get(one.key, 0) + 1
    return {"kind": kind, "logs": logs, "red": red, "yellow": yellow, "examples": examples}


# Planted leaks


def found(result: Diagnosis, leak: Any) -> bool:
    """Tell whether the light that should show a leak does so."""
    return result.check(leak.check).light in ("leak", leak.light)


def leak_row(name: str, logs: int, seed: int) -> dict[str, Any]:
    """Count how often a planted leak is seen, at three strengths, over all kinds of logs."""
    leak = LEAKS[name]
    kinds = [kind for kind in (*KINDS, PLAIN) if kind not in NOT_WITH.get(name, ())]
    rates, missed = [], []
    for strength in leak.strengths:
        seen, planted = 0, 0
        for number in range(MOST_TRIED * logs):
            if planted == logs:
                break
            kind = kinds[number % len(kinds)]
            _, (split,) = clean_splits(kind, seed + number, "one cut")
            try:
                leaky = plant_leak(split, name, strength, seed + number)
            except us.UnskewError as problem:  # such as a k-core that leaves nothing
                missed.append(f"{strength:g} {kind} {seed + number}: not planted, {problem}")
                continue
            planted += 1
            ok = found(us.splits.diagnose(leaky), leak)
            seen += ok
            if not ok:
                missed.append(f"{strength:g} {kind} {seed + number}")
        rates.append([seen, planted])
    return {"leak": name, "strengths": list(leak.strengths), "rates": rates, "missed": missed}


def movielens_row(name: str, logs: int, seed: int) -> dict[str, Any] | None:
    """Count the same in MovieLens 100K, cut at another share each time."""
    folder = os.environ.get("UNSKEW_DATA")
    if folder is None or not (Path(folder) / "ml-100k").exists() or name in NOT_IN_MOVIELENS:
        return None
    leak, ratings = LEAKS[name], us.load("ml-100k", data_dir=folder).ratings
    rates = []
    for strength in leak.strengths:
        seen = 0
        for number in range(logs):
            share = 0.1 + 0.2 * number / max(logs - 1, 1)
            (split,) = us.splits.Temporal(test=share).split(ratings)
            leaky = plant_leak(split, name, strength, seed + number)
            seen += found(us.splits.diagnose(leaky), leak)
        rates.append([seen, logs])
    return {"leak": name, "rates": rates}


# Tables


def tables(kept: dict[str, Any]) -> str:
    """Return both tables as Markdown."""
    lines = ["| planted leak | check | weak | middle | strong | MovieLens 100K, middle |"]
    lines.append("|---|---|---|---|---|---|")
    for name, leak in LEAKS.items():
        row, real = kept[f"leak {name}"], kept.get(f"movielens {name}")
        cells = [
            f"{strength:g}: {seen} of {planted}"
            for strength, (seen, planted) in zip(row["strengths"], row["rates"], strict=True)
        ]
        cells[leak.stated] = f"**{cells[leak.stated]}**"
        real_cell = "–" if not real else "{} of {}".format(*real["rates"][1])
        light = "" if leak.light == "leak" else " (yellow)"
        about = f"{name}: {leak.about}"
        lines.append(f"| {about} | `{leak.check}`{light} | {' | '.join(cells)} | {real_cell} |")
    lines += ["", "| clean logs | logs | red | yellow |", "|---|---|---|---|"]
    rows = [kept[f"clean {kind}"] for kind in (*KINDS, PLAIN)]
    for row in rows:
        about = KINDS[row["kind"]].about if row["kind"] in KINDS else "drawn with numpy alone"
        yellow = ", ".join(f"`{key}` {number}" for key, number in row["yellow"].items()) or "0"
        lines.append(f"| {row['kind']}: {about} | {row['logs']} | {row['red']} | {yellow} |")
    logs, red = (sum(row[key] for row in rows) for key in ("logs", "red"))
    lines.append(f"| all | {logs} | {red} | |")
    return "\n".join(lines)


def main() -> None:
    """Run what is missing, print the tables, and write them where asked."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--logs", type=int, default=20)
    parser.add_argument("--seed", type=int, default=2000)
    parser.add_argument("--only", nargs="*", default=[])
    parser.add_argument("--docs", action="store_true")
    options = parser.parse_args()
    key = f"{options.logs} logs from seed {options.seed}"
    kept = json.loads(KEPT.read_text()) if KEPT.exists() else {}
    done = kept.setdefault(key, {})
    work = [(f"clean {kind}", clean_row, kind) for kind in (*KINDS, PLAIN)]
    work += [(f"leak {name}", leak_row, name) for name in LEAKS]
    work += [(f"movielens {name}", movielens_row, name) for name in LEAKS]
    for name, run, what in work:
        if name in done or (options.only and what not in options.only):
            continue
        begin = time.perf_counter()
        done[name] = run(what, options.logs, options.seed)
        print(f"{name}: {time.perf_counter() - begin:.0f} s {done[name]}", flush=True)
        KEPT.parent.mkdir(exist_ok=True)
        KEPT.write_text(json.dumps(kept, indent=1))
    if not options.only:
        text = tables(done)
        print(text)
        if options.docs:
            page = DOCS.read_text()
            before, _, rest = page.partition(BEGIN)
            DOCS.write_text(f"{before}{BEGIN}\n{text}\n{END}{rest.partition(END)[2]}")


if __name__ == "__main__":
    main()
