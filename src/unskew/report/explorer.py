"""`Explorer`: the numbers from which readers of a page choose what its main chart shows."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from html import escape
from pathlib import Path
from string import Template
from typing import TYPE_CHECKING, Any

from unskew.report.charts import script_json

if TYPE_CHECKING:
    import polars as pl

ALL_USERS, WARM_USERS = "all", "warm"
"""Which users are averaged: all, or those with a training rating."""


@dataclass(frozen=True, eq=False, kw_only=True)
class Explorer:
    """Means and differences of systems, for every choice that a page offers."""

    scores: pl.DataFrame
    """A row per metric, cutoff, design, users and system: `value`, `low`, `high`, `chance`,
    `place`. A cutoff can be null; `low` and `high` are equally far from `value`."""
    pairs: pl.DataFrame
    """A row per metric, cutoff, design, users and pair `a`, `b`: `difference`, `low`, `high`, and
    how many users are `better`, `worse` and `same` with a. `low` and `high` are equally far from
    `difference`."""
    start: Mapping[str, str] = field(default_factory=dict)
    """The choice that is shown at first: metric, cutoff, design, users, a, b."""
    better: Mapping[str, str] = field(default_factory=dict)
    """By metric: whether `higher` or `lower` values are better, or `neither`; `higher` unless
    stated."""
    designs: Mapping[str, str] = field(default_factory=dict)
    """By design: what is done."""


MOST_BYTES = 600_000
"""About how much of a page the numbers may take: beyond, fewer metrics or systems are in it."""
DIGITS = 6
"""Of the greatest number of a column; all its numbers have as many decimals."""
GROUP = ["metric", "cutoff", "design", "users"]
USERS = {ALL_USERS: "all users", WARM_USERS: "users with training ratings"}


def panel(explorer: Explorer) -> str:
    """Return the part of a page with which readers choose what is shown, and its numbers.

    Parameters
    ----------
    explorer
        The numbers.
    """
    fitting, notes = _within(explorer)
    data = _encoded(fitting)
    has_pairs = len(data["systems"]) > 1
    selects = [("metric", "Metric"), ("cutoff", "Cutoff"), ("design", "Design"), ("users", "Users")]
    selects += [("a", "System A"), ("b", "System B")] if has_pairs else []
    boxes = "".join(
        f'<label><span>{label}</span><select name="{name}"></select></label>'
        for name, label in selects
    )
    remarks = "".join(f"<p>{escape(note)}</p>" for note in notes)
    lines = Path(__file__).with_name("explorer.html").read_text(encoding="utf-8").splitlines()
    return Template("".join(lines)).substitute(boxes=boxes, remarks=remarks, data=script_json(data))


# Numbers as JSON


def _encoded(explorer: Explorer) -> dict[str, Any]:
    """Return columns of whole numbers; equal columns are there once."""
    scores, pairs = explorer.scores, explorer.pairs
    systems = scores["system"].unique(maintain_order=True).to_list()
    listed = pairs.select("a", "b").unique(maintain_order=True).rows()
    columns: dict[str, int] = {}
    of_pairs = dict(iter(pairs.group_by(GROUP, maintain_order=True)))
    groups = []
    for key, part in scores.group_by(GROUP, maintain_order=True):
        column = _scores(part, systems, explorer.better.get(str(key[0]), "higher"))
        entry = [*key, columns.setdefault(json.dumps(column), len(columns))]
        if key in of_pairs:
            column = _pairs(of_pairs[key], listed)
            entry.append(columns.setdefault(json.dumps(column), len(columns)))
        groups.append(entry)
    numbers = {system: number for number, system in enumerate(systems)}
    return {
        "systems": systems,
        "designs": {name: explorer.designs.get(name, "") for name in _unique(scores["design"])},
        "users": {name: USERS.get(name, name) for name in _unique(scores["users"])},
        "better": {name: explorer.better.get(name, "higher") for name in _unique(scores["metric"])},
        "pairs": [[numbers[a], numbers[b]] for a, b in listed],
        "groups": groups,
        "columns": [json.loads(column) for column in columns],
        "start": dict(explorer.start),
    }


def _unique(column: pl.Series) -> list[str]:
    return column.unique(maintain_order=True).to_list()


def _scores(part: pl.DataFrame, systems: Sequence[str], better: str) -> dict[str, Any]:
    rows = {row["system"]: row for row in part.iter_rows(named=True)}
    ordered = [rows.get(system, {}) for system in systems]
    values = [row.get("value") for row in ordered]
    decimals = _decimals(values)
    scaled = _whole(values, decimals)
    column: dict[str, Any] = {
        "e": decimals,
        "v": scaled,
        "m": _margins(ordered, "value", decimals),
    }
    chance = part["chance"][0]
    if _is_number(chance):
        column["c"] = float(f"{chance:.{DIGITS}g}")
    places = [row.get("place") for row in ordered]
    # Places follow from the values; they are stated where rounding makes unequal values equal.
    if places != list(_places(scaled, better)):
        column["p"] = places
    return column


def _places(values: Sequence[int | None], better: str) -> Iterator[int | None]:
    sign = -1 if better == "lower" else 1
    ordered = sorted((sign * value for value in values if value is not None), reverse=True)
    first: dict[int, int] = {}
    for rank, value in enumerate(ordered, start=1):
        first.setdefault(value, rank)
    yield from (None if value is None else first[sign * value] for value in values)


def _pairs(part: pl.DataFrame, listed: Sequence[tuple[str, str]]) -> dict[str, Any]:
    rows = {(row["a"], row["b"]): row for row in part.iter_rows(named=True)}
    ordered = [rows.get(pair, {}) for pair in listed]
    differences = [row.get("difference") for row in ordered]
    decimals = _decimals([*differences, *(row.get("high") for row in ordered)])
    users = [sum(row.get(key) or 0 for key in ("better", "worse", "same")) for row in ordered]
    return {
        "e": decimals,
        "d": _whole(differences, decimals),
        "m": _margins(ordered, "difference", decimals),
        **{key[0]: [row.get(key) for row in ordered] for key in ("better", "worse")},
        "n": users[0] if len(set(users)) == 1 else users,
    }


def _margins(rows: Iterable[Mapping[str, Any]], middle: str, decimals: int) -> list[int | None]:
    """Return how far an interval reaches to either side."""
    margins = [row["high"] - row[middle] if _is_number(row.get("high")) else None for row in rows]
    return _whole(margins, decimals)


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and math.isfinite(value)


def _decimals(values: Iterable[float | None]) -> int:
    """Return the decimals with which the greatest number has `DIGITS` digits."""
    greatest = max(
        (abs(value) for value in values if value is not None and _is_number(value)), default=0.0
    )
    if not greatest:
        return DIGITS
    return DIGITS - 1 - math.floor(math.log10(greatest))


def _whole(values: Iterable[float | None], decimals: int) -> list[int | None]:
    unit = 10.0**decimals
    return [
        round(value * unit) if value is not None and _is_number(value) else None for value in values
    ]


# Pages of a bearable size


def _within(explorer: Explorer) -> tuple[Explorer, list[str]]:
    """Return what a page can hold, and what is left out of it."""
    import polars as pl

    share = MOST_BYTES / len(script_json(_encoded(explorer)))
    if share >= 1:
        return explorer, []
    start = (explorer.start["metric"], explorer.start["cutoff"])
    metrics = explorer.scores.select("metric", "cutoff").unique(maintain_order=True).rows()
    metrics.sort(key=lambda pair: (pair[0], _text(pair[1])) != start)  # the first stays first
    fitting = metrics[: max(1, math.floor(len(metrics) * share))]
    notes = []
    if len(fitting) < len(metrics):
        left = ", ".join(f"{name}@{_text(k)}" if k else name for name, k in metrics[len(fitting) :])
        notes.append(f"Left out, to keep this file small: {left}.")
    chosen = pl.struct("metric", "cutoff").is_in([{"metric": m, "cutoff": k} for m, k in fitting])
    scores, pairs = explorer.scores.filter(chosen), explorer.pairs.filter(chosen)
    explorer = replace(explorer, scores=scores, pairs=pairs)
    share = MOST_BYTES / len(script_json(_encoded(explorer)))
    if share >= 1:
        return explorer, notes
    systems = _best_first(explorer)
    best = systems[: max(2, math.floor(len(systems) * share))]
    notes.append(
        f"To keep this file small, {len(best):,} of {len(systems):,} systems can be chosen: the "
        f"best ones at first sight."
    )
    inside = pl.col("a").is_in(best) & pl.col("b").is_in(best)
    scores = scores.filter(pl.col("system").is_in(best))
    return replace(explorer, scores=scores, pairs=pairs.filter(inside)), notes


def _text(cutoff: int | None) -> str:
    return "" if cutoff is None else str(cutoff)


def _best_first(explorer: Explorer) -> list[str]:
    """Return the two systems that are chosen at first, and the others by their first place."""
    import polars as pl

    start, scores = explorer.start, explorer.scores
    first = scores.filter(
        pl.col("metric") == start["metric"],
        pl.col("cutoff").cast(pl.String).fill_null("") == start["cutoff"],
        pl.col("design") == start["design"],
        pl.col("users") == start["users"],
    ).sort("place", nulls_last=True, maintain_order=True)
    pair = [start[side] for side in ("a", "b") if side in start]
    return list(dict.fromkeys([*pair, *first["system"], *scores["system"]]))
