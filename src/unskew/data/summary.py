"""What a data set looks like in numbers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl

from unskew.arrays import F64, I64
from unskew.checks import checked
from unskew.data.dataset import RANDOM, Dataset
from unskew.data.ratings import Ratings
from unskew.report.result import Result
from unskew.report.text import counted

if TYPE_CHECKING:
    from unskew.report.charts import Figure


def item_counts(ratings: Ratings) -> I64:
    """Return the number of ratings of each item, |R(i)|."""
    return np.bincount(ratings.item, minlength=len(ratings.items))


def by_popularity(counts: I64) -> I64:
    """Return the items, most rated first, ties by ascending id."""
    return np.argsort(-counts, kind="stable")


def gini(amounts: F64 | I64) -> float:
    """Return the Gini index: 0 when all have the same, towards 1 when one has everything."""
    rising = np.sort(np.asarray(amounts, np.float64))
    total = rising.sum()
    if rising.size == 0 or total == 0:
        return float("nan")
    places = np.arange(1, rising.size + 1)
    return float(2 * (places @ rising) / (rising.size * total) - (rising.size + 1) / rising.size)


def effective_size(weight: F64) -> float:
    """Return Kish's effective size, (Σw)² / Σw²: as many equal weights would be as precise."""
    return size_of_sums(float(weight.sum()), float(weight @ weight))


def size_of_sums(total: float, squares: float) -> float:
    """Return Kish's effective size from the sum of weights and that of their squares; of none 0.

    Examples
    --------
    >>> from unskew.data.summary import size_of_sums
    >>> size_of_sums(4.0, 8.0)
    2.0
    """
    return total**2 / squares if squares > 0 else 0.0


def divergence(amounts: F64 | I64) -> float:
    """Return the Kullback-Leibler divergence from uniform, in nats: 0 when all have the same."""
    total = np.sum(amounts)
    if total == 0:
        return float("nan")
    part = np.asarray(amounts, np.float64) / total
    positive = part[part > 0]
    return max(float(np.sum(positive * np.log(positive * part.size))), 0.0)


@dataclass(frozen=True, eq=False)
class Summary(Result):
    """Data in numbers: of one part, of several, or of both parts of a split. Print it.

    `summary` makes one of data, `unskew.splits.counts.count_parts` one of a split.
    """

    name: str
    lines: tuple[str, ...]
    """What is printed."""
    facts: Mapping[str, Any]
    """Every number by its name, for JSON and cards; of data, `parts` is a table."""
    per_item: Mapping[str, I64]
    """Ratings of each item, by part."""
    notes: tuple[str, ...] = ()

    def table(self) -> pl.DataFrame:
        """Return a row per part of data; of a split a row per number."""
        if "parts" in self.facts:
            return pl.DataFrame(self.facts["parts"])
        rows = [(name, value) for name, value in self.facts.items() if name != "label"]
        return pl.DataFrame(rows, schema={"what": pl.String, "value": pl.Float64}, orient="row")

    def part(self, number: int = 0) -> dict[str, Any]:
        """Return a row of the table: of data the numbers of the observed part, or of another."""
        return self.table().row(number, named=True)

    def _content(self) -> Mapping[str, object]:
        return self.facts

    def _summary(self) -> str:
        ratings = sum(int(counts.sum()) for counts in self.per_item.values())
        return f"{self.name}: {counted(ratings, 'rating')}"

    def figure(self) -> Figure:
        """Draw how many ratings items have, the most rated first (log-log), a line per part."""
        import altair as alt

        from unskew.report.charts import as_figure

        rows, notes = [], []
        for part, counts in self.per_item.items():
            falling = np.sort(counts[counts > 0])[::-1]
            # 200 places, evenly spread on the logarithmic axis, show a curve of any length.
            ranks = np.unique(np.geomspace(1, falling.size, 200).round().astype(np.int64))
            rows += [
                {"part": part, "rank": int(rank), "ratings": int(falling[rank - 1])}
                for rank in ranks
            ]
            notes.append(f"{part}: Gini {gini(falling):.3f}")
        chart = (
            alt.Chart(alt.NamedData("rows"))
            .mark_line()
            .encode(
                x=alt.X("rank:Q", scale=alt.Scale(type="log"), title="items, the most rated first"),
                y=alt.Y("ratings:Q", scale=alt.Scale(type="log"), title="ratings"),
                color=alt.Color("part:N", title="part"),
            )
            .properties(width=420, height=260)
        )
        return as_figure(chart, f"Ratings per item of {self.name}", notes, rows)

    def __str__(self) -> str:
        return "\n".join([*self.lines, *(f"  note  {note}" for note in self.notes)])


