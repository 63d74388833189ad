"""`sensitivity`: how wrong propensities must be for a winner to lose."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from itertools import combinations
from typing import Unpack

import numpy as np
import polars as pl

from unskew.arrays import F64, I64, frozen
from unskew.checks import as_count, check_share, checked, choose, is_number
from unskew.errors import DataError, SettingError
from unskew.judging.judge import RawOptions, second_argument
from unskew.judging.judged import Judged
from unskew.judging.shape import BLOCK, Basis, Matched, Scratch
from unskew.metrics.definition import missing
from unskew.metrics.weighted import Columns, Linear
from unskew.report.charts import Figure, as_figure
from unskew.report.result import Result
from unskew.report.text import counted
from unskew.stats.resampling import check_two_systems, drawn_sums, with_replacement
from unskew.unbiased.judgment_weights import Estimand, estimands, judge_for_estimates, weigh
from unskew.unbiased.weighted_averages import LEVEL, RESAMPLES, Averages, Scales
from unskew.unbiased.weighted_estimates import UNUSABLE

MODELS = ("odds", "weights")


@dataclass(frozen=True, eq=False)
class Sensitivity(Result):
    """How wrong propensities must be for the better of two systems to be the worse.

    Made by `sensitivity`. With Γ, the odds of being judged (or the weights) of each judgment may be
    anything from 1/Γ to Γ times what is assumed.
    """

    metric: str
    systems: tuple[str, ...]
    model: str
    estimates: Mapping[str, float]
    """The weighted estimate of each system, as assumed."""
    flips: Mapping[tuple[str, str], float]
    """(better, worse) to the smallest Γ at which they can be equal; infinite if none."""
    contributions: Mapping[str, F64]
    """What one unit of weight of each judgment adds to each system."""
    weight: F64
    owner: I64
    """The list of each judgment, among those averaged."""
    users: int
    bottom: F64 | None = None
    """What each judgment adds to the divisor, where it is a ratio of sums."""
    better: str = "higher"
    most: float = math.inf
    """The largest value that the metric can have."""
    unusable: Mapping[str, str] = field(default_factory=dict)
    """Systems that are left out, as their estimates are not usable: why."""
    notes: tuple[str, ...] = ()

    def table(self) -> pl.DataFrame:
        """Return a row per pair: better, worse, difference, gamma (null: no Γ turns them).

        Without the pairs of systems whose estimates are not usable (see `unusable`).
        """
        rows = [
            {
                "better": a,
                "worse": b,
                "difference": self.estimates[a] - self.estimates[b],
                "gamma": None if math.isinf(gamma) else gamma,
            }
            for (a, b), gamma in self.flips.items()
        ]
        numbers = {"difference": pl.Float64, "gamma": pl.Float64}
        return pl.DataFrame(rows, {"better": pl.String, "worse": pl.String, **numbers})

    def interval(
        self,
        gamma: float,
        *,
        level: float | None = LEVEL,
        resamples: int = RESAMPLES,
        seed: int = 0,
        threads: int | None = None,
    ) -> pl.DataFrame:
        """Return the range of each system's estimate when propensities are off by up to Γ.

        Parameters
        ----------
        gamma
            Γ, from 1 up.
        level
            The ends are moved outwards to the quantiles of a bootstrap over users, so that the
            range holds the truth at least this often where Γ does (Zhao, Small & Bhattacharya
            2019). None: the range for the users at hand.
        resamples, seed, threads
            Of the bootstrap.

        Returns
        -------
        polars.DataFrame
            system, low, estimate, high; no end is above the largest value of the metric.
        """
        if not is_number(gamma) or not 1 <= gamma < math.inf:
            raise SettingError(f"gamma must be a number from 1 up, got {gamma!r}")
        if level is not None:
            check_share("level", level)
            as_count("resamples", resamples)
        light, heavy = weight_range(self.weight, gamma, self.model)
        rows = []
        for name in self.systems:
            sides = []
            for lowest in (True, False):
                top, bottom = self._extreme(name, light, heavy, lowest)
                value = float(top.sum() / bottom.sum())
                if level is not None:
                    share = (1 - level) / 2
                    draws = _resampled_ratio(top, bottom, resamples, seed, threads)
                    value = float(np.quantile(draws, share if lowest else 1 - share))
                sides.append(min(value, self.most))
            rows.append((name, sides[0], self.estimates[name], sides[1]))
        schema = ["system", "low", "estimate", "high"]
        return pl.DataFrame(rows, schema, orient="row")

    def _extreme(self, name: str, light: F64, heavy: F64, lowest: bool) -> tuple[F64, F64]:
        """Return per list what the least (largest) estimate adds up from: top and bottom."""
        c = self.contributions[name]
        if self.bottom is None:
            weight = light if lowest else heavy
            return self._per_list(weight * c), np.ones(self.users)
        # A ratio is least when what lies below it is heavy and what lies above is light.
        with np.errstate(invalid="ignore", divide="ignore"):
            ratio = np.where(self.bottom > 0, c / self.bottom, 0.0)
        order = np.argsort(ratio if lowest else -ratio, kind="stable")
        used = order[self.bottom[order] > 0]
        top_h, bottom_h = (np.cumsum((heavy * x)[used]) for x in (c, self.bottom))
        top_l, bottom_l = (np.cumsum((light * x)[used][::-1])[::-1] for x in (c, self.bottom))
        top_l, bottom_l = np.append(top_l[1:], 0.0), np.append(bottom_l[1:], 0.0)
        ratios = (top_h + top_l) / (bottom_h + bottom_l)
        cut = int(np.argmin(ratios) if lowest else np.argmax(ratios))
        weight = light.copy()
        weight[used[: cut + 1]] = heavy[used[: cut + 1]]
        return self._per_list(weight * c), self._per_list(weight * self.bottom)

    def _per_list(self, amount: F64) -> F64:
        return np.bincount(self.owner, amount, self.users).astype(np.float64)

    def figure(self, most: float = 3.0, points: int = 21) -> Figure:
        """Draw the range of each system's estimate over Γ."""
        import altair as alt

        if not is_number(most) or not 1 < most < math.inf:
            raise SettingError(f"most must be a number above 1, got {most!r}")
        as_count("points", points, least=2)
        if not self.systems:
            raise DataError(f"{self.metric}: no estimate is usable, so there is nothing to draw")
        rows = []
        for gamma in np.linspace(1, most, points):
            for row in self.interval(float(gamma), level=None).iter_rows(named=True):
                rows.append({"gamma": float(gamma), **row})
        canvas = alt.Chart(alt.NamedData(name="rows"), width=420, height=280)
        x = alt.X("gamma:Q", title="Γ").scale(nice=False, zero=False)
        color = alt.Color("system:N").scale(domain=list(self.systems))
        band = canvas.mark_area(opacity=0.25).encode(
            x=x, y=alt.Y("low:Q", title=self.metric), y2="high:Q", color=color
        )
        line = canvas.mark_line().encode(x=x, y=alt.Y("estimate:Q", title=self.metric), color=color)
        title = f"{self.metric}: propensities off by up to Γ"
        return as_figure(alt.layer(band, line), title, self.footer()[:1], rows)

    def _explanation(self) -> list[str]:
        what = "the odds of being judged" if self.model == "odds" else "the weights"
        left_out = [
            f"{name}: no gamma, as its estimate is {UNUSABLE} ({reason})"
            for name, reason in self.unusable.items()
        ]
        return [
            f"{self.metric}: gamma is how far off {what} must be for a pair to be equal",
            *left_out,
        ]

    def _content(self) -> dict[str, object]:
        return {
            "metric": self.metric,
            "model": self.model,
            "estimates": self.estimates,
            "pairs": self.table(),
            "unusable": self.unusable,
            "notes": self.notes,
        }

    def _summary(self) -> str:
        return f"{self.metric}, {counted(len(self.systems), 'system')}"


