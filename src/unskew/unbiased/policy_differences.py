"""What one policy would earn more than another, from the log of a third.

Two values from one log have errors in common: what is luck for one is luck for the other. So the
difference is estimated directly, with the difference of the weights (Δ-OPE, Jeunen & Ustimenko
2024). Values of single policies are in `policy_values`.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import polars as pl

from unskew.arrays import F64
from unskew.checks import as_count, check_share, checked, choose
from unskew.engine.threads import map_blocks
from unskew.errors import DataError, SettingError
from unskew.report.charts import Figure, as_figure
from unskew.report.result import Result
from unskew.report.text import counted
from unskew.stats.distributions import student_t_quantile
from unskew.stats.user_draws import percentile_interval
from unskew.unbiased.bandit_logs import BanditLog
from unskew.unbiased.policies import ActionFunction, ActionTable, Policy, per_action
from unskew.unbiased.policy_values import BOOTSTRAP, CELLS, LEVEL, check_chances, drawn_totals

ESTIMATORS = ("ips", "snips", "beta")
STATED_BY = "beta"
"""The estimator that the conclusion rests on."""
LEAST_ROUNDS = 10.0
"""Rounds that carry the error of the difference, at the least, for a conclusion."""
SAME = 1e-12
"""Policies that differ in no larger share of their choices are the same."""
SURE = 1.0 - 1e-9
"""A propensity from here up is that of a choice without chance."""


@dataclass(frozen=True, eq=False)
class PolicyDifference(Result):
    """What policy B earns more than policy A per row, estimated. Made by `policy_difference`."""

    digits: ClassVar[int] = 5

    names: tuple[str, str]
    estimators: tuple[str, ...]
    value: F64
    """The difference B - A by each estimator."""
    error: F64
    """Standard errors; NaN with one round."""
    low: F64
    """The interval by Student's t, with the degrees of freedom that the residuals allow."""
    high: F64
    bootstrap_low: F64
    """Percentiles over draws of rounds."""
    bootstrap_high: F64
    separate_error: F64
    """Standard error of the difference if both values were estimated apart, from logs of their own:
    what is claimed by whoever compares two intervals."""
    carrying: F64
    """Rounds that carry the error: (Σ e²)² / Σ e⁴ over the residuals e of the rounds."""
    beta: float
    """What is taken off each reward by `beta`."""
    rows: int
    rounds: int
    mean_weight: float
    """Of the differences of weights: 0 in expectation, where the propensities are right."""
    differing: float
    """The share of the policies' choices in which they differ, in the mean over rows."""
    level: float = LEVEL
    bootstrap: int = BOOTSTRAP
    notes: tuple[str, ...] = ()

    @property
    def gain(self) -> F64:
        """How many times as many rounds separate estimates would need for the same error."""
        with np.errstate(invalid="ignore", divide="ignore"):
            return np.asarray((self.separate_error / self.error) ** 2)

    def table(self) -> pl.DataFrame:
        """Return a row per estimator.

        Columns: estimator, difference (B - A), error (standard error), low and high (interval),
        bootstrap_low and bootstrap_high, separate_error (of the difference of two values estimated
        apart), gain (how many times as many rounds these would need), carrying (rounds that carry
        the error).
        """
        columns = {
            "estimator": self.estimators,
            "difference": self.value,
            "error": self.error,
            "low": self.low,
            "high": self.high,
            "bootstrap_low": self.bootstrap_low,
            "bootstrap_high": self.bootstrap_high,
            "separate_error": self.separate_error,
            "gain": self.gain,
            "carrying": self.carrying,
        }
        return pl.DataFrame(columns).with_columns(pl.selectors.float().fill_nan(None))

    def display_table(self) -> pl.DataFrame:
        """Return the table without what was not drawn, and with whole rounds."""
        gain = [None if math.isnan(one) else f"{one:.1f}" for one in self.gain]
        table = self.table().with_columns(
            pl.Series("gain", gain, pl.String), pl.col("carrying").round().cast(pl.Int64)
        )
        if not self.bootstrap:
            table = table.drop("bootstrap_low", "bootstrap_high")
        return table

    def _content(self) -> dict[str, object]:
        return {
            "names": list(self.names),
            "differences": self.table(),
            "beta": self.beta,
            "rows": self.rows,
            "rounds": self.rounds,
            "mean_weight": self.mean_weight,
            "differing": self.differing,
            "level": self.level,
            "conclusion": self.conclusion,
            "notes": self.notes,
        }

    def figure(self) -> Figure:
        """Draw the differences with their intervals, and those of separate estimates in grey."""
        import altair as alt

        rows = [
            {
                "estimator": name,
                "difference": float(self.value[at]),
                "low": _null(self.low[at]),
                "high": _null(self.high[at]),
                "separate_low": _null(self.value[at] - self._reach(at)),
                "separate_high": _null(self.value[at] + self._reach(at)),
                "none": 0.0,
            }
            for at, name in enumerate(self.estimators)
        ]
        base = alt.Chart(alt.NamedData(name="rows"), width=420, height=alt.Step(40))
        y = alt.Y("estimator:N", title=None).sort(list(self.estimators))
        x = alt.X("difference:Q", title=f"reward per row: {self.names[1]} − {self.names[0]}")
        zero = base.mark_rule(strokeDash=[4, 4], color="#999999").encode(x=alt.X("none:Q"))
        apart = base.mark_rule(strokeWidth=8, color="#dddddd").encode(
            y=y, x=alt.X("separate_low:Q"), x2="separate_high:Q"
        )
        bars = base.mark_rule(strokeWidth=2).encode(y=y, x=alt.X("low:Q"), x2="high:Q")
        points = base.mark_point(filled=True, size=70).encode(y=y, x=x)
        chart = alt.layer(zero, apart, bars, points)
        lines = [*self.footer(), "grey: the interval if both values came from logs of their own"]
        return as_figure(chart, "Difference of two policies", lines, rows)

    def _reach(self, at: int) -> float:
        """Return half the width of the interval of separate estimates, by the same quantile."""
        if not self.error[at] > 0:
            return math.nan
        return float((self.high[at] - self.value[at]) * self.separate_error[at] / self.error[at])

    def _explanation(self) -> list[str]:
        lines = [
            f"{counted(self.rows, 'row')} in {counted(self.rounds, 'round')}; the policies differ "
            f"in {100 * self.differing:.3g} % of their choices",
            f"difference: reward per row of {self.names[1]} less that of {self.names[0]}; "
            "separate_error: its standard error if both values came from logs of their own",
            f"intervals: {100 * self.level:g} %, low to high by Student's t"
            + (f"; {self.bootstrap:,} bootstrap draws of rounds" if self.bootstrap else ""),
        ]
        if "beta" in self.estimators:
            lines.append(f"beta: {self.beta:.4g} is taken off each reward")
        return lines

    @property
    def conclusion(self) -> str:
        """Who earns more, where the interval of `beta` leaves no doubt; else that it is open.

        Empty where `beta` was not asked for.
        """
        if STATED_BY not in self.estimators:
            return ""
        at = self.estimators.index(STATED_BY)
        first, second = self.names
        if self.differing <= SAME:
            return f"{first} and {second} choose alike: neither earns more"
        if not self.carrying[at] >= LEAST_ROUNDS:
            return (
                f"too few rounds tell {first} and {second} apart for a conclusion: the error of "
                f"{STATED_BY} rests on {max(self.carrying[at], 0.0):.0f} of them, and "
                f"{LEAST_ROUNDS:.0f} are needed"
            )
        span = f"{self.low[at]:.4g} to {self.high[at]:.4g} per row"
        if self.low[at] > 0:
            return f"{second} earns more than {first}: {span} ({100 * self.level:g} %, {STATED_BY})"
        if self.high[at] < 0:
            return (
                f"{first} earns more than {second}: {-self.high[at]:.4g} to {-self.low[at]:.4g} "
                f"per row ({100 * self.level:g} %, {STATED_BY})"
            )
        return (
            f"the log does not settle whether {first} or {second} earns more: the difference is "
            f"{span} ({100 * self.level:g} %, {STATED_BY})"
        )

    def _conclusion(self) -> list[str]:
        return [self.conclusion] if self.conclusion else []

    def _summary(self) -> str:
        return ", ".join(
            f"{name} {value:+.4g}" for name, value in zip(self.estimators, self.value, strict=True)
        )