@checked
def summary(data: Dataset | Ratings) -> Summary:
    """Tell what a data set looks like: sizes, density, inequality, share of liked ratings, times.

    Parameters
    ----------
    data
        What `load` or `read_ratings` returned.

    Examples
    --------
    >>> from unskew.data.formats.catalog import load
    >>> from unskew.data.summary import summary
    >>> print(summary(load({"user": [1, 1, 2], "item": [7, 8, 7], "rating": [5, 1, 3]})))
    ratings
      observed  3 ratings of 2 items by 2 users, density 75.000%
        values 1 to 5, mean 3.000; Gini over items 0.167
        time not known
      note  arrays: arrays, 3 rows; user = user, item = item, rating = rating
    """
    dataset = Dataset("ratings", data, notes=data.notes) if isinstance(data, Ratings) else data
    sources = {"observed": (dataset.ratings, dataset.liked)}
    if dataset.random is not None:
        sources[RANDOM] = dataset.random, dataset.liked
    truth = dataset.truth
    if truth is not None:
        if truth.ratings is dataset.random:
            del sources[RANDOM]
        sources[truth.kind] = truth.ratings, dataset.liked if truth.liked is None else truth.liked
    scale = "" if dataset.scale is None else f", scale {dataset.scale[0]:g} to {dataset.scale[1]:g}"
    threshold = "" if dataset.liked is None else f", liked from {dataset.liked:g}"
    lines, parts, per_item = [f"{dataset.name}{scale}{threshold}"], [], {}
    for name, (part, liked) in sources.items():
        if len(part):
            per_item[name] = item_counts(part)
            parts.append(_part(name, part, per_item[name], liked))
            lines += _part_lines(parts[-1])
    facts = {
        "name": dataset.name,
        "scale": dataset.scale,
        "liked_from": dataset.liked,
        "parts": parts,
        "notes": dataset.notes,
    }
    return Summary(dataset.name, tuple(lines), facts, per_item, dataset.notes)


def _part(name: str, part: Ratings, per_item: I64, liked: float | None) -> dict[str, Any]:
    """Return the numbers of one part: `observed`, or the kind of its true judgments."""
    users = int(np.count_nonzero(np.bincount(part.user)))
    rated = per_item[per_item > 0]
    times = [None, None] if part.time is None else [part.time.min(), part.time.max()]
    first, last = (None if time is None else _moment(int(time)) for time in times)
    return {
        "part": name,
        "ratings": len(part),
        "users": users,  # those who rated; so for the items
        "items": rated.size,
        "density": len(part) / (users * rated.size),
        "gini": gini(rated),  # as valcarce2018 table 2
        "lowest": float(part.value.min()),
        "highest": float(part.value.max()),
        "mean": float(part.value.mean()),
        "liked": None if liked is None else float((part.value >= liked).mean()),
        "first": first,
        "last": last,
    }


def _part_lines(part: Mapping[str, Any]) -> list[str]:
    """Return the numbers of one part as they are printed."""
    liked = "" if part["liked"] is None else f", liked {part['liked']:.1%}"
    return [
        f"  {part['part']}  {counted(part['ratings'], 'rating')} of "
        f"{counted(part['items'], 'item')} by {counted(part['users'], 'user')}, "
        f"density {part['density']:.3%}",
        f"    values {part['lowest']:g} to {part['highest']:g}, mean {part['mean']:.3f}{liked}; "
        f"Gini over items {part['gini']:.3f}",
        "    time "
        + ("not known" if part["first"] is None else f"{part['first']} to {part['last']}"),
    ]


def _moment(microseconds: int) -> str:
    return datetime.fromtimestamp(microseconds // 10**6, UTC).strftime("%Y-%m-%d %H:%M:%S")
