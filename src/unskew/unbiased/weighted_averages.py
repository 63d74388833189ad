"""Weighted values of all lists, averaged over users: naive, IPS and self-normalised estimates."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from unskew.arrays import F64, I32, I64, Mask, frozen
from unskew.checks import as_count, check_share
from unskew.engine.threads import map_blocks, resolve
from unskew.errors import DataError
from unskew.evaluation.evaluate import MEMORY, memory_bytes
from unskew.judging.judged import Judged
from unskew.judging.shape import BLOCK, Scratch
from unskew.metrics.block import Block, ratio
from unskew.metrics.listwise import check_finite, is_ours
from unskew.metrics.weighted import Columns, Seen, liked_hits
from unskew.report.columns import (
    HIGH,
    LOW,
    METRIC,
    QUANTITY,
    SE,
    SYSTEM,
    USERS,
    VALUE,
    Column,
    Method,
    Question,
)
from unskew.report.estimates import Estimates
from unskew.report.text import counted
from unskew.stats.clusters import by_group
from unskew.stats.intervals.skewed import intervals, of_influence
from unskew.unbiased.judgment_weights import Estimand, Weights, WeightSource
from unskew.unbiased.user_sums import UserSum, resampled_sums

RESAMPLES, LEVEL = 1_000, 0.95
FEW_HITS = 60
"""With fewer effective hits an estimate is not usable: its interval misses the truth too often."""
OFF = 1.25
"""How far the weights of judged slots may be from what they should add up to, either way."""
UNUSABLE = "not usable here"
WEIGHTED = Question(
    name="weighted estimates",
    columns=(
        *(SYSTEM, METRIC, QUANTITY, USERS, Column("hits", "count"), VALUE, SE, LOW, HIGH),
        *(Column("effective", "fact", "effective hits"),),
        *(Column("max_weight", "fact", hidden=True), Column("top_share", "share", hidden=True)),
        *(Column("note", "note", UNUSABLE),),
    ),
    quantities=(
        Column("naive", "value"),
        Column("ips", "value", "IPS"),
        Column("snips", "value", "SNIPS"),
    ),
    method=Method(
        estimand="the mean score if every item were judged",
        interval="t, corrected for skewness (Hall), with the weights as they are",
    ),
)
"""A row per system, metric and estimator; the facts are of the system's liked hits.

`effective` is how many equal weights theirs are worth, `max_weight` the largest, `top_share` what
the heaviest 1 % hold of their sum. `note` tells why IPS and SNIPS are not usable.
"""
SLOTS = Question(
    name="weights of judged slots by the slots",
    columns=(SYSTEM, METRIC, VALUE, SE, LOW, HIGH),
    method=replace(WEIGHTED.method, interval="percentile bootstrap, with the weights as they are"),
)
"""The weights of the judged items in the lists, liked or not, by the slots of the lists.

About 1 where propensities are right; null where the weights hold for liked judgments only, or all
judgments are alike.
"""


class _Sums(NamedTuple):
    """What the judgments of each list add up to with some weights."""

    top: F64
    """Systems x metrics x lists."""
    bottom: F64
    """The same where sums over users are divided; empty where none is."""
    slots: F64
    """Systems x cutoffs x 2 x lists: weights of the judged items above each cutoff, and slots."""
    hits: Mapping[tuple[str, bool], tuple[I32, F64]]
    """Rank and weight of the liked (disliked: True) judgments that a system's lists found."""


