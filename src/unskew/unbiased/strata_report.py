"""`StrataReport`: every metric of every system, stratum by stratum."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np
import polars as pl

from unskew.arrays import F64, I32, I64, Mask, frozen
from unskew.checks import as_count, choose
from unskew.data.ratings import Ids, Ratings
from unskew.data.read.frames import read_frame
from unskew.data.summary import item_counts
from unskew.errors import DataError, SettingError, unknown_name
from unskew.evaluation.scores import Scores
from unskew.judging.judged import Judged
from unskew.judging.shape import Basis
from unskew.report.charts import Figure, as_figure
from unskew.report.result import Result
from unskew.report.tables import Table
from unskew.report.text import counted
from unskew.splits.strata import judgment_bins

BOOTSTRAP, LEVEL = 1_000, 0.95


@dataclass(frozen=True)
class Stratum:
    """A part of the items or of the users."""

    name: str
    size: int
    """Items, users, or judgments in it."""
    judgments: int
    liked: int
    least: float = math.nan
    """The least and the largest of what strata are formed by; NaN for given groups."""
    most: float = math.nan


@dataclass(frozen=True, eq=False)
class StrataReport(Result):
    """Every metric of every system, stratum by stratum. Made by `strata`.

    Arrays are metrics x systems x strata.
    """

    by: str
    of: str
    """What strata are made of: `items`, `users`, or `judgments`."""
    strata: tuple[Stratum, ...]
    systems: tuple[str, ...]
    metrics: tuple[str, ...]
    whole: Scores
    """The scores over everything."""
    value: F64
    """The mean within each stratum; NaN where nobody is averaged."""
    low: F64
    high: F64
    lists: I64
    """How many lists (users) each mean is over."""
    contribution: F64
    """Each stratum's part of the whole mean; NaN for metrics that do not split."""
    share: F64
    """The same as a share of the whole mean; NaN where that is 0."""
    share_low: F64
    share_high: F64
    head: int
    """How many of the first strata are the head; 0 where strata have no order."""
    head_share: F64
    """Metrics x systems x 3: the share of the score from the head, and its interval."""
    level: float = LEVEL
    bootstrap: int = BOOTSTRAP
    notes: tuple[str, ...] = ()

    def table(self) -> pl.DataFrame:
        """Return a row per metric, system and stratum.

        Columns: metric, system, stratum, its size (items, users or judgments), judgments, liked,
        least and most of what it is formed by, lists (averaged), value with its interval low to
        high, contribution, and share of the whole score with its interval.
        """
        rows = []
        for m, metric in enumerate(self.metrics):
            for s, system in enumerate(self.systems):
                for t, stratum in enumerate(self.strata):
                    index = (m, s, t)
                    facts = asdict(stratum)
                    rows.append(
                        {
                            "metric": metric,
                            "system": system,
                            "stratum": facts.pop("name"),
                            **facts,
                            "lists": int(self.lists[index]),
                            "value": self.value[index],
                            "low": self.low[index],
                            "high": self.high[index],
                            "contribution": self.contribution[index],
                            "share": self.share[index],
                            "share_low": self.share_low[index],
                            "share_high": self.share_high[index],
                        }
                    )
        table = pl.DataFrame(rows).with_columns(pl.selectors.float().fill_nan(None))
        bounds = ("least", "most")  # of counts as a rule, which have no decimals
        integers = [name for name in bounds if (table[name].drop_nulls() % 1 == 0).all()]
        return table.with_columns(pl.col(integers).cast(pl.Int64))

    def heads(self) -> pl.DataFrame:
        """Return a row per metric and system: the score, and the share that the head gives.

        Columns: metric, system, score, head (its contribution), rest, head_share, low, high. Empty
        where strata have no order.
        """
        rows = []
        means = self.whole.averages()
        for m, metric in enumerate(self.metrics if self.head else ()):
            for s, system in enumerate(self.systems):
                part = self.contribution[m, s]
                share, low, high = self.head_share[m, s].tolist()
                rows.append(
                    (
                        metric,
                        system,
                        means[system][metric].value,
                        math.fsum(part[: self.head]),
                        math.fsum(part[self.head :]),
                        share,
                        low,
                        high,
                    )
                )
        names = ("score", "head", "rest", "head_share", "low", "high")
        schema = {"metric": pl.String, "system": pl.String, **dict.fromkeys(names, pl.Float64)}
        table = pl.DataFrame(rows, schema, orient="row")
        return table.with_columns(pl.selectors.float().fill_nan(None))

    def wide(self, metric: str | None = None) -> pl.DataFrame:
        """Return one metric (the first unless named): a row per stratum, columns per system."""
        m = self._metric(metric)
        columns: dict[str, Any] = {
            "stratum": [stratum.name for stratum in self.strata],
            self.of: [stratum.size for stratum in self.strata],
            "liked": [stratum.liked for stratum in self.strata],
        }
        split = not np.isnan(self.contribution[m]).all()
        for s, system in enumerate(self.systems):
            columns[system] = self.value[m, s]
            if self.bootstrap:
                columns[f"{system} ±"] = [
                    None if math.isnan(low) else f"{low:.4f} to {high:.4f}"
                    for low, high in zip(self.low[m, s], self.high[m, s], strict=True)
                ]
            if split:
                columns[f"{system} share"] = self.share[m, s]
        return pl.DataFrame(columns).with_columns(pl.selectors.float().fill_nan(None))

    def _metric(self, metric: str | None) -> int:
        return 0 if metric is None else self.metrics.index(choose("metric", metric, self.metrics))

    def _content(self) -> dict[str, object]:
        return {
            "by": self.by,
            "of": self.of,
            "level": self.level,
            "bootstrap": self.bootstrap,
            "head": self.head,
            "strata": self.table(),
            "heads": self.heads(),
            "notes": self.notes,
        }

    def figure(self, metric: str | None = None) -> Figure:
        """Draw one metric: its value in each stratum, and how the score is made up."""
        import altair as alt

        m = self._metric(metric)
        names = [stratum.name for stratum in self.strata]
        rows = []
        for s, system in enumerate(self.systems):
            for t, name in enumerate(names):
                index = (m, s, t)
                numbers = {
                    "value": self.value[index],
                    "low": self.low[index],
                    "high": self.high[index],
                    "share": self.share[index],
                }
                cells = {key: None if np.isnan(v) else float(v) for key, v in numbers.items()}
                rows.append({"system": system, "stratum": name, "place": t, **cells})
        title = f"stratum of {self.of} by {self.by}"
        base = alt.Chart(alt.NamedData(name="rows")).properties(width=520)
        x = alt.X("stratum:N", title=title).sort(names).axis(labelAngle=0)
        color = alt.Color("system:N").scale(domain=list(self.systems))
        value = alt.Y("value:Q", title=self.metrics[m])
        line = base.mark_line(point=True).encode(x=x, y=value, color=color)
        bars = base.mark_rule().encode(x=x, y=alt.Y("low:Q"), y2="high:Q", color=color)
        above = alt.layer(line, bars).properties(height=240)
        shade = alt.Color("place:O").scale(scheme="blues", reverse=True).legend(None)
        parts = base.mark_bar(stroke="white", strokeWidth=1).encode(
            x=alt.X("share:Q", title="share of the score, first stratum on the left")
            .axis(format="%")
            .stack("zero"),
            y=alt.Y("system:N", title=None).sort(list(self.systems)),
            color=shade,
            order=alt.Order("place:Q"),
        )
        panels = [above] if np.isnan(self.share[m]).all() else [above, parts]
        chart = alt.vconcat(*panels, spacing=24).resolve_scale(color="independent")
        return as_figure(chart, f"{self.metrics[m]} by {self.by}", self._explanation(), rows)

    def _explanation(self) -> list[str]:
        inside = {
            "items": "only judgments of its items count",
            "judgments": "only its judgments count",
            "users": "only its users are averaged",
        }[self.of]
        lines = [f"strata of {self.of} by {self.by}; within a stratum {inside}"]
        lines.append("share: the stratum's part of the whole score; shares add up to 1")
        if self.bootstrap:
            lines.append(
                f"intervals: {100 * self.level:g} %, {self.bootstrap:,} bootstrap draws of users"
            )
        return [*lines, self.whole.relevance]

    def display_tables(self, digits: int | None = None) -> list[Table]:
        """Return a table per metric, and the head."""
        digits = self.digits if digits is None else digits
        tables = [Table(metric, self.wide(metric), digits) for metric in self.metrics]
        if self.head:
            tables.append(Table(f"the head: {self._head_name()}", self.heads(), digits))
        return tables

    def _head_name(self) -> str:
        first = self.strata[: self.head]
        size = sum(stratum.size for stratum in first)
        return f"the first {len(first)} of {len(self.strata)} strata ({size:,} {self.of})"

    def _summary(self) -> str:
        return (
            f"{len(self.strata)} strata of {self.of}, {counted(len(self.systems), 'system')}, "
            f"{counted(len(self.metrics), 'metric')}"
        )


