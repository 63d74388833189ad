"""Logged bandit feedback: what another policy would have earned, from the log of the one that ran.

A log has a row per shown action: the action, its position, the reward, and the propensity with
which the logging policy chose it. `policy_value` estimates the mean reward of another policy by
inverse propensities (IPS), self-normalised (SNIPS), by a model of the reward (direct method, DM),
and by both (doubly robust, DR). Logs in the format of the Open Bandit Dataset are read as they are.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from statistics import NormalDist

import numpy as np
import polars as pl

from unskew.arrays import F64
from unskew.checks import as_count, check_share, checked, choose
from unskew.engine.rng import key_of
from unskew.engine.threads import map_blocks, one_blas_thread
from unskew.errors import DataError, SettingError
from unskew.report.charts import Figure, as_figure
from unskew.report.result import Result
from unskew.report.text import counted
from unskew.stats.user_draws import percentile_interval
from unskew.unbiased.bandit_logs import BanditLog
from unskew.unbiased.policies import ActionFunction, ActionTable, Policy, RewardMeans, per_action

ESTIMATORS = ("ips", "snips", "dm", "dr")


BOOTSTRAP, LEVEL, FOLDS, PRIOR = 1_000, 0.95, 5, 1.0


CELLS = 1 << 22
"""Probabilities held at a time."""


@dataclass(frozen=True, eq=False)
class PolicyValue(Result):
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

    def _content(self) -> dict[str, object]:
        return {
            "values": self.table(),
            "logged": self.logged,
            "rows": self.rows,
            "rounds": self.rounds,
            "effective": self.effective,
            "mean_weight": self.mean_weight,
            "largest_weight": self.largest_weight,
            "unsupported": self.unsupported,
            "clipped": self.clipped,
            "level": self.level,
            "notes": self.notes,
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

    def _explanation(self) -> list[str]:
        return [
            f"{counted(self.rows, 'row')} in {counted(self.rounds, 'round')}; mean reward of the "
            f"log {self.logged:.4g}",
            f"effective sample size {self.effective:,.0f} of {self.rows:,}; mean weight "
            f"{self.mean_weight:.3f}, largest {self.largest_weight:.3g}",
            f"intervals: {100 * self.level:g} %, low to high normal"
            + (f"; {self.bootstrap:,} bootstrap draws of rounds" if self.bootstrap else ""),
        ]

    def _summary(self) -> str:
        return ", ".join(
            f"{name} {value:.4g}" for name, value in zip(self.estimators, self.value, strict=True)
        )


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
    >>> from unskew.unbiased.bandit_logs import read_log
    >>> from unskew.unbiased.policy_values import policy_value
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
    target = per_action(log, "policy", policy)
    modelled = "dm" in estimators or "dr" in estimators
    model: ActionTable | ActionFunction | RewardMeans | None = None
    if rewards is not None:
        if not modelled:
            raise SettingError("rewards=… is for dm and dr, and neither is asked for")
        model = per_action(log, "rewards", rewards)
    elif modelled:
        model = RewardMeans.fit(log, folds, prior, seed)
    rows = _evaluate_rows(log, target, model, threads)
    clipped = 0
    if clip is not None:
        clipped = int(np.count_nonzero(rows.weight > clip))
        rows = replace(rows, weight=np.minimum(rows.weight, clip))
    top, bottom = _sums_by_round(log, rows, estimators)
    value, error = _ratio_of_sums(top, bottom)
    reach = NormalDist().inv_cdf((1 + level) / 2) * error
    low, high = _bootstrap_interval(top, bottom, bootstrap, level, seed, threads)
    total, squares = math.fsum(rows.weight), math.fsum(rows.weight**2)
    return PolicyValue(
        estimators=tuple(estimators),
        value=value,
        error=error,
        low=value - reach,
        high=value + reach,
        bootstrap_low=low,
        bootstrap_high=high,
        logged=log.mean,
        rows=len(log),
        rounds=len(top),
        effective=total**2 / squares if squares else 0.0,
        mean_weight=total / len(log),
        largest_weight=float(rows.weight.max()),
        unsupported=rows.unsupported,
        clipped=clipped,
        level=level,
        bootstrap=bootstrap,
        notes=(*log.notes, *_warnings(rows, value, total, clipped)),
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


@dataclass(frozen=True, eq=False)
class _RowValues:
    """What each row of the log tells of the policy."""

    weight: F64
    """π(a|x) / p of the logged action."""
    direct: F64
    """The modelled reward of the policy."""
    modelled: F64
    """The modelled reward of the logged action."""
    unsupported: float
    """The share of the policy on actions that the log never shows at that position."""


def _evaluate_rows(
    log: BanditLog,
    policy: ActionTable | ActionFunction,
    model: ActionTable | ActionFunction | RewardMeans | None,
    threads: int | None,
) -> _RowValues:
    """Go through the log block by block."""
    rows, actions = len(log), len(log.actions)
    weight, direct, modelled = np.empty(rows), np.zeros(rows), np.zeros(rows)
    cell = log.position.astype(np.int64) * actions + log.action
    shown = np.bincount(cell, minlength=len(log.positions) * actions).reshape(-1, actions) > 0
    step = max(CELLS // actions, 1)

    def one(lo: int) -> float:
        hi = min(lo + step, rows)
        chance = policy.rows(lo, hi)
        check_chances("policy", chance, lo)
        at = np.arange(hi - lo), log.action[lo:hi]
        weight[lo:hi] = chance[at] / log.propensity[lo:hi]
        if model is not None:
            guess = model.rows(lo, hi)
            if np.isnan(guess).any():
                row = lo + int(np.argmax(np.isnan(guess).any(axis=1)))
                raise DataError(f"rewards: row {row} has no number (NaN) for some action")
            direct[lo:hi] = np.einsum("ra,ra->r", chance, guess)
            modelled[lo:hi] = guess[at]
        return float(np.where(shown[log.position[lo:hi]], 0.0, chance).sum())

    outside = map_blocks(one, range(0, rows, step), threads, size=rows * actions)
    return _RowValues(weight, direct, modelled, math.fsum(outside) / rows)


def check_chances(name: str, chance: F64, first: int) -> None:
    """Refuse rows of chances that are no distribution over the actions."""
    total = chance.sum(axis=1)
    wrong = ~((chance >= 0).all(axis=1) & (np.abs(total - 1) <= 1e-6))
    if wrong.any():
        row = int(np.argmax(wrong))
        least = float(chance[row].min())
        raise DataError(
            f"{name}: the chances of a row must be 0 or more and add up to 1; in row {first + row} "
            f"they add up to {total[row]:g}, the least is {least:g} ({int(wrong.sum()):,} rows)"
        )


def _sums_by_round(log: BanditLog, rows: _RowValues, estimators: Sequence[str]) -> tuple[F64, F64]:
    """Return what each round adds to the top and the bottom of each estimate."""
    ones, weighted = np.ones(len(log)), rows.weight * log.reward
    both = {
        "ips": (weighted, ones),
        "snips": (weighted, rows.weight),
        "dm": (rows.direct, ones),
        "dr": (rows.direct + rows.weight * (log.reward - rows.modelled), ones),
    }
    rounds = int(log.round.max()) + 1

    def summed(at: int) -> F64:
        columns = [np.bincount(log.round, both[name][at], rounds) for name in estimators]
        return np.stack(columns, axis=1).astype(np.float64)

    return summed(0), summed(1)


def _ratio_of_sums(top: F64, bottom: F64) -> tuple[F64, F64]:
    """Return the estimates and, by the delta method, their standard errors."""
    rounds = len(top)
    totals, scale = (np.array([math.fsum(column) for column in part.T]) for part in (top, bottom))
    with np.errstate(invalid="ignore", divide="ignore"):
        value = totals / scale
        if rounds < 2:
            return value, np.full(value.size, np.nan)
        # Of a ratio of sums: each round's residual, relative to the mean of the bottom.
        rest = (top - value * bottom) / (scale / rounds)
    return value, np.sqrt((rest**2).sum(axis=0) / (rounds - 1) / rounds)


def _warnings(rows: _RowValues, value: F64, total: float, clipped: int) -> list[str]:
    """Return how far the estimates cannot be trusted."""
    notes = []
    if np.isnan(value).any():
        notes.append("snips: every weight is 0: the policy never does what the log shows")
    if rows.unsupported > 1e-9:
        notes.append(
            f"{100 * rows.unsupported:.3g} % of the policy goes to actions that the log never "
            "shows at that position: ips misses their reward, and a reward model has to guess it"
        )
    if clipped:
        notes.append(
            f"{counted(clipped, 'weight was', 'weights were')} clipped: estimates are biased"
        )
    count = rows.weight.size
    off = total / count - 1
    if not clipped and abs(off) > 4.5 * float(rows.weight.std()) / math.sqrt(count) + 1e-6:
        notes.append(
            f"the mean weight is {1 + off:.3f} and not 1: the propensities are not those of the "
            f"log, or the policy does what the log never shows; ips and dr are off"
        )
    return notes


def _bootstrap_interval(
    top: F64, bottom: F64, bootstrap: int, level: float, seed: int, threads: int | None
) -> tuple[F64, F64]:
    """Return percentiles of the estimates over draws of rounds, with replacement."""
    columns = top.shape[1]
    if not bootstrap:
        return np.full(columns, np.nan), np.full(columns, np.nan)
    both = np.ascontiguousarray(np.concatenate([top, bottom], axis=1))
    out = drawn_totals(both, bootstrap, seed, threads)
    with np.errstate(invalid="ignore", divide="ignore"):
        drawn = out[:, :columns] / out[:, columns:]
    return percentile_interval(drawn, level)


def drawn_totals(by_round: F64, bootstrap: int, seed: int, threads: int | None) -> F64:
    """Return draws x columns: the sums of columns over rounds drawn with replacement."""
    from unskew.stats import kernels

    rounds, columns = by_round.shape
    key = np.uint64(key_of(seed, "bootstrap"))
    rows = int(min(max(CELLS // rounds, 1), 16))  # by the data alone: bits depend on the shape
    out = np.empty((bootstrap, columns))

    def fill(low: int) -> None:
        counts = np.empty((min(rows, bootstrap - low), rounds))
        kernels.resample(key, low, counts)
        out[low : low + rows] = counts @ by_round

    with one_blas_thread():
        map_blocks(fill, range(0, bootstrap, rows), threads, size=bootstrap * rounds)
    return out
