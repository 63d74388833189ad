"""Online tests in a world whose truth is known: A/B tests, interleaving, multileaving, re-use.

castells2018 section 5.3: users are shown what systems recommend, and what they click (free
feedback) or are asked to judge (forced feedback) says which system is better. Clicks depend on more
than relevance: on the position, on what else was clicked, on what is in fashion. Here users are
simulated in a `World`, so that what a test says can be held against what is true. `online_tests`
tries all kinds of test many times.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from itertools import combinations
from statistics import NormalDist
from typing import Any

import numpy as np
import polars as pl

from unskew.arrays import F64, I32, I64, U8, frozen
from unskew.checks import as_count, as_number, check_fields, check_share, checked, choose
from unskew.data.ratings import Ratings
from unskew.engine.rng import generator, key_of
from unskew.engine.threads import map_blocks
from unskew.errors import DataError, SettingError
from unskew.judging.rank import rank
from unskew.recommend.model import Algorithm
from unskew.report.charts import Figure, as_figure
from unskew.report.result import Printed, p_value
from unskew.splits.split import Split
from unskew.stats.corrections import CORRECTIONS, correct
from unskew.stats.distributions import binomial_half_cdf, student_t_quantile, student_t_sf
from unskew.targets.designs import AllItems
from unskew.worlds.observation import Clustered
from unskew.worlds.tastes import uniform
from unskew.worlds.worlds import World

Systems = Mapping[str, object] | Sequence[Algorithm]
"""Systems by name: algorithms, which are trained, or whatever `rank` takes; or a list of
algorithms, which go by their names."""

K, IMPRESSIONS, LEVEL = 10, 10_000, 0.95
INTERLEAVING = ("team-draft", "balanced")
TRENDS = ("popular", "random")
_BLOCK = 1 << 14  # impressions of one task


# What users do with a list


@dataclass(frozen=True, eq=False)
class Behaviour:
    """What users do, in numbers: p(click) = place x (engage + (1 - engage) x p(click | liked)).

    Made by `Clicks.behaviour`.
    """

    place: F64
    """By position: p(looked at)."""
    if_liked: float
    if_not: float
    engage: F64
    """By item."""
    keep: float
    """What each click on an item of the same group leaves of the chance."""
    group: I32

    def arguments(self) -> tuple[F64, float, float, F64, float, I32]:
        """Return all as kernels take it."""
        return self.place, self.if_liked, self.if_not, self.engage, self.keep, self.group


@dataclass(frozen=True)
class Clicks:
    """Free feedback: users click as they like (castells2018 section 5.3.1).

    An item at position r is looked at with a chance that falls with r. One that is looked at is
    clicked with probability g + (1 - g) p, where p is `if_liked` or `if_not` and g, the item's
    engagement, draws clicks whether it is liked or not.

    Parameters
    ----------
    position
        `log`: p(looked at) = 1 / log2(r + 1). A number η: r^-η; with 0 all positions are alike.
    if_liked, if_not
        p(click) of what is liked, and of what is not: clicks by mistake.
    engagement
        The largest g: 0 = only relevance counts.
    trend
        Which items engage: the `popular` ones (g in proportion to an item's number of observed
        ratings), or at `random` (a number below 1 for each). Or numbers from 0 to 1, one per item.
    redundancy
        How much of the chance is lost with every click, in the same list above, on an item of the
        same group: 0 = nothing, 1 = all of it.
    groups
        The groups of items: None = those of the world's `Clustered` part. A number: so many, dealt
        at random. Or the group of each item.

    Examples
    --------
    >>> from unskew.unbiased.online import Clicks
    >>> Clicks(position=1, engagement=0.5).places(4).round(3).tolist()
    [1.0, 0.5, 0.333, 0.25]
    """

    position: float | str = "log"
    if_liked: float = 0.6
    if_not: float = 0.05
    engagement: float = 0.0
    trend: str | tuple[float, ...] = "popular"
    redundancy: float = 0.0
    groups: int | tuple[int, ...] | None = None

    def __post_init__(self) -> None:
        check_fields(self)
        if isinstance(self.position, str):
            choose("position", self.position, ("log",))
        else:
            as_number("position", self.position)
        for name in ("if_liked", "if_not", "engagement", "redundancy"):
            as_number(name, getattr(self, name), 0.0, 1.0)
        if isinstance(self.trend, str):
            choose("trend", self.trend, TRENDS)
        else:
            object.__setattr__(
                self, "trend", tuple(as_number("trend", one, 0.0, 1.0) for one in self.trend)
            )
        if self.groups is None:
            return
        if isinstance(self.groups, Sequence | np.ndarray):
            object.__setattr__(
                self, "groups", tuple(as_count("groups", one, 0) for one in self.groups)
            )
        else:
            as_count("groups", self.groups)

    def __str__(self) -> str:
        shown = []
        for one in fields(self):
            value = getattr(self, one.name)
            if value != one.default:
                shown.append(f"{one.name}={'given' if isinstance(value, tuple) else value}")
        return f"free clicks ({', '.join(shown)})" if shown else "free clicks"

    def places(self, k: int) -> F64:
        """Return p(looked at) of each position."""
        r = np.arange(1, k + 1, dtype=np.float64)
        if isinstance(self.position, str):
            return 1.0 / np.log2(r + 1.0)
        return np.asarray(r**-self.position, np.float64)

    def behaviour(self, world: World, k: int) -> Behaviour:
        """Return what users of a world do, in numbers."""
        items = len(world.items)
        engage = np.zeros(items)
        if self.engagement:
            engage = self.engagement * self._trend(world)
        group = np.zeros(items, np.int32)
        if self.redundancy:
            group = self._groups(world)
        return Behaviour(
            frozen(self.places(k)),
            float(self.if_liked),
            float(self.if_not),
            frozen(engage),
            1.0 - self.redundancy,
            frozen(group),
        )

    def _trend(self, world: World) -> F64:
        items = len(world.items)
        if not isinstance(self.trend, str):
            return np.array(_of_items("trend", self.trend, items), np.float64)
        if self.trend == "random":
            return uniform(world.seed, "online/trend", np.arange(items), 0)
        counts = np.bincount(world.ratings.item, minlength=items)
        return counts / max(int(counts.max()), 1)

    def _groups(self, world: World) -> I32:
        items = len(world.items)
        if isinstance(self.groups, tuple):
            return np.array(_of_items("groups", self.groups, items), np.int32)
        if self.groups is not None:
            dealt = uniform(world.seed, "online/groups", np.arange(items), 0)
            return (dealt * self.groups).astype(np.int32)
        part = next((one for one in world.parts if isinstance(one, Clustered)), None)
        if part is None:
            raise SettingError(
                f"groups: the world {world.name} has no groups of items; say how many there are, "
                f"such as groups=10, or give the group of each item"
            )
        return part.groups(len(world.users), items, world.seed)[1]


@dataclass(frozen=True)
class ForcedExposure:
    """Forced feedback: every shown item is judged by what is true (castells2018 section 5.3.2).

    Examples
    --------
    >>> from unskew.unbiased.online import ForcedExposure
    >>> ForcedExposure()
    ForcedExposure()
    """

    def __str__(self) -> str:
        return "forced judgments"

    def behaviour(self, world: World, k: int) -> Behaviour:
        """Return a user who clicks all that is liked and nothing else."""
        return Clicks(position=0, if_liked=1, if_not=0).behaviour(world, k)


Feedback = Clicks | ForcedExposure


def _of_items(name: str, values: tuple[Any, ...], items: int) -> tuple[Any, ...]:
    if len(values) != items:
        raise SettingError(f"{name}: {len(values):,} values for {items:,} items; give one per item")
    return values


# What is shown


@dataclass(frozen=True, eq=False)
class Shown:
    """What systems recommend to every user of a world. Made by `top_lists`."""

    systems: tuple[str, ...]
    item: I32
    """Systems x users x k, -1 = an empty place."""
    liked: U8
    """Systems x users x k: 1 where it is truly liked."""
    notes: tuple[str, ...] = ()
    draw_names: tuple[str, ...] = ()
    """What the systems are called in seeds; as they are called unless given."""

    def __post_init__(self) -> None:
        if not self.draw_names:
            object.__setattr__(self, "draw_names", self.systems)

    @property
    def k(self) -> int:
        """The length of the lists."""
        return int(self.item.shape[2])

    def per_user(self) -> F64:
        """Return the true P@k, systems x users."""
        shares: F64 = self.liked.sum(axis=2, dtype=np.int64) / self.k
        return shares

    def true(self, k: int | None = None) -> F64:
        """Return the true P@k of each system: over all users, empty places not liked.

        Of the first `k` places; all unless given.
        """
        top = self.liked[:, :, :k]
        shares: F64 = top.sum(axis=(1, 2), dtype=np.int64) / top[0].size
        return shares

    def only(self, systems: Sequence[str]) -> Shown:
        """Return the lists of some systems.

        Examples
        --------
        >>> import unskew as us
        >>> from unskew.unbiased.online import top_lists
        >>> shop = us.world("shop", users=50, items=40, seed=1)
        >>> systems = [us.recommend.Random(), us.recommend.Popularity()]
        >>> top_lists(shop, systems, k=3).only(["random"]).systems
        ('random',)
        """
        rows = [self.systems.index(choose("system", name, self.systems)) for name in systems]
        drawn_as = tuple(self.draw_names[row] for row in rows)
        item, liked = frozen(self.item[rows]), frozen(self.liked[rows])
        return Shown(tuple(systems), item, liked, self.notes, drawn_as)

    def __repr__(self) -> str:
        return f"Shown({', '.join(self.systems)}: top {self.k} of {self.item.shape[1]:,} users)"


@checked
def top_lists(
    world: World,
    systems: Systems | Shown,
    *,
    k: int | None = None,
    train: Ratings | None = None,
    seed: int = 0,
) -> Shown:
    """Return what systems recommend to every user, and which of it is truly liked.

    Every test of this module takes the result in place of systems: they are then not trained anew.

    Parameters
    ----------
    world
        Where users come from.
    systems
        By name: algorithms, which are trained here, or fitted models and whatever else `rank`
        takes. Or a list of algorithms.
    k
        How many items are shown; 10 unless given.
    train
        What algorithms are trained on; no user is shown items of their own in it. The world's
        observed ratings unless given.
    seed
        Of training.

    Examples
    --------
    >>> import unskew as us
    >>> from unskew.unbiased.online import top_lists
    >>> shop = us.world("shop", users=50, items=40, seed=1)
    >>> top_lists(shop, [us.recommend.Random(), us.recommend.Popularity()], k=3)
    Shown(random, popularity: top 3 of 50 users)
    """
    if isinstance(systems, Shown):
        if train is not None or k not in (None, systems.k):
            raise SettingError(f"these lists are made already, of {systems.k}: leave k, train out")
        return systems
    k = as_count("k", K if k is None else k)
    if k > len(world.items):
        raise SettingError(f"k={k}: the world has only {len(world.items):,} items")
    known = world.ratings if train is None else train
    if not known.users.equals(world.users) or not known.items.equals(world.items):
        raise DataError("train has other users or items than the world: keep the world's ids")
    named = named_systems(systems)
    nothing = known.take(np.zeros(len(known), np.bool_))
    lists = AllItems().lists(Split(known, nothing), liked=world.liked)
    item = np.full((len(named), len(world.users), k), -1, np.int32)
    notes = []
    for at, (name, one) in enumerate(named.items()):
        model = one
        if isinstance(one, Algorithm):
            model = one.fit(known, generator(seed, "fit", *sorted(map(str, one.draw_key.items()))))
        run = rank(model, lists, depth=k)
        place = np.arange(run.item.size) - np.repeat(run.start[:-1], run.depth)
        item[at, np.repeat(np.arange(len(run)), run.depth), place] = run.item
        empty = int(np.count_nonzero(item[at] < 0))
        if empty:
            notes.append(f"{name}: {empty:,} of {item[at].size:,} places are empty")
    liked, unknown = _truth_of(world, item)
    if unknown:
        notes.append(f"{unknown:,} shown items of unknown relevance count as not liked")
    drawn_as = () if isinstance(systems, Mapping) else map(_draw_name, named.values())
    return Shown(tuple(named), frozen(item), frozen(liked), tuple(notes), tuple(drawn_as))


def _draw_name(one: object) -> str:
    return one.draw_name_of() if isinstance(one, Algorithm) else str(one)


def _truth_of(world: World, item: I32) -> tuple[U8, int]:
    """Return whether each shown item is liked, and how many are not known."""
    liked, unknown = np.zeros(item.shape, np.uint8), 0
    for block in world.blocks():
        values = world.values(block)
        rows = np.arange(block.size)[None, :, None]
        here = item[:, block]
        found = np.where(here >= 0, values[rows, here], -np.inf)
        liked[:, block] = found >= world.liked
        unknown += int(np.count_nonzero(np.isnan(found)))
    return liked, unknown


def named_systems(systems: object) -> dict[str, object]:
    """Return systems by name; refuse two of one name, and none."""
    if isinstance(systems, Mapping):
        named = {str(name): one for name, one in systems.items()}
    elif isinstance(systems, Sequence) and all(isinstance(one, Algorithm) for one in systems):
        named = {}
        for one in systems:
            if one.name in named:
                raise SettingError(f"two systems are called {one.name!r}: name them in a mapping")
            named[one.name] = one
    else:
        raise SettingError(
            f"systems: give a mapping from names to systems, or a list of algorithms such as "
            f"[us.recommend.Random(), us.recommend.Popularity()]; got {type(systems).__name__}"
        )
    if not named:
        raise SettingError("systems: give at least one")
    return named


# What tests say


@dataclass(frozen=True, eq=False)
class Verdict:
    """What a test says of pairs of systems: told > 0 if the first is ahead."""

    told: F64
    error: F64
    """Its standard error."""
    df: F64
    """Degrees of freedom of Student's t; infinite for the normal distribution."""
    p: F64

    def interval(self, level: float) -> tuple[F64, F64]:
        """Return both ends of the interval of what was told; all of it lies between -1 and 1."""
        half = quantiles(self.df, level) * self.error
        return np.maximum(self.told - half, -1.0), np.minimum(self.told + half, 1.0)