BY = ("popularity", "activity", "mainstreamness")
OF = ("items", "users")
EQUAL = ("items", "judgments")
STRATA = 10


@dataclass(frozen=True, eq=False)
class Division:
    """Strata: of each judgment, or of each user; -1 in none."""

    of: str
    by: str
    code: I32
    """The stratum of each item, user, or judgment."""
    names: tuple[str, ...]
    quantity: F64 | None = None
    """What they are formed by, where it is a number."""
    ordered: bool = True
    notes: tuple[str, ...] = ()


def divide(
    judged: Judged,
    scores: Scores,
    by: object,
    of: str | None,
    strata: int | None,
    equal: str | None,
) -> Division:
    """Divide items, users or judgments into strata, as `strata` is asked to.

    `scores` are the scores over everything: of users only those who are averaged are divided.
    """
    basis = judged.basis
    if not isinstance(by, str | Mapping):
        frame = read_frame(by)
        if frame is None:
            raise SettingError(
                f"by must be text, a mapping from ids to groups or a table, got {by!r}"
            )
        by = frame
    if equal is not None and not (isinstance(by, str) and by == "popularity"):
        raise SettingError("equal=… says how to cut by popularity: leave it out here")
    if not isinstance(by, str) or by in basis.judgments.tags:
        if strata is not None:
            raise SettingError("m=… is for strata by a number; these are given: leave it out")
        if isinstance(by, str):
            _refuse_of(of)
            return _tagged(basis.judgments, by)
        whose = choose("of", of or "items", OF)
        return _groups(by, whose, basis.judgments.items if whose == "items" else judged.users)
    _refuse_of(of)
    if by not in BY:
        raise unknown_name("by", by, [*BY, *basis.judgments.tags])
    m = as_count("m", STRATA if strata is None else strata)
    if by == "popularity":
        return _by_popularity(basis, m, choose("equal", equal or "items", EQUAL))
    if basis.train is None:
        raise DataError(f"by={by!r} needs the training ratings: give train=…")
    averaged = np.logical_or.reduce([scores.averaged(name) for name in scores.systems])
    people = np.zeros(len(judged.users), np.bool_)
    people[judged.owner[averaged]] = True
    count = np.diff(basis.train.start).astype(np.float64)
    if by == "activity":
        return _by_quantity("users", by, count, people, m)
    popularity = item_counts(basis.train)[basis.train.item]
    total = np.bincount(basis.train.user, popularity, count.size)
    with np.errstate(invalid="ignore", divide="ignore"):
        mean = total / count
    return _by_quantity("users", by, mean, people, m)