@dataclass(frozen=True, eq=False)
class WeightedAverages:
    """The passes over all lists, and what becomes of them."""

    judged: Judged
    estimands: Mapping[str, Estimand]
    source: WeightSource
    mean: str = "users"
    users: str = "with-list"
    threads: int | None = None
    memory: int | str = MEMORY
    group: I64 | None = None
    """The group of each user, where groups of users are drawn and not users."""

    # What weights of such a kind give

    def gives(self, estimand: Estimand) -> tuple[bool, bool]:
        """Tell whether weights of this kind give an IPS and a self-normalised estimate.

        A sum has an IPS estimate where weights are known. What the weights of all judgments add up
        to tells the scale only where they are right for all: for disliked judgments too, and where
        there are some of both. Of a ratio of sums a common factor cancels; all other fractions
        need weights that are known.
        """
        if self.is_beyond(estimand):
            return False, False
        if estimand.is_sum:
            return self.source.known, self._targets is not None and self._are_right_for_all
        usable = self.source.known or estimand.is_ratio
        return usable, usable

    def is_beyond(self, estimand: Estimand) -> bool:
        """Tell whether it adds up judgments for which the weights do not hold."""
        view, metric = self.judged.basis.view, estimand.metric
        return self.source.liked_only and (metric.anti or estimand.uses_gain(view))

    def high(self, estimand: Estimand) -> float:
        """Return the largest value that an estimand can have here."""
        basis = self.judged.basis
        return estimand.high(basis.view.anti if estimand.metric.anti else basis.view, basis.longest)

    @cached_property
    def _is_one_sided(self) -> bool:
        """Whether all judgments are liked, or none is."""
        return not (self.judged.basis.disliked.sum() and self.judged.basis.liked.sum())

    @property
    def _are_right_for_all(self) -> bool:
        return not (self._is_one_sided or self.source.liked_only)

    @property
    def _targets(self) -> I64 | None:
        """Targets of each list, where they are counted."""
        return self.judged.basis.lists.targets

    def notes(self) -> list[str]:
        """Say which estimates do not follow from weights of this kind, and why."""
        named = self.estimands.items()
        sums = [label for label, estimand in named if estimand.is_sum]
        beyond = [label for label, estimand in named if self.is_beyond(estimand)]
        loose = [
            label
            for label, estimand in named
            if not (estimand.is_sum or any(self.gives(estimand)) or label in beyond)
        ]
        lines = {
            "have no estimate: the weights hold for liked judgments only, and disliked ones count "
            "too": beyond,
            "have no estimate: the weights are known up to a factor only": loose,
        }
        if self.source.liked_only:
            lines[
                "have no self-normalised estimate: the weights hold for liked judgments only, so "
                "those of all judgments do not add up to the targets"
            ] = sums
        elif self._is_one_sided:
            lines[
                "have no self-normalised estimate: all judgments are liked, or none is, so their "
                "weights do not add up to the targets"
            ] = sums
        if not self.source.known:
            lines["have no IPS estimate: the weights are known up to a factor only"] = sums
        return [f"{', '.join(labels)} {why}" for why, labels in lines.items() if labels]

    # Estimates

    def estimates(
        self, weight: F64, resamples: int = RESAMPLES, level: float = LEVEL, seed: int = 0
    ) -> Estimates:
        """Return the estimates of all systems and metrics, and why some are not usable.

        Parameters
        ----------
        weight
            Of each judgment.
        resamples, level, seed
            Of the bootstrap over users, for the interval of the slots; 0: no intervals at all.
        """
        as_count("resamples", resamples, least=0)
        check_share("level", level)
        if not self.mask.any():
            raise DataError(f"no user is averaged ({self.users}): no list meets the judgments")
        plain, lists = self._pass(None), self._pass(weight)
        rows: list[dict[str, Any]] = []
        slots: list[Mapping[str, Any]] = []
        for system, name in enumerate(self.judged.matched):
            columns = [*self._scale(weight)]
            for row in range(len(self.estimands)):
                columns += [*self._pair(plain, system, row), *self._pair(lists, system, row)]
            columns += [self._averaged(part) for cut in lists.slots[system] for part in cut]
            columns = self._by_unit(columns)
            targets, weights, *sums = resampled_sums(columns, resamples, seed, self.threads)
            for row, (label, estimand) in enumerate(self.estimands.items()):
                naive_top, naive_bottom, top, bottom = sums[4 * row : 4 * row + 4]
                users = self._units(bottom if not self.divides(estimand) else None)
                rank, weight_of = lists.hits[name, estimand.metric.anti]
                hits = Weights.of(weight_of[rank <= estimand.metric.whole_cutoff])
                keys = {"system": name, "metric": label}
                facts = {**keys, "n": users, "hits": hits.number, "effective": hits.effective}
                facts |= {"max_weight": hits.largest, "top_share": hits.top}
                highest = self.high(estimand)
                naive = _numbers(naive_top / naive_bottom, users, highest, level)
                rows.append({**facts, "quantity": "naive", **naive})
                weighted = self._weighted(estimand, top / bottom, targets, weights)
                numbers = {
                    kind: _numbers(number, users, highest, level)
                    for kind, number in weighted.items()
                }
                share = self._slots(estimand, sums[4 * len(self.estimands) :], targets, weights)
                slots.append(keys if share is None else keys | share.row(level))
                reason = _unusable(numbers, slots[-1], hits, highest)
                rows += [
                    {**facts, "quantity": kind, "note": reason, **numbers.get(kind, {})}
                    for kind in ("ips", "snips")
                ]
        method, by_draws = (
            replace(question.method, level=level)
            if resamples
            else replace(question.method, level=level, interval="")
            for question in (WEIGHTED, SLOTS)
        )
        by_draws = replace(by_draws, draws=resamples, seed=seed)
        parts = {"slots": Estimates.of_rows(SLOTS, slots, method=by_draws)}
        return Estimates.of_rows(WEIGHTED, rows, method=method, parts=parts)

    def values_with(self, weight: F64) -> dict[tuple[str, str], tuple[float, float]]:
        """Return value and standard error of an estimate by system and metric.

        That by IPS, else the self-normalised one; NaN where there is neither.
        """
        lists, result = self._pass(weight), {}
        targets, weights = map(UserSum.of, self._scale(weight))
        for system, name in enumerate(self.judged.matched):
            for row, (label, estimand) in enumerate(self.estimands.items()):
                top, bottom = map(UserSum.of, self._pair(lists, system, row))
                estimates = self._weighted(estimand, top / bottom, targets, weights).values()
                numbers = [(estimate.value, estimate.se) for estimate in estimates]
                result[name, label] = numbers[0] if numbers else (np.nan, np.nan)
        return result

    def _weighted(
        self, estimand: Estimand, ips: UserSum, targets: UserSum, weights: UserSum
    ) -> dict[str, UserSum]:
        """Return the IPS and the self-normalised estimate, those of the two that there are."""
        snips = ips * targets / weights if estimand.is_sum else ips
        estimates = zip(("ips", "snips"), (ips, snips), self.gives(estimand), strict=True)
        return {name: number for name, number, is_given in estimates if is_given}

    def _slots(
        self, estimand: Estimand, sums: Sequence[UserSum], targets: UserSum, weights: UserSum
    ) -> UserSum | None:
        """Return the weights of the judged slots by the slots: 1 where the weights are right."""
        if not self._are_right_for_all or not (self.source.known or self._targets is not None):
            return None
        share = sums[2 * self._cut(estimand)] / sums[2 * self._cut(estimand) + 1]
        return share if self.source.known else share * targets / weights

    # Columns of numbers by user

    @cached_property
    def mask(self) -> Mask:
        """Which lists are averaged."""
        if self.users == "with-list":
            return self.judged.with_list
        judged = np.diff(self.judged.judgments.start) > 0
        return judged if self.users == "with-test" else np.ones(judged.size, np.bool_)

    @cached_property
    def _code(self) -> I64 | None:
        """The group of each averaged user: every number occurs."""
        if self.group is None:
            return None
        return np.unique(self._averaged(self.group), return_inverse=True)[1].astype(np.int64)

    def _by_unit(self, columns: list[F64]) -> list[F64]:
        """Return numbers per user, or, of groups, what their users add up to."""
        if self._code is None:
            return columns
        return list(by_group(np.column_stack(columns), self._code).T)

    def _units(self, counted_users: UserSum | None = None) -> int:
        """Return how many users are averaged, or groups: all, or those that a sum counts."""
        if self._code is None:
            return int(self.mask.sum() if counted_users is None else counted_users.value)
        if counted_users is None:
            return int(self._code.max(initial=-1)) + 1
        return int(np.count_nonzero(counted_users.influence))

    @property
    def units(self) -> int:
        """How many users are averaged, or groups of users."""
        return self._units()

    def _averaged(self, values: NDArray[Any]) -> NDArray[Any]:
        return values if self.mask.all() else values[self.mask]

    def _scale(self, weight: F64) -> tuple[F64, F64]:
        """Return the targets of each list, and the weights of its judgments added up."""
        from unskew.metrics.kernels import lists

        basis = self.judged.basis
        column, start = frozen(weight * basis.view.judged), basis.judgments.start
        weights = lists.sum_judged(basis.lists.user, start, column, 0, basis.lists.user.size)
        targets = np.zeros(weights.size) if self._targets is None else self._targets
        return self._averaged(targets.astype(np.float64)), self._averaged(weights)

    def _pair(self, lists: _Sums, system: int, row: int) -> tuple[F64, F64]:
        """Return the values of a metric and what they are divided by."""
        values, estimand = self._averaged(lists.top[system, row]), self._rows[row]
        if self.divides(estimand):
            return values, self._averaged(lists.bottom[system, row])
        if estimand.is_sum:
            return values, np.ones(values.size)
        is_defined = ~np.isnan(values)
        return np.where(is_defined, values, 0.0), is_defined.astype(np.float64)

    @cached_property
    def _rows(self) -> list[Estimand]:
        return list(self.estimands.values())

    def divides(self, estimand: Estimand) -> bool:
        """Tell whether sums over users are divided, instead of averaging each user's fraction."""
        means = self.mean, estimand.params.get("mean")
        return not estimand.is_sum and "ratio" in means

    # The pass over the lists

    @cached_property
    def _cuts(self) -> I64:
        """The cutoffs of all estimands, ascending."""
        cuts = [estimand.metric.whole_cutoff for estimand in self._rows]
        return frozen(np.unique(np.array(cuts, np.int64)))

    def _cut(self, estimand: Estimand) -> int:
        return int(np.searchsorted(self._cuts, estimand.metric.whole_cutoff))

    def _pass(self, weight: F64 | None) -> _Sums:
        """Add up all lists; None: every judgment counts once, and hits are not looked at."""
        basis, matched_by_name = self.judged.basis, self.judged.matched
        total, rows = len(basis.lists), len(self.estimands)
        columns = Columns(basis, weight)
        shape = len(matched_by_name), rows, total
        top = np.empty(shape)
        bottom = np.ones(shape if any(map(self.divides, self._rows)) else (shape[0], 0, 0))
        slots = np.empty((shape[0], len(self._cuts), 2, total if weight is not None else 0))
        sides = {estimand.metric.anti for estimand in self._rows}
        groups: dict[tuple[object, ...], list[int]] = {}  # alike but in cutoff
        for row, estimand in enumerate(self._rows):
            metric = estimand.metric
            groups.setdefault((metric.name, metric.settings, metric.anti), []).append(row)

        def fill(bounds: tuple[int, int]) -> dict[tuple[str, bool], tuple[I32, F64]]:
            lo, hi = bounds
            shared: dict[object, F64] = {}
            scratch = Scratch()
            hits = {}
            for system, (name, matched) in enumerate(matched_by_name.items()):
                block = Block.of(basis, matched, lo, hi, shared, scratch, {})
                seen = {anti: Seen(block, columns, anti) for anti in (False, True)}
                for members in groups.values():
                    estimand = self._rows[members[0]]
                    form = estimand.weighted.fraction
                    up, down = form(seen[estimand.metric.anti], estimand.params, self._cuts)
                    apart = down is not None and self.divides(estimand)
                    if not is_ours(form):
                        check_finite(estimand.metric.family, block, (up, down), apart=apart)
                    if down is not None and not apart:
                        up = ratio(up, down)
                    for row in members:
                        cut = self._cut(self._rows[row])
                        top[system, row, lo:hi] = up[cut]
                        if down is not None and apart:
                            bottom[system, row, lo:hi] = np.broadcast_to(down, up.shape)[cut]
                if weight is not None:
                    slots[system, :, 0, lo:hi] = seen[False].judged(self._cuts)
                    slots[system, :, 1, lo:hi] = block.shown(self._cuts)
                    for anti in sides:
                        rank, judgment = liked_hits(block, columns.view(anti), self._cuts[-1])
                        hits[name, anti] = rank, weight[judgment]
            return hits

        threads = resolve(self.threads)
        user_bytes = 8 * rows * 6 + 48 * len(basis.judgments) / max(total, 1) + 64
        limit = max(int(memory_bytes(self.memory) / threads / user_bytes), 1)
        step = max(min(limit, BLOCK, -(-total // threads)), 1)
        blocks = [(lo, min(lo + step, total)) for lo in range(0, total, step)]
        parts = map_blocks(fill, blocks, threads, size=total * rows * len(matched_by_name))
        hits = {
            key: (
                np.concatenate([p[key][0] for p in parts]),
                np.concatenate([p[key][1] for p in parts]),
            )
            for key in (parts[0] if parts else ())
        }
        return _Sums(top, bottom, slots, hits)


def weighted_value(estimates: Estimates, system: str, metric: str) -> tuple[float, str]:
    """Return the self-normalised estimate, else that by IPS, and why it is not usable."""
    keys = {"system": system, "metric": metric}
    rows = [estimates.row(**keys, quantity=name) for name in ("snips", "ips")]
    return next((row.value for row in rows if row.value is not None), np.nan), rows[0].note


def _numbers(number: UserSum, users: int, highest: float, level: float) -> dict[str, float]:
    """Return value, standard error and ends of an estimate, within what the metric can be.

    The weights make what users add skewed, and many add nothing: Hall's transformation takes the
    skewness out of Student's t. Where users were not drawn there are no ends.
    """
    numbers = number.row(level)
    if "low" not in numbers or users < 3:
        return numbers
    of = of_influence(number.value, number.influence, users)
    low, high = (float(end) for end in intervals(of, level))
    if not math.isfinite(low + high):  # all users add the same
        low = high = number.value
    return numbers | {"low": max(low, min(number.value, 0.0)), "high": min(high, highest)}


def _unusable(
    numbers: Mapping[str, Mapping[str, float]],
    slots: Mapping[str, Any],
    hits: Weights,
    high: float,
) -> str:
    """Say why the weighted estimates cannot be used; nothing where they can."""
    if all(np.isnan(number["value"]) for number in numbers.values()):
        return "there is no weighted estimate"
    beyond = f"above {high:.4g}, the largest possible value"
    limit = high * (1 + 1e-9)
    for name, number in numbers.items():
        if number["value"] > limit:
            return f"{name.upper()} {number['value']:.4g} is {beyond}"
    if hits.effective < FEW_HITS:
        return (
            f"it rests on {counted(hits.number, 'hit')} with an effective sample size of "
            f"{hits.effective:.2g}, less than {FEW_HITS}"
        )
    if "low" in slots and (slots["low"] > OFF or slots["high"] < 1 / OFF):
        return (
            f"the weights of its judged items add up to {slots['value']:.2f} "
            f"({slots['low']:.2f} to {slots['high']:.2f}) times the slots, not once"
        )
    return ""
