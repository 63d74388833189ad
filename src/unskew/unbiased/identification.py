"""How far conclusions can be trusted where propensities are not: bounds, Γ, and what would settle.

`bounds` asks what systems score if every unjudged item were bad, or good. `sensitivity` asks how
wrong propensities must be for a winner to lose. `judgments_needed` asks how many judgments of
randomly chosen slots would tell two systems apart.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from itertools import combinations
from statistics import NormalDist
from typing import Any

import numpy as np
import polars as pl

from unskew.arrays import F64, I64, frozen
from unskew.checks import as_count, check_share, checked, choose, is_number
from unskew.data.relevance import Relevance, Rule
from unskew.engine.rng import key_of
from unskew.engine.threads import map_blocks, one_blas_thread
from unskew.errors import DataError, SettingError
from unskew.evaluation.evaluate import labelled
from unskew.judging.shape import BLOCK, Matched, Scratch
from unskew.metrics.block import geometric_discount, log_discount
from unskew.metrics.names import Metric
from unskew.report.charts import Figure, as_figure
from unskew.report.result import Printed
from unskew.stats.sample_sizes import check_power
from unskew.stats.user_draws import at_least_two
from unskew.unbiased.ips import (
    LEVEL,
    RESAMPLES,
    ROWS,
    UNUSABLE,
    Averages,
    Estimate,
    Laid,
    Scales,
    lay,
    weigh,
)
from unskew.unbiased.weighted_metrics import Columns, Estimand, estimands

BOUNDED = ("P", "Recall", "F1", "RBP", "DCG", "HitRate", "RR")
"""Metrics of which the least and the largest value are known in closed form."""
SENSITIVE = ("P", "DCG", "RBP", "Recall", "SR", "ADG")
"""Metrics whose difference between systems is a sum over judgments, up to a common divisor."""
MODELS = ("odds", "weights")


# Every unjudged item bad, or good


@dataclass(frozen=True, eq=False)
class Bounds(Printed):
    """The least and the largest value each system can have, whatever the unjudged items are."""

    metrics: tuple[str, ...]
    systems: tuple[str, ...]
    observed: Mapping[tuple[str, str], float]
    low: Mapping[tuple[str, str], float]
    high: Mapping[tuple[str, str], float]
    users: int
    better: Mapping[str, str]
    notes: tuple[str, ...] = ()

    def table(self) -> pl.DataFrame:
        """Return a row per system and metric: observed, low, high."""
        keys = [(system, metric) for system in self.systems for metric in self.metrics]
        return pl.DataFrame(
            {
                "system": [key[0] for key in keys],
                "metric": [key[1] for key in keys],
                "observed": [self.observed[key] for key in keys],
                "low": [self.low[key] for key in keys],
                "high": [self.high[key] for key in keys],
            }
        )

    def settled(self, metric: str) -> list[tuple[str, str]]:
        """Return the pairs (better, worse) whose bounds do not meet: nothing can turn them."""
        choose("metric", metric, self.metrics)
        found = []
        for a, b in combinations(self.systems, 2):
            for one, other in ((a, b), (b, a)):
                if self.low[one, metric] > self.high[other, metric]:
                    lower = self.better[metric] == "lower"
                    found.append((other, one) if lower else (one, other))
        return found

    def figure(self, metric: str | None = None) -> Figure:
        """Draw the range of each system, the observed value as a point."""
        import altair as alt

        label = choose("metric", metric or self.metrics[0], self.metrics)
        rows = self.table().filter(pl.col("metric") == label).drop("metric").to_dicts()
        whole = alt.Chart(alt.NamedData(name="rows"), width=420, height=alt.Step(24))
        y = alt.Y("system:N", title=None).scale(domain=list(self.systems))
        bars = whole.mark_rule(strokeWidth=4, opacity=0.5).encode(
            x=alt.X("low:Q", title=label), x2="high:Q", y=y
        )
        points = whole.mark_point(filled=True, size=70, opacity=1).encode(
            x=alt.X("observed:Q", title=label), y=y
        )
        return as_figure(alt.layer(bars, points), f"{label}: bounds", self.footer()[:1], rows)

    def footer(self) -> list[str]:
        """Return the lines that say how the numbers came about."""
        return [
            f"low to high: whatever the unjudged items are; mean over {self.users:,} users",
            *self.notes,
        ]

    def to_dict(self) -> dict[str, Any]:
        """Return everything as plain values, for JSON."""
        return {"users": self.users, "bounds": self.table().to_dicts(), "notes": list(self.notes)}

    def __repr__(self) -> str:
        return f"Bounds({len(self.systems)} systems, {len(self.metrics)} metrics)"


@checked
def bounds(
    judgments: object,
    systems: object,
    metrics: str | Metric | Iterable[str | Metric] = "P@10",
    *,
    train: object = None,
    items: object = None,
    liked: float | None = None,
    above: float | None = None,
    gain: Rule = "rating",
    loss: Rule = "levels",
    relevance: Relevance | str | None = None,
    ties: str | None = None,
    seed: int = 0,
    depth: int | None = None,
    threads: int | None = None,
) -> Bounds:
    """Bound metrics from below and above by what unjudged items could be.

    P, RBP, DCG, HitRate and RR are least when every unjudged item is bad and largest when every
    one is good (DCG: has the largest gain of the judgments). Recall and F1 are largest when the
    unjudged items in the list are good and those outside are bad, and least the other way round.
    An anti-metric is bounded likewise, bad and good exchanged. A cutoff is needed.

    Parameters
    ----------
    judgments, systems, metrics, train, items, liked, above, gain, loss, relevance
        As for `evaluate`.
    ties, seed, depth, threads
        As for `evaluate`.

    Examples
    --------
    >>> from unskew.unbiased.identification import bounds
    >>> test = {"user": [1, 1], "item": ["a", "b"], "rating": [5, 1]}
    >>> print(bounds(test, {"mine": {1: ["a", "b", "c"]}}, "P@3", liked=4).table().rows()[0][2:])
    (0.3333333333333333, 0.3333333333333333, 0.6666666666666666)
    """
    wanted = labelled(metrics)
    for label, metric in wanted.items():
        _must_be_bounded(label, metric)
    rules = {"liked": liked, "above": above, "gain": gain, "loss": loss, "relevance": relevance}
    named = {label: Estimand(label, metric) for label, metric in wanted.items()}
    laid = lay(judgments, systems, named, train, items, rules, ties, seed, depth, threads)
    judged = laid.bench.judged
    kept = laid.asked
    if not kept.any():
        raise DataError("no user has a list")
    observed: dict[tuple[str, str], float] = {}
    low: dict[tuple[str, str], float] = {}
    high: dict[tuple[str, str], float] = {}
    for name, matched in laid.bench.matched.items():
        for label, metric in wanted.items():
            values = _limits(laid, matched, metric)
            for into, own in zip((observed, low, high), values, strict=True):
                mine = own[kept]
                known = mine[~np.isnan(mine)]
                into[name, label] = float(known.mean()) if known.size else math.nan
    notes = list(laid.notes)
    if judged.lists.targets is not None and any(
        m.name in ("Recall", "F1") for m in wanted.values()
    ):
        notes.append("Recall and F1: over users who have, or could have, a liked item")
    return Bounds(
        tuple(wanted),
        tuple(laid.bench.matched),
        observed,
        low,
        high,
        int(kept.sum()),
        {label: metric.better for label, metric in wanted.items()},
        tuple(notes),
    )


def _must_be_bounded(label: str, metric: Metric) -> None:
    if metric.name not in BOUNDED or metric.condensed:
        raise SettingError(
            f"{label} has no bounds here: they are known of {', '.join(BOUNDED)} and their "
            f"anti-twins"
        )
    if metric.settings and metric.name != "RBP":
        raise SettingError(f"{label}: bounds are of the metric without settings, {metric.name}@k")
    if metric.cutoff is None:
        raise SettingError(f"{label}: bounds need a cutoff, as in {label}@10")


def _limits(laid: Laid, matched: Matched, metric: Metric) -> tuple[F64, F64, F64]:
    """Return the observed, the least and the largest value of each list."""
    from unskew.unbiased import kernels

    judged, cutoff = laid.bench.judged, metric.whole_cutoff
    view = judged.view.anti if metric.anti else judged.view
    liked, disliked = judged.liked, judged.disliked
    if metric.anti:
        liked, disliked = disliked, liked
    discount = _discount(metric, max(judged.longest, cutoff))
    total = len(judged.lists)
    kinds = np.empty((8, total))
    slots = matched.run.item if not matched.is_full else np.zeros(0, np.int32)
    scratch = Scratch()
    gains = np.zeros(total)
    for lo in range(0, total, BLOCK):
        hi = min(lo + BLOCK, total)
        hits = matched.hits(judged.judgments, lo, hi, scratch)
        part = np.empty((8, hi - lo))
        kernels.slot_kinds(
            hits.start,
            hits.rank,
            hits.judgment,
            view.label,
            matched.depth[lo:hi],
            matched.start[lo:hi],
            slots,
            discount,
            cutoff,
            part,
        )
        kinds[:, lo:hi] = part
        if metric.name == "DCG":
            near = hits.rank <= cutoff
            owner = np.repeat(np.arange(hi - lo), np.diff(hits.start))[near]
            worth = view.gain[hits.judgment[near]] * discount[hits.rank[near]]
            gains[lo:hi] = np.bincount(owner, worth, hi - lo)
    good, unjudged = kinds[0], kinds[2]
    counted, open_ = kinds[3], kinds[5]
    if metric.name == "P":
        return good / cutoff, good / cutoff, (good + unjudged) / cutoff
    if metric.name == "RBP":
        return good, good, good + unjudged
    if metric.name == "DCG":
        most = float(view.gain.max()) if view.gain.size else 0.0
        return gains, gains, gains + most * unjudged
    if metric.name == "HitRate":
        hit = (counted > 0).astype(np.float64)
        return hit, hit, ((counted + open_) > 0).astype(np.float64)
    if metric.name == "RR":
        first = np.divide(1.0, kinds[6], out=np.zeros(total), where=kinds[6] > 0)
        best = np.divide(1.0, kinds[7], out=np.zeros(total), where=kinds[7] > 0)
        return first, first, best
    assert judged.lists.targets is not None
    # What is neither judged nor in the list above the cutoff.
    outside = np.maximum(judged.lists.targets - liked - disliked - open_, 0.0)
    base = np.zeros(total) if metric.name == "Recall" else np.full(total, float(cutoff))
    times = 1.0 if metric.name == "Recall" else 2.0

    def value(found: F64, relevant: F64) -> F64:
        with np.errstate(invalid="ignore", divide="ignore"):
            result: F64 = np.where(relevant > 0, times * found / (base + relevant), np.nan)
        return result

    observed = value(counted, liked)
    low, high = value(counted, liked + outside), value(counted + open_, liked + open_)
    return observed, np.where(np.isnan(low), high, low), np.where(np.isnan(high), low, high)


def _discount(metric: Metric, longest: int) -> F64:
    if metric.name == "RBP":
        p = float(metric.params["p"])
        return geometric_discount(longest, 1.0 - p, p)
    if metric.name in ("DCG", "ADG"):
        return log_discount(
            longest, str(metric.params["discount"]) if metric.name == "DCG" else "log"
        )
    return frozen(np.ones(longest + 1))


# The smallest Γ at which a winner flips


@dataclass(frozen=True, eq=False)
class Sensitivity(Printed):
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
            for lighter in (True, False):
                top, bottom = self._extreme(name, light, heavy, lighter)
                value = float(top.sum() / bottom.sum())
                if level is not None:
                    share = (1 - level) / 2
                    drawn = _resampled_ratio(top, bottom, resamples, seed, threads)
                    value = float(np.quantile(drawn, share if lighter else 1 - share))
                sides.append(min(value, self.most))
            rows.append((name, sides[0], self.estimates[name], sides[1]))
        schema = ["system", "low", "estimate", "high"]
        return pl.DataFrame(rows, schema, orient="row")

    def _extreme(self, name: str, light: F64, heavy: F64, least: bool) -> tuple[F64, F64]:
        """Return per list what the least (largest) estimate adds up from: top and bottom."""
        c = self.contributions[name]
        if self.bottom is None:
            weight = light if least else heavy
            return self._per_list(weight * c), np.ones(self.users)
        # A ratio is least when what lies below it is heavy and what lies above is light.
        with np.errstate(invalid="ignore", divide="ignore"):
            worth = np.where(self.bottom > 0, c / self.bottom, 0.0)
        order = np.argsort(worth if least else -worth, kind="stable")
        used = order[self.bottom[order] > 0]
        top_h, bottom_h = (np.cumsum((heavy * x)[used]) for x in (c, self.bottom))
        top_l, bottom_l = (np.cumsum((light * x)[used][::-1])[::-1] for x in (c, self.bottom))
        top_l, bottom_l = np.append(top_l[1:], 0.0), np.append(bottom_l[1:], 0.0)
        ratios = (top_h + top_l) / (bottom_h + bottom_l)
        cut = int(np.argmin(ratios) if least else np.argmax(ratios))
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
        whole = alt.Chart(alt.NamedData(name="rows"), width=420, height=280)
        x = alt.X("gamma:Q", title="Γ").scale(nice=False, zero=False)
        color = alt.Color("system:N").scale(domain=list(self.systems))
        band = whole.mark_area(opacity=0.25).encode(
            x=x, y=alt.Y("low:Q", title=self.metric), y2="high:Q", color=color
        )
        line = whole.mark_line().encode(x=x, y=alt.Y("estimate:Q", title=self.metric), color=color)
        title = f"{self.metric}: propensities off by up to Γ"
        return as_figure(alt.layer(band, line), title, self.footer()[:1], rows)

    def footer(self) -> list[str]:
        """Return the lines that say how the numbers came about."""
        what = "the odds of being judged" if self.model == "odds" else "the weights"
        left_out = [
            f"{name}: no gamma, as its estimate is {UNUSABLE} ({reason})"
            for name, reason in self.unusable.items()
        ]
        return [
            f"{self.metric}: gamma is how far off {what} must be for a pair to be equal",
            *left_out,
            *self.notes,
        ]

    def to_dict(self) -> dict[str, Any]:
        """Return everything as plain values, for JSON."""
        return {
            "metric": self.metric,
            "model": self.model,
            "estimates": dict(self.estimates),
            "pairs": self.table().to_dicts(),
            "unusable": dict(self.unusable),
            "notes": list(self.notes),
        }

    def __repr__(self) -> str:
        return f"Sensitivity({self.metric}, {len(self.systems)} systems)"


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
    still = 0.0 if model == "weights" else float(d.sum())
    if plus == 0.0 and minus == 0.0 and still == 0.0:
        return 1.0
    if minus <= 0.0:
        # Without what can grow against it, the difference can at best shrink to what stays.
        if still >= 0.0:
            return math.inf
        return max(-plus / still, 1.0)
    gamma = (still + math.sqrt(still * still + 4.0 * minus * plus)) / (2.0 * minus)
    return max(gamma, 1.0)


@checked
def sensitivity(
    judgments: object,
    systems: object,
    metric: str = "P@10",
    *,
    model: str = "odds",
    propensity: object = None,
    weights: object = None,
    train: object = None,
    random: object = None,
    items: object = None,
    liked: float | None = None,
    above: float | None = None,
    gain: Rule = "rating",
    loss: Rule = "levels",
    relevance: Relevance | str | None = None,
    resamples: int = RESAMPLES,
    level: float = LEVEL,
    ties: str | None = None,
    seed: int = 0,
    depth: int | None = None,
    threads: int | None = None,
) -> Sensitivity:
    """Find how wrong propensities must be for the better of two systems to be the worse.

    Systems whose estimates are not usable (see `estimate`) are left out, and named.

    Parameters
    ----------
    judgments, systems
        As for `estimate`.
    metric
        P, DCG, RBP, Recall, SR or ADG, or an anti-twin. Of Recall, SR and ADG the ratio of sums
        over users, whose divisor systems share.
    model
        `odds`: the odds of being judged may be 1/Γ to Γ times what is assumed (the marginal
        sensitivity model of Tan 2006, after Rosenbaum); needs propensities. `weights`: the weights
        may.
    propensity, weights, train, random, items, liked, above, gain, loss, relevance
        As for `estimate`.
    resamples, level
        Of the intervals by which estimates are called usable or not, as for `estimate`.
    ties, seed, depth, threads
        As for `evaluate`.

    Examples
    --------
    >>> from unskew.unbiased.identification import sensitivity
    >>> test = {"user": [*range(36), *range(16)], "item": ["a"] * 36 + ["b"] * 16,
    ...         "rating": [5] * 52}
    >>> runs = {name: {user: [name] for user in range(128)} for name in "ab"}
    >>> found = sensitivity(test, runs, "P@1", model="weights", liked=4,
    ...                     propensity={"a": 0.5, "b": 0.5})
    >>> found.table().rows()  # a has 72 of 128, b has 32: √(72/32)
    [('a', 'b', 0.3125, 1.5)]
    """
    choose("model", model, MODELS)
    if model == "odds" and weights is not None:
        raise SettingError("model='odds' is about propensities; with weights take model='weights'")
    one = next(iter(estimands(metric).values()))
    if one.metric.name not in SENSITIVE or one.params.get("per", "k") not in ("k", "all"):
        raise SettingError(
            f"{metric}: the smallest Γ is known of {', '.join(SENSITIVE)} and their anti-twins, "
            f"without per=…"
        )
    if one.metric.name == "P" and one.metric.cutoff is None:
        raise SettingError(f"{metric}: give a cutoff, as in P@10")
    rules = {"liked": liked, "above": above, "gain": gain, "loss": loss, "relevance": relevance}
    laid = lay(
        judgments, systems, {one.label: one}, train, items, rules, ties, seed, depth, threads
    )
    at_least_two(list(laid.bench.matched))
    source = weigh(laid, propensity, weights, random)
    notes = [*laid.notes, *source.notes]
    if model == "odds" and not source.known:
        raise SettingError(
            "these propensities are known up to a factor, so their odds are not; take "
            "model='weights'"
        )
    scales = Scales.of(laid, source, source.weight)
    if scales.is_beyond(one):
        raise SettingError(
            f"{metric}: the propensities hold for liked judgments only, and disliked ones count too"
        )
    unusable: dict[str, str] = {}
    if any(scales.gives(one)):
        run = Averages.of(laid, {one.label: one}, "ratio", threads)
        values = run.results(source.weight, scales, resamples, level, seed, threads)
        unusable = {name: own.reason for (name, _), own in values.items() if own.reason}
    else:
        notes.append("estimates and differences are known up to a factor")
    found = _sensitivity(laid, one, source.weight, model, notes, unusable)
    return replace(found, most=scales.high(one)) if source.known else found


def _sensitivity(
    laid: Laid,
    one: Estimand,
    weight: F64,
    model: str,
    notes: list[str],
    unusable: Mapping[str, str],
) -> Sensitivity:
    judged, kept = laid.bench.judged, laid.asked
    owner = np.repeat(np.arange(len(judged.lists)), np.diff(judged.judgments.start))
    inside = kept[owner]
    number = np.cumsum(kept) - 1
    parts = {
        name: _contributions(laid, matched, one)[inside]
        for name, matched in laid.bench.matched.items()
        if name not in unusable
    }
    bottom = None
    if not one.is_sum:
        what, power = _column(one)
        bottom = Columns(judged, None).of(what, one.metric.anti, power)[inside]
    mine = frozen(weight[inside])
    users = int(kept.sum())
    total = users if bottom is None else float(mine @ bottom)
    if not users or not total:
        raise DataError(f"{one.label}: no judgment counts, so there is nothing to compare")
    estimates = {name: float(mine @ part) / total for name, part in parts.items()}
    sign = 1.0 if one.better == "higher" else -1.0
    order = sorted(estimates, key=lambda name: -sign * estimates[name])
    flips = {
        (a, b): smallest_gamma(parts[a] - parts[b], mine, model) for a, b in combinations(order, 2)
    }
    return Sensitivity(
        metric=one.label,
        systems=tuple(parts),
        model=model,
        estimates=estimates,
        flips=flips,
        contributions=parts,
        weight=mine,
        owner=number[owner[inside]],
        users=users,
        bottom=bottom,
        better=one.better,
        unusable=unusable,
        notes=tuple(notes),
    )


def _column(one: Estimand) -> tuple[str, float]:
    """Return what a metric adds up: liked or gain, and the power of popularity."""
    if one.metric.name == "SR":
        gamma = float(one.params["gamma"])
        return "SR", -gamma / (gamma + 1)
    return ("gain" if one.metric.name == "DCG" else "liked"), 0.0


def _contributions(laid: Laid, matched: Matched, one: Estimand) -> F64:
    """Return what a unit of weight of each judgment adds to a system's value."""
    judged, metric = laid.bench.judged, one.metric
    what, power = _column(one)
    column = Columns(judged, None).of(what, metric.anti, power)
    discount = _discount(metric, judged.longest)
    out = np.zeros(len(judged.judgments))
    scratch, total = Scratch(), len(judged.lists)
    for lo in range(0, total, BLOCK):
        hits = matched.hits(judged.judgments, lo, min(lo + BLOCK, total), scratch)
        near = hits.rank <= metric.whole_cutoff
        rows = hits.judgment[near]
        out[rows] = column[rows] * discount[hits.rank[near]]
    return out / metric.whole_cutoff if metric.name == "P" else out