def _null(value: float) -> float | None:
    return None if math.isnan(value) else float(value)


@checked
def policy_difference(
    log: BanditLog,
    a: Policy,
    b: Policy,
    *,
    names: Sequence[str] = ("A", "B"),
    estimators: Sequence[str] = ESTIMATORS,
    supported: bool = False,
    bootstrap: int = 0,
    level: float = LEVEL,
    seed: int = 0,
    threads: int | None = None,
) -> PolicyDifference:
    r"""Estimate how much more policy `b` would have earned per row than policy `a`.

    With :math:`w_a, w_b` the weights of a logged row, :math:`d = w_b - w_a` and r its reward:

    .. math::
        IPS = \overline{d r}, \quad
        SNIPS = \frac{\sum w_b r}{\sum w_b} - \frac{\sum w_a r}{\sum w_a}, \quad
        BETA = \overline{d (r - β)}, \quad β = \frac{\sum d^2 r}{\sum d^2}

    As the weights differ by 0 in the mean, any constant can be taken off the rewards; β is the one
    with the smallest variance (Jeunen & Ustimenko 2024). The variance of a difference is that of
    its rows, so what both policies do alike costs nothing.

    Parameters
    ----------
    log
        What `read_log` gave.
    a, b
        The chance of each action, in the forms of `policy_value`.
    names
        What to call them.
    estimators
        Some of `ips`, `snips`, `beta`.
    supported
        Say True if the logging policy gave every action a chance, although the log does not show
        each. Otherwise policies that differ on actions that the log never shows are refused.
    bootstrap, level, seed
        Draws of rounds for a bootstrap interval beside the other one; 0 for none.
    threads
        Never changes a result.

    References
    ----------
    Jeunen & Ustimenko 2024 (RecSys), Δ-OPE: Off-Policy Estimation with Pairs of Policies.

    Examples
    --------
    >>> from unskew.unbiased.bandit_logs import read_log
    >>> from unskew.unbiased.policy_differences import policy_difference
    >>> log = read_log({"action": ["a", "b", "a", "b"], "reward": [1, 0, 1, 1],
    ...                 "propensity": [0.5, 0.5, 0.5, 0.5]})
    >>> policy_difference(log, {"a": 0.25, "b": 0.75}, {"a": 0.75, "b": 0.25})
    PolicyDifference(ips +0.25, snips +0.25, beta +0.25)
    """
    for name in estimators:
        choose("estimator", name, ESTIMATORS)
    if not estimators:
        raise SettingError("no estimators are named")
    if len(names) != 2 or names[0] == names[1]:
        raise SettingError(f"names must be two different names, got {list(names)!r}")
    as_count("bootstrap", bootstrap, least=0)
    check_share("level", level)
    pair = per_action(log, "a", a), per_action(log, "b", b)
    rows = _evaluate_rows(log, *pair, threads)
    _check_support(log, rows, tuple(names), supported)
    sums = _RoundSums.of(log, rows)
    value, rest, apart, beta = sums.estimates(estimators)
    error, reach, carrying = _errors(rest, level)
    low, high = _bootstrap_interval(sums, estimators, bootstrap, level, seed, threads)
    return PolicyDifference(
        names=(names[0], names[1]),
        estimators=tuple(estimators),
        value=value,
        error=error,
        low=value - reach,
        high=value + reach,
        bootstrap_low=low,
        bootstrap_high=high,
        separate_error=_errors(apart, level)[0],
        carrying=carrying,
        beta=beta,
        rows=len(log),
        rounds=sums.rounds,
        mean_weight=math.fsum(rows.second - rows.first) / len(log),
        differing=rows.differing,
        level=level,
        bootstrap=bootstrap,
        notes=(*log.notes, *_remarks(sums, rows, supported)),
    )