def quantiles(df: F64, level: float) -> F64:
    """Return how many standard errors wide an interval is, to each side."""
    normal = NormalDist().inv_cdf((1 + level) / 2)
    return np.array(
        [
            normal if math.isinf(one) else student_t_quantile((1 + level) / 2, float(one))
            for one in df
        ]
    )


def pairs_of(count: int) -> list[tuple[int, int]]:
    """Return all pairs of so many systems."""
    return list(combinations(range(count), 2))


def verdict_of_counts(counts: I64, k: int) -> Verdict:
    """Compare clicks per shown item by Welch's t-test; `counts` has lists, clicks, squares."""
    lists, mean, error = mean_clicks(counts, k)
    a, b = np.array(pairs_of(len(counts))).T
    told = mean[a] - mean[b]
    spread = np.sqrt(error[a] ** 2 + error[b] ** 2)
    with np.errstate(divide="ignore", invalid="ignore"):
        df = spread**4 / (error[a] ** 4 / (lists[a] - 1) + error[b] ** 4 / (lists[b] - 1))
    # Without any variance no degrees of freedom are defined; the interval is a point then.
    return _by_t(told, spread, np.where(np.isfinite(df), df, 1.0))


def mean_clicks(counts: I64, k: int) -> tuple[F64, F64, F64]:
    """Return of each system the lists shown, clicks per place, and its standard error."""
    lists, total = counts[:, 0].astype(np.float64), counts[:, 1].astype(np.float64)
    with np.errstate(divide="ignore", invalid="ignore"):
        # One division, as in the true P@k: where all are judged both have the same bits.
        rate = total / (lists * k)
        # n Σc² - (Σc)² in whole numbers: nothing is lost, and without spread it is exactly 0.
        exact = np.array([int(n) * int(q) - int(c) ** 2 for n, c, q in counts.tolist()], np.float64)
        error = np.sqrt(exact / (lists**2 * (lists - 1)))
    return lists, rate, error / k


