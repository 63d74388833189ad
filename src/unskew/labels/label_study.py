"""`LabelStudy`: recommended pairs with labels of an annotator and of people, and estimates."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from itertools import combinations
from typing import Any, NamedTuple

import numpy as np

from unskew.arrays import F64, Mask
from unskew.data.relevance import Relevance
from unskew.engine.threads import map_blocks
from unskew.errors import DataError, SettingError
from unskew.judging.judged import Judged
from unskew.judging.shape import POOLED
from unskew.labels.assisted_contrasts import LabelContrast, bootstrap_ends
from unskew.labels.contrast_sides import (
    ESTIMATORS,
    HUMAN,
    LISTS,
    PPI,
    TUNED,
    USERS,
    LabelledPairs,
)
from unskew.labels.human_samples import HumanSample, SampleFrame
from unskew.labels.recommended_pairs import Coefficients, PlaceSum, RecommendedPairs
from unskew.report.text import counted
from unskew.stats.compare.gaps import shared_level

UNLABELLED = ("error", "disliked", "mean")
ANNOTATOR = "annotator"
"""Its labels alone: no estimate of what people would say."""
ROWS = (TUNED, HUMAN, PPI)
"""The order of the rows of estimates: the best first."""


class Bootstrap(NamedTuple):
    """How bootstrap intervals are drawn."""

    resamples: int
    seed: int
    threads: int | None


class _LabelWork(NamedTuple):
    """What the contrasts of one metric share."""

    place_sum: PlaceSum
    data: LabelledPairs
    scale: float
    coefficients: Coefficients


@dataclass(frozen=True, eq=False, kw_only=True)
class LabelStudy:
    """Recommended pairs with labels of an annotator and of people, and what is asked of them."""

    judged: Judged
    pairs: RecommendedPairs
    sample: HumanSample
    frame: SampleFrame | None
    rule: Relevance
    population: str
    mean: str
    unlabelled: str

    def __post_init__(self) -> None:
        users = self.pairs.number_of_users
        if self.frame is not None and (self.population, self.mean) == (USERS, "ratio"):
            raise SettingError(
                f"mean='ratio' for new users needs the level of each system, but "
                f"{self.frame.reason}; take mean='users'"
            )
        if self.population == USERS and users < 2:
            raise DataError("population='users' needs lists of at least 2 users, there is 1")
        has_label = self._known
        missing = int(np.count_nonzero(~has_label))
        if missing == has_label.size:
            raise DataError(
                "the annotator labelled no recommended pair: are ids written as in the runs?"
            )
        if missing and self.unlabelled == "error":
            row = int(np.argmin(has_label))
            user = self.pairs.users.values[int(self.pairs.user[row])]
            item = self.pairs.items.values[int(self.pairs.item[row])]
            raise DataError(
                f"{missing:,} of {counted(has_label.size, 'recommended pair')} have no label of "
                f"the annotator, the first: user {user!r}, item {item!r}; label them, or choose "
                f"what they count as: unlabelled='disliked' (fits clicks) or unlabelled='mean'"
            )

    @property
    def _known(self) -> Mask:
        """Which recommended pairs the annotator labelled."""
        rows = self.pairs.judgment
        labelled: Mask = self.judged.view.label[np.maximum(rows, 0)] != POOLED
        return labelled & (rows >= 0)

    def annotator_likes(self) -> Mask:
        """Tell which recommended pairs the annotator likes; what is not labelled counts as not."""
        liked: Mask = self.judged.view.liked[np.maximum(self.pairs.judgment, 0)] > 0
        return liked & self._known

    def labels(self, place_sum: PlaceSum) -> tuple[F64, F64, float]:
        """Return the annotator's and people's labels from 0 to 1, and what 1 stands for."""
        has_label = self._known
        label = place_sum.worth(self.judged.view)[np.maximum(self.pairs.judgment, 0)]
        if not has_label.all():
            label = np.where(has_label, label, self._for_unlabelled(place_sum, label[has_label]))
        y = place_sum.worth(self.sample.view(self.rule))
        scale = max(float(label.max(initial=0.0)), float(y.max(initial=0.0))) or 1.0
        return label / scale, y / scale, scale

    def _for_unlabelled(self, place_sum: PlaceSum, values: F64) -> float:
        if self.unlabelled == "mean":
            return float(values.mean())
        if place_sum.metric.anti and place_sum.counts_gain:
            raise SettingError(
                f"{place_sum.label}: unlabelled='disliked' does not say which loss a pair has; "
                f"take unlabelled='mean'"
            )
        return float(place_sum.metric.anti)

    def rows(
        self,
        sums: Mapping[str, PlaceSum],
        level: float,
        draws: Bootstrap | None,
        threads: int | None,
    ) -> list[dict[str, Any]]:
        """Estimate every system and every difference, by every metric."""
        systems = self.pairs.systems
        couples = list(combinations(systems, 2))
        levels = level, shared_level(level, len(couples) * len(sums))
        number = np.cumsum(self.pairs.listed_users) - 1
        rows: list[dict[str, Any]] = []
        for place_sum in sums.values():
            label, y, scale = self.labels(place_sum)
            data = LabelledPairs(
                label=label,
                sample=self.sample,
                y=y,
                user=number[self.pairs.user],
                users=self.pairs.number_of_users,
                population=self.population,
            )
            coefficients = self.pairs.coefficients(place_sum, self.mean)
            estimate = partial(
                self._rows_of, _LabelWork(place_sum, data, scale, coefficients), levels, draws
            )
            contrasts: list[tuple[str, str | None]] = [(name, None) for name in systems]
            for contrast_rows in map_blocks(estimate, [*contrasts, *couples], threads):
                rows += contrast_rows
        return rows

    def _rows_of(
        self,
        work: _LabelWork,
        levels: tuple[float, float],
        draws: Bootstrap | None,
        systems: tuple[str, str | None],
    ) -> list[dict[str, Any]]:
        """Return the rows of a system (the second is None) or of a difference."""
        a, b = systems
        row, add = work.coefficients.contrast(a, b)
        contrast = LabelContrast.of(work.data, row, add, self._drift(work, systems))
        frame = self.frame
        reason = "" if frame is None or frame.holds(row) else frame.reason
        reason = reason or _why_not(contrast, a, b)
        common = {
            "metric": work.place_sum.label,
            "system": a,
            "against": b,
            "labels": contrast.number,
            "pairs": contrast.pairs,
            "note": reason,
        }
        alone = {"quantity": ANNOTATOR, "value": work.scale * contrast.labels_alone}
        if reason:
            return [*(common | {"quantity": name} for name in ROWS), common | alone]
        estimates = _estimates(contrast, work.scale, levels, draws)
        facts: dict[str, Any] = {"rho": contrast.correlation, "gain": contrast.gain}
        if b is not None:
            low, high = estimates[TUNED].pop("together")
            better = None
            if low > 0 or high < 0:
                is_first = (low > 0) == (work.place_sum.metric.better == "higher")
                better = a if is_first else b
            facts |= {"low_together": low, "high_together": high, "better": better}
        estimates[TUNED] |= facts
        rows = [common | {"quantity": name} | estimates[name] for name in ROWS]
        return [*rows, common | alone]

    def _drift(
        self, work: _LabelWork, systems: tuple[str, str | None]
    ) -> tuple[F64 | None, F64 | None]:
        """Return what users change through the divisors of a ratio, where new users are drawn."""
        if self.population == LISTS or self.mean == "users":
            return None, None
        parts: list[F64 | None] = []
        for name, sign in zip(systems, (1.0, -1.0), strict=True):
            if name is None:
                parts.append(None)
                continue
            data = work.data
            row, add = work.coefficients.contrast(name)
            contrast = LabelContrast.of(data, row, add)
            if contrast.without_labels is not None:
                parts.append(None)
                continue
            value = contrast.estimates[TUNED].value
            share: F64 = np.bincount(data.user[row], add, data.users).astype(np.float64)
            parts.append(sign * value * share)
        return parts[0], parts[1]

    def notes(self) -> Iterator[str]:
        """Say what was assumed, left out and filled in."""
        yield from self.judged.notes
        yield from self.sample.notes
        has_label = self._known
        missing = int(np.count_nonzero(~has_label))
        if missing:
            what = "not liked" if self.unlabelled == "disliked" else "the mean of all labels"
            pairs = counted(missing, "recommended pair has", "recommended pairs have")
            yield f"{pairs} no label of the annotator: taken as {what}"
        unused = len(self.judged.judgments) - int(has_label.sum())
        if unused > 0:
            labels = counted(unused, "label of the annotator is", "labels of the annotator are")
            yield f"{labels} of pairs that no system recommends down to the cutoff, and not used"
        if self.rule != self.judged.relevance:
            yield f"people: {self.rule}"


def _why_not(contrast: LabelContrast, a: str, b: str | None) -> str:
    """Say why there are no estimates of a contrast."""
    if not contrast.sides:
        return "its lists are empty" if b is None else "the two lists do not differ"
    empty = contrast.without_labels
    if empty is None:
        return ""
    system, rival = (a, b) if empty.sign > 0 else (b, a)
    more = "" if b is None else f" and {rival} does not, or further down"
    return f"people labelled no pair that {system} recommends{more}"


def _estimates(
    contrast: LabelContrast, scale: float, levels: tuple[float, float], draws: Bootstrap | None
) -> dict[str, dict[str, Any]]:
    """Return the numbers by estimator; `together` is the interval at the second level."""
    estimates = [contrast.estimates[name] for name in ESTIMATORS]
    if draws is None:
        intervals = [[estimate.interval(level) for level in levels] for estimate in estimates]
    else:
        stratum = contrast.data.sample.stratum
        if contrast.data.population == USERS:
            stratum = np.zeros(contrast.data.users, np.int64)
        intervals = bootstrap_ends(estimates, stratum, levels, *draws)
    rows = {}
    for estimate, (single, together) in zip(estimates, intervals, strict=True):
        is_drawn = draws is not None and estimate.method == "score"
        rows[estimate.estimator] = {
            "value": scale * estimate.value,
            "se": scale * estimate.variance**0.5,
            "low": scale * single[0],
            "high": scale * single[1],
            "interval": "bootstrap" if is_drawn else estimate.method,
            "together": tuple(scale * end for end in together),
        }
    return rows
