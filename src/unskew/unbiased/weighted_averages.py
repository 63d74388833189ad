"""Weighted values of all lists, averaged over users, with intervals by bootstrap."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from unskew.arrays import F64, I64, Mask, frozen
from unskew.checks import as_count, check_share
from unskew.engine.threads import map_blocks, resolve
from unskew.errors import DataError
from unskew.evaluation.evaluate import MEMORY, memory_bytes
from unskew.judging.judged import Judged
from unskew.judging.shape import BLOCK, Scratch, View
from unskew.metrics.block import Block, ratio
from unskew.metrics.listwise import check_finite, is_ours
from unskew.metrics.weighted import Columns, Seen, liked_hits
from unskew.stats.resampling import drawn_sums, finite_percentiles, with_replacement
from unskew.unbiased.judgment_weights import Estimand, Weights, WeightSource
from unskew.unbiased.weighted_estimates import Estimate, unusable

RESAMPLES, LEVEL = 1_000, 0.95


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
    def of(cls, judged: Judged, source: WeightSource, weight: F64) -> Scales:
        """Add the weights up by list."""
        from unskew.metrics.kernels import lists

        basis = judged.basis
        column = frozen(weight * basis.view.judged)
        everyone, start = basis.lists.user, basis.judgments.start
        sums = lists.sum_judged(everyone, start, column, 0, everyone.size)
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
            normal = self.targets is not None and not (self.one_sided or self.liked_only)
            return self.known, normal
        usable = self.known or estimand.is_ratio
        return usable, usable

    def is_beyond(self, estimand: Estimand) -> bool:
        """Tell whether it adds up judgments for which the weights do not hold."""
        return self.liked_only and (estimand.metric.anti or estimand.uses_gain(self.view))

    def high(self, estimand: Estimand) -> float:
        """Return the largest value that an estimand can have here."""
        return estimand.high(self.view.anti if estimand.metric.anti else self.view, self.longest)

    def notes(self, estimands: Mapping[str, Estimand]) -> list[str]:
        """Say which estimates do not follow from weights of this kind, and why."""
        sums = [label for label, estimand in estimands.items() if estimand.is_sum]
        beyond = [label for label, estimand in estimands.items() if self.is_beyond(estimand)]
        loose = [
            label
            for label, estimand in estimands.items()
            if not (self.known or estimand.is_sum or estimand.is_ratio or self.is_beyond(estimand))
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
class _WeightedPart:
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
    estimands: dict[str, Estimand]
    mean: str
    users: str
    threads: int
    budget: int

    @classmethod
    def of(
        cls, judged: Judged, estimands: dict[str, Estimand], mean: str, threads: int | None
    ) -> Averages:
        """Average over users with a list, as `estimate` does by default."""
        return cls(judged, estimands, mean, "with-list", resolve(threads), memory_bytes(MEMORY))

    @cached_property
    def _groups(self) -> list[tuple[Estimand, I64, list[tuple[int, int]]]]:
        """Estimands alike but in cutoff: the first, cutoffs, (cutoff, row) of each."""
        groups: dict[tuple[object, ...], list[tuple[int, Estimand]]] = {}
        for row, estimand in enumerate(self.estimands.values()):
            groups.setdefault(estimand.key, []).append((row, estimand))
        families = []
        for members in groups.values():
            cuts = sorted({estimand.metric.whole_cutoff for _, estimand in members})
            places = [(cuts.index(estimand.metric.whole_cutoff), row) for row, estimand in members]
            first = members[0][1]
            families.append((first, frozen(np.array(cuts, np.int64)), places))
        return families

    @cached_property
    def mask(self) -> Mask:
        """Which lists are averaged."""
        if self.users == "with-list":
            return self.judged.with_list
        judged = np.diff(self.judged.judgments.start) > 0
        return judged if self.users == "with-test" else np.ones(judged.size, np.bool_)

    def weighted(self, weight: F64) -> _WeightedPart:
        """Return the weighted values only."""
        return self._pass([weight], False)[0]

    def _pass(self, weights: list[F64 | None], diagnose: bool) -> list[_WeightedPart]:
        basis, matched_by_name = self.judged.basis, self.judged.matched
        total, rows = len(basis.lists), len(self.estimands)
        columns = [Columns(basis, weight) for weight in weights]
        shape = (len(columns), len(matched_by_name), rows, total)
        top = np.empty(shape)
        keep = any(self._divided)
        bottom = np.ones(shape if keep else (len(columns), len(matched_by_name), 0, 0))
        user_bytes = 8 * rows * 6 * len(columns) + 48 * len(basis.judgments) / max(total, 1) + 64
        limit = max(int(self.budget / self.threads / user_bytes), 1)
        step = max(min(limit, BLOCK, -(-total // self.threads)), 1)
        blocks = [(lo, min(lo + step, total)) for lo in range(0, total, step)]
        deepest = self._diagnosed if diagnose else []
        slots = np.empty((len(matched_by_name), len(self._cuts), 2, total if diagnose else 0))

        def fill(bounds: tuple[int, int]) -> dict[str, list[tuple[NDArray[Any], F64]]]:
            lo, hi = bounds
            shared: dict[object, F64] = {}
            scratch = Scratch()
            hits: dict[str, list[tuple[NDArray[Any], F64]]] = {}
            for system, (name, matched) in enumerate(matched_by_name.items()):
                block = Block.of(basis, matched, lo, hi, shared, scratch, {})
                for number, column in enumerate(columns):
                    seen = {anti: Seen(block, column, anti) for anti in (False, True)}
                    for estimand, cuts, places in self._groups:
                        form = estimand.weighted.fraction
                        up, down = form(seen[estimand.metric.anti], estimand.params, cuts)
                        apart = down is not None and self._divided[places[0][1]]
                        if not is_ours(form):
                            check_finite(estimand.metric.family, block, (up, down), apart=apart)
                        if down is not None and not apart:
                            up = ratio(up, down)
                        for cut, row in places:
                            top[number, system, row, lo:hi] = up[cut]
                            if down is not None and apart:
                                divisor = np.broadcast_to(down, up.shape)[cut]
                                bottom[number, system, row, lo:hi] = divisor
                if deepest:
                    slots[system, :, 0, lo:hi] = seen[False].judged(self._cuts)
                    slots[system, :, 1, lo:hi] = block.shown(self._cuts)
                    hits[name] = []
                    for anti, most_rank in deepest:
                        rank, judgment = liked_hits(block, columns[-1].view(anti), most_rank)
                        hits[name].append((rank, columns[-1].each[judgment]))
            return hits

        size = total * rows * len(matched_by_name)
        hits_of_blocks = map_blocks(fill, blocks, self.threads, size=size)
        described = self._describe(hits_of_blocks, deepest) if diagnose else {}
        names = list(matched_by_name)
        return [
            _WeightedPart(
                dict(zip(names, top[number], strict=True)),
                dict(zip(names, bottom[number], strict=True)),
                described if number == len(columns) - 1 else {},
                dict(zip(names, slots, strict=True)) if number == len(columns) - 1 else {},
            )
            for number in range(len(columns))
        ]

    @cached_property
    def _cuts(self) -> I64:
        """The cutoffs of all estimands, ascending."""
        return np.unique([row.metric.whole_cutoff for row in self._rows]).astype(np.int64)

    @cached_property
    def _diagnosed(self) -> list[tuple[bool, int]]:
        """The deepest cutoff at which liked (or disliked) hits are looked at."""
        sides = []
        for anti in (False, True):
            cuts = [o.metric.whole_cutoff for o in self.estimands.values() if o.metric.anti == anti]
            if cuts:
                sides.append((anti, max(cuts)))
        return sides

    def _describe(
        self,
        hits_of_blocks: list[dict[str, list[tuple[NDArray[Any], F64]]]],
        sides: list[tuple[bool, int]],
    ) -> dict[tuple[str, str], Weights]:
        """Describe the weights of the liked hits of each system above each cutoff."""
        result: dict[tuple[str, str], Weights] = {}
        by_key: dict[tuple[str, int, int], Weights] = {}
        for name in self.judged.matched:
            for side, (anti, _) in enumerate(sides):
                rank = np.concatenate([part[name][side][0] for part in hits_of_blocks])
                weight = np.concatenate([part[name][side][1] for part in hits_of_blocks])
                for label, estimand in self.estimands.items():
                    if estimand.metric.anti != anti:
                        continue
                    key = (name, side, estimand.metric.whole_cutoff)
                    if key not in by_key:
                        by_key[key] = Weights.of(weight[rank <= estimand.metric.whole_cutoff])
                    result[name, label] = by_key[key]
        return result

    def _sides(self, part: _WeightedPart, name: str, row: int) -> tuple[F64, F64]:
        """Return what is added up over lists: values and what they are divided by."""
        values = self._chosen(part.top[name][row])
        if self._divided[row]:
            return values, self._chosen(part.bottom[name][row])
        if self._rows[row].is_sum:
            return values, np.ones(values.size)
        defined = ~np.isnan(values)
        return np.where(defined, values, 0.0), defined.astype(np.float64)

    def _chosen(self, values: F64) -> F64:
        return values if self.mask.all() else values[self.mask]

    @cached_property
    def _divided(self) -> list[bool]:
        return [self.divides(row) for row in self._rows]

    @cached_property
    def _rows(self) -> list[Estimand]:
        return list(self.estimands.values())

    def divides(self, estimand: Estimand) -> bool:
        """Tell whether sums over users are divided, instead of averaging each user's fraction."""
        return not estimand.is_sum and (
            self.mean == "ratio" or estimand.params.get("mean") == "ratio"
        )

    def spread(
        self, part: _WeightedPart, key: tuple[str, str], scales: Scales
    ) -> tuple[float, float]:
        """Return an estimate that has a scale, and its standard error over users (linearised)."""
        name, label = key
        row = list(self.estimands).index(label)
        top, bottom = self._sides(part, name, row)
        total = float(bottom.sum())
        if not total:
            return math.nan, math.nan
        value = float(top.sum()) / total
        influence = (top - value * bottom) / total
        ips, snips = scales.gives(self._rows[row])
        if not (ips or snips):
            return math.nan, math.nan
        if not ips:
            assert scales.targets is not None
            size, weight = scales.targets[self.mask], scales.weight[self.mask]
            factor = float(size.sum() / weight.sum())
            influence = factor * influence + value * (size - factor * weight) / float(weight.sum())
            value *= factor
        return value, float(np.sqrt((influence**2).sum()))

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
        plain, weighted = self._pass([None, weight], diagnose=True)
        users = int(self.mask.sum())
        if not users:
            raise DataError(f"no user is averaged ({self.users}): no list meets the judgments")
        weigh = with_replacement(seed, "estimate/resamples")
        estimates: dict[tuple[str, str], Estimate] = {}
        size = np.zeros(users) if scales.targets is None else scales.targets[self.mask]
        shared = [size, scales.weight[self.mask]]
        for name in self.judged.matched:
            columns: list[F64] = list(shared)
            for row in range(len(self.estimands)):
                columns += [*self._sides(plain, name, row), *self._sides(weighted, name, row)]
            columns += [self._chosen(part) for pair in weighted.slots[name] for part in pair]
            sums = np.array([[float(column.sum()) for column in columns]])
            draws = drawn_sums(np.column_stack(columns), weigh, resamples, threads=threads)
            for row, (label, estimand) in enumerate(self.estimands.items()):
                naive, ips, snips = self._ratios(sums, row, estimand, scales)[:, 0].tolist()
                spread = self._ratios(draws, row, estimand, scales)
                defined = users if self._divided[row] else int(sums[0, 2 + 4 * row + 3])
                estimate = Estimate(
                    naive=naive,
                    ips=ips,
                    snips=snips,
                    naive_interval=finite_percentiles(spread[0], level),
                    ips_interval=finite_percentiles(spread[1], level),
                    snips_interval=finite_percentiles(spread[2], level),
                    users=defined,
                    undefined=users - defined,
                    weights=weighted.weights.get((name, label), Weights.of(np.zeros(0))),
                    slots=float(self._slots(sums, estimand, scales)[0]),
                    slots_interval=finite_percentiles(self._slots(draws, estimand, scales), level),
                )
                estimates[name, label] = replace(
                    estimate, reason=unusable(estimate, scales.high(estimand))
                )
        return estimates

    def _ratios(self, sums: F64, row: int, estimand: Estimand, scales: Scales) -> F64:
        """Return naive, IPS and SNIPS from sums over lists, a row each."""
        column = 2 + 4 * row
        with np.errstate(invalid="ignore", divide="ignore"):
            naive = sums[:, column] / sums[:, column + 1]
            value = sums[:, column + 2] / sums[:, column + 3]
            normal = value * sums[:, 0] / sums[:, 1] if estimand.is_sum else value
        nothing = np.full(value.size, np.nan)
        ips, snips = scales.gives(estimand)
        return np.array([naive, value if ips else nothing, normal if snips else nothing])

    def _slots(self, sums: F64, estimand: Estimand, scales: Scales) -> F64:
        """Return the weights of the judged slots over the slots, from sums over lists."""
        column = (
            2
            + 4 * len(self.estimands)
            + 2 * int(np.searchsorted(self._cuts, estimand.metric.whole_cutoff))
        )
        if (
            scales.one_sided
            or scales.liked_only
            or not (scales.known or scales.targets is not None)
        ):
            return np.full(len(sums), np.nan)
        with np.errstate(invalid="ignore", divide="ignore"):
            share = sums[:, column] / sums[:, column + 1]
            result: F64 = share if scales.known else share * sums[:, 0] / sums[:, 1]
        return result