def weight_range(weight: F64, gamma: float, model: str) -> tuple[F64, F64]:
    """Return the least and the largest weights that Γ allows.

    `weights`: from w/Γ to wΓ. `odds`: with p = 1/w, odds p/(1-p) times 1/Γ to Γ, which makes
    weights 1 + (w - 1)/Γ to 1 + (w - 1)Γ.
    """
    if choose("model", model, MODELS) == "weights":
        return weight / gamma, weight * gamma
    return 1 + (weight - 1) / gamma, 1 + (weight - 1) * gamma


def smallest_gamma(difference: F64, weight: F64, model: str) -> float:
    r"""Return the smallest Γ at which Σ w d can be 0; infinite if no Γ can.

    With P what positive differences d add up to and N what negative ones do, each with its
    weight, Γ = √(P/N) where weights may change. Where odds may, of the weights only w - 1 does, and
    Γ solves NΓ² - SΓ - P = 0, with S the sum of the differences.
    """
    sign = 1.0 if float(weight @ difference) >= 0 else -1.0
    d = sign * difference
    moving = weight if model == "weights" else weight - 1.0
    plus = float((moving * np.maximum(d, 0.0)).sum())
    minus = float((moving * np.maximum(-d, 0.0)).sum())
    constant = 0.0 if model == "weights" else float(d.sum())
    if plus == 0.0 and minus == 0.0 and constant == 0.0:
        return 1.0
    if minus <= 0.0:
        # Without what can grow against it, the difference can at best shrink to what stays.
        if constant >= 0.0:
            return math.inf
        return max(-plus / constant, 1.0)
    gamma = (constant + math.sqrt(constant * constant + 4.0 * minus * plus)) / (2.0 * minus)
    return max(gamma, 1.0)


