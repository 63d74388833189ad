"""`sensitivity`: how wrong propensities must be for a winner to lose."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import combinations
from typing import Any, Unpack

import numpy as np

from unskew.arrays import F64, I64, frozen
from unskew.checks import as_count, check_share, checked, choose, is_number
from unskew.errors import DataError, SettingError
from unskew.judging.judge import RawOptions, second_argument
from unskew.judging.shape import BLOCK, Basis, Matched, Scratch
from unskew.metrics.weighted import Columns
from unskew.report.columns import (
    HIGH,
    LOW,
    METRIC,
    NOTE,
    PAIR,
    SYSTEM,
    VALUE,
    Column,
    Drawing,
    Method,
    Question,
)
from unskew.report.estimates import Estimates
from unskew.stats.resampling import check_two_systems
from unskew.unbiased.judgment_weights import Estimand, estimands, judge_for_estimates, weigh
from unskew.unbiased.user_sums import resampled_sums
from unskew.unbiased.weighted_averages import LEVEL, RESAMPLES, UNUSABLE, WeightedAverages

MODELS = ("odds", "weights")
GAMMAS = tuple(tenths / 10 for tenths in range(10, 31))
SENSITIVITY = Question(
    name="how wrong propensities must be for two systems to be equal",
    columns=(
        *(METRIC, replace(PAIR[0], label="better"), replace(PAIR[1], label="worse")),
        *(Column("difference", "fact", form="+"), Column("value", "value", "Γ"), NOTE),
    ),
    method=Method(
        estimand="the smallest Γ at which the systems can be equal, where what is assumed of each "
        "judgment may be off by a factor of 1/Γ to Γ"
    ),
    figures=(Drawing("sensitivity", "lines", "curve"),),
)
"""A row per pair, the system with the better estimate first; no value where no Γ would do."""
CURVE = Question(
    name="estimates where propensities are off by up to Γ",
    columns=(SYSTEM, METRIC, Column("gamma", "axis", "Γ"), VALUE, LOW, HIGH),
    method=Method(
        estimand="the mean score if every item were judged",
        interval="range over what Γ allows, widened to percentiles of a bootstrap",
    ),
)


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


@checked
def sensitivity(
    judgments: object,
    runs: object = None,
    metric: str = "P@10",
    *,
    model: str = "odds",
    gammas: Sequence[float] = GAMMAS,
    propensity: object = None,
    weights: object = None,
    random: object = None,
    resamples: int = RESAMPLES,
    level: float = LEVEL,
    seed: int = 0,
    threads: int | None = None,
    **data: Unpack[RawOptions],
) -> Estimates:
    """Find how wrong propensities must be for the better of two systems to be the worse.

    With Γ, the odds of being judged (or the weights) of each judgment may be anything from 1/Γ to Γ
    times what is assumed. Systems whose estimates are not usable (see `estimate`) are left out, and
    the reason is given.

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
    gammas
        At which Γ the part `curve` has the range of each estimate, from 1 up.
    propensity, weights, random
        As for `estimate`.
    resamples, level
        The ends of these ranges are moved outwards to quantiles of a bootstrap over users, so that
        a range holds the truth at least this often where Γ does (Zhao, Small & Bhattacharya 2019).
        With 0 resamples they are for the users at hand. Estimates are called usable or not by
        intervals of this level, as for `estimate`.
    threads
        Never changes a result.

    Returns
    -------
    Estimates
        A row per pair: the better and the worse system (`system`, `against`), the smallest Γ at
        which they can be equal (`value`), their difference, and in `note` why there is no Γ. The
        part `curve` has a row per system and Γ: the estimate and its range. No end is above the
        largest value of the metric.

    Examples
    --------
    >>> import unskew as us
    >>> test = {"user": [*range(144), *range(64)], "item": ["a"] * 144 + ["b"] * 64,
    ...         "rating": [5] * 208}
    >>> runs = {name: {user: [name] for user in range(512)} for name in "ab"}
    >>> result = us.unbiased.sensitivity(test, runs, "P@1", model="weights", liked=4,
    ...                                   propensity={"a": 0.5, "b": 0.5})
    >>> result.row(system="a", against="b").value  # a has 288 of 512, b has 128: √(288/128)
    1.5
    """
    choose("model", model, MODELS)
    if model == "odds" and weights is not None:
        raise SettingError("model='odds' is about propensities; with weights take model='weights'")
    gammas = list(gammas)
    if not gammas or not all(is_number(gamma) and 1 <= gamma < math.inf for gamma in gammas):
        raise SettingError(f"gammas must be numbers from 1 up, got {gammas!r}")
    as_count("resamples", resamples, least=0)
    check_share("level", level)
    runs, metric = second_argument(judgments, runs, metric, "P@10")
    ((label, estimand),) = estimands(metric).items()
    _ = estimand.linear  # refuses a metric that has no such form
    judged, notes = judge_for_estimates(
        judgments, runs, {label: estimand.metric}, seed=seed, threads=threads, **data
    )
    check_two_systems(list(judged.systems))
    source = weigh(judged, propensity, weights, random)
    notes += source.notes
    if model == "odds" and not source.known:
        raise SettingError(
            "these propensities are known up to a factor, so their odds are not; take "
            "model='weights'"
        )
    averages = WeightedAverages(judged, {label: estimand}, source, "ratio", threads=threads)
    if averages.is_beyond(estimand):
        raise SettingError(
            f"{metric}: the propensities hold for liked judgments only, and disliked ones count too"
        )
    unusable: dict[str, str] = {}
    if any(averages.gives(estimand)):
        estimates = averages.estimates(source.weight, resamples, level, seed).where(quantity="ips")
        for name, note in estimates.rows.select("system", "note").iter_rows():
            if note:
                unusable[name] = f"the estimate of {name} is {UNUSABLE}: {note}"
    else:
        notes.append("estimates and differences are known up to a factor")
    sums = _LinearSums.of(averages, estimand, unusable)
    highest = averages.high(estimand) if source.known else math.inf
    rows = _curve(sums, label, gammas, model, highest, resamples, level, seed, threads)
    method = replace(CURVE.method, level=level, draws=resamples, seed=seed)
    if not resamples:
        method = replace(method, level=None, interval="range over what Γ allows")
    what = "the odds of being judged" if model == "odds" else "the weights"
    card = {"model": model, "better": {label: estimand.metric.better}}
    return Estimates.of_rows(
        SENSITIVITY,
        list(_pairs(sums, estimand, model, unusable)),
        explanation=(f"Γ: how far off {what} must be for two systems to be equal",),
        notes=tuple(notes),
        parts={"curve": Estimates.of_rows(CURVE, rows, method=method, card=card)},
        card=card,
    )


def _curve(
    sums: _LinearSums,
    label: str,
    gammas: Sequence[float],
    model: str,
    most: float,
    resamples: int,
    level: float,
    seed: int,
    threads: int | None,
) -> list[list[Any]]:
    """Return system, metric, Γ, value and range of each system at each Γ, at most the highest."""
    rows: list[list[Any]] = []
    for name, value in sums.values.items():
        limits = (weight_range(sums.weight, gamma, model) for gamma in gammas)
        columns = [column for pair in limits for column in sums.extremes(name, *pair)]
        ends = resampled_sums(columns, resamples, seed, threads)
        ratios = iter([top / bottom for top, bottom in zip(ends[::2], ends[1::2], strict=True)])
        for gamma, lowest, highest in zip(gammas, ratios, ratios, strict=True):
            low, high = lowest.value, highest.value
            if resamples:
                low, high = lowest.interval(level)[0], highest.interval(level)[1]
            rows.append([name, label, float(gamma), value, min(low, most), min(high, most)])
    return rows


def _pairs(
    sums: _LinearSums, estimand: Estimand, model: str, unusable: Mapping[str, str]
) -> Iterator[list[Any]]:
    """Yield the row of each pair, the better system first."""
    sign = 1.0 if estimand.metric.better == "higher" else -1.0
    order = sorted(sums.values, key=lambda name: -sign * sums.values[name])
    for a, b in combinations([*order, *unusable], 2):
        reason = unusable.get(a) or unusable.get(b)
        if reason:
            yield [estimand.label, a, b, None, None, reason]
            continue
        gamma = smallest_gamma(sums.hits[a] - sums.hits[b], sums.weight, model)
        numbers = sums.values[a] - sums.values[b], gamma if gamma < math.inf else None
        yield [estimand.label, a, b, *numbers, "" if gamma < math.inf else "no Γ makes them equal"]


@dataclass(frozen=True, eq=False)
class _LinearSums:
    """Estimates as sums over judgments, each adding its weight times what a unit of it adds."""

    hits: Mapping[str, F64]
    """By system: what a unit of weight of each judgment adds."""
    bottom: F64 | None
    """The same of what all systems are divided by; None: by the number of users."""
    weight: F64
    owner: I64
    """The list of each judgment, among those averaged."""
    users: int

    @classmethod
    def of(
        cls, averages: WeightedAverages, estimand: Estimand, left_out: Collection[str]
    ) -> _LinearSums:
        """Take a metric of the lists apart, without those of some systems."""
        basis, mask = averages.judged.basis, averages.mask
        number = np.diff(basis.judgments.start)
        inside = np.repeat(mask, number)
        what, power = estimand.linear.column(estimand.params)
        column = Columns(basis, None).of(what, estimand.metric.anti, power)
        sums = cls(
            hits={
                name: _added(basis, matched, estimand, column)[inside]
                for name, matched in averages.judged.matched.items()
                if name not in left_out
            },
            bottom=None if estimand.is_sum else column[inside],
            weight=frozen(averages.source.weight[inside]),
            owner=np.repeat(np.cumsum(mask) - 1, number)[inside],
            users=int(mask.sum()),
        )
        if not sums.total:
            raise DataError(f"{estimand.label}: no judgment counts, so there is nothing to compare")
        return sums

    @cached_property
    def total(self) -> float:
        """What all systems are divided by."""
        return self.users if self.bottom is None else float(self.weight @ self.bottom)

    @cached_property
    def values(self) -> dict[str, float]:
        """The estimate of each system, with the weights that are assumed."""
        return {name: float(self.weight @ hits) / self.total for name, hits in self.hits.items()}

    def extremes(self, system: str, light: F64, heavy: F64) -> Iterator[F64]:
        """Yield, by user, top and bottom of the least estimate, then of the largest one."""
        for is_least in (True, False):
            weight = self._extreme(system, light, heavy, is_least=is_least)
            yield self._by_user(weight * self.hits[system])
            bottom = None if self.bottom is None else self._by_user(weight * self.bottom)
            yield np.ones(self.users) if bottom is None else bottom

    def _extreme(self, system: str, light: F64, heavy: F64, *, is_least: bool) -> F64:
        """Return the weights that make an estimate as small (as large) as can be."""
        if self.bottom is None:
            return light if is_least else heavy
        # A ratio is least when what lies below it is heavy and what lies above is light.
        hits = self.hits[system]
        with np.errstate(invalid="ignore", divide="ignore"):
            ratio = np.where(self.bottom > 0, hits / self.bottom, 0.0)
        order = np.argsort(ratio if is_least else -ratio, kind="stable")
        used = order[self.bottom[order] > 0]
        top, bottom = (
            np.cumsum((heavy * x)[used])
            + np.append(np.cumsum((light * x)[used][::-1])[::-1][1:], 0.0)
            for x in (hits, self.bottom)
        )
        cut = int(np.argmin(top / bottom) if is_least else np.argmax(top / bottom))
        weight = light.copy()
        weight[used[: cut + 1]] = heavy[used[: cut + 1]]
        return weight

    def _by_user(self, amount: F64) -> F64:
        return np.bincount(self.owner, amount, self.users).astype(np.float64)


def _added(basis: Basis, matched: Matched, estimand: Estimand, column: F64) -> F64:
    """Return what a unit of weight of each judgment adds to a system's sum."""
    discount = estimand.discounts(basis.longest)
    added = np.zeros(len(basis.judgments))
    scratch, total = Scratch(), len(basis.lists)
    for lo in range(0, total, BLOCK):
        hits = matched.hits(basis.judgments, lo, min(lo + BLOCK, total), scratch)
        near = hits.rank <= estimand.metric.whole_cutoff
        rows = hits.judgment[near]
        added[rows] = column[rows] * discount[hits.rank[near]]
    return added