@dataclass(frozen=True, eq=False)
class _RowWeights:
    """What each row of the log tells of the two policies."""

    first: F64
    """π_a(action | x) / p of the logged action."""
    second: F64
    differing: float
    """Half the summed |π_b - π_a| over actions, in the mean over rows."""
    sure: tuple[int, int]
    """Rows with a propensity of 1 in which policy a, policy b may choose another action."""
    unshown: float
    """The share in which they differ on actions that the log never shows at that position."""


def _evaluate_rows(
    log: BanditLog,
    a: ActionTable | ActionFunction,
    b: ActionTable | ActionFunction,
    threads: int | None,
) -> _RowWeights:
    """Go through the log block by block."""
    rows, actions = len(log), len(log.actions)
    weights = np.empty((2, rows))
    cell = log.position.astype(np.int64) * actions + log.action
    shown = np.bincount(cell, minlength=len(log.positions) * actions).reshape(-1, actions) > 0
    step = max(CELLS // (2 * actions), 1)

    def one(lo: int) -> tuple[float, float, int, int]:
        hi = min(lo + step, rows)
        at = np.arange(hi - lo), log.action[lo:hi]
        chances = []
        for number, (name, policy) in enumerate((("a", a), ("b", b))):
            chance = policy.rows(lo, hi)
            check_chances(name, chance, lo)
            weights[number, lo:hi] = chance[at] / log.propensity[lo:hi]
            chances.append(chance)
        gap = np.abs(chances[1] - chances[0]) / 2
        certain = log.propensity[lo:hi] >= SURE
        strays = [int(np.count_nonzero(certain & (chance[at] < SURE))) for chance in chances]
        unshown = np.where(shown[log.position[lo:hi]], 0.0, gap)
        return math.fsum(gap.sum(axis=1)), math.fsum(unshown.sum(axis=1)), strays[0], strays[1]

    parts = map_blocks(one, range(0, rows, step), threads, size=rows * actions)
    gap, unshown, *strays = (math.fsum(column) for column in zip(*parts, strict=True))
    return _RowWeights(
        first=weights[0],
        second=weights[1],
        differing=gap / rows,
        sure=(int(strays[0]), int(strays[1])),
        unshown=unshown / rows,
    )


def _check_support(
    log: BanditLog, rows: _RowWeights, names: tuple[str, ...], supported: bool
) -> None:
    """Refuse logs that cannot show what the policies would earn."""
    for name, strays in zip(names, rows.sure, strict=True):
        if not strays:
            continue
        if bool((log.propensity >= SURE).all()):
            raise DataError(
                "the log is deterministic: every action has propensity 1, so no other action could "
                f"be shown, and nothing tells what {name} would earn with another one. A log of a "
                "policy that draws its actions is needed"
            )
        raise DataError(
            f"{counted(strays, 'row has', 'rows have')} propensity 1, but {name} may choose "
            "another action there: the log cannot show what that would earn. Leave such rows out "
            "of the comparison, or let both policies do there what the log does"
        )
    if rows.unshown > 1e-9 and not supported:
        raise DataError(
            f"{names[0]} and {names[1]} differ in {100 * rows.unshown:.3g} % of their choices on "
            "actions that the log never shows at that position: without support there is nothing "
            "to learn from. If the logging policy could show them, say supported=True"
        )


@dataclass(frozen=True, eq=False)
class _RoundSums:
    """What the rounds add up to: every estimate is a function of these."""

    by_round: F64
    """Rounds x columns: rows, d r, d, w_a r, w_a, w_b r, w_b, d² r, d², and for either policy
    (w² - w) r and w² - w."""

    @classmethod
    def of(cls, log: BanditLog, rows: _RowWeights) -> _RoundSums:
        """Sum rows by round."""
        r, gap = log.reward, rows.second - rows.first
        columns = [np.ones(len(log)), gap * r, gap]
        for weight in (rows.first, rows.second):
            columns += [weight * r, weight]
        columns += [gap**2 * r, gap**2]
        for weight in (rows.first, rows.second):
            columns += [(weight**2 - weight) * r, weight**2 - weight]
        count = int(log.round.max()) + 1
        sums = [np.bincount(log.round, column, count) for column in columns]
        return cls(np.ascontiguousarray(np.stack(sums, axis=1)))

    @property
    def rounds(self) -> int:
        """How many rounds there are."""
        return len(self.by_round)

    def estimates(self, estimators: Sequence[str]) -> tuple[F64, F64, F64, float]:
        """Return the differences, their residuals by round, those of both values apart, and β.

        The residuals of an estimate are what each round adds to it, to first order, less the mean:
        the delta method. Apart: the residuals of either policy, from which follows what two
        separate estimates would vary by.
        """
        total = np.array([math.fsum(column) for column in self.by_round.T])
        scale = total[0] / self.rounds
        n, dr, d, ar, aw, br, bw = self.by_round.T[:7]
        beta = float(_ratio(total[7], total[8]))
        value, rest, apart = [], [], []
        for name in estimators:
            if name == "snips":
                both = [_ratio(total[3], total[4]), _ratio(total[5], total[6])]
                parts = [
                    (top - one * bottom) / (whole / self.rounds)
                    for one, top, bottom, whole in zip(
                        both, (ar, br), (aw, bw), total[[4, 6]], strict=True
                    )
                ]
                value.append(both[1] - both[0])
                rest.append(parts[1] - parts[0])
            else:
                shift = beta if name == "beta" else 0.0
                mean = (total[1] - shift * total[2]) / total[0]
                value.append(mean)
                rest.append((dr - shift * d - mean * n) / scale)
                parts = []
                for top, bottom, at in ((ar, aw, 9), (br, bw, 11)):
                    off = float(_ratio(total[at], total[at + 1])) if name == "beta" else 0.0
                    some = top - off * bottom
                    parts.append((some - math.fsum(some) / total[0] * n) / scale)
            apart.append(np.hypot(*parts))
        return np.array(value), np.array(rest), np.array(apart), beta

    def differences(self, totals: F64, estimators: Sequence[str]) -> F64:
        """Return the estimates for several draws of rounds: draws x estimators."""
        n, dr, d, ar, aw, br, bw, ddr, dd = totals.T[:9]
        beta = _ratio(ddr, dd)
        forms = {
            "ips": dr / n,
            "snips": _ratio(br, bw) - _ratio(ar, aw),
            "beta": (dr - beta * d) / n,
        }
        return np.stack([forms[name] for name in estimators], axis=1)


def _ratio(top: F64 | float, bottom: F64 | float) -> F64:
    """Return a quotient; 0 where there is nothing to divide by, as all weights are 0."""
    top, bottom = np.asarray(top, np.float64), np.asarray(bottom, np.float64)
    empty = np.abs(bottom) < 1e-300
    return np.where(empty, 0.0, top / np.where(empty, 1.0, bottom))


def _errors(rest: F64, level: float) -> tuple[F64, F64, F64]:
    """Return standard errors, half widths of intervals, and how many rounds carry the error.

    Few heavy rounds make a standard error uncertain. Its square has the variance that the fourth
    powers of the residuals tell; Student's t has the degrees of freedom that belong to it.
    """
    rounds = rest.shape[1]
    squares, fourth = (rest**2).sum(axis=1), (rest**4).sum(axis=1)
    with np.errstate(invalid="ignore", divide="ignore"):
        carrying = np.where(fourth > 0, squares**2 / fourth, 0.0)
        error = np.sqrt(squares / (rounds - 1) / rounds)
        df = 2.0 / (1.0 / carrying - 1.0 / rounds)
    error[~(error > 0)] = np.nan  # one round, or all rounds alike: nothing tells the error
    reach = [
        math.nan if math.isnan(one) else one * student_t_quantile((1 + level) / 2, freedom)
        for one, freedom in zip(error, np.clip(df, 1.0, 1e6).round(3), strict=True)
    ]
    return error, np.array(reach), carrying


def _remarks(sums: _RoundSums, rows: _RowWeights, supported: bool) -> list[str]:
    """Return how far the estimates cannot be trusted."""
    remarks = []
    if rows.differing <= SAME:
        return []
    gap = sums.by_round[:, 2]
    spread = float(gap.std()) / math.sqrt(len(gap))
    if abs(float(gap.mean())) > 4.5 * spread + 1e-9:
        remarks.append(
            "the weights of the two policies do not have the same mean: the propensities are not "
            "those of the log, or the policies do what it never shows; ips and beta are off"
        )
    if supported and rows.unshown > 1e-9:
        remarks.append(
            f"the policies differ in {100 * rows.unshown:.3g} % of their choices on actions that "
            "the log never shows, which counts as supported, as you said"
        )
    return remarks


def _bootstrap_interval(
    sums: _RoundSums,
    estimators: Sequence[str],
    bootstrap: int,
    level: float,
    seed: int,
    threads: int | None,
) -> tuple[F64, F64]:
    """Return percentiles of the estimates over draws of rounds, with replacement."""
    if not bootstrap:
        return np.full(len(estimators), np.nan), np.full(len(estimators), np.nan)
    totals = drawn_totals(sums.by_round, bootstrap, seed, threads)
    return percentile_interval(sums.differences(totals, estimators), level)
