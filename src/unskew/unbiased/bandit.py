"""Logged bandit feedback: what another policy would have earned, from the log of the one that ran.

A log has a row per shown action: the action, its position, the reward, and the propensity with
which the logging policy chose it. `policy_value` estimates the mean reward of another policy by
inverse propensities (IPS), self-normalised (SNIPS), by a model of the reward (direct method, DM),
and by both (doubly robust, DR). Logs in the format of the Open Bandit Dataset are read as they are.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from statistics import NormalDist
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from unskew.arrays import F64, I32, I64, frozen
from unskew.checks import as_count, check_share, checked, choose
from unskew.data.ratings import Ids
from unskew.data.readers import read_table
from unskew.engine.rng import draw, key_of
from unskew.engine.threads import map_blocks, one_blas_thread
from unskew.errors import DataError, SettingError
from unskew.report.charts import Figure, as_figure
from unskew.report.result import Printed
from unskew.unbiased.propensities import LEAST

Policy = str | Mapping[Any, float] | pl.DataFrame | NDArray[Any] | Callable[[pl.DataFrame], Any]
"""See `policy_value`."""

ACTION = ("action", "actionid", "itemid", "item", "arm")
POSITION = ("position", "pos", "slot", "rank")
REWARD = ("reward", "click", "clicked", "rating", "label", "outcome")
PROPENSITY = ("propensity", "propensityscore", "pscore", "probability", "actionprob")
ROUND = ("round", "roundid", "impression", "impressionid")
ESTIMATORS = ("ips", "snips", "dm", "dr")
BOOTSTRAP, LEVEL, FOLDS, PRIOR = 1_000, 0.95, 5, 1.0
_CELLS = 1 << 22  # probabilities held at a time


@dataclass(frozen=True, eq=False)
class BanditLog:
    """What a policy showed and what came of it: a row per shown action. Made by `read_log`."""

    actions: Ids
    positions: Ids
    action: I32
    position: I32
    reward: F64
    propensity: F64
    """The chance with which the logging policy chose the action there."""
    round: I64
    """Rows of one round are drawn together; every row is its own unless there was a column."""
    context: pl.DataFrame
    """All other columns."""
    notes: tuple[str, ...] = ()

    def __len__(self) -> int:
        return int(self.action.size)

    def __repr__(self) -> str:
        return (
            f"BanditLog({len(self):,} rows, {len(self.actions):,} actions, "
            f"{len(self.positions):,} positions, mean reward {self.mean:.4g})"
        )

    @property
    def mean(self) -> float:
        """The mean reward of the policy that ran."""
        return math.fsum(self.reward) / len(self)

    def frame(self, lo: int, hi: int) -> pl.DataFrame:
        """Return rows lo..hi as a table: action, position and the context."""
        columns = {
            "action": self.actions.raw(self.action[lo:hi]),
            "position": self.positions.raw(self.position[lo:hi]),
        }
        rest = self.context[lo:hi].drop("action", "position", strict=False)
        return pl.DataFrame({**columns, **rest.to_dict()})


@checked
def read_log(
    source: object,
    *,
    action: str | None = None,
    position: str | None = None,
    reward: str | None = None,
    propensity: str | None = None,
    round: str | None = None,  # noqa: A002 - the word of the field
    actions: Sequence[object] | None = None,
) -> BanditLog:
    """Read logged bandit feedback.

    Parameters
    ----------
    source
        A path (CSV, TSV, Parquet, each also gzipped), a table, or a mapping of column names to
        arrays. Columns are recognised by usual names, those of the Open Bandit Dataset among them
        (`item_id`, `position`, `click`, `propensity_score`).
    action, position, reward, propensity, round
        Names of columns that are called otherwise. Without a position all rows have the same;
        without a round every row is one of its own.
    actions
        All actions there are, in case the log does not show each of them.

    Examples
    --------
    >>> from unskew.unbiased.bandit import read_log
    >>> read_log(
    ...     {"item_id": [1, 2, 1], "position": [1, 2, 1], "click": [0, 1, 0],
    ...      "propensity_score": [0.5, 0.25, 0.5]}
    ... )
    BanditLog(3 rows, 2 actions, 2 positions, mean reward 0.3333)
    """
    table = read_table(source)
    frame = table.frame
    if not frame.height:
        raise DataError(f"{table.source}: the log has no rows")
    columns = {
        "action": table.need("action", ACTION, action),
        "reward": table.need("reward", REWARD, reward),
        "propensity": table.need("propensity", PROPENSITY, propensity),
    }
    for name, usual, given in (("position", POSITION, position), ("round", ROUND, round)):
        found = table.pick(name, usual, given, tuple(columns.values()))
        if found is not None:
            columns[name] = found
    notes = []
    ids, code = Ids.number(frame[columns["action"]])
    if actions is not None:
        ids, code = _all_actions(frame[columns["action"]], pl.Series(list(actions)))
    if "position" in columns:
        places, place = Ids.number(frame[columns["position"]])
    else:
        places, place = Ids(pl.Series([1])), np.zeros(frame.height, np.int32)
        notes.append("no position column: all rows have the same position")
    rounds = np.arange(frame.height)
    if "round" in columns:
        rounds = Ids.number(frame[columns["round"]])[1].astype(np.int64)
    used = set(columns.values())
    earned = _numbers(frame, columns["reward"], table.source)
    chance = _numbers(frame, columns["propensity"], table.source)
    _check_propensity(chance, columns["propensity"], table.source)
    context = frame.drop(*columns.values()).with_columns(
        _as_numbers(column) for column in frame.iter_columns() if column.name not in used
    )
    return BanditLog(
        ids,
        places,
        frozen(code),
        frozen(place),
        frozen(earned),
        frozen(chance),
        frozen(rounds),
        context,
        tuple(notes),
    )


def _as_numbers(column: pl.Series) -> pl.Series:
    """Return a column of text as numbers where all of it is numbers: files hold text."""
    if column.dtype != pl.String:
        return column
    numbers = column.cast(pl.Float64, strict=False)
    return column if numbers.null_count() > column.null_count() else numbers


def _all_actions(shown: pl.Series, every: pl.Series) -> tuple[Ids, I32]:
    ids = Ids.number(every)[0]
    code = ids.codes(shown)
    if (code < 0).any():
        first = shown[int(np.argmax(code < 0))]
        raise DataError(
            f"actions: {int(np.count_nonzero(code < 0)):,} rows of the log show one that is not "
            f"among them, the first: {first!r}"
        )
    return ids, code


def _numbers(frame: pl.DataFrame, name: str, source: str) -> F64:
    column = frame[name]
    values = column.cast(pl.Float64, strict=False)
    wrong = (values.is_null() | values.is_nan() | values.is_infinite()).fill_null(value=True)
    if wrong.any():
        row = int(wrong.arg_max() or 0)
        raise DataError(
            f"{source}: column {name!r} must hold numbers; {int(wrong.sum()):,} rows do not, the "
            f"first: row {row + 1}, {column[row]!r}"
        )
    return values.to_numpy().copy()


def _check_propensity(chance: F64, name: str, source: str) -> None:
    wrong = (chance < LEAST) | (chance > 1)
    if wrong.any():
        row = int(np.argmax(wrong))
        raise DataError(
            f"{source}: column {name!r}: {int(wrong.sum()):,} propensities do not lie between "
            f"{LEAST:g} and 1, the first: row {row + 1}, {chance[row]:g}. What was shown had some "
            f"chance to be shown: leave such rows out, or mend the log"
        )


# Policies and reward models


@dataclass(frozen=True, eq=False)
class _Table:
    """Numbers per action that depend on the row through its position, or its number."""

    log: BanditLog
    values: F64
    """1, positions, or rows x actions."""

    def rows(self, lo: int, hi: int) -> F64:
        """Return rows lo..hi x actions."""
        if len(self.values) == len(self.log):
            return self.values[lo:hi]
        if len(self.values) == 1:
            return np.broadcast_to(self.values, (hi - lo, self.values.shape[1]))
        chosen: F64 = self.values[self.log.position[lo:hi]]
        return chosen


@dataclass(frozen=True, eq=False)
class _Function:
    """Numbers per action that a function gives for rows of the log."""

    log: BanditLog
    name: str
    function: Callable[[pl.DataFrame], Any]

    def rows(self, lo: int, hi: int) -> F64:
        """Return rows lo..hi x actions."""
        found = np.asarray(self.function(self.log.frame(lo, hi)), np.float64)
        shape = (hi - lo, len(self.log.actions))
        if found.shape != shape:
            raise DataError(
                f"{self.name} gave an array of shape {found.shape} for {hi - lo} rows; expected a "
                f"row each and a column for each of {shape[1]} actions: {shape}"
            )
        return found


def _per_action(log: BanditLog, name: str, given: Policy) -> _Table | _Function:
    """Take numbers per action in any form."""
    actions, positions = len(log.actions), len(log.positions)
    if isinstance(given, str):
        choose(name, given, ("uniform",))
        return _Table(log, np.full((1, actions), 1.0 / actions))
    if isinstance(given, Mapping):
        given = pl.DataFrame({"action": pl.Series(list(given)), name: list(given.values())})
    if isinstance(given, pl.DataFrame):
        return _Table(log, _from_table(log, name, given))
    if isinstance(given, np.ndarray):
        array = np.atleast_2d(np.asarray(given, np.float64))
        if array.shape[1] != actions or len(array) not in (1, positions, len(log)):
            raise DataError(
                f"{name}: an array of shape {given.shape} does not fit {len(log):,} rows, "
                f"{positions} positions and {actions} actions (in the order of log.actions)"
            )
        return _Table(log, array)
    if callable(given):
        return _Function(log, name, given)
    raise SettingError(
        f"{name} must be 'uniform', a mapping from actions, a table, an array or a function; got "
        f"{type(given).__name__}"
    )


def _from_table(log: BanditLog, name: str, table: pl.DataFrame) -> F64:
    """Read columns action, (position), number."""
    if "action" not in table.columns or table.width not in (2, 3):
        raise DataError(f"{name}: a table needs the columns action, (position,) and a number")
    number = next(one for one in table.columns if one not in ("action", "position"))
    at = log.actions.codes(table["action"])
    values = _numbers(table, number, name)
    if (at < 0).any():
        raise DataError(
            f"{name}: action {table['action'][int(np.argmax(at < 0))]!r} is unknown to the log; "
            f"say read_log(…, actions=[…]) if it exists all the same"
        )
    place = np.zeros(table.height, np.int64)
    many = 1
    if "position" in table.columns:
        place = log.positions.codes(table["position"]).astype(np.int64)
        many = len(log.positions)
        if (place < 0).any():
            raise DataError(f"{name}: a position is unknown to the log")
    if len(np.unique(place * len(log.actions) + at)) < table.height:
        raise DataError(f"{name}: an action stands twice for the same position")
    out = np.zeros((many, len(log.actions)))
    out[place, at] = values
    return out


@dataclass(frozen=True, eq=False)
class _Means:
    """The reward model: mean reward of an action at a position, drawn to the position's mean.

    Fitted once per fold, on the rows of all other folds, so that no row's own reward is in what is
    predicted for it.
    """

    log: BanditLog
    fold: I64
    cells: F64
    """Folds x positions x actions."""

    @classmethod
    def fit(cls, log: BanditLog, folds: int, prior: float, seed: int) -> _Means:
        """Fit: (sum of rewards + prior x mean at the position) / (rows + prior)."""
        fold = (draw(seed, "reward folds", log.round) % np.uint64(folds)).astype(np.int64)
        actions, positions = len(log.actions), len(log.positions)
        cell = (fold * positions + log.position) * actions + log.action
        shape = (folds, positions, actions)
        size = folds * positions * actions
        total = np.bincount(cell, log.reward, size).reshape(shape)
        count = np.bincount(cell, minlength=size).reshape(shape)
        if folds > 1:
            total, count = (part.sum(axis=0, keepdims=True) - part for part in (total, count))
        sums, rows = total.sum(axis=2, keepdims=True), count.sum(axis=2, keepdims=True)
        overall = total.sum(axis=(1, 2), keepdims=True) / np.maximum(
            count.sum(axis=(1, 2), keepdims=True), 1
        )
        mean = np.where(rows > 0, sums / np.maximum(rows, 1), overall)
        with np.errstate(invalid="ignore"):
            own = (total + prior * mean) / (count + prior)
        return cls(log, fold, np.where(count + prior > 0, own, mean))

    def rows(self, lo: int, hi: int) -> F64:
        """Return rows lo..hi x actions."""
        chosen: F64 = self.cells[self.fold[lo:hi], self.log.position[lo:hi]]
        return chosen


# The value


@dataclass(frozen=True, eq=False)
class PolicyValue(Printed):
    """What a policy is estimated to earn per row. Made by `policy_value`."""

    estimators: tuple[str, ...]
    value: F64
    error: F64
    """Standard errors; NaN with one round."""
    low: F64
    """The normal interval."""
    high: F64
    bootstrap_low: F64
    """Percentiles over draws of rounds."""
    bootstrap_high: F64
    logged: float
    """The mean reward of the policy that ran."""
    rows: int
    rounds: int
    effective: float
    """The effective sample size (sum w)² / sum w² of the weights."""
    mean_weight: float
    """1 in expectation, where the log supports the policy and its propensities are right."""
    largest_weight: float
    unsupported: float
    """The share of the policy that goes to actions never shown at that position."""
    clipped: int = 0
    level: float = LEVEL
    bootstrap: int = BOOTSTRAP
    notes: tuple[str, ...] = ()

    def table(self) -> pl.DataFrame:
        """Return a row per estimator.

        Columns: estimator, value, error (standard error), low and high (normal interval),
        bootstrap_low and bootstrap_high, lift (value / mean reward of the log - 1).
        """
        lift = self.value / self.logged - 1 if self.logged else np.full(self.value.size, np.nan)
        columns = {
            "estimator": self.estimators,
            "value": self.value,
            "error": self.error,
            "low": self.low,
            "high": self.high,
            "bootstrap_low": self.bootstrap_low,
            "bootstrap_high": self.bootstrap_high,
            "lift": lift,
        }
        return pl.DataFrame(columns).with_columns(pl.selectors.float().fill_nan(None))

    def to_dict(self) -> dict[str, Any]:
        """Return everything as plain values, for JSON."""
        return {
            "values": self.table().to_dicts(),
            "logged": self.logged,
            "rows": self.rows,
            "rounds": self.rounds,
            "effective": self.effective,
            "mean_weight": self.mean_weight,
            "largest_weight": self.largest_weight,
            "unsupported": self.unsupported,
            "clipped": self.clipped,
            "level": self.level,
            "notes": list(self.notes),
        }

    def figure(self) -> Figure:
        """Draw the estimates with their intervals; the line is the log's own mean reward."""
        import altair as alt

        rows = [
            {
                "estimator": row["estimator"],
                "value": row["value"],
                "low": row["low"],
                "high": row["high"],
                "logged": self.logged,
            }
            for row in self.table().iter_rows(named=True)
        ]
        base = alt.Chart(alt.NamedData(name="rows"), width=420, height=alt.Step(34))
        y = alt.Y("estimator:N", title=None).sort(list(self.estimators))
        x = alt.X("value:Q", title="reward per row").scale(zero=False)
        ran = base.mark_rule(strokeDash=[4, 4], color="#999999").encode(x=alt.X("logged:Q"))
        bars = base.mark_rule(strokeWidth=2).encode(y=y, x=alt.X("low:Q"), x2="high:Q")
        points = base.mark_point(filled=True, size=70).encode(y=y, x=x)
        chart = alt.layer(ran, bars, points)
        return as_figure(chart, "Value of a policy", self.footer(), rows)

    def footer(self) -> list[str]:
        """Return the lines that say how the numbers came about, and how far to trust them."""
        lines = [
            f"{self.rows:,} rows in {self.rounds:,} rounds; mean reward of the log "
            f"{self.logged:.4g}",
            f"effective sample size {self.effective:,.0f} of {self.rows:,}; mean weight "
            f"{self.mean_weight:.3f}, largest {self.largest_weight:.3g}",
            f"intervals: {100 * self.level:g} %, low to high normal"
            + (f"; {self.bootstrap:,} bootstrap draws of rounds" if self.bootstrap else ""),
        ]
        return [*lines, *self.notes]

    def __repr__(self) -> str:
        shown = ", ".join(
            f"{name} {value:.4g}" for name, value in zip(self.estimators, self.value, strict=True)
        )
        return f"PolicyValue({shown})"


