"""`order_sensitivity`: how far lists depend on the order in which candidates are presented."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl

from unskew.arrays import F64
from unskew.checks import as_count, check_share, checked
from unskew.errors import DataError, SettingError
from unskew.report.result import Result
from unskew.report.tables import Table
from unskew.report.text import counted, number, p_value
from unskew.runs import Run, read_run
from unskew.stats.distributions import mean_interval
from unskew.stats.list_similarity import PlacedLists, chance_likeness, likeness, place_lists
from unskew.stats.pairing import paired
from unskew.stats.presented_orders import PositionEffect, check_presented, position_effect


@dataclass(frozen=True)
class ListLikeness:
    """One measure of how alike the lists of a user are."""

    measure: str
    mean: float
    """Over users of the mean over pairs of shuffles."""
    low: float | None
    high: float | None
    chance: float | None
    """Of two random orders of the same candidates; None where these are not known."""
    users: int


@dataclass(frozen=True)
class MetricSpread:
    """How a metric varies between shuffles."""

    metric: str
    mean: float
    """Over users and shuffles."""
    range_of_user: float
    """Mean over users of the largest less the smallest value."""
    sd_of_user: float
    """Root of the mean over users of the variance between shuffles."""
    sd_of_mean: float
    """Standard deviation between shuffles of the mean over users."""
    share: float | None
    """Of the variance of a value: what is due to the shuffle; the rest is due to the user."""
    users: int


@dataclass(frozen=True, eq=False)
class OrderSensitivity(Result):
    """How far the lists of one system depend on the order of its candidates.

    Made by `order_sensitivity`.
    """

    shuffles: tuple[str, ...]
    users: int
    k: int
    likenesses: tuple[ListLikeness, ...]
    spreads: tuple[MetricSpread, ...]
    position: PositionEffect | None
    confidence: float
    notes: tuple[str, ...] = ()

    def table(self) -> pl.DataFrame:
        """Return a row per measure of likeness: mean, low, high, chance, users."""
        return pl.DataFrame(
            [vars(one) for one in self.likenesses], schema_overrides={"chance": pl.Float64}
        )

    def spread(self) -> pl.DataFrame:
        """Return a row per metric: how it varies between shuffles; see `MetricSpread`."""
        names = list(MetricSpread.__dataclass_fields__)
        kinds = dict.fromkeys(names[1:-1], pl.Float64)
        schema = {"metric": pl.String, **kinds, "users": pl.Int64}
        return pl.DataFrame([vars(one) for one in self.spreads], schema=schema)

    def display_tables(self, digits: int | None = None) -> list[Table]:
        """Return the likeness of lists and, with scores, the spread of metrics."""
        digits = self.digits if digits is None else digits
        header = ["", "mean", f"{100 * self.confidence:g} % interval", "chance", "users"]
        rows = [
            [
                one.measure,
                number(one.mean, digits),
                _interval(one.low, one.high, digits),
                "–" if one.chance is None else number(one.chance, digits),
                f"{one.users:,}",
            ]
            for one in self.likenesses
        ]
        many = counted(len(self.shuffles), "shuffle")
        tables = [
            Table.of_rows(header, rows, left=(0,), title=f"lists of a user, {many}: how alike")
        ]
        if self.spreads:
            heads = ["metric", "mean", "range of a user", "sd of a user", "sd of the mean", "share"]
            lines = [
                [
                    one.metric,
                    *(
                        number(value, digits)
                        for value in (one.mean, one.range_of_user, one.sd_of_user, one.sd_of_mean)
                    ),
                    "–" if one.share is None else f"{one.share:.3f}",
                ]
                for one in self.spreads
            ]
            title = "metrics: how they vary between shuffles"
            tables.append(Table.of_rows(heads, lines, left=(0,), title=title))
        return tables

    def _content(self) -> dict[str, object]:
        return {
            "shuffles": self.shuffles,
            "users": self.users,
            "k": self.k,
            "likeness": self.table(),
            "spread": self.spread(),
            "position": None if self.position is None else vars(self.position),
            "confidence": self.confidence,
            "notes": self.footer(),
        }

    def _explanation(self) -> list[str]:
        lines = [
            "mean over users of the mean over pairs of shuffles; its interval is over users, for "
            "shuffles like these",
            "overlap: share of the first places that two lists share; RBO weighs the top more; "
            "tau: of the items that both lists have",
        ]
        if any(one.chance is None for one in self.likenesses):
            lines.append(
                "chance is not known: lists do not hold the same items in all shuffles, and "
                "presented=… is not given"
            )
        if self.spreads:
            lines.append("share: of the variance of one value, what is due to the shuffle")
        lines.append(
            "a system that draws at random changes its lists without a shuffle, too: lists of the "
            "same order, given twice, tell how much"
        )
        if self.position is not None:
            one = self.position
            lines.append(
                f"position: {one.slope:+.3f} places later in the list per place presented later, "
                f"{100 * self.confidence:g} % interval {_interval(one.low, one.high, 3)}, "
                f"{counted(one.users, 'user')}; permutation test: p = {p_value(one.p)}"
            )
        return lines

    def _conclusion(self) -> list[str]:
        one = self.position
        if one is None or one.p > round(1 - self.confidence, 12):
            return []
        word = "sooner" if one.slope > 0 else "later"
        return [f"on average, an item that is presented sooner is listed {word}"]

    def _summary(self) -> str:
        return f"{counted(len(self.shuffles), 'shuffle')}, {counted(self.users, 'user')}"


@checked
def order_sensitivity(
    runs: object,
    *,
    presented: object = None,
    scores: object = None,
    k: int = 10,
    p: float = 0.9,
    confidence: float = 0.95,
    permutations: int = 1_999,
    seed: int = 0,
) -> OrderSensitivity:
    """Tell how far the lists of a system change when its candidates come in another order.

    For rankers that read candidates one after the other, such as language models: the same system
    ranks the same candidates, presented in several orders (shuffles).

    Parameters
    ----------
    runs
        The lists of each shuffle: two or more runs, in a list or by name, each as `read_run` takes
        them. Users that a run lacks are left out, and counted.
    presented
        The order in which candidates were presented, in the same form and order as `runs`, with
        the same candidates in all shuffles. Gives the position effect, and the chance values.
    scores
        Of the same runs: what `evaluate` gave for them, as systems of one test set, or values per
        user (see `paired`). Gives the spread of each metric between shuffles.
    k
        Of the overlap.
    p
        Of RBO: how likely a reader goes on to the next place.
    confidence
        Of the intervals; 1 - confidence is the level of the test.
    permutations
        Of presented orders within users, for the test of the position effect.
    seed
        Of the permutations.

    References
    ----------
    Webber, Moffat and Zobel (TOIS 2010): RBO.

    Examples
    --------
    >>> import unskew as us
    >>> runs = [{1: ["a", "b", "c"], 2: ["a", "b", "c"]}, {1: ["a", "c", "b"], 2: ["b", "a", "c"]}]
    >>> result = us.stats.order_sensitivity(runs, k=1)
    >>> result.table().select("measure", "mean", "chance").row(0)
    ('overlap@1', 0.5, 0.3333333333333333)
    """
    as_count("k", k)
    as_count("permutations", permutations)
    check_share("p", p)
    check_share("confidence", confidence)
    given = _read("runs", runs)
    if len(given) < 2:
        raise DataError(f"at least 2 shuffles are needed, got {len(given)}")
    orders = None if presented is None else _read("presented", presented)
    if orders is not None and len(orders) != len(given):
        raise SettingError(
            f"presented must hold one order per run: {len(given)} runs, {len(orders)} orders"
        )
    every = place_lists([*given.values(), *(orders or {}).values()])
    lists, shown = _apart(every, len(given))
    if not len(every.users):
        raise DataError("no user has a list in every shuffle")
    lost = every.left_out
    notes = [f"{counted(lost, 'user')} that not all shuffles have left out"] if lost else []
    effect = None
    if shown is not None:
        unknown = int(check_presented(lists, shown).sum())
        if unknown:
            notes.append(f"{counted(unknown, 'listed item')} not presented: left out of position")
        effect = position_effect(lists, shown, confidence, permutations, seed)
    return OrderSensitivity(
        shuffles=tuple(given),
        users=len(every.users),
        k=k,
        likenesses=_likenesses(lists, _candidates(lists, shown), k, p, confidence),
        spreads=() if scores is None else _spreads(scores, tuple(given)),
        position=effect,
        confidence=confidence,
        notes=tuple(notes),
    )


def _read(name: str, sources: Any) -> dict[str, Run]:
    """Read the runs of all shuffles, by name."""
    if isinstance(sources, Mapping):
        named = {str(key): one for key, one in sources.items()}
    elif isinstance(sources, Sequence) and not isinstance(sources, str | bytes):
        named = {str(number): one for number, one in enumerate(sources, start=1)}
    else:
        raise SettingError(
            f"{name} must be a list of runs, or runs by name; got {type(sources).__name__}"
        )
    runs = {}
    for key, one in named.items():
        try:
            runs[key] = one if isinstance(one, Run) else read_run(one)
        except (DataError, SettingError) as problem:
            raise type(problem)(f"{name} of shuffle {key!r}: {problem}") from None
    return runs


def _apart(every: PlacedLists, runs: int) -> tuple[PlacedLists, PlacedLists | None]:
    """Return the lists and the presented orders, which share a numbering."""

    def part(low: int, high: int) -> PlacedLists:
        own = slice(low, high)
        return PlacedLists(
            every.users, every.items, every.key[own], every.place[own], every.depth[own]
        )

    rest = len(every.key)
    return part(0, runs), part(runs, rest) if rest > runs else None


def _candidates(lists: PlacedLists, shown: PlacedLists | None) -> F64 | None:
    """Return how many candidates each user has: as presented, or as listed by all shuffles."""
    if shown is not None:
        return shown.depth[0].astype(np.float64)
    same = all(np.array_equal(key, lists.key[0]) for key in lists.key[1:])
    return lists.depth[0].astype(np.float64) if same else None


def _likenesses(
    lists: PlacedLists, candidates: F64 | None, k: int, p: float, confidence: float
) -> tuple[ListLikeness, ...]:
    values = likeness(lists, k, p)
    chances: tuple[float | None, ...] = (None, None, 0.0)
    if candidates is not None:
        depth = np.minimum.reduce(lists.depth)
        overlap, rbo = chance_likeness(candidates, depth, k, p)
        chances = (_mean(overlap), _mean(rbo), 0.0)
    measures = {f"overlap@{k}": values.overlap, f"RBO(p={p:g})": values.rbo, "tau": values.tau}
    result = []
    for (name, each), chance in zip(measures.items(), chances, strict=True):
        known = each[~np.isnan(each)].tolist()
        mean, low, high = mean_interval(known, confidence)
        result.append(
            ListLikeness(name, math.nan if mean is None else mean, low, high, chance, len(known))
        )
    return tuple(result)


def _mean(values: F64) -> float:
    return math.fsum(values.tolist()) / values.size


def _spreads(scores: Any, shuffles: tuple[str, ...]) -> tuple[MetricSpread, ...]:
    """Return how each metric varies between the shuffles, which are the systems of the scores."""
    values = paired(scores)
    if len(values.systems) != len(shuffles):
        raise SettingError(
            f"scores must hold one system per shuffle: {len(shuffles)} shuffles, "
            f"{len(values.systems)} systems"
        )
    return tuple(_spread(label, values.complete(label)) for label in values.metrics)


def _spread(label: str, values: F64) -> MetricSpread:
    """Return the spread of a metric, users x shuffles.

    The share is of the components of variance of a table with one factor, the user: the mean
    square within users, by itself plus that between users less it, over the number of shuffles.
    """
    users, shuffles = values.shape
    within = _mean(values.var(axis=1, ddof=1))
    share = None
    if users > 1:
        between = max(float(values.mean(axis=1).var(ddof=1)) - within / shuffles, 0.0)
        share = within / (within + between) if within + between > 0 else None
    means = [_mean(column) for column in values.T]
    return MetricSpread(
        metric=label,
        mean=math.fsum(means) / shuffles,
        range_of_user=_mean(values.max(axis=1) - values.min(axis=1)),
        sd_of_user=math.sqrt(within),
        sd_of_mean=float(np.std(means, ddof=1)),
        share=share,
        users=users,
    )


def _interval(low: float | None, high: float | None, digits: int) -> str:
    if low is None or high is None:
        return "–"
    return f"[{number(low, digits)}, {number(high, digits)}]"