def _resampled_ratio(top: F64, bottom: F64, resamples: int, seed: int, threads: int | None) -> F64:
    """Return top / bottom over users drawn with replacement."""
    from unskew.stats import kernels

    columns = np.column_stack([top, bottom])
    out = np.empty((resamples, 2))
    key = np.uint64(key_of(seed, "estimate/resamples"))

    def one(low: int) -> None:
        times = np.empty((min(ROWS, resamples - low), len(top)))
        kernels.resample(key, low, times)
        out[low : low + len(times)] = times @ columns

    with one_blas_thread():
        map_blocks(one, range(0, resamples, ROWS), threads, resamples * len(top))
    with np.errstate(invalid="ignore", divide="ignore"):
        drawn = out[:, 0] / out[:, 1]
    known: F64 = drawn[np.isfinite(drawn)]
    return known if known.size else np.zeros(1)


# How many random judgments would settle a pair


@dataclass(frozen=True, eq=False)
class JudgmentsNeeded(Printed):
    """How many random judgments would tell each pair of systems apart. From `judgments_needed`."""

    metric: str
    rows: tuple[Mapping[str, Any], ...]
    power: float
    alpha: float
    liked_share: float
    """The mean over pairs; NaN where no pair has one."""

    def table(self) -> pl.DataFrame:
        """Return a row per pair: a, b, difference, slots, needed, and the reason where it is null.

        Slots are the places of the lists in which the two differ; `needed` of these, drawn at
        random and judged, find the difference with the power asked for.
        """
        kinds: dict[str, Any] = {
            "a": pl.String,
            "b": pl.String,
            "difference": pl.Float64,
            "slots": pl.Int64,
            "needed": pl.Int64,
            "reason": pl.String,
        }
        return pl.DataFrame(list(self.rows), kinds)

    def footer(self) -> list[str]:
        """Return the lines that say how the numbers came about."""
        share = f", where {self.liked_share:.3g} of the slots are liked"
        return [
            f"{self.metric}: random judgments needed at power {self.power:g}, alpha {self.alpha:g}"
            + ("" if math.isnan(self.liked_share) else share)
        ]

    def to_dict(self) -> dict[str, Any]:
        """Return everything as plain values, for JSON."""
        facts = {"metric": self.metric, "power": self.power, "alpha": self.alpha}
        return {**facts, "liked_share": self.liked_share, "pairs": self.table().to_dicts()}

    def figure(self) -> Figure:
        """Draw the number of judgments needed for each pair."""
        import altair as alt

        rows = [
            {"pair": f"{row['a']} – {row['b']}", "needed": row["needed"]}
            for row in self.rows
            if row["needed"] is not None
        ]
        if not rows:
            raise DataError("no pair can be settled, so there is nothing to draw")
        whole = alt.Chart(alt.NamedData(name="rows"), width=420, height=alt.Step(24))
        bars: alt.Chart = whole.mark_bar().encode(
            x=alt.X("needed:Q", title="random judgments needed"), y=alt.Y("pair:N", title=None)
        )
        return as_figure(bars, f"{self.metric}: what would settle it", self.footer(), rows)

    def __repr__(self) -> str:
        return f"JudgmentsNeeded({self.metric}, {len(self.rows)} pairs)"