def verdict_of_users(values: F64) -> Verdict:
    """Compare values of the same users, systems x users, by the paired t-test."""
    a, b = np.array(pairs_of(len(values))).T
    gap = values[a] - values[b]
    n = gap.shape[1]
    spread = gap.std(axis=1, ddof=1) / math.sqrt(n) if n > 1 else np.full(a.size, np.nan)
    return _by_t(gap.mean(axis=1), spread, np.full(a.size, max(n - 1, 1.0)))


def verdict_of_wins(wins: I64, n: int) -> Verdict:
    """Compare impressions won by the sign test; `told` is the share won less the share lost.

    Impressions that neither wins say nothing about p (exact, two-sided).
    """
    a, b = np.array(pairs_of(len(wins))).T
    won, lost = wins[a, b], wins[b, a]
    told = (won - lost) / n
    p = np.minimum(2 * binomial_half_cdf(np.minimum(won, lost), won + lost), 1.0)
    error = np.sqrt(((won + lost) / n - told**2) / n)
    return Verdict(told, error, np.full(a.size, np.inf), p)


def _by_t(told: F64, error: F64, df: F64) -> Verdict:
    with np.errstate(divide="ignore", invalid="ignore"):
        t = np.abs(told) / error
    # No spread at all: equal means are no difference, others a certain one. Too few lists: nothing
    # can be said.
    p = np.where(told == 0, 1.0, 2 * student_t_sf(t, df))
    return Verdict(told, error, df, np.where(np.isnan(p), 1.0, p))


