"""`estimate`: what systems would score were everything judged, from judgments with weights.

Inverse propensity scoring (IPS) counts each judgment 1/p times, p being its chance of being judged.
Self-normalised (SNIPS), it divides by what the weights add up to instead of by what they should: a
little bias for far less noise, and propensities need be right up to a factor only.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from itertools import combinations
from typing import Any, Unpack

import numpy as np
import polars as pl
from numpy.typing import NDArray

from unskew.arrays import F64, I64, Mask, frozen
from unskew.checks import as_count, as_numbers, check_share, checked, choose, is_number
from unskew.data.ratings import Ids, Ratings
from unskew.engine.rng import key_of
from unskew.engine.threads import map_blocks, one_blas_thread, resolve
from unskew.errors import DataError, DataWarning, SettingError
from unskew.evaluation.evaluate import MEMORY, memory_bytes
from unskew.evaluation.scoring import remarks
from unskew.judging.judged import Judged, Need, as_judged, second_argument
from unskew.judging.reading import DataOptions
from unskew.judging.shape import BLOCK, Scratch, View
from unskew.metrics.block import WHOLE, Block, ratio
from unskew.metrics.names import Metric
from unskew.metrics.weighted import Columns, Seen, liked_hits
from unskew.report.charts import Figure, as_figure
from unskew.report.result import Result
from unskew.splits.interventions import Intervened
from unskew.splits.split import shared_rows
from unskew.unbiased.propensities import Propensity, propensity
from unskew.unbiased.weighted_metrics import Estimand, estimands, with_unnormalised

METRICS = ("P@10", "Recall@10", "DCG@10")
USERS = ("with-list", "with-test", "all")
MEANS = ("users", "ratio")
RESAMPLES, LEVEL = 1_000, 0.95
ROWS = 16  # resamples per product: fixed, so that the bits do not depend on threads
LEVELS = (0.0, 0.5, 0.75, 0.9, 0.95, 0.99, 0.995, 0.999, 1.0)
"""Quantiles of the weights at which the curve over clipping levels clips."""
FEW = 0.1
"""Below this share of effective judgments weights are said to explode."""
TOP = 0.01
FEW_HITS = 10
"""With fewer effective hits an estimate is not usable: its interval misses the truth too often."""
UNUSABLE = "not usable here"
MOST_WEIGHT = 1e12
"""The largest weight that is accepted, as of propensities: sums of squares stay finite."""
KINDS = ("naive", "ips", "snips")
OFF = 1.25
"""How far the weights of judged slots may be from what they should add up to, either way."""


@dataclass(frozen=True)
class Weights:
    """How uneven weights are."""

    number: int
    effective: float
    """(Σw)² / Σw²: as many equal weights would be as precise."""
    largest: float
    top: float
    """Share of the total that the heaviest 1 % of the weights hold."""
    clipped: int = 0

    @classmethod
    def of(cls, weight: F64, clipped: int = 0) -> Weights:
        """Describe weights; without any, all is 0."""
        if not weight.size:
            return cls(0, 0.0, 0.0, 0.0, clipped)
        total = float(weight.sum())
        most = math.ceil(TOP * weight.size)
        heaviest = np.partition(weight, weight.size - most)[weight.size - most :]
        effective = total**2 / float(weight @ weight)
        return cls(
            int(weight.size), effective, float(weight.max()), float(heaviest.sum()) / total, clipped
        )

    def __str__(self) -> str:
        text = (
            f"{self.number:,} weights worth {self.effective:,.0f} equal ones; the largest is "
            f"{self.largest:.3g}, the top 1 % hold {100 * self.top:.0f} % of the weight"
        )
        return f"{text}; {self.clipped:,} clipped" if self.clipped else text


@dataclass(frozen=True)
class Estimate:
    """One system's estimates of one metric; intervals by bootstrap over users, NaN without one."""

    naive: float
    """Every judgment counts once, what is not judged counts as not liked: average over all."""
    ips: float
    """Each judgment counts 1/p times; NaN where p is known up to a factor only."""
    snips: float
    """The same, normalised by the weights; NaN where there is nothing to normalise by."""
    naive_interval: tuple[float, float]
    ips_interval: tuple[float, float]
    snips_interval: tuple[float, float]
    users: int
    """How many lists the weighted mean is over."""
    undefined: int
    """Lists left out, as a fraction without liked judgments is undefined."""
    weights: Weights
    """Of the liked judgments that the lists found."""
    slots: float = math.nan
    """Weights of the judged items in the lists, liked or not, over the slots: 1 where the weights
    are right. NaN where they hold for liked judgments only, or all judgments are alike."""
    slots_interval: tuple[float, float] = (math.nan, math.nan)
    reason: str = ""
    """Why the weighted estimates are not usable; empty where they are."""

    @property
    def usable(self) -> bool:
        """Whether conclusions may be drawn from the weighted estimates."""
        return not self.reason

    @property
    def best(self) -> float:
        """The self-normalised estimate; IPS where there is none, NaN where there is neither."""
        return self.ips if math.isnan(self.snips) else self.snips


