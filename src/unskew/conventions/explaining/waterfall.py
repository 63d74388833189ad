"""`waterfall`: the path from one number to another, one convention per step."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from functools import cache, partial
from itertools import combinations, pairwise
from typing import Any

import numpy as np

from unskew.conventions.explaining.explanation import rank_of, simplest, title_of
from unskew.conventions.explaining.printed import OURS, Printed, PrintedQuantity, Target
from unskew.conventions.explaining.search import search
from unskew.conventions.laying import Laid
from unskew.conventions.libraries import (
    AXES,
    Convention,
    Library,
    LibraryMetric,
    library,
    relevant_axes,
)
from unskew.conventions.values import ConventionValues
from unskew.errors import SettingError
from unskew.evaluation.compat import choose_metric
from unskew.report.columns import METRIC, VALUE, Column, Drawing, Method, Question
from unskew.report.estimates import Estimates

MOST_AXES = 8
"""Up to so many steps, effects are computed in all orders."""
ORDERS = 200
"""Of more steps: in how many random orders."""
FORMULA, CUTOFF = "formula", "cutoff"
"""Steps that are no axis: another metric under the same name, another cutoff."""


WATERFALL = Question(
    name="from one number to the other",
    columns=(
        *(METRIC, Column("step", "key"), Column("before", "note"), Column("after", "note")),
        *(Column("change", "fact", "effect", form="+"), Column("lowest", "fact", form="+")),
        *(Column("highest", "fact", form="+"), VALUE),
    ),
    method=Method(estimand="the number after each choice, and what the choice changes in it"),
    figures=(Drawing(kind="waterfall"),),
)
"""`lowest` and `highest`: the effect of the same choice in other orders of steps."""


Options = dict[str, Any]


def options_of(row: LibraryMetric, k: int | None) -> Options:
    """Return everything that decides about a number: formula, cutoff and the option per choice."""
    if row.ours:
        raise SettingError(
            f"{row.name} equals our {row.family(k)}, whose conventions have no steps: a path needs "
            "one of P, Recall, F1, AP, nDCG, DCG, RR, HitRate or Rprec"
        )
    convention = row.convention(k)
    return {FORMULA: row.metric, CUTOFF: convention.k, **convention.choices}


def _in_words(name: str, option: object) -> str:
    return AXES[name].options[str(option)] if name in AXES else str(option)


def choices_between(start: Options, end: Options) -> list[str]:
    """Return the choices that differ and can change one of the two metrics, in their order."""
    allowed = {
        FORMULA, CUTOFF, *relevant_axes(start[FORMULA]), *relevant_axes(end[FORMULA])
    }  # fmt: skip
    return [name for name in start if name in allowed and start[name] != end[name]]


def number_after(
    values: ConventionValues, start: Options, end: Options, taken: frozenset[str]
) -> float:
    """Return the number after some steps; NaN where it cannot be computed."""
    options = {name: end[name] if name in taken else start[name] for name in start}
    metric, k = options.pop(FORMULA), options.pop(CUTOFF)
    try:
        return values.mean(Convention(metric, k, **options))
    except SettingError:
        return math.nan


def waterfall(
    values: ConventionValues,
    metric: str,
    start: tuple[str, Options],
    end: tuple[str, Options],
    notes: tuple[str, ...] = (),
) -> Estimates:
    """Walk from one end to the other, and try every step in other orders too."""
    names = choices_between(start[1], end[1])
    number = cache(partial(number_after, values, start[1], end[1]))
    numbers = [number(frozenset(names[:count])) for count in range(len(names) + 1)]
    if any(math.isnan(after - before) for before, after in pairwise(numbers)):
        raise SettingError(
            f"a step between {start[0]} and {end[0]} leads over a number that cannot be computed"
        )
    effects: dict[str, list[float]] = {name: [] for name in names}
    for name, taken in _steps_in_orders(names):
        effects[name].append(number(taken | {name}) - number(taken))
    ranges = {
        name: (float(np.nanmin(changes)), float(np.nanmax(changes)))
        for name, changes in effects.items()
    }
    idle = [name for name, changes in ranges.items() if max(map(abs, changes)) <= 1e-15]
    steps = [
        {
            "step": name,
            "before": _in_words(name, start[1][name]),
            "after": _in_words(name, end[1][name]),
            "change": after - before,
            "lowest": ranges[name][0],
            "highest": ranges[name][1],
            "value": after,
        }
        for name, (before, after) in zip(names, pairwise(numbers), strict=True)
        if name not in idle
    ]
    first, last = ({"step": e[0], "value": x} for e, x in ((start, numbers[0]), (end, numbers[-1])))
    gap = numbers[-1] - numbers[0]
    lines = [
        f"{metric} of {values.system}: {numbers[0]:.6f} by {start[0]}, {numbers[-1]:.6f} by "
        f"{end[0]}; the gap is {gap:+.6f}"
    ]
    if steps:
        orders = "over all orders of steps"
        if len(names) > MOST_AXES:
            orders = f"over {ORDERS} orders of steps, drawn with a fixed seed"
        lines.append(
            "steps are taken in the fixed order of choices (docs/libraries.md); lowest and "
            f"highest: effect of the same choice {orders}"
        )
    if idle:
        lines.append(f"differ without an effect on these data: {', '.join(idle)}")
    if not steps:
        lines.append("both ends give the same number on these data")
    return Estimates.of_rows(
        WATERFALL,
        [{"metric": metric, **row} for row in (first, *steps, last)],
        explanation=tuple(lines),
        notes=notes,
        card={"system": values.system, "idle": idle},
    )


def _steps_in_orders(names: Sequence[str]) -> Iterator[tuple[str, frozenset[str]]]:
    """Yield each step with the steps before it: in all orders, or of many steps in some."""
    if len(names) <= MOST_AXES:
        for name in names:
            others = [axis for axis in names if axis != name]
            for size in range(len(names)):
                yield from ((name, frozenset(chosen)) for chosen in combinations(others, size))
        return
    rng = np.random.Generator(np.random.PCG64(0))
    orders = [list(names), *(list(map(str, rng.permutation(names))) for _ in range(ORDERS - 1))]
    for order in orders:
        yield from ((name, frozenset(order[:index])) for index, name in enumerate(order))


def path_between(
    laid: Laid, metric: object, between: Sequence[object], libraries: Mapping[str, Library]
) -> Estimates:
    """Return the path from one end to the other, for one metric of one system."""
    if len(between) != 2 or isinstance(between, str):
        raise SettingError(
            f"between must name two ends, such as ('ours', 'recbole'); got {between!r}"
        )
    if not isinstance(metric, str):
        raise SettingError(f"with between=…, values is the name of a metric; got {metric!r}")
    if len(laid.systems) != 1:
        raise SettingError(
            f"a path needs the lists of one system; there are {', '.join(laid.systems)}"
        )
    system = next(iter(laid.systems))
    quantity = PrintedQuantity.of(metric, list(libraries.values()))
    pair = [_end(end, laid, system, quantity, libraries) for end in between]
    return waterfall(ConventionValues(laid, system), metric, pair[0], pair[1], laid.notes)


def _end(
    end: object,
    laid: Laid,
    system: str,
    quantity: PrintedQuantity,
    libraries: Mapping[str, Library],
) -> tuple[str, Options]:
    """Read an end: its title, and the options that give its number."""
    if isinstance(end, str) and end.lower() in (OURS, "unskew"):
        return "unskew's defaults", options_of(quantity.row(), quantity.k)
    if isinstance(end, str) and not _is_number(end):
        source = library(end).newest
        row, k = choose_metric(source, quantity.label)
        title = f"{source.name} {', '.join(source.versions)} ({row.label(k, full=True)})"
        return title, options_of(row, k)
    target = Target(system, quantity, Printed.of(end))
    result = search(laid, (target,), libraries)
    if not result.fitting:
        raise SettingError(
            f"no convention that was tried gives {target}: explain that value alone to see what "
            "comes near"
        )
    first = simplest(min(result.fitting, key=rank_of))
    title = f"{target.printed.text}, taken as {title_of(first, result)}"
    return title, options_of(first.row(0), first.cutoff(quantity.k))


def _is_number(text: str) -> bool:
    try:
        Printed.of(text)
    except SettingError:
        return False
    return True