def pair_table(
    shown: Shown, verdict: Verdict, level: float, correction: str | None
) -> pl.DataFrame:
    """Return a row per pair: what was told, and what is true."""
    true, names, rows = shown.true(), shown.systems, []
    low, high = verdict.interval(level)
    # A test of six systems makes 15 comparisons: without correction a third of such tests of equal
    # systems would name a winner.
    corrected = verdict.p if correction is None else correct(verdict.p, correction)
    for at, (a, b) in enumerate(pairs_of(len(names))):
        told = float(verdict.told[at])
        clear = bool(corrected[at] < 1 - level)
        rows.append(
            {
                "a": names[a],
                "b": names[b],
                "difference": told,
                "low": float(low[at]),
                "high": float(high[at]),
                "p": float(verdict.p[at]),
                "p_corrected": float(corrected[at]),
                "winner": (names[a] if told > 0 else names[b]) if clear else None,
                "true": float(true[a] - true[b]),
                "better": None if true[a] == true[b] else names[a if true[a] > true[b] else b],
            }
        )
    return pl.DataFrame(rows, schema=_PAIRS)


_PAIRS = {
    "a": pl.String,
    "b": pl.String,
    "difference": pl.Float64,
    "low": pl.Float64,
    "high": pl.Float64,
    "p": pl.Float64,
    "p_corrected": pl.Float64,
    "winner": pl.String,
    "true": pl.Float64,
    "better": pl.String,
}


def check_correction(correction: str | None) -> None:
    """Refuse a correction that there is not."""
    if correction is not None:
        choose("correction", correction, CORRECTIONS)


def _winners(count: int, level: float, correction: str | None) -> str:
    """Say by which p winners are named."""
    pairs = len(pairs_of(count))
    if pairs == 1:
        return f"winner: p < {1 - level:.3g}"
    how = "not corrected" if correction is None else f"corrected by {correction}"
    return f"winner: p, {how} for {pairs} pairs, < {1 - level:.3g}; intervals are of single pairs"


# A/B tests


