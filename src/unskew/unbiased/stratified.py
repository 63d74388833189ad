"""`strata`: any metric by popularity of the items, or by kind of user; where a score comes from.

A mean over everything hides whom and what it is a mean of. Two views of the same score are given.
*Within* a stratum of items only its judgments count, as if nothing else had been judged; within a
stratum of users only these users are averaged. The *contribution* of a stratum is its part of the
whole score: contributions add up to the score, so that each stratum has a share of it.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any, Unpack

import numpy as np
import polars as pl

from unskew.arrays import F64, I32, I64, Mask, frozen
from unskew.checks import as_count, check_share, checked, choose
from unskew.data.ratings import Ids, Ratings
from unskew.engine.rng import key_of
from unskew.engine.threads import map_blocks, resolve
from unskew.errors import DataError, SettingError, unknown_name
from unskew.evaluation.evaluate import MEMORY, labelled, memory_bytes
from unskew.evaluation.scores import UNDEFINED, USERS, Scores, System
from unskew.evaluation.scoring import Progress, list_columns, prepare, remarks, score
from unskew.judging.judged import Judged, as_judged, second_argument
from unskew.judging.reading import DataOptions
from unskew.judging.shape import BLOCK, LIKED, Basis, Matched, Scratch
from unskew.metrics.block import Block
from unskew.metrics.names import Metric
from unskew.metrics.strata import Portion
from unskew.report.charts import Figure, as_figure
from unskew.report.result import Result
from unskew.report.tables import Table
from unskew.splits.popularity import item_counts
from unskew.splits.strata import judgment_bins
from unskew.stats.pairing import paired
from unskew.stats.user_draws import reweighted

METRICS = ("P@10", "Recall@10", "nDCG@10")
"""What is computed when no metrics are named."""
BY = ("popularity", "activity", "mainstreamness")
OF = ("items", "users")
EQUAL = ("items", "judgments")
STRATA = 10
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
                    at = (m, s, t)
                    facts = asdict(stratum)
                    rows.append(
                        {
                            "metric": metric,
                            "system": system,
                            "stratum": facts.pop("name"),
                            **facts,
                            "lists": int(self.lists[at]),
                            "value": self.value[at],
                            "low": self.low[at],
                            "high": self.high[at],
                            "contribution": self.contribution[at],
                            "share": self.share[at],
                            "share_low": self.share_low[at],
                            "share_high": self.share_high[at],
                        }
                    )
        table = pl.DataFrame(rows).with_columns(pl.selectors.float().fill_nan(None))
        bounds = ("least", "most")  # of counts as a rule, which have no decimals
        whole = [name for name in bounds if (table[name].drop_nulls() % 1 == 0).all()]
        return table.with_columns(pl.col(whole).cast(pl.Int64))

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
                at = (m, s, t)
                numbers = {
                    "value": self.value[at],
                    "low": self.low[at],
                    "high": self.high[at],
                    "share": self.share[at],
                }
                known = {key: None if np.isnan(v) else float(v) for key, v in numbers.items()}
                rows.append({"system": system, "stratum": name, "place": t, **known})
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
            f"{len(self.strata)} strata of {self.of}, {len(self.systems)} systems, "
            f"{len(self.metrics)} metrics"
        )


@checked
def strata(
    judgments: object,
    runs: object = None,
    metrics: str | Metric | Iterable[str | Metric] = METRICS,
    *,
    by: str | Mapping[Any, Any] | pl.DataFrame = "popularity",
    of: str | None = None,
    m: int | None = None,
    equal: str | None = None,
    head: int = 1,
    users: str = "with-test",
    undefined: str = "zero",
    bootstrap: int = BOOTSTRAP,
    level: float = LEVEL,
    seed: int = 0,
    threads: int | None = None,
    memory: int | str = MEMORY,
    progress: Progress | None = None,
    **data: Unpack[DataOptions],
) -> StrataReport:
    """Measure systems within strata of items or users, and tell where their score comes from.

    Parameters
    ----------
    judgments, runs, metrics
        Judged data (`judge`) alone, with the metrics as the second argument; or raw data as `judge`
        takes them.
    by
        `popularity`: strata of items by falling number of training ratings (without `train`, of
        test ratings). `activity`: of users by falling number of training ratings.
        `mainstreamness`: of users by the mean number of training ratings of the items in their own
        training ratings, falling. A tag of the judgments, by its name. Or groups: a mapping from
        raw ids to groups, or a table with ids in the first column and groups in the second.
    of
        Whose ids the groups are of: `items` (default) or `users`.
    m
        How many strata, 10 unless given; equally large, ties by id. Not for groups and tags.
    equal
        For popularity: strata of equal numbers of `items` (default), or of equal numbers of liked
        training `judgments` (castells2018 section 5.1.3).
    head
        How many of the first strata are the head.
    users, undefined
        As in `evaluate`. Which users are averaged is looked up within each stratum: by default
        those with a judgment in it.
    bootstrap, level, seed
        Draws of users, with replacement, for the intervals (percentiles); 0 for none.
    threads, memory, progress
        As in `evaluate`; never change a result.
    data
        Of raw data, see `judge`: liked, above, gain, loss, relevance, train, items, ties, depth.

    Returns
    -------
    StrataReport

    Notes
    -----
    Contributions of item strata: P, Recall, DCG, nDCG, RBP, SR, HLU, Judged and R-precision are
    sums over hits, divided by what does not depend on the stratum. Each term of AP goes to the item
    it stands at, RR and HitRate to the first liked item, F1 to the liked items in equal parts.
    bpref, infAP, AUC and the residuals do not split: their contribution is NaN. Any metric splits
    over users.

    Examples
    --------
    >>> from unskew.unbiased.stratified import strata
    >>> train = {"user": [1, 2, 3, 3], "item": ["a", "a", "a", "b"], "rating": [5, 5, 5, 5]}
    >>> test = {"user": [1, 2, 2], "item": ["b", "b", "c"], "rating": [4, 5, 5]}
    >>> runs = {"mine": {1: ["b", "c"], 2: ["c", "d"]}}
    >>> result = strata(test, runs, "P@2", train=train, m=3, liked=4, bootstrap=0)
    >>> result.contribution[0, 0].tolist(), result.value[0, 0].tolist()
    ([0.0, 0.25, 0.25], [nan, 0.25, 0.5])
    """
    choose("users", users, USERS)
    choose("undefined", undefined, UNDEFINED)
    as_count("bootstrap", bootstrap, least=0)
    check_share("level", level)
    runs, metrics = second_argument(judgments, runs, metrics, METRICS)
    wanted = labelled(metrics)
    _refuse_runs(wanted)
    settings = _Settings(
        users=users,
        undefined=undefined,
        seed=seed,
        threads=resolve(threads),
        budget=memory_bytes(memory),
        bootstrap=bootstrap,
        level=level,
    )
    judged = prepare(as_judged(judgments, runs, seed=seed, **data), wanted, settings.threads)
    notes = tuple(dict.fromkeys([*judged.read, *remarks(judged, wanted, users)]))
    case = _Case(judged, wanted, settings, notes)
    whole = case.scores(judged.basis)
    parts = _parts_of(judged, whole, by, of, m, equal)
    if parts.of != "users":
        _refuse_items(wanted)
    size = as_count("head", head)
    if parts.ordered and size >= len(parts.names):
        raise SettingError(f"head={head} leaves nothing of {len(parts.names)} strata: take fewer")
    return _report(case, whole, parts, size if parts.ordered else 0, progress)


@dataclass(frozen=True)
class _Settings:
    """Who is averaged, and with what."""

    users: str
    undefined: str
    seed: int
    threads: int
    budget: int
    bootstrap: int
    level: float


@dataclass(frozen=True, eq=False)
class _Case:
    """The judged lists, what is measured of them, and what is known so far."""

    judged: Judged
    wanted: Mapping[str, Metric]
    settings: _Settings
    notes: tuple[str, ...]

    def scores(self, basis: Basis) -> Scores:
        """Return scores of these lists, as a view of the judgments has them."""
        judged, settings, labels = self.judged, self.settings, tuple(self.wanted)
        systems = score(
            basis,
            judged.matched,
            self.wanted,
            threads=settings.threads,
            budget=settings.budget,
        )
        return Scores(
            labels=labels,
            systems=systems,
            user_ids=judged.users,
            lists=list_columns(judged, basis),
            users=settings.users,
            undefined=settings.undefined,
            order=labels,
            notes=self.notes,
            relevance=str(judged.relevance),
            over="strata" if judged.targets is not None and judged.targets.strata else "lists",
        )


def _refuse_runs(wanted: Mapping[str, Metric]) -> None:
    for label, metric in wanted.items():
        if metric.definition.of == "run":
            raise SettingError(f"{label} describes a whole run: it has no value per list to split")


def _refuse_items(wanted: Mapping[str, Metric]) -> None:
    for label, metric in wanted.items():
        if metric.definition.of == "items":
            raise SettingError(
                f"{label} describes what is recommended, judged or not: it is the same in every "
                f"stratum of items; take by='activity' or 'mainstreamness'"
            )


# Strata


@dataclass(frozen=True, eq=False)
class _Parts:
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


def _parts_of(
    judged: Judged,
    whole: Scores,
    by: str | Mapping[Any, Any] | pl.DataFrame,
    of: str | None,
    strata: int | None,
    equal: str | None,
) -> _Parts:
    basis = judged.basis
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
    averaged = np.logical_or.reduce([whole.averaged(name) for name in whole.systems])
    people = np.zeros(len(judged.users), np.bool_)
    people[judged.owner[averaged]] = True
    count = np.diff(basis.train.start).astype(np.float64)
    if by == "activity":
        return _parts("users", by, count, people, m)
    popularity = item_counts(basis.train)[basis.train.item]
    total = np.bincount(basis.train.user, popularity, count.size)
    with np.errstate(invalid="ignore", divide="ignore"):
        mean = total / count
    return _parts("users", by, mean, people, m)


def _refuse_of(of: str | None) -> None:
    if of is not None:
        raise SettingError("of=… says whose ids given groups are of: leave it out here")


def _by_popularity(basis: Basis, m: int, equal: str) -> _Parts:
    """Part the items that occur in training or test; what only runs hold has no place."""
    judgments, train = basis.judgments, basis.train
    known = item_counts(judgments) > 0
    if train is None:
        if equal == "judgments":
            raise DataError("equal='judgments' goes by training ratings: give train=…")
        note = "no training ratings: popularity is the number of test ratings"
        counts = item_counts(judgments).astype(np.float64)
        parts = _parts("items", "popularity", counts, known, m)
        return replace(parts, notes=(note, *parts.notes))
    known |= item_counts(train) > 0
    counts = item_counts(train).astype(np.float64)
    if equal == "items":
        return _parts("items", "popularity", counts, known, m)
    bins = judgment_bins(train, basis.view.relevance, m)
    code = np.where(known, bins.stratum, -1).astype(np.int32)
    return _Parts("items", "popularity (equal judgments)", code, _numbers(m), counts)


def _parts(of: str, by: str, quantity: F64, among: Mask, m: int) -> _Parts:
    """Cut what is marked into m equally large parts, by falling quantity; ties by id."""
    ranked = among & ~np.isnan(quantity)
    rows = np.flatnonzero(ranked)
    if m > rows.size:
        raise SettingError(f"m={m} strata need as many {of}; there are {rows.size:,}")
    order = rows[np.argsort(-quantity[rows], kind="stable")]
    code = np.full(quantity.size, -1, np.int32)
    code[order] = np.arange(rows.size, dtype=np.int64) * m // rows.size
    names, notes = _numbers(m), []
    unknown = among & np.isnan(quantity)
    if unknown.any():
        code[unknown] = m
        names = (*names, "without training")
        notes.append(f"{int(unknown.sum()):,} {of} without training ratings are a stratum apart")
    return _Parts(of, by, frozen(code), names, quantity, True, tuple(notes))


def _numbers(m: int) -> tuple[str, ...]:
    return tuple(str(number + 1) for number in range(m))


def _groups(by: Mapping[Any, Any] | pl.DataFrame, of: str, ids: Ids) -> _Parts:
    """Take strata as they are given."""
    if isinstance(by, pl.DataFrame):
        if by.width < 2:
            raise DataError("a table of groups needs ids in its first column, groups in its second")
        raw, group = by.to_series(0), by.to_series(1).cast(pl.String).to_list()
    else:
        raw, group = pl.Series(list(by)), [str(value) for value in by.values()]
    if raw.n_unique() < len(raw):
        raise DataError(f"by: {len(raw) - raw.n_unique():,} ids stand twice: give each one group")
    at = ids.codes(raw)
    names = tuple(sorted({name for name, place in zip(group, at, strict=True) if place >= 0}))
    if not names:
        raise DataError(
            f"by: none of the {len(raw):,} ids, such as {raw[0] if len(raw) else None!r}, is one "
            f"of the {of}; of='users' or of='items' says whose ids they are"
        )
    place = {name: number for number, name in enumerate(names)}
    code = np.full(len(ids), -1, np.int32)
    inside = at >= 0
    code[at[inside]] = [place[name] for name, there in zip(group, inside, strict=True) if there]
    return _with_rest(_Parts(of, "group", code, names, ordered=False))


def _with_rest(parts: _Parts) -> _Parts:
    """Put what has no group into one of its own."""
    rest = int(np.count_nonzero(parts.code < 0))
    if not rest:
        return replace(parts, code=frozen(parts.code))
    code = np.where(parts.code < 0, len(parts.names), parts.code).astype(np.int32)
    note = f"{rest:,} {parts.of} have no group: they are the stratum (none)"
    return replace(parts, code=frozen(code), names=(*parts.names, "(none)"), notes=(note,))


def _tagged(judgments: Ratings, name: str) -> _Parts:
    column = judgments.tags[name].cast(pl.String)
    names = tuple(sorted(column.drop_nulls().unique().to_list()))
    place = {value: number for number, value in enumerate(names)}
    code = np.array([place.get(value, -1) for value in column.to_list()], np.int32)
    return _with_rest(_Parts("judgments", name, code, names, ordered=False))


# Measuring


def _report(
    case: _Case,
    whole: Scores,
    parts: _Parts,
    head: int,
    progress: Progress | None,
) -> StrataReport:
    wanted, settings = case.wanted, case.settings
    shape = (len(wanted), len(whole.systems), len(parts.names))
    value, low, high, contribution = (np.full(shape, np.nan) for _ in range(4))
    lists = np.zeros(shape, np.int64)
    described, notes = [], [*case.notes, *parts.notes]
    drawn: list[F64] = []
    for t, name in enumerate(parts.names):
        inside, part = _measure(case, whole, parts, t)
        described.append(_describe(case.judged, parts, t))
        means = inside.averages()
        for s, system in enumerate(whole.systems):
            for at, label in enumerate(wanted):
                value[at, s, t] = means[system][label].value
                lists[at, s, t] = means[system][label].users
        if not lists[:, :, t].any():
            value[:, :, t] = np.nan
            notes.append(f"stratum {name}: nobody has a judgment in it, so it has no value")
        elif settings.bootstrap:
            low[:, :, t], high[:, :, t] = _interval(_drawn(inside, settings), settings.level)
        split = part.averages()
        for s, system in enumerate(whole.systems):
            contribution[:, s, t] = [split[system][label].value for label in wanted]
        if settings.bootstrap:
            drawn.append(_drawn(part, settings))
        if progress is not None:
            progress(t + 1, len(parts.names))
    for at, (label, metric) in enumerate(wanted.items()):
        if not _splits(metric) and parts.of != "users":
            contribution[at] = np.nan
            notes.append(f"{label} is no sum over hits: it has no contributions")
    score = np.array(
        [[whole.averages()[s][label].value for s in whole.systems] for label in wanted]
    )
    share = _divided(contribution, score[:, :, None])
    heads = np.full((*shape[:2], 3), np.nan)
    if head:
        heads[..., 0] = _divided(contribution[..., :head].sum(axis=-1), score)
    share_low, share_high = np.full(shape, np.nan), np.full(shape, np.nan)
    if settings.bootstrap:
        of_draws = np.stack(drawn, axis=-1)  # draws x metrics x systems x strata
        of_draws = _divided(of_draws, of_draws.sum(axis=-1, keepdims=True))
        share_low, share_high = _interval(of_draws, settings.level)
        heads[..., 1], heads[..., 2] = _interval(of_draws[..., :head].sum(axis=-1), settings.level)
        for ends in (share_low, share_high, heads):
            ends[np.isnan(contribution).all(axis=-1)] = np.nan
    if not head:
        heads[:] = np.nan
    return StrataReport(
        by=parts.by,
        of=parts.of,
        strata=tuple(described),
        systems=tuple(whole.systems),
        metrics=tuple(wanted),
        whole=whole,
        value=value,
        low=low,
        high=high,
        lists=lists,
        contribution=contribution,
        share=share,
        share_low=share_low,
        share_high=share_high,
        head=head,
        head_share=heads,
        level=settings.level,
        bootstrap=settings.bootstrap,
        notes=tuple(dict.fromkeys(notes)),
    )


def _describe(judged: Judged, parts: _Parts, t: int) -> Stratum:
    here = parts.code == t
    rows = _judgments_in(judged, parts, t)
    least = most = math.nan
    if parts.quantity is not None and here.any() and not np.isnan(parts.quantity[here]).all():
        least, most = float(parts.quantity[here].min()), float(parts.quantity[here].max())
    return Stratum(
        name=parts.names[t],
        size=int(np.count_nonzero(here)),
        judgments=int(np.count_nonzero(rows)),
        liked=int(np.count_nonzero(rows & (judged.view.label == LIKED))),
        least=least,
        most=most,
    )


def _judgments_in(judged: Judged, parts: _Parts, t: int) -> Mask:
    """Mark the judgments of a stratum."""
    code = parts.code
    if parts.of == "items":
        code = code[judged.judgments.item]
    elif parts.of == "users":
        code = code[judged.owner[judged.judgments.user]]
    here: Mask = code == t
    return here


def _measure(case: _Case, whole: Scores, parts: _Parts, t: int) -> tuple[Scores, Scores]:
    """Return the scores within a stratum, and its parts of all scores."""
    judged = case.judged
    if parts.of == "users":
        here = parts.code[judged.owner] == t
        rows = np.flatnonzero(here)
        few = {name: _only(system, rows) for name, system in whole.systems.items()}
        inside = replace(whole, systems=few, lists=whole.lists[rows])
        kept = {name: _or_zero(system, here) for name, system in whole.systems.items()}
        return inside, replace(whole, systems=kept)
    keep = _judgments_in(judged, parts, t)
    # What divides a contribution is that of all judgments: only the view is masked.
    part = judged.basis.masked(keep, recount=False)
    split = {
        name: _contributions(case, part, matched, whole.systems[name])
        for name, matched in judged.matched.items()
    }
    return case.scores(judged.basis.masked(keep)), replace(whole, systems=split)


def _only(system: System, rows: I64) -> System:
    den = {row: bottom[rows] for row, bottom in system.den.items()}
    return System(system.values[:, rows], den, system.depth[rows])


def _or_zero(system: System, here: Mask) -> System:
    """Keep the values of some lists; 0 for the others, undefined where they are."""
    values = np.where(here | np.isnan(system.values), system.values, 0.0)
    return System(values, system.den, system.depth)


def _splits(metric: Metric) -> bool:
    """Tell whether a metric can be split over strata of items."""
    strata = metric.definition.strata
    return strata is not None and strata.splits(metric.params)


def _contributions(case: _Case, part: Basis, matched: Matched, whole: System) -> System:
    """Return what the hits of a stratum add to each list's value."""
    basis, wanted = case.judged.basis, case.wanted
    total = len(basis.lists)
    values = np.full((len(wanted), total), np.nan)
    bounds = [(low, min(low + BLOCK, total)) for low in range(0, total, BLOCK)]

    def fill(block: tuple[int, int]) -> None:
        lo, hi = block
        full = Block.of(basis, matched, lo, hi, {}, Scratch(), {})
        for row, metric in enumerate(wanted.values()):
            if _splits(metric):
                seen = full.derive(metric.anti, metric.condensed)
                values[row, lo:hi] = _part(seen, part, metric)

    map_blocks(fill, bounds, case.settings.threads, size=total * len(wanted))
    return System(values, whole.den, whole.depth)