@checked
def judgments_needed(
    judgments: object,
    systems: object,
    metric: str = "P@10",
    *,
    difference: float | None = None,
    liked_share: float | None = None,
    power: float = 0.8,
    alpha: float = 0.05,
    propensity: object = None,
    weights: object = None,
    train: object = None,
    random: object = None,
    items: object = None,
    liked: float | None = None,
    above: float | None = None,
    gain: Rule = "rating",
    loss: Rule = "levels",
    relevance: Relevance | str | None = None,
    resamples: int = RESAMPLES,
    level: float = LEVEL,
    ties: str | None = None,
    seed: int = 0,
    threads: int | None = None,
) -> JudgmentsNeeded:
    r"""Say how many slots, drawn at random and judged, would tell systems apart.

    The difference of two systems is a sum over the slots in which their lists differ, each adding
    ±discount when its item is liked. Of M such slots, m drawn at random give it with variance
    :math:`M^2 s^2 (1/m - 1/M)`, :math:`s^2` being the variance of what a slot adds when
    `liked_share` of the slots are liked.

    Parameters
    ----------
    judgments, systems
        As for `estimate`. Judgments say how large differences may be; the slots counted are those
        of the lists, judged or not.
    metric
        P, RBP, or DCG (with gain 1 for what is liked), with a cutoff.
    difference
        What is to be found: above 0, and at most what the metric allows. Default: the weighted
        estimate of each pair; a pair with an estimate that is not usable gets no number, but the
        reason.
    liked_share
        How many of the slots are liked. Default: the mean weighted precision of both systems.
    power, alpha
        How surely it should be found, and the level of the two-sided test; power is above alpha.
    propensity, weights, train, random, items, liked, above, gain, loss, relevance
        As for `estimate`.
    resamples, level
        Of the intervals by which estimates are called usable or not, as for `estimate`.
    ties, seed, threads
        As for `evaluate`.

    Examples
    --------
    >>> from unskew.unbiased.identification import judgments_needed
    >>> test = {"user": [1, 2], "item": ["a", "c"], "rating": [5, 1]}
    >>> runs = {"x": {u: ["a", "b"] for u in (1, 2)}, "y": {u: ["c", "d"] for u in (1, 2)}}
    >>> judgments_needed(test, runs, "P@2", liked=4, difference=0.5, liked_share=0.5).table().rows()
    [('x', 'y', 0.5, 8, 8, None)]
    """
    one = next(iter(estimands(metric).values()))
    if one.metric.name not in ("P", "RBP", "DCG") or one.metric.cutoff is None:
        raise SettingError(f"{metric}: judgments are counted for P, RBP and DCG with a cutoff")
    check_power(power, alpha)
    most = _largest_difference(one)
    allowed = is_number(difference) and 0 < float(difference or 0) <= most * (1 + 1e-9)
    if difference is not None and not allowed:
        raise SettingError(
            f"difference must be a number above 0 and at most {most:g}, the largest difference of "
            f"two systems by {metric}; got {difference!r}"
        )
    if liked_share is not None:
        check_share("liked_share", liked_share)
    rules: dict[str, Any] = {
        "liked": liked,
        "above": above,
        "gain": gain,
        "loss": loss,
        "relevance": relevance,
    }
    precision = estimands(f"{'anti-' * one.metric.anti}P@{one.metric.cutoff}")
    wanted = {one.label: one, **precision}
    laid = lay(judgments, systems, wanted, train, items, rules, ties, seed, None, threads)
    names = list(laid.bench.matched)
    at_least_two(names)
    values: Mapping[tuple[str, str], Estimate] = {}
    if difference is None or liked_share is None:
        laid = _with_gain_1(laid)
        source = weigh(laid, propensity, weights, random)
        run = Averages.of(laid, wanted, "users", threads)
        scales = Scales.of(laid, source, source.weight)
        values = run.results(source.weight, scales, resamples, level, seed, threads)
    slots = _slots(laid, one)
    rows, shares = [], []
    factor = NormalDist().inv_cdf(1 - alpha / 2) + NormalDist().inv_cdf(power)
    asks = [one.label] * (difference is None) + list(precision) * (liked_share is None)
    for a, b in combinations(names, 2):
        adds = _differing(slots[a], slots[b], int(laid.asked.sum()))
        row = {"a": a, "b": b, "difference": difference, "slots": int(adds.size), "needed": None}
        reasons = [
            f"the estimate of {name} is {UNUSABLE}: {values[name, label].reason}"
            for name in (a, b)
            for label in asks
            if values[name, label].reason
        ]
        if reasons:
            rows.append({**row, "reason": reasons[0]})
            continue
        gap, share = difference, liked_share
        if gap is None:
            gap = values[a, one.label].best - values[b, one.label].best
        if share is None:
            (label,) = precision
            share = (values[a, label].best + values[b, label].best) / 2
        shares.append(share)
        needed, reason = _needed(adds, gap, share, factor)
        rows.append({**row, "difference": gap, "needed": needed, "reason": reason})
    mean = float(np.mean(shares)) if shares else math.nan
    return JudgmentsNeeded(metric, tuple(rows), power, alpha, mean)