@dataclass(frozen=True, eq=False)
class ABTest(Printed):
    """Clicks per shown item of each system, each shown to users of its own. Made by `ab_test`."""

    lists: Shown
    feedback: Feedback
    counts: I64
    """Systems x 3: lists shown, clicks, and the sum of squared clicks per list."""
    verdict: Verdict
    census: bool
    """Whether every user was shown every system's list."""
    level: float = LEVEL
    correction: str | None = "holm"

    def rates(self) -> F64:
        """Return the clicks (or, with forced feedback, liked items) per shown place: P̂@k."""
        return mean_clicks(self.counts, self.lists.k)[1]

    def table(self) -> pl.DataFrame:
        """Return a row per system: lists shown, clicks per place with interval, the true P@k."""
        n, rate, error = mean_clicks(self.counts, self.lists.k)
        half = quantiles(np.maximum(n - 1, 1), self.level) * error
        return pl.DataFrame(
            {
                "system": list(self.lists.systems),
                "lists": self.counts[:, 0],
                "rate": rate,
                "low": np.maximum(rate - half, 0),
                "high": np.minimum(rate + half, 1),
                "true": self.lists.true(),
            }
        )

    def pairs(self) -> pl.DataFrame:
        """Return a row per pair of systems.

        Columns: a, b, difference (of the rates) with its interval low to high, p, p_corrected for
        the number of pairs, winner (null where p_corrected is not below 1 - level), true (the true
        difference of P@k), better.
        """
        return pair_table(self.lists, self.verdict, self.level, self.correction)

    def figure(self) -> Figure:
        """Draw the rate of each system with its interval, and the true P@k beside it."""
        import altair as alt

        base = alt.Chart(alt.NamedData(name="rows"), width=360)
        y = alt.Y("system:N", title=None, sort=None)
        bars = base.mark_rule().encode(x=alt.X("low:Q", title="per shown item"), x2="high:Q", y=y)
        points = base.mark_point(filled=True, size=70).encode(x="rate:Q", y=y)
        truth = base.mark_tick(color="#999999", thickness=3).encode(x="true:Q", y=y)
        return as_figure(
            alt.layer(bars, points, truth),
            "A/B test",
            [*self.footer(), "grey: the true P@k"],
            self.table().to_dicts(),
        )

    def footer(self) -> list[str]:
        """Say how the test was done."""
        how = (
            "every user was shown the list of every system"
            if self.census
            else (f"{int(self.counts[:, 0].sum()):,} impressions, each of a random user and system")
        )
        winners = _winners(len(self.lists.systems), self.level, self.correction)
        return [f"{how}; {self.feedback}; {self.level:.0%} intervals", winners, *self.lists.notes]

    def to_dict(self) -> dict[str, Any]:
        """Return both tables as plain values, for JSON."""
        return {
            "level": self.level,
            "correction": self.correction,
            "systems": self.table().to_dicts(),
            "pairs": self.pairs().to_dicts(),
            "notes": self.footer(),
        }


@checked
def ab_test(
    world: World,
    systems: Systems | Shown,
    impressions: int | None = IMPRESSIONS,
    feedback: Feedback = Clicks(),  # noqa: B008 - frozen
    *,
    k: int | None = None,
    train: Ratings | None = None,
    level: float = LEVEL,
    correction: str | None = "holm",
    seed: int = 0,
) -> ABTest:
    """Show each user the list of one system at random, and compare the clicks.

    Parameters
    ----------
    world, systems, k, train
        As in `top_lists`. Two systems make an A/B test, more a test of several variants.
    impressions
        How many lists are shown, each to a user and by a system drawn at random. None = every user
        is shown the list of every system once: with `Forced()` the rates are then the true P@k
        (castells2018 section 5.3.2).
    feedback
        What users do: `Clicks(…)` or `Forced()`.
    level
        Of the intervals; a system wins a pair if its corrected p is below 1 - level (Welch's t-test
        over lists; over users, paired, where all see everything).
    correction
        Of the p-values of all pairs: `holm`, `bonferroni`, `bh`, `by`, or None.
    seed
        Of users, systems and clicks; and of training.

    Examples
    --------
    >>> import unskew as us
    >>> from unskew.unbiased.online import ForcedExposure, ab_test
    >>> shop = us.world("shop", users=200, items=80, seed=1)
    >>> systems = [us.recommend.Random(), us.recommend.Popularity()]
    >>> test = ab_test(shop, systems, None, ForcedExposure(), k=5)
    >>> test.rates().tolist() == test.table()["true"].to_list()
    True
    """
    check_share("level", level)
    check_correction(correction)
    lists = top_lists(world, systems, k=k, train=train, seed=seed)
    at_least(lists, 2)
    behaviour = behaviour_of(feedback, world, lists.k)
    if impressions is not None:
        counts = ab_counts(lists, behaviour, seed, 0, as_count("impressions", impressions))
        verdict = verdict_of_counts(counts, lists.k)
    else:
        clicks = (log_of(lists, behaviour, seed, None) == 2).sum(axis=2, dtype=np.int64)
        users = clicks.shape[1]
        counts = np.stack([np.full(len(clicks), users), clicks.sum(1), (clicks**2).sum(1)], axis=1)
        verdict = verdict_of_users(clicks / lists.k)
    return ABTest(lists, feedback, counts, verdict, impressions is None, level, correction)


def ab_counts(shown: Shown, behaviour: Behaviour, seed: int, lo: int, hi: int) -> I64:
    """Return lists, clicks and squared clicks of each system in impressions lo to hi."""
    from unskew.unbiased import online_kernels

    key = np.uint64(key_of(seed, "online/ab", *shown.draw_names))

    def one(bounds: tuple[int, int]) -> I64:
        out = np.zeros((len(shown.systems), 3), np.int64)
        first, last = bounds
        online_kernels.ab_block(
            first, last, key, shown.item, shown.liked, *behaviour.arguments(), out
        )
        return out

    return _summed(one, lo, hi, shown.k)


def log_of(shown: Shown, behaviour: Behaviour, seed: int, impressions: int | None) -> U8:
    """Return what an A/B test showed, systems x users x k: 0 never, 1 shown, 2 and clicked."""
    from unskew.unbiased import online_kernels

    key = np.uint64(key_of(seed, "online/ab", *shown.draw_names))
    mark = np.zeros(shown.item.shape, np.uint8)
    census = impressions is None
    count = shown.item.shape[0] * shown.item.shape[1] if impressions is None else impressions
    online_kernels.log_block(
        count, key, census, shown.item, shown.liked, *behaviour.arguments(), mark
    )
    return mark


