"""`propensity_strata`: systems within strata of judgments with about the same propensity.

A system that wins on the whole can lose in every part (Simpson's paradox), because judgments of
popular items outnumber all others.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from itertools import combinations
from typing import Any, Unpack

import numpy as np
import polars as pl

from unskew.arrays import F64, I64, Mask
from unskew.checks import as_count, checked
from unskew.engine.threads import resolve
from unskew.errors import DataError, SettingError
from unskew.evaluation.evaluate import MEMORY, memory_bytes
from unskew.evaluation.scoring import score
from unskew.judging.arguments import second_argument
from unskew.judging.judged import Judged
from unskew.judging.reading import RawOptions
from unskew.metrics.names import Metric, parse
from unskew.report.charts import Figure, as_figure
from unskew.report.result import Result
from unskew.stats.correlation import kendall
from unskew.stats.user_draws import check_two_systems
from unskew.unbiased.judgment_weights import judge_for_estimates, weigh
from unskew.unbiased.weighted_metrics import Estimand


@dataclass(frozen=True)
class PropensityStratum:
    """Judgments that were about equally likely to be made."""

    low: float
    high: float
    judgments: int
    liked: int
    users: int
    """Users with a liked judgment in the stratum: the mean is over these."""
    values: Mapping[str, float]
    """The metric of each system when only these judgments count."""


@dataclass(frozen=True, eq=False)
class PropensityStrata(Result):
    """What systems score within strata of propensity. Made by `propensity_strata`."""

    metric: str
    systems: tuple[str, ...]
    overall: Mapping[str, float]
    """With all judgments, unweighted."""
    strata: tuple[PropensityStratum, ...]
    """From the least likely judgments up."""
    better: str = "higher"
    truth: Mapping[str, float] | None = None
    notes: tuple[str, ...] = ()

    @property
    def stratified(self) -> dict[str, float]:
        """The mean over strata: each counts the same, however many judgments it holds."""
        return {
            name: float(np.mean([one.values[name] for one in self.strata])) for name in self.systems
        }

    def tau(self, values: Mapping[str, float], other: Mapping[str, float]) -> float | None:
        """Return Kendall's τ_b of two orders of the systems; None where one is all ties."""
        tau = kendall(values, other)
        return None if math.isnan(tau) else tau

    def table(self) -> pl.DataFrame:
        """Return a row per stratum, then `stratified` and `overall`.

        Columns: stratum, low and high (propensity), judgments, liked, a column per system, tau (of
        the order with that of all judgments) and, where the truth is given, tau_truth.
        """
        rows = []
        for number, one in enumerate(self.strata, start=1):
            facts = {
                "low": one.low,
                "high": one.high,
                "judgments": one.judgments,
                "liked": one.liked,
            }
            rows.append(self._line(str(number), facts, one.values))
        sums = {
            "low": self.strata[0].low,
            "high": self.strata[-1].high,
            "judgments": sum(one.judgments for one in self.strata),
            "liked": sum(one.liked for one in self.strata),
        }
        rows.append(self._line("stratified", sums, self.stratified))
        rows.append(self._line("overall", sums, self.overall))
        return pl.DataFrame(rows, infer_schema_length=None)

    def _line(
        self, name: str, facts: Mapping[str, Any], values: Mapping[str, float]
    ) -> dict[str, Any]:
        line = {"stratum": name, **facts, **values, "tau": self.tau(values, self.overall)}
        return line if self.truth is None else line | {"tau_truth": self.tau(values, self.truth)}

    def paradoxes(self) -> list[tuple[str, str]]:
        """Return the pairs (a, b) with a better in every stratum and b better on the whole."""
        sign = -1.0 if self.better == "lower" else 1.0
        pairs = []
        for one, other in combinations(self.systems, 2):
            for a, b in ((one, other), (other, one)):
                within = all(sign * (s.values[a] - s.values[b]) > 0 for s in self.strata)
                if within and sign * (self.overall[b] - self.overall[a]) > 0:
                    pairs.append((a, b))
        return pairs

    def figure(self) -> Figure:
        """Draw each system's value in each stratum and on the whole."""
        import altair as alt

        names = [*(str(n) for n in range(1, len(self.strata) + 1)), "overall"]
        parts = [*(one.values for one in self.strata), self.overall]
        rows = [
            {"stratum": name, "system": system, "value": values[system]}
            for name, values in zip(names, parts, strict=True)
            for system in self.systems
        ]
        whole = alt.Chart(alt.NamedData(name="rows"), width=420, height=280)
        x = alt.X("stratum:N", title="stratum, least likely judgments first")
        line: alt.Chart = whole.mark_line(point=True).encode(
            x=x.scale(domain=names).axis(labelAngle=0),
            y=alt.Y("value:Q", title=self.metric),
            color=alt.Color("system:N").scale(domain=list(self.systems)),
        )
        return as_figure(line, f"{self.metric} by propensity", self.footer()[:1], rows)

    def _explanation(self) -> list[str]:
        lines = [f"{self.metric} when only the judgments of a stratum count; tau: with all of them"]
        turned = self.paradoxes()
        if turned:
            pairs = ", ".join(f"{a} and {b}" for a, b in turned)
            lines.append(f"Simpson's paradox: every stratum reverses the overall order of {pairs}")
        return lines

    def _content(self) -> dict[str, object]:
        return {
            "metric": self.metric,
            "strata": self.table(),
            "paradoxes": [list(pair) for pair in self.paradoxes()],
            "notes": self.notes,
        }

    def _summary(self) -> str:
        return f"{self.metric}, {len(self.strata)} strata"


