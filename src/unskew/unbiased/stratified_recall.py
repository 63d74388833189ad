"""`stratified_recall`: recall as the weight moves from popular to unpopular items, step by step."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import combinations, pairwise
from typing import Any

from unskew.checks import as_count, checked, choose
from unskew.errors import SettingError
from unskew.evaluation.evaluate import evaluate
from unskew.judging.judge import second_argument
from unskew.report.columns import SYSTEM, VALUE, Column, Drawing, Method, Question
from unskew.report.estimates import Estimates

GAMMAS = (0.0, 0.25, 0.5, 1.0, 2.0, 4.0, 8.0)
STRATIFIED_RECALL = Question(
    name="stratified recall",
    columns=(SYSTEM, Column("gamma", "axis", "γ"), Column("beta", "fact", "β"), VALUE),
    method=Method(estimand="recall, in which an item that n users like counts n^(−γ / (γ + 1))"),
    figures=(Drawing("recall", "lines"),),
    across="gamma",
)
"""A row per system and γ, with β = γ / (γ + 1)."""


@checked
def stratified_recall(
    judgments: object,
    runs: object = None,
    cutoff: int = 10,
    gammas: Sequence[float] = GAMMAS,
    *,
    mean: str = "users",
    **settings: Any,
) -> Estimates:
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

    Returns
    -------
    Estimates
        A row per system and `gamma`; the conclusion names the pairs that change their order.

    References
    ----------
    Steck 2011; bellogin2017 section 7.

    Examples
    --------
    >>> from unskew.unbiased.stratified_recall import stratified_recall
    >>> test = {"user": [1, 2, 3, 3], "item": ["a", "a", "a", "b"], "rating": [5, 5, 5, 5]}
    >>> runs = {"x": {u: ["a"] for u in (1, 2, 3)}, "y": {u: ["b"] for u in (1, 2, 3)}}
    >>> sweep = stratified_recall(test, runs, 1, [0, 1], mean="ratio", liked=4)
    >>> print(sweep.display_tables()[0].to_text())
    system   0         1
    x       *0.7500*  *0.6340*
    y        0.2500    0.3660
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
    values = {name: [means[name][label] for label in labels] for name in scores.systems}
    averaged = "mean over users" if mean == "users" else "ratio of sums over users"
    return Estimates.of_rows(
        replace(STRATIFIED_RECALL, name=f"stratified recall@{cutoff}"),
        [
            (name, gamma, gamma / (gamma + 1), value)
            for name, recall in values.items()
            for gamma, value in zip(steps, recall, strict=True)
        ],
        explanation=(f"stratified recall@{cutoff} by γ, {averaged}; γ = 0 is recall",),
        notes=scores.notes,
        conclusion=tuple(
            f"{after} overtakes {before} between γ = {low:g} and {high:g}"
            for before, after, low, high in _flips(values, steps)
        ),
        card={"cutoff": cutoff, "mean": mean},
    )


def _flips(
    values: Mapping[str, Sequence[float]], gammas: Sequence[float]
) -> Iterator[tuple[str, str, float, float]]:
    """Give the pairs that change order: better before, better after, the last γ, the first γ."""
    for a, b in combinations(values, 2):
        gaps = [first - second for first, second in zip(values[a], values[b], strict=True)]
        for (before, after), (low, high) in zip(pairwise(gaps), pairwise(gammas), strict=True):
            if before * after < 0:
                yield (a, b, low, high) if before > 0 else (b, a, low, high)