def _summed(one: Callable[[tuple[int, int]], I64], lo: int, hi: int, k: int) -> I64:
    """Add up the counts of blocks of impressions."""
    blocks = [(at, min(at + _BLOCK, hi)) for at in range(lo, hi, _BLOCK)]
    total: I64 = np.sum(map_blocks(one, blocks, size=(hi - lo) * k), axis=0)
    return total


def behaviour_of(feedback: object, world: World, k: int) -> Behaviour:
    """Return what users do, in numbers; refuse what says nothing about it."""
    if not isinstance(feedback, Clicks | ForcedExposure):
        raise SettingError(f"feedback must be Clicks(…) or Forced(), got {feedback!r}")
    return feedback.behaviour(world, k)


def at_least(shown: Shown, least: int, most: int | None = None) -> None:
    """Refuse too few and too many systems."""
    count = len(shown.systems)
    if count < least or (most is not None and count > most):
        wanted = f"exactly {least}" if least == most else f"at least {least}"
        raise SettingError(f"this takes {wanted} systems, got {count}: {', '.join(shown.systems)}")


# Interleaving


@dataclass(frozen=True, eq=False)
class Interleaving(Printed):
    """Which system wins how many impressions. Made by `interleave` and `multileave`."""

    lists: Shown
    feedback: Feedback
    method: str
    wins: I64
    """Systems x systems: in how many impressions the first gets more clicks than the second."""
    impressions: int
    verdict: Verdict
    level: float = LEVEL
    correction: str | None = "holm"

    def table(self) -> pl.DataFrame:
        """Return a row per pair of systems.

        Columns: a, b, won and lost (impressions), difference (the share won less the share lost)
        with its interval low to high, p (exact sign test), p_corrected for the number of pairs,
        winner (null where p_corrected is not below 1 - level), true (the true difference of P@k),
        better.
        """
        table = pair_table(self.lists, self.verdict, self.level, self.correction)
        pairs = pairs_of(len(self.lists.systems))
        won = pl.Series("won", [int(self.wins[a, b]) for a, b in pairs])
        lost = pl.Series("lost", [int(self.wins[b, a]) for a, b in pairs])
        return table.select("a", "b", won, lost, pl.exclude("a", "b"))

    def shown(self) -> pl.DataFrame:
        """Return the table as people read it: a small p is less than the last decimal."""
        table = self.table()
        names = ("p", "p_corrected")
        return table.with_columns(
            pl.Series(name, [p_value(one) for one in table[name]]) for name in names
        )

    def pairs(self) -> pl.DataFrame:
        """Return the table, as `ABTest.pairs`."""
        return self.table()

    def figure(self) -> Figure:
        """Draw the share won less the share lost of each pair, with its interval."""
        import altair as alt

        rows = [{**row, "pair": f"{row['a']} – {row['b']}"} for row in self.table().to_dicts()]
        base = alt.Chart(alt.NamedData(name="rows"), width=360)
        y = alt.Y("pair:N", title=None, sort=None)
        x = alt.X("low:Q", title="share won - share lost by the first")
        bars = base.mark_rule().encode(x=x, x2="high:Q", y=y)
        points = base.mark_point(filled=True, size=70).encode(x="difference:Q", y=y)
        return as_figure(alt.layer(bars, points), self._title, self.footer(), rows)

    @property
    def _title(self) -> str:
        return "Multileaving" if self.method == "multileave" else f"Interleaving, {self.method}"

    def footer(self) -> list[str]:
        """Say how the test was done."""
        return [
            f"{self._title}: {self.impressions:,} impressions of random users; {self.feedback}; "
            f"{self.level:.0%} intervals",
            _winners(len(self.lists.systems), self.level, self.correction),
            *self.lists.notes,
        ]

    def to_dict(self) -> dict[str, Any]:
        """Return the table as plain values, for JSON."""
        return {
            "method": self.method,
            "impressions": self.impressions,
            "level": self.level,
            "correction": self.correction,
            "pairs": self.table().to_dicts(),
            "notes": self.footer(),
        }


@checked
def interleave(
    world: World,
    systems: Systems | Shown,
    impressions: int = IMPRESSIONS,
    feedback: Feedback = Clicks(),  # noqa: B008 - frozen
    *,
    method: str = "team-draft",
    k: int | None = None,
    train: Ratings | None = None,
    level: float = LEVEL,
    seed: int = 0,
) -> Interleaving:
    """Merge the lists of two systems into one, and see whose items are clicked.

    Both are then exposed to the same users and positions (castells2018 section 5.3.1).

    Parameters
    ----------
    world, systems, k, train
        As in `top_lists`; two systems.
    impressions
        How many merged lists are shown, each to a user drawn at random.
    feedback
        What users do: `Clicks(…)` or `Forced()`.
    method
        `team-draft` (Radlinski, Kurup & Joachims 2008): in each round both systems, in random
        order, add their best item that is not there yet, and get the clicks on what they added.
        `balanced` (Joachims 2003): the lists are merged so that any top of it holds as many of the
        best items of both; clicks count for every list that has the item, down to the depth at
        which the lowest click is found. It can prefer one of two lists under random clicks.
    level
        Of the intervals; a system wins if p < 1 - level (exact sign test over impressions).
    seed
        Of users, merging and clicks; and of training.

    Examples
    --------
    >>> import unskew as us
    >>> from unskew.unbiased.online import interleave
    >>> shop = us.world("shop", users=200, items=80, seed=1)
    >>> test = interleave(shop, [us.recommend.Random(), us.recommend.Popularity()], 5_000)
    >>> test.table()["winner"].to_list(), test.table()["better"].to_list()
    (['popularity'], ['popularity'])
    """
    choose("method", method, INTERLEAVING)
    return _merged(world, systems, impressions, feedback, method, k, train, level, None, seed)