@checked
def policy_value(
    log: BanditLog,
    policy: Policy,
    *,
    rewards: Policy | None = None,
    estimators: Sequence[str] = ESTIMATORS,
    folds: int = FOLDS,
    prior: float = PRIOR,
    clip: float | None = None,
    bootstrap: int = BOOTSTRAP,
    level: float = LEVEL,
    seed: int = 0,
    threads: int | None = None,
) -> PolicyValue:
    r"""Estimate the mean reward per row that a policy would have earned.

    With w = π(a|x) / p the weight of a logged row, r its reward and q(x, a) a model of the reward:

    .. math::
        IPS = \overline{w r}, \quad SNIPS = \sum w r / \sum w, \quad
        DM = \overline{\sum_a π(a|x) q(x, a)}, \quad DR = DM + \overline{w (r - q(x, a))}

    IPS is unbiased where propensities are right and every action of the policy could be shown;
    SNIPS is consistent and bounded by the rewards; DM is as good as the model; DR is unbiased as
    IPS is, and varies the less the better the model.

    Parameters
    ----------
    log
        What `read_log` gave.
    policy
        The chance of each action: `uniform`; a mapping from actions to chances; a table with the
        columns action, position (optional) and a chance, where what is not named has none; an array
        of actions, positions x actions or rows x actions, in the order of `log.actions` and
        `log.positions`; or a function that takes rows of the log as a table (action, position and
        context) and returns rows x actions. Chances add up to 1 in each row.
    rewards
        A reward model of one's own, in the same forms. Default: the mean reward of each action at
        each position, drawn to the mean of the position by `prior` rows, and fitted without the
        fold of the row it is for.
    estimators
        Some of `ips`, `snips`, `dm`, `dr`.
    folds, prior
        Of the default reward model; folds=1 fits it on all rows.
    clip
        No weight above this: less variance, and a bias towards 0 (IPS) or the model (DR).
    bootstrap, level, seed
        Draws of rounds for the bootstrap interval, 0 for none; the seed also draws the folds.
        Neither interval knows the error of the reward model, so that of DM is too narrow.
    threads
        Never changes a result.

    References
    ----------
    Horvitz & Thompson 1952; Swaminathan & Joachims 2015 (SNIPS); Dudík, Langford & Li 2011 (DR);
    Saito et al. 2020 (Open Bandit Dataset).

    Examples
    --------
    >>> from unskew.unbiased.bandit import policy_value, read_log
    >>> log = read_log({"action": ["a", "b", "a", "b"], "reward": [1, 0, 1, 1],
    ...                 "propensity": [0.5, 0.5, 0.5, 0.5]})
    >>> policy_value(log, {"a": 0.75, "b": 0.25}, estimators=["ips", "snips"], bootstrap=0)
    PolicyValue(ips 0.875, snips 0.875)
    """
    for name in estimators:
        choose("estimator", name, ESTIMATORS)
    if not estimators:
        raise SettingError("no estimators are named")
    _check_settings(folds, prior, clip, bootstrap, level)
    target = _per_action(log, "policy", policy)
    modelled = "dm" in estimators or "dr" in estimators
    model: _Table | _Function | _Means | None = None
    if rewards is not None:
        if not modelled:
            raise SettingError("rewards=… is for dm and dr, and neither is asked for")
        model = _per_action(log, "rewards", rewards)
    elif modelled:
        model = _Means.fit(log, folds, prior, seed)
    weight, direct, own, outside = _walk(log, target, model, threads)
    clipped = 0
    if clip is not None:
        clipped = int(np.count_nonzero(weight > clip))
        weight = np.minimum(weight, clip)
    tops, bottoms = _parts(log, weight, direct, own, estimators)
    return _estimate(
        log,
        tops,
        bottoms,
        weight,
        outside,
        clipped,
        tuple(estimators),
        bootstrap,
        level,
        seed,
        threads,
    )