def linear_form(estimand: Estimand) -> Linear:
    """Return a metric as a sum over judged hits, or refuse it."""
    metric, form = estimand.metric, estimand.metric.definition.linear
    if form is None:
        what = "form as a sum over judged hits, which the difference of two systems needs"
        raise missing(estimand.label, metric.name, "linear", what)
    if estimand.params.get("per", "k") not in ("k", "all"):
        raise SettingError(f"{estimand.label}: take {metric.name} without per=…")
    if form.per_cutoff and metric.cutoff is None:
        raise SettingError(f"{estimand.label}: give a cutoff, as in {metric.name}@10")
    return form


@checked
def sensitivity(
    judgments: object,
    runs: object = None,
    metric: str = "P@10",
    *,
    model: str = "odds",
    propensity: object = None,
    weights: object = None,
    random: object = None,
    resamples: int = RESAMPLES,
    level: float = LEVEL,
    seed: int = 0,
    threads: int | None = None,
    **data: Unpack[RawOptions],
) -> Sensitivity:
    """Find how wrong propensities must be for the better of two systems to be the worse.

    Systems whose estimates are not usable (see `estimate`) are left out, and named.

    Parameters
    ----------
    judgments, runs, seed, data
        Judged data (`judge`) alone, with the metric as the second argument; or raw data and their
        options as `judge` takes them.
    metric
        P, DCG, RBP, Recall, SR or ADG, or an anti-twin. Of Recall, SR and ADG the ratio of sums
        over users, whose divisor systems share.
    model
        `odds`: the odds of being judged may be 1/Γ to Γ times what is assumed (the marginal
        sensitivity model of Tan 2006, after Rosenbaum); needs propensities. `weights`: the weights
        may.
    propensity, weights, random
        As for `estimate`.
    resamples, level
        Of the intervals by which estimates are called usable or not, as for `estimate`.
    threads
        Never changes a result.

    Examples
    --------
    >>> import unskew as us
    >>> test = {"user": [*range(36), *range(16)], "item": ["a"] * 36 + ["b"] * 16,
    ...         "rating": [5] * 52}
    >>> runs = {name: {user: [name] for user in range(128)} for name in "ab"}
    >>> result = us.unbiased.sensitivity(test, runs, "P@1", model="weights", liked=4,
    ...                                   propensity={"a": 0.5, "b": 0.5})
    >>> result.table().rows()  # a has 72 of 128, b has 32: √(72/32)
    [('a', 'b', 0.3125, 1.5)]
    """
    choose("model", model, MODELS)
    if model == "odds" and weights is not None:
        raise SettingError("model='odds' is about propensities; with weights take model='weights'")
    runs, metric = second_argument(judgments, runs, metric, "P@10")
    estimand = next(iter(estimands(metric).values()))
    linear_form(estimand)
    judged, notes = judge_for_estimates(
        judgments, runs, {estimand.label: estimand}, seed=seed, threads=threads, **data
    )
    check_two_systems(list(judged.systems))
    source = weigh(judged, propensity, weights, random)
    notes += source.notes
    if model == "odds" and not source.known:
        raise SettingError(
            "these propensities are known up to a factor, so their odds are not; take "
            "model='weights'"
        )
    scales = Scales.of(judged, source, source.weight)
    if scales.is_beyond(estimand):
        raise SettingError(
            f"{metric}: the propensities hold for liked judgments only, and disliked ones count too"
        )
    unusable: dict[str, str] = {}
    if any(scales.gives(estimand)):
        run = Averages.of(judged, {estimand.label: estimand}, "ratio", threads)
        values = run.results(source.weight, scales, resamples, level, seed, threads)
        unusable = {
            name: estimate.reason for (name, _), estimate in values.items() if estimate.reason
        }
    else:
        notes.append("estimates and differences are known up to a factor")
    result = _sensitivity(judged, estimand, source.weight, model, notes, unusable)
    return replace(result, most=scales.high(estimand)) if source.known else result