@checked
def multileave(
    world: World,
    systems: Systems | Shown,
    impressions: int = IMPRESSIONS,
    feedback: Feedback = Clicks(),  # noqa: B008 - frozen
    *,
    k: int | None = None,
    train: Ratings | None = None,
    level: float = LEVEL,
    correction: str | None = "holm",
    seed: int = 0,
) -> Interleaving:
    """Merge the lists of several systems into one: team-draft multileaving.

    Schuth et al. 2014. In each round all systems, in random order, add their best item that is not
    there yet; an impression compares the clicks of every two teams.

    Parameters
    ----------
    world, systems, impressions, feedback, k, train, seed
        As in `interleave`; two systems or more.
    level, correction
        As in `ab_test`, by the exact sign test over impressions.

    Examples
    --------
    >>> import unskew as us
    >>> from unskew.unbiased.online import multileave
    >>> shop = us.world("shop", users=200, items=80, seed=1)
    >>> systems = [us.recommend.Random(), us.recommend.Popularity(), us.recommend.AverageRating()]
    >>> multileave(shop, systems, 2_000).table().height
    3
    """
    check_correction(correction)
    return _merged(
        world, systems, impressions, feedback, "multileave", k, train, level, correction, seed
    )


def _merged(
    world: World,
    systems: Systems | Shown,
    impressions: int,
    feedback: Feedback,
    method: str,
    k: int | None,
    train: Ratings | None,
    level: float,
    correction: str | None,
    seed: int,
) -> Interleaving:
    check_share("level", level)
    as_count("impressions", impressions)
    lists = top_lists(world, systems, k=k, train=train, seed=seed)
    at_least(lists, 2, None if method == "multileave" else 2)
    behaviour = behaviour_of(feedback, world, lists.k)
    wins = wins_of(lists, behaviour, method, seed, 0, impressions)
    verdict = verdict_of_wins(wins, impressions)
    return Interleaving(lists, feedback, method, wins, impressions, verdict, level, correction)


def wins_of(shown: Shown, behaviour: Behaviour, method: str, seed: int, lo: int, hi: int) -> I64:
    """Return in how many of impressions lo to hi each system beats each other."""
    from unskew.unbiased import online_kernels

    key = np.uint64(key_of(seed, f"online/{method}", *shown.draw_names))
    balanced = method == "balanced"
    kernel = online_kernels.balanced_block if balanced else online_kernels.team_block

    def one(bounds: tuple[int, int]) -> I64:
        wins = np.zeros((len(shown.systems), len(shown.systems)), np.int64)
        first, last = bounds
        kernel(first, last, key, shown.item, shown.liked, *behaviour.arguments(), wins)
        return wins

    return _summed(one, lo, hi, shown.k)


# Judgments of a test, used again