@dataclass(frozen=True, eq=False)
class Estimates(Result):
    """What each system is estimated to score. Made by `estimate`."""

    metrics: tuple[str, ...]
    systems: tuple[str, ...]
    values: Mapping[tuple[str, str], Estimate]
    """By system and metric."""
    weights: Weights
    """Of all judgments."""
    how: Mapping[str, Any]
    better: Mapping[str, str]
    most: Mapping[str, float]
    """The largest value that each metric can have."""
    notes: tuple[str, ...] = ()
    again: Callable[[float], Mapping[tuple[str, str], tuple[float, float, float]]] | None = field(
        default=None, repr=False
    )
    """Gives estimate, standard error and share clipped when weights are clipped at a level."""
    quantiles: Callable[[float], float] | None = field(default=None, repr=False)

    def __getitem__(self, key: tuple[str, str]) -> Estimate:
        system, metric = key
        choose("system", system, self.systems)
        return self.values[system, choose("metric", metric, self.metrics)]

    def table(self) -> pl.DataFrame:
        """Return a row per system and metric.

        Columns: naive, ips, snips, each with low and high (bootstrap over users); users; ess (how
        many equal weights the weights of the found liked items are worth), hits, max_weight and
        top_share (share of the weight in the heaviest 1 %); slots (weights of the judged items in
        the lists, liked or not, over the slots: about 1 where propensities are right); usable, and
        the reason where it is false: an estimate or an end of its interval is no value of the
        metric, it rests on too few hits, or the weights of the judged slots are far from adding up
        to the slots.
        """
        rows = []
        for system in self.systems:
            for metric in self.metrics:
                one = self.values[system, metric]
                row: dict[str, Any] = {"system": system, "metric": metric}
                for name in KINDS:
                    low, high = getattr(one, f"{name}_interval")
                    values = {name: getattr(one, name), f"{name}_low": low, f"{name}_high": high}
                    row |= {key: _null(value) for key, value in values.items()}
                row |= {
                    "users": one.users,
                    "hits": one.weights.number,
                    "ess": one.weights.effective,
                    "max_weight": one.weights.largest,
                    "top_share": one.weights.top,
                    "slots": _null(one.slots),
                    "usable": one.usable,
                    "reason": one.reason or None,
                }
                rows.append(row)
        special: dict[str, Any] = dict.fromkeys(("system", "metric", "reason"), pl.String)
        special |= {"users": pl.Int64, "hits": pl.Int64, "usable": pl.Boolean}
        return pl.DataFrame(rows, {name: special.get(name, pl.Float64) for name in rows[0]})

    def display_table(self) -> pl.DataFrame:
        """Return what people read of the table: estimates, intervals, and what they rest on."""
        hidden = ["naive_low", "naive_high", "users", "max_weight", "top_share", "slots", "reason"]
        if not self.how["resamples"]:
            hidden += [f"{name}_{end}" for name in ("ips", "snips") for end in ("low", "high")]
        words = pl.when("usable").then(pl.lit("yes")).otherwise(pl.lit(UNUSABLE))
        return self.table().drop(hidden).with_columns(usable=words)

    def order(self, metric: str, by: str = "snips") -> list[str]:
        """Return the systems, best first, by `naive`, `ips` or `snips`.

        Refused where the estimate of a system is missing or not usable.
        """
        choose("metric", metric, self.metrics)
        choose("by", by, KINDS)
        values = {name: getattr(self[name, metric], by) for name in self.systems}
        for name, value in values.items():
            reason = "" if by == "naive" else self[name, metric].reason
            if math.isnan(value) and not reason:
                reason = "there is none"
            if reason:
                raise DataError(
                    f"{metric}: systems cannot be put in order by {by}, as that of {name} is "
                    f"{UNUSABLE}: {reason}; leave it out, or order by='naive'"
                )
        sign = -1.0 if self.better[metric] == "higher" else 1.0
        return sorted(self.systems, key=lambda name: sign * values[name])

    def curve(self, levels: Sequence[float] | None = None) -> pl.DataFrame:
        """Return the bias and the standard error of the estimates over the clipping level.

        Parameters
        ----------
        levels
            The largest weights allowed. Default: quantiles of the weights.

        Returns
        -------
        polars.DataFrame
            A row per system, metric and level: level, estimate (as far as it has a scale, the IPS
            value, else the self-normalised one), bias (estimate less the one without clipping),
            se (over users), rmse (both together), clipped (share of the judgments), usable (whether
            the estimate is a value that the metric can have).
        """
        assert self.again is not None
        assert self.quantiles is not None
        chosen = [self.quantiles(q) for q in LEVELS] if levels is None else list(levels)
        if not chosen or not all(0 < level < math.inf for level in chosen):
            raise SettingError(f"levels must be weights above 0, got {chosen!r}")
        whole = self.again(math.inf)
        rows = []
        for level in sorted(set(chosen)):
            for (system, metric), (value, se, clipped) in self.again(level).items():
                bias = value - whole[system, metric][0]
                rows.append(
                    {
                        "system": system,
                        "metric": metric,
                        "level": float(level),
                        "estimate": value,
                        "bias": bias,
                        "se": se,
                        "rmse": math.hypot(bias, se),
                        "clipped": clipped,
                        "usable": value <= self.most[metric] * (1 + 1e-9),
                    }
                )
        return pl.DataFrame(rows)

    def figure(self, metric: str | None = None, levels: Sequence[float] | None = None) -> Figure:
        """Draw bias, standard error and both together over the clipping level, a panel each.

        Parameters
        ----------
        metric
            Which one; the first unless named.
        levels
            As for `curve`.
        """
        import altair as alt

        label = choose("metric", metric or self.metrics[0], self.metrics)
        table = self.curve(levels).filter(pl.col("metric") == label)
        parts = {"bias": "|bias|", "se": "standard error", "rmse": "both"}
        rows = [
            {"system": row["system"], "level": row["level"], "part": name, "error": abs(row[key])}
            for row in table.iter_rows(named=True)
            for key, name in parts.items()
        ]
        top = math.ceil(math.log10(max(row["level"] for row in rows)))
        decades = [10.0**power for power in range(min(top, 0), top + 1)]
        x = alt.X("level:Q", title="largest weight allowed").scale(type="log", nice=False)
        x = x.axis(values=decades, format="~s")
        y = alt.Y("error:Q", title="error")
        color = alt.Color("system:N").scale(domain=list(self.systems))
        lines = alt.Chart(alt.NamedData(name="rows"), width=190, height=200).mark_line(point=True)
        chart = lines.encode(x=x, y=y, color=color).facet(
            column=alt.Column("part:N", title=None, sort=list(parts.values()))
        )
        notes = ["bias is relative to the estimate without clipping", *self.footer()[:1]]
        return as_figure(chart, f"{label}: bias and noise by clipping level", notes, rows)

    def _explanation(self) -> list[str]:
        how = self.how
        lines = [f"weights by {how['weights']}: {self.weights}"]
        per = "of users" if how["mean"] == "users" else "as a ratio of sums over users"
        drawn = (
            f"; intervals: {100 * how['level']:g} % bootstrap over users, which takes the weights "
            f"as they are"
        )
        lines.append(f"means {per} ({how['users']})" + (drawn if how["resamples"] else ""))
        return [*lines, str(how["relevance"])]

    def _conclusion(self) -> list[str]:
        return self.unusable_notes()

    def unusable_notes(self) -> list[str]:
        """Return a line per metric that names the estimates that are not usable, and why."""
        lines = []
        for metric in self.metrics:
            reasons = [
                f"{system} ({self[system, metric].reason})"
                for system in self.systems
                if not self[system, metric].usable
            ]
            if reasons:
                lines.append(f"{metric} {UNUSABLE}: {'; '.join(reasons)}")
        return lines

    def _content(self) -> dict[str, object]:
        return {
            "how": self.how,
            "weights": self.weights.__dict__,
            "estimates": self.table(),
            "notes": [*self.notes, *self.unusable_notes()],
        }

    def _summary(self) -> str:
        return f"{len(self.systems)} systems, {len(self.metrics)} metrics"


