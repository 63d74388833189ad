"""`ChanceModel`: what gives the chance of being rated; and the ratings it is fitted to."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from unskew.arrays import F64, I32, I64
from unskew.checks import choose, is_number
from unskew.data.ratings import Ids, Ratings
from unskew.data.read.tables import ITEM, USER, read_table
from unskew.data.relevance import Relevance
from unskew.data.summary import item_counts
from unskew.engine.rng import draw
from unskew.errors import DataError, SettingError
from unskew.judging.rank import tile_users
from unskew.report.text import counted
from unskew.runs import read_run

STEPS = 50


@dataclass(frozen=True, eq=False)
class RatingEvidence:
    """What there is, under one numbering; parts that were not given are empty."""

    test: Ratings
    train: Ratings
    random: Ratings

    @property
    def users(self) -> int:
        """How many users there are."""
        return len(self.test.users)

    @property
    def items(self) -> int:
        """How many items there are."""
        return len(self.test.items)

    def counts(self) -> F64:
        """Ratings of each item in training and test together."""
        total = item_counts(self.train) + item_counts(self.test)
        return total.astype(np.float64)


@dataclass(frozen=True, eq=False)
class ChanceModel:
    """What gives the chance of being rated for any pair of user and item with its rating."""

    name: str
    of: Callable[[I32, I32, F64], F64]
    facts: Mapping[str, Any] = field(default_factory=dict)
    known: bool = True
    notes: tuple[str, ...] = ()
    liked_only: bool = False
    cell: Callable[[int, int], str] | None = None
    """Where the chance of a pair was read, as text for an error; None where it was computed."""


def from_0_up(name: str, value: float) -> float:
    """Return a finite number that is not negative."""
    if not is_number(value) or not 0 <= value < math.inf:
        raise SettingError(f"{name} must be a number from 0 up, got {value!r}")
    return float(value)


def given_model(source: object, evidence: RatingEvidence) -> ChanceModel:
    """Return a model of given probabilities: by item, by pair, or from a function of users."""
    if callable(source) and not isinstance(source, Mapping):
        of = _by_tile(source, evidence)
        return ChanceModel("given", of, {"by": "pair"}, cell=lambda user, item: "")  # noqa: ARG005
    columns = source
    if isinstance(source, Mapping) and all(
        isinstance(value, str) or not hasattr(value, "__len__") for value in source.values()
    ):
        columns = {
            "item": list(source),
            "propensity": [_as_chance(*item) for item in source.items()],
        }
    table = read_table(columns)
    item, user = table.need("item", ITEM, None), table.pick("user", USER, None)
    name = next((c for c in table.frame.columns if c.lower() in ("propensity", "p")), None)
    if name is None:
        raise DataError(
            f"{table.source}: no column `propensity`; there are {', '.join(table.frame.columns)}"
        )
    items = evidence.test.items.codes(table.frame[item]).astype(np.int64)
    inside = items >= 0
    key = items
    if user is not None:
        users = evidence.test.users.codes(table.frame[user]).astype(np.int64)
        inside &= users >= 0
        key = users * evidence.items + items
    rows = np.flatnonzero(inside)
    rows = rows[np.argsort(key[rows], kind="stable")]
    column = table.frame[name]
    value = column.cast(pl.Float64, strict=False).fill_null(math.nan).to_numpy()
    source_name = "propensity" if table.source in ("arrays", "frame") else table.source
    lookup = _Lookup(key[rows], value[rows], rows, None if user is None else evidence.items)
    lookup.check_unique(source_name, table.frame.select(*([user] if user else []), item))

    def cell(user: int, item: int) -> str:
        index = int(lookup.places(np.array([user]), np.array([item]))[0])
        if index < 0:
            return f" (not in {source_name})"
        row = int(rows[index])
        return f" (row {row + 1} of {source_name}: {column[row]!r})"

    by = "item" if user is None else "pair"
    return ChanceModel("given", lambda u, i, v: lookup.of(u, i), {"by": by}, cell=cell)  # noqa: ARG005


@dataclass(frozen=True, eq=False)
class _Lookup:
    """Values by item, or by user and item, of a table with a row each; keys ascend."""

    key: I64
    value: F64
    row: I64
    items: int | None
    """How many items there are, where keys are pairs."""

    def places(self, user: NDArray[Any], item: NDArray[Any]) -> I64:
        """Return where each pair is, -1 = nowhere."""
        keys = item.astype(np.int64)
        if self.items is not None:
            keys = user.astype(np.int64) * self.items + item
        if not self.key.size:
            return np.full(keys.size, -1)
        index = np.minimum(np.searchsorted(self.key, keys), self.key.size - 1)
        return np.where(self.key[index] == keys, index, -1)

    def of(self, user: NDArray[Any], item: NDArray[Any]) -> F64:
        """Return the value of each pair, NaN = none."""
        index = self.places(user, item)
        return np.where(index >= 0, self.value[index] if self.value.size else np.nan, np.nan)

    def check_unique(self, source: str, ids: pl.DataFrame) -> None:
        """Raise an error if two rows give one item, or one pair, different values."""
        again = self.key[1:] == self.key[:-1]
        same = np.isclose(self.value[1:], self.value[:-1], rtol=0, atol=0, equal_nan=True)
        clash = np.flatnonzero(again & ~same)
        if clash.size:
            index = int(clash[0])
            first, second = int(self.row[index]), int(self.row[index + 1])
            name = ", ".join(map(repr, ids.row(first)))
            raise DataError(
                f"{source}: {name} has two propensities, {self.value[index]:g} in row {first + 1} "
                f"and {self.value[index + 1]:g} in row {second + 1}; keep one"
            )


def _as_chance(item: object, value: object) -> float:
    """Return a number of a mapping; what is missing is NaN, which is refused where it is needed."""
    if value is None:
        return math.nan
    if not is_number(value):
        raise DataError(f"propensity: item {item!r} has {value!r}, which is not a number")
    return float(value)  # type: ignore[arg-type]


def _by_tile(
    function: Callable[[I32], F64], evidence: RatingEvidence
) -> Callable[[I32, I32, F64], F64]:
    """Look pairs up in what a function of user numbers returns, a tile of users at a time."""

    def of(user: I32, item: I32, value: F64) -> F64:  # noqa: ARG001
        out = np.full(user.size, np.nan)
        step = tile_users(evidence.items)
        people = np.unique(user)
        for low in range(0, people.size, step):
            block = people[low : low + step]
            tile = np.asarray(function(block.astype(np.int32)))
            if tile.shape != (block.size, evidence.items):
                raise DataError(
                    f"the propensity function returned {tile.shape} for {block.size} users; users "
                    f"x items ({evidence.items}) are needed"
                )
            mine = (user >= block[0]) & (user <= block[-1])
            out[mine] = tile[np.searchsorted(block, user[mine]), item[mine]]
        return out

    return of


MOST_PAIRS = 100_000_000
"""Pairs of users and items that a logistic regression looks at; beyond, some of the users."""


def logistic_model(
    evidence: RatingEvidence, features: Mapping[str, object] | None, ridge: float, seed: int
) -> ChanceModel:
    """Model logit p(rated | u, i) = b + x_u·β + x_i·γ, fitted by Newton's steps over all pairs."""
    ridge = from_0_up("ridge", ridge)
    numberings = {"users": evidence.test.users, "items": evidence.test.items}
    tables = dict(features or {})
    for name in tables:
        choose("features", name, numberings)
    sources = [evidence.train, evidence.test]
    sides = {"users": [part.user for part in sources], "items": [part.item for part in sources]}
    x: dict[str, F64] = {}
    for name, ids in numberings.items():
        counts = sum(np.bincount(codes, minlength=len(ids)) for codes in sides[name])
        if features is None:
            x[name] = _standard(np.log1p(np.asarray(counts, np.float64))[:, None])
        else:
            x[name] = _features(name, tables.get(name), ids)
    chosen = _some_users(evidence, seed)
    beta = _newton(x["users"], x["items"], evidence, chosen, ridge)
    width = x["users"].shape[1]
    a = beta[0] + x["users"] @ beta[1 : 1 + width]
    b = x["items"] @ beta[1 + width :]
    notes = []
    if chosen.size < evidence.users:
        notes.append(f"fitted on {chosen.size:,} of {evidence.users:,} users, drawn at random")

    def of(user: I32, item: I32, value: F64) -> F64:  # noqa: ARG001
        p: F64 = 1.0 / (1.0 + np.exp(-(a[user] + b[item])))
        return p

    facts = {"user features": width, "item features": x["items"].shape[1], "ridge": ridge}
    return ChanceModel("logistic", of, facts, True, tuple(notes))