def _check_settings(
    folds: int, prior: float, clip: float | None, bootstrap: int, level: float
) -> None:
    as_count("folds", folds)
    as_count("bootstrap", bootstrap, least=0)
    if not prior >= 0 or math.isinf(prior):
        raise SettingError(f"prior must be 0 or more, got {prior!r}")
    if clip is not None and not clip > 0:
        raise SettingError(f"clip must be above 0, got {clip!r}")
    check_share("level", level)


def _walk(
    log: BanditLog,
    policy: _Table | _Function,
    model: _Table | _Function | _Means | None,
    threads: int | None,
) -> tuple[F64, F64, F64, float]:
    """Go through the log block by block: weights, modelled values, own rewards as modelled.

    Also the share of the policy on actions that the log never shows at that position.
    """
    rows, actions = len(log), len(log.actions)
    weight, direct, own = np.empty(rows), np.zeros(rows), np.zeros(rows)
    cell = log.position.astype(np.int64) * actions + log.action
    shown = np.bincount(cell, minlength=len(log.positions) * actions).reshape(-1, actions) > 0
    step = max(_CELLS // actions, 1)

    def one(lo: int) -> float:
        hi = min(lo + step, rows)
        chance = policy.rows(lo, hi)
        _must_be_chances(chance, lo)
        at = np.arange(hi - lo), log.action[lo:hi]
        weight[lo:hi] = chance[at] / log.propensity[lo:hi]
        if model is not None:
            guess = model.rows(lo, hi)
            if np.isnan(guess).any():
                row = lo + int(np.argmax(np.isnan(guess).any(axis=1)))
                raise DataError(f"rewards: row {row} has no number (NaN) for some action")
            direct[lo:hi] = np.einsum("ra,ra->r", chance, guess)
            own[lo:hi] = guess[at]
        return float(np.where(shown[log.position[lo:hi]], 0.0, chance).sum())

    outside = map_blocks(one, range(0, rows, step), threads, size=rows * actions)
    return weight, direct, own, math.fsum(outside) / rows


def _must_be_chances(chance: F64, first: int) -> None:
    total = chance.sum(axis=1)
    wrong = ~((chance >= 0).all(axis=1) & (np.abs(total - 1) <= 1e-6))
    if wrong.any():
        row = int(np.argmax(wrong))
        least = float(chance[row].min())
        raise DataError(
            f"policy: the chances of a row must be 0 or more and add up to 1; in row {first + row} "
            f"they add up to {total[row]:g}, the least is {least:g} ({int(wrong.sum()):,} rows)"
        )


def _parts(
    log: BanditLog, weight: F64, direct: F64, own: F64, estimators: Sequence[str]
) -> tuple[F64, F64]:
    """Return what each row adds to the top and the bottom of each estimate, row by row."""
    ones = np.ones(len(log))
    both = {
        "ips": (weight * log.reward, ones),
        "snips": (weight * log.reward, weight),
        "dm": (direct, ones),
        "dr": (direct + weight * (log.reward - own), ones),
    }
    tops, bottoms = zip(*(both[name] for name in estimators), strict=True)
    return np.stack(tops, axis=1), np.stack(bottoms, axis=1)


def _estimate(
    log: BanditLog,
    tops: F64,
    bottoms: F64,
    weight: F64,
    outside: float,
    clipped: int,
    estimators: tuple[str, ...],
    bootstrap: int,
    level: float,
    seed: int,
    threads: int | None,
) -> PolicyValue:
    """Divide sums over rounds; intervals by the delta method and over draws of rounds."""
    columns = len(estimators)
    rounds = int(log.round.max()) + 1
    top, bottom = (
        np.stack([_by_round(log, part[:, c], rounds) for c in range(columns)], axis=1)
        for part in (tops, bottoms)
    )
    value = np.array([math.fsum(top[:, c]) for c in range(columns)])
    scale = np.array([math.fsum(bottom[:, c]) for c in range(columns)])
    notes = list(log.notes)
    with np.errstate(invalid="ignore", divide="ignore"):
        value = value / scale
    if np.isnan(value).any():
        notes.append("snips: every weight is 0: the policy never does what the log shows")
    error = np.full(columns, np.nan)
    if rounds > 1:
        # Of a ratio of sums: each round's residual, relative to the mean of the bottom.
        with np.errstate(invalid="ignore", divide="ignore"):
            rest = (top - value * bottom) / (scale / rounds)
        error = np.sqrt((rest**2).sum(axis=0) / (rounds - 1) / rounds)
    reach = NormalDist().inv_cdf((1 + level) / 2) * error
    low, high = _drawn(top, bottom, bootstrap, level, seed, threads)
    if outside > 1e-9:
        notes.append(
            f"{100 * outside:.3g} % of the policy goes to actions that the log never shows at "
            f"that position: ips misses what they earn, and a reward model guesses"
        )
    if clipped:
        notes.append(f"{clipped:,} weights were clipped: estimates are biased")
    squares = math.fsum(weight**2)
    total = math.fsum(weight)
    off = total / len(log) - 1
    if not clipped and abs(off) > 4.5 * float(weight.std()) / math.sqrt(len(log)) + 1e-6:
        notes.append(
            f"the mean weight is {1 + off:.3f} and not 1: the propensities are not those of the "
            f"log, or the policy does what the log never shows; ips and dr are off"
        )
    return PolicyValue(
        estimators,
        value,
        error,
        value - reach,
        value + reach,
        low,
        high,
        log.mean,
        len(log),
        rounds,
        total**2 / squares if squares else 0.0,
        total / len(log),
        float(weight.max()),
        outside,
        clipped,
        level,
        bootstrap,
        tuple(notes),
    )


def _by_round(log: BanditLog, part: F64, rounds: int) -> F64:
    total: F64 = np.bincount(log.round, part, rounds).astype(np.float64)
    return total


def _drawn(
    top: F64, bottom: F64, bootstrap: int, level: float, seed: int, threads: int | None
) -> tuple[F64, F64]:
    """Return percentiles of the estimates over draws of rounds, with replacement."""
    from unskew.stats import kernels

    rounds, columns = top.shape
    if not bootstrap:
        return np.full(columns, np.nan), np.full(columns, np.nan)
    key = np.uint64(key_of(seed, "bootstrap"))
    both = np.ascontiguousarray(np.concatenate([top, bottom], axis=1))
    rows = int(min(max(_CELLS // rounds, 1), 16))  # by the data alone: bits depend on the shape
    out = np.empty((bootstrap, 2 * columns))

    def fill(low: int) -> None:
        counts = np.empty((min(rows, bootstrap - low), rounds))
        kernels.resample(key, low, counts)
        out[low : low + rows] = counts @ both

    with one_blas_thread():
        map_blocks(fill, range(0, bootstrap, rows), threads, size=bootstrap * rounds)
    with np.errstate(invalid="ignore", divide="ignore"):
        drawn = out[:, :columns] / out[:, columns:]
    ends = np.full((2, columns), np.nan)
    known = ~np.isnan(drawn).all(axis=0)
    ends[:, known] = np.nanquantile(drawn[:, known], ((1 - level) / 2, (1 + level) / 2), axis=0)
    return ends[0], ends[1]