@checked
def estimate(
    judgments: object,
    runs: object = None,
    metrics: str | Metric | Iterable[str | Metric] = METRICS,
    *,
    propensity: object = None,
    weights: object = None,
    random: object = None,
    clip: float | str | None = None,
    mean: str = "users",
    users: str = "with-list",
    resamples: int = RESAMPLES,
    level: float = LEVEL,
    seed: int = 0,
    threads: int | None = None,
    memory: int | str = MEMORY,
    **data: Unpack[DataOptions],
) -> Estimates:
    r"""Estimate what systems would score were everything judged.

    For a metric that is a sum over liked items of something that depends on their rank (P, DCG,
    RBP and their anti-twins), IPS is :math:`\frac{1}{|U|}\sum_u\sum_{i} c(rank)/p_{ui}` over the
    judged liked items: unbiased where the propensities p are right. SNIPS divides it by how many
    targets the weights add up to and multiplies by how many there are: right in the long run where
    the propensities of disliked judgments are right too. Recall, SR, ADG and ATOP are such a sum
    over another one (then both are the same number). AP and AUC also need pairs of liked items,
    weighted by the product: right where judgments are made independently. nDCG (but for
    ``ideal=full``), HLU, F1 and whatever has ``per=min`` are biased even with the right
    propensities, and more users do not help, as their divisors are no sums over judgments: take
    DCG, or nDCG(ideal=full). All others are refused, with the reason.

    An estimate is called not usable where it, or an end of its interval, is above the largest value
    that the metric can have; where it rests on fewer than ten effective hits; and where the weights
    of the judged items in the lists, liked or not, add up to more than 1.25 times the slots, or to
    less than 0.8 times (their whole interval does): they should add up to the slots.

    Parameters
    ----------
    judgments, runs
        Judged data (`judge`) alone, with the metrics as the second argument; or raw data as `judge`
        takes them. There must be one list per user.
    metrics
        Names of metrics; also `ADG@10` (mean discounted gain of the liked items) and `ATOP` (their
        mean normalised rank). The DCG of each nDCG is added.
    propensity
        A `Propensity`, a method of `propensity` (`popularity`, …), or what that takes as given
        propensities. Default: popularity.
    weights
        Instead: a weight per judgment, in the order of the judgments, or what an intervention's
        `weigh` gave. Known up to a factor: sums have a self-normalised estimate only; nDCG, F1,
        HLU, AP and AUC have none.
    random
        Ratings of randomly chosen items, for `propensity`.
    clip
        The largest weight: a number, or a quantile of the weights such as ``"99%"``.
    mean
        Of fractions: `users` averages over users with a liked judgment, `ratio` divides the sums
        over all users, which for Recall, SR, ADG, ATOP, AP and AUC is right in the long run also
        where a user has few judgments. SR and HLU with a `mean=ratio` of their own are always
        divided so.
    users
        Which are averaged: `with-list` (a list of any system), `with-test`, `all`. Means over users
        with test judgments only are biased, as having one depends on the propensities.
    resamples, level, seed
        Of the bootstrap over users, which takes the weights as they are; 0 resamples for no
        intervals.
    threads, memory
        As for `evaluate`; never change a result.
    data
        Of raw data, see `judge`: liked, above, gain, loss, relevance; train (targets are what is
        not in it); items (from which targets are counted; by default all of `train`, `judgments`
        and the lists); ties, depth.

    References
    ----------
    Schnabel et al. 2016 (IPS, SNIPS); Yang et al. 2018 (average-over-all, SNIPS for rankings);
    Steck 2010 (ATOP); Jeunen et al. 2024 (DCG and nDCG); castells2018 section 4.

    Examples
    --------
    >>> from unskew.unbiased.ips import estimate
    >>> test = {"user": [1, 1, 2, 2], "item": ["a", "b", "a", "c"], "rating": [5, 1, 4, 2]}
    >>> lists = {"mine": {1: ["a", "c"], 2: ["b", "a"]}}
    >>> p = {"a": 0.5, "b": 1.0, "c": 0.5}
    >>> result = estimate(test, lists, "P@2", propensity=p, liked=4, resamples=0)
    >>> result["mine", "P@2"].naive, result["mine", "P@2"].ips
    (0.5, 1.0)
    """
    choose("mean", mean, MEANS)
    choose("users", users, USERS)
    check_share("level", level)
    runs, metrics = second_argument(judgments, runs, metrics, METRICS)
    wanted = with_unnormalised(estimands(metrics))
    judged, notes = judge_for_estimates(judgments, runs, wanted, seed=seed, threads=threads, **data)
    notes += _added(metrics, wanted)
    source = weigh(judged, propensity, weights, random)
    notes += source.notes
    weight, clipped = clipped_weights(source.weight, clip)
    described = Weights.of(weight, clipped)
    _warn_of_weights(described, notes)
    run = Averages(judged, wanted, mean, users, resolve(threads), memory_bytes(memory))
    scales = Scales.of(judged, source, weight)
    values = run.results(weight, scales, resamples, level, seed, threads)
    notes += scales.notes(wanted)
    _note_undefined(values, mean, notes)
    _note_bias(wanted, notes)
    _warn_of_order(values, wanted, tuple(judged.matched), notes)
    how = {
        "weights": source.name,
        "mean": mean,
        "users": users,
        "clip": clip,
        "resamples": resamples,
        "level": level,
        "seed": seed,
        "relevance": str(judged.basis.view.relevance),
        **source.facts,
    }
    return Estimates(
        metrics=tuple(wanted),
        systems=tuple(judged.matched),
        values=values,
        weights=described,
        how=how,
        better={label: one.better for label, one in wanted.items()},
        most={label: scales.high(one) for label, one in wanted.items()},
        notes=tuple(dict.fromkeys(notes)),
        again=partial(_clipped, run, source, tuple(values)),
        quantiles=partial(_quantile, source.weight),
    )