@checked
def propensity_strata(
    judgments: object,
    runs: object = None,
    metric: str = "nDCG@10",
    *,
    strata: int = 2,
    propensity: object = None,
    truth: Mapping[str, float] | None = None,
    random: object = None,
    seed: int = 0,
    threads: int | None = None,
    memory: int | str = MEMORY,
    **data: Unpack[RawOptions],
) -> PropensityStrata:
    """Judge systems within strata of judgments that were about equally likely to be made.

    Parameters
    ----------
    judgments, runs, seed, data
        Judged data (`judge`) alone, with the metric as the second argument; or raw data and their
        options as `judge` takes them.
    metric
        Any metric of judged hits. Within a stratum only its judgments count, all others are taken
        as unjudged; the mean is over users with a liked judgment in it.
    strata
        How many, with about as many judgments each. Equal propensities are never parted, so there
        can be fewer.
    propensity, random
        As for `estimate`.
    truth
        What the systems really score, by name, where it is known: adds the rank correlation of each
        stratum with it.
    threads, memory
        As for `evaluate`; never change a result.

    References
    ----------
    Jadidinejad, Macdonald & Ounis 2021.

    Examples
    --------
    >>> from unskew.unbiased.simpsons_paradox import propensity_strata
    >>> test = {"user": [1, 1, 2], "item": ["hit", "rare", "hit"], "rating": [5, 5, 5]}
    >>> runs = {"x": {1: ["hit"], 2: ["hit"]}, "y": {1: ["rare"], 2: ["rare"]}}
    >>> chances = {"hit": 0.9, "rare": 0.1}
    >>> result = propensity_strata(test, runs, "P@1", liked=4, propensity=chances)
    >>> [one.values for one in result.strata]
    [{'x': 0.0, 'y': 1.0}, {'x': 1.0, 'y': 0.0}]
    """
    as_count("strata", strata, least=2)
    runs, metric = second_argument(judgments, runs, metric, "nDCG@10")
    wanted = parse(metric)
    if wanted.definition.of != "judged" or wanted.params.get("mean") == "ratio":
        raise SettingError(f"{metric}: strata need a metric of judged hits with a value per user")
    named = {metric: Estimand(metric, wanted)}
    judged, notes = judge_for_estimates(judgments, runs, named, seed=seed, threads=threads, **data)
    check_two_systems(list(judged.systems))
    if truth is not None and set(truth) != set(judged.systems):
        raise DataError(
            f"truth must name the systems {', '.join(judged.systems)}, got "
            f"{', '.join(map(str, truth))}"
        )
    source = weigh(judged, propensity, None, random)
    chance = 1.0 / source.weight
    home = _cut(chance, strata)
    notes += source.notes
    if int(home.max()) + 1 < strata:
        notes.append(f"{int(home.max()) + 1} strata: more would separate equal propensities")
    measure = partial(
        _means,
        judged,
        label=metric,
        metric=wanted,
        threads=resolve(threads),
        budget=memory_bytes(memory),
    )
    every, _ = measure(np.ones(chance.size, np.bool_))
    parts = []
    for number in range(int(home.max()) + 1):
        mine = home == number
        values, users = measure(mine)
        parts.append(
            PropensityStratum(
                low=float(chance[mine].min()),
                high=float(chance[mine].max()),
                judgments=int(mine.sum()),
                liked=int((judged.view.liked[mine] > 0).sum()),
                users=users,
                values=values,
            )
        )
    return PropensityStrata(
        metric=metric,
        systems=tuple(judged.systems),
        overall=every,
        strata=tuple(parts),
        better=wanted.better,
        truth=truth,
        notes=tuple(notes),
    )


def _cut(chance: F64, strata: int) -> I64:
    """Return the stratum of each judgment: quantiles of propensity, equal ones together."""
    edges = np.unique(np.quantile(chance, np.arange(1, strata) / strata, method="higher"))
    home = np.searchsorted(edges, chance, side="right")
    return np.unique(home, return_inverse=True)[1].astype(np.int64)


def _means(
    judged: Judged, mine: Mask, *, label: str, metric: Metric, threads: int, budget: int
) -> tuple[dict[str, float], int]:
    """Return each system's mean when only some judgments count, over users with a liked one."""
    part = judged.basis.masked(mine)
    scored = score(part, judged.matched, {label: metric}, threads=threads, budget=budget)
    kept = judged.with_list & ((part.disliked if metric.anti else part.liked) > 0)
    if not kept.any():
        raise DataError(f"{label}: a stratum holds no liked judgment; take fewer strata")
    means = {
        name: float(np.nan_to_num(system.values[0][kept]).mean()) for name, system in scored.items()
    }
    return means, int(kept.sum())