def _largest_difference(one: Estimand) -> float:
    """Return the value of a list that holds liked items only: the other's may be 0."""
    cutoff = one.metric.whole_cutoff
    if one.metric.name == "P":
        return 1.0
    return float(_discount(one.metric, min(cutoff, 1 << 20)).sum())


def _with_gain_1(laid: Laid) -> Laid:
    """Return the same with gain and loss 1: what slots are counted with."""
    view = laid.bench.judged.view
    rule = replace(view.relevance, gain="binary", loss="binary")
    judged = replace(laid.bench.judged, view=replace(view, relevance=rule))
    return replace(laid, bench=replace(laid.bench, judged=judged))


def _slots(laid: Laid, one: Estimand) -> dict[str, tuple[I64, F64]]:
    """Return the slots of each system: (list, item) as one number, and what a liked item adds."""
    judged, cutoff = laid.bench.judged, one.metric.whole_cutoff
    discount = _discount(one.metric, max(judged.longest, min(cutoff, 1 << 20)))
    found = {}
    for name, matched in laid.bench.matched.items():
        if matched.is_full:
            raise SettingError(
                f"{name}: give ready-made lists (rank(…) makes them) to count the slots in which "
                f"systems differ"
            )
        length = np.minimum(matched.depth, cutoff)
        owner = np.repeat(np.arange(length.size), length)
        place = np.arange(owner.size) - np.repeat(np.cumsum(length) - length, length)
        item = matched.run.item[matched.start[owner] + place]
        there = item >= 0
        key = owner[there] * np.int64(len(judged.judgments.items)) + matched.from_run[item[there]]
        worth = discount[place[there] + 1]
        found[name] = key, worth / cutoff if one.metric.name == "P" else worth
    return found