def _clipped(
    run: Averages, source: Source, keys: Sequence[tuple[str, str]], most: float
) -> dict[tuple[str, str], tuple[float, float, float]]:
    """Return each estimate, its error and the share of weights that are cut at `most`."""
    cut = frozen(np.minimum(source.weight, most))
    share = float(np.mean(source.weight > most))
    part = run.weighted(cut)
    scales = Scales.of(run.judged, source, cut)
    return {key: (*run.spread(part, key, scales), share) for key in keys}


def _quantile(weight: F64, q: float) -> float:
    return float(np.quantile(weight, q))


# What all estimates of this package share: laying out, weights


def judge_for_estimates(
    judgments: object,
    runs: object,
    wanted: Mapping[str, Estimand],
    *,
    seed: int,
    threads: int | None,
    **data: Unpack[DataOptions],
) -> tuple[Judged, list[str]]:
    """Return judged data with one list per user and targets counted, and what to know of them."""
    judged = as_judged(judgments, runs, seed=seed, **data)
    if judged.targets is not None and not judged.targets.per_user:
        raise SettingError(
            "estimates need one list per user: lists with one relevant item, or within strata, "
            "rank other targets for every judgment"
        )
    if not len(judged.tests):
        raise DataError("there are no judgments")
    deepest = max(one.metric.whole_cutoff for one in wanted.values())
    scan = None if deepest == WHOLE else deepest
    judged = judged.prepare(Need(scan=scan, catalogue="all"), threads)
    metrics = {label: one.metric for label, one in wanted.items()}
    notes = [*judged.read.relevance, *judged.read.targets, *judged.read.runs]
    notes += remarks(judged, metrics, "with-list")
    train = judged.basis.train
    again = 0 if train is None else int(shared_rows(judged.judgments, train).sum())
    if again and judged.targets is None:
        _warn(
            notes,
            f"{again:,} judgments are of pairs in training, which are no targets: take them out of "
            f"the test ratings",
        )
    return judged, notes


@dataclass(frozen=True, eq=False)
class Source:
    """Weights of the judgments and where they come from."""

    weight: F64
    name: str
    known: bool
    """Whether they are known, or only up to a common factor."""
    facts: Mapping[str, Any] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    liked_only: bool = False
    """Whether they hold for liked judgments only."""


def weigh(judged: Judged, given: object, weights: object, random: object) -> Source:
    """Find the weight of every judgment: 1 / propensity, or what was given."""
    if weights is not None:
        if given is not None:
            raise SettingError("give either propensity or weights, not both")
        if random is not None:
            raise SettingError("random=… is for propensities; weights are taken as they are")
        return _given_weights(judged, weights)
    if isinstance(given, Propensity):
        if random is not None:
            raise SettingError("random=… goes to propensity(…), which is given already")
        own = given
    else:
        how = "popularity" if given is None else given
        fitted = random is not None and how == "popularity"
        rule = judged.basis.view.relevance if fitted else None
        own = propensity(judged.train, judged.tests, how, random=random, relevance=rule)
    chance = aligned(judged.judgments, own.test, own.value, "propensity")
    facts = {"propensity": dict(own.facts), "known": own.known, "liked_only": own.liked_only}
    name = f"propensity ({own.method})"
    return Source(frozen(1.0 / chance), name, own.known, facts, own.notes, own.liked_only)


def _given_weights(judged: Judged, weights: object) -> Source:
    if isinstance(weights, Intervened):
        if weights.weight is None:
            raise SettingError(
                "these ratings were drawn, not weighted: judge by them as they are, or take "
                "weigh(…) instead of sample(…)"
            )
        values = aligned(judged.judgments, weights.ratings, weights.weight, "weight")
        name = f"intervention ({weights.design['kind']}, {weights.design['method']})"
    else:
        column = as_numbers("weights", weights)
        if column.shape != (len(judged.tests),):
            raise DataError(
                f"weights: one per judgment is needed ({len(judged.tests):,}), got {column.shape}"
            )
        values, name = aligned(judged.judgments, judged.tests, column, "weight"), "given weights"
    bad = ~((values >= 0) & (values <= MOST_WEIGHT))
    if bad.any() or not values.sum() > 0:
        row = int(np.argmax(bad))
        example = f"{values[row]:g}, {_pair(judged.judgments, row)}" if bad.any() else "only 0"
        raise DataError(
            f"weights must be numbers from 0 to {MOST_WEIGHT:g} and not all 0, got {example}"
        )
    return Source(frozen(values / values.mean()), name, False)