def _sensitivity(
    judged: Judged,
    estimand: Estimand,
    weight: F64,
    model: str,
    notes: list[str],
    unusable: Mapping[str, str],
) -> Sensitivity:
    basis, mask = judged.basis, judged.with_list
    owner = np.repeat(np.arange(len(basis.lists)), np.diff(basis.judgments.start))
    inside = mask[owner]
    number = np.cumsum(mask) - 1
    parts = {
        name: _contributions(basis, matched, estimand)[inside]
        for name, matched in judged.matched.items()
        if name not in unusable
    }
    bottom = None
    if not estimand.is_sum:
        what, power = linear_form(estimand).column(estimand.params)
        bottom = Columns(basis, None).of(what, estimand.metric.anti, power)[inside]
    mine = frozen(weight[inside])
    users = int(mask.sum())
    total = users if bottom is None else float(mine @ bottom)
    if not users or not total:
        raise DataError(f"{estimand.label}: no judgment counts, so there is nothing to compare")
    estimates = {name: float(mine @ part) / total for name, part in parts.items()}
    sign = 1.0 if estimand.better == "higher" else -1.0
    order = sorted(estimates, key=lambda name: -sign * estimates[name])
    flips = {
        (a, b): smallest_gamma(parts[a] - parts[b], mine, model) for a, b in combinations(order, 2)
    }
    return Sensitivity(
        metric=estimand.label,
        systems=tuple(parts),
        model=model,
        estimates=estimates,
        flips=flips,
        contributions=parts,
        weight=mine,
        owner=number[owner[inside]],
        users=users,
        bottom=bottom,
        better=estimand.better,
        unusable=unusable,
        notes=tuple(notes),
    )


def _contributions(basis: Basis, matched: Matched, estimand: Estimand) -> F64:
    """Return what a unit of weight of each judgment adds to a system's value."""
    metric = estimand.metric
    form = linear_form(estimand)
    what, power = form.column(estimand.params)
    column = Columns(basis, None).of(what, metric.anti, power)
    discount = form.discount(estimand.params, basis.longest)
    out = np.zeros(len(basis.judgments))
    scratch, total = Scratch(), len(basis.lists)
    for lo in range(0, total, BLOCK):
        hits = matched.hits(basis.judgments, lo, min(lo + BLOCK, total), scratch)
        near = hits.rank <= metric.whole_cutoff
        rows = hits.judgment[near]
        out[rows] = column[rows] * discount[hits.rank[near]]
    return out / metric.whole_cutoff if form.per_cutoff else out


def _resampled_ratio(top: F64, bottom: F64, resamples: int, seed: int, threads: int | None) -> F64:
    """Return top / bottom over users drawn with replacement."""
    columns, weigh = np.column_stack([top, bottom]), with_replacement(seed, "estimate/resamples")
    out = drawn_sums(columns, weigh, resamples, threads=threads)
    with np.errstate(invalid="ignore", divide="ignore"):
        ratios = out[:, 0] / out[:, 1]
    finite: F64 = ratios[np.isfinite(ratios)]
    return finite if finite.size else np.zeros(1)