def _refuse_of(of: str | None) -> None:
    if of is not None:
        raise SettingError("of=… says whose ids given groups are of: leave it out here")


def _by_popularity(basis: Basis, m: int, equal: str) -> Division:
    """Part the items that occur in training or test; what only runs hold has no place."""
    judgments, train = basis.judgments, basis.train
    rated = item_counts(judgments) > 0
    if train is None:
        if equal == "judgments":
            raise DataError("equal='judgments' goes by training ratings: give train=…")
        note = "no training ratings: popularity is the number of test ratings"
        counts = item_counts(judgments).astype(np.float64)
        parts = _by_quantity("items", "popularity", counts, rated, m)
        return replace(parts, notes=(note, *parts.notes))
    rated |= item_counts(train) > 0
    counts = item_counts(train).astype(np.float64)
    if equal == "items":
        return _by_quantity("items", "popularity", counts, rated, m)
    bins = judgment_bins(train, basis.view.relevance, m)
    code = np.where(rated, bins.stratum, -1).astype(np.int32)
    return Division("items", "popularity (equal judgments)", code, _numbers(m), counts)


def _by_quantity(of: str, by: str, quantity: F64, among: Mask, m: int) -> Division:
    """Cut what is marked into m equally large parts, by falling quantity; ties by id."""
    ranked = among & ~np.isnan(quantity)
    rows = np.flatnonzero(ranked)
    if m > rows.size:
        raise SettingError(f"{m:,} strata need at least {m:,} {of}; there are {rows.size:,}")
    order = rows[np.argsort(-quantity[rows], kind="stable")]
    code = np.full(quantity.size, -1, np.int32)
    code[order] = np.arange(rows.size, dtype=np.int64) * m // rows.size
    names, notes = _numbers(m), []
    unknown = among & np.isnan(quantity)
    if unknown.any():
        code[unknown] = m
        names = (*names, "without training")
        notes.append(
            f"{of} without training ratings ({int(unknown.sum()):,}) form a separate stratum"
        )
    return Division(of, by, frozen(code), names, quantity, True, tuple(notes))