def _part(seen: Block, part: Basis, metric: Metric) -> F64:
    """Return the part of a metric that comes from the hits which `part` does not mask."""
    strata = metric.definition.strata
    assert strata is not None
    return strata.part(
        Portion(
            whole=seen,
            judged=part,
            view=part.view.anti if metric.anti else part.view,
            compute=metric.definition.compute,
            params=metric.params,
            cutoff=metric.whole_cutoff,
        )
    )


# Intervals


def _drawn(scores: Scores, settings: _Settings) -> F64:
    """Return draws x metrics x systems; NaN for metrics without a value per user."""
    from unskew.stats import kernels

    out = np.full((settings.bootstrap, len(scores.labels), len(scores.systems)), np.nan)
    if not np.logical_and.reduce([scores.averaged(name) for name in scores.systems]).any():
        return out  # no user whom all systems have a value for
    both = paired(scores)
    key = np.uint64(key_of(settings.seed, "bootstrap"))
    rows = [at for at, label in enumerate(scores.labels) if label in both.metrics]

    def weigh(low: int, weights: F64) -> None:
        kernels.resample(key, low, weights)

    if rows:
        named = [scores.labels[at] for at in rows]
        out[:, rows] = reweighted(both, named, weigh, settings.bootstrap, settings.threads)
    return out


def _interval(draws: F64, level: float) -> tuple[F64, F64]:
    """Return percentiles of the draws that are defined; NaN where none is."""
    flat = draws.reshape(draws.shape[0], -1)
    ends = np.full((2, flat.shape[1]), np.nan)
    known = ~np.isnan(flat).all(axis=0)
    shares = ((1 - level) / 2, (1 + level) / 2)
    ends[:, known] = np.nanquantile(flat[:, known], shares, axis=0)
    low, high = ends.reshape(2, *draws.shape[1:])
    return low, high


def _divided(top: F64, bottom: F64) -> F64:
    with np.errstate(invalid="ignore", divide="ignore"):
        result: F64 = np.where(bottom == 0, np.nan, top / bottom)
    return result