def aligned(judgments: Ratings, rows: Ratings, value: F64, what: str) -> F64:
    """Return a value per judgment from a value per row of ratings with the same pairs."""
    if _same_rows(judgments, rows):
        return np.asarray(value, np.float64)
    _, (here_u, there_u) = Ids.union(judgments.users, rows.users)
    items, (here_i, there_i) = Ids.union(judgments.items, rows.items)
    key = there_u[rows.user].astype(np.int64) * len(items) + there_i[rows.item]
    wanted = here_u[judgments.user].astype(np.int64) * len(items) + here_i[judgments.item]
    order = np.argsort(key, kind="stable")
    place = np.minimum(np.searchsorted(key[order], wanted), max(key.size - 1, 0))
    missing = key[order][place] != wanted if key.size else np.ones(wanted.size, np.bool_)
    if missing.any():
        raise DataError(
            f"{int(missing.sum()):,} of {wanted.size:,} judgments have no {what}, the first: "
            f"{_pair(judgments, int(np.argmax(missing)))}; make it from the same test ratings"
        )
    result: F64 = np.asarray(value, np.float64)[order][place]
    return result


def _pair(judgments: Ratings, row: int) -> str:
    user, item = int(judgments.user[row]), int(judgments.item[row])
    return f"user {judgments.users.values[user]!r}, item {judgments.items.values[item]!r}"


def _same_rows(one: Ratings, other: Ratings) -> bool:
    return one is other or (
        len(one) == len(other)
        and one.users.equals(other.users)
        and one.items.equals(other.items)
        and bool((one.user == other.user).all() and (one.item == other.item).all())
    )


def clipped_weights(weight: F64, clip: float | str | None) -> tuple[F64, int]:
    """Cut weights at a number or at a quantile such as 99%; tell how many were larger."""
    if clip is None:
        return weight, 0
    if isinstance(clip, str):
        try:
            share = float(clip.strip().removesuffix("%")) / (100 if "%" in clip else 1)
        except ValueError:
            share = -1.0
        if "%" in clip and not 0 < share <= 1:
            raise SettingError(f"clip: a quantile lies above 0% up to 100%, got {clip!r}")
        most = float(np.quantile(weight, share)) if "%" in clip else share
    else:
        most = float(clip) if is_number(clip) else math.nan
    if not 0 < most < math.inf:
        raise SettingError(
            f"clip must be a weight above 0, or a quantile such as 99%; got {clip!r}"
        )
    return frozen(np.minimum(weight, most)), int(np.count_nonzero(weight > most))


def _warn_of_weights(described: Weights, notes: list[str]) -> None:
    if described.number >= 20 and described.effective < FEW * described.number:
        _warn(
            notes,
            f"the weights explode: {described}. Clip them (clip='99%'), or see how the estimate "
            f"moves with the clipping level",
        )


def _warn(notes: list[str], text: str) -> None:
    notes.append(text)
    warnings.warn(text, DataWarning, stacklevel=4)


def _added(metrics: object, wanted: Mapping[str, Estimand]) -> list[str]:
    asked = {str(metrics)} if isinstance(metrics, str | Metric) else {str(m) for m in metrics}  # type: ignore[attr-defined]
    more = [label for label in wanted if label not in asked]
    return [f"{', '.join(more)}: shown beside nDCG, whose normalising can change the order"] * bool(
        more
    )


# Scale


@dataclass(frozen=True, eq=False)
class Scales:
    """What sums are normalised by, and which estimates follow from weights of such a kind."""

    known: bool
    """Whether weights are known, or only up to a common factor."""
    liked_only: bool
    """Whether weights hold for liked judgments only."""
    one_sided: bool
    """Whether all judgments are liked, or none is."""
    targets: F64 | None
    """Targets of each list, where they are counted."""
    weight: F64
    """Weights of the judgments of each list, added up."""
    view: View
    longest: int

    @classmethod
    def of(cls, judged: Judged, source: Source, weight: F64) -> Scales:
        """Add the weights up by list."""
        from unskew.metrics import kernels

        basis = judged.basis
        column = frozen(weight * basis.view.judged)
        everyone, start = basis.lists.user, basis.judgments.start
        sums = kernels.sum_judged(everyone, start, column, 0, everyone.size)
        targets = basis.lists.targets
        return cls(
            known=source.known,
            liked_only=source.liked_only,
            one_sided=not (basis.disliked.sum() and basis.liked.sum()),
            targets=None if targets is None else targets.astype(np.float64),
            weight=sums,
            view=basis.view,
            longest=basis.longest,
        )

    def gives(self, one: Estimand) -> tuple[bool, bool]:
        """Tell whether weights of this kind give an IPS and a self-normalised estimate.

        A sum has an IPS estimate where weights are known. What the weights of all judgments add up
        to tells the scale only where they are right for all: for disliked judgments too, and where
        there are some of both. Of a ratio of sums a common factor cancels; all other fractions
        need weights that are known.
        """
        if self.is_beyond(one):
            return False, False
        if one.is_sum:
            normal = self.targets is not None and not (self.one_sided or self.liked_only)
            return self.known, normal
        whole = self.known or one.is_ratio
        return whole, whole

    def is_beyond(self, one: Estimand) -> bool:
        """Tell whether it adds up judgments for which the weights do not hold."""
        return self.liked_only and (one.metric.anti or one.uses_gain(self.view))

    def high(self, one: Estimand) -> float:
        """Return the largest value that an estimand can have here."""
        return one.high(self.view.anti if one.metric.anti else self.view, self.longest)

    def notes(self, wanted: Mapping[str, Estimand]) -> list[str]:
        """Say which estimates do not follow from weights of this kind, and why."""
        sums = [label for label, one in wanted.items() if one.is_sum]
        beyond = [label for label, one in wanted.items() if self.is_beyond(one)]
        loose = [
            label
            for label, one in wanted.items()
            if not (self.known or one.is_sum or one.is_ratio or self.is_beyond(one))
        ]
        lines = {
            "have no estimate: the weights hold for liked judgments only, and disliked ones count "
            "too": beyond,
            "have no estimate: the weights are known up to a factor only": loose,
        }
        if self.liked_only:
            lines[
                "have no self-normalised estimate: the weights hold for liked judgments only, so "
                "those of all judgments do not add up to the targets"
            ] = sums
        elif self.one_sided:
            lines[
                "have no self-normalised estimate: all judgments are liked, or none is, so their "
                "weights do not add up to the targets"
            ] = sums
        if not self.known:
            lines["have no IPS estimate: the weights are known up to a factor only"] = sums
        return [f"{', '.join(labels)} {why}" for why, labels in lines.items() if labels]