@dataclass(frozen=True, eq=False)
class Reuse(Printed):
    """Systems by the judgments of an online test. Made by `reuse_judgments`."""

    lists: Shown
    """Those that took part first, then the others."""
    took_part: int
    """How many took part."""
    feedback: Feedback
    users: int
    """Users who came."""
    judged: F64
    """The share of each system's places whose item was shown in the test."""
    values: F64
    """Systems x users who came: P̂@k, what was never shown or clicked being not liked."""
    truth: F64
    """Systems x users who came: the true P@k."""
    liked_share: F64
    """Of what was judged: the share clicked (forced: liked)."""
    level: float = LEVEL
    correction: str | None = "holm"

    def table(self) -> pl.DataFrame:
        """Return a row per system.

        Columns: system, took_part, judged (share of its places whose item was shown), estimate
        (P̂@k: what was not shown counts as not liked), true (of the same users), error (estimate -
        true) with its interval low to high over users, condensed (the share of the judged places
        that was clicked or, if forced, liked).
        """
        error, low, high = mean_and_interval(self.values - self.truth, self.level)
        return pl.DataFrame(
            {
                "system": list(self.lists.systems),
                "took_part": [at < self.took_part for at in range(len(self.values))],
                "judged": self.judged,
                "estimate": self.values.mean(axis=1),
                "true": self.truth.mean(axis=1),
                "error": error,
                "low": low,
                "high": high,
                "condensed": self.liked_share,
            }
        )

    def pairs(self) -> pl.DataFrame:
        """Return a row per pair of systems, as `ABTest.pairs`, with how many of both took part."""
        verdict = verdict_of_users(self.values)
        took = [(a < self.took_part) + (b < self.took_part) for a, b in pairs_of(len(self.values))]
        table = pair_table(self.lists, verdict, self.level, self.correction)
        return table.with_columns(pl.Series("took_part", took, pl.Int64))

    def figure(self) -> Figure:
        """Draw the estimate of each system against the truth."""
        import altair as alt

        rows = [
            {**row, "role": "took part" if row["took_part"] else "did not"}
            for row in self.table().to_dicts()
        ]
        base = alt.Chart(alt.NamedData(name="rows"), width=320, height=320)
        x = alt.X("true:Q", title=f"true P@{self.lists.k}")
        points = base.mark_point(filled=True, size=80).encode(
            x=x,
            y=alt.Y("estimate:Q"),
            color=alt.Color("role:N", title=None),
            shape=alt.Shape("role:N", title=None),
            tooltip=["system:N", "judged:Q"],
        )
        line = base.mark_line(color="#999999", strokeDash=[4, 4]).encode(x=x, y="true:Q")
        return as_figure(alt.layer(line, points), "Judgments used again", self.footer(), rows)

    def footer(self) -> list[str]:
        """Say where the judgments come from."""
        return [
            f"judgments of {self.users:,} users on the lists of {self.took_part} systems; "
            f"{self.feedback}; {self.level:.0%} intervals over users",
            _winners(len(self.lists.systems), self.level, self.correction),
            *self.lists.notes,
        ]

    def to_dict(self) -> dict[str, Any]:
        """Return both tables as plain values, for JSON."""
        return {
            "level": self.level,
            "correction": self.correction,
            "users": self.users,
            "systems": self.table().to_dicts(),
            "pairs": self.pairs().to_dicts(),
            "notes": self.footer(),
        }


@checked
def reuse_judgments(
    world: World,
    systems: Systems | Shown,
    took_part: Sequence[str],
    impressions: int | None = None,
    feedback: Feedback = ForcedExposure(),  # noqa: B008 - frozen
    *,
    k: int | None = None,
    train: Ratings | None = None,
    level: float = LEVEL,
    correction: str | None = "holm",
    seed: int = 0,
) -> Reuse:
    """Judge systems that did not take part in an A/B test by what users did in it.

    castells2018 section 5.3.2: what the others recommend is judged only where a participant
    recommended it too, so that systems like the participants are favoured.

    Parameters
    ----------
    world, systems, k, train
        As in `top_lists`: all systems, participants and others.
    took_part
        Names of the participants.
    impressions, feedback
        Of the A/B test, as in `ab_test`. A user's click on an item counts however often the item
        was shown without one.
    level, correction
        Of the intervals over the users who came, and of the winners of pairs, as in `ab_test`.
    seed
        Of the test; and of training.

    Examples
    --------
    >>> import unskew as us
    >>> from unskew.unbiased.online import reuse_judgments
    >>> shop = us.world("shop", users=200, items=80, seed=1)
    >>> systems = [us.recommend.Random(), us.recommend.Popularity(), us.recommend.AverageRating()]
    >>> found = reuse_judgments(shop, systems, ["random", "popularity"])
    >>> found.table().filter(pl.col("took_part"))["error"].to_list()
    [0.0, 0.0]
    """
    check_share("level", level)
    check_correction(correction)
    every = top_lists(world, systems, k=k, train=train, seed=seed)
    names = list(dict.fromkeys(took_part))
    if not names or isinstance(took_part, str):
        raise SettingError(f"took_part: give a list of names of systems, got {took_part!r}")
    if impressions is not None:
        as_count("impressions", impressions)
    part = every.only(names)
    behaviour = behaviour_of(feedback, world, every.k)
    mark = log_of(part, behaviour, seed, impressions)
    ordered = every.only([*names, *(one for one in every.systems if one not in names)])
    found = _judged_again(ordered, part, mark, feedback)
    return replace(found, level=level, correction=correction)


def _judged_again(every: Shown, part: Shown, mark: U8, feedback: Feedback) -> Reuse:
    from unskew.unbiased import online_kernels

    found = np.zeros(every.item.shape, np.uint8)
    online_kernels.look_up(part.item, frozen(mark), every.item, found)
    came = np.flatnonzero(mark.any(axis=(0, 2)))
    if not came.size:
        raise DataError("the log is empty: no user was shown anything")
    found = found[:, came]
    judged = np.count_nonzero(found, axis=(1, 2))
    clicked = np.count_nonzero(found == 2, axis=(1, 2))
    with np.errstate(invalid="ignore"):
        share = clicked / judged
    return Reuse(
        every,
        len(part.systems),
        feedback,
        int(came.size),
        judged / found[0].size,
        np.count_nonzero(found == 2, axis=2) / every.k,
        every.per_user()[:, came],
        share,
    )


def mean_and_interval(values: F64, level: float) -> tuple[F64, F64, F64]:
    """Return the mean of each row and its interval by Student's t; NaN for a single value."""
    n = values.shape[1]
    mean = values.mean(axis=1)
    if n < 2:
        nothing = np.full(mean.size, np.nan)
        return mean, nothing, nothing
    half = student_t_quantile((1 + level) / 2, n - 1) * values.std(axis=1, ddof=1) / math.sqrt(n)
    return mean, mean - half, mean + half
