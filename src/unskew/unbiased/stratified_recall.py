"""`stratified_recall`: recall as the weight moves from popular to unpopular items, step by step."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations, pairwise
from typing import Any, ClassVar

import numpy as np
import polars as pl

from unskew.arrays import F64
from unskew.checks import as_count, checked, choose
from unskew.errors import SettingError
from unskew.evaluation.evaluate import evaluate
from unskew.judging.judge import second_argument
from unskew.report.charts import Figure, as_figure
from unskew.report.result import Result
from unskew.report.text import counted

GAMMAS = (0.0, 0.25, 0.5, 1.0, 2.0, 4.0, 8.0)


@dataclass(frozen=True, eq=False)
class StratifiedRecall(Result):
    """Stratified recall of each system over γ. Made by `stratified_recall`."""

    figure_is_open: ClassVar[bool] = True

    cutoff: int
    gammas: tuple[float, ...]
    systems: tuple[str, ...]
    values: F64
    """Systems x gammas."""
    mean: str
    notes: tuple[str, ...] = ()

    def table(self) -> pl.DataFrame:
        """Return a row per system and γ: system, gamma, beta = γ / (γ + 1), value."""
        count = len(self.gammas)
        gammas = np.tile(self.gammas, len(self.systems))
        return pl.DataFrame(
            {
                "system": np.repeat(self.systems, count),
                "gamma": gammas,
                "beta": gammas / (gammas + 1),
                "value": self.values.ravel(),
            }
        )

    def flips(self) -> list[tuple[str, str, float, float]]:
        """Return the pairs that change order: (better before, better after, last γ, first γ)."""
        flips = []
        for a, b in combinations(range(len(self.systems)), 2):
            gap = self.values[a] - self.values[b]
            for index, (left, right) in enumerate(pairwise(gap.tolist())):
                if left * right < 0:
                    first, second = (a, b) if left > 0 else (b, a)
                    names = self.systems[first], self.systems[second]
                    flips.append((*names, self.gammas[index], self.gammas[index + 1]))
        return flips

    def figure(self) -> Figure:
        """Draw each system's stratified recall over β."""
        import altair as alt

        rows = self.table().to_dicts()
        canvas = alt.Chart(alt.NamedData(name="rows"), width=420, height=280)
        line: alt.Chart = canvas.mark_line(point=True).encode(
            x=alt.X("beta:Q", title="β = γ / (γ + 1): how much popular items are played down"),
            y=alt.Y("value:Q", title=f"stratified recall@{self.cutoff}"),
            color=alt.Color("system:N").scale(domain=list(self.systems)),
        )
        return as_figure(line, "Stratified recall", self.footer()[:1], rows)

    def _explanation(self) -> list[str]:
        mean = "mean over users" if self.mean == "users" else "ratio of sums over users"
        lines = [f"stratified recall@{self.cutoff}, {mean}; gamma 0 is recall"]
        for before, after, low, high in self.flips():
            lines.append(f"{after} overtakes {before} between γ = {low:g} and {high:g}")
        return lines

    def _content(self) -> dict[str, object]:
        return {
            "cutoff": self.cutoff,
            "mean": self.mean,
            "values": self.table(),
            "flips": [list(flip) for flip in self.flips()],
        }

    def display_table(self) -> pl.DataFrame:
        """Return a row per system, a column per gamma."""
        return self.table().pivot("gamma", index="system", values="value")

    def _summary(self) -> str:
        return f"@{self.cutoff}, {counted(len(self.systems), 'system')}"


@checked
def stratified_recall(
    judgments: object,
    runs: object = None,
    cutoff: int = 10,
    gammas: Sequence[float] = GAMMAS,
    *,
    mean: str = "users",
    **settings: Any,
) -> StratifiedRecall:
    """Compute stratified recall over a sweep of γ, to see where the order of systems changes.

    Parameters
    ----------
    judgments, runs
        Judged data (`judge`) alone, with the cutoff as the second argument; or raw data as `judge`
        takes them. Liked ratings of items are counted in training ratings too, where given.
    cutoff
        Of the lists.
    gammas
        From 0 (recall) up: an item that n users like counts n^(-γ/(γ+1)).
    mean
        `users`, or `ratio` of the sums over all users (Steck).
    settings
        Further settings of `evaluate`, such as liked=4 or train=….

    References
    ----------
    Steck 2011; bellogin2017 section 7.

    Examples
    --------
    >>> from unskew.unbiased.stratified_recall import stratified_recall
    >>> test = {"user": [1, 2, 3, 3], "item": ["a", "a", "a", "b"], "rating": [5, 5, 5, 5]}
    >>> runs = {"x": {u: ["a"] for u in (1, 2, 3)}, "y": {u: ["b"] for u in (1, 2, 3)}}
    >>> sweep = stratified_recall(test, runs, 1, [0, 1], mean="ratio", liked=4)
    >>> sweep.values.round(3).tolist()
    [[0.75, 0.634], [0.25, 0.366]]
    """
    runs, cutoff = second_argument(judgments, runs, cutoff, 10)
    as_count("cutoff", cutoff)
    choose("mean", mean, ("users", "ratio"))
    steps = [float(gamma) for gamma in gammas]
    if len(steps) < 2 or sorted(set(steps)) != steps or not all(0 <= g < math.inf for g in steps):
        raise SettingError(f"gammas must be at least two numbers from 0 up, rising; got {gammas!r}")
    labels = [f"SR(gamma={gamma!r},mean={mean})@{cutoff}" for gamma in steps]
    scores = evaluate(judgments, runs, labels, **settings)
    means = scores.means()
    values = np.array([[means[name][label] for label in labels] for name in scores.systems])
    return StratifiedRecall(
        cutoff=int(cutoff),
        gammas=tuple(steps),
        systems=tuple(scores.systems),
        values=values,
        mean=mean,
        notes=scores.notes,
    )