@dataclass(frozen=True, eq=False)
class _Part:
    """Values of each list: metrics x lists for each system; bottoms where sums are divided."""

    top: Mapping[str, F64]
    bottom: Mapping[str, F64]
    weights: Mapping[tuple[str, str], Weights] = field(default_factory=dict)
    slots: Mapping[str, F64] = field(default_factory=dict)
    """Weights of the judged items above each cutoff, and slots: cutoffs x 2 x lists."""


@dataclass(frozen=True, eq=False)
class Averages:
    """The passes over all lists, and what becomes of them."""

    judged: Judged
    wanted: dict[str, Estimand]
    mean: str
    users: str
    threads: int
    budget: int

    @classmethod
    def of(
        cls, judged: Judged, wanted: dict[str, Estimand], mean: str, threads: int | None
    ) -> Averages:
        """Average over users with a list, as `estimate` does by default."""
        return cls(judged, wanted, mean, "with-list", resolve(threads), memory_bytes(MEMORY))

    @cached_property
    def _groups(self) -> list[tuple[Estimand, I64, list[tuple[int, int]]]]:
        """Estimands alike but in cutoff: the first, cutoffs, (cutoff, row) of each."""
        groups: dict[tuple[object, ...], list[tuple[int, Estimand]]] = {}
        for row, one in enumerate(self.wanted.values()):
            groups.setdefault(one.key, []).append((row, one))
        found = []
        for members in groups.values():
            cuts = sorted({one.metric.whole_cutoff for _, one in members})
            places = [(cuts.index(one.metric.whole_cutoff), row) for row, one in members]
            first = members[0][1]
            found.append((first, frozen(np.array(cuts, np.int64)), places))
        return found

    @cached_property
    def kept(self) -> Mask:
        """Which lists are averaged."""
        if self.users == "with-list":
            return self.judged.with_list
        judged = np.diff(self.judged.judgments.start) > 0
        return judged if self.users == "with-test" else np.ones(judged.size, np.bool_)

    def both(self, weight: F64, diagnose: bool) -> tuple[_Part, _Part]:
        """Return the plain and the weighted values, from one pass over the hits."""
        plain, weighted = self._pass([None, weight], diagnose)
        return plain, weighted

    def weighted(self, weight: F64) -> _Part:
        """Return the weighted values only."""
        return self._pass([weight], False)[0]

    def _pass(self, weights: list[F64 | None], diagnose: bool) -> list[_Part]:
        basis, matched_by_name = self.judged.basis, self.judged.matched
        total, rows = len(basis.lists), len(self.wanted)
        columns = [Columns(basis, weight) for weight in weights]
        shape = (len(columns), len(matched_by_name), rows, total)
        top = np.empty(shape)
        keep = any(self._divided)
        bottom = np.ones(shape if keep else (len(columns), len(matched_by_name), 0, 0))
        each = 8 * rows * 6 * len(columns) + 48 * len(basis.judgments) / max(total, 1) + 64
        most = max(int(self.budget / self.threads / each), 1)
        step = max(min(most, BLOCK, -(-total // self.threads)), 1)
        blocks = [(lo, min(lo + step, total)) for lo in range(0, total, step)]
        deepest = self._diagnosed if diagnose else []
        slots = np.empty((len(matched_by_name), len(self._cuts), 2, total if diagnose else 0))

        def fill(bounds: tuple[int, int]) -> dict[str, list[tuple[NDArray[Any], F64]]]:
            lo, hi = bounds
            shared: dict[object, F64] = {}
            scratch = Scratch()
            hits: dict[str, list[tuple[NDArray[Any], F64]]] = {}
            for place, (name, matched) in enumerate(matched_by_name.items()):
                block = Block.of(basis, matched, lo, hi, shared, scratch, {})
                for at, column in enumerate(columns):
                    seen = {anti: Seen(block, column, anti) for anti in (False, True)}
                    for one, cuts, places in self._groups:
                        form = one.weighted.fraction
                        up, down = form(seen[one.metric.anti], one.params, cuts)
                        apart = down is not None and self._divided[places[0][1]]
                        if down is not None and not apart:
                            up = ratio(up, down)
                        for cut, row in places:
                            top[at, place, row, lo:hi] = up[cut]
                            if down is not None and apart:
                                own = np.broadcast_to(down, up.shape)[cut]
                                bottom[at, place, row, lo:hi] = own
                if deepest:
                    slots[place, :, 0, lo:hi] = seen[False].judged(self._cuts)
                    slots[place, :, 1, lo:hi] = block.shown(self._cuts)
                    hits[name] = []
                    for anti, most_rank in deepest:
                        rank, judgment = liked_hits(block, columns[-1].view(anti), most_rank)
                        hits[name].append((rank, columns[-1].each[judgment]))
            return hits

        size = total * rows * len(matched_by_name)
        found = map_blocks(fill, blocks, self.threads, size=size)
        described = self._describe(found, deepest) if diagnose else {}
        names = list(matched_by_name)
        return [
            _Part(
                dict(zip(names, top[at], strict=True)),
                dict(zip(names, bottom[at], strict=True)),
                described if at == len(columns) - 1 else {},
                dict(zip(names, slots, strict=True)) if at == len(columns) - 1 else {},
            )
            for at in range(len(columns))
        ]

    @cached_property
    def _cuts(self) -> I64:
        """The cutoffs of all estimands, ascending."""
        return np.unique([one.metric.whole_cutoff for one in self._rows]).astype(np.int64)

    @cached_property
    def _diagnosed(self) -> list[tuple[bool, int]]:
        """The deepest cutoff at which liked (or disliked) hits are looked at."""
        found = []
        for anti in (False, True):
            cuts = [o.metric.whole_cutoff for o in self.wanted.values() if o.metric.anti == anti]
            if cuts:
                found.append((anti, max(cuts)))
        return found

    def _describe(
        self, found: list[dict[str, list[tuple[NDArray[Any], F64]]]], sides: list[tuple[bool, int]]
    ) -> dict[tuple[str, str], Weights]:
        """Describe the weights of the liked hits of each system above each cutoff."""
        result: dict[tuple[str, str], Weights] = {}
        known: dict[tuple[str, int, int], Weights] = {}
        for name in self.judged.matched:
            for side, (anti, _) in enumerate(sides):
                rank = np.concatenate([part[name][side][0] for part in found])
                weight = np.concatenate([part[name][side][1] for part in found])
                for label, one in self.wanted.items():
                    if one.metric.anti != anti:
                        continue
                    key = (name, side, one.metric.whole_cutoff)
                    if key not in known:
                        known[key] = Weights.of(weight[rank <= one.metric.whole_cutoff])
                    result[name, label] = known[key]
        return result

    def _sides(self, part: _Part, name: str, row: int) -> tuple[F64, F64]:
        """Return what is added up over lists: values and what they are divided by."""
        values = self._chosen(part.top[name][row])
        if self._divided[row]:
            return values, self._chosen(part.bottom[name][row])
        if self._rows[row].is_sum:
            return values, self._ones
        known = ~np.isnan(values)
        return np.where(known, values, 0.0), known.astype(np.float64)

    def _chosen(self, values: F64) -> F64:
        return values if self.kept.all() else values[self.kept]

    @cached_property
    def _ones(self) -> F64:
        return np.ones(int(self.kept.sum()))

    @cached_property
    def _divided(self) -> list[bool]:
        return [self.divides(one) for one in self._rows]

    @cached_property
    def _rows(self) -> list[Estimand]:
        return list(self.wanted.values())

    def divides(self, one: Estimand) -> bool:
        """Tell whether sums over users are divided, instead of averaging each user's fraction."""
        return not one.is_sum and (self.mean == "ratio" or one.params.get("mean") == "ratio")

    def spread(self, part: _Part, key: tuple[str, str], scales: Scales) -> tuple[float, float]:
        """Return an estimate that has a scale, and its standard error over users (linearised)."""
        name, label = key
        row = list(self.wanted).index(label)
        top, bottom = self._sides(part, name, row)
        total = float(bottom.sum())
        if not total:
            return math.nan, math.nan
        value = float(top.sum()) / total
        away = (top - value * bottom) / total
        ips, snips = scales.gives(self._rows[row])
        if not (ips or snips):
            return math.nan, math.nan
        if not ips:
            assert scales.targets is not None
            size, weight = scales.targets[self.kept], scales.weight[self.kept]
            factor = float(size.sum() / weight.sum())
            away = factor * away + value * (size - factor * weight) / float(weight.sum())
            value *= factor
        return value, float(np.sqrt((away**2).sum()))

    def results(
        self,
        weight: F64,
        scales: Scales,
        resamples: int,
        level: float,
        seed: int,
        threads: int | None,
    ) -> dict[tuple[str, str], Estimate]:
        """Average everything, with intervals."""
        as_count("resamples", resamples, least=0)
        check_share("level", level)
        plain, weighted = self.both(weight, diagnose=True)
        users = int(self.kept.sum())
        if not users:
            raise DataError(f"no user is averaged ({self.users}): no list meets the judgments")
        ends = (50 * (1 - level), 50 * (1 + level))
        found: dict[tuple[str, str], Estimate] = {}
        size = np.zeros(users) if scales.targets is None else scales.targets[self.kept]
        shared = [size, scales.weight[self.kept]]
        for name in self.judged.matched:
            columns: list[F64] = list(shared)
            for row in range(len(self.wanted)):
                columns += [*self._sides(plain, name, row), *self._sides(weighted, name, row)]
            columns += [self._chosen(part) for pair in weighted.slots[name] for part in pair]
            sums = np.array([[float(column.sum()) for column in columns]])
            drawn = _resampled(columns, resamples, seed, threads)
            for row, (label, one) in enumerate(self.wanted.items()):
                naive, ips, snips = self._ratios(sums, row, one, scales)[:, 0].tolist()
                spread = self._ratios(drawn, row, one, scales)
                defined = users if self._divided[row] else int(sums[0, 2 + 4 * row + 3])
                own = Estimate(
                    naive=naive,
                    ips=ips,
                    snips=snips,
                    naive_interval=_ends(spread[0], ends),
                    ips_interval=_ends(spread[1], ends),
                    snips_interval=_ends(spread[2], ends),
                    users=defined,
                    undefined=users - defined,
                    weights=weighted.weights.get((name, label), Weights.of(np.zeros(0))),
                    slots=float(self._slots(sums, one, scales)[0]),
                    slots_interval=_ends(self._slots(drawn, one, scales), ends),
                )
                found[name, label] = replace(own, reason=unusable(own, scales.high(one)))
        return found

    def _ratios(self, sums: F64, row: int, one: Estimand, scales: Scales) -> F64:
        """Return naive, IPS and SNIPS from sums over lists, a row each."""
        at = 2 + 4 * row
        with np.errstate(invalid="ignore", divide="ignore"):
            naive = sums[:, at] / sums[:, at + 1]
            value = sums[:, at + 2] / sums[:, at + 3]
            normal = value * sums[:, 0] / sums[:, 1] if one.is_sum else value
        nothing = np.full(value.size, np.nan)
        ips, snips = scales.gives(one)
        return np.array([naive, value if ips else nothing, normal if snips else nothing])

    def _slots(self, sums: F64, one: Estimand, scales: Scales) -> F64:
        """Return the weights of the judged slots over the slots, from sums over lists."""
        at = (
            2 + 4 * len(self.wanted) + 2 * int(np.searchsorted(self._cuts, one.metric.whole_cutoff))
        )
        if (
            scales.one_sided
            or scales.liked_only
            or not (scales.known or scales.targets is not None)
        ):
            return np.full(len(sums), np.nan)
        with np.errstate(invalid="ignore", divide="ignore"):
            share = sums[:, at] / sums[:, at + 1]
            result: F64 = share if scales.known else share * sums[:, 0] / sums[:, 1]
        return result


def unusable(one: Estimate, high: float) -> str:
    """Say why the weighted estimates cannot be used; nothing where they can."""
    known = {name: getattr(one, name) for name in ("ips", "snips")}
    known = {name: value for name, value in known.items() if not math.isnan(value)}
    if not known:
        return "there is no weighted estimate"
    most = high * (1 + 1e-9)
    for name, value in known.items():
        if value > most:
            return f"{name} {value:.4g} is above {high:.4g}, the largest possible value"
    for name in known:
        end = getattr(one, f"{name}_interval")[1]
        if end > most:
            return (
                f"the interval of {name} reaches {end:.4g}, above {high:.4g}, the largest possible "
                f"value"
            )
    if one.weights.effective < FEW_HITS:
        hits, worth = one.weights.number, one.weights.effective
        return f"it rests on {hits:,} hits worth {worth:.2g} equal ones, fewer than {FEW_HITS}"
    low, high = one.slots_interval
    if low > OFF or high < 1 / OFF:
        return (
            f"the weights of the judged items in its lists add up to {one.slots:.2f} ({low:.2f} to "
            f"{high:.2f}) times the slots instead of once: the weights do not fit these lists"
        )
    return ""


def _resampled(columns: list[F64], resamples: int, seed: int, threads: int | None) -> F64:
    """Return the sums of columns over users drawn with replacement, a row per resample."""
    from unskew.stats import kernels

    out = np.empty((resamples, len(columns)))
    if not resamples:
        return out
    users, values = columns[0].size, np.column_stack(columns)
    key = np.uint64(key_of(seed, "estimate/resamples"))

    def one(low: int) -> None:
        times = np.empty((min(ROWS, resamples - low), users))
        kernels.resample(key, low, times)
        out[low : low + len(times)] = times @ values

    with one_blas_thread():
        map_blocks(one, range(0, resamples, ROWS), threads, resamples * users)
    return out


def _ends(values: F64, ends: tuple[float, float]) -> tuple[float, float]:
    known = values[np.isfinite(values)]
    if not known.size:
        return math.nan, math.nan
    low, high = np.percentile(known, ends)
    return float(low), float(high)


def _note_undefined(
    values: Mapping[tuple[str, str], Estimate], mean: str, notes: list[str]
) -> None:
    most = max((one.undefined for one in values.values()), default=0)
    if most and mean == "users":
        notes.append(
            f"{most:,} users without a liked judgment are left out of the means of fractions "
            f"(mean='ratio' divides sums instead)"
        )


def _note_bias(wanted: Mapping[str, Estimand], notes: list[str]) -> None:
    """Note metrics that are estimated with a bias even where propensities are right."""
    for label, one in wanted.items():
        if one.bias:
            notes.append(f"{label} is biased even if propensities are right: {one.bias}")


def _warn_of_order(
    values: Mapping[tuple[str, str], Estimate],
    wanted: Mapping[str, Estimand],
    systems: Sequence[str],
    notes: list[str],
) -> None:
    """Warn where a normalised metric puts two systems in another order than the plain one."""
    for label, one in wanted.items():
        plain = one.unnormalised
        if plain is None:
            continue
        other = next(name for name, own in wanted.items() if own.metric == plain)
        turned = []
        for a, b in combinations(systems, 2):
            pairs = [(values[a, m], values[b, m]) for m in (label, other)]
            gaps = [x.best - y.best for x, y in pairs if x.usable and y.usable]
            if len(gaps) == 2 and gaps[0] * gaps[1] < 0:
                turned.append(f"{a} and {b}")
        if turned:
            _warn(
                notes,
                f"{label} and {other} disagree about {', '.join(turned)}: normalising changes the "
                f"order, and it is {plain.name} that adds up to what users get "
                f"(Jeunen et al. 2024)",
            )


def _null(value: float) -> float | None:
    return None if math.isnan(value) else float(value)