def _some_users(evidence: RatingEvidence, seed: int) -> I32:
    """Return the users to fit on: all, unless there are too many pairs."""
    limit = max(MOST_PAIRS // max(evidence.items, 1), 1)
    everyone = np.arange(evidence.users, dtype=np.int32)
    if limit >= evidence.users:
        return everyone
    order = np.argsort(draw(seed, "estimate/users", everyone.astype(np.int64)))
    return np.sort(everyone[order[:limit]])


def _newton(users: F64, items: F64, evidence: RatingEvidence, chosen: I32, ridge: float) -> F64:
    """Return the coefficients: sums over users x items, a tile of users at a time."""
    rated = [part.take(np.isin(part.user, chosen)) for part in (evidence.train, evidence.test)]
    by_user = sum(np.bincount(part.user, minlength=len(users)) for part in rated)
    by_item = sum(np.bincount(part.item, minlength=len(items)) for part in rated)
    a, b = users.shape[1], items.shape[1]
    penalty = np.full(1 + a + b, float(ridge))
    penalty[0] = 0.0
    total = float(np.sum(by_user))
    sums = np.concatenate([[total], users.T @ by_user, items.T @ by_item])
    beta = np.zeros(1 + a + b)
    rate = total / (chosen.size * len(items))
    beta[0] = math.log(rate / (1 - rate)) if 0 < rate < 1 else 0.0
    step = tile_users(len(items))
    for _ in range(STEPS):
        slope, curve = sums - penalty * beta, np.diag(penalty)
        column, row_part = items @ beta[1 + a :], beta[0] + users @ beta[1 : 1 + a]
        for low in range(0, chosen.size, step):
            mine = chosen[low : low + step]
            p = 1.0 / (1.0 + np.exp(-(row_part[mine][:, None] + column[None, :])))
            w = p * (1 - p)
            x, row, down = users[mine], w.sum(axis=1), w.sum(axis=0)
            slope -= np.concatenate([[p.sum()], x.T @ p.sum(axis=1), items.T @ p.sum(axis=0)])
            mixed = np.zeros_like(curve)
            mixed[0, 0] = w.sum()
            mixed[0, 1 : 1 + a], mixed[0, 1 + a :] = x.T @ row, items.T @ down
            mixed[1 : 1 + a, 1 : 1 + a] = (x * row[:, None]).T @ x
            mixed[1 : 1 + a, 1 + a :] = x.T @ (w @ items)
            mixed[1 + a :, 1 + a :] = (items * down[:, None]).T @ items
            curve += np.triu(mixed) + np.triu(mixed, 1).T
        change = np.linalg.lstsq(curve, slope, rcond=None)[0]
        beta = beta + change
        if np.abs(change).max() < 1e-8:
            break
    return beta


def _features(name: str, table: object, ids: Ids) -> F64:
    """Return features of all users or items, a row each; what is missing gets the mean."""
    if table is None:
        return np.zeros((len(ids), 0))
    frame = read_table(table).frame
    if frame.width < 2 or not frame.height:
        raise DataError(f"features of {name}: an id column and at least one feature are needed")
    codes = ids.codes(frame.to_series(0))
    rated_rows = codes >= 0
    if not rated_rows.any():
        raise DataError(f"features of {name}: none of the ids in {frame.columns[0]!r} is rated")
    columns: list[F64] = []
    for series in frame.iter_columns():
        if series.name == frame.columns[0]:
            continue
        if series.dtype.is_numeric() or series.dtype == pl.Boolean:
            parts = [series.cast(pl.Float64).fill_null(math.nan).to_numpy()]
        else:
            texts = series.cast(pl.String)
            parts = [
                (texts == level).fill_null(False).cast(pl.Float64).to_numpy()
                for level in texts.drop_nulls().unique().sort().to_list()[1:]
            ]
        for part in parts:
            column = np.full(len(ids), np.nan)
            column[codes[rated_rows]] = part[rated_rows]
            columns.append(np.where(np.isnan(column), np.nanmean(part), column))
    return _standard(np.column_stack(columns)) if columns else np.zeros((len(ids), 0))


def _standard(columns: F64) -> F64:
    """Centre columns and divide by their standard deviation; one that never varies is 0."""
    centred = columns - columns.mean(axis=0)
    spread = centred.std(axis=0)
    scaled: F64 = centred / np.where(spread > 0, spread, 1.0)
    return scaled


MOST_EXPONENT = 30
"""Of popularity; in data it lies near 1, and far larger ones are beyond all numbers."""


def popularity_model(
    evidence: RatingEvidence, exponent: float | None, exposure: object, rule: Relevance | None
) -> ChanceModel:
    """Model p(rated | i) = c n(i)^exponent."""
    counts = evidence.counts()
    facts: dict[str, Any] = {}
    notes: list[str] = []
    if exponent is not None:
        power = from_0_up("exponent", exponent)
        if power > MOST_EXPONENT:
            raise SettingError(f"exponent must be at most {MOST_EXPONENT}, got {exponent:g}")
    elif exposure is not None:
        gamma = _shown_gamma(evidence, exposure, counts)
        power = (gamma + 1) / 2
        facts["gamma"] = gamma
    elif rule is not None:
        return _fitted_popularity(evidence, counts, rule)
    else:
        power = 1.0
        notes.append(
            "exponent 1: correct if, given the item, being rated does not depend on being "
            "liked; random=… or shown=… fits the exponent"
        )
    facts["exponent"] = power
    shape = _power(counts, power)
    # As many ratings in all as there are; with exponent 1 the share of users who rated i.
    scale = float(counts.sum()) / (evidence.users * float(shape.sum()))
    p = _at_most_1(scale * shape, notes)
    # n(i) is what all ratings of an item add up to, so chances of all of them are in proportion to
    # it. Another exponent can hold for a part of the ratings only: the liked ones (Yang et al.).
    is_exact = power == 1.0
    if not is_exact:
        notes.append(
            "the propensities are of liked ratings, up to a factor: P, DCG, RBP and anti-metrics "
            "cannot be estimated from them"
        )

    def of(user: I32, item: I32, value: F64) -> F64:  # noqa: ARG001 - all models are asked alike
        return p[item]

    return ChanceModel("popularity", of, facts, is_exact, tuple(notes), liked_only=not is_exact)


def _fitted_popularity(evidence: RatingEvidence, counts: F64, rule: Relevance) -> ChanceModel:
    """Model p(rated | liked or not, i) = c n(i)^exponent, both fitted for each of the two."""
    notes = ["exponent and scale fitted from randomly chosen items: p(rated | liked or not, item)"]
    liked, facts = _fit_power(evidence, counts, rule, True)
    disliked, more = _fit_power(evidence, counts, rule, False)
    by_side = np.array([_at_most_1(disliked, notes), _at_most_1(liked, notes)])

    def of(user: I32, item: I32, value: F64) -> F64:  # noqa: ARG001
        return by_side[rule.is_liked(value).astype(np.int64), item]

    return ChanceModel("popularity", of, {**facts, **more}, True, tuple(notes))


def _power(counts: F64, exponent: float) -> F64:
    return np.where(counts > 0, np.maximum(counts, 1.0) ** exponent, 0.0)


def _at_most_1(p: F64, notes: list[str]) -> F64:
    over = int(np.count_nonzero(p > 1))
    if over:
        notes.append(f"{counted(over, 'item')} would have a propensity above 1: set to 1")
    return np.minimum(p, 1.0)


def _shown_gamma(evidence: RatingEvidence, exposure: object, counts: F64) -> float:
    """Fit how often items are shown as a power of how often they are rated, by least squares."""
    run = read_run(exposure)
    items, (ours, theirs) = Ids.union(evidence.test.items, run.items)
    times = np.zeros(len(items))
    listed = run.item[run.item >= 0]
    times[theirs] = np.bincount(listed, minlength=len(run.items))
    shown_times = times[ours]
    positive = (shown_times > 0) & (counts > 0)
    x, y = np.log(counts[positive]), np.log(shown_times[positive])
    if x.size < 2 or np.ptp(x) == 0:
        raise DataError(
            f"shown: {counted(x.size, 'item is', 'items are')} both shown and rated, not enough "
            "to fit an exponent; give exponent=…"
        )
    x = x - x.mean()
    return float(x @ (y - y.mean()) / (x @ x))


def _fit_power(
    evidence: RatingEvidence, counts: F64, rule: Relevance, liked: bool
) -> tuple[F64, dict[str, float]]:
    """Fit c and the exponent from the liked (or disliked) ratings and random ratings of each item.

    Of an item that λ users like, λp liked ratings are expected and λs random ones, s being the
    share of pairs that were chosen at random. Given their total, the former are binomial with
    odds p/s: a logistic regression on log n(i) from which λ has gone. The same holds for ratings
    that are not liked. Returns p of each item, and the exponent.
    """
    side = "liked" if liked else "disliked"
    observed = [_counts(part, rule, liked) for part in (evidence.train, evidence.test)]
    rated = observed[0] + observed[1]
    random = _counts(evidence.random, rule, liked)
    used = (rated + random > 0) & (counts > 0)
    name = "exponent" if liked else "exponent, disliked"
    if not liked and not rated.any():
        return np.ones(counts.size), {}  # there is nothing to weigh
    if not random[used].any() or not rated.any():
        where = "random ratings of rated items" if rated.any() else "ratings"
        raise DataError(
            f"random: no {side} rating to fit the exponent from, as the {where} hold none; give "
            f"more random ratings, or an exponent of 1"
        )
    x = np.log(counts[used])
    design = np.column_stack([np.ones(x.size), x])
    beta = np.zeros(2)
    top, total = rated[used], (rated + random)[used]
    for _ in range(STEPS):
        odds = 1.0 / (1.0 + np.exp(-np.clip(design @ beta, -700.0, 700.0)))
        slope = design.T @ (top - total * odds)
        curve = (design * (total * odds * (1 - odds))[:, None]).T @ design
        if np.linalg.matrix_rank(curve) < 2:  # all items alike: no exponent in the data
            beta = np.array([math.log(top.sum() / max(total.sum() - top.sum(), 1.0)), 0.0])
            break
        step = np.linalg.solve(curve, slope)
        beta = beta + step
        if np.abs(step).max() < 1e-10:
            break
    share = len(evidence.random) / (evidence.users * evidence.items)
    return math.exp(beta[0]) * share * _power(counts, float(beta[1])), {name: float(beta[1])}


def _counts(ratings: Ratings, rule: Relevance, liked: bool) -> F64:
    """Return how many liked (or disliked) ratings each item has."""
    mine = rule.is_liked(ratings.value) == liked
    return np.bincount(ratings.item[mine], minlength=len(ratings.items)).astype(np.float64)


def naive_bayes_model(evidence: RatingEvidence, alpha: float) -> ChanceModel:
    """Model p(rated | rating r) = p(r | rated) p(rated) / p(r)."""
    if not len(evidence.random):
        raise SettingError(
            "naive-bayes needs random=…: ratings of randomly chosen items, to know how often each "
            "rating occurs"
        )
    alpha = from_0_up("alpha", alpha)
    values = np.concatenate([evidence.train.value, evidence.test.value])
    levels, times = np.unique(values, return_counts=True)
    index = np.searchsorted(levels, evidence.random.value)
    inside = (index < levels.size) & (
        levels[np.minimum(index, levels.size - 1)] == evidence.random.value
    )
    outside = int(np.count_nonzero(~inside))
    counts = np.bincount(index[inside], minlength=levels.size) + float(alpha)
    if (counts == 0).any():
        level = levels[int(np.argmin(counts))]
        raise DataError(
            f"random: the rating {level:g} does not occur, so its propensity is not known; give "
            f"alpha above 0"
        )
    often = counts / (counts.sum() + outside)
    rated = values.size / (evidence.users * evidence.items)
    p = times / values.size * rated / often
    notes = []
    if outside:
        notes.append(
            f"{counted(outside, 'random rating has', 'random ratings have')} a value that does "
            "not occur in the data"
        )
    if (p > 1).any():
        notes.append(
            f"{counted(int((p > 1).sum()), 'rating')} would have a propensity above 1: set to 1"
        )
    p = np.minimum(p, 1.0)

    def of(user: I32, item: I32, value: F64) -> F64:  # noqa: ARG001
        index = np.minimum(np.searchsorted(levels, value), levels.size - 1)
        return np.where(levels[index] == value, p[index], np.nan)

    facts = {f"p({level:g})": float(chance) for level, chance in zip(levels, p, strict=True)}
    return ChanceModel("naive-bayes", of, facts, True, tuple(notes))