def _differing(one: tuple[I64, F64], other: tuple[I64, F64], users: int) -> F64:
    """Return what a liked item adds to the difference, in each slot where that is not 0."""
    key = np.concatenate([one[0], other[0]])
    adds = np.concatenate([one[1], -other[1]])
    _, place = np.unique(key, return_inverse=True)
    net = np.bincount(place, adds) / users
    return net[np.abs(net) > 1e-15]


def _needed(adds: F64, gap: float, share: float, factor: float) -> tuple[int | None, str | None]:
    """Return the smallest m with M² s² (1/m - 1/M) <= (gap / factor)², or None and the reason."""
    slots = adds.size
    if not slots:
        return None, "the two lists do not differ"
    if gap == 0:
        return None, "the estimates do not differ"
    if not 0 < share < 1:
        return None, f"the estimated share of liked slots is {share:g}"
    most = _largest_gap(adds, share)
    if abs(gap) > most * (1 + 1e-9):
        return None, f"lists that differ in so few liked slots differ by {most:.3g} at most"
    mean = float(adds.mean()) * share
    variance = max(float((adds**2).mean()) * share - mean**2, 0.0)
    wanted = (gap / factor) ** 2
    m = 1.0 / (wanted / (slots**2 * variance) + 1.0 / slots) if variance else 1.0
    return min(max(math.ceil(m - 1e-9), 1), slots), None


def _largest_gap(adds: F64, share: float) -> float:
    """Return the largest difference, either way, where a share of the slots is liked."""
    liked = math.ceil(share * adds.size - 1e-9)
    ascending = np.sort(adds)
    up, down = ascending[-liked:], -ascending[:liked]
    return max(float(np.maximum(side, 0.0).sum()) for side in (up, down))
