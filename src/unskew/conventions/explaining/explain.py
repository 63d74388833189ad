"""`explain`: which conventions give a printed number, or the path between two numbers."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from unskew.checks import checked
from unskew.conventions.explaining.candidates import Candidate, in_sentences, look_at
from unskew.conventions.explaining.explanation import (
    LIMIT,
    Explanation,
    answer_of,
    rank_of,
    simplest,
    title_of,
)
from unskew.conventions.explaining.printed import (
    OURS,
    PrintedQuantity,
    Target,
    read_targets,
)
from unskew.conventions.explaining.search import Class, Search, search
from unskew.conventions.explaining.waterfall import path_between
from unskew.conventions.laying import Laid, lay
from unskew.conventions.libraries import (
    COMMON,
    WITHOUT_CUTOFF,
    Library,
    LibraryMetric,
    all_libraries,
    relevant_axes,
)
from unskew.data.relevance import Relevance
from unskew.engine.threads import resolve
from unskew.judging.judged import Judged
from unskew.report.estimates import Estimates
from unskew.report.text import counted

CUTOFFS = (1, 3, 5, 10, 20, 50, 100)
MOST = 24
"""The most classes among which a number is chosen."""


def best_question(result: Search, classes: Sequence[Class]) -> str:
    """Return a sentence: the number that leaves the fewest classes, and how many it tells apart."""
    candidates = [simplest(group) for group in classes[:MOST]]
    if len(candidates) < 2:
        return ""
    best: tuple[float, str, int] = (math.inf, "", 0)
    printed, systems = result.targets[0].printed, result.laid.systems
    for system, quantity in _questions(result):
        values = [_value(result, candidate, system, quantity) for candidate in candidates]
        counts = Counter(map(printed.show, values))
        remaining = sum(count**2 for count in counts.values()) / len(values)
        if remaining < best[0] - 1e-9:
            where = f" of {system}" if len(systems) > 1 else ""
            best = (remaining, f"{quantity.label}{where}", len(counts))
    if best[2] < 2:
        return "no further metric or cutoff of these lists tells the remaining classes apart"
    return (
        f"ask for {best[1]} next: the {len(candidates)} classes nearest to what was printed give "
        f"it {best[2]} different values"
    )


def _questions(result: Search) -> Iterator[tuple[str, PrintedQuantity]]:
    """Return what might be asked: near to what is known first."""
    targets, systems = result.targets, result.laid.systems
    printed_keys = {(t.system, t.quantity.metric, t.quantity.k) for t in targets}
    deepest = max(int(lists.run.depth.max(initial=1)) for lists in systems.values())
    families = dict.fromkeys([*(t.quantity.metric for t in targets), *COMMON])
    cutoffs = [k for k in CUTOFFS if k <= deepest]
    for system in dict.fromkeys([*(t.system for t in targets), *systems]):
        for family in families:
            for k in cutoffs if family and family not in WITHOUT_CUTOFF else []:
                if (system, family, k) not in printed_keys:
                    yield system, PrintedQuantity(f"{family}@{k}", family, k)


def _value(result: Search, candidate: Candidate, system: str, quantity: PrintedQuantity) -> float:
    """Return what a candidate gives for another metric, by the row of its library if it has one."""
    row = _row(result, candidate, quantity)
    allowed = relevant_axes(row.metric)
    changes = tuple(change for change in candidate.changes if change[0] in (*allowed, "cutoff"))
    shifted = Candidate(type(candidate.start)(candidate.start.library, (row,)), changes)
    return result.mean(system, shifted.row(0), shifted.cutoff(quantity.k))


def _row(result: Search, candidate: Candidate, quantity: PrintedQuantity) -> LibraryMetric:
    start = candidate.start
    for printed, row in zip(result.quantities, start.rows, strict=True):
        if printed.metric == quantity.metric and row.has_cutoff:
            return row
    if start.library != OURS:
        rows = [
            row
            for row in result.libraries[start.library].metrics
            if row.given == start.rows[0].given and quantity.is_of(row)
        ]
        if rows:
            return min(rows, key=lambda row: row.option != start.rows[0].option)
    options = {
        name: option
        for name, option in start.rows[0].options
        if name in relevant_axes(quantity.metric) and name not in ("per", "ideal")
    }
    return LibraryMetric(
        OURS, f"{quantity.metric}@{{k}}", metric=quantity.metric, options=tuple(options.items())
    )


NEAREST = 3
"""How many classes are named where nothing fits."""
OUTSIDE = (
    "outside the search: other lists, another split or test set, another threshold of relevance "
    "(liked=…), sampled candidates, and metrics that no known library has"
)


@checked
def explain(
    judgments: object,
    runs: object = None,
    values: object = None,
    *,
    between: Sequence[object] | None = None,
    liked: float | None = None,
    above: float | None = None,
    relevance: Relevance | str | None = None,
    train: object = None,
    items: object = None,
    ties: str | None = None,
    seed: int = 0,
    depth: int | None = None,
    threads: int | None = None,
) -> Explanation | Estimates:
    """Tell which conventions give printed values, or why two libraries give different ones.

    Conventions of known libraries are tried first, then changes of one and of two choices. What
    gives equal values on these data is one class.

    Parameters
    ----------
    judgments, runs
        As `judge` takes them. Raw lists may hold items twice and training items: that is tried
        as an explanation. After judged data (`judge`), give the values as the second argument.
    values
        Metric to printed value, such as ``{"nDCG@10": "0.3211"}``, or system to such a mapping.
        As text, trailing zeros and a percent sign count. All values must come from one evaluation.
        With `between`: the name of a metric.
    between
        Two of ``"ours"``, a library, or a printed value of the metric: the path from one number
        to the other, one convention per step. Needs the lists of one system.
    liked, above, relevance, train, items, ties, seed, depth
        As in `judge`.
    threads
        How many threads to use; never changes a result.

    Returns
    -------
    Explanation or Estimates
        With `between` the path: a row per step, with what it changes and the number after it.

    Examples
    --------
    >>> import unskew as us
    >>> test = {"user": [1, 1, 2, 3], "item": [10, 20, 30, 40], "rating": [5, 2, 4, 3]}
    >>> lists = {"mine": {1: [20, 10], 2: [30], 3: [10]}}
    >>> us.explain(test, lists, {"P@2": "0.3333"}, liked=4).answers[0].title
    "unskew's defaults"
    >>> path = us.explain(test, lists, "P@2", between=("ours", "recbole"), liked=4)
    >>> print([(row["step"], round(row["value"], 4)) for row in path.rows.to_dicts()])
    [("unskew's defaults", 0.3333), ('judgments', 0.5), ('users', 0.5), \
('RecBole 1.2.1 (precision@2)', 0.5)]
    """
    if isinstance(judgments, Judged) and values is None:
        runs, values = None, runs
    laid = lay(
        judgments, runs, liked=liked, above=above, relevance=relevance, train=train, items=items,
        ties=ties, seed=seed, depth=depth,
    )  # fmt: skip
    libraries = all_libraries()
    if between is not None:
        return path_between(laid, values, between, libraries)
    targets = read_targets(values, list(laid.systems), list(libraries.values()))
    return explain_laid(laid, targets, libraries, resolve(threads))


def explain_laid(
    laid: Laid,
    targets: tuple[Target, ...],
    libraries: Mapping[str, Library],
    threads: int | None = None,
) -> Explanation:
    """Explain values on data that are laid already, by these libraries."""
    result = search(laid, targets, libraries, threads)
    fitting = sorted(result.fitting, key=rank_of)
    near = nearest(result)
    expected = result.expected(next((simplest(group) for group in [*fitting, *near]), None))
    verdict = verdict_of(len(fitting), expected)
    remaining = fitting if len(fitting) > 1 else [*fitting, *near]
    left_out = []
    if result.left_out:
        number = counted(result.left_out, "convention")
        left_out.append(f"{number} were not tried, for their number")
    ask = "" if verdict == "explains" else best_question(result, remaining)
    multiple = len({target.system for target in targets}) > 1
    return Explanation(
        verdict=verdict,
        printed={
            f"{target.system}: {target.quantity.label}" if multiple else target.quantity.label: (
                target.printed.text
            )
            for target in targets
        },
        answers=tuple(answer_of(group, result) for group in fitting),
        tried=result.tried,
        classes=len(result.classes),
        changed=min(result.stage, 2),
        expected=expected,
        cut=result.cut,
        near=() if fitting else (*_in_words(result, near[:NEAREST]), OUTSIDE),
        ask=ask,
        checks=tuple(in_sentences(look_at(laid, targets))),
        notes=(*laid.notes, *left_out),
    )


def verdict_of(fits: int, expected: float) -> str:
    """Return the verdict: a unique fit explains only where chance fits are not expected."""
    if not fits:
        return "does not fit"
    if fits > 1:
        return "ambiguous"
    return "explains" if expected < LIMIT else "compatible"


def nearest(result: Search, number: int = 20) -> list[Class]:
    """Return the classes that come nearest to what was printed without fitting."""
    targets, classes = result.targets, list(result.classes.values())
    if not classes:
        return []
    printed = np.array([target.printed.value for target in targets])
    units = np.array([target.printed.unit for target in targets])
    distance = (np.abs(result.cloud - printed) / units).max(axis=1)
    fitting = set(map(id, result.fitting))
    order = [
        index for index in np.argsort(distance, kind="stable") if id(classes[index]) not in fitting
    ]
    return [classes[index] for index in order[:number]]


def _in_words(result: Search, near: Sequence[Class]) -> Iterator[str]:
    for group in near:
        values = ", ".join(
            f"{target.quantity.label} = {target.printed.show(value)}"
            for target, value in zip(result.targets, group.values, strict=True)
        )
        yield f"near: {values} by {title_of(simplest(group), result)}"