def _numbers(m: int) -> tuple[str, ...]:
    return tuple(str(number + 1) for number in range(m))


def _groups(by: Mapping[Any, Any] | pl.DataFrame, of: str, ids: Ids) -> Division:
    """Take strata as they are given."""
    if isinstance(by, pl.DataFrame):
        if by.width < 2:
            raise DataError("a table of groups needs ids in its first column, groups in its second")
        raw, group = by.to_series(0), by.to_series(1).cast(pl.String).to_list()
    else:
        raw, group = pl.Series(list(by)), [str(value) for value in by.values()]
    if raw.n_unique() < len(raw):
        raise DataError(
            f"by: {counted(len(raw) - raw.n_unique(), 'id occurs', 'ids occur')} twice: give "
            "each id one group"
        )
    codes = ids.codes(raw)
    names = tuple(sorted({name for name, code in zip(group, codes, strict=True) if code >= 0}))
    if not names:
        raise DataError(
            f"by: none of the ids, such as {raw[0] if len(raw) else None!r}, is one of the {of}; "
            "of='users' or of='items' says whose ids they are"
        )
    number_of = {name: number for number, name in enumerate(names)}
    code = np.full(len(ids), -1, np.int32)
    inside = codes >= 0
    code[codes[inside]] = [
        number_of[name] for name, there in zip(group, inside, strict=True) if there
    ]
    return _with_rest(Division(of, "group", code, names, ordered=False))


def _with_rest(parts: Division) -> Division:
    """Put what has no group into one of its own."""
    ungrouped = int(np.count_nonzero(parts.code < 0))
    if not ungrouped:
        return replace(parts, code=frozen(parts.code))
    code = np.where(parts.code < 0, len(parts.names), parts.code).astype(np.int32)
    note = f"{ungrouped:,} {parts.of} have no group: they are the stratum (none)"
    return replace(parts, code=frozen(code), names=(*parts.names, "(none)"), notes=(note,))


def _tagged(judgments: Ratings, name: str) -> Division:
    column = judgments.tags[name].cast(pl.String)
    names = tuple(sorted(column.drop_nulls().unique().to_list()))
    number_of = {value: number for number, value in enumerate(names)}
    code = np.array([number_of.get(value, -1) for value in column.to_list()], np.int32)
    return _with_rest(Division("judgments", name, code, names, ordered=False))
